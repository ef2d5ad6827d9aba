"""A mutation run over the exercises' solutions: which small changes of a right answer does `check` let pass?

`python -m tools.mutants`, run from the root, prints a table. What survives is listed, with its reason, in
`mutants.toml`.

Some changes are not made, since they change nothing where a check looks: the sign of what is squared or
made absolute; plus and minus 0, times and over 1; a docstring; `strict`, `weights` and `device`, which ask
for an error, a table more, another place. Nor is an axis counted from its other end where the number of axes
is fixed: it is then the same axis, or that of another mutant. Numbers of three digits and more change by a
tenth, since no answer is judged to a thousandth.
"""

import argparse
import ast
import inspect
import os
import sys
import tempfile
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from lesson_lib.checks import engine, runner, sandbox
from lesson_lib.checks.engine import check, lessons
from lesson_lib.checks.exercise import Exercise, Write
from lesson_lib.checks.result import Result
from lesson_lib.checks.short_answers import Choice, Number

LESSONS = lessons()

ENOUGH = 0.95  # of the mutants that run and differ, the share that is rejected in each lesson
LIST = Path(__file__).with_name("mutants.toml")
PATIENCE_S = 60.0  # a busy machine is no verdict
ENDLESS_S = 1.0  # of the processor: where there is a `while`, some mutants never end

OPERATORS = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.FloorDiv: [ast.Div],
    ast.Mod: [ast.FloorDiv],
    ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
_PAIRS = "max min, amax amin, argmax argmin, maximum minimum, sin cos, sum mean, zeros_like ones_like"
ASKS = {"strict", "weights", "device"}
AXES = (
    "all amax amin any argmax argmin argsort cat chunk cumsum flatten gather index_add log_softmax logsumexp"
    " max mean min norm permute prod size softmax sort split squeeze stack std sum topk transpose unbind"
    " unflatten unsqueeze var"
).split()
SIGNLESS = {"abs", "square", "cos"}
COMMUTE = {"max", "min", "maximum", "logaddexp", "transpose"}  # their two arguments may change places
NAMES = {a: b for pair in _PAIRS.split(", ") for a, b in (pair.split(), reversed(pair.split()))}


def changes(node: ast.AST) -> Iterator[Any]:
    """What an expression may be replaced by: other operators, numbers, names, orders, and parts of itself."""

    def other(**fields: Any) -> ast.AST:
        return type(node)(**{name: getattr(node, name) for name in node._fields} | fields)

    match node:
        case ast.BinOp(left, op, right):
            yield from (other(op=new()) for new in OPERATORS.get(type(op), ()))
            if not isinstance(op, (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)):
                yield other(left=right, right=left)
        case ast.BoolOp(op=op) | ast.AugAssign(op=op):
            yield from (other(op=new()) for new in OPERATORS.get(type(op), ()))
        case ast.Compare(ops=[op, *others]):
            yield from (other(ops=[new(), *others]) for new in OPERATORS.get(type(op), ()))
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield other(value=not value)
        case ast.Constant(value=int() | float() as value):
            step = max(1, value // 10) if value >= 100 else 1
            yield from (other(value=new) for new in (value + step, value - step, 2 * value))
            yield ast.UnaryOp(ast.USub(), node) if value else node
        case ast.Constant(value=str() as value) if value in NAMES:
            yield other(value=NAMES[value])
        case ast.Slice(lower, upper, step):
            for name, bound in (("lower", lower), ("upper", upper), ("step", step)):
                if bound is not None:
                    yield other(**{name: None})
                    yield other(**{name: ast.BinOp(bound, ast.Add(), ast.Constant(1))})
        case ast.Attribute(value, "mT" | "T"):
            yield value
        case ast.Attribute(attr=attr) if attr in NAMES:
            yield other(attr=NAMES[attr])
        case ast.IfExp(test, body, orelse):
            yield other(body=orelse, orelse=body)
        case ast.Call(function, arguments, keywords):
            yield from (
                other(keywords=keywords[:i] + keywords[i + 1 :])
                for i, keyword in enumerate(keywords)
                if keyword.arg not in ASKS
            )
            if len(arguments) > 1 and ast.unparse(function).rpartition(".")[2] not in COMMUTE:
                yield other(args=[arguments[1], arguments[0], *arguments[2:]])
            if isinstance(function, ast.Attribute) and ast.unparse(function.value).split(".")[0] != "torch":
                yield function.value  # x.exp() becomes x
            elif arguments and not isinstance(arguments[0], ast.Starred):
                yield arguments[0]  # torch.exp(x) becomes x
        case ast.If(test) | ast.While(test):
            yield other(test=ast.UnaryOp(ast.Not(), test))


@cache
def mutants(text: str) -> dict[str, str]:
    """Every text with one change, by what was changed: 'the line => the new line' -> the whole new text.

    Only bodies of functions are changed, no signature. A statement is deleted unless it is a `return`, or the
    first to bind its names: without it the text could only stop with a NameError.
    """
    tree, found = ast.parse(text), {}
    fixed, before = _fixed(tree), ast.unparse(tree).splitlines()
    for parent, field, i in list(_places(tree)):
        part = getattr(parent, field) if i is None else getattr(parent, field)[i]
        for new in [*changes(part), *([ast.Pass()] if _can_go(part, tree) else [])]:
            if _same(part, new, parent, fixed):
                continue
            _put(parent, field, i, new)
            source = ast.unparse(tree).replace("--", "")  # of -1 it makes 1
            _put(parent, field, i, part)
            lines = zip(before, source.splitlines(), strict=False)
            if first := next((f"{a.strip()}  =>  {b.strip()}" for a, b in lines if a != b), None):
                found.setdefault(first, source)
    return found


def _put(parent: ast.AST, field: str, i: int | None, part: Any) -> None:
    if i is None:
        setattr(parent, field, part)
    else:
        getattr(parent, field)[i] = part


def _fixed(tree: ast.AST) -> bool:
    """True where by the signatures every tensor that is given has as many axes in each call."""
    shapes = [
        part.slice.elts[-1].value.split()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for argument in ast.walk(function.args)
        if isinstance(argument, ast.arg) and argument.annotation is not None
        for part in ast.walk(argument.annotation)
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple)
        if isinstance(part.slice.elts[-1], ast.Constant) and isinstance(part.slice.elts[-1].value, str)
    ]
    return bool(shapes) and not any("*" in axis or axis == "..." for axes in shapes for axis in axes)


