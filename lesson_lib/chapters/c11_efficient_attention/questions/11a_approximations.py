"""What of the questions in 11a_approximations.md is code."""

import torch
from torch import Tensor

from lesson_lib.chapters.c11_efficient_attention.arena import window_and_global
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.masks import window


def with_global(n, radius, n_global):
    mask = window(n, radius)
    mask[:, :n_global] = True  # all see them
    mask[:n_global] = True  # they see all
    return mask


def _of(n: int, radius: int, n_global: int) -> Case:
    return {"n": n, "radius": radius, "n_global": n_global}


def _more_masks(_draw: Draw) -> list[Case]:
    return [_of(11, 2, 3), _of(7, 1, 2), _of(13, 0, 1)]


def random_features(x, directions):
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


def with_global_2(n, radius, place):
    i, j = torch.arange(n)[:, None], torch.arange(n)
    return (j <= i) & ((i - j <= radius) | (j == place) | (i == place))


def _of_2(n: int, radius: int, place: int) -> Case:
    return {"n": n, "radius": radius, "place": place}


def random_features_2(x, directions):
    y = x / x.shape[-1] ** 0.25
    along = y @ directions.mT
    both = torch.cat([along, -along], -1) - y.square().sum(-1, keepdim=True) / 2
    return both.exp() / (2 * len(directions)) ** 0.5


CODE = {
    "with_global": Code(
        solution=with_global,
        cases=(
            lambda: [_of(5, 1, 1)],
            lambda: [_of(6, 2, 0), _of(6, 0, 1)],
            lambda: [_of(7, 1, 2)],
            lambda: [_of(4, 1, 4)],
        ),
        reference=window_and_global,
        hidden=_more_masks,
    ),
    "with_global_2": Code(
        solution=with_global_2,
        cases=(
            lambda: [_of_2(5, 1, 0)],
            lambda: [_of_2(7, 1, 3)],
            lambda: [_of_2(6, 0, 5)],
        ),
    ),
    "random_features": Code(
        solution=random_features,
        cases=(
            lambda: [_features([[1.0]], [[1.0]]), _features([[2.0]], [[0.0]])],
            lambda: [_features([[1.0]], [[1.0], [0.0]])],
            lambda: [_features([[1.0] * 16], [[1.0] + [0.0] * 15])],
            lambda: [{"x": drawn(5, 3, 5), "directions": drawn(6, 7, 5)}],
            lambda: [{"x": drawn(7, 3, 3), "directions": drawn(8, 3, 3)}],
        ),
        reference=_one_by_one,
        hidden=_more_features,
    ),
    "random_features_2": Code(
        solution=random_features_2,
        cases=(
            lambda: [{"x": table([[1.0]]), "directions": table([[1.0]])}],
            lambda: [{"x": drawn(5, 3, 5), "directions": drawn(6, 7, 5)}],
        ),
    ),
}
