"""Decks as pages of slides: a plan's rows in order, nothing that sticks out at 1280 x 720, no network, keys
that answer, and no serious finding of a checker of accessibility."""

import os
import re
from pathlib import Path

import nbformat
import pytest

from lesson_lib.cli import plans, room_questions, slides
from lesson_lib.cli.slides import export, session
from tests.browser import driver
from tests.browser.conftest import why_not

DECKS = dict(slides.of_parts())
SESSIONS = {name: made for plan in plans.names() for name, made in slides.of_plan(plan)}
HELD = {
    (f"{plan.name}-{i}" if len(plan.held) > 1 else plan.name): held
    for plan in map(plans.read, plans.names())
    for i, held in enumerate(plan.held, 1)
}
AXE = Path(slides.sys.prefix) / "node_modules" / "axe-core" / "axe.min.js"


def said(slide) -> str:
    return " ".join(cell.source for cell in slide if session.kind(cell) == "notes")


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_has_each_row_of_its_plan_in_order_with_its_clock(name):
    made = session.slides_of(SESSIONS[name])
    clocks = [
        row for slide in made for row in re.findall(r"^\*\*(\d+:\d\d), (\d+) minutes\.\*\*", said(slide))
    ]
    assert clocks == [(row.start, str(row.minutes)) for row in HELD[name].rows]
    shown = [one for slide in made for one in session.asks(slide)]
    assert len(shown) == len(set(shown)), "a question stands on two slides"
    named = {one for row in HELD[name].rows for one in row.exercises}
    assert set(shown) & set(room_questions.read()) <= named, "a question for the room has no time in the plan"
    clocks: list[float] = []
    for slide in made[:-1]:
        clocks += [0] * bool(re.match(r"\*\*\d+:\d\d, ", said(slide)))
        for minutes in re.findall(r'data-minutes="([\d.]+)"', str(slide)):
            clocks[-1] += float(minutes)
    rows = zip(HELD[name].rows, clocks, strict=True)
    assert [row.what for row, clock in rows if row.hands > clock] == [], "hands without a clock on a slide"


def test_a_row_takes_its_sections_and_questions_and_leaves_those_of_other_rows():
    deck = nbformat.v4.new_notebook()
    for text, tag, asked in (
        ("## One", "1", ""),
        ("## Ask", "1", 'vote("two_the")'),
        ("## Do", "turn:x", 'turn("x")'),
    ):
        meta = {"slideshow": {"slide_type": "slide"}, "tags": [tag]}
        deck.cells.append(nbformat.v4.new_markdown_cell(text, metadata=meta))
        deck.cells += [nbformat.v4.new_code_cell(asked)] if asked else []
        deck.cells.append(
            nbformat.v4.new_markdown_cell("Say.", metadata={"slideshow": {"slide_type": "notes"}})
        )
    rows = [
        plans.Row("look", 9, "03", ("1",), (), "0:00"),
        plans.Row("vote", 4, "03", (), ("two_the",), "0:09"),
        plans.Row("break", 10, start="0:13"),
    ]
    held = plans.Session("Day", rows, 23)
    plan = plans.Plan("short", "Short", sessions=[held])
    made = session.slides_of(session.assembled(plan, held, {"03": deck}))
    assert [slide[0].source.partition("\n")[0] for slide in made] == [
        "# Short", "## Today", "## One", "## Ask", "## Break", "## Before you go: two minutes on the ticket",
    ]  # fmt: skip


def test_names_that_fit_nothing_and_missing_packages_are_sentences(tmp_path, capsys, monkeypatch):
    assert slides.main(["01c"], to=tmp_path) == 1
    assert "no deck is called '01c'" in capsys.readouterr().err
    assert slides.main(plan="week", to=tmp_path) == 1
    assert "no plan is called 'week'; there are half-day, two-days" in capsys.readouterr().err
    with pytest.raises(slides.SlidesError, match="make notebooks"):
        slides._read("broken", tmp_path)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(slides.SlidesError, match="make setup-class"):
        slides.copy_assets(tmp_path, root=tmp_path)


# In a browser

# Goes through all slides with their fragments; returns what is wrong, a sentence each.
AUDIT = r"""() => {
  const wrong = [];
  for (const target of Reveal.getSlides()) {
    const at = Reveal.getIndices(target);
    Reveal.slide(at.h, at.v || 0, 99);
    const slide = Reveal.getCurrentSlide(), page = slide.getBoundingClientRect();
    for (const e of slide.querySelectorAll(":scope > :not(aside) :is(p, li, td, th, pre, img, h1, h2, .katex)")) {
      const box = e.getBoundingClientRect();
      if (!box.width || e.closest(".katex") !== null && !e.matches(".katex") || e.closest("aside")) continue;
      const what = `slide ${at.h}/${at.v || 0}, ${e.tagName} ${(e.textContent || "").trim().slice(0, 40)}`;
      if (box.left < page.left || box.right > page.right + 1 || box.top < page.top || box.bottom > page.bottom + 1) wrong.push(`${what}: sticks out`);
      const px = parseFloat(getComputedStyle(e).fontSize) * e.currentCSSZoom;
      if (e.textContent.trim() && px < (e.matches("pre") ? 14 : 17)) wrong.push(`${what}: text of ${px} px`);
      if (e.matches("img") && !e.alt.trim()) wrong.push(`${what}: no alt text`);
    }
  }
  for (const e of document.querySelectorAll(".katex-error")) wrong.push(`formula: ${e.title}`);
  return wrong;
}"""  # noqa: E501