def _same(part: ast.AST, new: ast.AST, parent: ast.AST, fixed: bool) -> bool:
    """True for a change that changes nothing: see above."""
    sign = _negative(part) or _negative(new)
    turned = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and _alike(part.left, new, "right")
    match part:
        case ast.BinOp(right=ast.Constant(value=0), op=ast.Add() | ast.Sub()):
            return _alike(part.right, new, "right") and not isinstance(getattr(new, "op", None), ast.Mult)
        case ast.BinOp(right=ast.Constant(value=1), op=ast.Mult() | ast.Div()):
            return _alike(part.right, new, "right")
        case ast.Slice(lower=ast.Constant(value=0)):
            return getattr(new, "lower", part) is None
    match parent:
        case ast.UnaryOp(ast.USub()):
            return _negative(new)  # it is made without the sign, too
        case ast.BinOp(left, ast.Pow(), ast.Constant(value=int() as power)) if left is part:
            return power % 2 == 0 and (sign or turned)
        case ast.Attribute(value, attr) if value is part and attr in SIGNLESS:
            return sign or turned
        case ast.keyword(arg):
            return arg in ASKS or (fixed and sign and arg == "dim")
        case ast.Call(ast.Attribute(attr=attr), arguments) if part in arguments:
            return fixed and sign and attr in AXES
        case ast.Subscript(ast.Attribute(attr="shape"), index) if index is part:
            return fixed and sign
    return False


def _negative(part: ast.AST) -> bool:
    number = part.value if isinstance(part, ast.Constant) else 0
    minus = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub)
    return minus or (type(number) in (int, float) and number < 0)


def _alike(part: ast.AST, new: ast.AST, field: str) -> bool:
    return ast.dump(part) == ast.dump(getattr(new, field, ast.Pass()))


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Parent, field and index of every part below, signatures left out."""
    for field, value in ast.iter_fields(tree):
        if field in ("args", "returns") and isinstance(tree, (ast.FunctionDef, ast.Lambda)):
            continue
        for i, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(part, ast.AST):
                yield tree, field, i
                yield from _places(part)


def _can_go(part: ast.AST, tree: ast.AST) -> bool:
    if isinstance(part, (ast.Return, ast.FunctionDef, ast.Pass)) or not isinstance(part, ast.stmt):
        return False
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):  # a docstring
        return False
    own = {id(inner) for inner in ast.walk(part)}
    bound = {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    before = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)} | {
        n.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        if id(n) not in own and n.lineno < part.lineno
    }
    return bound <= before


def answers(exercise: Exercise) -> dict[str, Callable[[], Any]]:
    """Every mutant of an exercise's right answer: what was changed -> how to make the answer."""
    if isinstance(exercise, Choice):
        wrong = [letter for letter in exercise.options if letter != exercise.answer]
        return {letter: lambda letter=letter: letter for letter in wrong}
    if isinstance(exercise, Number):
        return {said: lambda source=source: source for said, source in mutants(exercise.answer).items()}
    if isinstance(exercise, Write):
        return {
            said: lambda source=source: _defined(source, exercise)
            for said, source in mutants(exercise.text).items()
        }
    return {}


def _defined(source: str, exercise: Write) -> Callable:
    """The function of that text, among the names of its lesson's module."""
    session = dict(inspect.unwrap(exercise.solution).__globals__)
    exec(source, session)
    return session[exercise.name]


