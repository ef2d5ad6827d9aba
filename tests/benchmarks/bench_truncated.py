"""Window attention against lucidrains' local-attention and against all pairs, side by side; printed as
tables. Ratios are reported, not asserted."""

import pytest
import torch

from lesson_lib.attention import attend
from lesson_lib.masks import window
from lesson_lib.measure import growth_exponent, peak_mib
from lesson_lib.truncated import attend_window
from tests.benchmarks.bench_attend import alternate

BOTH = pytest.mark.parametrize("backward", [False, True], ids=["forward", "forward+backward"])
HEADS, D = 8, 64


def one_pass(form, *inputs, backward):
    """A call of the form on its inputs, without gradients or with them."""

    def call():
        with torch.set_grad_enabled(backward):
            y = form(*inputs)
            if backward:
                y.backward(torch.ones_like(y))

    return call


def in_turn(ours, theirs, inputs, *, backward, repeats=5):
    """What both take, and how far they differ: the cells of a row of `COLUMNS`."""
    mine, other = (one_pass(form, *inputs, backward=backward) for form in (ours, theirs))
    seconds = alternate(mine, other, repeats=repeats)
    peaks = peak_mib(mine), peak_mib(other)
    with torch.no_grad():
        difference = (ours(*inputs) - theirs(*inputs)).abs().max().item()
    return {
        "ours ms": f"{seconds[0] * 1e3:.1f}", "theirs ms": f"{seconds[1] * 1e3:.1f}",
        "time": f"{seconds[0] / seconds[1]:.2f}",
        "ours MiB": f"{peaks[0]:.1f}", "theirs MiB": f"{peaks[1]:.1f}", "peak": f"{peaks[0] / peaks[1]:.2f}",
        "largest difference": f"{difference:.0e}",
    }  # fmt: skip


@BOTH
@pytest.mark.parametrize("radius", [64, 256])
def test_against_local_attention(benchmark, table, radius, backward):
    """The goals: 0.4 of its time forward, 0.6 with backward, 0.7 of its peak."""
    from local_attention import LocalAttention

    n, x = 8192, tokens(8192, backward)
    theirs = LocalAttention(
        window_size=radius, causal=False, look_backward=1, look_forward=1, dropout=0.0,
        exact_windowsize=True, use_rotary_pos_emb=False, autopad=True,
    )  # fmt: skip
    cells = in_turn(lambda *qkv: attend_window(*qkv, radius), theirs, x, backward=backward)
    goals = {"goals": f"time {0.6 if backward else 0.4}, peak 0.7"}
    row = {"n": n, "radius": radius, "pass": words(backward), **cells, **goals}
    table("attend_window against local-attention's LocalAttention, (1, 8, n, 64)", row)
    report(benchmark, cells, lambda: attend_window(*x, radius))


@BOTH
@pytest.mark.parametrize("other", ["all pairs, fused", "mask over the table"])
def test_against_all_pairs(benchmark, table, other, backward):
    """The goal: 0.1 of dense attention's time at n = 4,096."""
    n, radius = 4096, 64
    x, mask = tokens(n, backward), window(n, radius)
    dense = {
        "all pairs, fused": lambda *qkv: attend(*qkv, weights=False).output,
        "mask over the table": lambda *qkv: attend(*qkv, mask=mask).output,
    }[other]
    cells = in_turn(lambda *qkv: attend_window(*qkv, radius), dense, x, backward=backward, repeats=3)
    if other == "all pairs, fused":
        cells["largest difference"] = "(other numbers)"
    row = {"n": n, "radius": radius, "pass": words(backward), "theirs": other, **cells, "goals": "time 0.1"}
    table("attend_window against dense attention, (1, 8, n, 64)", row)
    report(benchmark, cells, lambda: attend_window(*x, radius))


@BOTH
def test_how_it_grows(benchmark, table, backward):
    """The goals: time as n^1.0 (+-0.2), memory as n^1.0 (+-0.05), from 4,096 to 65,536; the longest, forward,
    below 2 GiB."""
    sizes, radius = [4096 * 2**i for i in range(5)], 64
    calls = [
        one_pass(lambda *qkv: attend_window(*qkv, radius), *tokens(n, backward), backward=backward)
        for n in sizes
    ]
    seconds, peaks = alternate(*calls, repeats=3), [peak_mib(call) for call in calls]
    for n, s, mib in zip(sizes, seconds, peaks, strict=True):
        row = {"n": n, "radius": radius, "pass": words(backward), "ms": f"{s * 1e3:.1f}", "MiB": f"{mib:.1f}"}
        table(
            "How attend_window grows, (1, 8, n, 64)",
            {**row, "8 tables of n x n, GiB": f"{HEADS * n * n * 4 / 2**30:.1f}"},
        )
    powers = {
        "time": round(growth_exponent(sizes, seconds), 2),
        "memory": round(growth_exponent(sizes, peaks), 3),
    }
    table(
        "... as n to the power of",
        {"pass": words(backward), **powers, "goals": "time 1.0 +- 0.2, memory 1.0 +- 0.05"},
    )
    report(benchmark, powers, calls[0])


def tokens(n, backward):
    """Queries, keys and values of eight heads."""
    return [torch.randn(1, HEADS, n, D, requires_grad=backward) for _ in range(3)]


def words(backward):
    return "forward+backward" if backward else "forward"


def report(benchmark, cells, call):
    """The same cells for --benchmark-json."""
    benchmark.extra_info |= cells
    benchmark.pedantic(call, rounds=1)
