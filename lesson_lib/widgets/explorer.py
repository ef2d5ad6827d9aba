"""What all widgets share: controls above a drawing made of HTML, and a still picture where no kernel runs."""

import base64
import html
import io
import math
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any, ClassVar

import ipywidgets
from matplotlib import colormaps
from matplotlib.colors import to_hex
from PIL import Image
from torch import Tensor

from lesson_lib.charts.basic import ink
from lesson_lib.charts.picture import HEAT, Picture
from lesson_lib.live import Live

_numbers = count(1)

CSS = """
.ll-box {background:#fff; color:#111; padding:8px; width:fit-content; max-width:100%; box-sizing:border-box; font:13px/1.35 system-ui, sans-serif; overflow-x:auto}
.ll-row {display:flex; flex-wrap:wrap; gap:14px; align-items:flex-start; margin-bottom:10px}
.ll-box table {border-collapse:collapse; margin:2px 0}
.ll-box td {padding:3px 6px; text-align:right; min-width:30px; position:relative; border:1px solid #fff; font-variant-numeric:tabular-nums}
.ll-box caption {text-align:left; font-weight:600; white-space:nowrap; caption-side:top; color:#111}
.ll-box td .ll-tip {display:none; position:absolute; left:0; top:100%; z-index:9; background:#111; color:#fff; padding:4px 8px;
  white-space:nowrap; border-radius:4px; text-align:left}
.ll-box td:hover .ll-tip, .ll-box td:focus .ll-tip {display:block}
.ll-box .ll-under {position:relative}
.ll-box .ll-under td {position:static}
.ll-box .ll-under .ll-tip {left:0; width:max-content; max-width:min(560px, 100%); white-space:normal; box-sizing:border-box}
.ll-box td:hover, .ll-box td:focus {outline:3px solid #D55E00; z-index:8}
.ll-now {outline:3px solid #D55E00; outline-offset:2px}
.ll-controls {gap:2px 18px; align-items:center; overflow:visible}
.ll-controls > * {margin:2px 0; flex:none; max-width:100%}
.ll-controls .widget-label {width:auto; min-width:max-content}
.ll-controls > .widget-slider {width:auto} .ll-controls .slider-container {width:150px; flex:1 1 150px}
.ll-controls > .widget-toggle-buttons {display:flex; flex-wrap:nowrap; align-items:center; height:auto}
.ll-controls > .widget-toggle-buttons > div {width:auto; flex:0 1 auto}
.ll-controls > .widget-toggle-buttons > .widget-label {margin-right:6px}
.ll-controls > .widget-play, .ll-controls > .widget-play button {height:28px}
.ll-controls.ll-controls button:focus-visible {outline:2px solid var(--jp-brand-color1, #1565c0); outline-offset:0}
.jp-NotebookPanel:has(.jp-Notebook-ExecutionIndicator[data-status=busy]) .ll-controls:is(:focus-within, :hover)::after {
  content:"The kernel is busy: the picture follows as soon as it is free."; flex:1 0 100%; opacity:0; animation:ll-noted 0s .6s forwards}
@keyframes ll-noted {to {opacity:1}}
.widget-toggle-buttons .widget-toggle-button.mod-active {box-shadow:inset 0 -3px var(--jp-ui-font-color1, #111)}
"""  # noqa: E501


