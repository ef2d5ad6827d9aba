"""A function's exercise as a number to compute by hand, for pages without a kernel.

Nothing that a page can load runs torch, so what a learner writes cannot be run there. But what the function
gives for small inputs can be asked, and a wrong number told by the same mistakes as a wrong function: each
slip is called with the same inputs. Of the exercise's own small inputs, with random numbers rounded, the one
is asked in whose result one number tells most of its mistakes apart; the first ones, which are usual, count
most.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks import values
from lesson_lib.checks.exercise import Write
from lesson_lib.checks.runner import call
from lesson_lib.checks.short_answers import Number

MOST = 24  # numbers in all inputs together
FEWEST = 2  # mistakes that the number must tell apart


def asked_on_paper(exercise: Write) -> Number | None:
    """The question; None where no small inputs tell two of its mistakes apart, where the inputs are
    functions, and where the result is True or False."""
    order = list(exercise.slips)

    def worth(found: tuple) -> tuple[float, float]:  # and then few numbers to compute with
        numbers = sum(x.numel() for x in found[0].values() if isinstance(x, Tensor))
        return sum(1 / (1 + order.index(slip)) for slip in found[2]), -numbers

    every = (told for case in _small(exercise) for told in _told(exercise, case))
    found = max(every, key=worth, default=None)
    if found is None or len(found[2]) < FEWEST:
        return None
    case, at, slips, right = found
    place = f"[{', '.join(map(str, at))}]" if at else ""
    given = ", ".join(f"`{name} = {_text(x)}`" for name, x in case.items())
    return Number(
        name=f"{exercise.name}_on_paper",
        asked=f"For {given}: which number is `{exercise.name}(...){place}`?",
        answer=values.numeral(right),
        value=right,
        remember=exercise.remember,
        slips={slip: values.numeral(x) for slip, x in slips.items()},
    )


def _small(exercise: Write) -> Iterator[dict[str, Any]]:
    """Its inputs that fit on paper, random numbers rounded to whole ones."""
    for stage in exercise.stages:
        for case in stage.cases():
            sizes = [x.numel() if isinstance(x, Tensor) else 1 for x in case.values()]
            plain = all(isinstance(x, (Tensor, int, float)) for x in case.values())
            if plain and sum(sizes) <= MOST:
                yield {name: _rounded(x) for name, x in case.items()}


def _rounded(x: Any) -> Any:
    if not isinstance(x, Tensor) or not x.is_floating_point() or torch.equal(x, (x * 100).round() / 100):
        return x
    return x.round() if x.min() < 0 else (10 * x).round() / 10


def _told(
    exercise: Write, case: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], tuple[int, ...], dict[str, float], float]]:
    """For each number of the result: its place, and what each mistake gives there, as far as these differ."""
    with contextlib.suppress(Exception):  # rounded inputs may make no sense
        right = exercise.expected(case)
        if not isinstance(right, Tensor) or right.dtype == torch.bool or not right.isfinite().all():
            return
        made = {}
        for slip in exercise.slips:
            outcome = call(exercise.wrong(slip), values.copies(case))
            if isinstance(outcome.value, Tensor) and outcome.value.shape == right.shape:
                made[slip] = outcome.value
        for at in torch.cartesian_prod(*map(torch.arange, right.shape)).view(-1, right.ndim).tolist():
            number, told = right[tuple(at)].item(), {}
            for slip, x in made.items():
                wrong = float(x[tuple(at)])
                apart = [
                    abs(wrong - other) > 0.02 * max(abs(other), 0.05) for other in (number, *told.values())
                ]
                if wrong == wrong and abs(wrong) < 1e6 and all(apart):
                    told[slip] = wrong
            yield case, tuple(at), told, number


def _text(x: Any) -> str:
    if not isinstance(x, Tensor):
        return f"{x:g}" if isinstance(x, float) else str(x)
    if x.ndim:
        return f"[{', '.join(map(_text, x))}]"
    return str(x.item()) if x.dtype == torch.bool else f"{x.item():g}"
