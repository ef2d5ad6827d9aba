"""config.json as Options: what each family's fields mean. What is known of the others, `fields` says."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from lesson_lib import scalings
from lesson_lib.models.pretrained.fields import Fields, contradiction, named
from lesson_lib.models.pretrained.model import Experts, Kind, Options, Turn
from lesson_lib.positions import frequencies


def options(config: dict[str, Any], *, ignore: tuple[str, ...] = ()) -> Options:
    """The options of a config.json. `ignore` names fields that you know to change nothing.

    Raises ValueError for an unknown family, another head than those that are opened, a missing field, and one
    whose value or name is not supported.
    """
    family = config.get("model_type")
    if family not in FAMILIES:
        raise ValueError(
            f"config.json: model_type is {family!r}; families that can be opened: {', '.join(FAMILIES)}"
            f"{LINEAR if 'linear_attention' in (config.get('layer_types') or ()) else ''}"
        )
    _read_out(config.get("architectures"), family)
    fields = Fields(config, family)
    found = FAMILIES[family](fields)
    fields.rest(ignore)
    return found


LINEAR = (
    ". This one has linear_attention layers (as Qwen3.5 and Kimi Linear: a gated delta rule behind a short"
    " convolution), which are not opened; python -m lesson_lib model FOLDER --card FILE.svg draws its page"
)
HEADS = {
    "gpt2": ("LMHeadModel",),
    "bert": ("ForMaskedLM", "ForPreTraining"),
    "vit": ("ForImageClassification",),
}


def _read_out(architectures: list[str] | None, family: str) -> None:
    """Raise ValueError where a page names another head than those of `HEADS`; all other families have
    ForCausalLM."""
    known = HEADS.get(family, ("ForCausalLM",))
    for name in architectures or []:
        stem, *other = re.split(r"(?=For[A-Z]|LMHead|DoubleHead)", name, maxsplit=1)
        if other and not any(head in name for head in known):
            raise ValueError(
                f"config.json: architectures has {name!r}, a {family} with a head (its read-out) that is not"
                f" opened; take the model that it was made from, {', '.join(stem + head for head in known)}"
            )


def _gpt2(f: Fields) -> Options:
    d, h, n_layers = f.size("n_embd"), f.size("n_head"), f.size("n_layer")
    return Options(
        "gpt2", (Kind(),) * n_layers, d, h, h, _of_each(d, h, "n_embd"), f("n_inner", None) or 4 * d,
        n_tokens=f.size("vocab_size"), positions=f.size("n_positions"), norm="layer",
        eps=f("layer_norm_epsilon", 1e-5), activation=f.activation("activation_function", "gelu_new"),
        gated=False, bias=True, tied=f("tie_word_embeddings", True),
    )  # fmt: skip


def _two_ways(f: Fields, family: str, **more: Any) -> Options:
    """BERT and ViT."""
    d, h = f.size("hidden_size"), f.size("num_attention_heads")
    return Options(
        family, (Kind(),) * f.size("num_hidden_layers"), d, h, h, _of_each(d, h, "hidden_size"),
        f.size("intermediate_size"), causal=False, norm="layer", eps=f("layer_norm_eps", 1e-12),
        activation=f.activation("hidden_act", "gelu"), gated=False, bias=True, **more,
    )  # fmt: skip


def _bert(f: Fields) -> Options:
    asked = f("architectures", None) or []
    logits = any(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in asked)
    return _two_ways(
        f, "bert", n_tokens=f.size("vocab_size"), positions=f.size("max_position_embeddings"),
        kinds_of_token=f.size("type_vocab_size"), first_norm=True, norms="behind",
        tied=f("tie_word_embeddings", True), reads_out="masked tokens" if logits else "nothing",
    )  # fmt: skip


def _vit(f: Fields) -> Options:
    asked = f("architectures", None) or []
    classes = any(name.endswith("ForImageClassification") for name in asked)
    side, patch = f.size("image_size"), f.size("patch_size")
    if side % patch:
        raise ValueError(f"config.json: image_size is {side}, no multiple of patch_size = {patch}")
    return _two_ways(
        f, "vit", image=(f.size("num_channels", 3), side, patch),
        reads_out="classes" if classes else "nothing",
        n_classes=len(f("id2label", None) or {}) or f("num_labels", 2),
    )  # fmt: skip


def _llama(
    f: Fields,
    family: str = "llama",
    *,
    layers: Callable[[int, int], tuple[Kind, ...]] | None = None,
    d_k: int | None = None,
    **more: Any,
) -> Options:
    """Llama, and those that differ from it in a few options, which `more` gives. `layers` makes the kinds of
    so many layers with heads of a width, by default those of `_kinds`; `d_k` is that width where the file
    says nothing."""
    d, h, n_layers = f.size("hidden_size"), f.size("num_attention_heads"), f.size("num_hidden_layers")
    d_k = f("head_dim", None) or d_k or _of_each(d, h, "hidden_size")
    usual = {
        # a Llama without the field is an old one; the others' defaults are one model's numbers
        "n_key_heads": lambda: f("num_key_value_heads", *((None,) if family == "llama" else ())) or h,
        "d_inner": lambda: f.size("intermediate_size"),
        "n_tokens": lambda: f.size("vocab_size"),
        "bias": lambda: f("attention_bias", False),
        "inner_bias": lambda: f("mlp_bias", False),
        "tied": lambda: f("tie_word_embeddings", False),
        "eps": lambda: f("rms_norm_eps", 1e-6),
        "activation": lambda: f.activation("hidden_act", "silu"),
    }
    more |= {name: read() for name, read in usual.items() if name not in more}
    kinds = (layers or partial(_kinds, f))(n_layers, d_k)
    return Options(family, kinds, d_model=d, n_heads=h, d_k=d_k, **more)


def _mistral(f: Fields) -> Options:
    return _llama(f, "mistral", layers=partial(_kinds, f, window=f("sliding_window", 4096)))


def _ministral3(f: Fields) -> Options:
    positions = f("rope_parameters")  # its default is one model's yarn
    a, n = positions.get("llama_4_scaling_beta"), positions.get("original_max_position_embeddings")
    sharper = (a, n) if a else None
    layers = partial(_kinds, f, window=f("sliding_window", None), sharper=sharper)
    return _llama(f, "ministral3", layers=layers, eps=f("rms_norm_eps", 1e-5))


def _smollm3(f: Fields) -> Options:
    every, window = f("no_rope_layer_interval", 4), f("sliding_window", None)
    f("max_window_layers", None)  # stands in its page, and is never read
    window = window if f("use_sliding_window", False) else None

    def layers(n: int, d_k: int) -> tuple[Kind, ...]:
        turned = f("no_rope_layers", None) or [(i + 1) % every != 0 for i in range(n)]
        kinds = _kinds(f, n, d_k, window=window, near=lambda i: not turned[i], base=2_000_000.0)
        return tuple(
            kind if turns else replace(kind, turn=None) for kind, turns in zip(kinds, turned, strict=True)
        )

    return _llama(f, "smollm3", layers=layers, tied=f("tie_word_embeddings", True))


def _granite(f: Fields) -> Options:
    return _llama(
        f, "granite", scale=f("attention_multiplier", 1.0), embedding_scale=f("embedding_multiplier", 1.0),
        residual_scale=f("residual_multiplier", 1.0), logit_scale=1 / f("logits_scaling", 1.0),
    )  # fmt: skip


def _phi3(f: Fields) -> Options:
    f("original_max_position_embeddings", None)  # for positions of the kind longrope, which are refused
    return _llama(
        f, "phi3", layers=partial(_kinds, f, window=f("sliding_window", None)), eps=f("rms_norm_eps", 1e-5)
    )


def _olmo2(f: Fields) -> Options:
    return _llama(f, "olmo2", norms="after", head_norms="all", eps=f("rms_norm_eps", 1e-5))


def _olmo3(f: Fields) -> Options:
    layers = partial(
        _kinds, f, window=f("sliding_window", 4096), near=lambda i: (i + 1) % 4 != 0, base=500_000.0
    )
    return _llama(f, "olmo3", layers=layers, norms="after", head_norms="all", eps=f("rms_norm_eps", 1e-5))


def _starcoder2(f: Fields) -> Options:
    window, bias = f("sliding_window", None), f("use_bias", True)
    if not bias:
        raise ValueError("config.json: use_bias is False; a Starcoder2 without biases is not supported")
    return _llama(
        f, "starcoder2", layers=partial(_kinds, f, window=window), norm="layer",
        eps=f("norm_epsilon", 1e-5), gated=False, bias=True, inner_bias=True,
        tied=f("tie_word_embeddings", True), activation=f.activation("hidden_act", "gelu_pytorch_tanh"),
    )  # fmt: skip


def _qwen(f: Fields, family: str, **more: Any) -> Options:
    """Qwen 2 and 3."""
    window, used = f("sliding_window", 4096), f("use_sliding_window", False)
    first = f("max_window_layers", 28)
    layers = partial(_kinds, f, window=window if used else None, near=lambda i: i >= first)
    return _llama(f, family, layers=layers, **more)


def _qwen2(f: Fields) -> Options:
    return _qwen(f, "qwen2", bias=True, output_bias=False)


def _qwen3(f: Fields) -> Options:
    return _qwen(f, "qwen3", head_norms="each", d_k=128)


def _gemma(f: Fields, family: str, pattern: int, bases: tuple[float, float], **more: Any) -> Options:
    """Gemma 2 and 3: norms on both sides, layers with and without a window in turns."""
    window = f("sliding_window", 4096)
    f("hidden_act", None)  # older files have both, and hidden_activation counts

    near_base, base = bases
    layers = partial(
        _kinds, f, window=window, near=lambda i: (i + 1) % pattern != 0, base=base, near_base=near_base
    )
    return _llama(
        f, family, layers=layers, norms="both", d_k=256, scale=f("query_pre_attn_scalar", 256) ** -0.5,
        cap=f("attn_logit_softcapping", more.pop("cap", None)),
        logit_cap=f("final_logit_softcapping", more.pop("logit_cap", None)),
        activation=_gelu(f),
        embedding_scale=f.size("hidden_size") ** 0.5, tied=f("tie_word_embeddings", True), **more,
    )  # fmt: skip


def _gelu(f: Fields) -> str:
    return "gelu_pytorch_tanh" if f("hidden_activation", None) is None else f.activation("hidden_activation")


def _gemma2(f: Fields) -> Options:
    return _gemma(f, "gemma2", 2, (10_000.0, 10_000.0), cap=50.0, logit_cap=30.0)


def _gemma3(f: Fields) -> Options:
    pattern = f("sliding_window_pattern", None) or f("_sliding_window_pattern", None) or 6
    return _gemma(f, "gemma3_text", pattern, (10_000.0, 1_000_000.0), head_norms="each")


def _gpt_oss(f: Fields) -> Options:
    window = f("sliding_window", 128)
    if "rope_scaling" not in f.given:
        f("rope_parameters")  # its default is one model's yarn

    return _llama(
        f,
        "gpt_oss",
        layers=partial(_kinds, f, window=window, near=lambda i: i % 2 == 0, base=150_000.0),
        d_k=64,
        sinks=True,
        bias=f("attention_bias", True),
        eps=f("rms_norm_eps", 1e-5),
        activation="silu",
        experts=Experts(
            count=f.size("num_local_experts"),
            used=f.size("num_experts_per_tok"),
            limit=f("swiglu_limit", 7.0),
            alpha=f("swiglu_alpha", 1.702),
        ),
    )


FAMILIES: dict[str, Callable[[Fields], Options]] = {
    "gpt2": _gpt2,
    "bert": _bert,
    "vit": _vit,
    "llama": _llama,
    "mistral": _mistral,
    "ministral3": _ministral3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "smollm3": _smollm3,
    "granite": _granite,
    "phi3": _phi3,
    "olmo2": _olmo2,
    "olmo3": _olmo3,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gpt_oss": _gpt_oss,
    "starcoder2": _starcoder2,
}


def turn(f: Fields, d: int, kind: str | None = None, base: float = 10_000.0) -> Turn:
    """Rotary positions of heads of width d, as a config says it: new files have `rope_parameters`, for each
    kind of layer or for all; older ones `rope_theta` and `rope_scaling`, and Gemma 3 `rope_local_base_freq`.

    Raises ValueError for a scaling that is not supported, for a field of it that is missing or not known, and
    where newer and older fields contradict each other.
    """
    newer, theta = f("rope_parameters", None), f("rope_theta", None)
    older, name_of_theta = f("rope_scaling", None) or {}, "rope_theta"
    if f.reader == "gemma3_text":
        local = f("rope_local_base_freq", None)
        if kind == "sliding_attention":
            older, theta, name_of_theta = {}, local, "rope_local_base_freq"
    if f.reader == "olmo3" and kind == "sliding_attention":
        older = {}  # it scales the positions of layers without a window
    given = older
    if newer is not None:
        given = newer.get(kind, newer)
        _agreed(older | {"rope_theta": theta}, given, {"rope_theta": name_of_theta})
    name = _rope_type(given)
    if name not in SCALINGS:
        raise ValueError(f"config.json: rope_type is {name!r}; supported are {', '.join(SCALINGS)}")
    s = Fields(given, f"rotary position of the kind {name!r}")
    s("rope_type", None), s("type", None)
    if f.reader == "ministral3":  # read by the family
        s("llama_4_scaling_beta", None), s("max_position_embeddings", None)
    base = float(s("rope_theta", None) or theta or base)
    inside, beside = (one("partial_rotary_factor", None) for one in (s, f))
    share = inside or beside or 1
    if share != 1 and f.reader != "phi3":
        raise ValueError(
            f"config.json: partial_rotary_factor is {share}; only a phi3 turns a part of the columns"
        )
    d = 2 * int(d * share / 2)
    told = f"rotary, base {base:,.0f}" + (f", {d} columns" if share != 1 else "")
    if name == "default":
        return Turn(tuple(frequencies(d, base=base).tolist()), told=told)
    found, stretch, factor = SCALINGS[name](s, f, d, base)
    if unknown := s.unread():
        raise ValueError(f"config.json: {name} positions have {named(unknown)}, not known here")
    return Turn(tuple(found.tolist()), stretch, f"{told}, {name} × {factor:g}")


def _rope_type(given: dict[str, Any]) -> str:
    return given.get("rope_type") or given.get("type") or "default"


def _agreed(older: dict[str, Any], newer: dict[str, Any], names: dict[str, str]) -> None:
    """Raise ValueError where older fields of positions say another thing than newer ones; `names` are what
    older files call them."""
    if "rope_type" in older or "type" in older:
        older, newer = (x | {"rope_type": _rope_type(x)} for x in (older, newer))
    for key in older.keys() & newer.keys() - {"type"}:
        if None not in (older[key], newer[key]) and older[key] != newer[key]:
            name = names.get(key, key)
            raise ValueError(contradiction(name, older[key], "in rope_parameters it is", newer[key]))


def _linear(s: Fields, f: Fields, d: int, base: float) -> tuple[Tensor, float, float]:
    factor = s("factor")
    return scalings.linear(d, factor, base=base), 1.0, factor


def _llama3(s: Fields, f: Fields, d: int, base: float) -> tuple[Tensor, float, float]:
    factor, context = s("factor"), _context(s, f)
    ends = {"fast": s("high_freq_factor"), "slow": s("low_freq_factor")}
    return scalings.llama3(d, factor, context, base=base, **ends), 1.0, factor


def _yarn(s: Fields, f: Fields, d: int, base: float) -> tuple[Tensor, float, float]:
    context = _context(s, f)
    factor = s("factor", None) or f("max_position_embeddings") / context
    ends = {"fast": s("beta_fast", None) or 32, "slow": s("beta_slow", None) or 1}
    found = scalings.yarn(d, factor, context, base=base, whole=s("truncate", True), **ends)
    stretch, over, under = s("attention_factor", None), s("mscale", None), s("mscale_all_dim", None)
    if not stretch:
        stretch = scalings.yarn_stretch(factor)
        if over and under:
            stretch = scalings.yarn_stretch(factor, over) / scalings.yarn_stretch(factor, under)
    return found, stretch, factor


def _context(s: Fields, f: Fields) -> int:
    """Tokens of a text in the first training, which some files say twice."""
    context = s("original_max_position_embeddings")
    for name in ("initial_context_length", "original_max_position_embeddings"):
        if (said := f(name, None)) not in (None, context):
            raise ValueError(contradiction(name, said, "in the scaling of positions it is", context))
    return context


SCALINGS = {"default": None, "linear": _linear, "yarn": _yarn, "llama3": _llama3}


def _kinds(
    f: Fields,
    n: int,
    d_k: int,
    *,
    window: int | None = None,
    near: Callable[[int], bool] = lambda i: True,
    base: float = 10_000.0,
    near_base: float | None = None,
    sharper: tuple[float, int] | None = None,
) -> tuple[Kind, ...]:
    """The kinds of n layers with heads of width d_k. Which of them have the window says `layer_types`, or
    else the family's rule `near`; `base` and `near_base` are those of rotary positions where the file is
    silent."""
    local = _local(f, n, lambda i: window is not None and near(i))
    bases = {False: ("full_attention", base), True: ("sliding_attention", near_base or base)}
    kinds = {
        one: Kind(window if one else None, turn(f, d_k, *bases[one]), sharper) for one in dict.fromkeys(local)
    }
    return tuple(kinds[one] for one in local)


def _local(f: Fields, n_layers: int, rule: Callable[[int], bool]) -> list[bool]:
    """Which layers have the window: `layer_types` says it, or else the family's rule."""
    types = f("layer_types", None)
    if types is None:
        return [rule(i) for i in range(n_layers)]
    known = {"sliding_attention": True, "full_attention": False}
    for name in types:
        if name not in known:
            raise ValueError(f"config.json: layer_types has {name!r}; supported are {', '.join(known)}")
    if len(types) != n_layers:
        raise ValueError(
            f"config.json: layer_types names {len(types)} layers, num_hidden_layers is {n_layers}"
        )
    return [known[name] for name in types]


def _of_each(d: int, h: int, name: str) -> int:
    if d % h:
        raise ValueError(f"config.json: {name} is {d}, no multiple of the {h} heads")
    return d // h
