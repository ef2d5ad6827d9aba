"""The tests. `checked` is what jaxtyping checks every function of the library with: an int may stand for a
float."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def code_of(chapter: str) -> SimpleNamespace:
    """Everything that the code beside a chapter's questions defines, by its name."""
    folder = Path(__file__).parents[1] / "lesson_lib" / "chapters" / chapter / "questions"
    stems = [path.stem for path in sorted(folder.glob("[!_]*.py"))]
    modules = [import_module(f"lesson_lib.chapters.{chapter}.questions.{stem}") for stem in stems]
    return SimpleNamespace(**{name: value for module in modules for name, value in vars(module).items()})
