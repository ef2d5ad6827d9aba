"""What of the questions in 01c_where_to_look.md is code."""

import random
from typing import Any

import torch
from torch import Tensor

from lesson_lib.chapters.c01_history.questions.exercises import whole
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def nudge(place, mean, std, reward, baseline):
    advantage = reward - baseline
    return advantage[:, None] * (place - mean) / std**2


def _looked(place: object, mean: object, std: float, reward: object, baseline: object) -> Case:
    return {"place": place, "mean": mean, "std": std, "reward": reward, "baseline": baseline}


def _more_nudge(drawn: Draw) -> list[Case]:
    return [_looked(drawn(1, 7, 2), drawn(2, 7, 2), 0.7, drawn(3, 7), drawn(4, 7))]


def _by_autograd(place: Tensor, mean: Tensor, std: float, reward: Tensor, baseline: Tensor) -> Tensor:
    about = mean.clone().requires_grad_()
    log_density = torch.distributions.Normal(about, std).log_prob(place).sum(-1)
    (gradient,) = torch.autograd.grad(((reward - baseline) * log_density).sum(), about)
    return gradient


def nudge_2(scores, choice, reward, baseline):
    chosen = torch.nn.functional.one_hot(choice, scores.shape[-1])
    advantage = reward - baseline
    return advantage[:, None] * (chosen - torch.softmax(scores, dim=-1))


def _chosen(scores: Tensor, choice: list[int], reward: Tensor, baseline: Tensor) -> Case:
    return {"scores": scores, "choice": whole(choice), "reward": reward, "baseline": baseline}


def _by_autograd_2(scores: Tensor, choice: Tensor, reward: Tensor, baseline: Tensor) -> Tensor:
    about = scores.clone().requires_grad_()
    log_p = torch.log_softmax(about, dim=-1).gather(1, choice[:, None])[:, 0]
    (gradient,) = torch.autograd.grad(((reward - baseline) * log_p).sum(), about)
    return gradient


def policy_loss(log_p, reward, expected):
    advantage = reward - expected
    return -(advantage * log_p).mean()


def policy_loss_2(log_p, reward, expected, real):
    advantage = (reward - expected)[:, None]
    return -(advantage * log_p)[real].mean()


def _drew(log_p: Tensor, reward: Tensor, expected: Tensor) -> Case:
    return {"log_p": log_p, "reward": reward, "expected": expected}


def _wrote(log_p: Tensor, reward: Tensor, expected: Tensor, lengths: list[int]) -> Case:
    real = torch.arange(log_p.shape[1]) < torch.tensor(lengths)[:, None]
    return _drew(log_p, reward, expected) | {"real": real}


def _estimate_left_numbers(draw: random.Random) -> dict[str, Any]:
    p, reward = draw.choice([1, 2, 3, 4, 6, 7, 8, 9]) / 10, draw.randint(2, 7)
    side, chance, sign = draw.choice([("left", p, 1), ("right", round(1 - p, 1), -1)])
    log = "log p" if side == "left" else "log (1 - p)"
    minus = "-" if sign < 0 else ""
    return locals()


CODE = {
    "estimate_left_2": Code(
        draw=_estimate_left_numbers,
    ),
    "nudge": Code(
        solution=nudge,
        cases=(
            lambda: [
                _looked(
                    table([[0.5, 0.0]]), table([[0.0, 0.0]]), 0.5, torch.tensor([1.0]), torch.tensor([0.0])
                )
            ],
            lambda: [
                _looked(
                    table([[0.5, -0.5]]), table([[0.0, 0.5]]), 0.5, torch.tensor([0.0]), torch.tensor([0.5])
                )
            ],
            lambda: [_looked(drawn(1, 5, 2), drawn(2, 5, 2), 0.3, drawn(3, 5), drawn(4, 5))],
        ),
        reference=_by_autograd,
        hidden=_more_nudge,
    ),
    "nudge_2": Code(
        solution=nudge_2,
        cases=(
            lambda: [_chosen(table([[0.0, 0.0]]), [0], table([1.0]), table([0.0]))],
            lambda: [_chosen(table([[1.0, 0.0, -1.0]]), [2], table([0.0]), table([0.5]))],
            lambda: [_chosen(drawn(1, 5, 3), [2, 0, 1, 1, 2], drawn(2, 5), drawn(3, 5))],
        ),
        reference=_by_autograd_2,
    ),
    "policy_loss": Code(
        solution=policy_loss,
        cases=(
            lambda: [_drew(table([[-0.7]]), table([[1.0]]), table([[0.5]]))],
            lambda: [_drew(table([[-0.7]]), table([[0.0]]), table([[0.5]]))],
            lambda: [_drew(drawn(1, 2, 3), table([[1.0] * 3, [0.0] * 3]), drawn(2, 2, 3))],
            lambda: [_drew(drawn(3, 5, 3), drawn(4, 5, 3), drawn(5, 5, 3))],
        ),
        reference=lambda log_p, reward, expected: ((expected - reward) * log_p).sum() / log_p.numel(),
        hidden=lambda drawn: [_drew(drawn(1, 7, 2), drawn(2, 7, 2), drawn(3, 7, 2))],
    ),
    "policy_loss_2": Code(
        solution=policy_loss_2,
        cases=(
            lambda: [_wrote(drawn(1, 1, 2), table([1.0]), table([0.5]), [2])],
            lambda: [_wrote(drawn(2, 2, 5), table([1.0, 0.0]), table([0.5, 0.3]), [2, 5])],
            lambda: [_wrote(drawn(3, 3, 7), drawn(4, 3), drawn(5, 3), [7, 1, 4])],
        ),
    ),
}
