"""A second problem of lesson 04: queries, keys and values from one packed projection."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.inputs import drawn, primes


def heads_apart_2(
    packed: Float[Tensor, "*b n width"],
    n_heads: int,
) -> Float[Tensor, "three *b h n d"]:
    *batch, n, width = packed.shape
    blocks = packed.reshape(*batch, n, 3, n_heads, width // (3 * n_heads))
    return blocks.movedim(-3, 0).transpose(-2, -3)  # queries, keys, values; heads before tokens


def _case(packed: Tensor, n_heads: int) -> Case:
    return {"packed": packed, "n_heads": n_heads}


PACKED = Write(
    name="heads_apart_2",
    title="Three in one",
    asked=(
        "many models compute queries, keys and values by ONE product: packed is (..., n, 3*h*d), first the"
        " columns of all queries, then of all keys, then of all values, in each the heads side by side; give"
        " back (3, ..., h, n, d)"
    ),
    stages=(
        Stage(
            "one token, one head of width 2",
            lambda: [_case(primes(1, 6), 1)],
            "Queries are the first third of the columns, keys the second, values the last.",
        ),
        Stage(
            "one token, two heads",
            lambda: [_case(primes(1, 12), 2)],
            "Inside each third the heads stand side by side.",
        ),
        Stage(
            "three tokens, two heads",
            lambda: [_case(primes(3, 12), 2)],
            "Each head holds its own columns of every token, one row per token.",
        ),
        Stage(
            "a batch of two sequences",
            lambda: [_case(drawn(1, 2, 5, 18), 3), _case(drawn(2, 2, 3, 4, 6), 2)],
            "The axis of the three comes first, before the batch; count the others from the right.",
        ),
    ),
    hints=(
        "Take one token's row of 3*h*d numbers. Which varies slowest along it: the three, the head, the column?",
        "Which reshape of the last axis alone has these three in that order?",
        "Which axis must come to the front (`movedim`), and which two then still have to change places?",
    ),
    solution=heads_apart_2,
    remember="the order in which a file packs queries, keys, values and heads is a convention: read it before you cut",
    slips={
        "you cut the heads first and the three inside each; here all queries come first": (
            "3, n_heads, width // (3 * n_heads))",
            "n_heads, 3, width // (3 * n_heads))",
            ".movedim(-3, 0).transpose(-2, -3)",
            ".movedim(-2, 0).transpose(-2, -3)",
        ),
        "the axes are still (3, ..., n, h, d): exchange tokens and heads": (".transpose(-2, -3)", ""),
        "the axis of the three stands before the heads; it comes first of all, before the batch": (
            ".movedim(-3, 0).transpose(-2, -3)",
            ".transpose(-3, -4).transpose(-2, -3)",
        ),
        "you reshape straight to the shape asked for; that mixes tokens with heads": (
            "*batch, n, 3, n_heads, width // (3 * n_heads))",
            "3, *batch, n_heads, n, width // (3 * n_heads))",
            ".movedim(-3, 0).transpose(-2, -3)",
            "",
        ),
        "the last third comes first in yours: the order is queries, keys, values": (
            ".movedim(-3, 0)",
            ".movedim(-3, 0).flip(0)",
        ),
    },
    reference=lambda packed, n_heads: torch.stack(
        [
            torch.stack(third.chunk(n_heads, -1), -3)  # (..., h, n, d)
            for third in packed.chunk(3, -1)
        ]
    ),
)


def heads_apart(_n: int) -> Exercise:
    """The packed projection of today's models."""
    return PACKED
