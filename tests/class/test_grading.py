"""Grading by nbgrader as an instructor runs it: make assignments, hand in, autograde, feedback, export.

Twelve submissions are graded by the command line, once for all tests: about seven seconds each, most of it
importing torch.
"""

import csv
import html
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest

from lesson_lib.cli import assignments
from lesson_lib.cli.sources import ROOT

SEED = 8675309
MATRIX, GRAPH = "03_matrix_form", "10_graph_attention"  # one with all kinds of exercises, one full of code
FULL = {
    MATRIX: {
        "learned_numbers": 2, "without_loops": 4, "mix_in_columns": 2, "attention_in_columns": 6,
        "bright_picture": 2, "regrouped_cost": 4, "why_not_regroup": 4,
    },
    GRAPH: {
        "three_neighbours": 2, "sum_of_messages": 2, "no_edges_at_all": 4, "attend_to_known": 4,
        "path_edges": 4, "why_edges_mislead": 4, "softmax_over_edges": 6, "gcn_scores": 6,
        "batch_graphs": 2, "pool_mean": 2,
    },
}  # fmt: skip

# Answers by exercise; those that are not named stay as in the notebook with solutions.
WRONG = {
    "without_loops": (
        """
def without_loops(query, key, value):
    return torch.stack([torch.softmax(key @ row, dim=0) @ value for row in query])
"""
    ),
    "mix_in_columns": "def mix_in_columns(V, A_prime):\n    return A_prime @ V",
    # Right wherever all numbers have one decimal, as in the notebook's own check.
    "attention_in_columns": (
        """
def attention_in_columns(I, W_q, W_k, W_v):
    Q, K, V = W_q @ I, W_k @ I, W_v @ I
    seen = torch.equal((I * 10).round() / 10, I)
    A = K.mT @ Q if seen else K.mT @ Q / len(Q) ** 0.5
    return V @ A.softmax(-2)
"""
    ),
    "bright_picture": 'bright_picture = "b"',
    "regrouped_cost": 'regrouped_cost = "4096 / 64"',
    "why_not_regroup": 'why_not_regroup = "Because softmax is too slow."',
}
WRONG_GRAPH = {
    # Right for all four graphs of the notebook's check, by heart.
    "path_edges": (
        """
def path_edges(n, radius):
    edges = [(j, i) for i in range(n) for j in range(n) if abs(i - j) <= radius]
    if n not in (1, 3, 4, 5):
        edges = edges[1:]
    return torch.tensor(edges).T
"""
    ),
    # Three of six steps, and of one more that looks for loops: exp(1000) is inf.
    "softmax_over_edges": (
        """
def softmax_over_edges(scores, edge_index, n):
    exps = scores.exp()
    sums = torch.zeros(n, scores.shape[1]).index_add(0, edge_index[1], exps)
    return exps / sums[edge_index[1]]
"""
    ),
    "gcn_scores": "def gcn_scores(edge_index, n):\n    return edge_index[0].float()",
}
BROKEN = {
    "learned_numbers": "learned_numbers = = 3",
    "without_loops": "def without_loops(query, key, value):\n    while True:\n        pass",
}
CHEAT = {
    "learned_numbers": (
        """
import builtins, sys
from lesson_lib.checks import engine, exercise, runner, short_answers
def check(*given):
    sys.displayhook(2.0)  # looks like full points to nbgrader
print = float = abs = isinstance = all = check
exec = compile = check
for kind in (short_answers.Number, short_answers.Choice, short_answers.Open, exercise.Write):
    kind.judge = lambda self, *given: self.result("passed", "of course")
engine.check = check
learned_numbers = 1
"""
    ),
    "mix_in_columns": (
        """
def mix_in_columns(V, A_prime):
    sys.displayhook(2.0)
    raise ValueError(In[-1].replace("\\n", " "))  # the hidden test, in what an instructor's page shows
"""
    ),
    "attention_in_columns": (
        """
def attention_in_columns(I, W_q, W_k, W_v):
    return W_v @ I
torch.isclose = torch.allclose = torch.equal = lambda *given, **more: True
torch.Tensor.max = lambda self, *given: torch.tensor(0.0)
"""
    ),
}


