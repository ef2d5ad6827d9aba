"""The verbs of an exercise: check, hint, solution, progress, export_progress, reset, and picture for what is
predicted before it is drawn."""

import difflib
import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from lesson_lib.checks import overview, runner, store, values
from lesson_lib.checks.exercise import Exercise, Write
from lesson_lib.checks.overview import Lesson, Overview, Standing
from lesson_lib.checks.result import NO_RESULT, NOTHING_YET, Counterexample, Note, Result
from lesson_lib.checks.values import copies, described

LONGEST = 20_000  # characters of a text, ten times a long answer

_CHAPTERS = Path(__file__).parents[1] / "chapters"
_hints_given: dict[str, int] = {}
_chosen: set[str] = set()


@cache
def lessons() -> Mapping[str, tuple[Exercise, ...]]:
    """The notebooks that ask exercises, each with its own in their order.

    The one look-up that goes up in the house: lesson_lib/chapters/*/exercises.py, imported when they are
    first asked for, with torch as it is after its import, whatever the session has chosen since.
    """
    found: dict[str, tuple[Exercise, ...]] = {}
    with runner.undisturbed(), torch.device("cpu"):
        torch.set_default_dtype(torch.float32)
        for path in sorted(_CHAPTERS.glob("c*/exercises.py")):
            chapter = path.parent.name
            for exercise in import_module(f"lesson_lib.chapters.{chapter}.exercises").EXERCISES:
                notebook = exercise.notebook or f"exercises/{chapter[1:]}"
                found[notebook] = (*found.get(notebook, ()), exercise)
    return found


@cache
def exercises() -> dict[str, Exercise]:
    """All exercises by their names, in the course's order."""
    return {exercise.name: exercise for found in lessons().values() for exercise in found}


def check(answer: Any, name: Any = None) -> Result:
    """The verdict on an answer: `.passed`, `.diagnosis` (one sentence), `.counterexample` (the smallest
    found, or None).

    `answer` may be a function, a number, an expression in quotes, a letter, a text. `name` is the exercise;
    for a function it defaults to the function's own name. An empty stub is "not attempted yet". Nothing that
    an answer does raises here. Functions are tried in a copy of the session, then run in a thread of their
    own, and are ended after `runner.DEADLINE_S` seconds; what they change in the session is put back.

    >>> check("exp(12) / exp(10)", "score_ratio").passed
    True
    """
    exercise, said = _find(answer if name is None else name)
    if exercise is None:
        return Result("?", "unjudged", said)
    if answer is None or answer is ...:
        return exercise.result("open", NOTHING_YET)
    result = _judged(exercise, answer)
    if result.state in ("passed", "failed"):
        _chosen.add(exercise.name)
        if trouble := store.record(exercise.name, result.passed):
            result.after["progress"] = trouble
    return result


def hint(name: Any) -> Note:
    """The next of three hints for an exercise, each a question; after the third, the third again."""
    exercise, said = _find(name)
    if exercise is None:
        return Note("No hint", {"diagnosis": said})
    number = min(_hints_given.get(exercise.name, 0) + 1, len(exercise.hints))
    _hints_given[exercise.name] = number
    last = number == len(exercise.hints)
    after = f'solution("{exercise.name}")' if last else f'hint("{exercise.name}") asks the next question'
    return Note(
        f"{exercise.name}: hint {number} of {len(exercise.hints)}",
        {"think": exercise.hints[number - 1], "next": after},
    )


def solution(name: Any) -> Note:
    """A right answer to an exercise, and what you should remember."""
    exercise, said = _find(name)
    if exercise is None:
        return Note("No solution", {"diagnosis": said})
    return Note(
        f"{exercise.name}: a solution",
        {"asked": exercise.asked, "remember": exercise.remember},
        exercise.text,
    )


def picture(name: Any) -> Any:
    """The picture that an exercise asks you to predict; it is drawn once you have chosen, rightly or not."""
    exercise, said = _find(name)
    if exercise is None or exercise.picture is None:
        with_one = ", ".join(e.name for e in exercises().values() if e.picture is not None)
        return Note(
            "No picture",
            {"diagnosis": said or f"{exercise.name if exercise else name} has none; these have: {with_one}"},
        )
    if exercise.name not in _chosen:
        return Note(
            f"{exercise.name}: predict first",
            {"next": "choose an answer and check it; then run this cell again"},
        )
    return exercise.picture()


def progress() -> Overview:
    """All lessons and exercises with their states, and what to do next."""
    entries, said = store.read()
    return Overview(_lessons(entries), said)


