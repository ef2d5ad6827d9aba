"""A phone book to store in attention or in a state: names are random directions, numbers are eight signs.

A number from 0 to 255 becomes a value of eight signs, +1 and -1, as in binary. From a mixture of values the
signs are read; an answer is right where all eight are.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

SIGNS = 8


class Book(NamedTuple):
    """Entries in the order in which they were written: `who` of each, its key, its number in signs."""

    who: Int[Tensor, " n"]
    keys: Float[Tensor, "n d"]
    signs: Float[Tensor, "n 8"]


class Asked(NamedTuple):
    """A question for each name that was written: its key, and its latest number in signs."""

    keys: Float[Tensor, "names d"]
    signs: Float[Tensor, "names 8"]


def draw(names: int, width: int = 32, *, seed: int) -> Book:
    """A book in which every name is written once."""
    return moves(names, width, seed=seed, who=torch.arange(names))


def moves(names: int, width: int = 32, *, seed: int, who: Int[Tensor, " n"] | int) -> Book:
    """A book in which people move: as many entries as `who` says, each of a random name with a new number; or
    of the names given."""
    generator = torch.Generator("cpu").manual_seed(seed)
    keys = F.normalize(torch.randn(names, width, generator=generator, device="cpu"), dim=-1)
    if isinstance(who, int):
        who = torch.randint(names, (who,), generator=generator, device="cpu")
    numbers = torch.randint(2**SIGNS, (len(who),), generator=generator, device="cpu")
    return Book(who, keys[who], in_signs(numbers))


def latest(book: Book) -> Asked:
    """For each name in the book its key, and the number written last."""
    last = {name: i for i, name in enumerate(book.who.tolist())}
    entries = [last[name] for name in sorted(last)]
    return Asked(book.keys[entries], book.signs[entries])


def in_signs(numbers: Int[Tensor, " n"]) -> Float[Tensor, "n 8"]:
    """Numbers below 256 in eight signs, +1 and -1.

    >>> in_signs(torch.tensor([5])).tolist()
    [[-1.0, -1.0, -1.0, -1.0, -1.0, 1.0, -1.0, 1.0]]
    """
    return (numbers[:, None] & _places(numbers.device)).bool() * 2.0 - 1


def _places(device: torch.device) -> Int[Tensor, " 8"]:
    return 2 ** torch.arange(SIGNS - 1, -1, -1, device=device)  # 128, 64, ..., 1


def read(answers: Float[Tensor, "n 8"]) -> list[int]:
    """The numbers that answers say, by their signs."""
    return ((answers > 0) * _places(answers.device)).sum(-1).tolist()


def found(answers: Float[Tensor, "n 8"], signs: Float[Tensor, "n 8"]) -> int:
    """How many answers have all eight signs right."""
    return int(((answers > 0) == (signs > 0)).all(-1).sum())


def machine_b(
    query: Float[Tensor, "n d"], key: Float[Tensor, "m d"], value: Float[Tensor, "m d_v"]
) -> Float[Tensor, "n d_v"]:
    """What the part's second machine answers: `query (key^T value)`."""
    return query @ (key.mT @ value)