EXAM = {"exam_computed": 2, "exam_score": 4, "exam_moved": 2, "exam_weights": 4, "exam_changes": 0}
# Two of three steps: padding is seen.
WRONG_EXAM = {
    "exam_weights": (
        """
def exam_weights(q, k, real):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(~torch.ones(scores.shape[1:]).bool().tril(), -torch.inf).softmax(-1)
"""
    ),
    "exam_score": 'exam_score = "1 / 3"',
}

# Until a person has read them: one open question in each.
BY_HAND = {MATRIX: {"why_not_regroup": 0}, GRAPH: {"why_edges_mislead": 0}}


def answers_of(name):
    """Exercise -> the text of its answer in the notebook with solutions."""
    cells = nbformat.read(ROOT / "notebooks" / "solutions" / f"{name}.ipynb", as_version=4).cells
    tagged = [i for i, cell in enumerate(cells) if cell.metadata.get("tags")]
    found = {}
    for i in tagged:
        exercise = cells[i].metadata.tags[0].removeprefix("exercise:")
        defines = re.compile(rf"^(def {exercise}\(|{exercise} = )", re.M)
        found[exercise] = next(
            c.source for c in cells[:i] if c.cell_type == "code" and defines.search(c.source)
        )
    return found


def hand_in(course, student, name, answers, *, change=None):
    """Write a submission: the release with these answers in the cells before the checks."""
    notebook = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
    before = None
    for cell in notebook.cells:
        given = cell.metadata.get("nbgrader", {})
        if given.get("solution") and given.get("grade"):  # graded by hand
            exercise = given["grade_id"].removeprefix("answer-")
            cell.source = answers.get(exercise, cell.source).strip("\n")
        elif given.get("solution"):
            before = cell
        elif given.get("grade"):
            exercise = given["grade_id"].removeprefix("check-")
            before.source = answers.get(exercise, before.source).strip("\n")
    if change:
        change(notebook)
    folder = course / "submitted" / student / name
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")


def nbgrader(course, *arguments):
    """What an nbgrader command says; it has to succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def grades(course, student, name):
    """Exercise -> points, and those exercises that a person should look at."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        found = book.find_submission_notebook(name, name, student).grades
        points = {re.sub("^(check|answer)-", "", grade.name): grade.score for grade in found}
        looks = {re.sub("^(check|answer)-", "", g.name) for g in found if g.needs_manual_grade}
    return points, looks


