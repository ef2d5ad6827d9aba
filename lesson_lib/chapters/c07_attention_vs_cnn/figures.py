"""The figures of lesson 07: pictures as sets, what heads look at, and what comes of it in ViT, SAGAN and
DETR.

A pixel is (row, column), counted from 0 at the top left. A box is (left, top, right, bottom) in pixels, edges
and not centres.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Num
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from torch import Tensor

from lesson_lib import require
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import CURVES, HEAT, MARKERS, Picture, bare, color, styled, trim
from lesson_lib.charts.picture import canvas as sheet

Pixel = tuple[int, int]
QUERY = CURVES[1]  # the frame of the pixel that asks
CHANCE = {"digits": 0.1, "pairs": 0.5}
ACROSS = 6  # canvases side by side
HOUSE = ["sssssssYYs", "ssrssssYYs", "srrrssssts", "swdwsssttt", "gggggggggg"]
COLORS = {
    "s": (0.6, 0.8, 1.0), "Y": (1.0, 0.8, 0.1), "r": (0.8, 0.3, 0.2), "w": (0.9, 0.9, 0.7),
    "d": (0.4, 0.2, 0.1), "t": (0.1, 0.5, 0.2), "g": (0.5, 0.8, 0.3),
}  # fmt: skip


def example_picture() -> Float[Tensor, "3 5 10"]:
    """A house and a tree under a sun, 5 pixels high and 10 wide; red, green and blue in tenths."""
    return torch.tensor([[COLORS[letter] for letter in row] for row in HOUSE], device="cpu").permute(2, 0, 1)


@styled
def picture_as_set(
    picture: Float[Tensor, "3 h w"], marked: Sequence[Pixel] = ((0, 7), (2, 2), (4, 4))
) -> Picture:
    """A picture with its pixels numbered row by row, and the same pixels as vectors of 3 numbers; `marked`
    ones are framed in both."""
    picture = picture.detach().cpu()
    _, h, w = picture.shape
    ratios = [0.3 * h, 0.21 * (w + 1.5)]
    figure, (top, below) = sheet(2, 1, width=7.4, height=1.1 + sum(ratios), height_ratios=ratios)
    image, table = top[0], below[0]
    draw_picture(image, picture)
    image.set_title(f"a picture of {h} by {w} pixels")
    table.set(xlim=(0, h), ylim=(w + 0.1, -1.2))
    table.set_title(f"the same as a set of {h * w} vectors of 3 numbers: red, green, blue")
    bare(table)
    for i in range(h):
        table.text(i + 0.5, -0.5, f"row {i}", ha="center", va="center", fontsize=9, color="0.35")
        for j in range(w):
            _number(image, (i, j), i * w + j, picture[:, i, j])
            _vector(table, i, j, i * w + j, picture[:, i, j])
    for k, (i, j) in enumerate(marked):
        _frame(image, (j - 0.5, i - 0.5), 1, 1, _mark(k))
        _frame(table, (i + 0.03, j), 0.94, 1, _mark(k))
    trim(figure)
    return Picture(
        figure,
        "A small coloured picture whose pixels are numbered row by row, and below it a list with three"
        " numbers for each of them; some pixels are framed in both.",
        "Pixels are numbered row by row. The numbers on the left of the vectors only name them: a set has no"
        " order.",
    )


def _mark(k: int) -> str:
    return ("black", CURVES[0], QUERY)[k % 3]


def _number(axes: Axes, pixel: Pixel, number: int, shade: Tensor) -> None:
    """A number on a pixel, in ink that reads well on its colour."""
    red, green, blue = shade.tolist()
    tone = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
    axes.text(pixel[1], pixel[0], str(number), ha="center", va="center", fontsize=8, color=tone)


def _vector(axes: Axes, column: int, line: int, number: int, vector: Tensor) -> None:
    """One vector of the set: its pixel's number, its colour, its three numbers."""
    shade = tuple(vector.clamp(0, 1).tolist())
    _rectangle(axes, (column + 0.24, line + 0.15), 0.12, 0.7, fill=True, color=shade)
    text = "  ".join(f"{value:.1f}" for value in vector.tolist())
    place = {"va": "center", "fontsize": 8.5}
    axes.text(column + 0.2, line + 0.5, str(number), ha="right", color="0.35", **place)
    axes.text(column + 0.42, line + 0.5, text, ha="left", **place)


