"""The cells of an exercise, made from the exercise: its card, the answer's cell, check, picture, hint.

In notebooks/source/exercises a card is a cell of text with the exercise's name and what only a notebook says:

    # %% [markdown] tags=["exercise:stable_weights"]
    # Write softmax over the keys by hand ...

Where something must run between the card's head and its question, the head's text has the tag "card:NAME".
In a part the same tag makes a your-turn cell: a shorter card, and no points, since a part is never graded.
"""

import ast
import json
import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lesson_lib.checks.exercise import Exercise

PROGRAM = 25  # lines: a function to repair that is longer is a whole program, and its cell is tagged so
BEGIN, END, STUB = "### BEGIN SOLUTION", "### END SOLUTION", "### STUB:"
CARD = re.compile(r'^# %% \[markdown\] tags=\["(card|exercise):(\w+)"\]\n((?:#.*\n?)*)', re.MULTILINE)


def written_out(text: str, *, part: bool = False) -> str:
    """A source's text (py:percent) with every card and the cells below it written out; `part` makes them
    your-turn cells.

    Raises KeyError with a sentence for a name that no exercise has.
    """
    # they need torch, and a list of notebooks does not
    from lesson_lib.checks.engine import exercises
    from lesson_lib.checks.short_answers import Choice

    heads: list[str] = []
    first = CARD.search(text)

    def cells(match: re.Match) -> str:
        kind, name, words = match.groups()
        if name not in exercises():
            raise KeyError(
                f'no exercise is called "{name}"; the tag of a card names one of lesson_lib.checks'
            )
        exercise, lines = exercises()[name], words.rstrip("\n").split("\n")
        if part:
            card = ["# %% [markdown]", f"# ### Your turn: {exercise.title}", "#", *lines]
            return "\n\n".join(["\n".join(card), *_turn(exercise)]) + "\n"
        if name not in heads:
            heads.append(name)
            stars = f"`{'★' * exercise.stars} · {exercise.minutes} min · {exercise.why}`"
            lines = [f"# ## {len(heads)} · {exercise.title}", "#", f"# {stars}", "#", *lines]
        if kind == "exercise" and isinstance(exercise, Choice):
            lines += ["#", *(f"# - {letter}) {option}" for letter, option in exercise.options.items())]
        card = "\n".join(["# %% [markdown]", *lines])
        below = _below(exercise, first=match.start() == first.start()) if kind == "exercise" else []
        return "\n\n".join([card, *below]) + "\n"

    return CARD.sub(cells, text)


def _turn(exercise: "Exercise") -> list[str]:
    """The cells under a your-turn text: the answer's, and its check, quiet until something is written."""
    name = exercise.name
    stuck = f'  # stuck? hint("{name}"), then solution("{name}")' * bool(exercise.hints)
    return [
        f'# %% tags=["turn:{name}"]\n{answer_cell(exercise)}',
        f'# %% tags=["exercise:{name}"]\n{_call(exercise)}{stuck}',
    ]


def _call(exercise: "Exercise") -> str:
    from lesson_lib.checks.exercise import Write

    name = exercise.name
    return f"check({name})" if isinstance(exercise, Write) else f'check({name}, "{name}")'


def _below(exercise: "Exercise", *, first: bool) -> list[str]:
    """The cells under a card's text."""
    name = exercise.name
    how = "  # without the first '#': a question; run again for the next one" if first else ""
    program = getattr(exercise, "repair", False) and len(exercise.text.splitlines()) > PROGRAM
    tagged = ' tags=["program"]' * program
    return [
        f"# %%{tagged}\n{answer_cell(exercise)}",
        check_cell(exercise),
        *([f'# %%\npicture("{name}")'] if exercise.picture else []),
        f'# %%\n# hint("{name}"){how}\n# solution("{name}")',
    ]


def check_cell(exercise: "Exercise") -> str:
    """The cell that checks an exercise, with its tags."""
    from lesson_lib.checks.short_answers import Open

    tags = [f"exercise:{exercise.name}", f"points:{2 * exercise.stars}"]
    tags += ["by_hand"] * isinstance(exercise, Open)
    return f"# %% tags={json.dumps(tags)}\n{_call(exercise)}"


def answer_cell(exercise: "Exercise") -> str:
    """The text of the cell for an answer, the solution and the stub between markers."""
    from lesson_lib.checks.exercise import Write
    from lesson_lib.checks.find_inputs import Expose
    from lesson_lib.checks.short_answers import Choice, Open

    name = exercise.name
    if isinstance(exercise, Expose):
        wrong, stub = exercise.start.split("\n\n\n")
        return f"{wrong}\n\n\n{BEGIN}\n{exercise.solution}\n{END}\n{STUB} {stub}"
    if not isinstance(exercise, Write):
        words = textwrap.fill(exercise.text, 100) if isinstance(exercise, Open) else ""
        right, stub = (f'"""{words}"""', '""" """') if words else (f'"{exercise.answer}"', "...")
        stub += "  # one letter, in quotes" if isinstance(exercise, Choice) else ""
        return f"{BEGIN}\n{name} = {right}\n{END}\n{STUB} {name} = {stub}"
    lines = exercise.text.split("\n")
    start = ast.parse(exercise.text).body[0].body[0].lineno - 1
    stub = exercise.start.split("\n")[start:]
    stub = [line[: len(line) - len(line.lstrip())] + f"{STUB} {line.lstrip()}" for line in stub]
    return "\n".join([*lines[:start], f"    {BEGIN}", *lines[start:], f"    {END}", *stub])
