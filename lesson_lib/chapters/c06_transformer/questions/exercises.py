"""What of the chapter's exercises is code; their words are in exercises.md."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.blocks import standardize
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


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


Map = Callable[[Tensor], Tensor]


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


def pre_norm_stack_2(
    x: Float[Tensor, "n d_model"],
    sublayers: tuple,  # of functions: sublayer(x)
    norms: tuple,  # of pairs, one per sub-layer: (before, after)
) -> Float[Tensor, "n d_model"]:
    for sublayer, (before, after) in zip(sublayers, norms, strict=True):
        x = x + after(sublayer(before(x)))
    return x


def _right_sandwich(x: Tensor, sublayers: tuple, norms: tuple) -> Tensor:
    if not sublayers:
        return x
    before, after = norms[0]
    return _right_sandwich(after(sublayers[0](before(x))) + x, sublayers[1:], norms[1:])


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


def _decoder_numbers(draw: random.Random) -> dict[str, Any]:
    d, f, heads = (draw.choice(sizes) for sizes in ([8, 12, 16, 20, 24, 28], [50, 70, 90, 110], [2, 4]))
    attention, both_ways, norm = 4 * d * d, 2 * d * f, 2 * d
    right = 2 * attention + both_ways + f + d + 3 * norm
    return locals()


def best_continuations(
    total: Float[Tensor, " width"],  # log-probability of each beginning so far
    logs: Float[Tensor, "width signs"],  # of each next sign, behind each beginning
) -> Int[Tensor, "width 2"]:
    sums = total[:, None] + logs
    best = sums.flatten().topk(len(total)).indices
    return torch.stack([best // logs.shape[1], best % logs.shape[1]], dim=1)


def _beams(total: list, logs: list) -> Case:
    return {"total": table(total), "logs": table(logs)}


def _drawn_beams(seed: int, width: int, signs: int) -> Case:
    return {"total": drawn(seed, width) - 3, "logs": drawn(seed + 1, width, signs).log_softmax(-1)}


def _more_best_continuations(drawn: Draw) -> list[Case]:
    return [{"total": drawn(1, 5) - 3, "logs": drawn(2, 5, 7).log_softmax(-1)}]


def _right_continuations(total: Tensor, logs: Tensor) -> Tensor:
    found = sorted(
        ((float(total[i] + logs[i, c]), i, c) for i in range(len(total)) for c in range(logs.shape[1])),
        reverse=True,
    )
    return torch.tensor([pair[1:] for pair in found[: len(total)]], device=total.device)


def _one_beginning(total: Tensor, logs: Tensor) -> bool:
    return len(total) < 2


CODE = {
    "decoder_numbers_2": Code(
        draw=_decoder_numbers,
    ),
    "norm_of_tokens": Code(
        solution=norm_of_tokens,
        cases=(
            lambda: [_tokens(table([[1.0, 3.0], [2.0, 6.0]]), 0.0)],
            lambda: [_tokens(table([[1.0, 3.0]]), 3.0)],
            lambda: [
                _tokens(table([[2, 3, 7, 8], [5, 5, 5, 5], [1, 0, 0, 0]]), 1e-5, primes(4), -primes(4)),
            ],
            lambda: [_tokens(drawn(1, 2, 5, 3), 0.1, primes(3), drawn(2, 3))],
        ),
        reference=_over(-1),
        hidden=_more_norm_of_tokens,
    ),
    "norm_of_tokens_2": Code(
        solution=norm_of_tokens_2,
        cases=(
            lambda: [_sizes(table([[1.0, 7.0]]), 0.0)],
            lambda: [_sizes(table([[1.0, 7.0]]), 11.0)],
            lambda: [_sizes(table([[2, 3, 7, 8], [5, 5, 5, 5], [1, 0, 0, 0]]), 1e-5, primes(4))],
            lambda: [{"x": drawn(1, 2, 5, 3), "weight": primes(3), "eps": 0.1}],
        ),
        reference=_right_rms,
        hidden=lambda drawn: [{"x": drawn(1, 3, 11, 7), "weight": drawn(2, 7), "eps": 0.02}],
    ),
    "pre_norm_stack": Code(
        solution=pre_norm_stack,
        cases=(
            lambda: [{"x": table([[8.0]]), "sublayers": (tripled,), "norm": halved}],
            lambda: [{"x": table([[8.0]]), "sublayers": (tripled, _plus_one), "norm": halved}],
            lambda: [{"x": drawn(1, 3, 4), "sublayers": (tripled, torch.relu), "norm": standard}],
            lambda: [
                {
                    "x": drawn(2, 5, 3),
                    "sublayers": (_running_mean, torch.relu, _running_mean, _plus_one),
                    "norm": standard,
                },
                {"x": drawn(3, 5, 3), "sublayers": (), "norm": standard},
            ],
        ),
        reference=_stack(_around),
        hidden=_more_pre_norm_stack,
    ),
    "pre_norm_stack_2": Code(
        solution=pre_norm_stack_2,
        cases=(
            lambda: [{"x": table([[8.0]]), "sublayers": (tripled,), "norms": ((halved, halved),)}],
            lambda: [{"x": table([[8.0]]), "sublayers": (_plus_one,), "norms": ((halved, tripled),)}],
            lambda: [
                {
                    "x": drawn(2, 5, 3),
                    "sublayers": (_running_mean, torch.relu, _plus_one),
                    "norms": ((standard, halved), (shifted, third), (third, standard)),
                }
            ],
        ),
        reference=_right_sandwich,
        hidden=lambda drawn: [
            {
                "x": drawn(1, 11, 7),
                "sublayers": (torch.tanh, _running_mean, torch.relu),
                "norms": ((third, shifted), (standard, third), (halved, standard)),
            }
        ],
    ),
    "stream_curve": Code(
        picture=_stream_picture,
    ),
    "forced_loss": Code(
        solution=forced_loss,
        cases=(
            lambda: [_batch(_guesses(CHANCES), [[2]])],
            lambda: [_batch(_guesses(CHANCES), [[2, 3]]), _batch(_guesses(CHANCES), [[3, 3, 2]])],
            lambda: [_batch(_guesses(CHANCES), [[2, 3, 0, 0]])],
            lambda: [
                _batch(_drawn_guesses(1, 7), [[2, 3, 6, 4, 6], [3, 6, 5, 5, 5], [4, 4, 0, 6, 5]], 1, 5),
                _batch(_drawn_guesses(2, 5), [[1, 4, 2], [3, 0, 0]], 4, 0),
            ],
        ),
        reference=_mean_of(_before),
        hidden=_more_forced_loss,
    ),
    "forced_loss_2": Code(
        solution=forced_loss_2,
        cases=(
            lambda: [_chat(_after_one(AFTER), [[1, 2]], [1])],
            lambda: [_chat(_after_one(AFTER), [[1, 3, 2, 3]], [2])],
            lambda: [_chat(_after_one(AFTER), [[1, 3, 2, 3, 0, 0]], [2])],
            lambda: [
                _chat(_after_drawn(1, 7), [[2, 3, 6, 4, 6], [3, 6, 2, 1, 5], [4, 1, 6, 5, 5]], [3, 1, 2], 5)
            ],
        ),
        reference=_right_answers_only,
        hidden=lambda drawn: [
            _chat(_after_drawn(3, 11), [[2, 9, 4, 7, 10, 3], [5, 5, 8, 6, 0, 0]], [2, 1], 0)
        ],
    ),
    "best_continuations": Code(
        solution=best_continuations,
        cases=(
            lambda: [_beams([-0.5, -0.9], [[-0.9, -1.2], [-0.1, -3.0]])],
            lambda: [_beams([-0.1, -4.0], [[-1.0, -0.7, -2.5], [-0.2, -1.0, -3.0]])],
            lambda: [_drawn_beams(3, 4, 6)],
        ),
        reference=_right_continuations,
        hidden=_more_best_continuations,
    ),
    "best_continuations_2": Code(
        wrong=(_one_beginning,),
    ),
    "k_best_probabilities": Code(
        solution=k_best_probabilities,
        cases=(
            lambda: [_logits([LOGS], 1.0, 2)],
            lambda: [_logits([LOGS], 0.5, 2), _logits([LOGS], 2.0, 2)],
            lambda: [_logits([[LOGS[0], math.log(0.5), LOGS[1]]], 1.0, 2)],
            lambda: [_logits([[-1.0, -2.0, -5.0, -0.5, -3.0], [2.0, -1.0, 4.0, 1.0, -2.0]], 2.0, 3)],
            lambda: [
                _logits([[300.0, 299.5, 10.0, 299.0]], 0.5, 3),
                _logits([[0.2, 0.9, -0.4]], 1.3, 1),
                _logits([[-3e30, -2e30, -4e30]], 1.0, 1),
                _logits([[[0.3, 1.2, -0.5], [2.0, 0.1, 1.4]], [[-1.0, 0.6, 0.2], [0.7, -0.3, 1.9]]], 1.0, 2),
            ],
        ),
        reference=_of_the_sorted,
        hidden=_more_k_best_probabilities,
    ),
    "k_best_probabilities_2": Code(
        solution=k_best_probabilities_2,
        cases=(
            lambda: [_nucleus([0.5, 0.375, 0.125], 0.75)],
            lambda: [_nucleus([0.9375, 0.0625, 0.0, 0.0], 0.75), _nucleus([0.3, 0.28, 0.22, 0.2], 0.75)],
            lambda: [_nucleus([0.125, 0.5, 0.0625, 0.3125], 0.7)],
            lambda: [_nucleus([[0.1, 0.2, 0.6, 0.1], [0.45, 0.3, 0.05, 0.2]], 0.65)],
        ),
        reference=_right_nucleus,
        hidden=lambda drawn: [
            _nucleus([[0.31, 0.02, 0.17, 0.29, 0.21], [0.05, 0.55, 0.11, 0.12, 0.17]], 0.7)
        ],
    ),
}
