"""The plans: their minutes add up, each session's cells run in order, and no word is used in class that has
not been explained there; and the questions for a room."""

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module

import pytest
import torch
from nbformat import NotebookNode

from lesson_lib.checks.engine import exercises, lessons
from lesson_lib.cli import course, kinds, plans, room_questions
from lesson_lib.cli.plans import Plan, Row, Session
from lesson_lib.data import tagging
from lesson_lib.models.pretrained import SMALL_WRITER, open_model
from lesson_lib.models.pretrained.inside import opened
from tests import cells
from tests.test_instructor import asked_by, guides, named
from tools import reading

ROOM = 1.3  # what takes a reader a minute takes a room so many
EXERCISES = exercises()
QUESTIONS = room_questions.read()
PLANS = {"half-day": 1, "two-days": 2, "eight-weeks": 8}  # sessions in class
CORE = [lesson.number for lesson in course.lessons() if lesson.core]  # each has two questions


@cache
def sections() -> dict[str, dict[str, list[NotebookNode]]]:
    """Number of each part -> its headings -> their cells."""
    names = [n for n in kinds.built(plans.ROOT, ("part", "page")) if kinds.number_of(n)]
    return {kinds.number_of(n): plans.sections_of(plans.built(kinds.number_of(n))) for n in names}


def known() -> dict[str, list[str]]:
    return {number: list(found) for number, found in sections().items()}


def lasts(name: str) -> int:
    """The minutes of an exercise, or of a question for a room."""
    return room_questions.MINUTES if name in QUESTIONS else EXERCISES[name].minutes


# ---- the tables ----


def faults(session: Session, known: dict[str, list[str]]) -> Iterator[str]:
    """What does not add up, or does not exist, in one table; `known`: a lesson's number -> its sections."""
    clock = sat = 0
    for row in session.rows:
        if not session.home and row.start and row.start != f"{clock // 60}:{clock % 60:02}":
            yield f"{row.what}: from {row.start}, but it is {clock // 60}:{clock % 60:02}"
        clock += row.minutes
        sat = 0 if row.pause else sat + row.minutes
        if not session.home and sat > 100:
            yield f"nobody sits longer than 100 minutes, here {sat} up to {row.what!r}"
        unknown = [name for name in row.exercises if name not in {**EXERCISES, **QUESTIONS}]
        if unknown:
            yield f"{row.what}: nothing is called {unknown}"
        elif sum(lasts(name) for name in row.exercises) > row.minutes:
            yield f"{row.what}: {row.minutes} minutes are too few for {list(row.exercises)}"
        if row.lesson and row.lesson not in known:
            yield f"{row.what}: there is no lesson {row.lesson!r}"
        elif strange := [p for p in plans.taken(row, known.get(row.lesson, []), run=True) if p[0] == "?"]:
            yield f"{row.what}: lesson {row.lesson} has no sections {strange}"
        if row.hands > row.minutes:
            yield f"{row.what}: {row.hands} minutes of hands in {row.minutes}"
        for name in row.starred:
            if not (name in QUESTIONS or EXERCISES[name].prediction):
                yield f"{row.what}: {name} is starred, and no question for a room"
    if session.together != clock:
        yield f"the rows make {clock} minutes, the last one says {session.together}"


def lacks(session: Session) -> Iterator[str]:
    """What a room lacks in a session: hands, room for what takes longer, votes, and what falls then."""
    hands = sum(row.hands for row in session.rows)
    free = sum(row.minutes for row in session.rows if row.slack)
    if hands < 0.25 * session.together:
        yield f"{hands} minutes of hands in {session.together}"
    if free < 0.1 * session.together:
        yield f"{free} minutes kept free in {session.together}"
    if len([name for row in session.rows for name in row.starred]) < 2:
        yield "fewer than two votes"
    if not re.search(r"\(\d+ minutes less\)", session.late):
        yield "nothing is said of what falls when it gets late"
    sat = 0
    for row in session.rows:
        sat = 0 if row.pause or row.slack else sat + row.minutes - row.hands
        if sat > 20:
            yield f"{sat} minutes in which nobody acts, up to {row.what!r}"
        sat = 0 if row.hands else sat


def own(number: str) -> set[str]:
    """The exercises that a part asks itself: their minutes are the part's."""
    names = [n for n in lessons() if kinds.kind_of(n) != "exercise" and kinds.number_of(n) == number]
    return set(asked_by(*names))


