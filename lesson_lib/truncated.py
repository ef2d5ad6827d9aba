"""Truncated attention: each token looks at its neighbours up to a radius, in time and memory that grow with n · radius instead of n².

A mask over the full table saves nothing: all n · n scores are computed, and most are thrown away. Here the tokens are cut into blocks, and a
block asks only the keys that lie within reach of it:

    queries          |  block i  |
    keys      radius |  block i  | radius          (causal: no keys on the right)

One fused attention per block, all blocks at once, with a band for a mask, the same for every block but at the ends.
Source: Hung-yi Lee, Machine Learning 2021, self-attention part 1 ("truncated"); Vaswani et al. 2017, arXiv:1706.03762, section 4 ("restricted");
blocks of neighbours: Child et al. 2019, arXiv:1904.10509, and Beltagy et al. 2020, arXiv:2004.05150.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend, check_inputs
from lesson_lib.masks import causal as causal_mask
from lesson_lib.masks import window

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

    `causal` also hides later tokens. `padding` hides filler, as `masks.padding(lengths, n)` makes it: one row of keys for each sequence of the
    first axis. A query that sees nothing gets 0. Equal to `attend(mask=...)` to rounding, for any n and any radius.
    Raises TypeError or ValueError where an argument does not fit, as `attend` does, and for a radius that is no whole number >= 0.

    >>> x = torch.eye(3)
    >>> attend_window(0 * x, x, x, radius=1)[0].tolist()
    [0.5, 0.5, 0.0]
    """
    shape = check_inputs(query, key, value)
    n = _checked(shape, radius)
    real = _real(padding, shape, query)
    if 2 * radius + 1 >= n:  # the window is as wide as the sequence
        mask = window(n, radius, device=query.device)
        mask = mask & causal_mask(n, device=query.device) if causal else mask
        mask = mask if padding is None else mask & real[..., None, :]
        return attend(query, key, value, mask=mask, weights=False).output
    block, after = max(radius, BLOCK), 0 if causal else radius
    filler = -n % block
    ends, reach = (radius, filler + after), radius + block + after
    blocks = F.pad(query, (0, 0, 0, filler)).unflatten(-2, (-1, block))
    near_keys, near_values = (F.pad(x, (0, 0, *ends)).unfold(-2, reach, block).mT for x in (key, value))
    i = torch.arange(block, device=query.device)[:, None]
    j = torch.arange(reach, device=query.device) - radius
    band = (i - radius <= j) & (j <= i + after)
    mask = band & F.pad(real, ends).unfold(-1, reach, block)[..., None, :]
    mask = mask.reshape(*[1] * (blocks.ndim - mask.ndim), *mask.shape)
    output = attend(blocks, near_keys, near_values, mask=mask, weights=False).output
    return output.flatten(-3, -2)[..., :n, :]


def _checked(shape: torch.Size, radius: int) -> int:
    """The number of tokens; raises where queries and keys are not the same tokens, or the radius is none."""
    if isinstance(radius, bool) or not isinstance(radius, int) or radius < 0:
        raise ValueError(
            f"radius must be a whole number >= 0 of tokens, got {radius!r}; radius=0 is 'only myself'"
        )
    if shape[-2] != shape[-1]:
        raise ValueError(
            f"a window needs a query for each key, got {shape[-2]} and {shape[-1]}; for other tokens use attend(mask=...)"
        )
    return shape[-1]


def _real(padding: Tensor | None, shape: torch.Size, query: Tensor) -> Tensor:
    """Which keys are no filler, (n,) or (batch, 1 ..., n) with an axis for each leading one of the queries."""
    n = shape[-1]
    if padding is None:
        return torch.ones(n, dtype=torch.bool, device=query.device)
    if not isinstance(padding, Tensor) or padding.dtype != torch.bool:
        got = padding.dtype if isinstance(padding, Tensor) else type(padding).__name__
        raise TypeError(
            f"padding must be a boolean tensor (True = real), got {got}; masks.padding(lengths, n) makes one"
        )
    if len(shape) < 3 or tuple(padding.shape) != (shape[0], 1, n):
        raise ValueError(
            f"padding must have shape (batch, 1, n) = ({shape[0] if len(shape) > 2 else 1}, 1, {n}) for inputs with a batch axis, "
            f"got {tuple(padding.shape)}; masks.padding(lengths, n) makes it"
        )
    if padding.device != query.device:
        raise ValueError(
            f"padding is on {padding.device}, but query is on {query.device}; move it with padding.to(query.device)"
        )
    return padding.reshape(shape[0], *[1] * (len(shape) - 3), n)
