"""The figures of part 08c."""

from collections.abc import Mapping

from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture


def gates(shares: Mapping[float, float]) -> Picture:
    """{gate: share}."""
    return lines(
        {"latest numbers answered rightly": {"state with a gate": ([*shares], [*shares.values()])}},
        alt=(
            "Share of right answers over the gate g: low at 0.1, a top of 0.4 at 0.7 and 0.8, then a fall to"
            " nearly nothing at g = 1."
        ),
        caption="Eight names, 100 entries, width 32; 40 books. A guess is right in 1 of 256.",
        x_axis="gate g: 1 forgets nothing",
        y_limits=(0.0, 0.5),
        height=3.0,
    )
