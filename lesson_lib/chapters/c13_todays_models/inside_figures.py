"""The figures of part 13c: what is left without each head, and which row carries the answer."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import heatmap
from lesson_lib.charts.picture import HEAT, Picture, canvas, figure

SHOWN = {" ": "␣", "\n": "⏎"}


def without_heads(table: Tensor) -> Picture:
    """Shares (layers, heads), as `without_each` gives them."""
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


@figure(
    "A table, a row for each layer and a column for each token: bright where exchanging that token's"
    " row makes the model give the other text's answer.",
    "Bright: with this one row of the other text the model gives the other answer.",
)
def rows_exchanged(table: Tensor, pieces: Sequence[str]) -> Figure:
    """Shares (layers, n), as `exchanged` gives them; `pieces` are the n tokens."""
    names = [SHOWN.get(piece, piece if len(piece) < 8 else f"{piece[:6]}…") for piece in pieces]
    layers, n = table.shape
    figure, ((axes,),) = canvas(width=7.4, height=1.2 + min(0.3 * layers, 6))
    image = axes.imshow(table.numpy(), cmap=HEAT, vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(layers), [f"behind layer {layer}" for layer in range(layers)])
    upright = max(map(len, names)) > 3
    axes.set_xticks(range(n), names, fontsize=8 if n <= 40 else 6, rotation=90 if upright else 0)
    axes.set_xlabel("the token whose row is exchanged")
    figure.colorbar(image, ax=axes, label="share of\nthe other answer", ticks=(0, 0.5, 1))
    return figure
