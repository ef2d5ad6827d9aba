"""Recall over a distance: a symbol, a stretch of filler, and a question: which symbol was it?

    B g d a d h c ?   ->   B

The filler says nothing, and is drawn from letters of its own. So the answer is known to whoever still knows the symbol, and to
nobody else: chance is 1 of 8. More filler may stand before the symbol, so that it is far from both ends. Drawn with a CPU generator, on the CPU.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

SYMBOLS, FILLERS = "ABCDEFGH", "abcdefgh"
CHARACTERS = SYMBOLS + FILLERS + "?"
QUESTION = len(CHARACTERS) - 1


class Recall(NamedTuple):
    """Tokens, numbers of CHARACTERS: (filler,) symbol, filler, question; and the symbol once more, as the answer (0 to 7)."""

    tokens: Int[Tensor, "b n"]
    answer: Int[Tensor, " b"]


def draw(generator: torch.Generator, batch: int, distance: int, *, before: int = 0) -> Recall:
    """A batch of sequences in which the question stands `distance` tokens behind the symbol, and `before` filler in front of it.

    So n = before + distance + 1. Raises ValueError where `batch` or `distance` is less than 1, or `before` less than 0.
    """
    for name, value, least in (("batch", batch, 1), ("distance", distance, 1), ("before", before, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
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
