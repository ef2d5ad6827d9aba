"""The claims about the whole Transformer: one test each, named after its id.

Two modules of source S2 are rebuilt here, with its slips, as far as a claim is about them.
"""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.blocks import (
    BatchNorm,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    TokenEmbedding,
    Transformer,
)
from lesson_lib.chapters.c06_transformer.bert import Bert, changed
from lesson_lib.chapters.c06_transformer.experiments import norms
from lesson_lib.experiments import results
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal, window
from lesson_lib.positions import sinusoidal

B, N, M, D, WORDS = 3, 7, 11, 26, 19


def count(module):
    return sum(p.numel() for p in module.parameters())


def small(n_layers=2, **options):
    return Transformer(WORDS, n_layers, D, 2, 17, dropout=0.0, **options).eval()


def texts():
    return torch.randint(WORDS, (B, M)), torch.randint(WORDS, (B, N))


def test_transformer_1():
    """How many layers until the first token depends on the last? One, however far; with a window more, the
    farther the more."""

    def layers_needed(n, mask):
        for n_layers in range(1, n + 1):
            x = torch.randn(1, n, D, requires_grad=True)
            Encoder(n_layers, D, 2, 17).eval()(x, mask=mask).output[0, 0].square().sum().backward()
            if x.grad[0, -1].count_nonzero():
                return n_layers

    assert [layers_needed(n, None) for n in (2, 7, 31, 127)] == [1, 1, 1, 1]
    assert [layers_needed(n, window(n, 1)) for n in (2, 4, 7)] == [1, 3, 6]
    # every pair of one layer, not only the ends
    layer, x = EncoderLayer(D, 2, 17).eval(), torch.randn(N, D)
    jacobian = torch.autograd.functional.jacobian(lambda y: layer(y[None]).output[0], x)
    assert jacobian.abs().sum((1, 3)).min() > 0


def test_transformer_2():
    with torch.device("meta"):
        model, torchs = Transformer(37_000), nn.Transformer()  # all sizes are the defaults
        attention = count(SourceMultiHead(8, 512, 64, 64))  # with its norm

    def source_layer(d, inner, n_attentions):
        return n_attentions * attention + 2 * d * inner + inner + d + 2 * d

    layers = model.encoder.layers, model.decoder.layers
    assert [len(stack) for stack in layers] == [6, 6]
    assert [count(stack[0]) for stack in layers] == [3_150_336, 4_199_936]
    assert [source_layer(512, 2048, n) for n in (1, 2)] == [3_150_336, 4_199_936]
    assert count(model.encoder) + count(model.decoder) == 44_101_632
    assert count(torchs) == 44_140_544
    assert count(model) == 63_045_632  # the paper's table says 65 million
    # no source gives the inner width, and it is worth the most
    assert 4 * 512**2 / 3_150_336 < 0.34
    assert source_layer(512, 1024, 1) < 0.67 * source_layer(512, 2048, 1)


def test_transformer_3():
    layer, x = EncoderLayer(D, 2, 17, norm=partial(LayerNorm, eps=1e-6)).eval(), torch.randn(B, N, D)
    ffn, norm = layer.feed_forward, layer.norms[1]
    middle = layer.norms[0](x + layer.attention(x, x, x).output)
    as_printed = F.linear(
        F.relu(F.linear(middle, ffn.w_in.weight, ffn.w_in.bias)), ffn.w_out.weight, ffn.w_out.bias
    )
    as_printed = F.layer_norm(as_printed + middle, (D,), norm.weight, norm.bias, eps=1e-6)
    assert_close(layer(x).output, as_printed, atol=1e-5, rtol=1e-5)
    first, second = nn.Conv1d(D, 17, kernel_size=1), nn.Conv1d(17, D, kernel_size=1)
    with torch.no_grad():
        for conv, linear in ((first, ffn.w_in), (second, ffn.w_out)):
            conv.weight.copy_(linear.weight[..., None]), conv.bias.copy_(linear.bias)
    assert_close(second(first(x.mT).relu()).mT, ffn(x), atol=1e-5, rtol=1e-5)
    shuffled = torch.randperm(N)
    assert_close(ffn(x[:, shuffled]), ffn(x)[:, shuffled], atol=1e-5, rtol=1e-5)


