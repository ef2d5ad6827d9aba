"""What of the questions in 09_truncated_attention.md is code."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def keys_of_blocks(x, radius, block):
    padded = F.pad(x, (0, 0, radius, radius))  # rows of zeros at both ends
    starts = range(0, len(x), block)
    return torch.stack([padded[start : start + block + 2 * radius] for start in starts])


def _rows(values: list[float], radius: int, block: int) -> Case:
    return {"x": table(values)[:, None], "radius": radius, "block": block}


def _sentence(seed: int, n: int, d: int, radius: int, block: int, draw=drawn) -> Case:
    return {"x": draw(seed, n, d), "radius": radius, "block": block}


def _more_keys(drawn: Draw) -> list[Case]:
    return [_sentence(1, 15, 2, 2, 5, drawn), _sentence(2, 8, 3, 5, 2, drawn)]


def _by_places(x: Tensor, radius: int, block: int) -> Tensor:
    n = len(x)
    places = torch.arange(0, n, block)[:, None] - radius + torch.arange(block + 2 * radius)
    there = (places >= 0) & (places < n)
    return x[places.clamp(0, n - 1)] * there[..., None]


def who_is_seen(n, radius, block):
    i = torch.arange(n).view(-1, block, 1)  # the frame of each query
    j = i[:, :1] - radius + torch.arange(block + 2 * radius)  # of each key
    return ((i - j).abs() <= radius) & (j >= 0) & (j < n)


def _of(n: int, radius: int, block: int) -> Case:
    return {"n": n, "radius": radius, "block": block}


def _more_seen(_draw: Draw) -> list[Case]:
    return [_of(15, 2, 5), _of(8, 5, 2), _of(21, 3, 7)]


def _one_by_one(n: int, radius: int, block: int) -> Tensor:
    """Pair by pair."""
    seen = torch.zeros(n // block, block, block + 2 * radius, dtype=torch.bool)
    for b, p, c in torch.cartesian_prod(*(torch.arange(size) for size in seen.shape)).tolist():
        key = b * block - radius + c
        seen[b, p, c] = 0 <= key < n and abs(b * block + p - key) <= radius
    return seen


def keys_of_blocks_2(
    x: Float[Tensor, "n d"],
    radius: int,
    block: int,
) -> Float[Tensor, "blocks stretch d"]:
    filled = F.pad(x, (0, 0, radius, -len(x) % block))
    starts = range(0, len(x), block)
    return torch.stack([filled[start : start + radius + block] for start in starts])


def who_is_seen_2(
    n: int,
    radius: int,
    block: int,
) -> Bool[Tensor, "blocks block stretch"]:
    i = torch.arange(n).view(-1, block, 1)
    j = i[:, :1] - radius + torch.arange(radius + block)
    return (i - radius <= j) & (j <= i) & (j >= 0)


CODE = {
    "keys_of_blocks": Code(
        solution=keys_of_blocks,
        cases=(
            lambda: [_rows([1, 2, 3, 4], 1, 2)],
            lambda: [_rows([1, 2, 3, 4], 0, 2), _rows([1, 2, 3], 1, 3)],
            lambda: [_rows([1, 2, 3, 4, 5, 6], 3, 2)],
            lambda: [_sentence(5, 12, 3, 2, 4)],
        ),
        reference=_by_places,
        hidden=_more_keys,
    ),
    "keys_of_blocks_2": Code(
        solution=keys_of_blocks_2,
        cases=(
            lambda: [_rows([1, 2, 3, 4], 1, 2)],
            lambda: [_rows([1, 2, 3, 4, 5], 1, 2)],
            lambda: [{"x": drawn(3, 7, 2), "radius": 4, "block": 3}],
        ),
    ),
    "who_is_seen": Code(
        solution=who_is_seen,
        cases=(
            lambda: [_of(4, 1, 2)],
            lambda: [_of(3, 1, 3)],
            lambda: [_of(4, 0, 2), _of(4, 6, 2)],
            lambda: [_of(12, 3, 4)],
        ),
        reference=_one_by_one,
        hidden=_more_seen,
    ),
    "who_is_seen_2": Code(
        solution=who_is_seen_2,
        cases=(
            lambda: [_of(4, 1, 2)],
            lambda: [_of(6, 0, 3)],
            lambda: [_of(12, 6, 4)],
        ),
    ),
}
