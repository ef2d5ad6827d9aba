"""Isolation of an answer: its output is captured and kept short, the session's state is restored."""

import builtins
import gc
import io
import math
import operator
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks import sandbox

CHECK = "check"  # the thread in which an answer runs
LINES, CHARACTERS = 10, 1000  # of what an answer prints


class Page:
    """What an answer prints on one step's inputs: the beginning is kept, the rest is counted. And its
    warnings, which come only once."""

    def __init__(self) -> None:
        self.others = set(threading.enumerate())
        self.warned: list[str] = []
        self.restart()

    def owns(self) -> bool:
        """True in the thread of the answer, in threads that it has started, and anywhere in a trial."""
        return sandbox.inside() or threading.current_thread() not in self.others

    def restart(self) -> None:
        """Start capturing the output of the next case."""
        self.open, self.begun, self.characters, self.lines = True, "", 0, 0

    def shut(self) -> None:
        """Stop capturing: later calls repeat this case."""
        self.open = False

    def add(self, text: str) -> None:
        """One more piece; a trial tells the session about the first ones."""
        if not self.open or not text:
            return
        first = len(self.begun) <= CHARACTERS
        self.begun += text[: CHARACTERS + 1] if first else ""
        self.characters += len(text)
        self.lines += text.count("\n")
        if first:
            more = len(self.begun) > CHARACTERS or self.lines > LINES
            sandbox.tell(printed=self._beginning() + "\n... and more" * more)

    def warn(self, message: Any, category: type, *location: Any, **more: Any) -> None:
        """Keep one more warning, without file and line, which differ from machine to machine."""
        text = f"{category.__name__}: {message}"[:300]
        if text not in self.warned:
            self.warned = [*self.warned, text][:3]

    @property
    def rows(self) -> dict[str, str]:
        """Rows for the result card: captured output and warnings."""
        rows = {"printed": self._text(), "warns": "\n".join(self.warned)}
        return {label: text for label, text in rows.items() if text}

    def _text(self) -> str:
        """The first lines, and how many more there were."""
        beginning, more = self._beginning(), self.lines - LINES
        if more > 0:
            return f"{beginning}\n... and {more:,} more {'line' if more == 1 else 'lines'}"
        more = self.characters - CHARACTERS
        return f"{beginning}\n... and {more:,} more characters" if more > 0 else beginning

    def _beginning(self) -> str:
        """The first lines and characters, without memory addresses: the same on every machine."""
        text = "\n".join(self.begun[:CHARACTERS].split("\n")[:LINES]).rstrip()
        return re.sub(r"0x[0-9a-fA-F]{4,}", "0x...", text)


class _Channel(io.TextIOBase):
    """The session's stdout or stderr while an answer runs. Threads that are older than the page keep it."""

    encoding = "utf-8"

    def __init__(self, page: Page, before: Any) -> None:
        self.page, self.before, self.over = page, before, False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.over or not self.page.owns():
            return self.before.write(text)
        self.page.add(str(text))
        return len(text)


@contextmanager
def printing(page: Page) -> Iterator[None]:
    """Inside, what is printed goes to the page; so do warnings, and what is displayed, as text."""

    def failed(thread: Any) -> None:
        page.add(f"a thread stops with {thread.exc_type.__name__}: {thread.exc_value}\n")

    before, hook = (sys.stdout, sys.stderr), threading.excepthook
    channels = [_Channel(page, stream) for stream in before]
    pictures = getattr(sandbox.notebook(), "display_pub", None)
    with warnings.catch_warnings():
        warnings.showwarning = page.warn
        threading.excepthook = lambda thread: failed(thread) if page.owns() else hook(thread)
        sys.stdout, sys.stderr = channels
        if pictures is not None:
            pictures.publish = lambda data, *more, **options: page.add(f"{data.get('text/plain', '')}\n")
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            threading.excepthook = hook
            for channel in channels:
                channel.over = True
            if pictures is not None:
                vars(pictures).pop("publish", None)


class Functions:
    """The functions of Python, of torch and of this library as they are now."""

    def __init__(self) -> None:
        self.python = vars(builtins)
        self.builtins = {name: thing for name, thing in self.python.items() if callable(thing)}
        self.own = [(owner, vars(owner), dict(vars(owner))) for owner in _owners()]
        self.methods = set(vars(Tensor))

    def put_back(self) -> str | None:
        """Restore the functions that were replaced since; return the name of the first, such as
        'torch.softmax', or None."""
        replaced = []
        for name, function in self.builtins.items():  # first: all that follows is written in them
            if self.python.get(name) is not function:
                self.python[name] = function  # `setattr` may be gone
                replaced += [(builtins, name)]
        for owner, now, own in self.own:
            if len(now) == len(own) and all(map(operator.is_, now.values(), own.values())):
                continue  # nearly always, and fast
            for name, function in own.items():
                new = now.get(name)
                if new is function or not callable(function) or _wrapped(new, function):
                    continue
                if (owner, name) != (torch, "Storage"):  # that one follows the default dtype
                    setattr(owner, name, function)
                    replaced += [(owner, name)]
        for name in set(vars(Tensor)) - self.methods:
            if hasattr(torch._C.TensorBase, name):  # most methods stand there; a new one hides them
                delattr(Tensor, name)
                replaced += [(Tensor, name)]
        return full_name(*replaced[0]) if replaced else None


