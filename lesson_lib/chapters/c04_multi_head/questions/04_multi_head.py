"""What of the questions in 04_multi_head.md is code."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes
from lesson_lib.checks.questions import Code
from lesson_lib.heads import merge_heads, split_heads


def heads_apart(
    x: Float[Tensor, "*b n width"],
    n_heads: int,
) -> Float[Tensor, "*b h n d"]:
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


def several_heads(
    query: Float[Tensor, "b n h_d"],
    key: Float[Tensor, "b m h_d"],
    value: Float[Tensor, "b m h_v"],
    w_output: Float[Tensor, "h_v d_model"],
    n_heads: int,
) -> Float[Tensor, "b n d_model"]:
    def split(x):  # (b, n, h * d) to (b, h, n, d)
        return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    mixed = attend(split(query), split(key), split(value)).output
    return mixed.transpose(1, 2).flatten(2) @ w_output


def _case(seed: int, b: int, n: int, m: int, h: int, d: int, v: int, out: int, draw: Any = drawn) -> Case:
    shapes = {"query": (b, n, h * d), "key": (b, m, h * d), "value": (b, m, h * v), "w_output": (h * v, out)}
    case = {name: draw(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return case | {"n_heads": h}


def _more_several_heads(draw: Draw) -> list[Case]:
    return [_case(1, 3, 5, 7, 2, 3, 4, 11, draw), _case(11, 2, 3, 2, 5, 2, 3, 7, draw)]


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
    "several_heads": Code(
        solution=several_heads,
        cases=(
            lambda: [_case(21, 1, 2, 1, 1, 2, 3, 2) | {"value": primes(3)[None, None]}],
            lambda: [_case(31, 1, 1, 3, 2, 2, 2, 4)],
            lambda: [_case(41, 1, 3, 3, 3, 2, 2, 5)],
            lambda: [_case(51, 2, 5, 7, 2, 3, 4, 3)],
        ),
        reference=lambda query, key, value, w_output, n_heads: (
            merge_heads(attend(*(split_heads(x, n_heads) for x in (query, key, value))).output) @ w_output
        ),
        hidden=_more_several_heads,
    ),
    "several_heads_2": Code(
        wrong=(
            lambda query, key, value, w_output, n_heads: n_heads == 1,
            lambda query, key, value, w_output, n_heads: query.shape[1] == 1,
            lambda query, key, value, w_output, n_heads: not bool(value.any()),
        ),
    ),
}
