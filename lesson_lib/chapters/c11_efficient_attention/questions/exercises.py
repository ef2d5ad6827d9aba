"""What of the chapter's exercises is code; their words are in exercises.md."""

import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from math import ceil
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw, Stage
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.questions import Code
from lesson_lib.checks.runner import Call, call
from lesson_lib.checks.several_results import Alike
from lesson_lib.checks.values import close, described, is_numpy
from lesson_lib.chosen import best_keys
from lesson_lib.device import to_device
from lesson_lib.efficient import LowRank, Partial, RandomFeatures, attend_tiles, merge
from lesson_lib.graphs import attend_edges
from lesson_lib.linear import attend_linear
from lesson_lib.masks import causal, window
from lesson_lib.measure import sensitivity
from lesson_lib.truncated import attend_window

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


Shares = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


Heads = Callable[[Tensor, int], Tensor]


Mix = Callable[[Tensor, Tensor], Tensor]


def _cache_of_groups_numbers(draw: random.Random) -> dict[str, Any]:
    layers, queries, keys = draw.choice((16, 24, 48)), draw.choice((16, 32, 64)), draw.choice((2, 4, 8))
    width, tokens = draw.choice((64, 128)), 1024 * draw.choice((16, 32, 64, 256))
    size = f"2 * {layers} * {keys} * {width} * {tokens} * 2 / 2**30"
    wrong_1 = f"{size} * ({queries} + 2 * {keys}) / (2 * {keys})"
    return locals()


