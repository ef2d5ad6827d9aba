"""Part 11c: merged outputs and rings are attention, and what it shows of stored runs."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import ring_figures
from lesson_lib.chapters.c11_efficient_attention.scale_explorer import ScaleExplorer
from tests import code_of

asked = code_of("c11_efficient_attention")


def answered(q, k, v):
    return attend(q, k, v).output, (q @ k.mT / q.shape[-1] ** 0.5).exp().sum(-1)


def test_merged_outputs_are_those_of_all_keys():
    q, k, v = torch.randn(5, 3), torch.randn(11, 3), torch.randn(11, 2)
    exact = attend(q, k, v).output
    parts = [answered(q, k[rows], v[rows]) for rows in (slice(0, 2), slice(2, 7), slice(7, 11))]
    outputs, sums = (torch.stack(kind) for kind in zip(*parts, strict=True))
    assert_close(asked.merge_outputs_2(outputs, sums), exact)
    both = answered(q, k[2:], v[2:])
    assert_close(asked.merge_outputs(*parts[0], *both), exact)


@pytest.mark.parametrize("machines", [1, 2, 3, 6])
def test_a_ring_is_attention(machines):
    q, k, v = torch.randn(12, 5), torch.randn(12, 5), torch.randn(12, 3)
    exact = attend(q, k, v).output
    assert_close(asked.in_a_ring(q, k, v, machines), exact)
    one_machine_on = exact.roll(-12 // machines, 0)  # where queries travel, nobody brings them home
    assert_close(asked.in_a_ring_2(q, k, v, machines), one_machine_on)


def test_the_memory_of_stored_runs_is_drawn_and_the_explorer_takes_their_laws():
    picture = ring_figures.memory_of_each()
    assert "one curve" not in picture.alt and "backward too" in str(
        [line.get_label() for line in picture.figure.axes[0].lines]
    )
    explorer = ScaleExplorer(**ring_figures.scales())
    explorer.tokens.value, explorer.memory.value = 10**6, 4
    assert explorer.needed() == 4 and "nothing fits" in explorer.words()
