"""THE function. Every lesson is `attend` with another score, mask or position term."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.scores import dot, scaled_dot

Score = Callable[[Tensor, Tensor], Tensor]


class Attended(NamedTuple):
    """What `attend` returns: the outputs, and the weights that mixed the values (None where they were not wanted)."""

    output: Float[Tensor, "*b n d_v"]
    weights: Float[Tensor, "*b n m"] | None


class Columns(NamedTuple):
    """Every matrix of the column convention; A holds scores, A_prime weights, and each COLUMN of A_prime sums to 1."""

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

    The softmax runs over the keys. `mask` says True = may look; a blocked key has weight exactly 0, and a query that
    may look at nothing gets weights and output of exactly 0, with finite gradients. `dropout` is the share of weights
    set to 0 while the values are mixed; the weights returned are those before dropout.

    `weights=False` returns None in their place. Where the score is `scaled_dot` it then runs torch's fused kernel, which
    never holds the (n, m) table: the same numbers, memory in proportion to n.

    `score_bias` and `mask` have two axes (shared by all leading axes) or as many as the scores, with 1 where shared.
    Hidden values must be finite: a weight of 0 times inf is nan, here as in torch.
    Raises TypeError or ValueError where an argument does not fit; nothing is modified in place.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1.

    >>> q, k, v = torch.zeros(1, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])
    >>> attend(q, k, v).output.item()
    3.0
    """
    shape = check_inputs(query, key, value, score, dropout)
    _check_table(score_bias, "score_bias", shape, query)
    _check_table(mask, "mask", shape, query)
    if not weights and score is scaled_dot:
        return Attended(_fused(query, key, value, score_bias, mask, dropout), None)

    scores = score(query, key)
    if not isinstance(scores, Tensor) or scores.shape != shape:
        got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(f"score must return one number per query and key, shape {tuple(shape)}, got {got}")
    if score_bias is not None:
        scores = scores + score_bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    known = mask is None and score_bias is None and score in (dot, scaled_dot)  # then no score can be -inf
    if known and not torch.is_grad_enabled():
        # in place, without a second (n, m) table: a third less time when it is large
        table = torch.softmax(scores, -1, out=scores)
    else:
        table = scores.softmax(-1) if known else _softmax(scores)
    mixed = F.dropout(table, dropout) @ value if dropout else table @ value
    return Attended(mixed, table if weights else None)


def attend_columns(
    I: Float[Tensor, "*b d_model n"],  # noqa: E741
    W_q: Float[Tensor, "d_k d_model"],
    W_k: Float[Tensor, "d_k d_model"],
    W_v: Float[Tensor, "d_v d_model"],
) -> Columns:
    """Self-attention with tokens as columns, in a lecture's letters: `Q = W_q I, A = K^T Q, O = V A'`.

    A' is the softmax of each COLUMN of A; there is no 1/sqrt(d). It is `attend` transposed: O^T = attend(Q^T, K^T, V^T).
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


def _softmax(scores: Tensor) -> Tensor:
    """Softmax over the keys, in which a row of nothing but -inf gives zeros instead of nan."""
    empty = _empty_rows(scores)
    if empty is None:
        return scores.softmax(-1)
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)


def _empty_rows(table: Tensor) -> Tensor | None:
    """Which rows of a mask or of scores let nothing through, shape (..., n, 1); None where there is none.

    A GPU is not asked whether there is one: waiting for its answer costs more than filling rows.
    """
    if table.shape[-1] == 0:
        return None
    table, boolean = table.detach(), table.dtype == torch.bool
    if table.device.type == "cpu":
        first = table[..., 0] if boolean else table[..., 0] > -torch.inf
        if first.all():  # causal and padding masks end here: every query sees the first key
            return None
    empty = ~table.any(-1, keepdim=True) if boolean else table.amax(-1, keepdim=True) == -torch.inf
    return empty if table.device.type != "cpu" or empty.any() else None


def _fused(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, mask: Tensor | None, dropout: float
) -> Tensor:
    """torch's fused kernel on inputs of any rank. On the CPU it is fused only for 4-D inputs with d_v = d_k."""
    d_k, d_v = query.shape[-1], value.shape[-1]
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    table = mask if bias is None else bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    empty = None if table is None else _empty_rows(table)
    if (
        empty is not None
    ):  # such a row looks at everything, so that no kernel makes nan of it, and is set to 0 below
        table = table | empty if table.dtype == torch.bool else table.masked_fill(empty, 0.0)
    width = max(d_k, d_v)
    output = F.scaled_dot_product_attention(
        _four_axes(_padded(query, width), batch),
        _four_axes(_padded(key, width), batch),
        _four_axes(_padded(value, width), batch),
        attn_mask=None if table is None else _four_axes(table, batch, shared=True),
        dropout_p=dropout,
        scale=d_k**-0.5,
    )
    output = output.reshape(*batch, query.shape[-2], width)[..., :d_v]
    return output if empty is None else output.masked_fill(empty, 0.0)


