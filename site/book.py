"""The parts as one PDF, from the pages of the site: python book.py SITE BROWSER PART... (SITE/attention.pdf)

Bodies of pages become one page without scripts: folds are open, the answers to a part's cards, hints and
solutions stand behind it, a link to a part is one within the book, any other to a page of the site is words.
The browser prints it twice: once to learn on which page each part begins, then with these numbers in the
contents.
"""

import html
import re
import subprocess
import sys
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from pypdf import PdfReader, PdfWriter

PATIENCE_S = 300
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    " --no-pdf-header-footer --generate-pdf-document-outline --export-tagged-pdf"
    " --virtual-time-budget=60000"
).split()
SHEETS = ("katex/katex.min.css", "fonts.css", "chinese.css", "pygments.css", "book.css")


def main(site: Path, browser: str, names: list[str]) -> int:
    """Write attention.pdf into the site; 0, or 1 after a sentence."""
    page, goal = site / "book.html", site / "attention.pdf"
    soups = {name: BeautifulSoup((site / f"{name}.html").read_text("utf-8"), "html.parser") for name in names}
    titles = {name: soup.h1.get_text(strip=True).rstrip("#¶") for name, soup in soups.items()}
    bodies = [body(name, soup.find("article"), set(names)) for name, soup in soups.items()]
    numbers: dict[str, int] = {}
    try:
        for _ in range(2):
            page.write_text(book(titles, bodies, numbers), encoding="utf-8")
            words = [browser, *FLAGS, f"--print-to-pdf={goal}", page.resolve().as_uri()]
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
            if not goal.exists():
                print(f"No PDF: {browser} says {(done.stderr.strip().splitlines() or ['nothing'])[-1][:200]}")
                return 1
            reader = PdfReader(goal)
            places = {str(name).lstrip("/"): to for name, to in reader.named_destinations.items()}
            numbers = {name: reader.get_destination_page_number(places[name]) + 1 for name in names}
    finally:
        page.unlink(missing_ok=True)
    writer = PdfWriter(clone_from=reader)
    writer.add_metadata({"/Title": "One function: attention"})
    writer.write(goal)
    print(f"{goal}: {len(reader.pages)} pages, {goal.stat().st_size / 2**20:.1f} MiB")
    return 0


def body(name: str, article: Tag, names: set[str]) -> str:
    """A part's body for the book."""
    for gone in article.select(".headerlink, .run-it, .sphinx-tabs, script, noscript"):
        gone.decompose()
    for fold in article.find_all("details"):
        fold["open"] = ""
    answers = []
    for number, card in enumerate(article.select(".ll-ask[data-question]"), 1):
        asked = card.find("b")
        if asked is not None:
            asked.string = f"Question {number}."
        if (fold := card.find("details")) is not None:
            fold.find("summary").decompose()
            answers.append(f"<li>{fold.decode_contents()}</li>")
            fold.decompose()
    solved = []
    for turn in article.select(".turn"):
        title = turn.find_previous(["h2", "h3"])
        solved.append(f"<h3>{html.escape(title.get_text(strip=True)) if title else ''}</h3>")
        solved += [str(fold.extract()) for fold in turn.find_all("details")]
    for at in article.find_all(id=True):
        at["id"] = f"{name}--{at['id']}"
    for link in article.find_all("a", href=True):
        where, _, anchor = link["href"].partition("#")
        page = Path(where).name.removesuffix(".html") if "/" not in where else None
        if re.match(r"https?:", link["href"]):
            continue
        if where == "":
            link["href"] = f"#{name}--{anchor}"
        elif page in names:
            link["href"] = f"#{page}--{anchor}" if anchor else f"#{page}"
        else:
            link.unwrap()
    last = ""
    if answers:
        last += f"<h2>Answers to the questions of this part</h2><ol class='answers'>{''.join(answers)}</ol>"
    if solved:
        last += f"<h2>Hints and solutions</h2><div class='turn'>{''.join(solved)}</div>"
    return f"<section class='part' id='{name}'>{article.decode_contents()}{last}</section>"


def book(titles: dict[str, str], bodies: list[str], numbers: dict[str, int]) -> str:
    """One HTML page of all parts, with the contents in front."""
    rows = "".join(
        f"<li><a href='#{name}'><span>{html.escape(title)}</span><i></i>"
        f"<b>{numbers.get(name, 0)}</b></a></li>"
        for name, title in titles.items()
    )
    sheets = "".join(f"<link rel='stylesheet' href='_static/{sheet}'>" for sheet in SHEETS)
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>One function: attention</title>"
        f"{sheets}<body><header><h1>One function: attention</h1><p>The parts of the course, to read on paper."
        " The notebooks run: there you move what is a picture here, write, and are told what is wrong."
        " Answers, hints and solutions stand behind each part.</p>"
        f"<h2>Contents</h2><ol class='contents'>{rows}</ol></header>{''.join(bodies)}</body></html>"
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
