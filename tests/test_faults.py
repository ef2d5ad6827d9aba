"""The list of planted faults fits the files and the tests as they are, and a fault that no test sees is
reported."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests import parts
from tools import faults

ROOT = faults.ROOT
LISTED = {fault.name: fault for fault in faults.listed()}
POSIX = pytest.mark.skipif(
    sys.platform == "win32", reason="links and process groups are those of Linux and macOS"
)


def unknown_tests(fault, root=ROOT):
    """What a fault names and is not there: files, functions, and words that choose among tests."""
    text, found = "", []
    for test in fault.tests:
        path, _, function = test.partition("::")
        files = sorted((root / path).rglob("*.py")) if (root / path).is_dir() else [root / path]
        if not all(file.exists() for file in files):
            found.append(path)
            continue
        here = "\n".join(file.read_text(encoding="utf-8") for file in files)
        text += here
        if function and f"def {function}(" not in here:
            found.append(test)
    names = re.findall(r"def (test_\w+)\(", text) + [p.stem for p in (root / "notebooks").glob("*.ipynb")]
    words = set(re.findall(r"\w+", fault.only)) - {"and", "or", "not"}
    return found + sorted(word for word in words if not any(word in name for name in names))


def runs(part, path, root=ROOT):
    """Whether that part of the whole run holds a file or folder of tests."""
    places = [word for word in parts.PARTS[part][1] if (root / word).exists()] or ["tests", "lesson_lib"]
    return any(Path(path).is_relative_to(place) for place in places)


def test_there_are_enough_over_all_parts():
    counts = Counter(fault.part for fault in LISTED.values())
    assert counts.total() >= 40 and counts.keys() == parts.PARTS.keys()
    assert min(counts.values()) >= 2


@pytest.mark.parametrize("name", LISTED)
def test_a_fault_can_be_planted_and_is_no_broken_file(name):
    fault = LISTED[name]
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    changed = faults.planted(fault, text)
    assert changed != text
    {".py": ast.parse, ".ipynb": json.loads, ".toml": tomllib.loads}.get(Path(fault.file).suffix, str)(
        changed
    )


@pytest.mark.parametrize("name", LISTED)
def test_its_tests_exist_and_its_part_runs_them(name):
    fault = LISTED[name]
    assert fault.tests and unknown_tests(fault) == []
    assert all(runs(fault.part, test.partition("::")[0]) for test in fault.tests)
    assert all(text.endswith(".") for text in (fault.what, fault.proposal or "None."))


def test_tests_that_are_not_there_are_named(tmp_path):
    (tmp_path / "test_x.py").write_text("def test_one():\n    pass\n")
    fault = replace(
        SMALL, tests=("test_x.py::test_one", "test_x.py::test_two", "test_y.py"), only="one and three"
    )
    assert unknown_tests(fault, tmp_path) == ["test_x.py::test_two", "test_y.py", "three"]
    assert not runs("browser", "tests/test_masks.py") and runs("unit", "tests/test_masks.py")


# The tool, on a small tree

SMALL = faults.Fault(
    name="triple", part="unit", what="It triples.", file="sums.py", old="2 * x", new="3 * x",
    tests=("test_sums.py::test_double",)
)  # fmt: skip
UNSEEN = replace(SMALL, name="turned", new="x * 2", proposal="None is needed.")
NO_TEST = replace(SMALL, name="nothing", only="zero")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A function, its test, and three faults: seen, not seen, and one without a test."""
    (tmp_path / "sums.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "test_sums.py").write_text(
        "from sums import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
    )
    monkeypatch.setattr(faults, "tracked", lambda root: ["sums.py", "test_sums.py"])
    monkeypatch.setattr(faults, "listed", lambda: [SMALL, UNSEEN, NO_TEST])
    return tmp_path


def test_planting_changes_the_file_as_said_and_nothing_else(tree):
    faults.plant(SMALL, tree)
    assert (tree / "sums.py").read_text() == "def double(x):\n    return 3 * x\n"
    assert sorted(path.name for path in tree.iterdir()) == ["sums.py", "test_sums.py"]


@pytest.mark.parametrize("text, count", [("return x + x\n", 0), ("2 * x\n2 * x\n", 2)])
def test_a_text_that_does_not_stand_there_once_is_a_sentence(tree, text, count):
    (tree / "sums.py").write_text(text)
    with pytest.raises(ValueError, match=f"stands {count} times in sums.py, not once; whoever rewrites"):
        faults.plant(SMALL, tree)
    assert (tree / "sums.py").read_text() == text


