"""The Transformer's blocks: torch's layers with copied weights are the referee; poison, caches, counts and
plain sentences."""

import inspect
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.testing import assert_close

from lesson_lib.blocks import (
    BatchNorm,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    TokenEmbedding,
    Transformer,
    standardize,
)
from lesson_lib.heads import ShawAttention, masks_from_torch
from lesson_lib.masks import causal, padding
from lesson_lib.positions import Learned, Shaw, rotary

B, H, N, M, D, INNER, WORDS = 3, 2, 7, 11, 26, 17, 19  # distinct primes; D is H heads of 13
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
PLACES = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])


def count(module):
    return sum(p.numel() for p in module.parameters())


def shaken(module):
    """The module with random norms and biases: at their start, 1 and 0, they would test nothing."""
    for name, parameter in module.named_parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=float("norm" in name and name.endswith("weight")), std=0.3)
    return module


def small(n_layers=2, **options):
    return shaken(Transformer(WORDS, n_layers, D, H, INNER, dropout=0.0, **options)).eval()


def words(*shape, high=WORDS):
    return torch.randint(high, shape)


# Norms


def test_standardize_by_hand():
    x = torch.tensor([[1.0, 2.0, 6.0], [7.0, 7.0, 7.0]])  # mean 3, squares 4 + 1 + 9, divided by 3
    assert_close(standardize(x, -1, eps=0.25)[0], torch.tensor([-2.0, -1.0, 3.0]) / math.sqrt(14 / 3 + 0.25))
    assert standardize(x, -1, eps=0.25)[1].tolist() == [0, 0, 0]
    assert_close(standardize(x, 0, eps=0.0)[:, 0], torch.tensor([-1.0, 1.0]))
    assert_close(standardize(x, (0, 1), eps=0.0).square().mean(), torch.tensor(1.0))


@pytest.mark.parametrize("eps", [1e-5, 1e-2])
@pytest.mark.parametrize("shape", [(D,), (N, D), (B, N, D)])
def test_layer_norm_equals_torch(shape, eps):
    theirs, ours = shaken(nn.LayerNorm(D, eps=eps)), LayerNorm(D, eps=eps)
    ours.load_state_dict(theirs.state_dict())
    x = 5 + 3 * torch.randn(shape)
    assert_close(ours(x), theirs(x), **CLOSE)
    assert_close(ours.eval()(x), theirs(x), **CLOSE)
    assert_close(ours(1e-4 * x), theirs(1e-4 * x), **CLOSE)  # here eps is what counts


@pytest.mark.parametrize("momentum", [0.1, 0.7])
@pytest.mark.parametrize("shape", [(B, D), (B, N, D), (1, N, D)], ids=str)
def test_batch_norm_equals_torch_in_training_and_after(shape, momentum):
    theirs, ours = shaken(nn.BatchNorm1d(D, momentum=momentum)), BatchNorm(D, momentum=momentum)
    ours.load_state_dict(theirs.state_dict(), strict=False)

    def torchs(x):  # torch wants the columns in the middle
        return theirs(x) if x.ndim == 2 else theirs(x.mT).mT

    for _ in range(3):
        x = 5 + 3 * torch.randn(shape)
        assert_close(ours(x), torchs(x), **CLOSE)
    assert_close(ours.running_mean, theirs.running_mean, **CLOSE)
    assert_close(ours.running_var, theirs.running_var, **CLOSE)
    ours.eval(), theirs.eval()
    assert_close(ours(x), torchs(x), **CLOSE)
    assert_close(ours(x[:1]), torchs(x[:1]), **CLOSE)  # one is enough now


def test_batch_norm_looks_at_its_neighbours_and_keeps_no_graph():
    norm, x = BatchNorm(D), torch.randn(B, N, D, requires_grad=True)
    poisoned = x.detach().clone()
    poisoned[2, 6] = 1e3
    assert not torch.allclose(norm(x)[0], norm(poisoned)[0])
    norm(x).square().sum().backward()
    assert not norm.running_mean.requires_grad and not norm.running_var.requires_grad
    norm.eval()
    assert torch.equal(norm(x)[0], norm(x[:1])[0])


# The feed-forward network


