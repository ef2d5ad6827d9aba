"""README, docs and CONTRIBUTING say what is true: links, commands, alt texts, the lists of lessons."""

import re
from pathlib import Path

import pytest

from lesson_lib.cli import course, kinds, sources

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "docs/install.md", "docs/further.md", "docs/lessons.md"]


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


def test_every_notebook_for_learners_is_linked():
    pages = read("docs/lessons.md") + read("README.md").replace("](notebooks/", "](../notebooks/")
    names = [t.name for t in sources.targets() if t.kind in kinds.LEARNERS]
    assert [name for name in names if f"](../notebooks/{name}.ipynb)" not in pages] == []


def test_the_lists_are_what_course_toml_gives():
    assert [path for path, text in course.lists().items() if path.read_text("utf-8") != text] == []


def test_readme_is_a_screen_and_a_half():
    assert len(read("README.md").encode()) <= 5500


def test_contributing_is_short():
    assert len(read("CONTRIBUTING.md").splitlines()) <= 90


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
