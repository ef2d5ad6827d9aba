"""Measuring: processor seconds, memory at its peak, operations, how they grow, and what depends on what, and
how strongly."""

import gc
import math
import os
import statistics
import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx
import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib import require
from lesson_lib.device import device

# torch 2.13's profiler writes a line to stderr at each start and stop
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def clock() -> float:
    """Processor seconds of this process; on a GPU seconds by the clock, after all that was begun is
    finished."""
    if device().type == "cpu":
        return time.process_time()
    torch.accelerator.synchronize()
    return time.perf_counter()


def seconds(call: Callable[[], Any], *, repeats: int = 3) -> float:
    """Seconds of one call by `clock`, so also on a GPU: the median of `repeats`, after one call to warm up.

    Raises ValueError where `repeats` is less than 1.
    """
    return seconds_in_turn({"": call}, repeats=repeats)[""]


def cpu_seconds(call: Callable[[], Any], *, repeats: int = 5) -> float:
    """Processor seconds of this process for one call: the median of `repeats`, after one call to warm up.

    Other programs on the machine do not count, so the number holds on a busy laptop. A GPU's work does not
    count either.
    Raises ValueError where `repeats` is less than 1.
    """
    return seconds_in_turn({"": call}, repeats=repeats, by=time.process_time)[""]


def seconds_in_turn(
    calls: Mapping[str, Callable[[], Any]], *, repeats: int, by: Callable[[], float] | None = None
) -> dict[str, float]:
    """Seconds of each call: one to warm up, then the median of rounds in which they take turns, so that all
    see the same machine.

    `by` is what tells the time, `clock` by default. Raises ValueError where `repeats` is less than 1.
    """
    require.whole(repeats=repeats)
    now = by or clock
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            begun = now()
            call()
            taken[name].append(now() - begun)
    return {name: statistics.median(times) for name, times in taken.items()}


def peak_mib(call: Callable[[], Any]) -> float:
    """MiB that torch allocates, at the peak, during one call, beyond what was there before. Deterministic on
    the CPU, where one thread computes: torch's fused kernel keeps a buffer for each of them.

    Read from the allocator of `device()`: on the CPU from the profiler's memory events, on a GPU from its
    statistics. There the kernels' own workspaces count as well (but what the first call leaves behind: there
    are two), and every tensor is rounded up. What a notebook prints is measured `with on("cpu")`.
    Source: torch.profiler, `profile_memory=True`; torch.accelerator.
    """
    gc.collect()
    if device().type != "cpu":
        gpu = torch.accelerator
        call()
        gpu.synchronize()
        before = gpu.memory_allocated()
        gpu.reset_peak_memory_stats()
        call()
        gpu.synchronize()
        return (gpu.max_memory_allocated() - before) / 2**20
    cpu, threads = [torch.profiler.ProfilerActivity.CPU], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.profiler.profile(activities=cpu, profile_memory=True, acc_events=True) as profile:
            kept = call()
    finally:
        torch.set_num_threads(threads)
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


def operations(call: Callable[[], Any]) -> int:
    """Multiplications, each with its addition, of all matrix products and convolutions in one call; exact,
    whatever the machine does.

    Read from what torch really runs, its FLOP counter halved. What is done number by number (softmax,
    sigmoid, sums) is left out.
    Source: torch.utils.flop_counter.
    """
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    def fused(query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return sdpa_flop_count(query, key, value)

    unknown = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: fused}  # the counter knows CUDA's
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),  # of a GPU that is not asked for
        torch.backends.mkldnn.flags(enabled=False),  # its LSTM is one call, in which nothing can be counted,
        torch.backends.cudnn.flags(enabled=False),  # and so is that of the GPU
        FlopCounterMode(display=False, custom_mapping=unknown) as counter,
    ):
        call()
    return counter.get_total_flops() // 2


def dependencies(inputs: Mapping[Any, Tensor], units: Mapping[Any, Tensor]) -> networkx.DiGraph:
    """Which named tensor was computed from which, read from autograd's graph: an edge for each that enters
    another without passing a third.

    `inputs` are leaves that require gradients; `units` were computed from them: the state after a step, a
    token behind a layer. A path's number of edges is the number of units that must be computed one after the
    other. So the longest path (`networkx.dag_longest_path_length`) counts the steps that cannot run at once,
    and a pair's shortest path is the way its signal takes.
    Raises ValueError for a name used twice, an input that is no leaf with gradients, and a unit that was
    computed from nothing.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = 2 * x
    >>> sorted(dependencies({"x": x}, {"y": y, "z": y + x}).edges)
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    """
    if twice := [*inputs.keys() & units.keys()]:
        raise ValueError(f"each tensor needs a name of its own, got twice: {', '.join(map(str, twice))}")
    for name, x in inputs.items():
        if not (isinstance(x, Tensor) and x.is_leaf and x.requires_grad):
            raise ValueError(
                f"input {name!r} must be a leaf that requires gradients; make it with requires_grad=True"
            )
    for name, x in units.items():
        if not isinstance(x, Tensor) or x.grad_fn is None:
            raise ValueError(f"unit {name!r} must be computed from the inputs, with gradients switched on")
    # a leaf has no grad_fn; the graph knows it by the node that gathers its gradient
    named = {torch.autograd.graph.get_gradient_edge(x).node: name for name, x in {**inputs, **units}.items()}
    graph = networkx.DiGraph()
    graph.add_nodes_from([*inputs, *units])
    for name, x in units.items():
        waiting, seen = [x.grad_fn], set()
        while waiting:
            for node, _ in waiting.pop().next_functions:
                if node in named:
                    graph.add_edge(named[node], name)
                elif node is not None and node not in seen:
                    seen.add(node)
                    waiting.append(node)
    return graph


