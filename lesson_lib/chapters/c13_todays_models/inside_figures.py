"""The figures of part 13c: how good the small model is, what is left without each head, and which row carries
the answer."""

from collections.abc import Sequence
from statistics import median

from torch import Tensor

from lesson_lib.charts.basic import bars, heatmap
from lesson_lib.charts.picture import HEAT, Picture, canvas, styled
from lesson_lib.experiments import results

SHOWN = {" ": "␣", "\n": "⏎"}


def stored_bits() -> Picture:
    """Bits per character of the test topics: 5-grams, 06e's long GPT, and the small model, trained without
    and with what makes it copy; medians of three seeds, where there are three."""
    before, rows = results("gpt")["rows"], results("writer")["rows"]
    (counted,) = [row["bits"] for row in before if row["kind"] == "n-gram" and row["n"] == 5]
    (long,) = [row["bits"] for row in before if row["kind"] == "trained" and row.get("size") == "long"]
    kinds = {
        kind: median(row["bits"] for row in rows if row["kind"] == kind)
        for kind in ("manual", "manual and copies")
    }
    return bars(
        {
            "5-gram\ncount": counted,
            "06e's\nlong GPT": long,
            "manual\nalone": kinds["manual"],
            "manual\nand copies": kinds["manual and copies"],
        },
        kinds=1,
        y_axis="bits per character",
        limits=(0, 2.5),
        alt=(
            "Bars of bits per character: the five-gram count is the highest; the long GPT and the small"
            " model, without and with copies, are lower and nearly alike."
        ),
        caption="Stored runs, test topics; lower is better. The last is the folder's.",
    )


def without_heads(table: Tensor) -> Picture:
    """The share that the answer keeps without each head (layers, heads): what `without_each` gives."""
    layers, n_heads = table.shape
    return heatmap(
        table,
        rows=[f"layer {layer}" for layer in range(layers)],
        columns=[f"head {head}" for head in range(n_heads)],
        row_axis="",
        column_axis="",
        color_axis="share of the answer",
        limits=(0, 1),
        alt="A table, a cell for each head: the share that the answer keeps when that head is cut.",
        caption="The share of the answer when one head is cut.",
    )


@styled
def rows_carried(table: Tensor, pieces: Sequence[str]) -> Picture:
    """The share of the other text's answer, row by row carried over (layers, n): what `carried` gives."""
    names = [SHOWN.get(piece, piece if len(piece) < 8 else f"{piece[:6]}…") for piece in pieces]
    layers, n = table.shape
    figure, ((axes,),) = canvas(width=7.4, height=1.2 + min(0.3 * layers, 6))
    image = axes.imshow(table.numpy(), cmap=HEAT, vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(layers), [f"behind layer {layer}" for layer in range(layers)])
    upright = max(map(len, names)) > 3
    axes.set_xticks(range(n), names, fontsize=8 if n <= 40 else 6, rotation=90 if upright else 0)
    axes.set_xlabel("the token whose row is exchanged")
    figure.colorbar(image, ax=axes, label="share of\nthe other answer", ticks=(0, 0.5, 1))
    return Picture(
        figure,
        alt=(
            "A table, a row for each layer and a column for each token: bright where exchanging that token's"
            " row makes the model give the other text's answer."
        ),
        caption="Bright: with this one row of the other text the model gives the other answer.",
    )
