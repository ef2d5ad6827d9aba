"""What part 11b asks: four predictions, and two functions that the learner writes."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import seconds
from lesson_lib.checks.alike import Alike
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.runner import Call
from lesson_lib.checks.short import Choice, Number
from lesson_lib.checks.values import described, is_numpy

PART = "11b_exact_and_fast"
INF = torch.inf
LN_3, LN_4 = 1.0986123, 1.3862944

enough_to_keep = Choice(
    name="enough_to_keep",
    notebook=PART,
    title="What must be kept?",
    asked=(
        "Two scores and their values are gone; their output was 17.5. What must you have kept to mix in the"
        " third, ln 4 with the value 40, exactly?"
    ),
    options={
        "a": "the output 17.5 alone",
        "b": "the output, and the sum of the exponentials, 4",
        "c": "both scores and both values",
    },
    answer="b",
    remember="the sum says how much 17.5 counts: (4 · 17.5 + 4 · 40) / 8 = 28.75",
    slips={
        "how much does 17.5 count beside 40? Two scores of ln 1 give an output, too": "a",
        "all weights change, but only as the sum grows: 17.5 · 4 still holds both values, weighted": "c",
    },
)

twice_as_long = Choice(
    name="twice_as_long",
    notebook=PART,
    title="Twice the tokens",
    asked=(
        "Twice as many tokens: how much more memory does the table take, how much more do tiles take, and how"
        " many more multiplications do both make?"
    ),
    options={
        "a": "table 4 times, tiles at most 2 times; multiplications 4 times, both",
        "b": "table 4 times, tiles at most 2 times; multiplications 4 times, and 2 times",
        "c": "all of it 4 times",
    },
    answer="a",
    remember="a tile does not grow; there are four times as many",
    slips={
        "which product of a query and a key do tiles leave out?": "b",
        "every pair is compared; is every score still there when the next tile comes?": "c",
    },
)

cache_size = Number(
    name="cache_size",
    notebook=PART,
    title="What one conversation keeps",
    asked=(
        "32 layers of 32 heads; keys and values 128 wide; 2 bytes a number; 32,768 tokens. How many GiB (2^30"
        " bytes) are kept?"
    ),
    answer="2 * 32 * 32 * 128 * 2 * 32768 / 2^30",
    value=16,
    remember="512 KiB a token",
    slips={
        "keys AND values are kept, and a number has 2 bytes": "32 * 32 * 128 * 2 * 32768 / 2^30",
        "keys and values are two, and each number has 2 bytes: 2 · 2": "32 * 32 * 128 * 32768 / 2^30",
        "that is one layer; each of the 32 has its own": "2 * 32 * 128 * 2 * 32768 / 2^30",
        "that is in GB, units of 10^9 bytes": "2 * 32 * 32 * 128 * 2 * 32768 / 10^9",
        "that is in MiB: 1,024 of them are a GiB": "2 * 32 * 32 * 128 * 2 * 32768 / 2^20",
        "queries are asked with once, and not kept": "3 * 32 * 32 * 128 * 2 * 32768 / 2^30",
        "that is in bytes; a GiB has 2^30 of them": "2 * 32 * 32 * 128 * 2 * 32768",
    },
)

wrong_neighbours = Choice(
    name="wrong_neighbours",
    notebook=PART,
    title="repeat, or repeat_interleave?",
    asked=(
        "Somebody loads a trained model, 8 heads with 2 heads of keys, and writes repeat: 0 1 0 1 0 1 0 1 in"
        " place of 0 0 0 0 1 1 1 1. What will they see?"
    ),
    options={
        "a": "an error: the shapes do not fit",
        "b": "the same text",
        "c": "no error, other outputs",
    },
    answer="c",
    remember="shapes are right, and half of the heads meet another group's keys",
    slips={
        "2 heads four times are 8, in either order: which shape would be wrong?": "a",
        "query head 1 was trained to look at key head 0; which one does it meet?": "b",
    },
)


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


def one_tile(
    top: Float[Tensor, "n 1"],
    total: Float[Tensor, "n 1"],
    mixed: Float[Tensor, "n d_v"],
    scores: Float[Tensor, "n tile"],
    value: Float[Tensor, "tile d_v"],
) -> tuple[Float[Tensor, "n 1"], Float[Tensor, "n 1"], Float[Tensor, "n d_v"]]:
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


write_one_tile = Three(
    name="one_tile",
    notebook=PART,
    second=lambda n: seconds.LOG_SUM_OF_TILES,
    title="One tile more",
    stars=2,
    minutes=8,
    why="these few lines are the heart of FlashAttention",
    asked=(
        "kept of n queries: `top`, the largest score so far; `total`, the sum of exp(score - top); `mixed`,"
        " the sum of exp(score - top) times value. A tile comes: its scores and values. Return the three,"
        " brought up to date, as top, total, mixed. No output yet: nothing is divided"
    ),
    stages=(
        Stage(
            "two scores are in, the third comes: the largest rises from ln 3 to ln 4",
            lambda: [_tile([[LN_3]], [[4 / 3]], [[70 / 3]], [[LN_4]], [[40.0]])],
            "Both sums are relative to the old largest score: times 3/4 they are relative to the new one. So"
            " total is 1 + 1, mixed 17.5 + 40.",
        ),
        Stage(
            "the largest stays",
            lambda: [_tile([[LN_4]], [[1.0]], [[40.0]], [[LN_3, 0.0]], [[20.0], [10.0]])],
            "A lower score does not lower the largest: top stays ln 4, and total is 1 + 3/4 + 1/4.",
        ),
        Stage(
            "the first tile: nothing is kept yet, top is -inf",
            lambda: [_tile([[-INF]], [[0.0]], [[0.0]], [[LN_3, 0.0]], [[20.0], [10.0]])],
            "exp(-inf) is 0: what was kept counts nothing.",
        ),
        Stage(
            "three queries, tiles of four keys",
            lambda: [_any_tile(1, 3, 4, 2), _any_tile(21, 4, 2, 3)],
            "Each query, a row, has its own largest score and its own sums.",
        ),
        Stage(
            "scores of 200 and of -200",
            lambda: [
                _tile([[200.0], [-200.0]], [[1.0], [2.0]], [[4.0], [6.0]], [[201.0], [-200.0]], [[8.0]]),
                _tile([[-200.0]], [[1.0]], [[4.0]], [[200.0]], [[8.0]]),
            ],
            "exp(200) is more than float32 holds; subtract the larger of the old and the tile's largest.",
        ),
    ),
    reference=_by_sums,
    seen=_three,
    hints=(
        "Which is the largest score of each row now, the old one and the tile's considered?",
        "total holds exp(score - top). Which one factor makes exp(score - new) of it?",
        "In which order: the new largest, the factor, the tile's weights, then which two sums?",
    ),
    solution=one_tile,
    hidden=_more_tiles,
    remember="when the largest score rises, shrink both sums by exp(old - new)",
    slips={
        "the old sums are not shrunk: when the largest rises, multiply both by exp(old - new)": (
            "total * shrink", "total", "mixed * shrink", "mixed",
        ),
        "total is shrunk, mixed is not: both are relative to the old largest score": (
            "mixed * shrink", "mixed",
        ),
        "mixed is shrunk, total is not: both are relative to the old largest score": (
            "total * shrink", "total",
        ),
        "your factor is turned round: exp(old - new) is at most 1": (
            "(top - new).exp()", "(new - top).exp()",
        ),
        "the sums are right, but you return the old largest score": ("return new", "return top"),
        "the largest is the tile's alone: where it falls, exp(old - new) grows; take the larger of both": (
            "torch.maximum(top, scores.amax(1, keepdim=True))", "scores.amax(1, keepdim=True)",
        ),
        "the largest of all rows is taken; each query has its own: amax(1, keepdim=True)": (
            "scores.amax(1, keepdim=True)", "scores.max()",
        ),
        "the largest of each column is taken; a query is a row: amax(1, keepdim=True)": (
            "scores.amax(1, keepdim=True)", "scores.amax(0, keepdim=True)[:, :1]",
        ),
        "the tile's weights are relative to the old largest score; take the new one": (
            "(scores - new).exp()", "(scores - top).exp()",
        ),
        "the tile's weights are exp(score) without the largest subtracted": (
            "(scores - new).exp()", "scores.exp()",
        ),
        "the tile's weights are a softmax of their own; divide once, after the last tile": (
            "(scores - new).exp()", "scores.softmax(1)",
        ),
        "mixed is divided already; divide after the last tile": ("total, mixed", "total, mixed / total"),
        "what was kept is lost: add the tile's sums to it": (
            "total * shrink + ", "", "mixed * shrink + ", "",
        ),
    },
)  # fmt: skip


def with_shared_keys(
    x: Float[Tensor, "n d_model"],
    w_query: Float[Tensor, "d_model h_d"],
    w_key: Float[Tensor, "d_model g_d"],
    w_value: Float[Tensor, "d_model g_d"],
    n_heads: int,
) -> Float[Tensor, "n h_d"]:
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


write_with_shared_keys = Write(
    name="with_shared_keys",
    notebook=PART,
    second=lambda n: seconds.TOKENS_FIRST,
    title="Heads that share their keys",
    stars=2,
    minutes=8,
    why="so most of today's language models keep their caches small",
    asked=(
        "w_query makes `n_heads` heads of queries, w_key and w_value make fewer, all of the same width."
        " Neighbours share: with 4 and 2, query heads 0 and 1 look at key head 0, heads 2 and 3 at key head"
        " 1. Return the heads' outputs side by side, (n, n_heads * width)"
    ),
    stages=(
        Stage(
            "one token, four heads, values 2 and 8",
            lambda: [_one_token([2.0, 8.0], 4)],
            "With one key each head gets its group's value: 2 2 8 8.",
        ),
        Stage(
            "one token, six heads; values 2, 8 and 5",
            lambda: [_one_token([2.0, 8.0, 5.0], 6), _one_token([2.0, 8.0], 6)],
            "2 2 8 8 5 5; with two heads of keys 2 2 2 8 8 8.",
        ),
        Stage(
            "five tokens, four heads of width 3, two of keys",
            lambda: [_layer(1, 5, 7, (4, 2), 3)],
            "A token's row holds head beside head, each `width` numbers wide.",
        ),
        Stage(
            "as many heads of keys as of queries; one for all",
            lambda: [_layer(5, 5, 7, (3, 3), 2), _layer(9, 3, 5, (4, 1), 2)],
            "Nothing is special about these: shared is 1, or n_heads.",
        ),
    ),
    reference=_head_by_head,
    hints=(
        "x @ w_query is (n, n_heads * width). How do you make (n_heads, n, width) of it? How wide is a head?",
        "How many heads of keys come out of x @ w_key, if a head is as wide as a query's?",
        "Which call makes 0 0 1 1 of 0 1: repeat or repeat_interleave? And on which axis are the heads?",
    ),
    solution=with_shared_keys,
    hidden=_more_shared,
    remember="project to fewer heads, then repeat_interleave; only the fewer are kept",
    slips={
        "neighbours share: 0 0 1 1, not 0 1 0 1; take repeat_interleave": (
            "k.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)",
            "k.repeat(shared, 1, 1), v.repeat(shared, 1, 1)",
        ),
        "keys are handed out to neighbours, values are not: both in the same order": (
            "v.repeat_interleave(shared, 0)", "v.repeat(shared, 1, 1)",
        ),
        "values are handed out to neighbours, keys are not: both in the same order": (
            "k.repeat_interleave(shared, 0)", "k.repeat(shared, 1, 1)",
        ),
        "all heads look at key head 0; each group has its own": (
            "k.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)",
            "k[:1].repeat(n_heads, 1, 1), v[:1].repeat(n_heads, 1, 1)",
        ),
        "a head is `width` numbers side by side in a row: unflatten(1, (-1, width))": (
            "unflatten(1, (-1, width)).transpose(0, 1)", "unflatten(1, (width, -1)).permute(2, 0, 1)",
        ),
        "a reshape to (h, n, width) mixes tokens and heads: cut each row into heads, then swap the axes": (
            "table.unflatten(1, (-1, width)).transpose(0, 1)", "table.reshape(-1, len(x), width)",
        ),
        "heads and tokens have changed places: attend compares tokens where heads come first": (
            "unflatten(1, (-1, width)).transpose(0, 1)", "unflatten(1, (-1, width))",
        ),
        "the outputs are cut into rows while heads still come first: swap the axes back before you flatten": (
            ".output.transpose(0, 1).flatten(1)", ".output.reshape(len(x), -1)",
        ),
        "the values come from w_key": ("w_key, w_value)", "w_key, w_key)"),
        "the keys come from w_value": ("w_query, w_key, w_value)", "w_query, w_value, w_value)"),
        "you divide the scores by the root of all heads' width; each head has its own: the root of `width`": (
            "attend(q, k, v).output",
            "((q @ k.mT / w_query.shape[1] ** 0.5).softmax(-1) @ v)",
        ),
        "you hide later tokens; no causal mask is asked for, each token sees all of them": (
            "attend(q, k, v)",
            "attend(q, k, v, mask=torch.ones(len(x), len(x), dtype=torch.bool).tril())",
        ),
        "you divide the scores by the root of the number of heads; each has its own: the root of `width`": (
            "attend(q, k, v).output",
            "((q @ k.mT / n_heads**0.5).softmax(-1) @ v)",
        ),
        "the scores are not divided by the root of `width`": (
            "attend(q, k, v).output",
            "((q @ k.mT).softmax(-1) @ v)",
        ),
        "your softmax runs over the queries; each query shares its weight out over the keys": (
            "attend(q, k, v).output",
            "((q @ k.mT / width**0.5).softmax(-2) @ v)",
        ),
        "the query heads of a group are summed; each query head has scores and an output of its own": (
            "k, v = k.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)",
            "q = q.unflatten(0, (len(k), shared)).sum(1)",
        ),
        **exchanged("tables = (x @ w", "w_query w_key w_value", without="qkk qvv"),
        "the heads of keys come in the opposite order: query head 0 belongs to key head 0": (
            "k.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)",
            "k.flip(0).repeat_interleave(shared, 0), v.flip(0).repeat_interleave(shared, 0)",
        ),
    },
)  # fmt: skip

ASKED = (
    enough_to_keep,
    write_one_tile,
    twice_as_long,
    cache_size,
    write_with_shared_keys,
    wrong_neighbours,
)
