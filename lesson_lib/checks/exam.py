"""Exam mode: the verbs of questions that are asked unaided, as `make assignments ARGS=--unaided` writes them.

The questions are those of class/exam. A student does not have them, so `check` tells how an answer was read,
`mine` finds the student's numbers among those that the notebook holds, and there is no verb for hints.
class/hidden.py judges by the same numbers when it is handed in.
"""

import base64
import hashlib
import inspect
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from lesson_lib.checks import engine, questions, runner
from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.result import NOTHING_YET, Note, Result
from lesson_lib.checks.values import is_a, numeral, own_name
from lesson_lib.places import ROOT

LATER = "it is judged when you have handed in; until then you may change it"
AT_HUB = "JUPYTERHUB_USER"
POOL = ROOT / "class" / "exam"
VARIANTS = 12  # of a question's numbers: a notebook holds them all, since it does not know its student


@cache
def pool() -> Mapping[str, tuple[Exercise, ...]]:
    """The exercises that are only asked unaided, by the notebook of exercises in whose place they stand; {}
    where the course is installed without them."""
    with runner.undisturbed(), torch.device("cpu"):
        torch.set_default_dtype(torch.float32)
        return {path.stem: tuple(questions.of_file(path)) for path in sorted(POOL.glob("*.md"))}


def every() -> dict[str, Exercise]:
    """All exercises of the course and of the pool by their names."""
    return dict(engine.exercises()) | {e.name: e for group in pool().values() for e in group}


def check(answer: Any, name: Any = None) -> Result | Note:
    """How an answer was read: a function, a letter, words or a number."""
    name = name if is_a(name, str) else own_name(answer) or "answer"
    if answer is None or answer is ... or (is_a(answer, str) and not str.strip(answer)):
        return Result(name, "open", NOTHING_YET)
    if callable(answer):
        try:
            read = f"the function {name}{inspect.signature(answer)}"
        except (TypeError, ValueError):  # some functions written in C do not tell
            read = f"the function {name}"
    elif is_a(answer, str) and (letter := re.fullmatch(r"\s*\(?([a-zA-Z])\)?\s*", answer)):
        read = letter[1].lower()
    elif is_a(answer, str) and len(re.findall(r"[^\W\d_]{2,}", answer)) >= 3:
        read = f"{len(str.split(answer))} words"
    else:
        number, trouble = number_in(answer)
        if number is None:
            return Result(name, "unjudged", trouble)
        read = numeral(number)
    return Note(f"{name}: read", {"read": read, "next": LATER})


def mine(name: str, student: Any, variants: str) -> Note:
    """A question with the numbers of one student, whose name is as the instructor has it; on the class
    server it is known. `variants` are all that there are, `packed`."""
    student = student.strip() if type(student) is str else ""
    student = student or os.environ.get(AT_HUB, "")
    if not student:
        advice = 'write your name into the cell with student = "", run it, then this one again'
        return Note(f"{name}: whose numbers?", {"next": advice})
    asked = json.loads(zlib.decompress(base64.b64decode(variants)))[_draw(student) - 1]
    return Note(f"{name}: the numbers of {student}", {"asked": asked})


def packed(variants: Sequence[str]) -> str:
    """The texts as one that nobody reads by mistake: a notebook shows one set of numbers."""
    return base64.b64encode(zlib.compress(json.dumps(variants).encode(), 9)).decode()


def own(exercise: Exercise, student: str) -> Exercise:
    """The exercise with the numbers of one student, where it has several; else itself."""
    return exercise.second(_draw(student)) if exercise.second else exercise


def others(exercise: Exercise, student: str) -> list[Exercise]:
    """The exercise with all numbers that are not this student's."""
    numbers = {*range(1, VARIANTS + 1)} - {_draw(student)}
    return [exercise.second(n) for n in sorted(numbers)] if exercise.second else []


def _draw(student: str) -> int:
    spelt = " ".join(student.casefold().split())
    return int(hashlib.sha256(spelt.encode("utf-8", "replace")).hexdigest()[:8], 16) % VARIANTS + 1
