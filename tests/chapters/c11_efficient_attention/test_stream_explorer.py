"""The stream explorer: what is kept is softmax's, and large scores break one way only."""

import html
import math
from itertools import product

import pytest
import torch

from lesson_lib.chapters.c11_efficient_attention.stream_explorer import ADDED, PLAIN, RELATIVE, StreamExplorer
from tests.explorers import stands_alone


def explorer(seen=1, added=0, by=PLAIN, exponentials=(1, 3, 4), values=(10, 20, 40)):
    w = StreamExplorer(exponentials, values)
    w.seen.value, w.added.value, w.by.value = seen, added, by
    return w


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(explorer)
    assert explorer().words() in explorer().still().caption


def test_three_scores_by_hand_plainly_and_relative_to_the_largest():
    rows = explorer(3).kept()
    assert [row.total for row in rows] == pytest.approx([1, 4, 8])
    assert [row.mixed for row in rows] == pytest.approx([10, 70, 230])
    assert [row.output for row in rows] == pytest.approx([10, 17.5, 28.75])
    assert {row.largest for row in rows} == {0.0}
    rows = explorer(3, by=RELATIVE).kept()
    assert [row.largest for row in rows] == pytest.approx([0, math.log(3), math.log(4)])
    assert [row.total for row in rows] == pytest.approx([1, 4 / 3, 2])
    assert [row.mixed for row in rows] == pytest.approx([10, 70 / 3, 57.5])
    assert [row.output for row in rows] == pytest.approx([10, 17.5, 28.75])


@pytest.mark.parametrize("order", [(5, 1, 2, 7), (7, 5, 2, 1)])
def test_the_output_is_softmax_s_in_any_order(order):
    values = [3, 11, 13, 17]
    for seen, added, by in product((1, 2, 4), ADDED, (PLAIN, RELATIVE)):
        if added and by == PLAIN:
            continue
        scores = torch.tensor(order[:seen], dtype=torch.float).log()
        right = scores.softmax(0) @ torch.tensor(values[:seen], dtype=torch.float)
        found = explorer(seen, added, by, order, values).kept()[-1]
        assert found.output == pytest.approx(right.item(), rel=1e-4)


@pytest.mark.parametrize("added", [each for each in ADDED if each])
def test_large_scores_are_nan_unless_the_largest_is_subtracted(added):
    assert "output nan" in explorer(2, added).words() and "sum inf" in explorer(2, added).words()
    assert "output 17.50" in explorer(2, added, RELATIVE).words()


def test_what_is_kept_is_told_in_words():
    assert explorer(2).words() == "2 of 3 scores seen. Kept: sum 4, weighted values 70; output 17.50."
    assert (
        explorer(3, 100, RELATIVE).words()
        == "3 of 3 scores seen. Kept: largest 101.39, sum 2, weighted values 57.50; output 28.75."
    )


def test_the_formula_behind_a_number_is_reached_by_keyboard():
    drawing = html.unescape(explorer(2, by=RELATIVE).drawing.value)
    assert (
        'tabindex="0" aria-label="old sum · exp(old largest - new) + exp(score - largest) · value"' in drawing
    )
    assert 'aria-label="weighted values / sum"' in drawing
    assert 'aria-label="old sum + exp(score)"' in explorer(2).drawing.value
    assert "role='status'" in drawing
