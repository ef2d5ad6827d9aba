"""The timeline of lesson 01, and the list of milestones behind it."""

import re

import pytest

from lesson_lib.chapters.c01_history.timeline_explorer import LESSONS, TimelineExplorer
from lesson_lib.chapters.c01_history.timeline_figures import cards, rows
from lesson_lib.data.milestones import MILESTONES, THREADS


def test_every_milestone_has_its_three_lines_and_a_source_of_its_year():
    for m in MILESTONES:
        assert all(line.endswith((".", "?")) for line in (m.problem, m.idea, m.not_yet)), m.name
        assert m.thread in THREADS and set(m.lessons) <= set(LESSONS) and m.formula
        assert re.search(r"\b(19|20)\d\d\b", m.source), m.name
    for m in MILESTONES:
        if m.year >= 2014:
            numbers = re.findall(r"arXiv:(\d\d)(\d\d)\.\d{4,5}", m.source)
            assert numbers and int(numbers[0][0]) + 2000 == m.year, m.name


def test_the_milestones_are_in_order_and_each_has_its_place_in_the_timeline():
    assert [m.year for m in MILESTONES] == sorted(m.year for m in MILESTONES)
    assert len({m.name for m in MILESTONES}) == len(MILESTONES) == 22
    assert sum(len(cell) for _, columns in rows() for cell in columns) == len(MILESTONES)


def test_cards_hold_the_three_lines_and_escape_them():
    shown = cards("Transformer", "Windows for long texts")
    assert "Recurrence makes training slow" in repr(shown) and "problem" in shown._repr_html_()
    assert shown._repr_html_().count("<tr>") == 3
    assert "<= radius" in repr(shown) and "<= radius" not in shown._repr_html_()


def test_the_explorer_opens_one_entry_and_follows_the_slider():
    explorer = TimelineExplorer()
    assert "1409.0473" in explorer.drawing.value
    for m in MILESTONES:
        explorer.entry.value = m
        assert explorer.drawing.value.count("aria-current") == 1
        assert m.source.replace("&", "&amp;") in explorer.drawing.value


def test_the_explorer_refuses_an_unknown_start():
    with pytest.raises(ValueError, match="start must be one of"):
        TimelineExplorer("Bahdanau")
