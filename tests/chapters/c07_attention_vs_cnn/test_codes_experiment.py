"""A ViT without position codes: they are 0 and stay so, and nothing else is changed."""

import pytest
import torch

from lesson_lib.chapters.c07_attention_vs_cnn.experiments import vit
from lesson_lib.device import to_device
from lesson_lib.experiments import results
from lesson_lib.training import History


@pytest.fixture
def few(monkeypatch):
    for key, value in {"validation": 11, "test": 13, "batch": 7}.items():
        monkeypatch.setitem(vit.RECIPE, key, value)
    monkeypatch.setitem(vit.RECIPE, "steps", {"vit": {"long": 3}, "cnn": {"long": 3}})
    vit.held_out.cache_clear()
    yield
    vit.held_out.cache_clear()


def test_codes_stay_zero_and_all_else_learns(few):
    begun = vit.start("vit", "pair", 1)
    model, _ = vit.train("vit", "pair", 5, 1, codes=False)
    assert all((table == 0).all() for table in model.positions.parameters())
    assert not torch.equal(model.classify.weight, begun.classify.weight)
    learned, _ = vit.train("vit", "pair", 5, 1)
    assert not all(
        torch.equal(one, other)
        for one, other in zip(learned.positions.parameters(), begun.positions.parameters(), strict=True)
    )


def test_smaller_codes_are_the_same_at_another_size(few, monkeypatch):
    monkeypatch.setattr(vit, "fit", lambda *_, **__: History())  # before the first step
    begun = vit.start("vit", "pair", 1).positions.table
    smaller = vit.train("vit", "pair", 5, 1, codes=0.02)[0].positions.table
    assert smaller.std().item() == pytest.approx(0.02) and smaller.requires_grad
    torch.testing.assert_close(smaller / 0.02, begun / begun.std())


def test_without_codes_the_patches_order_does_not_count(few):
    model, _ = vit.train("vit", "pair", 5, 1, codes=False)
    x, _ = vit.draw("pair", 3, torch.Generator("cpu").manual_seed(0))
    turned = x.unflatten(-1, (4, 5)).flip(-2).flatten(-2)  # columns of patches in the other order
    with torch.no_grad():
        torch.testing.assert_close(model(to_device(x)), model(to_device(turned)), atol=1e-5, rtol=1e-5)


def test_a_cnn_has_no_codes_to_take_away(few):
    with pytest.raises(ValueError, match="model must be"):
        vit.train("cnn", "pair", 5, codes=False)


def test_stored_runs_with_codes_are_those_of_the_experiment_vit():
    stored = {
        (row["n"], row["seed"]): row["accuracy"]
        for row in results("vit")["rows"]
        if row["kind"] == "point"
        and (row["task"], row["model"], row["budget"], row["fresh"]) == ("pair", "vit", "long", False)
    }
    rows = [row for row in results("codes")["rows"] if row["way"] == "as it was"]
    assert rows
    for row in rows:
        assert row["accuracy"] == pytest.approx(stored[row["n"], row["seed"]], abs=0.05)
