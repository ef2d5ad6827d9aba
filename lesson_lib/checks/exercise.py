"""Four kinds of exercise: write a function, give a number, choose one answer, write a few sentences.

Each knows its card, its hints, its solution, its typical wrong answers (`slips`: sentence -> what is wrong),
and judges an answer.
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks import values
from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.inputs import source_of
from lesson_lib.checks.result import NO_RESULT, NOTHING_YET, Counterexample, Result
from lesson_lib.checks.runner import Call, call, misfit, sentence

Case = Mapping[str, Any]  # tensors, and plain numbers such as n_heads
Draw = Callable[..., Tensor]  # inputs.drawn
Edit = tuple[str, ...]  # what to replace in a solution's text, and by what: old, new, old, new ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Exercise(ABC):
    """The card of an exercise, and what every kind of exercise has.

    `solution` is what `solution(name)` shows; of a function its source. `slips` maps the sentence that names
    a mistake to the mistake itself: a number or an expression, a letter, a pattern, an edit of the solution.
    `notebook` is the one that asks it, where that is not the chapter's own of exercises.
    """

    name: str
    title: str
    stars: int
    minutes: int
    why: str
    asked: str
    hints: tuple[str, str, str]
    solution: str | Callable
    remember: str
    slips: Mapping[str, Any]
    picture: Callable[[], Any] | None = None
    notebook: str = ""

    @property
    def text(self) -> str:
        """The solution as `solution(name)` shows it."""
        return self.solution if isinstance(self.solution, str) else source_of(self.solution)

    @abstractmethod
    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        """The result for an answer that is neither None nor `...`. `watch` is told each step and inputs
        before a call."""

    def result(self, state: Any, diagnosis: str, **more: Any) -> Result:
        """A result of this exercise, with the line that fits the state."""
        after = {
            "passed": {"remember": self.remember},
            "failed": {"next": f'hint("{self.name}")'},
            "open": {
                "next": (
                    f'write your answer, run its cell, then this one; hint("{self.name}") asks a first'
                    " question"
                )
            },
        }
        return Result(self.name, state, diagnosis, self.asked, after=after.get(state, {}), **more)


@dataclass(frozen=True)
class Stage:
    """One step of a check: what it isolates, its inputs from small to large, and what a failure here most
    likely means."""

    title: str
    cases: Callable[[], list[Case]]
    meaning: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Write(Exercise):
    """A function to write or to repair, checked in stages against `reference`, else against the solution.

    A slip is an edit of the solution's text, or a function where no small edit makes it. With `repair` the
    first slip is the function that is given to start from. `hidden` makes further inputs, of other sizes,
    for whoever grades.
    """

    solution: Callable[..., Any]
    slips: Mapping[str, Edit | Callable]
    stages: tuple[Stage, ...]
    reference: Callable[..., Any] | None = None
    tolerance: float = 1e-4
    repair: bool = False
    extra: Callable[[Callable], str | None] | None = None
    hidden: Callable[[Draw], list[Case]] | None = None

    def wrong(self, slip: str) -> Callable:
        """The function that makes this mistake."""
        wrong = self.slips[slip]
        return wrong if callable(wrong) else edited(self.solution, wrong)

    @property
    def given(self) -> str:
        """The text of the function that a repair starts from: the first slip's."""
        wrong = next(iter(self.slips.values()))
        return source_of(wrong) if callable(wrong) else edited_text(self.solution, wrong)

    def expected(self, case: Case) -> Any:
        """The right result for these inputs."""
        return (self.reference or self.solution)(**values.copies(case))

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        names = tuple(self.stages[0].cases()[0])
        if not callable(answer):
            return self.result(
                "failed",
                f"this exercise asks for a function, you handed in {values.described(answer)}; "
                f"hand in the function itself, without calling it: check({self.name})",
            )
        if trouble := misfit(answer, names):
            return self.result("failed", trouble)
        steps = [(stage, case) for stage in self.stages for case in stage.cases()]
        for number, (stage, case) in enumerate(steps):
            step = f"{self.stages.index(stage) + 1} of {len(self.stages)}: {stage.title}"
            watch(step, case)
            outcome = call(answer, case)
            if number == 0 and (is_stub(answer, outcome) or outcome.error == "NotImplementedError: "):
                return self.result("open", NOTHING_YET)
            expected = self.expected(case)
            if number == 0 and _shaped(outcome.value, expected):
                again = call(answer, case)  # the random state has moved on since
                if wobbly := _wobbles(outcome, again):
                    return self.result("failed", wobbly, step=step)
            trouble = self._trouble(outcome, expected, stage)
            if trouble is None:
                continue
            if not outcome.changed and (slip := self._recognised(answer, case, [c for _, c in steps])):
                if self.repair and slip == next(iter(self.slips)):
                    return self.result("open", slip, step=step)
                trouble = slip
            yours = outcome.value if outcome.trouble is None else None
            shown = Counterexample(values.copies(case), expected, NO_RESULT if outcome.trouble else yours)
            return self.result("failed", trouble, step=step, counterexample=shown)
        if self.extra is not None:
            watch("the last step", {})
            try:
                trouble = self.extra(answer)
            except Exception as error:
                trouble = sentence(error)
            if trouble:
                return self.result("failed", trouble)
        return self.result("passed", f"all {len(self.stages)} steps are right")

    def _trouble(self, outcome: Call, expected: Tensor, stage: Stage) -> str | None:
        if outcome.changed:
            names = " and ".join(outcome.changed)
            return (
                f"your function changes its input {names} in place; whoever calls it keeps using that tensor:"
                " make a new one (x = x + 1 instead of x += 1; no method that ends in _)"
            )
        if outcome.trouble or (trouble := values.unfit(outcome.value, expected)):
            return outcome.trouble or trouble
        if trouble := values.unreal(outcome.value):
            return f"{trouble}. {stage.meaning}"
        if values.close(outcome.value, expected, self.tolerance):
            return None
        return f"{values.first_difference(outcome.value, expected, self.tolerance)}. {stage.meaning}"

    def _recognised(self, answer: Callable, failing: Case, cases: list[Case]) -> str | None:
        """The slip that gives what the answer gives: on the failing inputs, and on most of those that the
        answer gets wrong."""
        wanted = call(answer, failing)
        alike = [slip for slip in self.slips if self._agree(wanted, call(self.wrong(slip), failing))]
        if not alike:
            return None
        given = [(call(answer, case), case) for case in cases]
        agreed = {
            slip: [self._agree(own, call(self.wrong(slip), case)) for own, case in given] for slip in alike
        }
        first = next(iter(self.slips))
        if self.repair and first in agreed and not all(agreed[first]):
            del agreed[first]  # no longer the function as it was given
        if not agreed:
            return None
        best = max(agreed, key=lambda slip: sum(agreed[slip]))
        wrong = [
            same for same, (own, case) in zip(agreed[best], given, strict=True) if not self._right(own, case)
        ]
        return best if 2 * sum(wrong) > len(wrong) else None

    def _right(self, outcome: Call, case: Case) -> bool:
        expected = self.expected(case)
        return (
            outcome.trouble is None
            and not values.unfit(outcome.value, expected)
            and values.close(outcome.value, expected, self.tolerance)
        )

    def _agree(self, one: Call, other: Call) -> bool:
        if one.trouble or other.trouble:
            return one.error == other.error
        x, y = one.value, other.value
        if not (values.is_a(y, Tensor) and _shaped(x, y)):
            return False
        return x.dtype == y.dtype and values.close(x, y, self.tolerance)


