"""Second problems of chapter 06: another convention, other sizes, and inputs that catch a mistake."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.blocks import standardize
from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.inputs import drawn, table

Map = Callable[[Tensor], Tensor]


def encoder_layer_2(
    x: Float[Tensor, "b n d_model"],
    attention,  # a function: attention(query, key, value)
    feed_forward,  # a function: feed_forward(x)
    norm,  # a function: norm(x), the only one
) -> Float[Tensor, "b n d_model"]:
    y = norm(x)
    return x + attention(y, y, y) + feed_forward(y)


def decoder_layer_2(
    x: Float[Tensor, "b n d_model"],
    memory: Float[Tensor, "b m d_model"],
    attention,  # a function: attention(query, key, value), causal
    cross_attention,  # a function: cross_attention(query, key, value)
    feed_forward,  # a function: feed_forward(x)
    norms: tuple,  # of three functions: norm(x)
) -> Float[Tensor, "b n d_model"]:
    y = norms[0](x)
    x = x + attention(y, y, y)
    x = x + cross_attention(norms[1](x), memory, memory)
    return x + feed_forward(norms[2](x))


def _halved(x: Tensor) -> Tensor:
    return x / 2


def _tripled(x: Tensor) -> Tensor:
    return 3 * x


def _standard(x: Tensor) -> Tensor:
    return standardize(x, -1, 1e-5)


def _shifted(x: Tensor) -> Tensor:
    return standardize(x, -1, 1e-5) * 2 + 1


def _third(x: Tensor) -> Tensor:
    return standardize(x, -1, 1e-5) / 3 - 1


def _mean_value(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Every query gets the mean of all values."""
    return value.mean(-2, keepdim=True).expand_as(query)


