"""Recall beyond the radius: what is trained and judged, and the stored runs that lesson 09 tells."""

import pytest
import torch

from lesson_lib.chapters.c09_truncated_attention.experiments import beyond
from lesson_lib.device import to_device
from lesson_lib.experiments import recall, results
from lesson_lib.models.recaller import Recaller


@pytest.fixture
def small(monkeypatch):
    for name, value in {"d_model": 6, "n_heads": 3, "steps": 3, "every": 2, "distances": [2, 5, 11]}.items():
        monkeypatch.setitem(beyond.RECIPE, name, value)
    for name, value in {"batch": 5, "test": 11, "validation": 7, "judged": 2}.items():
        monkeypatch.setitem(recall.RECIPE, name, value)


def test_the_recipe_is_that_of_recall_where_it_is_judged_as_there():
    for name in ("d_model", "n_heads", "batch", "validation", "test", "judged"):
        assert beyond.RECIPE[name] == recall.RECIPE[name]


def test_the_reach():
    assert beyond.reach(4, 2) == 8 and beyond.reach(0, 7) == 0 and beyond.reach(None, 1) > 10**9


@pytest.mark.parametrize("radius, layers", [(3, 1), (2, 2), (5, 3)])
def test_the_gradient_is_exactly_0_beyond_the_reach_and_nowhere_before(radius, layers):
    model, far = beyond.start(radius, layers), beyond.reach(radius, layers)
    assert (
        beyond.gradient(model, far) > 0 == beyond.gradient(model, far + 1) == beyond.gradient(model, 3 * far)
    )
    assert next(model.parameters()).dtype == torch.float32


def test_two_sequences_that_differ_beyond_the_reach_get_the_same_answer():
    """Not nearly: the same bits. One token nearer they differ."""
    tokens = recall.draw(torch.Generator("cpu").manual_seed(0), 1, 9).tokens.repeat(8, 1)
    tokens[:, 0] = torch.arange(8, device="cpu")
    tokens = to_device(tokens)
    with torch.no_grad():
        unseen, seen = (beyond.start(radius, 2)(tokens) for radius in (4, 5))
    assert (unseen == unseen[0]).all()
    assert len({tuple(row) for row in seen.tolist()}) == 8


