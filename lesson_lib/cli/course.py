"""course.toml: the table of the course, and what is made from it.

Heads of notebooks have it through {title}, {about} and {sources} in their source. `build` writes the lists of
lessons in README, docs/lessons.md and the instructor's guide between two marks, and `build --check` compares
them.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lesson_lib.cli import kinds
from lesson_lib.places import ROOT

CORE = "●"
MARKS = "<!-- from course.toml -->\n", "<!-- until here -->\n"


@dataclass(frozen=True)
class Lesson:
    """A part, or a page that belongs to the way."""

    name: str
    title: str
    question: str
    minutes: int
    needs: str
    core: bool = False
    heading: str = ""
    sittings: str = ""
    exercises: str = "{page}"
    sources: str = ""
    edition: int = 2  # of 3 parts carry a list of ideas, and readers' minutes

    @property
    def number(self) -> str:
        """02a of 02a_soft_look_up."""
        return kinds.number_of(self.name)

    @property
    def asks(self) -> str:
        """The question as a title."""
        return self.question[:1].upper() + self.question[1:]


@dataclass(frozen=True)
class Chapter:
    """A chapter by its folder's name, with its lessons, and other pages that ask its exercises; `in_class` is
    the one exercise to do in class."""

    name: str
    title: str
    question: str
    in_class: str
    survives: str
    pages: Sequence[str] = ()
    lessons: tuple[Lesson, ...] = ()

    @property
    def number(self) -> str:
        """02 of 02_scoring."""
        return self.name[:2]


@cache
def chapters(root: Path = ROOT) -> tuple[Chapter, ...]:
    """The chapters in the course's order. Raises TypeError for a key that course.toml does not know, KeyError
    for a lesson without a chapter."""
    table = tomllib.loads((root / "course.toml").read_text(encoding="utf-8"))
    held: dict[str, list[Lesson]] = {name[:2]: [] for name in table["chapters"]}
    for name, row in table["parts"].items():
        held[kinds.chapter_of(name)].append(Lesson(name, **row))
    return tuple(Chapter(n, **row, lessons=tuple(held[n[:2]])) for n, row in table["chapters"].items())


def lessons(root: Path = ROOT) -> list[Lesson]:
    """The way through the course."""
    return [lesson for chapter in chapters(root) for lesson in chapter.lessons]


def hosted(name: str, root: Path = ROOT) -> tuple[str, str] | None:
    """For a notebook in a service that hosts such: a line that opens it there, and code that installs the
    course; None as long as course.toml has no address."""
    table = root / "course.toml"
    text = table.read_text(encoding="utf-8") if table.exists() else ""
    address = tomllib.loads(text).get("address", "").rstrip("/")
    if not address:
        return None
    repository = address.removeprefix("https://github.com/")
    link = f"https://colab.research.google.com/github/{repository}/blob/main/notebooks/{name}.ipynb"
    installs = f"""\
# Where the course is missing, as in Colab, this installs it; elsewhere it does nothing.
from importlib.util import find_spec

if find_spec("lesson_lib") is None:
    %pip install --quiet "lesson-lib @ git+{address}"
"""
    return f"[Open in Colab]({link})", installs.rstrip()


def filled(name: str, text: str, root: Path = ROOT) -> str:
    """A source's text with its lines {title}, {about} and {sources}."""
    fields = ("title", "about", "sources")
    if not any(f"\n{{{field}}}\n" in text for field in fields):
        return text
    (lesson,) = [lesson for lesson in lessons(root) if lesson.name == name]
    lines = (f"# {lesson.number} · {lesson.heading or lesson.asks}", about(lesson, root), _sources(lesson))
    for field, line in zip(fields, lines, strict=True):
        text = text.replace(f"\n{{{field}}}\n", f"\n{line}\n", 1)
    return text


def about(lesson: Lesson, root: Path = ROOT) -> str:
    """How long a lesson takes, what it needs, and where its exercises are, with links from notebooks/."""
    names = {other.number: other.name for other in lessons(root)}
    needs = re.sub(r"\{(\w+)\}", lambda found: f"[{found[1]}]({names[found[1]]}.ipynb)", lesson.needs)
    sittings = f", {lesson.sittings}" if lesson.sittings else ""
    said = f"**Time** about {lesson.minutes} minutes{sittings}. **You need** {needs}."
    page = next(c.name for c in chapters(root) if c.number == kinds.chapter_of(lesson.name))
    has = (root / "notebooks" / "source" / "exercises" / f"{page}.py").exists()
    if lesson.exercises and (has or "{page}" not in lesson.exercises):
        where = lesson.exercises.replace("{page}", f"[{page}](exercises/{page}.ipynb)")
        said += f" **Exercises**: {where}."
    return said


