"""What of the questions in 03_matrix_form.md is code."""

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def self_attention(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value


def _tokens(seed: int, b: int, n: int, d: int, d_k: int, d_v: int, drawn: Draw = drawn) -> Case:
    shapes = {"x": (b, n, d), "w_q": (d, d_k), "w_k": (d, d_k), "w_v": (d, d_v)}
    return {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


def _more_self_attention(drawn: Draw) -> list[Case]:
    return [_tokens(1, 5, 7, 11, 3, 2, drawn), _tokens(11, 2, 3, 5, 7, 13, drawn)]


def influence(f, x, other):
    n = x.shape[1]
    before = f(x)
    table = torch.zeros(n, n)
    for j in range(n):
        changed = x.clone()
        changed[:, j] = other[:, j]
        table[:, j] = (f(changed) - before).abs().amax((0, 2))
    return table


def _itself(x: Tensor) -> Tensor:
    return 1.0 * x


def _sums(x: Tensor) -> Tensor:
    return x.cumsum(1)


def _turned(x: Tensor) -> Tensor:
    return x.flip(1) ** 2 - x


def _two(seed: int, *shape: int, drawn: Draw = drawn) -> Case:
    return {"x": drawn(seed, *shape), "other": drawn(seed + 1, *shape)}


def _more_influence(drawn: Draw) -> list[Case]:
    return [{"f": one, **_two(51, 3, 5, 2, drawn=drawn)} for one in (_itself, _sums, _turned)]


def both_masks(real):
    n = real.shape[-1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril()
    return real[:, None, :] & earlier


def _sentences(*lengths: int) -> Case:
    return {"real": torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]}


def _more_both_masks(drawn: Draw) -> list[Case]:
    return [_sentences(7, 2, 5), {"real": _sentences(7, 2, 5)["real"].flip(-1)}]


CODE = {
    "self_attention": Code(
        solution=self_attention,
        cases=(
            lambda: [
                {
                    "x": table([[[1.0, 2.0]]]),
                    "w_q": table([[1.0], [0.0]]),
                    "w_k": table([[0.0], [1.0]]),
                    "w_v": table([[3.0, 0.0, 1.0], [0.0, 5.0, 1.0]]),
                }
            ],
            lambda: [_tokens(21, 1, 3, 5, 2, 7) | {"w_v": primes(5, 7)}],
            lambda: [_tokens(31, 2, 5, 7, 3, 2), _tokens(41, 2, 5, 3, 3, 3)],
        ),
        hidden=_more_self_attention,
    ),
    "self_attention_2": Code(
        wrong=(
            lambda x, w_q, w_k, w_v: w_q.shape[0] == w_q.shape[1],
            lambda x, w_q, w_k, w_v: x.shape[-2] == 1,
        ),
    ),
    "influence": Code(
        solution=influence,
        cases=(
            lambda: [{"f": _itself, "x": table([[[1.0], [2.0]]]), "other": table([[[4.0], [0.0]]])}],
            lambda: [{"f": _sums, **_two(61, 1, 3, 2)}],
            lambda: [{"f": _turned, **_two(71, 2, 4, 3)}],
        ),
        hidden=_more_influence,
    ),
    "both_masks": Code(
        solution=both_masks,
        cases=(
            lambda: [_sentences(3)],
            lambda: [_sentences(2, 3)],
            lambda: [{"real": torch.tensor([[False, True, True], [True, True, True]])}],
        ),
        hidden=_more_both_masks,
    ),
    "both_masks_2": Code(
        wrong=(
            lambda real: bool(real.all()),
            lambda real: real.shape[-1] == 1,
        ),
    ),
}
