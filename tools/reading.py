"""A part as a cold reader gets it, and how long it is.

`python -m tools.reading 02b` writes two texts to build/reading: the part (cells numbered, with code, printed
text, alt texts and captions), and what the parts before it have defined, introduced and concluded.
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

from lesson_lib.cli import kinds, quoted, sources
from lesson_lib.cli.sources import ROOT, BuildError

LINES, CELLS, KIB, IDEAS = 200, 50, 600, 12  # of a part, at most
WORDS, MINUTES = {2: 1300, 3: 1800}, {2: 45, 3: 50}  # by edition
PROOF = ("verdict", "claim", "results")  # calls that stand in evidence
JUDGES = re.compile(r"^(?:_ = )?(?:check|hint|solution|picture|progress|properties|judge)\(", re.MULTILINE)
FENCE = re.compile(r"^```.*?\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
LABELS = ("time", "you need", "exercises", "next", "sources", "shift + enter")  # bold, and no terms
CLOSING = re.compile(r"^## .*\b(?:remember|summary|take-away)\b.*$", re.IGNORECASE | re.MULTILINE)
BOLD = r"(?<!\*)\*\*([A-Za-z][^*\n]{1,40}?)\*\*(?!\*)"
# Italic where a word is introduced: "a *query* is", "called *heads*,"; not where one is stressed.
ITALIC = (
    r"(?:^|\b(?:[Aa]n?|[Tt]he|called|named|or)\s+)(?<!\*)\*([A-Za-z][^*\n]{1,40}?)\*(?!\*)"
    r"(?=\s*(?:[.,;:()]|$|(?:is|are|was|means|and|or|of|for|which|that|says)\b))"
)


def plain(text: str) -> str:
    """Markdown or HTML as a reader sees it: no tags, no addresses of links, no marks."""
    text = re.sub(r"<style>.*?</style>", " ", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"</?(?:div|p|li|tr|summary|details|table|br)\b[^>]*>", "\n", text)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return re.sub(r"(?<! )[*`#]+|[*`#]+(?! )", "", text).replace(
        "|", " "
    )  # a product's * has blanks beside it


def count(text: str) -> int:
    """Words: what begins with a letter, outside of formulas."""
    return len(re.findall(r"\b[A-Za-z][\w'-]*", re.sub(r"\$\$?.*?\$\$?", " ", text, flags=re.DOTALL)))


def asked(page: str) -> str:
    """Of a question's card what everybody reads: the question, its options, the right answer and why."""
    return plain(re.sub(r"<ul>.*?</ul>", "", page, flags=re.DOTALL))


def told_in(table: str) -> str:
    """A table of HTML; '' where half of its cells or more hold no word, as in one of numbers."""
    cells = re.findall(r"<td\b[^>]*>(.*?)</td>", table, flags=re.DOTALL)
    silent = sum(count(plain(cell)) == 0 for cell in cells)
    return "" if 2 * silent >= len(cells) else table


def prose(output: NotebookNode) -> str:
    """What a learner reads of an output: captions, cards that ask, printed sentences, tables of words; no
    tables of numbers, no source."""
    data = output.get("data", {})
    page = data.get("text/html", "")
    if "ll-ask" in page:
        return asked(page)
    if 'class="highlight"' in page:
        return ""
    if page:
        tables = re.compile(r"<table\b.*?</table>", re.DOTALL)
        return plain(tables.sub(lambda found: told_in(found[0]), page))
    said = "" if any(mime.startswith("image/") for mime in data) else data.get("text/plain", "")
    lines = (output.get("text") or said).splitlines()
    return "\n".join(line for line in lines if count(line) >= 4)


def words(notebook: NotebookNode) -> int:
    """Everything that a learner reads without opening evidence; of a check's card nothing, of Chinese text
    nothing, since it repeats the English."""
    told = [plain(FENCE.sub("", cell.source)) for cell in notebook.cells if cell.cell_type == "markdown"]
    for cell in notebook.cells:
        outputs = () if JUDGES.search(cell.source) else cell.get("outputs", ())
        told += [prose(output) for output in outputs]
    return sum(map(count, told))


