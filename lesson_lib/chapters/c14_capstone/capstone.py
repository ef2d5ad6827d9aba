"""My own Transformer, in five stages. `make capstone`, or 14_capstone.ipynb, says what passes.

Replace each `...`. Add what you like: functions, classes, imports of torch. Nothing of lesson_lib may be
used in this file. The judge calls these names with these arguments, and copies the weights that are named.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# --- Stage 1: attention (parts 02a, 02b, 03) ---------------------------------------------------------------


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Outputs (..., n, d_v) of queries (..., n, d_k), keys (..., m, d_k) and values (..., m, d_v).

    `mask` is boolean, (n, m) or with leading axes that fit those of the scores; True = may look. A query that
    may look at nothing gets zeros.
    """
    ...


# --- Stage 2: heads (parts 04, 11b) ------------------------------------------------------------------------


class Heads(nn.Module):
    """Attention in several heads: x (b, n, d_model) looks at `memory` (b, m, d_model), or at itself.

    Where there are fewer heads of keys and values, neighbours share: with 4 and 2, heads 0 and 1 look at
    key head 0. `turn`, if given, is applied to queries and keys, (b, heads, n, width of a head). `mask`: as
    in `attention`, without the axis of heads: (n, m), or (b, n, m), where n may be 1.
    """

    def __init__(self, d_model: int, n_heads: int, n_key_heads: int | None = None) -> None:
        super().__init__()
        self.n_heads, self.n_key_heads = n_heads, n_key_heads or n_heads
        width = d_model // n_heads
        self.w_query = nn.Linear(d_model, d_model, bias=False)
        self.w_key = nn.Linear(d_model, self.n_key_heads * width, bias=False)
        self.w_value = nn.Linear(d_model, self.n_key_heads * width, bias=False)
        self.w_output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, memory=None, mask=None, turn=None) -> Tensor:
        """Outputs (b, n, d_model)."""
        ...


# --- Stage 3: positions (parts 05a, 05b, 13c) --------------------------------------------------------------


def sinusoids(n: int, d: int) -> Tensor:
    """The table (n, d) of 2017, on the CPU: row i is sin(i w_0), cos(i w_0), sin(i w_1), cos(i w_1), ...,
    with w_j = 10000 ** (-2j / d)."""
    ...


def rotate(x: Tensor) -> Tensor:
    """Rows of x (..., n, d) turned by their places 0, 1, 2, ...: column j and column j + d/2 are a pair, and
    are turned by place * 10000 ** (-2j / d), as (a cos - b sin, a sin + b cos)."""
    ...


# --- Stage 4: a layer (part 06a) ---------------------------------------------------------------------------


class Layer(nn.Module):
    """One layer, pre-norm: x + own(norm(x)), then, with cross=True, x + cross(norm(x), memory), then x plus
    the feed-forward network, outer(relu(inner(norm(x)))).

    Each sub-layer has a norm of its own, in this order; the memory is taken as it comes.
    """

    def __init__(self, d_model: int, n_heads: int, d_inner: int, cross: bool = False) -> None:
        super().__init__()
        self.own = Heads(d_model, n_heads)
        self.cross = Heads(d_model, n_heads) if cross else None
        self.inner, self.outer = nn.Linear(d_model, d_inner), nn.Linear(d_inner, d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3 if cross else 2))

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,  # of its own look
        memory_mask: Tensor | None = None,  # of the look at the memory
    ) -> Tensor:
        """What x becomes, (b, n, d_model)."""
        ...


# --- Stage 5: a Transformer (part 06b), and a model of today (parts 13a, 13c) ------------------------------


class Translator(nn.Module):
    """Encoder and decoder: logits (b, n, n_signs) of the next sign, from the input and what stands before.

    `source` (b, m) and `before` (b, n) are ids of signs, of one vocabulary; 0 is padding, which nobody may
    look at, and `before` begins with a start sign. Sizes are yours. 850 steps of training, which the judge
    does, must bring it to nine dates of ten (part 06b: two layers on each side, d_model 64, 4 heads, d_inner
    256, and a last norm behind each stack).
    """

    def __init__(self, n_signs: int) -> None:
        super().__init__()
        ...

    def forward(self, source: Tensor, before: Tensor) -> Tensor:
        """Logits (b, n, n_signs)."""
        ...


def logits_of(tokens: Tensor, tensors: dict[str, Tensor], config: dict) -> Tensor:
    """Logits (n, vocabulary) of the model of part 13c for tokens (n), from its file's tensors by their names.

    A layer is x + attention(norm(x)), then x + mlp(norm(x)), without biases, with `rotate` and shared key
    heads; each token looks back only, and at itself. norm is RMSNorm with eps = config["rms_norm_eps"]; mlp
    is down(silu(gate(x)) * up(x)). A last norm, then lm_head. config has num_hidden_layers,
    num_attention_heads and num_key_value_heads.

    Names of tensors, each with .weight after it, and shaped as nn.Linear's (out, in): model.embed_tokens;
    of layer i, after model.layers.i.: input_layernorm, self_attn.q_proj (k_proj, v_proj, o_proj),
    post_attention_layernorm (the norm BEFORE the mlp), mlp.gate_proj (up_proj, down_proj); then model.norm,
    and lm_head.
    """
    ...
