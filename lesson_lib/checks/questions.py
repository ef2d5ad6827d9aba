"""Questions as their authors write them: words in a chapter's `questions/*.md`, and what is code beside them.

A file holds the questions of the notebook of its name, in their order; `exercises.md` those of the chapter's
exercises. What of them is code stands in CODE of the Python file of the same name, or of others beside it
that a first line names: `code: traps, wild_tiles`. A block reads

    ## NAME: title
    ★★ 8 min: why one should do it          (or "8 min, repair": the first slip is given)
    within .01                              (a number's tolerance)

    What is asked, in one paragraph.

    a) a wrong option — why it is wrong     b) the right one ✓          a choice
    = 12 * 4                                (a second line: also right) a number, as an expression
    1. a stage — what a failure in it means                             a function to write
    catch the beginning of a slip                                       inputs on which a function fails
    + what a good answer says                                           an open answer

    ! 13 — what this wrong number means     ! what a wrong function does, and behind it how it is made:
                                                `old` => `new`          an edit of the solution, some lines
                                                code                    a function in Python
                                                /pattern/               of an open answer
    ! exchanged before `line`               queries, keys and values in each other's place (see exchanged)
    ? a hint
    : the solution of what is no function   (several lines: between ``` and ```)
    > what to remember

An indented line goes on with the one before. NAME_2, NAME_3 ... are second problems of NAME, which take
turns; in those of a number, {braces} hold names that `Code.draw` draws, and expressions of them.
"""

import math
import random
import re
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from lesson_lib.checks.exercise import Case, Draw, Edit, Exercise, Stage, Write
from lesson_lib.checks.expressions import number_in
from lesson_lib.checks.find_inputs import Expose
from lesson_lib.checks.short_answers import Choice, Number, Open, fresh
from lesson_lib.checks.swapped_roles import exchanged

_ITEM = {  # the kind of an item: how its first line begins
    "meta": re.compile(r"(?=★)"),
    "within": re.compile(r"within (?=[\d.e-]+$)"),
    "option": re.compile(r"(?=[a-z]\) )"),
    "answer": re.compile(r"= "),
    "stage": re.compile(r"\d+\. "),
    "catch": re.compile(r"catch "),
    "point": re.compile(r"\+ "),
    "slip": re.compile(r"! "),
    "hint": re.compile(r"\? "),
    "solution": re.compile(r": |(?=```)"),
    "remember": re.compile(r"> "),
}
FENCE = "```"
_MAY_HAVE = {  # what makes a kind: what else its block may hold
    "option": {"option"},
    "answer": {"answer", "within", "slip"},
    "point": {"point", "slip"},
    "catch": {"catch", "slip"},
    "stage": {"stage", "slip", "within"},
}
_EDIT = re.compile(r"`([^`]*)` => `([^`]*)`")
_EXCHANGED = re.compile(
    r"exchanged before `([^`]+)`(?: of `([^`]+)`)?(?: indented (\d+))?(?: without ([a-z ]+))?"
)


