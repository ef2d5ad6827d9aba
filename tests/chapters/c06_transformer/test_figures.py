"""The figures of lesson 06 draw what they are given, and the stored numbers that the lesson tells are those
of the files."""

import pytest

from lesson_lib.chapters.c06_transformer import figures
from lesson_lib.chapters.c06_transformer.experiments import norms
from lesson_lib.experiments import results
from tests.test_models_gpt import beaten


def rows(name, kind):
    return [row for row in results(name)["rows"] if row["kind"] == kind]


def middle(values):
    return sorted(values)[len(values) // 2]


def test_the_root_line_meets_the_last_point_and_halves_over_four_times_the_batch():
    (axes,) = figures.company([2, 8, 32], [0.5, 0.3, 0.1]).figure.axes
    assert list(axes.lines[1].get_ydata()) == pytest.approx([0.4, 0.2, 0.1])


def test_errors_are_added_up_over_seeds_most_first():
    given = [
        {"language": name, "wrong": wrong, "texts": 7}
        for name, wrong in (("A", 1), ("B", 2), ("A", 0), ("B", 3))
    ]
    picture = figures.errors_by_language(given)
    (axes,) = picture.figure.axes
    assert [bar.get_height() for bar in axes.patches] == [5, 1] and "14 texts" in picture.caption
    assert [label.get_text() for label in axes.get_xticklabels()] == ["B", "A"]


def test_shares_are_ranked_over_the_seeds_for_each_number_of_attractors():
    given = [{"agreement": {"model": {"all": [(0, 9, 0.5 + s), (2, 4, 0.1 * s)]}}} for s in (0, 2, 1)]
    assert figures.by_attractors(given, "model", "all") == ([0, 2], [0.5, 0], [1.5, 0.1], [2.5, 0.2])


# --- what the lesson says of the stored runs ---


def test_the_translator_is_told_as_it_is_stored():
    def exact(trained_on, dates, width=1):
        return [
            row["exact"]
            for row in rows("translation", "test")
            if (row["trained_on"], row["dates"], row["width"]) == (trained_on, dates, width)
        ]

    mixed = [1, 2, 3]
    assert exact([1], 1) == [0.999, 0.998, 0.991] == exact([1], 1, 4) and exact([1], 2) == [0, 0, 0]
    assert [round(middle(exact(mixed, n)), 2) for n in (2, 3, 4)] == [0.89, 0.51, 0]
    gained = [wide - narrow for wide, narrow in zip(exact(mixed, 3, 4), exact(mixed, 3), strict=True)]
    assert [round(1000 * least) for least in (min(gained), max(gained))] == [12, 24]
    languages = rows("translation", "language")
    assert sum(row["wrong"] for row in languages) == 37 and sum(row["texts"] for row in languages) == 6750
    assert not any(row["wrong"] for row in languages if row["seed"] == 0)
    last = rows("translation", "speed")[-1]
    assert last["characters"] == 200 and 0.8 < 1 - last["cached_s"] / last["uncached_s"] < 0.85


def test_the_norms_are_told_as_they_are_stored():
    stored = results("norms")["rows"]
    size = norms.best(stored, "batch", ("norm", "size"))
    assert (round(middle(size["batch", 2]), 2), round(middle(size["layer", 2]), 2)) == (0.67, 0.69)
    assert max(size["batch", 2]) < min(size["layer", 2])  # the bands do not touch
    ahead = [round(middle(size["batch", b]) - middle(size["layer", b]), 2) for b in (8, 16, 32)]
    assert ahead == [0.03, 0.02, 0.03]  # "2 to 3 points"
    assert all(abs(middle(size["batch", b]) - middle(size["layer", b])) < 0.005 for b in (64, 128))
    depth = norms.best(stored, "depth", ("norm_first", "rise", "layers"))
    for rise in (True, False):
        assert 0.52 < min(depth[False, rise, 12]) <= max(depth[False, rise, 12]) < 0.53
        assert round(middle(depth[True, rise, 12]), 2) == 0.83


def test_bert_is_told_as_it_is_stored():
    trained = rows("bert", "trained")
    assert all(1.97 <= row["guessed"]["model"]["cross_entropy"] < 1.985 for row in trained)
    assert all(round(row["guessed"]["both"]["cross_entropy"], 2) == 2.54 for row in trained)
    assert all(row["agreement"]["model"]["misleading"] > 0.99 for row in trained)
    best = [max(row["largest"] for row in rows("bert", "probe") if row["seed"] == seed) for seed in range(3)]
    assert [round(share, 2) for share in best] == [0.99, 0.49, 0.28]
    seen = {(r["seed"], r["layer"], r["head"]): r for r in rows("bert", "interference")}
    assert round(seen[0, 1, 1]["verb"][1], 2) == 0.09 and round(seen[2, None, None]["verb"][1], 2) == 0.95
    assert round(seen[1, 1, 1]["verb"][1], 2) == 0.67 and round(seen[1, 0, 0]["all"][1], 2) == 0.60
    assert round(seen[2, 0, 1]["all"][1], 2) == 0.50


def test_gpt_is_told_as_it_is_stored():
    stored = results("gpt")["rows"]
    assert beaten(stored, "short") == 4 and beaten(stored, "long") == 8
    bits = {row["n"]: (row["validation_bits"], row["bits"]) for row in stored if row["kind"] == "n-gram"}
    assert [round(value, 2) for value in (*bits[5], bits[8][1])] == [1.84, 2.17, 2.09]
    first = next(row for row in stored if row["kind"] == "trained" and row["size"] == "short")
    assert (round(first["validation_bits"], 2), round(first["bits"], 2)) == (1.87, 2.19)
    long = next(row for row in stored if row["kind"] == "trained" and row["size"] == "long")
    assert round(long["bits"], 2) == 2.05 and long["parameters"] == 343_776
    cost = {
        row["cached"]: row["rows"]
        for row in rows("gpt", "cost")
        if (row["size"], row["length"]) == ("short", 1000)
    }
    assert cost == {True: 1963, False: 47500}
