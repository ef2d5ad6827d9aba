"""What of the questions in 06a_layer.md is code."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib.chapters.c06_transformer.questions.exercises import halved, shifted, standard, third, tripled
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def encoder_layer(x, attention, feed_forward, norms):
    x = norms[0](x + attention(x, x, x))
    return norms[1](x + feed_forward(x))


def decoder_layer(x, memory, attention, cross_attention, feed_forward, norms):
    y = norms[0](x)
    x = x + attention(y, y, y)
    x = x + cross_attention(norms[1](x), memory, memory)
    return x + feed_forward(norms[2](x))


Map = Callable[[Tensor], Tensor]


def _less_one(x: Tensor) -> Tensor:
    return x - 1


def _squared(x: Tensor) -> Tensor:
    return x**2


def _past(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Each token gets the mean of those up to it."""
    count = torch.arange(1, value.shape[-2] + 1, device=value.device)[:, None]
    return value.cumsum(-2) / count + 0.25 * query - 0.5 * key.flip(-1)


class _Torchs:
    """An attention of a torch layer; `layer` is the whole, which knows what the result must be."""

    def __init__(self, layer: nn.Module, part: nn.MultiheadAttention, hidden: Tensor | None) -> None:
        self.layer, self.part, self.hidden = layer, part, hidden

    def __call__(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return self.part(query, key, value, attn_mask=self.hidden, need_weights=False)[0]


def _fixed(layer: nn.Module, seed: int) -> nn.Module:
    """The layer with drawn weights, norms included, for use only."""
    for k, parameter in enumerate(layer.parameters()):
        parameter.requires_grad_(False).copy_(drawn(seed + k, *parameter.shape, spread=0.4))
    return layer.eval()


def _ahead(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool, device="cpu").triu(1)


def _torch_encoder() -> Case:
    layer = _fixed(nn.TransformerEncoderLayer(6, 2, 10, batch_first=True), 100)
    return {
        "x": drawn(90, 2, 5, 6),
        "attention": _Torchs(layer, layer.self_attn, None),
        "feed_forward": lambda x: layer.linear2(layer.linear1(x).relu()),
        "norms": (layer.norm1, layer.norm2),
    }


def _torch_decoder() -> Case:
    layer = _fixed(nn.TransformerDecoderLayer(6, 2, 10, batch_first=True, norm_first=True), 200)
    return {
        "x": drawn(91, 2, 5, 6),
        "memory": drawn(92, 2, 7, 6),
        "attention": _Torchs(layer, layer.self_attn, _ahead(5)),
        "cross_attention": _Torchs(layer, layer.multihead_attn, None),
        "feed_forward": lambda x: layer.linear2(layer.linear1(x).relu()),
        "norms": (layer.norm1, layer.norm2, layer.norm3),
    }


def _right_encoder(x: Tensor, attention: Any, feed_forward: Map, norms: tuple) -> Tensor:
    """torch's own answer where the parts are torch's."""
    if isinstance(attention, _Torchs):
        return attention.layer(x)
    first, second = norms
    inner = first(attention(x, x, x) + x)
    return second(feed_forward(inner) + inner)


def _right_decoder(
    x: Tensor, memory: Tensor, attention: Any, cross_attention: Any, feed_forward: Map, norms: tuple
) -> Tensor:
    if isinstance(attention, _Torchs):
        return attention.layer(x, memory, tgt_mask=attention.hidden)
    first, second, third = norms
    inner = attention(first(x), first(x), first(x)) + x
    inner = cross_attention(second(inner), memory, memory) + inner
    return feed_forward(third(inner)) + inner


def _encoder_case(x: Tensor, attention: Any, feed_forward: Map, norms: tuple) -> Case:
    return {"x": x, "attention": attention, "feed_forward": feed_forward, "norms": norms}


def _decoder_case(x: Tensor, memory: Tensor, norms: tuple, feed_forward: Map = torch.tanh) -> Case:
    return {
        "x": x, "memory": memory, "attention": _past, "cross_attention": telling,
        "feed_forward": feed_forward, "norms": norms,
    }  # fmt: skip


def _more_encoder_layer(drawn: Draw) -> list[Case]:
    return [_encoder_case(drawn(1, 3, 7, 5), telling, torch.sin, (shifted, third))]


def _more_decoder_layer(drawn: Draw) -> list[Case]:
    norms = (third, standard, shifted)
    return [_decoder_case(drawn(1, 3, 5, 7), drawn(2, 3, 11, 7), norms, torch.sin)]


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
    x = norms[0](x + attention(x, x, x))
    x = norms[1](x + cross_attention(x, memory, memory))
    return norms[2](x + feed_forward(x))


def mean_value(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Every query gets the mean of all values."""
    return value.mean(-2, keepdim=True).expand_as(query)


def telling(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Which of the three is which shows in the result."""
    return 0.5 * query + 2.0 * key.mean(-2, keepdim=True) - value.max(-2, keepdim=True).values


def _parallel(x: Tensor, feed_forward: Map = torch.tanh, norm: Map = standard, look: Any = telling) -> Case:
    return {"x": x, "attention": look, "feed_forward": feed_forward, "norm": norm}


def _right_parallel(x: Tensor, attention: Any, feed_forward: Map, norm: Map) -> Tensor:
    inner = norm(x)
    return feed_forward(inner) + attention(inner, inner, inner) + x


def _post(x: Tensor, memory: Tensor, norms: tuple, feed_forward: Map = torch.tanh) -> Case:
    return {
        "x": x, "memory": memory, "attention": telling, "cross_attention": telling,
        "feed_forward": feed_forward, "norms": norms,
    }  # fmt: skip


def _right_post(
    x: Tensor, memory: Tensor, attention: Any, cross_attention: Any, feed_forward: Map, norms: tuple
) -> Tensor:
    first, second, third = norms
    inner = first(attention(x, x, x) + x)
    inner = second(cross_attention(inner, memory, memory) + inner)
    return third(feed_forward(inner) + inner)


CODE = {
    "encoder_layer": Code(
        solution=encoder_layer,
        cases=(
            lambda: [_encoder_case(table([[[8.0]]]), mean_value, _less_one, (halved, halved))],
            lambda: [_encoder_case(table([[[8.0]]]), mean_value, tripled, (_squared, halved))],
            lambda: [_encoder_case(drawn(1, 1, 3, 4), telling, torch.tanh, (standard, shifted))],
            lambda: [_torch_encoder()],
        ),
        reference=_right_encoder,
        hidden=_more_encoder_layer,
    ),
    "encoder_layer_2": Code(
        solution=encoder_layer_2,
        cases=(
            lambda: [_parallel(table([[[8.0]]]), tripled, halved, mean_value)],
            lambda: [_parallel(drawn(1, 1, 3, 4))],
        ),
        reference=_right_parallel,
        hidden=lambda drawn: [_parallel(drawn(3, 2, 7, 5), torch.sin, third)],
    ),
    "decoder_layer": Code(
        solution=decoder_layer,
        cases=(
            lambda: [
                {
                    "x": table([[[8.0]]]),
                    "memory": table([[[4.0]]]),
                    "attention": mean_value,
                    "cross_attention": mean_value,
                    "feed_forward": tripled,
                    "norms": (halved,) * 3,
                }
            ],
            lambda: [
                _decoder_case(drawn(1, 1, 3, 4), drawn(2, 1, 5, 4), (standard, shifted, third)),
                _decoder_case(drawn(3, 1, 3, 4), drawn(4, 1, 3, 4), (standard, shifted, third)),
            ],
            lambda: [_torch_decoder()],
        ),
        reference=_right_decoder,
        hidden=_more_decoder_layer,
    ),
    "decoder_layer_2": Code(
        solution=decoder_layer_2,
        cases=(
            lambda: [
                _post(table([[[8.0]]]), table([[[4.0]]]), (halved,) * 3, tripled)
                | {"attention": mean_value, "cross_attention": mean_value}
            ],
            lambda: [_post(drawn(1, 1, 3, 4), drawn(2, 1, 5, 4), (standard, shifted, third))],
        ),
        reference=_right_post,
        hidden=lambda drawn: [
            _post(drawn(3, 3, 5, 7), drawn(4, 3, 11, 7), (third, standard, shifted), torch.sin)
        ],
    ),
}
