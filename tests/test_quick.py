"""The quick run takes the tests of what changed."""

import subprocess

from tests import quick


def test_what_differs_from_main_and_what_is_new_has_changed(tmp_path):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    git("init", "-q", "-b", "main")
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-qm", "first")
    git("checkout", "-qb", "other")
    (tmp_path / "a.py").write_text("2\n", encoding="utf-8")
    git("commit", "-qam", "second")
    (tmp_path / "b.py").write_text("2\n", encoding="utf-8")
    (tmp_path / "d.py").write_text("1\n", encoding="utf-8")
    assert quick.changed(root=tmp_path) == ["a.py", "b.py", "d.py"]


def test_a_module_has_the_tests_that_import_it_and_a_wide_one_those_of_its_name():
    core = set(quick.tests_of([]))
    assert "tests/test_attention.py" in core and "tests/test_cli.py" not in core
    assert set(quick.tests_of(["lesson_lib/cli/outputs.py"])) - core >= {"tests/test_outputs.py"}
    assert set(quick.tests_of(["lesson_lib/attention.py"])) == core
    package = set(quick.tests_of(["lesson_lib/chapters/c09_truncated_attention/phonemes.py"])) - core
    assert package and all(name.startswith("tests/chapters/c09_truncated_attention/") for name in package)


def test_a_test_a_question_and_a_page_have_theirs():
    (one,) = set(quick.tests_of(["tests/test_room.py"])) - set(quick.tests_of([]))
    assert one == "tests/test_room.py"
    asked = quick.tests_of(["lesson_lib/chapters/c02_scoring/questions/02a_soft_look_up.md"])
    assert {"tests/test_questions.py", "tests/test_links.py"} <= set(asked)


def test_changed_notebooks_are_run():
    lines = quick.commands(["notebooks/03_matrix_form.ipynb", "notebooks/source/03_matrix_form.py"])
    (line,) = (line for name, line in lines.items() if name == "1 changed notebooks")
    assert "--nbval" in line and line[-1] == "notebooks/03_matrix_form.ipynb"
    assert len(quick.commands(["README.md"])) == 3
