"""What of the questions in 13b_induction.md is code."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def two_looks(x, sharp):
    i = torch.arange(len(x))
    before = attend(x, x, x, mask=i[:, None] - i == 1).output
    return attend(sharp * x, before, x, mask=i[:, None] >= i).output


def _token_by_token(x: Tensor, sharp: float) -> Tensor:
    rows = []
    for i in range(len(x)):
        keys = torch.cat((torch.zeros_like(x[:1]), x[:i]))
        rows.append(attend(sharp * x[i : i + 1], keys, x[: i + 1]).output)
    return torch.cat(rows)


def _signs(numbers: list[int], d: int, sharp: float = 100.0) -> Case:
    return {"x": torch.eye(d, device="cpu")[numbers], "sharp": sharp}


def _random_signs(seed: int, n: int, d: int, draw: Draw = drawn) -> Case:
    return {"x": torch.eye(d, device="cpu")[(draw(seed, n) * 10).long() % d], "sharp": 3.0}


def prefix_matching(table, length):
    return table.diagonal(1 - length)[1:].mean()


def _by_loop(table: Tensor, length: int) -> Tensor:
    found = [table[i, i - length + 1] for i in range(length, len(table))]
    return torch.stack(found).mean()


def _score_case(seed: int, length: int, draw: Draw = drawn) -> Case:
    rows = draw(seed, 2 * length, 2 * length).abs() + 0.1
    return {"table": rows / rows.sum(1, keepdim=True), "length": length}


def _only(length: int, back: int) -> Case:
    """All weight lies `back` positions before the query."""
    n = 2 * length
    i = torch.arange(n, device="cpu")
    return {"table": (i[:, None] - i == back).float(), "length": length}


def prefix_matching_2(table, length):
    last = range(2 * length, 3 * length)
    both = [table[i, i - length + 1] + table[i, i - 2 * length + 1] for i in last]
    return torch.stack(both).mean()


def _thrice(seed: int, length: int) -> Case:
    rows = drawn(seed, 3 * length, 3 * length).abs() + 0.1
    return {"table": rows / rows.sum(1, keepdim=True), "length": length}


def two_looks_2(x, sharp):
    i = torch.arange(len(x))
    before = attend(x, x, x, mask=i[:, None] - i == 1).output
    return attend(sharp * x, x, before, mask=i[:, None] > i).output


def _signs_2(numbers: list[int], d: int) -> Case:
    return {"x": torch.eye(d, device="cpu")[numbers], "sharp": 3.0}


CODE = {
    "two_looks": Code(
        solution=two_looks,
        cases=(
            lambda: [_signs([0, 1, 2, 0], 4)],
            lambda: [_signs([3, 1, 4, 3, 1, 4], 5)],
            lambda: [_signs([2, 2, 0, 2], 3), _signs([1], 3)],
            lambda: [_random_signs(5, 9, 4), _random_signs(8, 12, 6)],
        ),
        reference=_token_by_token,
        hidden=lambda draw: [_random_signs(41, 7, 5, draw), _random_signs(51, 10, 3, draw)],
    ),
    "two_looks_2": Code(
        solution=two_looks_2,
        cases=(
            lambda: [_signs_2([2, 1, 0, 1], 3)],
            lambda: [_signs_2([3, 1, 4, 3, 1, 4, 0], 5), _signs_2([0, 2, 0, 2, 2], 4)],
        ),
    ),
    "prefix_matching": Code(
        solution=prefix_matching,
        cases=(
            lambda: [
                {
                    "table": table(
                        [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.6, 0.2, 0], [0.1, 0.3, 0.4, 0.2]]
                    ),
                    "length": 2,
                }
            ],
            lambda: [_only(5, 4), _only(5, 5), _only(3, 1)],
            lambda: [_score_case(3, 4), _score_case(9, 7)],
        ),
        reference=_by_loop,
        hidden=lambda draw: [_score_case(21, 5, draw), _score_case(31, 3, draw)],
    ),
    "prefix_matching_2": Code(
        solution=prefix_matching_2,
        cases=(
            lambda: [_thrice(1, 2)],
            lambda: [_thrice(5, 3), _thrice(7, 5)],
        ),
    ),
}
