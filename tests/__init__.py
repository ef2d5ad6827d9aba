"""The tests. `checked`: beartype as jaxtyping's type checker, with PEP 484's int-for-float."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def code_of(chapter: str, *stems: str) -> SimpleNamespace:
    """What the code beside a chapter's questions defines, by its name; of these files alone, where some are
    given. Names that stand for different things in different files are left out."""
    folder = Path(__file__).parents[1] / "lesson_lib" / "chapters" / chapter / "questions"
    stems = stems or tuple(path.stem for path in sorted(folder.glob("[!_]*.py")))
    held: dict[str, list] = {}
    for stem in stems:
        for name, value in vars(import_module(f"lesson_lib.chapters.{chapter}.questions.{stem}")).items():
            held.setdefault(name, []).append(value)
    return SimpleNamespace(**{name: v[0] for name, v in held.items() if all(x is v[0] for x in v)})
