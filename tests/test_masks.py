"""Masks: who may look at whom."""

import pytest
import torch

from lesson_lib.masks import causal, from_edges, padding, window
from lesson_lib.measure import peak_mib


def test_causal_lets_token_i_see_i_plus_one_tokens():
    assert causal(5).sum(-1).tolist() == [1, 2, 3, 4, 5]
    assert not causal(5)[0, 1:].any()


@pytest.mark.parametrize("reach", [None, 1, 3, 9])
def test_the_last_queries_have_the_last_rows(reach):
    i = torch.arange(7)
    full = causal(7) & (i > i[:, None] - (reach or 99))
    for queries in range(8):
        assert torch.equal(causal(7, queries=queries, window=reach), full[7 - queries :])


def test_a_window_to_the_left_is_the_causal_half_of_a_radius():
    assert torch.equal(causal(9, window=4), causal(9) & window(9, radius=3))


def test_one_query_of_many_keys_makes_no_table():
    n = 2**15
    assert peak_mib(lambda: causal(n, queries=1, window=n // 2)) < n * n / 2**20 / 100  # of booleans


def test_window_counts_neighbours_on_both_sides():
    assert window(7, radius=2).sum(-1).tolist() == [3, 4, 5, 5, 5, 4, 3]
    assert torch.equal(window(5, radius=0), torch.eye(5, dtype=torch.bool))
    assert window(5, radius=9).all()


def test_masks_combine():
    assert (causal(3) & window(3, radius=1)).int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]


def test_padding_hides_the_tail_of_each_sequence():
    assert padding(torch.tensor([3, 0]), n=5).int().tolist() == [[[1, 1, 1, 0, 0]], [[0, 0, 0, 0, 0]]]


def test_edges_point_from_source_to_target():
    mask = from_edges(torch.tensor([[0, 2], [1, 1]]), n=3)
    assert mask.int().tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    assert from_edges(torch.zeros(2, 0, dtype=torch.long), n=2).any().item() is False


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: window(5, radius=-1), ValueError, "only myself"),
        (lambda: causal(3, queries=4), ValueError, "each query's own token is among the keys"),
        (lambda: causal(3, queries=-1), ValueError, "queries must be a whole number >= 0"),
        (lambda: causal(3, window=0), ValueError, "window must be a whole number >= 1"),
        (lambda: causal(-2), ValueError, "n must be a whole number >= 0"),
        (lambda: causal(2.0), ValueError, "whole number"),
        (lambda: causal(True), ValueError, "whole number"),
        (lambda: padding([1, 2], n=3), TypeError, "torch.tensor"),
        (lambda: padding(torch.tensor([1.0]), n=3), TypeError, ".long()"),
        (lambda: padding(torch.tensor([4]), n=3), ValueError, "raise n"),
        (lambda: padding(torch.tensor([[1]]), n=3), ValueError, "(b,)"),
        (lambda: from_edges(torch.tensor([[0, 1]]), n=3), ValueError, "edge_index.T"),
        (lambda: from_edges(torch.tensor([[0], [3]]), n=3), ValueError, "allows 0 ... 2"),
    ],
)
def test_bad_input_gets_a_sentence(no_shape_hook, call, kind, words):
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value)
