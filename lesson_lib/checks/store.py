"""The learner's progress on disk: one small JSON file, written whole or not at all, shared by several kernels.

`home()/progress.json`: {"version": 1, "exercises": {NAME: {"attempts": 3, "first_pass": "2026-11-21" or null}}}.
What could not be written is kept in this session and written with the next check.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from lesson_lib.device import home

VERSION = 1
LOCK_WAIT_S = 1.0
LOCK_STALE_S = 10.0  # a lock this old was left by a kernel that died

Entries = dict[str, dict[str, Any]]

_unsaved: list[tuple[str, bool, str]] = []


def record(name: str, passed: bool) -> str:
    """Count an attempt at exercise `name`; returns a sentence where something is wrong with the file, else ''."""
    _unsaved.append((name, passed, date.today().isoformat()))
    try:
        folder = home()
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / "progress.lock"):
            entries, said = _read(folder / "progress.json")
            _write(folder / "progress.json", _with(entries, _unsaved))
    except (OSError, RuntimeError, ValueError) as error:
        return f"your progress could not be saved ({_reason(error)}); it is kept until this kernel ends"
    _unsaved.clear()
    return said


def read() -> tuple[Entries, str]:
    """All entries, those not yet written included, and a sentence where something is wrong with the file, else ''."""
    try:
        entries, said = _read(home() / "progress.json")
    except (OSError, RuntimeError, ValueError) as error:
        entries, said = {}, f"your progress could not be read ({_reason(error)})"
    return _with(entries, _unsaved), said


def _with(entries: Entries, events: list[tuple[str, bool, str]]) -> Entries:
    entries = {name: dict(entry) for name, entry in entries.items()}
    for name, passed, day in events:
        entry = entries.setdefault(name, {"attempts": 0, "first_pass": None})
        entry["attempts"] += 1
        if passed and entry["first_pass"] is None:
            entry["first_pass"] = day
    return entries


def _read(path: Path) -> tuple[Entries, str]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}, ""
    except IsADirectoryError:
        return {}, _set_aside(path)
    try:
        content = json.loads(text.decode("utf-8"))
        found = content["exercises"]
        good = {name: entry for name, entry in found.items() if _valid(entry)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}, _set_aside(path)
    return good, "" if len(good) == len(found) else _set_aside(path)


def _valid(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and type(entry.get("attempts")) is int
        and entry["attempts"] >= 0
        and isinstance(entry.get("first_pass"), (str, type(None)))
    )


def _set_aside(path: Path) -> str:
    """Rename the damaged file to the first free name; nothing in it is lost."""
    number = 1
    while (kept := path.with_name(f"progress-damaged-{number}.json")).exists():
        number += 1
    os.replace(path, kept)
    return f"the progress file was damaged; it is kept as {kept.name} in {path.parent.name}, what could be read of it was taken over"


def _write(path: Path, entries: Entries) -> None:
    fresh = path.with_name(f"progress.{os.getpid()}.tmp")
    text = json.dumps({"version": VERSION, "exercises": entries}, indent=1, sort_keys=True)
    try:
        with open(fresh, "w", encoding="utf-8", newline="\n") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        _replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def _replace(fresh: Path, path: Path) -> None:
    for wait_s in (0.02, 0.05, 0.1, 0.2):
        try:
            return os.replace(fresh, path)
        except PermissionError:  # Windows, while another program reads the file
            time.sleep(wait_s)
    return os.replace(fresh, path)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Only one kernel at a time reads, adds and writes. A lock that never goes away is taken over."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > LOCK_STALE_S:
                    path.unlink()
                    continue
        except PermissionError:
            if os.name != "nt" or time.monotonic() > deadline:  # Windows: the file is just being deleted
                raise
        if time.monotonic() > deadline:
            raise TimeoutError(f"another kernel holds {path.name}")
        time.sleep(0.01)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
