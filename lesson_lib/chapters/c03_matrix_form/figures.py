"""The figures of lesson 03, matrix form."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lesson_lib.charts.basic import bars, heatmap
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.matrices import equations, products
from lesson_lib.charts.picture import Picture


def loop_and_product(
    sizes: Sequence[int], seconds: Mapping[str, Sequence[float]], gpu: Gpu | None = None
) -> Picture:
    """Processor seconds of loop and product over the number of tokens, and a GPU's; `gpu` as `seconds_beside`
    takes it."""
    return seconds_beside(
        {name: (sizes, times) for name, times in seconds.items()},
        gpu,
        alt=(
            "Processor seconds of loop and product over the number of tokens, on log scales: the loop is"
            " slower by orders of magnitude."
        ),
        caption=(
            "Measured where this notebook was built. Each step to the right doubles the tokens; the loop's"
            " pairs quadruple."
        ),
        x_axis="tokens n",
    )


def to_scale(n: int, d_model: int, d_k: int, d_v: int) -> Picture:
    """The five products of self-attention and the softmax between them, tokens as rows, every matrix to one
    scale."""
    return products(
        list(equations("rows", n, d_model, d_k, d_v).values()),
        alt=(
            "Self-attention drawn to scale with tokens as rows: Q, K and V from X and a learned matrix each,"
            " A from Q and K transposed, A′ by softmax of each row of A, O from A′ and V."
        ),
        caption=(
            "Only the tables A and A′ have tokens on both sides. They are the ones that grow with the square"
            " of the length."
        ),
    )


def mirrored(rows: Tensor, columns: Tensor) -> Picture:
    """The same table of weights in the row and in the column convention."""
    return heatmap(
        {"rows: A′": rows, "columns: A′": columns},
        alt=(
            "The same table of weights twice: with tokens as rows each row sums to 1, with tokens as columns"
            " it is mirrored at the diagonal."
        ),
        caption=(
            "Left: row 0 holds the weights of query 0. Right: column 0 does. One is the mirror image of the"
            " other."
        ),
        limits=(0, 1),
        row_axis=("query", "key"),
        column_axis=("key", "query"),
        color_axis="weight",
    )


def with_and_without(shares: Mapping[str, float], marks: Mapping[str, float] | None = None) -> Picture:
    """Share of right answers of each kind of layer; `marks` are named shares to compare with, e.g. chance."""
    return bars(
        shares,
        alt=(
            "Share of right answers, middle of three seeds: the layer with learned projections is close to 1,"
            " the one without stays far below."
        ),
        caption=(
            "Three matrices learn a one-way relation that x · x cannot express. Live, middle of three seeds."
        ),
        y_axis="right answers",
        marks=marks,
        limits=(0, 1.1),
    )


def found_partners(before: Tensor, after: Tensor, place: Tensor) -> Picture:
    """Weights of one sequence before and after training, beside the partners' places (n,)."""
    return heatmap(
        {
            "before training": before,
            "after training": after,
            "who is whose partner": torch.eye(len(place))[place.cpu()],
        },
        numbers=False,
        limits=(0, 1),
        row_axis="place of the token\nthat asks",
        column_axis="place of the token\nthat is asked",
        color_axis="weight",
        alt=(
            "Weights of one sequence of eight tokens: spread out before training; after it one bright cell"
            " per row, in the places of the partners."
        ),
        caption=(
            "The weights were never shown to the layer. It found the partners because that is the only way to"
            " the payloads."
        ),
    )


def learned_relation(relation: Tensor, partner: Tensor) -> Picture:
    """Learned scores between symbols beside the secret partners (symbols,)."""
    return heatmap(
        {"learned: W_q W_kᵀ, symbols": relation, "secret: partner": torch.eye(len(partner))[partner]},
        numbers=False,
        row_axis="symbol that asks",
        column_axis="symbol that is asked",
        color_axis=("score", "1: partner"),
        alt=(
            "Left the learned table of scores between eight symbols, right the secret partners: the brightest"
            " cell of each row stands in the same place."
        ),
        caption=(
            "Left, what training wrote into two matrices. Right, the secret. The brightest cell of each row"
            " agrees."
        ),
    )
