"""What of the questions in 02a_soft_look_up.md is code."""

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def soft_look_up(query, key, value):
    scores = query @ key.mT
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


def _asks(query: object, key: object, value: object) -> Case:
    return {"query": query, "key": key, "value": value}


def _more_soft_look_up(drawn: Draw) -> list[Case]:
    return [_asks(drawn(1, 7, 3), drawn(2, 11, 3), drawn(3, 11, 5))]


def without_padding(scores, real):
    hidden = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(hidden, dim=-1)


def _lists(scores: object, real: list[list[bool]]) -> Case:
    return {"scores": scores, "real": torch.tensor(real)}


def _more_without_padding(drawn: Draw) -> list[Case]:
    real = [[True] * 5 + [False] * 2, [True] * 2 + [False] * 5, [True] * 7]
    return [_lists(drawn(1, 3, 3, 7), real)]


def _zeroed_afterwards(scores: Tensor, real: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) * real[:, None, :]


def _equal_scores(query: Tensor, key: Tensor, value: Tensor) -> bool:
    scores = query @ key.mT
    return scores.shape[-2] == scores.shape[-1] and bool((scores == scores[..., :1, :1]).all())


CODE = {
    "soft_look_up": Code(
        solution=soft_look_up,
        cases=(
            lambda: [_asks(table([[1.0, 2.0]]), table([[1.0, 1.0]]), table([[20.0]]))],
            lambda: [
                _asks(
                    table([[1.0, 2.0]]),
                    table([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]),
                    table([[10.0], [20.0], [40.0]]),
                )
            ],
            lambda: [
                _asks(drawn(1, 2, 5), drawn(2, 7, 5), primes(7, 3)),
                _asks(drawn(4, 3, 3), drawn(5, 3, 3), drawn(6, 3, 3)),
            ],
        ),
        hidden=_more_soft_look_up,
    ),
    "soft_look_up_2": Code(
        wrong=(
            _equal_scores,
            lambda query, key, value: not bool(value.any()),
        ),
    ),
    "without_padding": Code(
        solution=without_padding,
        cases=(
            lambda: [_lists(table([[[-1.0, -3.0, 0.0]]]), [[True, True, False]])],
            lambda: [_lists(table([[[-101.0, -100.0, 0.0]]]).double(), [[True, True, False]])],
            lambda: [
                _lists(table([[[1.0, 3.0, 5.0]], [[-1.0, -3.0, 0.0]]]), [[True] * 3, [True, True, False]])
            ],
            lambda: [_lists(drawn(5, 2, 2, 3, spread=2.0), [[True, False, True], [True, True, False]])],
        ),
        wrong=(_zeroed_afterwards,),
        hidden=_more_without_padding,
    ),
    "without_padding_2": Code(
        wrong=(
            lambda scores, real: bool(real.all()),
            lambda scores, real: bool((scores.masked_fill(~real[:, None], -1e9).amax(-1) > 8).all()),
        ),
    ),
}
