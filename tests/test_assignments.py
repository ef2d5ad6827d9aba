"""Assignments: every exercise has its tag and its hidden test; what of a graded notebook may be seen. No
nbgrader needed."""

import ast
import importlib.util
import re
import sys

import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lesson_lib.checks import exam
from lesson_lib.checks.engine import check, exercises, lessons
from lesson_lib.checks.exercise import Write
from lesson_lib.checks.inputs import drawn, reseeded
from lesson_lib.checks.short_answers import Open
from lesson_lib.cli import assignments
from lesson_lib.cli.sources import ROOT, BuildError, Target, cells_of, source_text, split_exercise, targets
from lesson_lib.device import device

EXERCISES, LESSONS = exercises(), lessons()

SEED = 8675309
LESSON_NAMES = [name.split("/")[1] for name in LESSONS if name.startswith("exercises/")]
POOL = [exercise for group in exam.pool().values() for exercise in group]
WRITTEN = [e.name for name in LESSON_NAMES for e in LESSONS[f"exercises/{name}"] if isinstance(e, Write)]
WRITTEN += [e.name for e in POOL if isinstance(e, Write)]


def target(name):
    (found,) = targets([name], among=("solution",))
    return found


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))


@pytest.fixture(autouse=True)
def plain_imports():
    """The hidden tests import this library anew for each answer; with jaxtyping's hook that takes ten times
    as long."""
    before = list(sys.meta_path)
    sys.meta_path[:] = [one for one in before if not type(one).__module__.startswith("jaxtyping")]
    yield
    sys.meta_path[:] = before  # in its order: the finder of old names stands before jaxtyping's


@pytest.mark.parametrize("name", LESSON_NAMES)
def test_every_exercise_has_one_cell_with_its_tags(name):
    found = []
    for cell in cells_of(source_text(target(name)), name):
        tags = cell.metadata.get("tags", [])
        assert bool(re.match(r"check\(", cell.source)) == any(t.startswith("exercise:") for t in tags)
        if set(tags) - {"program"}:
            called = re.match(r"check\((\w+)", cell.source)
            found.append(called[1])
            by_hand = ["by_hand"] * isinstance(EXERCISES[called[1]], Open)
            assert tags == [f"exercise:{called[1]}", f"points:{2 * EXERCISES[called[1]].stars}", *by_hand]
    assert found == [exercise.name for exercise in LESSONS[f"exercises/{name}"]]


@pytest.mark.parametrize("name", LESSON_NAMES)
def test_the_instructors_notebook_has_a_role_for_each_cell(name):
    made, points = assignments.source_notebook(target(name), SEED)
    roles = [cell.metadata.get("nbgrader") for cell in made.cells]
    ids = [role["grade_id"] for role in roles if role]
    assert len(ids) == len(set(ids))
    assert not [cell.source for cell in made.cells if "](../" in cell.source], "the course lies elsewhere"
    assert [role["points"] for role in roles if role and role["grade"]] == list(points.values())
    for cell, role in zip(made.cells, roles, strict=True):
        if role is None:
            assert cell.source.startswith("# hint(")
        elif role["solution"]:
            assert "### BEGIN SOLUTION" in cell.source and not role["locked"]
            by_hand = role["grade_id"].removeprefix("answer-") in EXERCISES
            assert role["grade"] == by_hand
        else:
            assert role["locked"] and role["grade"] == ("### BEGIN HIDDEN TESTS" in cell.source)
        if cell.cell_type == "code":
            ast.parse(cell.source)
    assert sum(role["solution"] for role in roles if role) == len(points)


@pytest.mark.parametrize("name", LESSON_NAMES)
def test_the_answers_of_the_source_earn_all_points(name, home, no_shape_hook, untried, monkeypatch):
    """The instructor's notebook by itself, hidden tests included, in this process but for the first lesson's;
    tests/class/test_grading.py has nbgrader around it."""
    if name == LESSON_NAMES[0] and device().type == "simulated":
        monkeypatch.setenv("LESSON_DEVICE", "cpu")  # a library imported anew knows no simulated device
    made, points = assignments.source_notebook(target(name), SEED)
    session, earned = {"check": check}, {}
    for cell in made.cells:
        role = cell.metadata.get("nbgrader", {})
        if role.get("grade") and not role["solution"]:
            text = cell.source[cell.source.index("import builtins") :]
            if name != LESSON_NAMES[0]:  # there the library is imported anew for each answer, as in a class
                text = text.replace('== "lesson_lib"', '== "none of it"')
            hidden = ast.parse(text)
            verdict = eval_last(hidden, session)
            earned[verdict["exercise"]] = verdict["points"]
        elif cell.cell_type == "code" and not cell.source.startswith("picture("):
            exec(split_exercise(cell.source, solved=True), session)
    by_hand = {name for name in points if isinstance(exercises()[name], Open)}
    assert len(by_hand) == (name != "13_todays_models")  # where programs are mended, nothing is to be told
    assert earned == {n: p for n, p in points.items() if n not in by_hand}