def test_transformer_4():
    # the mean of a batch is off by 1 / sqrt(batch)
    numbers = torch.randn(20_000, 128, generator=torch.Generator("cpu").manual_seed(0), device="cpu")
    for batch in (2, 8, 32, 128):
        error = numbers[:, :batch].mean(1).square().mean().sqrt().item()
        assert error == pytest.approx(batch**-0.5, rel=0.03)
    # so what a token becomes differs from batch to batch, the more the smaller they are; not with LayerNorm
    spread = {}
    for size in (2, 128):
        torch.manual_seed(0)
        token = torch.randn(1, D)
        for norm in (BatchNorm(D), LayerNorm(D)):
            outputs = torch.stack([norm(torch.cat([token, torch.randn(size - 1, D)]))[0] for _ in range(50)])
            spread[type(norm), size] = outputs.std(0).mean().item()
    assert spread[BatchNorm, 2] > 5 * spread[BatchNorm, 128] > 0.1
    assert spread[LayerNorm, 2] < 1e-6 and spread[LayerNorm, 128] < 1e-6
    # a batch of one: an error for one vector, none for an image or a text, whose places are averaged too
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(5)(torch.randn(1, 5))
    with pytest.raises(ValueError, match="at least 2 tokens"):
        BatchNorm(5)(torch.randn(1, 5))
    assert nn.BatchNorm2d(5)(torch.randn(1, 5, 2, 3)).shape == (1, 5, 2, 3)
    assert_close(BatchNorm(D)(torch.randn(1, N, D)).mean((0, 1)), torch.zeros(D), atol=1e-5, rtol=0)
    # trained on very small batches BatchNorm is behind, on batches of 8 and 16 ahead, on every seed
    trained = norms.best(results("norms")["rows"], "batch", ("norm", "size"))
    for size, ahead, behind in ((2, "layer", "batch"), (8, "batch", "layer"), (16, "batch", "layer")):
        assert min(trained[ahead, size]) > max(trained[behind, size])
    # train and eval
    x, layer, batch = 3 + torch.randn(B, N, D), LayerNorm(D), BatchNorm(D)
    assert torch.equal(layer.train()(x), layer.eval()(x))
    assert not torch.allclose(batch.train()(x), batch.eval()(x), atol=0.1)
    assert not list(layer.buffers()) and len(list(batch.buffers())) == 2
    # a token by itself, not the whole sample
    assert_close(layer(x).mean(-1), torch.zeros(B, N), atol=1e-5, rtol=0)
    assert_close(layer(x)[1, 4], layer(x[1, 4]))


def test_transformer_5():
    layer, given = DecoderLayer(D, 2, 17).eval(), {}
    for name in ("w_query", "w_key", "w_value"):
        part = getattr(layer.cross_attention, name)
        part.register_forward_hook(lambda _, x, made, name=name: given.update({name: x[0]}))
    x, memory = torch.randn(B, N, D), torch.randn(B, M, D)
    made = layer(x, memory, mask=causal(N), weights=True)
    own = layer.norms[0](x + layer.attention(x, x, x, mask=causal(N)).output)
    assert_close(given["w_query"], own)  # the output of the decoder's own attention
    assert torch.equal(given["w_key"], memory) and torch.equal(given["w_value"], memory)
    assert made.weights.cross.shape == (B, 2, N, M)


def test_transformer_6():
    model, (source, before) = small(), texts()
    calls = []
    model.decoder.register_forward_hook(lambda *_: calls.append(1))
    at_once = model(source, None, before).logits
    assert len(calls) == 1
    state = model.start(source, None)
    one_by_one = torch.cat([model.step(before[:, i : i + 1], state).logits for i in range(N)], 1)
    assert len(calls) == 1 + N
    assert_close(one_by_one, at_once, atol=1e-5, rtol=1e-5)


class SourceAttention(nn.Module):
    """S2's ScaledDotProductAttention: dropout before the weights are returned."""

    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature, self.dropout = temperature, nn.Dropout(attn_dropout)

    def forward(self, q, k, v):
        weights = self.dropout(F.softmax(q / self.temperature @ k.mT, dim=-1))
        return weights @ v, weights


class SourceMultiHead(nn.Module):
    """S2's MultiHeadAttention: `dropout` does not reach `self.attention`."""

    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks = (nn.Linear(d_model, n_head * d_k, bias=False) for _ in range(2))
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.attention = SourceAttention(temperature=d_k**0.5)
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, x):
        q, k, v = (
            w(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2) for w in (self.w_qs, self.w_ks, self.w_vs)
        )
        mixed, weights = self.attention(q, k, v)
        return self.layer_norm(self.dropout(self.fc(mixed.transpose(1, 2).flatten(2))) + x), weights


