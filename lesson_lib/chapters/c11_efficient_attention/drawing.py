"""What several figures of chapter 11 are drawn with: pages, boxes, axes in powers of two."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from lesson_lib.charts.picture import CURVES, canvas

DASHES = ["-", "--", "-.", ":"]

PALE, EMPTY, IN_HAND, MUTED = "#CFE5F3", "#F1F1F1", CURVES[1], "0.35"


def blank_page(width: float, height: float) -> tuple[Any, Axes]:
    """A figure whose one axes count inches from the upper left corner."""
    figure, ((page,),) = canvas(width=width, height=height)
    figure.set_layout_engine("none")
    page.set_position([0, 0, 1, 1])
    page.set(xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    return figure, page


def rounded_box(
    page: Axes, corner: tuple[float, float], size: tuple[float, float], fill: str, edge: str, **style: Any
) -> None:
    shape = "round,pad=0,rounding_size=0.06"
    page.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, facecolor=fill, edgecolor=edge, **style))


def legend_below(figure: Any, axes: Axes, least: int = 2) -> None:
    """A legend below, of so many names or more, in as many columns as there is room for."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) >= least:
        inches = 0.75 + 0.087 * max(map(len, names))
        columns = max(1, min(len(names), int(figure.get_size_inches()[0] / inches)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
