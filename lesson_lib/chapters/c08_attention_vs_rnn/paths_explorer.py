"""Networks as graphs: choose an input and an output and see the path between them; go step by step and see
what can be computed when."""

import html
import textwrap
from collections.abc import Mapping

import ipywidgets
import networkx

from lesson_lib.chapters.c08_attention_vs_rnn import paths_figures
from lesson_lib.chapters.c08_attention_vs_rnn.paths_figures import FOOT, LABELS, RISE, SIDE, Drawing, Node
from lesson_lib.charts.picture import Picture
from lesson_lib.widgets.explorer import Explorer

WIDE, ROOM = 46, 291  # screen pixels from position to position; for a network where two stand side by side
BESIDE = 3  # networks that are played together

STYLE = """
.ll-told {min-height:2.7em}
.ll-nets {display:flex; flex-wrap:wrap; gap:8px 12px; align-items:flex-end; margin:8px 0}
.ll-box .ll-net {display:block; max-width:100%; height:auto; font-family:system-ui, sans-serif}
.ll-box .ll-given th {font-weight:400; text-align:left; padding:2px 12px 2px 0; white-space:nowrap}
.ll-box .ll-given thead th {font-weight:600; white-space:normal; vertical-align:bottom}
.ll-box .ll-given td {border:0; text-align:left; padding:2px 12px 2px 0; white-space:nowrap}
.ll-box .ll-given .ll-chosen th, .ll-box .ll-given .ll-chosen td {background:#f3e3d8; font-weight:600}
"""


class PathExplorer(Explorer):
    """The shortest path from an input to an output: choose a network and the two positions, and its units
    light up, numbered.

    `networks` are {name: graph} as `experiments.paths.network` makes them, all on as many tokens. A table
    tells how long the path of the same pair is in every one of them. Raises TypeError where they are no
    mapping of directed graphs, ValueError where there are none, where they differ in length, and for a graph
    that cannot be drawn.
    """

    def __init__(self, networks: Mapping[str, networkx.DiGraph]) -> None:
        self.networks = paths_figures.checked(networks)
        sizes = {name: (len(_row(graph, 0)), len(_row(graph, -1))) for name, graph in self.networks.items()}
        if len({size for pair in sizes.values() for size in pair}) > 1:
            raise ValueError(
                f"networks must all read as many tokens as they give outputs, got (inputs, outputs) {sizes}"
            )
        self.widest = {name: _widest(graph) for name, graph in self.networks.items()}
        n = next(iter(sizes.values()))[0]
        style = {"description_width": "70px"}
        wide = {"style": style, "layout": ipywidgets.Layout(width="296px")}
        # a dropdown would not do: JupyterLab takes its arrow keys for itself
        self.network = ipywidgets.SelectionSlider(
            options=list(self.networks),
            description="network",
            readout=False,  # the words below begin with it
            style=style,
            layout=ipywidgets.Layout(width="470px"),
        )
        self.start = ipywidgets.IntSlider(0, min=0, max=n - 1, description="input", **wide)
        self.end = ipywidgets.IntSlider(n - 1, min=0, max=n - 1, description="output", **wide)
        super().__init__([self.network, self.start, self.end])
        self.watch(self.network, self.start, self.end)

    def path(self, network: str) -> list[Node]:
        """The shortest path between the chosen positions in one of the networks, as nodes; empty where there
        is none."""
        return paths_figures.shortest(self.networks[network], self.start.value, self.end.value)

    def words(self) -> str:
        """How the chosen input reaches the chosen output, as a sentence."""
        path, name = self.path(self.network.value), self.network.value
        there = f"from input {self.start.value} to output {self.end.value}"
        if not path:
            return (
                f"{name}: no path leads {there}. Whatever stands at input {self.start.value}, this output"
                " stays the same."
            )
        units = " → ".join(f"{row}[{position}]" for row, position in path[1:])
        return f"{name}: the shortest path {there} is {paths_figures.length(path)} long: {units}."

    def draw(self) -> str:
        graph, path = self.networks[self.network.value], self.path(self.network.value)
        drawing = paths_figures.draw(graph, path=path, ends=() if path else self._ends(graph))
        return (
            f"<style>{STYLE}</style><p role='status'"
            f" class='ll-told'>{html.escape(self.words())}</p>{_svg(drawing, WIDE, self.words())}"
            f"{self._table()}<p>Signals"
            " run upwards, and along the arrows. Orange: the path, its units numbered. Dashed frames: an"
            " input and an output between which there is no path. Grey circles: the inputs.</p>"
        )

    def still(self) -> Picture:
        return paths_figures.routes(self.networks, self.start.value, self.end.value)

    def _ends(self, graph: networkx.DiGraph) -> tuple[Node, Node]:
        names = paths_figures.rows(graph)
        return (names[0], self.start.value), (names[-1], self.end.value)

    def _table(self) -> str:
        """The path of the same pair in every network, and the longest of that network's."""
        lines = []
        for name in self.networks:
            mark = ' class="ll-chosen"' if name == self.network.value else ""
            units = paths_figures.length(self.path(name))
            lines.append(
                f"<tr{mark}><th"
                f' scope="row">{html.escape(name)}</th><td>{units}</td><td>{self.widest[name]}</td></tr>'
            )
        top = "".join(
            f'<th scope="col">{text}</th>' for text in ("network", "this pair", "the longest of all pairs")
        )
        return f'<table class="ll-given"><thead><tr>{top}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


