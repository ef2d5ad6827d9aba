"""The ledger: every claim of the source documents, and the verdict that a notebook's cells compute.

`claims.toml` beside this file holds the words. A verdict is never printed unless its findings were just found
true. `page()` is all of it, or a part, with a link to the cell that decided each row. A ledger of its own,
`after_the_sources.toml`, has what papers say of the models that came after the sources: `page(after=True)`.
"""

import html
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from lesson_lib import require
from lesson_lib.device import quick
from lesson_lib.places import ROOT

# unsaid: code or a figure, which claims nothing
MEANS = ("computation", "measurement", "a toy", "the text", "literature")  # what can decide a claim
VERDICTS = ("holds", "with a condition", "corrected", "unsaid", "undecided")
NOTEBOOKS = ROOT / "notebooks"
SIGNS = {"holds": "✓", "with a condition": "◐", "corrected": "✗", "undecided": "?", "unsaid": "–"}


@dataclass(frozen=True)
class Claim:
    """One row of the ledger; `because` is empty as long as the verdict is "undecided".

    `lesson` is the notebook whose cell proves it, a part or a chapter's evidence. `test` names a test where
    something of it needs one; "" where the cell decides alone. `quote_zh` is the source's own sentence,
    `quote_en` its rendering, `where` its document and section; "" where they are not filled yet.
    """

    id: str
    sources: tuple[str, ...]
    claim: str
    lesson: str
    verdict: str
    because: str = ""
    test: str = ""
    quote_zh: str = ""
    quote_en: str = ""
    where: str = ""
    decided_by: str = ""

    @property
    def reason(self) -> str:
        """Why the verdict is so, and what decided it."""
        return f"{self.because} Decided by {self.decided_by}." if self.decided_by else self.because

    @property
    def chapter(self) -> str:
        """The number and name of its chapter: 02 scoring, decided in 02_scoring or in its evidence."""
        name = self.lesson.rpartition("/")[2].removesuffix("_evidence")
        return name.replace("_", " ")

    @property
    def quoted(self) -> str:
        """The source's sentence, its rendering and its place as HTML; '' where none is filled."""
        parts = [
            f'<q lang="zh">{html.escape(self.quote_zh)}</q>' if self.quote_zh else "",
            html.escape(self.quote_en),
            f"<i>{html.escape(self.where)}</i>" if self.where else "",
        ]
        return "<br>".join(part for part in parts if part)

    def __str__(self) -> str:
        """The claim; on a second line place, source's sentence and rendering, where they are filled."""
        english = f"({self.quote_en})" if self.quote_en and self.quote_zh else self.quote_en
        quote = " ".join(part for part in (self.quote_zh, english) if part)
        second = ": ".join(part for part in (self.where, quote) if part)
        return self.claim + (f"\n  {second}" if second else "")


@dataclass(frozen=True)
class Erratum:
    """A slip of a source that needs no cell: where, what it says, what is meant."""

    source: str
    says: str
    meant: str


@cache
def _content() -> dict[str, Any]:
    return _read("claims.toml")


@cache
def _read(name: str) -> dict[str, Any]:
    with (Path(__file__).parent / name).open("rb") as file:
        return tomllib.load(file)


def sources() -> dict[str, str]:
    """What each source is, by its letter and number."""
    return dict(_content()["sources"])


class Errata(tuple[Erratum, ...]):
    """Slips, in the order of the sources; a table in a notebook, a line each in a terminal."""

    def __repr__(self) -> str:
        return "\n".join(f"{e.source}: {e.says} -> {e.meant}" for e in self)

    def _repr_html_(self) -> str:
        rows = [(e.source, html.escape(e.says), html.escape(e.meant)) for e in self]
        return _table("Errata", {"source": "10%", "it says": "45%", "what is meant": "45%"}, rows)


def errata() -> Errata:
    """The slips of the sources that need no cell."""
    return Errata(Erratum(**row) for row in _content()["errata"])


@cache
def ledger() -> dict[str, Claim]:
    """All claims of the sources by id, in the order of the file. Raises ValueError where a row has an unknown
    verdict or source."""
    return _rows("claims.toml", _content())


@cache
def after_the_sources() -> dict[str, Claim]:
    """What papers and files say of the models that came after the sources, by id. Raises as `ledger` does."""
    return _rows("after_the_sources.toml", _read("after_the_sources.toml"))


