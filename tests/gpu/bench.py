"""Our attention against other libraries' on a GPU: times, peaks, and the share of what the card itself can
do. Written as JSON.

    python tests/gpu/bench.py --out FILE.json                       on a GPU: about three minutes on an H100,
                                                                    four at most
    python tests/gpu/bench.py --device cpu --quick --out FILE.json  tiny sizes on the CPU: shows that it runs,
                                                                    not how fast

A row is one comparison at one size. Both sides get the same inputs, in one process, and are called in turns;
first it is checked that they agree. Rows are measured by a process of their own, and the file is written
after each: where a row ends the process, or blocks it, the row says so in words, and another process goes on
behind it. `tests/gpu/report.py` makes tables of the file.
"""

import argparse
import gc
import importlib.metadata
import json
import math
import multiprocessing
import os
import platform
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.device import on
from lesson_lib.graphs import GraphAttention
from lesson_lib.heads import Cache, MultiHeadAttention, merge_heads, split_heads
from lesson_lib.masks import causal
from lesson_lib.measure import clock, peak_mib
from lesson_lib.truncated import attend_window

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
# How far two ways may differ, as a share of the largest number: sums in another order; bf16 keeps 8 bits of
# each intermediate result.
ALLOWED = {"fp32": 1e-4, "bf16": 5e-2}
PASSES = ["forward", "forward+backward"]
NO_MASK, CAUSAL, SAME_TABLE = "none", "causal", "causal, a table for both"
HEADS, WIDTH = 8, 64  # of the windows
D_IN, D_OUT = 64, 8  # of the graphs' layers, for each of HEADS heads
D_MODEL = 512  # of the layer that decodes, with HEADS heads
BLOCK = 128  # tokens in a block of flex_attention's masks
PEERS = ["triton", "local-attention", "torch_geometric"]
# seconds that a row's timing may take; at least so long between two looks at the clock
BUDGET_S, GROUP_S = (
    0.4,
    5e-3,
)
SILENCE_S = 150  # a row that takes longer is given up; compiling takes some ten seconds

SIZES = {  # quick or not: what is measured
    False: {
        "product": 8192, "copy MiB": 1024,
        "attend": [(8, 8, 128, 64), (4, 8, 1024, 64), (1, 8, 4096, 64), (1, 8, 16384, 64)],
        "same table": [(1, 8, 4096, 64)],
        "with weights": [(8, 8, 128, 64), (4, 8, 1024, 64), (1, 8, 8192, 64)],
        "graph": [(1_000, 10), (10_000, 10), (100_000, 10), (100_000, 50)],
        "window": [(1024, 64), (8192, 64), (65536, 64), (8192, 512), (65536, 512)],
        "decoding": [(1024, 8), (16384, 8), (131072, 8), (16384, 1), (131072, 1)],
    },
    True: {
        "product": 256, "copy MiB": 4, "attend": [(2, 2, 64, 16)], "same table": [(2, 2, 64, 16)],
        "with weights": [(2, 2, 64, 16)], "graph": [(200, 5)], "window": [(256, 32)],
        "decoding": [(64, 2)],
    },
}  # fmt: skip


class Case(NamedTuple):
    """What a row compares: two functions of the same inputs, or the words that say why theirs is not
    there."""

    ours: Callable[..., Tensor]
    theirs: Callable[..., Tensor] | str
    inputs: list[Tensor]
    flops: float
    moved: float  # bytes
    our_parameters: list[Tensor] = []  # noqa: RUF012 (never changed)
    their_parameters: list[Tensor] = []  # noqa: RUF012


# What the work is, by formula


def pairs(n: int, *, causal: bool = False, radius: int | None = None) -> int:
    """Pairs of a query and a key that may look: all, those up to the query's own place, or those within the
    radius.

    >>> pairs(4), pairs(4, causal=True), pairs(4, radius=1), pairs(4, radius=9)
    (16, 10, 10, 16)
    """
    if radius is not None:
        r = min(radius, n - 1)
        return n * (2 * r + 1) - r * (r + 1)
    return n * (n + 1) // 2 if causal else n * n


