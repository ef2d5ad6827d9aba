"""Norms over batch sizes and depth: batches without padding, the two schedules, and which row counts."""

import pytest
import torch

from lesson_lib.blocks import BatchNorm, LayerNorm
from lesson_lib.chapters.c06_transformer.experiments import norms
from lesson_lib.data.tagging import PADDING
from lesson_lib.device import to_device
from lesson_lib.models import tagger


@pytest.mark.parametrize("size", [2, 7])
def test_the_sentences_of_a_batch_have_one_length(size):
    draw, generator = norms.batches(size), torch.Generator("cpu").manual_seed(0)
    lengths = set()
    for _ in range(20):
        batch = draw(generator)
        assert len(batch.words) == size and (batch.words != PADDING).all() and (batch.tags != PADDING).all()
        lengths.add(batch.words.shape[1])
    assert len(lengths) > 3


def test_splits_hold_other_sentences():
    rows = {
        split: {tuple(row) for row in norms.sentences(split).words[:500].tolist()}
        for split in ("training", "validation", "test")
    }
    assert not rows["training"] & rows["test"] and not rows["validation"] & rows["test"]


def test_both_schedules_peak_at_one_and_fall_alike():
    with_rise = [norms.rate(step, 40, rise=True) for step in range(1, 401)]
    without = [norms.rate(step, 40, rise=False) for step in range(1, 401)]
    assert max(with_rise) == pytest.approx(1.0) and with_rise.index(max(with_rise)) == 39
    assert with_rise[0] == pytest.approx(1 / 40) and without[:40] == [1.0] * 40
    assert with_rise[39:] == pytest.approx(without[39:])
    assert without[159] == pytest.approx(0.5)  # four times as many steps: half the rate


@pytest.mark.parametrize("norm, kind", [("layer", LayerNorm), ("batch", BatchNorm)])
def test_a_tagger_holds_the_norm_that_was_asked_for(norm, kind):
    model, history = norms.train(2, size=3, steps=2, lr=1e-3, norm=norm)
    found = [part for part in model.modules() if isinstance(part, LayerNorm | BatchNorm)]
    assert len(found) == 4 and all(isinstance(part, kind) for part in found)
    assert history.rows and 0 <= norms.accuracy(model, "validation") <= 1


def test_padding_is_hidden_from_the_words():
    model = to_device(norms.Tagger(1)).eval()
    words = torch.tensor([[3, 4, 5, PADDING, PADDING]])
    with torch.no_grad():
        torch.testing.assert_close(model(words)[:, :3], model(words[:, :3]))


def test_a_training_that_breaks_is_a_row_without_seconds(monkeypatch):
    monkeypatch.setattr(tagger, "loss", lambda model, batch: model.read.weight.sum() * torch.inf)
    model, history = norms.train(1, size=2, steps=2, lr=1e-3)
    assert history is None and not model.training


def test_the_rate_is_chosen_by_validation_seed_by_seed():
    def row(seed, lr, validation, accuracy):
        told = {"seed": seed, "lr": lr, "validation": validation, "accuracy": accuracy}
        return {"kind": "batch", "norm": "layer", "size": 2} | told

    rows = [row(0, 1e-3, 0.8, 0.1), row(0, 1e-2, 0.7, 0.9), row(1, 1e-2, 0.6, 0.05), {"kind": "depth"}]
    assert norms.best(rows, "batch", ("norm", "size")) == {("layer", 2): [0.05, 0.1]}
