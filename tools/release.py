"""All that a version consists of, made and looked at, and nothing published: `make release-check`.

The version is one everywhere. The wheel, in an empty environment and from an empty folder, gives the lessons,
and the first one runs. The site has its pages, its PDF and its zip. What was made lies in build/.
"""

import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

import lesson_lib

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
FIRST = "00_start_here.ipynb"


def disagreements(root: Path = ROOT, version: str = lesson_lib.__version__) -> list[str]:
    """What names another version than the library, or no date of it. A version that is being worked on ends
    in .dev0, and is not cited yet."""
    released = re.sub(r"\.dev\d+$", "", version)
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) · (.+)$", changes, re.M)
    found = []
    if newest is None or newest[1] != released:
        found.append(f"CHANGELOG.md begins with {newest[1] if newest else 'no version'}, not with {released}")
    if version == released:
        cited = (root / "CITATION.cff").read_text(encoding="utf-8")
        for line in (f"version: {version}", f"date-released: {newest[2] if newest else ''}"):
            if f"\n{line}\n" not in cited:
                found.append(f"CITATION.cff has no line {line!r}")
    return found


def run(words: Sequence[str | Path], folder: Path = ROOT) -> None:
    """Run a command. Raises SystemExit with its last lines where it fails."""
    done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{(done.stdout + done.stderr)[-3000:]}")


def wheel() -> Path:
    """The wheel, made through the sdist as an installer does, beside it in build/dist."""
    shutil.rmtree(BUILD / "dist", ignore_errors=True)
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", BUILD / "dist"])
    (sdist,) = (BUILD / "dist").glob("*.tar.gz")
    unpacked = BUILD / "sdist"
    shutil.rmtree(unpacked, ignore_errors=True)
    shutil.unpack_archive(sdist, unpacked, filter="data")
    (source,) = unpacked.iterdir()
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", BUILD / "dist"], source)
    (made,) = (BUILD / "dist").glob("*.whl")
    return made


def first_lesson_from(made: Path) -> None:
    """Install the wheel where nothing is, take the copies in an empty folder, and run the first lesson."""
    empty, here = BUILD / "empty", BUILD / "learner"
    for folder in (empty, here):
        shutil.rmtree(folder, ignore_errors=True)
    venv.create(empty, with_pip=True)
    here.mkdir()
    programs = empty / ("Scripts" if sys.platform == "win32" else "bin")
    run([programs / "python", "-m", "pip", "install", "--quiet", f"{made}[lab]"])
    run([programs / "lesson_lib", "lab", "--copy-only"], here)
    run([programs / "jupyter", "execute", f"work/{FIRST}"], here)


def site() -> list[str]:
    """Make the site; what it should have and has not."""
    run([sys.executable, "-m", "lesson_lib", "site"])
    names = ("index.html", "02a_soft_look_up.html", "attention.pdf", "attention-course.zip")
    return [f"there is no {name}" for name in names if not (BUILD / "site" / name).is_file()]


def main() -> int:
    """0 where a version could be given."""
    steps = {
        "the version is the same everywhere": disagreements,
        "wheel and sdist; the wheel runs in an empty environment": lambda: first_lesson_from(wheel()),
        "site, PDF and zip": site,
    }
    for what, step in steps.items():
        begun = time.perf_counter()
        if found := step():
            print(f"NOT READY  {what}: {'; '.join(found)}")
            return 1
        print(f"ok  {what} ({time.perf_counter() - begun:.0f} s)", flush=True)
    for path in sorted((BUILD / "dist").iterdir()):
        print(f"    {path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
