"""Notebooks from text: two from one exercise source, executed, in a normal form, without churn."""

import json

import nbformat
import pytest

from lesson_lib.cli import build

LESSON = """\
# %% [markdown]
# # A lesson

# %% tags=["claim:score-1"]
import os

print("one")
print("two", os.environ["LESSON_PROGRESS"], os.environ["OMP_NUM_THREADS"], os.environ["LESSON_DEVICE"])

# %%
x = 2

# %%
x = 2

# %%
x + 1

# %% tags=["nbval-ignore-output"]
import time

print(time.perf_counter())
"""
EXERCISE = """\
# %%
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION
    ### STUB: return None  # your code

# %%
print("passed" if double(2) == 4 else "not attempted yet")
"""


def written(root):
    """A repository with one lesson and one exercise, as sources."""
    folder = root / "notebooks" / "source" / "exercises"
    folder.mkdir(parents=True)
    (folder.parent / "02_scoring.py").write_text(LESSON, encoding="utf-8")
    (folder / "02_scoring.py").write_text(EXERCISE, encoding="utf-8")
    return root


@pytest.fixture
def course(tmp_path):
    """The sources, not built."""
    return written(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The same, built once."""
    root = written(tmp_path_factory.mktemp("built"))
    assert build.main(root=root) == 0
    return root


@pytest.fixture
def copy(built, tmp_path):
    """A copy of the built course that a test may spoil."""
    import shutil

    return shutil.copytree(built, tmp_path / "copy")


def read(root, name="02_scoring"):
    return nbformat.read(root / "notebooks" / f"{name}.ipynb", as_version=4)


def printed(root, name):
    return "".join(
        o.text for c in read(root, name).cells for o in c.get("outputs", []) if o.output_type == "stream"
    )


# what is built


def test_one_exercise_source_gives_two_notebooks(built):
    assert printed(built, "exercises/02_scoring") == "not attempted yet\n"
    assert printed(built, "solutions/02_scoring") == "passed\n"
    learners, solved = (
        read(built, f"{kind}/02_scoring").cells[0].source for kind in ("exercises", "solutions")
    )
    assert learners == "def double(x):\n    return None  # your code"
    assert solved == "def double(x):\n    return 2 * x"


def test_the_normal_form(built):
    notebook = read(built)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert notebook.metadata == build.METADATA
    assert [cell.execution_count for cell in code] == [1, 2, 3, 4, 5]
    assert [dict(cell.metadata) for cell in notebook.cells[:3]] == [{}, {"tags": ["claim:score-1"]}, {}]
    assert len({cell.id for cell in notebook.cells}) == 6
    assert code[0].outputs == [{"output_type": "stream", "name": "stdout", "text": "one\ntwo off 1 cpu\n"}]
    assert code[3].outputs[0].data == {"text/plain": "3"}


def test_building_again_changes_nothing(copy):
    every = sorted((copy / "notebooks").rglob("*.ipynb"))
    before = [path.read_bytes() for path in every]
    assert build.main(root=copy) == 0
    assert [path.read_bytes() for path in every] == before
    assert len(every) == 3 and b"\r" not in b"".join(before)


def test_an_error_names_notebook_and_cell_and_leaves_the_old_notebook(copy, capsys):
    source = copy / "notebooks" / "source" / "02_scoring.py"
    source.write_text(LESSON.replace("x + 1", "y + 1"), encoding="utf-8")
    before = (copy / "notebooks" / "02_scoring.ipynb").read_bytes()
    assert build.main(["02_scoring"], root=copy) == 1
    out = capsys.readouterr().out
    assert "02_scoring, code cell 4 ('y + 1') ends in an error" in out and "NameError" in out
    assert (copy / "notebooks" / "02_scoring.ipynb").read_bytes() == before


def test_standard_error_is_refused(course, capsys):
    text = "# %%\nimport warnings\n\nwarnings.warn('careful')\n"
    (course / "notebooks" / "source" / "02_scoring.py").write_text(text, encoding="utf-8")
    (course / "notebooks" / "source" / "exercises" / "02_scoring.py").unlink()
    assert build.main(root=course) == 1
    assert "writes to standard error" in capsys.readouterr().out


def test_a_chapter_is_built_whole_and_pages_by_their_names(course, capsys):
    folder = course / "notebooks" / "source"
    (folder / "evidence").mkdir()
    (folder / "02_scoring.py").unlink()
    for name in ("02a_soft_look_up", "03_matrix_form", "evidence/02_scoring_evidence", "glossary"):
        (folder / f"{name}.py").write_text("# %%\nprint(1)\n", encoding="utf-8")
    assert build.main(["02"], root=course) == 0
    chapter = ["02a_soft_look_up", "evidence/02_scoring_evidence", "exercises/02_scoring"]
    told = capsys.readouterr().out
    assert [line.split("] ")[1].split(":")[0] for line in told.splitlines()] == [
        *chapter,
        "solutions/02_scoring",
    ]
    assert build.main(["glossary"], root=course) == 0
    assert all(printed(course, name) == "1\n" for name in [*chapter[:2], "glossary"])
    assert not (course / "notebooks" / "03_matrix_form.ipynb").exists()
    assert build.check(["02", "glossary"], root=course) == 0


# --check


def test_check_is_content_with_what_was_built(copy, capsys):
    assert build.check(root=copy) == 0
    assert "3 notebooks" in capsys.readouterr().out


def spoil(root, change, name="02_scoring"):
    path = root / "notebooks" / f"{name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook)
    path.write_text(
        json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
    )


SPOILT = {
    "in its source": lambda n: n["cells"][1].update(source=["print(3)"]),
    "in its cell_type": lambda n: n["cells"][2].update(cell_type="markdown"),
    "execution count None": lambda n: n["cells"][1].update(execution_count=None),
    "normal form": lambda n: n["metadata"].update(kernelspec={"name": "mine", "display_name": "Mine"}),
    "links to 02_scoring.ipynb#gone": lambda n: n["cells"][4]["outputs"][0]["data"].update(
        {"text/html": ['<a href="02_scoring.ipynb#cell-id=gone">there</a>']}
    ),
}


@pytest.mark.parametrize("fault, change", SPOILT.items(), ids=SPOILT)
def test_check_names_the_notebook_that_differs(copy, capsys, fault, change):
    spoil(copy, change)
    assert build.check(root=copy) == 1
    out = capsys.readouterr().out
    assert "notebooks/02_scoring.ipynb" in out and fault in out and "repair: make notebooks" in out


def test_check_names_what_is_not_built_and_what_has_no_source(copy, capsys):
    (copy / "notebooks" / "02_scoring.ipynb").rename(copy / "notebooks" / "05_other.ipynb")
    assert build.check(root=copy) == 1
    out = capsys.readouterr().out
    assert "02_scoring.ipynb: it is not built" in out and "05_other.ipynb: it has no source" in out


def test_check_names_a_damaged_notebook(copy, capsys):
    (copy / "notebooks" / "02_scoring.ipynb").write_text("{", encoding="utf-8")
    assert build.check(root=copy) == 1
    assert "it is no notebook" in capsys.readouterr().out


SQUARE = """\
# %%TAGS
import base64
import io
from pathlib import Path

from IPython.display import display
from PIL import Image

file = io.BytesIO()
Image.new("RGB", (8, 8), Path("colour.txt").read_text()).save(file, format="PNG")
data = {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": "A square."}
display(data, metadata={"image/png": {"alt": "A square."}}, raw=True)
"""


@pytest.mark.parametrize(
    "tags, stays", [("", False), (' tags=["measured"]', True)], ids=["drawn", "measured"]
)
def test_a_picture_that_changes_is_taken_unless_it_shows_seconds(course, capsys, tags, stays):
    """Text and alt are the same, so nbval sees no difference: the builder must."""
    (course / "notebooks" / "source" / "02_scoring.py").write_text(
        SQUARE.replace("TAGS", tags), encoding="utf-8"
    )
    (course / "notebooks" / "source" / "exercises" / "02_scoring.py").unlink()
    pictures = []
    for colour in ("red", "blue"):
        (course / "notebooks" / "colour.txt").write_text(colour, encoding="utf-8")
        assert build.main(root=course) == 0
        pictures.append(read(course).cells[0].outputs[0].data["image/png"])
    assert (pictures[0] == pictures[1]) == stays
    assert ("its picture changed" in capsys.readouterr().out) != stays
