"""A learner's progress as a file for an instructor: no answer, and no name but one that the learner
chooses."""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.checks import store
from lesson_lib.checks.progress_table import Lesson
from lesson_lib.checks.result import WORDS

FIRST = ("lesson", "exercise", "stars", "minutes", "state", "attempts", "first_pass")  # the first edition's
HEADER = (*FIRST, "first_try", "sure", "hints", "solution", "day", "name", "diagnoses")


def export(lessons: Sequence[Lesson], path: str, name: str = "") -> str:
    """Write one row per exercise and prediction to a CSV file; returns '' or a sentence that says why nothing
    was written.

    Only a file that begins with our header is overwritten. A prediction has no stars, and is `passed` where
    it was right; `diagnoses` are the mistakes that were named, in lines.
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
        store.write_whole(target, _csv(lessons, name))
    except store.TROUBLES as error:
        return (
            f"it could not be written ({store.reason(error)}); nothing was changed. Choose another file or"
            " folder"
        )
    return ""


def _csv(lessons: Sequence[Lesson], name: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text)  # commas, and lines that end as RFC 4180 says
    writer.writerow(HEADER)
    for lesson in lessons:
        for s in lesson.standings:
            state = WORDS[s.state].lower()
            row = (lesson.title, s.exercise.name, s.exercise.stars, s.exercise.minutes, state, s.attempts)
            first = {True: "yes", False: "no"}[s.first_try] if s.attempts else ""
            sure = "yes" if s.sure else ""
            solution_seen = "yes" if s.solution else ""
            writer.writerow(
                (*row, s.first_pass or "", first, sure, s.hints, solution_seen, s.day, name, "\n".join(s.met))
            )
    return "\ufeff" + text.getvalue()  # the mark by which a spreadsheet knows the encoding


def _ours(path: Path) -> bool:
    """Whether a file begins with our header; a spreadsheet may have written it again, with its own marks and
    separators."""
    if not path.is_file():  # a device, a pipe
        return False
    with open(path, "rb") as file:
        line = file.readline(400).decode("utf-8-sig", errors="replace").strip()
    names = tuple(name.strip('"') for name in line.replace(";", ",").replace("\t", ",").split(","))
    return names in (HEADER, FIRST)
