"""Questions done unaided: how an answer is read, whose numbers are asked, and how the pool judges."""

import numpy as np
import pytest
import torch

from lesson_lib.checks import engine, exam
from lesson_lib.checks.exercise import Write
from lesson_lib.checks.short_answers import Open

POOL = [exercise for group in exam.pool().values() for exercise in group]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.delenv(exam.AT_HUB, raising=False)


def exam_weights(q, k, real):
    raise ValueError


@pytest.mark.parametrize(
    "answer, read",
    [
        ("26 / 2", "13"),
        (torch.tensor(3.5), "3.5000"),
        ("(B)", "b"),
        ("The matrices stay as they are.", "6 words"),
        (exam_weights, "the function exam_weights(q, k, real)"),
    ],
)
def test_an_answer_is_read_back_and_not_judged(answer, read, monkeypatch):
    monkeypatch.setattr(exam, "pool", dict)  # students have none
    said = exam.check(answer) if callable(answer) and read[0] == "t" else exam.check(answer, "exam_weights")
    assert said.title == "exam_weights: read" and said.rows == {"read": read, "next": exam.LATER}


@pytest.mark.parametrize("answer", [None, ..., "", " \n"])
def test_nothing_yet_is_told_without_a_way_to_a_hint(answer):
    said = exam.check(answer, "exam_score")
    assert said.state == "open" and "hint" not in repr(said)


@pytest.mark.parametrize("answer", ["many", torch.ones(3), [1], True, np.array([1, 2])])
def test_what_cannot_be_read_is_told(answer):
    for name in ("exam_score", None, 3):
        said = exam.check(answer, name)
        assert said.state == "unjudged" and said.diagnosis and "hint" not in repr(said)


def test_the_numbers_follow_from_the_name_however_it_is_spaced(monkeypatch):
    texts = [f"question {n}" for n in range(1, exam.VARIANTS + 1)]
    asked = {name: exam.mine("x", name, exam.packed(texts)).rows.get("asked") for name in
             ("Ada  Lovelace", " ada lovelace ", "ben", "", 3)}  # fmt: skip
    assert asked["Ada  Lovelace"] == asked[" ada lovelace "] in texts and asked["ben"] in texts
    assert asked[""] is asked[3] is None and "write your name" in exam.mine("x", "", "").rows["next"]
    monkeypatch.setenv(exam.AT_HUB, "ben")
    assert exam.mine("x", "", exam.packed(texts)).rows["asked"] == asked["ben"]


@pytest.mark.parametrize("exercise", POOL, ids=lambda e: e.name)
def test_a_question_of_the_pool_knows_its_answer_and_names_each_slip(exercise):
    assert exercise.name not in engine.exercises()
    assert "no exercise is called" in repr(engine.solution(exercise.name)), "a learner's verbs have no pool"
    assert exercise.slips
    if isinstance(exercise, Open):
        said = exercise.judge(exercise.text, lambda *_: None)
        assert said.state == "written" and "look again" not in said.after
        return
    for one in [exam.own(exercise, "ada"), *exam.others(exercise, "ada")]:
        assert engine.verdict(one, getattr(one, "answer", one.solution)).passed
        for slip, wrong in one.slips.items():
            wrong = one.wrong(slip) if isinstance(one, Write) else wrong
            assert engine.verdict(one, wrong).diagnosis == slip
