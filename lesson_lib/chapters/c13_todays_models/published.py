"""Six models that others have published, by what their config.json says of attention: what `options` reads,
and nothing that is as wide as the feed-forward network or the vocabulary alone.

Sources: the config.json of each model on the hub, and its report: arXiv:2407.21783 (Llama 3.1), 2310.06825
(Mistral 7B), 2505.09388 (Qwen3), 2408.00118 (Gemma 2), 2503.19786 (Gemma 3), 2508.10925 (gpt-oss).
"""

from functools import cache
from typing import Any

from lesson_lib.models.pretrained import Options, options

_COMMON = {"hidden_act": "silu", "rms_norm_eps": 1e-5}
_GEMMA = {"hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6}
_LONG_LLAMA = {
    "rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
_YARN = {
    "rope_type": "yarn", "rope_theta": 150_000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
    "truncate": False, "original_max_position_embeddings": 4096,
}  # fmt: skip


def _config(kind: str, layers: int, width: int, heads: int, shared: int, head: int, **more: Any) -> dict:
    return {
        "model_type": kind, "num_hidden_layers": layers, "hidden_size": width,
        "num_attention_heads": heads, "num_key_value_heads": shared, "head_dim": head, **more,
    }  # fmt: skip


CONFIGS: dict[str, dict[str, Any]] = {
    "Llama 3.1 8B": _config(
        "llama", 32, 4096, 32, 8, 128, intermediate_size=14336, vocab_size=128256,
        rope_parameters=_LONG_LLAMA, **_COMMON,
    ),
    "Mistral 7B v0.1": _config(
        "mistral", 32, 4096, 32, 8, 128, intermediate_size=14336, vocab_size=32000, sliding_window=4096,
        **_COMMON,
    ),
    "Qwen3 8B": _config(
        "qwen3", 36, 4096, 32, 8, 128, intermediate_size=12288, vocab_size=151936, rope_theta=1e6,
        **_COMMON | {"rms_norm_eps": 1e-6},
    ),
    "Gemma 2 2B": _config(
        "gemma2", 26, 2304, 8, 4, 256, intermediate_size=9216, vocab_size=256000, sliding_window=4096,
        attn_logit_softcapping=50.0, final_logit_softcapping=30.0, query_pre_attn_scalar=256, **_GEMMA,
    ),
    "Gemma 3 27B": _config(
        "gemma3_text", 62, 5376, 32, 16, 128, intermediate_size=21504, vocab_size=262208,
        sliding_window=1024, sliding_window_pattern=6, query_pre_attn_scalar=168, rope_theta=1e6,
        rope_local_base_freq=10_000.0, rope_scaling={"rope_type": "linear", "factor": 8.0}, **_GEMMA,
    ),
    "gpt-oss 20B": _config(
        "gpt_oss", 24, 2880, 64, 8, 64, intermediate_size=2880, vocab_size=201088, sliding_window=128,
        num_local_experts=32, num_experts_per_tok=4, rope_parameters=_YARN, **_COMMON,
    ),
}  # fmt: skip


@cache
def read(name: str) -> Options:
    """What `models.pretrained` makes of that model's config.json."""
    return options(CONFIGS[name])
