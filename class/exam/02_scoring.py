"""What of the exam's questions is code; their words are in the file beside this one."""

import random
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code


def exam_attend(
    query: Float[Tensor, "b n d_k"],
    key: Float[Tensor, "b m d_k"],
    value: Float[Tensor, "b m d_v"],
    real: Bool[Tensor, "b m"],
) -> Float[Tensor, "b n d_v"]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~real[:, None, :], -torch.inf).softmax(-1)
    return weights @ value


def _case(seed: int, lengths: list[int], n: int, d: tuple[int, int], drawn: Draw = drawn) -> Case:
    b, m = len(lengths), max(lengths)
    real = torch.arange(m) < torch.tensor(lengths)[:, None]
    value = drawn(seed + 2, b, m, d[1]) + 50 * ~real[..., None]
    return {
        "query": drawn(seed, b, n, d[0]),
        "key": drawn(seed + 1, b, m, d[0]),
        "value": value,
        "real": real,
    }


def _hidden(draw: random.Random) -> dict[str, Any]:
    x, y = draw.choice([(1, 2), (2, 1), (1, 3), (3, 1)])
    a, b, c = *draw.sample(range(10, 50, 4), 2), draw.choice([70, 80, 90])
    return locals()


def _divisor(draw: random.Random) -> dict[str, Any]:
    a, c, d = draw.choice([2, 3]), draw.choice([0.5, 4, 5]), draw.choice([16, 25, 36, 49, 81])
    return locals()


CODE = {
    "exam_hidden": Code(draw=_hidden),
    "exam_divisor": Code(draw=_divisor),
    "exam_attend": Code(
        solution=exam_attend,
        cases=(
            lambda: [_case(4, [3], 2, (1, 2))],
            lambda: [_case(7, [4, 2], 3, (1, 2))],
            lambda: [_case(10, [5, 5], 4, (6, 3))],
        ),
        hidden=lambda drawn: [_case(13, [7, 7, 7], 5, (8, 2), drawn)],
    ),
}
