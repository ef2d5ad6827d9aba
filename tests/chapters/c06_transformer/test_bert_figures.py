"""The figures of part 06d: which row they take, and what their alt text says of it."""

import torch

from lesson_lib.chapters.c06_transformer import bert_figures


def test_the_gaps_row_stands_there_for_each_head():
    weights = torch.zeros(2, 2, 3, 3)
    weights[:, :, 1, 0] = torch.tensor([[0.25, 0.5], [0.75, 1.0]])
    picture = bert_figures.gap(["keys", "[mask]", "old"], weights)
    assert picture.figure.axes[0].images[0].get_array()[:, 0].tolist() == [0.25, 0.5, 0.75, 1.0]
