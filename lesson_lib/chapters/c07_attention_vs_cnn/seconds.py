"""Second problems of chapter 07: other shapes, another distance, and inputs that catch a mistake."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import catch
from lesson_lib.checks.inputs import drawn, table


def _one_row(h: int, w: int, down: int, right: int) -> bool:
    return h == 1


def _straight(h: int, w: int, down: int, right: int) -> bool:
    return right == 0


def _far_off(h: int, w: int, down: int, right: int) -> bool:
    return abs(down) > h or abs(right) >= h * w


def shift_weights(first: Write) -> Exercise:
    """A move that leaves a row at its end."""
    return catch(
        first,
        asked=(
            "somebody moves along the flat numbers, i * w + j + down * w + right, and tests with pictures of"
            " one row, and with moves up and down. Write a picture's size and a move on which it fails"
        ),
        slip="you move along the flat numbers, and at a row's end come into the next row",
        inputs={"h": "2", "w": "3", "down": "0", "right": "1"},
        remember="the pixel after a row's end is the next row's first: flat numbers do not know the edge",
        hints=(
            "Which number has the last pixel of a row, and which pixel has the next number?",
            "Why does that never happen with moves straight up and down?",
            "And why not in a picture of one row?",
        ),
        slips={
            "in one row the next number is off the picture: take two rows": _one_row,
            "straight up or down a row's end is never crossed: move to the side": _straight,
            "so far away both find nothing": _far_off,
        },
    )


def head_vector_2(centre: Float[Tensor, "2"], sharpness: Float[Tensor, "2"]) -> Float[Tensor, "4"]:
    return torch.cat([-sharpness, 2 * sharpness * centre])


def _oblong(centre: Tensor, sharpness: Tensor) -> Case:
    return {"centre": centre, "sharpness": sharpness}


HEAD_OF_TWO = Write(
    name="head_vector_2",
    title="Sharp in one direction",
    asked=(
        "a head that follows lines: with a sharpness for down and one for right, its score is -(s_down (d_down"
        " - c_down)² + s_right (d_right - c_right)²). Write v for r = (d_down², d_right², d_down, d_right)"
    ),
    stages=(
        Stage(
            "centre (0, 1), both sharpnesses 1",
            lambda: [_oblong(table([0.0, 1.0]), table([1.0, 1.0]))],
            "Before both squares stands -1; before d_right stands 2.",
        ),
        Stage(
            "centre (2, -1), sharp downwards, blunt along the row",
            lambda: [_oblong(table([2.0, -1.0]), table([5.0, 0.5]))],
            "Each direction has its own sharpness, before its square and before its middle term.",
        ),
        Stage(
            "a centre between pixels",
            lambda: [_oblong(drawn(1, 2), table([3.0, 0.0]))],
            "With sharpness 0 a direction does not count at all.",
        ),
    ),
    hints=(
        "Multiply out one direction alone. What stands before d_down², and what before d_down?",
        "In which order do the four numbers come?",
        "What do you get if you write -s and 2 s c as two vectors of two numbers?",
    ),
    solution=head_vector_2,
    remember="one number for each square, one for each direction: a row of attention can be a line",
    slips={
        "the sign is turned round: this head looks everywhere but there": (
            "[-sharpness, 2 * sharpness * centre]",
            "[sharpness, -2 * sharpness * centre]",
        ),
        "the middle terms need their own sharpness, too": ("2 * sharpness * centre", "2 * centre"),
        "the middle term has a factor of 2: (a - b)² = a² - 2ab + b²": (
            "2 * sharpness * centre",
            "sharpness * centre",
        ),
        "the squares come first in r": (
            "[-sharpness, 2 * sharpness * centre]",
            "[2 * sharpness * centre, -sharpness]",
        ),
    },
)
