"""The figures of chapter 04, several heads."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib.chapters.c04_multi_head.experiments import two_questions
from lesson_lib.charts.basic import bars, draw_table, heatmap, lines
from lesson_lib.charts.picture import CURVES, Picture, bare, figure
from lesson_lib.experiments import results


@figure(
    "A line from street to animal, cut in two places. Left of both cuts both answers are street,"
    " right of both they are animal; between the cuts they differ, in one way only.",
    width=7.2,
    height=1.9,
)
def pieces(axes: Axes, acted: float, it: float) -> None:
    """The line of mixtures from street (p = 0) to animal (p = 1), cut by two read-outs: what each piece
    says."""
    ends = [0.0, *sorted((acted, it)), 1.0]
    for left, right in pairwise(ends):
        middle = (left + right) / 2
        said = ["animal" if middle > cut else "street" for cut in (acted, it)]
        axes.text(middle, 0.42, "\n".join(said), ha="center", va="bottom", fontsize=10, linespacing=1.6)
    axes.text(-0.02, 0.42, "who acted?\nwhat is it?", ha="right", va="bottom", fontsize=10, linespacing=1.6)
    axes.plot([0, 1], [0, 0], color="black", linewidth=2)
    for k, (cut, name) in enumerate({acted: "cut of the first read-out", it: "cut of the second"}.items()):
        axes.plot([cut, cut], [-0.18, 1.5], color=CURVES[k], linewidth=2, linestyle="-" if k == 0 else "--")
        axes.text(cut, -0.28, name, ha="center", va="top", fontsize=9, color=CURVES[k])
    for place, noun in {0: "all weight\non street", 1: "all weight\non animal"}.items():
        axes.plot(place, 0, "o", color="black", markersize=8)
        axes.text(place, -0.28, noun, ha="center", va="top", fontsize=9)
    axes.set(xlim=(-0.22, 1.1), ylim=(-0.85, 1.6))
    bare(axes)


def both_right(shares: Mapping[str, float], bound: float) -> Picture:
    """Share of sentences with both answers right, a bar for each system and test, and what one head can reach
    at most."""
    return bars(
        shares,
        alt=(
            "Both answers right, share of sentences: one head stays below the dashed line, two heads are"
            " at the top, with new words and new templates, too."
        ),
        caption="Both answers right. All new: nouns and patterns kept from training.",
        y_axis="both right",
        marks={"three of four": bound},
        limits=(0, 1.12),
        kinds=1,
    )


def followed(shares: Mapping[str, float]) -> Picture:
    """Share of sentences in which "what is it" becomes the other noun after weights are changed by hand."""
    return bars(
        {name.replace(" to ", "\nto ").replace(" in ", "\nin "): share for name, share in shares.items()},
        alt=(
            "Share of sentences in which the answer becomes the other noun: all where the head's weight is"
            " moved there, almost none in both controls."
        ),
        caption="How often 'it' becomes the other noun, in sentences with new nouns.",
        y_axis="answer follows",
        limits=(0, 1.12),
        kinds=1,
    )


def _stored(system: str, column: str) -> list[float]:
    return sorted(row[column] for row in results("two_questions")["rows"] if row["system"] == system)


def conditions() -> Picture:
    """Stored, medians of three seeds: one head that sees nouns or all words, where it was trained and on new
    nouns in new templates."""
    shares = {
        f"{label}\n{told}": _stored(system, f"{test}: both")[1]
        for system, label in {"1 head": "nouns", "1 head, all words": "all words"}.items()
        for test, told in {"trained": "as trained", "both new": "all new"}.items()
    }
    return bars(
        shares,
        alt=(
            "One head, both answers right: with nouns alone below the dashed line; with all words it is"
            " perfect where it was trained, and lower on new nouns in new templates."
        ),
        caption="One head, both answers right. Medians of three seeds.",
        y_axis="both right",
        marks={"three of four": 0.75},
        limits=(0, 1.12),
        kinds=2,
    )


def askers() -> Picture:
    """Stored, medians of three seeds: right answers to "what is it" by who asks."""
    names = {
        "2 heads": "the last word\none layer",
        "2 heads, it asks": "it\none layer",
        "2 layers, it asks": "it\ntwo layers",
    }
    return bars(
        {
            told: _stored(system, f"trained: {two_questions.QUESTIONS[1]}")[1]
            for system, told in names.items()
        },
        alt=(
            "Right answers by who asks: the last word in one layer and it in two layers are at the top, it in"
            " one layer is at one half."
        ),
        caption="Who asks, and in how many layers. Medians of three seeds.",
        y_axis="what is it: right",
        marks={"a coin": 0.5},
        limits=(0, 1.12),
        kinds=1,
    )


def one_head(shares: Sequence[float], right: Mapping[str, Sequence[float]]) -> Picture:
    """Right names of a fitted read-out over the weight that one head gives to the token one back."""
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


def split_wrongly(right: Tensor, wrong: Tensor) -> Picture:
    """Head 0 and head 1 as they should be, and as a view without the transpose makes them; (2, n, d) each."""
    tables = {f"right: head {k}": head for k, head in enumerate(right)}
    tables |= {f"view alone: head {k}": head for k, head in enumerate(wrong)}
    return heatmap(
        tables,
        alt=(
            "Four tables of three rows by two columns: the two right ones hold one column pair of all tokens,"
            " the two wrong ones hold all columns of the first tokens and of the last tokens."
        ),
        caption="Each number is 10 · token + column.",
        decimals=0,
        limits=(0, right.max().item()),
        row_axis="rows",
        column_axis=[""] * 4,
    )


def right_names(shares: Mapping[str, float], chance: float, caption: str) -> Picture:
    """Share of right names, a bar per system and relation, with the chance level."""
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
    """Mean weights (n,) of one head that may look at all words, a row for each kind of last word; 1 and 2
    stand for the nouns."""
    draw_table(axes, torch.stack(list(by_kind.values())), low=0, high=0.6, decimals=2)
    axes.set_aspect("auto")
    axes.set_xticks(range(len(words)), words)
    axes.set_yticks(range(len(by_kind)), [f"fits {kind}" for kind in by_kind])
    axes.tick_params(length=0)


def silenced(right: Mapping[str, Sequence[float]]) -> Picture:
    """Right names after one head is silenced, a curve for each name; head by head."""
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
