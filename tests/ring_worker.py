"""What each process does in the tests of ring attention: `torchrun -m tests.ring_worker WHAT FILE`. Process 0
writes what all of them found."""

import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from lesson_lib import measure, ring
from lesson_lib.attention import attend
from lesson_lib.masks import causal as causal_mask
from lesson_lib.ring import attend_ring

D_K, D_V = 5, 7
UNEVEN = [5, 0, 300, 17]  # one with nothing, one of more than a tile
SILENT = ["no backward"]  # ways to fall out in which no connection is closed


def draw(*shape, seed, dtype=torch.float32):
    draws = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(*shape, generator=draws, dtype=torch.float64).to(dtype)


def pieces(x, counts):
    return x.split(counts, -2)


def largest(pairs):
    """The largest difference; -1 for a pair of other shapes or number formats."""
    found = [0.0]
    for got, wanted in pairs:
        if got.shape != wanted.shape or not torch.isfinite(got).all():
            return -1.0
        found.append((got.double() - wanted.double()).abs().max().item() if got.numel() else 0.0)
    return max(found)


def equal(case):
    """How far this process's rows of outputs and gradients are from those of `attend` over all tokens, in
    float64."""
    p, rank = dist.get_world_size(), dist.get_rank()
    counts = case.get("counts", UNEVEN)[:p]
    keys = case.get("keys", counts)[:p]
    dtype = getattr(torch, case.get("dtype", "float32"))
    leads = case.get("leads", [[2, 3]] * 3)
    sizes = [(counts, D_K), (keys, D_K), (keys, case.get("d_v", D_V))]
    whole = [
        draw(*lead, sum(n), d, seed=i, dtype=dtype)
        for i, (lead, (n, d)) in enumerate(zip(leads, sizes, strict=True))
    ]
    whole[0] *= case.get("scale", 1.0)
    mine = [pieces(x, n)[rank].clone().requires_grad_() for x, (n, _) in zip(whole, sizes, strict=True)]
    output = attend_ring(*mine, causal=case["causal"])
    assert output.dtype == dtype

    exact = [x.double().requires_grad_() for x in whole]
    mask = causal_mask(sum(counts)) if case["causal"] else None
    wanted = attend(*exact, mask=mask).output
    gradient = draw(*wanted.shape, seed=9, dtype=dtype)
    output.backward(pieces(gradient, counts)[rank])
    wanted.backward(gradient.double())
    pairs = [(output, pieces(wanted, counts)[rank])]
    pairs += [(x.grad, pieces(e.grad, n)[rank]) for x, e, (n, _) in zip(mine, exact, sizes, strict=True)]
    return largest(pairs)


def cases():
    last = [0] * (dist.get_world_size() - 1) + [11]
    both = {
        "uneven": {}, "even": {"counts": [257] * 4}, "nobody has anything": {"counts": [0] * 4},
        "only the last has": {"counts": last},
        "one width": {"d_v": D_K}, "broadcast": {"leads": [[2, 1], [3], []]},
        "no leading axes": {"leads": [[]] * 3},
        "large scores": {"scale": 300.0, "dtype": "float64"},
        "float64": {"dtype": "float64"}, "bfloat16": {"dtype": "bfloat16"}, "float16": {"dtype": "float16"},
    }  # fmt: skip
    other = {
        "more keys": {"keys": [300, 17, 0, 5]},
        "no keys in one": {"counts": [3] * 4, "keys": [2, 0, 5, 3]},
    }
    found = {name: case | {"causal": False} for name, case in (both | other).items()}
    return found | {f"{name}, causal": case | {"causal": True} for name, case in both.items()}


def two_layers():
    """Attention over attention: the gradient of the second arrives at the first in each process."""
    p, rank = dist.get_world_size(), dist.get_rank()
    counts = UNEVEN[:p]
    whole = draw(2, sum(counts), D_K, seed=3, dtype=torch.float64)
    mine = pieces(whole, counts)[rank].clone().requires_grad_()
    x = attend_ring(mine, mine, mine, causal=True)
    attend_ring(x, x, x).square().sum().backward()
    exact = whole.clone().requires_grad_()
    y = attend(exact, exact, exact, mask=causal_mask(len(exact[0]))).output
    attend(y, y, y).output.square().sum().backward()
    return largest([(mine.grad, pieces(exact.grad, counts)[rank])])


def poison():
    """The last process's values are 1e9; with the causal mask, the others never meet them. The largest output
    of theirs."""
    p, rank = dist.get_world_size(), dist.get_rank()
    # averages of ones are ones
    q, k, v = (draw(11, D_K, seed=rank), draw(11, D_K, seed=7), torch.ones(11, D_V))
    if rank == p - 1:
        v.fill_(1e9)
    output = attend_ring(q, k, v, causal=True)
    return 1.0 if p == 1 or rank == p - 1 else output.max().item()


def without_gradients():
    x = draw(3, D_K, seed=1).requires_grad_()
    with torch.no_grad():
        return (
            not attend_ring(x, x, x).requires_grad
            and not attend_ring(x.detach(), x.detach(), x.detach()).requires_grad
        )


