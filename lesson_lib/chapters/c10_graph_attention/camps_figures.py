"""The figures of part 10a: the club as a puzzle; who learns two labels, and who finds the others."""

import torch
from matplotlib.figure import Figure

from lesson_lib.chapters.c10_graph_attention import graphs_figures
from lesson_lib.chapters.c10_graph_attention.experiments import camps
from lesson_lib.chapters.c10_graph_attention.graphs import NodeTask
from lesson_lib.charts.picture import MARKERS, Picture, canvas, color, figure
from lesson_lib.experiments import results


def puzzle(task: NodeTask) -> Picture:
    """`task` with the classes of its known nodes only."""
    seen = torch.full_like(task.y, -1)
    seen[task.known] = task.y[task.known]
    picture = graphs_figures.network(task, guesses=seen)
    alt = "34 numbered members and a line between each two who met; only the two leaders have a colour."
    return Picture(picture.figure, alt, "A line: these two met outside the club.")


@figure(
    "All three along the edges: nearly all placed rightly, small loss. Full attention: half, and the loss"
    " of a guess. With a residual path: about half, and a loss near 0.",
    "A mark for each of three seeds. Dashed: a guess, 0.5 and ln 2 = 0.69.",
)
def compared() -> Figure:
    """Of the stored experiment "camps"."""
    rows = [row for row in results("camps")["rows"] if row["kind"] == "point"]
    systems = camps.RECIPE["systems"]
    figure, grid = canvas(1, 2, width=7.4, height=2.8, sharey=True)
    left, right = grid[0]
    for y, system in enumerate(systems):
        mine = [row for row in rows if row["system"] == system]
        for axes, column in ((left, "accuracy"), (right, "loss")):
            # seeds one above the other, so that equal ones are seen
            heights = [y + 0.2 * (k - (len(mine) - 1) / 2) for k in range(len(mine))]
            axes.plot([row[column] for row in mine], heights, MARKERS[y], color=color(y), markersize=6)
    for axes, x in ((left, 0.5), (right, 0.693)):
        axes.axvline(x, color="0.4", linestyle="--", linewidth=1, zorder=0)
        axes.grid(axis="y", color="0.92")
        axes.tick_params(axis="y", length=0)
    left.set(xlim=(0.2, 1.03), xlabel="share of the 32 others placed rightly")
    left.set_yticks(range(len(systems)), systems)
    left.set_ylim(len(systems) - 0.5, -0.5)
    right.set(xlim=(-0.03, 0.75), xlabel="loss on the two labels")
    return figure
