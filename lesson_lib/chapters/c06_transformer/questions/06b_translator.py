"""What of the questions in 06b_translator.md is code."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.training import warmup


def next_character_loss(model, source, lengths, target):
    logits = model(source, lengths, target[:, :-1]).flatten(0, 1)
    wanted = target[:, 1:].flatten()
    return torch.nn.functional.cross_entropy(logits, wanted, ignore_index=0)


Model = Callable[[Tensor, Tensor, Tensor], Tensor]

CHANCES = [  # of 0 padding, 1 start, 2 end, 3 and 4, after each of them
    [0.2, 0.2, 0.2, 0.2, 0.2],
    [0.05, 0.05, 0.1, 0.5, 0.3],
    [0.6, 0.1, 0.1, 0.1, 0.1],
    [0.1, 0.1, 0.3, 0.1, 0.4],
    [0.1, 0.1, 0.5, 0.2, 0.1],
]


def _last_only(chances: Tensor) -> Model:
    """A decoder that looks at the last character only: row c of `chances` for what comes after c."""

    def model(source: Tensor, lengths: Tensor, before: Tensor) -> Tensor:
        return chances.log().to(before.device)[before]

    return model


def _running(seed: int, characters: int) -> Model:
    """A causal decoder whose logits depend on the source, its length, and all characters so far."""
    rows = drawn(seed, characters, characters)

    def model(source: Tensor, lengths: Tensor, before: Tensor) -> Tensor:
        read = rows.to(before.device)[source].sum(1, keepdim=True) / lengths[:, None, None]
        return rows.to(before.device)[before].cumsum(1) + read

    return model


def _numbers(rows: list) -> Tensor:
    return torch.tensor(rows, device="cpu")


def _case(model: Model, source: list, lengths: list, target: list) -> Case:
    return {
        "model": model,
        "source": _numbers(source),
        "lengths": _numbers(lengths),
        "target": _numbers(target),
    }


def _more_losses(drawn: Draw) -> list[Case]:
    target = [[1, 5, 3, 6, 2], [1, 4, 2, 0, 0], [1, 7, 7, 2, 0]]
    source = [[3, 4, 5, 6, 7, 3, 4], [5, 5, 3, 0, 0, 0, 0], [7, 6, 5, 4, 0, 0, 0]]
    return [_case(_running(1, 8), source, [7, 3, 4], target)]


def _right_loss(model: Model, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    logs = model(source, lengths, target[:, :-1]).log_softmax(-1)
    wanted = target[:, 1:]
    losses = -logs.gather(-1, wanted[..., None])[..., 0]
    return losses[wanted != 0].mean()


def learning_rates(
    step: Int[Tensor, " n"],  # 1 for the first step
    steps: int,
    warm: int,
    peak: float,
) -> Float[Tensor, " n"]:
    rise = peak * step / warm
    done = (step - warm) / (steps - warm)
    fall = peak * (1 + torch.cos(torch.pi * done)) / 2
    return torch.where(step <= warm, rise, fall)


def _plan(first: int, last: int, steps: int, warm: int, peak: float) -> Case:
    return {
        "step": torch.arange(first, last + 1, device="cpu"),
        "steps": steps,
        "warm": warm,
        "peak": peak,
    }


def _right_rates(step: Tensor, steps: int, warm: int, peak: float) -> Tensor:
    rates = [
        peak * s / warm if s <= warm else peak * math.cos(math.pi / 2 * (s - warm) / (steps - warm)) ** 2
        for s in step.tolist()
    ]
    return torch.tensor(rates, device=step.device)


def reads_ahead(model, before, other):
    logits, moved = model(before), []
    for i in range(before.shape[1]):
        changed = before.clone()
        changed[:, i] = other
        difference = model(changed) - logits
        moved.append(difference[:, :i].abs().sum())
    return torch.stack(moved)


def _reader(seed: int, signs: int, ahead: int) -> Callable[[Tensor], Tensor]:
    """A model whose place i reads all places up to i + ahead."""
    rows = drawn(seed, signs, signs)

    def model(before: Tensor) -> Tensor:
        n = before.shape[1]
        mask = torch.ones(n, n, device=before.device).tril(ahead)
        return mask @ rows.to(before.device)[before]

    return model


def _itself(before: Tensor) -> Tensor:
    """One sign as its only logit, times 10, and the next one's added: place i reads i + 1."""
    following = torch.cat([before[:, 1:], torch.zeros_like(before[:, :1])], 1)
    return (10 * before + following)[..., None].float()


