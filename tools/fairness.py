"""How fairly answers are judged that others have written: pages for testers, and what `check` says to them.

`python -m tools.fairness pages FOLDER 02` writes, for each notebook of chapter 02, the text that a learner
gets: no answer, no named mistake, no solution. A tester who has nothing else writes NOTEBOOK.answers.txt
beside it:

    @@ NAME | mistake | the cause, in a sentence
    def NAME(...): ...

KIND is first, mistake, unusual (right, in another way) or odd (no answer at all); below it stands Python that
binds NAME. `python -m tools.fairness judge FOLDER` runs them all and writes verdicts.json: one row for each,
with what was said. Whether a mistake was named by its cause, a reader decides.
"""

import argparse
import ast
import json
import linecache
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat

from lesson_lib.checks import engine
from lesson_lib.checks.card import FOLD
from lesson_lib.checks.engine import check, exercises, lessons
from lesson_lib.checks.exercise import Exercise
from lesson_lib.cli import sources
from tools.reading import as_text

KINDS = ("first", "mistake", "unusual", "odd")
HEAD = re.compile(r"^@@ (\w+) \| (\w+) \| ?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """What a tester wrote to one exercise."""

    notebook: str
    name: str
    kind: str
    cause: str
    text: str


@dataclass(frozen=True)
class Verdict(Answer):
    """What was said to an answer; `named` where it is one of the exercise's own named mistakes."""

    state: str
    named: bool
    said: str
    step: str
    seconds: float


def page(notebook: Path) -> str:
    """The text of a built notebook without what stands under the folds of its questions."""
    text = as_text(nbformat.read(notebook, 4))
    return re.sub(rf"^ ?{re.escape(FOLD)}\n.*?(?=^=== cell|\Z)", "\n", text, flags=re.MULTILINE | re.DOTALL)


def answers(path: Path) -> Iterator[Answer]:
    """The answers of one file. Raises ValueError for a kind that is none."""
    parts = HEAD.split(path.read_text(encoding="utf-8"))[1:]
    for name, kind, cause, text in zip(*(parts[i::4] for i in range(4)), strict=True):
        if kind not in KINDS:
            raise ValueError(f"{path.name}: {name} is {kind!r}; a kind is one of {', '.join(KINDS)}")
        yield Answer(path.name.removesuffix(".answers.txt"), name, kind, cause.strip(), text.strip() + "\n")


def session(exercise: Exercise) -> dict[str, Any]:
    """The names that a learner has: what the notebook imports, and what the solution's module has."""
    solution = getattr(exercise, "solution", None)
    names = dict(getattr(solution, "__globals__", {}))
    notebook = next(place for place, asked in lessons().items() if exercise in asked)
    source = next(target.source for target in sources.targets() if target.name == notebook)
    tree = ast.parse(re.sub(r"^\s*[%!].*$", "", source.read_text(encoding="utf-8"), flags=re.MULTILINE))
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(ast.Module(imports, []), str(source), "exec"), names)
    names.pop(exercise.name, None)
    return names | {"__name__": "__main__"}


def judged(answer: Answer) -> Verdict:
    """What `check`, or the card of a prediction, says to an answer in a fresh home."""
    exercise = exercises().get(answer.name)
    if exercise is None:
        return Verdict(**asdict(answer), state="unknown", named=False, said="", step="", seconds=0.0)
    begun, file = time.perf_counter(), f"<{answer.notebook} {answer.name} {hash(answer.text)}>"
    linecache.cache[file] = (len(answer.text), None, answer.text.splitlines(keepends=True), file)
    names = session(exercise)
    with tempfile.TemporaryDirectory() as home, mock.patch.dict(os.environ, LESSON_HOME=home):
        try:
            exec(compile(answer.text, file, "exec"), names)
            given = names[answer.name]
        except Exception as error:
            state, said, step = "no cell", f"{type(error).__name__}: {error}", ""
        else:
            engine._PASSED.clear()
            quiet = exercise.prediction and given is not None and given is not ...
            result = exercise.judge(given, lambda *_: None) if quiet else check(given, answer.name)
            state, step = result.state, result.step
            said = result.after.get("look again", result.diagnosis)  # of an open answer
    named = any(said.startswith(slip) for slip in exercise.slips)
    took = round(time.perf_counter() - begun, 1)
    return Verdict(**asdict(answer), state=state, named=named, said=said, step=step, seconds=took)


def counted(verdicts: list[Verdict]) -> str:
    """By notebook: answers, and how many of each kind came to which state."""
    lines = []
    for notebook in dict.fromkeys(verdict.notebook for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.notebook == notebook]
        kinds = Counter(f"{v.kind} {v.state}{' named' * v.named}" for v in own)
        told = ", ".join(f"{number} {what}" for what, number in sorted(kinds.items()))
        lines.append(f"{notebook}: {len(own)} answers: {told}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or judge what stands beside them."""
    parser = argparse.ArgumentParser(prog="python -m tools.fairness", description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=("pages", "judge"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("which", nargs="*", help="02a, or 02 for a chapter; nothing: all")
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if chosen.do == "pages":
        for target in sources.targets(chosen.which):
            if target.name in lessons():
                name = target.name.replace("/", "_")
                (chosen.folder / f"{name}.txt").write_text(page(target.path), encoding="utf-8")
        return 0
    found = [a for path in sorted(chosen.folder.glob("*.answers.txt")) for a in answers(path)]
    verdicts = [judged(answer) for answer in found]
    (chosen.folder / "verdicts.json").write_text(json.dumps([asdict(v) for v in verdicts], indent=1), "utf-8")
    print(counted(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
