"""What of the questions in 04_multi_head.md is code."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes
from lesson_lib.checks.questions import Code
from lesson_lib.heads import split_heads


def heads_apart(x, n_heads):
    *batch, n, width = x.shape
    blocks = x.reshape(*batch, n, n_heads, width // n_heads)
    return blocks.transpose(-2, -3)  # heads before tokens


def _counted(x: Tensor, n_heads: int) -> Case:
    return {"x": x, "n_heads": n_heads}


def _more_heads_apart(drawn: Draw) -> list[Case]:
    return [
        {"x": drawn(1, 11, 12), "n_heads": 4},
        {"x": drawn(2, 3, 7, 15), "n_heads": 3},
    ]


def looks_at(weights, target):
    on_target = (weights * target[:, None]).sum(-1)  # (b, h)
    return on_target.mean(0)


def _looking(seed: int, b: int, h: int, m: int, draw: Any = drawn) -> Case:
    """Weights, and a target of one key for each sentence, each at another place."""
    target = torch.arange(m, device="cpu") == (2 * torch.arange(b, device="cpu")[:, None] + 1) % m
    return {"weights": draw(seed, b, h, m).softmax(-1), "target": target}


def heads_apart_2(
    packed: Float[Tensor, "*b n width"],
    n_heads: int,
) -> Float[Tensor, "three *b h n d"]:
    *batch, n, width = packed.shape
    blocks = packed.reshape(*batch, n, 3, n_heads, width // (3 * n_heads))
    return blocks.movedim(-3, 0).transpose(-2, -3)  # queries, keys, values; heads before tokens


def _case_2(packed: Tensor, n_heads: int) -> Case:
    return {"packed": packed, "n_heads": n_heads}


CODE = {
    "heads_apart": Code(
        solution=heads_apart,
        cases=(
            lambda: [_counted(primes(1, 6), 2)],
            lambda: [_counted(primes(3, 6), 3)],
            lambda: [_counted(primes(5, 6), 2)],
            lambda: [_counted(primes(2, 3, 10), 5), _counted(drawn(1, 2, 3, 5, 14), 7)],
        ),
        reference=split_heads,
        hidden=_more_heads_apart,
    ),
    "heads_apart_2": Code(
        solution=heads_apart_2,
        cases=(
            lambda: [_case_2(primes(1, 6), 1)],
            lambda: [_case_2(primes(1, 12), 2)],
            lambda: [_case_2(primes(3, 12), 2)],
            lambda: [_case_2(drawn(1, 2, 5, 18), 3), _case_2(drawn(2, 2, 3, 4, 6), 2)],
        ),
        reference=lambda packed, n_heads: torch.stack(
            [
                torch.stack(third.chunk(n_heads, -1), -3)  # (..., h, n, d)
                for third in packed.chunk(3, -1)
            ]
        ),
    ),
    "looks_at": Code(
        solution=looks_at,
        cases=(
            lambda: [
                {
                    "weights": torch.tensor([[[0.25, 0.75]]], device="cpu"),
                    "target": torch.tensor([[False, True]], device="cpu"),
                }
            ],
            lambda: [_looking(1, 1, 2, 3)],
            lambda: [_looking(2, 2, 2, 3)],
            lambda: [_looking(3, 5, 3, 7)],
        ),
        hidden=lambda draw: [_looking(1, 7, 3, 11, draw), _looking(2, 2, 5, 3, draw)],
    ),
}
