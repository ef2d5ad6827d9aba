"""The Transformer: attention and a feed-forward network per layer, each with a residual connection, a norm
and dropout.

    post-norm (published)       x = norm(x + dropout(sublayer(x)))
    pre-norm (norm_first=True)  x = x + dropout(sublayer(norm(x))), and one more norm behind the last layer

An encoder layer has two sub-layers, a decoder layer three: between its own attention and its feed-forward
network it looks at the encoder's output. All stacks take and return tokens (b, n, d_model); only
`Transformer` knows of words.
Source: Vaswani et al. 2017, arXiv:1706.03762, sections 3 and 5.4. The original drops the outputs of
sub-layers and the sums of embeddings and positions, and so do we; torch's layers also drop attention weights
and the feed-forward network's inner values.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.masks import causal, padding
from lesson_lib.norms import BatchNorm, LayerNorm, check_width, standardize  # noqa: F401 (asked for here, too)
from lesson_lib.positions import sinusoidal


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between, for each token on its own: `w_out(relu(w_in(x)))`, d_model to
    d_inner and back.

    The same as two convolutions with kernels of size 1. Parameters: 2 · d_model · d_inner + d_inner +
    d_model.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.3.
    """

    def __init__(
        self, d_model: int, d_inner: int, *, activation: Callable[[Tensor], Tensor] = torch.relu
    ) -> None:
        super().__init__()
        require.whole(d_model=d_model, d_inner=d_inner)
        self.w_in, self.w_out = nn.Linear(d_model, d_inner), nn.Linear(d_inner, d_model)
        self.activation = activation
        for layer in (self.w_in, self.w_out):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Float[Tensor, "*b d_model"]) -> Float[Tensor, "*b d_model"]:
        """As wide as x, token by token."""
        check_width(x, self.w_in.in_features)
        return self.w_out(self.activation(self.w_in(x)))


class _Layer(nn.Module):
    """What encoder and decoder layers share: their sub-layers' surroundings."""

    def __init__(
        self, d_model: int, *, n_sublayers: int, dropout: float, norm_first: bool, norm: Any
    ) -> None:
        super().__init__()
        self.norm_first, self.dropout = norm_first, _dropout(dropout)
        self.norms = nn.ModuleList(norm(d_model) for _ in range(n_sublayers))

    def _sublayer(self, i: int, x: Tensor, sublayer: Callable[[Tensor], Attended]) -> Attended:
        """Sub-layer i with residual, norm and dropout; the one place that knows pre-norm from post-norm."""
        made = sublayer(self.norms[i](x) if self.norm_first else x)
        x = x + self.dropout(made.output)
        return Attended(x if self.norm_first else self.norms[i](x), made.weights)

    def _take_over(self, layer: nn.Module, norms: list[nn.LayerNorm]) -> None:
        """torch's norms and feed-forward network, copied."""
        with torch.no_grad():
            pairs = [*zip(self.norms, norms, strict=True)]
            pairs += [(self.feed_forward.w_in, layer.linear1), (self.feed_forward.w_out, layer.linear2)]
            for mine, theirs in pairs:
                mine.weight.copy_(theirs.weight)
                mine.bias.copy_(theirs.bias)


