"""Measuring: known amounts of memory and time."""

import time

import networkx
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib import measure
from lesson_lib.attention import attend
from lesson_lib.device import device
from lesson_lib.masks import causal
from lesson_lib.measure import (
    Law,
    cpu_seconds,
    dependencies,
    fit_law,
    growth_exponent,
    operations,
    peak_mib,
    sensitivity,
    smallest,
)
from lesson_lib.recurrent import Recurrent


def test_peak_counts_what_is_held_at_once():
    mib = 2**20 // 4  # float32 numbers in one MiB
    assert peak_mib(lambda: torch.empty(5 * mib)) == pytest.approx(5, abs=0.01)
    assert peak_mib(lambda: [torch.empty(2 * mib) for _ in range(3)]) == pytest.approx(6, abs=0.01)

    def one_after_the_other():
        for _ in range(3):
            torch.empty(2 * mib)

    assert peak_mib(one_after_the_other) == pytest.approx(2, abs=0.01)


def test_the_peak_is_that_of_one_thread_however_many_compute():
    """torch's fused kernel keeps a buffer for each of its threads."""
    q, before = torch.randn(1, 4, 1024, 32), torch.get_num_threads()
    peaks = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            peaks.append(peak_mib(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)))
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
    assert peaks[0] == peaks[1]


def test_peak_leaves_out_what_was_there_before():
    kept = torch.empty(2**20)
    assert peak_mib(lambda: torch.empty(2**18)) == pytest.approx(1, abs=0.01)
    assert kept.shape == (2**20,)


def test_processor_seconds_do_not_count_sleep():
    assert cpu_seconds(lambda: time.sleep(0.05), repeats=1) < 0.04

    def busy():
        end = time.process_time() + 0.03
        while time.process_time() < end:
            pass

    assert cpu_seconds(busy, repeats=1) >= 0.03


def test_growth_exponent_stands_one_outlier():
    sizes = [1, 2, 4, 8, 16, 32, 64]
    values = [size**1.5 for size in sizes]
    values[3] *= 10
    assert growth_exponent(sizes, values) == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize(
    "sizes, values, words",
    [([1], [1], "two different"), ([1, 2], [1], "one value per"), ([1, 2], [0, 1], "positive")],
)
def test_bad_input_gets_a_sentence(no_shape_hook, sizes, values, words):
    with pytest.raises(ValueError, match=words):
        growth_exponent(sizes, values)


def test_no_repeats_gets_a_sentence():
    with pytest.raises(ValueError, match="repeats"):
        cpu_seconds(lambda: None, repeats=0)


N, D = 7, 5


class Turned(nn.Module):
    """Tokens as columns, as torch's convolutions want them."""

    def forward(self, x):
        return x.T[None]


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: lambda x: x @ torch.ones(D, 3), N * D * 3),
        (lambda: lambda x: attend(x, x, x), 2 * N * N * D),
        (lambda: lambda x: attend(x, x, x, weights=False), 2 * N * N * D),
        (lambda: nn.Sequential(Turned(), nn.Conv1d(D, D, 3, padding=1)), 3 * N * D * D),
        (lambda: nn.RNN(D, D), 2 * N * D * D),
        (lambda: nn.GRU(D, D), 3 * 2 * N * D * D),
        (lambda: nn.LSTM(D, D), 4 * 2 * N * D * D),
    ],
    ids=["product", "attention", "fused attention", "convolution", "RNN", "GRU", "LSTM"],
)
def test_operations_by_hand(make, expected):
    network, x = make(), torch.randn(N, D)
    with torch.no_grad():
        assert operations(lambda: network(x)) == expected


def tokens():
    return {("in", i): torch.randn(D, requires_grad=True) for i in range(N)}


def steps(cell, inputs):
    """A loop over the tokens: the state after each."""
    state, states = torch.zeros(1, D), {}
    for i, x in enumerate(inputs.values()):
        state = cell(x[None], state)
        states["out", i] = state
    return states


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.GRUCell])
def test_a_recurrent_network_passes_every_step_between(cell):
    inputs = tokens()
    graph = dependencies(inputs, steps(cell(D, D), inputs))
    assert graph.number_of_edges() == N + N - 1
    assert networkx.shortest_path_length(graph, ("in", 0), ("out", N - 1)) == N
    assert networkx.dag_longest_path_length(graph) == N
    assert not networkx.has_path(graph, ("in", 3), ("out", 2))  # the left sees nothing of the right


