"""What a speaker needs beside the slides: minutes and questions from the instructor's file, wrong answers
from the checks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

OPENING = "Opening"


@dataclass(frozen=True)
class Prompt:
    """A question to ask aloud, its answer, and a smaller question where nobody answers."""

    ask: str
    answer: str
    smaller: str = ""


@dataclass
class Guide:
    """The instructor's file of one lesson, by the headings of its sections. All of it may be empty."""

    minutes: dict[str, str] = field(default_factory=dict)
    exercises: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prompts: dict[str, list[Prompt]] = field(default_factory=dict)


def read_guide(path: Path) -> Guide:
    """The guide in a file of the form of notebooks/instructor; an empty one where there is no such file."""
    return guide(path.read_text(encoding="utf-8")) if path.exists() else Guide()


def guide(text: str) -> Guide:
    """The minutes, exercises and prompts that a text gives; what does not fit the form is left out.

    >>> table = "| section | minutes | exercises |\\n|---|---|---|\\n| Opening | 5 | score_ratio, x |"
    >>> g = guide("## Minutes\\n" + table)
    >>> g.minutes, g.exercises
    ({'Opening': '5'}, {'Opening': ('score_ratio', 'x')})
    """
    made = Guide()
    for title, body in _parts(text, "## "):
        if title == "Minutes":
            rows = [[c.strip() for c in _cells(line)] for line in body.splitlines() if line.startswith("|")]
            for row in rows:
                if len(row) >= 2 and re.match(r"\d", row[1]) and "together" not in row[0]:
                    made.minutes[plain_heading(row[0])] = row[1]
                    names = re.findall(r"[a-z][a-z_0-9]*", row[2]) if len(row) > 2 else []
                    made.exercises[plain_heading(row[0])] = tuple(names)
        elif title == "Prompts":
            for heading, prompts in _parts(body, "### "):
                made.prompts[plain_heading(heading)] = _prompts(prompts)
    return made


def plain_heading(text: str) -> str:
    """A heading as it is compared: without code ticks and without doubled spaces."""
    return " ".join(text.replace("`", "").replace("\\|", "|").split())


def wrong_answers(names: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Title of each exercise -> what is behind its typical wrong answers, a sentence each. Unknown names are
    left out."""
    from lesson_lib.checks.engine import exercises

    every = exercises()
    return {every[n].title: list(every[n].slips) for n in names if n in every}


def exercises_of(lesson: str) -> list:
    """The exercises of a lesson, such as 03_matrix_form, in order."""
    from lesson_lib.checks.engine import lessons

    return [e for key, found in lessons().items() if key.rpartition("/")[2] == lesson for e in found]


def _prompts(text: str) -> list[Prompt]:
    found: list[dict[str, str]] = []
    for item in re.split(r"^- +(?=\*\*)", text, flags=re.M)[1:]:
        said = re.match(r"\*\*(Ask|Answer|If nobody answers)[:.]?\*\*:?\s*(.*)", item, re.S)
        if not said:
            continue
        if said[1] == "Ask":
            found.append({})
        if found:
            found[-1][said[1]] = said[2].strip()
    return [
        Prompt(p["Ask"], p.get("Answer", ""), p.get("If nobody answers", "")) for p in found if "Ask" in p
    ]


def _parts(text: str, mark: str) -> list[tuple[str, str]]:
    """(heading, what stands under it) for all headings that begin with a mark such as '## '."""
    pieces = re.split(rf"^{re.escape(mark)}(.*)$", text, flags=re.M)
    return [(pieces[i].strip(), pieces[i + 1]) for i in range(1, len(pieces), 2)]


def _cells(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line.strip().strip("|"))
