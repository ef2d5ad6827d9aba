"""The verbs of an exercise: check, second, yours, hint, solution, and picture for what is predicted before it
is drawn. What asks (predict, warm_up ...) is in asking, what was done (progress, reset) in records."""

import difflib
import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from lesson_lib import desk
from lesson_lib.checks import questions, runner, sandbox, store, values
from lesson_lib.checks.exercise import Exercise, Write
from lesson_lib.checks.result import NO_RESULT, NOTHING_YET, Counterexample, Note, Result
from lesson_lib.checks.short_answers import RETURNING, Open
from lesson_lib.checks.values import copies
from lesson_lib.device import watched

SECOND = "_2"  # at the end of a name: its second problem
LONGEST = 20_000  # characters of a text, ten times a long answer
AT_HAND = "the exercise at hand"  # what a verb without a name means
PLAIN = (
    str,
    int,
    float,
    complex,
    bool,
    bytes,
    torch.Tensor,
)  # no user code: no sandbox

_CHAPTERS = Path(__file__).parents[1] / "chapters"
_PASSED: dict[str, Callable[..., Any]] = {}  # functions that passed in this session, by their exercise
_JUDGED: dict[str, Any] = {}  # the answers that were judged last, by their exercise
_LATEST: list[str] = []  # the exercise that was checked, or asked about, last


@cache
def lessons() -> Mapping[str, tuple[Exercise, ...]]:
    """The notebooks that ask exercises, each with its own in their order: of a chapter first the parts;
    last the pages outside of the chapters.

    The one look-up that goes up in the house: lesson_lib/chapters/*/questions, and the modules that these
    name, are read when they are first asked for, with torch as it is after its import, whatever the session
    has chosen since.
    """
    notebooks: dict[str, tuple[Exercise, ...]] = {}
    with runner.undisturbed(), torch.device("cpu"):
        torch.set_default_dtype(torch.float32)
        for path in sorted(_CHAPTERS.glob("c*/questions")):
            chapter, own = path.parent.name, dict[str, tuple[Exercise, ...]]()
            for exercise in questions.read(chapter):
                notebook = exercise.notebook or f"exercises/{chapter[1:]}"
                own[notebook] = (*own.get(notebook, ()), exercise)
            notebooks |= dict(sorted(own.items(), key=lambda item: ("/" in item[0], item[0])))
    pages = [name for name in notebooks if not name.split("/")[-1][:2].isdigit()]  # they belong to no chapter
    return {name: notebooks[name] for name in (*(name for name in notebooks if name not in pages), *pages)}


@cache
def exercises() -> dict[str, Exercise]:
    """All exercises by their names, in the course's order."""
    return {exercise.name: exercise for group in lessons().values() for exercise in group}


def second_of(exercise: Exercise, n: int) -> Exercise:
    """The n-th second problem of an exercise, under its own name."""
    assert exercise.second is not None
    variant = exercise.second(n)
    return replace(variant, name=exercise.name + SECOND, stars=exercise.stars, minutes=exercise.minutes)


def check(answer: Any = AT_HAND, name: Any = None) -> Result:
    """The verdict on an answer: `.passed`, `.diagnosis` (one sentence), `.counterexample` (the smallest
    found, or None).

    `answer` may be a function, a number, an expression in quotes, a letter, a text. `name` is the exercise;
    for a function it defaults to the function's own name, for anything else to that of the variable.
    `check()` judges the exercise at hand again, the one that was checked or asked about last. An empty stub
    is "not attempted yet". Nothing that an answer does raises here. Functions are tried in a copy of the
    session, then run in a thread of their own, and are ended after `runner.DEADLINE_S` seconds; what they
    change in the session is put back.

    >>> check("exp(12) / exp(10)", "score_ratio").passed
    True
    """
    exercise, problem = find(answer if name is None else name)
    if exercise is not None and (answer is AT_HAND or _names(answer, exercise, name)):
        answer = answer_to(exercise)
    if exercise is None and name is None and (called := _called(answer)):
        exercise, problem = find(called)
    if exercise is None:
        return Result("?", "unjudged", problem)
    if answer is None or answer is ...:
        return _offering(exercise, exercise.result("open", NOTHING_YET))
    if callable(answer) and (why := desk.unread(exercise.name)):
        problem = f"the cell in which you write {exercise.name} did not run ({why}); mend it and run it again"
        return exercise.result("unjudged", f"{problem}: until then only your version before could be judged")
    result = verdict(exercise, answer)
    if isinstance(exercise, Open) and result.state == "written":
        return _to_judge(exercise, result)
    if result.passed and isinstance(exercise, Write):
        _PASSED[exercise.name] = answer
    _JUDGED[exercise.name] = answer
    return _offering(exercise, keep(exercise, result, answer))


