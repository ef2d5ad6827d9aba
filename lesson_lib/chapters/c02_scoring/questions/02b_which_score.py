"""What of the questions in 02b_which_score.md is code."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def slopes(weights: Float[Tensor, " m"]) -> Float[Tensor, "m m"]:
    return torch.diag(weights) - weights[:, None] * weights[None, :]


def _more_slopes(drawn: Draw) -> list[Case]:
    return [{"weights": drawn(1, 5).softmax(-1)}, {"weights": drawn(2, 7).softmax(-1)}]


def scaled_scores(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "m d"],
) -> Float[Tensor, "n m"]:
    return query @ key.mT / query.shape[-1] ** 0.5


def _pairs(query: object, key: object) -> Case:
    return {"query": query, "key": key}


def _more_scaled_scores(drawn: Draw) -> list[Case]:
    return [_pairs(drawn(1, 5, 11), drawn(2, 7, 11)), _pairs(drawn(3, 2, 3), drawn(4, 13, 3))]


def slopes_2(weights: Float[Tensor, " m"], temperature: float) -> Float[Tensor, "m m"]:
    return (weights.diag() - weights[:, None] * weights[None, :]) / temperature


CODE = {
    "slopes": Code(
        solution=slopes,
        cases=(
            lambda: [{"weights": table([0.5, 0.5])}],
            lambda: [{"weights": table([0.7, 0.2, 0.1])}],
            lambda: [{"weights": drawn(3, 5).softmax(-1)}],
        ),
        hidden=_more_slopes,
    ),
    "slopes_2": Code(
        solution=slopes_2,
        cases=(
            lambda: [{"weights": table([0.5, 0.5]), "temperature": 1.0}],
            lambda: [{"weights": table([0.7, 0.2, 0.1]), "temperature": 2.0}],
            lambda: [{"weights": table([0.4, 0.3, 0.15, 0.1, 0.05]), "temperature": 0.5}],
        ),
    ),
    "scaled_scores": Code(
        solution=scaled_scores,
        cases=(
            lambda: [_pairs(table([[1.0, 2.0, 0.0, 1.0]]), table([[3.0, 1.0, 5.0, 1.0]]))],
            lambda: [_pairs(drawn(1, 3, 7), drawn(2, 5, 7))],
        ),
        hidden=_more_scaled_scores,
    ),
    "scaled_scores_2": Code(
        wrong=(
            lambda query, key: key.shape[0] == key.shape[1],
            lambda query, key: not bool((query @ key.mT).any()),
        ),
    ),
}