def test_a_chapter_without_questions_of_the_exams_is_told():
    with pytest.raises(BuildError, match="class/exam has no questions"):
        assignments.source_notebook(target("10_graph_attention"), SEED, unaided=True)


@pytest.mark.parametrize("name", exam.pool())
def test_an_unaided_notebook_asks_the_pool_without_anything_that_guides(name):
    made, points = assignments.source_notebook(target(name), SEED, unaided=True)
    asked = exam.pool()[name]
    assert points == {e.name: 2 * e.stars for e in asked} and 3 <= len(points) <= 5
    given = [split_exercise(assignments.without_hidden(c.source), solved=False) for c in made.cells]
    assert not re.search(r"hint\(|solution\(|picture\(|a model answer", "\n".join(given))
    for exercise in asked:
        (card,) = (i for i, text in enumerate(given) if f" · {exercise.title}\n" in text)
        assert given[card].count(" · ") == 2, "minutes, and no idea"
        if not exercise.second:
            assert exercise.asked in given[card]
            continue
        assert given[card].endswith(assignments.ASKED), "one set of numbers"
        said = eval(given[card + 1], {"mine": exam.mine, "student": "ada"})
        assert said.rows == {"asked": exam.own(exercise, "ada").asked}
    for cell in made.cells:
        free = cell.source.startswith("student = ") or "nbgrader" in cell.metadata
        assert free, "whoever is who is the one cell beside the answers that may be changed"
        if cell.cell_type == "code":
            ast.parse(cell.source)


def judge():
    """What class/hidden.py defines."""
    found = {"__name__": "hidden"}
    exec(assignments.JUDGE.read_text("utf-8"), found)
    return found


@pytest.mark.parametrize("exercise", [e for e in POOL if e.second], ids=lambda e: e.name)
def test_a_number_is_judged_by_the_students_own(exercise, home):
    own = judge()["_own"]
    students = ["ada", "ben", "cy", "dee", "eve", "flo", "gus", "hal"]
    answers = {student: exam.own(exercise, student).answer for student in students}
    assert len(set(answers.values())) >= 3, "a neighbour's numbers are mostly others"
    for student in students[:3]:
        assert own(answers[student], exercise, 4, student, student)["points"] == 4.0
        mine = exam.own(exercise, student)
        said = {who: mine.judge(answers[who], lambda *_: None) for who in students}
        other = next(who for who, r in said.items() if not r.passed and r.diagnosis not in mine.slips)
        taken = own(answers[other], exercise, 4, student, other)
        assert "points" not in taken and not taken["sure"]
        assert taken["diagnosis"].startswith(
            f"right with the numbers of '{other}', and handed in by '{student}'"
        )
        printed = own(answers[other], exercise, 4, student, student)
        assert "points" not in printed and not printed["sure"]
        assert printed["diagnosis"].startswith("right with the printed numbers of somebody else; yours are: ")
    assert own(..., exercise, 4, "ada", None)["diagnosis"] == "not attempted yet"


@pytest.mark.parametrize("student", ["O'Neil", "张伟", "@student@"])
def test_the_hidden_test_of_an_unaided_check_is_told_whose_it_is(student):
    made, _ = assignments.source_notebook(target("03_matrix_form"), SEED, unaided=True)
    (cell,) = (c for c in made.cells if c.source.startswith("check(exam_score"))
    assert cell.source.count(assignments.STUDENT) == 1
    assignments.name_the_student(cell, student)
    assert assignments.STUDENT not in cell.source
    (spelt,) = re.findall(r"bytes\.fromhex\('\w+'\)\.decode\(\)", cell.source)
    assert eval(spelt) == student
    ast.parse(cell.source)


def eval_last(tree, session):
    *before, last = tree.body
    exec(compile(ast.Module(before, []), "<cell>", "exec"), session)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), session).content


def flat(cases):
    """The numbers in cases; a function as what it gives for the words 1, 2, 3."""
    numbers = []
    for case in cases:
        for thing in case.values():
            if callable(thing) and not isinstance(thing, type):
                thing = thing(torch.tensor([[1, 2, 3]])) if "decode" in case else 0
            numbers.append(thing.tolist() if isinstance(thing, torch.Tensor) else thing)
    return repr([n for n in numbers if not isinstance(n, tuple)])


