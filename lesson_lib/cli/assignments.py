"""The exercises as nbgrader's assignments: notebooks/source/exercises/NN_name.py -> a course in a build
folder.

    source/NN_name/NN_name.ipynb    with answers, points and hidden tests: for the instructor alone
    release/NN_name/NN_name.ipynb   what students get; nbgrader makes it from the first
    nbgrader_config.py, seed.txt    class/nbgrader_config.py, and the seed of the hidden tests

The tags "exercise:NAME" and "points:4" mark the cell that checks an exercise (cards.py makes it); with
"by_hand" a person grades the answer, by the points that the check shows. `hidden.py` judges the others, on
the check's inputs with other numbers and on those of the exercise's `hidden`. With `unaided` the notebooks
ask the questions of class/exam, which no learner's folder has, without help and with numbers of each
student's own. Below are also the rules by which class/nbgrader_config.py turns a graded notebook into
feedback: what a student may see.
"""

import argparse
import hashlib
import importlib.util
import json
import logging
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence, Set
from html import escape, unescape
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_notebook, new_output

from lesson_lib.cli.build import text_of
from lesson_lib.cli.exercise_cells import answer_cell, check_cell
from lesson_lib.cli.sources import (
    BEGIN,
    METADATA,
    ROOT,
    STUB,
    BuildError,
    Target,
    cells_of,
    source_text,
    targets,
)

CONFIG = ROOT / "class" / "nbgrader_config.py"
JUDGE = ROOT / "class" / "hidden.py"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
MIME = "application/x-lesson-verdict+json"
LEFT_OUT = "(left out: it repeats a part of the hidden test)"
STUDENT = "'@student@'"  # in a hidden test of an unaided exercise; grading puts the student's name there
ASKED = "The next cell asks your question, with numbers of your own."
UNAIDED = """\
# %% [markdown]
# # {title}: unaided
#
# {count} exercises, about {minutes} minutes.
#
# <details><summary>中文摘要 · Chinese</summary>
#
# 独立完成：没有提示，也没有答案。有些题的数值因人而异。
#
# </details>
#
# **How it works.** Unaided: there are no hints and no solutions. Replace the `...` in a cell, run it, then
# run the cell with `check`, which says how your answer was read. Where `mine` stands, the numbers are your
# own. The stars: ★ short, ★★ some lines, ★★★ an idea that has to be found.

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.checks.exam import check, mine

# %%
student = ""  # your name in this class, as you log in; on the class server it may stay empty
"""
WAITS = "waits for your instructor"
KATEX = ROOT / "site" / "katex.cjs"
TEXT = re.compile(r'<div class="text_cell_render.*?</div>', re.S)
FORMULA = re.compile(r"<code>.*?</code>|(\$\$.+?\$\$|\$[^$\n]+\$)", re.S)
TO_COURSE = re.compile(r"\[([^\]]+)\]\(\.\./\w+\.ipynb\)")  # a link: an assignment lies elsewhere


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="03_matrix_form or 03 (default: all)")
    parser.add_argument(
        "--unaided",
        action="store_true",
        help="the questions of class/exam, without help, with each student's own numbers; another folder",
    )
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="default: build/assignments, build/unaided")
    parser.add_argument("--seed", type=int, help="of the hidden tests (default: drawn once, and kept)")


