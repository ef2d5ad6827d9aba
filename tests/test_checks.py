"""The exercise engine: it judges, explains, remembers, and survives whatever it is handed."""

import functools
import multiprocessing
import random
import re
import signal
import sys
import threading
import time
from collections import Counter

import numpy
import psutil
import pytest
import torch

from lesson_lib.checks import (
    check,
    engine,
    hint,
    isolation,
    picture,
    progress,
    reset,
    runner,
    solution,
    store,
    yours,
)
from lesson_lib.checks.engine import exercises
from lesson_lib.checks.exercise import Write
from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.result import Counterexample, Result
from lesson_lib.checks.values import written
from tests.conftest import judging
from tests.right_answers import RIGHT

pytestmark = pytest.mark.on_cpu  # a learner's answers are tried there, whatever the lessons compute on

EXERCISES = exercises()

FUNCTIONS = [name for name, exercise in EXERCISES.items() if isinstance(exercise, Write)]
ADDRESS = re.compile(r"0x[0-9a-f]{4,}")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty home, and an engine that remembers nothing."""
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(store, "_unsaved", [])
    return tmp_path / "home"


def right(name):
    """The reference as a function of any arguments, to build nearly right answers from."""
    return lambda *arguments: RIGHT[name][0](*arguments)


def recurse(*arguments):
    return recurse(*arguments)


def stop(error):
    def answer(*arguments):
        raise error

    return answer


def tensors(arguments):
    return [x for x in arguments if torch.is_tensor(x)]


def changes_first(name):
    def answer(*arguments):
        result = right(name)(*arguments)
        tensors(arguments)[0].logical_not_()
        return result

    return answer


def swapped_softmax(name):
    def answer(*arguments):
        torch.softmax = lambda *a, **k: None
        return right(name)(*arguments)

    return answer


def first(result):
    """The tensor, or the first of two."""
    return result if isinstance(result, torch.Tensor) else result[0]


ODD = {  # name of the oddity: (answer made from an exercise's name, words its sentence must contain)
    "a number": (lambda n: 3, "asks for a function"),
    "a string": (lambda n: "text", "asks for a function"),
    "a tensor": (lambda n: torch.ones(2), "without calling it"),
    "a class": (lambda n: type("Answer", (), {}), "the class Answer"),
    "too few parameters": (lambda n: lambda: None, "wrong parameters: it takes none"),
    "too many parameters": (lambda n: lambda a, b, c, d, e, f, g: None, "it takes 7 (a, b, c, d, e, f, g)"),
    "no return": (lambda n: lambda *a: print(end=""), "is the `return` missing"),
    "a numpy array": (lambda n: lambda *a: numpy.asarray(first(right(n)(*a))), "a numpy array of shape"),
    "a tuple": (lambda n: lambda *a: (right(n)(*a), None), "a tuple of 2"),
    "a nested list": (lambda n: lambda *a: right(n)(*a).tolist(), "a list of"),
    "a float": (lambda n: lambda *a: 0.5, "gives back a float"),
    "integers": (lambda n: lambda *a: right(n)(*a).long(), "holds whole numbers (torch.int64), asked for"),
    "floats": (lambda n: lambda *a: right(n)(*a).float(), "holds real numbers (torch.float32), asked for"),
    "complex": (lambda n: lambda *a: right(n)(*a) + 0j, "holds complex numbers (torch.complex"),
    "one number": (lambda n: lambda *a: right(n)(*a).sum(), "has shape ()"),
    "another device": (lambda n: lambda *a: right(n)(*a).to("meta"), "on the device meta"),
    "sparse": (lambda n: lambda *a: right(n)(*a).to_sparse(), "a sparse tensor"),
    "nan": (lambda n: lambda *a: right(n)(*a) * torch.nan, "holds nan at [0"),
    "overflow": (lambda n: lambda *a: right(n)(*a) * 10**400, "OverflowError"),
    "an exception": (lambda n: stop(ValueError("no idea")), "stops with ValueError in line 2 of `answer`"),
    "endless recursion": (lambda n: recurse, "calls itself without end"),
    "SystemExit": (lambda n: stop(SystemExit(1)), "asks Python to exit"),
    "KeyboardInterrupt": (lambda n: stop(KeyboardInterrupt()), "raises KeyboardInterrupt"),
    "changes its input": (changes_first, "in place"),
    "random": (lambda n: lambda *a: right(n)(*a) * torch.rand(()), "two different results"),
    "replaces torch.softmax": (swapped_softmax, "replaces torch.softmax"),
    "input()": (lambda n: lambda *a: input("?"), "nobody answers input()"),
    "breakpoint()": (lambda n: lambda *a: breakpoint(), "cannot stop at breakpoint()"),
    "a generator": (lambda n: lambda *a: (x for x in a), "gives back a generator"),
    "its own input": (lambda n: lambda *a: tensors(a)[-1][..., :0], "has shape"),
}  # fmt: skip


NEEDS = {"floats": False, "integers": True, "nan": True}  # a result of floats?
ON_A_TENSOR = (
    *"complex sparse nan overflow random integers floats".split(),
    *("a tuple", "a nested list", "one number", "another device"),
)
SHAPED = ("a numpy array", "a nested list", "one number", "nan")  # needs axes


def fits(name, odd):
    """Whether this oddity is odd for this exercise: floats are not, where floats are asked for; nor is one
    number, where one is."""
    exercise = EXERCISES[name]
    case = exercise.stages[0].cases()[0]
    asked = exercise.expected(case)
    if not isinstance(asked, torch.Tensor):  # two tensors: their oddities are in test_checks_exercises.py
        if odd in ON_A_TENSOR:
            return False
        asked = asked[0]
    if (odd in SHAPED and not asked.ndim) or (odd == "changes its input" and not tensors(case.values())):
        return False
    return NEEDS.get(odd, asked.is_floating_point()) == asked.is_floating_point()


def share(name, names, things, rounds=2):
    """Some of the things for each name: over all names, each thing comes with many of them."""
    start = list(names).index(name)
    return [list(things)[(start * rounds + i) % len(things)] for i in range(rounds)]


def test_shares_cover_all_things():
    for names, things in ((FUNCTIONS, list(ODD)), (EXERCISES, list(map(str, range(len(THINGS)))))):
        counts = Counter(thing for name in names for thing in share(name, names, things))
        assert counts.keys() == set(things) and min(counts.values()) >= 5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_odd_answers_are_named_and_harm_nothing(name, untried, no_shape_hook):
    """Each exercise gets two of them: what is odd is the same for all."""
    for odd in share(name, FUNCTIONS, ODD):
        make, words = ODD[odd]
        if not fits(name, odd):
            continue
        result = check(make(name), name)
        assert not result.passed and result.state == "failed", odd
        assert words in result.diagnosis, odd
        assert not ADDRESS.search(repr(result) + result._repr_html_()), odd
    assert check(RIGHT[name][0], name).passed  # the engine is as good as before


WIDER = {torch.float32: torch.float64, torch.int64: torch.int32}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_type_that_the_annotation_allows_is_accepted(name, untried, no_shape_hook):
    """float64 for float32, int32 for int64: the numbers are asked for, and the kind of number."""

    def other(*arguments):
        result = right(name)(*arguments)
        if isinstance(result, torch.Tensor):
            return result.to(WIDER.get(result.dtype, result.dtype))
        return [x.to(WIDER.get(x.dtype, x.dtype)) for x in result]

    assert check(other, name).passed


class Hostile:
    """An object that answers no question."""

    def __getattr__(self, name):
        raise RuntimeError("leave me alone")

    def __repr__(self):
        raise RuntimeError("no text")

    def __eq__(self, other):
        raise RuntimeError("not comparable")

    __hash__ = None

    def __float__(self):
        raise RuntimeError("no number")


THINGS = [
    *([], {}, set(), b"bytes", object(), Hostile(), Hostile, print, len, torch, True, 1j, -1, 10**400,
    float("nan")),
    *(float("inf"), "", " ", "e**e**e**e", "9" * 300, "1/0", "__import__('os')", "(" * 150, "a.b", "1;2",
    "\0", "ü", "x" * 10**5),
    *(torch.ones(3), torch.ones(1), torch.tensor(torch.nan), numpy.ones(2), numpy.float64("nan"),
    torch.nn.Linear(2, 2)),
    *(lambda: 1, lambda *a, **k: a, functools.partial(pow, 2), staticmethod(len), NotImplemented, range(3),
    type),
]  # fmt: skip


@pytest.mark.parametrize("name", EXERCISES)
def test_no_answer_makes_a_check_fail(name, untried, no_shape_hook):
    for thing in share(name, EXERCISES, THINGS):
        result = check(thing, name)
        assert isinstance(result, Result) and not result.passed
        assert result.state in ("failed", "open", "unjudged") and result.diagnosis
        assert "fault of the check" not in result.diagnosis
        assert isinstance(repr(result), str) and isinstance(result._repr_html_(), str)
        assert not ADDRESS.search(repr(result))


def test_a_part_goes_on_with_what_passed_else_with_the_solution(monkeypatch, capsys):
    monkeypatch.setattr(engine, "_PASSED", {})
    asked = EXERCISES["shift_weights"]
    assert yours("shift_weights") is asked.solution
    assert not check(lambda h, w, down, right: torch.zeros(h * w, h * w), "shift_weights").passed
    assert yours("shift_weights") is asked.solution and not capsys.readouterr().out

    def shift_weights(h, w, down, right):
        return asked.solution(h, w, down, right)

    assert check(shift_weights).passed
    assert yours("shift_weights") is shift_weights
    assert capsys.readouterr().out == "shift_weights: here runs yours\n"
    assert not check(lambda h, w, down, right: torch.zeros(h * w, h * w), "shift_weights").passed
    assert yours(shift_weights) is shift_weights  # a later failure takes nothing away
    reset("shift_weights")
    assert yours("shift_weights") is asked.solution


def test_a_part_calls_an_answer_by_the_names_of_the_exercise(monkeypatch, capsys):
    """Its own parameters may be called anything: a check calls by position, a part may write `down=1`."""
    monkeypatch.setattr(engine, "_PASSED", {})
    asked = EXERCISES["shift_weights"].solution
    assert check(lambda rows, columns, y, x: asked(rows, columns, y, x), "shift_weights").passed
    assert torch.equal(yours("shift_weights")(3, 5, right=2, down=1), asked(3, 5, 1, 2))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (None, "say which exercise"),
        (3, "say which exercise"),
        ("shift_weight", 'did you mean "shift_weights"'),
        ("enough_heads", "enough_heads asks for no function"),
    ],
)
def test_what_is_no_function_to_write_gets_a_sentence(name, words):
    with pytest.raises(ValueError, match=words):
        yours(name)


def test_an_unknown_name_is_a_sentence():
    for thing in (None, 3, "nobody", Hostile(), [], lambda: 1, functools.partial(pow, 2)):
        assert check(thing).state == "unjudged"
        assert check(1, 7 if thing is None else thing).state == "unjudged"
        for verb in (hint, solution, picture):
            assert "progress() lists the names" in repr(verb(thing))


def test_the_name_defaults_to_the_functions_own():
    def scaled_attention(query, key, value):
        return EXERCISES["scaled_attention"].solution(query, key, value)

    assert check(scaled_attention).passed


@pytest.mark.parametrize("empty", [None, ...])
def test_nothing_yet_is_no_failure_and_no_attempt(empty, home):
    for name in EXERCISES:
        result = check(empty, name)
        assert result.state == "open" and not result.passed and not result
        assert "NOT ATTEMPTED YET" in repr(result)
    assert not home.exists()


def test_empty_stubs_are_not_attempted():
    def dots(query, key, value):
        return ...

    def nothing(query, key, value):
        """Only a docstring."""

    def refuses(query, key, value):
        raise NotImplementedError

    for stub in (dots, nothing, refuses):
        assert check(stub, "scaled_attention").state == "open"
    assert check("", "why_the_root").state == "open"


def forever(*arguments):
    while True:
        pass


@pytest.mark.parametrize("answer", [forever, lambda *a: time.sleep(2)])
def test_an_endless_loop_ends(answer, monkeypatch):
    monkeypatch.setattr(runner, "DEADLINE_S", 0.3)
    before, begun = threading.active_count(), time.monotonic()
    result = check(answer, "scaled_attention")
    waited = float(re.search(r"had no answer after (\S+) seconds", result.diagnosis)[1])
    assert 0.3 <= waited <= time.monotonic() - begun + 0.5  # by the clock, rounded
    assert set(result.counterexample.arguments) == {"query", "key", "value"}
    if answer is forever:
        assert threading.active_count() == before  # the loop is really over


def test_an_answer_that_a_test_leaves_running_is_seen():
    release = threading.Event()
    left = threading.Thread(target=release.wait, name=isolation.CHECK, daemon=True)
    left.start()
    assert judging(wait=0) == [left]
    release.set()
    assert judging(wait=5) == []


def test_a_loop_that_catches_everything_is_reported(monkeypatch):
    monkeypatch.setattr(runner, "DEADLINE_S", 0.2)
    release = threading.Event()

    def deaf(*arguments):
        while not release.is_set():
            try:
                while not release.is_set():
                    pass
            except BaseException:
                pass

    result = check(deaf, "scaled_attention")
    release.set()
    assert "had no answer" in result.diagnosis
    monkeypatch.undo()
    assert check(RIGHT["scaled_attention"][0], "scaled_attention").passed


def test_the_deadline_holds_in_other_threads(monkeypatch):
    monkeypatch.setattr(runner, "DEADLINE_S", 0.3)
    found = []
    worker = threading.Thread(target=lambda: found.append(check(forever, "stable_weights")))
    worker.start()
    worker.join(10)
    assert "had no answer" in found[0].diagnosis


@pytest.fixture
def interrupts():
    """A run that was started in the background ignores the stop button, and so does Python then."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_stop_button_stops(monkeypatch, interrupts):
    import _thread

    begun = multiprocessing.Event()  # one that a trial shares with this process

    def endless(scores):
        begun.set()
        forever(scores)

    def press():  # not before the answer runs: a first check may have much to import
        begun.wait(20)
        _thread.interrupt_main()

    monkeypatch.setattr(runner, "DEADLINE_S", 20.0)
    threading.Thread(target=press, daemon=True).start()
    before, others = time.monotonic(), psutil.Process().children()  # of other tests
    assert "was stopped by you" in check(endless, "stable_weights").diagnosis
    assert time.monotonic() - before < 15 and set(psutil.Process().children()) <= set(others)


