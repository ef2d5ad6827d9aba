"""Seconds on a GPU beside the CPU's: what is timed is what the lessons tell, what is told is what was
measured, and nothing where nothing was."""

import json
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from lesson_lib import experiments, measure
from lesson_lib.device import on
from lesson_lib.experiments import devices

N = 11
SMALL = {
    series: recipe | {"shortest": 7, "longest": dict.fromkeys(recipe["longest"], 14)}
    for series, recipe in devices.RECIPE.items() if isinstance(recipe, dict)
}  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    """Two lengths for every kind."""
    for series, recipe in SMALL.items():
        monkeypatch.setitem(devices.RECIPE, series, recipe)


@pytest.fixture
def a_gpu(monkeypatch):
    """A GPU for those who ask which device it is; what computes is the lessons' device as ever, and each call
    takes a millisecond more than the one before."""
    calls = count(1)

    def seconds(call, repeats):
        call()
        return next(calls) / 1000

    monkeypatch.setattr(devices, "device", lambda: SimpleNamespace(type="xpu"))
    monkeypatch.setattr(experiments, "gpu_name", lambda: "a made-up GPU")
    monkeypatch.setattr(measure, "seconds", seconds)


@pytest.fixture
def file(monkeypatch, tmp_path):
    """A stored run of made-up numbers on a made-up GPU."""
    rows = [
        {"series": series, "kind": "poison" if where == "cpu" else "made up", "n": 3, "device": where,
        "seconds": 0.5, "seed": 0}
        for series in devices.MAKERS for where in ("gpu", "cpu")
    ]  # fmt: skip
    stored = {"recipe": devices.RECIPE, "date": "2000-01-01", "gpu": "a made-up GPU", "rows": rows}
    (tmp_path / "devices.json").write_text(json.dumps(stored), encoding="utf-8")
    monkeypatch.setattr(experiments, "stored_at", lambda name: tmp_path / f"{name}.json")
    return stored


def test_without_a_gpu_and_without_a_stored_run_nothing_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "stored_at", lambda name: tmp_path / f"{name}.json")
    with on("cpu"):
        for series in devices.MAKERS:
            assert devices.beside(series) == ([], "No GPU has been measured yet.")


def test_without_a_gpu_the_stored_one_is_told_with_its_name_and_date(file):
    with on("cpu"):
        rows, label = devices.beside("layers")
    assert label == "a made-up GPU, 2000-01-01, not this machine"
    assert [(row["series"], row["kind"], row["n"], row["seconds"]) for row in rows] == [
        ("layers", "made up", 3, 0.5)
    ]


def test_a_gpu_at_hand_is_measured_whatever_is_stored(file, small, a_gpu):
    rows, label = devices.beside("loop")
    assert label == "a made-up GPU, measured just now"
    assert rows == [
        {"series": "loop", "kind": kind, "n": n, "device": "gpu", "seconds": k / 1000}
        for k, (kind, n) in enumerate([("loop", 7), ("loop", 14), ("product", 7), ("product", 14)], 1)
    ]


def test_a_run_without_a_gpu_gets_a_sentence():
    with (
        on("cpu"),
        pytest.raises(RuntimeError, match=r"needs a GPU, .* on the CPU here; run it on a machine with a GPU"),
    ):
        devices.run(0)


def test_a_kind_ends_where_it_is_too_slow_or_too_large(monkeypatch, small, a_gpu):
    monkeypatch.setitem(devices.RECIPE, "loop", SMALL["loop"] | {"longest": {"loop": 56, "product": 56}})
    taken = {("loop", 7): 0.1, ("loop", 14): 9.0, ("product", 7): 0.1, ("product", 14): 0.2}

    def seconds(call, repeats):
        return call()

    def call(series, kind, n):
        def once():
            if kind == "product" and n > 14:
                raise torch.OutOfMemoryError("no room")
            return taken.get((kind, n), 0.1)

        return once

    monkeypatch.setattr(measure, "seconds", seconds)
    monkeypatch.setattr(devices, "call", call)
    found = {(row["kind"], row["n"]): row["seconds"] for row in devices.measured("loop")}
    assert found == taken


@pytest.mark.parametrize("series, one, other", [("loop", "loop", "product"), ("graph", "edges", "table")])
def test_two_ways_of_a_series_give_the_same_numbers(series, one, other, monkeypatch):
    # an edge that is listed twice counts twice, but not in a mask
    monkeypatch.setitem(devices.RECIPE["graph"], "degree", 1)
    outputs = []
    for kind in (one, other):
        torch.manual_seed(0)
        outputs.append(devices.call(series, kind, N)())
    assert_close(*outputs, atol=1e-5, rtol=1e-5)
    assert outputs[0].shape == {"loop": (N, 64), "graph": (N, 32)}[series]


def test_what_is_not_measured_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="series must be one of scores, loop, layers, speech, graph, next"):
        devices.beside("rounds")
    with pytest.raises(ValueError, match="kind must be one of loop, product"):
        devices.call("loop", "loops", N)
