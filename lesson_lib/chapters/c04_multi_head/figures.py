"""The figures of chapter 04, several heads."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import bars, draw_table, ink, lines
from lesson_lib.charts.picture import CURVES, Picture, bare, canvas, figure, trim
from lesson_lib.experiments import results


@figure(
    "A line from street to animal, cut in two places; between the cuts the two answers differ.",
    width=7.2,
    height=1.9,
)
def pieces(axes: Axes, acted: float, it: float) -> None:
    """The cuts are numbers from 0 (street) to 1 (animal), in any order."""
    ends = [0.0, *sorted((acted, it)), 1.0]
    for left, right in pairwise(ends):
        middle = (left + right) / 2
        answers = ["animal" if middle > cut else "street" for cut in (acted, it)]
        axes.text(middle, 0.42, "\n".join(answers), ha="center", va="bottom", fontsize=10, linespacing=1.6)
    axes.text(-0.02, 0.42, "who acted?\nwhat is it?", ha="right", va="bottom", fontsize=10, linespacing=1.6)
    axes.plot([0, 1], [0, 0], color="black", linewidth=2)
    for k, (cut, name) in enumerate({acted: "cut of the first read-out", it: "cut of the second"}.items()):
        axes.plot([cut, cut], [-0.18, 1.5], color=CURVES[k], linewidth=2, linestyle="-" if k == 0 else "--")
        axes.text(cut, -0.28, name, ha="center", va="top", fontsize=9, color=CURVES[k])
    for end, noun in {0: "all weight\non street", 1: "all weight\non animal"}.items():
        axes.plot(end, 0, "o", color="black", markersize=8)
        axes.text(end, -0.28, noun, ha="center", va="top", fontsize=9)
    axes.set(xlim=(-0.22, 1.1), ylim=(-0.85, 1.6))
    bare(axes)


@figure(
    "A square. Its sides are the weights of two heads on animal, from 0 to 1; each sentence is a dot.",
    width=6.6,
    height=3.6,
)
def square(axes: Axes, points: Mapping[str, Sequence[float]], *, cuts: bool = True) -> None:
    """{sentence: weight of head 0 and of head 1 on animal}; `cuts` draws two of them, and their pieces."""
    axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal", xticks=[0, 1], yticks=[0, 1])
    axes.set_xlabel("weight on animal, head 0", labelpad=-4)
    axes.set_ylabel("weight on animal, head 1", labelpad=-4)
    if cuts:
        axes.axvline(0.5, color=CURVES[0], linewidth=2)
        axes.axhline(0.5, color=CURVES[1], linewidth=2, linestyle="--")
        for x, acted in ((0.25, "street"), (0.75, "animal")):
            for y, it in ((0.25, "street"), (0.75, "animal")):
                axes.text(x, y, f"who acted: {acted}\nwhat is it: {it}", ha="center", va="center", fontsize=9)
    for name, (x, y) in points.items():
        left = x < 0.5
        axes.plot(x, y, "o", color="black", markersize=8, clip_on=False, zorder=3)
        axes.annotate(
            name, (0 if left else 1, y), (-30 if left else 14, 0), textcoords="offset points",
            ha="right" if left else "left", va="center", fontsize=9, annotation_clip=False,
        )  # fmt: skip


def _stored(system: str, column: str) -> list[float]:
    return sorted(row[column] for row in results("two_questions")["rows"] if row["system"] == system)


def conditions() -> Picture:
    """Of the stored experiment "two_questions"."""
    shares = {
        f"{label}\n{where}": _stored(system, f"{test}: both")[1]
        for system, label in {"1 head": "nouns", "1 head, all words": "all words"}.items()
        for test, where in {"trained": "as trained", "both new": "all new"}.items()
    }
    return bars(
        shares,
        alt=(
            "One head, both answers right: with nouns alone below the dashed line; with all words far above"
            " it, somewhat lower on new pairs in new patterns."
        ),
        caption="One head, both answers right. Medians of three seeds.",
        y_axis="both right",
        marks={"three of four": 0.75},
        limits=(0, 1.12),
        kinds=2,
    )


def one_head(shares: Sequence[float], right: Mapping[str, Sequence[float]]) -> Picture:
    """{name: right names for each share}."""
    return lines(
        {"right names, of all 64 pairs": {name: (shares, values) for name, values in right.items()}},
        alt=(
            "Right names over the weight on the token one back: below a half only the token three back is"
            " read, above a half only the token one back; the curves swap places at a half and are never high"
            " together."
        ),
        caption=(
            "Eighteen weights from 0 to 1, without the tie at a half. Whichever token has more than half is"
            " read; the other is lost."
        ),
        x_axis="weight on the token one back (the rest is on the token three back)",
        y_limits=(0, 1.05),
        height=3.2,
    )


@figure("A row for each token, in its own colour, and beside it the rows of each head.")
def as_heads(whole: Tensor, heads: Tensor) -> Figure:
    """Tokens (n, h * d), whose numbers are 10 * token + column, and what stands in each head, (h, n, d)."""
    tables = {"x": whole} | {f"head {k}": head for k, head in enumerate(heads)}
    widths = [table.shape[1] for table in tables.values()]
    page, (row,) = canvas(1, len(tables), width=7.2, height=1.6, width_ratios=widths)
    for axes, (name, table) in zip(row, tables.items(), strict=True):
        tokens = table.div(10, rounding_mode="floor")
        draw_table(axes, tokens, low=0, high=len(whole) - 1, decimals=None)
        for i, numbers in enumerate(table.tolist()):
            for j, number in enumerate(numbers):
                share = tokens[i, j].item() / (len(whole) - 1)
                axes.text(j, i, f"{number:.0f}", ha="center", va="center", fontsize=9, color=ink(share))
        axes.set_title(name)
        axes.set(xticks=[], yticks=[])
    trim(page)
    return page


def right_names(shares: Mapping[str, float], chance: float, caption: str) -> Picture:
    """{system and relation: share}."""
    return bars(
        shares,
        alt=(
            "Share of right names per system and relation: one head names the token one back and is near"
            " chance three back; more heads name both."
        ),
        caption=caption,
        y_axis="right names",
        marks={"chance": chance},
        limits=(0, 1.15),
        kinds=2,
    )


@figure(
    "Mean weights of one head, a row for each kind of last word: besides the two nouns each row has"
    " small words of its own that are bright.",
    "One head, all words may answer; 1 and 2 are the nouns. A row for what the last word fits.",
    width=7.6,
    height=2.3,
)
def code(axes: Axes, by_kind: Mapping[str, Tensor], words: Sequence[str]) -> None:
    """Weights (n,) by kind of last word."""
    draw_table(axes, torch.stack(list(by_kind.values())), low=0, high=0.6, decimals=2)
    axes.set_aspect("auto")
    axes.set_xticks(range(len(words)), words)
    axes.set_yticks(range(len(by_kind)), [f"fits {kind}" for kind in by_kind])
    axes.tick_params(length=0)


def silenced(right: Mapping[str, Sequence[float]]) -> Picture:
    """{name: right names for each head}."""
    heads = range(len(next(iter(right.values()))))
    return lines(
        {"right names": {name: (heads, shares) for name, shares in right.items()}},
        alt=(
            "Right names after each of eight heads is silenced: wherever one of the two names falls, the"
            " other stays at the top."
        ),
        caption="Stored, seed 0. Wherever one name suffers, the other does not.",
        x_axis="head that is silenced",
        y_limits=(0, 1.05),
    )
