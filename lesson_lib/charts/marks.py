"""What many figures have around what they draw: ticks, notes beside the frame, a line for exactly 0."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from torch import Tensor, nan

from lesson_lib.charts.picture import HEAT

MOST = 8  # ticks of an axis


def note(
    axes: Axes, text: str, *, x: float | None = None, y: float | None = None,
    shift: tuple[float, float] = (4, 0), **style: Any,
) -> None:  # fmt: skip
    """Write beside the frame: on its right at the height `y`, or on its top at `x`; `shift` is in points."""
    at, units = ((1.0, y), ("axes fraction", "data")) if x is None else ((x, 1.0), ("data", "axes fraction"))
    style = {"fontsize": 9, "textcoords": "offset points"} | style
    axes.annotate(text, at, xycoords=units, xytext=shift, **style)


def doubling_ticks(axes: Axes, xs: Sequence[float], *, binary: bool = False) -> None:
    """Ticks at the xs, in their order, where they are few, else at powers of two; `binary` writes 1024 as
    1 Ki."""
    ticks = list(xs)
    if len(ticks) > MOST:
        ticks = [2**k for k in range(64) if xs[0] <= 2**k <= xs[-1]]
    axes.set_xticks(ticks, [_binary(tick) if binary else f"{tick:g}" for tick in ticks])
    axes.xaxis.minorticks_off()


def _binary(size: float) -> str:
    """A number in few letters: binary thousands where they are whole.

    >>> _binary(512), _binary(131072), _binary(2**20), _binary(1000000)
    ('512', '128 Ki', '1 Mi', '1e+06')
    """
    for unit, name in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size / unit:g} {name}"
    return f"{size:g}"


def plain_ticks(axes: Axes, low: float, high: float, which: str = "x") -> None:
    """Ticks 1, 2, 5, 10, 20 ... between two ends of a logarithmic axis, as plain numbers; powers of ten where
    these are many, 1, 2, 3, 4 ... where they are few."""

    def between(*steps: int) -> list[float]:
        return [tick for k in range(-9, 12) for step in steps if low <= (tick := step * 10.0**k) <= high]

    ticks = between(1, 2, 5)
    if len(ticks) > MOST:
        ticks = between(1)
    elif len(ticks) < 3:
        ticks = between(*range(1, 10))
    axis, set_ticks = getattr(axes, f"{which}axis"), getattr(axes, f"set_{which}ticks")
    set_ticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    axis.minorticks_off()


def logarithmic_with_zero(axes: Axes, values: Sequence[float]) -> float:
    """Make the y axis logarithmic, with room for all values, and give the height at which an exact 0 is to be
    drawn: a line of its own, below the axis' smallest number."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    every = next(step for step in (1, 2, 5, 10, 20, 50) if (high - low) / step <= MOST)
    low, high = every * (low // every), every * max(-(-high // every), low // every + 1)
    span = high - low
    ticks = {10.0**k: f"$10^{{{k}}}$" for k in range(low, high + 1, every)}
    zero = 10.0 ** (low - 0.1 * span)
    axes.set_yscale("log")
    axes.set_ylim(10.0 ** (low - (0.14 if 0 in values else 0.03) * span), 10.0 ** (high + 0.03 * span))
    if 0 in values:
        axes.axhline(zero, color="0.8", linewidth=1, zorder=0)
        ticks[zero] = "exactly 0"
    axes.set_yticks(list(ticks), ticks.values())
    axes.yaxis.minorticks_off()
    return zero


def draw_shares(axes: Axes, shares: Tensor, colors: Normalize, **options: Any) -> AxesImage:
    """Draw a table (rows, columns) on the CPU; where a share is exactly 0 the ground is white with
    hatching."""
    rows, columns = shares.shape
    ground = {"facecolor": "white", "edgecolor": "0.75", "linewidth": 0, "hatch": "////"}
    axes.add_patch(Rectangle((-0.5, -0.5), columns, rows, zorder=-1, **ground))
    axes.spines[:].set(visible=True, color="0.6")
    cells = shares.masked_fill(shares == 0, nan).cpu().numpy()
    transparent = colormaps[HEAT].with_extremes(bad=(1, 1, 1, 0))
    return axes.imshow(cells, norm=colors, cmap=transparent, **options)
