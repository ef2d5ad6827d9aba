"""What of the exam's questions is code; their words are in the file beside this one."""

import math
import random
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code


def exam_bits(
    logits: Float[Tensor, "b n v"], tokens: Int[Tensor, "b n"], real: Bool[Tensor, "b n"]
) -> Float[Tensor, ""]:
    asked = real[:, 1:]
    return F.cross_entropy(logits[:, :-1][asked], tokens[:, 1:][asked]) / math.log(2)


def _case(seed: int, lengths: list[int], v: int, drawn: Draw = drawn) -> Case:
    b, n = len(lengths), max(lengths)
    tokens = drawn(seed + 1, b, n, v).argmax(-1)
    real = torch.arange(n) < torch.tensor(lengths)[:, None]
    return {"logits": drawn(seed, b, n, v), "tokens": tokens, "real": real}


def _sure(seed: int, lengths: list[int], v: int) -> Case:
    case = _case(seed, lengths, v)
    said, asked = case["tokens"].roll(-1, 1), case["real"].roll(-1, 1)
    return {**case, "logits": 50.0 * F.one_hot(torch.where(asked, said, (said + 1) % v), v)}


def _pre_norm(draw: random.Random) -> dict[str, Any]:
    x, y = sorted(draw.sample(range(2, 12), 2))
    return {"x": x, "y": y, "k": draw.choice([2, 3, 4, 5, 6])}


def _perplexity(draw: random.Random) -> dict[str, Any]:
    a, b = sorted(draw.sample([1, 2, 3, 4, 5], 2))
    m, n = draw.sample([2, 3, 4, 6], 2)
    return locals()


CODE = {
    "exam_pre_norm": Code(draw=_pre_norm),
    "exam_perplexity": Code(draw=_perplexity),
    "exam_bits": Code(
        solution=exam_bits,
        cases=(
            lambda: [_sure(1, [5], 4)],
            lambda: [_sure(3, [7, 3], 5)],
            lambda: [_case(5, [7, 7, 7], 11)],
        ),
        hidden=lambda drawn: [_case(7, [13, 13], 17, drawn)],
    ),
}