def _names(answer: Any, exercise: Exercise, name: Any) -> bool:
    """Whether the answer is only the name, in quotes, of the function that the exercise asks for."""
    return name is None and isinstance(exercise, Write) and values.is_a(answer, str)


def _offering(exercise: Exercise, result: Result) -> Result:
    """The result with what a learner may want next, as buttons: other words for what can be typed."""
    if not watched():
        return result
    from lesson_lib.checks.card import Offered

    name, offers = exercise.name, dict[str, Callable[[], Any]]()
    if result.state in ("failed", "open"):
        offers |= {"Hint": lambda: hint(name)} if exercise.hints else {}
        offers |= {"Solution": lambda: solution(name)} if exercise.text else {}
        if result.state == "failed" and answer_to(exercise) is not None:
            offers["Try again"] = lambda: _again(exercise, answer_to(exercise))
    if result.passed and exercise.second is not None:
        offers["A second problem"] = lambda: second(name)
    counted = result.passed and name in exercises() and not exercise.prediction
    return Offered(**vars(result), offers=offers, following=_following(exercise) if counted else "")


def _again(exercise: Exercise, answer: Any) -> Result:
    """Judge the answer that the session holds now; a row says so where it was judged before."""
    same = _JUDGED.get(exercise.name) is answer
    result = check(answer, exercise.name)
    if same:
        result.after["note"] = "this was judged before; if you changed your answer, run its cell first"
    return result


def _following(exercise: Exercise) -> str:
    """What comes after an exercise, as HTML: the next one in its notebook that has not been passed, else the
    next notebook."""
    entries, _ = store.read()
    notebooks = list(lessons())
    names = {notebook: [e.name for e in asked if not e.prediction] for notebook, asked in lessons().items()}
    notebook = next(notebook for notebook, asked in names.items() if exercise.name in asked)
    here = names[notebook]
    for other in (*here[here.index(exercise.name) + 1 :], *here):
        if other != exercise.name and not entries.get(other, {}).get("first_pass"):
            return f"Next exercise here: <code>{other}</code>"
    after = [
        other
        for other in notebooks[notebooks.index(notebook) + 1 :]
        if other.count("/") == notebook.count("/")
    ]
    if not after:
        return "The exercises of this notebook are done."
    name = after[0].rpartition("/")[2]
    return f"The exercises of this notebook are done. Next notebook: <a href='{name}.ipynb'>{name}</a>"


def second(name: Any = AT_HAND) -> Any:
    """A second problem of the same idea (without a name of the exercise at hand): a card with new numbers, or
    a function with another convention. For whoever has passed the first, or has seen its solution."""
    exercise, problem = find(name)
    if exercise is None:
        return Note("No second problem", {"diagnosis": problem})
    if exercise.second is None:
        with_one = ", ".join(e.name for e in exercises().values() if e.second is not None)
        return Note("No second problem", {"diagnosis": f"{exercise.name} has none; these have: {with_one}"})
    entry, _ = store.entry_of(exercise.name)
    if not entry.get("first_pass") and "solution" not in entry:
        return Note(f"{exercise.name}: the first problem first", {"next": "answer that one, and check it"})
    trouble = store.record(store.Event(exercise.name, "posed"))
    posed = second_of(exercise, entry.get("posed", 0) + 1)
    if isinstance(posed, RETURNING):
        from lesson_lib.checks.card import Card

        return Card(posed, partial(committed, posed), head="Once more")
    rows = {"asked": posed.asked, "next": f"write {posed.name}, then check({posed.name})"}
    rows |= {"progress": trouble} if trouble else {}
    return Note(f"{posed.name}: a second problem", rows, posed.start)


