"""The figures of chapter 04, several heads."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from lesson_lib.chapters.c04_multi_head.experiments import two_questions
from lesson_lib.charts.basic import bars, heatmap, lines
from lesson_lib.charts.picture import CURVES, Picture, bare, canvas, styled
from lesson_lib.experiments import results


@styled
def pieces(acted: float, it: float) -> Picture:
    """The line of mixtures from street (p = 0) to animal (p = 1), cut by two read-outs: what each piece
    says."""
    figure, grid = canvas(width=7.2, height=1.9)
    axes = grid[0][0]
    ends = [0.0, *sorted((acted, it)), 1.0]
    for left, right in zip(ends, ends[1:], strict=False):
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
    return Picture(
        figure,
        alt=(
            "A line from street to animal, cut in two places. Three pieces: left of both cuts both answers are"
            " street, right of both they are animal, and between the cuts they differ in one way only."
        ),
    )


def both_right(shares: Mapping[str, float], bound: float) -> Picture:
    """Share of sentences with both answers right, a bar for each system and test, and what one head can reach
    at most."""
    return bars(
        shares,
        alt=(
            "Share of sentences with both answers right: one head stays below the dashed line, two heads are at"
            " the top, with new words and new templates, too."
        ),
        caption="Both answers right. All new: nouns and templates kept from training.",
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
            "Share of sentences in which the answer becomes the other noun: all where the head's weight is moved"
            " there, almost none in both controls."
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
        for system, label in {"1 head": "nouns answer", "1 head, all words": "all words answer"}.items()
        for test, told in {"trained": "as trained", "both new": "all new"}.items()
    }
    return bars(
        shares,
        alt=(
            "One head, both answers right: with nouns alone below the dashed line; with all words it is perfect"
            " where it was trained, and lower on new nouns in new templates."
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
        {told: _stored(system, f"trained: {two_questions.QUESTIONS[1]}")[1] for system, told in names.items()},
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


def splitting(whole: Tensor, heads: Tensor) -> Picture:
    """A projected sequence (n, h d) and its heads (h, n, d)."""
    tables = {f"x W_q {tuple(whole.shape)}": whole}
    tables |= {f"head {k} {tuple(head.shape)}": head for k, head in enumerate(heads)}
    return heatmap(
        tables,
        alt=(
            "A table of three tokens by four columns, and beside it two tables of three tokens by two"
            " columns: the left half and the right half of the first."
        ),
        caption=(
            "Written as 10 · token + column. Every head keeps all three tokens and gets two of the four"
            " columns."
        ),
        decimals=0,
        limits=(0, whole.max().item()),
        row_axis="tokens",
        column_axis=["columns"] * len(tables),
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


def maps(weights: Tensor, names: Sequence[str], title: str) -> Picture:
    """Weights of one sequence, a heat map per head; weights (h, n, n)."""
    return heatmap(
        dict(zip(names, weights, strict=True)),
        numbers=False,
        limits=(0, weights.max().item()),
        row_axis="place of the token that asks",
        column_axis="place asked",
        color_axis="weight",
        alt=(
            "Weights of one sequence, one table per head: the heads of the trained layer have bright"
            " diagonals, shifted by the distances asked for."
        ),
        caption=title,
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


def ablation(shares: Mapping[str, float]) -> Picture:
    """Mean share of right names of the whole layer and after single heads are silenced, a bar each."""
    return bars(
        shares,
        alt=(
            "Share of right names of the whole layer, and with one head silenced at a time: some bars are as"
            " high as the first, others lower."
        ),
        caption=(
            "Live: each bar is the trained layer with that one head's output set to 0, and nothing trained"
            " again."
        ),
        y_axis="right names, mean of both",
        limits=(0, 1.15),
        kinds=1,
    )


def removed(counts: Sequence[int], right: Sequence[float]) -> Picture:
    """Mean share of right names over the number of heads that are silenced, the least needed first."""
    return lines(
        {"right names, mean of both": {"least needed heads first": (counts, right)}},
        alt="Right names over the number of heads silenced: flat at first, then falling steeply.",
        caption="Live: heads are silenced one after the other, each time the one that is missed least.",
        x_axis="heads silenced",
        y_limits=(0, 1.05),
        height=3.0,
    )
