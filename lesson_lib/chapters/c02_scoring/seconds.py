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


def _equal_scores(query: Tensor, key: Tensor, value: Tensor) -> bool:
    scores = query @ key.mT
    return scores.shape[-2] == scores.shape[-1] and bool((scores == scores[..., :1, :1]).all())


def soft_look_up(first: Write, _n: int) -> Exercise:
    """Inputs that tell the rows of a table from its columns."""
    return Expose(
        name="soft_look_up_2",
        title="Catch it",
        asked="somebody's softmax runs over the queries; write query, key and value on which it fails",
        of=first,
        slip="your softmax runs over the queries (dim=-2); it must run over the keys (dim=-1)",
        solution=(
            "soft_look_up_2 = {\n"
            '    "query": torch.tensor([[1.0, 2.0]]),  # one query: each column is a single number\n'
            '    "key": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),\n'
            '    "value": torch.tensor([[3.0], [5.0]]),\n'
            "}"
        ),
        remember="one query and several keys: then a softmax over the queries gives each key the weight 1",
        hints=(
            "What does a softmax give for a single number?",
            "How many numbers stand in a column, if there is one query?",
            "With one query and two keys, what do the two weights of the wrong function sum to?",
        ),
        slips={
            "all scores are equal, and there are as many queries as keys: the shares are the same both ways": (
                _equal_scores
            ),
            "all values are 0, so every mixture of them is, too": (
                lambda query, key, value: not bool(value.any())
            ),
        },
    )


def without_padding(first: Write, _n: int) -> Exercise:
    """Lists on which a score of 0 hides nothing."""
    return Expose(
        name="without_padding_2",
        title="Catch it",
        asked=(
            "somebody hides a key by setting its score to 0, and has tried it on large scores only; write scores"
            " (b, n, m) and real (b, m) on which it fails"
        ),
        of=first,
        slip="you set the score to 0, and 0 is a score like any other: use -inf",
        solution=(
            "without_padding_2 = {\n"
            '    "scores": torch.tensor([[[-1.0, -3.0, 0.0]]]),\n'
            '    "real": torch.tensor([[True, True, False]]),\n'
            "}"
        ),
        remember="beside scores of 30 a 0 looks hidden, beside -1 it wins: test a mask with negative scores",
        hints=(
            "e to the 0 is 1. Beside which other powers is 1 nothing?",
            "Are scores ever negative?",
            "Which share does the hidden key get, if the others score -1 and -3?",
        ),
        slips={
            "every key is real, so nothing is to be hidden": lambda scores, real: bool(real.all()),
            "the real keys score so high that e to the 0 is nothing beside them: take smaller ones": (
                lambda scores, real: bool((scores.masked_fill(~real[:, None], -1e9).amax(-1) > 8).all())
            ),
        },
    )


def slopes_2(weights: Float[Tensor, " m"], temperature: float) -> Float[Tensor, "m m"]:
    return (weights.diag() - weights[:, None] * weights[None, :]) / temperature


WITH_TEMPERATURE = Write(
    name="slopes_2",
    title="Slopes with a temperature",
    asked=(
        "now the weights are softmax(scores / temperature): write the (m, m) table of their slopes, by how much"
        " weight i moves when score j moves"
    ),
    stages=(
        Stage(
            "temperature 1: the table that you know",
            lambda: [{"weights": table([0.5, 0.5]), "temperature": 1.0}],
            "With temperature 1 nothing has changed.",
        ),
        Stage(
            "temperature 2",
            lambda: [{"weights": table([0.7, 0.2, 0.1]), "temperature": 2.0}],
            "The chain rule: the inner function is score / temperature, and its own slope is ...",
        ),
        Stage(
            "temperature 0.5",
            lambda: [{"weights": table([0.4, 0.3, 0.15, 0.1, 0.05]), "temperature": 0.5}],
            "A low temperature makes the weights move more.",
        ),
    ),
    hints=(
        "What is the slope of score / temperature, as a function of the score?",
        "The chain rule multiplies the outer slope, which you have written, with the inner one. Where does it go?",
        "Do weights move more or less, if every score is divided by 10 before the softmax?",
    ),
    solution=slopes_2,
    remember="(diag(w) - w wᵀ) / T: a high temperature makes even weights, and small slopes",
    slips={
        "the temperature is missing: by the chain rule every slope is divided by it": (" / temperature", ""),
        "you multiply by the temperature; the inner slope is 1 / temperature": (" / temp", " * temp"),
        "only the diagonal is divided; every slope is": (
            "(weights.diag() - weights[:, None] * weights[None, :]) / temperature",
            "weights.diag() / temperature - weights[:, None] * weights[None, :]",
        ),
        "you divide by the square of the temperature; once is enough": (
            " / temperature",
            " / temperature**2",
        ),
    },
)


