"""Printing for lessons: the same digits on every machine."""

import inspect
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

CLOSE = 2.0**-22  # two roundings of float32, as a share of the number


def show(*values: Any, **named: Any) -> None:
    """Print tensors and numbers at four decimals, on the CPU, without -0; a name given as keyword is printed
    in front.

    >>> show(weights=torch.tensor([[0.25, -0.00001]]))
    weights (1, 2)
      0.2500  0.0000
    """
    for value in values:
        print(_text(value))
    for name, value in named.items():
        text = _text(value)
        if isinstance(value, Tensor) and value.ndim:
            print(f"{name} {tuple(value.shape)}\n" + "\n".join(f"  {line}" for line in text.splitlines()))
        else:
            print(f"{name} = {text}")


def show_source(*functions: Callable) -> Any:
    """The code of functions or classes, without their docstrings and without notes to the linter,
    highlighted where the notebook can."""
    from IPython.display import Code

    return Code("\n\n\n".join(map(_code, functions)), language="python")


def _code(function: Callable) -> str:
    import ast
    import textwrap

    source = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    lines = source.splitlines()
    if ast.get_docstring(node) is not None:
        text = node.body[0]
        del lines[text.lineno - 1 : text.end_lineno]
    return "\n".join(line.split("  # noqa")[0] for line in lines)


def _text(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"{_round(value):.4f}" if isinstance(value, float) else str(value)
    value = value.detach().cpu()
    if not value.dtype.is_floating_point:
        return _rows(value.int() if value.dtype == torch.bool else value, str)
    return _rows(value.double(), lambda number: f"{_round(number):.4f}")


def _round(number: float) -> float:
    """At four decimals. While notebooks are built, a float32 that another processor may round otherwise is
    refused."""
    if "LESSON_BUILD" in os.environ and _on_an_edge(number):
        raise ValueError(
            f"show: {number!r} is so near to where its fourth decimal turns that another processor may round"
            " it the other way; show another number"
        )
    return round(number, 4) + 0.0  # -0.0 + 0.0 is 0.0


def _on_an_edge(number: float) -> bool:
    """Whether it was computed in float32 and lies within a rounding or two of where its fourth decimal turns.

    A number that four decimals hold whole, and an exact tie such as 1/32, are taken for exact: the same
    everywhere.
    """
    away = abs((number * 1e4) % 1 - 0.5) * 1e-4
    inexact = (
        number != round(number, 4)
        and torch.tensor(number, dtype=torch.float32, device="cpu").item() == number
    )
    return inexact and 0 < away < CLOSE * abs(number)


def _rows(value: Tensor, write: Callable) -> str:
    if value.ndim == 0:
        return write(value.item())
    if value.ndim > 2:
        return "\n\n".join(_rows(part, write) for part in value)
    cells = [
        [write(number) for number in row] for row in (value[None] if value.ndim == 1 else value).tolist()
    ]
    width = max((len(cell) for row in cells for cell in row), default=0)
    return "\n".join("  ".join(cell.rjust(width) for cell in row) for row in cells)