def attention_flops(pairs: int, d: int, heads: int, *, backward: bool = False) -> float:
    """4 d for each pair and head: two products forward, 2 d each, and five backward, so 2.5 times that;
    `heads` counts batch times heads."""
    return 4 * pairs * d * heads * (3.5 if backward else 1)


def attention_bytes(
    n: int,
    d: int,
    heads: int,
    size: int,
    *,
    mask: bool = False,
    weights: bool = False,
    backward: bool = False,
) -> int:
    """Inputs and outputs, each once: q, k, v and the output; their four gradients; the mask's n² bytes; the
    weights where they are returned."""
    table = heads * n * n * size if weights else 0
    return heads * n * d * size * (8 if backward else 4) + (n * n if mask else 0) + table


def graph_flops(nodes: int, edges: int, *, backward: bool = False) -> float:
    """The projection, 2 n d_in h d; two scores for each node, 2 n h d each; a message for each edge, 2 E h d.
    Backward twice that."""
    width = HEADS * D_OUT
    forward = 2 * nodes * D_IN * width + 4 * nodes * width + 2 * edges * width
    return forward * (3 if backward else 1)


def graph_bytes(nodes: int, edges: int, size: int, *, backward: bool = False) -> int:
    """Inputs and outputs, each once: features in and out, the parameters, 16 bytes for each edge, its
    weights; backward the gradients."""
    width = HEADS * D_OUT
    numbers = nodes * (D_IN + width) + D_IN * width + 3 * width
    return size * (numbers * (2 if backward else 1) + edges * HEADS) + 16 * edges


# What is compared


def plan(quick: bool) -> list[dict[str, Any]]:
    """All rows, in the order in which they are measured: first what the others are compared with, last what
    must be compiled."""
    sizes = SIZES[quick]
    rows = [
        {"table": "ceilings", "what": what, "dtype": dtype, "quick": quick}
        for dtype in DTYPES
        for what in ("product", "copy", "launch")
    ]

    def add(table: str, peer: str, **size: Any) -> None:
        for dtype in DTYPES:
            for which in PASSES:
                rows.append(
                    {"table": table, "peer": peer, "dtype": dtype, "pass": which, **size, "quick": quick}
                )

    for form in ("attend", "with weights"):
        for shape in sizes[form]:
            for mask in (NO_MASK, CAUSAL):
                add(form, "fused kernel", shape=shape, mask=mask)
    for shape in sizes["same table"]:
        add("attend", "fused kernel", shape=shape, mask=SAME_TABLE)
    for n, key_heads in sizes["decoding"]:
        for dtype in DTYPES:
            size = {"n": n, "key heads": key_heads}
            rows.append(
                {"table": "decoding", "peer": "by torch's parts", "dtype": dtype, "pass": "forward"}
                | size
                | {"quick": quick}
            )
    for nodes, degree in sizes["graph"]:
        add("graph", "GATConv", nodes=nodes, degree=degree)
    for peer in ("local-attention", "flex_attention"):
        for n, radius in sizes["window"]:
            add("window", peer, n=n, radius=radius)
    return rows


def draw(*shape: int, dtype: str, device: torch.device, number: int = 0) -> Tensor:
    """Normal numbers of that device's own generator."""
    generator = torch.Generator(device).manual_seed(number)
    return torch.randn(shape, generator=generator, dtype=DTYPES[dtype], device=device)


def attention_case(row: dict, device: torch.device) -> Case:
    """`attend` against F.scaled_dot_product_attention. Ours gets a causal mask as a boolean table, theirs as
    `is_causal`, or the table too."""
    b, h, n, d = row["shape"]
    weights, backward = row["table"] == "with weights", row["pass"] != "forward"
    mask = None if row["mask"] == NO_MASK else causal(n, device=device)
    if row["mask"] == SAME_TABLE:
        options = {"attn_mask": mask}
    else:
        options = {"is_causal": mask is not None}
    size = DTYPES[row["dtype"]].itemsize
    return Case(
        lambda q, k, v: attend(q, k, v, mask=mask, weights=weights).output,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options),
        [draw(b, h, n, d, dtype=row["dtype"], device=device, number=i) for i in range(3)],
        attention_flops(pairs(n, causal=mask is not None), d, b * h, backward=backward),
        attention_bytes(n, d, b * h, size, mask=mask is not None, weights=weights, backward=backward),
    )


