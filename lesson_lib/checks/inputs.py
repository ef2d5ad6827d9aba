"""Inputs for checks: short numbers, the same on every machine, whatever defaults a session has set."""

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import getsource
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# added to every seed; follows a check into its own thread
_shift: ContextVar[int] = ContextVar("shift", default=0)


@contextmanager
def reseeded(n: int) -> Iterator[None]:
    """Inside, `drawn` gives other numbers for each seed, not rounded, the same ones for the same `n`; n = 0
    changes nothing.

    >>> with reseeded(1):
    ...     other = drawn(7, 3)
    >>> bool((other == drawn(7, 3)).all())
    False
    """
    before = _shift.set(1_000_003 * n)  # farther than the seeds of all checks lie apart: none is met again
    try:
        yield
    finally:
        _shift.reset(before)


def table(rows: Any) -> Tensor:
    """A float32 tensor on the CPU."""
    return torch.tensor(rows, dtype=torch.float32, device="cpu")


def drawn(seed: int, *shape: int, spread: float = 1.0) -> Tensor:
    """Random numbers with one decimal, normally distributed, from their own generator; `reseeded` gives
    others."""
    generator = torch.Generator("cpu").manual_seed(seed + _shift.get())
    numbers = torch.randn(*shape, generator=generator, dtype=torch.float32, device="cpu") * spread
    # Seeds of a check are chosen so that nothing ties; with any other seed, one decimal would tie now and
    # then.
    return numbers if _shift.get() else (numbers * 10).round() / 10


def primes(*shape: int) -> Tensor:
    """Different primes, small and large ones side by side: a value that lands in the wrong place shows."""
    numbers = [p for p in range(2, 400) if all(p % q for q in range(2, int(p**0.5) + 1))]
    count = torch.Size(shape).numel()
    return table([numbers[7 * i % count if count % 7 else i] for i in range(count)]).reshape(shape)


def source_of(function: Callable) -> str:
    """The text of a function, as a learner would type it."""
    return textwrap.dedent(getsource(function)).rstrip()


class _Numbers(TorchFunctionMode):
    """Counts the numbers that torch makes inside a `with`, call by call."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.count += result.numel()
        return result


def numbers_made(call: Callable[[], Any]) -> int:
    """How many numbers torch makes in a call."""
    with _Numbers() as counter:
        call()
    return counter.count