def offset_name(down: int, right: int) -> str:
    """A place relative to one's own, in words.

    >>> offset_name(-1, 1), offset_name(0, 0), offset_name(2, 0)
    ('up right (-1, 1)', 'the pixel itself (0, 0)', 'down 2 (2, 0)')
    """
    words = []
    for steps, before, after in ((down, "up", "down"), (right, "left", "right")):
        if steps:
            words.append((before if steps < 0 else after) + (f" {abs(steps)}" if abs(steps) > 1 else ""))
    return f"{' '.join(words) or 'the pixel itself'} ({down}, {right})"


def kernel_offsets(kernel: int) -> list[Pixel]:
    """Where each tap of a square kernel looks, down and right of the middle, row by row: the order of
    `as_attention`'s heads."""
    reach = range(-(kernel // 2), kernel // 2 + 1)
    return [(down, right) for down in reach for right in reach]


@styled
def taps(weights: Float[Tensor, "taps n m"], pixel: Pixel, shape: tuple[int, int], border: int) -> Picture:
    """Where each head of `as_attention` looks from one pixel: a map over the canvas for each, arranged as the
    kernel's taps.

    `shape` is the picture's height and width. Raises ValueError where weights, shape and border do not fit
    together.
    """
    h, w = shape
    kernel, size = math.isqrt(len(weights)), (h + 2 * border, w + 2 * border)
    if kernel**2 != len(weights) or weights.shape[1:] != (h * w, math.prod(size)):
        raise ValueError(
            f"weights of {h} x {w} pixels with a border of {border} must have shape (K * K, {h * w},"
            f" {math.prod(size)}), got {tuple(weights.shape)}; take layer.heads(x, weights=True).weights[0]"
        )
    _inside(pixel, shape)
    rows = weights[:, pixel[0] * w + pixel[1]].detach().cpu().reshape(-1, *size)
    wide = min(7.0, 6.0 * size[1] / size[0])
    figure, grid = sheet(kernel, kernel, width=wide, height=1.03 * wide * size[0] / size[1])
    for axes, (down, right), row in zip(grid.flat, kernel_offsets(kernel), rows, strict=True):
        image = draw_picture(axes, row, (pixel[0] + border, pixel[1] + border), high=rows.max().item())
        _outline(axes, border, shape)
        axes.set_title(offset_name(down, right), fontsize=9)
    figure.colorbar(image, ax=grid, label="weight", fraction=0.04, shrink=0.6)
    trim(figure)
    return Picture(
        figure,
        "A map for each head, arranged as the taps of a kernel: the weights of one pixel over the canvas,"
        " bright one place further in the direction of the head's name.",
        "Orange: the pixel that asks. White line: the edge of the picture; outside lies the border of zeros."
        " The heads' names: how far down, how far right.",
    )


@styled
def gaze(
    picture: Float[Tensor, "c h w"], weights: Float[Tensor, "rows columns"], pixel: Pixel, title: str
) -> Picture:
    """A picture with the pixel that asks in a frame, and beside it its weights over the picture and its
    border of zeros."""
    border = (weights.shape[0] - picture.shape[1]) // 2
    there = (pixel[0] + border, pixel[1] + border)
    ratio = weights.shape[0] / weights.shape[1]
    figure, grid = sheet(1, 2, width=7.0, height=3.2 * ratio + 0.5)
    padded = torch.nn.functional.pad(picture.detach().cpu(), (border,) * 4)
    draw_picture(grid[0][0], padded, there)
    grid[0][0].set_title("the pixel that asks")
    image = draw_picture(grid[0][1], weights, there)
    grid[0][1].set_title(title)
    for axes in grid[0]:
        _outline(axes, border, picture.shape[1:])
    figure.colorbar(image, ax=grid[0][1], label="weight", fraction=0.04, shrink=0.8)
    trim(figure)
    return Picture(
        figure,
        "A picture with one pixel framed, and beside it the weights of that pixel over the picture and its"
        " border of zeros.",
        "Orange: the pixel that asks. White line: the edge of the picture.",
    )


def error_by_sharpness(
    sharpness: Sequence[float], errors32: Sequence[float], errors64: Sequence[float]
) -> Picture:
    """The largest difference between a convolution and its attention over the sharpness, in both number
    formats."""
    return lines(
        {"largest error": {"float32": (sharpness, errors32), "float64": (sharpness, errors64)}},
        alt=(
            "The largest error over the sharpness, error axis logarithmic: both curves fall in one straight"
            " line; float32 levels off first, float64 much further down."
        ),
        caption=(
            "A straight line here is an exponential: one more unit of sharpness takes the same factor off the"
            " error, until rounding is all that is left."
        ),
        x_axis="sharpness",
        log="y",
        height=3.2,
    )


@styled
def fields(found: Mapping[str, Float[Tensor, "h w"]], pixel: Pixel) -> Picture:
    """Receptive fields of one pixel side by side, each divided by its own maximum; where a field is exactly 0
    it is white."""
    figure, grid = sheet(
        1, len(found), width=min(7.6, 2.4 * len(found) + 0.8), height=2.9 if len(found) < 4 else 2.4
    )
    for axes, (name, field) in zip(grid[0], found.items(), strict=True):
        _inside(pixel, field.shape)
        shares = field.detach().cpu() / field.max().clamp(min=torch.finfo(field.dtype).tiny).cpu()
        image = draw_picture(axes, shares.masked_fill(shares == 0, torch.nan), pixel, high=1.0)
        axes.spines[:].set(visible=True, color="0.6")
        axes.set_title(name, fontsize=9.5)
    figure.colorbar(image, ax=grid, label="gradient / its maximum", fraction=0.04, shrink=0.8)
    trim(figure)
    return Picture(
        figure,
        "Receptive fields of one pixel side by side: the pixels that its output depends on are coloured, all"
        " others are white.",
        "Orange: the pixel whose output is asked for. Colour: how strongly it moves with each input pixel."
        " White: not at all, exactly 0.",
    )


@styled
def curves(points: Mapping[str, Mapping[str, Sequence]], task: str, result: str = "") -> Picture:
    """Test accuracy over the number of training images, {budget: {model: (ns, lowest, median, highest)}}, a
    panel for each budget.

    `task` is "digits" or "pairs"; a line across shows its chance; `result` is a sentence for the alt text.
    Raises ValueError for another task.
    """
    require.one_of(CHANCE, task=task)
    picture = lines(
        {f"test accuracy, {budget}": models for budget, models in points.items()},
        alt=f"Test accuracy over the number of training images, a curve for each model. {result}",
        caption=f"Stored run, {task}. Middle of three seeds, band from lowest to highest.",
        x_axis="training images",
        log="x",
        y_limits=(0, 1.02),
        height=3.4,
    )
    for axes in picture.figure.axes:
        axes.axhline(CHANCE[task], color="0.5", linewidth=1, zorder=0)
        beside = {"xycoords": ("axes fraction", "data"), "xytext": (0, -3), "textcoords": "offset points"}
        axes.annotate(
            "chance", (1.0, CHANCE[task]), **beside, ha="right", va="top", fontsize=8.5, color="0.35"
        )
        if len(axes.get_xticks()) > 5:
            axes.tick_params(axis="x", labelrotation=45)
    return picture


@styled
def distances(before: Mapping[int, Sequence[float]], after: Mapping[int, Sequence[float]]) -> Picture:
    """How far each head looks, {layer: a distance in pixels for each head}, without training and with it."""
    figure, grid = sheet(1, 2, width=7.0, height=3.0, sharey=True)
    for axes, title, layers in zip(
        grid[0], ("before training", "after training"), (before, after), strict=True
    ):
        for i, heads in enumerate(layers.values()):
            for k, distance in enumerate(heads):
                style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "linestyle": "none"}
                place = i + 0.1 * (k - (len(heads) - 1) / 2)  # side by side
                axes.plot(place, distance, markersize=7, label=f"head {k}" if not i else None, **style)
        axes.set_xticks(range(len(layers)), [str(name) for name in layers])
        axes.set(xlim=(-0.5, len(layers) - 0.5), xlabel="layer")
        axes.set_title(title, loc="left")
    highest = max(distance for layers in (before, after) for heads in layers.values() for distance in heads)
    grid[0][0].set_ylim(0, 1.15 * highest)
    grid[0][0].set_ylabel("attention distance, in pixels")
    handles, labels = grid[0][1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), frameon=False)
    return Picture(
        figure,
        "A dot for each head of each layer, as high as the mean distance at which it looks, before training"
        " on the left and after it on the right.",
        "Mean distance between a patch and the patches it looks at, weighted by attention, averaged over test"
        " images.",
    )


