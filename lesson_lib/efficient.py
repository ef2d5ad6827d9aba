"""Attention that costs less: the same numbers in another order, or other numbers for less work.

    exact         attend_tiles    tile by tile with a running softmax; the table is never held: time n²,
                                  memory n
    approximate   LowRank         keys and values mixed down to `rank` of each: attend(q, E k, F v); time
                                  and memory n · rank
                  RandomFeatures  features whose products are exp(q · k / sqrt(d)) on average, for
                                  `attend_linear`

`Partial` and `merge` are what makes the exact one possible: attention to some keys and attention to the
others, put together without knowing any single weight. `lesson_lib.ring` does the same between processes.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended, attend

# queries, and keys, of a tile: large enough for fast products, small enough that their table stays in the
# cache
TILE = 256
LARGEST = (
    30.0  # exponent of a random feature, at most, so that sums of products of two stay finite in float32
)


class Partial(NamedTuple):
    """Attention to some of the keys: the outputs, and for each query the logarithm of its sum of exp(score),
    -inf where it saw no key."""

    output: Float[Tensor, "*b n d_v"]
    log_sum: Float[Tensor, "*b n"]


def merge(one: Partial, other: Partial) -> Partial:
    """Attention to the keys of both: each output counts as much as its keys' exp(score) do. Exact, in any
    order.

    >>> a = Partial(torch.tensor([[1.0]]), torch.tensor([0.0]))
    >>> merge(a, Partial(torch.tensor([[5.0]]), torch.tensor([math.log(3)]))).output.item()
    4.0
    """
    top = torch.maximum(one.log_sum, other.log_sum).clamp(min=torch.finfo(one.log_sum.dtype).min)
    shares = [(part.log_sum - top).exp() for part in (one, other)]  # -inf minus -inf would be nan
    total = (shares[0] + shares[1]).clamp(min=torch.finfo(top.dtype).tiny)
    # divided by their own sum, so that rounding of a huge logarithm leaves a mean of the two
    output = sum(
        part.output * (share / total)[..., None] for part, share in zip((one, other), shares, strict=True)
    )
    return Partial(output, torch.logaddexp(one.log_sum, other.log_sum))


def attend_tiles(
    query: Float[Tensor, "*#b n d_k"],
    key: Float[Tensor, "*#b m d_k"],
    value: Float[Tensor, "*#b m d_v"],
    *,
    causal: bool = False,
    tile: int = TILE,
) -> Float[Tensor, "*b n d_v"]:
    """The output of `attend` (with the causal mask where `causal`), from tiles of `tile` x `tile` scores, one
    at a time.

    No table of n x m is ever held, with backward neither: there the tiles are computed once more. So memory
    grows with n, time with n² as before. `attend(weights=False)` does the same in torch's compiled kernel,
    which is faster, unless it is given a causal mask; this is how it works.
    Raises TypeError or ValueError where an argument does not fit, as `attend` does, where `causal` meets n !=
    m, and for a tile below 1.
    Source: Dao, Fu, Ermon, Rudra & Ré 2022, arXiv:2205.14135; the running softmax: Milakov & Gimelshein 2018,
    arXiv:1805.02867.

    >>> x = torch.eye(3)
    >>> attend_tiles(0 * x, x, x, causal=True, tile=2)[1].tolist()
    [0.5, 0.5, 0.0]
    """
    shape = require.inputs(query, key, value)
    require.whole(tile=tile)
    if causal and shape[-2] != shape[-1]:
        raise ValueError(
            f"a causal mask needs a query for each key, got {shape[-2]} and {shape[-1]}; leave causal out, or"
            " cut the longer"
        )
    inputs = (x.expand(*shape[:-2], *x.shape[-2:]) for x in (query, key, value))
    return _Tiles.apply(*inputs, 0 if causal else None, tile)


def attend_part(
    query: Tensor, key: Tensor, value: Tensor, *, ahead: int | None = None, tile: int = TILE
) -> Partial:
    """Attention to the keys given, in at least float32: all of them, or for query i those up to number i +
    `ahead`, which may be negative."""
    kind = torch.promote_types(query.dtype, torch.float32)
    output = query.new_zeros(*query.shape[:-1], value.shape[-1], dtype=kind)
    log_sum = query.new_full(query.shape[:-1], -torch.inf, dtype=kind)
    for rows, column_tiles in _tiles(query.shape[-2], key.shape[-2], ahead, tile):
        q = query[..., rows, :].to(kind) * query.shape[-1] ** -0.5
        top, total, mixed = -torch.inf, 0.0, 0.0  # the largest score so far, and two sums relative to it
        for columns in column_tiles:
            scores = _scores(q, key, rows, columns, ahead)
            new = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(kind).min)
            new = new if isinstance(top, float) else torch.maximum(new, top)
            # the weights stay under the scores' name: a second one would keep this tile alive beside the next
            shrink, scores = (top - new).exp(), scores.sub_(new).exp_()
            total = total * shrink + scores.sum(-1, keepdim=True)
            mixed = mixed * shrink + scores @ value[..., columns, :].to(kind)
            top = new
        if column_tiles:
            output[..., rows, :] = mixed / total.clamp(min=torch.finfo(kind).tiny)
            log_sum[..., rows] = (top + total.log())[..., 0]
    return Partial(output, log_sum)


def gradients_part(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    whole: Partial,
    gradient: Tensor,
    *,
    ahead: int | None = None,
    tile: int = TILE,
) -> tuple[Tensor, Tensor, Tensor]:
    """What `attend_part`'s keys add to the gradients of query, key and value, where `whole` is the attention
    to ALL keys, of these and other parts.

    `gradient` is the outputs'. Weights are computed again, tile by tile: exp(score - log_sum).
    """
    kind = whole.output.dtype
    dq, dk, dv = (torch.zeros_like(x, dtype=kind) for x in (query, key, value))
    scale = query.shape[-1] ** -0.5
    log_sum = whole.log_sum.masked_fill(whole.log_sum == -torch.inf, torch.inf)  # no keys at all: weights 0
    for rows, column_tiles in _tiles(query.shape[-2], key.shape[-2], ahead, tile):
        q, g = query[..., rows, :].to(kind) * scale, gradient[..., rows, :].to(kind)
        mean = (g * whole.output[..., rows, :]).sum(-1, keepdim=True)
        for columns in column_tiles:
            weights = _scores(q, key, rows, columns, ahead).sub_(log_sum[..., rows, None]).exp_()
            dv[..., columns, :] += weights.mT @ g
            by_score = (g @ value[..., columns, :].to(kind).mT).sub_(mean).mul_(weights)
            dq[..., rows, :] += by_score @ key[..., columns, :].to(kind) * scale
            dk[..., columns, :] += by_score.mT @ q
    return dq, dk, dv


class LowRank(nn.Module):
    """Attention to `rank` mixtures of the keys and values: `attend(q, E k, F v)`, with E and F of shape
    (rank, n) learnt and shared by heads.

    It is called as `layer(query, key, value)`, and with E = F = the identity it is `attend`. A mixture has no
    place of its own, so nothing can be masked, and there are as many columns as there were tokens in
    training: a sequence may be shorter than n, not longer. `shared` makes F = E. Parameters: 2 · rank · n, or
    rank · n. Raises ValueError where sizes do not fit.
    Source: Wang, Li, Khabsa, Fang & Ma 2020, "Linformer", arXiv:2006.04768.
    """

    def __init__(self, n: int, rank: int, *, shared: bool = False) -> None:
        super().__init__()
        require.whole(n=n, rank=rank)
        self.n, self.rank = n, rank
        # of variance 1/n, so that a mixture of n independent keys is as long as a key
        self.mix_keys = nn.Parameter(torch.randn(rank, n) * n**-0.5)
        self.mix_values = self.mix_keys if shared else nn.Parameter(torch.randn(rank, n) * n**-0.5)

    def forward(
        self,
        query: Float[Tensor, "*#b n d_k"],
        key: Float[Tensor, "*#b m d_k"],
        value: Float[Tensor, "*#b m d_v"],
    ) -> Float[Tensor, "*b n d_v"]:
        """Outputs, one for each query."""
        m = require.inputs(query, key, value)[-1]
        if m > self.n:
            raise ValueError(
                f"this layer mixes at most {self.n} keys, got {m}; make it with n={m}: its columns are"
                " learnt, one for each place"
            )
        return attend(query, self.mix_keys[:, :m] @ key, self.mix_values[:, :m] @ value, weights=False).output


class RandomFeatures(nn.Module):
    """phi with phi(q) · phi(k) = exp(q · k / sqrt(d)) on average over the draw, all features positive; for
    `attend_linear(phi=...)`.

        phi(x) = exp(W y - |y|² / 2) / sqrt(n_features),  y = x / d^(1/4),  W with rows from N(0, I)

    `orthogonal` rows (within each d of them) spread more evenly, and the error is smaller for it; their
    lengths stay those of Gaussian rows. The error grows fast with the lengths of queries and keys. Directions
    are drawn with a CPU generator from `seed`, and not trained.
    Source: Choromanski et al. 2021, "Rethinking Attention with Performers", arXiv:2009.14794.
    """

    def __init__(self, d_k: int, n_features: int, *, orthogonal: bool = True, seed: int = 0) -> None:
        super().__init__()
        require.whole(d_k=d_k, n_features=n_features)
        self.d_k, self.n_features = d_k, n_features
        draws = torch.Generator("cpu").manual_seed(seed)
        rows = torch.randn(n_features, d_k, generator=draws, device="cpu")
        if orthogonal:
            count = math.ceil(n_features / d_k)
            turned, upper = torch.linalg.qr(torch.randn(count, d_k, d_k, generator=draws, device="cpu"))
            # the algorithm's own choice of signs would favour some directions, and the mean be wrong
            turned = turned * upper.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]
            rows = turned.flatten(0, 1)[:n_features] * rows.norm(dim=-1, keepdim=True)
        self.register_buffer("directions", rows.to(torch.get_default_device()))

    def forward(self, x: Float[Tensor, "*b d_k"]) -> Float[Tensor, "*b n_features"]:
        """Features of each query or key. Raises TypeError where x is no tensor, ValueError for
        another width."""
        if not isinstance(x, Tensor):
            raise TypeError(f"x must be a tensor, got {type(x).__name__}; make one with torch.tensor(...)")
        if x.shape[-1] != self.d_k:
            raise ValueError(
                f"x has width {x.shape[-1]}, but these features were drawn for {self.d_k}; make"
                f" RandomFeatures({x.shape[-1]}, ...)"
            )
        y = x * self.d_k**-0.25
        exponents = y @ self.directions.to(y.dtype).mT - y.square().sum(-1, keepdim=True) / 2
        return exponents.clamp(max=LARGEST).exp() * self.n_features**-0.5


class TableFree(nn.Module):
    """A function (query, key, value) -> output for MultiHeadAttention's `attention`: layers without a table
    of weights.

    So linear attention is `TableFree(attend_linear)`. Raises ValueError for a mask, a score_bias, dropout,
    and where weights are wanted.
    """

    def __init__(self, function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        if not callable(function):
            raise TypeError(
                f"function must take query, key and value, got {type(function).__name__}; e.g. attend_linear"
            )
        self.function = function

    def forward(
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
        """Outputs, and None for the weights."""
        unfit = {
            "mask": mask is not None,
            "score_bias": score_bias is not None,
            "dropout": dropout,
            "weights": weights,
        }
        if asked := [name for name, given in unfit.items() if given]:
            raise ValueError(
                f"this attention has no table, so no {' and no '.join(asked)}; leave it out, or weights=False"
            )
        return Attended(self.function(query, key, value), None)


class _Tiles(torch.autograd.Function):
    """`attend_part` over all keys, with a gradient that computes its tiles again."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, ahead: int | None, tile: int) -> Tensor:
        whole = attend_part(query, key, value, ahead=ahead, tile=tile)
        ctx.save_for_backward(query, key, value, *whole)
        ctx.ahead, ctx.tile = ahead, tile
        return whole.output.to(query.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *whole = ctx.saved_tensors
        found = gradients_part(query, key, value, Partial(*whole), gradient, ahead=ctx.ahead, tile=ctx.tile)
        return *(x.to(query.dtype) for x in found), None, None


def _tiles(n: int, m: int, ahead: int | None, tile: int) -> list[tuple[slice, list[slice]]]:
    """Rows of queries, and for each the columns of keys that at least one of them may see."""
    found = []
    for start in range(0, n, tile):
        end = min(n, start + tile)
        seen = m if ahead is None else min(m, end + ahead)  # the last row sees the most
        found.append((slice(start, end), [slice(i, min(seen, i + tile)) for i in range(0, seen, tile)]))
    return found


def _scores(q: Tensor, key: Tensor, rows: slice, columns: slice, ahead: int | None) -> Tensor:
    scores = q @ key[..., columns, :].to(q.dtype).mT
    if ahead is not None and columns.stop - 1 > rows.start + ahead:
        i = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
        j = torch.arange(columns.start, columns.stop, device=q.device)
        scores = scores.masked_fill_(j > i + ahead, -torch.inf)
    return scores
