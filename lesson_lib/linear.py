"""Linear attention: without softmax the products can be re-associated, so the cost grows with n instead of
n², and the causal form is an RNN.

    softmax   o_i = sum_j exp(q_i · k_j / sqrt(d)) v_j / sum_j exp(q_i · k_j / sqrt(d))
    linear    o_i = sum_j (phi(q_i) · phi(k_j)) v_j / sum_j phi(q_i) · phi(k_j) = (S^T phi(q_i)) / (z ·
              phi(q_i))
              S = sum_j phi(k_j) v_j^T,  z = sum_j phi(k_j),  phi(x) = elu(x) + 1, all parts positive

There is no 1/sqrt(d). Causal, the sums run over j <= i: then S and z are a state of fixed size that takes up
one token after the other. An exponential of a dot product is no product of finitely many features, so softmax
attention has no such state.
Source: Katharopoulos, Vyas, Pappas & Fleuret 2020, arXiv:2006.16236.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lesson_lib import require

# tokens that look at each other by a table: small enough that n · CHUNK is no n², large enough for fast
# products
CHUNK = 64
SPAN = 8 * CHUNK  # tokens computed at once: few enough to stay in a processor's cache


class LinearState(NamedTuple):
    """All that a causal layer keeps of the tokens so far: S (*b, d_k, d_v) and z (*b, d_k). Its size does not
    grow."""

    S: Float[Tensor, "*b d_k d_v"]
    z: Float[Tensor, "*b d_k"]


def feature_map(x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
    """phi(x) = elu(x) + 1: x + 1 where x is positive, exp(x) where it is not; never negative.

    >>> feature_map(torch.tensor([0.0, 2.0])).tolist()
    [1.0, 3.0]
    """
    return F.elu(x) + 1


def attend_linear(
    query: Float[Tensor, "*#b n d_k"],
    key: Float[Tensor, "*#b m d_k"],
    value: Float[Tensor, "*#b m d_v"],
    *,
    causal: bool = False,
    phi: Callable[[Tensor], Tensor] = feature_map,
) -> Float[Tensor, "*b n d_v"]:
    """Mix the values with weights `phi(q) · phi(k)`, each row divided by its sum; time and memory grow with
    n, not with n².

    Equal to `attend(query, key, value, score=lambda q, k: torch.log(phi(q) @ phi(k).mT))`, with the causal
    mask where `causal`. In the causal form query i sees keys 0 ... i, so n = m; it goes through the tokens in
    chunks: within a chunk with a table, and between chunks with the state. `phi` makes features (*b, tokens,
    any width) of queries and keys, of each token alone and never negative: `efficient.RandomFeatures`, or elu
    + 1.
    Raises TypeError or ValueError where an argument does not fit, as `attend` does, and where `causal` meets
    n != m.
    Source: Katharopoulos et al. 2020, arXiv:2006.16236; the chunks: Hua et al. 2022, arXiv:2202.10447.

    >>> one = torch.ones(2, 1)
    >>> attend_linear(one, one, torch.tensor([[1.0], [3.0]]), causal=True).tolist()
    [[1.0], [2.0]]
    """
    require.inputs(query, key, value)
    if not callable(phi):
        raise TypeError(
            f"phi must be a function that makes features, got {type(phi).__name__}; e.g. linear.feature_map"
        )
    if causal:
        _check_causal(query, key)
        return _causal(query, key, value, phi)
    q, k = phi(query), phi(key)
    return _divided(q @ (k.mT @ value), (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True))


def step(
    query: Float[Tensor, "*b d_k"],
    key: Float[Tensor, "*b d_k"],
    value: Float[Tensor, "*b d_v"],
    state: LinearState | None = None,
) -> tuple[Float[Tensor, "*b d_v"], LinearState]:
    """One token: its output, and the state with it taken up. As an RNN's step; time and memory do not depend
    on how many came before."""
    q, k = feature_map(query), feature_map(key)
    new = LinearState(k[..., :, None] * value[..., None, :], k)
    state = new if state is None else LinearState(state.S + new.S, state.z + new.z)
    summed = (q[..., None, :] @ state.S)[..., 0, :]
    return _divided(summed, (q * state.z).sum(-1, keepdim=True)), state


def as_rnn(
    query: Float[Tensor, "*b n d_k"], key: Float[Tensor, "*b n d_k"], value: Float[Tensor, "*b n d_v"]
) -> Float[Tensor, "*b n d_v"]:
    """`attend_linear(causal=True)` computed as an RNN does it: a loop over the tokens that carries a
    `LinearState`."""
    require.inputs(query, key, value)
    _check_causal(query, key)
    outputs, state = [], None
    for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2), strict=True):
        output, state = step(q, k, v, state)
        outputs.append(output)
    return torch.stack(outputs, -2)


def _causal(query: Tensor, key: Tensor, value: Tensor, phi: Callable[[Tensor], Tensor]) -> Tensor:
    """Span by span, each with the state that those before it have left."""
    batch = require.leading(query, key, value)
    n, d_v = query.shape[-2], value.shape[-1]
    width = phi(key[..., :1, :]).shape[-1]
    chunk = max(1, min(CHUNK, n))
    state = LinearState(query.new_zeros(*batch, width, d_v), query.new_zeros(*batch, width))
    padded = (F.pad(x.expand(*batch, *x.shape[-2:]), (0, 0, 0, -n % chunk)) for x in (query, key, value))
    outputs = []
    for q, k, v in zip(*(x.split(SPAN, -2) for x in padded), strict=True):
        output, state = _span(phi(q), phi(k), v, state, chunk)
        outputs.append(output)
    return torch.cat(outputs, -2)[..., :n, :]


def _span(q: Tensor, k: Tensor, v: Tensor, state: LinearState, chunk: int) -> tuple[Tensor, LinearState]:
    """Outputs of some chunks at once, and the state behind them: within a chunk by a table, from the tokens
    before it by their state."""
    q, k, v = (x.unflatten(-2, (-1, chunk)) for x in (q, k, v))
    table = (q @ k.mT).tril_()
    S = torch.cat([state.S[..., None, :, :], k.mT @ v], -3).cumsum(-3)
    z = torch.cat([state.z[..., None, :], k.sum(-2)], -2).cumsum(-2)
    summed = table @ v + q @ S[..., :-1, :, :]
    weight = table.sum(-1, keepdim=True) + q @ z[..., :-1, :, None]
    return _divided(summed, weight).flatten(-3, -2), LinearState(S[..., -1, :, :], z[..., -1, :])


def _divided(summed: Tensor, weight: Tensor) -> Tensor:
    """The sums over the sum of their weights; 0 where all weights are too small for the number format."""
    return summed / weight.clamp(min=torch.finfo(weight.dtype).tiny)


def _check_causal(query: Tensor, key: Tensor) -> None:
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"a causal layer needs a query for each key, got {query.shape[-2]} and {key.shape[-2]}; "
            "to add tokens one by one use step(...)"
        )
