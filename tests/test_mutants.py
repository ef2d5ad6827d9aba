"""Small changes of right answers: the checks reject them, and those that they do not are listed with a
reason."""

import warnings
from dataclasses import replace
from functools import cache

import pytest

from lesson_lib.checks import inputs
from lesson_lib.checks.engine import check, exercises
from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.short_answers import Number
from tools import mutants

EXERCISES = exercises()
# `python -m tools.mutants` does all, once a week
SAMPLE = ("exercises/02_scoring", "05b_rotation", "exercises/07_attention_vs_cnn", "11b_exact_and_fast")

EQUIVALENT = [
    (name, said)
    for name, found in mutants.listed().items()
    for said, why in found.items()
    if why.startswith("equivalent: ")
]

WEIGHTED = """
def f(x: Float[Tensor, "n d"], y=2):
    total = x.mT[1:] @ y
    if total.max() < 3 and y:
        total -= torch.exp(x, dim=-1)
    return total.sum(0, keepdim=True)
"""


def changed(text):
    return {said.partition("  =>  ")[2] for said in mutants.mutants(text)}


def test_known_mutants_of_a_small_function():
    made = changed(WEIGHTED)
    assert {
        "total = x.mT[1:] * y",  # operators
        "total = y @ x.mT[1:]",
        "if total.max() <= 3 and y:",
        "if total.max() < 3 or y:",
        "total += torch.exp(x, dim=-1)",
        "total = x.mT[2:] @ y",  # numbers
        "total = x.mT[0:] @ y",
        "if total.max() < -3 and y:",
        "total -= torch.exp(x, dim=-2)",
        "total = x[1:] @ y",  # transposes, names
        "if total.min() < 3 and y:",
        "return total.mean(0, keepdim=True)",
        "return total.sum(0)",  # arguments
        "total -= torch.exp(x)",
        "return total.sum(0, keepdim=False)",
        "total = x.mT[:] @ y",  # slices
        "total -= x",  # calls
        "return total",
        "if not (total.max() < 3 and y):",  # statements
        "pass",
    } <= made
    assert not any("def f" in line or "y=3" in line for line in made)  # its signature stays


def test_a_weak_check_lets_mutants_pass():
    """With the first stage alone more survive than are listed: the run can fail."""
    exercise = EXERCISES["without_loops"]
    weak = replace(exercise, stages=exercise.stages[:1], extra=None)
    assert set(mutants.survivors(weak)) > set(mutants.listed().get("without_loops", {}))


def test_a_check_that_stumbles_rejects_nothing():
    def stumble(*_):
        raise ZeroDivisionError

    broken = replace(EXERCISES["mix_in_columns"], reference=stumble)
    assert mutants.verdicts(broken) == dict.fromkeys(mutants.answers(broken), "survives")


@pytest.mark.parametrize("lesson", SAMPLE)
def test_what_survives_is_listed_and_the_rest_is_rejected(lesson, monkeypatch):
    monkeypatch.setattr(mutants, "verdicts_of", cache(mutants.verdicts_of))
    assert list(mutants.strays(lesson)) == []
    found = mutants.score(lesson)
    assert found.of_different >= mutants.ENOUGH, mutants.row(lesson, found)


def test_the_list_names_exercises_and_reasons():
    for name, found in mutants.listed().items():
        assert name in EXERCISES and found
        for why in found.values():
            kind, _, reason = why.partition(": ")
            assert kind in ("equivalent", "accepted") and len(reason.split()) >= 5


@pytest.mark.parametrize("name, said", EQUIVALENT)
def test_what_is_called_equivalent_is_so_with_other_inputs_too(name, said, untried):
    exercise, answer = EXERCISES[name], mutants.answers(EXERCISES[name])[said]()
    if isinstance(exercise, Number):
        assert number_in(answer)[0] == pytest.approx(exercise.value, rel=1e-12)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with inputs.reseeded(1):
            assert check(answer, name).passed
