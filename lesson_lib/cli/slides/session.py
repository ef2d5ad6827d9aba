"""A session of a plan as one deck: the rows of its table in order, at most SLIDES slides, a slide with a
timer for each break and each task, questions for a room with their answers hidden until a key."""

import html
import re
from collections.abc import Callable

from lesson_lib.cli import kinds, plans, room_questions
from lesson_lib.cli.plans import Plan, Row, Session
from lesson_lib.cli.slides import notes as speaker
from lesson_lib.cli.slides.deck import first_table, number_and_title
from lesson_lib.cli.slides.outputs import Piece
from lesson_lib.cli.slides.slide import Deck, Section, Slide, words
from lesson_lib.cli.slides.text import Words

SLIDES = 60  # of a session at most, its title included

KEYS = "(Your keys: down goes on, right to the next section, space opens an answer, T starts the clock.)"
READY = (
    "Who is ready takes an early card, or helps a neighbour with questions only. Late? Take these minutes."
)
SPARE = "two minutes, to spare"  # of a second question
TO_ROOM = re.compile(r"\[([^\]]+)\]\(\.\./room/(\w+\.md)\)")  # a sheet that lies on the tables

Read = Callable[[str], Deck]  # the deck of a part, by its name


def session_decks(plan: Plan, read: Read) -> list[Deck]:
    """A deck for each session that is held."""
    names = {kinds.number_of(name): name for name in kinds.built(plans.ROOT, ("part", "page"))}
    known = room_questions.read()
    several = len(plan.held) > 1
    made = []
    for number, session in enumerate(plan.held, 1):
        title = f"{plan.title} · {session.title}" if several else plan.title
        one = Deck(f"{plan.name}-{number}" if several else plan.name, title)
        one.minutes = str(session.together)
        decks = {n: read(names[n]) for n in dict.fromkeys(row.lesson for row in session.rows) if n}
        about = Words().inline(plan.about)
        one.story = [Piece("lead", f'<p class="lead">{about}</p>', 160)]
        one.sections = [_section(row, decks.get(row.lesson), known) for row in session.rows]
        one.told = Words().inline(f"{plan.first} {KEYS}" if number == 1 else KEYS)
        _fit(one, session, SLIDES - 1)
        made.append(one)
    return made


def _section(row: Row, deck: Deck | None, known: dict[str, room_questions.Question]) -> Section:
    section = Section(row.what)
    if row.pause or row.slack or (not row.lesson and not row.hands):
        section.slides = [_pause(row)]
        return section
    taken = plans.taken(row, [s.title for s in deck.sections]) if deck else []
    if deck and plans.OPENING in taken and deck.story:
        section.slides.append(Slide("shown", number_and_title(deck)[1], list(deck.story), 9))
        told = deck.told or "Tell it in your own words; the slide stands behind you."
        section.slides[-1].said = [Words().inline(told)]
    for own in deck.sections if deck else ():
        if own.title in taken:
            section.slides += own.slides
    for slide in section.slides:  # a plan has decided what is cut
        slide.besides = [line for line in slide.besides if not line.startswith("<b>May be cut")]
    shown = {slide.name for slide in section.slides if slide.name}
    for name in row.exercises:
        if name in known:
            section.slides.append(_vote(known[name]))
            section.slides += [_again(known[name])] if known[name].again else []
        elif name in shown:
            next(slide for slide in section.slides if slide.name == name).worth = 10
        elif any(slide.name == name for slide in deck.slides):
            section.slides.append(next(slide for slide in deck.slides if slide.name == name))
            section.slides[-1].worth = 10
        else:
            section.slides.append(_task(name))
    # what is written at another time is no part of these minutes
    section.slides = [s for s in section.slides if s.kind != "turn" or s.name in row.exercises]
    if len(row.exercises) == 1 and row.hands and section.slides[-1].kind == "turn":
        section.slides[-1].minutes = row.hands
    if row.hands and not section.slides:
        section.slides = [_work(row)]
    return section


def _pause(row: Row) -> Slide:
    what, _, more = row.what.partition(": ")
    names = {"slack": "Catch up, and ask", "break": "Break", "lunch": "Lunch"}
    more = more or ("who is ready helps a neighbour, with questions only" if row.slack else "")
    pieces = [Piece("lead", f'<p class="lead">{Words().inline(_capital(more))}</p>', 60)] if more else []
    timed = row.minutes if row.pause or row.slack else 0
    slide = Slide("pause", names.get(what, _capital(what)), pieces, 10, minutes=timed)
    slide.said = [READY] if row.slack else []
    return slide


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _work(row: Row) -> Slide:
    said = Words().inline(_capital(TO_ROOM.sub(r"\1", row.what)))
    made = f'<div class="ask"><p class="label">Everybody</p><p>{said}</p></div>'
    title = _capital(row.what.partition(":")[0])
    slide = Slide("turn", title, [Piece("ask", made, 120)], 10, minutes=row.hands)
    if sheet := TO_ROOM.search(row.what):
        text = (plans.ROOT / "notebooks" / "instructor" / "room" / sheet[2]).read_text(encoding="utf-8")
        slide.pieces += first_table(text)
        told = dict(re.findall(r"^\*\*(To say|To show)\.\*\* (.+)$", text, re.M))
        slide.said = [Words().inline(told["To say"])] if "To say" in told else []
        if "To show" in told:
            answer = f'<div class="answer fragment"><p>{Words().inline(told["To show"])}</p></div>'
            slide.pieces.append(Piece("html", answer, 60))
    return slide


