"""DeepSeek V3, ModernBERT and T5 around `attend`, from the tensors of a folder: what differs from a Llama or
a BERT is all that stands here. Each takes the tensors by their published names and the fields of
config.json."""

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib.attention import Attended, attend
from lesson_lib.heads import Cache, merge_heads, split_heads
from lesson_lib.latent import LatentAttention
from lesson_lib.masks import causal, window
from lesson_lib.positions import rotary
from lesson_lib.scores import dot

Tensors = dict[str, Tensor]


def linear(tensors: Tensors, name: str, x: Tensor) -> Tensor:
    return F.linear(x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))


def rms(tensors: Tensors, name: str, x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], tensors[f"{name}.weight"], 1e-6)


class DeepSeek:
    """Llama with latent keys; pairs of neighbouring columns turn, as in our `rotary`. Dense layers only."""

    def __init__(self, tensors: Tensors, config: dict[str, Any]) -> None:
        self.tensors, self.layers = tensors, []
        h, d_k, d_v = config["num_attention_heads"], config["qk_nope_head_dim"], config["v_head_dim"]
        for i in range(config["num_hidden_layers"]):
            attention = LatentAttention(
                config["hidden_size"], h, d_k=d_k, d_turned=config["qk_rope_head_dim"], d_v=d_v,
                d_latent=config["kv_lora_rank"], d_query=config["q_lora_rank"],
                rotate=partial(rotary, base=config["rope_parameters"]["rope_theta"]),
                norm=partial(nn.RMSNorm, eps=1e-6),
            )  # fmt: skip
            own = {
                name.removeprefix(f"model.layers.{i}.self_attn."): x
                for name, x in tensors.items()
                if name.startswith(f"model.layers.{i}.self_attn.")
            }
            down = own["kv_a_proj_with_mqa.weight"].split(
                [config["kv_lora_rank"], config["qk_rope_head_dim"]]
            )
            up = own["kv_b_proj.weight"].unflatten(0, (h, d_k + d_v)).split([d_k, d_v], 1)
            attention.load_state_dict({
                "w_query_latent.weight": own["q_a_proj.weight"],
                "query_norm.weight": own["q_a_layernorm.weight"], "w_query.weight": own["q_b_proj.weight"],
                "w_latent.weight": down[0], "w_turned.weight": down[1],
                "norm.weight": own["kv_a_layernorm.weight"], "w_key.weight": up[0].flatten(0, 1),
                "w_value.weight": up[1].flatten(0, 1), "w_output.weight": own["o_proj.weight"],
            })  # fmt: skip
            self.layers.append(attention)

    def __call__(self, tokens: Tensor, caches: list[Cache] | None = None, absorbed: bool = False) -> Any:
        t, tables, n = self.tensors, [], tokens.shape[1]
        x = t["model.embed_tokens.weight"][tokens]
        for i, attention in enumerate(self.layers):
            name, cache = f"model.layers.{i}.", caches[i] if caches else None
            mask = causal(n + (0 if cache is None else len(cache)), queries=n)
            y = rms(t, name + "input_layernorm", x)
            attended = attention(y, mask=mask, cache=cache, absorbed=absorbed)
            x, y = x + attended.output, None
            y = rms(t, name + "post_attention_layernorm", x)
            gate, passed = linear(t, name + "mlp.gate_proj", y), linear(t, name + "mlp.up_proj", y)
            x = x + linear(t, name + "mlp.down_proj", F.silu(gate) * passed)
            tables.append(attended.weights)
        return linear(t, "lm_head", rms(t, "model.norm", x)), tables


