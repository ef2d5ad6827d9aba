"""What layers cost: every formula against the count of a real run, the fits and crossings by hand, and the
stored repeats."""

import math
import re
import time

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.experiments import costs, results
from lesson_lib.linear import as_rnn

N, D = 7, 5


@pytest.mark.parametrize("kind", costs.KINDS)
@pytest.mark.parametrize("n, d", [(1, 3), (N, D), (63, 2), (64, 3), (65, D), (128, 7), (131, 3)])
def test_the_count_is_the_formula(kind, n, d):
    assert costs.counted(kind, n, d) == costs.formula(kind, n, d) > 0


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("convolution", 3 * N * D * D),
        ("RNN", 2 * N * D * D),
        ("GRU", 6 * N * D * D),
        ("LSTM", 8 * N * D * D),
        ("self-attention", 4 * N * D * D + 2 * N * N * D),
        ("attention alone", 2 * N * N * D),
        ("attention with its table", 2 * N * N * D),
        (
            "linear attention",
            2 * N * N * D + 2 * N * D * D + N * D,
        ),  # one chunk: a table, and a state of nothing
    ],
)
def test_formulas_by_hand(kind, expected):
    assert costs.formula(kind, N, D) == expected


@pytest.mark.parametrize("kind", costs.KINDS)
def test_theory_in_words_is_the_formula(kind):
    words = costs.THEORY[kind].multiplications.replace("²", "**2")
    product = re.sub(r"(?<=[\dnd]) (?=[nd])", " * ", words)
    for n, d in [(64, 16), (512, 64), (4096, 512)]:
        assert eval(product, {"n": n, "d": d}) == costs.formula(kind, n, d)


@pytest.mark.parametrize("kind", costs.KINDS)
def test_theory_names_the_larger_powers(kind):
    def power(over):
        sizes = [2**20, 2**24]  # the other size is small against them
        values = [costs.formula(kind, *((s, 64) if over == "n" else (64, s))) for s in sizes]
        return math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])

    assert power("n") == pytest.approx(costs.THEORY[kind].in_n, abs=0.01)
    if kind != "linear attention":  # with n = 64 there is one chunk, whose state nobody reads
        assert power("d") == pytest.approx(costs.THEORY[kind].in_d, abs=0.01)


@pytest.mark.parametrize("kind", costs.KINDS)
def test_layers_map_tokens_to_tokens(kind):
    x = torch.randn(2, N, D, requires_grad=True)
    y = costs.layer(kind, D)(x)
    assert y.shape == x.shape and y.device == x.device
    y.sum().backward()
    assert x.grad.abs().sum() > 0


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


def test_the_table_is_what_memory_pays_for():
    mib = 2**20 / 4
    n, d = 512, 4
    table, fused = (costs.mib(kind, n, d) for kind in ("attention with its table", "attention alone"))
    if costs.measure.device().type == "cpu":
        assert table == pytest.approx(n * n / mib, rel=0.05)
    assert fused < table / 4
    assert costs.mib("attention with its table", n, d, backward=True) > 1.9 * table
    assert costs.mib("RNN", 2 * n, d) > 1.5 * costs.mib("RNN", n, d)


def test_seconds_are_medians_of_layers_in_turn(monkeypatch):
    order = []
    waits = {"a": iter([9, 1, 5, 2]), "b": iter([9, 3, 3, 4])}  # the first of each is the warm-up
    now = [0.0]

    def call(name):
        def once():
            order.append(name)
            now[0] += next(waits[name])

        return once

    monkeypatch.setattr(costs.measure, "clock", lambda: now[0])
    assert costs.measure.seconds_in_turn({"a": call("a"), "b": call("b")}, repeats=3) == {"a": 2, "b": 3}
    assert "".join(order) == "abababab"


def test_seconds_of_real_layers():
    taken = costs.seconds(["RNN", "attention alone"], N, D, backward=True, rounds=1)
    assert list(taken) == ["RNN", "attention alone"] and min(taken.values()) > 0


