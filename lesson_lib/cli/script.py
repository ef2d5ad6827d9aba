"""`make script PLAN=half-day`: a session on paper, to hold in the hand. Each slide small, and beside it the
clock, what to say, what is behind each wrong letter; on the second slide what falls when it gets late."""

import argparse
import html
import subprocess
import sys
from pathlib import Path

from nbformat import NotebookNode

from lesson_lib.checks.short_answers import Number
from lesson_lib.cli import chromium, deck, room_questions
from lesson_lib.cli.slides import SlidesError, copy_assets, of_plan
from lesson_lib.cli.slides.export import page
from lesson_lib.cli.slides.session import asks, slides_of
from lesson_lib.places import ROOT

PATIENCE_S = 120
STYLE = """
@page { size: A4; margin: 11mm 12mm; @bottom-right { content: counter(page); font: 8pt sans-serif; } }
body { font: 8.6pt/1.32 "Course Sans", Arial, sans-serif; color: #111; } html, body { height: auto; }
.row { display: grid; grid-template-columns: 66mm 1fr; gap: 4mm; padding: 1.6mm 0; }
.row { break-inside: avoid; border-top: .4pt solid #99a; }
.small { width: 64mm; height: 36mm; overflow: hidden; border: .5pt solid #667; position: relative; }
.small .reveal { width: 1280px; height: 720px; transform: scale(.189); transform-origin: 0 0; }
.small section { display: flex !important; visibility: visible !important; position: relative; }
.small .timer { top: 40px; bottom: auto; } .small section > :not(.timer) { zoom: .86; }
.row p { margin: 0 0 .8mm; } .row ul { margin: 0; padding-left: 4mm; } .row li { margin: 0; }
.fragment { opacity: 1 !important; visibility: visible !important; }
"""


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("plan", help="half-day, two-days or eight-weeks: a page for each session")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "script", metavar="FOLDER")


def main(plan: str, *, to: Path = Path("build/script")) -> int:
    """Write a page for each session of a plan, and its PDF where there is a browser; 0, or 1 after a
    sentence."""
    try:
        copy_assets(to)
        for name, made in of_plan(plan):
            written = to / f"{name}.html"
            written.write_text(script(made), encoding="utf-8")
            print(_printed(written))
    except SlidesError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def script(made: NotebookNode) -> str:
    """The HTML of a session's script, beside the folder `assets` of slides."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page(made), "html.parser")
    rows = []
    for section, slide in zip(soup.select("section > section"), slides_of(made), strict=True):
        notes = [aside.extract() for aside in section.select("aside.notes")]
        said = "".join(aside.decode_contents() for aside in notes)
        wrong = "".join(
            f"<li>{html.escape(line)}</li>" for name in sorted(asks(slide)) for line in wrong_of(name)
        )
        small = f'<div class="small"><div class="reveal"><div class="slides">{section}</div></div></div>'
        rows.append(f'<div class="row">{small}<div>{said}{f"<ul>{wrong}</ul>" if wrong else ""}</div></div>')
    sheets = "".join(
        f'<link rel="stylesheet" href="assets/{name}">'
        for name in ("katex/katex.min.css", "fonts.css", "deck.css")
    )
    scripts = "".join(
        f'<script src="assets/{name}"></script>'
        for name in ("katex/katex.min.js", "katex/auto-render.min.js", "deck.js")
    )
    title = html.escape(made.metadata.get("title", "Script"))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{sheets}'
        f"<style>{STYLE}</style></head><body>{''.join(rows)}{scripts}</body></html>"
    )


def wrong_of(name: str) -> list[str]:
    """What is behind each wrong answer to a question, a line each: a) taken for ...; before a number's, the
    right one."""
    known = room_questions.read()
    if name in known:
        return [f"{letter}) {why}" for letter, why in known[name].wrong.items()]
    exercise = deck.exercises()[name]
    slips = exercise.slips
    if isinstance(exercise, Number):
        return [f"right: {exercise.answer}", *(f"{wrong}: {slip}" for slip, wrong in slips.items())][:4]
    return [
        f"{wrong}) {slip}" if isinstance(wrong, str) and len(wrong) == 1 else slip
        for slip, wrong in slips.items()
    ][:3]


def _printed(written: Path) -> str:
    goal, browser = written.with_suffix(".pdf"), chromium.find()
    if browser is None:
        return f"{written} (no PDF: neither Chromium nor Chrome was found; print it from a browser)"
    flags = ["--headless", *chromium.FLAGS, "--no-pdf-header-footer", "--virtual-time-budget=20000"]
    words = [browser, *flags, f"--print-to-pdf={goal}", written.resolve().as_uri()]
    subprocess.run(words, capture_output=True, timeout=PATIENCE_S, check=False)
    return str(goal) if goal.exists() else f"{written} (no PDF: the browser did not print it)"
