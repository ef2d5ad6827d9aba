"""`make site`: the built notebooks and the instructor's guide as pages for any browser, without a network.

Here the pages are laid out in build/site-source, with pictures as files, links between pages, and a table of
contents; Sphinx (site/conf.py, in .venv-site) makes HTML of them. No notebook is executed.
"""

import base64
import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from lesson_lib.cli import kinds

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".venv-site"
CORE = "●"
ZIP = "attention-course.zip"
# Of the guide: what is held back until a test has been written.
KEPT_BACK = ("assessment/test_a.md", "assessment/test_b.md", "assessment/test_key.md")
LEFT_OUT = ("spoken",)  # keys to slides, not to be read alone
ROW = re.compile(
    r"^\| (\d\d[a-z]?)( ●)? \| \[[^\]]*\]\(notebooks/([\w/]+)\.ipynb\) \| ([^|]+) \| (\d+) \|", re.M
)
TO_CELL = re.compile(r"""(href=["'])([\w/.]*?)\.ipynb(?:#cell-id=(\w+))?(["'])""")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
LIVE = re.compile(
    r"SoftmaxExplorer\(\(([\d., -]+)\), names=\(([^)]*)\)\)"
)  # what a script in the page can draw
SETUP = re.compile(r"(import|from) \w")  # a cell that begins with imports
QUIET = re.compile(r"\s*(predict|warm_up|review)\(")  # what is asked stands in the output


@dataclass(frozen=True)
class Lesson:
    """A row of the README's table: a part, or a page that belongs to the way."""

    number: str
    name: str
    question: str
    minutes: int
    core: bool

    @property
    def asks(self) -> str:
        """The question as a title."""
        return self.question[:1].upper() + self.question[1:]


@dataclass
class Laid:
    """What was laid out: the pages by kind, the pictures that they share."""

    pages: dict[str, list[str]] = field(default_factory=dict)
    pictures: set[str] = field(default_factory=set)


def main(*, to: Path = ROOT / "build" / "site", root: Path = ROOT) -> int:
    """Lay the pages out and make them; 0, or 1 after a sentence."""
    python = TOOLS / "bin" / "python"
    if not python.exists() or not (TOOLS / "node_modules" / "katex").exists():
        print(f"{TOOLS.name} is missing or not complete; run: make site")
        return 1
    source = root / "build" / "site-source"
    laid = lay_out(root, source)
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
    size = sum(path.stat().st_size for path in to.rglob("*") if path.is_file())
    count = sum(map(len, laid.pages.values()))
    print(f"{to / 'index.html'}: {count} pages, {len(laid.pictures)} pictures, {size / 2**20:.1f} MiB")
    return 0


def lessons(root: Path = ROOT) -> list[Lesson]:
    """The way through the course, as the README's table has it."""
    text = (root / "README.md").read_text(encoding="utf-8")
    return [
        Lesson(n, name, asked.strip(), int(m), bool(core)) for n, core, name, asked, m in ROW.findall(text)
    ]


def lay_out(root: Path, source: Path) -> Laid:
    """Write the sources of all pages below `source`, which is made anew."""
    shutil.rmtree(source, ignore_errors=True)
    (source / "_extra" / "pictures").mkdir(parents=True)
    laid = Laid()
    names = kinds.built(root)
    read = {name: nbformat.read(root / "notebooks" / f"{name}.ipynb", 4) for name in names}
    wanted = {found[2] for nb in read.values() for text in _texts(nb) for found in _cell_links(text)}
    for name, notebook in read.items():
        laid.pages.setdefault(kinds.kind_of(name), []).append(name)
        download = source / "_extra" / "notebooks" / f"{name}.ipynb"
        download.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / "notebooks" / f"{name}.ipynb", download)
        page = of_notebook(notebook, name, wanted, source, laid)
        path = source / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, path)
    laid.pages["guide"] = _guide(root, source)
    (source / "index.md").write_text(index(lessons(root), laid), encoding="utf-8")
    for name in ("conf.py", "katex.cjs"):
        shutil.copyfile(ROOT / "site" / name, source / name)
    return laid


def of_notebook(
    notebook: NotebookNode, name: str, wanted: set[str], source: Path, laid: Laid
) -> NotebookNode:
    """A built notebook as the source of a page: anchors at the cells that are linked to, pictures as
    files."""
    up = "../" * name.count("/")
    cells = []
    for cell in notebook.cells:
        if cell.id in wanted:
            cells.append(new_markdown_cell(f'<span id="{cell.id}"></span>', id=f"at-{cell.id}"))
        if cell.cell_type == "markdown":
            cell.source = folds(cell.source)
        else:
            cell.outputs = [_output(output, up, source, laid) for output in cell.outputs]
            if found := LIVE.fullmatch(cell.source.strip()):
                cell.outputs = [_live(found, cell.outputs)]
            tags = set(cell.metadata.get("tags", ()))
            tags |= {"remove-input"} if QUIET.match(cell.source) or found else set()
            if SETUP.match(cell.source):
                tags.add("hide-input")
                cell.outputs = [] if "warm_up()" in cell.source else cell.outputs
            cell.metadata["tags"] = sorted(tags)
        cells.append(cell)
    first = next(i for i, c in enumerate(cells) if c.cell_type == "markdown" and c.source.startswith("# "))
    cells.insert(first + 1, new_markdown_cell(_run_it(name, up), id="run-it"))
    notebook.cells = cells
    return notebook


