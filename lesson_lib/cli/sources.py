"""What people write: notebooks/source/*.py (jupytext, py:percent), and the notebooks that each of them
describes."""

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lesson_lib.cli import course, kinds, quoted
from lesson_lib.cli.exercise_cells import BEGIN, END, STUB, written_out
from lesson_lib.places import ROOT

PROOF = "proof"  # a cell in which the build asserts what the text says
FOLDED = {PROOF, "imports"}  # tags of cells that are folded for a learner
IDEAS = re.compile(
    r"\A# /// ideas\n((?:#(?: .*)?\n)*?)# ///\n+"
)  # a block of TOML in comments, as PEP 723 has it
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class BuildError(Exception):
    """A notebook that cannot be built, in one sentence that names it, the cell and the repair."""


@dataclass(frozen=True)
class Target:
    """One notebook to build: its name (02_scoring, exercises/02_scoring ...), its source, its place."""

    name: str
    source: Path
    path: Path

    @property
    def kind(self) -> kinds.Kind:
        """part, page, evidence, exercise or solution."""
        return kinds.kind_of(self.name)

    @property
    def chapter(self) -> str:
        """The number of its chapter: 02; '' for a page without one."""
        return kinds.chapter_of(self.name)


def targets(
    names: Sequence[str] = (), *, root: Path = ROOT, among: Sequence[kinds.Kind] = kinds.KINDS
) -> list[Target]:
    """The notebooks of the kinds `among` that the sources give, in order; with `names`, those only:
    02a_soft_look_up, exercises/02_scoring, 02a, or 02 for a whole chapter.

    Raises BuildError for a name that fits nothing.
    """
    folder = root / "notebooks"
    sources = {p.stem: p for p in (folder / "source").glob("*.py")}
    for own in ("evidence", "decks"):
        sources |= {f"{own}/{p.stem}": p for p in (folder / "source" / own).glob("*.py")}
    for p in (folder / "source" / "exercises").glob("*.py"):  # each source gives two
        sources |= {f"exercises/{p.stem}": p, f"solutions/{p.stem}": p}
    every = [name for name in kinds.ordered(sources) if kinds.kind_of(name) in among]
    chosen: list[str] = []
    for name in names:
        fits = kinds.fitting(name, every)
        if not fits:
            raise BuildError(f"no notebook is called {name!r}; there are {', '.join(every) or 'none'}")
        chosen += [fit for fit in fits if fit not in chosen]
    return [Target(name, sources[name], folder / f"{name}.ipynb") for name in (chosen if names else every)]


def split_exercise(text: str, *, solved: bool) -> str:
    """The source of an exercise as the learner gets it, or with the answers.

    Raises BuildError where a region is opened twice, closed without being open, or left open.

    >>> body = "    ### BEGIN SOLUTION\\n    return 2 * x\\n    ### END SOLUTION\\n    ### STUB: return None\\n"
    >>> source = "def f(x):\\n" + body
    >>> split_exercise(source, solved=True)
    'def f(x):\\n    return 2 * x\\n'
    >>> split_exercise(source, solved=False)
    'def f(x):\\n    return None\\n'
    """  # noqa: E501
    lines, inside = [], False
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        bare = line.strip()
        if bare in (BEGIN, END):
            if inside == (bare == BEGIN):
                raise BuildError(
                    f"line {number}: {bare!r} {'inside' if inside else 'outside'} a solution; pair {BEGIN}"
                    f" with {END}"
                )
            inside = not inside
        elif bare.startswith(STUB):
            if not solved:
                lines.append(line.replace(f"{STUB} ", "", 1).replace(STUB, "", 1))
        elif solved or not inside:
            lines.append(line)
    if inside:
        raise BuildError(f"{BEGIN!r} is never closed; add {END}")
    return "".join(lines)


