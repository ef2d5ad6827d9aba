"""The figures of lesson 08: what recurrence, convolution and attention cost, how far they remember, and
attention as a recurrent network."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c08_attention_vs_rnn.recall_figures import (  # noqa: F401
    aids,
    asked,
    forgetting,
    recall,
    sensitivities,
)
from lesson_lib.charts.basic import lines
from lesson_lib.charts.marks import note
from lesson_lib.charts.picture import (
    CURVES,
    HEAT,
    MARKERS,
    Picture,
    bare,
    canvas,
    color,
    figure,
    styled,
    trim,
)

Row = summary.Row
QUANTITIES = {"operations": "multiplications", "seconds": "seconds", "mib": "MiB at the peak"}
WIDE = 0.58  # width of a letter, as a share of the size of the type


@styled
def grow(
    rows: Sequence[Row], over: str, quantities: Sequence[str] = tuple(QUANTITIES), *, backward: bool = False
) -> Picture:
    """Rows of `experiments.costs`, over n or d; repeats become a band.

    `backward` takes the seconds and MiB of passes with gradients; multiplications are always those of the
    forward pass.
    """
    rows = [
        row for row in rows if row.get("over", over) == over and row.get("backward", backward) == backward
    ]
    panels = {}
    for name in quantities:
        column = "mib_backward" if backward and name == "mib" else name
        measured = [row for row in rows if {"kind", over, column} <= row.keys()]
        panels[QUANTITIES[name]] = summary.bands(measured, "kind", over, column)
    picture = lines(
        panels,
        alt=(
            f"What layers cost over {over}, both axes logarithmic, a curve for each layer; thin grey lines"
            f" rise as {over} and as its square."
        ),
        caption=(
            f"Both axes are logarithmic: a power of {over} is a straight line, and its steepness is the"
            f" power. Grey: how {over} and {over}² rise."
        ),
        x_axis="tokens n" if over == "n" else "width d",
        log="xy",
        height=4.0,
    )
    legends = [mark for legend in picture.figure.legends for mark in legend.legend_handles]
    for mark in [*legends, *(line for axes in picture.figure.axes for line in axes.lines)]:
        mark.set(markeredgecolor="black", markeredgewidth=0.4)  # the palest curve is seen by its marks
    for axes in picture.figure.axes:
        _guides(axes, over)
        axes.tick_params(axis="x", labelrotation=45)
    return picture


@figure(
    "Tables side by side with a row for each layer: what theory says of its costs and its paths, and what"
    " was measured.",
    "Two numbers: the lowest and the highest of the repeats.",
)
def table(blocks: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure:
    """{title: {layer: {column: cell}}}; a cell is a text, a number, or the numbers of several repeats."""
    layers = [[*rows] for rows in blocks.values()]
    columns = {title: _columns(rows) for title, rows in blocks.items()}
    widths = {title: _widths(title, block) for title, block in columns.items()}
    names = 1 + max(map(len, layers[0]))
    letters = names + sum(map(sum, widths.values()))
    size = min(9.5, 7.8 * 72 / (WIDE * letters))
    # where the blocks' titles stand; a unit down is a row, a unit across a letter, and the first row is 0
    top = -2.05
    height = 1.9 * size / 72 * (len(layers[0]) - top + 0.3)
    figure, grid = canvas(width=WIDE * size / 72 * letters + 0.2, height=height)
    axes, x = grid[0][0], names
    bare(axes)
    axes.set(xlim=(0, letters), ylim=(len(layers[0]) - 0.4, top - 0.6))
    for y, name in enumerate(layers[0]):
        axes.text(0, y, name, va="center", fontsize=size)
        axes.axhline(y - 0.5, color="0.88" if y else "0.3", linewidth=0.6 if y else 1, zorder=0)
    for title, block in columns.items():
        middle, end = x + sum(widths[title]) / 2, x + sum(widths[title])
        axes.text(middle, top, title, ha="center", va="center", fontsize=size + 0.5, fontweight="bold")
        axes.plot([x + 0.8, end - 0.8], [top + 0.55] * 2, color="0.3", linewidth=1)
        for column, width in zip(block, widths[title], strict=True):
            x += width
            text_style = {"ha": "center", "fontsize": size}
            axes.text(x - width / 2, -0.8, column[0], va="baseline", color="0.3", **text_style)
            for y, text in enumerate(column[1:]):
                axes.text(x - width / 2, y, text, va="center", **text_style)
    return figure


@figure(
    "A line for each layer and batch size, from its seconds with one thread to its seconds with two, on a"
    " logarithmic axis; behind it how many times as fast two threads are.",
    "A mark for each repeat. On the right: how many times as fast two threads are; 2 is all that two can"
    " give.",
)
def threads(rows: Sequence[Row]) -> Figure:
    """Rows of `experiments.costs`; the medians of the repeats are compared."""
    seconds_of = summary.gathered(_part(rows, "threads"), ("kind", "batch"), "threads", "seconds")
    cases = {f"{kind}, batch {batch}": case for (kind, batch), case in seconds_of.items()}
    counts = sorted({count for case in cases.values() for count in case})
    figure, grid = canvas(width=7.4, height=1.3 + 0.36 * len(cases))
    axes = grid[0][0]
    for y, case in enumerate(cases.values()):
        few, many = (statistics.median_low(case[count]) for count in counts)
        axes.plot([few, many], [y, y], color="0.6", linewidth=1.5, zorder=1)
        text = f"{few / many:.2f} times as fast"
        note(axes, text, y=y, shift=(8, 0), va="center", annotation_clip=False)
    for k, (count, face) in enumerate(zip(counts, (color(0), "none"), strict=True)):
        marks = [(seconds, y) for y, case in enumerate(cases.values()) for seconds in case[count]]
        style = {"color": color(k), "marker": MARKERS[k], "markersize": 6, "markerfacecolor": face}
        label = f"{count} thread{'s' if count > 1 else ''}"
        axes.plot(*zip(*marks, strict=True), linestyle="none", label=label, **style)
    axes.set_yticks(range(len(cases)), cases)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.set_xlabel("seconds by the clock, forward and backward")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


@figure(
    "Hidden states while a sequence is read: a column for each token, a row for each number of the state,"
    " bright where it is large.",
    "A column is the network's output at a token. An RNN carries nothing else on to the next; an LSTM"
    " carries its cell as well.",
)
def states(
    hidden: Mapping[str, Float[Tensor, "n d"]], tokens: Sequence[str] | None = None, *, limit: float = 1.0
) -> Figure:
    """{network: states (n, d)}; colours go from -limit to limit."""
    figure, grid = canvas(len(hidden), 1, width=7.4, height=0.7 + 1.6 * len(hidden), sharex=True)
    for axes, (name, table) in zip(grid[:, 0], hidden.items(), strict=True):
        image = axes.imshow(
            table.detach().cpu().T.numpy(),
            cmap=HEAT,
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            interpolation="nearest",
        )
        axes.set_title(name, loc="left")
        axes.set_ylabel("unit")
    if tokens is not None:
        axes.set_xticks(range(len(tokens)), tokens)
    axes.set_xlabel("token, in the order of reading")
    figure.colorbar(image, ax=grid, label="state", fraction=0.03, pad=0.01)
    return figure


@styled
def rank(tables: Mapping[str, Float[Tensor, "n n"]], d_k: int) -> Picture:
    """Tables (n, n), computed in float64."""
    curves = {}
    for name, table in tables.items():
        values = torch.linalg.svdvals(table.detach().to("cpu", torch.float64))
        shares = (values / values[0]).clamp(min=1e-18).tolist()
        curves[name] = (range(1, len(shares) + 1), shares)
    picture = lines(
        {"singular value / the largest one": curves},
        alt=(
            "Singular values of tables of weights in falling order, the axis logarithmic: a table of features"
            " drops to rounding behind as many as the features are wide, the exponential's table goes on."
        ),
        caption=(
            "As many values above rounding as numbers per token are needed to write the table as a product."
            " Computed in float64."
        ),
        x_axis="number of the singular value",
        log="y",
        height=3.4,
    )
    (axes,) = picture.figure.axes
    axes.axvline(d_k + 0.5, color="0.5", linewidth=1, zorder=0)
    note(axes, f"$d_k$ = {d_k}", x=d_k + 0.5, shift=(3, -2), va="top", color="0.35")
    return picture


@figure(
    "A table of queries by keys, cut into chunks: small triangles of cells along the diagonal, and to the"
    " left of each one hatched box that stands for all earlier keys; above the diagonal nothing.",
    "Each query reads its own chunk from a table and everything before it from a state of fixed size. No"
    " cell of the hatched boxes is ever computed.",
    width=6.0,
    height=5.0,
)
def chunks(axes: Axes, n: int = 16, chunk: int = 4) -> None:
    """`n` tokens in chunks of `chunk`."""
    near = {"facecolor": CURVES[4], "edgecolor": "white", "label": "near: a table of weights in each chunk"}
    far = {"facecolor": "#D6ECFA", "edgecolor": CURVES[0], "hatch": "//", "linewidth": 1.2}
    for start in range(0, n, chunk):
        for i in range(start, start + chunk):
            for j in range(start, i + 1):
                axes.add_patch(Rectangle((j, i), 1, 1, **near))
        if start:
            axes.add_patch(
                Rectangle((0, start), start, chunk, **far, label="far: one state for all keys before")
            )
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 2}
            text = f"state of\nkeys 0 … {start - 1}"
            axes.text(start / 2, start + chunk / 2, text, ha="center", va="center", fontsize=9, bbox=ground)
    axes.text(0.75 * n, 0.2 * n, "later keys: not seen", ha="center", fontsize=9, color="0.35")
    bounds = range(0, n + 1, chunk)
    axes.set(xlim=(-0.1, n + 0.1), ylim=(n + 0.1, -0.1), aspect="equal", xticks=bounds, yticks=bounds)
    axes.set(xlabel="key", ylabel="query")
    handles, labels = axes.get_legend_handles_labels()
    kinds = dict(zip(labels, handles, strict=True))
    axes.figure.legend(kinds.values(), kinds.keys(), loc="outside lower center", frameon=False)
    trim(axes.figure)


def gap(apart: Mapping[str, Sequence[float]]) -> Picture:
    """{network: distance after each common token}."""
    return lines(
        {"distance between the two states": {name: (range(len(gaps)), gaps) for name, gaps in apart.items()}},
        alt=(
            "The distance between the states of two texts that differ in their first token, over the common"
            " tokens read since, a falling curve for each network; the axis of distances is logarithmic."
        ),
        caption="A straight line on a logarithmic axis: each token takes the same share away.",
        x_axis="common tokens read",
        log="y",
        height=3.4,
        points=False,
    )


def _part(rows: Sequence[Row], part: str) -> list[Row]:
    """The rows of one part of the experiment "costs"; what was measured just now belongs to none."""
    return [row for row in rows if row.get("part", part) == part]


def _guides(axes: Axes, over: str) -> None:
    """Thin lines that rise as x, from the lowest point on the left, and as its square, to the highest point
    on the right."""
    points = [(x, y) for line in axes.lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
    xs, bounds = sorted({x for x, _ in points}), axes.get_ylim()
    low = min(y for x, y in points if x == xs[0])
    high = max(y for x, y in points if x == xs[-1])
    first = [low * x / xs[0] for x in xs]
    second = [high * (x / xs[-1]) ** 2 for x in xs]
    beside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
    for name, values in ((over, first), (f"{over}²", second)):
        axes.plot(xs, values, color="0.6", linewidth=1, zorder=0)
        axes.annotate(name, (xs[-1], values[-1]), **beside, fontsize=9, color="0.35")
    axes.set_ylim(bounds)


def _columns(rows: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """The head and the cells of each column, which must be the same in all rows."""
    heads = [*next(iter(rows.values()))]
    return [[head, *(_cell(row[head]) for row in rows.values())] for head in heads]


def _cell(value: Any) -> str:
    """A text as it is, a number with at most two places, numbers as their lowest and highest."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " … ".join(dict.fromkeys(_cell(end) for end in (min(value), max(value))))
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _widths(title: str, block: Sequence[Sequence[str]]) -> list[float]:
    """How many letters wide each column is: its longest line and some air; together at least as wide as the
    title."""
    widths = [2 + max(map(len, column)) for column in block]
    missing = max(0.0, 1.2 * len(title) + 2 - sum(widths))
    return [width + missing / len(widths) for width in widths]
