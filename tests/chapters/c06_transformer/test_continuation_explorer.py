"""The continuation explorer: it writes when asked, bends probabilities, and answers odd input."""

import html
import re

import pytest
import torch

from lesson_lib.chapters.c06_transformer import continuation_explorer as module
from lesson_lib.chapters.c06_transformer.continuation_explorer import ContinuationExplorer
from lesson_lib.device import to_device
from lesson_lib.models.gpt import GPT, generate, next_characters
from tests.explorers import stands_alone

ALPHABET = "\n abc<&>"


def untrained():
    torch.manual_seed(0)
    model = GPT(ALPHABET, n_layers=1, d_model=8, n_heads=2, context=16)
    return to_device(model).eval()


@pytest.fixture
def calls(monkeypatch):
    """What the model was asked to write."""
    counted, true = [], module.generate

    def generate(model, text, length, **options):
        counted.append((text, length, options))
        return true(model, text, length, **options)

    monkeypatch.setattr(module, "generate", generate)
    return counted


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(lambda: ContinuationExplorer(untrained(), "ab "))


def test_the_beginning_is_set_apart_and_the_rest_is_what_the_model_wrote():
    model = untrained()
    w = ContinuationExplorer(model, "ab ")
    made = generate(model, "ab ", 100)
    assert w.made == made and f"<pre><b>ab </b>{html.escape(made)}</pre>" in w.drawing.value
    assert "text-decoration:underline" in w.drawing.value, "more than colour"
    assert "<" in made and "&" in made, "or the escaping goes untested"


def test_the_probabilities_are_the_models_own_and_their_bars_as_long():
    model = untrained()
    w = ContinuationExplorer(model, "ab")
    w.temperature.value, w.top_k.value = 0.5, 3
    expected = next_characters(model, "ab", 0.5, 3)
    assert w.likeliest() == expected
    widths = [float(x) for x in re.findall(r"height:14px;width:([\d.]+)px", w.drawing.value)]
    assert widths == pytest.approx([module.BAR * share for _, share in expected], abs=0.06)
    assert "All others together: 0.000." in w.drawing.value


def test_sliders_bend_the_probabilities_and_leave_the_text(calls):
    w = ContinuationExplorer(untrained(), "ab")
    text, flat = w.made, w.likeliest()
    w.temperature.value = 0
    assert w.made == text and len(calls) == 1 and w.likeliest() == [(flat[0][0], 1.0)]
    said = "Made at temperature 1.00 and top-k 8, seed 0. Press &quot;write&quot; for one at temperature 0.00"
    assert said in w.drawing.value
    w.temperature.value = 1.0
    assert "Press" not in w.words()


def test_the_button_writes_anew_with_a_new_seed_and_the_sliders_values(calls):
    w = ContinuationExplorer(untrained(), "ab")
    w.temperature.value, w.top_k.value = 1.5, 5
    before = w.made
    w.again.click()
    assert w.made != before and calls[-1] == ("ab", 100, {"temperature": 1.5, "top_k": 5, "seed": 1})
    assert w.words() == "Made at temperature 1.50 and top-k 5, seed 1."


@pytest.mark.parametrize(
    "text, words",
    [("abz", "text holds 'z', which this model has never seen"), ("ab" * 251, "type at most 500")],
)
def test_odd_input_gets_a_sentence_and_the_next_one_is_drawn(text, words):
    w = ContinuationExplorer(untrained(), "ab")
    before = w.drawing.value
    w.text.value = text
    assert html.escape(words) in w.drawing.value and "role='alert'" in w.drawing.value
    w.temperature.value = 0.5  # still the sentence, no traceback
    assert "role='alert'" in w.drawing.value
    w.temperature.value = 1.0
    w.text.value = "ab"
    assert w.drawing.value == before


def test_blanks_and_newlines_have_names():
    w = ContinuationExplorer(untrained(), "ab")
    assert "␣ (blank)" in w.drawing.value and "⏎ (newline)" in w.drawing.value
