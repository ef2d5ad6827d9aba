"""attend: torch is the referee; poison values, empty rows and scores of -1e30 are the traps."""

import ast
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend, attend_columns
from lesson_lib.masks import causal
from lesson_lib.measure import peak_mib
from lesson_lib.scores import dot

B, H, N, M, D_K, D_V = 2, 3, 7, 11, 5, 13  # distinct primes: a swapped axis cannot pass by luck
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-10}
LEADS = [(), (B,), (B, H), (2, B, H)]


def inputs(*lead, dtype=torch.float32, grad=False):
    return [
        torch.randn(*lead, *tail, dtype=dtype).requires_grad_(grad) for tail in [(N, D_K), (M, D_K), (M, D_V)]
    ]


def assert_as_close(got, want, dtype):
    assert_close(got, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_by_hand():
    q = torch.tensor([[math.log(3.0)]])
    k = torch.tensor([[0.0], [1.0]])
    output, weights = attend(q, k, torch.tensor([[8.0], [4.0]]))
    assert_close(weights, torch.tensor([[0.25, 0.75]]))
    assert_close(output, torch.tensor([[5.0]]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("with_mask, with_bias", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("weights", [True, False], ids=["explicit", "fused"])
def test_equal_to_torch_forward_and_backward(dtype, lead, with_mask, with_bias, weights):
    ours = inputs(*lead, dtype=dtype, grad=True)
    theirs = [x.detach().clone().requires_grad_() for x in ours]
    mask = torch.rand(*lead, N, M) > 0.4 if with_mask else None
    if with_mask:
        mask[..., 0] = True  # torch has no agreed answer for a row with nothing to see; ours is tested below
    bias = torch.randn(*lead, N, M, dtype=dtype) if with_bias else None
    both = bias if mask is None else mask if bias is None else bias.masked_fill(~mask, -torch.inf)
    got = attend(*ours, mask=mask, score_bias=bias, weights=weights).output
    want = F.scaled_dot_product_attention(*theirs, attn_mask=both)
    assert_as_close(got, want, dtype)
    upstream = torch.randn_like(want)
    for a, b in zip(
        torch.autograd.grad(got, ours, upstream), torch.autograd.grad(want, theirs, upstream), strict=True
    ):
        assert_as_close(a, b, dtype)


@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("lower", range(4))
def test_masks_shared_over_any_axes_give_the_same_on_both_paths(lead, lower):
    q, k, v = inputs(*lead)
    shape = [size if (lower >> axis) % 2 else 1 for axis, size in enumerate(lead)]
    for rows, columns in [(N, M), (1, M), (N, 1)]:
        mask = torch.rand(*shape, rows, columns) > 0.4
        bias = torch.randn(*shape, rows, columns)
        for extra in [{"mask": mask}, {"score_bias": bias}, {"mask": mask, "score_bias": bias}]:
            assert_close(attend(q, k, v, **extra, weights=False).output, attend(q, k, v, **extra).output)


def test_a_gradient_reaches_the_bias_on_both_paths():
    q, k, v = inputs(B, H)
    bias = torch.randn(H, N, M)[None].requires_grad_()
    explicit, fused = (
        torch.autograd.grad(attend(q, k, v, score_bias=bias, weights=w).output.square().sum(), bias)[0]
        for w in (True, False)
    )
    assert explicit.abs().max() > 0
    assert_close(fused, explicit)


def test_leading_axes_of_size_one_are_shared():
    q, k, v = torch.randn(B, H, N, D_K), torch.randn(B, 1, M, D_K), torch.randn(1, 1, M, D_V)
    want = attend(q, k.expand(B, H, M, D_K), v.expand(B, H, M, D_V)).output
    assert_close(attend(q, k, v).output, want)
    assert_close(attend(q, k, v, weights=False).output, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("weights", [True, False], ids=["explicit", "fused"])
@pytest.mark.parametrize("how", ["mask", "bias", "both"])
def test_a_row_with_nothing_to_see_is_exactly_zero_with_finite_gradients(dtype, weights, how):
    qkv = inputs(B, H, dtype=dtype, grad=True)
    mask = torch.ones(N, M, dtype=torch.bool)
    mask[3] = False
    bias = torch.zeros(N, M, dtype=dtype).masked_fill(~mask, -torch.inf)
    given = {
        "mask": {"mask": mask},
        "bias": {"score_bias": bias},
        "both": {"mask": mask, "score_bias": bias},
    }[how]
    output, table = attend(*qkv, **given, weights=weights)
    assert (output[:, :, 3] == 0).all()
    assert output[:, :, 2].abs().min() > 0
    if weights:
        assert (table[:, :, 3] == 0).all()
    gradients = torch.autograd.grad(output.sum(), qkv)
    assert all(g.isfinite().all() for g in gradients)
    assert (gradients[0][:, :, 3] == 0).all()


@pytest.mark.parametrize("weights", [True, False], ids=["explicit", "fused"])
def test_no_keys_at_all_gives_zeros(weights):
    output, _ = attend(torch.randn(N, D_K), torch.randn(0, D_K), torch.randn(0, D_V), weights=weights)
    assert output.shape == (N, D_V) and (output == 0).all()


@pytest.mark.parametrize("weights", [True, False], ids=["explicit", "fused"])
def test_scores_of_minus_1e30_leak_nothing(weights):
    """The one visible key scores -1e30, the hidden ones 0: a mask of -1e4 or -1e9 would let the hidden keys
    win."""
    q, k = torch.tensor([[1.0]]), torch.tensor([[-1e30], [0.0], [0.0]])
    v = torch.tensor([[5.0], [1e9], [1e9]])
    mask = torch.tensor([[True, False, False]])
    assert attend(q, k, v, mask=mask, weights=weights).output.item() == 5.0


@pytest.mark.parametrize("weights", [True, False], ids=["explicit", "fused"])
def test_causal_outputs_do_not_move_when_the_future_does(weights):
    q, k, v = torch.randn(N, D_K), torch.randn(N, D_K), torch.randn(N, D_V)
    before = attend(q, k, v, mask=causal(N), weights=weights).output
    k[4:], v[4:] = 1e3 * torch.randn(N - 4, D_K), 1e9
    assert torch.equal(attend(q, k, v, mask=causal(N), weights=weights).output[:4], before[:4])


def test_a_hidden_inf_leaks_here_and_in_torch():
    """0 * inf is nan: the docstring says that hidden values must be finite, and this is why."""
    q, k = torch.zeros(1, 1, 2, D_K), torch.zeros(1, 1, 2, D_K)
    v = torch.tensor([[1.0], [torch.inf]])[None, None]
    assert attend(q, k, v, mask=causal(2)).output[0, 0, 0].isnan().all()
    assert (
        not F.scaled_dot_product_attention(q, k, v, is_causal=False, attn_mask=causal(2))[0, 0, 0]
        .isfinite()
        .all()
    )


def test_nothing_is_modified_in_place():
    q, k, v = inputs(B, H)
    mask, bias = torch.rand(N, M) > 0.5, torch.randn(N, M)
    kept = [x.clone() for x in (q, k, v, mask, bias)]
    for weights in (True, False):
        attend(q, k, v, mask=mask, score_bias=bias, weights=weights)
    assert all(torch.equal(a, b) for a, b in zip(kept, (q, k, v, mask, bias), strict=True))


def test_dropout_drops_its_share_and_returns_the_weights_before_it():
    q, k, v = torch.zeros(1, 2), torch.zeros(10_000, 2), torch.ones(10_000, 1)
    output, weights = attend(q, k, v, dropout=0.25)
    assert_close(weights, torch.full((1, 10_000), 1e-4))
    kept = output.item() * 0.75  # survivors are scaled by 1 / (1 - dropout)
    assert 0.72 < kept < 0.78
    assert 0.95 < attend(q, k, v, dropout=0.25, weights=False).output.item() < 1.05


def test_columns_are_rows_transposed():
    x, w_q, w_k, w_v = torch.randn(B, N, 5), torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 2)
    c = attend_columns(x.mT, w_q.mT, w_k.mT, w_v.mT)
    output, weights = attend(x @ w_q, x @ w_k, x @ w_v, score=dot)
    assert_close(c.O.mT, output)
    assert_close(c.A_prime.mT, weights)
    assert_close(c.A, (x @ w_k) @ (x @ w_q).mT)
    assert_close(c.A_prime.sum(-2), torch.ones(B, N))
    assert_close(c.V @ c.A_prime, c.O)


@pytest.mark.parametrize("lead, d_v", [((), 24), ((2,), 5), ((2, 2, 3), 16)], ids=str)
def test_without_weights_memory_grows_with_n_not_with_its_square(lead, d_v):
    """Allocator peaks at n and 2n, far past every constant: 2 within 10 %; the explicit path is at 4."""
    peaks = []
    for n in (2048, 4096):
        q, k, v = (torch.randn(*[1] * len(lead), n, d) for d in (16, 16, d_v))
        peaks.append(peak_mib(lambda q=q, k=k, v=v: attend(q, k, v, weights=False)))
    assert peaks[1] / peaks[0] < 2.2
    assert peaks[1] < 8, "the (n, m) table alone would take 64 MiB"


def test_with_weights_memory_does_grow_with_the_square():
    """The red test of the one above: the same measure sees the table where there is one."""
    peaks = []
    for n in (512, 1024):
        q = torch.randn(n, 16)
        peaks.append(peak_mib(lambda q=q: attend(q, q, q)))
    assert peaks[1] / peaks[0] > 3.5


@pytest.mark.parametrize(
    "change, kind, words",
    [
        ({"query": None}, TypeError, "query must be a tensor, got NoneType"),
        ({"query": [[1.0]]}, TypeError, "torch.tensor"),
        ({"key": "abc"}, TypeError, "key must be a tensor, got str"),
        ({"query": torch.ones(N, D_K, dtype=torch.long)}, TypeError, ".float()"),
        ({"value": torch.ones(M, D_V, dtype=torch.complex64)}, TypeError, "floating-point"),
        ({"value": torch.ones(M, D_V, dtype=torch.float64)}, TypeError, "value.to(query.dtype)"),
        ({"query": torch.ones(D_K)}, ValueError, "x[None, :]"),
        ({"query": torch.ones(N, D_K + 1)}, ValueError, "equal widths"),
        ({"query": torch.ones(N, 0), "key": torch.ones(M, 0)}, ValueError, "width 0"),
        ({"value": torch.ones(M + 1, D_V)}, ValueError, "each key needs its own value"),
        ({"query": torch.ones(2, N, D_K), "key": torch.ones(3, M, D_K)}, ValueError, "leading axes"),
        ({"score": "dot"}, TypeError, "scores.dot"),
        ({"score": lambda q, k: q}, ValueError, "one number per query and key"),
        ({"score": lambda q, k: None}, ValueError, "NoneType"),
        ({"dropout": 1.0}, ValueError, "[0, 1)"),
        ({"dropout": "0.1"}, ValueError, "share"),
        ({"mask": torch.ones(N, M)}, TypeError, "score_bias"),
        ({"mask": torch.ones(N, M, dtype=torch.int)}, TypeError, ".bool()"),
        ({"mask": [[True]]}, TypeError, "mask must be a tensor"),
        ({"mask": torch.ones(M, N, dtype=torch.bool)}, ValueError, "transposed"),
        ({"mask": torch.ones(N, M + 1, dtype=torch.bool)}, ValueError, "does not broadcast"),
        ({"mask": torch.ones(M, dtype=torch.bool)}, ValueError, "1 axes"),
        ({"mask": torch.ones(B, N, M, dtype=torch.bool)}, ValueError, "3 axes"),
        ({"score_bias": torch.ones(N, M, dtype=torch.bool)}, TypeError, "pass it as mask"),
        ({"score_bias": torch.ones(N, M, dtype=torch.float64)}, TypeError, "query.dtype"),
        ({"score_bias": torch.ones(N - 1, M)}, ValueError, "score_bias of shape"),
    ],
)
@pytest.mark.parametrize("weights", [True, False], ids=["explicit", "fused"])
def test_bad_input_gets_a_sentence(no_shape_hook, change, kind, words, weights):
    given = dict(zip(("query", "key", "value"), inputs(), strict=True)) | change
    with pytest.raises(kind) as error:
        attend(given.pop("query"), given.pop("key"), given.pop("value"), weights=weights, **given)
    assert words in str(error.value)


def test_a_mask_per_sequence_needs_its_head_axis_even_where_b_equals_h(no_shape_hook):
    """The silent case: with b == h a (b, n, m) mask would broadcast over the heads and hide the wrong
    keys."""
    q = torch.randn(H, H, N, D_K)
    with pytest.raises(ValueError, match=r"mask\[:, None\]"):
        attend(q, q, q, mask=causal(N).expand(H, N, N))


def test_columns_say_which_matrix_does_not_fit(no_shape_hook):
    with pytest.raises(ValueError, match="W_k has shape"):
        attend_columns(torch.ones(4, 3), torch.ones(2, 4), torch.ones(4, 2), torch.ones(2, 4))


def softmaxes(source):
    """Lines of a source that call softmax."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [n.lineno for n in calls if "softmax" in (getattr(n.func, "attr", ""), getattr(n.func, "id", ""))]


def test_softmax_over_scores_stands_in_one_file():
    """Exercises and their wrong answers may have their own, and so may what turns logits into words, or a
    router's scores into shares of experts."""
    library = Path(__file__).parents[1] / "lesson_lib"
    found = {
        p.relative_to(library).as_posix(): count
        for p in library.rglob("*.py")
        if not {"checks", "questions"} & {*p.parts}
        if (count := len(softmaxes(p.read_text(encoding="utf-8"))))
    }
    # of logits into probabilities of words or characters, and of experts' scores
    elsewhere = {"models/gpt.py": 1, "chapters/c06_transformer/bert.py": 1, "models/pretrained/model.py": 1}
    assert found == {"attention.py": found["attention.py"]} | elsewhere


def test_a_second_softmax_would_be_seen():
    assert softmaxes("x.softmax(-1)\nF.softmax(x, -1)\nsoftmax(x)\nlogsoftmax(x)") == [1, 2, 3]


FIRST_ATTENTION = """
import sys, torch
from lesson_lib import attend
before = set(sys.modules)
attend(torch.ones(2, 3, 5), torch.ones(3, 5), torch.ones(3, 5))
print(sorted(set(sys.modules) - before))
"""


def test_the_first_attention_imports_nothing_more():
    run = [sys.executable, "-c", FIRST_ATTENTION]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "[]\n"
