"""The figure of part 08c."""

from collections.abc import Mapping

from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture


def gates(shares: Mapping[str, Mapping[float, float]]) -> Picture:
    """{kind of keys: {gate: share}}."""
    return lines(
        {"latest numbers answered rightly": {kind: ([*of], [*of.values()]) for kind, of in shares.items()}},
        alt=(
            "Share of right answers over the gate g. Random keys: low at 0.1, a top of 0.4 at 0.7 and 0.8,"
            " then a fall to nearly nothing at g = 1. Keys at right angles: nearly 1 from 0.1 to 0.7, then"
            " the same fall."
        ),
        caption="Eight names, 100 entries, width 32; 40 books. A guess is right in 1 of 256.",
        x_axis="gate g: 1 forgets nothing",
        y_limits=(0.0, 1.05),
        height=3.0,
    )