def code_lines(notebook: NotebookNode) -> int:
    """Lines of code that a learner sees, those of show_source and of code shown as text included; no blank
    ones, no comments alone."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        code += FENCE.findall(cell.source) if cell.cell_type == "markdown" else []
        code += [o.data["text/plain"] for o in cell.get("outputs", ()) if "text/latex" in o.get("data", {})]
    lines = (line.strip() for text in code for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def form(notebook: NotebookNode, size: int, edition: int = 2) -> list[str]:
    """What a part has too much of, or what should stand in its chapter's evidence; `size` in bytes."""
    amounts = {
        f"words, at most {WORDS[edition]}": (words(notebook), WORDS[edition]),
        f"lines of code, at most {LINES}": (code_lines(notebook), LINES),
        f"cells, at most {CELLS}": (
            sum(sources.PROOF not in c.metadata.get("tags", ()) for c in notebook.cells),
            CELLS,
        ),
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


def minutes(notebook: NotebookNode) -> int:
    """How long a reader feels that a part is: 38 words a minute with their code and pictures, 4 minutes for
    what is written, 1 for what is predicted."""
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", ())]
    turns = sum(tag.startswith("turn:") for tag in tags)
    return round(words(notebook) / 38 + 4 * turns + predictions(notebook))


def idea_cells(notebook: NotebookNode, ideas: dict[str, dict[str, str]]) -> dict[str, list[int]]:
    """The cells, counted from 1, in which each idea has its motive, its number or picture, its action; 0 for
    words that no cell has."""
    texts = [" ".join(text.split()) for text in cell_texts(notebook)]
    return {
        name: [
            next((i for i, text in enumerate(texts, 1) if " ".join(idea[what].split()) in text), 0)
            for what in ("motive", "shown", "action")
        ]
        for name, idea in ideas.items()
    }


def unfit(notebook: NotebookNode, ideas: dict[str, dict[str, str]]) -> list[str]:
    """What is wrong with a part's list of ideas."""
    out = [] if 1 <= len(ideas) <= IDEAS else [f"{len(ideas)} ideas, at most {IDEAS}"]
    return out + [
        f"{name}: no cell has the words of its {what}"
        for name, cells in idea_cells(notebook, ideas).items()
        for what, cell in zip(("motive", "number or picture", "action"), cells, strict=True)
        if not cell
    ]


def predictions(notebook: NotebookNode) -> int:
    """How many questions a part asks before it answers them."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return sum(len(re.findall(r"^predict\(", text, flags=re.MULTILINE)) for text in code)


def missing(notebook: NotebookNode, edition: int = 2) -> list[str]:
    """What a part should have, and has not. Minutes of the third edition are those that readers felt: no
    formula gives them."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", ())]
    first, whole = texts[0] if texts else "", "\n\n".join(texts)
    lines = re.findall(r"^- ", conclusion(whole), flags=re.MULTILINE)
    said = re.search(r"\*\*Time\*\* about (\d+) minutes", first)
    wanted = {
        "a title that asks": bool(re.match(r"# \d\d[a-z]? · .*\?$", first, flags=re.MULTILINE)),
        "a summary in Chinese, folded, at its top": "<summary>中文摘要 · Chinese</summary>" in first,
        "what the reader can do afterwards": "**Afterwards you can**" in first,
        "what it needs": "**You need**" in first,
        "four predictions": predictions(notebook) >= 4,
        "two cells that the learner writes": sum(tag.startswith("turn:") for tag in tags) >= 2,
        "a warm-up": bool(re.search(r"^warm_up\(\)", code, flags=re.MULTILINE)),
        "something imported from lesson_lib": "from lesson_lib." in code,
        "a section 'In real work'": bool(re.search(r"^## .*In real work", whole, flags=re.MULTILINE)),
        "two misconceptions, quoted in bold": len(re.findall(r'\*\*"[^*]+"', whole)) >= 2,
        "a take-away, and three to five lines below it": 3 <= len(lines) <= 5,
        "sources": "**Sources.**" in whole,
        "a next part": "**Next**" in whole,
        "a link to its evidence": bool(re.search(r"\]\(evidence/\w+_evidence\.ipynb\)", whole)),
        "none of the sources' letters": not re.search(r"\bS[0-4]\b", whole),
    }
    least, most = (minutes(notebook) if edition == 2 else 1), MINUTES[edition]
    if said is None or not least <= int(said[1]) <= most:
        wanted[f"the minutes that it takes, from {least} to {most}"] = False
    return [what for what, there in wanted.items() if not there]


