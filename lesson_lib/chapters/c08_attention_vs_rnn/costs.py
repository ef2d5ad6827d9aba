"""What part 08b asks: four predictions, and two functions that the learner writes; and the stages of an
attention layer."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.chapters.c08_attention_vs_rnn import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import table
from lesson_lib.checks.short import Choice

PART = "08b_costs"

whose_clock = Choice(
    name="whose_clock",
    notebook=PART,
    title="Eight times the products",
    asked="512 tokens, on one processor. Which layer is done first?",
    options={
        "a": "the RNN, about eight times as fast",
        "b": "the RNN, but by less",
        "c": "attention",
    },
    answer="c",
    remember="a clock counts more than products",
    slips={
        "that would be so if a machine did nothing but multiply, one product after the other": "a",
        "part of it is right: large products are done faster. How far does that go?": "b",
    },
)

stack_of_seven = Choice(
    name="stack_of_seven",
    notebook=PART,
    title="Convolutions that see everything",
    asked=(
        "8 tokens. A convolution's output sees a place and its two neighbours; stack layers until every"
        " output sees every input. Steps and path?"
    ),
    options={"a": "1 and 1", "b": "1 and 7", "c": "7 and 7", "d": "3 and 3"},
    answer="c",
    remember="each layer carries a token one place further, and waits for the layer below",
    slips={
        "one layer sees three places; how many must it see?": "a",
        "all outputs of one layer are made at once; a layer waits for the layer below": "b",
        "that needs taps that stand wider apart in each layer": "d",
    },
)


def rnn_stages(n: int, d: int, rows: int) -> Float[Tensor, " stages"]:
    at_once = n * rows * d * d  # W x of all tokens
    one_by_one = n * [rows * d * d]  # U h, token after token
    return torch.tensor([at_once, *one_by_one], dtype=torch.float64)


def _sizes(n: int, d: int, rows: int) -> Case:
    return {"n": n, "d": d, "rows": rows}


def _more_rnn_stages(_draw: Draw) -> list[Case]:
    return [_sizes(5, 7, 3), _sizes(11, 2, 4)]


write_rnn_stages = Write(
    name="rnn_stages",
    notebook=PART,
    second=lambda n: seconds.both_ways_stages(write_rnn_stages),
    title="What waits, and what does not",
    stars=2,
    minutes=5,
    why="one list holds the products and the steps of a layer",
    asked=(
        "the products of each stage, (n + 1) numbers: first W x for all n tokens together, which waits for"
        " nothing, then U h of each token in turn; W and U are (rows * d, d), with rows = 1 for an RNN and 4"
        " for an LSTM"
    ),
    stages=(
        Stage(
            "two tokens of width 3, an RNN",
            lambda: [_sizes(2, 3, 1)],
            "W x costs 9 products for a token: 18 first, then 9 and 9.",
        ),
        Stage(
            "one token",
            lambda: [_sizes(1, 5, 1)],
            "One stage for W x, one for U h.",
        ),
        Stage(
            "three tokens of width 2, an LSTM",
            lambda: [_sizes(3, 2, 4)],
            "Four rows of blocks: every product four times.",
        ),
        Stage(
            "an RNN over 512 tokens of width 64",
            lambda: [_sizes(512, 64, 1)],
            "They sum to 2 n d² = 4,194,304.",
        ),
    ),
    reference=lambda n, d, rows: (
        torch.cat([torch.tensor([n]), torch.ones(n, dtype=torch.long)]).double() * rows * d**2
    ),
    hints=(
        "How many products has a matrix (rows * d, d) times one vector of d numbers?",
        "Which of the two matrices can be applied to all tokens before any state is known?",
        "How many stages must wait for the stage before: one for each token, or one for all?",
    ),
    solution=rnn_stages,
    hidden=_more_rnn_stages,
    tolerance=1e-6,
    remember="half of a recurrent layer's products wait for nothing; the other half is cut into n pieces",
    slips={
        "the stage of W x is one for all tokens, and has the products of n tokens": (
            "at_once = n * rows * d * d",
            "at_once = rows * d * d",
        ),
        "each token has a stage of its own for U h": (
            "one_by_one = n * [rows * d * d]",
            "one_by_one = [n * rows * d * d]",
        ),
        "a matrix (d, d) times a vector of d numbers is d * d products": (
            "at_once = n * rows * d * d",
            "at_once = n * rows * d",
            "n * [rows * d * d]",
            "n * [rows * d]",
        ),
        "with four rows of blocks there are four times as many products": (
            "at_once = n * rows * d * d",
            "at_once = n * d * d",
            "n * [rows * d * d]",
            "n * [d * d]",
        ),
        "no state is needed for W x: take it out of the steps, into a stage of its own": (
            "at_once = n * rows * d * d",
            "at_once = 0",
            "n * [rows * d * d]",
            "n * [2 * rows * d * d]",
        ),
        "the stage for all tokens comes first": ("[at_once, *one_by_one]", "[*one_by_one, at_once]"),
        "the first stage is missing: W x of all tokens waits for no state, so it stands alone, in front": (
            "[at_once, *one_by_one]",
            "[2 * products for products in one_by_one]",
        ),
    },
)


def attention_stages(n: int, d: int, projections: bool) -> Float[Tensor, " stages"]:
    """The products of each stage of self-attention over n tokens of width d: scores, then mixtures; with
    `projections` also queries, keys and values before, and the output's behind."""
    inside = [n * n * d, n * n * d]
    if projections:
        inside = [3 * n * d * d, *inside, n * d * d]
    return torch.tensor(inside, dtype=torch.float64)


