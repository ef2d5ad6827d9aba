"""What part 11c asks: four predictions, and two functions that the learner writes."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice
from lesson_lib.efficient import attend_part, merge

PART = "11c_many_machines"

merged_of_two = Choice(
    name="merged_of_two",
    notebook=PART,
    title="Two machines, three keys",
    asked=(
        "Machine A says: output 17.5, sum of exponentials 4. Machine B says: output 40, sum 12. What is the"
        " output of attention to the keys of both?"
    ),
    options={
        "a": "28.75, the mean of both outputs",
        "b": "34.375",
        "c": "40, since B's scores are larger",
        "d": "nobody can say without the three scores",
    },
    answer="b",
    remember="(4 · 17.5 + 12 · 40) / 16: an output counts as much as the exponentials behind it",
    slips={
        "that would be right for equal sums; B's keys have three quarters of all exponentials": "a",
        "the softmax of all three gives A's keys a quarter; a sum three times as large is not all": "c",
        "output times sum is the numerator, the sum the denominator: the softmax has nothing else": "d",
    },
)


def merge_outputs(
    output_a: Float[Tensor, "n d"],
    sum_a: Float[Tensor, " n"],
    output_b: Float[Tensor, "n d"],
    sum_b: Float[Tensor, " n"],
) -> Float[Tensor, "n d"]:
    share_a = (sum_a / (sum_a + sum_b))[:, None]
    return share_a * output_a + (1 - share_a) * output_b


def _parts(*four: Any) -> Case:
    names = ("output_a", "sum_a", "output_b", "sum_b")
    return {name: x if isinstance(x, Tensor) else table(x) for name, x in zip(names, four, strict=True)}


def _queries(seed: int, n: int, d: int, draw: Draw = drawn) -> Case:
    a, b = draw(seed, n, d), draw(seed + 1, n, d)
    return _parts(a, draw(seed + 2, n).exp(), b, draw(seed + 3, n).exp())


def _numerators(output_a: Tensor, sum_a: Tensor, output_b: Tensor, sum_b: Tensor) -> Tensor:
    above = torch.einsum("nd,n->nd", output_a, sum_a) + torch.einsum("nd,n->nd", output_b, sum_b)
    return torch.einsum("nd,n->nd", above, 1 / (sum_a + sum_b))


def _more_outputs(draw: Draw) -> list[Case]:
    return [_queries(1, 5, 3, draw), _queries(5, 3, 7, draw)]


write_merge_outputs = Write(
    name="merge_outputs",
    notebook=PART,
    second=lambda n: seconds.MERGE_MANY,
    title="Put two answers together",
    stars=2,
    minutes=5,
    why="tiles, rings and split caches all rest on this one step",
    asked=(
        "n queries were answered by two machines with different keys: outputs (n, d), and of each query the"
        " sum of its exp(score), (n,). Give the outputs of attention to all keys"
    ),
    stages=(
        Stage(
            "one query: 17.5 with a sum of 4, and 40 with a sum of 12",
            lambda: [_parts([[17.5]], [4.0], [[40.0]], [12.0])],
            "(4 · 17.5 + 12 · 40) / 16.",
        ),
        Stage(
            "two queries with other sums",
            lambda: [_parts([[1.0], [1.0]], [1.0, 3.0], [[5.0], [5.0]], [3.0, 1.0])],
            "Each query has its own two sums: 4 and 2.",
        ),
        Stage(
            "outputs of three numbers",
            lambda: [_queries(11, 4, 3)],
            "A query's share is one number, and counts for all of its output's.",
        ),
        Stage(
            "as many queries as numbers in an output",
            lambda: [_queries(15, 3, 3)],
            "A share belongs to a row: (n,) beside (n, d) would be taken for a share of each column.",
        ),
        Stage(
            "a query that saw no key on machine B: sum 0",
            lambda: [_parts([[4.0]], [2.0], [[0.0]], [0.0])],
            "A's output stays as it is.",
        ),
    ),
    reference=_numerators,
    hints=(
        "What is an output times its sum? And what is the sum of both of these, divided by both sums?",
        "Which share of all exponentials does A have?",
        "The share is (n,), the output (n, d): what does [:, None] do?",
    ),
    solution=merge_outputs,
    hidden=_more_outputs,
    remember="an output counts as much as the exponentials behind it; the sums are added",
    slips={
        "that is the mean of both; whose keys have the larger sum counts more": (
            "(sum_a / (sum_a + sum_b))[:, None]",
            "0.5",
        ),
        "the shares are swapped: A's output counts as much as A's sum": ("(sum_a /", "(sum_b /"),
        "the numerators are right; divide them by the sum of both sums": (
            "(sum_a / (sum_a + sum_b))[:, None]",
            "sum_a[:, None]",
            "(1 - share_a)",
            "sum_b[:, None]",
        ),
        "the outputs are added up; each counts by its share, and the shares sum to 1": (
            "share_a * output_a + (1 - share_a) * output_b",
            "output_a + output_b",
        ),
        "a share belongs to a query, so to a row; yours goes along the columns: [:, None]": (
            "[:, None]",
            "",
        ),
        "one share for all queries does not do: each has its own two sums": (
            "(sum_a / (sum_a + sum_b))[:, None]",
            "sum_a.sum() / (sum_a + sum_b).sum()",
        ),
        "these are sums of exponentials already; no exp of them, and no softmax": (
            "sum_a / (sum_a + sum_b)",
            "torch.sigmoid(sum_a - sum_b)",
        ),
        "the larger sum does not take all: it counts in proportion": (
            "sum_a / (sum_a + sum_b)",
            "(sum_a > sum_b).float()",
        ),
        "you multiply by the sum of both; divide by it, so that the shares sum to 1": (
            "sum_a / (sum_a + sum_b)",
            "sum_a * (sum_a + sum_b)",
            "(1 - share_a)",
            "(sum_b * (sum_a + sum_b))[:, None]",
        ),
    },
)

hand_overs = Choice(
    name="hand_overs",
    notebook=PART,
    title="Once round",
    asked=(
        "Four machines. In one hand-over each gives its keys and values to the next. After how many has every"
        " query met every key?"
    ),
    options={"a": "2", "b": "3", "c": "4", "d": "12"},
    answer="b",
    remember="p machines, p - 1 hand-overs: the first block is there from the start",
    slips={
        "after two each machine has seen three blocks: its own, and two that came": "a",
        "with the fourth every block is home again: it would be met twice": "c",
        "twelve blocks are sent in all, four at the same time": "d",
    },
)


ALL_KEYS = (
    "the numbers are right, but one machine computes with all keys at once; none may hold more than its own"
    " block and the one that comes"
)


class _Products(TorchFunctionMode):
    """Notes whether a product of matrices, or torch's own attention, gets an axis of `m`."""

    def __init__(self, m: int) -> None:
        super().__init__()
        self.m, self.found = m, False

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(operation, "__name__", "").strip("_")
        given = [x for x in (*args, *(kwargs or {}).values()) if isinstance(x, Tensor)]
        if name in ("matmul", "mm", "bmm", "einsum", "scaled_dot_product_attention"):
            self.found = self.found or any(self.m in x.shape for x in given)
        return operation(*args, **(kwargs or {}))


