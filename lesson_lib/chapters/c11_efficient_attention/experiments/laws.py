"""What attention costs at any length: laws fitted to short sequences, checked on longer ones, and how many
machines a ring needs.

One layer's heads without projections, (1, 8, n, 64), float32, one thread, no gradients:

    table             all pairs, and the weights are held in memory: time and memory n²
    full              all pairs by torch's fused kernel: time n², memory n
    tiles             the same, tile by tile in torch: `efficient.attend_tiles`
    window            `attend_window`, 128 tokens to each side: time and memory n, as with all that follow
    linear            `attend_linear` with elu + 1
    low rank          `efficient.LowRank`, 256 mixtures of keys and of values
    random features   `attend_linear` with 256 of `efficient.RandomFeatures`

Seconds are processor seconds (on CUDA: seconds by the clock, once it has finished), the median of a few
calls. MiB are what a call allocates at its peak beyond queries, keys and values, and with them the layer's
own matrices: low rank's grow with n. A law has the parts that theory names (`DEGREES`). The last two lengths
of a kind are `held_out`, and say how well the law predicts; it is fitted to the three before them. Shorter
ones are drawn, not fitted: there single tiles, and tensors below 32 MiB that are cheaper to come by, bend the
curves. With them the laws predicted worse. `run` is a repeat of everything for each "seed"; nothing but the
machine differs between them, and MiB not even then.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lesson_lib import measure, require, summary
from lesson_lib.attention import attend
from lesson_lib.device import on, to_device
from lesson_lib.efficient import TILE, LowRank, RandomFeatures, attend_tiles
from lesson_lib.linear import attend_linear
from lesson_lib.truncated import attend_window

DEVICE = "cpu"  # the lessons read the stored seconds as those of a processor
RECIPE = {
    "heads": 8,
    "d_k": 64,
    "radius": 128,
    "rank": 256,
    "n_features": 256,
    "shortest": 256,  # each length is twice the one before
    "longest": {
        "table": 8192,
        "full": 16384,
        "tiles": 8192,
        "window": 65536,
        "linear": 131072,
        "low rank": 65536,
        "random features": 32768,
    },
    "held_out": 2,
    "rounds": 3,
    "seeds": [0, 1, 2],
}
KINDS = tuple(RECIPE["longest"])
DEGREES = {  # of n, in what each kind computes and in what it holds at once
    "cpu_s": {kind: 2 if kind in ("table", "full", "tiles") else 1 for kind in KINDS},
    "mib": {kind: 2 if kind == "table" else 1 for kind in KINDS},
}
FITTED = 3  # lengths, as many as a law has parts
NUMBER = 4  # bytes
MIB = 2**20


def layer(kind: str, n: int) -> tuple[Callable[[Tensor, Tensor, Tensor], Tensor], float]:
    """That kind of attention, for n tokens: a function of queries, keys and values that gives the outputs,
    and the MiB of its own matrices.

    Raises ValueError for another kind.
    """
    require.one_of(KINDS, kind=kind)
    if kind == "table":
        return lambda q, k, v: attend(q, k, v).output, 0.0
    if kind == "full":
        return lambda q, k, v: attend(q, k, v, weights=False).output, 0.0
    if kind == "tiles":
        return attend_tiles, 0.0
    if kind == "window":
        return lambda q, k, v: attend_window(q, k, v, RECIPE["radius"]), 0.0
    if kind == "linear":
        return attend_linear, 0.0
    if kind == "low rank":
        module = to_device(LowRank(n, RECIPE["rank"]))
        return module, _own_mib(module)
    features = to_device(RandomFeatures(RECIPE["d_k"], RECIPE["n_features"]))
    return lambda q, k, v: attend_linear(q, k, v, phi=features), _own_mib(features)


def lengths(kind: str) -> list[int]:
    """The lengths that are measured, shortest first; the last two are held out. Raises ValueError for another
    kind."""
    require.one_of(KINDS, kind=kind)
    count = round(math.log2(RECIPE["longest"][kind] / RECIPE["shortest"])) + 1
    return [RECIPE["shortest"] * 2**i for i in range(count)]


def seconds(kind: str, n: int, *, rounds: int = RECIPE["rounds"]) -> float:
    """Seconds of one pass over n tokens, the median of `rounds` after one to warm up.

    Raises ValueError for another kind, and where n or `rounds` is no whole number >= 1.
    """
    require.whole(rounds=rounds)
    return measure.seconds(_pass(kind, n)[0], repeats=rounds)


def mib(kind: str, n: int) -> float:
    """MiB that a pass over n tokens allocates at its peak, beyond queries, keys and values, and of the
    layer's matrices. On the CPU, so the same everywhere.

    Raises ValueError for another kind, and where n is no whole number >= 1.
    """
    with on("cpu"):
        call, own = _pass(kind, n)
        return measure.peak_mib(call) + own


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each kind and length of one repeat: {"kind", "seed", "n", "held_out", "cpu_s", "mib"}."""
    rows = []
    for kind in KINDS:
        sizes = lengths(kind)
        for n in sizes:
            held_out = n in sizes[-RECIPE["held_out"] :]
            cpu_s, peak = seconds(kind, n), mib(kind, n)
            row = {"kind": kind, "seed": seed, "n": n, "held_out": held_out}
            rows.append({**row, "cpu_s": float(f"{cpu_s:.4g}"), "mib": float(f"{peak:.5g}")})
    return rows


