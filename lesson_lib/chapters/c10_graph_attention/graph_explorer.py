"""A graph's nodes and whom they look at: choose a node, see its weights and the class it is given, cut an
edge and see both change."""

import html
from typing import NamedTuple

import ipywidgets
import torch
from torch import Tensor
from torch.nn import functional

from lesson_lib import require
from lesson_lib.chapters.c10_graph_attention import graphs_figures
from lesson_lib.chapters.c10_graph_attention.graphs import NodeTask
from lesson_lib.chapters.c10_graph_attention.graphs_figures import (
    COLORS,
    GIVEN,
    HIGH,
    STRANGER,
    WIDE,
    Drawing,
    Pair,
    Point,
)
from lesson_lib.chapters.c10_graph_attention.nodes import NodeClassifier
from lesson_lib.charts.picture import Picture
from lesson_lib.widgets.explorer import Explorer

UNIT = 54  # screen pixels for a unit of the sheet
MOST = 12  # nodes that the table tells one by one
NONE = -1  # the edge to be cut, where none is left
NOTHING = 0.005  # weights below it are written as 0.00

STYLE = """
.ll-told {min-height:4.1em}
.ll-graph {display:flex; flex-wrap:wrap; gap:8px 18px; align-items:flex-start; margin:8px 0}
.ll-box .ll-sheet {display:block; max-width:100%; height:auto; font-family:system-ui, sans-serif}
.ll-box .ll-looks-at th {font-weight:600; text-align:left; padding:1px 10px 1px 0; vertical-align:bottom}
.ll-box .ll-looks-at tbody th {font-weight:400; white-space:nowrap}
.ll-box .ll-looks-at td {border:0; text-align:left; white-space:nowrap; padding:1px 10px 1px 0}
.ll-box .ll-looks-at svg {vertical-align:middle; margin-right:5px}
.ll-box .ll-looks-at .ll-cut {color:#666; text-decoration:line-through}
"""


class Seen(NamedTuple):
    """What the model makes of the graph: tables of weights (n, n), their mean first and then the heads', and
    each node's probabilities."""

    weights: Tensor
    probabilities: Tensor