def test_transformer_7():
    x = torch.randn(2, 64, 64)
    for dropout in (0.0, 0.5):
        block = SourceMultiHead(8, 64, 8, 8, dropout=dropout)
        assert [m.p for m in block.modules() if isinstance(m, nn.Dropout)] == [0.1, dropout]
        weights = block(x)[1]
        assert (weights == 0).float().mean().item() == pytest.approx(0.1, abs=0.01)
        sums = weights.sum(-1)
        assert sums.min() < 0.9 and sums.max() > 1.05  # they are returned after dropout
        assert_close(block.eval()(x)[1].sum(-1), torch.ones(2, 8, 64))
    assert not torch.equal(*(SourceMultiHead(8, 64, 8, 8, dropout=0.0)(x)[0] for _ in range(2)))
    # ours: the constructor's dropout governs, and an attention with dropout returns the weights before it
    layer = EncoderLayer(64, 8, 17, dropout=0.0)
    assert torch.equal(layer(x).output, layer(x).output)
    attention = MultiHeadAttention(64, 8, dropout=0.5)
    first, second = attention(x, x, x), attention(x, x, x)
    assert not torch.equal(first.output, second.output)
    assert_close(first.weights.sum(-1), torch.ones(2, 8, 64))


def test_transformer_8():
    # normalized_shape: trailing axes, not the input's size
    x = torch.randn(B, N, D)
    by_token, by_text = F.layer_norm(x, (D,)), F.layer_norm(x, (N, D))
    assert by_token.mean(-1).abs().max() < 1e-5 < by_text.mean(-1).abs().max()
    assert by_text.mean((1, 2)).abs().max() < 1e-5
    # eps stands under the root, and the variance divides by the count
    tiny, eps = 1e-4 * torch.randn(5, 512), 1e-5
    centred = tiny - tiny.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    expected = F.layer_norm(tiny, (512,), eps=eps)
    assert_close(expected, centred / (variance + eps).sqrt())
    assert not torch.allclose(expected, centred / (variance.sqrt() + eps), rtol=0.1)
    pair = torch.tensor([[1.0, 3.0]])
    assert_close(F.layer_norm(pair, (2,)), torch.tensor([[-1.0, 1.0]]), atol=1e-4, rtol=0)
    assert not torch.allclose(F.layer_norm(pair, (2,)), (pair - 2) / pair.std(), atol=0.1)
    # mean 0, but variance 1 only where the input's variance is large beside eps
    assert expected.mean(-1).abs().max() < 1e-6
    assert 0.0008 < expected.var(-1, correction=0).mean() < 0.0012
    assert 0.008 < F.layer_norm(tiny, (512,), eps=1e-6).var(-1, correction=0).mean() < 0.012  # S2's eps
    assert_close(F.layer_norm(tiny * 1e4, (512,)).var(-1, correction=0), torch.ones(5), atol=1e-3, rtol=0)


def test_transformer_9():
    x = 3 * torch.randn(B, N, D)
    ffn = FeedForward(D, 17)
    for norm_first, is_normal in ((False, True), (True, False)):
        layer = EncoderLayer(D, 2, 17, norm_first=norm_first).eval()
        layer.feed_forward.load_state_dict(ffn.state_dict())
        out = layer(x).output
        assert (out.var(-1, correction=0).sub(1).abs().max() < 0.01) == is_normal
        theirs = nn.TransformerEncoderLayer(D, 2, 17, norm_first=norm_first, batch_first=True).eval()
        assert_close(EncoderLayer.from_torch(theirs)(x).output, theirs(x), atol=1e-5, rtol=1e-5)
    # the default is the published one: residual first, norm last
    layer = EncoderLayer(D, 2, 17).eval()
    middle = layer.norms[0](x + layer.attention(x, x, x).output)
    assert_close(layer(x).output, layer.norms[1](middle + layer.feed_forward(middle)))