def too_early(parts: dict[str, str], core: set[str]) -> list[str]:
    """Core parts that need a part outside of the core: name -> the text of the first cell."""
    out = []
    for name in sorted(core):
        needs = re.search(r"\*\*You need\*\*(.*?)(?:\*\*|\n\n|$)", parts[name], flags=re.DOTALL)
        linked = re.findall(r"\]\((\w+)\.ipynb\)", needs[1] if needs else "")
        out += [f"{name} needs {other}" for other in linked if other in parts and other not in core]
    return out


def as_text(notebook: NotebookNode) -> str:
    """The part as plain text: cells numbered, with what was printed, shown and drawn."""
    return "\n\n".join(
        f"=== cell {number}: {_kind(cell)}\n{text}"
        for number, (cell, text) in enumerate(zip(notebook.cells, cell_texts(notebook), strict=True), 1)
    ) + "\n"  # fmt: skip


def _kind(cell: NotebookNode) -> str:
    return f"{cell.cell_type}{', folded' * bool(sources.FOLDED & set(cell.metadata.get('tags', ())))}"


def cell_texts(notebook: NotebookNode) -> list[str]:
    """Each cell's source, with what was printed, shown and drawn below it."""
    texts = []
    for cell in notebook.cells:
        parts = [cell.source]
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            page = data.get("text/html", "")
            if "ll-ask" in page:
                told = re.sub(r"\n\s*\n+", "\n", plain(page)).strip()
            elif any(mime.startswith("image/") for mime in data):
                told = f"[picture] {data.get('text/plain', '')}"
            else:
                told = output.get("text") or data.get("text/plain", "") or plain(page).strip()
            parts.append(f"--- shown\n{told}")
        texts.append("\n\n".join(parts))
    return texts


def before(name: str, names: Sequence[str]) -> list[str]:
    """The parts that come before one in the course's order."""
    parts = [n for n in kinds.ordered(names) if kinds.kind_of(n) in ("part", "page") and kinds.number_of(n)]
    return parts[: parts.index(name)] if name in parts else []


def glossary(texts: Sequence[str]) -> dict[str, str]:
    """Terms of the course's list of words -> what they mean in short: rows of English, Chinese, meaning."""
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]*[\u4e00-\u9fff][^|]* \| ([^|]+) \|$", "\n".join(texts), flags=re.M
    )
    return {term.strip().lower(): short.strip() for names, short in rows for term in names.split(",")}


def terms(texts: Sequence[str], seen: set[str], meanings: dict[str, str]) -> Iterator[str]:
    """Terms at their first definition, up to four words in bold or, where they are introduced, in italics, in
    the order of the texts: each with its meaning in the glossary, or else the sentence that defines it."""
    for text in texts:
        prose_of = FENCE.sub("", text)
        marked = [*re.finditer(BOLD, prose_of), *re.finditer(ITALIC, prose_of, flags=re.M)]
        for found in sorted(marked, key=lambda match: match.start()):
            term = found[1].lower()
            if len(term.split()) > 4 or term[-1] in ".:?!" or term in seen or term in LABELS:
                continue
            seen.add(term)
            yield f"{found[1]}: {meanings.get(term) or sentence(prose_of, found.start(1))}"


def sentence(text: str, place: int) -> str:
    """The sentence of a text that stands around a place, as a reader sees it."""
    return " ".join(plain(quoted.sentence(text, place)).split()).removeprefix("- ")


