"""A graph with its nodes in their classes' colours and shapes, and its edges as thick as the weights of
attention along them.

A node j that i may look at is an edge from j to i; `weights[i, j]` is the weight that i gives j. `draw` says
what is where and in which colour, in a sheet of WIDE by HIGH; it is painted here by matplotlib, and by the
widget as SVG.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon
from torch import Tensor

from lesson_lib.chapters.c10_graph_attention.graphs import NodeTask
from lesson_lib.charts.picture import CURVES, Picture, bare, canvas, styled
from lesson_lib.masks import check_edges

Point = tuple[float, float]
Pair = tuple[int, int]

WIDE, HIGH = 10.0, 6.2  # of the sheet
NUMBERED = 60  # nodes: in more of them numbers cannot be read
THICK, SCALE = 0.2, 1.3  # the most that a line is thick, and a line of weight 1 where no weight is large
FAINT = 0.01  # weights below this share of the largest are not drawn
# black numbers can be read on all of them
COLORS = (
    CURVES[5],
    CURVES[4],
    CURVES[2],
    CURVES[3],
    CURVES[7],
    "#BBBBBB",
)
EDGE, GIVEN, STRANGER = "#c4c4c4", "#222222", CURVES[1]


class Mark(NamedTuple):
    """A node in its place: its shape as corners (none: a circle of that radius), its colour, its frame;
    `ring` for the chosen one."""

    node: int
    place: Point
    radius: float
    corners: tuple[Point, ...]
    ground: str
    text: str
    frame: float
    dashed: bool = False
    ring: bool = False


class Line(NamedTuple):
    """A piece of an edge from the source's side to the target's, (source, target), as a chain of points, with
    an arrow's head (three points) or none."""

    edge: Pair
    points: tuple[Point, ...]
    color: str
    width: float
    dashed: bool = False
    head: tuple[Point, ...] = ()


class Drawing(NamedTuple):
    """What to paint: the lines, then the nodes over them; and the largest weight (None without weights)."""

    lines: list[Line]
    marks: list[Mark]
    largest: float | None


@styled
def network(
    task: NodeTask,
    *,
    weights: Float[Tensor, "n n"] | None = None,
    node: int | None = None,
    cut: Sequence[Pair] = (),
    guesses: Int[Tensor, " n"] | None = None,
    title: str = "",
) -> Picture:
    """Shapes tell the true classes of a task, colours too or, with `guesses`, the guessed ones (-1 is none: a
    white circle); edges in `cut`, pairs of nodes, are dashed.

    With `weights`, of one head or a mean of heads, edges are as thick as they are; with a `node` only its own
    are drawn, those on nodes without an edge dashed.
    """
    drawing = draw(task, weights=weights, node=node, cut=cut, guesses=guesses)
    above = 0.4 if title else 0.0
    figure, grid = canvas(width=7.6, height=7.6 * (HIGH + 0.5 + above) / WIDE)
    figure.set_layout_engine("none")
    axes = grid[0][0]
    bare(axes)
    axes.set_position((0, 0, 1, 1))
    axes.set(xlim=(0, WIDE), ylim=(-0.5, HIGH + above))
    paint(axes, drawing, 72 * 7.6 / WIDE)
    axes.text(WIDE / 2, HIGH + 0.1, title, ha="center", fontsize=10.5)
    axes.legend(handles=_legend(task, guesses), loc="lower center", ncols=5, frameon=False, fontsize=9)
    if drawing.largest is not None:
        thickest = f"thickest line: {drawing.largest:.2f}"
        axes.text(WIDE - 0.1, -0.42, thickest, ha="right", va="bottom", fontsize=9, color="0.3")
    return Picture(figure, _alt(weights, node, guesses), _caption(drawing, weights, node, guesses))


