"""Right answers to the exercises of lesson 11, in many spellings; wrong ones to the open question."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.lesson_11 import (
    INF,
    _by_exp,
    _by_library,
    _grouped,
    _head_by_head,
    _higher,
    _in_one_tensor,
    _log_by_exp,
    _low,
    _merged,
    _running,
)
from lesson_lib.efficient import Partial, merge


def _finite(a: Tensor, b: Tensor) -> Tensor:
    return _higher(a, b).clamp(min=-1e30)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    return torch.logaddexp(a, b).clamp(min=-1e30)


def _by_merges(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """Tile by tile, put together as the exercise before does."""
    whole = None
    for s, v in zip(scores.split(tile, 1), value.split(tile), strict=True):
        part = Partial(s.softmax(1) @ v, s.logsumexp(1))
        whole = part if whole is None else merge(whole, part)
    assert whole is not None
    return whole.output


def _two_passes(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """The maxima of all tiles first; each tile is read twice."""
    top = torch.stack([s.amax(1) for s in scores.split(tile, 1)]).amax(0)[:, None]
    total = sum((s - top).exp().sum(1, keepdim=True) for s in scores.split(tile, 1))
    mixed = sum((s - top).exp() @ v for s, v in zip(scores.split(tile, 1), value.split(tile), strict=True))
    return mixed / total


def _key_by_key(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """Milakov and Gimelshein's loop, one key at a time, with lists of numbers."""
    rows = []
    for i in range(len(scores)):
        top, total, mixed = -INF, 0.0, torch.zeros_like(value[0])
        for j in range(len(value)):
            s = scores[i, j].item()
            new = max(top, s)
            shrink, weight = torch.tensor([top - new, s - new], device=value.device).exp()
            total, mixed, top = total * shrink + weight, mixed * shrink + weight * value[j], new
        rows.append(mixed / total)
    return torch.stack(rows)


def _by_groups(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Nothing is repeated: each group has an axis of its own."""
    groups = query.unflatten(0, (len(key), -1))
    return attend(groups, key[:, None], value[:, None], weights=False).output.flatten(0, 1)


def _by_index(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    of = torch.arange(len(query), device=query.device) // (len(query) // len(key))
    return attend(query, key[of], value[of]).output


RIGHT = {
    "merge_two": (
        _in_one_tensor,
        _merged(),
        _merged(_by_exp(_log_add, divided=False), _log_by_exp(_finite)),
        lambda *given: list(_by_library(*given)),
    ),
    "one_pass": (_running(), _by_merges, _two_passes, _key_by_key),
    "grouped_query": (_grouped(), _by_index, _by_groups, _head_by_head),
    "low_rank": (
        _low(),
        lambda query, key, value, E, F: attend(query, E @ key, F @ value).output,
        lambda query, key, value, E, F: attend(query, E @ key, F @ value, weights=False).output,
        lambda query, key, value, E, F: (
            (torch.einsum("nd,rm,md->nr", query, E, key) / key.shape[1] ** 0.5).softmax(1)
            @ torch.einsum("rn,nd->rd", F, value)
        ),
    ),
    "cache_of_groups": ("2 * 32 * 8 * 128 * 131072 * 2 / 2**30", 16, "128 * 131072 / 1024^2"),
    "which_method": ("e", " (E)"),
    "ring_machines": ("8 * 512 * 4 * 2**20 / 2**30", 16, "2**20 / (2**30 / 2**14)"),
    "leaky_mixtures": (
        (
            "All 8 outputs change. Every mixture contains every token, and a mask can hide a whole mixture"
            " only. I would use linear attention with running sums instead."
        ),
        (
            "Even the outputs before token 5 change, every one of them, since E k sums over all places. Once"
            " it is summed, nothing can be hidden. Take exact attention in tiles with a causal mask."
        ),
        (
            "Each output depends on all three mixtures and each mixture is a combination of all tokens;"
            " masking removes whole mixtures and so everything. A causal window keeps the keys apart."
        ),
        (
            "All outputs change, because token 5 is already mixed into what they look at, and one cannot take"
            " it out again. Use random features or a local window."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "leaky_mixtures": (
        "Only the outputs of tokens 5, 6 and 7 change, as in any causal model.",
        "All change, but a triangular mask hides the later tokens, one just has to cut it to three columns.",
        "All outputs change, but the model learns to ignore the future.",
        "All outputs change; I would take a larger rank, so that the tokens stay apart.",
        "All of them change a bit, and dropout would help against it.",
        "All outputs change because there is a positional encoding missing.",
        "The earlier outputs hardly change.",
    ),
}
