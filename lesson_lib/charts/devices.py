"""Seconds on the CPU, and beside them those on a GPU, where one has been measured."""

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from lesson_lib import summary
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture, styled

Row = Mapping[str, Any]
# rows {"kind", "n", "seconds"}, and what they are; see `experiments.devices.beside`
Gpu = tuple[Sequence[Row], str]
Panels = Mapping[str, Mapping[str, Sequence[Any]]]

ALT = "Where a GPU has been measured, a panel beside it shows its seconds, on the same axes."
LETTERS = 72  # of a title, over all panels


@styled
def seconds_beside(
    curves: Mapping[str, Sequence[Any]],
    gpu: Gpu | None = None,
    *,
    others: Panels | None = None,
    alt: str,
    caption: str,
    x_axis: str,
    height: float = 3.8,
) -> Picture:
    """Processor seconds over a size, {kind: (sizes, seconds)} as `lines` takes them, and in a panel beside
    them a GPU's, on the same axes.

    `gpu` are the GPU's rows {"kind", "n", "seconds"} and a label; rows of the same kind and size are repeats,
    drawn as a band. Without rows the label stands under the panels; without `gpu` there is none. `others` are
    panels before. All axes are logarithmic, each kind looks the same in all panels. Alt text and caption do
    not depend on the GPU.
    """
    rows, label = ([], "") if gpu is None else gpu
    panels = {**(others or {}), "processor seconds": curves}
    if rows:
        panels["seconds on a GPU"] = bands(rows)
    picture = lines(panels, alt=f"{alt} {ALT}", caption=caption, x_axis=x_axis, log="xy", height=height)
    figure = picture.figure
    if not rows:
        if label:
            below = figure.axes[-1].xaxis.label
            style = {
                "textcoords": "offset points",
                "ha": "center",
                "va": "top",
                "fontsize": 9,
                "color": "0.3",
            }
            figure.axes[-1].annotate(label, (0.5, 0), xycoords=below, xytext=(0, -4), **style)
        return picture
    cpu, beside = figure.axes[-2:]
    for low, high, change in (
        (*_span(cpu.get_xlim, beside.get_xlim), "set_xlim"),
        (*_span(cpu.get_ylim, beside.get_ylim), "set_ylim"),
    ):
        for axes in (cpu, beside):
            getattr(axes, change)(low, high)
    sizes = sorted({x for xs, *_ in [*curves.values(), *panels["seconds on a GPU"].values()] for x in xs})
    for axes in (cpu, beside):
        axes.set_xticks(shown := sizes[:: -(-len(sizes) // 6)], [f"{x:g}" for x in shown])
        axes.minorticks_off()
    for axes in figure.axes:
        axes.tick_params(axis="x", labelrotation=45)
    beside.set_title(
        "\n".join(["seconds on a GPU", *textwrap.wrap(label, LETTERS // len(panels))]), loc="left"
    )
    return picture


def bands(rows: Sequence[Row]) -> dict[str, tuple[list, ...]]:
    """{kind: (sizes, lowest, median, highest)} of rows {"kind", "n", "seconds"}; of a single measurement of
    each size, {kind: (sizes, seconds)}."""
    curves = {}
    for kind, at in summary.gathered(rows, "kind", "n", "seconds").items():
        sizes = sorted(at)
        picks = (min, statistics.median, max) if max(map(len, at.values())) > 1 else (statistics.median,)
        curves[kind] = (sizes, *([pick(at[n]) for n in sizes] for pick in picks))
    return curves


def _span(one: Any, other: Any) -> tuple[float, float]:
    """The limits that hold those of both axes."""
    limits = (*one(), *other())
    return min(limits), max(limits)
