"""What of the questions in 07c_reach.md is code."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code


def place_attention(x, w_q, w_k, w_v, gamma):
    places = x.flatten(2).mT  # (b, h * w, c)
    found = attend(places @ w_q.T, places @ w_k.T, places @ w_v.T).output
    return x + gamma * found.mT.reshape(x.shape)


def _map(seed: int, b: int, c: int, h: int, w: int, d: int, gamma: float, draw=drawn) -> Case:
    return {
        "x": draw(seed, b, c, h, w),
        "w_q": draw(seed + 1, d, c),
        "w_k": draw(seed + 2, d, c),
        "w_v": draw(seed + 3, c, c),
        "gamma": gamma,
    }


def _two_places(gamma: float) -> Case:
    one = table([[1.0]])
    return {"x": table([[[[2.0, 6.0]]]]), "w_q": 0 * one, "w_k": one, "w_v": one, "gamma": gamma}


def _more_place_attention(drawn: Draw) -> list[Case]:
    return [_map(1, 3, 5, 2, 7, 2, 0.7, drawn), _map(11, 2, 2, 5, 3, 3, -1.3, drawn)]


def set_loss_of_kinds(logits, kind, query):
    wanted = torch.full_like(logits[:, 0], logits.shape[1] - 1, dtype=torch.long)
    wanted[query] = kind
    return torch.nn.functional.cross_entropy(logits, wanted)


def _guesses(logits: Tensor, kind: list[int], query: list[int]) -> Case:
    numbers = {"kind": kind, "query": query}
    return {"logits": logits} | {name: torch.tensor(row, device="cpu") for name, row in numbers.items()}


def _more_set_loss(drawn: Draw) -> list[Case]:
    return [_guesses(drawn(1, 7, 4), [2, 0, 1], [6, 2, 3]), _guesses(drawn(2, 3, 6), [4, 4], [0, 2])]


def place_attention_2(x, coarse, w_v, gamma):
    places, others = x.flatten(2).mT, coarse.flatten(2).mT
    found = attend(places, others, others @ w_v.T).output
    return x + gamma * found.mT.reshape(x.shape)


def _coarser(seed: int, b: int, c: int, fine: tuple[int, int], coarse: tuple[int, int], gamma: float) -> Case:
    return {
        "x": drawn(seed, b, c, *fine),
        "coarse": drawn(seed + 1, b, c, *coarse),
        "w_v": drawn(seed + 2, c, c),
        "gamma": gamma,
    }


def set_loss_of_kinds_2(logits, kind, query, no_object):
    wanted = torch.full_like(logits[:, 0], logits.shape[1] - 1, dtype=torch.long)
    wanted[query] = kind
    counts = torch.ones_like(logits[0])
    counts[-1] = no_object
    return torch.nn.functional.cross_entropy(logits, wanted, counts)


def _counted(logits: Tensor, kind: list[int], query: list[int], no_object: float) -> Case:
    numbers = {"kind": kind, "query": query}
    tensors = {name: torch.tensor(row, device="cpu") for name, row in numbers.items()}
    return {"logits": logits} | tensors | {"no_object": no_object}


CODE = {
    "place_attention": Code(
        solution=place_attention,
        cases=(
            lambda: [_two_places(0.5)],
            lambda: [_map(21, 1, 1, 2, 3, 1, 1.0)],
            lambda: [_map(31, 1, 3, 2, 3, 2, 0.7)],
            lambda: [_map(41, 2, 3, 3, 2, 2, -0.4), _map(51, 2, 3, 2, 3, 3, 0.6)],
        ),
        hidden=_more_place_attention,
    ),
    "place_attention_2": Code(
        solution=place_attention_2,
        cases=(
            lambda: [
                {
                    "x": table([[[[2.0, 6.0]]]]),
                    "coarse": table([[[[3.0]]]]),
                    "w_v": table([[2.0]]),
                    "gamma": 0.5,
                }
            ],
            lambda: [_coarser(1, 1, 3, (2, 3), (1, 2), 1.0)],
            lambda: [_coarser(11, 2, 2, (3, 4), (2, 1), -0.7)],
        ),
    ),
    "set_loss_of_kinds": Code(
        solution=set_loss_of_kinds,
        cases=(
            lambda: [_guesses(table([[2.0, 0.0, 0.0]]), [0], [0])],
            lambda: [_guesses(primes(3, 3) / 50, [0], [1])],
            lambda: [_guesses(drawn(1, 3, 4), [2, 1], [2, 0])],
            lambda: [_guesses(drawn(2, 5, 5), [3, 0, 3], [4, 0, 1])],
        ),
        hidden=_more_set_loss,
    ),
    "set_loss_of_kinds_2": Code(
        solution=set_loss_of_kinds_2,
        cases=(
            lambda: [_counted(table([[2.0, 0.0, 0.0]]), [0], [0], 0.1)],
            lambda: [_counted(drawn(1, 3, 3), [0], [1], 0.1)],
            lambda: [_counted(drawn(2, 5, 5), [3, 0, 3], [4, 0, 1], 0.4)],
        ),
    ),
}
