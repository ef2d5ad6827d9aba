"""The figures of translation: the right cells at the right characters, and honest errors."""

import pytest
import torch

from lesson_lib.charts import alignment
from lesson_lib.charts.alignment import alignment_map, right_over_dates, right_over_length, visible

SOURCE, TARGET = "3. mai", "05-03"
CURVE = ([1, 2, 3], [0.1, 0.2, 0.0], [0.5, 0.4, 0.1], [0.9, 0.8, 0.3])


def test_rows_are_the_output_and_columns_the_input():
    weights = torch.eye(6)[:5]
    axes = alignment_map(weights, SOURCE, TARGET, caption="A caption.").figure.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(TARGET)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["3", ".", "␣", "m", "a", "i"]
    (image,) = axes.get_images()
    assert torch.equal(torch.from_numpy(image.get_array().data).float(), weights.cpu())
    assert image.get_clim() == (0.0, 1.0) and visible(" ") == ["␣"]


@pytest.mark.parametrize("n, m", [(2, 1), (10, 22), (32, 118), (40, 120)])
def test_short_and_long_texts_fit_the_page(n, m):
    picture = alignment_map(torch.rand(n, m), "a" * m, "b" * n)
    width, height = picture.figure.get_size_inches()
    assert width <= 8 and height <= 11 and picture.png().startswith(b"\x89PNG")
    axes = picture.figure.axes[0]
    size = axes.get_xticklabels()[0].get_fontsize() / 72
    box = axes.get_window_extent().transformed(picture.figure.dpi_scale_trans.inverted())
    assert 0.65 * size <= box.width / m and size <= 1.3 * box.height / n, "letters do not run into each other"


@pytest.mark.parametrize(
    "weights, source, words",
    [
        (torch.rand(6, 5), SOURCE, r"\(5, 6\), got \(6, 5\)"),
        (torch.rand(1, 5, 6), SOURCE, r"got \(1, 5, 6\)"),
        (None, SOURCE, "got NoneType"),
        ("weights", SOURCE, "got str"),
        (torch.rand(5, 0), "", r"\(5, 0\), got \(5, 0\)"),
        (torch.rand(5, 121), "a" * 121, "at most 120 characters can be drawn"),
    ],
    ids=["transposed", "a batch", "None", "a string", "empty", "too long"],
)
def test_weights_that_do_not_fit_get_a_sentence(weights, source, words, no_shape_hook):
    with pytest.raises(ValueError, match=words):
        alignment_map(weights, source, TARGET)


def test_no_text_gets_a_sentence(no_shape_hook):
    with pytest.raises(TypeError, match="source must be a text, got NoneType"):
        alignment_map(torch.rand(5, 6), None, TARGET)


def test_curves_over_dates_have_whole_ticks_and_a_band():
    picture = right_over_dates({"additive": CURVE, "fixed vector": ([3], [0.0], [0.1], [0.2])}, caption="c")
    (axes,) = picture.figure.axes
    assert axes.get_xticks().tolist() == [1, 2, 3] and len(axes.collections) == 2
    assert list(axes.get_lines()[-1].get_ydata()) == [0.0, 0.2], "a curve of one point shows its spread too"
    assert picture.caption == "c" and picture.alt.endswith(".")
    assert not any(character.isdigit() for character in picture.alt)


def test_curves_over_length_have_a_panel_for_each_number_of_dates():
    picture = right_over_length({1: {"additive": CURVE}, 2: {"additive": CURVE}}, caption="c")
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    assert titles == ["right, 1 date in a row", "right, 2 dates in a row"]
    assert alignment.LARGEST >= 118 and not any(c.isdigit() for c in picture.alt)
