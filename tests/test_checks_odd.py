"""Odd answers: whatever a learner hands in, a check ends with a sentence, and the session is as it was.

`python -m tests.test_checks_odd` prints the table: state, seconds, growth of the kernel's memory, sentence.
"""

import builtins
import collections
import ctypes
import decimal
import functools
import gc
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import torch
import torch.nn.functional as F

from lesson_lib.checks import check, engine, isolation, runner, sandbox, store, values
from lesson_lib.checks.exercise import Write
from lesson_lib.checks.result import Result

pytestmark = pytest.mark.on_cpu  # a learner's answers are tried there, whatever the lessons compute on

LINUX = sys.platform == "linux"  # elsewhere no process can be copied, and nothing is tried
WRITE, NUMBER, CHOICE, OPEN = "scaled_attention", "score_ratio", "unscaled_picture", "why_the_root"
HUGE = 10**9


class Odd(NamedTuple):
    """An answer, what its result must say, and how much the memory of the session may grow, in MiB.

    Without a `state`: a function has failed, what stands for no number, letter or text is asked back.
    """

    answer: Any
    words: str
    exercise: str = WRITE
    state: str = ""
    mib: int = 64


class Made(NamedTuple):
    """An answer that is made when it is needed."""

    make: Any


def right(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


def giving(make):
    """An answer that gives back what `make()` gives."""

    def answer(query, key, value):
        return make()

    return answer


def doing(effect):
    """A right answer that does something else before."""

    def answer(query, key, value):
        effect()
        return right(query, key, value)

    return answer


def fine(effect, words):
    return Odd(doing(effect), words, state="passed")


def raising(error):
    def effect():
        raise error

    return doing(effect)


def forever(*arguments, **more):
    while True:
        pass


def nest(depth):
    nested = []
    for _ in range(depth):
        nested = [nested]
    return nested


def written_in(text):
    """A function with this text, among the names of `__main__`, where a notebook's cells are run."""
    main = vars(sys.modules["__main__"])
    scope = {}
    exec(f"def answer(query, key, value):\n    {text}", main, scope)
    return scope["answer"]


# --- objects that answer no question, or never end to ---


class Raises:
    """Every question raises."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError

    __len__ = __eq__ = __iter__ = __bool__ = __float__ = __str__ = __hash__ = __index__ = __repr__


class Loops:
    """Every question takes forever."""

    __getattr__ = __repr__ = __len__ = __eq__ = __iter__ = __bool__ = __float__ = __str__ = forever
    __hash__ = __index__ = forever
    shape = property(forever)


class Nameless(type):
    __name__ = property(forever)


class Endless(list):
    __len__ = __iter__ = __getitem__ = forever


class Text(str):
    strip = lower = split = replace = __len__ = __eq__ = forever
    __hash__ = None


class Shapeless(torch.Tensor):
    shape = ndim = property(forever)
    numel = size = forever


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *given, **more):
        raise RuntimeError("not with me")


class Callable:
    """An answer that is an object, with a name that takes forever."""

    def __getattr__(self, name):
        return forever()

    def __call__(self, query, key, value):
        return right(query, key, value)


class Strange(Exception):
    def __str__(self):
        return "x" * 10**7


RESULTS = {
    "a tensor of 1e9 ones": Odd(
        giving(lambda: torch.ones(HUGE)), "asks for more than 2 GiB of memory in line 1 of `<lambda>`"
    ),
    "a tensor of 1e9, expanded": Odd(
        giving(lambda: torch.zeros(1).expand(HUGE)), "a tensor of shape (1000000000,): far more than is asked"
    ),
    "a numpy array of 1e9, broadcast": Odd(
        giving(lambda: numpy.broadcast_to(0.0, HUGE)), "a numpy array of shape (1000000000,): far more"
    ),
    "a list of 1e9": Odd(giving(lambda: [0] * HUGE), "more than 2 GiB"),
    "a list that grows": Odd(giving(lambda: [bytes(10**6) for _ in itertools.count()]), "2 GiB"),
    "a text of 1e8": Odd(giving(lambda: "x" * 10**8), "a string: far more than is asked for"),
    "lists in lists, 1e4 deep": Odd(giving(lambda: nest(10**4)), "gives back a list of 1"),
    "a list that holds itself": Odd(
        giving(lambda: (x := [], x.append(x), x)[-1]), "a list of 1, with a list of 1 in it"
    ),
    "an endless generator": Odd(giving(lambda: itertools.count()), "gives back a count"),
    "an object that raises": Odd(giving(Raises), "gives back a Raises"),
    "an object that loops": Odd(giving(Loops), "gives back a Loops"),
    "an object of a nameless class": Odd(giving(Nameless("Anything", (), {})), "gives back an Anything"),
    "a list whose length loops": Odd(giving(Endless), "gives back an Endless of 0"),
    "a coroutine": Odd(written_in("pass\nasync def answer(query, key, value):\n    return value"), "`async`"),
    "a class": Odd(giving(lambda: Loops), "gives back the class Loops"),
    "a subclass without a shape": Odd(lambda *a: right(*a).as_subclass(Shapeless), "steps", state="passed"),
    "a subclass that refuses": Odd(lambda *a: right(*a).as_subclass(Refusing), "steps", state="passed"),
    "a tensor that is not finished": Odd(
        lambda *a: torch.complex(right(*a), right(*a)).conj(), "torch.complex64"
    ),
    "a quantized tensor": Odd(
        lambda *a: torch.quantize_per_tensor(right(*a), 0.1, 0, torch.qint8), "torch.qint8"
    ),
    "a nested tensor": Odd(lambda *a: torch.nested.nested_tensor([right(*a)[0]]), "a nested tensor"),
    # 500 is beyond their range: torch 2.11 gives nan, 2.15 the largest number
    "eight-bit floats": Odd(lambda *a: right(*a).clamp(max=448).to(torch.float8_e4m3fn), "numbers differ"),
}

INSTEAD = {  # what is handed in is no function, or not as a function should be
    "an object that loops, to write": Odd(Loops(), "asks for a function, you handed in a Loops"),
    "a callable object with a name that loops": Odd(Callable(), "had no answer after"),
    "a class of a nameless class": Odd(Nameless("Anything", (), {}), "you handed in the class Anything"),
    "a tensor of 1e9, to write": Odd(torch.zeros(1).expand(HUGE), "a tensor of shape (1000000000,)"),
    "9**9**9": Odd("9**9**9", "too large", NUMBER),
    "a huge integer": Odd(Made(lambda: 10**10**6), "too large", NUMBER),
    "1e8 digits": Odd(Made(lambda: "1" * 10**8), "at most 20,000 characters", NUMBER),
    "1e4 brackets": Odd("(" * 10**4, "more than 200 characters", NUMBER),
    "a huge decimal": Odd(decimal.Decimal("1e999999999"), "not a number that could be right", NUMBER),
    "a signalling NaN": Odd(decimal.Decimal("sNaN"), "not one number", NUMBER),
    "infinity": Odd(math.inf, "inf is not a number that could be right", NUMBER),
    "a tensor of 1e9, as a number": Odd(torch.zeros(1).expand(HUGE), "you handed in a tensor of", NUMBER),
    "a tensor without numbers": Odd(torch.empty(1, device="meta"), "not one number", NUMBER),
    "a subclass, as a number": Odd(
        torch.tensor(7.0, device="cpu").as_subclass(Refusing), "too small", NUMBER, "failed"
    ),
    "a text that loops, as a number": Odd(Text("7"), "7 is too small", NUMBER, "failed"),
    "an object that loops, as a letter": Odd(Loops(), "you handed in a Loops", CHOICE),
    "half a character, as a letter": Odd("\ud800", 'you wrote "?"', CHOICE),
    "1e8 characters, in words": Odd(Made(lambda: "word " * (2 * 10**7)), "at most 20,000 characters", OPEN),
    "4000 times not": Odd("not " * 4000, "model answer", OPEN, "written"),
}

PRINTS = {
    "a million lines": fine(lambda: print("7\n" * 10**6, end=""), "... and 999,990 more lines"),
    "1000 prints": fine(lambda: [print(i) for i in range(1000)], "9\n... and 990 more lines"),
    "a line of 1e7": fine(lambda: print("x" * 10**7), "... and 9,999,001 more characters"),
    "an address": fine(lambda: print(object()), "<object object at 0x...>"),
    "half a character": fine(lambda: print("\ud800"), "printed    ?"),
    "a thread that fails": fine(
        lambda: (t := threading.Thread(target=lambda: 1 / 0), t.start(), t.join()),
        "printed: a thread stops with ZeroDivisionError: division by zero",
    ),
    "a warning": fine(lambda: warnings.warn("old", stacklevel=1), "warns: UserWarning: old"),
    "a stdout that is gone": fine(lambda: setattr(sys, "stdout", None), "steps"),
}

CHANGES = {
    "another folder": fine(lambda: os.chdir("/"), "the working folder: your function changes that"),
    "a folder that is gone": fine(
        lambda: (os.chdir(folder := tempfile.mkdtemp()), shutil.rmtree(folder)), "the working folder"
    ),
    "the environment": fine(lambda: os.environ.update(ODD="1"), "environment variables"),
    "sys.path": fine(lambda: sys.path.clear(), "sys.path"),
    "the default dtype": fine(lambda: torch.set_default_dtype(torch.float64), "the default dtype"),
    "deterministic algorithms": Odd(  # torch imports its compiler to set them back
        doing(lambda: torch._C._set_deterministic_algorithms(True)),
        "deterministic algorithms",
        state="passed",
        mib=256,
    ),
    "print options": fine(lambda: torch.set_printoptions(precision=9), "torch's print options"),
    "no garbage collection": fine(gc.disable, "garbage collection"),
    "warnings as errors": fine(lambda: warnings.simplefilter("error"), "steps"),
    "seeds": fine(lambda: (torch.manual_seed(1), random.seed(1), numpy.random.seed(1)), "steps"),
    "a thread that stays": fine(
        lambda: threading.Thread(target=time.sleep, args=(0.5,)).start(),
        "steps" if LINUX else "of your function's",  # with a copy its threads end, too
    ),
    "all names of the notebook, deleted": Odd(written_in("globals().clear()\n    return 1"), "`mine`"),
    "torch hidden": Odd(written_in("global torch\n    torch = 3\n    return query"), "put back: `torch`"),
}


def put(place, name, thing=None):
    return doing(lambda: setattr(place, name, thing or (lambda *given, **more: 7)))


REPLACED = "your function replaces {} by its own; it is put back"
PATCHES = {
    "torch.softmax": Odd(put(torch, "softmax"), REPLACED.format("torch.softmax")),
    "torch.softmax by torch's other": Odd(put(torch, "softmax", F.softmax), REPLACED.format("torch.softmax")),
    "Tensor.softmax": Odd(put(torch.Tensor, "softmax"), REPLACED.format("torch.Tensor.softmax")),
    "F.softmax": Odd(put(F, "softmax"), REPLACED.format("torch.nn.functional.softmax")),
    "len": Odd(put(builtins, "len"), REPLACED.format("len")),
    "isinstance and setattr": Odd(
        doing(lambda: (setattr(builtins, "isinstance", 3), setattr(builtins, "setattr", 3))),
        "isinstance by its",
    ),
    "len, deleted": Odd(doing(lambda: delattr(builtins, "len")), REPLACED.format("len")),
    "math.exp": Odd(put(math, "exp"), REPLACED.format("math.exp")),
    "check": Odd(put(engine, "check"), REPLACED.format("lesson_lib.checks.engine.check")),
    "close": Odd(put(values, "close"), REPLACED.format("lesson_lib.checks.values.close")),
    "judge": Odd(put(Write, "judge"), REPLACED.format("Write.judge")),
}

STOPS = {
    "an exception with a text of 1e7": Odd(raising(Strange()), "stops with Strange"),
    "a bare BaseException": Odd(raising(BaseException("plain")), "stops with BaseException"),
    "exit()": Odd(doing(lambda: exit()), "SystemExit in line 1 of `<lambda>`"),
    "a loop in Python": Odd(doing(forever), "had no answer after"),
    "prints without end": Odd(
        doing(lambda: [print("again") for _ in itertools.count()]), "again\n... and more"
    ),
    "check, called inside": Odd(doing(lambda: check(right, WRITE)), "calls check() or properties() while"),
}

ODD = {
    f"{kind}: {name}": odd
    for kind, table in {
        "result": RESULTS, "instead": INSTEAD, "prints": PRINTS, "changes": CHANGES, "replaces": PATCHES,
        "stops": STOPS,
    }.items()
    for name, odd in table.items()
}  # fmt: skip

# These would take the session with them: only processes of their own judge them.
DEADLY = {
    "sum(range(10**12))": Odd(giving(lambda: sum(range(10**12))), "had no answer after"),
    "a queue that eats all numbers": Odd(
        giving(lambda: collections.deque(itertools.count(), maxlen=0)), "had no answer after"
    ),
    "a pattern that backtracks": Odd(
        giving(lambda: re.match("(a+)+$", "a" * 60 + "b")), "had no answer after"
    ),
    "a null pointer": Odd(giving(lambda: ctypes.string_at(0)), "crashes Python itself (SIGSEGV)"),
    "os._exit(0)": Odd(giving(lambda: os._exit(0)), "ends Python itself (os._exit)"),
    "SIGKILL": Odd(giving(lambda: os.kill(os.getpid(), signal.SIGKILL)), "ended by the system (SIGKILL)"),
    "a lock that is never given back": Odd(
        giving(lambda: (lock := threading.Lock(), lock.acquire(), lock.acquire())), "it could not be ended"
    ),
}

DEADLINE_S = 0.5  # here; a learner's is runner.DEADLINE_S
ENDLESS = ("result: a list whose length loops", "stops: prints without end")  # the deadline ends these, too


def said(result):
    """All that a result shows, a line for each row."""
    repr(result), result._repr_html_()  # what a notebook does
    return "\n".join(f"{label}: {text}" for label, text in result.rows.items()) + "\n" + repr(result)


def surroundings():
    """What a check must leave as it is."""
    streams = sys.stdout, sys.stderr, builtins.input, warnings.showwarning
    states = [isolation._read(read) for _, read, _ in isolation.STATES]
    chance = str(numpy.random.get_state()), torch.get_rng_state().tolist()  # beartype draws from Python's
    names = dict(vars(sys.modules["__main__"]))
    return streams, states, chance, names, list(warnings.filters), torch.is_grad_enabled()


def peak_mib():
    """The most memory that this process has held since `forget_peak`, or what it holds now."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def forget_peak():
    """From now on the peak counts anew: that of Linux is the highest since the start."""
    Path("/proc/self/clear_refs").write_text("5")


def judged(odd):
    """The result, the seconds, and the MiB by which the memory of this process has grown meanwhile."""
    answer = odd.answer.make() if type(odd.answer) is Made else odd.answer
    if LINUX:
        forget_peak()
    before, begun = peak_mib() if LINUX else 0.0, time.monotonic()
    result = check(answer, odd.exercise)
    said(result)
    return result, time.monotonic() - begun, peak_mib() - before if LINUX else 0.0


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """A short deadline, a home of its own, a variable of the learner's; and what a first check imports."""
    engine.exercises()
    torch.broadcast_shapes((1,), (1,))
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(store, "_unsaved", [])
    monkeypatch.setattr(runner, "DEADLINE_S", DEADLINE_S)
    monkeypatch.setattr(runner, "PATIENCE", 40)
    monkeypatch.setattr(sys.modules["__main__"], "mine", [1, 2, 3], raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "torch", torch, raising=False)


@pytest.mark.parametrize("name", ODD)
def test_an_odd_answer_gets_a_sentence_and_changes_nothing(name, quick, capfd, monkeypatch):
    odd, before, own = ODD[name], surroundings(), isolation.Functions()
    if "no answer after" not in odd.words and name not in ENDLESS:  # it ends by itself: however slow
        monkeypatch.setattr(runner, "DEADLINE_S", 10 * DEADLINE_S)
    result, _, mib = judged(odd)
    state = odd.state or ("failed" if odd.exercise == WRITE else "unjudged")
    assert isinstance(result, Result) and result.state == state, result
    assert odd.words in said(result)
    assert surroundings() == before and own.put_back() is None
    assert mib < odd.mib, f"the session grew by {mib:.0f} MiB"
    assert capfd.readouterr() == ("", "")


def elsewhere(home):
    """The environment of a process that finds what this one finds, and keeps its answers in that folder."""
    path = filter(None, [os.environ.get("PYTHONPATH"), *sys.path])
    return os.environ | {"LESSON_HOME": str(home), "PYTHONPATH": os.pathsep.join(path)}


@pytest.mark.skipif(
    not LINUX, reason="only Linux can copy a process; elsewhere these hold or end the session"
)
def test_what_holds_or_ends_the_interpreter_gets_a_sentence(tmp_path):
    """In a process of their own, one after the other: it is seen which one takes it along."""
    environment = elsewhere(tmp_path)
    command = [sys.executable, "-m", "tests.test_checks_odd", "deadly"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr) == (0, "")
    found = {name: (state, text) for name, state, _, _, text in map(json.loads, run.stdout.splitlines())}
    assert set(found) == set(DEADLY)
    for name, odd in DEADLY.items():
        assert found[name][0] == "failed" and odd.words in found[name][1], name


def test_what_torch_sets_by_itself_is_no_doing_of_the_learners(monkeypatch):
    """Its compiler names a folder in the environment when a part of torch is first used."""
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    changes: dict[str, str] = {}
    with isolation.restoring(changes):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "a folder")
    assert changes == {} and os.environ["TORCHINDUCTOR_CACHE_DIR"] == "a folder"
    with isolation.restoring(changes):
        monkeypatch.setenv("ODD", "1")
    assert changes == {"put back": "environment variables: your function changes that"}
    assert "ODD" not in os.environ


