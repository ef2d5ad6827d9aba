"""config.json as Options: what each family's fields mean, and a sentence for every field that we do not
know.

Every field is read, is known to change nothing in a forward pass (`HARMLESS`), or is refused by name: a field
that is skipped in silence is how a model comes out wrong.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from lesson_lib import scalings
from lesson_lib.models.pretrained.model import ACTIVATIONS, Experts, Kind, Options, Turn
from lesson_lib.positions import frequencies

HARMLESS = set(
    "model_type architectures transformers_version torch_dtype dtype _name_or_path use_cache bos_token_id"
    " eos_token_id pad_token_id cls_token_id sep_token_id initializer_range attention_dropout"
    " hidden_dropout_prob attention_probs_dropout_prob"
    " classifier_dropout resid_pdrop embd_pdrop attn_pdrop residual_dropout"
    " embedding_dropout gradient_checkpointing output_hidden_states output_attentions output_router_logits"
    " return_dict id2label label2id num_labels problem_type task_specific_params chunk_size_feed_forward"
    " pretraining_tp max_position_embeddings n_ctx n_positions router_aux_loss_coef initial_context_length"
    " experts_per_token summary_type summary_use_proj summary_activation summary_proj_to_labels"
    " summary_first_dropout encoder_stride pooler_output_size pooler_act cache_implementation"
    " _attn_implementation _attn_implementation_autoset finetuning_task torchscript use_bfloat16".split()
)
# what may stand there only with these values
ONLY = {
    "is_encoder_decoder": (False, None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "tie_encoder_decoder": (False, None),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "reorder_and_upcast_attn": (False,),
    "position_embedding_type": ("absolute", None),
    "partial_rotary_factor": (1.0, 1, None),
    "use_bidirectional_attention": (False, None),
    "qkv_bias": (True,),
}
MEANING = {
    "quantization_config": "the weights are quantised; take a folder in bfloat16, float16 or float32",
    "is_decoder": "a BERT that looks back only is not supported",
    "qkv_bias": "a ViT without biases is not supported",
}


class Fields:
    """A config.json, or a part of it, that remembers which of its fields were read. `reader` needs them."""

    def __init__(self, given: dict[str, Any], reader: str) -> None:
        self.given, self.reader, self.read = given, reader, set()

    def __call__(self, name: str, *default: Any) -> Any:
        """A field's value; `default` where it is missing. Raises ValueError where there is none."""
        self.read.add(name)
        if name in self.given:
            return self.given[name]
        if not default:
            raise ValueError(f"config.json has no field {name!r}, which a {self.reader} needs")
        return default[0]

    def unread(self) -> dict[str, Any]:
        return {name: value for name, value in self.given.items() if name not in self.read}

    def size(self, name: str, *default: Any) -> int:
        """A field that must be a whole number of at least 1."""
        value = self(name, *default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"config.json: {name} must be a whole number >= 1, got {value!r}")
        return value

    def activation(self, name: str, *default: Any) -> str:
        """A field that must name a known activation."""
        value = self(name, *default)
        if value not in ACTIVATIONS:
            raise ValueError(f"config.json: {name} is {value!r}; supported are {', '.join(ACTIVATIONS)}")
        return value

    def rest(self, ignore: tuple[str, ...] = ()) -> None:
        """Raise ValueError for a field that was not read and is not known to change nothing."""
        for name, value in self.unread().items():
            if name in HARMLESS or name in ignore:
                continue
            if name not in ONLY:
                raise ValueError(
                    f"config.json has the field {name!r} ({value!r}), which is not known here for a"
                    f" {self.reader}: it may change what the model computes. If you know that it does not,"
                    f" use open_model(folder, ignore=[{name!r}])"
                )
            if value not in ONLY[name]:
                why = MEANING.get(name, "that is not supported")
                raise ValueError(f"config.json: {name} is {value!r}; {why}")


