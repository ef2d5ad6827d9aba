"""The second problems of chapter 06's exercises agree with torch, the library and the first problems."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.blocks import standardize
from lesson_lib.checks.inputs import drawn
from tests import code_of

asked = code_of("c06_transformer")

pytestmark = pytest.mark.on_cpu


def test_the_norm_without_a_mean_is_torch_s():
    x, weight = drawn(1, 3, 5, 7), drawn(2, 7)
    assert_close(asked.norm_of_tokens_2(x, weight, 0.1), F.rms_norm(x, (7,), weight, 0.1))
    x, one = drawn(1, 5, 7), torch.ones(7)
    x = x - x.mean(-1, keepdim=True)
    first = asked.norm_of_tokens(x, one, 0 * one, 0.1)
    assert_close(asked.norm_of_tokens_2(x, one, 0.1), first)


def test_where_the_norm_behind_changes_nothing_the_branch_is_pre_norm_s():
    def norm(x):
        return standardize(x, -1, 1e-5)

    x, sublayers = drawn(1, 5, 7), (torch.tanh, torch.relu, torch.sin)
    branches = asked.pre_norm_stack_2(x, sublayers, ((norm, lambda y: y),) * 3)
    assert_close(norm(branches), asked.pre_norm_stack(x, sublayers, norm))


def test_an_answer_counts_and_its_question_does_not():
    logits, filler = drawn(1, 11, 11), 0
    words = torch.tensor([[3, 5, 7, 2], [4, 9, 0, 0]])
    own = asked.forced_loss_2(lambda w: logits[w], words, torch.tensor([1, 1]), filler)
    reads = F.cross_entropy(logits[words[:, :-1]].flatten(0, 1), words[:, 1:].flatten(), ignore_index=filler)
    assert_close(own, reads)
    words, logits = torch.tensor([[3, 5, 7, 2]]), drawn(1, 11, 11)
    own = asked.forced_loss_2(lambda w: logits[w], words, torch.tensor([3]), 0)
    assert_close(own, -logits[7].log_softmax(-1)[2])


def test_words_up_to_a_share_are_those_of_top_k_and_fewer_where_a_row_is_sure():
    logits = drawn(1, 5, 11)
    for k in (1, 2, 4):
        first = asked.k_best_probabilities(logits, 1.0, k)
        held = (logits.softmax(-1) * (first > 0)).sum(-1)
        for row, least, wanted in zip(logits, held, first, strict=True):
            assert_close(asked.k_best_probabilities_2(row.softmax(-1), float(least) - 1e-4), wanted)
    rows = torch.tensor([[0.97, 0.01, 0.01, 0.01], [0.26, 0.25, 0.25, 0.24]])
    assert (asked.k_best_probabilities_2(rows, 0.9) > 0).sum(-1).tolist() == [1, 4]