def test_pythons_random_state_is_left_alone():
    """Apart, since beartype itself draws from it in these tests."""
    before = random.getstate()
    with runner.undisturbed():
        random.seed(1)
        after_seeding = random.getstate()
    assert random.getstate() == before != after_seeding


def test_a_check_does_not_depend_on_random_states_or_defaults():
    exercise = EXERCISES["scaled_attention"]
    slip = exercise.wrong(next(iter(exercise.slips)))
    torch.manual_seed(1)
    once = repr(check(slip, "scaled_attention"))
    torch.manual_seed(2)
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(check(slip, "scaled_attention")) == once
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_session_with_a_replaced_torch_is_not_judged(monkeypatch):
    monkeypatch.setattr(torch, "softmax", lambda *a, **k: None)
    result = check(RIGHT["scaled_attention"][0], "scaled_attention")
    assert result.state == "unjudged" and "torch.softmax is not torch's own" in result.diagnosis


def test_a_fault_of_the_check_itself_is_a_sentence(monkeypatch):
    monkeypatch.setattr(EXERCISES["score_ratio"].__class__, "judge", lambda *a: 1 / 0)
    result = check(1, "score_ratio")
    assert (
        result.state == "unjudged"
        and "ZeroDivisionError" in result.diagnosis
        and "report" in result.diagnosis
    )