@dataclass(frozen=True, kw_only=True, eq=False)
class Number(Exercise):
    """A number to find by hand, typed as a number or as an expression such as '12 * 34' or 'exp(2) / 3';
    `answer` is such an expression."""

    answer: str
    value: float | int
    tolerance: float = 2e-3

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        number, trouble = number_in(answer)
        if number is None:
            return self.result("failed", trouble)
        shown = Counterexample({}, None, answer if isinstance(answer, str) else number)
        if self._near(number, self.value):
            return self.result("passed", f"{values.numeral(self.value)} is right")
        for slip, wrong in self.slips.items():
            guess, _ = number_in(wrong)
            if guess is not None and self._near(number, guess):
                return self.result("failed", slip, counterexample=shown)
        side = "too large" if number > self.value else "too small"
        return self.result("failed", f"{values.numeral(number)} is {side}", counterexample=shown)

    def _near(self, x: float | int, y: float | int) -> bool:
        return abs(x - y) <= self.tolerance * max(abs(y), 1e-3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Exercise):
    """One letter to choose, `answer`. `slips` maps each sentence to the wrong letter it belongs to."""

    answer: str
    options: Mapping[str, str]

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        letters = ", ".join(self.options)
        if not isinstance(answer, str):
            return self.result(
                "failed", f'choose one letter of {letters}, in quotes, as "{next(iter(self.options))}"; '
                f"you handed in {values.described(answer)}"
            )  # fmt: skip
        letter = answer.strip(" \t\n().").lower()
        if letter not in self.options:
            return self.result(
                "failed", f"choose one letter of {letters}; you wrote {values.written(answer)}"
            )
        shown = Counterexample({}, None, f"{letter}) {self.options[letter]}")
        if letter == self.answer:
            return self.result("passed", f"{letter} is right", counterexample=shown)
        slip = next((s for s, wrong in self.slips.items() if wrong == letter), f"{letter} is not right")
        return self.result("failed", slip, counterexample=shown)


