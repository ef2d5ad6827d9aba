"""What is printed or said around a session: the assessment, the questions that come, sheets for a room."""

import re
from collections import Counter
from pathlib import Path

import pytest

from lesson_lib.cli import kinds, plans

FOLDER = Path(__file__).resolve().parents[1] / "notebooks" / "instructor"
PARTS = {kinds.number_of(name) for name in kinds.built(plans.ROOT, ("part", "page")) if kinds.number_of(name)}
FORMS = {form: (FOLDER / "assessment" / f"test_{form}.md").read_text(encoding="utf-8") for form in "ab"}
KEY = (FOLDER / "assessment" / "test_key.md").read_text(encoding="utf-8")
FAQ = (FOLDER / "faq.md").read_text(encoding="utf-8")
HEAD = """
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.masks import causal
from lesson_lib.positions import rotary, sinusoidal
from lesson_lib.show import show
"""


def blocks(text: str) -> list[str]:
    """The pieces of Python that a page holds."""
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)


def numbers(text: str, row: str) -> list[int]:
    """The whole numbers of the first row of a table that begins with this word."""
    return [int(n) for n in re.findall(r"\d+", re.search(rf"^\| {row} \|(.*)$", text, flags=re.M)[1])]


@pytest.mark.parametrize("form", FORMS)
def test_a_paper_test_has_45_minutes_and_40_points(form):
    for row, unit, total in (("minutes", "minutes", 45), ("points", "points", 40)):
        *each, said = numbers(FORMS[form], row)
        tasks = [int(n) for n in re.findall(rf"^### \d+ · .*?(\d+) {unit}\b", FORMS[form], flags=re.M)]
        assert each == tasks and sum(each) == said == total


def test_both_forms_have_the_same_tasks_and_the_key_has_each():
    titles = [re.findall(r"^### (\d+) · .*?(\(.*\))$", text, flags=re.M) for text in FORMS.values()]
    assert titles[0] == titles[1] and len(titles[0]) == 11
    points = re.findall(r"^## (\d+) · .*\((\d+) points\)$", KEY, flags=re.M)
    asked = [(number, re.search(r"(\d+) points", told)[1]) for number, told in titles[0]]
    assert points == asked


def test_what_the_key_computes_holds():
    found = blocks(KEY)
    assert found
    for text in found:
        exec(text, {})


def answers() -> dict[str, dict[str, str]]:
    """Plan -> question -> what is answered."""
    under = {}
    for plan, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", FAQ, flags=re.M | re.S):
        under[plan] = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", body, flags=re.M | re.S))
    return under


def test_each_plan_has_twenty_questions_and_none_comes_twice():
    assert {plan: len(asked) for plan, asked in answers().items()} == {
        "Half a day": 20, "Two days": 20, "Eight weeks": 20}  # fmt: skip
    every = Counter(question for asked in answers().values() for question in asked)
    assert max(every.values()) == 1


@pytest.mark.parametrize("question, said", [pair for asked in answers().values() for pair in asked.items()])
def test_an_answer_can_be_spoken_in_a_minute_and_shows_where(question, said):
    spoken, show, where = said.partition("*Show:*")
    assert 60 <= len(spoken.split()) <= 125 and show and where.strip()
    assert set(re.findall(r"\bpart (\d\d[a-z]?)\b", said)) <= PARTS
    for text in blocks(where):
        exec(HEAD + text, {})
