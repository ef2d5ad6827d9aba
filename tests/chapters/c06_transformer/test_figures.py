"""The figures of lesson 06 draw what they are given, and the stored numbers that the lesson tells are those
of the files."""

import pytest
import torch

from lesson_lib.chapters.c06_transformer import figures
from lesson_lib.chapters.c06_transformer.experiments import norms, translation
from lesson_lib.charts import lines
from lesson_lib.experiments import results
from tests.test_models_gpt import beaten


def curves(axes):
    """{label: ys} of a panel."""
    return {line.get_label(): list(line.get_ydata()) for line in axes.lines}


def rows(name, kind):
    return [row for row in results(name)["rows"] if row["kind"] == kind]


def middle(values):
    return sorted(values)[len(values) // 2]


def test_whole_numbers_get_no_ticks_between_them():
    (axes,) = lines({"y": {"a": ([1, 2, 3, 4], [1, 2, 3, 4])}}, alt="A line.", x_axis="dates").figure.axes
    assert all(tick == int(tick) for tick in axes.get_xticks())


def test_layer_norm_groups_rows_and_batch_norm_columns():
    layer, batch = (axes.images[0].get_array() for axes in figures.who_shares_a_mean(2, 3, 5).figure.axes)
    assert layer.shape == batch.shape == (6, 5)
    assert (layer == layer[:, :1]).all() and len(set(layer[:, 0])) == 6
    assert (batch == batch[:1]).all() and len(set(batch[0])) == 5


def test_the_root_line_meets_the_last_point_and_halves_over_four_times_the_batch():
    (axes,) = figures.company([2, 8, 32], [0.5, 0.3, 0.1]).figure.axes
    root = curves(axes)["∝ 1 / √(batch size)"]
    assert root == pytest.approx([0.4, 0.2, 0.1])


def test_depth_has_a_panel_for_each_schedule_and_the_middle_seed_as_its_line():
    given = {
        (first, rise, n): [0.1 * n, 0.2 * n, 0.3 * n]
        for first in (False, True)
        for rise in (False, True)
        for n in (1, 2)
    }
    panels = figures.by_depth(given).figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["with warm-up", "without warm-up"]
    for axes in panels:
        assert curves(axes) == {"post-norm": [0.2, 0.4], "pre-norm": [0.2, 0.4]}


def test_errors_are_added_up_over_seeds_most_first():
    given = [
        {"language": name, "wrong": wrong, "texts": 7}
        for name, wrong in (("A", 1), ("B", 2), ("A", 0), ("B", 3))
    ]
    picture = figures.errors_by_language(given)
    (axes,) = picture.figure.axes
    assert [bar.get_height() for bar in axes.patches] == [5, 1] and "14 texts" in picture.caption
    assert [label.get_text() for label in axes.get_xticklabels()] == ["B", "A"]


def test_the_probe_draws_each_seeds_heads_beside_distance_alone():
    given = [
        {"seed": seed, "layer": layer, "head": 0, "largest": 0.1 * (seed + layer), "offset": 0.3}
        for seed in range(3)
        for layer in range(2)
    ]
    for seed, axes in enumerate(figures.probe(given).figure.axes):
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == pytest.approx([0.1 * seed, 0.1 * (seed + 1), 0.3, 0.3])
        assert axes.get_xticklabels()[0].get_text() == "layer 1\nhead 0"  # layers count from 1


def test_interference_draws_the_misleading_share_and_what_it_was_before():
    places = [(0, 0), (0, None), (None, None)]
    given = [
        {"seed": s, "layer": i, "head": h, "before": [1.0, 0.9], "verb": [0.8, 0.7], "all": [0.6, 0.5]}
        for s in range(3)
        for i, h in places
    ]
    axes = figures.interference(given).figure.axes[1]
    assert [bar.get_height() for bar in axes.patches] == [0.7] * 3 + [0.5] * 3
    assert axes.lines[0].get_ydata()[0] == 0.9
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["layer 1, head 0", "layer 1", "everywhere"]


def test_bits_are_enlarged_from_n_4_on():
    whole, near = figures.bits(results("gpt")["rows"]).figure.axes
    assert len(curves(whole)["n-gram model"]) == 8
    assert curves(near)["n-gram model"] == curves(whole)["n-gram model"][3:]
    assert curves(near)["short GPT"] == curves(whole)["short GPT"]


@pytest.mark.parametrize(
    "picture",
    [
        lambda: figures.cost_of_writing(rows("translation", "speed")),
        lambda: figures.translations(translation.by_dates(results("translation")["rows"])),
        lambda: figures.agreement(rows("bert", "trained")),
        lambda: figures.cost_of_sampling(rows("gpt", "cost")),
        lambda: figures.gradients({"post-norm": [1.0, 2.0]}, {"post-norm": [1.0, 2.0, 3.0]}),
        lambda: figures.schedule({"4 steps": ([1, 2], [0.1, 0.2])}),
        lambda: figures.silenced(torch.rand(2, 4, device="cpu"), ["one", "two"]),
    ],
)
def test_a_figure_is_narrow_enough_and_says_what_it_shows(picture):
    made = picture()
    assert made.figure.get_size_inches()[0] <= 8.1
    assert len(made.alt) > 40 and made.alt.endswith(".") and made.caption.endswith((".", "?"))


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