@pytest.mark.on_cpu  # where inputs are drawn, before a check moves them
@pytest.mark.parametrize("name", WRITTEN)
def test_hidden_inputs_are_others_than_those_of_the_check(name):
    exercise = exam.every()[name]
    hidden, made = exercise.hidden, []
    for seed in (0, SEED, SEED + 1):
        with reseeded(seed):
            made.append(
                (
                    [flat(stage.cases()) for stage in exercise.stages],
                    flat(hidden(drawn)),
                    hidden(drawn),
                )
            )
    visible, first, second = made
    if any("drawn" in stage.cases.__code__.co_names for stage in exercise.stages):
        assert visible[0] != first[0] != second[0]  # the shift reaches the check's own inputs
    if name not in ("path_edges", "greedy_words"):  # a small number; a function of which `flat` says nothing
        assert first[1] != second[1]
    shown = {sizes(case) for stage in exercise.stages for case in stage.cases()}
    if name != "pre_norm_stack":
        assert any(sizes(case) not in shown for case in first[2])
    assert [list(case) for case in first[2]] == [list(exercise.stages[0].cases()[0])] * len(first[2])


def sizes(case):
    return tuple(
        tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in case.values() if not callable(x)
    )


def test_reseeded_ends_with_its_block():
    before = drawn(7, 3)
    with reseeded(3):
        inside = drawn(7, 3)
        with reseeded(0):
            assert torch.equal(drawn(7, 3), before)
        assert torch.equal(drawn(7, 3), inside) and not torch.equal(inside, before)
    assert torch.equal(drawn(7, 3), before)


def course_of(tmp_path, check_cell):
    """A course with one lesson of one exercise, whose check stands in `check_cell`."""
    folder = tmp_path / "notebooks" / "source"
    (folder / "exercises").mkdir(parents=True)
    text = "# %%\n### BEGIN SOLUTION\nx = 2\n### END SOLUTION\n### STUB: x = ...\n\n" + check_cell
    (folder / "exercises" / "01_a.py").write_text(text, "utf-8")
    return Target("solutions/01_a", folder / "exercises" / "01_a.py", tmp_path / "none.ipynb")


def test_exercise_notebooks_alone_are_assigned(tmp_path, monkeypatch, capsys):
    """What a part asks has the same tag, and no points."""
    course_of(tmp_path, '# %% tags=["exercise:x", "points:2"]\ncheck(x)\n')
    asked = '# %% tags=["exercise:stable_weights"]\ncheck(stable_weights)\n'
    for name in ("01a_one", "02a_other"):
        (tmp_path / "notebooks" / "source" / f"{name}.py").write_text(asked, "utf-8")
    made = []
    monkeypatch.setattr(assignments, "targets", lambda names, **more: targets(names, root=tmp_path, **more))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(assignments, "_generate", lambda name, to: made.append(name))
    monkeypatch.setattr(
        assignments, "source_notebook", lambda target, seed, **_: (new_notebook(), {target.kind: 2})
    )
    for names in ([], ["01"], ["01_a"]):
        assert assignments.main(names, to=tmp_path / "to", seed=SEED) == 0
    assert made == ["01_a"] * 3 and "1 of 1 assignments" in capsys.readouterr().out
    for name in ("01a", "02", "01a_one"):
        assert assignments.main([name], to=tmp_path / "to", seed=SEED) == 1
        assert f"no notebook is called {name!r}; there are solutions/01_a\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "cell, said",
    [
        ('# %% tags=["exercise:x"]\ncheck(x)\n', 'tags=["exercise:x", "points:2"]'),
        ('# %% tags=["exercise:x", "points:two"]\ncheck(x)\n', 'tags=["exercise:x", "points:2"]'),
        (2 * '# %% tags=["exercise:x", "points:2"]\ncheck(x)\n\n', "one cell with"),
    ],
)
def test_a_wrong_tag_is_told(tmp_path, cell, said):
    with pytest.raises(BuildError, match=re.escape(said)):
        assignments.source_notebook(course_of(tmp_path, cell), SEED)


