"""README and CONTRIBUTING say what is true: links, commands, alt texts, the table of lessons."""

import re
from pathlib import Path

import pytest

from lesson_lib.cli import preflight, sources

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_pictures_have_alt_text():
    alts = re.findall(r"!\[([^\]]*)\]\(", read("README.md"))
    assert alts and all(len(alt) > 40 for alt in alts)


@pytest.mark.parametrize("page", PAGES)
def test_the_make_targets_that_are_named_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.M))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", read(page), flags=re.M))
    assert named and named <= targets


def test_every_lesson_is_in_the_table():
    page = read("README.md")
    assert [
        t.name for t in sources.targets() if t.solved is None and f"](notebooks/{t.name}.ipynb)" not in page
    ] == []
    assert [
        t.name for t in sources.targets() if t.solved is False and f"](notebooks/{t.name}.ipynb)" not in page
    ] == []


def test_minutes_and_exercises_are_those_of_the_lessons():
    page = read("README.md")
    for target in sources.targets():
        text = target.source.read_text(encoding="utf-8")
        if target.solved is None:
            minutes = re.search(r"\*\*Time\*\* about (\d+) minutes", text).group(1)
            assert re.search(rf"\]\(notebooks/{target.name}\.ipynb\) \|[^|]*\| {minutes} \|", page), (
                f"{target.name}: {minutes} minutes"
            )
        elif target.solved is False:
            minutes = re.search(r"about (\d+) minutes", text).group(1)
            assert re.search(rf", {minutes} minutes\]\(notebooks/{target.name}\.ipynb\)", page), (
                f"{target.name}: {minutes} minutes"
            )


def test_contributing_is_short():
    assert len(read("CONTRIBUTING.md").splitlines()) <= 55


def test_the_torch_that_is_named_is_the_pinned_one():
    assert f"torch=={preflight.pinned_torch()}" in read("README.md")


def test_every_make_target_is_explained_by_make_help():
    targets = re.findall(r"^([a-z-]+):(.*)", read("Makefile"), flags=re.M)
    silent = {name for name, rest in targets if "## " not in rest} - {"setup-test", "browser"}
    assert silent == set()


def test_text_files_have_unix_line_ends_and_utf8():
    names = [
        p
        for d in ("lesson_lib", "tests", "notebooks")
        for p in (ROOT / d).rglob("*")
        if p.suffix in {".py", ".ipynb", ".toml", ".json"}
    ]
    assert [str(p) for p in names if b"\r\n" in p.read_bytes()] == []
    for path in names:
        path.read_text(encoding="utf-8")