def needed(row: Row, headings: list[str], guide, room: float = 1) -> float:
    """The minutes of a row by the guide: of its sections without the exercises that are left out, times
    `room`, and of the exercises and votes besides."""
    of = [r for r in guide.rows if r["section"] in plans.taken(row, headings)]
    inside = {name for r in of for name in named(r["exercises"])} & own(row.lesson)
    left = sum(EXERCISES[name].minutes for name in inside - set(row.exercises)) if room > 1 else 0
    besides = sum(lasts(name) for name in row.exercises if name not in inside)
    return room * (sum(int(r["minutes"]) for r in of) - left) + besides


def unprepared(plan: Plan, known: dict[str, list[str]], files: dict) -> Iterator[str]:
    """Exercises and questions that come before the section that prepares them; rows of a room with less time
    than it needs, and rows at home with another than a reader's; `files`: a lesson's number -> its guide."""
    prepares = {
        name: (number, row["section"])
        for number, guide in files.items()
        for row in guide.rows
        for name in named(row["exercises"])
    }
    prepares |= {name: (kinds.number_of(q.part), q.after) for name, q in QUESTIONS.items()}
    met: set[tuple[str, str]] = set()
    for home, row in ((s.home, row) for s in plan.sessions for row in s.rows):
        here = plans.taken(row, known.get(row.lesson, []))
        met.update((row.lesson, section) for section in here)
        for name in row.exercises:
            place = prepares.get(name) or _asks(name, known)
            if place not in met:
                yield f"{name} comes before {place}"
        if row.lesson in files:
            full = needed(row, known[row.lesson], files[row.lesson], 1 if home else ROOM)
            if row.minutes != full if home else row.minutes < full - 0.5:
                yield f"{row.what}: {row.minutes} minutes; lesson {row.lesson} needs {full}"


def _asks(name: str, known: dict[str, list[str]]) -> tuple[str, str] | None:
    """The part and section in which a prediction is asked."""
    for number, found in sections().items():
        for heading, under in found.items() if number in known else ():
            if any(re.search(rf"""predict\(["']{name}["']""", cell.source) for cell in under):
                return number, heading
    return None


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_adds_up_and_names_what_exists(name):
    plan = plans.read(name)
    assert len(plan.held) == PLANS[name]
    assert [fault for session in plan.sessions for fault in faults(session, known())] == []


@pytest.mark.parametrize("name", PLANS)
def test_exercises_come_after_what_prepares_them_and_sections_have_their_time(name):
    assert list(unprepared(plans.read(name), known(), guides())) == []


def test_a_row_of_another_length_than_its_sections_is_found():
    plan = plans.read("eight-weeks")
    for session, more in zip(plan.sessions, (-3, 1), strict=False):
        session.rows[2] = replace(session.rows[2], minutes=session.rows[2].minutes + more)
    assert ["needs" in fault for fault in unprepared(plan, known(), guides())] == [True, True]


def test_sessions_are_as_long_as_promised():
    totals = {name: [session.together for session in plans.read(name).held] for name in PLANS}
    (half,) = plans.read("half-day").held
    free = sum(row.minutes for row in half.rows if row.slack)
    said = (
        f"In {sum(row.hands for row in half.rows)} of the 210 minutes they type, compute or vote; {free} are"
    )
    assert totals["half-day"] == [210] and said in plans.read("half-day").about
    assert all(360 <= total <= 450 for total in totals["two-days"])
    assert all(90 <= total <= 120 for total in totals["eight-weeks"])
    path = plans.ROOT / "notebooks" / "instructor" / "plans" / "eight_weeks.md"
    said = re.search(r"In\s+class (\d+) minutes, at home (\d+)", path.read_text(encoding="utf-8"))
    home = sum(s.together for s in plans.read("eight-weeks").sessions if s.home)
    assert (int(said[1]), int(said[2])) == (sum(totals["eight-weeks"]), home)
    for week in (s for s in plans.read("eight-weeks").sessions if s.home):
        assert week.together <= 240 * (2 if "two weeks" in week.title else 1), week.title


@pytest.mark.parametrize("name", PLANS)
def test_each_session_is_hands_and_votes_and_has_room(name):
    assert [(s.title, fault) for s in plans.read(name).held for fault in lacks(s)] == []


