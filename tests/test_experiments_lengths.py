"""What attention over speech costs: four kinds that compute the same, memory by hand, and the stored
repeats."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.experiments import lengths, results
from lesson_lib.masks import window

N = 101


def test_kinds_are_what_their_names_say():
    q, k, v = (torch.randn(1, 2, N, 5) for _ in range(3))
    full, near = attend(q, k, v).output, attend(q, k, v, mask=window(N, lengths.RECIPE["radius"])).output
    assert not torch.allclose(full, near)
    wanted = {"table": full, "fused": full, "mask over the table": near, "window": near}
    assert wanted.keys() == set(lengths.KINDS)
    for kind, y in wanted.items():
        assert_close(lengths.layer(kind)(q, k, v), y, atol=1e-5, rtol=1e-5)


def test_the_radius_is_150_ms():
    assert lengths.RECIPE["radius"] * 1000 / lengths.RECIPE["frames_per_s"] == 150


def test_only_two_kinds_hold_a_table():
    n = 700
    table = lengths.table_mib(n)
    peaks = {kind: lengths.mib(kind, n) for kind in lengths.KINDS}
    assert peaks["table"] >= 0.99 * table
    assert peaks["mask over the table"] > 1.9 * table  # scores, and scores with what is hidden
    assert peaks["window"] < table / 4
    if lengths.measure.device().type == "cpu":
        assert peaks["fused"] < table / 4
    for kind in lengths.KINDS:
        assert lengths.mib(kind, n, backward=True) > peaks[kind]


@pytest.mark.parametrize("n, heads, expected", [(100, 8, 320_000), (6000, 8, 1_152_000_000), (1, 1, 4)])
def test_the_table_by_hand(n, heads, expected):
    assert lengths.table_mib(n, heads) * 2**20 == expected


def test_seconds_are_medians_after_a_call_to_warm_up(monkeypatch):
    now, waits = [0.0], iter([9, 5, 1, 2])

    def call():
        now[0] += next(waits)

    monkeypatch.setattr(lengths, "_pass", lambda kind, n, backward: call)
    monkeypatch.setattr(lengths.measure, "clock", lambda: now[0])
    assert lengths.seconds("window", N, rounds=3) == 2


def test_backward_makes_gradients_of_all_three(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.autograd, "grad", lambda y, of, weigh: asked.append([x.shape for x in of]))
    lengths._pass("window", N, backward=False)()
    assert asked == []
    lengths._pass("window", N, backward=True)()
    assert asked == [[(1, 8, N, 64)] * 3]


def test_exponents_by_hand():
    rows = [
        {"kind": kind, "n": n, "backward": backward, "cpu_s": c + n**p, "mib": n**q, "seed": c}
        for kind, p, q in (("a", 2, 1), ("b", 1, 2))
        for n in (1, 100, 10**4, 10**6)
        for c in (0, 1, 2)
        for backward in (False,)
    ]
    assert lengths.exponents(rows) == pytest.approx({"a": 2, "b": 1}, abs=1e-3)
    assert lengths.exponents(rows, "mib") == pytest.approx({"a": 1, "b": 2})
    rows += [{**row, "backward": True, "cpu_s": 1.0 * row["n"] ** 3} for row in rows]
    assert lengths.exponents(rows, backward=True) == pytest.approx({"a": 3, "b": 3})
    assert lengths.exponents(rows) == pytest.approx({"a": 2, "b": 1}, abs=1e-3)


def test_a_run_has_a_row_for_each_kind_length_and_direction(monkeypatch):
    monkeypatch.setitem(lengths.RECIPE, "speech_s", [1, 2, 3])
    monkeypatch.setitem(lengths.RECIPE, "longest_s", {"table": [2, 1], "window": [3, 3]})
    rows = lengths.run(7)
    assert [(row["kind"], row["speech_s"], row["backward"]) for row in rows] == [
        ("table", 1, False), ("window", 1, False), ("table", 2, False), ("window", 2, False),
        ("window", 3, False),
        ("table", 1, True), ("window", 1, True), ("window", 2, True), ("window", 3, True),
    ]  # fmt: skip
    for row in rows:
        assert row["n"] == 100 * row["speech_s"] and row["seed"] == 7
        assert row["cpu_s"] > 0 and row["mib"] > 0


@pytest.mark.parametrize("kind", ["full", None, 3, ["table"]])
def test_another_kind_gets_a_sentence(kind, no_shape_hook):
    for call in (lengths.layer, lambda kind: lengths.seconds(kind, 2), lambda kind: lengths.mib(kind, 2)):
        with pytest.raises(
            ValueError, match="kind must be one of table, mask over the table, fused, window, got"
        ):
            call(kind)


@pytest.mark.parametrize("n", [0, -1, 2.5, None, True, "9"])
def test_a_length_that_is_none_gets_a_sentence(n, no_shape_hook):
    for call in (
        lambda: lengths.seconds("window", n),
        lambda: lengths.mib("window", n),
        lambda: lengths.table_mib(n),
    ):
        with pytest.raises(ValueError, match="n must be a whole number >= 1"):
            call()
    with pytest.raises(ValueError, match="rounds must be a whole number >= 1"):
        lengths.seconds("window", 3, rounds=n)


@pytest.fixture(scope="module")
def rows():
    return results("lengths")["rows"]


def test_stored_rows_are_complete(rows):
    kept = [(row["seed"], row["backward"], row["speech_s"], row["kind"]) for row in rows]
    assert kept == [
        (seed, backward, s, kind)
        for seed in (0, 1, 2)
        for backward in (False, True)
        for s in lengths.RECIPE["speech_s"]
        for kind, longest in lengths.RECIPE["longest_s"].items()
        if s <= longest[backward]
    ]
    assert all(row["n"] == 100 * row["speech_s"] for row in rows)


def test_stored_mib_are_the_same_in_every_repeat_and_now(rows):
    found = {}
    for row in rows:
        found.setdefault((row["kind"], row["n"], row["backward"]), set()).add(row["mib"])
    assert all(len(peaks) == 1 for peaks in found.values())
    if lengths.measure.device().type == "cpu":
        for kind in lengths.KINDS:
            for backward in (False, True):
                (stored,) = found[kind, 500, backward]
                assert lengths.mib(kind, 500, backward=backward) == pytest.approx(stored, rel=0.02)


def test_stored_tables_are_as_large_as_computed(rows):
    """80 seconds of speech: one table of nearly two GiB for a layer, two of them with a mask."""
    (table,), (masked,) = (
        {row["mib"] for row in rows if row["kind"] == kind and row["speech_s"] == 80 and not row["backward"]}
        for kind in ("table", "mask over the table")
    )
    computed = lengths.table_mib(8000)
    assert table == pytest.approx(computed, rel=0.02) and masked == pytest.approx(2 * computed, rel=0.1)


@pytest.mark.parametrize("backward", [False, True])
def test_stored_powers(rows, backward):
    """Squared for all pairs, in proportion for the window (seconds a little more); memory of what holds no
    table in proportion, too."""
    mib = lengths.exponents(rows, "mib", backward=backward)
    for kind, power in {"table": 2, "mask over the table": 2, "fused": 1, "window": 1}.items():
        assert mib[kind] == pytest.approx(power, abs=0.01 if kind == "window" else 0.06), kind
    for seed in lengths.RECIPE["seeds"]:
        cpu_s = lengths.exponents([row for row in rows if row["seed"] == seed], backward=backward)
        assert 0.9 < cpu_s["window"] < 1.3
        for kind in ("table", "mask over the table", "fused"):
            assert 1.8 < cpu_s[kind] < 2.7, kind


@pytest.mark.parametrize("backward", [False, True])
def test_stored_mask_saves_nothing_and_the_window_saves_time(rows, backward):
    """A mask over the table costs more than no mask, at every length; the window takes the least time of all
    from 5 s on.

    Memory is least in the fused kernel, which holds no table either: the window needs about twice as much.
    """
    at = {(row["seed"], row["backward"], row["kind"], row["speech_s"]): row for row in rows}
    for seed in lengths.RECIPE["seeds"]:
        for s in lengths.RECIPE["speech_s"]:
            here = {
                kind: at[seed, backward, kind, s] for kind in lengths.KINDS if (seed, backward, kind, s) in at
            }
            if "table" in here:
                for of in ("cpu_s", "mib"):
                    assert here["mask over the table"][of] > here["table"][of]
            if s >= 5:
                assert min(here, key=lambda kind: here[kind]["cpu_s"]) == "window"
            if "fused" in here:
                assert min(here, key=lambda kind: here[kind]["mib"]) == "fused"
                assert here["window"]["mib"] < 2.1 * here["fused"]["mib"]