@styled
def scenes(canvases: Float[Tensor, "b h w"], titles: Sequence[str]) -> Picture:
    """Canvases with a title each, up to six in a row. Raises ValueError where there are not as many
    titles."""
    figure, grid = _row(len(canvases), ACROSS)
    for axes, pixels, title in zip(grid.flat, canvases, titles, strict=False):
        draw_picture(axes, pixels, low=canvases.min().item(), high=canvases.max().item())
        axes.set_title(title, fontsize=9.5)
    trim(figure)
    return Picture(figure, "Canvases side by side, with what each of them shows as its title.")


@styled
def gamma(values: Mapping[str, Sequence]) -> Picture:
    """SAGAN's gamma over the steps of the training, {network: (steps, values)} or (steps, lowest, median,
    highest)."""
    picture = lines(
        {"gamma": dict(values)},
        alt=(
            "Gamma over the steps of the training, a curve for the generator and one for the discriminator,"
            " which both start at zero."
        ),
        caption="Gamma is the weight of attention in x + gamma · attended. At 0 the block does nothing.",
        x_axis="step",
        points=False,
        height=3.0,
    )
    for axes in picture.figure.axes:
        axes.axhline(0.0, color="0.6", linewidth=1, zorder=0)
    return picture


def agreement(curves: Mapping[str, Sequence]) -> Picture:
    """kappa over the steps of long GAN trainings, {what stands in the middle: (steps, lowest, median,
    highest)}."""
    return lines(
        {"kappa: how much the halves agree beyond chance": dict(curves)},
        alt=(
            "Agreement of the two halves beyond chance over the steps of the training: with attention it"
            " rises towards one, without it stays near zero."
        ),
        caption=(
            "Stored runs, own noise at each place. Middle of three seeds, band from lowest to highest. Real"
            " pictures have 1."
        ),
        x_axis="step",
        y_limits=(-0.1, 1.02),
        points=False,
        height=3.2,
    )


