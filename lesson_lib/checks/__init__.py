"""Exercises that answer: check(answer), hint(name), solution(name), progress(), and properties(attention_fn).

progress() says where you stand and what is next; export_progress("progress.csv") writes that to a file for an
instructor; reset(name) forgets one exercise, so that it can be done again.

engine       the verbs            exercise     four kinds of exercise, and how each judges
alike        exercises about exact whole numbers, and other classes that two chapters share
suite        properties(): what must hold for every attention function, whoever wrote it; its probes in probes
runner       running an answer safely, in a copy of the session first (trial), which is put back (session)
store        progress on disk
overview     where a learner stands: tables, and a file for a spreadsheet
values, expressions, result       numbers in words, numbers from words, what a check shows
"""

from lesson_lib.checks.engine import check, export_progress, hint, picture, progress, reset, solution
from lesson_lib.checks.result import Result
from lesson_lib.checks.suite import Properties, properties

__all__ = [
    "Properties",
    "Result",
    "check",
    "export_progress",
    "hint",
    "picture",
    "progress",
    "properties",
    "reset",
    "solution",
]
