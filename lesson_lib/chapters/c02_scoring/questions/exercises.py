"""What of the chapter's exercises is code; their words are in exercises.md."""

import math
import random
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code
from lesson_lib.scores import dot


def stable_weights(scores: Float[Tensor, "*b n m"]) -> Float[Tensor, "*b n m"]:
    largest = scores.amax(-1, keepdim=True)
    exponentials = (scores - largest).exp()  # at most 1: no overflow
    return exponentials / exponentials.sum(-1, keepdim=True)


def _more_stable_weights(drawn: Draw) -> list[Case]:
    return [{"scores": 50 * drawn(1, 5, 11)}, {"scores": drawn(2, 3, 2, 7) + 200}]


def scaled_attention(
    query: Float[Tensor, "*b n d_k"],
    key: Float[Tensor, "*b m d_k"],
    value: Float[Tensor, "*b m d_v"],
) -> Float[Tensor, "*b n d_v"]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


def _qkv(query: Any, key: Any, value: Any) -> dict[str, Tensor]:
    return {"query": query, "key": key, "value": value}


def _more_scaled_attention(drawn: Draw) -> list[Case]:
    shapes = {"query": (3, 11, 7), "key": (3, 13, 7), "value": (3, 13, 5)}
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


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


def _more_additive_scores(drawn: Draw) -> list[Case]:
    shapes = {
        "query": (11, 3),
        "key": (13, 5),
        "w_query": (3, 7),
        "w_key": (5, 7),
        "v": (7,),
    }
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


def slopes(weights: Float[Tensor, " m"]) -> Float[Tensor, "m m"]:
    return torch.diag(weights) - weights[:, None] * weights[None, :]


def _more_slopes(drawn: Draw) -> list[Case]:
    return [{"weights": drawn(1, 5).softmax(-1)}, {"weights": drawn(2, 7).softmax(-1)}]


def slopes_2(weights: Float[Tensor, " m"], temperature: float) -> Float[Tensor, "m m"]:
    return (weights.diag() - weights[:, None] * weights[None, :]) / temperature


def _unscaled_picture() -> Any:
    from lesson_lib import charts

    query, key = drawn(6, 6, 256), drawn(8, 8, 256)
    value = torch.ones_like(key)
    tables = {
        "weights of q . k": attend(query, key, value, score=dot).weights,
        "weights of q . k / sqrt(256)": attend(query, key, value).weights,
    }
    return charts.heatmap(
        tables,
        alt=(
            "Two heat maps of 6 queries by 8 keys. Left, unscaled: one bright cell in each row. Right,"
            " scaled: a mixture."
        ),
        caption=(
            "Left, plain dot products choose (in one row two scores are close: 0.16 and 0.80). Right, the"
            " same queries and keys of width 256, with scores divided by 16: they mix."
        ),
        limits=(0.0, 1.0),
    )


def stable_weights_2(scores: Float[Tensor, "*b m n"]) -> Float[Tensor, "*b m n"]:
    largest = scores.amax(-2, keepdim=True)
    exponentials = (scores - largest).exp()
    return exponentials / exponentials.sum(-2, keepdim=True)


def _score_ratio_numbers(draw: random.Random) -> dict[str, Any]:
    low, b, a = sorted(draw.sample(range(2, 15), 3))
    return locals()


def _score_variance_numbers(draw: random.Random) -> dict[str, Any]:
    mean, d = draw.randint(2, 9), draw.choice([8, 16, 24, 32, 48, 64, 100])
    square = mean * mean
    one = (1 + square) ** 2 - square**2
    return locals()


