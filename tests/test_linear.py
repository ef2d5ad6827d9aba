"""Linear attention: one function in three forms, as a table, in chunks and as an RNN; and the softmax that
has no such state."""

import math

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.linear import CHUNK, SPAN, as_rnn, attend_linear, feature_map, step
from lesson_lib.masks import causal

B, H, N, M, D_K, D_V = 2, 3, 7, 13, 5, 11


def qkv(n=N, m=None, dtype=torch.float32):
    m = n if m is None else m
    return (
        torch.randn(B, H, n, D_K, dtype=dtype),
        torch.randn(B, H, m, D_K, dtype=dtype),
        torch.randn(B, H, m, D_V, dtype=dtype),
    )


def by_table(query, key, value, mask=None):
    """The same through `attend`: the softmax of the logarithm of the weights divides them by their sum."""
    return attend(
        query, key, value, mask=mask, score=lambda q, k: (feature_map(q) @ feature_map(k).mT).log()
    ).output


def test_phi_by_hand():
    x = torch.tensor([-1.0, 0.0, 0.5])
    assert_close(feature_map(x), torch.tensor([math.exp(-1), 1.0, 1.5]))


@pytest.mark.parametrize("n, m", [(N, M), (1, 1), (1, M), (N, 1)])
def test_it_is_attend_with_another_score(n, m):
    query, key, value = qkv(n, m)
    assert_close(attend_linear(query, key, value), by_table(query, key, value), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2, N, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5])
def test_chunks_loop_and_table_agree(n):
    query, key, value = qkv(n)
    chunked = attend_linear(query, key, value, causal=True)
    assert_close(chunked, by_table(query, key, value, causal(n)), atol=1e-5, rtol=1e-5)
    assert_close(chunked, as_rnn(query, key, value), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("form", [lambda q, k, v: attend_linear(q, k, v, causal=True), as_rnn])
def test_gradients_agree_with_the_table(form):
    n = CHUNK + 3
    inputs, reference = (tuple(x.requires_grad_() for x in qkv(n, dtype=torch.float64)) for _ in range(2))
    for x, y in zip(inputs, reference, strict=True):
        y.data.copy_(x.data)
    weights = torch.randn(B, H, n, D_V, dtype=torch.float64)
    (form(*inputs) * weights).sum().backward()
    (by_table(*reference, causal(n)) * weights).sum().backward()
    for x, y in zip(inputs, reference, strict=True):
        assert_close(x.grad, y.grad)


def test_the_state_is_all_that_is_kept_and_does_not_grow():
    query, key, value = qkv(N)
    state, sizes = None, set()
    for i in range(N):
        output, state = step(query[..., i, :], key[..., i, :], value[..., i, :], state)
        sizes.add((state.S.shape, state.z.shape))
    assert sizes == {((B, H, D_K, D_V), (B, H, D_K))}
    assert_close(output, attend_linear(query, key, value, causal=True)[..., -1, :], atol=1e-5, rtol=1e-5)


def test_memory_grows_with_n_and_not_with_its_square(monkeypatch):
    """The largest tensor that the causal form makes is a span's table of chunks, whatever n is: no table of n
    · n."""
    largest = {}
    for n in (512, 1024):
        sizes = []

        class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None, sizes=sizes):
                made = func(*args, **(kwargs or {}))
                sizes.append(made.numel() if isinstance(made, torch.Tensor) else 0)
                return made

        query, key, value = qkv(n)
        with Sizes():
            attend_linear(query, key, value, causal=True)
        largest[n] = max(sizes)
    assert largest[1024] == largest[512] == B * H * SPAN * CHUNK < B * H * 1024 * 1024


def test_very_negative_inputs_give_no_nan():
    query, key, value = qkv(N)
    for form in (attend_linear, as_rnn):
        assert form(query - 1000, key - 1000, value).isfinite().all()


def test_leading_axes_broadcast():
    query, key, value = qkv(N)
    shared = attend_linear(query, key[:, :1], value[:, :1], causal=True)
    expected = attend_linear(
        query, key[:, :1].expand(-1, H, -1, -1), value[:, :1].expand(-1, H, -1, -1), causal=True
    )
    assert_close(shared, expected)


def test_no_input_is_changed():
    inputs = qkv(N)
    before = [x.clone() for x in inputs]
    attend_linear(*inputs, causal=True)
    as_rnn(*inputs)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))


@pytest.mark.parametrize("form", [attend_linear, as_rnn])
@pytest.mark.parametrize(
    "query, kind, words",
    [
        (None, TypeError, "query must be a tensor, got NoneType"),
        ([[1.0]], TypeError, "query must be a tensor, got list"),
        (torch.zeros(N, 4), ValueError, "query has width 4 and key 5"),
        (torch.zeros(5), ValueError, r"query must have shape \(..., tokens, width\)"),
    ],
)
def test_bad_input_gets_a_sentence(no_shape_hook, form, query, kind, words):
    query = query.to(torch.get_default_device()) if isinstance(query, torch.Tensor) else query
    with pytest.raises(kind, match=words):
        form(query, torch.zeros(N, D_K), torch.zeros(N, D_V))


def test_causal_needs_a_query_for_each_key(no_shape_hook):
    query, key, value = qkv(N, M)
    with pytest.raises(ValueError, match=r"a causal layer needs a query for each key, got 7 and 13"):
        attend_linear(query, key, value, causal=True)
    with pytest.raises(ValueError, match="a query for each key"):
        as_rnn(query, key, value)


# ---- other features


def squares(x):
    """Twice as wide as x, never negative, a different formula from elu + 1."""
    return torch.cat([x.square(), (x + 1).square() + 0.1], -1)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("n", [1, N, CHUNK + 3, SPAN + 5])
def test_any_features_of_any_width_are_their_table(n, is_causal):
    inputs, reference = ([x.requires_grad_() for x in qkv(n, dtype=torch.float64)] for _ in range(2))
    for x, y in zip(inputs, reference, strict=True):
        y.data.copy_(x.data)
    got = attend_linear(*inputs, causal=is_causal, phi=squares)
    query, key, value = reference
    table = squares(query) @ squares(key).mT
    table = table.tril() if is_causal else table
    expected = table / table.sum(-1, keepdim=True) @ value
    assert_close(got, expected)
    weights = torch.randn(B, H, n, D_V, dtype=torch.float64)
    (got * weights).sum().backward()
    (expected * weights).sum().backward()
    for x, y in zip(inputs, reference, strict=True):
        assert_close(x.grad, y.grad)


@pytest.mark.parametrize("phi", [None, "elu", [feature_map], 1.0])
def test_features_that_are_no_function_get_a_sentence(no_shape_hook, phi):
    for is_causal in (False, True):
        with pytest.raises(
            TypeError, match=f"phi must be a function that makes features, got {type(phi).__name__}; e.g."
        ):
            attend_linear(*qkv(N), causal=is_causal, phi=phi)
