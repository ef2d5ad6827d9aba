"""The figures of chapter 04."""

import pytest
import torch

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


def test_heads_are_written_token_by_token():
    x = 10.0 * torch.arange(3)[:, None] + torch.arange(8)
    whole, head_0, head_1 = figures.as_heads(x, x.view(2, 3, 4)).figure.axes
    assert [text.get_text() for text in head_0.texts[4:10]] == ["4", "5", "6", "7", "10", "11"]
    assert head_1.get_title() == "head 1" and len(whole.texts) == 24
