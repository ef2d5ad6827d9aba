"""What of the questions in 05c_beyond_training.md is code."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.questions import Code


def alibi_bias(n: int, slope: float) -> Float[Tensor, "n n"]:
    place = torch.arange(n)
    return -slope * (place[:, None] - place).abs()


def _more_alibi_bias(drawn: Draw) -> list[Case]:
    return [{"n": 7, "slope": drawn(1, 1).abs().item() + 0.1}, {"n": 2, "slope": 2.0}]


def squeezed(n: int, trained: int) -> Float[Tensor, " n"]:
    return torch.arange(n) * min(1.0, trained / n)


def _more_squeezed(drawn: Draw) -> list[Case]:
    return [{"n": 13, "trained": 5}, {"n": 3, "trained": 7}]


def _one_token(n: int, slope: float) -> bool:
    return n < 2


def _no_slope(n: int, slope: float) -> bool:
    return slope == 0


def _fits(n: int, trained: int) -> bool:
    return n <= trained


CODE = {
    "alibi_bias": Code(
        solution=alibi_bias,
        cases=(
            lambda: [{"n": 2, "slope": 0.5}],
            lambda: [{"n": 3, "slope": 0.5}],
            lambda: [{"n": 5, "slope": 0.125}],
        ),
        hidden=_more_alibi_bias,
    ),
    "alibi_bias_2": Code(
        wrong=(
            _one_token,
            _no_slope,
        ),
    ),
    "squeezed": Code(
        solution=squeezed,
        cases=(
            lambda: [{"n": 4, "trained": 4}],
            lambda: [{"n": 8, "trained": 4}, {"n": 6, "trained": 4}],
            lambda: [{"n": 3, "trained": 8}],
        ),
        hidden=_more_squeezed,
    ),
    "squeezed_2": Code(
        wrong=(_fits,),
    ),
}
