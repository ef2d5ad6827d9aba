"""What part 06a asks: four predictions, and two layers that the learner writes."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib.chapters.c06_transformer import seconds
from lesson_lib.chapters.c06_transformer.seconds import (
    halved,
    mean_value,
    shifted,
    standard,
    telling,
    third,
    tripled,
)
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number

PART = "06a_layer"

alike = Choice(
    name="alike",
    notebook=PART,
    title="Three mixtures",
    asked="Behind three random attentions in a row: how do the eight rows point?",
    options={
        "a": "each its own way, as before",
        "b": "nearly all the same way",
        "c": "in opposite ways, in two groups",
    },
    answer="b",
    remember="mixtures of mixtures are alike",
    slips={
        "each output mixes all eight values: what they share stays, what differs shrinks": "a",
        "a mixture of all eight moves towards the others, never away from them": "c",
    },
)

standard_token = Number(
    name="standard_token",
    notebook=PART,
    title="A norm by hand",
    asked="The token (1, 3, 5, 7): what does its first number become?",
    answer="-3 / sqrt(5)",
    value=-3 / 5**0.5,
    tolerance=0.02,
    remember="mean 4; squares 9, 1, 1, 9; variance 20 / 4 = 5; -3 / 2.236 = -1.34",
    slips={
        "that is the distance from the mean; divide it by the root of the variance": "-3",
        "you divided by the variance; take its root": "-3 / 5",
        "you divided the sum of squares by 3; the norm divides by the count, 4": "-3 / sqrt(20 / 3)",
        "mind the sign: 1 lies below the mean": "3 / sqrt(5)",
        "subtract the mean, 4, first; you divided 1 by the root of the mean square, 21": "1 / sqrt(21)",
    },
)

attention_share = Choice(
    name="attention_share",
    notebook=PART,
    title="Who owns the numbers?",
    asked="d_model = 512, d_inner = 2048: which share of an encoder layer's weights is attention's?",
    options={"a": "a third", "b": "a half", "c": "nearly all"},
    answer="a",
    remember="4 matrices of 512 x 512 against 2 of 512 x 2048: 4 to 8",
    slips={
        "count in blocks of 512 x 512: four in attention; and how many are 2 * 512 * 2048?": "b",
        "the plain network is wide: count its two matrices": "c",
    },
)

twelve_layers = Choice(
    name="twelve_layers",
    notebook=PART,
    title="Twelve layers, 400 steps",
    asked="The tagger with twelve layers, after 400 steps: where must the norm stand for it to learn?",
    options={"a": "either way", "b": "behind the sum", "c": "before the sub-layer", "d": "neither learns"},
    answer="c",
    remember="with the norm before the sub-layer, the sum runs from end to end untouched",
    slips={
        "behind the sum, 24 norms rescale the stream and its gradients: how large may a step be?": "a",
        "that is the published one, of six layers, trained far longer": "b",
        "one of them leaves a clear way from the last layer to the first": "d",
    },
)


def encoder_layer(
    x: Float[Tensor, "b n d_model"],
    attention,  # a function: attention(query, key, value)
    feed_forward,  # a function: feed_forward(x)
    norms: tuple,  # of two functions: norm(x)
) -> Float[Tensor, "b n d_model"]:
    x = norms[0](x + attention(x, x, x))
    return norms[1](x + feed_forward(x))


def decoder_layer(
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
    layer = _fixed(nn.TransformerDecoderLayer(6, 2, 10, batch_first=True), 200)
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
    inner = first(attention(x, x, x) + x)
    inner = second(cross_attention(inner, memory, memory) + inner)
    return third(feed_forward(inner) + inner)


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


write_encoder_layer = Write(
    name="encoder_layer",
    notebook=PART,
    second=lambda n: seconds.encoder_layer(write_encoder_layer, n),
    title="An encoder layer",
    stars=1,
    minutes=5,
    why="two lines, and a stack of twelve is BERT",
    asked="attention, then feed_forward; around each: norm(x + sublayer(x)), with norms[0], then norms[1]",
    stages=(
        Stage(
            "one token 8; attention gives the mean value, feed_forward takes 1 away, both norms halve",
            lambda: [_encoder_case(table([[[8.0]]]), mean_value, _less_one, (halved, halved))],
            "8 + 8, halved, is 8; 8 + 7, halved, is 7.5.",
        ),
        Stage(
            "the same token; feed_forward triples, the first norm squares, the second halves",
            lambda: [_encoder_case(table([[[8.0]]]), mean_value, tripled, (_squared, halved))],
            "The first sum is 16, squared 256; then 256 + 768, halved: 512.",
        ),
        Stage(
            "three tokens; query, key and value leave different traces",
            lambda: [_encoder_case(drawn(1, 1, 3, 4), telling, torch.tanh, (standard, shifted))],
            "The second sub-layer reads, and adds to, what the first norm has left.",
        ),
        Stage(
            "torch's own parts: the result must be nn.TransformerEncoderLayer's",
            lambda: [_torch_encoder()],
            "torch does the same in its default mode: the sum first, then the norm.",
        ),
    ),
    reference=_right_encoder,
    hints=(
        "Self-attention: what are query, key and value?",
        "What does the feed-forward network read: the first x, or what the first norm has left?",
        "How often is something added, and to what?",
    ),
    solution=encoder_layer,
    hidden=_more_encoder_layer,
    remember="x = norm(x + sublayer(x)), twice: attention between tokens, then a network inside each",
    slips={
        "the residual connections are missing: add x to what each sub-layer makes": (
            "norms[0](x + attention(x, x, x))",
            "norms[0](attention(x, x, x))",
            "norms[1](x + feed_forward(x))",
            "norms[1](feed_forward(x))",
        ),
        "the second residual connection is missing": ("norms[1](x + feed", "norms[1](feed"),
        "the first residual connection is missing": ("norms[0](x + attention", "norms[0](attention"),
        "the norm is inside the branch, around the sub-layer; it belongs around the sum": (
            "norms[0](x + attention(x, x, x))",
            "x + norms[0](attention(x, x, x))",
            "norms[1](x + feed_forward(x))",
            "x + norms[1](feed_forward(x))",
        ),
        "that is pre-norm, which comes later: here the norm stands behind the sum": (
            "norms[0](x + attention(x, x, x))",
            "x + attention(norms[0](x), norms[0](x), norms[0](x))",
            "norms[1](x + feed_forward(x))",
            "x + feed_forward(norms[1](x))",
        ),
        "the norms have changed places": (
            "norms[0]",
            "norms[2]",
            "norms[1]",
            "norms[0]",
            "norms[2]",
            "norms[1]",
        ),
        "the feed-forward network reads the first x; let it read what the first norm has left": (
            "x = norms[0](x + attention(x, x, x))",
            "y = norms[0](x + attention(x, x, x))",
            "norms[1](x + feed_forward(x))",
            "norms[1](y + feed_forward(x))",
        ),
        "the second sum adds the first x; add what the first norm has left": (
            "x = norms[0](x + attention(x, x, x))",
            "y = norms[0](x + attention(x, x, x))",
            "norms[1](x + feed_forward(x))",
            "norms[1](x + feed_forward(y))",
        ),
        "the norms are missing": (
            "norms[0](x + attention(x, x, x))",
            "x + attention(x, x, x)",
            "norms[1](x + feed_forward(x))",
            "x + feed_forward(x)",
        ),
        "the first norm is missing": ("norms[0](x + attention(x, x, x))", "x + attention(x, x, x)"),
        "the second norm is missing": ("norms[1](x + feed_forward(x))", "x + feed_forward(x)"),
        "the feed-forward network comes first; attention comes first": (
            "norms[0](x + attention(x, x, x))",
            "norms[0](x + feed_forward(x))",
            "norms[1](x + feed_forward(x))",
            "norms[1](x + attention(x, x, x))",
        ),
        "the feed-forward network is missing": ("return norms[1](x + feed_forward(x))", "return x"),
    },
)

write_decoder_layer = Write(
    name="decoder_layer",
    notebook=PART,
    second=lambda n: seconds.decoder_layer(write_decoder_layer, n),
    title="A decoder layer",
    stars=2,
    minutes=6,
    why="one line more than the encoder's; six of these wrote the first Transformer's translations",
    asked=(
        "its own attention, then attention to the encoder's memory, then feed_forward; each as"
        " norm(x + sublayer(x))"
    ),
    stages=(
        Stage(
            "one token 8, a memory of one row 4; attentions give the mean value; all norms halve",
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
            "(8 + 8) / 2 = 8; then (8 + 4) / 2 = 6; then (6 + 18) / 2 = 12.",
        ),
        Stage(
            "three tokens, a memory of five; query, key and value leave different traces",
            lambda: [
                _decoder_case(drawn(1, 1, 3, 4), drawn(2, 1, 5, 4), (standard, shifted, third)),
                _decoder_case(drawn(3, 1, 3, 4), drawn(4, 1, 3, 4), (standard, shifted, third)),
            ],
            "Who asks stands in x; what is looked at, keys and values, is the memory.",
        ),
        Stage(
            "torch's own parts: the result must be nn.TransformerDecoderLayer's",
            lambda: [_torch_decoder()],
            "torch does the same three lines.",
        ),
    ),
    reference=_right_decoder,
    hints=(
        "You have the first and the last line from the encoder layer. Which norm has the last one now?",
        "A written character asks, the input answers: which of the two is the query?",
        "Keys and values: both from the same table. From which?",
    ),
    solution=decoder_layer,
    hidden=_more_decoder_layer,
    remember="queries from the decoder, keys and values from the memory",
    slips={
        "query and memory have changed places: the decoder asks, the memory answers": (
            "cross_attention(x, memory, memory)",
            "cross_attention(memory, x, x)",
        ),
        "the values come from x; the memory gives keys AND values": (
            "cross_attention(x, memory, memory)",
            "cross_attention(x, memory, x)",
        ),
        "the keys come from x; the memory gives keys AND values": (
            "cross_attention(x, memory, memory)",
            "cross_attention(x, x, memory)",
        ),
        "the cross-attention reads x alone: it never sees the memory": (
            "cross_attention(x, memory, memory)",
            "cross_attention(x, x, x)",
        ),
        "the line of the cross-attention is missing": (
            "    x = norms[1](x + cross_attention(x, memory, memory))\n",
            "",
        ),
        "the decoder looks at the memory before its own tokens; its own attention comes first": (
            "norms[0](x + attention(x, x, x))",
            "norms[0](x + cross_attention(x, memory, memory))",
            "norms[1](x + cross_attention(x, memory, memory))",
            "norms[1](x + attention(x, x, x))",
        ),
        "the residual connection around the cross-attention is missing": (
            "norms[1](x + cross_attention",
            "norms[1](cross_attention",
        ),
        "the residual connection around its own attention is missing": (
            "norms[0](x + attention",
            "norms[0](attention",
        ),
        "the residual connection around the feed-forward network is missing": (
            "norms[2](x + feed_forward",
            "norms[2](feed_forward",
        ),
        "no residual connection is there: add x to what each sub-layer makes": (
            "x + attention",
            "attention",
            "x + cross_attention",
            "cross_attention",
            "x + feed_forward",
            "feed_forward",
        ),
        "you add the memory; the sum is x plus what the sub-layer makes": (
            "x + cross_attention(x, memory, memory)",
            "memory.mean(-2, keepdim=True) + cross_attention(x, memory, memory)",
        ),
        "that is pre-norm: here the norm stands behind the sum": (
            "norms[0](x + attention(x, x, x))",
            "x + attention(norms[0](x), norms[0](x), norms[0](x))",
            "norms[1](x + cross_attention(x, memory, memory))",
            "x + cross_attention(norms[1](x), memory, memory)",
            "norms[2](x + feed_forward(x))",
            "x + feed_forward(norms[2](x))",
        ),
        "norms[1] is used twice, and norms[2] not at all": ("norms[2]", "norms[1]"),
        "the feed-forward network comes before the cross-attention; it comes last": (
            "norms[1](x + cross_attention(x, memory, memory))",
            "norms[1](x + feed_forward(x))",
            "norms[2](x + feed_forward(x))",
            "norms[2](x + cross_attention(x, memory, memory))",
        ),
        "the cross-attention asks with the layer's input; it must ask with what the first norm has left": (
            "x = norms[0](",
            "own = norms[0](",
            "norms[1](x +",
            "norms[1](own +",
        ),
        "the memory asks itself; the decoder asks, the memory answers": (
            "cross_attention(x, memory, memory)",
            "cross_attention(memory, memory, memory)",
        ),
        "the memory asks and is compared, the values come from x: queries come from x alone": (
            "cross_attention(x, memory, memory)",
            "cross_attention(memory, memory, x)",
        ),
        "query and keys have changed places: x asks, the memory gives keys and values": (
            "cross_attention(x, memory, memory)",
            "cross_attention(memory, x, memory)",
        ),
    },
)

ASKED = (
    alike,
    write_encoder_layer,
    attention_share,
    standard_token,
    write_decoder_layer,
    twelve_layers,
)