@styled
def generated(sheets: Mapping[str, Float[Tensor, "count h w"]]) -> Picture:
    """A sheet of pictures for each name, such as the real ones, those of one generator and of another; wide
    pictures stand in fewer columns."""
    figure, grid = sheet(1, len(sheets), width=min(7.6, 2.5 * len(sheets)), height=4.0)
    for axes, (name, pictures) in zip(grid[0], sheets.items(), strict=True):
        count, h, w = pictures.shape
        across = max(1, round(math.sqrt(count * h / w)))
        gap = torch.nn.functional.pad(pictures.detach().cpu(), (0, 1, 0, 1), value=torch.nan)
        tiles = gap[: count - count % across].unflatten(0, (-1, across)).permute(0, 2, 1, 3)
        draw_picture(axes, tiles.flatten(2).flatten(0, 1)[:-1, :-1])
        axes.set_title(name)
    trim(figure)
    return Picture(
        figure, "Sheets of small pictures side by side: real ones and those that generators have drawn."
    )


@styled
def maps(picture: Float[Tensor, "h w"], attention: Mapping[Pixel, Float[Tensor, "rows columns"]]) -> Picture:
    """Attention maps of a generator, {place that asks: weights over the grid}, beside the picture that it
    made of them.

    A place is (row, column) of the maps' grid, which may be coarser than the picture; the picture shows all
    places that ask.
    """
    figure, grid = sheet(1, 1 + len(attention), width=min(7.8, 1.9 * (1 + len(attention))), height=2.4)
    draw_picture(grid[0][0], picture)
    grid[0][0].set_title("the picture", fontsize=9.5)
    for axes, ((row, column), table) in zip(grid[0][1:], attention.items(), strict=True):
        _inside((row, column), table.shape)
        down, right = (a / b for a, b in zip(picture.shape, table.shape, strict=True))
        corner = (column * right - 0.5, row * down - 0.5)
        _frame(grid[0][0], corner, right, down)
        draw_picture(axes, table, (row, column))
        axes.set_title(f"asked at ({row}, {column})", fontsize=9.5)
    trim(figure)
    return Picture(
        figure,
        "A generated picture with some places framed, and beside it an attention map for each place, its own"
        " place framed.",
        "Bright is a large weight; every map has its own scale, from 0 to its largest weight. Places are"
        " (row, column).",
    )


