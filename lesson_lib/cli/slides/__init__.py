"""`make slides`: every built lesson as reveal.js slides that need no network, with notes for the speaker."""

import html
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.cli import kinds
from lesson_lib.cli.slides.deck import deck
from lesson_lib.cli.slides.maker import SHOWN
from lesson_lib.cli.slides.notes import read_guide
from lesson_lib.cli.slides.slide import Deck

ROOT = Path(__file__).resolve().parents[3]
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


def main(names: Sequence[str] = (), *, to: Path = Path("build/slides")) -> int:
    """Write the slides of all built lessons, or of those named (03_matrix_form or 03), and index.html; 0, or
    1 after a sentence."""
    try:
        lessons = chosen(names)
        copy_assets(to)
        for path in lessons:
            made = write(path, to)
            print(f"{to / path.stem}.html: {count(made)} slides")
        write_index(to)
    except SlidesError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Open {to / 'index.html'} in a browser.")
    return 0


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


def write(path: Path, to: Path) -> Deck:
    """Write the slides of one built lesson to `to`/NN_name.html, and return them."""
    made = read(path)
    to.mkdir(parents=True, exist_ok=True)
    (to / f"{path.stem}.html").write_text(page(made), encoding="utf-8")
    return made


def page(made: Deck) -> str:
    """The HTML of one deck."""
    number, title = number_and_title(made)
    return (
        _templates()
        .get_template("page.html")
        .render(
            deck=made,
            number=number,
            title=title,
            plain_title=html.escape(html.unescape(re.sub("<.*?>", "", f"{number} {title}"))),
            opening_notes=made.opening_notes,
            shown=SHOWN,
        )
    )


def number_and_title(made: Deck) -> tuple[str, str]:
    """The lesson's number and its title, of '03 · Matrix form: how ...'."""
    number, dot, title = made.title.partition(" · ")
    return (number, title) if dot else (kinds.number_of(made.name), made.title or made.name)


def count(made: Deck) -> int:
    """How many slides a deck has, its title included."""
    return 1 + sum(len(section.slides) for section in made.sections)


def copy_assets(to: Path, root: Path = ROOT) -> None:
    """Copy reveal.js, KaTeX with its fonts, and our own style and script to `to`/assets. Raises SlidesError
    where they are missing."""
    places = (Path(sys.prefix) / "node_modules", root / ".venv-class" / "node_modules")
    modules = next((p for p in places if all((p / name).exists() for name in ASSETS)), None)
    if modules is None:
        raise SlidesError(f"reveal.js or KaTeX is missing in {places[-1]}; run: make setup-class")
    wanted = {modules / source: goal for source, goal in ASSETS.items()}
    # the format that every browser of today reads
    fonts = sorted((modules / "katex/dist/fonts").glob("*.woff2"))
    wanted |= {font: f"katex/fonts/{font.name}" for font in fonts}
    wanted |= {HERE / name: name for name in ("slides.css", "slides.js")}
    for source, goal in wanted.items():
        (to / "assets" / goal).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to / "assets" / goal)


def write_index(to: Path) -> None:
    """Write `to`/index.html, a list of all decks that lie there."""
    rows = []
    for path in sorted(p for p in to.glob("*.html") if kinds.number_of(p.stem)):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"<title>(.*?)</title>", text, re.S)[1]
        minutes = re.search(r'<p class="meta">About (\d+) minutes', text)
        rows.append((path.stem, title, text.count('<div class="slide">'), minutes[1] if minutes else ""))
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
