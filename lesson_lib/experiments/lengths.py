"""What attention over speech costs: seconds and MiB over the seconds of a recording, with the whole table and
with a window.

A second of speech is 100 frames. One layer's heads without projections, (1, 8, n, 64), float32, one thread:

    table                   all pairs, and the weights are held in memory
    mask over the table     the same with the window for a mask, as one would write it first
    fused                   all pairs by torch's kernel, which never holds the table
    window                  `attend_window`: only the pairs within the radius

Both with a window look 15 frames, 150 ms, to each side, and give the same numbers. Seconds are processor
seconds (on a GPU: seconds by the clock, once it has finished), the median of a few calls; what is stored was
measured on the CPU, as MiB always are, and `experiments.devices` has a GPU's seconds. Each kind goes as far
as its recipe says, and its memory allows. `run` is a repeat of everything for each "seed"; nothing but the
machine differs between them, and MiB not even then.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lesson_lib import measure, require, summary
from lesson_lib.attention import attend
from lesson_lib.device import on, to_device
from lesson_lib.masks import window
from lesson_lib.truncated import attend_window

DEVICE = "cpu"  # the lessons read the stored seconds as those of a processor
RECIPE = {
    "frames_per_s": 100,
    "heads": 8,
    "d_k": 64,
    "radius": 15,
    "speech_s": [1, 2, 5, 10, 20, 40, 80, 160, 320, 640],
    "longest_s": {  # without and with backward
        "table": [80, 40],
        "mask over the table": [80, 40],
        "fused": [160, 80],
        "window": [640, 640],
    },
    "rounds": 3,
    "seeds": [0, 1, 2],
}
KINDS = tuple(RECIPE["longest_s"])


def layer(kind: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """That kind of attention: a function of queries, keys and values (*b, n, d) that gives the outputs.
    Raises ValueError for another kind."""
    require.one_of(KINDS, kind=kind)
    radius = RECIPE["radius"]
    if kind == "window":
        return lambda q, k, v: attend_window(q, k, v, radius)
    if kind == "mask over the table":
        return lambda q, k, v: attend(q, k, v, mask=window(q.shape[-2], radius, device=q.device)).output
    return lambda q, k, v: attend(q, k, v, weights=kind == "table").output


def seconds(kind: str, n: int, *, backward: bool = False, rounds: int = RECIPE["rounds"]) -> float:
    """Seconds of one pass over n frames, the median of `rounds` after one to warm up; `backward` adds the
    gradients of queries, keys and values.

    Raises ValueError for another kind, and where n or `rounds` is no whole number >= 1.
    """
    require.whole(rounds=rounds)
    return measure.seconds(_pass(kind, n, backward=backward), repeats=rounds)


@on("cpu")
def mib(kind: str, n: int, *, backward: bool = False) -> float:
    """MiB that a pass over n frames allocates on the CPU, at its peak, beyond its queries, keys and values.
    Deterministic.

    Raises ValueError for another kind, and where n is no whole number >= 1.
    """
    return measure.peak_mib(_pass(kind, n, backward=backward))


def table_mib(n: int, heads: int = RECIPE["heads"]) -> float:
    """MiB of one table of weights for n frames, computed: heads · n² numbers of 4 bytes.

    >>> table_mib(1000) == 8 * 1000**2 * 4 / 2**20
    True
    """
    require.whole(n=n, heads=heads)
    return heads * n * n * 4 / 2**20


def exponents(
    rows: Sequence[dict[str, Any]], of: str = "cpu_s", *, backward: bool = False
) -> dict[str, float]:
    """The power of n with which `of` ("cpu_s" or "mib") grows over the upper half of each kind's lengths:
    {kind: power}.

    Below, what a call costs at any length flattens the curve. Of several repeats, the median at each length.
    """
    powers = {}
    rows = [row for row in rows if row["backward"] == backward]
    for kind, points in summary.gathered(rows, "kind", "n", of).items():
        upper = sorted(points)[len(points) // 2 :]
        powers[kind] = measure.growth_exponent(upper, [statistics.median(points[n]) for n in upper])
    return powers


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each kind, length and direction of one repeat: {"kind", "seed", "speech_s", "n", "backward",
    "cpu_s", "mib"}."""
    rows = []
    for backward in (False, True):
        for speech_s in RECIPE["speech_s"]:
            n = speech_s * RECIPE["frames_per_s"]
            for kind, longest in RECIPE["longest_s"].items():
                if speech_s > longest[backward]:
                    continue
                row = {"kind": kind, "seed": seed, "speech_s": speech_s, "n": n, "backward": backward}
                cpu_s, peak = seconds(kind, n, backward=backward), mib(kind, n, backward=backward)
                rows.append({**row, "cpu_s": float(f"{cpu_s:.4g}"), "mib": float(f"{peak:.4g}")})
    return rows


def _pass(kind: str, n: int, *, backward: bool) -> Callable[[], None]:
    """One pass of the layer over noise, without gradients or with them."""
    require.whole(n=n)
    call, draws = layer(kind), torch.Generator("cpu").manual_seed(0)
    shape = (1, RECIPE["heads"], n, RECIPE["d_k"])
    q, k, v = (
        to_device(torch.randn(shape, generator=draws, device="cpu")).requires_grad_(backward)
        for _ in range(3)
    )

    def once() -> None:
        with torch.set_grad_enabled(backward):
            y = call(q, k, v)
            if backward:
                torch.autograd.grad(y, (q, k, v), torch.ones_like(y))

    return once