GO = """place => {
  const i = Reveal.getIndices(document.querySelector(place).closest('section'));
  Reveal.slide(i.h, i.v, -1);
}"""
FULL = "full => document.querySelector('section.present:not(.stack) .timer').textContent !== full"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder with the slides of all decks and of all plans."""
    folder = tmp_path_factory.mktemp("slides")
    for name, made in SESSIONS.items():
        (folder / f"{name}.html").write_text(export.page(made), encoding="utf-8")
    assert slides.main(to=folder) == 0
    return folder


@pytest.fixture(scope="module")
def browser():
    """Chromium, headless. Without one these tests are skipped with a line; in CI they fail, unless
    LESSON_BROWSER=skip."""
    if reason := why_not():
        if os.environ.get("CI") and os.environ.get("LESSON_BROWSER") != "skip":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with driver.chromium() as started:
        yield started


def opened(browser, path: Path):
    """A deck in a page of the browser that is refused every request to elsewhere, and what went wrong."""
    page, wrong = browser.new_context(viewport={"width": 1280, "height": 720}).new_page(), []
    page.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.route(
        re.compile("^(?!file:|data:|blob:)"), lambda route: (wrong.append(route.request.url), route.abort())
    )
    page.goto(path.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady() && document.fonts.status === 'loaded'")
    return page, wrong


@pytest.mark.parametrize("name", [*DECKS, "half-day", "eight-weeks-1"])
def test_no_slide_overflows_and_nothing_comes_from_elsewhere(name, built, browser):
    page, wrong = opened(browser, built / f"{name}.html")
    wrong += page.evaluate(AUDIT)
    page.context.close()
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize(
    "told, planted",
    {
        "sticks out": f"<p style='font-size: 90px'>{'A planted text. ' * 60}</p>",
        "text of 12": "<p style='font-size: 12px'>Too small.</p>",
        "no alt text": "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>",
        "127.0.0.1": "<img src='http://127.0.0.1:9/x.png' alt='From elsewhere.'>",
    }.items(),
)
def test_what_is_planted_is_reported(told, planted, built, browser):
    text = (built / "02a_soft_look_up.html").read_text(encoding="utf-8")
    (built / "dirty.htm").write_text(
        re.sub(r"(<h2.*?</h2>)", rf"\1{planted}", text, count=1), encoding="utf-8"
    )
    page, wrong = opened(browser, built / "dirty.htm")
    wrong += page.evaluate(AUDIT)
    page.context.close()
    assert any(told in line for line in wrong), wrong


@pytest.mark.parametrize("name", ["02a_soft_look_up", "half-day"])
def test_a_checker_of_accessibility_finds_nothing_serious(name, built, browser):
    page, _ = opened(browser, built / f"{name}.html")
    page.add_script_tag(content=AXE.read_text("utf-8"))
    found = []
    for at in range(0, page.evaluate("Reveal.getTotalSlides()"), 4):
        for violation in page.evaluate("async () => (await axe.run('section.present')).violations"):
            if violation["impact"] in ("serious", "critical"):
                found.append((at, violation["id"], violation["nodes"][0]["html"][:120]))
        page.evaluate("() => { for (let i = 0; i < 4; i++) { Reveal.next(); } }")
    page.context.close()
    assert found == []


def test_an_answer_waits_for_a_key_and_the_speaker_sees_the_notes(built, browser):
    page, _ = opened(browser, built / "02a_soft_look_up.html")
    page.evaluate(GO, ".fragment")
    answer = page.locator("section.present:not(.stack) .fragment")
    assert answer.evaluate("e => getComputedStyle(e).visibility") == "hidden"
    page.keyboard.press("Space")
    assert answer.evaluate("e => getComputedStyle(e).visibility") == "visible"
    with page.expect_popup() as popup:
        page.keyboard.press("s")
    popup.value.wait_for_selector(".speaker-controls-notes .value:has-text('One minute alone')")
    page.context.close()


def test_a_clock_runs_stops_and_begins_anew(built, browser):
    page, _ = opened(browser, built / "02a_soft_look_up.html")
    page.evaluate(GO, ".timer")
    clock = page.locator("section.present:not(.stack) .timer")
    full = clock.inner_text()
    page.keyboard.press("t")
    page.wait_for_function(FULL, arg=full)
    page.keyboard.press("t")
    stopped = clock.inner_text()
    assert stopped != full
    page.evaluate("() => Reveal.next()")
    page.evaluate("() => Reveal.next()")
    page.evaluate(GO, ".timer")
    assert clock.inner_text() == full
    page.context.close()