def test_a_name_is_asked_for(quick):
    partial = functools.partial(right)
    for answer in (lambda q, k, v: v, partial, Callable(), Loops(), Raises(), torch.ones(1), 3, []):
        result = check(answer)
        assert result.state == "unjudged" and 'check(answer, "name")' in result.diagnosis


def test_the_name_may_be_odd_too(quick):
    for name in (Loops(), Raises(), Text("x"), "x" * 10**8, "\ud800"):
        assert check(1, name).state == "unjudged" and said(check(1, name))


@pytest.fixture
def trials(monkeypatch):
    """All that copies of this process have found."""
    tried, outcomes = sandbox.tried, []
    monkeypatch.setattr(sandbox, "tried", lambda *given: outcomes.append(tried(*given)) or outcomes[-1])
    return outcomes


def test_a_lock_of_the_session_makes_no_verdict_wrong(quick, trials):
    """Another thread holds it while the process is copied: in the copy nobody will ever give it back."""
    lock = threading.Lock()
    holds = threading.Thread(target=lambda: (lock.acquire(), time.sleep(2.0), lock.release()))
    holds.start()
    assert check(doing(lambda: lock.acquire() and lock.release()), WRITE).passed
    assert trials[0].problem == "" and "value" not in trials[0].messages, "no verdict of the copy's"
    holds.join()


