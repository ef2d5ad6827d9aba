"""Exercise "which line is wrong?": one layer of a model of today, five wrong lines, no error message."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code
from lesson_lib.masks import causal
from lesson_lib.positions import rotary


def logits_of(
    tokens: Int[Tensor, "n"],
    table: Float[Tensor, "n_tokens d"],
    gains: Float[Tensor, "two d"],
    w_query: Float[Tensor, "h_dk d"],
    w_key: Float[Tensor, "g_dk d"],
    w_value: Float[Tensor, "g_dk d"],
    w_output: Float[Tensor, "d h_dk"],
    head_gains: Float[Tensor, "two d_k"],
    window: int,
) -> Float[Tensor, "n n_tokens"]:
    n, d, d_k = len(tokens), table.shape[1], head_gains.shape[1]

    def norm(x, gain):
        return F.rms_norm(x, x.shape[-1:], 1 + gain)

    def heads(x, w):
        return (x @ w.mT).unflatten(-1, (-1, d_k)).transpose(0, 1)

    def turn(x):
        return rotary(x, pairing="half-split")

    x = table[tokens] * d**0.5
    inner = norm(x, gains[0])
    q, k, v = heads(inner, w_query), heads(inner, w_key), heads(inner, w_value)
    q, k = turn(norm(q, head_gains[0])), turn(norm(k, head_gains[1]))
    shared = len(q) // len(k)
    k, v = (part.repeat_interleave(shared, 0) for part in (k, v))
    i = torch.arange(n)
    back = i[:, None] - i
    seen = (back >= 0) & (back < window)
    out = attend(q, k, v, mask=seen).output
    x = x + out.transpose(0, 1).flatten(1) @ w_output.mT
    return norm(x, gains[1]) @ table.mT


def _head_by_head(
    tokens: Tensor, table: Tensor, gains: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor,
    w_output: Tensor, head_gains: Tensor, window: int,
) -> Tensor:  # fmt: skip
    def norm(x: Tensor, gain: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).sqrt() * (1 + gain)

    d_k, shared = head_gains.shape[1], len(w_query) // len(w_key)
    x = table[tokens] * table.shape[1] ** 0.5
    inner = norm(x, gains[0])
    for i in range(len(w_query) // d_k):
        own, others = slice(i * d_k, (i + 1) * d_k), slice(i // shared * d_k, (i // shared + 1) * d_k)
        q, k = norm(inner @ w_query[own].mT, head_gains[0]), norm(inner @ w_key[others].mT, head_gains[1])
        q, k = (rotary(part, pairing="half-split") for part in (q, k))
        mask = causal(len(tokens), window=window)
        x = x + attend(q, k, inner @ w_value[others].mT, mask=mask).output @ w_output[:, own].mT
    return norm(x, gains[1]) @ table.mT


def _case(
    seed: int, n: int, *, h: int = 2, g: int = 2, d: int = 4, d_k: int = 4, window: int = 99,
    gain: float = 1.0, n_tokens: int = 7, draw: Draw = drawn,
) -> Case:  # fmt: skip
    """Weights of about the size that a trained layer has; `gain` 0 leaves all gains of heads alike."""
    tokens = (draw(seed, n) * 10).long() % n_tokens
    head_gains = gain * draw(seed + 7, 2, d_k) + 1.0
    return {
        "tokens": tokens, "table": draw(seed + 1, n_tokens, d), "gains": 0.5 * draw(seed + 2, 2, d),
        "w_query": draw(seed + 3, h * d_k, d), "w_key": draw(seed + 4, g * d_k, d),
        "w_value": draw(seed + 5, g * d_k, d), "w_output": draw(seed + 6, d, h * d_k),
        "head_gains": head_gains, "window": window,
    }  # fmt: skip


GROUPS = ("part.repeat_interleave(shared, 0)", "part.repeat(shared, 1, 1)")
WINDOW = ("back < window", "back <= window")


CODE = {
    "logits_of": Code(
        solution=logits_of,
        cases=(
            lambda: [_case(1, 1)],
            lambda: [_case(11, 1, h=4)],
            lambda: [_case(21, 4, gain=0.0), _case(31, 5, h=4, gain=0.0)],
            lambda: [_case(41, 4), _case(51, 6, h=4, d=6, d_k=2)],
            lambda: [_case(61, 7, window=3), _case(71, 6, h=6, g=2, window=1)],
        ),
        reference=_head_by_head,
        hidden=lambda draw: [
            _case(81, 6, h=4, d=6, window=2, draw=draw),
            _case(91, 5, h=3, g=1, window=4, draw=draw),
        ],
    ),
}
