"""The ring's experiment: rows and tokens by hand, a small live run of it and of the command."""

import itertools
import sys

import pytest
import torch

from lesson_lib import cli
from lesson_lib.chapters.c11_efficient_attention.experiments import ring
from lesson_lib.cli import ring as command

PARTS = ("processes", "tokens", "causal", "backward")


@pytest.mark.parametrize("tokens, processes", [(11, 3), (2, 4), (0, 2), (8192, 3), (7, 1)])
def test_every_token_is_in_one_process(tokens, processes):
    found = [ring.rows_of(rank, processes, tokens) for rank in range(processes)]
    assert [*itertools.chain(*found)] == [*range(tokens)]
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_what_is_sent_by_hand_and_memory_of_the_largest_repeat():
    mib = 2**20 / 4  # numbers of 4 bytes in a MiB
    # 2 heads, 6 tokens, width 5: a tensor of all has 60 numbers
    assert ring.sent_mib(6, 1, heads=2, width=5, backward=True) == 0
    assert ring.sent_mib(6, 3, heads=2, width=5) * mib == pytest.approx(2 * 40)  # 2 times 2 tensors of 20
    assert ring.sent_mib(6, 3, heads=2, width=5, backward=True) * mib == pytest.approx((2 + 2 + 3) * 40)
    rows = [
        {"processes": p, "tokens": 8, "causal": causal, "backward": False, "mib": mib}
        for p, causal, mib in [(1, False, 4.0), (2, False, 2.0), (2, False, 2.5), (2, True, 9.0)]
    ]
    assert ring.memory(rows) == {(8, False): {1: 4.0, 2: 2.5}}
    assert ring.memory(rows, causal=True) == {(8, False): {2: 9.0}}


def test_a_small_run_gives_the_same_kind_of_rows(monkeypatch):
    small = {
        "processes": [2], "tokens": [301], "heads": 2, "width": 8, "causal": [True],
        "backward": [False, True], "seeds": [5],
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setitem(ring.RECIPE, name, value)
    forward, backward = ring.run(5)
    assert forward.keys() == {
        "seed", *PARTS, "seconds", "cpu_s", "mib", "sent_mib", "error", "compared",
    }  # fmt: skip
    assert (forward["seed"], forward["processes"], forward["tokens"], forward["compared"]) == (5, 2, 301, 301)
    assert not forward["backward"] and backward["backward"] and forward["causal"]
    assert 0 < forward["error"] < 1e-5 and 0 < backward["error"] < 1e-5
    assert forward["mib"] < backward["mib"]


def test_a_run_that_fails_says_why(monkeypatch):
    monkeypatch.setitem(ring.RECIPE, "processes", [1])
    monkeypatch.setattr(
        ring, "torchrun", lambda *_, **__: type("Done", (), {"returncode": 1, "stderr": "no memory"})()
    )
    with pytest.raises(RuntimeError, match="torchrun ended with 1; it said: no memory"):
        ring.run(0)


def test_processes_meet_where_no_name_of_the_computer_is_needed(monkeypatch, tmp_path):
    """Without a network, or in a container, nobody may know that name: torchrun would look for it during
    minutes."""
    unknown = 'import socket; socket.getfqdn = lambda name="": "nobody-knows.invalid"'
    (tmp_path / "sitecustomize.py").write_text(unknown)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    where = "import os; print(os.environ['MASTER_ADDR'])"
    done = ring.torchrun(1, "--no-python", sys.executable, "-c", where, wait_s=120)
    assert done.stdout.split() == ["localhost"], done.stderr[-2000:]


def test_a_line_says_how_many_queries_were_compared():
    row = {
        "processes": 4, "tokens": 32768, "seconds": 1.93, "mib": 21.31, "sent_mib": 48.0, "error": 2.4e-7,
        "compared": 1024,
    }  # fmt: skip
    told = "processes 4 · tokens 32,768 ·   1.9 s ·   21.3 MiB per process ·   48.0 MiB sent · largest"
    assert command.line(row) == told + " difference 2e-07 (of 1,024 queries)"


def test_without_torchrun_the_command_says_how_to_start_it(monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    assert cli.main(["ring"]) == 1
    said = "torchrun --standalone --local-addr localhost --nproc-per-node 4 -m lesson_lib ring"
    assert f"make ring, or: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["tokens", "heads", "width"])
def test_sizes_below_one_get_a_sentence(option, capsys):
    assert cli.main(["ring", f"--{option}", "0"]) == 1
    assert f"ring needs whole numbers >= 1, got --{option} 0" in capsys.readouterr().err


def test_the_group_waits_for_slow_processes_and_not_for_ever(monkeypatch):
    """On the CPU with gloo, unless there is a GPU for each process."""
    seen = {}
    monkeypatch.setenv("LESSON_DEVICE", "cpu")
    monkeypatch.setattr(
        ring.dist,
        "init_process_group",
        lambda backend, timeout: seen.update({backend: timeout.total_seconds()}),
    )
    ring.join(1000, 4, 25)
    assert seen == {"gloo": pytest.approx(120.7)}
    # which asks the GPU that is only pretended
    monkeypatch.setattr(ring.measure, "peak_mib", lambda call: 0.0)
    gpu = torch.device("cuda")
    monkeypatch.setattr(ring, "device", lambda: gpu)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: seen.update(number=number))
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    ring.join(0, 1, 1)
    assert seen["nccl"] == 120 and seen["number"] == 1 and ring.os.environ["LESSON_DEVICE"] == "cuda"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")  # one more than there are GPUs
    ring.join(0, 1, 1)
    assert seen["gloo"] == 120 and ring.os.environ["LESSON_DEVICE"] == "cpu"