@pytest.mark.skipif(not LINUX, reason="only Linux can copy a process")
def test_no_copy_is_made_while_another_thread_computes(quick, trials):
    """It may hold a lock of MKL's, which a copy would wait for at full speed: a right answer that loops."""
    with computing(1):
        assert check(right, WRITE).passed
    assert check(right, WRITE).passed
    assert trials[0] == sandbox.Trial() and trials[1].messages["value"][0].passed


@contextmanager
def computing(threads):
    """Inside, so many other threads compute, outside of the interpreter's lock."""
    x, over = torch.randn(700, 700), threading.Event()
    others = [
        threading.Thread(target=lambda: [x @ x for _ in iter(over.is_set, True)]) for _ in range(threads)
    ]
    for other in others:
        other.start()
    try:
        yield
    finally:
        over.set()
        for other in others:
            other.join()


def test_a_busy_neighbour_takes_no_time_from_an_answer(quick, untried):
    """The seconds of the answer's own thread are counted: others may have used up the deadline's."""
    if not hasattr(time, "pthread_getcpuclockid"):
        pytest.skip("this system does not tell the threads' seconds apart")
    with computing(3):
        assert check(doing(lambda: time.sleep(DEADLINE_S)), WRITE).passed


@pytest.mark.skipif(not LINUX, reason="only Linux can copy a process")
def test_a_copy_that_the_system_ends_is_made_once_more(quick, tmp_path):
    """Memory may be short for another's sake."""

    def answer(query, key, value):
        try:
            (tmp_path / "killed").mkdir()
        except FileExistsError:
            return right(query, key, value)
        os.kill(os.getpid(), signal.SIGKILL)

    assert check(answer, WRITE).passed