@pytest.mark.parametrize(
    "inputs, units, words",
    [
        (lambda x: {"a": x}, lambda x: {"a": 2 * x}, "a name of its own, got twice: a"),
        (lambda x: {"a": x.detach()}, lambda x: {"b": 2 * x},
         "input 'a' must be a leaf that requires gradients"),
        (lambda x: {"a": 2 * x}, lambda x: {"b": 2 * x}, "input 'a' must be a leaf"),
        (lambda x: {"a": None}, lambda x: {"b": 2 * x}, "input 'a' must be a leaf"),
        (lambda x: {"a": x}, lambda x: {"b": x.detach()}, "unit 'b' must be computed from the inputs"),
        (lambda x: {"a": x}, lambda x: {"b": 3}, "unit 'b' must be computed"),
    ],
)  # fmt: skip
def test_tensors_that_hang_on_nothing_get_a_sentence(no_shape_hook, inputs, units, words):
    x = torch.ones(D, requires_grad=True)
    with pytest.raises(ValueError, match=words):
        dependencies(inputs(x), units(x))


def test_sensitivity_is_the_norm_of_a_block_of_derivatives():
    W = torch.tensor([[3.0, 0.0], [4.0, 0.0], [0.0, 12.0]])  # (c, d): norm 13

    def layer(x):  # output 0 is W times token 2, output 1 is twice W times token 0
        return torch.stack([x[:, 2], 2 * x[:, 0]], 1) @ W.T

    assert_close(sensitivity(layer, torch.randn(3, 2)), torch.tensor([[0.0, 0.0, 13.0], [26.0, 0.0, 0.0]]))


@pytest.mark.parametrize("system", ["attention", "causal", "RNN", "convolution"])
def test_sensitivity_is_exactly_0_where_nothing_is_seen(system):
    rnn, conv = Recurrent("RNN", D, D).to(device()), nn.Conv1d(D, D, 3, padding=1)
    i = torch.arange(N)
    layer, seen = {
        "attention": (lambda x: attend(x, x, x).output, torch.ones(N, N, dtype=torch.bool)),
        "causal": (lambda x: attend(x, x, x, mask=causal(N)).output, i[:, None] >= i),
        "RNN": (rnn, i[:, None] >= i),
        "convolution": (lambda x: conv(x.mT).mT, (i[:, None] - i).abs() <= 1),
    }[system]
    table = sensitivity(layer, torch.randn(N, D))
    assert table.shape == (N, N) and torch.equal(table > 0, seen)


def test_sensitivity_takes_more_or_fewer_outputs_than_tokens():
    x = torch.randn(N, D)
    assert_close(sensitivity(lambda x: x.sum(1, keepdim=True), x), torch.full((1, N), D**0.5))


@pytest.mark.parametrize(
    "layer, got",
    [
        (lambda x: x[0], r"\(7, 5\)"),
        (lambda x: x.expand(2, N, D), r"\(2, 7, 5\)"),
        (lambda x: None, "NoneType"),
        (lambda x: attend(x, x, x), "Attended"),
        (lambda x: [x], "list"),
    ],
)
def test_a_layer_that_gives_no_sequence_gets_a_sentence(no_shape_hook, layer, got):
    with pytest.raises(ValueError, match=f"layer must give a tensor .1, tokens, features., got {got}"):
        sensitivity(layer, torch.randn(N, D))


@pytest.mark.parametrize(
    "law, text",
    [
        (Law(0.3, 2.1e-5, 3e-9), "0.30 + 2.1e-5 n + 3.0e-9 n²"),
        (Law(0, 0.25, 0), "0.25 n"),
        (Law(12.4, 0.0, 1e7), "12 + 1.0e7 n²"),
        (Law(0.001, 0, 0), "0.0010"),
        (Law(0, 0, 0), "0"),
    ],
)
def test_a_law_reads_without_its_vanishing_parts(law, text):
    assert str(law) == text


@pytest.mark.parametrize(
    "law", [Law(5, 3, 2), Law(0, 0.001, 0), Law(2e-4, 3e-7, 5e-11), Law(7, 0, 1e-6), Law(11, 0, 0)]
)
def test_points_of_a_law_give_the_law(law):
    sizes = [2**k for k in range(3, 17)]
    found = fit_law(sizes, [law.at(n) for n in sizes])
    for name in ("constant", "linear", "quadratic"):
        assert getattr(found, name) == pytest.approx(getattr(law, name), rel=1e-6), name