def _holds_all(answer: Callable) -> str | None:
    m = 60
    q, k, v = (drawn(seed, m, 3) for seed in (1, 2, 3))
    with _Products(m) as watched:
        answer(q, k, v, 4)
    return ALL_KEYS if watched.found else None


def in_a_ring(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "n d"],
    value: Float[Tensor, "n d_v"],
    machines: int,
) -> Float[Tensor, "n d_v"]:
    q, k, v = (x.chunk(machines) for x in (query, key, value))
    have = [attend_part(*own) for own in zip(q, k, v, strict=True)]
    for _ in range(machines - 1):
        k, v = k[-1:] + k[:-1], v[-1:] + v[:-1]  # from each to the next
        came = [attend_part(*now) for now in zip(q, k, v, strict=True)]
        have = [merge(*two) for two in zip(have, came, strict=True)]
    return torch.cat([part.output for part in have])


def _ring(seed: int, n: int, d: int, d_v: int, machines: int, draw: Draw = drawn) -> Case:
    q, k = draw(seed, n, d), draw(seed + 1, n, d)
    return {"query": q, "key": k, "value": draw(seed + 2, n, d_v), "machines": machines}


def _two_tokens() -> Case:
    zeros = table([[0.0], [0.0]])
    return {"query": zeros, "key": zeros, "value": table([[10.0], [20.0]]), "machines": 2}


def _more_rings(draw: Draw) -> list[Case]:
    return [_ring(1, 12, 5, 3, 4, draw), _ring(4, 6, 2, 2, 3, draw), _ring(7, 5, 3, 2, 5, draw)]


def _whole(query: Tensor, key: Tensor, value: Tensor, machines: int) -> Tensor:
    return attend(query, key, value).output


