"""Whatever a card, a hint or README tells a learner to type works in every notebook of the course."""

import os
import re
import subprocess
import sys
from pathlib import Path
from symtable import symtable

import nbformat
import pytest

from lesson_lib import checks, desk
from lesson_lib.checks import check, engine, hint, reset, solution, store

ROOT = Path(__file__).parents[1]
NOTEBOOKS = [path for path in sorted(ROOT.glob("notebooks/**/*.ipynb")) if "instructor" not in path.parts]


def in_a_kernel(tmp_path: Path, *cells: str, fail: bool = False, opened: str = "") -> str:
    """What these cells print, run one after the other by IPython as a kernel runs them; some may `fail`."""
    lines = ["from IPython.core.interactiveshell import InteractiveShell", "s = InteractiveShell.instance()"]
    lines += [f"s.run_cell({cell!r})" + ("" if fail else ".raise_error()") for cell in cells]
    environment = os.environ | {"IPYTHONDIR": str(tmp_path), "LESSON_HOME": str(tmp_path)}
    environment |= {"JPY_SESSION_NAME": opened}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env=environment, cwd=ROOT, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_readme_and_docs_tell_to_type_works_below_any_first_cell(tmp_path):
    """`reset` above all, which is a magic of IPython's that asks whether to delete all variables."""
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/further.md"))
    calls = re.findall(rf"(?:^|`)((?:{'|'.join(desk.VERBS)})\([^`]*?\))(?=  #|$|`)", text, re.M)
    assert {"check", "hint", "reset", "progress", "export_progress"} <= {c.partition("(")[0] for c in calls}
    before = "import lesson_lib.masks\ndef my_function(query, key, value):\n    return value"
    said = in_a_kernel(tmp_path, before, *calls, "import os; os.unlink('progress.csv')")
    assert 'no exercise is called "my_function"' in said and "scaled_attention: a solution" in said
    assert "scaled_attention: as if never tried" in said and "Proceed" not in said and "Exported" in said


def test_a_name_of_the_learner_s_is_left_alone(tmp_path):
    said = in_a_kernel(
        tmp_path, "second = 7", "import lesson_lib.masks", "print(second, reset.__name__)", "%who"
    )
    assert said.splitlines()[0] == "7 reset" and "reset" not in said.splitlines()[-1]


def test_a_function_whose_cell_could_not_be_read_is_not_judged_as_it_was_before(tmp_path):
    before = "import lesson_lib\ndef scaled_attention(query, key, value):\n    return value"
    broken = "def scaled_attention(query, key, value):\n    return query @ value)"
    said = in_a_kernel(tmp_path, before, broken, "print(check(scaled_attention))", fail=True)
    assert "did not run (SyntaxError, line 2: unmatched ')')" in said.split("UNJUDGED")[-1]
    said = in_a_kernel(tmp_path, before, broken, before, "print(check(scaled_attention))", fail=True)
    assert "did not run" not in said.splitlines()[-1] and "scaled_attention" in said.splitlines()[-1]


def test_an_assertion_of_the_course_s_that_fails_is_explained(tmp_path):
    proof, own = "assert accuracy > .9  # as the text says", "assert accuracy == 1"
    cells = [nbformat.v4.new_code_cell(proof, metadata={"tags": ["proof"]}), nbformat.v4.new_code_cell(own)]
    opened = tmp_path / "lesson.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), opened)
    before = "import lesson_lib\naccuracy = .5"
    said = in_a_kernel(tmp_path, before, proof, fail=True, opened=str(opened))
    assert "AssertionError" in said and said.endswith(desk.PROOF_FAILED + "\n")
    assert desk.PROOF_FAILED not in in_a_kernel(tmp_path, before, own, fail=True, opened=str(opened))
    assert desk.PROOF_FAILED not in in_a_kernel(tmp_path, before, proof, fail=True)
    assert desk.PROOF_FAILED in in_a_kernel(
        tmp_path, "import lesson_lib", proof, fail=True, opened=str(opened)
    )


def test_what_a_stopped_cell_has_not_made_is_explained(tmp_path):
    loop = """import torch
from lesson_lib.training import counted
for step in counted(range(9), torch.nn.Linear(1, 1), []):
    raise KeyboardInterrupt
late = 1"""
    said = in_a_kernel(tmp_path, loop, "late + 1", fail=True)
    assert "Linear was stopped in step 1 of 9." in said
    assert "before it had made late: run that cell again" in said
    done = loop.replace("raise KeyboardInterrupt", "pass")
    assert "was stopped" not in in_a_kernel(tmp_path, done, "later + 1", fail=True)


def test_the_verbs_are_all_that_checks_offers_to_call():
    """`picture` stands in a cell, and no learner types it; `picture` is a good name for a picture."""
    offered = {name for name in checks.__all__ if not isinstance(getattr(checks, name), type)} - {"picture"}
    assert {name for name, module in desk.VERBS.items() if module == desk.CHECKS} == offered
    for name, module in desk.VERBS.items():
        assert callable(getattr(__import__(module, fromlist=[name]), name))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_notebook_uses_a_verb_s_name_for_something_else(path):
    cells = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    names = [
        s
        for cell in cells
        for s in symtable(re.sub(r"^\s*[%!].*$", "", cell, flags=re.M), "", "exec").get_symbols()
    ]
    assert not {s.get_name() for s in names if s.is_assigned() and not s.is_imported()} & set(desk.VERBS)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A session in which nothing has been checked, with an empty store."""
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.setattr(store, "_unsaved", [])
    monkeypatch.setattr(engine, "_LATEST", [])
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


def test_without_a_name_the_exercise_at_hand_is_meant(fresh, monkeypatch):
    assert "say which exercise you mean" in check().diagnosis
    assert "say which exercise you mean" in repr(hint())
    assert check(3, "weighted_sum").diagnosis
    assert repr(hint()).startswith("weighted_sum: hint 1") and repr(solution()).startswith("weighted_sum")
    monkeypatch.setattr(sys.modules["__main__"], "weighted_sum", 5, raising=False)
    assert check().passed
    monkeypatch.setattr(sys.modules["__main__"], "weighted_sum", ..., raising=False)
    assert check().state == "open"


def test_a_function_s_name_in_quotes_means_the_function(fresh, monkeypatch):
    assert check("scaled_attention").state == "open"
    monkeypatch.setattr(
        sys.modules["__main__"], "scaled_attention", lambda query, key, value: value, raising=False
    )
    assert check("scaled_attention").state == "failed" and "quotes" not in check("scaled_attention").diagnosis


def test_a_guess_is_one_of_this_notebook_s_names(fresh, monkeypatch):
    def my_attention(query, key, value):
        return query

    place = "02a_soft_look_up"
    names = {exercise.name for exercise in engine.lessons()[place]}
    monkeypatch.setenv("JPY_SESSION_NAME", f"/home/ann/work/{place}.ipynb")
    said = check(my_attention).diagnosis
    guessed = re.findall(r'did you mean "(\w+)"|asks ([\w, ]+)', said)
    assert set(re.split(", ", "".join(guessed[0]))) <= names
    assert "this notebook asks" in repr(hint())


def test_a_prediction_that_is_reset_is_asked_by_its_card(fresh):
    card = checks.predict("plus_or_times")
    card.commit("b")
    assert "run its card in 02a_soft_look_up.ipynb once more" in repr(reset("plus_or_times"))
    assert checks.predict("plus_or_times").result is None
