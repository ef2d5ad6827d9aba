"""The figures of lesson 04, several heads."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from lesson_lib.charts.basic import bars, heatmap, lines
from lesson_lib.charts.picture import Picture


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
        caption=(
            "The view alone has the right shape. Its head 0 holds token 0 in two halves, and half of token 1;"
            " head 1 has the rest."
        ),
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
