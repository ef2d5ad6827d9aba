"""The claims about scoring, the worked example, the matrix form and masks: one test each, named after
its id."""

import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend, attend_columns
from lesson_lib.chapters.c02_scoring.experiments.look_up import best_rows
from lesson_lib.experiments import results
from lesson_lib.masks import causal
from lesson_lib.scores import Additive, Bilinear, dot, scaled_dot
from lesson_lib.trace import EXAMPLE, example, in_pure_python, seven_steps

N, M, D_K, D_V = 7, 11, 5, 13
EXACT = [
    [1.9366210616669624, 6.683105308334811, 1.5950684074995565],
    [1.9999939663351456, 7.9639915951322156, 0.0539764053125496],
    [1.9997046127769653, 7.759892254657784, 0.3583892946751152],
]
BY_HAND = [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]]


def steps(dtype=torch.float32, **extra):
    return seven_steps(**example(dtype), **extra)


def test_self_1():
    x, w_q, w_k = torch.randn(N, D_K), torch.randn(D_K, D_K), torch.randn(D_K, D_K)
    assert_close(dot(x, x), dot(x, x).mT)
    assert not torch.allclose(dot(x @ w_q, x @ w_k), dot(x @ w_q, x @ w_k).mT)
    same_norm = F.normalize(x, dim=-1)
    assert attend(same_norm, same_norm, x).weights.argmax(-1).tolist() == list(range(N))


def test_self_2():
    x = torch.randn(N, D_K)
    assert_close(attend(x, x, x).output, F.scaled_dot_product_attention(x, x, x))


def test_score_1():
    rows = best_rows(results("look_up")["rows"])
    reached = {(r["score"], r["d"], r["seed"]): r["validation"] >= 0.95 for r in rows}
    for score in ("scaled dot", "additive"):
        assert all(reached[score, d, seed] for d in (4, 16, 64, 256, 1024) for seed in (0, 1, 2)), score
    peak = {(r["score"], r["d"]): r["peak_mib"] for r in rows}
    assert peak["additive", 64] > peak["scaled dot", 64]


def test_score_2():
    k, v = torch.eye(3), torch.tensor([[10.0], [20.0], [40.0]])
    assert_close(attend(1000 * k, k, v, score=dot).output, v)  # sharp: an exact look-up
    assert_close(attend(0 * k, k, v, score=dot).output, torch.full((3, 1), 70 / 3))  # flat: the average


def test_score_3():
    for d in (16, 64, 256):
        q, k = torch.randn(4000, 1, d), torch.randn(4000, 1, d)
        assert dot(q, k).var().item() == pytest.approx(d, rel=0.15)
        assert scaled_dot(q, k).var().item() == pytest.approx(1, rel=0.15)
    q, k = 1 + torch.randn(20_000, 1, 64), 1 + torch.randn(20_000, 1, 64)
    assert dot(q, k).mean().item() == pytest.approx(64, rel=0.02)
    assert dot(q, k).var().item() == pytest.approx(192, rel=0.05)
    q, k = torch.randn(4000, 1, 1).expand(-1, -1, 64), torch.randn(4000, 1, 1).expand(-1, -1, 64)
    assert scaled_dot(q, k).var().item() == pytest.approx(64, rel=0.2)  # 64 copies of one number


def test_score_4():
    q, k, v = torch.randn(N, D_K), torch.randn(M, D_K), torch.randn(M, D_V)
    assert attend(q, k, v).output.shape == (N, D_V)
    wide = torch.randn(M, D_K + 2)
    for score in (Additive(D_K, D_K + 2, 3), Bilinear(D_K, D_K + 2)):
        assert attend(q, wide, v, score=score).output.shape == (N, D_V)


def test_score_4_unequal_widths_do_not_multiply(no_shape_hook):
    with pytest.raises(ValueError, match="equal widths"):
        attend(torch.randn(N, D_K), torch.randn(M, D_K + 2), torch.randn(M, D_V))


def test_score_5():
    x, w = torch.randn(512), torch.randn(512, 64)
    assert (x @ w).shape == (64,)
    assert_close(x @ w, torch.stack([torch.dot(x, column) for column in w.T]), rtol=1e-4, atol=1e-4)


def test_score_6():
    q, k = torch.randn(N, D_K), torch.randn(M, D_K)
    assert_close(dot(q, 10 * k), 10 * dot(q, k))  # the same directions, ten times the score
    weights = attend(q, k, k).weights
    changed = k.clone()
    changed[0] = 5 * q[0]  # another key: the weights of all the others fall, though their scores stay
    assert (attend(q, changed, k).weights[0, 1:] < weights[0, 1:]).all()
    assert_close(dot(q, changed)[:, 1:], dot(q, k)[:, 1:])


