"""Exam mode: the verbs of exercises that are done unaided, as `make assignments ARGS=--unaided` writes them.

`check` tells of a function what its steps tell, and of a number, a letter or sentences only how they were
read. `mine` asks a question with numbers of a student's own; class/hidden.py judges the answer by the same.
Hints and solutions have no verb here. They are in the installed course all the same: this takes the doors
away, and is no examination room.
"""

import hashlib
import os
from dataclasses import replace
from typing import Any

from lesson_lib.checks import engine
from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.result import NOTHING_YET, Note, Result
from lesson_lib.checks.short_answers import Choice, Number, Open
from lesson_lib.checks.values import is_a, numeral

LATER = "it is judged when you have handed in; until then you may change it"
GUIDING = ("next", "again")  # rows of a result that lead to hints, solutions and second problems
AT_HUB = "JUPYTERHUB_USER"


def check(answer: Any, name: Any = None) -> Result | Note:
    """The verdict on a function, as `lesson_lib.checks.check` gives it; of any other answer how it was
    read."""
    exercise, _ = engine.find(answer if name is None else name)
    if not isinstance(exercise, (Number, Choice, Open)):
        result = engine.check(answer, name)
        return replace(result, after={k: v for k, v in result.after.items() if k not in GUIDING})
    if answer is None or answer is ... or (is_a(answer, str) and not str.strip(answer)):
        return Result(exercise.name, "open", NOTHING_YET)
    read, trouble = _read(exercise, answer)
    if trouble:
        return Result(exercise.name, "unjudged", trouble)
    return Note(f"{exercise.name}: read", {"read": read, "next": LATER})


def mine(name: Any, student: Any = "") -> Note:
    """A question with the numbers of one student, whose name is as the instructor has it; on the class
    server it is known."""
    exercise, problem = engine.find(name)
    if exercise is None:
        return Note("No question", {"diagnosis": problem})
    student = student.strip() if type(student) is str else ""
    student = student or os.environ.get(AT_HUB, "")
    if not student:
        advice = 'write your name into the cell with student = "", run it, then this one again'
        return Note(f"{exercise.name}: whose numbers?", {"next": advice})
    asked = own(exercise, student)
    if asked is exercise:
        return Note(f"{exercise.name}: the numbers of the text", {"asked": "they are the same for everybody"})
    return Note(f"{exercise.name}: the numbers of {student}", {"asked": asked.asked})


def own(exercise: Exercise, student: str) -> Exercise:
    """The exercise with the numbers of one student, where it has a generator; else itself."""
    if exercise.second is None or not isinstance(exercise, Number):
        return exercise
    spelt = " ".join(student.casefold().split())
    draw = int(hashlib.sha256(spelt.encode("utf-8", "replace")).hexdigest()[:8], 16) % 10**6 + 1
    return replace(engine.second_of(exercise, draw), name=exercise.name)


def _read(exercise: Exercise, answer: Any) -> tuple[str, str]:
    """The answer as it was understood ("0.5000", "12 words") and ''; or '' and a sentence on why it cannot be
    read."""
    if isinstance(exercise, Number):
        number, trouble = number_in(answer)
        return ("", trouble) if number is None else (numeral(number), "")
    if isinstance(exercise, Open):
        if not is_a(answer, str):
            return "", exercise.judge(answer, lambda *_: None).diagnosis
        words = len(str.split(answer))
        return f"{words} word{'s' * (words != 1)}", ""
    result = exercise.judge(answer, lambda *_: None)
    return (str(result.counterexample.yours), "") if result.counterexample else ("", result.diagnosis)