@dataclass(frozen=True, kw_only=True)
class Code:
    """What of a question is code, under its name in `CODE` of its module.

    Of a function to write: `solution`, one function of `cases` for each stage, one of `wrong` for each slip
    that no edit makes, and the rest as `Write` and `Alike` have it, `kind` being one of them. Of inputs to
    find: `wrong` says of given inputs whether a slip holds; `of` is the function that is caught, where it is
    not that of the first problem. `picture` draws what a choice asks about; `draw` gives the numbers of a
    second problem by their names.
    """

    solution: Callable[..., Any] | None = None
    cases: tuple[Callable[[], list[Case]], ...] = ()
    wrong: tuple[Callable[..., Any], ...] = ()
    reference: Callable[..., Any] | None = None
    hidden: Callable[[Draw], list[Case]] | None = None
    extra: Callable[[Callable], str | None] | None = None
    normalise: Callable[..., Any] | None = None
    kind: type[Write] = Write
    of: Write | None = None
    picture: Callable[[], Any] | None = None
    draw: Callable[[random.Random], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class _Block:
    """The items of one question by their kinds, and the file and line where it begins."""

    name: str
    title: str
    location: str
    items: dict[str, list[str]] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The name of the problem whose second, third ... this is, else its own."""
        return re.sub(r"_[2-9]$", "", self.name)

    def all(self, kind: str) -> tuple[str, ...]:
        """The texts of all items of a kind."""
        return tuple(self.items.get(kind, ()))

    def one(self, kind: str) -> str:
        """The text of an item that stands once; '' where it is missing."""
        if len(texts := self.all(kind)) > 1:
            raise ValueError(f"{len(texts)} items are of the kind {kind}, where one is meant: {texts[1]!r}")
        return texts[0] if texts else ""


def read(chapter: str) -> list[Exercise]:
    """The questions of a chapter, such as "c02_scoring", file by file.

    Raises ValueError with file and line for what cannot be read.
    """
    package = import_module(f"lesson_lib.chapters.{chapter}")
    exercises: list[Exercise] = []
    for path in sorted(Path(package.__path__[0]).glob("questions/*.md")):
        modules, blocks = _blocks(f"{chapter}/questions/{path.name}", path.read_text(encoding="utf-8"))
        code: dict[str, Code] = {}
        for module in (path.stem, *modules) if path.with_suffix(".py").exists() else modules:
            code |= import_module(f"{package.__name__}.questions.{module}").CODE
        notebook = "" if path.stem == "exercises" else path.stem
        for _, group in groupby(blocks, key=lambda block: block.first):
            exercises.append(_with_seconds(list(group), code, notebook))
    return exercises


def of_file(path: Path) -> list[Exercise]:
    """The questions of one file outside of the chapters, with the CODE of the Python file beside it. One with
    a `draw` has numbers in {braces} from the first, and as many second problems as one likes.

    Raises ValueError with file and line for what cannot be read.
    """
    _, blocks = _blocks(path.name, path.read_text(encoding="utf-8"))
    code: dict[str, Code] = runpy.run_path(str(path.with_suffix(".py")))["CODE"]
    exercises = []
    for block in blocks:
        own = code.get(block.name, Code())
        try:
            given = _with_numbers(block, own, random.Random(0)) if own.draw else block
            first = _exercise(given, own, {"notebook": path.stem})
            again = _second(block, own, first) if own.draw else None
        except ValueError as error:
            raise ValueError(f"{block.location}, {block.name}: {error}") from error
        exercises.append(replace(first, second=again))
    return exercises


def _with_seconds(blocks: list[_Block], code: Mapping[str, Code], notebook: str) -> Exercise:
    """The exercise of the first block; the other blocks become its second problems."""
    turns: list[Callable[[int], Exercise]] = []
    common = {"notebook": notebook, "second": partial(_turn, turns) if blocks[1:] else None}
    for block in blocks:
        own = code.get(block.name, Code())
        try:
            if block is blocks[0]:
                first = _exercise(block, own, common)
            else:
                turns.append(_second(block, own, first))
        except ValueError as error:
            raise ValueError(f"{block.location}, {block.name}: {error}") from error
    return first


def _second(block: _Block, code: Code, first: Exercise) -> Callable[[int], Exercise]:
    """The function from n to the n-th second problem that this block describes."""
    if isinstance(first, Number):
        if code.draw is None:
            raise ValueError("its CODE has no draw")
        make = partial(_drawn, block, code, first)
        return lambda n: replace(fresh(n, make), tolerance=first.tolerance)  # `within` counts for the draw
    posed = replace(_exercise(block, code, {}, first), name=f"{first.name}_2")
    return lambda _: posed


def _turn(turns: Sequence[Callable[[int], Exercise]], n: int) -> Exercise:
    return turns[(n - 1) % len(turns)](n)


def _exercise(
    block: _Block, code: Code, common: Mapping[str, Any], first: Exercise | None = None
) -> Exercise:
    """The exercise of the kind that the items tell; `first` is the one whose second problem it is."""
    if missing := [kind for kind in ("asked", "remember") if not block.one(kind)]:
        raise ValueError(f"{' and '.join(missing)}: missing")
    decides = next((kind for kind in _MAY_HAVE if kind in block.items), "")
    if not decides:
        raise ValueError("it has neither options, nor an answer (=), stages (1.), points (+) or: catch")
    stray = {*block.items} - _MAY_HAVE[decides] - {"meta", "asked", "hint", "solution", "remember"}
    if stray:
        raise ValueError(
            f"{', '.join(sorted(stray))}: no part of a question that has an item of the kind {decides}"
        )
    words = {**common, "name": block.name, "title": block.title, "hints": block.all("hint")}
    words |= {kind: block.one(kind) for kind in ("asked", "remember", "solution")}
    if meta := block.one("meta"):
        head = re.fullmatch(r"(★+) (\d+) min(?:, repair)?: (.+)", meta)
        if not head:
            raise ValueError(f"{meta!r} is not like '★★ 8 min: why' or '★★ 8 min, repair: why'")
        words |= {"stars": len(head[1]), "minutes": int(head[2]), "why": head[3]}
    if decides == "option":
        return _choice(block, {**words, "picture": code.picture})
    if decides == "answer":
        return _distinct(_number(block, words))
    if decides == "point":
        patterns = {sentence: _pattern(how) for sentence, how in map(_parted, block.all("slip"))}
        return Open(**words, slips=patterns, points=block.all("point"))
    if decides == "catch":
        return _inputs(block, code, words, code.of or first)
    return _function(block, code, words, repair=" min, repair: " in meta)


def _blocks(file: str, text: str) -> tuple[list[str], list[_Block]]:
    """The modules that a file names, and its blocks. Raises ValueError for what no item is."""
    modules: list[str] = []
    blocks: list[_Block] = []
    kind, fenced = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        items, location = blocks[-1].items if blocks else {}, f"{file}:{number}"
        if fenced:
            if line.rstrip() == FENCE:
                items["solution"][-1], fenced = items["solution"][-1].removesuffix("\n"), 0
            else:
                items["solution"][-1] += line + "\n"
        elif heading := re.fullmatch(r"## (\w+)(?:: (.+))?", line):
            blocks.append(_Block(heading[1], heading[2] or "", location))
            kind = ""
        elif not line.strip():
            kind = ""
        elif not blocks and (head := re.fullmatch(r"code: (\w+(?:, \w+)*)", line)):
            modules = head[1].split(", ")
        elif not blocks:
            raise ValueError(f"{location}: {line!r} stands before the first question, '## NAME: title'")
        elif line.startswith("  ") and kind:
            items[kind][-1] += ("\n" if line.startswith("    ") else " ") + line.strip()
        else:
            fits = ((k, line[m.end() :]) for k, p in _ITEM.items() if (m := p.match(line)))
            new, rest = next(fits, ("asked", line))
            if kind == "asked" and new != "asked":
                raise ValueError(f"{location}: an empty line is missing before {line!r}, if that is an item")
            if kind == new == "asked":
                items["asked"][-1] += " " + line
                continue
            if new == "asked" and "asked" in items:
                raise ValueError(f"{location}: {line!r} is no item; one paragraph says what is asked")
            kind, fenced = new, number if rest == FENCE else 0
            items.setdefault(kind, []).append("" if fenced else rest)
    if fenced:
        raise ValueError(f"{file}:{fenced}: the solution that begins here ({FENCE}) has no end")
    names = [block.name for block in blocks]
    if twice := next((block for block in blocks if names.count(block.name) > 1), None):
        raise ValueError(f"{twice.location}: the name {twice.name} stands more than once")
    return modules, blocks


def _choice(block: _Block, words: Mapping[str, Any]) -> Choice:
    options: dict[str, str] = {}
    slips: dict[str, str] = {}
    right = []
    for text in block.all("option"):
        letter, (option, _, reason) = text[0], text[3:].partition(" — ")
        if letter in options or reason in slips:
            raise ValueError(f"option {letter} has the letter or the reason of another one")
        options[letter] = option.removesuffix(" ✓")
        if option.endswith(" ✓") and not reason:
            right.append(letter)
        elif reason and not option.endswith(" ✓"):
            slips[reason] = letter
        else:
            raise ValueError(f"option {letter} is either right (✓), or says why it is wrong (—)")
    if len(right) != 1:
        raise ValueError(f"one option is right; ✓ stands behind {len(right)}")
    return Choice(**words, options=options, answer=right[0], slips=slips)


def _number(block: _Block, words: Mapping[str, Any]) -> Number:
    (answer, *also), slips = block.all("answer"), {}
    for text in block.all("slip"):
        wrong, _, meaning = text.partition(" — ")
        if not meaning or meaning in slips:
            raise ValueError(f"{text!r} does not say, behind a —, what this number means that no other does")
        slips[meaning] = wrong
    for text in (answer, *slips.values()):
        if number_in(text)[0] is None:
            raise ValueError(f"{text!r}: {number_in(text)[1]}")
    value, _ = number_in(answer)
    assert value is not None
    within = {"tolerance": float(block.one("within"))} if "within" in block.items else {}
    whole = int(value) if value.is_integer() else value
    return Number(**words, **within, answer=answer, also=tuple(also), value=whole, slips=slips)


def _distinct(number: Number) -> Number:
    """Return the number exercise; raise ValueError where it judges one of its other answers wrong, or one of
    its slips right."""
    meant = dict.fromkeys(number.also, True) | dict.fromkeys(number.slips.values(), False)
    for text, right in meant.items():
        if number.judge(text, lambda *_: None).passed != right:
            raise ValueError(
                f"{text!r} is {'not right' if right else 'right'}: the answer is {number.answer!r}"
            )
    return number


def _drawn(block: _Block, code: Code, first: Number, draw: random.Random) -> Number:
    """A second problem with the numbers of one draw; what the block leaves out is as in the first."""
    block = _with_numbers(block, code, draw, first=first)
    items = block.items
    number = _number(block, {"name": first.name, "asked": "", "remember": ""})
    own = {"asked": items.get("asked"), "remember": items.get("remember"), "solution": items.get("solution")}
    changed: dict[str, Any] = {key: texts[0] for key, texts in own.items() if texts}
    changed |= {"hints": tuple(items["hint"])} if "hint" in items else {}
    changed |= {"title": block.title} if block.title else {}
    changed |= {"tolerance": number.tolerance} if "within" in items else {}
    return replace(
        first, answer=number.answer, also=number.also, value=number.value, slips=number.slips, **changed
    )


def _with_numbers(block: _Block, code: Code, draw: random.Random, **more: Any) -> _Block:
    """The block with the numbers of one draw in the place of its {braces}."""
    assert code.draw is not None
    names = {"math": math, **more, **code.draw(draw)}
    items = {kind: [_filled(text, names) for text in texts] for kind, texts in block.items.items()}
    return replace(block, items=items)


def _filled(text: str, names: Mapping[str, Any]) -> str:
    """The text with the values of the expressions in its {braces}: an f-string of the course's own, which is
    trusted as its code is."""
    return eval(f'f"""{text}\n"""', dict(names))[:-1] if "{" in text else text


def _function(block: _Block, code: Code, words: Mapping[str, Any], repair: bool) -> Write:
    if code.solution is None:
        raise ValueError("its CODE has no solution")
    stages = [text.partition(" — ") for text in block.all("stage")]
    functions = iter(code.wrong)
    slips: dict[str, Any] = {}
    for text in block.all("slip"):
        sentence, how = _parted(text)
        if swapped := _EXCHANGED.fullmatch(sentence):
            before, names, indent, without = swapped.groups("")
            names = names or "query key value"
            slips |= exchanged(before, names, indent=int(indent or 4), without=without)
        else:
            slips[sentence] = next(functions, None) if how == "code" else _edit(how)
    if len(code.cases) != len(stages) or next(functions, None) is not None or None in slips.values():
        raise ValueError(f"{len(stages)} stages and as many `cases`? Is each of `wrong` a slip with code?")
    optional = {
        "reference": code.reference,
        "hidden": code.hidden,
        "extra": code.extra,
        "normalise": code.normalise,
    }
    optional |= {"tolerance": float(block.one("within")) if "within" in block.items else None}
    return code.kind(
        **{**words, "solution": code.solution},
        **{key: value for key, value in optional.items() if value is not None},
        repair=repair,
        stages=tuple(
            Stage(sentence, cases, means)
            for (sentence, _, means), cases in zip(stages, code.cases, strict=True)
        ),
        slips=slips,
    )


def _inputs(block: _Block, code: Code, words: Mapping[str, Any], of: Exercise | None) -> Expose:
    begins = block.one("catch")
    if not isinstance(of, Write):
        raise ValueError("its CODE says not in which function (`of`) the mistake is")
    meant = [slip for slip in of.slips if slip.startswith(begins)]
    if len(meant) != 1:
        raise ValueError(f"{len(meant)} slips of {of.name} begin with {begins!r}, where one is to be caught")
    slips = dict(zip(block.all("slip"), code.wrong, strict=True))
    return Expose(**words, of=of, slip=meant[0], slips=slips)


def _parted(text: str) -> tuple[str, str]:
    """The sentence of a slip, and the lines below that make the mistake."""
    sentence, _, how = text.partition("\n")
    return sentence, how


def _pattern(how: str) -> str:
    if not re.fullmatch(r"/.+/", how):
        raise ValueError(f"{how!r} is no /pattern/ of an open answer's wrong idea")
    try:
        re.compile(how[1:-1])
    except re.error as error:
        raise ValueError(f"{how}: {error}") from None
    return how[1:-1]


def _edit(how: str) -> Edit:
    pairs = [_EDIT.fullmatch(line) for line in how.split("\n")]
    if not all(pairs):
        raise ValueError(f"{how!r} is not lines like `old` => `new`, nor is it: code")
    return tuple(text.replace(r"\n", "\n") for pair in pairs if pair for text in pair.groups())
