"""Every built notebook: in step with its source, executed, readable without a kernel, clean of the machine
it was built on."""

import ast
import base64
import copy
import io
import json
import re
from collections import defaultdict
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from lesson_lib.cli import build, outputs, sources

ROOT = Path(__file__).resolve().parents[1]
TARGETS = sources.targets()
NAMES = [target.name for target in TARGETS]
LINES = 25
KIB = 1024
IGNORED = "nbval-ignore-output"
MACHINE = re.compile(r"/(?:root|home|work|tmp|Users)/|[A-Z]:\\\\|\b0x[0-9a-f]{6,}\b")


def load(target: sources.Target) -> nbformat.NotebookNode:
    """The notebook as it is stored."""
    return nbformat.read(target.path, as_version=4)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Its code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def faults(notebook: nbformat.NotebookNode) -> list[str]:
    """What is wrong with one notebook, a line each."""
    return [*_execution(notebook), *_machine(notebook), *_pictures(notebook), *_amounts(notebook)]


def _execution(notebook):
    cells = code_cells(notebook)
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        yield "execution counts are not 1, 2, 3 ..."
    if not any(cell.outputs for cell in cells):
        yield "no output is stored"
    for number, cell in enumerate(cells, 1):
        for output in cell.outputs:
            if output.get("name") == "stderr":
                yield f"code cell {number} stores standard error"
            if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", ()):
                yield f"code cell {number} ends in {output.ename}"
            if outputs.WIDGET in output.get("data", {}):
                yield f"code cell {number} stores a widget view, which shows nothing without a kernel"


def _machine(notebook):
    bare = copy.deepcopy(notebook)
    for cell in code_cells(bare):
        for output in cell.outputs:
            for mime in [mime for mime in output.get("data", {}) if mime in ("image/png", "image/jpeg")]:
                del output.data[mime]
    text = re.sub(r"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+", "", json.dumps(bare, ensure_ascii=False))
    for found in sorted(set(MACHINE.findall(text))):
        yield f"it holds a path or an address of a machine: {found}"


def _pictures(notebook):
    for number, cell in enumerate(code_cells(notebook), 1):
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                alt = output.metadata.get("image/png", {}).get("alt", "")
                if len(alt) < 20:
                    yield f"code cell {number}: a picture without alt text (metadata['image/png']['alt'])"
                text = data.get("text/plain", "")
                if not text or text.startswith("<"):
                    yield (
                        f"code cell {number}: a picture whose text/plain is not its alt sentence:"
                        f" {text[:60]!r}"
                    )
            if any(_see_through(data[mime]) for mime in ("image/png", "image/gif") if mime in data):
                yield (
                    f"code cell {number}: a see-through picture, dark letters on a dark page; give it a"
                    " ground"
                )
            if "image/svg+xml" in data and "<title" not in data["image/svg+xml"]:
                yield f"code cell {number}: a drawing without <title>"
            for image in re.findall(r"<img\b[^>]*>", data.get("text/html", "")):
                if not re.search(r"\balt=([\"'])[^\"']{10,}", image):
                    yield f"code cell {number}: an <img> without alt text"


def _see_through(picture: str) -> bool:
    """Whether a page's colour shines through a picture, which is given in base64."""
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        return image.convert("RGBA").getextrema()[3][0] < 255


def _amounts(notebook):
    cells = code_cells(notebook)
    # a reader's warm-up is shown, and is not stored: at the build nothing returns yet
    shown = [cell for cell in cells if cell.outputs or "warm_up()" in cell.source]
    ignored = [
        cell
        for cell in cells
        if IGNORED in cell.metadata.get("tags", ()) or "NBVAL_IGNORE_OUTPUT" in cell.source
    ]
    if len(ignored) * 5 > len(shown):
        yield f"{len(ignored)} of {len(shown)} cells with output are ignored by nbval; at most a fifth may be"
    for number, cell in enumerate(cells, 1):
        lines = len(cell.source.splitlines())
        if lines > LINES and "program" not in cell.metadata.get(
            "tags", ()
        ):  # found in the wild, to be mended
            yield (
                f"code cell {number} has {lines} lines; at most {LINES}: move what hides the idea into"
                " lesson_lib"
            )
        if "nbval-skip" in cell.metadata.get("tags", ()):
            yield f"code cell {number} is skipped by nbval"


def names_defined_twice(code: dict[str, str]) -> list[str]:
    """Functions and classes that more than one notebook defines. `code`: notebook -> its source."""
    places = defaultdict(set)
    for notebook, source in code.items():
        plain = re.sub(r"^\s*[%!].*$", "", source, flags=re.M)
        for node in ast.parse(plain).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                places[node.name].add(notebook)
    return [f"{name}: {', '.join(sorted(where))}" for name, where in sorted(places.items()) if len(where) > 1]


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_a_notebook_is_the_twin_of_its_source(target):
    assert list(build.differences(target)) == [], "repair: make notebooks"


def test_the_course_has_lessons_exercises_and_solutions():
    assert {target.kind for target in TARGETS} >= {"part", "page", "exercise", "solution"}
    assert NAMES[0] == "00_start_here"


def test_no_notebook_is_without_a_source():
    assert sources.strays() == []


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_a_notebook_is_clean(target):
    assert faults(load(target)) == []


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_a_notebook_is_at_most_one_mib(target):
    assert target.path.stat().st_size <= KIB * KIB


