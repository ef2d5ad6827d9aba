"""Running somebody else's function: with a deadline, with its inputs and the global state protected, whatever
it does.

It runs in a copy of the session (`sandbox`), where the system can copy one, and what the copy finds is final.
Without a copy, and where the answer may use a GPU, which no copy can, it runs in a daemon thread. When the
deadline passes, an exception is raised inside that thread, which ends any loop written in Python, on every
system and also where the caller is not the main thread; a signal does neither. What it cannot end is one call
into C that never returns: that thread is left behind, and the sentence says so.
"""

import builtins
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
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from types import CoroutineType
from typing import Any

import jaxtyping
import torch
from torch import Tensor

from lesson_lib.checks import isolation, sandbox, values
from lesson_lib.checks.sandbox import Verdict
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
        os.path.dirname(jaxtyping.__file__),  # it wraps what is annotated
        sysconfig.get_paths()["stdlib"],
    )
)

MOST = 10**7  # numbers that a result may hold: no exercise asks for a hundredth of them

# What the judging itself computes with.
PRISTINE = {
    (owner, name): getattr(owner, name)
    for owner in (torch, Tensor, torch.nn.functional, builtins)
    for name in (
        *"softmax matmul einsum exp log tanh sum mean max min abs amax bmm all any".split(),
        *"equal isclose allclose isfinite isnan nan_to_num clone double".split(),
        *"__matmul__ __add__ __mul__ __truediv__ __getitem__".split(),
        *"len range zip map isinstance callable getattr".split(),
    )
    if hasattr(owner, name)
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


@dataclass
class Notes:
    """What there is to say about a judgement beside its verdict: where it stands, what the answer prints and
    changes."""

    step: str = ""
    case: Mapping[str, Any] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    page: isolation.Page = field(default_factory=isolation.Page)

    def turn(self, step: str, case: Mapping[str, Any]) -> None:
        """From now on the answer is called with these inputs."""
        self.step, self.case = step, case
        self.page.restart()
        sandbox.tell(step=step, case={}, printed="")
        sandbox.tell(case=case)  # apart, since not everything can be told


_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)  # of the judgement that runs


def call(answer: Callable, arguments: Mapping[str, Any]) -> Call:
    """Call `answer` with copies of the arguments, in order. Raises nothing but the end of the judgement: for
    the deadline, and for a result that is far too large to be looked at."""
    given = copies(arguments)
    try:
        value = answer(*given.values())
    except (Deadline, Verdict):
        raise
    except BaseException as error:
        if sandbox.refused(error):
            raise Verdict(f"your function {sandbox.GREEDY}{where(error)}") from None
        return Call(
            None, sentence(error), _changed(given, arguments), f"{values.kind(error)}: {_first_line(error)}"
        )
    finally:
        if (notes := _notes.get()) is not None:
            notes.page.shut()
    if type(value) is CoroutineType:
        value.close()
        problem = "your function is `async`: a call computes nothing; take that word away"
        return Call(None, problem, error="async")
    if values.count(value) > MOST:
        raise Verdict(f"your function gives back {values.described(value)}: far more than is asked for")
    return Call(values.ordinary(value), None, _changed(given, arguments))


def within(seconds: float, work: Callable[[], Any], notes: Notes | None = None, *, tried: bool = True) -> Any:
    """The result of `work()`; raises TimeoutError with a sentence where there is none.

    `seconds` are the processor's, and `PATIENCE` times as many the clock's. An exception of `work` is raised
    here. A KeyboardInterrupt (the stop button) ends the work, too. `notes` say more about it. Work that calls
    no function of the learner's need not be `tried` first.
    """
    # imports much on its first call, which the deadline must not leave half done
    torch.broadcast_shapes((1,), (1,))
    if _notes.get() is not None:
        raise Verdict(
            "your function calls check() or properties() while it is judged; move that out of the function,"
            " to the left margin"
        )
    notes, begun, functions = notes or Notes(), time.monotonic(), isolation.Functions()

    def judged() -> Any:
        _notes.set(notes)
        try:
            return work()
        finally:
            _refuse(functions.put_back())

    def judged_in_a_copy() -> tuple[Any, dict[str, str]]:
        rows: dict[str, str] = {}
        with isolation.restoring(rows):
            value = judged()
        rows.pop("still runs", None)  # it ends with the copy
        return value, rows | notes.page.rows

    try:
        with isolation.printing(notes.page), isolation.restoring(notes.rows):
            if tried:
                copy = sandbox.tried(judged_in_a_copy, seconds, PATIENCE * seconds)
                if copy.problem:
                    notes.step, notes.case = copy.messages.get("step", ""), copy.messages.get("case", {})
                    notes.rows["printed"] = copy.messages.get("printed", "")
                    raise Verdict(copy.problem)
                if "value" in copy.messages and not _on_a_gpu():
                    value, rows = copy.messages["value"]
                    notes.rows |= rows
                    return value
            try:
                return _in_a_thread(judged, seconds, begun)
            finally:
                _refuse(functions.put_back())  # by a thread that could not be ended
    except KeyboardInterrupt:
        raise TimeoutError("your function was stopped by you") from None
    except Verdict as verdict:
        raise TimeoutError(str(verdict)) from None
    finally:
        notes.rows |= notes.page.rows


def _on_a_gpu() -> bool:
    """Whether an answer may compute where a copy of this session cannot."""
    return device().type != "cpu" or torch.cuda.is_initialized()


