"""What of the questions in 08c_linear.md is code."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.masks import causal


def by_state(query, key, value):
    S, z, outputs = 0, 0, []
    for q, k, v in zip(query, key, value, strict=True):
        S = S + torch.outer(k, v)  # (d_k, d_v)
        z = z + k
        outputs.append(q @ S / (q @ z))
    return torch.stack(outputs)


def _features(seed: int, n: int, d_k: int, d_v: int, draw=drawn) -> Case:
    return {
        "query": draw(seed, n, d_k).abs() + 0.1,
        "key": draw(seed + 1, n, d_k).abs() + 0.1,
        "value": draw(seed + 2, n, d_v),
    }


def _numbers(query: list[float], key: list[float], value: list[float]) -> Case:
    return {name: table(x)[:, None] for name, x in (("query", query), ("key", key), ("value", value))}


def _softmax(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return attend(query, key, value, mask=causal(len(query), device=query.device)).output


def _more_by_state(drawn: Draw) -> list[Case]:
    return [_features(1, 7, 5, 3, drawn), _features(11, 13, 2, 5, drawn)]


def gated_state(key, value, gate):
    S = torch.zeros(key.shape[1], value.shape[1])
    for k, v, g in zip(key, value, gate, strict=True):
        S = g * S + torch.outer(k, v)
    return S


def _gated(seed: int, n: int, d_k: int, d_v: int, draw=drawn) -> Case:
    return {
        "key": draw(seed, n, d_k),
        "value": draw(seed + 1, n, d_v),
        "gate": draw(seed + 2, n).sigmoid(),
    }


def _ann(*gate: float) -> Case:
    return {"key": table([[1]] * 3), "value": table([[10], [20], [60]]), "gate": table(gate)}


def _more_gated(drawn: Draw) -> list[Case]:
    return [_gated(1, 7, 5, 3, drawn), _gated(11, 2, 3, 7, drawn)]


def by_state_2(
    S: Float[Tensor, "d_k d_v"],
    z: Float[Tensor, " d_k"],
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
) -> Float[Tensor, " d_v"]:
    S = S + key.mT @ value
    z = z + key.sum(0)
    return query[-1] @ S / (query[-1] @ z)


def _state(S: list, z: list, query: list, key: list, value: list) -> Case:
    return {
        "S": table(S),
        "z": table(z),
        "query": table(query),
        "key": table(key),
        "value": table(value),
    }


def _any_state(seed: int, n: int, d_k: int, d_v: int) -> Case:
    shapes = {"S": (d_k, d_v), "z": (d_k,), "query": (n, d_k), "key": (n, d_k), "value": (n, d_v)}
    made = {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return made | {name: made[name].abs() + 0.1 for name in ("z", "query", "key")}


def gated_state_2(
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    gate: Float[Tensor, "n d_k"],
) -> Float[Tensor, "d_k d_v"]:
    S = torch.zeros(key.shape[1], value.shape[1])
    for k, v, g in zip(key, value, gate, strict=True):
        S = g[:, None] * S + torch.outer(k, v)
    return S


def _rows(seed: int, n: int, d_k: int, d_v: int) -> Case:
    return {
        "key": drawn(seed, n, d_k),
        "value": drawn(seed + 1, n, d_v),
        "gate": drawn(seed + 2, n, d_k).sigmoid(),
    }


CODE = {
    "by_state": Code(
        solution=by_state,
        cases=(
            lambda: [_numbers([1, 1], [1, 3], [8, 4])],
            lambda: [_numbers([2, 5, 0.5], [1, 1, 2], [3, 9, 0])],
            lambda: [
                {"query": table([[1, 0], [1, 1]]), "key": table([[1, 2], [1, 1]]), "value": table([[6], [2]])}
            ],
            lambda: [_features(21, 5, 3, 2), _features(31, 4, 2, 2)],
        ),
        wrong=(_softmax,),
        hidden=_more_by_state,
    ),
    "by_state_2": Code(
        solution=by_state_2,
        cases=(
            lambda: [_state([[8]], [1], [[1]], [[3]], [[4]])],
            lambda: [_state([[8]], [1], [[1], [2]], [[3], [1]], [[4], [0]])],
            lambda: [_any_state(11, 3, 2, 3)],
        ),
    ),
    "gated_state": Code(
        solution=gated_state,
        cases=(
            lambda: [_ann(0.5, 0.5, 0.5)],
            lambda: [_ann(0.3, 0.1, 1.0)],
            lambda: [_ann(0.5, 1.0, 0.0)],
            lambda: [_gated(21, 5, 3, 2)],
        ),
        hidden=_more_gated,
    ),
    "gated_state_2": Code(
        solution=gated_state_2,
        cases=(
            lambda: [
                {
                    "key": table([[1, 1], [1, 1]]),
                    "value": table([[10, 30], [1, 2]]),
                    "gate": table([[1, 1], [0, 1]]),
                }
            ],
            lambda: [
                {
                    "key": table([[1, 2], [1, 0]]),
                    "value": table([[10, 30], [1, 2]]),
                    "gate": table([[0.3, 0.7], [0.5, 0.1]]),
                }
            ],
            lambda: [_rows(11, 5, 3, 2)],
        ),
    ),
}
