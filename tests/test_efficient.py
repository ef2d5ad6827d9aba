"""Attention that costs less: tiles give attend's numbers without its table; mixtures and random features give
others, and say how near."""

import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.device import device
from lesson_lib.efficient import (
    LowRank,
    RandomFeatures,
    TableFree,
    attend_part,
    attend_tiles,
    gradients_part,
    merge,
)
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.linear import attend_linear
from lesson_lib.masks import causal
from lesson_lib.measure import growth_exponent, peak_mib

B, H, N, M, D_K, D_V = 2, 3, 13, 17, 5, 11


def draw(*shape, seed=0, dtype=torch.float32):
    """Normal numbers, the same on every device."""
    generator = torch.Generator("cpu").manual_seed(seed)
    numbers = torch.randn(*shape, generator=generator, device="cpu", dtype=torch.float64)
    return numbers.to(dtype).to(torch.get_default_device())


def qkv(n=N, m=M, lead=(B, H), dtype=torch.float32):
    return [
        draw(*lead, length, d, seed=i, dtype=dtype)
        for i, (length, d) in enumerate([(n, D_K), (m, D_K), (m, D_V)])
    ]


def with_gradients(form, inputs):
    """Output, and gradients of a sum of it that weighs every number differently."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    output = form(*inputs)
    return output, *torch.autograd.grad(
        (output * draw(*output.shape, seed=9, dtype=output.dtype)).sum(), inputs
    )


def by_table(n=None, m=None):
    """`attend`, with the causal mask where n is given."""
    mask = None if n is None else causal(n)
    return lambda q, k, v: attend(q, k, v, mask=mask).output


@pytest.mark.parametrize("dtype, close", [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("tile", [1, 7, 64, 1000])
@pytest.mark.parametrize(
    "n, m, is_causal",
    [
        (N, N, False), (N, N, True), (N, M, False), (M, 1, False), (1, 1, True), (131, 131, True),
        (67, 129, False),
    ],
)  # fmt: skip
def test_tiles_give_the_tables_numbers_and_gradients(n, m, is_causal, tile, dtype, close):
    if tile == 1 and n > M:
        n, m = n // 5, m // 5 if not is_causal else n // 5
    inputs = qkv(n, m, dtype=dtype)
    got = with_gradients(lambda *x: attend_tiles(*x, causal=is_causal, tile=tile), inputs)
    expected = with_gradients(by_table(n if is_causal else None), inputs)
    assert_close(got[0], expected[0], atol=close, rtol=close)
    for mine, theirs in zip(got[1:], expected[1:], strict=True):
        assert_close(mine, theirs, atol=5 * close, rtol=5 * close)


def test_leading_axes_broadcast():
    inputs = [draw(B, 1, N, D_K), draw(1, H, M, D_K, seed=1), draw(H, M, D_V, seed=2)]
    got = with_gradients(lambda *x: attend_tiles(*x, tile=7), inputs)
    for mine, theirs in zip(got, with_gradients(by_table(), inputs), strict=True):
        assert_close(mine, theirs, atol=5e-6, rtol=1e-5)
    assert got[0].shape == (B, H, N, D_V) and got[3].shape == (H, M, D_V)


@pytest.mark.parametrize("dtype, close", [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_half_precision_is_summed_in_float32(dtype, close):
    inputs = qkv(131, 131, lead=(B,), dtype=dtype)
    got = with_gradients(lambda *x: attend_tiles(*x, causal=True, tile=7), inputs)
    exact = with_gradients(by_table(131), [x.double() for x in inputs])
    assert {x.dtype for x in got} == {dtype}
    for mine, theirs in zip(got, exact, strict=True):
        assert_close(mine.double(), theirs, atol=close, rtol=4 * close)
    part = attend_part(*inputs)
    assert part.output.dtype == part.log_sum.dtype == torch.float32


def test_no_keys_at_all():
    got, *gradients = with_gradients(lambda *x: attend_tiles(*x, tile=4), qkv(N, 0))
    assert got.shape == (B, H, N, D_V) and got.count_nonzero() == 0
    assert all(x.isfinite().all() and x.count_nonzero() == 0 for x in gradients)
    part = attend_part(*qkv(N, 0))
    assert part.output.count_nonzero() == 0 and (part.log_sum == -torch.inf).all()


@pytest.mark.parametrize("tile", [1, 4, 64])
def test_huge_scores(tile):
    """Scores of about 1e4, as of 0: the largest is taken off before exp."""
    query, key, value = qkv(N, N)
    got = with_gradients(lambda *x: attend_tiles(*x, causal=True, tile=tile), [100 * query, 100 * key, value])
    scores = 1e4 * (query.double() @ key.double().mT) / D_K**0.5
    assert scores.abs().max() > 1e4
    weights = scores.masked_fill(~causal(N), -torch.inf).softmax(-1)
    assert_close(got[0].double(), weights @ value.double(), atol=1e-3, rtol=1e-3)
    assert all(x.isfinite().all() for x in got)


@pytest.mark.parametrize("place", [0, 6, N - 1])
def test_a_score_of_minus_1e30_hides_a_poison(place):
    """A mask of "only" -1e4 would let it through; here the score is in the keys, and the value is huge."""
    query, key, value = qkv(N, N, lead=())
    query[:, 0], key[:, 0] = 1.0, 0.0
    key[place], value[place] = 0.0, 1e9
    key[place, 0] = -1e30 * D_K**0.5
    rest = [i for i in range(N) if i != place]
    for tile in (1, 4, 64):
        got = with_gradients(lambda *x, tile=tile: attend_tiles(*x, tile=tile), [query, key, value])
        without = with_gradients(by_table(), [query, key[rest], value[rest]])
        assert_close(got[0], without[0], atol=1e-6, rtol=1e-6)
        assert_close(got[3][rest], without[3], atol=1e-5, rtol=1e-5)
        assert got[3][place].count_nonzero() == 0 and all(x.isfinite().all() for x in got)


def test_nothing_is_changed_and_nothing_is_differentiated_twice():
    inputs = qkv(N, N)
    before = [x.clone() for x in inputs]
    _, *gradients = with_gradients(lambda *x: attend_tiles(*x, tile=4), inputs)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True)) and len(gradients) == 3
    query = inputs[0].requires_grad_()
    (once,) = torch.autograd.grad(attend_tiles(*inputs).square().sum(), query, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        once.sum().backward()


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "forward+backward"])
def test_memory_grows_with_n_and_attends_with_its_square(backward, most):
    """From n to 2 n and from there to 4 n: what is added doubles, or grows fourfold. What a single tile
    takes, whatever n is, falls out."""
    d, on_cpu = 64, device().type == "cpu"
    sizes = (64, 128, 256) if on_cpu else (512, 1024, 2048)  # a GPU gives memory in pieces

    def peak(form, n):
        inputs = [draw(n, d, seed=i).requires_grad_(backward) for i in range(3)]

        def call():
            output = form(*inputs)
            return torch.autograd.grad(output.sum(), inputs) if backward else output

        call()  # what a first call sets up is no part of it
        return peak_mib(call)

    def exponent(peaks):
        return growth_exponent((1, 2), (peaks[1] - peaks[0], peaks[2] - peaks[1]))

    tiled = [peak(lambda *x: attend_tiles(*x, causal=True, tile=32), n) for n in sizes]
    dense = [peak(by_table(), n) for n in sizes]
    assert 0.9 < exponent(tiled) < 1.1
    assert exponent(dense) > 1.75
    assert tiled[-1] < most(0.5 * dense[-1])


X, Y = torch.zeros(N, D_K, device="cpu"), torch.zeros(N, D_V, device="cpu")


@pytest.mark.parametrize(
    "query, key, value, options, error, said",
    [
        (None, X, Y, {}, TypeError, "query must be a tensor, got NoneType; make one"),
        ("x", X, Y, {}, TypeError, "query must be a tensor, got str"),
        (X, [[1.0]], Y, {}, TypeError, "key must be a tensor, got list"),
        (X[:, :4], X, Y, {}, ValueError, "query has width 4 and key 5"),
        (X, X, Y[:3], {}, ValueError, "key has 13 tokens and value 3"),
        (X[0], X, Y, {}, ValueError, r"query must have shape \(..., tokens, width\)"),
        (X.long(), X, Y, {}, TypeError, "query must hold floating-point numbers"),
        (X, X.double(), Y, {}, TypeError, r"key is torch.float64, but query is torch.float32; convert it"),
        (X[None].expand(2, -1, -1), X[None].expand(3, -1, -1), Y, {}, ValueError, "leading axes"),
        (X[:3], X, Y, {"causal": True}, ValueError, "a query for each key, got 3 and 13; leave causal out"),
        *(
            (X, X, Y, {"tile": t}, ValueError, "tile must be a whole number >= 1, got")
            for t in (0, -1, True, 2.0, None, "7")
        ),
    ],
)
def test_bad_input_gets_a_sentence(no_shape_hook, query, key, value, options, error, said):
    query, key, value = (
        x.to(torch.get_default_device()) if isinstance(x, torch.Tensor) else x for x in (query, key, value)
    )
    with pytest.raises(error, match=said):
        attend_tiles(query, key, value, **options)


# ---- parts, and putting them together


@pytest.mark.parametrize("ahead", [None, 0, 3, -1, -5, -N, -N - 4, 100])
@pytest.mark.parametrize("tile", [1, 4, 64])
def test_a_part_is_attention_to_the_keys_up_to_i_plus_ahead(ahead, tile):
    query, key, value = qkv(dtype=torch.float64)
    i, j = torch.arange(N)[:, None], torch.arange(M)
    mask = torch.ones(N, M, dtype=torch.bool) if ahead is None else j <= i + ahead
    part = attend_part(query, key, value, ahead=ahead, tile=tile)
    assert_close(part.output, attend(query, key, value, mask=mask).output)
    scores = (query @ key.mT * D_K**-0.5).masked_fill(~mask, -torch.inf)
    assert_close(part.log_sum, scores.logsumexp(-1))
    nothing = ~mask.any(-1)
    assert nothing.sum() == (0 if ahead is None else max(0, min(N, -ahead)))
    assert (part.log_sum[..., nothing] == -torch.inf).all() and part.output[
        ..., nothing, :
    ].count_nonzero() == 0


@pytest.mark.parametrize("cuts", [(0, 0), (0, M), (4, 4), (1, 16), (5, 11)])
def test_any_order_of_parts_is_the_whole(cuts):
    query, key, value = qkv(dtype=torch.float64)
    edges = [0, *cuts, M]
    a, b, c = (attend_part(query, key[..., s:e, :], value[..., s:e, :]) for s, e in itertools.pairwise(edges))
    whole = attend_part(query, key, value)
    for merged in (
        merge(merge(a, b), c),
        merge(a, merge(b, c)),
        merge(c, merge(a, b)),
        merge(merge(c, b), a),
    ):
        assert_close(merged.output, whole.output)
        assert_close(merged.log_sum, whole.log_sum)
    assert all(torch.equal(x, y) for x, y in zip(merge(a, b), merge(b, a), strict=True))


def test_a_part_without_keys_changes_nothing():
    query, key, value = qkv()
    nothing, part = attend_part(query, key[..., :0, :], value[..., :0, :]), attend_part(query, key, value)
    for merged in (merge(nothing, part), merge(part, nothing)):
        assert torch.equal(merged.output, part.output) and torch.equal(merged.log_sum, part.log_sum)
    both = merge(nothing, nothing)
    assert both.output.count_nonzero() == 0 and (both.log_sum == -torch.inf).all()


@pytest.mark.parametrize("size", [1e4, -1e4, 1e9, -1e30])
def test_parts_of_huge_scores_are_averaged(size):
    """All six scores equal, so large that the logarithm of a sum rounds to the score itself: the mean is
    still a mean."""
    query, key, value = torch.tensor([[size]]), torch.ones(6, 1), torch.arange(6.0)[:, None]
    merged = merge(attend_part(query, key[:3], value[:3]), attend_part(query, key[3:], value[3:]))
    assert_close(merged.output, torch.tensor([[2.5]]), atol=1e-3, rtol=0)


def test_gradients_of_parts_sum_to_the_whole():
    query, key, value = qkv(N, N, dtype=torch.float64)
    gradient = draw(B, H, N, D_V, seed=9, dtype=torch.float64)
    whole = merge(
        attend_part(query, key[..., :4, :], value[..., :4, :], ahead=0),
        attend_part(query, key[..., 4:, :], value[..., 4:, :], ahead=-4),
    )
    output, *expected = with_gradients(by_table(N), [query, key, value])
    assert_close(whole.output, output)
    first = gradients_part(query, key[..., :4, :], value[..., :4, :], whole, gradient, ahead=0, tile=3)
    second = gradients_part(query, key[..., 4:, :], value[..., 4:, :], whole, gradient, ahead=-4, tile=3)
    assert_close(first[0] + second[0], expected[0])
    for one, other, both in zip(first[1:], second[1:], expected[1:], strict=True):
        assert_close(torch.cat([one, other], -2), both)


# ---- LowRank


@pytest.mark.parametrize("m", [1, 7, M])
def test_shorter_sequences_use_the_first_columns_and_longer_ones_are_refused(m):
    layer, (query, key, value) = LowRank(M, 3), qkv(N, m)
    expected = attend(query, layer.mix_keys[:, :m] @ key, layer.mix_values[:, :m] @ value).output
    assert_close(layer(query, key, value), expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="mixes at most 17 keys, got 19; make it with n=19"):
        layer(*qkv(N, 19))


def test_parameters_and_their_gradients():
    own, shared = LowRank(M, 3), LowRank(M, 3, shared=True)
    assert sum(p.numel() for p in own.parameters()) == 2 * 3 * M
    assert sum(p.numel() for p in shared.parameters()) == 3 * M
    assert shared.mix_keys is shared.mix_values
    for layer in (own, shared):
        layer(*qkv()).square().sum().backward()
        assert all(p.grad.abs().min() > 0 for p in layer.parameters())
    assert not torch.equal(own.mix_keys, own.mix_values)
    with torch.no_grad():
        own.mix_keys.copy_(shared.mix_keys)
        own.mix_values.copy_(shared.mix_keys)
    assert_close(own(*qkv()), shared(*qkv()))


def test_a_mixture_of_independent_keys_is_as_long_as_a_key():
    lengths = (LowRank(997, 211).mix_keys @ draw(997, D_K)).square().mean()
    assert 0.8 < lengths.item() < 1.2


@pytest.mark.parametrize("wrong", [0, -1, True, 3.0, None, "3", [3]])
def test_odd_sizes_get_a_sentence(no_shape_hook, wrong):
    for make, name in [
        (lambda: LowRank(wrong, 3), "n"),
        (lambda: LowRank(3, wrong), "rank"),
        (lambda: RandomFeatures(wrong, 3), "d_k"),
        (lambda: RandomFeatures(3, wrong), "n_features"),
    ]:
        with pytest.raises(ValueError, match=rf"^{name} must be a whole number >= 1, got"):
            make()


# ---- RandomFeatures


def estimates(query, key, n_features, *, orthogonal, seeds):
    """phi(q) · phi(k) for each seed; (seeds, n, m)."""
    maps = (RandomFeatures(query.shape[-1], n_features, orthogonal=orthogonal, seed=seed) for seed in seeds)
    return torch.stack([phi(query) @ phi(key).mT for phi in maps])


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("n_features", [D_K, 3, 12])
def test_the_mean_over_draws_is_the_exponential(n_features, orthogonal):
    """Within 4 standard errors, for vectors that point to where all numbers are positive, negative, or mixed;
    and exact for opposite ones."""
    ones = torch.ones(1, D_K, dtype=torch.float64)
    query = torch.cat([0.6 * ones, -0.5 * ones, 0.5 * draw(3, D_K, seed=3, dtype=torch.float64)])
    key = torch.cat([0.6 * ones, -0.5 * ones, 0.5 * draw(2, D_K, seed=4, dtype=torch.float64)])
    found = estimates(query, key, n_features, orthogonal=orthogonal, seeds=range(1500))
    error = found.std(0) / 1500**0.5
    assert ((found.mean(0) - (query @ key.mT * D_K**-0.5).exp()).abs() < 4 * error).all()
    opposite = RandomFeatures(D_K, n_features, orthogonal=orthogonal)
    assert_close((opposite(query) * opposite(-query)).sum(-1), (-query.square().sum(-1) * D_K**-0.5).exp())


def test_orthogonal_directions_are_orthogonal_within_each_d_of_them():
    phi = RandomFeatures(D_K, 2 * D_K + 2, seed=7)
    rows = phi.directions
    assert rows.shape == (12, D_K)
    lengths = rows.norm(dim=-1)
    assert_close(lengths, RandomFeatures(D_K, 12, orthogonal=False, seed=7).directions.norm(dim=-1))
    unit = rows / lengths[:, None]
    for block in unit.split(D_K):
        assert_close(block @ block.mT, torch.eye(len(block)), atol=1e-5, rtol=0)
    assert (unit[:D_K] @ unit[D_K : 2 * D_K].mT).abs().max() > 0.1  # between blocks they are not


def test_features_by_hand():
    """exp(w y - y² / 2) / sqrt(2), y = x / 2 where d = 16 (its fourth root), in the first coordinate."""
    phi = RandomFeatures(16, 2)
    phi.directions.zero_()[:, 0] = torch.tensor([1.0, -2.0])
    x = torch.zeros(1, 16)
    x[0, 0] = 3.0
    expected = [math.exp(1.5 - 1.125) / 2**0.5, math.exp(-3 - 1.125) / 2**0.5]
    assert_close(phi(x), torch.tensor([expected]))
    assert_close(phi(torch.zeros(1, 16)), torch.full((1, 2), 0.5**0.5))


def test_features_are_positive_drawn_from_the_seed_and_not_trained():
    phi, same, other = (RandomFeatures(D_K, 7, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(phi.directions, same.directions) and not torch.equal(phi.directions, other.directions)
    assert phi(draw(B, H, N, D_K)).min() > 0 and phi(draw(B, H, N, D_K)).shape == (B, H, N, 7)
    assert not list(phi.parameters()) and list(phi.state_dict()) == ["directions"]
    torch.manual_seed(3)
    before = torch.rand(3)
    torch.manual_seed(3)
    RandomFeatures(D_K, 7)
    assert torch.equal(torch.rand(3), before), "torch's own generator is left alone"


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("n", [1, N, 131])
def test_linear_attention_with_random_features_is_their_table(n, is_causal):
    phi, inputs = RandomFeatures(D_K, 19), qkv(n, n, dtype=torch.float64)
    got = with_gradients(lambda *x: attend_linear(*x, causal=is_causal, phi=phi), inputs)

    def table(q, k, v):
        weights = phi(q) @ phi(k).mT
        weights = weights.tril() if is_causal else weights
        return weights / weights.sum(-1, keepdim=True) @ v

    for mine, theirs in zip(got, with_gradients(table, inputs), strict=True):
        assert_close(mine, theirs)


@pytest.mark.parametrize("length", [1e2, 1e4, 1e8, 1e15])
@pytest.mark.parametrize("is_causal", [False, True])
def test_very_long_vectors_stay_finite(length, is_causal):
    query, key, value = qkv(N, N)
    phi = RandomFeatures(D_K, 8)
    for scales in ((length, length), (length, 1), (1, length)):
        got = attend_linear(scales[0] * query, scales[1] * key, value, causal=is_causal, phi=phi)
        assert got.isfinite().all()


def test_the_largest_feature_is_bounded():
    """Along a direction, the exponent is half the direction's squared length; a product of two features times
    many stays in float32."""
    phi = RandomFeatures(2, 1)
    phi.directions.copy_(torch.tensor([[40.0, 0.0]]))
    x = torch.tensor([[40 * 2**0.25, 0.0]])
    assert_close(phi(x).log(), torch.tensor([[30.0]]))
    assert (1e6 * phi(x).square()).isfinite().all()


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda: RandomFeatures(D_K, 7)(draw(N, 4)), ValueError,
         r"x has width 4, but these features were drawn for 5; make RandomFeatures\(4"),
        (lambda: RandomFeatures(D_K, 7)(None), TypeError, "x must be a tensor, got NoneType"),
        (lambda: RandomFeatures(D_K, 7)([[1.0]]), TypeError, "x must be a tensor, got list"),
        (lambda: LowRank(N, 3)(draw(N, D_K), None, draw(N, D_V)), TypeError, "key must be a tensor"),
        (lambda: LowRank(N, 3)(draw(N, D_K), draw(N, 4), draw(N, D_V)), ValueError, "width 5 and key 4"),
        (lambda: LowRank(N, 3)(draw(N, D_K), draw(N, D_K).double(), draw(N, D_V)), TypeError,
         "key is torch.float64"),
        (lambda: TableFree(None), TypeError, "function must take query, key and value, got NoneType"),
        (lambda: TableFree([attend_linear]), TypeError, "function must take query, key and value, got list"),
    ],
)  # fmt: skip
def test_what_does_not_fit_gets_a_sentence(no_shape_hook, call, error, said):
    with pytest.raises(error, match=said):
        call()


# ---- TableFree


@pytest.mark.parametrize("n_key_heads", [None, 1])
def test_a_layer_without_a_table(n_key_heads):
    d, phi = 6 * D_K, RandomFeatures(D_K, 7)
    plain = MultiHeadAttention(
        d,
        6,
        n_key_heads=n_key_heads,
        attention=lambda *x, **o: attend(*x, score=lambda q, k: (phi(q) @ phi(k).mT).log(), **o),
    )
    free = MultiHeadAttention(
        d, 6, n_key_heads=n_key_heads, attention=TableFree(lambda *x: attend_linear(*x, phi=phi))
    )
    free.load_state_dict(plain.state_dict())
    x, source = draw(B, N, d), draw(B, M, d, seed=1)
    attended = free(x, source, source, weights=False)
    assert attended.weights is None
    assert_close(attended.output, plain(x, source, source).output, atol=1e-5, rtol=1e-5)


def test_learnt_mixtures_are_parameters_of_the_layer():
    layer = MultiHeadAttention(6 * D_K, 6, attention=TableFree(LowRank(N, 3)))
    assert {"attention.function.mix_keys", "attention.function.mix_values"} <= set(layer.state_dict())
    x = draw(B, N, 6 * D_K)
    layer(x, x, x, weights=False).output.sum().backward()
    assert layer.attention.function.mix_keys.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"mask": "causal"}, "so no mask; leave it out"),
        ({"score_bias": "zeros"}, "so no score_bias; "),
        ({"weights": True}, "so no weights; leave it out, or weights=False"),
        ({"mask": "causal", "weights": True}, "so no mask and no weights; "),
    ],
)
def test_what_needs_a_table_is_refused(asked, said):
    tables = {"causal": causal(N), "zeros": torch.zeros(N, N)}
    asked = {"weights": False} | {name: tables.get(value, value) for name, value in asked.items()}
    layer, x = MultiHeadAttention(6 * D_K, 6, attention=TableFree(attend_linear)), draw(B, N, 6 * D_K)
    with pytest.raises(ValueError, match=f"this attention has no table, {said}"):
        layer(x, x, x, **asked)


def test_dropout_is_refused_while_it_trains():
    layer = MultiHeadAttention(6 * D_K, 6, dropout=0.5, attention=TableFree(attend_linear))
    x = draw(B, N, 6 * D_K)
    with pytest.raises(ValueError, match="so no dropout"):
        layer(x, x, x, weights=False)
    assert layer.eval()(x, x, x, weights=False).output.isfinite().all()
