"""Running somebody else's function: with a deadline, with its inputs and the global state protected, whatever
it does.

The answer runs in a daemon thread. When the deadline passes, an exception is raised inside that thread, which
ends any loop written in Python, on every system and also where the caller is not the main thread; a signal
does neither. What it cannot end is one call into C that never returns: that thread is left behind, and the
sentence says so.
"""

import builtins
import contextvars
import ctypes
import inspect
import linecache
import os
import random
import re
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks.values import copies, same
from lesson_lib.device import device

DEADLINE_S = (
    5.0  # of the processor: on a server that a whole class shares, the clock runs on while an answer waits
)
PATIENCE = 6  # times as long by the clock, for an answer that sleeps

LIBRARY_FOLDERS = tuple(
    os.path.join(folder, "")
    for folder in (
        os.path.dirname(os.path.dirname(__file__)),  # lesson_lib
        os.path.dirname(torch.__file__),
        sysconfig.get_paths()["stdlib"],
    )
)

PRISTINE = {
    (place, name): getattr(place, name)
    for place in (torch, Tensor, torch.nn.functional)
    for name in (
        *"softmax matmul einsum exp tanh sum mean max amax bmm".split(),
        "__matmul__",
        "__add__",
        "__mul__",
        "__truediv__",
        "__getitem__",
        "clone",
        "allclose",
    )
    if hasattr(place, name)
}


class Deadline(BaseException):
    """Raised inside the learner's thread when its time is up. No Exception: `except Exception` must not
    swallow it."""


@dataclass
class Call:
    """One call of an answer: what came back, or a sentence on why nothing did, and which inputs it
    changed."""

    value: Any = None
    trouble: str | None = None
    changed: tuple[str, ...] = ()
    error: str = ""


def call(answer: Callable, arguments: Mapping[str, Any]) -> Call:
    """Call `answer` with copies of the arguments, in order. Never raises, except for the deadline."""
    given = copies(arguments)
    try:
        value = answer(*given.values())
    except Deadline:
        raise
    except BaseException as error:
        return Call(
            None, sentence(error), _changed(given, arguments), f"{type(error).__name__}: {_first_line(error)}"
        )
    return Call(value, None, _changed(given, arguments))


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """The result of `work()`, run in a thread of its own; raises TimeoutError with a sentence when time is
    up.

    `seconds` are the processor's, and `PATIENCE` times as many the clock's. An exception of `work` is raised
    here. A KeyboardInterrupt (the stop button) ends the work, too.
    """
    # imports much on its first call, which the deadline must not leave half done
    torch.broadcast_shapes((1,), (1,))
    box: dict[str, Any] = {}
    done = threading.Event()  # an interrupted join() would leave the thread marked as ended

    def body() -> None:
        try:
            box["value"] = work()
        except Deadline:
            box["late"] = True
        except BaseException as error:
            box["error"] = error
        finally:
            done.set()

    worker = threading.Thread(target=contextvars.copy_context().run, args=(body,), daemon=True, name="check")
    try:
        worker.start()
        busy, end = time.process_time() + seconds, time.monotonic() + PATIENCE * seconds
        while not done.wait(0.1) and time.process_time() < busy and time.monotonic() < end:
            pass  # in slices, since some systems cannot interrupt a wait
        reason = f"had no answer after {seconds:g} seconds: a loop that never ends, or far too much work"
    except KeyboardInterrupt:
        reason = "was stopped by you"
    if not done.is_set():
        ended = _end(worker, done)
        raise TimeoutError(
            f"your function {reason}"
            + (
                ""
                if ended
                else "; it could not be ended and still runs: restart the kernel (Kernel > Restart)"
            )
        )
    if "error" in box:
        raise box["error"]
    return box["value"]


def _end(worker: threading.Thread, done: threading.Event) -> bool:
    for _ in range(20):  # an answer may catch everything in its loop: ask again
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(worker.ident or 0), ctypes.py_object(Deadline)
        )
        if done.wait(0.05):
            worker.join(0.5)
            return True
    return False