def test_eight_weeks_cover_the_core_path_name_every_part_and_ask_every_question():
    plan = plans.read("eight-weeks")
    rows = [row for session in plan.sessions for row in session.rows]
    missing = {number: set(known()[number]) for number in known()}
    for row in (row for row in rows if row.lesson):
        missing[row.lesson] -= set(plans.taken(row, known()[row.lesson]))
    chosen = {number for row in rows for number in re.findall(r"\[(\d\w+)\]", row.what)}
    assert {number for number, headings in missing.items() if headings} == chosen
    held = {row.lesson for session in plan.held for row in session.rows}
    assert set(CORE) <= held and not held & chosen
    assert sorted(name for row in rows for name in row.starred) == sorted(QUESTIONS)


# ---- the cells ----


def parts_of(session: plans.Session, known: dict[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Each part of a session, with the sections that it takes of it, in the part's own order; `known`:
    number -> headings."""
    for number in dict.fromkeys(row.lesson for row in session.rows if row.lesson in known):
        rows = [row for row in session.rows if row.lesson == number]
        chosen = {h for row in rows for h in plans.taken(row, known[number], run=True)}
        yield number, [heading for heading in known[number] if heading in chosen]


def holes() -> dict[tuple[str, ...], list[str]]:
    """(number, headings ...) of which a session leaves out an earlier one -> the sessions. Whatever takes a
    part from its beginning without a hole is run by every run of that part."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in PLANS:
        for session in plans.read(name).sessions:
            for number, chosen in parts_of(session, known()) if not session.home else ():
                if chosen != known()[number][: len(chosen)]:
                    found.setdefault((number, *chosen), []).append(f"{name}: {session.title}")
    return found


def codes(found: Iterable[NotebookNode]) -> list[str]:
    return [cell.source for cell in found if cell.cell_type == "code"]


def unbound(sources: Iterable[str]) -> Iterator[str]:
    """Names that a cell reads, and that neither it nor a cell before binds; for what a function reads, any
    cell will do."""
    bound, late = {*dir(builtins), "display"}, set()
    for statement in (part for source in sources for part in ast.parse(cells.plain(source)).body):
        table = symtable.symtable(ast.unparse(statement), "a cell", "exec")
        own = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            own |= set(import_module(statement.module).__all__)
        read = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
        assigned = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign)
        yield from sorted(read - bound - (set() if assigned else own))
        bound |= own
        late |= set(cells.global_names(table))
    yield from sorted(late - bound)


@pytest.mark.parametrize("taken", holes(), ids=lambda taken: taken[0])
def test_no_cell_of_a_session_needs_one_that_it_leaves_out(taken):
    number, *headings = taken
    chosen = codes(cell for heading in headings for cell in sections()[number][heading])
    assert list(unbound(chosen)) == [], holes()[taken]


@pytest.mark.skipif(sys.platform == "win32", reason="a fork; the systems with one say it for all")
@pytest.mark.parametrize("taken", [t for t, where in holes().items() if "half-day" in where[0]])
def test_the_cells_of_half_a_day_run_without_those_that_it_leaves_out(taken):
    """The others' names are all there; this plan leaves out the most."""
    number, *headings = taken
    chosen = list(codes(cell for heading in headings for cell in sections()[number][heading]))
    assert len(cells.run(chosen)) == len(chosen) > 0


@pytest.mark.parametrize("given", ["x = 1", "import torch as x", "for x in (1, 2):\n    print(x)"])
def test_a_cell_that_needs_one_that_is_left_out_is_found(given):
    needs = ["y = x + 1", "x = x + 1", "def f(z):\n    return z * x", "print([x for z in range(3)])"]
    for needing in needs:
        assert list(unbound([given, needing])) == [] and set(unbound([needing])) == {"x"}


# ---- the words ----


def prose(cells: Iterable[NotebookNode]) -> str:
    """What a section says, without code, formulas, links' addresses, the Chinese summary and the goals."""
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"<details><summary>中文.*?</details>", "", text, flags=re.S)
    text = re.sub(r"^\*\*(?:Afterwards|Time)\b.*?(?=\n\n|\Z)", "", text, flags=re.S | re.M)
    return re.sub(r"^```.*?^```|`[^`\n]*`|\$[^$]*\$|(?<=\])\([^)]*\)", "", text, flags=re.S | re.M)


