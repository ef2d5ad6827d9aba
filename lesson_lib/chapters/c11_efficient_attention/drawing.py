"""What several figures of chapter 11 are drawn with: pages, boxes, axes in powers of two."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from lesson_lib.charts.picture import CURVES, canvas

DASHES = ["-", "--", "-.", ":"]

PALE, EMPTY, IN_HAND, MUTED = "#CFE5F3", "#F1F1F1", CURVES[1], "0.35"


def blank_page(width: float, height: float) -> tuple[Any, Axes]:
    """A figure whose one axes count inches from the upper left corner."""
    figure, ((page,),) = canvas(width=width, height=height)
    figure.set_layout_engine("none")
    page.set_position([0, 0, 1, 1])
    page.set(xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    return figure, page


def rounded_box(
    page: Axes, corner: tuple[float, float], size: tuple[float, float], fill: str, edge: str, **style: Any
) -> None:
    shape = "round,pad=0,rounding_size=0.06"
    page.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, facecolor=fill, edgecolor=edge, **style))


def legend_below(figure: Any, axes: Axes, least: int = 2) -> None:
    """A legend below, of so many names or more, in as many columns as there is room for."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) >= least:
        inches = 0.75 + 0.087 * max(map(len, names))
        columns = max(1, min(len(names), int(figure.get_size_inches()[0] / inches)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)


def plain_axis(axes: Axes, low: float, high: float, which: str = "x") -> None:
    """Ticks 1, 2, 5, 10, 20 ... on a logarithmic axis, as plain numbers."""
    steps = [step * 10.0**k for k in range(-9, 12) for step in (1, 2, 5)]
    ticks = [step for step in steps if low <= step <= high]
    if len(ticks) > 8:
        ticks = [10.0**k for k in range(-9, 12) if low <= 10.0**k <= high]
    elif len(ticks) < 3:
        ticks = [
            step for k in range(-9, 12) for step in (i * 10.0**k for i in range(1, 10)) if low <= step <= high
        ]
    set_ticks, axis = (axes.set_xticks, axes.xaxis) if which == "x" else (axes.set_yticks, axes.yaxis)
    set_ticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    axis.minorticks_off()


def power_ticks(axes: Axes, sizes: Sequence[float]) -> None:
    """Ticks at the sizes where they are few, else at powers of two; large ones short."""
    ticks = list(sizes)
    if len(ticks) > 8:
        ks = range(math.ceil(math.log2(sizes[0])), math.floor(math.log2(sizes[-1])) + 1)
        ticks = [2.0**k for k in ks][:: math.ceil(len(ks) / 8)]
    axes.set_xticks(ticks, [_short(tick) for tick in ticks])
    axes.xaxis.minorticks_off()


def _short(size: float) -> str:
    """A number of tokens or features in few letters: binary thousands where they are whole.

    >>> _short(512), _short(131072), _short(2**20), _short(1000000)
    ('512', '128 Ki', '1 Mi', '1e+06')
    """
    for unit, name in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size / unit:g} {name}"
    return f"{size:g}"


def all_of(values: Mapping[str, Any], name: str, what: str) -> dict[str, Any]:
    if not isinstance(values, Mapping) or not values:
        got = "none" if isinstance(values, Mapping) else type(values).__name__
        raise ValueError(f"{name} must be a dict {{name: {what}}} with at least one entry, got {got}")
    return dict(values)
