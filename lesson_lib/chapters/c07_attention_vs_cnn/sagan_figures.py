"""What a generator with attention draws, how its halves agree, and where its places look."""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c07_attention_vs_cnn.drawing import (
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
    shares: dict[str, dict[int, list[float]]] = {}
    for row in results("sagan")["rows"]:
        if (row["kind"], row.get("noises")) == ("long", "own"):
            for report in row["reports"][1:]:  # untrained, all pictures are alike
                of_middle = shares.setdefault(row["middle"], {})
                of_middle.setdefault(report["step"], []).append(report["agreement"])
    middles = ("attention", "wide convolution", "nothing")
    return lines(
        {"share of pictures whose ends agree": {middle: summary.band(shares[middle]) for middle in middles}},
        alt=(
            "The share of pictures whose two ends agree over the steps of the training: with attention and"
            " with a wide convolution it rises towards one, with nothing it stays near a half."
        ),
        caption="Median and range of three seeds. Luck is 0.5.",
        x_axis="step",
        y_limits=(0.3, 1.02),
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
