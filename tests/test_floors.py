"""The house stands: a module imports from lower floors only, inside a package nothing goes in a circle, and a
chapter imports no other chapter."""

import ast
import os
import subprocess
import sys
import textwrap
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import lesson_lib
from lesson_lib import FLOORS
from lesson_lib.cli import sources

HOUSE = Path(lesson_lib.__file__).parent
CHAPTERS = sorted(path.parent.name for path in HOUSE.glob("chapters/*/__init__.py"))
ROOMS = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
# what nearly every chapter has, and the map need not say
EVERYWHERE = {
    *("attention", "claims", "device", "require", "show", "summary", "training"),
    *("charts.basic", "charts.picture", "widgets.explorer"),
}


@cache
def imports(path: Path, house: Path = HOUSE) -> set[str]:
    """The modules of the house that a file imports, dotted from the house's root; lazy imports count."""
    package = path.relative_to(house.parent).with_suffix("").parts[:-1]  # of a file, and of an __init__ too
    return imported(path.read_text(encoding="utf-8"), package, house)


def imported(text: str, package: tuple[str, ...] = (), house: Path = HOUSE) -> set[str]:
    """The modules of the house that a text imports; `package` is the one that it stands in."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (base, node.module) if part)
            names = [f"{source}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {module for name in names if (module := resolve(name, house)) is not None}
    return found


def resolve(name: str, house: Path) -> str | None:
    """The module of a dotted name: 'lesson_lib.charts.basic.lines' is in 'charts.basic'. None: not ours."""
    top, *parts = name.split(".")
    if top != house.name:
        return None
    while parts:
        place = house.joinpath(*parts)
        if (place / "__init__.py").exists() or place.with_suffix(".py").exists():
            return ".".join(parts)
        parts.pop()
    return "__init__"


def wrong_imports(house: Path, floors: dict[str, int]) -> list[str]:
    """Imports that go sideways or up, and modules without a floor."""
    wrong = []
    for path in sorted(house.rglob("*.py")):
        room = path.relative_to(house).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        if room not in floors:
            wrong.append(f"{room} has no floor in FLOORS")
            continue
        for module in sorted(imports(path, house)):
            other = module.split(".")[0]
            if other not in (room, "__init__") and not floors.get(other, 99) < floors[room]:
                where = path.relative_to(house).as_posix()
                wrong.append(
                    f"{where} (floor {floors[room]}) imports {module} (floor {floors.get(other, 'none')})"
                )
    return wrong


def between_chapters(house: Path) -> list[str]:
    """Imports that go from one chapter to another."""
    wrong = []
    for path in sorted(house.glob("chapters/*/**/*.py")):
        own = path.relative_to(house).parts[1]
        others = {module for module in imports(path, house) if module.startswith("chapters.")}
        for module in sorted(others):
            if module.split(".")[1] != own:
                wrong.append(f"{path.relative_to(house).as_posix()} imports {module}")
    return wrong


def reached(modules: set[str], house: Path) -> set[str]:
    """These modules and all that they import, at first or second hand."""
    found, ahead = set(), sorted(modules)
    while ahead:
        module = ahead.pop()
        if module not in found:
            found.add(module)
            place = house.joinpath(*module.split("."))
            path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            ahead += sorted(imports(path, house) - {"__init__"})
    return found


@cache
def used(chapter: str, root: Path = sources.ROOT) -> set[str]:
    """The modules that a chapter's folder, its parts, its evidence and its exercises import at first hand."""
    files = [*(HOUSE / "chapters" / chapter).rglob("*.py")]
    notebooks = {target.source for target in sources.targets(root=root) if target.chapter == chapter[1:3]}
    own = f"chapters.{chapter}"
    texts = [path.read_text(encoding="utf-8") for path in sorted(notebooks)]
    found = set().union(*(imports(path) for path in files), *(imported(text) for text in texts))
    return {module for module in found if module != "__init__" and not f"{module}.".startswith(f"{own}.")}


def chapter_map() -> str:
    """Each chapter with the shared modules that not every chapter has, as lesson_lib/chapters says it."""
    lines = []
    for chapter in CHAPTERS:
        shared = sorted(m for m in used(chapter) - EVERYWHERE - ROOMS if not m.startswith("checks."))
        text = f"{chapter:24}{', '.join(shared)}"
        lines += textwrap.wrap(text, 110, initial_indent="    ", subsequent_indent=" " * 28)
    return "\n".join(lines)


def circle(package: Path, house: Path) -> list[str] | None:
    """Modules of a package that import each other in a circle, or None."""
    graph = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(house).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        graph[name] = {
            other for other in imports(path, house) if other.startswith(package.name) and other != name
        }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_modules_import_from_lower_floors_only():
    assert wrong_imports(HOUSE, FLOORS) == []