def test_no_part_is_below_zero():
    """n - 1 has a constant of -1; the best law without one is a multiple of n: the mean of 1/2 and 3/4 and
    7/8, weighed by their squares."""
    found = fit_law([2, 4, 8], [1, 3, 7], degree=1)
    shares = [2 / 1, 4 / 3, 8 / 7]  # least squares of `linear * share = 1`
    assert found.constant == 0
    assert found.linear == pytest.approx(sum(shares) / sum(share**2 for share in shares))


def test_small_and_large_points_count_alike():
    """Two long calls contradict each other: by absolute errors their mean, 1.5 n, would be the law, whatever
    the short ones say."""
    found = fit_law([1, 2, 1000, 1000], [1, 2, 1000, 2000], degree=1)
    assert found.at(1) == pytest.approx(1, rel=0.1) and found.linear == pytest.approx(1.07, abs=0.05)


def test_degree_1_has_no_quadratic_part():
    sizes = [1, 10, 100, 1000]
    values = [n + 1e-4 * n * n for n in sizes]
    assert fit_law(sizes, values).quadratic == pytest.approx(1e-4)
    assert fit_law(sizes, values, degree=1).quadratic == 0


@pytest.mark.parametrize(
    "sizes, values, degree, words",
    [
        ([1, 2, 3], [1, 2], 2, "one value per size, got 3 sizes and 2 values"),
        ([1, 2, 2], [1, 2, 3], 2, "a law of degree 2 has 3 parts, and needs as many different sizes, got 2"),
        ([1], [1], 1, "a law of degree 1 has 2 parts"),
        ([0, 1, 2], [1, 2, 3], 2, "sizes must be a number > 0, got 0"),
        ([1, 2, 3], [1, -2, 3], 2, "values must be a number > 0, got -2"),
        ([1, 2, 3], [1, float("nan"), 3], 2, "values must be a number > 0, got nan"),
        ([1, 2, 3], [1, float("inf"), 3], 2, "values must be a number > 0, got inf"),
        ([1, True, 3], [1, 2, 3], 2, "sizes must be a number > 0, got True"),
        (["1", 2, 3], [1, 2, 3], 2, "sizes must be a number > 0, got '1'"),
        (None, [1, 2, 3], 2, "sizes must be a list of numbers, got NoneType"),
        ([1, 2, 3], "123", 2, "values must be a list of numbers, got str"),
        ([1, 2, 3], [1, 2, 3], 3, "degree must be one of 1, 2, got 3"),
        ([1, 2, 3], [1, 2, 3], True, "degree must be one of 1, 2, got True"),
    ],
)
def test_points_that_make_no_law_get_a_sentence(no_shape_hook, sizes, values, degree, words):
    with pytest.raises(ValueError, match=words):
        fit_law(sizes, values, degree=degree)


@pytest.mark.parametrize("n", [-1, None, "7", True, float("nan")])
def test_a_law_asks_for_a_number_of_tokens(no_shape_hook, n):
    with pytest.raises(ValueError, match="n must be a number >= 0, got"):
        Law(1, 1, 1).at(n)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 97])
def test_the_smallest_is_found_wherever_it_is(most):
    for wanted in range(1, most + 1):
        asked = []
        assert smallest(lambda k, wanted=wanted, asked=asked: asked.append(k) or k >= wanted, most) == wanted
        assert max(asked) <= most and len(asked) <= 2 * most.bit_length() + 1
    assert smallest(lambda k: False, most) is None


@pytest.mark.parametrize("most", [0, -1, 2.5, None, True])
def test_the_smallest_of_nothing_gets_a_sentence(no_shape_hook, most):
    with pytest.raises(ValueError, match="most must be a whole number >= 1, got"):
        smallest(lambda k: True, most)


def test_seconds_are_the_median_of_the_calls_after_the_first(monkeypatch):
    ticks, calls = iter([0.0, 5.0, 10.0, 11.0, 20.0, 23.0]), []  # three calls of 5, 1 and 3 seconds
    monkeypatch.setattr(measure, "clock", lambda: next(ticks))
    assert measure.seconds(lambda: calls.append(1)) == 3.0 and len(calls) == 4
    with pytest.raises(ValueError, match="repeats must be a whole number >= 1, got 0"):
        measure.seconds(lambda: None, repeats=0)
