"""The site as it is built: no request leaves a page, every link has its place, cards and drawings answer to
the keyboard, and what is accessible stays so. Pages of each kind are driven."""

import html
import os
import random
import re
from pathlib import Path

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.checks.expressions import number_in
from lesson_lib.cli import site

DRIVEN = (
    "index", "00_start_here", "02a_soft_look_up", "evidence/02_scoring_evidence", "search",
    "exercises/03_matrix_form", "glossary", "sources", "instructor/plans/half_day",
)  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The site, made for these tests; without its environment they are skipped, and fail in CI."""
    if not (site.TOOLS / "node_modules" / "axe-core").exists():
        if os.environ.get("CI"):
            pytest.fail(".venv-site is missing (make site makes it), and CI is set", pytrace=False)
        pytest.skip("no .venv-site: make site makes it")
    folder = tmp_path_factory.mktemp("site") / "site"
    assert site.main(to=folder) == 0
    return folder


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


def test_nothing_is_asked_of_another_host_and_nothing_sticks_out(page):
    for name in DRIVEN:
        for width in (1400, 800, 400):
            page.set_viewport_size({"width": width, "height": 800})
            page.show(name)
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


def test_pages_are_small_and_load_at_once(built, page):
    for path in built.rglob("*.html"):
        own = set(re.findall(r'src="(?:\.\./)*(pictures/[^"]+)"', path.read_text("utf-8")))
        size = path.stat().st_size + sum((built / name).stat().st_size for name in own)
        assert size < 3 * 2**20, f"{path.name}: {size / 2**20:.1f} MiB"


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
    page.reload()
    assert "✗ Not so" in said.inner_text(), "the browser keeps it"
    card.locator("button.again").press("Enter")
    assert page.evaluate("document.activeElement.className") == "option" and said.inner_text() == ""
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "✓ Right" in said.inner_text() and "about 2.7" in said.inner_text()
    number = page.locator("[data-question=score_by_hand]")
    field = number.locator("input")
    field.fill("four")
    field.press("Enter")
    assert "Type a number such as 0.5" in number.locator(".said").inner_text()
    field.fill("2 * 2")
    field.press("Enter")
    assert "✓ Right" in number.locator(".said").inner_text() and page.errors == []


def test_a_score_is_moved_by_keyboard_and_touch_and_told(page):
    page.show("index")
    slider = page.get_by_label("score of Ann")
    slider.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    told = page.locator(".live-row output").first
    assert told.inner_text() == "score 5.0, share 0.468"
    assert slider.get_attribute("aria-valuetext") == "score 5.0, share 0.468"
    assert "You hear 24.7" in page.locator(".live-said").inner_text()
    assert min(page.locator(".live-row").evaluate_all("rows => rows.map(r => r.clientHeight)")) >= 44


def test_without_scripts_a_card_is_a_fold_and_a_drawing_a_picture(browser, built):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((built / "02a_soft_look_up.html").as_uri())
    card = page.locator("[data-question=ann_share]")
    assert card.locator("li[data-option=b]").is_visible() and card.locator("summary").is_visible()
    assert page.locator("[data-live=listen] img").is_visible()
    context.close()


def test_no_page_of_a_kind_has_a_serious_finding(page):
    source = (site.TOOLS / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    found = []
    for name in DRIVEN:
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.show(name)
            page.evaluate(source)
            for one in page.evaluate("axe.run()")["violations"]:
                if one["impact"] in ("serious", "critical"):
                    nodes = "; ".join(node["html"][:90] for node in one["nodes"][:2])
                    found.append(f"{name} {theme}: {one['id']} x {len(one['nodes'])}: {nodes}")
    assert found == [], "\n".join(found)
