"""Part 08b: stages hold the products that torch counts, and two numbers make a time."""

import pytest
import torch

from lesson_lib.experiments import costs as measured
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