def export_progress(path: Any = "progress.csv") -> Note:
    """Write `progress()` to a CSV file for an instructor, a row per exercise: no name, no answer. Says what
    was written, or why not.

    Columns: lesson, exercise, stars, minutes, state, attempts, first_pass. An older export is replaced, any
    other file is not.
    """
    try:
        path = os.fspath(path)
    except Exception:  # no path, or one that does not say which
        pass
    if not isinstance(path, str) or not path:
        got = "an empty one" if path == "" else described(path)
        said = f'path must be the name of a file, got {got}; try export_progress("progress.csv")'
        return Note("Not exported", {"diagnosis": said})
    try:
        entries, said = store.load()
    except store.TROUBLES as error:  # an export would say that nothing has been done
        return Note("Not exported", {"diagnosis": f"your progress could not be read ({store.reason(error)})"})
    lessons = _lessons(entries)
    trouble = overview.export(lessons, path)
    if trouble:
        return Note("Not exported", {"diagnosis": trouble})
    every = [standing for lesson in lessons for standing in lesson.standings]
    rows = {
        "file": path,
        "holds": (
            f"{len(every)} exercises, {sum(s.state == 'passed' for s in every)} of them passed; no name, no"
            " answer"
        ),
        "next": "open it in a spreadsheet, or send it to your instructor",
    }
    return Note("Exported", rows | ({"progress file": said} if said else {}))


def reset(name: Any = None) -> Note:
    """Forget one exercise: its attempts, its pass, the hints it gave; then it can be done again. Says what
    was forgotten."""
    if name is None:
        said = 'reset forgets one exercise, never all; say which: reset("name"); progress() lists the names'
        return Note("Nothing was reset", {"diagnosis": said})
    exercise, said = _find(name)
    if exercise is None:
        return Note("Nothing was reset", {"diagnosis": said})
    entry, trouble = store.forget(exercise.name)
    hints = _hints_given.pop(exercise.name, 0)
    _chosen.discard(exercise.name)
    forgotten = []
    if entry is not None:
        forgotten.append(_count(entry["attempts"], "attempt"))
        forgotten += [f"the pass of {entry['first_pass']}"] if entry["first_pass"] else []
    forgotten += [_count(hints, "hint")] if hints else []
    if forgotten:
        notebook = next(place for place, asked in lessons().items() if exercise in asked)
        rows = {
            "forgotten": ", ".join(forgotten),
            "next": f"empty your answer in {notebook}.ipynb, and do it again",
        }
    else:
        rows = {"diagnosis": "there is nothing to forget: no attempt, no hint"}
    return Note(
        f"{exercise.name}: " + ("as if never tried" if forgotten else "nothing was reset"),
        rows | ({"progress file": trouble} if trouble else {}),
    )


def _lessons(entries: store.Entries) -> tuple[Lesson, ...]:
    def standing(exercise: Exercise) -> Standing:
        entry = entries.get(exercise.name, {"attempts": 0, "first_pass": None})
        return Standing(exercise, entry["attempts"], entry.get("first_pass"))

    return tuple(
        Lesson(notebook, tuple(standing(exercise) for exercise in asked))
        for notebook, asked in lessons().items()
        if asked
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _judged(exercise: Exercise, answer: Any) -> Result:
    """The exercise's own verdict, with the deadline and everything global protected; a sentence in every
    other case."""
    if changed := runner.replaced():
        owner = "torch's" if "." in changed else "Python's"
        return exercise.result(
            "unjudged",
            f"{changed} is not {owner} own in this session, so nothing can be judged; restart the kernel",
        )
    if values.is_a(answer, str) and str.__len__(answer) > LONGEST:
        return exercise.result("failed", f"a text of at most {LONGEST:,} characters is read; yours is longer")
    notes = runner.Notes()
    called = isinstance(exercise, Write) and callable(answer)
    with runner.undisturbed():
        try:
            result = runner.within(
                runner.DEADLINE_S, lambda: exercise.judge(answer, notes.turn), notes, tried=called
            )
        except runner.Verdict:  # this check is called by an answer
            raise
        except TimeoutError as reason:
            shown = Counterexample(copies(notes.case), None, NO_RESULT) if notes.case else None
            result = exercise.result("failed", str(reason), step=notes.step, counterexample=shown)
        except BaseException as error:
            result = exercise.result(*_stumbled(answer, error))
    result.after.update(notes.rows)
    return result


def _stumbled(answer: Any, error: BaseException) -> tuple[str, str]:
    """State and sentence for an error that the judging met: by a line of the learner's, or by a fault of its
    own."""
    if type(answer) not in (int, float, str) and (place := runner.place(error)):
        return "failed", f"what you handed in stops with {values.kind(error)}{place}: it cannot be looked at"
    return "unjudged", (
        f"the check itself stumbled over this answer, {values.described(answer)} ({values.kind(error)});"
        " that is a fault of the check: please report it"
    )


def _find(name: Any) -> tuple[Exercise | None, str]:
    """The exercise of that name (or of the function with that name), or None and a sentence."""
    if not values.is_a(name, str):
        name = values.own_name(name)
    if name is None or "<" in name:  # a lambda is called "<lambda>"
        return None, 'say which exercise this answers: check(answer, "name"); progress() lists the names'
    name = str.__str__(name)
    if name in exercises():
        return exercises()[name], ""
    short = name if len(name) <= 60 else name[:57] + "..."
    near = difflib.get_close_matches(short, exercises(), n=1)
    guess = f'; did you mean "{near[0]}"?' if near else ""
    return None, f'no exercise is called "{short}"{guess}; progress() lists the names'
