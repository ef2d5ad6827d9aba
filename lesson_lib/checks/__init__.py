"""Exercises that answer: check(answer), hint(name), solution(name), progress(), and properties(attention_fn).

predict(name) asks a question inside a part; warm_up() and review() ask again what is due; second(name) poses
a second problem; judge(name, "yes", "no", ...) keeps how you judge an open answer. progress() says where you
stand and what is next; export_progress("progress.csv") writes that to a file for an instructor; reset(name)
forgets one exercise, reset("02", sure=True) a chapter, so that it can be done again. yours(name) is the
function that a part goes on with.

engine       the verbs that answer        asking       the verbs that ask
records      the verbs about what was done: progress, export_progress, reset
exercise     what every exercise has, and functions to write; short: numbers, letters, words, sentences
card         a question in a notebook, or where no kernel runs
alike        exercises about exact whole numbers, and other classes that two chapters share
exchanged    slips of many exercises: queries, keys and values that have changed places
expose       exercises that ask for the inputs on which a wrong function is caught
suite        properties(): what must hold for every attention function, whoever wrote it; its probes in
probes, and
             in chunks, where it looks back by itself
runner       running an answer safely, in a copy of the session first (trial), which is put back (session)
store        what happened, on disk       schedule     when a question returns
overview     where a learner stands, in tables             export      the same for a spreadsheet
values, expressions, result       numbers in words, numbers from words, what a check shows
"""

from lesson_lib.checks.asking import judge, predict, review, warm_up
from lesson_lib.checks.engine import check, hint, picture, second, solution, yours
from lesson_lib.checks.property_suite import Properties, properties
from lesson_lib.checks.records import export_progress, progress, reset
from lesson_lib.checks.result import Result

__all__ = [
    "Properties",
    "Result",
    "check",
    "export_progress",
    "hint",
    "judge",
    "picture",
    "predict",
    "progress",
    "properties",
    "reset",
    "review",
    "second",
    "solution",
    "warm_up",
    "yours",
]
