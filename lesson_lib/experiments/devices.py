"""Seconds on a GPU beside those on the CPU: what the lessons measure live, once more on a GPU, and at lengths
that fill one.

    scores        lesson 02: attention with a score by products, and with an additive one, in pieces and at
                  once
    loop          lesson 03: self-attention pair by pair in Python, and as products
    layers        lesson 08: `costs.layer`, one sequence of width 64
    speech        lesson 09: `lengths.layer`, n frames, eight heads of width 64
    graph         chapter 10: `GraphAttention` along the edges of a graph of degree 10, and with its table
    next token    lesson 11: one more token behind n kept ones, with 8, 2 or 1 heads of keys

Float32, without gradients. On a GPU a call is timed by the clock until the GPU has finished, on the CPU in
processor seconds; the median of a few rounds after one to warm up. Every length is twice the one before. A
kind ends at its longest length, and before it where it no longer fits into memory or a call takes more than
`longest_call_s`, so that a lesson can measure all of a series on any GPU. `run` is a repeat of everything for
each "seed", on the GPU and on the CPU beside it; it needs a GPU.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lesson_lib import experiments, measure, require
from lesson_lib.attention import attend
from lesson_lib.device import device, on, to_device
from lesson_lib.experiments import costs, lengths
from lesson_lib.graphs import GraphAttention
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.masks import from_edges
from lesson_lib.scores import Additive, dot

DEVICE = "gpu"
RECIPE = {
    "scores": {"d": 64, "shortest": 64,
    "longest": {"dot": 2048, "additive, in pieces": 2048, "additive, at once": 2048}},
    "loop": {"d": 64, "shortest": 16, "longest": {"loop": 256, "product": 4096}},
    "layers": {
        "d": 64,
        "shortest": 64,
        "longest": {"convolution": 16384, "RNN": 4096, "LSTM": 4096, "attention alone": 16384,
        "self-attention": 16384},
    },
    "speech": {"shortest": 500, "longest": {"fused": 32000, "window": 64000}},
    "graph": {"degree": 10, "d": 16, "d_head": 8, "heads": 4, "shortest": 250,
    "longest": {"edges": 32000, "table": 4000}},
    "next token": {
        "d": 512,
        "heads": 8,
        "shortest": 1024,
        "longest": {"8 heads of keys": 65536, "2 heads of keys": 65536, "1 head of keys": 65536},
    },
    "longest_call_s": 0.5,
    "rounds": 3,
    "seeds": [0, 1],  # two repeats: the machine was lent for half an hour
}  # fmt: skip


class GpuTimings(NamedTuple):
    """GPU timings to draw beside a CPU curve, rows {"kind", "n", "seconds"}, and the note over them, or in
    their place where there are none."""

    rows: list[dict[str, Any]]
    label: str


def beside(series: str) -> GpuTimings:
    """The GPU's seconds for a lesson's figure: measured now where `device()` is a GPU, else the stored ones,
    else none and a label that says so.

    Raises ValueError for an unknown series.
    """
    _sizes(series)
    if device().type != "cpu":
        return GpuTimings(measured(series), f"{experiments.gpu_name()}, measured just now")
    if not experiments.stored_at("devices").exists():
        return GpuTimings([], "No GPU has been measured yet.")
    stored = experiments.results("devices")
    rows = [row for row in stored["rows"] if (row["series"], row["device"]) == (series, "gpu")]
    return GpuTimings(rows, f"{stored['gpu']}, {stored['date']}, not this machine")


def measured(series: str) -> list[dict[str, Any]]:
    """Rows {"series", "kind", "n", "device", "seconds"} of a series, measured now on the lessons' device,
    which is a "cpu" or a "gpu".

    Raises ValueError for an unknown series.
    """
    rows, where = [], "cpu" if device().type == "cpu" else "gpu"
    for kind, sizes in _sizes(series).items():
        for n in sizes:
            try:
                # a lesson's next random number is the same, whether a GPU was measured before it or not
                with torch.no_grad(), torch.random.fork_rng(devices=[]):
                    taken = measure.seconds(call(series, kind, n), repeats=RECIPE["rounds"])
            except torch.OutOfMemoryError:
                break
            rows.append(
                {"series": series, "kind": kind, "n": n, "device": where, "seconds": float(f"{taken:.4g}")}
            )
            if taken > RECIPE["longest_call_s"]:
                break
    return rows


def call(series: str, kind: str, n: int) -> Callable[[], Tensor]:
    """One call of that kind at length n, its layer and its numbers on the lessons' device; it gives its
    output.

    Raises ValueError for an unknown series, and for a kind that it has not.
    """
    require.one_of(_sizes(series), kind=kind)
    return MAKERS[series](kind, n)


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each series, kind and length of one repeat, on the GPU and on the CPU: {"series", "kind",
    "n", "device", "seconds", "seed"}.

    Raises RuntimeError where the lessons' device is no GPU.
    """
    if device().type == "cpu":
        raise RuntimeError(
            "the experiment 'devices' needs a GPU, and the lessons compute on the CPU here; run it on a"
            " machine with a GPU"
        )
    rows = [row for series in MAKERS for row in measured(series)]
    with on("cpu"):
        rows += [row for series in MAKERS for row in measured(series)]
    return [row | {"seed": seed} for row in rows]