def main(
    names: Sequence[str] = (),
    *,
    to: Path | None = None,
    seed: int | None = None,
    unaided: bool = False,
) -> int:
    """0 where all assignments were made, 1 after a sentence for each other.

    What students handed in and what was graded in `to` stays. Without `seed`, the hidden tests keep the seed
    in `to`/seed.txt; the first time it is drawn, so that nobody can know it from the repository.
    """
    to = Path(to or ROOT / "build" / ("unaided" if unaided else "assignments")).resolve()
    if to.is_relative_to(ROOT / "notebooks"):
        print(
            f"assignments are not made in {to.name}, among the course's notebooks; give --to another folder"
        )
        return 1
    if importlib.util.find_spec("nbgrader") is None:
        print("nbgrader is not installed in this environment; `make setup-class`, then `make assignments`")
        return 1
    try:
        if unaided and not names:
            from lesson_lib.checks.exam import pool

            names = list(pool())
        chosen = targets(names, among=("solution",))
        to.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CONFIG, to / CONFIG.name)
        seed = _seed(to / "seed.txt", seed)
    except (BuildError, OSError) as error:
        print(error)
        return 1
    failed = 0
    for target in chosen:
        try:
            notebook, points = source_notebook(target, seed, unaided=unaided)
            path = to / "source" / target.source.stem / f"{target.source.stem}.ipynb"
            (to / "source").mkdir(mode=0o700, exist_ok=True)  # the seed stands in there, too
            path.parent.mkdir(exist_ok=True)
            path.write_text(text_of(notebook), encoding="utf-8", newline="\n")
            _generate(target.source.stem, to)
        except (BuildError, OSError) as error:
            failed += 1
            print(f"{target.source.stem}: NOT MADE. {error}")
            continue
        print(f"{target.source.stem}: {len(points)} exercises, {sum(points.values())} points")
    print(f"{len(chosen) - failed} of {len(chosen)} assignments; students get {to / 'release'}")
    return 1 if failed else 0


def source_notebook(
    target: Target, seed: int, *, unaided: bool = False
) -> tuple[NotebookNode, dict[str, int]]:
    """The instructor's notebook with nbgrader's metadata, answers and hidden tests; and the points of each
    exercise.

    Raises BuildError where a tag, an answer or a hidden test is missing.
    """
    text = _unaided(target.source.stem) if unaided else source_text(target)
    cells = cells_of(text, target.source.name)
    judge = JUDGE.read_text(encoding="utf-8")
    points: dict[str, int] = {}
    for number, cell in enumerate(cells, 1):
        cell.source = TO_COURSE.sub(r"\1", cell.source)
        tags = dict(tag.split(":", 1) for tag in cell.metadata.get("tags", ()) if ":" in tag)
        if "exercise" in tags:
            name = tags["exercise"]
            if name in points or not tags.get("points", "").isdigit():
                raise BuildError(f'{name} needs one cell with tags=["exercise:{name}", "points:2"]')
            points[name] = int(tags["points"])
            if (
                "by_hand" in cell.metadata.tags
            ):  # a person grades the answer; the check shows what to look for
                answer = {"grade": True, "points": points[name], "grade_id": f"answer-{name}"}
                cells[number - 2].metadata["nbgrader"] |= answer
                role = {"locked": True, "grade_id": f"check-{name}"}
                cell.metadata["nbgrader"] = _PLAIN | {"cell_type": cell.cell_type} | role
                continue
            hidden = _hidden_cell(name, points[name], seed, judge, unaided=unaided)
            cell.source += f"\n{BEGIN_HIDDEN}\n{hidden}\n{END_HIDDEN}"
            role = {"grade": True, "locked": True, "points": points[name], "grade_id": f"check-{name}"}
        elif BEGIN in cell.source or STUB in cell.source:
            role = {"solution": True, "grade_id": f"answer-{number:02}"}
        elif cell.source.startswith(("# hint(", "student = ")):
            continue  # to be changed by whoever wants a hint, or says who it is
        else:
            role = {"locked": True, "grade_id": f"given-{number:02}"}
        cell.metadata["nbgrader"] = _PLAIN | {"cell_type": cell.cell_type} | role
    return new_notebook(cells=cells, metadata=METADATA), points


_PLAIN = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}


