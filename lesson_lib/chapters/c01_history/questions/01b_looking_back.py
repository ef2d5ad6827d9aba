"""What of the questions in 01b_looking_back.md is code."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c01_history.questions.exercises import whole
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.questions import Code
from lesson_lib.scores import Additive


def one_place(n, m):
    mask = torch.zeros(n, m, dtype=torch.bool)
    mask[:, -1] = True
    return mask


def _more_one_place(drawn: Draw) -> list[Case]:
    return [{"n": 5, "m": 11}, {"n": 7, "m": 2}]


def additive_step(state, read, w_query, w_key, v):
    scores = torch.tanh(state @ w_query + read @ w_key) @ v  # (m,): one per place
    weights = torch.softmax(scores, dim=-1)
    return weights @ read


def _decoder(seed: int, m: int, d_state: int, d_read: int, d_hidden: int) -> Case:
    return {
        "state": drawn(seed, d_state),
        "read": drawn(seed + 1, m, d_read, spread=3.0),
        "w_query": drawn(seed + 2, d_state, d_hidden),
        "w_key": drawn(seed + 3, d_read, d_hidden),
        "v": drawn(seed + 4, d_hidden, spread=2.0),
    }


def _by_the_library(state: Tensor, read: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor) -> Tensor:
    score = Additive(len(state), read.shape[-1], len(v)).to(state)
    with torch.no_grad():
        for own, given in ((score.w_query.weight, w_query.mT), (score.w_key.weight, w_key.mT), (score.v, v)):
            own.copy_(given)
        return attend(state[None], read, read, score=score).output[0]


def _more_additive_step(drawn: Draw) -> list[Case]:
    shapes = {
        "state": (5,),
        "read": (11, 3),
        "w_query": (5, 7),
        "w_key": (3, 7),
        "v": (7,),
    }
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


def one_place_2(n, m, lengths):
    last = torch.arange(m) == lengths[:, None] - 1  # (b, m)
    return last[:, None, :].expand(-1, n, -1)


def additive_step_2(states, keys, read, w_query, v):
    hidden = torch.tanh((states @ w_query)[:, None] + keys)  # (n, m, d_hidden)
    weights = torch.softmax(hidden @ v, dim=-1)
    return weights @ read


def _translating(seed: int, n: int, m: int, d_state: int, d_read: int, d_hidden: int) -> Case:
    return {
        "states": drawn(seed, n, d_state),
        "keys": drawn(seed + 1, m, d_hidden),
        "read": drawn(seed + 2, m, d_read, spread=3.0),
        "w_query": drawn(seed + 3, d_state, d_hidden),
        "v": drawn(seed + 4, d_hidden, spread=2.0),
    }


def _one_state_at_a_time(states: Tensor, keys: Tensor, read: Tensor, w_query: Tensor, v: Tensor) -> Tensor:
    contexts = []
    for state in states:
        weights = torch.softmax(torch.tanh(state @ w_query + keys) @ v, dim=-1)
        contexts.append((weights[:, None] * read).sum(0))
    return torch.stack(contexts)


CODE = {
    "one_place": Code(
        solution=one_place,
        cases=(
            lambda: [{"n": 1, "m": 3}],
            lambda: [{"n": 4, "m": 7}],
            lambda: [{"n": 2, "m": 1}],
        ),
        hidden=_more_one_place,
    ),
    "one_place_2": Code(
        solution=one_place_2,
        cases=(
            lambda: [{"n": 1, "m": 3, "lengths": whole([2])}],
            lambda: [{"n": 2, "m": 5, "lengths": whole([4, 1, 3])}],
            lambda: [{"n": 3, "m": 7, "lengths": whole([7, 2])}],
        ),
    ),
    "additive_step": Code(
        solution=additive_step,
        cases=(
            lambda: [_decoder(1, 1, 2, 2, 3)],
            lambda: [_decoder(11, 2, 2, 2, 1)],
            lambda: [_decoder(21, 3, 2, 2, 3)],
            lambda: [_decoder(31, 7, 2, 5, 3)],
        ),
        reference=_by_the_library,
        hidden=_more_additive_step,
    ),
    "additive_step_2": Code(
        solution=additive_step_2,
        cases=(
            lambda: [_translating(1, 1, 3, 2, 2, 3)],
            lambda: [_translating(11, 2, 3, 2, 2, 1)],
            lambda: [_translating(21, 5, 7, 2, 11, 3)],
        ),
        reference=_one_state_at_a_time,
    ),
}
