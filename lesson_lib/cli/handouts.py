"""`make handouts PLAN=half-day`: what one session needs on paper, and its keys in a second file; or chosen
pages. Each as a page with its formulas, and as a PDF where there is a Chromium or Chrome."""

import argparse
import html
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lesson_lib.cli import chromium, course, plans
from lesson_lib.cli.plans import Plan, Session
from lesson_lib.cli.slides import SlidesError, copy_assets
from lesson_lib.places import ROOT

FOLDERS = ("room", "assessment")  # folders beside the instructor's guides
ROOM = ("worksheet", "exit_tickets", "cards")  # what any session may need
CUT = '<div style="page-break-after: always"></div>'
LETTERS = "| | |\n|---|---|\n" + "\n".join(
    f"| <b class='letter'>{a}</b> | <b class='letter'>{b}</b> |" for a, b in ("ab", "cd")
)
COLOURS = """| | |
|---|---|
| <b class='letter works'>we work</b> | <b class='letter help'>come here</b> |"""
PATIENCE_S = 120
STYLE = """
@page { size: A4; margin: 15mm 16mm 16mm; @bottom-right { content: counter(page); font: 9pt sans-serif } }
body { font: 10.5pt/1.4 "Segoe UI", "DejaVu Sans", Arial, "Noto Sans CJK SC", sans-serif; max-width: 178mm; margin: auto; color: #000 }
article + article { break-before: page }
h1 { font-size: 18pt; margin: 0 0 3mm } h2 { font-size: 14pt; margin: 6mm 0 2mm } h3 { font-size: 12pt; margin: 5mm 0 1mm }
h1, h2, h3, p:has(+ table) { break-after: avoid } p { margin: 2mm 0 }
table { border-collapse: collapse; margin: 2mm 0 3mm } tr, table.small { break-inside: avoid }
th, td { border: .6pt solid #555; padding: 1mm 1.8mm; text-align: left; vertical-align: top } th { background: #eee }
code, pre { font: 9.5pt "DejaVu Sans Mono", Consolas, Menlo, monospace } p > code:only-child { white-space: pre-wrap }
.katex { font-size: 1.05em }
.anchor-link { display: none } .letter { display: block; width: 76mm; font-size: 90pt; line-height: 100mm; text-align: center }
.works, .help { font-size: 26pt } .works { background: #cfe3f5 } .help { background: #f6d5c3 }
#tickets table { font-size: 9pt } #worksheet { font-size: 9pt } #worksheet table { font-size: 8.6pt; line-height: 1.3 } #worksheet th, #worksheet td { padding: .5mm 1.6mm }
"""  # noqa: E501
SCRIPT = """
renderMathInElement(document.body, { throwOnError: false, delimiters: [
  { left: "$$", right: "$$", display: true }, { left: "$", right: "$", display: false }] });
document.querySelectorAll("thead").forEach((e) => e.textContent.trim() || e.remove());
document.querySelectorAll("details").forEach((e) => { e.open = true; });
document.querySelectorAll("table").forEach((e) => e.rows.length <= 9 && e.classList.add("small"));
"""


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="such as worksheet or test_a (default: the room's)"
    )
    parser.add_argument("--plan", default="", help="what a session of this plan needs: half-day ...")
    parser.add_argument("--session", type=int, default=1, help="which session of it (default: the first)")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "handouts", metavar="FOLDER")


def main(
    names: Sequence[str] = (), *, plan: str = "", session: int = 1, to: Path = Path("build/handouts")
) -> int:
    """Write handouts.html and handouts.pdf: what a session of a plan needs, with keys.pdf beside it, or the
    pages named (`test_a`), or all sheets of a room; 0, or 1 after a sentence."""
    to = Path(to).resolve()
    try:
        if plan:
            sheets, keys = of_session(plan, session)
            files = {"handouts": sheets, "keys": keys}
        else:
            files = {"handouts": {name: read(name) for name in names or ROOM}}
        copy_assets(to, only="katex")
    except (SlidesError, LookupError, ValueError) as error:
        print(error.args[0])
        return 1
    wrong = 0
    for name, pages in files.items():
        written = to / f"{name}.html"
        written.write_text(page(pages), encoding="utf-8")
        print(f"{written}: {', '.join(pages)}")
        wrong |= printed(written)
    return wrong


