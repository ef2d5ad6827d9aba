"""The figures of lesson 01: timeline, taggers; and the list of milestones behind them."""

import re

import pytest
import torch

from lesson_lib.chapters.c01_history import figures
from lesson_lib.chapters.c01_history.timeline_explorer import LESSONS, TimelineExplorer
from lesson_lib.chapters.c01_history.timeline_figures import cards, rows, timeline
from lesson_lib.data.milestones import MILESTONES, THREADS


def texts(picture):
    return [t.get_text().replace("\n", " ") for axes in picture.figure.axes for t in axes.texts]


def test_every_milestone_has_its_three_lines_and_a_source():
    for m in MILESTONES:
        assert all(line.endswith((".", "?")) for line in (m.problem, m.idea, m.not_yet)), m.name
        assert m.thread in THREADS and set(m.lessons) <= set(LESSONS) and m.formula
        assert re.search(r"\b(19|20)\d\d\b", m.source), m.name


def test_every_source_since_2014_has_an_arxiv_number_of_its_year():
    for m in MILESTONES:
        if m.year >= 2014:
            numbers = re.findall(r"arXiv:(\d\d)(\d\d)\.\d{4,5}", m.source)
            assert numbers and int(numbers[0][0]) + 2000 == m.year, m.name


def test_the_milestones_are_in_order_and_each_name_is_used_once():
    assert [m.year for m in MILESTONES] == sorted(m.year for m in MILESTONES)
    assert len({m.name for m in MILESTONES}) == len(MILESTONES) == 22


def test_the_timeline_names_every_milestone_once():
    drawn = texts(timeline())
    for m in MILESTONES:
        assert drawn.count(m.name) == 1
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


def test_the_explorer_without_a_kernel_is_the_timeline():
    assert TimelineExplorer()._repr_mimebundle_()[0]["text/plain"] == timeline().alt


ROWS = [
    {"system": system, "right": {"saw": 0.5 + i / 10, "cut": 0.3}, "limit": {"saw": 0.9, "cut": 0.4}}
    for system in ("one word", "window 2")
    for i in range(3)
]


def test_taggers_draws_the_middle_seed_as_bar_and_the_limit_as_line():
    axes = figures.taggers(ROWS, ("saw", "cut"), "caption").figure.axes
    assert [bar.get_width() for bar in axes[0].patches] == [0.6, 0.6]
    assert axes[0].collections[1].get_segments()[0][0][0] == 0.9
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["one word", "window 2"]


def test_sweep_puts_the_trained_points_over_their_radius():
    figure = figures.sweep([0, 2], {"saw": [0.6, 1.0]}, ROWS).figure
    points = figure.axes[0].collections[0].get_offsets()
    assert sorted(x for x, _ in points.tolist()) == [0, 0, 0, 2, 2, 2]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0.6, 1.0]


def test_sight_draws_the_mean_of_the_heads():
    weights = torch.zeros(2, 3, 3)
    weights[0, 1, 0] = weights[1, 1, 2] = 1
    figure = figures.sight(["I", "saw", "it"], [weights, weights.flip(-1)], 1).figure
    assert len(figure.axes) == 2
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.5, 0.0, 0.5]
