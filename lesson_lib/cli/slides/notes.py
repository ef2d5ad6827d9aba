"""What a speaker needs beside the slides: minutes and questions from the instructor's file, wrong answers
from the checks."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.values import numeral
from lesson_lib.cli import kinds
from lesson_lib.cli.slides.outputs import Piece
from lesson_lib.cli.slides.slide import Section, Slide
from lesson_lib.cli.slides.text import Words

TELLS = 4  # words that a prompt shares with a prediction which it would give away
COMMON = set("the and for are was has have that this with what which who how not all its one two can".split())


@dataclass(frozen=True)
class Prompt:
    """A question to ask aloud, its answer, and a smaller question where nobody answers."""

    ask: str
    answer: str
    smaller: str = ""


@dataclass
class Guide:
    """What the instructor's file says of one part, by the headings of its sections. All of it may be
    empty."""

    minutes: dict[str, str] = field(default_factory=dict)
    cuts: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, list[Prompt]] = field(default_factory=dict)
    misconceptions: list[tuple[str, str]] = field(default_factory=list)
    boards: list[tuple[str, str]] = field(default_factory=list)  # how to draw it, and the sketch
    spoken: dict[str, str] = field(default_factory=dict)  # words of a cell -> what is said to its slide


def read_guide(folder: Path, part: str) -> Guide:
    """What the chapter's guide in that folder says of a part; an empty guide where there is none."""
    found = sorted(folder.glob(f"{kinds.chapter_of(part)}_*.md"))
    made = guide(found[0].read_text(encoding="utf-8"), part) if found else Guide()
    own = folder / "spoken" / f"{part}.md"
    made.spoken = spoken(own.read_text(encoding="utf-8")) if own.exists() else {}
    return made


def spoken(text: str) -> dict[str, str]:
    """What an author wrote to be said: words of a cell, in backticks -> the sentences for its slide.

    >>> spoken("# 02a\\n\\n- `ann_share` Commit first.\\n  Then we look.\\n- `def f(` Two lines.")
    {'ann_share': 'Commit first. Then we look.', 'def f(': 'Two lines.'}
    """
    found = re.findall(r"^- `([^`]+)` (.+(?:\n  .+)*)", text, re.M)
    return {words: " ".join(said.split()) for words, said in found}


def guide(text: str, part: str = "") -> Guide:
    """The minutes, cuts, prompts and misconceptions that a text gives; what does not fit the form is left
    out.

    A chapter of one part has sections Minutes and Prompts. Where it has several, each part has its own,
    "Minutes: 02a_soft_look_up", and reads no others.

    >>> table = "| section | minutes | exercises | may be cut |\\n|---|---|---|---|\\n"
    >>> g = guide("## Minutes\\n" + table + "| Opening | 5 | – | no |")
    >>> g.minutes, g.cuts
    ({'Opening': '5'}, {'Opening': 'no'})
    """
    made, sections = Guide(), _parts(text, "## ")
    own = part if any(title.startswith("Minutes: ") for title, _ in sections) else ""
    for title, body in sections:
        title, _, of = title.partition(": ")
        if title == "Minutes" and of == own:
            rows = [[c.strip() for c in _cells(line)] for line in body.splitlines() if line.startswith("|")]
            for row in rows:
                if len(row) >= 2 and re.match(r"\d", row[1]) and "together" not in row[0]:
                    made.minutes[plain_heading(row[0])] = row[1]
                    made.cuts[plain_heading(row[0])] = row[3] if len(row) > 3 else ""
        elif title == "Prompts" and of == own:
            for heading, prompts in _parts(body, "### "):
                made.prompts[plain_heading(heading)] = _prompts(prompts)
        elif title == "Misconceptions":
            found = re.findall(r"^- \*\*\"(.+?)\"\*\* (.*(?:\n  .*)*)", body, re.M)
            made.misconceptions = [(said, " ".join(treated.split())) for said, treated in found]
        elif title == "Board":
            parts = [of for title, _, of in (t.partition(": ") for t, _ in sections) if of]
            first = not parts or part in parts[:1]
            for told, sketch in re.findall(r"((?:^(?!```)[^\n]*\n)*)^```\n(.*?)^```$", body, re.M | re.S):
                whose = re.search(r"\b[Ff]or (\d\d[a-z])\b", told)
                if whose[1] == kinds.number_of(part) if whose else first:
                    made.boards.append((" ".join(told.split()), sketch.rstrip()))
    return made


def plain_heading(text: str) -> str:
    """A heading as it is compared: without code ticks, stars and doubled spaces."""
    return " ".join(re.sub("[`*]", "", text).replace("\\|", "|").split())


@dataclass(frozen=True)
class Asked:
    """What a cell asks everybody: a prediction (kind `question`), or something to write (`turn`)."""

    name: str
    kind: str
    title: str
    text: str
    answer: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    minutes: int = 0
    solution: str = ""
    right: str = ""  # the letter of a choice


def asked_in(source: str) -> Asked | None:
    """What a cell asks: a prediction, or the check of what a learner has written; None for any other cell."""
    found = re.search(r"""^(predict|check)\((?:["'](\w+)|(\w+))(?:, ["'](\w+)["'])?""", source, re.M)
    return asked_by(found[4] or found[2] or found[3]) if found else None


