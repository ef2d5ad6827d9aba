"""Truncated attention: each token looks at its neighbours up to a radius, in time and memory that grow with n
· radius instead of n².

A mask over the full table saves nothing: all n · n scores are computed, and most are thrown away. Here the
tokens are cut into blocks, and a block asks only the keys that lie within reach of it:

    queries          |  block i  |
    keys      radius |  block i  | radius          (causal: no keys on the right)

One fused attention per block, all blocks at once, with a band for a mask that all share; the ends, where keys
are missing, go by themselves.
Source: Hung-yi Lee, Machine Learning 2021, self-attention part 1 ("truncated"); Vaswani et al. 2017,
arXiv:1706.03762, section 4 ("restricted"); blocks of neighbours: Child et al. 2019, arXiv:1904.10509, and
Beltagy et al. 2020, arXiv:2004.05150.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib import require
from lesson_lib.attention import Attended, attend

BLOCK = 32  # tokens in a block, at least: below, the products are too small to be fast


def attend_window(
    query: Float[Tensor, "*b n d_k"],
    key: Float[Tensor, "*b n d_k"],
    value: Float[Tensor, "*b n d_v"],
    radius: int,
    *,
    causal: bool = False,
    padding: Bool[Tensor, "batch 1 n"] | None = None,
) -> Float[Tensor, "*b n d_v"]:
    """The output of `attend` with the mask `window(n, radius)`, without ever making a table of n x n.

    `causal` also hides later tokens. `padding` hides filler, as `masks.padding(lengths, n)` makes it: one row
    of keys for each sequence of the first axis. A query that sees nothing gets 0. Equal to `attend(mask=...)`
    to rounding, for any n and any radius.
    Raises TypeError or ValueError where an argument does not fit, as `attend` does, and for a radius that is
    no whole number >= 0.

    >>> x = torch.eye(3)
    >>> attend_window(0 * x, x, x, radius=1)[0].tolist()
    [0.5, 0.5, 0.0]
    """
    shape = require.inputs(query, key, value)
    n, after = _checked(shape, radius), 0 if causal else radius
    real = _real_keys(padding, shape, query)

    def attend_rows(start: int, end: int) -> Tensor:
        """Queries from start up to, not including, end; with the keys in reach."""
        near = slice(max(0, start - radius), min(n, end + after))
        seen = _band(end - start, near.stop - near.start, start - near.start, radius, after, query.device)
        if real is not None:
            seen = seen & real[..., None, near]
        q, k, v = query[..., start:end, :], key[..., near, :], value[..., near, :]
        return attend(q, k, v, mask=seen, weights=False).output

    block = max(radius, BLOCK)
    count = (n - radius - after) // block  # blocks whose keys are all there
    if count < 2:
        return torch.cat(
            [attend_rows(start, min(n, start + block)) for start in range(0, n, block)]
            or [value[..., :0, :]],
            -2,
        )
    start, end = radius, radius + count * block
    # The ends before the blocks: so their gradients are made after those of the blocks, and do not wait in
    # memory meanwhile.
    first, last = ([attend_rows(i, j)] if i < j else [] for i, j in ((0, start), (end, n)))
    inner = slice(0, end + after)
    reach = radius + block + after
    q = query[..., start:end, :].unflatten(-2, (count, block))
    k, v = (_Neighbours.apply(x[..., inner, :], reach, block) for x in (key, value))
    seen = _band(block, reach, radius, radius, after, query.device)
    if real is not None:
        seen = seen & real[..., inner].unfold(-1, reach, block)[..., None, :]
    blocks = attend(q, k, v, mask=seen, weights=False).output.flatten(-3, -2)
    return torch.cat([*first, blocks, *last], -2)


class WindowAttention:
    """`attend_window` for MultiHeadAttention's `attention`: layers whose tokens look `radius` tokens around.

    A mask may only hide keys from all queries alike, as `masks.padding` does. With `weights=True` the whole
    table is computed, by `attend`, to be looked at.
    Raises ValueError for another mask, for a score_bias and for dropout, and where `attend_window` does.
    """

    def __init__(self, radius: int, *, causal: bool = False) -> None:
        require.whole(at_least=0, radius=radius)
        self.radius, self.causal = radius, causal

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        dropout: float = 0.0,
        weights: bool = True,
    ) -> Attended:
        """Outputs, and the weights or None."""
        if score_bias is not None or dropout:
            raise ValueError("window attention has neither score_bias nor dropout; leave them out")
        if mask is not None and not _is_padding(mask, query):
            got = f"{tuple(mask.shape)} of {mask.dtype}" if isinstance(mask, Tensor) else type(mask).__name__
            raise ValueError(
                f"window attention takes no mask but padding, boolean (batch, 1, n), got {got};"
                " masks.padding(lengths, n) makes it"
            )
        if weights:
            n = query.shape[-2]
            seen = _band(n, n, 0, self.radius, 0 if self.causal else self.radius, query.device)
            return attend(query, key, value, mask=seen if mask is None else seen & mask)
        real = None if mask is None else mask.reshape(len(mask), 1, -1)
        return Attended(attend_window(query, key, value, self.radius, causal=self.causal, padding=real), None)


def _is_padding(mask: Any, query: Tensor) -> bool:
    """Whether the mask is (batch, 1 ..., 1, n) booleans: one row of keys for each sequence."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or not 2 < mask.ndim <= query.ndim:
        return False
    return tuple(mask.shape) == (len(query), *[1] * (mask.ndim - 2), query.shape[-2])