class GraphExplorer(Explorer):
    """A node classifier at work: choose a node, and a head or the mean of all, see where it looks and which
    class it is given; cut its edges.

    `model` is a NodeClassifier trained on `task`. An edge is cut both ways, and the model reads the graph
    without it; it is not trained again. A table holds the weights before the cuts and now. `node` is the one
    to start with. Raises TypeError where the two are something else, ValueError for a model of other widths,
    for a node that is not there, and for a graph without edges.
    """

    def __init__(self, task: NodeTask, model: NodeClassifier, *, node: int = 0) -> None:
        self.task, self.model = _checked(task, model)
        self.cuts: set[Pair] = set()
        self.before = self.now = self._look()
        if self.before.probabilities.shape[1] != len(task.classes):
            raise ValueError(
                f"model gives {self.before.probabilities.shape[1]} classes, but the task has"
                f" {len(task.classes)}: {', '.join(task.classes)}; make it with n_classes={len(task.classes)}"
            )
        n, heads = len(task.y), len(self.before.weights) - 1
        wide = {"style": {"description_width": "60px"}, "layout": ipywidgets.Layout(width="330px")}
        require.whole(at_least=0, at_most=n - 1, node=node)
        self.node = ipywidgets.IntSlider(node, min=0, max=n - 1, description="node", **wide)
        views = ["mean", *(f"head {k + 1}" for k in range(heads))]
        self.head = ipywidgets.SelectionSlider(options=views, description="weights", **wide)
        # a dropdown would not do: JupyterLab takes its arrow keys for itself
        self.edge = ipywidgets.SelectionSlider(options=[("", NONE)], description="edge", **wide)
        self.cut = ipywidgets.Button(description="cut this edge", icon="scissors")
        self.back = ipywidgets.Button(description="put all back", icon="undo")
        self._offer()
        super().__init__([self.node, self.head, self.edge, self.cut, self.back])
        self.watch(self.head, self.edge)
        self.node.observe(self._moved, names="value")
        self.cut.on_click(self._cut)
        self.back.on_click(self._put_back)

    def weights(self, seen: Seen) -> Tensor:
        """The table of weights (n, n) of the chosen head, or the mean of all."""
        return seen.weights[self.head.index]

    def words(self) -> str:
        """Where the chosen node looks and which class it is given, as sentences; behind cuts what it was
        before, and who else has changed."""
        node = self.node.value
        looks = self.weights(self.now)[node].tolist()
        first, *more = sorted(range(len(looks)), key=lambda k: -looks[k])[:3]
        then = [f"{self._name(k)} ({looks[k]:.2f})" for k in more if looks[k] >= NOTHING]
        behind = f", then at {' and '.join(then)}" if then else ""
        told = (
            f"Node {node} looks most at {self._name(first)} ({looks[first]:.2f}){behind}."
            f" {self._judged(node)}"
        )
        if not self.cuts:
            return told
        label, share = _best(self.before.probabilities[node])
        changed = (
            (self.before.probabilities.argmax(-1) != self.now.probabilities.argmax(-1)).nonzero().flatten()
        )
        others = [str(k) for k in changed.tolist() if k != node]
        listed = ", ".join(others[:8]) + (f" and {len(others) - 8} more" if len(others) > 8 else "")
        return f"{told} Before the cuts: {self.task.classes[label]}, {share:.2f}. " + (
            f"Other nodes whose class changes: {listed}." if others else "No other node changes its class."
        )

    def draw(self) -> str:
        node, edge = self.node.value, self.edge.value
        drawing = graphs_figures.draw(
            self.task,
            weights=self.weights(self.now),
            node=node,
            cut=sorted(self.cuts),
            guesses=self.now.probabilities.argmax(-1),
            pointed=None if edge == NONE else (node, edge),
        )
        said = html.escape(self.words())
        return (
            f"<style>{STYLE}</style><p role='status' class='ll-told'>{said}</p>"
            f"<div class='ll-graph'>{_svg(drawing, said)}{self._table()}</div>{self._legend()}"
        )

    def still(self) -> Picture:
        weights, guesses = self.weights(self.now), self.now.probabilities.argmax(-1)
        return graphs_figures.network(
            self.task, weights=weights, node=self.node.value, cut=sorted(self.cuts), guesses=guesses
        )

    def _look(self) -> Seen:
        """The model on the graph without the edges that are cut."""
        place = next(self.model.parameters()).device
        source, target = self.task.edge_index.tolist()
        kept = [
            k
            for k, (j, i) in enumerate(zip(source, target, strict=True))
            if (min(i, j), max(i, j)) not in self.cuts
        ]
        with torch.inference_mode():
            looked = self.model.look(self.task.x.to(place), self.task.edge_index[:, kept].to(place))
        shares = functional.log_softmax(looked.logits, -1).exp()
        tables = looked.weights.cpu().double()
        return Seen(torch.cat([tables.mean(0, keepdim=True), tables]), shares.cpu().double())

    def _partners(self, node: int) -> list[int]:
        """Nodes that are joined to this one, by an edge that is not cut."""
        ends = {
            (min(pair), max(pair)) for pair in self.task.edge_index.T.tolist() if node in pair
        } - self.cuts
        return sorted({a if b == node else b for a, b in ends} - {node})

    def _offer(self) -> None:
        """Let the chosen node's edges be cut, those that are left."""
        node, partners = self.node.value, self._partners(self.node.value)
        was = self.edge.value
        self.edge.options = [(f"{node} – {k}", k) for k in partners] or [("none is left", NONE)]
        self.edge.value = was if was in partners else self.edge.options[0][1]
        self.cut.disabled, self.back.disabled = not partners, not self.cuts

    def _moved(self, _change: dict | None = None) -> None:
        self.edge.unobserve(self.refresh, names="value")  # so that it is drawn once
        self._offer()
        self.edge.observe(self.refresh, names="value")
        self.refresh()

    def _cut(self, _button: ipywidgets.Button) -> None:
        node, partner = self.node.value, self.edge.value
        if partner != NONE:
            self.cuts.add((min(node, partner), max(node, partner)))
            self.now = self._look()
            self._moved()

    def _put_back(self, _button: ipywidgets.Button) -> None:
        self.cuts, self.now = set(), self.before
        self._moved()

    def _name(self, node: int) -> str:
        return "itself" if node == self.node.value else str(node)

    def _judged(self, node: int) -> str:
        """Which class the node is given, and whether that is right."""
        label, share = _best(self.now.probabilities[node])
        truth, known = self.task.y[node].item(), node in self.task.known.tolist()
        verdict = "right" if label == truth else f"wrong, it is {self.task.classes[truth]}"
        given = " (this class was given for training)" if known else ""
        return f"It is taken for {self.task.classes[label]}, probability {share:.2f}: {verdict}{given}."

    def _table(self) -> str:
        """The nodes that the chosen one looks at, with their weights before the cuts and now, those with the
        largest first."""
        node = self.node.value
        now, before = (self.weights(seen)[node].tolist() for seen in (self.now, self.before))
        partners, largest = self._partners(node), max(*now, *before)
        gone = {a if b == node else b for a, b in self.cuts if node in (a, b)}
        near = {node, *partners, *gone}
        shown = [k for k in range(len(now)) if k in near or max(now[k], before[k]) >= 1e-6]
        shown.sort(key=lambda k: (-before[k], k))
        rows = []
        for k in shown[:MOST]:
            what = "itself" if k == node else self.task.classes[self.task.y[k].item()]
            what += "" if k in near else ", no edge"
            mark = ' class="ll-cut"' if k in gone else ""
            bar = _bar(now[k] / largest, GIVEN if k in near else STRANGER)
            rows.append(
                f'<tr><th scope="row"{mark}>{k}'
                f" {html.escape(what)}</th><td>{bar}{now[k]:.2f}</td><td>{before[k]:.2f}</td></tr>"
            )
        if rest := shown[MOST:]:
            sums = [sum(side[k] for k in rest) for side in (now, before)]
            rows.append(
                f'<tr><th scope="row">{len(rest)}'
                f" more</th><td>{_bar(0, GIVEN)}{sums[0]:.2f}</td><td>{sums[1]:.2f}</td></tr>"
            )
        top = "".join(f'<th scope="col">{head}</th>' for head in ("looks at", "weight now", "before cuts"))
        return (
            f'<table class="ll-looks-at"><thead><tr>{top}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        )

    def _legend(self) -> str:
        samples = " &nbsp; ".join(
            f"{_sample(k)} {html.escape(name)}" for k, name in enumerate(self.task.classes)
        )
        return (
            f"<p>{samples} &nbsp; Shape: the true class. Colour: the class it is taken for; dashed frame"
            " where that is wrong. Thick frame: the class was given for training. Arrows: the ringed node's"
            " weights, in the first layer; dashed orange where no edge leads. Light orange: the edge to be"
            " cut; dashed grey: cut. The small circle beside the ring: its weight on itself.</p>"
        )


def _checked(task: NodeTask, model: NodeClassifier) -> tuple[NodeTask, NodeClassifier]:
    if not isinstance(task, NodeTask):
        raise TypeError(f"task must be a graphs.NodeTask, got {type(task).__name__}; take graphs.karate()")
    if not isinstance(model, NodeClassifier):
        raise TypeError(f"model must be a nodes.NodeClassifier, got {type(model).__name__}")
    if not task.edge_index.numel():
        raise ValueError("task must have at least one edge to be cut, got none")
    return task, model


def _best(shares: Tensor) -> tuple[int, float]:
    """The most probable class and its probability."""
    label = int(shares.argmax())
    return label, shares[label].item()


def _svg(drawing: Drawing, label: str) -> str:
    """A drawing as SVG; it shrinks where the page is narrower."""
    parts = []
    for line in drawing.lines:
        points = _points(line.points)
        dashes = (
            f' stroke-dasharray="{0.06 + 1.2 * line.width:.3f} {0.05 + 0.6 * line.width:.3f}"'
            if line.dashed
            else ""
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{line.color}"'
            f' stroke-width="{line.width:.3f}"{dashes}/>'
        )
        if line.head:
            parts.append(f'<polygon points="{_points(line.head)}" fill="{line.color}"/>')
    for mark in drawing.marks:
        x, y = mark.place[0], HIGH - mark.place[1]
        if mark.ring:
            parts.append(
                f'<circle class="ll-ring" cx="{x:.2f}" cy="{y:.2f}" r="{1.5 * mark.radius:.3f}" fill="none"'
                f' stroke="{STRANGER}" stroke-width="0.08"/>'
            )
        dashes = ' stroke-dasharray="0.08 0.05"' if mark.dashed else ""
        style = f'fill="{mark.ground}" stroke="#000" stroke-width="{mark.frame:.3f}"{dashes}'
        shape = (
            f'<polygon points="{_points(mark.corners)}" {style}/>'
            if mark.corners
            else f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{mark.radius:.3f}" {style}/>'
        )
        size = 0.95 * mark.radius
        text = (
            f'<text x="{x:.2f}" y="{y + 0.36 * size:.2f}" text-anchor="middle"'
            f' font-size="{size:.2f}">{mark.text}</text>'
            if mark.text
            else ""
        )
        parts.append(f"<g><title>node {mark.node}</title>{shape}{text}</g>")
    return (
        f'<svg class="ll-sheet" role="img" aria-label="{label}" width="{round(UNIT * WIDE)}" viewBox="0 0'
        f' {WIDE:g} {HIGH:g}">'
        f"{''.join(parts)}</svg>"
    )


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{x:.3f},{HIGH - y:.3f}" for x, y in points)


def _bar(share: float, tone: str) -> str:
    """A weight as a bar, the largest one full."""
    return (
        '<svg width="82" height="12" aria-hidden="true"><rect width="81" height="11" x="0.5" y="0.5"'
        f' fill="#f3f3f3"/><rect width="{80 * share:.1f}" height="11" x="0.5" y="0.5" fill="{tone}"/></svg>'
    )


def _sample(shape: int) -> str:
    """A class' shape in its colour."""
    corners = graphs_figures.corners(shape, (8, 8), 5)
    style = f'fill="{COLORS[shape]}" stroke="#000"'
    points = " ".join(f"{x:.1f},{16 - y:.1f}" for x, y in corners)
    drawn = f'<polygon points="{points}" {style}/>' if corners else f'<circle cx="8" cy="8" r="5" {style}/>'
    return f'<svg width="16" height="16" aria-hidden="true" style="vertical-align:middle">{drawn}</svg>'
