"""What people write: parts, pages, evidence and exercises as text, and the notebooks that each describes."""

import pytest

from lesson_lib.cli import kinds, sources

LESSON = """\
# %% [markdown]
# # A lesson

# %%
x = 2

# %%
x = 2
"""
EXERCISE = """\
# %%
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION
    ### STUB: return None  # your code
"""


@pytest.fixture
def course(tmp_path):
    """A repository with one lesson and one exercise, as sources."""
    folder = tmp_path / "notebooks" / "source" / "exercises"
    folder.mkdir(parents=True)
    (folder.parent / "02_scoring.py").write_text(LESSON, encoding="utf-8")
    (folder / "02_scoring.py").write_text(EXERCISE, encoding="utf-8")
    return tmp_path


def test_ids_depend_on_the_cell_alone(course):
    (target,) = sources.targets(["02_scoring"], root=course)[:1]
    before = {cell.source: cell.id for cell in sources.read_source(target).cells}
    target.source.write_text("# %%\nfirst = 1\n\n" + LESSON, encoding="utf-8")
    after = {cell.source: cell.id for cell in sources.read_source(target).cells}
    assert all(after[source] == name for source, name in before.items())


@pytest.mark.parametrize(
    "text, fault",
    [
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n", "line 2"),
        ("x\n### END SOLUTION\n", "line 2"),
        ("### BEGIN SOLUTION\nx\n", "never closed"),
    ],
)
@pytest.mark.parametrize("solved", [True, False])
def test_a_region_that_is_not_paired_is_named(text, fault, solved):
    with pytest.raises(sources.BuildError, match=fault):
        sources.split_exercise(text, solved=solved)


def test_a_lesson_may_hold_no_solution(course):
    source = course / "notebooks" / "source" / "02_scoring.py"
    source.write_text(EXERCISE, encoding="utf-8")
    with pytest.raises(sources.BuildError, match="tag a cell of text exercise:NAME"):
        sources.read_source(sources.targets(root=course)[0])


def test_an_empty_source_is_named(course):
    source = course / "notebooks" / "source" / "02_scoring.py"
    source.write_text("\n", encoding="utf-8")
    with pytest.raises(sources.BuildError, match="has no cells"):
        sources.read_source(sources.targets(root=course)[0])


PARTS = [
    "00_start_here", "02_scoring", "02a_soft_look_up", "02b_which_score", "glossary",
    "evidence/02_scoring_evidence", "exercises/02_scoring", "solutions/02_scoring",
]  # fmt: skip


@pytest.fixture
def parts(course):
    """The course with two parts of chapter 02 beside the old lesson, evidence and two pages."""
    folder = course / "notebooks" / "source"
    (folder / "evidence").mkdir()
    for name in ("00_start_here", "02a_soft_look_up", "02b_which_score", "glossary"):
        (folder / f"{name}.py").write_text(LESSON, encoding="utf-8")
    (folder / "evidence" / "02_scoring_evidence.py").write_text(LESSON, encoding="utf-8")
    return course


def test_every_kind_is_known_and_in_the_courses_order(parts):
    found = sources.targets(root=parts)
    assert [target.name for target in found] == PARTS
    wanted = ["page", "part", "part", "part", "page", "evidence", "exercise", "solution"]
    assert [target.kind for target in found] == wanted
    assert [target.chapter for target in found] == ["00", "02", "02", "02", "", "02", "02", "02"]
    evidence = found[5]
    assert evidence.path == parts / "notebooks" / "evidence" / "02_scoring_evidence.ipynb"


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("02", PARTS[1:4] + PARTS[5:]),
        ("02a", ["02a_soft_look_up"]),
        ("02b_which_score", ["02b_which_score"]),
        ("02_scoring", ["02_scoring"]),
        ("source/02b_which_score.py", ["02b_which_score"]),
        ("solutions/02_scoring", ["solutions/02_scoring"]),
        ("02_scoring_evidence", ["evidence/02_scoring_evidence"]),
        ("evidence/02_scoring_evidence", ["evidence/02_scoring_evidence"]),
        ("notebooks/evidence/02_scoring_evidence.ipynb", ["evidence/02_scoring_evidence"]),
        ("glossary", ["glossary"]),
        ("00", ["00_start_here"]),
    ],
)
def test_a_chapter_a_part_and_a_page_are_chosen_by_name(parts, name, wanted):
    assert [target.name for target in sources.targets([name], root=parts)] == wanted


def test_some_kinds_alone_are_chosen_from(parts):
    """A lesson's full name is one notebook; asked of solutions alone, it is the chapter's."""
    for name in ("02", "02_scoring", "solutions/02_scoring"):
        found = sources.targets([name], root=parts, among=("solution",))
        assert [target.name for target in found] == ["solutions/02_scoring"]
    with pytest.raises(sources.BuildError, match=r"'02a'; there are solutions/02_scoring$"):
        sources.targets(["02a"], root=parts, among=("solution",))


def test_a_chapter_without_a_part_of_its_name_still_has_its_exercises(parts):
    (parts / "notebooks" / "source" / "02_scoring.py").unlink()
    found = sources.targets(["02_scoring"], root=parts)
    assert [target.name for target in found] == ["exercises/02_scoring", "solutions/02_scoring"]


def test_a_folder_of_no_kind_is_told():
    with pytest.raises(ValueError, match=r"'source/02_x' lies in no folder of notebooks; .*evidence"):
        kinds.kind_of("source/02_x")


@pytest.mark.parametrize("name", ["02c", "2", "02_", "a", "evidence", ""])
def test_a_name_that_fits_nothing_is_told_with_what_there_is(parts, name):
    with pytest.raises(sources.BuildError, match="02a_soft_look_up, 02b_which_score, glossary, evidence/02"):
        sources.targets([name], root=parts)


def test_a_notebook_of_any_kind_without_a_source_is_a_stray(parts):
    folder = parts / "notebooks"
    for name in ("02a_soft_look_up", "03a_gone", "evidence/03_gone_evidence", "solutions/03_gone"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.ipynb").write_text("{}", encoding="utf-8")
    gone = ["03a_gone", "evidence/03_gone_evidence", "solutions/03_gone"]
    assert sources.strays(parts) == [f"notebooks/{name}.ipynb" for name in gone]


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("02", ["02_scoring", "exercises/02_scoring", "solutions/02_scoring"]),
        ("02_scoring", ["02_scoring"]),
        ("exercises/02_scoring", ["exercises/02_scoring"]),
        ("notebooks/solutions/02_scoring.ipynb", ["solutions/02_scoring"]),
    ],
)
def test_names_choose_notebooks(course, name, wanted):
    assert [target.name for target in sources.targets([name], root=course)] == wanted