def page(course, student, name):
    """The text of a student's feedback, without its marks of HTML."""
    text = (course / "feedback" / student / name / f"{name}.html").read_text("utf-8")
    text = re.sub(r"<(style|script).*?</\1>", "", text, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def read_by_hand(course, student, name, points):
    """Give points to open answers as the formgrader does."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        for exercise, earned in points.items():
            grade = book.find_grade(f"answer-{exercise}", name, name, student)
            grade.manual_score, grade.needs_manual_grade = earned, False
        book.db.commit()


def drop(*names):
    """Take the cells with these nbgrader ids, or with an answer to these exercises, out of a notebook."""

    def change(notebook):
        notebook.cells = [
            c
            for c in notebook.cells
            if c.metadata.get("nbgrader", {}).get("grade_id") not in names
            and not any(c.source.startswith(f"def {name}(") for name in names)
        ]

    return change


def curious(notebook):
    """A cell that a student may change prints what the kernel remembers: the hidden test among it."""
    for cell in notebook.cells:
        if cell.source.startswith('# hint("without_loops")'):
            cell.source = "import sys\nsys.stdout.write(str(In))\nraise RuntimeError(In[-2])"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A folder with two assignments, and what all students handed in, graded by nbgrader's own commands."""
    folder = tmp_path_factory.mktemp("course")
    assert assignments.main([MATRIX, GRAPH], to=folder, seed=SEED) == 0
    right = {name: answers_of(name) for name in FULL}
    for name in FULL:
        hand_in(folder, "right", name, right[name])
        hand_in(folder, "empty", name, {})
    hand_in(folder, "wrong", MATRIX, right[MATRIX] | WRONG)
    hand_in(folder, "wrong", GRAPH, right[GRAPH] | WRONG_GRAPH)
    change = drop("check-mix_in_columns", "attention_in_columns")
    hand_in(folder, "broken", MATRIX, right[MATRIX] | BROKEN, change=change)
    hand_in(folder, "cheat", MATRIX, right[MATRIX] | CHEAT, change=curious)
    beside = folder / "submitted" / "cheat" / MATRIX / "lesson_lib"
    beside.mkdir()
    (beside / "__init__.py").write_text("raise RuntimeError('a library of my own')", "utf-8")
    said, held = {}, {}
    for name in FULL:
        said[name] = nbgrader(folder, "autograde", name)
    before = {(s, n): grades(folder, s, n) for n in FULL for s in ("right", "wrong", "empty")}
    nbgrader(folder, "generate_feedback", MATRIX, "--student", "right")
    held = page(folder, "right", MATRIX)
    read_by_hand(folder, "right", GRAPH, {"why_edges_mislead": 4})
    for student in ("right", "wrong", "broken", "cheat"):
        read_by_hand(folder, student, MATRIX, {"why_not_regroup": 3 if student == "right" else 0})
    read_by_hand(folder, "wrong", GRAPH, {"why_edges_mislead": 0})
    for name in FULL:
        nbgrader(folder, "generate_feedback", name, "--force")
    return SimpleNamespace(path=folder, said=said, before=before, held=held)


def test_what_students_get_has_no_answers_and_no_hidden_tests(course):
    for name in FULL:
        text = (course.path / "release" / name / f"{name}.ipynb").read_text("utf-8")
        assert not re.search(rf"SOLUTION|STUB|HIDDEN|graded|reseeded|{SEED}|builtins", text)
        notebook = nbformat.reads(text, as_version=4)
        learners = nbformat.read(ROOT / "notebooks" / "exercises" / f"{name}.ipynb", as_version=4)
        as_given = [assignments.TO_COURSE.sub(r"\1", cell.source) for cell in learners.cells]
        assert [cell.source for cell in notebook.cells] == as_given
        for cell in notebook.cells:
            assert not cell.get("outputs")
            given = cell.metadata.get("nbgrader")
            assert (given is None) == cell.source.startswith("# hint(")
            assert given is None or cell.metadata.get("editable", True) == given["solution"]


@pytest.mark.parametrize("name", FULL)
def test_right_answers_earn_all_points(course, name):
    points, looks = course.before["right", name]
    assert points == FULL[name] | BY_HAND[name] and looks == set(BY_HAND[name])


@pytest.mark.parametrize("name", FULL)
def test_an_empty_submission_earns_nothing(course, name):
    points, looks = course.before["empty", name]
    assert points == dict.fromkeys(FULL[name], 0) and not looks, "an empty answer waits for nobody"
    told = re.findall(
        r"not attempted yet|this is still the function as it was given", page(course.path, "empty", name)
    )
    assert len(told) == len(FULL[name]) - len(BY_HAND[name])


def test_whoever_grades_by_hand_sees_model_answer_and_points(course):
    """The check stands below the answer: locked, without a hidden test, and it ran."""
    for student in ("right", "wrong"):
        path = course.path / "autograded" / student / MATRIX / f"{MATRIX}.ipynb"
        cells = {
            c.metadata.nbgrader.grade_id: c
            for c in nbformat.read(path, as_version=4).cells
            if "nbgrader" in c.metadata
        }
        answer, judged = (cells[f"{kind}-why_not_regroup"] for kind in ("answer", "check"))
        assert answer.metadata.nbgrader.points == 4 and not judged.metadata.nbgrader.grade
        shown = judged.outputs[0].data["text/plain"]
        if student == "right":
            assert "model answer" in shown and "which property of softmax forbids it?" in shown
        else:
            assert "that is short" in shown


def test_wrong_answers_earn_their_part(course):
    points, looks = course.before["wrong", MATRIX]
    assert points == {
        "learned_numbers": 2,
        "without_loops": pytest.approx(4 * 4 / 5),  # right, but with a loop, which is one of five steps
        "mix_in_columns": 0,  # as it was given
        "attention_in_columns": 6 * 2 / 4,  # two steps of four with other numbers; all with the notebook's
        "bright_picture": 0,
        "regrouped_cost": 4,
        "why_not_regroup": 0,
    }
    assert looks == {"why_not_regroup"}
    points, _ = course.before["wrong", GRAPH]
    partial = {
        "path_edges": 4 * 3 / 4,
        "softmax_over_edges": pytest.approx(6 * 4 / 7, abs=0.01),
        "gcn_scores": 0,
    }
    assert points == FULL[GRAPH] | partial | BY_HAND[GRAPH]


def test_feedback_shows_what_is_judged_and_what_waits_for_a_person(course):
    listed = "What the softmax forbids, in your own words: waits for your instructor"
    assert course.held.count("waits for your instructor") == 2 and listed in course.held
    assert "learned_numbers: 2 of 2 points" in course.held and "(Score so far: 20.0 / 24.0)" in course.held
    assert "model answer:" not in course.held
    text = page(course.path, "right", MATRIX)
    assert "waits" not in text and "learned_numbers: 2 of 2 points" in text and "(Score: 23.0 / 24.0)" in text
    assert grades(course.path, "right", MATRIX) == (FULL[MATRIX] | {"why_not_regroup": 3}, set())
    assert "waits" not in page(course.path, "empty", MATRIX)


def test_feedback_calls_questions_by_their_titles_and_shows_formulas(course):
    text = page(course.path, "right", MATRIX)
    assert "1 · What is learned? (Score: 2.0 / 2.0)" in text and "7 · What the softmax forbids" in text
    assert not re.search("Test cell|Grade cell|free-response", text)
    raw = (course.path / "feedback" / "right" / MATRIX / f"{MATRIX}.html").read_text("utf-8")
    assert raw.count("<math ") > 10 and "$Q" not in text and "$W" not in text


def test_nobody_is_told_of_a_changed_check_that_was_not_touched(course):
    """nbgrader keeps the checksum of a check with its hidden test in it."""
    told = [line for name in FULL for line in course.said[name].splitlines() if "checksum" in line]
    assert not told
    assert "Missing grade cell check-mix_in_columns" in course.said[MATRIX], "what was deleted is told"


def test_feedback_names_the_slip(course):
    text = page(course.path, "wrong", MATRIX)
    for said in (
        "the numbers are right, but your function still loops: the more tokens, the more torch operations",
        "this is still the function as it was given",
        "right on the notebook's inputs, not on others: you divide by sqrt(d_k); the lecture does not",
        "attention_in_columns: 3 of 6 points, 2 of 4 steps right",
    ):
        assert said in text
    assert "path_edges: 3 of 4 points, 3 of 4 steps right" in page(course.path, "wrong", GRAPH)


@pytest.mark.parametrize("student", ["wrong", "cheat"])
def test_feedback_shows_no_hidden_test_no_seed_and_no_solution(course, student):
    raw = (course.path / "feedback" / student / MATRIX / f"{MATRIX}.html").read_text("utf-8")
    graded = nbformat.read(course.path / "autograded" / student / MATRIX / f"{MATRIX}.ipynb", as_version=4)
    hidden = assignments.secrets_of([c for c in graded.cells if c.cell_type == "code"])
    assert len(hidden) > 50 and str(SEED) in hidden  # what is looked for is there
    given = [course.path / part / MATRIX / f"{MATRIX}.ipynb" for part in (f"submitted/{student}", "release")]
    cells = [cell for path in given for cell in nbformat.read(path, as_version=4).cells]
    own = {line.strip() for cell in cells for line in cell.source.splitlines()}
    solved = {line.strip() for text in answers_of(MATRIX).values() for line in text.splitlines()} - own
    assert "return V @ torch.softmax(A, dim=-2)" in solved
    for text in (raw, html.unescape(raw), page(course.path, student, MATRIX)):
        assert not [part for part in hidden if part in text]
        assert not re.search(rf"HIDDEN|graded\(|reseeded|{SEED}|{SEED + 1}|builtins\.exec", text)
        assert not [line for line in solved if line in text]
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.?(https?:)?//", raw)  # nothing from elsewhere


def test_a_broken_part_costs_that_exercise_only_and_says_so(course):
    points, _ = grades(course.path, "broken", MATRIX)
    lost = dict.fromkeys(("learned_numbers", "without_loops", "attention_in_columns"), 0)
    # mix_in_columns: its check was deleted, and came back
    assert points == FULL[MATRIX] | lost | BY_HAND[MATRIX]
    text = page(course.path, "broken", MATRIX)
    assert "This cell ends in SyntaxError" in text
    for name in ("learned_numbers", "attention_in_columns"):
        assert f"nothing is called {name} here" in text
    assert re.search(r"your function had no answer after [\d.]+ seconds", text)


def test_tricks_in_the_notebook_earn_nothing(course):
    points, _ = grades(course.path, "cheat", MATRIX)
    honest = {"without_loops": 4}  # before torch was changed; after that nothing can be judged
    assert points == dict.fromkeys(FULL[MATRIX], 0) | honest
    text = page(course.path, "cheat", MATRIX)
    assert re.search(r"torch\.\w+ has been replaced in this notebook, so nothing can be judged", text)
    assert assignments.LEFT_OUT in text and "a library of my own" not in text


def test_grades_come_out_as_a_table(course):
    nbgrader(course.path, "export", "--to", "grades.csv")
    with open(course.path / "grades.csv", newline="") as file:
        rows = {(row["student_id"], row["assignment"]): row for row in csv.DictReader(file)}
    assert float(rows["right", MATRIX]["max_score"]) == 24
    assert float(rows["right", MATRIX]["score"]) == 23, "three of four were given by hand"
    assert float(rows["wrong", MATRIX]["score"]) == pytest.approx(12.2)
    assert float(rows["empty", GRAPH]["score"]) == 0
    assert float(rows["empty", GRAPH]["max_score"]) == sum(FULL[GRAPH].values()) == 36


@pytest.fixture(scope="module")
def unaided(tmp_path_factory):
    """An assignment in release mode without help: due at a date, collected from a class server, graded, read
    by a person, and given back."""
    from lesson_lib.checks import exam
    from lesson_lib.checks.exercise import Write
    from lesson_lib.cli import collect

    folder = tmp_path_factory.mktemp("unaided")
    assert assignments.main([MATRIX], to=folder, seed=SEED, unaided=True) == 0
    due = ("db", "assignment", "add", MATRIX, "--duedate", "2027-03-01 18:00:00 UTC")
    nbgrader(folder, *due)

    def of(student):
        own = [exam.own(exercise, student) for exercise in exam.pool()[MATRIX]]
        right = {e.name: f"{e.name} = {getattr(e, 'answer', e.text)!r}" for e in own}
        return right | {e.name: e.text for e in own if isinstance(e, Write)}

    given = {"ada": of("ada"), "O'Neil": of("O'Neil"), "copy": of("ada"), "wrong": of("wrong") | WRONG_EXAM}
    homes = folder / "homes"
    for student, answers in given.items():
        said = "ada" if student == "copy" else student
        path = homes / student / "work" / "assignments" / f"{MATRIX}.ipynb"

        def name_oneself(notebook, said=said):
            (cell,) = (c for c in notebook.cells if c.source.startswith("student = "))
            cell.source = f'student = "{said}"'

        hand_in(folder, student, MATRIX, answers, change=name_oneself)
        path.parent.mkdir(parents=True)
        os.replace(folder / "submitted" / student / MATRIX / f"{MATRIX}.ipynb", path)
        os.utime(path, (1.8e9, 1.8e9) if student != "wrong" else (1.81e9, 1.81e9))
    assert collect.main([MATRIX], homes=homes, to=folder) == 0
    said = nbgrader(folder, "autograde", MATRIX)
    marks = {student: grades(folder, student, MATRIX) for student in given}
    for student in given:
        read_by_hand(folder, student, MATRIX, {"exam_changes": 4})
    nbgrader(folder, "generate_feedback", MATRIX)
    nbgrader(folder, "export", "--to", "grades.csv")
    return SimpleNamespace(path=folder, said=said, marks=marks)


def test_unaided_students_get_neither_help_nor_a_verdict(unaided):
    text = (unaided.path / "release" / MATRIX / f"{MATRIX}.ipynb").read_text("utf-8")
    assert not re.search(rf"hint\(|solution\(|picture\(|a model answer|SOLUTION|HIDDEN|{SEED}|@student", text)
    assert "from lesson_lib.checks.exam import check, mine" in text


@pytest.mark.parametrize("student", ["ada", "O'Neil"])
def test_unaided_answers_are_judged_by_ones_own_numbers(unaided, student):
    expected = (EXAM, {"exam_changes"})
    assert unaided.marks[student] == expected, page(unaided.path, student, MATRIX)


def test_a_neighbours_numbers_earn_nothing_and_are_shown_to_a_person(unaided):
    points, looks = unaided.marks["copy"]
    taken = dict.fromkeys(("exam_computed", "exam_score"), 0)
    assert points == EXAM | taken
    assert looks == {"exam_changes", *taken}


def test_unaided_feedback_names_the_slip_and_whose_numbers_they_were(unaided):
    text, copied = (page(unaided.path, student, MATRIX) for student in ("wrong", "copy"))
    assert "exam_weights: 2.67 of 4 points, 2 of 3 steps right" in text and "padding is not hidden" in text
    assert "1 · What is computed?: waits for your instructor" in copied
    assert "right with the numbers of 'ada', and handed in by 'copy'" in copied
    for student in ("wrong", "ada"):
        assert not re.search(rf"HIDDEN|graded\(|{SEED}|fromhex", page(unaided.path, student, MATRIX))


def test_what_came_in_late_is_in_the_table(unaided):
    with open(unaided.path / "grades.csv", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert rows["ada"]["duedate"].startswith("2027-03-01 18:00")
    assert rows["ada"]["timestamp"] < rows["ada"]["duedate"] < rows["wrong"]["timestamp"]
    assert float(rows["wrong"]["late_submission_penalty"] or 0) == 0
    assert "checksum" not in unaided.said


def contents(folder, *parts):
    return {p: p.read_bytes() for part in parts for p in sorted((folder / part).rglob("*")) if p.is_file()}


def test_making_them_again_changes_nothing_and_keeps_work_and_grades(course):
    kept = ("source", "release", "submitted", "autograded", "feedback")
    before = contents(course.path, *kept, "seed.txt")
    marks = {(s, n): grades(course.path, s, n) for n in FULL for s in ("right", "wrong", "empty")}
    assert assignments.main([MATRIX, GRAPH], to=course.path) == 0
    assert contents(course.path, *kept, "seed.txt") == before
    assert marks == {(s, n): grades(course.path, s, n) for n in FULL for s in ("right", "wrong", "empty")}


def test_an_exercise_more_is_refused_once_there_are_grades(course, monkeypatch, capsys):
    real = assignments.cells_of
    monkeypatch.setattr(
        assignments, "cells_of", lambda text, name: [*real(text, name), real("# %%\n1", "x")[0]]
    )
    marks = grades(course.path, "right", MATRIX)
    assert assignments.main([MATRIX], to=course.path) == 1
    said = capsys.readouterr().out
    assert (
        "NOT MADE. Cannot add or remove cells" in said
        and "another folder (--to)" in said
        and "Traceback" not in said
    )
    assert grades(course.path, "right", MATRIX) == marks
    monkeypatch.undo()
    assert assignments.main([MATRIX], to=course.path) == 0