def test_a_seed_is_drawn_once_and_kept(tmp_path):
    path = tmp_path / "seed.txt"
    first = assignments._seed(path, None)
    assert path.stat().st_mode & 0o077 == 0  # nobody else reads it
    assert assignments._seed(path, None) == first >= 10**6
    assert assignments._seed(path, SEED) == SEED == assignments._seed(path, None)
    path.write_text("many", "utf-8")
    with pytest.raises(BuildError, match="'many', which is no seed"):
        assignments._seed(path, None)
    for wrong in (0, -3, 2**31):
        with pytest.raises(BuildError, match=f"seed is {wrong}; give a whole number from 1"):
            assignments._seed(path, wrong)


@pytest.mark.parametrize("place", ["notebooks", "notebooks/exercises/mine"])
def test_the_courses_own_notebooks_are_no_place_for_assignments(place, capsys):
    before = sorted((ROOT / "notebooks").rglob("*"))
    assert assignments.main(["03"], to=ROOT / place) == 1
    assert "give --to another folder" in capsys.readouterr().out
    assert sorted((ROOT / "notebooks").rglob("*")) == before


HIDDEN = f"""check(f)
### BEGIN HIDDEN TESTS
a_line_of_the_hidden_test = 1
graded(answer, 'f', 4, {SEED}) | {{'token': '0123456789abcdef'}}
### END HIDDEN TESTS"""


def graded_cell(*outputs):
    given = {"grade": True, "grade_id": "check-f", "points": 4}
    return new_code_cell(HIDDEN, metadata={"nbgrader": given}, outputs=list(outputs), execution_count=1)


def verdict(**changes):
    content = {
        "exercise": "f", "points": 3.0, "of": 4, "steps": "3 of 4 steps", "diagnosis": "nearly", "sure": True,
        "token": "0123456789abcdef",
    } | changes  # fmt: skip
    return new_output("execute_result", data={"text/plain": "3.0", assignments.MIME: content})


def points_in(cell):
    return [float(o.data["text/plain"]) for o in cell.outputs if o.output_type == "execute_result"]


def test_a_verdict_takes_the_place_of_everything_that_a_cell_says():
    printed = new_output("stream", name="stderr", text="a warning, which nbgrader would punish")
    cell = graded_cell(printed, verdict())
    assignments.judged(cell)
    card, _ = cell.outputs
    assert card.data["text/plain"] == "f: 3 of 4 points, 3 of 4 steps right\nnearly" and points_in(cell) == [
        3.0
    ]
    assert "token" not in card.data[assignments.MIME] and "warning" not in str(cell.outputs)


def test_a_verdict_that_the_hidden_test_did_not_give_does_not_count():
    plain = new_output("execute_result", data={"text/plain": "4.0"})
    cell = graded_cell(plain, verdict(points=4.0, token="guessed"), verdict(points=1.0))
    assignments.judged(cell)
    assert points_in(cell) == [1.0]
    cell = graded_cell(plain)
    assignments.judged(cell)
    assert points_in(cell) == [0.0] and not cell.outputs[0].data[assignments.MIME]["sure"]


@pytest.mark.parametrize(
    "kind, text, said",
    [
        ("NameError", "name 'f' is not defined",
         "nothing is called f here: the cell that defines it is missing"),
        ("CellTimeoutError", "", "no answer in time"),
        ("RuntimeError", "secret", "could not be judged (RuntimeError)"),
    ],
)  # fmt: skip
def test_an_error_in_place_of_a_verdict_is_no_points_and_a_sentence(kind, text, said):
    cell = graded_cell(new_output("error", ename=kind, evalue=text, traceback=["secret"]))
    assignments.judged(cell)
    assert points_in(cell) == [0.0] and said in cell.outputs[0].data["text/plain"]
    assert "secret" not in str(cell.outputs)


@pytest.mark.parametrize("leak", ["x a_line_of_the_hidden_test = 1 x", f"seed {SEED}", "0123456789abcdef"])
def test_feedback_shows_cards_and_first_lines_only(leak):
    graded = graded_cell(verdict(diagnosis=leak))
    assignments.judged(graded)
    own = new_code_cell(
        "print(In)",
        outputs=[
            new_output("stream", text=leak),
            new_output("error", ename="ValueError", evalue=leak, traceback=[leak]),
        ],
    )
    fails = new_code_cell(
        "1/0", outputs=[new_output("error", ename="ZeroDivisionError", evalue="by zero\nmore")]
    )
    notebook = new_notebook(cells=[graded, own, fails])
    assignments.feedback(notebook)
    text = str(notebook)
    assert leak not in text and "HIDDEN" not in text and "secret" not in text
    assert graded.source == "check(f)" and assignments.LEFT_OUT in graded.outputs[0].data["text/plain"]
    assert fails.outputs[0].text == "This cell ends in ZeroDivisionError: by zero\n"
