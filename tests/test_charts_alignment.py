"""The figures of translation: the right cells at the right characters, and honest errors."""

import pytest
import torch

from lesson_lib.charts.alignment import alignment_map

SOURCE, TARGET = "3. mai", "05-03"


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
