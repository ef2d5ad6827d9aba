"""Networks as graphs of what was computed from what: the path between two tokens, and the steps that must
wait for each other.

A graph is a networkx.DiGraph with nodes (row, position), such as ("state", 3), rows in the order of first
appearance; the first row holds the inputs, the last one the outputs. It is drawn with a column for each
position and its rows from the bottom up; every edge is one unit. `draw` says what is where and in which
colour; it is painted here by matplotlib, and by the widgets as SVG.
"""

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import networkx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle
from PIL import Image

from lesson_lib.charts.picture import CURVES, Picture, bare, canvas, styled

Node = tuple[str, int]
Point = tuple[float, float]

MOST = 12  # positions, and rows, that can be read on a page
RISE, SIDE = 1.3, 0.66  # from row to row, and of a box, where positions are 1 apart
LABELS, FOOT = 2.4, 1.2  # room for the rows' names on the left, and for the positions below
DONE, NOW, PALE, FRAME = CURVES[0], CURVES[1], "#cccccc", "#777777"
GIVEN = "#e4e4e4"
FRAME_MS, LAST_MS = 900, 3000
CAPTION = (
    "A number in a box is the step at which it can be computed at the earliest. Blue: computed. Orange, thick"
    " frame: computed in this step, from what its lines come from. White: not yet. Grey circles: the inputs."
)


class Box(NamedTuple):
    """A node in its place: its colours, what is written in it, and its frame's width; `round` for an input,
    `dashed` for the end of no path."""

    node: Node
    place: Point
    ground: str
    ink: str
    text: str
    frame: float = 0.03
    round: bool = False
    dashed: bool = False

    @property
    def edge(self) -> str:
        """The frame's colour."""
        return "black" if self.frame > 0.05 else FRAME


class Line(NamedTuple):
    """An edge as a chain of points, its colour and width, and an arrow's head (three points, or none)."""

    edge: tuple[Node, Node]
    points: list[Point]
    color: str
    width: float
    head: tuple[Point, ...] = ()


class Drawing(NamedTuple):
    """What to paint: the lines, then the boxes over them; and the rows' names from the bottom up."""

    rows: list[str]
    lines: list[Line]
    boxes: list[Box]


def rows(graph: networkx.DiGraph) -> list[str]:
    """The rows' names in the order of first appearance: the inputs' first, the outputs' last."""
    return list(dict.fromkeys(row for row, _ in graph))


def steps(graph: networkx.DiGraph) -> dict[Node, int]:
    """The step at which each node can be computed at the earliest: 0 for what is given, else one more than
    the last that it waits for.

    >>> (x0, x1), (h0, h1) = [(("input", 0), ("input", 1)), (("state", 0), ("state", 1))]
    >>> steps(networkx.DiGraph([(x0, h0), (x1, h1), (h0, h1)]))[h1]
    2
    """
    generations = networkx.topological_generations(graph)
    return {node: step for step, nodes in enumerate(generations) for node in nodes}


def shortest(graph: networkx.DiGraph, start: int, end: int) -> list[Node]:
    """The shortest path from the input at position `start` to the output at `end`, as nodes; empty where
    there is none.

    Of several that are as short, the one that turns least.
    """
    names = rows(graph)
    given, wanted = (names[0], start), (names[-1], end)
    try:  # the second part never adds up to a unit
        return networkx.shortest_path(graph, given, wanted, lambda a, b, _: 1 + 1e-6 * (a[1] - b[1]) ** 2)
    except networkx.NetworkXNoPath:
        return []


def check(graph: networkx.DiGraph, name: str = "graph") -> None:
    """Raises TypeError for what is no directed graph, ValueError where its nodes are no (row, position), it
    has a circle, or is too large."""
    if not isinstance(graph, networkx.DiGraph):
        raise TypeError(
            f"{name} must be a networkx.DiGraph, got {type(graph).__name__}; make one with"
            " experiments.paths.network"
        )
    named = [isinstance(node, tuple) and len(node) == 2 and isinstance(node[0], str) for node in graph]
    if not graph or not all(named) or not all(isinstance(node[1], int) and node[1] >= 0 for node in graph):
        raise ValueError(
            f"{name} must have nodes (row, position), such as ('state', 3), positions from 0, got"
            f" {list(graph)[:3]}"
        )
    if not networkx.is_directed_acyclic_graph(graph):
        circle = networkx.find_cycle(graph)
        raise ValueError(f"{name} must have no circle, so that each unit can be computed, got {circle}")
    across, up = 1 + max(position for _, position in graph), len(rows(graph))
    if across > MOST or not 2 <= up <= MOST:
        raise ValueError(
            f"{name} must have at most {MOST} positions and 2 to {MOST} rows to be drawn, got {across} and"
            f" {up}; take n = 8 tokens"
        )


def checked(networks: Mapping[str, networkx.DiGraph]) -> dict[str, networkx.DiGraph]:
    """The same networks, {name: graph}. Raises TypeError for no mapping, ValueError for none in it, and as
    `check` does."""
    if not isinstance(networks, Mapping):
        raise TypeError(
            f"networks must be a mapping {{name: graph}}, got {type(networks).__name__}; "
            "make one with {name: experiments.paths.network(name) for name in ...}"
        )
    if not networks:
        raise ValueError("networks must hold at least one graph, got none")
    for name, graph in networks.items():
        check(graph, f"network {name!r}")
    return dict(networks)


