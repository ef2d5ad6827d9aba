"""The verbs that ask: predict, warm_up and review; and judge, by which a learner judges an open answer."""

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

from lesson_lib.checks import engine, store
from lesson_lib.checks.exercise import Exercise
from lesson_lib.checks.result import Note, Result
from lesson_lib.checks.schedule import due
from lesson_lib.checks.short_answers import RETURNING, Open
from lesson_lib.checks.values import described

MOST = 3  # questions of warm_up()
NOTHING_DUE = "Nothing returns today. Questions of parts that you have done come back here after some days."


def predict(name: Any) -> Any:
    """A card that asks a question and keeps the first answer, and whether you were sure: buttons for choices,
    a field for a number or a word. Says right or wrong, what the wrong answer would mean, and why the right
    one is right."""
    from lesson_lib.checks.card import Card

    exercise, problem = engine.find(name)
    if exercise is None:
        return Note("No question", {"diagnosis": problem})
    if not isinstance(exercise, RETURNING):
        return Note(f"{exercise.name}: write it", {"next": f"check({exercise.name}) answers"})
    entry, _ = store.entry_of(exercise.name)
    committed = entry.get("answer") if exercise.prediction else None
    keep, again = partial(engine.committed, exercise), None
    if exercise.second is not None and isinstance(engine.second_of(exercise, 1), RETURNING):
        again = partial(_practice, exercise)
    return Card(exercise, keep, committed=committed, asks_sure=exercise.prediction, again=again)


def _practice(exercise: Exercise) -> Any:
    """A card with a second problem, whose answer is not kept: the first answer was."""
    from lesson_lib.checks.card import Card

    posed = engine.second_of(exercise, store.entry_of(exercise.name)[0].get("posed", 0) + 1)
    store.record(store.Event(exercise.name, "posed"))
    return Card(
        posed,
        lambda answer, _: posed.judge(answer, lambda *_: None),
        head="Once more",
        again=partial(_practice, exercise),
    )


def warm_up() -> Any:
    """Up to three questions of earlier parts that are due today, as cards; nothing where none is due."""
    return _returning(MOST, "Before you start")


def review(most: Any = 10) -> Any:
    """All questions that are due today, at most `most`, as cards."""
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        return Note("No review", {"diagnosis": f"most is a number of questions, got {described(most)}"})
    return _returning(most, "Review") or Note("Review", {"today": NOTHING_DUE})


def judge(name: Any, *answers: Any) -> Result:
    """What you say of your own open answer, "yes" or "no" to each point; it is kept, and never a pass."""
    exercise, problem = engine.find(name)
    if exercise is None:
        return Result("?", "unjudged", problem)
    if not isinstance(exercise, Open):
        return exercise.result("unjudged", f"{exercise.name} is judged by its check, not by you")
    read = [_yes(answer) for answer in answers]
    points = len(exercise.rubric)
    if len(read) != points or None in read:
        words = ", ".join(['"yes"'] * (points - 1) + ['"no"'])
        return exercise.result("unjudged", f'say "yes" or "no" to each of the {points} points, as {words}')
    return engine.judged(exercise, sum(map(bool, read)), points)


def _yes(answer: Any) -> bool | None:
    """Parse the answer to one point as True or False; None where it is neither yes nor no."""
    if isinstance(answer, str):
        return {"yes": True, "y": True, "no": False, "n": False}.get(answer.strip().lower())
    return answer if isinstance(answer, bool) else None


def _returning(most: int, title: str) -> Any:
    from lesson_lib.checks.card import Card, Stack

    entries, _ = store.read()
    today = date.today()
    asked = engine.exercises().items()
    days = {name: due(entries.get(name, {})) for name, e in asked if isinstance(e, RETURNING)}
    names = sorted((day, name) for name, day in days.items() if day is not None and day <= today)[:most]
    if not names:
        return None
    notebooks = {e.name: notebook.rpartition("/")[2] for notebook, es in engine.lessons().items() for e in es}
    asked = {name: _anew(name, today) for _, name in names}
    cards = [Card(e, _return_of(name, e), head=f"From {notebooks[name]}") for name, e in asked.items()]
    count = f"{len(cards)} question{'s' * (len(cards) != 1)}"
    return Stack(f"{title}: {count} from earlier parts", cards)


def _anew(name: str, today: date) -> Exercise:
    """The question as it returns: with new numbers where it has a generator."""
    exercise = engine.exercises()[name]
    if exercise.second is None:
        return exercise
    variant = engine.second_of(exercise, today.toordinal())
    return variant if isinstance(variant, RETURNING) else exercise


def _return_of(name: str, exercise: Exercise) -> Callable[[Any, bool], Result]:
    def keep_return(answer: Any, sure: bool) -> Result:
        result = exercise.judge(answer, lambda *_: None)
        if result.state in ("passed", "failed"):
            trouble = store.record(store.Event(name, "return", result.passed))
            if trouble:
                result.after["progress"] = trouble
        return result

    return keep_return
