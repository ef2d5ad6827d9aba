"""Where the course lies, and what one types there: in a clone, and installed as a package."""

import pytest

from lesson_lib import places


def test_in_a_clone_work_lies_in_it_and_one_types_make():
    assert places.IS_CLONE and places.work() == places.ROOT / "work"
    assert places.command("lab") == "make lab"
    assert places.command("capstone", "--stage 1") == "make capstone ARGS='--stage 1'"


@pytest.mark.parametrize("arguments, typed", [("", "lesson_lib lab"), ("02a", "lesson_lib lab 02a")])
def test_of_a_package_work_lies_in_the_folder_at_hand(arguments, typed, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "IS_CLONE", False)
    assert places.work(places._INSIDE) == tmp_path / "work" and places.command("lab", arguments) == typed