def _unaided(stem: str) -> str:
    """The text of the source that asks the pool's questions for a chapter, without anything that guides."""
    from lesson_lib.checks.exam import VARIANTS, packed, pool
    from lesson_lib.checks.short_answers import Choice

    if stem not in pool():
        raise BuildError(f"class/exam has no questions for it: write {stem}.md there, or leave out --unaided")
    asked, title = pool()[stem], stem.partition("_")[2].replace("_", " ").capitalize()
    minutes = sum(exercise.minutes for exercise in asked)
    cells = [UNAIDED.format(title=title, count=len(asked), minutes=minutes)]
    for number, exercise in enumerate(asked, 1):
        stars = f"# `{'★' * exercise.stars} · {exercise.minutes} min`"
        text = ASKED if exercise.second else exercise.asked
        options = exercise.options.items() if isinstance(exercise, Choice) else ()
        lines = [f"# ## {number} · {exercise.title}", "#", stars, "#", f"# {text}"]
        lines += ["#", *(f"# - {letter}) {option}" for letter, option in options)] if options else []
        cells.append("\n".join(["# %% [markdown]", *lines, ""]))
        if exercise.second:
            variants = packed([exercise.second(n).asked for n in range(1, VARIANTS + 1)])
            cells.append(f'# %%\nmine("{exercise.name}", student, "{variants}")\n')
        cells += [f"# %%\n{answer_cell(exercise)}\n", f"{check_cell(exercise)}\n"]
    return "\n".join(cells)


def _hidden_cell(name: str, points: int, seed: int, judge: str, *, unaided: bool) -> str:
    """One expression: a number of points. Its names are those of a namespace of its own, not the
    notebook's."""
    token = hashlib.sha256(f"{seed} {name}".encode()).hexdigest()[:16]
    given = f"answer, {name!r}, {points}, {seed}" + f", {STUDENT}, said" * unaided
    student = ", 'said': builtins.globals().get('student')" * unaided
    text = f"{judge}\n\nverdict = Verdict(graded({given}) | {{'token': '{token}'}})\n"
    text = text.replace("\\", "\\\\").replace("'''", "\\'\\'\\'")
    return (
        f"import builtins\n\n(lambda own: builtins.exec(builtins.compile('''\n{text}''', '<hidden>', 'exec'),"
        f" own) or own['verdict'])(\n    {{'__name__': 'hidden', 'answer': {name}{student}}}\n)"
    )


def _seed(path: Path, given: int | None) -> int:
    if given is None and path.exists():
        text = path.read_text(encoding="utf-8").strip()
        if not text.isdigit():
            raise BuildError(
                f"{path.name} holds {text[:20]!r}, which is no seed; put a whole number there, or delete it"
            )
        given = int(text)
    seed = 10**6 + secrets.randbelow(10**9) if given is None else given
    if not 1 <= seed < 2**31:
        raise BuildError(f"seed is {seed}; give a whole number from 1 to {2**31 - 1}")
    path.touch(mode=0o600)
    path.write_text(f"{seed}\n", encoding="utf-8")
    return seed


