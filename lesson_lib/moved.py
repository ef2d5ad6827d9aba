"""The first edition's names of modules: they import what stands elsewhere now, so that a learner's own copy
of a notebook goes on working.

    plots.picture            -> charts.picture
    plots.lesson_07          -> chapters.c07_attention_vs_cnn.figures
    plots.paths              -> chapters.c08_attention_vs_rnn.paths_figures
    models.vit, data.scenes  -> chapters.c07_attention_vs_cnn.vit, .scenes
    experiments.vit          -> chapters.c07_attention_vs_cnn.experiments.vit
    widgets.pixels           -> chapters.c07_attention_vs_cnn.pixels_explorer

A name that still stands where it stood is left alone, and so is one that nobody ever had.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

HOUSE = Path(__file__).parent
PLACES = {
    "plots": ("charts/{}", "chapters/*/{}_figures"),
    "widgets": ("chapters/*/{}_explorer",),
    "models": ("chapters/*/{}",),
    "data": ("chapters/*/{}",),
    "experiments": ("chapters/*/experiments/{}",),
    "checks": (),
}
OF_A_LESSON = {"plots": "figures", "checks": "exercises"}
RENAMED = {
    "lesson_lib.plots": "charts",
    "lesson_lib.plots.charts": "charts/basic",
    "lesson_lib.plots.files": "cli/figures",
    "lesson_lib.chapters.c06_transformer.machine_explorer": "widgets/machine",
}


def new_name(old: str) -> str | None:
    """Where a module of the first edition stands now, dotted; None where it has not moved, or never was."""
    if old in RENAMED:
        return _dotted(HOUSE / RENAMED[old])
    house, room, name = [*old.split("."), "", ""][:3]
    if house != "lesson_lib" or not name.isidentifier() or old.count(".") > 2:
        return None
    room = {"charts": "plots"}.get(room, room)  # `plots` is `charts` now, and is asked under that name
    patterns = [f"{room}/{name}", *(pattern.format(name) for pattern in PLACES.get(room, ()))]
    if room in OF_A_LESSON and name.startswith("lesson_"):
        patterns.append(f"chapters/c{name.removeprefix('lesson_')}_*/{OF_A_LESSON[room]}")
    found = [_dotted(path) for pattern in patterns for path in sorted(HOUSE.glob(f"{pattern}.py"))]
    return found[0] if found and found[0] != old else None


def explorer(name: str) -> Any:
    """A widget that serves one chapter, by the name of its class.

    Raises AttributeError where there is none.
    """
    for path in sorted(HOUSE.glob("chapters/*/*_explorer.py")):
        if f"\nclass {name}(" in path.read_text(encoding="utf-8"):
            return getattr(import_module(_dotted(path)), name)
    raise AttributeError(f"module 'lesson_lib.widgets' has no attribute {name!r}")


class Moved(MetaPathFinder, Loader):
    """Finds a module by its old name: the very module that has the new one."""

    def find_spec(
        self, fullname: str, path: Iterable[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("lesson_lib.") and (new := new_name(fullname)):
            return ModuleSpec(fullname, self, loader_state=new)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(spec.loader_state)
        spec.loader_state = module.__spec__  # the import system is about to write this one over it
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """From now on the old names are found."""
    sys.meta_path.insert(0, Moved())


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(HOUSE.parent).with_suffix("").parts)
