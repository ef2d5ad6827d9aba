"""The figures of lesson 05, positions."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from lesson_lib.charts.basic import heatmap, lines
from lesson_lib.charts.picture import Picture

PANELS = {
    "right answers: codes added to tokens": ("none", "learned", "sinusoidal", "floater"),
    "right answers: positions in the scores": ("none", "shaw", "rotary", "alibi"),
}
NAMES = {"shaw": "Shaw", "floater": "FLOATER", "alibi": "ALiBi"}


def extrapolation(rows_by_kind: Mapping[str, Sequence], *, chance: float = 1 / 16) -> Picture:
    """Test accuracy over length: {kind: (lengths, lowest, median, highest)}, as `order.by_length` gives it,
    with the chance level.

    A panel for each place at which positions enter; a kind without positions is drawn in both. Up to 6 kinds
    are easy to tell apart.
    """
    panels = {title: {} for title in PANELS}
    for kind, curve in rows_by_kind.items():
        name, comma, mask = kind.partition(", ")
        titles = [title for title, kinds in PANELS.items() if name in kinds]
        for title in titles:
            panels[title][NAMES.get(name, name) + comma + mask] = curve
    lengths = sorted({length for lengths, *_ in rows_by_kind.values() for length in lengths})
    floor = {"chance": ([lengths[0], lengths[-1]], [chance, chance])}
    return lines(
        {title: curves | floor for title, curves in panels.items() if curves},
        alt=(
            "Accuracy over test length, a panel for each place at which positions enter: all codes that are"
            " added to the tokens fall towards chance beyond the length of training, while Shaw's and rotary"
            " positions stay high."
        ),
        caption=(
            "Stored run: trained at 32 tokens, tested at 32 and longer. Middle of three seeds, band from"
            " lowest to highest."
        ),
        x_axis="tokens in the test",
        log="x",
        y_limits=(0, 1.04),
        height=3.4,
    )


def by_position(shares: Mapping[str, Tensor], *, trained: int = 32, first: int = 3) -> Picture:
    """Share of right answers at each position, {name: (positions,)}; `first` is the position of the first
    share."""
    curves = {
        name: (list(range(first, first + len(values))), values.tolist()) for name, values in shares.items()
    }
    edge = {"last position trained": ([trained - 1, trained - 1], [0.0, 1.0])}
    return lines(
        {"right answers": curves | edge},
        alt=(
            "Accuracy at each position of a long test, with a line at the last position trained: the"
            " sinusoid's curve is high before the line and falls and wobbles behind it, the rotary curve"
            " changes less."
        ),
        caption=(
            "One test length, seen position by position. A mean over all positions hides where the answers"
            " are right."
        ),
        x_axis="position of the token",
        y_limits=(0, 1.04),
        points=False,
        height=3.2,
    )


def shuffled(outputs: Tensor, of_shuffled: Tensor, put_back: Tensor) -> Picture:
    """Outputs of five tokens, outputs of the same tokens shuffled, and those put back in place; (n,
    d) each."""
    return heatmap(
        {"outputs": outputs, "of shuffled tokens": of_shuffled, "the same, put back": put_back},
        numbers=False,
        limits=(outputs.min().item(), outputs.max().item()),
        row_axis="tokens",
        column_axis=[""] * 3,
        alt=(
            "Three tables of five rows: the second has the rows of the first in another order, the third is"
            " the first again."
        ),
        caption=(
            "Shuffle the tokens, and the same rows come out, shuffled. No row shows where its token stood."
        ),
    )


def table(codes: Tensor) -> Picture:
    """The table of sinusoidal codes (n, d)."""
    return heatmap(
        codes,
        numbers=False,
        limits=(-1, 1),
        row_axis="position i",
        column_axis="column: sine, cosine, sine, cosine …",
        color_axis="p[i, column]",
        alt=(
            "Heat map of the sinusoidal codes: the left columns change from row to row, columns further right"
            " ever more slowly, the last ones not visibly."
        ),
        caption=(
            "One row per position. Columns come in pairs, a sine and a cosine; pairs further right turn more"
            " slowly."
        ),
    )


def waves(codes: Tensor, pairs: Sequence[int]) -> Picture:
    """Some pairs of columns over the positions; codes (n, d)."""
    xs = list(range(len(codes)))
    return lines(
        {
            f"pair {j}": {
                "sine, column 2j": (xs, codes[:, 2 * j].tolist()),
                "cosine, column 2j + 1": (xs, codes[:, 2 * j + 1].tolist()),
            }
            for j in pairs
        },
        alt=(
            "Pairs of columns over the positions: in each panel a sine and a cosine of the same wavelength,"
            " longer from panel to panel."
        ),
        caption="Two columns of a pair are one wave, a quarter of a wavelength apart.",
        x_axis="position i",
        points=False,
        height=2.6,
    )


def counters(codes: Mapping[str, Sequence[int]], bits: Sequence[int]) -> Picture:
    """Sign changes of the columns and flips of a binary counter's bits, from fastest to slowest."""
    panels = {
        "sign changes in 1,000 rows": {
            name: (list(range(len(counts))), list(counts)) for name, counts in codes.items()
        },
        "flips in counting to 1,000": {"bits of a counter": (list(range(len(bits))), list(bits))},
    }
    return lines(
        panels,
        alt=(
            "Left, sign changes of sine and cosine columns over the pair's index; right, flips of a counter's"
            " bits: both fall by a constant factor from one to the next."
        ),
        caption=(
            "On a log scale both are straight lines until the counts come down to 1: each pair is slower than"
            " the one before by the same factor, as each bit is."
        ),
        x_axis="index of the pair, or of the bit",
        log="y",
        height=3.0,
    )


