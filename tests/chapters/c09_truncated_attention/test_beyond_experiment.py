"""Recall beyond the radius: what is trained and judged, and how its rates were chosen."""

import pytest
import torch

from lesson_lib.chapters.c09_truncated_attention.experiments import beyond
from lesson_lib.device import to_device
from lesson_lib.experiments import recall, results


@pytest.fixture
def small(monkeypatch):
    for name, value in {"d_model": 6, "n_heads": 3, "steps": 3, "every": 2, "distances": [2, 5, 11]}.items():
        monkeypatch.setitem(beyond.RECIPE, name, value)
    for name, value in {"batch": 5, "test": 11, "validation": 7, "judged": 2}.items():
        monkeypatch.setitem(recall.RECIPE, name, value)


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


def test_with_and_without_the_curriculum(small, monkeypatch):
    asked, batches = [], recall.batches
    monkeypatch.setattr(recall, "batches", lambda *args: asked.append(args) or batches(4, 0))
    beyond.train(2, 1, 4)
    beyond.train(2, 1, 4, curriculum=False)
    assert asked == [(4, 0, 3), (4, 0, 0)]


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


def stored(name="accuracy", *, kind="point", **wanted):
    """A column of the stored rows of that kind."""
    wanted = {"kind": kind} | wanted
    rows = [
        row for row in results("beyond")["rows"] if all(row[key] == value for key, value in wanted.items())
    ]
    assert rows
    return [row[name] for row in rows]


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


def test_each_number_of_layers_has_its_rate(small, monkeypatch, no_shape_hook):
    rates, chosen = (
        [],
        {"curriculum": {"1": 1.0, "2": 2.0, "4": 4.0}, "plain": {"1": 5.0, "2": 6.0, "4": 7.0}},
    )
    monkeypatch.setattr(beyond, "fit", lambda *args, lr, **options: rates.append(lr))
    monkeypatch.setitem(beyond.RECIPE, "lr", chosen)
    for layers in (1, 2, 3, 4, 9):
        beyond.train(2, layers, 4)
    beyond.train(2, 2, 4, curriculum=False)
    beyond.train(2, 2, 4, lr=0.5)
    assert rates == [1.0, 2.0, 2.0, 4.0, 4.0, 6.0, 0.5]


@pytest.mark.parametrize("kind", ["point", "plain"])
def test_plain_rows_alone_are_trained_without_the_curriculum(small, kind):
    assert beyond.point(kind, 2, 1, 5, 1)["curriculum"] == (kind == "point")