def _ring_machines_numbers(draw: random.Random) -> dict[str, Any]:
    times, gib = draw.choice([1, 3, 5, 7, 9, 11]), draw.choice([4, 8, 16])
    d = draw.choice([1024, 2048, 4096])
    share = gib * 2**30 // (8 * 4 * d)  # tokens that fit into one machine, a power of two
    machines = times * draw.choice([2, 4, 8])
    tokens, room = machines * share, f"({gib} * 2**30)"
    size, whole = 4 * d, f"8 * {d} * 4 * {tokens}"
    power = f"{times} * 2^" if times > 1 else "2^"
    power += str((tokens // times).bit_length() - 1)
    wrong_1 = ceil(machines * 2**30 / 10**9)
    return locals()


def chosen_rows(scores, real, k):
    n, m = scores.shape
    own = torch.arange(m - n, m)[:, None]
    may = (torch.arange(m) <= own) & real
    scores = scores.masked_fill(~may, -torch.inf)
    best = scores.topk(min(k, m), -1).indices
    return torch.zeros_like(may).scatter(-1, best, True) & may


def _rows_by_best_keys(scores: Tensor, real: Tensor, k: int) -> Tensor:
    n, m = scores.shape
    return best_keys(scores, k, mask=causal(m, queries=n, device=scores.device) & real)


def _rows(scores: Any, k: int, real: list[int] | None = None) -> Case:
    scores = table(scores)
    real = [1] * scores.shape[1] if real is None else real
    return {"scores": scores, "real": table(real).bool(), "k": k}


def _any_rows(seed: int, n: int, m: int, k: int, padding: int = 0, draw: Draw = drawn) -> Case:
    """Scores without ties: a number's rank in its row; padding stands in front."""
    ranks = draw(seed, n, m).argsort(dim=-1, stable=True).argsort(-1).float()
    real = torch.arange(m, device="cpu") >= padding
    return {"scores": ranks - m + 0.5 + 2 * m * ~real, "real": real, "k": k}


def _more_rows(draw: Draw) -> list[Case]:
    return [_any_rows(1, 4, 9, 3, 2, draw), _any_rows(11, 6, 6, 2, 0, draw), _any_rows(21, 1, 7, 3, 3, draw)]


FOUR_ROWS = [[1.0, 9.0, 8.0, 7.0], [2.0, 3.0, 9.0, 8.0], [5.0, 1.0, 4.0, 9.0], [0.0, 3.0, 6.0, 2.0]]


CODE = {
    "chosen_rows": Code(
        solution=chosen_rows,
        cases=(
            lambda: [_rows(FOUR_ROWS, 2)],
            lambda: [_rows([[0.0, 3.0, 6.0, 2.0]], 2)],
            lambda: [_rows([[1.0, 2.0, 3.0, 4.0, 9.0], [5.0, 4.0, 3.0, 2.0, 1.0]], 2), _any_rows(3, 3, 7, 2)],
            lambda: [_rows([[9.0, 8.0, 1.0, 2.0]], 2, [0, 0, 1, 1]), _any_rows(5, 6, 6, 2, 2)],
            lambda: [_any_rows(7, 3, 5, 9, 1), _any_rows(9, 4, 11, 3, 3)],
        ),
        reference=_rows_by_best_keys,
        hidden=_more_rows,
    ),
    "cache_of_groups_2": Code(
        draw=_cache_of_groups_numbers,
    ),
    "merge_two": Code(
        kind=Two,
        solution=merge_two,
        cases=(
            lambda: [_parts([[4.0]], [LN_2], [[8.0]], [LN_6])],
            lambda: [
                _parts(drawn(1, 3, 2), drawn(2, 3), drawn(3, 3, 2), drawn(4, 3)),
                _parts(drawn(5, 3, 2), drawn(6, 3) - 2, drawn(7, 3, 2), drawn(8, 3) + 1),
            ],
            lambda: [_parts([[4.0], [1.0]], [200.0, 201.0], [[8.0], [3.0]], [200.0, 199.0])],
            lambda: [_parts([[4.0], [1.0]], [-200.0, 150.0], [[8.0], [3.0]], [200.0, -150.0])],
            lambda: [_parts([[4.0], [4.0]], [200.0, -200.0], [[8.0], [8.0]], [200.0, -200.0])],
            lambda: [_parts([[4.0], [0.0]], [LN_2, -INF], [[0.0], [0.0]], [-INF, -INF])],
        ),
        reference=_by_library,
        hidden=_more_merge_two,
        normalise=_side_by_side,
    ),
    "one_pass": Code(
        solution=one_pass,
        cases=(
            lambda: [_scored([[LN_3, 0.0]], [[4.0], [8.0]], 2)],
            lambda: [_scored([[LN_3, 0.0, 0.0, LN_3]], [[4.0], [8.0], [0.0], [16.0]], 2)],
            lambda: [_scored([[0.0, 0.0, LN_2, LN_4]], [[4.0], [8.0], [6.0], [2.0]], 2)],
            lambda: [
                {"scores": drawn(1, 3, 5, spread=2.0), "value": drawn(2, 5, 2), "tile": 2},
                {"scores": drawn(3, 2, 7, spread=2.0), "value": drawn(4, 7, 3), "tile": 3},
                {"scores": drawn(5, 2, 3), "value": drawn(6, 3, 2), "tile": 8},
            ],
            lambda: [_scored([[200.0, 201.0, 200.0]], [[4.0], [8.0], [2.0]], 1)],
            lambda: [
                _scored([[100.0, 101.0, -100.0]], [[4.0], [8.0], [2.0]], 2),
                _scored([[-100.0, -101.0, 100.0]], [[4.0], [8.0], [2.0]], 2),
                _scored([[100.0, -100.0, 101.0]], [[4.0], [8.0], [2.0]], 2),
            ],
            lambda: [_scored([[-200.0, -200.0, -200.0]], [[4.0], [8.0], [3.0]], 2)],
            lambda: [_scored([[-200.0, -200.0, -200.0], [200.0, 200.0, 200.0]], [[4.0], [8.0], [3.0]], 2)],
        ),
        reference=_whole_row,
        hidden=_more_one_pass,
        extra=_reads_all,
    ),
    "grouped_query": Code(
        solution=grouped_query,
        cases=(
            lambda: [_one_key(4, [2.0, 8.0])],
            lambda: [_one_key(6, [2.0, 8.0, 5.0]), _one_key(6, [2.0, 8.0])],
            lambda: [_group_case(1, 4, 2, 2, 5, 3, 2)],
            lambda: [
                _group_case(11, 3, 1, 2, 3, 3, 2),
                _group_case(21, 3, 3, 2, 3, 3, 2),
                _group_case(31, 4, 2, 3, 3, 3, 3),
                _group_case(41, 2, 2, 3, 3, 3, 3),
            ],
        ),
        reference=_head_by_head,
        hidden=_more_grouped_query,
    ),
    "low_rank": Code(
        solution=low_rank,
        cases=(
            lambda: [_hand()],
            lambda: [_mixed(1, 5, 2, 3, 2), _mixed(11, 7, 3, 5, 2)],
            lambda: [_mixed(21, 3, 3, 3, 3)],
        ),
        reference=lambda query, key, value, E, F: attend(query, E @ key, F @ value).output,
        hidden=_more_low_rank,
        extra=_grows_twice,
    ),
    "which_method": Code(
        picture=_methods_picture,
    ),
    "ring_machines_2": Code(
        draw=_ring_machines_numbers,
    ),
}
