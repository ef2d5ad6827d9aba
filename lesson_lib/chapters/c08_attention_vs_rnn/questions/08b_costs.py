"""What of the questions in 08b_costs.md is code."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import table
from lesson_lib.checks.questions import Code


def rnn_stages(n, d, rows):
    at_once = n * rows * d * d  # W x of all tokens
    one_by_one = n * [rows * d * d]  # U h, token after token
    return torch.tensor([at_once, *one_by_one], dtype=torch.float64)


def _sizes(n: int, d: int, rows: int) -> Case:
    return {"n": n, "d": d, "rows": rows}


def _more_rnn_stages(_draw: Draw) -> list[Case]:
    return [_sizes(5, 7, 3), _sizes(11, 2, 4)]


def time_on(stages, wait, rate):
    return (wait + stages / rate).sum()


def _on(stages: list[float], wait: float, rate: float) -> Case:
    return {"stages": table(stages).double(), "wait": wait, "rate": rate}


def _more_time_on(_draw: Draw) -> list[Case]:
    return [_on([7.0, 11.0, 13.0], 0.25, 3.0), _on([5.0], 0.0, 2.0)]


def time_on_2(stages: Float[Tensor, " stages"], units: int, wait: float) -> Float[Tensor, ""]:
    rounds = (stages / units).ceil()
    return (wait + rounds).sum()


def _units_of(stages: list[float], units: int, wait: float) -> Case:
    return {"stages": table(stages), "units": units, "wait": wait}


CODE = {
    "rnn_stages": Code(
        solution=rnn_stages,
        cases=(
            lambda: [_sizes(2, 3, 1)],
            lambda: [_sizes(1, 5, 1)],
            lambda: [_sizes(3, 2, 4)],
            lambda: [_sizes(512, 64, 1)],
        ),
        reference=lambda n, d, rows: (
            torch.cat([torch.tensor([n]), torch.ones(n, dtype=torch.long)]).double() * rows * d**2
        ),
        hidden=_more_rnn_stages,
    ),
    "rnn_stages_2": Code(
        wrong=(
            lambda n, d, rows: n == 1,
            lambda n, d, rows: n * d * rows == 0,
        ),
    ),
    "time_on": Code(
        solution=time_on,
        cases=(
            lambda: [_on([100.0], 3.0, 50.0)],
            lambda: [_on([100.0, 50.0], 3.0, 50.0)],
            lambda: [_on([3.0, 4.0, 5.0], 0.0, 4.0)],
            lambda: [_on([1.0] * 17, 0.5, 1e12)],
        ),
        reference=lambda stages, wait, rate: len(stages) * wait + stages.sum() / rate,
        hidden=_more_time_on,
    ),
    "time_on_2": Code(
        solution=time_on_2,
        cases=(
            lambda: [_units_of([10.0], 5, 0.0)],
            lambda: [_units_of([10.0], 4, 0.0)],
            lambda: [_units_of([10.0, 3.0], 4, 2.0)],
            lambda: [_units_of([3.0] * 7, 1000, 0.5)],
        ),
    ),
}
