"""Positions: numbers by hand, the rotation for many i, delta and d, equal forms, and plain errors."""

import math

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.positions import Floater, Learned, Shaw, alibi, frequencies, rotary, rotation, sinusoidal

B, H, N, M, D_K, D_V = 2, 3, 7, 11, 10, 13  # rotary needs an even width
EXACT = {"atol": 1e-12, "rtol": 0}


def test_sinusoidal_by_hand():
    table = sinusoidal(3, 4, dtype=torch.float64)
    assert_close(table[0], torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.float64))
    by_hand = [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]
    assert_close(table[2], torch.tensor(by_hand, dtype=torch.float64), **EXACT)
    assert sinusoidal(0, 4).shape == (0, 4)


def test_sinusoidal_is_computed_in_float64():
    far = sinusoidal(100_001, 2)[-1]
    assert_close(far, torch.tensor([math.sin(100_000), math.cos(100_000)]), atol=1e-7, rtol=0)
    assert sinusoidal(5, 4, dtype=torch.float16).dtype == torch.float16


@pytest.mark.parametrize("d", [2, 6, 64, 510])
@pytest.mark.parametrize("base", [10_000.0, 17.0])
def test_rotation_moves_every_code_on(d, base):
    table = sinusoidal(120, d, base=base, dtype=torch.float64)
    for delta in (0, 1, 5, 53):
        turn = rotation(delta, d, base=base, dtype=torch.float64)
        assert_close(table[: 120 - delta] @ turn.T, table[delta:], **EXACT)
        assert_close(rotation(-delta, d, base=base, dtype=torch.float64) @ table[delta], table[0], **EXACT)


def test_rotation_is_orthogonal_and_additive():
    a, b, both = (rotation(delta, 12, dtype=torch.float64) for delta in (3.5, -11, -7.5))
    assert_close(a.T @ a, torch.eye(12, dtype=torch.float64), **EXACT)
    assert_close(a.det(), torch.tensor(1.0, dtype=torch.float64), **EXACT)
    assert_close(a @ b, both, **EXACT)


@pytest.mark.parametrize("pairing", ["interleaved", "half-split"])
def test_rotary_scores_depend_on_the_offset_only(pairing):
    q, k = torch.randn(D_K, dtype=torch.float64), torch.randn(D_K, dtype=torch.float64)
    turned = [rotary(x.expand(N, D_K), pairing=pairing) for x in (q, k)]
    scores = turned[0] @ turned[1].mT
    for offset in range(1 - N, N):
        assert scores.diagonal(offset).std(correction=0) < 1e-12
    assert_close(scores[3, 3], q @ k, **EXACT)
    assert not torch.allclose(scores[0, 1], scores[1, 0])


