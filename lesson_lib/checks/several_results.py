"""A function to write of which several results are right, such as edges in any order."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lesson_lib.checks.exercise import Case, Write
from lesson_lib.checks.result import Result


class _Normalised:
    """Wraps an answer and normalises its result before comparison, for example sorts edges; name, parameters
    and code are the answer's."""

    def __init__(self, answer: Callable, normalise: Callable[..., Any]) -> None:
        self.answer, self.normalise = answer, normalise
        self.__wrapped__ = answer
        for name in ("__name__", "__code__"):
            if hasattr(answer, name):
                setattr(self, name, getattr(answer, name))

    def __call__(self, *given: Any) -> Any:
        return self.normalise(self.answer(*given), *given)


@dataclass(frozen=True, kw_only=True, eq=False)
class Alike(Write):
    """A function to write of which several results are right; `normalise(result, *inputs)` makes
    one of them all."""

    normalise: Callable[..., Any]

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        """The result, where `normalise` is applied to what the answer, the slips and the reference return."""
        if not callable(answer) or isinstance(answer, type):
            return super().judge(answer, watch)
        slips = {slip: _Normalised(self.wrong(slip), self.normalise) for slip in self.slips}
        reference = _Normalised(self.reference or self.solution, self.normalise)
        normalised = replace(self, slips=slips, reference=lambda **case: reference(*case.values()))
        return super(Alike, normalised).judge(_Normalised(answer, self.normalise), watch)