def read_source(target: Target, *, solved: bool | None = None, marked: bool = False) -> NotebookNode:
    """The notebook that a source describes, not yet executed: cells with their tags and ids, no outputs.
    `solved` gives a part as it is when each your-turn cell holds its solution; with `marked` its texts keep
    the marks of `quoted`."""
    if solved is None:
        solved = target.kind == "solution"
    text = split_exercise(source_text(target), solved=solved)
    cells = cells_of(text, target.source.name, marked=marked)
    if target.kind not in ("solution", "deck") and (extra := course.hosted(target.name, _root(target))):
        line, code = extra
        cells[1:1] = [new_markdown_cell(line, id="hosted-link"), new_code_cell(code, id="hosted-install")]
    return new_notebook(cells=cells, metadata=METADATA)


def _root(target: Target) -> Path:
    return target.source.parents[2 if target.source.parent.name == "source" else 3]


def ideas(target: Target) -> dict[str, dict[str, str]]:
    """The new ideas of a part of the third edition, in their order: name -> what it `says`, and words of the
    cells in which it has its `motive`, its number or picture (`shown`) and its `action`; {} for a source
    without a list.

    Raises BuildError for a list that is no TOML, or an idea without one of these.
    """
    found = IDEAS.match(target.source.read_text(encoding="utf-8"))
    if not found:
        return {}
    try:
        listed = tomllib.loads(re.sub(r"^# ?", "", found[1], flags=re.MULTILINE))
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"{target.source.name}: its list of ideas is no TOML: {error}") from None
    for name, idea in listed.items():
        if not isinstance(idea, dict) or set(idea) != {"says", "motive", "shown", "action"}:
            raise BuildError(f"{target.source.name}: the idea {name!r} needs says, motive, shown and action")
    return listed


def source_text(target: Target) -> str:
    """The text of a source, with the cells that belong to each card.

    Raises BuildError for a card that no exercise has, and for an answer that stands in a part's own text.
    """
    text = IDEAS.sub("", target.source.read_text(encoding="utf-8"))
    text = course.filled(target.name, text, _root(target))
    part = target.kind not in ("exercise", "solution")
    if part and (BEGIN in text or STUB in text):
        raise BuildError(
            f"{target.source.name} has a solution region; tag a cell of text exercise:NAME, and the answer"
            " stands with the exercise"
        )
    try:
        return written_out(text, part=part)
    except KeyError as error:
        raise BuildError(f"{target.source.name}: {error.args[0]}") from None


def cells_of(text: str, name: str, *, marked: bool = False) -> list[NotebookNode]:
    """The cells that a source's text describes, with their tags and ids; `name` is the source's in an error.
    With `marked` their texts keep the marks of `quoted`, which no notebook has.

    Raises BuildError where there are none, or one that is neither code nor text.
    """
    import jupytext

    cells = [c for c in jupytext.reads(text, fmt="py:percent").cells if c.source.strip()]
    counts: Counter[str] = Counter()
    result = []
    for cell in cells:
        make = {"code": new_code_cell, "markdown": new_markdown_cell}.get(cell.cell_type)
        if make is None:
            raise BuildError(
                f"{name} has a {cell.cell_type} cell; write code (# %%) or text (# %% [markdown])"
            )
        source = cell.source if cell.cell_type == "code" else quoted.plain(cell.source)
        key = f"{cell.cell_type}\n{source}"
        number = hashlib.sha256(f"{key}\n{counts[key]}".encode()).hexdigest()[:12]
        counts[key] += 1
        tags = list(cell.metadata.get("tags", ()))
        metadata: dict = {"tags": tags} if tags else {}
        if "slideshow" in cell.metadata:  # the standard's own: slide, subslide, fragment, notes, skip
            metadata["slideshow"] = dict(cell.metadata["slideshow"])
        if FOLDED & set(tags):
            metadata["jupyter"] = {"source_hidden": True}
        result.append(make(source=cell.source if marked else source, id=number, metadata=metadata))
    if not result:
        raise BuildError(f"{name} has no cells; a cell starts with a line '# %%'")
    return result


def strays(root: Path = ROOT) -> list[str]:
    """Notebooks without a source, as paths from the repository's root."""
    known = {t.name for t in targets(root=root)}
    return [f"notebooks/{name}.ipynb" for name in kinds.built(root, kinds.KINDS) if name not in known]
