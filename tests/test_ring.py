"""Ring attention in real processes: equal to `attend`, memory as counted, and no hang when one falls out.

What a process does stands in ring_worker.py. One start for each number of processes checks everything that
ends well: forks of this one where the system has them, else processes of torchrun, which import torch anew.
"""

import functools
import json
import multiprocessing
import os
import socket
import sys

import jaxtyping
import pytest
import torch

from lesson_lib.chapters.c11_efficient_attention.experiments.ring import sent_mib, torchrun
from lesson_lib.ring import attend_ring
from tests import ring_worker
from tests.ring_worker import SILENT

PROCESSES = [1, 2, 3, 4]
FALLS_OUT = {"dies in a round": 3, "raises": 2, "no backward": 2}  # of how many
CPU = {"LESSON_DEVICE": "cpu"}  # gloo sends from the CPU


def held_mib(
    tokens: int, processes: int, *, heads: int, width: int, backward: bool = False, size: int = 4
) -> float:
    """MiB that the busiest process must hold at the peak, by counting its tensors; what is measured comes to
    that, and a few tiles of scores.

    One unit is a tensor (heads, its tokens, width), `size` bytes a number. Query, key, value and output are
    4; the block of keys and values that it computes with 2, the one that comes 2: together 8. Backward 14:
    the gradients of the output and of the queries 2 more, those of the block 2, and 2 of the block that
    comes. A single process gets no block from elsewhere: 6 and 10. And one number for each query and head:
    its log_sum. Causal with backward, up to 2 more were measured from two processes on; which ones is not
    known.
    """
    rows = -(-tokens // processes)
    alone = processes == 1
    units = (10 if alone else 14) if backward else (6 if alone else 8)
    return heads * rows * (units * width + 1) * size / 2**20


def fork(processes, file):
    """Start that many forks of this process, and wait for them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def work(rank):
        os.environ |= CPU | {"RANK": str(rank), "WORLD_SIZE": str(processes)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        torch.set_num_threads(1)
        torch.set_default_device(None)
        jaxtyping.config.update("jaxtyping_disable", True)  # the library's own sentences are asked for
        ring_worker.main("everything", str(file))

    begun = [multiprocessing.get_context("fork").Process(target=work, args=(r,)) for r in range(processes)]
    for process in begun:
        process.start()
    for process in begun:
        process.join(300)
    assert [process.exitcode for process in begun] == [0] * processes


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each process of that many found."""
    folder = tmp_path_factory.mktemp("ring")

    @functools.cache
    def start(processes):
        file = folder / f"{processes}.json"
        if sys.platform == "linux":
            fork(processes, file)
        else:
            line = ("-m", "tests.ring_worker", "everything", str(file))
            done = torchrun(processes, *line, environment=CPU, wait_s=300)
            assert done.returncode == 0, done.stderr[-3000:]
        found = json.loads(file.read_text(encoding="utf-8"))
        assert len(found) == processes
        return found

    return start


@pytest.mark.parametrize("p", PROCESSES)
def test_outputs_and_gradients_are_those_of_one_process(p, told):
    """Uneven lengths, an empty process, other leading axes, causal or not: 1e-5 in float32, to rounding in
    float64."""
    bounds = {"float64": 1e-13, "large scores": 1e-9, "float16": 1e-2, "bfloat16": 5e-2}
    for mine in told(p):
        assert len(mine["equal"]) == 24
        for case, largest in mine["equal"].items():
            assert 0 <= largest < bounds.get(case.removesuffix(", causal"), 1e-5), case
        assert 0 <= mine["two layers"] < 1e-12


@pytest.mark.parametrize("p", PROCESSES)
def test_later_tokens_of_other_processes_are_hidden(p, told):
    """Their values are 1e9, all others 1."""
    assert [mine["poison"] for mine in told(p)] == pytest.approx([1.0] * p)


@pytest.mark.parametrize("p", PROCESSES)
def test_without_gradients_nothing_is_kept(p, told):
    assert all(mine["without gradients"] for mine in told(p))


@pytest.mark.parametrize("p", PROCESSES)
def test_a_process_holds_what_is_counted(p, told):
    """Its own tokens, two blocks, the gradients; and a few tiles of 256 x 256, whatever p is: at most 2 MiB
    of one head of width 128."""
    for mine in told(p):
        for backward, peak in zip((False, True), mine["peaks"], strict=True):
            held = held_mib(2048, p, heads=1, width=128, backward=backward)
            assert held < peak < held + 2, f"{backward=}"


@pytest.mark.parametrize("backward", [False, True])
def test_memory_falls_as_one_over_p(backward, told):
    """p times the peak stays within twice that of one process; and it is a line in 1/p, of what is counted,
    over the tiles, which do not shrink."""
    peak = {p: max(mine["peaks"][backward] for mine in told(p)) for p in PROCESSES}
    assert peak[1] > peak[2] > peak[3] > peak[4] and peak[4] < 0.5 * peak[1]
    assert all(peak[1] < p * peak[p] < 2 * peak[1] for p in (2, 3, 4))
    of_all = (peak[2] - peak[4]) * 4  # a of a / p + c, through the points at 2 and 4
    counted = 2 * held_mib(2048, 2, heads=1, width=128, backward=backward)
    # backward, the peak is at 14 tensors of a process's rows, or where those are small, at 12 and the tiles
    assert (12 / 14 if backward else 1) * counted * 0.99 < of_all < counted * 1.01
    assert peak[3] == pytest.approx(of_all / 3 + peak[2] - of_all / 2, rel=0.01 if not backward else 0.03)


@pytest.mark.parametrize("p", PROCESSES)
def test_a_process_sends_what_is_counted(p, told):
    by_formula = [sent_mib(6 * p, p, heads=2, width=5, backward=backward) for backward in (False, True)]
    assert all(mine["sent"] == pytest.approx([mib * 2**20 for mib in by_formula]) for mine in told(p))
    assert p > 1 or by_formula == [0, 0]


@pytest.mark.parametrize("p", PROCESSES[1:])
def test_inputs_that_do_not_fit_are_refused_in_all_processes(p, told):
    """In the same words in those whose own inputs are in order. (Afterwards the worker makes a call that
    works.)"""
    parts = {
        "no tensor": "key must be a tensor, got NoneType",
        "width": "the width of keys must be the same in all processes, got 5",
        "one width": "query has width 5 and key 6",
        "values": "the width of values must be the same in all processes",
        "leading axes": "the leading axes must be the same in all processes, got (2,)",
        "format": "the number format must be the same in all processes, got torch.float32",
        "causal": "causal must be the same in all processes, got False",
        "gradient": "whether a gradient is wanted must be the same in all processes",
        "device": "the inputs are on meta, from where this group (gloo) sends nothing",
        "fewer": "a causal mask needs a query for each key, got 3 and 2",
    }
    last = p - 1
    for rank, mine in enumerate(told(p)):
        assert mine["unfit"].keys() == parts.keys()
        for case, part in parts.items():
            said = mine["unfit"][case]
            if rank == last:
                assert part.split(", got")[0] in said, case
            else:
                assert part in said and f"process {last}" in said, case


@pytest.mark.parametrize("p", [3, 4])
def test_a_group_of_some_processes(p, told):
    first, *between, last = (mine["subgroup"] for mine in told(p))
    assert 0 <= first < 1e-5 and 0 <= last < 1e-5
    assert between == ["this process is not in the group; call attend_ring in its members only"] * (p - 2)


@pytest.mark.parametrize("what", FALLS_OUT)
def test_a_process_that_falls_out_ends_the_run(what, tmp_path):
    """With a sentence in each of the others: since it is gone, or else after the group's timeout."""
    p = FALLS_OUT[what]
    done = torchrun(
        p, "--monitor-interval", "1", "-m", "tests.ring_worker", what, str(tmp_path / "told"),
        environment=CPU, wait_s=120,
    )  # fmt: skip
    assert done.returncode != 0
    for rank in (0, 2)[: p - 1]:
        said, reason = json.loads((tmp_path / f"told.{rank}").read_text(encoding="utf-8"))
        assert said.startswith(
            f"process {rank} of {p} has lost another one: it has died, or it did not answer"
        )
        assert "mend it, and start them all again" in said and said in done.stderr
        assert ("Timed out" in reason) == (what in SILENT), reason  # else it was noticed by the timeout only
    if what == "raises":
        assert "a mistake of its own" in done.stderr


def test_without_a_process_group_there_is_a_sentence():
    x = torch.ones(2, 3)
    with pytest.raises(
        ValueError, match="attend_ring needs a process group; start the program with torchrun"
    ):
        attend_ring(x, x, x)
