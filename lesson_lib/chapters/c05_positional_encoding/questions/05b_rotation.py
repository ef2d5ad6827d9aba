"""What of the questions in 05b_rotation.md is code."""

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def one_clock(angle):
    cos, sin = angle.cos(), angle.sin()
    return torch.tensor([[cos, sin], [-sin, cos]])


def _angle(angle: float) -> Case:
    return {"angle": table(angle)}


def _more_one_clock(drawn: Draw) -> list[Case]:
    return [{"angle": drawn(1, 1)[0]}, {"angle": -drawn(2, 1).abs()[0] - 1}]


def turn_rows(x, frequency):
    angles = torch.arange(len(x)) * frequency
    a, b = x[:, 0], x[:, 1]
    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.stack(turned, dim=-1)


def _rows(x: Tensor, frequency: float) -> Case:
    return {"x": x, "frequency": frequency}


def _more_turn_rows(drawn: Draw) -> list[Case]:
    return [_rows(drawn(1, 11, 2), 0.01), _rows(drawn(2, 3, 2), 1.0)]


def one_clock_2(angle):
    cos, sin = angle.cos(), angle.sin()
    return torch.tensor([[cos, -sin], [sin, cos]])


def turn_rows_2(x, frequency, start):
    angles = (start + torch.arange(len(x))) * frequency
    a, b = x[:, 0], x[:, 1]
    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.stack(turned, dim=-1)


CODE = {
    "one_clock": Code(
        solution=one_clock,
        cases=(
            lambda: [_angle(0.0)],
            lambda: [_angle(1.5707964)],
            lambda: [_angle(0.9272952), _angle(-0.9272952)],
        ),
        hidden=_more_one_clock,
    ),
    "one_clock_2": Code(
        solution=one_clock_2,
        cases=(
            lambda: [{"angle": table(1.5707964)}],
            lambda: [{"angle": table(0.9272952)}, {"angle": table(-0.9272952)}],
        ),
    ),
    "turn_rows": Code(
        solution=turn_rows,
        cases=(
            lambda: [_rows(table([[2.0, 3.0]]), 1.0)],
            lambda: [_rows(table([[2.0, 3.0], [2.0, 3.0]]), 1.5707964)],
            lambda: [_rows(drawn(1, 5, 2), 0.1)],
        ),
        hidden=_more_turn_rows,
    ),
    "turn_rows_2": Code(
        solution=turn_rows_2,
        cases=(
            lambda: [{"x": table([[2.0, 3.0]]), "frequency": 1.5707964, "start": 1}],
            lambda: [{"x": drawn(1, 3, 2), "frequency": 0.3, "start": 7}],
            lambda: [{"x": drawn(2, 5, 2), "frequency": 0.1, "start": 0}],
        ),
    ),
}
