"""A learner's progress as a file for an instructor's spreadsheet: no name, no answer."""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.checks import store
from lesson_lib.checks.overview import Lesson
from lesson_lib.checks.result import WORDS

HEADER = ("lesson", "exercise", "stars", "minutes", "state", "attempts", "first_pass")


def export(lessons: Sequence[Lesson], path: str) -> str:
    """Write one row per exercise to a CSV file; returns '' or a sentence that says why nothing was written.

    Only a file that begins with our header is overwritten. It holds no name and no answer.
    """
    shown = str(path).encode("utf-8", "replace").decode()  # a name that no encoding has cannot be printed
    try:
        target = Path(os.path.realpath(Path(path).expanduser()))
        if target.is_dir():
            return f"{shown} is a folder; add a file's name, such as progress.csv"
        if target.exists() and not _ours(target):
            return f"{shown} is not an export of progress(), so it is left as it is; choose another name"
        if not target.parent.is_dir():
            return f"{shown} cannot be written: its folder is not there; make it, or choose another"
        store.write_whole(target, _csv(lessons))
    except store.TROUBLES as error:
        return (
            f"it could not be written ({store.reason(error)}); nothing was changed. Choose another file or"
            " folder"
        )
    return ""


def _csv(lessons: Sequence[Lesson]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)  # commas, and lines that end as RFC 4180 says
    writer.writerow(HEADER)
    for lesson in lessons:
        for s in (standing for standing in lesson.standings if not standing.exercise.prediction):
            state = WORDS[s.state].lower()
            row = (lesson.title, s.exercise.name, s.exercise.stars, s.exercise.minutes, state, s.attempts)
            writer.writerow((*row, s.first_pass or ""))
    return text.getvalue()


def _ours(path: Path) -> bool:
    """Whether a file begins with our header; a spreadsheet may have written it again, with its own marks and
    separators."""
    if not path.is_file():  # a device, a pipe
        return False
    with open(path, "rb") as file:
        line = file.readline(200).decode("utf-8-sig", errors="replace").strip()
    return tuple(name.strip('"') for name in line.replace(";", ",").replace("\t", ",").split(",")) == HEADER