def test_feed_forward_is_two_convolutions_of_size_1():
    ffn, x = shaken(FeedForward(D, INNER)), torch.randn(B, N, D)
    first, second = nn.Conv1d(D, INNER, kernel_size=1), nn.Conv1d(INNER, D, kernel_size=1)
    with torch.no_grad():
        for conv, linear in ((first, ffn.w_in), (second, ffn.w_out)):
            conv.weight.copy_(linear.weight[..., None]), conv.bias.copy_(linear.bias)
    assert_close(ffn(x), second(first(x.mT).relu()).mT, **CLOSE)
    assert_close(ffn(x)[1, 4], ffn(x[1, 4]), **CLOSE)
    assert count(ffn) == 2 * D * INNER + INNER + D


def test_feed_forward_takes_another_activation():
    relu, gelu = FeedForward(D, INNER), FeedForward(D, INNER, activation=F.gelu)
    gelu.load_state_dict(relu.state_dict())
    x = torch.randn(N, D)
    assert_close(gelu(x), relu.w_out(F.gelu(relu.w_in(x))))
    assert not torch.allclose(gelu(x), relu(x))


# Layers, by hand and against torch's


def torch_masks(kind):
    filler = torch.tensor([[False] * N, [False] * 5 + [True] * 2, [False] * 2 + [True] * 5])
    diagonal = torch.eye(N, dtype=torch.bool)
    return {
        "none": {},
        "causal": {"attn_mask": ~causal(N)},
        "padding": {"key_padding_mask": filler},
        "both": {"attn_mask": ~causal(N), "key_padding_mask": filler},
        "per head": {"attn_mask": (torch.rand(B * H, N, N) < 0.3) & ~diagonal},
        "float": {"attn_mask": torch.randn(N, N)},
        "float padding": {"key_padding_mask": torch.randn(B, N)},
    }[kind]


def torch_encoder_layer(**options):
    return shaken(nn.TransformerEncoderLayer(D, H, INNER, **options)).eval()


@PLACES
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("kind", ["none", "causal", "padding", "both", "per head", "float", "float padding"])
def test_encoder_layer_equals_torch(norm_first, activation, batch_first, kind):
    theirs = torch_encoder_layer(
        norm_first=norm_first, activation=activation, batch_first=batch_first, layer_norm_eps=1e-3
    )
    ours, x, masks = EncoderLayer.from_torch(theirs), torch.randn(B, N, D), torch_masks(kind)
    given = x if batch_first else x.transpose(0, 1)
    expected = theirs(given, masks.get("attn_mask"), masks.get("key_padding_mask"))
    expected = expected if batch_first else expected.transpose(0, 1)
    inner = theirs.norm1(given) if norm_first else given
    table = theirs.self_attn(inner, inner, inner, average_attn_weights=False, **masks)[1]
    for weights in (False, True):
        made = ours(x, **masks_from_torch(**masks, n_heads=H), weights=weights)
        assert_close(made.output, expected, **CLOSE)
        assert (made.weights is not None) == weights
    assert_close(made.weights, table, **CLOSE)


@PLACES
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("kind", ["none", "causal", "padding", "both", "per head"])
def test_decoder_layer_equals_torch(norm_first, activation, batch_first, kind):
    theirs = shaken(
        nn.TransformerDecoderLayer(
            D, H, INNER, norm_first=norm_first, activation=activation, batch_first=batch_first
        )
    ).eval()
    ours, masks = DecoderLayer.from_torch(theirs), torch_masks(kind)
    x, memory = torch.randn(B, N, D), torch.randn(B, M, D)
    lengths = torch.tensor([M, 5, 2])
    given = (x, memory) if batch_first else (x.transpose(0, 1), memory.transpose(0, 1))
    expected = theirs(
        *given, masks.get("attn_mask"), tgt_key_padding_mask=masks.get("key_padding_mask"),
        memory_key_padding_mask=~padding(lengths, M)[:, 0],
    )  # fmt: skip
    expected = expected if batch_first else expected.transpose(0, 1)
    mask = masks_from_torch(**masks, n_heads=H)["mask"]
    for weights in (False, True):
        made = ours(x, memory, mask=mask, memory_mask=padding(lengths, M), weights=weights)
        assert_close(made.output, expected, **CLOSE)
    inner = given[0] if not norm_first else theirs.norm1(given[0])
    table = theirs.self_attn(inner, inner, inner, average_attn_weights=False, **masks)[1]
    assert_close(made.weights.own, table, **CLOSE)
    assert made.weights.cross[1, ..., 5:].count_nonzero() == 0