def test_a_sweep_has_a_row_for_each_layer_and_size(monkeypatch):
    monkeypatch.setitem(costs.RECIPE, "over", {"n": {"sizes": [2, 4, 8, 16], "d": 3}})
    rows = costs.sweep("n", ("RNN", "attention alone"), rounds=1)
    assert [(row["kind"], row["n"], row["d"]) for row in rows[:3]] == [
        ("RNN", 2, 3), ("attention alone", 2, 3), ("RNN", 4, 3),
    ]  # fmt: skip
    assert len(rows) == 8 and all(
        row["operations"] == costs.formula(row["kind"], row["n"], 3) for row in rows
    )
    powers = costs.exponents(rows, "n", "operations")
    assert powers["RNN"] == pytest.approx((1, 1)) and powers["attention alone"] == pytest.approx((2, 2))
    # 2 n d² = 2 n² d at n = d
    (meet,) = costs.crossings(rows)
    assert meet["kind"] == "attention alone" and meet["other"] == "RNN" and meet["operations"] == 3


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


@pytest.mark.parametrize(
    "sizes, first, second, words",
    [
        ([1, 2], [1], [1, 2], "two values for each"),
        ([2, 1], [1, 2], [1, 2], "rising sizes"),
        ([], [], [], "rising sizes"),
        ([1, 2], [0, 1], [1, 1], "must be positive"),
    ],
)
def test_crossings_of_nonsense_get_a_sentence(sizes, first, second, words):
    with pytest.raises(ValueError, match=words):
        costs.crossing(sizes, first, second)


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


def test_chunks_are_faster_than_the_loop():
    speed = costs.chunks(256)
    # far more: see the benchmark; here a margin for busy machines
    assert speed["chunked"] > 2 * speed["loop"] > 0


