"""The figures of lesson 11: the family of cheaper attentions, what each one leaves out, how wrong it is, what
it costs, and the ring of processes."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.chapters.c11_efficient_attention.drawing import (
    DASHES,
    EMPTY,
    MUTED,
    all_of,
    legend_below,
    plain_axis,
    power_ticks,
)
from lesson_lib.chapters.c11_efficient_attention.keys_figures import (  # noqa: F401
    cache_growth,
    next_token,
    shared_bits,
    shared_heads,
)
from lesson_lib.chapters.c11_efficient_attention.machines_figures import (  # noqa: F401
    ring_memory,
    ring_rounds,
    tile_order,
    tiles,
)
from lesson_lib.charts.picture import CURVES, MARKERS, Picture, canvas, color, figure, styled, trim

Draws = Sequence[tuple[float, Sequence[float]]]
Box = Sequence[float] | numpy.ndarray
Accuracies = Mapping[str, Mapping[str, Sequence[float]]]
KINDS = ("full", "window", "linear", "low rank", "random features")  # a colour each, the same in all pictures
ENERGY = 0.9  # of the sum of squares
FLOOR = 1e-12  # of the largest singular value: what lies below is rounding
LEADER = {"arrowstyle": "-", "color": "0.4", "linewidth": 0.8, "shrinkA": 1, "shrinkB": 0}


class Spot(NamedTuple):
    """A circle in a plane: where, its bar's ends, its radius in points, and what is written beside it."""

    x: float
    y: float
    low: float
    high: float
    radius: float
    text: str


@figure(
    "Small tables of queries by keys, one for each pattern: dark cells are the pairs that may look;"
    " over each table stands its share of all pairs.",
    "Dark: the query of the row may look at the key of the column.",
)
def seen_patterns(masks: Mapping[str, Bool[Tensor, "n n"]]) -> Figure:
    """Masks as small tables, four in a row, a dark cell where the query may look at the key, and over each
    its share of all pairs.

    Raises ValueError for what is no boolean square, and for none or more than 12 of them.
    """
    some = all_of(masks, "masks", "mask")
    if len(some) > 12:
        raise ValueError(f"masks must be at most 12, so that cells can be seen, got {len(some)}")
    for name, mask in some.items():
        if (
            not isinstance(mask, Tensor)
            or mask.dtype != torch.bool
            or mask.ndim != 2
            or not mask.numel()
            or len(set(mask.shape)) > 1
        ):
            got = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
            raise ValueError(
                f"mask {name!r} must be a boolean table (n, n), got {got}; masks.window(n, radius) makes one"
            )
    across = min(4, len(some)) if len(some) not in (5, 6) else 3
    rows = math.ceil(len(some) / across)
    figure, grid = canvas(rows, across, width=min(8.0, 0.6 + 2.4 * across), height=0.3 + 2.6 * rows)
    for axes in grid.flat[len(some) :]:
        axes.set_axis_off()
    for axes, (name, mask) in zip(grid.flat, some.items(), strict=False):
        n = len(mask)
        colors = ListedColormap([EMPTY, CURVES[0]])
        axes.imshow(mask.cpu().numpy(), cmap=colors, vmin=0, vmax=1, interpolation="nearest")
        if n <= 32:
            for k in range(n + 1):
                axes.axhline(k - 0.5, color="white", linewidth=0.7)
                axes.axvline(k - 0.5, color="white", linewidth=0.7)
        axes.spines[:].set_visible(False)
        axes.set(xticks=[], yticks=[])
        share = 100 * mask.sum().item() / mask.numel()
        axes.set_title(f"{name}\n{share:.3g} % of the pairs", fontsize=10)
    for axes in grid[:, 0]:
        axes.set_ylabel("query")
    for axes in grid[-1]:
        axes.set_xlabel("key")
    trim(figure)
    return figure


