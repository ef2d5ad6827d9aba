"""The cells of an exercise, made from the exercise: its card, the answer's cell, check, picture, hint.

In notebooks/source/exercises a card is a cell of text with the exercise's name and what only a notebook says:

    # %% [markdown] tags=["exercise:stable_weights"]
    # Write softmax over the keys by hand ...

Where something must run between the card's head and its question, the head's text has the tag "card:NAME".
"""

import ast
import json
import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lesson_lib.checks.exercise import Exercise

BEGIN, END, STUB = "### BEGIN SOLUTION", "### END SOLUTION", "### STUB:"
CARD = re.compile(r'^# %% \[markdown\] tags=\["(card|exercise):(\w+)"\]\n((?:#.*\n?)*)', re.MULTILINE)


def written_out(text: str) -> str:
    """A source's text (py:percent) with every card and the cells below it written out.

    Raises KeyError with a sentence for a name that no exercise has.
    """
    # they need torch, and a list of notebooks does not
    from lesson_lib.checks.engine import exercises
    from lesson_lib.checks.short import Choice

    heads: list[str] = []
    first = CARD.search(text)

    def cells(found: re.Match) -> str:
        place, name, words = found.groups()
        if name not in exercises():
            raise KeyError(
                f'no exercise is called "{name}"; the tag of a card names one of lesson_lib.checks'
            )
        exercise, lines = exercises()[name], words.rstrip("\n").split("\n")
        if name not in heads:
            heads.append(name)
            stars = f"`{'★' * exercise.stars} · {exercise.minutes} min · {exercise.why}`"
            lines = [f"# ## {len(heads)} · {exercise.title}", "#", f"# {stars}", "#", *lines]
        if place == "exercise" and isinstance(exercise, Choice):
            lines += ["#", *(f"# - {letter}) {option}" for letter, option in exercise.options.items())]
        card = "\n".join(["# %% [markdown]", *lines])
        below = _below(exercise, first=found.start() == first.start()) if place == "exercise" else []
        return "\n\n".join([card, *below]) + "\n"

    return CARD.sub(cells, text)


def _below(exercise: "Exercise", *, first: bool) -> list[str]:
    """The cells under a card's text."""
    from lesson_lib.checks.exercise import Write
    from lesson_lib.checks.short import Open

    name = exercise.name
    written = isinstance(exercise, Write)
    check = f"check({name})" if written else f'check({name}, "{name}")'
    how = "  # without the first '#': a question; run again for the next one" if first else ""
    tags = [f"exercise:{name}", f"points:{2 * exercise.stars}"] + ["by_hand"] * isinstance(exercise, Open)
    return [
        f"# %%\n{answer_cell(exercise)}",
        f"# %% tags={json.dumps(tags)}\n{check}",
        *([f'# %%\npicture("{name}")'] if exercise.picture else []),
        f'# %%\n# hint("{name}"){how}\n# solution("{name}")',
    ]


def answer_cell(exercise: "Exercise") -> str:
    """The text of the cell for an answer, the solution and the stub between markers."""
    from lesson_lib.checks.exercise import Write
    from lesson_lib.checks.short import Choice, Open

    name = exercise.name
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
