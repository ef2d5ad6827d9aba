"""What several figures of chapter 08 are drawn with."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

Row = Mapping[str, Any]


def logarithmic_axis(axes: Axes, values: Sequence[float]) -> float:
    """Make the y axis logarithmic, with room for all values, and give the height at which an exact 0 is to be
    drawn."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    every = next(step for step in (1, 2, 5, 10, 20, 50) if (high - low) / step <= 8)
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