@figure(
    "Singular values of tables of weights in falling order, each divided by its largest, on a logarithmic"
    " axis, a curve for each table with a mark where nine tenths of the energy are reached.",
    "A mark: up to here the squares sum to 90 % of all. The earlier it stands, the fewer mixtures of keys"
    " can write the table.",
    width=7.0,
    height=3.9,
    title="singular value / the largest one",
    x="number of the singular value",
)
def spectra(axes: Axes, curves: Mapping[str, Float[Tensor, " n"]]) -> None:
    """Singular values of tables of weights, each divided by its largest, over their number; a mark where 90 %
    of the energy is reached.

    Energy is the sum of squares. Raises ValueError for what are no singular values.
    """
    shares = {name: _falling(values, name) for name, values in all_of(curves, "curves", "values").items()}
    for k, (name, values) in enumerate(shares.items()):
        energy = values.square().cumsum(0)
        count = int((energy < ENERGY * energy[-1]).sum()) + 1
        style = {"color": color(k), "linestyle": DASHES[k % 4]}
        axes.plot(range(1, len(values) + 1), values.clamp(min=FLOOR).tolist(), linewidth=1.6, **style)
        mark = {"marker": MARKERS[k % len(MARKERS)], "markersize": 8, "markeredgecolor": "black"}
        axes.plot([count], [max(values[count - 1].item(), FLOOR)], **style, **mark)
        axes.plot([], [], **style, **mark, label=f"{name}: 90 % in the first {count}")
    axes.set_yscale("log")
    axes.set_xlim(0, max(map(len, shares.values())) + 1)
    legend_below(axes.figure, axes, least=1)


@styled
def errors(
    curves: Mapping[str, Draws], *, xlabel: str, ylabel: str = "relative error", slope: float | None = None
) -> Picture:
    """Errors of several draws over a size, both axes logarithmic, {name: [(size, errors), ...]}: a line
    through the middle, a band from lowest to highest.

    A dotted line stands at 1, where an answer of zeros would be; `slope` adds a dashed line that rises with
    this power of the size. An error of exactly 0 stands on a line of its own at the bottom.
    """
    found = {name: _draws(curve, name) for name, curve in curves.items()}
    every = [y for curve in found.values() for _, ys in curve for y in ys]
    least = min([y for y in every if y > 0], default=1.0)
    zero = 10 ** (math.floor(math.log10(least)) - 0.6)
    figure, grid = canvas(width=7.0, height=4.2)
    axes = grid[0][0]
    axes.axhline(1.0, color="0.35", linestyle=":", linewidth=1.3, zorder=1)
    for k, (name, curve) in enumerate(found.items()):
        xs = [x for x, _ in curve]
        lows, medians, highs = ([of(ys) or zero for _, ys in curve] for of in (min, statistics.median, max))
        style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 5, "zorder": 3}
        axes.plot(xs, medians, label=name, linestyle=DASHES[k % 4], **style)
        axes.fill_between(xs, lows, highs, color=color(k), alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({x for curve in found.values() for x, _ in curve})
    if slope is not None:
        start = max(statistics.median(curve[0][1]) or zero for curve in found.values())
        ends = [start, start * (sizes[-1] / sizes[0]) ** slope]
        text = {-0.5: f"like 1 / √{xlabel}", -1: f"like 1 / {xlabel}"}.get(slope, f"like {xlabel}^{slope:g}")
        axes.plot(
            [sizes[0], sizes[-1]], ends, color="0.45", dashes=(6, 3), linewidth=1.2, label=text, zorder=2
        )
    power_ticks(axes, sizes)
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, 1.6))
    if 0 in every:
        axes.axhline(zero, color="0.8", linewidth=1, zorder=0)
        beside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "xytext": (4, 0)}
        axes.annotate("exactly 0", (1.0, zero), va="center", fontsize=9, color=MUTED, **beside)
    beside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "xytext": (4, -4)}
    axes.annotate("1: as bad as zeros", (0.0, 1.0), va="top", fontsize=9, color=MUTED, **beside)
    axes.set_title(ylabel, loc="left")
    axes.set_xlabel(xlabel)
    legend_below(figure, axes)
    return Picture(
        figure,
        "Errors over a size, both axes logarithmic, a curve for each kind with a band round it, and a dotted"
        " line where the error is as large as that of an answer of zeros.",
        "Lines: the middle of the draws; bands: lowest and highest. Dotted: error 1, as bad as zeros."
        + (" Dashed: only a slope to compare with." if slope is not None else ""),
    )