def imported(module: str, name: str) -> object:
    """What `from module import name` gives."""
    thing = getattr(importlib.import_module(module), name, None)
    return importlib.import_module(f"{module}.{name}") if thing is None else thing


def introduced(codes: Sequence[str], seen: set[str]) -> Iterator[str]:
    """What is imported from the library and not `seen` yet, functions and classes with the first sentence of
    their docstrings."""
    for code in codes:
        for node in ast.walk(ast.parse(re.sub(r"^\s*[%!].*$", "", code, flags=re.M))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("lesson_lib"):
                continue
            names = [alias.name for alias in node.names]
            names = importlib.import_module(node.module).__all__ if names == ["*"] else names
            for name in (name for name in names if name not in seen):
                seen.add(name)
                thing = imported(node.module, name)
                told = inspect.isfunction(thing) or inspect.isclass(thing) or inspect.ismodule(thing)
                said = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ") if told else ""
                yield f"{name}: {said}" if said else name


def conclusion(text: str) -> str:
    """What a part says at its end: the section, or the paragraph, that is headed Summary, take-away, or what
    to remember; without its sources and the next part."""
    found = CLOSING.search(text) or re.search(
        r"^\*\*(?:Summary|Take-away|To remember)\.\*\*", text, flags=re.M
    )
    if not found:
        return ""
    return re.split(r"^(?:## |\*\*(?:Sources|Next))", text[found.end() :], maxsplit=1, flags=re.M)[0].strip()


def page_of_terms(name: str, root: Path = ROOT) -> str:
    """What a reader of this part knows from those before it."""
    targets = {target.name: target for target in sources.targets(root=root, among=("part", "page"))}
    cells = {key: sources.read_source(target).cells for key, target in targets.items()}
    texts = {key: [c.source for c in found if c.cell_type == "markdown"] for key, found in cells.items()}
    pages = [text for key in texts if kinds.kind_of(key) == "page" for text in texts[key]]
    meanings, defined, used = glossary(pages), set[str](), set[str]()
    out = [f"What the parts before {name} have said"]
    for earlier in before(name, list(targets)):
        codes = [cell.source for cell in cells[earlier] if cell.cell_type == "code"]
        out += ["", f"== {earlier}"]
        for head, lines in (
            ("ideas", _told(targets[earlier])),
            ("terms", terms(texts[earlier], defined, meanings)),
            ("functions", introduced(codes, used)),
            ("to remember", plain(conclusion("\n\n".join(texts[earlier]))).strip().splitlines()),
        ):
            told = list(lines)
            out += [f"-- {head}", *told] if told else []
    return "\n".join(out) + "\n"


def _told(target: sources.Target) -> Iterator[str]:
    """A part's listed ideas, each with the cell in which it begins."""
    listed = sources.ideas(target)
    cells = idea_cells(nbformat.read(target.path, 4), listed) if listed else {}
    for name, idea in listed.items():
        yield f"{name} (cell {min(cells[name])}): {idea['says']}"


def main(arguments: list[str] | None = None) -> int:
    """Write the texts of each part that is named; 0, or 1 after a sentence."""
    parser = argparse.ArgumentParser(prog="python -m tools.reading", description=__doc__.splitlines()[0])
    parser.add_argument("part", help="02b, or 02 for a chapter")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "reading")
    chosen = parser.parse_args(arguments)
    try:
        targets = sources.targets([chosen.part], among=("part", "page"))
    except BuildError as error:
        print(error)
        return 1
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        if not target.path.exists():
            print(f"{target.name} is not built; run: make notebooks ARGS={target.name}")
            return 1
        notebook = nbformat.read(target.path, 4)
        (chosen.folder / f"{target.name}.txt").write_text(as_text(notebook), encoding="utf-8")
        (chosen.folder / f"{target.name}_terms.txt").write_text(page_of_terms(target.name), encoding="utf-8")
        print(f"{target.name}: {words(notebook)} words, {code_lines(notebook)} lines of code")
    return 0


if __name__ == "__main__":
    sys.exit(main())
