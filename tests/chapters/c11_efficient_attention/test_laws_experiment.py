"""What attention costs at any length: seven kinds, laws by hand, a ring's memory as measured."""

import math

import pytest
import torch
from torch.testing import assert_close

from lesson_lib import measure, ring
from lesson_lib.attention import attend
from lesson_lib.chapters.c11_efficient_attention.experiments import laws
from lesson_lib.device import device, on, to_device
from lesson_lib.efficient import TILE, RandomFeatures
from lesson_lib.experiments import results
from lesson_lib.linear import attend_linear
from lesson_lib.masks import window
from lesson_lib.measure import Law

N = 307


def test_kinds_are_what_their_names_say():
    q, k, v = (torch.randn(1, 2, N, 64) for _ in range(3))
    full = attend(q, k, v).output
    features = to_device(RandomFeatures(64, 256))
    wanted = {
        "table": full, "full": full, "tiles": full, "window": attend(q, k, v, mask=window(N, 128)).output,
        "linear": attend_linear(q, k, v), "random features": attend_linear(q, k, v, phi=features),
    }  # fmt: skip
    for kind, y in wanted.items():
        assert_close(laws.layer(kind, N)[0](q, k, v), y, atol=1e-5, rtol=1e-5)
    low, own = laws.layer("low rank", N)
    assert low(q, k, v).shape == q.shape and low.rank == 256 and low.n == N
    assert own == 2 * 256 * N * 4 / 2**20
    assert laws.layer("random features", N)[1] == 256 * 64 * 4 / 2**20
    assert {laws.layer(kind, N)[1] for kind in ("table", "full", "tiles", "window", "linear")} == {0.0}


def test_a_layers_own_matrices_count():
    mixed = laws.mib("low rank", 1024)
    own, output = 2 * 256 * 1024 * 4 / 2**20, 8 * 1024 * 64 * 4 / 2**20
    assert own + output < mixed < own + 2 * output


def made(constant, linear, quadratic, *, off=1.0, kind="full"):
    """Three repeats of points on a law; the held-out ones are `off` times that."""
    law = Law(constant, linear, quadratic)
    return [
        {"kind": kind, "seed": seed, "n": n, "held_out": n > 2**10,
        "cpu_s": noise * law.at(n) * (off if n > 2**10 else 1), "mib": float(n)}
        for seed, noise in enumerate((0.5, 1.0, 7.0)) for n in (2**k for k in range(5, 13))
    ]  # fmt: skip


def test_laws_are_fitted_to_medians_of_what_is_not_held_out():
    rows = made(3.0, 0.01, 1e-4, off=2.0)
    (law,) = laws.laws(rows).values()
    assert (law.constant, law.linear, law.quadratic) == pytest.approx((3.0, 0.01, 1e-4), rel=1e-6)
    found = laws.checked(rows)["full"]
    assert [*found] == [2048, 4096]
    for n, (predicted, measured) in found.items():
        assert predicted == pytest.approx(3 + 0.01 * n + 1e-4 * n * n) and measured == pytest.approx(
            2 * predicted
        )
    assert len(laws.points(rows)["full"]) == 8 and [*laws.points(rows, held_out=True)["full"]] == [2048, 4096]
    mib = laws.laws(rows, "mib")["full"]
    assert (mib.constant, mib.linear, mib.quadratic) == pytest.approx((0, 1, 0), abs=1e-9)


def test_a_kind_that_is_linear_in_theory_has_no_quadratic_part():
    bent = made(3.0, 0.01, 1e-6, kind="window")
    assert laws.laws(bent)["window"].quadratic == 0
    assert laws.laws(made(3.0, 0.01, 1e-6))["full"].quadratic > 0


def test_a_machine_holds_the_inputs_too():
    ((seconds, mib),) = laws.machine_laws(made(3.0, 0.01, 1e-4)).values()
    assert seconds.at(100) == pytest.approx(3 + 1 + 1)
    assert mib.at(1024) == pytest.approx(
        1024 + 6
    )  # 3 tensors of 8 heads x 64 numbers of 4 bytes: 2 KiB a token each
    assert laws.tokens_mib(1024) == 8.0 and laws.tokens_mib(10, heads=3, width=7) == 4 * 10 * 21 * 4 / 2**20