def _probe(model: Callable, before: list, other: int) -> Case:
    return {"model": model, "before": _numbers(before), "other": other}


def _right_ahead(model: Callable, before: Tensor, other: int) -> Tensor:
    n, logits = before.shape[1], model(before)
    found = torch.zeros(n, device=logits.device)
    for i in range(n):
        changed = torch.where(torch.arange(n, device=before.device) == i, other, before)
        found[i] = (model(changed) - logits).abs().sum((0, 2))[:i].sum()
    return found


Model_2 = Callable[[Tensor], Tensor]


def next_character_loss_2(
    model,  # a function: model(tokens) gives logits (b, n, words), each of the word after it
    tokens: Int[Tensor, "b n"],  # prompt, answer, then padding, which is 0
    prompt: Int[Tensor, " b"],  # how many tokens of each row are prompt
) -> Float[Tensor, ""]:
    logits = model(tokens[:, :-1])
    place = torch.arange(1, tokens.shape[1], device=tokens.device)
    wanted = tokens[:, 1:].masked_fill(place < prompt[:, None], 0)
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0)


def _after(chances: Tensor) -> Model_2:
    """A model that looks at the last word only."""

    def model(tokens: Tensor) -> Tensor:
        return chances.log().to(tokens.device)[tokens]

    return model


def _running_2(seed: int, words: int) -> Model_2:
    rows = drawn(seed, words, words)

    def model(tokens: Tensor) -> Tensor:
        return rows.to(tokens.device)[tokens].cumsum(1)

    return model


def _chat(model: Model_2, tokens: list, prompt: list) -> Case:
    return {
        "model": model,
        "tokens": torch.tensor(tokens, device="cpu"),
        "prompt": torch.tensor(prompt, device="cpu"),
    }


def _right_chat(model: Model_2, tokens: Tensor, prompt: Tensor) -> Tensor:
    logs = model(tokens).log_softmax(-1)
    losses = [
        -logs[i, t - 1, tokens[i, t]]
        for i in range(len(tokens))
        for t in range(int(prompt[i]), tokens.shape[1])
        if tokens[i, t] != 0
    ]
    return torch.stack(losses).mean()


CHANCES_2 = [[0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4], [0.1, 0.1, 0.2, 0.6], [0.1, 0.5, 0.2, 0.2]]


def learning_rates_2(
    step: Int[Tensor, " n"],  # 1 for the first step
    d_model: int,
    warm: int,
) -> Float[Tensor, " n"]:
    return d_model**-0.5 * torch.minimum(step**-0.5, step * warm**-1.5)


def _published(first: int, last: int, d_model: int, warm: int) -> Case:
    return {"step": torch.arange(first, last + 1, device="cpu"), "d_model": d_model, "warm": warm}


def reads_ahead_2(
    model,  # a function: model(x) gives outputs (n, d) for rows x (n, d)
    x: Float[Tensor, "n d"],
) -> Float[Tensor, "n n"]:
    x = x.detach().clone().requires_grad_()
    rows = []
    for output in model(x):
        (slope,) = torch.autograd.grad(output.sum(), x, retain_graph=True)
        rows.append(slope.abs().sum(-1))
    return torch.stack(rows)


def _mixes(seed: int, n: int, ahead: int) -> Model_2:
    """Place i mixes the places up to i + ahead, with weights of its own, and bends the result."""
    weights = (1.0 + drawn(seed, n, n).abs()).tril(ahead)

    def model(x: Tensor) -> Tensor:
        return torch.sin(weights.to(x.device) @ x)

    return model


def _twice(x: Tensor) -> Tensor:
    """Each place is twice itself minus the next one."""
    return 2 * x - torch.cat([x[1:], torch.zeros_like(x[:1])])