@styled
def detections(
    canvases: Float[Tensor, "b h w"],
    true: Sequence[Num[Tensor, "_ 4"]],
    found: Sequence[Num[Tensor, "_ 4"]],
    labels: Sequence[Sequence[str]],
) -> Picture:
    """Canvases with their true boxes (dashed) and the boxes that were found, each with its label; boxes of no
    width are left out.

    `true`, `found` and `labels` have an entry for each canvas.
    """
    figure, grid = _row(len(canvases), 4)
    for axes, pixels, real, boxes, names in zip(grid.flat, canvases, true, found, labels, strict=False):
        draw_picture(axes, pixels, low=canvases.min().item(), high=canvases.max().item())
        for box in real.tolist():
            _box(axes, box, "white", linestyle="--", linewidth=1.2)
        for box, name in zip(boxes.tolist(), names, strict=True):
            _box(axes, box, QUERY, name, linewidth=2)
    trim(figure)
    return Picture(
        figure,
        "Canvases with shapes: dashed boxes where the shapes are, solid boxes with a name where the model"
        " found one.",
        "White, dashed: the true boxes. Orange: what was found.",
    )


@styled
def query_maps(
    canvas: Float[Tensor, "h w"], box: Num[Tensor, "4"], weights: Mapping[str, Float[Tensor, "rows columns"]]
) -> Picture:
    """Cross-attention of an object query, laid over the canvas: the more orange a cell, the larger its
    weight; `box` is what it found."""
    h, w = canvas.shape
    figure, grid = sheet(1, 1 + len(weights), width=min(7.8, 1.9 * (1 + len(weights))), height=2.4)
    for axes, (name, table) in zip(grid[0], {"what it found": None, **weights}.items(), strict=True):
        draw_picture(axes, canvas, shades="gray")
        if table is not None:
            share = (table / table.max().clamp(min=torch.finfo(table.dtype).tiny)).detach().cpu()
            tint = torch.tensor(to_rgb(CURVES[4]), device="cpu").expand(*table.shape, 3)
            cells = torch.cat([tint, 0.85 * share[..., None].to(tint)], -1)
            axes.imshow(cells.cpu().numpy(), extent=(-0.5, w - 0.5, h - 0.5, -0.5))
        _box(axes, box.tolist(), CURVES[5], linewidth=2)
        axes.set_title(name, fontsize=9.5)
    trim(figure)
    return Picture(
        figure,
        "A canvas with the box that an object query found, and the same canvas under the query's weights, a"
        " map for each head.",
        "Orange: where the query looks, a cell of the feature map over the pixels it stands for; every map"
        " has its own scale. Blue: the box.",
    )


@styled
def queries(rows: Sequence[Mapping[str, Any]], size: int = 24) -> Picture:
    """Where each object query finds its objects: the middles of its boxes in many scenes, from the stored
    rows of the experiment "detr"."""
    kept = next(row["queries"] for row in rows if row["system"] == "DETR" and "queries" in row)
    figure, grid = sheet(1, len(kept), width=7.8, height=2.1)
    for k, (axes, query) in enumerate(zip(grid[0], kept, strict=True)):
        sure = [(x, y) for x, y, found in zip(query["x"], query["y"], query["sure"], strict=True) if found]
        if sure:
            axes.plot(*zip(*sure, strict=True), color=color(k), marker=".", markersize=3.5, linestyle="none")
        bare(axes)
        axes.spines[:].set(visible=True, color="0.6")
        axes.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
        axes.set_title(f"query {query['query']}", fontsize=9.5)
    trim(figure)
    return Picture(
        figure,
        "A canvas for each object query with a dot wherever it found an object.",
        "Stored run, seed 0: the middle of every box that a query was sure of, in 400 test scenes.",
    )


@styled
def centres(
    before: Float[Tensor, "heads 2"], after: Float[Tensor, "heads 2"], taps: Float[Tensor, "k 2"]
) -> Picture:
    """Where heads look, in pixels down and right of the asking one, before and after they learned to imitate
    a kernel; rings are its taps."""
    figure, grid = sheet(width=4.6, height=4.4)
    axes = grid[0][0]
    down, right = taps.detach().cpu().T.tolist()
    ring = {"markersize": 20, "markerfacecolor": "none", "markeredgecolor": "0.5", "linestyle": "none"}
    axes.plot(right, down, marker="o", label="the kernel's taps", **ring)
    arrow = {"arrowstyle": "-|>", "color": "0.3", "shrinkA": 0, "shrinkB": 0}
    for start, end in zip(before.tolist(), after.tolist(), strict=True):
        axes.annotate("", end[::-1], start[::-1], arrowprops=arrow)
    for k, (name, places) in enumerate({"before": before, "after": after}.items()):
        down, right = places.detach().cpu().T.tolist()
        axes.plot(right, down, MARKERS[k], color=color(k), markersize=6, label=name, linestyle="none")
    axes.margins(0.12)
    axes.invert_yaxis()
    axes.set(aspect="equal", xlabel="pixels to the right", ylabel="pixels down")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, markerscale=0.6)
    trim(figure)
    return Picture(
        figure,
        "The places at which heads look, relative to their own pixel: arrows lead from where they looked at"
        " first to where they look after training; rings mark the taps of the kernel that they imitate.",
        "An arrow for each head. A head that ends in a ring does the work of that tap.",
    )


