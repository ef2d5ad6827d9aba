"""Answers as testers wrote them, and the tool that judges such answers."""

import json

import pytest

from lesson_lib.checks import check
from lesson_lib.checks.engine import exercises, lessons
from tools import fairness

# What testers wrote to open questions: a piece of the text, and how the hint to look again begins.
HEARD = [
    ("why_no_order", "The softmax normalizes the scores, and so the order of the tokens is lost.", "softmax"),
    ("why_training_differs",
     "While it trains the decoder reads the whole right sentence, also the words behind its guess.",
     "the causal mask holds"),
    ("why_no_convolution", "So each output is a blurred mixture of all three pixels.", "softmax is innocent"),
    ("why_tanh_waits",
     "In (1) each step has a product with the matrix U and a tanh, which cost d^2 multiplications.",
     "a cheaper function"),
]  # fmt: skip
RIGHT_AND_DOUBTED = (
    "Moving the brackets is allowed only in a chain of matrix products, and the softmax stands between. It"
    " applies exp to each score and divides by a sum over the whole row, so all scores must be there first."
)

ANSWERS = """
@@ weighted_sum | first | sure
weighted_sum = 0.25 * 8 + 0.75 * 4

@@ weighted_sum | mistake | the plain mean
weighted_sum = "(8 + 4) / 2"

@@ slopes | mistake | no squares
def slopes(weights):
    return torch.diag(weights)

@@ slopes | odd | never comes to an end
slopes = 1 / 0

@@ plus_or_times | mistake | thinks of overflow
plus_or_times = "A"

@@ nothing_like_it | odd | no exercise
nothing_like_it = 1
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("name, text, hint", HEARD)
def test_what_a_tester_believed_gets_a_hint_to_look_again(name, text, hint):
    found = check(f"Here is what I think of it in my own words. {text}", name).after["look again"]
    assert any(part.startswith(hint) for part in found.split("; "))


def test_a_right_answer_of_a_tester_is_not_doubted():
    assert "look again" not in check(RIGHT_AND_DOUBTED, "why_not_regroup").after


def test_a_page_has_the_questions_and_no_answer():
    for name, words in (
        ("02a_soft_look_up", 'predict("plus_or_times")'),
        ("exercises/02_scoring", "score_ratio"),
    ):
        text = fairness.page(fairness.sources.ROOT / "notebooks" / f"{name}.ipynb")
        assert words in text and fairness.FOLD not in text
        for exercise in lessons()[name]:
            given = [*exercise.slips][:1] if getattr(exercise, "repair", False) else []  # shown as not begun
            assert [slip for slip in exercise.slips if slip in text and slip not in given] == []


def test_answers_are_read_run_and_judged(tmp_path, capsys):
    (tmp_path / "00_start_here.answers.txt").write_text(ANSWERS)
    assert fairness.main(["judge", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "verdicts.json").read_text())
    states = [(row["name"], row["state"], row["named"]) for row in found]
    assert states == [
        ("weighted_sum", "passed", False), ("weighted_sum", "failed", True), ("slopes", "failed", True),
        ("slopes", "no cell", False), ("plus_or_times", "failed", True),
        ("nothing_like_it", "unknown", False),
    ]  # fmt: skip
    assert found[1]["said"] in exercises()["weighted_sum"].slips and found[1]["cause"] == "the plain mean"
    assert "ZeroDivisionError" in found[3]["said"]
    assert "00_start_here: 6 answers: 1 first passed, 3 mistake failed named" in capsys.readouterr().out
