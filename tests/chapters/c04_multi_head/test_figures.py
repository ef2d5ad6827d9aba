"""The figures of chapter 04."""

import pytest
import torch

from lesson_lib.chapters.c04_multi_head import figures


def said(picture):
    return [text.get_text() for axes in picture.figure.axes for text in axes.texts]


@pytest.mark.parametrize(
    "cuts, pairs",
    [
        ((0.3, 0.6), ["street\nstreet", "animal\nstreet", "animal\nanimal"]),
        ((0.7, 0.2), ["street\nstreet", "street\nanimal", "animal\nanimal"]),
    ],
)
def test_two_cuts_make_three_pieces(cuts, pairs):
    assert said(figures.pieces(*cuts))[:3] == pairs


def test_stored_bars_stand_in_their_order():
    assert said(figures.askers())[:3] == ["1.00", "0.50", "1.00"]
    assert len(said(figures.conditions())) == 5 and "three of four" in said(figures.conditions())


def test_the_code_has_a_row_for_each_kind():
    axes = figures.code({"animals": torch.zeros(3), "ways": torch.ones(3)}, ["1", "did", "2"]).figure.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["fits animals", "fits ways"]
    assert [text.get_text() for text in axes.texts] == ["0.00"] * 3 + ["1.00"] * 3
