"""What a class has done, from the files of export_progress(): one HTML page that loads nothing."""

import argparse
import csv
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from lesson_lib.checks.engine import exercises, lessons
from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.export import FIRST, HEADER
from lesson_lib.cli import kinds, plans
from lesson_lib.places import ROOT

HERE = Path(__file__).parent
TREAT = 6  # questions to treat in the next session, at most
ENOUGH = 3  # learners who have tried, before a rate says anything
SIGNS = {"first": "✓", "later": "↻", "seen": "◆", "failed": "✗", "open": "·"}
MEANING = {
    "first": "right at the first attempt",
    "later": "right later",
    "seen": "right after the solution was seen",
    "failed": "tried, not right",
    "open": "not tried",
}


@dataclass(frozen=True)
class Row:
    """What one learner has done of one exercise."""

    state: str  # one of SIGNS
    attempts: int
    hints: int
    sure: bool
    diagnoses: tuple[str, ...]
    day: str = ""  # of the last attempt, 2026-11-20; '' where there was none


@dataclass
class Learner:
    """One file: its name, or a number, and a row for each exercise."""

    name: str
    rows: dict[str, Row] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """What the class has done of one exercise."""

    exercise: Exercise
    notebook: str
    states: Counter
    tried: int
    first: int
    hints: int
    solutions: int
    commonest: str
    named: int  # by how many learners that mistake was met
    sure: int  # learners who were sure, and wrong

    @property
    def rate(self) -> float | None:
        """Share of those who tried that was right at the first attempt; None where nobody tried."""
        return self.first / self.tried if self.tried else None


@dataclass(frozen=True)
class Part:
    """How many learners have begun a notebook, and how many have answered all that it asks."""

    notebook: str
    begun: int
    finished: int


class OldExport(ValueError):
    """A file of the first edition, which says too little."""


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="with a file for each learner, in it or below"
    )
    parser.add_argument(
        "--since",
        default="",
        metavar="DAY",
        help="treat only what was last tried on that day (2026-11-20) or later",
    )
    parser.add_argument("--to", type=Path, metavar="FILE", help="default: FOLDER/report.html")


def main(folder: Path, *, since: str = "", to: Path | None = None) -> int:
    """Write the page of all exports in a folder, or of what was done `since` a day; 0, or 1 after a
    sentence."""
    try:
        if since:
            date.fromisoformat(since)
        learners, problems = read(folder)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    to = to or folder / "report.html"
    try:
        to.write_text(page(learners, folder=to.parent, since=since), encoding="utf-8")
    except OSError as error:
        print(f"{to} cannot be written ({error.strerror}); choose another file with --to", file=sys.stderr)
        return 1
    for sentence in problems:
        print(sentence)
    print(f"{len(learners)} learners: {to}")
    return 0


def read(folder: Path) -> tuple[list[Learner], list[str]]:
    """The learners of a folder, one for each export in it or below, and a sentence for each file that is
    none. Raises ValueError where no file is one."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; give the one in which the files of export_progress() lie")
    learners, problems, others = [], [], 0
    for path in sorted(folder.rglob("*.csv")):
        try:
            learner = _learner(path, len(learners) + 1)
        except OldExport as old:
            problems.append(f"{path.name} is left out: {old}")
        except (ValueError, csv.Error, OSError):
            others += 1  # not ours, as any folder may hold some
        else:
            learners.append(learner)
    if not learners:
        reason = f": {problems[0]}" if problems else ""
        raise ValueError(f"{folder} holds no file of this course's export_progress(){reason}")
    return learners, problems + ([f"{others} other CSV files are left out"] if others else [])


def _learner(path: Path, number: int) -> Learner:
    with open(path, encoding="utf-8-sig", newline="") as file:
        start = file.readline()
        file.seek(0)
        separator = next((s for s in ",;\t" if s in start), ",")
        rows = csv.DictReader(file, delimiter=separator)
        if set(rows.fieldnames or ()) == set(FIRST):
            raise OldExport("an older course made it; ask for a new export_progress()")
        if set(rows.fieldnames or ()) != set(HEADER):
            raise ValueError("no file of export_progress()")
        entries = [{key: value or "" for key, value in row.items() if key} for row in rows]
    named = next((row["name"] for row in entries if row["name"]), "")
    learner = Learner(named or f"learner {number}")
    for row in entries:
        exercise = exercises().get(row["exercise"])
        if exercise is not None:  # an older or a newer course has others
            learner.rows[exercise.name] = _row(row, exercise)
    return learner


def _row(row: dict[str, str], exercise: Exercise) -> Row:
    attempts, hints = (int(row[key]) if row[key].isdecimal() else 0 for key in ("attempts", "hints"))
    right = row["state"] in ("passed", "judged by you")
    state = "open" if not attempts and not right else "failed"
    if right:
        state = "seen" if row["solution"] == "yes" else "first" if row["first_try"] == "yes" else "later"
    met = tuple(slip for slip in row["diagnoses"].splitlines() if slip in exercise.slips)
    return Row(state, attempts, hints, row["sure"] == "yes", met, row["day"])


def lines(learners: Sequence[Learner], since: str = "") -> list[Line]:
    """A line for each exercise that anybody has tried, `since` a day or ever, in the course's order."""
    result = []
    for notebook, asked in lessons().items():
        for exercise in asked:
            found = [learner.rows[exercise.name] for learner in learners if exercise.name in learner.rows]
            rows = [row for row in found if row.day >= since]
            met = Counter(slip for row in rows for slip in row.diagnoses)
            states = Counter(row.state for row in rows)
            tried = sum(row.state != "open" for row in rows)
            slip, many = met.most_common(1)[0] if met else ("", 0)
            sure = sum(row.sure and row.state == "failed" for row in rows)
            solution_seen = states["seen"]
            hints = sum(row.hints > 0 for row in rows)
            if tried:
                first = states["first"]
                result.append(
                    Line(exercise, notebook, states, tried, first, hints, solution_seen, slip, many, sure)
                )
    return result


