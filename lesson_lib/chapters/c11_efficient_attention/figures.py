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
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from torch import Tensor

from lesson_lib import require, summary
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.picture import CURVES, MARKERS, Picture, bare, canvas, color, styled, trim

Row = Mapping[str, Any]
Draws = Sequence[tuple[float, Sequence[float]]]
Box = Sequence[float] | numpy.ndarray
Accuracies = Mapping[str, Mapping[str, Sequence[float]]]
DASHES = ["-", "--", "-.", ":"]
KINDS = ("full", "window", "linear", "low rank", "random features")  # a colour each, the same in all pictures
ENERGY = 0.9  # of the sum of squares
FLOOR = 1e-12  # of the largest singular value: what lies below is rounding
PALE, EMPTY, IN_HAND, MUTED = "#CFE5F3", "#F1F1F1", CURVES[1], "0.35"
MOST_PROCESSES = 6  # that `ring_rounds` has room for
MOST_TILES = 12  # along a side of `tile_order`
GIB = 2**30
STAIRS = (
    " Hatched: later keys, never computed. In the tiles on the stairs, what lies above them is computed and"
    " not counted."
)
LEADER = {"arrowstyle": "-", "color": "0.4", "linewidth": 0.8, "shrinkA": 1, "shrinkB": 0}


class Spot(NamedTuple):
    """A circle in a plane: where, its bar's ends, its radius in points, and what is written beside it."""

    x: float
    y: float
    low: float
    high: float
    radius: float
    text: str


class Branch(NamedTuple):
    """A group of the family: its idea, members, time, what it gives up, the lessons in which a member runs,
    and its column on the map."""

    idea: str
    members: str
    time: str
    gives_up: str
    lessons: str
    column: int


COLUMNS = (  # of the map: heading, what it says
    ("Fewer pairs", "most scores are never computed"),
    ("A few stand for all", "sums or mixtures instead of n keys"),
    ("Every pair", "but less to hold or to carry"),
)
# after Tay, Dehghani, Bahri & Metzler 2020, arXiv:2009.06732; the groups of OURS are not the survey's
FAMILY = {
    "fixed patterns": Branch("a rule names the pairs", "window, Sparse Transformer,\nLongformer",
    "n · window", "far pairs, in one layer", "09", 0),
    "known edges": Branch("the data name the pairs", "graph attention", "edges", "nodes without an edge",
    "10", 0),
    "learnable patterns": Branch("learns which pairs matter", "Reformer, Routing Transformer",
    "n log n, n √n", "pairs it did not group", "", 0),
    "recurrence": Branch("segments hand states on", "Transformer-XL", "n · (segment + memory)",
    "gradients into the past", "", 0),
    "memory": Branch("few tokens meet all", "Set Transformer, ETC, BigBird,\nLongformer", "n · memory",
    "a direct look at far pairs", "11", 1),
    "low rank": Branch("mixes keys to a few", "Linformer", "n · rank", "masks, longer texts", "11", 1),
    "kernels": Branch("features replace the exponential", "Linear Transformer, Performer", "n · features",
    "sharp weights", "08, 11", 1),
    "exact, another order": Branch("same numbers, tile by tile",
    "online softmax, FlashAttention,\nring attention", "n², memory n", "nothing", "11", 2),
    "fewer keys to keep": Branch("heads share keys and values", "multi-query, grouped-query",
    "n², a smaller cache", "keys of each head's own", "11", 2),
}  # fmt: skip
OURS = ("known edges", "exact, another order", "fewer keys to keep")


