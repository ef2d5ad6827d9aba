"""Decks: notebooks with the standard's slide metadata, one thought a slide, hands and votes in between."""

import re

import pytest

from lesson_lib.cli import kinds, plans, room_questions
from lesson_lib.cli.course import chapters
from lesson_lib.cli.sources import read_source, targets

DECKS = targets(among=("deck",))
WORDS = 35
KINDS = {"slide", "subslide", "fragment", "notes", "skip"}
ELSEWHERE = re.compile(r"```.*?```|\$\$.*?\$\$|\$.*?\$|^\|.*$|^#+ .*$", re.S | re.M)


def kind(cell):
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def slides(target):
    """The slides of a deck: the cells of each, its first one that which begins it."""
    made = []
    for cell in read_source(target).cells:
        if kind(cell) in ("slide", "subslide"):
            made.append([])
        if kind(cell) != "skip":
            made[-1].append(cell)
    return made


def heading(slide):
    return slide[0].source.splitlines()[0].lstrip("# ")


@pytest.mark.parametrize("target", DECKS, ids=lambda target: target.name)
def test_a_slide_has_a_claim_one_thought_and_notes(target):
    made = slides(target)
    assert {kind(cell) for cell in read_source(target).cells} - {""} <= KINDS
    headings = [heading(slide) for slide in made]
    assert len(set(headings)) == len(headings)
    for slide in made:
        assert slide[0].cell_type == "markdown" and slide[0].source.startswith("#"), slide[0].source
        assert kind(slide[-1]) == "notes", f"{heading(slide)!r} has no notes"
        said = " ".join(c.source for c in slide if c.cell_type == "markdown" and kind(c) != "notes")
        words = re.findall(r"[^\W_]+", ELSEWHERE.sub(" ", said))
        assert len(words) <= WORDS, f"{heading(slide)!r}: {len(words)} words"
        shown = [cell.source for cell in slide if cell.cell_type == "code"]
        assert all(re.match(r"(shown|code|vote|answer|turn|timer)\(", source) for source in shown), shown
        if any("answer(" in source for source in shown):
            (last,) = [cell for cell in slide if cell.source.startswith("answer(")]
            assert kind(last) == "fragment", f"{heading(slide)!r} shows its answer at once"


@pytest.mark.parametrize("target", DECKS, ids=lambda target: target.name)
def test_a_deck_begins_with_goals_lets_them_act_and_ends_with_a_ticket(target):
    first, *made, last = slides(target)
    assert "Afterwards you can" in first[0].source and "end" in last[0].metadata.get("tags", ())
    assert re.search("ticket|[Hh]omework|[Aa]t home", last[0].source)
    code = [cell.source for slide in made for cell in slide]
    assert sum(source.startswith("vote(") for source in code) >= 2
    assert sum("Do now" in source or source.startswith("turn(") for source in code) >= 2
    timed = [heading(s) for s in made if any(c.source.startswith(("turn(", "vote(")) for c in s)]
    clocks = [heading(s) for s in made if any(c.source.startswith("timer(") for c in s)]
    assert set(timed) <= set(clocks)


@pytest.mark.parametrize("target", DECKS, ids=lambda target: target.name)
def test_each_group_names_the_section_that_it_takes(target):
    part = plans.built(kinds.number_of(target.name))
    numbers = [name.partition(" · ")[0] for name in plans.sections_of(part)]
    for slide in slides(target):
        if kind(slide[0]) == "slide":
            (tag,) = slide[0].metadata.get("tags", ())
            assert tag in ("title", "end", *numbers) or tag.startswith("turn:"), tag


def test_each_core_part_has_a_deck():
    core = {lesson.name for chapter in chapters() for lesson in chapter.lessons if lesson.core}
    assert {target.name.removeprefix("decks/") for target in DECKS} == core - {"00_start_here"}


def test_whatever_a_vote_speaks_of_has_stood_on_a_slide():
    """Functions of the learner's that a question for the room names: they were written before it."""
    questions = room_questions.read()
    for target in DECKS:
        before = ""
        for slide in slides(target):
            code = " ".join(cell.source for cell in slide)
            for name in re.findall(r'vote\("(\w+)"', code):
                asked = questions[name].asked if name in questions else ""
                for function in re.findall(r"`([a-z]+_[a-z_]+)`", asked):
                    assert function in before, f"{target.name}: {name} speaks of {function}"
            before += code