class ModernBert:
    """BERT with rotary positions, two bases and windows to both sides, gated networks, norms before the
    sub-layers (none before the first). `radius` and `swapped` are for mistakes."""

    def __init__(self, tensors: Tensors, config: dict[str, Any]) -> None:
        self.tensors, self.config = tensors, config
        self.radius, self.swapped = config["local_attention"] // 2, False

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight = self.tensors.get(f"{name}.weight")
        return x if weight is None else F.layer_norm(x, x.shape[-1:], weight, None, self.config["norm_eps"])

    def __call__(self, tokens: Tensor) -> Any:
        t, c, tables, n = self.tensors, self.config, [], tokens.shape[1]
        table = t["model.embeddings.tok_embeddings.weight"]
        x = self._norm("model.embeddings.norm", table[tokens])
        for i, kind in enumerate(c["layer_types"]):
            name, base = f"model.layers.{i}.", c["rope_parameters"][kind]["rope_theta"]
            turn = partial(rotary, base=base, pairing="half-split")
            qkv = linear(t, name + "attn.Wqkv", self._norm(name + "attn_norm", x)).chunk(3, -1)
            q, k, v = (split_heads(part, c["num_attention_heads"]) for part in qkv)
            mask = window(n, self.radius) if kind == "sliding_attention" else None
            attended = attend(turn(q), turn(k), v, mask=mask)
            x = x + linear(t, name + "attn.Wo", merge_heads(attended.output))
            gate, passed = linear(t, name + "mlp.Wi", self._norm(name + "mlp_norm", x)).chunk(2, -1)
            gate, passed = (passed, gate) if self.swapped else (gate, passed)
            x = x + linear(t, name + "mlp.Wo", F.gelu(gate) * passed)
            tables.append(attended.weights)
        x = self._norm("model.final_norm", x)
        x = self._norm("head.norm", F.gelu(linear(t, "head.dense", x)))
        return F.linear(x, table, t["decoder.bias"]), tables


class T5:
    """Encoder and decoder without biases or scale; positions are a learned number for each range of
    distances, the same in all layers. `logit_scale` is for a mistake."""

    def __init__(self, tensors: Tensors, config: dict[str, Any]) -> None:
        self.tensors, self.config = tensors, config
        self.logit_scale = config["d_model"] ** -0.5 if config["scale_decoder_outputs"] else 1.0

    def __call__(self, source: Tensor, target: Tensor) -> Any:
        memory, tables = self._stack("encoder", source, None)
        x, more = self._stack("decoder", target, memory)
        table = self.tensors.get("lm_head.weight", self.tensors["shared.weight"])
        return F.linear(x * self.logit_scale, table), tables + more

    def _stack(self, name: str, tokens: Tensor, memory: Tensor | None) -> Any:
        t, n, tables = self.tensors, tokens.shape[1], []
        rows = t[f"{name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        distance = torch.arange(n) - torch.arange(n)[:, None]
        bias = rows[self._range(distance, len(rows), memory is None)].movedim(-1, 0)
        mask = None if memory is None else causal(n)
        x = t["shared.weight"][tokens]
        layers = self.config["num_layers" if memory is None else "num_decoder_layers"]
        for i in range(layers):
            at = f"{name}.block.{i}.layer."
            y = rms(t, at + "0.layer_norm", x)
            attended = self._attend(at + "0.SelfAttention", y, y, score_bias=bias[None], mask=mask)
            x, number = x + attended.output, 1
            tables.append(attended.weights)
            if memory is not None:
                y = rms(t, at + "1.layer_norm", x)
                x, number = x + self._attend(at + "1.EncDecAttention", y, memory).output, 2
            y = rms(t, f"{at}{number}.layer_norm", x)
            x = x + self._network(f"{at}{number}.DenseReluDense", y)
        return rms(t, f"{name}.final_layer_norm", x), tables

    def _attend(self, name: str, x: Tensor, source: Tensor, **options: Any) -> Attended:
        t, h = self.tensors, self.config["num_heads"]
        q, k, v = (
            split_heads(linear(t, f"{name}.{part}", y), h)
            for part, y in zip("qkv", (x, source, source), strict=True)
        )
        attended = attend(q, k, v, score=dot, **options)
        return Attended(linear(t, name + ".o", merge_heads(attended.output)), attended.weights)

    def _network(self, name: str, x: Tensor) -> Tensor:
        t = self.tensors
        if f"{name}.wi.weight" in t:
            return linear(t, name + ".wo", linear(t, name + ".wi", x).relu())
        gate = F.gelu(linear(t, name + ".wi_0", x), approximate="tanh")
        return linear(t, name + ".wo", gate * linear(t, name + ".wi_1", x))

    def _range(self, distance: Tensor, count: int, both: bool) -> Tensor:
        """The row of a distance j - i: half of the rows for single distances, the others for ranges that grow
        by a constant factor up to the largest; to both sides, half of them each."""
        count = count // 2 if both else count
        behind = distance.abs() if both else (-distance).clamp(min=0)
        single = count // 2
        growth = math.log(self.config["relative_attention_max_distance"] / single)
        far = single + (behind.clamp(min=1) / single).log().div(growth).mul(count - single).long()
        row = torch.where(behind < single, behind, far.clamp(max=count - 1))
        return row + (count * (distance > 0) if both else 0)
