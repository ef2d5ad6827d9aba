"""Files to carry away: each runs alone on what it names, and computes what the library computes."""

import ast
import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.testing import assert_close

from lesson_lib import efficient, linear, scalings
from lesson_lib import positions as library
from lesson_lib.attention import attend
from lesson_lib.blocks import Transformer
from lesson_lib.chapters.c06_transformer.experiments.translation import carried_names
from lesson_lib.chapters.c07_attention_vs_cnn.vit import VisionTransformer
from lesson_lib.chapters.c10_graph_attention import molecules
from lesson_lib.chapters.c10_graph_attention.real_graph import Fixed, balanced_accuracy
from lesson_lib.chosen import best_keys
from lesson_lib.delta import attend_delta
from lesson_lib.efficient import attend_tiles
from lesson_lib.graphs import GraphAttention
from lesson_lib.heads import MultiHeadAttention, SinkAttention
from lesson_lib.masks import causal, from_edges, padding, window
from lesson_lib.models.gpt import GPT
from lesson_lib.places import ROOT
from lesson_lib.truncated import attend_window
from tests import peers

FOLDER = ROOT / "notebooks" / "carry"
FILES = {  # name -> what it may import, its lines at most; in its __main__ what makes its training short
    "attention": ({"torch"}, 150, ("range(1, 801)", "range(1, 4)")),
    "transformer": ({"torch", "datetime", "math"}, 300, ("steps=800", "steps=3")),
    "positions": ({"torch", "math"}, 150, ("n, d = 18, 16", "n, d = 5, 16")),
    "vision": ({"torch", "sklearn"}, 200, ("steps=300", "steps=3")),
    "recurrent": ({"torch", "statistics", "time"}, 220, ("steps=400", "steps=3")),
    "long": ({"torch", "time"}, 200, ("(1024, 2048, 4096)", "(70, 300)")),
    "graphs": ({"torch"}, 200, ("steps=200", "steps=3")),
    "llm": (
        {"torch", "safetensors", "dataclasses", "json", "math", "pathlib", "sys", "tempfile", "tokenizers"},
        300,
        ("length=60", "length=9"),
    ),
}
B, H, N, M, D, D_V = 2, 3, 7, 5, 11, 13


def text_of(name: str) -> str:
    return Path(FOLDER, f"{name}.py").read_text(encoding="utf-8")


