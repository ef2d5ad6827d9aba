"""README and CONTRIBUTING say what is true: links, commands, alt texts, the table of notebooks."""

import re
from pathlib import Path

import pytest

from lesson_lib.cli import sources

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


def unlinked(page: str, targets: list[sources.Target]) -> list[str]:
    """Notebooks for learners that a page does not link."""
    return [t.name for t in targets if t.kind != "solution" and f"](notebooks/{t.name}.ipynb)" not in page]


def wrong_minutes(page: str, targets: list[sources.Target]) -> list[str]:
    """Parts and exercises whose minutes a page does not give: of a part in the second cell behind its link,
    of exercises inside the link."""
    wrong = []
    for target in (t for t in targets if t.kind in ("part", "exercise") or t.chapter == "00"):
        text, link = target.source.read_text(encoding="utf-8"), rf"\]\(notebooks/{target.name}\.ipynb\)"
        of_part = target.kind != "exercise"
        said = re.search(r"\*\*Time\*\* about (\d+) minutes" if of_part else r"about (\d+) minutes", text)
        if said is None:
            wrong.append(f"{target.name} does not say how long it is")
        elif not re.search(
            rf"{link} \|[^|]*\| {said[1]} \|" if of_part else rf", {said[1]} minutes{link}", page
        ):
            wrong.append(f"{target.name}: {said[1]} minutes")
    return wrong


def test_every_notebook_is_linked_with_its_minutes():
    page = read("README.md")
    assert unlinked(page, sources.targets()) == []
    assert wrong_minutes(page, sources.targets()) == []


TABLE = """| nr | part | question | minutes | exercises, evidence |
|---|---|---|---|---|
| 02a ● | [soft look-up](notebooks/02a_soft_look_up.ipynb) | how much? | 35 | [7, 50 minutes](notebooks/exercises/02_scoring.ipynb) |
| 02b ● | [which score](notebooks/02b_which_score.ipynb) | which? | 30 | [evidence](notebooks/evidence/02_scoring_evidence.ipynb) |
| 03 | [matrix form](notebooks/03_matrix_form.ipynb) | how? | 40 | |

Words: [glossary](notebooks/glossary.ipynb).
"""  # noqa: E501


@pytest.fixture
def course(tmp_path):
    """Sources of two chapters, a page among them."""
    says = {"02a_soft_look_up": 35, "02b_which_score": 30, "03_matrix_form": 40}
    texts = {name: f"**Time** about {minutes} minutes." for name, minutes in says.items()}
    texts |= {"exercises/02_scoring": "about 50 minutes", "evidence/02_scoring_evidence": "", "glossary": ""}
    for name, text in texts.items():
        path = tmp_path / "notebooks" / "source" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return sources.targets(root=tmp_path)


def test_a_table_of_parts_in_chapters_is_accepted(course):
    assert unlinked(TABLE, course) == [] == wrong_minutes(TABLE, course)


@pytest.mark.parametrize("target", range(6))
def test_a_notebook_of_any_kind_that_is_not_linked_is_named(course, target):
    name = course[target].name
    assert unlinked(TABLE.replace(f"notebooks/{name}.ipynb", "elsewhere"), course) == [name]


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("| 35 |", "| 36 |", "02a_soft_look_up: 35 minutes"),
        ("| how? | 40 |", "| how? | 30 |", "03_matrix_form: 40 minutes"),
        ("7, 50 minutes", "7, 45 minutes", "exercises/02_scoring: 50 minutes"),
    ],
)
def test_minutes_that_are_not_a_notebook_s_own_are_named(course, old, new, told):
    assert TABLE.count(old) == 1 and wrong_minutes(TABLE.replace(old, new), course) == [told]


def test_a_part_that_does_not_say_how_long_it_is_is_named(course):
    course[2].source.write_text("No minutes.", encoding="utf-8")
    assert wrong_minutes(TABLE, course) == ["03_matrix_form does not say how long it is"]


def test_contributing_is_short():
    assert len(read("CONTRIBUTING.md").splitlines()) <= 80


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
