"""A convolution and the attention that equals it, tap by tap, border and bias included; and what no attention
without positions can do."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.convolution import (
    Near,
    PixelAttention,
    as_attention,
    offsets,
    receptive_field,
    with_few_heads,
)

B, C_IN, C_OUT, H, W = 2, 3, 5, 7, 11
BOTH = pytest.mark.parametrize("rebuilt", [as_attention, with_few_heads])


def conv(kernel=3, c_in=C_IN, c_out=C_OUT, dtype=torch.float32, **options):
    return nn.Conv2d(c_in, c_out, kernel, padding=kernel // 2, **options).to(dtype)


@BOTH
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype, most", [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_it_is_the_convolution(rebuilt, kernel, bias, dtype, most):
    layer, x = conv(kernel, bias=bias, dtype=dtype), torch.randn(B, C_IN, H, W, dtype=dtype)
    assert_close(rebuilt(layer)(x), layer(x), atol=most, rtol=0)


@BOTH
@pytest.mark.parametrize("h, w", [(1, 1), (1, 4), (2, 1)])
def test_pictures_smaller_than_the_kernel(rebuilt, h, w):
    layer, x = conv(5), torch.randn(B, C_IN, h, w)
    assert_close(rebuilt(layer)(x), layer(x), atol=1e-5, rtol=0)


def test_a_soft_head_by_hand():
    layer = nn.Conv2d(1, 1, 1, bias=False)
    nn.init.ones_(layer.weight)
    x = torch.tensor([[[[1.0, 3.0]]]])
    near = math.exp(-0.5) / (1 + math.exp(-0.5))  # two pixels at distances 0 and 1, sharpness 1/2
    expected = torch.tensor([[[[1 - near + 3 * near, near + 3 * (1 - near)]]]])
    assert_close(as_attention(layer, sharpness=0.5)(x), expected)


@pytest.mark.parametrize(
    "weights, heads",
    [
        ([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]], 1),
        ([[-1.0, -2, -1], [0, -1, 0], [0, 0, 0]], 1),
        ([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]], 2),
    ],
    ids=["a blur", "negative only", "an edge"],
)
def test_one_channel_needs_one_head_or_two(weights, heads):
    layer, x = conv(c_in=1, c_out=1), torch.randn(1, 1, H, W)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights))
    few = with_few_heads(layer)
    assert len(few.values) == heads
    assert_close(few(x), layer(x), atol=1e-5, rtol=0)


def test_heads_are_the_rank_and_one_more_or_one_per_tap():
    rank_two = conv(c_in=4, c_out=6)
    with torch.no_grad():
        rank_two.weight.copy_((torch.randn(9, 2) @ torch.randn(2, 24)).T.reshape(6, 4, 3, 3))
    x = torch.randn(1, 4, H, W)
    assert len(with_few_heads(rank_two).values) == 3
    assert_close(with_few_heads(rank_two)(x), rank_two(x), atol=1e-4, rtol=0)
    assert len(with_few_heads(conv(c_in=4, c_out=6)).values) == 9


def test_a_kernel_of_heads_by_position_has_no_more_rank_than_there_are_heads():
    """Bright pixels, one a channel, show the kernel: the heads' shares of the taps times their values."""
    scores = torch.randn(3, 9)

    def logits(d):
        tap = (3 * d[..., 0] + d[..., 1] + 4).long().clamp(0, 8)
        return torch.where((d.abs() <= 1).all(-1), scores[:, tap], -torch.inf)

    heads = PixelAttention(logits, torch.randn(3, 5, 4), None, border=1)
    bright = torch.zeros(4, 4, 5, 5)
    bright[range(4), range(4), 2, 2] = 1
    kernel = heads(bright)[:, :, 1:4, 1:4].flip(-1, -2).flatten(2).permute(2, 1, 0).flatten(1)
    assert_close(kernel, scores.softmax(-1).mT @ heads.values.flatten(1))
    assert torch.linalg.matrix_rank(kernel, atol=1e-4) == 3


def test_a_kernel_of_zeros_leaves_the_bias():
    layer, x = conv(), torch.randn(1, C_IN, H, W)
    nn.init.zeros_(layer.weight)
    assert_close(with_few_heads(layer)(x), layer(x))
    assert_close(as_attention(layer)(x), layer(x))


def test_offsets_point_down_and_right():
    d = offsets(2, 3, border=1)
    assert d.shape == (6, 20, 2)
    assert d[0, 0].tolist() == [-1, -1] and d[5, 19].tolist() == [1, 1]  # corner to corner of the canvas
    assert d[4, 5 + 3].tolist() == [-1, 1]  # from (1, 1) to line 0, column 2 of the picture


def test_near_is_minus_the_squared_distance_up_to_a_constant():
    near = Near(torch.tensor([[0.0, 0.0], [1.0, -2.0]]), torch.tensor([1.0, 3.0]))
    d = torch.tensor([[[0.0, 0.0], [1.0, -2.0], [2.0, -2.0]]])
    scores = near(d)
    assert scores.shape == (2, 1, 3)
    assert_close(scores[0, 0], torch.tensor([0.0, -5.0, -8.0]))
    # |(0, 0) - (1, -2)|² = 5, so 15 less than at the centre; one pixel beside it, 3 less
    assert_close(scores[1, 0] - scores[1, 0, 1], torch.tensor([-15.0, 0.0, -3.0]))


