"""What of the exam's questions is code; their words are in the file beside this one."""

import random
from typing import Any

from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code


def exam_exchange(weights: Float[Tensor, "b h n m"], head: int, i: int, j: int) -> Float[Tensor, "b h n m"]:
    moved = weights.clone()
    moved[:, head, :, [i, j]] = weights[:, head, :, [j, i]]
    return moved


def _case(seed: int, shape: tuple[int, ...], head: int, i: int, j: int, drawn: Draw = drawn) -> Case:
    return {"weights": drawn(seed, *shape).softmax(-1), "head": head, "i": i, "j": j}


def _head_score(draw: random.Random) -> dict[str, Any]:
    q, k = draw.sample(range(1, 10), 4), draw.sample(range(1, 10), 4)
    products = [one * other for one, other in zip(q, k, strict=True)]
    first, second, odd = sum(products[:2]), sum(products[2:]), sum(products[1::2])
    return locals()


CODE = {
    "exam_head_score": Code(draw=_head_score),
    "exam_cuts": Code(draw=lambda draw: {"r": draw.choice([3, 4, 5, 6, 7, 8, 9])}),
    "exam_exchange": Code(
        solution=exam_exchange,
        cases=(
            lambda: [_case(1, (1, 1, 3, 3), 0, 0, 2)],
            lambda: [_case(3, (3, 4, 5, 7), 2, 4, 1)],
        ),
        hidden=lambda drawn: [_case(4, (2, 3, 5, 11), 1, 2, 0, drawn)],
    ),
}
