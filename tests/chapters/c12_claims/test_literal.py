"""Sentences to the letter: each is right on some example, and wrong on another."""

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c12_claims import literal
from lesson_lib.checks import properties
from tests import code_of

asked = code_of("c12_claims")

SEEN = {
    literal.weights_from_values: ["off", "error", "error", "error"],
    literal.minus_a_billion: ["right", "right", "right", "off"],
    literal.exp_over_sum: ["right", "right", "nan", "nan"],
    asked.to_the_letter: ["off", "off", "off", "off"],
}


@pytest.mark.parametrize("function", SEEN, ids=lambda f: f.__name__)
def test_each_is_seen_by_some_example(function, no_shape_hook):
    found = [literal.outcome(function, example).split(" ")[0] for example in literal.examples().values()]
    assert found == SEEN[function]
    assert not properties(literal.maskless(function)).passed


def test_attend_is_right_on_all_of_them():
    for example in literal.examples().values():
        assert literal.outcome(lambda q, k, v, m: attend(q, k, v, mask=m).output, example) == "right"


def test_another_shape_is_told():
    square = literal.examples()["square"]
    assert literal.outcome(lambda q, k, v, m: v[:2], square) == "shape (2, 4)"


def test_only_the_square_example_has_equal_axes():
    sizes = {name: {*e.query.shape, *e.key.shape, *e.value.shape} for name, e in literal.examples().items()}
    assert sizes.pop("square") == {4} and all(len(size) == 4 for size in sizes.values())


def test_without_a_mask_all_may_look_at_all():
    q, k, v = torch.randn(5, 4), torch.randn(6, 4), torch.randn(6, 3)
    seen = literal.maskless(lambda q, k, v, mask: mask.float())
    assert seen(q, k, v).tolist() == torch.ones(5, 6).tolist()
    assert seen(q, k, v, torch.zeros(5, 6, dtype=torch.bool)).sum() == 0
