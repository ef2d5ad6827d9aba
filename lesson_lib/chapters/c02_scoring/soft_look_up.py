"""What part 02a asks: six predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.chapters.c02_scoring import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice, Number

PART = "02a_soft_look_up"

ann_share = Choice(
    name="ann_share",
    notebook=PART,
    title="How much for the first?",
    asked="Scores 1, 3 and 5. Which share does the score 1 get?",
    options={"a": "1 of 9, about 11 %", "b": "about 2 %", "c": "nothing", "d": "a third"},
    answer="b",
    remember="one point more than another score means e times its share, about 2.7; you are about to see why",
    slips={
        "that divides each score by the sum 9; it could not work for negative scores": "a",
        "nobody is left out: every share stays positive, however small": "c",
        "equal shares would ignore the scores": "d",
    },
)

query_of_zeros = Choice(
    name="query_of_zeros",
    notebook=PART,
    title="A query of zeros",
    asked="You ask with the query [0, 0]. What comes back?",
    options={"a": "0", "b": "23.33, the average of 10, 20 and 40", "c": "40", "d": "an error"},
    answer="b",
    remember="all scores are 0, and equal scores give equal shares",
    slips={
        "the scores are 0, and the shares are not: e to the 0 is 1, for each of the three": "a",
        "the last key is ahead only while the query points its way; here all three tie": "c",
        "nothing is wrong with a score of 0: it is a number like any other": "d",
    },
)

plus_or_times = Choice(
    name="plus_or_times",
    notebook=PART,
    title="Plus 100, times 10",
    asked="Add 100 to every score; or multiply every score by 10. What changes the shares?",
    options={"a": "both", "b": "only adding", "c": "only multiplying", "d": "neither"},
    answer="c",
    remember="softmax sees differences of scores: adding keeps them, multiplying stretches them",
    slips={
        "adding 100 multiplies every power by e to the 100, and their sum too: it cancels": "a",
        "it is the other way round: a common sum cancels, a common factor stretches the differences": "b",
        "multiplying by 10 turns a difference of 2 into one of 20": "d",
    },
)

score_by_hand = Number(
    name="score_by_hand",
    notebook=PART,
    title="One score by hand",
    asked="The first query is [1, 0, 2], the second key [4, 4, 0]. What is their score?",
    answer="1 * 4 + 0 * 4 + 2 * 0",
    value=4,
    remember="a score is a dot product: multiply in pairs, then add",
    slips={
        "that is the score with the first key, [0, 1, 1]": 2,
        "you added all the numbers; multiply in pairs first": 11,
        "that is the second query's score with the second key": 16,
        "either that is the third query, or you paired the 2 with the second 4: a zero keeps its place": 12,
        "you divided by the root of the width; this score is the plain dot product": "4 / sqrt(3)",
        "that is the product of the two sums; multiply pair by pair, then add": "(1 + 0 + 2) * (4 + 4 + 0)",
    },
)

padding_share = Choice(
    name="padding_share",
    notebook=PART,
    title="The empty chair",
    asked="Ann has the score -1, Ben -3, the empty chair 0. Which share does the chair get?",
    options={"a": "none: 0 means do not look", "b": "a third", "c": "71 %", "d": "26 %"},
    answer="c",
    remember="0 is the largest score, so the chair wins: 1 / (1 + 0.37 + 0.05)",
    slips={
        "a score of 0 is a number like any other; e to the 0 is 1, which is not nothing": "a",
        "the three scores differ, so the shares do": "b",
        "that is the share of the score -1; 0 is larger": "d",
    },
)


def soft_look_up(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "m d_k"],
    value: Float[Tensor, "m d_v"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


def _asks(query: object, key: object, value: object) -> Case:
    return {"query": query, "key": key, "value": value}


def _more_soft_look_up(drawn: Draw) -> list[Case]:
    return [_asks(drawn(1, 7, 3), drawn(2, 11, 3), drawn(3, 11, 5))]


write_soft_look_up = Write(
    name="soft_look_up",
    notebook=PART,
    second=lambda n: seconds.soft_look_up(write_soft_look_up, n),
    title="The soft look-up",
    stars=1,
    minutes=6,
    why="this is the function of the whole course",
    asked="score each key by a dot product, softmax each row, mix the values: one output row per query",
    stages=(
        Stage(
            "one query, one key: its value comes back",
            lambda: [_asks(table([[1.0, 2.0]]), table([[1.0, 1.0]]), table([[20.0]]))],
            "With a single key, its share is 1, whatever the score.",
        ),
        Stage(
            "one query, three keys",
            lambda: [
                _asks(
                    table([[1.0, 2.0]]),
                    table([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]),
                    table([[10.0], [20.0], [40.0]]),
                )
            ],
            "Three shares, three values, one mixture.",
        ),
        Stage(
            "two queries at once, values of width 3",
            lambda: [
                _asks(drawn(1, 2, 5), drawn(2, 7, 5), primes(7, 3)),
                _asks(drawn(4, 3, 3), drawn(5, 3, 3), drawn(6, 3, 3)),
            ],
            "One query is right, two are not: each row needs a softmax of its own.",
        ),
    ),
    hints=(
        "Which product of (n, d) and (m, d) has one number for each query and key, (n, m)?",
        "Along which axis do the weights of one query sum to 1?",
        "Weights are (n, m), values (m, d_v). Which product is (n, d_v)?",
    ),
    solution=soft_look_up,
    hidden=_more_soft_look_up,
    remember="scores, softmax over the keys, mix: query @ key.mT, softmax(-1), @ value",
    slips={
        "softmax is missing: you mix the values with the scores themselves": (
            "torch.softmax(scores, dim=-1)",
            "scores",
        ),
        "your softmax runs over the queries (dim=-2); it must run over the keys (dim=-1)": (
            "dim=-1",
            "dim=-2",
        ),
        "you give back the weights; mix the values with them": ("weights @ value", "weights"),
        "you give back the scores": (
            "    weights = torch.softmax(scores, dim=-1)\n",
            "",
            "weights @ value",
            "scores",
        ),
        "that is the dictionary: only the best key counts; mix all values": (
            "torch.softmax(scores, dim=-1)",
            "(scores == scores.amax(-1, keepdim=True)).float()",
        ),
        "you divide the scores by their sum; softmax takes e to each score first": (
            "torch.softmax(scores, dim=-1)",
            "scores / scores.sum(-1, keepdim=True)",
        ),
        "you divide by the root of the width; that is for the next part, and here scores stay as they are": (
            "query @ key.mT",
            "query @ key.mT / query.shape[-1] ** 0.5",
        ),
        "one softmax over the whole table: each query needs its own": (
            "torch.softmax(scores, dim=-1)",
            "scores.flatten().softmax(0).view_as(scores)",
        ),
        "e to each score is there, but it is not divided by its sum over the row": (
            "torch.softmax(scores, dim=-1)",
            "scores.exp()",
        ),
        **exchanged("scores = query"),
    },
)


def without_padding(
    scores: Float[Tensor, "b n m"],
    real: Bool[Tensor, "b m"],
) -> Float[Tensor, "b n m"]:
    hidden = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(hidden, dim=-1)


def _lists(scores: object, real: list[list[bool]]) -> Case:
    return {"scores": scores, "real": torch.tensor(real)}


def _more_without_padding(drawn: Draw) -> list[Case]:
    real = [[True] * 5 + [False] * 2, [True] * 2 + [False] * 5, [True] * 7]
    return [_lists(drawn(1, 3, 3, 7), real)]


def _zeroed_afterwards(scores: Tensor, real: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) * real[:, None, :]


write_without_padding = Write(
    name="without_padding",
    notebook=PART,
    second=lambda n: seconds.without_padding(write_without_padding, n),
    title="Hide the empty chair",
    stars=2,
    minutes=6,
    why="a batch of lists of different lengths is what every model reads",
    asked="weights (b, n, m) in which a key that is not real has weight 0, and each row still sums to 1",
    stages=(
        Stage(
            "one list, its last key empty",
            lambda: [_lists(table([[[-1.0, -3.0, 0.0]]]), [[True, True, False]])],
            "Which score has e to the score = 0?",
        ),
        Stage(
            "real scores far below 0",
            # in float64 whoever shares the rest anew after the softmax is right, too
            lambda: [_lists(table([[[-101.0, -100.0, 0.0]]]).double(), [[True, True, False]])],
            "Is the score of the empty place below every real one?",
        ),
        Stage(
            "two lists of different lengths",
            lambda: [
                _lists(table([[[1.0, 3.0, 5.0]], [[-1.0, -3.0, 0.0]]]), [[True] * 3, [True, True, False]])
            ],
            "`real` is (b, m), scores are (b, n, m): where does `real` need an axis of length 1?",
        ),
        Stage(
            "two queries for each list",
            lambda: [_lists(drawn(5, 2, 2, 3, spread=2.0), [[True, False, True], [True, True, False]])],
            "Every query of a list must miss the same keys.",
        ),
    ),
    hints=(
        "e to which number is exactly 0?",
        "`scores.masked_fill(where, number)` writes where `where` is True. Is that `real`, or its opposite?",
        "`real[:, None, :]` has shape (b, 1, m). Why does the axis of length 1 belong in the middle?",
    ),
    solution=without_padding,
    hidden=_more_without_padding,
    remember="-inf before the softmax: the weight is exactly 0, and the others share the whole",
    slips={
        "you hide the real keys and keep the empty ones: turn the mask round with ~": ("~real", "real"),
        "you set the score to 0, and 0 is a score like any other: use -inf": ("-torch.inf", "0.0"),
        "you set weights to 0 after the softmax: the rest of the row no longer sums to 1": _zeroed_afterwards,
        "nothing is hidden: softmax sees the scores as they came": (
            "torch.softmax(hidden",
            "torch.softmax(scores",
        ),
        "softmax runs over the queries (dim=-2); it must run over the keys (dim=-1)": ("dim=-1", "dim=-2"),
        "you hide rows, the queries; padding hides keys, which are the columns: real[:, None, :]": (
            "real[:, None, :]",
            "real[:, :, None]",
        ),
        "a hidden score of +inf: inf - inf is nan; write -inf": ("-torch.inf", "torch.inf"),
        "hidden scores are large, so they take all the weight: the minus is missing; write -inf": (
            "-torch.inf",
            "1e9",
        ),
        "softmax runs over the batch (dim=0); it must run over the keys (dim=-1)": ("dim=-1", "dim=0"),
        "these are the hidden scores; the weights are the softmax of them": (
            "torch.softmax(hidden, dim=-1)",
            "hidden",
        ),
        "a hidden score of -100 lies above real scores that are lower; write -inf": ("-torch.inf", "-100.0"),
    },
)

ann_first = Choice(
    name="ann_first",
    notebook=PART,
    title="Ann first",
    asked="With which query does Ann get the largest share?",
    options={"a": "[3, 0]", "b": "[1, -1]", "c": "[-1, 0]", "d": "[0, 3]"},
    answer="b",
    remember="it gives the scores 1, 0 and -1: whoever knows prices loses",
    slips={
        "all three know tea alike, so all score 3, and each gets a third": "a",
        "all three score -1, and each gets a third": "c",
        "it asks for prices alone, of which Ann knows nothing: scores 0, 3 and 6": "d",
    },
)

ASKED = (
    ann_share,
    plus_or_times,
    write_soft_look_up,
    query_of_zeros,
    score_by_hand,
    padding_share,
    write_without_padding,
    ann_first,
)
