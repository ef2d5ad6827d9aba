"""Where a learner stands: tables for a terminal and for a notebook, and a file for an instructor's
spreadsheet."""

import csv
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from lesson_lib.checks import store
from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.result import COLOURS, SIGNS, WORDS, State
from lesson_lib.checks.short import Open

HEADER = ("lesson", "exercise", "stars", "minutes", "state", "attempts", "first_pass")
RIGHT = {"passed", "judged", "minutes", "minutes left"}  # columns of numbers


@dataclass(frozen=True)
class Standing:
    """One exercise, and what a learner has done of it. `first_pass` is a day such as 2026-11-21, or None;
    `judged` are points with a yes, and points, of an open answer; `solution` says whether it was seen before
    a pass."""

    exercise: Exercise
    attempts: int = 0
    first_pass: str | None = None
    judged: tuple[int, int] | None = None
    solution: bool = False

    @property
    def state(self) -> State:
        """passed, judged (by its writer), failed (tried, not passed) or open."""
        if self.first_pass:
            return "passed"
        return "judged" if self.judged else "failed" if self.attempts else "open"

    @property
    def words(self) -> str:
        """The state with its sign, and what there is to count."""
        day = f" {self.first_pass}" if self.first_pass else ""
        tries = f", {self.attempts} attempt{'s' * (self.attempts != 1)}" if self.attempts else ""
        said = f": {self.judged[0]} of {self.judged[1]}" if self.state == "judged" else ""
        seen = ", solution seen first" if self.solution else ""
        return f"{SIGNS[self.state]} {WORDS[self.state].lower()}{day}{said}{tries}{seen}"


@dataclass(frozen=True)
class Lesson:
    """The exercises of one notebook, such as "exercises/02_scoring"."""

    notebook: str
    standings: tuple[Standing, ...]

    @property
    def title(self) -> str:
        """Its number and words: 02 scoring. A part that is a whole chapter is told from its exercises."""
        folder, _, stem = self.notebook.rpartition("/")
        whole = not folder and re.match(r"\d\d_", stem) and not stem.startswith("00_")
        return stem.replace("_", " ") + " (part)" * bool(whole)

    @property
    def left(self) -> list[Standing]:
        """What is neither passed nor judged yet, in order."""
        return [standing for standing in self.standings if standing.state not in ("passed", "judged")]

    @property
    def passed(self) -> str:
        """3 of 8: of those that a check can pass."""
        return _counted(self.standings, "passed")

    @property
    def judged(self) -> str:
        """0 of 1: of those that their writer judges; '' where there is none."""
        return _counted(self.standings, "judged")


@dataclass(frozen=True)
class Cell:
    """A piece of a table: its text, and where it leads, if anywhere."""

    text: str
    link: str = ""

    @property
    def html(self) -> str:
        """The text, as a link where it is one."""
        return f"<a href='{escape(self.link)}'>{escape(self.text)}</a>" if self.link else escape(self.text)


