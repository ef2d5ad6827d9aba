"""Exercises of chapter 11, efficient attention: the same numbers for less memory, and other numbers for less
work.

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention import cheaper, exact_and_fast, many_machines, seconds
from lesson_lib.checks.alike import Alike
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Edit, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.runner import Call, call
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.checks.values import close, described, is_numpy
from lesson_lib.device import to_device
from lesson_lib.efficient import LowRank, Partial, RandomFeatures, attend_tiles, merge
from lesson_lib.graphs import attend_edges
from lesson_lib.linear import attend_linear
from lesson_lib.masks import window
from lesson_lib.measure import sensitivity
from lesson_lib.truncated import attend_window

cache = Number(
    name="cache_of_groups",
    second=lambda n: seconds.cache_of_groups(cache, n),
    title="What a long conversation keeps",
    stars=1,
    minutes=4,
    why=(
        "at generation this cache, not the model, fills the memory; it decides how many people can talk to"
        " one machine"
    ),
    asked=(
        "a cache of keys and values: 32 layers; 32 query heads that share 8 key heads, each 128 numbers wide,"
        " values as well; 131,072 tokens; 2 bytes a number: how many GiB?"
    ),
    value=16,
    hints=(
        (
            "What is kept of a token that was read: its query, its key, its value? Which of them are asked"
            " for again?"
        ),
        (
            "How many numbers is that for one token in one layer: how many heads, how wide, and of what two"
            " things?"
        ),
        "Times the layers, times the tokens, times the bytes of a number. How many bytes has a GiB?",
    ),
    solution=(
        "a token leaves 2 (key and value) * 8 heads * 128 = 2,048 numbers in each of 32 layers: 65,536"
        " numbers, 128 KiB. Times 131,072 tokens that is 2^34 bytes, 16 GiB. With a key head for each query"
        " head it would be 64 GiB, with one for all 2 GiB."
    ),
    remember=(
        "cache = 2 x layers x KEY heads x width x tokens x bytes: queries are not kept, so fewer key heads"
        " make it smaller, and nothing else has to change"
    ),
    slips={
        "32 query heads share 8 heads of keys and values: only those 8 are kept": (
            "2 * 32 * 32 * 128 * 131072 * 2 / 2**30"
        ),
        "half of it: keys AND values are kept, and a number has 2 bytes": "32 * 8 * 128 * 131072 * 2 / 2**30",
        "twice as much: a number has 2 bytes here; or did you count 32 heads, and of keys and values only one?": (
            "2 * 32 * 8 * 128 * 131072 * 4 / 2**30"
        ),
        "that is in GB, units of 10^9 bytes; a GiB is 2^30 = 1.074e9 bytes": (
            "2 * 32 * 8 * 128 * 131072 * 2 / 10**9"
        ),
        "that is one layer; each of the 32 has a cache of its own": "2 * 8 * 128 * 131072 * 2 / 2**30",
        "you counted one head of keys and values; there are 8, each 128 wide": (
            "2 * 32 * 128 * 131072 * 2 / 2**30"
        ),
        "that is one head of keys in one layer": "128 * 131072 * 2 / 2**30",
        "8 heads of keys and 32 of values; the values' heads are shared, too": (
            "32 * (8 + 32) * 128 * 131072 * 2 / 2**30"
        ),
        "queries are asked with once, and not kept: keys and values of 8 heads alone": (
            "32 * (32 + 8 + 8) * 128 * 131072 * 2 / 2**30"
        ),
        "that is in bits; a byte has 8 of them": "8 * 2 * 32 * 8 * 128 * 131072 * 2 / 2**30",
        "that is in bytes; a GiB is 2^30 of them": "2 * 32 * 8 * 128 * 131072 * 2",
        "that is in KiB; a GiB has 1,024^2 of them": "2 * 32 * 8 * 128 * 131072 * 2 / 2**10",
        "that is in MiB; a GiB has 1,024 of them": "2 * 32 * 8 * 128 * 131072 * 2 / 2**20",
        "these are numbers in units of 2^30 and keys alone; asked are bytes of keys and values": (
            "32 * 8 * 128 * 131072 / 2**30"
        ),
        "no table of all pairs is kept: a number for each token, not for each pair of tokens": (
            "32 * 32 * 131072**2 * 2 / 2**30"
        ),
        "that is one token; there are 131,072": "2 * 32 * 8 * 128 * 2 / 2**30",
    },
    answer="2 * 32 * 8 * 128 * 131072 * 2 / 2**30",
)


INF = torch.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class Two(Alike):
    """A function that gives back two tensors, (n, d) and (n,); they are judged side by side, the second as
    the last column."""

    def _trouble(self, outcome: Call, expected: Tensor, stage: Stage) -> str | None:
        value = outcome.value
        if isinstance(value, _One):
            shape = tuple(value.tensor.shape)
            return f"your function gives back one tensor, which has shape {shape}; {self._two(expected)}"
        odd = outcome.trouble or outcome.changed or value is None or value is ... or is_numpy(value)
        if not odd and not isinstance(value, Tensor):
            inside = ""
            if isinstance(value, (tuple, list)):
                inside = f" ({', '.join(described(part) for part in value[:3])})"
            return f"your function gives back {described(value)}{inside}; {self._two(expected)}"
        if isinstance(value, Tensor) and value.layout == torch.strided and value.device == expected.device:
            if value.shape != expected.shape:
                return (
                    f"your function gives back one tensor, which has shape {tuple(value.shape)};"
                    f" {self._two(expected)}"
                )
            if not value.is_complex():  # -inf is right where no key was seen
                empty = (value == -INF) & (expected == -INF)
                outcome = changed(outcome, value=value.masked_fill(empty, 0))
                expected = expected.masked_fill(empty, 0)
        return super()._trouble(outcome, expected, stage)

    def _recognised(self, answer: Callable, failing: Case, cases: list[Case]) -> str | None:
        """The slip; where none is the same in both results, one that has the same wrong outputs."""
        if slip := super()._recognised(answer, failing, cases):
            return slip
        right, given = self.expected(failing), call(answer, failing).value
        if not isinstance(given, Tensor) or given.shape != right.shape or given.dtype != right.dtype:
            return None
        if given.layout != torch.strided or given.device != right.device:
            return None
        if close(given[:, :-1], right[:, :-1], self.tolerance):
            return None
        for slip, wrong in self.slips.items():
            made = call(wrong, failing).value
            if isinstance(made, Tensor) and close(made[:, :-1], given[:, :-1], self.tolerance):
                return slip
        return None

    @staticmethod
    def _two(expected: Tensor) -> str:
        n, width = expected.shape
        return (
            f"asked for are two tensors, ({n}, {width - 1}) and ({n},), in this order: return output, log_sum"
        )


@dataclass
class _One:
    """One tensor where two are asked for, perhaps with the right numbers in it."""

    tensor: Tensor


def _side_by_side(two: Any, *inputs: Any) -> Any:
    """Outputs and log sums as one tensor, the log sums last; anything else as it is, one tensor alone marked
    as such."""
    if isinstance(two, Tensor):
        return _One(two)
    if not isinstance(two, (tuple, list)) or len(two) != 2:
        return two
    for x in two:
        if not isinstance(x, Tensor) or x.layout != torch.strided or x.device.type == "meta":
            return two
    output, log_sum = two
    if output.ndim != 2 or log_sum.shape != output.shape[:1] or output.device != log_sum.device:
        return two
    return torch.cat([output, log_sum[:, None]], 1)


def merge_two(
    output_a: Float[Tensor, "n d_v"],
    log_sum_a: Float[Tensor, " n"],
    output_b: Float[Tensor, "n d_v"],
    log_sum_b: Float[Tensor, " n"],
) -> tuple[Float[Tensor, "n d_v"], Float[Tensor, " n"]]:
    log_sum = torch.logaddexp(log_sum_a, log_sum_b)
    lowest = torch.finfo(log_sum.dtype).min  # in place of -inf: -inf - -inf is nan
    a = (log_sum_a - log_sum.clamp(min=lowest)).exp()
    b = (log_sum_b - log_sum.clamp(min=lowest)).exp()
    return a[:, None] * output_a + b[:, None] * output_b, log_sum


def _by_library(output_a: Tensor, log_sum_a: Tensor, output_b: Tensor, log_sum_b: Tensor) -> Partial:
    return merge(Partial(output_a, log_sum_a), Partial(output_b, log_sum_b))


def _parts(*four: Any) -> Case:
    names = ("output_a", "log_sum_a", "output_b", "log_sum_b")
    return {name: x if isinstance(x, Tensor) else table(x) for name, x in zip(names, four, strict=True)}


LN_2, LN_3, LN_4, LN_6 = 0.6931472, 1.0986123, 1.3862944, 1.7917595


def _more_merge_two(drawn: Draw) -> list[Case]:
    shapes = {
        "output_a": (7, 5),
        "log_sum_a": (7,),
        "output_b": (7, 5),
        "log_sum_b": (7,),
    }
    case = {name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return [case, {**case, "log_sum_b": case["log_sum_a"] + 150 * drawn(5, 7)}]


def _relative_to(base: str) -> Edit:
    """The edit that subtracts `base` from both log sums before exp, and adds it to the log of their sum."""
    shares = "- log_sum.clamp(min=lowest)).exp()\n"
    return (
        "log_sum = torch.logaddexp(log_sum_a, log_sum_b)",
        f"base = {base}",
        "lowest = torch.finfo(log_sum.dtype).min  # in place of -inf: -inf - -inf is nan",
        "total = (log_sum_a - base).exp() + (log_sum_b - base).exp()\n    log_sum = total.log() + base",
        f"{shares}    b",
        "- base).exp() / total\n    b",
        shares,
        "- base).exp() / total\n",
    )


two = Two(
    name="merge_two",
    title="Two halves of the keys",
    stars=2,
    minutes=8,
    why=(
        "tiles, rings of machines and split caches all rest on these five lines: attention to some keys and"
        " attention to the others, put together"
    ),
    asked=(
        "write: (output, log_sum) of the attention to the keys of both parts; log_sum is ln of a query's sum"
        " of exp(score), -inf where it saw no key: then its output is 0. Finite for log sums of 200, too."
        " (Shown side by side: log_sum is the last column)"
    ),
    stages=(
        Stage(
            "one query; its sums of exp are 2 and 6",
            lambda: [_parts([[4.0]], [LN_2], [[8.0]], [LN_6])],
            "b's keys weigh 6 of 8, so the output is (2*4 + 6*8) / 8 = 7, and the sum of both is 8: log_sum ="
            " ln 8 = 2.0794.",
        ),
        Stage(
            "three queries with two numbers each",
            lambda: [
                _parts(drawn(1, 3, 2), drawn(2, 3), drawn(3, 3, 2), drawn(4, 3)),
                _parts(drawn(5, 3, 2), drawn(6, 3) - 2, drawn(7, 3, 2), drawn(8, 3) + 1),
            ],
            "Each query has its own two sums: output = (S_a output_a + S_b output_b) / (S_a + S_b), with S ="
            " exp(log_sum).",
        ),
        Stage(
            "log sums of 200",
            lambda: [_parts([[4.0], [1.0]], [200.0, 201.0], [[8.0], [3.0]], [200.0, 199.0])],
            "exp(200) is more than float32 holds. Only the difference of the two counts: the first output is"
            " 6, its log_sum 200 + ln 2.",
        ),
        Stage(
            "one part far above the other",
            lambda: [_parts([[4.0], [1.0]], [-200.0, 150.0], [[8.0], [3.0]], [200.0, -150.0])],
            "The higher one takes all: outputs 8 and 1, log sums 200 and 150.",
        ),
        Stage(
            "one query at 200, one at -200",
            lambda: [_parts([[4.0], [4.0]], [200.0, -200.0], [[8.0], [8.0]], [200.0, -200.0])],
            "The maximum is each query's own: both outputs are 6.",
        ),
        Stage(
            "a query that saw no key in b, and one that saw none at all",
            lambda: [_parts([[4.0], [0.0]], [LN_2, -INF], [[0.0], [0.0]], [-INF, -INF])],
            "Nothing in b: the result is a's. Nothing in either: output 0 and log_sum -inf, no nan.",
        ),
    ),
    reference=_by_library,
    seen=_side_by_side,
    hints=(
        (
            "A part's output is its weighted sum divided by S, its sum of exp(score). How do you get the"
            " undivided sum back, and by what must both together be divided?"
        ),
        (
            "exp(200) overflows. By which number may S_a and S_b both be divided without changing the mix?"
            " What is that for log_sum_a and log_sum_b?"
        ),
        (
            "torch.logaddexp(a, b) is ln(exp a + exp b), safely. What is exp(log_sum_a - log_sum)? And how do"
            " you keep -inf - -inf from becoming nan?"
        ),
    ),
    solution=merge_two,
    remember=(
        "an output and its log sum are all that must be kept of keys that are gone: weigh each part by"
        " exp(log_sum_part - log_sum); exact, in any order"
    ),
    slips={
        "that is the plain mean of both outputs; the part whose keys have the larger sum of exp counts more": (
            "a[:, None]",
            "0.5",
            "b[:, None]",
            "0.5",
        ),
        "the log sums themselves are no weights: take exp of them, they are logarithms": (
            "a[:, None]",
            "(log_sum_a / (log_sum_a + log_sum_b))[:, None]",
            "+ b[:",
            "+ (log_sum_b / (log_sum_a + log_sum_b))[:",
        ),
        "the shares are swapped: each output counts as much as its OWN keys' sum": (
            "a[:, None]",
            "b[:, None]",
            "+ b[:",
            "+ a[:",
        ),
        "the outputs are only added up; each counts by its share, and the shares sum to 1": (
            "a[:, None] * ",
            "",
            "b[:, None] * ",
            "",
        ),
        "the division is missing: divide by the sum of both, so that the shares sum to 1": (
            "(log_sum_a - log_sum.clamp(min=lowest)).exp()",
            "log_sum_a.exp()",
            "(log_sum_b - log_sum.clamp(min=lowest)).exp()",
            "log_sum_b.exp()",
        ),
        "you subtract the maximum but do not divide: the shares must sum to 1": (
            "(log_sum_a - log_sum.clamp(min=lowest)).exp()",
            "(log_sum_a - torch.maximum(log_sum_a, log_sum_b)).exp()",
            "(log_sum_b - log_sum.clamp(min=lowest)).exp()",
            "(log_sum_b - torch.maximum(log_sum_a, log_sum_b)).exp()",
        ),
        "the output is right, but log_sum is still a's: the next merge would weigh this one too little": (
            ("output_b, log_sum", "output_b, log_sum_a")
        ),
        "the output is right, but log_sum is still b's: the next merge would weigh this one too little": (
            ("output_b, log_sum", "output_b, log_sum_b")
        ),
        "logarithms that are added multiply their sums: log_sum is ln(exp a + exp b)": (
            "output_b, log_sum",
            "output_b, log_sum_a + log_sum_b",
        ),
        "log_sum is the larger one of both; but both sums are added: ln(exp a + exp b) is more": (
            "output_b, log_sum",
            "output_b, torch.maximum(log_sum_a, log_sum_b)",
        ),
        "log_sum is the mean of both; but the sums are added: ln(exp a + exp b)": (
            "output_b, log_sum",
            "output_b, (log_sum_a + log_sum_b) / 2",
        ),
        "log_sum must be the logarithm of the sum, you give the sum itself": (
            "output_b, log_sum",
            "output_b, log_sum.exp()",
        ),
        "you subtracted the maximum, and must add it again to log_sum": (
            *_relative_to("torch.maximum(log_sum_a, log_sum_b)"),
            "total.log() + base",
            "total.log()",
        ),
        "exp(200) is inf, and inf/inf is nan: subtract the larger log sum of the two before exp": _relative_to(
            "0.0"
        ),
        "the output takes exp of 200, which is inf: subtract the larger log sum of the two before exp": (
            (
                "(log_sum_a - log_sum.clamp(min=lowest)).exp()",
                "log_sum_a.exp() / (log_sum_a.exp() + log_sum_b.exp())",
                "(log_sum_b - log_sum.clamp(min=lowest)).exp()",
                "log_sum_b.exp() / (log_sum_a.exp() + log_sum_b.exp())",
            )
        ),
        "you subtract a's log sum from both; where b's is larger by hundreds, exp overflows: subtract the larger one": _relative_to(
            "log_sum_a"
        ),
        "one maximum for all queries does not do: a query far below it gets exp = 0 twice, and 0/0 is nan": (
            _relative_to("torch.maximum(log_sum_a, log_sum_b).max()")
        ),
        "a query that saw no key at all: -inf - -inf is nan, in both results; bound the maximum from below, and give 0 and -inf": _relative_to(
            "torch.maximum(log_sum_a, log_sum_b)"
        ),
        "a query that saw no key at all: its log_sum is right, its output nan; -inf - -inf is nan, and 0 is right": (
            "log_sum_a - log_sum.clamp(min=lowest)",
            "log_sum_a - log_sum",
            "log_sum_b - log_sum.clamp(min=lowest)",
            "log_sum_b - log_sum",
        ),
    },
    hidden=_more_merge_two,
)


def one_pass(
    scores: Float[Tensor, "n m"], value: Float[Tensor, "m d_v"], tile: int
) -> Float[Tensor, "n d_v"]:
    top = scores.new_full((len(scores), 1), -torch.inf)  # the largest score so far
    total, mixed = 0.0, 0.0  # two sums, relative to it
    for start in range(0, len(value), tile):
        part = scores[:, start : start + tile]
        new = torch.maximum(top, part.amax(1, keepdim=True))
        shrink, weights = (top - new).exp(), (part - new).exp()
        total = total * shrink + weights.sum(1, keepdim=True)
        mixed = mixed * shrink + weights @ value[start : start + tile]
        top = new
    return mixed / total


TWICE = (
    "the numbers are right, but a tile is read again after a later one: one pass goes from left to right,"
    " once, and what it will need it keeps"
)


ALL_AT_ONCE = (
    "the numbers are right, but an operation reads or makes the numbers of ALL keys at once; take `tile` keys"
    " at a time, and keep only what the next tile needs"
)


class _Wide(TorchFunctionMode):
    """Notes whether anything is made that has an axis of `m`, or something reads a tensor with such an axis
    to reduce or multiply it; and whether a column of `scores` is read after a later one."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.m, self.found = scores.shape[1], False
        self.scores, self.back = scores.untyped_storage().data_ptr(), False
        self.column: dict[int, int] = {}  # the last one that was read, of what begins in that row

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = operation(*args, **(kwargs or {}))
        given = [x for x in args if isinstance(x, Tensor)]
        results = [x for x in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(x, Tensor)]
        name = getattr(operation, "__name__", "").strip("_")
        storages = {x.untyped_storage().data_ptr() for x in given}
        for x in results:
            fresh = x.is_floating_point() and x.untyped_storage().data_ptr() not in storages
            read = any(self.m in y.shape for y in given) and name in REDUCING
            self.found = self.found or (fresh and (read or self.m in x.shape))
            for y in given if fresh else ():
                if y.untyped_storage().data_ptr() == self.scores:
                    row, column = divmod(y.storage_offset(), self.m)
                    self.back = self.back or column < self.column.get(row, 0)
                    self.column[row] = column
        return made


