"""Exercises of lesson 03 in which a function is written or repaired; lesson_03.py puts them in order."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend, attend_columns
from lesson_lib.checks.exercise import Stage, Write
from lesson_lib.checks.inputs import drawn, primes, source_of, table
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
    query: Float[Tensor, "n d_k"], key: Float[Tensor, "m d_k"], value: Float[Tensor, "m d_v"]
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT  # all n * m dot products at once
    return torch.softmax(scores, dim=-1) @ value


def _qkv(query: Tensor, key: Tensor, value: Tensor) -> dict[str, Tensor]:
    return {"query": query, "key": key, "value": value}


def _looped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.stack([torch.softmax(key @ row, dim=0) @ value for row in query])


product = Write(
    name="without_loops",
    title="Three loops, two products",
    stars=2,
    minutes=8,
    why="the same arithmetic, without Python in between: all tokens are computed in parallel",
    asked=(
        "outputs[i] = sum over j of softmax_j(query_i . key_j) value_j, for all i, without a loop (no"
        " 1/sqrt(d) here)"
    ),
    stages=(
        Stage(
            "one query, one key",
            lambda: [_qkv(table([[3.0, 1.0]]), table([[2.0, 5.0]]), table([[2.0, 30.0, 500.0]]))],
            "With a single key, its weight is 1: the output is the value.",
        ),
        Stage(
            "one query, three keys",
            lambda: [_qkv(table([[1.0, 0.5]]), drawn(2, 3, 2), primes(3, 2))],
            "The weights of one query are softmax of its scores over the keys.",
        ),
        Stage(
            "two queries, three keys",
            lambda: [_qkv(drawn(4, 2, 2), drawn(5, 3, 2), primes(3, 5))],
            "One query is right, two are not: every row needs a softmax of its own.",
        ),
        Stage(
            "as many queries as keys, and more of everything",
            lambda: [
                _qkv(drawn(6, 3, 3), drawn(7, 3, 3), primes(3, 3)),
                _qkv(drawn(8, 5, 3), drawn(9, 7, 3), primes(7, 2)),
            ],
            "Which axis counts queries, and which keys? Sizes that are equal by chance hide the answer.",
        ),
    ),
    reference=lambda query, key, value: attend(query, key, value, score=dot).output,
    extra=_loops,
    hints=(
        (
            "The innermost loop adds up query[i, c] * key[j, c] over c. Which product of two matrices has"
            " these sums as entries?"
        ),
        "The table of scores is (n, m). What does `.mT` do to key, and along which axis does softmax run?",
        (
            "The last loop adds up weights[i, j] * value[j] over j. Is that `weights @ value` or `value @"
            " weights`?"
        ),
    ),
    solution=source_of(without_loops),
    remember=(
        "n * m dot products are one product, query @ key.mT; n weighted sums are another, weights @ value"
    ),
    slips={
        "your softmax runs over queries (dim=0); it must run over keys (dim=-1)": lambda q, k, v: (
            (q @ k.mT).softmax(0) @ v
        ),
        "you divide by sqrt(d_k); the loops here do not": lambda q, k, v: (
            (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        ),
        "one softmax over the whole table: each query needs its own": lambda q, k, v: (
            (q @ k.mT).flatten().softmax(0).reshape(len(q), len(k)) @ v
        ),
        "softmax is missing: these are scores, not weights": lambda q, k, v: q @ k.mT @ v,
        "your outputs stand in columns, (d_v, n); each output is a row": lambda q, k, v: (
            ((q @ k.mT).softmax(-1) @ v).mT
        ),
        "you give back the weights; mix the values with them": lambda q, k, v: (q @ k.mT).softmax(-1),
        "every output is the same average of the values: the scores are not used": (
            lambda q, k, v: v.mean(0, keepdim=True).expand(len(q), -1)
        ),
        STILL_LOOPS: _looped,
    },
    right=(
        lambda query, key, value: torch.nn.functional.scaled_dot_product_attention(
            query, key, value, scale=1.0
        ),
        lambda q, k, v: torch.einsum("nm,md->nd", torch.softmax(torch.einsum("nd,md->nm", q, k), dim=1), v),
    ),
)


def mix_in_columns(V: Float[Tensor, "d_v n"], A_prime: Float[Tensor, "n n"]) -> Float[Tensor, "d_v n"]:
    return V @ A_prime


def _columns_that_sum_to_one(seed: int, n: int) -> Tensor:
    parts = drawn(seed, n, n).abs() + 0.1
    return parts / parts.sum(0)


mixing = Write(
    name="mix_in_columns",
    title="The order that runs",
    stars=1,
    minutes=5,
    why="with d_v = n the wrong order raises no error; only the numbers know",
    asked=(
        "repair the function: tokens are columns, and column i of the result mixes the columns of V by column"
        " i of A'"
    ),
    given=lambda V, A_prime: A_prime @ V,
    stages=(
        Stage(
            "two tokens of width 2: every order runs",
            lambda: [{"V": table([[2.0, 30.0], [7.0, 500.0]]), "A_prime": table([[0.75, 0.5], [0.25, 0.5]])}],
            "Output 1 is 0.75 of V's first column and 0.25 of its second.",
        ),
        Stage(
            "two tokens of width 3: only one order fits",
            lambda: [{"V": primes(3, 2), "A_prime": table([[0.75, 0.5], [0.25, 0.5]])}],
            "V is (d_v, n) and A' is (n, n): which of the two must stand on the left?",
        ),
        Stage(
            "five tokens",
            lambda: [{"V": primes(3, 5), "A_prime": _columns_that_sum_to_one(3, 5)}],
            "Columns of A' sum to 1; rows do not.",
        ),
    ),
    reference=mix_in_columns,
    hints=(
        "In a product M @ N, what does column i of the result mix: columns of M, or rows of N?",
        "So which of V and A' must stand on the left, if columns of V are to be mixed?",
        (
            "Check it by hand: V = [[2, 30], [7, 500]], weights (0.75, 0.25). Which order gives (9, 130.25)"
            " as first column?"
        ),
    ),
    solution=source_of(mix_in_columns),
    remember=(
        "columns: O = V A'; rows: O = A V. A product on the right mixes columns, on the left it mixes rows"
    ),
    slips={
        "this is still the function as it was given": lambda V, A: A @ V,
        "A' is transposed here: its columns are the tokens' weights already": lambda V, A: V @ A.mT,
        "A' is transposed and on the left: it mixes rows of V": lambda V, A: A.mT @ V,
        "the numbers are right, but tokens stand in rows; leave them in columns": lambda V, A: (V @ A).mT,
        "the product of V^T and A' mixes features into tokens; V is (d_v, n) and stays so": lambda V, A: (
            V.mT @ A
        ),
        "that is an entry-by-entry product (*); asked is the matrix product (@)": lambda V, A: V * A,
        "A' stands left of V^T: it weighs by its rows, and tokens come out as rows": lambda V, A: A @ V.mT,
    },
    right=(
        lambda V, A_prime: (A_prime.mT @ V.mT).mT,
        lambda V, A_prime: torch.einsum("dk,kq->dq", V, A_prime),
    ),
)


def attention_in_columns(
    I: Float[Tensor, "d_model n"],  # noqa: E741
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


def _QKV(I: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # noqa: E741
    return W_q @ I, W_k @ I, W_v @ I


def _from_columns(compute: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda I, W_q, W_k, W_v: compute(*_QKV(I, W_q, W_k, W_v))  # noqa: E741


columns = Write(
    name="attention_in_columns",
    title="The lecture's letters",
    stars=3,
    minutes=12,
    why="half of what is written on attention uses columns; reading it, you translate in your head",
    asked=(
        "self-attention with tokens as columns: Q = W_q I, K = W_k I, V = W_v I, A = K^T Q, softmax, O = V A'"
        " (no 1/sqrt(d))"
    ),
    stages=(
        Stage(
            "one token: the output is W_v I",
            lambda: [_lecture(1, 2, 1, 3, 5)],
            "With one token the only weight is 1. Do the matrices stand on the left of I?",
        ),
        Stage(
            "two tokens, queries and keys of width 1",
            lambda: [_lecture(11, 2, 2, 1, 3)],
            "Each COLUMN of A belongs to one query. Along which axis must it sum to 1?",
        ),
        Stage(
            "three tokens, width 2, d_v = n",
            lambda: [_lecture(21, 5, 3, 2, 3)],
            "Here d_v = n: every order of V and A' runs, one is right.",
        ),
        Stage(
            "seven tokens",
            lambda: [_lecture(31, 5, 7, 2, 3)],
            "Compare the shape of every matrix with the lecture's.",
        ),
    ),
    reference=lambda I, W_q, W_k, W_v: attend_columns(I, W_q, W_k, W_v).O,  # noqa: E741
    hints=(
        "Q is (d_k, n): query i is column i. What is entry (j, i) of K^T Q?",
        "All scores of ONE query: are they in a row or in a column of A? Which `dim` of softmax is that?",
        "V is (d_v, n), and column i of O is to mix V's columns. On which side does A' stand?",
    ),
    solution=source_of(attention_in_columns),
    remember=(
        "columns are rows transposed: A = K^T Q = (Q_rows K_rows^T)^T, softmax runs down each column, O ="
        " V A'"
    ),
    slips={
        "your softmax runs along rows (dim=-1); a query's scores stand in a column (dim=-2)": _from_columns(
            lambda Q, K, V: V @ (K.mT @ Q).softmax(-1)
        ),
        "A = Q^T K puts query i into row i; then columns belong to keys. A = K^T Q is asked": _from_columns(
            lambda Q, K, V: V @ (Q.mT @ K).softmax(-2)
        ),
        "you divide by sqrt(d_k); the lecture does not": _from_columns(
            lambda Q, K, V: V @ (K.mT @ Q / len(Q) ** 0.5).softmax(-2)
        ),
        "A' on the left mixes the rows of V; O = V A'": _from_columns(
            lambda Q, K, V: (K.mT @ Q).softmax(-2) @ V
        ),
        "A' is transposed in the last product; its columns are the weights already": _from_columns(
            lambda Q, K, V: V @ (K.mT @ Q).softmax(-2).mT
        ),
        "your outputs are rows; leave tokens in columns, (d_v, n)": _from_columns(
            lambda Q, K, V: (V @ (K.mT @ Q).softmax(-2)).mT
        ),
        "softmax is missing: V is mixed with the raw scores": _from_columns(lambda Q, K, V: V @ (K.mT @ Q)),
        "K is used in place of V: each token has three vectors, and V is what is mixed": _from_columns(
            lambda Q, K, V: K @ (K.mT @ Q).softmax(-2)
        ),
    },
    right=(
        lambda I, W_q, W_k, W_v: without_loops((W_q @ I).mT, (W_k @ I).mT, (W_v @ I).mT).mT,  # noqa: E741
        lambda I, W_q, W_k, W_v: torch.einsum(  # noqa: E741
            "vi,iq->vq", W_v @ I, torch.softmax(torch.einsum("kj,ki->ji", W_k @ I, W_q @ I), dim=0)
        ),
    ),
)
