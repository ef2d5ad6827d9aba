"""Where the course lies: in a clone of its repository, or, installed as a package, inside of it."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSIDE = _PACKAGE / "_course"  # what a wheel holds of the repository: pyproject.toml puts it there
IS_CLONE = (_PACKAGE.parent / "course.toml").is_file()
ROOT = _PACKAGE.parent if IS_CLONE else _INSIDE


def work(root: Path = ROOT) -> Path:
    """The learner's folder: work/ in a clone, and of a package in the folder at hand."""
    return (Path.cwd() if root == _INSIDE else root) / "work"


def command(name: str, arguments: str = "") -> str:
    """What one types at a terminal to run a command of the course: make in a clone."""
    if IS_CLONE:
        return f"make {name}" + (f" ARGS='{arguments}'" if arguments else "")
    return f"lesson_lib {name} {arguments}".rstrip()
