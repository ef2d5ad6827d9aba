"""A model on one card, from any config.json: its layers by kind, heads, positions, and what a cache keeps.

A page says most of a model, and not all: what no field says is called unknown here, and fields that are not
read are named. Families that `open_model` knows are read by `options`; of others the fields that many share.
"""

import base64
import html
import textwrap
from dataclasses import dataclass, field
from typing import Any

from lesson_lib.models.pretrained.config import FAMILIES, options
from lesson_lib.models.pretrained.described import TITLES, kept_per_token, looks_at, unusual
from lesson_lib.models.pretrained.fields import HARMLESS, ONLY
from lesson_lib.models.pretrained.model import Options

# kind: what it looks at, colour (Okabe & Ito's, which the colour-blind tell apart)
KINDS = {
    "full_attention": ("all tokens before", "#0072B2"),
    "sliding_attention": ("a window", "#56B4E9"),
    "chunked_attention": ("its own chunk", "#009E73"),
    "indexed_attention": ("keys that an indexer chooses", "#E69F00"),
    "compressed_sparse_attention": ("chosen groups of tokens, and a window", "#D55E00"),
    "heavily_compressed_attention": ("long groups of tokens, and a window", "#CC79A7"),
    "linear_attention": ("a state of fixed size", "#F0E442"),
}
OLDER = {
    "mamba": "linear_attention", "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention", "qwen_sparse_attention": "indexed_attention",
}  # fmt: skip
OTHER = "#999999"


@dataclass(frozen=True)
class LayerKind:
    """One kind of layer: its name in layer_types, what it looks at, its positions; and the numbers that its
    cache keeps for a token (None: unknown), for at most `most` tokens, beside a `state` of fixed size."""

    name: str
    looks: str
    positions: str
    per_token: int | None
    most: int | None = None
    state: int = 0

    def kept(self, tokens: int) -> int | None:
        if self.per_token is None:
            return None
        return self.state + self.per_token * min(tokens, self.most or tokens)


