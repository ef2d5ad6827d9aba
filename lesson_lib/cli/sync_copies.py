"""A student's copies on a class server: what the student wrote stays, what nobody touched is kept up to date.

`python -m lesson_lib.cli.sync_copies ORIGINAL WORK COMMAND ...` runs as the student: it pulls, then becomes
COMMAND. The rules of `make lab` (lab.py), with two differences: outputs count as changes, too, and a new
version is put beside a changed copy.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lesson_lib.cli.lab import ASIDE, RECORD, blank, lessons, set_aside

ASSIGNMENTS = "assignments"  # a folder beside the original's notebooks, and in a student's work/
LOG = ".server.log"  # in the student's home: what the student's server says


@dataclass
class Pulled:
    """The names that a pull copied, updated, or put beside a changed copy (`new_versions`);
    of what the course no longer has, those that it moved to old/ (`aside`), or left since they were changed
    (`left`)."""

    copied: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    new_versions: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def pull(original: Path, work: Path) -> Pulled:
    """Sync `original` into `work`, solutions aside; a changed copy is never overwritten, and gets the new
    version beside it. Returns what was done.

    A name that is free gets the original (so a copy that was renamed or deleted comes back fresh, as in `make
    lab`). A copy whose cells are as they were copied, outputs included, is replaced by a newer original. A
    copy that was changed is never touched; a newer original is put beside it, once: 03_matrix_form.new.ipynb,
    then .new-2 and so on. A copy of a notebook that the course no longer has goes to old/ where it
    is as it was copied, and stays where it was changed.
    Raises OSError where nothing can be written; what was done until then is recorded, and no file is half
    written.
    """
    work.mkdir(parents=True, exist_ok=True)
    record, done = _record(work), Pulled()
    try:
        for name in lessons(original):
            content = blank((original / "notebooks" / name).read_bytes())
            newest = digest(content)
            copy, known = work / name, record.get(name, {})
            if _write_new(content, copy):
                done.copied.append(name)
            elif (mine := _digest_of(copy)) == newest:
                pass
            elif mine is not None and mine == known.get("made"):
                _replace(content, copy)
                done.updated.append(name)
            else:
                if known.get("seen") != newest:
                    done.new_versions.append(_write_beside(content, copy).relative_to(work).as_posix())
                record[name] = {**known, "seen": newest}
                continue
            record[name] = {"made": newest, "seen": newest}
        for name in sorted(set(record) - set(lessons(original))):
            mine = _digest_of(work / name)
            if not os.path.lexists(work / name):
                del record[name]
            elif mine is not None and mine == record[name].get("made") and set_aside(work, name):
                done.aside.append(name)
                del record[name]
            else:
                done.left.append(name)
    finally:
        _replace(json.dumps(record, indent=1, sort_keys=True).encode(), work / RECORD)
    return done


def hand_out(original: Path, work: Path) -> list[str]:
    """Names of the assignments that were put into work/assignments/, since they were not there yet; one that
    is there is never touched. Raises OSError where nothing can be written."""
    new = []
    for path in sorted((original / ASSIGNMENTS).glob("*.ipynb")):
        copy = work / ASSIGNMENTS / path.name
        copy.parent.mkdir(exist_ok=True)
        if _write_new(path.read_bytes(), copy):
            new.append(path.name)
    return new


def digest(content: bytes) -> str:
    """What a notebook says: 16 letters that change with its cells and their outputs.

    Not with metadata and counters, which JupyterLab writes anew when a notebook is only opened and saved.
    """
    try:
        cells = json.loads(content.decode("utf-8"))["cells"]
        content = json.dumps([_plain(cell) for cell in cells], sort_keys=True).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # no notebook (any more): every byte counts
    return hashlib.sha256(content).hexdigest()[:16]


def main(arguments: Sequence[str]) -> None:
    """Pull, then become the command. A pull that fails is reported: it keeps nobody from the files that are
    there."""
    original, work, *command = arguments
    work = Path(work)
    try:
        done = pull(Path(original), work)
        aside = f"no longer in the course, moved to {ASIDE}"
        for names, what in ((done.copied, "new"), (done.updated, "brought up to date"), (done.aside, aside)):
            if names:
                print(f"copies in {work}: {len(names)} {what}", flush=True)
        if given := hand_out(Path(original), work):
            print(f"assignments in {work / ASSIGNMENTS}: {', '.join(given)}", flush=True)
        for name in done.new_versions:
            print(f"copies in {work}: changed by the student, the new version is {name}", flush=True)
        for name in done.left:
            print(f"copies in {work}: changed by the student, no longer in the course: {name}", flush=True)
    except Exception as error:  # whatever a student's folder holds, the server must start
        print(f"The copies in {work} could not be brought up to date: {error!r}", flush=True)
    with contextlib.suppress(OSError):  # a full disk: then the words go where the hub's go
        log = os.open(work.parent / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
    os.chdir(work)
    os.execvp(command[0], command)


def _plain(value: Any) -> Any:
    """A cell or a part of it, without what changes by itself, and with its lines in one piece."""
    if isinstance(value, dict):
        own = {"metadata", "execution_count", "id"}
        return {key: _plain(part) for key, part in value.items() if key not in own}
    if isinstance(value, list):
        return "".join(value) if all(isinstance(part, str) for part in value) else [_plain(p) for p in value]
    return value


def _digest_of(copy: Path) -> str | None:
    """The digest of a copy; None where it cannot be read (a folder, no permission): it counts as changed."""
    try:
        return digest(copy.read_bytes())
    except OSError:
        return None


def _write_new(content: bytes, path: Path) -> bool:
    """True where `path` was free and now holds `content`, whole; False where something is there,
    untouched."""
    if os.path.lexists(path):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part(content, path)
    try:
        os.link(part, path)  # fails where the name was taken in the meantime, which a rename would not
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        with open(path, "xb") as file:
            file.write(content)
    finally:
        part.unlink()
    return True


def _replace(content: bytes, path: Path) -> None:
    part = _part(content, path)
    try:
        os.replace(part, path)
    except OSError:
        part.unlink()
        raise


def _part(content: bytes, path: Path) -> Path:
    """The name of a file beside `path` that holds `content`, on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return part


def _write_beside(content: bytes, copy: Path) -> Path:
    """Write `content` to the first free name beside `copy`; return that path."""
    number = 1
    while True:
        ending = ".new.ipynb" if number == 1 else f".new-{number}.ipynb"
        path = copy.with_name(copy.name.removesuffix(".ipynb") + ending)
        if _write_new(content, path):
            return path
        number += 1


def _record(work: Path) -> dict[str, dict[str, str]]:
    """What was copied (`made`) and what was last offered (`seen`) of each lesson; {} where the record is
    damaged."""
    try:
        record = json.loads((work / RECORD).read_text(encoding="utf-8"))
        return {name: entry for name, entry in record.items() if isinstance(entry, dict)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


if __name__ == "__main__":
    main(sys.argv[1:])