def marked(text: str) -> set[str]:
    """The words that a section introduces, in bold or in italics."""
    found = [*re.finditer(reading.BOLD, text), *re.finditer(reading.ITALIC, text, flags=re.M)]
    return {match[1].lower() for match in found}


def unexplained(plan: Plan, texts: dict[tuple[str, str], str], terms: Iterable[str]) -> Iterator[str]:
    """Terms that a section of the plan uses before a section that introduces them, or the plan's own list of
    words, has come. `texts`: (number, heading) -> what it says, in the course's order.

    A term is one from the section on that introduces it first; what came before means the everyday word.
    """
    order = list(texts)
    introduced = {place: marked(text) for place, text in texts.items()}
    homes = {t: [p for p in order if introduced[p] & {t, f"{t}s"}] for t in terms}
    used = re.compile(
        r"\b(" + "|".join(sorted(map(re.escape, homes), key=len, reverse=True)) + r")s?\b", re.I
    )
    met: set[tuple[str, str]] = set()
    for session in (s for s in plan.sessions if not s.optional):
        for row in (row for row in session.rows if row.lesson):
            headings = [heading for number, heading in order if number == row.lesson]
            here = [(row.lesson, heading) for heading in plans.taken(row, headings)]
            met.update(here)
            for place in here:
                for term in sorted({m[1].lower() for m in used.finditer(texts[place])}):
                    late = homes[term] and order.index(place) >= order.index(homes[term][0])
                    if late and not met & set(homes[term]) and term not in plan.words and not session.home:
                        yield f"{session.title}: {place[0]}, {place[1]} says {term!r}"


def every_text() -> dict[tuple[str, str], str]:
    return {(n, h): prose(cells) for n, found in sections().items() for h, cells in found.items()}


def every_term() -> list[str]:
    page = (plans.ROOT / "notebooks" / "source" / "glossary.py").read_text(encoding="utf-8")
    return [re.sub(r" \(.*\)", "", term) for term in reading.glossary([page])]


@pytest.mark.parametrize("name", PLANS)
def test_every_term_that_is_used_in_class_was_explained_in_class_before(name):
    assert list(unexplained(plans.read(name), every_text(), every_term())) == []


def test_a_term_that_was_left_out_is_found():
    texts = {
        ("01", "Opening"): "A mask is worn.",
        ("01", "1 · One"): "A **mask** says so.",
        ("02", "Opening"): "Two masks.",
    }
    rows = [Row("first", 5, "01", ("Opening",)), Row("second", 5, "02", ("Opening",))]
    plan = Plan("x", "X", sessions=[Session("Day", rows, 10)])
    assert list(unexplained(plan, texts, ["mask"])) == ["Day: 02, Opening says 'mask'"]
    plan.words["mask"] = "who may look"
    assert list(unexplained(plan, texts, ["mask"])) == []
    plan.words, rows[0] = {}, Row("first", 5, "01", ("Opening", "1"))
    assert list(unexplained(plan, texts, ["mask"])) == []


# ---- the guards can fail ----

GOOD = """# Short

| from | minutes | what | lesson | sections | exercises | hands |
|---|---|---|---|---|---|---|
| 0:00 | 10 | start | – | – | – | – |
| 0:10 | 40 | look-up | [02](../02_scoring.md) | Opening, 1 | ★ `other_axis`, ★ `one_row_of_x` | 30 |
| 0:50 | 12 | pairs | [02](../02_scoring.md) | – | `scaled_attention` | 10 |
| 1:02 | 8 | slack | – | – | – | – |
| | **70** | **together** | | | | |

Late? Leave out the pairs (12 minutes less).

| minutes | what | lesson | sections | exercises |
|---|---|---|---|---|
| 4 | at home | [02](../02_scoring.md) | – | `score_ratio` |
| **4** | **together** | | | |
"""
SPOILED = {
    "but it is 0:10": ("0:10", "0:15"),
    "nothing is called": ("`scaled_attention`", "`scaled`"),
    "too few": ("| 12 | pairs", "| 8 | pairs"),
    "the rows make 70": ("**70**", "**90**"),
    "longer than 100": ("| 40 |", "| 91 |"),
    "10 minutes of hands": ("| 30 |", "| – |"),
    "0 minutes kept free": ("slack", "talk"),
    "fewer than two": (", ★", ", "),
    "nothing is said": (" minutes less", ""),
    "21 minutes in which nobody acts": ("| 30 |", "| 29 |"),
}