CODE = {
    "score_ratio_2": Code(
        draw=_score_ratio_numbers,
    ),
    "stable_weights": Code(
        solution=stable_weights,
        cases=(
            lambda: [{"scores": table([[1.0, 2.0, 4.0]])}],
            lambda: [{"scores": table([[0.0, 1.0, 3.0], [2.0, -1.0, 0.5]])}],
            lambda: [
                {"scores": table([[1000.0, 1001.0, 999.0]])},
                {"scores": table([[-1000.0, -1002.0, -1001.0]])},
            ],
            lambda: [
                {"scores": table([[500.0, 501.0], [-500.0, -502.0]])},
                {"scores": table([[0.0, 0.0, 700.0]])},
            ],
            lambda: [{"scores": table([[1.0, -math.inf, 2.0]])}, {"scores": drawn(3, 2, 5, 3)}],
        ),
        hidden=_more_stable_weights,
    ),
    "stable_weights_2": Code(
        solution=stable_weights_2,
        cases=(
            lambda: [{"scores": table([[1.0], [2.0], [4.0]])}],
            lambda: [{"scores": drawn(4, 3, 2)}],
            lambda: [{"scores": table([[1000.0, -500.0], [1001.0, -502.0], [999.0, -501.0]])}],
            lambda: [{"scores": drawn(5, 2, 5, 3)}],
        ),
    ),
    "stable_weights_3": Code(
        wrong=(lambda scores: bool((scores - scores.mean(-1, keepdim=True)).max() <= 88),),
    ),
    "scaled_attention": Code(
        solution=scaled_attention,
        cases=(
            lambda: [_qkv(table([[3.0, 1.0]]), table([[2.0, 5.0]]), table([[2.0, 30.0, 500.0]]))],
            lambda: [
                _qkv(
                    table([[2.0]]),
                    table([[0.5], [1.5], [0.0]]),
                    table([[2.0, 30.0], [7.0, -50.0], [110.0, 11.0]]),
                )
            ],
            lambda: [_qkv(table([[2.0], [-1.0]]), table([[0.5], [1.5], [1.0]]), primes(3, 2))],
            lambda: [
                _qkv(drawn(1, 1, 5), drawn(2, 2, 5), primes(2, 3)),
                _qkv(drawn(1, 2, 5), drawn(2, 3, 5), primes(3, 7)),
                _qkv(drawn(6, 3, 5), drawn(7, 3, 5), drawn(8, 3, 5)),
            ],
            lambda: [
                _qkv(drawn(6, 2, 5, 3), drawn(7, 2, 5, 3), drawn(8, 2, 5, 3)),
                _qkv(drawn(3, 2, 3, 5), drawn(4, 2, 7, 5), drawn(5, 2, 7, 2, spread=9.0)),
            ],
        ),
        reference=lambda query, key, value: attend(query, key, value).output,
        hidden=_more_scaled_attention,
    ),
    "scaled_attention_2": Code(
        wrong=(
            lambda query, key, value: key.shape[-1] == value.shape[-1],
            lambda query, key, value: key.shape[-2] == 1,
            lambda query, key, value: not bool(query.any()),
            lambda query, key, value: bool((value == value[..., :1, :]).all()),
        ),
    ),
    "additive_scores": Code(
        solution=additive_scores,
        cases=(
            lambda: [_additive_case(11, 1, 1, 2, 2, 1)],
            lambda: [_additive_case(21, 1, 1, 2, 2, 3)],
            lambda: [_additive_case(31, 2, 3, 2, 2, 2)],
            lambda: [_additive_case(41, 3, 5, 2, 7, 3)],
        ),
        hidden=_more_additive_scores,
    ),
    "additive_scores_2": Code(
        wrong=(
            lambda query, key, w_query, w_key, v: (
                not bool((query @ w_query).any()) or not bool((key @ w_key).any())
            ),
            lambda query, key, w_query, w_key, v: not bool(v.any()),
        ),
    ),
    "unscaled_picture": Code(
        picture=_unscaled_picture,
    ),
    "slopes": Code(
        solution=slopes,
        cases=(
            lambda: [{"weights": table([0.5, 0.5])}],
            lambda: [{"weights": table([0.7, 0.2, 0.1])}],
            lambda: [{"weights": drawn(3, 5).softmax(-1)}],
        ),
        hidden=_more_slopes,
    ),
    "slopes_2": Code(
        solution=slopes_2,
        cases=(
            lambda: [{"weights": table([0.5, 0.5]), "temperature": 1.0}],
            lambda: [{"weights": table([0.7, 0.2, 0.1]), "temperature": 2.0}],
            lambda: [{"weights": table([0.4, 0.3, 0.15, 0.1, 0.05]), "temperature": 0.5}],
        ),
    ),
    "score_variance_2": Code(
        draw=_score_variance_numbers,
    ),
}
