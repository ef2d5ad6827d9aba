"""Nothing of the first edition is lost: each of its claims, systems, exercises, ... has a place that exists,
or a reason in its stead."""

import tomllib
from functools import cache
from pathlib import Path

import pytest

from lesson_lib.checks.engine import exercises

EXERCISES = exercises()

ROOT = Path(__file__).resolve().parents[1]
FROZEN = tomllib.loads((ROOT / "tests" / "first_edition.toml").read_text(encoding="utf-8"))
COUNTS = {
    "claims": 95, "systems": 27, "experiments": 26, "widgets": 20, "exercises": 85, "prompts": 205,
    "misconceptions": 91,
}  # fmt: skip
SLIPS = 905
WORDS = 5  # of a reason, at least


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def place(entry) -> str:
    """FILE::TEXT, or 'gone: REASON'."""
    return entry["at"] if isinstance(entry, dict) else entry


def lost(said: str, root: Path = ROOT) -> str | None:
    """A sentence where a place does not exist, or a reason is none."""
    if said.startswith("gone:"):
        return None if len(said.split()) > WORDS else f"{said!r} is no reason: say in words what became of it"
    file, parted, part = said.partition("::")
    if not parted or not part:
        return f"{said!r} is no place; FILE::TEXT is, or 'gone: REASON'"
    if not (root / file).is_file():
        return f"{file} does not exist"
    return None if part in text(root / file) else f"{part!r} does not stand in {file}"


def test_all_of_it_is_listed():
    assert {kind: len(entries) for kind, entries in FROZEN.items()} == COUNTS
    assert sum(entry["slips"] for entry in FROZEN["exercises"].values()) == SLIPS


@pytest.mark.parametrize("kind", FROZEN)
def test_everything_has_a_place_or_a_reason(kind):
    found = {name: lost(place(entry)) for name, entry in FROZEN[kind].items()}
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize("kind", FROZEN)
def test_no_two_share_a_place(kind):
    places = [place(entry) for entry in FROZEN[kind].values() if not place(entry).startswith("gone:")]
    assert len(set(places)) == len(places)


def test_no_exercise_has_lost_a_slip():
    """An exercise that is gone took them along; `slips` counts what the first edition had."""
    fewer = {
        name: len(EXERCISES[name].slips)
        for name, entry in FROZEN["exercises"].items()
        if not place(entry).startswith("gone:") and len(EXERCISES[name].slips) < entry["slips"]
    }
    assert fewer == {}


@pytest.mark.parametrize(
    "said, sentence",
    [
        ("a.txt::a word", None),
        ("a.txt::another", "'another' does not stand in a.txt"),
        ("b.txt::a word", "b.txt does not exist"),
        ("a.txt", "'a.txt' is no place"),
        ("a.txt::", "'a.txt::' is no place"),
        ("gone: no", "'gone: no' is no reason"),
        ("gone: part 06c shows it better, with a beam", None),
    ],
)
def test_what_is_lost_is_said(tmp_path, said, sentence):
    (tmp_path / "a.txt").write_text("here stands a word\n", encoding="utf-8")
    found = lost(said, tmp_path)
    assert found is None if sentence is None else sentence in found
