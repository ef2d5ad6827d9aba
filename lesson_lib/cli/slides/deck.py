"""A lesson as slides, with what the speaker's notes say."""

import html
import re

from nbformat import NotebookNode

from lesson_lib.cli.slides import notes as speaker
from lesson_lib.cli.slides.code import (
    prepares_figure,
)
from lesson_lib.cli.slides.maker import Maker
from lesson_lib.cli.slides.slide import Deck
from lesson_lib.cli.slides.text import Block, Words


def deck(name: str, notebook: NotebookNode, guide: speaker.Guide | None = None) -> Deck:
    """The slides of a built lesson. `guide` adds minutes, questions and wrong answers to the notes."""
    maker = Maker(name)
    following = [*notebook.cells[1:], None]
    for cell, after in zip(notebook.cells, following, strict=True):
        if cell.cell_type == "markdown":
            maker.text_cell(cell.source)
        elif cell.cell_type == "code" and (asked := _asked(cell)):
            maker.asked(*asked)
        elif cell.cell_type == "code":
            for_next = after is not None and after.cell_type == "code" and "claim(" in after.source
            for_next = for_next or prepares_figure(cell, after)
            maker.code_cell(cell.source, cell.get("outputs", []), for_next=for_next)
    maker.close()
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", ())]
    turns = {tag.removeprefix("exercise:") for tag in tags if tag.startswith("exercise:")}
    _add_notes(maker.deck, guide or speaker.Guide(), turns)
    return maker.deck


def _asked(cell: NotebookNode) -> tuple[Block, list[str]] | None:
    """What a cell of a part asks: a prediction, a warm-up, or, by its tag, a learner's turn."""
    tags = " ".join(cell.metadata.get("tags", ()))
    asks = re.search(r"^(predict|warm_up)\(", cell.source, re.M) or "exercise:" in tags
    return speaker.asked_in(cell.source) if asks else None


def _add_notes(made: Deck, guide: speaker.Guide, turns: set[str]) -> None:
    """Minutes, questions and wrong answers, in front of what is said on the first slide of each section.
    `turns` are exercises with a slide of their own, which has its wrong answers."""
    words = Words()
    own = tuple(e.name for e in speaker.exercises_of(made.name))
    given = guide.elsewhere.union(*guide.exercises.values())
    rest = tuple(n for n in own if n not in given)
    at = next((s for s in made.sections if re.search(r"\bExercises\b", s.heading)), made.sections[-1])
    for section in made.sections:
        lines = []
        if minutes := guide.minutes.get(speaker.plain_heading(section.heading)):
            lines.append(f"<p><b>Minutes:</b> {html.escape(minutes)}</p>")
        elif section.title == speaker.OPENING and made.minutes:
            lines.append(f"<p><b>Minutes:</b> about {made.minutes} for the whole lesson</p>")
        for prompt in guide.prompts.get(speaker.plain_heading(section.heading), ()):
            lines.append(
                f"<p><b>Ask:</b> {words.inline(prompt.ask)}<br><b>Answer:</b> {words.inline(prompt.answer)}"
            )
            if prompt.smaller:
                lines[-1] += f"<br><b>If nobody answers:</b> {words.inline(prompt.smaller)}"
            lines[-1] += "</p>"
        names = guide.exercises.get(speaker.plain_heading(section.heading), ()) + (
            rest if section is at else ()
        )
        if wrong := speaker.wrong_answers(tuple(name for name in names if name not in turns)):
            lines.append("<p><b>Wrong answers to expect</b></p>")
            for title, sentences in wrong.items():
                rows = "".join(f"<li>{html.escape(s)}</li>" for s in sentences)
                lines.append(f"<p><i>{html.escape(title)}</i></p><ul>{rows}</ul>")
        notes = made.opening_notes if section.title == speaker.OPENING else section.slides[0].notes
        notes[:0] = lines