class EncoderLayer(_Layer):
    """Self-attention, then a feed-forward network. The defaults are the base model's.

    `norm_first` is the switch from post-norm to pre-norm; `norm` makes a norm from d_model; `activation` is
    the feed-forward network's; `bias`, `attention` and `rotate` are MultiHeadAttention's. With a causal mask
    this is the layer of a GPT. Parameters without attention's biases: 4 · d_model² + 2 · d_model · d_inner +
    d_inner + 5 · d_model (3,150,336 in the base model).
    Raises ValueError where d_model is no multiple of n_heads, or dropout is not in 0 ... 1.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1.
    """

    def __init__(
        self,
        d_model: int = 512,
        n_heads: int = 8,
        d_inner: int = 2048,
        *,
        dropout: float = 0.1,
        norm_first: bool = False,
        norm: Callable[[int], nn.Module] = LayerNorm,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        **attention: Any,
    ) -> None:
        super().__init__(d_model, n_sublayers=2, dropout=dropout, norm_first=norm_first, norm=norm)
        self.attention = MultiHeadAttention(d_model, n_heads, **attention)
        self.feed_forward = FeedForward(d_model, d_inner, activation=activation)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        score_bias: Float[Tensor, "..."] | None = None,
        cache: Cache | None = None,
        weights: bool = False,
    ) -> Attended:
        """Tokens of the same shape, and the attention's weights (b, h, n, m) if they are asked for. Masks and
        cache as in MultiHeadAttention."""
        options = {"mask": mask, "score_bias": score_bias, "cache": cache, "weights": weights}
        x, table = self._sublayer(0, x, lambda y: self.attention(y, y, y, **options))
        x, _ = self._sublayer(1, x, lambda y: Attended(self.feed_forward(y), None))
        return Attended(x, table)

    @classmethod
    def from_torch(cls, layer: nn.TransformerEncoderLayer) -> "EncoderLayer":
        """The same layer with copies of torch's weights. Inputs are always (b, n, d_model); masks come from
        `masks_from_torch`.

        Equal in eval mode and without dropout; with it, torch drops in more places. Raises TypeError for
        another kind of layer, ValueError for one without biases.
        """
        ours = _like_torch(cls, layer, nn.TransformerEncoderLayer)
        ours.attention = MultiHeadAttention.from_torch(layer.self_attn)
        ours._take_over(layer, [layer.norm1, layer.norm2])
        return ours.train(layer.training)


class DecoderWeights(NamedTuple):
    """Where a decoder layer looked: at its own tokens (b, h, n, n), and at the encoder's (b, h, n, m)."""

    own: Float[Tensor, "b h n n_all"] | None
    cross: Float[Tensor, "b h n m"] | None


class DecoderCache(NamedTuple):
    """The keys and values of one decoder layer: of its own tokens, which grow, and of the encoder's, computed
    once."""

    own: Cache
    cross: Cache


class Decoded(NamedTuple):
    """A decoder layer's tokens, and where it looked (None where that was not asked for)."""

    output: Float[Tensor, "b n d_model"]
    weights: DecoderWeights | None


class DecoderLayer(_Layer):
    """Self-attention, then attention to the encoder's output (queries from here, keys and values from there),
    then a feed-forward network.

    Options as in EncoderLayer; `rotate` turns only the layer's own attention. Parameters without attention's
    biases: 8 · d_model² + 2 · d_model · d_inner + d_inner + 7 · d_model (4,199,936 in the base model).
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1.
    """

    def __init__(
        self,
        d_model: int = 512,
        n_heads: int = 8,
        d_inner: int = 2048,
        *,
        dropout: float = 0.1,
        norm_first: bool = False,
        norm: Callable[[int], nn.Module] = LayerNorm,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        **attention: Any,
    ) -> None:
        super().__init__(d_model, n_sublayers=3, dropout=dropout, norm_first=norm_first, norm=norm)
        self.attention = MultiHeadAttention(d_model, n_heads, **attention)
        self.cross_attention = MultiHeadAttention(d_model, n_heads, **attention | {"rotate": None})
        self.feed_forward = FeedForward(d_model, d_inner, activation=activation)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        memory: Float[Tensor, "b m d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        cache: DecoderCache | None = None,
        weights: bool = False,
    ) -> Decoded:
        """Tokens of the same shape as x, and DecoderWeights if they are asked for. `memory` is the encoder's
        output.

        Nothing is causal by itself: pass `mask=causal(n)` where the tokens after a token are known. With a
        `cache`, x are the new tokens only.
        """
        own, cross = cache or (None, None)
        # its keys and values are in the cache
        known = memory[:, :0] if cross is not None and len(cross) else memory
        x, own_table = self._sublayer(
            0, x, lambda y: self.attention(y, y, y, mask=mask, cache=own, weights=weights)
        )
        x, cross_table = self._sublayer(
            1, x,
            lambda y: self.cross_attention(y, known, known, mask=memory_mask, cache=cross, weights=weights)
        )  # fmt: skip
        x, _ = self._sublayer(2, x, lambda y: Attended(self.feed_forward(y), None))
        return Decoded(x, DecoderWeights(own_table, cross_table) if weights else None)

    @classmethod
    def from_torch(cls, layer: nn.TransformerDecoderLayer) -> "DecoderLayer":
        """The same layer with copies of torch's weights, as in EncoderLayer.from_torch."""
        ours = _like_torch(cls, layer, nn.TransformerDecoderLayer)
        ours.attention = MultiHeadAttention.from_torch(layer.self_attn)
        ours.cross_attention = MultiHeadAttention.from_torch(layer.multihead_attn)
        ours._take_over(layer, [layer.norm1, layer.norm2, layer.norm3])
        return ours.train(layer.training)


