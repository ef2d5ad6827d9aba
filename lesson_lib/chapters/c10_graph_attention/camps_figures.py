"""The figure of part 10a: the club as a puzzle."""

import torch

from lesson_lib.chapters.c10_graph_attention import graphs_figures
from lesson_lib.chapters.c10_graph_attention.graphs import NodeTask
from lesson_lib.charts.picture import Picture


def puzzle(task: NodeTask) -> Picture:
    """`task` with the classes of its known nodes only."""
    seen = torch.full_like(task.y, -1)
    seen[task.known] = task.y[task.known]
    picture = graphs_figures.network(task, guesses=seen)
    alt = "34 numbered members and a line between each two who met; only the two leaders have a colour."
    return Picture(picture.figure, alt, "A line: these two met outside the club.")
