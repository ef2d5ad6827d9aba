"""The figures of chapter 03, matrix form."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import bars, draw_table, heatmap
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.picture import Picture, canvas, figure


def loop_and_product(
    sizes: Sequence[int], seconds: Mapping[str, Sequence[float]], gpu: Gpu | None = None
) -> Picture:
    """{name: seconds for each size}; `gpu` as `seconds_beside` takes it."""
    return seconds_beside(
        {name: (sizes, times) for name, times in seconds.items()},
        gpu,
        alt=(
            "Processor seconds of loop and product over the number of tokens, on log scales: the loop is"
            " slower by orders of magnitude."
        ),
        caption=(
            "Processor seconds: measured where this notebook was built. Each step to the right doubles the"
            " tokens; the loop's pairs quadruple."
        ),
        x_axis="tokens n",
    )


def mirrored(rows: Tensor, columns: Tensor) -> Picture:
    """Weights (n, n), the second its transpose."""
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


@figure(
    "Eight rows of sixteen cells. In each row two cells are bright: one of the left eight, for the"
    " guest, and one of the right eight, for the card.",
    width=5.6,
    height=2.9,
    y="place in the list",
)
def tokens(axes: Axes, party: Tensor) -> None:
    """One party (8, 16)."""
    draw_table(axes, party, low=0, high=1, decimals=None)
    half = party.shape[1] // 2
    axes.axvline(half - 0.5, color="white", linewidth=2)
    axes.set_xticks(range(2 * half), [*range(half), *range(half)])
    axes.set_yticks(range(len(party)))
    axes.set_xlabel(f"which guest{' ' * 39}which card")


def with_and_without(shares: Mapping[str, float], marks: Mapping[str, float] | None = None) -> Picture:
    """{kind of layer: share}; `marks` are named shares to compare with."""
    return bars(
        shares,
        alt=(
            "Share of right answers: the layer with learned queries and keys is close to 1, the one without"
            " stays below the dashed line for the commonest card."
        ),
        caption="Right answers at 500 parties that the layers have not seen.",
        y_axis="right answers",
        marks=marks,
        limits=(0, 1.1),
    )


def found_partners(before: Tensor, after: Tensor, where: Tensor) -> Picture:
    """Weights (n, n), and where the partners stand (n,)."""
    return heatmap(
        {
            "before training": before,
            "after training": after,
            "whose partner is where": torch.eye(len(where))[where.cpu()],
        },
        numbers=False,
        limits=(0, 1),
        row_axis="place of the guest\nwho asks",
        column_axis="place of the guest\nwho is asked",
        color_axis="weight",
        alt=(
            "Weights of one party of eight guests: spread out before training; after it one bright cell"
            " per row, in the places of the partners."
        ),
    )


@figure(
    "Left the learned table of 16 by 16 in four blocks: only the block guest by guest, top left, has"
    " bright cells, one per row. Right the secret partners of eight guests: the same places are"
    " bright.",
    "Left, the product of two trained matrices. Right, the secret, never shown in training.",
)
def learned_relation(table: Tensor, partner: Tensor) -> Figure:
    """M = W_q W_kᵀ (16, 16), and the secret (8,)."""
    figure, grid = canvas(1, 2, width=7.6, height=4.2, width_ratios=[3, 2])
    left, right = grid[0]
    n, table = len(partner), table.detach().cpu()
    image = draw_table(left, table, low=table.min().item(), high=table.max().item(), decimals=None)
    left.axvline(n - 0.5, color="white", linewidth=2)
    left.axhline(n - 0.5, color="white", linewidth=2)
    names = [*range(n), *range(len(table) - n)]
    left.set(title="learned: M", xticks=range(len(table)), yticks=range(len(table)))
    left.set_xticklabels(names, fontsize=9)
    left.set_yticklabels(names, fontsize=9)
    left.set_xlabel("asked:  guest  |  card")
    left.set_ylabel("asks:  card  |  guest")
    figure.colorbar(image, ax=left, label="part of the score", fraction=0.05)
    draw_table(right, torch.eye(n)[partner], low=0, high=1, decimals=None)
    right.set(title="the secret", xticks=range(n), yticks=range(n))
    right.set_xlabel("partner")
    right.set_ylabel("guest")
    return figure


def who_may_look(masks: Mapping[str, Tensor]) -> Picture:
    """Masks (n, n) by name."""
    return heatmap(
        {name: mask.float() for name, mask in masks.items()},
        numbers=False,
        limits=(0, 1),
        row_axis="word that asks",
        column_axis="word that is asked",
        color_axis="may look",
        alt=(
            "Masks of three sentences of five places, bright where a word may look: a triangle each; where a"
            " sentence is shorter, its first columns and rows are dark."
        ),
        caption="Bright: may look.",
    )


def one_by_one(shares: Mapping[str, float]) -> Picture:
    """{guests: share}."""
    return bars(
        shares,
        alt=(
            "Share of right answers when guests come one by one: all right where the partner has come, about"
            " one in eight where not, somewhat more than half together."
        ),
        caption="The same trained matrices, with the causal mask.",
        y_axis="right answers",
        marks={"chance": 1 / 8},
        limits=(0, 1.1),
    )