def _telling(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Which of the three is which shows in the result."""
    return 0.5 * query + 2.0 * key.mean(-2, keepdim=True) - value.max(-2, keepdim=True).values


def _parallel(x: Tensor, feed_forward: Map = torch.tanh, norm: Map = _standard, look: Any = _telling) -> Case:
    return {"x": x, "attention": look, "feed_forward": feed_forward, "norm": norm}


def _right_parallel(x: Tensor, attention: Any, feed_forward: Map, norm: Map) -> Tensor:
    inner = norm(x)
    return feed_forward(inner) + attention(inner, inner, inner) + x


PARALLEL = Write(
    name="encoder_layer_2",
    title="Side by side",
    asked=(
        "GPT-J and the first PaLM compute both sub-layers at once: one norm, then x + attention + feed_forward,"
        " both of the normed x"
    ),
    stages=(
        Stage(
            "one token 8; attention gives the mean value, feed_forward triples, the norm halves",
            lambda: [_parallel(table([[[8.0]]]), _tripled, _halved, _mean_value)],
            "8 + 4 + 12 = 24.",
        ),
        Stage(
            "three tokens",
            lambda: [_parallel(drawn(1, 1, 3, 4))],
            "Both sub-layers read the same normed x, and both are added to x as it came.",
        ),
    ),
    hints=(
        "How often is the norm called?",
        "What does feed_forward read: the sum, or what attention reads?",
        "Three terms are added. Which of them has met no norm?",
    ),
    solution=encoder_layer_2,
    reference=_right_parallel,
    remember="side by side: one norm, one sum, and both products can run at once",
    slips={
        "feed_forward reads x after the attention was added: that is one after the other": (
            "    return x + attention(y, y, y) + feed_forward(y)",
            "    x = x + attention(y, y, y)\n    return x + feed_forward(norm(x))",
        ),
        "the normed x is added; add x as it came": ("return x +", "return y +"),
        "feed_forward reads x without the norm": ("feed_forward(y)", "feed_forward(x)"),
        "attention reads x without the norm": ("attention(y, y, y)", "attention(x, x, x)"),
        "the norm stands around the sum: that is post-norm": (
            "    y = norm(x)\n    return x + attention(y, y, y) + feed_forward(y)",
            "    return norm(x + attention(x, x, x) + feed_forward(x))",
        ),
        "x itself is missing from the sum": ("return x + attention", "return attention"),
    },
    hidden=lambda drawn: [_parallel(drawn(3, 2, 7, 5), torch.sin, _third)],
)


def _pre(x: Tensor, memory: Tensor, norms: tuple, feed_forward: Map = torch.tanh) -> Case:
    return {
        "x": x, "memory": memory, "attention": _telling, "cross_attention": _telling,
        "feed_forward": feed_forward, "norms": norms,
    }  # fmt: skip


def _right_pre(
    x: Tensor, memory: Tensor, attention: Any, cross_attention: Any, feed_forward: Map, norms: tuple
) -> Tensor:
    first, second, third = norms
    inner = attention(first(x), first(x), first(x)) + x
    inner = cross_attention(second(inner), memory, memory) + inner
    return feed_forward(third(inner)) + inner


PRE_NORM = Write(
    name="decoder_layer_2",
    title="The decoder layer, pre-norm",
    asked=(
        "the same three sub-layers with each norm inside its branch: x + sublayer(norm(x)); the memory comes"
        " normed already"
    ),
    stages=(
        Stage(
            "one token 8, a memory of one row 4; attentions give the mean value; norms halve",
            lambda: [
                _pre(table([[[8.0]]]), table([[[4.0]]]), (_halved,) * 3, _tripled)
                | {"attention": _mean_value, "cross_attention": _mean_value}
            ],
            "8 + 4 = 12; 12 + 4 = 16; 16 + 3 * 8 = 40.",
        ),
        Stage(
            "three tokens, a memory of five",
            lambda: [_pre(drawn(1, 1, 3, 4), drawn(2, 1, 5, 4), (_standard, _shifted, _third))],
            "Each sub-layer reads norm(x); what it makes is added to x as it was.",
        ),
    ),
    hints=(
        "Which three inputs of the first attention meet the first norm?",
        "The cross-attention reads two tables. Which of them is normed here?",
        "Has x itself, as it is handed from sum to sum, met any norm?",
    ),
    solution=decoder_layer_2,
    reference=_right_pre,
    remember="in a pre-norm decoder the query is normed in the layer; the memory once, behind the encoder",
    slips={
        "this is post-norm still": (
            "    y = norms[0](x)\n    x = x + attention(y, y, y)\n"
            "    x = x + cross_attention(norms[1](x), memory, memory)\n"
            "    return x + feed_forward(norms[2](x))",
            "    x = norms[0](x + attention(x, x, x))\n"
            "    x = norms[1](x + cross_attention(x, memory, memory))\n"
            "    return norms[2](x + feed_forward(x))",
        ),
        "you norm the memory as well; it comes normed": (
            "norms[1](x), memory, memory",
            "norms[1](x), norms[1](memory), norms[1](memory)",
        ),
        "only the first attention's query is normed; key and value are the same tokens": (
            "attention(y, y, y)",
            "attention(y, x, x)",
        ),
        "the norm replaces x on its way: keep x, and norm what the sub-layer reads": (
            "    y = norms[0](x)\n    x = x + attention(y, y, y)",
            "    x = norms[0](x)\n    x = x + attention(x, x, x)",
        ),
        "the cross-attention's query meets no norm": (
            "cross_attention(norms[1](x), memory",
            "cross_attention(x, memory",
        ),
        "feed_forward reads x without its norm": ("feed_forward(norms[2](x))", "feed_forward(x)"),
        "the line of the cross-attention is missing": (
            "    x = x + cross_attention(norms[1](x), memory, memory)\n",
            "",
        ),
    },
    hidden=lambda drawn: [
        _pre(drawn(3, 3, 5, 7), drawn(4, 3, 11, 7), (_third, _standard, _shifted), torch.sin)
    ],
)


def encoder_layer(first: Write, n: int) -> Exercise:
    """Both sub-layers side by side."""
    return PARALLEL


def decoder_layer(first: Write, n: int) -> Exercise:
    """The same layer, pre-norm."""
    return PRE_NORM
