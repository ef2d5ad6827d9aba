"""Ring attention over 1 to 4 processes: seconds, MiB in each of them, MiB sent, and how far it is from
attention in one process.

The processes are started by torchrun, as `make ring` starts them, on the CPU, with gloo and one thread each.
Each makes its own rows only. Where there are fewer cores than processes they share them: seconds then say
nothing of what more machines would give. Memory is what is claimed, and it is exact: torch's allocator is
asked in each process, inputs, outputs and gradients included. `run` has a repeat of all sizes per "seed"; the
tokens are different in each.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lesson_lib import measure
from lesson_lib.attention import attend
from lesson_lib.device import device, to_device
from lesson_lib.masks import causal as causal_mask
from lesson_lib.places import ROOT
from lesson_lib.ring import attend_ring

RECIPE = {
    "processes": [1, 2, 3, 4],
    "tokens": [4096, 8192],
    "heads": 4,
    "width": 64,
    "causal": [False, True],
    "backward": [False, True],
    "seeds": [0, 1, 2],
}
MODULE = "lesson_lib.chapters.c11_efficient_attention.experiments.ring"
PIECE = 256  # queries that the comparison computes at a time


def rows_of(rank: int, processes: int, tokens: int) -> range:
    """Which tokens a process has: as many as the others, or one more or less.

    >>> [rows_of(rank, 3, 11) for rank in range(3)]
    [range(0, 3), range(3, 7), range(7, 11)]
    """
    return range(tokens * rank // processes, tokens * (rank + 1) // processes)


def sent_mib(
    tokens: int, processes: int, *, heads: int, width: int, backward: bool = False, size: int = 4
) -> float:
    """MiB that each process sends, on average: its block of keys and values p - 1 times; backward once more,
    and p times the gradients of one."""
    times = (processes - 1) * (2 if backward else 1) + (processes if backward and processes > 1 else 0)
    return 2 * heads * tokens / processes * width * size * times / 2**20


def measured(
    tokens: int,
    heads: int,
    width: int,
    *,
    causal: bool = False,
    backward: bool = False,
    seed: int = 0,
    compare: int = 0,
) -> dict[str, Any] | None:
    """One call of `attend_ring` over that many tokens, measured in all processes: a row, in process 0, and
    None in the others.

    To be called in every process of an initialised group. {"processes", "tokens", "causal", "backward",
    "seconds" by the clock until the slowest is done, "cpu_s" of a process on average, "mib" of the one that
    held most, "sent_mib" of a process on average, "error", "compared"}. "error" is the largest difference
    from `attend` over all tokens in one process, of outputs and gradients, in the first `compare` queries;
    None where that is 0. Gradients of keys and values need all queries, so they are compared where all are.
    """
    rank, processes = dist.get_rank(), dist.get_world_size()
    attend_ring(*_tensors(3, heads, 2, width, seed=0), causal=causal)  # the first call makes the connections
    found: list[Tensor] = []
    took: list[float] = []

    def call() -> None:
        rows = len(rows_of(rank, processes, tokens))
        inputs = [x.requires_grad_(backward) for x in _inputs(rank, processes, tokens, heads, width, seed)]
        dist.barrier()
        clock, cpu = _now(), time.process_time()
        output = attend_ring(*inputs, causal=causal)
        took.extend([_now() - clock, time.process_time() - cpu])
        if backward:
            (gradient,) = _tensors(1, heads, rows, width, seed=_seed(seed, rank) + 1)
            clock, cpu = _now(), time.process_time()
            grads = torch.autograd.grad(output, inputs, gradient)
            took.extend([_now() - clock, time.process_time() - cpu])
            found.extend(grads)
        found.insert(0, output.detach())

    mib = measure.peak_mib(call)
    told: list[Any] = [None] * processes
    dist.all_gather_object(told, (sum(took[::2]), sum(took[1::2]), mib))
    compared = min(tokens, compare)
    error = _error(found, tokens, heads, width, causal, seed, compared) if compared else None
    dist.barrier()  # all end together
    if rank:
        return None
    seconds, cpu_s, peaks = zip(*told, strict=True)
    return {
        "processes": processes, "tokens": tokens, "causal": causal, "backward": backward,
        "seconds": round(max(seconds), 3), "cpu_s": round(sum(cpu_s) / processes, 3),
        "mib": round(max(peaks), 3),
        "sent_mib": round(sent_mib(tokens, processes, heads=heads, width=width, backward=backward), 3),
        "error": error, "compared": compared,
    }  # fmt: skip


def join(tokens: int, heads: int, width: int) -> None:
    """Begin the process group of a process that torchrun has started: nccl where there is a GPU for each
    process, else gloo on the CPU.

    A process that dies is noticed at once. One that is silent is waited for: two minutes, and as long as a
    single slow core would need for all the work (a thousand million multiplications a second), so that a slow
    one is not taken for dead.
    """
    from datetime import timedelta

    on_gpu = device().type == "cuda" and torch.cuda.device_count() >= int(
        os.environ.get("LOCAL_WORLD_SIZE", "1")
    )
    os.environ["LESSON_DEVICE"] = "cuda" if on_gpu else "cpu"
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    work = 7 * tokens**2 * heads * width / 1e9  # forward 2 products of n x n x width, backward 5
    # The profiler's first start imports modules of torch whose functions have the group, where there is one,
    # as a default argument. It could then not be destroyed, and its threads, alive at the end, abort the
    # process.
    measure.peak_mib(lambda: None)
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(seconds=120 + work))


def torchrun(
    processes: int, *arguments: str, environment: Mapping[str, str] | None = None, wait_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """`torchrun --standalone --local-addr localhost --nproc-per-node PROCESSES ARGUMENTS`, of this Python,
    with one thread in each; what it printed, and how it ended.

    The processes' own output comes with it. Raises subprocess.TimeoutExpired after `wait_s` seconds.
    """
    # on an unconnected computer nobody may know the computer's own name, which torchrun would look for during
    # minutes
    alone = ["--standalone", "--local-addr", "localhost"]
    command = [sys.executable, "-m", "torch.distributed.run", *alone, "--nproc-per-node", str(processes)]
    # torch for Windows is built without libuv, which torchrun would use
    own = {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"} | (
        {"USE_LIBUV": "0"} if sys.platform == "win32" else {}
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [*command, *arguments], cwd=ROOT,
        env=os.environ | own | {"PYTHONPATH": path} | dict(environment or {}),
        capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=wait_s,
    )  # fmt: skip


def run(seed: int) -> list[dict[str, Any]]:
    """A row of `measured` for each number of processes, of tokens, and for causal or not, backward or not.
    The first seed's are compared, all queries."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="lesson_ring_") as folder:
        for processes in RECIPE["processes"]:
            file = Path(folder) / f"{processes}.json"
            recipe = json.dumps(RECIPE)
            done = torchrun(
                processes, "-m", MODULE, str(seed), str(file), recipe,
                environment={"LESSON_DEVICE": "cpu"},
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"torchrun ended with {done.returncode}; it said: {done.stderr[-2000:]}")
            rows += json.loads(file.read_text(encoding="utf-8"))
    return [{"seed": seed, **row} for row in rows]


