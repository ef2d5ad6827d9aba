"""What attention over speech costs: four kinds that compute the same, and memory by hand."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.experiments import lengths
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


def test_what_cannot_be_measured_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="kind must be one of table, mask over the table"):
        lengths.seconds("full", 2)
    with pytest.raises(ValueError, match="n must be a whole number >= 1"):
        lengths.table_mib(0)
