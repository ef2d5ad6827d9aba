"""What part 01a asks: five predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.chapters.c01_history import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number

PART = "01a_two_saws"

same_word = Choice(
    name="same_word",
    notebook=PART,
    title="The same word twice",
    asked="A network is given one word at a time: I, saw, a, saw. Can it tag both saws rightly?",
    options={"a": "yes, if it is large enough", "b": "yes, if it trains long enough", "c": "no"},
    answer="c",
    remember="the same input gives the same output, and the two saws need different tags",
    slips={
        "a larger function is still a function: one input, one output": "a",
        "training chooses the answer to saw; it cannot choose two": "b",
    },
)

best_on_cut = Choice(
    name="best_on_cut",
    notebook=PART,
    title="Who can be best on cut?",
    asked="Which of the four masks can be best on words like cut?",
    options={"a": "one word", "b": "window 1", "c": "recurrent", "d": "attention"},
    answer="d",
    remember="the word that decides may stand anywhere, before or behind",
    slips={
        "it sees least: cut has three tags, and looks the same in all three": "a",
        "did may stand ten words before cut, and this mask reaches one": "b",
        "it sees all that came before; now and then a later word tells, as in the garden saw bit me": "c",
    },
)

without_order = Choice(
    name="without_order",
    notebook=PART,
    title="All words, no order",
    asked="Attention without positions sees all words, and not where they stand. On words like saw it is ...",
    options={"a": "at 1.000", "b": "between one word and window 1", "c": "worse than one word"},
    answer="b",
    remember="0.773: the words alone tell something, but not whether a 'the' stands before this saw",
    slips={
        "where the, I and saw all occur, only the order tells the saw from I saw": "a",
        "more sight never lowers the limit: what is not needed can be ignored": "c",
    },
)

did_away = Choice(
    name="did_away",
    notebook=PART,
    title="Take one word away",
    asked="Delete the first word, did. Which tags should change?",
    options={
        "a": "that of cut alone",
        "b": "those of cut and saw",
        "c": "all, since all words move",
        "d": "none",
    },
    answer="a",
    remember="without an auxiliary cut is a past form; saw follows the word that, and stays one",
    slips={
        "saw follows that: it is a past form with did and without": "b",
        "every place moves by one, and what a word is stays the same": "c",
        "will cut, did cut: a base form needs its auxiliary": "d",
    },
)

padding_counts = Number(
    name="padding_counts",
    notebook=PART,
    second=lambda n: seconds.padding_counts(padding_counts, n),
    title="Who counts the padding?",
    asked=(
        "Three sentences of 12, 6 and 6 words, padded to 12. Every word is tagged rightly, every padding"
        " wrongly. Over all 36 cells, which share is right?"
    ),
    answer="24 / 36",
    value=24 / 36,
    tolerance=1e-2,  # two digits will do
    remember="24 of 36: the number says more about padding than about words",
    slips={
        "that is the share of the words, 24 of 24; the 12 padded cells are counted, too": 1,
        "that is the share of the padding": 12 / 36,
        (
            "either you left out a short sentence, 18 / 36, or divided padding by words: take right cells /"
            " all cells"
        ): 0.5,
    },
)


def most_right(counts: Float[Tensor, "sights tags"]) -> Float[Tensor, ""]:
    return counts.amax(-1).sum() / counts.sum()


def _counts(counts: object) -> Case:
    return {"counts": counts}


def _more_most_right(drawn: Draw) -> list[Case]:
    return [_counts(drawn(1, 7, 3).abs()), _counts(drawn(2, 5, 11).abs())]


write_most_right = Write(
    name="most_right",
    notebook=PART,
    second=lambda n: seconds.LESS_IN_SIGHT,
    title="The best that anybody can do",
    stars=2,
    minutes=6,
    why="it says what no training can pass, before anything is trained",
    asked="rows are sights, columns are tags: the share that is right if each sight gets its best tag",
    stages=(
        Stage(
            "saw alone: one sight",
            lambda: [_counts(table([[5.0, 3.0]]))],
            "Always noun: right 5 times of 8.",
        ),
        Stage(
            "saw with the word before: three sights",
            lambda: [_counts(table([[4.0, 0.0], [0.0, 3.0], [1.0, 0.0]]))],
            "Each sight has one tag only, so all 8 can be right.",
        ),
        Stage(
            "five sights, three tags",
            lambda: [_counts(drawn(3, 5, 3).abs())],
            "Each sight gets its own best tag: the largest count of each row.",
        ),
    ),
    hints=(
        "Of one row, which count can be right?",
        "`counts.amax(-1)` is the largest of each row. What do they add up to?",
        "By which number do you divide to get a share of all words?",
    ),
    solution=most_right,
    hidden=_more_most_right,
    remember="the largest count of each sight, all added up, over all counts",
    slips={
        "that is one tag for all; each sight may get a tag of its own": (
            "counts.amax(-1).sum()",
            "counts.sum(0).amax()",
        ),
        "you take the largest of each tag (dim=0); a word's tag is chosen for each sight": (
            "amax(-1)",
            "amax(0)",
        ),
        "that is the number of right ones; divide by the number of all": (" / counts.sum()", ""),
        "the mean of the rows' shares gives a rare sight as much voice as a frequent one": (
            "counts.amax(-1).sum() / counts.sum()",
            "(counts.amax(-1) / counts.sum(-1)).mean()",
        ),
        "that is the share of wrong ones": (
            "counts.amax(-1).sum() / counts.sum()",
            "1 - counts.amax(-1).sum() / counts.sum()",
        ),
        "you give a share for each row; asked is one for all": (
            "counts.amax(-1).sum() / counts.sum()",
            "counts.amax(-1) / counts.sum(-1)",
        ),
        "you take each sight's RAREST tag; its most frequent one is the best": ("amax(-1)", "amin(-1)"),
    },
)


def window_mask(n: int, radius: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    return (i[:, None] - i[None, :]).abs() <= radius


def _more_window_mask(drawn: Draw) -> list[Case]:
    return [{"n": 11, "radius": 3}, {"n": 2, "radius": 5}]


write_window_mask = Write(
    name="window_mask",
    notebook=PART,
    second=lambda n: seconds.BACKWARDS,
    title="The mask of a window",
    stars=1,
    minutes=5,
    why="a mask is how one function becomes all of these networks",
    asked="a table (n, n): True where word i may look at word j, at most `radius` words away on either side",
    stages=(
        Stage("radius 0: itself", lambda: [{"n": 3, "radius": 0}], "Only the diagonal is True."),
        Stage("radius 1", lambda: [{"n": 5, "radius": 1}], "Three in a row, two at the ends."),
        Stage("radius 2", lambda: [{"n": 7, "radius": 2}], "To the left as far as to the right."),
    ),
    hints=(
        "`i = torch.arange(n)`: what is `i[:, None] - i[None, :]`?",
        "How far is word i from word j, whichever comes first?",
        "Which comparison makes a table of True and False of it?",
    ),
    solution=window_mask,
    hidden=_more_window_mask,
    remember="|i - j| <= radius: a band around the diagonal",
    slips={
        "only one side has a limit, the other is open: take the distance, whichever word comes first": (
            ".abs()",
            "",
        ),
        "your window looks back only: take the distance, whichever word comes first": (
            "(i[:, None] - i[None, :]).abs() <= radius",
            "(i[:, None] >= i[None, :]) & (i[:, None] - i[None, :] <= radius)",
        ),
        "the border is missing: at most `radius` words away": ("<=", "<"),
        "your table says who may NOT look": ("<=", ">"),
        "a word may look at itself: the diagonal is missing": (
            "(i[:, None] - i[None, :]).abs() <= radius",
            "((i[:, None] - i[None, :]).abs() <= radius) & (i[:, None] != i[None, :])",
        ),
        "the mask of a recurrent network: all words before, however far": (
            "(i[:, None] - i[None, :]).abs() <= radius",
            "i[:, None] - i[None, :] >= 0",
        ),
        "your window looks ahead only: take the distance, whichever word comes first": (
            "(i[:, None] - i[None, :]).abs() <= radius",
            "(i[:, None] <= i[None, :]) & (i[None, :] - i[:, None] <= radius)",
        ),
        "words before have no limit in yours: take the distance, whichever word comes first": (
            "(i[:, None] - i[None, :]).abs()",
            "i[None, :] - i[:, None]",
        ),
        "your window is one word too wide on each side: at most `radius` words away": (
            "<= radius",
            "<= radius + 1",
        ),
        "radius counts the words on ONE side; you give each side half of it": ("<= radius", "<= radius // 2"),
    },
)

ASKED = (
    same_word,
    write_most_right,
    write_window_mask,
    best_on_cut,
    without_order,
    did_away,
    padding_counts,
)
