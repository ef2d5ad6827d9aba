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


def test_the_square_has_a_piece_for_each_pair():
    (axes,) = figures.square({"a": (0, 1)}).figure.axes
    pieces = {text.get_position(): text.get_text() for text in axes.texts if "who acted" in text.get_text()}
    assert pieces[0.25, 0.75] == "who acted: street\nwhat is it: animal" and len(pieces) == 4
    (bare,) = figures.square({"a": (0, 1)}, cuts=False).figure.axes
    assert [text.get_text() for text in bare.texts] == ["a"]
