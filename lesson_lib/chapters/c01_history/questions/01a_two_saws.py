"""What of the questions in 01a_two_saws.md is code."""

import torch

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def most_right(counts):
    return counts.amax(-1).sum() / counts.sum()


def _counts(counts: object) -> Case:
    return {"counts": counts}


def _more_most_right(drawn: Draw) -> list[Case]:
    return [_counts(drawn(1, 7, 3).abs()), _counts(drawn(2, 5, 11).abs())]


def window_mask(n, radius):
    i = torch.arange(n)
    return (i[:, None] - i[None, :]).abs() <= radius


def _more_window_mask(drawn: Draw) -> list[Case]:
    return [{"n": 11, "radius": 3}, {"n": 2, "radius": 5}]


def most_right_2(counts):
    by_word = counts.sum(0)  # (words, tags): the word before is no longer seen
    return by_word.amax(-1).sum() / counts.sum()


def window_mask_2(n, size):
    i = torch.arange(n)
    back = i[:, None] - i[None, :]  # how far word j lies before word i
    return (back >= 0) & (back < size)


def changed_tags(before, after, gone):
    kept = torch.cat([before[:gone], before[gone + 1 :]])
    moved = (kept != after).nonzero().squeeze(-1)
    return moved + (moved >= gone)


def changed_tags_2(before, after, new):
    old = torch.cat([after[:new], after[new + 1 :]])
    return (before != old).nonzero().squeeze(-1)


def _gone(before: list[int], after: list[int], gone: int) -> Case:
    return {"before": torch.tensor(before), "after": torch.tensor(after), "gone": gone}


def _new(before: list[int], after: list[int], new: int) -> Case:
    return {"before": torch.tensor(before), "after": torch.tensor(after), "new": new}


CODE = {
    "most_right": Code(
        solution=most_right,
        cases=(
            lambda: [_counts(table([[5.0, 3.0]]))],
            lambda: [_counts(table([[4.0, 0.0], [0.0, 3.0], [1.0, 0.0]]))],
            lambda: [_counts(drawn(3, 5, 3).abs())],
        ),
        hidden=_more_most_right,
    ),
    "most_right_2": Code(
        solution=most_right_2,
        cases=(
            lambda: [{"counts": table([[[4.0, 0.0]], [[1.0, 3.0]]])}],
            lambda: [{"counts": primes(2, 3, 2)}],
            lambda: [{"counts": drawn(1, 7, 5, 3).abs()}],
        ),
    ),
    "window_mask": Code(
        solution=window_mask,
        cases=(
            lambda: [{"n": 3, "radius": 0}],
            lambda: [{"n": 5, "radius": 1}],
            lambda: [{"n": 7, "radius": 2}],
        ),
        hidden=_more_window_mask,
    ),
    "window_mask_2": Code(
        solution=window_mask_2,
        cases=(
            lambda: [{"n": 3, "size": 1}],
            lambda: [{"n": 5, "size": 2}],
            lambda: [{"n": 7, "size": 3}, {"n": 2, "size": 5}],
        ),
    ),
    "changed_tags": Code(
        solution=changed_tags,
        cases=(
            lambda: [_gone([6, 1, 3], [1, 3], 0)],
            lambda: [_gone([3, 1, 4, 2], [5, 1, 2], 2)],
            lambda: [_gone([6, 1, 3, 5, 2], [6, 3, 5, 4], 1), _gone([6, 1, 3, 5], [6, 4, 5], 1)],
            lambda: [_gone([6, 1, 3], [6, 1], 2)],
            lambda: [_gone([6, 1, 3, 5, 2, 7, 4], [6, 9, 3, 2, 8, 0], 3)],
        ),
        hidden=lambda drawn: [_gone([5, 0, 2, 2, 1, 3], [4, 0, 2, 0, 9], 3), _gone([8, 1], [2], 0)],
    ),
    "changed_tags_2": Code(
        solution=changed_tags_2,
        cases=(
            lambda: [_new([1, 3], [6, 1, 3], 0)],
            lambda: [_new([3, 1, 2], [5, 1, 4, 2], 2)],
            lambda: [_new([6, 3, 5, 2], [6, 1, 3, 5, 4], 1), _new([6, 3, 5], [6, 1, 4, 5], 1)],
        ),
    ),
}
