"""Scores: numbers computed by hand, chunks equal to the whole, memory."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.measure import peak_mib
from lesson_lib.scores import Additive, Bilinear, dot, scaled_dot, soft_cap

B, N, M, D_Q, D_K, D_H = 2, 7, 11, 5, 3, 13


def test_dot_by_hand():
    assert dot(
        torch.tensor([[2.0, 1.0, 3.0]]), torch.tensor([[0.0, 1.0, 1.0], [2.0, 3.0, 1.0]])
    ).tolist() == [[4.0, 10.0]]


def test_additive_by_hand():
    score = Additive(1, 1, 1)
    with torch.no_grad():
        score.w_query.weight.fill_(2.0)
        score.w_key.weight.fill_(1.0)
        score.v.fill_(3.0)
    got = score(torch.tensor([[0.5]]), torch.tensor([[-1.0], [0.0]]))
    assert_close(got, torch.tensor([[0.0, 3 * torch.tensor(1.0).tanh().item()]]))


def test_bilinear_by_hand_and_with_the_identity_it_is_dot():
    score = Bilinear(2, 3)
    with torch.no_grad():
        score.w.copy_(torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]))
    assert score(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 1.0, 1.0]])).tolist() == [[13.0]]
    square = Bilinear(D_K, D_K)
    torch.nn.init.eye_(square.w)
    q, k = torch.randn(N, D_K), torch.randn(M, D_K)
    assert_close(square(q, k), dot(q, k))


def test_keys_that_many_queries_meet_are_met_once():
    score, query, key = Additive(D_Q, D_K, D_H), torch.randn(2, 3, D_Q), torch.randn(2, 7, D_K)
    one = score.for_keys(key)
    torch.testing.assert_close(one(query, key), score(query, key))
    (ours,), (whole,) = (torch.autograd.grad(f(query, key).sum(), score.w_key.weight) for f in (one, score))
    torch.testing.assert_close(ours, whole)
    with pytest.raises(ValueError, match="key"):
        score.for_keys(query)


@pytest.mark.parametrize("max_pairs", [1, M, 3 * M * B, 4 * M * B + 1])
def test_additive_in_chunks_gives_the_same_numbers_and_gradients(max_pairs):
    whole, parts = Additive(D_Q, D_K, D_H), Additive(D_Q, D_K, D_H, max_pairs=max_pairs)
    parts.load_state_dict(whole.state_dict())
    q, k = torch.randn(B, N, D_Q, requires_grad=True), torch.randn(B, M, D_K, requires_grad=True)
    assert_close(parts(q, k), whole(q, k), rtol=1e-6, atol=1e-6)
    ours = torch.autograd.grad(parts(q, k).square().sum(), [q, k, *parts.parameters()])
    theirs = torch.autograd.grad(whole(q, k).square().sum(), [q, k, *whole.parameters()])
    assert_close(ours, theirs)
    with torch.no_grad():
        assert_close(parts(q, k), whole(q, k), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("training", [False, True], ids=["forward", "forward+backward"])
def test_additive_in_chunks_never_holds_all_hidden_layers(training):
    """512 x 512 pairs with 64 hidden units are 64 MiB at once; in chunks of 2**14 pairs a hidden layer is 4
    MiB."""
    x = torch.randn(512, 16)
    peaks = {}
    for max_pairs in (2**14, 2**30):
        score = Additive(16, 16, 64, max_pairs=max_pairs).to(x.device)

        def call(score=score):
            with torch.set_grad_enabled(training):
                total = score(x, x).sum()
            if training:
                total.backward()

        peaks[max_pairs] = peak_mib(call)
    assert peaks[2**14] < 32 < 64 < peaks[2**30]


def test_a_soft_cap_bounds_all_and_keeps_the_order():
    q, k = 30 * torch.randn(5, 4), torch.randn(7, 4)
    capped, plain = soft_cap(2.0)(q, k), scaled_dot(q, k)
    assert capped.abs().max() <= 2 < plain.abs().max()
    assert (capped.sign() == plain.sign()).all()
    torch.testing.assert_close(soft_cap(1e4)(q, k), plain, rtol=1e-3, atol=1e-3)
    mask = torch.tensor([[True] * 6 + [False]])
    assert (attend(q, k, k, score=soft_cap(2.0), mask=mask).weights[:, -1] == 0).all()


def test_bilinear_starts_with_scores_of_variance_one():
    std = Bilinear(64, 128)(torch.randn(500, 64), torch.randn(500, 128)).std().item()
    assert 0.9 < std < 1.1


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: soft_cap(0), ValueError, "Gemma 2 has 50"),
        (lambda: Additive(0, 1, 1), ValueError, "d_query must be a whole number >= 1"),
        (lambda: Additive(1, 1, torch.ones(3)), ValueError, "x.shape"),
        (lambda: Bilinear(3, -1), ValueError, "d_key must be a whole number >= 1"),
        (lambda: Bilinear(3, 5)(torch.ones(2, 4), torch.ones(2, 5)), ValueError, "make it with d_query=4"),
        (lambda: Additive(3, 5, 2)(torch.ones(2, 3), torch.ones(2, 4)), ValueError, "make it with d_key=4"),
    ],
)
def test_bad_input_gets_a_sentence(no_shape_hook, call, kind, words):
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value)
