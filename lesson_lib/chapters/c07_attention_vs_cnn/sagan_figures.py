"""What a generator with attention draws, how its halves agree, and where its places look."""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c07_attention_vs_cnn.drawing import (
    Pixel,
    draw_frame,
    draw_picture,
)
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture, figure, styled, trim
from lesson_lib.charts.picture import canvas as sheet
from lesson_lib.experiments import results


@styled
def gamma(values: Mapping[str, Sequence]) -> Picture:
    """{network: (steps, values) or (steps, lowest, median, highest)}."""
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
    """Of the long trainings of the stored experiment "sagan"."""
    kappa: dict[str, dict[int, list[float]]] = {}
    for row in results("sagan")["rows"]:
        if (row["kind"], row.get("noises")) == ("long", "own"):
            for report in row["reports"]:
                of_middle = kappa.setdefault(row["middle"], {})
                of_middle.setdefault(report["step"], []).append(report["kappa"])
    middles = ("attention", "wide convolution", "nothing")
    return lines(
        {
            "kappa: how much the halves agree beyond chance": {
                middle: summary.band(kappa[middle]) for middle in middles
            }
        },
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
    """`real` pictures beside the stored ones of seed 0 with each of `middles`."""
    rows = [row for row in results("sagan")["rows"] if row["kind"] == "shown"]
    stored = {row["middle"]: torch.tensor(row["canvases"], device="cpu") for row in rows}
    return generated({"real": real, **{f"with {name}": stored[name] for name in middles}})


@figure("Sheets of small pictures side by side: real ones and those that generators have drawn.")
def generated(sheets: Mapping[str, Float[Tensor, "count h w"]]) -> Figure:
    """{name: pictures}; wide pictures stand in fewer columns."""
    figure, grid = sheet(1, len(sheets), width=min(7.6, 2.5 * len(sheets)), height=4.0)
    for axes, (name, pictures) in zip(grid[0], sheets.items(), strict=True):
        count, h, w = pictures.shape
        across = max(1, round(math.sqrt(count * h / w)))
        gap = torch.nn.functional.pad(pictures.detach().cpu(), (0, 1, 0, 1), value=torch.nan)
        tiles = gap[: count - count % across].unflatten(0, (-1, across)).permute(0, 2, 1, 3)
        draw_picture(axes, tiles.flatten(2).flatten(0, 1)[:-1, :-1])
        axes.set_title(name)
    trim(figure)
    return figure


@figure(
    "Two generated pictures, a row each, with two places framed, and for each place its attention map: in"
    " each row both look most at one and the same place, in the second at another one than in the first.",
    "Frame: the place that asks. Ring: its largest weight. Each map has its own scale.",
)
def places() -> Figure:
    """Of the stored experiment "sagan", seed 0."""
    row = next(row for row in results("sagan")["rows"] if row["kind"] == "shown" and "maps" in row)
    asked = [tuple(pixel) for pixel in results("sagan")["recipe"]["places"]]
    pictures, tables = (torch.tensor(row[name], device="cpu") for name in ("mapped", "maps"))
    figure, grid = sheet(len(pictures), 1 + len(asked), width=7.0, height=1.3 * len(pictures) + 0.4)
    for axes, picture, looked in zip(grid, pictures, tables, strict=True):
        _map_row([*axes], picture, dict(zip(asked, looked, strict=True)))
        for map, table in zip(axes[1:], looked, strict=True):
            down, right = divmod(int(table.argmax()), table.shape[1])
            map.plot(right, down, "o", markersize=7, markerfacecolor="none", markeredgecolor="black")
            map.set_title(f"{map.get_title()}, most at ({down}, {right})", fontsize=9.5)
    trim(figure)
    return figure


def _map_row(
    panels: Sequence[Axes],
    picture: Float[Tensor, "h w"],
    attention: Mapping[Pixel, Float[Tensor, "rows columns"]],
) -> None:
    """A picture, and beside it a map for each place that asks."""
    draw_picture(panels[0], picture)
    panels[0].set_title("the picture", fontsize=9.5)
    for axes, ((row, column), table) in zip(panels[1:], attention.items(), strict=True):
        down, right = (a / b for a, b in zip(picture.shape, table.shape, strict=True))
        draw_frame(panels[0], (column * right - 0.5, row * down - 0.5), right, down)
        draw_picture(axes, table, (row, column))
        axes.set_title(f"asked at ({row}, {column})", fontsize=9.5)