def _rows(file: str, content: dict[str, Any]) -> dict[str, Claim]:
    rows = {}
    for key, row in content["claims"].items():
        rows[key] = Claim(id=key, **{name: tuple(v) if isinstance(v, list) else v for name, v in row.items()})
        if rows[key].verdict not in VERDICTS or not set(rows[key].sources) <= set(content["sources"]):
            raise ValueError(
                f"{file}, {key}: verdict must be one of {VERDICTS} and sources of {list(content['sources'])}"
            )
        if not set(rows[key].decided_by.split(" and ")) <= {"", *MEANS}:
            raise ValueError(f"{file}, {key}: decided_by must be of {MEANS}, with ' and ' between two")
    return rows


def verdict(text: str, truth: Any, *, trained: bool = False) -> None:
    """Print "text: True"; raise AssertionError where it is not true.

    `trained=True` marks a statement about a training: under LESSON_STEPS=quick, which cuts trainings short,
    it is not judged.
    """
    if trained and quick():
        print(f"{text}: not judged: quick run")
        return
    if not bool(truth):
        raise AssertionError(
            f"{text}: False. If you changed the cells above, that may be the point; else tell us"
        )
    print(f"{text}: True")


def claim(key: str, findings: Mapping[str, Any], *, trained: bool = False) -> "Shown":
    """The ledger's row for a claim, after each finding was found true; shows as text and as a table row in a
    notebook.

    `findings` maps a sentence to what a cell has just computed. Raises AssertionError for a finding that is
    not true, ValueError for an unknown or undecided claim or for no findings. `trained` as in `verdict`.
    """
    rows = ledger() | after_the_sources()
    if key not in rows:
        raise ValueError(f"there is no claim {key!r}; the ledgers have {', '.join(rows)}")
    if rows[key].verdict == "undecided":
        raise ValueError(f"claim {key} is undecided: give it a verdict and a reason in claims.toml")
    if not findings:
        raise ValueError(f"claim {key} needs at least one finding: a sentence and what a cell computed")
    judged = not (trained and quick())
    for text, truth in findings.items():
        if judged and not bool(truth):
            raise AssertionError(
                f"{key}: the ledger says {rows[key].verdict!r}, but this was not found: {text}"
            )
    return Shown(rows[key], tuple(findings), judged)


@dataclass(frozen=True)
class Shown:
    """A claim with its findings, for a notebook or a terminal."""

    claim: Claim
    findings: tuple[str, ...]
    judged: bool = True

    def __repr__(self) -> str:
        c = self.claim
        findings = "\n".join(
            f"    {'found' if self.judged else 'not judged (quick run)'}: {text}" for text in self.findings
        )
        return (
            f"{SIGNS[c.verdict]} {c.id} ({', '.join(c.sources)}): {c}\n  {c.verdict.upper()}."
            f" {c.reason}\n{findings}"
        )

    def _repr_html_(self) -> str:
        c = self.claim
        mark = "found" if self.judged else "not judged (quick run)"
        findings = "".join(f"<li>{mark}: {html.escape(text)}</li>" for text in self.findings)
        return (
            f"<p><b>{SIGNS[c.verdict]} {c.id}</b> ({', '.join(c.sources)}) <q>{html.escape(c.claim)}</q><br>"
            + (f"{c.quoted}<br>" if c.quoted else "")
            + f"<b>{c.verdict[0].upper()}{c.verdict[1:]}.</b> {html.escape(c.reason)}</p><ul>{findings}</ul>"
        )


@cache
def _deciding_cells(lesson: str) -> dict[str, str]:
    """The ids of the cells of a built notebook that are tagged claim:ID, by that ID."""
    path = NOTEBOOKS / f"{lesson}.ipynb"
    if not path.exists():  # a library without its notebooks
        return {}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    tagged = ((tag, cell["id"]) for cell in cells for tag in cell["metadata"].get("tags", ()))
    return {tag.removeprefix("claim:"): name for tag, name in tagged if tag.startswith("claim:")}


def address(key: str) -> str:
    """Where a claim was decided, as a link from a part: its notebook, and the cell. Raises ValueError for
    an unknown claim."""
    rows = ledger() | after_the_sources()
    if not isinstance(key, str) or key not in rows:
        raise ValueError(f"there is no claim {key!r}; the ledgers have {', '.join(rows)}")
    lesson = rows[key].lesson
    cell = _deciding_cells(lesson).get(key)
    return f"{lesson}.ipynb" + (f"#cell-id={cell}" if cell else "")