def _sizes(series: str) -> dict[str, list[int]]:
    """The lengths of each kind of a series, shortest first."""
    require.one_of(MAKERS, series=series)
    shortest, longest = RECIPE[series]["shortest"], RECIPE[series]["longest"]
    return {
        kind: [shortest * 2**i for i in range((most // shortest).bit_length())]
        for kind, most in longest.items()
    }


def _noise(*shape: int) -> Tensor:
    """Noise, drawn on the CPU."""
    return to_device(torch.randn(shape, generator=torch.Generator("cpu").manual_seed(0), device="cpu"))


def _scores(kind: str, n: int) -> Callable[[], Tensor]:
    d = RECIPE["scores"]["d"]
    pieces = {"max_pairs": 10**9} if kind == "additive, at once" else {}
    score, x = dot if kind == "dot" else to_device(Additive(d, d, d, **pieces)), _noise(n, d)
    return lambda: attend(x, x, x, score=score).output


def _loop(kind: str, n: int) -> Callable[[], Tensor]:
    x = _noise(n, RECIPE["loop"]["d"])
    if kind == "product":
        return lambda: attend(x, x, x, score=dot).output
    return lambda: torch.cat([attend(q[None], x, x, score=_pair_by_pair).output for q in x])


def _pair_by_pair(query: Tensor, key: Tensor) -> Tensor:
    """Scores (n, m), each by a call of its own."""
    return torch.stack([torch.stack([torch.dot(q, k) for k in key]) for q in query])


def _layers(kind: str, n: int) -> Callable[[], Tensor]:
    d = RECIPE["layers"]["d"]
    layer, x = costs.layer(kind, d), _noise(1, n, d)
    return lambda: layer(x)


def _speech(kind: str, n: int) -> Callable[[], Tensor]:
    layer, x = lengths.layer(kind), _noise(3, 1, lengths.RECIPE["heads"], n, lengths.RECIPE["d_k"])
    return lambda: layer(*x)


def _graph(kind: str, n: int) -> Callable[[], Tensor]:
    recipe = RECIPE["graph"]
    degree, draws = recipe["degree"], torch.Generator("cpu").manual_seed(n)
    sources = torch.randint(n, (degree * n,), generator=draws, device="cpu")
    edges = torch.stack([sources, torch.arange(n, device="cpu").repeat(degree)])
    layer = to_device(GraphAttention(recipe["d"], recipe["d_head"], n_heads=recipe["heads"]))
    x = _noise(n, recipe["d"])
    if kind == "edges":
        along = to_device(edges)
        return lambda: layer(x, along).output
    mask = to_device(from_edges(edges, n))
    return lambda: layer.dense(x, mask).output


def _next_token(kind: str, n: int) -> Callable[[], Tensor]:
    recipe = RECIPE["next token"]
    d, heads, cache = recipe["d"], recipe["heads"], Cache()
    layer = to_device(MultiHeadAttention(d, heads, n_key_heads=int(kind.split()[0])))
    key, value = _noise(2, 1, layer.n_key_heads, n, d // heads)
    new = _noise(1, 1, d)

    def once() -> Tensor:
        cache.key, cache.value = key, value
        return layer(new, new, new, cache=cache, weights=False).output

    return once


MAKERS = {
    "scores": _scores,
    "loop": _loop,
    "layers": _layers,
    "speech": _speech,
    "graph": _graph,
    "next token": _next_token,
}
