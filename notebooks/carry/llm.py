"""A language model of today in plain torch and safetensors: one file to copy into a project. MIT licence.

    attend                  softmax(q k / sqrt(d)) v: shared keys, a window, sinks
    rotary                  turns queries and keys by their positions; `frequencies` says how fast
    Cache                   keys and values of one layer; of a window, no more than it needs
    LLM                     tokens (b, n) -> logits (b, n, vocabulary), whole or in pieces with caches
    read_config, open_model a folder with config.json and safetensors: Llama, Mistral, Qwen2, Qwen3, SmolLM3
    write                   the tokens that follow, the likeliest or drawn
    python llm.py FOLDER "Once upon a time"     writes on (needs the package tokenizers)
    python llm.py           saves a small model with new weights, opens it, and compares ways to write

Modules are called as in published files, so a file's tensors fit without a table of names. What a config.json
may say and this file does not compute is refused: a field that is skipped in silence is a wrong model.
"""

import json
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn


@dataclass
class Config:
    """What a model is. For each layer: `windows` (tokens that one may look at, itself among them; None: all
    before), `turned` (whether it has rotary positions)."""

    vocabulary: int
    d_model: int
    d_inner: int
    n_heads: int
    n_key_heads: int
    d_head: int
    frequencies: torch.Tensor
    windows: list
    turned: list
    eps: float = 1e-6
    biases: tuple = (False, False, False)  # of queries, keys and values; of the output; of the network
    head_norms: bool = False
    tied: bool = False


def frequencies(d, base=10_000.0, scaling=None):
    """Radians per position (d / 2,) of each pair of columns. `scaling` is config.json's, for longer texts."""
    found = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if kind == "linear":
        return found / scaling["factor"]
    if kind == "llama3":  # slow turns are stretched, fast ones stay, those between are mixed
        turns = scaling["original_max_position_embeddings"] * found / (2 * math.pi)
        slow, fast = scaling["low_freq_factor"], scaling["high_freq_factor"]
        stays = ((turns - slow) / (fast - slow)).clamp(0, 1)
        return stays * found + (1 - stays) * found / scaling["factor"]
    if kind != "default":
        raise ValueError(f"positions of the kind {kind!r} are not computed here; default, linear, llama3 are")
    return found


def rotary(x, start, frequencies):
    """Turn x (b, h, n, d), whose first row is at position `start`. Column j and column j + d/2 are a pair."""
    positions = torch.arange(start, start + x.shape[-2], dtype=torch.float64, device=x.device)
    angles = positions[:, None] * frequencies.to(x.device)  # (n, d / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    one, two = x.chunk(2, -1)
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)


def attend(q, k, v, window=None, sinks=None):
    """Causal attention of the last n tokens, q (b, h, n, d), to all m, k and v (b, h_k, m, d).
    Neighbouring heads of queries share a head of keys. A window counts the token itself. Each head's sink
    (h,) is the score of one more key, whose value is 0."""
    n, m = q.shape[-2], k.shape[-2]
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    ago = torch.arange(m - n, m, device=q.device)[:, None] - torch.arange(m, device=q.device)
    may = (ago >= 0) if window is None else (ago >= 0) & (ago < window)
    if sinks is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=may)
    hidden = torch.zeros(n, m, dtype=q.dtype, device=q.device).masked_fill(~may, -torch.inf)
    bias = torch.cat((hidden.expand(len(sinks), n, m), sinks[:, None, None].expand(-1, n, 1)), -1)
    return F.scaled_dot_product_attention(q, F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1)), attn_mask=bias)


class Cache:
    """Keys and values (b, h_k, m, d) of one layer, already turned; `seen` counts all tokens so far."""

    def __init__(self, window=None):
        self.window, self.seen, self.kept = window, 0, None

    def add(self, k, v):
        """Those to look at now; with a window all but the last window - 1 are forgotten afterwards."""
        if self.kept is not None:
            k, v = torch.cat((self.kept[0], k), -2), torch.cat((self.kept[1], v), -2)
        first = 0 if self.window is None else max(0, k.shape[-2] - self.window + 1)
        self.kept = k[..., first:, :], v[..., first:, :]
        return k, v


