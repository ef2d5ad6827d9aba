"""The figures of lesson 07: pictures as sets, what heads look at, and what comes of it in ViT, SAGAN and
DETR.

A pixel is (row, column), counted from 0 at the top left. A box is (left, top, right, bottom) in pixels, edges
and not centres.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib import require
from lesson_lib.chapters.c07_attention_vs_cnn.detr_figures import (  # noqa: F401
    by_objects,
    centres,
    detections,
    found_in,
    looked_from,
    queries,
    query_maps,
)
from lesson_lib.chapters.c07_attention_vs_cnn.drawing import (
    QUERY,
    Pixel,
    check_inside,
    draw_frame,
    draw_outline,
    draw_picture,
    draw_rectangle,
    row_of_panels,
)
from lesson_lib.charts.basic import bars, heatmap, lines
from lesson_lib.charts.picture import CURVES, HEAT, MARKERS, Picture, bare, color, styled, trim
from lesson_lib.charts.picture import canvas as sheet
from lesson_lib.experiments import results

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
        draw_frame(image, (j - 0.5, i - 0.5), 1, 1, _mark(k))
        draw_frame(table, (i + 0.03, j), 0.94, 1, _mark(k))
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
    draw_rectangle(axes, (column + 0.24, line + 0.15), 0.12, 0.7, fill=True, color=shade)
    text = "  ".join(f"{value:.1f}" for value in vector.tolist())
    place = {"va": "center", "fontsize": 8.5}
    axes.text(column + 0.2, line + 0.5, str(number), ha="right", color="0.35", **place)
    axes.text(column + 0.42, line + 0.5, text, ha="left", **place)


@styled
def edges(
    picture: Float[Tensor, "3 h w"],
    found: Mapping[str, Float[Tensor, "h w"]],
    marked: Mapping[str, Pixel] | None = None,
) -> Picture:
    """A picture, and what edge finders make of it: orange where the left is brighter, violet where the right
    is; `marked` pixels have a letter in every panel."""
    across = 1 + len(found)
    figure, grid = sheet(1, across, width=7.6, height=2.2)
    most = max(map.abs().max().item() for map in found.values())
    panels = {"the picture": None, **found}
    for axes, (name, map) in zip(grid.flat, panels.items(), strict=False):
        if map is None:
            draw_picture(axes, picture)
        else:
            image = draw_picture(axes, map, low=-most, high=most, shades="PuOr_r")
            axes.spines[:].set(visible=True, color="0.6")
        axes.set_title(name, fontsize=9.5)
        for letter, (row, column) in (marked or {}).items():
            axes.text(column, row, letter, ha="center", va="center", fontsize=11, fontweight="bold")
    figure.colorbar(image, ax=grid, label="left - right", fraction=0.03, shrink=0.9)
    trim(figure)
    return Picture(
        figure,
        "A small picture of a house, and beside it where its brightness changes from left to right, as"
        f" found by {' and by '.join(found)}. In {list(found)[-1]} the sides of roof, wall and tree stand"
        " out, and both margins; sky and ground inside do not.",
    )


def shares(head: Float[Tensor, "3 3"], even: Float[Tensor, "3 3"], kernel: Float[Tensor, "3 3"]) -> Picture:
    """How two heads make an edge finder: their shares over the nine pixels, and 27 times the difference."""
    return heatmap(
        {"head 0": head, "head 1": even, "27 (head 0 - head 1)": kernel},
        alt="The shares of two heads over nine pixels, and a kernel that is their scaled difference.",
        caption="",
        row_axis="",
        column_axis="",
        rows=("up", "", "down"),
        columns=("left", "", "right"),
    )


@styled
def searched() -> Picture:
    """What is missed of the hidden convolution: a dot for each seed of each system, from the stored runs of
    "fields"."""
    names = {
        "3 x 3 kernel": ("kernel", 3),
        "4 heads": ("n_heads", 4),
        "8 heads": ("n_heads", 8),
        "7 x 7 kernel": ("kernel", 7),
    }
    figure, grid = sheet(width=6.4, height=2.9)
    axes = grid[0][0]
    for k, (key, value) in enumerate(names.values()):
        missed = sorted(row["unexplained"] for row in results("fields")["rows"] if row.get(key) == value)
        places = [k + 0.09 * (i - (len(missed) - 1) / 2) for i in range(len(missed))]
        axes.plot(places, missed, MARKERS[k], color=color(k), markersize=6, linestyle="none")
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), list(names))
    axes.set_ylabel("missed")
    return Picture(
        figure,
        "Share that is missed, five seeds for each system, axis logarithmic: the small kernel misses all,"
        " four heads a part, eight heads hardly anything but in one seed, the large kernel the least.",
        "Share of the hidden convolution's output that is missed, a dot for each of five seeds.",
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
    check_inside(pixel, shape)
    rows = weights[:, pixel[0] * w + pixel[1]].detach().cpu().reshape(-1, *size)
    wide = min(7.0, 6.0 * size[1] / size[0])
    figure, grid = sheet(kernel, kernel, width=wide, height=1.03 * wide * size[0] / size[1])
    for axes, (down, right), row in zip(grid.flat, kernel_offsets(kernel), rows, strict=True):
        image = draw_picture(axes, row, (pixel[0] + border, pixel[1] + border), high=rows.max().item())
        draw_outline(axes, border, shape)
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
        draw_outline(axes, border, picture.shape[1:])
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
        check_inside(pixel, field.shape)
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
        "Orange: the place whose output is asked for. Colour: how strongly it moves with each input pixel."
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


def _over_pictures(task: str, model: str, budget: str) -> tuple[list, ...]:
    """Numbers of pictures, and the lowest, the median and the highest test accuracy of three seeds."""
    rows = [
        row
        for row in results("vit")["rows"]
        if row["kind"] == "point"
        and (row["task"], row["model"], row["budget"], row["fresh"]) == (task, model, budget, False)
    ]
    sizes = sorted({row["n"] for row in rows})
    seeds = [sorted(row["accuracy"] for row in rows if row["n"] == n) for n in sizes]
    return sizes, *(list(band) for band in zip(*seeds, strict=True))


def crossing() -> Picture:
    """Two curves that cross, digits: the names of the models, and not how long they were trained."""
    return lines(
        {
            "right on new digits": {
                "CNN": _over_pictures("digit", "cnn", "tiny"),
                "ViT": _over_pictures("digit", "vit", "long"),
            }
        },
        alt=(
            "Share of digits that are right over the number of training pictures: the CNN's curve begins"
            " higher, the ViT's is higher at the right end."
        ),
        caption="Median of three seeds; bands from lowest to highest.",
        x_axis="training pictures",
        log="x",
        y_limits=(0, 1.02),
        height=3.2,
    )


def right(shares: Mapping[str, float], guess: float) -> Picture:
    """Share of right answers, a bar for each model and kind of pictures."""
    return bars(
        {name.replace(", ", "\n"): share for name, share in shares.items()},
        alt="Share of right answers: both models at the top on known pictures, only the CNN on new ones.",
        y_axis="right",
        marks={"a guess": guess},
        limits=(0, 1.12),
        kinds=2,
    )


def uncovered() -> Picture:
    """Both tasks, every model at every number of steps: medians."""
    steps = {"tiny": 50, "short": 200, "long": 800}
    panels = {}
    for task in ("digit", "pair"):
        panels[f"right on new {task}s"] = {
            f"{name}, {steps[budget]} steps": _over_pictures(task, model, budget)[::2]
            for model, name, budgets in (
                ("cnn", "CNN", ("tiny", "short", "long")),
                ("vit", "ViT", ("short", "long")),
            )
            for budget in budgets
            if (task, budget) != ("pair", "tiny")
        }
    return lines(
        panels,
        alt=(
            "Two panels, digits and pairs, over the number of training pictures: with few steps the curves of"
            " either model lie low, and with the same steps the CNN's curve is above the ViT's."
        ),
        caption="Medians of three seeds. Guessing: 0.1 of the digits, 0.5 of the pairs.",
        x_axis="training pictures",
        log="x",
        y_limits=(0, 1.02),
        height=3.8,
    )


@styled
def class_token_path(canvas: Float[Tensor, "h w"], patch: int) -> Picture:
    """How a picture becomes an answer: patches, tokens with the class token in front, layers, and the row
    that is read."""
    figure, grid = sheet(width=7.8, height=3.0)
    axes = grid[0][0]
    canvas = canvas.detach().cpu()
    side = canvas.shape[0]
    rows = side // patch
    axes.imshow(canvas.numpy(), cmap=HEAT, extent=(0, 4, 0, 4))
    for k in range(rows + 1):
        axes.plot([0, 4], [4 * k / rows] * 2, color="white", linewidth=1)
        axes.plot([4 * k / rows] * 2, [0, 4], color="white", linewidth=1)
    axes.text(2, -0.35, f"{rows * rows} patches of {patch} x {patch}", ha="center", va="top", fontsize=9)
    count, high = rows * rows + 1, 4 / (rows * rows + 1)
    columns = {"tokens": 6.4, "after layer 1": 9.6, "after layer 2": 12.8}
    for x, name in zip(columns.values(), columns, strict=True):
        for i in range(count):
            shade = CURVES[1] if i == 0 else CURVES[5]
            corner = (x, 4 - (i + 1) * high)
            draw_rectangle(axes, corner, 1.1, 0.8 * high, fill=True, facecolor=shade, edgecolor="none")
        axes.text(x + 0.55, -0.35, name, ha="center", va="top", fontsize=9)
    arrow = {"arrowstyle": "-|>", "color": "0.25"}
    axes.annotate("", (6.3, 1.9), (4.1, 1.9), arrowprops=arrow)
    axes.text(5.2, 2.05, "one\nmatrix", ha="center", va="bottom", fontsize=9)
    places = list(columns.values())
    for left, right in itertools.pairwise(places):
        for i in range(count):
            y = 4 - (i + 0.6) * high
            axes.plot(
                [left + 1.15, right - 0.05], [y, 4 - 0.6 * high], color=CURVES[1], linewidth=0.5, alpha=0.7
            )
    axes.text(6.95, 4.15, "class token", ha="center", va="bottom", fontsize=9, color=CURVES[1])
    axes.annotate("", (15.3, 4 - 0.6 * high), (14.0, 4 - 0.6 * high), arrowprops=arrow)
    axes.text(15.4, 4 - 0.6 * high, "answer", ha="left", va="center", fontsize=10)
    axes.set(xlim=(-0.1, 17), ylim=(-0.8, 4.7), aspect="equal")
    bare(axes)
    trim(figure)
    return Picture(
        figure,
        "A picture in patches; a column of tokens with the class token on top; two layers, with lines"
        " from all tokens to the class token; an arrow from its last row to the answer.",
        "Lines: what the class token reads in each layer. The patches read each other, too (not drawn).",
    )


@styled
def judged(
    canvases: Float[Tensor, "b h w"], labels: Sequence[str], said: Mapping[str, Sequence[str]]
) -> Picture:
    """Canvases with what they show, and below what each model says; what is wrong stands in orange."""
    figure, grid = row_of_panels(len(canvases), ACROSS)
    for k, (axes, pixels, label) in enumerate(zip(grid.flat, canvases, labels, strict=False)):
        draw_picture(axes, pixels, low=canvases.min().item(), high=canvases.max().item())
        axes.set_title(label, fontsize=9.5)
        for line, (name, answers) in enumerate(said.items()):
            shade = "0.25" if answers[k] == label else CURVES[1]
            weight = "normal" if answers[k] == label else "bold"
            axes.text(
                0.5, -0.06 - 0.13 * line, f"{name}: {answers[k]}", transform=axes.transAxes, ha="center",
                va="top", fontsize=8.5, color=shade, fontweight=weight,
            )  # fmt: skip
    trim(figure)
    return Picture(
        figure, "Canvases with two shapes, what each shows above it, and what two models say of it below."
    )


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
    figure, grid = row_of_panels(len(canvases), ACROSS)
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


def agreement() -> Picture:
    """kappa over the steps of the long GAN trainings, from the stored runs: attention, a wide convolution,
    or nothing in the middle."""
    found = {}
    for middle in ("attention", "wide convolution", "nothing"):
        rows = [
            row
            for row in results("sagan")["rows"]
            if (row["kind"], row.get("middle"), row.get("noises")) == ("long", middle, "own")
        ]
        steps = [report["step"] for report in rows[0]["reports"]]
        seeds = zip(*([report["kappa"] for report in row["reports"]] for row in rows), strict=True)
        found[middle] = (steps, *zip(*(sorted(now) for now in seeds), strict=True))
    return lines(
        {"kappa: how much the halves agree beyond chance": found},
        alt=(
            "Agreement of the two halves beyond chance over the steps of the training: with attention and"
            " with a wide convolution it rises towards one, with nothing it stays near zero."
        ),
        caption="Median and range of three seeds. Chance is 0, real pictures have 1.",
        x_axis="step",
        y_limits=(-0.1, 1.02),
        points=False,
        height=3.2,
    )


def drawn(real: Float[Tensor, "count h w"], *middles: str) -> Picture:
    """Real pictures, and what generators have drawn with that in the middle: the stored ones of seed 0."""
    rows = [row for row in results("sagan")["rows"] if row["kind"] == "shown"]
    stored = {row["middle"]: torch.tensor(row["canvases"], device="cpu") for row in rows}
    return generated({"real": real, **{f"with {name}": stored[name] for name in middles}})


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
def places() -> Picture:
    """Where two places of the trained generator looked in two of its pictures, a row each, from the stored
    run of seed 0; the largest weight of each map has a ring."""
    row = next(row for row in results("sagan")["rows"] if row["kind"] == "shown" and "maps" in row)
    asked = [tuple(place) for place in results("sagan")["recipe"]["places"]]
    pictures, tables = (torch.tensor(row[name], device="cpu") for name in ("mapped", "maps"))
    figure, grid = sheet(len(pictures), 1 + len(asked), width=7.0, height=1.3 * len(pictures) + 0.4)
    for axes, picture, looked in zip(grid, pictures, tables, strict=True):
        _map_row([*axes], picture, dict(zip(asked, looked, strict=True)))
        for map, table in zip(axes[1:], looked, strict=True):
            down, right = divmod(int(table.argmax()), table.shape[1])
            map.plot(right, down, "o", markersize=7, markerfacecolor="none", markeredgecolor="black")
            map.set_title(f"{map.get_title()}, most at ({down}, {right})", fontsize=9.5)
    trim(figure)
    return Picture(
        figure,
        "Two generated pictures, a row each, with two places framed, and for each place its attention map: in"
        " each row both look most at one and the same place, in the second at another one than in the first.",
        "Frame: the place that asks. Ring: its largest weight. Each map has its own scale.",
    )


@styled
def maps(picture: Float[Tensor, "h w"], attention: Mapping[Pixel, Float[Tensor, "rows columns"]]) -> Picture:
    """Attention maps of a generator, {place that asks: weights over the grid}, beside the picture that it
    made of them.

    A place is (row, column) of the maps' grid, which may be coarser than the picture; the picture shows all
    places that ask.
    """
    figure, grid = sheet(1, 1 + len(attention), width=min(7.8, 1.9 * (1 + len(attention))), height=2.4)
    _map_row([*grid[0]], picture, attention)
    trim(figure)
    return Picture(
        figure,
        "A generated picture with some places framed, and beside it an attention map for each place, its own"
        " place framed.",
        "Bright is a large weight; every map has its own scale, from 0 to its largest weight. Places are"
        " (row, column).",
    )


def _map_row(
    panels: Sequence[Axes],
    picture: Float[Tensor, "h w"],
    attention: Mapping[Pixel, Float[Tensor, "rows columns"]],
) -> None:
    """A picture, and beside it a map for each place that asks."""
    draw_picture(panels[0], picture)
    panels[0].set_title("the picture", fontsize=9.5)
    for axes, ((row, column), table) in zip(panels[1:], attention.items(), strict=True):
        check_inside((row, column), table.shape)
        down, right = (a / b for a, b in zip(picture.shape, table.shape, strict=True))
        draw_frame(panels[0], (column * right - 0.5, row * down - 0.5), right, down)
        draw_picture(axes, table, (row, column))
        axes.set_title(f"asked at ({row}, {column})", fontsize=9.5)
