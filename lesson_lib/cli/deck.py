"""What the slides of a deck show by reference: an output or the code of a part, a question for the room, a
task with its clock.

`from lesson_lib.cli.deck import *` is a deck's first cell. Nothing is computed again: a picture or a number
is the one that the built part holds, a question stands in its own file.
"""

import nbformat
from IPython.display import HTML, Markdown, display
from nbformat import NotebookNode

from lesson_lib.checks.engine import exercises
from lesson_lib.checks.short_answers import Choice
from lesson_lib.cli import kinds, room_questions
from lesson_lib.places import ROOT

__all__ = ["answer", "code", "shown", "timer", "turn", "vote"]


def shown(part: str, words: str, *, only: int | None = None) -> None:
    """Show what a cell of a part shows: of the cell of `part` (02a) whose code has these `words`, all
    outputs, or that with the number `only`. Raises ValueError where no built cell has the words and shows
    something."""
    outputs = _cell(part, words, outputs=True).outputs
    for output in outputs if only is None else [outputs[only]]:
        if "data" in output:
            display(dict(output.data), metadata=dict(output.metadata), raw=True)
        else:
            print(output.text, end="")


def code(part: str, words: str, *, lines: slice = slice(None)) -> Markdown:
    """The code of a part's cell that has these `words`, or some of its `lines`. Raises ValueError as
    `shown` does."""
    chosen = _cell(part, words).source.splitlines()[lines]
    return Markdown("```python\n" + "\n".join(chosen) + "\n```")


def vote(name: str, *, again: bool = False) -> Markdown:
    """A question for the room, or a prediction of a part, with its options; `again` is its second form.
    Raises KeyError for a name that none has."""
    asked, options, _ = _question(name, again)
    rows = "\n".join(f"{letter}) {text}\n" for letter, text in options.items())
    return Markdown(f"{asked}\n\n{rows}")


def answer(name: str, *, again: bool = False) -> Markdown:
    """The answer to `vote(name)`, for a fragment behind it."""
    return Markdown(_question(name, again)[2])


def turn(name: str) -> Markdown:
    """A task for everybody: what is to be written, and in which notebook. Raises KeyError for an unknown
    name."""
    exercise = exercises()[name]
    asked = exercise.asked[:1].upper() + exercise.asked[1:].rstrip(".") + "." * (exercise.asked[-1] != "?")
    where = f"Open notebook **{kinds.number_of(exercise.notebook)}**: *Your turn: {exercise.title}*"
    return Markdown(f"{asked}\n\n{where}")


def timer(minutes: float) -> HTML:
    """A clock: key T starts and stops it."""
    left = f"{int(minutes)}:{round(60 * (minutes % 1)):02}"
    return HTML(f'<p class="timer" role="timer" data-minutes="{minutes:g}">{left}</p>')


def _question(name: str, again: bool) -> tuple[str, dict[str, str], str]:
    known = room_questions.read()
    if name in known:
        asked = known[name].again if again and known[name].again else known[name]
        return asked.asked, asked.options, f"**{asked.right})** {asked.because}"
    exercise = exercises()[name]
    options = {} if not isinstance(exercise, Choice) else dict(exercise.options)
    return exercise.asked, options, f"**{exercise.right}**: {exercise.remember}"


def _cell(part: str, words: str, *, outputs: bool = False) -> NotebookNode:
    names = [n for n in kinds.built(ROOT, ("part", "page", "evidence")) if part in (n, kinds.number_of(n))]
    for name in names:
        for cell in nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells:
            if cell.cell_type == "code" and words in cell.source and (cell.outputs or not outputs):
                return cell
    raise ValueError(f"no cell of {part} has {words!r}" + " and shows something" * outputs)
