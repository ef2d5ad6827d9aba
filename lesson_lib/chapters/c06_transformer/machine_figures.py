"""The whole Transformer in one picture: how its parts are joined. (charts.opened draws what it looks at.)"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyBboxPatch

from lesson_lib.charts.picture import CURVES, Picture, canvas, styled

MUTED = "0.35"

# The diagram: one unit is a hundredth of an inch, y goes down.
WIDE, HIGH = 800, 576
SKY, SAND, MINT, GREY = "#DCEAF5", "#FBE9D9", "#DDF0E8", "#EFEFEF"  # attention, norms, feed-forward, the rest
RAIL, MEMORY = CURVES[0], CURVES[1]
ENCODER, DECODER, BUS = 174, 448, 262  # how far down the two streams and the memory between them run
FIRST, ENCODER_CELL, DECODER_CELL = 140, 165, 136  # where layer 1 starts, and the room of a sub-layer
ENCODER_LATER, DECODER_LATER = (494, 560), (572, 634)  # where layer 2 and the last layer stand
LATER, TURN, LOGITS = 30, 712, 724  # a later layer's width; where the memory turns back; where logits start
UP, TABLE = 70, 540  # from a stream to the middle of its sub-layers; how far down the table is


@styled
def transformer_diagram(*, norm_first: bool = False) -> Picture:
    """`norm_first` draws the norms as in pre-norm, else post-norm, as published."""
    figure, ((page,),) = canvas(width=WIDE / 100, height=HIGH / 100)
    figure.set_layout_engine("none")
    page.set_position([0, 0, 1, 1])
    page.set(xlim=(0, WIDE), ylim=(HIGH, 0))
    page.set_axis_off()
    parts = ("attention", "mask: padding", SKY), ("feed_forward", "each token alone", MINT)
    _rail(page, ENCODER, "Encoder", "source", TURN, ENCODER_LATER, norm_first)
    _opened_layer(page, ENCODER, "EncoderLayer", parts, ENCODER_CELL, ENCODER_LATER, norm_first)
    parts = ("attention", "mask: causal", SKY), ("cross_attention", "mask: padding", SKY), parts[1]
    _rail(page, DECODER, "Decoder", "before", LOGITS, DECODER_LATER, norm_first)
    _opened_layer(page, DECODER, "DecoderLayer", parts, DECODER_CELL, DECODER_LATER, norm_first)
    _memory(page)
    _table(page)
    where = "before each sub-layer, in its branch" if norm_first else "behind each sum, on the stream"
    return Picture(
        figure,
        "The whole Transformer as two residual streams from left to right, the encoder's above, the"
        f" decoder's below: sub-layers branch off and add to the stream, with a norm {where}; the last"
        " encoder layer's output goes to every decoder layer, and one table serves both embeddings and the"
        " logits.",
        "Blue: the residual streams. Orange: the memory, the encoder's output behind its last layer; every"
        " decoder layer reads the same one. Dashed: one table with three uses.",
    )


def _rail(
    page: Axes, y: float, title: str, tokens: str, end: float, later: tuple[int, int], norm_first: bool
) -> None:
    """A stream from its tokens on, with the embedding in front and, in pre-norm, the last norm behind."""
    page.text(11, y - 148, title, fontsize=12, fontweight="bold", va="center")
    page.plot([100, end], [y, y], color=RAIL, linewidth=3, zorder=1)
    length = "m" if tokens == "source" else "n"
    page.text(67, y - 66, f"{tokens} (b, {length})", ha="center", va="center", fontsize=9)
    _arrow(page, (67, y - 57), (67, y - 32), "black")
    _box(page, 67, y, 112, 62, "embedding", "× √d_model\n+ positions", GREY)
    if norm_first:
        _box(page, later[1] + LATER + 31, y, 40, 22, "norm", "", SAND)


def _opened_layer(
    page: Axes,
    y: float,
    name: str,
    parts: Sequence[tuple[str, str, str]],
    cell: float,
    later: tuple[int, int],
    norm_first: bool,
) -> None:
    """Layer 1 with its sub-layers, and the later layers, closed."""
    top, tall = y - 126, 154
    width = cell * len(parts) + 13
    page.add_patch(
        FancyBboxPatch((FIRST, top), width, tall, boxstyle="round,pad=0,rounding_size=8", facecolor="none",
        edgecolor="0.6", zorder=0)
    )  # fmt: skip
    page.text(FIRST + 8, top + 14, f"{name} 1", fontsize=9, va="center", color=MUTED)
    for k, (part, note, fill) in enumerate(parts):
        x = FIRST + k * cell + 10
        back = x + cell - (38 if norm_first else 52)  # where the branch joins the stream again
        _arrow(page, (x + 16, y), (x + 16, y - UP + 21), RAIL)
        page.plot([x + 16], [y], marker="o", markersize=5, color=RAIL)
        _arrow(page, (back, y - UP + 22), (back, y - 8), RAIL)
        _box(page, (x + back) / 2 + 6, y - UP, back - x + 22, 40, part, note, fill)
        page.add_patch(Circle((back, y), 8, facecolor="white", edgecolor="black", linewidth=1.2, zorder=4))
        page.text(back, y, "+", ha="center", va="center", fontsize=11, zorder=5)
        norm = (x + 17, y - 24, 40, 19) if norm_first else (back + 31, y, 40, 22)
        _box(page, *norm, "norm", "", SAND)
    for x, number in zip(later, ("2", "n_layers"), strict=True):
        _box(page, x + LATER / 2, top + tall / 2, LATER, tall, "", "", "white")
        page.text(
            x + LATER / 2,
            top + tall / 2,
            f"layer {number}",
            rotation=90,
            ha="center",
            va="center",
            fontsize=9,
            color=MUTED,
            zorder=5,
        )
    page.text((later[0] + LATER + later[1]) / 2, y - 14, "…", ha="center", fontsize=12)


def _memory(page: Axes) -> None:
    """From the end of the encoder back over the decoder, and down into each of its layers."""
    style = {"color": MEMORY, "linewidth": 2.5, "solid_joinstyle": "round"}
    cross = FIRST + 1.5 * DECODER_CELL - 10
    page.plot([TURN, TURN, cross], [ENCODER, BUS, BUS], **style)
    _arrow(page, (cross, BUS), (cross, DECODER - UP - 21), MEMORY)
    for x in DECODER_LATER:
        _arrow(page, (x + LATER / 2, BUS), (x + LATER / 2, DECODER - 127), MEMORY)
    page.text(cross + 12, BUS - 14, "memory (b, m, d_model): the encoder's output", fontsize=9, va="center")
    page.text(cross + 10, BUS + 22, "as keys and values", fontsize=9, va="center", color=MUTED)


def _table(page: Axes) -> None:
    """One table of embeddings: for the source, for the target, and for the logits."""
    _box(page, (LOGITS + WIDE - 8) / 2, DECODER, WIDE - 8 - LOGITS, 62, "logits", "x @\ntable.T", GREY)
    dashed = {"color": "black", "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0}
    page.plot([67, 67], [DECODER + 31, TABLE], **dashed)
    page.plot([18, 4, 4, 67], [ENCODER, ENCODER, TABLE, TABLE], **dashed)
    page.plot([67, LOGITS + 33, LOGITS + 33], [TABLE, TABLE, DECODER + 31], **dashed)
    _box(page, 67, TABLE, 112, 62, "table", "(n_tokens,\nd_model)", "white")
    _box(page, WIDE / 2, TABLE, 196, 20, "", "", "white", edge="white")
    page.text(
        WIDE / 2,
        TABLE,
        "the same table, transposed",
        ha="center",
        va="center",
        fontsize=9,
        color=MUTED,
        zorder=5,
    )


def _box(
    page: Axes,
    x: float,
    y: float,
    width: float,
    height: float,
    name: str,
    note: str,
    fill: str,
    edge: str = "0.25",
) -> None:
    """A box around its middle, with a name and a note under it."""
    corner = (x - width / 2, y - height / 2)
    page.add_patch(
        FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=4", facecolor=fill,
        edgecolor=edge, zorder=3)
    )  # fmt: skip
    text = {"ha": "center", "va": "center", "zorder": 5}
    shift = 6.5 * (1 + note.count("\n")) if note else 0
    page.text(x, y - shift, name, fontsize=9, **text)
    if note:
        page.text(x, y + 8, note, fontsize=8, color=MUTED, linespacing=1.2, **text)


def _arrow(page: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    page.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": color,
            "linewidth": 1.6,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 11,
        },
        zorder=2,
    )
