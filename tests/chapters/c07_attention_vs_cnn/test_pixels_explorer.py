"""The pixel explorer shows of a head, a pixel and a sharpness what the layers compute."""

import base64
import io
import math
import re

import pytest
import torch
from PIL import Image
from torch import nn
from torch.testing import assert_close

from lesson_lib.chapters.c07_attention_vs_cnn.pixels_explorer import ALL, PixelExplorer, _difference, _value
from lesson_lib.convolution import as_attention
from tests.explorers import stands_alone

C_IN, C_OUT, H, W = 3, 2, 5, 7


def layer(kernel=3, c_in=C_IN, c_out=C_OUT, **options):
    return nn.Conv2d(c_in, c_out, kernel, padding=kernel // 2, **options)


def explorer(kernel=3, sharpness=None, **options):
    w = PixelExplorer(layer(kernel, **options), torch.rand(options.get("c_in", C_IN), H, W))
    if sharpness is not None:
        w.sharpness.value = sharpness
    return w


def images(drawing):
    codes = re.findall(r'href="data:image/png;base64,([^"]+)"', drawing)
    return [Image.open(io.BytesIO(base64.b64decode(code))) for code in codes]


def written(drawing, name):
    """The numbers of one line of the table."""
    (line,) = re.findall(f"<tr><th[^>]*>{name}</th>(.*?)</tr>", drawing)
    return [float(text) for text in re.findall(r">(-?[\d.e-]+)<span", line)]


def test_it_starts_with_the_middle_pixel_and_a_still_picture_stands_for_it():
    w = explorer()
    assert (w.row.value, w.column.value, w.head.value) == (2, 3, 0)
    assert w.words().startswith(
        "From row 2, column 3, the head up left (-1, -1) looks most at row 1, column 2,"
    )
    assert stands_alone(explorer)


def test_the_weights_are_a_bell_around_the_tap():
    """exp(-sharpness · distance²) of each pixel of the canvas from the tap's place, as a share of them all,
    by hand."""
    w = explorer(sharpness=0.5)
    w.row.value, w.column.value, w.head.value = 1, 4, 5  # the head "right": it looks at row 1, column 5
    shares = [
        [math.exp(-0.5 * ((r - 1) ** 2 + (c - 5) ** 2)) for c in range(-1, W + 1)] for r in range(-1, H + 1)
    ]
    expected = torch.tensor(shares, device="cpu") / sum(map(sum, shares))
    assert_close(w.weights(), expected, atol=1e-6, rtol=1e-4)
    assert (
        f"the head right (0, 1) looks most at row 1, column 5, with weight {expected.max():.4f}." in w.words()
    )


def test_at_every_pixel_it_gives_what_the_layers_give():
    w = explorer(sharpness=2.0)
    expected = w.conv(w.picture[None])[0]
    given = as_attention(w.conv, sharpness=2.0)(w.picture[None])[0]
    lines = {
        "the convolution gives": expected, "the attention layer gives": given, "difference": given - expected,
    }  # fmt: skip
    for w.row.value in range(H):
        for w.column.value in range(W):
            for name, values in lines.items():
                there = values[:, w.row.value, w.column.value].tolist()
                assert written(w.drawing.value, name) == pytest.approx(there, abs=1e-4)


def test_the_maps_hold_a_pixel_for_each_place_and_frames_lie_on_them():
    w = explorer(sharpness=32.0)
    w.row.value, w.column.value, w.head.value = 1, 4, 2  # "up right": row 0, column 5
    picture, weights = images(w.drawing.value)
    assert picture.size == weights.size == (W + 2, H + 2)
    bright = {(x, y): sum(weights.getpixel((x, y))) for x in range(W + 2) for y in range(H + 2)}
    assert max(bright, key=bright.get) == (6, 1)  # one further each, for the border
    red, green, blue = (255 * w.picture[:, 4, 3]).round().int().tolist()
    assert picture.getpixel((4, 5)) == (red, green, blue)
    assert {picture.getpixel((x, 0)) for x in range(W + 2)} == {(0, 0, 0)}  # the border of zeros
    unit = 32
    found = re.findall(
        r'<rect x="(\d+)" y="(\d+)" width="32" height="32" fill="none" stroke="(#\w+)"', w.drawing.value
    )
    frames = {(int(x), int(y)) for x, y, stroke in found if stroke != "#fff"}
    assert frames == {(5 * unit, 2 * unit), (6 * unit, 1 * unit)}


def test_all_heads_together_show_the_kernels_square():
    w = explorer(sharpness=32.0)
    w.head.value = ALL
    table = w.weights()
    assert_close(table.sum(), torch.tensor(9.0, device="cpu"))
    # the pixel (2, 3), one further for the border
    assert_close(table[2:5, 3:6], torch.ones(3, 3, device="cpu"))
    drawing = w.drawing.value
    assert "the weights of all 9 heads, added up, are at most 1.0000" in w.words()
    assert "<b>all heads summed</b>" in drawing
    assert "this head brings" not in drawing and "stroke-dasharray" not in drawing


@pytest.mark.parametrize("kernel, c_in", [(1, 3), (5, 1)])
def test_other_kernels_and_grey_pictures(kernel, c_in):
    w = explorer(kernel, sharpness=32.0, c_in=c_in, bias=False)
    assert len(w.head.options) == kernel**2 + 1
    assert images(w.drawing.value)[1].size == (W + 2 * (kernel // 2), H + 2 * (kernel // 2))
    assert max(map(abs, written(w.drawing.value, "difference"))) < 1e-5
    w.head.value = kernel**2 // 2
    assert "the head the pixel itself (0, 0) looks most at row 2, column 3" in w.words()


def test_a_difference_is_never_rounded_to_zero_and_zero_has_no_sign():
    assert [_difference(x) for x in (0.0, -0.0, -3e-8, 0.0012)] == ["0", "0", "-3.0e-08", "0.0012"]
    assert (_value(-0.00001), _value(-0.25)) == ("0.0000", "-0.2500")


def test_numbers_are_told_again_on_focus():
    assert "attention layer - convolution = " in explorer().drawing.value
    assert explorer().drawing.value.count('tabindex="0"') == 4 * C_OUT