def test_score_7():
    scores, v = torch.tensor([[2.0, -1.0, 3.0]]), torch.tensor([[1.0], [2.0], [4.0]])
    assert scores.relu().sum().item() == 5  # alone it normalises nothing
    by_relu = scores.relu() / scores.relu().sum()
    assert by_relu.sum().item() == pytest.approx(1) and by_relu[0, 1] == 0 < scores.softmax(-1)[0, 1]
    assert v.min() <= by_relu @ v <= v.max()


def test_score_8():
    whole = torch.randn(N, 512)  # one head as wide as the model
    assert_close(scaled_dot(whole, whole), dot(whole, whole) / math.sqrt(512))
    q = torch.randn(2, 8, N, 64)  # 8 heads of width 64 make a model of width 512
    assert_close(scaled_dot(q, q), dot(q, q) / math.sqrt(64))
    assert math.sqrt(64) == 8 and round(math.sqrt(512), 1) == 22.6


def test_steps_1():
    s = steps()
    assert s.keys.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert s.scores.tolist() == [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
    assert s.values.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]] and s.queries.tolist() == [
        [1, 0, 2],
        [2, 2, 2],
        [2, 1, 3],
    ]


def test_steps_2():
    assert_close(
        steps(weights=torch.tensor(BY_HAND)).outputs,
        torch.tensor([[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]]),
    )
    rounded = (10 * steps().weights).round() / 10
    assert rounded[0].tolist() == pytest.approx([0.1, 0.5, 0.5]) and rounded[0].sum().item() == pytest.approx(
        1.1
    )
    assert_close(rounded[1:], torch.tensor(BY_HAND[1:]))


def test_steps_3():
    got = torch.tensor(in_pure_python(**EXAMPLE), dtype=torch.float64)
    assert_close(got, torch.tensor(EXACT, dtype=torch.float64), rtol=0, atol=1e-12)
    assert_close(steps(torch.float64).outputs, got, rtol=0, atol=1e-12)


def test_steps_4():
    math.exp(709.78)
    with pytest.raises(OverflowError):
        math.exp(709.79)
    powers = [math.exp(709.5), math.exp(709.5)]
    assert [p / sum(powers) for p in powers] == [0.0, 0.0]  # the sum is inf
    assert math.exp(-745.14) == 0.0 < math.exp(-745.13)
    for dtype, limit in [(torch.float32, 88.73), (torch.float16, 11.09)]:
        scores = torch.tensor([limit, limit - 0.02], dtype=dtype)
        assert (scores.exp() / scores.exp().sum()).isnan().any()
        below = scores - 0.02
        assert below.exp().isfinite().all()
        assert scores.softmax(-1).isfinite().all()


def test_steps_5():
    output = attend(torch.randn(N, D_K), torch.randn(N, D_K), torch.randn(N, D_V)).output
    assert output.shape == (N, D_V)


def test_steps_6():
    layer = worked_example_as_a_torch_layer()
    x = example()["x"]
    output, _ = layer(x, x, x)
    assert_close(output[:, :3], torch.tensor(EXACT), rtol=1e-5, atol=1e-5)
    assert (output[:, 3] == 0).all()
    biases = {name for name, _ in nn.MultiheadAttention(4, 1).named_parameters() if "bias" in name}
    assert biases == {"in_proj_bias", "out_proj.bias"}


def worked_example_as_a_torch_layer():
    """nn.MultiheadAttention with the example's weights: padded to squares, and queries times sqrt(d) to undo
    its scale."""
    given = {name: F.pad(matrix, (0, 1)).T for name, matrix in example().items() if name != "x"}
    layer = nn.MultiheadAttention(4, 1, bias=False)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([2.0 * given["w_query"], given["w_key"], given["w_value"]]))
        layer.out_proj.weight.copy_(torch.eye(4))
    return layer


def test_steps_7():
    s = steps()
    with_root = attend(s.queries, s.keys, s.values).output
    assert_close(attend(s.queries, s.keys, s.values, score=dot).output, s.outputs)
    assert (with_root - s.outputs).abs().max() > 0.1


def test_steps_8():
    linear = nn.Linear(4, 300)
    assert linear.weight.abs().max() <= 4**-0.5
    layer = nn.MultiheadAttention(64, 1)
    assert layer.in_proj_weight.abs().max() <= math.sqrt(6 / (64 + 3 * 64))
    assert steps().scores.max() == 16 and steps().weights.max().item() == pytest.approx(0.98, abs=0.005)


