"""Linear attention: without softmax the products can be re-associated, so the cost grows with n instead of n², and the causal form is an RNN.

    softmax   o_i = sum_j exp(q_i · k_j / sqrt(d)) v_j / sum_j exp(q_i · k_j / sqrt(d))
    linear    o_i = sum_j (phi(q_i) · phi(k_j)) v_j / sum_j phi(q_i) · phi(k_j) = (S^T phi(q_i)) / (z · phi(q_i))
              S = sum_j phi(k_j) v_j^T,  z = sum_j phi(k_j),  phi(x) = elu(x) + 1, all parts positive

There is no 1/sqrt(d). Causal, the sums run over j <= i: then S and z are a state of fixed size that takes up one token after the other.
An exponential of a dot product is no product of finitely many features, so softmax attention has no such state.
Source: Katharopoulos, Vyas, Pappas & Fleuret 2020, arXiv:2006.16236.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import check_inputs

CHUNK = 64  # tokens whose causal part is computed at once: small enough that n · CHUNK is no n², large enough for fast products


class State(NamedTuple):
    """All that a causal layer keeps of the tokens so far: S (*b, d_k, d_v) and z (*b, d_k). Its size does not grow."""

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
) -> Float[Tensor, "*b n d_v"]:
    """Mix the values with weights `phi(q) · phi(k)`, each row divided by its sum; time and memory grow with n, not with n².

    Equal to `attend(query, key, value, score=lambda q, k: torch.log(phi(q) @ phi(k).mT))`, with the causal mask where `causal`. In
    the causal form query i sees keys 0 ... i, so n = m; it goes through the tokens in chunks: within a chunk with a table, and between chunks with the state.
    Raises TypeError or ValueError where an argument does not fit, as `attend` does, and where `causal` meets n != m.
    Source: Katharopoulos et al. 2020, arXiv:2006.16236; the chunks: Hua et al. 2022, arXiv:2202.10447.

    >>> one = torch.ones(2, 1)
    >>> attend_linear(one, one, torch.tensor([[1.0], [3.0]]), causal=True).tolist()
    [[1.0], [2.0]]
    """
    check_inputs(query, key, value)
    if causal:
        _check_causal(query, key)
    q, k = feature_map(query), feature_map(key)
    counted = F.pad(value, (0, 1), value=1.0)  # a column of ones: its sum is the divisor
    summed = _causal_sums(q, k, counted) if causal else q @ (k.mT @ counted)
    return _divided(summed)


def step(
    query: Float[Tensor, "*b d_k"],
    key: Float[Tensor, "*b d_k"],
    value: Float[Tensor, "*b d_v"],
    state: State | None = None,
) -> tuple[Float[Tensor, "*b d_v"], State]:
    """One token: its output, and the state with it taken up. As an RNN's step; time and memory do not depend on how many came before."""
    q, k = feature_map(query), feature_map(key)
    new = State(k[..., :, None] * value[..., None, :], k)
    state = new if state is None else State(state.S + new.S, state.z + new.z)
    summed = torch.cat([q[..., None, :] @ state.S, (q * state.z).sum(-1)[..., None, None]], -1)
    return _divided(summed)[..., 0, :], state


def as_rnn(
    query: Float[Tensor, "*b n d_k"], key: Float[Tensor, "*b n d_k"], value: Float[Tensor, "*b n d_v"]
) -> Float[Tensor, "*b n d_v"]:
    """`attend_linear(causal=True)` computed as an RNN does it: a loop over the tokens that carries a `State`."""
    check_inputs(query, key, value)
    _check_causal(query, key)
    outputs, state = [], None
    for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2), strict=True):
        output, state = step(q, k, v, state)
        outputs.append(output)
    return torch.stack(outputs, -2)


def _causal_sums(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """sum over j <= i of (q_i · k_j) v_j, chunk by chunk."""
    n = q.shape[-2]
    missing = -n % min(CHUNK, n)
    q, k, v = (F.pad(x, (0, 0, 0, missing)).unflatten(-2, (-1, min(CHUNK, n))) for x in (q, k, v))
    near = (q @ k.mT).tril() @ v
    states = (k.mT @ v).cumsum(-3)
    far = q[..., 1:, :, :] @ states[..., :-1, :, :]
    summed = torch.cat([near[..., :1, :, :], near[..., 1:, :, :] + far], -3)
    return summed.flatten(-3, -2)[..., :n, :]


def _divided(summed: Tensor) -> Tensor:
    """The sums over their last column, the sum of the weights; 0 where all weights are too small for the number format."""
    weight = summed[..., -1:]
    return summed[..., :-1] / weight.clamp(min=torch.finfo(weight.dtype).tiny)


def _check_causal(query: Tensor, key: Tensor) -> None:
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"a causal layer needs a query for each key, got {query.shape[-2]} and {key.shape[-2]}; "
            "to add tokens one by one use step(...)"
        )
