"""Part 09: blocks give the numbers of the mask, and windows that look back do, too."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.masks import causal, window
from tests import code_of

asked = code_of("c09_truncated_attention")


@pytest.mark.parametrize("n, radius, block", [(12, 2, 4), (12, 5, 3), (6, 9, 6), (8, 0, 2)])
def test_blocks_are_the_window_as_a_mask(n, radius, block):
    q, k, v = torch.randn(3, n, 5)
    keys, values = (asked.keys_of_blocks(x, radius, block) for x in (k, v))
    seen = asked.who_is_seen(n, radius, block)
    ours = attend(q.unflatten(0, (-1, block)), keys, values, mask=seen).output.flatten(0, 1)
    assert_close(ours, attend(q, k, v, mask=window(n, radius)).output)


@pytest.mark.parametrize("n, radius, block", [(12, 2, 4), (12, 5, 3), (8, 0, 2)])
def test_blocks_that_look_back_are_the_causal_window(n, radius, block):
    q, k, v = torch.randn(3, n, 5)
    keys, values = (asked.keys_of_blocks_2(x, radius, block) for x in (k, v))
    seen = asked.who_is_seen_2(n, radius, block)
    ours = attend(q.unflatten(0, (-1, block)), keys, values, mask=seen).output.flatten(0, 1)
    assert_close(ours, attend(q, k, v, mask=window(n, radius) & causal(n)).output)


def test_a_last_block_that_is_not_full_is_filled_up():
    pieces = asked.keys_of_blocks_2(torch.arange(1.0, 6.0)[:, None], radius=1, block=2)
    assert pieces[..., 0].tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 0]]