def draw(
    task: NodeTask,
    *,
    weights: Float[Tensor, "n n"] | None = None,
    node: int | None = None,
    cut: Sequence[Pair] = (),
    guesses: Int[Tensor, " n"] | None = None,
    pointed: Pair | None = None,
) -> Drawing:
    """Where everything of a graph stands, in which colour and how thick; `pointed` is an edge to be marked.
    Arguments as in `network`."""
    places, radius = _laid(task)
    edges, gone = _edges(task), {(min(pair), max(pair)) for pair in cut}
    lines = [_bare(pair, edges, places, radius, gone, pointed) for pair in edges if _first(pair, edges)]
    largest = None
    if weights is not None:
        table, drawn = weights.detach().to("cpu", torch.float64), edges - _both(gone)
        looks = [table[target, source] for source, target in drawn] if node is None else table[node]
        largest = float(max(looks, default=0.0))
        more = (
            _halves(table, drawn, places, radius, largest)
            if node is None
            else _arrows(looks, node, edges, places, radius, largest)
        )
        lines += more
    known, truth = set(task.known.tolist()), task.y.tolist()
    guessed = truth if guesses is None else guesses.tolist()
    marks = [
        _mark(
            k,
            places[k],
            radius,
            truth[k],
            guessed[k],
            numbered=len(truth) <= NUMBERED,
            known=k in known,
            ring=k == node,
        )
        for k in range(len(truth))
    ]
    return Drawing(lines, marks, largest)


def paint(axes: Axes, drawing: Drawing, unit: float) -> None:
    """A drawing in axes on which 1 takes `unit` points."""
    for order, line in enumerate(drawing.lines):
        style = {"color": line.color, "linewidth": line.width * unit, "zorder": 1 + order / 10_000}
        dashes = (
            {"linestyle": (0, (4, 2)) if line.width * unit < 3 else (0, (1.2, 0.7))} if line.dashed else {}
        )
        axes.plot(*zip(*line.points, strict=True), solid_capstyle="butt", **style, **dashes)
        if line.head:
            axes.add_patch(Polygon(line.head, color=line.color, linewidth=0, zorder=style["zorder"]))
    for mark in drawing.marks:
        if mark.ring:
            ring = Circle(mark.place, 1.5 * mark.radius, fill=False, edgecolor=STRANGER, zorder=3)
            ring.set_linewidth(0.08 * unit)
            axes.add_patch(ring)
        style = {"facecolor": mark.ground, "edgecolor": "black", "linewidth": mark.frame * unit, "zorder": 4}
        style |= {"linestyle": (0, (1.5, 1))} if mark.dashed else {}
        shape = Polygon(mark.corners, **style) if mark.corners else Circle(mark.place, mark.radius, **style)
        axes.add_patch(shape)
        if mark.text:
            text_style = {
                "ha": "center",
                "va": "center_baseline",
                "fontsize": 0.95 * mark.radius * unit,
                "zorder": 5,
            }
            axes.text(*mark.place, mark.text, **text_style)


def corners(shape: int, center: Point, radius: float) -> tuple[Point, ...]:
    """The corners of the shape of class number `shape`, of nearly the same area for all; none for class 0, a
    circle."""
    count, turned, size = ((0, 0, 0), (4, 45, 1.25), (3, 90, 1.55), (4, 0, 1.3), (5, 90, 1.2), (6, 0, 1.12))[
        shape
    ]
    x, y = center
    angles = [math.radians(turned + 360 * k / count) for k in range(count)]
    return tuple((x + radius * size * math.cos(a), y + radius * size * math.sin(a)) for a in angles)


def _laid(task: NodeTask) -> tuple[list[Point], float]:
    """The nodes' places on the sheet, and their radius."""
    n = len(task.y)
    places = task.places.detach().to("cpu", torch.float64)
    low, high = places.amin(0), places.amax(0)
    radius = min(0.23, 1.55 / n**0.5)
    room = torch.tensor([WIDE, HIGH], dtype=torch.float64, device="cpu") - 6.6 * radius
    share = ((places - low) / (high - low).clamp(min=1e-12)).where(high > low, 0.5)
    laid = 3.3 * radius + share * room  # with room for a loop
    if n <= NUMBERED:
        _apart(laid, 2.3 * radius)
    return [(x, y) for x, y in laid.tolist()], radius


