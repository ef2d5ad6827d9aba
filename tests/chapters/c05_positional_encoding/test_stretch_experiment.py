"""Rotary, stretched: the tasks and the ways."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c05_positional_encoding.experiments import stretch
from lesson_lib.positions import frequencies


def test_the_asked_name_stands_twice_and_the_later_number_is_right():
    names, numbers, right = stretch.draw(torch.Generator().manual_seed(0), 7, length=11)
    for row, said, answer in zip(names.tolist(), numbers.tolist(), right.tolist(), strict=True):
        places = [i for i, name in enumerate(row[:-1]) if name == row[-1]]
        assert len(places) == 2 and said[places[-1]] == answer and said[-1] == stretch.RECIPE["numbers"]


def test_the_ways_slow_the_clocks_that_they_should():
    trained = frequencies(stretch.D_HEAD)
    assert_close(stretch.stretched("as trained", 4), trained)
    assert_close(stretch.stretched("interpolated", 4), trained / 4)
    slowed = trained / stretch.stretched("larger base", 4)
    assert_close(slowed[[0, -1]], torch.tensor([1.0, 4.0], dtype=torch.float64))
    assert (slowed.diff() > 0).all()
    by_parts = trained / stretch.stretched("by parts", 4)
    # 32 tokens are 5.1 turns of the first clock, 1.6 of the second, half a turn of the third
    assert by_parts.tolist() == pytest.approx([1, 1, 4, 4, 4, 4, 4, 4])
    assert (trained / stretch.stretched("clock 2 alone", 4)).tolist() == [1, 1, 4, 1, 1, 1, 1, 1]
    for way in stretch.RECIPE["ways"]:
        assert_close(stretch.stretched(way, 1.0), trained)


def test_an_unknown_way_is_told():
    with pytest.raises(ValueError, match="way must be one of as trained"):
        stretch.stretched("ntk", 4)


def test_a_short_text_is_not_stretched():
    model = stretch.Latest().to("cpu")
    names, numbers, _ = stretch.draw(torch.Generator().manual_seed(0), 3, length=8)
    before = model(names, numbers)
    stretch.stretch(model, "interpolated", 8)
    assert_close(model(names, numbers), before)
    stretch.stretch(model, "interpolated", 64)
    assert not torch.allclose(model(names, numbers), before, atol=1e-3)