def test_the_line_of_the_learner_is_shown():
    def scaled_attention(query, key, value):
        scores = query @ key.mT
        return scores @ scores @ value[..., :1, :] @ value

    diagnosis = check(scaled_attention).diagnosis
    assert (
        "in line 3 of `scaled_attention` (`return scores @ scores @ value[..., :1, :] @ value`)" in diagnosis
    )


def test_an_exception_whose_text_fails_is_a_sentence():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert "stops with Odd" in check(stop(Odd()), "stable_weights").diagnosis


def test_a_failure_shows_the_smallest_counterexample():
    result = check(lambda q, k, v: torch.zeros(len(q), v.shape[-1]), "scaled_attention")
    shown = result.counterexample
    assert shown.arguments["key"].shape == (1, 2)
    torch.testing.assert_close(shown.expected.cpu(), torch.tensor([[2.0, 30.0, 500.0]], device="cpu"))
    assert result.step == "1 of 5: one query, one key: the output is the value itself"
    assert EXERCISES["scaled_attention"].expected(shown.arguments).shape == (1, 3)


def test_a_result_reads_in_a_terminal_and_in_a_notebook():
    result = Result(
        "name",
        "failed",
        "a < b & c",
        "the question",
        counterexample=Counterexample({"x": torch.ones(2)}, 0.5, "<b>"),
    )
    assert repr(result).splitlines() == [
        "NOT YET  name", "  diagnosis  a < b & c", "  asked      the question", "  x          [1.0, 1.0]",
        "  expected   0.5000", '  yours      "<b>"',
    ]  # fmt: skip
    html = result._repr_html_()
    assert "a &lt; b &amp; c" in html and "&lt;b&gt;" in html and "✗ NOT YET" in html
    for forbidden in ("http", "<script", "<img", "url("):
        assert forbidden not in html


