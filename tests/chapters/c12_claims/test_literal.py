"""Sentences to the letter: each of them fails the course's own questions."""

import pytest
import torch

from lesson_lib.chapters.c12_claims import literal
from lesson_lib.checks import properties
from tests import code_of

asked = code_of("c12_claims")

SENTENCES = (literal.weights_from_values, literal.minus_a_billion, literal.exp_over_sum, asked.to_the_letter)


@pytest.mark.parametrize("function", SENTENCES, ids=lambda f: f.__name__)
def test_each_fails_some_property(function, no_shape_hook):
    assert not properties(literal.maskless(function)).passed


def test_without_a_mask_all_may_look_at_all():
    q, k, v = torch.randn(5, 4), torch.randn(6, 4), torch.randn(6, 3)
    seen = literal.maskless(lambda q, k, v, mask: mask.float())
    assert seen(q, k, v).tolist() == torch.ones(5, 6).tolist()
    assert seen(q, k, v, torch.zeros(5, 6, dtype=torch.bool)).sum() == 0
