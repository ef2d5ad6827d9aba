"""The figures of chapter 03, matrix form."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import draw_table, heatmap
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
    "Eight rows of thirteen cells. In each row two cells are bright: one of the left eight, for the"
    " guest, and one of the right five, for the card.",
    width=5.6,
    height=3.2,
    y="position in the party",
)
def tokens(axes: Axes, party: Tensor, guests: int = 8) -> None:
    """One party (n, guests + cards)."""
    draw_table(axes, party, low=0, high=1, decimals=None)
    axes.axvline(guests - 0.5, color="white", linewidth=2)
    axes.set_xticks(range(party.shape[1]), [*range(guests), *range(party.shape[1] - guests)])
    axes.set_yticks(range(len(party)))
    axes.set_xlabel(f"which guest{' ' * 25}which card")


def found_partners(before: Tensor, after: Tensor, where: Tensor) -> Picture:
    """Weights (n, n), and where the partners stand (n,)."""
    return heatmap(
        {
            "before training": before,
            "after training": after,
            "where the partner stands": torch.eye(len(where))[where.cpu()],
        },
        numbers=False,
        limits=(0, 1),
        row_axis="query: position of a guest",
        column_axis="key: position",
        color_axis="weight",
        alt=(
            "Three tables of one party, eight by eight. Before training the weights are spread out. After"
            " training there is one bright cell in each row. The third table marks the partners' positions."
        ),
    )


@figure(
    "Left the learned table of 13 by 13 in four blocks: only the block guest with guest, top left, has"
    " bright cells, one in each row. Right the secret partners of the eight guests: the same cells are"
    " bright.",
)
def learned_relation(table: Tensor, partner: Tensor) -> Figure:
    """M = W_q W_kᵀ (13, 13), and the secret (8,)."""
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
    left.set_xlabel("key token:  guest  |  card")
    left.set_ylabel("query token:  card  |  guest")
    figure.colorbar(image, ax=left, label="entry of M", fraction=0.05)
    draw_table(right, torch.eye(n)[partner], low=0, high=1, decimals=None)
    right.set(title="the secret", xticks=range(n), yticks=range(n))
    right.set_xlabel("partner")
    right.set_ylabel("guest")
    return figure


def influence(tables: Mapping[str, Tensor]) -> Picture:
    """Tables (n, n) of how far output i moves when token j is replaced."""
    return heatmap(
        tables,
        decimals=1,
        row_axis="output",
        column_axis="replaced token",
        alt="Bright where an output moves far. " + " ".join(_told(*table) for table in tables.items()),
    )


def _told(name: str, table: Tensor) -> str:
    """Where a table of influences is 0."""
    upper = "some numbers are above 0" if table.triu(1).any() else "all is 0"
    hidden = [str(j) for j in range(len(table)) if not table[:, j].any()]
    columns = f"the columns of tokens {', '.join(hidden)} are 0" if hidden else "no column is 0 throughout"
    return f"{name}: above the diagonal {upper}; {columns}."