def test_long_data_are_folded_below_the_diagnosis():
    long = Counterexample({"x": torch.ones(5, 2)}, 0.5, "no")
    html = Result("name", "failed", "a sentence", "asked", counterexample=long)._repr_html_()
    assert html.index("a sentence") < html.index("<details>") < html.index("[1.0, 1.0]")
    short = Counterexample({"x": torch.ones(2)}, 0.5, "no")
    assert "<details>" not in Result("name", "failed", "a sentence", counterexample=short)._repr_html_()


def test_states_are_words_not_colours():
    for state, word in (("passed", "PASSED"), ("failed", "NOT YET"), ("open", "NOT ATTEMPTED YET")):
        result = Result("name", state, "text")
        assert word in repr(result) and word in result._repr_html_()


def test_hints_come_one_at_a_time():
    texts = [repr(hint("score_ratio")) for _ in range(4)]
    assert [text.splitlines()[0] for text in texts[:3]] == [f"score_ratio: hint {i} of 3" for i in (1, 2, 3)]
    assert texts[3].startswith(texts[2]) and 'solution("score_ratio")' in texts[2]
    assert "once more" in texts[3] and "once more" not in texts[2]


def test_a_picture_comes_after_the_guess():
    assert "predict first" in repr(picture("unscaled_picture"))
    check("c", "unscaled_picture")
    assert "Two heat maps" in repr(picture("unscaled_picture"))
    assert "these have: read_alignment, unscaled_picture" in repr(picture("score_ratio"))


