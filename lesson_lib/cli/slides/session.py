"""A session of a plan as one deck: for each row of its table the slides that its parts' decks have for these
sections and questions, clocks for breaks and tasks, and frames that say what comes."""

import re
from collections.abc import Mapping, Sequence

from IPython.display import Markdown
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lesson_lib.cli import deck, room_questions
from lesson_lib.cli.plans import Plan, Row, Session

Slide = list[NotebookNode]
KEYS = "Keys: right is the next step, down goes through it, space opens an answer; T starts the clock."
VOTE = (
    "One minute alone, in silence; then all letters at once. Below 30 % right: explain once more. Above 70 %:"
    " the answer, and on. Between: two minutes with a neighbour who chose otherwise, vote again, the answer."
)
NAMES = {"slack": "Catch up, and ask", "break": "Break", "lunch": "Lunch"}


def kind(cell: NotebookNode) -> str:
    """What the standard's metadata call a cell: slide, subslide, fragment, notes, skip, or ''."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def slides_of(made: NotebookNode) -> list[Slide]:
    """The slides of a deck, each as its cells; every slide's first cell has the tag of its group."""
    slides: list[Slide] = []
    tags: list[str] = []
    for cell in made.cells:
        if kind(cell) in ("slide", "subslide"):
            tags = cell.metadata.get("tags", tags) if kind(cell) == "slide" else tags
            cell.metadata["tags"] = tags
            slides.append([])
        if kind(cell) != "skip":
            slides[-1].append(cell)
    return slides


def assembled(plan: Plan, session: Session, decks: Mapping[str, NotebookNode]) -> NotebookNode:
    """The deck of a session. `decks`: the built decks of its parts, by the parts' numbers; a part without one
    is taught from its notebook."""
    own = {number: slides_of(made) for number, made in decks.items()}
    named = [set(row.exercises) for row in session.rows]
    cells = _first(plan, session)
    for i, row in enumerate(session.rows):
        elsewhere = set().union(*(names for j, names in enumerate(named) if j != i))
        made = _taken(row, own.get(row.lesson, ()), elsewhere)
        made[0] = _begin(made[0], row)
        cells += [cell for slide in made for cell in slide]
    cells += _last(plan, session)
    for i, cell in enumerate(cells):  # two decks may hold the same cell
        cell.id = f"cell-{i}"
    return new_notebook(cells=cells)


def asks(slide: Slide) -> set[str]:
    """The questions and tasks that stand on a slide, by their names."""
    return {name for cell in slide for name in re.findall(r"^(?:vote|turn)\(\"(\w+)\"", cell.source)}


def _taken(row: Row, own: Sequence[Slide], elsewhere: set[str]) -> list[Slide]:
    if row.pause or row.slack:
        return [_pause(row)]
    wanted = {part.strip("()") for part in row.sections if not part.startswith("(")}
    tagged = [(slide, slide[0].metadata.get("tags", [""])[0]) for slide in own]
    found = [
        slide
        for slide, tag in tagged
        if asks(slide) & set(row.exercises) or (tag in wanted and not asks(slide) & elsewhere)
    ]
    there = set().union(*map(asks, found)) if found else set()
    found += [_asked(name, row) for name in row.exercises if name not in there]
    return found or [_frame(row)]


def _asked(name: str, row: Row) -> Slide:
    """A question or a task that no slide of the part's deck has."""
    if name in room_questions.read() or deck.exercises()[name].prediction:
        asked = _shows(deck.vote(name), source=f'vote("{name}")')
        body = [asked, _clock(4), _shows(deck.answer(name), "fragment")]
        return [_text("## Alone, then with a neighbour"), *body, _text(VOTE, "notes")]
    exercise = deck.exercises()[name]
    body = [_shows(deck.turn(name), source=f'turn("{name}")'), _clock(row.hands or exercise.minutes)]
    slips = "; ".join(list(exercise.slips)[:3])
    return [_text(f"## Do now: {exercise.title}"), *body, _text(f"What will come back: {slips}.", "notes")]