def _sources(lesson: Lesson) -> str:
    """The line that leads to the sources, in both languages."""
    if not lesson.sources:
        return ""
    if lesson.edition < 3:
        return f"〔[Sources · 五篇文章之路](sources.ipynb):{lesson.sources}〕"
    listed = lesson.sources.replace("、", ", ").replace("开头", "opening")
    where = re.sub(r"第 (.+?) 节", r"sections \1", listed)
    return f"〔[The road of five texts · 五篇文章之路](sources.ipynb): {where} · {lesson.sources}〕"


def asked(name: str) -> tuple[int, int]:
    """How many exercises a notebook has, and their minutes; predictions aside."""
    from lesson_lib.checks.engine import lessons

    minutes = [exercise.minutes for exercise in lessons().get(name, ()) if not exercise.prediction]
    return len(minutes), sum(minutes)


def lists(root: Path = ROOT) -> dict[Path, str]:
    """The pages with lists of lessons, as they should be."""
    made = {"README.md": _chapters(root), "docs/lessons.md": _table(root)}
    made["notebooks/instructor/README.md"] = _sums(root)
    return {
        root / page: _between((root / page).read_text(encoding="utf-8"), text) for page, text in made.items()
    }


def _between(page: str, text: str) -> str:
    before, mark, rest = page.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not mark or not end:
        raise ValueError(f"a page has no marks {MARKS[0].strip()} and {MARKS[1].strip()}")
    return before + mark + "\n" + text + "\n" + end + after


def _chapters(root: Path) -> str:
    """A line for each chapter: its question, its lessons."""
    lines = []
    for chapter in chapters(root):
        ways = (
            f"[{lesson.number}](notebooks/{lesson.name}.ipynb){f' {CORE}' if lesson.core else ''}"
            for lesson in chapter.lessons
        )
        lines.append(f"- **{chapter.title}**: {chapter.question} {' · '.join(ways)}")
    return "\n".join(lines) + "\n"


def _table(root: Path) -> str:
    """A row for each lesson, with its chapter's exercises and evidence in the last one."""
    lines = ["| nr | lesson | question | minutes | exercises | evidence |", "|---|---|---|---|---|---|"]
    for chapter in chapters(root):
        for lesson in chapter.lessons:
            page, proof, cells = f"exercises/{chapter.name}", f"evidence/{chapter.name}_evidence", ["", ""]
            if lesson is chapter.lessons[-1]:
                count, minutes = asked(page)
                cells[0] = f"[{count}, {minutes} minutes](../notebooks/{page}.ipynb)" if count else ""
                has = (root / "notebooks" / "source" / f"{proof}.py").exists()
                cells[1] = f"[{chapter.number}](../notebooks/{proof}.ipynb)" if has else ""
            number = f"{lesson.number} {CORE}" if lesson.core else lesson.number
            link = f"[{lesson.title}](../notebooks/{lesson.name}.ipynb)"
            row = [number, link, lesson.question, str(lesson.minutes), *cells]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _sums(root: Path) -> str:
    """A row for each chapter, with the minutes of its lessons and exercises, and their sums."""
    lines = [
        "| lesson | minutes | exercises, minutes | if there is time for one | what must survive |",
        "|---|---|---|---|---|",
    ]
    sums = [0, 0, 0]
    for chapter in chapters(root):
        pages = (*(lesson.name for lesson in chapter.lessons), f"exercises/{chapter.name}", *chapter.pages)
        counts = [asked(page) for page in pages]
        row = [sum(lesson.minutes for lesson in chapter.lessons), *map(sum, zip(*counts, strict=True))]
        sums = [a + b for a, b in zip(sums, row, strict=True)]
        one = f"`{chapter.in_class}`" if chapter.in_class else "–"
        link = f"[{chapter.number}]({chapter.name}.md)"
        lines.append(f"| {link} | {row[0]} | {row[1]}, {row[2]} | {one} | {chapter.survives} |")
    lines.append(f"| **together** | **{sums[0]}** | **{sums[1]}, {sums[2]}** | | |")
    return "\n".join(lines) + "\n"
