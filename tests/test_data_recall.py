"""Recall: what is asked is the first token, and the filler says nothing of it."""

import pytest
import torch

from lesson_lib.data import recall
from lesson_lib.data.recall import CHARACTERS, FILLERS, QUESTION, SYMBOLS


def draw(batch, distance, seed=0, **options):
    return recall.draw(torch.Generator("cpu").manual_seed(seed), batch, distance, **options)


@pytest.mark.parametrize("distance", [1, 2, 11])
def test_the_question_stands_that_far_behind_the_symbol(distance):
    tokens, answer = draw(7, distance)
    assert tokens.shape == (7, distance + 1) and answer.shape == (7,)
    assert torch.equal(tokens[:, 0], answer)
    assert (tokens[:, -1] == QUESTION).all() and (tokens[:, 1:-1] != QUESTION).all()
    for row in tokens:
        characters = recall.text(row)
        assert characters[0] in SYMBOLS and set(characters[1:-1]) <= set(FILLERS) and characters[-1] == "?"


@pytest.mark.parametrize("before, distance", [(1, 1), (5, 3), (13, 2)])
def test_filler_may_stand_in_front_of_the_symbol(before, distance):
    tokens, answer = draw(7, distance, before=before)
    assert tokens.shape == (7, before + distance + 1)
    assert torch.equal(tokens[:, before], answer) and (tokens[:, -1] == QUESTION).all()
    for row in tokens:
        characters = recall.text(row)
        assert set(characters[:before] + characters[before + 1 : -1]) <= set(FILLERS)


def test_with_nothing_in_front_the_symbol_comes_first():
    assert torch.equal(draw(5, 7, before=0).tokens, draw(5, 7).tokens)


def test_filler_in_front_is_drawn_anew_and_all_kinds_come():
    tokens, _ = draw(4000, 2, before=3)
    shares = torch.bincount(tokens[:, :3].flatten() - len(SYMBOLS), minlength=len(FILLERS)) / (3 * 4000)
    assert len(shares) == len(FILLERS) and (shares - 1 / len(FILLERS)).abs().max() < 0.02
    assert (tokens[:, 0] == tokens[:, 1]).float().mean() < 0.2  # by chance an eighth


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


@pytest.mark.parametrize("before", [-1, 1.0, True, None, "some", [1]])
def test_a_bad_before_gets_a_sentence(no_shape_hook, before):
    with pytest.raises(ValueError, match="before must be a whole number of at least 0, got "):
        draw(3, 3, before=before)