def of_session(name: str, number: int) -> tuple[dict[str, str], dict[str, str]]:
    """The sheets of one session of a plan, and their keys. Raises ValueError where there is no such
    session."""
    plan = plans.read(name)
    if not 0 < number <= len(plan.held):
        raise ValueError(f"{plan.name} has {len(plan.held)} sessions; there is no session {number}")
    held = plan.held[number - 1]
    cards, tickets = read("cards"), read("exit_tickets")
    sheets, keys = {}, {}
    if any(row.starred for row in held.rows):
        sheets["letters"] = f"# Cards to vote with\n\n{LETTERS}"
    sheets["colours"] = f"# For the screen\n\n{COLOURS}"
    if any("worksheet.md" in row.what for row in held.rows):
        *parts, keys["worksheet_key"] = read("worksheet").split(CUT)
        sheets["worksheet"] = CUT.join(parts)
    taught = {row.lesson for session in plan.held[:number] for row in session.rows}
    rows = [row for row in re.findall(r"^\| \*\*[ES]\d.*$", cards, re.M) if _fits(row, taught)]
    early = [
        answer for answer in re.findall(r"^- \*\*E\d\.\*\* .*$", cards, re.M) if answer[4:6] in "".join(rows)
    ]
    sheets["cards"] = "# Cards: early, and stuck\n\n| | |\n|---|---|\n" + "\n".join(rows)
    if early:
        keys["cards_key"] = "## Answers to the early cards\n\n" + "\n".join(early)
    title = _ticket(plan, held)
    if found := re.search(rf"^### {re.escape(title)}\n(.*?)(?=^###|^<div)", tickets, re.M | re.S):
        sheets["tickets"] = f"# {title}: tickets, to cut\n" + 4 * found[1]
        (answer,) = re.findall(rf"^- \*\*{re.escape(title)}\.\*\*.*?(?=^- |\n\n)", tickets, re.M | re.S)
        keys["tickets_key"] = f"## Answer to line 1\n\n{answer}"
    if syllabus := _syllabus(plan):
        sheets["syllabus"] = syllabus
    return sheets, keys


def _fits(card: str, taught: set[str]) -> bool:
    """A card for the stuck fits always, an early one where all parts are taught that it comes after."""
    early = re.match(r"\| \*\*E\d · after (.*?)\*\*", card)
    return early is None or set(re.findall(r"\d\d[a-z]?", early[1])) <= taught


def _ticket(plan: Plan, held: Session) -> str:
    if len(plan.held) == 1:
        return plan.title
    week = held.title.partition(" · ")[0]
    return week if week.startswith("Week") else f"{plan.title}, {week.lower()}"


def _syllabus(plan: Plan) -> str:
    """For students: what is done at home after each session; '' where a plan has no homework."""
    home = [session for session in plan.sessions if session.home and not session.optional]
    titles = {lesson.number: f"**{lesson.number} {lesson.title}**, " for lesson in course.lessons()}
    text = f"# {plan.title}: at home\n"
    for session in home:
        text += f"\n## {session.title}, {session.together} minutes\n\n"
        text += "| about | what | sections | exercises |\n|---|---|---|---|\n"
        for row in session.rows:
            what = f"{titles.get(row.lesson, '')}{row.what}"
            text += f"| {row.minutes} | {what} | {', '.join(row.sections)} | {', '.join(row.exercises)} |\n"
    return text if home else ""


def known() -> dict[str, Path]:
    """The pages that can be printed, by their names."""
    folder = ROOT / "notebooks" / "instructor"
    return {path.stem: path for name in FOLDERS for path in sorted((folder / name).glob("*.md"))}


def read(name: str) -> str:
    """The text of one page. Raises LookupError with a sentence for a name that none has."""
    if name not in known():
        raise LookupError(f"no page to print is called {name!r}; there are {', '.join(known())}")
    return known()[name].read_text(encoding="utf-8")


def page(texts: Mapping[str, str]) -> str:
    """One HTML page of named texts in markdown, each beginning on a sheet of its own; a link is its words."""
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    title = html.escape(re.sub(r"^# ", "", next(iter(texts.values())).partition("\n")[0]))
    plain = {name: re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text) for name, text in texts.items()}
    bodies = [f"<article id='{name}'>{markdown2html_mistune(text)}</article>" for name, text in plain.items()]
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        f"<title>{title}</title><link rel='stylesheet' href='assets/katex/katex.min.css'>"
        f"<style>{STYLE}</style><body>{''.join(bodies)}"
        "<script src='assets/katex/katex.min.js'></script>"
        f"<script src='assets/katex/auto-render.min.js'></script><script>{SCRIPT}</script></body></html>"
    )


def printed(written: Path) -> int:
    """Make the PDF beside a page, and say so; without a browser, what to do instead."""
    browser = chromium.find()
    if browser is None:
        print("No PDF: neither Chromium nor Chrome was found. Open that page in a browser, and print it.")
        return 0
    goal = written.with_suffix(".pdf")
    goal.unlink(missing_ok=True)
    words = [browser, "--headless", *chromium.FLAGS, "--no-pdf-header-footer", f"--print-to-pdf={goal}"]
    try:
        done = subprocess.run([*words, written.as_uri()], capture_output=True, text=True, timeout=PATIENCE_S)
        reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if not goal.exists():
        print(
            f"No PDF: {browser} did not print it ({reason[:200]}). Open that page in a browser, and print it."
        )
        return 1
    print(goal)
    return 0