@pytest.mark.parametrize(
    "text, number",
    [
        ("e^2 / (1 + e^2)", 0.880797), ("exp(12)/exp(10)", 7.389056), ("2²", 4), ("5 %", 0.05), ("√(64)", 8),
        ("math.exp(0)", 1), ("-2 + +3", 1), ("64×3", 192), ("１２", 12),
    ],
)  # fmt: skip
def test_expressions_are_read(text, number):
    assert number_in(text)[0] == pytest.approx(number, rel=1e-5)


@pytest.mark.parametrize(
    "text, words",
    [
        ("0,5", "no decimal point"),
        ("x + 1", "cannot read `x`"),
        ("__import__('os')", "cannot read"),
        ("1 2", "not one number"),
        ("9**9**9**9", "too large"),
        ("1 / 0", "divides by zero"),
        ("exp", "cannot read `exp`"),
        ("1" * 201, "more than 200"),
        ("log(0)", "not one number"),
    ],
)
def test_other_expressions_are_refused_in_words(text, words):
    number, said = number_in(text)
    assert number is None and words in said


def test_tensors_are_written_short_and_alike_everywhere():
    numbers = torch.tensor([0.7, 2.0, 26.66291, -0.00001, 1e9, torch.nan, -torch.inf], dtype=torch.float32)
    assert written(numbers) == "[0.7, 2.0, 26.6629, 0.0, 1.0000e+09, nan, -inf]"
    assert written(torch.ones(2, 1, dtype=torch.bool)) == "[[True],\n [True]]"
    assert written(torch.ones(7, 7)) == "tensor of shape (7, 7)"
    assert written(torch.ones(2, device="meta")) == "a tensor of shape (2,), torch.float32"