@pytest.mark.skipif(not LINUX, reason="only Linux can copy a process")
def test_an_answer_is_judged_once_and_elsewhere(quick, tmp_path):
    """Without this, all others might pass without a copy, but for the deadly ones."""
    trace = tmp_path / "trace"

    def answer(query, key, value):
        with trace.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return right(query, key, value)

    assert check(answer, WRITE).passed
    places = {int(line) for line in trace.read_text().splitlines()}
    assert len(places) == 1 and os.getpid() not in places
    with pytest.raises(ProcessLookupError):
        os.kill(places.pop(), 0)  # nothing is left of it


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_elsewhere_an_answer_is_judged_in_the_session(system, quick, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    places = set()
    assert check(doing(lambda: places.add((os.getpid(), threading.current_thread().name))), WRITE).passed
    assert places == {(os.getpid(), isolation.CHECK)}


def test_a_verdict_that_no_copy_can_hand_over_is_made_in_the_session(quick):
    """The result holds what cannot be written down: an object of a class inside a function."""

    class Local:
        pass

    result = check(lambda query, key, value: Local(), WRITE)
    assert result.state == "failed" and "Local" in result.diagnosis


CELLS = {  # run one after the other in a kernel: what is run, what its output must say
    """
from lesson_lib.checks import check, runner
from IPython.display import display
import math, threading, torch
import torch.nn.functional as F
runner.DEADLINE_S, mine = 1.5, [1, 2, 3]
def scaled_attention(query, key, value):
    print("not twice")
    display(query)
    return sum(range(10**12))
""": "",
    "check(scaled_attention)": "had no answer after",
    "mine": "[1, 2, 3]",
    """
def scaled_attention(query, key, value):
    exit()
    return F.scaled_dot_product_attention(query, key, value)
check(scaled_attention)
""": "it asks Python to exit",
    """
def scaled_attention(query, key, value):
    print("seen", query.shape)
    display(math.pi)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start(), thread.join()
    return F.scaled_dot_product_attention(query, key, value)
check(scaled_attention)
""": "seen torch.Size([2, 3, 5]) 3.141592653589793 a thread stops with ZeroDivisionError",
    """
def scaled_attention(query, key, value):
    globals().clear()
    return torch.ones(10**9)
check(scaled_attention)
""": "NameError",
    """
import statistics
def made(power):
    def scaled_attention(query, key, value):
        return weights(query @ key.mT / query.shape[-1] ** power) @ statistics.seen(value)
    return scaled_attention
weights, statistics.seen = lambda scores: scores.softmax(0), lambda value: value
scaled_attention = made(0.5)
check(scaled_attention)
""": "it must run over keys (dim=-1)",
    "weights = lambda scores: scores.softmax(-1); check(scaled_attention)": "all 5 steps are right",
    "statistics.seen = lambda value: value + 1; check(scaled_attention)": "NOT YET",
    'check("\\ud800", "unscaled_picture")': 'you wrote "?"',
    "import psutil; mine, psutil.Process().children()": "([1, 2, 3], [])",
}


def test_a_kernel_lives_on(tmp_path):
    """A real one, with its sockets and threads: it shows the results and nothing else, each of them once."""
    from jupyter_client.manager import start_new_kernel

    environment = elsewhere(tmp_path)
    manager, client = start_new_kernel(kernel_name="python3", env=environment, startup_timeout=120)
    try:
        for code, words in CELLS.items():
            seen = []
            reply = client.execute_interactive(code, timeout=90, output_hook=seen.append, stop_on_error=False)
            shown = [message for message in seen if message["msg_type"] not in ("status", "execute_input")]
            assert reply["content"]["status"] == "ok" and manager.is_alive(), shown
            assert [message["msg_type"] for message in shown] == ["execute_result"] * bool(words), shown
            text = " ".join(shown[0]["content"]["data"]["text/plain"].split()) if words else ""
            assert not words or text.count(words) == 1, text
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def main():
    """One line of JSON for each: name, state, seconds, MiB, text; of the deadly ones alone, or of all."""
    runner.DEADLINE_S, runner.PATIENCE = (DEADLINE_S, 8) if "deadly" in sys.argv else (5.0, 6)
    vars(sys.modules["__main__"]).update(mine=[1, 2, 3], torch=torch)
    check(right, WRITE)
    for name, odd in (DEADLY if "deadly" in sys.argv else ODD | DEADLY).items():
        result, seconds, mib = judged(odd)
        print(json.dumps([name, result.state, round(seconds, 2), round(mib), said(result)]), flush=True)
    os._exit(0)  # one thread waits for its lock


if __name__ == "__main__":
    main()