@dataclass(frozen=True, eq=False)
class Overview:
    """All lessons with their exercises, and what to do next; `said` is a sentence about the progress file, or
    ''.

    A terminal shows the exercises first, so that the lessons and what is next stand at its end; a notebook
    folds them, but for the lesson that is next.
    """

    lessons: tuple[Lesson, ...]
    said: str = ""

    @property
    def _title(self) -> str:
        every = [standing for lesson in self.lessons for standing in lesson.standings]
        judged = _counted(every, "judged")
        return f"Exercises: {_counted(every, 'passed')} passed" + (f", {judged} judged by you" * bool(judged))

    @property
    def _following(self) -> tuple[Lesson, str] | None:
        return next(((lesson, lesson.left[0].exercise.name) for lesson in self.lessons if lesson.left), None)

    def _all(self) -> tuple[str, list[str], list[list[Cell]]]:
        rows = []
        for lesson in self.lessons:
            minutes = str(sum(standing.exercise.minutes for standing in lesson.left))
            following = Cell(lesson.left[0].exercise.name, _link(lesson)) if lesson.left else Cell("all done")
            done = [Cell(lesson.passed), Cell(lesson.judged)]
            rows.append([Cell(lesson.title), *done, Cell(minutes), following])
        return "Lessons", ["lesson", "passed", "judged", "minutes left", "next exercise"], rows

    def _of(self, lesson: Lesson) -> tuple[str, list[str], list[list[Cell]]]:
        rows = [
            [Cell(s.exercise.name), Cell(stars(s.exercise)), Cell(str(s.exercise.minutes)), Cell(s.words)]
            for s in lesson.standings
        ]
        return f"Exercises of {lesson.title}", ["exercise", "level", "minutes", "state"], rows

    def __repr__(self) -> str:
        parts = [_text(*self._of(lesson)) for lesson in self.lessons]
        parts += [_text(*self._all()), self._title]
        if self._following is None:
            parts[-1] += "\nnext: all exercises are done"
        else:
            lesson, name = self._following
            parts[-1] += f"\nnext: {name}, in {lesson.notebook}.ipynb"
        if self.said:
            parts[-1] += f"\nprogress file: {self.said}"
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        following, opened = "all exercises are done", None
        if self._following is not None:
            opened, name = self._following
            place = Cell(f"{opened.notebook}.ipynb", _link(opened))
            following = f"<code>{escape(name)}</code>, in {place.html}"
        said = f"<div>progress file: {escape(self.said)}</div>" if self.said else ""
        folds = "".join(
            f"<details{' open' * (lesson is opened)}><summary"
            f" style='cursor:pointer'>{escape(lesson.title)}</summary>{_html(*self._of(lesson))}</details>"
            for lesson in self.lessons
        )
        return (
            f"<div style='border-left:.3em solid {COLOURS['open']};padding:.2em .8em;color:inherit'>"
            f"<div><b>{self._title}</b></div><div>next: {following}</div>{said}"
            f"{_html(*self._all())}{folds}</div>"
        )


def _counted(standings: Sequence[Standing], state: State) -> str:
    """3 of 8: how many of those that can come into this state, passed or judged, are in it."""
    able = [s for s in standings if isinstance(s.exercise, Open) == (state == "judged")]
    return f"{sum(s.state == state for s in able)} of {len(able)}" if able else ""


def stars(exercise: Exercise) -> str:
    """How hard, as ★★☆."""
    return "★" * exercise.stars + "☆" * (3 - exercise.stars)


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
        for s in lesson.standings:
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


def _link(lesson: Lesson) -> str:
    """Where the lesson's notebook lies, seen from this one's folder, in which its kernel runs; '' where it is
    not there."""
    # a chapter of one part calls its exercises as the part: 03_matrix_form, exercises/03_matrix_form
    inside = Path.cwd().name in ("evidence", "exercises", "solutions")
    for up in ("../",) if inside else ("", "../"):
        if Path(f"{up}{lesson.notebook}.ipynb").is_file():
            return f"{up}{lesson.notebook}.ipynb"
    return ""


def _text(caption: str, heads: list[str], rows: list[list[Cell]]) -> str:
    lines = [heads, *([cell.text for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (
        "  ".join(
            text.rjust(width) if head in RIGHT else text.ljust(width)
            for head, text, width in zip(heads, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )
    return "\n".join([caption, *(f"  {line}" for line in aligned)])


def _html(caption: str, heads: list[str], rows: list[list[Cell]]) -> str:
    """A table without asset and script; its text keeps the colour of the page."""

    def style(head: str) -> str:
        side = "right" if head in RIGHT else "left"
        return f"style='text-align:{side};padding:.15em 1.2em .15em 0'"

    top = "".join(f"<th scope='col' {style(head)}>{escape(head)}</th>" for head in heads)
    body = ""
    for row in rows:
        first, *rest = zip(heads, row, strict=True)
        cells = f"<th scope='row' {style(first[0])[:-1]};font-weight:normal'>{first[1].html}</th>"
        cells += "".join(f"<td {style(head)}>{cell.html}</td>" for head, cell in rest)
        body += f"<tr style='background:none'>{cells}</tr>"
    return (
        "<table style='border:none;border-collapse:collapse;margin:.4em 0;color:inherit'>"
        f"<caption style='text-align:left;padding:0;color:inherit'><b>{escape(caption)}</b></caption>"
        f"<thead><tr style='background:none'>{top}</tr></thead><tbody>{body}</tbody></table>"
    )
