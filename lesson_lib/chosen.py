"""A learned choice of keys: a cheap second score says which few keys each query looks at.

    index score   I(t, s) = sum over h of w_h(t) · ReLU(q_h(t) · k(s))   a few narrow heads, one key for all
    choice        of the keys that the mask allows, the k with the largest I(t, s)
    output        attend(q, k, v, mask=choice)

The mask comes first, the choice after it. The other way round a query spends places on keys that it may not
see: of its k keys fewer are left, or none, and which are left depends on the future.
Source: DeepSeek-AI 2025, DeepSeek-V3.2, arXiv:2512.02556.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.positions import rotary


def best_keys(
    scores: Float[Tensor, "*b n m"], k: int, *, mask: Bool[Tensor, "*#b #n #m"] | None = None
) -> Bool[Tensor, "*b n m"]:
    """Mask that lets each query look at the k keys with the largest scores, of those that `mask` allows.

    A row with fewer allowed keys keeps those, a row with none keeps none. Of equal scores the earlier key
    wins, so there are never more than k; a score of -inf or nan that is allowed comes last. No gradient comes
    through a choice. A block mask is the same for blocks: best_keys of the largest score in each block, with
    `mask` for the blocks, then `repeat_interleave`, and `mask` once more.
    Raises TypeError where scores are no floating-point or the mask no boolean tensor, ValueError where shapes
    do not fit or k is no whole number >= 1.

    >>> best_keys(torch.tensor([[1.0, 9.0, 8.0], [2.0, 3.0, 3.0]]), 1).int().tolist()
    [[0, 1, 0], [0, 1, 0]]
    """
    if not isinstance(scores, Tensor) or not scores.dtype.is_floating_point:
        got = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise TypeError(f"scores must be a tensor of floating-point numbers, got {got}")
    if scores.ndim < 2:
        raise ValueError(f"scores must have shape (..., queries, keys), got {tuple(scores.shape)}")
    require.whole(k=k)
    require.table(mask, "mask", scores.shape, scores)
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    lowest = torch.finfo(scores.dtype).min  # finite: an allowed score of -inf still comes before a hidden one
    order = scores.detach().nan_to_num(nan=lowest).masked_fill(~allowed, -torch.inf)
    best = order.argsort(dim=-1, descending=True, stable=True)[..., :k]
    return torch.zeros_like(allowed).scatter(-1, best, True) & allowed


class Indexer(nn.Module):
    """Index scores I(t, s) = sum over h of w_h(t) · ReLU(q_h(t) · k(s)): `n_heads` narrow queries of a token,
    one key for all heads, and a weight of each head that the token itself sets.

    A pair costs n_heads · width multiplications. `pairing` turns queries and keys by their positions, as
    `positions.rotary` does (None: not at all); weights trained with one pairing are wrong with the other.
    Raises ValueError where a width is less than 1, or where `rotary` does.
    Source: DeepSeek-AI 2025, DeepSeek-V3.2, arXiv:2512.02556.
    """

    def __init__(self, d_model: int, n_heads: int = 2, width: int = 4, *, pairing: str | None = None) -> None:
        super().__init__()
        require.whole(d_model=d_model, n_heads=n_heads, width=width)
        if pairing is not None:
            require.one_of(("interleaved", "half-split"), pairing=pairing)
        self.n_heads, self.pairing = n_heads, pairing
        self.w_query = nn.Linear(d_model, n_heads * width, bias=False)
        self.w_key = nn.Linear(d_model, width, bias=False)
        self.w_head = nn.Linear(d_model, n_heads, bias=False)

    def forward(
        self, query: Float[Tensor, "*b n d_model"], key: Float[Tensor, "*b m d_model"] | None = None
    ) -> Float[Tensor, "*b n m"]:
        """Index scores of the tokens `query` with the tokens `key`, of which they are the last (None: they
        are the same)."""
        key = query if key is None else key
        require.inputs(query, key, key)
        if query.shape[-1] != self.w_key.in_features:
            raise ValueError(f"tokens must be d_model = {self.w_key.in_features} wide, got {query.shape[-1]}")
        q = self.w_query(query).unflatten(-1, (self.n_heads, -1)).transpose(-2, -3)
        k = self.w_key(key).unsqueeze(-3)
        if self.pairing is not None:
            q = rotary(q, key.shape[-2] - query.shape[-2], pairing=self.pairing)
            k = rotary(k, pairing=self.pairing)
        return (self.w_head(query).mT[..., None] * (q @ k.mT).relu()).sum(-3)