@PLACES
def test_stacks_equal_torchs_transformer(norm_first):
    theirs = shaken(nn.Transformer(D, H, 3, 2, INNER, dropout=0.0, norm_first=norm_first, batch_first=True))
    encoder = Encoder(3, D, H, INNER, norm_first=norm_first, bias=True)
    decoder = Decoder(2, D, H, INNER, norm_first=norm_first, bias=True)
    encoder.layers = nn.ModuleList(EncoderLayer.from_torch(layer) for layer in theirs.encoder.layers)
    decoder.layers = nn.ModuleList(DecoderLayer.from_torch(layer) for layer in theirs.decoder.layers)
    # torch has a last norm either way; we, as the paper, only with pre-norm
    encoder.norm, decoder.norm = theirs.encoder.norm, theirs.decoder.norm
    source, x = torch.randn(B, M, D), torch.randn(B, N, D)
    seen = padding(torch.tensor([M, 5, 2]), M)
    memory = encoder(source, mask=seen).output
    output = decoder(x, memory, mask=causal(N), memory_mask=seen).output
    hidden = {"src_key_padding_mask": ~seen[:, 0], "memory_key_padding_mask": ~seen[:, 0]}
    assert_close(output, theirs(source, x, tgt_mask=~causal(N), **hidden), **CLOSE)


def test_from_torch_copies_and_keeps_mode_and_type():
    theirs = torch_encoder_layer().double().train()
    ours = EncoderLayer.from_torch(theirs)
    assert ours.training and ours.feed_forward.w_in.weight.dtype == torch.float64
    assert ours.norms[1].weight.dtype == ours.attention.w_key.weight.dtype == torch.float64
    before = ours.norms[0].weight.clone()
    with torch.no_grad():
        theirs.norm1.weight.zero_(), theirs.linear1.weight.zero_()
    assert torch.equal(ours.norms[0].weight, before) and ours.feed_forward.w_in.weight.count_nonzero()
    assert not DecoderLayer.from_torch(nn.TransformerDecoderLayer(D, H, INNER).eval()).training


# Numbers of parameters


def test_parameters_of_the_base_model_by_formula_and_by_module():
    d, inner = 512, 2048
    with torch.device("meta"):
        encoder, decoder = EncoderLayer(), DecoderLayer()
        model, torchs = Transformer(37_000), nn.Transformer(d_model=d, nhead=8, dim_feedforward=inner)
    assert count(encoder) == 4 * d**2 + 2 * d * inner + inner + 5 * d == 3_150_336
    assert count(decoder) == 8 * d**2 + 2 * d * inner + inner + 7 * d == 4_199_936
    assert count(model.encoder) + count(model.decoder) == 6 * (3_150_336 + 4_199_936) == 44_101_632
    assert count(model.embedding) == 37_000 * d
    assert count(model) == 44_101_632 + 37_000 * d == 63_045_632
    biases, last_norms = 6 * (1 + 2) * 4 * d, 2 * 2 * d
    assert count(torchs) == 44_101_632 + biases + last_norms == 44_140_544
    assert (len(model.encoder.layers), model.encoder.layers[0].attention.n_heads) == (6, 8)


# Dropout


@PLACES
def test_dropout_falls_on_what_a_sublayer_adds(norm_first):
    """At p = 1 every addition is gone: the residual stream is what remains, and the norms."""
    x, memory = torch.randn(B, N, D), torch.randn(B, M, D)
    encoder = shaken(EncoderLayer(D, H, INNER, dropout=1.0, norm_first=norm_first))
    decoder = shaken(DecoderLayer(D, H, INNER, dropout=1.0, norm_first=norm_first))
    for layer, given in ((encoder, (x,)), (decoder, (x, memory))):
        made = layer(*given, weights=True)
        expected = x
        for norm in () if norm_first else layer.norms:
            expected = norm(expected)
        assert_close(made.output, expected)
        own = made.weights if layer is encoder else made.weights.own
        assert_close(own.sum(-1), torch.ones(B, H, N))  # no weight was dropped
        assert not torch.allclose(layer.eval()(*given).output, expected)


