"""Costs at any length: points, names that stand apart, and numbers as people say them."""

import pytest

from lesson_lib.chapters.c11_efficient_attention import scale_figures
from lesson_lib.chapters.c11_efficient_attention.scale_figures import (
    DAY,
    HOUR,
    YEAR,
    human_count,
    human_mib,
    human_seconds,
)
from lesson_lib.measure import Law

LAWS = {"table": Law(0.01, 0, 2e-8), "window": Law(0.001, 1e-5, 0), "low rank": Law(0.001, 1.01e-5, 0)}


def rows():
    return [
        {"kind": kind, "seed": seed, "n": n, "held_out": n > 1024, "cpu_s": noise * law.at(n),
        "mib": 2 * law.at(n)}
        for seed, noise in enumerate((0.5, 1.0, 9.0)) for kind,
        law in LAWS.items() for n in (512, 1024, 2048, 4096)
    ]  # fmt: skip


def test_points_are_medians_and_know_whether_they_were_held_out():
    points = scale_figures._points(rows(), "cpu_s")
    for kind, law in LAWS.items():
        assert points[kind] == {n: (pytest.approx(law.at(n)), n > 1024) for n in (512, 1024, 2048, 4096)}


def test_names_that_meet_stand_round_their_mean_and_others_stay():
    room = scale_figures.ROOM
    places = scale_figures._apart({"b": 0.5, "far": 0.9, "a": 0.5, "low": 0.1, "c": 0.5 + room / 2})
    assert places["far"] == 0.9 and places["low"] == 0.1
    assert sorted((places["a"], places["b"])) == pytest.approx([0.5 + room / 6 - room, 0.5 + room / 6])
    assert places["c"] == pytest.approx(0.5 + room / 6 + room)
    assert scale_figures._apart({}) == {}


def test_the_table_holds_what_the_laws_say_and_marks_what_is_far():
    table = scale_figures.scale_table(
        {"a<b": (Law(0, 1e-3, 0), Law(1, 0, 0)), "far": (Law(0, 0, 1), Law(0, 2**-20, 0))},
        longest={"a<b": 10**8, "far": 512},
    )
    assert table.rows["a<b"] == ("1.0 s, 1.0 MiB", "17 min, 1.0 MiB", "12 days, 1.0 MiB")
    assert table.rows["far"][1].startswith("≈ ") and not table.rows["far"][0].startswith("≈")
    text, markup = repr(table), table._repr_html_()
    assert "1 k tokens" in text and "1 M tokens" in text and "1 G tokens" in text
    assert "≈ more than 10 times the longest length" in text and "≈ more than 10 times" in markup
    assert "a&lt;b" in markup and markup.count("<tr>") == 3
    near = scale_figures.scale_table({"a": (LAWS["window"], LAWS["window"])}, sizes=[700])
    assert repr(near).splitlines() == ["   700 tokens", "a  8.0 ms, 8.2 KiB"]


@pytest.mark.parametrize("seconds, text", [
    (3e-6, "3.0 µs"), (0.0, "0.0 µs"), (0.0123, "12 ms"), (0.25, "250 ms"), (5.62, "5.6 s"), (90, "1.5 min"),
    (HOUR, "1.0 h"), (DAY, "1.0 day"), (2.1 * DAY, "2.1 days"), (YEAR, "1.0 year"), (665 * YEAR, "665 years"),
    (12_345 * YEAR, "12,345 years"), (2.5e6 * YEAR, "2.5 million years"),
])  # fmt: skip
def test_seconds_as_people_say_them(seconds, text):
    assert human_seconds(seconds) == text


@pytest.mark.parametrize("mib, text", [
    (0.5, "512 KiB"), (1, "1.0 MiB"), (1023, "1,023 MiB"), (8192, "8.0 GiB"), (7.6 * 2**20, "7.6 TiB"),
    (2.0**30, "1.0 PiB"), (28.4 * 2**40, "28 EiB"),
])  # fmt: skip
def test_memory_as_people_say_it(mib, text):
    assert human_mib(mib) == text


@pytest.mark.parametrize(
    "n, text", [(999, "999"), (1000, "1 k"), (2048, "2 k"), (2_500_000, "2.5 M"), (10**9, "1 G")]
)
def test_counts_as_people_say_them(n, text):
    assert human_count(n) == text


@pytest.mark.parametrize("number", [-1, None, "7", True, float("nan"), float("inf")])
def test_what_is_no_amount_gets_a_sentence(no_shape_hook, number):
    for name, call in (("seconds", human_seconds), ("mib", human_mib)):
        with pytest.raises(ValueError, match=f"{name} must be a number >= 0, got"):
            call(number)
