"""What of the questions in 13c_open_a_model.md is code."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.masks import causal
from lesson_lib.positions import rotary


def head_weights(x, w_query, w_key, head, d_k):
    shared = len(w_query) // len(w_key)
    own, others = head * d_k, head // shared * d_k
    q = x @ w_query[own : own + d_k].mT
    k = x @ w_key[others : others + d_k].mT
    q, k = rotary(q, pairing="half-split"), rotary(k, pairing="half-split")
    return attend(q, k, k, mask=causal(len(x))).weights


def _all_heads(x: Tensor, w_query: Tensor, w_key: Tensor, head: int, d_k: int) -> Tensor:
    q, k = ((x @ w.mT).unflatten(-1, (-1, d_k)).transpose(0, 1) for w in (w_query, w_key))
    k = k.repeat_interleave(len(q) // len(k), 0)
    q, k = (rotary(t, pairing="half-split") for t in (q, k))
    return attend(q, k, k, mask=causal(len(x))).weights[head]


def _file(seed: int, n: int, h: int, g: int, head: int, d: int = 6, d_k: int = 4, draw: Draw = drawn) -> Case:
    return {
        "x": draw(seed, n, d), "w_query": draw(seed + 1, h * d_k, d), "w_key": draw(seed + 2, g * d_k, d),
        "head": head, "d_k": d_k,
    }  # fmt: skip


def head_weights_2(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "h_dk d"],
    w_key: Float[Tensor, "h_dk d"],
    head: int,
    d_k: int,
    window: int,
) -> Float[Tensor, "n n"]:
    own = slice(head * d_k, (head + 1) * d_k)
    q, k = rotary(x @ w_query[own].mT), rotary(x @ w_key[own].mT)
    return attend(q, k, k, mask=causal(len(x), window=window)).weights


def _head(seed: int, n: int, heads: int, head: int, window: int) -> Case:
    return {
        "x": drawn(seed, n, 6), "w_query": drawn(seed + 1, heads * 4, 6),
        "w_key": drawn(seed + 2, heads * 4, 6), "head": head, "d_k": 4, "window": window,
    }  # fmt: skip


def logit_difference(logits, answers):
    right = logits.gather(1, answers[:, None])
    others = logits.scatter(1, answers[:, None], -torch.inf)
    return right[:, 0] - others.amax(1)


def _one_by_one(logits: Tensor, answers: Tensor) -> Tensor:
    rows = []
    for row, answer in zip(logits, answers.tolist(), strict=True):
        rows.append(row[answer] - torch.cat((row[:answer], row[answer + 1 :])).max())
    return torch.stack(rows)


def _texts(seed: int, n: int, n_tokens: int, draw: Draw = drawn) -> Case:
    answers = torch.randint(n_tokens, (n,), generator=torch.Generator("cpu").manual_seed(seed), device="cpu")
    return {"logits": 3 * draw(seed, n, n_tokens), "answers": answers}


def logit_difference_2(
    logits: Float[Tensor, "n n_tokens"], right: Int[Tensor, " n"], wrong: Int[Tensor, " n"]
) -> Float[Tensor, " n"]:
    def pick(tokens):
        return logits.gather(1, tokens[:, None])[:, 0]

    return pick(right) - pick(wrong)


def _named(seed: int, n: int, n_tokens: int) -> Case:
    given = _texts(seed, n, n_tokens)
    right = given.pop("answers")
    return given | {"right": right, "wrong": (right + 1) % n_tokens}


CODE = {
    "head_weights": Code(
        solution=head_weights,
        cases=(
            lambda: [_file(1, 2, 1, 1, 0)],
            lambda: [_file(11, 4, 4, 4, 2), _file(15, 5, 4, 4, 0)],
            lambda: [_file(21, 5, 4, 2, 3), _file(25, 4, 4, 2, 1), _file(31, 4, 6, 1, 4)],
        ),
        reference=_all_heads,
        hidden=lambda draw: [_file(41, 5, 6, 3, 4, draw=draw), _file(51, 4, 8, 2, 5, d=4, d_k=2, draw=draw)],
    ),
    "head_weights_2": Code(
        solution=head_weights_2,
        cases=(
            lambda: [_head(1, 3, 1, 0, 9)],
            lambda: [_head(5, 5, 3, 2, 2), _head(9, 4, 2, 0, 1)],
        ),
    ),
    "logit_difference": Code(
        solution=logit_difference,
        cases=(
            lambda: [{"logits": table([[1, 5, 3]]), "answers": torch.tensor([1], device="cpu")}],
            lambda: [{"logits": table([[4, 2, 7]]), "answers": torch.tensor([0], device="cpu")}],
            lambda: [_texts(3, 4, 7), _texts(5, 3, 5), _texts(8, 6, 3)],
        ),
        reference=_one_by_one,
        hidden=lambda draw: [_texts(21, 4, 6, draw), _texts(31, 5, 9, draw)],
    ),
    "logit_difference_2": Code(
        solution=logit_difference_2,
        cases=(
            lambda: [_named(1, 1, 5)],
            lambda: [_named(5, 4, 7), _named(9, 3, 4)],
        ),
    ),
}
