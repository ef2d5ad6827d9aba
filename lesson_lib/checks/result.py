"""What a check answers: a record that reads well in a terminal (text) and in a notebook (HTML), in
any theme."""

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from lesson_lib.checks.values import written

State = Literal["passed", "failed", "open", "unjudged", "written", "judged"]

# Words and signs beside the colours: nothing is said by colour alone.
WORDS = {
    "passed": "PASSED",
    "failed": "NOT YET",
    "open": "NOT ATTEMPTED YET",
    "unjudged": "NOT JUDGED",
    "written": "WRITTEN",
    "judged": "JUDGED BY YOU",
}
SIGNS = {"passed": "✓", "failed": "✗", "open": "○", "unjudged": "?", "written": "○", "judged": "◇"}
COLOURS = {  # JupyterLab's own, which follow its theme; the second is for other viewers
    "passed": "var(--jp-success-color1, #2e7d32)",
    "failed": "var(--jp-warn-color1, #b26a00)",
    "open": "var(--jp-border-color1, #808080)",
    "unjudged": "var(--jp-border-color1, #808080)",
    "written": "var(--jp-info-color1, #0277bd)",
    "judged": "var(--jp-info-color1, #0277bd)",
}


SHORT = 6  # lines of inputs and results that stand open; more are folded
FOLDED = "asked for, inputs, expected, yours"
WIDTH = 110  # columns of text in a terminal
NOTHING_YET = "not attempted yet"
NO_RESULT = "no result"


@dataclass(frozen=True, eq=False)
class Counterexample:
    """The smallest inputs found on which an answer is wrong. `fn(**arguments)` shows it again."""

    arguments: dict[str, Any]
    expected: Any = None
    yours: Any = None


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of one check.

    `state` is passed, failed, open (not attempted yet), unjudged (the check could not judge: the sentence
    says why), or of an open question written and judged (its writer judges). `diagnosis` is one sentence;
    `counterexample` is None where there is nothing to show.
    """

    name: str
    state: State
    diagnosis: str
    asked: str = ""
    step: str = ""
    counterexample: Counterexample | None = None
    after: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """True where the answer is right."""
        return self.state == "passed"

    def __bool__(self) -> bool:
        return self.passed

    @property
    def rows(self) -> dict[str, str]:
        """What is shown, in order: label and text. A mistake is named first."""
        diagnosis = (
            {"diagnosis": self.diagnosis} if self.diagnosis != NOTHING_YET else {}
        )  # the heading says that
        rows = diagnosis | self._data if self.state == "failed" else self._data | diagnosis
        return {label: text for label, text in (rows | self.after).items() if text}

    @property
    def _data(self) -> dict[str, str]:
        rows = {"asked": self.asked, "step": self.step}
        if self.counterexample is not None:
            rows |= {name: written(value) for name, value in self.counterexample.arguments.items()}
            if self.counterexample.expected is not None:
                rows["expected"] = written(self.counterexample.expected)
            yours = self.counterexample.yours
            rows["yours"] = yours if type(yours) is str and yours == NO_RESULT else written(yours)
        return rows

    def __repr__(self) -> str:
        return table_text(f"{WORDS[self.state]}  {self.name}", self.rows)

    def _repr_html_(self) -> str:
        head = f"<b>{SIGNS[self.state]} {WORDS[self.state]}</b> &nbsp;<code>{escape(self.name)}</code>"
        data = {label: text for label, text in self._data.items() if text}
        lines = sum(1 + text.count("\n") for text in data.values())
        if self.state != "failed" or lines <= SHORT:
            return table_html(head, self.rows, COLOURS[self.state])
        rest = {label: text for label, text in self.rows.items() if label not in data}
        fold = f"<details><summary>{FOLDED}</summary>{_table(data)}</details>"
        return table_html(head, rest, COLOURS[self.state], fold)


@dataclass(frozen=True, eq=False)
class Note:
    """A heading and a few labelled lines: hints, solutions, the table of progress."""

    title: str
    rows: dict[str, str]
    code: str = ""

    def __repr__(self) -> str:
        return table_text(self.title, self.rows) + (f"\n\n{self.code}" if self.code else "")

    def _repr_html_(self) -> str:
        code = f"<pre style='margin:.5em 0 0 0'>{escape(self.code)}</pre>" if self.code else ""
        return table_html(f"<b>{escape(self.title)}</b>", self.rows, COLOURS["open"], code)


def table_text(title: str, rows: dict[str, str]) -> str:
    """Title and rows as aligned text."""
    width = max((len(label) for label in rows), default=0)
    lines = [title]
    for label, text in rows.items():
        parts = [part for line in _encodable(text).splitlines() for part in _wrapped(line, WIDTH - width - 4)]
        heads = [label] + [""] * len(parts)
        lines += [f"  {head.ljust(width)}  {part}" for head, part in zip(heads, parts, strict=False)]
    return "\n".join(lines)


def _wrapped(line: str, width: int) -> list[str]:
    """The line in parts of at most `width` columns, cut between words; a line that is short stays as
    it is."""
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)


def table_html(title: str, rows: dict[str, str], colour: str, below: str = "") -> str:
    """Title and rows as a small HTML table: no asset, no script; text keeps the colour of the page."""
    return (
        f"<div style='border-left:.3em solid {colour};padding:.2em .8em;color:inherit'><div>{title}</div>"
        f"{_table(rows)}{below}</div>"
    )


def _table(rows: dict[str, str]) -> str:
    lines = "".join(
        "<tr style='background:none'><td style='text-align:left;vertical-align:top;padding:.1em 1em .1em"
        f" 0;opacity:.75'>{escape(label)}</td><td style='text-align:left;vertical-align:top;padding:.1em"
        f" 0;white-space:pre-wrap{_font(text)}'>{escape(_encodable(text))}</td></tr>"
        for label, text in rows.items()
    )
    return f"<table style='border:none;margin:.2em 0 0 0;color:inherit'>{lines}</table>"


def _encodable(text: str) -> str:
    """The text with a question mark for what no notebook can save: half a character, as in "\\ud800"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _font(text: str) -> str:
    return ";font-family:monospace" if (text.startswith("[") and text.endswith("]")) or "\n" in text else ""
