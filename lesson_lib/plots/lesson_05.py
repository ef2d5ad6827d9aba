"""The figures of lesson 05, positions."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from lesson_lib.plots.charts import lines
from lesson_lib.plots.picture import Picture

PANELS = {
    "right answers: codes added to the tokens": ("learned", "sinusoidal", "floater"),
    "right answers: positions in the attention": ("shaw", "rotary", "alibi"),
    "right answers: no positions": ("none",),
}
NAMES = {"shaw": "Shaw", "floater": "FLOATER", "alibi": "ALiBi"}


def extrapolation(rows_by_kind: Mapping[str, Sequence], *, chance: float = 1 / 16) -> Picture:
    """Test accuracy over length: {kind: (lengths, lowest, middle, highest)}, as `order.by_length` gives it, with the chance level.

    A panel for each place at which positions enter, so far as one of its kinds is given. Draws up to 7 kinds; with more, colours
    repeat. Raises ValueError for a kind that is none of the experiment's.
    """
    panels = {title: {} for title in PANELS}
    for kind, curve in rows_by_kind.items():
        name, comma, mask = kind.partition(", ")
        title = next((title for title, kinds in PANELS.items() if name in kinds), None)
        if title is None:
            known = ", ".join(known for kinds in PANELS.values() for known in kinds)
            raise ValueError(f"no panel for {kind!r}; the kinds are {known}, and each with a mask")
        panels[title][NAMES.get(name, name) + comma + mask] = curve
    lengths = sorted({length for lengths, *_ in rows_by_kind.values() for length in lengths})
    floor = {"chance": ([lengths[0], lengths[-1]], [chance, chance])}
    return lines(
        {title: curves | floor for title, curves in panels.items() if curves},
        alt="Accuracy over test length, a panel for each place at which positions enter: all codes that are added to the tokens fall towards "
        "chance beyond the length of training, while Shaw's and rotary positions stay high.",
        caption="Stored run: trained at 32 tokens, tested at 32 and longer. Middle of three seeds, band from lowest to highest.",
        x_axis="tokens in the test",
        log="x",
        y_limits=(0, 1.04),
        height=3.4,
    )


def by_position(shares: Mapping[str, Tensor], *, trained: int = 32, first: int = 3) -> Picture:
    """Share of right answers at each position, {name: (positions,)}; `first` is the position of the first share."""
    curves = {
        name: (list(range(first, first + len(values))), values.tolist()) for name, values in shares.items()
    }
    edge = {"longest position trained": ([trained - 1, trained - 1], [0.0, 1.0])}
    return lines(
        {"right answers": curves | edge},
        alt="Accuracy at each position of a long test: a learned table is right up to the last position of its training and falls to chance right "
        "behind it; the others fall later or not at all.",
        caption="One test length, seen position by position. A mean over all positions hides where the answers are right.",
        x_axis="position of the token",
        y_limits=(0, 1.04),
        points=False,
        height=3.2,
    )