@POSIX
def test_a_fault_that_is_seen_ends_with_0(tree, capsys):
    assert faults.main(["triple", "--json", str(tree / "rows.json")], root=tree) == 0
    assert "1 of 1 seen" in capsys.readouterr().out
    (row,) = json.loads((tree / "rows.json").read_text())
    assert (row["names"], row["found"], row["failed"]) == (["triple"], "seen", ["test_sums.py::test_double"])
    assert "2 * x" in (tree / "sums.py").read_text()  # planted in a copy


@POSIX
@pytest.mark.parametrize("name, found", [("turned", "NOT SEEN"), ("nothing", "NO VERDICT")])
def test_a_fault_that_is_not_seen_is_said_and_ends_with_1(tree, capsys, name, found):
    assert faults.main([name], root=tree) == 1
    said = capsys.readouterr().out
    assert re.search(rf"^{name} +unit +{found} ", said, re.M) and "0 of 1 seen" in said
    assert ("proposal: None is needed." in said) == (name == "turned")


@POSIX
@pytest.mark.parametrize("right, code, found", [("2 * x", 0, "green"), ("2 * x + 1", 1, "RED")])
def test_without_a_fault_each_test_runs_once_and_must_be_green(tree, capsys, monkeypatch, right, code, found):
    (tree / "sums.py").write_text(f"def double(x):\n    return {right}\n")
    monkeypatch.setattr(faults, "listed", lambda: [SMALL, UNSEEN])
    assert faults.main(["--clean"], root=tree) == code
    said = capsys.readouterr().out
    assert re.findall(r"^(\w+) +unit +(\w+)", said, re.M) == [("triple", found), ("turned", found)]
    assert f"{1 - code} of 1 green" in said


@POSIX
def test_a_whole_run_is_any_words_of_python(tree, capsys):
    assert faults.main(["triple", "--whole", "-m pytest -q -rf"], root=tree) == 0
    assert re.search(r"^triple +unit +seen .*test_sums.py::test_double$", capsys.readouterr().out, re.M)


@POSIX
def test_a_whole_run_does_not_see_a_fault_by_its_text(tree, capsys, monkeypatch):
    """This file finds that the text of each fault stands where it should: of a planted one it does not."""
    (tree / "tests").mkdir()
    (tree / "test_sums.py").rename(tree / "tests" / "test_faults.py")
    monkeypatch.setattr(faults, "tracked", lambda root: ["sums.py", "tests/test_faults.py"])
    faults.main(["triple", "--whole", "-m pytest -q -rf"], root=tree)
    assert re.search(r"^triple +unit +NO VERDICT", capsys.readouterr().out, re.M)


@POSIX
def test_a_run_without_an_end_is_ended(tmp_path):
    ran = faults.run([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, 0.5)
    assert ran.code is None and ran.seconds < 30 and faults.verdict(ran) == "NO VERDICT"


@POSIX
@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="this Python stands in no environment of its own")
def test_the_copys_library_comes_before_the_installed_one(tmp_path):
    """For `python -I` too, as a class server starts its students' processes: it looks at no variable, and not
    into its folder."""
    (tmp_path / "lesson_lib").mkdir()
    (tmp_path / "lesson_lib" / "__init__.py").write_text("PLANTED = True\n")
    faults.link_environment(Path(sys.prefix), tmp_path / ".venv", tmp_path)
    words = ["-I", "-c", "import lesson_lib, pytest, sys; print(lesson_lib.PLANTED, sys.prefix)"]
    done = subprocess.run([faults.python(tmp_path, "unit"), *words], capture_output=True, text=True)
    assert done.stdout.split() == ["True", str(tmp_path / ".venv")], done.stderr


def test_the_tracked_files_are_copied_and_nothing_else():
    try:
        names = faults.tracked(ROOT)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("these files stand in no git repository")
    assert "tests/parts.py" in names and not any(name.startswith(".venv") for name in names)


def test_an_unknown_name_is_a_sentence(tree, capsys):
    assert faults.main(["tripel"], root=tree) == 1
    assert "no fault is called 'tripel'" in capsys.readouterr().out


def test_a_draw_is_repeated_by_its_seed_and_takes_none_twice():
    drawn = [[fault.name for fault in faults.chosen([], None, 5, seed)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2] and len(set(drawn[0])) == 5
    assert {fault.part for fault in faults.chosen([], "class", None, 0)} == {"class"}


def test_the_list_is_printed_and_nothing_runs(tree, capsys, monkeypatch):
    monkeypatch.setattr(faults, "run", None)
    assert faults.main(["--list"], root=tree) == 0
    assert capsys.readouterr().out.startswith("triple ")
