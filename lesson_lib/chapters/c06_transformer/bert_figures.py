"""Figures of part 06d: where the gap looks, and what happens when a head may not see the subject."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib.chapters.c06_transformer.figures import by_attractors
from lesson_lib.charts.basic import bars, draw_table, lines
from lesson_lib.charts.picture import Picture, figure, trim
from lesson_lib.experiments import results


@figure(
    "A heat map, a row for each of four heads: in that of layer 1, head 1 the word keys is bright, in"
    " the others dark.",
    "Each row sums to 1.",
    width=7.2,
    height=3.6,
    x="the words that [mask] looks at",
)
def gap(axes: Axes, words: Sequence[str], weights: Tensor) -> None:
    """Weights (layers, heads, n, n) of one sentence; `words` hold "[mask]"."""
    n_layers, n_heads = weights.shape[:2]
    rows = weights[:, :, list(words).index("[mask]")].flatten(0, 1)
    heads = [f"layer {layer}, head {head}" for layer in range(n_layers) for head in range(n_heads)]
    draw_table(axes, rows, low=0.0, high=1.0, decimals=2)
    axes.set_yticks(range(len(heads)), heads)
    axes.set_xticks(range(len(words)), words)
    trim(axes.figure)


def looks(shares: Tensor, by_distance: float, caption: str = "2,800 test sentences.") -> Picture:
    """Shares (layers, heads), and the share that the best fixed distance hits."""
    n_layers, n_heads = shares.shape
    return bars(
        {
            f"layer {layer},\nhead {head}": shares[layer, head].item()
            for layer in range(n_layers)
            for head in range(n_heads)
        },
        kinds=1,
        y_axis="largest weight on the subject",
        marks={"best fixed distance": by_distance},
        limits=(0, 1.12),
        alt=(
            "Bars for four heads, a line for the best fixed distance. Layer 1, head 1 is the highest,"
            f" {'above' if shares[-1, -1] > by_distance else 'below'} the line."
        ),
        caption=caption,
    )


def stored_looks(seed: int) -> Picture:
    """`looks` of the stored run with this seed."""
    rows = [row for row in results("bert")["rows"] if row["seed"] == seed]
    (trained,) = [row for row in rows if row["kind"] == "trained"]
    shares = [row["largest"] for row in rows if row["kind"] == "probe"]
    return looks(Tensor(shares).view(2, 2), trained["best_offset"], f"Stored run {seed}, the same sentences.")


def by_nouns_between() -> Picture:
    """Of the stored experiment "bert"."""
    rows = [row for row in results("bert")["rows"] if row["kind"] == "trained"]
    names = {"model": "BERT", "both": "count of both neighbours"}
    return lines(
        {
            "verbs in the right number": {
                name: by_attractors(rows, who, "misleading_by_attractors") for who, name in names.items()
            }
        },
        alt=(
            "BERT stays near 1 behind up to three misleading nouns, the count of neighbours far below a half."
        ),
        caption="Stored, three seeds: misleading sentences.",
        x_axis="nouns between subject and verb",
        y_limits=(0, 1.05),
        height=2.8,
    )


def blinded(shares: Mapping[str, float]) -> Picture:
    """{change: share}."""
    return bars(
        shares,
        kinds=1,
        y_axis="verbs in the right number",
        marks={"a coin": 0.5},
        limits=(0, 1.12),
        alt="Three bars: two are close to 1, the last is far below a half.",
        caption="Misleading sentences.",
    )
