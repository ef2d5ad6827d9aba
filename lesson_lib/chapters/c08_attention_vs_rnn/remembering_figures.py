"""The figures of part 08a: the cell of an LSTM, and who learns to remember over which distance."""

from collections.abc import Mapping

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c08_attention_vs_rnn import figures
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import CURVES, Picture, bare, figure, styled, trim
from lesson_lib.data.recall import SYMBOLS
from lesson_lib.experiments import results

BOX = {"boxstyle": "round,pad=0.35", "linewidth": 1.4}


@figure(
    "A thick line from the old cell to the new one, times the forget gate, plus the input gate times what"
    " is written; below it the gates; a branch through tanh and the output gate gives the new state.",
    "Thick, the cell: times f, plus i g, and no tanh on its way.",
    width=7.4,
    height=3.5,
)
def cell(axes: Axes) -> None:
    """`c_t = f · c_{t-1} + i · g`, and `h_t = o · tanh(c_t)`."""
    bare(axes)
    axes.set(xlim=(0, 10), ylim=(-0.2, 4.6))
    for x, y, text in ((2.2, 3.6, "×"), (5.0, 3.6, "+"), (5.0, 2.4, "×"), (8.2, 2.4, "×")):
        _node(axes, x, y, text)
    for x, name, role in (
        (2.2, "f", "forget gate\nsigmoid"), (4.1, "i", "input gate\nsigmoid"),
        (5.9, "g", "what is written\ntanh"), (8.2, "o", "output gate\nsigmoid"),
    ):  # fmt: skip
        tone = CURVES[4] if name == "g" else CURVES[5]
        axes.text(x, 1.15, name, ha="center", va="center", fontsize=12, style="italic",
                  bbox=BOX | {"facecolor": tone, "edgecolor": "black"})  # fmt: skip
        axes.text(x, 0.42, role, ha="center", va="center", fontsize=9, color="0.25")
    thick = {"color": CURVES[0], "linewidth": 3}
    for start, end in (((0.5, 3.6), (1.9, 3.6)), ((2.5, 3.6), (4.7, 3.6)), ((5.3, 3.6), (9.5, 3.6))):
        _arrow(axes, start, end, **thick)
    for start, end in (
        ((2.2, 1.5), (2.2, 3.3)), ((4.1, 1.5), (4.8, 2.15)), ((5.9, 1.5), (5.2, 2.15)),
        ((5.0, 2.7), (5.0, 3.3)), ((8.2, 3.6), (8.2, 2.7)), ((8.2, 1.5), (8.2, 2.1)),
        ((8.5, 2.4), (9.5, 2.4)),
    ):  # fmt: skip
        _arrow(axes, start, end, color="0.2", linewidth=1.3)
    text = {"va": "center", "fontsize": 12}
    axes.text(0.4, 3.98, "old cell $c_{t-1}$", **text, color=CURVES[0])
    axes.text(9.6, 3.98, "new cell $c_t$", **text, ha="right", color=CURVES[0])
    axes.text(9.6, 1.75, "new\nstate $h_t$", **text, ha="right")
    axes.text(8.35, 3.1, "tanh", va="center", fontsize=9.5, color="0.25")
    axes.text(0.4, 1.15, "token $x_t$ and\nold state $h_{t-1}$\nenter all four", va="center", fontsize=9.5)
    trim(axes.figure)


def states(hidden: Mapping[str, Float[Tensor, "n d"]], text: str) -> Picture:
    """{network: states (n, d)}."""
    picture = figures.states(hidden, list(text))
    return Picture(picture.figure, picture.alt, "A row is one of the 32 numbers of the state.")


@styled
def learned() -> Picture:
    """Of the stored experiment "remembering"."""
    rows = [row for row in results("remembering")["rows"] if row["kind"] == "point"]
    picture = lines(
        {"right answers": summary.bands(rows, "system", "distance", "accuracy")},
        alt=(
            "The share of right answers over the distance in training and test, a curve for each of three"
            " systems, with a band from the lowest to the highest seed."
        ),
        caption="Median and range of three seeds. Grey: a guess.",
        x_axis="distance, in tokens",
        log="x",
        y_limits=(0.0, 1.04),
        height=3.3,
    )
    (axes,) = picture.figure.axes
    axes.axhline(1 / len(SYMBOLS), color="0.5", linewidth=1, zorder=0)
    return picture


def _node(axes: Axes, x: float, y: float, text: str) -> None:
    circle = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": "black", "linewidth": 1.3}
    axes.text(x, y, text, ha="center", va="center", fontsize=13, bbox=circle, zorder=3)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], **style: object) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **style})