class Stacked(NamedTuple):
    """What a stack of layers leaves: its output; and, if asked for, each layer's weights and the residual
    stream.

    `stream` holds the tokens as they come in and as each layer leaves them, one more than there are layers.
    """

    output: Float[Tensor, "b n d_model"]
    weights: list | None
    stream: list[Tensor] | None


class _Stack(nn.Module):
    """Layers one after the other, all of one kind; with `norm_first`, a last norm follows."""

    def __init__(
        self, kind: Any, n_layers: int, d_model: int, n_heads: int, d_inner: int, **options: Any
    ) -> None:
        super().__init__()
        require.whole(n_layers=n_layers)
        self.layers = nn.ModuleList(kind(d_model, n_heads, d_inner, **options) for _ in range(n_layers))
        self.norm = _last_norm(d_model, **options)

    def _through(
        self, x: Tensor, *given: Tensor, caches: list | None, weights: bool, **masks: Any
    ) -> Stacked:
        """x through all layers, each with its own cache."""
        tables, stream = [], [x]
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            x, table = layer(x, *given, cache=cache, weights=weights, **masks)
            tables.append(table)
            stream.append(x)
        return Stacked(self.norm(x), tables, stream) if weights else Stacked(self.norm(x), None, None)


class Encoder(_Stack):
    """`n_layers` encoder layers, one after the other; options as in EncoderLayer. With `norm_first`, a last
    norm follows."""

    def __init__(
        self, n_layers: int = 6, d_model: int = 512, n_heads: int = 8, d_inner: int = 2048, **options: Any
    ) -> None:
        super().__init__(EncoderLayer, n_layers, d_model, n_heads, d_inner, **options)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        score_bias: Float[Tensor, "..."] | None = None,
        caches: list[Cache] | None = None,
        weights: bool = False,
    ) -> Stacked:
        """Tokens of the same shape; `weights=True` also returns a table (b, h, n, m) per layer and the
        residual stream."""
        return self._through(x, caches=caches, weights=weights, mask=mask, score_bias=score_bias)

    def caches(self) -> list[Cache]:
        """An empty cache for each layer."""
        return [Cache() for _ in self.layers]


class Decoder(_Stack):
    """`n_layers` decoder layers, one after the other, all of which look at the same memory: the LAST encoder
    layer's output."""

    def __init__(
        self, n_layers: int = 6, d_model: int = 512, n_heads: int = 8, d_inner: int = 2048, **options: Any
    ) -> None:
        super().__init__(DecoderLayer, n_layers, d_model, n_heads, d_inner, **options)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        memory: Float[Tensor, "b m d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        caches: list[DecoderCache] | None = None,
        weights: bool = False,
    ) -> Stacked:
        """Tokens of the same shape; `weights=True` also returns DecoderWeights per layer and the residual
        stream."""
        return self._through(x, memory, caches=caches, weights=weights, mask=mask, memory_mask=memory_mask)

    def caches(self) -> list[DecoderCache]:
        """An empty pair of caches for each layer."""
        return [DecoderCache(Cache(), Cache()) for _ in self.layers]