def committed(exercise: Exercise, answer: Any, sure: bool = False) -> Result:
    """The result of an answer that was committed in a card, by somebody who was sure of it or not."""
    return keep(exercise, exercise.judge(answer, lambda *_: None), answer, sure=sure)


def yours(name: Any) -> Callable[..., Any]:
    """The function with which a part goes on: yours as it last passed in this session, which a line says,
    else the course's solution.

    Raises ValueError for a name of no exercise that asks for a function.
    """
    exercise, problem = find(name)
    if not isinstance(exercise, Write):
        raise ValueError(
            problem or f"{exercise.name} asks for no function; yours() takes the name of one that does"
        )
    if exercise.name not in _PASSED:
        return exercise.solution
    print(f"{exercise.name}: here runs yours")
    return _by_position(_PASSED[exercise.name], exercise.solution)


def _by_position(answer: Callable[..., Any], asked: Callable[..., Any]) -> Callable[..., Any]:
    """The answer, or, where its parameters have other names, a function that takes those of the exercise: a
    part may call it with `most=3`."""
    own = inspect.signature(asked)
    try:
        if list(inspect.signature(answer).parameters) == list(own.parameters):
            return answer
    except (TypeError, ValueError):  # some functions written in C do not tell
        pass
    return lambda *values, **named: answer(*own.bind(*values, **named).args)


def keep(exercise: Exercise, result: Result, answer: Any, *, sure: bool = False) -> Result:
    """The result, written to the store where it counts, with what comes next; `sure` is what its writer says
    of a prediction."""
    if result.state not in ("passed", "failed"):
        return result
    if exercise.name not in exercises():  # a second problem: it belongs to the first
        event = store.Event(exercise.name.removesuffix(SECOND), "second", result.passed)
        if trouble := store.record(event):
            result.after["progress"] = trouble
        return result
    entry, problem = store.entry_of(exercise.name)
    if exercise.prediction and entry.get("attempts"):
        return result  # answered once
    fields = _fields(exercise, result, answer, entry) | ({"sure": True} if sure else {})
    event = store.Event(exercise.name, "answer", result.passed, fields)
    after = store.after(entry, event)
    if result.passed and exercise.second is not None and not exercise.prediction:
        ending = "asks it again, with something else"
        if not after["first_pass"]:
            ending = "asks a second problem; since the solution was shown first, that one makes the pass"
        result.after["again"] = f'second("{exercise.name}") {ending}'
    if trouble := store.record(event) or problem:
        result.after["progress"] = trouble
    return result


def _fields(exercise: Exercise, result: Result, answer: Any, entry: store.Entry) -> dict[str, Any]:
    """What the store keeps of an answer: of a wrong one its named mistake and how far it came, of a
    prediction the answer itself."""
    fields: dict[str, Any] = {}
    if exercise.prediction:
        fields["answer"] = str(answer)[:200]
    if result.passed:
        if exercise.second is not None:
            fields["counts"] = "solution" not in entry
        return fields
    if result.diagnosis in exercise.slips:
        fields["slip"] = result.diagnosis
    if match := re.match(r"(\d+) of (\d+)", result.step):
        fields["stage"] = math.ceil(3 * int(match[1]) / int(match[2]))
    return fields


def _to_judge(exercise: Open, result: Result) -> Result:
    """An open answer's result, with how it was judged before; in a notebook with buttons for each point."""
    from lesson_lib.checks.card import Written

    entry, _ = store.entry_of(exercise.name)
    if "judged" in entry:
        yes, points = entry["judged"]
        result.after["before"] = f"you judged: {yes} of {points}"

    def keep_judgement(*answers: str) -> Result:
        return judged(exercise, answers.count("yes"), len(answers))

    return Written(**vars(result), points=exercise.rubric, keep=keep_judgement)


