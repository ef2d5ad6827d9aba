"""The experiment on training pictures: splits, canvases that are fixed or fresh, measures by hand."""

import pytest
import torch

from lesson_lib import experiments
from lesson_lib.chapters.c07_attention_vs_cnn import scenes, vit
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import vit as experiment
from lesson_lib.data import digits

RECIPE = experiment.RECIPE


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


@pytest.fixture
def few(monkeypatch):
    changed = {
        "validation": 23, "test": 101, "batch": 7, "looked_at": 5, "pilot_n": 13, "rates": [1e-3],
    }  # fmt: skip
    changed["n"] = {"digit": [13], "pair": [13, None]}
    changed["steps"] = {
        model: {"tiny": 1, "short": 2, "long": 3, "longest": 4} for model in experiment.MODELS
    }
    for key, value in changed.items():
        monkeypatch.setitem(RECIPE, key, value)
    experiment.held_out.cache_clear()
    yield
    experiment.held_out.cache_clear()


@pytest.mark.parametrize("task", experiment.TASKS)
def test_the_two_models_have_about_the_same_parameters(task):
    counts = [sum(p.numel() for p in experiment.make(model, task).parameters()) for model in ("vit", "cnn")]
    assert abs(counts[0] - counts[1]) < 0.1 * min(counts)


def test_digits_of_a_split_are_that_splits_pictures_on_noise(monkeypatch):
    asked = []
    drawn = digits.draw
    monkeypatch.setattr(digits, "draw", lambda split, *a, **k: asked.append(split) or drawn(split, *a, **k))
    experiment.draw("digit", 3, generator(), "test")
    experiment.training("digit", 3, 0)
    assert asked == ["test", "training"]
    monkeypatch.undo()
    x, _ = experiment.draw("digit", 499, generator(), "validation")
    clean = digits.draw("validation", 499, generator(), size=RECIPE["size"]).canvas
    noise = x[:, 0] - clean
    assert noise.std().item() == pytest.approx(RECIPE["noise"], rel=0.02)
    assert noise.mean().item() == pytest.approx(0, abs=0.002)


def test_pairs_are_of_the_recipes_kinds():
    x, label = experiment.draw("pair", 29, generator())
    scene = scenes.pairs(generator(), 29, size=RECIPE["size"], kinds=tuple(RECIPE["kinds"]))
    assert torch.equal(x[:, 0], scene.canvas) and torch.equal(label, scene.label)
    assert {scenes.KINDS[kind] for kind in scene.kind.unique().tolist()} == set(RECIPE["kinds"])


@pytest.mark.parametrize("task", experiment.TASKS)
def test_training_validation_and_test_canvases_differ(task, few):
    three = [
        experiment.training(task, 5, 0)[0],
        *(experiment.held_out(task, s)[0].cpu() for s in ("validation", "test")),
    ]
    for i, one in enumerate(three):
        assert all(not torch.equal(one[0], other[0]) for other in three[:i])


def test_training_canvases_are_fixed_by_n_and_seed():
    one, same, other = (experiment.training("digit", 5, seed)[0] for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def spied(monkeypatch, n):
    """The batches that a short training saw."""
    batches, loss = [], vit.loss
    monkeypatch.setattr(vit, "loss", lambda model, batch: batches.append(batch) or loss(model, batch))
    experiment.train("cnn", "pair", n, 3)
    return torch.cat([x for x, _ in batches]).flatten(1)


def test_n_canvases_are_seen_again_and_again_and_fresh_ones_never(few, monkeypatch):
    known = experiment.training("pair", 2, 3)[0].flatten(1)
    used = spied(monkeypatch, 2)
    assert len(used) == 21 and len(used.unique(dim=0)) == 2
    assert all((known == row.cpu()).all(1).any() for row in used)
    monkeypatch.undo()


def test_fresh_canvases_are_never_seen_twice(few, monkeypatch):
    assert len(spied(monkeypatch, None).unique(dim=0)) == 21


def test_accuracy_by_distance_is_of_the_pairs_at_that_distance(few, no_shape_hook):
    class Knowing(torch.nn.Module):  # right where the middles are at least 12 pixels apart
        def forward(self, x):
            label = experiment.held_out("pair", "test")[1]
            answer = torch.where((apart >= 12).to(label.device), label, 1 - label)
            return torch.nn.functional.one_hot(answer, 2).float()

    apart = scenes.pairs(generator(20_000), 101, size=RECIPE["size"], kinds=tuple(RECIPE["kinds"])).distance
    rows = experiment.by_distance(Knowing())
    assert [row[3] for row in rows if row[2]] == [float(low >= 12) for low, _, count, _ in rows if count]
    assert sum(row[2] for row in rows) == 101, "every pair has its row"


def test_an_even_heads_distance_by_hand(monkeypatch):
    monkeypatch.setitem(RECIPE, "size", 2 * RECIPE["vit"]["patch"])
    assert experiment.even_distance() == pytest.approx(RECIPE["vit"]["patch"] * (2 + 2**0.5) / 4, rel=1e-6)


# The stored results.


@pytest.fixture(scope="module")
def stored():
    return experiments.results("vit")


def test_the_rates_are_the_best_on_validation(stored):
    for model in experiment.MODELS:
        for task in experiment.TASKS:
            rows = [
                row
                for row in stored["rows"]
                if row["kind"] == "rate" and (row["model"], row["task"]) == (model, task)
            ]
            long = {row["lr"]: row["validation_accuracy"] for row in rows if row["budget"] == "long"}
            assert long[RECIPE["lr"][model][task]] == max(long.values())


def test_what_there_is_not_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="model must be one of vit, cnn, got 'rnn'"):
        experiment.train("rnn", "pair", 9)
    with pytest.raises(ValueError, match="n must be a whole number >= 1"):
        experiment.train("vit", "pair", 0)
    with pytest.raises(ValueError, match="split must be one of validation, test"):
        experiment.held_out("pair", "training")


def test_a_row_of_fresh_canvases_counts_those_that_were_drawn(few):
    row = experiment.point("cnn", "pair", None, "short", 0)[0]  # two steps of seven
    assert (row["n"], row["fresh"], row["training_accuracy"]) == (14, True, None)
