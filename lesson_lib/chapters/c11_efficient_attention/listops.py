"""Expressions in brackets, to be worked out: lists of digits and lists, each with what is to be done with it.

    [MAX 4 3 [MIN 2 3 ] 1 0 ]   ->   4

    MIN, MAX   the smallest, the largest
    MED        the middle one; of an even number of arguments, the mean of the two in the middle, rounded down
    SM         the sum modulo 10

So the answer is a digit, one of 10 classes. What a digit counts for depends on all brackets around it,
however far away they were opened. Expressions are drawn with at most n tokens, and filled up with FILLER
behind their end. Drawn from a CPU generator, on the CPU.
Source: Nangia & Bowman 2018, "ListOps", arXiv:1804.06028; as in Tay et al. 2021, "Long Range Arena",
arXiv:2011.04006, whose lengths are 500 to 2000 tokens. Ours grow another way: from one list, a digit drawn at
random is replaced by a new list, until they are long enough.
"""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from lesson_lib import require


def _median(arguments: list[int]) -> int:
    arguments = sorted(arguments)
    half = len(arguments) // 2
    return arguments[half] if len(arguments) % 2 else (arguments[half - 1] + arguments[half]) // 2


OPERATORS: dict[str, Callable[[list[int]], int]] = {
    "MIN": min,
    "MAX": max,
    "MED": _median,
    "SM": lambda arguments: sum(arguments) % 10,
}
TOKENS = (*"0123456789", *(f"[{name}" for name in OPERATORS), "]", " ")
CLOSE, FILLER = len(TOKENS) - 2, len(TOKENS) - 1
SMALLEST = 4  # tokens of an expression with one list: an operator, two digits, the end


class ListOps(NamedTuple):
    """Tokens, numbers of TOKENS: an expression, and filler; and its value as the answer (0 to 9)."""

    tokens: Int[Tensor, "b n"]
    answer: Int[Tensor, " b"]


def draw(
    generator: torch.Generator,
    batch: int,
    n: int,
    *,
    max_depth: int = 10,
    max_args: int = 5,
    operators: Sequence[str] = tuple(OPERATORS),
) -> ListOps:
    """A batch of expressions of n/2 to n tokens, filled up to n.

    Lists lie at most `max_depth` deep in each other, 1 being a list of digits, and have 2 to `max_args`
    arguments. Their lengths, operators, digits and numbers of arguments are drawn evenly, as far as there is
    room.
    Raises ValueError where a number is too small, where `max_depth` leaves no room for n/2 tokens, and for an
    operator that is none of OPERATORS.
    """
    require.whole(batch=batch, max_depth=max_depth)
    require.whole(at_least=SMALLEST, n=n)
    require.whole(at_least=2, max_args=max_args)
    names = _known(operators)
    least = (n + 1) // 2
    if 3 * 2 ** min(max_depth, 60) - 2 < least:
        raise ValueError(
            f"max_depth={max_depth} is too small for n={n}: lists of two are full with {3 * 2**max_depth - 2}"
            f" tokens then, and n/2 are due; max_depth={math.ceil(math.log2((least + 2) / 3))} is enough"
        )
    numbers = [TOKENS.index(f"[{name}") for name in names]
    random = Random(torch.randint(2**62, (), generator=generator, device="cpu").item()).random
    rows, answers = [], []
    for _ in range(batch):
        row: list[int] = []
        answers.append(_write(_grown(random, least, n, max_depth, max_args, numbers), row))
        rows.append(row + [FILLER] * (n - len(row)))
    return ListOps(torch.tensor(rows, device="cpu"), torch.tensor(answers, device="cpu"))


