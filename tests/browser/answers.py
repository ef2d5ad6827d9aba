"""Every answer that a part expects, right and wrong, given in JupyterLab: `python -m tests.browser.answers
FOLDER 06a_layer`

Each prediction is committed once for each of its options (or known wrong numbers), each function is written
right and with each known mistake, and what the learner is told is compared with what the exercise says. A
picture of each notebook of answers goes to FOLDER; what is told otherwise is printed, and the exit code is 1.
"""

import argparse
import ast
import re
import tempfile
from pathlib import Path

import nbformat

from lesson_lib.checks.engine import lessons
from lesson_lib.checks.exercise import Exercise, Write
from lesson_lib.checks.short_answers import Choice
from tests.browser.driver import ROOT, Notebook, chromium, server
from tests.browser.shots import HEIGHT, shoot

RIGHT, WRONG = "✓ Right", "✗ Not so"


def imports(part: str) -> str:
    """All imports of a part, in one text."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{part}.ipynb", as_version=4)
    cells = [ast.parse(cell.source) for cell in notebook.cells if cell.cell_type == "code"]
    found = [node for cell in cells for node in cell.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in found)


def given(exercise: Exercise) -> list[tuple[str, str]]:
    """The answers to one exercise as learners give them, each with what must be said of it."""
    if isinstance(exercise, Write):
        return [(exercise.text, "PASSED")] + [(exercise.wrong_text(slip), slip) for slip in exercise.slips]
    if isinstance(exercise, Choice):
        meant = {letter: slip for slip, letter in exercise.slips.items()}
        return [(letter, meant.get(letter, RIGHT)) for letter in exercise.options]
    return [(str(exercise.answer), RIGHT), *((str(wrong), slip) for slip, wrong in exercise.slips.items())]


def cell(exercise: Exercise, answer: str) -> str:
    """The cell in which that answer is given: a card to commit it in, or a function and its check."""
    if isinstance(exercise, Write):
        (made,) = (node.name for node in ast.parse(answer).body if isinstance(node, ast.FunctionDef))
        return f"{answer}\n\n\nreset({exercise.name!r})\ncheck({made}, {exercise.name!r})"
    return f"reset({exercise.name!r})\npredict({exercise.name!r})"


def commit(notebook: Notebook, index: int, exercise: Exercise, answer: str) -> None:
    """Commit an answer in the card below a cell."""
    card = notebook.output(index)
    if isinstance(exercise, Choice):
        card.locator(".ll-options button").nth(list(exercise.options).index(answer)).click()
    else:
        card.locator("input[type=text]").fill(answer)
        card.get_by_role("button", name="Commit").click()
    card.get_by_text(re.compile(f"{RIGHT}|{WRONG}")).filter(visible=True).first.wait_for()


def plain(text: str) -> str:
    """A text without marks and spaces, to be compared."""
    return re.sub(r"[\s`*$]|&nbsp;", "", text)


def tried(notebook: Notebook, asked: list[tuple[Exercise, str, str]]) -> list[str]:
    """What was told otherwise than the exercises say, one line each; cell 0 holds the imports."""
    assert notebook.run_all(), notebook.troubles()
    faults = []
    for index, (exercise, answer, told) in enumerate(asked, 1):
        if not isinstance(exercise, Write):
            commit(notebook, index, exercise, answer)
        shown = notebook.output(index).inner_text()
        if plain(told) not in plain(shown):
            faults.append(f"{exercise.name}, {answer[:60]!r}: {told!r} was not told, but {shown!r}")
    return faults + notebook.troubles()


def main(arguments: list[str] | None = None) -> int:
    """Give all answers of the parts, and print what was told otherwise."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.browser.answers", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="+", choices=sorted(name for name in lessons() if "/" not in name))
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    faults = 0
    with tempfile.TemporaryDirectory(prefix="lesson_answers_", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        with server(work, Path(scratch)) as address, chromium() as browser:
            for part in chosen.parts:
                asked = [(e, answer, told) for e in lessons()[part] for answer, told in given(e)]
                first = f"{imports(part)}\nfrom lesson_lib.checks import check, predict, reset"
                sources = [first, *(cell(exercise, answer) for exercise, answer, _ in asked)]
                made = nbformat.v4.new_notebook(
                    cells=[nbformat.v4.new_code_cell(source) for source in sources],
                    metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
                )
                nbformat.write(made, work / f"{part}.ipynb")
                context = browser.new_context(viewport={"width": 1400, "height": HEIGHT})
                notebook = Notebook(context.new_page(), address, f"{part}.ipynb")
                found = tried(notebook, asked)
                shoot(notebook, chosen.folder, f"{part}_answers")
                context.close()
                faults += len(found)
                print(
                    f"{part}: {len(asked)} answers, {len(found)} told otherwise",
                    *found,
                    sep="\n  ",
                    flush=True,
                )
    return int(faults > 0)


if __name__ == "__main__":
    raise SystemExit(main())