def _padded(x: Tensor, width: int) -> Tensor:
    return x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1]))


def _four_axes(x: Tensor, batch: torch.Size, *, shared: bool = False) -> Tensor:
    """View of x with leading axes (b, h); axes of size 1 that all share stay 1 where `shared`."""
    if shared and x.shape[:-2].numel() == 1:
        return x.reshape(1, 1, *x.shape[-2:])
    if len(batch) < 2:
        lead = x.shape[:-2] if shared else batch
        return x.expand(*lead, *x.shape[-2:]).reshape(*lead, *[1] * (2 - len(lead)), *x.shape[-2:])
    heads = x.shape[-3] if shared else batch[-1]
    x = x.expand(*batch[:-1], heads, *x.shape[-2:])
    return x if len(batch) == 2 else x.flatten(0, len(batch) - 2)


def check_inputs(
    query: Tensor, key: Tensor, value: Tensor, score: Score = scaled_dot, dropout: float = 0.0
) -> torch.Size:
    """The shape of the scores; raises where queries, keys and values do not fit together."""
    for name, x in {"query": query, "key": key, "value": value}.items():
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name} must be a tensor, got {type(x).__name__}; make one with torch.tensor(...)"
            )
        if not x.dtype.is_floating_point:
            raise TypeError(
                f"{name} must hold floating-point numbers, got {x.dtype}; convert it with .float()"
            )
        if x.ndim < 2:
            raise ValueError(
                f"{name} must have shape (..., tokens, width), got {tuple(x.shape)}; one token is x[None, :]"
            )
        if x.dtype != query.dtype:
            raise TypeError(
                f"{name} is {x.dtype}, but query is {query.dtype}; convert it with {name}.to(query.dtype)"
            )
        if x.device != query.device:
            raise ValueError(
                f"{name} is on {x.device}, but query is on {query.device}; move it with {name}.to(query.device)"
            )
    if score in (dot, scaled_dot) and query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has width {query.shape[-1]} and key {key.shape[-1]}; a dot product needs equal widths d_k "
            "(project them, or use scores.Additive or scores.Bilinear)"
        )
    if query.shape[-1] == 0:
        raise ValueError("query has width 0; a query needs at least one number")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has {key.shape[-2]} tokens and value {value.shape[-2]}; each key needs its own value (axis -2 is the tokens')"
        )
    if not callable(score):
        raise TypeError(
            f"score must be a function (query, key) -> scores, got {type(score).__name__}; e.g. scores.dot"
        )
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
        raise ValueError(
            f"dropout must be a share in [0, 1), got {dropout!r}; 0.1 drops a tenth of the weights"
        )
    try:
        batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except RuntimeError:
        shapes = ", ".join(str(tuple(x.shape[:-2])) for x in (query, key, value))
        raise ValueError(
            f"the leading axes of query, key and value do not fit together: {shapes}; make them equal"
        ) from None
    return torch.Size((*batch, query.shape[-2], key.shape[-2]))


def _check_table(table: Tensor | None, name: str, shape: torch.Size, query: Tensor) -> None:
    """Raises where `mask` or `score_bias` is not a table over the scores of that shape."""
    if table is None:
        return
    if not isinstance(table, Tensor):
        raise TypeError(
            f"{name} must be a tensor, got {type(table).__name__}; make one with torch.tensor(...)"
        )
    if name == "mask" and table.dtype != torch.bool:
        repair = (
            "pass it as score_bias"
            if table.dtype.is_floating_point
            else "convert it with .bool() if 1 means 'may look'"
        )
        raise TypeError(f"mask must be boolean (True = may look), got {table.dtype}; {repair}")
    if name == "score_bias" and table.dtype != query.dtype:
        repair = "pass it as mask" if table.dtype == torch.bool else "convert it with .to(query.dtype)"
        raise TypeError(f"score_bias must be {query.dtype} like query, got {table.dtype}; {repair}")
    if table.device != query.device:
        raise ValueError(
            f"{name} is on {table.device}, but query is on {query.device}; move it with .to(query.device)"
        )
    got, want = tuple(table.shape), tuple(shape)
    if table.ndim not in (2, len(shape)):
        raise ValueError(
            f"{name} has {table.ndim} axes {got}, but the scores have shape {want}; give it 2 axes (shared by all) or "
            f"{len(shape)}, with size 1 where shared, e.g. {name}[:, None] for one table per sequence of a (b, h, n, m) batch"
        )
    if any(have not in (1, size) for have, size in zip(got[::-1], want[::-1], strict=False)):
        turned = (
            " (it would fit transposed: rows are queries, columns are keys)"
            if got[-2:] == want[:-3:-1]
            else ""
        )
        raise ValueError(
            f"{name} of shape {got} does not broadcast to the scores {want}{turned}; its last axes are (n, m)"
        )
