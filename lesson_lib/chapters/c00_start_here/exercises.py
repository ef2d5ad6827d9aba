"""What page 00 asks: an answer to hand in, wrong and right, and a first prediction."""

import random
from dataclasses import replace

from lesson_lib.checks.short import Number, fresh


def _with_other_numbers(draw: random.Random) -> Number:
    quarters, (a, b) = draw.choice((1, 3)), draw.sample(range(4, 41, 4), 2)
    left, right = quarters / 4, 1 - quarters / 4
    value = left * a + right * b
    return replace(
        weighted_sum,
        asked=f"the weights are [{left}, {right}] and the values {a} and {b}; what is the weighted sum?",
        answer=f"{left} * {a} + {right} * {b}",
        value=value,
        solution=f"{left} * {a} + {right} * {b} = {left * a:g} + {right * b:g} = {value:g}",
        slips={
            "you swapped the weights: the first belongs to the first value": f"{right} * {a} + {left} * {b}",
            "that is the plain average; the weights are not equal": f"({a} + {b}) / 2",
            "that is the plain sum; each value must be multiplied by its weight first": a + b,
            "you averaged the two products; a weighted sum adds them": value / 2,
        },
    )


sum_of_three = Number(
    name="sum_of_three",
    notebook="00_start_here",
    title="Ones times ones",
    asked="torch.ones(2, 3) @ torch.ones(3, 4): which number is in every cell?",
    answer="1 * 1 + 1 * 1 + 1 * 1",
    value=3,
    remember="each cell is a sum of three products 1 · 1; the result has the shape (2, 4)",
    slips={
        "that is one product alone; each cell adds up as many as the inner axis is long": 1,
        "that is the outer axis of the first; the inner one, which both share, counts": 2,
        "that is the outer axis of the second; the inner one, which both share, counts": 4,
        "that is how many numbers the first tensor has": 6,
    },
)

weighted_sum = Number(
    name="weighted_sum",
    second=lambda n: fresh(n, _with_other_numbers),
    notebook="00_start_here",
    title="Your first answer",
    stars=1,
    minutes=2,
    why="all of attention ends in a weighted sum; and you see what a check says",
    asked="the weights are [0.25, 0.75] and the values 8 and 4; what is the weighted sum?",
    value=5.0,
    hints=(
        "Which weight belongs to which value?",
        "What is a quarter of 8? What are three quarters of 4?",
        "And their sum?",
    ),
    solution="0.25 * 8 + 0.75 * 4 = 2 + 3 = 5",
    remember=(
        "a weighted sum multiplies each value by its own weight and adds; it lies between the smallest and"
        " the largest value"
    ),
    slips={
        "you swapped the weights: 0.25 belongs to 8, 0.75 to 4": 7,
        "that is the plain average; the weights are not equal": 6,
        "that is the plain sum; each value must be multiplied by its weight first": 12,
        "that is only the first product; add the second, 0.75 * 4": 2,
        "that is only the second product; add the first, 0.25 * 8": 3,
        "you averaged the two products; a weighted sum adds them, the weights sum to 1 already": 2.5,
    },
    answer="0.25 * 8 + 0.75 * 4",
)

EXERCISES = (sum_of_three, weighted_sum)
