"""Several heads: equal to torch's layer, one path for rotary, Shaw, windows and a cache, memory in proportion
to n, plain errors."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.device import device
from lesson_lib.heads import (
    Cache,
    MultiHeadAttention,
    ShawAttention,
    SinkAttention,
    masks_from_torch,
    merge_heads,
    split_heads,
)
from lesson_lib.masks import causal, padding
from lesson_lib.measure import growth_exponent, peak_mib
from lesson_lib.positions import Shaw, alibi, rotary
from lesson_lib.scores import soft_cap

B, H, N, M, D = 2, 3, 7, 11, 24
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def pair(**options):
    theirs = nn.MultiheadAttention(D, H, batch_first=True, **options).eval()
    for name, parameter in theirs.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)  # they start at 0, which would test nothing
    return theirs, MultiHeadAttention.from_torch(theirs)


def test_split_and_merge_by_hand():
    x = torch.arange(12.0).reshape(3, 4)
    heads = split_heads(x, 2)
    assert heads.tolist() == [[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]
    assert_close(merge_heads(heads), x)
    x = torch.randn(B, 5, N, 12)
    assert split_heads(x, 3).shape == (B, 5, 3, N, 4)
    assert_close(merge_heads(split_heads(x, 3)), x)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_equals_torch(bias, weights):
    theirs, ours = pair(bias=bias)
    query, source = torch.randn(B, N, D), torch.randn(B, M, D)
    for key in (query, source):
        expected, table = theirs(query, key, key, average_attn_weights=False)
        attended = ours(query, key, key, weights=weights)
        assert_close(attended.output, expected, **CLOSE)
        assert attended.weights is None if not weights else torch.allclose(attended.weights, table, atol=1e-5)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", ["causal", "padding", "both", "per head", "float"])
def test_equals_torch_under_its_masks(kind, weights):
    theirs, ours = pair()
    x = torch.randn(B, N, D)
    hidden = ~causal(N)
    filler = torch.tensor([[False] * N, [False] * 5 + [True] * 2])
    per_head = (torch.rand(B * H, N, N) < 0.3) & ~torch.eye(N, dtype=torch.bool)
    masks = {
        "causal": {"attn_mask": hidden},
        "padding": {"key_padding_mask": filler},
        "both": {"attn_mask": hidden, "key_padding_mask": filler},
        "per head": {"attn_mask": per_head, "key_padding_mask": filler & False},
        "float": {"attn_mask": torch.randn(N, N)},
    }[kind]
    expected, table = theirs(x, x, x, average_attn_weights=False, **masks)
    attended = ours(x, x, x, weights=weights, **masks_from_torch(**masks, n_heads=H))
    assert_close(attended.output, expected, **CLOSE)
    if weights:
        assert_close(attended.weights, table, **CLOSE)


def test_torchs_mask_means_the_opposite():
    assert torch.equal(masks_from_torch(~causal(N))["mask"], causal(N))
    lengths = torch.tensor([N, 5])
    assert torch.equal(masks_from_torch(None, ~padding(lengths, N)[:, 0])["mask"], padding(lengths, N))
    assert masks_from_torch() == {"mask": None, "score_bias": None}
    both = masks_from_torch(torch.zeros(N, N), torch.ones(B, N))
    assert both["mask"] is None
    assert both["score_bias"].shape == (B, N, N)


def test_a_row_that_sees_nothing_brings_only_the_bias():
    layer, x = MultiHeadAttention(D, H, bias=True), torch.randn(B, N, D, requires_grad=True)
    nn.init.normal_(layer.w_output.bias)
    mask = torch.ones(N, N, dtype=torch.bool)
    mask[4] = False
    attended = layer(x, x, x, mask=mask)
    assert_close(attended.output[:, 4], layer.w_output.bias.expand(B, D))
    attended.output.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("how", ["plain", "rotary", "shaw"])
def test_a_cache_gives_the_same_outputs_token_by_token(how):
    options = {
        "plain": {},
        "rotary": {"rotate": rotary},
        "shaw": {"attention": ShawAttention(Shaw(D // H, radius=2))},
    }[how]
    if how == "shaw":
        (
            nn.init.normal_(options["attention"].shaw.key_rows),
            nn.init.normal_(options["attention"].shaw.value_rows),
        )
    layer, x = MultiHeadAttention(D, H, **options), torch.randn(B, N, D)
    expected = layer(x, x, x, mask=causal(N)).output
    cache, outputs, seen = Cache(), [], 0
    for part in x.split([3, 1, 1, 2], dim=1):
        seen += part.shape[1]
        outputs.append(layer(part, part, part, cache=cache, mask=causal(seen)[-part.shape[1] :]).output)
    assert len(cache) == N
    assert_close(torch.cat(outputs, 1), expected, **CLOSE)


def test_rotary_makes_the_weights_depend_on_offsets():
    layer, x = MultiHeadAttention(D, H, rotate=rotary), torch.randn(B, N, D)
    padded = torch.cat([torch.zeros(B, 4, D), x], 1)
    mask = torch.ones(N + 4, N + 4, dtype=torch.bool)
    mask[:, :4] = False
    moved = layer(padded, padded, padded, mask=mask).weights[..., 4:, 4:]
    assert_close(moved, layer(x, x, x).weights, **CLOSE)


def test_shaws_two_terms():
    shaw = Shaw(D // H, radius=2)
    nn.init.normal_(shaw.key_rows), nn.init.normal_(shaw.value_rows)
    layer, x = MultiHeadAttention(D, H, attention=ShawAttention(shaw)), torch.randn(B, N, D)
    q, k, v = (split_heads(p(x), H) for p in (layer.w_query, layer.w_key, layer.w_value))
    output, weights = attend(q, k, v, score=shaw)
    assert_close(layer(x, x, x).output, layer.w_output(merge_heads(output + shaw.values(weights))))
    assert layer(x, x, x, weights=False).weights is None
    assert {"attention.shaw.key_rows", "attention.shaw.value_rows"} <= set(layer.state_dict())


def test_weights_are_returned_and_not_stored():
    layer, x = MultiHeadAttention(D, H), torch.randn(B, N, D)
    before = set(vars(layer))
    layer(x, x, x)
    assert set(vars(layer)) == before
    assert_close(layer(x, x, x).weights.sum(-1), torch.ones(B, H, N))


def test_dropout_falls_in_training_only():
    layer, x = MultiHeadAttention(D, H, dropout=0.5), torch.randn(B, N, D)
    assert not torch.equal(layer(x, x, x).output, layer(x, x, x).output)
    layer.eval()
    assert torch.equal(layer(x, x, x).output, layer(x, x, x).output)


def test_memory_without_weights_grows_with_n():
    layer, sizes = MultiHeadAttention(64, 4).eval(), (256, 1024, 4096)
    inputs = {n: torch.randn(1, n, 64, device=device()) for n in sizes}
    with torch.no_grad():
        lean = [peak_mib(lambda n=n: layer(*[inputs[n]] * 3, weights=False)) for n in sizes]
        tables = [peak_mib(lambda n=n: layer(*[inputs[n]] * 3)) for n in sizes]
    assert growth_exponent(sizes, lean) < 1.2
    assert growth_exponent(sizes, tables) > 1.6


X = torch.randn(B, N, D)


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda layer: layer(None, X, X), TypeError, "query must be a tensor"),
        (lambda layer: layer(X, X[..., :5], X), ValueError, "key must have shape"),
        (lambda layer: layer(X, X, X.double()), ValueError, "convert one"),
        (lambda layer: layer(X, X, X, mask=torch.ones(1, 1, B, N, N).bool()), ValueError, "5 axes"),
        (lambda layer: layer(X, X, X, mask="causal"), TypeError, "mask must be a tensor"),
        (lambda layer: layer(X, X, X, mask=torch.ones(N, N)), TypeError, "mask must be boolean"),
        (lambda layer: MultiHeadAttention(D, 5), ValueError, "heads that fit"),
        (lambda layer: MultiHeadAttention(D, 0), ValueError, "n_heads must be"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads=4), ValueError,
         r"n_heads is 6, no multiple of n_key_heads = 4; heads that fit: \[1, 2, 3, 6\]"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads=12), ValueError, "no multiple of n_key_heads"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads=0), ValueError, "n_key_heads must be .* got 0"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads=-2), ValueError, "n_key_heads must be a whole"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads=True), ValueError, "n_key_heads must be .* True"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads=2.0), ValueError, "n_key_heads must be .* 2.0"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads="2"), ValueError, "n_key_heads must be .* '2'"),
        (lambda layer: MultiHeadAttention(D, 6, n_key_heads=[2]), ValueError, "n_key_heads must be a whole"),
        (lambda layer: MultiHeadAttention(D, H, rotate=3), TypeError, "rotate must be a function"),
        (lambda layer: MultiHeadAttention(D, H, attention=None), TypeError, "attention must be a function"),
        (lambda layer: MultiHeadAttention.from_torch(layer), TypeError, "torch.nn.MultiheadAttention"),
        (lambda layer: MultiHeadAttention.from_torch(nn.MultiheadAttention(D, H, kdim=5)), ValueError,
         "kdim = vdim"),
        (lambda layer: masks_from_torch(torch.ones(B * H, N, N).bool()), ValueError, "needs n_heads"),
        (lambda layer: masks_from_torch(torch.ones(N).bool()), ValueError, "attn_mask must have shape"),
        (lambda layer: masks_from_torch(None, torch.ones(N).bool()), ValueError, "key_padding_mask must"),
        (lambda layer: split_heads(X, 7), ValueError, "no multiple of n_heads"),
    ],
)  # fmt: skip
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, error, said):
    with pytest.raises(error, match=said):
        call(MultiHeadAttention(D, H))


def test_a_cache_of_another_batch_is_refused():
    layer, cache = MultiHeadAttention(D, H), Cache()
    layer(X, X, X, cache=cache)
    with pytest.raises(ValueError, match=r"start each batch with a new Cache"):
        layer(X[:1], X[:1], X[:1], cache=cache)


def test_taking_rows_of_a_cache():
    cache, rows = Cache(), torch.tensor([1, 1, 0])
    assert len(cache.take(rows)) == 0  # an empty one has nothing to take
    key, value = torch.randn(B, H, 5, 8), torch.randn(B, H, 5, 13)
    cache.append(key, value)
    taken = cache.take(rows)
    assert torch.equal(taken.key, key[rows]) and torch.equal(taken.value, value[rows])
    taken.append(torch.zeros(3, H, 2, 8), torch.zeros(3, H, 2, 13))
    assert (len(cache), len(taken)) == (5, 7)  # the first does not grow with it
    assert torch.equal(cache.key, key)


def test_a_cache_goes_on_where_its_rows_were_taken():
    layer, x, rows = MultiHeadAttention(D, H), torch.randn(B, N, D), torch.tensor([1, 0, 1])
    expected, cache = layer(x, x, x, mask=causal(N)).output, Cache()
    start, last = x[:, :-1], x[rows, -1:]
    layer(start, start, start, cache=cache, mask=causal(N - 1))
    assert_close(layer(last, last, last, cache=cache.take(rows)).output, expected[rows, -1:], **CLOSE)


def test_nothing_new_leaves_a_cache_as_it_is():
    layer, x, source, cache = MultiHeadAttention(D, H), torch.randn(B, N, D), torch.randn(B, M, D), Cache()
    expected = layer(x, source, source, cache=cache)
    key, value, nothing = cache.key, cache.value, source[:, :0]
    again = layer(x, nothing, nothing, cache=cache)
    assert cache.key is key and cache.value is value and len(cache) == M
    assert_close(again.output, expected.output)
    assert again.weights.shape == (B, H, N, M)
    with pytest.raises(ValueError, match="start each batch with a new Cache"):
        layer(x[:1], nothing[:1], nothing[:1], cache=cache)


# ---- heads that share their keys


def grouped(n_key_heads, **options):
    """A layer whose 6 heads share heads of keys and values, and the full layer whose keys and values repeat
    them, group by group."""
    shared = MultiHeadAttention(D, 6, n_key_heads=n_key_heads, **options)
    for name, parameter in shared.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    full, group = MultiHeadAttention(D, 6, **options), 6 // n_key_heads
    weights = shared.state_dict()
    for name in ("w_key", "w_value"):
        for key in [key for key in weights if key.startswith(name)]:
            heads = weights[key].unflatten(0, (n_key_heads, -1))
            weights[key] = heads.repeat_interleave(group, 0).flatten(0, 1)  # neighbours: 1 1 1 2 2 2
    full.load_state_dict(weights)
    return shared, full


def test_as_many_heads_of_keys_as_of_queries_change_nothing():
    torch.manual_seed(3)
    plain = MultiHeadAttention(D, H, bias=True)
    torch.manual_seed(3)
    same = MultiHeadAttention(D, H, bias=True, n_key_heads=H)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), same.parameters(), strict=True))
    x = torch.randn(B, N, D)
    for weights in (False, True):
        for one, other in zip(plain(x, x, x, weights=weights), same(x, x, x, weights=weights), strict=True):
            assert one is other is None or torch.equal(one, other)
    assert plain.n_key_heads == same.n_key_heads == H


@pytest.mark.parametrize("n_key_heads", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"bias": True, "d_k": 5, "d_v": 7}, {"rotate": rotary}])
def test_shared_heads_are_a_full_layer_with_repeated_ones(n_key_heads, options):
    shared, full = grouped(n_key_heads, **options)
    query, source = torch.randn(B, N, D), torch.randn(B, M, D)
    for weights in (False, True):
        got, expected = (layer(query, source, source, weights=weights) for layer in (shared, full))
        assert_close(got.output, expected.output, **CLOSE)
        if weights:
            assert got.weights.shape == (B, 6, N, M)
            assert_close(got.weights, expected.weights, **CLOSE)


@pytest.mark.parametrize("n_key_heads", [1, 2, 3])
def test_gradients_of_shared_heads_are_sums_over_their_group(n_key_heads):
    shared, full = (layer.double() for layer in grouped(n_key_heads, bias=True))
    x, wanted = torch.randn(B, N, D, dtype=torch.float64), torch.randn(B, N, D, dtype=torch.float64)
    for layer in (shared, full):
        (layer(x, x, x, mask=causal(N)).output * wanted).sum().backward()
    for name, parameter in shared.named_parameters():
        expected = full.get_parameter(name).grad
        if name.startswith(("w_key", "w_value")):
            expected = expected.unflatten(0, (n_key_heads, 6 // n_key_heads, -1)).sum(1).flatten(0, 1)
        assert_close(parameter.grad, expected)


def test_each_group_of_neighbours_has_its_own_keys():
    """Heads 0, 1, 2 read the first head of keys; heads 3, 4, 5 the second. A zeroed head of keys leaves its
    group with equal weights."""
    layer, x = MultiHeadAttention(D, 6, n_key_heads=2), torch.randn(B, N, D)
    with torch.no_grad():
        layer.w_key.weight[: D // 6] = 0
    table = layer(x, x, x).weights
    assert_close(table[:, :3], torch.full((B, 3, N, N), 1 / N))
    assert (table[:, 3:] - 1 / N).abs().amax((-1, -2)).min() > 0.01


KINDS = {
    "plain": dict,
    "rotary": lambda: {"rotate": rotary},
    "norms": lambda: {"rotate": rotary, "query_norm": nn.RMSNorm(4), "key_norm": nn.RMSNorm(4)},
    "soft cap": lambda: {"attention": partial(attend, score=soft_cap(0.5))},
    "sinks": lambda: {"attention": SinkAttention(6), "rotate": rotary},
}


@pytest.mark.parametrize("pieces", [[1] * N, [3, 1, 1, 2], [5, 2]], ids=str)
@pytest.mark.parametrize("reach", [None, 1, 2, 5])
@pytest.mark.parametrize("n_key_heads", [1, 2, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_in_chunks_is_all_at_once(kind, n_key_heads, reach, pieces):
    """For every kind, every sharing, every window; a cache that rolls holds no more than its window needs."""
    layer = MultiHeadAttention(D, 6, n_key_heads=n_key_heads, **KINDS[kind]())
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x, cache, outputs = torch.randn(B, N, D), Cache(reach), []
    for part in x.split(pieces, dim=1):
        n = part.shape[1]
        mask = causal(len(cache) + n, queries=n, window=reach)
        outputs.append(layer(part, part, part, cache=cache, mask=mask).output)
        assert cache.seen == sum(y.shape[1] for y in outputs)
        assert len(cache) == (cache.seen if reach is None else min(cache.seen, reach - 1))
    whole = layer(x, x, x, mask=causal(N, window=reach)).output
    assert_close(torch.cat(outputs, 1), whole, atol=1e-4, rtol=1e-4)


def test_norms_see_each_head_before_it_is_turned():
    norms = nn.RMSNorm(D // H), nn.RMSNorm(D // H)
    for norm in norms:
        nn.init.normal_(norm.weight)
    layer = MultiHeadAttention(D, H, rotate=rotary, query_norm=norms[0], key_norm=norms[1])
    x = torch.randn(B, N, D)
    q, k, v = (split_heads(w(x), H) for w in (layer.w_query, layer.w_key, layer.w_value))
    exact = attend(rotary(norms[0](q)), rotary(norms[1](k)), v)
    assert_close(layer(x, x, x).weights, exact.weights, **CLOSE)
    turned_first = attend(norms[0](rotary(q)), norms[1](rotary(k)), v)
    assert not torch.allclose(turned_first.weights, exact.weights, atol=1e-3)
    assert {norm.weight for norm in norms} < set(layer.parameters())


def test_a_sink_takes_its_share_and_gives_nothing():
    """By hand: the softmax of the scores and one number more."""
    sinks, (q, k, v) = SinkAttention(H), torch.randn(3, B, H, N, 5)
    nn.init.normal_(sinks.sinks)
    scores = torch.cat((q @ k.mT / 5**0.5, sinks.sinks[:, None, None].expand(B, H, N, 1)), -1)
    by_hand = scores.softmax(-1)[..., :-1]
    output, weights = sinks(q, k, v)
    assert_close(weights, by_hand, **CLOSE)
    assert_close(output, by_hand @ v, **CLOSE)
    assert_close(sinks(q, k, v, weights=False).output, output, **CLOSE)
    nn.init.constant_(sinks.sinks, -1e9)
    assert_close(sinks(q, k, v, mask=causal(N)).output, attend(q, k, v, mask=causal(N)).output, **CLOSE)


def test_whoever_sees_the_sink_alone_gets_exactly_0():
    q, k, v = torch.randn(3, B, H, N, 5)
    mask = causal(N) & (torch.arange(N) > 0)  # nobody sees token 0, so it sees nothing
    bias = torch.randn(N, N)
    for weights in (True, False):
        output = SinkAttention(H)(q, k, v, mask=mask, score_bias=bias, weights=weights).output
        assert (output[..., 0, :] == 0).all() and torch.isfinite(output).all()


def test_a_sink_needs_its_head():
    with pytest.raises(ValueError, match="one head for each sink"):
        SinkAttention(2)(*torch.randn(3, B, H, N, 5))


def test_masks_of_every_rank_over_shared_heads():
    """A mask per head is one per head of queries."""
    shared, full = grouped(2)
    x = torch.randn(B, N, D)
    per_head = (torch.rand(B, 6, N, N) < 0.5) | torch.eye(N, dtype=torch.bool)
    for mask in (causal(N), per_head[:, 0], per_head, per_head[:, :1], padding(torch.tensor([N, 5]), N)):
        for weights in (False, True):
            got, expected = (layer(x, x, x, mask=mask, weights=weights).output for layer in (shared, full))
            assert_close(got, expected, **CLOSE)
    bias = alibi(N, 6)[None].expand(B, 6, N, N)
    assert_close(shared(x, x, x, score_bias=bias).weights, full(x, x, x, score_bias=bias).weights, **CLOSE)
    one = shared(x[0], x[0], x[0], mask=per_head[0]).output  # no batch
    assert_close(one, full(x[:1], x[:1], x[:1], mask=per_head[:1]).output[0], **CLOSE)


@pytest.mark.parametrize("n_key_heads", [1, 2, 3, 6, None])
def test_parameters_of_shared_heads_by_the_docstrings_formula(n_key_heads):
    h, k, d_k, d_v = 6, n_key_heads or 6, 5, 7
    for bias in (False, True):
        layer = MultiHeadAttention(D, h, n_key_heads=n_key_heads, d_k=d_k, d_v=d_v, bias=bias)
        expected = D * (h + k) * (d_k + d_v) + bias * (h * d_k + k * (d_k + d_v) + D)
        assert sum(p.numel() for p in layer.parameters()) == expected


@pytest.mark.parametrize("n_key_heads", [1, 2, 3])
@pytest.mark.parametrize("own", [False, True])
def test_one_new_token_of_shared_heads_is_the_last_of_many(n_key_heads, own):
    """A single query takes another way through the layer than several do: outputs, weights, gradients, with a
    table shared or per head."""
    layer = MultiHeadAttention(12, 6, n_key_heads=n_key_heads).double()
    x = torch.randn(2, 7, 12, dtype=torch.double, requires_grad=True)
    mask = torch.rand(2, 6, 7, 7) > 0.3 if own else torch.rand(7, 7) > 0.3
    bias = torch.randn(2, 6 if own else 1, 7, 7, dtype=torch.double)
    many = layer(x, x, x, mask=mask, score_bias=bias)
    one = layer(x[:, -1:], x, x, mask=mask[..., -1:, :], score_bias=bias[..., -1:, :])
    torch.testing.assert_close(one.output, many.output[:, -1:])
    torch.testing.assert_close(one.weights, many.weights[:, :, -1:])
    assert layer(x[:, -1:], x, x, weights=False).weights is None
    for got, want in zip(
        torch.autograd.grad(one.output.sum(), [x, *layer.parameters()], retain_graph=True),
        torch.autograd.grad(many.output[:, -1].sum(), [x, *layer.parameters()]),
        strict=True,
    ):
        torch.testing.assert_close(got, want)
