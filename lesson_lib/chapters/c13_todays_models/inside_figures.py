"""The figures of part 13c: what is left without each head, and which row carries the answer."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import heatmap
from lesson_lib.charts.picture import HEAT, Picture, canvas, figure

SHOWN = {" ": "␣", "\n": "⏎"}


def without_heads(table: Tensor) -> Picture:
    """Logit differences (layers, heads), each with that head cut."""
    layers, n_heads = table.shape
    return heatmap(
        table,
        rows=[f"layer {layer}" for layer in range(layers)],
        columns=[f"head {head}" for head in range(n_heads)],
        row_axis="",
        column_axis="",
        color_axis="logit difference",
        decimals=1,
        alt="A table, a cell for each head: the mean logit difference that is left when that head is cut.",
        caption="The mean logit difference of the 200 names when one head is cut.",
    )


@figure(
    "A table, a row for each layer and a column for each position: bright where replacing the row at that"
    " position by the other text's makes the model give the other text's answer.",
    "Bright: with this one row of the other text the model gives the other answer.",
)
def rows_exchanged(table: Tensor, pieces: Sequence[str]) -> Figure:
    """Shares of the other answer (layers, n), one for each replaced row; `pieces` are the n tokens."""
    names = [SHOWN.get(piece, piece if len(piece) < 8 else f"{piece[:6]}…") for piece in pieces]
    layers, n = table.shape
    figure, ((axes,),) = canvas(width=7.4, height=1.2 + min(0.3 * layers, 6))
    image = axes.imshow(table.numpy(), cmap=HEAT, vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(layers), [f"after layer {layer}" for layer in range(layers)])
    upright = max(map(len, names)) > 3
    axes.set_xticks(range(n), names, fontsize=8 if n <= 40 else 6, rotation=90 if upright else 0)
    axes.set_xlabel("the position whose row is replaced (its token in the Wibkat's text)")
    figure.colorbar(image, ax=axes, label="share of names with\nthe other letter", ticks=(0, 0.5, 1))
    return figure
