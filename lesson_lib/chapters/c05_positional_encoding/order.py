"""What part 05a asks: four predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice

PART = "05a_order"

dog_in_both = Choice(
    name="dog_in_both",
    notebook=PART,
    title="The same dog?",
    asked=(
        "One layer of attention reads 'dog bites man', then 'man bites dog'. Is the output of dog the same?"
    ),
    options={"a": "yes", "b": "nearly", "c": "no"},
    answer="a",
    remember="the query of dog meets the same three keys and mixes the same three values",
    slips={
        "which number of the query, the keys or the values has changed? None is made from a place": "b",
        "dog stands in another row, but its output is made of the same three words": "c",
    },
)

shuffled_points = Choice(
    name="shuffled_points",
    notebook=PART,
    title="The same digits, shuffled",
    asked=("The trained reader gets every test list shuffled. The share of right digits:"),
    options={
        "a": "stays exactly the same",
        "b": "falls a little",
        "c": "falls by half",
        "d": "falls to a guess",
    },
    answer="a",
    remember="outputs move with their points, and their mean does not move at all",
    slips={
        "the layer could not learn the order of the lists: no number in it belongs to a place in a list": "b",
        "that would need a layer that knows who came first": "c",
        "the points are all still there, each with its x and its y": "d",
    },
)

slowest_clock = Choice(
    name="slowest_clock",
    notebook=PART,
    title="Why 10000?",
    asked=(
        "With 10 in place of 10000, and width 512, the slowest clock needs 62 tokens for a turn. In a text of"
        " 1,000 tokens:"
    ),
    options={
        "a": "all is well",
        "b": "what is far looks equally far",
        "c": "neighbours look alike",
    },
    answer="b",
    remember="every clock goes round many times, and 100 tokens look as far as 800",
    slips={
        "every place has a code of its own; but no clock is slow enough for the part of the text": "a",
        "that happens with a number that is too large: then most clocks stand still": "c",
    },
)

codes_on_points = Choice(
    name="codes_on_points",
    notebook=PART,
    title="A code for every point?",
    asked=(
        "The i-th point of a list gets p_i as well; training lists are in reading order. At shuffled lists"
        " this reader is right ..."
    ),
    options={
        "a": "as often as in order",
        "b": "a little less",
        "c": "half as often",
    },
    answer="c",
    remember="it used the place in the list, and the shuffle made it false",
    slips={
        "the codes stay in their places while the points move, and training made use of both": "a",
        "in reading order the place in the list says much about y: the model leans on it": "b",
    },
)


def put_back(
    outputs: Float[Tensor, "n d"],
    order: Int[Tensor, " n"],
) -> Float[Tensor, "n d"]:
    return outputs[order.argsort()]


def _shuffled(order: list[int], outputs: Tensor) -> Case:
    return {"outputs": outputs, "order": torch.tensor(order, device="cpu")}


def _more_put_back(drawn: Draw) -> list[Case]:
    order = drawn(1, 11).argsort().tolist()
    return [_shuffled(order, drawn(2, 11, 3)), _shuffled([1, 2, 3, 4, 0], drawn(3, 5, 2))]


write_put_back = Write(
    name="put_back",
    notebook=PART,
    second=lambda n: seconds.put_back(write_put_back, n),
    title="Back to their places",
    stars=1,
    minutes=4,
    why="this is the test that finds out whether any layer, anywhere, knows order",
    asked="outputs of x[order], a row for each token: give them back in the order of x",
    stages=(
        Stage(
            "two tokens that changed places",
            lambda: [_shuffled([1, 0], table([[1.0, 2.0], [3.0, 4.0]]))],
            "Row 0 of the outputs belongs to token order[0], which is token 1.",
        ),
        Stage(
            "three tokens in a ring: order 1, 2, 0",
            lambda: [_shuffled([1, 2, 0], primes(3, 2))],
            "Row 0 belongs to token 1, row 1 to token 2, row 2 to token 0. So where does token 0's row"
            " stand?",
        ),
        Stage(
            "seven tokens",
            lambda: [_shuffled([3, 0, 6, 1, 5, 2, 4], drawn(1, 7, 5))],
            "You need the order that undoes `order`.",
        ),
    ),
    hints=(
        "Token t stands in the row r with order[r] == t. Which r is that for t = 0?",
        "Which function of torch tells, for the sorted numbers 0, 1, 2 ..., in which rows they stand?",
        "Make an empty table and write: result[order] = outputs. Does that do the same?",
    ),
    solution=put_back,
    hidden=_more_put_back,
    remember="order.argsort() undoes order; so does result[order] = outputs",
    slips={
        "you shuffle once more: outputs[order] undoes only orders that are their own undoing": (
            "order.argsort()",
            "order",
        ),
        "no row has moved: they stand in the order of x[order], and order.argsort() says who goes where": (
            "[order.argsort()]",
            "",
        ),
        "you turn the rows round; that undoes one order only": ("[order.argsort()]", ".flip(0)"),
        "you go back twice": ("order.argsort()", "order.argsort()[order.argsort()]"),
        "an order read backwards does not undo it: in which row does token 0 stand, in which token 1?": (
            "order.argsort()",
            "order.flip(0)",
        ),
        "you sort the rows by their numbers; it is the order that must be sorted": (
            "outputs[order.argsort()]",
            "outputs.sort(0).values",
        ),
        "you reorder the columns, the second axis; each token has a row, and rows are what was shuffled": (
            "outputs[order",
            "outputs[:, order",
        ),
    },
)


def code_row(position: float, d: int) -> Float[Tensor, " d"]:
    frequencies = 10000.0 ** (-torch.arange(0, d, 2) / d)
    angles = position * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


def _more_code_row(drawn: Draw) -> list[Case]:
    far = (100 * drawn(1, 1)).abs().round().item()
    return [{"position": far, "d": 10}, {"position": 7.0, "d": 14}]


write_code_row = Write(
    name="code_row",
    notebook=PART,
    second=lambda n: seconds.CODE_WITH_BASE,
    title="The code of one place",
    stars=2,
    minutes=5,
    why="these d numbers are all that the first Transformer knows of order",
    asked="p_i: sin(i w_0), cos(i w_0), sin(i w_1), cos(i w_1) ..., with w_j = 10000 ** (-2j / d)",
    stages=(
        Stage(
            "place 0: every clock at its start",
            lambda: [{"position": 0.0, "d": 4}],
            "sin 0 = 0 and cos 0 = 1, in turn.",
        ),
        Stage(
            "place 1, width 4: sin 1, cos 1, sin 0.01, cos 0.01",
            lambda: [{"position": 1.0, "d": 4}],
            "The two frequencies are 10000 ** 0 = 1 and 10000 ** (-2/4) = 0.01.",
        ),
        Stage(
            "place 5, width 6",
            lambda: [{"position": 5.0, "d": 6}],
            "`torch.arange(0, d, 2)` holds 2j for every pair; which exponent does the formula make of it?",
        ),
        Stage(
            "far away",
            lambda: [{"position": 1000.0, "d": 8}],
            "Each frequency is 10000 to the power of -2j / d.",
        ),
    ),
    hints=(
        "How many frequencies are there for d numbers? Compute them first.",
        "The angles are position times frequency. Which two numbers does each angle give?",
        "What does torch.stack([a, b], dim=-1).flatten() do with two rows of the same length?",
    ),
    solution=code_row,
    hidden=_more_code_row,
    remember="d/2 frequencies, from 1 down; each gives a sine and, beside it, a cosine",
    slips={
        "your exponent is -j/d; j counts pairs, so it is -2j/d": (
            "torch.arange(0, d, 2) / d",
            "torch.arange(0, d // 2) / d",
        ),
        "your exponent is positive: the clocks get faster, and they must get slower": ("-torch", "torch"),
        "sine and cosine have changed places: the sine comes first": (
            "angles.sin(), angles.cos()",
            "angles.cos(), angles.sin()",
        ),
        "all sines stand first, then all cosines; the two of a clock stand side by side": (
            "torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()",
            "torch.cat([angles.sin(), angles.cos()])",
        ),
        "every number has a frequency of its own; two neighbours share one": (
            "torch.arange(0, d, 2) / d",
            "torch.arange(d) / d",
            "torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()",
            "torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos())",
        ),
        "you took the column for j; j counts pairs: columns 0 and 1 share w_0, columns 2 and 3 share w_1": (
            "-torch.arange(0, d, 2)",
            "-2 * torch.arange(d)",
            "torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()",
            "torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos())",
        ),
        "there is no 2 pi here: w_j is in radians per token": (
            "position * frequencies",
            "2 * torch.pi * position * frequencies",
        ),
        "you divide by the frequency; the angle is their product": (
            "position * frequencies",
            "position / frequencies",
        ),
        "you start one place late: place 0 has the angle 0": (
            "position * frequencies",
            "(position + 1) * frequencies",
        ),
        "the base is 10000; you took 1000": ("10000.0", "1000.0"),
        "// rounds your exponent down to a whole number, 0 or -1; divide by /": (
            "torch.arange(0, d, 2) / d",
            "torch.arange(0, d, 2) // d",
        ),
        "your exponent is 0 for every clock: 2j // d is a whole number, rounded down; divide by /": (
            "(-torch.arange(0, d, 2) / d)",
            "(-(torch.arange(0, d, 2) // d))",
        ),
        "the power comes before the division: put -2j / d in brackets": (
            "10000.0 ** (-torch.arange(0, d, 2) / d)",
            "10000.0 ** -torch.arange(0, d, 2) / d",
        ),
        "// rounds -log(10000) / d to a whole number before it meets j; divide by /": (
            "10000.0 ** (-torch.arange(0, d, 2) / d)",
            "torch.exp(torch.arange(0, d, 2) * (-9.210340371976184 / d // 2))",
        ),
        "your exponent is -2j without the division by d": (
            "-torch.arange(0, d, 2) / d",
            "-1.0 * torch.arange(0, d, 2)",
        ),
    },
)

ASKED = (
    dog_in_both,
    write_put_back,
    shuffled_points,
    write_code_row,
    slowest_clock,
    codes_on_points,
)