def scaled_scores(first: Write, _n: int) -> Exercise:
    """Inputs that tell the width from the number of keys."""
    return Expose(
        name="scaled_scores_2",
        title="Catch it",
        asked="somebody divides by the root of the number of keys; write query and key on which it fails",
        of=first,
        slip="you divide by the root of the number of keys; the width is the last axis",
        solution=(
            "scaled_scores_2 = {\n"
            '    "query": torch.tensor([[1.0, 2.0]]),\n'
            '    "key": torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),\n'
            "}"
        ),
        remember="take another length for each axis, and a formula cannot take the wrong one in silence",
        hints=(
            "When are the two roots the same number?",
            "The key is (m, d). Which two lengths should differ?",
            "Is there a score that no division changes?",
        ),
        slips={
            "there are as many keys as the vectors are wide, so both roots are the same": (
                lambda query, key: key.shape[0] == key.shape[1]
            ),
            "all scores are 0 here, and 0 divided by anything is 0": (
                lambda query, key: not bool((query @ key.mT).any())
            ),
        },
    )


def additive_scores(first: Write, _n: int) -> Exercise:
    """Inputs that tell a tanh of a sum from a sum of tanhs."""
    return Expose(
        name="additive_scores_2",
        title="Catch it",
        asked=(
            "somebody takes tanh of each side and adds afterwards; write query, key, w_query, w_key and v on"
            " which it fails"
        ),
        of=first,
        slip="you take tanh of each side before adding; add first",
        solution=(
            "additive_scores_2 = {\n"
            '    "query": torch.tensor([[1.0]]),\n'
            '    "key": torch.tensor([[1.0]]),\n'
            '    "w_query": torch.tensor([[1.0]]),\n'
            '    "w_key": torch.tensor([[1.0]]),\n'
            '    "v": torch.tensor([1.0]),\n'
            "}"
        ),
        remember="tanh(1 + 1) is 0.96, tanh(1) + tanh(1) is 1.52: without the sum inside, query and key never meet",
        hints=(
            "What is tanh(0), and tanh(0 + x)?",
            "What are tanh(1 + 1) and tanh(1) + tanh(1)?",
            "Which of the five inputs may all be 1?",
        ),
        slips={
            "one side is 0 behind its matrix, and tanh(0) is 0: then the order does not matter": (
                lambda query, key, w_query, w_key, v: (
                    not bool((query @ w_query).any()) or not bool((key @ w_key).any())
                )
            ),
            "v is 0, and with it every score": lambda query, key, w_query, w_key, v: not bool(v.any()),
        },
    )


def score_variance(first: Number, n: int) -> Number:
    """The variance of a score, for another mean and another width."""

    def make(draw: random.Random) -> Number:
        mean, d = draw.randint(2, 9), draw.choice([8, 16, 24, 32, 48, 64, 100])
        square = mean * mean
        one = (1 + square) ** 2 - square**2
        return replace(
            first,
            asked=(
                f"parts of q and k are independent with mean {mean} and variance 1, d = {d}: what is the variance"
                " of q . k?"
            ),
            answer=f"{d} * ({1 + square}**2 - {square}**2)",
            value=d * one,
            solution=f"one product: {1 + square}^2 - {square}^2 = {one}; the sum of {d}: {d * one}",
            slips={
                f"{d} holds for mean 0; with mean {mean} each product varies more": d,
                f"{one} is right for one product; q . k sums {d} of them": one,
                "you left out the square of the mean: E[x^2] E[y^2] - (E[x] E[y])^2": d * (1 + square) ** 2,
                "that is the standard deviation; asked is the variance": f"sqrt({d * one})",
                "you multiplied by d^2; variances of independent terms add up: d times": d * d * one,
            },
        )

    return fresh(n, make)
