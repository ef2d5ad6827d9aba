"""The wheel, outside of the repository: it holds the lessons, and its command gives the copies."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lesson_lib.cli import lab

pytest.importorskip("hatchling", reason="a GPU machine makes no wheel")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """What pip unpacks of the wheel."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "source").mkdir()
    for name in ("lesson_lib", "notebooks", "course.toml", "pyproject.toml", "README.md"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / "source" / name)
    for name in ("LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / name, folder / "source")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=folder / "source", check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("lesson_lib-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "installed")
    assert wheel.stat().st_size < 20 * 2**20
    return folder / "installed"


def command(installed: Path, here: Path, *words: str) -> subprocess.CompletedProcess:
    """`lesson_lib` with these words, in the folder `here`."""
    return subprocess.run(
        [sys.executable, "-m", "lesson_lib", *words], cwd=here, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(installed)}, timeout=120,
    )  # fmt: skip


def test_it_holds_every_file_of_the_library_and_each_notebook(installed):
    for here, there in (("lesson_lib", "lesson_lib"), ("notebooks", "lesson_lib/_course/notebooks")):
        files = [path.relative_to(ROOT / here) for path in (ROOT / here).rglob("*") if path.is_file()]
        ours = [path for path in files if not any(name.startswith((".", "__pyc")) for name in path.parts)]
        assert len(ours) > 100 and [path for path in ours if not (installed / there / path).is_file()] == []


def test_its_command_gives_the_copies_in_the_folder_at_hand(installed, tmp_path):
    done = command(installed, tmp_path, "lab", "--copy-only")
    said = f"work/ holds your copies ({len(lab.lessons())} new"
    assert done.returncode == 0 and done.stdout.startswith(said), done
    assert all((tmp_path / "work" / name).exists() for name in lab.lessons())


def test_a_claim_leads_to_its_cell_and_a_question_is_asked(installed, tmp_path):
    code = "import lesson_lib; from lesson_lib import claims; from lesson_lib.checks import check\n"
    code += "print(lesson_lib.__file__, claims.address('graph-2'), check(2.0, 'weighted_sum'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(installed), "LESSON_HOME": str(tmp_path)}, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and str(installed) in done.stdout and "cell-id=" in done.stdout, done
    assert "weighted_sum" in done.stdout


def test_it_offers_what_works_without_the_repository(installed, tmp_path):
    done = command(installed, tmp_path, "--help")
    assert done.returncode == 0 and "capstone" in done.stdout and "assignments" not in done.stdout
    assert "lesson_lib capstone --stage 1" in command(installed, tmp_path, "capstone").stdout
    assert (tmp_path / "work" / "capstone.py").exists()
