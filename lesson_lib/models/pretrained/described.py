"""What a model is, in words and numbers: layer by layer, and what is unusual."""

from lesson_lib.models.pretrained.model import Kind, Model, Options

TITLES = {
    "gpt2": "GPT-2", "bert": "BERT", "vit": "ViT", "llama": "Llama", "mistral": "Mistral",
    "ministral3": "Ministral 3", "qwen2": "Qwen2", "qwen3": "Qwen3", "smollm3": "SmolLM3",
    "granite": "Granite", "phi3": "Phi-3", "olmo2": "OLMo 2", "olmo3": "OLMo 3", "gemma2": "Gemma 2",
    "gemma3_text": "Gemma 3", "gpt_oss": "gpt-oss", "starcoder2": "Starcoder2",
}  # fmt: skip


def described(model: Model, *, name: str = "") -> str:
    """A page of plain text: sizes, the kinds of layer, the numbers kept per token, and what is unusual."""
    o = model.options
    count = sum(p.numel() for p in model.parameters())
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    lines = [
        f"{name + ': ' if name else ''}{TITLES[o.family]}, {len(o.layers)} layers,"
        f" {count:,} parameters ({dtype})",
        f"  in     {_comes_in(o)}",
        f"  layer  {_layer(o)}",
        f"  out    {_goes_out(o)}",
        "",
        *_table(o),
    ]
    lines += ["", *_caches(o)] if o.causal else []
    if found := unusual(o):
        lines += ["", "Unlike the Transformer of 2017:", *(f"  - {text}" for text in found)]
    if model.left or (isinstance(model.text, str) and not o.image):
        lines.append("")
    if model.left:
        lines.append(f"Not opened, since it is another read-out: {', '.join(model.left)}.")
    if isinstance(model.text, str) and not o.image:
        lines.append(f"Without texts: {model.text}.")
    return "\n".join(lines)


