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

from lesson_lib import summary
from lesson_lib.chapters.c11_efficient_attention.drawing import (
    DASHES,
    EMPTY,
    MUTED,
    legend_below,
)
from lesson_lib.chapters.c11_efficient_attention.keys_figures import (  # noqa: F401
    next_token,
    shared_heads,
)
from lesson_lib.chapters.c11_efficient_attention.machines_figures import (  # noqa: F401
    ring_memory,
    ring_rounds,
    tile_order,
    tiles,
)
from lesson_lib.charts.marks import doubling_ticks, note, plain_ticks
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
    """{pattern: mask}, four in a row."""
    across = min(4, len(masks)) if len(masks) not in (5, 6) else 3
    rows = math.ceil(len(masks) / across)
    figure, grid = canvas(rows, across, width=min(8.0, 0.6 + 2.4 * across), height=0.3 + 2.6 * rows)
    for axes in grid.flat[len(masks) :]:
        axes.set_axis_off()
    for axes, (name, mask) in zip(grid.flat, masks.items(), strict=False):
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
    """{name: singular values (n,)}; energy is the sum of their squares."""
    shares = {name: values.detach().to("cpu", torch.float64) for name, values in curves.items()}
    shares = {name: values.sort(descending=True).values / values.max() for name, values in shares.items()}
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
    """{name: [(size, errors of the draws), ...]}; `slope` adds a dashed line that rises with this power of
    the size.

    An error of exactly 0 stands on a line of its own at the bottom.
    """
    draws = {name: dict(curve) for name, curve in curves.items()}
    every = [y for curve in draws.values() for ys in curve.values() for y in ys]
    least = min([y for y in every if y > 0], default=1.0)
    zero = 10 ** (math.floor(math.log10(least)) - 0.6)
    figure, grid = canvas(width=7.0, height=4.2)
    axes = grid[0][0]
    axes.axhline(1.0, color="0.35", linestyle=":", linewidth=1.3, zorder=1)
    for k, (name, curve) in enumerate(draws.items()):
        xs, *band = summary.band(curve)
        lows, medians, highs = ([y or zero for y in ys] for ys in band)
        style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 5, "zorder": 3}
        axes.plot(xs, medians, label=name, linestyle=DASHES[k % 4], **style)
        axes.fill_between(xs, lows, highs, color=color(k), alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({x for curve in draws.values() for x in curve})
    if slope is not None:
        start = max(statistics.median(curve[min(curve)]) or zero for curve in draws.values())
        ends = [start, start * (sizes[-1] / sizes[0]) ** slope]
        text = {-0.5: f"like 1 / √{xlabel}", -1: f"like 1 / {xlabel}"}.get(slope, f"like {xlabel}^{slope:g}")
        axes.plot(
            [sizes[0], sizes[-1]], ends, color="0.45", dashes=(6, 3), linewidth=1.2, label=text, zorder=2
        )
    doubling_ticks(axes, sizes, binary=True)
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, 1.6))
    if 0 in every:
        axes.axhline(zero, color="0.8", linewidth=1, zorder=0)
        note(axes, "exactly 0", y=zero, va="center", color=MUTED)
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
    """{kind: {task: accuracies of the seeds}}; steps per second and MiB by kind."""
    tasks = list(next(iter(table.values())))
    biggest = max(mib[kind] for kind in table)
    spots = []
    for kind, by_task in table.items():
        seeds = [statistics.fmean(shares) for shares in zip(*(by_task[task] for task in tasks), strict=True)]
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
    plain_ticks(axes, min(xs) / 1.6, max(xs) * 1.6)
    axes.margins(y=0.25)
    _label(axes, spots)


@figure(
    "A panel for each task with the accuracies of each kind of attention, a mark for each seed, a bar at"
    " their mean, and a dotted line at the accuracy of guessing.",
    "A mark for each seed, an upright bar at their mean. Dotted: guessing.",
)
def arena_bars(table: Accuracies, guess: Mapping[str, float]) -> Figure:
    """{kind: {task: accuracies of the seeds}}, {task: accuracy of guessing}."""
    tasks = list(next(iter(table.values())))
    across = len(tasks) if len(tasks) <= 5 else math.ceil(len(tasks) / 2)
    rows = math.ceil(len(tasks) / across)
    tall = 0.9 + 0.34 * len(table)
    figure, grid = canvas(rows, across, width=min(8.0, 1.8 + 2.2 * across), height=tall * rows, sharey=True)
    for axes in grid.flat[len(tasks) :]:
        axes.set_axis_off()
    for axes, task in zip(grid.flat, tasks, strict=False):
        for y, (kind, by_task) in enumerate(table.items()):
            k = _kind(kind, table)
            aside = [0.34 * ((i + 0.5) / len(by_task[task]) - 0.5) for i in range(len(by_task[task]))]
            style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 5.5}
            axes.plot(
                by_task[task],
                [y + up for up in aside],
                linestyle="none",
                alpha=0.85,
                markeredgecolor="black",
                markeredgewidth=0.5,
                zorder=3,
                **style,
            )
            mean = statistics.fmean(by_task[task])
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
        _, _, side, box = min(tried)
        _beside(axes, spot, *side, arrowprops=LEADER)
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
