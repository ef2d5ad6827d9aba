"""What part 06c asks: four predictions, and the two functions of writing that the learner writes."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.chapters.c06_transformer import writing_seconds as seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number

PART = "06c_writing"

wrong_start = Choice(
    name="wrong_start",
    notebook=PART,
    title="Put a wrong character in its mouth",
    asked="For 3. märz 2021 we write its first character: 1 in place of 2. What does it write behind it?",
    options={
        "a": "2021-03-03 all the same, behind our 1",
        "b": "a year that begins with 1, then the right month and day",
        "c": "nonsense from there on",
        "d": "another date altogether",
    },
    answer="b",
    remember="it goes on from what stands there; what it has written is an input like any other",
    slips={
        "it sees our 1 as the first digit of its own answer": "a",
        "month and day still come from the input, which nobody touched": "c",
        "only what follows from the 1 changes": "d",
    },
)

rows_of_a_date = Number(
    name="rows_of_a_date",
    notebook=PART,
    title="Rows for eleven characters",
    asked="To write 11 signs, the decoder reads all signs so far, again and again. How many rows is that?",
    answer="11 * 12 / 2",
    value=66,
    remember="1 + 2 + ... + 11 = 66, and 55 of them were computed before",
    slips={
        "that is one row for each character; each pass computes all rows again": "11",
        "the passes grow: 1, 2, 3, ..., not 11 each": "121",
        "your sum ends at 10; the start sign is read, too: the first pass has 1 row, the eleventh 11": "55",
    },
)

likeliest = Number(
    name="likeliest",
    notebook=PART,
    title="Greedy, by hand",
    asked=(
        "First character: A with .6, B with .4. After A the best next one has .4, after B 1.0. Probability of"
        " the text that greedy writes?"
    ),
    answer="0.6 * 0.4",
    value=0.24,
    remember="greedy writes A...: .24; the text that begins with B has .40",
    slips={
        "that is the likeliest text, and greedy does not find it: it begins with A": "0.4",
        "that is the first character alone": "0.6",
        "probabilities of characters multiply": "1.0",
    },
)

which_rows = Choice(
    name="which_rows",
    notebook=PART,
    title="A mask with one query",
    asked="One query, the newest of six; six keys; is_causal=True. Which keys does torch let it see?",
    options={"a": "all six", "b": "the first only", "c": "the last only"},
    answer="b",
    remember="torch lines query 0 up with key 0; the newest query must see everything: leave is_causal out",
    slips={
        "torch does not know that this query is the newest: it takes it for the first": "a",
        "torch lines query 0 up with key 0, not with the last": "c",
    },
)


Scorer = Callable[[Tensor], Tensor]


def greedy_words(
    score_next,  # a function: words (n,) to a logit for each possible next word
    begin: Int[Tensor, " n"],
    end: int,
    most: int,
) -> Int[Tensor, " written"]:
    words = begin
    for _ in range(most):
        best = score_next(words).argmax()
        words = torch.cat([words, best[None]])
        if best == end:
            break
    return words[len(begin) :]


def _writes(
    *,
    reads: Callable[[Tensor, int], Tensor] = lambda words, n: words,
    best: Callable[[Tensor], Tensor] = torch.argmax,
    stops: bool = True,
    more: int = 0,
) -> Callable[..., Tensor]:
    """A writer that hands `reads(words, len(begin))` to score_next, takes `best` of the scores, and writes
    `more` words than allowed."""

    def written(score_next: Any, begin: Tensor, end: int, most: int) -> Tensor:
        words = begin
        for _ in range(most + more):
            words = torch.cat([words, best(score_next(reads(words, len(begin))))[None]])
            if stops and words[-1] == end:
                break
        return words[len(begin) :]

    return written


def _likes(choose: Callable[[Tensor], Any], words: int) -> Scorer:
    """A function that gives word `choose(words so far)` the highest score and others lower ones, all
    different."""

    def scored(sofar: Tensor) -> Tensor:
        if not isinstance(sofar, Tensor):
            raise TypeError(f"score_next reads a tensor of words, got a {type(sofar).__name__}")
        places = torch.arange(words, device=sofar.device)
        return -((places - choose(sofar)) % words).float()

    return scored


def _writing(choose: Callable[[Tensor], Any], begin: list[int], end: int, most: int, words: int = 10) -> Case:
    return {
        "score_next": _likes(choose, words),
        "begin": torch.tensor(begin, device="cpu"),
        "end": end,
        "most": most,
    }


def _more_greedy_words(drawn: Draw) -> list[Case]:
    logits = drawn(1, 13, 13)
    begin = (3 * drawn(2, 4).abs()).long().clamp(max=12)
    return [
        {
            "score_next": lambda words: logits[words].cumsum(0)[-1],
            "begin": begin,
            "end": end,
            "most": 9,
        }
        for end in (0, 5)
    ]


write_greedy_words = Write(
    name="greedy_words",
    notebook=PART,
    second=lambda n: seconds.greedy_words(write_greedy_words, n),
    title="Word by word",
    stars=2,
    minutes=6,
    why="this loop is how every such model writes; a better choice of the next word is one line of it",
    asked=(
        "write: take the best next word, append it, ask again; stop after the end sign or after `most` words;"
        " give back the new words alone"
    ),
    stages=(
        Stage(
            "score_next's favourite is the last word plus 1; begin with 1, two words allowed",
            lambda: [_writing(lambda words: words[-1] + 1, [1], 9, 2)],
            "After 1 comes 2, and after 2 comes 3: the result is (2, 3).",
        ),
        Stage(
            "the same, four words allowed, and the end sign is out of reach",
            lambda: [_writing(lambda words: words[-1] + 1, [1], 9, 4)],
            "2, 3, 4, 5: `most` new words, and each word is appended before score_next is asked again.",
        ),
        Stage(
            "the same with the end sign 4",
            lambda: [_writing(lambda words: words[-1] + 1, [1], 4, 7)],
            "2, 3, 4: the end sign is written, too, and nothing after it.",
        ),
        Stage(
            "score_next's favourite depends on ALL words: their sum, modulo 10; a beginning of three words",
            lambda: [
                _writing(lambda words: words.sum() % 10, [3, 1, 7], 8, 6),
                _writing(lambda words: words.sum() % 7, [1, 2, 2], 6, 5, 7),
            ],
            "score_next is handed the beginning and everything written so far.",
        ),
        Stage(
            "the end sign (0) stands in the beginning",
            lambda: [
                _writing(lambda words: words[-1] + 2, [1, 0, 3], 0, 3),
                _writing(lambda words: words[-1] + 5, [4, 0], 0, 6),
            ],
            "Only a NEW word can end the text; `most` counts new words.",
        ),
    ),
    reference=_writes(),
    hints=(
        (
            "How do you get the number of the word with the highest score? And with torch.cat, what shape"
            " must one word have?"
        ),
        "What must be handed to score_next in the second round that was not there in the first?",
        (
            "Two things end the loop. Which of them must be tested only after the new word has been appended,"
            " and why?"
        ),
    ),
    solution=greedy_words,
    remember=(
        "ask, choose, append, ask again: each word costs one call of the decoder, and it reads all that"
        " stands before"
    ),
    slips={
        "the end sign is missing in the result: append first, then stop": (
            (
                "        words = torch.cat([words, best[None]])\n        if best == end:\n"
                "            break\n",
                "        if best == end:\n            break\n"
                "        words = torch.cat([words, best[None]])\n",
            )
        ),
        "the beginning is in the result: give back the new words alone": (("words[len(begin) :]", "words")),
        "you hand score_next the last word only; it must read all words": (
            "score_next(words)",
            "score_next(words[-1:])",
        ),
        "the row that score_next reads does not end with the new words: append each behind the beginning": (
            "score_next(words)",
            "score_next(begin)",
        ),
        "you hand score_next the new words without the beginning": (
            "score_next(words)",
            "score_next(words[len(begin) :])",
        ),
        "you write on after the end sign": ("        if best == end:\n            break\n", ""),
        "you take the word with the LOWEST score": ("argmax", "argmin"),
        "one word too many: most is how many new words there may be": ("range(most)", "range(most + 1)"),
        "one word too few: most is how many new words there may be": ("range(most)", "range(most - 1)"),
        "most counts new words; you counted the beginning as well": (
            "range(most)",
            "range(most - len(begin))",
        ),
        "you stop because the end sign stands in the beginning; only a new word ends the text": (
            ("        best = ", "        if end in words:\n            break\n        best = ")
        ),
        "you stop because the beginning ends with the end sign; only a new word ends the text": (
            ("        best = ", "        if words[-1] == end:\n            break\n        best = ")
        ),
        "the words are in the wrong order: the new one goes to the end": (
            ("words[len(begin) :]", "words[len(begin) :].flip(0)")
        ),
        "only one word is written: is your return inside the loop?": ("return words", "    return words"),
        "the model reads its newest word alone; hand it the whole row": (
            "        best = score_next(words)",
            "        best = score_next(words[-1:] if len(words) > len(begin) else words)",
        ),
        "you ask once and take the best words of one answer; each new word needs a new question": (
            "    words = begin\n",
            "    words = begin\n    return score_next(begin).topk(most).indices\n",
        ),
        "you append the highest logit; the word is its place: argmax": (
            "words = torch.cat([words, best[None]])",
            "words = torch.cat([words, score_next(words).max().long()[None]])",
        ),
    },
    hidden=_more_greedy_words,
)


def best_continuations(
    total: Float[Tensor, " width"],  # log-probability of each beginning so far
    logs: Float[Tensor, "width signs"],  # of each next sign, behind each beginning
) -> Int[Tensor, "width 2"]:
    sums = total[:, None] + logs
    best = sums.flatten().topk(len(total)).indices
    return torch.stack([best // logs.shape[1], best % logs.shape[1]], dim=1)


def _beams(total: list, logs: list) -> Case:
    return {"total": table(total), "logs": table(logs)}


def _drawn_beams(seed: int, width: int, signs: int) -> Case:
    return {"total": drawn(seed, width) - 3, "logs": drawn(seed + 1, width, signs).log_softmax(-1)}


def _more_best_continuations(drawn: Draw) -> list[Case]:
    return [{"total": drawn(1, 5) - 3, "logs": drawn(2, 5, 7).log_softmax(-1)}]


def _right_continuations(total: Tensor, logs: Tensor) -> Tensor:
    found = sorted(
        ((float(total[i] + logs[i, c]), i, c) for i in range(len(total)) for c in range(logs.shape[1])),
        reverse=True,
    )
    return torch.tensor([pair[1:] for pair in found[: len(total)]], device=total.device)


write_best_continuations = Write(
    name="best_continuations",
    notebook=PART,
    second=lambda n: seconds.best_continuations(write_best_continuations, n),
    title="One step of a beam",
    stars=2,
    minutes=7,
    why="the same four lines choose the answers of most translators and speech recognisers",
    asked=(
        "of all width * signs continuations find the width with the highest sums total + logs, best first;"
        " each as (which beginning, which sign)"
    ),
    stages=(
        Stage(
            "two beginnings, two signs: A (total -0.5), then -0.9 or -1.2; B (-0.9), then -0.1 or -3",
            lambda: [_beams([-0.5, -0.9], [[-0.9, -1.2], [-0.1, -3.0]])],
            "Sums: -1.4 and -1.7 behind A, -1.0 and -3.9 behind B. Best: (1, 0), then (0, 0).",
        ),
        Stage(
            "both of the best grow from one beginning",
            lambda: [_beams([-0.1, -4.0], [[-1.0, -0.7, -2.5], [-0.2, -1.0, -3.0]])],
            "All continuations compete with each other; a beginning may have two, or none.",
        ),
        Stage(
            "four beginnings, six signs",
            lambda: [_drawn_beams(3, 4, 6)],
            "In the flattened table number k stands in row k // signs, column k % signs.",
        ),
    ),
    reference=_right_continuations,
    hints=(
        "Which shape has total, that it adds to each row of logs?",
        "topk works along one axis. How do you make one axis of the table?",
        "signs = 5: which row and column has place 13 of the flattened table?",
    ),
    solution=best_continuations,
    hidden=_more_best_continuations,
    remember="add, flatten, topk; // tells the beginning, % the sign",
    slips={
        "each beginning keeps its own best; all continuations must compete": (
            "    best = sums.flatten().topk(len(total)).indices\n"
            "    return torch.stack([best // logs.shape[1], best % logs.shape[1]], dim=1)",
            "    order = sums.max(1).values.argsort(descending=True)\n"
            "    return torch.stack([order, sums.argmax(1)[order]], dim=1)",
        ),
        "the beginnings' own log-probabilities are missing from the sums": (
            "total[:, None] + logs",
            "logs",
        ),
        "total is added along the wrong axis: each beginning's to its own row": (
            "total[:, None] + logs",
            "(total[:, None] + logs.roll(1, 0))",
        ),
        "sign and beginning have changed places": (
            "[best // logs.shape[1], best % logs.shape[1]]",
            "[best % logs.shape[1], best // logs.shape[1]]",
        ),
        "log-probabilities add up; you multiply them": ("total[:, None] + logs", "total[:, None] * logs"),
        "you take the lowest sums": ("topk(len(total))", "topk(len(total), largest=False)"),
        "the best comes first": ("len(total)).indices", "len(total)).indices.flip(0)"),
        "divide by the number of signs, not by the width": (
            "[best // logs.shape[1], best % logs.shape[1]]",
            "[best // len(total), best % len(total)]",
        ),
        "each sign gets a beginning's total: total[:, None] adds it to a row": (
            "total[:, None] + logs",
            "total + logs",
        ),
    },
)

ASKED = (
    write_greedy_words,
    wrong_start,
    rows_of_a_date,
    likeliest,
    write_best_continuations,
    which_rows,
)
