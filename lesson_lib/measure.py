"""Measuring: processor seconds, memory at its peak, and how either grows."""

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from lesson_lib.device import device

os.environ.setdefault(
    "KINETO_LOG_LEVEL", "99"
)  # torch 2.13's profiler writes a line to stderr at each start and stop


def cpu_seconds(call: Callable[[], Any], *, repeats: int = 5) -> float:
    """Processor seconds of this process for one call: the median of `repeats`, after one call to warm up.

    Other programs on the machine do not count, so the number holds on a busy laptop. A GPU's work does not count either.
    Raises ValueError where `repeats` is less than 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be >= 1, got {repeats}")
    call()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def peak_mib(call: Callable[[], Any]) -> float:
    """MiB that torch allocates, at the peak, during one call, beyond what was there before. Deterministic.

    Read from the allocator: on the CPU from the profiler's memory events, on CUDA from its statistics.
    Source: torch.profiler, `profile_memory=True`.
    """
    gc.collect()
    if device().type == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True, acc_events=True) as profile:
        kept = call()
    del kept
    changes = [
        (event.start_ns(), event.nbytes())
        for event in profile.profiler.kineto_results.events()
        if event.name() == "[memory]" and event.device_type() == torch.autograd.DeviceType.CPU
    ]
    total = peak = 0
    for _, change in sorted(changes, key=lambda pair: pair[0]):
        total += change
        peak = max(peak, total)
    return peak / 2**20


def growth_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """p of the power law `value ~ size ** p`: the median slope over all pairs of points, on log scales.

    One outlier does not move it. Raises ValueError for fewer than two sizes, unequal lengths, or numbers that are not positive.
    Source: Theil-Sen estimator (Sen 1968).

    >>> round(growth_exponent([1, 2, 4, 8], [3, 12, 48, 192]), 6)
    2.0
    """
    if len(sizes) != len(values) or len(set(sizes)) < 2:
        raise ValueError(
            f"need one value per size and two different sizes, got {len(sizes)} sizes and {len(values)} values"
        )
    if min(*sizes, *values) <= 0:
        raise ValueError(
            f"sizes and values must be positive, got {list(sizes)} and {list(values)}; a power law has no zero"
        )
    points = [(math.log(x), math.log(y)) for x, y in zip(sizes, values, strict=True)]
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1 :] if a[0] != b[0]
    ]
    return statistics.median(slopes)
