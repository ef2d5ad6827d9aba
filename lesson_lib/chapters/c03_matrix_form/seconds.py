"""Second problems of chapter 03: other sizes, and inputs that catch a mistake."""

import random
from dataclasses import replace

import torch

from lesson_lib.checks.exercise import Exercise, Write
from lesson_lib.checks.expose import catch
from lesson_lib.checks.short import Number, fresh


def learned_numbers(first: Number, n: int) -> Number:
    """How much is learned, for other widths."""

    def make(draw: random.Random) -> Number:
        d, d_k, d_v = draw.choice([64, 128, 256, 768]), draw.choice([16, 32, 48]), draw.choice([24, 40, 80])
        tokens = draw.choice([50, 200, 300])
        total = 2 * d * d_k + d * d_v
        return replace(
            first,
            asked=(
                f"W_q, W_k, W_v and nothing else: d_model = {d}, d_k = {d_k}, d_v = {d_v}, n = {tokens} tokens."
                " How many learned numbers?"
            ),
            answer=f"2 * {d} * {d_k} + {d} * {d_v}",
            value=total,
            solution=f"W_q and W_k: 2 * {d} * {d_k}; W_v: {d} * {d_v}; together {total:,}. n does not occur.",
            slips={
                "W_v is missing: values have a matrix of their own": 2 * d * d_k,
                "A is computed from the input, not learned": total + tokens**2,
                "you counted biases; here there are none": total + 2 * d_k + d_v,
                "you gave W_v the width of the keys; d_v is its own": 3 * d * d_k,
                "the matrices are shared by all tokens: do not multiply by n": total * tokens,
                "these are the entries of Q, K and V; they are computed, the matrices are learned": (
                    tokens * (2 * d_k + d_v)
                ),
            },
        )

    return fresh(n, make)


def regrouped_cost(first: Number, n: int) -> Number:
    """How much cheaper the other brackets are, for other sizes."""

    def make(draw: random.Random) -> Number:
        d = draw.choice([16, 32, 64, 128])
        times = draw.choice([3, 5, 6, 12, 20, 24, 40, 48])
        long = d * times
        return replace(
            first,
            asked=(
                f"without softmax (Q K^T) V = Q (K^T V). n = {long:,}, d_k = d_v = {d}: how many times more"
                " multiplications on the left?"
            ),
            answer=f"(2 * {long}**2 * {d}) / (2 * {long} * {d}**2)",
            value=times,
            solution=f"left 2 n^2 d, right 2 n d^2: the ratio is n / d = {long} / {d} = {times}",
            slips={
                "the results are equal, the costs are not: a product of (a, b) and (b, c) takes a * b * c": 1,
                "upside down: that is right over left": f"1 / {times}",
                "that is n alone; n^2 d over n d^2 leaves a d below": long,
                "those are the sizes of the tables; an entry of n^2 costs d, one of d^2 costs n": times**2,
                "you counted two products on the left and one on the right; both sides have two": 2 * times,
                "that is the difference n - d; asked is how many times": long - d,
                "that is how many more, the difference; asked is how many times as many: divide": (
                    2 * long**2 * d - 2 * long * d**2
                ),
            },
        )

    return fresh(n, make)


def without_loops(first: Write, _n: int) -> Exercise:
    """Inputs that tell one softmax from one for each query."""
    return catch(
        first,
        "somebody takes one softmax over the whole table; write query, key and value on which it fails",
        "one softmax over the whole table: each query needs its own",
        {
            "query": "torch.tensor([[1.0], [2.0]])",
            "key": "torch.tensor([[1.0], [0.0]])",
            "value": "torch.tensor([[3.0], [5.0]])",
        },
        remember="one query cannot tell a row from the whole table: test with two",
        hints=(
            "When is the whole table one row?",
            "To what do all the weights of the wrong function sum, with two queries?",
            "Is there a mixture that no weight can change?",
        ),
        slips={
            "with a single query the whole table is one row: take two": (
                lambda query, key, value: len(query) == 1
            ),
            "all values are 0, so every mixture of them is, too": (
                lambda query, key, value: not bool(value.any())
            ),
        },
    )