class TokenEmbedding(nn.Module):
    """Words as rows of a learned table, times sqrt(d_model), plus their positions; and the way back, from
    rows to logits.

    The way back uses the same table: `logits(x) = x @ table.T`. `positions` gives the codes of the first n
    positions, `positions(n)` of shape (n, d_model), as `positions.Learned` does; by default they are
    sinusoidal. Dropout falls on the sum. Parameters: n_tokens · d_model, and those of `positions`. Raises
    ValueError for a token number outside 0 ... n_tokens - 1.
    Source: Vaswani et al. 2017, arXiv:1706.03762, sections 3.4 and 3.5; the shared table: Press & Wolf 2016,
    arXiv:1608.05859.
    """

    def __init__(
        self,
        n_tokens: int,
        d_model: int = 512,
        *,
        dropout: float = 0.1,
        positions: Callable[[int], Tensor] | None = None,
    ) -> None:
        super().__init__()
        require.whole(n_tokens=n_tokens, d_model=d_model)
        self.n_tokens, self.d_model, self.positions = n_tokens, d_model, positions
        self.table = nn.Parameter(torch.randn(n_tokens, d_model) * d_model**-0.5)
        self.dropout = _dropout(dropout)

    def forward(self, tokens: Int[Tensor, "b n"], start: int = 0) -> Float[Tensor, "b n d_model"]:
        """The tokens' rows, the first of them at position `start` (the length of a cache)."""
        _check_tokens(tokens, self.n_tokens)
        end = start + tokens.shape[-1]
        if self.positions is not None:
            codes = self.positions(end)
        else:
            codes = sinusoidal(end, self.d_model, dtype=self.table.dtype, device=tokens.device)
        rows = nn.functional.embedding(tokens, self.table)
        return self.dropout(rows * self.d_model**0.5 + codes[start:])

    def logits(self, x: Float[Tensor, "*b d_model"]) -> Float[Tensor, "*b n_tokens"]:
        """A score for each token of the vocabulary."""
        return x @ self.table.T


class Predicted(NamedTuple):
    """Logits (b, n, n_tokens) of each next token; and, if asked for, what went on in both stacks."""

    logits: Float[Tensor, "b n n_tokens"]
    encoder: Stacked | None = None
    decoder: Stacked | None = None


class DecoderState(NamedTuple):
    """What is known between two output tokens: the encoder's output, the mask that hides its padding, and a
    cache per decoder layer."""

    memory: Float[Tensor, "b m d_model"]
    mask: Bool[Tensor, "b 1 m"] | None
    caches: list[DecoderCache]

    def take(self, rows: Int[Tensor, " rows"]) -> "DecoderState":
        """The state of those sequences of the batch, in that order; one may be taken twice."""
        caches = [DecoderCache(own.take(rows), cross.take(rows)) for own, cross in self.caches]
        return DecoderState(self.memory[rows], None if self.mask is None else self.mask[rows], caches)


