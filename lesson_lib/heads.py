"""Several heads: the same attention, run side by side on narrow projections, and mixed by one last matrix."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended, attend
from lesson_lib.positions import Shaw


def split_heads(x: Float[Tensor, "*b n h_d"], n_heads: int) -> Float[Tensor, "*b h n d"]:
    """A view in which each head has a table of its own: cut the width into heads, then swap the axes of heads
    and tokens.

    Raises ValueError where the width is no multiple of `n_heads`.

    >>> split_heads(torch.arange(8.0).reshape(2, 4), n_heads=2).tolist()
    [[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]
    """
    _divisible(x.shape[-1], n_heads, "the width of x")
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x: Float[Tensor, "*b h n d"]) -> Float[Tensor, "*b n h_d"]:
    """The way back: the heads' outputs of each token side by side in one row. Undoes `split_heads`."""
    return x.transpose(-3, -2).flatten(-2)


class Cache:
    """Keys and values of the tokens seen so far, (*b, h, tokens, d) each, so that a new token need not
    compute them again.

    Give the same cache to every call; `len(cache)` counts the tokens that it holds, `seen` those that ever
    came. For self-attention, one cache per layer. With a `window` it rolls: a token may look at that many,
    itself among them, so no more than window - 1 are kept, and `seen` alone says where the next one stands.
    Raises ValueError where `window` is less than 1.
    """

    def __init__(self, window: int | None = None) -> None:
        if window is not None:
            require.whole(window=window)
        self.window, self.seen = window, 0
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.key is None else self.key.shape[-2]

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values that the new tokens may see, their own last."""
        if self.key is not None and self.value is not None:
            if self.key.shape[:-2] != key.shape[:-2]:
                raise ValueError(
                    f"the cache holds keys of a batch with leading axes {tuple(self.key.shape[:-2])}, the new"
                    f" ones have {tuple(key.shape[:-2])}; start each batch with a new Cache()"
                )
            if key.shape[-2] == 0:  # nothing new, as in attention to a source that does not grow
                return self.key, self.value
            self.seen += key.shape[-2]
            key, value = torch.cat((self.key, key), -2), torch.cat((self.value, value), -2)
        else:
            self.seen = key.shape[-2]
        old = 0 if self.window is None else max(0, key.shape[-2] - self.window + 1)
        # what is kept of a longer table is copied, so that the table can go
        self.key, self.value = (x[..., old:, :].clone() if old else x for x in (key, value))
        return key, value

    def take(self, rows: Int[Tensor, " rows"]) -> "Cache":
        """A new cache with those sequences of the batch, in that order; one may be taken twice, as a beam
        search does."""
        taken = Cache(self.window)
        taken.seen = self.seen
        if self.key is not None and self.value is not None:
            taken.key, taken.value = self.key[rows], self.value[rows]
        return taken


class MultiHeadAttention(nn.Module):
    """`n_heads` attentions side by side: project, split, attend, merge, and mix the heads with `w_output`
    (W^o).

    Self-attention is `layer(x, x, x)`, cross-attention `layer(x, source, source)`. `d_k` and `d_v` are the
    widths of ONE head (default: d_model / n_heads). `attention` is anything with the signature of `attend`: a
    partial of it, a `ShawAttention`, a window. `rotate` turns queries and keys by their positions before they
    meet, `rotate(x, start)`: for example `positions.rotary`. `query_norm` and `key_norm` take each head's
    queries and keys (*b, h, n, d_k) before they are turned, for example `nn.RMSNorm(d_k)`.

    `n_key_heads` heads of keys and values (default: n_heads) are shared by groups of n_heads / n_key_heads
    queries each, neighbours; a cache holds no more than these. With one for all it is called multi-query
    attention, between one and n_heads grouped-query attention. Parameters: d_model · (n_heads + n_key_heads)
    · (d_k + d_v), and n_heads · d_k + n_key_heads · (d_k + d_v) + d_model more with `bias`.
    Raises ValueError where d_model is no multiple of n_heads and a width is missing, and n_heads no multiple
    of n_key_heads.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2; Shazeer 2019, arXiv:1911.02150 (one head of
    keys); Ainslie et al. 2023, arXiv:2305.13245 (groups); Henry et al. 2020, arXiv:2010.04245 (norms of
    queries and keys).
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_key_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        attention: Callable[..., Attended] = attend,
        rotate: Callable[[Tensor, int], Tensor] | None = None,
        query_norm: Callable[[Tensor], Tensor] | None = None,
        key_norm: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        if d_k is None or d_v is None:
            _divisible(d_model, n_heads, "d_model")
        if n_key_heads is not None:
            _divisible(n_heads, n_key_heads, "n_heads", "n_key_heads")
        shared = n_heads if n_key_heads is None else n_key_heads
        d_k, d_v = d_k or d_model // n_heads, d_v or d_model // n_heads
        optional = {"rotate": rotate, "query_norm": query_norm, "key_norm": key_norm}
        for name, value in {"attention": attention, **optional}.items():
            if not callable(value) and not (name in optional and value is None):
                raise TypeError(f"{name} must be a function, got {type(value).__name__}")
        self.d_model, self.n_heads, self.n_key_heads, self.d_k, self.d_v = d_model, n_heads, shared, d_k, d_v
        self.dropout, self.attention, self.rotate = dropout, attention, rotate
        self.query_norm, self.key_norm = query_norm, key_norm
        self.w_query = nn.Linear(d_model, n_heads * d_k, bias=bias)
        self.w_key = nn.Linear(d_model, shared * d_k, bias=bias)
        self.w_value = nn.Linear(d_model, shared * d_v, bias=bias)
        self.w_output = nn.Linear(n_heads * d_v, d_model, bias=bias)
        for layer in (self.w_query, self.w_key, self.w_value, self.w_output):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(
        self,
        query: Float[Tensor, "*b n d_model"],
        key: Float[Tensor, "*b m d_model"],
        value: Float[Tensor, "*b m d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        score_bias: Float[Tensor, "..."] | None = None,
        cache: Cache | None = None,
        weights: bool = True,
    ) -> Attended:
        """Outputs (*b, n, d_model) and weights (*b, h, n, m), or None in their place where `weights` is
        False.

        `mask` (True = may look) and `score_bias` are shared by all heads where they have the shape (n, m) or
        (*b, n, m); one with an axis more, (*b, h, n, m), is per head, so a table (h, n, m) for a batch needs
        `[None]`. With a `cache`, keys and values are appended to it, and m counts all that it held and the n
        new ones: their mask is `causal(m, queries=n)`, with the cache's window where it has one.
        """
        for name, x in {"query": query, "key": key, "value": value}.items():
            self._check(name, x)
        q, k, v = (
            split_heads(project(x), n_heads)
            for project, x, n_heads in (
                (self.w_query, query, self.n_heads),
                (self.w_key, key, self.n_key_heads),
                (self.w_value, value, self.n_key_heads),
            )
        )
        start = 0 if cache is None else cache.seen
        if self.query_norm is not None:
            q = self.query_norm(q)
        if self.key_norm is not None:
            k = self.key_norm(k)
        if self.rotate is not None:
            q, k = self.rotate(q, start), self.rotate(k, start)
        if cache is not None:
            k, v = cache.append(k, v)
        attended = self._attend(
            q, k, v,
            mask=with_heads(mask, query, "mask"), score_bias=with_heads(score_bias, query, "score_bias"),
            dropout=self.dropout if self.training else 0.0, weights=weights,
        )  # fmt: skip
        return Attended(self.w_output(merge_heads(attended.output)), attended.weights)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Attended:
        """All heads of queries, with the heads of keys and values that their groups share."""
        group = self.n_heads // self.n_key_heads
        if group == 1:
            return self.attention(q, k, v, **options)
        own_tables = any(_per_head(options[name]) for name in ("mask", "score_bias"))
        if q.shape[-2] > 1 or own_tables or self.attention is not attend:
            k, v = (x.repeat_interleave(group, -3) for x in (k, v))
            return self.attention(q, k, v, **options)
        # One new token: the queries of a group are so many rows that ask the keys they share, and nothing is
        # copied.
        rows = q.squeeze(-2).unflatten(-2, (self.n_key_heads, group))
        attended = attend(rows, k, v, **options)
        return Attended(*(x if x is None else x.flatten(-3, -2).unsqueeze(-2) for x in attended))

    @classmethod
    def from_torch(cls, layer: nn.MultiheadAttention) -> "MultiHeadAttention":
        """The same layer on top of `attend`, with copies of torch's weights. Its inputs are always (b, n,
        d_model).

        torch's masks are the opposite of ours; translate them with `masks_from_torch`. Raises ValueError for
        keys or values of another width (kdim, vdim) and for add_bias_kv or add_zero_attn, which no lesson
        uses.
        """
        if not isinstance(layer, nn.MultiheadAttention):
            raise TypeError(f"layer must be a torch.nn.MultiheadAttention, got {type(layer).__name__}")
        if layer.in_proj_weight is None or layer.bias_k is not None or layer.add_zero_attn:
            raise ValueError(
                "only layers with kdim = vdim = embed_dim, without add_bias_kv and add_zero_attn, can be"
                " taken over"
            )
        biased, d_model = layer.in_proj_bias is not None, layer.embed_dim
        ours = cls(d_model, layer.num_heads, bias=biased, dropout=layer.dropout).to(layer.in_proj_weight)
        with torch.no_grad():
            for mine, weight in zip(
                (ours.w_query, ours.w_key, ours.w_value), layer.in_proj_weight.chunk(3), strict=True
            ):
                mine.weight.copy_(weight)
            ours.w_output.weight.copy_(layer.out_proj.weight)
            if biased:
                for mine, bias in zip(
                    (ours.w_query, ours.w_key, ours.w_value), layer.in_proj_bias.chunk(3), strict=True
                ):
                    mine.bias.copy_(bias)
                ours.w_output.bias.copy_(layer.out_proj.bias)
        return ours.train(layer.training)

    def _check(self, name: str, x: Any) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name} must be a tensor, got {type(x).__name__}; make one with torch.tensor(...)"
            )
        if x.ndim < 2 or x.shape[-1] != self.d_model:
            raise ValueError(
                f"{name} must have shape (..., tokens, {self.d_model}), got {tuple(x.shape)}; this layer was"
                f" made with d_model={self.d_model}, and splits the heads itself"
            )
        weight = self.w_query.weight
        if (x.dtype, x.device) != (weight.dtype, weight.device):
            raise ValueError(
                f"{name} is {x.dtype} on {x.device}, the layer {weight.dtype} on {weight.device}; "
                f"convert one: {name}.to(layer.w_query.weight)"
            )