def asked_by(name: str) -> Asked | None:
    """What an exercise or a prediction with this name asks."""
    from lesson_lib.checks.engine import exercises
    from lesson_lib.checks.short_answers import Choice

    asked = exercises().get(name)
    if asked is None:
        return None
    chosen = isinstance(asked, Choice)
    wrong = tuple(_named(slip, found, chosen) for slip, found in asked.slips.items())
    if asked.prediction:
        answer = f"**{asked.right}**: {asked.remember}"
        letter = asked.answer if chosen else ""
        options = asked.options if chosen else {}
        return Asked(name, "question", "", asked.asked, answer, options, wrong, right=letter)
    options = getattr(asked, "options", {})
    return Asked(
        name, "turn", asked.title, asked.asked, "", options, wrong, asked.minutes, f"{asked.text}".rstrip()
    )


def _named(slip: str, wrong: Any, chosen: bool) -> str:
    """A mistake with the letter or the number by which it is met."""
    if chosen:
        return f"{wrong}) {slip}"
    number = number_in(wrong)[0] if isinstance(wrong, (int, float, str)) else None
    return slip if number is None else f"{numeral(number)}: {slip}"


def add(section: Section, guide: Guide) -> None:
    """Put minutes, prompts and cuts of the guide beside the slides of a section: each prompt at the slide
    that has most of its words."""
    heading = plain_heading(section.title)
    slides = section.slides
    prompts = guide.prompts.get(heading, ())
    inline = Words().inline
    for prompt in prompts[len(slides) :]:
        answer = f'<div class="answer fragment"><p>{inline(prompt.answer)}</p></div>'
        made = f'<div class="ask"><p class="label">Ask</p><p>{inline(prompt.ask)}</p>{answer}</div>'
        title = slides[-1].title if slides else html.escape(re.sub(r"^\d+ · ", "", heading))
        slides.append(Slide("question", title, [Piece("ask", made, 300)], 4))
    for prompt, place in zip(prompts, places(prompts, slides), strict=True):
        place.asked = [f"<b>Ask:</b> {inline(prompt.ask)}", f"<b>Answer:</b> {inline(prompt.answer)}"]
        place.asked += [f"<b>If nobody answers:</b> {inline(prompt.smaller)}"] if prompt.smaller else []
    if slides and (cut := guide.cuts.get(heading, "")).startswith("yes"):
        slides[0].besides.append(f"<b>May be cut</b>{html.escape(cut[3:])}")
    for title, said in guide.misconceptions if slides else ():
        place = max(slides, key=lambda slide: len(_words(title) & _words_of(slide)))
        if len(_words(title) & _words_of(place)) >= 3 and not any("People say" in b for b in place.besides):
            first = re.split(r"(?<=[.?!]) ", said)[0]
            place.besides.append(f"<b>People say</b> “{html.escape(title)}” {Words().inline(first)}")


def places(prompts: Sequence[Prompt], slides: list[Slide]) -> list[Slide]:
    """A slide for each prompt, in their order: where most of its words stand, and not before a prediction
    that it would give away."""
    seen = [_words_of(slide) for slide in slides]

    def worth(prompt: Prompt) -> list[int]:
        told = _words(prompt.ask + prompt.answer)
        shared = [len(told & words) for words in seen]
        asked = [i for i, s in enumerate(slides) if s.kind == "question" and shared[i] >= TELLS]
        return [n - 100 * (i < asked[-1]) if asked else n for i, n in enumerate(shared)]

    best: dict[int, tuple[int, list[Slide]]] = {-1: (0, [])}  # by the last slide that is taken
    for number, prompt in enumerate(prompts):
        shared, after = worth(prompt), {}
        for i in range(number, len(slides)):
            value, taken = max((best[j] for j in best if j < i), key=lambda one: one[0])
            after[i] = (value + shared[i], [*taken, slides[i]])
        best = after
    return max(best.values(), key=lambda one: one[0])[1]


def add_boards(slides: list[Slide], guide: Guide) -> None:
    """Put each sketch beside the slide that has most of its words."""
    for told, sketch in guide.boards:
        place = max(slides, key=lambda slide: len(_words(told + sketch) & _words_of(slide)))
        place.besides.insert(0, f"<b>Board.</b> {Words().inline(told)}")
        place.sketch = sketch


def add_spoken(slides: list[Slide], guide: Guide) -> None:
    """Put what an author wrote to be said in the place of what the part's text gives: at the first slide of
    the cell that has the key's words. Where an earlier key has this slide, at the cell's next one."""
    taken: set[int] = set()
    for key, text in ((key, text) for key, text in guide.spoken.items() if key != "story"):
        first = next((slide for slide in slides if key in slide.source), None)
        if first is not None:
            own = [slide for slide in slides if slide.source == first.source]
            place = next((slide for slide in own if id(slide) not in taken), first)
            taken.add(id(place))
            words = Words()
            place.said = [words.html(s) for s in words.sentences(words.blocks(text)[0].text)]


def _words_of(slide: Slide) -> set[str]:
    return _words(" ".join([*(re.sub(r'"data:[^"]*"', "", p.html) for p in slide.pieces), *slide.said]))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9_]{3,}", re.sub("<.*?>", " ", text).lower())) - COMMON


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