def verdicts(exercise: Exercise) -> dict[str, str]:
    """What was changed -> 'survives', 'rejected', or 'stops', where the mutant ends with an error and no
    check is needed."""
    exercise = replace(exercise, slips={})  # to name a mistake takes longer than to find it
    endless = isinstance(exercise, Write) and "while " in exercise.text
    with tempfile.TemporaryDirectory() as home, warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")  # a mutant may index by a list
        stack.enter_context(mock.patch.dict(os.environ, LESSON_HOME=home))
        stack.enter_context(mock.patch.dict(engine.exercises(), {exercise.name: exercise}))
        stack.enter_context(
            mock.patch.object(sandbox, "tried", lambda *given: sandbox.Trial())
        )  # thousands, harmless
        stack.enter_context(mock.patch.object(runner, "DEADLINE_S", ENDLESS_S if endless else PATIENCE_S))
        results = {said: check(answer(), exercise.name) for said, answer in answers(exercise).items()}
    return {said: _verdict(result, exercise) for said, result in results.items()}


def _verdict(result: Result, exercise: Exercise) -> str:
    asked_back = result.state == "unjudged" and not isinstance(exercise, Write)
    if result.state not in ("failed", "open") and not asked_back:  # open: as it was given
        return "survives"
    return "stops" if result.diagnosis.startswith("your function stops with") else "rejected"


def survivors(exercise: Exercise) -> list[str]:
    """What was changed in those mutants that `check` does not reject."""
    return [said for said, verdict in verdicts(exercise).items() if verdict == "survives"]


def listed() -> dict[str, dict[str, str]]:
    """Exercise -> what was changed -> why it survives, as `mutants.toml` says."""
    return tomllib.loads(LIST.read_text("utf-8"))


@dataclass(frozen=True)
class Score:
    """How many mutants of a lesson run, how many of them `check` rejects, and as what the others are listed.

    Those that end with an error are counted apart: anything would reject them.
    """

    stops: int
    mutants: int
    rejected: int
    equivalent: int
    accepted: int

    @property
    def of_all(self) -> float:
        """Share that is rejected of all mutants that run."""
        return self.rejected / self.mutants

    @property
    def of_different(self) -> float:
        """Share that is rejected of the mutants that run and are not listed as equivalent."""
        return self.rejected / (self.mutants - self.equivalent)


@cache
def verdicts_of(lesson: str) -> dict[str, dict[str, str]]:
    """Exercise -> what was changed -> the verdict, for the exercises of a lesson; a prediction is a guess."""
    return {e.name: verdicts(e) for e in LESSONS[lesson] if not e.prediction}


def score(lesson: str) -> Score:
    """The score of a lesson; survivors that are not listed count as accepted."""
    why, kinds = listed(), Counter()
    for name, found in verdicts_of(lesson).items():
        for said, verdict in found.items():
            reason = why.get(name, {}).get(said, "")
            equivalent = verdict == "survives" and reason.startswith("equivalent: ")
            kinds["equivalent" if equivalent else verdict] += 1
    run = kinds.total() - kinds["stops"]
    return Score(kinds["stops"], run, kinds["rejected"], kinds["equivalent"], kinds["survives"])


ROW = "{:24} {:>6} {:>8} {:>9} {:>11} {:>9} {:>8} {:>13}"
HEAD = ("lesson", "stop", "mutants", "rejected", "equivalent", "accepted", "of all", "of different")


def row(name: str, found: Score) -> str:
    """One line of the table."""
    shares = (f"{100 * share:.1f} %" for share in (found.of_all, found.of_different))
    return ROW.format(name, *astuple(found), *shares)


def strays(lesson: str) -> Iterator[str]:
    """What does not fit the list: a mutant that is let pass and is not in it, and one that is and is not."""
    every = listed()
    for name, found in verdicts_of(lesson).items():
        passed, here = (
            {said for said, verdict in found.items() if verdict == "survives"},
            set(every.get(name, ())),
        )
        yield from (f"let pass, and not listed: [{name}] {said}" for said in sorted(passed - here))
        yield from (f"listed, and does not survive: [{name}] {said}" for said in sorted(here - passed))


def main(arguments: list[str] | None = None) -> int:
    """Print the table, and what does not fit the list; 1 where something does not, or a lesson lets pass more
    than ENOUGH allows."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.split("\n\n")[0])
    parser.add_argument("lessons", nargs="*", metavar="lesson", help=f"such as {next(iter(LESSONS))}")
    lessons = parser.parse_args(arguments).lessons or list(LESSONS)
    if unknown := [lesson for lesson in lessons if lesson not in LESSONS]:
        parser.error(f"no lesson with exercises is called {unknown[0]!r}; they are {', '.join(LESSONS)}")
    print(ROW.format(*HEAD))
    scores = []
    for lesson in lessons:
        scores.append(score(lesson))
        print(row(lesson.rpartition("/")[2], scores[-1]), flush=True)
    print(row("together", Score(*(sum(parts) for parts in zip(*map(astuple, scores), strict=True)))))
    print(
        "stop: end with an error, and are not counted; mutants: run to their end; equivalent, accepted: let"
        " pass, listed with\nthe reason in tools/mutants.toml; of all: rejected / mutants; of different:"
        " rejected / (mutants - equivalent)"
    )
    wrong = [said for lesson in lessons for said in strays(lesson)]
    wrong += [f"{lesson}: under {ENOUGH}" for lesson in lessons if score(lesson).of_different < ENOUGH]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
