"""What of the questions in 12_claims.md is code."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def to_the_letter(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, 0.0)
    return scores.softmax(-1) @ value


def _nodes() -> Case:
    """Two neighbours with a score of 1, and a stranger."""
    ones = table([[1.0]])
    keys = table([[1.0], [1.0], [1.0]])
    seen = torch.tensor([[True, True, False]], device=ones.device)
    return {"query": ones, "key": keys, "value": table([[0.0], [0.0], [1.0]]), "mask": seen}


def _graph(seed: int, n: int, m: int, d: int, d_v: int, draw: Draw = drawn) -> Case:
    q, k, v = draw(seed, n, d), draw(seed + 1, m, d), draw(seed + 2, m, d_v)
    mask = draw(seed + 3, n, m) > 0
    mask[:, 0] = True
    return {"query": q, "key": k, "value": v, "mask": mask}


def _more_graphs(draw: Draw) -> list[Case]:
    return [_graph(1, 5, 3, 2, 4, draw), _graph(9, 3, 7, 5, 2, draw)]


def _zeroed(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = torch.einsum("nd,md->nm", query, key) / query.shape[-1] ** 0.5
    powers = torch.where(mask, scores.exp(), torch.ones_like(scores))
    return powers @ value / powers.sum(-1, keepdim=True)


def share_on_itself(x, w_query, w_key):
    weights = attend(x @ w_query, x @ w_key, x).weights
    return (weights.argmax(-1) == torch.arange(len(x), device=x.device)).double().mean()


def _tokens(x: Any, w_query: Any, w_key: Any) -> Case:
    return {
        name: m if isinstance(m, Tensor) else table(m)
        for name, m in (("x", x), ("w_query", w_query), ("w_key", w_key))
    }


def _random(seed: int, n: int, d: int, d_k: int, draw: Draw = drawn) -> Case:
    return _tokens(draw(seed, n, d), draw(seed + 1, d, d_k), draw(seed + 2, d, d_k))


def _more_tokens(draw: Draw) -> list[Case]:
    return [_random(1, 13, 3, 3, draw), _random(5, 29, 2, 5, draw)]


def _by_scores(x: Tensor, w_query: Tensor, w_key: Tensor) -> Tensor:
    scores = (x @ w_query) @ (x @ w_key).T
    rows = [scores[i, i] >= scores[i].max() for i in range(len(x))]
    return torch.stack(rows).double().mean()


ONE = [[1.0, 0.0], [0.0, 1.0]]


def moved_by_hidden(attention, query, key, value, mask):
    other_key, other_value = key.clone(), value.clone()
    other_key[-1] += 3
    other_value[-1] += 3
    after = attention(query, other_key, other_value, mask)
    return (attention(query, key, value, mask) - after).abs().max()


def _attention(how: str) -> Callable[..., Tensor]:
    """A function that hides the last key, or hears something of it."""

    def found(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        output = attend(query, key, value, mask=None if how == "no mask" else mask).output
        if how == "values":
            output = output + value[-1] / 7
        if how == "keys":
            output = output + key[-1].sum() / 7
        if how == "smaller":
            output = output - value[-1] / 3
        return output

    return found


def _hidden(how: str, n: int, m: int, d: int, d_v: int, draw: Draw = drawn, seed: int = 3) -> Case:
    q, k, v = draw(seed, n, d), draw(seed + 1, m, d), draw(seed + 2, m, d_v)
    mask = (torch.arange(m, device=q.device) < m - 1).expand(n, m).clone()
    return {"attention": _attention(how), "query": q, "key": k, "value": v, "mask": mask}


def _more_hidden(draw: Draw) -> list[Case]:
    return [_hidden("no mask", 5, 7, 2, 3, draw), _hidden("smaller", 3, 4, 5, 2, draw)]


def _by_cat(attention: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    louder = [torch.cat([x[:-1], x[-1:] + 3]) for x in (key, value)]
    gap = attention(query, *louder, mask) - attention(query, key, value, mask)
    return torch.maximum(gap.max(), -gap.min())


def to_the_letter_2(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "m d"],
    value: Float[Tensor, "m d_v"],
    mask: Bool[Tensor, "n m"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    powers = scores.exp() * mask
    return powers @ value / powers.sum(-1, keepdim=True)


def _edges(seed: int, n: int, m: int, d: int) -> Case:
    mask = drawn(seed + 3, n, m) > 0
    mask[:, 0] = True
    return {
        "query": drawn(seed, n, d),
        "key": drawn(seed + 1, m, d),
        "value": drawn(seed + 2, m, d),
        "mask": mask,
    }


def share_on_itself_2(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "d d_k"],
    w_key: Float[Tensor, "d d_k"],
) -> Float[Tensor, ""]:
    best = attend(x @ w_query, x @ w_key, x).weights.argmax(-1)
    i = torch.arange(len(x), device=x.device)
    return ((best - i).abs() == 1).double().mean()


def _drawn(seed: int, n: int, d: int) -> Case:
    return {"x": drawn(seed, n, d), "w_query": drawn(seed + 1, d, 3), "w_key": drawn(seed + 2, d, 3)}


CODE = {
    "to_the_letter": Code(
        solution=to_the_letter,
        cases=(
            lambda: [_nodes()],
            lambda: [_graph(11, 3, 3, 2, 2)],
            lambda: [_graph(21, 4, 6, 2, 3), _graph(31, 4, 4, 3, 3)],
        ),
        reference=_zeroed,
        hidden=_more_graphs,
    ),
    "to_the_letter_2": Code(
        solution=to_the_letter_2,
        cases=(
            lambda: [_edges(1, 3, 3, 2)],
            lambda: [_edges(7, 4, 7, 3)],
        ),
    ),
    "moved_by_hidden": Code(
        solution=moved_by_hidden,
        cases=(
            lambda: [_hidden("hides", 2, 3, 5, 4)],
            lambda: [_hidden("no mask", 4, 6, 3, 2)],
            lambda: [_hidden("values", 3, 5, 2, 4)],
            lambda: [_hidden("keys", 3, 5, 2, 4)],
            lambda: [_hidden("smaller", 5, 4, 3, 2)],
        ),
        reference=_by_cat,
        hidden=_more_hidden,
    ),
    "share_on_itself": Code(
        solution=share_on_itself,
        cases=(
            lambda: [_tokens([[1.0, 0.0], [0.0, 1.0]], ONE, ONE)],
            lambda: [_tokens([[1.0, 0.0], [0.0, 1.0]], ONE, [[0.0, 1.0], [1.0, 0.0]])],
            lambda: [_tokens([[0.5, 0.0], [1.0, 0.2], [0.7, 0.0]], ONE, ONE)],
            lambda: [_random(35, 17, 5, 3)],
        ),
        reference=_by_scores,
        hidden=_more_tokens,
    ),
    "share_on_itself_2": Code(
        solution=share_on_itself_2,
        cases=(
            lambda: [_drawn(1, 11, 4)],
            lambda: [_drawn(5, 30, 2)],
        ),
    ),
}
