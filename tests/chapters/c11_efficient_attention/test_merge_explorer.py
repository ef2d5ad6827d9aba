"""Two parts on a lever: the sliders move the stones, and it balances where the library's merge says."""

import re

import pytest
import torch

from lesson_lib.chapters.c11_efficient_attention.merge_explorer import MergeExplorer
from lesson_lib.efficient import Partial, merge


def by_library(output, its_sum):
    one = Partial(torch.tensor([[17.5]]), torch.tensor([4.0]).log())
    other = Partial(torch.tensor([[float(output)]]), torch.tensor([float(its_sum)]).log())
    return merge(one, other).output.item()


@pytest.mark.parametrize("output, its_sum", [(40, 4), (40, 12), (0, 1), (60, 36)])
def test_it_balances_at_the_output_of_both(output, its_sum):
    explorer = MergeExplorer()
    explorer.output.value, explorer.sum.value = output, its_sum
    assert explorer.merged() == pytest.approx(by_library(output, its_sum))
    (tip,) = re.findall(r"M([\d.]+) 90l", explorer.drawing.value)
    assert float(tip) == pytest.approx(40 + 520 * explorer.merged() / 60, abs=0.1)
    assert f"= {explorer.merged():.4g};" in explorer.drawing.value


def test_a_stone_is_as_large_as_its_sum():
    explorer = MergeExplorer()
    explorer.sum.value = 16
    areas = [float(side) ** 2 for side in re.findall(r'rect [^>]*width="([\d.]+)"', explorer.drawing.value)]
    assert areas[1] / areas[0] == pytest.approx(4, rel=0.01)
