"""Exercises of lesson 02, scoring: how relevant is this to that?"""

import math
from typing import Any

import torch

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.lesson_02_code import attention, repair, stable
from lesson_lib.scores import dot

score_ratio = Number(
    name="score_ratio",
    title="Two points more",
    stars=1,
    minutes=4,
    why="softmax sees differences of scores and nothing else; everything later leans on it",
    asked=(
        "token 3's scores are [4, 12, 10]; key 2's weight is how many times key 3's? (no 1/sqrt(d), as in the"
        " example)"
    ),
    value=math.exp(2),
    hints=(
        (
            "Each weight is exp(score) over one sum. Which part of that fraction do two keys of the same row"
            " share?"
        ),
        "What remains of weight 2 / weight 3 when the common sum cancels?",
        "exp(a) / exp(b) is exp of what? Put a = 12 and b = 10.",
    ),
    solution="exp(12) / exp(10) = exp(12 - 10) = exp(2) = 7.3891",
    remember=(
        "the ratio of two weights is exp(difference of their scores); a common shift of all scores changes"
        " nothing"
    ),
    slips={
        "you divided the scores (12/10); softmax compares exp(score), so their difference counts": 1.2,
        "that is the difference of the scores; the ratio of the weights is exp of it": 2,
        "upside down: that is key 3's weight over key 2's": "exp(-2)",
        "that is key 2's share of the whole row; asked is key 2 against key 3 alone": 0.88054,
        "you divided the scores by sqrt(3) first; the worked example has no 1/sqrt(d)": "exp(2 / sqrt(3))",
        "you took exp of the ratio 12/10; take exp of the difference": "exp(1.2)",
        "powers of 2: softmax uses powers of e": 4,
        "that is exp(12) alone; divide it by exp(10)": "exp(12)",
    },
    right=(7.389, "e**2", "exp(12) / exp(10)"),
)


def _unscaled_picture() -> Any:
    from lesson_lib import plots

    query, key = drawn(6, 6, 256), drawn(8, 8, 256)
    value = torch.ones_like(key)
    tables = {
        "q . k": attend(query, key, value, score=dot).weights,
        "q . k / sqrt(256)": attend(query, key, value).weights,
    }
    return plots.heatmap(
        tables,
        alt=(
            "Two heat maps of 6 queries by 8 keys. Left, unscaled: one bright cell in each row. Right,"
            " scaled: a mixture."
        ),
        caption="The same random queries and keys of width 256: plain dot products choose, scaled ones mix.",
        limits=(0.0, 1.0),
    )


guess = Choice(
    name="unscaled_picture",
    title="What does width do?",
    stars=1,
    minutes=4,
    why="the picture of saturation: you will recognise it in a model that does not learn",
    asked="6 random queries, 8 random keys, d = 256, plain dot products: what do the weights look like?",
    options={
        "a": "every cell about 1/8",
        "b": "one bright cell in each row, its column left to chance; the others nearly 0",
        "c": "a bright diagonal",
        "d": "one bright column: all queries prefer the same key",
        "e": "one bright cell in each column, so that columns sum to 1",
        "f": "many cells at exactly 0, the rest equal",
    },
    hints=(
        "A score is a sum of 256 products of independent numbers. How large is it, typically?",
        "If scores in a row differ by 16 or so: what is exp(16)?",
        (
            "Is any query related to any particular key here? What does that say about WHERE the bright cells"
            " are?"
        ),
    ),
    solution=(
        "b: scores have a standard deviation of sqrt(256) = 16; softmax turns such gaps into a choice of one"
        " key."
    ),
    remember="unscaled scores grow with sqrt(d); softmax of large scores picks one key and hardly mixes",
    slips={
        "a would need scores that hardly differ; here their standard deviation is sqrt(256) = 16": "a",
        "c would need query i to resemble key i; they were drawn independently": "c",
        "d would need one key with a large score for all queries; random directions have no common favourite": (
            "d"
        ),
        "e sums over the wrong axis: each ROW, one query, sums to 1": "e",
        "f cannot be: exp is never exactly 0 for scores this close, and unequal scores give unequal weights": (
            "f"
        ),
    },
    right=("b", " B ) "),
    picture=_unscaled_picture,
)

