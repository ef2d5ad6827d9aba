"""Exercises that answer: check(answer), hint(name), solution(name), progress(), and properties(attention_fn).

predict(name) asks a question inside a part; warm_up() and review() ask again what is due; second(name) poses
a second problem; judge(name, "yes", "no", ...) keeps how you judge an open answer. progress() says where you
stand and what is next; export_progress("progress.csv") writes that to a file for an instructor; reset(name)
forgets one exercise, reset("02", sure=True) a chapter, so that it can be done again. yours(name) is the
function that a part goes on with.

verbs        engine (check, hint, solution ...), asking (predict, warm_up ...), records (progress, reset),
             exam (those of a graded notebook without help)
questions    reads what chapters/*/questions ask: words from Markdown, code from the module beside it
kinds        exercise (base class, functions), short_answers (number, letter, word, text), find_inputs (on
             which a wrong function fails), several_results (of which any is right), swapped_roles (a mistake
             of many: queries, keys and values in each other's place)
judging      runner (deadline, protection), sandbox (a forked copy of the session), isolation (capture,
             snapshot, restore), values and expressions (numbers to and from words), inputs
properties   property_suite, property_probes, property_chunks: what holds for every attention function
showing      result, card (in a notebook), progress_table, export (for a spreadsheet)
keeping      store (on disk), schedule (when a question returns)
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