class Explorer(Live):
    """Controls above a drawing. A subclass sets its controls, `draw() -> html` and `still() -> Picture`.

    Where a kernel runs, the widget shows; where none does (a page, a printed notebook), the still picture
    does. In a page without a kernel a recording of at most about `most_states` drawings moves; of controls
    with many values some are kept, and those named in `fixed` stay as they start.
    """

    most_states: ClassVar[int] = 800
    fixed: ClassVar[tuple[str, ...]] = ()

    def __init__(self, controls: Sequence[ipywidgets.Widget]) -> None:
        self.name = f"ll{next(_numbers)}"
        self.drawing = ipywidgets.HTML()
        box = ipywidgets.HBox(list(controls), layout=ipywidgets.Layout(flex_flow="row wrap"))
        box.add_class("ll-controls")
        super().__init__([box, self.drawing])
        self.refresh()

    def watch(self, *controls: ipywidgets.Widget) -> None:
        """Draw again whenever one of these changes."""
        for control in controls:
            control.observe(self.refresh, names="value")

    def refresh(self, change: dict | None = None) -> None:
        """Draw the current state; where that cannot be, say so above the last drawing."""
        trouble = ""
        try:
            self._drawn = self.draw()
        except Exception as error:  # in a callback it would be seen in a log alone
            if change is None:
                raise
            message = html.escape((str(error) or type(error).__name__).rstrip("."))
            trouble = f"<p role='alert'>This cannot be drawn: {message}. Below: the last picture.</p>"
        inside = trouble + self._drawn
        self.drawing.value = f'<style>{CSS}</style><div class="ll-box {self.name}">{inside}</div>'

    def draw(self) -> str:
        """The drawing as HTML, for the controls' current values."""
        raise TypeError(f"{type(self).__name__} must define draw() -> html")

    def settle(self) -> None:
        """What a recording does once the controls are set: nothing, where the drawing follows them."""

    def still(self) -> Picture:
        """A picture of the widget as it starts."""
        raise TypeError(f"{type(self).__name__} must define still() -> Picture")

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The still picture, for wherever no kernel runs."""
        return self.still().bundle()

    def page(self) -> str:
        """The still picture, for whoever opens the saved notebook again."""
        data, metadata = self.bundle()
        alt, width = html.escape(metadata["image/png"]["alt"], quote=True), metadata["image/png"]["width"]
        return f'<img alt="{alt}" width="{width}" src="data:image/png;base64,{data["image/png"]}">'


def table(
    rows: Sequence[Sequence[float]],
    title: str,
    *,
    key: str = "",
    tips: Sequence[Sequence[str]] | None = None,
    now: bool = False,
    decimals: int = 2,
    limits: tuple[float, float] | None = None,
    shape: bool = True,
) -> str:
    """A table of numbers as HTML: coloured by size, each cell with its formula on hover or focus.

    `limits` fixes the colours' range (default: the table's own); `shape` writes rows and columns after the
    title.
    """
    flat = [value for row in rows for value in row]
    low, high = limits or (min(flat), max(flat))
    body = []
    for i, row in enumerate(rows):
        cells = []
        for j, value in enumerate(row):
            share = (value - low) / (high - low) if high > low else 0.0
            tip = tips[i][j] if tips else ""
            classes = f"{key}r{i} {key}c{j} {key}{i}-{j}"
            cells.append(cell(number(value, decimals), tip, classes=classes, style=shade(share)))
        body.append(f"<tr>{''.join(cells)}</tr>")
    mark = ' class="ll-now"' if now else ""
    size = f" ({len(rows)}, {len(rows[0])})" if shape else ""
    return f"<table{mark}><caption>{html.escape(title)}{size}</caption>{''.join(body)}</table>"


def cell(text: str, tip: str = "", *, classes: str = "", style: str = "", stop: bool = True) -> str:
    """A table's cell with its formula on hover, and on focus where Tab is to stop at it."""
    tip = html.escape(tip)
    inner = f'<span class="ll-tip" role="tooltip">{tip}</span>' if tip else ""
    focus = f' tabindex="0" aria-label="{tip}"' if tip and stop else ""
    return f'<td class="{classes}" style="{style}"{focus}>{text}{inner}</td>'


def shade(share: float) -> str:
    """The style of a cell with that share of the colour map: its ground, and ink that reads well on it."""
    return _shade(round(255 * min(1.0, max(0.0, share))))


@cache
def _shade(step: int) -> str:
    """The map holds 256 colours; looking one up takes longer than writing a cell."""
    return f"background:{to_hex(colormaps[HEAT](step))};color:{ink(step / 255)}"


def number(value: float, decimals: int = 2) -> str:
    """A number as the widgets write it: whole numbers bare, others at `decimals`, never -0."""
    if not math.isfinite(value):
        return str(value)
    return (
        f"{value:g}"
        if value == round(value) and abs(value) < 1e6
        else f"{round(value, decimals) + 0.0:.{decimals}f}"
    )


def pixels(table: Tensor) -> str:
    """A table as a picture with a pixel per cell, as a data address."""
    file = io.BytesIO()
    Image.fromarray(colormaps[HEAT](table.cpu().numpy(), bytes=True)[..., :3].copy()).save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
