"""The pages that are no notebook: the start, the pieces that stand alone, and the lists behind the menu.

Their words stand in site/pages. A line there that begins with a word in capitals becomes what it names: a
card, a film, an output of a notebook, the map of the course, a list of claims.
"""

import html
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from lesson_lib.checks.card import CSS, question_page
from lesson_lib.checks.engine import exercises
from lesson_lib.claims import Claim, ledger
from lesson_lib.cli import kinds
from lesson_lib.cli.course import CORE, Lesson, chapters
from lesson_lib.places import ROOT

FOLDER = ROOT / "site" / "pages"
FILM = "02a_soft_look_up", r"SevenStepsExplorer\("
Pages = Mapping[str, NotebookNode]


def written(root: Path, made: Pages, *, book: bool) -> dict[str, str]:
    """Each page of site/pages by name, as Markdown with what its capitals name; `made` are the pages of the
    notebooks.

    Raises ValueError for an output that no cell has, KeyError for a card that no exercise has.
    """
    fills = {
        "FACTS": lambda _: _facts(root),
        "MAP": lambda _: _map(root, made),
        "FILM": lambda _: _output(made, *FILM, first={"step": "7"}),
        "OUTPUT": lambda words: _output(made, *words.split(" ", 1)),
        "CARD": _card,
        "DRAWING": lambda name: (FOLDER / f"{name}.svg").read_text(encoding="utf-8").strip(),
        "BOOK": lambda _: BOOK if book else "",
        "TALLY": lambda _: _tally(),
        "WRONG": lambda _: _claims("corrected"),
        "CONDITIONS": lambda _: _claims("with a condition"),
    }
    line = re.compile(rf"^(<p[^>]*>)?({'|'.join(fills)})(?: (.*?))?(</p>)?$", re.M)
    pages = {}
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text(encoding="utf-8").replace("# COUNT", f"# {len(ledger())}")
        text = re.sub(r"WHERE (\w+)", lambda m: _where(m[1]), text)
        pages[path.stem] = line.sub(lambda m: f"{m[1] or ''}{fills[m[2]](m[3] or '')}{m[4] or ''}", text)
    return pages


BOOK = 'The parts on paper: <a href="attention.pdf">one PDF</a>, with the solutions behind each part.'


def openings(made: Pages) -> None:
    """Put what moves on its first screen into each page that site/openings.toml names, behind its first text.

    Raises ValueError where no cell shows what a page is to begin with.
    """
    for name, row in tomllib.loads((FOLDER.parent / "openings.toml").read_text("utf-8")).items():
        if name not in made:
            continue
        if "live" in row:
            data = "".join(f' data-{k}="{html.escape(v)}"' for k, v in row.items() if k != "says")
            place = f"<div{data}></div>"
        else:
            place = _output(made, *row["shows"], first=row.get("first", {}))
        text = f'<div class="opening"><p>{html.escape(row["says"])}</p>{place}</div>'
        cells = made[name].cells
        first = next(i for i, cell in enumerate(cells) if cell.source.startswith("# "))
        cells.insert(first + 1, new_markdown_cell(text, id="opening"))


def menu(way: Sequence[Lesson], pages: Mapping[str, Sequence[str]]) -> str:
    """The start page's hidden lists, from which the menu is made: a chapter's lessons and exercises under its
    title, then the pieces, the words, and one entry each for evidence and instructors."""
    trees = []
    for chapter in chapters():
        its = [one for one in way if kinds.chapter_of(one.name) == chapter.number]
        entries = [f"{one.number}{' ' + CORE if one.core else ''} {one.asks} <{one.name}>" for one in its]
        entries += [f"Exercises <{n}>" for n in pages["exercise"] if kinds.chapter_of(n) == chapter.number]
        trees.append(_tree(f"{chapter.number} {chapter.title}", entries))
    alone = [path.stem for path in sorted(FOLDER.glob("*.md")) if path.stem != "index"]
    words = [name for name in pages["page"] if name not in {one.name for one in way}]
    trees.append(_tree("Share", alone))
    trees.append(_tree("Words and sources", [*words, "library"]))
    trees.append(_tree("More", ["Evidence <evidence>", f"For instructors <{pages['guide'][0]}>"]))
    return "\n\n".join(trees)


def below(names: Sequence[str]) -> str:
    """A list that the menu shows only on its page and below it."""
    return _tree("", [f"/{name}" for name in names])


