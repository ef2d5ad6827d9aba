"""Files to carry away: each runs alone on what it names, and computes what the library computes."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal, padding
from lesson_lib.places import ROOT

FOLDER = ROOT / "notebooks" / "carry"
FILES = {  # name -> what it may import, its lines at most; in its __main__ what makes its training short
    "attention": ({"torch"}, 150, ("range(1, 801)", "range(1, 4)")),
}
B, H, N, M, D, D_V = 2, 3, 7, 5, 11, 13


def text_of(name: str) -> str:
    return Path(FOLDER, f"{name}.py").read_text(encoding="utf-8")


def carried(name: str):
    spec = importlib.util.spec_from_file_location(f"carried_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


attention = carried("attention")


def test_each_file_is_known():
    assert set(FILES) == {path.stem for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", FILES)
def test_a_file_runs_alone(name, tmp_path):
    allowed, lines, (long, short) = FILES[name]
    text = text_of(name)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = [n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in nodes]
    assert {module.partition(".")[0] for module in modules} <= allowed
    assert len(text.splitlines()) <= lines and text.count(long) == 1
    start = "import sys\nsys.modules['lesson_lib'] = None  # cannot be imported\n"
    line = [sys.executable, "-I", "-c", start + text.replace(long, short)]
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
