"""What of the questions in 11b_exact_and_fast.md is code."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw, Stage
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.checks.runner import Call
from lesson_lib.checks.several_results import Alike
from lesson_lib.checks.values import described, is_numpy

INF = torch.inf
LN_3, LN_4 = 1.0986123, 1.3862944


@dataclass(frozen=True, kw_only=True, eq=False)
class Three(Alike):
    """A function that gives back three tensors, top and total (n, 1) and mixed (n, d_v); they are judged side
    by side."""

    def _trouble(self, outcome: Call, expected: Tensor, stage: Stage) -> str | None:
        value, (n, width) = outcome.value, expected.shape
        sizes = f"({n}, 1), ({n}, 1) and ({n}, {width - 2})"
        three = f"asked for are three tensors, {sizes}: return top, total, mixed"
        odd = outcome.trouble or outcome.changed or value is None or value is ... or is_numpy(value)
        if not odd and not isinstance(value, Tensor):
            inside = ""
            if isinstance(value, (tuple, list)):
                inside = f" ({', '.join(described(part) for part in value[:3])})"
            return f"your function gives back {described(value)}{inside}; {three}"
        plain = isinstance(value, Tensor) and value.layout == torch.strided
        if plain and value.device == expected.device and value.shape != expected.shape:
            return f"your function gives back one tensor, which has shape {tuple(value.shape)}; {three}"
        return super()._trouble(outcome, expected, stage)


def _three(kept: Any, *_: Any) -> Any:
    """The three tensors as one, in this order; anything else as it is."""
    if not isinstance(kept, (tuple, list)) or len(kept) != 3:
        return kept
    if not all(isinstance(x, Tensor) and x.ndim == 2 and x.layout == torch.strided for x in kept):
        return kept
    if len({(len(x), x.device, x.dtype) for x in kept}) > 1 or kept[0].device.type == "meta":
        return kept
    return torch.cat(list(kept), 1)


def one_tile(top, total, mixed, scores, value):
    new = torch.maximum(top, scores.amax(1, keepdim=True))
    shrink, weights = (top - new).exp(), (scores - new).exp()
    total = total * shrink + weights.sum(1, keepdim=True)
    mixed = mixed * shrink + weights @ value
    return new, total, mixed


def _by_sums(top: Tensor, total: Tensor, mixed: Tensor, scores: Tensor, value: Tensor) -> Any:
    """What was kept as one key more, of score top + ln total and the value mixed / total."""
    before, kept = top + total.log(), (mixed / total).nan_to_num(0.0)
    new = torch.cat([top, scores], 1).amax(1, keepdim=True)
    weights = (torch.cat([before, scores], 1) - new).exp()
    return (
        new,
        weights.sum(1, keepdim=True),
        torch.stack([w @ torch.cat([k[None], value]) for w, k in zip(weights, kept, strict=True)]),
    )


def _tile(top: Any, total: Any, mixed: Any, scores: Any, value: Any) -> Case:
    names = ("top", "total", "mixed", "scores", "value")
    given = (top, total, mixed, scores, value)
    return {name: table(x) for name, x in zip(names, given, strict=True)}


def _any_tile(seed: int, n: int, tile: int, d_v: int, draw: Draw = drawn) -> Case:
    return {
        "top": draw(seed, n, 1),
        "total": 1 + draw(seed + 1, n, 1).abs(),
        "mixed": draw(seed + 2, n, d_v),
        "scores": 2 * draw(seed + 3, n, tile),
        "value": draw(seed + 4, tile, d_v),
    }


def _more_tiles(draw: Draw) -> list[Case]:
    return [_any_tile(1, 5, 3, 2, draw), _any_tile(11, 2, 7, 3, draw)]


def with_shared_keys(x, w_query, w_key, w_value, n_heads):
    width = w_query.shape[1] // n_heads
    tables = (x @ w for w in (w_query, w_key, w_value))
    q, k, v = (table.unflatten(1, (-1, width)).transpose(0, 1) for table in tables)
    shared = len(q) // len(k)  # query heads that share a head of keys
    k, v = k.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)
    return attend(q, k, v).output.transpose(0, 1).flatten(1)


def _head_by_head(x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, n_heads: int) -> Tensor:
    width = w_query.shape[1] // n_heads
    shared = w_query.shape[1] // w_key.shape[1]
    outputs = []
    for head in range(n_heads):
        own, its = (slice(i * width, (i + 1) * width) for i in (head, head // shared))
        outputs.append(attend(x @ w_query[:, own], x @ w_key[:, its], x @ w_value[:, its]).output)
    return torch.cat(outputs, 1)


def _layer(seed: int, n: int, d_model: int, heads: tuple[int, int], width: int, draw: Draw = drawn) -> Case:
    n_heads, n_key_heads = heads
    return {
        "x": draw(seed, n, d_model),
        "w_query": draw(seed + 1, d_model, n_heads * width),
        "w_key": draw(seed + 2, d_model, n_key_heads * width),
        "w_value": draw(seed + 3, d_model, n_key_heads * width),
        "n_heads": n_heads,
    }


def _one_token(values: list[float], n_heads: int) -> Case:
    """One token of width 1: each head's output is the value of its group."""
    g = len(values)
    return {
        "x": table([[1.0]]),
        "w_query": drawn(1, 1, n_heads),
        "w_key": drawn(2, 1, g),
        "w_value": table([values]),
        "n_heads": n_heads,
    }


