"""What part 02b asks: five predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.chapters.c02_scoring import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "02b_which_score"

who_learns = Choice(
    name="who_learns",
    notebook=PART,
    title="Who learns it?",
    asked="Both train for at most 1,000 steps, at width 256. What happens?",
    options={
        "a": "both learn it",
        "b": "only the one that divides by 16",
        "c": "only the plain dot product",
    },
    answer="b",
    remember="this part asks why",
    slips={
        "they could, if training got so far: what a model can hold and what it learns are two things": "a",
        "large scores look decisive, and that is what goes wrong": "c",
    },
)

growth = Choice(
    name="growth",
    notebook=PART,
    title="How large is a score?",
    asked="Width from 4 to 1,024, numbers of mean 0 and variance 1: the standard deviation of q · k ...",
    options={"a": "stays", "b": "grows to 16 times", "c": "grows to 256 times"},
    answer="b",
    remember="it is √d: a sum of d products of variance 1 has variance d",
    slips={
        "the products differ in sign, but they do not cancel: each adds its variance": "a",
        "that is the variance; the standard deviation is its root": "c",
    },
)

who_is_heard = Choice(
    name="who_is_heard",
    notebook=PART,
    title="Who is heard?",
    asked="No division. How long are the 4,000 gradients?",
    options={
        "a": "all about as long",
        "b": "all nearly 0",
        "c": "half of them nearly 0, a few very long",
    },
    answer="c",
    remember="a weight of nearly 1 has no slope; where two keys tie, long vectors make a long gradient",
    slips={
        "how long one is depends on its slopes, and the lead differs from query to query": "a",
        "where no key leads by much, there are slopes": "b",
    },
)

what_mends = Choice(
    name="what_mends",
    notebook=PART,
    title="What mends it?",
    asked="After 1,000 steps the plain model is far below 95 %. What brings it there within 100?",
    options={
        "a": "a learning rate four times as large",
        "b": "starting with queries and keys a quarter as long",
        "c": "nothing but dividing the scores",
    },
    answer="b",
    remember="(q / 4) · (k / 4) = q · k / 16: it starts where the scaled model starts",
    slips={
        "four times a gradient of nearly 0 is nearly 0: it ends at .67 to .72, with three seeds": "a",
        "the division is one way to a small start, and not the only one": "c",
    },
)

copies = Choice(
    name="copies",
    notebook=PART,
    title="Sixty-four copies",
    asked=(
        "Each vector holds one random number, copied 64 times. Divided by √64 = 8, the scores have a standard"
        " deviation of ..."
    ),
    options={"a": "1", "b": "8", "c": "64"},
    answer="b",
    remember="q · k is 64 times one product: its deviation is 64, and divided by the root it is 64 / 8",
    slips={
        "that needs 64 independent products; here all 64 are the same one": "a",
        "that is before the division": "c",
    },
)


def slopes(weights: Float[Tensor, " m"]) -> Float[Tensor, "m m"]:
    return torch.diag(weights) - weights[:, None] * weights[None, :]


def _more_slopes(drawn: Draw) -> list[Case]:
    return [{"weights": drawn(1, 5).softmax(-1)}, {"weights": drawn(2, 7).softmax(-1)}]


write_slopes = Write(
    name="slopes",
    notebook=PART,
    second=lambda n: seconds.WITH_TEMPERATURE,
    title="All slopes of a softmax",
    stars=2,
    minutes=6,
    why="the matrix that every gradient through attention passes",
    asked="the (m, m) table of slopes: w - w² on the diagonal, - w_i w_j elsewhere",
    stages=(
        Stage(
            "two equal weights",
            lambda: [{"weights": table([0.5, 0.5])}],
            "On the diagonal 0.5 - 0.25, beside it - 0.5 · 0.5.",
        ),
        Stage(
            "three weights that differ",
            lambda: [{"weights": table([0.7, 0.2, 0.1])}],
            "`torch.diag(w)` puts w on the diagonal; which table holds every product w_i w_j?",
        ),
        Stage(
            "five weights",
            lambda: [{"weights": drawn(3, 5).softmax(-1)}],
            "Every row sums to 0, since the weights always sum to 1.",
        ),
    ),
    hints=(
        "Which function of torch puts a vector on the diagonal of a matrix?",
        "w[:, None] is (m, 1) and w[None, :] is (1, m). What is their product?",
        "Off the diagonal, what is 0 - w_i w_j?",
    ),
    solution=slopes,
    hidden=_more_slopes,
    remember="diag(w) - w wᵀ: zero where one weight is 1",
    slips={
        "the diagonal is missing: you give - w_i w_j everywhere": ("torch.diag(weights) - ", "-"),
        "only the diagonal is there: the slopes of the other weights, - w_i w_j, are missing": (
            " - weights[:, None] * weights[None, :]",
            " - torch.diag(weights**2)",
        ),
        "the sign is turned round: a weight grows with its own score": (
            "torch.diag(weights) - weights[:, None] * weights[None, :]",
            "weights[:, None] * weights[None, :] - torch.diag(weights)",
        ),
        "you add the products; they are subtracted": (") - weights", ") + weights"),
        "the squares are missing: you give diag(w)": (" - weights[:, None] * weights[None, :]", ""),
        "the input holds weights already: you apply softmax a second time": (
            "    return torch.diag",
            "    weights = weights.softmax(-1)\n    return torch.diag",
        ),
        "the diagonal is right; beside it the minus is missing: a higher score takes from all others": (
            "torch.diag(weights) -",
            "torch.diag(weights - 2 * weights**2) +",
        ),
    },
)


def scaled_scores(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "m d"],
) -> Float[Tensor, "n m"]:
    return query @ key.mT / query.shape[-1] ** 0.5


def _pairs(query: object, key: object) -> Case:
    return {"query": query, "key": key}


def _more_scaled_scores(drawn: Draw) -> list[Case]:
    return [_pairs(drawn(1, 5, 11), drawn(2, 7, 11)), _pairs(drawn(3, 2, 3), drawn(4, 13, 3))]


write_scaled_scores = Write(
    name="scaled_scores",
    notebook=PART,
    second=lambda n: seconds.scaled_scores(write_scaled_scores, n),
    title="The scaled dot product",
    stars=1,
    minutes=3,
    why="the score of nearly every model since 2017",
    asked="a table of scores (n, m): each query times each key, divided by the root of their width",
    stages=(
        Stage(
            "one query, one key, width 4",
            lambda: [_pairs(table([[1.0, 2.0, 0.0, 1.0]]), table([[3.0, 1.0, 5.0, 1.0]]))],
            "The dot product is 6, the root of 4 is 2.",
        ),
        Stage(
            "three queries, five keys, width 7",
            lambda: [_pairs(drawn(1, 3, 7), drawn(2, 5, 7))],
            "The width is the last axis of query and key: `query.shape[-1]`.",
        ),
    ),
    hints=(
        "Which product of (n, d) and (m, d) has a number for each pair?",
        "Which axis of the query is d?",
        "What is `x ** 0.5`?",
    ),
    solution=scaled_scores,
    hidden=_more_scaled_scores,
    remember="q · k / √d, with d the width of the vectors that are multiplied",
    slips={
        "you forgot to divide by the root of the width": (" / query.shape[-1] ** 0.5", ""),
        "you divide by the width; divide by its root": (" ** 0.5", ""),
        "you multiply by the root; divide by it": (" / query", " * query"),
        "you divide by the root of the number of keys; the width is the last axis": (
            "query.shape[-1]",
            "key.shape[0]",
        ),
        "you divide by the root of the number of queries; the width is the last axis": (
            "shape[-1]",
            "shape[0]",
        ),
        "these are weights; asked are the scores, before softmax": (
            "query @ key.mT / query.shape[-1] ** 0.5",
            "(query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)",
        ),
        "queries and keys have changed places: your table is (m, n), and a row must be a query's": (
            "query @ key.mT",
            "key @ query.mT",
        ),
        "`/ d * 0.5` halves, and so does `/ d ** 1 / 2`; the root is `** 0.5`": ("** 0.5", "* 0.5"),
        "(d ** 1 / 2) is d / 2, since the power comes first; the root is `** 0.5`": ("** 0.5", "* 2"),
    },
)

ASKED = (
    who_learns,
    growth,
    write_slopes,
    who_is_heard,
    write_scaled_scores,
    what_mends,
    copies,
)