def test_steps_9():
    k = torch.randn(2, 3, 5)
    assert k.mT.shape == (2, 5, 3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert k.T.shape == (5, 3, 2)
    assert all("deprecated" in str(w.message) for w in seen)


def column_example():
    return torch.randn(4, N), torch.randn(3, 4), torch.randn(3, 4), torch.randn(5, 4)


def test_matrix_1():
    i, w_q, w_k, w_v = column_example()
    c = attend_columns(i, w_q, w_k, w_v)
    output, weights = attend(i.T @ w_q.T, i.T @ w_k.T, i.T @ w_v.T, score=dot)
    assert_close(c.O, output.T)
    assert_close(c.A_prime, weights.T)
    assert_close(c.A, c.K.T @ c.Q)


def test_matrix_2():
    one = nn.MultiheadAttention(4, 1, bias=False)
    names = {name: p.numel() for name, p in one.named_parameters()}
    assert names == {
        "in_proj_weight": 3 * 16,
        "out_proj.weight": 16,
    }  # W_q, W_k, W_v in one table; W_o comes on top


def test_matrix_3():
    q, k, v = torch.randn(N, D_K), torch.randn(M, D_K), torch.randn(M, D_V)
    one_by_one = torch.stack([attend(row[None], k, v).output[0] for row in q])
    assert_close(one_by_one, attend(q, k, v).output)


def test_matrix_4():
    i, w_q, w_k, w_v = column_example()
    linear = lambda x: (w_v @ x) @ ((w_k @ x).T @ (w_q @ x))  # noqa: E731
    assert_close(linear(2 * i), 8 * linear(i))
    other_order = ((w_v @ i) @ (w_k @ i).T) @ (w_q @ i)
    assert_close(other_order, linear(i), rtol=1e-4, atol=1e-4)
    full = lambda x: attend_columns(x, w_q, w_k, w_v).O  # noqa: E731
    assert not torch.allclose(full(2 * i), 8 * full(i))


def test_matrix_5():
    i, w_q, w_k, _ = column_example()
    c = attend_columns(i, w_q, w_k, torch.randn(N, 4))  # d_v = n: the wrong order runs
    assert_close(c.V @ c.A_prime, c.O)
    assert (c.A_prime @ c.V - c.O).abs().max() > 0.5


def test_matrix_6():
    x = torch.randn(2, 512)
    w_q, w_k, w_v = (torch.randn(512, 512) / 512**0.5 for _ in range(3))
    output, weights = attend(x @ w_q, x @ w_k, x @ w_v)
    assert (x @ w_q).shape == (2, 512) and weights.shape == (2, 2) and output.shape == (2, 512)


def test_mask_1():
    q, k, v = torch.randn(N, D_K), torch.randn(N, D_K), torch.randn(N, D_V)
    before = attend(q, k, v, mask=causal(N)).output
    k[4:], v[4:] = 100.0, -1e9
    after = attend(q, k, v, mask=causal(N)).output
    assert torch.equal(after[:4], before[:4])
    v[4:] = torch.inf
    assert attend(q, k, v, mask=causal(N)).output[:4].isnan().all()
    assert F.scaled_dot_product_attention(q, k, v, attn_mask=causal(N))[:4].isnan().all()


def test_mask_2():
    mask, scores = torch.tensor([[True, False]]), torch.zeros(1, 2)
    weights = scores.masked_fill(~mask, -1e9).softmax(-1)
    assert weights.tolist() == [[1.0, 0.0]]  # float32: fine
    with pytest.raises(RuntimeError, match=r"overflow|cannot be converted"):
        scores.half().masked_fill(~mask, -1e9)
    nothing = torch.zeros(1, 2, dtype=torch.bool)
    assert scores.masked_fill(~nothing, -1e9).softmax(-1).tolist() == [[0.5, 0.5]]
    low = torch.tensor([[-2e9, 0.0]])
    assert low.masked_fill(~mask, -1e9).softmax(-1).tolist() == [[0.0, 1.0]]  # the hidden key wins
    q = k = torch.ones(1, 1)
    assert attend(q, k.expand(2, 1), torch.eye(2), mask=nothing).weights.tolist() == [[0.0, 0.0]]
    bias = torch.tensor([[-2e9, 0.0]])
    assert attend(q, k.expand(2, 1), torch.eye(2), mask=mask, score_bias=bias).weights.tolist() == [
        [1.0, 0.0]
    ]
