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


def progress() -> Overview:
    """All chapters, parts and exercises with their states, how good your predictions were, what returns when,
    and where to go on."""
    entries, said = store.read()
    return Overview(_lessons(entries), store.last(), said)


def export_progress(path: Any = "progress.csv", name: Any = "") -> Note:
    """Write `progress()` to a CSV file for an instructor, a row per exercise and prediction: no answer, and
    no name but the one that you choose, such as a pseudonym. Says what was written, or why not.

    Columns: those of `export.HEADER`. An older export is replaced, any other file is not.
    """
    if not is_a(name, str) or not re.fullmatch(r"[\w .-]{0,40}", str.__str__(name)):
        said = "name must be a word of your choice, up to 40 letters or digits, or nothing at all"
        return Note("Not exported", {"diagnosis": f'{said}; try export_progress(name="blue heron")'})
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
    return Note("Exported", rows | ({"progress file": said} if said else {}))


def reset(name: Any = None, sure: Any = False) -> Note:
    """Forget one exercise, or with sure=True all those of a chapter ("02") or a notebook ("02a"): attempts,
    passes, hints; then they can be done again. Says what was forgotten."""
    if name is None:
        said = (
            'reset forgets one exercise, or a chapter, never all; say which: reset("name"), reset("02");'
            " progress() lists the names"
        )
        return Note("Nothing was reset", {"diagnosis": said})
    if notebooks := _notebooks(name):
        return _reset_all(str(name), notebooks, sure is True)
    exercise, said = engine.find(name)
    if exercise is None:
        return Note("Nothing was reset", {"diagnosis": said})
    gone, trouble = store.forget(exercise.name)
    engine.forget(exercise.name)
    if forgotten := _told(gone):
        place = next(place for place, asked in engine.lessons().items() if exercise in asked)
        again = f"empty your answer in {place}.ipynb, and do it again"
        if exercise.prediction:
            again = f"run its card in {place}.ipynb once more, and it asks you again"
        rows = {"forgotten": forgotten, "next": again}
    else:
        rows = {"diagnosis": "there is nothing to forget: no attempt, no hint"}
    title = f"{exercise.name}: " + ("as if never tried" if forgotten else "nothing was reset")
    return Note(title, rows | ({"progress file": trouble} if trouble else {}))


def _reset_all(name: str, notebooks: list[str], sure: bool) -> Note:
    """Forget all that was done in some notebooks, if their learner is sure; else what that would be."""
    names = [exercise.name for place in notebooks for exercise in engine.lessons()[place]]
    entries, said = store.read()
    there = {key: entries[key] for key in names if key in entries}
    if not _told(there):
        rows = {"diagnosis": f"there is nothing to forget in {_listed(notebooks)}"}
        return Note(f"{name}: nothing was reset", rows | ({"progress file": said} if said else {}))
    if not sure:
        rows = {"would forget": _told(there), "of": _listed(notebooks)}
        return Note(f"{name}: nothing was reset yet", rows | {"next": f'reset("{name}", sure=True) does it'})
    gone, trouble = store.forget(*names)
    for key in names:
        engine.forget(key)
    rows = {"forgotten": _told(gone), "of": _listed(notebooks)}
    rows["next"] = "for fresh copies rename your notebooks, and start the course again (make lab)"
    return Note(f"{name}: as if never tried", rows | ({"progress file": trouble} if trouble else {}))


def _notebooks(name: Any) -> list[str]:
    """The notebooks of a chapter (02), of a part (02a), or of that name."""
    if not is_a(name, str):
        return []
    asked = re.sub(r"^chapter\s+|\.ipynb$", "", str.__str__(name).strip())
    found = []
    for place in engine.lessons():
        stem = place.rpartition("/")[2]
        number = re.match(r"((\d\d)[a-z]?)_", stem)
        if asked in (place, stem, *(number.groups() if number else ())):
            found.append(place)
    return found


def _listed(notebooks: list[str]) -> str:
    return ", ".join(f"{place}.ipynb" for place in notebooks)


def _told(gone: store.Entries) -> str:
    """What these entries hold, in words; '' where it is nothing."""
    entries = list(gone.values())
    attempts = sum(entry["attempts"] for entry in entries)
    days = [entry["first_pass"] for entry in entries if entry["first_pass"]]
    hints = sum(len(entry.get("hints", ())) for entry in entries)
    told = [_count(attempts, "attempt")] if attempts else []
    if days:
        told.append(f"the pass of {days[0]}" if len(entries) == 1 else _count(len(days), "pass", "es"))
    told += [_count(hints, "hint")] if hints else []
    told += ["that you saw the solution"] if any("solution" in entry for entry in entries) else []
    told += ["how you judged it"] if any("judged" in entry for entry in entries) else []
    return ", ".join(told)


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

    found = (Lesson(place, tuple(map(standing, asked))) for place, asked in engine.lessons().items())
    return tuple(lesson for lesson in found if lesson.standings)
