"""A closed figure that shows as PNG with alt text and caption, and the house style that all figures share."""

import base64
import html
import io
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

# Okabe & Ito's eight colours, in the order in which curves take them: told apart by readers with any colour
# vision.
CURVES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
HEAT = "cividis"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.titlesize": 10.5,
    "figure.facecolor": "white",
    "svg.hashsalt": "lesson_lib",
    "svg.fonttype": "none",
}
PIXELS_PER_INCH = 100  # on the screen; the PNG holds 1.5 times as many, for sharp text


class Picture:
    """A finished figure with the sentence that stands for it where it cannot be seen, and a caption under it.

    As the last expression of a cell it shows a PNG (alt text in its metadata) and the caption; its plain text
    is the alt sentence, which names no measured number. Raises ValueError where `alt` is empty or no
    sentence.
    """

    def __init__(self, figure: Figure, alt: str, caption: str = "") -> None:
        if not isinstance(alt, str) or not alt.strip().endswith("."):
            raise ValueError(
                f"alt must be a sentence that says what the figure shows, with a full stop, got {alt!r}"
            )
        self.figure, self.alt, self.caption = figure, alt.strip(), caption.strip()

    def png(self) -> bytes:
        """The figure as PNG, in 256 colours: a third of the size, and no difference to the eye."""
        drawn = Image.open(io.BytesIO(self._bytes("png", dpi=1.5 * PIXELS_PER_INCH))).convert("RGB")
        file = io.BytesIO()
        drawn.quantize(256, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)
        return file.getvalue()

    def svg(self) -> bytes:
        """The figure as SVG, the same bytes every time, with the alt text as its title."""
        text = self._bytes("svg", metadata={"Date": None, "Creator": None, "Title": self.alt}).decode()
        return "\n".join(line.rstrip() for line in text.splitlines()).encode() + b"\n"

    def bundle(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Data and metadata by MIME type, as a notebook stores them."""
        width = round(self.figure.get_size_inches()[0] * PIXELS_PER_INCH)
        data = {"image/png": base64.b64encode(self.png()).decode(), "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt, "width": width}}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        data, metadata = self.bundle()
        display(data, metadata=metadata, raw=True)
        if self.caption:
            display(
                {"text/html": f"<p><em>{html.escape(self.caption)}</em></p>", "text/plain": self.caption},
                raw=True,
            )

    def __repr__(self) -> str:
        return self.alt

    def _bytes(self, kind: str, **options: Any) -> bytes:
        file = io.BytesIO()
        styled(self.figure.savefig)(file, format=kind, **options)
        return file.getvalue()


def styled(draw: Callable) -> Callable:
    """Decorate a function that draws: what it draws has the house style."""

    @wraps(draw)
    def inside(*args: Any, **options: Any) -> Any:
        with rc_context(STYLE):
            return draw(*args, **options)

    return inside


@styled
def canvas(
    rows: int = 1, columns: int = 1, *, width: float = 7.0, height: float = 3.0, **options: Any
) -> tuple[Figure, Any]:
    """A new figure in the house style, outside pyplot (so nothing stays open), and its grid of axes (always
    2-D)."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


@styled
def trim(figure: Figure) -> None:
    """Cut off the white that axes of equal aspect leave above, below or beside them."""
    for _ in range(3):  # a smaller figure moves its contents a little
        figure.draw_without_rendering()
        box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        figure.set_size_inches(min(width, box.width + 0.1), min(height, box.height + 0.1))


def figure(
    alt: str,
    caption: str = "",
    *,
    width: float | None = None,
    height: float = 3.0,
    title: str = "",
    x: str = "",
    y: str = "",
    legend: int = 0,
) -> Callable:
    """Decorate a function that draws: it has the house style, and gives a Picture with this alt text and
    caption.

    With a `width`, in inches, it draws into axes that come before its own arguments, and returns nothing: one
    panel, with a title, names of its axes and below it a legend in `legend` columns. Without, it returns a
    figure of its own.
    """

    def decorated(draw: Callable) -> Callable:
        @styled
        def inside(*args: Any, **options: Any) -> Picture:
            if width is None:
                return Picture(draw(*args, **options), alt, caption)
            page, ((axes,),) = canvas(width=width, height=height)
            axes.set(xlabel=x, ylabel=y)
            axes.set_title(title, loc="left")
            draw(axes, *args, **options)
            if legend:
                page.legend(loc="outside lower center", ncols=legend, frameon=False)
            return Picture(page, alt, caption)

        inside = wraps(draw)(inside)
        parameters = list(signature(draw).parameters.values())
        inside.__signature__ = signature(draw).replace(
            parameters=parameters[width is not None :], return_annotation=Picture
        )
        return inside

    return decorated


def color(index: int) -> str:
    """Colour of the curve with that index."""
    return CURVES[index % len(CURVES)]


def bare(axes: Axes) -> None:
    """Take away ticks and frame."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
