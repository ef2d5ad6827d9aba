"""The house stands: a module imports from lower floors only; inside a package nothing goes in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import lesson_lib
from lesson_lib import FLOORS

HOUSE = Path(lesson_lib.__file__).parent


def imports(path: Path, house: Path = HOUSE) -> set[str]:
    """The modules of the house that a file imports, dotted from the house's root; lazy imports count."""
    here = path.relative_to(house.parent).with_suffix("").parts
    package = here[:-1]  # of a file, and of an __init__ too
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
    """The module of a dotted name: 'lesson_lib.plots.palette.BLUE' is in 'plots.palette'. None: not ours."""
    top, *parts = name.split(".")
    if top != house.name:
        return None
    while parts:
        place = house.joinpath(*parts)
        if place.is_dir() or place.with_suffix(".py").exists():
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
