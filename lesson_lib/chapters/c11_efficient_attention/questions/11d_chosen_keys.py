"""What of the questions in 11d_chosen_keys.md is code."""

from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.chosen import best_keys


def chosen_keys(scores, k, mask):
    scores = scores.masked_fill(~mask, -torch.inf)
    best = scores.topk(min(k, scores.shape[-1]), -1).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True) & mask


def _by_best_keys(scores: Tensor, k: int, mask: Tensor) -> Tensor:
    return best_keys(scores, k, mask=mask)


OPENING = [[1.0, 9.0, 8.0, 7.0], [2.0, 3.0, 9.0, 8.0], [5.0, 1.0, 4.0, 9.0], [0.0, 3.0, 6.0, 2.0]]


def _choice(scores: Any, k: int, mask: Any) -> Case:
    return {"scores": table(scores), "k": k, "mask": table(mask).bool()}


def _earlier(n: int) -> list[list[int]]:
    return [[int(s <= t) for s in range(n)] for t in range(n)]


def _any_choice(seed: int, n: int, m: int, k: int, draw: Draw = drawn) -> Case:
    """Scores without ties, below 0 too: each number a rank of its own."""
    order = draw(seed, n, m).argsort(dim=-1, stable=True).argsort(-1).float()
    may = draw(seed + 1, n, m) > -0.5
    return {"scores": order - m + 0.5, "k": k, "mask": may}


def _more_choices(draw: Draw) -> list[Case]:
    return [_any_choice(1, 5, 7, 3, draw), _any_choice(11, 6, 4, 2, draw)]


def _padded(seed: int) -> Case:
    case = _any_choice(seed, 6, 5, 2)
    mask = table([[[1, 1, 0, 0, 0]], [[1, 1, 1, 1, 1]]]).bool()
    return {"scores": case["scores"].view(2, 3, 5), "k": 2, "mask": mask}


def chosen_keys_2(scores, k, mask):
    least = scores.masked_fill(~mask, -torch.inf).topk(k, -1).values[..., -1:]
    return (scores >= least) & mask


def _by_sorting(scores: Tensor, k: int, mask: Tensor) -> Tensor:
    hidden = scores.masked_fill(~mask, -torch.inf)
    return (hidden >= hidden.sort(-1, descending=True).values[..., k - 1 : k]) & mask


def index_score(query, key, weight):
    return (weight.mT[..., None] * (query @ key[:, None].mT).relu()).sum(1)


def _pair_by_pair(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    products = torch.einsum("bhnd,bmd->bhnm", query, key).clamp(min=0)
    return torch.einsum("bnh,bhnm->bnm", weight, products)


def _index(seed: int, b: int, h: int, n: int, m: int, width: int, draw: Draw = drawn) -> Case:
    return {
        "query": draw(seed, b, h, n, width),
        "key": draw(seed + 1, b, m, width),
        "weight": draw(seed + 2, b, n, h),
    }


def _pair(query: list[float], key: float, weight: list[float]) -> Case:
    """One query and one key of width 1, with a head for each number of the query."""
    return {
        "query": table([[[[number]] for number in query]]),
        "key": table([[[key]]]),
        "weight": table([[weight]]),
    }


def _more_indexes(draw: Draw) -> list[Case]:
    return [_index(1, 2, 3, 5, 7, 4, draw), _index(11, 3, 2, 4, 6, 5, draw)]


def index_score_2(query, key, weight, cos, sin):
    def turned(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    return (weight.mT[..., None] * (turned(query) @ turned(key).mT).relu()).sum(0)


def _turned(seed: int, h: int, n: int, width: int) -> Case:
    angles = torch.arange(n, device="cpu")[:, None] * table([1.0, 0.4, 0.1][: width // 2])
    angles = angles if width > 2 else angles * torch.pi / 2
    return {
        "query": drawn(seed, h, n, width),
        "key": drawn(seed + 1, n, width),
        "weight": drawn(seed + 2, n, h),
        "cos": angles.cos(),
        "sin": angles.sin(),
    }


def _as_complex(query: Tensor, key: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    turn = torch.complex(cos, sin)
    q, k = (torch.complex(*x.chunk(2, -1)) * turn for x in (query, key))
    return torch.einsum("nh,hnm->nm", weight, (q @ k.conj().mT).real.clamp(min=0))


CODE = {
    "chosen_keys": Code(
        solution=chosen_keys,
        cases=(
            lambda: [_choice(OPENING[:1], 2, [[1, 1, 1, 1]])],
            lambda: [_choice(OPENING[:1], 2, [[1, 0, 1, 1]]), _choice([[-1.0, 9.0, -8.0]], 1, [[1, 0, 1]])],
            lambda: [_choice(OPENING, 2, _earlier(4)), _any_choice(3, 5, 7, 3)],
            lambda: [
                _choice(OPENING[:2], 2, [[0, 0, 0, 0], [1, 0, 0, 1]]),
                _choice(OPENING[:2], 9, [[1, 1, 0, 1], [0, 1, 0, 0]]),
            ],
            lambda: [_padded(5)],
        ),
        reference=_by_best_keys,
        hidden=_more_choices,
    ),
    "chosen_keys_2": Code(
        solution=chosen_keys_2,
        cases=(
            lambda: [_choice(OPENING[:1], 2, [[1, 1, 1, 1]])],
            lambda: [_choice([[8.0, 9.0, 8.0, 7.0]], 2, [[1, 1, 1, 1]])],
            lambda: [_choice(OPENING, 2, _earlier(4)), _any_choice(3, 5, 7, 3)],
        ),
        reference=_by_sorting,
    ),
    "index_score": Code(
        solution=index_score,
        cases=(
            lambda: [_pair([3.0], 4.0, [2.0])],
            lambda: [_pair([-3.0], 4.0, [2.0]), _pair([3.0], 4.0, [-2.0])],
            lambda: [_pair([2.0, -5.0], 1.0, [1.0, 3.0])],
            lambda: [_index(1, 2, 3, 5, 7, 2)],
            lambda: [_index(5, 2, 4, 4, 4, 3)],
        ),
        reference=_pair_by_pair,
        hidden=_more_indexes,
    ),
    "index_score_2": Code(
        solution=index_score_2,
        cases=(
            lambda: [_turned(1, 1, 2, 2)],
            lambda: [_turned(5, 2, 3, 4)],
            lambda: [_turned(9, 3, 5, 6)],
        ),
        reference=_as_complex,
    ),
}
