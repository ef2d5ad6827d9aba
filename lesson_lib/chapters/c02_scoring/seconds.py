"""Second problems of lesson 02: other scores, columns for rows, and inputs that catch a mistake."""

import math
import random
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Exercise, Stage, Write
from lesson_lib.checks.expose import Expose
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Number, fresh


def score_ratio(first: Number, n: int) -> Number:
    """The ratio of two weights, for three other scores."""

    def make(draw: random.Random) -> Number:
        low, b, a = sorted(draw.sample(range(2, 15), 3))
        return replace(
            first,
            asked=(
                f"the scores are [{low}, {a}, {b}], as they are, without 1/sqrt(d); key 2's weight is how many"
                " times key 3's?"
            ),
            answer=f"exp({a}) / exp({b})",
            value=math.exp(a - b),
            solution=f"exp({a}) / exp({b}) = exp({a - b})",
            slips={
                "you divided the scores; softmax compares exp(score), so their difference counts": f"{a} / {b}",
                "that is the difference of the scores; the ratio of the weights is exp of it": f"{a - b}",
                "upside down: that is key 3's weight over key 2's": f"exp({b - a})",
                "powers of 2: softmax uses powers of e": f"2**{a - b}",
                "you took exp of the ratio of the scores; take exp of their difference": f"exp({a} / {b})",
            },
        )

    return fresh(n, make)


def stable_weights_2(scores: Float[Tensor, "*b m n"]) -> Float[Tensor, "*b m n"]:
    largest = scores.amax(-2, keepdim=True)
    exponentials = (scores - largest).exp()
    return exponentials / exponentials.sum(-2, keepdim=True)


IN_COLUMNS = Write(
    name="stable_weights_2",
    title="Scores of a thousand, in columns",
    asked=(
        "the same for scores laid out as (m, n): a row is a key, a column a query, as in texts that write"
        " tokens as columns; each COLUMN sums to 1, finite for scores of 1,000, too"
    ),
    stages=(
        Stage(
            "three keys, one query",
            lambda: [{"scores": table([[1.0], [2.0], [4.0]])}],
            "The three weights of one query stand below each other, and sum to 1.",
        ),
        Stage(
            "three keys, two queries",
            lambda: [{"scores": drawn(4, 3, 2)}],
            "Along which axis do the keys of one query lie now?",
        ),
        Stage(
            "scores of 1,000, and columns far apart",
            lambda: [{"scores": table([[1000.0, -500.0], [1001.0, -502.0], [999.0, -501.0]])}],
            "Each column needs a shift of its own.",
        ),
        Stage("two sequences at once", lambda: [{"scores": drawn(5, 2, 5, 3)}], "Count axes from the right."),
    ),
    hints=(
        "Which numbers compete for one query's attention: those beside each other, or those below?",
        "Which `dim` runs down a column, counted from the right?",
        "In which two places of your first solution does a `-1` stand?",
    ),
    solution=stable_weights_2,
    remember="softmax runs along the axis of the keys, wherever a text puts it; the axis is part of the formula",
    slips={
        "your rows sum to 1; here the keys of one query stand in a column": (
            "amax(-2",
            "amax(-1",
            "sum(-2",
            "sum(-1",
        ),
        "the maximum is the column's, the sum is the row's: both run over the keys": ("sum(-2", "sum(-1"),
        "you shift by the row's maximum; a column far below it becomes 0/0": ("amax(-2", "amax(-1"),
        "exp of the scores as they are overflows; subtract each column's maximum first": (
            "(scores - largest)",
            "scores",
        ),
        "you turned the table round; its shape stays (m, n)": (
            "exponentials / exponentials.sum(-2, keepdim=True)",
            "(exponentials / exponentials.sum(-2, keepdim=True)).mT",
        ),
    },
)


def stable_weights(first: Write, n: int) -> Exercise:
    """By turns: the same in columns, and the row on which subtracting the mean fails."""
    if n % 2:
        return IN_COLUMNS
    return Expose(
        name="stable_weights_2",
        title="Catch it",
        asked=(
            "somebody subtracts the mean of a row in the place of its maximum, and has tried it on scores"
            " around 500; write scores on which it fails"
        ),
        of=first,
        slip="you subtract the row's mean; one score far above the mean still overflows",
        solution='stable_weights_2 = {"scores": torch.tensor([[0.0, 0.0, 300.0]])}',
        remember="a shift by the mean bounds no score: one far above it overflows; the maximum bounds them all",
        hints=(
            "Above which number is exp inf in float32?",
            "How far above the mean of its row can a score lie?",
            "Which row of three scores has one of them more than 89 above the mean?",
        ),
        slips={
            "no score lies more than 88 above the mean of its row, and so no exponential overflows: put one farther out": (
                lambda scores: bool((scores - scores.mean(-1, keepdim=True)).max() <= 88)
            ),
        },
    )


def scaled_attention(first: Write, n: int) -> Exercise:
    """The inputs that tell the width of the values from that of the keys."""
    return Expose(
        name="scaled_attention_2",
        title="Catch it",
        asked=(
            "somebody divides the scores by the root of the VALUES' width, and all of their tests pass; write"
            " query, key and value on which it fails"
        ),
        of=first,
        slip="you divide by the root of the value's width; d_k is the width of query and key",
        solution=(
            "scaled_attention_2 = {\n"
            '    "query": torch.tensor([[1.0, 2.0]]),\n'
            '    "key": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),\n'
            '    "value": torch.tensor([[3.0], [5.0]]),\n'
            "}"
        ),
        remember="a test whose axes are equally long cannot see which of them a formula uses: take another length for each",
        hints=(
            "Which two numbers does the mistake exchange? When are they the same?",
            "With a single key, what is its weight, whatever the score?",
            "Do the weights change when every score of a row is the same?",
        ),
        slips={
            "values and keys are equally wide here, so both roots are the same: take another width": (
                lambda query, key, value: key.shape[-1] == value.shape[-1]
            ),
            "with one key its weight is 1, whatever you divide by: take two": (
                lambda query, key, value: key.shape[-2] == 1
            ),
            "a query of only zeros has equal scores, whatever you divide by": (
                lambda query, key, value: not bool(query.any())
            ),
            "all values are the same, so every mean of them is, too": (
                lambda query, key, value: bool((value == value[..., :1, :]).all())
            ),
        },
    )
