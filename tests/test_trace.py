"""The seven steps: every tensor that the sources print."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.trace import EXAMPLE, example, in_pure_python, seven_steps

EXACT = [
    [1.9366210616669624, 6.683105308334811, 1.5950684074995565],
    [1.9999939663351456, 7.9639915951322156, 0.0539764053125496],
    [1.9997046127769653, 7.759892254657784, 0.3583892946751152],
]
BY_HAND = [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]]


def steps(dtype=torch.float32, **extra):
    return seven_steps(**example(dtype), **extra)


def test_every_printed_tensor_of_the_sources():
    s = steps()
    assert s.keys.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert s.queries.tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert s.values.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]
    assert s.scores.tolist() == [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
    printed = [
        [6.3379e-02, 4.6831e-01, 4.6831e-01],
        [6.0337e-06, 9.8201e-01, 1.7986e-02],
        [2.9539e-04, 8.8054e-01, 1.1917e-01],
    ]
    assert_close(s.weights, torch.tensor(printed), rtol=1e-4, atol=0)


def test_exact_outputs_in_torch_and_in_pure_python():
    assert_close(steps(torch.float64).outputs, torch.tensor(EXACT, dtype=torch.float64), rtol=0, atol=1e-12)
    got = torch.tensor(in_pure_python(**EXAMPLE), dtype=torch.float64)
    assert_close(got, torch.tensor(EXACT, dtype=torch.float64), rtol=0, atol=1e-12)


def test_weights_made_by_hand_give_the_rounded_outputs():
    s = steps(weights=torch.tensor(BY_HAND))
    assert_close(s.outputs, torch.tensor([[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]]))
    assert_close(s.weighted_values[0, 1], torch.tensor([1.0, 4.0, 0.0]))  # weight .5 of value (2, 8, 0)


def test_n_inputs_n_outputs_and_the_values_width_is_the_outputs_width():
    s = seven_steps(torch.randn(2, 7, 5), torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 11))
    assert s.outputs.shape == (2, 7, 11)
    assert s.weighted_values.shape == (2, 7, 7, 11)
    assert_close(s.weighted_values.sum(-2), s.weights @ s.values)


def test_pure_python_survives_scores_beyond_exp():
    assert in_pure_python([[40.0]], [[40.0]], [[1.0]], [[2.0]]) == [[80.0]]


def test_bad_input_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="w_key has 3 rows"):
        seven_steps(torch.ones(2, 4), torch.ones(4, 3), torch.ones(3, 4), torch.ones(4, 3))
    with pytest.raises(ValueError, match="one row per query"):
        steps(weights=torch.ones(2, 2))
    with pytest.raises(ValueError, match="w_query must have as many rows"):
        in_pure_python(**EXAMPLE | {"w_query": [[1]]})
