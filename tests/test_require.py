"""What a caller may pass: each sentence names the argument, what it must be and what it is."""

import pytest
import torch

from lesson_lib import require


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "2", True, None, torch.tensor(2)])
def test_a_whole_number_is_one(wrong):
    require.whole(n=1)
    with pytest.raises(ValueError, match=r"^n must be a whole number >= 1, got "):
        require.whole(n=wrong)


def test_limits_are_told():
    require.whole(at_least=0, at_most=3, radius=3)
    with pytest.raises(ValueError, match="radius must be a whole number from 0 to 3, got 4"):
        require.whole(at_least=0, at_most=3, radius=4)
    with pytest.raises(ValueError, match="lr must be a number > 0, got 0"):
        require.number(above=0, lr=0)
    with pytest.raises(ValueError, match="lr must be a number >= 0, got nan"):
        require.number(lr=float("nan"))


def test_one_of_tells_kinds_apart():
    require.one_of((0, None), radius=None)
    with pytest.raises(ValueError, match="radius must be one of 0, None, got False"):
        require.one_of((0, None), radius=False)


def test_a_tensor_is_told_by_its_shape():
    with pytest.raises(ValueError, match=r"got a tensor of shape \(2, 3\); .* x.shape"):
        require.whole(n=torch.zeros(2, 3))


@pytest.mark.parametrize("shapes", [[(2, 1, 5, 3), (7, 5, 3)], [(5, 3), (5, 3)], [(1, 4, 2), (6, 1, 4, 2)]])
def test_leading_axes_are_those_of_torch(shapes):
    found = require.leading(*(torch.zeros(shape) for shape in shapes))
    assert found == torch.broadcast_shapes(*(shape[:-2] for shape in shapes))


def test_leading_axes_that_do_not_fit_are_told():
    q, k = torch.zeros(2, 3, 4), torch.zeros(5, 3, 4)
    with pytest.raises(ValueError, match="leading axes of query, key and value do not fit together"):
        require.inputs(q, k, k)
