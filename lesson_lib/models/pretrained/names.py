"""What each family calls its tensors. Left stands our name, right theirs; `*` is the number of the layer, and
a pair of modules stands for its weight and its bias.

A `Renamed` tensor is not ours as it lies in the file: rows of a fused one, transposed, or with 1 added. Only
the last is arithmetic, and it is not done in the file's dtype.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Renamed(NamedTuple):
    """A tensor's name in a published file, and the transformation that makes ours of it; `rows` says which
    rows of a fused one are ours, if ours has so many."""

    name: str
    how: Callable[[Tensor], Tensor]
    rows: Callable[[int], slice] | None = None


def as_it_lies(x: Tensor) -> Tensor:
    """The tensor of the file itself."""
    return x


def _part(i: int) -> Callable[[Tensor], Tensor]:
    """Part i of queries, keys and values that lie side by side in one tensor whose columns are outputs."""
    return lambda x: _transposed(x).chunk(3)[i]


def _transposed(x: Tensor) -> Tensor:
    return x.mT if x.ndim > 1 else x


def _and_one(x: Tensor) -> Tensor:
    """1 + x in float64, whatever the file's dtype is: bfloat16 has no number between 1 and 1.0078."""
    return 1 + x.double()


GPT2 = {
    "embedding.table": "wte.weight",
    "embedding.positions": "wpe.weight",
    "layers.*.before.0": "h.*.ln_1",
    "layers.*.before.1": "h.*.ln_2",
    "layers.*.attention.w_query": Renamed("h.*.attn.c_attn", _part(0)),
    "layers.*.attention.w_key": Renamed("h.*.attn.c_attn", _part(1)),
    "layers.*.attention.w_value": Renamed("h.*.attn.c_attn", _part(2)),
    "layers.*.attention.w_output": Renamed("h.*.attn.c_proj", _transposed),
    "layers.*.feed_forward.w_in": Renamed("h.*.mlp.c_fc", _transposed),
    "layers.*.feed_forward.w_out": Renamed("h.*.mlp.c_proj", _transposed),
    "norm": "ln_f",
    "read_out.table": "lm_head.weight",
}
BERT = {
    "embedding.table": "embeddings.word_embeddings.weight",
    "embedding.positions": "embeddings.position_embeddings.weight",
    "embedding.kinds": "embeddings.token_type_embeddings.weight",
    "embedding.norm": "embeddings.LayerNorm",
    "layers.*.attention.w_query": "encoder.layer.*.attention.self.query",
    "layers.*.attention.w_key": "encoder.layer.*.attention.self.key",
    "layers.*.attention.w_value": "encoder.layer.*.attention.self.value",
    "layers.*.attention.w_output": "encoder.layer.*.attention.output.dense",
    "layers.*.behind.0": "encoder.layer.*.attention.output.LayerNorm",
    "layers.*.feed_forward.w_in": "encoder.layer.*.intermediate.dense",
    "layers.*.feed_forward.w_out": "encoder.layer.*.output.dense",
    "layers.*.behind.1": "encoder.layer.*.output.LayerNorm",
    "read_out.dense": "cls.predictions.transform.dense",
    "read_out.norm": "cls.predictions.transform.LayerNorm",
    "read_out.bias": "cls.predictions.bias",
    "read_out.table": "cls.predictions.decoder.weight",
}
VIT = {
    "embedding.cut": "embeddings.patch_embeddings.projection",
    "embedding.first": "embeddings.cls_token",
    "embedding.positions": "embeddings.position_embeddings",
    "layers.*.before.0": "encoder.layer.*.layernorm_before",
    "layers.*.before.1": "encoder.layer.*.layernorm_after",
    "layers.*.attention.w_query": "encoder.layer.*.attention.attention.query",
    "layers.*.attention.w_key": "encoder.layer.*.attention.attention.key",
    "layers.*.attention.w_value": "encoder.layer.*.attention.attention.value",
    "layers.*.attention.w_output": "encoder.layer.*.attention.output.dense",
    "layers.*.feed_forward.w_in": "encoder.layer.*.intermediate.dense",
    "layers.*.feed_forward.w_out": "encoder.layer.*.output.dense",
    "norm": "layernorm",
    "read_out.linear": "classifier",
}
LLAMA = {
    "embedding.table": "embed_tokens.weight",
    "layers.*.before.0": "layers.*.input_layernorm",
    "layers.*.before.1": "layers.*.post_attention_layernorm",
    "layers.*.attention.w_query": "layers.*.self_attn.q_proj",
    "layers.*.attention.w_key": "layers.*.self_attn.k_proj",
    "layers.*.attention.w_value": "layers.*.self_attn.v_proj",
    "layers.*.attention.w_output": "layers.*.self_attn.o_proj",
    "layers.*.feed_forward.w_gate": "layers.*.mlp.gate_proj",
    "layers.*.feed_forward.w_in": "layers.*.mlp.up_proj",
    "layers.*.feed_forward.w_out": "layers.*.mlp.down_proj",
    "norm": "norm",
    "read_out.table": "lm_head.weight",
}
STARCODER2 = LLAMA | {
    "layers.*.feed_forward.w_in": "layers.*.mlp.c_fc",
    "layers.*.feed_forward.w_out": "layers.*.mlp.c_proj",
}
# queries, keys and values, or a gate and what it lets pass, are rows of one tensor
PHI3 = LLAMA | {
    "layers.*.attention.w_query": Renamed("layers.*.self_attn.qkv_proj", as_it_lies, lambda n: slice(n)),
    "layers.*.attention.w_key": Renamed(
        "layers.*.self_attn.qkv_proj", as_it_lies, lambda n: slice(-2 * n, -n)
    ),
    "layers.*.attention.w_value": Renamed(
        "layers.*.self_attn.qkv_proj", as_it_lies, lambda n: slice(-n, None)
    ),
    "layers.*.feed_forward.w_gate": Renamed("layers.*.mlp.gate_up_proj", as_it_lies, lambda n: slice(n)),
    "layers.*.feed_forward.w_in": Renamed("layers.*.mlp.gate_up_proj", as_it_lies, lambda n: slice(-n, None)),
}
QWEN3 = LLAMA | {
    "layers.*.attention.query_norm": "layers.*.self_attn.q_norm",
    "layers.*.attention.key_norm": "layers.*.self_attn.k_norm",
}
OLMO2 = {name: given for name, given in QWEN3.items() if ".before." not in name} | {
    "layers.*.after.0": "layers.*.post_attention_layernorm",
    "layers.*.after.1": "layers.*.post_feedforward_layernorm",
}
# the files hold what is added to 1
GEMMA2 = LLAMA | {
    "layers.*.before.0": Renamed("layers.*.input_layernorm", _and_one),
    "layers.*.after.0": Renamed("layers.*.post_attention_layernorm", _and_one),
    "layers.*.before.1": Renamed("layers.*.pre_feedforward_layernorm", _and_one),
    "layers.*.after.1": Renamed("layers.*.post_feedforward_layernorm", _and_one),
    "norm": Renamed("norm", _and_one),
}
GEMMA3 = GEMMA2 | {
    "layers.*.attention.query_norm": Renamed("layers.*.self_attn.q_norm", _and_one),
    "layers.*.attention.key_norm": Renamed("layers.*.self_attn.k_norm", _and_one),
}
# gates and what they let pass alternate, column by column
GPT_OSS = LLAMA | {
    "layers.*.attention.attention.sinks": "layers.*.self_attn.sinks",
    "layers.*.feed_forward.router": "layers.*.mlp.router",
    "layers.*.feed_forward.w_gate": Renamed("layers.*.mlp.experts.gate_up_proj", lambda x: x[..., ::2]),
    "layers.*.feed_forward.b_gate": Renamed("layers.*.mlp.experts.gate_up_proj_bias", lambda x: x[..., ::2]),
    "layers.*.feed_forward.w_in": Renamed("layers.*.mlp.experts.gate_up_proj", lambda x: x[..., 1::2]),
    "layers.*.feed_forward.b_in": Renamed("layers.*.mlp.experts.gate_up_proj_bias", lambda x: x[..., 1::2]),
    "layers.*.feed_forward.w_out": "layers.*.mlp.experts.down_proj",
    "layers.*.feed_forward.b_out": "layers.*.mlp.experts.down_proj_bias",
}


