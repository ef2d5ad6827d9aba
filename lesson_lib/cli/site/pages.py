"""A built notebook as the source of a page: what a kernel would do is told, folded, or handed to a script."""

import ast
import base64
import hashlib
import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from lesson_lib.checks.card import CSS, question_page
from lesson_lib.checks.engine import exercises
from lesson_lib.checks.exercise import Exercise, Write
from lesson_lib.checks.short_answers import Choice, Number, Open
from lesson_lib.cli import kinds
from lesson_lib.cli.site.on_paper import asked_on_paper
from lesson_lib.cli.site.states import is_still
from lesson_lib.cli.sources import FOLDED

TO_CELL = re.compile(r"""(href=["'])([\w/.]*?)\.ipynb(?:#cell-id=(\w+))?(["'])""")
# What a script in the page can draw by itself.
LIVE = re.compile(r"SoftmaxExplorer\(\(([\d., -]+)\), names=\(([^)]*)\)\)")
SETUP = re.compile(r"(import|from) \w")  # a cell that begins with imports
QUIET = re.compile(r"\s*(predict|warm_up|review)\(")  # what is asked stands in the output
# A call that only shows something, and a line that says nothing to a reader: neither is shown in a page.
DRAWS = re.compile(r"(_ = )?\w*figures\.\w+\([^\n]*\)|(_ = )?\w*figures\.\w+\(\n.*\n\)", re.S)
ALONE = re.compile(r"(\w+\.)?\w+(Explorer|Player)\(.*\)", re.S)
IN_A_KERNEL = re.compile(r"progress\(\)|(# ?(hint|solution|second|picture)\(.*\n?)+")
DRAWN = re.compile(r"picture\(\"\w+\"\)")  # what is drawn once an answer is given
OPTIONS = re.compile(r"\n\n(- [a-z]\) .*\n?)+\Z")  # of a question, which its card lists
HOW_IT_WORKS = re.compile(r"\*\*How it works\.\*\*.*?(?=The stars)|Your progress is kept.*?shows it\.", re.S)
HERE = (
    "**How it works.** Choose or type an answer; what you answer is kept in this browser. A function is run,"
    " and judged, in the notebook only. Hints and a solution unfold below each exercise.\n\n"
)
STARS = re.compile(r"^`(★.*)`$", re.M)  # how hard an exercise is, and why it is asked
ABOUT = re.compile(r"\n\*\*Time\*\* .*\n?")
FOLD = re.compile(r"\n*<details><summary>中文摘要.*?</details>", re.S)
ARXIV = re.compile(r"(?<![\[/])arXiv:(\d{4}\.\d{4,5})(?![\d\]])")
CHINESE = re.compile(r"\n*^〔.*〕$", re.M)
PICTURES = ("image/png", "image/gif")
LONG = 90  # characters of a printed line, beyond which it is prose


@dataclass
class Layout:
    """What was laid out: the pages by kind, the pictures that they share; of what: the names of all parts,
    and by cell the recordings of explorers, and what is drawn once an answer is given."""

    parts: Sequence[str] = ()
    pages: dict[str, list[str]] = field(default_factory=dict)
    pictures: set[str] = field(default_factory=set)
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    drawn: Mapping[str, Sequence[NotebookNode]] = field(default_factory=dict)


