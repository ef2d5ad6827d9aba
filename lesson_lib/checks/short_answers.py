"""What is answered in short: a number, one letter, a word, a few sentences."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lesson_lib.checks import values
from lesson_lib.checks.exercise import Case, Exercise
from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.result import NOTHING_YET, Counterexample, Result

AGREES = "does nothing in it contradict the model answer?"
NEGATION = r"\bnot?\b|n't\b|\bnever\b|\bnothing\b|\bneither\b|\bwrong\b|\brather than\b|\binstead of\b"


@dataclass(frozen=True, kw_only=True, eq=False)
class Number(Exercise):
    """A number to find by hand, typed as a number or as an expression such as '12 * 34' or 'exp(2) / 3';
    `answer` is such an expression, `also` others that are right."""

    answer: str
    also: tuple[str, ...] = ()
    value: float | int
    tolerance: float = 2e-3

    @property
    def right(self) -> str:
        """The number, and the expression that gives it."""
        number = values.numeral(self.value)
        return number if self.answer == number else f"{number} = {self.answer}"

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        number, trouble = self._read(answer)
        if number is None:
            return self.result("unjudged", trouble)
        shown = Counterexample({}, None, answer if values.is_a(answer, str) else number)
        if self._near(number, self.value):
            return self.result("passed", f"{values.numeral(self.value)} is right")
        for slip, wrong in self.slips.items():
            guess, _ = number_in(wrong)
            if guess is not None and self._near(number, guess):
                return self.result("failed", slip, counterexample=shown)
        side = "too large" if number > self.value else "too small"
        diagnosis = f"{values.numeral(number)} is {side}{near_miss(number, self.value)}"
        return self.result("failed", diagnosis, counterexample=shown)

    def _read(self, answer: Any) -> tuple[float | None, str]:
        """The number that was typed, or None and why not. A comma is read where one meaning of it is right,
        and else asked back."""
        if not (values.is_a(answer, str) and re.fullmatch(r"\s*-?\d+(,\d+)+(\.\d+)?\s*", answer)):
            return number_in(answer)
        whole, point = answer.replace(",", ""), answer.replace(",", ".")
        meant = [number_in(text)[0] for text in (whole, point)]
        fits = [number for number in meant if number is not None and self._near(number, self.value)]
        asked = f"does the comma of {answer.strip()} part thousands or decimals? Write {whole} without it"
        return (fits[0], "") if fits else (None, asked + (f", or {point}" if point.count(".") == 1 else ""))

    def _near(self, x: float | int, y: float | int) -> bool:
        return abs(x - y) <= self.tolerance * max(abs(y), 1e-3)


def near_miss(number: float, right: float) -> str:
    """What the usual near misses have in common with the right number, as the end of a sentence; '' for any
    other.

    >>> near_miss(0.73, 0.7311), near_miss(15, 16), near_miss(20, 16)
    ('; it is close: keep four digits', '; it is one off: which ends are counted?', '')
    """
    if right == 0 or number == 0:
        return ""
    whole, whole_too = float(right).is_integer(), float(number).is_integer()
    if whole and abs(number - right) == 1 and abs(right) > 2:
        return "; it is one off: which ends are counted?"
    ratio, close = number / right, 1e-3
    if not whole and not whole_too and abs(ratio - 1) < 0.02:
        return "; it is close: keep four digits"
    known = {
        -1.0: "its sign is turned round",
        2.0: "it is twice the right one: is something counted twice?",
        0.5: "it is half the right one: is something counted once that is there twice?",
        10.0: "is the decimal point in its place?",
        0.1: "is the decimal point in its place?",
        100.0: "is a percentage meant? Write the share",
        0.01: "is a share meant?",
    }
    for factor, meaning in known.items():
        share = whole and whole_too and factor in (100.0, 0.01)  # of whole numbers none is a share
        if abs(ratio / factor - 1) < close and not share:
            return f"; {meaning}"
    if abs(right) != 1 and abs(number * right - 1) < close:
        return "; it is upside down: which is divided by which?"
    for power, meaning in (
        (2, "it is the square of the right one"),
        (0.5, "it is the root of the right one"),
    ):
        if right > 0 and abs(right - 1) > 0.1 and abs(number / right**power - 1) < close:
            return f"; {meaning}"
    return ""


def fresh(n: int, make: Callable[[random.Random], Number]) -> Number:
    """The n-th exercise of a generator: the first of its draws whose answer and slips are all told apart."""
    for draw in range(1000):
        number = make(random.Random(1000 * n + draw))
        numbers = [number.value, *(number_in(slip)[0] for slip in number.slips.values())]
        if not any(number._near(x, y) or number._near(y, x) for x, y in combinations(numbers, 2)):
            return number
    raise ValueError(f"{number.name}: no numbers in 1,000 draws tell its answer from its slips")


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Exercise):
    """One letter to choose, `answer`. `slips` maps each sentence to the wrong letter it belongs to."""

    answer: str
    options: Mapping[str, str]

    @property
    def right(self) -> str:
        """The letter with its option."""
        return f"{self.answer}) {self.options[self.answer]}"

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        letters = ", ".join(self.options)
        if not values.is_a(answer, str):
            return self.result(
                "unjudged", f'choose one letter of {letters}, in quotes, as "{next(iter(self.options))}"; '
                f"you handed in {values.described(answer)}"
            )  # fmt: skip
        letter = self._letter(answer)
        if letter not in self.options:
            return self.result(
                "unjudged", f"choose one letter of {letters}; you wrote {values.written(answer)}"
            )
        shown = Counterexample({}, None, f"{letter}) {self.options[letter]}")
        if letter == self.answer:
            return self.result("passed", f"{letter} is right", counterexample=shown)
        slip = next((s for s, wrong in self.slips.items() if wrong == letter), f"{letter} is not right")
        return self.result("failed", slip, counterexample=shown)

    def _letter(self, answer: str) -> str:
        """The letter that was meant: b, (B), "b) with its text", or an option's text alone."""
        typed = answer.strip().lower()
        by_text = {option.lower(): letter for letter, option in self.options.items()}
        match = re.match(r"\(?\s*(?:option |answer )?([a-z])\s*(?:[).:](?:\s.*)?)?$", typed, re.S)
        return by_text.get(typed) or (match[1] if match else typed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Word(Exercise):
    """One word, or a few, to type: `answer`, or one of `also`. `slips` maps each sentence to the wrong word
    it belongs to."""

    answer: str
    also: tuple[str, ...] = ()

    @property
    def right(self) -> str:
        """The word."""
        return self.answer

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        if not values.is_a(answer, str) or not _bare(answer):
            problem = f"type a word, in quotes; you handed in {values.described(answer)}"
            return self.result("unjudged", "type a word" if answer == "" else problem)
        shown = Counterexample({}, None, answer)
        if _bare(answer) in map(_bare, (self.answer, *self.also)):
            return self.result("passed", f"{self.answer} is right", counterexample=shown)
        named = {_bare(wrong): slip for slip, wrong in self.slips.items()}
        slip = named.get(_bare(answer), f"{values.written(answer)} is not it")
        return self.result("failed", slip, counterexample=shown)


RETURNING = (Choice, Number, Word)  # what warm_up() and review() ask again


def _bare(word: str) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", word.casefold()).split())


@dataclass(frozen=True, kw_only=True, eq=False)
class Open(Exercise):
    """A question to answer in sentences, which its writer judges beside a model answer: no program can.

    `points` are questions that a good answer answers. `slips` maps a sentence to the pattern of the wrong
    idea; where the words have it, the sentence is a hint to look again, and no more.
    """

    points: tuple[str, ...]
    least_words: int = 12

    @property
    def rubric(self) -> tuple[str, ...]:
        """What is asked of an answer, each with yes or no."""
        return (*(f"does it say, rightly: {point}" for point in self.points), AGREES)

    def judge(self, answer: Any, watch: Callable[[str, Case], None]) -> Result:
        if not values.is_a(answer, str):
            problem = f"answer in words, in quotes; you handed in {values.described(answer)}"
            return self.result("unjudged", problem)
        text = " ".join(answer.lower().split())
        if not text:
            return self.result("open", NOTHING_YET)
        if len(text.split()) < self.least_words:
            problem = f"that is short: {self.least_words} words or more, please, as if to a friend"
            return self.result("unjudged", problem)
        result = self.result("written", "now compare it with the model answer, and judge it point by point")
        answers = ", ".join('"yes"' for _ in self.rubric)
        rows = {f"point {number}": point for number, point in enumerate(self.rubric, 1)}
        doubts = [slip for slip, pattern in self.slips.items() if _says(text, pattern)]
        rows |= {"look again": "; ".join(doubts)} if doubts else {}
        how = f'judge("{self.name}", {answers}), with "no" where a point does not hold'
        result.after.update({"model answer": self.text, **rows, "next": how})
        return result


def _says(text: str, pattern: str) -> bool:
    """Whether a sentence of the text has the pattern and no negation."""
    parts = re.split(r"[.;!?]", text)
    return any(re.search(pattern, part) and not re.search(NEGATION, part) for part in parts)
