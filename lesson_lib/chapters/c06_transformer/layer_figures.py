"""The figures of part 06a, what stands around attention."""

from collections.abc import Sequence

from torch import Tensor

from lesson_lib.charts.basic import heatmap
from lesson_lib.charts.picture import Picture


def same_way(cosines: Sequence[Tensor]) -> Picture:
    """Three tables (n, n)."""
    names = ("at the start", "three attentions", "each added to its input")
    return heatmap(
        dict(zip(names, cosines, strict=True)),
        alt=(
            "Three tables of eight words by eight. At the start only the diagonal is 1. Behind three"
            " attentions every cell is 1. Where each was added to its input, the diagonal is 1 and the"
            " other cells are smaller."
        ),
        caption="Cosine between any two of the eight words.",
        row_axis="word",
        column_axis="word",
        numbers=False,
        limits=(0.0, 1.0),
        color_axis="cosine",
    )
