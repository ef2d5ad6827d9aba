"""What of the questions in 02b_which_score.md is code."""

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def scaled_scores(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


def _pairs(query: object, key: object) -> Case:
    return {"query": query, "key": key}


def _more_scaled_scores(drawn: Draw) -> list[Case]:
    return [_pairs(drawn(1, 5, 11), drawn(2, 7, 11)), _pairs(drawn(3, 2, 3), drawn(4, 13, 3))]


def short_start(vectors):
    return vectors / vectors.shape[-1] ** 0.25


def _more_short_starts(drawn: Draw) -> list[Case]:
    return [{"vectors": drawn(1, 11, 13)}, {"vectors": drawn(2, 3, 2)}]


CODE = {
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
    "short_start": Code(
        solution=short_start,
        cases=(
            lambda: [{"vectors": drawn(1, 1, 16)}],
            lambda: [{"vectors": drawn(2, 3, 81)}],
            lambda: [{"vectors": drawn(3, 7, 5)}],
        ),
        hidden=_more_short_starts,
    ),
}
