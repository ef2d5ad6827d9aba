"""course.toml, and a new part made from nothing but a number and a name."""

import shutil

import pytest

from lesson_lib import cli
from lesson_lib.checks import engine, questions
from lesson_lib.cli import course, new, sources
from lesson_lib.cli.sources import ROOT
from tests import cells


def test_the_table_names_the_notebooks_that_there_are():
    names = [t.name for t in sources.targets(among=("part", "page")) if t.chapter]
    assert [lesson.name for lesson in course.lessons()] == names
    assert all(
        lesson.name.startswith(chapter.number) for chapter in course.chapters() for lesson in chapter.lessons
    )


def test_the_exercise_for_class_is_one_of_the_chapter():
    for chapter in course.chapters():
        pages = [*(lesson.name for lesson in chapter.lessons), f"exercises/{chapter.name}", *chapter.pages]
        names = [exercise.name for page in pages for exercise in engine.lessons().get(page, ())]
        assert chapter.in_class in names or not (chapter.in_class or names), chapter.name


def test_a_head_has_title_time_needs_exercises_and_sections():
    text = course.filled("02a_soft_look_up", "\n{title}\n\nA puzzle.\n\n{about}\n\n{sources}\n")
    assert text.split("\n\n") == [
        "\n# 02a · How much do I listen to each of three answers?",
        "A puzzle.",
        "**Time** about 40 minutes. **You need** matrix products and a little PyTorch. **Exercises**:"
        " [02_scoring](exercises/02_scoring.ipynb), after 02b.",
        "〔[The road of five texts · 五篇文章之路](sources.ipynb): opening, sections 1, 2"
        " · 开头、第 1、2 节〕\n",
    ]
    assert "[02a](02a_soft_look_up.ipynb)" in course.about(course.lessons()[5])


def test_a_page_without_marks_is_told():
    with pytest.raises(ValueError, match="has no marks"):
        course._between("a page", "a list")


@pytest.fixture
def copy(tmp_path):
    """The table of the course, its sources, and the questions of chapter 05."""
    for name in ("course.toml", "notebooks/source", "lesson_lib/chapters/c05_positional_encoding/questions"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place)
    return tmp_path


def test_a_new_part_is_made_in_all_its_places(copy, capsys):
    assert new.main("05d", "no_positions", root=copy) == 0
    told = capsys.readouterr().out
    assert told.count("made: ") == 3 and "notebooks/instructor/05_positional_encoding.md" in told
    names = [lesson.name for lesson in course.lessons(copy)]
    assert names[names.index("05c_beyond_training") + 1] == "05d_no_positions"
    (target,) = sources.targets(["05d"], root=copy)
    assert sources.read_source(target).cells[0].source.startswith("# 05d · What does it ask?")
    words = copy / "lesson_lib/chapters/c05_positional_encoding/questions/05d_no_positions.md"
    _, blocks = questions._blocks(words.name, words.read_text(encoding="utf-8"))
    assert questions._with_seconds(blocks, {}, "05d_no_positions").name == "no_positions_first"
    assert new.main("05d", "again", root=copy) == 1 == new.main("05f", "again", root=copy)
    assert capsys.readouterr().out == "the next part of chapter 05 is 05e\n" * 2
    assert new.main("05e", "no_positions", root=copy) == 1
    assert "no_positions_first already" in capsys.readouterr().out


@pytest.mark.parametrize("number, name", [("5d", "x"), ("15a", "x"), ("05d", "X y")])
def test_what_is_no_part_is_told(copy, capsys, number, name):
    assert new.main(number, name, root=copy) == 1 and "NUMBER is like 05d" in capsys.readouterr().out
    assert "new" in cli.COMMANDS


def test_a_chapter_of_one_part_keeps_it(copy, capsys):
    assert new.main("03a", "again", root=copy) == 1 and "03 has no letter" in capsys.readouterr().out


def test_with_an_address_a_notebook_opens_where_notebooks_are_hosted(copy):
    (target,) = sources.targets(["02a_soft_look_up"], root=copy)
    bare = sources.read_source(target)
    table = copy / "course.toml"
    text = table.read_text(encoding="utf-8")
    assert text.count('\naddress = ""\n') == 1
    table.write_text(text.replace('address = ""', 'address = "https://github.com/one/course/"'), "utf-8")
    title, link, installs, *rest = sources.read_source(target).cells
    assert [title, *rest] == bare.cells
    assert "/github/one/course/blob/main/notebooks/02a_soft_look_up.ipynb)" in link.source
    assert 'git+https://github.com/one/course"' in installs.source and "%pip" in installs.source
    cells.run([installs.source])  # here the course is there: it installs nothing