@dataclass(frozen=True)
class Card:
    """What a config.json says, for an eye: `layers`, `facts` (label, text), `unread` fields; in a notebook it
    is a picture, and `svg()` is that picture's text."""

    title: str
    layers: tuple[LayerKind, ...]
    facts: tuple[tuple[str, str], ...]
    unread: tuple[str, ...] = ()
    groups: list[tuple[LayerKind, int]] = field(init=False)

    def __post_init__(self) -> None:
        counted = {kind: self.layers.count(kind) for kind in self.layers}
        object.__setattr__(self, "groups", list(counted.items()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The picture, which gets narrower with its place, and its words for who does not see it."""
        data = base64.b64encode(self.svg().encode()).decode()
        words = html.escape(str(self), quote=True).replace("\n", ". ")
        return f'<img alt="{words}" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">'

    def svg(self) -> str:
        """The card as a picture of its own, 760 wide."""
        return _drawn(self)

    def __str__(self) -> str:
        rows = [(f"{n} x {kind.name}", _told(kind)) for kind, n in self.groups]
        lines = [self.title, *(f"  {label}: {text}" for label, text in [*rows, *self.facts])]
        return "\n".join(lines)


def card(config: dict[str, Any], *, name: str = "") -> Card:
    """The card of a config.json; `name` is what the model is called. Raises ValueError for one that has no
    number of layers."""
    given = config.get("text_config") or config
    kind, unread = given.get("model_type", "unknown"), ()
    try:
        layers, facts = _opened(options(given))
    except ValueError as error:
        fields = Shared(given)
        layers, facts = _layers(fields)
        if kind in FAMILIES:
            facts.append(("not opened", str(error).removeprefix("config.json: ").splitlines()[0]))
        facts.append(("unknown", "gates, norms of queries and keys, sinks: the weights alone may say them"))
        unread = fields.unread()
    facts += _cache(layers, given.get("max_position_embeddings") or given.get("n_positions"))
    return Card(f"{name + ': ' if name else ''}{TITLES.get(kind, kind)}", layers, tuple(facts), unread)


Facts = list[tuple[str, str]]
# of the networks between attention, of training, of tokens: no part of the card
ELSEWHERE = set(
    "hidden_act intermediate_size vocab_size tie_word_embeddings rms_norm_eps layer_norm_eps attention_bias"
    " mlp_bias moe_intermediate_size mlp_layer_types n_shared_experts num_shared_experts norm_topk_prob"
    " shared_expert_intermediate_size decoder_sparse_step mlp_only_layers routed_scaling_factor n_group"
    " topk_group topk_method scoring_func first_k_dense_replace router_jitter_noise num_expert_group".split()
)


class Shared:
    """Fields that many families have, under one of several names; those asked for are remembered."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given, self.read = given, set()

    def __call__(self, *names: str, default: Any = None) -> Any:
        self.read.update(names)
        return next((self.given[one] for one in names if self.given.get(one) is not None), default)

    def unread(self) -> tuple[str, ...]:
        known = self.read | HARMLESS | ELSEWHERE | set(ONLY)
        return tuple(sorted(one for one, x in self.given.items() if one not in known and x is not None))


def _opened(o: Options) -> tuple[tuple[LayerKind, ...], Facts]:
    """Of a family that is opened."""
    layers = tuple(
        LayerKind(
            "sliding_attention" if kind.window else "full_attention",
            looks_at(o, kind),
            kind.turn.told if kind.turn else "a learned table" if o.positions or o.image else "none",
            kept_per_token(o) if o.causal else 0,
            kind.window and kind.window - 1,
        )
        for kind in o.layers
    )
    sizes = _sizes(len(layers), o.d_model, o.n_heads, o.n_key_heads, str(o.d_k))
    return layers, [sizes, ("unlike 2017", "; ".join(unusual(o)) or "nothing")]


def _sizes(n: int, d: int, h: int, shared: int, width: str) -> tuple[str, str]:
    return (
        "sizes",
        f"{n} layers, {d:,} numbers a token, {h} heads of queries and {shared} of keys, {width} wide",
    )


def _layers(get: Shared) -> tuple[tuple[LayerKind, ...], Facts]:
    """By the fields alone."""
    n = get("num_hidden_layers", "n_layer", "num_layers")
    if not isinstance(n, int):
        raise ValueError("config.json has no num_hidden_layers: a card is for models that are made of layers")
    d, h = get("hidden_size", "n_embd", default=0), get("num_attention_heads", "n_head", default=1)
    shared, d_k, width = get("num_key_value_heads", default=h), get("head_dim") or d // h, None
    latent, turned_part = get("kv_lora_rank"), get("qk_rope_head_dim", default=0)
    if latent:
        width = f"{get('qk_nope_head_dim', default=0)} + {turned_part}"
        get("qk_head_dim", "v_head_dim", "q_lora_rank")
    facts, types = [_sizes(n, d, h, shared, width or str(d_k))], get("layer_types")
    index, chunk, window = get("index_topk"), get("attention_chunk_size"), get("sliding_window")
    if types is None:
        types = ["indexed_attention" if index else "full_attention"] * n
        facts.append(("kinds of layer", "no field layer_types, so all are taken to be alike"))
    types = [OLDER.get(one, one) for one in types]
    per_token = latent + turned_part if latent else 2 * shared * d_k
    if latent:
        facts.append(("latent keys", f"{latent} + {turned_part} numbers a token, for all heads"))
    if index:
        facts.append(("chosen keys", f"{index:,} of all, by {get('index_n_heads')} narrow heads"))
    if get("attn_output_gate", "use_attn_gate", "attention_gate"):
        facts.append(("gate", "a sigmoid behind attention"))
    if experts := get("num_experts", "num_local_experts", "n_routed_experts"):
        used = get("num_experts_per_tok", "num_experts_per_token", "experts_per_token")
        facts.append(("experts", f"{experts}, {used} for each token"))
    turns = get("rope_parameters", "rope_scaling", default={})
    turns = (turns.get("full_attention", turns) if isinstance(turns, dict) else None) or {}
    base = turns.get("rope_theta") or get("rope_theta")
    told = f"rotary, base {base:,.0f}" if base else "unknown"
    if (scaling := turns.get("rope_type", turns.get("type", "default"))) != "default":
        told += f", {scaling} × {turns.get('factor', '?')}"
    if share := turns.get("partial_rotary_factor") or get("partial_rotary_factor"):
        told += f", {share:.0%} of a head" if share != 1 else ""
    flat, every = get("no_rope_layers"), get("no_rope_layer_interval")
    turned = flat or [not every or (i + 1) % every != 0 for i in range(n)]
    state = _state(get)
    made = {
        "sliding_attention": (
            f"the last {window:,}" if window else "a window", per_token, window and window - 1, 0,
        ),
        "chunked_attention": (f"its chunk of {chunk:,}" if chunk else "its chunk", per_token, chunk, 0),
        "indexed_attention": (
            f"the {index:,} that an indexer chooses" if index else "chosen keys",
            per_token + get("index_head_dim", default=0), None, 0,
        ),
        "linear_attention": ("a state of fixed size", None if state is None else 0, None, state or 0),
        "full_attention": ("all before", per_token, None, 0),
    }  # fmt: skip
    layers = []
    for i, name in enumerate(types):
        looks, kept, most, fixed = made.get(name, (KINDS.get(name, ("unknown",))[0], None, None, 0))
        positions = (
            "by its order" if name == "linear_attention" else told if turned[i % len(turned)] else "none"
        )
        layers.append(LayerKind(name, looks, positions, kept, most, fixed))
    return tuple(layers), facts


def _state(get: Any) -> int | None:
    """Numbers of a linear layer's state: a matrix (d_k, d_v) for each head."""
    heads = get("linear_num_value_heads", "linear_num_heads")
    d_k = get("linear_key_head_dim", "linear_head_dim")
    d_v = get("linear_value_head_dim", default=d_k)
    return heads * d_k * d_v if heads and d_k else None


def _cache(layers: tuple[LayerKind, ...], longest: int | None) -> Facts:
    """What caches keep, in bfloat16; layers of which it is unknown are said."""
    known = [kind for kind in layers if kind.per_token is not None]
    if not known:
        return [("cache", "unknown")]
    rest = len(layers) - len(known)
    told = f" ({rest} layers unknown, not counted)" if rest else ""
    each = 2 * sum(kind.per_token for kind in known) / 1024
    full = ", until windows are full" if any(kind.most for kind in known) else ""
    facts = [("cache", f"{each:,.1f} KiB for each token in bfloat16{full}{told}")]
    if longest:
        whole = 2 * sum(kind.kept(longest) for kind in known) / 2**20
        facts.append(("longest text", f"{longest:,} tokens: the caches keep {whole:,.0f} MiB{told}"))
    return facts


def _told(kind: LayerKind) -> str:
    kept = {None: "an unknown number", 0: "nothing"}.get(
        kind.per_token, f"{kind.per_token or 0:,} numbers a token"
    )
    state = f"a state of {kind.state:,} numbers" if kind.state else kept
    return f"{kind.looks}; positions: {kind.positions}; keeps {state}"


def _drawn(found: Card, *, width: int = 760, line: int = 20, characters: int = 80) -> str:
    """The picture: at the left a bar for each layer, the first below, at the right the words. A layer without
    positions is an outline."""
    rows: list[tuple[str, str, str]] = []  # what stands before a text, its weight, the text

    def add(label: str, text: str, before: str = "") -> None:
        rows.append((before, "bold", label))
        rows.extend(("", "normal", one) for one in textwrap.wrap(text, characters))

    for kind, n in found.groups:
        add(f"{n} × {kind.name}", _told(kind), _look(kind))
    for label, text in found.facts:
        add(label, text)
    if found.unread:
        add("fields not read", ", ".join(found.unread))
    height, tall = 60 + line * len(rows), (line * len(rows) - 20) / len(found.layers)
    parts = [
        f'<rect x="24" y="{height - 24 - (i + 1) * tall:.1f}" width="100" height="{0.7 * tall:.1f}"'
        f" {_look(kind)}/>"
        for i, kind in enumerate(found.layers)
    ]
    for i, (before, weight, text) in enumerate(rows):
        y = 66 + line * i
        if before:
            parts.append(f'<rect x="144" y="{y - 11}" width="12" height="12" {before}/>')
        parts.append(f'<text x="164" y="{y}" font-weight="{weight}">{html.escape(text)}</text>')
    title = html.escape(found.title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="sans-serif" font-size="14" fill="#222222"><title>{title}</title>'
        f"<desc>{html.escape(str(found))}</desc>"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
        f'<text x="24" y="34" font-size="20" font-weight="bold">{title}</text>{"".join(parts)}</svg>'
    )


def _look(kind: LayerKind) -> str:
    colour = KINDS.get(kind.name, ("", OTHER))[1]
    fill = "#ffffff" if kind.positions == "none" else colour
    return f'fill="{fill}" stroke="{colour}" stroke-width="2"'
