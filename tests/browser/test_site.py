"""The site as it is built: no request leaves a page, every link has its place, cards and drawings answer to
the keyboard, and what is accessible stays so.

Pages of each kind are driven, three with recordings of explorers. With LESSON_BROWSER=all every page is, and
every explorer is recorded and moved.
"""

import html
import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.checks.expressions import number_in
from lesson_lib.cli import site
from lesson_lib.cli.site import states
from tests.test_site_states import state_of

pytestmark = pytest.mark.browser
EVERY = os.environ.get("LESSON_BROWSER") == "all"
MOVING = ("02a_soft_look_up", "11b_exact_and_fast", "11c_many_machines")
SAMPLE = (
    "index", "00_start_here", "02a_soft_look_up", "evidence/02_scoring_evidence", "search",
    "exercises/03_matrix_form", "glossary", "sources", "instructor/plans/half_day",
)  # fmt: skip
LEAVE = "document.querySelectorAll('.gate button:last-child').forEach(b => b.click())"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The site, made for these tests; without its environment they are skipped, and fail in CI."""
    if not (site.TOOLS / "node_modules" / "axe-core").exists():
        if os.environ.get("CI"):
            pytest.fail(".venv-site is missing (make site makes it), and CI is set", pytrace=False)
        pytest.skip("no .venv-site: make site makes it")
    folder = tmp_path_factory.mktemp("site")
    some = {} if EVERY else {"record": MOVING, "book": MOVING, "kept": folder / "kept"}
    assert site.main(to=folder / "site", **some) == 0
    return folder / "site"


@pytest.fixture(scope="module")
def driven(built) -> list[str]:
    """The names of the pages that are driven."""
    if not EVERY:
        return list(SAMPLE)
    names = (path.relative_to(built).with_suffix("").as_posix() for path in built.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("slides/"))  # decks have tests of their own


@pytest.fixture
def page(browser, built):
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    page = context.new_page()
    page.errors, page.asked = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: page.asked.append(request.url))
    page.show = lambda name: page.goto((built / f"{name}.html").as_uri())
    yield page
    context.close()


def test_nothing_is_asked_of_another_host_and_nothing_sticks_out(page, driven):
    for name in driven:
        for width in (1400, 800, 400):
            page.set_viewport_size({"width": width, "height": 800})
            page.show(name)
            page.evaluate(LEAVE)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (name, width)
    assert page.errors == [] and [url for url in page.asked if not url.startswith(("file:", "data:"))] == []


def test_every_link_and_picture_has_its_place(built):
    """Of all pages; anchors, too."""
    texts = {path.resolve(): path.read_text("utf-8") for path in built.rglob("*.html")}
    ids = {path: set(re.findall(r'\sid="([^"]+)"', text)) for path, text in texts.items()}
    lost = []
    for path, text in texts.items():
        for where in set(re.findall(r"""(?:href|src)=["']([^"']+)["']""", text)):
            where = html.unescape(where)
            if re.match(r"(https?|data|mailto|javascript):", where):
                continue
            file, _, anchor = where.partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            if not target.exists() or (anchor and target in ids and anchor not in ids[target]):
                lost.append(f"{path.relative_to(built.resolve())}: {where}")
    assert lost == [], "\n".join(lost)
    assert len(texts) > 80


def test_pages_and_their_recordings_are_small(built):
    for path in built.rglob("*.html"):
        own = set(re.findall(r'src="(?:\.\./)*(pictures/[^"]+)"', path.read_text("utf-8")))
        size = path.stat().st_size + sum((built / name).stat().st_size for name in own)
        assert size < 3 * 2**20, f"{path.name}: {size / 2**20:.1f} MiB"
        loaded = set(re.findall(r'data-src="(?:\.\./)*(states/[^"]+)"', path.read_text("utf-8")))
        size = sum((built / name).stat().st_size for name in loaded)
        assert size < 2 * 2**20, f"{path.name}: recordings of {size / 2**20:.1f} MiB"


def test_attention_in_the_page_has_torchs_numbers(page):
    page.show("index")
    torch.manual_seed(0)
    for n, m, d in ((1, 2, 1), (3, 4, 2), (5, 7, 8)):
        for scale in (1.0, d**-0.5, 30.0):
            q, k, v = (torch.randn(rows, d, dtype=torch.float64) for rows in (n, m, m))
            mask = torch.rand(n, m) < 0.6
            said = page.evaluate(
                "([q, k, v, scale, mask]) => attend(q, k, v, { scale, mask })",
                [q.tolist(), k.tolist(), v.tolist(), scale, mask.tolist()],
            )
            ours = attend(q, k, v, score=lambda a, b, by=scale: a @ b.mT * by, mask=mask)
            torch.testing.assert_close(torch.tensor(said["weights"], dtype=torch.float64), ours.weights)
            torch.testing.assert_close(torch.tensor(said["output"], dtype=torch.float64), ours.output)


def test_numbers_are_read_as_the_checks_read_them(built, page):
    page.show("index")
    typed = {
        "",
        "two",
        "1 +",
        "2 ** 3",
        "1,024",
        "5 %",
        "-3^2",
        "e^2 / (1 + e^2)",
        "sqrt(2) * pi",
        "alert(1)",
    }
    for path in built.rglob("*.html"):
        for card in re.findall(
            r"<div class='ll-ask'[^>]*data-kind='number'.*?</details>", path.read_text("utf-8"), re.S
        ):
            typed |= {html.unescape(t) for t in re.findall(r"data-(?:answer|wrong)='([^']*)'", card)}
    typed = random.Random(0).sample(sorted(typed), min(len(typed), 400))
    read = page.evaluate("typed => typed.map(numberIn)", typed)
    for text, number in zip(typed, read, strict=True):
        right, _ = number_in("1024" if text == "1,024" else text)
        assert (number is None) == (right is None), text
        assert number is None or number == pytest.approx(right, rel=1e-9), text


def test_a_card_is_answered_by_keyboard_kept_and_asked_again(page):
    page.show("02a_soft_look_up")
    card = page.locator("[data-question=ann_share]")
    card.locator("button.option").first.focus()
    page.keyboard.press("Enter")
    said = card.locator(".said")
    assert (
        "✗ Not so, your answer: a)" in said.inner_text()
        and "divides each score by the sum 9" in said.inner_text()
    )
    assert page.evaluate("document.activeElement.className") == "again", "the focus goes on"
    page.reload()
    assert "✗ Not so" in said.inner_text(), "the browser keeps it"
    card.locator("button.again").press("Enter")
    assert page.evaluate("document.activeElement.className") == "option" and said.inner_text() == ""
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "✓ Right" in said.inner_text() and "about 2.7" in said.inner_text()
    page.reload()
    assert "✓ Right" in said.inner_text()
    assert "Your first answer, which is kept: a) 1 of 9" in said.inner_text()
    page.evaluate(LEAVE)
    number = page.locator("[data-question=score_by_hand]")
    field = number.locator("input")
    field.press("Enter")
    assert "Type an answer first" in number.locator(".said").inner_text()
    field.fill("four")
    field.press("Enter")
    assert "Type a number such as 0.5" in number.locator(".said").inner_text()
    field.fill("2 * 2")
    field.press("Enter")
    assert "✓ Right" in number.locator(".said").inner_text() and page.errors == []


def test_a_score_is_moved_by_keyboard_and_touch_and_told(page):
    page.show("02a_soft_look_up")
    page.evaluate(LEAVE)
    slider, told = page.get_by_label("score of Ann", exact=True), page.locator(".live-row output").first
    slider.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    assert told.inner_text() == slider.get_attribute("aria-valuetext") == "score 5, share 0.468"
    page.get_by_label("score of Cy, typed").fill("-100")
    assert told.inner_text() == "score 5, share 0.881"
    page.get_by_label("score of Cy, typed").fill("")
    assert told.inner_text() == "score 5, share 0.881", "half a number changes nothing"
    assert min(page.locator(".live-row").evaluate_all("rows => rows.map(r => r.clientHeight)")) >= 44


def test_the_start_shows_a_card_and_a_film_and_what_was_answered(page):
    page.show("index")
    assert page.locator(".way-in a.begin").get_attribute("href") == "02a_soft_look_up.html"
    page.locator("[data-question=ann_share] button.option").nth(1).click()
    assert "✓ Right" in page.locator("[data-question=ann_share]").inner_text()
    page.locator("[data-states]").scroll_into_view_if_needed()
    page.wait_for_selector("[data-states][data-ready] table")
    assert page.locator(".player output").first.inner_text() == "7", "the whole film lies there"
    page.get_by_role("button", name="‹ back").press("Enter")
    assert page.locator(".player output").first.inner_text() == "6"
    assert page.locator(".tea.told").count() == 1, "the drawing shows the shares once they were guessed"
    page.show("02a_soft_look_up")
    page.show("index")
    assert page.locator(".map [data-part='02a_soft_look_up'] .done").inner_text() == "1 of 6"
    assert page.locator(".related-pages").is_visible() is False, "one start only"


def test_what_moves_first_is_drawn_and_answers_to_the_keyboard(page):
    page.show("02b_which_score")
    page.get_by_label("width").focus()
    page.keyboard.press("End")
    assert "At width 1024 the largest share is 1.000" in page.locator(".live-said").inner_text()
    page.show("01a_two_saws")
    said = page.locator(".live-said")
    assert said.inner_text() == "“saw”, word 3, sees itself alone."
    page.get_by_role("button", name="recurrent").press("Enter")
    page.locator(".sees button").nth(1).press("Enter")
    assert said.inner_text() == "“saw”, word 1, sees 2 of 4 words, itself included."
    assert page.locator(".sees button.seen").count() == 2


def test_six_guesses_end_with_what_was_missed_and_where_it_is_explained(page):
    page.show("six_guesses")
    cards = page.locator("[data-guesses] .ll-ask")
    assert cards.count() == 6 and page.locator(".guessed").inner_text() == ""
    for card in cards.all():
        right = card.get_attribute("data-answer")
        wrong = card.get_attribute("data-question") == "growth"
        options = card.locator("button.option").all()
        picked = [o for o in options if (o.inner_text().startswith(f"{right})")) != wrong]
        picked[0].click()
    assert "5 of 6 were right" in page.locator(".guessed").inner_text()
    assert page.locator(".guessed a").get_attribute("href") == "02b_which_score.html"


def test_a_search_says_what_each_page_is_about(page, built):
    page.goto((built / "search.html").as_uri() + "?q=rope")
    page.wait_for_selector("#search-results .excerpt")
    assert page.locator("#search-results a", has_text="05b").count()


def test_without_scripts_a_card_is_a_fold_and_a_drawing_a_picture(browser, built):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((built / "02a_soft_look_up.html").as_uri())
    card = page.locator("[data-question=ann_share]")
    assert card.locator("li[data-option=b]").is_visible() and card.locator("summary").is_visible()
    assert page.locator("[data-live=listen] img").is_visible()
    context.close()


def test_scores_are_multiplied_and_shifted_as_the_part_says(page):
    page.show("02a_soft_look_up")
    page.evaluate(LEAVE)
    place = page.locator("[data-live=listen]")
    times, plus = (place.locator("label", has_text=f"every score {word}") for word in ("times", "plus"))
    plus.locator("input").fill("100")
    assert place.locator("output").first.inner_text() == "score 101, share 0.016"
    plus.locator("input").fill("0")
    times.locator("input").fill("10")
    assert "share 1.000" in place.locator("output").nth(2).inner_text()


def test_a_part_stops_at_a_question_until_it_is_answered_or_left(page):
    page.show("02a_soft_look_up")
    rule, last = page.get_by_text("The rule is called"), page.get_by_role("heading", name="To carry away")
    assert not rule.is_visible() and page.locator("[data-question=ann_share]").is_visible()
    assert page.get_by_text(re.compile(r"Question 1 of 6\. About \d+ screens follow")).is_visible()
    assert not page.locator(".related-pages").is_visible() and page.locator(".toc-tree a.waits").count() > 4
    page.locator("[data-question=ann_share] button.option").first.click()
    assert rule.is_visible() and page.locator("[data-question=plus_or_times]").is_visible()
    beyond = page.get_by_text("Type 5 for Ann")
    assert not beyond.is_visible()
    page.get_by_role("button", name="Go on without an answer").press("Enter")
    assert beyond.is_visible() and not last.is_visible()
    page.reload()
    assert rule.is_visible() and not beyond.is_visible(), "an answer is kept, a question left is asked again"
    page.get_by_role("button", name="Show the whole page").press("Enter")
    assert last.is_visible() and page.locator(".gate").count() == 0
    assert page.locator(".related-pages").is_visible() and not page.locator(".toc-tree a.waits").count()
    page.reload()
    assert rule.is_visible() and last.is_visible(), "who asked for the whole page finds it whole"
    page.show("evidence/02_scoring_evidence")
    assert page.locator(".gate").count() == 0, "only a part is a path"


def test_a_link_into_a_part_opens_it_up_to_there(page, built):
    page.goto((built / "02a_soft_look_up.html").as_uri() + "#three-people-once-more")
    assert page.get_by_role("heading", name="Three people once more").is_visible()
    assert page.locator("[data-question=ann_first]").is_visible()
    assert not page.get_by_text("Ann’s share rose").is_visible()


def test_every_control_of_a_recording_moves_by_keyboard_and_shows_what_was_recorded(page, built):
    picked = random.Random(0)
    seen = 0
    for path in sorted(built.rglob("*.html")):
        text = path.read_text("utf-8")
        places = re.findall(r'data-states="([\w-]+)" data-src="(?:\.\./)*([^"]+)"', text)
        if not places:
            continue
        page.show(path.relative_to(built).with_suffix("").as_posix())
        page.evaluate(LEAVE)
        for name, file in places:
            place = page.locator(f"[data-states='{name}']")
            place.scroll_into_view_if_needed()
            page.wait_for_selector(f"[data-states='{name}'][data-ready]")
            told = states.unpack((built / file).read_text("utf-8"))
            drawing, changed = place.locator(".player-drawing"), []
            for control in place.locator("input[type=range], .player-buttons button").all():
                if not control.is_visible():
                    continue
                before = drawing.inner_html()
                control.focus()
                is_button = control.evaluate("e => e.tagName") == "BUTTON"
                for pressed in ["Enter"] if is_button else ["Home", "End", "ArrowLeft"]:
                    page.keyboard.press(pressed)
                    changed.append(drawing.inner_html() != before)
            assert any(changed), f"{path.name}: {name} does not move"
            seen += 1
            # at a chosen value of each control the page shows the state that Python recorded
            labels = []
            offered = place.locator("[role=group], .player-slider").all()
            for control, shown in zip(told["controls"], offered, strict=True):
                if control["kind"] == "choice" and shown.is_visible():
                    button = picked.choice(shown.locator(".player-buttons button").all())
                    button.click()
                    labels.append(button.inner_text())
                elif control["kind"] == "choice":
                    labels.append(shown.locator("button").first.text_content())
                else:
                    slider = shown.locator("input")
                    if shown.is_visible():
                        slider.fill(str(picked.randint(0, int(slider.get_attribute("max")))))
                    labels.append(shown.locator("output").text_content())
            right = state_of(told, *labels)
            same = page.evaluate("html => { const e = document.createElement('div'); e.innerHTML = html; "
                                 "return e.innerHTML; }", right)  # fmt: skip
            shown = drawing.inner_html().replace('tabindex="-1"', 'tabindex="0"')
            assert shown == same, f"{path.name}: {name} at {labels}"
    assert seen >= (25 if EVERY else 3) and page.errors == []


def film(page):
    """Part 02a's film, loaded."""
    page.show("02a_soft_look_up")
    page.evaluate(LEAVE)
    place = page.locator("[data-states]")
    place.scroll_into_view_if_needed()
    place.locator(".player").wait_for()
    return place