class ShawAttention(nn.Module):
    """`attend` with both of Shaw's terms, for MultiHeadAttention's `attention`: distances in the score and in
    the output.

    All heads share the tables of `shaw`, as in the paper. Dropout falls on the values, not on the distances'
    part of the output.
    """

    def __init__(self, shaw: Shaw) -> None:
        super().__init__()
        self.shaw = shaw

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, weights: bool = True, **options: Any
    ) -> Attended:
        """As `attend`; the table of weights is always made, since the output needs it."""
        output, table = attend(query, key, value, score=self.shaw, **options)
        return Attended(output + self.shaw.values(table), table if weights else None)


class SinkAttention(nn.Module):
    """`attend` with a sink for each head, for MultiHeadAttention's `attention`: one more key, of zeros, whose
    score is the learned number `sinks[h]` and whose value is 0.

    A head that finds nothing can look there. The weights that are returned are those of the real keys: what
    they lack to 1 went to the sink. A query that sees the sink alone gets 0.
    Raises ValueError where the number of heads is another than that of the sinks.
    Source: OpenAI 2025, gpt-oss, arXiv:2508.10925; Xiao et al. 2023, arXiv:2309.17453 (why heads look at the
    first token).
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        require.whole(n_heads=n_heads)
        self.sinks = nn.Parameter(torch.zeros(n_heads))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        **options: Any,
    ) -> Attended:
        """As `attend`, for queries (*b, h, n, d_k)."""
        if query.ndim < 3 or query.shape[-3] != len(self.sinks):
            raise ValueError(
                f"query must have shape (..., {len(self.sinks)} heads, n, d_k), one head for each sink, got"
                f" {tuple(query.shape)}"
            )
        n, m = query.shape[-2], key.shape[-2]
        bias = query.new_zeros(*query.shape[:-2], n, m) if score_bias is None else score_bias
        sinks = self.sinks.to(query.dtype)[:, None, None].expand(*query.shape[:-2], n, 1)
        bias = torch.cat((bias.expand(*query.shape[:-2], n, m), sinks), -1)
        if mask is not None:
            mask = F.pad(mask, (0, 1), value=True)
        output, table = attend(
            query, F.pad(key, (0, 0, 0, 1)), F.pad(value, (0, 0, 0, 1)), mask=mask, score_bias=bias, **options
        )
        return Attended(output, None if table is None else table[..., :-1])


def masks_from_torch(
    attn_mask: Tensor | None = None, key_padding_mask: Tensor | None = None, *, n_heads: int | None = None
) -> dict[str, Tensor | None]:
    """torch's two masks as ours: `layer(x, x, x, **masks_from_torch(attn_mask, key_padding_mask))`. The ONLY
    place that knows.

    nn.MultiheadAttention's boolean masks say True = hidden, the opposite of `attend` (and of torch's own
    scaled_dot_product_attention). Its float masks are added to the scores: they become `score_bias`.
    `attn_mask` is (n, m), or (b · h, n, m) together with `n_heads`; `key_padding_mask` is (b, m). A row in
    which everything is hidden is nan in torch and 0 here.
    Raises ValueError for other shapes.

    >>> masks_from_torch(torch.ones(2, 2).triu(1).bool())["mask"].int().tolist()
    [[1, 0], [1, 1]]
    """
    tables = []
    if attn_mask is not None:
        if attn_mask.ndim == 3:
            if n_heads is None:
                raise ValueError("an attn_mask of shape (b · h, n, m) needs n_heads=..., to find its batch")
            _divisible(len(attn_mask), n_heads, "the first axis of attn_mask")
            attn_mask = attn_mask.unflatten(0, (-1, n_heads))
        elif attn_mask.ndim != 2:
            raise ValueError(
                f"attn_mask must have shape (n, m) or (b · h, n, m), got {tuple(attn_mask.shape)}"
            )
        tables.append(attn_mask)
    if key_padding_mask is not None:
        if key_padding_mask.ndim != 2:
            raise ValueError(f"key_padding_mask must have shape (b, m), got {tuple(key_padding_mask.shape)}")
        tables.append(
            key_padding_mask[:, None, None] if tables and tables[0].ndim == 4 else key_padding_mask[:, None]
        )
    mask = score_bias = None
    for table in tables:
        if table.dtype == torch.bool:
            mask = ~table if mask is None else mask & ~table
        else:
            score_bias = table if score_bias is None else score_bias + table
    return {"mask": mask, "score_bias": score_bias}


def with_heads(table: Tensor | None, query: Tensor, name: str) -> Tensor | None:
    """A mask or bias with an axis for the heads, where it has none and needs one."""
    if table is None or not isinstance(table, Tensor) or table.ndim == 2:
        return table
    if table.ndim not in (query.ndim, query.ndim + 1):
        raise ValueError(
            f"{name} has {table.ndim} axes, {tuple(table.shape)}; it needs 2 (shared by all), {query.ndim}"
            f" (one per sequence) or {query.ndim + 1} (one per sequence and head)"
        )
    return table.unsqueeze(-3) if table.ndim == query.ndim else table


def _per_head(table: Tensor | None) -> bool:
    return table is not None and isinstance(table, Tensor) and table.ndim > 2 and table.shape[-3] > 1


def _divisible(width: int, n_heads: int, name: str, by: str = "n_heads") -> None:
    require.whole(**{by: n_heads, name: width})
    if width % n_heads:
        fit = [h for h in range(1, width + 1) if width % h == 0 and h <= 64]
        raise ValueError(f"{name} is {width}, no multiple of {by} = {n_heads}; heads that fit: {fit}")
