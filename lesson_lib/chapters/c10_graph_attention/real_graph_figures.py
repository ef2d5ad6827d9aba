"""The figures of part 10b: where a chapter's edges lead, two ways to deal nodes, networks side by side, and
edges that mislead."""

from collections.abc import Mapping, Sequence

import torch

from lesson_lib import summary
from lesson_lib.chapters.c10_graph_attention import library
from lesson_lib.charts.basic import heatmap, lines
from lesson_lib.charts.picture import Picture, canvas, color, styled
from lesson_lib.experiments import results

GUESS = 1 / 7
KINDS = ("words alone", "GCN", "GAT", "GAT of torch_geometric", "GATv2", "dot products")
SHOWN = ("words alone", "GCN", "GAT", "dot products", "own words beside")


def where_edges_lead() -> Picture:
    """Of the library's graph."""
    graph = library.load()
    source, target = graph.y[graph.edge_index]
    k = len(graph.chapters)
    counts = torch.bincount(target * k + source, minlength=k * k).reshape(k, k).double()
    picture = heatmap(
        counts / counts.sum(-1, keepdim=True),
        alt="A table of seven chapters by seven, bright on its diagonal and dark elsewhere.",
        caption="A row: of the edges to a chapter's nodes, the share that comes from each chapter.",
        rows=list(graph.chapters),
        columns=list(graph.chapters),
        row_axis="edge leads to",
        column_axis="edge comes from",
        limits=(0.0, 1.0),
    )
    picture.figure.axes[0].tick_params(axis="x", rotation=90)
    picture.figure.set_size_inches(5.6, 4.8)
    return picture


def two_deals() -> Picture:
    """Of the stored experiment "real_graph"."""
    rows = results("real_graph")["rows"]
    groups = {}
    for kind in ("words alone", "GCN"):
        groups[f"{kind}, nodes one by one"] = _scores(rows, kind, part="by lot")
        groups[f"{kind}, whole families"] = _scores(rows, kind, part="point", share=0.0)
    return _dots(
        groups,
        axis="right answers",
        limits=(0.0, 1.0),
        line=GUESS,
        alt="Dots for two networks and two deals: dealt one by one, both find far more of the test nodes.",
        caption="A dot is a split and its training; three of each. Dashed: a guess.",
    )


def networks() -> Picture:
    """Of the stored experiment "real_graph"."""
    rows = results("real_graph")["rows"]
    return _dots(
        {kind: _scores(rows, kind, part="point", share=0.0) for kind in KINDS},
        axis="right answers",
        limits=(0.0, 0.7),
        line=GUESS,
        alt="Dots for six networks: words alone lie lowest, the five that hear neighbours lie together.",
        caption="Whole families; a dot is a split and its training; three of each. Dashed: a guess.",
    )


@styled
def misleading() -> Picture:
    """Of the stored experiment "real_graph"."""
    rows = [row for row in results("real_graph")["rows"] if row["part"] == "point" and row["kind"] in SHOWN]
    picture = lines(
        {"right answers": summary.bands(rows, "kind", "share", "score")},
        alt=(
            "Right answers over the share of shuffled edges: words alone are level, all others fall with the"
            " share; GCN, GAT and dot products end below words alone."
        ),
        caption="Median and range of three splits. Grey: a guess.",
        x_axis="share of edges shuffled",
        y_limits=(0.0, 0.65),
        height=3.4,
    )
    (axes,) = picture.figure.axes
    axes.axhline(GUESS, color="0.5", linewidth=1, zorder=0)
    return picture


def where_weights_lie() -> Picture:
    """Of the stored experiment "real_graph", all edges shuffled."""
    rows = [row for row in results("real_graph")["rows"] if row.get("share") == 1.0]
    names = {"same": "a node of its chapter", "other": "a node of another", "own": "itself"}
    return _dots(
        {
            f"{kind}: {name}": [row[column] for row in rows if row["kind"] == kind]
            for kind in ("GAT", "dot products")
            for column, name in names.items()
        },
        axis="weight / even weight",
        limits=(0.0, 4.0),
        line=1.0,
        alt=(
            "Dots for two networks: all weights of GAT lie at an even one; dot products give the node itself"
            " more than three times as much, and nodes of another chapter less than half."
        ),
        caption="First layer, nodes with three edges or more; a dot is a split. Dashed: an even weight.",
    )


def _scores(rows: Sequence[summary.Row], kind: str, **columns: object) -> list[float]:
    wanted = columns | {"kind": kind}
    return [row["score"] for row in rows if all(row.get(name) == value for name, value in wanted.items())]


@styled
def _dots(
    groups: Mapping[str, Sequence[float]],
    *,
    axis: str,
    limits: tuple[float, float],
    line: float,
    alt: str,
    caption: str,
) -> Picture:
    """A row for each group, a dot for each of its values, and a dashed line across all."""
    figure, grid = canvas(width=6.2, height=0.9 + 0.32 * len(groups))
    axes = grid[0][0]
    for y, values in enumerate(groups.values()):
        axes.plot(values, [y] * len(values), "o", color=color(0), markersize=7, alpha=0.75)
    axes.axvline(line, color="black", linestyle="--", linewidth=1, zorder=0)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set(xlim=limits, ylim=(len(groups) - 0.5, -0.5), xlabel=axis)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return Picture(figure, alt, caption)