def judged(exercise: Open, yes: int, points: int) -> Result:
    """The result of an open answer that its writer has judged, kept."""
    trouble = store.record(store.Event(exercise.name, "judged", fields={"judged": [yes, points]}))
    result = exercise.result("judged", f"you judged: {yes} of {points}")
    result.after.update({"progress": trouble} if trouble else {})
    return result


def hint(name: Any = AT_HAND) -> Note:
    """The next of the hints for an exercise (without a name for the one at hand), each a question; first the
    one nearest to your last mistake, after the last one the last again."""
    exercise, problem = find(name)
    if exercise is None:
        return Note("No hint", {"diagnosis": problem})
    if not exercise.hints:
        return Note(f"{exercise.name}: no hint", {"next": "choose, and the answer says why"})
    entry, problem = store.entry_of(exercise.name)
    given = [n for n in entry.get("hints", []) if n in range(1, len(exercise.hints) + 1)]
    left = [n for n in range(1, len(exercise.hints) + 1) if n not in given]
    near = entry.get("stage", 1)
    number = (near if near in left else left[0]) if left else given[-1]
    trouble = store.record(store.Event(exercise.name, "hint", fields={"hints": [number]})) if left else ""
    last = len(left) <= 1
    after = f'solution("{exercise.name}")' if last else f'hint("{exercise.name}") asks another question'
    rows = {"last time": entry.get("slip", ""), "think": exercise.hints[number - 1], "next": after}
    rows |= {"progress": trouble or problem}
    count = min(len(given) + 1, len(exercise.hints))
    rows |= {} if left else {"again": "you have seen all hints; this is the last one once more"}
    return Note(
        f"{exercise.name}: hint {count} of {len(exercise.hints)}", {k: v for k, v in rows.items() if v}
    )


def solution(name: Any = AT_HAND) -> Note:
    """A right answer to an exercise (without a name to the one at hand), and what you should remember."""
    exercise, problem = find(name)
    if exercise is None:
        return Note("No solution", {"diagnosis": problem})
    rows = {"asked": exercise.asked, "remember": exercise.remember}
    entry, problem = store.entry_of(exercise.name)
    trouble = (
        problem
        if entry.get("first_pass")
        else store.record(store.Event(exercise.name, "solution")) or problem
    )
    if exercise.second is not None:
        rows["next"] = (
            f'answer it yourself; then second("{exercise.name}") asks it again, with something else'
        )
    rows |= {"progress": trouble} if trouble else {}
    return Note(f"{exercise.name}: a solution", rows, exercise.text)


def picture(name: Any) -> Any:
    """The picture that an exercise asks you to predict; it is drawn once you have chosen, rightly or not."""
    exercise, problem = find(name)
    if exercise is None or exercise.picture is None:
        with_one = ", ".join(e.name for e in exercises().values() if e.picture is not None)
        return Note(
            "No picture",
            {
                "diagnosis": problem
                or f"{exercise.name if exercise else name} has none; these have: {with_one}"
            },
        )
    if not store.entry_of(exercise.name)[0].get("attempts"):
        return Note(
            f"{exercise.name}: predict first",
            {"next": "choose an answer and check it; then run this cell again"},
        )
    return exercise.picture()


def forget(name: str) -> None:
    """Forget the function that passed as this exercise: a part goes on with the course's."""
    _PASSED.pop(name, None)


