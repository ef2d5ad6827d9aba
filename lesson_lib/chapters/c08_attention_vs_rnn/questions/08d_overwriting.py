"""What of the questions in 08d_overwriting.md is code."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def delta_state(key, value, beta):
    S = torch.zeros(key.shape[1], value.shape[1], dtype=key.dtype)
    for k, v, b in zip(key, value, beta, strict=True):
        S = S + b * torch.outer(k, v - k @ S)
    return S


def corrected(key, value, beta):
    A = torch.eye(len(key), dtype=key.dtype) + (beta[:, None] * (key @ key.mT)).tril(-1)
    return torch.linalg.solve_triangular(A, beta[:, None] * value, upper=False)


def _ann(*beta: float) -> Case:
    return {"key": table([[1]] * 3), "value": table([[10], [20], [60]]), "beta": table(beta)}


def _any(seed: int, n: int, d_k: int, d_v: int, draw=drawn) -> Case:
    return {
        "key": draw(seed, n, d_k) / d_k**0.5,
        "value": draw(seed + 1, n, d_v),
        "beta": draw(seed + 2, n).sigmoid(),
    }


def _more(drawn: Draw) -> list[Case]:
    return [_any(1, 7, 5, 3, drawn), _any(11, 4, 3, 7, drawn)]


def delta_state_2(
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    beta: Float[Tensor, " n"],
    gate: Float[Tensor, " n"],
) -> Float[Tensor, "d_k d_v"]:
    S = torch.zeros(key.shape[1], value.shape[1])
    for k, v, b, g in zip(key, value, beta, gate, strict=True):
        S = g * S
        S = S + b * torch.outer(k, v - k @ S)
    return S


def corrected_2(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    beta: Float[Tensor, " n"],
) -> Float[Tensor, "n d_v"]:
    A = torch.eye(len(key)) + (beta[:, None] * (key @ key.mT)).tril(-1)
    U = torch.linalg.solve_triangular(A, beta[:, None] * value, upper=False)
    return (query @ key.mT).tril() @ U


CODE = {
    "delta_state": Code(
        solution=delta_state,
        cases=(
            lambda: [_ann(1, 1, 1)],
            lambda: [_ann(0.25, 0.25, 0.25)],
            lambda: [_ann(1, 0, 0.2)],
            lambda: [
                {
                    "key": table([[0.6, 0.8], [1, 0], [1, 0]]),
                    "value": table([[30], [10], [60]]),
                    "beta": table([1, 1, 1]),
                }
            ],
            lambda: [_any(21, 5, 3, 2)],
        ),
        hidden=_more,
    ),
    "delta_state_2": Code(
        solution=delta_state_2,
        cases=(
            lambda: [_ann(1, 1, 1) | {"gate": table([0.5, 0.5, 0.5])}],
            lambda: [_ann(0.5, 0.5, 0.5) | {"gate": table([0.5, 0.5, 0.5])}],
            lambda: [_any(21, 5, 3, 2) | {"gate": drawn(31, 5).sigmoid()}],
        ),
    ),
    "corrected": Code(
        solution=corrected,
        cases=(
            lambda: [{"key": table([[1], [1]]), "value": table([[10], [60]]), "beta": table([1, 1])}],
            lambda: [{"key": table([[1], [1]]), "value": table([[10], [60]]), "beta": table([0.5, 0.5])}],
            lambda: [_ann(1, 1, 0.5)],
            lambda: [_any(21, 5, 3, 2)],
        ),
        hidden=_more,
    ),
    "corrected_2": Code(
        solution=corrected_2,
        cases=(
            lambda: [
                {
                    "query": table([[1], [1]]),
                    "key": table([[1], [1]]),
                    "value": table([[10], [60]]),
                    "beta": table([1, 1]),
                }
            ],
            lambda: [{"query": table([[2], [3], [0.5]])} | _ann(1, 0.5, 0.2)],
            lambda: [{"query": drawn(31, 5, 3)} | _any(21, 5, 3, 2)],
        ),
    ),
}