def _apart(places: Tensor, least: float) -> None:
    """Push nodes that lie on one another apart, so that their numbers can be read."""
    for _ in range(20):
        between = places[:, None] - places
        far = between.norm(dim=-1).clamp(min=1e-9)
        push = (least - far).clamp(min=0).fill_diagonal_(0)
        if not push.any():
            return
        places += 0.5 * (between / far[..., None] * push[..., None]).sum(1)


def _edges(task: NodeTask) -> set[Pair]:
    """Who is a source of whom, without self-loops."""
    check_edges(task.edge_index, len(task.y))
    source, target = task.edge_index.tolist()
    return {(j, i) for j, i in zip(source, target, strict=True) if i != j}


def _both(pairs: set[Pair]) -> set[Pair]:
    return pairs | {pair[::-1] for pair in pairs}


def _first(pair: Pair, edges: set[Pair]) -> bool:
    """Of an edge both ways only one is drawn bare."""
    return pair[0] < pair[1] or pair[::-1] not in edges


def _bare(
    pair: Pair, edges: set[Pair], places: list[Point], radius: float, gone: set[Pair], pointed: Pair | None
) -> Line:
    """An edge without its weights; with a head where it leads one way only."""
    start, end = (places[k] for k in pair)
    ends = (min(pair), max(pair))
    if ends in gone:
        return Line(pair, (start, end), "#888888", 0.03, dashed=True)
    if pointed is not None and ends == (min(pointed), max(pointed)):
        return Line(pair, (start, end), "#F2A98A", 0.3)
    if pair[::-1] in edges:
        return Line(pair, (start, end), EDGE, min(0.03, radius / 8))
    tip = _toward(end, start, 1.25 * radius)
    return Line(pair, (start, tip), "#777777", min(0.03, radius / 8), head=_head(start, tip, 0.8 * radius))


def _scale(largest: float, radius: float) -> float:
    """How thick a line of weight 1 is: less where nodes are small."""
    return min(SCALE, THICK / largest) * min(1.0, radius / 0.15) if largest else 0.0


def _halves(
    weights: Tensor, edges: set[Pair], places: list[Point], radius: float, largest: float
) -> list[Line]:
    """For each edge the half at its target, as thick as the weight that the target gives to the source."""
    lines, table, scale = [], weights.tolist(), _scale(largest, radius)
    for source, target in sorted(edges):
        if (weight := table[target][source]) > FAINT * largest:
            (x, y), (u, v) = places[source], places[target]
            lines.append(Line((source, target), (((x + u) / 2, (y + v) / 2), (u, v)), GIVEN, weight * scale))
    return sorted(lines, key=lambda line: line.width)


def _arrows(
    looks: Tensor, node: int, edges: set[Pair], places: list[Point], radius: float, largest: float
) -> list[Line]:
    """The weights of one node as arrows from where it looks, those on strangers dashed, and the one on itself
    as a loop."""
    lines, scale = [], _scale(largest, radius)
    for source, weight in enumerate(looks.tolist()):
        if weight <= FAINT * largest:
            continue
        stranger = source != node and (source, node) not in edges
        color, width = (STRANGER if stranger else GIVEN), max(0.012, weight * scale)
        if source == node:
            lines.append(Line((node, node), _loop(node, edges, places, radius), color, width))
            continue
        apart = math.dist(places[node], places[source])
        tip = _toward(places[node], places[source], min(1.6 * radius, 0.5 * apart))
        size = min(0.14 + 1.3 * width, 0.5 * apart)
        back = _toward(tip, places[source], 0.8 * size)
        lines.append(
            Line(
                (source, node),
                (places[source], back),
                color,
                width,
                stranger,
                _head(places[source], tip, size),
            )
        )
    return sorted(lines, key=lambda line: line.width)


