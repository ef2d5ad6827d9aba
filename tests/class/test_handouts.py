"""The sheets of a room: one page with its formulas; a PDF where there is a browser, else a sentence."""

import re

import pytest

from lesson_lib.cli import chromium, handouts
from tests.browser.conftest import why_not


def text_of(page: str) -> str:
    return re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", page, flags=re.S)


@pytest.fixture
def nowhere(monkeypatch):
    monkeypatch.setattr(chromium, "find", lambda: None)


def test_the_rooms_sheets_are_one_page_without_links_or_raw_formulas(tmp_path, nowhere, capsys):
    assert handouts.main(to=tmp_path) == 0
    assert "No PDF: neither Chromium nor Chrome was found. Open that page" in capsys.readouterr().out
    page = (tmp_path / "handouts.html").read_text("utf-8")
    assert re.findall(r"<article id='(\w+)'>", page) == list(handouts.ROOM)
    shown = text_of(page)
    for title in ("The seven steps", "Exit tickets", "Cards: early, and stuck"):
        assert title in shown
    assert "auto-render.min.js" in page and "](" not in shown and "**" not in shown and "```" not in shown
    assert not re.search(r"(src|href)=.(https?:)?//", page)
    assert (tmp_path / "assets/katex/katex.min.js").exists() and not (tmp_path / "assets/reveal").exists()


def test_other_pages_are_chosen_by_their_names(tmp_path, nowhere, capsys):
    assert handouts.main(["test_b", "project"], to=tmp_path) == 0
    page = (tmp_path / "handouts.html").read_text("utf-8")
    assert re.findall(r"<article id='(\w+)'>", page) == ["test_b", "project"]
    assert handouts.main(["test_c"], to=tmp_path) == 1
    said = capsys.readouterr().out
    assert "no page to print is called 'test_c'; there are cards, exit_tickets, worksheet, grading" in said


def test_a_browser_that_does_not_print_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(chromium, "find", lambda: "/no/such/browser")
    assert handouts.main(["project"], to=tmp_path) == 1
    assert "No PDF: /no/such/browser did not print it" in capsys.readouterr().out


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_the_worksheet_of_the_class_is_one_sheet(tmp_path, capsys):
    """Three parts: in class, at home, and the key for the instructor."""
    text = handouts.read("worksheet").split('<div style="page-break-after: always"></div>')
    assert len(text) == 3
    for part in text[:2]:
        written = tmp_path / "handouts.html"
        handouts.copy_assets(tmp_path, only="katex")
        written.write_text(handouts.page({"worksheet": part}), encoding="utf-8")
        assert handouts.printed(written) == 0
        assert len(re.findall(rb"/Type\s*/Page\b", written.with_suffix(".pdf").read_bytes())) == 1
    assert "handouts.pdf" in capsys.readouterr().out


def test_a_session_gets_its_own_sheets_and_their_keys_lie_apart(tmp_path, nowhere, capsys):
    assert handouts.main(plan="half-day", to=tmp_path) == 0
    sheets, keys = ((tmp_path / f"{name}.html").read_text("utf-8") for name in ("handouts", "keys"))
    assert re.findall(r"<article id='(\w+)'>", sheets) == [
        "letters",
        "colours",
        "worksheet",
        "cards",
        "tickets",
    ]
    assert re.findall(r"<article id='(\w+)'>", keys) == ["worksheet_key", "cards_key", "tickets_key"]
    assert sheets.count("Which three weights does the query give?") == 4 and "1/2, 1/2, 0" not in sheets
    assert "1/2, 1/2, 0" in keys and "E6" in sheets
    week, key = handouts.of_session("eight-weeks", 4)
    for text in (week["cards"], key["cards_key"]):
        assert set(re.findall(r"\bE\d\b", text)) == {"E1", "E2", "E3", "E4", "E5"}
    assert "| 40 | **01b looking back**, read and do |" in week["syllabus"] and "07b" in week["syllabus"]
    assert handouts.main(plan="half-day", session=3, to=tmp_path) == 1
    assert "half-day has 1 sessions; there is no session 3" in capsys.readouterr().out