def parts(learners: Sequence[Learner]) -> list[Part]:
    """Who has begun and who has finished each notebook that anybody has begun."""
    result = []
    for notebook, asked in lessons().items():
        done = [
            [name.rows[e.name].state != "open" for e in asked if e.name in name.rows] for name in learners
        ]
        begun = sum(any(states) for states in done)
        if begun:
            result.append(Part(notebook, begun, sum(bool(states) and all(states) for states in done)))
    return result


def to_treat(every: Sequence[Line]) -> list[Line]:
    """What to begin the next session with: what most learners missed at first, if enough have tried."""
    able = [line for line in every if line.tried >= ENOUGH and line.rate is not None and line.rate <= 0.5]
    return sorted(able, key=lambda line: (line.rate, -line.named))[:TREAT]


def links_of(line: Line, site: Path) -> dict[str, str]:
    """Words -> where they lead in the built site: the section that asks, and the guide's treatment; none
    where `make site` has not been run."""
    import nbformat

    path = ROOT / "notebooks" / f"{line.notebook}.ipynb"
    found = plans.sections_of(nbformat.read(path, 4)) if path.exists() else {}
    asks = (h for h, under in found.items() if any(f'"{line.exercise.name}"' in c.source for c in under))
    at = re.sub(r"[^a-z0-9]+", "-", next(asks, plans.OPENING).lower()).strip("-").lstrip("-0123456789")
    pages = [("the section", site / f"{line.notebook}.html", at)]
    guides = (site / "instructor").glob(f"{kinds.chapter_of(line.notebook) or 'none'}_*.html")
    pages += [("how to treat it", guide, "misconceptions") for guide in guides]
    return {words: f"{page}#{anchor}" for words, page, anchor in pages if page.exists()}


def page(
    learners: Sequence[Learner], *, folder: Path, since: str = "", site: Path = ROOT / "build" / "site"
) -> str:
    """The page; links lead from `folder` to the built site."""
    import jinja2

    every = lines(learners, since)
    treat = to_treat(every)
    links = {
        line.exercise.name: {
            w: os.path.relpath(at, folder.resolve()) for w, at in links_of(line, site).items()
        }
        for line in treat
    }
    idle = sum(all(not row.day or row.day < since for row in one.rows.values()) for one in learners)
    chapters: dict[str, list[Line]] = {}
    for line in every:
        chapters.setdefault(kinds.chapter_of(line.notebook) or line.notebook, []).append(line)
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True)
    environment.filters["plain"] = lambda text: re.sub(r"[`*]", "", text)
    return environment.get_template("report.html").render(
        learners=learners,
        lines=every,
        parts=parts(learners),
        treat=treat,
        since=since,
        idle=idle,
        chapters=chapters,
        links=links,
        signs=SIGNS,
        meaning=MEANING,
        enough=ENOUGH,
    )
