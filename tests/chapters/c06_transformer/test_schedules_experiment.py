"""The published schedule on the translator: its factors, and its rows beside those of the translation."""

import pytest

from lesson_lib.chapters.c06_transformer.experiments import schedules, translation
from lesson_lib.experiments import results

ROWS = results("schedules")["rows"]


def exact(norm_first, schedule):
    return [r["exact"] for r in ROWS if (r["norm_first"], r["schedule"]) == (norm_first, schedule)]


@pytest.mark.parametrize(
    "step, published, no_rise", [(1, 1 / 400, 1), (100, 1 / 4, 1), (400, 1, 1), (1600, 1 / 2, 1 / 2)]
)
def test_factors_by_hand(step, published, no_rise):
    assert schedules.factor(step, "published") == pytest.approx(published)
    assert schedules.factor(step, "no rise") == pytest.approx(no_rise)


def test_the_cosine_is_the_run_of_the_translation():
    stored = results("translation")["rows"]
    single = [r for r in stored if r["kind"] == "test" and r["trained_on"] == [1] and r["dates"] == 1]
    assert exact(True, "cosine") == [r["exact"] for r in single if r["width"] == 1]
    assert schedules.RECIPE["lr"] == translation.RECIPE["lr"]
