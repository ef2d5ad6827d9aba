"""The sandbox: a function is judged in a forked copy of the session, which may hang, crash or run out of
memory in its stead.

A call into C that never returns, such as `sum(range(10**12))`, holds the interpreter: no thread of the kernel
can end it, and with the kernel all of the learner's variables would be lost. So a check runs in a forked copy
of the process, whose processor time, clock and memory are limited by the system. It has all that the session
has: closures, variables, what was redefined or patched. What the copy finds is handed back and is final. An
answer is judged in the session only where the copy comes to no verdict, or where the answer may use a GPU,
which a copy cannot.

A copy has one thread. A lock that another thread of the session held stays locked in it. Copies were seen to
spin in MKL's memory manager, which threads of OpenMP use: a right answer seemed to loop.
So a copy is made only while all other threads of the session sleep (`_asleep`): who holds such a lock runs.

Only Linux can copy a process with torch in it. Elsewhere, and while another thread computes, an answer is
judged in the session, and a call that holds the interpreter holds the kernel.
"""

import gc
import io
import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

IDLE_S = 1.0  # without any work: the copy waits for a lock that another thread of the session held
QUIET_S = 0.5  # that other threads of the session may take to fall asleep
MEMORY_GIB = 2  # that an answer may take; the largest right one takes less than a tenth

KILLED = (
    "your function was ended by the system (SIGKILL), as happens where memory runs out: compute with less, or"
    " shut down other kernels"
)
GREEDY = f"asks for more than {MEMORY_GIB} GiB of memory"

_pipe: int | None = None  # in the copy: to the session


class Verdict(BaseException):
    """Raised inside a judgement that is over: its sentence is final. No Exception: `except Exception` must
    not swallow it."""


def inside() -> bool:
    """True in the copy."""
    return _pipe is not None


@dataclass(frozen=True)
class Trial:
    """The outcome of work in a copy: `problem` is why it did not finish, or ''; `messages` all that the copy
    sent with `tell`, and the work's result as "value" where it could be pickled."""

    problem: str = ""
    messages: dict[str, Any] = field(default_factory=dict)


def tried(work: Callable[[], Any], seconds: float, clock: float) -> Trial:
    """What `work()` gives in a copy of this session; an empty Trial where none can be made.

    `seconds` are the processor's, `clock` the clock's. A copy that the system ends is made once more: where
    memory is short it goes first, whoever has taken the memory.
    """
    if sys.platform != "linux" or inside():
        return Trial()
    trial = _tried_once(work, seconds, clock)
    return _tried_once(work, seconds, clock) if trial.problem == KILLED else trial


def _tried_once(work: Callable[[], Any], seconds: float, clock: float) -> Trial:
    begun = time.monotonic()
    reads, writes = os.pipe()
    try:
        if not _asleep(begun + QUIET_S):
            raise OSError("another thread of this session computes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a kernel has other threads, of which a copy has none
            pid = os.fork()
        if pid == 0:
            _run(work, seconds, clock, writes)
    except OSError:  # or no memory or no process is left for a copy
        os.close(reads)
        return Trial()
    finally:
        os.close(writes)
    status, messages = _ended(pid, reads)
    if "problem" in messages or status is None:
        return Trial(messages.get("problem", ""), messages)
    return Trial(_reason(os.waitstatus_to_exitcode(status), time.monotonic() - begun), messages)


def _asleep(until: float) -> bool:
    """True as soon as all other threads of this process sleep, those of C libraries too; False if some run
    until then."""
    threads, own = "/proc/self/task", str(threading.get_native_id())
    while True:
        if all(_work(f"{threads}/{one}") is not None for one in os.listdir(threads) if one != own):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.002)


def tell(**what: Any) -> None:
    """Keep this for the session, should the trial come to no end; outside of a trial nothing is kept."""
    if _pipe is not None:
        try:
            message = memoryview(pickle.dumps(what))
            while message:
                message = message[os.write(_pipe, message) :]
        except Exception:  # it cannot be pickled
            pass


