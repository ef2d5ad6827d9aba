"""Exercises done unaided: functions are told what is wrong, all else only how it was read; numbers of one's
own."""

import numpy as np
import pytest
import torch

from lesson_lib.checks import exam
from lesson_lib.checks.engine import exercises, lessons
from lesson_lib.checks.short_answers import Number

EXERCISES = exercises()
NUMBERS = [
    e for n, es in lessons().items() if n.startswith("exercises/") for e in es if isinstance(e, Number)
]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.delenv(exam.AT_HUB, raising=False)


@pytest.mark.parametrize(
    "answer, name, read",
    [
        ("2 * 512 * 64", "learned_numbers", "65536"),
        (torch.tensor(3.5), "learned_numbers", "3.5000"),
        ("b", "bright_picture", "b) "),
        ("(C)", "bright_picture", "c) "),
        ("Because a softmax stands between.", "why_not_regroup", "5 words"),
        ("word", "why_not_regroup", "1 word"),
    ],
)
def test_an_answer_in_short_is_read_back_and_not_judged(answer, name, read):
    said = exam.check(answer, name)
    assert said.title == f"{name}: read" and said.rows["read"].startswith(read)
    assert set(said.rows) == {"read", "next"} and said.rows["next"] == exam.LATER


@pytest.mark.parametrize("name", ["learned_numbers", "bright_picture", "why_not_regroup"])
@pytest.mark.parametrize("answer", [None, ..., "", " \n"])
def test_nothing_yet_is_told_without_a_way_to_a_hint(answer, name):
    said = exam.check(answer, name)
    assert said.state == "open" and "hint" not in repr(said)


@pytest.mark.parametrize(
    "answer, name",
    [
        ("many", "learned_numbers"),
        (torch.ones(3), "learned_numbers"),
        ([1], "learned_numbers"),
        (True, "learned_numbers"),
        ("z", "bright_picture"),
        (3, "bright_picture"),
        (np.float64(3), "why_not_regroup"),
        (["a"], "why_not_regroup"),
    ],
)
def test_what_cannot_be_read_is_told(answer, name):
    said = exam.check(answer, name)
    assert said.state == "unjudged" and said.diagnosis and "hint" not in repr(said)
    assert "model answer" not in repr(said)


def test_a_function_is_judged_as_ever_without_the_way_to_hints():
    def mix_in_columns(V, A_prime):
        return V @ A_prime.mT

    said = exam.check(mix_in_columns)
    assert said.state == "failed" and said.diagnosis and "hint" not in repr(said)
    right = exam.check(EXERCISES["mix_in_columns"].solution)
    assert right.passed and "second(" not in repr(right)


@pytest.mark.parametrize("name", [None, 3, "no_such", torch.ones(2)])
def test_a_name_that_is_none_gets_a_sentence(name):
    assert exam.check(3, name).state == "unjudged"
    assert exam.mine(name).title == "No question"


@pytest.mark.parametrize("exercise", NUMBERS, ids=lambda e: e.name)
def test_the_numbers_follow_from_the_name_however_it_is_spaced(exercise):
    first, again = exam.own(exercise, "Ada  Lovelace"), exam.own(exercise, " ada lovelace ")
    assert (first.asked, first.answer, first.name) == (again.asked, again.answer, exercise.name)
    said = exam.mine(exercise.name, "Ada Lovelace")
    assert said.rows["asked"] == first.asked and said.title.endswith("the numbers of Ada Lovelace")


def test_on_the_class_server_the_name_is_known(monkeypatch):
    assert "write your name" in exam.mine("learned_numbers").rows["next"]
    assert "write your name" in exam.mine("learned_numbers", 3).rows["next"]
    monkeypatch.setenv(exam.AT_HUB, "ben")
    asked = exam.own(EXERCISES["learned_numbers"], "ben").asked
    assert exam.mine("learned_numbers").rows["asked"] == asked
    assert exam.mine("learned_numbers", "ada").rows["asked"] != asked


def test_a_choice_has_the_numbers_of_the_text():
    assert "the same for everybody" in exam.mine("bright_picture", "ada").rows["asked"]