def test_threads_are_put_back(monkeypatch):
    small = costs.RECIPE["threads"] | {"kinds": ["RNN"], "n": 3, "d": 2, "batches": [1, 2], "rounds": 1}
    monkeypatch.setitem(costs.RECIPE, "threads", small)
    before = torch.get_num_threads()
    rows = costs.threads()
    assert torch.get_num_threads() == before
    assert [(row["batch"], row["threads"]) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert all(0 < row["seconds"] < math.inf for row in rows)


def test_processor_time_does_not_count_sleep():
    begun = costs.measure.clock()
    time.sleep(0.05)
    taken = costs.measure.clock() - begun
    assert taken < 0.04 if costs.measure.device().type == "cpu" else taken >= 0.05


@pytest.mark.parametrize("kind", [None, "rnn", ["RNN"], 3])
def test_other_kinds_get_a_sentence(kind, no_shape_hook):
    for call in (
        lambda: costs.layer(kind, D),
        lambda: costs.formula(kind, N, D),
        lambda: costs.mib(kind, N, D),
    ):
        with pytest.raises(ValueError, match="kind must be one of convolution, RNN"):
            call()


@pytest.mark.parametrize("size", [None, 0, -1, 2.0, True, "3"])
def test_other_sizes_get_a_sentence(size, no_shape_hook):
    with pytest.raises(ValueError, match="d must be a whole number >= 1"):
        costs.layer("RNN", size)
    for call in (
        lambda: costs.counted("RNN", size, D),
        lambda: costs.generation(size),
        lambda: costs.chunks(size),
    ):
        with pytest.raises(ValueError, match="n must be a whole number >= 1"):
            call()
    with pytest.raises(ValueError, match="heads must be a whole number >= 1"):
        costs.chunks(N, size)
    with pytest.raises(ValueError, match="repeats must be a whole number >= 1"):
        costs.seconds(["RNN"], N, D, rounds=size)


@pytest.mark.parametrize("over", [None, "m", ["n"]])
def test_other_axes_get_a_sentence(over, no_shape_hook):
    with pytest.raises(ValueError, match="over must be one of n, d"):
        costs.sweep(over)


@pytest.fixture(scope="module")
def stored():
    def rows(part, **wanted):
        return [
            row
            for row in results("costs")["rows"]
            if row["part"] == part and all(row[key] == value for key, value in wanted.items())
        ]

    return rows


def test_stored_counts_are_the_formulas(stored):
    rows = stored("exact")
    sizes = sum(len(fixed["sizes"]) for fixed in costs.RECIPE["over"].values())
    assert len(rows) == sizes * len(costs.KINDS)
    assert all(row["operations"] == costs.formula(row["kind"], row["n"], row["d"]) for row in rows)
    for row in stored("exponent", of="operations"):
        law = costs.THEORY[row["kind"]]
        if row["kind"] not in ("self-attention", "linear attention"):  # sums of two powers
            assert row["all"] == pytest.approx(law.in_n if row["over"] == "n" else law.in_d, abs=1e-3)


def test_stored_seconds_grow_with_n_as_told(stored):
    """Three repeats each, over the upper half of the lengths, 512 to 4,096."""
    bounds = {
        "convolution": (0.5, 1.0), "RNN": (0.75, 1.2), "GRU": (0.8, 1.2), "LSTM": (0.6, 1.0),
        "self-attention": (1.4, 1.9),
        "attention alone": (1.7, 2.1), "attention with its table": (1.9, 2.4), "linear attention": (0.6, 1.1),
    }  # fmt: skip
    for kind, (least, most) in bounds.items():
        powers = [row["upper"] for row in stored("exponent", over="n", of="seconds", kind=kind)]
        assert len(powers) == 6 and least < min(powers) and max(powers) < most, kind


def test_stored_seconds_of_loops_do_not_grow_with_d_as_operations_do(stored):
    for kind in ("RNN", "GRU"):
        powers = [row["all"] for row in stored("exponent", over="d", of="seconds", kind=kind)]
        assert len(powers) == 6 and max(powers) < 0.8  # operations: 2


def test_stored_crossings(stored):
    """At d = 64, of attention alone: operations meet an RNN's at 64, seconds beyond 1,900 or not up
    to 4,096."""
    for other, operations, least in [("RNN", 64, 1900), ("GRU", 192, 4096), ("LSTM", 256, 600)]:
        rows = stored("crossing", kind="attention alone", other=other)
        assert len(rows) == 6 and {row["operations"] for row in rows} == {operations}
        assert all(row["seconds"] is None or row["seconds"] > least for row in rows)
    assert {row["operations"] for row in stored("crossing", kind="self-attention", other="RNN")} == {1}


def test_stored_generation(stored):
    d = costs.RECIPE["generation"]["d"]
    for row in stored("generation"):
        kept = {"linear attention": d * (d + 1), "softmax attention": 2 * d * row["token"], "LSTM": 2 * d}
        assert row["numbers"] == kept[row["system"]]
    for seed in costs.RECIPE["seeds"]:
        for system in costs.GENERATORS:
            first, last = (
                stored("generation", seed=seed, system=system, token=token)[0]["seconds"]
                for token in (64, 4096)
            )
            assert last > 5 * first if system == "softmax attention" else last < 2 * first


def test_stored_chunks(stored):
    rows = stored("chunks")
    assert len(rows) == 12 and all(row["chunked"] > 9 * row["loop"] for row in rows)  # the goal was 6


def test_stored_threads(stored):
    """How many times as fast two threads are: attention nearly twice, an RNN at batch 1 not at all, loops at
    batch 32 in between."""

    def gains(kind, batch):
        one, two = (
            [row["seconds"] for row in stored("threads", kind=kind, batch=batch, threads=count)]
            for count in (1, 2)
        )
        assert len(one) == len(two) == 3
        return [a / b for a, b in zip(one, two, strict=True)]

    assert max(gains("RNN", 1)) < 1.1
    assert max(gains("LSTM", 1)) < 1.5 < min(gains("self-attention", 1) + gains("self-attention", 32))
    assert 1.2 < min(gains("RNN", 32)) < max(gains("RNN", 32)) < 1.6
    assert min(gains("LSTM", 32)) > 1.5


def test_the_figures_that_lesson_08_tells(stored):
    """Beyond 2,000, thirty times further out; an LSTM two and a half times as fast as an RNN; a second thread
    that is of no use to an RNN."""
    forward = {"kind": "attention alone", "backward": False}
    assert all(2000 < row["seconds"] < 2500 for row in stored("crossing", other="RNN", **forward))
    with_backward = {"kind": "attention alone", "backward": True}
    assert all(row["seconds"] is None for row in stored("crossing", other="RNN", **with_backward))
    for seed in costs.RECIPE["seeds"]:
        rnn, lstm = (
            stored("sweep", over="n", backward=False, n=4096, kind=kind, seed=seed)[0]["seconds"]
            for kind in ("RNN", "LSTM")
        )
        assert 2.4 < rnn / lstm < 2.9
    one, two = (
        [row["seconds"] for row in stored("threads", kind="RNN", batch=1, threads=count)] for count in (1, 2)
    )
    assert all(0.95 < a / b < 1.05 for a, b in zip(one, two, strict=True))
    assert all(9 < row["chunked"] / row["loop"] < 65 for row in stored("chunks"))
