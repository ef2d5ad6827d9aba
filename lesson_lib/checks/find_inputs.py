"""Exercises that ask for the inputs on which a wrong function is caught."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lesson_lib.checks import values
from lesson_lib.checks.exercise import Case, Exercise, Write
from lesson_lib.checks.result import NOTHING_YET, Result
from lesson_lib.checks.runner import call

MOST = 10_000  # numbers in one input


@dataclass(frozen=True, kw_only=True, eq=False)
class Expose(Exercise):
    """Inputs to find, on which the function that makes mistake `slip` of exercise `of` gives another result
    than the right one.

    `solution` is the text of such inputs. `slips` maps a sentence to what inputs that catch nothing have in
    common: a function of the inputs that says whether it is so.
    """

    of: Write
    slip: str
    solution: str
    slips: Mapping[str, Callable[..., bool]]

    @property
    def start(self) -> str:
        """The wrong function, and the inputs to write."""
        names = ", ".join(f'"{name}": ...' for name in self._names)
        wrong = self.of.wrong_text(self.slip).replace(f"def {self.of.name}(", f"def wrong_{self.of.name}(", 1)
        return f"{wrong}\n\n\n{self.name} = {{{names}}}"

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.of.stages[0].cases()[0])

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        if isinstance(answer, dict) and answer and all(given is ... for given in answer.values()):
            return self.result("open", NOTHING_YET)
        case, trouble = self._case(answer)
        if trouble:
            return self.result("unjudged", trouble)
        watch("your inputs", case)
        right = call(lambda *given: self.of.expected(dict(zip(case, given, strict=True))), case)
        if right.trouble:
            return self.result("unjudged", f"the right function cannot take these inputs: {right.error}")
        if not isinstance(right.value, Tensor) or values.unreal(right.value):
            return self.result("unjudged", "on these inputs the right function gives no finite numbers")
        wrong = call(self.of.wrong(self.slip), case)
        both = {
            "right gives": values.written(right.value),
            "wrong gives": wrong.error or values.written(wrong.value),
        }
        if wrong.trouble or not self._same(right.value, wrong.value):
            return self._shown(self.result("passed", "caught: the two results differ"), both)
        diagnosis = next((slip for slip, holds in self.slips.items() if holds(**case)), None)
        diagnosis = (
            diagnosis
            or "on these inputs the wrong function gives the right result: what does its mistake change?"
        )
        return self._shown(self.result("failed", diagnosis), both)

    @staticmethod
    def _shown(result: Result, both: dict[str, str]) -> Result:
        result.after.update(both | result.after)
        return result

    def _same(self, right: Tensor, wrong: Any) -> bool:
        return isinstance(wrong, Tensor) and values.close(right, wrong, self.of.tolerance)

    def _case(self, answer: Any) -> tuple[dict[str, Any], str]:
        """The inputs by their names and '', or a sentence on what is wrong with them."""
        names, wanted = self._names, ", ".join(self._names)
        if isinstance(answer, Tensor):
            answer = (answer,)
        if isinstance(answer, (tuple, list)) and len(answer) == len(names):
            answer = dict(zip(names, answer, strict=True))
        if not isinstance(answer, dict) or set(answer) != set(names):
            got = values.described(answer)
            return {}, f"give the inputs by their names, {{{wanted}}}, as a dictionary; you handed in {got}"
        if missing := [name for name in names if answer[name] is ... or answer[name] is None]:
            return {}, f"{missing[0]} is still missing: write a small tensor, or a number where one is asked"
        like = self.of.stages[0].cases()[0]
        for name in names:
            value = answer[name]
            if isinstance(like[name], Tensor) != isinstance(value, Tensor):
                kind = "a tensor" if isinstance(like[name], Tensor) else values.described(like[name])
                return {}, f"{name} is to be {kind}, you wrote {values.described(value)}"
            if isinstance(value, Tensor) and value.numel() > MOST:
                return {}, f"{name} has {value.numel()} numbers; the fewer, the better: {MOST} at most"
            if isinstance(value, Tensor) and values.unreal(value):
                return (
                    {},
                    f"{name} holds a number that is not finite; a real mistake shows with ordinary ones",
                )
        return {name: answer[name] for name in names}, ""


def catch(first: Write, asked: str, slip: str, inputs: dict[str, str], **more: object) -> Exercise:
    """Inputs to find on which a wrong answer of the first exercise fails; `inputs`: those of the solution."""
    lines = "".join(f'    "{name}": {text},\n' for name, text in inputs.items())
    name = f"{first.name}_2"
    return Expose(
        name=name,
        title="Catch it",
        asked=asked,
        of=first,
        slip=slip,
        solution=f"{name} = {{\n{lines}}}",
        **more,
    )
