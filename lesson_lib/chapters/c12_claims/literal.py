"""Sentences of the sources as attention functions, coded to the letter, where a kind reader reads more into
them; and the examples on which part 12 tries them.

Each takes queries (n, d), keys (m, d), values (m, d_v) of one head and a mask (n, m), True = may look, as
`attend` does, and gives the outputs (n, d_v). None is meant to be used.
"""

from collections.abc import Callable
from typing import NamedTuple

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


class Example(NamedTuple):
    """What an attention function is tried on."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor


def examples() -> dict[str, Example]:
    """Four examples: a square one, as in most first tries; one whose axes all differ; the same with queries
    200 times as long; and one in which the first query may look at nothing."""
    draws = torch.Generator("cpu").manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draws, device="cpu")

    triangle = torch.ones(4, 4, dtype=torch.bool, device="cpu").tril()
    square = Example(normal(4, 4), normal(4, 4), normal(4, 4), triangle)
    not_the_last = (torch.arange(6, device="cpu") < 5).expand(5, 6)
    irregular = Example(normal(5, 4), normal(6, 4), normal(6, 3), not_the_last)
    nobody = not_the_last.clone()
    nobody[0] = False
    found = {"square": square, "irregular": irregular}
    found["long"] = irregular._replace(query=200 * irregular.query)
    found["nobody"] = irregular._replace(mask=nobody)
    where = torch.get_default_device()
    return {name: Example(*(x.to(where) for x in example)) for name, example in found.items()}


def outcome(attention: Attention, example: Example) -> str:
    """'error', 'nan', 'right', or how far the outputs are from those of `attend`."""
    try:
        made = attention(*example)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return "error"
    right = attend(example.query, example.key, example.value, mask=example.mask).output
    if made.isnan().any():
        return "nan"
    if made.shape != right.shape:
        return f"shape {tuple(made.shape)}"
    gap = (made - right).abs().max().item()
    return "right" if gap < 1e-4 else f"off by {gap:.2f}"


def maskless(attention: Attention) -> Callable[..., Tensor]:
    """The same function, whose mask may be left out: then all may look at all."""

    def asked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        return attention(query, key, value, mask)

    return asked