def options(config: dict[str, Any], *, ignore: tuple[str, ...] = ()) -> Options:
    """The options of a config.json. `ignore` names fields that you know to change nothing.

    Raises ValueError for an unknown family, a missing field, and one whose value or name is not supported.
    """
    family = config.get("model_type")
    if family not in FAMILIES:
        raise ValueError(
            f"config.json: model_type is {family!r}; families that can be opened: {', '.join(FAMILIES)}"
        )
    fields = Fields(config, family)
    found = FAMILIES[family](fields)
    fields.rest(ignore)
    return found


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
    so many layers with heads of a width; `d_k` is that width where the file says nothing."""
    d, h, n_layers = f.size("hidden_size"), f.size("num_attention_heads"), f.size("num_hidden_layers")
    d_k = f("head_dim", None) or d_k or _of_each(d, h, "hidden_size")
    usual = {
        # a Llama without the field is an old one; the others' defaults are one model's numbers
        "n_key_heads": f("num_key_value_heads", *((None,) if family == "llama" else ())) or h,
        "d_inner": f.size("intermediate_size"),
        "n_tokens": f.size("vocab_size"),
        "bias": f("attention_bias", False),
        "inner_bias": f("mlp_bias", False),
        "tied": f("tie_word_embeddings", False),
    }
    if "eps" not in more:
        usual["eps"] = f("rms_norm_eps", 1e-6)
    if "activation" not in more:
        usual["activation"] = f.activation("hidden_act", "silu")
    kinds = layers(n_layers, d_k) if layers else (Kind(turn=turn(f, d_k)),) * n_layers
    return Options(family, kinds, d_model=d, n_heads=h, d_k=d_k, **usual | more)


def _mistral(f: Fields) -> Options:
    window = f("sliding_window", 4096)
    return _llama(f, "mistral", layers=lambda n, d_k: (Kind(window, turn(f, d_k)),) * n)


def _starcoder2(f: Fields) -> Options:
    window, bias = f("sliding_window", None), f("use_bias", True)
    if not bias:
        raise ValueError("config.json: use_bias is False; a Starcoder2 without biases is not supported")
    return _llama(
        f, "starcoder2", layers=lambda n, d_k: (Kind(window, turn(f, d_k)),) * n, norm="layer",
        eps=f("norm_epsilon", 1e-5), gated=False, bias=True, inner_bias=True,
        tied=f("tie_word_embeddings", True), activation=f.activation("hidden_act", "gelu_pytorch_tanh"),
    )  # fmt: skip


def _qwen3(f: Fields) -> Options:
    window, used = f("sliding_window", 4096), f("use_sliding_window", False)
    window = window if used else None
    first = f("max_window_layers", 28)

    def layers(n: int, d_k: int) -> tuple[Kind, ...]:
        local = _local(f, n, lambda i: window is not None and i >= first)
        return tuple(Kind(window if near else None, turn(f, d_k)) for near in local)

    return _llama(f, "qwen3", layers=layers, head_norms=True, d_k=128)


def _gemma(f: Fields, family: str, pattern: int, bases: tuple[float, float], **more: Any) -> Options:
    """Gemma 2 and 3: norms on both sides, layers with and without a window in turns."""
    window = f("sliding_window", 4096)
    f("hidden_act", None)  # older files have both, and hidden_activation counts

    def layers(n: int, d_k: int) -> tuple[Kind, ...]:
        local = _local(f, n, lambda i: (i + 1) % pattern != 0)
        return tuple(
            Kind(window, turn(f, d_k, "sliding_attention", bases[0])) if near
            else Kind(None, turn(f, d_k, "full_attention", bases[1]))
            for near in local
        )  # fmt: skip

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
    newer, older = f("_sliding_window_pattern", None), f("sliding_window_pattern", None)
    return _gemma(f, "gemma3_text", newer or older or 6, (10_000.0, 1_000_000.0), head_norms=True)


def _gpt_oss(f: Fields) -> Options:
    window = f("sliding_window", 128)
    if "rope_scaling" not in f.given:
        f("rope_parameters")  # its default is one model's yarn

    def layers(n: int, d_k: int) -> tuple[Kind, ...]:
        local = _local(f, n, lambda i: i % 2 == 0)
        return tuple(Kind(window if near else None, turn(f, d_k, base=150_000.0)) for near in local)

    return _llama(
        f,
        "gpt_oss",
        layers=layers,
        d_k=64,
        sinks=True,
        bias=f("attention_bias", True),
        eps=f("rms_norm_eps", 1e-5),
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
    "qwen3": _qwen3,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gpt_oss": _gpt_oss,
    "starcoder2": _starcoder2,
}


def turn(f: Fields, d: int, kind: str | None = None, base: float = 10_000.0) -> Turn:
    """Rotary positions of heads of width d, as a config says it: new files have `rope_parameters`, for each
    kind of layer or for all; older ones `rope_theta` and `rope_scaling`, and Gemma 3 `rope_local_base_freq`.

    Raises ValueError for a scaling that is not supported, and for a field of it that is missing or not known.
    """
    newer, theta = f("rope_parameters", None), f("rope_theta", None)
    given, local = f("rope_scaling", None) or {}, f("rope_local_base_freq", None)
    if newer is not None:
        given = newer.get(kind, newer)
    elif kind == "sliding_attention" and f.reader == "gemma3_text":
        theta, given = local, {}
    name = given.get("rope_type") or given.get("type") or "default"
    if name not in SCALINGS:
        raise ValueError(f"config.json: rope_type is {name!r}; supported are {', '.join(SCALINGS)}")
    s = Fields(given, f"rotary position of the kind {name!r}")
    s("rope_type", None), s("type", None)
    base = float(s("rope_theta", None) or theta or base)
    if s("partial_rotary_factor", None) not in (None, 1):
        raise ValueError(
            "config.json: partial_rotary_factor: turns of a part of the columns are not supported"
        )
    told = f"rotary, base {base:,.0f}"
    if name == "default":
        return Turn(tuple(frequencies(d, base=base).tolist()), told=told)
    found, stretch, factor = SCALINGS[name](s, f, d, base)
    if unknown := s.unread():
        raise ValueError(
            f"config.json: {name} positions have the field {next(iter(unknown))!r}, which is not known here"
        )
    return Turn(tuple(found.tolist()), stretch, f"{told}, {name} × {factor:g}")


def _linear(s: Fields, f: Fields, d: int, base: float) -> tuple[Tensor, float, float]:
    factor = s("factor")
    return scalings.linear(d, factor, base=base), 1.0, factor


def _llama3(s: Fields, f: Fields, d: int, base: float) -> tuple[Tensor, float, float]:
    factor, context = s("factor"), s("original_max_position_embeddings")
    ends = {"fast": s("high_freq_factor"), "slow": s("low_freq_factor")}
    return scalings.llama3(d, factor, context, base=base, **ends), 1.0, factor


def _yarn(s: Fields, f: Fields, d: int, base: float) -> tuple[Tensor, float, float]:
    context = s("original_max_position_embeddings")
    factor = s("factor", None) or f("max_position_embeddings") / context
    ends = {"fast": s("beta_fast", None) or 32, "slow": s("beta_slow", None) or 1}
    found = scalings.yarn(d, factor, context, base=base, whole=s("truncate", True), **ends)
    stretch, over, under = s("attention_factor", None), s("mscale", None), s("mscale_all_dim", None)
    if not stretch:
        stretch = scalings.yarn_stretch(factor)
        if over and under:
            stretch = scalings.yarn_stretch(factor, over) / scalings.yarn_stretch(factor, under)
    return found, stretch, factor


SCALINGS = {"default": None, "linear": _linear, "yarn": _yarn, "llama3": _llama3}


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
