"""Exercises that answer: check(answer), hint(name), solution(name), progress(), and properties(attention_fn).

engine       the verbs            exercise     four kinds of exercise, and how each judges
lesson_NN    one lesson's exercises, their hints, solutions and typical wrong answers
suite        properties(): what must hold for every attention function, whoever wrote it; its probes in probes
runner       running an answer safely          store    progress on disk
values, expressions, result       numbers in words, numbers from words, what a check shows
"""

from lesson_lib.checks.engine import check, hint, picture, progress, solution
from lesson_lib.checks.result import Result
from lesson_lib.checks.suite import Properties, properties

__all__ = ["Properties", "Result", "check", "hint", "picture", "progress", "properties", "solution"]
