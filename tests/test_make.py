"""make says what there is to say before it installs anything, and what a learner needs before the rest."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="README's way without make is another")


@pytest.fixture
def clone(tmp_path):
    """A repository without .venv; a Python that knows no package but the standard library's."""
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "course.toml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "lesson_lib" / "cli", tmp_path / "lesson_lib" / "cli")
    for name in ("__init__", "__main__", "desk", "places"):
        shutil.copyfile(ROOT / "lesson_lib" / f"{name}.py", tmp_path / "lesson_lib" / f"{name}.py")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_start_here.ipynb").write_text('{"cells": []}', encoding="utf-8")
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\n[ "$2" = venv ] && exit 3\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    return tmp_path


def make(clone, *words):
    return subprocess.run(
        ["make", *words, f"PYTHON={clone / 'bare'}"], cwd=clone, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("words", ["lab --help", "lab 02a -h", "capstone --help"])
def test_help_installs_nothing(clone, words):
    command, _, arguments = words.partition(" ")
    done = make(clone, command, f"ARGS={arguments}")
    assert done.returncode == 0 and f"usage: python -m lesson_lib {command}" in done.stdout, done
    assert "Making" not in done.stdout and not (clone / ".venv").exists()


def test_copies_are_made_without_an_installation(clone):
    done = make(clone, "lab", "ARGS=--copy-only")
    assert done.returncode == 0 and "1 new" in done.stdout, done
    assert (clone / "work" / "00_start_here.ipynb").exists() and not (clone / ".venv").exists()


def test_what_runs_is_installed_first(clone):
    done = make(clone, "lab")
    assert done.returncode != 0 and "Making .venv ..." in done.stdout, done


def test_make_help_sets_a_learner_s_commands_apart(clone):
    first, rest = make(clone).stdout.split("The rest:")
    assert [line.split()[1] for line in first.splitlines() if line.startswith("  make ")] == [
        "lab", "capstone", "doctor", "ring",
    ]  # fmt: skip
    assert "make test " in rest and "make slides " in rest and "PYTHON=" in rest
