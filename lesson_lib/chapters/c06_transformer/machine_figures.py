"""The whole Transformer in one picture: what every head looks at, what the residual stream does, and how the
parts are joined."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyBboxPatch
from torch import Tensor

from lesson_lib.charts.picture import CURVES, HEAT, Picture, canvas, styled

FIELDS = ("source", "target", "encoder", "decoder")
LABELS, MAPS, BETWEEN, STREAM = 0.92, 4.56, 0.82, 1.6  # inches across: names, maps, ticks, the stream's norm
GAP, HEADING, TALL = 0.06, 0.62, 9.6  # inches between maps, for a stack's heading, for all maps at most
MUTED = "0.35"


class Inside(NamedTuple):
    """One sequence's tokens, weights and residual streams, in float64 on the processor; the layers are the
    first axis."""

    source: list[str]
    target: list[str]
    encoder: Tensor
    own: Tensor
    cross: Tensor
    encoder_stream: Tensor
    decoder_stream: Tensor


def inside(opened: Any) -> Inside:
    """What an opened machine holds: weights (layers, h, n, m) of its three kinds of attention, streams
    (layers + 1, n, d_model).

    `opened` has the fields of models.translator.Opened, for one sequence. Raises TypeError where they are not
    there, ValueError where weights or streams are missing, are a batch, or do not fit the tokens.
    """
    missing = [name for name in FIELDS if not hasattr(opened, name)]
    if missing:
        raise TypeError(
            f"opened must have {', '.join(FIELDS)}, as models.translator.opened returns it; "
            f"{type(opened).__name__} lacks {', '.join(missing)}"
        )
    source, target = ([str(token) for token in tokens] for tokens in (opened.source, opened.target))
    for name, stack in (("encoder", opened.encoder), ("decoder", opened.decoder)):
        if not stack.weights or not stack.stream or any(table is None for table in stack.weights):
            raise ValueError(f"the {name} was not opened: call the model with weights=True")
    m, n = len(source), len(target)
    made = Inside(
        source,
        target,
        _layers(opened.encoder.weights, (m, m), "encoder.weights"),
        _layers([layer.own for layer in opened.decoder.weights], (n, n), "decoder.weights, own"),
        _layers([layer.cross for layer in opened.decoder.weights], (n, m), "decoder.weights, cross"),
        _layers(opened.encoder.stream, (m, None), "encoder.stream"),
        _layers(opened.decoder.stream, (n, None), "decoder.stream"),
    )
    for name, stream, tables in (
        ("encoder", made.encoder_stream, made.encoder),
        ("decoder", made.decoder_stream, made.own),
    ):
        if len(stream) != len(tables) + 1:
            raise ValueError(
                f"{name}.stream must hold one more than the {len(tables)} layers, got {len(stream)}: "
                "the tokens as they come in, and as each layer leaves them"
            )
    return made


@styled
def machine(opened: Any, *, caption: str = "", alt: str = "") -> Picture:
    """Every layer and head of an opened machine as a small map, top to bottom as the tokens pass, and the
    residual stream's norm beside it.

    `opened` is what models.translator.opened returns. Raises as `inside` does.
    """
    made = inside(opened)
    n_heads = max(made.encoder.shape[1], made.own.shape[1])
    most_rows = len(made.encoder) + 2 * len(made.own)
    size = min(1.4, (MAPS - GAP * (n_heads - 1)) / n_heads, TALL / most_rows)
    m, n = len(made.source), len(made.target)
    flat = size * min(1.0, max(0.4, n / m))  # a row of maps from target to source
    encoder = [(f"layer {k}", table, size, GAP) for k, table in enumerate(made.encoder, start=1)]
    decoder = []
    for k, (own, cross) in enumerate(zip(made.own, made.cross, strict=True), start=1):
        decoder += [(f"layer {k}\nown", own, size, GAP), ("cross", cross, flat, 2.5 * GAP)]
    stacks = (
        ("Encoder", f"{m} source tokens look at all source tokens", encoder, made.encoder_stream),
        ("Decoder", f"{n} target tokens; own: itself and its past, cross: the source", decoder,
        made.decoder_stream),
    )  # fmt: skip
    width = LABELS + MAPS + BETWEEN + STREAM + 0.1
    height = sum(HEADING + 0.2 + sum(tall + gap for *_, tall, gap in rows) for _, _, rows, _ in stacks) + 0.45
    most = max(stream.norm(dim=-1).max().item() for *_, stream in stacks)
    figure, ((page,),) = canvas(width=width, height=height)
    figure.set_layout_engine("none")
    page.set_position([0, 0, 1, 1])
    top = 0.0
    for title, words, rows, stream in stacks:
        page.text(0.06, top + 0.2, title, fontsize=11, fontweight="bold", va="center")
        page.text(LABELS, top + 0.2, words, fontsize=9, va="center", color=MUTED)
        top = _stack(page, rows, top + HEADING, size)
        bounds = [
            top - sum(tall + gap for *_, tall, gap in rows[k:])
            for k in range(0, len(rows) + 1, len(rows) // (len(stream) - 1))
        ]
        _beside(page, bounds, stream, left=LABELS + MAPS + BETWEEN, most=most)
        top += 0.2
    _scale(page, left=LABELS, top=top + 0.02)
    page.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
    page.set_axis_off()
    return Picture(
        figure,
        alt
        or (
            "A Transformer opened on one text: a small map of weights for every layer and head of encoder "
            "and decoder, and beside them the norm of the residual stream as it passes from layer to layer."
        ),
        caption
        or (
            "In each map rows are queries, columns are keys, bright is a large weight; each map is "
            "stretched to its box. The line on the right is the mean length of a token's row as it comes in "
            "and after each layer, the band runs from the shortest to the longest token."
        ),
    )


def _layers(tables: Sequence[Tensor], ends: tuple[int, int | None], name: str) -> Tensor:
    """The layers of one sequence as one tensor, once their last two axes are known to fit the tokens."""
    wanted = f"(1, ..., {ends[0]}, {ends[1] or 'd_model'})"
    for table in tables:
        shape = tuple(table.shape) if isinstance(table, Tensor) else None
        if (
            shape is None
            or len(shape) < 3
            or shape[0] != 1
            or shape[-2] != ends[0]
            or ends[1] not in (None, shape[-1])
        ):
            got = shape or type(table).__name__
            raise ValueError(f"{name} must be one sequence's, {wanted} in each layer, got {got}")
    return torch.stack([table[0].detach().to("cpu", torch.float64) for table in tables])


def _stack(page: Axes, rows: list[tuple[str, Tensor, float, float]], top: float, size: float) -> float:
    """The maps of a stack, a row for each (name, weights (h, n, m), height, gap below), and the heads'
    numbers above; gives the lower end."""
    for head in range(len(rows[0][1])):
        x = LABELS + head * (size + GAP) + size / 2
        page.text(x, top - 0.06, f"head {head}", ha="center", va="bottom", fontsize=8.5)
    for name, tables, tall, gap in rows:
        page.text(LABELS - 0.08, top + tall / 2, name, ha="right", va="center", fontsize=8.5, linespacing=1.3)
        for head, table in enumerate(tables):
            left = LABELS + head * (size + GAP)
            extent = (left, left + size, top + tall, top)
            page.imshow(table.cpu().numpy(), cmap=HEAT, vmin=0, vmax=1, extent=extent, aspect="auto")
        top += tall + gap
    return top


def _beside(page: Axes, bounds: list[float], stream: Tensor, *, left: float, most: float) -> None:
    """The norm of the residual stream in axes of its own: it goes down as the maps do, a point where a layer
    ends."""
    norms = stream.norm(dim=-1)
    width, height = page.figure.get_size_inches()
    low, high = bounds[0], bounds[-1]
    axes = page.figure.add_axes([left / width, 1 - high / height, STREAM / width, (high - low) / height])
    axes.set_gid("stream")
    axes.fill_betweenx(bounds, norms.amin(-1), norms.amax(-1), color=CURVES[0], alpha=0.18, linewidth=0)
    axes.plot(norms.mean(-1), bounds, color=CURVES[0], marker="o", markersize=4)
    axes.set(xlim=(0, 1.08 * most), ylim=(high + 0.08, low - 0.08))
    axes.set_yticks(bounds, ["in", *(f"after {k}" for k in range(1, len(bounds)))])
    axes.tick_params(labelsize=8.5)
    axes.xaxis.tick_top()
    axes.spines["top"].set_visible(True)
    axes.spines["bottom"].set_visible(False)
    axes.locator_params(axis="x", nbins=4)
    page.text(left, low - 0.36, "norm of a token", fontsize=8.5, va="bottom")


def _scale(page: Axes, *, left: float, top: float) -> None:
    """What the colours mean, in a line under the maps."""
    middle = top + 0.13
    page.text(left, middle, "weight  0", fontsize=8.5, va="center")
    ramp = torch.linspace(0, 1, 64, device="cpu")[None].numpy()
    page.imshow(
        ramp, cmap=HEAT, extent=(left + 0.66, left + 1.86, middle + 0.06, middle - 0.06), aspect="auto"
    )
    page.text(left + 1.92, middle, "1", fontsize=8.5, va="center")
    page.text(left + 2.3, middle, "rows: queries,  columns: keys", fontsize=8.5, va="center", color=MUTED)


# The diagram: one unit is a hundredth of an inch, y goes down.
WIDE, HIGH = 800, 564
SKY, SAND, MINT, GREY = "#DCEAF5", "#FBE9D9", "#DDF0E8", "#EFEFEF"  # attention, norms, feed-forward, the rest
RAIL, MEMORY = CURVES[0], CURVES[1]
ENCODER, DECODER, BUS = 174, 448, 262  # how far down the two streams and the memory between them run
FIRST, ENCODER_CELL, DECODER_CELL = 140, 165, 136  # where layer 1 starts, and the room of a sub-layer
ENCODER_LATER, DECODER_LATER = (494, 560), (572, 634)  # where layer 2 and the last layer stand
LATER, TURN, LOGITS = 30, 712, 724  # a later layer's width; where the memory turns back; where logits start
UP, TABLE = 70, 534  # from a stream to the middle of its sub-layers; how far down the table is


@styled
def transformer_diagram(*, norm_first: bool = False) -> Picture:
    """The whole machine, drawn as two residual streams from left to right: sub-layers read from a stream and
    add to it.

    `norm_first` draws the norms inside the branches (pre-norm), else on the stream behind each sum
    (post-norm, as published).
    """
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
    _box(page, (LOGITS + WIDE - 8) / 2, DECODER, WIDE - 8 - LOGITS, 62, "logits", "x @ table.T", GREY)
    dashed = {"color": "black", "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0}
    page.plot([67, 67], [DECODER + 31, TABLE], **dashed)
    page.plot([18, 4, 4, 67], [ENCODER, ENCODER, TABLE, TABLE], **dashed)
    page.plot([67, LOGITS + 33, LOGITS + 33], [TABLE, TABLE, DECODER + 31], **dashed)
    _box(page, 67, TABLE, 112, 44, "table", "(n_tokens, d_model)", "white")
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
    place = (x - width / 2, y - height / 2)
    page.add_patch(
        FancyBboxPatch(place, width, height, boxstyle="round,pad=0,rounding_size=4", facecolor=fill,
        edgecolor=edge, zorder=3)
    )  # fmt: skip
    text = {"ha": "center", "va": "center", "zorder": 5}
    shift = 6.5 * (1 + note.count("\n")) if note else 0
    page.text(x, y - shift, name, fontsize=9, **text)
    if note:
        page.text(x, y + 8, note, fontsize=7.5, color=MUTED, linespacing=1.3, **text)


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
