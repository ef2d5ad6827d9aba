"""One model for all families: layers that differ in a few options, each around `attend`.

Options    what a model is: sizes, norms, activation, and a Kind for each layer
Kind       what one layer's attention is: how far it looks, how positions turn it, what its scores become
Model      tokens or images in, logits out; with a cache for each layer where it is causal
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import attend
from lesson_lib.blocks import FeedForward
from lesson_lib.heads import Cache, MultiHeadAttention, SinkAttention, merge_heads, split_heads
from lesson_lib.masks import causal
from lesson_lib.norms import LayerNorm
from lesson_lib.positions import rotary
from lesson_lib.scores import dot, scaled_dot, soft_cap

_gelu_tanh = partial(F.gelu, approximate="tanh")
# two names of one activation give the same object
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "silu": F.silu,
}


@dataclass(frozen=True)
class Turn:
    """How positions turn queries and keys: a frequency for each pair of columns, half-split; both grow by
    `stretch` (yarn's). Fewer frequencies than pairs turn the first columns only. `told` says it in words."""

    frequencies: tuple[float, ...]
    stretch: float = 1.0
    told: str = "rotary"

    def __call__(self, x: Tensor, start: int) -> Tensor:
        """Queries or keys (*b, n, d), the first of them at position `start`."""
        given = torch.tensor(self.frequencies, dtype=torch.float64, device=x.device)
        first, rest = x.split([2 * len(given), x.shape[-1] - 2 * len(given)], -1)
        turned = rotary(first, start, pairing="half-split", frequencies=given)
        turned = turned if self.stretch == 1 else self.stretch * turned
        return torch.cat((turned, rest), -1) if rest.shape[-1] else turned


@dataclass(frozen=True)
class Kind:
    """One layer's attention. `window` counts the tokens that one may look at, itself among them; None is no
    limit. Without a `turn`, positions come from elsewhere, or from nowhere. `sharper` = (a, n) multiplies the
    scores of position t by 1 + a ln(1 + t // n)."""

    window: int | None = None
    turn: Turn | None = None
    sharper: tuple[float, int] | None = None


@dataclass(frozen=True)
class Experts:
    """Feed-forward networks of which each token uses the `used` that its router scores best; their gates are
    clamped at `limit`."""

    count: int
    used: int
    limit: float
    alpha: float


@dataclass(frozen=True)
class Options:
    """What a model is, whatever its family. The defaults are those of a Llama.

    `norms`: "before" each sub-layer (pre-norm), "behind" the sum (post-norm), "after" a sub-layer, inside
    the residual, or "both", before and after it. `head_norms` are for "each" head's queries and keys, or for
    "all" columns together. `output_bias` is that of w_output (None: as `bias`). `scale` is what scores are
    multiplied by (None: 1 / sqrt(d_k)), `residual_scale` what a sub-layer adds, `logit_scale` the logits;
    `cap` bounds scores, `logit_cap` logits. `positions` are the rows of a learned table, `kinds_of_token`
    those of a table of kinds (BERT's first and second sentence).
    """

    family: str
    layers: tuple[Kind, ...]
    d_model: int
    n_heads: int
    n_key_heads: int
    d_k: int
    d_inner: int
    n_tokens: int = 0
    causal: bool = True
    norm: Literal["layer", "rms"] = "rms"
    eps: float = 1e-6
    norms: Literal["before", "behind", "after", "both"] = "before"
    activation: str = "silu"
    gated: bool = True
    bias: bool = False
    output_bias: bool | None = None
    inner_bias: bool = False
    head_norms: Literal["", "each", "all"] = ""
    sinks: bool = False
    scale: float | None = None
    cap: float | None = None
    logit_cap: float | None = None
    logit_scale: float = 1.0
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    positions: int = 0
    kinds_of_token: int = 0
    first_norm: bool = False
    tied: bool = False
    experts: Experts | None = None
    image: tuple[int, int, int] | None = None  # channels, side, side of a patch
    reads_out: Literal["tokens", "masked tokens", "classes", "nothing"] = "tokens"
    n_classes: int = 0


class ModelOutput(NamedTuple):
    """What a model makes of its input: logits (None where it has none), the last states; and, if asked for,
    each layer's weights (b, h, n, m) and the residual stream, one more than there are layers."""

    logits: Float[Tensor, "..."] | None
    states: Float[Tensor, "b n d_model"]
    weights: list[Tensor] | None
    stream: list[Tensor] | None


class Model(nn.Module):
    """A model of these `Options`, with new weights; `open_model` gives one with those of a folder.

    `config` is the config.json that it came from, `left` names tensors of the folder that belong to another
    read-out, `text` is its tokenizer, or a sentence on why there is none.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options
        self.config: dict[str, Any] = {}
        self.left: tuple[str, ...] = ()
        self.text: Any = None
        self.embedding = Patches(options) if options.image else Words(options)
        self.layers = nn.ModuleList(Layer(options, kind) for kind in options.layers)
        self.norm = nn.Identity() if options.norms == "behind" else _norm(options)
        self.read_out = _read_out(options)

    def forward(
        self,
        x: Tensor,
        *,
        caches: Sequence[Cache] | None = None,
        mask: Bool[Tensor, "b #n m"] | None = None,
        kinds: Int[Tensor, "b n"] | None = None,
        weights: bool = False,
    ) -> ModelOutput:
        """Tokens (b, n), or images (b, channels, side, side).

        With `caches` (from `model.caches()`), tokens are the new ones only. `mask` hides more than the
        model's own mask does (True = may look): `padding(lengths, n)`. `kinds` are BERT's numbers of the
        sentence. Raises ValueError where tokens are unknown or more than there are positions.
        """
        start = caches[0].seen if caches else 0
        if next(self.parameters()).is_meta:
            raise ValueError(
                "this model was opened with read=False: it can be described, and computes nothing"
            )
        if caches and not self.options.causal:
            raise ValueError(
                f"{self.options.family} looks both ways, so a new token changes all earlier ones: it has no"
                " cache"
            )
        x = self.embedding(x, start) if kinds is None else self.embedding(x, start, kinds)
        tables, stream = [], [x]
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            x, table = layer(x, mask=mask, cache=cache, weights=weights)
            tables.append(table)
            stream.append(x)
        states = self.norm(x)
        logits = None if self.read_out is None else self.read_out(states, self.embedding)
        return ModelOutput(logits, states, *((tables, stream) if weights else (None, None)))

    def caches(self) -> list[Cache]:
        """An empty cache for each layer; those of a window roll."""
        return [Cache(kind.window) for kind in self.options.layers]

    def numbers(self, text: str) -> Int[Tensor, " n"]:
        """The numbers of a text's tokens. Raises ValueError, with the repair, where there is no tokenizer."""
        return torch.tensor(self._tokenizer().encode(text).ids, dtype=torch.long)

    def pieces(self, numbers: Int[Tensor, " n"]) -> list[str]:
        """The text of each token by itself; its number, where there is no tokenizer."""
        if self.text is None or isinstance(self.text, str):
            return [str(number) for number in numbers.tolist()]
        return [self.text.decode([number], skip_special_tokens=False) for number in numbers.tolist()]

    def _tokenizer(self) -> Any:
        if self.text is None or isinstance(self.text, str):
            raise ValueError(self.text or "this model came without a tokenizer: give it numbers of tokens")
        return self.text


class Words(nn.Module):
    """Rows of a table for tokens, and of others for positions and kinds of token where there are some."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        d = options.d_model
        self.scale = options.embedding_scale
        self.table = nn.Parameter(_drawn(options.n_tokens, d, width=d))
        self.positions = _table(options.positions, d)
        self.kinds = _table(options.kinds_of_token, d)
        self.norm = _norm(options) if options.first_norm else nn.Identity()

    def forward(self, tokens: Tensor, start: int = 0, kinds: Tensor | None = None) -> Tensor:
        """Tokens (b, n) as rows (b, n, d_model), the first at position `start`."""
        _check_numbers("tokens", tokens, len(self.table))
        x = self.table[tokens] * self.scale
        if self.positions is not None:
            end = start + tokens.shape[1]
            if end > len(self.positions):
                raise ValueError(
                    f"this model has a table of {len(self.positions)} positions, and {end} are asked for;"
                    f" give it the last ones only, tokens[:, -{len(self.positions)}:]"
                )
            x = x + self.positions[start:end]
        if self.kinds is not None:
            if kinds is not None:
                _check_numbers("kinds", kinds, len(self.kinds))
            x = x + (self.kinds[0] if kinds is None else self.kinds[kinds])
        elif kinds is not None:
            raise ValueError("this model knows no kinds of token; leave kinds out")
        return self.norm(x)


class Patches(nn.Module):
    """Images cut into squares, each a token; one learned token stands before them."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        (self.channels, self.side, patch), d = options.image, options.d_model
        self.cut = nn.Conv2d(self.channels, d, patch, stride=patch)
        self.first = nn.Parameter(torch.zeros(1, 1, d))
        self.positions = nn.Parameter(_drawn(1, 1 + (self.side // patch) ** 2, d, width=d))

    def forward(self, images: Tensor, start: int = 0) -> Tensor:
        """Images (b, channels, side, side) as rows (b, 1 + patches, d_model)."""
        shape = (self.channels, self.side, self.side)
        if not isinstance(images, Tensor) or images.ndim != 4 or tuple(images.shape[1:]) != shape:
            got = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
            raise ValueError(f"images must be a tensor of shape (b, {', '.join(map(str, shape))}), got {got}")
        x = self.cut(images).flatten(2).mT
        return torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.positions


class Layer(nn.Module):
    """Attention and a feed-forward network, each `behind(x + scale · after(sublayer(before(x))))`, where one
    or two of the three norms are there."""

    def __init__(self, options: Options, kind: Kind) -> None:
        super().__init__()
        self.kind, self.causal, self.scale = kind, options.causal, options.residual_scale
        where = {"before": (1, 0, 0), "both": (1, 1, 0), "after": (0, 1, 0), "behind": (0, 0, 1)}
        there = where[options.norms]
        self.before, self.after, self.behind = (
            nn.ModuleList(_norm(options) if one else nn.Identity() for _ in range(2)) for one in there
        )
        self.attention = MultiHeadAttention(
            options.d_model, options.n_heads,
            n_key_heads=options.n_key_heads, d_k=options.d_k, d_v=options.d_k, bias=options.bias,
            attention=_attention(options), rotate=kind.turn,
            query_norm=_head_norm(options, options.n_heads),
            key_norm=_head_norm(options, options.n_key_heads),
        )  # fmt: skip
        if options.output_bias is False:
            self.attention.w_output.register_parameter("bias", None)
        self.feed_forward = _feed_forward(options)

    def forward(
        self, x: Tensor, *, mask: Tensor | None = None, cache: Cache | None = None, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Tokens of the same shape, and the weights (b, h, n, m) if they are asked for."""
        n = x.shape[1]
        m = n if cache is None else n + len(cache)
        window = self.kind.window
        mask = mask if mask is None else mask[..., -m:]  # of the tokens that a rolling cache still holds
        if self.causal and (n > 1 or (window is not None and m > window)):
            ahead = causal(m, queries=n, window=window, device=x.device)
            mask = ahead if mask is None else ahead & mask
        y = self.before[0](x)
        asks = y if self.kind.sharper is None else y * self._sharpness(y, 0 if cache is None else cache.seen)
        attended = self.attention(asks, y, y, mask=mask, cache=cache, weights=weights)
        x = self.behind[0](x + self.scale * self.after[0](attended.output))
        x = self.behind[1](x + self.scale * self.after[1](self.feed_forward(self.before[1](x))))
        return x, attended.weights

    def _sharpness(self, x: Tensor, start: int) -> Tensor:
        """What each token's query is multiplied by (n, 1); w_query has no bias where this is used."""
        a, n = self.kind.sharper
        positions = torch.arange(start, start + x.shape[1], device=x.device)
        return (1 + a * (1 + positions // n).log())[:, None].to(x.dtype)


class WholeNorm(nn.RMSNorm):
    """RMSNorm over the columns of all heads together, of heads (b, h, n, d_k)."""

    def forward(self, x: Tensor) -> Tensor:
        return split_heads(super().forward(merge_heads(x)), x.shape[1])


class Gated(nn.Module):
    """`w_out(activation(w_gate x) · w_in x)`: one linear map says how much of the other passes.

    Source: Shazeer 2020, arXiv:2002.05202.
    """

    def __init__(self, d_model: int, d_inner: int, activation: Callable, bias: bool = False) -> None:
        super().__init__()
        self.w_gate = nn.Linear(d_model, d_inner, bias=bias)
        self.w_in = nn.Linear(d_model, d_inner, bias=bias)
        self.w_out = nn.Linear(d_inner, d_model, bias=bias)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """As wide as x, token by token."""
        return self.w_out(self.activation(self.w_gate(x)) * self.w_in(x))


class Mixture(nn.Module):
    """gpt-oss's experts, in plain form: each token goes through the few that its router scores best, mixed by
    the softmax of those scores.

    Source: OpenAI 2025, arXiv:2508.10925. Shazeer et al. 2017, arXiv:1701.06538, for the idea.
    """

    def __init__(self, d_model: int, d_inner: int, experts: Experts) -> None:
        super().__init__()
        self.experts, count = experts, experts.count
        self.router = nn.Linear(d_model, count)
        self.w_gate, self.w_in = (nn.Parameter(_drawn(count, d_model, d_inner, width=d_model)) for _ in "12")
        self.w_out = nn.Parameter(_drawn(count, d_inner, d_model, width=d_inner))
        self.b_gate, self.b_in = (nn.Parameter(torch.zeros(count, d_inner)) for _ in "12")
        self.b_out = nn.Parameter(torch.zeros(count, d_model))

    def forward(self, x: Tensor) -> Tensor:
        """As wide as x, token by token."""
        rows = x.flatten(0, -2)
        best = self.router(rows).topk(self.experts.used, -1)
        shares, out = best.values.softmax(-1), torch.zeros_like(rows)
        for i in best.indices.unique().tolist():
            token, place = (best.indices == i).nonzero(as_tuple=True)
            gate = (rows[token] @ self.w_gate[i] + self.b_gate[i]).clamp(max=self.experts.limit)
            passed = (rows[token] @ self.w_in[i] + self.b_in[i]).clamp(
                -self.experts.limit, self.experts.limit
            )
            inner = (passed + 1) * gate * (self.experts.alpha * gate).sigmoid()
            made = inner @ self.w_out[i] + self.b_out[i]
            out = out.index_add(0, token, made * shares[token, place, None])
        return out.view_as(x)


class TokenLogits(nn.Module):
    """A number for each token of the vocabulary: products with the table of embeddings, or with one of its
    own. BERT's states are changed before, and its logits have biases."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        d, masked = options.d_model, options.reads_out == "masked tokens"
        self.table = None if options.tied else nn.Parameter(_drawn(options.n_tokens, d, width=d))
        self.dense = nn.Linear(d, d) if masked else None
        self.norm = _norm(options) if masked else None
        self.bias = nn.Parameter(torch.zeros(options.n_tokens)) if masked else None
        self.activation = ACTIVATIONS[options.activation]
        self.cap, self.scale = options.logit_cap, options.logit_scale

    def forward(self, states: Tensor, embedding: Words) -> Tensor:
        """States (b, n, d_model) as logits (b, n, tokens)."""
        if self.dense is not None:
            states = self.norm(self.activation(self.dense(states)))
        logits = F.linear(states, embedding.table if self.table is None else self.table, self.bias)
        logits = logits if self.scale == 1 else logits * self.scale
        return logits if self.cap is None else self.cap * (logits / self.cap).tanh()


class ClassLogits(nn.Module):
    """A number for each class, read from the first token."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.linear = nn.Linear(options.d_model, options.n_classes)

    def forward(self, states: Tensor, embedding: Any) -> Tensor:
        """States (b, n, d_model) as logits (b, classes)."""
        return self.linear(states[:, 0])


@torch.no_grad()
def generate(
    model: Model,
    tokens: Int[Tensor, " n"],
    length: int,
    *,
    choose: Callable[[Tensor], int] = lambda logits: int(logits.argmax()),
) -> Int[Tensor, " length"]:
    """The `length` tokens that continue these, one by one with a cache; `choose` picks one from the logits of
    the next (default: the likeliest).

    Raises ValueError where the model is not causal.
    """
    require.whole(length=length)
    if not model.options.causal or model.read_out is None:
        raise ValueError(f"{model.options.family} makes no text from left to right; GPT-2 or a Llama does")
    caches, made, new = model.caches(), [], tokens[None]
    for _ in range(length):
        made.append(choose(model(new, caches=caches).logits[0, -1]))
        new = torch.tensor([[made[-1]]], device=tokens.device)
    return torch.tensor(made, device=tokens.device)


def _attention(options: Options) -> Any:
    """`attend`, with what this family changes in its scores."""
    if options.sinks:
        return SinkAttention(options.n_heads)
    score = scaled_dot if options.scale is None else partial(_scaled, options.scale)
    score = score if options.cap is None else soft_cap(options.cap, score)
    return attend if score is scaled_dot else partial(attend, score=score)


def _head_norm(options: Options, n_heads: int) -> nn.Module | None:
    if options.head_norms == "all":
        return WholeNorm(n_heads * options.d_k, eps=options.eps)
    return nn.RMSNorm(options.d_k, eps=options.eps) if options.head_norms else None


def _scaled(scale: float, query: Tensor, key: Tensor) -> Tensor:
    return dot(query * scale, key)


def _feed_forward(options: Options) -> nn.Module:
    activation = ACTIVATIONS[options.activation]
    if options.experts is not None:
        return Mixture(options.d_model, options.d_inner, options.experts)
    if options.gated:
        return Gated(options.d_model, options.d_inner, activation, options.inner_bias)
    return FeedForward(options.d_model, options.d_inner, activation=activation)


def _read_out(options: Options) -> nn.Module | None:
    kinds = {"tokens": TokenLogits, "masked tokens": TokenLogits, "classes": ClassLogits}
    return kinds[options.reads_out](options) if options.reads_out in kinds else None


def _norm(options: Options) -> nn.Module:
    kind = LayerNorm if options.norm == "layer" else nn.RMSNorm
    return kind(options.d_model, eps=options.eps)


def _drawn(*shape: int, width: int) -> Tensor:
    """Numbers of variance 1 / width. (Uniform ones: as a meta tensor they cost nothing.)"""
    bound = (3 / width) ** 0.5
    return torch.empty(shape).uniform_(-bound, bound)


def _table(rows: int, d: int) -> nn.Parameter | None:
    return nn.Parameter(_drawn(rows, d, width=d)) if rows else None


def _check_numbers(name: str, numbers: Any, count: int) -> None:
    if not isinstance(numbers, Tensor) or numbers.ndim != 2 or numbers.is_floating_point():
        got = (
            f"{numbers.dtype} {tuple(numbers.shape)}"
            if isinstance(numbers, Tensor)
            else type(numbers).__name__
        )
        raise ValueError(
            f"{name} must be whole numbers of shape (b, n), one text is numbers[None]; got {got}"
        )
    if numbers.numel() and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        raise ValueError(
            f"{name} must lie between 0 and {count - 1}, got {int(numbers.min())} ... {int(numbers.max())}"
        )
