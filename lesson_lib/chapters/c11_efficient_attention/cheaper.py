"""What part 11a asks: four predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.chapters.c11_efficient_attention import seconds
from lesson_lib.chapters.c11_efficient_attention.arena import window_and_global
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number
from lesson_lib.masks import window

PART = "11a_approximations"

who_can_win = Choice(
    name="who_can_win",
    notebook=PART,
    title="How many winners?",
    asked=(
        "Five tasks allow 31 choices: one, some, or all. Each has a winner, by the mean. How many of the"
        " eleven kinds win at least once?"
    ),
    options={"a": "one", "b": "three", "c": "seven"},
    answer="c",
    remember="31 averages of one table have seven winners",
    slips={
        "look down the columns: on which single task is BigBird first?": "a",
        "look down the columns: the five single tasks alone have four winners": "b",
    },
)

through_one_token = Choice(
    name="through_one_token",
    notebook=PART,
    title="How much fits through?",
    asked="With 4 pairs the network learns to answer all questions. With 16 pairs?",
    options={
        "a": "all, too: the question hears all 16",
        "b": "about half",
        "c": "a fifth, little more than a guess",
    },
    answer="c",
    remember="one vector must carry all that is heard, and training must find how",
    slips={
        "it hears them; but which of them, in a vector that was made before it could ask?": "a",
        "4 pairs fit, so it would be a quarter and a guess at the rest; does training find even that?": "b",
    },
)

mixed_keys = Number(
    name="mixed_keys",
    notebook=PART,
    title="Two mixtures",
    asked=(
        "Keys 0, 4, 0, 4 with values 10, 20, 30, 40. $E$ and $F$ both take the mean of the first two and of"
        " the last two. A query of 2 asks the mixtures: its output?"
    ),
    value=25,
    answer="(15 + 35) / 2",
    solution="both mixed keys are 2, so both mixed values, 15 and 35, get half of the weight",
    remember="what is mixed cannot be told apart any more",
    slips={
        "that is the exact output, from four keys; what are the two mixed keys?": 30,
        "so it was with keys 0, 0, 4, 4; now each mixed key is the mean of a 0 and a 4, so both are 2": 35,
        "the first mixture's value; what are the two mixed keys?": 15,
        "either 15 and 35 are added, or each group is, to 30 and 70; both times the mean is right": 50,
    },
)

right_on_average = Choice(
    name="right_on_average",
    notebook=PART,
    title="Right on average?",
    asked=(
        "Queries and keys of size (standard deviation) 1, 64 features, 400 outputs, each with its own"
        " directions. How far is their mean from softmax's output?"
    ),
    options={
        "a": "about 5 %: a twentieth of one draw's error",
        "b": "about 40 %",
        "c": "0, but for rounding",
    },
    answer="b",
    remember="right on average is the product, not a ratio of products",
    slips={
        "so it would be if the output were unbiased; is a ratio of two unbiased sums unbiased?": "a",
        "400 draws are not all; and is a ratio of two unbiased sums unbiased?": "c",
    },
)


def with_global(n: int, radius: int, n_global: int) -> Bool[Tensor, "n n"]:
    mask = window(n, radius)
    mask[:, :n_global] = True  # all see them
    mask[:n_global] = True  # they see all
    return mask


def _of(n: int, radius: int, n_global: int) -> Case:
    return {"n": n, "radius": radius, "n_global": n_global}


def _more_masks(_draw: Draw) -> list[Case]:
    return [_of(11, 2, 3), _of(7, 1, 2), _of(13, 0, 1)]


write_with_global = Write(
    name="with_global",
    notebook=PART,
    second=lambda n: seconds.GLOBAL_BEFORE,
    title="A token that sees all",
    stars=1,
    minutes=4,
    why="this is the mask of Longformer, and the first half of BigBird's",
    asked=(
        "the mask (n, n), True = may look: a window of this radius, and the first `n_global` tokens see all"
        " and are seen by all"
    ),
    stages=(
        Stage(
            "five tokens, radius 1, one global token",
            lambda: [_of(5, 1, 1)],
            "Row 0 and column 0 are True; below, token 3 sees 0, 2, 3, 4.",
        ),
        Stage(
            "no global token; and radius 0",
            lambda: [_of(6, 2, 0), _of(6, 0, 1)],
            "Without global tokens it is the window. With radius 0 a token sees itself and token 0.",
        ),
        Stage(
            "seven tokens, two global ones",
            lambda: [_of(7, 1, 2)],
            "Two rows and two columns.",
        ),
        Stage("all are global", lambda: [_of(4, 1, 4)], "Then everybody sees everybody."),
    ),
    reference=window_and_global,
    hints=(
        "Begin with window(n, radius). Which row says whom token 0 sees, and which column who sees token 0?",
        "mask[0] is row 0. What is column 0? And the first n_global rows, or columns?",
        "Which two assignments of True make them global?",
    ),
    solution=with_global,
    hidden=_more_masks,
    remember="rows say whom a token sees, columns who sees it; a global token needs both",
    slips={
        "they see all, but who sees them? Their columns are still the window's": (
            "    mask[:, :n_global] = True  # all see them\n",
            "",
        ),
        "all see them, but they see only their neighbours: their rows are still the window's": (
            "    mask[:n_global] = True  # they see all\n",
            "",
        ),
        "the window is missing: other tokens see their neighbours, too": (
            "window(n, radius)",
            "torch.zeros(n, n, dtype=torch.bool)",
        ),
        "each token sees itself and the global ones; its neighbours are missing": (
            "window(n, radius)",
            "window(n, 0)",
        ),
        "these are the last tokens; the first are asked for": (
            "[:, :n_global]",
            "[:, n - n_global :]",
            "[:n_global]",
            "[n - n_global :]",
        ),
        "one global token too many: tokens 0 to n_global - 1": (
            "[:, :n_global]",
            "[:, : n_global + 1]",
            "[:n_global]",
            "[: n_global + 1]",
        ),
        "only token 0 is global; the first n_global are asked for": (
            "[:, :n_global]",
            "[:, 0]",
            "[:n_global]",
            "[0]",
        ),
        "your window is one step too narrow: a token `radius` away is seen, too (<=)": (
            "window(n, radius)",
            "(torch.arange(n)[:, None] - torch.arange(n)).abs() < radius",
        ),
        "the global tokens see each other and nobody else: whole rows, whole columns": (
            "[:, :n_global] = True  # all see them",
            "[:n_global, :n_global] = True",
            "    mask[:n_global] = True  # they see all\n",
            "",
        ),
        "the mask is the other way round: True means may look": ("return mask", "return ~mask"),
        "your window is one step too wide: a token `radius` away is the farthest": (
            "window(n, radius)",
            "window(n, radius + 1)",
        ),
    },
)


def random_features(
    x: Float[Tensor, "n d"],
    directions: Float[Tensor, "m d"],
) -> Float[Tensor, "n m"]:
    y = x / x.shape[-1] ** 0.25
    exponents = y @ directions.mT - y.square().sum(-1, keepdim=True) / 2
    return exponents.exp() / len(directions) ** 0.5


def _one_by_one(x: Tensor, directions: Tensor) -> Tensor:
    """Feature for feature."""
    root = x.shape[-1] ** 0.25
    rows = [
        [((w @ (a / root)) - (a / root).norm() ** 2 / 2).exp() / len(directions) ** 0.5 for w in directions]
        for a in x
    ]
    return torch.stack([torch.stack(row) for row in rows])


def _features(x: list[list[float]], directions: list[list[float]]) -> Case:
    return {"x": table(x), "directions": table(directions)}


def _more_features(drawn: Draw) -> list[Case]:
    return [
        {"x": drawn(1, 5, 3), "directions": drawn(2, 7, 3)},
        {"x": drawn(3, 3, 2), "directions": drawn(4, 2, 2)},
    ]


write_random_features = Write(
    name="random_features",
    notebook=PART,
    second=lambda n: seconds.BOTH_WAYS,
    title="Features for the exponential",
    stars=2,
    minutes=6,
    why="with this function in the place of elu + 1, linear attention approaches softmax",
    asked=(
        "x is (n, d), directions (m, d). For each token its m random features, exp(w · y - |y|² / 2) / √m"
        " with y = x / d^(1/4): (n, m)"
    ),
    stages=(
        Stage(
            "one number, one direction",
            lambda: [_features([[1.0]], [[1.0]]), _features([[2.0]], [[0.0]])],
            "For x = 1 and w = 1: exp(1 - 1/2) = 1.6487. For x = 2 and w = 0: exp(-2) = 0.1353.",
        ),
        Stage(
            "one number, two directions",
            lambda: [_features([[1.0]], [[1.0], [0.0]])],
            "Two features, 1.6487 and 0.6065, both divided by the root of 2.",
        ),
        Stage(
            "width 16",
            lambda: [_features([[1.0] * 16], [[1.0] + [0.0] * 15])],
            "16^(1/4) = 2, so y has sixteen halves and |y|² = 4: exp(1/2 - 2) = 0.2231.",
        ),
        Stage(
            "three tokens of width 5, seven directions",
            lambda: [{"x": drawn(5, 3, 5), "directions": drawn(6, 7, 5)}],
            "Each token has its own |y|².",
        ),
        Stage(
            "as many tokens as directions, as wide as either",
            lambda: [{"x": drawn(7, 3, 3), "directions": drawn(8, 3, 3)}],
            "Rows are tokens, columns directions.",
        ),
    ),
    reference=_one_by_one,
    hints=(
        "What is y, and what shape has y @ directions.mT?",
        "|y|² is one number a token. Along which axis do you sum, and how does it stay a column?",
        "exp of the difference; by what is it divided, so that a product of two tokens is a mean over m?",
    ),
    solution=random_features,
    hidden=_more_features,
    remember="exp(w · y - |y|² / 2): the square takes off what the exponential adds on average",
    slips={
        "|y|² / 2 is missing: without it the mean of a product is too large": (
            " - y.square().sum(-1, keepdim=True) / 2",
            "",
        ),
        "half of |y|², not the whole": ("keepdim=True) / 2", "keepdim=True)"),
        "the half square is taken off, not added": ("mT - y", "mT + y"),
        "|y|² is the sum of squares, without a root": (
            "y.square().sum(-1, keepdim=True)",
            "y.norm(dim=-1, keepdim=True)",
        ),
        "y is x / d^(1/4); you took x itself": ("x / x.shape[-1] ** 0.25", "x"),
        "d^(1/4), not the root of d: queries and keys are both divided, together by the root": (
            "** 0.25",
            "** 0.5",
        ),
        "|y|² of the divided vector, y, not of x": ("y.square()", "x.square()"),
        "the division by the root of m is missing": (" / len(directions) ** 0.5", ""),
        "the root of m: a product of two features then has 1 / m": (
            "len(directions) ** 0.5",
            "len(directions)",
        ),
        "m is the number of directions, not their width": ("len(directions)", "directions.shape[-1]"),
        "each token has its own |y|²; you summed over all tokens": (
            "y.square().sum(-1, keepdim=True)",
            "y.square().sum()",
        ),
        "exp is missing: a feature is positive": ("exponents.exp()", "exponents"),
        "rows are tokens, columns are directions": (
            "return exponents.exp() / len(directions) ** 0.5",
            "return (exponents.exp() / len(directions) ** 0.5).mT",
        ),
        "you multiply by the root of m; divide by it": ("/ len(directions)", "* len(directions)"),
        "2 to the exponents; a feature takes e": ("exponents.exp()", "exponents.exp2()"),
        "`/ d ** 1 / 4` is x / d, and a quarter of it: the power comes first; `** 0.25`": (
            "x.shape[-1] ** 0.25",
            "x.shape[-1] / 4",
        ),
    },
)

ASKED = (
    who_can_win,
    write_with_global,
    through_one_token,
    mixed_keys,
    write_random_features,
    right_on_average,
)
