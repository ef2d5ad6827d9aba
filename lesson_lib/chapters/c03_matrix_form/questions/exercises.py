"""What of the chapter's exercises is code; their words are in exercises.md."""

import random
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend, attend_columns
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code
from lesson_lib.scores import dot

STILL_LOOPS = (
    "the numbers are right, but your function still loops: the more tokens, the more torch operations"
)


class _Operations(TorchFunctionMode):
    """Counts the calls of torch inside a `with`."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return operation(*args, **(kwargs or {}))


def _operations(answer: Callable, n: int) -> int:
    query, key, value = drawn(1, n, 3), drawn(2, n, 3), drawn(3, n, 2)
    with _Operations() as counted:
        answer(query, key, value)
    return counted.count


def _loops(answer: Callable) -> str | None:
    return STILL_LOOPS if _operations(answer, 29) > _operations(answer, 5) else None


def without_loops(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "m d_k"],
    value: Float[Tensor, "m d_v"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT  # all n * m dot products at once
    return torch.softmax(scores, dim=-1) @ value


def _qkv(query: Tensor, key: Tensor, value: Tensor) -> dict[str, Tensor]:
    return {"query": query, "key": key, "value": value}


def _looped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.stack([torch.softmax(key @ row, dim=0) @ value for row in query])


def _more_without_loops(drawn: Draw) -> list[Case]:
    shapes = {"query": (11, 5), "key": (13, 5), "value": (13, 3)}
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


def mix_in_columns(
    V: Float[Tensor, "d_v n"],
    A_prime: Float[Tensor, "n n"],
) -> Float[Tensor, "d_v n"]:
    return V @ A_prime


def _columns_that_sum_to_one(seed: int, n: int) -> Tensor:
    parts = drawn(seed, n, n).abs() + 0.1
    return parts / parts.sum(0)


def _more_mix_in_columns(drawn: Draw) -> list[Case]:
    return [{"V": drawn(1, n, 11), "A_prime": drawn(2, 11, 11).softmax(0)} for n in (5, 11)]


def attention_in_columns(
    I: Float[Tensor, "d_model n"],
    W_q: Float[Tensor, "d_k d_model"],
    W_k: Float[Tensor, "d_k d_model"],
    W_v: Float[Tensor, "d_v d_model"],
) -> Float[Tensor, "d_v n"]:
    Q, K, V = W_q @ I, W_k @ I, W_v @ I
    A = K.mT @ Q  # A[j, i]: key j for query i
    return V @ torch.softmax(A, dim=-2)


def _lecture(seed: int, d_model: int, n: int, d_k: int, d_v: int) -> dict[str, Tensor]:
    sizes = {"I": (d_model, n), "W_q": (d_k, d_model), "W_k": (d_k, d_model), "W_v": (d_v, d_model)}
    return {name: drawn(seed + i, *shape, spread=0.8) for i, (name, shape) in enumerate(sizes.items())}


def _more_attention_in_columns(drawn: Draw) -> list[Case]:
    shapes = {"I": (7, 11), "W_q": (3, 7), "W_k": (3, 7), "W_v": (5, 7)}
    return [{name: drawn(i, *shape, spread=0.8) for i, (name, shape) in enumerate(shapes.items())}]


def _bright_picture() -> Any:
    from lesson_lib import charts

    query, key = drawn(41, 5, 3).abs() + 0.5, drawn(42, 5, 3).abs() * 0.3
    key[2] = 1.2
    table = attend(query, key, key, score=dot).weights
    tokens = [str(i) for i in range(1, 6)]
    return charts.heatmap(
        table.mT,
        alt="Heat map of A', 5 keys by 5 queries: row 3 is bright, all other rows are dark.",
        caption="A' of the column convention: rows are keys. Every query looks at key 3, so row 3 is bright.",
        rows=tokens,
        columns=tokens,
        row_axis="keys",
        column_axis="queries",
        limits=(0.0, 1.0),
    )


def _learned_numbers(draw: random.Random) -> dict[str, Any]:
    d, d_k, d_v = draw.choice([64, 128, 256, 768]), draw.choice([16, 32, 48]), draw.choice([24, 40, 80])
    tokens = draw.choice([50, 200, 300])
    total = 2 * d * d_k + d * d_v
    return locals()


def _regrouped_cost_numbers(draw: random.Random) -> dict[str, Any]:
    d = draw.choice([16, 32, 64, 128])
    times = draw.choice([3, 5, 6, 12, 20, 24, 40, 48])
    long = d * times
    return locals()


CODE = {
    "learned_numbers_2": Code(
        draw=_learned_numbers,
    ),
    "without_loops": Code(
        solution=without_loops,
        cases=(
            lambda: [_qkv(table([[3.0, 1.0]]), table([[2.0, 5.0]]), table([[2.0, 30.0, 500.0]]))],
            lambda: [_qkv(table([[1.0, 0.5]]), drawn(2, 3, 2), primes(3, 2))],
            lambda: [_qkv(drawn(4, 2, 2), drawn(5, 3, 2), primes(3, 5))],
            lambda: [
                _qkv(drawn(6, 3, 3), drawn(7, 3, 3), primes(3, 3)),
                _qkv(drawn(8, 5, 3), drawn(9, 7, 3), primes(7, 2)),
            ],
        ),
        wrong=(_looped,),
        reference=lambda query, key, value: attend(query, key, value, score=dot).output,
        hidden=_more_without_loops,
        extra=_loops,
    ),
    "without_loops_2": Code(
        wrong=(
            lambda query, key, value: len(query) == 1,
            lambda query, key, value: not bool(value.any()),
        ),
    ),
    "mix_in_columns": Code(
        solution=mix_in_columns,
        cases=(
            lambda: [{"V": table([[2.0, 30.0], [7.0, 500.0]]), "A_prime": table([[0.75, 0.5], [0.25, 0.5]])}],
            lambda: [{"V": primes(3, 2), "A_prime": table([[0.75, 0.5], [0.25, 0.5]])}],
            lambda: [{"V": primes(3, 5), "A_prime": _columns_that_sum_to_one(3, 5)}],
        ),
        hidden=_more_mix_in_columns,
    ),
    "mix_in_columns_2": Code(
        wrong=(
            lambda V, A_prime: torch.equal(A_prime, A_prime.mT),
            lambda V, A_prime: not bool(V.any()),
        ),
    ),
    "attention_in_columns": Code(
        solution=attention_in_columns,
        cases=(
            lambda: [_lecture(1, 2, 1, 3, 5)],
            lambda: [_lecture(11, 2, 2, 1, 3)],
            lambda: [_lecture(21, 5, 3, 2, 3)],
            lambda: [_lecture(31, 5, 7, 2, 3), _lecture(41, 3, 5, 3, 3)],
        ),
        reference=lambda I, W_q, W_k, W_v: attend_columns(I, W_q, W_k, W_v).O,
        hidden=_more_attention_in_columns,
    ),
    "attention_in_columns_2": Code(
        wrong=(
            lambda I, W_q, W_k, W_v: I.shape[-1] == 1,
            lambda I, W_q, W_k, W_v: bool(
                ((W_k @ I).mT @ (W_q @ I) == ((W_k @ I).mT @ (W_q @ I))[:1, :1]).all()
            ),
        ),
    ),
    "bright_picture": Code(
        picture=_bright_picture,
    ),
    "regrouped_cost_2": Code(
        draw=_regrouped_cost_numbers,
    ),
}
