"""What layers cost: every formula against the count of a real run, the fits and crossings by hand."""

import math
import re

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.experiments import costs
from lesson_lib.linear import as_rnn

N, D = 7, 5


@pytest.mark.parametrize("kind", costs.KINDS)
@pytest.mark.parametrize("n, d", [(1, 3), (N, D), (63, 2), (64, 3), (65, D), (128, 7), (131, 3)])
def test_the_count_is_the_formula(kind, n, d):
    assert costs.counted(kind, n, d) == costs.formula(kind, n, d) > 0


@pytest.mark.parametrize("kind", costs.KINDS)
def test_theory_in_words_is_the_formula(kind):
    words = costs.THEORY[kind].multiplications.replace("²", "**2")
    product = re.sub(r"(?<=[\dnd]) (?=[nd])", " * ", words)
    for n, d in [(64, 16), (512, 64), (4096, 512)]:
        assert eval(product, {"n": n, "d": d}) == costs.formula(kind, n, d)


def test_layers_are_what_their_names_say():
    x = torch.randn(1, N, D)
    for kind in ("attention alone", "attention with its table"):
        assert_close(costs.layer(kind, D)(x), attend(x, x, x).output, atol=1e-5, rtol=1e-5)
    assert_close(costs.layer("linear attention", D)(x), as_rnn(x, x, x), atol=1e-5, rtol=1e-5)
    far = x.clone()
    far[:, -1] = 9.0
    change = [(costs.layer(kind, D), kind) for kind in costs.KINDS]
    moved = {kind for layer, kind in change if not torch.equal(layer(x)[:, 0], layer(far)[:, 0])}
    assert moved == set(costs.TABLES)  # in one layer, only full attention carries the last token to the first


@pytest.mark.parametrize(
    "kind, other, expected",
    [
        ("attention alone", "RNN", 5),  # 2 n² d = 2 n d² at n = d
        ("attention alone", "convolution", 8),  # at 3 d / 2
        ("attention with its table", "GRU", 15),
        ("attention alone", "LSTM", 20),
        ("self-attention", "LSTM", 10),  # 4 n d² + 2 n² d = 8 n d² at n = 2 d
        ("self-attention", "RNN", 1),  # its projections alone are more
    ],
)
def test_where_operations_meet_by_hand(kind, other, expected):
    def meet(last):
        rows = [{"kind": k, "n": n, "d": 5, "seconds": n} for n in (2, last) for k in (kind, other)]
        return costs.crossings(rows)[0]["operations"]

    assert meet(30) == expected
    assert meet(expected - 1 if expected > 3 else 3) == (None if expected > 3 else 1)


def test_the_upper_half_leaves_the_flat_start_out():
    rows = [{"kind": "x", "n": n, "seconds": max(8, n)} for n in (1, 2, 4, 8, 16, 32)]
    whole, upper = costs.exponents(rows, "n")["x"]
    assert whole < 0.7 and upper == pytest.approx(1)


@pytest.mark.parametrize(
    "first, second, expected",
    [
        ([1, 4, 16], [2, 4, 8], 2.0),  # they touch at the middle size
        ([1, 4, 16], [4, 8, 16], None),  # equal at the end, not above
        ([2, 4, 8], [1, 2, 4], 1.0),  # above from the start
        (
            [3, 1, 16],
            [2, 2, 2],
            2 ** (1 + 1 / 4 - 0),
        ),  # only the last time counts: 1 -> 16 passes 2 at a quarter of the way
        ([1, 2, 3], [9, 9, 9], None),
    ],
)
def test_crossings_by_hand(first, second, expected):
    found = costs.crossing([1, 2, 4], first, second)
    assert found is None if expected is None else found == pytest.approx(expected)


def test_a_cache_grows_and_a_state_does_not():
    d = costs.RECIPE["generation"]["d"]
    rows = costs.generation(9)
    kept = {
        s: [row["numbers"] for row in rows if row["system"] == s]
        for s in ("linear attention", "softmax attention", "LSTM")
    }
    assert [row["token"] for row in rows[:4]] == [1, 2, 4, 8] and len(rows) == 12
    assert kept["linear attention"] == [d * (d + 1)] * 4
    assert kept["softmax attention"] == [2 * d, 4 * d, 8 * d, 16 * d]
    assert kept["LSTM"] == [2 * d] * 4
    assert all(row["seconds"] > 0 for row in rows)


def test_threads_are_put_back(monkeypatch):
    small = costs.RECIPE["threads"] | {"kinds": ["RNN"], "n": 3, "d": 2, "batches": [1, 2], "rounds": 1}
    monkeypatch.setitem(costs.RECIPE, "threads", small)
    before = torch.get_num_threads()
    rows = costs.threads()
    assert torch.get_num_threads() == before
    assert [(row["batch"], row["threads"]) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert all(0 < row["seconds"] < math.inf for row in rows)


def test_what_cannot_be_measured_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="kind must be one of convolution, RNN"):
        costs.formula("rnn", N, D)
    with pytest.raises(ValueError, match="n must be a whole number >= 1"):
        costs.counted("RNN", 0, D)
    with pytest.raises(ValueError, match="two values for each"):
        costs.crossing([1, 2], [1], [1, 2])
    with pytest.raises(ValueError, match="rising sizes"):
        costs.crossing([2, 1], [1, 2], [1, 2])
    with pytest.raises(ValueError, match="must be positive"):
        costs.crossing([1, 2], [0, 1], [1, 1])