@pytest.mark.parametrize("width", [1000, 400])
def test_the_formula_of_a_number_stands_whole_below_it(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    place = film(page)
    place.locator("input").fill("6")  # the last step
    assert place.locator("output").inner_text() == "7"
    for table in place.locator("table:has(.ll-tip)").all():
        table.locator("td").last.focus()
        left, right, below = table.locator("td").last.evaluate(
            "td => { const tip = td.querySelector('.ll-tip').getBoundingClientRect(),"
            " box = td.closest('.player-drawing').getBoundingClientRect();"
            " return [tip.left - box.left, box.right - tip.right, box.bottom - tip.bottom]; }"
        )
        assert min(left, right, below) >= 0, table.locator("caption").inner_text()


def test_a_table_of_a_film_is_one_stop_and_arrows_go_through_it(page):
    place = film(page)
    place.locator("input").fill("6")  # the last step
    tables = place.locator("table:has(.ll-tip)")
    assert place.locator("td[tabindex='0']").count() == tables.count() > 3
    assert "then arrows" in place.locator(".player-note").inner_text()
    place.locator(".player-controls button").last.focus()
    page.keyboard.press("Tab")
    where = "() => { const e = document.activeElement; return [e.parentElement.rowIndex, e.cellIndex]; }"
    assert page.evaluate(where) == [0, 0]
    for pressed, at in (
        ("Down", [1, 0]),
        ("Right", [1, 1]),
        ("Up", [0, 1]),
        ("Up", [0, 1]),
        ("Left", [0, 0]),
    ):
        page.keyboard.press(f"Arrow{pressed}")
        assert page.evaluate(where) == at, pressed
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(where) == [1, 0], "one comes back to where one was"
    assert page.locator("td:focus .ll-tip").is_visible()


def test_a_shut_menu_takes_no_tab_and_an_open_one_leads_to_its_place(page):
    page.set_viewport_size({"width": 400, "height": 800})
    page.show("02a_soft_look_up")
    page.evaluate(LEAVE)
    for _ in range(6):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('.sidebar-drawer, .toc-drawer')")
    page.locator(".mobile-header .toc-header-icon, .toc-overlay-icon").first.click()
    page.locator(".toc-drawer a", has_text="Three people once more").click()
    heading = page.get_by_role("heading", name="Three people once more")
    page.wait_for_timeout(2000)  # drawings on the way are loaded meanwhile
    assert 0 <= heading.bounding_box()["y"] < 400
    assert not page.locator(".toc-drawer a").first.is_visible()


def test_on_a_phone_a_films_controls_stay_in_sight_and_a_picture_grows(page):
    page.set_viewport_size({"width": 400, "height": 800})
    place = film(page)
    place.locator("input").fill("6")
    place.locator("table").last.scroll_into_view_if_needed()
    top = place.locator(".player-controls").bounding_box()["y"]
    assert 0 <= top < 200 and place.get_by_role("button", name="on ›").is_visible()
    page.show("evidence/02_scoring_evidence")
    picture = page.locator(".picture img").first
    picture.scroll_into_view_if_needed()
    small = picture.bounding_box()
    assert small["width"] <= 400 and small["height"] > 20
    picture.click()
    assert picture.bounding_box()["width"] > 1.3 * small["width"]
    picture.click()
    assert picture.bounding_box()["width"] == small["width"]


def test_a_film_plays_and_stops_at_its_end(page):
    place = film(page)
    said = place.locator("output")
    assert said.inner_text() == "1"
    for _ in range(5):
        place.get_by_role("button", name="on ›").press("Enter")
    assert said.inner_text() == "6"
    play = place.get_by_role("button", name="▶ play")
    play.press("Enter")
    assert place.get_by_role("button", name="❚❚ pause").is_visible()
    page.wait_for_function("() => document.querySelector('.player output').textContent === '7'")
    page.wait_for_selector("text=▶ play")


def test_each_turn_has_hints_and_a_solution_in_folds(page):
    page.show("02a_soft_look_up")
    page.evaluate(LEAVE)
    turn = page.locator(".turn").first
    assert "score each key by a dot product" in turn.inner_text()
    assert not turn.get_by_text("torch.softmax(scores").is_visible()
    turn.locator("summary").last.press("Enter")
    assert turn.get_by_text("torch.softmax(scores").is_visible()
    assert page.get_by_text("NOT ATTEMPTED YET").count() == 0
    page.show("exercises/02_scoring")
    card = page.locator("[data-question=score_ratio]")
    card.locator("input").fill("exp(2)")
    card.locator("input").press("Enter")
    assert "✓ Right" in card.inner_text()


def test_a_function_is_asked_on_paper_and_a_mistake_is_named(page):
    page.show("exercises/02_scoring")
    card = page.locator("[data-question=scaled_attention_on_paper]")
    wrong = card.locator("li[data-wrong]").first
    card.locator("input").fill(wrong.get_attribute("data-wrong"))
    card.locator("input").press("Enter")
    assert (
        "✗ Not so" in card.inner_text() and "you forgot to divide by sqrt(d_k)" in card.inner_text().lower()
    )
    turn = page.locator(".turn", has_text="□ ")
    turn.locator("summary").last.press("Enter")
    assert turn.get_by_text("□ ").count() >= 2, "what the solution is judged by"


def test_on_paper_all_stands_open_and_no_button_is_left(page):
    page.show("02a_soft_look_up")
    page.emulate_media(media="print")
    assert page.get_by_text("Ann’s share rose").is_visible()
    assert page.locator("[data-question=ann_share] li[data-option=a]").is_visible()
    assert not page.locator(".gate").is_visible() and not page.locator("button.option").first.is_visible()
    why = page.locator("[data-question=ann_share] details")
    assert why.count() and not why.is_visible() and not page.locator(".turn details").first.is_visible()


def test_an_answer_in_quotes_is_read_and_what_is_said_is_a_sentence(page):
    page.show("exercises/02_scoring")
    assert "Replace the" not in page.locator("article").inner_text()
    card = page.locator("[data-question=score_ratio]")
    card.locator("input").fill('"exp(2)"')
    card.locator("input").press("Enter")
    assert "✓ Right" in card.inner_text()
    for line in card.locator(".said > div:not(.first)").all_inner_texts():
        assert line.strip()[-1] in ".!?" and not line[:1].islower(), line


def test_what_an_answer_draws_waits_in_a_fold(page):
    page.show("exercises/02_scoring")
    assert page.get_by_text("run this cell again").count() == 0
    fold = page.locator("details", has_text="The picture, once you have answered")
    assert not fold.locator("img").is_visible()
    fold.locator("summary").press("Enter")
    assert fold.locator("img").is_visible()
    options = page.locator("li", has_text="a bright diagonal")
    assert options.count() == 1, "the card lists them, and nothing else does"


def test_the_parts_are_one_pdf_whose_contents_tell_the_right_pages(built):
    read = "\n".join((
        "import sys, json; from pypdf import PdfReader; pdf = PdfReader(sys.argv[1])",
        "links = [str(a.get_object()) for page in pdf.pages for a in page.get('/Annots') or ()]",
        "texts = [page.extract_text() for page in pdf.pages]",
        "print(json.dumps([texts, [l for l in links if 'file:' in l], pdf.metadata.title,",
        "                  len(pdf.outline), '/StructTreeRoot' in pdf.trailer['/Root']]))",
    ))  # fmt: skip
    words = [str(site.TOOLS / "bin" / "python"), "-c", read, str(built / "attention.pdf")]
    texts, leaving, title, outline, tagged = json.loads(
        subprocess.run(words, capture_output=True, text=True, check=True).stdout
    )
    assert leaving == [] and title == "One function: attention" and outline and tagged
    contents = dict(re.findall(r"^(\d\d[a-z]?) · .*?(\d+)$", texts[0], re.M))
    assert len(contents) == (len(site.lessons()) if EVERY else len(MOVING))
    for number, at in contents.items():
        assert texts[int(at) - 1].startswith(f"{at}\n{number} ·"), (number, at)
    assert "注意力" in "".join(texts) and "Hints and solutions" in "".join(texts)


def test_no_page_has_a_serious_finding(page, driven):
    source = (site.TOOLS / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    found = []
    for name in driven:
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.show(name)
            page.evaluate(LEAVE)
            page.evaluate("document.querySelectorAll('[data-states]').forEach(load)")
            page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
            page.wait_for_function("() => !document.querySelector('[data-states]:not([data-ready])')")
            page.evaluate(source)
            for one in page.evaluate("axe.run()")["violations"]:
                if one["impact"] in ("serious", "critical"):
                    nodes = "; ".join(node["html"][:90] for node in one["nodes"][:2])
                    found.append(f"{name} {theme}: {one['id']} x {len(one['nodes'])}: {nodes}")
    assert found == [], "\n".join(found)
