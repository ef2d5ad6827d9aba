"""The second problems of chapter 01 agree with the library, with torch, and with the first problems."""

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.checks.inputs import drawn
from tests import code_of

asked = code_of("c01_history")

pytestmark = pytest.mark.on_cpu


def test_who_sees_less_has_no_higher_limit():
    for seed in range(20):
        counts = drawn(seed, 7, 5, 3).abs()
        less, more = asked.most_right_2(counts), asked.most_right(counts.flatten(0, 1))
        assert less <= more + 1e-6
        assert torch.isclose(less, asked.most_right(counts.sum(0)))


@pytest.mark.parametrize("n, size", [(11, 3), (5, 1), (3, 7)])
def test_a_window_backwards_is_half_of_one_to_both_sides(n, size):
    own = asked.window_mask_2(n, size)
    assert torch.equal(own, asked.window_mask(n, size - 1).tril())
    assert own.sum(-1).tolist() == [min(i + 1, size) for i in range(n)]


def test_attention_to_one_real_place_gives_what_stands_there():
    query, read, lengths = drawn(1, 3, 2, 5), drawn(2, 3, 7, 5), torch.tensor([7, 1, 4])
    mask = asked.one_place_2(2, 7, lengths)
    output = attend(query, read, read, mask=mask).output
    torch.testing.assert_close(output, read[torch.arange(3), lengths - 1][:, None].expand(-1, 2, -1))


def test_keys_first_is_the_first_function_for_each_state():
    states, read, v = drawn(1, 3, 5), drawn(2, 7, 2), drawn(3, 11)
    w_query, w_key = drawn(4, 5, 11), drawn(5, 2, 11)
    own = asked.additive_step_2(states, read @ w_key, read, w_query, v)
    one_by_one = [asked.additive_step(state, read, w_query, w_key, v) for state in states]
    torch.testing.assert_close(own, torch.stack(one_by_one))


def test_the_mean_nudge_of_all_places_is_the_slope_of_the_mean_reward():
    scores, reward = drawn(1, 1, 5).requires_grad_(), drawn(2, 5)
    p = scores.softmax(-1)[0]
    (slope,) = torch.autograd.grad(p @ reward, scores)
    nudges = asked.nudge_2(scores.expand(5, -1), torch.arange(5), reward, torch.full((5,), 0.7))
    torch.testing.assert_close((p @ nudges)[None], slope)


def test_on_the_text_that_was_learned_the_share_is_the_limit():
    seen, tags = torch.tensor([5, 5, 5, 3, 3, 3, 7]), torch.tensor([0, 0, 1, 2, 1, 2, 0])
    torch.testing.assert_close(
        asked.best_share_2(seen, tags, seen, tags).float(), asked.best_share(seen, tags).float()
    )


def test_a_small_sigma_looks_perfect_until_the_point_itself_is_left_out():
    xs = torch.linspace(0, 6, 31)
    ys, sigmas = xs.sin() + drawn(1, 31, spread=0.3), (0.04, 0.4, 4.0)
    seen = [(asked.kernel_regression(xs, xs, ys, sigma) - ys).square().mean() for sigma in sigmas]
    left_out = [(asked.kernel_regression_2(xs, ys, sigma) - ys).square().mean() for sigma in sigmas]
    assert seen[0] < 1e-6 and seen == sorted(seen), "the smallest sigma looks best"
    assert left_out[1] < left_out[0] < left_out[2], "left out, the middle one is"


@pytest.mark.parametrize("p, left, right", [(0.2, 1.0, 0.0), (0.7, 5.0, 2.0), (0.5, 3.0, 7.0)])
def test_one_baseline_takes_all_noise(p, left, right):
    mean, variance = asked.reinforce(p, left, right, float(asked.reinforce_2(p, left, right)))
    assert mean == pytest.approx(left - right) and variance == pytest.approx(0, abs=1e-4)
    usual = asked.reinforce(p, left, right, p * left + (1 - p) * right)[1]
    assert (usual > 0.1) == (p != 0.5)
