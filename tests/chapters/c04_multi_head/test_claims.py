"""The claims about several heads and their masks: one test each, named after its id."""

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c04_multi_head.experiments import two_relations
from lesson_lib.experiments import results
from lesson_lib.heads import MultiHeadAttention, merge_heads
from lesson_lib.masks import causal


def test_heads_1():
    """One head names one of the two tokens, two heads and one head with an MLP name both: stored, three
    seeds."""
    best = two_relations.best_rows(results("two_relations")["rows"])
    worse = {system: [] for system in two_relations.RECIPE["systems"]}
    for row in best:
        worse[row["system"]].append(min(row["one back"], row["three back"]))
    assert {len(shares) for shares in worse.values()} == {3}
    assert max(worse["1 head"]) < 0.25
    assert min(worse["2 heads"] + worse["4 heads"] + worse["8 heads"]) > 0.95
    assert min(worse["1 head + MLP"]) > 0.9


def test_heads_2():
    x, first, second = torch.randn(5, 12), torch.randn(12, 7), torch.randn(3, 7, 4)
    torch.testing.assert_close((x @ first) @ second, x @ (first @ second))


def test_heads_3():
    def numbers(n_heads, names):
        layer = MultiHeadAttention(512, n_heads)
        return sum(p.numel() for name, p in layer.named_parameters() if name.split(".")[0] in names)

    for n_heads in (1, 8):
        assert numbers(n_heads, ("w_query", "w_key", "w_value")) == 786_432
        assert numbers(n_heads, ("w_output",)) == 262_144


def test_heads_4():
    q, k, v = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 11)
    weights = attend(q, k, v).weights
    assert weights.shape == (2, 3, 5, 5)
    assert torch.equal(weights, attend(q, k, 2 * v).weights)
    assert not torch.allclose(weights, attend(q, 2 * k, v).weights)


def test_heads_5():
    x = torch.randn(5, 32)
    assert MultiHeadAttention(32, 3, d_k=7, d_v=11)(x, x, x).output.shape == (5, 32)
    q, k = torch.randn(100, 10, 1), torch.randn(100, 10, 1)
    assert max(len(set(row.tolist())) for row in attend(q, k, k).weights.argmax(-1)) <= 2


def test_heads_6():
    q, k, v = torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 2)
    torch.testing.assert_close(attend(q[:1], k[:1], v[:1]).output, v[:1])
    assert not torch.allclose(attend(q, k, v).output[:1], v[:1])


def test_heads_7():
    heads, blocks = torch.randn(3, 5, 4), torch.randn(3, 4, 12)
    summed = sum(head @ block for head, block in zip(heads, blocks, strict=True))
    torch.testing.assert_close(merge_heads(heads) @ blocks.reshape(12, 12), summed)


def test_heads_8():
    layer = MultiHeadAttention(24, 3, d_k=5, d_v=7)
    assert layer.w_output.in_features == 21
    query, source = torch.randn(2, 4, 24), torch.randn(2, 11, 24)
    assert layer(query, source, source).weights.shape == (2, 3, 4, 11)


def test_mask_3():
    def weights(n, n_heads):
        scores = torch.zeros(2, n_heads, n, n)
        return scores.masked_fill(~causal(n).unsqueeze(1), -torch.inf).softmax(-1)

    with pytest.raises(RuntimeError, match="must match"):
        weights(5, 4)
    assert weights(4, 4)[0, 3, 0, 1:].sum() == 0.75
    per_sequence = causal(4).expand(2, 4, 4)
    leak = torch.zeros(2, 4, 4, 4).masked_fill(~per_sequence.unsqueeze(1), -torch.inf).softmax(-1)
    assert leak[..., 0, 1:].sum() == 0