def unfit():
    """What each process says to inputs that do not fit in the last one: {case: sentence}. Then they all work
    on."""
    last = dist.get_rank() == dist.get_world_size() - 1
    x, wide = draw(2, 3, D_K, seed=1), draw(2, 3, D_K + 1, seed=1)
    cases = {
        "no tensor": ((x, None, x), {}),
        "width": ((wide, wide, x), {}),
        "one width": ((x, wide, x), {}),
        "values": ((x, x, wide), {}),
        "leading axes": ((x[0], x[0], x[0]), {}),
        "format": ((x.double(), x.double(), x.double()), {}),
        "causal": ((x, x, x), {"causal": True}),
        "gradient": ((x.clone().requires_grad_(), x, x), {}),
        "device": ((x.to("meta"), x.to("meta"), x.to("meta")), {}),
    }
    said = {}
    for name, (inputs, options) in cases.items():
        try:
            attend_ring(*inputs, **options) if last else attend_ring(x, x, x)
            said[name] = None
        except (TypeError, ValueError) as error:
            said[name] = str(error)
    try:  # a causal mask with fewer keys than queries
        attend_ring(x, x[:, :2], x[:, :2], causal=True) if last else attend_ring(x, x, x, causal=True)
        said["fewer"] = None
    except ValueError as error:
        said["fewer"] = str(error)
    assert attend_ring(x, x, x).shape == x.shape
    return said


def peaks():
    """MiB at the peak, inputs and gradients included, over 2048 tokens of one head of width 128: [forward,
    with backward]."""
    rows = 2048 // dist.get_world_size()

    def call(backward):
        x = [torch.randn(1, rows, 128).requires_grad_(backward) for i in range(3)]
        output = attend_ring(*x)
        if backward:
            torch.autograd.grad(output, x, torch.ones_like(output))

    return [measure.peak_mib(lambda b=b: call(b)) for b in (False, True)]


def sent():
    """Bytes that this process sends, forward and backward, 6 tokens of 2 heads in each process: counted where
    they are sent."""
    counted, real = [], dist.batch_isend_irecv

    def count(calls):
        counted.append(sum(c.tensor.numel() * c.tensor.element_size() for c in calls if c.op is dist.isend))
        return real(calls)

    dist.batch_isend_irecv = count
    x = [draw(2, 6, D_K, seed=i).requires_grad_() for i in range(3)]
    output = attend_ring(*x)
    forward = sum(counted)
    output.sum().backward()
    dist.batch_isend_irecv = real
    return [forward, sum(counted)]


def subgroup():
    """The first and the last in a ring of their own; the one between them is told that it is not in it."""
    if dist.get_world_size() < 3:
        return None
    rank, members = dist.get_rank(), [0, dist.get_world_size() - 1]
    group = dist.new_group(members)
    x = [draw(4, D_K, seed=10 * r) for r in members]
    if rank not in members:
        try:
            attend_ring(x[0], x[0], x[0], group=group)
        except ValueError as error:
            return str(error)
        return "nothing"
    mine = x[members.index(rank)].clone().requires_grad_()
    output = attend_ring(mine, mine, mine, causal=True, group=group)
    output.square().sum().backward()
    whole = torch.cat(x).double().requires_grad_()
    wanted = attend(whole, whole, whole, mask=causal_mask(8)).output
    wanted.square().sum().backward()
    rows = slice(4 * members.index(rank), 4 * members.index(rank) + 4)
    return largest([(output, wanted[rows]), (mine.grad, whole.grad[rows])])


def everything():
    return {
        "equal": {name: equal(case) for name, case in cases().items()},
        "two layers": two_layers(), "poison": poison(), "without gradients": without_gradients(),
        "unfit": unfit() if dist.get_world_size() > 1 else {}, "peaks": peaks(), "sent": sent(),
        "subgroup": subgroup(),
    }  # fmt: skip


def in_a_round(what):
    """Do it when this process, the one of rank 1, computes for the second time: in the midst of the ring."""
    real, calls = ring.attend_part, []

    def attend_part(*inputs, **options):
        calls.append(1)
        if len(calls) == 2:
            what()
        return real(*inputs, **options)

    ring.attend_part = attend_part


def die():
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def fall_out(what, file):
    """The process of rank 1 falls out in one of the ways; the others tell what they saw."""
    # torchrun, which sees that one is gone, asks the others to end: not before they have told
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rank, x = dist.get_rank(), draw(20, D_K, seed=0).requires_grad_()
    # From here on, when all have started. Who only says nothing is noticed by the timeout alone; who is gone
    # ends the connections, however long a busy machine takes over it.
    group = dist.new_group(timeout=timedelta(seconds=4 if what in SILENT else 60))
    attend_ring(x, x, x, group=group)  # all is well
    told: list = [None] * dist.get_world_size()
    dist.all_gather_object(told, os.getpid())
    if rank == 1:
        if what == "raises":
            raise KeyError("a mistake of its own")
        if what == "dies in a round":
            in_a_round(die)
    try:
        output = attend_ring(x, x, x, group=group)
        if what == "no backward" and rank == 1:
            time.sleep(100)
        output.sum().backward()
    except RuntimeError as error:
        Path(f"{file}.{rank}").write_text(json.dumps([str(error), str(error.__cause__)]), encoding="utf-8")
        if what in SILENT and hasattr(signal, "SIGKILL"):
            os.kill(told[1], signal.SIGKILL)  # torchrun asks politely, and waits half a minute
        raise


def main(what, file):
    if what == "everything":
        measure.peak_mib(lambda: None)  # before there is a group: see experiments.ring.join
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    if what != "everything":
        return fall_out(what, file)
    found = everything()
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, found)
    if dist.get_rank() == 0:
        Path(file).write_text(json.dumps(told), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
