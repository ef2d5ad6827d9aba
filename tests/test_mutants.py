"""Small changes of right answers: the checks reject them, and those that they do not are listed with a
reason."""

import ast
import warnings
from dataclasses import replace

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


@pytest.mark.parametrize(
    "line, made",
    [
        ("return x.sum(-1)", {"x.sum(-2)", "x.sum(-0)", "x", "x.mean(-1)"}),
        ("return x.roll(-1)", {"x.roll(-2)", "x.roll(-0)", "x", "x.roll(1)"}),  # a shift, no axis
        ("return x[-1]", {"x[-2]", "x[-0]", "x[1]"}),
        ("return x.shape[1]", {"x.shape[2]", "x.shape[0]"}),
        ("return (y - x).abs()", {"y - x", "(y + x).abs()"}),
        ("return y - x", {"y + x", "x - y"}),
        ("return (y - 3 * x) ** 2", {"(3 * x - y) ** 2"}),
    ],
)
def test_what_changes_nothing_is_not_made(line, made):
    head = 'def f(x: Float[Tensor, "n d"], y):\n    '
    found = {new.removeprefix("return ") for new in changed(head + line)}
    if "3 * x" in line:
        assert not found & made and "(y - 2 * x) ** 2" in found
    else:
        assert found == made


def test_an_axis_is_counted_from_its_other_end_where_there_may_be_more_axes():
    for shape in ("*b n d", "... d"):
        assert "return x.sum(1)" in changed(f'def f(x: Float[Tensor, "{shape}"]):\n    return x.sum(-1)')
    assert "return x.sum(1)" in changed("def f(x):\n    return x.sum(-1)")


def test_large_numbers_change_by_a_tenth():
    assert changed("2 * 1000") >= {"2 * 1100", "2 * 900", "2 * 2000", "3 * 1000"}
    assert "2 * 1001" not in changed("2 * 1000")


def test_a_statement_goes_only_where_its_names_are_bound_without_it():
    text = (
        "def f(x):\n    y = x\n    x = x + 1\n    for i in range(3):\n        y += i\n        break\n   "
        " return y"
    )
    gone = {said.partition("  =>  ")[0] for said in mutants.mutants(text) if said.endswith("=>  pass")}
    assert gone == {"x = x + 1", "y += i", "break"}


def test_an_expression_is_changed_too():
    made = changed("2 * 64 / (8 + 1)")
    assert {"2 / 64 / (8 + 1)", "2 * 65 / (8 + 1)", "2 * 64 * (8 + 1)", "2 * 64 / (8 - 1)"} <= made


def test_every_mutant_is_another_text():
    for name in ("without_loops", "near_blocks"):
        made = mutants.mutants(EXERCISES[name].text)
        own = ast.unparse(ast.parse(EXERCISES[name].text))
        assert len(set(made.values())) == len(made) > 8 and own not in made.values()


@pytest.mark.parametrize("name", ["without_loops", "additive_scores", "fading_attention"])
def test_a_weak_check_lets_mutants_pass(name):
    """With the first stage alone more survive than are listed: the run can fail."""
    exercise = EXERCISES[name]
    weak = replace(exercise, stages=exercise.stages[:1], extra=None)
    assert set(mutants.survivors(weak)) > set(mutants.listed().get(name, {}))
    assert EXERCISES[name] is exercise


def test_a_check_that_stumbles_rejects_nothing():
    def stumble(*_):
        raise ZeroDivisionError

    broken = replace(EXERCISES["mix_in_columns"], reference=stumble)
    assert mutants.verdicts(broken) == dict.fromkeys(mutants.answers(broken), "survives")


def test_a_mutant_that_ends_with_an_error_is_counted_apart():
    found = mutants.verdicts(EXERCISES["without_loops"])
    assert found["scores = query @ key.mT  =>  scores = query @ key"] == "stops"
    softmax = "return torch.softmax(scores, dim=-1) @ value  =>  return torch.softmax(scores, dim={}) @ value"
    assert found[softmax.format("-2")] == "rejected"
    assert mutants.Score(stops=5, mutants=20, rejected=18, equivalent=1, accepted=1).of_all == 0.9


@pytest.mark.parametrize("lesson", SAMPLE)
def test_what_survives_is_listed_and_the_rest_is_rejected(lesson):
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
def test_what_is_called_equivalent_is_so_with_other_inputs_too(name, said):
    exercise, answer = EXERCISES[name], mutants.answers(EXERCISES[name])[said]()
    if isinstance(exercise, Number):
        assert number_in(answer)[0] == pytest.approx(exercise.value, rel=1e-12)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shift in (1, 2, 3):
            with inputs.reseeded(shift):
                assert check(answer, name).passed
