"""The tables of progress(), by chapter, part and exercise, for a terminal and for a notebook."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from html import escape
from itertools import groupby
from pathlib import Path

from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.result import COLOURS, SIGNS, WORDS, State
from lesson_lib.checks.short_answers import Open

RIGHT = {"passed", "judged", "predicted", "right", "minutes", "minutes left", "questions"}  # of numbers
NAMES = 4  # of what returns on one day, at most
DAYS = 4  # on which something returns, one row for each


@dataclass(frozen=True)
class Standing:
    """One exercise or prediction, and what a learner has done of it.

    `first_pass` is a day such as 2026-11-21, or None; `judged` are points with a yes, and points, of an open
    answer; `solution` says whether it was seen before a pass; `sure`, of a prediction, whether its writer
    was; `due` is the day on which the question returns, or None; `hints` counts those that were given, `met`
    are the mistakes that were named, `day` is that of the last answer.
    """

    exercise: Exercise
    attempts: int = 0
    first_pass: str | None = None
    judged: tuple[int, int] | None = None
    solution: bool = False
    sure: bool = False
    due: date | None = None
    hints: int = 0
    met: tuple[str, ...] = ()
    day: str = ""

    @property
    def state(self) -> State:
        """passed, judged (by its writer), failed (tried, not passed) or open."""
        if self.first_pass:
            return "passed"
        return "judged" if self.judged else "failed" if self.attempts else "open"

    @property
    def first_try(self) -> bool:
        """Whether the first answer was right."""
        return self.attempts == 1 and bool(self.first_pass)

    @property
    def done(self) -> bool:
        """Whether it is behind its learner: passed, judged, or predicted, rightly or not."""
        return self.state in ("passed", "judged") or (self.exercise.prediction and self.attempts > 0)

    @property
    def words(self) -> str:
        """The state with its sign, and what there is to count."""
        day = f" {self.first_pass}" if self.first_pass else ""
        if self.exercise.prediction and self.attempts:
            outcome = "right" if self.first_pass else "not so"
            return f"{SIGNS[self.state]} {outcome}{day}{', and you were sure' * self.sure}"
        tries = f", {self.attempts} attempt{'s' * (self.attempts != 1)}" if self.attempts else ""
        outcome = f": {self.judged[0]} of {self.judged[1]}" if self.state == "judged" else ""
        solution_seen = ", solution seen first" if self.solution else ""
        return f"{SIGNS[self.state]} {WORDS[self.state].lower()}{day}{outcome}{tries}{solution_seen}"


class Some:
    """Counts over some standings: what an overview's row says of a chapter or of a notebook."""

    standings: tuple[Standing, ...]

    @property
    def left(self) -> list[Standing]:
        """Exercises that are neither passed nor judged yet, in order."""
        return [s for s in self.standings if not s.done and not s.exercise.prediction]

    @property
    def passed(self) -> str:
        """3 of 8: of those that a check can pass."""
        return self._counted("passed")

    @property
    def judged(self) -> str:
        """0 of 1: of those that their writer judges; '' where there is none."""
        return self._counted("judged")

    def _counted(self, state: State) -> str:
        asked = [s for s in self.standings if not s.exercise.prediction]
        able = [s for s in asked if isinstance(s.exercise, Open) == (state == "judged")]
        return f"{sum(s.state == state for s in able)} of {len(able)}" if able else ""

    @property
    def predictions(self) -> list[Standing]:
        """The predictions that were answered."""
        return [s for s in self.standings if s.exercise.prediction and s.attempts]

    @property
    def predicted(self) -> str:
        """4 of 5: predictions that were answered; '' where there is none."""
        asked = sum(s.exercise.prediction for s in self.standings)
        return f"{len(self.predictions)} of {asked}" if asked else ""

    @property
    def right(self) -> str:
        """3 of 4: predictions that were right, of those answered; '' where none was."""
        return right(self.predictions)

    def row(self, title: str, link: str) -> "list[Cell]":
        """Title, counts, minutes that are left, and the next exercise."""
        minutes = str(sum(s.exercise.minutes for s in self.left))
        counts = (self.passed, self.judged, self.predicted, self.right, minutes)
        following = Cell(self.left[0].exercise.name, link) if self.left else Cell("all done")
        return [Cell(title), *map(Cell, counts), following]


