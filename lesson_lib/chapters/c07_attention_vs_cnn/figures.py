"""The figures of lesson 07: pictures as sets, what heads look at, and what comes of it in ViT, SAGAN and
DETR.

A pixel is (row, column), counted from 0 at the top left. A box is (left, top, right, bottom) in pixels, edges
and not centres.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.chapters.c07_attention_vs_cnn.detr_figures import (  # noqa: F401
    by_objects,
    detections,
    found_in,
    looked_from,
    queries,
    query_maps,
)
from lesson_lib.chapters.c07_attention_vs_cnn.drawing import (
    QUERY,
    Pixel,
    draw_frame,
    draw_outline,
    draw_picture,
    draw_rectangle,
    row_of_panels,
)
from lesson_lib.chapters.c07_attention_vs_cnn.sagan_figures import (  # noqa: F401
    agreement,
    drawn,
    gamma,
    generated,
)
from lesson_lib.chapters.c07_attention_vs_cnn.vit_figures import (  # noqa: F401
    ACROSS,
    class_token_path,
    crossing,
    curves,
    distances,
    judged,
    shares_right,
    uncovered,
    ways_to_the_rule,
)
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import CURVES, Picture, bare, figure, styled, trim
from lesson_lib.charts.picture import canvas as sheet

HOUSE = ["sssssssYYs", "ssrssssYYs", "srrrssssts", "swdwsssttt", "gggggggggg"]
COLORS = {
    "s": (0.6, 0.8, 1.0), "Y": (1.0, 0.8, 0.1), "r": (0.8, 0.3, 0.2), "w": (0.9, 0.9, 0.7),
    "d": (0.4, 0.2, 0.1), "t": (0.1, 0.5, 0.2), "g": (0.5, 0.8, 0.3),
}  # fmt: skip


def example_picture() -> Float[Tensor, "3 5 10"]:
    """A house and a tree under a sun, 5 pixels high and 10 wide; red, green and blue in tenths."""
    return torch.tensor([[COLORS[letter] for letter in row] for row in HOUSE], device="cpu").permute(2, 0, 1)


@figure(
    "A small coloured picture whose pixels are numbered row by row, and below it a list with three"
    " numbers for each of them; some pixels are framed in both.",
    "Pixels are numbered row by row. The numbers on the left of the vectors only name them: a set has no"
    " order.",
)
def picture_as_set(
    picture: Float[Tensor, "3 h w"], marked: Sequence[Pixel] = ((0, 7), (2, 2), (4, 4))
) -> Figure:
    """`marked` are the pixels to frame."""
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
        draw_frame(image, (j - 0.5, i - 0.5), 1, 1, _mark(k))
        draw_frame(table, (i + 0.03, j), 0.94, 1, _mark(k))
    trim(figure)
    return figure


def _mark(k: int) -> str:
    return ("black", CURVES[0], QUERY)[k % 3]


def _number(axes: Axes, pixel: Pixel, number: int, shade: Tensor) -> None:
    """A number on a pixel, in ink that reads well on its colour."""
    red, green, blue = shade.tolist()
    tone = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
    axes.text(pixel[1], pixel[0], str(number), ha="center", va="center", fontsize=9, color=tone)


def _vector(axes: Axes, column: int, line: int, number: int, vector: Tensor) -> None:
    """One vector of the set: its pixel's number, its colour, its three numbers."""
    shade = tuple(vector.clamp(0, 1).tolist())
    draw_rectangle(axes, (column + 0.24, line + 0.15), 0.12, 0.7, fill=True, color=shade)
    text = "  ".join(f"{value:.1f}" for value in vector.tolist())
    style = {"va": "center", "fontsize": 8.5}
    axes.text(column + 0.2, line + 0.5, str(number), ha="right", color="0.35", **style)
    axes.text(column + 0.42, line + 0.5, text, ha="left", **style)


@styled
def edges(
    picture: Float[Tensor, "3 h w"],
    maps: Mapping[str, Float[Tensor, "h w"]],
    marked: Mapping[str, Pixel] | None = None,
) -> Picture:
    """{edge finder: left minus right (h, w)}; `marked` pixels have a letter in every panel."""
    across = 1 + len(maps)
    figure, grid = sheet(1, across, width=7.6, height=2.2)
    most = max(table.abs().max().item() for table in maps.values())
    panels = {"the picture": None, **maps}
    for axes, (name, table) in zip(grid.flat, panels.items(), strict=False):
        if table is None:
            draw_picture(axes, picture)
        else:
            image = draw_picture(axes, table, low=-most, high=most, shades="PuOr_r")
            axes.spines[:].set(visible=True, color="0.6")
        axes.set_title(name, fontsize=9.5)
        for letter, (row, column) in (marked or {}).items():
            axes.text(column, row, letter, ha="center", va="center", fontsize=11, fontweight="bold")
    figure.colorbar(image, ax=grid, label="left - right", fraction=0.03, shrink=0.9)
    trim(figure)
    return Picture(
        figure,
        "A small picture of a house, and beside it where its brightness changes from left to right, as"
        f" found by {' and by '.join(maps)}. In {list(maps)[-1]} the sides of roof, wall and tree stand"
        " out, and both margins; sky and ground inside do not.",
    )


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