@styled
def family_map(links: Mapping[str, str] | None = None) -> Picture:
    """A map of the family: a box for each group with its idea, members, time and what it gives up; blue where
    one runs in this course.

    `links` are {group: lessons} such as {"memory": "11"}, and take the place of FAMILY's own; "" takes a mark
    away.
    Source: the classification of Tay, Dehghani, Bahri & Metzler 2020, arXiv:2009.06732; "known edges" and the
    last column are added.
    """
    links = {} if links is None else links
    width, gap, top = 8.0, 0.12, 1.3
    wide = (width - 4 * gap) / 3
    columns = [[name for name, branch in FAMILY.items() if branch.column == k] for k in range(len(COLUMNS))]
    height = top + max(sum(_tall(FAMILY[name]) + gap for name in column) for column in columns)
    figure, page = _page(width, height)
    root = "attention: softmax(q kᵀ / √d) v — time n², and a table of n² weights"
    middle = width / 2
    _rounded(page, (middle - 2.9, 0.08), (5.8, 0.36), "white", "0.25")
    page.text(middle, 0.26, root, ha="center", va="center", fontsize=10.5)
    for k, ((heading, said), column) in enumerate(zip(COLUMNS, columns, strict=True)):
        left = gap + k * (wide + gap)
        page.plot([middle, left + wide / 2], [0.44, 0.72], color="0.6", linewidth=1.2, zorder=0)
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        style = {"ha": "center", "va": "center"}
        page.text(left + wide / 2, 0.84, heading, fontsize=12, fontweight="bold", bbox=ground, **style)
        page.text(left + wide / 2, 1.07, said, fontsize=9.5, color=MUTED, **style)
        y = top
        for name in column:
            _group(page, (left, y), wide, name, FAMILY[name], links.get(name, FAMILY[name].lessons))
            y += _tall(FAMILY[name]) + gap
    x, y = 2 * wide + 3 * gap, height - 1.0
    keys = (
        (PALE, CURVES[0], "-", "runs in this course: the lesson\nstands in the corner"),
        ("white", "0.45", "--", "not a group of the survey"),
    )
    for k, (ground, edge, dashes, said) in enumerate(keys):
        corner = (x + 0.05, y + 0.52 * k)
        _rounded(page, corner, (0.34, 0.24), ground, edge, linestyle=dashes, linewidth=1.4)
        page.text(x + 0.52, corner[1] + 0.12, said, va="center", fontsize=9, linespacing=1.15)
    return Picture(
        figure,
        "A map of ways to make attention cheaper, in three columns: fewer pairs, a few that stand for all,"
        " and every pair but less to hold; each group's box says its idea, its members, its time and what it"
        " gives up.",
        "After the survey of Tay, Dehghani, Bahri & Metzler (arXiv:2009.06732); dashed boxes are not the"
        " survey's groups. Blue: one of the group runs in this course, in the lesson named.",
    )


@styled
def seen_patterns(masks: Mapping[str, Bool[Tensor, "n n"]]) -> Picture:
    """Masks as small tables, four in a row, a dark cell where the query may look at the key, and over each
    its share of all pairs.

    Raises ValueError for what is no boolean square, and for none or more than 12 of them.
    """
    some = _some(masks, "masks", "mask")
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
    return Picture(
        figure,
        "Small tables of queries by keys, one for each pattern: dark cells are the pairs that are computed;"
        " over each table stands its share of all pairs.",
        "Dark: the query of the row may look at the key of the column.",
    )


@styled
def spectra(curves: Mapping[str, Float[Tensor, " n"]]) -> Picture:
    """Singular values of tables of weights, each divided by its largest, over their number; a mark where 90 %
    of the energy is reached.

    Energy is the sum of squares. Raises ValueError for what are no singular values.
    """
    shares = {name: _falling(values, name) for name, values in _some(curves, "curves", "values").items()}
    figure, grid = canvas(width=7.0, height=3.9)
    axes = grid[0][0]
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
    axes.set_title("singular value / the largest one", loc="left")
    axes.set_xlabel("number of the singular value")
    _legend(figure, axes, least=1)
    return Picture(
        figure,
        "Singular values of tables of weights in falling order, each divided by its largest, on a logarithmic"
        " axis, a curve for each table with a mark where nine tenths of the energy are reached.",
        "A mark: up to here the squares sum to 90 % of all. The earlier it stands, the fewer mixtures of keys"
        " can write the table.",
    )


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
    _powers(axes, sizes)
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
    _legend(figure, axes)
    return Picture(
        figure,
        "Errors over a size, both axes logarithmic, a curve for each kind with a band round it, and a dotted"
        " line where the error is as large as that of an answer of zeros.",
        "Lines: the middle of the draws; bands: lowest and highest. Dotted: error 1, as bad as zeros."
        + (" Dashed: only a slope to compare with." if slope is not None else ""),
    )


