"""What of the questions in 05a_order.md is code."""

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def put_back(outputs, order):
    return outputs[order.argsort()]


def _shuffled(order: list[int], outputs: Tensor) -> Case:
    return {"outputs": outputs, "order": torch.tensor(order, device="cpu")}


def _more_put_back(drawn: Draw) -> list[Case]:
    order = drawn(1, 11).argsort().tolist()
    return [_shuffled(order, drawn(2, 11, 3)), _shuffled([1, 2, 3, 4, 0], drawn(3, 5, 2))]


def code_row(position, d):
    frequencies = 10000.0 ** (-torch.arange(0, d, 2) / d)
    angles = position * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


def _more_code_row(drawn: Draw) -> list[Case]:
    far = (100 * drawn(1, 1)).abs().round().item()
    return [{"position": far, "d": 10}, {"position": 7.0, "d": 14}]


def _undoes_itself(outputs: Tensor, order: Tensor) -> bool:
    return bool((order[order] == torch.arange(len(order), device=order.device)).all())


def _all_rows_alike(outputs: Tensor, order: Tensor) -> bool:
    return bool((outputs == outputs[:1]).all())


def code_row_2(position, d, base):
    frequencies = base ** (-torch.arange(0, d, 2) / d)
    angles = position * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


CODE = {
    "put_back": Code(
        solution=put_back,
        cases=(
            lambda: [_shuffled([1, 0], table([[1.0, 2.0], [3.0, 4.0]]))],
            lambda: [_shuffled([1, 2, 0], primes(3, 2))],
            lambda: [_shuffled([3, 0, 6, 1, 5, 2, 4], drawn(1, 7, 5))],
        ),
        hidden=_more_put_back,
    ),
    "put_back_2": Code(
        wrong=(
            _undoes_itself,
            _all_rows_alike,
        ),
    ),
    "code_row": Code(
        solution=code_row,
        cases=(
            lambda: [{"position": 0.0, "d": 4}],
            lambda: [{"position": 1.0, "d": 4}],
            lambda: [{"position": 5.0, "d": 6}],
            lambda: [{"position": 1000.0, "d": 8}],
        ),
        hidden=_more_code_row,
    ),
    "code_row_2": Code(
        solution=code_row_2,
        cases=(
            lambda: [{"position": 1.0, "d": 4, "base": 100.0}],
            lambda: [{"position": 1000.0, "d": 8, "base": 500_000.0}],
            lambda: [{"position": 3.0, "d": 2, "base": 7.0}],
        ),
    ),
}
