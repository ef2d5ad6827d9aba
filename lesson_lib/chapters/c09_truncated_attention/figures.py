"""The figures of lesson 09: frames of speech and their phonemes, windows and blocks, what a table costs, how
far a frame must look."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from lesson_lib import require, summary
from lesson_lib.chapters.c09_truncated_attention.speech_figures import (  # noqa: F401
    attention,
    checked_frames,
    segments,
    spoken,
    utterance,
)
from lesson_lib.chapters.c09_truncated_attention.window_figures import Piece, band, blocks, pieces  # noqa: F401
from lesson_lib.charts.basic import ink
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.picture import CURVES, HEAT, MARKERS, Picture, canvas, color, figure, styled

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
    """Memory of one attention over minutes of speech, both axes logarithmic, with a line at a laptop's
    memory.

    `rows` are those of `experiments.lengths`, forward passes; marks were measured (the middle of the
    repeats), dashed lines go on to `minutes` with the power of n that theory says, and a cross where they
    reach `laptop` GiB.
    """
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
    """Seconds and MiB of one attention over seconds of speech, a panel each, both axes logarithmic; a curve
    for each way to compute it.

    `rows` are those of `experiments.lengths`; repeats become a band from the lowest to the highest. `reach_s`
    is how many seconds of speech a frame must see, so that accuracy rises no more: a dashed line, behind
    which a longer reach buys nothing.
    """
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
            beside = {"xytext": (3, -3), "textcoords": "offset points", "va": "top"}
            text = f"accuracy\nneeds no more\nthan {reach_s:g} s"
            axes.annotate(text, (reach_s, 1), xycoords=("data", "axes fraction"), fontsize=9, **beside)
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


def live_seconds(
    frames: Sequence[int], seconds: Mapping[str, Sequence[float]], gpu: Gpu | None = None
) -> Picture:
    """Processor seconds of all pairs and of the window over the number of frames, and a GPU's; `gpu` as
    `seconds_beside` takes it."""
    return seconds_beside(
        {kind: (frames, taken) for kind, taken in seconds.items()},
        gpu,
        alt=(
            "Seconds of the fused kernel and of attention in a window over the number of frames, both axes"
            " logarithmic, a curve for each."
        ),
        caption=(
            "Forward, one thread, measured on this machine. Both axes are logarithmic: a power of n is a"
            " straight line."
        ),
        x_axis="frames n",
    )


@figure(
    "The share of frames whose phoneme is guessed rightly, over the radius of the window, full attention"
    " on the right, with a dot for each seed and a line at the smallest radius that is within one point"
    " of the best.",
    SEEDS,
)
def accuracy(rows: Sequence[Row], *, saturates: int | None, column: str = "accuracy") -> Figure:
    """Accuracy on test frames over the radius, a dot for each seed, a curve for each number of layers; full
    attention stands on the right.

    `rows` are those of `experiments.phonemes`, of which "point", "layer" and "guess" are drawn; `column` is
    "accuracy" (all frames) or "accuracy_speech". A dashed line marks the radius `saturates`, as
    `experiments.phonemes.saturates` gives it. Raises ValueError for another column, where there are no rows,
    and where no row has that radius.
    """
    require.one_of(COLUMNS, column=column)
    curves: dict[str, dict[int | None, list[float]]] = {}
    for row in _points(rows, "point") + [row for row in rows if row.get("kind") == "layer"]:
        name = LAYERS.get(row["n_layers"], f"{row['n_layers']} layers")
        curves.setdefault(name, {}).setdefault(row["radius"], []).append(row[column])
    figure, axes, radii = over_radius(curves)
    at = radii.index(saturates)
    axes.axvline(at, color="0.3", linestyle="--", linewidth=1, zorder=0)
    left = at < len(radii) - 2
    place = {"xycoords": ("data", "axes fraction"), "xytext": (4 if left else -4, 0)}
    place |= {"textcoords": "offset points", "ha": "left" if left else "right", "fontsize": 9}
    axes.annotate("smallest within one\npoint of the best", (at, 0.3), **place)
    for row in [row for row in rows if row.get("kind") == "guess"][:1]:
        axes.axhline(row[column], color="0.5", linewidth=1, zorder=0)
        beside = {"xycoords": ("axes fraction", "data"), "xytext": (-2, 3), "textcoords": "offset points"}
        axes.annotate("guessing", (1.0, row[column]), **beside, fontsize=9, color="0.35", ha="right")
    axes.set_title(f"share of {COLUMNS[column]} guessed rightly", loc="left")
    return figure


@figure(
    "The share of frames guessed rightly over the radius of the window, a curve for each kind of sound,"
    " with a dot for each seed.",
    SEEDS,
)
def by_kind(rows: Sequence[Row]) -> Figure:
    """Accuracy over the radius for each kind of sound, a dot for each seed: who needs a neighbourhood, and
    who does not.

    `rows` are those of `experiments.phonemes`, of which "point" is drawn.
    """
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
def matched(found: Mapping[str, Mapping[int | None, Sequence[float]]]) -> Figure:
    """Accuracy over the radius where all have learnt their sentences equally well: {name of the level:
    {radius: the seeds' accuracies}}.

    `experiments.phonemes.matched` gives what belongs to a level. A radius that never came so far has no dot.
    """
    figure, axes, _ = over_radius(found)
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
    """Receptive field over depth: how strongly the output at `centre` depends on each input, a row for each
    number of layers.

    `moved` are {layers: a number for each input}, such as a row of `measure.sensitivity`. Exactly 0 is
    hatched: no way leads there; how far the rest reaches is written beside each row. `centre` is the middle
    if left out. Raises ValueError where rows differ in length or hold what is no norm.
    """
    shares = {depth: _shares(row, depth) for depth, row in dict(moved).items()}
    if len(sizes := {len(share) for share in shares.values()}) != 1:
        raise ValueError(f"all rows must have the same number of inputs, got {sorted(sizes)}")
    n = sizes.pop()
    centre = n // 2 if centre is None else centre
    figure, grid = canvas(len(shares), 1, width=7.4, height=0.95 + 0.45 * len(shares), sharex=True)
    floor = max(1e-6, min(share[share > 0].min().item() for share in shares.values()))
    colors = LogNorm(min(floor, 0.1), 1.0)
    for axes, (depth, share) in zip(grid[:, 0], shares.items(), strict=True):
        ground = {"facecolor": "white", "edgecolor": "0.75", "linewidth": 0, "hatch": "////"}
        axes.add_patch(Rectangle((-0.5, -0.5), n, 1, zorder=-1, **ground))
        cells = share.masked_fill(share == 0, torch.nan)[None].cpu().numpy()
        transparent = colormaps[HEAT].with_extremes(bad=(1, 1, 1, 0))
        image = axes.imshow(cells, norm=colors, cmap=transparent, aspect="auto", interpolation="nearest")
        seen = share.nonzero().flatten().tolist()
        axes.set_yticks([0], [f"{depth} layer{'s' if depth != 1 else ''}"])
        axes.spines[:].set(visible=True, color="0.6")
        axes.plot([centre], [0], marker="v", color=CURVES[1], markersize=6, markeredgecolor="white")
        reach = f"{seen[0] - centre} … {seen[-1] - centre:+d}" if seen else "nothing"
        beside = {"xycoords": "axes fraction", "xytext": (8, 0), "textcoords": "offset points"}
        axes.annotate(reach.replace("-", "−"), (1.0, 0.5), **beside, va="center", fontsize=9.5)
        axes.tick_params(axis="x", bottom=axes is grid[-1, 0], labelbottom=axes is grid[-1, 0])
    grid[-1, 0].set_xlabel("input token")
    place = {"fraction": 0.03, "pad": 0.14, "shrink": 0.9}
    figure.colorbar(image, ax=grid, label="gradient / largest", **place).minorticks_off()
    return figure


@figure(
    "A table of accuracies, a row for each number of layers and radius, a column for each distance of the"
    " symbol; in each row a line stands where the reach ends.",
    "The middle of the seeds; guessing gives 0.12, grey was not trained. Orange: the reach ends. A star:"
    " the gradient at the symbol is exactly 0, before training and after, for all seeds.",
)
def beyond(rows: Sequence[Row], kind: str = "point") -> Figure:
    """Recall with a window: a table of accuracies, a row for each radius and number of layers, a column for
    each distance of the symbol.

    `rows` are those of `experiments.beyond`, of which `kind` ("point" or "plain") and "full" are drawn; each
    cell holds the middle of the seeds. A line cuts each row where radius times layers ends: behind it the
    symbol is out of reach. A star marks cells in which the gradient at the symbol is exactly 0 for all seeds,
    before training and after.
    """
    found: dict[tuple, dict[int, list[Row]]] = {}
    for row in rows:
        if row.get("kind") in (kind, "full"):
            far = math.inf if row["radius"] is None else row["radius"] * row["layers"]
            net = (far, row["layers"], row["radius"] or 0)
            found.setdefault(net, {}).setdefault(row["distance"], []).append(row)
    distances = sorted({distance for cells in found.values() for distance in cells})
    figure, grid = canvas(width=7.4, height=1.4 + 0.36 * len(found))
    axes, labels = grid[0][0], []
    for i, (net, cells) in enumerate(sorted(found.items())):
        reach, layers, radius = net
        labels.append(f"{layers} × {radius} = {reach}" if radius else f"{layers} × full")
        for j, distance in enumerate(distances):
            if distance in cells:
                _answer(axes, (j, i), cells[distance])
        if radius:
            cut = sum(distance <= reach for distance in distances)
            axes.plot([cut, cut], [i, i + 1], color=CURVES[1], linewidth=3.5, solid_capstyle="butt")
    axes.set(xlim=(-0.05, len(distances) + 0.05), ylim=(len(found) + 0.05, -0.05), facecolor="0.95")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks([j + 0.5 for j in range(len(distances))], [str(distance) for distance in distances])
    axes.set_yticks([i + 0.5 for i in range(len(found))], labels)
    axes.set_xlabel("distance of the symbol, in tokens")
    axes.set_ylabel("layers × radius = reach")
    return figure


def _points(rows: Sequence[Row], kind: str) -> list[Row]:
    found = [row for row in rows if row.get("kind") == kind]
    return found


@styled
def over_radius(
    curves: Mapping[str, Mapping[int | None, Sequence[float]]],
) -> tuple[Figure, Axes, list[int | None]]:
    """Dots over the radius, and a line through the means, for each curve {radius: seeds}; the axis has a step
    for each radius, full the last."""
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


def _answer(axes: Axes, corner: tuple[int, int], rows: Sequence[Row]) -> None:
    """A cell with the middle of the rows' accuracies, and a star where no gradient reaches the symbol in any
    of them."""
    share = statistics.median(row["accuracy"] for row in rows)
    silent = all(row["gradient"] == row["gradient_after"] == 0 for row in rows)
    (x, y), ground = corner, colormaps[HEAT](share)
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=ground, edgecolor="white"))
    place = {"ha": "center", "va": "center", "fontsize": 9, "color": ink(share)}
    axes.text(x + 0.5, y + 0.52, f"{share:.2f}" + (" *" if silent else ""), **place)


def _forward(rows: Sequence[Row], backward: bool) -> list[Row]:
    """Rows of one kind of pass."""
    found = [
        row for row in rows if {"kind", "speech_s"} <= row.keys() and row.get("backward", False) == backward
    ]
    return found


def _curves(rows: Sequence[Row], x: str, y: str) -> dict[str, tuple[list, list, list, list]]:
    """{kind: (xs, lowest, median, highest)}; rows of the same kind and x are repeats."""
    found = summary.bands([row for row in rows if row.get(y) is not None], "kind", x, y)
    return {name: found[name] for name in sorted(found, key=_kind)}


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


def _shares(row: Tensor, depth: int) -> Tensor:
    """A row on the CPU, divided by its maximum."""
    if not isinstance(row, Tensor) or row.ndim != 1 or not row.numel():
        got = tuple(row.shape) if isinstance(row, Tensor) else type(row).__name__
        raise ValueError(
            f"the row of {depth} layers must be one number for each input, got {got}; take"
            " measure.sensitivity(layer, x)[centre]"
        )
    row = row.detach().to("cpu", torch.float64)
    if not row.isfinite().all() or row.min() < 0 or row.max() == 0:
        raise ValueError(f"the row of {depth} layers must hold norms: finite, not negative and not all 0")
    return row / row.max()
