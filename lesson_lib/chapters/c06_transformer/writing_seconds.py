"""Second problems of part 06c: a batch that ends row by row, and inputs that catch a mistake."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import catch
from lesson_lib.checks.inputs import drawn


def greedy_words_2(
    score_next,  # a function: words (b, n) to logits (b, words) of the next ones
    begin: Int[Tensor, "b n"],
    end: int,
    most: int,
) -> Int[Tensor, "b written"]:
    words = begin
    ended = torch.zeros(len(begin), dtype=torch.bool, device=begin.device)
    for _ in range(most):
        best = score_next(words).argmax(-1).masked_fill(ended, 0)
        words = torch.cat([words, best[:, None]], 1)
        ended = ended | (best == end)
        if ended.all():
            break
    return words[:, begin.shape[1] :]


def _adds(step: list[int], count: int) -> Any:
    """Row b likes its last word plus step[b] best."""

    def scored(words: Tensor) -> Tensor:
        wanted = (words[:, -1] + torch.tensor(step, device=words.device)) % count
        return -((torch.arange(count, device=words.device) - wanted[:, None]) % count).float()

    return scored


def _likes(seed: int, count: int) -> Any:
    rows = drawn(seed, count, count)

    def scored(words: Tensor) -> Tensor:
        return rows.to(words.device)[words].sum(1)

    return scored


def _case(score_next: Any, begin: list, end: int, most: int) -> Case:
    return {
        "score_next": score_next,
        "begin": torch.tensor(begin, device="cpu"),
        "end": end,
        "most": most,
    }


def _right(score_next: Any, begin: Tensor, end: int, most: int) -> Tensor:
    rows = begin.tolist()
    done = [False] * len(rows)
    for _ in range(most):
        if all(done):
            break
        logits = score_next(torch.tensor(rows, device=begin.device))
        for i, row in enumerate(rows):
            row.append(0 if done[i] else int(logits[i].argmax()))
            done[i] = done[i] or row[-1] == end
    return torch.tensor([row[begin.shape[1] :] for row in rows], device=begin.device)


BATCH = Write(
    name="greedy_words_2",
    title="A batch ends row by row",
    asked=(
        "the same for a batch: each row writes until its own end sign; behind it stand zeros, while others go"
        " on; stop when all have ended, or after `most` words"
    ),
    stages=(
        Stage(
            "two rows: one adds 1 to its last word, one adds 3; the end sign is 7",
            lambda: [_case(_adds([1, 3], 20), [[4], [1]], 7, 6)],
            "5 6 7 and 4 7 0: the second row has ended, and waits.",
        ),
        Stage(
            "most is reached before a row ends",
            lambda: [_case(_adds([1, 3, 2], 20), [[4], [1], [0]], 7, 5)],
            "The third row writes 2, 4, 6, 8, 10 and never meets 7.",
        ),
        Stage(
            "words depend on all before",
            lambda: [_case(_likes(1, 9), [[3, 1], [5, 5], [2, 8]], 4, 7)],
            "score_next reads the whole rows, zeros included.",
        ),
    ),
    hints=(
        "Along which axis do you take the best, and along which do you append?",
        "Which rows must not write their best word any more?",
        "When may the loop end before `most`: when one row has ended, or all?",
    ),
    solution=greedy_words_2,
    reference=_right,
    remember="a row that has ended is filled, and the loop ends when all have",
    slips={
        "you stop as soon as ONE row ends": ("ended.all()", "ended.any()"),
        "rows that have ended write on; fill them with 0": (".masked_fill(ended, 0)", ""),
        "the loop goes on although all rows have ended": ("        if ended.all():\n            break\n", ""),
        "a row that ended is forgotten in the next round: keep it ended": (
            "ended = ended | (best == end)",
            "ended = best == end",
        ),
        "the beginning is in the result": ("words[:, begin.shape[1] :]", "words"),
        "the end sign itself is missing: it is written, then zeros follow": (
            "        words = torch.cat([words, best[:, None]], 1)\n        ended = ended | (best == end)\n",
            "        ended = ended | (best == end)\n"
            "        words = torch.cat([words, best.masked_fill(ended, 0)[:, None]], 1)\n",
        ),
    },
    hidden=lambda drawn: [_case(_likes(4, 11), [[3, 1, 2], [5, 9, 5], [2, 8, 10]], 6, 9)],
)


def greedy_words(first: Write, n: int) -> Exercise:
    """The same for a batch."""
    return BATCH


def _one_beginning(total: Tensor, logs: Tensor) -> bool:
    return len(total) < 2


def best_continuations(first: Write, n: int) -> Exercise:
    """Beginnings that do not all go on."""
    return catch(
        first,
        asked=(
            "somebody's beam lets each beginning keep its own best sign. Mostly that works. Write totals and"
            " logs for two beginnings and two signs on which it fails"
        ),
        slip="each beginning keeps its own best; all continuations must compete",
        inputs={
            "total": "torch.tensor([-0.1, -9.0])",
            "logs": "torch.tensor([[-0.7, -0.7], [-0.1, -2.0]])",
        },
        remember="a beginning may have two children, and another none",
        hints=(
            "When do both winners grow from the same beginning?",
            "How far must the other beginning be behind?",
            "Which numbers of logs make the second sign of the first beginning still good?",
        ),
        slips={"with one beginning it has nobody to compete with": _one_beginning},
    )