def _pause(row: Row) -> Slide:
    what, _, more = row.what.partition(": ")
    said = more or ("Who is ready helps a neighbour, with questions only." if row.slack else "")
    notes = "Late? These minutes are for that." if row.slack else "Begin again on time."
    shown = _text(f"## {NAMES.get(what, _capital(what))}\n\n{_capital(said)}")
    return [shown, _clock(row.minutes, alone=True), _text(notes, "notes")]


def _frame(row: Row) -> Slide:
    """What no deck shows: a start, an end, paper, a part that is taught from its notebook. What stands behind
    a question, in parentheses, is its answer, and waits."""
    what, _, more = _plain(row).partition(": ")
    more, _, answer = more.partition("? (")
    sections = ", ".join(part.strip("()") for part in row.sections)
    where = f"Notebook **{row.lesson}**" + (f": {sections}" if sections else "") if row.lesson else ""
    text = "\n\n".join(filter(None, [f"## {_capital(what)}", _capital(more) + "?" * bool(answer), where]))
    waits = [_text(_capital(answer.rstrip(")")), "fragment")] if answer else []
    clock = [_clock(row.hands)] if row.hands else []
    return [_text(text), *clock, *waits, _text(f"{_capital(_plain(row))}.", "notes")]


def _first(plan: Plan, session: Session) -> Slide:
    several = len(plan.held) > 1
    title = f"{plan.title}: {session.title}" if several else plan.title
    told = [row for row in session.rows if not row.slack and not row.what.startswith("vote")]
    steps = [f"- {row.start} {_plain(row).removeprefix('alone: ').partition(':')[0]}" for row in told]
    agenda = "## Today\n\n" + "\n".join(steps)
    first = [_text(f"# {title}"), _text(f"{plan.first} {KEYS}", "notes")]
    return [*first, _text(agenda), _text(session.late, "notes")]


def _last(plan: Plan, session: Session) -> Slide:
    """The ticket; and where the plan has homework behind this session, what it is."""
    after = plan.sessions[plan.sessions.index(session) + 1 :][:1]
    home = after[0].rows if after and after[0].home else []
    each = [": ".join(filter(None, [row.lesson, _plain(row), ", ".join(row.exercises)])) for row in home[:9]]
    rows = "\n".join(f"- {what}, {row.minutes} min" for what, row in zip(each, home, strict=False))
    below = f"At home\n\n{rows}" if rows else "No name. At the door."
    notes = "Collect the tickets at the door."
    text = f"## Before you go: two minutes on the ticket\n\n{below}"
    return [_text(text), _clock(2), _text(notes, "notes")]


def _begin(slide: Slide, row: Row) -> Slide:
    """The first slide of a row: the right arrow leads to it, and its notes say the clock."""
    slide = [NotebookNode(cell, metadata=NotebookNode(cell.metadata)) for cell in slide]
    slide[0].metadata["slideshow"] = {"slide_type": "slide"}
    for cell in slide:
        if kind(cell) == "notes":
            cell.source = f"**{row.start}, {row.minutes} minutes.** {cell.source}"
            break
    return slide


def _text(source: str, slide_type: str = "slide") -> NotebookNode:
    return new_markdown_cell(source, metadata={"slideshow": {"slide_type": slide_type}})


def _shows(markdown: Markdown, slide_type: str = "-", source: str = "") -> NotebookNode:
    output = new_output("display_data", data={"text/markdown": markdown.data})
    return new_code_cell(source, outputs=[output], metadata={"slideshow": {"slide_type": slide_type}})


def _clock(minutes: float, *, alone: bool = False) -> NotebookNode:
    page = deck.timer(minutes).data.replace(
        'class="timer"', 'class="timer alone"' if alone else 'class="timer"'
    )
    return new_code_cell("", outputs=[new_output("display_data", data={"text/html": page})])


def _plain(row: Row) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", row.what).replace("★", "").strip()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