def _run_it(name: str, up: str) -> str:
    """How a reader gets from a page to the notebook that runs."""
    lab = name if "/" in name else kinds.number_of(name) or name
    return (
        f'<p class="run-it"><a href="{up}notebooks/{name}.ipynb" download>This notebook</a> runs with the'
        f" course (<code>make lab ARGS={lab}</code>): there you write, and the checks answer.</p>"
    )


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


def folds(text: str) -> str:
    """Markdown in which what a fold holds is read as markdown: blank lines around it.

    >>> folds("<details><summary>A</summary>\\n*b*\\n</details>")
    '<details><summary>A</summary>\\n\\n*b*\\n\\n</details>'
    """
    text = re.sub(r"</summary>\s*", "</summary>\n\n", text)
    return re.sub(r"\s*</details>", "\n\n</details>", text)


def index(way: Sequence[Lesson], laid: Laid) -> str:
    """The start page: what this is, and all pages in the order of the course."""
    text = (ROOT / "site" / "index.md").read_text(encoding="utf-8")
    marks = {one.name: CORE if one.core else "" for one in way}
    parts = "\n".join(
        f"{' '.join(f'{one.number} {marks[one.name]}'.split())} {one.asks} · {one.minutes} min <{one.name}>"
        for one in way
    )
    lists = {
        "Lessons": parts,
        "Words and sources": "\n".join(n for n in laid.pages["page"] if n not in marks),
        "Exercises": "\n".join(laid.pages["exercise"]),
        "Evidence": "\n".join(laid.pages["evidence"]),
        "For instructors": "\n".join(laid.pages["guide"]),
    }
    trees = [
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n:maxdepth: 1\n\n{entries}\n```"
        for caption, entries in lists.items()
    ]
    rows = "\n".join(
        f"| {one.number} | {marks[one.name]} | [{one.asks}]({one.name}.ipynb) | {one.minutes} |"
        for one in way
    )
    table = f"| | | question | minutes |\n|---|---|---|---|\n{rows}"
    return text.replace("LESSONS", table) + "\n\n" + "\n\n".join(trees) + "\n"


def _output(output: NotebookNode, up: str, source: Path, laid: Laid) -> NotebookNode:
    data = output.get("data", {})
    kind = next((k for k in ("image/png", "image/gif") if k in data), None)
    if kind:
        raw = base64.b64decode(data[kind])
        file = f"{hashlib.sha256(raw).hexdigest()[:16]}.{kind[-3:]}"
        (source / "_extra" / "pictures" / file).write_bytes(raw)
        laid.pictures.add(file)
        meta = output.metadata.get(kind, {})
        alt = html.escape(meta.get("alt") or data.get("text/plain", ""), quote=True)
        wide = f' width="{meta["width"]}"' if "width" in meta else ""
        img = f'<div class="picture"><img src="{up}pictures/{file}" alt="{alt}"{wide} loading="lazy"></div>'
        return new_output("display_data", data={"text/html": img})
    if "text/html" in data:
        said = TO_CELL.sub(_to_page, data["text/html"])
        return new_output("display_data", data={"text/html": said, "text/plain": data.get("text/plain", "")})
    return output


def _live(found: re.Match, outputs: list[NotebookNode]) -> NotebookNode:
    """A place for what a script draws; without scripts the still picture stands in it."""
    names = ",".join(re.findall(r'"([^"]+)"', found[2]))
    still = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    scores = html.escape(found[1].replace(" ", ""))
    place = f'<div data-live="listen" data-names="{html.escape(names)}" data-scores="{scores}">{still}</div>'
    return new_output("display_data", data={"text/html": place})


def _to_page(found: re.Match) -> str:
    quote, name, cell, end = found.groups()
    return f"{quote}{name}.html{'#' + cell if cell else ''}{end}"


def _cell_links(text: str) -> list[tuple[str, str, str, str]]:
    return [found for found in TO_CELL.findall(text) if found[2]]


def _texts(notebook: NotebookNode) -> Iterable[str]:
    for cell in notebook.cells:
        yield cell.source
        for output in cell.get("outputs", ()):
            yield output.get("data", {}).get("text/html", "")


def _guide(root: Path, source: Path) -> list[str]:
    """Copy the instructor's pages; a link that leaves the site becomes words."""
    folder = root / "notebooks" / "instructor"
    every = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*.md"))}
    pages = {n: p for n, p in every.items() if n not in KEPT_BACK and n.split("/")[0] not in LEFT_OUT}
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
    katex = TOOLS / "node_modules" / "katex" / "dist"
    (source / "_static" / "katex" / "fonts").mkdir(parents=True)
    shutil.copyfile(katex / "katex.min.css", source / "_static" / "katex" / "katex.min.css")
    for font in katex.glob("fonts/*.woff2"):
        shutil.copyfile(font, source / "_static" / "katex" / "fonts" / font.name)
