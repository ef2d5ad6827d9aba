"""What people write: lessons and exercises as text, and the notebooks that each of them describes."""

import pytest

from lesson_lib.cli import sources

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


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("02", ["02_scoring", "exercises/02_scoring", "solutions/02_scoring"]),
        ("02_scoring", ["02_scoring", "exercises/02_scoring", "solutions/02_scoring"]),
        ("exercises/02_scoring", ["exercises/02_scoring"]),
        ("notebooks/solutions/02_scoring.ipynb", ["solutions/02_scoring"]),
    ],
)
def test_names_choose_notebooks(course, name, wanted):
    assert [target.name for target in sources.targets([name], root=course)] == wanted
