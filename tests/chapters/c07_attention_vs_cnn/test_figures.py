"""The figures of lesson 07: which pixel, tile or box stands where."""

import pytest
import torch

from lesson_lib.chapters.c07_attention_vs_cnn import figures
from lesson_lib.convolution import as_attention

C, H, W = 3, 5, 7


def panels(picture):
    """Axes that hold a drawing, without colour bars."""
    return [axes for axes in picture.figure.axes if axes.get_label() != "<colorbar>"]


def table(axes, image=0):
    return torch.tensor(axes.images[image].get_array().filled(torch.nan).tolist(), device="cpu")


def test_the_example_is_a_picture_of_5_by_10_in_tenths():
    picture = figures.example_picture()
    assert picture.shape == (3, 5, 10) and torch.equal(picture, figures.example_picture())
    assert picture.device.type == "cpu" and 0 <= picture.min() and picture.max() <= 1
    torch.testing.assert_close(10 * picture, (10 * picture).round())
    assert len({tuple(pixel) for pixel in picture.flatten(1).T.tolist()}) >= 5  # it is coloured
    assert picture[:, 0, 7].tolist() == pytest.approx([1.0, 0.8, 0.1])  # the sun


@pytest.mark.parametrize("offset, name", [
    ((-1, -1), "up left (-1, -1)"), ((0, 0), "the pixel itself (0, 0)"), ((0, 1), "right (0, 1)"),
    ((2, -1), "down 2 left (2, -1)"),
])  # fmt: skip
def test_an_offset_has_a_name(offset, name):
    assert figures.offset_name(*offset) == name


@pytest.mark.parametrize("kernel", [1, 3])
def test_offsets_are_those_at_which_the_heads_of_a_convolution_look(kernel):
    conv = torch.nn.Conv2d(1, 1, kernel, padding=kernel // 2)
    weights = as_attention(conv).heads(torch.zeros(1, 1, H, W), weights=True).weights[0]
    border, (row, column) = kernel // 2, (3, 1)
    for weight, (down, right) in zip(weights, figures.kernel_offsets(kernel), strict=True):
        brightest = divmod(weight[row * W + column].argmax().item(), W + 2 * border)
        assert brightest == (row + down + border, column + right + border)


def test_a_field_is_divided_by_its_maximum_and_zero_differs_from_small():
    small = torch.zeros(H, W)
    small[1, 2], small[3, 4] = 1e-9, 0.5
    for axes in panels(figures.fields({"a": small, "b": 8 * small}, (3, 4))):
        shares = table(axes)
        assert shares[3, 4] == 1 and shares[1, 2] == pytest.approx(2e-9) and shares.isnan().sum() == H * W - 2


@pytest.mark.parametrize("h, w, across", [(5, 5, 4), (4, 16, 2), (16, 4, 8)])
def test_generated_pictures_stand_row_by_row(h, w, across):
    pictures = torch.arange(16.0)[:, None, None].expand(16, h, w)
    (axes,) = panels(figures.generated({"real": pictures}))
    tiles = table(axes)
    assert tiles.shape == (16 // across * (h + 1) - 1, across * (w + 1) - 1) and axes.get_title() == "real"
    assert tiles[:: h + 1, :: w + 1].tolist() == torch.arange(16.0).reshape(-1, across).tolist()
    assert tiles[h].isnan().all() and tiles[:, w].isnan().all()


def test_queries_are_drawn_where_they_were_sure():
    rows = [
        {"system": "no matching", "queries": []},
        {"system": "DETR"},
        {"system": "DETR", "queries": [{"query": 0, "x": [1.0, 2.0], "y": [3.0, 4.0], "sure": [1, 0]},
                                       {"query": 1, "x": [5.0], "y": [6.0], "sure": [0]}]},
    ]  # fmt: skip
    first, second = panels(figures.queries(rows))
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in first.lines] == [([1.0], [3.0])]
    assert not second.lines and second.get_title() == "query 1"
    assert first.get_ylim() == (24, 0)  # pixels count downwards


def test_boxes_of_no_width_are_left_out():
    box = torch.tensor([[2, 5, 7, 10], [0, 0, 0, 0]])
    (axes,) = panels(figures.detections(torch.rand(1, 24, 24), [box], [torch.zeros(0, 4)], [[]]))
    (patch,) = axes.patches
    assert (*patch.get_xy(), patch.get_width(), patch.get_height()) == (1.5, 4.5, 5, 5)


@pytest.mark.parametrize(
    "box, corner",
    [
        ([2.0, 6.0, 8.0, 12.0], (1.5, 5.5, "left", "bottom")),
        ([2.0, 1.0, 8.0, 7.0], (1.5, 6.5, "left", "top")),  # no room above
        ([16.0, 6.0, 24.0, 12.0], (23.5, 5.5, "right", "bottom")),  # none to the right
    ],
)
def test_a_label_stays_in_the_canvas(box, corner):
    box = torch.tensor([box])
    (axes,) = panels(figures.detections(torch.rand(1, 24, 24), [box], [box], [["cross"]]))
    (text,) = axes.texts
    assert (*text.get_position(), text.get_ha(), text.get_va()) == corner


def test_a_coloured_picture_is_clipped_and_a_grey_one_starts_at_zero():
    axes = figures.sheet()[1][0][0]
    colored = figures.draw_picture(axes, torch.full((3, H, W), 1.7)).get_array()
    assert colored.shape == (H, W, 3) and colored.max() == 1
    ranges = [figures.draw_picture(axes, torch.full((1, H, W), x)).get_clim() for x in (0.5, -0.5, 0.0)]
    assert ranges == [(0, 0.5), (-0.5, 0.5), (0, 1)]  # of one value that is not positive: any range
