"""What a speaker needs beside the slides: minutes and questions from the instructor's file, wrong answers
from the checks."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lesson_lib.cli import kinds
from lesson_lib.cli.slides.text import Block

OPENING = "Opening"


@dataclass(frozen=True)
class Prompt:
    """A question to ask aloud, its answer, and a smaller question where nobody answers."""

    ask: str
    answer: str
    smaller: str = ""


@dataclass
class Guide:
    """What the instructor's file says of one part, by the headings of its sections; `elsewhere` are exercises
    that it gives to other parts. All of it may be empty."""

    minutes: dict[str, str] = field(default_factory=dict)
    exercises: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prompts: dict[str, list[Prompt]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)


def read_guide(folder: Path, part: str) -> Guide:
    """What the chapter's guide in that folder says of a part; an empty guide where there is none."""
    found = sorted(folder.glob(f"{kinds.chapter_of(part)}_*.md"))
    return guide(found[0].read_text(encoding="utf-8"), part) if found else Guide()


def guide(text: str, part: str = "") -> Guide:
    """The minutes, exercises and prompts that a text gives; what does not fit the form is left out.

    A chapter of one part has sections Minutes and Prompts. Where it has several, each part has its own,
    "Minutes: 02a_soft_look_up", and reads no others.

    >>> table = "| section | minutes | exercises |\\n|---|---|---|\\n| Opening | 5 | score_ratio, x |"
    >>> g = guide("## Minutes\\n" + table)
    >>> g.minutes, g.exercises
    ({'Opening': '5'}, {'Opening': ('score_ratio', 'x')})
    """
    made, sections = Guide(), _parts(text, "## ")
    own = part if any(title.startswith("Minutes: ") for title, _ in sections) else ""
    for title, body in sections:
        title, _, of = title.partition(": ")
        if title == "Minutes":
            rows = [[c.strip() for c in _cells(line)] for line in body.splitlines() if line.startswith("|")]
            for row in rows:
                if len(row) >= 2 and re.match(r"\d", row[1]) and "together" not in row[0]:
                    names = re.findall(r"[a-z][a-z_0-9]*", row[2]) if len(row) > 2 else []
                    if of == own:
                        made.minutes[plain_heading(row[0])] = row[1]
                        made.exercises[plain_heading(row[0])] = tuple(names)
                    else:
                        made.elsewhere.update(names)
        elif title == "Prompts" and of == own:
            for heading, prompts in _parts(body, "### "):
                made.prompts[plain_heading(heading)] = _prompts(prompts)
    return made


def plain_heading(text: str) -> str:
    """A heading as it is compared: without code ticks, stars and doubled spaces."""
    return " ".join(re.sub("[`*]", "", text).replace("\\|", "|").split())


def wrong_answers(names: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Title of each exercise -> what is behind its typical wrong answers, a sentence each. Unknown names are
    left out."""
    from lesson_lib.checks.engine import exercises

    every = exercises()
    return {every[n].title: list(every[n].slips) for n in names if n in every}


def asked_in(source: str) -> tuple[Block, list[str]] | None:
    """What a cell that asks becomes on a slide, with what the speaker says: a prediction, the check of a
    learner's turn, a warm-up. None for any other cell."""
    from lesson_lib.checks.engine import exercises
    from lesson_lib.checks.short import Choice

    if re.search(r"^warm_up\(\)", source, re.M):
        said = "Ask two or three questions of earlier parts; review() in a notebook of your own chooses them."
        return Block("ask", "What do you remember of the parts before?", label="Warm-up"), [f"<p>{said}</p>"]
    found = re.search(r"""^(predict|check)\((?:["'](\w+)|(\w+))""", source, re.M)
    asked = exercises().get(found[2] or found[3]) if found else None
    if asked is None:
        return None
    slips = "".join(f"<li>{html.escape(slip)}</li>" for slip in asked.slips)
    wrong = f"<p><b>Wrong answers to expect</b></p><ul>{slips}</ul>"
    if found[1] == "check":
        minutes = f"{asked.minutes} minute{'s' * (asked.minutes != 1)}"
        said = f"<p>Give them {minutes} with the cell. A solution:</p><pre>{html.escape(asked.text)}</pre>"
        return Block("ask", asked.asked, label="Your turn", answer=asked.remember), [said, wrong]
    options = [f"- {letter}) {text}" for letter, text in getattr(asked, "options", {}).items()]
    hands = "a show of hands" if isinstance(asked, Choice) else "everybody writes a number or a word down"
    said = f"<p>Nobody is asked alone: {hands}, and only then the answer.</p>"
    text = "\n".join([asked.asked, "", *options]) if options else asked.asked
    answer = f"**{asked.right}**: {asked.remember}"
    return Block("ask", text, label="Predict", answer=answer), [said, wrong]


def exercises_of(lesson: str) -> list:
    """The exercises of a lesson's chapter, such as 03_matrix_form, in order, as far as this part or the
    chapter's own notebook asks them."""
    from lesson_lib.checks.engine import lessons

    def asks(notebook: str) -> bool:
        own = kinds.kind_of(notebook) == "exercise" and kinds.chapter_of(notebook) == kinds.chapter_of(lesson)
        return own or notebook == lesson

    return [e for notebook, found in lessons().items() if asks(notebook) for e in found if not e.prediction]


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
