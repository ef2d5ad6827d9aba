"""The instructor's files: one for each chapter, in their form, in step with its parts; and plans that add
up."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lesson_lib.checks.engine import exercises, lessons
from lesson_lib.cli import kinds, sources

EXERCISES, LESSONS = exercises(), lessons()
GRADED = {name: e for name, e in EXERCISES.items() if not e.prediction}  # a prediction is part of its section

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
FOLDER = NOTEBOOKS / "instructor"
NAMES = sorted(p.stem for p in (NOTEBOOKS / "source").glob("*.py") if kinds.number_of(p.stem))
CHAPTERS = {kinds.chapter_of(name): [n for n in NAMES if n[:2] == name[:2]] for name in NAMES}
PARTS = ["Goals", "Minutes", "Prompts", "Misconceptions", "Board", "What to cut"]
COLUMNS = ["section", "minutes", "exercises", "may be cut"]


@dataclass
class Guide:
    """One instructor's file: the rows of its table of minutes, its prompts, and the text of each part."""

    title: str
    purpose: str
    parts: dict[str, str]
    header: list[str] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    together: str = ""
    # section, kinds of its bullets in order
    prompts: list[tuple[str, list[str]]] = field(default_factory=list)


def headed(text: str, mark: str) -> dict[str, str]:
    """The text under each heading of that level, in order; what stands before the first one under ""."""
    pieces = re.split(rf"^{mark} (.+)$", text, flags=re.M)
    return {"": pieces[0].strip()} | {
        h.strip(): t.strip() for h, t in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def table(text: str) -> tuple[list[str], list[dict[str, str]]]:
    """Header and rows of the first table of a text; cells without their blanks and stars."""
    found = re.search(r"(?:^\|.*\n?)+", text, flags=re.M)
    if not found:
        return [], []
    cells = [
        [cell.strip().strip("*").strip() for cell in line.strip().strip("|").split("|")]
        for line in found[0].splitlines()
    ]
    return cells[0], [dict(zip(cells[0], row, strict=False)) for row in cells[2:]]


def named(cell: str) -> list[str]:
    """The names in a cell, which commas part; a dash is none."""
    return [part.strip().strip("`") for part in cell.split(",") if part.strip() not in ("", "–", "-")]


def form(parts: list[str]) -> list[str]:
    """The headings of a chapter's file, whose table of minutes and prompts each of several parts has."""
    if len(parts) == 1:
        return PARTS
    own = [f"{heading}: {part}" for part in parts for heading in ("Minutes", "Prompts")]
    return [PARTS[0], *own, *PARTS[3:]]


def chapter_faults(text: str, asks: dict[str, list[str]], at_home: list[str]) -> list[str]:
    """What is not in the form of a chapter's file: `asks` are its parts with the exercises that each asks
    itself, `at_home` those of its notebook of exercises."""
    found = [heading for heading in headed(text.partition("\n")[2], "##") if heading]
    if found != form(list(asks)):
        return [f"the headings are {found}, not {form(list(asks))}"]
    listed = {part: [n for row in read(text, part).rows for n in named(row["exercises"])] for part in asks}
    out = [
        f"{name}, which {part} asks, is not in its table"
        for part, own in asks.items()
        for name in own
        if name not in listed[part]
    ]
    every = [name for names in listed.values() for name in names]
    wanted = [*at_home, *(name for own in asks.values() for name in own)]
    if sorted(every) != sorted(wanted):
        out.append(f"exercises of the tables {sorted(every)}, of the chapter {sorted(wanted)}")
    return out


def read(text: str, part: str = "") -> Guide:
    """A chapter's file as one part sees it: what is headed "Minutes: 02b_which_score" is for 02b alone."""
    title, _, rest = text.strip().partition("\n")
    parts = headed(rest, "##")
    purpose, own = parts.pop(""), {}
    for heading, said in parts.items():
        name, _, of = heading.partition(": ")
        own |= {name: said} if of in ("", part) else {}
    parts, guide = own, Guide(title, purpose, own)
    guide.header, rows = table(parts.get("Minutes", ""))
    guide.rows = [row for row in rows if row.get("section") != "together"]
    guide.together = next((row.get("minutes", "") for row in rows if row.get("section") == "together"), "")
    for section, said in headed(parts.get("Prompts", ""), "###").items():
        if section:
            guide.prompts.append((section, re.findall(r"^- \*\*([^*]+):\*\* \S", said, flags=re.M)))
    return guide


def sections(source: str) -> list[str]:
    """Opening, and the headings of a lesson, letter by letter."""
    return ["Opening", *(h.strip() for h in re.findall(r"^(?:# )?## (.+)$", source, flags=re.M))]


def minutes(source: str) -> int:
    return int(re.search(r"\*\*Time\*\* about (\d+) minutes", source).group(1))


def source(name: str) -> str:
    return sources.source_text(sources.targets([name], among=("part", "page"))[0])


def asked_by(*notebooks: str) -> list[str]:
    """The exercises that these notebooks ask; no predictions."""
    return [e.name for notebook in notebooks for e in LESSONS.get(notebook, ()) if e.name in GRADED]


def at_home(chapter: str) -> list[str]:
    """The exercises of a chapter's notebook of exercises; for 12 those of the page `sources_code`."""
    theirs = kinds.fitting(chapter, [n for n in LESSONS if kinds.kind_of(n) == "exercise"])
    return asked_by(*theirs, *(["sources_code"] if chapter == "12" else []))


def chapter_text(chapter: str) -> str:
    """The text of a chapter's file; it has the first edition's name, whatever the parts are called."""
    found = sorted(FOLDER.glob(f"{chapter}_*.md"))
    assert len(found) == 1, f"notebooks/instructor needs one file {chapter}_NAME.md, and has {len(found)}"
    return found[0].read_text(encoding="utf-8")


def faults(
    guide: Guide, number: str, of_lesson: list[str], time: int, asked: list[str] | None = None, parts: int = 1
) -> list[str]:
    """What is not in the form, a sentence each; `asked` are the exercises of its table (None: those of the
    chapter are shared out among several tables), `parts` how many the chapter has."""
    out = []
    if not re.fullmatch(rf"# {number} · \S.*: for the instructor", guide.title):
        out.append(f"the title is {guide.title!r}")
    if not guide.purpose or "\n\n" in guide.purpose:
        out.append("under the title stands one paragraph")
    if list(guide.parts) != PARTS:
        return [*out, f"the parts are {list(guide.parts)}, not {PARTS}"]
    most = 5 if parts == 1 else 3 * parts
    if not 3 <= len(re.findall(r"^- \S", guide.parts["Goals"], flags=re.M)) <= most:
        out.append(f"3 to {most} goals")
    if guide.header != COLUMNS:
        return [*out, f"the columns of Minutes are {guide.header}, not {COLUMNS}"]
    if [row["section"] for row in guide.rows] != of_lesson:
        out.append(
            f"sections of the table {[row['section'] for row in guide.rows]}, of the lesson {of_lesson}"
        )
    if not all(row["minutes"].isdecimal() for row in guide.rows):
        out.append("minutes are whole numbers")
    elif not str(sum(int(row["minutes"]) for row in guide.rows)) == guide.together == str(time):
        found = sum(int(row["minutes"]) for row in guide.rows)
        out.append(f"the minutes make {found}, together says {guide.together!r}, the lesson {time}")
    listed = [name for row in guide.rows for name in named(row["exercises"])]
    if asked is not None and sorted(listed) != sorted(asked):
        out.append(f"exercises of the table {sorted(listed)}, of the lesson {sorted(asked)}")
    if not all(re.match(r"no\b|yes[:,] \S", row["may be cut"]) for row in guide.rows):
        out.append("may be cut says no, or yes and what then is missing")
    if strange := [section for section, _ in guide.prompts if section not in of_lesson]:
        out.append(f"prompts for {strange}, which are no sections")
    for section, lines in guide.prompts:
        if not re.fullmatch(r"(Ask Answer (If nobody answers )?)+", "".join(f"{k} " for k in lines)):
            out.append(f"{section}: the prompt's lines are {lines}")
    least = 5 if parts == 1 else 3
    if len({section for section, _ in guide.prompts}) < least:
        out.append(f"at least {least} sections with prompts")
    if len(re.findall(r"^- \*\*\"[^*]+\"\*\* \S", guide.parts["Misconceptions"], flags=re.M)) < 4:
        out.append("at least 4 misconceptions, each with its treatment")
    sketches = re.findall(r"^```\n(.*?)^```$", guide.parts["Board"], flags=re.M | re.S)
    if not 1 <= len(sketches) <= max(2, parts) or not all(sketch.strip() for sketch in sketches):
        out.append("one or two sketches" if parts <= 2 else f"1 to {parts} sketches")
    if wide := [line for sketch in sketches for line in sketch.splitlines() if len(line) > 72]:
        out.append(f"wider than 72: {wide}")
    if not guide.parts["What to cut"]:
        out.append("What to cut is empty")
    return out


def guides() -> dict[str, Guide]:
    """Number of each part, 02 or 02a -> what its chapter's file says of it."""
    return {kinds.number_of(name): read(chapter_text(kinds.chapter_of(name)), name) for name in NAMES}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_a_file_in_the_form(chapter):
    text, parts = chapter_text(chapter), CHAPTERS[chapter]
    assert chapter_faults(text, {part: asked_by(part) for part in parts}, at_home(chapter)) == []
    for part in parts:
        text_of = source(part)
        found = faults(read(text, part), chapter, sections(text_of), minutes(text_of), parts=len(parts))
        assert found == [], part


@pytest.mark.parametrize("page", sorted(p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*.md")))
def test_the_make_targets_that_are_named_exist(page):
    made = (NOTEBOOKS.parent / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", made, flags=re.M))
    said = set(re.findall(r"`make ([a-z-]+)", (FOLDER / page).read_text(encoding="utf-8")))
    assert said <= targets and (said or page != "README.md")


# ---- the guards can fail ----

GOOD = """# 99 · A lesson: for the instructor

One paragraph,
on two lines.

## Goals
- do one thing
- do another
- do a third

## Minutes
| section | minutes | exercises | may be cut |
|---|---|---|---|
| Opening | 2 | – | no |
| 1 · One | 3 | one, two | yes: the proof |
| 2 · Two | 4 | – | no |
| 3 · Three | 5 | three | no |
| 4 · Four | 6 | – | no |
| **together** | 20 | | |

## Prompts
### Opening
- **Ask:** What?
- **Answer:** This,
  and that.
- **If nobody answers:** Really?
### 1 · One
- **Ask:** What?
- **Answer:** This.
- **Ask:** And then?
- **Answer:** That.
### 2 · Two
- **Ask:** What?
- **Answer:** This.
### 3 · Three
- **Ask:** What?
- **Answer:** This.
### 4 · Four
- **Ask:** What?
- **Answer:** This.

## Misconceptions
- **"one"** Treat it.
- **"two"** Treat it.
- **"three"** Treat it.
- **"four"** Treat it.

## Board
Draw it.
```
 +---+
```

## What to cut
Stay with 1.
"""
LESSON = ["Opening", "1 · One", "2 · Two", "3 · Three", "4 · Four"]
SPOILED = {
    "the title": ("for the instructor", "for all"),
    "3 to 5 goals": ("- do a third\n", ""),
    "sections of the table": ("| 2 · Two |", "| 2. Two |"),
    "the minutes make": ("| 3 | one", "| 4 | one"),
    "exercises of the table": ("one, two", "one"),
    "may be cut says": ("yes: the proof", "yes"),
    "the prompt's lines": ("- **Answer:** That.\n", ""),
    "wider than 72": ("+---+", "+" + "-" * 72),
}


def test_a_file_in_the_form_has_no_faults():
    assert faults(read(GOOD), "99", LESSON, 20, ["one", "two", "three"]) == []


@pytest.mark.parametrize("fault", SPOILED)
def test_each_departure_from_the_form_is_named(fault):
    old, new = SPOILED[fault]
    assert GOOD.count(old) == 1 or fault == "at least 4 misconceptions"
    found = faults(read(GOOD.replace(old, new)), "99", LESSON, 20, ["one", "two", "three"])
    assert any(fault in sentence for sentence in found), found


HEAD, MIDDLE = GOOD.split("## Minutes\n")
TABLE, PROMPTS, REST = re.split("## Prompts\n|(?=## Misconceptions)", MIDDLE)
SEVERAL = HEAD + "".join(
    f"## Minutes: {part}\n{TABLE.replace('one, two', names)}## Prompts: {part}\n{PROMPTS}"
    for part, names in (("99a_first", "one, two"), ("99b_other", "four"))
).replace("| three |", "| – |", 1) + REST  # fmt: skip
ASKS = {"99a_first": ["two"], "99b_other": ["three"]}


def test_a_file_of_several_parts_has_a_table_and_prompts_for_each():
    assert chapter_faults(SEVERAL, ASKS, ["one", "four"]) == []
    for part, asked in (("99a_first", ["one", "two"]), ("99b_other", ["four", "three"])):
        assert faults(read(SEVERAL, part), "99", LESSON, 20, asked, parts=2) == []
    assert chapter_faults(GOOD, {"99_whole": ["one"]}, ["two", "three"]) == []


SEVERAL_SPOILED = {
    "the headings are": ("## Prompts: 99a_first\n", "## Prompts\n"),
    "two, which 99a_first asks, is not in its table": ("one, two", "one"),
    "of the chapter ['four', 'one', 'three', 'two']": ("| four |", "| – |"),
}


@pytest.mark.parametrize("fault", SEVERAL_SPOILED)
def test_each_departure_from_the_form_of_several_parts_is_named(fault):
    old, new = SEVERAL_SPOILED[fault]
    assert SEVERAL.count(old) == 1
    found = chapter_faults(SEVERAL.replace(old, new), ASKS, ["one", "four"])
    assert any(fault in sentence for sentence in found), found


def test_a_part_reads_its_own_table_and_prompts_alone():
    other = SEVERAL.replace("- **Ask:** What?", "- **Ask:** Which of the two?", 1)
    first, second = (read(other, part) for part in ASKS)
    assert "Which of the two?" in first.parts["Prompts"] and "Which of" not in second.parts["Prompts"]
    assert [named(guide.rows[1]["exercises"]) for guide in (first, second)] == [["one", "two"], ["four"]]
    assert list(first.parts) == list(second.parts) == PARTS
