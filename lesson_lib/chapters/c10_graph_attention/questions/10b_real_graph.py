"""What of the questions in 10b_real_graph.md is code."""

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.questions import Code


def _whole(numbers: list) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device="cpu")


def _mask(marks: str) -> Tensor:
    """True where an x stands."""
    return torch.tensor([mark == "x" for mark in marks], device="cpu")


def class_average(right, y):
    shares = [right[y == k].float().mean() for k in y.unique()]
    return torch.stack(shares).mean()


def _judged(right: str, y: list[int]) -> Case:
    return {"right": _mask(right), "y": _whole(y)}


def _of_all(right: Tensor, y: Tensor) -> Tensor:
    return right.float().mean()


def _by_counts(right: Tensor, y: Tensor) -> Tensor:
    size, found = y.bincount(), y[right].bincount(minlength=int(y.max()) + 1)
    return (found[size > 0] / size[size > 0]).mean()


def _more_judged(draw: Draw) -> list[Case]:
    y = (draw(1, 40) * 1.5).long().abs() * 2
    return [{"right": draw(2, 40) > 0.3, "y": y}]


def class_average_2(y):
    size = y.bincount()
    return 1 / ((size > 0).sum() * size[y])


def leaked(group, training, test):
    known = torch.isin(group[test], group[training])
    return known.float().mean()


def _split(group: list[int], training: str, test: str) -> Case:
    return {"group": _whole(group), "training": _mask(training), "test": _mask(test)}


def _one_by_one(group: Tensor, training: Tensor, test: Tensor) -> Tensor:
    trained = set(group[training].tolist())
    asked = group[test].tolist()
    return torch.tensor(sum(one in trained for one in asked) / len(asked))


def _more_split(draw: Draw) -> list[Case]:
    group, side = (draw(1, 30) * 4).long().abs(), draw(2, 30)
    return [{"group": group, "training": side > 0.4, "test": side < -0.4}]


def leaked_2(edge_index, training, test):
    source, target = edge_index
    across = training[source] & test[target] | test[source] & training[target]
    return across.float().mean()


def _across(pairs: list[tuple[int, int]], training: str, test: str) -> Case:
    return {"edge_index": _whole(pairs).T.contiguous(), "training": _mask(training), "test": _mask(test)}


def _other_sides(edge_index: Tensor, training: Tensor, test: Tensor) -> Tensor:
    return (training[edge_index[0]] != training[edge_index[1]]).float().mean()


CODE = {
    "class_average": Code(
        solution=class_average,
        cases=(
            lambda: [_judged("xx..", [0, 1, 1, 1])],
            lambda: [_judged("x.xx", [0, 0, 2, 2])],
            lambda: [_judged("x..xx.xx.", [2, 0, 1, 1, 2, 0, 0, 2, 2])],
        ),
        wrong=(_of_all,),
        reference=_by_counts,
        hidden=_more_judged,
    ),
    "class_average_2": Code(
        solution=class_average_2,
        cases=(
            lambda: [{"y": _whole([0, 1, 1, 1])}],
            lambda: [{"y": _whole([1, 1])}],
            lambda: [{"y": _whole([3, 0, 1, 1, 0])}],
        ),
    ),
    "leaked": Code(
        solution=leaked,
        cases=(
            lambda: [_split([0, 1, 0, 0, 1], "x....", ".xxx.")],
            lambda: [_split([0, 1, 0, 2], "x.x.", ".x.x")],
            lambda: [_split([4, 2, 4, 2, 1, 1, 4, 0], "x......x", ".xx.x.x.")],
        ),
        reference=_one_by_one,
        hidden=_more_split,
    ),
    "leaked_2": Code(
        solution=leaked_2,
        cases=(
            lambda: [_across([(0, 1), (0, 2), (1, 3)], "x.x.", ".x.x")],
            lambda: [_across([(1, 0), (2, 0), (0, 2)], "x.x.", ".x..")],
            lambda: [_across([(0, 1), (1, 4), (3, 0), (4, 0), (2, 3)], "x..x.", ".x...")],
        ),
        wrong=(_other_sides,),
    ),
}
