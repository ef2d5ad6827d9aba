"""Exercises of lesson 02 in which a function is written or repaired; lesson_02.py puts them in order."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Stage, Write
from lesson_lib.checks.inputs import drawn, primes, source_of, table


def stable_weights(scores: Float[Tensor, "*b n m"]) -> Float[Tensor, "*b n m"]:
    largest = scores.amax(-1, keepdim=True)
    exponentials = (scores - largest).exp()  # at most 1: no overflow
    return exponentials / exponentials.sum(-1, keepdim=True)


def _normalised(x: Tensor) -> Tensor:
    return x / x.sum(-1, keepdim=True)


stable = Write(
    name="stable_weights",
    title="Scores of a thousand",
    stars=2,
    minutes=8,
    why="exp(89) is inf in float32, and inf/inf is nan; one line prevents it, and attend has it too",
    asked=(
        "turn scores (n, m) into weights: each row positive, summing to 1, finite for scores of 1,000 and"
        " -1,000, too"
    ),
    stages=(
        Stage(
            "one row, small scores",
            lambda: [{"scores": table([[1.0, 2.0, 4.0]])}],
            "Each weight is exp(score) over the sum of the row's exp(score).",
        ),
        Stage(
            "two rows, each with a sum of its own",
            lambda: [{"scores": table([[0.0, 1.0, 3.0], [2.0, -1.0, 0.5]])}],
            "One row is right, two are not: along which axis do you sum?",
        ),
        Stage(
            "scores of 1,000 and of -1,000",
            lambda: [
                {"scores": table([[1000.0, 1001.0, 999.0]])},
                {"scores": table([[-1000.0, -1002.0, -1001.0]])},
            ],
            "Which number can you subtract from a whole row without changing its weights?",
        ),
        Stage(
            "rows far apart, and one large score in a row",
            lambda: [
                {"scores": table([[500.0, 501.0], [-500.0, -502.0]])},
                {"scores": table([[0.0, 0.0, 700.0]])},
            ],
            "Each row needs a shift of its own, and after it no score may be large.",
        ),
        Stage(
            "a blocked key (-inf), and two sequences at once",
            lambda: [{"scores": table([[1.0, -math.inf, 2.0]])}, {"scores": drawn(3, 2, 5, 3)}],
            "A score of -inf must give the weight 0; leading axes must stay.",
        ),
    ),
    reference=stable_weights,
    hints=(
        "Add 7 to each score of a row. What happens to each weight, and why?",
        "If any shift is allowed: after which shift is the largest exponential exactly 1?",
        (
            "`scores.amax(-1, keepdim=True)` is each row's maximum, still (n, 1). Where do you subtract it,"
            " where do you sum?"
        ),
    ),
    solution=source_of(stable_weights),
    remember="subtract each row's maximum before exp: the weights stay, the overflow goes",
    slips={
        "exp is missing: you divide the scores by their sum": _normalised,
        "your sums run over queries (dim=-2); they must run over keys (dim=-1)": lambda s: (
            (e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True)
        ),
        "you did not divide by the row's sum": lambda s: (s - s.amax(-1, keepdim=True)).exp(),
        "exp of the scores as they are: it overflows to inf, or vanishes to 0/0; subtract each row's maximum first": lambda s: (
            _normalised(s.exp())
        ),
        "you subtract the largest score of the whole table; a row far below it becomes 0/0": lambda s: (
            _normalised((s - s.max()).exp())
        ),
        "you divide by the row's maximum; that changes the differences, and with them the weights": (
            lambda s: _normalised((s / s.amax(-1, keepdim=True)).exp())
        ),
        "you subtract the row's mean; one score far above the mean still overflows": lambda s: _normalised(
            (s - s.mean(-1, keepdim=True)).exp()
        ),
        "you cut large scores off (clamp); differences above the cut are lost": lambda s: _normalised(
            s.clamp(-80, 80).exp()
        ),
    },
    right=(
        lambda scores: (scores - torch.logsumexp(scores, -1, keepdim=True)).exp(),
        lambda scores: torch.softmax(scores, dim=-1),
    ),
)


def scaled_attention(
    query: Float[Tensor, "*b n d_k"], key: Float[Tensor, "*b m d_k"], value: Float[Tensor, "*b m d_v"]
) -> Float[Tensor, "*b n d_v"]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


def _qkv(query: Any, key: Any, value: Any) -> dict[str, Tensor]:
    return {"query": query, "key": key, "value": value}


attention = Write(
    name="scaled_attention",
    title="Attention in three lines",
    stars=2,
    minutes=10,
    why="this is the function of the whole course; you will meet it again and again",
    asked="mix the values: softmax(query key^T / sqrt(d_k)) value, one output row per query",
    stages=(
        Stage(
            "one query, one key: the output is the value itself",
            lambda: [_qkv(table([[3.0, 1.0]]), table([[2.0, 5.0]]), table([[2.0, 30.0, 500.0]]))],
            "With a single key, its weight is 1, whatever the score.",
        ),
        Stage(
            "one query, three keys, width 1 (so sqrt(d_k) is 1)",
            lambda: [
                _qkv(
                    table([[2.0]]),
                    table([[0.5], [1.5], [1.0]]),
                    table([[2.0, 30.0], [7.0, -50.0], [110.0, 11.0]]),
                )
            ],
            "The weights are softmax of the scores over the keys.",
        ),
        Stage(
            "two queries, three keys, width 1",
            lambda: [_qkv(table([[2.0], [-1.0]]), table([[0.5], [1.5], [1.0]]), primes(3, 2))],
            "The first query alone is right, two are not: each row needs a softmax of its own.",
        ),
        Stage(
            "the scale: width 5",
            lambda: [
                _qkv(drawn(1, 1, 5), drawn(2, 2, 5), primes(2, 3)),
                _qkv(drawn(1, 2, 5), drawn(2, 3, 5), primes(3, 7)),
            ],
            "With width 1 it is right, with width 5 it is not: by what do you divide?",
        ),
        Stage(
            "a batch of two sequences",
            lambda: [_qkv(drawn(3, 2, 3, 5), drawn(4, 2, 7, 5), drawn(5, 2, 7, 2, spread=9.0))],
            "One sequence is right, a batch is not: .T and dim=0 or 1 count axes from the left; .mT and"
            " dim=-1 from the right.",
        ),
    ),
    reference=lambda query, key, value: attend(query, key, value).output,
    hints=(
        (
            "The scores are one number per (query, key) pair, (n, m). Which product of (n, d_k) and (m, d_k)"
            " has that shape?"
        ),
        "Along which axis must the weights of ONE query sum to 1? Which `dim` is that?",
        (
            "By which number do you divide, where does it come from (`query.shape[...]`), and what mixes the"
            " value rows?"
        ),
    ),
    solution=source_of(scaled_attention),
    remember="scores (n, m) -> divide by sqrt(d_k) -> softmax over keys -> times values (m, d_v)",
    slips={
        "you forgot to divide by sqrt(d_k)": lambda q, k, v: (q @ k.mT).softmax(-1) @ v,
        "your softmax runs over queries (dim=-2); it must run over keys (dim=-1)": lambda q, k, v: (
            (q @ k.mT / k.shape[-1] ** 0.5).softmax(-2) @ v
        ),
        "you divide by d_k; divide by its square root": lambda q, k, v: (
            (q @ k.mT / k.shape[-1]).softmax(-1) @ v
        ),
        "you multiply by sqrt(d_k); divide by it": lambda q, k, v: (
            (q @ k.mT * k.shape[-1] ** 0.5).softmax(-1) @ v
        ),
        "you divide by the root of the value's width; d_k is the width of query and key": lambda q, k, v: (
            (q @ k.mT / v.shape[-1] ** 0.5).softmax(-1) @ v
        ),
        "you divide by the root of the number of keys; d_k is the width of query and key": lambda q, k, v: (
            (q @ k.mT / k.shape[-2] ** 0.5).softmax(-1) @ v
        ),
        "you give back the weights; multiply them with the values": (
            lambda q, k, v: (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
        ),
        "softmax is missing: you mix the values with the raw scores": lambda q, k, v: (
            q @ k.mT / k.shape[-1] ** 0.5 @ v
        ),
        "you divide after the softmax; the scale belongs to the scores": lambda q, k, v: (
            (q @ k.mT).softmax(-1) / k.shape[-1] ** 0.5 @ v
        ),
        "you take the best key only (argmax); attention mixes all values": lambda q, k, v: torch.stack(
            [v[..., j, :] for j in (q @ k.mT).argmax(-1).flatten()], dim=-2
        ),
    },
    right=(
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: torch.einsum(
            "...nm,...md->...nd",
            torch.softmax(torch.einsum("...nd,...md->...nm", q / q.shape[-1] ** 0.5, k), -1),
            v,
        ),
    ),
)


def additive_scores(
    query: Float[Tensor, "n d_q"],
    key: Float[Tensor, "m d_k"],
    w_query: Float[Tensor, "d_q d_hidden"],
    w_key: Float[Tensor, "d_k d_hidden"],
    v: Float[Tensor, " d_hidden"],
) -> Float[Tensor, "n m"]:
    of_queries, of_keys = query @ w_query, key @ w_key
    pairs = of_queries[:, None, :] + of_keys[None, :, :]  # (n, m, d_hidden)
    return torch.tanh(pairs) @ v


def _additive_case(seed: int, n: int, m: int, d_q: int, d_k: int, d_hidden: int) -> dict[str, Tensor]:
    return {
        "query": drawn(seed, n, d_q),
        "key": drawn(seed + 1, m, d_k),
        "w_query": drawn(seed + 2, d_q, d_hidden),
        "w_key": drawn(seed + 3, d_k, d_hidden),
        "v": table([1.0, 10.0, 100.0][:d_hidden]),
    }


def _pairs(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    return q[:, None, :], k[None, :, :]


repair = Write(
    name="additive_scores",
    title="Every query with every key",
    stars=2,
    minutes=8,
    why="a wrong broadcast runs whenever n = m, and no error message comes",
    asked=(
        "repair the function: score[i, j] = v . tanh(query_i W_query + key_j W_key), for all i and j, shape"
        " (n, m)"
    ),
    given=lambda query, key, w_query, w_key, v: torch.tanh(query @ w_query + key @ w_key) @ v,
    stages=(
        Stage(
            "one query, one key: a table of one number",
            lambda: [_additive_case(11, 1, 1, 2, 2, 1)],
            "One pair, one number, in a table with one row and one column.",
        ),
        Stage(
            "one pair, a wider hidden layer",
            lambda: [_additive_case(21, 1, 1, 2, 2, 3)],
            "The order is: two projections, their sum, tanh, then v.",
        ),
        Stage(
            "two queries, three keys",
            lambda: [_additive_case(31, 2, 3, 2, 2, 2)],
            "Rows are queries, columns are keys, and each pair meets once.",
        ),
        Stage(
            "queries and keys of different width",
            lambda: [_additive_case(41, 3, 5, 2, 7, 3)],
            "Each side has its own matrix, so the widths need not agree.",
        ),
    ),
    reference=additive_scores,
    hints=(
        (
            "`query @ w_query` is (n, d_hidden) and `key @ w_key` is (m, d_hidden). Which pairs does a plain"
            " + add up?"
        ),
        "What shape must the sum have to hold every pair? Where does each side need an axis of length 1?",
        (
            "x[:, None, :] has shape (n, 1, d_hidden). What does the other side need, and which axis does `@"
            " v` use up?"
        ),
    ),
    solution=source_of(additive_scores),
    remember=(
        "[:, None, :] + [None, :, :] pairs everything with everything: (n, m, d_hidden) numbers, which is"
        " what it costs"
    ),
    slips={
        "this is still the function as it was given": lambda q, k, wq, wk, v: torch.tanh(q @ wq + k @ wk) @ v,
        "your table is (m, n): rows are keys; rows must be queries": lambda q, k, wq, wk, v: (
            torch.tanh((q @ wq)[None, :, :] + (k @ wk)[:, None, :]) @ v
        ),
        "tanh is missing; without it the score is a sum of two numbers that ignore each other": (
            lambda q, k, wq, wk, v: sum(_pairs(q @ wq, k @ wk)) @ v
        ),
        "tanh comes last here; it belongs between the sum and v": lambda q, k, wq, wk, v: torch.tanh(
            sum(_pairs(q @ wq, k @ wk)) @ v
        ),
        "you take tanh of each side before adding; add first": lambda q, k, wq, wk, v: (
            sum(_pairs(torch.tanh(q @ wq), torch.tanh(k @ wk))) @ v
        ),
        "you multiply the two sides; the additive score adds them": lambda q, k, wq, wk, v: (
            torch.tanh(math.prod(_pairs(q @ wq, k @ wk))) @ v
        ),
        "v is missing: you sum the hidden units, as if v were all ones": (
            lambda q, k, wq, wk, v: torch.tanh(sum(_pairs(q @ wq, k @ wk))).sum(-1)
        ),
        "these are weights; asked are the scores, before softmax": (
            lambda q, k, wq, wk, v: (torch.tanh(sum(_pairs(q @ wq, k @ wk))) @ v).softmax(-1)
        ),
    },
    right=(
        lambda q, k, wq, wk, v: torch.stack([torch.tanh(row + k @ wk) @ v for row in q @ wq]),
        lambda q, k, wq, wk, v: torch.einsum(
            "nmh,h->nm", torch.tanh((q @ wq).unsqueeze(1) + (k @ wk).unsqueeze(0)), v
        ),
    ),
)
