"""What of the exam's questions is code; their words are in the file beside this one."""

import random
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code


def exam_diagonals(scores: Float[Tensor, "n n"]) -> Float[Tensor, ""]:
    return (scores[1:, 1:] - scores[:-1, :-1]).abs().max()


def _striped(n: int) -> Tensor:
    i = torch.arange(n)
    return drawn(2, 2 * n)[i[:, None] - i + n]


def _turned(draw: random.Random) -> dict[str, Any]:
    a, b, c, d = draw.sample(range(1, 10), 4)
    sign, j = draw.choice([1, -1]), draw.choice([20, 41, 73])
    i = j + 4 * draw.choice([1, 2, 5]) + sign
    return locals()


def _base(draw: random.Random) -> dict[str, Any]:
    return {"d": draw.choice([4, 6, 8]), "n": draw.choice([500, 1000, 2000, 4000])}


CODE = {
    "exam_turned": Code(draw=_turned),
    "exam_base": Code(draw=_base),
    "exam_diagonals": Code(
        solution=exam_diagonals,
        cases=(
            lambda: [{"scores": torch.tensor([[5.0, 9.0], [-4.0, 8.0]])}],
            lambda: [{"scores": _striped(4)}],
            lambda: [{"scores": drawn(3, 7, 7)}],
        ),
        hidden=lambda drawn: [{"scores": drawn(4, 11, 11)}],
    ),
}