def _loop(node: int, edges: set[Pair], places: list[Point], radius: float) -> tuple[Point, ...]:
    """A circle that touches the node in the widest gap between its neighbours."""
    x, y = places[node]
    ways = sorted(
        math.atan2(places[source][1] - y, places[source][0] - x) for source, target in edges if target == node
    ) or [0.0]
    gaps = [(after - before, before) for before, after in pairwise([*ways, ways[0] + 2 * math.pi])]
    gap, before = max(gaps)
    across = 0.9 * radius
    far, way = 1.5 * radius + 0.8 * across, before + gap / 2
    u, v = x + far * math.cos(way), y + far * math.sin(way)
    angles = [2 * math.pi * k / 24 for k in range(26)]  # closed, and a little over
    return tuple((u + across * math.cos(a), v + across * math.sin(a)) for a in angles)


def _mark(
    node: int,
    center: Point,
    radius: float,
    truth: int,
    guess: int,
    *,
    numbered: bool,
    known: bool,
    ring: bool,
) -> Mark:
    shape = () if guess < 0 else corners(truth, center, radius)
    ground = "white" if guess < 0 else COLORS[guess]
    wrong, thin = 0 <= guess != truth, min(0.025, radius / 8)
    frame = 2.8 * thin if known else 2.2 * thin if wrong else thin
    return Mark(node, center, radius, shape, ground, str(node) if numbered else "", frame, wrong, ring)


def _toward(start: Point, end: Point, far: float) -> Point:
    """The point `far` from start on the way to end."""
    whole = math.dist(start, end) or 1.0
    return start[0] + (end[0] - start[0]) * far / whole, start[1] + (end[1] - start[1]) * far / whole


def _head(back: Point, tip: Point, size: float) -> tuple[Point, ...]:
    """An arrow's head: its tip, then its two corners."""
    x, y = _toward(tip, back, size)
    dx, dy = tip[0] - x, tip[1] - y
    return tip, (x - dy / 2, y + dx / 2), (x + dy / 2, y - dx / 2)


def _legend(task: NodeTask, guesses: Tensor | None) -> list[Line2D]:
    """A mark for each class, and for the frames that occur."""
    names = ["o", "s", "^", "D", "p", "h"]
    style = {"linestyle": "none", "markersize": 9, "markeredgecolor": "black"}
    marks = [
        Line2D([], [], marker=names[k], markerfacecolor=COLORS[k], label=name, **style)
        for k, name in enumerate(task.classes)
    ]
    if len(task.known):
        known = {"marker": "o", "markerfacecolor": "white", "markeredgewidth": 2.5}
        marks.append(Line2D([], [], label="class is known", **(style | known)))
    return marks


def _alt(weights: Tensor | None, node: int | None, guesses: Tensor | None) -> str:
    what = "A graph, its nodes in the colours and shapes of their classes"
    if guesses is not None:
        what = "A graph, its nodes in the shapes of their classes and the colours of those that were guessed"
    if weights is None:
        return f"{what}, with a line for each edge."
    if node is None:
        return (
            f"{what}; each half of an edge is as thick as the weight that the node at its end gives to the"
            " other."
        )
    return f"{what}; arrows lead to the ringed node from those that it looks at, as thick as its weights."


def _caption(drawing: Drawing, weights: Tensor | None, node: int | None, guesses: Tensor | None) -> str:
    sentences = []
    if guesses is not None and (guesses >= 0).any():
        sentences.append("Shape: the true class. Colour: the guess. Dashed frame: the two differ.")
    if guesses is not None and (guesses < 0).any():
        sentences.append("White: no class is given.")
    if weights is not None and node is None:
        sentences.append(
            "The half of a line next to a node is as thick as the weight that this node gives to the one at"
            " the other end."
        )
    if weights is not None and node is not None:
        sentences.append(
            "Arrows are as thick as the ringed node's weights; the small circle beside it is its weight on"
            " itself."
        )
        if any(line.color == STRANGER for line in drawing.lines):
            sentences.append("Dashed: weight on a node to which no edge leads.")
    return " ".join(sentences)
