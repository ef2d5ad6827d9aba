"""The look-up's lists, and where its models start."""

import pytest
import torch

from lesson_lib.chapters.c02_scoring.experiments import look_up, starts
from lesson_lib.training import History


@pytest.fixture
def untrained(monkeypatch):
    """Models as they come to the training loop."""
    seen = []

    def fit(model, *_, **__):
        seen.append(model)
        return History()

    monkeypatch.setattr(look_up, "fit", fit)
    return seen


def test_queries_and_keys_start_as_many_times_as_long(untrained):
    for times in (1, 0.25):
        look_up.train("dot", 7, lr=0.1, seed=3, times=times)
    drawn, shorter = untrained
    assert (shorter.query.weight * 4 - drawn.query.weight).abs().max() < 1e-6
    assert (shorter.key.weight * 4 - drawn.key.weight).abs().max() < 1e-6
    assert (shorter.value.weight == drawn.value.weight).all()


def test_a_quarter_as_long_the_plain_scores_are_the_scaled_ones(untrained):
    look_up.train("dot", starts.RECIPE["d"], lr=0.1, times=0.25)
    look_up.train("scaled dot", starts.RECIPE["d"], lr=0.1)
    plain, scaled = (look_up.spread(model) for model in untrained)
    assert plain == pytest.approx(scaled, rel=1e-5)


@pytest.mark.parametrize("times", [0, -1])
def test_no_length_is_refused(times):
    with pytest.raises(ValueError, match="times must be positive"):
        look_up.train("dot", 7, lr=0.1, times=times)


def test_lists_have_the_sizes_that_are_asked_for():
    asked, symbols, answers, right = look_up.draw(torch.Generator().manual_seed(0), 31, symbols=11, pairs=7)
    assert symbols.shape == answers.shape == (31, 7) and symbols.max() == 10
    assert ((symbols == asked[:, None]) * answers).sum(-1).equal(right)
    with pytest.raises(ValueError, match="pairs must be from 1 to 11"):
        look_up.draw(torch.Generator(), 31, symbols=11, pairs=12)


def test_own_scores_are_those_of_the_model_that_is_trained(untrained):
    look_up.train("dot", starts.RECIPE["d"], lr=0.1, seed=3)
    (model,) = untrained
    symbols = torch.arange(look_up.SYMBOLS, device=model.query.weight.device)
    table = model.score(model.query(symbols), model.key(symbols)).diagonal()
    assert (table.cpu() - starts.own_scores("dot", 3).cpu()).abs().max() < 1e-3
