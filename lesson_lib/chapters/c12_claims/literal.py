"""Sentences of the sources as attention functions, coded to the letter, where a kind reader reads more into
them.

Each takes queries (n, d), keys (m, d), values (m, d_v) of one head and a mask (n, m), True = may look, as
`attend` does, and gives the outputs (n, d_v). None is meant to be used.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.scores import scaled_dot

Attention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def weights_from_values(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Outputs where q and v, not q and k, "go through attention"; the row heads-4 of the ledger."""
    return attend(query, value, value, mask=mask).output


def minus_a_billion(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Outputs where hidden scores are set to -1e9; the row mask-2 of the ledger."""

    def filled(query: Tensor, key: Tensor) -> Tensor:
        return scaled_dot(query, key).masked_fill(~mask, -1e9)

    return attend(query, key, value, score=filled).output


def exp_over_sum(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Outputs where softmax is exp(x) / sum(exp(x)), as its definition has it; the row steps-4."""
    powers = scaled_dot(query, key).masked_fill(~mask, -torch.inf).exp()
    return powers / powers.sum(-1, keepdim=True) @ value


def maskless(attention: Attention) -> Callable[..., Tensor]:
    """The same function, whose mask may be left out: then all may look at all."""

    def asked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        return attention(query, key, value, mask)

    return asked
