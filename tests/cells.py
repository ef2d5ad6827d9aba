"""Cells of a notebook in a fork of this process, which has torch and what else notebooks import: no kernel,
which takes four seconds to start."""

import ast
import os
import pickle
import symtable
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import ipywidgets
import matplotlib.pyplot
import sympy
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from lesson_lib.checks import engine
from lesson_lib.cli.sources import ROOT

LOADED = ipywidgets, matplotlib.pyplot, sympy  # once, and not in every fork

SETTLED = {"LESSON_BUILD": "1", "LESSON_DEVICE": "cpu", "LESSON_PROGRESS": "off", "LESSON_STEPS": "quick"}


class CellError(Exception):
    """A cell ended with an error; the text is IPython's."""


def run(cells: Sequence[str], folder: Path = ROOT / "notebooks") -> list[str]:
    """The texts of what the cells show last, run one after the other in IPython, in that folder, with short
    trainings and an empty LESSON_HOME. Raises CellError at the first that ends with an error."""
    read, write = os.pipe()
    if pid := os.fork():
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(pid, 0)
        texts, error = pickle.loads(answer) if answer else ([], "the process ended")
        if error:
            raise CellError(error)
        return texts
    try:
        with tempfile.TemporaryDirectory(prefix="lesson_home_") as empty, os.fdopen(write, "wb") as pipe:
            os.environ |= SETTLED | {"LESSON_HOME": empty, "IPYTHONDIR": empty}
            os.chdir(folder)
            for known in (engine._PASSED, engine._JUDGED, engine._LATEST):
                known.clear()  # as in a new kernel, which has checked nothing
            pickle.dump(_here(cells), pipe)
    finally:
        os._exit(0)


def _here(cells: Sequence[str]) -> tuple[list[str], str]:
    """What the cells show, and the error of the one that ends with one."""
    texts = []
    try:
        shell = InteractiveShell.instance()
        for source in cells:
            with capture_output():
                done = shell.run_cell(source, store_history=True)
            if done.error_before_exec or done.error_in_exec:
                error = done.error_before_exec or done.error_in_exec
                return texts, f"{type(error).__name__}: {error}\n{source}"
            texts.append("" if done.result is None else repr(done.result))
    except BaseException:
        return texts, traceback.format_exc()
    return texts, ""


def needed(cells: Sequence[str], wanted: Sequence[int]) -> list[int]:
    """The positions of the wanted cells, and of all earlier ones that these stand on: those that bind a name
    which they read.

    >>> needed(["import a", "x = a.b", "long = x * 2", "def f(): return x", "print(long)"], [3])
    [0, 1, 3]
    """
    binds, reads = zip(*(_names(plain(source)) for source in cells), strict=True)
    kept = set(wanted)
    for i in sorted(range(len(cells)), reverse=True):
        if i not in kept and any(binds[i] & reads[j] for j in kept if j > i):
            kept.add(i)
    return sorted(kept)


def plain(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!")))


def _names(source: str) -> tuple[set[str], set[str]]:
    """The names that a cell binds, or changes in place by a method or an index; and those of the notebook
    that it or its functions read."""
    tree, table = ast.parse(source), symtable.symtable(source, "a cell", "exec")
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            binds |= set(import_module(node.module).__all__)
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            binds |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return binds, {s.get_name() for s in table.get_symbols() if s.is_referenced()} | set(global_names(table))


def global_names(table: symtable.SymbolTable) -> Iterator[str]:
    """Names of the notebook that functions and comprehensions in this scope read."""
    for inner in table.get_children():
        yield from (s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced())
        yield from global_names(inner)