variance = Number(
    name="score_variance",
    title="When sqrt(d) is not enough",
    stars=3,
    minutes=8,
    why="the usual argument for 1/sqrt(d) assumes mean 0; here you see what the assumption is worth",
    asked=(
        "parts of q and k are independent with mean 2 and variance 1, d = 16: what is the variance of q . k?"
    ),
    value=144,
    hints=(
        "q . k is a sum of 16 independent products. What is the variance of a sum of independent terms?",
        (
            "For one product x y: the variance is E[x^2 y^2] - (E[x y])^2. What is E[x^2] when the mean is 2"
            " and the variance 1?"
        ),
        (
            "E[x^2] = variance + mean^2 = 5, for y alike, and they are independent. What is 5 * 5 - 4 * 4, 16"
            " times?"
        ),
    ),
    solution="one product: E[x^2] E[y^2] - (E[x] E[y])^2 = 5 * 5 - 4 * 4 = 9; the sum of 16: 16 * 9 = 144",
    remember=(
        "var(q . k) = d only for parts of mean 0 and variance 1; a mean adds variance, and a common offset"
        " besides"
    ),
    slips={
        "16 holds for mean 0; with mean 2 each product varies more": 16,
        "9 is right for one product; q . k sums 16 of them": 9,
        "you left out the square of the mean: E[x^2] E[y^2] - (E[x] E[y])^2": 400,
        "you added the variances of x and y; they are multiplied, and means come in, too": 32,
        "that is the standard deviation; asked is the variance": "sqrt(144)",
        "you multiplied by d^2; variances of independent terms add up: d times": "16 * 16 * 9",
        "that is after dividing by sqrt(16); asked is q . k itself": "144 / 4",
    },
    right=(144, "16 * 9", "16 * (5 * 5 - 4 * 4)"),
)

why = Open(
    name="why_the_root",
    title="Why the root?",
    stars=2,
    minutes=6,
    why="many give another reason; can you tell them apart?",
    asked="in two or three sentences: why divide by sqrt(d_k), and why not by d_k itself?",
    hints=(
        "How does the typical size of q . k depend on d_k, for parts of mean 0 and variance 1?",
        "What do very large scores do to softmax, and to its gradient?",
        "After dividing by d_k, how large are the scores at d_k = 1,024, and what do the weights become?",
    ),
    solution=(
        "For independent parts of mean 0 and variance 1 the variance of q . k is d_k, so its standard"
        " deviation grows as sqrt(d_k). Large scores saturate softmax: one weight near 1, and almost no"
        " gradient. Dividing by sqrt(d_k) keeps the scores at a spread of 1 for every width; dividing by d_k"
        " would shrink them to 1/sqrt(d_k), and the weights of a wide model would start nearly uniform."
    ),
    remember="sqrt(d_k) is the standard deviation of the score: dividing by it makes the width irrelevant",
    wrong={
        "rows sum to 1 without it: that is softmax's own doing": (
            r"\b(so"
            r" that|so|make|makes|because|ensures?|guarantees?)\b.{0,30}\b(rows?|weights?).*(sum|add).*(1|one)\b"
        ),
        "overflow is prevented by subtracting the maximum, whatever the scale": r"overflow",
        "softmax takes any real number; nothing has to lie between 0 and 1": (
            r"between 0 and 1|need.*positive"
        ),
        "it costs time rather than saving it: the number of operations does not fall": (
            r"\bfaster\b|\bcheaper\b|speeds? up"
        ),
        "it does not normalise the vectors: their length still counts, as it does not in a cosine": (
            r"cosine|unit length|unit vector"
        ),
        "it does not depend on the number of keys or the length of the sequence": (
            r"number of (keys|tokens)|sequence length"
        ),
    },
    points={
        "how large does q . k get as d_k grows (its variance, or standard deviation)?": (
            r"varian|standard deviation|\bstd\b|spread|grow|larger"
        ),
        "what do large scores do to softmax, or to its gradient?": (
            r"satur|gradient|one[- ]hot|sharp|peak|single key|one key|argmax"
        ),
        "what would dividing by d_k itself do?": (
            r"uniform|flat|too (small|much|strong|weak)|tiny|shrink|average|equal|same|overdo|zero|1/[mn]\b"
        ),
    },
    slips={
        "rows sum to 1 without it: that is softmax's own doing": (
            "We divide by the root so that the rows sum to 1."
        ),
        "overflow is prevented by subtracting the maximum, whatever the scale": (
            "It prevents overflow of exp."
        ),
        "softmax takes any real number; nothing has to lie between 0 and 1": (
            "Softmax needs inputs between 0 and 1."
        ),
        "it costs time rather than saving it: the number of operations does not fall": (
            "It makes attention faster."
        ),
        "it does not normalise the vectors: their length still counts, as it does not in a cosine": (
            "It turns the dot product into the cosine of the angle."
        ),
        "it does not depend on the number of keys or the length of the sequence": (
            "It corrects for the number of keys in the sum."
        ),
    },
    right=(
        (
            "The variance of the score grows with d_k, so large widths give one-hot weights without gradient;"
            " dividing by d_k would make them uniform."
        ),
        (
            "Its standard deviation is sqrt(d_k). Without the division softmax saturates; with d_k itself the"
            " scores would be too small and all keys get equal weight."
        ),
    ),
)

EXERCISES = (score_ratio, stable, attention, repair, guess, variance, why)
