"""The questions' text: what is read from it, and what is said of text that cannot be read."""

import re
from importlib import import_module

import pytest

from lesson_lib.checks import questions
from lesson_lib.checks.exercise import Write
from lesson_lib.checks.find_inputs import Expose
from lesson_lib.checks.questions import Code
from lesson_lib.cli.sources import ROOT

CHAPTERS = sorted(path.parent for path in ROOT.glob("lesson_lib/chapters/*/questions"))
CHOICE = """## padding_share: The empty chair

Which share does the chair
get?

a) none — a score of 0 is a number
   like any other
b) 71 % ✓

> it wins
"""
NUMBER = """## ratio
★★ 4 min: tables are read so
within .01

Two points more: how many times?

= exp(2)
= 7.39
! 2 — that is the difference

? What cancels?
: exp(12) / exp(10) =
  exp(2)
> differences count

## ratio_2

{a} points more: how many times? {wide:,}

= exp({a})
! {a * 1} — that is the difference
"""
FUNCTION = """## doubled: Twice
★ 2 min, repair: it is short

twice x

1. one number — What is twice 3?

! as it was given
    `2 * x` => `x`
! both lines are wrong
    `2` => `3`
    `x` => `x +\\n        1`
! another way
    code

? What is twice 0?
> 2 x

## doubled_2: Catch it

write x on which it fails

catch as it was
! x is 0

```
doubled_2 = {
    "x": 1,
}
```
> not 0
"""


def doubled(x):
    return 2 * x


CODE = {
    "ratio_2": Code(draw=lambda draw: {"a": draw.choice([3, 4]), "wide": 4096}),
    "doubled": Code(solution=doubled, cases=(lambda: [{"x": 3}],), wrong=(lambda x: x**2,)),
    "doubled_2": Code(wrong=(lambda x: x == 0,)),
}


def read(text, code=CODE):
    """The exercises of a file with that text."""
    _, blocks = questions._blocks("some.md", text)
    first = blocks[0].first
    assert all(block.first == first for block in blocks)
    return questions._with_seconds(blocks, code, "02a_some")


def test_a_choice_is_read():
    made = read(CHOICE)
    assert (made.name, made.title, made.notebook, made.stars) == (
        "padding_share", "The empty chair", "02a_some", 0,
    )  # fmt: skip
    assert made.asked == "Which share does the chair get?" and made.answer == "b" and made.second is None
    assert made.options == {"a": "none", "b": "71 %"} and made.remember == "it wins"
    assert made.slips == {"a score of 0 is a number like any other": "a"}


def test_a_number_is_read_and_its_second_problems_are_drawn():
    made = read(NUMBER)
    assert (made.stars, made.minutes, made.why, made.tolerance) == (2, 4, "tables are read so", 0.01)
    assert made.value == pytest.approx(7.389, abs=1e-3) and made.also == ("7.39",)
    assert made.hints == ("What cancels?",) and made.solution == "exp(12) / exp(10) = exp(2)"
    assert {made.second(n).answer for n in range(20)} == {"exp(3)", "exp(4)"}
    posed = made.second(1)
    assert posed.asked in ("3 points more: how many times? 4,096", "4 points more: how many times? 4,096")
    assert posed.remember == made.remember and list(posed.slips.values()) == [posed.answer[4]]


def test_small_numbers_are_told_apart():
    made = read(NUMBER.replace("exp(2)", "0.2").replace("7.39", "1/5").replace("! 2 —", "! 0.203 —"))
    assert made.judge("0.2001", lambda *_: None).passed and not made.judge("0.203", lambda *_: None).passed


def test_a_function_is_read_with_the_inputs_that_catch_it():
    made = read(FUNCTION)
    assert isinstance(made, Write) and made.repair and [s.title for s in made.stages] == ["one number"]
    assert list(made.slips.values())[:2] == [("2 * x", "x"), ("2", "3", "x", "x +\n        1")]
    assert made.slips["another way"](3) == 9 and made.wrong("as it was given")(5) == 5
    posed = made.second(1)
    assert isinstance(posed, Expose) and posed.of is made and posed.slip == "as it was given"
    assert posed.solution == 'doubled_2 = {\n    "x": 1,\n}'


