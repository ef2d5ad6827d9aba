"""What part 01c asks: five predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.chapters.c01_history import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice, Number

PART = "01c_where_to_look"

how_often_33 = Choice(
    name="how_often_33",
    notebook=PART,
    title="Draw a hundred thousand times",
    asked="Hard attention draws 100,000 times. How often is its output 33?",
    options={"a": "never", "b": "about one time in ten", "c": "always"},
    answer="a",
    remember="only 10, 20 and 40 can come out; their mean is near 33",
    slips={
        "no place holds 33: a draw gives 10, 20 or 40": "b",
        "33 is the mixture; a draw takes one place": "c",
    },
)

estimate_left = Number(
    name="estimate_left",
    notebook=PART,
    second=lambda n: seconds.estimate_left(estimate_left, n),
    title="One draw",
    asked="p = 0.2, and the draw was left, with the reward 1. What is reward · d log p / dp?",
    answer="1 / 0.2",
    value=5,
    remember="1 · 1/p = 5; right gives 0; the mean is 0.2 · 5 + 0.8 · 0 = 1, which is true",
    slips={
        "that is the true derivative, the mean of the estimates; one draw gives more, or nothing": 1,
        "that is p; the derivative of log p is 1 / p": 0.2,
        "that is for 1 - p; left has the probability p": 1.25,
        "that is log p; its derivative is asked for": -1.6094,
    },
)

who_moves_the_eye = Choice(
    name="who_moves_the_eye",
    notebook=PART,
    title="Who moves the eye?",
    asked="Four looks. Which order is right, best first: learned places, random places, always the centre?",
    options={
        "a": "learned, random, centre",
        "b": "learned, centre, random",
        "c": "centre, learned, random",
    },
    answer="a",
    remember=".93, .78 and .66: random places bring new parts into view, the centre never does",
    slips={
        "the centre shows the same pixels four times; chance brings new ones into view": "b",
        "the digit lies anywhere, and seldom in the middle": "c",
    },
)

small_batches = Choice(
    name="small_batches",
    notebook=PART,
    title="Twenty at a time",
    asked="Batches of 20, 3,000 steps. Learned or random places: which do better?",
    options={"a": "learned, as before", "b": "random", "c": "both fail entirely"},
    answer="b",
    remember="places that follow noise are worse than places drawn by chance",
    slips={
        "with 20 draws the estimate is mostly noise: the eye follows it to bad places, and stays there": "a",
        "guessing gives .10; both are above it": "c",
    },
)

which_sample = Choice(
    name="which_sample",
    notebook=PART,
    title="sample or rsample?",
    asked="x = mean + σ · noise; log p(x) = -(x - mean)² / 2σ². With x linked to mean, d log p / d mean =",
    options={"a": "(x - mean) / σ²", "b": "0", "c": "an error"},
    answer="b",
    remember="x - mean is σ · noise: the mean cancels, and nothing is learned, without any error",
    slips={
        "that holds for a fixed x; here x moves along with the mean": "a",
        "everything is differentiable, so nothing complains": "c",
    },
)


def crop(
    canvas: Float[Tensor, "height width"], row: int, column: int, size: int
) -> Float[Tensor, "size size"]:
    half = size // 2
    padded = torch.nn.functional.pad(canvas, (half, half, half, half))
    return padded[row : row + size, column : column + size]


def _pixel_by_pixel(canvas: Tensor, row: int, column: int, size: int) -> Tensor:
    height, width = canvas.shape
    patch = canvas.new_zeros(size, size)
    for i in range(size):
        for j in range(size):
            y, x = row + i - size // 2, column + j - size // 2
            if 0 <= y < height and 0 <= x < width:
                patch[i, j] = canvas[y, x]
    return patch


def _glimpse(height: int, width: int, row: int, column: int, size: int) -> Case:
    return {"canvas": primes(height, width), "row": row, "column": column, "size": size}


def _more_crop(drawn: Draw) -> list[Case]:
    canvas = drawn(1, 11, 7)
    places = ((9, 1, 5), (4, 3, 3), (10, 6, 7))
    return [{"canvas": canvas, "row": r, "column": c, "size": s} for r, c, s in places]


write_crop = Write(
    name="crop",
    notebook=PART,
    second=lambda n: seconds.WITHOUT_EDGES,
    title="A glimpse at the edge: a repair",
    stars=2,
    minutes=6,
    why="a slice beyond the edge raises no error: it comes back too small, or empty, or from the wrong side",
    asked=(
        "repair: the size x size patch of the canvas with its centre at (row, column), size odd; zeros beyond"
        " the edge"
    ),
    repair=True,
    stages=(
        Stage(
            "size 1: the pixel itself",
            lambda: [_glimpse(3, 4, 1, 2, 1)],
            "The patch is one number, canvas[row, column].",
        ),
        Stage(
            "in the middle",
            lambda: [_glimpse(5, 7, 2, 4, 3)],
            "The centre of the patch is canvas[row, column]; size // 2 pixels on each side.",
        ),
        Stage(
            "in the upper left corner",
            lambda: [_glimpse(3, 5, 0, 0, 3)],
            "What stands at row -1 and column -1? Zeros are asked for.",
        ),
        Stage(
            "at the other edges",
            lambda: [_glimpse(3, 5, 2, 4, 3), _glimpse(5, 3, 3, 2, 3)],
            "Beyond the last row and the last column there are zeros, too.",
        ),
        Stage(
            "a patch larger than the canvas",
            lambda: [_glimpse(3, 2, 1, 0, 5), _glimpse(2, 4, 1, 3, 7)],
            "The patch is size x size, wherever its centre is.",
        ),
    ),
    reference=_pixel_by_pixel,
    hints=(
        "At row 0 the slice starts at row -1. What does canvas[-1:2] give, when -1 counts from the end?",
        (
            "What if the canvas had a frame of zeros around it? How wide must the frame be, at least, for a"
            " patch of this size?"
        ),
        (
            "With a frame of size // 2, pixel (row, column) moves to (row + half, column + half). Where does"
            " the slice then start?"
        ),
    ),
    solution=crop,
    remember=(
        "a frame of size // 2 zeros, and the slice starts at the centre's own numbers: [row : row + size]"
    ),
    slips={
        "this is still the function as it was given": (
            "padded = torch.nn.functional.pad(canvas, (half, half, half, half))",
            "rows = slice(row - half, row + half + 1)\n    columns = slice(column - half, column + half + 1)",
            "padded[row : row + size, column : column + size]",
            "canvas[rows, columns]",
        ),
        "row and column are exchanged: the first axis of the canvas counts rows": (
            "row : row + size, column : column + size",
            "column : column + size, row : row + size",
        ),
        "the patch is transposed: its rows are the canvas's columns": ("column + size]", "column + size].mT"),
        "(row, column) is the upper left corner of your patch; it must be its centre": (
            "half, half, half, half",
            "0, size, 0, size",
        ),
        "you repeat the pixels of the edge; beyond it there are zeros": (
            "canvas, (",
            "canvas[None], (",
            "half))",
            'half), mode="replicate")[0]',
        ),
        "you push the patch back inside; its centre must stay at (row, column)": (
            "padded = torch.nn.functional.pad(canvas, (half, half, half, half))",
            "row = max(0, min(row - half, canvas.shape[0] - size))",
            "return padded",
            "column = max(0, min(column - half, canvas.shape[1] - size))\n    return canvas",
        ),
        "the other side of the canvas comes in: negative indices count from the end": (
            "padded = torch.nn.functional.pad(canvas, (half, half, half, half))",
            "rows = [(row - half + i) % canvas.shape[0] for i in range(size)]",
            "return padded[row : row + size, column : column + size]",
            "columns = [(column - half + i) % canvas.shape[1] for i in range(size)]\n"
            "    return canvas[rows][:, columns]",
        ),
        "off by one: your patch starts one row and one column too early": ("size // 2", "size // 2 + 1"),
        "off by one: your patch starts one row and one column too late": (
            "half, half, half, half",
            "half - 1, half + 1, half - 1, half + 1",
        ),
        "the frame shifts every pixel by half: in the padded canvas the slice starts at row": (
            "row : row + size",
            "row - half : row + half + 1",
            "column : column + size",
            "column - half : column + half + 1",
        ),
        "size counts the whole patch; you take that many pixels on each side": (
            "size // 2",
            "size",
            "row + size",
            "row + 2 * size + 1",
            "column + size",
            "column + 2 * size + 1",
        ),
        "size / 2 is no whole number; size // 2 is": (
            "half = size // 2\n    padded = torch.nn.functional.pad(canvas, (half, half, half, half))",
            "half = size / 2",
            "padded[row : row + size, column : column + size]",
            "canvas[row - half : row + half, column - half : column + half]",
        ),
        "only columns are padded: pad takes left, right, above, below, in this order": (
            "half, half, half, half",
            "half, half",
        ),
        "zeros are missing below and on the right": ("half, half, half, half", "half, 0, half, 0"),
        "your slice is cut off at the edge, and the patch too small: put zeros around the canvas first": (
            "padded = torch.nn.functional.pad(canvas, (half, half, half, half))",
            "rows = slice(max(row - half, 0), row + half + 1)",
            "return padded[row : row + size, column : column + size]",
            "columns = slice(max(column - half, 0), column + half + 1)\n    return canvas[rows, columns]",
        ),
        "your slice ends one pixel early: it must hold size rows, row - half ... row + half": (
            "row + size",
            "row + size - 1",
            "column + size",
            "column + size - 1",
        ),
        "zeros belong where the square was cut; you always move the rest to the patch's upper left": (
            "padded = torch.nn.functional.pad(canvas, (half, half, half, half))",
            "rest = canvas[max(row - half, 0) : row + half + 1, max(column - half, 0) : column + half + 1]\n"
            "    patch = canvas.new_zeros(size, size)\n"
            "    patch[: rest.shape[0], : rest.shape[1]] = rest",
            "padded[row : row + size, column : column + size]",
            "patch",
        ),
    },
    hidden=_more_crop,
)


def nudge(
    place: Float[Tensor, "b 2"],
    mean: Float[Tensor, "b 2"],
    std: float,
    reward: Float[Tensor, " b"],
    baseline: Float[Tensor, " b"],
) -> Float[Tensor, "b 2"]:
    advantage = reward - baseline
    return advantage[:, None] * (place - mean) / std**2


def _looked(place: object, mean: object, std: float, reward: object, baseline: object) -> Case:
    return {"place": place, "mean": mean, "std": std, "reward": reward, "baseline": baseline}


def _more_nudge(drawn: Draw) -> list[Case]:
    return [_looked(drawn(1, 7, 2), drawn(2, 7, 2), 0.7, drawn(3, 7), drawn(4, 7))]


def _by_autograd(place: Tensor, mean: Tensor, std: float, reward: Tensor, baseline: Tensor) -> Tensor:
    about = mean.clone().requires_grad_()
    log_density = torch.distributions.Normal(about, std).log_prob(place).sum(-1)
    (gradient,) = torch.autograd.grad(((reward - baseline) * log_density).sum(), about)
    return gradient


write_nudge = Write(
    name="nudge",
    notebook=PART,
    second=lambda n: seconds.PLACES_ON_A_LIST,
    title="Which way to move the eye",
    stars=2,
    minutes=6,
    why="this line tells the eye where to go; policy gradients train chat models in the same way",
    asked="(b, 2): (reward - baseline) · d log p(place) / d mean; p normal about `mean`, deviation `std`",
    stages=(
        Stage(
            "one look, rewarded: towards the place",
            lambda: [
                _looked(
                    table([[0.5, 0.0]]), table([[0.0, 0.0]]), 0.5, torch.tensor([1.0]), torch.tensor([0.0])
                )
            ],
            "log p = -(place - mean)² / 2 std²; its slope in the mean is (place - mean) / std² = 0.5 / 0.25.",
        ),
        Stage(
            "no reward, less than expected: away from the place",
            lambda: [
                _looked(
                    table([[0.5, -0.5]]), table([[0.0, 0.5]]), 0.5, torch.tensor([0.0]), torch.tensor([0.5])
                )
            ],
            "reward - baseline is -0.5: the mean moves away.",
        ),
        Stage(
            "five looks, each with a reward of its own",
            lambda: [_looked(drawn(1, 5, 2), drawn(2, 5, 2), 0.3, drawn(3, 5), drawn(4, 5))],
            "Rewards are (b,), places (b, 2): which axis is missing?",
        ),
    ),
    reference=_by_autograd,
    hints=(
        "What is the derivative of -(x - m)² / 2σ² with respect to m?",
        "reward - baseline is (b,). What makes (b, 1) of it?",
        "Do you divide by std, or by its square?",
    ),
    solution=nudge,
    hidden=_more_nudge,
    remember="better than expected: towards the place that was drawn; worse: away from it",
    slips={
        "you divide by std; the slope of the log density has its square": ("std**2", "std"),
        "the baseline is missing": ("reward - baseline", "reward"),
        "the sign is turned round: a lucky draw should pull the mean towards it": (
            "place - mean",
            "mean - place",
        ),
        "the 2 of 2 std² cancels: the derivative of a square brings a 2": ("/ std**2", "/ (2 * std**2)"),
        "you forgot to divide by std²": (" / std**2", ""),
        "the reward is missing: every draw pulls alike": ("advantage[:, None] * (", "("),
        "a mean over the batch: asked is a row for each look": (
            "(place - mean) / std**2",
            "(place - mean).mean(0) / std**2",
        ),
        "a reward belongs to a look, yours meets x and y: `[:, None]` makes a column of rewards": (
            "advantage[:, None]",
            "advantage",
        ),
    },
)

ASKED = (
    how_often_33,
    estimate_left,
    write_nudge,
    write_crop,
    who_moves_the_eye,
    small_batches,
    which_sample,
)
