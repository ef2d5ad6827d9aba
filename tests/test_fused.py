"""torch's fused kernel, and the rows that let nothing through."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.fused import empty_rows, fused
from lesson_lib.masks import causal


def test_empty_rows_by_hand():
    mask = torch.tensor([[False, True], [False, False], [True, False]])
    assert empty_rows(mask)[:, 0].tolist() == [False, True, False]
    scores = torch.zeros(3, 2).masked_fill(~mask, -torch.inf)
    assert empty_rows(scores)[:, 0].tolist() == [False, True, False]


@pytest.mark.parametrize("full", [causal(4), torch.tensor([[False, True]]), torch.zeros(3, 0) > 0])
def test_where_no_row_is_empty_there_is_nothing_to_fill(full):
    assert empty_rows(full.cpu()) is None  # a GPU is not asked


@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3), (2, 4, 5, 3), (2, 2, 4, 5, 3)])
@pytest.mark.parametrize("d_v", [2, 3, 7])
def test_any_rank_and_any_width_of_values(shape, d_v):
    q, k = torch.randn(2, *shape)
    v = torch.randn(*shape[:-1], d_v)
    assert_close(fused(q, k, v, None, None, 0.0), attend(q, k, v).output)


def test_a_row_that_sees_nothing_is_0_and_its_gradients_are_numbers():
    q = torch.randn(3, 4, requires_grad=True)
    mask = torch.tensor([[True, True], [False, False], [True, False]])
    k, v = torch.randn(2, 2, 4)
    output = fused(q, k, v, None, mask, 0.0)
    output.sum().backward()
    assert output[1].tolist() == [0.0] * 4 and q.grad.isfinite().all()


def test_a_bias_and_a_mask_together():
    q, k, v = torch.randn(3, 2, 5, 4)
    bias = torch.randn(5, 5)
    assert_close(
        fused(q, k, v, bias, causal(5), 0.0), attend(q, k, v, score_bias=bias, mask=causal(5)).output
    )