def of_notebook(
    notebook: NotebookNode, name: str, wanted: set[str], source: Path, laid: Layout
) -> NotebookNode:
    """A built notebook as the source of a page: anchors at the cells that are linked to, pictures as files,
    hints and solutions as folds."""
    up = "../" * name.count("/")
    asked = {exercise for cell in notebook.cells if (exercise := _exercise_of(cell))}
    cells = []
    for cell in notebook.cells:
        if cell.id in wanted:
            cells.append(new_markdown_cell(f'<span id="{cell.id}"></span>', id=f"at-{cell.id}"))
        if cell.cell_type == "markdown":
            cell.source = STARS.sub(r"*\1*", folds(_one_fold(_here(cell.source))))
            cell.source = cell.source.replace(
                "The check shows a model answer", "The solution is a model answer"
            )
            cells.append(cell)
        elif exercise := _exercise_of(cell):
            if isinstance(exercises()[exercise], Choice):
                before = next(c for c in reversed(cells) if c.cell_type == "markdown")
                before.source = OPTIONS.sub("", before.source)
            cells += _turn(exercises()[exercise], cell.id)
        elif cell.id in laid.drawn and DRAWN.fullmatch(cell.source):
            cells.append(
                _drawn([_output(output, up, source, laid) for output in laid.drawn[cell.id]], cell.id)
            )
        elif not (IN_A_KERNEL.fullmatch(cell.source) or _is_blank(cell.source, asked)):
            proof = "proof" in cell.metadata.get("tags", ())
            cell.source = "" if proof else _without_scaffolding(cell.source)
            if cell.source or cell.outputs:
                cells.append(_code(cell, up, source, laid))
    first = next(c for c in cells if c.cell_type == "markdown" and c.source.startswith("# "))
    first.source, chinese = _head(first.source)
    imports = [cell for cell in cells if "imports" in cell.metadata.get("tags", ())]
    cells = [cell for cell in cells if cell not in imports]  # at the foot: nobody reads them first
    cells += [*imports, new_markdown_cell(f"{_run_it(name, up, laid.parts)}{chinese}", id="run-it")]
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = ARXIV.sub(r"[\g<0>](https://arxiv.org/abs/\1)", cell.source)
    notebook.cells = cells
    return notebook


def _head(text: str) -> tuple[str, str]:
    """The first text of a page: minutes and needs in one line below the title; and the Chinese summary, which
    stands at the foot.

    >>> _head("# T\\n\\nA story.\\n\\n**Time** about 40 minutes. **You need** it.")[0]
    '# T\\n\\n<div class="head">\\n\\nAbout 40 minutes · you need it\\n\\n</div>\\n\\nA story.'
    """
    fold = FOLD.search(text)
    text = FOLD.sub("", text, count=1) if fold else text
    about = ABOUT.search(text)
    if about:
        told = re.sub(
            r"\. \*\*([A-Z])(.*?)\*\*", lambda m: f" · {m[1].lower()}{m[2]}", about[0].strip().rstrip(".")
        )
        told = re.sub(r"\[(\d\d)_\w+\]", r"[chapter \1]", told.replace("**Time** about", "About"))
        title, _, rest = ABOUT.sub("\n", text, count=1).partition("\n")
        text = f'{title}\n\n<div class="head">\n\n{told}\n\n</div>\n\n{rest.lstrip()}'
    return text.rstrip(), f"\n\n{fold[0].strip()}" if fold else ""


def folds(text: str) -> str:
    """Markdown in which what a fold holds is read as markdown: blank lines around it.

    >>> folds("<details><summary>A</summary>\\n*b*\\n</details>")
    '<details><summary>A</summary>\\n\\n*b*\\n\\n</details>'
    """
    text = re.sub(r"</summary>\s*", "</summary>\n\n", text)
    return re.sub(r"\s*</details>", "\n\n</details>", text)


def cell_links(notebook: NotebookNode) -> Iterable[str]:
    """The ids of cells that the notebook links to."""
    for cell in notebook.cells:
        for text in [cell.source, *(o.get("data", {}).get("text/html", "") for o in cell.get("outputs", ()))]:
            yield from (found[2] for found in TO_CELL.findall(text) if found[2])


def _one_fold(text: str) -> str:
    """The line that leads to the sources, in Chinese, goes into the fold of the Chinese summary."""
    found = CHINESE.search(text)
    if not found or "</details>" not in text:
        return text
    before, _, after = CHINESE.sub("", text).rpartition("</details>")
    return f"{before}\n\n{found[0].strip()}\n\n</details>{after}"


def _without_scaffolding(code: str) -> str:
    """A cell's code without what only its run needs: seeds, assertions of what a full training gives, and the
    assertions of a cell that does nothing else.

    >>> _without_scaffolding("_ = torch.manual_seed(0)\\nx = 1\\nassert quick() or x > 0")
    'x = 1'
    """
    lines, body = code.split("\n"), ast.parse(code).body
    only = all(isinstance(one, ast.Assert) for one in body)
    for one in reversed(body):
        text = "\n".join(lines[one.lineno - 1 : one.end_lineno])
        quick = isinstance(one, ast.Assert) and (only or "quick()" in text)
        if quick or text.startswith("_ = torch.manual_seed("):
            del lines[one.lineno - 1 : one.end_lineno]
    return "\n".join(lines).strip("\n")


