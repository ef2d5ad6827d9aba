"""Small drawings side by side: the heads of a layer, the clocks of a position, a shift as a matrix."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lesson_lib.charts.basic import draw_table, ink
from lesson_lib.charts.picture import CURVES, Picture, bare, canvas, styled, trim


@styled
def heads(
    tables: Mapping[str, Tensor], *, alt: str, caption: str = "", rows: Sequence[str], columns: Sequence[str]
) -> Picture:
    """A map of weights per head, four in a row, all coloured from 0 to 1; `rows` and `columns` name queries
    and keys."""
    across = min(4, len(tables))
    down = math.ceil(len(tables) / across)
    figure, grid = canvas(down, across, width=1.9 * across + 0.6, height=2.3 * down + 0.4)
    few = max(len(rows), len(columns)) <= 12
    for axes in grid.flat[len(tables) :]:
        axes.set_axis_off()
    for axes, (title, table) in zip(grid.flat, tables.items(), strict=False):
        image = draw_table(axes, table, low=0.0, high=1.0, decimals=None)
        axes.set_title(title, fontsize=9)
        axes.set_xticks(range(len(columns)) if few else [], columns if few else None)
        axes.set_yticks(range(len(rows)) if few else [], rows if few else None)
        upright = max(map(len, columns)) > 2
        axes.tick_params(labelsize=9, length=0)
        axes.tick_params(axis="x", labelrotation=90 if upright else 0)
    for line in grid:
        line[0].set_ylabel("queries")
    for axes in grid.flat[max(0, len(tables) - across) : len(tables)]:
        axes.set_xlabel("keys")
    figure.colorbar(image, ax=grid, label="weight", fraction=0.04, shrink=0.8)
    figure.get_layout_engine().set(w_pad=0.08)  # the label stands at the edge
    trim(figure)
    return Picture(figure, alt, caption)


@styled
def clocks(
    hands: Mapping[str, tuple[float, float]], *, names: tuple[str, str], alt: str, caption: str = ""
) -> Picture:
    """A circle per frequency with two hands, at the two angles given (radians, counter-clockwise from the
    right), four in a row.

    A hand ends at the point (cos, sin) of its angle: sine upwards, cosine to the right.
    """
    across = min(4, len(hands))
    down = math.ceil(len(hands) / across)
    figure, grid = canvas(down, across, width=1.8 * across, height=2.3 * down + 0.5)
    around = torch.linspace(0, 2 * math.pi, 200, device="cpu")
    for axes in grid.flat[len(hands) :]:
        axes.set_axis_off()
    for axes, (title, angles) in zip(grid.flat, hands.items(), strict=False):
        axes.plot(around.cos(), around.sin(), color="0.6", linewidth=1)
        for angle, color, dash, marker in zip(angles, CURVES, ("-", "--"), "os", strict=False):
            axes.plot([0, math.cos(angle)], [0, math.sin(angle)], color=color, linestyle=dash, linewidth=2)
            axes.plot(math.cos(angle), math.sin(angle), color=color, marker=marker, markersize=6)
        bare(axes)
        axes.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
        axes.set_title(title, fontsize=9)
    handles = [
        figure.axes[0].plot([], [], color=c, linestyle=dash, marker=marker)[0]
        for c, dash, marker in zip(CURVES, ("-", "--"), "os", strict=False)
    ]
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return Picture(figure, alt, caption)


@styled
def shift(
    matrix: Tensor, columns: Mapping[str, Tensor], *, title: str, alt: str, caption: str = ""
) -> Picture:
    """A matrix of 2-by-2 blocks and the columns beside it, numbers from -1 to 1; outside the blocks it is
    pale."""
    d = len(matrix)
    block = torch.arange(d) // 2
    outside = block[:, None] != block
    ratios = {"width_ratios": [d] + [2] * len(columns)}
    width = 0.5 * (d + 2 * len(columns)) + 0.8
    figure, grid = canvas(1, 1 + len(columns), width=width, height=0.38 * d + 0.5, gridspec_kw=ratios)
    tables = {title: matrix.masked_fill(outside, torch.nan)} | {n: c[:, None] for n, c in columns.items()}
    for axes, (name, table) in zip(grid[0], tables.items(), strict=True):
        draw_table(axes, table, low=-1.0, high=1.0, decimals=None)
        axes.set_aspect("auto")
        axes.set_title(name)
        bare(axes)
        for r, row in enumerate(table.tolist()):
            for c, value in enumerate(row):
                text, tone = (
                    ("0", "0.5")
                    if math.isnan(value)
                    else (f"{round(value, 2) + 0.0:.2f}", ink((value + 1) / 2))
                )
                axes.text(c, r, text, ha="center", va="center", fontsize=9, color=tone)
    return Picture(figure, alt, caption)
