"""Recall over a distance: a symbol, a stretch of filler, and a question: which symbol was it?

    B g d a d h c ?   ->   B

The filler says nothing, and is drawn from letters of its own. So the answer is known to whoever still knows
the symbol, and to nobody else: chance is 1 of 8. More filler may stand before the symbol, so that it is far
from both ends. Drawn with a CPU generator, on the CPU.

Recall by a key (associative recall), `pairs`: which value was written beside this key?

    17=C 3=A 92=C 3?   ->   A

Now the whole sequence counts, and which part of it is known at the last token only. Chance is 1 of 8 again. A
pair is ONE token here, and there is one question: in the paper key and value are two tokens, so that a model
must also learn which follows which, and several keys are asked for.
Source: Arora et al. 2023, "Zoology", arXiv:2312.04927.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from lesson_lib import require

SYMBOLS, FILLERS = "ABCDEFGH", "abcdefgh"
CHARACTERS = SYMBOLS + FILLERS + "?"
QUESTION = len(CHARACTERS) - 1
PAIR_KEYS, PAIR_VALUES = 128, 8
PAIR_TOKENS = PAIR_KEYS * (PAIR_VALUES + 1)  # each key with each value, and with a question mark


class Recall(NamedTuple):
    """Tokens, numbers of CHARACTERS: (filler,) symbol, filler, question; and the symbol once more, as the
    answer (0 to 7).

    Of `pairs`: count pairs and the question, numbers below PAIR_TOKENS; and the value beside the key that is
    asked for (0 to 7).
    """

    tokens: Int[Tensor, "b n"]
    answer: Int[Tensor, " b"]


def draw(generator: torch.Generator, batch: int, distance: int, *, before: int = 0) -> Recall:
    """A batch of sequences in which the question stands `distance` tokens behind the symbol, and `before`
    filler in front of it.

    So n = before + distance + 1. Raises ValueError where `batch` or `distance` is less than 1, or `before`
    less than 0.
    """
    require.whole(batch=batch, distance=distance)
    require.whole(at_least=0, before=before)
    answer = torch.randint(len(SYMBOLS), (batch,), generator=generator, device="cpu")
    filler = len(SYMBOLS) + torch.randint(
        len(FILLERS), (batch, before + distance - 1), generator=generator, device="cpu"
    )
    question = torch.full((batch, 1), QUESTION, device="cpu")
    return Recall(torch.cat([filler[:, :before], answer[:, None], filler[:, before:], question], 1), answer)


def text(tokens: Int[Tensor, " n"]) -> str:
    """A sequence as characters.

    >>> text(torch.tensor([1, 8, 16]))
    'Ba?'
    """
    return "".join(CHARACTERS[token] for token in tokens.tolist())


def pairs(generator: torch.Generator, batch: int, count: int) -> Recall:
    """A batch of sequences of `count` pairs, no key twice in one, and a question for a key that stands in it:
    n = count + 1.

    A pair's number is key · PAIR_VALUES + value, a question's PAIR_KEYS · PAIR_VALUES + key.
    Raises ValueError where `batch` or `count` is less than 1, or there are fewer keys than `count`.
    """
    require.whole(batch=batch, count=count)
    if count > PAIR_KEYS:
        raise ValueError(f"count must be at most {PAIR_KEYS}, as there are no more keys, got {count}")
    keys = torch.rand(batch, PAIR_KEYS, generator=generator, device="cpu").argsort(1)[:, :count]
    values = torch.randint(PAIR_VALUES, (batch, count), generator=generator, device="cpu")
    asked = torch.randint(count, (batch, 1), generator=generator, device="cpu")
    question = PAIR_KEYS * PAIR_VALUES + keys.gather(1, asked)
    return Recall(torch.cat([keys * PAIR_VALUES + values, question], 1), values.gather(1, asked)[:, 0])


def pair_text(tokens: Int[Tensor, " n"]) -> str:
    """A sequence of `pairs` as text, values as letters. Raises TypeError for anything but a tensor (n),
    ValueError for a number that is no token's.

    >>> pair_text(torch.tensor([138, 24, 1041]))
    '17=C 3=A 17?'
    """
    if not isinstance(tokens, Tensor) or tokens.ndim != 1:
        got = f"shape {tuple(tokens.shape)}" if isinstance(tokens, Tensor) else type(tokens).__name__
        raise TypeError(f"tokens must be a tensor (n), got {got}; of a batch, take one row: tokens[0]")
    words = []
    for token in tokens.tolist():
        if not 0 <= token < PAIR_TOKENS:
            raise ValueError(f"tokens must be numbers from 0 to {PAIR_TOKENS - 1}, got {token}")
        key, value = divmod(token, PAIR_VALUES)
        words.append(f"{key}={SYMBOLS[value]}" if key < PAIR_KEYS else f"{token - PAIR_KEYS * PAIR_VALUES}?")
    return " ".join(words)
