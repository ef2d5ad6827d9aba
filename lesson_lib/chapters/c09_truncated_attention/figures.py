"""The figures of lesson 09: frames of speech and their phonemes, windows and blocks, what a table costs, how
far a frame must look."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c09_truncated_attention.speech_figures import (  # noqa: F401
    attention,
    segments,
    spoken,
    utterance,
)
from lesson_lib.chapters.c09_truncated_attention.window_figures import Piece, band, blocks, pieces  # noqa: F401
from lesson_lib.charts.marks import draw_shares, note
from lesson_lib.charts.picture import CURVES, MARKERS, Picture, canvas, color, figure, styled

Row = Mapping[str, Any]
DASHES = ["-", "--", "-.", ":"]
# of n, that each kind's memory grows with
POWERS = {
    "table": 2,
    "mask over the table": 2,
    "fused": 1,
    "window": 1,
}
TIMES = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h"}
LAYERS = {2: "two layers", 1: "one layer"}
COLUMNS = {"accuracy": "all frames", "accuracy_speech": "frames that are not silence"}
SEEDS = (
    "A mark for each seed, a line through their means. The axis has a step for each radius that was measured."
)


@figure(
    "Memory of one attention over the length of the speech, both axes logarithmic, a curve for each way"
    " to compute it, with a line at a laptop's memory.",
    "Marks were measured. Dashed: gone on as n² for tables, as n for the others. A cross: where a laptop"
    " is full.",
    width=7.4,
    height=4.2,
    title="memory at the peak",
    x="speech",
    legend=4,
)
def gib(axes: Axes, rows: Sequence[Row], *, laptop: float = 16.0, minutes: float = 60.0) -> None:
    """Rows of `experiments.lengths`, forward passes, the median of the repeats; `laptop` in GiB. Lines go on
    to `minutes` with the power of n that POWERS says."""
    curves = _curves(_forward(rows, False), "speech_s", "mib")
    end = 60.0 * minutes
    for name, (xs, _, medians, _) in curves.items():
        k, power = _kind(name), POWERS.get(name, 1)
        heights = [mib / 1024 for mib in medians]
        style = {"color": color(k), "marker": MARKERS[k], "markersize": 5}
        axes.plot(xs, heights, label=name, **style, markeredgecolor="black", markeredgewidth=0.4)
        last = heights[-1] * (end / xs[-1]) ** power
        axes.plot([xs[-1], end], [heights[-1], last], color=color(k), linestyle="--", linewidth=1)
        full = xs[-1] * (laptop / heights[-1]) ** (1 / power)
        if xs[-1] < full <= end:
            axes.plot([full], [laptop], "x", color="black", markersize=8, zorder=4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _time_axis(axes)
    axes.axhline(laptop, color="0.4", linewidth=1, zorder=0)
    axes.annotate(
        f"a laptop: {laptop:g} GiB", (0.01, laptop), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", fontsize=9, color="0.3",
    )  # fmt: skip
    axes.set_yticks(*_sizes(*axes.get_ylim()))
    axes.yaxis.minorticks_off()


@styled
def costs(rows: Sequence[Row], *, backward: bool = False, reach_s: float | None = None) -> Picture:
    """Rows of `experiments.lengths`; `reach_s` is how many seconds a frame must see."""
    rows = _forward(rows, backward)
    columns = {"cpu_s": "processor seconds", "mib": "MiB at the peak"}
    figure, grid = canvas(1, 2, width=8.0, height=4.0)
    for axes, (column, title) in zip(grid[0], columns.items(), strict=True):
        for name, (xs, lows, medians, highs) in _curves(rows, "speech_s", column).items():
            k = _kind(name)
            style = {"color": color(k), "marker": MARKERS[k], "markersize": 4, "linestyle": DASHES[k % 4]}
            axes.plot(xs, medians, label=name, markeredgecolor="black", markeredgewidth=0.4, **style)
            axes.fill_between(xs, lows, highs, color=color(k), alpha=0.15, linewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        if reach_s is not None:
            axes.axvline(reach_s, color="0.3", linestyle="--", linewidth=1, zorder=0)
            note(axes, f"accuracy\nneeds no more\nthan {reach_s:g} s", x=reach_s, shift=(3, -3), va="top")
        _time_axis(axes)
        axes.set_xlabel("speech")
        axes.set_title(title, loc="left")
    handles = grid[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False)
    return Picture(
        figure,
        "Seconds and memory of one attention over the length of the speech, two panels, all axes logarithmic,"
        " a curve for each way to compute it.",
        ("Forward and backward. " if backward else "Forward. ")
        + "Lines: the middle of the repeats; bands: lowest and highest. All axes are logarithmic.",
    )


@figure(
    "The share of frames whose phoneme is guessed rightly, over the radius of the window, full attention"
    " on the right, with a dot for each seed and a line at the smallest radius that is within one point"
    " of the best.",
    SEEDS,
)
def accuracy(rows: Sequence[Row], *, saturates: int | None, column: str = "accuracy") -> Figure:
    """Rows "point", "layer" and "guess" of `experiments.phonemes`; `saturates` as its function gives it,
    `column` a key of COLUMNS."""
    curves: dict[str, dict[int | None, list[float]]] = {}
    for row in _points(rows, "point") + [row for row in rows if row.get("kind") == "layer"]:
        name = LAYERS.get(row["n_layers"], f"{row['n_layers']} layers")
        curves.setdefault(name, {}).setdefault(row["radius"], []).append(row[column])
    figure, axes, radii = over_radius(curves)
    at = radii.index(saturates)
    axes.axvline(at, color="0.3", linestyle="--", linewidth=1, zorder=0)
    left = at < len(radii) - 2
    style = {"xycoords": ("data", "axes fraction"), "xytext": (4 if left else -4, 0)}
    style |= {"textcoords": "offset points", "ha": "left" if left else "right", "fontsize": 9}
    axes.annotate("smallest within one\npoint of the best", (at, 0.3), **style)
    for row in [row for row in rows if row.get("kind") == "guess"][:1]:
        axes.axhline(row[column], color="0.5", linewidth=1, zorder=0)
        note(axes, "guessing", y=row[column], shift=(-2, 3), color="0.35", ha="right")
    axes.set_title(f"share of {COLUMNS[column]} guessed rightly", loc="left")
    return figure


@figure(
    "The share of frames guessed rightly over the radius of the window, a curve for each kind of sound,"
    " with a dot for each seed.",
    SEEDS,
)
def by_kind(rows: Sequence[Row]) -> Figure:
    """Rows "point" of `experiments.phonemes`."""
    curves: dict[str, dict[int | None, list[float]]] = {}
    for row in _points(rows, "point"):
        for name, share in row["by_kind"].items():
            curves.setdefault(name, {}).setdefault(row["radius"], []).append(share)
    figure, axes, _ = over_radius(curves)
    axes.set_title("share of frames guessed rightly", loc="left")
    return figure


@figure(
    "The share of frames of the validation voice guessed rightly over the radius of the window, each"
    " training stopped where its loss had fallen to the same level, a curve for each level.",
    SEEDS + " Each network is asked at the first look at which its loss on training sentences was that low.",
)
def matched(levels: Mapping[str, Mapping[int | None, Sequence[float]]]) -> Figure:
    """{level: {radius: accuracies of the seeds}}, as `experiments.phonemes.matched` gives them."""
    figure, axes, _ = over_radius(levels)
    axes.set_title(
        "share of frames of the validation voice guessed rightly, at the same training loss", loc="left"
    )
    return figure


@figure(
    "A row for each number of layers, a cell for each input: the cells on which one output depends are"
    " coloured, and the more layers, the wider they reach; the others are hatched.",
    "Orange: the output that is asked. Hatched: exactly 0, no way leads there. Beside each row: the"
    " farthest inputs that still move it.",
)
def fields(moved: Mapping[int, Float[Tensor, " n"]], centre: int | None = None) -> Figure:
    """{layers: a number for each input}, such as a row of `measure.sensitivity`; `centre`, the output that is
    asked, is the middle if left out."""
    rows = {depth: row.detach().to("cpu", torch.float64) for depth, row in moved.items()}
    shares = {depth: row / row.max() for depth, row in rows.items()}
    n = len(next(iter(shares.values())))
    centre = n // 2 if centre is None else centre
    figure, grid = canvas(len(shares), 1, width=7.4, height=0.95 + 0.45 * len(shares), sharex=True)
    floor = max(1e-6, min(share[share > 0].min().item() for share in shares.values()))
    colors = LogNorm(min(floor, 0.1), 1.0)
    for axes, (depth, share) in zip(grid[:, 0], shares.items(), strict=True):
        image = draw_shares(axes, share[None], colors, aspect="auto", interpolation="nearest")
        seen = share.nonzero().flatten().tolist()
        axes.set_yticks([0], [f"{depth} layer{'s' if depth != 1 else ''}"])
        axes.plot([centre], [0], marker="v", color=CURVES[1], markersize=6, markeredgecolor="white")
        reach = f"{seen[0] - centre} … {seen[-1] - centre:+d}" if seen else "nothing"
        beside = {"xycoords": "axes fraction", "xytext": (8, 0), "textcoords": "offset points"}
        axes.annotate(reach.replace("-", "−"), (1.0, 0.5), **beside, va="center", fontsize=9.5)
        axes.tick_params(axis="x", bottom=axes is grid[-1, 0], labelbottom=axes is grid[-1, 0])
    grid[-1, 0].set_xlabel("input token")
    bar = figure.colorbar(image, ax=grid, label="gradient / largest", fraction=0.03, pad=0.14, shrink=0.9)
    bar.minorticks_off()
    return figure


def _points(rows: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in rows if row.get("kind") == kind]


@styled
def over_radius(
    curves: Mapping[str, Mapping[int | None, Sequence[float]]],
) -> tuple[Figure, Axes, list[int | None]]:
    """A canvas with {curve: {radius: values of the seeds}}, its axes, and the radii in their order, full the
    last."""
    radii = {radius for curve in curves.values() for radius, values in curve.items() if values}
    radii = sorted(radii, key=lambda radius: math.inf if radius is None else radius)
    figure, grid = canvas(width=7.0, height=3.8)
    axes = grid[0][0]
    for k, (name, curve) in enumerate(curves.items()):
        aside = 0.07 * (k - (len(curves) - 1) / 2)
        known = [(radii.index(r) + aside, curve[r]) for r in radii if curve.get(r)]
        xs = [x for x, _ in known]
        style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 5}
        line = {"color": color(k), "linestyle": DASHES[k % 4], "linewidth": 1.2}
        axes.plot(xs, [statistics.fmean(values) for _, values in known], **line)
        dots = [(x, value) for x, values in known for value in values]
        if dots:
            axes.plot(*zip(*dots, strict=True), **style, linestyle="none", alpha=0.75)
        axes.plot([], [], **style | line, label=name)
    axes.set_xticks(range(len(radii)), ["full" if radius is None else str(radius) for radius in radii])
    axes.set_xlabel("radius of the window, in frames of 10 ms")
    if len(curves) > 1:
        columns = len(curves) if sum(map(len, curves)) < 40 else 3
        figure.legend(loc="outside lower center", ncols=columns, frameon=False)
    return figure, axes, radii


def _forward(rows: Sequence[Row], backward: bool) -> list[Row]:
    """Rows of one kind of pass."""
    return [
        row for row in rows if {"kind", "speech_s"} <= row.keys() and row.get("backward", False) == backward
    ]


def _curves(rows: Sequence[Row], x: str, y: str) -> dict[str, tuple[list, list, list, list]]:
    """{kind: (xs, lowest, median, highest)}; rows of the same kind and x are repeats."""
    bands = summary.bands([row for row in rows if row.get(y) is not None], "kind", x, y)
    return {name: bands[name] for name in sorted(bands, key=_kind)}


def _kind(name: str) -> int:
    """The colour's number: the same for a kind in all pictures."""
    return list(POWERS).index(name) if name in POWERS else len(POWERS)


def _time_axis(axes: Axes) -> None:
    """Ticks of a logarithmic time axis, in the units that people use."""
    low, high = axes.get_xlim()
    ticks = {second: name for second, name in TIMES.items() if low <= second <= high}
    axes.set_xticks(list(ticks), ticks.values())
    axes.xaxis.minorticks_off()
    axes.set_xlim(low, high)


def _sizes(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks between two sizes in GiB, each with its unit."""
    names = {2.0**k: _size(k) for k in range(-30, 31, 5)}
    ticks = {size: name for size, name in names.items() if low <= size <= high}
    return list(ticks), list(ticks.values())


def _size(power: int) -> str:
    """2^power GiB in words.

    >>> _size(0), _size(-5), _size(15)
    ('1 GiB', '32 MiB', '32 TiB')
    """
    for unit, start in (("TiB", 10), ("GiB", 0), ("MiB", -10), ("KiB", -20)):
        if power >= start:
            return f"{2 ** (power - start)} {unit}"
    return f"{2 ** (power + 30)} B"