def _band(queries: int, keys: int, first: int, radius: int, after: int, device: torch.device) -> Tensor:
    """Who sees whom, where the first query stands at the key number `first`."""
    i = torch.arange(queries, device=device)[:, None] + first
    j = torch.arange(keys, device=device)
    return (i - radius <= j) & (j <= i + after)


class _Neighbours(torch.autograd.Function):
    """`reach` tokens for each block, a block every `step`: (*b, n, d) -> (*b, blocks, reach, d), overlapping,
    without a copy.

    torch's own gradient of `unfold` is several times slower than these few sums.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, reach: int, step: int) -> Tensor:
        ctx.shape, ctx.reach, ctx.step = x.shape, reach, step
        return x.unfold(-2, reach, step).mT

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        total = gradient.new_zeros(ctx.shape)
        last = (gradient.shape[-3] - 1) * ctx.step
        for start in range(0, ctx.reach, ctx.step):  # parts that do not overlap from block to block
            part = gradient[..., start : start + ctx.step, :]
            width = part.shape[-2]
            total[..., start : start + last + width, :].unfold(-2, width, ctx.step).mT.add_(part)
        return total, None, None


def _checked(shape: torch.Size, radius: int) -> int:
    """The number of tokens; raises where queries and keys are not the same tokens, or the radius is none."""
    require.whole(at_least=0, radius=radius)
    if shape[-2] != shape[-1]:
        raise ValueError(
            f"a window needs a query for each key, got {shape[-2]} and {shape[-1]}; for other tokens use"
            " attend(mask=...)"
        )
    return shape[-1]


def _real_keys(padding: Tensor | None, shape: torch.Size, query: Tensor) -> Tensor | None:
    """Which keys are no filler, (batch, 1 ..., n) with an axis for each leading one of the queries; None
    where all are real."""
    n = shape[-1]
    if padding is None:
        return None
    if not isinstance(padding, Tensor) or padding.dtype != torch.bool:
        got = padding.dtype if isinstance(padding, Tensor) else type(padding).__name__
        raise TypeError(
            f"padding must be a boolean tensor (True = real), got {got}; masks.padding(lengths, n) makes one"
        )
    if len(shape) < 3 or tuple(padding.shape) != (shape[0], 1, n):
        raise ValueError(
            f"padding must have shape (batch, 1, n) = ({shape[0] if len(shape) > 2 else 1}, 1, {n}) for"
            f" inputs with a batch axis, got {tuple(padding.shape)}; masks.padding(lengths, n) makes it"
        )
    if padding.device != query.device:
        raise ValueError(
            f"padding is on {padding.device}, but query is on {query.device}; move it with"
            " padding.to(query.device)"
        )
    return padding.reshape(shape[0], *[1] * (len(shape) - 3), n)
