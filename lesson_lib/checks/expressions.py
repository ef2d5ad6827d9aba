"""Numbers as learners type them: 0.5, '12 * 34', 'e^2 / (1 + e^2)', '5 %'. Nothing is executed."""

import ast
import math
import numbers
import operator
import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import Any

import torch

from lesson_lib.checks.values import count, described, fixed, is_a, is_numpy, ordinary

KNOWN = {"e": math.e, "pi": math.pi, "exp": math.exp, "sqrt": math.sqrt, "log": math.log, "ln": math.log}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
LONGEST = 200
HELP = "type a number such as 0.5, or an expression in quotes with + - * / **, exp(), sqrt(), log(), e and pi"


def number_in(answer: Any) -> tuple[float | None, str]:
    """The number that `answer` stands for and '', or None and a sentence on why it stands for none.

    >>> number_in("12 * 34")
    (408.0, '')
    """
    if type(answer) is bool:
        return None, f"{answer} is a truth value; {HELP}"
    if is_a(answer, torch.Tensor) or is_numpy(answer):
        if count(answer) != 1:
            return None, f"one number is asked for, you handed in {described(answer)}"
        answer = ordinary(answer)
    elif not is_a(answer, (str, numbers.Number, Decimal)):
        return None, f"one number is asked for, you handed in {described(answer)}; {HELP}"
    try:
        number = _value_of(str.__str__(answer)) if is_a(answer, str) else float(answer)
    except OverflowError:
        return None, "that number is too large for any computer's float: far beyond the answer"
    except ZeroDivisionError:
        return None, "that expression divides by zero"
    except Exception as error:
        reason = str(error) if isinstance(error, _Unknown) else "that is not one number"
        return None, f"{reason}; {HELP}"
    if not math.isfinite(number):
        return None, f"{fixed(number)} is not a number that could be right; {HELP}"
    return number, ""


class _Unknown(ValueError):
    """A part of an expression that has no meaning here."""


@lru_cache(maxsize=4096)  # a generator looks at the same few numbers again and again
def _value_of(text: str) -> float:
    if len(text) > LONGEST:  # before each of its characters is looked at
        raise _Unknown(f"that expression has more than {LONGEST} characters")
    text = unicodedata.normalize("NFKC", text.replace("²", "**2").replace("³", "**3")).strip()
    for sign, meaning in {
        "^": "**",
        "×": "*",
        "·": "*",
        "÷": "/",
        "−": "-",
        "√": "sqrt",
        "math.": "",
        "torch.": "",
    }.items():
        text = text.replace(sign, meaning)
    part = 1.0
    if text.endswith("%"):
        text, part = text[:-1], 0.01
    if re.search(r"\d,\d", text):
        raise _Unknown("a comma is no decimal point here: write 0.5 and 1000")
    return part * _evaluated(ast.parse(text.strip(), mode="eval").body)


def _evaluated(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)
    if isinstance(node, ast.Name) and isinstance(KNOWN.get(node.id), float):
        return KNOWN[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_evaluated(node.operand))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and len(node.args) == 1
        and not node.keywords
    ):
        function = KNOWN.get(node.func.id)
        if callable(function):
            return function(_evaluated(node.args[0]))
    raise _Unknown(f"I cannot read `{ast.unparse(node)}`")