def test_centres_sharpness_values_and_bias_can_be_trained():
    layer, x = as_attention(conv(), sharpness=1.0), torch.randn(1, C_IN, H, W)
    layer(x).square().sum().backward()
    parameters = dict(layer.named_parameters())
    assert set(parameters) == {"values", "bias", "logits.centres", "logits.sharpness"}
    assert all(p.grad.abs().max() > 0 for p in parameters.values())


def test_the_layer_keeps_no_tie_to_the_convolution():
    layer, x = conv(), torch.randn(1, C_IN, H, W)
    rebuilt = as_attention(layer)
    before = rebuilt(x)
    with torch.no_grad():
        layer.weight.zero_()
    assert_close(rebuilt(x), before)


@BOTH
@pytest.mark.parametrize(
    "layer, kind, words",
    [
        (lambda: nn.Conv1d(3, 3, 3), TypeError, "conv must be a torch.nn.Conv2d, got Conv1d"),
        (lambda: None, TypeError, "got NoneType"),
        (lambda: nn.Conv2d(3, 3, 2), ValueError, "square and odd.*got 2 x 2"),
        (lambda: nn.Conv2d(3, 3, (3, 5)), ValueError, "got 3 x 5"),
        (lambda: nn.Conv2d(3, 3, 3), ValueError, r"padding=1 for its kernel of 3 x 3, got \(0, 0\)"),
        (lambda: nn.Conv2d(3, 3, 3, padding=1, stride=2), ValueError, r"stride=\(1, 1\), got \(2, 2\)"),
        (lambda: nn.Conv2d(3, 3, 3, padding=1, dilation=2), ValueError, "dilation"),
        (lambda: nn.Conv2d(3, 3, 3, padding=1, groups=3), ValueError, "groups=1, got 3"),
        (lambda: nn.Conv2d(3, 3, 3, padding=1, padding_mode="circular"), ValueError, "padding_mode='zeros'"),
    ],
)
def test_other_layers_get_a_sentence(no_shape_hook, rebuilt, layer, kind, words):
    with pytest.raises(kind, match=words):
        rebuilt(layer())


@pytest.mark.parametrize("sharpness", [0, -1.0, "sharp", True, math.nan, math.inf])
def test_a_sharpness_that_is_none_gets_a_sentence(no_shape_hook, sharpness):
    with pytest.raises(ValueError, match="sharpness must be a number > 0"):
        as_attention(conv(), sharpness=sharpness)


def test_bad_pictures_get_a_sentence(no_shape_hook):
    layer = as_attention(conv())
    for x, kind, words in (
        (None, TypeError, "x must be a tensor of images, got NoneType"),
        (torch.zeros(C_IN, H, W), ValueError, r"x must have shape \(b, 3, height, width\), got \(3, 7, 11\)"),
        (torch.zeros(1, 4, H, W), ValueError, r"got \(1, 4, 7, 11\)"),
        (
            torch.zeros(1, C_IN, H, W, dtype=torch.float64),
            ValueError,
            "x is torch.float64.*the layer torch.float32",
        ),
    ):
        with pytest.raises(kind, match=words):
            layer(x)


def test_padding_same_is_the_same():
    layer, x = nn.Conv2d(C_IN, C_OUT, 3, padding="same"), torch.randn(1, C_IN, H, W)
    assert_close(as_attention(layer)(x), layer(x), atol=1e-5, rtol=0)
    assert isinstance(as_attention(layer), PixelAttention)


@pytest.mark.parametrize("depth, reach", [(1, 1), (2, 2), (3, 3)])
def test_a_stack_of_convolutions_sees_one_pixel_further_per_layer(depth, reach):
    stack = nn.Sequential(*(conv(c_in=4, c_out=4) for _ in range(depth)))
    seen = receptive_field(stack, torch.randn(B, 4, 9, W), (4, 5)) > 0
    expected = torch.zeros(9, W, dtype=torch.bool)
    expected[4 - reach : 5 + reach, 5 - reach : 6 + reach] = True
    assert torch.equal(seen, expected)


def test_the_receptive_field_of_one_tap_by_hand():
    layer = conv(c_in=1, c_out=1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.0, 0, 0], [0, 0, -2], [0, 0, 0]]))  # looks at its right neighbour
    field = receptive_field(layer, torch.randn(1, 1, H, W), (2, 3))
    assert field[2, 4] > 0 and field.count_nonzero() == 1


@pytest.mark.parametrize(
    "layer, pixel, words",
    [
        (conv(), (H, 0),
         r"pixel must be \(down, right\) in the picture of 7 x 11, counted from 0, got \(7, 0\)"),
        (conv(), (0, -1), "pixel must be"),
        (conv(), 3, "got 3"),
        (conv(), (1.5, 2), "got \\(1.5, 2\\)"),
        (nn.Conv2d(C_IN, C_OUT, 3), (2, 2), "layer must keep the size 7 x 11"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_gets_a_sentence(no_shape_hook, layer, pixel, words):
    with pytest.raises(ValueError, match=words):
        receptive_field(layer.to(torch.get_default_device()), torch.randn(1, C_IN, H, W), pixel)


@pytest.mark.parametrize("x", [None, [[1.0]], 3])
def test_a_field_of_no_picture_gets_a_sentence(no_shape_hook, x):
    with pytest.raises(TypeError, match="x must be a tensor of pictures"):
        receptive_field(conv(), x, (0, 0))


def test_a_layer_that_does_not_look_sees_nothing():
    x = torch.randn(1, C_IN, H, W)
    assert receptive_field(lambda x: torch.ones(1, 2, H, W), x, (1, 1)).count_nonzero() == 0
