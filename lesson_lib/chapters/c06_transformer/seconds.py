"""Second problems of chapter 06: another convention, other sizes, and inputs that catch a mistake."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.blocks import standardize
from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Number, fresh

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


def halved(x: Tensor) -> Tensor:
    return x / 2


def tripled(x: Tensor) -> Tensor:
    return 3 * x


def standard(x: Tensor) -> Tensor:
    return standardize(x, -1, 1e-5)


def shifted(x: Tensor) -> Tensor:
    return standardize(x, -1, 1e-5) * 2 + 1


def third(x: Tensor) -> Tensor:
    return standardize(x, -1, 1e-5) / 3 - 1


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
            lambda: [_parallel(table([[[8.0]]]), tripled, halved, mean_value)],
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
    hidden=lambda drawn: [_parallel(drawn(3, 2, 7, 5), torch.sin, third)],
)


def _pre(x: Tensor, memory: Tensor, norms: tuple, feed_forward: Map = torch.tanh) -> Case:
    return {
        "x": x, "memory": memory, "attention": telling, "cross_attention": telling,
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
                _pre(table([[[8.0]]]), table([[[4.0]]]), (halved,) * 3, tripled)
                | {"attention": mean_value, "cross_attention": mean_value}
            ],
            "8 + 4 = 12; 12 + 4 = 16; 16 + 3 * 8 = 40.",
        ),
        Stage(
            "three tokens, a memory of five",
            lambda: [_pre(drawn(1, 1, 3, 4), drawn(2, 1, 5, 4), (standard, shifted, third))],
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
    hidden=lambda drawn: [_pre(drawn(3, 3, 5, 7), drawn(4, 3, 11, 7), (third, standard, shifted), torch.sin)],
)


def encoder_layer(first: Write, n: int) -> Exercise:
    """Both sub-layers side by side."""
    return PARALLEL


def decoder_layer(first: Write, n: int) -> Exercise:
    """The same layer, pre-norm."""
    return PRE_NORM


def decoder_numbers(first: Number, n: int) -> Number:
    """The numbers of another decoder layer."""

    def make(draw: random.Random) -> Number:
        d, f, heads = (draw.choice(sizes) for sizes in ([8, 12, 16, 20, 24, 28], [50, 70, 90, 110], [2, 4]))
        attention, both_ways, norm = 4 * d * d, 2 * d * f, 2 * d
        right = 2 * attention + both_ways + f + d + 3 * norm
        return replace(
            first,
            asked=(
                f"ONE decoder layer, d_model = {d}, d_inner = {f}, {heads} heads, no biases in attention,"
                " biases in the feed-forward network: how many learned numbers?"
            ),
            answer=f"2 * 4 * {d}**2 + ({d}*{f} + {f}) + ({f}*{d} + {d}) + 3 * ({d} + {d})",
            value=right,
            solution=(
                f"two attentions of 4 * {d} * {d} each: {2 * attention:,}; the feed-forward network"
                f" {d} * {f} + {f} and {f} * {d} + {d}: {both_ways + f + d:,}; three norms of 2 * {d}:"
                f" {3 * norm}. In all {right:,}."
            ),
            slips={
                "that is an encoder layer; a decoder layer also looks at the encoder's output, and has three norms": (
                    attention + both_ways + f + d + 2 * norm
                ),
                "a decoder layer has two attentions: one to its own words, one to the encoder's output": (
                    right - attention
                ),
                "three sub-layers, three norms: you counted two": right - norm,
                "one norm per sub-layer: you counted one in all": right - 2 * norm,
                "the norms are missing: each has a weight and a bias": right - 3 * norm,
                "a norm has a bias, too: 2 * d_model numbers": right - 3 * d,
                f"the feed-forward network has biases: {f} inside, {d} at its end": right - f - d,
                "the feed-forward network has two matrices, there and back": right - d * f,
                "W_o is missing in both attentions: four matrices each": right - 2 * d * d,
                "attention has no biases here": right + 8 * d,
            },
        )

    return fresh(n, make)


def norm_of_tokens_2(
    x: Float[Tensor, "*b n d_model"],
    weight: Float[Tensor, " d_model"],
    eps: float,
) -> Float[Tensor, "*b n d_model"]:
    size = x.square().mean(dim=-1, keepdim=True)
    return x / torch.sqrt(size + eps) * weight


def _sizes(x: Tensor, eps: float, weight: Tensor | None = None) -> Case:
    return {"x": x, "weight": torch.ones_like(x[0]) if weight is None else weight, "eps": eps}


def _right_rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * x * (x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + eps) ** -0.5


RMS = Write(
    name="norm_of_tokens_2",
    title="The norm of today's models",
    asked=(
        "RMSNorm, root mean square: each token over sqrt(mean of its squares + eps), times weight; no mean is"
        " subtracted, and there is no bias"
    ),
    stages=(
        Stage(
            "one token (1, 7), eps 0",
            lambda: [_sizes(table([[1.0, 7.0]]), 0.0)],
            "The squares are 1 and 49, their mean is 25 and its root 5: (0.2, 1.4).",
        ),
        Stage(
            "the same token, eps 11",
            lambda: [_sizes(table([[1.0, 7.0]]), 11.0)],
            "sqrt(25 + 11) = 6: eps stands under the root.",
        ),
        Stage(
            "three tokens, one of them constant; a weight",
            lambda: [_sizes(table([[2, 3, 7, 8], [5, 5, 5, 5], [1, 0, 0, 0]]), 1e-5, primes(4))],
            "A constant token keeps its direction here; LayerNorm would make 0 of it.",
        ),
        Stage(
            "two sequences of five tokens, width 3",
            lambda: [{"x": drawn(1, 2, 5, 3), "weight": primes(3), "eps": 0.1}],
            "The mean runs over the last axis alone.",
        ),
    ),
    hints=(
        "For the token (1, 7): what is the mean of its squares, and what is the root of that?",
        "Which two lines of LayerNorm does RMSNorm leave out?",
        "Which axis holds the numbers of ONE token, counted from the right?",
    ),
    solution=norm_of_tokens_2,
    reference=_right_rms,
    remember="RMSNorm keeps a token's direction and sets its length; it needs no mean and no bias",
    slips={
        "you subtract the mean: that is LayerNorm": (
            "x.square()",
            "(x - x.mean(dim=-1, keepdim=True)).square()",
            "return x /",
            "return (x - x.mean(dim=-1, keepdim=True)) /",
        ),
        "you divide by the standard deviation, whose squares are taken from the mean": (
            "x.square()",
            "(x - x.mean(dim=-1, keepdim=True)).square()",
        ),
        "you add up the squares; asked is their mean": (".mean(dim=-1", ".sum(dim=-1"),
        "eps stands beside the root; it belongs under it": (
            "torch.sqrt(size + eps)",
            "(torch.sqrt(size) + eps)",
        ),
        "you divide by the mean square; divide by its root": ("torch.sqrt(size + eps)", "(size + eps)"),
        "the weight is not used": (" * weight", ""),
        "one size for all tokens of a sequence; each token has its own": ("dim=-1", "dim=(-2, -1)"),
        "you take the mean over the tokens (dim=-2); each token has a size of its own": ("dim=-1", "dim=-2"),
    },
    hidden=lambda drawn: [{"x": drawn(1, 3, 11, 7), "weight": drawn(2, 7), "eps": 0.02}],
)


def pre_norm_stack_2(
    x: Float[Tensor, "n d_model"],
    sublayers: tuple,  # of functions: sublayer(x)
    norms: tuple,  # of pairs, one per sub-layer: (before, after)
) -> Float[Tensor, "n d_model"]:
    for sublayer, (before, after) in zip(sublayers, norms, strict=True):
        x = x + after(sublayer(before(x)))
    return x


def _plus_one(x: Tensor) -> Tensor:
    return x + 1


def _running_mean(x: Tensor) -> Tensor:
    """Each token becomes the mean of those up to it: an attention without preferences."""
    return x.cumsum(-2) / torch.arange(1, len(x) + 1, device=x.device)[:, None]


def _right_sandwich(x: Tensor, sublayers: tuple, norms: tuple) -> Tensor:
    if not sublayers:
        return x
    before, after = norms[0]
    return _right_sandwich(after(sublayers[0](before(x))) + x, sublayers[1:], norms[1:])


SANDWICH = Write(
    name="pre_norm_stack_2",
    title="A norm on either side",
    asked=(
        "Gemma 2 has two norms in every branch, one for what the sub-layer reads and one for what it makes:"
        " x + after(sublayer(before(x))); no norm behind the last sum"
    ),
    stages=(
        Stage(
            "x = 8; one sub-layer that makes three of one; both norms halve",
            lambda: [{"x": table([[8.0]]), "sublayers": (tripled,), "norms": ((halved, halved),)}],
            "8 + (3 * (8 / 2)) / 2 = 14.",
        ),
        Stage(
            "the norm before halves, the one after triples; the sub-layer adds 1",
            lambda: [{"x": table([[8.0]]), "sublayers": (_plus_one,), "norms": ((halved, tripled),)}],
            "8 + 3 * (8 / 2 + 1) = 23: which norm stands where matters.",
        ),
        Stage(
            "five tokens, three sub-layers, each with norms of its own",
            lambda: [
                {
                    "x": drawn(2, 5, 3),
                    "sublayers": (_running_mean, torch.relu, _plus_one),
                    "norms": ((standard, halved), (shifted, third), (third, standard)),
                }
            ],
            "Each sub-layer reads what the one before has left, and has its own pair.",
        ),
    ),
    hints=(
        "Which of the two norms does the sub-layer read from, and which acts on what it makes?",
        "Has x itself, on its way from sum to sum, met a norm?",
        "How do you take the first sub-layer with the first pair, the second with the second?",
    ),
    solution=pre_norm_stack_2,
    reference=_right_sandwich,
    remember="wherever the norms stand in the branch: as long as none stands on the sum, the path is clear",
    slips={
        "the norm after the sub-layer is missing: this is pre-norm": (
            "after(sublayer(before(x)))",
            "sublayer(before(x))",
        ),
        "the norm before the sub-layer is missing": ("sublayer(before(x))", "sublayer(x)"),
        "the second norm acts on the sum; it belongs to the branch": (
            "x + after(sublayer(before(x)))",
            "after(x + sublayer(before(x)))",
        ),
        "the two norms have changed places": (
            "after(sublayer(before(x)))",
            "before(sublayer(after(x)))",
        ),
        "x itself is normed before it is added": ("x = x + after", "x = before(x) + after"),
        "the residual is missing: add x": ("x = x + after", "x = after"),
        "the first pair of norms serves all sub-layers; each has its own": (
            "before(x)))",
            "norms[0][0](x)))",
            "after(sublayer",
            "norms[0][1](sublayer",
        ),
        "only the first sub-layer has run: is your return inside the loop?": (
            "    return x",
            "        return x",
        ),
    },
    hidden=lambda drawn: [
        {
            "x": drawn(1, 11, 7),
            "sublayers": (torch.tanh, _running_mean, torch.relu),
            "norms": ((third, shifted), (standard, third), (halved, standard)),
        }
    ],
)


def forced_loss_2(
    decode,  # a function: words (b, n) to logits (b, n, words)
    words: Int[Tensor, "b n"],
    asked: Int[Tensor, " b"],
    filler: int,
) -> Float[Tensor, ""]:
    logits = decode(words[:, :-1])  # (b, n - 1, words)
    target = words[:, 1:]
    place = torch.arange(1, words.shape[1])  # of each target
    counts = (target != filler) & (place >= asked[:, None])
    return torch.nn.functional.cross_entropy(logits[counts], target[counts])


def _after_one(chances: list[list[float]]) -> Map:
    """A decoder that looks at the last word only: row `w` holds the chances of each word after word w."""
    logs = table(chances).log()
    return lambda before: logs[before]


def _after_drawn(seed: int, words: int) -> Map:
    logits = drawn(seed, words, words)
    return lambda before: logits[before]


AFTER = [  # words: 0 filler, then 1, 2, 3
    [0.25, 0.25, 0.25, 0.25],
    [0.125, 0.125, 0.5, 0.25],
    [0.125, 0.25, 0.125, 0.5],
    [0.5, 0.125, 0.25, 0.125],
]


def _chat(decode: Map, words: list[list[int]], asked: list[int], filler: int = 0) -> Case:
    return {
        "decode": decode,
        "words": torch.tensor(words, device="cpu"),
        "asked": torch.tensor(asked, device="cpu"),
        "filler": filler,
    }


def _right_answers_only(decode: Any, words: Tensor, asked: Tensor, filler: int) -> Tensor:
    losses = [
        -decode(row[None])[0, at - 1].log_softmax(-1)[row[at]]
        for row, first in zip(words, asked.tolist(), strict=True)
        for at in range(max(first, 1), len(row))
        if row[at] != filler
    ]
    return torch.stack(losses).mean()


ANSWERS_ONLY = Write(
    name="forced_loss_2",
    title="Teach the answer, not the question",
    asked=(
        "a decoder alone is tuned on questions with their answers: each row of `words` has `asked` words of"
        " question, then an answer, then filler; it reads all words but the last, and the loss is the mean over"
        " the answers' words"
    ),
    stages=(
        Stage(
            "question 1, answer 2: after 1 its chance is 1/2",
            lambda: [_chat(_after_one(AFTER), [[1, 2]], [1])],
            "The word 2 is guessed where 1 is read: log 2.",
        ),
        Stage(
            "question 1 3, answer 2 3",
            lambda: [_chat(_after_one(AFTER), [[1, 3, 2, 3]], [2])],
            "3 belongs to the question: nobody asks the model for it. After 3 the chance of 2 is 1/4, after 2"
            " that of 3 is 1/2.",
        ),
        Stage(
            "the same with filler behind it",
            lambda: [_chat(_after_one(AFTER), [[1, 3, 2, 3, 0, 0]], [2])],
            "Filler counts neither in the sum nor in the divisor.",
        ),
        Stage(
            "three rows, questions and answers of different lengths, filler 5",
            lambda: [
                _chat(_after_drawn(1, 7), [[2, 3, 6, 4, 6], [3, 6, 2, 1, 5], [4, 1, 6, 5, 5]], [3, 1, 2], 5)
            ],
            "It is the mean over all words of answers in the batch, each counting the same.",
        ),
    ),
    hints=(
        "Row (1, 3, 2, 3): what does the decoder read, and which word must it guess at each of these places?",
        "With two words of question, at which of the guessed places does the answer begin?",
        "Which two conditions must a guessed word meet, so that it counts?",
    ),
    solution=forced_loss_2,
    reference=_right_answers_only,
    remember="the shift stays; which words count is a mask on the targets: -100 in published code",
    slips={
        "the question is learned as well: leave its words out": (
            "(target != filler) & (place >= asked[:, None])",
            "target != filler",
        ),
        "filler counts": (
            "(target != filler) & (place >= asked[:, None])",
            "place >= asked[:, None]",
        ),
        "the first word of the answer is left out: it stands at place `asked`": (
            "place >= asked",
            "place > asked",
        ),
        "the last word of the question counts: targets begin at place 1": (
            "torch.arange(1, words.shape[1])",
            "torch.arange(1, words.shape[1]) + 1",
        ),
        "only the question is learned: turn the comparison round": ("place >= asked", "place < asked"),
        "the decoder reads the very words that it must guess: shift by one": (
            "decode(words[:, :-1])",
            "decode(words[:, 1:])",
        ),
        "you take the mean of each row's mean; each word counts the same": (
            "    return torch.nn.functional.cross_entropy(logits[counts], target[counts])",
            '    losses = torch.nn.functional.cross_entropy(logits.mT, target, reduction="none")\n'
            "    return ((losses * counts).sum(1) / counts.sum(1)).mean()",
        ),
        "you add up the losses; asked is their mean": (
            "target[counts])",
            'target[counts], reduction="sum")',
        ),
    },
    hidden=lambda drawn: [_chat(_after_drawn(3, 11), [[2, 9, 4, 7, 10, 3], [5, 5, 8, 6, 0, 0]], [2, 1], 0)],
)


def k_best_probabilities_2(
    probabilities: Float[Tensor, "*b words"],
    least: float,
) -> Float[Tensor, "*b words"]:
    best, order = probabilities.sort(dim=-1, descending=True)
    before = best.cumsum(dim=-1) - best  # what all likelier words have together
    best = best.masked_fill(before >= least, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, order, best)
    return kept / kept.sum(dim=-1, keepdim=True)


def _nucleus(rows: list, least: float) -> Case:
    return {"probabilities": table(rows), "least": least}


def _right_nucleus(probabilities: Tensor, least: float) -> Tensor:
    likelier = probabilities[..., None, :] > probabilities[..., :, None]  # (..., word, others)
    before = (likelier * probabilities[..., None, :]).sum(-1)
    kept = probabilities * (before < least)
    return kept / kept.sum(-1, keepdim=True)


NUCLEUS = Write(
    name="k_best_probabilities_2",
    title="As many as it takes",
    asked=(
        "top-p, or nucleus: keep the fewest most likely words whose probabilities sum to `least` or more, and"
        " share out what the others had; 0 for all others"
    ),
    stages=(
        Stage(
            "1/2, 1/4, 1/4 ... the two best hold 0.75",
            lambda: [_nucleus([0.5, 0.375, 0.125], 0.75)],
            "One word has 0.5 and is not enough; two have 0.875. They share the whole: 4/7, 3/7 and 0.",
        ),
        Stage(
            "a sure model, and an unsure one",
            lambda: [_nucleus([0.9375, 0.0625, 0.0, 0.0], 0.75), _nucleus([0.3, 0.28, 0.22, 0.2], 0.75)],
            "The sure model keeps one word, the unsure one three: that is what top-k cannot do.",
        ),
        Stage(
            "the best words stand in the middle",
            lambda: [_nucleus([0.125, 0.5, 0.0625, 0.3125], 0.7)],
            "Each word's probability goes back to its own place.",
        ),
        Stage(
            "two rows",
            lambda: [_nucleus([[0.1, 0.2, 0.6, 0.1], [0.45, 0.3, 0.05, 0.2]], 0.65)],
            "Each row has a nucleus of its own.",
        ),
    ),
    hints=(
        "Sort (0.5, 0.375, 0.125). What do all likelier words have together, before the first, the second, the third?",
        "Must the word that carries the sum over `least` stay or go?",
        "After sorting, how does each probability find its way back to its place? What does `scatter` do?",
    ),
    solution=k_best_probabilities_2,
    reference=_right_nucleus,
    remember="top-p keeps few words where the model is sure, and many where it is not",
    slips={
        "the word that carries the sum over the limit must stay: compare what stands before it": (
            "best.cumsum(dim=-1) - best",
            "best.cumsum(dim=-1)",
        ),
        "what is left does not sum to 1": ("kept / kept.sum(dim=-1, keepdim=True)", "kept"),
        "you keep the unlikeliest words": ("descending=True", "descending=False"),
        "the probabilities stand in the order of their size; each has its own place": (
            "torch.zeros_like(probabilities).scatter(-1, order, best)",
            "best",
        ),
        "you keep every word that alone has `least`; the sum of the likelier ones decides": (
            "before >= least",
            "best < least",
        ),
        "all kept words have the same chance in yours": (
            "return kept / kept.sum(dim=-1, keepdim=True)",
            "return (kept > 0) / (kept > 0).sum(dim=-1, keepdim=True)",
        ),
    },
    hidden=lambda drawn: [_nucleus([[0.31, 0.02, 0.17, 0.29, 0.21], [0.05, 0.55, 0.11, 0.12, 0.17]], 0.7)],
)


def norm_of_tokens(first: Write, n: int) -> Exercise:
    """The norm without a mean."""
    return RMS


def pre_norm_stack(first: Write, n: int) -> Exercise:
    """Norms on either side of the sub-layer."""
    return SANDWICH


def forced_loss(first: Write, n: int) -> Exercise:
    """A loss on answers alone."""
    return ANSWERS_ONLY


def k_best_probabilities(first: Write, n: int) -> Exercise:
    """As many words as it takes."""
    return NUCLEUS
