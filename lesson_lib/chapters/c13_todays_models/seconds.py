"""Second problems of chapter 13, in the learner's order."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn


def prefix_matching_2(table: Float[Tensor, "n n"], length: int) -> Float[Tensor, ""]:
    last = range(2 * length, 3 * length)
    both = [table[i, i - length + 1] + table[i, i - 2 * length + 1] for i in last]
    return torch.stack(both).mean()


def _thrice(seed: int, length: int) -> Case:
    rows = drawn(seed, 3 * length, 3 * length).abs() + 0.1
    return {"table": rows / rows.sum(1, keepdim=True), "length": length}


THREE_TIMES = Write(
    name="prefix_matching_2",
    title="A piece said three times",
    asked=(
        "the piece is said three times, n = 3 * length. Return the mean weight that the tokens of the LAST"
        " third give to those after their two earlier copies, both together"
    ),
    stages=(
        Stage("a piece of 2", lambda: [_thrice(1, 2)], "Tokens 4 and 5; the copies stand 2 and 4 before."),
        Stage("longer pieces", lambda: [_thrice(5, 3), _thrice(7, 5)], "Two places for each token."),
    ),
    hints=(
        "Where are the two earlier copies of token i?",
        "Which two entries of row i are added?",
        "Over which tokens does the mean run?",
    ),
    solution=prefix_matching_2,
    remember="each copy is `length` tokens before the next",
    slips={
        "only the nearer copy is counted": (" + table[i, i - 2 * length + 1]", ""),
        "only the farther copy is counted": ("table[i, i - length + 1] + ", ""),
        "those are the copies themselves; asked for are the tokens after them": (
            "i - length + 1] + table[i, i - 2 * length + 1]",
            "i - length] + table[i, i - 2 * length]",
        ),
        "the last third begins at 2 * length": ("range(2 * length, 3 * length)", "range(length, 2 * length)"),
        "the mean, not the sum": (".mean()", ".sum()"),
    },
)


def two_looks_2(x: Float[Tensor, "n d"], sharp: float) -> Float[Tensor, "n d"]:
    i = torch.arange(len(x))
    before = attend(x, x, x, mask=i[:, None] - i == 1).output
    return attend(sharp * x, x, before, mask=i[:, None] > i).output


def _signs(numbers: list[int], d: int) -> Case:
    return {"x": torch.eye(d, device="cpu")[numbers], "sharp": 3.0}


WHAT_STOOD_BEFORE = Write(
    name="two_looks_2",
    title="What stood before?",
    asked=(
        "now fetch the sign that stood BEFORE the earlier copies: queries sharp · x, keys x, values what the"
        " first look gave; a token looks at earlier ones only, not at itself"
    ),
    stages=(
        Stage("the signs 2 1 0 1", lambda: [_signs([2, 1, 0, 1], 3)], "Before the first 1 stood 2."),
        Stage(
            "more signs",
            lambda: [_signs([3, 1, 4, 3, 1, 4, 0], 5), _signs([0, 2, 0, 2, 2], 4)],
            "The first token may look at nothing: zeros.",
        ),
    ),
    hints=(
        "Which of the two tables holds what a token IS, and which what stood before it?",
        "What is compared now, and what is handed over?",
        "How do you take a token itself out of a causal mask?",
    ),
    solution=two_looks_2,
    remember="compare what tokens are, hand over what stood before them",
    slips={
        "that fetches the sign itself: the values are what the first look gave": (
            "sharp * x, x, before",
            "sharp * x, x, x",
        ),
        "that asks for what comes after: the keys are the signs themselves": (
            "sharp * x, x, before",
            "sharp * x, before, x",
        ),
        "a token finds itself: take it out of the mask": ("i[:, None] > i", "i[:, None] >= i"),
        "later tokens are looked at, too": ("i[:, None] > i", "i[:, None] != i"),
        "the first look fetches the token after": ("i[:, None] - i == 1", "i - i[:, None] == 1"),
    },
)
