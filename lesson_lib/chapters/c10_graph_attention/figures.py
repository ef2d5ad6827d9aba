"""The figures of chapter 10: attention along edges, step by step and against its rivals; a score of 0 against
a weight of 0."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from torch import Tensor

from lesson_lib import summary
from lesson_lib.charts.basic import draw_table
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.marks import note
from lesson_lib.charts.picture import CURVES, MARKERS, Picture, bare, canvas, color, figure, styled, trim

Row = Mapping[str, Any]
DASHES = ["-", "--", "-.", ":"]
ON_EDGES, ON_STRANGERS = CURVES[0], CURVES[4]
STEPS = (  # of a message: the column's head, what is written under it
    ("score", "e"),
    ("weight", "softmax(e)"),
    ("value", "v"),
    ("message", "weight · v"),
)
PARTS = {"point": "", "even": ", weights held even"}  # of experiments.club, as they are named behind the kind


@figure(
    "How a node is computed: a line for each node that it might look at, with score, weight, value and"
    " message, and arrows that add the messages up in the node.",
    "An arrow is as thick as its weight. Without an edge the score is −∞, so the weight is 0 and no"
    " message comes.",
)
def messages(
    scores: Sequence[float],
    weights: Sequence[float],
    values: Sequence[float],
    *,
    names: Sequence[str],
    node: str,
) -> Figure:
    """A number of each for every name; a score of -inf stands for no edge."""
    sums = [weight * value for weight, value in zip(weights, values, strict=True)]
    count = len(names)
    figure, grid = canvas(width=7.6, height=1.1 + 0.58 * count)
    figure.set_layout_engine("none")
    axes, middle = grid[0][0], (count - 1) / 2
    bare(axes)
    axes.set_position((0, 0, 1, 1))
    high = (1.1 + 0.58 * count) / 0.58
    axes.set(xlim=(0, 7.6 / 0.58), ylim=(count - 0.35, count - 0.35 - high))
    columns = (3.0, 4.9, 6.8, 8.8)
    axes.text(1.0, -1.35, "node j", ha="center", fontsize=10, fontweight="bold")
    for x, (head, formula) in zip(columns, STEPS, strict=True):
        axes.text(x, -1.35, head, ha="center", fontsize=10, fontweight="bold")
        axes.text(x, -0.85, formula, ha="center", fontsize=9, color="0.35", style="italic")
    for y, name in enumerate(names):
        edge = scores[y] != -math.inf
        _circle(axes, (1.0, y), name, CURVES[5] if edge else "#E4E4E4")
        numbers = (scores[y], weights[y], values[y], sums[y])
        for x, number in zip(columns, numbers, strict=True):
            axes.text(x, y, _number(number), ha="center", va="center", color="black" if edge else "0.4")
        axes.text(7.8, y, "→", ha="center", va="center", color="black" if edge else "0.7")
        if not edge:
            axes.text(1.95, y, "no edge", ha="center", va="center", fontsize=9, color="0.4")
            continue
        arrow = {"arrowstyle": "-|>", "mutation_scale": 10 + 8 * weights[y], "color": "#222222"}
        ends = {"posA": (9.4, y), "posB": (11.0, middle + 0.25 * (y - middle))}
        axes.add_patch(FancyArrowPatch(**ends, linewidth=0.8 + 6 * weights[y], shrinkB=4, **arrow))
    _circle(axes, (11.5, middle), node, "white", ring=True)
    axes.text(11.5, middle + 0.85, f"{_number(sum(sums))}", ha="center", va="center", fontweight="bold")
    axes.text(11.5, -1.35, "output", ha="center", fontsize=10, fontweight="bold")
    axes.text(11.5, -0.85, "sum of messages", ha="center", fontsize=9, color="0.35", style="italic")
    return figure


@figure(
    "Masks of graphs beside each other: a dark cell where the node of the row may look at the node of the"
    " column.",
    "Dark: i may look at j. A self-loop is a cell on the diagonal.",
)
def masks(tables: Mapping[str, Bool[Tensor, "n n"]]) -> Figure:
    """{name: mask}."""
    figure, grid = canvas(1, len(tables), width=min(8.0, 2.7 * len(tables) + 0.4), height=3.4)
    for axes, (name, table) in zip(grid[0], tables.items(), strict=True):
        n = len(table)
        colors = ListedColormap(["#EFEFEF", CURVES[0]])
        axes.imshow(table.cpu().numpy(), cmap=colors, vmin=0, vmax=1, interpolation="nearest")
        if n <= 40:
            for k in range(n + 1):
                axes.axhline(k - 0.5, color="white", linewidth=0.6)
                axes.axvline(k - 0.5, color="white", linewidth=0.6)
        axes.spines[:].set_visible(False)
        axes.set_title(name, fontsize=9.5)
        axes.set_xlabel("looks at j")
        ticks = range(0, n, next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if n / step <= 10))
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
    grid[0][0].set_ylabel("node i")
    trim(figure)
    return figure


@figure(
    "Accuracy of kinds of models on nodes whose class was not given, a panel for each task, a line for"
    " each kind, with a dashed line at the accuracy of guessing.",
    "A mark for each seed; the upright bar is their mean. Counted are nodes whose class was not given.",
)
def kinds(rows: Sequence[Row], chance: Mapping[str, float]) -> Figure:
    """Rows "point" and "even" of `experiments.club`; {task: accuracy of guessing}, in the order of the
    panels."""
    rows = [row for row in rows if row.get("part") in PARTS]
    panels = {task: [row for row in rows if row["task"] == task] for task in chance}
    kinds = dict.fromkeys(row["kind"] for of_task in panels.values() for row in of_task)
    there = {(row["kind"], row["part"]) for of_task in panels.values() for row in of_task}
    names = [(kind, part) for kind in kinds for part in PARTS if (kind, part) in there]
    width = min(8.0, 2.2 + 2.6 * len(panels))
    figure, grid = canvas(1, len(panels), width=width, height=1.1 + 0.34 * len(names), sharey=True)
    for axes, (task, of_task) in zip(grid[0], panels.items(), strict=True):
        for y, name in enumerate(names):
            mine = [row["accuracy"] for row in of_task if (row["kind"], row["part"]) == name]
            _swarm(axes, mine, y, color(y % 7), MARKERS[y % len(MARKERS)])
        axes.axvline(chance[task], color="0.4", linestyle="--", linewidth=1, zorder=0)
        note(axes, "guessing", x=chance[task], shift=(0, 2), ha="center", color="0.35")
        axes.set_xlim(-0.03, 1.06)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        axes.set_title(task.replace(", ", ",\n"), loc="left", pad=16)
        axes.set_xlabel("accuracy")
        axes.set_yticks(range(len(names)), [f"{kind}{PARTS[part]}" for kind, part in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="y", color="0.92")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
    return figure


@figure(
    "A panel for each rule, a bar for each node: how much of its weight goes to its neighbours and to"
    " itself, and how much to nodes to which it has no edge.",
    "A bar for each node; its weights sum to 1. The number is the mean over the nodes.",
)
def shares(weights: Mapping[str, Float[Tensor, "n n"]], mask: Bool[Tensor, "n n"]) -> Figure:
    """{name: weights (n, n)}; `mask[i, j]` is True where i may look at j."""
    n, seen = len(mask), mask.cpu()
    tables = {name: table.detach().to("cpu", torch.float64) for name, table in weights.items()}
    order = seen.sum(-1).argsort(stable=True)
    figure, grid = canvas(1, len(tables), width=min(8.0, 1.2 + 3.4 * len(tables)), height=3.3, sharey=True)
    for axes, (name, table) in zip(grid[0], tables.items(), strict=True):
        near = (table * seen).sum(-1)[order].tolist()
        far = (table * ~seen).sum(-1)[order].tolist()
        style = {"width": 0.86, "linewidth": 0}
        axes.bar(range(n), near, color=ON_EDGES, label="neighbours and itself", **style)
        style |= {"edgecolor": "#6b4a00", "hatch": "////"}
        axes.bar(range(n), far, bottom=near, color=ON_STRANGERS, label="strangers: no edge", **style)
        axes.set_title(f"{name}\nstrangers get {sum(far) / n:.2f} of the weight", loc="left")
        axes.set_xlabel("nodes, those with few edges first")
        axes.set_xlim(-0.6, n - 0.4)
        axes.set_ylim(0, 1.0)
        axes.set_xticks([])
    grid[0][0].set_ylabel("weight, summed")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


@figure(
    "Over how many nodes the weights of each node are spread, against how many it may look at, a mark for"
    " each node and head; a dashed line where all of them get the same weight.",
    "Spread over: e to the power of the weights' entropy. On the dashed line all weights of a node are"
    " equal.",
)
def evenness(weights: Mapping[str, Float[Tensor, "h n n"]], mask: Bool[Tensor, "n n"]) -> Figure:
    """{name: weights (h, n, n)}; spread is exp(entropy)."""
    tables = {name: table.detach().to("cpu", torch.float64) for name, table in weights.items()}
    degrees = mask.cpu().sum(-1)
    most = int(degrees.max())
    figure, grid = canvas(1, len(tables), width=min(8.0, 0.8 + 2.9 * len(tables)), height=3.5, sharey=True)
    for axes, (name, table) in zip(grid[0], tables.items(), strict=True):
        spread = torch.special.entr(table).sum(-1).exp()
        axes.plot([1, most], [1, most], color="0.5", linewidth=1, linestyle="--", zorder=0)
        for head, nodes in enumerate(spread.tolist()):
            style = {"color": color(head), "marker": MARKERS[head % len(MARKERS)], "alpha": 0.75}
            axes.plot(
                degrees.tolist(), nodes, linestyle="none", markersize=5, label=f"head {head + 1}", **style
            )
        axes.set_title(name, loc="left")
        axes.set_xlabel("nodes it may look at")
        axes.set(xlim=(0, most + 1), ylim=(0, most + 1))
        axes.yaxis.get_major_locator().set_params(integer=True)
    grid[0][0].set_ylabel("nodes its weights are spread over")
    legend = {
        label: mark for axes in grid[0] for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=6, frameon=False)
    return figure


@figure(
    "Accuracy over the share of edges that lead to a node of the same class, a curve for each kind of"
    " model, with a dashed line at the accuracy of guessing.",
    "A mark for each seed, a line through their means; marks of one share stand side by side. On the left"
    " most neighbours are of another class.",
    width=6.8,
    height=4.0,
    x="share of edges within a class",
    y="accuracy",
)
def over_homophily(axes: Axes, rows: Sequence[Row], chance: float) -> None:
    """Rows "within" of `experiments.club`, and the accuracy of guessing."""
    rows = [row for row in rows if row.get("part") == "within"]
    curves = summary.gathered(rows, "kind", "within", "accuracy")
    for k, (name, cases) in enumerate(curves.items()):
        aside = 0.006 * (k - (len(curves) - 1) / 2)
        style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 4.5}
        xs = sorted(cases)
        means = [statistics.fmean(cases[x]) for x in xs]
        axes.plot([x + aside for x in xs], means, label=name, linestyle=DASHES[k % 4], **style)
        dots = [(x + aside, y) for x in xs for y in cases[x]]
        axes.plot(*zip(*dots, strict=True), linestyle="none", alpha=0.4, **style)
    axes.axhline(chance, color="0.4", linestyle="--", linewidth=1, zorder=0)
    note(axes, "guessing", y=chance, va="center", color="0.35")
    axes.set_xticks(sorted({row["within"] for row in rows}))
    axes.set_ylim(top=1.02)
    axes.figure.legend(loc="outside lower center", ncols=min(4, len(curves)), frameon=False)


@styled
def sparse_dense(rows: Sequence[Row], gpu: Gpu | None = None) -> Picture:
    """Rows of the CPU with "kind", "n", "seconds" and "mib"; `gpu` as `seconds_beside` takes it."""
    rows = [row for row in rows if {"kind", "n", "seconds", "mib"} <= row.keys()]
    picture = seconds_beside(
        summary.bands(rows, "kind", "n", "seconds"),
        gpu,
        others={"MiB at the peak": summary.bands(rows, "kind", "n", "mib")},
        alt=(
            "Seconds and memory of forms of graph attention over the number of nodes, all axes logarithmic, a"
            " curve for each form; thin grey lines rise as the number of nodes and as its square."
        ),
        caption=(
            "All axes are logarithmic: a power of n is a straight line, and its steepness is the power. Grey:"
            " how n and n² rise."
        ),
        x_axis="nodes n",
    )
    for axes in picture.figure.axes[:2]:
        _guides(axes)
        axes.tick_params(axis="x", labelrotation=45)
    return picture


@figure(
    "Maps of scores, a row for each query and a column for each key; in each row the highest score is"
    " framed.",
    "Framed: the key that a query scores highest. Where all frames stand in one column, all queries like"
    " the same key best.",
)
def static(tables: Mapping[str, Float[Tensor, "n m"]]) -> Figure:
    """{kind: scores (n, m)}."""
    shown = {name: table.detach().to("cpu", torch.float64) for name, table in tables.items()}
    figure, grid = canvas(1, len(shown), width=min(8.0, 3.6 * len(shown) + 0.4), height=4.0)
    for axes, (name, table) in zip(grid[0], shown.items(), strict=True):
        small = table.numel() <= 64 and table.shape[1] * len(shown) <= 16
        low, high = table.min().item(), table.max().item()
        image = draw_table(axes, table, low=low, high=high, decimals=1 if small else None)
        for i, j in enumerate(table.argmax(-1).tolist()):
            frame = {"fill": False, "edgecolor": CURVES[1], "linewidth": 2.5, "zorder": 3}
            axes.add_patch(Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, **frame))
        axes.set_title(name)
        axes.set_xlabel("keys j")
        axes.set_xticks(range(table.shape[1]))
        axes.set_yticks(range(table.shape[0]))
        if not small:
            figure.colorbar(image, ax=axes, label="score", fraction=0.05)
    grid[0][0].set_ylabel("queries i")
    trim(figure)
    return figure


@figure(
    "A small graph three times: as circles with arrows, as a list of sources above targets, and as a"
    " table with a dark cell for each edge.",
    "An edge from j to i lets i look at j: it is a dark cell in row i and column j.",
)
def writings(edge_index: Int[Tensor, "2 edges"], n: int) -> Figure:
    """Of at most 8 nodes and 16 edges."""
    pairs = edge_index.T.tolist()
    figure, grid = canvas(1, 3, width=7.8, height=3.0, width_ratios=[1.1, 1.2, 1.0])
    drawn, listed, table = grid[0]
    _arrows(drawn, pairs, n)
    _list(listed, pairs)
    mask = torch.zeros(n, n, dtype=torch.bool, device="cpu")
    mask[edge_index[1].cpu(), edge_index[0].cpu()] = True
    table.imshow(mask.cpu().numpy(), cmap=ListedColormap(["#EFEFEF", CURVES[0]]), vmin=0, vmax=1)
    for k in range(n + 1):
        table.axhline(k - 0.5, color="white", linewidth=1)
        table.axvline(k - 0.5, color="white", linewidth=1)
    table.spines[:].set_visible(False)
    table.set(xticks=range(n), yticks=range(n), xlabel="looks at j", ylabel="node i")
    for axes, title in zip(grid[0], ("arrows", "edge_index", "mask"), strict=True):
        axes.set_title(title)
        axes.set_anchor("N")  # so that the titles stand on one line
    return figure


def _arrows(axes: Axes, pairs: Sequence[Sequence[int]], n: int) -> None:
    """Nodes on a circle with an arrow for each edge."""
    bare(axes)
    axes.set(xlim=(-1.55, 1.55), ylim=(-1.55, 1.55), aspect="equal")
    turn = [math.pi / 2 - 2 * math.pi * k / n for k in range(n)]
    places = [(math.cos(a), math.sin(a)) for a in turn]
    for j, i in pairs:
        style = {"arrowstyle": "-|>", "mutation_scale": 12, "color": "#222222", "linewidth": 1.2}
        if i == j:
            x, y = (1.34 * part for part in places[i])
            axes.add_patch(Circle((x, y), 0.15, fill=False, edgecolor="#222222", linewidth=1.2, zorder=0))
            continue
        bent = "arc3,rad=0.16" if [i, j] in pairs else "arc3"
        axes.add_patch(
            FancyArrowPatch(places[j], places[i], shrinkA=11, shrinkB=11, connectionstyle=bent, **style)
        )
    for k, center in enumerate(places):
        axes.add_patch(Circle(center, 0.2, facecolor=CURVES[5], edgecolor="black", zorder=2))
        axes.text(*center, str(k), ha="center", va="center_baseline", zorder=3)


def _list(axes: Axes, pairs: Sequence[Sequence[int]]) -> None:
    """Sources above targets, in lines of eight edges."""
    bare(axes)
    across = 8
    rows = [pairs[k : k + across] for k in range(0, len(pairs), across)]
    axes.set(xlim=(-3.0, across), ylim=(6.6, -1.6))
    for r, row in enumerate(rows):
        y = 3.2 * r
        for k, (j, i) in enumerate(row):
            axes.text(k, y - 0.5, str(j), ha="center", va="center")
            axes.text(k, y + 0.5, str(i), ha="center", va="center")
        axes.text(-0.7, y - 0.5, "from j", ha="right", va="center", fontsize=9, color="0.35")
        axes.text(-0.7, y + 0.5, "to i", ha="right", va="center", fontsize=9, color="0.35")
        axes.add_patch(Rectangle((-0.5, y - 1), len(row), 2, fill=False, edgecolor="0.6"))


def _circle(axes: Axes, center: tuple[float, float], text: str, ground: str, *, ring: bool = False) -> None:
    style = {"edgecolor": CURVES[1] if ring else "black", "linewidth": 3 if ring else 1}
    axes.add_patch(Circle(center, 0.36, facecolor=ground, zorder=3, **style))
    axes.text(*center, text, ha="center", va="center_baseline", zorder=4, fontsize=9.5)


def _number(value: float) -> str:
    return "−∞" if value == -math.inf else f"{value:.2f}".replace("-", "−")


def _swarm(axes: Axes, values: Sequence[float], y: float, tone: str, marker: str) -> None:
    """Marks of seeds on a line, side by side where they are equal, and an upright bar at their mean."""
    if not values:
        return
    style = {"color": tone, "marker": marker, "markersize": 5, "alpha": 0.8, "markeredgecolor": "black"}
    aside = [0.3 * ((k + 0.5) / len(values) - 0.5) for k in range(len(values))]
    axes.plot(values, [y + up for up in aside], linestyle="none", markeredgewidth=0.4, **style)
    mean = statistics.fmean(values)
    axes.plot([mean, mean], [y - 0.32, y + 0.32], color="black", linewidth=2, zorder=3)


def _guides(axes: Axes) -> None:
    """Thin lines that rise as n, from the lowest point on the left, and as n², to the highest on the
    right."""
    points = [(x, y) for line in axes.lines for x, y in zip(*line.get_data(), strict=True)]
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    if first == last:
        return
    low, high = min(y for x, y in points if x == first), max(y for _, y in points)
    widest = max(x for x, y in points if y == high)
    limits, xs = axes.get_ylim(), [first, last]
    for power, start, text in ((1, low, "n"), (2, high * (first / widest) ** 2, "n²")):
        ys = [start * (x / first) ** power for x in xs]
        axes.plot(xs, ys, color="0.7", linewidth=0.8, zorder=0)
        inside = max(k / 20 for k in range(21) if start * (last / first) ** (power * k / 20) <= limits[1])
        spot = first * (last / first) ** inside, start * (last / first) ** (power * inside)
        axes.annotate(
            text, spot, xytext=(3, -3), textcoords="offset points", fontsize=9, color="0.45", va="top"
        )
    axes.set_ylim(limits)