def window_case(row: dict, device: torch.device) -> Case:
    """`attend_window` against flex_attention or local-attention, (1, 8, n, 64)."""
    n, radius, backward = row["n"], row["radius"], row["pass"] != "forward"
    make = {"flex_attention": flex, "local-attention": local}[row["peer"]]
    try:
        theirs = make(n, radius, device, backward=backward)
    except Exception as error:
        theirs = words(error)
    size = DTYPES[row["dtype"]].itemsize
    return Case(
        lambda q, k, v: attend_window(q, k, v, radius),
        theirs,
        [draw(1, HEADS, n, WIDTH, dtype=row["dtype"], device=device, number=i) for i in range(3)],
        attention_flops(pairs(n, radius=radius), WIDTH, HEADS, backward=backward),
        attention_bytes(n, WIDTH, HEADS, size, backward=backward),
    )


def local(n: int, radius: int, device: torch.device, *, backward: bool) -> Callable[..., Tensor]:
    """lucidrains' LocalAttention as a window of that radius. Only where n is a multiple of it: filled up, its
    last tokens see filler."""
    from local_attention import LocalAttention

    if n % radius:
        raise ValueError(f"local-attention computes another function where {radius} does not divide {n}")
    return LocalAttention(
        window_size=radius, causal=False, look_backward=1, look_forward=1, dropout=0.0,
        exact_windowsize=True, use_rotary_pos_emb=False, autopad=True,
    ).to(device)  # fmt: skip


def flex(n: int, radius: int, device: torch.device, *, backward: bool) -> Callable[..., Tensor] | str:
    """flex_attention with a window's blocks, compiled for this size alone; on the CPU as it is, and forward
    only."""
    from torch.nn.attention.flex_attention import flex_attention

    mask = window_blocks(n, radius, device)
    if device.type == "cpu":
        if backward:
            return "not run on the CPU: flex_attention has no backward there"
        warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
        return lambda q, k, v: flex_attention(q, k, v, block_mask=mask)
    torch._dynamo.reset()  # else the ninth size would be beyond dynamo's limit, and run uncompiled
    # fullgraph raises where something cannot be compiled, instead of running it uncompiled
    compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    return lambda q, k, v: compiled(q, k, v, block_mask=mask)