def test_no_chapter_imports_another():
    assert between_chapters(HOUSE) == []


def test_what_is_shared_serves_several_chapters():
    """A module of one chapter lies in its folder; those that no chapter names serve the shared ones."""
    serves = {chapter: reached(used(chapter), HOUSE) for chapter in CHAPTERS}
    for room in ("charts", "widgets", "data", "models", "experiments"):
        for path in (HOUSE / room).glob("[!_]*.py"):
            module = f"{room}.{path.stem}"
            chapters = [chapter for chapter, modules in serves.items() if module in modules]
            assert len(chapters) != 1, f"{module} serves {chapters[0]} alone: put it there"


def test_the_map_of_the_chapters_is_what_they_import():
    doc = (HOUSE / "chapters" / "__init__.py").read_text(encoding="utf-8")
    assert chapter_map() in doc, f"put this into lesson_lib/chapters/__init__.py:\n{chapter_map()}"


def test_a_chapter_uses_what_any_of_its_notebooks_imports(tmp_path):
    for name, module in (
        ("02a_soft_look_up", "ring"),
        ("02b_which_score", "graphs"),
        ("evidence/02_scoring_evidence", "recurrent"),
        ("exercises/02_scoring", "convolution"),
        ("03_matrix_form", "truncated"),
    ):
        path = tmp_path / "notebooks" / "source" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"from lesson_lib import {module}\n", encoding="utf-8")
    found = used("c02_scoring", tmp_path)
    assert {"ring", "graphs", "recurrent", "convolution"} <= found and "truncated" not in found


def test_chapters_are_found_by_the_engine_when_an_exercise_is_asked_for_and_not_before():
    code = (
        "import sys, lesson_lib.checks as checks\n"
        "loaded = lambda: sorted(name for name in sys.modules if '.chapters.' in name)\n"
        "assert loaded() == [], loaded()\n"
        "checks.check(5, 'weighted_sum')\n"
        "assert 'lesson_lib.chapters.c11_efficient_attention.questions.exercises' in loaded()\n"
    )
    # on whatever this machine computes: a simulated device is not there in another process
    inherited = {name: value for name, value in os.environ.items() if name != "LESSON_DEVICE"}
    subprocess.run([sys.executable, "-c", code], check=True, env=inherited | {"LESSON_HOME": os.devnull})


def test_no_circle_inside_a_package():
    packages = [path for path in HOUSE.iterdir() if (path / "__init__.py").exists()]
    assert {path.name: found for path in packages if (found := circle(path, HOUSE))} == {}


def test_every_package_has_an_init():
    folders = {path.parent for path in HOUSE.rglob("*.py")}
    assert [folder.name for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


@pytest.fixture
def small_house(tmp_path):
    """A house of three modules and a package in which everything is right."""
    house = tmp_path / "home"
    (house / "roof").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "cellar.py": "import math\n",
        "hall.py": "from home.cellar import wine\n",
        "kitchen.py": "from home import cellar\n",
        "roof/__init__.py": "from home.roof.tiles import red\n",
        "roof/tiles.py": "from home import hall\n",
    }
    for name, text in files.items():
        (house / name).write_text(text)
    return house


FEW = {"cellar": 0, "hall": 1, "kitchen": 1, "roof": 2}


def test_the_small_house_is_right(small_house):
    assert wrong_imports(small_house, FEW) == []
    assert circle(small_house / "roof", small_house) is None


@pytest.mark.parametrize(
    "file, line, fault",
    [
        ("cellar.py", "from home import hall", "imports hall"),
        ("hall.py", "import home.kitchen", "imports kitchen"),
        ("hall.py", "def late():\n    from .roof import tiles", "imports roof.tiles"),
        ("attic.py", "", "attic has no floor"),
    ],
    ids=["up", "own floor", "lazy and relative", "no floor"],
)
def test_a_wrong_import_is_seen(small_house, file, line, fault):
    (small_house / file).write_text(line)
    assert any(fault in text for text in wrong_imports(small_house, FEW))


def test_a_circle_is_seen(small_house):
    (small_house / "roof" / "tiles.py").write_text("from home.roof.beams import oak\n")
    (small_house / "roof" / "beams.py").write_text("from . import tiles\n")
    assert circle(small_house / "roof", small_house) is not None


def test_an_import_between_chapters_is_seen(small_house):
    for name, line in (("one", "from home.chapters.two import figures"), ("two", "import math")):
        (small_house / "chapters" / name).mkdir(parents=True)
        (small_house / "chapters" / name / "figures.py").write_text(line)
    assert between_chapters(small_house) == ["chapters/one/figures.py imports chapters.two.figures"]
    (small_house / "chapters" / "one" / "figures.py").write_text("from home.chapters.one import hints")
    imports.cache_clear()
    assert between_chapters(small_house) == []
