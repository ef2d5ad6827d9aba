"""What of the questions in 07a_convolution.md is code."""

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def shift_weights(h, w, down, right):
    weights = torch.zeros(h, w, h, w)  # who asks, who is looked at
    for i in range(h):
        for j in range(w):
            if 0 <= i + down < h and 0 <= j + right < w:
                weights[i, j, i + down, j + right] = 1
    return weights.reshape(h * w, h * w)


def _moved(h: int, w: int, down: int, right: int) -> Case:
    return {"h": h, "w": w, "down": down, "right": right}


def _more_shift_weights(_draw: Draw) -> list[Case]:
    return [_moved(5, 3, 2, -1), _moved(2, 7, 0, 3), _moved(3, 2, -1, 1)]


def goal_query(goal, sharpness):
    down, right = goal
    return -sharpness * torch.stack([torch.ones_like(down), -2 * down, -2 * right])


def _head(goal: Tensor, sharpness: float) -> Case:
    return {"goal": goal, "sharpness": sharpness}


def _more_goal_query(drawn: Draw) -> list[Case]:
    return [_head(drawn(1, 2), 0.3), _head(drawn(2, 2), 7.0)]


def _one_row(h: int, w: int, down: int, right: int) -> bool:
    return h == 1


def _straight(h: int, w: int, down: int, right: int) -> bool:
    return right == 0


def _far_off(h: int, w: int, down: int, right: int) -> bool:
    return abs(down) > h or abs(right) >= h * w


def goal_query_2(goal, sharpness):
    return torch.cat([-sharpness, 2 * sharpness * goal])


def _oblong(goal: Tensor, sharpness: Tensor) -> Case:
    return {"goal": goal, "sharpness": sharpness}


CODE = {
    "shift_weights": Code(
        solution=shift_weights,
        cases=(
            lambda: [_moved(1, 3, 0, 1), _moved(1, 3, 0, -1)],
            lambda: [_moved(2, 3, 1, 0)],
            lambda: [_moved(3, 2, -1, 1)],
            lambda: [_moved(2, 3, 0, 0), _moved(5, 7, 2, -3)],
        ),
        hidden=_more_shift_weights,
    ),
    "shift_weights_2": Code(
        wrong=(
            _one_row,
            _straight,
            _far_off,
        ),
    ),
    "goal_query": Code(
        solution=goal_query,
        cases=(
            lambda: [_head(table([0.0, 1.0]), 1.0)],
            lambda: [_head(table([-1.0, 0.0]), 1.0)],
            lambda: [_head(table([2.0, -3.0]), 5.0)],
            lambda: [_head(drawn(3, 2), 0.5)],
        ),
        hidden=_more_goal_query,
    ),
    "goal_query_2": Code(
        solution=goal_query_2,
        cases=(
            lambda: [_oblong(table([0.0, 1.0]), table([1.0, 1.0]))],
            lambda: [_oblong(table([2.0, -1.0]), table([5.0, 0.5]))],
            lambda: [_oblong(drawn(1, 2), table([3.0, 0.0]))],
        ),
    ),
}
