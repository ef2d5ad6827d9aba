"""Exercises of lesson 06, the Transformer: how do the parts make the whole?

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.blocks import standardize
from lesson_lib.chapters.c06_transformer import (
    hidden_words,
    layer,
    next_characters,
    seconds,
    translator,
    writing,
)
from lesson_lib.chapters.c06_transformer.seconds import halved, standard, tripled
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice, Number, Open

counted = Number(
    name="decoder_numbers",
    second=lambda n: seconds.decoder_numbers(counted, n),
    title="One look more: what does it cost?",
    stars=2,
    minutes=7,
    why="whoever can count a layer can count every model: the rest is multiplication",
    asked=(
        "ONE decoder layer, d_model = 10, d_inner = 60, 2 heads, no biases in attention, biases in the"
        " feed-forward network: how many learned numbers?"
    ),
    value=2 * 4 * 10 * 10 + 2 * 10 * 60 + 60 + 10 + 3 * 2 * 10,
    tolerance=1e-6,
    hints=(
        (
            "Which three sub-layers has a decoder layer? Which of them are attention, and which four matrices"
            " does each attention have?"
        ),
        (
            "The feed-forward network goes from 10 to 60 and back to 10. How many numbers has each matrix,"
            " and how long is each bias?"
        ),
        "How many norms are there, one per sub-layer? Each has a weight and a bias: how long are they?",
    ),
    solution=(
        "two attentions of 4 * 10 * 10 each: 800; the feed-forward network 10 * 60 + 60 and 60 * 10 + 10:"
        " 1270; three norms with weight and bias, 3 * 2 * 10 = 60. In all 2130, and the heads' number does"
        " not matter."
    ),
    remember=(
        "a decoder layer has 8 d_model^2 + 2 d_model d_inner + d_inner + 7 d_model numbers, an encoder layer"
        " 4 d_model^2 and a norm less"
    ),
    slips={
        "that is an encoder layer; a decoder layer also looks at the encoder's output, and has three norms": (
            "4*100 + 2*600 + 70 + 2*20"
        ),
        "a decoder layer has two attentions: one to its own words, one to the encoder's output": (
            "4*100 + 2*600 + 70 + 3*20"
        ),
        "three sub-layers, three norms: you counted two": "8*100 + 2*600 + 70 + 2*20",
        "one norm per sub-layer: you counted one in all": "8*100 + 2*600 + 70 + 20",
        "the norms are missing: each has a weight and a bias": "8*100 + 2*600 + 70",
        "a norm has a bias, too: 2 * d_model numbers": "8*100 + 2*600 + 70 + 3*10",
        "the feed-forward network has biases: 60 inside, 10 at its end": "8*100 + 2*600 + 3*20",
        "you counted the bias inside, 60, and forgot the one at the end, 10": "8*100 + 2*600 + 60 + 3*20",
        "both biases of the feed-forward network are not 60 long: the last one is as wide as a token": (
            "8*100 + 2*600 + 120 + 3*20"
        ),
        "the feed-forward network has two matrices, there and back": "8*100 + 600 + 70 + 3*20",
        "W_o is missing in both attentions: four matrices each": "6*100 + 2*600 + 70 + 3*20",
        "the heads share the width: two heads of width 5 have as many numbers as one of width 10": (
            "16*100 + 2*600 + 70 + 3*20"
        ),
        "attention has no biases here": "8*100 + 8*10 + 2*600 + 70 + 3*20",
        "that is six layers; asked is one": "6*2130",
        "a norm has two numbers for each column, not two in all": "800 + 1270 + 3 * 2",
        "the layer has one feed-forward network, behind both attentions": "800 + 2 * 1270 + 60",
    },
    answer="2 * 4 * 10**2 + (10*60 + 60) + (60*10 + 10) + 3 * (10 + 10)",
)


def norm_of_tokens(
    x: Float[Tensor, "*b n d_model"],
    weight: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    eps: float,
) -> Float[Tensor, "*b n d_model"]:
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def _over(axes: int | tuple[int, ...]) -> Callable[..., Tensor]:
    """The norm with mean and variance over other axes."""
    return lambda x, weight, bias, eps: standardize(x, axes, eps) * weight + bias


def _tokens(x: Tensor, eps: float, weight: Tensor | None = None, bias: Tensor | None = None) -> Case:
    """A case; without weight and bias, those that change nothing."""
    width = x.shape[-1]
    return {
        "x": x,
        "weight": table([1.0] * width) if weight is None else weight,
        "bias": table([0.0] * width) if bias is None else bias,
        "eps": eps,
    }


def _more_norm_of_tokens(drawn: Draw) -> list[Case]:
    x, weight, bias = drawn(1, 3, 11, 7), drawn(2, 7), drawn(3, 7)
    return [{"x": x, "weight": weight, "bias": bias, "eps": 0.02}]


normed = Write(
    name="norm_of_tokens",
    second=lambda n: seconds.norm_of_tokens(normed, n),
    title="The norm of a much-read tutorial: a repair",
    stars=2,
    minutes=8,
    why="these lines train well, and nobody notices until published weights are loaded",
    asked=(
        "repair: each token minus its mean, over sqrt(variance + eps), times weight, plus bias; the variance"
        " is the MEAN of the squared distances"
    ),
    repair=True,
    stages=(
        Stage(
            "two tokens, (1, 3) and (2, 6); eps 0",
            lambda: [_tokens(table([[1.0, 3.0], [2.0, 6.0]]), 0.0)],
            "The first mean is 2, the squared distances are 1 and 1, and their mean is 1: (-1, 1). The second"
            " token gives the same.",
        ),
        Stage(
            "one token (1, 3), eps 3",
            lambda: [_tokens(table([[1.0, 3.0]]), 3.0)],
            "sqrt(1 + 3) = 2: the result is (-0.5, 0.5).",
        ),
        Stage(
            "three tokens, one of them constant; weight and bias",
            lambda: [
                _tokens(table([[2, 3, 7, 8], [5, 5, 5, 5], [1, 0, 0, 0]]), 1e-5, primes(4), -primes(4)),
            ],
            "Every token has a mean and a variance of its own; a constant token becomes the bias.",
        ),
        Stage(
            "two sequences of five tokens, width 3",
            lambda: [_tokens(drawn(1, 2, 5, 3), 0.1, primes(3), drawn(2, 3))],
            "Mean and variance run over the last axis alone, whatever stands before it.",
        ),
    ),
    reference=_over(-1),
    hints=(
        (
            "For the token (1, 3), compute by hand the mean of the squared distances from the mean. What does"
            " x.std() give, and by what does it divide?"
        ),
        (
            "Where does eps stand in the formula: beside the root, or under it? For (1, 3) and eps = 3, what"
            " are the two results?"
        ),
        (
            "(x - mean).square().mean(dim=-1, keepdim=True): is this the variance that is asked for, and what"
            " must be done before its root?"
        ),
    ),
    solution=norm_of_tokens,
    remember=(
        "LayerNorm divides by sqrt(variance + eps), eps under the root, and its variance by d, not by d - 1;"
        " one token at a time"
    ),
    slips={
        "this is still the function as it was given": (
            "variance = (x - mean).square().mean(dim=-1, keepdim=True)\n    return (x - mean) / torch.sqrt(variance + eps) * weight + bias",
            "std = x.std(dim=-1, keepdim=True)\n    return (x - mean) / (std + eps) * weight + bias",
        ),
        "eps is right, the variance is not: std() and var() divide by d - 1 unless you say correction=0": (
            ("(x - mean).square().mean(dim=-1, keepdim=True)", "x.var(dim=-1, keepdim=True)")
        ),
        "the variance is right; eps belongs under the root": (
            "torch.sqrt(variance + eps)",
            "(torch.sqrt(variance) + eps)",
        ),
        "you divide by the variance; divide by its root": ("torch.sqrt(variance + eps)", "(variance + eps)"),
        "eps is missing: a token of equal numbers gives 0 / 0": ("variance + eps", "variance"),
        "eps is squared: it stands under the root as it is": ("variance + eps", "variance + eps**2"),
        "you take the mean over the tokens (dim=-2); each token has a mean of its own (dim=-1)": (
            "x.mean(dim=-1",
            "x.mean(dim=-2",
            "square().mean(dim=-1",
            "square().mean(dim=-2",
        ),
        "one mean and one variance for all tokens of a sequence; each token has its own": (
            "x.mean(dim=-1",
            "x.mean(dim=(-2, -1)",
            "square().mean(dim=-1",
            "square().mean(dim=(-2, -1)",
        ),
        "the mean is not subtracted": ("return (x - mean)", "return x"),
        "this is RMSNorm, root mean square without a mean: right in itself, and used by many models, but asked is LayerNorm": (
            ("= (x - mean)", "= x", "return (x - mean)", "return x")
        ),
        "weight and bias are exchanged": ("* weight + bias", "* bias + weight"),
        "the bias is scaled, too: first times weight, then plus bias": (
            "(x - mean) / torch.sqrt(variance + eps) * weight + bias",
            "((x - mean) / torch.sqrt(variance + eps) + bias) * weight",
        ),
        "weight and bias are not used": (" * weight + bias", ""),
        "you add up the squared distances; the variance is their mean": ("square().mean(", "square().sum("),
        "you take the mean of the distances without their sign; the variance is the mean of their squares": (
            "torch.sqrt(variance + eps)",
            "torch.sqrt((x - mean).abs().mean(dim=-1, keepdim=True) ** 2 + eps)",
        ),
        "you take the root of the standard deviation; eps belongs to the variance, under one root": (
            "torch.sqrt(variance + eps)",
            "torch.sqrt(variance.sqrt() + eps)",
        ),
        "you take the root of the standard deviation, and std() divides by d - 1; one root, around variance + eps": (
            "torch.sqrt(variance + eps)",
            "torch.sqrt(x.std(dim=-1, keepdim=True) + eps)",
        ),
        "you multiply by the root; divide by it": ("/ torch.sqrt", "* torch.sqrt"),
        "you take the mean over the first axis (dim=0), in a batch over the sequences; each token has a mean of its own (dim=-1)": (
            "x.mean(dim=-1",
            "x.mean(dim=0",
            "square().mean(dim=-1",
            "square().mean(dim=0",
        ),
    },
    hidden=_more_norm_of_tokens,
)


def pre_norm_stack(
    x: Float[Tensor, "n d_model"],
    sublayers: tuple,  # of functions: sublayer(x)
    norm,  # a function: norm(x)
) -> Float[Tensor, "n d_model"]:
    for sublayer in sublayers:
        x = x + sublayer(norm(x))
    return norm(x)


Sublayer = Callable[[Tensor], Tensor]


def _stack(
    around: Callable[[Tensor, Sublayer, Sublayer], Tensor], *, last: bool = True
) -> Callable[[Tensor, tuple, Sublayer], Tensor]:
    """A stack with `around(x, sublayer, norm)` for each sub-layer, with or without the norm at the end."""

    def stack(x: Tensor, sublayers: tuple, norm: Sublayer) -> Tensor:
        for sublayer in sublayers:
            x = around(x, sublayer, norm)
        return norm(x) if last else x

    return stack


def _around(x: Tensor, sublayer: Sublayer, norm: Sublayer) -> Tensor:
    return x + sublayer(norm(x))


def _plus_one(x: Tensor) -> Tensor:
    return x + 1


def _running_mean(x: Tensor) -> Tensor:
    """Each token becomes the mean of those up to it: an attention without preferences."""
    return x.cumsum(-2) / torch.arange(1, len(x) + 1, device=x.device)[:, None]


def _more_pre_norm_stack(drawn: Draw) -> list[Case]:
    sublayers = (torch.tanh, lambda x: x.cumsum(0), torch.relu)
    return [
        {
            "x": drawn(1, 11, 7),
            "sublayers": sublayers,
            "norm": lambda x: x - x.mean(-1, keepdim=True),
        }
    ]


reordered = Write(
    name="pre_norm_stack",
    second=lambda n: seconds.pre_norm_stack(reordered, n),
    title="From post-norm to pre-norm",
    stars=2,
    minutes=10,
    why="most models of today are pre-norm, most figures are post-norm, and code mixes the two",
    asked=(
        "turn this post-norm stack into a pre-norm one: x = x + sublayer(norm(x)) for each sub-layer, and one"
        " norm behind the last"
    ),
    repair=True,
    stages=(
        Stage(
            "x = 8; one sub-layer that makes three of one; a 'norm' that halves",
            lambda: [{"x": table([[8.0]]), "sublayers": (tripled,), "norm": halved}],
            "8 + 3 * (8 / 2) = 20 after the sub-layer, and the norm behind the last one makes 10 of it.",
        ),
        Stage(
            "the same with two sub-layers: the second one adds 1 to what it reads",
            lambda: [{"x": table([[8.0]]), "sublayers": (tripled, _plus_one), "norm": halved}],
            "20 after the first; then 20 + (20 / 2 + 1) = 31; and 15.5 at the end. There is ONE norm at the"
            " end, not one per sub-layer.",
        ),
        Stage(
            "three tokens, a norm that standardizes each token",
            lambda: [{"x": drawn(1, 3, 4), "sublayers": (tripled, torch.relu), "norm": standard}],
            "The sub-layer reads norm(x); what is added to it is x itself.",
        ),
        Stage(
            "five tokens, four sub-layers, two of which mix tokens; and none at all",
            lambda: [
                {
                    "x": drawn(2, 5, 3),
                    "sublayers": (_running_mean, torch.relu, _running_mean, _plus_one),
                    "norm": standard,
                },
                {"x": drawn(3, 5, 3), "sublayers": (), "norm": standard},
            ],
            "Each sub-layer reads what the one before it has left; the last norm is there whatever the number"
            " of sub-layers.",
        ),
    ),
    reference=_stack(_around),
    hints=(
        (
            "In the given line, norm(x + sublayer(x)), what does the sub-layer read, and what does the norm"
            " act on?"
        ),
        (
            "In pre-norm a clear path leads from the first x to the last, with nothing but additions on it."
            " Does your x pass through a norm on its way?"
        ),
        (
            "After the loop x has never been normalized. What is missing, and is its place inside or behind"
            " the loop?"
        ),
    ),
    solution=pre_norm_stack,
    remember=(
        "pre-norm: x = x + sublayer(norm(x)); x itself meets a norm only once, behind the last sub-layer"
    ),
    slips={
        "this is still the function as it was given": (
            "for sublayer in sublayers:\n        x = x + sublayer(norm(x))\n    return norm(x)",
            "for sublayer in sublayers:\n        x = norm(x + sublayer(x))\n    return x",
        ),
        "the norm behind the last sub-layer is missing": ("return norm(x)", "return x"),
        "you replace x by norm(x) and add that: then the norm stands in the residual path; add x as it was": (
            ("x = x +", "x = norm(x) +")
        ),
        "x = norm(x) stands in the residual path, and the last norm is missing": (
            "x = x +",
            "x = norm(x) +",
            "return norm(x)",
            "return x",
        ),
        "the norm acts on what the sub-layer makes; it must act on what the sub-layer reads": (
            "sublayer(norm(x))",
            "norm(sublayer(x))",
        ),
        "the residual is missing: add x to what the sub-layer makes": ("x + sublayer", "sublayer"),
        "there is a norm before AND after each sum: the last one belongs behind the loop": (
            "x + sublayer(norm(x))",
            "norm(x + sublayer(norm(x)))",
            "return norm(x)",
            "return x",
        ),
        "you normalize after each sum and once more at the end; behind the loop, once, is enough": (
            "x + sublayer(norm(x))",
            "norm(x + sublayer(norm(x)))",
        ),
        "the norms are gone from the loop: the sub-layer must read norm(x)": (
            "sublayer(norm(x))",
            "sublayer(x)",
        ),
        "all sub-layers read the first x; each must read what the one before has left": (
            "for sublayer",
            "first = x\n    for sublayer",
            "norm(x))",
            "norm(first))",
        ),
        "the residual is added twice": ("x = x +", "x = 2 * x +"),
        "post-norm, and one norm more at the end: the sub-layer must read norm(x), and the sum stay as it is": (
            "x + sublayer(norm(x))",
            "norm(x + sublayer(x))",
        ),
        "only the first sub-layer has run: is your return inside the loop?": (
            "return norm",
            "    return norm",
        ),
        "you norm once, before all sub-layers; each of them reads a norm of its own": (
            "    for sublayer",
            "    x = norm(x)\n    for sublayer",
            "sublayer(norm(x))",
            "sublayer(x)",
        ),
        "you add the first x each time; add the stream as it is by now": (
            "    for sublayer",
            "    start = x\n    for sublayer",
            "x = x + sublayer",
            "x = start + sublayer",
        ),
        "the last norm comes twice": ("return norm(x)", "return norm(norm(x))"),
        "the last norm is no sub-layer: it replaces the stream, nothing is added": (
            "return norm(x)",
            "return x + norm(x)",
        ),
    },
    hidden=_more_pre_norm_stack,
)


SUBLAYERS = 24


def _streams() -> tuple[list[float], list[float]]:
    """The size of the numbers after 0, 1 ... sub-layers, with pre-norm and with post-norm."""
    before = after = standardize(drawn(1, 8, 512).double(), -1, eps=0.0)
    sizes = ([1.0], [1.0])
    for k in range(SUBLAYERS):
        made = standardize(drawn(k + 2, 8, 512).double(), -1, eps=0.0)
        before, after = before + made, standardize(after + made, -1, eps=0.0)
        for x, column in zip((before, after), sizes, strict=True):
            column.append(float(x.square().mean().sqrt()))
    return sizes


def _stream_picture() -> Any:
    from lesson_lib import charts

    before, after = _streams()
    counts = list(range(SUBLAYERS + 1))
    return charts.lines(
        {"size of the numbers in x": {"pre-norm": (counts, before), "post-norm": (counts, after)}},
        alt=(
            "Two curves over 24 sub-layers: pre-norm rises quickly, then ever more slowly; post-norm is a"
            " flat line."
        ),
        caption=(
            "Each sub-layer adds a row of variance 1. With pre-norm variances add up, 1 + k after k"
            " sub-layers, and the size is their root. With post-norm each sum is made standard again."
        ),
        x_axis="sub-layers passed",
        y_limits=(0.0, None),
    )


stream = Choice(
    name="stream_curve",
    title="How large does it get? Predict the curve",
    stars=2,
    minutes=5,
    why="it says why pre-norm needs one norm more at its end, and why its late layers seem to do little",
    asked=(
        "24 sub-layers, each makes rows of mean 0 and variance 1, unrelated to x: how large are the numbers"
        " of x, with pre-norm and with post-norm?"
    ),
    options={
        "a": "pre-norm: up like a square root, from 1 to about 5; post-norm: flat at 1",
        "b": "pre-norm: up in a straight line, from 1 to about 25; post-norm: flat at 1",
        "c": "both flat at 1: each has a norm at every sub-layer",
        "d": "post-norm: up like a square root, from 1 to about 5; pre-norm: flat at 1",
        "e": "pre-norm: it doubles with every sub-layer; post-norm: flat at 1",
        "f": "pre-norm: flat at 1; post-norm: down towards 0",
    },
    hints=(
        (
            "Write both down: x + sublayer(norm(x)) and norm(x + sublayer(x)). In which of them does x itself"
            " pass through a norm?"
        ),
        "Two unrelated rows are added. What happens to their variances?",
        "After k additions of variance 1, to an x of variance 1: what is the variance, and what is its root?",
    ),
    solution=(
        "a: with pre-norm x itself is never made standard, and unrelated variances add: 1 + k after k"
        " sub-layers, size sqrt(1 + k), which is 5 after 24. With post-norm the norm acts on the sum, so x"
        " leaves each sub-layer with variance 1."
    ),
    remember=(
        "pre-norm normalizes what a sub-layer READS, post-norm what it leaves: so pre-norm's stream grows,"
        " and a last norm must follow"
    ),
    slips={
        "b adds sizes; what adds up for unrelated rows is the variances, and the size is their root": "b",
        "c forgets where pre-norm has its norm: on what the sub-layer reads; x itself goes round it": "c",
        "d has the two exchanged: post-norm means that the norm comes after the sum, and acts on x": "d",
        "e would need sub-layers whose outputs grow with x; they read norm(x), which does not grow": "e",
        "f forgets that a norm makes the variance 1, neither more nor less; nothing shrinks to 0": "f",
    },
    answer="a",
    picture=_stream_picture,
)


def forced_loss(
    decode,  # a function: words (b, n) to logits (b, n, words)
    target: Int[Tensor, "b n"],
    start: int,
    filler: int,
) -> Float[Tensor, ""]:
    first = torch.full_like(target[:, :1], start)
    before = torch.cat([first, target[:, :-1]], dim=1)  # the word before each word
    logits = decode(before)  # (b, n, words)
    real = target != filler
    return torch.nn.functional.cross_entropy(logits[real], target[real])


def _before(target: Tensor, start: int) -> Tensor:
    return torch.cat([torch.full_like(target[:, :1], start), target[:, :-1]], 1)


def _each(logits: Tensor, target: Tensor) -> Tensor:
    """The loss of each word, (b, n)."""
    return -logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]


def _mean_of(
    before: Callable[[Tensor, int], Tensor],
    mean: Callable[[Tensor, Tensor], Tensor] = lambda losses, real: losses[real].mean(),
) -> Callable[..., Tensor]:
    """The loss where the decoder reads `before(target, start)`, gathered by `mean(losses, real)`."""
    return lambda decode, target, start, filler: mean(
        _each(decode(before(target, start)), target), target != filler
    )


def _guesses(chances: list[list[float]]) -> Sublayer:
    """A decoder that looks at the last word only: row `w` holds the chances of each word after word w."""
    logs = table(chances).log()
    return lambda before: logs[before]


def _batch(decode: Sublayer, target: list[list[int]], start: int = 1, filler: int = 0) -> Case:
    return {
        "decode": decode,
        "target": torch.tensor(target, device="cpu"),
        "start": start,
        "filler": filler,
    }


CHANCES = [  # words: 0 filler, 1 start, 2 and 3
    [0.25, 0.25, 0.25, 0.25],
    [0.125, 0.125, 0.5, 0.25],
    [0.125, 0.25, 0.125, 0.5],
    [0.5, 0.125, 0.25, 0.125],
]


def _drawn_guesses(seed: int, words: int) -> Sublayer:
    logits = drawn(seed, words, words)
    return lambda before: logits[before]


def _more_forced_loss(drawn: Draw) -> list[Case]:
    logits, target = (
        drawn(1, 11, 11),
        2 + (2 * drawn(2, 4, 7).abs()).long().clamp(max=8),
    )
    target[1, 3:], target[3, 5:] = 0, 0
    return [
        {
            "decode": lambda before: logits[before],
            "target": target,
            "start": 1,
            "filler": 0,
        }
    ]


forced = Write(
    name="forced_loss",
    second=lambda n: seconds.forced_loss(forced, n),
    title="A loss too good to be true: a repair",
    stars=3,
    minutes=12,
    why="the loss falls to nearly nothing within minutes, and the model writes nonsense",
    asked=(
        "repair the training step: at each position the decoder reads the right words BEFORE it, the start"
        " sign first; the loss is the mean over real words"
    ),
    repair=True,
    stages=(
        Stage(
            "one word, 2: after the start sign (1) its chance is 1/2, after itself 1/8",
            lambda: [_batch(_guesses(CHANCES), [[2]])],
            "What the decoder reads is the start sign, so the loss is log 2; if it is log 8, it has read the"
            " answer.",
        ),
        Stage(
            "two words, then three",
            lambda: [_batch(_guesses(CHANCES), [[2, 3]]), _batch(_guesses(CHANCES), [[3, 3, 2]])],
            "The decoder reads the start sign and all words but the last, as many as there are to guess.",
        ),
        Stage(
            "one sentence with filler (0) behind it",
            lambda: [_batch(_guesses(CHANCES), [[2, 3, 0, 0]])],
            "Filler is nothing to learn: leave it out of the sum AND of the number by which you divide.",
        ),
        Stage(
            "three sentences of different lengths; other numbers for start sign and filler",
            lambda: [
                _batch(_drawn_guesses(1, 7), [[2, 3, 6, 4, 6], [3, 6, 5, 5, 5], [4, 4, 0, 6, 5]], 1, 5),
                _batch(_drawn_guesses(2, 5), [[1, 4, 2], [3, 0, 0]], 4, 0),
            ],
            "It is the mean over all real words of the batch, each counting the same.",
        ),
    ),
    reference=_mean_of(_before),
    hints=(
        (
            "decode(before) gives, at position i, the scores for word i, made from before[0 ... i]. If before"
            " is the target itself, what does it need to learn?"
        ),
        (
            "For the target (7, 8, 9) and start sign 1, which three words should the decoder read? How do you"
            " make them with torch.cat?"
        ),
        (
            "The target holds filler. How do you choose, with target != filler, the rows of the logits and"
            " the words that count?"
        ),
    ),
    solution=forced_loss,
    remember=(
        "the decoder reads the target shifted right by one, start sign first; filler counts neither in the"
        " sum nor in the divisor"
    ),
    slips={
        "this is still the function as it was given": (
            "first = torch.full_like(target[:, :1], start)\n    before = torch.cat([first, target[:, :-1]], dim=1)  # the word before each word\n    logits = decode(before)  # (b, n, words)\n    real = target != filler\n    return torch.nn.functional.cross_entropy(logits[real], target[real])",
            "logits = decode(target)  # (b, n, words)\n    every = logits.flatten(0, 1), target.flatten()\n    return torch.nn.functional.cross_entropy(*every)",
        ),
        "the shift is right; filler still counts": (
            "torch.nn.functional.cross_entropy(logits[real], target[real])",
            "torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())",
        ),
        "filler is left out; but the decoder still reads the very word that it must guess": (
            "decode(before)",
            "decode(target)",
        ),
        "you shift to the left: the decoder reads the word AFTER the one it must guess": (
            "[first, target[:, :-1]]",
            "[target[:, 1:], first]",
        ),
        "torch.roll puts the last word in front; the start sign belongs there": (
            "torch.cat([first, target[:, :-1]], dim=1)",
            "target.roll(1, 1)",
        ),
        "you overwrite the first word by the start sign, and shift nothing": (
            "target[:, :-1]",
            "target[:, 1:]",
        ),
        "you shift twice: what is read is shifted already, so compare with the whole target": (
            "decode(before)",
            "decode(before)[:, :-1]",
            "real = target",
            "target = target[:, 1:]\n    real = target",
        ),
        "the decoder reads one word too many: the last word of the target stands before nothing": (
            ("target[:, :-1]]", "target]")
        ),
        "the first word is never guessed: put the start sign in front": (
            "decode(before)",
            "decode(target[:, :-1])",
            "real = target",
            "target = target[:, 1:]\n    real = target",
        ),
        "filler's losses are 0 now, but it still counts in the number by which you divide": (
            "torch.nn.functional.cross_entropy(logits[real], target[real])",
            '(torch.nn.functional.cross_entropy(logits.mT, target, reduction="none") * real).mean()',
        ),
        "you take the mean of each sentence's mean: then a word of a short sentence counts more": (
            "return torch.nn.functional.cross_entropy(logits[real], target[real])",
            'losses = torch.nn.functional.cross_entropy(logits.mT, target, reduction="none")\n    return ((losses * real).sum(1) / real.sum(1)).mean()',
        ),
        "you add up the losses; asked is their mean": ("target[real])", 'target[real], reduction="sum")'),
        "you leave out where filler is READ; leave out where it would have to be guessed": (
            ("target != filler", "before != filler")
        ),
        "cross_entropy takes logits and does the softmax itself; here it is done twice": (
            ("logits[real],", "logits[real].softmax(-1),")
        ),
        "the start sign is read everywhere: all words before must be": (
            "torch.cat([first, target[:, :-1]], dim=1)",
            "torch.full_like(target, start)",
        ),
        "you shift between sentences: axis 0 counts sentences, axis 1 words": (
            "target[:, :1], start",
            "target[:1], start",
            "target[:, :-1]], dim=1",
            "target[:-1]], dim=0",
        ),
        "the filler is not always 0; compare with the number that is given": (
            "target != filler",
            "target != 0",
        ),
        "what the decoder reads is shifted twice: it misses the word right before the one it must guess": (
            "    logits = decode(before)",
            "    before = torch.cat([first, before[:, :-1]], dim=1)\n    logits = decode(before)",
        ),
        "you compare with the words that the decoder has read; compare with the target itself": (
            "target[real])",
            "before[real])",
        ),
        "a second shift goes back: each place is asked for the word that it has just read": (
            "decode(before)",
            "decode(before)[:, 1:]",
            "real = target",
            "target = target[:, :-1]\n    real = target",
        ),
    },
    hidden=_more_forced_loss,
)


def k_best_probabilities(
    logits: Float[Tensor, "*b words"], temperature: float, k: int
) -> Float[Tensor, "*b words"]:
    smallest = logits.topk(k).values[..., -1:]  # of the k that are kept
    kept = logits.masked_fill(logits < smallest, -torch.inf)
    return torch.softmax(kept / temperature, dim=-1)


def _of_the_sorted(logits: Tensor, temperature: float, k: int) -> Tensor:
    order = logits.argsort(-1, descending=True)[..., :k]
    shares = (logits.gather(-1, order) / temperature).softmax(-1)
    return torch.zeros_like(logits).scatter(-1, order, shares)


def _logits(rows: Any, temperature: float, k: int) -> Case:
    return {"logits": table(rows), "temperature": temperature, "k": k}


LOGS = [0.0, math.log(3)]  # chances 1 to 3


def _more_k_best_probabilities(drawn: Draw) -> list[Case]:
    return [{"logits": 3 * drawn(1, 5, 11), "temperature": 0.7, "k": 4}]


narrowed = Write(
    name="k_best_probabilities",
    second=lambda n: seconds.k_best_probabilities(narrowed, n),
    title="Hot, cold, and the k best",
    stars=2,
    minutes=10,
    why=(
        "most models that you talk to draw their words in this way, or in one much like it; two numbers"
        " decide how daring it is"
    ),
    asked=(
        "probabilities of the next word: softmax(logits / temperature) over the k words with the highest"
        " logits; 0 for all others"
    ),
    stages=(
        Stage(
            "two words, 1 to 3; temperature 1, both kept",
            lambda: [_logits([LOGS], 1.0, 2)],
            "The logits are log 1 and log 3, so the probabilities are 1/4 and 3/4.",
        ),
        Stage(
            "the same at temperature 1/2, then at 2",
            lambda: [_logits([LOGS], 0.5, 2), _logits([LOGS], 2.0, 2)],
            "At temperature 1/2 the logits double: 1 to 9, so 1/10 and 9/10. Cold makes the best word surer,"
            " heat evens out.",
        ),
        Stage(
            "three words, the 2 best, temperature 1",
            lambda: [_logits([[LOGS[0], math.log(0.5), LOGS[1]]], 1.0, 2)],
            "The third best word gets exactly 0, and the other two share the whole: 1/4 and 3/4.",
        ),
        Stage(
            "two rows with best words in different places, negative logits, temperature 2, the 3 best",
            lambda: [_logits([[-1.0, -2.0, -5.0, -0.5, -3.0], [2.0, -1.0, 4.0, 1.0, -2.0]], 2.0, 3)],
            "Each row has its own k best; a word that is out gets a logit of -inf, not of 0.",
        ),
        Stage(
            "logits of 300 at temperature 1/2; and the best word alone",
            lambda: [
                _logits([[300.0, 299.5, 10.0, 299.0]], 0.5, 3),
                _logits([[0.2, 0.9, -0.4]], 1.3, 1),
                _logits([[-3e30, -2e30, -4e30]], 1.0, 1),
                _logits([[[0.3, 1.2, -0.5], [2.0, 0.1, 1.4]], [[-1.0, 0.6, 0.2], [0.7, -0.3, 1.9]]], 1.0, 2),
            ],
            "exp(600) is too large for any float; torch.softmax takes care of that. With k = 1 the best word"
            " is certain.",
        ),
    ),
    reference=_of_the_sorted,
    hints=(
        (
            "Begin with temperature alone: what happens to the logits before the softmax, and does a small"
            " temperature make differences larger or smaller?"
        ),
        (
            "logits.topk(k).values holds the k largest of each row, in order. Which of them is the one that a"
            " word must reach to stay?"
        ),
        "If the softmax must give exactly 0 for a word, what must its logit be? What would a logit of 0 do?",
    ),
    solution=k_best_probabilities,
    remember=(
        "divide the logits by the temperature, set all but the k best to -inf, then softmax; cold and k = 1"
        " are greedy"
    ),
    slips={
        "you multiply by the temperature; divide: cold (below 1) must make differences larger": (
            ("kept / temperature", "kept * temperature")
        ),
        "the temperature changes nothing here: divide the logits by it, before the softmax": (
            ("kept / temperature", "kept")
        ),
        "k is not used: every word has a chance": (("kept / temperature", "logits / temperature")),
        "the k best do not sum to 1: what the others had must be shared out": (
            "torch.softmax(kept / temperature, dim=-1)",
            "torch.softmax(logits / temperature, dim=-1) * (logits >= smallest)",
        ),
        "words that are out get a logit of 0, and exp(0) is 1; give them -inf": (("-torch.inf", "0.0")),
        "a word that is out has a finite number here, and one that is kept may lie lower still: give it -inf": (
            "-torch.inf",
            "-1e9",
        ),
        "you keep the k WORST words": (
            ("topk(k)", "topk(k, largest=False)", "logits < smallest", "logits > smallest")
        ),
        "the k-th best word is out, too: hide what is smaller than it, not what is equal": (
            ("logits < smallest", "logits <= smallest")
        ),
        "you keep one word too many": (("topk(k)", "topk(min(k + 1, logits.shape[-1]))")),
        "you divide probabilities by the temperature; divide the logits, before the softmax": (
            "torch.softmax(kept / temperature, dim=-1)",
            "torch.softmax(kept, dim=-1) / temperature",
        ),
        "exp of a large number is inf, and inf / inf is nan: use torch.softmax": (
            "torch.softmax(kept / temperature, dim=-1)",
            "(kept / temperature).exp() / (kept / temperature).exp().sum(-1, keepdim=True)",
        ),
        "your softmax runs over the rows; it must run over the words (dim=-1)": (("dim=-1", "dim=0")),
        "these are the k probabilities alone, sorted; give each word of the vocabulary its own, in its own place": (
            ("kept / temperature", "logits.topk(k).values / temperature")
        ),
        "you divide by the root of the temperature; here it is the temperature itself": (
            ("/ temperature", "/ temperature**0.5")
        ),
        "you divide by the sum over all rows; each row must sum to 1": (
            "return torch.softmax(kept / temperature, dim=-1)",
            "shares = torch.softmax(logits / temperature, dim=-1) * (logits >= smallest)\n    return shares / shares.sum()",
        ),
        "these are logarithms of probabilities (log_softmax)": (("torch.softmax", "torch.log_softmax")),
        "one threshold for all rows; each row has its own k best": (
            ("logits.topk(k).values[..., -1:]", "logits.flatten().topk(k).values[-1]")
        ),
        "the first row's border serves for all rows; each row has its own": (
            ".values[..., -1:]",
            ".values.reshape(-1, k)[0, -1]",
        ),
        "you keep the first k words of the vocabulary; keep the k with the largest logits": (
            "logits.masked_fill(logits < smallest, -torch.inf)",
            "logits.masked_fill(torch.arange(logits.shape[-1]) >= k, -torch.inf)",
        ),
        "the k best share equally; they share by their logits": (
            "torch.softmax(kept / temperature, dim=-1)",
            "(logits >= smallest).float() / k",
        ),
        "a softmax of a softmax: hide words among the logits, then take one softmax": (
            "logits.masked_fill(logits < smallest, -torch.inf)",
            "torch.softmax(logits / temperature, -1).masked_fill(logits < smallest, -torch.inf)",
            "kept / temperature",
            "kept",
        ),
        "it is turned round: the k best are hidden, and all others keep their chance; hide what is smaller": (
            "logits < smallest",
            "logits >= smallest",
        ),
        "a word that is out has +inf here, and inf - inf is nan; give it -inf": ("-torch.inf", "torch.inf"),
    },
    hidden=_more_k_best_probabilities,
)


differs = Open(
    name="why_training_differs",
    title="Training and writing, in your own words",
    stars=2,
    minutes=7,
    why="a model with a perfect training loss can still lose its way in its own sentence",
    asked=(
        "in two or three sentences: which earlier words does a decoder read while it trains, which while it"
        " writes, and what can go wrong?"
    ),
    hints=(
        (
            "In training the whole right sentence lies on the table. Which words does position 5 read, and"
            " who wrote them?"
        ),
        (
            "While writing there is no right sentence. Who wrote the words before position 5 now, and when"
            " could they be written?"
        ),
        (
            "Suppose that word 3 is a mistake. What does position 4 read, and did it ever read such a thing"
            " in training?"
        ),
    ),
    solution=(
        "In training the decoder reads the right words before each position (teacher forcing). They are all"
        " known, so behind a causal mask every position is computed at once. When it writes, it reads its own"
        " words, which come into being one after the other. If one of them is a mistake, everything after it"
        " is built on a beginning that it never met in training, and errors can add up."
    ),
    remember=(
        "teacher forcing: the right words before, all positions at once; writing: its own words before, one"
        " at a time, mistakes included"
    ),
    slips={
        "the causal mask holds in training, too: no position reads later words, nor the one it must guess": (
            r"(?<!cannot )(sees?|looks? at|knows?|reads?|attends? to|peeks? at) (at )?(the )?"
            r"(future|whole (right )?sentence, also|next word|later words|following words|coming words|word (that )?it (must|has"
            r" to|should))"
        ),
        "nothing is learned while it writes: its weights stay as they are": (
            r"(?<!while it )(?<!while the model )(?<!while the decoder )(learns?|updates?|adapts?|weights?"
            r" chang\w+|trains?)\b[^,]*(?<!and )\b(while|when|as) "
            r"(it |the decoder )?(is )?(writ|translat|generat)|"
            r"keeps? learning"
        ),
        "the encoder does the same both times; the question is what the decoder reads": (
            r"\bencoder\b.*(differ|only (in|during|while)|another|switched off)"
        ),
        "dropout is off when any network is used; the question is which words the decoder reads": r"dropout",
        "a beam looks for a better sentence; in each of its lines the decoder still reads words of its own": (
            r"\bbeam"
        ),
        "it goes wrong even with sentences that it has trained on: it is not about new ones": (
            r"over-?fit|memori[sz]|unseen (words|sentences|data)|new (sentences|data)|too little"
            r" data|vocabulary"
        ),
    },
    points=(
        "which words does it read before each position while it trains, which while it writes: who wrote them?",
        "what can be computed at once, and what must come one after the other?",
        "what becomes of one mistake?",
    ),
)


EXERCISES = (
    *layer.ASKED,
    *translator.ASKED,
    *writing.ASKED,
    *hidden_words.ASKED,
    *next_characters.ASKED,
    counted,
    normed,
    reordered,
    stream,
    translator.write_learning_rates,
    forced,
    narrowed,
    differs,
)
