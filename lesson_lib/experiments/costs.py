"""What a layer costs: multiplications by formula and counted, seconds and memory measured, and how all of
them grow with n and d.

Real layers of width d on ONE sequence of n tokens, float32, one thread. Operations are exact, and counted on
the CPU, as MiB are measured there. Seconds are processor seconds (on a GPU: seconds by the clock, once it has
finished), each the median of several rounds in which all layers take turns, so that a busy moment hits all
alike; what is stored was measured on the CPU, and `experiments.devices` has a GPU's. `run` has a repeat of
the whole sweep per "seed"; nothing but the machine differs between them.

    convolution                 a kernel of 3, zeros beyond the ends
    RNN, GRU, LSTM              torch's own loops, with the products that bring the token in
    self-attention              one head with its four projections; torch's fused kernel
    attention alone             the same without projections: what the tables of the papers count
    attention with its table    the same numbers, but the table of n x n weights is held in memory
    linear attention            causal, without projections, in chunks

Source of the comparison: Vaswani et al. 2017, arXiv:1706.03762, table 1. It gives orders of growth, and the
attention without its projections; here every multiplication is counted, and both forms of attention.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lesson_lib import measure, require
from lesson_lib.attention import attend
from lesson_lib.device import on, to_device
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.linear import CHUNK, as_rnn, attend_linear, step
from lesson_lib.recurrent import KINDS as RECURRENT
from lesson_lib.recurrent import Recurrent

DEVICE = "cpu"  # the lessons read the stored seconds as those of a processor
RECIPE = {
    "over": {
        "n": {"sizes": [64, 128, 256, 512, 1024, 2048, 4096], "d": 64},
        "d": {"sizes": [16, 32, 64, 128, 256, 512], "n": 512},
    },
    "kernel": 3,
    "rounds": 7,
    "generation": {"n": 4096, "d": 64, "rounds": 3, "near": 16},
    "chunks": {"sizes": [1024, 4096], "heads": [1, 8], "d": 64, "rounds": 3},
    "threads": {"kinds": ["RNN", "LSTM", "self-attention"], "n": 512, "d": 256, "batches": [1, 32],
    "counts": [1, 2], "rounds": 7},
    "seeds": [0, 1, 2],
}  # fmt: skip


class Formula(NamedTuple):
    """What theory says of a layer: its multiplications, and the powers with which they grow in n and in d (of
    a sum, the larger)."""

    multiplications: str
    in_n: int
    in_d: int


THEORY = {
    "convolution": Formula("3 n d²", 1, 2),
    "RNN": Formula("2 n d²", 1, 2),
    "GRU": Formula("6 n d²", 1, 2),
    "LSTM": Formula("8 n d²", 1, 2),
    "self-attention": Formula("4 n d² + 2 n² d", 2, 2),
    "attention alone": Formula("2 n² d", 2, 1),
    "attention with its table": Formula("2 n² d", 2, 1),
    "linear attention": Formula("2 n d² + 129 n d", 1, 2),  # of whole chunks of 64
}
KINDS = tuple(THEORY)
TABLES = ("self-attention", "attention alone", "attention with its table")  # those that score n x n pairs


def layer(kind: str, d: int) -> Callable[[Tensor], Tensor]:
    """A layer of that kind and width, on the lessons' device: a function of tokens (b, n, d) that gives as
    many.

    Raises ValueError for another kind, and where d is no whole number >= 1.
    """
    _check(kind, d=d)
    if kind in RECURRENT:
        return to_device(Recurrent(kind, d, d))
    if kind == "convolution":
        k = RECIPE["kernel"]
        conv = to_device(nn.Conv1d(d, d, k, padding=k // 2))
        return lambda x: conv(x.mT).mT
    if kind == "self-attention":
        heads = to_device(MultiHeadAttention(d, 1))
        return lambda x: heads(x, x, x, weights=False).output
    if kind == "linear attention":
        return lambda x: attend_linear(x, x, x, causal=True)
    return lambda x: attend(x, x, x, weights=kind == "attention with its table").output


def formula(kind: str, n: int, d: int) -> int:
    """Multiplications of one forward pass over n tokens, by theory: what THEORY says in words, and for an n
    that leaves a chunk unfilled."""
    _check(kind, n=n, d=d)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}
    if kind in gates:
        return gates[kind] * 2 * n * d * d  # the token in, and the state on
    if kind == "convolution":
        return RECIPE["kernel"] * n * d * d
    if kind == "linear attention":
        chunk = min(CHUNK, n)
        rows = -(-n // chunk) * chunk
        table = 2 * rows * chunk * d  # within chunks: scores, then values
        states = 2 * rows * d * d + rows * d  # S is made of all tokens and read by all, z is read
        return table + states
    return 2 * n * n * d + (4 * n * d * d if kind == "self-attention" else 0)


@on("cpu")
def counted(kind: str, n: int, d: int) -> int:
    """Multiplications of one forward pass over n tokens, counted while the real layer runs on the CPU: equal
    to `formula`."""
    require.whole(n=n)
    call, x = layer(kind, d), _tokens(1, n, d)
    with torch.no_grad():
        return measure.operations(lambda: call(x))


def seconds(
    kinds: Sequence[str], n: int, d: int, *, backward: bool = False, rounds: int = RECIPE["rounds"]
) -> dict[str, float]:
    """Seconds of one pass of each layer over n tokens: the median of several rounds in which the layers take
    turns.

    `backward` adds the gradients of all parameters and of the tokens. Raises ValueError where `rounds` is
    less than 1.
    """
    return measure.seconds_in_turn(
        {kind: _pass(kind, n, d, backward=backward) for kind in kinds}, repeats=rounds
    )


@on("cpu")
def mib(kind: str, n: int, d: int, *, backward: bool = False) -> float:
    """MiB that a pass on the CPU allocates at its peak, beyond its tokens and parameters; with `backward`,
    the gradients too. Deterministic."""
    return measure.peak_mib(_pass(kind, n, d, backward=backward))


def sweep(
    over: str, kinds: Sequence[str] = KINDS, *, backward: bool = False, rounds: int = RECIPE["rounds"]
) -> list[dict[str, Any]]:
    """A row for each layer and size, over the recipe's sizes of "n" or "d": {"kind", "n", "d", "operations",
    "seconds"}.

    `operations` are those of `formula`, without the backward pass. Raises ValueError for another axis.
    """
    rows = []
    for n, d in _sizes(over):
        for kind, s in seconds(kinds, n, d, backward=backward, rounds=rounds).items():
            rows.append({"kind": kind, "n": n, "d": d, "operations": formula(kind, n, d), "seconds": s})
    return rows


def exponents(
    rows: Sequence[dict[str, Any]], over: str, of: str = "seconds"
) -> dict[str, tuple[float, float]]:
    """The powers with which `of` grows in rows of `sweep(over)`: {kind: (over all sizes, over the upper half
    of them)}.

    A call has costs that do not grow; over small sizes they flatten the curve, so the upper half is nearer to
    the theory.
    """
    powers = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        points = [(float(row[over]), float(row[of])) for row in rows if row["kind"] == kind]
        upper = points[len(points) // 2 :]
        powers[kind] = tuple(measure.growth_exponent(*zip(*some, strict=True)) for some in (points, upper))
    return powers


def crossing(sizes: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float | None:
    """The size from which `first` costs more than `second`, as far as it was measured; None where it never
    does.

    Read from straight lines between the points, on log scales; exact for power laws. The first of the sizes
    where it always does.
    Raises ValueError for lengths that differ, for sizes that do not rise, and for numbers that are not
    positive.

    >>> round(crossing([1, 4], [1, 16], [2, 8]), 6)
    2.0
    """
    if not len(sizes) == len(first) == len(second) or [*sizes] != sorted(set(sizes)) or not sizes:
        raise ValueError(
            f"need rising sizes and two values for each, got sizes {[*sizes]}, {len(first)} and {len(second)}"
            " values"
        )
    if min(*sizes, *first, *second) <= 0:
        raise ValueError("sizes and values must be positive; log scales have no zero")
    gaps = [math.log(a / b) for a, b in zip(first, second, strict=True)]
    below = [i for i, gap in enumerate(gaps) if gap <= 0]
    if not below:
        return float(sizes[0])
    i = below[-1]
    if i == len(gaps) - 1:
        return None
    share = -gaps[i] / (gaps[i + 1] - gaps[i])
    return math.exp((1 - share) * math.log(sizes[i]) + share * math.log(sizes[i + 1]))


def generation(n: int = RECIPE["generation"]["n"]) -> list[dict[str, Any]]:
    """A row for each system at tokens 1, 2, 4 ... n: {"system", "token", "seconds", "numbers"}, of taking up
    one token after the other.

    `numbers` is what the system must keep to go on: a state, or a cache of all keys and values. `seconds` is
    the least of the recipe's rounds for each token, then the median over the last few tokens up to this one.
    Raises ValueError where n is less than 1.
    """
    require.whole(n=n)
    recipe, tokens, rows = RECIPE["generation"], _tokens(n, 1, RECIPE["generation"]["d"]), []
    with torch.no_grad():
        for system, start in GENERATORS.items():
            taken: list[list[float]] = []
            for _ in range(recipe["rounds"]):
                take, count_numbers = start(recipe["d"])
                numbers, times = [], []
                for x in tokens:
                    begun = measure.clock()
                    take(x)
                    times.append(measure.clock() - begun)
                    numbers.append(count_numbers())
                taken.append(times)
            least = [min(times) for times in zip(*taken, strict=True)]
            for token in (2**i for i in range(n.bit_length())):
                near = least[max(0, token - recipe["near"]) : token]
                rows.append(
                    {
                        "system": system,
                        "token": token,
                        "seconds": statistics.median(near),
                        "numbers": numbers[token - 1],
                    }
                )
    return rows


def chunks(n: int, heads: int = 1) -> dict[str, float]:
    """Tokens per second of causal linear attention, forward and backward, in both forms: {"chunked",
    "loop"}."""
    require.whole(n=n, heads=heads)
    x = _tokens(heads, n, RECIPE["chunks"]["d"]).requires_grad_()

    def run(form: Callable[..., Tensor]) -> Callable[[], None]:
        def call() -> None:
            y = form(x, x, x)
            y.backward(torch.ones_like(y))

        return call

    forms = {"chunked": lambda q, k, v: attend_linear(q, k, v, causal=True), "loop": as_rnn}
    calls = {name: run(form) for name, form in forms.items()}
    taken = measure.seconds_in_turn(calls, repeats=RECIPE["chunks"]["rounds"])
    return {name: n / s for name, s in taken.items()}


def threads() -> list[dict[str, Any]]:
    """A row for each layer, batch and number of threads: {"kind", "batch", "threads", "seconds"}, by the
    clock, forward and backward.

    By the clock, since two threads share the work: the best of several rounds in which the numbers of threads
    take turns.
    """
    recipe, rows, before = RECIPE["threads"], [], torch.get_num_threads()
    for kind in recipe["kinds"]:
        for batch in recipe["batches"]:
            call = _pass(kind, recipe["n"], recipe["d"], backward=True, batch=batch)
            best = dict.fromkeys(recipe["counts"], float("inf"))
            try:
                for _ in range(recipe["rounds"]):
                    for count in best:
                        torch.set_num_threads(count)
                        call()  # wakes the threads, and is not measured
                        begun = time.perf_counter()
                        call()
                        best[count] = min(best[count], time.perf_counter() - begun)
            finally:
                torch.set_num_threads(before)
            rows += [{"kind": kind, "batch": batch, "threads": c, "seconds": s} for c, s in best.items()]
    return rows


def crossings(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """From which n on attention costs more than another layer, in rows of `sweep("n")`: {"kind", "other",
    "operations", "seconds"}.

    The last two are lengths, or None where attention stays cheaper to the end of what was measured.
    Operations are asked at every n: the length from which on they are as many or more, 1 where they always
    are. Seconds: see `crossing`.
    """
    kinds = dict.fromkeys(row["kind"] for row in rows)
    meetings = []
    for kind in (kind for kind in kinds if kind in TABLES):
        for other in (other for other in kinds if other not in TABLES):
            own, others = ([row for row in rows if row["kind"] == k] for k in (kind, other))
            sizes, d = [row["n"] for row in own], own[0]["d"]
            fewer = [n for n in range(1, sizes[-1] + 1) if formula(kind, n, d) < formula(other, n, d)]
            exact = 1 if not fewer else fewer[-1] + 1 if fewer[-1] < sizes[-1] else None
            meet = crossing(sizes, [row["seconds"] for row in own], [row["seconds"] for row in others])
            meetings.append({"kind": kind, "other": other, "operations": exact, "seconds": meet})
    return meetings


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each number of one repeat of everything; "part" says what it belongs to. The seed only tells
    the repeats apart.

    What is the same in every repeat, operations counted and MiB, is measured in the first alone.
    """
    rows: list[dict[str, Any]] = []
    for over in RECIPE["over"]:
        if seed == RECIPE["seeds"][0]:
            rows += _exact(over)
        for backward in (False, True):
            mode, measured = {"over": over, "backward": backward}, sweep(over, backward=backward)
            rows += [{"part": "sweep", **mode, **row} for row in measured]
            rows += _powers(measured, over, "seconds", mode)
            if over == "n":
                rows += [{"part": "crossing", **mode, **row} for row in crossings(measured)]
    rows += [{"part": "generation", **row} for row in generation()]
    for n in RECIPE["chunks"]["sizes"]:
        for heads in RECIPE["chunks"]["heads"]:
            rows.append({"part": "chunks", "n": n, "heads": heads, **chunks(n, heads)})
    rows += [{"part": "threads", **row} for row in threads()]
    return [{"seed": seed, **{key: _rounded(value) for key, value in row.items()}} for row in rows]


