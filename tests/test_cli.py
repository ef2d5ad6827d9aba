"""The command line: each command reaches its module, and `lab` does not wait for torch."""

import argparse
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from lesson_lib import cli
from lesson_lib.checks import engine

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("arguments", [[], ["dance"], ["lab", "--port", "ten"]])
def test_a_wrong_command_is_told_the_right_ones(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2 and "usage: python -m lesson_lib" in capsys.readouterr().err


def test_lab_passes_its_options(monkeypatch):
    seen = {}
    monkeypatch.setattr("lesson_lib.cli.lab.main", lambda **options: seen.update(options) or 0)
    assert cli.main(["lab", "--port", "8123", "--no-browser"]) == 0
    assert seen == {"first": None, "port": 8123, "browser": False, "copy_only": False, "to": None}
    assert cli.main(["lab", "sources"]) == 0 and seen["first"] == "sources"


def test_build_builds_or_checks(monkeypatch):
    seen = []
    monkeypatch.setattr("lesson_lib.cli.build.main", lambda **options: seen.append(options) or 0)
    assert cli.main(["build", "02_scoring", "--fresh"]) == cli.main(["build", "--check"]) == 0
    assert seen[0] == {"names": ["02_scoring"], "fresh": True, "checks": False}
    assert seen[1] == {"names": [], "fresh": False, "checks": True}


def test_doctor_figures_and_experiments_reach_their_modules(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr("lesson_lib.cli.doctor.main", lambda: 1)
    monkeypatch.setattr("lesson_lib.cli.figures.write_all", lambda folder: seen.append(folder))
    monkeypatch.setattr("lesson_lib.experiments.main", lambda chosen: seen.append(chosen) or 0)
    assert cli.main(["doctor"]) == 1
    assert cli.main(["figures", "--to", str(tmp_path)]) == 0
    assert cli.main(["experiments", "look_up"]) == 0
    assert seen == [tmp_path, ["look_up"]]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_what_a_command_declares_is_what_it_takes(command):
    module = import_module(cli.ELSEWHERE.get(command, f"lesson_lib.cli.{command}"))
    parser = argparse.ArgumentParser()
    module.options(parser)
    declared = {action.dest for action in parser._actions} - {"help"}
    assert declared <= inspect.signature(module.main).parameters.keys()


@pytest.mark.parametrize(
    "name", ["padding_share", "score_by_hand", "soft_look_up", "stable_weights_2", "why_the_root"]
)
def test_a_question_is_shown_to_its_author(name, capsys, tmp_path):
    assert cli.main(["ask", name, "--html", str(tmp_path / "ask.html")]) == 0
    page, text = (tmp_path / "ask.html").read_text(encoding="utf-8"), capsys.readouterr().out
    exercise = engine.find(name)[0]
    assert exercise.asked[:40] in text and all(hint[:40] in text for hint in exercise.hints)
    assert all(slip[:40] in text for slip in exercise.slips) and f"data-question='{name}'" in page
    assert "questions/" in text


def test_a_question_that_is_not_there(capsys):
    assert (
        cli.main(["ask", "paddin_share"]) == 1 and 'did you mean "padding_share"' in capsys.readouterr().out
    )


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("lesson_lib.cli.doctor.main", interrupted)
    assert cli.main(["doctor"]) == 130
    assert "Stopped." in capsys.readouterr().out


def test_lab_starts_without_torch():
    code = (
        "import sys; from lesson_lib.cli import lab; sys.exit('torch' in sys.modules or 'numpy' in"
        " sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_python_m_lesson_lib_works():
    done = subprocess.run(
        [sys.executable, "-m", "lesson_lib", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and "doctor" in done.stdout and "lab" in done.stdout