@pytest.mark.parametrize("radius, layers", [(None, 1), (2, 1), (3, 2)])
def test_a_few_steps(small, radius, layers):
    model, history = beyond.train(radius, layers, 5, 1)
    assert isinstance(model, Recaller) and not model.training
    assert history.column("step") == [2, 3] and all(0 <= s <= 1 for s in history.column("score"))
    begun, again = beyond.start(radius, layers, 1), beyond.train(radius, layers, 5, 1)[0]
    assert any(not torch.equal(a, b) for a, b in zip(model.parameters(), begun.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    other = beyond.start(radius, layers, 2)
    assert not torch.equal(begun.read.weight, other.read.weight)


def test_with_and_without_the_curriculum(small, monkeypatch):
    asked, batches = [], recall.batches
    monkeypatch.setattr(recall, "batches", lambda *args: asked.append(args) or batches(4, 0))
    beyond.train(2, 1, 4)
    beyond.train(2, 1, 4, curriculum=False)
    assert asked == [(4, 0, 3), (4, 0, 0)]


def test_a_training_ends_when_all_are_right(small, monkeypatch):
    monkeypatch.setattr(recall, "accuracy", lambda *args, **options: 1.0)
    assert beyond.train(2, 1, 4)[1].column("step") == [2]


def test_each_number_of_layers_has_its_rate(small, monkeypatch, no_shape_hook):
    rates = []
    monkeypatch.setattr(beyond, "fit", lambda *args, lr, **options: rates.append(lr))
    monkeypatch.setitem(
        beyond.RECIPE,
        "lr",
        {"curriculum": {"1": 1.0, "2": 2.0, "4": 4.0}, "plain": {"1": 5.0, "2": 6.0, "4": 7.0}},
    )
    for layers in (1, 2, 3, 4, 9):
        beyond.train(2, layers, 4)
    beyond.train(2, 2, 4, curriculum=False)
    beyond.train(2, 2, 4, lr=0.5)
    assert rates == [1.0, 2.0, 2.0, 4.0, 4.0, 6.0, 0.5]


@pytest.mark.parametrize(
    "radius, layers, distance, words",
    [
        (-1, 1, 4, "radius must be a whole number >= 0"),
        (2, 0, 4, "n_layers must be a whole number >= 1, got 0"),
        (2, 1, 0, "distance must be a whole number >= 1, got 0"),
    ],
)
def test_what_cannot_be_gets_a_sentence(small, radius, layers, distance, words):
    with pytest.raises(ValueError, match=words):
        beyond.train(radius, layers, distance, curriculum=False)


def test_what_is_trained():
    settings = [tuple(setting.values()) for setting in beyond.points()]
    assert len(set(settings)) == len(settings)
    for radius in beyond.RECIPE["radii"]:
        for layers in beyond.RECIPE["layers"]:
            far = [s[3] for s in settings if s[:3] == ("point", radius, layers)]
            reach = min(radius * layers, 60)
            assert reach in far and far == sorted(far)
            assert [d for d in far if d <= reach] == [d for d in beyond.RECIPE["distances"] if d <= reach]
            assert max(far) == reach + (reach < 60)
            assert ("plain", radius, layers, reach) in settings
    assert [s for s in settings if s[0] == "full"] == [("full", None, 1, 60)]


def test_rows(small):
    row = beyond.point("point", 2, 3, 11, 1)
    assert (row["seed"], row["radius"], row["layers"], row["steps"], row["curriculum"]) == (1, 2, 3, 3, True)
    assert row["gradient"] == row["gradient_after"] == 0
    assert row["parameters"] == sum(p.numel() for p in beyond.start(2, 3).parameters())
    inside = beyond.point("plain", 2, 3, 5, 1)
    assert not inside["curriculum"] and 0 <= inside["accuracy"] <= 1
    assert inside["gradient"] > 0 and inside["gradient"] != inside["gradient_after"]
    rated = beyond.pilot(False, 1, 4, 0.5)
    assert (rated["kind"], rated["radius"], rated["lr"], rated["steps"]) == ("rate", 8, 0.5, 3)


def test_all_rows_of_a_seed(monkeypatch):
    for name in ("point", "pilot"):
        monkeypatch.setattr(beyond, name, lambda **setting: setting)
    first, second = beyond.run(0), beyond.run(1)
    assert first == beyond.rates() + [row | {"seed": 0} for row in beyond.points()]
    assert second == [row | {"seed": 1} for row in beyond.points()]
    assert {row["distance"] for row in beyond.rates() if row["layers"] == 4} == {16, 32}


def stored(name="accuracy", *, kind="point", **wanted):
    """A column of the stored rows of that kind."""
    wanted = {"kind": kind} | wanted
    rows = [
        row for row in results("beyond")["rows"] if all(row[key] == value for key, value in wanted.items())
    ]
    assert rows
    return [row[name] for row in rows]


def sides():
    """The stored points inside the reach, and those beyond."""
    rows = [row for row in results("beyond")["rows"] if row["kind"] == "point"]
    far = [row["distance"] > beyond.reach(row["radius"], row["layers"]) for row in rows]
    return [
        [row for row, is_beyond in zip(rows, far, strict=True) if is_beyond is side] for side in (False, True)
    ]


def test_every_row_is_there():
    rows, names = results("beyond")["rows"], ("kind", "radius", "layers", "distance")
    for seed in beyond.RECIPE["seeds"]:
        found = [
            tuple(row[key] for key in names) for row in rows if row["kind"] != "rate" and row["seed"] == seed
        ]
        assert found == [tuple(setting.values()) for setting in beyond.points()]
    assert sum(row["kind"] == "rate" for row in rows) == len(beyond.rates())


def test_the_rates_are_the_best_on_validation_and_of_equals_the_middle_one():
    rates = beyond.RECIPE["rates"]
    for training, chosen in beyond.RECIPE["lr"].items():
        for layers, lr in chosen.items():
            wanted = {"kind": "rate", "curriculum": training == "curriculum", "layers": int(layers)}
            scores = [
                sum(max(score, 0.2) for score in stored("validation_accuracy", lr=rate, **wanted))
                for rate in rates
            ]
            best = [rate for rate, score in zip(rates, scores, strict=True) if score > max(scores) - 1e-9]
            assert lr == (rates[1] if rates[1] in best else best[0]), (training, layers)


def test_beyond_the_reach_nothing_is_ever_learnt():
    beyond_it = sides()[1]
    assert all(row["gradient"] == row["gradient_after"] == 0 for row in beyond_it)
    assert max(row["accuracy"] for row in beyond_it) < 0.16
    assert {row["steps"] for row in beyond_it} == {beyond.RECIPE["steps"]}


def test_inside_the_reach_it_is_learnt():
    inside = sides()[0]
    assert all(row["gradient"] > 0 < row["gradient_after"] for row in inside)
    assert min(row["accuracy"] for row in inside) > 0.9
    assert min(stored(kind="full")) > 0.99


def test_what_may_be_learnt_need_not_be():
    """At the reach of four layers the gradient is not 0, and so small that nobody learns without the
    curriculum; with two all do."""
    for radius in beyond.RECIPE["radii"]:
        for layers in (1, 2):
            assert min(stored(kind="plain", radius=radius, layers=layers)) > 0.99
        assert max(stored(kind="plain", radius=radius, layers=4)) < 0.16
        assert 0 < max(stored("gradient", kind="plain", radius=radius, layers=4)) < 1e-3
        at_the_reach = min(4 * radius, 60)
        assert min(stored(radius=radius, layers=4, distance=at_the_reach)) > 0.98