REDUCING = frozenset(
    "max amax logsumexp sum mean matmul mm bmm softmax log_softmax aminmax norm topk sort cumsum".split()
)


def _reads_all(answer: Callable) -> str | None:
    m = 61
    scores, value = drawn(1, 3, m), drawn(2, m, 2)
    with _Wide(scores) as watched:
        answer(scores, value, 16)
    return ALL_AT_ONCE if watched.found else TWICE if watched.back else None


def _whole_row(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    return scores.softmax(1) @ value


def _scored(scores: Any, value: Any, tile: int) -> Case:
    return {"scores": table(scores), "value": table(value), "tile": tile}


def _more_one_pass(drawn: Draw) -> list[Case]:
    scores, value = 3 * drawn(1, 5, 13), drawn(2, 13, 3)
    return [{"scores": scores, "value": value, "tile": tile} for tile in (4, 1)]


running = Write(
    name="one_pass",
    title="A softmax that never sees its row",
    stars=2,
    minutes=10,
    why=(
        "these ten lines are the idea of FlashAttention: the exact softmax, read tile by tile, with nothing"
        " kept but two sums and a maximum"
    ),
    asked=(
        "write: softmax(scores) @ value, reading `tile` keys at a time from left to right (the last tile may"
        " be narrower); finite for scores of 200 and -200; no operation on all keys at once"
    ),
    stages=(
        Stage(
            "one query, two keys, one tile",
            lambda: [_scored([[LN_3, 0.0]], [[4.0], [8.0]], 2)],
            "exp makes 3 and 1 of the scores: (3*4 + 1*8) / 4 = 5.",
        ),
        Stage(
            "one query, four keys, two tiles; the maximum stays",
            lambda: [_scored([[LN_3, 0.0, 0.0, LN_3]], [[4.0], [8.0], [0.0], [16.0]], 2)],
            "The sums of both tiles are added up, and divided once, at the end: (12 + 8 + 0 + 48) / (3 + 1 +"
            " 1 + 3) = 8.5.",
        ),
        Stage(
            "the maximum rises in the second tile",
            lambda: [_scored([[0.0, 0.0, LN_2, LN_4]], [[4.0], [8.0], [6.0], [2.0]], 2)],
            "Both old sums are relative to the old maximum: times exp(old - new) they are relative to the new"
            " one. Here that is 1/4, and (4 + 8 + 12 + 8) / 8 = 4.",
        ),
        Stage(
            "three queries, five keys, tiles of two: the last has one key",
            lambda: [
                {"scores": drawn(1, 3, 5, spread=2.0), "value": drawn(2, 5, 2), "tile": 2},
                {"scores": drawn(3, 2, 7, spread=2.0), "value": drawn(4, 7, 3), "tile": 3},
                {"scores": drawn(5, 2, 3), "value": drawn(6, 3, 2), "tile": 8},
            ],
            "Every key counts, those of the last, narrower tile, too; each query has its own maximum and"
            " sums.",
        ),
        Stage(
            "scores of 200",
            lambda: [_scored([[200.0, 201.0, 200.0]], [[4.0], [8.0], [2.0]], 1)],
            "exp(200) is more than float32 holds: subtract the maximum so far before exp.",
        ),
        Stage(
            "scores that fall by 200, and rise by 200",
            lambda: [
                _scored([[100.0, 101.0, -100.0]], [[4.0], [8.0], [2.0]], 2),
                _scored([[-100.0, -101.0, 100.0]], [[4.0], [8.0], [2.0]], 2),
                _scored([[100.0, -100.0, 101.0]], [[4.0], [8.0], [2.0]], 2),
            ],
            "The maximum so far never falls; exp(old - new) is at most 1.",
        ),
        Stage(
            "scores of -200",
            lambda: [_scored([[-200.0, -200.0, -200.0]], [[4.0], [8.0], [3.0]], 2)],
            "Equal scores share the weight, however low they are: 5. Before the first tile there is no"
            " maximum: -inf.",
        ),
        Stage(
            "scores of -200 for one query, of 200 for the other",
            lambda: [_scored([[-200.0, -200.0, -200.0], [200.0, 200.0, 200.0]], [[4.0], [8.0], [3.0]], 2)],
            "The maximum is each query's own: 5 and 5.",
        ),
    ),
    reference=_whole_row,
    extra=_reads_all,
    hints=(
        "Without any maximum: which two sums, over all tiles, would you divide at the end?",
        (
            "Both sums hold exp(score - old maximum). By which one factor do you multiply them so that they"
            " hold exp(score - new maximum)?"
        ),
        (
            "For each tile: new = torch.maximum(top, part.amax(1, keepdim=True)). In which order come"
            " shrinking the old sums, adding the new terms, and top = new? With what does top begin?"
        ),
    ),
    solution=one_pass,
    remember=(
        "keep a maximum and two sums relative to it; when the maximum rises, shrink both by exp(old - new),"
        " and divide once, at the end: exact, and no row is ever held"
    ),
    slips={
        "the old sums are not shrunk: when the maximum rises, multiply both by exp(old - new) first": (
            ("total * shrink", "total", "mixed * shrink", "mixed")
        ),
        "the sum of weights is shrunk, the mixed values are not: multiply both by exp(old - new)": (
            "mixed * shrink",
            "mixed",
        ),
        "the mixed values are shrunk, the sum of weights is not: multiply both by exp(old - new)": (
            "total * shrink",
            "total",
        ),
        "your factor is turned round: exp(new - old) makes the old sums larger; exp(old - new) shrinks them": (
            "(top - new).exp()",
            "(new - top).exp() if start else 0.0",
        ),
        "each tile is divided by its own sum, and the tiles' outputs averaged; divide once, at the end, by the sum over all": (
            "total * shrink + weights.sum(1, keepdim=True)",
            "total + 1",
            "mixed * shrink + weights @",
            "mixed + part.softmax(1) @",
        ),
        "each tile is divided by its own sum, and the tiles' outputs added up; divide once, at the end, by the sum over all": (
            "mixed * shrink + weights @",
            "mixed + part.softmax(1) @",
            "mixed / total",
            "mixed",
        ),
        "only the first tile is read": ("return mixed", "    return mixed"),
        "only the last tile is left at the end: add to the sums, do not set them": (
            "total * shrink + ",
            "",
            "mixed * shrink + ",
            "",
        ),
        "the division is missing: divide by the sum of all weights at the end": ("mixed / total", "mixed"),
        "the last tile, with fewer keys, is left out: range(0, m, tile) reaches it, a slice may end early": (
            ("range(0, len(value), tile)", "range(0, max(len(value) - tile, 0) + 1, tile)")
        ),
        "no maximum is subtracted: exp(200) is inf, and inf/inf is nan": (
            "torch.maximum(top, part.amax(1, keepdim=True))",
            "torch.zeros_like(top)",
            "-torch.inf",
            "0.0",
        ),
        "your maximum is the last tile's alone: where it falls, exp(old - new) overflows; take the larger of the old and the tile's": (
            "torch.maximum(top, part.amax(1, keepdim=True))",
            "part.amax(1, keepdim=True)",
        ),
        "your maximum is the first tile's for good: where scores rise far above it, exp overflows; take the larger one in each tile": (
            "torch.maximum(top, part.amax(1, keepdim=True))",
            "top if start else part.amax(1, keepdim=True)",
        ),
        "your maximum begins at 0, so scores of -200 give exp(-200) = 0, and 0/0 is nan: begin at -inf": (
            ("-torch.inf", "0.0")
        ),
        "one maximum for all queries does not do: a query far below it gets exp = 0 everywhere, and 0/0 is nan": (
            "part.amax(1, keepdim=True)",
            "part.max()",
        ),
        "the scores are not used: all keys have one weight": ("part = scores", "part = 0 * scores"),
        "exp is missing: scores are shared out, and they may be negative": (
            "(part - new).exp()",
            "part",
            "total * shrink",
            "total",
            "mixed * shrink",
            "mixed",
        ),
        "your softmax runs over the queries, axis 0; each query shares its weight out over the keys": (
            (
                "(part - new).exp()",
                "part.softmax(0)",
                "total * shrink",
                "total",
                "mixed * shrink",
                "mixed",
                "mixed / total",
                "mixed",
            )
        ),
        ALL_AT_ONCE: ("for start", "tile = len(value)\n    for start"),
        "you multiply by the sum of all weights; divide by it at the end": ("mixed / total", "mixed * total"),
    },
    hidden=_more_one_pass,
)


def grouped_query(
    query: Float[Tensor, "h n d_k"],
    key: Float[Tensor, "g m d_k"],
    value: Float[Tensor, "g m d_v"],
) -> Float[Tensor, "h n d_v"]:
    shared = len(query) // len(key)  # query heads that share a head of keys
    key, value = (x.repeat_interleave(shared, 0) for x in (key, value))
    return attend(query, key, value, weights=False).output


def _head_by_head(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    shared = len(query) // len(key)
    outputs = [attend(q, key[i // shared], value[i // shared]).output for i, q in enumerate(query)]
    return torch.stack(outputs)


def _group_case(seed: int, h: int, g: int, n: int, m: int, d_k: int, d_v: int) -> Case:
    query, key = drawn(seed, h, n, d_k, spread=1.5), drawn(seed + 1, g, m, d_k, spread=1.5)
    return {"query": query, "key": key, "value": drawn(seed + 2, g, m, d_v)}


def _one_key(h: int, values: list[float]) -> Case:
    """One token of width 1: each head's output is its value."""
    g = len(values)
    return {"query": 0 * drawn(1, h, 1, 1), "key": drawn(2, g, 1, 1), "value": table(values)[:, None, None]}


def _more_grouped_query(drawn: Draw) -> list[Case]:
    shapes = {"query": (12, 3, 5), "key": (4, 7, 5), "value": (4, 7, 3)}
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


grouped = Write(
    name="grouped_query",
    title="Which heads share their keys?: a repair",
    stars=2,
    minutes=6,
    why=(
        "programs that load a published model have made this mistake: every shape is right, no error comes,"
        " and the text is nonsense"
    ),
    asked=(
        "repair: h query heads share g heads of keys and values in groups of NEIGHBOURS: with h = 4, g = 2,"
        " query heads 0 and 1 look at key head 0, heads 2 and 3 at key head 1"
    ),
    repair=True,
    stages=(
        Stage(
            "four query heads, two key heads, one token with the values 2 and 8",
            lambda: [_one_key(4, [2.0, 8.0])],
            "With one key each head gets that key's value: heads 0 and 1 have 2, heads 2 and 3 have 8.",
        ),
        Stage(
            "six query heads, three key heads; then two",
            lambda: [_one_key(6, [2.0, 8.0, 5.0]), _one_key(6, [2.0, 8.0])],
            "h / g neighbours share: with three key heads, 0 0 1 1 2 2; with two, 0 0 0 1 1 1.",
        ),
        Stage(
            "four query heads of width 3, five tokens",
            lambda: [_group_case(1, 4, 2, 2, 5, 3, 2)],
            "Keys and values of one group belong together: both are handed out in the same order.",
        ),
        Stage(
            "one key head for all; as many as queries",
            lambda: [
                _group_case(11, 3, 1, 2, 3, 3, 2),
                _group_case(21, 3, 3, 2, 3, 3, 2),
                _group_case(31, 4, 2, 3, 3, 3, 3),
                _group_case(41, 2, 2, 3, 3, 3, 3),
            ],
            "With g = 1 all share (multi-query attention), with g = h nobody does: attention of lesson 04.",
        ),
    ),
    reference=_head_by_head,
    hints=(
        (
            "Four query heads, two key heads A and B. Write down which key head each query head should get."
            " What order does x.repeat(2, 1, 1) make?"
        ),
        (
            "repeat puts whole copies behind each other: A B A B. Which order is asked for, and which method"
            " repeats each entry on the spot?"
        ),
        "x.repeat_interleave(times, dim): what are `times` and `dim` here?",
    ),
    solution=grouped_query,
    remember=(
        "groups are neighbours: repeat_interleave, 0 0 1 1; `repeat` gives 0 1 0 1, whose shapes fit just as"
        " well. A wrong order of heads gives no error"
    ),
    slips={
        "this is still the function as it was given": (
            "key, value = (x.repeat_interleave(shared, 0) for x in (key, value))",
            "key, value = (x.repeat(shared, 1, 1) for x in (key, value))",
        ),
        "the keys are right, the values still go in turn, 0 1 0 1: both must be handed out alike": (
            "key, value = (x.repeat_interleave(shared, 0) for x in (key, value))",
            "key, value = key.repeat_interleave(shared, 0), value.repeat(shared, 1, 1)",
        ),
        "the values are right, the keys still go in turn, 0 1 0 1: both must be handed out alike": (
            "key, value = (x.repeat_interleave(shared, 0) for x in (key, value))",
            "key, value = key.repeat(shared, 1, 1), value.repeat_interleave(shared, 0)",
        ),
        "your key heads come in the opposite order: query head 0 belongs to key head 0": (
            "x.repeat",
            "x.flip(0).repeat",
        ),
        "all query heads look at key head 0; each group has its own": (
            "x.repeat_interleave(shared, 0)",
            "x[:1].repeat_interleave(len(query), 0)",
        ),
        "you take the mean over the key heads; each group has its own": (
            "x.repeat_interleave(shared, 0)",
            "x.mean(0, keepdim=True).repeat(len(query), 1, 1)",
        ),
        "now the queries go in turn, too, and so do your outputs: head 1's stands where head h/g's should": (
            (
                "x.repeat_interleave(shared, 0)",
                "x.repeat(shared, 1, 1)",
                "return attend",
                "query = query.unflatten(0, (-1, shared)).transpose(0, 1).flatten(0, 1)\n    return attend",
            )
        ),
        "the keys still have g heads, the queries h: repeat the heads, axis 0, and not the tokens": (
            "(shared, 0)",
            "(shared, 1)",
        ),
        "each key head is repeated g times; it is asked h / g times": ("(shared, 0)", "(len(x), 0)"),
        "the key heads are cut off or padded with the last one: query head i takes key head i, while there is one; it should take i // (h / g)": (
            "x.repeat_interleave(shared, 0)",
            "torch.cat([x, *[x[-1:]] * (len(query) - len(x))])",
        ),
        "scores are summed over the query heads of a group, so g heads are left; each query head has its own": (
            "key, value = (x.repeat_interleave(shared, 0) for x in (key, value))",
            "query = query.unflatten(0, (len(key), shared)).sum(1)",
        ),
        "the mean is taken over the query heads of a group, so g heads are left; each query head has its own": (
            "key, value = (x.repeat_interleave(shared, 0) for x in (key, value))",
            "query = query.unflatten(0, (len(key), shared)).mean(1)",
        ),
        "scores are summed over a group, and its query heads share one row of weights; each query head has its own": (
            "    return attend",
            "    query = query.unflatten(0, (-1, shared)).sum(1).repeat_interleave(shared, 0)\n    return attend",
        ),
        "outputs are summed over the query heads of a group, so g heads are left; each query head keeps its own": (
            "weights=False).output",
            "weights=False).output.unflatten(0, (-1, shared)).sum(1)",
        ),
        "the heads are right; the scores must be divided by the root of d_k": (
            "attend(query,",
            "attend(query * query.shape[-1] ** 0.5,",
        ),
        **exchanged("shared = len(query)"),
    },
    hidden=_more_grouped_query,
)


def low_rank(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    E: Float[Tensor, "rank n"],
    F: Float[Tensor, "rank n"],
) -> Float[Tensor, "n d_v"]:
    keys, values = E @ key, F @ value  # `rank` mixtures of n tokens each
    scores = query @ keys.mT / query.shape[-1] ** 0.5  # (n, rank)
    return scores.softmax(-1) @ values


SAVES_NOTHING = (
    "the numbers are right, but there is a table (n, n): mix the keys first, E @ key, and every query meets"
    " only `rank` of them"
)


def _grows_twice(answer: Callable) -> str | None:
    """The sentence, where twice as many tokens take far more than twice the numbers, at one rank."""

    def work(n: int) -> int:
        x, mix = drawn(1, n, 3), drawn(2, 2, n)
        return numbers_made(lambda: answer(x, x, x, mix, mix))

    return SAVES_NOTHING if work(400) > 3 * work(200) else None


def _mixed(seed: int, n: int, rank: int, d_k: int, d_v: int) -> Case:
    made = {"query": (n, d_k), "key": (n, d_k), "value": (n, d_v), "E": (rank, n), "F": (rank, n)}
    return {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(made.items())}


def _hand() -> Case:
    """Three tokens, two mixtures; scores are 0, so each output is the mean of the mixtures of values."""
    return {
        "query": table([[0.0], [0.0], [LN_3]]),
        "key": table([[1.0], [2.0], [0.0]]),
        "value": table([[2.0], [4.0], [9.0]]),
        "E": table([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        "F": table([[0.0, 1.0, 0.0], [0.5, 0.5, 1.0]]),
    }


def _more_low_rank(drawn: Draw) -> list[Case]:
    shapes = {
        "query": (11, 5),
        "key": (11, 5),
        "value": (11, 3),
        "E": (4, 11),
        "F": (4, 11),
    }
    return [{name: drawn(i, *shape, spread=0.7) for i, (name, shape) in enumerate(shapes.items())}]


mixtures = Write(
    name="low_rank",
    title="Mixtures of keys",
    stars=2,
    minutes=6,
    why=(
        "four lines make the cost of attention grow with n instead of n²; what they give up is worth knowing"
        " as exactly"
    ),
    asked=(
        "write: attention of all n queries to `rank` mixtures of the keys, E @ key, and of the values, F @"
        " value; E and F have shape (rank, n); no table (n, n)"
    ),
    stages=(
        Stage(
            "three tokens of width 1, two mixtures",
            lambda: [_hand()],
            "E picks the keys 1 and 0, F makes the values 4 and 12. Queries of 0 look at both alike: 8. The"
            " last has scores ln 3 and 0: (3*4 + 1*12) / 4 = 6.",
        ),
        Stage(
            "five tokens of width 3, two mixtures",
            lambda: [_mixed(1, 5, 2, 3, 2), _mixed(11, 7, 3, 5, 2)],
            "The scores are those of attend, q . (E k) / sqrt(d_k), with `rank` columns; the softmax runs"
            " over the mixtures.",
        ),
        Stage(
            "as many mixtures as tokens, as wide as either",
            lambda: [_mixed(21, 3, 3, 3, 3)],
            "Where all sizes are equal no error tells what was exchanged: row r of E says how much of each"
            " token is in mixture r.",
        ),
    ),
    reference=lambda query, key, value, E, F: attend(query, E @ key, F @ value).output,
    extra=_grows_twice,
    hints=(
        (
            "E has shape (rank, n), the keys (n, d_k). What is the shape of E @ key, and what is one of its"
            " rows?"
        ),
        (
            "Each query still asks for itself. How many scores has it, and over which axis must they be"
            " shared out?"
        ),
        (
            "Take attention as you know it, softmax(q k^T / sqrt(d_k)) v. What stands in the place of k and"
            " of v, and does d_k change?"
        ),
    ),
    solution=low_rank,
    remember=(
        "attend(q, E k, F v): n queries, `rank` mixtures, so n x rank scores; the columns of E are places, so"
        " no sequence may be longer than the one it was learnt for"
    ),
    slips={
        "you mix the queries, too: then there are `rank` outputs; every token asks for itself": (
            "query @ keys",
            "E @ query @ keys",
        ),
        "you mix the queries instead of the keys; every token asks for itself, and it is the keys that become fewer": (
            "E @ key, ",
            "key, ",
            "query @ keys",
            "E @ query @ keys",
        ),
        "your E works along the width of a key, key @ E; mix the tokens: E @ key": (
            "E @ key, F @ value",
            "key @ E, value @ F",
        ),
        "you turned E round: row r of E says how much of each token is in mixture r, so E @ key without .mT": (
            "E @ key, F @ value",
            "E.mT @ key, F.mT @ value",
        ),
        "divide by the root of the width d_k, not of the rank": ("query.shape[-1]", "len(E)"),
        "divide by the root of the width d_k, not of n": ("query.shape[-1]", "len(key)"),
        "the division by sqrt(d_k) is missing": (" / query.shape[-1] ** 0.5", ""),
        "divide by sqrt(d_k), not by d_k": (" ** 0.5", ""),
        "your softmax runs over the queries; each query shares its weight out over the mixtures, dim=-1": (
            ("softmax(-1)", "softmax(-2)")
        ),
        "you make weights of E's and F's rows by a softmax; they mix as they are, E @ key and F @ value": (
            "E @ key, F @ value",
            "E.softmax(-1) @ key, F.softmax(-1) @ value",
        ),
        "you mix the values with E, too; theirs is F": ("F @ value", "E @ value"),
        "you mix the keys with F, too; theirs is E": ("E @ key", "F @ key"),
        "your E and F have changed places: E mixes the keys, F the values": (
            "E @ key, F @ value",
            "F @ key, E @ value",
        ),
        "the keys are mixed, the values are not: there are `rank` weights and n values": (
            "F @ value",
            "value",
        ),
        "the values are mixed, the keys are not: there are n weights and `rank` values": ("E @ key", "key"),
        "that is full attention; E and F are not used": ("E @ key, F @ value", "key, value"),
        "the weights are mixed behind the softmax: then a row need not sum to 1; mix the keys": (
            ("E @ key", "key", "softmax(-1)", "softmax(-1) @ E.mT")
        ),
        SAVES_NOTHING: ("query @ keys.mT", "query @ key.mT @ E.mT"),
        "softmax is missing: you mix the values with the raw scores": ("scores.softmax(-1)", "scores"),
        **exchanged("keys, values = E"),
    },
    hidden=_more_low_rank,
)


TOKENS, LONGER = 16, 24


QUESTIONS = ("exact", "causal", "longer", "told")


def what_they_can() -> dict[str, tuple[bool, bool, bool, bool]]:
    """The answers to QUESTIONS, found by running each method: on tokens drawn at random, on their gradients,
    on a longer input, by its parameters."""
    low, phi = to_device(LowRank(TOKENS, 5)), to_device(RandomFeatures(4, 8))

    def edges(x: Tensor, causal: bool) -> Tensor:
        linked = window(len(x), 2, device=x.device)
        linked = linked.tril() if causal else linked
        at = linked.nonzero().T.flip(0)
        return attend_edges(x[:, None], x[:, None], x[:, None], at).output[:, 0]

    methods: dict[str, tuple[Callable[[Tensor, bool], Tensor], Any]] = {
        "tiles": (lambda x, causal: attend_tiles(x, x, x, causal=causal, tile=5), attend_tiles),
        "window": (lambda x, causal: attend_window(x, x, x, 3, causal=causal), attend_window),
        "low rank": (lambda x, causal: low(x, x, x), low.forward),
        "random features": (lambda x, causal: attend_linear(x, x, x, causal=causal, phi=phi), attend_linear),
        "edges": (edges, attend_edges),
    }
    x, longer = to_device(drawn(1, TOKENS, 4)), to_device(drawn(2, LONGER, 4))

    def accepts(method: Callable[[Tensor, bool], Tensor]) -> bool:
        try:
            return len(method(longer, False)) == LONGER
        except ValueError:
            return False

    found = {}
    for name, (method, function) in methods.items():
        with torch.no_grad():
            exact = torch.allclose(method(x, False), attend(x, x, x).output, rtol=1e-4, atol=1e-5)
            longer_too = accepts(method)
        seen = sensitivity(lambda batch, method=method: method(batch[0], True)[None], x)
        causal = not seen.triu(1).any().item()
        found[name] = (exact, causal, longer_too, "edge_index" in inspect.signature(function).parameters)
    return found


def _methods_picture() -> Any:
    from lesson_lib import charts

    found = what_they_can()
    return charts.heatmap(
        torch.tensor(list(found.values()), dtype=torch.float32, device="cpu"),
        alt=(
            "A table of five methods and four questions; 1 is yes. Exact: tiles alone. Causal and longer: all"
            " but low rank. Must be told who: edges alone."
        ),
        caption=(
            f"1 = yes; each was run. Exact: the outputs of attend, on {TOKENS} random tokens. Causal: no"
            f" output depends on a later token. Longer: made for {TOKENS} tokens, run on {LONGER}. Told: it"
            " has an argument for who is connected."
        ),
        rows=list(found),
        columns=QUESTIONS,
        row_axis="method",
        column_axis="question",
        decimals=0,
        limits=(0.0, 1.0),
    )


which = Choice(
    name="which_method",
    title="Which method can do what? Predict the picture",
    stars=2,
    minutes=6,
    why="whoever picks a method by its cost alone finds out about its limits when the model is trained",
    asked=(
        "T tiles, W a window of radius 64, L low rank with E and F learnt, R random features, E attention"
        " along a list of edges; thousands of tokens. Which of them (1) give full attention's outputs to"
        " rounding, whatever the tokens; (2) can be made causal at the same price; (3) take a longer sequence"
        " than in training without new weights; (4) must be told who is connected?"
    ),
    options={
        "a": "(1) T, R; (2) T, W, R, E; (3) T, W, R, E; (4) E",
        "b": "(1) T; (2) T, W, L, R, E; (3) T, W, R, E; (4) E",
        "c": "(1) none; (2) T, W, R, E; (3) T, W, R, E; (4) E",
        "d": "(1) T; (2) T, W, R, E; (3) T, W, L, R, E; (4) E",
        "e": "(1) T; (2) T, W, R, E; (3) T, W, R, E; (4) E",
        "f": "(1) T; (2) T, W, E; (3) T, W, R, E; (4) E",
        "g": "(1) T; (2) T, W, R, E; (3) T, W, R, E; (4) W, E",
    },
    hints=(
        (
            "A running softmax leaves nothing out. What does each of the other four leave out, or draw at"
            " random?"
        ),
        (
            "In low rank every mixture holds every token, the last one too. What can a mask hide there? And"
            " which column of E would token n + 1 get?"
        ),
        (
            "Random features turn the sum over keys into a sum that runs from left to right. Where may that"
            " sum stop, for a query in the middle? And who tells a window which tokens are near?"
        ),
    ),
    solution=(
        "e: tiles compute the same numbers in another order. Random features are right on average over the"
        " draw, one draw is not. A causal low rank is impossible, since every mixture holds later tokens, and"
        " so is a longer one, since the columns of E and F are places. Random features are causal with a"
        " running sum, a window by a mask, edges by leading forwards only. Only edges come from outside; a"
        " window needs nothing but the places."
    ),
    remember=(
        "exact: tiles (and rings of them) alone. Low rank mixes all places into each key, so it is neither"
        " causal nor longer than it was trained; the others are"
    ),
    slips={
        "random features are right on average over many draws; a model has one draw, and its error stays": (
            "a"
        ),
        "each mixture of low rank holds all tokens, later ones too, and no mask can take them out again": "b",
        "tiles leave nothing out: the running softmax gives the same outputs, to rounding, for any tokens": (
            "c"
        ),
        "both E and F have a column for each place of the training; there is none for the tokens behind": "d",
        "random features can: the sum over keys runs from left to right, and each query reads it where it stands": (
            "f"
        ),
        "a window follows from the places alone; it is edges that someone has to know": "g",
    },
    answer="e",
    picture=_methods_picture,
)


machines = Number(
    name="ring_machines",
    second=lambda n: seconds.ring_machines(machines, n),
    title="How many machines for a million tokens?",
    stars=2,
    minutes=6,
    why="whether a sequence fits is a division that you can do before you rent anything",
    asked=(
        "a ring shares n = 2^20 tokens out; a machine holds for each of ITS tokens a query, a key, a value,"
        " an output, and two visiting blocks of keys and values, the one it works with and the one that"
        " comes: vectors of 512 numbers of 4 bytes. Each machine has 1 GiB free for that: how many machines?"
    ),
    value=16,
    hints=(
        (
            "How many vectors is that for one token: four of its own, and how many in two blocks of keys AND"
            " values?"
        ),
        (
            "How many bytes are 512 numbers? So how many KiB does a token take, and how many tokens fit into"
            " 1 GiB?"
        ),
        (
            "Every machine holds only its own share of the tokens, and blocks as large as that share. So by"
            " what do you divide 2^20?"
        ),
    ),
    solution=(
        "4 + 2 * 2 = 8 vectors of 2 KiB: 16 KiB a token. 1 GiB holds 2^30 / 2^14 = 65,536 tokens, and 2^20 /"
        " 65,536 = 16 machines. No table is anywhere: one of n^2 numbers would be 4,096 GiB."
    ),
    remember=(
        "in a ring memory falls as 1 / machines: bytes per token x tokens / bytes per machine. The work is"
        " still n²: the machines share that, too"
    ),
    slips={
        "the ring computes tile by tile: no table of n^2 numbers is ever held": "4 * 2**40 / 2**30",
        "that table of n^2 numbers is shared out by rows, but it is never held: a ring works tile by tile": (
            "2**20 / sqrt(2**28)"
        ),
        "the block that comes while this one is worked with takes room, too: two blocks, 8 vectors a token": (
            "(4 + 2) * 2048 * 2**20 / 2**30"
        ),
        "half of it: the two visiting blocks were forgotten, or a number has 4 bytes, not 2": (
            "4 * 2048 * 2**20 / 2**30"
        ),
        "a block holds keys AND values, so two blocks are 4 vectors a token, not 2; that makes 8 and not more": (
            "(4 + 8) * 2048 * 2**20 / 2**30"
        ),
        "three blocks are too many: its own keys and values, one that it works with, one that comes: 3 + 4 + the output = 8 vectors": (
            "(4 + 6) * 2048 * 2**20 / 2**30"
        ),
        "the output of a token is a vector, too: 8 in all": "7 * 2048 * 2**20 / 2**30",
        "that is in GB: 1 GiB is 2^30 bytes, and 2^20 tokens of 2^14 bytes are 2^34": (
            "8 * 2048 * 2**20 / 10**9"
        ),
        "with GB in place of GiB you get 17.2, rounded up 18: 1 GiB is 2^30 bytes": 18,
        "machines share the tokens out: one that holds all keys and values gains nothing from the others": 1,
        "that is how many tokens fit into one machine; how many machines share 2^20?": "2**30 / 2**14",
        "that is one vector a token; there are 8": "2048 * 2**20 / 2**30",
        "a million numbers of 4 bytes: but a token has 8 vectors of 512 numbers": "4 * 2**20 / 2**30",
        "a vector has 512 numbers of 4 bytes, so 2 KiB; you left the 4 bytes out": "8 * 512 * 2**20 / 2**30",
        "a number has 4 bytes, not 8": "8 * 512 * 8 * 2**20 / 2**30",
        "that is the number of KiB a token takes, times 1,024": "8 * 512 * 4",
    },
    answer="8 * 512 * 4 * 2**20 / 2**30",
)


leak = Open(
    name="leaky_mixtures",
    title="The future in every mixture. In your own words",
    stars=3,
    minutes=10,
    why="such a model has a wonderful loss in training and writes nonsense, and no test of shapes finds it",
    asked=(
        "in two to four sentences: a language model with low-rank layers, attend(q, E k, F v), n = 8 tokens,"
        " rank 3, a triangle of a mask over the table (8, 3). Token 5 is changed: which outputs change? Why"
        " can no mask over the mixtures mend it, and what would you take instead?"
    ),
    hints=(
        (
            "Mixture r is the sum over j of E[r, j] k_j. In how many of the 3 mixtures is token 5? And in how"
            " many outputs are those mixtures?"
        ),
        "Suppose a mask hides from token 2 whatever holds token 5. How many mixtures are left for it?",
        (
            "What must be true of the sum that token 2 sees? Which methods of this lesson add up in that"
            " order, or never mix tokens before they are hidden?"
        ),
    ),
    solution=(
        "All eight outputs change, those of tokens 0 to 4 as well: E and F sum over all places, so every"
        " mixture contains the key and the value of token 5. A mask can only hide a whole mixture, and there"
        " is none without the future in it; one that hides them all leaves nothing to look at. In training"
        " the model copies the next token from the mixtures, and at generation it is not there. Take a method"
        " that never mixes what comes later with what was earlier: tiles with a causal mask (exact), a causal"
        " window, or random features, whose running sum stops at the query."
    ),
    remember=(
        "what is mixed before it is hidden cannot be hidden: causal attention needs keys that are still"
        " apart, or sums that run from left to right"
    ),
    slips={
        "not only later outputs: token 5 is in every mixture, and every query looks at mixtures, token 0's too": (
            r"\bonly (?!hid|mask|remov|cover)(\w+ ){0,4}(5|6|7|five|after|later|behind|following)\b|"
            r"\b(outputs?|tokens?|output of token) (5|five)('s outputs?)?( to|,| and|-|–)"
            r" ?(6|7|six|seven|later|those (after|behind|that))"
        ),
        "column r of that table is a mixture and no place: a triangle over it hides whole mixtures, and each one still holds every token": (
            r"(triang\w+|causal|right|proper|correct|better) mask (would |does |will |that |which"
            r" )?(hides|hide|helps|help|fixes|fix|prevents?|blocks?|solves?|repairs?|mends?|suffices)|"
            r"\b(use|add|apply|need|take|put) (a |the )?(real |proper |better |right |correct"
            r" )?(causal|triangular) mask(?! (in|of|with|on|over) (\w+"
            r" ){0,3}(tile|window|full|exact|attend))(?=$|,| to| over| on| so| here)"
        ),
        "training does not teach it to look away: the next token in a mixture lowers the loss, so the model learns to use it": (
            r"(learns?|trained|training (\w+ ){0,3}(teach|make)\w*) (\w+ ){0,3}(ignore|look away|not"
            r" to|zeros?\b|avoid)"
        ),
        "the rank does not matter: with one mixture or with eight, each sums over all places": (
            r"(larger|higher|greater|bigger|smaller|lower|more|increase|raise|reduce) (\w+ ){0,2}rank"
        ),
        "it is no lack of data: with endless data the future is still in every mixture": (
            r"overfit|regulari[sz]|dropout|more data|more training"
        ),
        "positions do not matter here: that token 5 comes later is known, but its key is already in the sum": (
            r"position(al)? (encod|embed)\w*|rotary"
        ),
        "the leak is not small: a mixture hands the next token over, and the model reads it there": (
            r"(negligible|hardly|barely|slightly|a little|tiny|too small to)"
        ),
    },
    points=(
        "which of the eight outputs change?",
        "why does no mask help? What is in a mixture, and what can a mask hide?",
        "what would you take instead, that can be causal?",
    ),
)


Shares = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


Heads = Callable[[Tensor, int], Tensor]


Mix = Callable[[Tensor, Tensor], Tensor]


EXERCISES = (
    *cheaper.ASKED,
    *exact_and_fast.ASKED,
    *many_machines.ASKED,
    cache,
    two,
    running,
    grouped,
    mixtures,
    which,
    machines,
    leak,
)