def points(
    rows: Sequence[Mapping[str, Any]], of: str = "cpu_s", *, held_out: bool | None = None
) -> dict[str, dict[int, float]]:
    """The measured points, the median of the repeats: {kind: {n: value}}; those held out, or not, or (None)
    all. `of` is "cpu_s" or "mib"."""
    require.one_of(DEGREES, of=of)
    wanted = [row for row in rows if held_out in (None, row["held_out"])]
    found = summary.gathered(wanted, "kind", "n", of)
    return {kind: {n: statistics.median(at[n]) for n in sorted(at)} for kind, at in found.items()}


def laws(rows: Sequence[Mapping[str, Any]], of: str = "cpu_s") -> dict[str, measure.Law]:
    """The law of each kind, fitted to the longest three lengths that are not held out: {kind: Law}. `of` is
    "cpu_s" or "mib"."""
    return {
        kind: measure.fit_law([*at][-FITTED:], [*at.values()][-FITTED:], degree=DEGREES[of][kind])
        for kind, at in points(rows, of, held_out=False).items()
    }


def checked(
    rows: Sequence[Mapping[str, Any]], of: str = "cpu_s"
) -> dict[str, dict[int, tuple[float, float]]]:
    """What the laws say of the lengths that they have not seen: {kind: {n: (predicted, measured)}}."""
    found = laws(rows, of)
    return {
        kind: {n: (found[kind].at(n), value) for n, value in at.items()}
        for kind, at in points(rows, of, held_out=True).items()
    }


def machine_laws(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[measure.Law, measure.Law]]:
    """What one machine needs for the whole of it: {kind: (law of seconds, law of MiB)}, MiB with queries,
    keys and values themselves."""
    inputs = 3 * tokens_mib(1) / 4
    seconds, mibs = laws(rows, "cpu_s"), laws(rows, "mib")
    return {
        kind: (
            seconds[kind],
            measure.Law(law.constant, law.linear + inputs, law.quadratic),
        )
        for kind, law in mibs.items()
    }


def tokens_mib(n: int, heads: int = RECIPE["heads"], width: int = RECIPE["d_k"]) -> float:
    """MiB of queries, keys, values and outputs of n tokens, computed: the least that one machine holds which
    has them all.

    >>> tokens_mib(1024)
    8.0
    """
    require.whole(n=n, heads=heads, width=width)
    return 4 * n * heads * width * NUMBER / MIB


def ring_mib(n: int, machines: int, heads: int = RECIPE["heads"], width: int = RECIPE["d_k"]) -> float:
    """MiB that a process of `attend_ring` holds at the peak of a pass without gradients over n tokens in all,
    computed; its own tokens included.

    In tensors as large as the queries of its own tokens, n / machines of them rounded up:

        queries, keys, values                                       3
        the block of keys and values that it computes with          2
        the block that comes meanwhile, from 2 machines on          2
        outputs                                                     1

    That is 8, and with 1 machine 6. A logarithm for each query and head is added, and what a tile takes,
    whatever n is: two tables of scores, and four times the tile's queries. Raises ValueError where a number
    is no whole number >= 1.
    """
    require.whole(n=n, machines=machines, heads=heads, width=width)
    own = math.ceil(n / machines)
    edge = min(own, TILE)
    other = min(own - edge, TILE)  # the tile before it, if there are two
    held = own * heads * ((8 if machines > 1 else 6) * width + 1)
    tile = heads * edge * (edge + other + 4 * width + 6)
    return (held + tile) * NUMBER / MIB


def machines_needed(
    n: int, memory_mib: int | float, heads: int = RECIPE["heads"], width: int = RECIPE["d_k"]
) -> int:
    """The smallest number of machines whose `ring_mib` is at most `memory_mib` each.

    Raises ValueError where even a machine for each token would not be enough, and for a memory that is no
    positive number.
    """
    require.number(above=0, memory_mib=memory_mib)
    require.whole(n=n)

    found = measure.smallest(lambda machines: ring_mib(n, machines, heads, width) <= memory_mib, most=n)
    if found is None:
        least = ring_mib(n, n, heads, width)
        raise ValueError(
            f"memory_mib must be at least {least:.3g}, which one token in each machine takes, got"
            f" {memory_mib:g}"
        )
    return found


def _pass(kind: str, n: int) -> tuple[Callable[[], None], float]:
    """One pass of the layer over noise, without gradients, and the MiB of the layer's matrices."""
    require.whole(n=n)
    call, own = layer(kind, n)
    draws, shape = torch.Generator("cpu").manual_seed(0), (1, RECIPE["heads"], n, RECIPE["d_k"])
    q, k, v = (to_device(torch.randn(shape, generator=draws, device="cpu")) for _ in range(3))

    def once() -> None:
        with torch.no_grad():
            call(q, k, v)

    return once, own


def _own_mib(module: nn.Module) -> float:
    return sum(x.numel() * x.element_size() for x in (*module.parameters(), *module.buffers())) / MIB
