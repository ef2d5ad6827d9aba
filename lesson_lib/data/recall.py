"""Recall over a distance: a symbol, a stretch of filler, and a question: which symbol was it?

    B g d a d h c ?   ->   B

The filler says nothing, and is drawn from letters of its own. So the answer is known to whoever still knows the first token, and to
nobody else: chance is 1 of 8. Drawn with a CPU generator, on the CPU.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

SYMBOLS, FILLERS = "ABCDEFGH", "abcdefgh"
CHARACTERS = SYMBOLS + FILLERS + "?"
QUESTION = len(CHARACTERS) - 1


class Recall(NamedTuple):
    """Tokens, numbers of CHARACTERS: the symbol, the filler, the question; and the symbol once more, as the answer (0 to 7)."""

    tokens: Int[Tensor, "b n"]
    answer: Int[Tensor, " b"]


def draw(generator: torch.Generator, batch: int, distance: int) -> Recall:
    """A batch of sequences in which the question stands `distance` tokens behind the symbol; n = distance + 1.

    Raises ValueError where `batch` or `distance` is less than 1.
    """
    for name, value in (("batch", batch), ("distance", distance)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    answer = torch.randint(len(SYMBOLS), (batch,), generator=generator, device="cpu")
    filler = torch.randint(len(FILLERS), (batch, distance - 1), generator=generator, device="cpu")
    question = torch.full((batch, 1), QUESTION, device="cpu")
    return Recall(torch.cat([answer[:, None], len(SYMBOLS) + filler, question], 1), answer)


def text(tokens: Int[Tensor, " n"]) -> str:
    """A sequence as characters.

    >>> text(torch.tensor([1, 8, 16]))
    'Ba?'
    """
    return "".join(CHARACTERS[token] for token in tokens.tolist())