def window_blocks(n: int, radius: int, device: torch.device) -> Any:
    """flex_attention's BlockMask of a window, from the distances of blocks: `create_block_mask` would hold
    numbers for all n² pairs."""
    from torch.nn.attention.flex_attention import BlockMask

    if n % BLOCK:
        raise ValueError(f"n must be a multiple of {BLOCK}, got {n}")
    i = torch.arange(n // BLOCK, device=device)
    apart = (i[:, None] - i).abs()
    whole = (apart + 1) * BLOCK - 1 <= radius  # its two farthest tokens see each other
    some = ((apart - 1) * BLOCK + 1 <= radius) & ~whole  # its two nearest do

    def listed(table: Tensor) -> tuple[Tensor, Tensor]:
        order = table.int().argsort(dim=-1, descending=True, stable=True)
        return table.sum(-1).int()[None, None], order.int()[None, None].contiguous()

    def near(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (q - k).abs() <= radius

    return BlockMask.from_kv_blocks(
        *listed(some), *listed(whole), BLOCK_SIZE=BLOCK, mask_mod=near, seq_lengths=(n, n)
    )


def graph_case(row: dict, device: torch.device) -> Case:
    """GraphAttention against PyTorch Geometric's GATConv with the same weights, or alone where that is not
    there."""
    nodes, dtype, backward = row["nodes"], DTYPES[row["dtype"]], row["pass"] != "forward"
    edge_index = edges(nodes, row["degree"], device)
    torch.manual_seed(0)
    try:
        from torch_geometric.nn import GATConv

        conv = GATConv(D_IN, D_OUT, heads=HEADS, add_self_loops=False).to(device, dtype)
        layer = GraphAttention.from_pyg(conv)
        theirs, their_parameters = lambda x: conv(x, edge_index), [*conv.parameters()]
    except Exception as error:
        layer = GraphAttention(D_IN, D_OUT, HEADS).to(device, dtype)
        theirs, their_parameters = words(error), []
    count = edge_index.shape[1]
    return Case(
        lambda x: layer(x, edge_index).output,
        theirs,
        [draw(nodes, D_IN, dtype=row["dtype"], device=device)],
        graph_flops(nodes, count, backward=backward),
        graph_bytes(nodes, count, dtype.itemsize, backward=backward),
        [*layer.parameters()],
        their_parameters,
    )


def decoding_case(row: dict, device: torch.device) -> Case:
    """One more token behind n kept ones: MultiHeadAttention with a Cache, against the same four products with
    torch.cat and F.scaled_dot_product_attention between them."""
    n, key_heads, dtype = row["n"], row["key heads"], DTYPES[row["dtype"]]
    torch.manual_seed(0)
    layer = MultiHeadAttention(D_MODEL, HEADS, n_key_heads=key_heads).to(device, dtype).eval()
    shape = (1, key_heads, n, D_MODEL // HEADS)
    kept = [draw(*shape, dtype=row["dtype"], device=device, number=i) for i in (1, 2)]

    def ours(x: Tensor) -> Tensor:
        cache = Cache()  # each call finds the same n tokens
        cache.key, cache.value, cache.seen = *kept, n
        return layer(x, x, x, cache=cache, weights=False).output

    def theirs(x: Tensor) -> Tensor:
        q = split_heads(layer.w_query(x), HEADS)
        k = torch.cat((kept[0], split_heads(layer.w_key(x), key_heads)), -2)
        v = torch.cat((kept[1], split_heads(layer.w_value(x), key_heads)), -2)
        return layer.w_output(
            merge_heads(F.scaled_dot_product_attention(q, k, v, enable_gqa=key_heads < HEADS))
        )

    width = key_heads * D_MODEL // HEADS
    products = 2 * D_MODEL * (2 * D_MODEL + 2 * width)
    return Case(
        ours,
        theirs,
        [draw(1, 1, D_MODEL, dtype=row["dtype"], device=device)],
        attention_flops(n + 1, D_MODEL // HEADS, HEADS) + products,
        dtype.itemsize * (2 * (n + 1) * width + products / 2 + 2 * D_MODEL),
    )


def edges(nodes: int, degree: int, device: torch.device) -> Tensor:
    """(2, edges): drawn evenly, no node's own, each once."""
    generator = torch.Generator(device).manual_seed(0)
    drawn = torch.randint(0, nodes * nodes, (degree * nodes,), generator=generator, device=device).unique()
    source, target = drawn // nodes, drawn % nodes
    return torch.stack([source, target])[:, source != target]


CASES = {
    "attend": attention_case,
    "with weights": attention_case,
    "window": window_case,
    "decoding": decoding_case,
    "graph": graph_case,
}


# How a row is measured


def measured(row: dict, device: torch.device) -> dict[str, Any]:
    """What is found out about the row. Raises nothing: what fails is said in words."""
    try:
        if row["table"] == "ceilings":
            return ceiling(row, device)
        return compared(row, CASES[row["table"]](row, device))
    except Exception as error:
        return {"words": words(error), "dead": dead(error)}
    finally:
        gc.collect()
        if device.type != "cpu":
            try:
                torch.cuda.empty_cache()
            except Exception as error:  # the process is lost, and the next row finds out
                print(f"emptying the cache failed: {words(error)}", file=sys.stderr)


def ceiling(row: dict, device: torch.device) -> dict[str, Any]:
    """What the card itself can do: a large product of random matrices, a large copy within its memory, and
    the smallest call."""
    sizes, dtype = SIZES[row["quick"]], row["dtype"]
    size = DTYPES[dtype].itemsize
    if row["what"] == "product":
        n = sizes["product"]
        a, b = (draw(n, n, dtype=dtype, device=device, number=i) for i in range(2))
        c = torch.empty_like(a)
        call, work = lambda: torch.mm(a, b, out=c), {"flops": 2 * n**3, "moved": 3 * n * n * size, "n": n}
    elif row["what"] == "copy":
        numbers = sizes["copy MiB"] * 2**20 // size
        source = draw(numbers, dtype=dtype, device=device)
        copy = torch.empty_like(source)
        call, work = lambda: copy.copy_(source), {"moved": 2 * numbers * size, "MiB": sizes["copy MiB"]}
    else:
        one = draw(1, dtype=dtype, device=device)
        call, work = lambda: one.add_(0), {}
    begun = clock()
    while clock() - begun < (0.01 if row["quick"] else 0.3):  # a card at rest runs slowly at first
        call()
    (seconds,) = in_turn([call], quick=row["quick"])
    found = {"ours": {"ms": seconds * 1e3}, **work}
    return found | rates(seconds, work.get("flops"), work.get("moved"))


def compared(row: dict, case: Case) -> dict[str, Any]:
    """Agreement, peaks and times of the two sides of a case; a side that fails is left out of the rest, and
    says why."""
    backward = row["pass"] != "forward"
    for x in case.inputs:
        x.requires_grad_(backward)
    sides = {"ours": (case.ours, case.our_parameters), "theirs": (case.theirs, case.their_parameters)}
    found: dict[str, Any] = {"ours": {}, "theirs": {}, "flops": case.flops, "moved": case.moved}
    calls: dict[str, Callable] = {}
    outputs: dict[str, list[Tensor]] = {}

    def tried(side: str, action: Callable[[], Any]) -> Any:
        """What the action returns; where it fails None, and the side has its words."""
        try:
            return action()
        except Exception as error:
            found[side]["words"] = words(error)
            found["dead"] = found.get("dead", False) or dead(error)
            del calls[side]
            return None

    for side, (form, parameters) in sides.items():
        if isinstance(form, str):
            found[side]["words"] = form
            continue
        calls[side] = one_pass(form, case.inputs, parameters, backward=backward)
        # the first call compiles, and takes the workspaces, which stay: neither counts below
        if made := tried(side, calls[side]):
            outputs[side] = [x.detach() for x in made[: 1 + len(case.inputs)]]
        del made
        if found.get("dead"):
            return found
    if len(outputs) == 2:
        found |= agreement(outputs["ours"], outputs["theirs"], ALLOWED[row["dtype"]])
    outputs.clear()
    for side, call in [*calls.items()]:
        peak = tried(side, lambda call=call: peak_mib(call))
        if peak is not None:
            found[side]["peak_mib"] = peak
    if found.get("dead") or not calls:
        return found
    for side, seconds in zip(calls, in_turn([*calls.values()], quick=row["quick"]), strict=True):
        found[side]["ms"] = seconds * 1e3
    if "ours" in calls:
        found |= rates(found["ours"]["ms"] / 1e3, case.flops, case.moved)
    if len(calls) == 2:
        found["ratio"] = found["ours"]["ms"] / found["theirs"]["ms"]
    return found


def one_pass(
    form: Callable[..., Tensor], inputs: list[Tensor], parameters: list[Tensor], *, backward: bool
) -> Callable[[], list[Tensor]]:
    """A call that gives the output, and behind it the gradients of inputs and parameters where wanted.
    Nothing is added up from call to call."""
    gradient: list[Tensor] = []  # of the output; drawn when its shape is known

    def call() -> list[Tensor]:
        with torch.set_grad_enabled(backward):
            y = form(*inputs)
            if not backward:
                return [y]
            if not gradient:
                dtype = next(name for name, kind in DTYPES.items() if kind == y.dtype)
                gradient.append(draw(*y.shape, dtype=dtype, device=y.device, number=7))
            return [y, *torch.autograd.grad(y, [*inputs, *parameters], gradient)]

    return call


def agreement(ours: list[Tensor], theirs: list[Tensor], share: float) -> dict[str, Any]:
    """The largest difference, of the output or a gradient, where it is largest beside what is allowed: that
    share of the largest number."""
    worst = None
    for mine, other in zip(ours, theirs, strict=True):
        difference = (mine.float() - other.float()).abs().max().item()
        allowed = share * other.float().abs().max().item()
        if not (math.isfinite(difference) and math.isfinite(allowed)):
            return {"agree": False, "difference": None, "allowed": None}
        if worst is None or difference * worst["allowed"] > worst["difference"] * allowed:
            worst = {"difference": difference, "allowed": allowed, "agree": difference <= allowed}
    return worst


def in_turn(calls: list[Callable[[], Any]], *, quick: bool = False) -> list[float]:
    """Median seconds of each call, in turns, so that a busy moment hits all alike.

    The clock is looked at behind so many calls that they take GROUP_S at least: what waits for the GPU does
    not count, what launches does.
    """
    group_s, budget_s, least, most = (0, 0, 2, 2) if quick else (GROUP_S, BUDGET_S, 3, 25)
    counts = []
    for call in calls:
        call()
        begun = clock()
        call()
        counts.append(min(1000, max(1, math.ceil(group_s / max(clock() - begun, 1e-6)))))
    taken: list[list[float]] = [[] for _ in calls]
    spent = 0.0
    while len(taken[0]) < least or (spent < budget_s and len(taken[0]) < most):
        for call, count, seconds in zip(calls, counts, taken, strict=True):
            begun = clock()
            for _ in range(count):
                call()
            seconds.append((clock() - begun) / count)
            spent += seconds[-1] * count
    # a call on a tiny input may take no tick of the processor's clock
    return [max(statistics.median(seconds), 1e-9) for seconds in taken]


def rates(seconds: float, flops: float | None, moved: float | None) -> dict[str, float]:
    """TFLOP/s and GB/s, of what is known."""
    found = {}
    if flops:
        found["tflops"] = flops / seconds / 1e12
    if moved:
        found["gb_per_s"] = moved / seconds / 1e9
    return found


def words(error: BaseException) -> str:
    """What failed, in a short line without folders."""
    text = " ".join(str(error).split())
    if isinstance(error, torch.OutOfMemoryError) or re.search("CUDA (error: )?out of memory", text):
        return "out of memory"
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "a module").split(".")[0]
        return f"not there: {module.replace('local_attention', 'local-attention')}"
    if "Cannot find a working triton installation" in text or type(error).__name__ == "TritonMissing":
        return "not there: triton, which compiles flex_attention"
    if "Failed to find C compiler" in text:
        return "not there: a C compiler, which triton needs"
    text = re.sub(r"(?<![\w:/])/(?:[^\s/'\":,]+/)+", "", text)  # a folder of this machine says nothing
    return f"failed: {type(error).__name__}: {text}"[:200]


def dead(error: BaseException) -> bool:
    """Whether no further call of this process can succeed on the GPU."""
    return "CUDA error" in str(error) and words(error) != "out of memory"


# Who measures, and what is written


def machine(name: str) -> dict[str, Any]:
    """The device that computes, and the versions of what it runs."""
    gpu = name != "cpu"
    versions = {}
    for package in PEERS:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "device": {
            "kind": name,
            "name": torch.cuda.get_device_name() if gpu else platform.machine(),
            "memory_gib": torch.cuda.get_device_properties().total_memory / 2**30 if gpu else None,
            "processors": len(os.sched_getaffinity(0)) if hasattr(os,
            "sched_getaffinity") else os.cpu_count(),
        },
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda if gpu else None,
        "tf32": torch.backends.cuda.matmul.allow_tf32,
        "threads": torch.get_num_threads(),
        "packages": versions,
    }  # fmt: skip


def work(connection: Any, rows: list[tuple[int, dict]], name: str, until: float) -> None:
    """The measuring process: sends what the machine is, then (number, what was found, whether the GPU is lost
    to it) for each row."""
    with on(name):
        device = torch.device(name)
        connection.send(machine(name))
        gc.collect()
        for i, row in rows:
            # what is imported by now is not searched for garbage again: that took longer than measuring
            gc.freeze()
            if time.time() > until:
                connection.send((i, {"words": "not measured: the time was up"}, False))
                continue
            found = measured(row, device)
            lost = found.pop("dead", False)
            connection.send((i, found, lost))
            if lost:
                return


def run(
    name: str, *, quick: bool, minutes: float, out: Path | None, worker: Callable = work
) -> dict[str, Any]:
    """Measure all rows on that device, and write the file after each; returns what is in it."""
    begun = time.time()
    rows = plan(quick)
    result: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "quick": quick, "seconds": 0.0,
        "device": {"kind": name}, "allowed": ALLOWED, "ceilings": {dtype: {} for dtype in DTYPES},
        "rows": rows,
    }  # fmt: skip
    save(result, out)
    context = multiprocessing.get_context("spawn")
    at = 0
    while at < len(rows):
        ours, its = context.Pipe(duplex=False)
        left = [*enumerate(rows)][at:]
        process = context.Process(target=worker, args=(its, left, name, begun + 60 * minutes))
        process.start()
        its.close()
        here, lost, ended = False, False, ""  # whether it came to the rows, lost the GPU, or ended
        while at < len(rows) and not lost and not ended:
            try:
                message = ours.recv() if ours.poll(SILENCE_S) else None
            except (EOFError, ConnectionResetError):
                process.join(10)
                ended = f"failed: the process ended with code {process.exitcode}"
                break
            if message is None:
                ended = f"given up: no answer within {SILENCE_S} s"
            elif not here:
                here = True
                result |= message
            else:
                at, found, lost = message
                rows[at] |= found
                told(rows, at)
                at += 1
            result["seconds"] = time.time() - begun
            shares(result)
            save(result, out)
        if ended:
            # one that never came to a row is followed by none: the next would not either
            for i in range(at, at + 1 if here else len(rows)):
                rows[i]["words"] = ended
                told(rows, i)
            at = at + 1 if here else len(rows)
        elif not lost:
            process.join(10)
        if process.is_alive():
            process.kill()
        process.join()
        ours.close()
        save(result, out)
    return result


def shares(result: dict[str, Any]) -> None:
    """Give each row its share of what the large product and the large copy reach in its dtype, as far as they
    are measured."""
    ceilings = result["ceilings"]
    for row in result["rows"]:
        if row["table"] == "ceilings" and "ours" in row:
            key = {"product": "tflops", "copy": "gb_per_s", "launch": "launch_ms"}[row["what"]]
            ceilings[row["dtype"]][key] = row["ours"]["ms"] if key == "launch_ms" else row[key]
    for row in result["rows"]:
        if row["table"] != "ceilings":
            for rate, share in (("tflops", "of_product"), ("gb_per_s", "of_copy")):
                if rate in row and rate in ceilings[row["dtype"]]:
                    row[share] = row[rate] / ceilings[row["dtype"]][rate]


def save(result: dict[str, Any], out: Path | None) -> None:
    """Write it whole: who reads meanwhile, or after a cut, finds a readable file."""
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(out.name + ".new")
    new.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(out)


def told(rows: list[dict], i: int) -> None:
    """A line of progress."""
    row = rows[i]
    keys = (
        "table",
        "what",
        "peer",
        "dtype",
        "pass",
        "shape",
        "mask",
        "nodes",
        "degree",
        "n",
        "radius",
        "key heads",
    )
    title = ", ".join(f"{key} {row[key]}" if key in keys[6:] else str(row[key]) for key in keys if key in row)
    said = row.get("words") or ", ".join(
        f"{side} {row[side]['ms']:.3g} ms" if "ms" in row[side] else f"{side}: {row[side].get('words')}"
        for side in ("ours", "theirs")
        if side in row
    )
    if row.get("agree") is False:
        said += ", THEY DIFFER BY MORE THAN IS ALLOWED"
    print(f"{i + 1}/{len(rows)} {title}: {said}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """0 where the rows were measured, or say why not; 2 where the device is not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="the file to write; without it the JSON is printed")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, few calls: shows that it runs")
    parser.add_argument(
        "--minutes", type=float, default=4.0, help="rows that would begin later are not measured"
    )
    chosen = parser.parse_args(arguments)
    if chosen.device == "cpu" and not chosen.quick:
        print(
            "The sizes are a GPU's: on the CPU use --quick, which shows that everything runs.",
            file=sys.stderr,
        )
        return 2
    if chosen.device == "cuda" and not torch.cuda.is_available():
        print(
            "torch sees no CUDA device, so nothing was measured; where there is none, --device cpu --quick"
            " shows that it runs.",
            file=sys.stderr,
        )
        return 2
    result = run(chosen.device, quick=chosen.quick, minutes=chosen.minutes, out=chosen.out)
    if chosen.out is None:
        print(json.dumps(result, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