# --- progress on disk ---


@pytest.mark.parametrize("damage", [b"", b"[]", b"\xff\xfe", b'{"exercises": {"a": {"attempts": "many"}}}'])
def test_a_damaged_file_is_set_aside_and_reported(home, damage):
    home.mkdir()
    (home / "progress.json").write_bytes(damage)
    result = check(2, "score_ratio")
    assert "progress-damaged-1.json" in repr(result)
    assert (home / "progress-damaged-1.json").read_bytes() == damage
    assert store.read()[0]["score_ratio"]["attempts"] == 1
    (home / "progress.json").write_bytes(damage)
    assert "progress-damaged-2.json" in repr(progress())  # the first one is not overwritten


def test_a_home_that_cannot_be_written_loses_nothing(home, monkeypatch):
    home.write_text("a file where the folder should be")
    result = check("e**2", "score_ratio")
    assert result.passed and "could not be saved" in repr(result)
    assert "1 attempt" in repr(progress())
    home.unlink()
    check("e**2", "stable_weights")
    assert set(store.read()[0]) == {"score_ratio", "stable_weights"}
    assert store._unsaved == []


def test_a_lock_left_behind_is_taken_over(home, monkeypatch):
    import os

    home.mkdir()
    lock = home / "progress.lock"
    lock.write_text("")
    os.utime(lock, (0, 0))
    assert store.record(store.Event("a", "answer", True)) == "" and not lock.exists()


def test_a_lock_that_is_held_keeps_the_attempt_for_later(home, monkeypatch):
    monkeypatch.setattr(store, "LOCK_WAIT_S", 0.1)
    home.mkdir()
    (home / "progress.lock").write_text("")
    assert "another kernel holds" in store.record(store.Event("a", "answer", False))
    (home / "progress.lock").unlink()
    store.record(store.Event("a", "answer", True))
    assert store.read()[0]["a"]["attempts"] == 2


def _attempts(folder, count):
    import os

    os.environ["LESSON_HOME"] = folder
    for _ in range(count):
        store.record(store.Event("a", "answer", False))


def test_two_kernels_at_once_lose_nothing(home):
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    workers = [context.Process(target=_attempts, args=(str(home), 25)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert store.read()[0]["a"]["attempts"] == 50


@pytest.mark.parametrize(
    "answer, state, words",
    [
        (lambda scores: torch.softmax(scores, -1), "passed", "all 5 steps"),
        (torch.ones(2), "failed", "asks for a function, you handed in a tensor"),
        (None, "open", "not attempted"),
    ],
)
def test_an_answer_without_a_name_is_known_by_its_variable(monkeypatch, answer, state, words):
    monkeypatch.setattr(sys.modules["__main__"], "stable_weights", answer, raising=False)
    result = check(answer)
    assert (result.name, result.state) == ("stable_weights", state) and words in result.diagnosis


def test_two_variables_for_one_answer_name_no_exercise(monkeypatch):
    for name in ("stable_weights", "scaled_attention"):
        monkeypatch.setattr(sys.modules["__main__"], name, F := torch.ones(2), raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "stable_weights", F)
    assert "say which exercise" in check(F).diagnosis
