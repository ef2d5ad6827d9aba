"""The figures of part 06e: the order of characters."""

import torch

from lesson_lib.chapters.c06_transformer import gpt_figures


def heights(axes):
    return [patch.get_height() for patch in axes.patches]


def test_the_order_of_the_first_temperature_is_kept():
    shares = {0.5: torch.tensor([0.25, 0.75, 0.0]), 2.0: torch.tensor([0.5, 0.25, 0.25])}
    panels = gpt_figures.temperatures("a\n ", shares, most=3).figure.axes
    assert heights(panels[0]) == [0.75, 0.25, 0] and heights(panels[1]) == [0.25, 0.5, 0.25]
    assert [tick.get_text() for tick in panels[0].get_xticklabels()] == ["⏎", "a", "␣"]