class WavePlayer(Explorer):
    """What can be computed when: networks beside each other, played step by step, each unit as soon as all
    that it waits for is there.

    `networks` are one to three of {name: graph} as `experiments.paths.network` makes them. Raises TypeError
    where they are no mapping of directed graphs, ValueError where there are none or too many, and for a graph
    that cannot be drawn.
    """

    def __init__(self, networks: Mapping[str, networkx.DiGraph]) -> None:
        self.networks = paths_figures.checked(networks)
        if len(self.networks) > BESIDE:
            raise ValueError(
                f"networks must be at most {BESIDE} to stand beside each other, got {len(self.networks)};"
                " choose some of them"
            )
        self.due = {name: paths_figures.steps(graph) for name, graph in self.networks.items()}
        last = max(max(due.values()) for due in self.due.values())
        self.play = ipywidgets.Play(value=0, min=0, max=last, interval=900, description="play")
        self.step = ipywidgets.IntSlider(0, min=0, max=last, description="step")
        super().__init__([self.play, self.step])
        ipywidgets.link((self.play, "value"), (self.step, "value"))
        self.watch(self.step)

    def words(self) -> str:
        """How far each network is, as sentences."""
        told = []
        for name, due in self.due.items():
            units = sum(step > 0 for step in due.values())
            done = sum(0 < step <= self.step.value for step in due.values())
            told.append(
                f"{name}: {done} of {units} units,"
                f" {paths_figures.progress(self.networks[name], self.step.value)}."
            )
        return " ".join(told)

    def draw(self) -> str:
        parts = []
        for name, graph in self.networks.items():
            drawing, title = paths_figures.draw(graph, wave=self.step.value), html.escape(name)
            label = f"{name}, {paths_figures.progress(graph, self.step.value)}"
            unit = ROOM / _wide(drawing)
            parts.append(f"<div><b>{title}</b><br>{_svg(drawing, unit, label)}</div>")
        return (
            f"<style>{STYLE}</style><p role='status' class='ll-told'><b>Step {self.step.value}.</b>"
            f" {html.escape(self.words())}</p><div"
            f" class='ll-nets'>{''.join(parts)}</div><p>{paths_figures.CAPTION}</p>"
        )

    def still(self) -> Picture:
        return paths_figures.waves(self.networks, self.step.value)


def _widest(graph: networkx.DiGraph) -> str:
    """The largest of the shortest paths over all pairs that have one, in words."""
    lengths = [networkx.single_source_shortest_path_length(graph, node) for node in _row(graph, 0)]
    most = max((found[node] for found in lengths for node in _row(graph, -1) if node in found), default=-1)
    return paths_figures.length(range(most + 1))


def _row(graph: networkx.DiGraph, row: int) -> list[Node]:
    name = paths_figures.rows(graph)[row]
    return [node for node in graph if node[0] == name]


def _wide(drawing: Drawing) -> float:
    """A drawing's width, in positions."""
    return LABELS + max(box.place[0] for box in drawing.boxes) + 0.7


def _svg(drawing: Drawing, unit: float, label: str) -> str:
    """A drawing as SVG, `unit` screen pixels from position to position; it shrinks where the page is
    narrower."""
    wide, top = _wide(drawing), RISE * (len(drawing.rows) - 1) + SIDE
    size, small = 0.36, 12 / unit
    parts = []
    for line in drawing.lines:
        points = " ".join(f"{x:g},{top - y:g}" for x, y in line.points)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{line.color}" stroke-width="{line.width}"/>'
        )
        if line.head:
            corners = " ".join(f"{x:.3f},{top - y:.3f}" for x, y in line.head)
            parts.append(f'<polygon points="{corners}" fill="{line.color}"/>')
    for box in drawing.boxes:
        x, y = box.place[0], top - box.place[1]
        dashes = ' stroke-dasharray="0.14 0.08"' if box.dashed else ""
        style = f'fill="{box.ground}" stroke="{box.edge}" stroke-width="{box.frame}"{dashes}'
        corner = f'x="{x - SIDE / 2:g}" y="{y - SIDE / 2:g}" width="{SIDE}" height="{SIDE}"'
        shape = (
            f'<circle cx="{x}" cy="{y:g}" r="{SIDE / 2}" {style}/>'
            if box.round
            else f"<rect {corner} {style}/>"
        )
        title = f"<title>{html.escape(box.node[0])} {box.node[1]}</title>"
        text = (
            f'<text x="{x}" y="{y + 0.13:g}" text-anchor="middle" font-size="{size}"'
            f' fill="{box.ink}">{box.text}</text>'
        )
        parts.append(f"<g>{title}{shape}{text if box.text else ''}</g>")
    beside = f'font-size="{small:g}" fill="#444"'
    for k, name in enumerate(drawing.rows):
        words = textwrap.wrap(name, 9)
        for i, part in enumerate(words):
            y = top - RISE * k + small * (i - (len(words) - 1) / 2 + 0.35)
            parts.append(f'<text x="-0.5" y="{y:g}" text-anchor="end" {beside}>{html.escape(part)}</text>')
    parts.append(f'<text x="-0.5" y="{top + 0.87:g}" text-anchor="end" {beside}>position</text>')
    for x in sorted({box.place[0] for box in drawing.boxes}):
        parts.append(f'<text x="{x}" y="{top + 0.87:g}" text-anchor="middle" {beside}>{x}</text>')
    high = top + FOOT - 0.1
    return (
        f'<svg class="ll-net" role="img" aria-label="{html.escape(label)}" width="{round(unit * wide)}" '
        f'viewBox="{-LABELS} 0 {wide:g} {high:g}">{"".join(parts)}</svg>'
    )
