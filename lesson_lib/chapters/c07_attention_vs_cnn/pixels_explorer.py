"""A convolution as attention: choose a pixel, a head and the sharpness, and see a blur become one tap of the
kernel."""

import base64
import html
import io

import ipywidgets
import torch
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.colors import to_hex
from PIL import Image
from torch import Tensor, nn

from lesson_lib.chapters.c07_attention_vs_cnn.figures import gaze, kernel_offsets, offset_name
from lesson_lib.charts.picture import CURVES, HEAT, Picture
from lesson_lib.convolution import as_attention
from lesson_lib.widgets.explorer import Explorer, cell

LARGEST, MOST_TAPS, MOST_CHANNELS = 12, 25, 6  # pixels of a side, taps of the kernel, output channels
ROOM = 291  # screen pixels for the wider side of a map: two fit on a narrow page
ALL = -1  # in the place of a head
ASKS, MOST = CURVES[1], CURVES[5]  # frames: the pixel that asks, and the one looked at most

STYLE = """
.ll-told {min-height:2.7em}
.ll-pixels {display:flex; flex-wrap:wrap; gap:8px 18px; align-items:flex-end; margin:8px 0}
.ll-box .ll-given th {font-weight:400; text-align:left; padding:3px 12px 3px 0; white-space:nowrap}
.ll-box .ll-given thead th + th {text-align:right; padding:3px 4px}
.ll-box .ll-given td {border:0; background:#f3f3f3; min-width:44px; padding:3px 4px}
"""


