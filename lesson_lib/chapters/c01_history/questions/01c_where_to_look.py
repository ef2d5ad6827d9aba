"""What of the questions in 01c_where_to_look.md is code."""

import random
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.chapters.c01_history.questions.exercises import whole
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def crop(
    canvas: Float[Tensor, "height width"], row: int, column: int, size: int
) -> Float[Tensor, "size size"]:
    half = size // 2
    padded = torch.nn.functional.pad(canvas, (half, half, half, half))
    return padded[row : row + size, column : column + size]


def _pixel_by_pixel(canvas: Tensor, row: int, column: int, size: int) -> Tensor:
    height, width = canvas.shape
    patch = canvas.new_zeros(size, size)
    for i in range(size):
        for j in range(size):
            y, x = row + i - size // 2, column + j - size // 2
            if 0 <= y < height and 0 <= x < width:
                patch[i, j] = canvas[y, x]
    return patch


def _glimpse(height: int, width: int, row: int, column: int, size: int) -> Case:
    return {"canvas": primes(height, width), "row": row, "column": column, "size": size}


def _more_crop(drawn: Draw) -> list[Case]:
    canvas = drawn(1, 11, 7)
    places = ((9, 1, 5), (4, 3, 3), (10, 6, 7))
    return [{"canvas": canvas, "row": r, "column": c, "size": s} for r, c, s in places]


def nudge(
    place: Float[Tensor, "b 2"],
    mean: Float[Tensor, "b 2"],
    std: float,
    reward: Float[Tensor, " b"],
    baseline: Float[Tensor, " b"],
) -> Float[Tensor, "b 2"]:
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


def nudge_2(
    scores: Float[Tensor, "b k"],
    choice: Int[Tensor, " b"],
    reward: Float[Tensor, " b"],
    baseline: Float[Tensor, " b"],
) -> Float[Tensor, "b k"]:
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


def crop_2(
    canvas: Float[Tensor, "height width"], row: int, column: int, size: int
) -> Float[Tensor, "size size"]:
    rows = (row + torch.arange(size)) % canvas.shape[0]
    columns = (column + torch.arange(size)) % canvas.shape[1]
    return canvas[rows[:, None], columns]


def _patch(height: int, width: int, row: int, column: int, size: int) -> Case:
    return {"canvas": primes(height, width), "row": row, "column": column, "size": size}


def _walking(canvas: Tensor, row: int, column: int, size: int) -> Tensor:
    height, width = canvas.shape
    patch = canvas.new_zeros(size, size)
    for i in range(size):
        for j in range(size):
            patch[i, j] = canvas[(row + i) % height, (column + j) % width]
    return patch


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
    "crop": Code(
        solution=crop,
        cases=(
            lambda: [_glimpse(3, 4, 1, 2, 1)],
            lambda: [_glimpse(5, 7, 2, 4, 3)],
            lambda: [_glimpse(3, 5, 0, 0, 3)],
            lambda: [_glimpse(3, 5, 2, 4, 3), _glimpse(5, 3, 3, 2, 3)],
            lambda: [_glimpse(3, 2, 1, 0, 5), _glimpse(2, 4, 1, 3, 7)],
        ),
        reference=_pixel_by_pixel,
        hidden=_more_crop,
    ),
    "crop_2": Code(
        solution=crop_2,
        cases=(
            lambda: [_patch(3, 5, 0, 1, 2)],
            lambda: [_patch(3, 5, 2, 1, 2), _patch(3, 5, 0, 4, 2)],
            lambda: [_patch(5, 3, -1, 7, 3), _patch(3, 7, 8, -2, 3)],
            lambda: [_patch(2, 3, 1, 1, 5)],
        ),
        reference=_walking,
    ),
}
