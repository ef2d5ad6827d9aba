"""What of the exam's questions is code; their words are in the file beside this one."""

import random
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code


def exam_weights(
    q: Float[Tensor, "b n d_k"],
    k: Float[Tensor, "b n d_k"],
    real: Bool[Tensor, "b n"],
) -> Float[Tensor, "b n n"]:
    n = q.shape[1]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    earlier = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
    seen = earlier & real[:, None, :]
    return scores.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num(0.0)


def _case(seed: int, lengths: list[int], n: int, d_k: int, drawn: Draw = drawn) -> Case:
    shape = (len(lengths), n, d_k)
    real = torch.arange(n) >= n - torch.tensor(lengths)[:, None]
    return {"q": drawn(seed, *shape), "k": drawn(seed + 1, *shape), "real": real}


def _computed(draw: random.Random) -> dict[str, Any]:
    b, n, d = draw.choice([3, 6, 12, 16]), draw.choice([10, 30, 50]), draw.choice([24, 40, 64])
    d_k, d_v = draw.choice([5, 8, 12]), draw.choice([7, 15, 20])
    return locals()


def _score(draw: random.Random) -> dict[str, Any]:
    p, q, r, s = draw.sample(range(10), 4)
    x, y, u, v = draw.sample(range(1, 7), 4)
    d_k = draw.choice([4, 9, 16])
    raw = x * (p * u + q * v) + y * (r * u + s * v)
    turned = u * (p * x + q * y) + v * (r * x + s * y)
    return locals()


CODE = {
    "exam_computed": Code(draw=_computed),
    "exam_score": Code(draw=_score),
    "exam_weights": Code(
        solution=exam_weights,
        cases=(
            lambda: [_case(1, [3], 3, 1)],
            lambda: [_case(3, [4, 2], 4, 1)],
            lambda: [_case(5, [7, 7, 7], 7, 3)],
        ),
        hidden=lambda drawn: [_case(7, [11, 11], 11, 5, drawn)],
    ),
}
