"""Second problems of parts 08a and 08b: another gate, several units, other layers."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, table


def lstm_step_2(
    summed: Float[Tensor, " three_d"],
    cell: Float[Tensor, " d"],
) -> Float[Tensor, "two d"]:
    f, g, o = summed.chunk(3)
    keep = f.sigmoid()
    cell = keep * cell + (1 - keep) * g.tanh()
    return torch.stack([o.sigmoid() * cell.tanh(), cell])


def _three(summed: list[float], cell: list[float]) -> Case:
    return {"summed": table(summed), "cell": table(cell)}


COUPLED = Write(
    name="lstm_step_2",
    title="One gate for two",
    asked=(
        "an LSTM that writes as much as it forgets: summed (3d) holds f, g, o, and the input gate is 1 minus"
        " the forget gate. The new state and the new cell, (2, d)"
    ),
    stages=(
        Stage(
            "one number: kept whole, so nothing is written",
            lambda: [_three([40.0, 3.0, 0.0], [2.0])],
            "The cell stays 2; the state is half of tanh 2.",
        ),
        Stage(
            "one number: half kept, half written",
            lambda: [_three([0.0, 40.0, 40.0], [6.0])],
            "Half of 6, and half of 1: 3.5.",
        ),
        Stage(
            "three units",
            lambda: [{"summed": drawn(5, 9), "cell": drawn(6, 3)}],
            "Three blocks now: f, g, o.",
        ),
    ),
    hints=(
        "How many blocks has summed now, and which?",
        "Which number multiplies the old cell, and which tanh g?",
        "Is 1 - sigmoid(f) the same as sigmoid(1 - f)?",
    ),
    solution=lstm_step_2,
    remember="with one gate for both the cell is a weighted mean of what it was and what comes: it cannot grow",
    slips={
        "the two shares have changed places: the gate keeps the old cell": (
            "keep * cell + (1 - keep) * g.tanh()",
            "(1 - keep) * cell + keep * g.tanh()",
        ),
        "the share that is written is 1 - sigmoid(f), not sigmoid(1 - f)": (
            "(1 - keep) * g.tanh()",
            "(1 - f).sigmoid() * g.tanh()",
        ),
        "everything is written: the share 1 - f is missing": ("(1 - keep) * g.tanh()", "g.tanh()"),
        "f and g have changed places: the blocks are f, g, o": ("f, g, o =", "g, f, o ="),
        "the state is made from the old cell": (
            "    cell = keep * cell + (1 - keep) * g.tanh()\n"
            "    return torch.stack([o.sigmoid() * cell.tanh(), cell])",
            "    new = keep * cell + (1 - keep) * g.tanh()\n"
            "    return torch.stack([o.sigmoid() * cell.tanh(), new])",
        ),
    },
)


def way_back_2(
    U: Float[Tensor, "d d"],
    states: Float[Tensor, "n d"],
) -> Float[Tensor, "d d"]:
    way = torch.eye(len(U), dtype=U.dtype, device=U.device)
    for h in states[1:]:
        way = (1 - h**2)[:, None] * (U @ way)  # row by row: tanh's slope at that unit
    return way


def _units(U: list[list[float]], states: list[list[float]]) -> Case:
    return {"U": table(U), "states": table(states)}


SEVERAL_UNITS = Write(
    name="way_back_2",
    title="Several units",
    asked=(
        "the table (d, d) of slopes of the last state's numbers, one row each, with respect to the first"
        " state's, one column each, for h_t = tanh(x_t + U h_(t-1))"
    ),
    stages=(
        Stage(
            "one step from a state to zeros",
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.1], [0.0, 0.0]])],
            "tanh's slope at 0 is 1: the table is U.",
        ),
        Stage(
            "one step, slopes of 0.75 and 1",
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.1], [0.5, 0.0]])],
            "The slope of unit 0 multiplies row 0.",
        ),
        Stage(
            "two steps",
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.1, 0.2], [0.5, 0.0], [0.0, 0.6]])],
            "The later step stands on the left of the earlier one.",
        ),
        Stage(
            "three units, five states",
            lambda: [{"U": drawn(3, 3, 3), "states": drawn(4, 5, 3).tanh()}],
            "A matrix for each step: the slopes on a diagonal, times U.",
        ),
    ),
    hints=(
        "One step alone: which number says how unit i of h_t answers to unit j of h_(t-1)?",
        "On which side of the product so far does a later step's matrix stand?",
        "Does tanh's slope at unit i multiply a row or a column?",
    ),
    solution=way_back_2,
    remember="a product of matrices, one for each token: where they shrink vectors it vanishes",
    slips={
        "the matrices stand in the wrong order: later steps on the left": (
            "(1 - h**2)[:, None] * (U @ way)",
            "way @ ((1 - h**2)[:, None] * U)",
        ),
        "the slopes multiply columns; unit i is row i": ("(1 - h**2)[:, None]", "(1 - h**2)"),
        "tanh's slopes are missing": ("(1 - h**2)[:, None] * (U @ way)", "U @ way"),
        "U is transposed: row i says what unit i is made of": ("(U @ way)", "(U.mT @ way)"),
        "the first state's own slope does not count: n states, n - 1 steps": ("states[1:]", "states"),
        "numbers are multiplied where matrices should be: @, not *": ("(U @ way)", "(U * way)"),
    },
)
