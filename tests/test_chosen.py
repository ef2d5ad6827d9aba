"""A learned choice of keys is a mask: the k best of the allowed keys, nothing of the future or of padding."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.checks import properties
from lesson_lib.chosen import Indexer, best_keys
from lesson_lib.masks import causal, padding
from lesson_lib.positions import rotary

B, H, N, M, D, D_V, D_MODEL, K = 2, 3, 7, 11, 5, 13, 17, 3


def randn(*shape, seed=0):
    generator = torch.Generator("cpu").manual_seed(seed)
    x = torch.randn(*shape, generator=generator, device="cpu", dtype=torch.float64)
    return x.to(torch.get_default_device())


@pytest.mark.parametrize("k", [1, K, M, 50])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_each_row_keeps_the_best_of_its_allowed_keys(k, share):
    scores = randn(B, N, M)
    mask = randn(B, N, M, seed=1).sigmoid() < share
    found = best_keys(scores, k, mask=mask)
    for row, may, kept in zip(scores.view(-1, M), mask.view(-1, M), found.view(-1, M), strict=True):
        allowed = sorted(may.nonzero().flatten().tolist(), key=lambda j: -row[j].item())
        assert kept.nonzero().flatten().tolist() == sorted(allowed[:k])


def test_equal_scores_never_keep_more_than_k_and_the_earlier_wins():
    assert best_keys(torch.zeros(N, M), K).int().tolist() == [[1] * K + [0] * (M - K)] * N
    half = torch.zeros(N, M, dtype=torch.bfloat16)
    assert (best_keys(half, K, mask=causal(M, queries=N)).sum(-1) == K).all()


@pytest.mark.parametrize("odd", [-torch.inf, torch.nan, -1e30, torch.finfo(torch.float32).min])
def test_an_allowed_key_of_the_lowest_score_still_comes_before_a_hidden_one(odd):
    scores, mask = torch.tensor([[odd, 9.0, 1.0]]), torch.tensor([[True, False, True]])
    assert best_keys(scores, 2, mask=mask).tolist() == [[True, False, True]]
    assert best_keys(scores, 1, mask=mask).tolist() == [[False, False, True]]


def test_no_queries_and_no_keys():
    assert best_keys(torch.zeros(0, M), K).shape == (0, M)
    assert best_keys(torch.zeros(N, 0), K).shape == (N, 0)


@pytest.mark.parametrize("k", [1, K, M])
def test_the_mask_is_the_gathered_keys_gradients_too(k):
    """Attending to k gathered keys and values, once for each query."""
    q, key, v = (
        x.requires_grad_() for x in (randn(B, N, D), randn(B, M, D, seed=1), randn(B, M, D_V, seed=2))
    )
    may = best_keys(randn(B, N, M, seed=3), k)
    where = may.nonzero()[:, -1].view(B, N, k)
    batch = torch.arange(B)[:, None, None]
    gathered = attend(q[:, :, None], key[batch, where], v[batch, where]).output[:, :, 0]
    masked = attend(q, key, v, mask=may).output
    assert_close(masked, gathered, atol=1e-12, rtol=1e-12)
    upstream = randn(B, N, D_V, seed=4)
    found, wanted = (torch.autograd.grad((y * upstream).sum(), (q, key, v)) for y in (masked, gathered))
    assert_close(found, wanted, atol=1e-12, rtol=1e-12)


def test_no_gradient_comes_through_the_choice():
    scores = randn(N, M).requires_grad_()
    assert not best_keys(scores, K).requires_grad


def indexer(**options):
    torch.manual_seed(0)
    return Indexer(D_MODEL, n_heads=H, width=4, **options).double()


def test_the_index_score_by_loops():
    index, x, y = indexer(), randn(N, D_MODEL), randn(M, D_MODEL, seed=1)
    found = index(x, y)
    for t in range(N):
        for s in range(M):
            query, weight = index.w_query(x[t]).view(H, 4), index.w_head(x[t])
            total = sum(weight[h] * (query[h] @ index.w_key(y[s])).relu() for h in range(H))
            assert_close(found[t, s], total)


@pytest.mark.parametrize("pairing", [None, "interleaved", "half-split"])
@pytest.mark.parametrize("pieces", [[1] * M, [4, 1, 6]])
def test_with_a_cache_as_without(pairing, pieces):
    index, x, (q, key, v) = indexer(pairing=pairing), randn(B, M, D_MODEL), randn(3, B, M, D, seed=1)
    whole = attend(q, key, v, mask=best_keys(index(x), K, mask=causal(M))).output
    done, end = [], 0
    for n in pieces:
        end += n
        new, known = slice(end - n, end), slice(0, end)
        may = best_keys(index(x[:, new], x[:, known]), K, mask=causal(end, queries=n))
        done.append(attend(q[:, new], key[:, known], v[:, known], mask=may).output)
    assert_close(torch.cat(done, 1), whole)


def test_with_padding_as_alone():
    index, x, (q, key, v) = indexer(), randn(B, M, D_MODEL), randn(3, B, M, D, seed=1)
    lengths = torch.tensor([M, 4])
    x[1, 4:] *= 1e3  # what stands there is loud
    may = best_keys(index(x), K, mask=causal(M) & padding(lengths, M))
    together = attend(q, key, v, mask=may).output
    for b, n in enumerate(lengths.tolist()):
        alone = best_keys(index(x[b, :n]), K, mask=causal(n))
        assert_close(together[b, :n], attend(q[b, :n], key[b, :n], v[b, :n], mask=alone).output)


def test_the_pairings_are_the_same_up_to_the_order_of_columns():
    half, paired, x = indexer(pairing="half-split"), indexer(pairing="interleaved"), randn(B, N, D_MODEL)
    assert not torch.allclose(half(x), paired(x))  # the same weights, read otherwise
    order = torch.tensor([0, 2, 1, 3])  # columns j and j + 2 stand side by side
    with torch.no_grad():
        paired.w_query.weight.copy_(half.w_query.weight.view(H, 4, -1)[:, order].flatten(0, 1))
        paired.w_key.weight.copy_(half.w_key.weight[order])
    assert_close(paired(x), half(x))
    q = rotary(half.w_query(x).view(B, N, H, 4).mT.mT.transpose(1, 2), pairing="half-split")
    scores = (q @ rotary(half.w_key(x), pairing="half-split").mT[:, None]).relu()
    assert_close((half.w_head(x).mT[..., None] * scores).sum(1), half(x))


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_k_is_a_whole_number(k, no_shape_hook):
    with pytest.raises(ValueError, match="k must be a whole number >= 1"):
        best_keys(torch.zeros(N, M), k)


def test_what_does_not_fit_is_named(no_shape_hook):
    with pytest.raises(TypeError, match="mask must be boolean"):
        best_keys(torch.zeros(N, M), K, mask=torch.ones(N, M))
    with pytest.raises(ValueError, match="mask"):
        best_keys(torch.zeros(N, M), K, mask=causal(N))
    with pytest.raises(TypeError, match="floating-point"):
        best_keys(torch.zeros(N, M, dtype=torch.long), K)
    with pytest.raises(ValueError, match=r"\(\.\.\., queries, keys\)"):
        best_keys(torch.zeros(M), K)
    with pytest.raises(ValueError, match="pairing must be one of"):
        Indexer(D_MODEL, pairing="halved")
    with pytest.raises(ValueError, match="width"):
        Indexer(D_MODEL, width=0)
    with pytest.raises(ValueError, match="d_model = 17"):
        Indexer(D_MODEL)(torch.zeros(N, D))


# What `properties` says of a choice: q . k is the index score here, and K of the earlier keys are chosen.


def right(q, key, v):
    may = causal(key.shape[-2], queries=q.shape[-2])
    return attend(q, key, v, mask=best_keys(q @ key.mT, K, mask=may))


def the_mask_comes_after(q, key, v):
    may = causal(key.shape[-2], queries=q.shape[-2])
    return attend(q, key, v, mask=best_keys(q @ key.mT, K) & may)


def rows_begin_at_the_first_key(q, key, v):
    may = torch.ones(q.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    return attend(q, key, v, mask=best_keys(q @ key.mT, K, mask=may))


def only_the_new_keys_are_indexed(q, key, v):
    n, m = q.shape[-2], key.shape[-2]
    may = causal(m, queries=n)
    may[:, : m - n] = False
    return attend(q, key, v, mask=best_keys(q @ key.mT, K, mask=may))


def a_block_pools_its_future(q, key, v, size=4):
    m = key.shape[-2]
    pad = (0, -m % size)
    scores = torch.nn.functional.pad(q @ key.mT, pad, value=-torch.inf).unflatten(-1, (-1, size)).amax(-1)
    may = causal(m, queries=q.shape[-2])
    some = torch.nn.functional.pad(may, pad).unflatten(-1, (-1, size)).any(-1)
    kept = best_keys(scores, 2, mask=some).repeat_interleave(size, -1)[..., :m] & may
    return attend(q, key, v, mask=kept)


@pytest.mark.parametrize(
    "function, name, words",
    [
        (the_mask_comes_after, "causality", "the future leaks"),
        (a_block_pools_its_future, "causality", "the future leaks"),
        (rows_begin_at_the_first_key, "one by one = all at once", "aligned with the first key"),
        (only_the_new_keys_are_indexed, "one by one = all at once", "does not count the tokens before it"),
    ],
)
def test_properties_name_the_bugs_of_a_choice(function, name, words):
    assert properties(right, causal=True).passed
    found = properties(function, causal=True)
    assert words in found.findings[name] and found.diagnosis == found.findings[name]


@pytest.mark.parametrize("k", [1, 3, 4])
def test_properties_name_a_mask_that_comes_after_the_choice(k):
    """At five of seven keys no row loses all of them; the future leaks all the same."""
    found = properties(lambda q, key, v, mask=None: attend(
        q, key, v, mask=best_keys(q @ key.mT, k) & (torch.tensor(True) if mask is None else mask)
    ))  # fmt: skip
    assert "chosen before; hide first" in found.diagnosis and "future leaks" in found.findings["causality"]
