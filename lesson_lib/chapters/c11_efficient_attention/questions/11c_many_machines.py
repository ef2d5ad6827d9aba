"""What of the questions in 11c_many_machines.md is code."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.efficient import attend_part, merge


def merge_outputs(output_a, sum_a, output_b, sum_b):
    share_a = (sum_a / (sum_a + sum_b))[:, None]
    return share_a * output_a + (1 - share_a) * output_b


def _parts(*four: Any) -> Case:
    names = ("output_a", "sum_a", "output_b", "sum_b")
    return {name: x if isinstance(x, Tensor) else table(x) for name, x in zip(names, four, strict=True)}


def _queries(seed: int, n: int, d: int, draw: Draw = drawn) -> Case:
    a, b = draw(seed, n, d), draw(seed + 1, n, d)
    return _parts(a, draw(seed + 2, n).exp(), b, draw(seed + 3, n).exp())


def _numerators(output_a: Tensor, sum_a: Tensor, output_b: Tensor, sum_b: Tensor) -> Tensor:
    above = torch.einsum("nd,n->nd", output_a, sum_a) + torch.einsum("nd,n->nd", output_b, sum_b)
    return torch.einsum("nd,n->nd", above, 1 / (sum_a + sum_b))


def _more_outputs(draw: Draw) -> list[Case]:
    return [_queries(1, 5, 3, draw), _queries(5, 3, 7, draw)]


ALL_KEYS = (
    "the numbers are right, but one machine computes with all keys at once; none may hold more than its own"
    " block and the one that comes"
)


class _Products(TorchFunctionMode):
    """Notes whether a product of matrices, or torch's own attention, gets an axis of `m`."""

    def __init__(self, m: int) -> None:
        super().__init__()
        self.m, self.found = m, False

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(operation, "__name__", "").strip("_")
        given = [x for x in (*args, *(kwargs or {}).values()) if isinstance(x, Tensor)]
        if name in ("matmul", "mm", "bmm", "einsum", "scaled_dot_product_attention"):
            self.found = self.found or any(self.m in x.shape for x in given)
        return operation(*args, **(kwargs or {}))


def _holds_all(answer: Callable) -> str | None:
    m = 60
    q, k, v = (drawn(seed, m, 3) for seed in (1, 2, 3))
    with _Products(m) as watched:
        answer(q, k, v, 4)
    return ALL_KEYS if watched.found else None


def in_a_ring(query, key, value, machines):
    q, k, v = (x.chunk(machines) for x in (query, key, value))
    have = [attend_part(*own) for own in zip(q, k, v, strict=True)]
    for _ in range(machines - 1):
        k, v = k[-1:] + k[:-1], v[-1:] + v[:-1]  # from each to the next
        came = [attend_part(*now) for now in zip(q, k, v, strict=True)]
        have = [merge(*two) for two in zip(have, came, strict=True)]
    return torch.cat([part.output for part in have])


def _ring(seed: int, n: int, d: int, d_v: int, machines: int, draw: Draw = drawn) -> Case:
    q, k = draw(seed, n, d), draw(seed + 1, n, d)
    return {"query": q, "key": k, "value": draw(seed + 2, n, d_v), "machines": machines}


def _two_tokens() -> Case:
    zeros = table([[0.0], [0.0]])
    return {"query": zeros, "key": zeros, "value": table([[10.0], [20.0]]), "machines": 2}


def _more_rings(draw: Draw) -> list[Case]:
    return [_ring(1, 12, 5, 3, 4, draw), _ring(4, 6, 2, 2, 3, draw), _ring(7, 5, 3, 2, 5, draw)]


def _whole(query: Tensor, key: Tensor, value: Tensor, machines: int) -> Tensor:
    return attend(query, key, value).output


def merge_outputs_2(
    outputs: Float[Tensor, "parts n d"],
    sums: Float[Tensor, "parts n"],
) -> Float[Tensor, "n d"]:
    shares = sums / sums.sum(0)
    return (shares[..., None] * outputs).sum(0)


def _many(seed: int, parts: int, n: int, d: int) -> Case:
    return {"outputs": drawn(seed, parts, n, d), "sums": drawn(seed + 1, parts, n).exp()}


def in_a_ring_2(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "n d"],
    value: Float[Tensor, "n d_v"],
    machines: int,
) -> Float[Tensor, "n d_v"]:
    q, k, v = (x.chunk(machines) for x in (query, key, value))
    have = [attend_part(*own) for own in zip(q, k, v, strict=True)]
    for _ in range(machines - 1):
        q, have = q[-1:] + q[:-1], have[-1:] + have[:-1]
        came = [attend_part(*now) for now in zip(q, k, v, strict=True)]
        have = [merge(*two) for two in zip(have, came, strict=True)]
    return torch.cat([part.output for part in have])


def _travel(seed: int, n: int, d: int, d_v: int, machines: int) -> Case:
    q, k = drawn(seed, n, d), drawn(seed + 1, n, d)
    return {"query": q, "key": k, "value": drawn(seed + 2, n, d_v), "machines": machines}


CODE = {
    "merge_outputs": Code(
        solution=merge_outputs,
        cases=(
            lambda: [_parts([[17.5]], [4.0], [[40.0]], [12.0])],
            lambda: [_parts([[1.0], [1.0]], [1.0, 3.0], [[5.0], [5.0]], [3.0, 1.0])],
            lambda: [_queries(11, 4, 3)],
            lambda: [_queries(15, 3, 3)],
            lambda: [_parts([[4.0]], [2.0], [[0.0]], [0.0])],
        ),
        reference=_numerators,
        hidden=_more_outputs,
    ),
    "merge_outputs_2": Code(
        solution=merge_outputs_2,
        cases=(
            lambda: [
                {"outputs": table([[[17.5]], [[40.0]], [[0.0]]]), "sums": table([[4.0], [12.0], [16.0]])}
            ],
            lambda: [_many(1, 5, 3, 2)],
            lambda: [_many(3, 3, 3, 3)],
        ),
    ),
    "in_a_ring": Code(
        solution=in_a_ring,
        cases=(
            lambda: [_two_tokens()],
            lambda: [_ring(21, 3, 2, 2, 1)],
            lambda: [_ring(24, 6, 4, 2, 3)],
            lambda: [_ring(27, 8, 2, 3, 4), _ring(30, 6, 3, 3, 2)],
        ),
        reference=_whole,
        hidden=_more_rings,
        extra=_holds_all,
    ),
    "in_a_ring_2": Code(
        solution=in_a_ring_2,
        cases=(
            lambda: [_travel(1, 3, 2, 2, 1)],
            lambda: [_travel(4, 6, 4, 2, 3)],
            lambda: [_travel(7, 8, 2, 3, 4)],
        ),
    ),
}