def draw(
    graph: networkx.DiGraph,
    *,
    path: Sequence[Node] | None = None,
    wave: int | None = None,
    ends: Sequence[Node] = (),
) -> Drawing:
    """Boxes and lines of a graph, in units of one position: bare, with a path lit, or at a step of the
    computation (`wave`).

    Boxes of a path are numbered along it, from 0 at its start. With `wave`, each box holds the step at which
    it can be computed at the earliest. `ends` get dashed frames: an input and an output between which there
    is no path.
    """
    lit = list(path or [])
    names, due = rows(graph), steps(graph)
    places = {node: (node[1], RISE * names.index(node[0])) for node in graph}
    along = set(pairwise(lit))
    lines = []
    for a, b in graph.edges:
        points, on_path = _way(a, b, places), (a, b) in along
        head = _head(*points[-2:]) if on_path or a[0] == b[0] else ()
        color = NOW if on_path or due[b] == wave else PALE
        width = 0.075 if on_path else 0.045 if color == NOW else 0.03
        lines.append(Line((a, b), points, color, width, head))
    boxes = [_box(node, places[node], due[node], lit, wave, dashed=node in ends) for node in graph]
    return Drawing(names, sorted(lines, key=lambda line: line.width), boxes)  # bright lines lie above


def waves(networks: Mapping[str, networkx.DiGraph], wave: int) -> Picture:
    """{name: graph}, all at step `wave`."""
    parts = [(f"{name}\n{progress(graph, wave)}", draw(graph, wave=wave)) for name, graph in networks.items()]
    return Picture(
        _sheet(parts),
        "Networks beside each other at the same step of their computation: boxes are computed, being"
        " computed, or not yet computed.",
        CAPTION,
    )


def routes(networks: Mapping[str, networkx.DiGraph], start: int, end: int) -> Picture:
    """{name: graph}, from input `start` to output `end`."""
    parts = []
    for name, graph in networks.items():
        path = shortest(graph, start, end)
        ends = ((rows(graph)[0], start), (rows(graph)[-1], end))
        parts.append((f"{name}\n{length(path)}", draw(graph, path=path, ends=() if path else ends)))
    return Picture(
        _sheet(parts),
        "Networks beside each other, each with the shortest path from the same input to the same output drawn"
        " bold, where there is one.",
        "Numbers count the units along the path. Dashed frames: an input and an output between which there is"
        " no path. Grey circles: the inputs.",
    )


