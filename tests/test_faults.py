"""The list of planted faults fits the files and the tests as they are, and a fault that no test sees is
reported."""

import ast
import json
import re
import sys
import tomllib
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


def test_a_fault_can_be_planted_and_is_no_broken_file():
    readers = {".py": ast.parse, ".ipynb": json.loads, ".toml": tomllib.loads}
    for fault in LISTED.values():
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        changed = faults.planted(fault, text)
        assert changed != text, fault.name
        readers.get(Path(fault.file).suffix, str)(changed)


def test_its_tests_exist_and_its_part_runs_them():
    for fault in LISTED.values():
        assert fault.tests and unknown_tests(fault) == [], fault.name
        assert all(runs(fault.part, test.partition("::")[0]) for test in fault.tests), fault.name


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


@pytest.mark.parametrize("text, count", [("return x + x\n", 0), ("2 * x\n2 * x\n", 2)])
def test_a_text_that_does_not_stand_there_once_is_a_sentence(tree, text, count):
    (tree / "sums.py").write_text(text)
    with pytest.raises(ValueError, match=f"stands {count} times in sums.py, not once; whoever rewrites"):
        faults.plant(SMALL, tree)


@POSIX
def test_a_fault_is_seen_or_not_or_has_no_verdict(tree, capsys):
    assert faults.main([], root=tree) == 1
    said = capsys.readouterr().out
    for row in (r"triple +unit +seen ", r"turned +unit +NOT SEEN ", r"nothing +unit +NO VERDICT "):
        assert re.search(rf"^{row}", said, re.M), said
    assert "1 of 3 seen" in said and "proposal: None is needed." in said
    assert "2 * x" in (tree / "sums.py").read_text()  # planted in a copy
