"""`make slides`: every built part, or a plan's sessions, as reveal.js slides that need no network, with notes
to speak from."""

import argparse
import html
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.cli import kinds, plans
from lesson_lib.cli.slides.deck import deck, number_and_title
from lesson_lib.cli.slides.notes import read_guide
from lesson_lib.cli.slides.session import session_decks
from lesson_lib.cli.slides.slide import Deck
from lesson_lib.places import ROOT

HERE = Path(__file__).parent
# Where it comes from in node_modules -> where it goes in assets/.
ASSETS = {
    "reveal.js/dist/reveal.js": "reveal/reveal.js",
    "reveal.js/dist/reveal.css": "reveal/reveal.css",
    "reveal.js/dist/plugin/notes.js": "reveal/notes.js",
    "reveal.js/LICENSE": "reveal/LICENSE",
    "katex/dist/katex.min.js": "katex/katex.min.js",
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
    """Write the slides of all built parts, of those named (03_matrix_form or 03), or of a plan's sessions
    (half-day), and index.html; 0, or 1 after a sentence."""
    try:
        copy_assets(to)
        made = [read(path) for path in chosen(names)] if not plan else of_plan(plan)
        for one in made:
            write(one, to)
            print(f"{to / one.name}.html: {count(one)} slides")
        write_index(to)
    except SlidesError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Open {to / 'index.html'} in a browser.")
    return 0


def of_plan(name: str, root: Path = ROOT) -> list[Deck]:
    """A deck for each session of a plan. Raises SlidesError where there is no such plan."""
    try:
        plan = plans.read(name, root)
    except ValueError as error:
        raise SlidesError(str(error)) from None
    return session_decks(plan, lambda part: read(root / "notebooks" / f"{part}.ipynb"))


def chosen(names: Sequence[str] = (), root: Path = ROOT) -> list[Path]:
    """The built parts with these names (02a_soft_look_up, 02a, or 02 for a chapter), and 00; all without
    names. Raises SlidesError where there is none."""
    every = [name for name in kinds.built(root, ("page", "part")) if kinds.number_of(name)]
    if not every:
        raise SlidesError("notebooks/ holds no built lesson; run: make notebooks")
    found: list[str] = []
    for asked in names:
        fits = kinds.fitting(asked, every)
        if not fits:
            raise SlidesError(f"no built lesson is called {asked!r}; there are {', '.join(every)}")
        found += [name for name in fits if name not in found]
    return [root / "notebooks" / f"{name}.ipynb" for name in found or every]


def read(path: Path) -> Deck:
    """The slides of one built lesson, with the notes that its instructor's file gives. Raises SlidesError."""
    import nbformat

    try:
        notebook = nbformat.read(path, 4)
    except (OSError, ValueError) as error:  # nbformat's errors about a broken file are ValueErrors
        raise SlidesError(f"{path.name} cannot be read ({error}); run: make notebooks") from None
    return deck(path.stem, notebook, read_guide(path.parent / "instructor", path.stem))


def write(made: Deck, to: Path) -> None:
    """Write a deck to `to`/NAME.html."""
    to.mkdir(parents=True, exist_ok=True)
    (to / f"{made.name}.html").write_text(page(made), encoding="utf-8")


def page(made: Deck) -> str:
    """The HTML of one deck."""
    number, title = number_and_title(made)
    plain = html.escape(html.unescape(re.sub("<.*?>", "", f"{number} {title}".strip())))
    return (
        _templates()
        .get_template("page.html")
        .render(deck=made, number=number, title=title, plain_title=plain)
    )


def count(made: Deck) -> int:
    """How many slides a deck has, its title included."""
    return 1 + len(made.slides)


def copy_assets(to: Path, root: Path = ROOT, *, only: str = "") -> None:
    """Copy reveal.js, KaTeX with its fonts, and our own style and script to `to`/assets, or `only` one of
    these ("katex"). Raises SlidesError where they are missing."""
    places = (Path(sys.prefix) / "node_modules", root / ".venv-class" / "node_modules")
    modules = next((p for p in places if all((p / name).exists() for name in ASSETS)), None)
    if modules is None:
        raise SlidesError(f"reveal.js or KaTeX is missing in {places[-1]}; run: make setup-class")
    wanted = {modules / source: goal for source, goal in ASSETS.items()}
    # the format that every browser of today reads
    fonts = sorted((modules / "katex/dist/fonts").glob("*.woff2"))
    wanted |= {font: f"katex/fonts/{font.name}" for font in fonts}
    wanted |= {HERE / name: name for name in ("slides.css", "slides.js")}
    wanted = {source: goal for source, goal in wanted.items() if goal.startswith(only)}
    for source, goal in wanted.items():
        (to / "assets" / goal).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to / "assets" / goal)


def write_index(to: Path) -> None:
    """Write `to`/index.html, a list of all decks that lie there."""
    rows = []
    for path in sorted(p for p in to.glob("*.html") if p.stem != "index"):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"<title>(.*?)</title>", text, re.S)[1]
        minutes = re.search(r'<p class="meta">About (\d+) minutes', text)
        rows.append(
            (path.stem, title, len(re.findall(r'<div class="slide[" ]', text)), minutes[1] if minutes else "")
        )
    made = _templates().get_template("index.html").render(decks=rows)
    (to / "index.html").write_text(made, encoding="utf-8")


def _templates():
    import jinja2

    from lesson_lib.cli.slides.outputs import highlighted

    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=False, undefined=jinja2.StrictUndefined
    )
    found.filters["highlighted"] = highlighted
    return found
