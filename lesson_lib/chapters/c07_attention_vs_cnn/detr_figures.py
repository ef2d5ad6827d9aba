"""What DETR finds, and where its queries look."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Num
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c07_attention_vs_cnn.drawing import (
    QUERY,
    draw_picture,
    draw_rectangle,
    row_of_panels,
)
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import KINDS, Objects
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import CURVES, Picture, bare, color, figure, trim
from lesson_lib.charts.picture import canvas as sheet
from lesson_lib.experiments import results


@figure(
    "Canvases with shapes: dashed boxes where the shapes are, solid boxes with a name where the model"
    " found one.",
    "White, dashed: the true boxes. Orange: what was found.",
)
def detections(
    canvases: Float[Tensor, "b h w"],
    true: Sequence[Num[Tensor, "_ 4"]],
    found_boxes: Sequence[Num[Tensor, "_ 4"]],
    labels: Sequence[Sequence[str]],
) -> Figure:
    """True boxes, found ones and their labels for each canvas; boxes of no width are left out."""
    figure, grid = row_of_panels(len(canvases), 4)
    for axes, pixels, real, boxes, names in zip(grid.flat, canvases, true, found_boxes, labels, strict=False):
        draw_picture(axes, pixels, low=canvases.min().item(), high=canvases.max().item())
        for box in real.tolist():
            _box(axes, box, "white", linestyle="--", linewidth=1.2)
        for box, name in zip(boxes.tolist(), names, strict=True):
            _box(axes, box, QUERY, name, linewidth=2)
    trim(figure)
    return figure


def found_in(scenes: Objects, *, seed: int = 0) -> Picture:
    """In the first test scenes, by the stored run of that seed."""
    row = next(row for row in results("found")["rows"] if row["seed"] == seed)
    scene_boxes = row["scenes"]
    return detections(
        scenes.canvas[: len(scene_boxes)],
        list(scenes.box[: len(scene_boxes)]),
        [torch.tensor([one["box"] for one in each], device="cpu").reshape(-1, 4) for each in scene_boxes],
        [[f"{KINDS[one['kind']]} {one['confidence']:.2f}" for one in each] for each in scene_boxes],
    )


def looked_from(scenes: Objects, *, seed: int = 0) -> Picture:
    """`query_maps` of the surest query of the stored run, in a scene with three objects."""
    looked = next(row for row in results("found")["rows"] if row["seed"] == seed)["looked"]
    tables = torch.tensor(looked["weights"], device="cpu")
    heads = {f"head {k}, up to {table.max():.2f}": table for k, table in enumerate(tables)}
    return query_maps(scenes.canvas[looked["scene"]], torch.tensor(looked["box"], device="cpu"), heads)


def by_objects() -> Picture:
    """Of the stored experiment "detr"."""
    parts = [
        {"system": row["system"], **part} for row in results("detr")["rows"] for part in row["by_objects"]
    ]
    bands = summary.bands(parts, "system", "objects", "recall")
    return lines(
        {
            "share of objects found": {
                "by DETR's rule": bands["DETR"],
                "object k to query k": bands["no matching"],
            }
        },
        alt=(
            "The share of objects found over the number of objects in a scene: by DETR's rule it stays near"
            " one; with object k given to query k only scenes with one object are solved."
        ),
        caption="Median and range of three seeds.",
        x_axis="objects in the scene",
        y_limits=(0, 1.05),
        height=3.0,
    )


@figure(
    "A canvas with the box that an object query found, and the same canvas under the query's weights, a"
    " map for each head.",
    "Orange: where the query looks, a cell of the feature map over the pixels it stands for; every map"
    " has its own scale. Blue: the box.",
)
def query_maps(
    canvas: Float[Tensor, "h w"], box: Num[Tensor, "4"], weights: Mapping[str, Float[Tensor, "rows columns"]]
) -> Figure:
    """Weights (rows, columns) over the feature map; `box` is what the query found."""
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
    return figure


@figure(
    "A canvas for each object query with a dot wherever it found an object.",
    "Stored run, seed 0: the middle of every box that a query was sure of, in 400 test scenes.",
)
def queries(rows: Sequence[Mapping[str, Any]], size: int = 24) -> Figure:
    """Rows of the experiment "detr"; `size` is the canvas' side in pixels."""
    kept = next(row["queries"] for row in rows if row["system"] == "DETR" and "queries" in row)
    figure, grid = sheet(1, len(kept), width=7.8, height=2.1)
    for k, (axes, query) in enumerate(zip(grid[0], kept, strict=True)):
        sure = [(x, y) for x, y, hit in zip(query["x"], query["y"], query["sure"], strict=True) if hit]
        if sure:
            axes.plot(*zip(*sure, strict=True), color=color(k), marker=".", markersize=3.5, linestyle="none")
        bare(axes)
        axes.spines[:].set(visible=True, color="0.6")
        axes.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
        axes.set_title(f"query {query['query']}", fontsize=9.5)
    trim(figure)
    return figure


def _box(axes: Axes, box: Sequence[float], edge: str, name: str = "", **style) -> None:
    """A box whose edges lie between pixels, with a name above it, or below it at the canvas' top; nothing for
    one of no width."""
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        return
    draw_rectangle(axes, (left - 0.5, top - 0.5), right - left, bottom - top, edgecolor=edge, **style)
    if name:
        above, near = top >= 4, left + right < sum(axes.get_xlim())  # room above, and to the right
        ground = {"facecolor": edge, "edgecolor": "none", "pad": 1}
        style = {"ha": "left" if near else "right", "va": "bottom" if above else "top"}
        corner = ((left if near else right) - 0.5, (top if above else bottom) - 0.5)
        axes.text(*corner, name, fontsize=9, color="white", bbox=ground, **style)