class DropoutCalls(TorchFunctionMode):
    """Shape and share of each dropout that happens, whoever calls for it."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is F.dropout:
            _, p, training, _ = inspect.signature(F.dropout).bind(*args, **kwargs).args
            self.seen += [(tuple(args[0].shape), p)] if training and p else []
        return func(*args, **kwargs)


def test_dropout_falls_in_the_published_places_and_in_no_other():
    model, source, before = Transformer(WORDS, 2, D, H, INNER, dropout=0.25), words(B, M), words(B, N)
    with DropoutCalls() as drops:
        model(source, None, before, weights=True)
    embeddings, sublayers = 1, 2  # per stack, and per encoder layer; a decoder layer has one sub-layer more
    assert drops.seen.count(((B, M, D), 0.25)) == embeddings + 2 * sublayers
    assert drops.seen.count(((B, N, D), 0.25)) == embeddings + 2 * (sublayers + 1)
    assert len(drops.seen) == 12
    model.eval()
    with DropoutCalls() as drops:
        once = model(source, None, before).logits
    assert not drops.seen
    assert torch.equal(once, model(source, None, before).logits)


# Embeddings


def test_token_embedding_by_hand():
    embedding = TokenEmbedding(3, 4, dropout=0.0)
    with torch.no_grad():
        embedding.table.copy_(torch.tensor([[0.0] * 4, [1.0, 2, 3, 4], [5.0, 0, 0, 0]]))
    x = embedding(torch.tensor([[0, 1]]))
    assert_close(x[0, 0], torch.tensor([0.0, 1, 0, 1]))  # sin 0 and cos 0
    moved = torch.tensor([math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)])
    assert_close(x[0, 1], 2 * torch.tensor([1.0, 2, 3, 4]) + moved)
    assert embedding.logits(torch.tensor([1.0, 1, 0, 0])).tolist() == [0, 3, 5]
    assert count(embedding) == 12


def test_token_embedding_starts_where_the_cache_ends():
    for positions in (None, Learned(M, D)):
        embedding, tokens = TokenEmbedding(WORDS, D, dropout=0.0, positions=positions), words(B, N)
        whole = embedding(tokens)
        assert_close(torch.cat([embedding(tokens[:, :3]), embedding(tokens[:, 3:], 3)], 1), whole)
    codes = whole - embedding.table[tokens] * D**0.5
    assert_close(codes[0], positions(N), **CLOSE)
    assert count(embedding) == WORDS * D + M * D


def test_one_table_for_input_output_and_logits():
    model = small()
    assert [name for name, p in model.named_parameters() if WORDS in p.shape] == ["embedding.table"]
    model(words(B, M), None, words(B, N, high=5)).logits[..., 17].sum().backward()
    assert model.embedding.table.grad[17].count_nonzero() == D


# Who can see what


@PLACES
def test_the_future_does_not_leak(norm_first):
    model, source, before = small(norm_first=norm_first), words(B, M), words(B, N)
    for weights in (False, True):
        poisoned = before.clone()
        poisoned[:, 4] = (poisoned[:, 4] + 1) % WORDS
        one = model(source, None, before, weights=weights).logits
        two = model(source, None, poisoned, weights=weights).logits
        assert torch.equal(one[:, :4], two[:, :4])
        assert not torch.isclose(one[:, 4:], two[:, 4:]).all(-1).any()


@PLACES
def test_padding_changes_nothing(norm_first):
    model, source, before = small(norm_first=norm_first), words(B, M), words(B, N)
    lengths = torch.tensor([M, 5, 2])
    expected = model(source, lengths, before).logits
    poisoned = source.clone()
    poisoned[1, 5:], poisoned[2, 2:] = 17, 13
    assert torch.equal(model(poisoned, lengths, before).logits, expected)
    alone = model(source[1:2, :5], None, before[1:2]).logits
    assert_close(alone[0], expected[1], **CLOSE)
    assert not torch.allclose(model(source, None, before).logits[1], expected[1], atol=1e-3)


@PLACES
@pytest.mark.parametrize("weights", [False, True])
def test_a_row_with_nothing_to_see_is_finite(norm_first, weights):
    x, memory = torch.randn(B, N, D, requires_grad=True), torch.randn(B, M, D, requires_grad=True)
    mask, nothing = causal(N), torch.zeros(1, M, dtype=torch.bool)
    mask[4] = False
    encoder = Encoder(2, D, H, INNER, norm_first=norm_first).eval()
    decoder = Decoder(2, D, H, INNER, norm_first=norm_first).eval()
    made = encoder(x, mask=mask, weights=weights).output
    out = decoder(x, memory, mask=mask, memory_mask=nothing, weights=weights).output
    (made.sum() + out.sum()).backward()
    assert made.isfinite().all() and out.isfinite().all()
    assert x.grad.isfinite().all() and memory.grad.count_nonzero() == 0
    # a token that sees nothing is only what its own residual stream and feed-forward network make of it
    layer = encoder.layers[0]
    y = x[:, 4] if norm_first else layer.norms[0](x[:, 4])
    rest = layer.feed_forward(layer.norms[1](y) if norm_first else y)
    expected = y + rest if norm_first else layer.norms[1](y + rest)
    assert_close(layer(x, mask=mask, weights=weights).output[:, 4], expected, **CLOSE)


@PLACES
def test_gradients_are_finite_and_reach_every_parameter(norm_first):
    model = small(norm_first=norm_first).train()
    logits = model(words(B, M), torch.tensor([M, 5, 1]), words(B, N)).logits
    F.cross_entropy(logits.flatten(0, 1), words(B * N)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.count_nonzero() > 0, name


# Stacks


@PLACES
def test_stacks_are_their_layers_one_after_the_other(norm_first):
    encoder = shaken(Encoder(3, D, H, INNER, norm_first=norm_first)).eval()
    decoder = shaken(Decoder(3, D, H, INNER, norm_first=norm_first)).eval()
    source, x = torch.randn(B, M, D), torch.randn(B, N, D)
    expected = [source]
    for layer in encoder.layers:
        expected.append(layer(expected[-1]).output)
    encoded = encoder(source, weights=True)
    assert_close(torch.stack(encoded.stream), torch.stack(expected))
    memory = encoder.norm(expected[-1]) if norm_first else expected[-1]
    assert_close(encoded.output, memory, **CLOSE)
    expected = [x]
    for layer in decoder.layers:
        expected.append(layer(expected[-1], memory, mask=causal(N)).output)
    decoded = decoder(x, memory, mask=causal(N), weights=True)
    assert_close(torch.stack(decoded.stream), torch.stack(expected), **CLOSE)
    assert isinstance(decoder.norm, LayerNorm if norm_first else nn.Identity)
    assert [t.shape for t in encoded.weights] == [(B, H, M, M)] * 3
    assert [t.cross.shape for t in decoded.weights] == [(B, H, N, M)] * 3
    plain = encoder(source)
    assert plain.weights is None and plain.stream is None
    assert_close(plain.output, encoded.output, **CLOSE)


def test_options_reach_every_layer():
    batch = Encoder(2, D, H, INNER, norm=BatchNorm, norm_first=True, activation=F.gelu, dropout=0.3)
    assert isinstance(batch.norm, BatchNorm)
    assert all(isinstance(norm, BatchNorm) for layer in batch.layers for norm in layer.norms)
    assert {layer.dropout.p for layer in batch.layers} == {0.3}
    assert {layer.feed_forward.activation for layer in batch.layers} == {F.gelu}
    decoder = Decoder(2, D, H, INNER, rotate=partial(rotary), bias=True)
    assert all(layer.attention.rotate and layer.cross_attention.rotate is None for layer in decoder.layers)
    assert all(layer.cross_attention.w_key.bias is not None for layer in decoder.layers)
    model = Transformer(WORDS, 2, D, H, INNER, dropout=0.4, norm_first=True)
    drops = [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
    assert drops == [0.4] * 5


def test_score_bias_reaches_the_scores():
    encoder, x, bias = Encoder(2, D, H, INNER).eval(), torch.randn(B, N, D), torch.zeros(N, N)
    bias[:, 3] = 1e4
    made = encoder(x, score_bias=bias, weights=True)
    assert_close(made.weights[1][..., 3], torch.ones(B, H, N))
    assert_close(encoder(x, score_bias=bias).output, made.output, **CLOSE)


# Caches


@PLACES
@pytest.mark.parametrize("how", ["plain", "rotary", "shaw"])
@pytest.mark.parametrize("parts", [[1] * N, [3, 1, 1, 2], [N]], ids=str)
def test_an_encoder_with_caches_gives_the_same(norm_first, how, parts):
    options = {
        "plain": {},
        "rotary": {"rotate": lambda x, start: rotary(torch.cat([x, x[..., :1]], -1), start)[..., :-1]},
        "shaw": {"attention": ShawAttention(Shaw(D // H, radius=2))},
    }[how]
    encoder, x = Encoder(2, D, H, INNER, norm_first=norm_first, **options).eval(), torch.randn(B, N, D)
    expected, caches = encoder(x, mask=causal(N)).output, encoder.caches()
    outputs, seen = [], 0
    for part in x.split(parts, dim=1):
        seen += part.shape[1]
        mask = causal(seen)[-part.shape[1] :]
        outputs.append(encoder(part, mask=mask, caches=caches).output)
    assert_close(torch.cat(outputs, 1), expected, **CLOSE)
    assert [len(cache) for cache in caches] == [N, N]


@PLACES
@pytest.mark.parametrize("parts", [[1] * N, [3, 1, 1, 2], [N]], ids=str)
@pytest.mark.parametrize("weights", [False, True])
def test_step_by_step_equals_teacher_forcing(norm_first, parts, weights):
    model, source, before = small(norm_first=norm_first), words(B, M), words(B, N)
    lengths = torch.tensor([M, 5, 2])
    expected = model(source, lengths, before, weights=True)
    state, logits = model.start(source, lengths), []
    for part in before.split(parts, dim=1):
        made = model.step(part, state, weights=weights)
        logits.append(made.logits)
    assert_close(torch.cat(logits, 1), expected.logits, **CLOSE)
    assert made.encoder is None and (made.decoder is not None) == weights
    if weights:
        tables = made.decoder.weights[-1]
        assert_close(tables.own, expected.decoder.weights[-1].own[:, :, -parts[-1] :], **CLOSE)
        assert_close(tables.cross, expected.decoder.weights[-1].cross[:, :, -parts[-1] :], **CLOSE)


def test_keys_of_the_memory_are_computed_once():
    model, rows = small(), []
    cross = model.decoder.layers[1].cross_attention
    for w in (cross.w_key, cross.w_value):
        w.register_forward_hook(lambda _, given, made: rows.append(made.shape[1]))
    state = model.start(words(B, M), None)
    for _ in range(5):
        model.step(words(B, 1), state)
    assert rows == [M, M] + [0, 0] * 4
    assert [(len(own), len(cross)) for own, cross in state.caches] == [(5, M), (5, M)]


def test_the_source_is_encoded_once():
    model, calls = small(), []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    state = model.start(words(B, M), torch.tensor([M, 5, 2]))
    for _ in range(3):
        model.step(words(B, 1), state)
    assert len(calls) == 1


@pytest.mark.parametrize("padded", [False, True])
def test_a_state_can_be_taken_apart(padded):
    model, source, before = small(), words(B, M), words(B, N)
    lengths = torch.tensor([M, 5, 2]) if padded else None
    state = model.start(source, lengths)
    model.step(before[:, :3], state)
    rows = torch.tensor([2, 0, 2, 1])
    taken = state.take(rows)
    ends = words(4, 4)
    logits = torch.cat([model.step(ends[:, i : i + 1], taken).logits for i in range(4)], 1)
    longer = torch.cat([before[rows, :3], ends], 1)
    expected = model(source[rows], None if lengths is None else lengths[rows], longer).logits
    assert_close(logits, expected[:, 3:], **CLOSE)
    assert len(state.caches[0].own) == 3 and len(taken.caches[0].own) == 7  # the old state is as it was
    assert (taken.mask is None) == (not padded)


# Sentences


X = torch.randn(B, N, D, device="cpu")


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda: EncoderLayer(D, 3), ValueError, "d_model is 26, no multiple of n_heads = 3; heads that fit"),
        (lambda: DecoderLayer(D, 0), ValueError, "n_heads must be a whole number >= 1, got 0"),
        (lambda: EncoderLayer("26", H), ValueError, "must be a whole number >= 1, got '26'"),
        (lambda: EncoderLayer(D, H, 0), ValueError, "d_inner must be a whole number >= 1, got 0"),
        (lambda: Transformer(WORDS, 2, D, H, None), ValueError, "d_inner must be .* got None"),
        (lambda: EncoderLayer(D, H, INNER, dropout=1.5), ValueError, "dropout must be a number from 0 to 1"),
        (lambda: DecoderLayer(D, H, INNER, dropout=-0.1), ValueError, "dropout must be a number from 0 to 1"),
        (lambda: TokenEmbedding(WORDS, D, dropout=2), ValueError, "dropout must be a number from 0 to 1"),
        (lambda: Encoder(0, D, H, INNER), ValueError, "n_layers must be a whole number >= 1, got 0"),
        (lambda: Decoder(True, D, H, INNER), ValueError, "n_layers must be a whole number >= 1, got True"),
        (lambda: Transformer(0), ValueError, "n_tokens must be a whole number >= 1, got 0"),
        (lambda: LayerNorm(0), ValueError, "d_model must be a whole number >= 1, got 0"),
        (lambda: BatchNorm(2.0), ValueError, "d_model must be a whole number >= 1, got 2.0"),
        (lambda: BatchNorm(D)(X[:1, :1]), ValueError, "at least 2 tokens in a batch.*use more, call .eval"),
        (lambda: FeedForward(D, None), ValueError, "d_inner must be a whole number >= 1, got None"),
        (lambda: EncoderLayer(D, H, INNER, dropout=None), ValueError, "dropout must .* got None"),
        (lambda: LayerNorm(D)(X[..., :1]), ValueError, r"x must have shape \(..., 26\), got \(3, 7, 1\)"),
        (lambda: BatchNorm(D)(X[..., :1]), ValueError, "made with d_model=26"),
        (lambda: FeedForward(D, INNER)(None), TypeError, "x must be a tensor of floats .* got NoneType"),
        (lambda: LayerNorm(D)(X.long()), TypeError, "got torch.int64"),
        (lambda: EncoderLayer(D, H, INNER, norm_first=True)(None), TypeError, "x must be a tensor"),
        (lambda: TokenEmbedding(WORDS, D)(torch.ones(2, 3).bool()), TypeError, "got torch.bool"),
        (lambda: TokenEmbedding(WORDS, D)(words(N)), ValueError,
         r"tokens must have shape \(b, n\), got \(7,\)"),
        (lambda: small()([[1, 2]], None, words(1, N)), TypeError, "tokens must be .* got list"),
        (lambda: small()(words(1, M), None, None), TypeError, "tokens must be .* got NoneType"),
        (lambda: small().step([[1]], small().start(words(1, M), None)), TypeError,
         "tokens must be .* got list"),
        (lambda: EncoderLayer(D, H, INNER)(None), TypeError, "query must be a tensor, got NoneType"),
        (lambda: EncoderLayer(D, H, INNER)(X[..., :5]), ValueError,
         r"query must have shape \(..., tokens, 26\)"),
        (lambda: EncoderLayer(D, H, INNER)(X, mask=torch.ones(N, N)), TypeError, "mask must be boolean"),
        (lambda: DecoderLayer(D, H, INNER)(X, X[..., :5]), ValueError, "key must have shape"),
        (lambda: EncoderLayer.from_torch(nn.Linear(2, 3)), TypeError,
         "nn.TransformerEncoderLayer, got Linear"),
        (lambda: DecoderLayer.from_torch(nn.TransformerEncoderLayer(D, H, INNER)), TypeError,
         "nn.TransformerDecoderLayer, got TransformerEncoderLayer"),
        (lambda: EncoderLayer.from_torch(nn.TransformerEncoderLayer(D, H, INNER, bias=False)), ValueError,
         "bias=False cannot be taken over"),
        (lambda: TokenEmbedding(WORDS, D)([[1, 2]]), TypeError, "tokens must be a tensor of .* got list"),
        (lambda: TokenEmbedding(WORDS, D)(None), TypeError, "tokens must be a tensor .* got NoneType"),
        (lambda: TokenEmbedding(WORDS, D)(torch.ones(2, 3)), TypeError,
         r"got torch.float32; use .*\.long\(\)"),
        (lambda: TokenEmbedding(WORDS, D)(torch.tensor([[3, WORDS]])), ValueError,
         "tokens must be numbers from 0 to 18, got 3 to 19"),
        (lambda: TokenEmbedding(WORDS, D)(torch.tensor([[-1, 3]])), ValueError, "got -1 to 3"),
        (lambda: Transformer(WORDS, 1, D, H)(words(B, M), torch.ones(B), words(B, N)), TypeError,
         "lengths must"),
        (lambda: Transformer(WORDS, 1, D, H)(words(1, M), torch.tensor([12]), words(1, N)), ValueError,
         "between 0 and n = 11"),
    ],
)  # fmt: skip
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, error, said):
    with torch.device("cpu"), pytest.raises(error, match=said):
        call()


def test_caches_of_another_batch_are_refused():
    model = small()
    state = model.start(words(B, M), None)
    model.step(words(B, 1), state)
    with pytest.raises(ValueError, match=r"start each batch with a new Cache"):
        model.step(words(2, 1), state._replace(memory=state.memory[:2]))
