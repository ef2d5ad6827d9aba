"""Assignments from a class server's homes to nbgrader's submitted/STUDENT/NAME/, each with the time of its
file.

A student works in work/assignments/NAME.ipynb, which the server has put there (copies.py). The file is only
read; what was collected before is replaced where the student has gone on since. A link is not followed: it
could lead to what only the instructor may read.
"""

import argparse
import os
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lesson_lib.cli.sync_copies import ASSIGNMENTS, digest
from lesson_lib.places import ROOT

LARGEST = 50 * 2**20  # bytes of a notebook


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="03_matrix_form or 03 (default: all)")
    parser.add_argument("--homes", type=Path, default=ROOT / "class" / "data" / "homes", metavar="FOLDER")
    parser.add_argument(
        "--to",
        type=Path,
        default=ROOT / "build" / "assignments",
        metavar="FOLDER",
        help="the folder of make assignments",
    )


def main(names: Sequence[str] = (), *, homes: Path, to: Path) -> int:
    """Collect the assignments with these names (03_matrix_form or 03), or all that `to` has released; 0, or 1
    after a sentence."""
    homes, to = Path(homes), Path(to)
    released = {path.parent.name: path for path in sorted(to.glob("release/*/*.ipynb"))}
    if not released:
        print(f"{to} holds no release; make assignments first, or give its folder (--to)")
        return 1
    if not homes.is_dir():
        print(f"there is no folder {homes}; give that of the class server's homes (--homes)")
        return 1
    chosen: list[str] = []
    for asked in names:
        fits = [name for name in released if name == asked or name.split("_")[0] == asked]
        if not fits:
            print(f"no released assignment is called {asked!r}; there are {', '.join(released)}")
            return 1
        chosen += fits
    for name in dict.fromkeys(chosen or released):
        _collect(name, released[name], homes, to)
    return 0


def _collect(name: str, release: Path, homes: Path, to: Path) -> None:
    """Take one assignment in, of everybody who has begun it, and say so in one line for each kind."""
    untouched = digest(release.read_bytes())
    students: dict[str, list[str]] = {}
    for home in sorted(path for path in homes.iterdir() if path.is_dir() and not path.is_symlink()):
        try:
            content, when = _read(home, f"{name}.ipynb")
        except FileNotFoundError:
            students.setdefault("nothing there", []).append(home.name)
            continue
        except OSError as error:
            students.setdefault(f"not taken ({error.strerror or error})", []).append(home.name)
            continue
        if digest(content) == untouched:
            students.setdefault("not begun", []).append(home.name)
            continue
        folder = to / "submitted" / home.name / name
        timestamp = f"{when:%Y-%m-%d %H:%M:%S} UTC\n"  # as nbgrader reads it
        stamp, copy = folder / "timestamp.txt", folder / f"{name}.ipynb"
        if copy.exists() and copy.read_bytes() == content:
            students.setdefault("as before", []).append(home.name)
            continue
        students.setdefault("newer than before" if copy.exists() else "collected", []).append(home.name)
        (to / "submitted").mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        stamp.write_text(timestamp, encoding="utf-8")
    counts = [f"{kind}: {len(who)} ({', '.join(who)})" for kind, who in students.items()]
    print(f"{name}: " + ("; ".join(counts) or "nobody has a home yet"))


def _read(home: Path, name: str) -> tuple[bytes, datetime]:
    """A file of a student's assignments and when it was last written. Raises OSError for a link, or whatever
    else is no plain file of a sane size."""
    held: list[int] = []
    try:
        for part in (home, *Path("work", ASSIGNMENTS).parts):
            here = {"dir_fd": held[-1]} if held else {}
            held.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, **here))
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=held[-1])
        held.append(file)
        known = os.fstat(file)
        if not stat.S_ISREG(known.st_mode) or known.st_size > LARGEST:
            raise OSError("no plain file, or a very large one")
        with open(os.dup(file), "rb") as opened:
            return opened.read(), datetime.fromtimestamp(known.st_mtime, UTC)
    finally:
        for number in held:
            os.close(number)