def draw_picture(
    axes: Axes,
    picture: Tensor,
    pixel: Pixel | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    shades: str = HEAT,
) -> AxesImage:
    """Draw a picture (h, w), (1, h, w) or, coloured, (3, h, w), with one pixel in a frame.

    One channel is coloured from `low` (default: 0, or the smallest number where that is less) to `high` (the
    largest); nan is white.
    """
    if not isinstance(picture, Tensor) or (
        picture.ndim != 2 and (picture.ndim, len(picture)) not in ((3, 1), (3, 3))
    ):
        got = tuple(picture.shape) if isinstance(picture, Tensor) else type(picture).__name__
        raise ValueError(
            f"a picture must be a tensor (h, w), (1, h, w) or (3, h, w), got {got}; of a batch take x[0]"
        )
    picture = picture.detach().float().cpu()
    if picture.ndim == 3 and len(picture) == 3:
        image = axes.imshow(picture.clamp(0, 1).permute(1, 2, 0).cpu().numpy())
    else:
        table = picture.reshape(picture.shape[-2:])
        known = table[~table.isnan()].tolist() or [0.0]
        low = min(0.0, *known) if low is None else low
        high = max(known) if high is None else high
        shades = colormaps[shades].with_extremes(bad="white")
        image = axes.imshow(table.cpu().numpy(), cmap=shades, vmin=low, vmax=high if high > low else low + 1)
    bare(axes)
    if pixel is not None:
        _frame(axes, (pixel[1] - 0.5, pixel[0] - 0.5), 1, 1)
    return image


def _frame(axes: Axes, corner: tuple[float, float], width: float, height: float, edge: str = QUERY) -> None:
    """A frame with a thin white line round it, so that it is seen on any colour."""
    halo = [withStroke(linewidth=2.8, foreground="white")]
    _rectangle(axes, corner, width, height, edgecolor=edge, linewidth=1.7, path_effects=halo, zorder=3)


def _rectangle(axes: Axes, corner: tuple[float, float], width: float, height: float, **style: Any) -> None:
    axes.add_patch(Rectangle(corner, width, height, **{"fill": False, "clip_on": False, **style}))


def _row(count: int, most: int) -> tuple[Figure, Any]:
    """A grid of axes for that many canvases, at most so many side by side; the spare ones are
    switched off."""
    down = math.ceil(count / most)
    across = math.ceil(count / down)
    each = min(2.6, 7.6 / across)
    figure, grid = sheet(down, across, width=each * across, height=(each + 0.2) * down)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return figure, grid


def _outline(axes: Axes, border: int, shape: Sequence[int]) -> None:
    """A white line round the picture inside its border of zeros."""
    corner = (border - 0.5, border - 0.5)
    _rectangle(axes, corner, shape[1], shape[0], edgecolor="white", linewidth=0.8, zorder=1.5)


def _box(axes: Axes, box: Sequence[float], edge: str, name: str = "", **style) -> None:
    """A box whose edges lie between pixels, with a name above it, or below it at the canvas' top; nothing for
    one of no width."""
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        return
    _rectangle(axes, (left - 0.5, top - 0.5), right - left, bottom - top, edgecolor=edge, **style)
    if name:
        above, near = top >= 4, left + right < sum(axes.get_xlim())  # room above, and to the right
        ground = {"facecolor": edge, "edgecolor": "none", "pad": 1}
        place = {"ha": "left" if near else "right", "va": "bottom" if above else "top"}
        corner = ((left if near else right) - 0.5, (top if above else bottom) - 0.5)
        axes.text(*corner, name, fontsize=8, color="white", bbox=ground, **place)


def _inside(pixel: Pixel, shape: Sequence[int]) -> None:
    if not all(0 <= place < size for place, size in zip(pixel, shape, strict=True)):
        raise ValueError(
            f"pixel must lie in the picture of {shape[0]} x {shape[1]}, counted from 0, got {pixel}"
        )
