"""Tiny models of `transformers`, with redrawn weights, saved as folders that our opener reads.

Their default weights are so small that attention is uniform and every mistake stays small: here every tensor
is drawn anew, so that scores differ by several units. Nothing is fetched: configurations are written by hand.
"""

import json
import os
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

N_TOKENS, N, WINDOW = 61, 24, 7
DTYPES = (torch.float32, torch.bfloat16, torch.float16)  # of published files
LLAMA = {
    "vocab_size": N_TOKENS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "max_position_embeddings": 64,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
UNNAMED = {name: value for name, value in LLAMA.items() if name != "head_dim"}  # so heads of width 8
TWO_WAYS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
LONGER = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    "llama3": {
        "rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 16, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    },
}  # fmt: skip


def longer(name: str) -> dict[str, Any]:
    return {"rope_parameters": LONGER[name] | {"rope_theta": 100.0}}


# our name: (their class, their configuration)
FOLDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {
        "n_embd": 32, "n_layer": 3, "n_head": 4, "vocab_size": N_TOKENS, "n_positions": 64,
        "bos_token_id": None, "eos_token_id": None,
    }),
    "bert": ("BertForMaskedLM", TWO_WAYS | {"vocab_size": N_TOKENS, "max_position_embeddings": 64}),
    "bert, both read-outs": ("BertForPreTraining", TWO_WAYS | {"vocab_size": N_TOKENS}),
    "vit": ("ViTForImageClassification", TWO_WAYS | {"image_size": 16, "patch_size": 4, "num_labels": 5}),
    "llama": ("LlamaForCausalLM", LLAMA),
    "llama, linear": ("LlamaForCausalLM", LLAMA | longer("linear")),
    "llama, yarn": ("LlamaForCausalLM", LLAMA | longer("yarn")),
    "llama, llama3": ("LlamaForCausalLM", LLAMA | longer("llama3")),
    "mistral": ("MistralForCausalLM", LLAMA | {"sliding_window": WINDOW}),
    "ministral3": ("Ministral3ForCausalLM", LLAMA | {"rope_parameters": {
        "rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 5,
        "max_position_embeddings": 64, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
        "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5,
    }}),
    "qwen2": ("Qwen2ForCausalLM", UNNAMED | {"tie_word_embeddings": True}),
    "qwen2, windows": ("Qwen2ForCausalLM", UNNAMED | {
        "use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1,
    }),
    "smollm3": ("SmolLM3ForCausalLM", UNNAMED | {"no_rope_layer_interval": 2}),
    "smollm3, windows": ("SmolLM3ForCausalLM", UNNAMED | {
        "no_rope_layer_interval": 2, "use_sliding_window": True, "sliding_window": WINDOW,
    }),
    "granite": ("GraniteForCausalLM", UNNAMED | {
        "embedding_multiplier": 3.0, "logits_scaling": 4.0, "residual_multiplier": 0.4,
        "attention_multiplier": 0.2,
    }),
    "phi3": ("Phi3ForCausalLM", UNNAMED | {"sliding_window": WINDOW, "tie_word_embeddings": False}),
    "phi3, part of the columns": ("Phi3ForCausalLM", UNNAMED | {"partial_rotary_factor": 0.75}),
    "olmo2": ("Olmo2ForCausalLM", UNNAMED),
    "olmo3": ("Olmo3ForCausalLM", UNNAMED | {
        "num_hidden_layers": 4, "sliding_window": WINDOW,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            "full_attention": LONGER["yarn"] | {"rope_theta": 100.0},
        },
    }),
    "qwen3": ("Qwen3ForCausalLM", LLAMA | {"sliding_window": None, "tie_word_embeddings": True}),
    "qwen3, windows": ("Qwen3ForCausalLM", LLAMA | {
        "use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1,
    }),
    "gemma2": ("Gemma2ForCausalLM", LLAMA | {
        "sliding_window": WINDOW, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 10.0,
    }),
    "gemma3": ("Gemma3ForCausalLM", LLAMA | {
        "sliding_window": WINDOW, "query_pre_attn_scalar": 12, "sliding_window_pattern": 3,
    }),
    "gpt_oss": ("GptOssForCausalLM", LLAMA | {
        "sliding_window": WINDOW, "num_local_experts": 5, "num_experts_per_tok": 2,
    }),
    "starcoder2": ("Starcoder2ForCausalLM", LLAMA | {"head_dim": None, "sliding_window": WINDOW}),
}  # fmt: skip
TO_READ_ONLY = [name for name, (kind, _) in FOLDERS.items() if not kind.endswith("CausalLM")]