def test_no_name_is_defined_in_two_notebooks():
    every = sources.targets(among=("part", "page", "evidence", "exercise"))
    assert names_defined_twice({t.name: taught(sources.read_source(t)) for t in every}) == []


def taught(notebook: nbformat.NotebookNode) -> str:
    """Its code without your-turn cells, in which a learner writes what exists elsewhere."""
    turns = ("turn:", "exercise:")
    cells = code_cells(notebook)
    return "\n".join(
        c.source for c in cells if not any(t.startswith(turns) for t in c.metadata.get("tags", ()))
    )


def test_the_learners_notebook_holds_no_answer():
    for target in (t for t in TARGETS if t.kind != "solution"):
        text = target.path.read_text(encoding="utf-8")
        assert sources.BEGIN not in text and sources.STUB not in text


# The guards can fail: a sound small notebook, and what each guard says to one that is spoilt.


def _png(alpha: int) -> str:
    """A black picture of one pixel, in base64."""
    file = io.BytesIO()
    Image.new("RGBA", (1, 1), (0, 0, 0, alpha)).save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


@pytest.fixture
def sound():
    """A notebook in which everything is right."""
    picture = nbformat.v4.new_output(
        "execute_result",
        data={"image/png": _png(alpha=255), "text/plain": "A line that goes up and stays there."},
        metadata={"image/png": {"alt": "A line that goes up and stays there."}},
        execution_count=1,
    )
    cells = [nbformat.v4.new_code_cell("draw()", outputs=[picture], execution_count=1)]
    for count in range(2, 7):
        spoken = nbformat.v4.new_output("stream", name="stdout", text="2.0000\n")
        cells.append(nbformat.v4.new_code_cell(f"show({count})", outputs=[spoken], execution_count=count))
    return nbformat.v4.new_notebook(cells=cells)


def test_a_sound_notebook_has_no_fault(sound):
    assert faults(sound) == []


def _cleared(notebook):
    for cell in notebook.cells:
        cell.outputs, cell.execution_count = [], None


def _long(notebook):
    notebook.cells[0].source = "x = 1\n" * (LINES + 1)


SPOILT = {
    "no output is stored": _cleared,
    "execution counts": lambda notebook: notebook.cells[1].update(execution_count=7),
    "standard error": lambda notebook: notebook.cells[1].outputs[0].update(name="stderr"),
    "ends in NameError": (
        lambda notebook: notebook.cells[1].outputs.append(
            nbformat.v4.new_output("error", ename="NameError", evalue="x", traceback=[])
        )
    ),
    "a widget view": lambda notebook: (
        notebook.cells[0].outputs[0].data.update({outputs.WIDGET: {"model_id": "1"}})
    ),
    "a path or an address of a machine: /tmp/": lambda notebook: (
        notebook.cells[1].outputs[0].update(text="in /tmp/x.py")
    ),
    "a path or an address of a machine: 0x7f00": lambda notebook: (
        notebook.cells[1].outputs[0].update(text="<A at 0x7f00aa11>")
    ),
    "without alt text": lambda notebook: notebook.cells[0].outputs[0].update(metadata={}),
    "not its alt sentence": lambda notebook: (
        notebook.cells[0].outputs[0].data.update({"text/plain": "<Figure size 3x2>"})
    ),
    "a see-through picture": lambda notebook: (
        notebook.cells[0].outputs[0].data.update({"image/png": _png(alpha=254)})
    ),
    "a drawing without <title>": lambda notebook: (
        notebook.cells[0].outputs[0].data.update({"image/svg+xml": "<svg/>"})
    ),
    "an <img> without alt": lambda notebook: (
        notebook.cells[0].outputs[0].data.update({"text/html": "<img src='x'>"})
    ),
    "ignored by nbval": lambda notebook: [
        cell.metadata.update(tags=[IGNORED]) for cell in notebook.cells[:2]
    ],
    "has 26 lines": _long,
    "is skipped by nbval": lambda notebook: notebook.cells[1].metadata.update(tags=["nbval-skip"]),
}


@pytest.mark.parametrize("fault, spoil", SPOILT.items(), ids=SPOILT)
def test_a_spoilt_notebook_is_named(sound, fault, spoil):
    spoil(sound)
    assert any(fault in line for line in faults(sound))


def test_a_name_in_two_notebooks_is_named():
    assert names_defined_twice({"02": "def f():\n    pass", "03": "%time 1\nclass f:\n    pass"}) == [
        "f: 02, 03"
    ]
    assert names_defined_twice({"02": "def f():\n    pass", "03": "def g():\n    pass"}) == []


@pytest.mark.parametrize(
    "tags, free", [(["turn:f"], True), (["exercise:f"], True), (["measured"], False), ([], False)]
)
def test_what_a_learner_writes_may_be_defined_elsewhere(tags, free):
    cells = [nbformat.v4.new_code_cell("def f():\n    return ...", metadata={"tags": tags} if tags else {})]
    twice = {"02a": taught(nbformat.v4.new_notebook(cells=cells)), "03": "def f():\n    return 2"}
    assert names_defined_twice(twice) == ([] if free else ["f: 02a, 03"])
