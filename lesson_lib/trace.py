"""The seven steps of self-attention, every intermediate kept, for reading and for drawing."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.scores import dot

Rows = list[list[float | int]]

# The worked example of the sources: three tokens of width 4, three matrices from width 4 to width 3.
EXAMPLE: dict[str, Rows] = {
    "x": [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]],
    "w_query": [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
    "w_key": [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]],
    "w_value": [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
}


class SevenSteps(NamedTuple):
    """What each step leaves behind. `weighted_values[i, j]` is weights[i, j] · values[j]; its sum over j is
    output i."""

    inputs: Float[Tensor, "*b n d_model"]
    keys: Float[Tensor, "*b n d_k"]
    queries: Float[Tensor, "*b n d_k"]
    values: Float[Tensor, "*b n d_v"]
    scores: Float[Tensor, "*b n n"]
    weights: Float[Tensor, "*b n n"]
    weighted_values: Float[Tensor, "*b n n d_v"]
    outputs: Float[Tensor, "*b n d_v"]


def example(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """The sources' worked example as tensors, by argument of `seven_steps`: x, w_query, w_key, w_value.

    >>> seven_steps(**example()).scores.tolist()
    [[2.0, 4.0, 4.0], [4.0, 16.0, 12.0], [4.0, 12.0, 10.0]]
    """
    return {name: torch.tensor(rows, dtype=dtype) for name, rows in EXAMPLE.items()}


def seven_steps(
    x: Float[Tensor, "*b n d_model"],
    w_query: Float[Tensor, "d_model d_k"],
    w_key: Float[Tensor, "d_model d_k"],
    w_value: Float[Tensor, "d_model d_v"],
    *,
    weights: Float[Tensor, "*b n n"] | None = None,
) -> SevenSteps:
    """Every intermediate of self-attention over the rows of x: project, score, softmax, weigh, sum.

    Scores are plain dot products, without 1/sqrt(d), as in the worked example that it follows. `weights`
    replaces the softmax by a table of your own, which is how that example rounds by hand.
    Raises ValueError where a matrix does not fit x, or `weights` is not (n, n).
    Source: Karim 2019, "Illustrated: Self-Attention", a worked example in seven steps.
    """
    for name, w in {"w_query": w_query, "w_key": w_key, "w_value": w_value}.items():
        if w.shape[-2] != x.shape[-1]:
            raise ValueError(
                f"{name} has {w.shape[-2]} rows, but the inputs have width {x.shape[-1]}; x @ {name} needs "
                f"{x.shape[-1]} rows (a matrix for columns, as in W x, must be transposed first)"
            )
    keys, queries, values = x @ w_key, x @ w_query, x @ w_value
    scores = dot(queries, keys)
    if weights is None:
        weights = attend(queries, keys, values, score=dot).weights
    elif weights.shape[-2:] != scores.shape[-2:]:
        raise ValueError(
            f"weights must have shape {tuple(scores.shape)}, one row per query, got {tuple(weights.shape)}"
        )
    weighted_values = weights[..., None] * values[..., None, :, :]
    return SevenSteps(x, keys, queries, values, scores, weights, weighted_values, weighted_values.sum(-2))


def in_pure_python(x: Rows, w_query: Rows, w_key: Rows, w_value: Rows) -> Rows:
    """The outputs of `seven_steps` computed with lists and `math.exp` alone: no library between you and the
    numbers.

    The largest score is subtracted before exp, since math.exp overflows from 709.79 on. Raises ValueError
    where the rows of a list differ in length or do not fit.

    >>> [[round(number, 4) for number in row] for row in in_pure_python(**EXAMPLE)]
    [[1.9366, 6.6831, 1.5951], [2.0, 7.964, 0.054], [1.9997, 7.7599, 0.3584]]
    """

    def product(rows: Rows, matrix: Rows, name: str) -> Rows:
        if any(len(row) != len(matrix) for row in rows) or any(len(row) != len(matrix[0]) for row in matrix):
            raise ValueError(f"{name} must have as many rows as an input has numbers, all of one length")
        return [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*matrix, strict=True)]
            for row in rows
        ]

    queries, keys, values = (
        product(x, w_query, "w_query"),
        product(x, w_key, "w_key"),
        product(x, w_value, "w_value"),
    )
    outputs = []
    for query in queries:
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
        powers = [math.exp(score - max(scores)) for score in scores]
        weights = [power / sum(powers) for power in powers]
        outputs.append(
            [sum(w * v for w, v in zip(weights, column, strict=True)) for column in zip(*values, strict=True)]
        )
    return outputs
