"""What of the questions in 06c_writing.md is code."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code

Scorer = Callable[[Tensor], Tensor]


def greedy_words(score_next, begin, end, most):
    tokens = begin
    for _ in range(most):
        best = score_next(tokens).argmax()
        tokens = torch.cat([tokens, best[None]])
        if best == end:
            break
    return tokens[len(begin) :]


def _writes(
    *,
    reads: Callable[[Tensor, int], Tensor] = lambda tokens, n: tokens,
    best: Callable[[Tensor], Tensor] = torch.argmax,
    stops: bool = True,
    more: int = 0,
) -> Callable[..., Tensor]:
    """A writer that hands `reads(tokens, len(begin))` to score_next, takes `best` of the scores, and writes
    `more` tokens than allowed."""

    def written(score_next: Any, begin: Tensor, end: int, most: int) -> Tensor:
        tokens = begin
        for _ in range(most + more):
            tokens = torch.cat([tokens, best(score_next(reads(tokens, len(begin))))[None]])
            if stops and tokens[-1] == end:
                break
        return tokens[len(begin) :]

    return written


def _likes(choose: Callable[[Tensor], Any], tokens: int) -> Scorer:
    """A function that gives token `choose(tokens so far)` the highest score and others lower ones, all
    different."""

    def scored(sofar: Tensor) -> Tensor:
        if not isinstance(sofar, Tensor):
            raise TypeError(f"score_next reads a tensor of tokens, got a {type(sofar).__name__}")
        places = torch.arange(tokens, device=sofar.device)
        return -((places - choose(sofar)) % tokens).float()

    return scored


def _writing(
    choose: Callable[[Tensor], Any], begin: list[int], end: int, most: int, tokens: int = 10
) -> Case:
    return {
        "score_next": _likes(choose, tokens),
        "begin": torch.tensor(begin, device="cpu"),
        "end": end,
        "most": most,
    }


def _more_greedy_words(drawn: Draw) -> list[Case]:
    logits = drawn(1, 13, 13)
    begin = (3 * drawn(2, 4).abs()).long().clamp(max=12)
    return [
        {
            "score_next": lambda tokens: logits[tokens].cumsum(0)[-1],
            "begin": begin,
            "end": end,
            "most": 9,
        }
        for end in (0, 5)
    ]


def greedy_words_2(
    score_next,  # a function: tokens (b, n) to logits (b, vocabulary) of the next ones
    begin,  # (b, n)
    end,  # a whole number
    most,  # a whole number
):
    tokens = begin
    ended = torch.zeros(len(begin), dtype=torch.bool, device=begin.device)
    for _ in range(most):
        best = score_next(tokens).argmax(-1).masked_fill(ended, 0)
        tokens = torch.cat([tokens, best[:, None]], 1)
        ended = ended | (best == end)
        if ended.all():
            break
    return tokens[:, begin.shape[1] :]


def _adds(step: list[int], count: int) -> Any:
    """Row b likes its last token plus step[b] best."""

    def scored(tokens: Tensor) -> Tensor:
        wanted = (tokens[:, -1] + torch.tensor(step, device=tokens.device)) % count
        return -((torch.arange(count, device=tokens.device) - wanted[:, None]) % count).float()

    return scored


def _likes_2(seed: int, count: int) -> Any:
    rows = drawn(seed, count, count)

    def scored(tokens: Tensor) -> Tensor:
        return rows.to(tokens.device)[tokens].sum(1)

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


def mask_of_new(past, new):
    rows = torch.arange(past, past + new)
    keys = torch.arange(past + new)
    return keys <= rows[:, None]


def _some_past(past: int, new: int) -> Case:
    return {"past": past, "new": new}


CODE = {
    "greedy_words": Code(
        solution=greedy_words,
        cases=(
            lambda: [_writing(lambda tokens: tokens[-1] + 1, [1], 9, 2)],
            lambda: [_writing(lambda tokens: tokens[-1] + 1, [1], 9, 4)],
            lambda: [_writing(lambda tokens: tokens[-1] + 1, [1], 4, 7)],
            lambda: [
                _writing(lambda tokens: tokens.sum() % 10, [3, 1, 7], 8, 6),
                _writing(lambda tokens: tokens.sum() % 7, [1, 2, 2], 6, 5, 7),
            ],
            lambda: [
                _writing(lambda tokens: tokens[-1] + 2, [1, 0, 3], 0, 3),
                _writing(lambda tokens: tokens[-1] + 5, [4, 0], 0, 6),
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
    "mask_of_new": Code(
        solution=mask_of_new,
        cases=(
            lambda: [_some_past(3, 1)],
            lambda: [_some_past(3, 2)],
            lambda: [_some_past(0, 4)],
            lambda: [_some_past(7, 5), _some_past(2, 6)],
        ),
        reference=lambda past, new: torch.ones(new, past + new, dtype=torch.bool).tril(past),
        hidden=lambda drawn: [_some_past(11, 3), _some_past(1, 1)],
    ),
}