def _code(cell: NotebookNode, up: str, source: Path, laid: Layout) -> NotebookNode:
    stills = [_output(output, up, source, laid) for output in cell.outputs]
    found = LIVE.fullmatch(cell.source.strip())
    if found:
        stills = [_live(found, stills)]
    elif cell.id in laid.states:
        places = iter(laid.states[cell.id])
        both = zip(cell.outputs, stills, strict=True)
        stills = [_player(still, next(places), up) if is_still(output) else still for output, still in both]
    cell.outputs = stills
    tags = set(cell.metadata.get("tags", ()))
    alone = ALONE.fullmatch(cell.source.strip()) or DRAWS.fullmatch(cell.source.strip())
    tags |= {"remove-input"} if QUIET.match(cell.source) or alone else set()
    if SETUP.match(cell.source) or tags & FOLDED or (cell.id in laid.states and not alone):
        tags.add("hide-input")
    if SETUP.match(cell.source):
        cell.outputs = [] if "warm_up()" in cell.source else cell.outputs
    cell.metadata["tags"] = sorted(tags)
    return cell


def _exercise_of(cell: NotebookNode) -> str:
    """The name of the exercise that a cell checks, or ''."""
    tags = cell.metadata.get("tags", ())
    return next((tag.partition(":")[2] for tag in tags if tag.startswith("exercise:")), "")


def _is_blank(code: str, asked: set[str]) -> bool:
    """Whether a cell only holds the place of a short answer, which the page's own field holds."""
    found = re.fullmatch(r"(\w+) = \.\.\.(  #.*)?", code.strip())
    return bool(found) and found[1] in asked and isinstance(exercises()[found[1]], (Choice, Number))


def _turn(exercise: Exercise, at: str) -> list[NotebookNode]:
    """What stands in a page for check(): a card for a short answer, or for a number that a function gives;
    the hints, and a solution, as folds."""
    made = []
    short = isinstance(exercise, (Choice, Number))
    asked = exercise if short else asked_on_paper(exercise) if isinstance(exercise, Write) else None
    if asked:
        head = "Your answer" if short else "On paper"
        card = question_page(asked, head).replace(f"<style>{CSS}</style>", "")
        output = new_output("display_data", data={"text/html": card})
        made.append(new_code_cell("...", outputs=[output], id=at, metadata={"tags": ["remove-input"]}))
    text = exercise.text.strip()
    prose = isinstance(exercise, (Open, Choice))
    answer = f"<p>{_said(text)}</p>" if prose else f"```python\n{text}\n```"
    if isinstance(exercise, Open):  # which its writer judges
        answer += "".join(
            f"<p>□ {_said(point[0].upper() + point[1:].rstrip('?'))}?</p>" for point in exercise.rubric
        )
    hints = "".join(f"<li>{_said(hint)}</li>" for hint in exercise.hints)
    hints = f"<details><summary>Hints</summary>\n<ol>{hints}</ol>\n</details>\n" if hints else ""
    solution = (
        f"<details><summary>A solution</summary>\n{answer}\n\n<p>{_said(exercise.remember)}</p>\n</details>"
    )
    wanted = _said(exercise.asked.rstrip("?."))
    write = "" if short else f"<p><b>Take paper, and write it before you look.</b> Asked: {wanted}.</p>\n\n"
    turn = folds(f'<div class="turn">\n\n{write}{hints}{solution}\n\n</div>')
    return [*made, new_markdown_cell(turn, id=f"turn-{at}"[:60])]


def _here(text: str) -> str:
    """What a page of exercises says of how it works: without a kernel."""
    return HOW_IT_WORKS.sub(lambda found: HERE if found[0].startswith("**") else "", text)


def _drawn(outputs: Sequence[NotebookNode], at: str) -> NotebookNode:
    """A fold with the picture that the notebook draws once an answer is given."""
    said = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    fold = f"<details><summary>The picture, once you have answered</summary>{said}</details>"
    output = new_output("display_data", data={"text/html": fold})
    return new_code_cell("...", outputs=[output], id=at, metadata={"tags": ["remove-input"]})


