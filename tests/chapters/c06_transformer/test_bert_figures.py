"""The figures of part 06d: which row they take, and what their alt text says of it."""

import pytest
import torch

from lesson_lib.chapters.c06_transformer import bert_figures


def heights(picture):
    return [patch.get_height() for patch in picture.figure.axes[0].patches]


def test_the_gaps_row_stands_there_for_each_head():
    weights = torch.zeros(2, 2, 3, 3)
    weights[:, :, 1, 0] = torch.tensor([[0.25, 0.5], [0.75, 1.0]])
    picture = bert_figures.gap(["keys", "[mask]", "old"], weights)
    assert picture.figure.axes[0].images[0].get_array()[:, 0].tolist() == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("seed, largest", [(0, 0.995), (1, 0.49), (2, 0.277)])
def test_stored_looks_are_those_of_the_seed(seed, largest):
    assert heights(bert_figures.stored_looks(seed))[3] == pytest.approx(largest, abs=1e-3)


@pytest.mark.parametrize("largest, side", [(0.28, "below"), (0.32, "above")])
def test_the_alt_says_whether_a_head_beats_one_distance(largest, side):
    shares = torch.tensor([[0.1, 0.2], [0.1, largest]])
    assert f"{side} the line" in bert_figures.looks(shares, by_distance=0.31).alt
