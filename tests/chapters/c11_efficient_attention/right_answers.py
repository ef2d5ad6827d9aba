"""Right answers to the exercises of lesson 11, in many spellings; wrong ones to the open question."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.efficient import Partial, attend_part, merge
from lesson_lib.masks import window
from tests import code_of

asked = code_of("c11_efficient_attention")
in_11b = code_of("c11_efficient_attention", "11b_exact_and_fast")
in_11d = code_of("c11_efficient_attention", "11d_chosen_keys")
in_exercises = code_of("c11_efficient_attention", "exercises")


def _low(
    *,
    keys: Callable[..., Tensor] = lambda key, E, F: E @ key,
    values: Callable[..., Tensor] = lambda value, E, F: F @ value,
    queries: Callable[[Tensor, Tensor], Tensor] = lambda query, E: query,
    divided_by: Callable[[Tensor, Tensor, Tensor], float] = lambda query, key, E: query.shape[-1] ** 0.5,
    axis: int = -1,
) -> Callable[..., Tensor]:
    """Low-rank attention, with any of its parts replaced."""

    def layer(query: Tensor, key: Tensor, value: Tensor, E: Tensor, F: Tensor) -> Tensor:
        scores = queries(query, E) @ keys(key, E, F).mT / divided_by(query, key, E)
        return scores.softmax(axis) @ values(value, E, F)

    return layer


def _each(x: Tensor, shared: int) -> Tensor:
    return x.repeat_interleave(shared, 0)


def _grouped(keys: asked.Heads = _each, values: asked.Heads | None = None) -> Callable[..., Tensor]:
    """Attention, with another way to hand out the heads of keys, and of values."""

    def heads(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        shared = len(query) // len(key)
        return attend(query, keys(key, shared), (values or keys)(value, shared), weights=False).output

    return heads


def _by_rank(scores: Tensor, k: int, mask: Tensor) -> Tensor:
    """A key's rank is the number of allowed keys with a larger score."""
    larger = (scores[..., None, :] > scores[..., None]) & mask[..., None, :]
    return (larger.sum(-1) < k) & mask


def _row_by_row(scores: Tensor, k: int, mask: Tensor) -> Tensor:
    kept = torch.zeros_like(scores, dtype=torch.bool)
    allowed = mask.expand_as(scores).reshape(-1, scores.shape[-1])
    rows = zip(scores.reshape(allowed.shape), allowed, kept.view(allowed.shape), strict=True)
    for row, may, made in rows:
        for key in sorted(may.nonzero().flatten().tolist(), key=lambda j: -row[j].item())[:k]:
            made[key] = True
    return kept


def _rows_as_a_choice(scores: Tensor, real: Tensor, k: int) -> Tensor:
    n, m = scores.shape
    return _by_rank(scores, k, torch.ones(n, m, dtype=torch.bool).tril(m - n) & real)


def _row_after_row(scores: Tensor, real: Tensor, k: int) -> Tensor:
    n, m = scores.shape
    kept = torch.zeros(n, m, dtype=torch.bool)
    for i in range(n):
        allowed = [j for j in range(m - n + i + 1) if real[j]]
        kept[i, sorted(allowed, key=lambda j: -scores[i, j].item())[:k]] = True
    return kept


