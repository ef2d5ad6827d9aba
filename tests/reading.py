"""A part as a cold reader gets it, and how long it is.

`python -m tests.reading 02b FOLDER` writes two texts there: the part (cells numbered, with code, printed text
and alt texts), and what the parts before it have defined, introduced and concluded.
"""

import argparse
import ast
import html
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lesson_lib.cli import kinds, sources
from lesson_lib.cli.sources import ROOT

# The first edition's lessons; a chapter's name goes when its second edition comes. Their form is another.
FIRST_EDITION = (
    *("00_start_here", "01_history", "02_scoring", "03_matrix_form", "04_multi_head"),
    *("05_positional_encoding", "06_transformer", "07_attention_vs_cnn", "08_attention_vs_rnn"),
    *("09_truncated_attention", "10_graph_attention", "11_efficient_attention", "12_claims"),
)
WORDS, LINES, CELLS, KIB = 1300, 200, 50, 600  # of a part, at most
PROOF = ("verdict", "claim", "results")  # calls that stand in evidence
LABELS = ("time", "you need", "exercises", "next", "sources", "shift + enter")  # bold, and no terms
CLOSING = re.compile(r"^## .*\b(?:remember|summary|take-away)\b", re.IGNORECASE | re.MULTILINE)


def plain(text: str) -> str:
    """Markdown or HTML as a reader sees it: no tags, no addresses of links, no marks."""
    text = re.sub(r"<style>.*?</style>", " ", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"</?(?:div|p|li|tr|summary|details|table|br)\b[^>]*>", "\n", text)
    return re.sub(r"[*`#|]+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def count(text: str) -> int:
    """Words: what begins with a letter, outside of formulas."""
    return len(re.findall(r"\b[A-Za-z][\w'-]*", re.sub(r"\$\$?.*?\$\$?", " ", text, flags=re.DOTALL)))


def asked(page: str) -> str:
    """Of a question's card what everybody reads: the question, its options, the right answer and why."""
    return plain(re.sub(r"<ul>.*?</ul>", "", page, flags=re.DOTALL))


def prose(output: NotebookNode) -> str:
    """What a learner reads of an output: captions, cards that ask, printed sentences; no tables of numbers,
    no cards of checks, no source."""
    if output.output_type == "stream":
        return "\n".join(line for line in output.text.splitlines() if count(line) >= 4)
    page = output.get("data", {}).get("text/html", "")
    if "ll-ask" in page:
        return asked(page)
    if not page or "<table" in page or 'class="highlight"' in page:
        return ""
    return plain(page)


def words(notebook: NotebookNode) -> int:
    """Everything that a learner reads without opening evidence."""
    told = [plain(cell.source) for cell in notebook.cells if cell.cell_type == "markdown"]
    told += [prose(output) for cell in notebook.cells for output in cell.get("outputs", ())]
    return sum(map(count, told))


def code_lines(notebook: NotebookNode) -> int:
    """Lines of code that a learner sees, those of show_source included; no blank ones, no comments alone."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        code += [o.data["text/plain"] for o in cell.get("outputs", ()) if "text/latex" in o.get("data", {})]
    lines = (line.strip() for text in code for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def form(notebook: NotebookNode, size: int) -> list[str]:
    """What a part has too much of, or what should stand in its chapter's evidence; `size` in bytes."""
    amounts = {
        f"words, at most {WORDS}": (words(notebook), WORDS),
        f"lines of code, at most {LINES}": (code_lines(notebook), LINES),
        f"cells, at most {CELLS}": (len(notebook.cells), CELLS),
        f"KiB, at most {KIB}": (-(-size // 1024), KIB),
    }
    out = [f"{found} {what}" for what, (found, most) in amounts.items() if found > most]
    calls = {
        getattr(node.func, "id", getattr(node.func, "attr", ""))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(re.sub(r"^\s*[%!].*$", "", cell.source, flags=re.M)))
        if isinstance(node, ast.Call)
    }
    return out + [f"{name}() stands in evidence" for name in PROOF if name in calls]


def as_text(notebook: NotebookNode) -> str:
    """The part as plain text: cells numbered, with what was printed, shown and drawn."""
    parts = []
    for number, cell in enumerate(notebook.cells, 1):
        parts.append(f"=== cell {number}: {cell.cell_type}\n{cell.source}")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            page = data.get("text/html", "")
            if "ll-ask" in page:
                told = re.sub(r"\n\s*\n+", "\n", plain(page)).strip()
            elif "image/png" in data:
                told = f"[picture] {data.get('text/plain', '')}"
            else:
                told = output.get("text") or data.get("text/plain", "") or plain(page).strip()
            parts.append(f"--- shown\n{told}")
    return "\n\n".join(parts) + "\n"


def before(name: str, names: Sequence[str]) -> list[str]:
    """The parts that come before one in the course's order."""
    parts = [n for n in kinds.ordered(names) if kinds.kind_of(n) in ("part", "page") and kinds.number_of(n)]
    return parts[: parts.index(name)]


def terms(texts: Sequence[str]) -> Iterator[str]:
    """Terms at their first definition: up to four bold words, in the order of the texts."""
    seen = set(LABELS)
    for text in texts:
        for found in re.findall(r"(?<!\*)\*\*([A-Za-z][^*\n]{1,40}?)\*\*(?!\*)", text):
            short = len(found.split()) <= 4 and found[-1] not in ".:?!"
            if short and found.lower() not in seen:
                seen.add(found.lower())
                yield found


def introduced(codes: Sequence[str], seen: set[str]) -> Iterator[str]:
    """What is imported from the library and not `seen` yet, functions and classes with the first sentence of
    their docstrings."""
    for code in codes:
        for node in ast.walk(ast.parse(re.sub(r"^\s*[%!].*$", "", code, flags=re.M))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("lesson_lib"):
                continue
            for name in (alias.name for alias in node.names if alias.name not in seen):
                seen.add(name)
                thing = getattr(importlib.import_module(node.module), name, None)
                told = inspect.isfunction(thing) or inspect.isclass(thing)
                said = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ") if told else ""
                yield f"{name}: {said}" if said else name


def conclusion(text: str) -> str:
    """What a part says at its end: the section that is headed Summary, or what to remember."""
    found = CLOSING.search(text)
    return re.split(r"^## ", text[found.end() :], maxsplit=1, flags=re.M)[0].strip() if found else ""


def page_of_terms(name: str, root: Path = ROOT) -> str:
    """What a reader of this part knows from those before it."""
    targets = {target.name: target for target in sources.targets(root=root)}
    out, seen = [f"What the parts before {name} have said"], set[str]()
    for earlier in before(name, list(targets)):
        cells = sources.read_source(targets[earlier]).cells
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
        codes = [cell.source for cell in cells if cell.cell_type == "code"]
        out += ["", f"== {earlier}", f"terms: {', '.join(terms(texts))}", *introduced(codes, seen)]
        out += [plain(conclusion("\n\n".join(texts))).strip()]
    return "\n".join(out) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the texts of each part that is named; 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.reading", description=__doc__.splitlines()[0])
    parser.add_argument("part", help="02b, or 02 for a chapter")
    parser.add_argument("folder", type=Path, help="where the texts go")
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for target in (t for t in sources.targets([chosen.part]) if t.kind in ("part", "page")):
        notebook = nbformat.read(target.path, 4)
        (chosen.folder / f"{target.name}.txt").write_text(as_text(notebook), encoding="utf-8")
        (chosen.folder / f"{target.name}_terms.txt").write_text(page_of_terms(target.name), encoding="utf-8")
        print(f"{target.name}: {words(notebook)} words, {code_lines(notebook)} lines of code")
    return 0


if __name__ == "__main__":
    sys.exit(main())
