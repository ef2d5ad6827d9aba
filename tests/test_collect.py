"""What a class server's students have handed in: taken over once, with its time; links are not followed."""

import json
import os

import pytest

from lesson_lib.cli import collect
from lesson_lib.cli.sync_copies import hand_out

NAME = "03_matrix_form"


def notebook(text):
    return json.dumps({"cells": [{"cell_type": "code", "source": text, "outputs": [], "metadata": {}}]})


@pytest.fixture
def place(tmp_path):
    """A folder of homes and one of assignments, with one released."""
    for name in (NAME, "04_multi_head"):
        release = tmp_path / "course" / "release" / name / f"{name}.ipynb"
        release.parent.mkdir(parents=True)
        release.write_text(notebook(f"{name} = ..."), "utf-8")
    (tmp_path / "homes").mkdir()
    return tmp_path


def write(place, student, text, name=NAME):
    path = place / "homes" / student / "work" / "assignments" / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("{") else notebook(text), "utf-8")
    return path


def taken(place, *names):
    return collect.main(names, homes=place / "homes", to=place / "course")


def test_what_was_begun_is_collected_with_its_time_and_replaced_when_it_is_newer(place, capsys):
    path = write(place, "ada", "x = 1")
    os.utime(path, (1.8e9, 1.8e9))
    write(place, "ben", f"{NAME} = ...")
    (place / "homes" / "cy").mkdir()
    assert taken(place, NAME) == 0
    said = capsys.readouterr().out
    assert said == f"{NAME}: collected: 1 (ada); not begun: 1 (ben); nothing there: 1 (cy)\n"
    folder = place / "course" / "submitted" / "ada" / NAME
    assert (folder / f"{NAME}.ipynb").read_bytes() == path.read_bytes()
    assert (folder / "timestamp.txt").read_text() == "2027-01-15 08:00:00 UTC\n"
    assert not (place / "course" / "submitted" / "ben").exists()
    assert (place / "course" / "submitted").stat().st_mode & 0o077 == 0
    assert taken(place, "03") == 0 and "as before: 1 (ada)" in capsys.readouterr().out
    write(place, "ada", "x = 2")
    assert taken(place) == 0
    said = capsys.readouterr().out
    assert "newer than before: 1 (ada)" in said and "04_multi_head: nothing there: 3 (ada, ben, cy)" in said
    assert "x = 2" in (folder / f"{NAME}.ipynb").read_text("utf-8")


def test_no_link_leads_to_what_only_the_instructor_may_read(place, capsys):
    secret = place / "seed.txt"
    secret.write_text("8675309", "utf-8")
    path = write(place, "eve", "x")
    path.unlink()
    path.symlink_to(secret)
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{NAME}.ipynb").write_text("8675309", "utf-8")
    (place / "homes" / "flo" / "work").mkdir(parents=True)
    (place / "homes" / "flo" / "work" / "assignments").symlink_to(elsewhere)
    (place / "homes" / "gus").symlink_to(place / "homes" / "eve")
    fifo = write(place, "hal", "x")
    fifo.unlink()
    os.mkfifo(fifo)
    assert taken(place, NAME) == 0
    said = capsys.readouterr().out
    assert "collected" not in said and said.count("not taken") >= 2 and "gus" not in said
    assert not (place / "course" / "submitted").exists()


def test_what_is_missing_is_told(place, capsys):
    assert taken(place, "99") == 1
    assert (
        f"no released assignment is called '99'; there are {NAME}, 04_multi_head" in capsys.readouterr().out
    )
    assert collect.main(homes=place / "none", to=place / "course") == 1
    assert "give that of the class server's homes" in capsys.readouterr().out
    assert collect.main(homes=place / "homes", to=place / "none") == 1
    assert "make assignments first" in capsys.readouterr().out
    assert taken(place, NAME) == 0 and "nobody has a home yet" in capsys.readouterr().out


def test_a_student_gets_an_assignment_once_and_keeps_what_was_done_with_it(place):
    original, work = place / "original", place / "work"
    work.mkdir()
    assert hand_out(original, work) == [] and not (work / "assignments").exists()
    (original / "assignments").mkdir(parents=True)
    (original / "assignments" / f"{NAME}.ipynb").write_text("one", "utf-8")
    assert hand_out(original, work) == [f"{NAME}.ipynb"]
    copy = work / "assignments" / f"{NAME}.ipynb"
    copy.write_text("mine", "utf-8")
    (original / "assignments" / f"{NAME}.ipynb").write_text("two", "utf-8")
    assert hand_out(original, work) == [] and copy.read_text("utf-8") == "mine"