def _head_after_head(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    total = 0
    for head in range(query.shape[1]):
        total = total + weight[:, :, head, None] * torch.relu(query[:, head] @ key.mT)
    return total


def _shrunk(old: Tensor, new: Tensor) -> Tensor:
    return (old - new).exp()


def _running(
    *,
    of_total: Callable[[Tensor, Tensor], Tensor] = _shrunk,
    of_mixed: Callable[[Tensor, Tensor], Tensor] = _shrunk,
    highest: Callable[[Tensor, Tensor], Tensor] = lambda part, top: torch.maximum(
        top, part.amax(1, keepdim=True)
    ),
    begin: float = -asked.INF,
    starts: Callable[[int, int], range] = lambda m, tile: range(0, m, tile),
    last: Callable[[Tensor, Tensor], Tensor] = lambda mixed, total: mixed / total,
) -> Callable[..., Tensor]:
    """The running softmax, with any of its parts replaced; `begin` is the maximum before the first tile."""

    def pass_(scores: Tensor, value: Tensor, tile: int) -> Tensor:
        top = scores.new_full((len(scores), 1), begin)
        total, mixed = scores.new_zeros(len(scores), 1), scores.new_zeros(len(scores), value.shape[1])
        for start in starts(len(value), tile):
            part = scores[:, start : start + tile]
            new = highest(part, top)
            weights = (part - new).exp()
            if start:
                total, mixed = total * of_total(top, new), mixed * of_mixed(top, new)
            total = total + weights.sum(1, keepdim=True)
            mixed = mixed + weights @ value[start : start + tile]
            top = new
        return last(mixed, total)

    return pass_


def _shares(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """How much each part counts; both 0 where neither saw a key."""
    share = (a - b).sigmoid().nan_to_num(0.0)
    return share, (b - a).sigmoid().nan_to_num(0.0)


def _merged(
    shares: asked.Shares = _shares, log_sum: Callable[..., Tensor] = torch.logaddexp
) -> Callable[..., Any]:
    """The merge, with its shares or its log sum replaced."""

    def two(
        output_a: Tensor, log_sum_a: Tensor, output_b: Tensor, log_sum_b: Tensor
    ) -> tuple[Tensor, Tensor]:
        a, b = shares(log_sum_a, log_sum_b)
        return a[:, None] * output_a + b[:, None] * output_b, log_sum(log_sum_a, log_sum_b)

    return two


def _higher(a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(a, b)


def _log_by_exp(lower: Callable[[Tensor, Tensor], Any], back: bool = True) -> Callable[..., Tensor]:
    def log_sum(a: Tensor, b: Tensor) -> Tensor:
        lowered = ((a - lower(a, b)).exp() + (b - lower(a, b)).exp()).log()
        return lowered + lower(a, b) if back else lowered

    return log_sum


def _by_exp(lower: Callable[[Tensor, Tensor], Any], divided: bool = True) -> asked.Shares:
    """Shares by exp, of log sums from which `lower` is subtracted."""

    def shares(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        one, other = (a - lower(a, b)).exp(), (b - lower(a, b)).exp()
        total = one + other if divided else 1.0
        return one / total, other / total

    return shares


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


def _key_by_key(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """Milakov and Gimelshein's loop, one key at a time, with lists of numbers."""
    rows = []
    for i in range(len(scores)):
        top, total, mixed = -asked.INF, 0.0, torch.zeros_like(value[0])
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


def _by_distance(n: int, radius: int, n_global: int) -> Tensor:
    """Three reasons to look, joined."""
    i, j = torch.arange(n)[:, None], torch.arange(n)
    return ((i - j).abs() <= radius) | (i < n_global) | (j < n_global)


def _by_rows(n: int, radius: int, n_global: int) -> Tensor:
    """Row for row, as lists."""
    rows = [
        [i < n_global or j < n_global or abs(i - j) <= radius for j in range(n)] for i in range(n)
    ]  # fmt: skip
    return torch.tensor(rows, dtype=torch.bool)


def _with_powers(x: Tensor, directions: Tensor) -> Tensor:
    """All factors apart: exp(w y) · exp(-|y|² / 2) · m^(-1/2)."""
    y = x * x.shape[1] ** -0.25
    return (
        torch.exp(y @ directions.T) * torch.exp(-0.5 * (y**2).sum(1, keepdim=True)) * len(directions) ** -0.5
    )


def _inside_the_exponent(x: Tensor, directions: Tensor) -> Tensor:
    """The root of m as a logarithm, y · y by einsum."""
    y = x / math.sqrt(math.sqrt(x.shape[-1]))
    half = torch.einsum("nd,nd->n", y, y)[:, None] / 2
    return (torch.einsum("nd,md->nm", y, directions) - half - math.log(len(directions)) / 2).exp()


def _key_after_key(top: Tensor, total: Tensor, mixed: Tensor, scores: Tensor, value: Tensor) -> list[Tensor]:
    """Key by key, with what was kept before it."""
    for score, row in zip(scores.T[..., None], value, strict=True):
        new = top.maximum(score)
        total = total * (top - new).exp() + (score - new).exp()
        mixed = mixed * (top - new).exp() + (score - new).exp() * row
        top = new
    return [top, total, mixed]


def _own_groups(x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, n_heads: int) -> Tensor:
    """Nothing is repeated: each group has an axis of its own."""
    width = w_query.shape[1] // n_heads
    groups = w_key.shape[1] // width
    q = (x @ w_query).unflatten(1, (groups, -1, width)).permute(1, 2, 0, 3)
    k, v = ((x @ w).unflatten(1, (groups, width)).transpose(0, 1)[:, None] for w in (w_key, w_value))
    return attend(q, k, v, weights=False).output.flatten(0, 1).transpose(0, 1).flatten(1)


def _shares_by_division(output_a: Tensor, sum_a: Tensor, output_b: Tensor, sum_b: Tensor) -> Tensor:
    above = output_a * sum_a[:, None] + output_b * sum_b[:, None]
    return above / (sum_a + sum_b)[:, None]


def _query_by_query(output_a: Tensor, sum_a: Tensor, output_b: Tensor, sum_b: Tensor) -> Tensor:
    rows = zip(output_a, sum_a, output_b, sum_b, strict=True)
    return torch.stack([(a * o + b * p) / (a + b) for o, a, p, b in rows])


def _by_lists(query: Tensor, key: Tensor, value: Tensor, machines: int) -> Tensor:
    """Machine by machine, with the blocks looked up by their numbers."""
    q, k, v = (x.chunk(machines) for x in (query, key, value))
    rows = []
    for me in range(machines):
        mine = attend_part(q[me], k[me], v[me])
        for turn in range(1, machines):
            other = (me - turn) % machines
            mine = merge(mine, attend_part(q[me], k[other], v[other]))
        rows.append(mine.output)
    return torch.cat(rows)


def _the_other_way_round(query: Tensor, key: Tensor, value: Tensor, machines: int) -> Tensor:
    """Lists that are turned to the left, and a numerator and a denominator in place of parts."""
    q, k, v = (x.split(len(x) // machines) for x in (query, key, value))
    above, below = [0.0] * machines, [0.0] * machines
    for _ in range(machines):
        for me in range(machines):
            weights = (q[me] @ k[me].mT / query.shape[1] ** 0.5).exp()
            above[me] = above[me] + weights @ v[me]
            below[me] = below[me] + weights.sum(1, keepdim=True)
        k, v = k[1:] + k[:1], v[1:] + v[:1]
    return torch.cat([a / b for a, b in zip(above, below, strict=True)])


def _side_by_side(top: Tensor, total: Tensor, mixed: Tensor, scores: Tensor, value: Tensor) -> Any:
    """What was kept stands as a first column of the tile."""
    both = torch.cat([top, scores], dim=1)
    new = both.max(dim=1, keepdim=True).values
    old, weights = (both - new).exp().tensor_split([1], dim=1)
    return new, total * old + weights.sum(1)[:, None], torch.addmm(mixed * old, weights, value)


def _by_torch(x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, n_heads: int) -> Tensor:
    """One product for all three, and torch's own sharing."""
    width, cuts = w_query.shape[1] // n_heads, [w.shape[1] for w in (w_query, w_key, w_value)]
    tables = torch.cat([w_query, w_key, w_value], dim=1)
    q, k, v = (table.view(1, len(x), -1, width).transpose(1, 2) for table in (x @ tables).split(cuts, dim=1))
    made = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    return made.transpose(1, 2).reshape(len(x), -1)


def _rolled(query: Tensor, key: Tensor, value: Tensor, machines: int) -> Tensor:
    """All machines at once: a block each, as a batch; the keys move on by a block."""
    size = len(query) // machines
    q, k, v = (x.unflatten(0, (machines, size)) for x in (query, key, value))
    whole = attend_part(q, k, v)
    for turn in range(1, machines):
        whole = merge(whole, attend_part(q, k.roll(turn, 0), v.roll(turn, 0)))
    return whole.output.flatten(0, 1)


RIGHT = {
    "with_global": (
        _by_distance,
        _by_rows,
        lambda n, radius, n_global: torch.where(
            torch.minimum(torch.arange(n)[:, None], torch.arange(n)) < n_global, True, window(n, radius)
        ),
    ),
    "random_features": (
        _with_powers,
        _inside_the_exponent,
        lambda x, directions: (
            torch.exp((directions**2).sum(1) / 2 - torch.cdist(x / x.shape[1] ** 0.25, directions) ** 2 / 2)
            / math.sqrt(len(directions))
        ),
    ),
    "one_tile": (_side_by_side, asked._by_sums, _key_after_key),
    "with_shared_keys": (_by_torch, in_11b._head_by_head, _own_groups),
    "chosen_keys": (_by_rank, _row_by_row, in_11d._by_best_keys),
    "chosen_rows": (_rows_as_a_choice, _row_after_row, in_exercises._rows_by_best_keys),
    "index_score": (
        _head_after_head,
        in_11d._pair_by_pair,
        lambda query, key, weight: (
            torch.stack([torch.relu(one.matmul(key.transpose(1, 2))) for one in query.unbind(1)], -1)
            .mul(weight[:, :, None])
            .sum(-1)
        ),
    ),
    "merge_outputs": (
        _shares_by_division,
        _query_by_query,
        lambda output_a, sum_a, output_b, sum_b: torch.lerp(
            output_b, output_a, sum_a.div(sum_a + sum_b).unsqueeze(1)
        ),
        lambda output_a, sum_a, output_b, sum_b: torch.einsum(
            "pn,pnd->nd", torch.stack([sum_a, sum_b]).log().softmax(0), torch.stack([output_a, output_b])
        ),
    ),
    "in_a_ring": (_by_lists, _the_other_way_round, _rolled),
    "merge_two": (
        asked._by_library,
        _merged(),
        _merged(_by_exp(_log_add, divided=False), _log_by_exp(_finite)),
        lambda *given: list(asked._by_library(*given)),
    ),
    "one_pass": (_running(), _by_merges, _key_by_key),
    "grouped_query": (_grouped(), _by_index, _by_groups, in_exercises._head_by_head),
    "low_rank": (
        _low(),
        lambda query, key, value, E, F: attend(query, E @ key, F @ value).output,
        lambda query, key, value, E, F: torch.nn.functional.scaled_dot_product_attention(
            query, E @ key, F @ value
        ),
        lambda query, key, value, E, F: (
            (torch.einsum("nd,rm,md->nr", query, E, key) / key.shape[1] ** 0.5).softmax(1)
            @ torch.einsum("rn,nd->rd", F, value)
        ),
    ),
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
