"""Found in the wild, first: three programs that keep what was read, written as such programs are, with
the faults that their users reported. Each stands in one function, so that a check can run it.

Reported: torch's is_causal with fewer queries than keys (pytorch#103082, #108108, #144858); windows with a
cache, of 128 keys or of 129 (rasbt/LLMs-from-scratch#925, karpathy/nanochat#452, transformers#37574). Padding
on the left is as old as generation in batches.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, numbers_made
from lesson_lib.checks.questions import Code
from lesson_lib.masks import causal
from lesson_lib.positions import rotary

GIVEN = "this is still the function as it was given"


# --- a prompt in chunks ---


def read_prompt(
    x: Float[Tensor, "n d"],
    w_qkv: Float[Tensor, "three_d d"],
    w_out: Float[Tensor, "d d"],
    n_heads: int,
    chunk: int,
) -> Float[Tensor, "n d"]:
    class KeyValueCache:
        """Grows with every chunk; the newest tokens are the last."""

        def __init__(self):
            self.keys = self.values = None

        @property
        def length(self):
            return 0 if self.keys is None else self.keys.shape[1]

        def update(self, keys, values):
            if self.keys is not None:
                keys = torch.cat((self.keys, keys), dim=1)
                values = torch.cat((self.values, values), dim=1)
            self.keys, self.values = keys, values
            return keys, values

    def apply_rotary(t, offset):
        half = t.shape[-1] // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = (offset + torch.arange(t.shape[-2]))[:, None] * speed
        cos, sin = angle.cos(), angle.sin()
        a, b = t[..., :half], t[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def split_heads(t):
        return t.unflatten(-1, (n_heads, -1)).transpose(0, 1)

    def attention(part, cache):
        offset = cache.length
        query, key, value = (split_heads(t) for t in (part @ w_qkv.mT).chunk(3, dim=-1))
        query, key = apply_rotary(query, offset), apply_rotary(key, offset)
        key, value = cache.update(key, value)
        n, m = query.shape[1], key.shape[1]
        mask = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return out.transpose(0, 1).flatten(1) @ w_out.mT

    cache = KeyValueCache()
    return torch.cat([attention(part, cache) for part in x.split(chunk)])


def _prompt_at_once(x: Tensor, w_qkv: Tensor, w_out: Tensor, n_heads: int, chunk: int) -> Tensor:
    q, k, v = (t.unflatten(-1, (n_heads, -1)).transpose(0, 1) for t in (x @ w_qkv.mT).chunk(3, -1))
    q, k = (rotary(t, pairing="half-split") for t in (q, k))
    return attend(q, k, v, mask=causal(len(x))).output.transpose(0, 1).flatten(1) @ w_out.mT


def _prompt(seed: int, n: int, d: int, n_heads: int, chunk: int, draw: Draw = drawn) -> Case:
    return {
        "x": draw(seed, n, d), "w_qkv": draw(seed + 1, 3 * d, d), "w_out": draw(seed + 2, d, d),
        "n_heads": n_heads, "chunk": chunk,
    }  # fmt: skip


# --- a window that rolls ---


def read_window(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "d_k d"],
    w_key: Float[Tensor, "d_k d"],
    w_value: Float[Tensor, "d_v d"],
    window: int,
    chunk: int,
) -> Float[Tensor, "n d_v"]:
    class RollingCache:
        """Keeps what the next token can still see: window - 1 tokens."""

        def __init__(self):
            self.key = x.new_zeros(0, len(w_key))
            self.value = x.new_zeros(0, len(w_value))
            self.seen = 0

        def update(self, key, value):
            key = torch.cat((self.key, key))
            value = torch.cat((self.value, value))
            first = max(0, len(key) - (window - 1))
            self.key, self.value = key[first:], value[first:]
            return key, value

    def apply_rotary(t, position):
        half = t.shape[-1] // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = position[:, None] * speed
        cos, sin = angle.cos(), angle.sin()
        a, b = t[:, :half], t[:, half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def attention(part, cache):
        position = cache.seen + torch.arange(len(part))
        query = apply_rotary(part @ w_query.mT, position)
        key = apply_rotary(part @ w_key.mT, position)
        key, value = cache.update(key, part @ w_value.mT)
        cache.seen += len(part)
        key_position = cache.seen - len(key) + torch.arange(len(key))
        distance = position[:, None] - key_position
        mask = (distance >= 0) & (distance < window)
        batch = query[None], key[None], value[None]
        return F.scaled_dot_product_attention(*batch, attn_mask=mask)[0]

    cache = RollingCache()
    return torch.cat([attention(part, cache) for part in x.split(chunk)])


def _window_at_once(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, window: int, chunk: int
) -> Tensor:
    q, k = (rotary(x @ w.mT, pairing="half-split") for w in (w_query, w_key))
    return attend(q, k, x @ w_value.mT, mask=causal(len(x), window=window)).output


def _windowed(seed: int, n: int, window: int, chunk: int, draw: Draw = drawn) -> Case:
    return {
        "x": draw(seed, n, 4), "w_query": draw(seed + 1, 4, 4), "w_key": draw(seed + 2, 4, 4),
        "w_value": draw(seed + 3, 3, 4), "window": window, "chunk": chunk,
    }  # fmt: skip


def _forgets(answer: Callable) -> str | None:
    """The sentence, where twice the text takes far more than twice the numbers, with one window."""

    def work(n: int) -> int:
        case = _windowed(1, n, 4, 8)
        return numbers_made(lambda: answer(*case.values()))

    if work(256) > 3 * work(128):
        return (
            "the rows are right, and nothing is thrown away: twice the tokens take far more than twice the"
            " numbers. What can no later token see?"
        )
    return None


SEEN = ("position = cache.seen +", "position = len(cache.key) +")
KEPT = ("return key, value\n\n    def apply", "return self.key, self.value\n\n    def apply")
WIDE = ("distance < window", "distance <= window")


# --- texts of different lengths, padded on the left ---


def next_logits(
    tokens: Int[Tensor, "b n"],
    table: Float[Tensor, "n_tokens d"],
    weights: Float[Tensor, "layers four d d"],
    pad: int,
) -> Float[Tensor, "b n_tokens"]:
    def apply_rotary(t, position):
        half = t.shape[-1] // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = position[..., None] * speed
        cos, sin = angle.cos(), angle.sin()
        a, b = t[..., :half], t[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def prepare(tokens):
        """Where each token stands in its own text, and who may look at whom."""
        real = tokens != pad
        position = (real.cumsum(-1) - 1).clamp(min=0)
        n = tokens.shape[1]
        past = torch.ones(n, n, dtype=torch.bool).tril()
        return position, past & real[:, None, :]

    def layer(x, w, position, mask):
        query, key, value = (x @ one.mT for one in w[:3])
        query, key = apply_rotary(query, position), apply_rotary(key, position)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        out = torch.where(mask.any(-1, keepdim=True), out, 0.0)
        return x + out @ w[3].mT

    position, mask = prepare(tokens)
    x = table[tokens]
    for w in weights:
        x = layer(x, w, position, mask)
    last = x[:, -1]
    return last @ table.mT


def _text_by_text(tokens: Tensor, table: Tensor, weights: Tensor, pad: int) -> Tensor:
    rows = []
    for text in tokens:
        x = table[text[text != pad]]
        for w in weights:
            q, k, v = (x @ one.mT for one in w[:3])
            q, k = (rotary(t, pairing="half-split") for t in (q, k))
            x = x + attend(q, k, v, mask=causal(len(x))).output @ w[3].mT
        rows.append(x[-1] @ table.mT)
    return torch.stack(rows)


def _texts(seed: int, lengths: list[int], layers: int = 2, d: int = 4, draw: Draw = drawn) -> Case:
    """Texts of these lengths, numbers from 1 on; 0 fills up on the left."""
    n = max(lengths)
    tokens = 1 + (10 * draw(seed, len(lengths), n)).long() % 6
    missing = n - torch.tensor(lengths, device="cpu")
    tokens = tokens * (torch.arange(n, device="cpu") >= missing[:, None])
    return {
        "tokens": tokens, "table": draw(seed + 1, 7, d), "weights": 0.7 * draw(seed + 2, layers, 4, d, d),
        "pad": 0,
    }  # fmt: skip


PLACES = (
    "(real.cumsum(-1) - 1).clamp(min=0)",
    "torch.arange(tokens.shape[1]).expand(tokens.shape)",
)
HIDDEN = ("real[:, None, :]", "~real[:, None, :]")


CODE = {
    "read_prompt": Code(
        solution=read_prompt,
        cases=(
            lambda: [_prompt(1, 3, 4, 2, 3), _prompt(5, 1, 4, 1, 2)],
            lambda: [_prompt(11, 2, 4, 1, 1)],
            lambda: [_prompt(21, 7, 4, 2, 3), _prompt(31, 9, 8, 2, 4)],
        ),
        reference=_prompt_at_once,
        hidden=lambda draw: [_prompt(41, 8, 4, 1, 3, draw), _prompt(51, 5, 8, 4, 2, draw)],
    ),
    "read_window": Code(
        solution=read_window,
        cases=(
            lambda: [_windowed(1, 3, 100, 3)],
            lambda: [_windowed(11, 6, 2, 6)],
            lambda: [_windowed(21, 7, 3, 1), _windowed(31, 5, 1, 1)],
            lambda: [
                _windowed(41, 9, 4, 2),
                _windowed(51, 10, 3, 4),
                _windowed(61, 8, 5, 3),
                {**_windowed(71, 9, 4, 3), "w_value": drawn(79, 4, 4)},
            ],
        ),
        reference=_window_at_once,
        hidden=lambda draw: [_windowed(71, 9, 3, 2, draw), _windowed(81, 7, 2, 3, draw)],
        extra=_forgets,
    ),
    "next_logits": Code(
        solution=next_logits,
        cases=(
            lambda: [_texts(1, [2, 2], layers=1)],
            lambda: [_texts(11, [2, 4], layers=1), _texts(15, [1, 3], layers=1)],
            lambda: [_texts(21, [3, 5, 1]), _texts(31, [4, 2, 6, 6])],
        ),
        reference=_text_by_text,
        hidden=lambda draw: [_texts(41, [2, 5], draw=draw), _texts(51, [3, 1, 4], d=6, draw=draw)],
    ),
}