@dataclass(frozen=True)
class Lesson(Some):
    """The exercises and predictions of one notebook, such as "exercises/02_scoring"."""

    notebook: str
    standings: tuple[Standing, ...]

    @property
    def title(self) -> str:
        """Its number and words: 02 scoring. A part that is a whole chapter is told from its exercises."""
        folder, _, stem = self.notebook.rpartition("/")
        whole = not folder and re.match(r"\d\d_", stem) and not stem.startswith("00_")
        return stem.replace("_", " ") + " (part)" * bool(whole)

    @property
    def chapter(self) -> str:
        """The number of its chapter; '' for a page that belongs to none."""
        match = re.match(r"(\d\d)[a-z]?_", self.notebook.rpartition("/")[2])
        return match[1] if match else ""


@dataclass(frozen=True)
class Chapter(Some):
    """The notebooks of a chapter; `title` is its number and name."""

    title: str
    lessons: tuple[Lesson, ...]

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Of all its notebooks."""
        return tuple(standing for lesson in self.lessons for standing in lesson.standings)

    @property
    def begun(self) -> bool:
        """Whether anything of it was answered."""
        return any(standing.attempts or standing.judged for standing in self.standings)


@dataclass(frozen=True)
class Cell:
    """A piece of a table: its text, and where it leads, if anywhere."""

    text: str
    link: str = ""

    @property
    def html(self) -> str:
        """The text, as a link where it is one."""
        return f"<a href='{escape(self.link)}'>{escape(self.text)}</a>" if self.link else escape(self.text)


Table = tuple[str, list[str], list[list[Cell]]]  # caption, heads, rows


@dataclass(frozen=True, eq=False)
class Overview(Some):
    """All chapters with their parts and exercises, what was done last, what is next and what returns;
    `problem` is a sentence about the progress file, or ''.

    Details are shown of chapters that were begun, and of the next one. A terminal shows them first, so that
    the chapters and what is next stand at its end; a notebook folds them.
    """

    lessons: tuple[Lesson, ...]
    last: str = ""
    problem: str = ""
    today: date = field(default_factory=date.today)

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Of all notebooks."""
        return tuple(standing for lesson in self.lessons for standing in lesson.standings)

    @property
    def chapters(self) -> list[Chapter]:
        """The notebooks by their chapters, in order; last the pages outside of them."""
        grouped = []
        for number, own in groupby(self.lessons, key=lambda lesson: lesson.chapter):
            lessons = tuple(own)
            whole = [lesson.title for lesson in lessons if lesson.notebook.startswith("exercises/")]
            only = f"{number} {lessons[0].title.removesuffix(' (part)').partition(' ')[2]}"
            grouped.append(Chapter((whole or [only])[0] if number else "pages", lessons))
        return grouped

    @property
    def following(self) -> tuple[Lesson, Standing] | None:
        """Where to go on from what was done last: the first that is not done from there on."""
        order = [(lesson, standing) for lesson in self.lessons for standing in lesson.standings]
        names = [standing.exercise.name for _, standing in order]
        at = names.index(self.last) if self.last in names else 0
        return next((pair for pair in order[at:] + order[:at] if not pair[1].done), None)

    @property
    def head(self) -> dict[str, Cell]:
        """What stands above all tables: label and text."""
        judged = self.judged
        exercises = f"{self.passed} passed" + f", {judged} judged by you" * bool(judged)
        rows = {"exercises": Cell(exercises), "predictions": Cell(self._calibration)}
        if due := [s for s in self.standings if s.due is not None and s.due <= self.today]:
            count = f"{len(due)} question{'s' * (len(due) != 1)}"
            rows["today"] = Cell(f"{count} to answer again: review() asks them")
        lesson_of = {s.exercise.name: lesson for lesson in self.lessons for s in lesson.standings}
        if self.last in lesson_of:
            rows["last"] = Cell(f"{self.last}, in {lesson_of[self.last].notebook}.ipynb")
        if self.following is None:
            rows["next"] = Cell("all exercises are done")
        else:
            lesson, standing = self.following
            rows["next"] = Cell(f"{standing.exercise.name}, in {lesson.notebook}.ipynb", link(lesson))
        return rows | ({"progress file": Cell(self.problem)} if self.problem else {})

    @property
    def _calibration(self) -> str:
        """How many predictions were right; of those that their writer was sure of, and of the others."""
        if not self.predictions:
            return f"{self.predicted} answered"
        parts = [f"{self.predicted} answered, {self.right} right"]
        for sure, words in ((True, "sure"), (False, "not sure")):
            own = [s for s in self.predictions if s.sure == sure]
            parts += [f"{words}: {right(own)} right"] if own and any(s.sure for s in self.predictions) else []
        return "; ".join(parts)

    @property
    def tables(self) -> tuple[list[Table], list[Table], list[list[Table]]]:
        """What returns, in one table or none; the chapters, in one; the tables of each chapter in detail."""
        links = {chapter.title: self._link(chapter) for chapter in self.chapters}
        rows = [chapter.row(chapter.title, links[chapter.title]) for chapter in self.chapters]
        heads = ["passed", "judged", "predicted", "right", "minutes left", "next exercise"]
        returning = self._returning()
        details = []
        for chapter in self._shown():
            parts = [lesson.row(lesson.title, link(lesson)) for lesson in chapter.lessons]
            details.append(
                [("Notebooks of " + chapter.title, ["notebook", *heads], parts), self._of(chapter)]
            )
        return (
            [("What returns", ["day", "questions", "which"], returning)] if returning else [],
            [("Chapters", ["chapter", *heads], rows)],
            details,
        )

    def _shown(self) -> list[Chapter]:
        following = self.following[0] if self.following else None
        return [chapter for chapter in self.chapters if chapter.begun or following in chapter.lessons]

    def _link(self, chapter: Chapter) -> str:
        return next((link(lesson) for lesson in chapter.lessons if lesson.left), "")

    def _of(self, chapter: Chapter) -> Table:
        rows = [
            [
                *map(Cell, (s.exercise.name, lesson.title, stars(s.exercise), str(s.exercise.minutes))),
                Cell(s.words),
                Cell(self._day(s.due) if s.due is not None else ""),
            ]
            for lesson in chapter.lessons
            for s in lesson.standings
        ]
        heads = ["exercise", "notebook", "level", "minutes", "state", "returns"]
        return f"Exercises of {chapter.title}", heads, rows

    def _day(self, due: date) -> str:
        if due <= self.today:
            return "today"
        return "tomorrow" if due == self.today + timedelta(days=1) else due.isoformat()

    def _returning(self) -> list[list[Cell]]:
        due_names = sorted(
            (max(s.due, self.today), s.exercise.name) for s in self.standings if s.due is not None
        )
        days = [(day, [name for _, name in own]) for day, own in groupby(due_names, key=lambda one: one[0])]
        rows = []
        for day, names in days[:DAYS]:
            more = f" and {len(names) - NAMES} more" * (len(names) > NAMES)
            rows.append([*map(Cell, (self._day(day), str(len(names)), ", ".join(names[:NAMES]) + more))])
        if later := sum(len(names) for _, names in days[DAYS:]):
            rows.append([*map(Cell, ("later", str(later), ""))])
        return rows

    def __repr__(self) -> str:
        returning, chapters, details = self.tables
        every = [table for tables in details for table in tables] + returning + chapters
        rows = "\n".join(f"{label}: {cell.text}" for label, cell in self.head.items())
        return "\n\n".join([*(_text(*table) for table in every), rows])

    def _repr_html_(self) -> str:
        returning, chapters, details = self.tables
        rows = "".join(f"<div>{label}: {cell.html}</div>" for label, cell in self.head.items())
        folds = "".join(
            f"<details><summary style='cursor:pointer'>{escape(chapter.title)}</summary>"
            f"{''.join(_html(*table) for table in tables)}</details>"
            for chapter, tables in zip(self._shown(), details, strict=True)
        )
        return (
            f"<div style='border-left:.3em solid {COLOURS['open']};padding:.2em .8em;color:inherit'>{rows}"
            f"{''.join(_html(*table) for table in returning + chapters)}{folds}</div>"
        )


def right(predictions: Sequence[Standing]) -> str:
    """3 of 4: how many predictions were right; '' where there is none."""
    return f"{sum(s.state == 'passed' for s in predictions)} of {len(predictions)}" if predictions else ""


def stars(exercise: Exercise) -> str:
    """How hard, as ★★☆; of a prediction that it is one."""
    return "predict" if exercise.prediction else "★" * exercise.stars + "☆" * (3 - exercise.stars)


def link(lesson: Lesson) -> str:
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
        wraps = "" if head not in RIGHT or head == "minutes left" else ";white-space:nowrap"
        side = "right" if head in RIGHT else "left"
        return f"style='text-align:{side}{wraps};padding:.15em 1.2em .15em 0'"

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
