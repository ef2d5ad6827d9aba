"""The general kinds of picture: heat maps, curves, bars."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib.plots.picture import HEAT, MARKERS, STYLE, Picture, canvas, color

Names = Sequence[str] | None


def heatmap(
    tables: Tensor | Mapping[str, Tensor],
    *,
    alt: str,
    caption: str = "",
    rows: Names = None,
    columns: Names = None,
    row_axis: str = "queries",
    column_axis: str = "keys",
    numbers: bool | None = None,
    decimals: int = 2,
    limits: tuple[float, float] | None = None,
) -> Picture:
    """One heat map, or several side by side under their names; bright is large.

    `rows` and `columns` name the ticks. `numbers` writes each value into its cell (default: up to 64 cells a table);
    `limits` fixes the colours' range (default: each table's own). Raises ValueError for a table that has not two axes.
    """
    tables = {"": tables} if isinstance(tables, Tensor) else dict(tables)
    arrays = {name: _table(table, name) for name, table in tables.items()}
    ratio = max(a.shape[0] for a in arrays.values()) / max(a.shape[1] for a in arrays.values())
    each = min(3.2, 7.2 / len(arrays))
    figure, grid = canvas(1, len(arrays), width=each * len(arrays) + 0.6, height=min(4.5, each * ratio + 0.9))
    with rc_context(STYLE):
        for axes, (name, array) in zip(grid[0], arrays.items(), strict=True):
            low, high = limits or (array.min().item(), array.max().item())
            write = numbers if numbers is not None else array.numel() <= 64
            draw_table(axes, array, low=low, high=high, decimals=decimals if write else None)
            if name:
                axes.set_title(name)
            _ticks(axes.set_xticks, columns, array.shape[1])
            _ticks(axes.set_yticks, rows, array.shape[0])
            axes.set_xlabel(column_axis)
        grid[0][0].set_ylabel(row_axis)
    return Picture(figure, alt, caption)


def draw_table(axes: Axes, table: Tensor, *, low: float, high: float, decimals: int | None) -> None:
    """Draw a table into axes; `decimals=None` writes no numbers. Text is dark on bright cells, bright on dark ones."""
    axes.imshow(table.numpy(), cmap=HEAT, vmin=low, vmax=high if high > low else low + 1)
    axes.spines[:].set_visible(False)
    if decimals is None:
        return
    for i, row in enumerate(table.tolist()):
        for j, value in enumerate(row):
            share = (value - low) / (high - low) if high > low else 0.0
            text = f"{round(value, decimals) + 0.0:.{decimals}f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=9, color=ink(share))


def ink(share: float) -> str:
    """Black or white, whichever reads better on that share of the colour map."""
    red, green, blue, _ = colormaps[HEAT](min(1.0, max(0.0, share)))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def lines(
    panels: Mapping[str, Mapping[str, Sequence[Any]]],
    *,
    alt: str,
    caption: str = "",
    x_axis: str,
    log: str = "",
    y_limits: tuple[float, float] | None = None,
    height: float = 3.0,
    points: bool = True,
) -> Picture:
    """Curves in panels side by side: {panel title: {curve: (xs, ys)}} or (xs, lows, middles, highs) with a band.

    The panel's title is its y axis' name. `log` holds "x", "y" or both. Curves differ by colour, marker and dash.
    Raises ValueError where xs and ys differ in length.
    """
    width = min(8.0, 2.2 + 3.0 * len(panels))
    figure, grid = canvas(1, len(panels), width=width, height=height)
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    dashes = ["-", "--", "-.", ":"]
    with rc_context(STYLE):
        for axes, (title, curves) in zip(grid[0], panels.items(), strict=True):
            for name, (xs, *ys) in curves.items():
                if any(len(y) != len(xs) for y in ys):
                    raise ValueError(
                        f"curve {name!r} of panel {title!r} has {len(xs)} xs and {[len(y) for y in ys]} ys"
                    )
                i = names.index(name)
                marker = MARKERS[i % len(MARKERS)] if points else None
                style = {
                    "color": color(i),
                    "marker": marker,
                    "markersize": 4,
                    "linestyle": dashes[i % len(dashes)],
                }
                axes.plot(xs, ys[len(ys) // 2], label=name, **style)
                if len(ys) == 3:
                    axes.fill_between(xs, ys[0], ys[2], color=color(i), alpha=0.15, linewidth=0)
            if "x" in log:
                axes.set_xscale("log", base=2)
                xs = sorted({x for curve in curves.values() for x in curve[0]})
                axes.set_xticks(xs, [f"{x:g}" for x in xs])
                axes.minorticks_off()
            if "y" in log:
                axes.set_yscale("log")
            if y_limits:
                axes.set_ylim(y_limits)
            axes.set_title(title, loc="left")
            axes.set_xlabel(x_axis)
        if len(names) > 1:
            handles = {
                label: handle
                for axes in grid[0]
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            }
            each = 0.6 + 0.085 * max(map(len, handles))  # inches that the longest name takes in the legend
            columns = max(1, min(len(handles), int(width / each)))
            place = {"loc": "outside lower center", "ncols": columns, "frameon": False}
            figure.legend(handles.values(), handles.keys(), **place)
    return Picture(figure, alt, caption)


def bars(
    values: Mapping[str, float],
    *,
    alt: str,
    caption: str = "",
    y_axis: str,
    marks: Mapping[str, float] | None = None,
    limits: tuple[float, float] | None = None,
) -> Picture:
    """One bar per name, its value written on top; `marks` are named horizontal lines, e.g. chance."""
    figure, grid = canvas(width=min(7.5, 1.5 + 1.1 * len(values)), height=3.0)
    axes = grid[0][0]
    with rc_context(STYLE):
        drawn = axes.bar(
            list(values), list(values.values()), color=[color(i) for i in range(len(values))], width=0.6
        )
        axes.bar_label(drawn, fmt="%.2f", padding=2)
        for name, height in (marks or {}).items():
            axes.axhline(height, color="black", linestyle="--", linewidth=1)
            beside = {"xycoords": ("axes fraction", "data"), "xytext": (4, 0), "textcoords": "offset points"}
            axes.annotate(name, (1.0, height), **beside, ha="left", va="center", fontsize=9)
        axes.set_ylabel(y_axis)
        if limits:
            axes.set_ylim(limits)
    return Picture(figure, alt, caption)


def _table(table: Tensor, name: str) -> Tensor:
    if not isinstance(table, Tensor) or table.ndim != 2 or table.numel() == 0:
        got = tuple(table.shape) if isinstance(table, Tensor) else type(table).__name__
        raise ValueError(
            f"table {name!r} must be a tensor with two axes and at least one cell, got {got}; pick one head or sequence"
        )
    return table.detach().to("cpu", torch.float64)


def _ticks(set_ticks: Any, names: Names, count: int) -> None:
    if names is None:
        set_ticks(range(count) if count <= 12 else [])
        return
    if len(names) != count:
        raise ValueError(f"{count} ticks need {count} names, got {len(names)}: {list(names)}")
    set_ticks(range(count), names)
