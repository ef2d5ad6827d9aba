"""Rotary positions for longer texts: what each rule keeps, what it divides, and that a factor of 1 changes
nothing."""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from lesson_lib import scalings
from lesson_lib.positions import frequencies, rotary

pytestmark = pytest.mark.on_cpu
D, CONTEXT = 32, 512
RULES = {
    "linear": scalings.linear,
    "ntk": scalings.ntk,
    "yarn": partial(scalings.yarn, context=CONTEXT),
    "yarn, exact": partial(scalings.yarn, context=CONTEXT, whole=False),
    "llama3": partial(scalings.llama3, context=CONTEXT),
}


@pytest.mark.parametrize("name", RULES)
def test_a_factor_of_1_changes_nothing(name):
    assert_close(RULES[name](D, 1), frequencies(D))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("factor", [2, 8.0])
def test_no_turn_becomes_faster_and_none_slower_than_by_the_factor(name, factor):
    found, plain = RULES[name](D, factor), frequencies(D)
    assert found.dtype == torch.float64 and found.shape == plain.shape
    assert (found <= plain * (1 + 1e-12)).all() and (found >= plain / factor * (1 - 1e-12)).all()
    assert_close(found[-1], plain[-1] / factor)  # the slowest turn
    assert (found.diff() < 0).all()  # their order stays
    if name != "linear":
        assert found[0] == plain[0]  # neighbours stay apart


def test_linear_is_a_division_of_the_positions():
    x = torch.randn(1, D)
    stretched = rotary(x, 12, frequencies=scalings.linear(D, 4))
    assert_close(stretched, rotary(x, 3), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name, fast, slow", [("yarn, exact", 32, 1), ("llama3", 4, 1)])
def test_many_turns_stay_and_few_are_slowed(name, fast, slow):
    plain = frequencies(D)
    turns = CONTEXT * plain / (2 * math.pi)
    found = RULES[name](D, 4)
    assert (turns > fast).any() and (turns < slow).any()
    assert_close(found[turns > fast], plain[turns > fast])
    assert_close(found[turns < slow], plain[turns < slow] / 4)
    between = (turns < fast) & (turns > slow)
    share = found[between] / plain[between]
    assert between.any() and ((share < 1) & (share > 1 / 4)).all()


def test_yarn_rounds_outwards():
    rounded, exact = scalings.yarn(D, 4, CONTEXT), scalings.yarn(D, 4, CONTEXT, whole=False)
    plain = frequencies(D)
    for end in (plain, plain / 4):  # the line is longer at both ends
        assert torch.isclose(rounded, end).sum() <= torch.isclose(exact, end).sum()
    assert not torch.equal(rounded, exact)
    assert scalings.yarn_stretch(4) == pytest.approx(0.1 * math.log(4) + 1)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: scalings.linear(D, 0.5), "factor must be a number >= 1, got 0.5"),
        (lambda: scalings.linear(D, "four"), "factor must be a number"),
        (lambda: scalings.linear(5, 2), "d must be even"),
        (lambda: scalings.ntk(2, 2), "d must be a whole number >= 4"),
        (lambda: scalings.yarn(D, 2, 0), "context must be a whole number"),
        (lambda: scalings.yarn(D, 2, CONTEXT, fast=1, slow=2), "fast must be more than slow"),
        (lambda: scalings.llama3(D, 2, CONTEXT, slow=0), "slow must be a number > 0"),
        (lambda: scalings.yarn_stretch(None), "factor must be a number"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, said):
    with pytest.raises(ValueError, match=said):
        call()
