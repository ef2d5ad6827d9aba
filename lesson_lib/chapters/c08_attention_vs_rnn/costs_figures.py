"""The figures of part 08b: products beside seconds, and a machine of two numbers beside the clock."""

from collections.abc import Mapping, Sequence

from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture, color

ALT = "a curve for each layer over the length of the text; both axes logarithmic."


def products_and_seconds(
    lengths: Sequence[int], products: Mapping[str, Sequence[float]], seconds: Mapping[str, Sequence[float]]
) -> Picture:
    """{layer: products or seconds for each length}."""
    panels = {"products": products, "seconds": seconds}
    return lines(
        {title: {name: (lengths, ys) for name, ys in curves.items()} for title, curves in panels.items()},
        alt=f"Products on the left and seconds on the right, {ALT}",
        caption="One text of width 64, forward.",
        x_axis="tokens n",
        log="xy",
        height=3.6,
    )


def model_and_clock(
    model: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    measured: Mapping[str, tuple[Sequence[int], Sequence[float]]],
) -> Picture:
    """{layer: (lengths, seconds)}, predicted and measured."""
    picture = lines(
        {"seconds": {f"{name}, from two numbers": curve for name, curve in model.items()}},
        alt=f"Predicted seconds as lines and measured ones as open marks, {ALT}",
        caption="Lines: from two numbers. Open marks: the clock.",
        x_axis="tokens n",
        log="xy",
        height=3.6,
        points=False,
    )
    (axes,) = picture.figure.axes
    for k, (lengths, seconds) in enumerate(measured.values()):
        style = {"linestyle": "none", "marker": "os"[k % 2], "markersize": 8, "markerfacecolor": "none"}
        axes.plot(lengths, seconds, color=color(k), **style)
    return picture
