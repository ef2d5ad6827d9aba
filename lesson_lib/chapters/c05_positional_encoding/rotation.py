"""What part 05b asks: five predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "05b_rotation"

one_matrix = Choice(
    name="one_matrix",
    notebook=PART,
    title="Five words on",
    asked=(
        "We look for the best matrix that takes p_0 to p_5, p_1 to p_6 ... up to p_99. Then it gets p_400,"
        " which it has never met. What comes out?"
    ),
    options={"a": "p_405", "b": "something near p_405", "c": "nothing like p_405"},
    answer="a",
    remember="one matrix does it for every place, to the last digit",
    slips={
        "there is no error at all: it is a law, and no fit": "b",
        "no place is special: what holds for the first hundred holds for all": "c",
    },
)

swapped_sign = Choice(
    name="swapped_sign",
    notebook=PART,
    title="The other sign",
    asked="In every block of R(5) somebody writes the minus into the upper right corner. Where does it"
    " take p_40?",
    options={"a": "to p_45", "b": "to p_35", "c": "to no code at all"},
    answer="b",
    remember="the cosine keeps its sign and the sine changes it: the angle is turned round, R(-5)",
    slips={
        "then the sine of the sum would need a minus: sin(a + b) = sin a cos b + cos a sin b": "a",
        "it is a rotation still, by the same angle the other way round": "c",
    },
)

either_side = Choice(
    name="either_side",
    notebook=PART,
    title="Ahead and behind",
    asked="p_50 · p_55, and p_50 · p_45: five ahead, five behind. Which is larger?",
    options={"a": "the first", "b": "the second", "c": "neither"},
    answer="c",
    remember="each is the sum of cos(5 w): a cosine does not know the sign of its angle",
    slips={
        "the two angles between the hands differ in sign alone, and cos(-a) = cos(a)": "a",
        "the two angles between the hands differ in sign alone; their cosines do not differ": "b",
    },
)

random_between = Choice(
    name="random_between",
    notebook=PART,
    title="Any matrix in between",
    asked="Now M is drawn at random. Is p_i M p_j^T still a function of j - i alone?",
    options={"a": "yes", "b": "for near places", "c": "no"},
    answer="c",
    remember="a general matrix mixes the clocks, and the place i itself comes back",
    slips={
        "that needs a matrix that treats every clock by itself; a random one mixes them": "a",
        "near or far, a product of two mixed clocks brings back the places themselves": "b",
    },
)

same_words = Choice(
    name="same_words",
    notebook=PART,
    title="All words alike",
    asked="Forty tokens have the same query, and the same key. After the turn, the 40 by 40 scores are ...",
    options={
        "a": "all equal",
        "b": "constant along each diagonal",
        "c": "different everywhere",
    },
    answer="b",
    remember="content is the same everywhere, so only j - i is left",
    slips={
        "before the turn; the turn makes them differ by j - i": "a",
        "places enter through j - i alone, and a diagonal has one j - i": "c",
    },
)


def one_clock(angle: Float[Tensor, ""]) -> Float[Tensor, "2 2"]:
    cos, sin = angle.cos(), angle.sin()
    return torch.tensor([[cos, sin], [-sin, cos]])


def _angle(angle: float) -> Case:
    return {"angle": table(angle)}


def _more_one_clock(drawn: Draw) -> list[Case]:
    return [{"angle": drawn(1, 1)[0]}, {"angle": -drawn(2, 1).abs()[0] - 1}]


write_one_clock = Write(
    name="one_clock",
    notebook=PART,
    second=lambda n: seconds.COSINE_FIRST,
    title="The matrix of one clock",
    stars=2,
    minutes=5,
    why="everybody gets its sign wrong once; the check says which way you turned",
    asked="the 2 by 2 matrix R with R (sin a, cos a) = (sin(a + angle), cos(a + angle)), for every a",
    stages=(
        Stage(
            "no turn: nothing changes",
            lambda: [_angle(0.0)],
            "cos 0 = 1 and sin 0 = 0: which matrix changes nothing?",
        ),
        Stage(
            "a quarter turn: (sin a, cos a) becomes (cos a, -sin a)",
            lambda: [_angle(1.5707964)],
            "The first new number is the old second one; the second is minus the old first one.",
        ),
        Stage(
            "an angle with cosine 0.6 and sine 0.8, both ways",
            lambda: [_angle(0.9272952), _angle(-0.9272952)],
            "Row 0 gives sin(a + b) = sin a cos b + cos a sin b. What stands before sin a, what before cos"
            " a?",
        ),
    ),
    hints=(
        "Write the two formulas of the proof below each other. Which factors hold the angle alone?",
        "Row 0 holds what sin a and cos a are multiplied by to give sin(a + angle). And row 1?",
        "Where is the only minus of the two formulas?",
    ),
    solution=one_clock,
    hidden=_more_one_clock,
    remember="[[cos, sin], [-sin, cos]], since a code has its sine first: the minus stands below",
    slips={
        "the minus is in the wrong corner: this turns back, from p_40 to p_35": (
            "[[cos, sin], [-sin, cos]]",
            "[[cos, -sin], [sin, cos]]",
        ),
        "there is no minus: cos(a + b) = cos a cos b - sin a sin b": ("-sin", "sin"),
        "sine and cosine have changed places: for the angle 0 nothing may change": (
            "[[cos, sin], [-sin, cos]]",
            "[[sin, cos], [-cos, sin]]",
        ),
        "this is a mirror, not a turn: its determinant is -1": ("[-sin, cos]", "[sin, -cos]"),
        "your matrix reads the pair as (cos a, sin a); the sine comes first: exchange its columns": (
            "[[cos, sin], [-sin, cos]]",
            "[[sin, cos], [cos, -sin]]",
        ),
        "sin(a + b) needs both old numbers: nothing stands beside your diagonal": (
            "[[cos, sin], [-sin, cos]]",
            "[[cos, 0.0], [0.0, cos]]",
        ),
        "you take the angle for degrees and convert it; it is in radians already, as cos and sin want it": (
            "    cos, sin = angle",
            "    angle = angle.deg2rad()\n    cos, sin = angle",
        ),
    },
)


def turn_rows(x: Float[Tensor, "n 2"], frequency: float) -> Float[Tensor, "n 2"]:
    angles = torch.arange(len(x)) * frequency
    a, b = x[:, 0], x[:, 1]
    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.stack(turned, dim=-1)


def _rows(x: Tensor, frequency: float) -> Case:
    return {"x": x, "frequency": frequency}


def _more_turn_rows(drawn: Draw) -> list[Case]:
    return [_rows(drawn(1, 11, 2), 0.01), _rows(drawn(2, 3, 2), 1.0)]


write_turn_rows = Write(
    name="turn_rows",
    notebook=PART,
    second=lambda n: seconds.WITH_START,
    title="Rotary, for one clock",
    stars=2,
    minutes=6,
    why="this turn, for 64 clocks at once, stands in nearly every language model since 2023",
    asked=(
        "row i, (a, b), becomes (a, b) @ R(t) = (a cos t - b sin t, a sin t + b cos t), with t = i *"
        " frequency"
    ),
    stages=(
        Stage(
            "one token: it stands at place 0, and is not turned",
            lambda: [_rows(table([[2.0, 3.0]]), 1.0)],
            "The angle of row 0 is 0.",
        ),
        Stage(
            "two tokens, a quarter turn for each place",
            lambda: [_rows(table([[2.0, 3.0], [2.0, 3.0]]), 1.5707964)],
            "(2, 3) at place 1 becomes (-3, 2).",
        ),
        Stage(
            "five tokens, a slow clock",
            lambda: [_rows(drawn(1, 5, 2), 0.1)],
            "`torch.arange(len(x))` holds the places; row i turns by i times the frequency.",
        ),
    ),
    hints=(
        "How do you get one angle for each row?",
        "`x[:, 0]` holds every a, `x[:, 1]` every b. What is a * angles.cos()?",
        "Both new numbers are made from the old pair. How do two columns become one table of (n, 2)?",
    ),
    solution=turn_rows,
    hidden=_more_turn_rows,
    remember="a cos t - b sin t, a sin t + b cos t: lengths stay, only the direction tells the place",
    slips={
        "you turn the other way round; scores would be the same, published weights would not fit": (
            "a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()",
            "a * angles.cos() + b * angles.sin(), b * angles.cos() - a * angles.sin()",
        ),
        "every row is turned by the same angle; row i turns by i times the frequency": (
            "torch.arange(len(x)) * frequency",
            "torch.full((len(x),), frequency)",
        ),
        "you start at place 1; the first token stands at place 0": (
            "torch.arange(len(x)) * frequency",
            "(torch.arange(len(x)) + 1) * frequency",
        ),
        "you divide the place by the frequency; the angle is their product": (
            "torch.arange(len(x)) * frequency",
            "torch.arange(len(x)) / frequency",
        ),
        "you add sine and cosine to x; rotary adds nothing, it turns": (
            "a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()",
            "a + angles.sin(), b + angles.cos()",
        ),
        "the second number is made from the first one after its turn; both are made from the old pair": (
            "    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()",
            "    a = a * angles.cos() - b * angles.sin()\n    turned = a, a * angles.sin() + b *"
            " angles.cos()",
        ),
        "a minus is missing: the first number is a cos t - b sin t": (
            "a * angles.cos() - b",
            "a * angles.cos() + b",
        ),
        "sine and cosine have changed places: row 0, with the angle 0, must stay": (
            "a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()",
            "a * angles.sin() - b * angles.cos(), a * angles.cos() + b * angles.sin()",
        ),
        "you turn twice: row i turns by i times the frequency, once": (
            "torch.arange(len(x)) * frequency",
            "2 * torch.arange(len(x)) * frequency",
        ),
    },
)

ASKED = (
    one_matrix,
    write_one_clock,
    swapped_sign,
    either_side,
    random_between,
    write_turn_rows,
    same_words,
)
