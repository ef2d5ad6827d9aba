"""The learner's progress on disk: one small JSON file, written whole or not at all, shared by several
kernels.

`home()/progress.json`: {"version": 2, "last": NAME, "exercises": {NAME: entry}}. An entry has attempts and
first_pass (a day or null), and where they apply the other fields of FIELDS; `last` was answered last. What
could not be written is kept in this session and written with the next check, or the next look at the
progress. A file of another version keeps all that this version does not know. `progress-copy.json` is the
last good copy: what a damaged file has lost is taken from it.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

from lesson_lib.device import home

VERSION = 2
COPY = "progress-copy.json"
LOCK_WAIT_S = 1.0
LOCK_STALE_S = 10.0  # a lock this old was left by a kernel that died
TROUBLES = (OSError, RuntimeError, ValueError)  # a disk's, an unknown user's home, a path that is none

Entry = dict[str, Any]
Entries = dict[str, Entry]

# What an entry may hold besides attempts and first_pass; all else in it is another version's.
FIELDS: dict[str, type] = {
    "day": str,  # of the last answer
    "row": int,  # right answers in a row, each on its own day: when it returns (schedule.py)
    "answer": str,  # to a prediction, as it was committed
    "sure": bool,  # of that answer, when it was committed
    "slip": str,  # the last mistake that was named
    "met": list,  # all mistakes that were named before the pass, each once
    "stage": int,  # of the last wrong answer: which third of the check it reached
    "hints": list,  # numbers of the hints given
    "solution": str,  # the day on which the solution was seen, where that was before a pass
    "posed": int,  # second problems that were asked
    "second": str,  # the day on which one of them was solved
    "judged": list,  # of an open question: points with a yes, and points
}


@dataclass(frozen=True)
class Event:
    """What happened with one question: an answer, an answer when it returned, a hint, a look at the solution,
    a second problem posed or answered, an open answer judged by its writer, or all of it forgotten."""

    name: str
    what: Literal["answer", "return", "hint", "solution", "posed", "second", "judged", "forget"]
    right: bool = False
    fields: dict[str, Any] = field(default_factory=dict)  # those of the entry that change with it
    day: str = field(default_factory=lambda: date.today().isoformat())


_unsaved: list[Event] = []  # in order
_one_thread = threading.RLock()


def record(event: Event) -> str:
    """Keep what happened; returns a sentence where something is wrong with the file, else ''."""
    with _one_thread:
        _unsaved.append(event)
        return _save()


def forget(*names: str) -> tuple[Entries, str]:
    """Drop the entries of these exercises; return the dropped ones, and a sentence where something is wrong,
    else ''."""
    entries, problem = read()
    dropped = {name: entries[name] for name in names if name in entries}
    if not dropped:
        return dropped, problem
    with _one_thread:
        _unsaved.extend(Event(name, "forget") for name in dropped)
        return dropped, _save() or problem


def after(entry: Entry, event: Event) -> Entry:
    """The entry as the event leaves it.

    Attempts count up to the first pass. A solution that was seen before it is kept with its day: then the
    answer alone is no pass, where a second problem can be asked (`fields` says "counts": False).
    """
    entry = {"attempts": 0, "first_pass": None} | entry
    fields = dict(event.fields)
    counts = fields.pop("counts", True)
    if event.what == "answer":
        if entry["first_pass"] is None:
            entry |= {"attempts": entry["attempts"] + 1, "row": int(event.right and not entry["attempts"])}
            entry |= {"day": event.day} | fields
            if "slip" in fields and fields["slip"] not in entry.get("met", []):
                entry["met"] = [*entry.get("met", []), fields["slip"]]
            entry["first_pass"] = event.day if event.right and counts else None
        if event.right:
            entry.pop("slip", None)
            entry.pop("stage", None)
    elif event.what == "return":
        entry |= {"day": event.day, "row": entry.get("row", 0) + 1 if event.right else 0}
    elif event.what == "hint":
        given = entry.get("hints", [])
        entry["hints"] = given + [n for n in fields["hints"] if n not in given]
    elif event.what == "solution":
        if entry["first_pass"] is None:
            entry.setdefault("solution", event.day)
    elif event.what == "posed":
        entry["posed"] = entry.get("posed", 0) + 1
    elif event.what == "second":
        if event.right:
            entry |= {"second": event.day, "first_pass": entry["first_pass"] or event.day}
    else:
        entry |= fields | {"day": event.day}
    return entry


def read() -> tuple[Entries, str]:
    """All entries, those not yet written included, and a sentence where something is wrong with the file,
    else ''."""
    try:
        return load()
    except TROUBLES as error:
        return _with({}, _unsaved), f"your progress could not be read ({reason(error)})"


def entry_of(name: str) -> tuple[Entry, str]:
    """The entry of one question, {} where there is none; and what `read` says."""
    entries, problem = read()
    return entries.get(name, {}), problem


def last() -> str:
    """The exercise that was answered last, '' where none is known."""
    with _one_thread:
        answered = _last(_unsaved)
        try:
            return answered or str(_read(home() / "progress.json").more.get("last", ""))
        except TROUBLES:
            return answered


def load() -> tuple[Entries, str]:
    """What `read` returns; raises one of TROUBLES where there is a file that cannot be read."""
    with _one_thread:
        problem = _save() if _unsaved else ""
        content = _read(home() / "progress.json")
        if content.damaged:
            problem = problem or _save()
        return _with(content.entries, _unsaved), problem


def write_whole(path: Path, text: str) -> None:
    """Write a text file, or leave what was there: no half file, no scrap. Raises OSError."""
    _written(path, text, lambda fresh: _replace(fresh, path))


def reason(error: BaseException) -> str:
    """Why it went wrong, in the system's words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _save() -> str:
    """Add to the file what is not in it yet, and set a damaged one aside; a sentence where something is
    wrong, else ''."""
    problem = ""
    try:
        folder = home()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "progress.json"
        with _lock(folder / "progress.lock") as still_ours:

            def put(fresh: Path) -> None:
                nonlocal problem
                if not still_ours():  # this computer slept, say; another kernel has gone on without us
                    raise TimeoutError("another kernel took over")
                damaged_copy = _set_aside(path) if stored.damaged else None
                try:
                    _replace(fresh, path)
                except OSError:
                    if damaged_copy is not None:
                        os.replace(damaged_copy, path)  # what could be read of it is nowhere else
                    raise
                if damaged_copy is not None:
                    problem = (
                        f"the progress file was damaged; it is kept as {damaged_copy.name} in {folder.name}, "
                        "what could be read of it was taken over"
                        + ", the rest from its last good copy"
                        * stored.copied
                    )

            stored = _read(path)
            exercises = dict(stored.unknown)
            for name, entry in _with(stored.entries, _unsaved).items():
                exercises[name] = stored.unknown.get(name, {}) | entry
            answered = _last(_unsaved)
            content = {"version": VERSION} | stored.more | ({"last": answered} if answered else {})
            text = json.dumps(content | {"exercises": exercises}, indent=1, sort_keys=True) + "\n"
            _written(path, text, put)
            with contextlib.suppress(OSError):  # a copy is no reason to worry anybody
                copy = folder / COPY
                _written(copy, text, lambda fresh: _replace(fresh, copy), safe=False)
    except TROUBLES as error:
        return f"your progress could not be saved ({reason(error)}); it is kept until this kernel ends"
    _unsaved.clear()
    return problem