def evidence(names: Sequence[str]) -> str:
    """The page that leads to the evidence of all chapters."""
    told = {f"evidence/{chapter.name}_evidence": chapter for chapter in chapters()}
    rows = "\n".join(
        f"- [{told[name].number} · {told[name].title}]({name}.ipynb)"
        if name in told
        else f"- [{name}]({name}.ipynb)"
        for name in names
    )
    said = "Protocols, seeds, measurements, and the sources' own sentences: what the parts say in one line."
    return f"# Evidence\n\n{said}\n\n{rows}\n\n{below(names)}\n"


def _tree(caption: str, entries: Sequence[str]) -> str:
    head = f":caption: {caption}\n" if caption else ""
    body = "\n".join(entries)
    return f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n{head}\n{body}\n```"


def _facts(root: Path) -> str:
    way = [one for chapter in chapters(root) for one in chapter.lessons]
    parts = [one for one in way if kinds.chapter_of(one.name) not in ("00", "14")]
    hours = round(sum(one.minutes for one in parts if one.core) / 60)
    core = sum(one.core for one in parts)
    facts = (
        f"{len(parts)} parts of 40 to 50 minutes",
        f"{core} of them are the core, about {hours} hours",
        "for people who program Python and know matrix products",
        "nothing to install for reading",
    )
    return " · ".join(facts)


def _map(root: Path, made: Pages) -> str:
    """The chapters with their parts; the page's script adds what was answered."""
    rows = []
    for chapter in chapters(root):
        parts = "".join(
            f'<li data-part="{one.name}"><a href="{one.name}.html"><b>{one.number}</b>'
            f"<i>{CORE if one.core else ''}</i>{html.escape(one.asks)}</a><i>{one.minutes} min</i></li>"
            for one in chapter.lessons
            if one.name in made
        )
        rows.append(f"<li><h3>{html.escape(chapter.title)}</h3><ul>{parts}</ul></li>" if parts else "")
    return f'<ol class="map">{"".join(rows)}</ol>'


def _output(made: Pages, name: str, pattern: str, first: Mapping[str, str] | None = None) -> str:
    """What the first cell of a notebook shows whose code has the pattern; `first`: where controls stand."""
    for cell in made[name].cells if name in made else ():
        outputs = cell.get("outputs", ())
        shown = [o.data["text/html"] if "data" in o else f"<pre>{html.escape(o.text)}</pre>" for o in outputs
                 if "text" in o or "text/html" in o.get("data", {})]  # fmt: skip
        if first is not None:  # the recording alone
            shown = [one for one in shown if not one.startswith("<pre>")]
        if shown and re.search(pattern, cell.source):
            told = re.sub(r"\n\s*\n", "\n", f'<div class="cell_output">{"".join(shown)}</div>')
            begins = html.escape(json.dumps(first or {}), quote=True)
            return told.replace("<div data-states", f'<div data-first="{begins}" data-states')
    raise ValueError(f"no cell of {name} shows something and has {pattern!r}")


def _card(name: str) -> str:
    card = question_page(exercises()[name], "Guess").replace(f"<style>{CSS}</style>", "")
    return f'<div class="cell_output" data-told="{_part(name)}.html">{card}</div>'


def _part(name: str) -> str:
    """The part that asks a question."""
    return exercises()[name].notebook


def _where(name: str) -> str:
    return f"[{kinds.number_of(_part(name))}]({_part(name)}.ipynb)"


def _tally() -> str:
    """A bar of all rows, by their verdicts."""
    names = {
        "holds": "hold",
        "with a condition": "with a condition",
        "corrected": "wrong",
        "unsaid": "unsaid",
    }
    verdicts = [row.verdict for row in ledger().values()]
    bar = key = ""
    for name, words in names.items():
        count = verdicts.count(name)
        bar += f'<span class="{name.split()[0]}" style="flex: {count} 0 0"></span>'
        key += f'<li><i class="{name.split()[0]}"></i>{count} {words}</li>'
    return f'<div class="tally" aria-hidden="true">{bar}</div><ul class="tally-key">{key}</ul>'


def _claims(*verdicts: str) -> str:
    """The rows with these verdicts: the sentence, why, and where it stands."""
    return "\n\n".join(_told(row) for row in ledger().values() if row.verdict in verdicts)


def _told(row: Claim) -> str:
    plain = re.sub(r"\[(.*?)\]\(\S*\)", r"\1", row.quote_zh).replace("\\", "")
    quoted = f' <q lang="zh">{html.escape(plain)}</q>' if plain else ""
    return (
        f'<p class="told"><b>“{html.escape(row.claim)}.”</b> {html.escape(row.because)}<br>'
        f'<small>{html.escape(row.where)}{quoted} · <a href="{row.lesson}.html">computed here</a></small></p>'
    )
