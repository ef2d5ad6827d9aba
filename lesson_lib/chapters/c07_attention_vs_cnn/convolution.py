"""What part 07a asks: four predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.chapters.c07_attention_vs_cnn import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "07a_convolution"

enough_heads = Choice(
    name="enough_heads",
    notebook=PART,
    title="Without positions",
    asked=("Without positions, how many heads does attention need to find the edges?"),
    options={"a": "one", "b": "nine", "c": "no number is enough"},
    answer="c",
    remember="equal pixels ask the same query of the same keys, in every head",
    slips={
        "two pixels of blue sky, one beside the roof: what could this head tell apart in them?": "a",
        "each of the nine gives two equal pixels the same output, and so does their sum": "b",
    },
)


def shift_weights(h: int, w: int, down: int, right: int) -> Float[Tensor, "n n"]:
    weights = torch.zeros(h, w, h, w)  # who asks, who is looked at
    for i in range(h):
        for j in range(w):
            if 0 <= i + down < h and 0 <= j + right < w:
                weights[i, j, i + down, j + right] = 1
    return weights.reshape(h * w, h * w)


def _moved(h: int, w: int, down: int, right: int) -> Case:
    return {"h": h, "w": w, "down": down, "right": right}


def _more_shift_weights(_draw: Draw) -> list[Case]:
    return [_moved(5, 3, 2, -1), _moved(2, 7, 0, 3), _moved(3, 2, -1, 1)]


write_shift_weights = Write(
    name="shift_weights",
    notebook=PART,
    second=lambda n: seconds.shift_weights(write_shift_weights),
    title="The head that looks at one offset",
    stars=2,
    minutes=6,
    why="nine of these tables, and attention is a convolution",
    asked=(
        "the table (h*w, h*w) in which each pixel has weight 1 on the pixel `down` rows below it and `right`"
        " columns to its right; a row of zeros where that lies off the picture"
    ),
    stages=(
        Stage(
            "three pixels in a row, one to the right, then one to the left",
            lambda: [_moved(1, 3, 0, 1), _moved(1, 3, 0, -1)],
            "To the right, row 0 has its 1 in column 1, row 1 in column 2, and row 2 has none.",
        ),
        Stage(
            "two rows of three, one down",
            lambda: [_moved(2, 3, 1, 0)],
            "Pixel (i, j) has the number i * w + j: one down is w numbers further.",
        ),
        Stage(
            "three rows of two, up and to the right",
            lambda: [_moved(3, 2, -1, 1)],
            "Pixels of the last column have nobody to their right: the next number is in the next row.",
        ),
        Stage(
            "the pixel itself, and far away",
            lambda: [_moved(2, 3, 0, 0), _moved(5, 7, 2, -3)],
            "With (0, 0) every pixel looks at itself.",
        ),
    ),
    hints=(
        "Which number has pixel (i, j), if the pixels are counted row by row?",
        "Go through all (i, j). Which pixel does (i, j) look at, and when is it off the picture?",
        "Which axis of the table belongs to the pixel that asks?",
    ),
    solution=shift_weights,
    hidden=_more_shift_weights,
    remember="one 1 in each row, or none: such a head fetches a pixel, and its value matrix is one tap",
    slips={
        "you look the other way, or the table is transposed: a row belongs to the pixel that asks": (
            "i + down < h",
            "i - down < h",
            "j + right < w",
            "j - right < w",
            "i + down, j + right]",
            "i - down, j - right]",
        ),
        "rows and columns have changed places: down counts rows": (
            "i + down < h",
            "i + right < h",
            "j + right < w",
            "j + down < w",
            "i + down, j + right]",
            "i + right, j + down]",
        ),
        "your picture is a ring: who looks off it must find nothing": (
            "            if 0 <= i + down < h and 0 <= j + right < w:\n"
            "                weights[i, j, i + down, j + right] = 1",
            "            weights[i, j, (i + down) % h, (j + right) % w] = 1",
        ),
        "who looks off the picture finds nothing; yours find the nearest pixel of the edge": (
            "            if 0 <= i + down < h and 0 <= j + right < w:\n"
            "                weights[i, j, i + down, j + right] = 1",
            "            weights[i, j, min(max(i + down, 0), h - 1), min(max(j + right, 0), w - 1)] = 1",
        ),
        "you move along the flat numbers, and at a row's end come into the next row": (
            "            if 0 <= i + down < h and 0 <= j + right < w:\n"
            "                weights[i, j, i + down, j + right] = 1",
            "            goal = (i + down) * w + j + right\n"
            "            if 0 <= goal < h * w:\n"
            "                weights[i, j, goal // w, goal % w] = 1",
        ),
        "you count the pixels column by column; they are counted row by row": (
            "return weights.reshape(h * w, h * w)",
            "return weights.permute(1, 0, 3, 2).reshape(h * w, h * w)",
        ),
    },
)


def head_vector(centre: Float[Tensor, "2"], sharpness: float) -> Float[Tensor, "3"]:
    down, right = centre
    return -sharpness * torch.stack([torch.ones_like(down), -2 * down, -2 * right])


def _head(centre: Tensor, sharpness: float) -> Case:
    return {"centre": centre, "sharpness": sharpness}


def _more_head_vector(drawn: Draw) -> list[Case]:
    return [_head(drawn(1, 2), 0.3), _head(drawn(2, 2), 7.0)]


write_head_vector = Write(
    name="head_vector",
    notebook=PART,
    second=lambda n: seconds.HEAD_OF_TWO,
    title="A distance as a product",
    stars=2,
    minutes=6,
    why="a score must be a product of two vectors; this is how a distance becomes one",
    asked=(
        "three numbers v with r · v = -sharpness * |d - centre|², up to a number that is the same for all d;"
        " r = (|d|², d_down, d_right)"
    ),
    stages=(
        Stage(
            "centre (0, 1), sharpness 1: what stands before |d|², d_down, d_right?",
            lambda: [_head(table([0.0, 1.0]), 1.0)],
            "-|d - (0, 1)|² = -|d|² + 2 d_right - 1, and the last -1 is the same for all d.",
        ),
        Stage(
            "centre (-1, 0), sharpness 1",
            lambda: [_head(table([-1.0, 0.0]), 1.0)],
            "-(d_down + 1)² = -d_down² - 2 d_down - 1.",
        ),
        Stage(
            "centre (2, -3), sharpness 5",
            lambda: [_head(table([2.0, -3.0]), 5.0)],
            "The sharpness multiplies all three numbers.",
        ),
        Stage(
            "a centre between pixels",
            lambda: [_head(drawn(3, 2), 0.5)],
            "Nothing in the formula asks for whole numbers.",
        ),
    ),
    hints=(
        "Multiply out (d_down - c_down)². Which of the three terms is the same for all d?",
        "What stands before |d|² in -s |d - c|², whatever the centre is?",
        "The middle term is -2 c_down d_down, and -s stands before it. What is their product's sign?",
    ),
    solution=head_vector,
    hidden=_more_head_vector,
    remember=(
        "v = -s (1, -2 c_down, -2 c_right): its direction depends on the centre alone; twice the sharpness is"
        " twice the length"
    ),
    slips={
        "the sign is turned round: this head looks everywhere but there": ("-sharpness", "sharpness"),
        "the middle term has a factor of 2: (a - b)² = a² - 2ab + b²": (
            "-2 * down, -2 * right",
            "-down, -right",
        ),
        "minus times minus: the numbers before d_down and d_right are +2 s c": (
            "-2 * down, -2 * right",
            "2 * down, 2 * right",
        ),
        "the sharpness multiplies all three numbers": (
            "-sharpness * torch.stack([torch.ones_like(down), -2 * down, -2 * right])",
            "torch.stack([-sharpness * torch.ones_like(down), 2 * down, 2 * right])",
        ),
        "the sharpness is missing": ("-sharpness *", "-"),
        "down and right have changed places": ("-2 * down, -2 * right", "-2 * right, -2 * down"),
        "|d|² comes first in r": (
            "[torch.ones_like(down), -2 * down, -2 * right]",
            "[-2 * down, -2 * right, torch.ones_like(down)]",
        ),
    },
)

edge_heads = Choice(
    name="edge_heads",
    notebook=PART,
    title="Fewer than nine",
    asked="A head may share its weight among the nine pixels. How many heads make the edge finder?",
    options={"a": "one", "b": "two", "c": "six, one for each number not 0", "d": "nine"},
    answer="b",
    remember="a head for the pattern, lifted until no share is negative; equal shares take the lift off",
    slips={
        "shares are never negative, and the edge finder has numbers of both signs": "a",
        "one head may bring several pixels at once, if their matrices are positive multiples of one": "c",
        "nine are enough for every kernel; this kernel is a special one": "d",
    },
)

four_for_four = Choice(
    name="four_for_four",
    notebook=PART,
    title="Four heads for four places",
    asked="Four heads could come as near as we like. They start at random offsets. After training",
    options={"a": "all four are found", "b": "some are found", "c": "none is found"},
    answer="b",
    remember="two heads run for one place, and another stays empty",
    slips={
        "each head goes where the slope leads; what if two start near the same place?": "a",
        "blunt heads feel a pull from afar: most of them do arrive somewhere": "c",
    },
)

arrows = Choice(
    name="arrows",
    notebook=PART,
    title="Each pixel its own place",
    asked="How much of the output does the best 7 × 7 kernel miss?",
    options={"a": "nothing: it reaches all four places", "b": "about 75 %", "c": "all of it"},
    answer="b",
    remember="the same taps for every pixel: at best a quarter of each of the four",
    slips={
        "it has a tap for each place; may that tap be 1 for one pixel, and 0 for the next?": "a",
        "the mean of the four places holds the wanted one, too: that is better than nothing": "c",
    },
)

ASKED = (
    enough_heads,
    write_shift_weights,
    write_head_vector,
    edge_heads,
    four_for_four,
    arrows,
)