def _generate(name: str, to: Path) -> None:
    """Run nbgrader's generate_assignment for one assignment; raises BuildError with what it says."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import PyFileConfigLoader
    from traitlets.log import get_logger

    config = PyFileConfigLoader(CONFIG.name, path=str(to)).load_config()
    messages: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    log = get_logger()
    quiet, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        course = CourseDirectory(config=config, root=str(to), assignment_id=name)
        GenerateAssignment(coursedir=course, config=config, force=True).start()
    except Exception as error:
        problem = " ".join(text.strip().splitlines()[-1] for text in messages if text.strip()) or str(error)
        changed = re.search(r"Cannot add or remove cells[^\n]*", problem)
        if changed:
            problem = (
                f"{changed[0]}. Cells were added or removed since students handed in; make it in another"
                " folder (--to), or put the old exercises back"
            )
        raise BuildError(problem) from None
    finally:
        log.removeHandler(handler)
        log.propagate = quiet


def without_hidden(source: str) -> str:
    """A cell's source without its hidden test.

    >>> without_hidden("check(f)\\n### BEGIN HIDDEN TESTS\\nsecret\\n### END HIDDEN TESTS")
    'check(f)'
    """
    return re.sub(rf"\n*{BEGIN_HIDDEN}.*?({END_HIDDEN}|\Z)", "", source, flags=re.S)


def judged(cell: NotebookNode) -> None:
    """Put the verdict in the place of all outputs of a graded cell, in place: a card, and the points as
    nbgrader reads them.

    Nothing else that the cell printed stays, nor a traceback. A verdict without the cell's own token is none.
    """
    token = re.search(r"'token': '(\w{16})'", cell.source)
    verdicts = [o.data[MIME] for o in cell.outputs if MIME in o.get("data", {})]
    verdicts = [v for v in verdicts if token and v.get("token") == token[1]]
    verdict = {k: v for k, v in verdicts[0].items() if k != "token"} if verdicts else _no_verdict(cell)
    verdict["diagnosis"] = _safe(str(verdict["diagnosis"]), secrets_of([cell]))
    earned = f"{verdict['points']:g} of {verdict['of']:g} points"
    head = f"{verdict['exercise']}: {earned}" + (f", {verdict['steps']} right" if verdict["steps"] else "")
    note = "" if verdict["sure"] else "A person looks at this one, too: the points may change."
    lines = [line for line in (head, verdict["diagnosis"], note) if line]
    html = "<br>".join(escape(line) for line in lines)
    card = f"<div style='border-left:.3em solid;padding:.2em .8em'>{html}</div>"
    data = {"text/plain": "\n".join(lines), "text/html": card, MIME: verdict}
    number = {"text/plain": str(float(verdict["points"]))}
    cell.outputs = [
        new_output("display_data", data=data),
        new_output("execute_result", data=number, execution_count=cell.execution_count),
    ]


def name_the_student(cell: NotebookNode, student: str) -> None:
    """Tell the hidden test of an unaided exercise whose notebook it judges, in place."""
    spelt = f"bytes.fromhex('{student.encode().hex()}').decode()"  # a name may hold anything
    cell.source = cell.source.replace(STUDENT, spelt)


def rubric_beside(cell: NotebookNode) -> None:
    """Show whoever grades by hand the model answer and its points, below the check of an open answer, in
    place."""
    from lesson_lib.checks.exam import every

    exercise = every()[cell.metadata.nbgrader.grade_id.removeprefix("check-")]
    shown = "".join(output.get("text", "") + str(output.get("data", "")) for output in cell.outputs)
    if "model answer" not in shown:
        points = [f"{number}. {point}" for number, point in enumerate(exercise.rubric, 1)]
        text = "\n".join([f"model answer: {exercise.text}", *points])
        cell.outputs.append(new_output("display_data", data={"text/plain": text}))


def _no_verdict(cell: NotebookNode) -> dict[str, Any]:
    """Zero points, and why: the cell ended in an error before its hidden test could answer."""
    given = cell.metadata.nbgrader
    errors = [o for o in cell.outputs if o.output_type == "error"]
    kind, text = (errors[0].ename, errors[0].evalue) if errors else ("", "")
    unknown = re.search(r"name '(\w+)' is not defined", text)
    sure = True
    if unknown:
        diagnosis = (
            f"nothing is called {unknown[1]} here: the cell that defines it is missing, or ends in an error"
        )
    elif kind in ("CellTimeoutError", "KeyboardInterrupt"):
        diagnosis = "no answer in time: something here never ends"
    else:
        diagnosis, sure = f"this could not be judged ({kind or 'no result'})", False
    verdict = {"exercise": given["grade_id"].removeprefix("check-"), "points": 0.0, "of": given["points"]}
    return verdict | {"steps": "", "diagnosis": diagnosis, "sure": sure}


def feedback(notebook: NotebookNode) -> None:
    """Make of a graded notebook what its student may see, in place: answers, cards, the first line of an
    error.

    No hidden test, no other output: a student's cell can print what a hidden test left in the kernel's
    history.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    hidden = secrets_of(code)
    for cell in code:
        graded = BEGIN_HIDDEN in cell.source
        cell.source = without_hidden(cell.source)
        outputs = []
        for output in cell.outputs:
            if graded and MIME in output.get("data", {}):
                data = {k: v for k, v in output.data.items() if k != MIME}
                outputs.append(new_output("display_data", data=data))
            elif not graded and output.output_type == "error":
                first = f"{output.ename}: {output.evalue}".splitlines()[0][:200]
                text = f"This cell ends in {_safe(first, hidden)}\n"
                outputs.append(new_output("stream", name="stdout", text=text))
        cell.outputs = outputs


