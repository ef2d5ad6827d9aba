"""Part 08b: stages hold the products that torch counts, two numbers make a time, and what it says of the
P100."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import costs, costs_figures
from lesson_lib.experiments import costs as measured
from lesson_lib.experiments import results
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.measure import operations
from lesson_lib.recurrent import Recurrent
from tests import code_of

asked = code_of("c08_attention_vs_rnn")

GPU = (5e-6, 4.75e12)


@pytest.mark.parametrize("kind, rows", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_stages_of_a_recurrent_layer_hold_the_products_that_torch_counts(kind, rows):
    n, d = 11, 5
    layer, x = Recurrent(kind, d, d), torch.randn(1, n, d)
    stages = asked.rnn_stages(n, d, rows)
    assert stages.sum() == operations(lambda: layer(x)) == measured.formula(kind, n, d)
    assert len(stages) == n + 1 and stages[0] == stages[1:].sum()


def test_stages_of_attention_hold_the_products_that_torch_counts():
    n, d = 11, 5
    x, heads = torch.randn(1, n, d), MultiHeadAttention(d, 1)
    alone, layer = (costs.attention_stages(n, d, projections=some) for some in (False, True))
    assert alone.sum() == operations(lambda: attend(x, x, x)) and len(alone) == 2
    assert layer.sum() == operations(lambda: heads(x, x, x)) and len(layer) == 4


def test_a_time_by_hand():
    stages = torch.tensor([100.0, 50.0])
    assert asked.time_on(stages, 3.0, 50.0) == 9
    assert asked.time_on_2(torch.tensor([10.0, 3.0]), 4, 2.0) == 8


def test_equal_times_where_part_08b_says():
    d, (wait, rate) = 64, GPU
    n = round(d + wait * rate / (2 * d))
    assert n == 185_611
    rnn = asked.time_on(asked.rnn_stages(n, d, 1), wait, rate)
    alone = asked.time_on(costs.attention_stages(n, d, projections=False), wait, rate)
    assert_close(rnn, alone, rtol=1e-4, atol=0)
    assert (512 - d) * 2 * d == pytest.approx(57_000, rel=0.01)  # products per wait at which 512 are equal


@pytest.mark.parametrize(
    "texts, n, ratio", [(500, 50, 1.9), (32, 512, 1.8), (1, 512, 14.7), (1, 4096, 4.9), (32, 4096, 0.5)]
)
def test_what_part_08b_says_of_batches(texts, n, ratio):
    lstm = asked.time_on(texts * asked.rnn_stages(n, 512, 4), *GPU)
    layer = asked.time_on(texts * costs.attention_stages(n, 512, projections=True), *GPU)
    assert (lstm / layer).item() == pytest.approx(ratio, abs=0.05)


def test_what_part_08b_says_of_the_machine_that_made_its_page():
    rows = results("costs")["rows"]
    meet = [
        row["seconds"]
        for row in rows
        if row["part"] == "crossing"
        and (row["kind"], row["other"], row["backward"]) == ("attention alone", "RNN", False)
    ]
    assert len(meet) == 3 and all(1900 < n < 2400 for n in meet)
    taken = {
        (row["kind"], row["n"], row["seed"]): row["seconds"]
        for row in rows
        if row["part"] == "sweep" and row["over"] == "n" and not row["backward"]
    }
    for seed in range(3):
        assert taken["attention alone", 512, seed] < taken["RNN", 512, seed]
        assert 2 * taken["LSTM", 4096, seed] < taken["RNN", 4096, seed]


def test_the_figures_of_08b_draw_what_they_are_given():
    curves = {"RNN": [1.0, 2.0], "attention alone": [0.5, 4.0]}
    left, right = costs_figures.products_and_seconds([64, 256], curves, curves).figure.axes
    assert left.get_yscale() == right.get_yscale() == "log"
    (axes,) = costs_figures.model_and_clock([64, 256], curves, {"RNN": [1.5, 2.5]}).figure.axes
    assert list(axes.lines[-1].get_ydata()) == [1.5, 2.5] and axes.lines[-1].get_markerfacecolor() == "none"
    assert axes.lines[-1].get_color() == axes.lines[0].get_color()
    picture = costs_figures.on_another_machine([64, 256], curves)
    assert picture.caption.startswith("A model")