@figure(
    "A map for each head, arranged as the taps of a kernel: the weights of one pixel over the canvas,"
    " bright one place further in the direction of the head's name.",
    "Orange: the pixel that asks. White line: the edge of the picture; outside lies the border of zeros."
    " The heads' names: how far down, how far right.",
)
def taps(weights: Float[Tensor, "taps n m"], pixel: Pixel, shape: tuple[int, int], border: int) -> Figure:
    """Weights of the heads of `as_attention`, arranged as the taps; `shape` is the picture's (h, w), without
    its border."""
    w, kernel, size = shape[1], math.isqrt(len(weights)), [side + 2 * border for side in shape]
    rows = weights[:, pixel[0] * w + pixel[1]].detach().cpu().reshape(-1, *size)
    wide = min(7.0, 6.0 * size[1] / size[0])
    figure, grid = sheet(kernel, kernel, width=wide, height=1.03 * wide * size[0] / size[1])
    for axes, (down, right), row in zip(grid.flat, kernel_offsets(kernel), rows, strict=True):
        image = draw_picture(axes, row, (pixel[0] + border, pixel[1] + border), high=rows.max().item())
        draw_outline(axes, border, shape)
        axes.set_title(offset_name(down, right), fontsize=9)
    figure.colorbar(image, ax=grid, label="weight", fraction=0.04, shrink=0.6)
    trim(figure)
    return figure


@figure(
    "A picture with one pixel framed, and beside it the weights of that pixel over the picture and its"
    " border of zeros.",
    "Orange: the pixel that asks. White line: the edge of the picture.",
)
def gaze(
    picture: Float[Tensor, "c h w"], weights: Float[Tensor, "rows columns"], pixel: Pixel, title: str
) -> Figure:
    """Weights over the picture and its border of zeros, which is as wide as they are larger than the
    picture."""
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
        draw_outline(axes, border, picture.shape[1:])
    figure.colorbar(image, ax=grid[0][1], label="weight", fraction=0.04, shrink=0.8)
    trim(figure)
    return figure


def error_by_sharpness(
    sharpness: Sequence[float], errors32: Sequence[float], errors64: Sequence[float]
) -> Picture:
    """The largest difference between a convolution and its attention, in both number formats."""
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


@figure(
    "Receptive fields of one pixel side by side: the pixels that its output depends on are coloured, all"
    " others are white.",
    "Orange: the place whose output is asked for. Colour: how strongly it moves with each input pixel."
    " White: not at all, exactly 0.",
)
def fields(maps: Mapping[str, Float[Tensor, "h w"]], pixel: Pixel) -> Figure:
    """{name: gradients (h, w)}, each divided by its own maximum."""
    figure, grid = sheet(
        1,
        len(maps),
        width=min(7.6, 2.4 * len(maps) + 0.8),
        height=2.9 if len(maps) < 4 else 2.4,
    )
    for axes, (name, field) in zip(grid[0], maps.items(), strict=True):
        shares = field.detach().cpu() / field.max().clamp(min=torch.finfo(field.dtype).tiny).cpu()
        image = draw_picture(axes, shares.masked_fill(shares == 0, torch.nan), pixel, high=1.0)
        axes.spines[:].set(visible=True, color="0.6")
        axes.set_title(name, fontsize=9.5)
    figure.colorbar(image, ax=grid, label="gradient / its maximum", fraction=0.04, shrink=0.8)
    trim(figure)
    return figure


@figure("Canvases side by side, with what each of them shows as its title.")
def scenes(canvases: Float[Tensor, "b h w"], titles: Sequence[str]) -> Figure:
    """Up to six canvases in a row."""
    figure, grid = row_of_panels(len(canvases), ACROSS)
    for axes, pixels, title in zip(grid.flat, canvases, titles, strict=False):
        draw_picture(axes, pixels, low=canvases.min().item(), high=canvases.max().item())
        axes.set_title(title, fontsize=9.5)
    trim(figure)
    return figure
