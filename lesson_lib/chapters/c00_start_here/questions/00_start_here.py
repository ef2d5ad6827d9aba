"""What of the questions in 00_start_here.md is code."""

import random
from typing import Any

from lesson_lib.checks.questions import Code


def _weighted_sum_numbers(draw: random.Random) -> dict[str, Any]:
    quarters, (a, b) = draw.choice((1, 3)), draw.sample(range(4, 41, 4), 2)
    left, right = quarters / 4, 1 - quarters / 4
    value = left * a + right * b
    return locals()


CODE = {
    "weighted_sum_2": Code(
        draw=_weighted_sum_numbers,
    ),
}
