"""What of the questions in 06c_writing.md is code."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code

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


def _likes_2(seed: int, count: int) -> Any:
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


def _one_beginning(total: Tensor, logs: Tensor) -> bool:
    return len(total) < 2


CODE = {
    "greedy_words": Code(
        solution=greedy_words,
        cases=(
            lambda: [_writing(lambda words: words[-1] + 1, [1], 9, 2)],
            lambda: [_writing(lambda words: words[-1] + 1, [1], 9, 4)],
            lambda: [_writing(lambda words: words[-1] + 1, [1], 4, 7)],
            lambda: [
                _writing(lambda words: words.sum() % 10, [3, 1, 7], 8, 6),
                _writing(lambda words: words.sum() % 7, [1, 2, 2], 6, 5, 7),
            ],
            lambda: [
                _writing(lambda words: words[-1] + 2, [1, 0, 3], 0, 3),
                _writing(lambda words: words[-1] + 5, [4, 0], 0, 6),
            ],
        ),
        reference=_writes(),
        hidden=_more_greedy_words,
    ),
    "greedy_words_2": Code(
        solution=greedy_words_2,
        cases=(
            lambda: [_case(_adds([1, 3], 20), [[4], [1]], 7, 6)],
            lambda: [_case(_adds([1, 3, 2], 20), [[4], [1], [0]], 7, 5)],
            lambda: [_case(_likes_2(1, 9), [[3, 1], [5, 5], [2, 8]], 4, 7)],
        ),
        reference=_right,
        hidden=lambda drawn: [_case(_likes_2(4, 11), [[3, 1, 2], [5, 9, 5], [2, 8, 10]], 6, 9)],
    ),
    "best_continuations": Code(
        solution=best_continuations,
        cases=(
            lambda: [_beams([-0.5, -0.9], [[-0.9, -1.2], [-0.1, -3.0]])],
            lambda: [_beams([-0.1, -4.0], [[-1.0, -0.7, -2.5], [-0.2, -1.0, -3.0]])],
            lambda: [_drawn_beams(3, 4, 6)],
        ),
        reference=_right_continuations,
        hidden=_more_best_continuations,
    ),
    "best_continuations_2": Code(
        wrong=(_one_beginning,),
    ),
}
