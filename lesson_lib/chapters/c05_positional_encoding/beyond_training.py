"""What part 05c asks: five predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.short import Choice, Number

PART = "05c_beyond_training"

learned_at_128 = Number(
    name="learned_at_128",
    notebook=PART,
    title="Where the table ends",
    asked=(
        "Suppose it is always right at the places 3 to 31, which were trained, and guesses, one in 16, at"
        " 32 to 127. Which share of these 125 answers is right?"
    ),
    answer="(29 + 96 / 16) / 125",
    value=35 / 125,
    tolerance=5e-3,
    remember="29 known answers and 6 lucky ones of 125",
    slips={
        "that leaves out the lucky guesses: 96 / 16 = 6 of them": "29 / 125",
        "the first three places have no answer: 29 are known, not 32": "(32 + 96 / 16) / 128",
        "that is the share of trained places; guesses are right, too, now and then": "32 / 128",
        "you let it guess everywhere": "1 / 16",
        "you counted 28 known answers; from 3 to 31 there are 29 places, both ends included": (
            "(28 + 96 / 16) / 125"
        ),
        "of the 32 trained places the first three are not asked: 29 are known": "(32 + 96 / 16) / 125",
        "that is the plain mean of 1 and 1/16; weight them by their places, 29 and 96": "(1 + 1 / 16) / 2",
    },
)

striped = Choice(
    name="striped",
    notebook=PART,
    title="Which have stripes?",
    asked=(
        "With equal words only positions are left. Three tables will have stripes: one value along each"
        " diagonal, others across. Which three?"
    ),
    options={
        "a": "sinusoidal, learned, rotary",
        "b": "Shaw, ALiBi, rotary",
        "c": "none, ALiBi, Shaw",
        "d": "sinusoidal, rotary, ALiBi",
    },
    answer="b",
    remember="these three enter as distances; the two that are added meet W_q and W_k, and lose the stripes",
    slips={
        "what is added passes W_q and W_k, which can destroy distance (05b)": "a",
        "without positions all scores are equal, across the diagonals, too": "c",
        "sinusoids are added: they pass W_q and W_k, which can destroy distance (05b)": "d",
    },
)

who_survives = Choice(
    name="who_survives",
    notebook=PART,
    title="Who survives?",
    asked=("Sinusoidal, Shaw and rotary are always right at 32 tokens. Which of them still is at 128?"),
    options={"a": "sinusoidal", "b": "Shaw", "c": "rotary", "d": "all three"},
    answer="b",
    remember="Shaw learned 'three back', and all that is far shares two vectors that training has met",
    slips={
        "the formula has a code for place 100; the layer has never met it": "a",
        "its scores hold distance alone; but training met distances up to 31, and at 128 there are 127": "c",
        "at least one of them meets something at 128 that training never showed": "d",
    },
)

stretched_near = Choice(
    name="stretched_near",
    notebook=PART,
    title="Squeezed, and asked for three back",
    asked=(
        "Rotary, trained on three back at 32 tokens, reads 128 with every place divided by 4. It was right in"
        " 80 % before. And now?"
    ),
    options={"a": "nearly always", "b": "80 %, as before", "c": "6 %, a guess"},
    answer="c",
    remember="the token three back now stands 0.75 back, and the one twelve back looks like three",
    slips={
        "no place lies beyond the trained ones; but is the token three back still 3 away?": "a",
        "where does the token now stand that the heads were trained to look at?": "b",
    },
)

stretched_far = Choice(
    name="stretched_far",
    notebook=PART,
    title="Squeezed, and asked for the latest",
    asked=(
        "The latest wins, at 128 tokens. As trained, the model is right in less than half. And with every"
        " place divided by 4?"
    ),
    options={"a": "nearly always", "b": "as before", "c": "6 %, a guess"},
    answer="a",
    remember="who is later stays later when all places shrink, and no angle lies outside the trained range",
    slips={
        "the angles of far places were new to it; divided by 4, they are not": "b",
        "this task needs no exact distance: which of the two is later?": "c",
    },
)


def alibi_bias(n: int, slope: float) -> Float[Tensor, "n n"]:
    place = torch.arange(n)
    return -slope * (place[:, None] - place).abs()


def _more_alibi_bias(drawn: Draw) -> list[Case]:
    return [{"n": 7, "slope": drawn(1, 1).abs().item() + 0.1}, {"n": 2, "slope": 2.0}]


write_alibi_bias = Write(
    name="alibi_bias",
    notebook=PART,
    second=lambda n: seconds.alibi_bias(write_alibi_bias, n),
    title="A slope",
    stars=1,
    minutes=4,
    why="the simplest way of all: no vector, one number per head",
    asked="what a head adds to its (n, n) scores: minus the slope times the distance of query and key",
    stages=(
        Stage(
            "two tokens, slope 1/2",
            lambda: [{"n": 2, "slope": 0.5}],
            "Distances are 0 and 1; nothing is taken from a token's score with itself.",
        ),
        Stage(
            "three tokens, slope 1/2",
            lambda: [{"n": 3, "slope": 0.5}],
            "Row 0 is 0, -0.5, -1; the diagonal is 0.",
        ),
        Stage(
            "five tokens, slope 1/8",
            lambda: [{"n": 5, "slope": 0.125}],
            "Each step of distance costs the slope, to both sides.",
        ),
    ),
    hints=(
        "`place = torch.arange(n)`. What are `place[:, None]` and `place[None, :]`?",
        "What is their difference, and which of its entries are negative?",
        "Far tokens must count less: which sign has what you add?",
    ),
    solution=alibi_bias,
    hidden=_more_alibi_bias,
    remember="-slope · |i - j|, added before the softmax: each step multiplies the weight by e^(-slope)",
    slips={
        "the minus is missing: far tokens would count more": ("-slope", "slope"),
        "distances have no sign: one side of your table is positive": (
            "(place[:, None] - place).abs()",
            "(place[:, None] - place)",
        ),
        "the slope is missing": ("-slope * ", "-1.0 * "),
        "you square the distance": (".abs()", " ** 2"),
        "you divide by the distance's slope; multiply": ("-slope * ", "-1 / slope * "),
        "you count from 1: a token is at distance 0 from itself": (".abs()", ".abs() - slope"),
        "you built the causal mask in; here only minus the slope times the distance is asked": (
            "-slope * (place[:, None] - place).abs()",
            "(-slope * (place[:, None] - place).abs()).masked_fill(place > place[:, None], -torch.inf)",
        ),
        "keys after the query cost nothing in yours; distance counts to both sides: take its size": (
            ".abs()",
            ".clamp(min=0)",
        ),
        "keys before the query are rewarded in yours: a distance has no sign, take its size": (
            "(place[:, None] - place).abs()",
            "(place - place[:, None])",
        ),
    },
)


def squeezed(n: int, trained: int) -> Float[Tensor, " n"]:
    return torch.arange(n) * min(1.0, trained / n)


def _more_squeezed(drawn: Draw) -> list[Case]:
    return [{"n": 13, "trained": 5}, {"n": 3, "trained": 7}]


write_squeezed = Write(
    name="squeezed",
    notebook=PART,
    second=lambda n: seconds.squeezed(write_squeezed, n),
    title="Position interpolation",
    stars=1,
    minutes=4,
    why="the first way in which published models were stretched, and one line",
    asked=(
        "places for n tokens of a model trained on `trained`: 0, 1, 2 ... where n fits, and else all of them"
        " divided by n / trained"
    ),
    stages=(
        Stage(
            "as many as trained: nothing changes",
            lambda: [{"n": 4, "trained": 4}],
            "Places 0, 1, 2, 3.",
        ),
        Stage(
            "twice as many: 0, 0.5, 1, 1.5 ...",
            lambda: [{"n": 8, "trained": 4}, {"n": 6, "trained": 4}],
            "n / trained is 2, and every place is divided by 2.",
        ),
        Stage(
            "fewer than trained: nothing changes either",
            lambda: [{"n": 3, "trained": 8}],
            "A short text is not blown up.",
        ),
    ),
    hints=(
        "Which places has a text that fits?",
        "By what are they multiplied if n is twice `trained`?",
        "What is min(1.0, trained / n) for a short text, and for a long one?",
    ),
    solution=squeezed,
    hidden=_more_squeezed,
    remember="place · trained / n: no place lies beyond the trained ones, and neighbours move together",
    slips={
        "a short text is blown up: its places must stay": ("min(1.0, trained / n)", "(trained / n)"),
        "long texts are not squeezed at all": (" * min(1.0, trained / n)", " * 1.0"),
        "you multiply by n / trained: the places move apart": (
            "min(1.0, trained / n)",
            "max(1.0, n / trained)",
        ),
        "all late tokens share the last place; they must all be squeezed": (
            "torch.arange(n) * min(1.0, trained / n)",
            "torch.arange(n).clamp(max=trained - 1) * 1.0",
        ),
        "places begin again from 0 after `trained` tokens": (
            "torch.arange(n) * min(1.0, trained / n)",
            "torch.arange(n) % trained * 1.0",
        ),
        "you let the last token reach the last trained place; here all are divided by n / trained": (
            "trained / n)",
            "(trained - 1) / max(n - 1, 1))",
        ),
        "you round: tokens share places, and the model cannot tell them apart": (
            "torch.arange(n) * min(1.0, trained / n)",
            "(torch.arange(n) * min(1.0, trained / n)).floor()",
        ),
        "n // trained rounds down: a text half as long again is not squeezed; divide by /": (
            "min(1.0, trained / n)",
            "1.0 / max(1, n // trained)",
        ),
        "trained // n is 0, so every token stands at place 0; divide by /": ("trained / n", "trained // n"),
    },
)

ASKED = (
    learned_at_128,
    write_alibi_bias,
    striped,
    who_survives,
    write_squeezed,
    stretched_near,
    stretched_far,
)
