"""The questions for a room, notebooks/instructor/questions.md, as data: asked of everybody, discussed, asked
again."""

import re
from dataclasses import dataclass
from pathlib import Path

from lesson_lib.places import ROOT

PAGE = Path("notebooks/instructor/questions.md")
MINUTES = 4  # alone, vote, neighbours, vote again, answer


@dataclass(frozen=True)
class Question:
    """A question with its options. `wrong` says what is behind each wrong one; `again` is a second one of
    the same form."""

    name: str
    part: str
    after: str  # the section behind which it is asked
    asked: str
    options: dict[str, str]
    wrong: dict[str, str]
    right: str
    because: str
    again: "Question | None" = None


def read(root: Path = ROOT) -> dict[str, Question]:
    """All questions by name, in the order of the page; raises ValueError where one is not in the form."""
    return parsed((root / PAGE).read_text(encoding="utf-8"))


def parsed(text: str) -> dict[str, Question]:
    """The questions that a page holds: headings "## PART", below them "### NAME · after SECTION"."""
    questions: dict[str, Question] = {}
    for part, body in _under(text, "## "):
        for heading, section in _under(body, "### "):
            name, _, after = heading.partition(" · after ")
            if not re.fullmatch(r"[a-z][a-z_0-9]*", name) or not after or name in questions:
                raise ValueError(f"{heading!r} is no heading of a question: a new name · after a section")
            first, again, second = section.partition("**Again.**")
            other = _question(f"{name}, again", part, after, second, None) if again else None
            questions[name] = _question(name, part, after, first, other)
    return questions


def _question(name: str, part: str, after: str, text: str, again: Question | None) -> Question:
    asked = text.partition("\n- a)")[0].strip()
    rows = re.findall(r"^- ([a-d])\) (.+?)(?: \*((?:[^*]|\*\*)+)\*)?$", text, flags=re.M)
    right = re.search(r"^\*\*Right:\*\* ([a-d])\. (.+?)(?=\n\n|\Z)", text, flags=re.M | re.S)
    options, wrong = ({row[0]: row[i] for row in rows if row[i]} for i in (1, 2))
    if not asked or right is None or list(options) != list("abcd"[: len(options)]) or len(options) < 2:
        raise ValueError(f"{name}: a question needs a text, options a), b) ... and a line **Right:** a. Why")
    if set(options) - set(wrong) != {right[1]}:
        raise ValueError(
            f"{name}: each wrong option says in italics what is behind it, the right one nothing"
        )
    return Question(name, part, after, asked, options, wrong, right[1], " ".join(right[2].split()), again)


def _under(text: str, mark: str) -> list[tuple[str, str]]:
    pieces = re.split(rf"^{mark}(.*)$", text, flags=re.M)
    return [(pieces[i].strip(), pieces[i + 1]) for i in range(1, len(pieces), 2)]
