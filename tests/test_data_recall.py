"""Recall: what is asked is the first token, and the filler says nothing of it."""

import pytest
import torch

from lesson_lib.data import recall
from lesson_lib.data.recall import CHARACTERS, FILLERS, QUESTION, SYMBOLS


def draw(batch, distance, seed=0):
    return recall.draw(torch.Generator("cpu").manual_seed(seed), batch, distance)


@pytest.mark.parametrize("distance", [1, 2, 11])
def test_the_question_stands_that_far_behind_the_symbol(distance):
    tokens, answer = draw(7, distance)
    assert tokens.shape == (7, distance + 1) and answer.shape == (7,)
    assert torch.equal(tokens[:, 0], answer)
    assert (tokens[:, -1] == QUESTION).all() and (tokens[:, 1:-1] != QUESTION).all()
    for row in tokens:
        characters = recall.text(row)
        assert characters[0] in SYMBOLS and set(characters[1:-1]) <= set(FILLERS) and characters[-1] == "?"


def test_all_symbols_and_fillers_come_about_equally_often():
    tokens, answer = draw(4000, 5)
    for some, count in ((answer, len(SYMBOLS)), (tokens[:, 1:-1].flatten() - len(SYMBOLS), len(FILLERS))):
        shares = torch.bincount(some, minlength=count) / len(some)
        assert len(shares) == count and (shares - 1 / count).abs().max() < 0.02


def test_the_filler_says_nothing_of_the_symbol():
    """The share of right answers of the best guess from one filler, on other sequences, is chance."""
    tokens, answer = draw(8000, 3)
    filler = tokens[:, 1] - len(SYMBOLS)
    table = torch.zeros(len(FILLERS), len(SYMBOLS), device="cpu")
    table.index_put_((filler[:4000], answer[:4000]), torch.ones(4000, device="cpu"), accumulate=True)
    right = (table.argmax(1)[filler[4000:]] == answer[4000:]).float().mean()
    assert abs(right - 1 / 8) < 0.03


def test_the_same_seed_draws_the_same():
    assert torch.equal(draw(5, 7).tokens, draw(5, 7).tokens)
    assert not torch.equal(draw(5, 7).tokens, draw(5, 7, seed=1).tokens)
    assert len(set(CHARACTERS)) == len(CHARACTERS) == 17


@pytest.mark.parametrize("batch, distance, words", [(0, 3, "batch must be"), (3, 0, "distance must be"), (3, "far", "got 'far'"), (3, True, "got True")])  # fmt: skip
def test_bad_numbers_get_a_sentence(no_shape_hook, batch, distance, words):
    with pytest.raises(ValueError, match=words):
        draw(batch, distance)