def _no_input(*prompt: Any) -> str:
    raise RuntimeError("nobody answers input() while a check runs; use the arguments")


def _no_breakpoint(*arguments: Any, **options: Any) -> None:
    raise RuntimeError(
        "a check cannot stop at breakpoint(); call your function yourself, with the inputs shown here"
    )


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whatever happens inside, random states, default dtype and recursion limit are afterwards as
    they were."""
    numpy = sys.modules.get("numpy")
    python_state, torch_state = random.getstate(), torch.get_rng_state()
    gpu = None if device().type == "cpu" else torch.get_device_module(device())
    gpu_state = None if gpu is None else gpu.get_rng_state()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    dtype, limit = torch.get_default_dtype(), sys.getrecursionlimit()
    asks, breaks = builtins.input, sys.breakpointhook
    builtins.input, sys.breakpointhook = _no_input, _no_breakpoint
    try:
        yield
    finally:
        builtins.input, sys.breakpointhook = asks, breaks
        random.setstate(python_state)
        torch.set_rng_state(torch_state)
        if gpu is not None:
            gpu.set_rng_state(gpu_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
        torch.set_default_dtype(dtype)
        sys.setrecursionlimit(limit)


def replaced() -> str | None:
    """Name of a torch function that is no longer torch's own in this session, such as 'torch.softmax'; else
    None."""
    for (place, name), own in PRISTINE.items():
        if getattr(place, name, None) is not own:
            return f"{'torch.Tensor' if place is Tensor else place.__name__}.{name}"
    return None


def restore() -> None:
    """Put torch's own functions back in place."""
    for (place, name), own in PRISTINE.items():
        if getattr(place, name, None) is not own:
            setattr(place, name, own)


def misfit(answer: Any, parameters: tuple[str, ...]) -> str | None:
    """A sentence on why `answer` cannot be called with these arguments by position; None where it can."""
    if isinstance(answer, type):
        return (
            f"you handed in the class {answer.__name__}; hand in a function (or an object made from the"
            " class)"
        )
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):
        return None  # some functions written in C do not tell
    try:
        signature.bind(*parameters)
    except TypeError:
        names = list(signature.parameters)
        own = f"{len(names)} ({', '.join(names)})" if names else "none"
        return (
            f"your function has the wrong parameters: it takes {own}; "
            f"the exercise calls it with {len(parameters)}, in this order: ({', '.join(parameters)})"
        )
    return None


def sentence(error: BaseException) -> str:
    """The error in one sentence, with the learner's own line where it happened."""
    kind, first = type(error).__name__, _first_line(error)
    text = {
        "RecursionError": "it calls itself without end",
        "SystemExit": "it asks Python to exit; leave the kernel running and `return` a result",
        "KeyboardInterrupt": "it raises KeyboardInterrupt; `return` a result instead",
    }.get(kind, first if len(first) <= 200 else first[:197] + "...")
    return f"your function stops with {kind}{_place(error)}" + (f": {text}" if text else "")


def _first_line(error: BaseException) -> str:
    try:
        first = (str(error).strip().splitlines() or [""])[0]
    except Exception:
        return ""  # an exception class of the learner's, whose own text fails
    return re.sub(r"0x[0-9a-fA-F]+", "0x...", first)


def _place(error: BaseException) -> str:
    """' in line 2 of `f` (`return q @ k`)': the deepest line that is the learner's own."""
    trace, place = error.__traceback__, ""
    deadline = time.monotonic() + 0.2  # an endless recursion leaves a long trace
    while trace is not None and time.monotonic() < deadline:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(LIBRARY_FOLDERS) and "site-packages" not in code.co_filename:
            line = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            place = f" in line {trace.tb_lineno - code.co_firstlineno + 1} of `{code.co_name}`"
            place += f" (`{line if len(line) <= 90 else line[:87] + '...'}`)" if line else ""
        trace = trace.tb_next
    return place


def _changed(given: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tensors that are not what they were before the call."""
    return tuple(n for n, x in before.items() if isinstance(x, Tensor) and not same(given[n].detach(), x))
