"""The claims about positions: one test each, named after its id."""

import codecs
import contextlib
import io
import itertools
import math

import pytest
import sympy
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.chapters.c05_positional_encoding.experiments import order
from lesson_lib.experiments import results
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal
from lesson_lib.positions import Learned, frequencies, rotation, sinusoidal

N, D = 7, 16


def table(n, d):
    return sinusoidal(n, d, dtype=torch.float64)


def changes(column):
    return int((column.sign().diff() != 0).sum())


def shares(kind, steps):
    """Lowest, middle and highest test accuracy at each length, over the stored seeds."""
    return order.by_length(results("order")["rows"], steps)[kind][1:]


def test_position_1():
    layer, x, shuffle = MultiHeadAttention(D, 4), torch.randn(N, D), torch.randperm(N).roll(1)
    moved = x[shuffle]
    assert_close(layer(moved, moved, moved).output, layer(x, x, x).output[shuffle])
    masked = [layer(y, y, y, mask=causal(N)).output for y in (x, x.flip(0))]
    assert not torch.allclose(masked[1], masked[0].flip(0), atol=1e-3)
    assert max(shares("none", 1200)[2]) < 0.3
    assert shares("none, causal", 1200)[1][0] > max(shares("none", 1200)[2])


def test_position_2():
    by_formula = [
        [f(i / 10000 ** (2 * j / D)) for j in range(D // 2) for f in (math.sin, math.cos)] for i in range(N)
    ]
    assert_close(table(N, D), torch.tensor(by_formula, dtype=torch.float64))


def test_position_3():
    assert len(frequencies(8)) == 4  # j = 0, 1, 2, 3
    assert sinusoidal(N, 8).shape[-1] == 8  # j = 4 would need columns 8 and 9


def test_position_4():
    p = table(1000, D)
    sines = [changes(p[:, 2 * j]) for j in range(D // 2)]
    assert sines == sorted(sines, reverse=True)
    raw = [changes(column) for column in p.T]
    assert raw != sorted(raw, reverse=True)
    ratios = [a / b for a, b in itertools.pairwise(sines[:4])]
    assert all(abs(ratio - 10 ** (4 * 2 / D)) < 0.3 for ratio in ratios)


def test_position_5():
    p = table(1000, 32)
    strongest = torch.fft.rfft(p - p.mean(0), dim=0).abs().argmax(0)
    assert strongest[6] == strongest[7]
    assert_close(p[:, 6] ** 2 + p[:, 7] ** 2, torch.ones(1000, dtype=torch.float64))


def test_position_6():
    i, delta, w = sympy.symbols("i delta omega", real=True)

    def pair(t):
        return sympy.Matrix([sympy.sin(t * w), sympy.cos(t * w)])

    turn = sympy.Matrix(
        [[sympy.cos(delta * w), sympy.sin(delta * w)], [-sympy.sin(delta * w), sympy.cos(delta * w)]]
    )
    assert sympy.simplify(turn * pair(i) - pair(i + delta)) == sympy.zeros(2, 1)
    assert sympy.simplify(turn.det()) == 1
    p = table(900, 64)
    for step in (1, 10, 700):
        assert_close(
            p[:200] @ rotation(step, 64, dtype=torch.float64).T, p[step : step + 200], atol=1e-6, rtol=0
        )


def test_position_7():
    p = table(100, 64)
    by_pair = p @ p.T
    assert max(by_pair.diagonal(k).std(correction=0) for k in range(-90, 91)) < 1e-9
    assert_close(by_pair, by_pair.T)
    assert int((by_pair[0].diff() > 0).nonzero()[0]) + 1 == 6
    between = torch.randn(64, 64, dtype=torch.float64)
    assert (p @ between @ p.T).diagonal(3).std() > 1
    quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    signed = p @ torch.block_diag(*[quarter] * 32) @ p.T
    assert_close(signed, -signed.T)
    assert [signed[50, 55].item(), signed[20, 25].item()] == pytest.approx([-4.9359, -4.9359], abs=1e-4)
    assert max(signed.diagonal(k).std(correction=0) for k in range(-90, 91)) < 1e-9
    aimed = p @ rotation(3, 64, dtype=torch.float64).T @ p.T
    assert all(aimed[i].argmax() == i + 3 for i in range(90))


def test_position_8():
    t = torch.arange(1000, dtype=torch.float64) * 2 * math.pi / 1000
    strongest = torch.fft.rfft((50 * t).sin() * (8 * t).sin()).abs().topk(2).indices
    assert sorted(strongest.tolist()) == [42, 58]


def test_position_9():
    with pytest.raises(ValueError, match="128 positions"):
        Learned(128, D)(129)
    cached = sinusoidal(200, D)[None]
    with pytest.raises(RuntimeError):
        torch.randn(1, 201, D) + cached[:, :201]
    assert (torch.randn(1, 201, D) + cached[:, :1]).shape == (1, 201, D)
    assert len(sinusoidal(201, D)) == 201


def test_position_10():
    spent = {
        kind: order.position_parameters(order.Order(kind))
        for kind in ("sinusoidal", "shaw", "floater", "learned")
    }
    assert spent["sinusoidal"] == 0
    assert spent["learned"] == 128 * 64
    assert 0 < spent["shaw"] < spent["learned"]
    for kind in ("sinusoidal", "shaw", "floater"):
        order.Order(kind)(torch.zeros(1, 300, dtype=torch.long))
    with pytest.raises(ValueError, match="positions"):
        order.Order("learned")(torch.zeros(1, 129, dtype=torch.long))
    assert shares("shaw", 1200)[0][-1] > 0.85
    assert max(shares("sinusoidal", 1200)[2][-1], shares("floater", 1200)[2][-1]) < 0.75


def test_position_11():
    p = table(500, 6)
    found = torch.linalg.lstsq(p[:-5], p[5:]).solution.T
    assert_close(found, rotation(5, 6, dtype=torch.float64), atol=1e-6, rtol=0)
    assert_close(p[:-5] @ found.T, p[5:], atol=1e-8, rtol=0)


def test_position_12():
    model = order.Order("sinusoidal").to("cpu")
    one, two = (model.tokens(torch.randint(16, (1, 32), device="cpu")) for _ in range(2))
    assert not torch.allclose(one, two)
    assert_close((one + model.added(32)) - one, (two + model.added(32)) - two, atol=1e-4, rtol=0)


def test_position_13():
    one, many = table(45, 2), table(45, 64)
    assert (one[1:] - one[0]).norm(dim=-1).argmin() + 1 == 44
    assert (many[1:] - many[0]).norm(dim=-1).argmin() + 1 == 1
    assert round((2 * math.pi / frequencies(512)[-1]).item()) == 60_611


def test_position_14():
    w, token, code = torch.randn(5, D), torch.randn(D), torch.randn(D)
    assert_close(w @ (token + code), torch.cat([w, w], 1) @ torch.cat([token, code]))
    codes, place, fitted = sinusoidal(32, 64), torch.arange(32).repeat(16), torch.rand(512) < 0.75
    sums = (torch.randn(16, 1, 64) + codes).flatten(0, 1)
    to_code = torch.linalg.lstsq(sums[fitted], codes[place[fitted]], rcond=1e-6).solution
    assert torch.equal((sums[~fitted] @ to_code @ codes.T).argmax(-1), place[~fitted])


def test_position_15():
    ones, third = torch.ones(1, 1, 9), torch.full((1, 1, 3), 1 / 3)
    assert int((F.conv1d(ones, third, padding=1)[0, 0] < 0.99).sum()) == 2
    assert_close(F.conv1d(F.pad(ones, (1, 1), mode="circular"), third), ones)
    recurrent, x = nn.RNN(D, D, batch_first=True), torch.randn(1, N, D)
    assert not torch.allclose(recurrent(x.flip(1))[0], recurrent(x)[0].flip(1), atol=1e-2)


def test_position_16():
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    sentences = codecs.decode(this.s, "rot13").splitlines()[2:]
    # read one by one: not a verb among them
    assert (
        [sentence.split()[0] for sentence in sentences]
        == "Beautiful Explicit Simple Complex Flat Sparse Readability Special Although Errors Unless In There"
        " Although Now Although If If Namespaces".split()
    )
    assert sum(" is " in sentence for sentence in sentences) == 10
    openings = [
        getattr(str, name).__doc__.split()[0] for name in dir(str) if name.islower() and name[0] != "_"
    ]
    assert openings.count("Return") > len(openings) / 2


def test_position_17():
    learned, fixed = (shares(kind, 1200)[1][0] for kind in ("learned", "sinusoidal"))
    assert min(learned, fixed) > 0.9
    assert abs(learned - fixed) < 0.1