class PixelExplorer(Explorer):
    """What `as_attention(conv)` does at one pixel: choose row and column, a head, and the sharpness.

    `picture` is (c, h, w) with one channel or three (red, green, blue from 0 to 1), at most 12 x 12; `conv`
    is a layer that `as_attention` takes, with a kernel of at most 5 x 5 and 6 output channels. Beside the
    picture stand the head's weights over the canvas, the picture with its border of zeros; below, what the
    attention layer gives at that pixel, what the convolution gives, and the difference. It begins at the
    pixel `start` (default: the middle). Rows, columns and channels count from 0.
    Raises TypeError where `conv` is no Conv2d or `picture` no tensor, ValueError for a layer that
    `as_attention` refuses, a kernel too large, and a picture that is too large, not finite, or of another
    number of channels.
    """

    def __init__(
        self, conv: nn.Conv2d, picture: Float[Tensor, "c h w"], start: tuple[int, int] | None = None
    ) -> None:
        as_attention(conv)  # its own sentences come first
        _check(conv, picture)
        self.conv, self.picture = conv, picture.detach()
        self.border, (h, w) = conv.kernel_size[0] // 2, picture.shape[1:]
        self.names = [offset_name(down, right) for down, right in kernel_offsets(conv.kernel_size[0])]
        with torch.no_grad():
            self.expected = conv(self.picture[None])[0].cpu()  # (c_out, h, w)
        wide = {"style": {"description_width": "70px"}, "layout": ipywidgets.Layout(width="296px")}
        row, column = start or (h // 2, w // 2)
        self.row = ipywidgets.IntSlider(row, min=0, max=h - 1, description="row", **wide)
        self.column = ipywidgets.IntSlider(column, min=0, max=w - 1, description="column", **wide)
        self.sharpness = ipywidgets.FloatLogSlider(
            0.5, base=2, min=-4.5, max=5, step=0.25, description="sharpness", readout_format=".2f", **wide
        )
        heads = [(name, head) for head, name in enumerate(self.names)] + [("all heads summed", ALL)]
        self.head = ipywidgets.SelectionSlider(options=heads, description="head", readout=False, **wide)
        self._attend()
        super().__init__([self.row, self.column, self.sharpness, self.head])
        self.sharpness.observe(self._attend, names="value")  # before the drawing
        self.watch(self.row, self.column, self.sharpness, self.head)

    def weights(self) -> Float[Tensor, "rows columns"]:
        """The chosen head's weights at the chosen pixel, over the canvas; those of all heads, added up, where
        all are chosen."""
        rows = self._weights[:, self.row.value * self.picture.shape[2] + self.column.value]
        chosen = rows.sum(0) if self.head.value == ALL else rows[self.head.value]
        return chosen.reshape(self.picture.shape[1] + 2 * self.border, -1)

    def words(self) -> str:
        """Where the chosen head looks most, as a sentence."""
        table, here = self.weights(), f"row {self.row.value}, column {self.column.value}"
        largest = table.max().item()
        if self.head.value == ALL:
            return (
                f"From {here}, the weights of all {len(self.names)} heads, added up, are at most"
                f" {largest:.4f}."
            )
        down, right = self._most(table)
        inside = 0 <= down < self.picture.shape[1] and 0 <= right < self.picture.shape[2]
        where = f"row {down}, column {right}" if inside else "a pixel of the border of zeros"
        return (
            f"From {here}, the head {self.names[self.head.value]} looks most at {where}, with weight"
            f" {_share(largest)}."
        )

    def draw(self) -> str:
        table = self.weights()
        asks = (self.row.value, self.column.value)
        most = None if self.head.value == ALL else self._most(table)
        padded = nn.functional.pad(self.picture.cpu(), (self.border,) * 4)
        bar = f"0 {_bar()} {_share(table.max().item())}"
        return (
            f"<style>{STYLE}</style><p role='status' class='ll-told'>{html.escape(self.words())}</p><div"
            " class='ll-pixels'><div>the picture and its border of"
            f" zeros<br>{self._svg(padded, asks, most, 'the picture')}</div>"
            f"<div><b>{self.head.label}</b><br>weights:"
            f" {bar}<br>{self._svg(table[None] / table.max(), asks, most, self.words())}</div></div>"
            f"{self._given(*asks)}<p>Orange"
            " frame: the pixel that asks. Blue, dashed: the pixel that is looked at most. White line: the"
            " edge of the picture.</p>"
        )

    def still(self) -> Picture:
        title = f"{self.head.label}, sharpness {self.sharpness.value:g}"
        return gaze(self.picture, self.weights(), (self.row.value, self.column.value), title)

    def _attend(self, _change: dict | None = None) -> None:
        """Weights and outputs of all pixels, once for each sharpness."""
        layer, x = as_attention(self.conv, sharpness=self.sharpness.value), self.picture[None]
        with torch.no_grad():
            output, weights = layer.heads(x, weights=True)
            self._output, self._weights, self._sum = output[0].cpu(), weights[0].cpu(), layer(x)[0].cpu()

    def _most(self, table: Tensor) -> tuple[int, int]:
        """Row and column of the picture that get the largest weight; outside of it where the border does."""
        row, column = divmod(table.argmax().item(), table.shape[1])
        return row - self.border, column - self.border

    def _svg(self, picture: Tensor, asks: tuple[int, int], most: tuple[int, int] | None, label: str) -> str:
        """A canvas with the picture's edge and the frames."""
        rows, columns = picture.shape[1:]
        unit = min(34, ROOM // max(rows, columns))
        p, size = self.border, f'width="{columns * unit}" height="{rows * unit}"'
        edge = (
            f'<rect x="{p * unit}" y="{p * unit}" width="{(columns - 2 * p) * unit}"'
            f' height="{(rows - 2 * p) * unit}" fill="none" stroke="#fff"/>'
        )
        frames = _rect(asks, unit, p, f'stroke="{ASKS}"')
        if most is not None:
            frames += _rect(
                most, unit, p, f'stroke="{MOST}" stroke-dasharray="5 3"', inset=4 * (most == asks)
            )
        return (
            f'<svg role="img" aria-label="{html.escape(label)}" {size}'
            f' style="display:block;margin-top:4px"><image href="{_png(picture)}" {size}'
            f' preserveAspectRatio="none" style="image-rendering:pixelated"/>{edge}{frames}</svg>'
        )

    def _given(self, row: int, column: int) -> str:
        """What comes out at the pixel, channel by channel: of the head, of the layer, of the convolution."""
        at = row * self.picture.shape[2] + column
        layer, conv = self._sum[:, row, column], self.expected[:, row, column]
        lines = {}
        if self.head.value != ALL:
            tip = "sum over the canvas of weight · (the head's tap @ pixel)"
            lines["this head brings"] = (self._output[self.head.value, at], tip, _value)
        lines["the attention layer gives"] = (layer, "all heads' outputs, added up, plus the bias", _value)
        lines["the convolution gives"] = (conv, "sum over the taps of tap @ pixel, plus the bias", _value)
        lines["difference"] = (layer - conv, "attention layer - convolution", _difference)
        top = "".join(f'<th scope="col">{k}</th>' for k in range(len(conv)))
        body = "".join(
            f'<tr><th scope="row">{name}</th>'
            + "".join(cell(write(value), f"{tip} = {value:.6g}") for value in values.tolist())
            + "</tr>"
            for name, (values, tip, write) in lines.items()
        )
        return (
            '<div class="ll-under"><table class="ll-given"><thead><tr><th scope="col">output'
            f" channel</th>{top}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def _rect(pixel: tuple[int, int], unit: int, border: int, style: str, inset: int = 0) -> str:
    x, y = ((place + border) * unit + inset for place in reversed(pixel))
    side = unit - 2 * inset
    where = f'x="{x}" y="{y}" width="{side}" height="{side}" fill="none"'
    return f'<rect {where} stroke="#fff" stroke-width="5"/><rect {where} {style} stroke-width="3"/>'


def _bar() -> str:
    scale = ", ".join(to_hex(colormaps[HEAT](share)) for share in (0, 0.25, 0.5, 0.75, 1.0))
    return (
        "<span style='display:inline-block;width:70px;height:11px;background:linear-gradient(90deg,"
        f" {scale})'></span>"
    )


def _png(picture: Tensor) -> str:
    """A picture with a pixel for each place, as a data address; one channel is coloured from 0, or the least
    if that is less, to the largest."""
    if len(picture) == 3:
        array = (255 * picture.clamp(0, 1)).round().byte().permute(1, 2, 0).cpu().numpy()
    else:
        low, high = min(0.0, picture.min().item()), picture.max().item()
        shares = (picture[0] - low) / (high - low if high > low else 1.0)
        array = colormaps[HEAT](shares.cpu().numpy(), bytes=True)[..., :3].copy()
    file = io.BytesIO()
    Image.fromarray(array).save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _share(weight: float) -> str:
    """A weight with four digits; one that is not quite 1 is not called 1."""
    return "more than 0.9999" if 0.99995 <= weight < 1 else f"{weight:.4f}"


def _value(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}"


def _difference(value: float) -> str:
    return f"{value:.4f}" if abs(value) >= 0.001 else f"{value:.1e}" if value else "0"


def _check(conv: nn.Conv2d, picture: Tensor) -> None:
    """Raises where the picture cannot be shown to the layer, or the layer is too large to be drawn."""
    if not isinstance(picture, Tensor):
        raise TypeError(
            f"picture must be a tensor (c, h, w), got {type(picture).__name__}; make one with"
            " torch.tensor(...)"
        )
    fits = picture.ndim == 3 and len(picture) in (1, 3) and max(picture.shape[1:]) <= LARGEST
    if not fits or not picture.numel():
        raise ValueError(
            f"picture must have 1 or 3 channels and at most {LARGEST} x {LARGEST} pixels, (c, h, w), got"
            f" {tuple(picture.shape)}; of a batch take x[0], to a grey picture add a channel with x[None]"
        )
    if len(picture) != conv.in_channels:
        raise ValueError(f"conv takes {conv.in_channels} channels, the picture has {len(picture)}")
    if picture.dtype != conv.weight.dtype or picture.device != conv.weight.device:
        raise ValueError(
            f"picture is {picture.dtype} on {picture.device}, conv {conv.weight.dtype} on"
            f" {conv.weight.device}; convert it: picture.to(conv.weight)"
        )
    if not picture.isfinite().all():
        raise ValueError("picture must hold finite numbers only, got nan or inf in it")
    if conv.kernel_size[0] ** 2 > MOST_TAPS or conv.out_channels > MOST_CHANNELS:
        raise ValueError(
            f"at most 5 x 5 taps and {MOST_CHANNELS} output channels can be shown, got a kernel of"
            f" {conv.kernel_size[0]} x {conv.kernel_size[0]} and {conv.out_channels} channels"
        )
