"""The ledger: every claim of the source documents, and the verdict that a lesson's cells compute.

`claims.toml` beside this file holds the words. A verdict is never printed unless its findings were just found true.
"""

import html
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lesson_lib.device import quick

VERDICTS = ("holds", "with a condition", "corrected", "undecided")
SIGNS = {"holds": "✓", "with a condition": "◐", "corrected": "✗", "undecided": "?"}


@dataclass(frozen=True)
class Claim:
    """One row of the ledger; `because` and `test` are empty as long as the verdict is "undecided"."""

    id: str
    sources: tuple[str, ...]
    claim: str
    lesson: str
    verdict: str
    because: str = ""
    test: str = ""


@cache
def ledger() -> dict[str, Claim]:
    """All claims by id, in the order of the file. Raises ValueError where a row has an unknown verdict or source."""
    with (Path(__file__).parent / "claims.toml").open("rb") as file:
        content = tomllib.load(file)
    rows = {}
    for key, row in content["claims"].items():
        rows[key] = Claim(id=key, **{name: tuple(v) if isinstance(v, list) else v for name, v in row.items()})
        if rows[key].verdict not in VERDICTS or not set(rows[key].sources) <= set(content["sources"]):
            raise ValueError(
                f"claims.toml, {key}: verdict must be one of {VERDICTS} and sources of {list(content['sources'])}"
            )
    return rows


def verdict(text: str, truth: Any, *, trained: bool = False) -> None:
    """Print "text: True"; raise AssertionError where it is not true.

    `trained=True` marks a statement about a training: under LESSON_STEPS=quick, which cuts trainings short, it is not judged.
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
    """The ledger's row for a claim, after each finding was found true; shows as text and as a table row in a notebook.

    `findings` maps a sentence to what a cell has just computed. Raises AssertionError for a finding that is not true,
    ValueError for an unknown or undecided claim or for no findings. `trained` as in `verdict`.
    """
    rows = ledger()
    if key not in rows:
        raise ValueError(f"there is no claim {key!r}; the ledger has {', '.join(rows)}")
    if rows[key].verdict == "undecided":
        raise ValueError(f"claim {key} is undecided: give it a verdict, a reason and a test in claims.toml")
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
        found = "\n".join(
            f"    {'found' if self.judged else 'not judged (quick run)'}: {text}" for text in self.findings
        )
        return f"{SIGNS[c.verdict]} {c.id} ({', '.join(c.sources)}): {c.claim}\n  {c.verdict.upper()}. {c.because}\n{found}"

    def _repr_html_(self) -> str:
        c = self.claim
        mark = "found" if self.judged else "not judged (quick run)"
        found = "".join(f"<li>{mark}: {html.escape(text)}</li>" for text in self.findings)
        return (
            f"<p><b>{SIGNS[c.verdict]} {c.id}</b> ({', '.join(c.sources)}) <q>{html.escape(c.claim)}</q><br>"
            f"<b>{c.verdict[0].upper()}{c.verdict[1:]}.</b> {html.escape(c.because)}</p><ul>{found}</ul>"
        )