def mix_in_columns(first: Write, _n: int) -> Exercise:
    """A table that tells A' from its transpose."""
    return catch(
        first,
        "somebody transposes A' first, V @ A'^T, and no shape complains; write V and A' on which it fails",
        "A' is transposed here: its columns are the tokens' weights already",
        {"V": "torch.tensor([[1.0, 2.0]])", "A_prime": "torch.tensor([[0.9, 0.5], [0.1, 0.5]])"},
        remember="a symmetric table hides every transposition: test with one that is not",
        hints=(
            "Which tables are equal to their own transpose?",
            "Can a table whose columns sum to 1 be one that is not symmetric?",
            "What does any table do to a V of zeros?",
        ),
        slips={
            "A' is symmetric here: it is its own transpose": (
                lambda V, A_prime: torch.equal(A_prime, A_prime.mT)
            ),
            "V is 0, so every mixture of it is, too": lambda V, A_prime: not bool(V.any()),
        },
    )


def attention_in_columns(first: Write, _n: int) -> Exercise:
    """Tokens that tell a softmax of rows from one of columns."""
    return catch(
        first,
        "somebody's softmax runs along the rows of A; write I, W_q, W_k and W_v on which it fails",
        "your softmax runs along rows (dim=-1); a query's scores stand in a column (dim=-2)",
        {
            "I": "torch.tensor([[1.0, 2.0]])",
            "W_q": "torch.tensor([[1.0]])",
            "W_k": "torch.tensor([[2.0]])",
            "W_v": "torch.tensor([[1.0]])",
        },
        remember="two tokens that differ are enough; with one token, or equal scores, both softmaxes agree",
        hints=(
            "With a single token A has one number. What is its weight, both ways?",
            "If all scores are equal, what is every weight, both ways?",
            "Which two tokens of width 1 have four scores that differ?",
        ),
        slips={
            "with one token its weight is 1, whichever way": lambda I, W_q, W_k, W_v: I.shape[-1] == 1,
            "all scores are equal, so every weight is 1/n, whichever way": (
                lambda I, W_q, W_k, W_v: bool(
                    ((W_k @ I).mT @ (W_q @ I) == ((W_k @ I).mT @ (W_q @ I))[:1, :1]).all()
                )
            ),
        },
    )


def self_attention(first: Write, _n: int) -> Exercise:
    """Sizes that tell the width of the tokens from that of the queries."""
    return catch(
        first,
        "somebody divides by the root of d, the width of x, and never noticed; write inputs on which it fails",
        "you divide by the root of d, the width of x; it is the width of the queries that counts",
        {
            "x": "torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])",
            "w_q": "torch.tensor([[1.0], [1.0]])",
            "w_k": "torch.tensor([[1.0], [1.0]])",
            "w_v": "torch.tensor([[1.0], [3.0]])",
        },
        remember="many models have d_k = d / heads: then the two roots differ, and only numbers tell",
        hints=(
            "When are the two widths the same?",
            "With one token, what is its weight, whatever the score?",
            "Which shape must w_q have, so that the queries are narrower than x?",
        ),
        slips={
            "the queries are as wide as x here, so both roots are the same": (
                lambda x, w_q, w_k, w_v: w_q.shape[0] == w_q.shape[1]
            ),
            "with one token its weight is 1, whatever you divide by": (
                lambda x, w_q, w_k, w_v: x.shape[-2] == 1
            ),
        },
    )


def both_masks(first: Write, _n: int) -> Exercise:
    """A batch that tells the keys from the queries."""
    return catch(
        first,
        "somebody closes the padded ROWS in place of the columns; write `real` on which it fails",
        "you mark rows, the queries that are real; it is the keys that must be real",
        {"real": "torch.tensor([[True, False]])"},
        remember="a mask of keys closes columns: in each row the same keys are missing",
        hints=(
            "Which sentences need no padding mask at all?",
            "Row i, column j: which of the two is the key?",
            "With two places, the second of them padding: what may row 1 look at?",
        ),
        slips={
            "nothing is padding here: both masks are the causal one": lambda real: bool(real.all()),
            "with one place, row and column are the same": lambda real: real.shape[-1] == 1,
        },
    )