class Family(NamedTuple):
    """How a family's files are read. `prefix` may stand before every name; `copies` are saved twice in some
    files, and must be equal; `constants` are no weights; `left` are other read-outs, which are not
    opened."""

    names: dict[str, str | Renamed]
    prefix: str
    copies: dict[str, str]
    constants: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


LM_HEAD = {"lm_head.weight": "embed_tokens.weight"}
MASKS = ("h.*.attn.bias", "h.*.attn.masked_bias")
TURNED = ("layers.*.self_attn.rotary_emb.inv_freq",)
FAMILIES = {
    "gpt2": Family(
        GPT2, "transformer.", {"lm_head.weight": "wte.weight"}, ("h.*.attn.bias", "h.*.attn.masked_bias")
    ),
    "bert": Family(
        BERT,
        "bert.",
        {
            "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
            "cls.predictions.decoder.bias": "cls.predictions.bias",
        },
        ("embeddings.position_ids",),
        ("pooler.", "cls.seq_relationship."),
    ),
    "vit": Family(VIT, "vit.", {}, left=("pooler.",)),
    "llama": Family(LLAMA, "model.", LM_HEAD, TURNED),
    "mistral": Family(LLAMA, "model.", LM_HEAD, TURNED),
    "ministral3": Family(LLAMA, "model.", LM_HEAD),
    "qwen2": Family(LLAMA, "model.", LM_HEAD, TURNED),
    "qwen3": Family(QWEN3, "model.", LM_HEAD),
    "smollm3": Family(LLAMA, "model.", LM_HEAD),
    "granite": Family(LLAMA, "model.", LM_HEAD),
    "phi3": Family(PHI3, "model.", LM_HEAD),
    "olmo2": Family(OLMO2, "model.", LM_HEAD),
    "olmo3": Family(OLMO2, "model.", LM_HEAD),
    "gemma2": Family(GEMMA2, "model.", LM_HEAD),
    "gemma3_text": Family(GEMMA3, "model.", LM_HEAD),
    "gpt_oss": Family(GPT_OSS, "model.", LM_HEAD),
    "starcoder2": Family(STARCODER2, "model.", LM_HEAD),
}


def theirs(our_name: str, names: dict[str, str | Renamed]) -> Renamed:
    """Their name of one of our tensors, and how it is made from theirs.

    >>> theirs("layers.3.attention.w_key.bias", LLAMA).name
    'layers.3.self_attn.k_proj.bias'
    """
    parts = our_name.split(".")
    number = parts[1] if parts[0] == "layers" else ""
    starred = ".".join(["layers", "*", *parts[2:]]) if number else our_name
    stem, _, last = starred.rpartition(".")
    found, suffix = (names[starred], "") if starred in names else (names[stem], f".{last}")
    made = found if isinstance(found, Renamed) else Renamed(found, as_it_lies)
    return made._replace(name=made.name.replace("*", number) + suffix)
