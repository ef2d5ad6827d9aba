"""The house stands: import-linter holds the contracts of pyproject.toml; the rest is held here."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from lesson_lib.cli import sources

grimp = pytest.importorskip("grimp", reason="a GPU machine has no import-linter")
ROOT = sources.ROOT
HOUSE = ROOT / "lesson_lib"
CHAPTERS = sorted(path.parent.name for path in HOUSE.glob("chapters/*/__init__.py"))


def lint(folder: Path) -> tuple[int, str]:
    """What import-linter says of the lesson_lib in a folder, by our contracts."""
    code = "import sys; from importlinter import cli; sys.exit(cli.lint_imports(sys.argv[1], no_cache=True))"
    words = [sys.executable, "-c", code, str(ROOT / "pyproject.toml")]
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(words, cwd=folder, env=environment, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_are_kept():
    code, told = lint(ROOT)
    assert code == 0 and "3 kept, 0 broken" in told, told


@pytest.mark.parametrize(
    "file, line, contract",
    [
        ("masks.py", "from lesson_lib import cli", "floors"),
        ("heads.py", "def late():\n    from . import norms", "floors"),
        ("attic.py", "", "floors"),
        (
            "chapters/c02_scoring/figures.py",
            "from lesson_lib.chapters.c03_matrix_form import figures",
            "chapter",
        ),
        ("charts/basic.py", "from lesson_lib.charts import devices", "circle"),
    ],
    ids=["up", "sideways, lazy and relative", "no floor", "between chapters", "a circle"],
)
def test_a_wrong_import_is_seen(tmp_path, file, line, contract):
    shutil.copytree(HOUSE, tmp_path / "lesson_lib", ignore=lambda folder, names: left_out(folder, names))
    with open(tmp_path / "lesson_lib" / file, "a", encoding="utf-8") as added:
        added.write(f"\n{line}\n")
    code, told = lint(tmp_path)
    assert code == 1, told
    assert re.search(rf"{contract}.* BROKEN", told), told


def left_out(folder: str, names: list[str]) -> list[str]:
    """All but Python files and the folders that hold them."""
    return [n for n in names if not (n.endswith(".py") or (Path(folder, n).is_dir() and n != "__pycache__"))]


@cache
def graph():
    """Who imports whom."""
    return grimp.build_graph("lesson_lib", cache_dir=None)


def of_notebooks(chapter: str, root: Path = ROOT) -> set[str]:
    """The modules that the notebooks of a chapter import."""
    found: set[str] = set()
    for path in {t.source for t in sources.targets(root=root) if t.chapter == chapter[1:3]}:
        text = path.read_text(encoding="utf-8")
        for module, names in re.findall(r"^from (lesson_lib[\w.]*) import (\([^)]*\)|.*)", text, re.M):
            held = [f"{module}.{name}" for name in re.findall(r"\w+", names)]
            found |= {name if name in graph().modules else module for name in held}
    return found & graph().modules


def serves(chapter: str) -> set[str]:
    """All modules that a chapter needs, for itself or for its notebooks."""
    whole = graph().find_upstream_modules(f"lesson_lib.chapters.{chapter}", as_package=True)
    for module in of_notebooks(chapter):
        whole = whole | {module} | graph().find_upstream_modules(module)
    return whole


def test_what_is_shared_serves_several_chapters():
    """A module of one chapter lies in its folder; those that no chapter names serve the shared ones."""
    needed = {chapter: serves(chapter) for chapter in CHAPTERS}
    for room in ("charts", "widgets", "data", "models", "experiments"):
        for path in (HOUSE / room).glob("[!_]*.py"):
            module = f"lesson_lib.{room}.{path.stem}"
            chapters = [chapter for chapter, modules in needed.items() if module in modules]
            assert len(chapters) != 1, f"{module} serves {chapters[0]} alone: put it there"


def test_a_chapter_uses_what_any_of_its_notebooks_imports(tmp_path):
    for name, module in (("02a_soft_look_up", "ring"), ("evidence/02_scoring_evidence", "recurrent")):
        path = tmp_path / "notebooks" / "source" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"from lesson_lib import {module}\n", encoding="utf-8")
    (tmp_path / "notebooks/source/03_matrix_form.py").write_text("from lesson_lib import truncated\n")
    assert of_notebooks("c02_scoring", tmp_path) == {"lesson_lib.ring", "lesson_lib.recurrent"}


def test_chapters_are_found_by_the_engine_when_an_exercise_is_asked_for_and_not_before():
    code = (
        "import sys, lesson_lib.checks as checks\n"
        "loaded = lambda: sorted(name for name in sys.modules if '.chapters.' in name)\n"
        "assert loaded() == [], loaded()\n"
        "checks.check(5, 'weighted_sum')\n"
        "assert 'lesson_lib.chapters.c11_efficient_attention.questions.exercises' in loaded()\n"
    )
    # on whatever this machine computes: a simulated device is not there in another process
    inherited = {name: value for name, value in os.environ.items() if name != "LESSON_DEVICE"}
    subprocess.run([sys.executable, "-c", code], check=True, env=inherited | {"LESSON_HOME": os.devnull})


def test_every_package_has_an_init():
    folders = {path.parent for path in HOUSE.rglob("*.py")}
    assert [folder.name for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