class Attention(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.d, self.frequencies = c.d_head, c.frequencies if c.turned[i] else None
        self.window = c.windows[i]
        inside, outside, _ = c.biases
        self.q_proj = nn.Linear(c.d_model, c.n_heads * c.d_head, bias=inside)
        self.k_proj = nn.Linear(c.d_model, c.n_key_heads * c.d_head, bias=inside)
        self.v_proj = nn.Linear(c.d_model, c.n_key_heads * c.d_head, bias=inside)
        self.o_proj = nn.Linear(c.n_heads * c.d_head, c.d_model, bias=outside)
        if c.head_norms:  # QK-norm: of each head, before it is turned
            self.q_norm, self.k_norm = (nn.RMSNorm(c.d_head, eps=c.eps) for _ in range(2))

    def forward(self, x, cache=None):
        parts = (project(x) for project in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = (part.unflatten(-1, (-1, self.d)).transpose(1, 2) for part in parts)  # (b, h, n, d)
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        if self.frequencies is not None:
            start = 0 if cache is None else cache.seen
            q, k = rotary(q, start, self.frequencies), rotary(k, start, self.frequencies)
        if cache is not None:
            cache.seen += x.shape[1]
            k, v = cache.add(k, v)
        return self.o_proj(attend(q, k, v, self.window).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """One linear map says how much of the other passes."""

    def __init__(self, c):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(c.d_model, c.d_inner, bias=c.biases[2]) for _ in range(2))
        self.down_proj = nn.Linear(c.d_inner, c.d_model, bias=c.biases[2])

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.self_attn, self.mlp = Attention(c, i), MLP(c)
        self.input_layernorm = nn.RMSNorm(c.d_model, eps=c.eps)
        self.post_attention_layernorm = nn.RMSNorm(c.d_model, eps=c.eps)  # before the MLP, whatever its name

    def forward(self, x, cache=None):
        x = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class LLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.config, self.model = c, nn.Module()
        self.model.embed_tokens = nn.Embedding(c.vocabulary, c.d_model)
        self.model.layers = nn.ModuleList(Layer(c, i) for i in range(len(c.windows)))
        self.model.norm = nn.RMSNorm(c.d_model, eps=c.eps)
        self.lm_head = nn.Linear(c.d_model, c.vocabulary, bias=False)

    def caches(self):
        return [Cache(window) for window in self.config.windows]

    def forward(self, tokens, caches=None):
        """With `caches`, tokens are the new ones only."""
        x = self.model.embed_tokens(tokens)
        for layer, cache in zip(self.model.layers, caches or [None] * len(self.model.layers), strict=True):
            x = layer(x, cache)
        return self.lm_head(self.model.norm(x))


FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "smollm3")


def read_config(given):
    """The Config of a config.json, a dictionary. Older files say rope_theta and rope_scaling, newer ones
    rope_parameters; which layers have a window says layer_types, or else a rule of the family."""
    family, n = given.get("model_type"), given["num_hidden_layers"]
    if family not in FAMILIES:
        raise ValueError(f"model_type is {family!r}; this file opens {', '.join(FAMILIES)}")
    usual = {"quantization_config": None, "hidden_act": "silu", "partial_rotary_factor": 1.0}
    for name, only in usual.items():
        if given.get(name, only) != only:
            raise ValueError(f"{name} is {given[name]!r}; this file computes {only!r} only")
    d, h = given["hidden_size"], given["num_attention_heads"]
    d_head = given.get("head_dim") or (128 if family == "qwen3" else d // h)
    scaling = given.get("rope_parameters") or given.get("rope_scaling") or {}
    base = scaling.get("rope_theta") or given.get("rope_theta")
    base = base or (2_000_000.0 if family == "smollm3" else 10_000.0)

    window = given.get("sliding_window", 4096 if family == "mistral" else None)
    if family in ("qwen2", "qwen3", "smollm3") and not given.get("use_sliding_window", False):
        window = None
    window = None if family == "llama" else window
    every = given.get("no_rope_layer_interval", 4)
    turned = given.get("no_rope_layers") or [(i + 1) % every != 0 for i in range(n)]
    turned = [bool(turns) for turns in turned] if family == "smollm3" else [True] * n
    near = {
        "smollm3": [not turns for turns in turned],
        "qwen2": [i >= given.get("max_window_layers", 28) for i in range(n)],
        "qwen3": [i >= given.get("max_window_layers", 28) for i in range(n)],
    }.get(family, [True] * n)
    if given.get("layer_types"):
        if other := set(given["layer_types"]) - {"sliding_attention", "full_attention"}:
            raise ValueError(f"layer_types has {other}; this file computes sliding_attention, full_attention")
        near = [kind == "sliding_attention" for kind in given["layer_types"]]

    bias = given.get("attention_bias", False)
    return Config(
        given["vocab_size"], d, given["intermediate_size"], h, given.get("num_key_value_heads") or h, d_head,
        frequencies(d_head, base, scaling), [window if one else None for one in near], turned,
        eps=given.get("rms_norm_eps", 1e-6), head_norms=family == "qwen3",
        biases=(bias or family == "qwen2", bias, given.get("mlp_bias", False)),
        tied=given.get("tie_word_embeddings", family == "smollm3"),
    )  # fmt: skip


def open_model(folder, dtype=torch.float32):
    """The LLM of a folder with config.json and *.safetensors (one file, or shards), computing in `dtype`.
    Every tensor of the files has its place in the model, and every one of the model is in the files."""
    folder = Path(folder)
    config = read_config(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    files, tensors = sorted(folder.glob("*.safetensors")), {}
    if not files:
        raise FileNotFoundError(f"{folder} has no .safetensors")
    for file in files:
        # old files store the speeds of rotary's clocks, inv_freq; they are computed here
        tensors |= {name: x.to(dtype) for name, x in load_file(file).items() if "inv_freq" not in name}
    if config.tied:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    with torch.device("meta"):  # without weights of its own
        model = LLM(config)
    model.load_state_dict(tensors, assign=True)  # an error names what is missing, and what has no place
    return model.eval()


@torch.no_grad()
def write(model, tokens, length, temperature=0.0, generator=None, ends=()):
    """The tokens that follow tokens (n,), at most `length`: the likeliest, or drawn at a temperature; the
    first of `ends` is the last. Each new token costs one row, since the caches keep the others."""
    caches, new, made = model.caches(), tokens[None], []
    while len(made) < length and not (made and made[-1] in ends):
        logits = model(new, caches)[0, -1]
        if temperature:
            made.append(int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)))
        else:
            made.append(int(logits.argmax()))
        new = tokens.new_tensor([[made[-1]]])
    return made


def main(folder=None, text="Once upon a time", length=60):
    if folder is not None:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        tokens = torch.tensor(tokenizer.encode(text).ids)
        print(text + tokenizer.decode(write(open_model(folder, torch.bfloat16), tokens, length)))
        return
    small = {
        "model_type": "qwen3", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
        "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 2,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "config.json").write_text(json.dumps(small))
        torch.manual_seed(0)
        save_file(LLM(read_config(small)).state_dict(), Path(place) / "model.safetensors")
        model = open_model(place)
    start = torch.arange(5)
    made = write(model, start, length)
    whole, caches = model(torch.tensor([[*start, *made]])), model.caches()
    parts = torch.cat([model(part, caches) for part in torch.tensor([[*start, *made]]).split(7, 1)], 1)
    print(f"in pieces with caches and at once: apart by {(parts - whole).abs().max():.1e}")
    print("the same without caches:", whole.argmax(-1)[0, 4:-1].tolist() == made)
    print("tokens that each layer keeps:", [cache.kept[0].shape[-2] for cache in caches])


if __name__ == "__main__":
    main(*sys.argv[1:])