def _right_slopes(model: Model_2, x: Tensor) -> Tensor:
    slopes = torch.autograd.functional.jacobian(lambda rows: model(rows).sum(-1), x)  # (n, n, d)
    return slopes.abs().sum(-1)


CODE = {
    "next_character_loss": Code(
        solution=next_character_loss,
        cases=(
            lambda: [_case(_last_only(table(CHANCES)), [[3]], [1], [[1, 3, 2]])],
            lambda: [_case(_last_only(table(CHANCES)), [[3]], [1], [[1, 3, 4, 2]])],
            lambda: [_case(_last_only(table(CHANCES)), [[3], [4]], [1, 1], [[1, 3, 4, 2], [1, 4, 2, 0]])],
            lambda: [
                _case(
                    _running(3, 7),
                    [[3, 4, 5], [6, 3, 0]],
                    [3, 2],
                    [[1, 5, 6, 4, 2], [1, 4, 2, 0, 0]],
                )
            ],
        ),
        reference=_right_loss,
        hidden=_more_losses,
    ),
    "next_character_loss_2": Code(
        solution=next_character_loss_2,
        cases=(
            lambda: [_chat(_after(table(CHANCES_2)), [[1, 2, 3]], [1])],
            lambda: [_chat(_after(table(CHANCES_2)), [[3, 1, 2, 3]], [2])],
            lambda: [_chat(_running_2(3, 7), [[3, 1, 4, 5, 6], [2, 6, 1, 0, 0]], [2, 1])],
        ),
        reference=_right_chat,
        hidden=lambda drawn: [
            _chat(_running_2(1, 9), [[3, 1, 4, 1, 5, 2], [8, 7, 6, 5, 0, 0], [2, 2, 7, 0, 0, 0]], [4, 1, 2])
        ],
    ),
    "reads_ahead": Code(
        solution=reads_ahead,
        cases=(
            lambda: [_probe(_itself, [[3, 5, 4]], 9)],
            lambda: [_probe(_reader(1, 7, 1), [[1, 5, 3, 6, 2]], 4)],
            lambda: [
                _probe(_reader(2, 7, 9), [[1, 5, 3, 6], [1, 4, 4, 2]], 0),
                _probe(_reader(3, 7, 0), [[1, 5, 3, 6], [1, 4, 4, 2]], 0),
            ],
        ),
        reference=_right_ahead,
        hidden=lambda drawn: [_probe(_reader(5, 9, 2), [[1, 8, 7, 6, 5, 4], [1, 2, 2, 3, 3, 0]], 6)],
    ),
    "reads_ahead_2": Code(
        solution=reads_ahead_2,
        cases=(
            lambda: [{"model": _twice, "x": table([[3.0], [5.0]])}],
            lambda: [{"model": _mixes(1, 4, 0), "x": drawn(2, 4, 3)}],
            lambda: [{"model": _mixes(3, 5, 1), "x": drawn(4, 5, 2)}],
        ),
        reference=_right_slopes,
        hidden=lambda drawn: [{"model": _mixes(5, 7, 2), "x": drawn(6, 7, 3)}],
    ),
    "learning_rates": Code(
        solution=learning_rates,
        cases=(
            lambda: [_plan(1, 4, 100, 4, 8.0)],
            lambda: [_plan(4, 8, 8, 4, 8.0)],
            lambda: [_plan(1, 20, 20, 5, 0.5)],
        ),
        reference=_right_rates,
        hidden=lambda drawn: [_plan(3, 47, 50, 11, abs(float(drawn(1, 1))) + 0.1), _plan(1, 7, 7, 2, 1.0)],
    ),
    "learning_rates_2": Code(
        solution=learning_rates_2,
        cases=(
            lambda: [_published(1, 4, 4, 4)],
            lambda: [_published(4, 16, 4, 4)],
            lambda: [_published(3998, 4002, 512, 4000)],
        ),
        reference=lambda step, d_model, warm: torch.tensor(
            [warmup(s, d_model, warm) for s in step.tolist()], device=step.device
        ),
        hidden=lambda drawn: [_published(1, 60, 7 + int(drawn(1, 1).abs() * 10), 11)],
    ),
}
