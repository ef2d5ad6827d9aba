"""Figures of part 06d: where the gap looks, and what happens when a head may not see the subject."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib.chapters.c06_transformer.figures import by_attractors
from lesson_lib.charts.basic import bars, draw_groups, draw_table, lines
from lesson_lib.charts.picture import Picture, canvas, figure, styled, trim
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


def looks(shares: Tensor, by_distance: float, *, stored: bool = False) -> Picture:
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
            "Bars for four heads, a line for the best fixed distance: layer 1, head 1 is highest,"
            f" {'above' if shares[-1, -1] > by_distance else 'below'} the line."
        ),
        caption="Stored run." if stored else "Seed 0.",
    )


def stored_looks(seed: int) -> Picture:
    """`looks` of the stored run with this seed."""
    rows = [row for row in results("bert")["rows"] if row["seed"] == seed]
    (trained,) = [row for row in rows if row["kind"] == "trained"]
    shares = [row["largest"] for row in rows if row["kind"] == "probe"]
    return looks(Tensor(shares).view(2, 2), trained["best_offset"], stored=True)


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
        alt=("Four bars: all are close to 1 but the last, far below a half."),
        caption="Misleading sentences.",
    )


@styled
def stored_blinded(seed: int) -> Picture:
    """The subject is hidden from the gap, or from the word right behind the subject: in each head, and in all
    four."""
    rows = [row for row in results("carried")["rows"] if row["seed"] == seed]
    names = [
        "all four\nheads" if row["layer"] is None else f"layer {row['layer']},\nhead {row['head']}"
        for row in rows
    ]
    figure, grid = canvas(1, 1, width=7.0, height=3.2)
    axes = grid[0][0]
    hidden = {"gap": "the gap", "behind": "the word behind"}
    groups = {f"subject hidden from {label}": [row[who] for row in rows] for who, label in hidden.items()}
    for drawn in draw_groups(axes, groups):
        axes.bar_label(drawn, fmt="%.2f", padding=2, fontsize=9)
    axes.axhline(0.5, color="black", linestyle="--", linewidth=1, label="a coin")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(0, 1.12)
    axes.set_ylabel("verbs in the right number")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return Picture(
        figure,
        "Pairs of bars for four heads, and for all: most are close to 1; one stands near a half.",
        f"Stored run, seed {seed}.",
    )


@figure(
    "Three bars each, for three seeds. Both hidden: all low. The control hidden: all high.",
    "Stored runs.",
    width=7.0,
    height=3.2,
    x="hidden from the gap in layer 1, head 1",
    y="verbs in the right number",
    legend=4,
)
def stored_unread(axes: Axes) -> None:
    """Hidden from the gap are the subject, the word right behind it, both, or a control."""
    names = {
        "subject": "subject",
        "behind": "word behind",
        "subject and behind": "both",
        "control": "control",
        "subject and control": "subject and\ncontrol",
    }
    rows = {row["seed"]: row["unread"] for row in results("carried")["rows"] if _at(row) == (1, 1)}
    groups = {f"seed {seed}": [shares[name] for name in names] for seed, shares in rows.items()}
    for drawn in draw_groups(axes, groups, apart=0.28, width=0.26):
        axes.bar_label(drawn, fmt="%.2f", padding=2, fontsize=9)
    axes.axhline(0.5, color="black", linestyle="--", linewidth=1, label="a coin")
    axes.set_xticks(range(len(names)), names.values())
    axes.set_ylim(0, 1.12)


def _at(row: Mapping) -> tuple[int | None, int | None]:
    return row["layer"], row["head"]
