"""Answers that every exercise must take, and wrong ones to open questions, by exercise; functions and texts
stand beside each chapter's tests, and the rest beside the questions."""

import ast
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from inspect import isbuiltin
from pathlib import Path
from typing import Any

from lesson_lib.checks.engine import exercises
from lesson_lib.checks.inputs import source_of
from lesson_lib.checks.short_answers import Choice, Number

_PATHS = sorted(Path(__file__).parent.glob("chapters/*/right_answers.py"))
_CHAPTERS = [import_module(f"tests.chapters.{path.parent.name}.right_answers") for path in _PATHS]
_SHORT = {  # what is answered in short says itself what is right, and in which other ways
    name: (asked.answer, f"({asked.answer.upper()})", asked.options[asked.answer])
    if isinstance(asked, Choice)
    else (asked.value, asked.answer, *asked.also)
    for name, asked in exercises().items()
    if isinstance(asked, Choice | Number)
}
RIGHT = _SHORT | {name: answers for chapter in _CHAPTERS for name, answers in chapter.RIGHT.items()}
WRONG = {name: texts for chapter in _CHAPTERS for name, texts in getattr(chapter, "WRONG", {}).items()}

_SAME = {  # one operation, however it is spelled
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "inner"), "MatMult"),
    **{"mul": "Mult", "multiply": "Mult", "div": "Div", "divide": "Div", "add": "Add", "sub": "Sub"},
    **{"neg": "USub", "pow": "Pow", "T": "mT", "t": "mT", "transpose": "mT", "swapaxes": "mT"},
    **dict.fromkeys(("ListComp", "GeneratorExp", "SetComp", "DictComp", "For", "While"), "loop"),
    **{"IfExp": "If", "unsqueeze": "", "contiguous": "", "logical_and": "BitAnd", "logical_not": "Invert"},
}


def operations(code: ast.AST, defined: dict[str, ast.AST] | None = None) -> Counter[str]:
    """How often each operator, loop and call stands in an answer and in what it calls of `defined`; names,
    layout and the spelling of an operator make no difference."""
    found, code = list[str](), (defined or {}).get(getattr(code, "id", ""), code)
    if isinstance(code, ast.Name | ast.Attribute):  # a function of torch's
        return Counter([ast.unparse(code)])
    for node in ast.walk(code):
        if isinstance(getattr(node, "operand", None), ast.Constant):
            continue  # -1
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.AugAssign | ast.BoolOp):
            found.append(type(node.op).__name__)
        elif isinstance(node, ast.Compare):
            found += [type(op).__name__ for op in node.ops]
        elif isinstance(node, ast.Name) and node.id in (defined or {}):
            found += operations(node, {k: v for k, v in defined.items() if k != node.id}).elements()
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") not in (defined or {}):
            found.append(getattr(node.func, "attr", getattr(node.func, "id", "call")))
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            found.append(node.attr)
        elif type(node).__name__ in _SAME:
            found.append(type(node).__name__)
    return Counter(name for name in (_SAME.get(name, name) for name in found) if name)


def operations_of_answers() -> Iterator[tuple[str, list[Counter[str]]]]:
    """Each exercise with the operations of its right answers, read off the chapters' text; what a chapter
    imports, off its own."""
    for path in _PATHS:
        lines = ast.parse(path.read_text("utf-8")).body
        defined = {line.name: line for line in lines if isinstance(line, ast.FunctionDef | ast.ClassDef)}
        for line in lines:
            if isinstance(line, ast.Assign) and line.targets[0].id == "RIGHT":
                for name, answers in zip(line.value.keys, line.value.values, strict=True):
                    pairs = zip(answers.elts, RIGHT[name.value], strict=True)
                    yield name.value, [operations(_code(*pair, defined), defined) for pair in pairs]


def _code(written: ast.AST, answer: Any, defined: dict[str, ast.AST]) -> ast.AST:
    here = getattr(written, "id", "") in defined or not isinstance(written, ast.Name | ast.Attribute)
    return written if here or isbuiltin(answer) else ast.parse(source_of(answer)).body[0]