def memory(
    rows: Sequence[Mapping[str, Any]], *, causal: bool = False
) -> dict[tuple[int, bool], dict[int, float]]:
    """MiB of the process that held most, by processes: {(tokens, backward): {processes: MiB}}; of several
    repeats the most."""
    found: dict[tuple[int, bool], dict[int, float]] = {}
    for row in rows:
        if row["causal"] == causal:
            by = found.setdefault((row["tokens"], row["backward"]), {})
            by[row["processes"]] = max(by.get(row["processes"], 0.0), row["mib"])
    return found


def _seed(seed: int, rank: int) -> int:
    return 2 * (seed * 1000 + rank)  # and one more for the gradient


def _tensors(count: int, heads: int, rows: int, width: int, *, seed: int) -> list[Tensor]:
    draws = torch.Generator("cpu").manual_seed(seed)
    return [
        to_device(torch.randn(heads, rows, width, generator=draws, device="cpu", dtype=torch.float32))
        for _ in range(count)
    ]


def _inputs(rank: int, processes: int, tokens: int, heads: int, width: int, seed: int) -> list[Tensor]:
    """Queries, keys and values of one process."""
    rows = len(rows_of(rank, processes, tokens))
    return _tensors(3, heads, rows, width, seed=_seed(seed, rank))


def _now() -> float:
    if device().type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter()


def _error(
    found: list[Tensor], tokens: int, heads: int, width: int, causal: bool, seed: int, compared: int
) -> float | None:
    """The largest difference from `attend`, in process 0, which draws everybody's tokens once more for it.
    All processes must call this."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    told: list[Any] | None = [None] * processes if rank == 0 else None
    dist.gather_object([x.cpu() for x in found], told)
    if told is None:
        return None
    mine = [to_device(torch.cat(parts, -2)) for parts in zip(*told, strict=True)]
    per_process = [_inputs(r, processes, tokens, heads, width, seed) for r in range(processes)]
    q, k, v = (
        torch.cat(parts, -2).requires_grad_(len(found) > 1) for parts in zip(*per_process, strict=True)
    )
    counts = [len(rows_of(r, processes, tokens)) for r in range(processes)]
    gradient = torch.cat(
        [
            _tensors(1, heads, n, width, seed=_seed(seed, r) + 1)[0]
            for r, n in enumerate(counts)
        ], -2,
    )  # fmt: skip
    largest = 0.0
    for start in range(0, compared, PIECE):
        rows = slice(start, min(compared, start + PIECE))
        seen = rows.stop if causal else tokens
        mask = to_device(causal_mask(seen)[rows]) if causal else None
        output = attend(q[..., rows, :], k[..., :seen, :], v[..., :seen, :], mask=mask).output
        largest = max(largest, (output - mine[0][..., rows, :]).abs().max().item())
        if len(found) > 1:
            output.backward(gradient[..., rows, :])
    if len(found) > 1:
        pairs = [(q.grad[..., :compared, :], mine[1][..., :compared, :])]
        pairs += [(k.grad, mine[2]), (v.grad, mine[3])] if compared == tokens else []
        largest = max(largest, *((a - b).abs().max().item() for a, b in pairs))
    return largest


def _main(seed: str, file: str, recipe: str) -> None:
    """What each process of `run` does."""
    chosen = json.loads(recipe)
    sizes = {"heads": chosen["heads"], "width": chosen["width"]}
    join(max(chosen["tokens"]), **sizes)
    compared = int(seed) == chosen["seeds"][0]
    rows = [
        measured(tokens, causal=causal, backward=backward, seed=int(seed), compare=compared * tokens, **sizes)
        for tokens in chosen["tokens"]
        for causal in chosen["causal"]
        for backward in chosen["backward"]
    ]
    if dist.get_rank() == 0:
        Path(file).write_text(json.dumps(rows), encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    _main(*sys.argv[1:])