def _said(text: str) -> str:
    """What an exercise says, as HTML: code stands between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _run_it(name: str, up: str, parts: Sequence[str]) -> str:
    """How a reader gets from a page to the notebook that runs, and to the pages beside it."""
    number = kinds.number_of(name)
    beside = ""
    if "/" in name:  # exercises, evidence: the parts that they belong to
        chapter = name.rpartition("/")[2][:2]
        its = [part for part in parts if part.startswith(chapter)]
        links = ", ".join(f'<a href="{up}{part}.html">{kinds.number_of(part)}</a>' for part in its)
        beside = f" Belongs to {links}." if links else ""
    lab = name if "/" in name else number or name
    there = ""
    if name.startswith("exercises/") or (number and "/" not in name):
        there = (
            " There you write functions, and <code>check()</code> says what is wrong; seeds and assertions,"
            " left out here, stand there, too."
        )
    part = " data-part" if number and "/" not in name else ""
    return (
        f'<p class="run-it"{part}><a href="{up}notebooks/{name}.ipynb" download>The notebook of this page</a>'
        f" runs with the course (<code>make lab ARGS={lab}</code>).{there}"
        f' <a href="{up}library.html">The one function</a>, as code.{beside}</p>'
    )


def _output(output: NotebookNode, up: str, source: Path, laid: Layout) -> NotebookNode:
    data = output.get("data", {})
    kind = next((k for k in PICTURES if k in data), None)
    if kind:
        raw = base64.b64decode(data[kind])
        file = f"{hashlib.sha256(raw).hexdigest()[:16]}.{kind[-3:]}"
        (source / "_extra" / "pictures" / file).write_bytes(raw)
        laid.pictures.add(file)
        meta = output.metadata.get(kind, {})
        alt = html.escape(meta.get("alt") or data.get("text/plain", ""), quote=True)
        wide = f' width="{meta["width"]}"' if "width" in meta else ""
        shape, drawn = _size_and_sort(raw)
        size = f' style="aspect-ratio: {" / ".join(map(str, shape))}"'  # room before it is loaded
        img = f'<img src="{up}pictures/{file}" alt="{alt}"{wide}{size} loading="lazy">'
        img = f'<div class="picture{drawn}">{img}</div>'
        return new_output("display_data", data={"text/html": img})
    if "text/html" in data:
        said = TO_CELL.sub(_to_page, data["text/html"]).replace(f"<style>{CSS}</style>", "")
        return new_output("display_data", data={"text/html": said, "text/plain": data.get("text/plain", "")})
    if max(map(len, output.get("text", "").split("\n"))) > LONG:  # it wraps; a table stands as it is
        said = f'<pre class="long">{html.escape(output.text)}</pre>'
        return new_output("display_data", data={"text/html": said})
    return output


def _size_and_sort(picture: bytes) -> tuple[tuple[int, int], str]:
    """Width and height in pixels, and " drawn" where most of it is white paper: lines and words, which a dark
    page may turn to light on dark."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture))
    shades = image.convert("RGBA").convert("L").histogram()
    return image.size, " drawn" if sum(shades[245:]) > 0.75 * sum(shades) else ""


def _live(found: re.Match, stills: list[NotebookNode]) -> NotebookNode:
    """A place for what a script draws; without scripts the still picture stands in it."""
    names = html.escape(",".join(re.findall(r'"([^"]+)"', found[2])))
    scores = html.escape(found[1].replace(" ", ""))
    still = "".join(output.get("data", {}).get("text/html", "") for output in stills)
    place = f'<div data-live="listen" data-names="{names}" data-scores="{scores}">{still}</div>'
    return new_output("display_data", data={"text/html": place})


def _player(still: NotebookNode, file: str, up: str) -> NotebookNode:
    """A place for a recording, which is loaded when it is seen; until then the still picture stands in it."""
    name = file.removesuffix(".js").rpartition(".")[2]
    place = f'<div data-states="{name}" data-src="{up}states/{file}">{still.data["text/html"]}</div>'
    return new_output("display_data", data={"text/html": place})


def _to_page(found: re.Match) -> str:
    quote, name, cell, end = found.groups()
    return f"{quote}{name}.html{'#' + cell if cell else ''}{end}"