def _task(name: str) -> Slide:
    asked = speaker.asked_by(name)
    place = next(e for e in _exercise_places() if e[0] == name)[1]
    options = "".join(f"<li>{Words().inline(text)}</li>" for text in asked.options.values())
    body = f"<p>{Words().inline(_capital(asked.text))}</p>"
    body += f'<ol class="options">{options}</ol>' if options else ""
    body += f"<p>Open <code>{place}.ipynb</code>: <b>{html.escape(asked.title)}</b></p>"
    made = f'<div class="ask"><p class="label">Exercise</p>{body}</div>'
    title = Words().inline(asked.title)
    slide = Slide("turn", title, [Piece("ask", made, 240)], 10, minutes=asked.minutes, name=name)
    slide.solution, slide.wrong = asked.solution, [Words().inline(slip) for slip in asked.wrong]
    return slide


def _exercise_places() -> list[tuple[str, str]]:
    from lesson_lib.checks.engine import lessons

    return [(e.name, place) for place, asked in lessons().items() for e in asked]


def _vote(asked: room_questions.Question, label: str = "Vote") -> Slide:
    words = Words()
    options = "".join(f"<li>{words.inline(text)}</li>" for text in asked.options.values())
    answer = f"<b>{asked.right})</b> {words.inline(asked.because)}"
    body = f'<p>{words.inline(asked.asked)}</p><ol class="options">{options}</ol>'
    after = f'<div class="answer fragment"><p>{answer}</p></div>'
    ask = f'<div class="ask vote"><p class="label">{label}</p>{body}{after}</div>'
    slide = Slide("question", "Alone, then with a neighbour", [Piece("ask", ask, 420)], 10)
    slide.right = asked.right
    slide.said = ["One minute alone, in silence.", "Vote: cards up, all at once."]
    slide.said += ["Below 30 % right: explain once more.", "Above 70 %: the answer, and on."]
    slide.said += ["Between: two minutes with a neighbour who chose otherwise, vote again, then the answer."]
    slide.wrong = [f"{letter}) {words.inline(why)}" for letter, why in asked.wrong.items()]
    return slide


def _again(question: room_questions.Question) -> Slide:
    """The second question of the same form, for a spare minute or the next session's start."""
    slide = _vote(question.again, "Again")
    slide.title, slide.when = "And now?", SPARE
    slide.said = ["The same idea once more: did the talk help?", "No time? The right arrow goes on."]
    return slide


def _fit(deck: Deck, session: Session, most: int) -> None:
    """Leave out what is worth least where a row has more slides than its share, and say when each is due."""
    fixed = sum(slide.worth >= 9 for slide in deck.slides)
    room = most - fixed - 2  # a picture in two parts may take one more than its row's share
    free = [(row, section) for row, section in zip(session.rows, deck.sections, strict=True)]
    minutes = sum(row.minutes for row, section in free if any(s.worth < 9 for s in section.slides))
    used = 0.0
    for row, section in free:
        loose = [slide for slide in section.slides if slide.worth < 9]
        share = room * row.minutes / minutes if loose else 0
        allowed, kept = max(1, int(share + used % 1)), set[int]()
        used += share
        for together in sorted(_together(loose), key=lambda some: -some[0].worth):
            if len(kept) + len(together) <= allowed or not kept:
                kept |= {id(slide) for slide in together}
        stay = [s for s in section.slides if s.worth >= 9 or id(s) in kept]
        for i, slide in enumerate(section.slides):
            if slide not in stay:
                _hand_on(slide, [s for s in section.slides[i:] if s in stay], stay[::-1])
        section.slides = stay
        _times(row, section)


def _together(slides: list[Slide]) -> list[list[Slide]]:
    """The slides, those with the parts of one picture as one."""
    made: list[list[Slide]] = []
    for slide in slides:
        same = made and slide.source and made[-1][0].source == slide.source
        if same and slide.has("figure") and made[-1][0].has("figure"):
            made[-1].append(slide)
        else:
            made.append([slide])
    return made


def _hand_on(left_out: Slide, later: list[Slide], earlier: list[Slide]) -> None:
    """When a slide is dropped, its prompt moves to the next slide of its section without one (an earlier one
    does not show yet what it speaks of), its sketch to the nearest."""
    later = [slide for slide in later if slide.section == left_out.section]
    others = later or [slide for slide in earlier if slide.section == left_out.section]
    if left_out.asked and (free := next((s for s in later if not s.asked and s.kind == "shown"), None)):
        free.asked = left_out.asked
    if left_out.sketch and (free := next((s for s in others if not s.sketch), None)):
        free.sketch = left_out.sketch
        free.besides[:0] = [line for line in left_out.besides if line.startswith("<b>Board")]


def _times(row: Row, section: Section) -> None:
    """Say when each slide is due: a row's minutes, shared out by what is said, asked and written."""
    hour, _, minute = row.start.partition(":")
    begin = 60 * int(hour) + int(minute)
    due = [slide for slide in section.slides if slide.when != SPARE]
    lasts = [_lasts(slide) for slide in due]
    for i, slide in enumerate(due):
        at = begin + int(row.minutes * sum(lasts[:i]) / sum(lasts))
        slide.when = f"{at // 60}:{at % 60:02}" + (f", {row.minutes} minutes in all" if i == 0 else "")


def _lasts(slide: Slide) -> float:
    """About how many minutes a slide takes: 20 seconds to look, two words a second, a minute for a
    question."""
    spoken = sum(map(words, [*slide.said, *slide.asked]))
    return 1 / 3 + spoken / 120 + (slide.kind == "question") + slide.minutes