def test_transformer_10():
    embedding = TokenEmbedding(WORDS, D, dropout=0.0)
    tokens = torch.randint(WORDS, (B, N))
    assert_close(embedding(tokens), embedding.table[tokens] * math.sqrt(D) + sinusoidal(N, D))
    assert_close(embedding.logits(torch.eye(D)), embedding.table.T)
    model, (source, before) = small(), texts()
    assert [name for name, p in model.named_parameters() if WORDS in p.shape] == ["embedding.table"]
    start = model.embedding.table.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    F.cross_entropy(model(source, None, before).logits.flatten(0, 1), before.flatten()).backward()
    optimizer.step()
    assert (model.embedding.table - start).abs().max() > 1e-4  # learned with the model


def test_transformer_11():
    model, (source, before) = small(n_layers=3), texts()
    order, memories = [], []
    for kind, stack in (("e", model.encoder), ("d", model.decoder)):
        for i, layer in enumerate(stack.layers):
            layer.register_forward_hook(lambda *_, name=f"{kind}{i}": order.append(name))
    for layer in model.decoder.layers:
        layer.register_forward_pre_hook(lambda _, given: memories.append(given[1]))
    made = model(source, None, before, weights=True)
    assert order == ["e0", "e1", "e2", "d0", "d1", "d2"]
    assert all(memory is made.encoder.output for memory in memories) and len(memories) == 3
    assert torch.equal(made.encoder.output, made.encoder.stream[-1])
    # in pairs, decoder layer i with encoder layer i, it would be another machine
    x = model.embedding(before)
    for layer, memory in zip(model.decoder.layers, made.encoder.stream[1:], strict=True):
        x = layer(x, memory, mask=causal(N)).output
    assert not torch.allclose(x, made.decoder.output, atol=1e-2)


def test_transformer_12():
    model, (source, before) = small(), texts()
    made = model(source, None, before, weights=True)
    # the last token alone is not enough: all before it count
    last = model.embedding(before)[:, -1:]
    alone = model.embedding.logits(model.decoder(last, made.encoder.output).output)
    assert not torch.allclose(alone[:, -1], made.logits[:, -1], atol=1e-2)
    others = before.clone()
    others[:, 0] = (others[:, 0] + 1) % WORDS
    assert not torch.allclose(model(source, None, others).logits[:, -1], made.logits[:, -1], atol=1e-4)
    # as a query the newest is: one row, with keys of all so far
    state = model.start(source, None)
    for i in range(N):
        step = model.step(before[:, i : i + 1], state, weights=True)
    assert step.decoder.weights[0].own.shape == (B, 2, 1, N)
    assert_close(step.logits[:, -1], made.logits[:, -1], atol=1e-5, rtol=1e-5)
    # the stack's output is no distribution; after one more linear map and a softmax it is one
    out = made.decoder.output
    assert out.shape[-1] == D != WORDS and out.min() < 0
    shares = model.embedding.logits(out).softmax(-1)
    assert shares.shape == (B, N, WORDS) and shares.min() >= 0
    assert_close(shares.sum(-1), torch.ones(B, N))


def test_bert_1():
    model = Bert().eval()
    assert {name for name, _ in model.named_children()} == {"embedding", "encoder"}
    assert all(isinstance(layer, EncoderLayer) for layer in model.encoder.layers)
    # nothing else joins words: where all heads see only their own place, no word matters to another
    seen, lengths = torch.tensor([[5, 6, 7, 8, 9]]), torch.tensor([5])
    other = seen.clone()
    other[0, 4] = 10
    first, second = (model(words, lengths)[0, 0] for words in (seen, other))
    assert not torch.allclose(first, second)
    blind = ~torch.eye(5, dtype=torch.bool)[None]
    with changed(model, 0, blind=blind), changed(model, 1, blind=blind):
        first, second = (model(words, lengths)[0, 0] for words in (seen, other))
    assert torch.equal(first, second)
    # a small one learned: it guesses hidden test words better than counts of both neighbours do; stored,
    # three seeds
    trained = [row for row in results("bert")["rows"] if row["kind"] == "trained"]
    assert [row["seed"] for row in trained] == [0, 1, 2]
    for row in trained:
        guesses, agreement = row["guessed"], row["agreement"]
        for sight in ("nothing", "left", "both"):
            assert guesses["model"]["cross_entropy"] < guesses[sight]["cross_entropy"] - 0.1
            assert guesses["model"]["accuracy"] > guesses[sight]["accuracy"]
            assert agreement["model"]["all"] > agreement[sight]["all"] + 0.1
