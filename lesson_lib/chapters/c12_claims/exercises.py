"""What part 12 asks: four predictions, and two functions that the learner writes."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c12_claims import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number

PART = "12_claims"

strangers_weight = Choice(
    name="strangers_weight",
    notebook=PART,
    title="The stranger",
    asked=(
        "A node has two neighbours, each with a score of 1, and a stranger, whose score is set to 0. Then comes"
        " softmax. Which weight does the stranger get?"
    ),
    options={"a": "0", "b": "0.155", "c": "0.333"},
    answer="b",
    remember="e^0 = 1, and 1 / (e + e + 1) = 0.155: nearly a sixth",
    slips={
        "a score of 0 is a score like any other: exp makes 1 of it": "a",
        "that would be all scores alike; e = 2.718 is more than 1": "c",
    },
)


def to_the_letter(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "m d"],
    value: Float[Tensor, "m d_v"],
    mask: Bool[Tensor, "n m"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, 0.0)
    return scores.softmax(-1) @ value


def _nodes() -> Case:
    """Two neighbours with a score of 1, and a stranger."""
    ones = table([[1.0]])
    keys = table([[1.0], [1.0], [1.0]])
    seen = torch.tensor([[True, True, False]], device=ones.device)
    return {"query": ones, "key": keys, "value": table([[0.0], [0.0], [1.0]]), "mask": seen}


def _graph(seed: int, n: int, m: int, d: int, d_v: int, draw: Draw = drawn) -> Case:
    q, k, v = draw(seed, n, d), draw(seed + 1, m, d), draw(seed + 2, m, d_v)
    mask = draw(seed + 3, n, m) > 0
    mask[:, 0] = True
    return {"query": q, "key": k, "value": v, "mask": mask}


def _more_graphs(draw: Draw) -> list[Case]:
    return [_graph(1, 5, 3, 2, 4, draw), _graph(9, 3, 7, 5, 2, draw)]


def _zeroed(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = torch.einsum("nd,md->nm", query, key) / query.shape[-1] ** 0.5
    powers = torch.where(mask, scores.exp(), torch.ones_like(scores))
    return powers @ value / powers.sum(-1, keepdim=True)


write_to_the_letter = Write(
    name="to_the_letter",
    notebook=PART,
    second=lambda n: seconds.KINDLY,
    title="Code the sentence to the letter",
    stars=1,
    minutes=4,
    why="whoever codes a sentence adds nothing that does not stand in it",
    asked=(
        "write attention along edges as the sentence says: scores over the root of d; where `mask` is False"
        " (not connected) the score is set to 0; softmax; mix. Outputs (n, d_v)"
    ),
    stages=(
        Stage(
            "two neighbours with a score of 1, a stranger whose value is 1",
            lambda: [_nodes()],
            "The output is the stranger's weight: 0.1554.",
        ),
        Stage(
            "three nodes, three keys",
            lambda: [_graph(11, 3, 3, 2, 2)],
            "Scores are set to 0 before the softmax.",
        ),
        Stage(
            "four queries, six keys, values of width 3",
            lambda: [_graph(21, 4, 6, 2, 3), _graph(31, 4, 4, 3, 3)],
            "Divide by the root of the width of a query.",
        ),
    ),
    reference=_zeroed,
    hints=(
        "How do you compute the scores, and by what are they divided?",
        "masked_fill fills where its mask is True. Where must the 0 stand?",
        "Does the softmax come before the 0, or behind it?",
    ),
    solution=to_the_letter,
    hidden=_more_graphs,
    remember="it runs, every shape fits, and strangers are heard",
    slips={
        "that is the kind reading, and attend's: the score of a stranger is -inf. To the letter it is 0": (
            "masked_fill(~mask, 0.0)",
            "masked_fill(~mask, -torch.inf)",
        ),
        "you set the WEIGHT to 0, behind the softmax; the sentence says the score": (
            "scores = scores.masked_fill(~mask, 0.0)\n    return scores.softmax(-1) @ value",
            "return scores.softmax(-1).masked_fill(~mask, 0.0) @ value",
        ),
        "it is where `mask` is True that they are connected: you set the neighbours' scores to 0": (
            "~mask",
            "mask",
        ),
        "the sentence is missing: nobody's score is set to 0": (
            "    scores = scores.masked_fill(~mask, 0.0)\n",
            "",
        ),
        "the scores are not divided by the root of d": (" / query.shape[-1] ** 0.5", ""),
        "softmax runs over the keys, the last axis": ("softmax(-1)", "softmax(0)"),
        "you divide by d; it is its root": ("** 0.5", "** 1.0"),
        "your mask is transposed: its rows are queries, its columns keys": ("~mask", "~mask.mT"),
        "you multiply the scores by the root of d; divide by it": ("/ query.shape", "* query.shape"),
        "softmax is missing: you mix the values with the raw scores": ("scores.softmax(-1)", "scores"),
        **exchanged("scores = query"),
    },
)

square_errors = Choice(
    name="square_errors",
    notebook=PART,
    title="Does anything complain?",
    asked=(
        "All four, tried on four tokens of width 4 under a causal mask. How many raise an error, or give nan?"
    ),
    options={"a": "none", "b": "one", "c": "two", "d": "all four"},
    answer="a",
    remember="every axis has the length 4, so every product fits; two are wrong in silence",
    slips={
        "exp(-inf) is 0, and as each sees itself, no sum is 0; values in place of keys fit: (4, 4)": "b",
        "exp of scores of ordinary size is finite, and 0 and -1e9 are numbers": "c",
        "a wrong formula is no error of Python's": "d",
    },
)

how_many_hold = Choice(
    name="how_many_hold",
    notebook=PART,
    title="Five texts, read kindly",
    asked=("The ledger has 95 rows. Each sentence is given its kindest reading. How many are false even so?"),
    options={"a": "two", "b": "about twenty", "c": "about forty"},
    answer="a",
    remember="two are false; 16 are true in part, or under a condition that the text does not name",
    slips={
        "our first ledger said 22, too; read kindly, what holds in part or on a condition is not false": "b",
        "at first about so many seemed true under a condition, which is not false; read kindly, 16 are": "c",
    },
)

infinite_value = Choice(
    name="infinite_value",
    notebook=PART,
    title="Hidden, and infinite",
    asked="Three tokens, a causal mask; all values are 1, but the third is infinite. What does the first get?",
    options={"a": "1", "b": "inf", "c": "nan"},
    answer="c",
    remember="its weight on the third is 0, and 0 times inf is nan",
    slips={
        "a weight of 0 is multiplied like any other: what is 0 times inf?": "a",
        "that would need a weight above 0": "b",
    },
)


def share_on_itself(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "d d_k"],
    w_key: Float[Tensor, "d d_k"],
) -> Float[Tensor, ""]:
    weights = attend(x @ w_query, x @ w_key, x).weights
    return (weights.argmax(-1) == torch.arange(len(x), device=x.device)).double().mean()


def _tokens(x: Any, w_query: Any, w_key: Any) -> Case:
    return {
        name: m if isinstance(m, Tensor) else table(m)
        for name, m in (("x", x), ("w_query", w_query), ("w_key", w_key))
    }


def _random(seed: int, n: int, d: int, d_k: int, draw: Draw = drawn) -> Case:
    return _tokens(draw(seed, n, d), draw(seed + 1, d, d_k), draw(seed + 2, d, d_k))


def _more_tokens(draw: Draw) -> list[Case]:
    return [_random(1, 13, 3, 3, draw), _random(5, 29, 2, 5, draw)]


def _by_scores(x: Tensor, w_query: Tensor, w_key: Tensor) -> Tensor:
    scores = (x @ w_query) @ (x @ w_key).T
    rows = [scores[i, i] >= scores[i].max() for i in range(len(x))]
    return torch.stack(rows).double().mean()


ONE = [[1.0, 0.0], [0.0, 1.0]]
write_share_on_itself = Write(
    name="share_on_itself",
    notebook=PART,
    second=lambda n: seconds.BEFORE_IT,
    title="What would refute it?",
    stars=1,
    minutes=5,
    why="a claim becomes a number: one function, and it can be wrong",
    asked=(
        "tokens x (n, d), and the matrices of queries and keys. Give the share of tokens whose largest weight"
        " is their own: a number from 0 to 1"
    ),
    stages=(
        Stage(
            "two tokens that point in two directions, no projection",
            lambda: [_tokens([[1.0, 0.0], [0.0, 1.0]], ONE, ONE)],
            "Both attend most to themselves: 1.",
        ),
        Stage(
            "keys are turned round: each likes the other one",
            lambda: [_tokens([[1.0, 0.0], [0.0, 1.0]], ONE, [[0.0, 1.0], [1.0, 0.0]])],
            "Nobody: 0.",
        ),
        Stage(
            "a long token that all like",
            lambda: [_tokens([[1.0, 0.0], [3.0, 1.0], [2.0, 0.0]], ONE, ONE)],
            "All three attend most to the second: a third.",
        ),
        Stage("seventeen random tokens", lambda: [_random(35, 17, 5, 3)], "Count, then divide by n."),
    ),
    reference=_by_scores,
    hints=(
        "Which table holds the weights, and which axis are the keys?",
        "argmax over the keys gives a number for each query. When is it the token's own?",
        "How does a count of True become a share?",
    ),
    solution=share_on_itself,
    hidden=_more_tokens,
    remember="say what would refute a sentence, and it becomes a function",
    slips={
        "that is the number of tokens; a share is divided by n": ("mean()", "sum()"),
        "the matrices are not used: queries and keys are made of x with them": (
            "attend(x @ w_query, x @ w_key, x)",
            "attend(x, x, x)",
        ),
        "you ask by whom each key is liked most; ask for each query, along the keys": (
            "argmax(-1)",
            "argmax(0)",
        ),
        "either queries and keys are exchanged, or argmax(0) finds each key's best query: take argmax(-1)": (
            "attend(x @ w_query, x @ w_key, x)",
            "attend(x @ w_key, x @ w_query, x)",
        ),
        "that is the share of the others: largest weight NOT their own": (
            "weights.argmax(-1) == ",
            "weights.argmax(-1) != ",
        ),
        "that is the mean weight on itself; asked is how many have their largest there": (
            "(weights.argmax(-1) == torch.arange(len(x), device=x.device)).double().mean()",
            "weights.diagonal().double().mean()",
        ),
        "you look for the smallest weight": ("argmax", "argmin"),
    },
)

_HINTS = (
    "What are the scores of this query with the keys (0, 1, 1), (4, 4, 0) and (2, 3, 1)?",
    "Which weight does each value get? The table has them.",
    "What is each weight times its value, added up number by number?",
)
output_two = Number(
    name="output_two",
    notebook="sources",
    title="Output 2, left to the reader",
    stars=1,
    minutes=3,
    why="the only exercise of the five texts, together with output 3",
    asked=(
        "query 2 is (2, 2, 2); its weights are 0.0, 1.0 and 0.0; the values are (1, 2, 3), (2, 8, 0) and"
        " (2, 6, 3). What do the three numbers of output 2 add up to?"
    ),
    value=10.0,
    answer="2 + 8 + 0",
    hints=_HINTS,
    solution="its scores are 4, 16 and 12. 0.0 · (1, 2, 3) + 1.0 · (2, 8, 0) + 0.0 · (2, 6, 3) = (2, 8, 0): 10",
    remember="a weight of 1 gives back its value",
    slips={
        "that is output 1; query 2 has weights of its own": "2 + 7 + 1.5",
        "that is output 3": "2 + 7.8 + 0.3",
        "that is key 2; the weights mix values": "4 + 4 + 0",
        "that is the third value; the weight of 1.0 is the second's": "2 + 6 + 3",
        "that is the first value; the weight of 1.0 is the second's": "1 + 2 + 3",
        "these are the scores added up": "4 + 16 + 12",
        "the scores 4, 16 and 12 are used as weights; softmax makes 0.0, 1.0 and 0.0 of them": (
            "4 * 6 + 16 * 10 + 12 * 11"
        ),
        "that is the mean of the values; the weights are not equal": "(6 + 10 + 11) / 3",
        "that is the sum of all values; each counts by its weight": "6 + 10 + 11",
    },
)

output_three = Number(
    name="output_three",
    notebook="sources",
    title="Output 3, left to the reader",
    stars=1,
    minutes=4,
    why="the only exercise of the five texts, together with output 2",
    asked=(
        "query 3 is (2, 1, 3); its weights are 0.0, 0.9 and 0.1; the values are (1, 2, 3), (2, 8, 0) and"
        " (2, 6, 3). What do the three numbers of output 3 add up to?"
    ),
    value=10.1,
    answer="0.9 * 10 + 0.1 * 11",
    hints=_HINTS,
    solution=(
        "its scores are 4, 12 and 10. 0.9 · (2, 8, 0) + 0.1 · (2, 6, 3) = (1.8 + 0.2, 7.2 + 0.6, 0 + 0.3) ="
        " (2, 7.8, 0.3): 10.1"
    ),
    remember="number by number: each value times its weight, added up; unrounded weights give 10.118",
    slips={
        "that is output 1; query 3 has weights of its own": "2 + 7 + 1.5",
        "the weights are swapped: 0.9 belongs to the second value": "0.1 * 10 + 0.9 * 11",
        "the third value is missing: it counts a tenth": "0.9 * 10",
        "these are mixtures of the keys; mix the values": "0.9 * 8 + 0.1 * 6",
        "that is the second value alone; it counts 0.9, and the third one 0.1": "2 + 8 + 0",
        "these are the scores added up": "4 + 12 + 10",
        "the scores 4, 12 and 10 are used as weights; softmax makes 0.0, 0.9 and 0.1 of them": (
            "4 * 6 + 12 * 10 + 10 * 11"
        ),
        "that is the sum of all values; each counts by its weight": "6 + 10 + 11",
        "the weights moved by one: 0.9 is the second's, 0.1 the third's": "0.9 * 6 + 0.1 * 10",
    },
)

EXERCISES = (
    strangers_weight,
    write_to_the_letter,
    square_errors,
    how_many_hold,
    infinite_value,
    write_share_on_itself,
    output_two,
    output_three,
)