def verdict(exercise: Exercise, answer: Any) -> Result:
    """The exercise's own verdict, with the deadline and everything global protected; a sentence in every
    other case."""
    if changed := runner.replaced():
        owner = "torch's" if "." in changed else "Python's"
        return exercise.result(
            "unjudged",
            f"{changed} is not {owner} own in this session, so nothing can be judged; restart the kernel",
        )
    if values.is_a(answer, str) and str.__len__(answer) > LONGEST:
        problem = f"a text of at most {LONGEST:,} characters is read; yours is longer"
        return exercise.result("unjudged", problem)
    notes = runner.Notes()
    called = isinstance(exercise, Write) and callable(answer)
    with runner.undisturbed():
        try:
            if type(answer) in PLAIN and runner.idle() and not isinstance(exercise, Open):
                result = exercise.judge(answer, notes.turn)  # nothing to guard against, nor to wait for
            else:
                result = runner.within(
                    runner.DEADLINE_S, lambda: exercise.judge(answer, notes.turn), notes, tried=called
                )
        except runner.Verdict:  # this check is called by an answer
            raise
        except TimeoutError as reason:
            shown = Counterexample(copies(notes.case), None, NO_RESULT) if notes.case else None
            result = exercise.result("failed", str(reason), step=notes.step, counterexample=shown)
        except BaseException as error:
            result = exercise.result(*_stumbled(answer, error))
    result.after.update(notes.rows)
    return result


def _stumbled(answer: Any, error: BaseException) -> tuple[str, str]:
    """State and sentence for an error that the judging met: by a line of the learner's, or by a fault of its
    own."""
    if type(answer) not in (int, float, str) and (where := runner.where(error)):
        return "failed", f"what you handed in stops with {values.kind(error)}{where}: it cannot be looked at"
    return "unjudged", (
        f"the check itself stumbled over this answer, {values.described(answer)} ({values.kind(error)});"
        " that is a fault of the check: please report it"
    )


def answer_to(exercise: Exercise) -> Any:
    """What the session holds under the exercise's name: its answer as it stands now; None where it holds
    nothing."""
    return _session().get(exercise.name)


def _session() -> dict[str, Any]:
    shell = sandbox.notebook()
    return vars(sys.modules["__main__"]) if shell is None else shell.user_ns


def _called(answer: Any) -> str | None:
    """The function to write in whose place the session holds this answer, a lambda or a result; None where
    there is not exactly one."""
    session = _session()
    known = {name: e for name, e in exercises().items() if isinstance(e, Write)}
    known |= {name + SECOND: e for name, e in known.items() if e.second is not None}
    matches = [name for name in known if name in session and session[name] is answer]
    return matches[0] if len(matches) == 1 else None


def lesson_at_hand() -> str | None:
    """The notebook that the learner is in, which Jupyter tells its kernel, as `lessons` has it; None where
    none is known."""
    opened = os.environ.get("JPY_SESSION_NAME", "").replace("\\", "/").removesuffix(".ipynb")
    return next((notebook for notebook in lessons() if f"/{opened}".endswith(f"/{notebook}")), None)


def find(name: Any) -> tuple[Exercise | None, str]:
    """The exercise of that name (or of the function with that name), or None and a sentence. NAME_2 is the
    second problem of NAME, as it was posed last."""
    if name is AT_HAND:
        if not _LATEST:
            return None, f"say which exercise you mean: {_choice()}"
        name = _LATEST[-1]
    if not values.is_a(name, str):
        name = values.own_name(name)
    if name is None or "<" in name:  # a lambda is called "<lambda>"
        return None, f'say which exercise this answers: check(answer, "name"); {_choice()}'
    name = str.__str__(name)
    if name in exercises():
        if not exercises()[name].prediction:
            _LATEST[:] = [name]
        return exercises()[name], ""
    first = exercises().get(name.removesuffix(SECOND))
    if name.endswith(SECOND) and first is not None and first.second is not None:
        _LATEST[:] = [name]
        entry, _ = store.entry_of(first.name)
        return second_of(first, max(1, entry.get("posed", 0))), ""
    short = name if len(name) <= 60 else name[:57] + "..."
    here = lesson_at_hand()
    near = difflib.get_close_matches(short, [e.name for e in lessons()[here]] if here else exercises(), n=1)
    guess = f'did you mean "{near[0]}"?' if near else _choice()
    return None, f'no exercise is called "{short}"; {guess}'


def _choice() -> str:
    """The names that a learner can choose from, as the end of a sentence."""
    here = lesson_at_hand()
    names = [e.name for e in lessons()[here] if not e.prediction] if here else []
    return f"this notebook asks {', '.join(names)}" if names else "progress() lists the names"