def tiles(n: int, tile: int, *, causal: bool = False) -> list[tuple[range, range]]:
    """Queries and keys of each tile, in the order in which `attend_tiles` computes them; with `causal` those
    that nobody may see are left out.

    Raises ValueError where n or tile is no whole number above 0.

    >>> tiles(4, 2, causal=True)
    [(range(0, 2), range(0, 2)), (range(2, 4), range(0, 2)), (range(2, 4), range(2, 4))]
    """
    require.whole(n=n, tile=tile)
    starts = range(0, n, tile)
    return [
        (range(i, min(n, i + tile)), range(j, min(n, j + tile)))
        for i in starts
        for j in starts
        if not causal or j < min(n, i + tile)
    ]


@styled
def tile_order(n: int, tile: int, *, causal: bool = False, step: int | None = None) -> Picture:
    """The table of scores cut into tiles, numbered from 1 in the order of `attend_tiles`, and beside it what
    is kept of each row.

    `step` is the number of the tile in hand: those before it are done, those after it not yet made; None
    draws the order alone. With `causal` tiles that nobody may see are hatched: never computed. Real tiles are
    larger. Raises ValueError for a step that is no tile's, and for more than 12 tiles a side.
    """
    cut = tiles(n, tile, causal=causal)
    _check_tiles(n, tile, len(cut) if step is None else step, len(cut))
    unit = 4.4 / n  # inches of a token
    left, top, column, apart = 0.45, 0.75, 0.42, 0.14
    wide = 1.5 * column
    x = left + 4.4 + 0.5
    figure, page = _page(x + 2 * (column + apart) + wide + 0.5, top + 4.4 + 0.5)
    hand = cut[step - 1][0] if step is not None else None
    page.add_patch(
        Rectangle((left, top), 4.4, 4.4, facecolor="white", edgecolor="0.5", hatch="////", linewidth=0)
    )
    size = min(13.0, 0.34 * tile * unit * 72, 40 / len(str(len(cut))))
    for number, (queries, keys) in enumerate(cut, start=1):
        ground, edge = _ground(number, step)
        corner = left + keys.start * unit, top + queries.start * unit
        sides = len(keys) * unit, len(queries) * unit
        page.add_patch(Rectangle(corner, *sides, facecolor=ground, edgecolor="white", linewidth=1.5))
        # below the stairs of a causal mask
        middle = corner[0] + sides[0] * 0.22, corner[1] + sides[1] * 0.76
        page.text(*middle, str(number), ha="center", va="center_baseline", fontsize=size, color=edge)
    if causal:
        stairs = [(left + k * unit, top + i * unit) for k in range(1, n + 1) for i in (k - 1, k)]
        page.plot(*zip((left, top), *stairs, strict=True), color="black", linewidth=1.1, zorder=3)
    page.add_patch(Rectangle((left, top), 4.4, 4.4, fill=False, edgecolor="0.3", linewidth=1.2))
    page.text(left + 2.2, top - 0.12, "keys →", ha="center", fontsize=10)
    page.text(left - 0.1, top + 2.2, "← queries", ha="right", va="center", rotation=90, fontsize=10)
    names = (
        ("top", "largest\nscore", column),
        ("total", "sum of\nexp", column),
        ("mixed", "weighted\nvalues", wide),
    )
    for name, said, across in names:
        page.text(x + across / 2, top - 0.12, name, ha="center", fontsize=10, fontweight="bold")
        page.text(x + across / 2, top + 4.5, said, ha="center", va="top", fontsize=9, color=MUTED)
        for i in range(n):
            place = (x, top + i * unit)
            ground = _kept(i, hand)
            page.add_patch(Rectangle(place, across, unit, facecolor=ground, edgecolor="white", linewidth=0.6))
        page.add_patch(Rectangle((x, top), across, 4.4, fill=False, edgecolor="0.3", linewidth=1.2))
        x += across + apart
    page.text(x - apart, 0.32, "kept of each row", ha="right", va="center", fontsize=10)
    _key_to(page, _grounds(causal, step), left)
    return Picture(
        figure,
        "A table of queries by keys cut into tiles that are numbered row by row in the order in which they"
        " are computed; beside it three narrow columns, what is kept of each row: its largest score, its sum,"
        " and its mixture of values.",
        "Only one tile of scores exists at a time. Three things per row are kept from tile to tile, and"
        " corrected when a larger score turns up." + STAIRS * causal,
    )


