"""The general kinds of picture: heat maps, curves, bars."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from lesson_lib.charts.marks import doubling_ticks, note
from lesson_lib.charts.picture import HEAT, MARKERS, Picture, canvas, color, styled, trim

Names = Sequence[str] | None
STEPS = [step * 10**k for k in range(9) for step in (2, 5, 10)]  # between the ticks of a long axis


@styled
def heatmap(
    tables: Tensor | Mapping[str, Tensor],
    *,
    alt: str,
    caption: str = "",
    rows: Names = None,
    columns: Names = None,
    row_axis: str | Sequence[str] = "queries",
    column_axis: str | Sequence[str] = "keys",
    color_axis: str | Sequence[str] = "value",
    numbers: bool | None = None,
    decimals: int = 2,
    limits: tuple[float, float] | None = None,
) -> Picture:
    """One heat map, or several side by side under their names; bright is large.

    `rows` and `columns` name the ticks. `numbers` writes each value into its cell (default: up to 64 cells a
    table); a table without numbers gets a colour bar, named `color_axis`. `limits` fixes the colours' range
    for all tables, which then share one bar (default: each table's own). An axis' name is one text for all
    tables, or a sequence with one per table.
    Raises ValueError for a table that has not two axes, and for too few or too many names.
    """
    tables = {"": tables} if isinstance(tables, Tensor) else dict(tables)
    arrays = {name: _table(table, name) for name, table in tables.items()}
    count = len(arrays)
    row_names = _per_table([row_axis] + [""] * (count - 1) if isinstance(row_axis, str) else row_axis, count)
    column_names, color_names = _per_table(column_axis, count), _per_table(color_axis, count)
    shapes = [array.shape for array in arrays.values()]
    # equal cells
    ratios = [columns for _, columns in shapes] if len({rows for rows, _ in shapes}) == 1 else None
    figure, grid = canvas(1, count, width=min(3.2 * count, 7.2) + 0.6, height=4.5, width_ratios=ratios)
    figure.get_layout_engine().set(wspace=0.04)
    unwritten = []
    for i, (axes, (name, array)) in enumerate(zip(grid[0], arrays.items(), strict=True)):
        low, high = limits or (array.min().item(), array.max().item())
        write = numbers if numbers is not None else array.numel() <= 64
        image = draw_table(axes, array, low=low, high=high, decimals=decimals if write else None)
        if not write:
            unwritten.append((image, axes, color_names[i]))
        if name:
            axes.set_title(name)
        _ticks(axes.set_xticks, columns, array.shape[1], every=2 if count > 2 and array.shape[1] > 8 else 1)
        _ticks(axes.set_yticks, rows, array.shape[0])
        axes.set_xlabel(column_names[i])
        axes.set_ylabel(row_names[i])
    for image, axes, label in unwritten[:1] if limits else unwritten:
        figure.colorbar(image, ax=grid[0][-1] if limits else axes, label=label, fraction=0.05)
    trim(figure)
    return Picture(figure, alt, caption)


def draw_table(axes: Axes, table: Tensor, *, low: float, high: float, decimals: int | None) -> AxesImage:
    """Draw a table into axes; `decimals=None` writes no numbers. Text is dark on bright cells, bright on dark
    ones."""
    image = axes.imshow(table.cpu().numpy(), cmap=HEAT, vmin=low, vmax=high if high > low else low + 1)
    axes.spines[:].set_visible(False)
    if decimals is None:
        return image
    for i, row in enumerate(table.tolist()):
        for j, value in enumerate(row):
            share = (value - low) / (high - low) if high > low else 0.0
            text = f"{round(value, decimals) + 0.0:.{decimals}f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=9, color=ink(share))
    return image


def ink(share: float) -> str:
    """Black or white, whichever has the larger contrast (WCAG 2) on that share of the colour map."""
    red, green, blue = (_linear(part) for part in colormaps[HEAT](min(1.0, max(0.0, share)))[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"


def _linear(part: float) -> float:
    """A channel of sRGB, from 0 to 1, as an amount of light."""
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


@styled
def lines(
    panels: Mapping[str, Mapping[str, Sequence[Any]]],
    *,
    alt: str,
    caption: str = "",
    x_axis: str,
    log: str = "",
    y_limits: tuple[float, float | None] | None = None,
    dots: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    height: float = 3.0,
    points: bool = True,
    known: Sequence[str] = (),
    levels: Mapping[str, float] | None = None,
) -> Picture:
    """Curves in panels side by side: {panel title: {curve: (xs, ys)}} or (xs, lows, medians, highs) with a
    band.

    The panel's title is its y axis' name. `log` holds "x", "y" or both; `y_limits` may leave the upper one
    open, as None. Curves differ by colour, marker and dash; `dots` are grey measurements in every panel,
    {name: (xs, ys)}, `levels` grey lines across. `known`: the curves of an earlier picture, so that a name
    keeps its colour.
    Raises ValueError where xs and ys differ in length.
    """
    width = min(8.0, 2.2 + 3.0 * len(panels))
    figure, grid = canvas(1, len(panels), width=width, height=height)
    names = list(dict.fromkeys([*known, *(name for curves in panels.values() for name in curves)]))
    dashes = ["-", "--", "-.", ":"]
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
        for name, (xs, ys) in (dots or {}).items():
            axes.scatter(xs, ys, s=12, color="0.6", label=name, zorder=1)
        for name, level in (levels or {}).items():
            axes.axhline(level, color="0.4", linestyle=":", linewidth=1.5, label=name, zorder=1)
        xs = sorted({x for curve in curves.values() for x in curve[0]})
        if all(x == int(x) for x in xs):
            axes.xaxis.get_major_locator().set_params(integer=True)
        if "x" in log:
            axes.set_xscale("log", base=2)
            doubling_ticks(axes, xs)
        if "y" in log:
            axes.set_yscale("log")
        if y_limits:
            axes.set_ylim(y_limits)
        axes.set_title(title, loc="left")
        axes.set_xlabel(x_axis)
    if len(names) > 1 or dots or levels:
        _legend(figure, grid[0], width)
    return Picture(figure, alt, caption)


def _legend(figure: Figure, panels: Iterable[Axes], width: float) -> None:
    """One legend below all panels, each name once, in as many columns as fit into the width, in inches."""
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    inches = [0.6 + 0.085 * len(name) for name in handles]  # that each name takes
    columns = len(handles) if sum(inches) <= width else max(1, int(width / max(inches)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False)


@styled
def bars(
    values: Mapping[str, float],
    *,
    alt: str,
    caption: str = "",
    y_axis: str,
    marks: Mapping[str, float] | None = None,
    limits: tuple[float, float] | None = None,
    kinds: int | None = None,
) -> Picture:
    """One bar per name, its value written on top; `marks` are named horizontal lines, e.g. chance.

    Every bar has a colour of its own, or with `kinds` the bars take turns in that many colours.
    """
    figure, grid = canvas(width=min(7.5, 1.5 + 1.1 * len(values)), height=3.0)
    axes = grid[0][0]
    drawn = axes.bar(
        list(values),
        list(values.values()),
        color=[color(i % (kinds or len(values))) for i in range(len(values))],
        width=0.6,
    )
    axes.bar_label(drawn, fmt="%.2f", padding=3, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    for name, height in (marks or {}).items():
        axes.axhline(height, color="black", linestyle="--", linewidth=1)
        note(axes, name, y=height, ha="left", va="center")
    axes.set_ylabel(y_axis)
    if limits:
        axes.set_ylim(limits)
    return Picture(figure, alt, caption)


def draw_groups(
    axes: Axes, groups: Mapping[str, Sequence[float]], *, apart: float = 0.4, width: float = 0.36
) -> list[Any]:
    """Draw bars side by side, {label: heights}, round 0, 1, ...; gives what is drawn of each label."""
    return [
        axes.bar(
            [i + apart * (k - (len(groups) - 1) / 2) for i in range(len(heights))],
            heights,
            width=width,
            color=color(k),
            hatch=("", "//", "..")[k],
            label=label,
        )
        for k, (label, heights) in enumerate(groups.items())
    ]


def _table(table: Tensor, name: str) -> Tensor:
    if not isinstance(table, Tensor) or table.ndim != 2 or table.numel() == 0:
        got = tuple(table.shape) if isinstance(table, Tensor) else type(table).__name__
        raise ValueError(
            f"table {name!r} must be a tensor with two axes and at least one cell, got {got}; pick one head"
            " or sequence"
        )
    return table.detach().to("cpu", torch.float64)


def _per_table(names: str | Sequence[str], count: int) -> list[str]:
    names = [names] * count if isinstance(names, str) else list(names)
    if len(names) != count:
        raise ValueError(f"{count} tables need one name or {count} names per axis, got {len(names)}: {names}")
    return names


def _ticks(set_ticks: Any, names: Names, count: int, every: int = 1) -> None:
    if names is None:
        set_ticks(range(0, count, every if count <= 12 else next(s for s in STEPS if count / s <= 8)))
        return
    if len(names) != count:
        raise ValueError(f"{count} ticks need {count} names, got {len(names)}: {list(names)}")
    set_ticks(range(count), names)