def page(
    verdict: str | None = None,
    source: str | None = None,
    words: str = "",
    *,
    lesson: str | None = None,
    after: bool = False,
    up: str = "",
) -> "Page":
    """The ledger's rows as one page, chapter by chapter: all of them, or those with that verdict, source,
    words, or decided in that notebook (`lesson`); `after`: of the other ledger, after the sources. `up`
    stands before each link: "../" in a notebook of a folder.

    `words` are looked for in id, claim and reason; upper and lower case are the same. Raises ValueError where
    no verdict, source or lesson is called so, TypeError where `words` is no text.

    >>> len(page("corrected", "S2").rows)
    1
    """
    require.one_of([None, *VERDICTS], verdict=verdict)
    known = list(_read("after_the_sources.toml")["sources"]) if after else list(sources())
    require.one_of([None, *known], source=source)
    if not isinstance(words, str):
        raise TypeError(f"words must be a text to look for, got {type(words).__name__}")
    every = after_the_sources() if after else ledger()
    lessons = sorted({row.lesson for row in every.values()})
    require.one_of([None, *lessons], lesson=lesson)
    wanted = words.lower().split()
    rows = [
        row
        for row in every.values()
        if verdict in (None, row.verdict)
        and (source is None or source in row.sources)
        and lesson in (None, row.lesson)
        and all(word in " ".join(_words(row)).lower() for word in wanted)
    ]
    order = {row.id: i for i, row in enumerate(rows)}
    return Page(tuple(sorted(rows, key=lambda row: (row.chapter, order[row.id]))), up)


def _words(row: Claim) -> tuple[str, ...]:
    return (row.id, row.claim, row.reason, row.quote_zh, row.quote_en, row.where)


@dataclass(frozen=True)
class Page:
    """Rows of the ledger, chapter by chapter: for a notebook a table with links, for a terminal a line
    each."""

    rows: tuple[Claim, ...]
    up: str = ""  # before each link

    @property
    def lessons(self) -> tuple[str, ...]:
        """The notebooks that decided these rows, in order."""
        return tuple(dict.fromkeys(row.lesson for row in self.rows))

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict; a verdict that none has is left out."""
        tally = {verdict: sum(row.verdict == verdict for row in self.rows) for verdict in VERDICTS}
        return {verdict: count for verdict, count in tally.items() if count}

    def __repr__(self) -> str:
        summary = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items())
        lines = [f"{SIGNS[r.verdict]} {r.id} ({', '.join(r.sources)}): {r.claim}" for r in self.rows]
        return "\n".join([f"{len(self.rows)} claims" + (f": {summary}" if summary else ""), *lines])

    def _repr_html_(self) -> str:
        if not self.rows:
            return "<p>No row of the ledger is like that.</p>"
        parts = []
        for chapter, rows in groupby(self.rows, key=lambda row: row.chapter):
            cells = [
                (
                    (
                        f"{SIGNS[row.verdict]} {row.verdict}<br>"
                        f'<a href="{self.up}{address(row.id)}">{row.id}</a> ({", ".join(row.sources)})'
                    ),
                    html.escape(row.claim) + (f"<br>{row.quoted}" if row.quoted else ""),
                    html.escape(row.reason),
                )
                for row in rows
            ]
            heads = {"verdict, cell, source": "22%", "the claim": "33%", "what was found": "45%"}
            parts.append(_table(chapter, heads, cells))
        return "".join(parts)


def _table(caption: str, heads: Mapping[str, str], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of text as HTML. Its looks stand in the cells, since JupyterLab takes <style> away from
    outputs."""
    look = "text-align:left;vertical-align:top;white-space:normal;overflow-wrap:break-word"
    top = "".join(
        f'<th scope="col" style="{look};width:{width}">{head}</th>' for head, width in heads.items()
    )
    cells = ("".join(f'<td style="{look}">{cell}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    name = f'<caption style="text-align:left;font-weight:600">{html.escape(caption)}</caption>'
    return (
        "<table"
        f' style="table-layout:fixed;width:100%;max-width:960px">{name}<thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