@pytest.mark.parametrize(
    "text, old, new, said",
    [
        (CHOICE, "b) 71 % ✓", "b) 71 %", "some.md:1, padding_share: option b is either right"),
        (CHOICE, "like any other", "like any other\nc) 72 % ✓", "✓ stands behind 2"),
        (CHOICE, "> it wins", "", "remember: missing"),
        (CHOICE, "> it wins", "> it wins\n> it does", "2 items are of the kind remember"),
        (CHOICE, "> it wins", "> it wins\n! 3 — no",
         "slip: no part of a question that has an item of the kind option"),
        (CHOICE, "b) 71 % ✓", "a) 71 % ✓", "option a has the letter or the reason of another one"),
        (CHOICE, "b) 71 % ✓", "b) 71 % ✓ — since it is", "option b is either right (✓), or says"),
        (NUMBER, "= 7.39", "= 7.99", "'7.99' is not right: the answer is 'exp(2)'"),
        (NUMBER, "! 2 — that is", "! 7.389 — that is", "'7.389' is right: the answer"),
        (NUMBER, "! 2 — that is the difference\n", "! 2\n", "'2' does not say, behind a —"),
        (FUNCTION, "    code\n", "    codes\n", "'codes' is not lines like"),
        (NUMBER, "= exp(2)", "= exp(two)", "'exp(two)': I cannot read `two`"),
        (NUMBER, "! 2 —", "! two —", "'two'"),
        (NUMBER, "★★ 4 min: ", "★★ four minutes: ", "is not like '★★ 8 min: why'"),
        (FUNCTION, "1. one number", "1. a — b\n2. one number", "2 stages and as many `cases`"),
        (FUNCTION, "    code\n", "", "'' is not lines like `old` => `new`"),
        (FUNCTION, "catch as it was", "catch a", "2 slips of doubled begin with 'a'"),
        (FUNCTION, "catch as it was", "catch as it is", "0 slips of doubled begin with 'as it is'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_with_its_place(text, old, new, said):
    assert text.count(old) == 1
    with pytest.raises(ValueError, match=r"^some\.md:\d+, \w+: ") as error:
        read(text.replace(old, new))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "text, old, new, said",
    [
        (CHOICE, "> it wins", "> it wins\n\nand more", "some.md:12: 'and more' is no item"),
        (CHOICE, "get?\n\n", "get?\n", "some.md:5: an empty line is missing before 'a) none"),
        (CHOICE, "## padding", "Some words.\n\n## padding",
         "some.md:1: 'Some words.' stands before the first"),
        (FUNCTION, "}\n```\n", "}\n", "some.md:26: the solution that begins here (```) has no end"),
        (FUNCTION, "## doubled_2:", "## doubled:", "some.md:1: the name doubled stands more than once"),
    ],
)  # fmt: skip
def test_what_is_no_item_is_told_with_its_line(text, old, new, said):
    assert text.count(old) == 1
    with pytest.raises(ValueError, match=re.escape(said)):
        read(text.replace(old, new))


def test_code_that_is_missing_is_told():
    for text, code, said in (
        (NUMBER, {}, "ratio_2: its CODE has no draw"),
        (FUNCTION, CODE | {"doubled": Code(solution=doubled, cases=CODE["doubled"].cases)}, "slip with code"),
        (FUNCTION, {}, "doubled: its CODE has no solution"),
    ):
        with pytest.raises(ValueError, match=said):
            read(text, code)


@pytest.mark.parametrize("folder", CHAPTERS, ids=lambda folder: folder.name)
def test_each_piece_of_code_belongs_to_a_question_and_no_name_stands_twice(folder):
    asked = [
        name
        for path in folder.glob("questions/*.md")
        for name in re.findall(r"^## (\w+)", path.read_text("utf-8"), re.M)
    ]
    modules = [
        f"lesson_lib.chapters.{folder.name}.questions.{path.stem}"
        for path in folder.glob("questions/[!_]*.py")
    ]
    code = [name for module in modules for name in import_module(module).CODE]
    assert len(set(asked)) == len(asked) and len(set(code)) == len(code) and {*code} <= {*asked}