def products(by_pair: Tensor) -> Picture:
    """Dot products of all pairs of codes (n, n)."""
    return heatmap(
        by_pair,
        numbers=False,
        row_axis="position i",
        column_axis="position j",
        color_axis="p_i · p_j",
        alt=(
            "Heat map of the dot products of all positions: bright along the diagonal, and constant along"
            " each line parallel to it."
        ),
        caption=(
            "Every line parallel to the diagonal has one colour: the product depends on i − j alone. And it"
            " is its own mirror image."
        ),
    )


def product_curves(
    offsets: Sequence[int], plain: Sequence[float], mixed: Mapping[str, Sequence[float]]
) -> Picture:
    """Scores of two positions over their offset j - i: with nothing in between, and with a random matrix, a
    curve per place i."""
    return lines(
        {
            "nothing in between": {"any i": (offsets, plain)},
            "a random matrix in between": {name: (offsets, values) for name, values in mixed.items()},
        },
        alt=(
            "Scores of two positions over their offset, two panels: one symmetric curve with its peak in the"
            " middle for all places, and three curves that have nothing in common."
        ),
        caption=(
            "One curve for all places with nothing in between; a curve for each place with a random matrix."
        ),
        x_axis="offset j − i",
        points=False,
        height=3.0,
    )


def distances(index: Tensor, radius: int) -> Picture:
    """The row of Shaw's table that each pair uses, (n, n)."""
    return heatmap(
        index,
        decimals=0,
        row_axis="token i",
        column_axis="token j",
        alt=(
            "A table of whole numbers: constant along diagonals, rising from left to right, and the same"
            " number in the corners beyond the radius."
        ),
        caption=(
            f"Radius {radius}: the rows 0 to {2 * radius} of the table. Everything further away shares the"
            " first or the last row."
        ),
    )


def live(lengths: Sequence[int], right: Mapping[str, Sequence[float]]) -> Picture:
    """Test accuracy over length of the models trained live."""
    return lines(
        {"right answers": {name: (lengths, values) for name, values in right.items()}},
        alt=(
            "Accuracy over test length of sinusoidal and rotary positions: both start high at the length of"
            " training; beyond it the first falls and the second stays."
        ),
        caption="Live, one seed: trained at 32 tokens.",
        x_axis="tokens in the test",
        log="x",
        y_limits=(0, 1.04),
        height=3.0,
    )