def quiet() -> None:
    """No network is asked, and no progress bar or advice is printed."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def redrawn(model: nn.Module, seed: int = 0) -> nn.Module:
    """All weights drawn anew: matrices somewhat larger than usual, norms around 1 (or around 0, where 1 is
    added), biases and sinks of about 1."""
    generator = torch.Generator("cpu").manual_seed(seed)
    with torch.no_grad():
        for name, x in model.named_parameters():
            drawn = torch.randn(x.shape, generator=generator, device="cpu")
            if x.ndim >= 2:
                rows_are_inputs = "c_" in name or "gate_up" in name or ("down_proj" in name and x.ndim == 3)
                fan = x.shape[-2] if rows_are_inputs else x.shape[-1]
                x.copy_(1.4 * drawn * fan**-0.5)
            elif "norm" in name.lower() or "ln_" in name:
                x.copy_(x + 0.3 * drawn)
            else:
                x.copy_(drawn)
    return model


@cache
def reference(name: str, dtype: torch.dtype = torch.float32) -> nn.Module:
    """Their model of that name in float32, in eval mode, attention computed by the plain formula; its weights
    are numbers of that dtype."""
    quiet()
    import transformers

    kind, config = FOLDERS[name]
    model_class = getattr(transformers, kind)
    given = model_class.config_class(
        **{k: v for k, v in config.items() if v is not None or k not in ("head_dim",)}
    )
    given._attn_implementation = "eager"
    with torch.device("cpu"):
        made = redrawn(model_class(given)).eval()
    with torch.no_grad():
        for x in made.parameters():
            x.copy_(x.to(dtype))
    return made


def folder(name: str, root: Path, dtype: torch.dtype = torch.float32, **options: Any) -> Path:
    """A folder with that model, as they save it in that dtype."""
    quiet()
    place = root / name.replace(",", "").replace(" ", "-")
    deepcopy(reference(name, dtype)).to(dtype).save_pretrained(place, **options)
    return place


def changed(place: Path, **fields: Any) -> Path:
    """The folder with other fields in its config.json; None takes one out."""
    path = place / "config.json"
    config = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return place


def inputs(name: str, n: int = N, batch: int = 2, seed: int = 1) -> Tensor:
    """Tokens, or images, for that model."""
    generator = torch.Generator("cpu").manual_seed(seed)
    if name == "vit":
        return torch.randn(batch, 3, 16, 16, generator=generator, device="cpu")
    return torch.randint(N_TOKENS, (batch, n), generator=generator, device="cpu")


# --- what is compared ---

OUTPUTS = ("attn.c_proj", "attention.output.dense", "attention.o_proj", "self_attn.o_proj")
PIECES = [5, 1, 1, 9, 8]  # of the 24 tokens, for a cache
ONE_BY_ONE = [1] * N
NOISE = 4e-6  # of the largest number: two orders of float32 additions differ by about half of that


def apart(ours: Tensor, theirs: Tensor, top: float) -> float:
    """The largest difference, as a share of `top`."""
    assert ours.shape == theirs.shape, (tuple(ours.shape), tuple(theirs.shape))
    return float((ours.cpu() - theirs).abs().max()) / top


def beyond_noise(found: dict[str, float]) -> dict[str, float]:
    """Which rows of `compared` are no noise; token by token, sums are made in quite another order."""
    return {what: x for what, x in found.items() if x >= NOISE * (2 if what == "one by one" else 1)}


def logits_of(output: Any) -> Tensor:
    return output.logits if hasattr(output, "logits") else output.prediction_logits


@torch.no_grad()
def answers(name: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Their logits, weights and outputs of attention, layer by layer."""
    model, outputs = reference(name, dtype), []
    hooks = [
        module.register_forward_hook(lambda _module, _given, made: outputs.append(made))
        for at, module in model.named_modules()
        if at.endswith(OUTPUTS)
    ]
    told = model(inputs(name), output_attentions=True)
    for hook in hooks:
        hook.remove()
    return logits_of(told), list(told.attentions), outputs


@torch.no_grad()
def compared(model: Any, name: str, dtype: torch.dtype = torch.float32) -> dict[str, float]:
    """How far our model is from theirs, whose weights are of that dtype: logits, weights, and logits with a
    cache, in pieces or token by token, as shares of the largest logit; outputs of attention, whose size has
    nothing to do with it, of the largest output."""
    logits, tables, outputs = answers(name, dtype)
    top, made = float(logits.abs().max()), []
    hooks = [
        layer.attention.register_forward_hook(lambda _module, _given, got: made.append(got.output))
        for layer in model.layers
    ]
    x = inputs(name).to(model.layers[0].attention.w_query.weight.device)
    read = model(x, weights=True)
    for hook in hooks:
        hook.remove()
    largest = max(float(x.abs().max()) for x in outputs)
    assert len(made) == len(outputs) == len(tables) == len(model.layers)
    rows = {
        "outputs": max(apart(a, b, largest) for a, b in zip(made, outputs, strict=True)),
        "weights": max(apart(a, b, top) for a, b in zip(read.weights, tables, strict=True)),
        "logits": apart(read.logits, logits, top),
    }
    if model.options.causal:
        for what, pieces in (("cached", PIECES), ("one by one", ONE_BY_ONE)):
            caches = model.caches()
            parts = [model(part, caches=caches).logits for part in x.split(pieces, 1)]
            rows[what] = apart(torch.cat(parts, 1), logits, top)
    return rows


def main() -> None:
    """The table of all families, measured now."""
    import tempfile

    from lesson_lib.models.pretrained import open_model

    print(
        f"largest difference, as a share of the largest number; {N} tokens, pieces of {PIECES} with a cache"
    )
    for name in FOLDERS:
        for dtype in DTYPES:
            with tempfile.TemporaryDirectory() as root:
                found = compared(open_model(folder(name, Path(root), dtype)), name, dtype)
            told = "  ".join(f"{what} {value:.1e}" for what, value in found.items())
            print(f"{name:25}{str(dtype).removeprefix('torch.'):10}{told}")


if __name__ == "__main__":
    main()
