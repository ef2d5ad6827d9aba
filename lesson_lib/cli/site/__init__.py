"""`make site`: the built notebooks and the instructor's guide as pages for any browser, without a network.

Here the pages are laid out in build/site-source, with pictures as files, links between pages, and a table of
contents; Sphinx (site/conf.py, in .venv-site) makes HTML of them, and the browser a PDF of the parts. What
stands in a page is what is stored in its notebook; only for an explorer's recording are the cells up to it
run (states.py), once for each change of them.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lesson_lib import __version__
from lesson_lib.checks.card import CSS
from lesson_lib.cli import chromium, kinds, lab
from lesson_lib.cli.course import lessons
from lesson_lib.cli.site import front, states
from lesson_lib.cli.site.pages import DRAWN, Layout, cell_links, folds, of_notebook
from lesson_lib.places import ROOT

TOOLS = ROOT / ".venv-site"
FONTS = ROOT / "site" / "_static" / "fonts.css"
ZIP = "attention-course.zip"
# Of the guide: what is held back until a test has been written.
KEPT_BACK = ("assessment/test_a.md", "assessment/test_b.md", "assessment/test_key.md")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "site", metavar="FOLDER")
    parser.add_argument(
        "--still",
        dest="record",
        action="store_const",
        const=(),
        help="run no cell: explorers are pictures (1 minute instead of 4)",
    )


def main(
    *,
    to: Path = ROOT / "build" / "site",
    root: Path = ROOT,
    record: Sequence[str] | None = None,
    kept: Path | None = None,
    book: Sequence[str] | None = None,
) -> int:
    """Lay the pages out and make them; 0, or 1 after a sentence.

    `record` names the notebooks whose explorers are to move (default: all); their recordings are `kept` in
    the user's cache. `book` names the parts that are printed to one PDF (default: all), where there is a
    browser.
    """
    python = TOOLS / "bin" / "python"
    if not python.exists() or not (TOOLS / "node_modules" / "katex").exists():
        print(f"{TOOLS.name} is missing or not complete; run: make site")
        return 1
    source = root / "build" / "site-source"
    names = kinds.built(root, kinds.LEARNERS) if record is None else record
    moving, troubles = states.recorded(names, root, kept or states.folder())
    parts = [one.name for one in lessons(root)] if book is None else book
    parts = parts if chromium.find() else []
    laid = lay_out(root, source, moving, book=bool(parts))
    _assets(source)
    if not zip_of(root, source / "_extra" / ZIP):
        print("git does not answer here: the site has no zip of the course")
    shutil.rmtree(to, ignore_errors=True)
    words = [str(python), "-m", "sphinx", "-q", "-b", "html", "-j", "auto", str(source), str(to)]
    done = subprocess.run(words, capture_output=True, text=True)
    shutil.rmtree(to / ".doctrees", ignore_errors=True)
    told = (done.stdout + done.stderr).strip()
    if told:
        print(told, file=sys.stderr)
    if done.returncode:
        print("The site was not made; what Sphinx says stands above.")
        return 1
    print(print_book(to, parts) if parts else "No PDF of the parts: neither Chromium nor Chrome was found.")
    size = sum(path.stat().st_size for path in to.rglob("*") if path.is_file())
    count = sum(map(len, laid.pages.values()))
    moved = sum(map(len, moving.values()))
    told = f"{count} pages, {len(laid.pictures)} pictures, {moved} recordings, {size / 2**20:.1f} MiB"
    print(f"{to / 'index.html'}: {told}")
    print("".join(f"{trouble}\n" for trouble in troubles), end="", file=sys.stderr)
    return 1 if troubles else 0


def print_book(site: Path, parts: Sequence[str]) -> str:
    """Print the parts to one PDF beside the pages; what came of it, as a sentence."""
    browser = chromium.find() or ""
    words = [str(TOOLS / "bin" / "python"), str(ROOT / "site" / "book.py"), str(site), browser, *parts]
    done = subprocess.run(words, capture_output=True, text=True)
    return (done.stdout.strip() or done.stderr.strip() or "No PDF of the parts.").splitlines()[-1]


def lay_out(
    root: Path,
    source: Path,
    moving: Mapping[str, Sequence[Path]] | None = None,
    *,
    book: bool = False,
) -> Layout:
    """Write the sources of all pages below `source`, which is made anew; `moving` are the recordings of
    explorers, by cell; with a `book` the start page leads to the PDF."""
    shutil.rmtree(source, ignore_errors=True)
    for name in ("pictures", "states"):
        (source / "_extra" / name).mkdir(parents=True)
    moving = moving or {}
    laid = Layout(
        kinds.built(root, ("part",)),
        states={cell: [path.name for path in paths] for cell, paths in moving.items()},
        drawn={cell.id: cell.outputs for cell in _solved(root) if DRAWN.fullmatch(cell.source)},
    )
    for path in (path for paths in moving.values() for path in paths):
        shutil.copyfile(path, source / "_extra" / "states" / path.name)
    names = kinds.built(root)
    read = {name: nbformat.read(root / "notebooks" / f"{name}.ipynb", 4) for name in names}
    told = {name: description(notebook) for name, notebook in read.items()}
    made = {}
    wanted = {cell for notebook in read.values() for cell in cell_links(notebook)}
    for name, notebook in read.items():
        laid.pages.setdefault(kinds.kind_of(name), []).append(name)
        download = source / "_extra" / "notebooks" / f"{name}.ipynb"
        download.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / "notebooks" / f"{name}.ipynb", download)
        made[name] = of_notebook(notebook, name, wanted, source, laid)
    front.openings(made)
    for name, page in made.items():
        path = source / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, path)
    for name in (name for name in lab.lessons(root) if name.endswith(".py")):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(root / "notebooks" / name, source / name)
    laid.pages["guide"] = [*_guide(root, source), *_slides(root, source)]
    first = source / f"{laid.pages['guide'][0]}.md"
    first.write_text(f"{first.read_text('utf-8')}\n\n{front.below(laid.pages['guide'][1:])}\n", "utf-8")
    alone = front.written(root, made, book=book)
    alone["index"] += f"\n{front.menu(lessons(root), laid.pages)}\n"
    alone |= {"library": library(root), "evidence": front.evidence(laid.pages["evidence"])}
    for name, text in alone.items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")
        told[name] = first_words(text)
    (source / "signed.json").write_text(json.dumps(signature(root)), encoding="utf-8")
    (source / "told.json").write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
    for name in ("conf.py", "katex.cjs"):
        shutil.copyfile(ROOT / "site" / name, source / name)
    return laid


def signature(root: Path) -> dict[str, str]:
    """Who wrote the pages, under which licence, in which version, as a line for their foot."""
    about = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = tomllib.loads((root / "course.toml").read_text(encoding="utf-8"))["address"]
    who = ", ".join(one["name"] for one in about["authors"])
    where = f' · <a href="{address}">repository</a>' if address else ""
    line = f"{who} · version {__version__} · code {about['license']}, texts and figures CC BY 4.0{where}"
    return {"line": f'{line} · <a href="https://github.com/pradyunsg/furo">made with Furo</a>'}


def description(notebook: NotebookNode) -> str:
    """A notebook's first words, for whoever meets a link to its page."""
    return first_words(next(c.source for c in notebook.cells if c.cell_type == "markdown"))


