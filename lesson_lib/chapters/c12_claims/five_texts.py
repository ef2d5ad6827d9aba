"""The five texts that the course follows: who wrote them, where each of their sections is, and a path through
the cells that follow them.

`five_texts.toml` beside this file holds the words.
"""

import html
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lesson_lib import require
from lesson_lib.claims import NOTEBOOKS

HERE = "sources"  # the page that shows all this


@cache
def content() -> dict[str, Any]:
    """What the file holds."""
    with (Path(__file__).parent / "five_texts.toml").open("rb") as file:
        return tomllib.load(file)


class Place(NamedTuple):
    """A section of a notebook: its file's name, the section's heading, and the id of the cell."""

    notebook: str
    heading: str
    cell: str

    @property
    def link(self) -> str:
        """An address from a notebook beside the parts."""
        return f"{self.notebook}.ipynb" + (f"#cell-id={self.cell}" if self.cell else "")


@cache
def _headings(notebook: str) -> tuple[tuple[str, str], ...]:
    """Heading and cell of each section; the first is ("Opening", its first cell)."""
    if notebook == HERE:  # the page that is just being built: its headings, from its source
        text = (NOTEBOOKS / "source" / f"{HERE}.py").read_text(encoding="utf-8")
        return tuple((heading, "") for heading in re.findall(r"^## (.+)$", text, re.M))
    path = NOTEBOOKS / f"{notebook}.ipynb"
    if not path.exists():
        return ()
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    found = [("Opening", cells[0]["id"])]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            found += [(text, cell["id"]) for text in re.findall(r"^## (.+)$", "".join(cell["source"]), re.M)]
    return tuple(found)


def _notebook(short: str) -> str:
    """02a -> 02a_soft_look_up; evidence/06 -> evidence/06_transformer_evidence."""
    if short.startswith(HERE):
        return short
    folder, _, number = short.rpartition("/")
    names = sorted(path.stem for path in (NOTEBOOKS / folder).glob(f"{number}_*.ipynb"))
    if len(names) != 1:
        raise ValueError(f"{short!r} is {len(names)} notebooks; a place is such as 02a#1 or evidence/06#8")
    return f"{folder}/{names[0]}" if folder else names[0]


def place(spec: str) -> Place:
    """Where "02a#2", "02a#Opening" or "evidence/06#" (the whole of it) is.

    Raises ValueError where there is no such notebook or section.
    """
    short, _, section = spec.partition("#")
    name = _notebook(short)
    for heading, cell in _headings(name):
        if not section or heading == section or heading.startswith(f"{section} · "):
            return Place(name, heading if section else "", cell if section else "")
    raise ValueError(f"{spec!r}: {name} has no section {section!r}")


def _anchor(spec: str) -> str:
    short, _, section = spec.partition("#")
    found = place(spec)
    said = short if not section else f"{short}, {'opening' if section == 'Opening' else section}"
    said = said.replace(HERE, "here")
    if found.notebook == HERE:
        return html.escape(said)
    return f'<a href="{html.escape(found.link)}" title="{html.escape(found.heading)}">{html.escape(said)}</a>'


class Table:
    """Rows of text: a table with links in a notebook, lines elsewhere."""

    def __init__(self, caption: str, heads: dict[str, str], rows: list[tuple[str, ...]]) -> None:
        self.caption, self.heads, self.rows = caption, heads, rows

    def __repr__(self) -> str:
        bare = (" | ".join(html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row) for row in self.rows)
        return "\n".join([self.caption, *bare])

    def _repr_html_(self) -> str:
        look = "text-align:left;vertical-align:top;white-space:normal"
        top = "".join(
            f'<th scope="col" style="{look};width:{wide}">{head}</th>' for head, wide in self.heads.items()
        )
        body = "".join(
            "<tr>" + "".join(f'<td style="{look}">{cell}</td>' for cell in row) + "</tr>" for row in self.rows
        )
        caption = f'<caption style="text-align:left;font-weight:600">{html.escape(self.caption)}</caption>'
        return (
            f'<table style="table-layout:fixed;width:100%;max-width:960px">{caption}'
            f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        )


def who() -> Table:
    """The five texts: letter, title, who wrote them and when."""
    rows = [
        (row["letter"], html.escape(row["title"]), html.escape(row["who"]), html.escape(row["when"]))
        for row in content()["texts"]
    ]
    return Table("The five texts", {"": "6%", "title": "38%", "who": "40%", "when": "16%"}, rows)


def map_of(source: str) -> Table:
    """Each section of one text, and where it is in the course. Raises ValueError for an unknown letter."""
    letters = [row["letter"] for row in content()["texts"]]
    require.one_of(letters, source=source)
    rows = [
        (html.escape(row["section"]), " · ".join(map(_anchor, row["places"])))
        for row in content()["sections"]
        if row["source"] == source
    ]
    return Table(f"{source}: each section, and where it is", {"section": "60%", "part, section": "40%"}, rows)


def path() -> Table:
    """The sections of the path, part by part, in order."""
    steps: dict[str, list[str]] = {}
    for spec in content()["path"]["steps"]:
        steps.setdefault(spec.partition("#")[0], []).append(spec)
    rows = [
        (
            html.escape("here" if short == HERE else _notebook(short).replace("_", " ")),
            " · ".join(map(_anchor, specs)),
            " · ".join(html.escape(place(spec).heading) for spec in specs),
        )
        for short, specs in steps.items()
    ]
    return Table("A path of four hours", {"part": "26%", "sections": "30%", "headings": "44%"}, rows)
