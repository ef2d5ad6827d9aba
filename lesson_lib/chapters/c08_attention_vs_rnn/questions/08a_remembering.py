"""What of the questions in 08a_remembering.md is code."""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def lstm_step(summed, cell):
    i, f, g, o = summed.chunk(4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return torch.stack([o.sigmoid() * cell.tanh(), cell])


def _summed(summed: list[float], cell: list[float]) -> Case:
    return {"summed": table(summed), "cell": table(cell)}


def _more_lstm_step(drawn: Draw) -> list[Case]:
    return [{"summed": drawn(1, 12), "cell": drawn(2, 3)}, {"summed": drawn(3, 20), "cell": drawn(4, 5)}]


def _kept_and_written(rows: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.sigmoid(rows[1]) * cell, torch.sigmoid(rows[0]), torch.tanh(rows[2])


def way_back(u, states):
    slopes = u * (1 - states[1:] ** 2)
    return slopes.prod()


def _states(u: float, states: list[float]) -> Case:
    return {"u": u, "states": table(states)}


def _by_autograd(u: float, states: Tensor) -> Tensor:
    """The same by torch: tokens that lead to these states, and the gradient of the last."""
    with torch.enable_grad():
        first = h = states[0].clone().requires_grad_()
        for before, after in itertools.pairwise(states):
            h = torch.tanh(torch.atanh(after) - u * before + u * h)
        (slope,) = torch.autograd.grad(h, first)
    return slope


def _more_way_back(drawn: Draw) -> list[Case]:
    return [{"u": 1.3, "states": drawn(1, 5).tanh()}, {"u": -0.7, "states": drawn(2, 4).tanh()}]


def lstm_step_2(
    summed: Float[Tensor, " three_d"],
    cell: Float[Tensor, " d"],
) -> Float[Tensor, "two d"]:
    f, g, o = summed.chunk(3)
    keep = f.sigmoid()
    cell = keep * cell + (1 - keep) * g.tanh()
    return torch.stack([o.sigmoid() * cell.tanh(), cell])


def _three(summed: list[float], cell: list[float]) -> Case:
    return {"summed": table(summed), "cell": table(cell)}


def way_back_2(
    U: Float[Tensor, "d d"],
    states: Float[Tensor, "n d"],
) -> Float[Tensor, "d d"]:
    way = torch.eye(len(U), dtype=U.dtype, device=U.device)
    for h in states[1:]:
        way = (1 - h**2)[:, None] * (U @ way)  # row by row: tanh's slope at that unit
    return way


def _units(U: list[list[float]], states: list[list[float]]) -> Case:
    return {"U": table(U), "states": table(states)}


CODE = {
    "lstm_step": Code(
        solution=lstm_step,
        cases=(
            lambda: [_summed([-40.0, 40.0, 3.0, 0.0], [2.0])],
            lambda: [_summed([40.0, -40.0, 1.0, 40.0], [2.0])],
            lambda: [_summed([0.0, 0.0, 2.0, 0.0], [6.0])],
            lambda: [{"summed": drawn(7, 20), "cell": drawn(8, 5)}],
        ),
        reference=lambda summed, cell: torch.stack(
            [
                torch.sigmoid(summed.view(4, -1)[3])
                * torch.tanh(torch.addcmul(*_kept_and_written(summed.view(4, -1), cell))),
                torch.addcmul(*_kept_and_written(summed.view(4, -1), cell)),
            ]
        ),
        hidden=_more_lstm_step,
    ),
    "lstm_step_2": Code(
        solution=lstm_step_2,
        cases=(
            lambda: [_three([40.0, 3.0, 0.0], [2.0])],
            lambda: [_three([0.0, 40.0, 40.0], [6.0])],
            lambda: [{"summed": drawn(5, 9), "cell": drawn(6, 3)}],
        ),
    ),
    "way_back": Code(
        solution=way_back,
        cases=(
            lambda: [_states(0.5, [0.5, 0.0])],
            lambda: [_states(2.0, [0.0, 0.6])],
            lambda: [_states(0.5, [0.76, 0.36, 0.18, 0.09])],
            lambda: [_states(-1.5, [0.1, 0.2, -0.3, 0.5, 0.4])],
        ),
        reference=_by_autograd,
        hidden=_more_way_back,
    ),
    "way_back_2": Code(
        solution=way_back_2,
        cases=(
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.1], [0.0, 0.0]])],
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.1], [0.5, 0.0]])],
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.1, 0.2], [0.5, 0.0], [0.0, 0.6]])],
            lambda: [{"U": drawn(3, 3, 3), "states": drawn(4, 5, 3).tanh()}],
        ),
    ),
}
