"""What several figures of chapter 07 are drawn with: a picture in cells, frames around pixels."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from torch import Tensor

from lesson_lib.charts.picture import CURVES, HEAT, bare
from lesson_lib.charts.picture import canvas as sheet

Pixel = tuple[int, int]

QUERY = CURVES[1]  # the frame of the pixel that asks


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
        draw_frame(axes, (pixel[1] - 0.5, pixel[0] - 0.5), 1, 1)
    return image


def draw_frame(
    axes: Axes, corner: tuple[float, float], width: float, height: float, edge: str = QUERY
) -> None:
    """A frame with a thin white line round it, so that it is seen on any colour."""
    halo = [withStroke(linewidth=2.8, foreground="white")]
    draw_rectangle(axes, corner, width, height, edgecolor=edge, linewidth=1.7, path_effects=halo, zorder=3)


def draw_rectangle(
    axes: Axes, corner: tuple[float, float], width: float, height: float, **style: Any
) -> None:
    axes.add_patch(Rectangle(corner, width, height, **{"fill": False, "clip_on": False, **style}))


def row_of_panels(count: int, most: int) -> tuple[Figure, Any]:
    """A grid of axes for that many canvases, at most so many side by side; the spare ones are
    switched off."""
    down = math.ceil(count / most)
    across = math.ceil(count / down)
    each = min(2.6, 7.6 / across)
    figure, grid = sheet(down, across, width=each * across, height=(each + 0.2) * down)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return figure, grid


def draw_outline(axes: Axes, border: int, shape: Sequence[int]) -> None:
    """A white line round the picture inside its border of zeros."""
    corner = (border - 0.5, border - 0.5)
    draw_rectangle(axes, corner, shape[1], shape[0], edgecolor="white", linewidth=0.8, zorder=1.5)