def idle() -> bool:
    """Whether no answer is being judged just now."""
    return _notes.get() is None


def _refuse(replaced: str | None) -> None:
    if replaced:
        raise Verdict(
            f"your function replaces {replaced} by its own; it is put back. Compute, replace nothing"
        )


def _in_a_thread(work: Callable[[], Any], seconds: float, begun: float) -> Any:
    """The result of `work()`, run in a thread of its own, or the exception that it raises."""
    box: dict[str, Any] = {}
    done = threading.Event()  # an interrupted join() would leave the thread marked as ended

    def body() -> None:
        box["spent"] = _stopwatch()
        try:
            box["value"] = work()
        except BaseException as error:
            box["error"] = error
        finally:
            done.set()

    def busy() -> bool:
        try:
            return box["spent"]() < seconds
        except (KeyError, OSError):  # it has not begun, or is over
            return True

    worker = threading.Thread(target=copy_context().run, args=(body,), daemon=True, name=isolation.CHECK)
    try:
        worker.start()
        end = time.monotonic() + PATIENCE * seconds
        while not done.wait(0.1) and busy() and time.monotonic() < end:
            pass  # in slices, since some systems cannot interrupt a wait
        reason = sandbox.late(time.monotonic() - begun)
    except KeyboardInterrupt:
        reason = "was stopped by you"
    if not done.is_set():
        ended = _end(worker, done)
        raise Verdict(
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


def _stopwatch() -> Callable[[], float]:
    """The processor's seconds of this thread from now on, for others to read while it lives; of the whole
    process where the system does not tell threads apart."""
    if hasattr(time, "pthread_getcpuclockid"):
        return partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))
    begun = time.process_time()
    return lambda: time.process_time() - begun


def _end(worker: threading.Thread, done: threading.Event) -> bool:
    for _ in range(60):  # an answer may catch everything in its loop; on a busy machine it is slow to hear
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


def _no_exit(*arguments: Any, **options: Any) -> None:
    raise SystemExit


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whatever happens inside, random states and the default dtype are afterwards as they were. Nobody is
    asked, and nothing ends the kernel."""
    numpy = sys.modules.get("numpy")
    python_state, torch_state = random.getstate(), torch.get_rng_state()
    gpu = None if device().type == "cpu" else torch.get_device_module(device())
    gpu_state = None if gpu is None else gpu.get_rng_state()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    dtype = torch.get_default_dtype()
    asks, breaks, shell = builtins.input, sys.breakpointhook, sandbox.notebook()
    builtins.input, sys.breakpointhook = _no_input, _no_breakpoint
    if shell is not None:
        shell.ask_exit = _no_exit  # what exit() calls there
    try:
        yield
    finally:
        builtins.input, sys.breakpointhook = asks, breaks
        if shell is not None:
            vars(shell).pop("ask_exit", None)
        random.setstate(python_state)
        torch.set_rng_state(torch_state)
        if gpu is not None:
            gpu.set_rng_state(gpu_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
        torch.set_default_dtype(dtype)


def replaced() -> str | None:
    """Name of a function that is no longer torch's or Python's own in this session, such as 'torch.softmax';
    else None."""
    for (owner, name), own in PRISTINE.items():
        if getattr(owner, name, None) is not own:
            return isolation.full_name(owner, name)
    return None


def misfit(answer: Any, parameters: tuple[str, ...]) -> str | None:
    """A sentence on why `answer` cannot be called with these arguments by position; None where it can."""
    if values.is_a(answer, type):
        return (
            f"you handed in {values.described(answer)}; hand in a function (or an object made from the class)"
        )
    try:
        signature = inspect.signature(answer)
    except Exception:
        return None  # some functions written in C do not tell, nor do some objects
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
    kind, first = values.kind(error), _first_line(error)
    text = {
        "RecursionError": "it calls itself without end",
        "SystemExit": "it asks Python to exit; leave the kernel running and `return` a result",
        "KeyboardInterrupt": "it raises KeyboardInterrupt; `return` a result instead",
    }.get(kind, first if len(first) <= 200 else first[:197] + "...")
    return f"your function stops with {kind}{where(error)}" + (f": {text}" if text else "")


def _first_line(error: BaseException) -> str:
    try:
        first = (str(error)[:2000].strip().splitlines() or [""])[0]
    except Exception:
        return ""  # an exception class of the learner's, whose own text fails
    return re.sub(r"0x[0-9a-fA-F]+", "0x...", first)


def where(error: BaseException) -> str:
    """' in line 2 of `f` (`return q @ k`)': the deepest line of the traceback that is the learner's own; else
    ''."""
    trace, description = error.__traceback__, ""
    deadline = time.monotonic() + 0.2  # an endless recursion leaves a long trace
    others = (*LIBRARY_FOLDERS, "<frozen ")  # exit() is compiled into Python
    while trace is not None and time.monotonic() < deadline:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(others) and "site-packages" not in code.co_filename:
            line = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            description = f" in line {trace.tb_lineno - code.co_firstlineno + 1} of `{code.co_name}`"
            description += f" (`{line if len(line) <= 90 else line[:87] + '...'}`)" if line else ""
        trace = trace.tb_next
    return description


def _changed(given: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tensors that are not what they were before the call."""
    return tuple(n for n, x in before.items() if isinstance(x, Tensor) and not same(given[n].detach(), x))