class Transformer(nn.Module):
    """Encoder, decoder, and one table of embeddings for input, output and logits. `Transformer(37_000)` is
    the base model's size.

    Parameters of the stacks without attention's biases: 44,101,632 with the defaults; the table adds n_tokens
    · d_model.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3. Inputs are token numbers, not one-hot rows.
    """

    def __init__(
        self,
        n_tokens: int,
        n_layers: int = 6,
        d_model: int = 512,
        n_heads: int = 8,
        d_inner: int = 2048,
        *,
        dropout: float = 0.1,
        positions: Callable[[int], Tensor] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(n_tokens, d_model, dropout=dropout, positions=positions)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_inner, dropout=dropout, **options)
        self.decoder = Decoder(n_layers, d_model, n_heads, d_inner, dropout=dropout, **options)

    def forward(
        self,
        source: Int[Tensor, "b m"],
        lengths: Int[Tensor, " b"] | None,
        before: Int[Tensor, "b n"],
        *,
        weights: bool = False,
    ) -> Predicted:
        """Logits of every output token at once, given the right ones before it; `before` starts with the
        start sign (teacher forcing).

        `lengths` says how many tokens of each source are real; None: all.
        """
        x, y = self.embedding(source), self.embedding(before)
        mask = None if lengths is None else padding(lengths, x.shape[1])
        encoded = self.encoder(x, mask=mask, weights=weights)
        ahead = causal(y.shape[1], device=y.device)
        decoded = self.decoder(y, encoded.output, mask=ahead, memory_mask=mask, weights=weights)
        logits = self.embedding.logits(decoded.output)
        return Predicted(logits, encoded, decoded) if weights else Predicted(logits)

    def start(self, source: Int[Tensor, "b m"], lengths: Int[Tensor, " b"] | None) -> DecoderState:
        """Encode, and open empty caches: the state before the first output token."""
        x = self.embedding(source)
        mask = None if lengths is None else padding(lengths, x.shape[1])
        return DecoderState(self.encoder(x, mask=mask).output, mask, self.decoder.caches())

    def step(self, tokens: Int[Tensor, "b n"], state: DecoderState, *, weights: bool = False) -> Predicted:
        """Logits after the new tokens, usually one; their keys and values join the caches of `state`."""
        past = len(state.caches[0].own)
        x = self.embedding(tokens, past)
        n = x.shape[1]
        ahead = causal(past + n, queries=n, device=x.device) if n > 1 else None
        options = {"mask": ahead, "memory_mask": state.mask, "caches": state.caches, "weights": weights}
        decoded = self.decoder(x, state.memory, **options)
        return Predicted(self.embedding.logits(decoded.output), None, decoded if weights else None)


def _last_norm(d_model: int, *, norm_first: bool = False, norm: Any = LayerNorm, **others: Any) -> nn.Module:
    return norm(d_model) if norm_first else nn.Identity()


def _like_torch(cls: Any, layer: nn.Module, kind: type[nn.Module]) -> Any:
    """A layer of ours with torch's sizes and switches, before any weight is copied."""
    if not isinstance(layer, kind):
        raise TypeError(f"layer must be a torch.nn.{kind.__name__}, got {type(layer).__name__}")
    if layer.linear1.bias is None:
        raise ValueError(
            "layers made with bias=False cannot be taken over: ours keep the feed-forward biases"
        )
    eps = layer.norm1.eps
    ours = cls(
        layer.linear1.in_features, layer.self_attn.num_heads, layer.linear1.out_features,
        dropout=layer.dropout1.p, norm_first=layer.norm_first, norm=lambda d: LayerNorm(d, eps=eps),
        activation=layer.activation, bias=True,
    )  # fmt: skip
    return ours.to(layer.linear1.weight)


def _dropout(share: Any) -> nn.Dropout:
    require.number(at_most=1, dropout=share)
    return nn.Dropout(share)


def _check_tokens(tokens: Any, n_tokens: int) -> None:
    """On a GPU a number out of range would end the process, so it is looked for here."""
    if not isinstance(tokens, Tensor) or tokens.is_floating_point() or tokens.dtype == torch.bool:
        got = tokens.dtype if isinstance(tokens, Tensor) else type(tokens).__name__
        raise TypeError(
            f"tokens must be a tensor of token numbers (b, n), got {got}; use torch.tensor(...).long()"
        )
    if tokens.ndim != 2:
        raise ValueError(
            f"tokens must have shape (b, n), got {tuple(tokens.shape)}; a single text is tokens[None]"
        )
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < n_tokens:
        raise ValueError(
            f"tokens must be numbers from 0 to {n_tokens - 1}, got {int(tokens.min())} to {int(tokens.max())}"
        )
