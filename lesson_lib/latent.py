"""Latent keys: the keys and values of all heads are made from one narrow row per token, and a cache keeps
that row alone.

    expanded    keys and values are made for every head, and meet the queries as in any attention
    absorbed    w_key goes over to the queries, w_value behind the sum: all heads ask the one narrow row
    itself

Both are `attend`, and give the same numbers, since (q W^T) c = q (c W) for every row c. The first multiplies
less while many queries come at once, the second while one comes to a long cache.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended, attend
from lesson_lib.heads import Cache, merge_heads, split_heads, with_heads
from lesson_lib.norms import check_width
from lesson_lib.positions import rotary


class LatentAttention(nn.Module):
    """Multi-head latent attention over tokens (b, n, d_model), each with itself and those before it.

    A token is kept as one row: its latent, `norm(w_latent x)` of width d_latent, and a key part of width
    d_turned that `rotate` turns, shared by all heads. A head's key is d_k numbers made from the latent and
    the turned part; its query has both parts, too; its value is d_v numbers made from the latent. (The turn
    depends on the position, so that part cannot be absorbed.) Scores are divided by sqrt(d_k + d_turned).
    `d_query` gives the queries a latent of their own. The cache holds d_latent + d_turned numbers per token,
    whatever the number of heads. Raises ValueError where a width is less than 1 or d_turned is odd. Source:
    DeepSeek-AI 2024, DeepSeek-V2, arXiv:2405.04434."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_k: int,
        d_turned: int,
        d_v: int,
        d_latent: int,
        d_query: int | None = None,
        rotate: Callable[[Tensor, int], Tensor] = rotary,
        norm: Callable[[int], nn.Module] = nn.RMSNorm,
    ) -> None:
        super().__init__()
        require.whole(d_model=d_model, n_heads=n_heads, d_k=d_k, d_v=d_v, d_latent=d_latent)
        require.whole(at_least=2, d_turned=d_turned)
        if d_turned % 2:
            raise ValueError(f"d_turned must be even, pairs of columns turn, got {d_turned}")
        self.n_heads, self.d_k, self.d_turned, self.d_latent = n_heads, d_k, d_turned, d_latent
        self.rotate = rotate
        self.w_query_latent = None if d_query is None else nn.Linear(d_model, d_query, bias=False)
        self.query_norm = None if d_query is None else norm(d_query)
        self.w_query = nn.Linear(d_query or d_model, n_heads * (d_k + d_turned), bias=False)
        self.w_latent = nn.Linear(d_model, d_latent, bias=False)
        self.norm = norm(d_latent)
        self.w_turned = nn.Linear(d_model, d_turned, bias=False)
        self.w_key = nn.Linear(d_latent, n_heads * d_k, bias=False)
        self.w_value = nn.Linear(d_latent, n_heads * d_v, bias=False)
        self.w_output = nn.Linear(n_heads * d_v, d_model, bias=False)

    def forward(
        self,
        x: Float[Tensor, "*b n d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        cache: Cache | None = None,
        weights: bool = True,
        absorbed: bool = False,
    ) -> Attended:
        """Outputs (*b, n, d_model) and weights (*b, h, n, m). Mask and cache as in MultiHeadAttention."""
        check_width(x, self.w_latent.in_features)
        start = 0 if cache is None else cache.seen
        narrow = x if self.w_query_latent is None else self.query_norm(self.w_query_latent(x))
        query = split_heads(self.w_query(narrow), self.n_heads)
        query, asks = query.split([self.d_k, self.d_turned], -1)
        asks = self.rotate(asks, start)
        latent = self.norm(self.w_latent(x)).unsqueeze(-3)
        turned = self.rotate(self.w_turned(x).unsqueeze(-3), start)
        if cache is not None:
            latent, turned = cache.append(latent, turned)
        mask = with_heads(mask, x, "mask")
        if absorbed:
            attended = self._absorbed(query, asks, latent, turned, mask, weights)
        else:
            key = split_heads(self.w_key(latent.squeeze(-3)), self.n_heads)
            value = split_heads(self.w_value(latent.squeeze(-3)), self.n_heads)
            key = torch.cat((key, turned.expand(*key.shape[:-1], -1)), -1)
            attended = attend(torch.cat((query, asks), -1), key, value, mask=mask, weights=weights)
        return Attended(self.w_output(merge_heads(attended.output)), attended.weights)

    def _absorbed(
        self, query: Tensor, asks: Tensor, latent: Tensor, turned: Tensor, mask: Tensor | None, weights: bool
    ) -> Attended:
        """One head of keys, the row itself, for all heads of queries."""
        by_key, by_value = (w.weight.unflatten(0, (self.n_heads, -1)) for w in (self.w_key, self.w_value))
        query = torch.cat((query @ by_key, asks), -1)
        # attend divides by the root of the new width; the scores are to be those of the old one
        query = query * (query.shape[-1] / (self.d_k + self.d_turned)) ** 0.5
        key = torch.cat((latent, turned), -1)
        attended = attend(query, key, latent, mask=mask, weights=weights)
        return Attended(attended.output @ by_value.mT, attended.weights)