class Alone(ring._Ring):
    """A ring of one process that thinks there were more: what it would send stays, and what comes is a new
    block."""

    def __init__(self, size):
        self.size, self.rank = size, 0

    def _with_others(self, call):
        return call()

    def send_on(self, block, like):
        coming = ring._Coming(self, [], block.new_zeros(*like))
        coming.sent = block
        return coming


@pytest.mark.parametrize(
    "own, machines", [(64, 5), (TILE, 1), (TILE, 2), (300, 1), (300, 3), (512, 1), (512, 3), (2048, 2)]
)
def test_a_rings_memory_is_what_its_code_takes(own, machines):
    """Between two whole tiles the second one is smaller than computed; nowhere does the code take more than
    computed."""
    q, k, v = (torch.randn(1, 8, own, 64, device="cpu") for _ in range(3))  # elsewhere an allocator rounds up

    def call():
        with torch.no_grad():
            return ring._Attend.apply(q, k, v, Alone(machines), [own] * machines, False)

    inputs = 3 * 8 * own * 64 * 4 / 2**20
    with on("cpu"):
        found, computed = measure.peak_mib(call) + inputs, laws.ring_mib(own * machines, machines)
    assert found <= computed * 1.0001
    assert found >= (0.95 if own == 300 else 0.995) * computed


def test_a_rings_memory_by_hand():
    """2048 tokens over 2 machines, 2 heads of width 64: 1024 tokens each, a tensor of 0.5 MiB."""
    tensor, logs = 0.5, 1024 * 2 * 4 / 2**20
    tile = 2 * 256 * (256 + 256 + 4 * 64 + 6) * 4 / 2**20
    assert laws.ring_mib(2048, 2, heads=2) == pytest.approx(8 * tensor + logs + tile)
    assert laws.ring_mib(1024, 1, heads=2) == pytest.approx(6 * tensor + logs + tile)
    assert laws.ring_mib(2047, 2) == laws.ring_mib(2048, 2)  # rounded up


@pytest.mark.parametrize(
    "n, memory_mib", [(1000, 8192), (10**6, 8192), (10**9, 8192), (10**9, 81920.0), (12345, 9)]
)
def test_the_machines_needed_are_the_fewest_that_fit(n, memory_mib):
    count = laws.machines_needed(n, memory_mib)
    assert laws.ring_mib(n, count) <= memory_mib
    assert count == 1 or laws.ring_mib(n, count - 1) > memory_mib
    if n == 1000:
        assert count == 1
    if n == 10**9:  # 8 tensors of 2 KiB a token, and a logarithm for each 64 numbers of one
        assert count == pytest.approx((8 + 1 / 64) * 2048 * n / 2**20 / (memory_mib - 6), abs=1.5)


def test_a_machine_that_holds_not_even_a_token_gets_a_sentence():
    with pytest.raises(ValueError, match=r"memory_mib must be at least 0\.0.*one token in each machine"):
        laws.machines_needed(1000, 0.01)


@pytest.fixture(scope="module")
def rows():
    return results("laws")["rows"]


def test_stored_mib_are_the_same_in_every_repeat_and_now(rows):
    found = {}
    for row in rows:
        found.setdefault((row["kind"], row["n"]), set()).add(row["mib"])
    assert all(len(peaks) == 1 for peaks in found.values())
    if device().type == "cpu":
        for kind in laws.KINDS:
            (stored,) = found[kind, 512]
            assert laws.mib(kind, 512) == pytest.approx(stored, rel=0.02), kind


def test_what_cannot_be_measured_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="kind must be one of table, full, tiles"):
        laws.mib("fused", 2)
    with pytest.raises(ValueError, match="n must be a whole number >= 1"):
        laws.seconds("full", 2.5)
    with pytest.raises(ValueError, match=r"memory_mib must be a number > 0, got .*"):
        laws.machines_needed(1000, math.nan)
