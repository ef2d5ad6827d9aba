"""The plans of sessions, notebooks/instructor/plans/*.md, as data: what is held when, and which cells it
takes."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from lesson_lib.cli import kinds
from lesson_lib.places import ROOT

IN_CLASS = ("from", "minutes", "what", "lesson", "sections", "exercises", "hands")
AT_HOME = ("minutes", "what", "lesson", "sections", "exercises")
WORDS = ("word", "say")
OPENING = "Opening"


@dataclass(frozen=True)
class Row:
    """A stretch of a session, or of homework: `lesson` is a part's number, such as 02a, or ''; `hands` are
    the minutes in which everybody types, computes on paper, or votes and talks to a neighbour."""

    what: str
    minutes: int
    lesson: str = ""
    sections: tuple[str, ...] = ()
    exercises: tuple[str, ...] = ()
    start: str = ""
    hands: int = 0
    starred: tuple[str, ...] = ()  # of the exercises: what gets its four minutes

    @property
    def pause(self) -> bool:
        """Whether it is a break or lunch."""
        return self.what in ("break", "lunch")

    @property
    def slack(self) -> bool:
        """Whether it is time that is kept free."""
        return self.what.startswith("slack")


@dataclass
class Session:
    """One table of a plan: a session in class, or what is done at home after it; below a heading that begins
    with "In the evening" what nobody must do. `late`: what falls when it gets late."""

    title: str
    rows: list[Row]
    together: int
    home: bool = False
    late: str = ""

    @property
    def optional(self) -> bool:
        """Whether a later session may not count on it."""
        return self.title.startswith("In the evening")


@dataclass
class Plan:
    """A plan: its sessions in order, and the words that the instructor explains, since no section that it
    takes does."""

    name: str
    title: str
    about: str = ""  # the first paragraph: for whom, and what they can do at the end
    first: str = ""  # what is said before anything is shown
    sessions: list[Session] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)

    @property
    def held(self) -> list[Session]:
        """The sessions in class."""
        return [session for session in self.sessions if not session.home]


def names(root: Path = ROOT) -> list[str]:
    """The plans that there are: half-day, two-days, eight-weeks."""
    found = (root / "notebooks" / "instructor" / "plans").glob("*.md")
    order = {"half-day": 0, "two-days": 1, "eight-weeks": 2}
    return sorted((p.stem.replace("_", "-") for p in found), key=lambda name: (order.get(name, 9), name))


def read(name: str, root: Path = ROOT) -> Plan:
    """One plan. Raises ValueError, in a sentence, where there is none, or a table is not in the form."""
    name = name.replace("_", "-")
    if name not in names(root):
        raise ValueError(f"no plan is called {name!r}; there are {', '.join(names(root))}")
    path = root / "notebooks" / "instructor" / "plans" / f"{name.replace('-', '_')}.md"
    return parsed(name, path.read_text(encoding="utf-8"))


def parsed(name: str, text: str) -> Plan:
    """The plan that a page describes: its tables, each under the last heading before it.

    >>> rows = "| from | minutes | what | lesson | sections | exercises | hands |\\n|---|---|---|---|---|---|---|\\n"
    >>> rows += "| 0:00 | 9 | look | [02a](../02.md) | Opening, 1 | `x` | 4 |\\n| | **9** | **together** | | | | |"
    >>> (session,) = parsed("short", "# Short\\n## Day\\n" + rows).sessions
    >>> session.title, session.together, session.rows[0].lesson, session.rows[0].sections
    ('Day', 9, '02a', ('Opening', '1'))
    """  # noqa: E501
    plan, heading = Plan(name, name), ""
    for block in re.split(r"\n\s*\n|\n(?=#)|(?<=\n)(?=\|.*\n\|-)", text):
        if found := re.match(r"(#+) (.+)", block):
            heading = found[2].strip()
            if len(found[1]) == 1:
                plan.title = heading
            continue
        if block.strip() and not plan.about:
            plan.about = " ".join(block.split())
        if said := re.match(r"\*\*Say first\.\*\*(.+)", block.strip(), re.S):
            plan.first = " ".join(said[1].split())
        if block.startswith("Late") and plan.sessions:
            plan.sessions[-1].late = " ".join(block.split())
        lines = [line for line in block.strip().splitlines() if line.startswith("|")]
        if len(lines) < 3:
            continue
        header, *rows = [_cells(line) for line in lines if not line.startswith("|-")]
        if tuple(header) == WORDS:
            plan.words |= {word.lower(): said for word, said in rows}
        elif tuple(header) in (IN_CLASS, AT_HOME):
            plan.sessions.append(_session(heading, tuple(header), rows))
    return plan


def _session(title: str, header: tuple[str, ...], rows: list[list[str]]) -> Session:
    def row(cells: list[str]) -> Row:
        at = dict(zip(header, cells, strict=False))
        number = re.match(r"\[(\w+)\]", at["lesson"])
        return Row(
            at["what"],
            int(at["minutes"]),
            number[1] if number else "",
            tuple(_named(at["sections"])),
            tuple(name.removeprefix("★").strip(" `") for name in _named(at["exercises"])),
            at.get("from", ""),
            int(at.get("hands", "0").strip("–") or 0),
            tuple(n.strip("★ `") for n in _named(at["exercises"]) if n.startswith("★")),
        )

    try:
        *made, last = [row(cells) for cells in rows]
    except (ValueError, KeyError) as error:
        raise ValueError(f"{title}: a row is not in the form ({error})") from None
    return Session(title, made, last.minutes, home=header == AT_HOME)


def sections_of(notebook: NotebookNode) -> dict[str, list[NotebookNode]]:
    """The cells of a part under each of its headings, in order; a cell of text that holds a heading is cut
    there.

    The first heading is Opening, for what stands before all others.
    """
    found: dict[str, list[NotebookNode]] = {OPENING: []}
    here = OPENING
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            found[here].append(cell)
            continue
        for piece in re.split(r"(?m)^(?=## )", cell.source):
            if heading := re.match(r"## (.+)", piece):
                here = heading[1].strip()
                found.setdefault(here, [])
            if piece.strip():
                found[here].append(NotebookNode(cell, source=piece.strip()))
    return found


def taken(row: Row, headings: list[str], *, run: bool = False) -> list[str]:
    """The headings of the sections that a row names: by number, or by the words; "?..." where there is none.
    Those in parentheses, (Opening), are run and not spoken about: they count with `run` alone.

    >>> row = Row("why", 9, "02b", ("(Opening)", "1"))
    >>> taken(row, ["Opening", "1 · One"]), taken(row, ["Opening", "1 · One"], run=True)
    (['1 · One'], ['Opening', '1 · One'])
    """
    numbers = {h.partition(" · ")[0]: h for h in headings if " · " in h}
    asked = [part for part in row.sections if run or not part.startswith("(")]
    asked = [part.strip("()") for part in asked]
    return [numbers.get(part, part if part in headings else f"?{part}") for part in asked]


def built(number: str, root: Path = ROOT) -> NotebookNode:
    """The built notebook of a part or page with this number, such as 02a."""
    import nbformat

    (name,) = [n for n in kinds.built(root, ("part", "page")) if kinds.number_of(n) == number]
    return nbformat.read(root / "notebooks" / f"{name}.ipynb", 4)


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("*").strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _named(cell: str) -> list[str]:
    """The names in a cell, which commas part; a dash is none."""
    return [part.strip().strip("`") for part in cell.split(",") if part.strip() not in ("", "–", "-")]
