"""`make slides`: the decks of parts, notebooks/decks, or a plan's sessions, as pages of slides that need no
network."""

import argparse
import html
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lesson_lib.cli import kinds, plans
from lesson_lib.cli.slides.export import page
from lesson_lib.cli.slides.session import assembled
from lesson_lib.places import ROOT

HERE = Path(__file__).parent
FONTS = ROOT / "site" / "_static" / "fonts.css"
# Where it comes from in node_modules -> where it goes in assets/.
ASSETS = {
    "reveal.js/dist/reveal.js": "reveal/reveal.js",
    "reveal.js/dist/reveal.css": "reveal/reveal.css",
    "reveal.js/dist/plugin/notes.js": "reveal/notes.js",
    "reveal.js/LICENSE": "reveal/LICENSE",
    "katex/dist/katex.min.js": "katex/katex.min.js",
    "katex/dist/contrib/auto-render.min.js": "katex/auto-render.min.js",
    "katex/dist/katex.min.css": "katex/katex.min.css",
    "katex/LICENSE": "katex/LICENSE",
}


class SlidesError(Exception):
    """Slides that cannot be made, in one sentence with the repair."""


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="02 (a chapter), 02a (a part), a full name (default: all)"
    )
    parser.add_argument(
        "--plan", default="", help="a deck for each session of a plan: half-day, two-days, eight-weeks"
    )
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "slides", metavar="FOLDER")


def main(names: Sequence[str] = (), *, plan: str = "", to: Path = Path("build/slides")) -> int:
    """Write the slides of all decks, of those named (03_matrix_form or 03), or of a plan's sessions
    (half-day), and index.html; 0, or 1 after a sentence."""
    try:
        copy_assets(to)
        for name, made in of_plan(plan) if plan else of_parts(names):
            (to / f"{name}.html").write_text(page(made), encoding="utf-8")
            print(f"{to / name}.html: {count(made)} slides")
        write_index(to)
    except SlidesError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Open {to / 'index.html'} in a browser.")
    return 0


def of_parts(names: Sequence[str] = (), root: Path = ROOT) -> Iterator[tuple[str, NotebookNode]]:
    """The built decks of these parts (02a, 02 for a chapter, a full name), or all. Raises SlidesError where
    there is none."""
    every = [name.removeprefix("decks/") for name in kinds.built(root, ("deck",))]
    chosen = every if not names else []
    for asked in names:
        fits = kinds.fitting(asked, every)
        if not fits:
            told = f"no deck is called {asked!r}; there are {', '.join(every) or 'none: make notebooks'}"
            raise SlidesError(f"{told}. A part without a deck is taught from its notebook.")
        chosen += [name for name in fits if name not in chosen]
    yield from ((name, _read(name, root)) for name in chosen)


def of_plan(name: str, root: Path = ROOT) -> Iterator[tuple[str, NotebookNode]]:
    """A deck for each session of a plan that is held. Raises SlidesError where there is no such plan."""
    try:
        plan = plans.read(name, root)
    except ValueError as error:
        raise SlidesError(str(error)) from None
    decks = {kinds.number_of(one): one.removeprefix("decks/") for one in kinds.built(root, ("deck",))}
    for number, session in enumerate(plan.held, 1):
        taken = dict.fromkeys(row.lesson for row in session.rows if row.lesson in decks)
        made = assembled(plan, session, {part: _read(decks[part], root) for part in taken})
        yield f"{plan.name}-{number}" if len(plan.held) > 1 else plan.name, made


def count(made: NotebookNode) -> int:
    """How many slides a deck has."""
    types = [cell.metadata.get("slideshow", {}).get("slide_type") for cell in made.cells]
    return types.count("slide") + types.count("subslide")


def copy_assets(to: Path, root: Path = ROOT, *, only: str = "") -> None:
    """Copy reveal.js, KaTeX and fonts, and our own style and script to `to`/assets, or `only` one of these
    ("katex"). Raises SlidesError where they are missing."""
    places = (Path(sys.prefix) / "node_modules", root / ".venv-class" / "node_modules")
    modules = next((p for p in places if all((p / name).exists() for name in ASSETS)), None)
    if modules is None:
        raise SlidesError(f"reveal.js or KaTeX is missing in {places[-1]}; run: make setup-class")
    wanted = {modules / source: goal for source, goal in ASSETS.items()}
    # the format that every browser of today reads
    wanted |= {font: f"katex/fonts/{font.name}" for font in (modules / "katex/dist/fonts").glob("*.woff2")}
    for package, file in re.findall(r"fonts/([\w-]+?)(-latin[\w-]+\.woff2)", FONTS.read_text("utf-8")):
        folder = modules / "@fontsource-variable" / package
        wanted[folder / "files" / f"{package}{file}"] = f"fonts/{package}{file}"
        wanted[folder / "LICENSE"] = f"fonts/{package}.LICENSE"
    wanted |= {FONTS: "fonts.css", HERE / "deck.css": "deck.css", HERE / "deck.js": "deck.js"}
    wanted = {source: goal for source, goal in wanted.items() if goal.startswith(only)}
    for source, goal in wanted.items():
        (to / "assets" / goal).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to / "assets" / goal)


def write_index(to: Path) -> None:
    """Write `to`/index.html, a list of all decks that lie there."""
    rows = ""
    for path in sorted(p for p in to.glob("*.html") if p.stem != "index"):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"<title>(.*?)</title>", text, re.S)[1]
        rows += f'<li><a href="{html.escape(path.name)}">{title}</a></li>\n'
    made = (HERE / "index.html").read_text(encoding="utf-8").replace("ROWS", rows)
    (to / "index.html").write_text(made, encoding="utf-8")


def _read(name: str, root: Path) -> NotebookNode:
    path = root / "notebooks" / "decks" / f"{name}.ipynb"
    try:
        return nbformat.read(path, 4)
    except (OSError, ValueError) as error:  # nbformat's errors about a broken file are ValueErrors
        raise SlidesError(f"{path.name} cannot be read ({error}); run: make notebooks") from None