def first_words(text: str) -> str:
    """The first paragraph that says something, as plain text of at most 200 characters.

    >>> first_words("# T\\n\\n<p class='lead'>A *short* [text](a.md).</p>\\n\\nMore.")
    'A short text.'
    """
    for block in re.split(r"\n\s*\n", text)[1:]:
        plain = re.sub(r"<[^>]+>|[*`>$]|\[(.*?)\]\([^)]*\)", lambda m: m[1] or "", block)
        plain = " ".join(plain.split())
        if len(plain) > 10 and not block.lstrip().startswith(("```", "<details")):
            return plain if len(plain) <= 200 else f"{plain[:200].rsplit(' ', 1)[0]} ..."
    return ""


def zip_of(root: Path, to: Path) -> bool:
    """Write the course, as git has it, to one zip; False where there is no git to ask."""
    try:
        said = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    names = [name for name in said.stdout.decode("utf-8").split("\0") if name and (root / name).is_file()]
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.write(root / name, f"attention-course/{name}")
    return True


def library(root: Path) -> str:
    """The code of the function that every lesson uses, and of what the lessons print with."""
    shown = {
        "attention": "Attention itself: scores, a mask, softmax, the mixture.",
        "scores": "What compares a query with a key.",
        "masks": "Who may look at what.",
        "show": "How the lessons print tensors.",
        "trace": "The seven steps of the worked example, one by one.",
    }
    text = "# The one function, as code\n\nIn each lesson `attend` stands for the first of these files.\n"
    for name, words in shown.items():
        code = (root / "lesson_lib" / f"{name}.py").read_text(encoding="utf-8")
        text += f"\n## {name}.py\n\n{words}\n\n```python\n{code}```\n"
    return text


def _solved(root: Path) -> Iterator[NotebookNode]:
    """The cells of all solutions."""
    for path in sorted((root / "notebooks" / "solutions").glob("*.ipynb")):
        yield from nbformat.read(path, 4).cells


