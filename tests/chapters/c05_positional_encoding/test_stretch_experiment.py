"""Rotary, stretched: the tasks, the ways, and what part 05c says of the stored runs."""

import statistics

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c05_positional_encoding.experiments import stretch
from lesson_lib.experiments import results
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


def test_what_part_05c_says_of_the_stored_runs():
    rows = results("stretch")["rows"]

    def median(task, way, column):
        found = [row for row in rows if (row["task"], row["way"]) == (task, way)]
        return round(statistics.median(column(row) for row in found), 2)

    def at_128(row):
        return row["accuracy"][2]

    near = {way: median("three back", way, at_128) for way in stretch.RECIPE["ways"]}
    far = {way: median("the latest wins", way, at_128) for way in stretch.RECIPE["ways"]}
    assert near == {"as trained": 0.8, "interpolated": 0.06, "larger base": 0.81, "by parts": 0.61}
    assert far == {"as trained": 0.47, "interpolated": 0.98, "larger base": 0.6, "by parts": 0.96}
    tuned = [
        median(task, way, lambda row: row["tuned"])
        for task in stretch.RECIPE["tasks"]
        for way in ("as trained", "interpolated")
    ]
    assert tuned == [0.98, 0.06, 0.8, 0.98]