@dataclass(frozen=True, kw_only=True, eq=False)
class Open(Exercise):
    """A question to answer in sentences. The check reads words, not meaning: it looks for what a good answer
    cannot avoid.

    `slips` maps a sentence to the pattern of the wrong idea, `points` a question to the pattern of the idea
    that it asks for.
    """

    points: Mapping[str, str]
    least_words: int = 12

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        if not isinstance(answer, str):
            return self.result(
                "failed", f"answer in words, in quotes; you handed in {values.described(answer)}"
            )
        text = " ".join(answer.lower().split())
        if not text:
            return self.result("open", NOTHING_YET)
        for slip, pattern in self.slips.items():
            if any(
                re.search(pattern, part) and not re.search(NEGATION, part)
                for part in re.split(r"[.;!?]", text)
            ):
                return self.result("failed", slip)
        if len(text.split()) < self.least_words:
            return self.result(
                "failed", f"that is short: {self.least_words} words or more, please, as if to a friend"
            )
        for question, pattern in self.points.items():
            if not re.search(pattern, text):
                return self.result("failed", f"one thing is missing: {question}")
        result = self.result(
            "passed", "it names what matters. Whether it is right, no program can tell: compare"
        )
        result.after.update({"model answer": self.text, **result.after})
        return result


@cache
def edited(function: Callable, edit: Edit) -> Callable:
    """The function whose text is `edited_text`, among the names of the original's module."""
    function = inspect.unwrap(function)
    scope = dict(function.__globals__)
    exec(edited_text(function, edit), scope)
    return scope[function.__name__]


def edited_text(function: Callable, edit: Edit) -> str:
    """The text of a function with each old text of the edit replaced by the new one, in this order.

    Raises ValueError where an old text does not stand there, or more than once.
    """
    text = source_of(function)
    for old, new in zip(edit[::2], edit[1::2], strict=True):
        if text.count(old) != 1:
            raise ValueError(
                f"{old!r} stands {text.count(old)} times in {function.__name__}; an edit needs a text that"
                " stands there once"
            )
        text = text.replace(old, new)
    return text


NEGATION = r"\bnot?\b|n't\b|\bnever\b|\bnothing\b|\bneither\b|\bwrong\b|\brather than\b|\binstead of\b"


def is_stub(answer: Any, outcome: Call) -> bool:
    """True where the answer is still the empty stub: it gives back `...`, or None without doing anything."""
    if outcome.value is ...:
        return True
    plain = type(answer) is FunctionType
    code = answer.__code__ if plain else inspect.getattr_static(answer, "__code__", None)
    empty = outcome.value is None and not outcome.trouble
    return empty and type(code) is CodeType and not code.co_names and len(code.co_code) <= 16


def _shaped(value: Any, expected: Tensor) -> bool:
    """True for a tensor whose numbers can be looked at: it lies where the expected one lies, in its shape."""
    return (
        values.is_a(value, Tensor)
        and not (value.is_nested or value.is_quantized)
        and value.layout == torch.strided
        and value.device == expected.device
        and value.shape == expected.shape
    )


def _wobbles(once: Call, twice: Call) -> str | None:
    """A sentence where two calls with the same inputs differ."""
    x, y = once.value, twice.value
    if _shaped(y, x) and not values.close(x, y, 1e-6):
        return (
            "your function gives two different results for the same inputs; nothing in it may be random,"
            " or remembered from call to call"
        )
    return None