def carried(name: str):
    spec = importlib.util.spec_from_file_location(f"carried_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


attention, transformer, positions, vision, recurrent, long, graphs, llm = map(carried, FILES)


def test_each_file_is_known():
    assert set(FILES) == {path.stem for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", FILES)
def test_a_file_runs_alone(name, tmp_path):
    allowed, lines, (whole, short) = FILES[name]
    text = text_of(name)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = [n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in nodes]
    assert {module.partition(".")[0] for module in modules} <= allowed
    assert len(text.splitlines()) <= lines and text.count(whole) == 1
    start = "import sys\nsys.modules['lesson_lib'] = None  # cannot be imported\n"
    line = [sys.executable, "-I", "-c", start + text.replace(whole, short)]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def tensors(*shapes, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
    return [one.requires_grad_() for one in made]


def masks():
    generator = torch.Generator().manual_seed(1)
    some = torch.rand(B, H, N, M, generator=generator) < 0.6
    some[0, 1, 3] = False  # a query that may look at nothing
    return {
        "none": None,
        "some": some,
        "shared": some[0, 0],
        "padding": padding(torch.tensor([2, 4]), M)[:, None],
    }


@pytest.mark.parametrize("way", ["by hand", "fused"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", masks())
def test_attend_is_the_librarys(way, biased, kind):
    inputs = tensors((B, H, N, D), (B, H, M, D), (B, H, M, D_V))
    mask, bias = masks()[kind], tensors((1, H, N, M))[0].detach() if biased else None
    theirs = attend(*inputs, mask=mask, score_bias=bias)
    if way == "by hand":
        output, weights = attention.attend(*inputs, mask=mask, score_bias=bias)
        assert_close(weights, theirs.weights)
    else:
        output = attention.fused(*inputs, mask=mask, score_bias=bias)
    assert_close(output, theirs.output)
    grad = torch.randn(B, H, N, D_V, dtype=torch.float64)
    ours, wanted = (torch.autograd.grad(o, inputs, grad) for o in (output, theirs.output))
    assert all(one.isfinite().all() for one in ours)
    assert_close(ours, wanted)


def test_a_bias_of_minus_infinity_hides_too():
    inputs, mask = tensors((N, D), (M, D), (M, D_V)), masks()["some"][0, 1]
    bias = torch.zeros(N, M, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    wanted = attend(*inputs, mask=mask).output
    for output in (attention.attend(*inputs, score_bias=bias)[0], attention.fused(*inputs, score_bias=bias)):
        assert_close(output, wanted)


def test_half_precision_holds_long_vectors():
    query, value = torch.full((1, 1024), 8.0, dtype=torch.float16), torch.ones(2, 3, dtype=torch.float16)
    output, weights = attention.attend(query, torch.cat((query, query / 2)), value)
    assert weights.tolist() == [[1.0, 0.0]] and output.tolist() == [[1.0, 1.0, 1.0]]


def test_masks_are_the_librarys():
    for queries in (None, 0, 1, 3, 5):
        assert torch.equal(attention.causal(5, queries=queries), causal(5, queries=queries))
    lengths = torch.tensor([0, 2, 5])
    assert torch.equal(attention.padding(lengths, 5), padding(lengths, 5))


def test_in_chunks_as_at_once():
    q, k, v = tensors((B, N, D), (B, N, D), (B, N, D_V))
    whole, _ = attention.attend(q, k, v, mask=attention.causal(N))
    parts = [
        attention.attend(q[:, a:b], k[:, :b], v[:, :b], mask=attention.causal(b, queries=b - a))[0]
        for a, b in ((0, 3), (3, 4), (4, N))
    ]
    assert_close(torch.cat(parts, 1), whole)


def test_padded_as_alone():
    (x,) = tensors((B, N, 12))
    layer = attention.MultiHeadAttention(12, 3).double()
    whole, _ = layer(x, x, x, mask=attention.padding(torch.tensor([N, 4]), N))
    assert_close(whole[1:, :4], layer(x[1:, :4], x[1:, :4], x[1:, :4])[0])


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("shared", [None, 1, 2, 4])
def test_the_layer_is_the_librarys(shared, weights):
    theirs = MultiHeadAttention(12, 4, n_key_heads=shared, bias=True).double()
    layer = attention.MultiHeadAttention(12, 4, n_key_heads=shared, bias=True).double()
    layer.load_state_dict(theirs.state_dict())
    x, source = tensors((B, N, 12), (B, M, 12))
    generator = torch.Generator().manual_seed(2)
    for shape in ((N, M), (B, N, M), (B, 4, N, M)):
        options = {"mask": torch.rand(shape, generator=generator) < 0.7}
        options["score_bias"] = torch.randn(shape, generator=generator, dtype=torch.float64)
        output, table = layer(x, source, source, weights=weights, **options)
        wanted = theirs(x, source, source, **options)
        assert_close(output, wanted.output)
        if weights:
            assert_close(table, wanted.weights)
        else:
            assert table is None


def test_the_layer_is_torchs():
    theirs = torch.nn.MultiheadAttention(12, 3, batch_first=True, dropout=0.5).eval().double()
    layer = attention.MultiHeadAttention(12, 3, bias=True, dropout=0.5).eval().double()
    layer.load_state_dict(MultiHeadAttention.from_torch(theirs).state_dict())
    (x,) = tensors((B, N, 12))
    output, mean = theirs(x, x, x, attn_mask=~causal(N))  # in torch's layer True hides
    ours, weights = layer(x, x, x, mask=attention.causal(N))
    assert_close(ours, output)
    assert_close(weights.mean(1), mean)


def test_dropout_falls_on_weights_and_only_in_training():
    layer = attention.MultiHeadAttention(12, 3, dropout=0.5)
    x = torch.randn(B, N, 12)
    assert not torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])
    assert_close(layer(x, x, x)[1].sum(-1), torch.ones(B, 3, N))  # weights before dropout
    layer.eval()
    assert torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])


@pytest.mark.parametrize("sizes", [(12, 5, None), (12, 4, 3)])
def test_widths_that_do_not_fit_get_a_sentence(sizes):
    d_model, n_heads, shared = sizes
    with pytest.raises(ValueError, match="must divide"):
        attention.MultiHeadAttention(d_model, n_heads, n_key_heads=shared)


def test_influence_is_the_mask():
    x = torch.randn(B, N, D)
    hole = causal(N)
    hole[0, 1] = True  # token 0 looks at token 1, and at no other that comes later
    for mask in (hole, causal(N), torch.ones(N, N, dtype=torch.bool)):
        table = attention.influence(lambda x, mask=mask: attention.attend(x, x, x, mask=mask)[0], x)
        assert torch.equal(table > 1e-3, mask) and table[~mask].eq(0).all()


@pytest.mark.parametrize("beside", [False, True])
def test_a_part_finds_the_file_wherever_it_runs(tmp_path, beside):
    if beside:
        (tmp_path / "carry").mkdir()
        (tmp_path / "carry" / "attention.py").write_text(
            "attend = 'a learner changed it'\n", encoding="utf-8"
        )
    program = (
        "from lesson_lib.course import *\nfrom carry import attention\nprint(callable(attention.attend))"
    )
    line = [sys.executable, "-c", program]
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.stdout.split() == [str(not beside)], done.stderr


# transformer.py


def transformers(encoder=True, **options):
    """Ours and the library's, with the same random weights, in float64 and eval mode."""
    torch.manual_seed(3)
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2}
    ours = transformer.Transformer(17, encoder=encoder, **sizes, **options)
    if encoder:
        theirs = Transformer(17, 2, 12, 3, 48, dropout=0.0, norm_first=options.get("norm_first", True))
    else:
        theirs = GPT("abcdefghijklmnopq", context=64, positions="rotary", **sizes)
    state = {name: torch.randn_like(x) * 0.4 for name, x in carried_names(theirs.state_dict()).items()}
    ours.load_state_dict(
        state if encoder else {n.replace("encoder.", "decoder."): x for n, x in state.items()}
    )
    theirs.load_state_dict(dict(zip(theirs.state_dict(), state.values(), strict=True)))
    return ours.double().eval(), theirs.double().eval()


def texts(lengths, seed=0):
    """Tokens (b, n), padded on the right with 0."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, 17, (len(lengths), max(lengths)), generator=generator)
    return tokens.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], 0)


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_transformer_is_the_librarys(norm_first):
    ours, theirs = transformers(norm_first=norm_first)
    source, before = texts([7, 4]), texts([5, 5], seed=1)
    logits, wanted = ours(before, source), theirs(source, torch.tensor([7, 4]), before).logits
    assert_close(logits, wanted)
    logits.square().sum().backward()
    wanted.square().sum().backward()
    gradients = carried_names({name: parameter.grad for name, parameter in theirs.named_parameters()})
    for name, parameter in ours.named_parameters():
        assert_close(parameter.grad, gradients[name])


def test_the_decoder_alone_is_the_librarys_gpt():
    ours, theirs = transformers(encoder=False, rotary=True, activation=torch.nn.GELU)
    tokens = texts([9, 9])
    assert_close(ours(tokens), theirs(tokens))


@pytest.mark.parametrize("kind", ["sinusoids", "rotary", "post-norm", "decoder"])
def test_with_a_cache_as_without(kind):
    options = {"rotary": {"rotary": True}, "post-norm": {"norm_first": False}}.get(kind, {})
    torch.manual_seed(4)
    model = transformer.Transformer(17, encoder=kind != "decoder", **options).double().eval()
    source = None if kind == "decoder" else texts([7, 4])
    tokens, cache = texts([9, 9], seed=1), {}
    whole = model(tokens, source)
    memory = model.encode(source)
    parts = [model.decode(tokens[:, a:b], *memory, cache) for a, b in ((0, 4), (4, 5), (5, 9))]
    assert_close(torch.cat(parts, 1), whole)


def test_padding_changes_nothing():
    model, _ = transformers()
    source, target = texts([7, 4]), texts([6, 3], seed=1)
    logits = model(target, source)
    assert_close(logits[1:, :3], model(target[1:, :3], source[1:, :4]))
    each = [transformer.loss_of(model, target[i : i + 1, :n], source[i : i + 1, :m])
            for i, (n, m) in enumerate(((6, 7), (3, 4)))]  # fmt: skip
    assert_close(transformer.loss_of(model, target, source), (5 * each[0] + 2 * each[1]) / 7)


def test_it_does_not_read_ahead_and_the_test_sees_one_that_does():
    model, _ = transformers()
    source, target = texts([7]), texts([6], seed=1)
    assert transformer.reads_ahead(model, target, source).eq(0).all()

    def peeking(tokens, source):
        return model(tokens, source) + model(tokens, source).roll(-1, 1)

    assert (transformer.reads_ahead(peeking, target, source) > 0).tolist() == [False, *5 * [True]]


LOGITS = torch.tensor([[2.0, 0.0, 1.0, -1.0]])


@pytest.mark.parametrize(
    "options, kept",
    [
        ({}, [2, 0, 1, -1]),
        ({"temperature": 0.5}, [4, 0, 2, -2]),
        ({"temperature": 0}, [2, None, None, None]),
        ({"top_k": 2}, [2, None, 1, None]),
        ({"top_p": 0.6}, [2, None, None, None]),  # softmax gives .64, .09, .24, .03
        ({"top_p": 0.65}, [2, None, 1, None]),
        ({"top_p": 1.0}, [2, 0, 1, -1]),
        ({"top_k": 3, "top_p": 0.9}, [2, None, 1, None]),  # of the three, .67 and .24 have .91
    ],
)
def test_probabilities(options, kept):
    wanted = torch.tensor([[-torch.inf if logit is None else logit for logit in kept]], dtype=torch.float32)
    assert_close(transformer.probabilities(LOGITS, **options), wanted.softmax(-1))


def test_it_writes_as_it_would_without_a_cache():
    model, _ = transformers()
    source, tokens = texts([7, 4]), torch.ones(2, 1, dtype=torch.long)
    written = transformer.write(model, tokens, source, longest=8)
    for _ in range(8):
        tokens = torch.cat((tokens, model(tokens, source)[:, -1:].argmax(-1)), 1)
    ends = (tokens[:, 1:] == transformer.END).cumsum(1)
    wanted = tokens[:, 1:].masked_fill(ends - (tokens[:, 1:] == transformer.END).long() > 0, 0)
    assert torch.equal(written, wanted[:, : written.shape[1]])
    drawn = [
        transformer.write(
            model, tokens[:, :1], source, temperature=1, generator=torch.Generator().manual_seed(7)
        )
        for _ in range(2)
    ]
    assert torch.equal(*drawn)


class Chain:
    """A model of three tokens, 3 to 5, behind START: greedy takes 3 and ends at .36, 4 then END has .4."""

    def encode(self, source):
        return None, None

    def decode(self, tokens, memory, memory_mask, cache):
        after = {1: {3: 0.6, 4: 0.4}, 3: {2: 0.6, 5: 0.4}, 4: {2: 1.0}, 5: {2: 1.0}}
        p = torch.zeros(*tokens.shape, 6)
        for place in ((i, j) for i in range(len(tokens)) for j in range(tokens.shape[1])):
            for token, share in after.get(int(tokens[place]), {0: 1.0}).items():
                p[place][token] = share
        return p.log()


def test_a_beginning_with_padding_is_refused():
    model = transformer.Transformer(17, encoder=False, d_model=12, n_heads=3)
    with pytest.raises(ValueError, match="of one length"):
        transformer.write(model, torch.tensor([[3, 4, 5], [3, 0, 0]]))


@pytest.mark.parametrize("options", [{"top_p": 0.0}, {"top_k": 0}])
def test_the_likeliest_token_is_never_cut_off(options):
    p = transformer.probabilities(torch.tensor([[0.0, 2.0, 1.0]]), **options)
    assert p.tolist() == [[0.0, 1.0, 0.0]]


def test_a_beam_finds_the_likeliest_text():
    begin = torch.tensor([[1]])
    assert transformer.write(Chain(), begin).tolist() == [[3, 2]]
    written, total = transformer.beam(Chain(), begin, width=2)
    assert written[0].tolist() == [4, 2] and round(total[0].exp().item(), 3) == 0.4
    assert transformer.beam(Chain(), begin, width=1)[0].tolist() == [[3, 2]]


def test_a_beam_of_all_texts_is_the_best_of_all():
    """As wide as there are texts, in the real machine, with its cache."""
    model, _ = transformers()
    source, begin = texts([7]), torch.tensor([[1]])
    written, total = transformer.beam(model, begin, source, width=17**2, longest=2)
    scores = {}
    for first in range(17):
        for second in range(17) if first != transformer.END else [0]:
            logs = model(torch.tensor([[1, first]]), source).log_softmax(-1)[0]
            scores[first, second] = logs[0, first] + (0 if first == transformer.END else logs[1, second])
    best = max(scores, key=scores.get)
    assert tuple(written[0].tolist()) == best
    assert_close(total[0], scores[best], check_dtype=False)


@pytest.mark.parametrize("start", [0, 7])
@pytest.mark.parametrize("halves", [False, True])
def test_rotary_is_the_librarys_gradients_too(start, halves):
    (x,) = tensors((B, H, N, 16))
    pairing = "half-split" if halves else "interleaved"
    for turns in (None, library.frequencies(16) / 4):
        mine = positions.rotary(x, start, turns, halves=halves)
        theirs = library.rotary(x, start, pairing=pairing, frequencies=turns)
        assert_close(mine, theirs)
        grads = [
            torch.autograd.grad(one.square().flatten(0, -2)[:, ::3].sum(), x)[0] for one in (mine, theirs)
        ]
        assert_close(*grads)


def test_a_part_of_the_columns_turns():
    (x,) = tensors((N, 16))
    mine = positions.rotary(x, 3, part=0.25)
    assert_close(mine[:, :4], library.rotary(x[:, :4].contiguous(), 3))
    assert torch.equal(mine[:, 4:], x[:, 4:])


def test_angles_keep_their_bits_in_bfloat16():
    x = torch.ones(1, 4)
    mine = positions.rotary(x.bfloat16(), 1001)
    assert_close(mine.float(), positions.rotary(x, 1001), atol=0.02, rtol=0)


def test_codes_biases_and_stretched_frequencies_are_the_librarys():
    assert_close(positions.sinusoidal(N, 16), library.sinusoidal(N, 16))
    assert_close(positions.sinusoidal(N, 16, start=M), library.sinusoidal(N + M, 16)[M:])
    assert_close(positions.alibi(N, 8), library.alibi(N, 8))
    assert_close(positions.alibi(N, 8, n=2), library.alibi(N, 8)[:, -2:])
    assert_close(positions.linear(16, 4), scalings.linear(16, 4))
    assert_close(positions.ntk(16, 4), scalings.ntk(16, 4))
    assert_close(positions.yarn(64, 4, 512), scalings.yarn(64, 4, 512))
    assert_close(positions.llama3(64, 8, 512, fast=5), scalings.llama3(64, 8, 512, fast=5))
    table = torch.randn(N, D)
    assert torch.equal(positions.learned(table, 2, start=N - 2), table[-2:])
    with pytest.raises(ValueError, match="the table ends at position 6, and 7 is asked for"):
        positions.learned(table, 2, start=N - 1)


def test_relative_scores_are_shaws_gradients_too():
    q, k = tensors((B, H, M, D), (B, H, N, D))
    shaw = library.Shaw(D, radius=2).double()
    torch.nn.init.normal_(shaw.key_rows)
    mine = (q @ k.mT + positions.relative(q, shaw.key_rows, N)) / D**0.5
    theirs = shaw(q, k)
    assert_close(mine, theirs)
    grads = [torch.autograd.grad(one.square().sum(), (q, shaw.key_rows)) for one in (mine, theirs)]
    assert_close(*grads)


def test_the_test_of_shifts_tells_places_from_distances():
    torch.manual_seed(0)

    def added(q, k, start):
        codes = positions.sinusoidal(len(q), 16, start)
        return (q + codes) @ (k + codes).T

    assert positions.shifts(lambda q, k, s: positions.rotary(q, s) @ positions.rotary(k, s).T) < 1e-4
    assert positions.shifts(lambda q, k, s: q @ k.T + positions.alibi(len(k), 8)[0]) == 0
    assert positions.shifts(added) > 1


def test_a_layer_that_knows_order_is_found():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(16, 4), torch.randn(5, 16)
    codes = positions.sinusoidal(5, 16)
    assert positions.moved_by_order(lambda t: layer(t, t, t).output, x) < 1e-5
    found = [positions.moved_by_order(lambda t: layer(*3 * [t + codes]).output, x) for _ in range(9)]
    assert max(found) > 0.1


def test_patches_times_a_matrix_are_a_strided_convolution():
    (images,) = tensors((2, 3, 6, 9))
    conv = nn.Conv2d(3, D, 3, stride=3).double()
    rows = F.linear(vision.patches(images, 3), conv.weight.flatten(1), conv.bias)
    assert_close(rows, conv(images).flatten(2).mT)
    with pytest.raises(ValueError, match=r"\(6, 9\) cannot be cut into squares of 4; pad, or crop"):
        vision.patches(images, 4)


def test_the_vit_is_the_librarys_gradients_too():
    torch.manual_seed(0)
    theirs = VisionTransformer(6, 2, 5, c_in=3, d_model=8, n_layers=2, n_heads=4, d_inner=32).double()
    ours = vision.ViT(6, 2, 5, channels=3, d=8).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0, 0.5)
        ours.embed.weight.copy_(theirs.patches.weight.flatten(1))
        ours.embed.bias.copy_(theirs.patches.bias)
        ours.first.copy_(theirs.class_token)
        ours.codes.copy_(next(theirs.positions.parameters()))
        ours.norm.load_state_dict(theirs.encoder.norm.state_dict())
        ours.read.load_state_dict(theirs.classify.state_dict())
        for one, other in zip(ours.layers, theirs.encoder.layers, strict=True):
            own = other.attention
            one.attention.w_qkv.weight.copy_(
                torch.cat([own.w_query.weight, own.w_key.weight, own.w_value.weight])
            )
            one.attention.w_output.weight.copy_(own.w_output.weight)
            nn.init.zeros_(one.attention.w_qkv.bias)
            nn.init.zeros_(one.attention.w_output.bias)
            for norm, their in zip(one.norms, other.norms, strict=True):
                norm.load_state_dict(their.state_dict())
            one.feed_forward[0].load_state_dict(other.feed_forward.w_in.state_dict())
            one.feed_forward[2].load_state_dict(other.feed_forward.w_out.state_dict())
    (images,) = tensors((4, 3, 6, 6))
    found, wanted = ours(images), theirs(images)
    assert_close(found, wanted)
    assert_close(*(torch.autograd.grad(y.square().sum(), images)[0] for y in (found, wanted)))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_heads_convolve_gradients_too(k):
    images, kernel = tensors((2, 3, 5, 7), (4, 3, k, k))
    found, wanted = vision.convolve(images, kernel), F.conv2d(images, kernel, padding=k // 2)
    assert_close(found, wanted)
    grad = torch.randn_like(wanted)
    ours, theirs = (torch.autograd.grad(y, (images, kernel), grad) for y in (found, wanted))
    assert_close(ours, theirs)


def test_a_blunt_head_does_not_convolve():
    images, kernel = tensors((1, 1, 5, 5), (1, 1, 3, 3))
    wrong = vision.convolve(images, kernel, sharpness=1.0) - F.conv2d(images, kernel, padding=1)
    assert wrong.abs().max() > 0.1


def test_each_offset_has_a_number_of_its_own():
    height, width = 3, 4
    numbers, met = vision.offsets(height, width), {}
    for query in range(height * width):
        for key in range(height * width):
            offset = (key // width - query // width, key % width - query % width)
            assert met.setdefault(offset, numbers[query, key].item()) == numbers[query, key]
    assert sorted(met.values()) == list(range((2 * height - 1) * (2 * width - 1)))
    assert met[0, 0] == len(met) // 2


def test_a_bias_by_offset_is_added_to_the_cells_alone():
    torch.manual_seed(0)
    layer = vision.Attention(8, 2, grid=(2, 3))
    nn.init.normal_(layer.by_offset)
    bias = layer.bias(7)  # a class token, and six cells
    assert bias.shape == (2, 7, 7) and not bias[:, 0].any() and not bias[:, :, 0].any()
    assert_close(bias[:, 1:, 1:], layer.by_offset[:, layer.numbers])
    x = torch.randn(3, 7, 8)
    q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in layer.w_qkv(x).chunk(3, -1))
    wanted = attend(q, k, v, score_bias=bias[None]).output.transpose(1, 2).flatten(-2)
    assert_close(layer(x), layer.w_output(wanted))


@pytest.mark.parametrize("grid", [None, (4, 5)])
def test_pixels_know_their_places_by_offsets_alone(grid):
    torch.manual_seed(0)
    layer = vision.Attention(8, 2, grid)
    if grid:
        nn.init.normal_(layer.by_offset)
    images = torch.randn(2, 8, 4, 5)
    turned = vision.pixels(layer, images.flip(-1)).flip(-1)  # right and left exchanged
    same = torch.allclose(turned, vision.pixels(layer, images), atol=1e-5)
    assert same == (grid is None)


@pytest.mark.parametrize("pool", ["class", "mean"])
@pytest.mark.parametrize("positions", ["learned", "offsets", "none"])
def test_a_vit_without_positions_sees_a_bag_of_patches(pool, positions):
    torch.manual_seed(0)
    model = vision.ViT(8, 2, 3, pool=pool, positions=positions)
    for layer in model.layers:
        if positions == "offsets":
            nn.init.normal_(layer.attention.by_offset)
    images = torch.randn(2, 1, 8, 8)
    mixed = images.unflatten(2, (4, 2))[:, :, [2, 0, 3, 1]].flatten(2, 3)  # rows of patches
    same = torch.allclose(model(mixed), model(images), atol=1e-5)
    assert same == (positions == "none")


def test_a_vit_of_another_kind_is_refused():
    with pytest.raises(ValueError, match='pool is "class" or "mean"'):
        vision.ViT(8, 2, 3, pool="max")
    with pytest.raises(ValueError, match="a width of 9 cannot be split into 2 heads"):
        vision.Attention(9, 2)


@pytest.mark.parametrize("kind, theirs", [(recurrent.RNN, nn.RNN), (recurrent.LSTM, nn.LSTM)])
def test_a_recurrent_layer_is_torch_s_with_its_gradients(kind, theirs):
    ours, layer = kind(D, H).double(), theirs(D, H, batch_first=True).double()
    ours.load_state_dict(
        {
            "w.weight": layer.weight_ih_l0,
            "w.bias": layer.bias_ih_l0 + layer.bias_hh_l0,
            "u.weight": layer.weight_hh_l0,
        }
    )
    x = torch.randn(B, N, D, dtype=torch.float64, requires_grad=True)
    found, wanted = ours(x), layer(x)[0]
    assert_close(found, wanted)
    upstream = torch.randn_like(found)
    assert_close(torch.autograd.grad(found, x, upstream), torch.autograd.grad(wanted, x, upstream))


def test_the_forget_bias_stands_on_the_forget_gates_alone():
    torch.manual_seed(0)
    usual = recurrent.LSTM(D, H).w.bias
    torch.manual_seed(0)
    assert_close(
        recurrent.LSTM(D, H, forget_bias=5.0).w.bias - usual,
        torch.tensor([0.0, 5, 0, 0]).repeat_interleave(H),
    )


def test_a_padded_text_is_read_as_if_alone():
    model = recurrent.Recaller(17, 8, recurrent.LSTM(D, D), D).double()
    tokens, lengths = torch.randint(17, (3, N)), torch.tensor([N, 2, 4])
    together = model(tokens, lengths)
    for text, length, logits in zip(tokens, lengths, together, strict=True):
        assert_close(model(text[None, :length])[0], logits)
    assert not torch.allclose(model(tokens)[1], together[1])


@pytest.mark.parametrize("kind", ["linear", "gated", "delta"])
def test_a_state_is_the_librarys_and_the_whole_gradients_too(kind):
    query, key, value = inputs = tensors((B, H, N, D), (B, H, N, D), (B, H, N, D_V))
    key = key / key.norm(dim=-1, keepdim=True)
    raw = tensors((B, H, N), (B, H, N))
    gate, beta = (x.sigmoid() for x in raw)
    if kind == "linear":
        more, wanted, state = (), linear.attend_linear(query, key, value, causal=True), (D, D_V + 1)
    elif kind == "gated":  # its table by hand
        more, state = (gate,), (D, D_V)
        scores = query @ key.mT
        rows = [[gate[..., j + 1 : i + 1].prod(-1) * (j <= i) for j in range(N)] for i in range(N)]
        wanted = (scores * torch.stack([torch.stack(row, -1) for row in rows], -2)) @ value
    else:
        more, state = (gate, beta), (D, D_V)
        wanted = attend_delta(query, key, value, beta, log_gate=gate.log())
    state, outputs = torch.zeros(B, H, *state, dtype=torch.float64), []
    for i in range(N):
        token = [x[:, :, i] for x in (query, key, value, *more)]
        output, state = getattr(recurrent, f"{kind}_step")(*token, state)
        outputs.append(output)
    whole = getattr(recurrent, kind)(query, key, value, *more)
    for ours in (torch.stack(outputs, 2), whole):
        same(ours, wanted, [*inputs, *raw[: len(more)]])


def test_what_is_heard_is_the_gradient_of_the_right_logit():
    model = recurrent.Recaller(17, 8, recurrent.RNN(D, D), D).double()
    tokens, letters = recurrent.recall(5, 6, torch.Generator().manual_seed(0))
    assert tokens.shape == (5, 7) and (tokens[:, 0] == letters).all() and (tokens[:, -1] == 16).all()
    expected = torch.zeros(7, dtype=torch.float64)
    for text, letter in zip(tokens, letters, strict=True):
        jacobian = torch.autograd.functional.jacobian(model.of_embedded, model.embed(text)[None].detach())
        expected += jacobian[0, letter, 0].norm(dim=-1) / 5
    assert_close(recurrent.heard(model, tokens, letters), expected)


# long.py


def same(ours, theirs, inputs):
    """The outputs and all gradients, which are finite."""
    assert_close(ours, theirs)
    upstream = torch.randn(theirs.shape, dtype=theirs.dtype)
    found, wanted = (torch.autograd.grad(y, inputs, upstream, retain_graph=True) for y in (ours, theirs))
    assert all(one.isfinite().all() for one in found)
    assert_close(found, wanted)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("n, radius, block", [(N, 2, None), (N, 0, 3), (67, 5, None), (67, 3, 5), (N, 11, 2)])
def test_a_window_is_the_librarys(n, radius, block, padded, after):
    inputs = tensors((B, H, n, D), (B, H, n, D), (B, H, n, D_V))
    real = padding(torch.tensor([n, 3]), n) if padded else None
    options = {"causal": not after}
    ours = long.window_attention(*inputs, radius, real=real, block=block, **options)
    same(ours, attend_window(*inputs, radius, padding=real, **options), inputs)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("block", [1, 3, N, N + 2])
def test_a_block_asks_itself_alone(block, after):
    inputs = tensors((B, H, N, D), (B, H, N, D), (B, H, N, D_V))
    number = torch.arange(N) // block
    real = padding(torch.tensor([N, 2]), N)
    mask = (number[:, None] == number) & (causal(N) | after) & real[:, None]
    ours = long.block_attention(*inputs, block, causal=not after, real=real)
    same(ours, attend(*inputs, mask=mask).output, inputs)


@pytest.mark.parametrize("tile", [1, 3, 4, 64])
@pytest.mark.parametrize("kind", masks())
def test_tiles_are_attend_gradients_too(kind, tile):
    inputs, mask = tensors((B, H, N, D), (B, H, M, D), (B, H, M, D_V)), masks()[kind]
    wanted = attend(*inputs, mask=mask).output
    same(long.attend_tiles(*inputs, mask=mask, tile=tile), wanted, inputs)
    same(long.attend(*inputs, mask=mask), wanted, inputs)
    if mask is None:
        assert_close(long.attend_tiles(*inputs, tile=tile), attend_tiles(*inputs, tile=tile))


@pytest.mark.parametrize("tile", [1, 3, 64])
@pytest.mark.parametrize("n, m", [(N, N), (3, N), (N, 3)])
def test_causal_tiles_are_the_last_queries(n, m, tile):
    inputs = tensors((B, H, n, D), (B, H, m, D), (B, H, m, D_V))
    mask = torch.arange(m) <= torch.arange(m - n, m)[:, None]  # more queries than keys: the first see nothing
    same(long.attend_tiles(*inputs, causal=True, tile=tile), attend(*inputs, mask=mask).output, inputs)


def test_tiles_above_the_diagonal_are_skipped():
    q, k, v = tensors((8, D), (8, D), (8, D_V))
    with torch.no_grad():
        k[6:], v[6:] = torch.nan, torch.nan  # whatever reads them becomes nan
    assert long.attend_tiles(q, k, v, causal=True, tile=2)[:6].isfinite().all()


@pytest.mark.parametrize("large", [0.0, 3e4, -3e4])
def test_pieces_join_in_any_order(large):
    q, k, v = tensors((B, N, D), (B, 9, D), (B, 9, D_V))
    scores = long.scores_of(q, k) + large
    scores = torch.cat((scores, torch.full_like(scores[..., :2], -torch.inf)), -1)  # two hidden keys
    value = torch.cat((v, v[..., :2, :]), -2)
    pieces = [
        long.partial(scores[..., i:j], value[..., i:j, :]) for i, j in ((0, 2), (2, 3), (3, 9), (9, 11))
    ]
    wanted = attend(q, k, v).output
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)):
        joined = functools.reduce(long.merge, [pieces[i] for i in order])
        same(long.output(joined), wanted, (q, k, v))
    with torch.no_grad():
        theirs = efficient.attend_part(q, k, v)
        top, total, _ = long.attend_part(q, k, v, tile=4)
    assert_close((top + total.log())[..., 0], theirs.log_sum)


def test_halves_of_the_keys_are_merged_as_the_library_merges_them():
    q, k, v = (x.detach() for x in tensors((B, N, D), (B, N, D), (B, N, D_V)))
    halves = [
        long.attend_part(q, k[:, some], v[:, some], ahead=ahead)
        for some, ahead in ((slice(0, 4), 0), (slice(4, N), -4))
    ]
    assert_close(long.output(long.merge(*halves)), attend(q, k, v, mask=causal(N)).output)
    theirs = [
        efficient.attend_part(q, k[:, some], v[:, some], ahead=ahead)
        for some, ahead in ((slice(0, 4), 0), (slice(4, N), -4))
    ]
    assert_close(long.output(long.merge(*halves)), efficient.merge(*theirs).output)


def test_a_piece_in_half_precision_sums_in_float32():
    q, k, v = (x.detach().bfloat16() for x in tensors((N, D), (4096, D), (4096, D_V)))
    exact = attend(q.float(), k.float(), v.float()).output
    assert (long.attend_tiles(q, k, v).float() - exact).abs().max() < 2e-3 + exact.abs().max() / 256


@pytest.mark.parametrize("window", [1, 3, 20])
@pytest.mark.parametrize("chunks", [[1] * 12, [5, 1, 4, 2], [12]])
def test_written_with_a_rolling_cache_as_at_once(window, chunks):
    q, k, v = tensors((B, H, 12, D), (B, H, 12, D), (B, H, 12, D_V))
    whole = long.window_attention(q, k, v, window - 1, causal=True)
    cache, done = long.RollingCache(window), []
    for some in zip(*(x.split(chunks, -2) for x in (q, k, v)), strict=True):
        done.append(long.attend(some[0], *cache.append(*some[1:])))
        assert cache.key.shape[-2] < window
    assert_close(torch.cat(done, -2), whole)
    assert cache.seen == 12 and cache.key.shape[-2] == min(window - 1, 12)


@pytest.mark.parametrize("front", [False, True])
def test_global_tokens_are_the_first_real_ones(front):
    real = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]]).bool()
    real = real.flip(-1) if front else real
    for n_global in (0, 1, 2):
        mask = long.window_and_global(real, 1, n_global)
        assert mask.shape == (2, 1, 7, 7)
        (x,) = tensors((2, 1, 7, D))
        found = attend(x, x, x, mask=mask).output
        for text, keep, row in zip(x, real, found, strict=True):
            alone, n = text[:, keep], int(keep.sum())
            may = window(n, 1)
            may[:n_global], may[:, :n_global] = True, True
            assert_close(row[:, keep], attend(alone, alone, alone, mask=may).output)


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("kind", [name for name, mask in masks().items() if mask is not None])
def test_the_chosen_keys_are_the_librarys(kind, k):
    inputs, mask = tensors((B, H, N, D), (B, H, M, D), (B, H, M, D_V)), masks()[kind]
    scores = tensors((B, H, N, M))[0]
    ours, theirs = long.chosen(scores, k, mask), best_keys(scores, k, mask=mask)
    assert torch.equal(ours, theirs)
    same(long.attend(*inputs, ours), attend(*inputs, mask=theirs).output, inputs)
    assert (long.chosen(0 * scores, k, mask).sum(-1) <= k).all()  # equal scores, too


@pytest.mark.parametrize("chunks", [[1] * 12, [5, 1, 4, 2]])
def test_keys_are_chosen_with_a_cache_as_without_and_padded_as_alone(chunks):
    q, k, v = tensors((B, 12, D), (B, 12, D), (B, 12, D_V))
    real = torch.tensor([12 * [1], 4 * [0] + 8 * [1]]).bool()[:, None]  # padding in front
    whole = long.attend(q, k, v, long.chosen(q @ k.mT, 3, causal(12) & real))
    done, end = [], 0
    for n in chunks:
        end += n
        new, known = slice(end - n, end), slice(0, end)
        may = long.chosen(q[:, new] @ k[:, known].mT, 3, causal(end, queries=n) & real[..., known])
        done.append(long.attend(q[:, new], k[:, known], v[:, known], may))
    assert_close(torch.cat(done, 1), whole)
    alone = [x[1, 4:] for x in (q, k, v)]
    assert_close(whole[1, 4:], long.attend(*alone, long.chosen(alone[0] @ alone[1].mT, 3, causal(8))))


GRAPH = torch.tensor([[0, 1, 1, 2, 3, 5, 5, 3, 0], [1, 0, 2, 1, 4, 0, 3, 3, 2]])  # 3 hears itself, 5 nobody
KINDS = {"GCN": graphs.GCN, "GAT": graphs.GAT, "GATv2": graphs.GATv2}


def graph_layer(kind, **options):
    """A layer D -> D_V, with heads if it has them; all weights at random, biases too."""
    made = KINDS[kind](D, D_V, **({} if kind == "GCN" else {"heads": H} | options)).double()
    torch.manual_seed(0)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made


def same_gradients(pairs, inputs):
    """Equal outputs, and equal gradients, of each pair (output, parameters)."""
    (first, own), *others = pairs
    upstream = torch.randn_like(first)
    wanted = torch.autograd.grad(first, [inputs, *own], upstream, retain_graph=True)
    for output, parameters in others:
        assert_close(output, first)
        found = torch.autograd.grad(output, [inputs, *parameters], upstream, retain_graph=True)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one.reshape(other.shape), other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_layer_on_edges_is_the_dense_one(kind):
    layer, (x,) = graph_layer(kind), tensors((6, D))
    mask = from_edges(graphs.self_loops(GRAPH, 6), 6)
    parameters = [*layer.parameters()]
    same_gradients([(layer(x, GRAPH), parameters), (layer.dense(x, mask), parameters)], x)


@pytest.mark.parametrize("kind", ["GAT", "GATv2"])
def test_graph_attention_is_the_librarys_gradients_too(kind):
    ours, (x,) = graph_layer(kind), tensors((6, D))
    theirs = GraphAttention(D, D_V, H, dynamic=kind == "GATv2").double()
    with torch.no_grad():
        if kind == "GAT":
            own = [ours.lin.weight, ours.att_src, ours.att_dst, ours.bias]
            other = [theirs.project.weight, theirs.score.a_key, theirs.score.a_query, theirs.bias]
        else:
            ours.lin_l.bias.zero_(), ours.lin_r.bias.zero_()  # the library's has none
            own = [ours.lin_l.weight, ours.lin_r.weight, ours.att, ours.bias]
            other = [theirs.project.weight, theirs.project_query.weight, theirs.score.a_key, theirs.bias]
        for one, two in zip(own, other, strict=True):
            two.copy_(one.reshape(two.shape))
    edges = graphs.self_loops(GRAPH, 6)
    found = theirs(x, edges)
    same_gradients([(found.output, other), (ours(x, GRAPH), own)], x)
    output, (listed, weights) = ours(x, GRAPH, return_attention_weights=True)
    assert torch.equal(listed, edges) and torch.equal(output, ours(x, GRAPH))
    assert_close(weights, found.weights)


def test_a_gcn_is_the_librarys_gradients_too():
    ours, theirs, (x,) = graph_layer("GCN"), Fixed(D, D_V, 1).double(), tensors((6, D))
    theirs.load_state_dict({"project.weight": ours.lin.weight, "project.bias": ours.bias})
    loops = graphs.self_loops(GRAPH, 6)
    own, other = [ours.lin.weight, ours.bias], [theirs.project.weight, theirs.project.bias]
    same_gradients([(theirs(x, loops), other), (ours(x, GRAPH), own)], x)


@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_graph_layers_are_pytorch_geometrics_gradients_too(kind, concat):
    """Both ways: their weights load here and ours there; first weights are drawn alike."""
    from torch_geometric import nn as pyg

    options = {} if kind == "GCN" else {"heads": H, "concat": concat}
    made = {"GCN": pyg.GCNConv, "GAT": pyg.GATConv, "GATv2": pyg.GATv2Conv}[kind]
    theirs, ours = made(D, D_V, **options).double(), graph_layer(kind, concat=concat)
    theirs.load_state_dict(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    names, (x,) = dict(ours.named_parameters()), tensors((6, D))
    other = dict(theirs.named_parameters())
    pairs = [
        (theirs(x, GRAPH), [other[name] for name in names]),
        (ours(x, GRAPH), [*names.values()]),
    ]
    same_gradients(pairs, x)
    spread = {
        name: [made(97, 8, **options).state_dict()[name].std() for made in (made, KINDS[kind])]
        for name in names
        if "bias" not in name
    }
    for name, (wanted, found) in spread.items():
        assert 0.75 < found / wanted < 1.33, name


def test_large_scores_do_not_overflow_along_edges():
    scores = torch.tensor([[1000.0], [1001.0], [-1000.0]], requires_grad=True)
    weights = graphs.edge_softmax(scores, torch.tensor([0, 0, 2]), 4)
    assert_close(weights[:, 0], torch.tensor([0.2689, 0.7311, 1.0]), atol=1e-4, rtol=0)
    assert torch.autograd.grad(weights[1].sum(), scores)[0].isfinite().all()


def many_nodes(n=40, e=200):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(n, (2, e), generator=generator), torch.randn(n, D, generator=generator).double()


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_neighbours_are_enough_if_all_are_taken(kind):
    edges, x = many_nodes()
    torch.manual_seed(0)
    network = graphs.Network(KINDS[kind](D, 8), KINDS[kind](8, 3)).double().eval()
    nodes = torch.tensor([31, 4, 17])
    numbers, near = graphs.sampled(edges, nodes, (99, 99))
    assert torch.equal(numbers[:3], nodes) and len(numbers.unique()) == len(numbers) < 40
    same = torch.allclose(network(x[numbers], near)[:3], network(x, edges)[nodes])
    assert same == (kind != "GCN")  # whose degrees are the sample's


def test_a_sample_keeps_so_many_edges_of_the_graph():
    edges, _ = many_nodes()
    known = {(s, t) for s, t in edges.T.tolist()}
    drawn = set()
    for seed in range(30):
        generator = torch.Generator().manual_seed(seed)
        numbers, near = graphs.sampled(edges, torch.tensor([5, 9]), (2, 3), generator)
        assert {tuple(pair) for pair in numbers[near].T.tolist()} <= known
        into = near[1].bincount(minlength=len(numbers))
        assert into[:2].max() <= 2 and into.max() <= 3
        drawn |= set(numbers[near[0][near[1] == 0]].tolist())
    assert drawn == set(edges[0][edges[1] == 5].tolist())  # each neighbour has its turn


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_in_a_batch_is_as_if_alone(kind):
    made = [(one.x.double(), one.edge_index) for one in molecules.twins(4)]
    torch.manual_seed(0)
    network = graphs.Network(KINDS[kind](3, 8), KINDS[kind](8, 2)).double().eval()
    together = network(*graphs.joined(made))
    for row, (x, edges) in zip(together, made, strict=True):
        assert_close(row, network(x, edges).mean(0))


def test_graphs_are_learned_in_batches():
    """Is N bound to O? Counts of atoms cannot tell; a network without edges guesses."""
    made = molecules.twins(150)
    y, found = torch.tensor([int(one.joined) for one in made]), {}
    for name, listed in (("edges", slice(None)), ("none", slice(0))):
        torch.manual_seed(0)
        network = graphs.Network(graphs.GATv2(3, 16), graphs.GATv2(16, 2), dropout=0.0)
        optimizer = torch.optim.Adam(network.parameters(), 1e-2)
        pairs = [(one.x, one.edge_index[:, listed]) for one in made]
        for _ in range(150):
            some = torch.randint(200, (50,)).tolist()
            loss = F.cross_entropy(network(*graphs.joined([pairs[i] for i in some])), y[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        guesses = network(*graphs.joined(pairs[200:])).argmax(-1)
        found[name] = (guesses == y[200:]).double().mean().item()
    assert found["none"] == 0.5 and found["edges"] > 0.8, found


def test_no_group_stands_on_two_sides_and_each_class_on_all():
    group = torch.randint(20, (300,), generator=torch.Generator().manual_seed(0))
    y = group % 2
    tested = torch.zeros(300, dtype=torch.long)
    for fold in range(5):
        parts = graphs.split_by_group(group, y, fold)
        assert torch.equal(sum(part.long() for part in parts), torch.ones(300, dtype=torch.long))
        sides = [set(group[part].tolist()) for part in parts]
        assert [len(side) for side in sides] == [12, 4, 4] and len(set.union(*sides)) == 20
        assert [sum(one % 2 for one in side) for side in sides] == [6, 2, 2]
        tested += parts[2]
    assert torch.equal(tested, torch.ones(300, dtype=torch.long))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_shuffled_edges_keep_degrees(share):
    edges, _ = many_nodes()
    other = graphs.shuffled(edges, share)
    assert torch.equal(other[0], edges[0]) and torch.equal(other[1].bincount(), edges[1].bincount())
    assert share - 0.1 < (other[1] != edges[1]).double().mean() <= share


def test_accuracy_is_balanced_and_fit_keeps_the_best():
    edges, x = many_nodes()
    y, nodes = torch.arange(40) % 7 // 3, torch.arange(40) < 30
    torch.manual_seed(0)
    network = graphs.Network(graphs.GAT(D, 8, heads=2), graphs.GAT(16, 3)).double()
    wanted = balanced_accuracy(network.eval()(x, edges), y, nodes)
    assert graphs.accuracy(network, x, edges, y, nodes) == pytest.approx(wanted)
    first = [parameter.clone() for parameter in network.parameters()]
    for size in (None, 8):
        scores = []
        for steps in (3, 5, 20):
            for parameter, value in zip(network.parameters(), first, strict=True):
                parameter.data.copy_(value)
            torch.manual_seed(1)  # dropout
            graphs.fit(network, x, edges, y, nodes, ~nodes, size, steps=steps)
            scores.append(graphs.accuracy(network, x, edges, y, ~nodes))
        assert scores[2] >= scores[1]  # of the weights after steps 5, 10, 15 and 20


# --- llm.py ---

OPENED = (
    "llama", "llama, linear", "llama, llama3", "mistral", "qwen2", "qwen2, windows", "qwen3",
    "qwen3, windows", "smollm3", "smollm3, windows",
)  # fmt: skip


@pytest.mark.on_cpu
@pytest.mark.parametrize("name", OPENED)
@torch.no_grad()
def test_a_published_folder_gives_what_its_own_library_gives(name, tmp_path):
    pytest.importorskip("transformers", reason="transformers is not carried to a GPU machine")
    logits, x = peers.answers(name)[0], peers.inputs(name)
    top = float(logits.abs().max())
    for dtype in (torch.float32, torch.bfloat16):
        logits, model = peers.answers(name, dtype)[0], llm.open_model(peers.folder(name, tmp_path, dtype))
        caches = model.caches()
        parts = [model(part, caches) for part in x.split(peers.PIECES, 1)]
        assert peers.apart(model(x), logits, top) < peers.NOISE
        assert peers.apart(torch.cat(parts, 1), logits, top) < peers.NOISE
    start = x[0, :5]
    theirs = peers.reference(name, dtype).generate(
        start[None], max_new_tokens=12, do_sample=False, pad_token_id=0
    )
    made = llm.write(model, start, 12)
    assert made == theirs[0, 5:].tolist()
    assert llm.write(model, start, 12, ends=made[3:4]) == made[: made.index(made[3]) + 1]
    drawn = [llm.write(model, start, 12, 2.0, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_is_not_computed_is_refused(tmp_path):
    given = {
        "model_type": "llama", "vocab_size": 9, "hidden_size": 8, "intermediate_size": 8,
        "num_hidden_layers": 2, "num_attention_heads": 2,
    }  # fmt: skip
    wrong = {
        "model_type": "gpt2", "quantization_config": {"bits": 4}, "hidden_act": "gelu",
        "rope_scaling": {"rope_type": "longrope"}, "layer_types": ["chunked_attention"] * 2,
    }  # fmt: skip
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=r"gpt2|bits|gelu|longrope|chunked"):
            llm.read_config(given | {name: value})
    (tmp_path / "config.json").write_text(json.dumps(given))
    with pytest.raises(FileNotFoundError, match=r"no \.safetensors"):
        llm.open_model(tmp_path)
    tensors = llm.LLM(llm.read_config(given)).state_dict()
    fewer = {name: x for name, x in tensors.items() if name != "lm_head.weight"}
    for changed, said in ((tensors | {"more": torch.ones(1)}, "more"), (fewer, "lm_head")):
        save_file(changed, tmp_path / "model.safetensors")
        with pytest.raises(RuntimeError, match=said):
            llm.open_model(tmp_path)


@pytest.mark.parametrize("window", [None, 3])
def test_sinks_are_the_librarys(window):
    q, k, v, sinks = tensors((B, 6, N, D), (B, H, N, D), (B, H, N, D), (6,))
    layer = SinkAttention(6).double()
    layer.sinks = nn.Parameter(sinks.detach().clone())
    shared = (x.repeat_interleave(2, 1) for x in (k, v))
    theirs = layer(q, *shared, mask=causal(N, window=window)).output
    ours = llm.attend(q, k, v, window, sinks)
    assert_close(ours, theirs)
    grad = torch.randn_like(ours)
    assert_close(
        torch.autograd.grad(ours, (q, k, v, sinks), grad),
        torch.autograd.grad(theirs, (q, k, v, layer.sinks), grad),
    )