def value(text: str) -> int:
    """The value of an expression, 0 to 9.

    Raises TypeError where `text` is no text, ValueError where it is no expression.

    >>> value("[MAX 4 3 [MIN 2 3 ] 1 0 ]"), value("[MED 1 8 5 2 ]"), value("[SM 7 [MED 1 9 2 ] 4 ]")
    (4, 3, 3)
    """
    if not isinstance(text, str):
        raise TypeError(
            f"text must be a str, got {type(text).__name__}; such as '[MAX 4 3 ]', and of tokens text(tokens)"
        )
    words = text.replace("[", " [").replace("]", " ] ").split()
    done: list[int] = []  # the whole expression's value
    open_lists: list[tuple[str, list[int]]] = []
    for place, word in enumerate(words, 1):
        if done:
            raise ValueError(f"the expression ends before word {place}, {word!r}; put one list around all")
        if word[0] == "[" and word[1:] in OPERATORS:
            open_lists.append((word[1:], []))
            continue
        if word in TOKENS[:10]:
            found = int(word)
        elif word == "]":
            if not open_lists:
                raise ValueError(f"word {place} is ']', but no list is open; take it away")
            name, arguments = open_lists.pop()
            if not arguments:
                raise ValueError(f"the list '[{name} ]' that ends at word {place} is empty; give it digits")
            found = OPERATORS[name](arguments)
        else:
            raise ValueError(f"word {place} must be one of {' '.join(TOKENS[:-1])}, got {word!r}")
        (open_lists[-1][1] if open_lists else done).append(found)
    if open_lists:
        raise ValueError(f"a list is still open at the end; put {len(open_lists)} more ']' behind it")
    if not done:
        raise ValueError("text must be an expression, got nothing; such as '[MAX 4 3 ]'")
    return done[0]


def text(tokens: Int[Tensor, " n"]) -> str:
    """An expression as text, without its filler. Raises TypeError for anything but a tensor (n), ValueError
    for a number that is no token's.

    >>> text(torch.tensor([11, 4, 3, 14, 15, 15]))
    '[MAX 4 3 ]'
    """
    if not isinstance(tokens, Tensor) or tokens.ndim != 1:
        got = f"shape {tuple(tokens.shape)}" if isinstance(tokens, Tensor) else type(tokens).__name__
        raise TypeError(f"tokens must be a tensor (n), got {got}; of a batch, take one row: tokens[0]")
    if other := [token for token in tokens.tolist() if not 0 <= token < len(TOKENS)]:
        raise ValueError(f"tokens must be numbers from 0 to {len(TOKENS) - 1}, got {other[0]}")
    return " ".join(TOKENS[token] for token in tokens.tolist()).rstrip()


def _grown(
    random: Callable[[], float], least: int, n: int, max_depth: int, max_args: int, numbers: list[int]
) -> list[Any]:
    """A tree of nested lists, each its operator's number and its arguments, that is written with `least` to n
    tokens."""
    root: list[Any] = [0]
    places = [(root, 0, 1)]  # digits that may become lists: where they stand, and how deep the list would be
    length, wanted = 1, least + int(random() * (n - least + 1))
    while length < wanted and n - length >= SMALLEST - 1:
        chosen = int(random() * len(places))
        where, i, depth = places[chosen]
        places[chosen] = places[-1]
        places.pop()
        # a list adds its end and its arguments
        count = 2 + int(random() * (min(max_args, n - length - 1) - 1))
        new = [numbers[int(random() * len(numbers))], *[int(random() * 10) for _ in range(count)]]
        where[i] = new
        length += count + 1
        if depth < max_depth:
            places += [(new, j, depth + 1) for j in range(1, count + 1)]
        elif not places:
            break
    return root[0]


_BY_NUMBER = {TOKENS.index(f"[{name}"): function for name, function in OPERATORS.items()}


def _write(tree: list[Any], row: list[int]) -> int:
    """The value of a tree; its tokens are put behind the row's."""
    row.append(tree[0])
    arguments = []
    for one in tree[1:]:
        if isinstance(one, list):
            arguments.append(_write(one, row))
        else:
            row.append(one)
            arguments.append(one)
    row.append(CLOSE)
    return _BY_NUMBER[tree[0]](arguments)


def _known(operators: Any) -> list[str]:
    names = list(operators) if isinstance(operators, (tuple, list)) else []
    if not names or any(not isinstance(name, str) or name not in OPERATORS for name in names):
        raise ValueError(f"operators must be some of {', '.join(OPERATORS)}, as a tuple, got {operators!r}")
    return names
