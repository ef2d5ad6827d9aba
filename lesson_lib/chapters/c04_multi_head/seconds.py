"""Second problems of chapter 04: another convention, other sizes, and inputs that catch a mistake."""

import random
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import catch
from lesson_lib.checks.inputs import drawn, primes
from lesson_lib.checks.short import Number, fresh


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


def eight_heads(first: Number, n: int) -> Number:
    """The numbers of another layer, whose heads are not as wide together as the model."""

    def make(draw: random.Random) -> Number:
        d, heads, width = draw.choice([256, 384, 768]), draw.choice([3, 5, 6]), draw.choice([16, 40, 48])
        tokens = draw.choice([50, 200, 300])
        matrix = d * heads * width
        return replace(
            first,
            asked=(
                f"d_model = {d}, {heads} heads with d_k = d_v = {width}, W_o, no biases, n = {tokens} tokens:"
                " how many learned numbers?"
            ),
            answer=f"4 * {d} * ({heads} * {width})",
            value=4 * matrix,
            solution=f"W_q, W_k, W_v: {d} x ({heads} * {width}) each; W_o: ({heads} * {width}) x {d}.",
            slips={
                "W_o is missing: it brings the heads' outputs back to d_model": 3 * matrix,
                "the heads together are not as wide as d_model here": 4 * d * d,
                "that is one head's three matrices": 3 * d * width,
                "W_o has a row for each column of ALL heads": 3 * matrix + width * d,
                "you counted biases; here there are none": 4 * matrix + 3 * heads * width + d,
                "the matrices are shared by all tokens: do not multiply by n": 4 * matrix * tokens,
                "the weights of the tokens are computed, not learned": 4 * matrix + heads * tokens**2,
            },
        )

    return fresh(n, make)


def several_heads(first: Write, _n: int) -> Exercise:
    """Inputs that tell a swap and a flatten from a reshape alone."""
    return catch(
        first,
        "somebody forgets the swap on the way back, and no shape complains; write inputs on which it fails",
        "the split is right, the way back is not: swap heads and tokens before you flatten",
        {
            "query": "torch.zeros(1, 2, 2)",
            "key": "torch.zeros(1, 1, 2)",
            "value": "torch.tensor([[[1.0, 2.0]]])",
            "w_output": "torch.eye(2)",
            "n_heads": "2",
        },
        remember="one head, or one token, hides the mistake: test with two of each",
        hints=(
            "With one head, which axis does the swap move?",
            "With one token, in which order do the numbers lie, with the swap and without?",
            "Two heads, two tokens: which values make the two rows differ from one another's order?",
        ),
        slips={
            "with one head there is nothing to swap: take two": (
                lambda query, key, value, w_output, n_heads: n_heads == 1
            ),
            "with one token that asks, the order is the same either way: take two": (
                lambda query, key, value, w_output, n_heads: query.shape[1] == 1
            ),
            "all values are 0, so the order cannot be seen": (
                lambda query, key, value, w_output, n_heads: not bool(value.any())
            ),
        },
    )


def heads_together(first: Write, _n: int) -> Exercise:
    """Heads on which the function that was given fails."""
    return catch(
        first,
        "the function as it was given passes with one head and with one token; write heads on which it fails",
        "this is still the function as it was given",
        {"heads": "torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]])"},
        remember="two heads and two tokens of width 1: four numbers are enough to catch it",
        hints=(
            "With one head, what does the missing swap change?",
            "And with one token?",
            "How small can heads be, if neither of the two is 1?",
        ),
        slips={
            "with one head there is nothing to swap": lambda heads: heads.shape[-3] == 1,
            "with one token the numbers lie in the right order already": lambda heads: heads.shape[-2] == 1,
            "all numbers are the same: no order can be seen": (
                lambda heads: bool((heads == heads.flatten()[0]).all())
            ),
        },
    )


def many_heads(first: Write, _n: int) -> Exercise:
    """A layer that tells the width of one head from that of all."""
    return catch(
        first,
        "somebody divides by the root of all heads' width together; write a layer on which it shows",
        "you divide by the root of all heads' width together; a head's scores have d_k terms",
        {
            "x": "torch.tensor([[0.0], [1.0]])",
            "w_query": "torch.tensor([[1.0, 1.0]])",
            "w_key": "torch.tensor([[1.0, 1.0]])",
            "w_value": "torch.tensor([[1.0, 1.0]])",
            "w_output": "torch.tensor([[1.0], [1.0]])",
            "n_heads": "2",
        },
        remember="a wrong root shows only where the scores differ: two tokens, two heads",
        hints=(
            "With one head, which two widths agree?",
            "With one token, what is its weight, whatever the root?",
            "If all scores of a row are equal, does a root change the weights?",
        ),
        slips={
            "with one head both widths are the same": (
                lambda x, w_query, w_key, w_value, w_output, n_heads: n_heads == 1
            ),
            "with one token its weight is 1, whatever you divide by": (
                lambda x, w_query, w_key, w_value, w_output, n_heads: x.shape[-2] == 1
            ),
        },
    )


def silent_head(first: Write, _n: int) -> Exercise:
    """A matrix that tells a head's rows from the model's columns."""
    return catch(
        first,
        "somebody sets columns to 0 in place of rows; write a W_o on which it shows",
        "you set columns to 0, so every head is silent in a part of the output; a head has ROWS of W_o",
        {"w_output": "torch.tensor([[1.0, 2.0], [3.0, 4.0]])", "head": "0", "n_heads": "2"},
        remember="most layers have a square W_o, where rows and columns are mistaken in silence",
        hints=(
            "Two heads of width 1 in a model of width 2: which row is head 0's?",
            "Which numbers does the wrong function set to 0 there?",
            "On which matrices do both give the same?",
        ),
        slips={
            "W_o is 0 already, so nobody can fall silent": (
                lambda w_output, head, n_heads: not bool(w_output.any())
            ),
            "one number is a row and a column: take more": (
                lambda w_output, head, n_heads: w_output.numel() == 1
            ),
        },
    )


def may_look(first: Write, _n: int) -> Exercise:
    """Masks that tell `or` from `one of the two`."""
    return catch(
        first,
        "somebody writes ^ (one of the two) where | (one or both) is right; write masks on which it shows",
        "what both masks hide is open again: ^ means one of the two; use |",
        {
            "attn_mask": "torch.tensor([[False, True]])",
            "key_padding_mask": "torch.tensor([[False, True]])",
        },
        remember="test masks where they overlap: a key that is both padding and future",
        hints=(
            "In which of the four cases do | and ^ differ?",
            "Which key can be padding and in the future at once?",
            "One query and two keys: which entries have to be True?",
        ),
        slips={
            "no key is hidden by both masks: there | and ^ agree": (
                lambda attn_mask, key_padding_mask: (
                    not bool((attn_mask & key_padding_mask[:, None, None, :]).any())
                )
            ),
        },
    )
