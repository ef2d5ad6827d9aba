"""A card or an explorer in a notebook that somebody watches: a still form beside it, and buttons."""

import os
import re
import sys

import pytest

from lesson_lib import live
from lesson_lib.chapters.c02_scoring.softmax_explorer import SoftmaxExplorer
from lesson_lib.checks import Result, card, check, engine, predict, store

VIEW = "application/vnd.jupyter.widget-view+json"


class Shown:
    """An output: what it holds now."""

    def __init__(self, data, **_):
        self.data = data

    def update(self, data, **_):
        self.data = data


@pytest.fixture
def outputs(monkeypatch, tmp_path):
    """The outputs of a notebook that somebody watches, in their order."""
    shown = []

    def display(data, **how):
        shown.append(Shown(data))
        return shown[-1]

    for module in (live, card):
        monkeypatch.setattr(module, "display", display)
    monkeypatch.delenv("LESSON_PROGRESS", raising=False)
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.setattr(store, "_unsaved", [])
    return shown


def buttons(widget) -> dict[str, card.Verb]:
    """The verbs that can be pressed in a widget, by what stands on them."""
    inside = list(getattr(widget, "children", ()))
    found = {w.description: w for w in inside if isinstance(w, card.Verb)}
    return found | {name: w for child in inside for name, w in buttons(child).items()}


def pressed(widget, name: str) -> str:
    """What the widget says once that button was pressed."""
    verb = buttons(widget)[name]
    verb.value = True
    assert verb.value is False, "the button is let go when the thing is done"
    return re.sub(r"<[^>]*>", " ", widget.feedback.value)


def test_a_card_has_two_outputs_and_the_still_one_follows_it(outputs):
    one = predict("plus_or_times")
    one._ipython_display_()
    still, view = outputs
    assert set(view.data) >= {VIEW} and VIEW not in still.data
    asked = still.data["text/html"]
    assert live.AGAIN in asked and "c) only multiplying" in asked and "ll-options" not in asked
    name = re.search(rf"{live.LEFT}-\w+", asked)[0]
    assert f".{name} {{display:none}}" in one._hides.value, "the widget hides its own still form"
    (options,) = one.asking.children
    options.value = "b"
    told = still.data["text/html"]
    assert "Not so" in told and "your answer: <b>b) only adding" in told and live.AGAIN not in told


def test_an_unanswered_still_form_gives_nothing_away(outputs):
    predict("plus_or_times")._ipython_display_()
    assert "<details>" not in outputs[0].data["text/html"]
    assert engine.exercises()["plus_or_times"].remember not in outputs[0].data["text/html"]


def test_an_explorer_leaves_its_picture(outputs):
    SoftmaxExplorer((1.0, 3.0, 5.0), names=("Ann", "Ben", "Cy"))._ipython_display_()
    assert "<img alt=" in outputs[0].data["text/html"] and VIEW in outputs[1].data


def test_where_nobody_watches_an_output_is_the_still_one_alone(monkeypatch):
    monkeypatch.setenv("LESSON_PROGRESS", "off")
    with pytest.raises(NotImplementedError):
        predict("plus_or_times")._ipython_display_()
    assert type(check(3, "weighted_sum")) is Result


def test_a_wrong_answer_offers_hints_a_solution_and_another_try(outputs, monkeypatch):
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "weighted_sum", 3, raising=False)
    offers = card.Offers(check(3, "weighted_sum"))
    offers.show()
    assert list(buttons(offers)) == ["Hint", "Solution", "Try again"]
    assert "hint 1 of" in pressed(offers, "Hint") and "hint 2 of" in pressed(offers, "Hint")
    assert "a solution" in pressed(offers, "Solution")
    monkeypatch.setattr(main, "weighted_sum", 5)
    pressed(offers, "Try again")
    assert "PASSED" in outputs[0].data["text/html"] and "Next" in outputs[0].data["text/html"]
    assert "Hint" not in buttons(offers)


def test_a_pass_says_what_is_next(outputs):
    result = check("exp(12) / exp(10)", "score_ratio")
    assert re.fullmatch(r"Next exercise here: <code>(\w+)</code>", result.following)
    last = check(5, "weighted_sum")  # the only one of its page
    assert "<a href='01a_two_saws.ipynb'>" in last.following
    offers = card.Offers(result)
    offers.show()
    pressed(offers, "A second problem")
    assert isinstance(offers.children[-1], card.Card)


def test_an_answered_card_asks_once_more_and_keeps_the_first_answer(outputs):
    names = [e.name for e in engine.exercises().values() if e.prediction and e.second is not None]
    one = predict(names[0])
    wrong = str(next(iter(one.exercise.slips.values())))
    one.commit(wrong)
    entry = store.read()[0][names[0]]
    pressed(one, "Once more, with something else")
    again = one.children[-1]
    again.commit(str(again.exercise.answer))
    assert again.result.passed
    kept = store.read()[0][names[0]]
    assert {k: v for k, v in kept.items() if k != "posed"} == {k: v for k, v in entry.items() if k != "posed"}


@pytest.mark.parametrize("typed", ["inf, 3", "nan, 3", "-inf, -inf", "3", "three, 4"])
def test_what_cannot_be_drawn_is_said_above_the_last_picture(typed):
    w = SoftmaxExplorer((1.0, 3.0, 5.0), names=("Ann", "Ben", "Cy"))
    before = w.draw()
    w.scores.value = typed
    assert "role='alert'" in w.drawing.value and before in w.drawing.value
    w.scores.value = "-inf, 3, 5"
    assert "role='alert'" not in w.drawing.value and "-inf" in w.drawing.value


def test_the_bar_of_a_training_leaves_no_widget_in_a_notebook(tmp_path):
    """tqdm's own would be "model not found" on the second day."""
    from jupyter_client.manager import start_new_kernel

    environment = {k: v for k, v in os.environ.items() if k != "LESSON_PROGRESS"} | {
        "IPYTHONDIR": str(tmp_path)
    }
    manager, client = start_new_kernel(kernel_name="python3", env=environment, startup_timeout=120)
    code = """
import time
from lesson_lib.training import progress_bar
with progress_bar(8, "a training") as bar:
    for _ in range(8):
        time.sleep(0.4)
        bar.update()
"""
    try:
        seen = []
        reply = client.execute_interactive(code, timeout=90, output_hook=seen.append)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert any("a training" in str(message["content"]) for message in seen)  # there was a bar
    shown = [message for message in seen if "display_data" in message["msg_type"]]
    assert all(set(message["content"]["data"]) == {"text/plain"} for message in shown)
    texts = [message["content"]["data"]["text/plain"] for message in shown]
    assert "on this machine" in texts[0] and texts[-1] == "", "it goes when the training ends"
    assert not [message for message in seen if message["msg_type"] in ("stream", "comm_open")]
