"""Notebooks from text: two from one exercise source, executed, in a normal form, without churn."""

import base64
import io
import json

import nbformat
import pytest
from PIL import Image

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


@pytest.fixture
def course(tmp_path):
    """A repository with one lesson and one exercise, as sources."""
    folder = tmp_path / "notebooks" / "source" / "exercises"
    folder.mkdir(parents=True)
    (folder.parent / "02_scoring.py").write_text(LESSON, encoding="utf-8")
    (folder / "02_scoring.py").write_text(EXERCISE, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The same, built once."""
    root = tmp_path_factory.mktemp("built")
    folder = root / "notebooks" / "source" / "exercises"
    folder.mkdir(parents=True)
    (folder.parent / "02_scoring.py").write_text(LESSON, encoding="utf-8")
    (folder / "02_scoring.py").write_text(EXERCISE, encoding="utf-8")
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
    return "".join(o.text for c in read(root, name).cells for o in c.get("outputs", []) if o.output_type == "stream")


# what is built


def test_one_exercise_source_gives_two_notebooks(built):
    assert printed(built, "exercises/02_scoring") == "not attempted yet\n"
    assert printed(built, "solutions/02_scoring") == "passed\n"
    learners, solved = (read(built, f"{kind}/02_scoring").cells[0].source for kind in ("exercises", "solutions"))
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


def test_ids_depend_on_the_cell_alone(course):
    (target,) = build.targets(["02_scoring"], root=course)[:1]
    before = {cell.source: cell.id for cell in build.read_source(target).cells}
    target.source.write_text("# %%\nfirst = 1\n\n" + LESSON, encoding="utf-8")
    after = {cell.source: cell.id for cell in build.read_source(target).cells}
    assert all(after[source] == name for source, name in before.items())


def test_building_again_changes_nothing(copy):
    every = sorted((copy / "notebooks").rglob("*.ipynb"))
    before = [path.read_bytes() for path in every]
    assert build.main(root=copy) == 0
    assert [path.read_bytes() for path in every] == before
    assert len(every) == 3 and b"\r" not in b"".join(before)


def test_fresh_takes_the_new_output(copy):
    before = printed(copy, "02_scoring")
    assert build.main(["02_scoring"], fresh=True, root=copy) == 0
    assert printed(copy, "02_scoring") != before  # the time in the cell that nbval ignores


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


# sources


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
    with pytest.raises(build.BuildError, match=fault):
        build.split_exercise(text, solved=solved)


def test_a_lesson_may_hold_no_solution(course):
    source = course / "notebooks" / "source" / "02_scoring.py"
    source.write_text(EXERCISE, encoding="utf-8")
    with pytest.raises(build.BuildError, match="exercises live in source/exercises"):
        build.read_source(build.targets(root=course)[0])


def test_an_empty_source_is_named(course):
    source = course / "notebooks" / "source" / "02_scoring.py"
    source.write_text("\n", encoding="utf-8")
    with pytest.raises(build.BuildError, match="has no cells"):
        build.read_source(build.targets(root=course)[0])


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
    assert [target.name for target in build.targets([name], root=course)] == wanted


def test_an_unknown_name_is_told_the_known_ones(course, capsys):
    assert build.main(["07_dance"], root=course) == 1
    assert build.check(["07_dance"], root=course) == 1
    assert "02_scoring, exercises/02_scoring" in capsys.readouterr().out


# --check


def test_check_is_content_with_what_was_built(copy, capsys):
    assert build.check(root=copy) == 0
    assert "3 notebooks" in capsys.readouterr().out


def spoil(root, change, name="02_scoring"):
    path = root / "notebooks" / f"{name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


SPOILT = {
    "in its source": lambda n: n["cells"][1].update(source=["print(3)"]),
    "in its metadata": lambda n: n["cells"][1]["metadata"].update(tags=[]),
    "in its id": lambda n: n["cells"][1].update(id="another"),
    "in its cell_type": lambda n: n["cells"][2].update(cell_type="markdown"),
    "has 5 cells, its source 6": lambda n: n["cells"].pop(),
    "execution count None": lambda n: n["cells"][1].update(execution_count=None),
    "no stored output": lambda n: n["cells"][1].update(outputs=[]),
    "normal form": lambda n: n["metadata"].update(kernelspec={"name": "mine", "display_name": "Mine"}),
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


# outputs that stay


def picture(colour, size=(40, 30), text="A square.", alt="A square.", touched=0):
    image = Image.new("RGB", size, colour)
    for i in range(touched):
        image.putpixel((i % size[0], i // size[0]), (0, 0, 0))
    file = io.BytesIO()
    image.save(file, "png")
    png = base64.b64encode(file.getvalue()).decode()
    data = {"image/png": png, "text/plain": text}
    return nbformat.v4.new_output("display_data", data=data, metadata={"image/png": {"alt": alt}})


def said(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


@pytest.mark.parametrize(
    "stored, new, ignored, kept",
    [
        ([said("1\n")], [said("1\n")], False, True),
        ([said("1\n")], [said("2\n")], False, False),
        ([said("1\n")], [said("2\n")], True, True),
        ([said("1\n")], [], True, False),
        ([picture("red")], [picture("blue")], False, True),
        ([picture("red")], [picture("red", text="A circle.")], False, False),
        ([picture("red", alt="")], [picture("red")], False, False),
        ([said("1\n")], [picture("red")], False, False),
    ],
)
def test_an_output_is_kept_where_nbval_finds_it_equal(stored, new, ignored, kept):
    assert build.may_keep(stored, new, ignored=ignored) is kept


def test_our_comparison_is_nbvals_own():
    """The same verdict as nbval's compare_outputs, on each pair of outputs here."""
    from types import SimpleNamespace

    from nbval.plugin import IPyNbCell, nocolors

    skipped = ("metadata", "traceback", "prompt_number", "output_type", "name", "execution_count")
    judge = SimpleNamespace(
        parent=SimpleNamespace(skip_compare=(*skipped, build.WIDGET, "image/png", "image/jpeg")),
        colors=nocolors,
        sanitize=lambda text: text,
        format_output_compare=lambda *_: None,
    )
    widget = nbformat.v4.new_output("display_data", data={build.WIDGET: {"model_id": "1"}, "text/plain": "A square."})
    still = nbformat.v4.new_output("display_data", data={"text/plain": "A square."})
    error = nbformat.v4.new_output("error", ename="NameError", evalue="x", traceback=["one"])
    pool = [[], [said("1\n")], [said("2\n")], [picture("red")], [picture("blue")], [widget], [still], [error]]
    for one in pool:
        for two in pool:
            equal = build.seen_by_nbval(one) == build.seen_by_nbval(two)
            assert equal == IPyNbCell.compare_outputs(judge, two, one), (one, two)


@pytest.mark.parametrize(
    "new, alike",
    [
        (picture("red"), True),
        (picture("red", touched=2), True),
        (picture("red", touched=200), False),
        (picture("blue"), False),
        (picture("red", size=(41, 30)), False),
    ],
    ids=["the same", "two pixels", "many pixels", "another colour", "another size"],
)
def test_a_kept_picture_that_looks_different_is_noticed(new, alike):
    assert build.looks_alike(picture("red").data["image/png"], new.data["image/png"]) is alike


def test_outputs_are_stored_without_what_a_machine_decides():
    widget = nbformat.v4.new_output("execute_result", data={build.WIDGET: {}, "text/plain": "A."}, execution_count=9)
    error = nbformat.v4.new_output("error", ename="NameError", evalue="x", traceback=["File /somewhere"])
    made = build.normal_outputs([said("1\n"), widget, said("2\n"), error], count=4)
    assert [output.output_type for output in made] == ["stream", "execute_result", "error"]
    assert made[0].text == "1\n2\n" and made[1].data == {"text/plain": "A."} and made[1].execution_count == 4
    assert made[2].traceback == ["NameError: x"]