def _last(events: list[Event]) -> str:
    done = [event.name for event in events if event.what in ("answer", "return", "second", "judged")]
    return done[-1] if done else ""


def _with(entries: Entries, events: list[Event]) -> Entries:
    entries = {name: dict(entry) for name, entry in entries.items()}
    for event in events:
        if event.what == "forget":
            entries.pop(event.name, None)
        else:
            entries[event.name] = after(entries.get(event.name, {}), event)
    return entries


@dataclass(frozen=True)
class _Content:
    """What a progress file holds."""

    entries: Entries = field(default_factory=dict)
    damaged: bool = False
    unknown: Entries = field(default_factory=dict)  # a newer version's, which count nothing that we know
    more: dict[str, Any] = field(default_factory=dict)  # what stands beside the exercises
    copied: bool = False  # whether a part of it comes from the last good copy


def _read(path: Path) -> _Content:
    """What a progress file holds; what a damaged one has lost comes from its last good copy. Nothing is
    changed."""
    content = _parsed(path)
    if not content.damaged:
        return content
    try:
        copy = _parsed(path.with_name(COPY))
    except OSError:
        return content
    if copy.damaged or not copy.entries.keys() - content.entries.keys():
        return content
    entries, unknown = copy.entries | content.entries, copy.unknown | content.unknown
    return _Content(entries, True, unknown, copy.more | content.more, copied=True)


def _parsed(path: Path) -> _Content:
    """The entries that are good, whether the file is damaged, and what a newer version has put there."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return _Content()
    except OSError:  # a folder of that name: IsADirectoryError, on Windows PermissionError
        if path.is_dir():
            return _Content(damaged=True)
        raise
    try:
        more = json.loads(text.decode("utf-8"))
        exercises = more.pop("exercises")
        good = {name: entry for name, entry in exercises.items() if _valid(entry)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _Content(damaged=True)
    others = {name: entry for name, entry in exercises.items() if name not in good}
    newer = type(more.get("version")) is int and more["version"] > VERSION
    if newer and all(isinstance(entry, dict) for entry in others.values()):
        return _Content(good, unknown=others, more=more)
    return _Content(good, damaged=bool(others), more=more | {"version": VERSION})


def _valid(entry: Any) -> bool:
    if not isinstance(entry, dict) or type(entry.get("attempts")) is not int or entry["attempts"] < 0:
        return False
    if any(type(entry.get(name, kind())) is not kind for name, kind in FIELDS.items()):
        return False
    days = (entry.get(name) for name in ("first_pass", "day", "solution", "second"))
    try:
        return all(day is None or bool(date.fromisoformat(day)) for day in days)
    except (TypeError, ValueError):
        return False


def _set_aside(path: Path) -> Path:
    """Rename the damaged file to the first free name, and return that; nothing in it is lost."""
    number = 1
    while (target := path.with_name(f"progress-damaged-{number}.json")).exists():
        number += 1
    os.replace(path, target)
    return target


def _written(path: Path, text: str, put: Callable[[Path], None], *, safe: bool = True) -> None:
    """Write `text` beside `path`, down to the disk where it must be `safe`, then let `put` move it there; in
    any trouble the new file goes."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(fresh, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            if safe:
                os.fsync(file.fileno())
        put(fresh)
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
def _lock(path: Path) -> Iterator[Callable[[], bool]]:
    """Only one kernel at a time reads, adds and writes. A lock that never goes away is taken over.

    Gives a function that says whether the lock is still ours: it is not where we were asleep for so long that
    another kernel took it over.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
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
    os.close(descriptor)
    identity = _identity(path)

    def still_ours() -> bool:
        return identity is not None and _identity(path) == identity

    try:
        yield still_ours
    finally:
        if still_ours():
            with contextlib.suppress(OSError):
                path.unlink()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns  # a number alone may be given again to the next file
