"""The alignment explorer without a browser: it translates once per input and draws for every character."""

import re

import pytest
import torch

from lesson_lib.data.dates import characters
from lesson_lib.device import to_device
from lesson_lib.models.translator import Translation, Translator, Vocabulary
from lesson_lib.recurrent import AttentionDecoder, FixedVectorDecoder, TwoWayEncoder
from lesson_lib.widgets import AlignmentExplorer
from lesson_lib.widgets import alignment as module
from tests.explorers import stands_alone

TEXTS = ["3. märz 2021", "mar 3, 1987; 3.3.2021"]


def untrained(make=AttentionDecoder):
    torch.manual_seed(0)
    encoder = TwoWayEncoder(5, 7)
    return to_device(Translator(Vocabulary(characters()), encoder, make(5, encoder.d_memory, 11), d_token=5))


@pytest.fixture
def calls(monkeypatch):
    """How often a model was asked."""
    counted, true = [], module.translate

    def translate(model, texts, **options):
        counted.append(texts)
        return true(model, texts, **options)

    monkeypatch.setattr(module, "translate", translate)
    return counted


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(lambda: AlignmentExplorer(untrained(), TEXTS))


def test_picking_and_typing_translate_once_each(calls):
    w = AlignmentExplorer(untrained(), TEXTS)
    w.example.value = TEXTS[1]
    assert w.text.value == w.source == TEXTS[1] and calls == [[TEXTS[0]], [TEXTS[1]]]
    w.text.value = "  Mittwoch, 3.  MÄRZ 2021 "
    assert w.source == "mittwoch, 3. märz 2021" and len(calls) == 3
    assert "mittwoch, 3. märz 2021 →" in w.drawing.value


def test_bars_stand_on_their_characters_and_are_as_high_as_the_weights():
    w = AlignmentExplorer(untrained(), TEXTS)
    row = torch.tensor([0.0] * 4 + [0.75, 0.25] + [0.0] * 6)
    w.translation = w.translation._replace(weights=row.repeat(len(w.translation.text), 1).double())
    w.refresh()
    bars = re.findall(
        rf'y="([\d.]+)" width="\d+" height="([\d.]+)" fill="{module.CURVES[0]}"', w.drawing.value
    )
    heights = [float(height) for _, height in bars]
    assert heights == [0.0] * 4 + [0.75 * module.BAR, 0.25 * module.BAR] + [0.0] * 6
    assert all(float(y) + height == module.BAR for (y, _), height in zip(bars, heights, strict=True))
    assert "&#x27;ä&#x27; (place 4): weight 0.7500" in w.drawing.value
    assert "&#x27;m&#x27; (place 3): weight 0.0000" in w.drawing.value
    assert w.words(0).endswith("looks most at 'ä' (place 4), weight 0.75, then at 'r' (place 5): 0.25.")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "there is nothing to translate"),
        ("3 марта", "which this vocabulary lacks"),
        ("<b>", "which this vocabulary lacks"),
        ("3. märz 2021; " * 9, "type at most 120 characters; these are 125"),
    ],
)
def test_odd_input_gets_a_sentence_and_the_next_one_is_drawn(text, words):
    w = AlignmentExplorer(untrained(), TEXTS)
    before = w.drawing.value
    w.text.value = text
    assert words in w.drawing.value and "role='alert'" in w.drawing.value
    assert before.partition("<p>")[2] in w.drawing.value, "the last picture stays"
    assert text != "<b>" or "&lt;b&gt;" in w.drawing.value
    w.text.value = TEXTS[0]
    assert w.drawing.value == before


def test_the_slider_never_points_behind_a_shorter_answer():
    model = untrained()
    with torch.no_grad():
        model.read.bias[2] -= 1e9  # never END: 40 characters
    w = AlignmentExplorer(model, TEXTS)
    assert w.at.max == 39 and "cut after 40 characters" in w.drawing.value
    w.at.value = 39
    with torch.no_grad():
        model.read.bias[2] += 2e9  # END at once
    w.text.value = TEXTS[1]
    assert "the model makes nothing of" in w.drawing.value


@pytest.mark.parametrize(
    "text, answer, words",
    [
        ("3. märz 2021", "2021-03-03", "German, long: right."),
        ("3. märz 2021", "2021-03-08", "German, long: wrong, it means 2021-03-03."),
        ("3. märz 2021; mar 3, 1987", "2021-03-03",
         "German, long; English, medium: wrong, it means 2021-03-03;1987-03-03."),
        ("hello", "2021-03-03",
         "None of the fifteen languages writes 2021-03-03 like this; the model has guessed."),
        ("hello", "<b>", "None of the fifteen languages writes a day like this; the model has guessed."),
        ("3. märz 2021; 31. februar 2021", "2021-03-03;2021-02-31",
         "None of the fifteen languages writes a day like part 2 of this; the model has guessed."),
    ],
)  # fmt: skip
def test_an_answer_is_judged(text, answer, words, monkeypatch):
    assert module.judged(text, answer) == words
    said = Translation(answer, torch.full((len(answer), len(text)), 1 / len(text)))
    w = AlignmentExplorer(untrained(), TEXTS)
    monkeypatch.setattr(module, "translate", lambda model, texts, **options: [said])
    w.text.value = text.upper() if text == "hello" else f" {text} "
    assert f'<span class="ll-judged">{words}</span>' in w.drawing.value


def test_a_decoder_that_does_not_look_and_no_examples_are_refused():
    with pytest.raises(ValueError, match="does not look at the input"):
        AlignmentExplorer(untrained(FixedVectorDecoder), TEXTS)
    with pytest.raises(ValueError, match="at least one input"):
        AlignmentExplorer(untrained(), [])
    with pytest.raises(ValueError, match=r"the first example cannot be shown: .* lacks"):
        AlignmentExplorer(untrained(), ["3 марта"])
    assert AlignmentExplorer(untrained(), TEXTS[0]).source == TEXTS[0]
