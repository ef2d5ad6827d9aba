"""`make handouts`: what is printed for a room as one page with its formulas, and as a PDF where there is a
Chromium or Chrome."""

import argparse
import html
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lesson_lib.cli import chromium
from lesson_lib.cli.slides import SlidesError, copy_assets
from lesson_lib.cli.slides.text import Words
from lesson_lib.places import ROOT

FOLDERS = ("room", "assessment")  # folders beside the instructor's guides
ROOM = ("worksheet", "exit_tickets", "cards", "away")  # what a session needs
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
#worksheet { font-size: 9pt } #worksheet table { font-size: 8.6pt; line-height: 1.3 } #worksheet th, #worksheet td { padding: .5mm 1.6mm }
"""  # noqa: E501
SCRIPT = """
document.querySelectorAll(".tex").forEach((e) =>
  katex.render(e.textContent, e, { displayMode: e.hasAttribute("data-display"), throwOnError: false }));
document.querySelectorAll("thead").forEach((e) => e.textContent.trim() || e.remove());
document.querySelectorAll("details").forEach((e) => { e.open = true; });
document.querySelectorAll("table").forEach((e) => e.rows.length <= 9 && e.classList.add("small"));
"""


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="such as worksheet or test_a (default: the room's)"
    )
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "handouts", metavar="FOLDER")


def main(names: Sequence[str] = (), *, to: Path = Path("build/handouts")) -> int:
    """Write handouts.html and handouts.pdf: the sheets of a room, or the pages named (`test_a`); 0, or 1
    after a sentence."""
    to = Path(to).resolve()
    try:
        pages = {name: read(name) for name in names or ROOM}
        copy_assets(to, only="katex")
    except (SlidesError, LookupError) as error:
        print(error.args[0])
        return 1
    written = to / "handouts.html"
    written.write_text(page(pages), encoding="utf-8")
    print(f"{written}: {len(pages)} pages of the guide")
    return printed(written)


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
    """One HTML page of named texts in markdown, each beginning on a sheet of its own."""
    title = html.escape(re.sub(r"^# ", "", next(iter(texts.values())).partition("\n")[0]))
    bodies = [f"<article id='{name}'>{Words().page(text)}</article>" for name, text in texts.items()]
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        f"<title>{title}</title><link rel='stylesheet' href='assets/katex/katex.min.css'>"
        f"<style>{STYLE}</style><body>{''.join(bodies)}"
        f"<script src='assets/katex/katex.min.js'></script><script>{SCRIPT}</script></body></html>"
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