@pytest.mark.parametrize("pairing", ["interleaved", "half-split"])
def test_given_frequencies_take_the_place_of_those_of_the_base(pairing):
    """Divided by 4, token 4 is turned like token 1; and a quarter turn by hand."""
    x = torch.randn(B, 13, D_K)
    squeezed = rotary(x, pairing=pairing, frequencies=frequencies(D_K) / 4)
    assert_close(squeezed[:, ::4], rotary(x[:, ::4], pairing=pairing), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(squeezed, rotary(x, pairing=pairing), atol=0.1)
    quarter = rotary(torch.tensor([[2.0, 3.0]] * 2), frequencies=torch.tensor([torch.pi / 2]))
    assert_close(quarter, torch.tensor([[2.0, 3.0], [-3.0, 2.0]]))


def test_rotary_is_the_rotation_matrix_row_by_row():
    x = torch.randn(B, H, N, D_K, dtype=torch.float64)
    by_matrix = torch.stack([x[..., i, :] @ rotation(i + 5, D_K, dtype=torch.float64) for i in range(N)], -2)
    assert_close(rotary(x, 5), by_matrix, **EXACT)
    assert_close(
        rotary(x, 5), rotary(torch.cat([torch.zeros(B, H, 5, D_K, dtype=x.dtype), x], -2))[..., 5:, :]
    )


def test_both_pairings_are_equal_up_to_a_permutation():
    x = torch.randn(N, D_K)
    columns = torch.cat([torch.arange(0, D_K, 2), torch.arange(1, D_K, 2)])
    assert_close(rotary(x[:, columns], pairing="half-split"), rotary(x)[:, columns])
    assert not torch.allclose(rotary(x, pairing="half-split"), rotary(x))


def shaw_with_rows():
    shaw = Shaw(D_K, radius=2, d_v=D_V)
    torch.nn.init.normal_(shaw.key_rows), torch.nn.init.normal_(shaw.value_rows)
    return shaw


def test_shaw_is_its_formula():
    shaw, q, k = shaw_with_rows(), torch.randn(B, H, N, D_K), torch.randn(B, H, N, D_K)
    v = torch.randn(B, H, N, D_V)
    index = (torch.arange(N) - torch.arange(N)[:, None]).clamp(-2, 2) + 2
    scores = (q[..., :, None, :] * (k[..., None, :, :] + shaw.key_rows[index])).sum(-1) / D_K**0.5
    assert_close(shaw(q, k), scores, atol=1e-5, rtol=1e-5)
    output, weights = attend(q, k, v, score=shaw)
    mixed = (weights[..., None] * (v[..., None, :, :] + shaw.value_rows[index])).sum(-2)
    assert_close(output + shaw.values(weights), mixed, atol=1e-5, rtol=1e-5)


def test_untrained_shaw_is_scaled_dot_and_every_row_gets_a_gradient():
    q, k = torch.randn(N, D_K), torch.randn(N, D_K)
    shaw = Shaw(D_K, radius=2)
    assert_close(shaw(q, k), q @ k.mT / D_K**0.5)
    output, weights = attend(q, k, k, score=shaw)
    (output + shaw.values(weights)).square().sum().backward()
    assert shaw.key_rows.grad.abs().sum(-1).gt(0).all()
    assert shaw.value_rows.grad.abs().sum(-1).gt(0).all()


def test_shaw_takes_queries_as_the_last_of_the_keys():
    shaw, q, k = shaw_with_rows(), torch.randn(N, D_K), torch.randn(N, D_K)
    assert_close(shaw(q[-2:], k), shaw(q, k)[-2:])


def test_learned_ends_where_its_table_ends():
    learned = Learned(N, D_V)
    assert_close(learned(3), learned.table[:3])
    assert learned(N).shape == (N, D_V)
    with pytest.raises(ValueError, match=f"{N} positions, and {N + 1} are asked for"):
        learned(N + 1)


def test_floater_follows_a_known_flow():
    floater = Floater(1, d_hidden=1, step=0.1).double()
    with torch.no_grad():  # dp/dt = t: p(t) = p(0) + t^2 / 2, which RK4 gets exactly
        floater.start.zero_()
        floater.flow = torch.nn.Linear(2, 1).double()
        floater.flow.weight.copy_(torch.tensor([[0.0, 1.0]]))
        floater.flow.bias.zero_()
    expected = (torch.arange(N, dtype=torch.float64) * 0.1).square() / 2
    assert_close(floater(N)[:, 0], expected, **EXACT)
    with torch.no_grad():  # dp/dt = p: exp, to the order of the rule
        floater.start.fill_(1.0)
        floater.flow.weight.copy_(torch.tensor([[1.0, 0.0]]))
    assert_close(floater(N)[:, 0], (torch.arange(N, dtype=torch.float64) * 0.1).exp(), atol=1e-6, rtol=0)


def test_floater_runs_at_any_length_and_learns():
    floater = Floater(5)
    assert floater(0).shape == (0, 5)
    assert_close(floater(3), floater(M)[:3])
    floater(M).square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in floater.parameters())


def test_alibi_by_hand():
    bias = alibi(3, 2)
    assert_close(bias[:, 0, 2], torch.tensor([-2 / 16, -2 / 256]))
    assert_close(bias, bias.mT)
    assert attend(
        torch.randn(B, 2, 3, D_K), *[torch.randn(B, 2, 3, D_K)] * 2, score_bias=bias[None]
    ).output.shape


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda: sinusoidal(3, 5), ValueError, "d must be even"),
        (lambda: sinusoidal(-1, 4), ValueError, "n must be a whole number >= 0"),
        (lambda: sinusoidal("3", 4), ValueError, "n must be a whole number"),
        (lambda: frequencies(4, base=0), ValueError, "base must be > 0"),
        (lambda: rotation(torch.ones(2), 4), ValueError, "delta must be one number"),
        (lambda: rotary(torch.ones(3, 5)), ValueError, "d must be even"),
        (lambda: rotary(torch.ones(3, 4), pairing="half"), ValueError, "pairing must be"),
        (lambda: rotary(torch.ones(3, 4), frequencies=torch.ones(4)), ValueError, "one per pair"),
        (lambda: rotary([1.0]), ValueError, "x must be a tensor"),
        (lambda: Learned(0, 4), ValueError, "n_max must be a whole number >= 1"),
        (lambda: Shaw(4, -1), ValueError, "radius must be a whole number >= 0"),
        (lambda: Shaw(4, 1)(torch.ones(2, 3), torch.ones(2, 3)), ValueError, "d_k=4"),
        (lambda: Floater(4, step=0), ValueError, "step must be > 0"),
        (lambda: alibi(3, 0), ValueError, "n_heads must be a whole number >= 1"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, error, said):
    with pytest.raises(error, match=said):
        call()
