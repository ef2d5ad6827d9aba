"""The figures of part 06a, what stands around attention."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c06_transformer.experiments import norms
from lesson_lib.charts.basic import bars, heatmap, lines
from lesson_lib.charts.picture import Picture
from lesson_lib.experiments import results

COMMONEST = (
    0.52  # the share of `norms.accuracy` that each class's most frequent tag is worth; a test counts it
)


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


def with_and_without(shares: Mapping[str, float]) -> Picture:
    """{"with", "without": share}."""
    return bars(
        {f"{name} the sum": share for name, share in shares.items()},
        alt="Right tags: with the residual connection far above the dashed line, without it on the line.",
        caption="Right tags, four layers. Dashed: each word's commonest tag.",
        y_axis="right tags",
        marks={"commonest tag": COMMONEST},
        limits=(0, 1),
        kinds=1,
    )


def twelve_layers() -> Picture:
    """Of the stored experiment "norms", with the warm-up."""
    accuracy = norms.best(results("norms")["rows"], "depth", ("norm_first", "rise", "layers"))
    curves = {}
    for name, first in {"pre-norm": True, "post-norm": False}.items():
        curves[name] = summary.band({key[2]: v for key, v in accuracy.items() if key[:2] == (first, True)})
    return lines(
        {"right tags": curves},
        alt="Right tags over layers: pre-norm loses a little from two to twelve, post-norm falls to .52.",
        caption="Median of three seeds, band from lowest to highest; 400 steps.",
        x_axis="layers",
        y_limits=(0.4, 1.02),
    )