def _more_shared(draw: Draw) -> list[Case]:
    return [_layer(1, 7, 5, (6, 2), 3, draw), _layer(11, 3, 4, (8, 4), 2, draw)]


def one_tile_2(log_sum, scores):
    return torch.logaddexp(log_sum, scores.logsumexp(1))


def _with_one_more(log_sum: Tensor, scores: Tensor) -> Tensor:
    """The old sum as one score more."""
    return torch.cat([log_sum[:, None], scores], 1).logsumexp(1)


def _sums(log_sum: list[float], scores: list[list[float]]) -> Case:
    return {"log_sum": table(log_sum), "scores": table(scores)}


LN_2, LN_3, LN_4 = 0.6931472, 1.0986123, 1.3862944


def with_shared_keys_2(query, key, value):
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    heads_first = (x.transpose(0, 1) for x in (query, key, value))
    return attend(*heads_first).output.transpose(0, 1)


def _by_head(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    shared = query.shape[1] // key.shape[1]
    heads = [
        attend(query[:, i], key[:, i // shared], value[:, i // shared]).output for i in range(query.shape[1])
    ]
    return torch.stack(heads, 1)


def _tokens_first(seed: int, n: int, m: int, h: int, g: int, d: int) -> Case:
    return {"query": drawn(seed, n, h, d), "key": drawn(seed + 1, m, g, d), "value": drawn(seed + 2, m, g, d)}


CODE = {
    "one_tile": Code(
        kind=Three,
        solution=one_tile,
        cases=(
            lambda: [_tile([[LN_3]], [[4 / 3]], [[70 / 3]], [[LN_4]], [[40.0]])],
            lambda: [_tile([[LN_4]], [[1.0]], [[40.0]], [[LN_3, 0.0]], [[20.0], [10.0]])],
            lambda: [_tile([[-INF]], [[0.0]], [[0.0]], [[LN_3, 0.0]], [[20.0], [10.0]])],
            lambda: [_any_tile(1, 3, 4, 2), _any_tile(21, 4, 2, 3)],
            lambda: [
                _tile([[200.0], [-200.0]], [[1.0], [2.0]], [[4.0], [6.0]], [[201.0], [-200.0]], [[8.0]]),
                _tile([[-200.0]], [[1.0]], [[4.0]], [[200.0]], [[8.0]]),
            ],
        ),
        reference=_by_sums,
        hidden=_more_tiles,
        normalise=_three,
    ),
    "one_tile_2": Code(
        solution=one_tile_2,
        cases=(
            lambda: [_sums([LN_4], [[LN_4]])],
            lambda: [{"log_sum": drawn(1, 3), "scores": drawn(2, 3, 2)}],
            lambda: [_sums([-torch.inf, -torch.inf], [[LN_3, 0.0], [LN_2, LN_2]])],
            lambda: [_sums([200.0, -200.0], [[201.0, 200.0], [-200.0, -201.0]])],
        ),
        reference=_with_one_more,
    ),
    "with_shared_keys": Code(
        solution=with_shared_keys,
        cases=(
            lambda: [_one_token([2.0, 8.0], 4)],
            lambda: [_one_token([2.0, 8.0, 5.0], 6), _one_token([2.0, 8.0], 6)],
            lambda: [_layer(1, 5, 7, (4, 2), 3)],
            lambda: [_layer(5, 5, 7, (3, 3), 2), _layer(9, 3, 5, (4, 1), 2)],
        ),
        reference=_head_by_head,
        hidden=_more_shared,
    ),
    "with_shared_keys_2": Code(
        solution=with_shared_keys_2,
        cases=(
            lambda: [
                {"query": drawn(1, 1, 4, 1), "key": drawn(2, 1, 2, 1), "value": table([[[2.0], [8.0]]])}
            ],
            lambda: [_tokens_first(1, 3, 5, 4, 2, 7)],
            lambda: [_tokens_first(5, 3, 2, 5, 1, 2), _tokens_first(9, 2, 5, 6, 3, 4)],
        ),
        reference=_by_head,
    ),
}
