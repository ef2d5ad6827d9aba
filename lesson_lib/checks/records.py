"""The verbs about what was done: progress, export_progress, reset."""

import os
import re
from typing import Any

from lesson_lib.checks import engine, store
from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.export import export
from lesson_lib.checks.progress_table import Lesson, Overview, Standing
from lesson_lib.checks.result import Note
from lesson_lib.checks.schedule import due
from lesson_lib.checks.short_answers import RETURNING
from lesson_lib.checks.values import described, is_a
from lesson_lib.places import command


def progress() -> Overview:
    """All chapters, parts and exercises with their states, how good your predictions were, what returns when,
    and where to go on."""
    entries, problem = store.read()
    return Overview(_lessons(entries), store.last(), problem)


def export_progress(path: Any = "progress.csv", name: Any = "") -> Note:
    """Write `progress()` to a CSV file for an instructor, a row per exercise and prediction: no answer, and
    no name but the one that you choose, such as a pseudonym. Says what was written, or why not.

    Columns: those of `export.HEADER`. An older export is replaced, any other file is not.
    """
    if not is_a(name, str) or not re.fullmatch(r"[\w .-]{0,40}", str.__str__(name)):
        problem = "name must be a word of your choice, up to 40 letters or digits, or nothing at all"
        return Note("Not exported", {"diagnosis": f'{problem}; try export_progress(name="blue heron")'})
    try:
        path = os.fspath(path)
    except Exception:  # no path, or one that does not say which
        pass
    if not isinstance(path, str) or not path:
        got = "an empty one" if path == "" else described(path)
        problem = f'path must be the name of a file, got {got}; try export_progress("progress.csv")'
        return Note("Not exported", {"diagnosis": problem})
    try:
        entries, problem = store.load()
    except store.TROUBLES as error:  # an export would say that nothing has been done
        return Note("Not exported", {"diagnosis": f"your progress could not be read ({store.reason(error)})"})
    lessons = _lessons(entries)
    trouble = export(lessons, path, str.__str__(name).strip())
    if trouble:
        return Note("Not exported", {"diagnosis": trouble})
    every = [s for lesson in lessons for s in lesson.standings if not s.exercise.prediction]
    passed = sum(s.state == "passed" for s in every)
    rows = {
        "file": path,
        "holds": f"{len(every)} exercises, {passed} of them passed, and your predictions; no answer,"
        + (f" and the name {name}" if name else " no name"),
        "next": "open it in a spreadsheet, or send it to your instructor",
    }
    return Note("Exported", rows | ({"progress file": problem} if problem else {}))


def reset(name: Any = None, sure: Any = False) -> Note:
    """Forget one exercise, or with sure=True all those of a chapter ("02") or a notebook ("02a"): attempts,
    passes, hints; then they can be done again. Says what was forgotten."""
    if name is None:
        problem = (
            'reset forgets one exercise, or a chapter, never all; say which: reset("name"), reset("02");'
            " progress() lists the names"
        )
        return Note("Nothing was reset", {"diagnosis": problem})
    if notebooks := _notebooks(name):
        return _reset_all(str(name), notebooks, sure is True)
    exercise, problem = engine.find(name)
    if exercise is None:
        return Note("Nothing was reset", {"diagnosis": problem})
    dropped, trouble = store.forget(exercise.name)
    engine.forget(exercise.name)
    if forgotten := _summary(dropped):
        notebook = next(notebook for notebook, asked in engine.lessons().items() if exercise in asked)
        again = f"empty your answer in {notebook}.ipynb, and do it again"
        if exercise.prediction:
            again = f"run its card in {notebook}.ipynb once more, and it asks you again"
        rows = {"forgotten": forgotten, "next": again}
    else:
        rows = {"diagnosis": "there is nothing to forget: no attempt, no hint"}
    title = f"{exercise.name}: " + ("as if never tried" if forgotten else "nothing was reset")
    return Note(title, rows | ({"progress file": trouble} if trouble else {}))


def _reset_all(name: str, notebooks: list[str], sure: bool) -> Note:
    """Forget all that was done in some notebooks, if their learner is sure; else what that would be."""
    names = [exercise.name for notebook in notebooks for exercise in engine.lessons()[notebook]]
    entries, problem = store.read()
    stored = {key: entries[key] for key in names if key in entries}
    if not _summary(stored):
        rows = {"diagnosis": f"there is nothing to forget in {_listed(notebooks)}"}
        return Note(f"{name}: nothing was reset", rows | ({"progress file": problem} if problem else {}))
    if not sure:
        rows = {"would forget": _summary(stored), "of": _listed(notebooks)}
        return Note(f"{name}: nothing was reset yet", rows | {"next": f'reset("{name}", sure=True) does it'})
    dropped, trouble = store.forget(*names)
    for key in names:
        engine.forget(key)
    rows = {"forgotten": _summary(dropped), "of": _listed(notebooks)}
    rows["next"] = f"for fresh copies rename your notebooks, and start the course again ({command('lab')})"
    return Note(f"{name}: as if never tried", rows | ({"progress file": trouble} if trouble else {}))


def _notebooks(name: Any) -> list[str]:
    """The notebooks of a chapter (02), of a part (02a), or of that name."""
    if not is_a(name, str):
        return []
    asked = re.sub(r"^chapter\s+|\.ipynb$", "", str.__str__(name).strip())
    matches = []
    for notebook in engine.lessons():
        stem = notebook.rpartition("/")[2]
        number = re.match(r"((\d\d)[a-z]?)_", stem)
        if asked in (notebook, stem, *(number.groups() if number else ())):
            matches.append(notebook)
    return matches


def _listed(notebooks: list[str]) -> str:
    return ", ".join(f"{notebook}.ipynb" for notebook in notebooks)


def _summary(dropped: store.Entries) -> str:
    """Describe the content of these entries: attempts, passes, hints; '' where there is nothing."""
    entries = list(dropped.values())
    attempts = sum(entry["attempts"] for entry in entries)
    days = [entry["first_pass"] for entry in entries if entry["first_pass"]]
    hints = sum(len(entry.get("hints", ())) for entry in entries)
    parts = [_count(attempts, "attempt")] if attempts else []
    if days:
        parts.append(f"the pass of {days[0]}" if len(entries) == 1 else _count(len(days), "pass", "es"))
    parts += [_count(hints, "hint")] if hints else []
    parts += ["that you saw the solution"] if any("solution" in entry for entry in entries) else []
    parts += ["how you judged it"] if any("judged" in entry for entry in entries) else []
    return ", ".join(parts)


def _count(number: int, word: str, ending: str = "s") -> str:
    return f"{number} {word}{ending * (number != 1)}"


def _lessons(entries: store.Entries) -> tuple[Lesson, ...]:
    def standing(exercise: Exercise) -> Standing:
        entry = entries.get(exercise.name, {})
        return Standing(
            exercise,
            entry.get("attempts", 0),
            entry.get("first_pass"),
            tuple(entry["judged"]) if "judged" in entry else None,
            "solution" in entry,
            entry.get("sure", False),
            due(entry) if isinstance(exercise, RETURNING) else None,
            len(entry.get("hints", ())),
            tuple(slip for slip in entry.get("met", ()) if slip in exercise.slips),
            entry.get("day", ""),
        )

    lessons = (Lesson(notebook, tuple(map(standing, asked))) for notebook, asked in engine.lessons().items())
    return tuple(lesson for lesson in lessons if lesson.standings)
