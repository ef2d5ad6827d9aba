"""What of the questions in 01a_two_saws.md is code."""

import random
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def most_right(counts: Float[Tensor, "sights tags"]) -> Float[Tensor, ""]:
    return counts.amax(-1).sum() / counts.sum()


def _counts(counts: object) -> Case:
    return {"counts": counts}


def _more_most_right(drawn: Draw) -> list[Case]:
    return [_counts(drawn(1, 7, 3).abs()), _counts(drawn(2, 5, 11).abs())]


def window_mask(n: int, radius: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    return (i[:, None] - i[None, :]).abs() <= radius


def _more_window_mask(drawn: Draw) -> list[Case]:
    return [{"n": 11, "radius": 3}, {"n": 2, "radius": 5}]


def most_right_2(counts: Float[Tensor, "before words tags"]) -> Float[Tensor, ""]:
    by_word = counts.sum(0)  # (words, tags): the word before is no longer seen
    return by_word.amax(-1).sum() / counts.sum()


def window_mask_2(n: int, size: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    back = i[:, None] - i[None, :]  # how far word j lies before word i
    return (back >= 0) & (back < size)


def _padding_counts_numbers(draw: random.Random) -> dict[str, Any]:
    longest = draw.randint(8, 20)
    lengths = [longest, draw.randint(2, longest - 2), draw.randint(2, longest - 2)]
    words, cells = sum(lengths), 3 * longest
    right, padding = draw.randint(words // 3, words - 3), cells - words
    return locals()


CODE = {
    "most_right": Code(
        solution=most_right,
        cases=(
            lambda: [_counts(table([[5.0, 3.0]]))],
            lambda: [_counts(table([[4.0, 0.0], [0.0, 3.0], [1.0, 0.0]]))],
            lambda: [_counts(drawn(3, 5, 3).abs())],
        ),
        hidden=_more_most_right,
    ),
    "most_right_2": Code(
        solution=most_right_2,
        cases=(
            lambda: [{"counts": table([[[4.0, 0.0]], [[1.0, 3.0]]])}],
            lambda: [{"counts": primes(2, 3, 2)}],
            lambda: [{"counts": drawn(1, 7, 5, 3).abs()}],
        ),
    ),
    "window_mask": Code(
        solution=window_mask,
        cases=(
            lambda: [{"n": 3, "radius": 0}],
            lambda: [{"n": 5, "radius": 1}],
            lambda: [{"n": 7, "radius": 2}],
        ),
        hidden=_more_window_mask,
    ),
    "window_mask_2": Code(
        solution=window_mask_2,
        cases=(
            lambda: [{"n": 3, "size": 1}],
            lambda: [{"n": 5, "size": 2}],
            lambda: [{"n": 7, "size": 3}, {"n": 2, "size": 5}],
        ),
    ),
    "padding_counts_2": Code(
        draw=_padding_counts_numbers,
    ),
}
