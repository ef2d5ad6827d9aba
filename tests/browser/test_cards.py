"""A learner commits predictions with the keyboard alone, and finds them again; and judges an open answer."""

import re
from contextlib import suppress

import nbformat
import pytest

pytestmark = pytest.mark.browser
CELLS = [
    "from lesson_lib.checks import check, predict, reset",
    "predict('unscaled_picture')",
    "predict('score_ratio')",
    "check('twelve words are enough to be compared with a model answer, they say', 'why_the_root')",
    "predict('plus_or_times')",
    "import time; time.sleep(4)",
    "check(3, 'score_ratio')",
    "from lesson_lib.chapters.c02_scoring.softmax_explorer import SoftmaxExplorer; SoftmaxExplorer((1, 2))",
]
WIDTHS = (1400, 800)


@pytest.fixture
def cards(bench, scratch):
    """A notebook with a choice, a number and an open answer; it has run."""
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    place = scratch / "work" / "predictions.ipynb"
    if not place.exists():  # a file that changes on the disk makes JupyterLab ask before it saves
        nbformat.write(made, place)
    return bench.take("predictions.ipynb")


def compute(cards) -> None:
    """Run the cell that sleeps, and return when the page knows that the kernel is busy."""
    cards.start_here(5)
    cards.page.locator(".jp-Notebook-ExecutionIndicator[data-status=busy]").first.wait_for(state="attached")


def answer(cards, card, text: str, words: str) -> None:
    """Type into a card's field, press Enter, and wait for these words; once more where the keys went
    elsewhere: a page that is laid out anew on a busy machine can take the focus away."""
    from playwright.sync_api import TimeoutError  # a GPU machine has none, and collects this file

    field = card.locator("input[type=text]")
    told = card.get_by_text(words).filter(visible=True)
    for _ in range(4):
        field.fill("")
        field.focus()
        cards.page.keyboard.type(text, delay=50)
        cards.page.keyboard.press("Enter")
        with suppress(TimeoutError):
            return told.wait_for(timeout=15_000)
    held = cards.page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
    pytest.fail(f"{text!r} is not answered: the field holds {field.input_value()!r}, the focus is on {held}")


def test_predictions_are_committed_by_keyboard_and_an_answer_is_judged(cards):
    assert cards.ran and cards.troubles() == []
    choice, number, written = (cards.output(i) for i in (1, 2, 3))
    for width in WIDTHS:
        cards.page.set_viewport_size({"width": width, "height": 1000})
        for button in choice.locator("button").all():
            assert button.evaluate("e => e.scrollWidth <= e.clientWidth"), "the option's text is cut off"
    choice.locator("button").first.focus()
    cards.page.keyboard.press("Tab")
    cards.page.keyboard.press("Enter")
    choice.get_by_text("✓ Right").filter(visible=True).wait_for()
    assert choice.get_by_role("alert").count() == 1 and choice.locator("button").count() == 0
    answer(cards, number, "7,5", "thousands or decimals")
    compute(cards)  # the browser holds back what is typed meanwhile, and Enter does not wait
    answer(cards, number, "exp(-2)", "your answer: exp(-2)")
    number.get_by_text("✗ Not so").filter(visible=True).wait_for()
    number.get_by_text("upside down").filter(visible=True).wait_for()
    points = written.locator(".widget-toggle-buttons")
    for i in range(points.count()):
        yes = points.nth(i).locator("button").first
        yes.focus()
        assert yes.evaluate("b => getComputedStyle(b).outlineWidth") == "3px"  # the keyboard's place is seen
        cards.page.keyboard.press("Enter")
    written.get_by_text(f"you judged: {points.count()} of {points.count()}").filter(visible=True).wait_for()
    prediction = cards.output(4)
    sure = prediction.get_by_role("checkbox", name="I am sure")
    sure.focus()
    cards.page.keyboard.press("Space")
    assert sure.is_checked()
    for key in ("Tab", "Tab", "Tab", "Enter"):  # to the third option
        cards.page.keyboard.press(key)
    prediction.get_by_text("✓ Right").filter(visible=True).wait_for()
    assert sure.count() == 0 and prediction.locator("button").count() == 0
    assert cards.troubles() == []


def test_a_click_is_noted_while_the_kernel_computes(cards):
    cards.run_here(1)
    compute(cards)
    options = cards.output(1).locator(".ll-options")
    options.locator("button").nth(1).click()
    noted = "e => getComputedStyle(e, '::after').content"
    assert "as soon as the kernel is free" in options.evaluate(noted)
    assert options.locator("button").nth(0).evaluate("e => getComputedStyle(e).pointerEvents") == "none"
    cards.output(1).get_by_text("✓ Right").filter(visible=True).wait_for()
    assert cards.troubles() == []


def test_an_explorer_says_that_the_kernel_computes(cards):
    compute(cards)
    controls = cards.output(7).locator(".ll-controls")
    controls.locator(".noUi-handle").first.focus()
    handle, noted = controls.element_handle(), "getComputedStyle(e, '::after').content"
    cards.page.wait_for_function(f"e => {noted}.includes('as soon as it is free')", arg=handle)
    cards.page.wait_for_function(f"e => {noted} === 'none'", arg=handle)
    assert cards.troubles() == []


def test_the_buttons_below_a_check_say_what_can_be_typed(cards):
    below = cards.output(6)
    below.get_by_role("button", name="Hint").press("Enter")
    below.get_by_text(re.compile("hint [123] of 3")).filter(visible=True).wait_for()  # hints given are kept
    below.get_by_role("button", name="Solution").press("Enter")
    below.get_by_text("a solution").filter(visible=True).wait_for()


def test_day_two_shows_what_was_asked_and_answered(cards):
    """Saved, shut down and opened again, a card is its still form, and no line is about a lost model."""
    cards.save_and_open_again()
    text = cards.page.locator(".jp-Notebook").inner_text()
    assert "model not found" not in text and "Loading widget" not in text
    # behind what can still be moved or judged; an answered prediction is done
    assert text.count("Your answers are kept.") == 2 and "NOT YET" in text and "✓ Right" in text
    assert cards.output(7).locator("img").count() == 1
