"""Base class `Exercise`, and `Write`: an exercise answered by a function. Choice, Number, Word, Open: short.

Each knows its card, its hints, its solution, its typical wrong answers (`slips`: sentence -> what is wrong),
and judges an answer.
"""

import ast
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks import values
from lesson_lib.checks.inputs import source_of
from lesson_lib.checks.result import NO_RESULT, NOTHING_YET, Counterexample, Result
from lesson_lib.checks.runner import Call, call, misfit, sentence

Case = Mapping[str, Any]  # tensors, and plain numbers such as n_heads
Draw = Callable[..., Tensor]  # inputs.drawn
Edit = tuple[str, ...]  # what to replace in a solution's text, and by what: old, new, old, new ...

WOBBLES = (
    "your function gives two different results for the same inputs: is dropout left on, is something random,"
    " or remembered from call to call?"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Exercise(ABC):
    """The card of an exercise, and what every kind of exercise has.

    `solution` is what `solution(name)` shows; of a function its source. `slips` maps the sentence that names
    a mistake to the mistake itself: a number or an expression, a letter, a word, a pattern, an edit of the
    solution. `notebook` is the one that asks it, where that is not the chapter's own of exercises. A
    prediction, which predict() asks inside a part, has no stars and no hints; its `remember` says why the
    right answer is right. `second(n)` makes a second problem of the same idea: other numbers for each n.
    """

    name: str
    asked: str
    solution: str | Callable = ""
    remember: str
    slips: Mapping[str, Any]
    title: str = ""
    stars: int = 0
    minutes: int = 1
    why: str = ""
    hints: tuple[str, ...] = ()
    picture: Callable[[], Any] | None = None
    notebook: str = ""
    second: Callable[[int], "Exercise"] | None = None

    @property
    def prediction(self) -> bool:
        """True where it is asked by predict() inside a part, and answered once."""
        return not self.stars

    @property
    def right(self) -> str:
        """The right answer in a few words; '' where it takes more."""
        return ""

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
            "judged": {"remember": self.remember},
            "failed": {"next": f'hint("{self.name}")'} if self.hints else {},
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

    def wrong_text(self, slip: str) -> str:
        """The text of the function that makes this mistake."""
        wrong = self.slips[slip]
        return source_of(wrong) if callable(wrong) else edited_text(self.solution, wrong)

    @property
    def start(self) -> str:
        """What a learner starts from: the function without its body, or the one to repair."""
        if self.repair:
            return self.wrong_text(next(iter(self.slips)))
        first = ast.parse(self.text).body[0].body[0].lineno - 1
        return "\n".join([*self.text.split("\n")[:first], "    return ..."])

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
            if number == 0 and _wobbles(answer, case, outcome):
                return self.result("failed", WOBBLES, step=step)
            trouble = self._trouble(outcome, expected, stage)
            if trouble is None:
                continue
            # One weight that is dropped now and then shows best where there are many.
            if not outcome.changed and _wobbles(answer, max((c for _, c in steps), key=_size)):
                return self.result("failed", WOBBLES, step=step)
            if not outcome.changed and (slip := self._recognised(answer, case, [c for _, c in steps])):
                trouble = slip
                if self.repair and slip == next(iter(self.slips)):
                    if is_text_of(answer, self.start):
                        return self.result("open", slip, step=step)
                    trouble = f"what you changed changes no result yet. {stage.meaning}"
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
        """The known mistake whose outputs equal the answer's, on the failing case and on most failing cases.
        Where that is open, the other cases decide."""
        wanted = call(answer, failing)
        alike = [slip for slip in self.slips if self._alike(wanted, slip, failing) != 0]
        if not alike:
            return None
        given = [(call(answer, case), case) for case in cases]
        agreed = {slip: [self._alike(own, slip, case) for own, case in given] for slip in alike}
        first = next(iter(self.slips))
        if self.repair and first in agreed and set(agreed[first]) != {1}:
            del agreed[first]  # no longer the function as it was given
        if not agreed:
            return None
        best = max(agreed, key=lambda slip: sum(same or 0 for same in agreed[slip]) - agreed[slip].count(0))
        right = [self._right(own, case) for own, case in given]
        wrong = [same for same, good in zip(agreed[best], right, strict=True) if not good]
        # A slip that fails where the answer is right is not its mistake: they agree by chance.
        by_chance = any(good and not same for same, good in zip(agreed[best], right, strict=True))
        if by_chance or (0 in wrong and all(_holds_nothing(own) for own, _ in given)):
            return None
        return best if sum(map(bool, wrong)) > wrong.count(0) else None

    def _right(self, outcome: Call, case: Case) -> bool:
        expected = self.expected(case)
        return (
            outcome.trouble is None
            and not values.unfit(outcome.value, expected)
            and values.close(outcome.value, expected, self.tolerance)
        )

    def _alike(self, one: Call, slip: str, case: Case) -> float | None:
        """1 where the slip gives what the answer gave: numbers, nan and inf in the same places, in whatever
        shape, or the same error; 1/2 where only the slip holds nan, and what is left is alike and wrong (a
        row that is hidden by -inf is nan, one hidden by -1e9 is not); else 0.

        None where that is open: one of them stops and the other does not (einsum repeats what `@` refuses),
        or both do, each in its own words; or nan is all that is wrong.
        """
        other = call(self.wrong(slip), case)
        if one.trouble or other.trouble:
            return 1 if one.error == other.error else None
        x, y = one.value, other.value
        if not (values.is_a(y, Tensor) and _shaped(x, y)):
            return 0
        if values.numbers(x.dtype) != values.numbers(y.dtype):
            return 0
        x, y = values.plain(x), values.plain(y)
        left = x.isnan() == y.isnan()
        if left.all() or x[~left].isnan().any() or not values.close(x[left], y[left], self.tolerance):
            return int(values.close(x, y, self.tolerance))
        expected = values.plain(self.expected(case))
        right = x.shape == expected.shape and values.close(x[left], expected[left], self.tolerance)
        return None if right or not left.any() else 0.5


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


def is_text_of(answer: Callable, text: str) -> bool:
    """True where the answer does what that text does, line by line, but for comments, layout and annotations;
    also where it cannot be read."""
    try:
        own = source_of(answer)
    except (OSError, TypeError):
        return True
    try:
        bodies = [ast.parse(code).body[0].body for code in (own, text)]
    except (SyntaxError, AttributeError):  # a lambda in the middle of a line
        return False
    return [*map(ast.dump, bodies[0])] == [*map(ast.dump, bodies[1])]


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


def _wobbles(answer: Callable, case: Case, once: Call | None = None) -> bool:
    """True where two calls with the same inputs differ; the random state has moved on in between."""
    x, y = (once or call(answer, case)).value, call(answer, case).value
    has_numbers = values.is_a(x, Tensor) and not x.is_meta
    return has_numbers and _shaped(y, x) and not values.close(x, y, 1e-6)


def _holds_nothing(outcome: Call) -> bool:
    """True for a tensor of nothing but nan, which is what many mistakes come to."""
    x = outcome.value
    has_numbers = values.is_a(x, Tensor) and not x.is_meta and _shaped(x, x)
    return has_numbers and bool(values.plain(x).isnan().all())


def _size(case: Case) -> int:
    """How many numbers the inputs hold."""
    return sum(x.numel() for x in case.values() if values.is_a(x, Tensor))