write_in_a_ring = Write(
    name="in_a_ring",
    notebook=PART,
    second=lambda n: seconds.QUERIES_TRAVEL,
    title="Round the ring",
    stars=3,
    minutes=8,
    why="so are texts read that no machine can hold",
    asked=(
        "deal n tokens out to `machines`, in order (n is a multiple); queries stay, keys and values go from"
        " each machine to the next. Use attend_part and merge; outputs (n, d_v). From two machines on, no"
        " product with all keys"
    ),
    stages=(
        Stage(
            "two tokens on two machines, all scores 0",
            lambda: [_two_tokens()],
            "After one hand-over each has seen both values: 15 and 15.",
        ),
        Stage(
            "one machine",
            lambda: [_ring(21, 3, 2, 2, 1)],
            "No hand-over: it has all keys of its own.",
        ),
        Stage(
            "six tokens on three machines",
            lambda: [_ring(24, 6, 4, 2, 3)],
            "Two hand-overs: each block is met once.",
        ),
        Stage(
            "eight tokens on four machines",
            lambda: [_ring(27, 8, 2, 3, 4), _ring(30, 6, 3, 3, 2)],
            "Three hand-overs; the first tokens' outputs come first.",
        ),
    ),
    reference=_whole,
    extra=_holds_all,
    hints=(
        "What can a machine compute before anything is handed over?",
        "k[-1:] + k[:-1] of a tuple: which block does machine 0 have then? How often is that done?",
        "merge takes two parts: which one does a machine have, and which one came?",
    ),
    solution=in_a_ring,
    hidden=_more_rings,
    remember="queries stay, keys and values travel; what came is merged with what is there",
    slips={
        "with `machines` hand-overs each block is home again, and counts twice": (
            "range(machines - 1)",
            "range(machines)",
        ),
        "one hand-over is missing: each machine must meet all blocks": (
            "range(machines - 1)",
            "range(machines - 2)",
        ),
        "the values stay behind: a key's value has to travel with it": (
            "v[-1:] + v[:-1]  #",
            "v  #",
        ),
        "keys and values travel in opposite directions; a pair must stay together": (
            "v[-1:] + v[:-1]",
            "v[1:] + v[:1]",
        ),
        "the queries travel, too, and meet their own keys again and again; they stay": (
            "        came",
            "        q = q[-1:] + q[:-1]\n        came",
        ),
        "only the last block is left: merge what came with what is there": (
            "merge(*two) for two in zip(have, came, strict=True)",
            "new for new in came",
        ),
        "each machine meets its own keys alone, once or again and again: nothing is handed over": (
            "range(machines - 1)",
            "range(0)",
        ),
        "parts are merged, not averaged: their sums of exponentials differ": (
            "merge(*two) for two in zip(have, came, strict=True)",
            "type(a)((a.output + b.output) / 2, a.log_sum) for a, b in zip(have, came)",
        ),
        "you take the plain mean of all parts; merge them: a part counts by its sum of exponentials": (
            "merge(*two) for two in zip(have, came, strict=True)",
            "type(a)(a.output + b.output, a.log_sum) for a, b in zip(have, came)",
            "[part.output for",
            "[part.output / machines for",
        ),
        "the outputs stand in the wrong order: machine 0 has the first tokens": (
            "for part in have])",
            "for part in have[::-1]])",
        ),
        ALL_KEYS: (
            "have = [attend_part(*own)",
            "return torch.cat([attend_part(x, key, value).output for x in q])\n    have = [attend_part(*own)",
        ),
        **exchanged("q, k, v = (x.chunk"),
    },
)

smallest_ring = Choice(
    name="smallest_ring",
    notebook=PART,
    title="How many machines?",
    asked=(
        "Of each of its tokens a machine holds eight vectors of 512 numbers, 4 bytes each. A million tokens,"
        " 4 GiB free in each machine. How many machines are needed?"
    ),
    options={"a": "2", "b": "4", "c": "16", "d": "no number is enough"},
    answer="b",
    remember="16 KiB a token, 15.3 GiB in all: four machines of 4 GiB",
    slips={
        "own vectors and output are 7.6 GiB in all, the blocks as much again: each of two holds 7.6": "a",
        "that would do, and use a quarter of each: 16 KiB times a million tokens is 15.3 GiB": "c",
        "each holds its share of the tokens and visitors of that size: more machines, less in each": "d",
    },
)

billion_time = Choice(
    name="billion_time",
    notebook=PART,
    title="A billion tokens",
    asked=(
        "1,913 machines of 8 GiB can hold a billion tokens. One thread of ours, tile by tile, computes ten"
        " hours at a million, for one layer. How long do 1,913 such threads compute at a billion?"
    ),
    options={"a": "five hours", "b": "two days", "c": "months", "d": "a thousand years"},
    answer="c",
    remember="a thousand times the tokens is a million times the pairs, shared by 1,913",
    slips={
        "that is a thousand times the work; but every token meets a thousand times as many, too": "a",
        "reckon: 10 hours times 1,000,000, divided by 1,913, is 5,200 hours": "b",
        "that is one thread's time for all of it; 1,913 share the work": "d",
    },
)

ASKED = (
    merged_of_two,
    write_merge_outputs,
    hand_overs,
    write_in_a_ring,
    smallest_ring,
    billion_time,
)
