"""The delta rule: a state that takes back what it answers to a key before it writes, so that a key that comes
again is overwritten.

    S <- exp(g_i) S,   S <- S + beta_i k_i (v_i - S^T k_i)^T,   o_i = S^T q_i

`log_gate` g_i is one number for each token, or one for each column of its key (a row of S). Keys come as they
are: the rule holds for |k| = 1 and beta from 0 to 1 what its name says, so normalise before.

All tokens at once, it is linear attention with decay on corrected values U, found by one triangular solve:

    O = tril(Q K^T * G) U,   (I + tril(B K K^T * G, -1)) U = B V,   B = diag(beta)
    G_ij = exp(g_{j+1} + ... + g_i)

since S_i = sum_{j<=i} G_ij k_j u_j^T with u_i = beta_i (v_i - (exp(g_i) S_{i-1})^T k_i). A gate for each
column stands inside the products: sum_c q_ic k_jc G_ijc.
Sources: Schlag, Irie & Schmidhuber 2021, arXiv:2102.11174 (the rule); Yang et al. 2024, arXiv:2406.06484 (the
triangle); Yang, Kautz & Hatamizadeh 2024, arXiv:2412.06464 (the gate); Kimi Team 2025, arXiv:2510.26692 (a
gate for each column).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib import require

CHUNK = 64  # tokens of one triangular solve; a table of column gates has CHUNK * CHUNK * d_k numbers


def attend_delta(
    query: Float[Tensor, "*#b n d_k"],
    key: Float[Tensor, "*#b n d_k"],
    value: Float[Tensor, "*#b n d_v"],
    beta: Float[Tensor, "*#b n"],
    *,
    log_gate: Float[Tensor, "..."] | None = None,
) -> Float[Tensor, "*b n d_v"]:
    """What the queries read from a state that is overwritten key by key; query i reads behind token i.

    In chunks: within a chunk by a triangular solve, between chunks by the state; time and memory grow with n.
    `beta` (*#b, n) says how much of the old answer is replaced: 0 nothing, 1 all of it (of a key of length
    1). `log_gate` (*#b, n), or (*#b, n, d_k) for each column of the key, is the logarithm of what stays of
    the state before the token writes: finite, and at most 0 if nothing is to grow.
    Raises TypeError or ValueError where an argument does not fit, as `attend` does, where n queries do not
    meet n keys, and where `log_gate` is not finite.

    >>> one = torch.ones(3, 1)
    >>> attend_delta(one, one, torch.tensor([[10.0], [20.0], [60.0]]), torch.ones(3)).tolist()
    [[10.0], [20.0], [60.0]]
    """
    batch, gate = _checked(query, key, value, beta, log_gate)
    n, d_k, d_v = *key.shape[-2:], value.shape[-1]
    state, outputs = query.new_zeros(*batch, d_k, d_v), []
    columns = (x.expand(*batch, n, x.shape[-1]) for x in (query, key, value, beta[..., None], gate))
    for chunk in zip(*(x.split(CHUNK, -2) for x in columns), strict=True):
        output, state = _chunk(*chunk, state)
        outputs.append(output)
    return torch.cat(outputs, -2)


def delta_step(
    query: Float[Tensor, "*b d_k"],
    key: Float[Tensor, "*b d_k"],
    value: Float[Tensor, "*b d_v"],
    beta: Float[Tensor, "*b"],
    state: Float[Tensor, "*b d_k d_v"] | None = None,
    *,
    log_gate: Float[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*b d_v"], Float[Tensor, "*b d_k d_v"]]:
    """One token: what its query reads, and the state (*b, d_k, d_v) with the token written. `log_gate` is
    (*b) or, for each column of the key, (*b, d_k)."""
    if state is None:
        state = key[..., :, None] * value[..., None, :] * 0
    if log_gate is not None:
        per_row = log_gate if log_gate.ndim == key.ndim else log_gate[..., None]
        state = per_row.exp()[..., None] * state
    wrong = value - _read(state, key)
    state = state + (beta[..., None] * key)[..., :, None] * wrong[..., None, :]
    return _read(state, query), state


def as_rnn(
    query: Float[Tensor, "*#b n d_k"],
    key: Float[Tensor, "*#b n d_k"],
    value: Float[Tensor, "*#b n d_v"],
    beta: Float[Tensor, "*#b n"],
    *,
    log_gate: Float[Tensor, "..."] | None = None,
) -> Float[Tensor, "*b n d_v"]:
    """`attend_delta` computed as an RNN does it: a loop of `delta_step` over the tokens."""
    batch, gate = _checked(query, key, value, beta, log_gate)
    n, outputs, state = key.shape[-2], [], None
    columns = (x.expand(*batch, n, x.shape[-1]) for x in (query, key, value, beta[..., None], gate))
    for q, k, v, b, g in zip(*(x.unbind(-2) for x in columns), strict=True):
        output, state = delta_step(q, k, v, b[..., 0], state, log_gate=g.expand_as(k))
        outputs.append(output)
    return torch.stack(outputs, -2) if outputs else query.new_zeros(*batch, 0, value.shape[-1])


def _read(state: Tensor, x: Tensor) -> Tensor:
    return (x[..., None, :] @ state)[..., 0, :]


def _chunk(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, gate: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs of one chunk, and the state behind it: what the state answers to a key is subtracted from its
    value, then the triangle finds what each token really writes."""
    summed = gate.cumsum(-2)  # (*b, n, 1 or d_k)
    fades, rest = summed.exp(), gate.sum(-2, keepdim=True)
    writes = beta * (v - (k * fades) @ state)
    # the unit of the triangle is taken as 1, so what stands on the diagonal does not matter
    U = torch.linalg.solve_triangular(beta * _table(k, k, summed), writes, upper=False, unitriangular=True)
    output = (q * fades) @ state + _table(q, k, summed) @ U
    return output, rest.exp().mT * state + (k * (rest - summed).exp()).mT @ U


def _table(a: Tensor, b: Tensor, summed: Tensor) -> Tensor:
    """sum_c a_ic b_jc exp(summed_ic - summed_jc) for j <= i, else 0. Differences come before the exponential:
    exp(-summed_j) alone overflows where gates are small."""
    n = a.shape[-2]
    ahead = torch.ones(n, n, dtype=torch.bool, device=a.device).triu(1)[..., None]
    fade = (summed[..., :, None, :] - summed[..., None, :, :]).masked_fill(ahead, -torch.inf).exp()
    if fade.shape[-1] == 1:
        return (a @ b.mT) * fade[..., 0]
    return torch.einsum("...ic,...jc,...ijc->...ij", a, b, fade)


def _checked(
    query: Tensor, key: Tensor, value: Tensor, beta: Tensor, log_gate: Tensor | None
) -> tuple[torch.Size, Tensor]:
    """The leading axes of all, and the gate with a last axis of 1 or d_k (zeros where there is none)."""
    require.inputs(query, key, value)
    n, d_k = key.shape[-2:]
    if query.shape[-2] != n:
        raise ValueError(
            f"the delta rule needs a query for each key, got {query.shape[-2]} and {n}; to add tokens one by"
            " one use delta_step(...)"
        )
    for name, x in {"beta": beta, "log_gate": log_gate}.items():
        if x is not None and (not isinstance(x, Tensor) or x.dtype != query.dtype):
            got = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a tensor of {query.dtype} as query is, got {got}")
    if beta.shape[-1:] != (n,):
        raise ValueError(f"beta must have a number for each token, (..., {n}), got {tuple(beta.shape)}")
    if log_gate is None:
        gate = query.new_zeros(n, 1)
    elif log_gate.ndim == beta.ndim and log_gate.shape[-1] == n:
        gate = log_gate[..., None]
    elif log_gate.ndim == beta.ndim + 1 and log_gate.shape[-2:] == (n, d_k):
        gate = log_gate
    else:
        raise ValueError(
            f"log_gate must have a number for each token, (..., {n}) with as many axes as beta, or one for"
            f" each column of the key, (..., {n}, {d_k}) with one axis more, got {tuple(log_gate.shape)}"
        )
    if not gate.isfinite().all():
        raise ValueError("log_gate must be finite; take -50 for a gate that is nearly 0")
    return require.leading(query, key, value, beta[..., None], gate), gate
