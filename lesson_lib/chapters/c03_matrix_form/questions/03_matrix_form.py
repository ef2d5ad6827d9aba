"""What of the questions in 03_matrix_form.md is code."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def self_attention(
    x: Float[Tensor, "b n d"],
    w_q: Float[Tensor, "d d_k"],
    w_k: Float[Tensor, "d d_k"],
    w_v: Float[Tensor, "d d_v"],
) -> Float[Tensor, "b n d_v"]:
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value


def _tokens(seed: int, b: int, n: int, d: int, d_k: int, d_v: int, drawn: Draw = drawn) -> Case:
    shapes = {"x": (b, n, d), "w_q": (d, d_k), "w_k": (d, d_k), "w_v": (d, d_v)}
    return {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


def _more_self_attention(drawn: Draw) -> list[Case]:
    return [_tokens(1, 5, 7, 11, 3, 2, drawn), _tokens(11, 2, 3, 5, 7, 13, drawn)]


def both_masks(real: Bool[Tensor, "b n"]) -> Bool[Tensor, "b n n"]:
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