@styled
def ring_rounds(processes: int) -> Picture:
    """Ring attention round by round: which keys each process has, to whom it hands them, and which blocks of
    the table that computes.

    Raises ValueError for processes that are not 2 to 6.
    """
    require.whole(at_least=2, at_most=MOST_PROCESSES, processes=processes)
    p = processes
    table = 1.05
    apart, box = 5.3 / p, min(0.86, 5.3 / p - 0.28)
    tall, top = table + 0.28, 0.62
    figure, page = _page(8.0, top + p * tall)
    for rank in range(p):
        page.text(
            0.95 + (rank + 0.5) * apart, 0.2, f"process {rank}", ha="center", fontsize=10 if p < 6 else 9.5
        )
        page.text(0.95 + (rank + 0.5) * apart, 0.42, f"queries {rank}", ha="center", fontsize=9, color=MUTED)
    page.text(7.32, 0.2, "the table", ha="center", fontsize=10)
    page.text(7.32, 0.42, "queries ↓  keys →", ha="center", fontsize=9, color=MUTED)
    for turn in range(p):
        y = top + turn * tall + 0.04
        middle = y + table / 2
        page.text(0.06, middle, f"round {turn}", va="center", fontsize=10, fontweight="bold")
        for rank in range(p):
            owner, x = (rank - turn) % p, 0.95 + (rank + 0.5) * apart
            _rounded(page, (x - box / 2, middle - 0.21), (box, 0.42), _tone(owner), "black")
            page.text(
                x,
                middle,
                f"keys {owner}",
                ha="center",
                va="center_baseline",
                fontsize=9.5,
                color=_on(owner),
                zorder=5,
            )
            if turn < p - 1:
                _hand_on(page, rank, p, middle, apart, box)
        _blocks(page, (7.32 - table / 2, y), table / p, p, turn)
    return Picture(
        figure,
        "Ring attention round by round: a row for each round with the keys that each process has, arrows to"
        " the next process, and a small table of queries by keys in which the blocks computed in this round"
        " are coloured.",
        "Queries stay, keys and values go round. Coloured: the blocks of this round, in the colour of their"
        " keys; grey: done before. After the last round every block is done. Besides its own tokens no"
        " process has held more than two blocks of keys at a time.",
    )


@styled
def arena_plane(table: Accuracies, steps_per_s: Mapping[str, float], mib: Mapping[str, float]) -> Picture:
    """The survey's plane: a circle for each kind, across its training steps per second, upwards its mean
    accuracy over the tasks, its area the peak memory.

    `table` are {kind: {task: accuracies of the seeds}}; a bar runs from the worst seed's mean over the tasks
    to the best one's.
    """
    tasks = list(next(iter(table.values())))
    figure, grid = canvas(width=7.6, height=4.8)
    axes = grid[0][0]
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
    _plain(axes, min(xs) / 1.6, max(xs) * 1.6)
    axes.margins(y=0.25)
    axes.set_title("mean accuracy over the tasks", loc="left")
    axes.set_xlabel("training steps per second")
    _label(axes, spots)
    return Picture(
        figure,
        "Kinds of attention as circles in a plane: across, training steps per second on a logarithmic axis;"
        " upwards, mean accuracy over the tasks; the area of a circle is the peak memory.",
        "To the right is faster, upwards is better, smaller is leaner. Upright bars: from the worst seed to"
        " the best, each a mean over the tasks. Area: memory.",
    )