def _guide(root: Path, source: Path) -> list[str]:
    """Copy the instructor's pages; a link that leaves the site becomes words."""
    folder = root / "notebooks" / "instructor"
    every = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*.md"))}
    pages = {n: p for n, p in every.items() if n not in KEPT_BACK}
    known = {f"instructor/{name}" for name in pages} | {f"{name}.ipynb" for name in kinds.built(root)}
    for name, path in pages.items():
        target = source / "instructor" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = LINK.sub(
            lambda m, at=target.parent: _kept(m, at, source, known), path.read_text(encoding="utf-8")
        )
        target.write_text(folds(text), encoding="utf-8")
    first = ["README.md", *sorted(name for name in pages if name != "README.md")]
    return [f"instructor/{name.removesuffix('.md')}" for name in first]


def _slides(root: Path, source: Path) -> list[str]:
    """Take along the decks that `make slides` has made, with a page that leads to them; nothing where there
    are none."""
    folder = root / "build" / "slides"
    decks = {
        name: folder / f"{name}.html" for name in kinds.built(root) if (folder / f"{name}.html").exists()
    }
    if not decks:
        return []
    shutil.copytree(folder, source / "_extra" / "slides")
    rows = "\n".join(f'<li><a href="slides/{name}.html">{name}</a></li>' for name in decks)
    said = "A deck for each part. S opens what to say, O shows all slides."
    text = f"# Slides\n\n{said}\n\n<ul>\n{rows}\n</ul>\n"
    (source / "slides.md").write_text(text, encoding="utf-8")
    return ["slides"]


def _kept(found: re.Match, at: Path, source: Path, known: set[str]) -> str:
    words, where = found.groups()
    page = where.partition("#")[0]
    if where.startswith(("http:", "https:", "#")):
        return found[0]
    place = Path(os.path.normpath(at / page))
    inside = place.is_relative_to(source) and place.relative_to(source).as_posix() in known
    return found[0] if inside else words


def _assets(source: Path) -> None:
    """Our style, and KaTeX's with its fonts, beside the pages."""
    shutil.copytree(ROOT / "site" / "_static", source / "_static")
    (source / "_static" / "card.css").write_text(CSS, encoding="utf-8")
    katex = TOOLS / "node_modules" / "katex" / "dist"
    (source / "_static" / "katex" / "fonts").mkdir(parents=True)
    shutil.copyfile(katex / "katex.min.css", source / "_static" / "katex" / "katex.min.css")
    for font in katex.glob("fonts/*.woff2"):
        shutil.copyfile(font, source / "_static" / "katex" / "fonts" / font.name)
    (source / "_static" / "fonts").mkdir()
    for font in re.findall(r"fonts/([\w-]+?)(-latin[\w-]+\.woff2)", FONTS.read_text(encoding="utf-8")):
        package = TOOLS / "node_modules" / "@fontsource-variable" / font[0]
        shutil.copyfile(package / "files" / "".join(font), source / "_static" / "fonts" / "".join(font))
        shutil.copyfile(package / "LICENSE", source / "_static" / "fonts" / f"{font[0]}.LICENSE")
    _chinese(source)
    _preview(source / "_extra" / "preview.png")


def _chinese(source: Path) -> None:
    """An open font for the Chinese characters of the pages: the files that hold one of them, and their style
    sheet."""
    package = TOOLS / "node_modules" / "@fontsource" / "noto-sans-sc"
    pages = [
        path.read_text(encoding="utf-8") for path in source.rglob("*") if path.suffix in (".md", ".ipynb")
    ]
    used = {ord(c) for text in pages for c in set(text) if ord(c) >= 0x2E80}
    (source / "_static" / "chinese").mkdir()
    rules = []
    for rule in re.findall(r"@font-face \{.*?\}", (package / "400.css").read_text(encoding="utf-8"), re.S):
        file, *_ = re.findall(r"files/([\w-]+\.woff2)", rule)
        ranges = re.findall(r"U\+([0-9a-f]+)(?:-([0-9a-f]+))?", rule)
        if any(int(low, 16) <= c <= int(high or low, 16) for low, high in ranges for c in used):
            shutil.copyfile(package / "files" / file, source / "_static" / "chinese" / file)
            rules.append(re.sub(r"src:.*?;", f"src: url(chinese/{file}) format('woff2');", rule))
    shutil.copyfile(package / "LICENSE", source / "_static" / "chinese" / "LICENSE")
    (source / "_static" / "chinese.css").write_text("\n".join(rules) + "\n", encoding="utf-8")


def _preview(to: Path) -> None:
    """What a link to a page shows: the seven steps and the course's name, 1200 x 630."""
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (1200, 630), "white")
    steps = Image.open(ROOT / "figures" / "seven_steps.png").convert("RGBA")
    steps.thumbnail((1120, 460))
    picture.paste(steps, ((1200 - steps.width) // 2, 150), steps)
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans-Bold.ttf"
    words = ImageFont.truetype(str(font), 54)
    ImageDraw.Draw(picture).text((40, 50), "Attention, from a guess to the machine", "#0b2545", words)
    picture.save(to, optimize=True)
