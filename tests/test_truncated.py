"""Truncated attention equals attention with a window for a mask, and never holds a table of n x n."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import Attended, attend
from lesson_lib.device import device
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal, padding, window
from lesson_lib.measure import growth_exponent, peak_mib
from lesson_lib.truncated import BLOCK, WindowAttention, attend_window

B, H, D_K, D_V = 2, 3, 5, 7


def qkv(n, *lead, dtype=torch.float32, d_v=D_V):
    """Queries, keys and values with those leading axes, drawn on the CPU."""
    generator = torch.Generator("cpu").manual_seed(n)
    return [
        torch.randn(*lead, n, d, generator=generator, device="cpu", dtype=torch.float32)
        .to(dtype)
        .to(torch.get_default_device())
        for d in (D_K, D_K, d_v)
    ]


def by_mask(q, k, v, radius, *, is_causal=False, real=None):
    """The same by the full table."""
    n = q.shape[-2]
    mask = window(n, radius)
    if is_causal:
        mask = mask & causal(n)
    if real is not None:
        mask = mask & real.reshape(len(q), *[1] * (q.ndim - 2), n)
    return attend(q, k, v, mask=mask).output


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("radius", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 50, 10_000])
@pytest.mark.parametrize("n", [1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1, 131])
def test_it_is_attention_with_a_window(n, radius, is_causal):
    q, k, v = qkv(n, B, H)
    got = attend_window(q, k, v, radius, causal=is_causal)
    assert_close(got, by_mask(q, k, v, radius, is_causal=is_causal), atol=1e-5, rtol=1e-5)


def test_three_hundred_draws_with_gradients_and_padding():
    """Any length, radius, kind of mask; forward to 1e-5, gradients too, in float64 to rounding."""
    draws = torch.Generator("cpu").manual_seed(0)

    def number(below):
        return int(torch.randint(below, (), generator=draws, device="cpu"))

    for case in range(300):
        n, radius, is_causal = 1 + number(200), number(120), bool(case % 2)
        q, k, v = (x.double().requires_grad_() for x in qkv(n, B))
        lengths = torch.tensor([number(n + 1), number(n + 1)])
        real = padding(lengths, n) if case % 3 == 0 else None
        got = attend_window(q, k, v, radius, causal=is_causal, padding=real)
        wanted = by_mask(q, k, v, radius, is_causal=is_causal, real=real)
        assert_close(got, wanted, atol=1e-12, rtol=1e-12, msg=f"n={n}, radius={radius}, causal={is_causal}")
        weigh = torch.randn_like(got)
        found = torch.autograd.grad((got * weigh).sum(), (q, k, v))
        assert_close(found, torch.autograd.grad((wanted * weigh).sum(), (q, k, v)), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 3, 2)])
def test_any_leading_axes(lead):
    q, k, v = qkv(71, *lead)
    assert_close(attend_window(q, k, v, 4), by_mask(q, k, v, 4), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [9, 200])
def test_half_precision_stays_half(dtype, n):
    q, k, v = qkv(n, B, H, dtype=dtype)
    got = attend_window(q, k, v, 6)
    assert got.dtype == dtype
    wanted = by_mask(q.float(), k.float(), v.float(), 6)
    assert_close(got.float(), wanted, atol=0.03, rtol=0.03)


@pytest.mark.parametrize("n", [8, 300])
def test_filler_is_never_read_and_gives_zero_where_nothing_else_is_near(n):
    q, k, v = qkv(n, B)
    lengths = torch.tensor([n // 2, 0])
    want = attend_window(q, k, v, 2, padding=padding(lengths, n))
    k, v = k.clone(), v.clone()
    for row, length in enumerate(lengths.tolist()):
        k[row, length:], v[row, length:] = 1e4, 1e4
    got = attend_window(q, k, v, 2, padding=padding(lengths, n))
    assert torch.equal(got, want)
    assert (got[1] == 0).all() and (got[0, n // 2 + 2 :] == 0).all() and (got[0, : n // 2 + 2] != 0).all()


def test_gradients_of_rows_that_see_nothing_are_finite():
    q, k, v = (x.requires_grad_() for x in qkv(100, B))
    output = attend_window(q, k, v, 3, padding=padding(torch.tensor([10, 0]), 100))
    for gradient in torch.autograd.grad(output.square().sum(), (q, k, v)):
        assert gradient.isfinite().all() and (gradient[1] == 0).all()


@pytest.mark.parametrize("backward", [False, True])
def test_memory_grows_with_n(backward):
    """Allocator peaks, exponent 1.00 +- 0.05 from 2,048 to 16,384 tokens, radius 64."""
    sizes = [2048, 4096, 8192, 16384]

    def peak(n):
        q, k, v = (x.requires_grad_(backward) for x in qkv(n, 1, 2, d_v=D_K))

        def call():
            with torch.set_grad_enabled(backward):
                y = attend_window(q, k, v, 64)
                if backward:
                    y.backward(torch.ones_like(y))

        return peak_mib(call)

    peaks = [peak(n) for n in sizes]
    assert growth_exponent(sizes, peaks) == pytest.approx(1.0, abs=0.05)
    assert peaks[-1] < 16384**2 * 4 / 2**20 / 10  # a tenth of one full table


@pytest.mark.parametrize("filled", [False, True], ids=["all real", "filler"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("n", [3, 131])
def test_window_attention_is_attend_with_a_window(n, is_causal, filled):
    """With weights and without; queries that see nothing among the filler too."""
    q, k, v = qkv(n, B, H)
    real = padding(torch.tensor([n // 2, n]), n) if filled else None
    mask = None if real is None else real[:, None]
    seen = window(n, 2) & causal(n) if is_causal else window(n, 2)
    wanted = attend(q, k, v, mask=seen if mask is None else seen & mask)
    attention = WindowAttention(2, causal=is_causal)
    got = attention(q, k, v, mask=mask)
    assert isinstance(got, Attended)
    assert_close(got, wanted, atol=1e-6, rtol=1e-5)
    output, weights = attention(q, k, v, mask=mask, weights=False)
    assert weights is None
    assert_close(output, wanted.output, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("filled", [False, True], ids=["all real", "filler"])
def test_layers_of_heads_with_a_window(filled, weights):
    """Inside MultiHeadAttention: as the same layer with a mask; gradients of its parameters too."""
    n, width = 71, 6
    layer = MultiHeadAttention(width, H, attention=WindowAttention(3)).double()
    x = qkv(n, B, d_v=width)[2].double()
    real = padding(torch.tensor([n, 17]), n) if filled else None
    seen = window(n, 3).expand(B, n, n) if real is None else window(n, 3) & real

    def both(**options):
        output, table = layer(x, x, x, **options)
        return output, table, torch.autograd.grad(output.square().sum(), layer.parameters())

    got = both(mask=real, weights=weights)
    layer.attention = attend
    output, table, gradients = both(mask=seen)
    assert_close(got[0], output, atol=1e-10, rtol=1e-10)
    assert_close(got[2], gradients, atol=1e-10, rtol=1e-10)
    assert (got[1] is None) if not weights else torch.allclose(got[1], table)


def test_a_layer_with_a_window_holds_no_table(most):
    n = 4096
    layer, x = MultiHeadAttention(4, 2, attention=WindowAttention(5)), torch.randn(1, n, 4)
    real = padding(torch.tensor([n - 100]), n)
    with torch.no_grad():
        booleans = n * n / 2**20
        assert peak_mib(lambda: layer(x, x, x, mask=real, weights=False)) < most(booleans / 4)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    "options, words",
    [
        ({"score_bias": torch.zeros(4, 4, device="cpu")}, "neither score_bias nor dropout"),
        ({"dropout": 0.1}, "neither score_bias nor dropout"),
        ({"mask": torch.ones(4, 4, dtype=torch.bool, device="cpu")},
         r"no mask but padding, .*\(batch, 1, n\), got \(4, 4\)"),
        ({"mask": torch.ones(4, dtype=torch.bool, device="cpu")},
         r"no mask but padding, .*\(batch, 1, n\), got \(4,\)"),
        ({"mask": [[True] * 4]}, "no mask but padding, .*got list"),
    ],
)  # fmt: skip
def test_window_attention_refuses_what_it_has_not(options, words, weights, no_shape_hook):
    options = {key: x.to(device()) if isinstance(x, torch.Tensor) else x for key, x in options.items()}
    with pytest.raises(ValueError, match=words):
        WindowAttention(1)(*qkv(4, 2), weights=weights, **options)


def test_window_attention_refuses_dropout_of_the_layer_around_it_only_in_training():
    layer = MultiHeadAttention(4, 2, dropout=0.1, attention=WindowAttention(1))
    x = torch.randn(1, 5, 4)
    with pytest.raises(ValueError, match="neither score_bias nor dropout"):
        layer(x, x, x)
    assert layer.eval()(x, x, x).output.isfinite().all()


@pytest.mark.parametrize("radius", [-1, 1.5, None, True, "2", [2]])
def test_a_radius_that_is_none_gets_a_sentence(radius, no_shape_hook):
    for call in (lambda: WindowAttention(radius), lambda: attend_window(*qkv(4), radius)):
        with pytest.raises(ValueError, match="radius must be a whole number >= 0"):
            call()


@pytest.mark.parametrize(
    "padding_, error, words",
    [
        ([True] * 4, TypeError, "padding must be a boolean tensor"),
        (torch.ones(2, 1, 4), TypeError, "padding must be a boolean tensor"),
        (torch.ones(2, 4, dtype=torch.bool), ValueError, r"shape \(batch, 1, n\) = \(2, 1, 4\)"),
        (torch.ones(3, 1, 4, dtype=torch.bool), ValueError, r"shape \(batch, 1, n\) = \(2, 1, 4\)"),
    ],
)
def test_padding_that_does_not_fit_gets_a_sentence(padding_, error, words, no_shape_hook):
    if isinstance(padding_, torch.Tensor):
        padding_ = padding_.to(torch.get_default_device())
    with pytest.raises(error, match=words):
        attend_window(*qkv(4, 2), 1, padding=padding_)


def test_padding_without_a_batch_and_other_tokens_get_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="for inputs with a batch axis"):
        attend_window(*qkv(4), 1, padding=torch.ones(1, 1, 4, dtype=torch.bool))
    q, k, v = qkv(4)
    with pytest.raises(ValueError, match="a query for each key, got 3 and 4"):
        attend_window(q[:3], k, v, 1)
