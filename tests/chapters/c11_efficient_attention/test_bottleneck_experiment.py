"""What fits through one token: what it hears, and how its rates were chosen."""

import pytest
import torch
from torch import nn

from lesson_lib.chapters.c11_efficient_attention.experiments import arena, bottleneck
from lesson_lib.data import recall
from lesson_lib.experiments import results
from lesson_lib.measure import sensitivity

THROUGH = "window and global"


@pytest.fixture
def small(monkeypatch):
    values = {
        "d_model": 12, "n_heads": 3, "batch": 5, "test": 11, "validation": 7, "steps": 3,
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setitem(bottleneck.RECIPE, name, value)


def rows(kind, **wanted):
    return [
        row
        for row in results("bottleneck")["rows"]
        if row["kind"] == kind and all(row[key] == value for key, value in wanted.items())
    ]


class KnowsPairs(nn.Module):
    """Answers by looking up, all but those whose answer is 0."""

    def forward(self, tokens):
        count = tokens.shape[1] - 1
        keys = tokens[:, :-1] // recall.PAIR_VALUES
        asked = tokens[:, -1:] - count * recall.PAIR_VALUES
        value = (tokens[:, :-1] % recall.PAIR_VALUES)[keys == asked]
        return nn.functional.one_hot(value.where(value > 0, 1), recall.PAIR_VALUES).float()


def test_accuracy_counts_right_answers_of_another_sample_for_each_seed():
    for split, number, seed in (("test", arena.TEST_SEED + 2, 2), ("validation", arena.VALIDATION_SEED, 2)):
        generator = torch.Generator("cpu").manual_seed(number)
        answer = arena.pairs(generator, bottleneck.RECIPE[split], 7).answer
        found = bottleneck.accuracy(KnowsPairs(), 7, seed, split=split)
        assert found == pytest.approx((answer != 0).double().mean().item())


def test_all_that_the_question_hears_comes_through_the_first_token(small):
    """A layer lets it hear itself and the first token; the second layer all."""
    inner = bottleneck.train(5)[0].layers[0].attention.attention.double()
    x = torch.randn(6, 3, dtype=torch.double)
    one = sensitivity(lambda x: inner(x, x, x).output, x)[-1]
    assert (one > 0).tolist() == [True, False, False, False, False, True]


def test_the_rates_are_the_best_on_validation():
    for count in bottleneck.RECIPE["counts"]:
        scores = {row["lr"]: row["accuracy"] for row in rows("rate", count=count)}
        assert scores[bottleneck.RECIPE["lr"][THROUGH][str(count)]] == max(scores.values())


def test_each_number_of_pairs_has_its_rate(small, monkeypatch, no_shape_hook):
    asked = []
    monkeypatch.setattr(bottleneck, "fit", lambda *args, lr, **options: asked.append(lr))
    monkeypatch.setitem(bottleneck.RECIPE["lr"], THROUGH, {"8": 1.0})
    bottleneck.train(8)
    bottleneck.train(5)
    bottleneck.train(8, lr=0.5)
    assert asked == [1.0, 3e-3, 0.5]
