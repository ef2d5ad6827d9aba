"""What part 08a asks: four predictions, and two functions that the learner writes."""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.chapters.c08_attention_vs_rnn import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "08a_remembering"

trained_near = Choice(
    name="trained_near",
    notebook=PART,
    title="Trained near, asked far",
    asked="Trained at 5, asked at 200: how many of 1,000 does it get right?",
    options={"a": "about 125, a guess", "b": "about half", "c": "all, or nearly all"},
    answer="c",
    remember="what it has learned to keep over 5 tokens, it keeps over 200",
    slips={
        "every token gets the same step: a state that 5 of them leave alone, 200 can leave alone, too": "a",
        "some would be lost on the way if it forgot a share with each token": "b",
    },
)


def lstm_step(
    summed: Float[Tensor, " four_d"],
    cell: Float[Tensor, " d"],
) -> Float[Tensor, "two d"]:
    i, f, g, o = summed.chunk(4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return torch.stack([o.sigmoid() * cell.tanh(), cell])


def _summed(summed: list[float], cell: list[float]) -> Case:
    return {"summed": table(summed), "cell": table(cell)}


def _more_lstm_step(drawn: Draw) -> list[Case]:
    return [{"summed": drawn(1, 12), "cell": drawn(2, 3)}, {"summed": drawn(3, 20), "cell": drawn(4, 5)}]


write_lstm_step = Write(
    name="lstm_step",
    notebook=PART,
    second=lambda n: seconds.COUPLED,
    title="One step of an LSTM",
    stars=2,
    minutes=6,
    why="the next cell looks into the trained network with it",
    asked=(
        "from summed (4d), the rows i, f, g, o of W x + U h + b one behind the other, and the old cell (d):"
        " the new state h and the new cell c, as a tensor (2, d), h first"
    ),
    stages=(
        Stage(
            "one number: forget gate open, input gate shut, output gate a half",
            lambda: [_summed([-40.0, 40.0, 3.0, 0.0], [2.0])],
            "The cell stays 2; the state is half of tanh 2.",
        ),
        Stage(
            "one number: forget gate shut, input gate open",
            lambda: [_summed([40.0, -40.0, 1.0, 40.0], [2.0])],
            "The cell becomes tanh 1, whatever it was.",
        ),
        Stage(
            "one number: all sums 0 but g",
            lambda: [_summed([0.0, 0.0, 2.0, 0.0], [6.0])],
            "Every gate is a half.",
        ),
        Stage(
            "five units",
            lambda: [{"summed": drawn(7, 20), "cell": drawn(8, 5)}],
            "The first d numbers are i, the next d are f, then g, then o.",
        ),
    ),
    reference=lambda summed, cell: torch.stack(
        [
            torch.sigmoid(summed.view(4, -1)[3])
            * torch.tanh(torch.addcmul(*_kept_and_written(summed.view(4, -1), cell))),
            torch.addcmul(*_kept_and_written(summed.view(4, -1), cell)),
        ]
    ),
    hints=(
        "How do you cut 4d numbers into four rows of d? (chunk)",
        "Which three of the four go through a sigmoid, and which through a tanh?",
        "Does h come from the old cell, or from the new one?",
    ),
    solution=lstm_step,
    hidden=_more_lstm_step,
    remember="c = f c + i g is added to, never squashed; h = o tanh(c) is what the others see",
    slips={
        "the state is made from the old cell: first write, then show": (
            "    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()\n"
            "    return torch.stack([o.sigmoid() * cell.tanh(), cell])",
            "    new = f.sigmoid() * cell + i.sigmoid() * g.tanh()\n"
            "    return torch.stack([o.sigmoid() * cell.tanh(), new])",
        ),
        "i and f have changed places: the input gate comes first": ("i, f, g, o", "f, i, g, o"),
        "g and o have changed places: the order is i, f, g, o": ("i, f, g, o", "i, f, o, g"),
        "i and f have changed places, and so have g and o: the rows are i, f, g, o": (
            "i, f, g, o",
            "f, i, o, g",
        ),
        "g is what may be written, not a gate: tanh, so that it can be negative": (
            "g.tanh()",
            "g.sigmoid()",
        ),
        "gates lie between 0 and 1: sigmoid, not tanh": (
            "f.sigmoid()",
            "f.tanh()",
            "i.sigmoid()",
            "i.tanh()",
            "o.sigmoid()",
            "o.tanh()",
        ),
        "the cell is squashed before it is kept; only h sees a tanh of it": (
            "cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()",
            "cell = (f.sigmoid() * cell + i.sigmoid() * g.tanh()).tanh()",
            "o.sigmoid() * cell.tanh()",
            "o.sigmoid() * cell",
        ),
        "the state is o tanh(c): the tanh is missing": ("o.sigmoid() * cell.tanh()", "o.sigmoid() * cell"),
        "h comes first, then c": ("[o.sigmoid() * cell.tanh(), cell]", "[cell, o.sigmoid() * cell.tanh()]"),
        "nothing is forgotten: f multiplies the old cell": ("f.sigmoid() * cell", "cell"),
        "that is ONNX's order, i, o, f, g; here the rows are i, f, g, o": ("i, f, g, o", "i, o, f, g"),
        "g and f have changed places, as in TensorFlow's order i, g, f, o; here it is i, f, g, o": (
            "i, f, g, o",
            "i, g, f, o",
        ),
        "f and o have changed places: the order is i, f, g, o": ("i, f, g, o", "i, o, g, f"),
        "i and o have changed places: the order is i, f, g, o": ("i, f, g, o", "o, f, g, i"),
        "i and g have changed places: the order is i, f, g, o": ("i, f, g, o", "g, f, i, o"),
        "the order of the rows is i, f, g, o; you read f, o, i, g": ("i, f, g, o", "f, o, i, g"),
        "you add 1 to the forget gate, as some libraries do; here b holds all that is added": (
            "f.sigmoid()",
            "(f + 1).sigmoid()",
        ),
        "what is forgotten is turned round: f is what is KEPT, not 1 - f": (
            "f.sigmoid()",
            "(1 - f.sigmoid())",
        ),
    },
)


def _kept_and_written(rows: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.sigmoid(rows[1]) * cell, torch.sigmoid(rows[0]), torch.tanh(rows[2])


def way_back(u: float, states: Float[Tensor, " n"]) -> Float[Tensor, ""]:
    slopes = u * (1 - states[1:] ** 2)
    return slopes.prod()


def _states(u: float, states: list[float]) -> Case:
    return {"u": u, "states": table(states)}


def _by_autograd(u: float, states: Tensor) -> Tensor:
    """The same by torch: tokens that lead to these states, and the gradient of the last."""
    with torch.enable_grad():
        first = h = states[0].clone().requires_grad_()
        for before, after in itertools.pairwise(states):
            h = torch.tanh(torch.atanh(after) - u * before + u * h)
        (slope,) = torch.autograd.grad(h, first)
    return slope


def _more_way_back(drawn: Draw) -> list[Case]:
    return [{"u": 1.3, "states": drawn(1, 5).tanh()}, {"u": -0.7, "states": drawn(2, 4).tanh()}]


write_way_back = Write(
    name="way_back",
    notebook=PART,
    second=lambda n: seconds.SEVERAL_UNITS,
    title="What comes back",
    stars=2,
    minutes=5,
    why="it says why the first LSTM guessed",
    asked=(
        "the slope of the last state with respect to the first, for h_t = tanh(x_t + u h_(t-1)): the product"
        " above; states holds h_1 ... h_n"
    ),
    stages=(
        Stage(
            "two states: 0.5, then 0",
            lambda: [_states(0.5, [0.5, 0.0])],
            "One factor: u (1 - 0²) = 0.5.",
        ),
        Stage(
            "two states: 0, then 0.6",
            lambda: [_states(2.0, [0.0, 0.6])],
            "The slope at the state that is reached, 0.6: 2 (1 - 0.36) = 1.28.",
        ),
        Stage(
            "four states",
            lambda: [_states(0.5, [0.76, 0.36, 0.18, 0.09])],
            "Three steps, three factors, multiplied.",
        ),
        Stage(
            "u below 0, and larger than 1",
            lambda: [_states(-1.5, [0.1, 0.2, -0.3, 0.5, 0.4])],
            "Each step brings its own u: signs count.",
        ),
    ),
    reference=_by_autograd,
    hints=(
        "How many steps lie between the first state and the last of n?",
        "tanh has the slope 1 - h², where h is its result. Which states are results of these steps?",
        "Does the chain rule multiply the factors or add them?",
    ),
    solution=way_back,
    hidden=_more_way_back,
    remember="a factor for each token: below 1 the product vanishes, above 1 it explodes",
    slips={
        "n states have n - 1 steps between them: the slope of the first state itself does not count": (
            "states[1:]",
            "states",
        ),
        "the slope belongs to the state that a step reaches, not to the one it leaves": (
            "states[1:]",
            "states[:-1]",
        ),
        "each step has its own factor u": (
            "u * (1 - states[1:] ** 2)",
            "1 - states[1:] ** 2",
            "slopes.prod()",
            "u * slopes.prod()",
        ),
        "u is missing": ("u * (1 - states[1:] ** 2)", "1 - states[1:] ** 2"),
        "factors of a chain are multiplied, not added": ("slopes.prod()", "slopes.sum()"),
        "the slope of tanh is 1 - h², with h its result: no second tanh": (
            "states[1:] ** 2",
            "states[1:].tanh() ** 2",
        ),
        "the square is missing: the slope is 1 - h²": ("states[1:] ** 2", "states[1:]"),
        "the slope of tanh is missing: the factor of each step is u (1 - h²), not u alone": (
            "states[1:] ** 2",
            "torch.zeros_like(states[1:])",
        ),
    },
)

kept_and_heard = Choice(
    name="kept_and_heard",
    notebook=PART,
    title="It stays. Is it heard?",
    asked=(
        "With u = 2 the states are 0.76, 0.91, 0.95, and then stay at 0.96 for ever. Over the 20 tokens the"
        " slope is"
    ),
    options={"a": "about 1", "b": "half a million, 2 to the 19th", "c": "less than a billionth"},
    answer="c",
    remember="where tanh is flat, a small change of the first token leaves the last state where it is",
    slips={
        "the state is kept; but does it move if the first token moves a little?": "a",
        "u alone would do that; each factor has tanh's slope in it": "b",
    },
)

gates_opened = Choice(
    name="gates_opened",
    notebook=PART,
    title="One number changed",
    asked="Forget gates start at 0.993. Trained at 50, for 600 steps at the rate 0.005, this one",
    options={
        "a": "guesses: 600 steps are too few",
        "b": "is right",
        "c": "guesses: it keeps all the babble too",
    },
    answer="b",
    remember="the gradient arrives, and 600 steps are enough",
    slips={
        "the LSTM that was trained at 5 had 400 steps as well, and heard the symbol": "a",
        "the start keeps everything; what goes in is then learned, from a gradient that arrives": "c",
    },
)

one_look = Choice(
    name="one_look",
    notebook=PART,
    title="One head, nothing else",
    asked="Trained at 200 from the start, 400 steps: this one head",
    options={"a": "guesses, like the LSTM at 50", "b": "is right in about half", "c": "is right"},
    answer="c",
    remember="every token is one step away, from the first step of training on",
    slips={
        "the LSTM multiplies 200 factors on the way; attention has one step, whatever the distance": "a",
        "at the start the symbol has 1/201 of the weight: little, and not 10 to the minus 38": "b",
    },
)

ASKED = (
    trained_near,
    write_lstm_step,
    write_way_back,
    kept_and_heard,
    gates_opened,
    one_look,
)