def time_on(
    stages: Float[Tensor, " stages"],
    wait: float,
    rate: float,
) -> Float[Tensor, ""]:
    return (wait + stages / rate).sum()


def _on(stages: list[float], wait: float, rate: float) -> Case:
    return {"stages": table(stages).double(), "wait": wait, "rate": rate}


def _more_time_on(_draw: Draw) -> list[Case]:
    return [_on([7.0, 11.0, 13.0], 0.25, 3.0), _on([5.0], 0.0, 2.0)]


write_time_on = Write(
    name="time_on",
    notebook=PART,
    second=lambda n: seconds.UNITS,
    title="A machine of two numbers",
    stars=1,
    minutes=4,
    why="it will be compared with the clock",
    asked=(
        "the seconds of a layer: its stages come one after the other, and each takes `wait` seconds, whatever"
        " is in it, and then its products at `rate` products a second"
    ),
    stages=(
        Stage(
            "one stage of 100 products, 50 a second, a wait of 3",
            lambda: [_on([100.0], 3.0, 50.0)],
            "3 + 100 / 50 = 5 seconds.",
        ),
        Stage(
            "two stages: 100 and 50 products",
            lambda: [_on([100.0, 50.0], 3.0, 50.0)],
            "Each stage waits: 3 + 2 + 3 + 1 = 9.",
        ),
        Stage(
            "no wait at all",
            lambda: [_on([3.0, 4.0, 5.0], 0.0, 4.0)],
            "All products over the rate.",
        ),
        Stage(
            "an endless rate",
            lambda: [_on([1.0] * 17, 0.5, 1e12)],
            "Only the waits are left, 17 of them.",
        ),
    ),
    reference=lambda stages, wait, rate: len(stages) * wait + stages.sum() / rate,
    hints=(
        "How long does one stage take?",
        "How many waits are there for a list of stages?",
        "Products divided by products per second: which unit is that?",
    ),
    solution=time_on,
    hidden=_more_time_on,
    tolerance=1e-6,
    remember="a wait costs as much as wait * rate products: that number is the machine",
    slips={
        "each stage waits, not the layer once": (
            "(wait + stages / rate).sum()",
            "wait + (stages / rate).sum()",
        ),
        "the waits are missing": ("(wait + stages / rate).sum()", "(stages / rate).sum()"),
        "products over the rate are seconds; times the rate they are not": ("stages / rate", "stages * rate"),
        "the stages come one after the other: add up": (".sum()", ".amax()"),
        "the wait does not go away while a stage multiplies: it is added, not the larger of the two": (
            "(wait + stages / rate).sum()",
            "(stages / rate).clamp(min=wait).sum()",
        ),
        "the rate belongs to the products alone": ("wait + stages / rate", "(wait + stages) / rate"),
    },
)

faster_products = Choice(
    name="faster_products",
    notebook=PART,
    title="Another machine",
    asked=(
        "A machine multiplies 50 times as fast, and its waits are as long. Up to which length is attention"
        " faster there?"
    ),
    options={
        "a": "a shorter one: attention has more products",
        "b": "the same",
        "c": "one about 50 times as long",
    },
    answer="c",
    remember="cheap products help who has many products, and the waits of the RNN stay",
    slips={
        "its products have become cheap; what has not?": "a",
        "both layers multiply faster; which of them spends its time multiplying?": "b",
    },
)

many_texts = Choice(
    name="many_texts",
    notebook=PART,
    title="Five hundred sentences",
    asked="500 sentences of 50 tokens at once: how many times as long as attention does the LSTM take?",
    options={"a": "about twice", "b": "about 15 times", "c": "about 500 times"},
    answer="a",
    remember="500 sentences share each wait, and only products are left: 8 against 4 and a little",
    slips={
        "all sentences take a step together: what becomes of the wait?": "b",
        "the texts of a batch do not wait for each other": "c",
    },
)

ASKED = (
    whose_clock,
    stack_of_seven,
    write_rnn_stages,
    write_time_on,
    faster_products,
    many_texts,
)