@styled
def arena_bars(table: Accuracies, guess: Mapping[str, float]) -> Picture:
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
    return Picture(
        figure,
        "A panel for each task with the accuracies of each kind of attention, a mark for each seed, a bar at"
        " their mean, and a dotted line at the accuracy of guessing.",
        "A mark for each seed, an upright bar at their mean. Dotted: guessing.",
    )


def next_token(
    tokens: Sequence[int], seconds: Mapping[str, Sequence[float]], gpu: Gpu | None = None
) -> Picture:
    """Processor seconds for one more token over the tokens kept, for each number of key heads, and a GPU's;
    `gpu` as `seconds_beside` takes it."""
    return seconds_beside(
        {name: (tokens, taken) for name, taken in seconds.items()},
        gpu,
        alt=(
            "Seconds for one more token over the number of tokens kept, both axes logarithmic, a curve for"
            " each number of heads of keys."
        ),
        caption="One layer, one thread, measured on this machine. Both axes are logarithmic.",
        x_axis="tokens kept",
    )


@styled
def cache_growth(
    layers: int, d_head: int, key_heads: Mapping[str, int], tokens: Sequence[int], bytes_each: int = 2,
    *, measured: Mapping[str, Sequence[tuple[int, float]]] | None = None,
) -> Picture:  # fmt: skip
    """GiB that the keys and values of one text take at generation, over its tokens, a line for each number of
    key heads.

    From 2 · layers · key heads · d_head · tokens · bytes_each; `measured` are {name: [(tokens, GiB), ...]},
    drawn as marks on it. Both axes are logarithmic. Raises ValueError where a size is no whole number above
    0.
    """
    require.whole(layers=layers, d_head=d_head, bytes_each=bytes_each)
    heads, measured = _some(key_heads, "key_heads", "number"), measured or {}
    for name, count in heads.items():
        require.whole(**{f"key_heads[{name!r}]": count})
    if isinstance(tokens, str) or not isinstance(tokens, Sequence) or len(tokens) < 2:
        raise ValueError(f"tokens must be at least two numbers of tokens, got {tokens!r}")
    for count in tokens:
        require.whole(tokens=count)
    figure, grid = canvas(width=7.0, height=4.0)
    axes = grid[0][0]
    xs = sorted(tokens)
    for k, (name, count) in enumerate(heads.items()):
        gib = [2 * layers * count * d_head * n * bytes_each / GIB for n in xs]
        axes.plot(xs, gib, color=color(k), linestyle=DASHES[k % 4], linewidth=1.7, label=name)
        points = measured.get(name, [])
        style = {"marker": MARKERS[k % len(MARKERS)], "markersize": 6.5, "markeredgecolor": "black"}
        if points:
            axes.plot(*zip(*points, strict=True), color=color(k), linestyle="none", zorder=3, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    _powers(axes, xs)
    axes.yaxis.minorticks_off()
    low, high = axes.get_ylim()
    ks = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    every = next(step for step in (1, 2, 4, 5, 10, 20) if len(ks) / step <= 8)
    ks = [k for k in ks if k % every == 0]
    axes.set_yticks([2.0**k for k in ks], [_size(k) for k in ks])
    axes.set_ylim(low, high)
    axes.set_xlabel("tokens read and written so far")
    axes.set_title("keys and values kept for one text", loc="left")
    _legend(figure, axes)
    return Picture(
        figure,
        "Memory that kept keys and values take, over the tokens of one text, both axes logarithmic, a"
        " straight line for each number of key heads.",
        "Lines: 2 · layers · key heads · width of a head · tokens · bytes of a number."
        + (" Marks: measured." if measured else ""),
    )


@styled
def shared_heads(n_heads: int, n_key_heads: int | Sequence[int]) -> Picture:
    """Query heads above, key heads below, and lines from each head to the keys and values that it uses; a
    panel for each number of key heads.

    Raises ValueError where n_heads is not 2 to 16, or is no multiple of a number of key heads.
    """
    require.whole(at_least=2, at_most=16, n_heads=n_heads)
    counts = [n_key_heads] if isinstance(n_key_heads, int) else n_key_heads
    if isinstance(counts, str) or not isinstance(counts, Sequence) or not 1 <= len(counts) <= 4:
        raise ValueError(
            f"n_key_heads must be a number of key heads, or a list of 1 to 4 of them, got {n_key_heads!r}"
        )
    for count in counts:
        require.whole(n_key_heads=count)
        if n_heads % count:
            raise ValueError(
                f"n_key_heads must divide n_heads={n_heads}, got {count}; take one of "
                f"{[k for k in range(1, n_heads + 1) if n_heads % k == 0]}"
            )
    width = min(8.0, 1.0 + 3.4 * len(counts))
    figure, grid = canvas(1, len(counts), width=width, height=2.7)
    for axes, count in zip(grid[0], counts, strict=True):
        bare(axes)
        axes.set(xlim=(-0.6, n_heads - 0.4), ylim=(-0.3, 3.0))
        group = n_heads // count
        middles = [(shared + 0.5) * group - 0.5 for shared in range(count)]
        for head in range(n_heads):
            axes.plot([head, middles[head // group]], [2.1, 0.75], color="0.4", linewidth=1.2, zorder=1)
            _head(axes, (head, 2.0), 0.8, head // group)
        for shared, middle in enumerate(middles):
            _head(axes, (middle, 0.38), 0.42, shared)
            _head(axes, (middle, -0.12), 0.42, shared, hatch="...")
        kept = {1: "multi-query\none for all", n_heads: "multi-head\none each"}
        axes.set_title(kept.get(count, f"grouped-query\none for every {group}"), fontsize=10)
        axes.set_xlabel(f"{2 * count} of {2 * n_heads} arrays kept")
    first = grid[0][0]
    first.set_yticks([2.4, 0.59, 0.09], ["queries", "keys", "values"])
    first.tick_params(axis="y", length=0)
    return Picture(
        figure,
        "Heads of queries in a row, below them the heads of keys and values, with a line from each query head"
        " to the keys and values that it uses; groups of query heads share one.",
        "A colour for each group. Below: what must be kept for each token at generation, keys above, values"
        " (dotted) beneath.",
    )


def _head(axes: Axes, place: tuple[float, float], height: float, shared: int, hatch: str = "") -> None:
    """A box for a head of the group `shared`; `place` is the middle of its lower edge."""
    style = {"facecolor": _shade(shared), "edgecolor": "black", "linewidth": 0.8, "hatch": hatch, "zorder": 2}
    axes.add_patch(Rectangle((place[0] - 0.36, place[1]), 0.72, height, **style))


@styled
def ring_memory(rows: Sequence[Row]) -> Picture:
    """MiB of each process over the number of processes, both axes logarithmic, a curve for each number of
    tokens and kind of pass; dashed lines fall as 1/p.

    `rows` hold "processes", "tokens", "backward" and "mib"; of rows that are equal in the first three the
    middle is drawn, with a band from lowest to highest.
    """
    found = summary.bands(rows, ("tokens", "backward"), "processes", "mib")
    several = len({backward for _, backward in found}) > 1
    figure, grid = canvas(width=7.0, height=4.0)
    axes = grid[0][0]
    for k, ((tokens, backward), (xs, low, middle, high)) in enumerate(sorted(found.items())):
        name = f"{tokens:,} tokens" + (", backward too" if backward else ", forward" if several else "")
        style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 6}
        axes.plot(xs, middle, label=name, markeredgecolor="black", markeredgewidth=0.5, zorder=3, **style)
        axes.fill_between(xs, low, high, color=color(k), alpha=0.15, linewidth=0)
        start = next((i for i, x in enumerate(xs) if x > 1), 0)
        ideal = [middle[start] * xs[start] / x for x in xs]
        label = "falls as 1 / processes" if k == len(found) - 1 else None
        axes.plot(xs, ideal, color="0.4", dashes=(5, 3), linewidth=1.1, label=label, zorder=4)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    counts = sorted({row["processes"] for row in rows})
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.minorticks_off()
    _plain(axes, *axes.get_ylim(), which="y")
    axes.set_xlabel("processes")
    axes.set_title("MiB at the peak, of one process", loc="left")
    _legend(figure, axes)
    return Picture(
        figure,
        "Memory of one process over the number of processes, both axes logarithmic, a curve for each number"
        " of tokens, and dashed lines that fall as one over the number of processes.",
        "Marks: measured. Dashed: 1 / processes, through the first mark of more than one process. A process"
        " alone lies below it: it takes no keys from another one.",
    )


def _page(width: float, height: float) -> tuple[Any, Axes]:
    """A figure whose one axes count inches from the upper left corner."""
    figure, ((page,),) = canvas(width=width, height=height)
    figure.set_layout_engine("none")
    page.set_position([0, 0, 1, 1])
    page.set(xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    return figure, page


def _rounded(
    page: Axes, corner: tuple[float, float], size: tuple[float, float], fill: str, edge: str, **style: Any
) -> None:
    shape = "round,pad=0,rounding_size=0.06"
    page.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, facecolor=fill, edgecolor=edge, **style))


def _tall(branch: Branch) -> float:
    """Inches of a group's box."""
    return 0.98 + 0.165 * branch.members.count("\n")


def _group(
    page: Axes, corner: tuple[float, float], wide: float, name: str, branch: Branch, lessons: str
) -> None:
    """A box: name and lessons on the first line, then idea, members, time, and what is given up."""
    (x, y), runs = corner, bool(lessons)
    style = {"linestyle": "--" if name in OURS else "-", "linewidth": 1.4, "zorder": 1}
    _rounded(
        page,
        corner,
        (wide, _tall(branch)),
        PALE if runs else "#F6F6F6",
        CURVES[0] if runs else "0.45",
        **style,
    )
    text = {"va": "center", "zorder": 5}
    page.text(x + 0.08, y + 0.13, name, fontsize=10, fontweight="bold", **text)
    if runs:
        pill = {"boxstyle": "round,pad=0.22", "facecolor": CURVES[0], "edgecolor": "none"}
        page.text(
            x + wide - 0.12, y + 0.14, lessons, ha="right", fontsize=9, color="white", bbox=pill, **text
        )
    down = y + 0.32
    page.text(x + 0.08, down, branch.idea, fontsize=9.5, style="italic", **text)
    extra = 0.165 * branch.members.count("\n")
    page.text(
        x + 0.08, down + 0.175 + extra / 2, branch.members, fontsize=9, color="0.25", linespacing=1.15, **text
    )
    down += 0.35 + extra
    page.text(x + 0.08, down, f"time: {branch.time}", fontsize=9, **text)
    page.text(x + 0.08, down + 0.175, f"gives up: {branch.gives_up}", fontsize=9, **text)


def _check_tiles(n: int, tile: int, step: int, count: int) -> None:
    if math.ceil(n / tile) > MOST_TILES:
        raise ValueError(
            f"tile must cut n into at most {MOST_TILES} pieces, so that numbers can be read, got n={n} and"
            f" tile={tile}; take tile={math.ceil(n / MOST_TILES)}"
        )
    require.whole(at_most=count, step=step)


def _key_to(page: Axes, grounds: Sequence[tuple[str, str, str]], spot: float) -> None:
    """What each ground means, from `spot` on to the right: a box and its word."""
    for ground, hatch, word in grounds:
        box = {"facecolor": ground, "edgecolor": "0.5", "hatch": hatch, "linewidth": 0.8}
        page.add_patch(Rectangle((spot, 0.22), 0.24, 0.2, **box))
        page.text(spot + 0.32, 0.32, word, va="center", fontsize=9)
        spot += 0.5 + 0.073 * len(word)


def _ground(number: int, step: int | None) -> tuple[str, str]:
    """Colours of a tile and of its number."""
    if step is None or number < step:
        return PALE, "black"
    return (IN_HAND, "white") if number == step else (EMPTY, "0.45")


def _kept(row: int, hand: range | None) -> str:
    """Colour of what is kept of a row: finished, in hand, or not yet begun."""
    if hand is None or row < hand.start:
        return PALE
    return IN_HAND if row < hand.stop else EMPTY


def _grounds(causal: bool, step: int | None) -> list[tuple[str, str, str]]:
    """Ground, hatch and word of each kind of tile that is drawn."""
    words = [(PALE, "", "done")] if step is not None else [(PALE, "", "computed")]
    if step is not None:
        words += [(IN_HAND, "", "in hand"), (EMPTY, "", "not yet")]
    return words + ([("white", "////", "never computed")] if causal else [])


def _tone(owner: int) -> str:
    """Colour of a process's keys."""
    return CURVES[owner % 6]


def _on(owner: int) -> str:
    """Colour of text on that."""
    return "white" if owner % 6 in (0, 1, 2) else "black"


def _hand_on(page: Axes, rank: int, p: int, middle: float, apart: float, box: float) -> None:
    """An arrow to the next process; the last one's goes back below all boxes."""
    style = {"arrowstyle": "-|>", "mutation_scale": 11, "color": "#222222", "linewidth": 1.2, "zorder": 4}
    x = 0.95 + (rank + 0.5) * apart
    if rank < p - 1:
        ends = {"posA": (x + box / 2, middle), "posB": (x + apart - box / 2, middle)}
        page.add_patch(FancyArrowPatch(**ends, shrinkA=1, shrinkB=1, **style))
        return
    first, low = 0.95 + apart / 2, middle + 0.4
    page.plot([x, x, first], [middle + 0.21, low, low], color="#222222", linewidth=1.2, zorder=0)
    ends = {"posA": (first, low), "posB": (first, middle + 0.21)}
    page.add_patch(FancyArrowPatch(**ends, shrinkA=0, shrinkB=0, **style))


def _blocks(page: Axes, corner: tuple[float, float], side: float, p: int, turn: int) -> None:
    """The table of all queries and keys: blocks of this round in their keys' colour, earlier ones grey."""
    for rank in range(p):
        for owner in range(p):
            when = (rank - owner) % p
            ground = _tone(owner) if when == turn else "0.78" if when < turn else "white"
            place = corner[0] + owner * side, corner[1] + rank * side
            page.add_patch(Rectangle(place, side, side, facecolor=ground, edgecolor="0.5", linewidth=0.7))


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


def _legend(figure: Any, axes: Axes, least: int = 2) -> None:
    """A legend below, of so many names or more, in as many columns as there is room for."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) >= least:
        inches = 0.75 + 0.087 * max(map(len, names))
        columns = max(1, min(len(names), int(figure.get_size_inches()[0] / inches)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)


def _overlap(a: Box, b: Box) -> float:
    """Area that two boxes (left, low, right, high) have in common."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _plain(axes: Axes, low: float, high: float, which: str = "x") -> None:
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


def _powers(axes: Axes, sizes: Sequence[float]) -> None:
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


def _size(power: int) -> str:
    """2^power GiB in words.

    >>> _size(3), _size(-5), _size(-12), _size(11)
    ('8 GiB', '32 MiB', '256 KiB', '2 TiB')
    """
    for unit, start in (("TiB", 10), ("GiB", 0), ("MiB", -10), ("KiB", -20)):
        if power >= start:
            return f"{2 ** (power - start)} {unit}"
    return f"2^{power + 30} B"


def _shade(shared: int) -> str:
    """Colour of a group of heads; neighbours differ."""
    return ["#9CC9E6", "#F0B98A", "#8FD3BC", "#E3BBD1", "#F3D58B", "#C7E4F7", "#BBBBBB", "#F5EFA0"][
        shared % 8
    ]


def _kind(name: str, table: Mapping[str, Any]) -> int:
    """The number of a kind's colour: the same in all pictures for KINDS, and others behind them."""
    return (
        KINDS.index(name) if name in KINDS else len(KINDS) + [k for k in table if k not in KINDS].index(name)
    )


def _some(values: Mapping[str, Any], name: str, what: str) -> dict[str, Any]:
    if not isinstance(values, Mapping) or not values:
        got = "none" if isinstance(values, Mapping) else type(values).__name__
        raise ValueError(f"{name} must be a dict {{name: {what}}} with at least one entry, got {got}")
    return dict(values)


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