def _exact(over: str) -> list[dict[str, Any]]:
    """Operations counted and MiB of both passes, a row for each layer and size, and their exponents."""
    rows = [
        {
            "kind": kind, "n": n, "d": d, "operations": counted(kind, n, d),
            "mib": mib(kind, n, d), "mib_backward": mib(kind, n, d, backward=True),
        }
        for n, d in _sizes(over) for kind in KINDS
    ]  # fmt: skip
    powers = [
        row for of in ("operations", "mib", "mib_backward") for row in _powers(rows, over, of, {"over": over})
    ]
    return [{"part": "exact", "over": over, **row} for row in rows] + powers


def _powers(rows: list[dict[str, Any]], over: str, of: str, mode: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"part": "exponent", **mode, "of": of, "kind": kind, "all": whole, "upper": upper}
        for kind, (whole, upper) in exponents(rows, over, of).items()
    ]


def _sizes(over: str) -> list[tuple[int, int]]:
    """The recipe's (n, d) where one of the two grows."""
    require.one_of(RECIPE["over"], over=over)
    fixed = RECIPE["over"][over]
    return [(size, fixed["d"]) if over == "n" else (fixed["n"], size) for size in fixed["sizes"]]


def _rounded(value: Any) -> Any:
    """Four digits are more than a measurement has."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _tokens(b: int, n: int, d: int) -> Tensor:
    """Noise (b, n, d), drawn on the CPU."""
    return to_device(torch.randn(b, n, d, generator=torch.Generator("cpu").manual_seed(0), device="cpu"))


def _pass(kind: str, n: int, d: int, *, backward: bool, batch: int = 1) -> Callable[[], None]:
    """One pass of a new layer over its tokens, without gradients or with them."""
    _check(kind, n=n, d=d)
    call, x = layer(kind, d), _tokens(batch, n, d).requires_grad_(backward)

    def once() -> None:
        with torch.set_grad_enabled(backward):
            y = call(x)
            if backward:
                y.backward(torch.ones_like(y))

    return once


def _linear(d: int) -> tuple[Callable[[Tensor], Any], Callable[[], int]]:
    """Causal linear attention that carries its state; and how many numbers that is."""
    state = None

    def take(x: Tensor) -> None:
        nonlocal state
        _, state = step(x, x, x, state)

    return take, lambda: state.S.numel() + state.z.numel()


def _cached(d: int) -> tuple[Callable[[Tensor], Any], Callable[[], int]]:
    """Softmax attention whose newest token asks all keys so far."""
    cache = Cache()

    def take(x: Tensor) -> None:
        x = x[:, None]
        attend(x, *cache.append(x, x), weights=False)

    return take, lambda: cache.key.numel() + cache.value.numel()


def _lstm(d: int) -> tuple[Callable[[Tensor], Any], Callable[[], int]]:
    """An LSTM, with all of its weights."""
    cell, state = to_device(Recurrent("LSTM", d, d)), None

    def take(x: Tensor) -> None:
        nonlocal state
        state = cell.step(x, state)

    return take, lambda: state.hidden.numel() + state.cell.numel()


GENERATORS = {"linear attention": _linear, "softmax attention": _cached, "LSTM": _lstm}


def _check(kind: Any, **sizes: Any) -> None:
    require.whole(**sizes)
    require.one_of(KINDS, kind=kind)