def _table(o: Options) -> list[str]:
    """A row for each kind of layer."""
    rows = [("layers", "looks at", "positions", "kept per token and layer")]
    for numbers, kind in _kinds(o):
        kept_here = f"{kept_per_token(o):,} numbers" if o.causal else "nothing: it looks both ways"
        rows.append((numbers, looks_at(o, kind), _positions(o, kind), kept_here))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return ["  " + "  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _caches(o: Options) -> list[str]:
    """What the caches of all layers keep, beside those of heads that all have keys of their own, without
    windows."""
    lines = []
    for tokens in (o.positions,) if o.positions else (1_000, 100_000):
        numbers, full = kept(o, tokens), 2 * o.n_heads * o.d_k * tokens * len(o.layers)
        spared = (
            f"; every head its own keys, no window: {full / numbers:.0f} times as much"
            if full > numbers
            else ""
        )
        mib = 2 * numbers / 2**20
        lines.append(
            f"After {tokens:,} tokens the caches keep {numbers:,} numbers ({mib:,.1f} MiB in"
            f" bfloat16){spared}."
        )
    return lines


def kept_per_token(o: Options) -> int:
    """Numbers that one layer's cache keeps for a token: keys and values of each of their heads."""
    return 2 * o.n_key_heads * o.d_k


def kept(o: Options, tokens: int) -> int:
    """Numbers that all caches keep after so many tokens; a window keeps no more than it needs."""
    each = (tokens if kind.window is None else min(tokens, kind.window - 1) for kind in o.layers)
    return kept_per_token(o) * sum(each)


def looks_at(o: Options, kind: Kind) -> str:
    """Which tokens a layer of this kind looks at."""
    if not o.causal:
        return "all tokens"
    return "all before" if kind.window is None else f"the last {kind.window:,}"


def unusual(o: Options) -> list[str]:
    """What differs from the attention of 2017, one clause each."""
    group = o.n_heads // o.n_key_heads
    windows = {kind.window for kind in o.layers if kind.window is not None}
    stretches = {kind.turn.stretch for kind in o.layers if kind.turn is not None} - {1.0}
    facts = {
        f"{group} heads of queries share one head of keys and values": group > 1,
        f"a head is {o.d_k} wide, {o.n_heads} of them are {o.n_heads * o.d_k}, and a token {o.d_model}": (
            o.n_heads * o.d_k != o.d_model
        ),
        f"windows of {', '.join(map(str, sorted(windows)))} tokens, the own one among them": bool(windows),
        "queries and keys are normed before they are turned (QK-norm)": o.head_norms == "each",
        "all columns of queries, and of keys, are normed together before they are turned": (
            o.head_norms == "all"
        ),
        "queries, keys and values have biases": o.output_bias is False,
        "no positions in some layers": any(kind.turn is None for kind in o.layers) and not o.positions,
        "each head has a sink, a key that nobody wrote": o.sinks,
        f"scores are capped at ±{o.cap:g}" if o.cap else "": bool(o.cap),
        f"logits are capped at ±{o.logit_cap:g}" if o.logit_cap else "": bool(o.logit_cap),
        "scores are not divided by the root of the head's width": (
            o.scale is not None and abs(o.scale - o.d_k**-0.5) > 1e-9
        ),
        f"queries and keys are stretched by {max(stretches, default=1):.3f} (yarn)": bool(stretches),
        "norms on both sides of each sub-layer": o.norms == "both",
        "norms after each sub-layer, before the sum": o.norms == "after",
        f"embeddings are multiplied by {o.embedding_scale:.4g}": o.embedding_scale != 1,
        f"what a sub-layer adds is multiplied by {o.residual_scale:.4g}": o.residual_scale != 1,
        f"logits are multiplied by {o.logit_scale:.4g}": o.logit_scale != 1,
        "scores grow with the position of the query, by its logarithm": (
            any(kind.sharper for kind in o.layers)
        ),
        f"{o.experts.count} experts, {o.experts.used} for each token" if o.experts else "": bool(o.experts),
    }
    return [text for text, there in facts.items() if there]


def _kinds(o: Options) -> list[tuple[str, Kind]]:
    """Layers of the same kind together, by their numbers."""
    groups: dict[Kind, list[int]] = {}
    for i, kind in enumerate(o.layers):
        groups.setdefault(kind, []).append(i)
    return [(_ranges(numbers), kind) for kind, numbers in groups.items()]


def _ranges(numbers: list[int]) -> str:
    """0-4, 6-10.

    >>> _ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for i in numbers:
        if runs and i == runs[-1][-1] + 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _comes_in(o: Options) -> str:
    if o.image:
        channels, side, patch = o.image
        patches = f"{(side // patch) ** 2} patches of {patch} x {patch}"
        return f"images of {side} x {side}, {channels} channels, as {patches} and one token"
    return f"{o.n_tokens:,} tokens as rows of {o.d_model:,}"


def _goes_out(o: Options) -> str:
    if o.reads_out == "nothing":
        return "the last states; no read-out in this file"
    if o.reads_out == "classes":
        return f"{o.n_classes} classes, read from the first token"
    by = "the table of embeddings" if o.tied else "a table of its own"
    return f"logits of {o.n_tokens:,} tokens, by {by}"


def _layer(o: Options) -> str:
    heads = f"{o.n_heads} heads" + (
        "" if o.n_heads == o.n_key_heads else f", {o.n_key_heads} of keys and values"
    )
    norm = "RMSNorm" if o.norm == "rms" else "LayerNorm"
    where = {"before": "before", "behind": "behind", "after": "after", "both": "on both sides of"}[o.norms]
    network = "gated, " if o.gated and not o.experts else "in experts, " if o.experts else ""
    inner = f"{network}{o.d_inner:,} inside ({o.activation})"
    return f"{heads}, width {o.d_k}; {inner}; {norm} {where} each sub-layer"


def _positions(o: Options, kind: Kind) -> str:
    if kind.turn is not None:
        return kind.turn.told
    if o.causal and not o.positions:
        return "none"
    return "learned, one for each patch" if o.image else f"a learned table of {o.positions:,}"
