"""THE function. Every lesson is `attend` with another score, mask or position term."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib import require
from lesson_lib.fused import empty_rows, fused
from lesson_lib.scores import dot, scaled_dot

Score = Callable[[Tensor, Tensor], Tensor]
DOTS = (dot, scaled_dot)


class Attended(NamedTuple):
    """What `attend` returns: the outputs, and the weights that mixed the values (None where they were not
    wanted)."""

    output: Float[Tensor, "*b n d_v"]
    weights: Float[Tensor, "*b n m"] | None


class Columns(NamedTuple):
    """Every matrix of the column convention; A holds scores, A_prime weights, and each COLUMN of A_prime sums
    to 1."""

    Q: Float[Tensor, "*b d_k n"]
    K: Float[Tensor, "*b d_k n"]
    V: Float[Tensor, "*b d_v n"]
    A: Float[Tensor, "*b n n"]
    A_prime: Float[Tensor, "*b n n"]
    O: Float[Tensor, "*b d_v n"]  # noqa: E741 (the lecture's letter)


def attend(
    query: Float[Tensor, "*#b n d_query"],
    key: Float[Tensor, "*#b m d_key"],
    value: Float[Tensor, "*#b m d_v"],
    *,
    score: Score = scaled_dot,
    score_bias: Float[Tensor, "*#b #n #m"] | None = None,
    mask: Bool[Tensor, "*#b #n #m"] | None = None,
    dropout: float = 0.0,
    weights: bool = True,
) -> Attended:
    """Mix the values, each query with its own weights: `softmax(score(q, k) + score_bias) v`.

    The softmax runs over the keys. `mask` says True = may look; a blocked key has weight exactly 0, and a
    query that may look at nothing gets weights and output of exactly 0, with finite gradients. `dropout` is
    the share of weights set to 0 while the values are mixed; the weights returned are those before dropout.

    `weights=False` returns None in their place. Where the score is `scaled_dot` it then runs torch's fused
    kernel, which never holds the (n, m) table: the same numbers, memory in proportion to n.

    `score_bias` and `mask` have two axes (shared by all leading axes) or as many as the scores, with 1 where
    shared. Hidden values must be finite: a weight of 0 times inf is nan, here as in torch.
    Raises TypeError or ValueError where an argument does not fit; nothing is modified in place.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1.

    >>> q, k, v = torch.zeros(1, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])
    >>> attend(q, k, v).output.item()
    3.0
    """
    shape = require.attention(query, key, value, score_bias, mask, dropout, score, equal_widths=score in DOTS)
    if not weights and score is scaled_dot:
        return Attended(fused(query, key, value, score_bias, mask, dropout), None)

    scores = require.table_of_scores(score(query, key), shape)
    if score_bias is not None:
        scores = scores + score_bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    table = _softmax(scores, all_finite=mask is None and score_bias is None and score in DOTS)
    output = F.dropout(table, dropout) @ value
    return Attended(output, table if weights else None)


def attend_columns(
    I: Float[Tensor, "*b d_model n"],  # noqa: E741
    W_q: Float[Tensor, "d_k d_model"],
    W_k: Float[Tensor, "d_k d_model"],
    W_v: Float[Tensor, "d_v d_model"],
) -> Columns:
    """Self-attention with tokens as columns, in a lecture's letters: `Q = W_q I, A = K^T Q, O = V A'`.

    A' is the softmax of each COLUMN of A; there is no 1/sqrt(d). It is `attend` transposed: O^T = attend(Q^T,
    K^T, V^T).
    Raises ValueError where a matrix does not fit the columns of I.
    Source: Hung-yi Lee, Machine Learning 2021, self-attention part 2.
    """
    for name, W in {"W_q": W_q, "W_k": W_k, "W_v": W_v}.items():
        if W.shape[-1] != I.shape[-2]:
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}, but the columns of I have {I.shape[-2]} rows; "
                f"{name} needs {I.shape[-2]} columns, and it stands on the left: {name} @ I"
            )
    Q, K, V = W_q @ I, W_k @ I, W_v @ I
    output, table = attend(Q.mT, K.mT, V.mT, score=dot)
    return Columns(Q, K, V, K.mT @ Q, table.mT, output.mT)


def _softmax(scores: Tensor, *, all_finite: bool) -> Tensor:
    """Softmax over the keys, in which a row of nothing but -inf gives zeros instead of nan. May overwrite
    scores that are all finite."""
    if all_finite and not torch.is_grad_enabled():
        # in place, without a second (n, m) table: a third less time when it is large
        return torch.softmax(scores, -1, out=scores)
    empty = None if all_finite else empty_rows(scores)
    if empty is None:
        return scores.softmax(-1)
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