def sensitivity(
    layer: Callable[[Float[Tensor, "1 n d"]], Float[Tensor, "1 m c"]], x: Float[Tensor, "n d"]
) -> Float[Tensor, "m n"]:
    """How strongly output i depends on input j: the norm of the matrix of its derivatives; exactly 0 where it
    does not depend on it.

    `layer` is called once on a batch of one sequence. Raises ValueError where its output's shape is not (1,
    m, c).

    >>> sensitivity(lambda x: x.cumsum(1), torch.ones(2, 1)).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """

    def of_one(x: Tensor) -> Tensor:
        y = layer(x[None])
        if not isinstance(y, Tensor) or y.ndim != 3 or len(y) != 1:
            got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise ValueError(f"layer must give a tensor (1, tokens, features), got {got}")
        return y[0]

    derivatives = torch.autograd.functional.jacobian(of_one, x)  # (m, c, n, d)
    return derivatives.square().sum((1, 3)).sqrt()


def growth_exponent(sizes: Sequence[int | float], values: Sequence[int | float]) -> float:
    """p of the power law `value ~ size ** p`: the median slope over all pairs of points, on log scales.

    One outlier does not move it. Raises ValueError for fewer than two sizes, unequal lengths, or numbers that
    are not positive.
    Source: Theil-Sen estimator (Sen 1968).

    >>> round(growth_exponent([1, 2, 4, 8], [3, 12, 48, 192]), 6)
    2.0
    """
    if len(sizes) != len(values) or len(set(sizes)) < 2:
        raise ValueError(
            f"need one value per size and two different sizes, got {len(sizes)} sizes and {len(values)}"
            " values"
        )
    if min(*sizes, *values) <= 0:
        raise ValueError(
            f"sizes and values must be positive, got {list(sizes)} and {list(values)}; a power law has no"
            " zero"
        )
    from scipy.stats import theilslopes

    return float(theilslopes([math.log(y) for y in values], [math.log(x) for x in sizes]).slope)


@dataclass(frozen=True)
class Law:
    """A cost as a function of n: `constant + linear · n + quadratic · n²`, in the unit of the values that it
    was fitted to.

    >>> print(Law(0.3, 2.1e-5, 0.0), "|", Law(0.3, 2.1e-5, 0.0).at(1000))
    0.30 + 2.1e-5 n | 0.321
    """

    constant: int | float
    linear: int | float
    quadratic: int | float

    def at(self, n: int | float) -> int | float:
        """The cost at n. Raises ValueError where n is no number >= 0."""
        require.number(n=n)
        return self.constant + self.linear * n + self.quadratic * n * n

    def __str__(self) -> str:
        parts = {"": self.constant, " n": self.linear, " n²": self.quadratic}
        return " + ".join(_short(part) + power for power, part in parts.items() if part) or "0"


def fit_law(sizes: Sequence[int | float], values: Sequence[int | float], *, degree: int = 2) -> Law:
    """The law whose relative errors at the points are least: sum of `(law.at(size) / value - 1)²`, with no
    part below 0.

    Relative, so that a short call counts as much as a long one. `degree=1` leaves the quadratic part out:
    where theory has none, noise at the longest sizes would make a small one, and far outside the measured
    range it would be all that counts.
    Raises ValueError for fewer different sizes than the law has parts, unequal lengths, numbers that are not
    positive, and another degree.
    Source: non-negative least squares (Lawson & Hanson 1974), scipy.optimize.nnls.

    >>> print(fit_law([1, 2, 3, 4], [12, 14, 16, 18]))
    10 + 2.0 n
    """
    from scipy.optimize import nnls

    require.one_of((1, 2), degree=degree)
    points = {"sizes": sizes, "values": values}
    for name, numbers in points.items():
        if isinstance(numbers, str) or not isinstance(numbers, Sequence):
            raise ValueError(f"{name} must be a list of numbers, got {type(numbers).__name__}")
        for value in numbers:
            require.number(above=0, **{name: value})
    if len(sizes) != len(values):
        raise ValueError(f"need one value per size, got {len(sizes)} sizes and {len(values)} values")
    if len(set(sizes)) < degree + 1:
        raise ValueError(
            f"a law of degree {degree} has {degree + 1} parts, and needs as many different sizes, got"
            f" {len(set(sizes))}; measure more"
        )
    powers = [
        [size**power / value for power in range(degree + 1)]
        for size, value in zip(sizes, values, strict=True)
    ]
    columns = numpy.array(powers, dtype=float)
    lengths = numpy.linalg.norm(columns, axis=0)  # as large as n² and as small as 1: brought to one length
    parts = nnls(columns / lengths, numpy.ones(len(sizes)))[0] / lengths
    parts[(columns * parts).max(0) < 1e-6] = 0.0  # not a millionth of any value: rounding
    return Law(*parts.tolist(), *[0.0] * (2 - degree))


def smallest(fits: Callable[[int], bool], most: int) -> int | None:
    """The smallest whole number from 1 to `most` for which `fits` is true, None if there is none; `fits` must
    stay true once it is.

    It is found by halving, in as many steps as `most` has binary digits. Raises ValueError where `most` is no
    whole number >= 1.

    >>> smallest(lambda k: k * k > 50, most=1000)
    8
    """
    require.whole(most=most)
    found = bisect_left(range(1, most + 1), True, key=fits) + 1
    return found if found <= most else None


def _short(number: int | float) -> str:
    """Two digits: 0.30, 12, 2.1e-5."""
    if 1e-3 <= number < 1e5:
        return f"{number:.0f}" if number >= 10 else f"{number:#.2g}"
    digits, power = f"{number:.1e}".split("e")
    return f"{digits}e{int(power)}"