@figure(
    "Kinds of attention as circles in a plane: across, training steps per second on a logarithmic axis;"
    " upwards, mean accuracy over the tasks; the area of a circle is the peak memory.",
    "To the right is faster, upwards is better, smaller is leaner. Upright bars: from the worst seed to"
    " the best, each a mean over the tasks. Area: memory.",
    width=7.6,
    height=4.8,
    title="mean accuracy over the tasks",
    x="training steps per second",
)
def arena_plane(
    axes: Axes, table: Accuracies, steps_per_s: Mapping[str, float], mib: Mapping[str, float]
) -> None:
    """The survey's plane: a circle for each kind, across its training steps per second, upwards its mean
    accuracy over the tasks, its area the peak memory.

    `table` are {kind: {task: accuracies of the seeds}}; a bar runs from the worst seed's mean over the tasks
    to the best one's.
    """
    tasks = list(next(iter(table.values())))
    biggest = max(mib[kind] for kind in table)
    spots = []
    for kind, found in table.items():
        seeds = [statistics.fmean(shares) for shares in zip(*(found[task] for task in tasks), strict=True)]
        x, y = steps_per_s[kind], statistics.fmean(seeds)
        k = _kind(kind, table)
        area = 2200 * mib[kind] / biggest  # square points
        axes.errorbar(
            [x], [y], [[y - min(seeds)], [max(seeds) - y]], color="black", capsize=3, linewidth=1.2, zorder=3
        )
        axes.scatter([x], [y], s=area, color=color(k), alpha=0.55, edgecolor="black", label=kind, zorder=2)
        axes.plot([x], [y], marker=".", color="black", markersize=4, zorder=4)
        spots.append(
            Spot(x, y, min(seeds), max(seeds), math.sqrt(area / math.pi), f"{kind}\n{mib[kind]:.3g} MiB")
        )
    axes.set_xscale("log")
    xs = [spot.x for spot in spots]
    axes.set_xlim(min(xs) / 1.6, max(xs) * 1.6)
    plain_axis(axes, min(xs) / 1.6, max(xs) * 1.6)
    axes.margins(y=0.25)
    _label(axes, spots)


@figure(
    "A panel for each task with the accuracies of each kind of attention, a mark for each seed, a bar at"
    " their mean, and a dotted line at the accuracy of guessing.",
    "A mark for each seed, an upright bar at their mean. Dotted: guessing.",
)
def arena_bars(table: Accuracies, guess: Mapping[str, float]) -> Figure:
    """Accuracies on each task, a panel each: a mark for each seed, a bar at their mean, and a dotted line
    where guessing ends.

    `table` are {kind: {task: accuracies of the seeds}}, `guess` {task: accuracy of guessing}.
    """
    tasks = list(next(iter(table.values())))
    across = len(tasks) if len(tasks) <= 5 else math.ceil(len(tasks) / 2)
    rows = math.ceil(len(tasks) / across)
    tall = 0.9 + 0.34 * len(table)
    figure, grid = canvas(rows, across, width=min(8.0, 1.8 + 2.2 * across), height=tall * rows, sharey=True)
    for axes in grid.flat[len(tasks) :]:
        axes.set_axis_off()
    for axes, task in zip(grid.flat, tasks, strict=False):
        for y, (kind, found) in enumerate(table.items()):
            k = _kind(kind, table)
            aside = [0.34 * ((i + 0.5) / len(found[task]) - 0.5) for i in range(len(found[task]))]
            style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 5.5}
            axes.plot(
                found[task],
                [y + up for up in aside],
                linestyle="none",
                alpha=0.85,
                markeredgecolor="black",
                markeredgewidth=0.5,
                zorder=3,
                **style,
            )
            mean = statistics.fmean(found[task])
            axes.plot([mean, mean], [y - 0.34, y + 0.34], color="black", linewidth=1.8, zorder=2)
        axes.axvline(guess[task], color="0.3", linestyle=":", linewidth=1.5, zorder=1)
        axes.set_xlim(-0.04, 1.04)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_xticks([0.25, 0.75], minor=True)
        axes.set_yticks(range(len(table)), list(table))
        axes.set_ylim(len(table) - 0.5, -0.5)
        axes.grid(axis="y", color="0.92")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.set_title(task, loc="left")
        axes.set_xlabel("accuracy")
    return figure