def found(text: str) -> list[str]:
    of = {"02": ["Opening", "1 · A look-up with soft edges"]}
    sessions = plans.parsed("short", text).sessions
    return [fault for s in sessions for fault in [*faults(s, of), *(() if s.home else lacks(s))]]


@pytest.mark.parametrize("fault", SPOILED)
def test_each_fault_of_a_plan_is_named(fault):
    assert found(GOOD) == [] and [s.home for s in plans.parsed("short", GOOD).sessions] == [False, True]
    old, new = SPOILED[fault]
    assert GOOD.count(old) == 1
    assert any(fault in sentence for sentence in found(GOOD.replace(old, new)))


def test_a_row_out_of_form_and_a_plan_that_is_none_are_sentences():
    with pytest.raises(ValueError, match="Short: a row is not in the form"):
        plans.parsed("short", GOOD.replace("| 10 | start", "| ten | start"))
    with pytest.raises(ValueError, match="no plan is called 'week'; there are half-day, two-days"):
        plans.read("week")


# ---- questions for a room ----


def test_every_core_part_has_two_questions_and_no_other_has_any():
    parts = {kinds.number_of(name): name for name in lessons() if kinds.kind_of(name) == "part"}
    counts = {
        number: sum(q.part == parts[number] for q in QUESTIONS.values()) for number in CORE if number != "00"
    }
    assert counts == dict.fromkeys(counts, 2) and sum(counts.values()) == len(QUESTIONS)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_stands_behind_a_section_and_fits_on_a_slide(name):
    question = QUESTIONS[name]
    assert question.after in known()[kinds.number_of(question.part)]
    assert question.again is not None and name not in EXERCISES
    for asked in (question, question.again):
        assert len(asked.asked.split()) <= 55 and 3 <= len(asked.options) <= 4
        assert all(len(option.split()) <= 18 for option in asked.options.values())


@pytest.mark.on_cpu
def test_answers_that_hang_on_our_data_and_model_are_right():
    """All others are arithmetic."""
    with_place = tagging.limit(lambda c: (c + 1) * 100 + torch.arange(c.shape[1]), among=("cut",))
    length = lambda c: tagging.window(1)(c) * 32 + (c != tagging.PADDING).sum(1, keepdim=True)  # noqa: E731
    asked = QUESTIONS["one_more_input"]
    assert f"{with_place:.3f}" in asked.because
    assert f"{tagging.limit(length, among=('cut',)):.3f}" in asked.again.because
    model = open_model(SMALL_WRITER)
    for texts, equal in (
        ([f"A Wibk{c}t is a class. The Wibk" for c in "ao"], [True] * 7 + [False] * 23),
        ([f"A Wibkat is a class. The Wib{c}" for c in "km"], [True] * 29 + [False]),
    ):
        one, other = (opened(model, text).stream[2] for text in texts)
        assert ((one - other).abs().amax(-1) < 1e-3)[0].tolist() == equal


def test_no_letter_is_right_more_often_than_others():
    every = [q.right for one in QUESTIONS.values() for q in (one, one.again)]
    assert all(every.count(letter) <= 0.4 * len(every) for letter in "abcd")


QUESTION = """## 02a_soft_look_up

### one_more · after Opening

What is it?

- a) This. *Somebody thinks so.*
- b) That.

**Right:** b. It is.

**Again.** And now?

- a) This.
- b) That. *Others think so.*

**Right:** a. It is.
"""


def test_a_question_is_read_with_its_second_one():
    (one,) = room_questions.parsed(QUESTION).values()
    assert (one.name, one.part, one.after, one.asked) == (
        "one_more", "02a_soft_look_up", "Opening", "What is it?",
    )  # fmt: skip
    assert (one.right, one.because) == ("b", "It is.")
    assert one.wrong == {"a": "Somebody thinks so."} and one.again.right == "a"


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("### one_more · after", "### One more", "no heading of a question"),
        ("**Right:** b", "**Right:** a", "each wrong option says in italics"),
        ("What is it?", "", "a question needs a text"),
    ],
)  # fmt: skip
def test_a_question_out_of_form_is_named(old, new, told):
    assert QUESTION.count(old) == 1
    with pytest.raises(ValueError, match=told):
        room_questions.parsed(QUESTION.replace(old, new))
