"""A model opened on one text, whatever the model: what every head looks at, and what the residual stream
does from layer to layer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib.charts.picture import CURVES, HEAT, Picture, canvas, styled

TWO_STACKS, ONE_STACK = ("source", "target", "encoder", "decoder"), ("pieces", "weights", "stream")
LABELS, MAPS, BETWEEN, STREAM = 0.92, 4.56, 0.82, 1.6  # inches across: names, maps, ticks, the stream's norm
GAP, HEADING, TALL = 0.06, 0.62, 9.6  # inches between maps, for a stack's heading, for all maps at most
MUTED = "0.35"


class Part(NamedTuple):
    """One kind of attention of an opened model, of one text, in float64 on the processor.

    `weights` (layers, h, n, m) are those of its queries on its keys, `stream` (layers + 1, n, d_model) the
    rows of the queries as they come in and behind each layer; `first` is the first layer's number. `says` has
    what each row would say if it were read out, where that was asked.
    """

    key: str
    name: str
    stack: str
    queries: list[str]
    keys: list[str]
    weights: Tensor
    stream: Tensor
    first: int
    says: list[list[str]] | None = None


def parts(opened: Any) -> list[Part]:
    """The kinds of attention that an opened model holds: the three of an encoder and a decoder, or the one of
    a single stack.

    `opened` is what models.translator.opened or models.pretrained.opened returns, for one text. Raises
    TypeError where its fields are not there, ValueError where weights or streams are missing, are a batch, or
    do not fit the tokens.
    """
    if all(hasattr(opened, name) for name in ONE_STACK):
        tokens = [str(token) for token in opened.pieces]
        n = len(tokens)
        tables = _layers(_kept(opened.weights, "model"), (n, n), "weights")
        stream = _layers(_kept(opened.stream, "model"), (n, None), "stream")
        kinds = [Part("own", "all tokens", "Model", tokens, tokens, tables, stream, 0, opened.says)]
    else:
        kinds = _of_two_stacks(opened)
    for part in kinds:
        if len(part.stream) != len(part.weights) + 1:
            raise ValueError(
                f"the {part.stack.lower()}'s stream must hold one more than the {len(part.weights)} layers,"
                f" got {len(part.stream)}: the tokens as they come in, and as each layer leaves them"
            )
    return kinds


def _of_two_stacks(opened: Any) -> list[Part]:
    missing = [name for name in TWO_STACKS if not hasattr(opened, name)]
    if missing:
        raise TypeError(
            "opened must be what models.pretrained.opened(model, text) or models.translator.opened(model,"
            f" text) returns; this {type(opened).__name__} lacks {', '.join(missing)}"
        )
    source, target = ([str(token) for token in tokens] for tokens in (opened.source, opened.target))
    n, m = len(target), len(source)
    seen = _layers(_kept(opened.encoder.weights, "encoder"), (m, m), "encoder.weights")
    tables = _kept(opened.decoder.weights, "decoder")
    own = _layers([layer.own for layer in tables], (n, n), "decoder.weights, own")
    cross = _layers([layer.cross for layer in tables], (n, m), "decoder.weights, cross")
    encoded = _layers(_kept(opened.encoder.stream, "encoder"), (m, None), "encoder.stream")
    decoded = _layers(_kept(opened.decoder.stream, "decoder"), (n, None), "decoder.stream")
    return [
        Part("encoder", "encoder", "Encoder", source, source, seen, encoded, 1),
        Part("own", "decoder, own tokens", "Decoder", target, target, own, decoded, 1),
        Part("cross", "decoder to encoder", "Decoder", target, source, cross, decoded, 1),
    ]


def _kept(tables: Any, name: str) -> Sequence[Any]:
    if not tables or any(table is None for table in tables):
        raise ValueError(f"the {name} was not opened: call the model with weights=True")
    return tables


@styled
def machine(opened: Any, *, caption: str = "", alt: str = "") -> Picture:
    """Every layer and head of an opened model as a small map, top to bottom as the tokens pass, and the
    residual stream's norm beside it.

    `opened` is what `parts` takes; raises as it does.
    """
    stacks: dict[str, list[Part]] = {}
    for part in parts(opened):
        stacks.setdefault(part.stack, []).append(part)
    n_heads = max(part.weights.shape[1] for some in stacks.values() for part in some)
    most_rows = sum(len(part.weights) for some in stacks.values() for part in some)
    size = min(1.4, (MAPS - GAP * (n_heads - 1)) / n_heads, TALL / most_rows)
    drawn = [(_about(some), _rows(some, size), some[0]) for some in stacks.values()]
    width = LABELS + MAPS + BETWEEN + STREAM + 0.1
    height = sum(HEADING + 0.2 + sum(tall + gap for *_, tall, gap in rows) for _, rows, _ in drawn) + 0.45
    most = max(part.stream.norm(dim=-1).max().item() for *_, part in drawn)
    figure, ((page,),) = canvas(width=width, height=height)
    figure.set_layout_engine("none")
    page.set_position([0, 0, 1, 1])
    top = 0.0
    for words, rows, part in drawn:
        page.text(0.06, top + 0.2, part.stack, fontsize=11, fontweight="bold", va="center")
        page.text(LABELS, top + 0.2, words, fontsize=9, va="center", color=MUTED)
        top = _stack(page, rows, top + HEADING, size)
        bounds = [
            top - sum(tall + gap for *_, tall, gap in rows[k:])
            for k in range(0, len(rows) + 1, len(rows) // len(part.weights))
        ]
        _beside(page, bounds, part, left=LABELS + MAPS + BETWEEN, most=most)
        top += 0.2
    _scale(page, left=LABELS, top=top + 0.02)
    page.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
    page.set_axis_off()
    whole = "A Transformer" if len(stacks) > 1 else "A model"
    of = " of encoder and decoder" if len(stacks) > 1 else ""
    return Picture(
        figure,
        alt
        or (
            f"{whole} opened on one text: a small map of weights for every layer and head{of}, and beside"
            " them the norm of the residual stream as it passes from layer to layer."
        ),
        caption
        or (
            "In each map rows are queries, columns are keys, bright is a large weight; each map is "
            "stretched to its box. The line on the right is the mean length of a token's row as it comes in "
            "and after each layer, the band runs from the shortest to the longest token."
        ),
    )


def _about(some: list[Part]) -> str:
    n = len(some[0].queries)
    if some[0].stack == "Decoder":
        return f"{n} target tokens; own: itself and its past, cross: the source"
    return f"{n} source tokens look at all source tokens" if some[0].stack == "Encoder" else f"{n} tokens"


def _rows(some: list[Part], size: float) -> list[tuple[str, Tensor, float, float]]:
    """A row of maps for each layer of each part: its name, weights (h, n, m), height, and the gap below."""
    rows = []
    for k in range(len(some[0].weights)):
        for part in some:
            n, m = part.weights.shape[-2:]
            tall = size if n == m else size * min(1.0, max(0.4, n / m))
            name = f"layer {k + part.first}" if part is some[0] else part.name.split()[0]
            rows.append((name, part.weights[k], tall, GAP))
        if len(some) > 1:
            rows[-2] = (f"{rows[-2][0]}\nown", *rows[-2][1:])
            rows[-1] = ("cross", *rows[-1][1:3], 2.5 * GAP)
    return rows


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
        page.text(x, top - 0.06, f"head {head}", ha="center", va="bottom", fontsize=9)
    for name, tables, tall, gap in rows:
        page.text(LABELS - 0.08, top + tall / 2, name, ha="right", va="center", fontsize=9, linespacing=1.3)
        for head, table in enumerate(tables):
            left = LABELS + head * (size + GAP)
            extent = (left, left + size, top + tall, top)
            page.imshow(table.cpu().numpy(), cmap=HEAT, vmin=0, vmax=1, extent=extent, aspect="auto")
        top += tall + gap
    return top


def _beside(page: Axes, bounds: list[float], part: Part, *, left: float, most: float) -> None:
    """The norm of the residual stream in axes of its own: it goes down as the maps do, a point where a layer
    ends."""
    norms = part.stream.norm(dim=-1)
    width, height = page.figure.get_size_inches()
    low, high = bounds[0], bounds[-1]
    axes = page.figure.add_axes([left / width, 1 - high / height, STREAM / width, (high - low) / height])
    axes.set_gid("stream")
    axes.fill_betweenx(bounds, norms.amin(-1), norms.amax(-1), color=CURVES[0], alpha=0.18, linewidth=0)
    axes.plot(norms.mean(-1), bounds, color=CURVES[0], marker="o", markersize=4)
    axes.set(xlim=(0, 1.08 * most), ylim=(high + 0.08, low - 0.08))
    axes.set_yticks(bounds, ["in", *(f"after {k + part.first}" for k in range(len(part.weights)))])
    axes.tick_params(labelsize=9)
    axes.xaxis.tick_top()
    axes.spines["top"].set_visible(True)
    axes.spines["bottom"].set_visible(False)
    axes.locator_params(axis="x", nbins=4)
    page.text(left, low - 0.36, "norm of a token", fontsize=9, va="bottom")


def _scale(page: Axes, *, left: float, top: float) -> None:
    """What the colours mean, in a line under the maps."""
    middle = top + 0.13
    page.text(left, middle, "weight  0", fontsize=9, va="center")
    ramp = torch.linspace(0, 1, 64, device="cpu")[None].numpy()
    page.imshow(
        ramp, cmap=HEAT, extent=(left + 0.66, left + 1.86, middle + 0.06, middle - 0.06), aspect="auto"
    )
    page.text(left + 1.92, middle, "1", fontsize=9, va="center")
    page.text(left + 2.3, middle, "rows: queries,  columns: keys", fontsize=9, va="center", color=MUTED)