def _label(axes: Axes, spots: Sequence[Spot]) -> None:
    """Write each text beside its circle, where it meets the least of circles, bars, other texts and borders,
    with a line to the middle."""
    axes.figure.draw_without_rendering()
    scale, frame = axes.figure.dpi / 72, axes.get_window_extent().extents
    drawn = []
    for spot in spots:
        (x, low), (_, y), (_, high) = (
            axes.transData.transform((spot.x, up)) for up in (spot.low, spot.y, spot.high)
        )
        reach = spot.radius * scale
        drawn += [(x - reach, y - reach, x + reach, y + reach), (x - 4, low - 2, x + 4, high + 2)]
    sides = [(a, up) for a, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))]
    for spot in sorted(spots, key=lambda spot: -spot.x):
        tried = []
        for far in (0, 20, 45, 75, 110):
            for across, up in sides:
                label = _beside(axes, spot, across, up, far)
                box = label.get_window_extent().extents
                whole = (box[2] - box[0]) * (box[3] - box[1])
                meets = sum(_overlap(box, other) for other in drawn) + 3 * (whole - _overlap(box, frame))
                tried.append((meets + 3 * far, len(tried), (across, up, far), box))
                label.remove()
        _, _, place, box = min(tried)
        _beside(axes, spot, *place, arrowprops=LEADER)
        drawn.append(tuple(box))


def _beside(axes: Axes, spot: Spot, across: int, up: int, far: float, **style: Any) -> Any:
    """The text of a spot, so many points off its circle on that side."""
    reach = (spot.radius + 5 + far) * (0.72 if across and up else 1)
    label = axes.annotate(
        spot.text, (spot.x, spot.y), xytext=(across * reach, up * reach), textcoords="offset points",
        fontsize=9.5, linespacing=1.1,
        ha={1: "left", 0: "center", -1: "right"}[across], va={1: "bottom", 0: "center", -1: "top"}[up],
        zorder=5,
        **style,
    )  # fmt: skip
    label.set_in_layout(False)  # or the axes would shrink for it, and move what it stands beside
    return label


def _overlap(a: Box, b: Box) -> float:
    """Area that two boxes (left, low, right, high) have in common."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _kind(name: str, table: Mapping[str, Any]) -> int:
    """The number of a kind's colour: the same in all pictures for KINDS, and others behind them."""
    return (
        KINDS.index(name) if name in KINDS else len(KINDS) + [k for k in table if k not in KINDS].index(name)
    )


def _falling(values: Any, name: str) -> Tensor:
    """Singular values on the CPU in falling order, divided by the largest."""
    if not isinstance(values, Tensor) or values.ndim != 1 or not values.numel():
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(
            f"curve {name!r} must be one row of singular values, got {got}; take"
            " torch.linalg.svdvals(weights) of one head"
        )
    values = values.detach().to("cpu", torch.float64).sort(descending=True).values
    if not values.isfinite().all() or values[-1] < 0 or values[0] == 0:
        raise ValueError(f"curve {name!r} must hold singular values: finite, not negative and not all 0")
    return values / values[0]


def _draws(curve: Any, name: str) -> list[tuple[float, list[float]]]:
    """Points (size, errors) in the order of their sizes."""
    return sorted((size, list(errors)) for size, errors in curve)
