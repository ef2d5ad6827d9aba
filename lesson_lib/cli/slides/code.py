"""What of a cell's code is shown on a slide."""

import ast
import re

from nbformat import NotebookNode

from lesson_lib.cli.slides.outputs import CODE_LINES


def prepares_figure(cell: NotebookNode, after: NotebookNode | None) -> bool:
    """Whether a cell that shows nothing computes what the next one draws."""
    if (
        cell.get("outputs")
        or after is None
        or after.cell_type != "code"
        or re.search(r"^(?:def|class) ", cell.source, re.M)
    ):
        return False
    return any("image/png" in out.get("data", {}) for out in after.get("outputs", []))


def definitions(source: str) -> str:
    """The functions and classes that a long cell defines, if they are short enough to be shown without the
    rest."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ""
    lines = source.splitlines()
    found = [n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    shown = "\n\n".join("\n".join(lines[n.lineno - 1 : n.end_lineno]) for n in found)
    return shown if len(shown.splitlines()) <= CODE_LINES else ""


def only_prepares(source: str) -> bool:
    """Whether a cell only imports, or sets the seed."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    return all(isinstance(n, ast.Import | ast.ImportFrom) or "manual_seed" in ast.unparse(n) for n in body)


def signature(lines: list[str]) -> list[str]:
    """The first lines of a long function or class, as far as its body, and how much is left out."""
    end = next((i for i, line in enumerate(lines, 1) if line.rstrip().endswith(":") and i < 14), 8)
    end = end if end > 5 else 12  # a short signature says too little
    indent = len(lines[end]) - len(lines[end].lstrip())
    return [*lines[:end], " " * indent + f"...  # {len(lines) - end} more lines: key C"]


def code_chunks(lines: list[str], room: int) -> list[list[str]]:
    """Lines of code in pieces of at most so many lines, cut where the indentation is smallest."""
    if len(lines) <= room:
        return [lines]
    middle = range(max(1, len(lines) - min(20, len(lines) - 1)), min(room, len(lines) - 1) + 1) or [
        min(room, len(lines) // 2)
    ]
    depth = {
        i: (
            len(lines[i]) - len(lines[i].lstrip())
            if lines[i].strip(" ()[]{}:,") and lines[i].strip()[0] not in ")]}"
            else 99
        )
        for i in middle
    }
    cut = min(middle, key=lambda i: (depth[i], abs(i - len(lines) / 2)))
    return [lines[:cut], *code_chunks(lines[cut:], 20)]