def titles(notebook: NotebookNode) -> dict[str, str]:
    """The title of the question above each graded cell, by the cell's nbgrader id."""
    found: dict[str, str] = {}
    title = ""
    for cell in notebook.cells:
        head = re.match(r"## (.+)", cell.source) if cell.cell_type == "markdown" else None
        title = head[1] if head else title
        given = cell.metadata.get("nbgrader", {})
        if given.get("grade"):
            found[given["grade_id"]] = title
    return found


def titled(page: str, titles: Mapping[str, str], waits: Set[str]) -> str:
    """nbgrader's page of feedback with each question under its title; for one that `waits` no score."""
    for name, title in titles.items():
        link, shown = re.escape(f'<a href="#{name}">'), escape(title)
        page = re.sub(rf"({link})[^<]*", lambda m, shown=shown: m[1] + shown, page, count=1)
        page = page.replace(f"Grade cell: <code>{name}</code>", shown)
        if name in waits:
            page = re.sub(rf"({link}.*?</a>) \(Score: [^)]*\)", rf"\1: {WAITS}", page, count=1)
            place = re.escape(f'<a name="{name}"></a>')
            page = re.sub(rf"({place}.*?)Score: [\d.]+ / [\d.]+", rf"\1{WAITS}", page, count=1, flags=re.S)
    return page.replace(" (Score: ", " (Score so far: ", 1) if waits else page


def with_formulas(page: str) -> str:
    """The page with each $formula$ of its texts as MathML, which needs neither a script nor a font, by the
    site's KaTeX; as it was typed where the environment has none."""
    node = Path(sys.prefix, "bin", "node")
    if not node.exists():
        return page
    typed = sorted({m[0] for text in TEXT.findall(page) for m in FORMULA.finditer(text) if m[1]})
    asked = [{"tex": unescape(one.strip("$")), "display": one.startswith("$$")} for one in typed]
    done = subprocess.run(
        [node, KATEX],
        input="".join(json.dumps(one) + "\n" for one in asked),
        env=os.environ | {"NODE_PATH": str(Path(sys.prefix, "node_modules"))},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    made = [
        re.search("<math.*?</math>", json.loads(line).get("html", "")) for line in done.stdout.splitlines()
    ]
    by_text = {one: math[0] for one, math in zip(typed, made, strict=True) if math}
    return TEXT.sub(lambda text: FORMULA.sub(lambda m: by_text.get(m[0], m[0]), text[0]), page)


def secrets_of(cells: Sequence[NotebookNode]) -> set[str]:
    """What must not be told: the lines of the cells' hidden tests, their seeds and tokens."""
    secrets: set[str] = set()
    for cell in cells:
        hidden = cell.source[cell.source.find(BEGIN_HIDDEN) :] if BEGIN_HIDDEN in cell.source else ""
        lines = (line.strip() for line in hidden.splitlines())
        secrets |= {line for line in lines if len(line) >= 12 and not line.startswith(("import ", "from "))}
        secrets |= set(re.findall(r"graded\(answer, '\w+', \d+, (\d{4,})", hidden))
        secrets |= set(re.findall(r"'token': '(\w{16})'", hidden))
    return secrets


def _safe(text: str, hidden: set[str]) -> str:
    return LEFT_OUT if any(part in text for part in hidden) else text
