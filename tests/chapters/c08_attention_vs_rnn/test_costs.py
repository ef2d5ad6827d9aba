"""Part 08b: stages hold the products that torch counts, two numbers make a time, and what was measured of
both layers."""

import pytest
import torch

from lesson_lib.chapters.c08_attention_vs_rnn import costs, costs_figures
from lesson_lib.experiments import costs as measured
from lesson_lib.experiments import results
from lesson_lib.measure import operations
from lesson_lib.recurrent import Recurrent
from tests import code_of

asked = code_of("c08_attention_vs_rnn")


@pytest.mark.parametrize("kind, rows", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_stages_of_a_recurrent_layer_hold_the_products_that_torch_counts(kind, rows):
    n, d = 11, 5
    layer, x = Recurrent(kind, d, d), torch.randn(1, n, d)
    stages = asked.rnn_stages(n, d, rows)
    assert stages.sum() == operations(lambda: layer(x)) == measured.formula(kind, n, d)
    assert len(stages) == n + 1 and stages[0] == stages[1:].sum()


def test_a_time_by_hand():
    stages = torch.tensor([100.0, 50.0])
    assert asked.time_on(stages, 3.0, 50.0) == 9
    assert asked.time_on_2(torch.tensor([10.0, 3.0]), 4, 2.0) == 8


def test_the_machine_that_made_08b_finds_attention_first_at_512_and_not_at_4096():
    taken = {
        (row["kind"], row["n"], row["seed"]): row["seconds"]
        for row in results("costs")["rows"]
        if row["part"] == "sweep" and row["over"] == "n" and not row["backward"]
    }
    for seed in range(3):
        assert taken["attention alone", 512, seed] < taken["RNN", 512, seed]
        assert taken["attention alone", 4096, seed] > taken["RNN", 4096, seed]


def test_on_the_gpu_attention_is_first_at_each_length_that_both_ran():
    by_rnn, by_attention = (dict(zip(*curve, strict=True)) for curve in costs.on_gpu().values())
    assert max(by_rnn) == 4096 and max(by_attention) == 16384
    assert all(by_attention[n] < seconds for n, seconds in by_rnn.items())


def test_the_figures_of_08b_draw_what_they_are_given():
    curves = {"RNN": [1.0, 2.0], "attention alone": [0.5, 4.0]}
    left, right = costs_figures.products_and_seconds([64, 256], curves, curves).figure.axes
    assert left.get_yscale() == right.get_yscale() == "log"
    over = {name: ([64, 256], ys) for name, ys in curves.items()}
    (axes,) = costs_figures.model_and_clock(over, {"RNN": ([64, 256], [1.5, 2.5])}).figure.axes
    assert list(axes.lines[-1].get_ydata()) == [1.5, 2.5] and axes.lines[-1].get_markerfacecolor() == "none"
    assert axes.lines[-1].get_color() == axes.lines[0].get_color()