def film(networks: Mapping[str, networkx.DiGraph]) -> bytes:
    """The networks' computation step by step as an animated GIF, with a pause at the end; the same bytes for
    the same networks."""
    last = max(max(steps(graph).values()) for graph in networks.values())
    frames = []
    for wave in range(last + 1):
        frame = Image.open(io.BytesIO(waves(networks, wave).png())).convert("RGB")
        frames.append(frame.resize((frame.width * 2 // 3, frame.height * 2 // 3), Image.Resampling.LANCZOS))
    width, height = frames[0].size
    every = Image.new("RGB", (width, height * len(frames)))  # one palette that suits all frames
    for k, frame in enumerate(frames):
        every.paste(frame, (0, height * k))
    palette = every.quantize(40, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    file, times = io.BytesIO(), [FRAME_MS] * last + [LAST_MS]
    # three times in all: what moves without end disturbs a reader
    options = {
        "append_images": frames[1:],
        "duration": times,
        "loop": 2,
        "optimize": False,
    }
    frames[0].save(file, format="GIF", save_all=True, **options)
    return file.getvalue()


def length(path: Sequence[Any]) -> str:
    """How long a path is, in words.

    >>> length([("input", 0), ("output", 2)]), length([])
    ('1 unit', 'no path')
    """
    units = len(path) - 1
    return "no path" if units < 0 else f"{units} unit{'s' if units != 1 else ''}"


def progress(graph: networkx.DiGraph, wave: int) -> str:
    """How far a network is at a step, in words: '3 of 8 steps' or 'done after 8 steps'."""
    last = max(steps(graph).values())
    return f"{wave} of {_steps(last)}" if wave < last else f"done after {_steps(last)}"


def _steps(count: int) -> str:
    return f"{count} step{'s' if count != 1 else ''}"


def _box(node: Node, center: Point, due: int, lit: list[Node], wave: int | None, *, dashed: bool) -> Box:
    """A node with its colours at a step, or on a path, or bare."""
    if node in lit:
        return Box(node, center, NOW, "black", str(lit.index(node)), 0.07, due == 0)
    if due == 0:
        return Box(node, center, GIVEN, "black", "", 0.08 if dashed else 0.03, True, dashed)
    if wave is None:
        return Box(node, center, "white", "black", "", 0.08 if dashed else 0.03, False, dashed)
    if due == wave:
        return Box(node, center, NOW, "black", str(due), 0.09)
    if due < wave:
        return Box(node, center, DONE, "white", str(due))
    return Box(node, center, "white", "#666666", str(due))


def _way(a: Node, b: Node, places: Mapping[Node, Point]) -> list[Point]:
    """From box a to box b: straight where nothing is in the way, else up through the gap beside a's
    column."""
    (x, y), (u, v), half = places[a], places[b], SIDE / 2
    if y == v:
        right = math.copysign(half, u - x)
        if abs(u - x) <= 1:
            return [(x + right, y), (u - right, v)]
        return [(x, y + half), ((x + u) / 2, y + RISE - half), (u, v + half)]
    up = math.copysign(half, v - y)
    start, end, gap = (x, y + up), (u, v - up), math.copysign(RISE, v - y) - up
    between = [center for center in places.values() if min(y, v) < center[1] < max(y, v)]
    if all(abs(x + (u - x) * (r - y) / (v - y) - i) > half + 0.04 for i, r in between):
        return [start, end]
    beside = x + (0.5 if u >= x else -0.5)
    return [start, (beside, y + gap), (beside, v - gap), end]


def _head(back: Point, tip: Point, size: float = 0.2) -> tuple[Point, ...]:
    """An arrow's head at the end of a line: its tip, then its two corners."""
    far = math.dist(tip, back)
    dx, dy = size * (tip[0] - back[0]) / far, size * (tip[1] - back[1]) / far
    return tip, *((tip[0] - dx - side * dy / 2, tip[1] - dy + side * dx / 2) for side in (1, -1))


@styled
def _sheet(parts: Sequence[tuple[str, Drawing]]) -> Figure:
    """Drawings with their titles, up to three in a row, all at the same scale, in one system of
    coordinates."""
    across = min(3, len(parts))
    wide = LABELS + 1 + max(box.place[0] for _, drawing in parts for box in drawing.boxes)
    unit = min(0.5, 7.8 / (across * wide))  # inches
    lines = max(title.count("\n") + 1 if title else 0 for title, _ in parts)
    levels = [parts[k : k + across] for k in range(0, len(parts), across)]
    most = [max(len(drawing.rows) for _, drawing in level) for level in levels]
    tall = [FOOT + RISE * (rows - 1) + SIDE / 2 + (0.17 * lines + 0.2) / unit for rows in most]
    figure, grid = canvas(width=unit * across * wide, height=unit * sum(tall))
    figure.set_layout_engine("none")
    axes, bottom = grid[0][0], sum(tall)
    bare(axes)
    axes.set_position((0, 0, 1, 1))
    axes.set(xlim=(0, across * wide), ylim=(0, sum(tall)))
    for level, high in zip(levels, tall, strict=True):
        bottom -= high
        for k, (title, drawing) in enumerate(level):
            _paint(axes, drawing, title, (k * wide + LABELS, bottom + FOOT), unit)
    return figure


def _paint(axes: Axes, drawing: Drawing, title: str, corner: Point, unit: float) -> None:
    """A drawing with its first input at `corner`, in axes on which a position takes `unit` inches."""
    points, size, half = 72 * unit, min(11.0, 72 * unit * 0.44), SIDE / 2

    def moved(*places: Point) -> list[Point]:
        return [(x + corner[0], y + corner[1]) for x, y in places]

    for order, line in enumerate(drawing.lines):
        style = {"linewidth": line.width * points, "color": line.color, "solid_joinstyle": "round"}
        axes.plot(*zip(*moved(*line.points), strict=True), zorder=1 + order / 1000, **style)
        if line.head:
            head = Polygon(moved(*line.head), color=line.color, linewidth=0, zorder=1 + order / 1000)
            axes.add_patch(head)
    for box in drawing.boxes:
        ((x, y),) = moved(box.place)
        style = {"facecolor": box.ground, "linewidth": box.frame * points, "zorder": 3}
        style |= {"edgecolor": box.edge, "linestyle": (0, (2, 1)) if box.dashed else "-"}
        square = Rectangle((x - half, y - half), SIDE, SIDE, **style)
        axes.add_patch(Circle((x, y), half, **style) if box.round else square)
        if box.text:
            centred = {"ha": "center", "va": "center_baseline", "zorder": 5}
            axes.text(x, y, box.text, color=box.ink, fontsize=size, **centred)
    beside = {"va": "center", "fontsize": min(10.0, max(7.5, size)), "color": "0.25", "linespacing": 0.95}
    columns = sorted({box.place[0] for box in drawing.boxes})
    for y, name in enumerate(drawing.rows):
        axes.text(*moved((-0.6, RISE * y))[0], textwrap.fill(name, 9), ha="right", **beside)
    axes.text(*moved((-0.6, -0.75))[0], "position", ha="right", **beside)
    for x in columns:
        axes.text(*moved((x, -0.75))[0], str(x), ha="center", **beside)
    above = ((columns[0] + columns[-1]) / 2, RISE * (len(drawing.rows) - 1) + half + 0.07 / unit)
    axes.text(*moved(above)[0], title, ha="center", va="bottom", fontsize=9.5, linespacing=1.1)
