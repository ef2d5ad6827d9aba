"""The figures of chapter 04."""

import pytest

from lesson_lib.chapters.c04_multi_head import figures


@pytest.mark.parametrize("cuts, pairs", [
    ((0.3, 0.6), ["street\nstreet", "animal\nstreet", "animal\nanimal"]),
    ((0.7, 0.2), ["street\nstreet", "street\nanimal", "animal\nanimal"]),
])  # fmt: skip
def test_two_cuts_make_three_pieces(cuts, pairs):
    (axes,) = figures.pieces(*cuts).figure.axes
    assert [text.get_text() for text in axes.texts][:3] == pairs