def notebook() -> Any:
    """IPython's shell where there is one; else None. IPython is not imported for it."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def refused(error: BaseException) -> bool:
    """True where an error says that a trial has run out of memory."""
    return inside() and (isinstance(error, MemoryError) or "allocate memory" in str(error)[:2000])


def late(seconds: float) -> str:
    """That no answer came, and how long it was waited for.

    >>> late(5.61)
    'had no answer after 6 seconds: a loop that never ends, or far too much work'
    """
    waited = f"{seconds:.0f}" if seconds >= 2 else f"{seconds:.1f}"
    return f"had no answer after {waited} seconds: a loop that never ends, or far too much work"


def _run(work: Callable[[], Any], seconds: float, clock: float, pipe: int) -> NoReturn:
    """The copy's whole life. It ends without cleaning up: files, sockets and threads are the session's."""
    global _pipe
    try:
        gc.freeze()  # what is garbage by now is the session's to clear away, and pages stay shared
        _silence()
        _limit(seconds, clock)
        _pipe = pipe
        outcome = _outcome(work)
    except BaseException:  # this machine sets no limits: nothing can be tried
        _pipe, outcome = pipe, {"problem": ""}
    finally:
        for name, what in outcome.items():  # apart, since not everything can be told
            tell(**{name: what})
        os._exit(0)


def _outcome(work: Callable[[], Any]) -> dict[str, Any]:
    """The messages with which the copy ends: the work's value, or its problem; an error of another kind is
    empty, since the session runs the work again and meets it there."""
    try:
        return {"problem": "", "value": work()}
    except Verdict as verdict:
        return {"problem": str(verdict)}
    except MemoryError:
        return {"problem": f"your function {GREEDY}"}
    except BaseException:
        return {"problem": ""}


def _silence() -> None:
    """Nothing reaches the terminal or the notebook, and a signal to the kernel means the kernel."""
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    kernel = getattr(notebook(), "kernel", None)
    if kernel is not None:
        kernel.session.send = lambda *message, **more: None


def _limit(seconds: float, clock: float) -> None:
    """The system itself ends the copy, whatever holds its interpreter; a crash writes no file."""
    import resource  # Linux has it

    torch.set_num_threads(1)  # the other threads of its pool are not copied
    for alarm, timer, limit in (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, clock),
    ):
        signal.signal(alarm, signal.SIG_DFL)
        signal.setitimer(timer, limit)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/oom_score_adj", "w") as first:
        first.write("1000")  # should memory run out all the same, the copy goes, and not the session
    with open("/proc/self/status") as status:
        held = next(int(line.split()[1]) for line in status if line.startswith("VmData:"))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = held * 2**10 + MEMORY_GIB * 2**30
    if most == resource.RLIM_INFINITY or limit < most:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def _ended(pid: int, pipe: int) -> tuple[int | None, dict[str, Any]]:
    """The status with which the copy has ended, None where it sat idle and was ended; and its messages.
    None of its processes is left."""
    messages, work, since, idle = bytearray(), "", time.monotonic(), False
    try:
        os.set_blocking(pipe, False)
        wakes = select.poll()
        wakes.register(pipe, select.POLLIN)
        while not idle and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            wakes.poll(20)  # milliseconds; at once where the copy is about to end
            time.sleep(0.001)
            messages += _read(pipe)
            done, now = _work(f"/proc/{pid}"), time.monotonic()
            if done is None or done != work:
                work, since = done, now
            idle = now - since > IDLE_S
        messages += _read(pipe)
    except ChildProcessError:  # this session does not wait for its processes (SIGCHLD is ignored)
        messages += _read(pipe)
    finally:  # at the stop button, too
        status = _reaped(pid)
        os.close(pipe)
    return None if idle else status, _unpickled(bytes(messages))


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 2**20)
    except BlockingIOError:
        return b""


def _work(folder: str) -> str | None:
    """The processor time of a sleeping process or thread, read from its folder in /proc; None while it runs,
    or where it cannot be read."""
    try:
        with open(f"{folder}/stat") as stat:
            state, *rest = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return " ".join(rest[10:12]) if state == "S" else None


def _reaped(pid: int) -> int:
    """The status of the copy, which is ended with all processes that it has started; as if it had taken too
    long where nobody knows."""
    for kill, target in ((os.killpg, pid), (os.kill, pid)):  # it may have no group of its own yet
        try:
            kill(target, signal.SIGKILL)
        except OSError:
            pass
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return signal.SIGPROF


def _unpickled(messages: bytes) -> dict[str, Any]:
    """Unpickle the messages of the copy; of several values for one name the last."""
    content: dict[str, Any] = {}
    file = io.BytesIO(messages)
    try:
        while True:
            content.update(pickle.load(file))
    except Exception:  # the end, or half a message
        return content


def _reason(code: int, waited: float) -> str:
    """A sentence on why a copy that sent no message ended with this exit code."""
    if code >= 0:
        return "your function ends Python itself (os._exit); leave the kernel running and `return` a result"
    name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
    if name in ("SIGPROF", "SIGALRM"):
        return f"your function {late(waited)}"
    if name == "SIGKILL":
        return KILLED
    return (
        f"your function crashes Python itself ({name}): it reads or writes memory that is not its own, or"
        " calls itself without end"
    )
