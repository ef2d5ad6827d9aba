"""Recall over a distance: what is drawn, how it is judged, and what the figures of lesson 08 show."""

import pytest
import torch
from torch import nn

from lesson_lib.data.recall import SYMBOLS
from lesson_lib.experiments import recall, results


class Knows(nn.Module):
    """Names the token at one place, whatever it is; `never` names another one."""

    def __init__(self, place, never=False):
        super().__init__()
        self.place, self.never = place, never

    def forward(self, tokens):
        symbol = (tokens[:, self.place] + self.never) % len(SYMBOLS)
        return nn.functional.one_hot(symbol, len(SYMBOLS)).float()


def test_batches_of_one_distance():
    some = recall.batches(7, 2)
    generator = torch.Generator("cpu").manual_seed(0)
    for _ in range(3):
        tokens, answer = some(generator)
        assert tokens.shape == (recall.RECIPE["batch"], 10) and torch.equal(tokens[:, 2], answer)


def test_distances_that_lengthen():
    """The bound rises evenly to the distance that is asked, at half of the steps; below it all distances
    come."""
    some, generator = recall.batches(11, 0, 100), torch.Generator("cpu").manual_seed(0)
    far = [some(generator).tokens.shape[1] - 1 for _ in range(1000)]
    assert far[0] == 1 and max(far[:9]) <= 2 and max(far[:25]) <= 6 and max(far) == 11
    assert set(far[50:]) == set(range(1, 12))
    assert abs(sum(far[50:]) / 950 - 6) < 0.5


def test_accuracy_is_the_share_of_right_answers(no_shape_hook):
    assert recall.accuracy(Knows(0), 5) == 1 and recall.accuracy(Knows(0, never=True), 5) == 0
    assert recall.accuracy(Knows(3), 5, before=3) == 1
    guess = recall.accuracy(Knows(2), 5)  # a filler: no more than chance
    assert 0.08 < guess < 0.17 and guess == recall.accuracy(Knows(2), 5)
    assert guess != recall.accuracy(Knows(2), 5, seed=1) != recall.accuracy(Knows(2), 5, split="validation")


def test_what_is_known_under_other_names_counts_as_kept(no_shape_hook):
    renamed = Knows(0, never=True)  # B for A, C for B ...
    assert recall.accuracy(renamed, 5) == 0 and recall.renamed_accuracy(renamed, 5) == 1
    assert recall.renamed_accuracy(Knows(3, never=True), 5, before=3) == 1
    guess = recall.renamed_accuracy(Knows(2), 5)  # names found on other sequences: a guess stays a guess
    assert 0.08 < guess < 0.17


def test_two_symbols_under_one_name_are_half_kept(no_shape_hook):
    class Halves(Knows):
        def forward(self, tokens):
            return nn.functional.one_hot(tokens[:, 0] // 2, len(SYMBOLS)).float()

    assert recall.renamed_accuracy(Halves(0), 5) == pytest.approx(0.5, abs=0.05)


def test_no_test_sequence_is_a_validation_sequence():
    """They may share one by chance only where there are few: at distance 10 there are 8 to the 10."""
    drawn = []
    for split in ("validation", "test"):
        generator = torch.Generator("cpu").manual_seed(recall.SPLIT_SEEDS[split])
        drawn.append({tuple(row) for row in recall.draw(generator, recall.RECIPE[split], 10).tokens.tolist()})
    assert not drawn[0] & drawn[1]


def test_a_seed_is_a_start():
    one, same, other = (recall.start("RNN", 4, seed) for seed in (0, 0, 1))
    assert torch.equal(one.read.weight, same.read.weight)
    assert not torch.equal(one.read.weight, other.read.weight)


def test_gradients_of_every_token_even_tiny_ones():
    """In float32 the symbol's would be 0 after 200 tokens."""
    model = recall.start("RNN", 200)
    found = recall.gradients(model, 200)
    assert len(found) == 201 and 0 < found[0] < 1e-30 < 1e-3 < found[-1]
    assert next(model.parameters()).dtype == torch.float32
    assert recall.gradients(recall.start("attention", 200), 200)[0] > 1e-4


def test_where_the_question_looks():
    assert recall.looked(recall.start("RNN", 4), 4) is None
    even = recall.start("attention", 4)
    nn.init.zeros_(even.core.attention.w_query.weight)
    assert recall.looked(even, 4) == pytest.approx(1 / 5)
    assert recall.looked(even, 4, before=6) == pytest.approx(1 / 11)


def stored(name="accuracy", *, kind="point", **wanted):
    """A column of the stored rows of that kind, without aids where none is named."""
    wanted = {"kind": kind, "aid": "none"} | wanted
    rows = [
        row for row in results("recall")["rows"] if all(row[key] == value for key, value in wanted.items())
    ]
    assert rows
    return [row[name] for row in rows]


def test_the_rates_are_the_best_on_validation_and_of_equals_the_middle_one():
    rates = recall.RECIPE["rates"]
    for system, chosen in recall.RECIPE["lr"].items():
        for aid, lr in chosen.items():
            scores = [
                sum(stored("validation_accuracy", kind="rate", system=system, aid=aid, lr=rate))
                for rate in rates
            ]
            best = [rate for rate, score in zip(rates, scores, strict=True) if score > max(scores) - 1e-9]
            assert lr == (rates[1] if rates[1] in best else best[0]), (system, aid)


def test_what_there_is_not_gets_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="system must be one of RNN, LSTM"):
        recall.train("GRU", 4)
    with pytest.raises(ValueError, match="aid must be one of none, curriculum, got 'start'"):
        recall.train("attention", 4, aid="start")
    with pytest.raises(ValueError, match="split must be one of validation, test, got"):
        recall.accuracy(Knows(0), 5, split="training")