def full_name(owner: Any, name: str) -> str:
    """A function's name as one writes it: 'torch.softmax', 'torch.Tensor.softmax', 'print'."""
    if owner is builtins:
        return name
    return f"{'torch.Tensor' if owner is Tensor else owner.__name__}.{name}"


_loaded: tuple[list[str], list[str]] = ([], [])  # names of modules, and those of this library


def _owners() -> list[Any]:
    """The modules and classes whose functions an answer could replace: Python's, torch's, this library's."""
    global _loaded
    if _loaded[0] != (names := list(sys.modules)):  # thousands, and nearly always the same
        _loaded = (names, [name for name in names if name[:10] == "lesson_lib" and name[10:11] in ("", ".")])
    own = [sys.modules.get(name) for name in _loaded[1]]
    own = [module for module in own if type(module) is ModuleType]
    judges = [module for module in own if __package__ in module.__name__]
    kinds = [
        thing
        for module in judges
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__module__ == module.__name__
    ]
    return [math, torch, Tensor, torch.nn.functional, *own, *kinds]


def _wrapped(new: Any, own: Any) -> bool:
    """True for torch's own wrapper around a function of its own: it puts some when more of it is imported."""
    if type(new) is not FunctionType or not new.__code__.co_filename.startswith(_TORCH):
        return False
    return vars(new).get("__wrapped__") is own


_TORCH = os.path.join(os.path.dirname(torch.__file__), "")


def _environment() -> dict[str, str]:
    """The environment variables, without those that torch sets by itself when a part of it is first used."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "TRITON"))}


def _set_environment(before: dict[str, str]) -> None:
    for name in set(_environment()) - set(before):
        del os.environ[name]
    os.environ.update(before)


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


# What an answer may change: what it is called, how it is read, how it is put back. To put one back may import
# modules that add to the environment, so this one comes last.
STATES: tuple[tuple[str, Callable[[], Any], Callable[[Any], Any]], ...] = (
    ("the working folder", os.getcwd, os.chdir),
    ("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    ("garbage collection", gc.isenabled, lambda before: gc.enable() if before else gc.disable()),
    ("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    ("the number of threads", torch.get_num_threads, torch.set_num_threads),
    (
        "deterministic algorithms",
        _deterministic,
        lambda before: torch.use_deterministic_algorithms(before[0], warn_only=before[1]),
    ),
    (
        "torch's print options",
        lambda: dict(vars(torch._tensor_str.PRINT_OPTS)),
        lambda before: vars(torch._tensor_str.PRINT_OPTS).update(before),
    ),
    ("environment variables", _environment, _set_environment),
    ("sys.path", lambda: list(sys.path), lambda before: sys.path.__setitem__(slice(None), before)),
)


@contextmanager
def restoring(changes: dict[str, str]) -> Iterator[None]:
    """Snapshot the interpreter's state, restore it on exit, and write into `changes` what had changed.

    A variable of the notebook that was assigned keeps its new value. One that was deleted comes back, and so
    does what was imported and then hidden by an assignment, such as `torch` or `check`.
    """
    main, modules, threads = vars(sys.modules["__main__"]), dict(sys.modules), set(threading.enumerate())
    names = dict(main)
    before = [(what, _read(read), read, write) for what, read, write in STATES]
    try:
        yield
    finally:
        changed = [what for what, old, read, _ in before if _read(read) != old]
        for _, old, read, write in before:
            if _read(read) != old:
                with suppress(OSError, TypeError):  # a folder that was deleted, by now or before
                    write(old)
        for name in modules.keys() - sys.modules.keys():
            sys.modules[name] = modules[name]
        lost = [name for name in names if name not in main or _hidden(names[name], main, name)]
        main.update({name: names[name] for name in lost})
        changed += [f"`{name}`" for name in lost if not name.startswith("_")]
        if changed:
            changes["put back"] = f"{', '.join(changed[:10])}: your function changes that"
        new = [thread for thread in threading.enumerate() if thread not in threads]
        left = sum(type(thread) is threading.Thread and thread.name != CHECK for thread in new)
        if left:
            changes["still runs"] = f"{'a thread' if left == 1 else f'{left} threads'} of your function's"


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except OSError:  # there is no working folder any more
        return None


def _hidden(old: Any, main: dict[str, Any], name: str) -> bool:
    """True where a module, or a function from one, is no longer found under its name."""
    imported = type(old) is ModuleType or (type(old) is FunctionType and old.__globals__ is not main)
    return imported and main[name] is not old
