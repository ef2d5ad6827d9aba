"""The figure of part 06b, two trainings."""

from collections.abc import Mapping, Sequence

from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture


def losses(curves: Mapping[str, Sequence[float]], every: int = 5) -> Picture:
    """{machine: loss of each step}; a point is the mean of `every` steps."""
    panel = {
        name: (
            [every * (i + 1) for i in range(len(values) // every)],
            [sum(values[every * i : every * (i + 1)]) / every for i in range(len(values) // every)],
        )
        for name, values in curves.items()
    }
    return lines(
        {"training loss": panel},
        alt="Training loss, logarithmic. The curves of A and B fall together, until B's drops far below A's.",
        caption="Mean of five steps each.",
        x_axis="step",
        log="y",
        points=False,
    )
