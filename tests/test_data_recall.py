"""Recall: what is asked is the first token, and the filler says nothing of it; or the value beside a key."""

import pytest
import torch

from lesson_lib.data import recall
from lesson_lib.data.recall import CHARACTERS, FILLERS, PAIR_KEYS, PAIR_TOKENS, PAIR_VALUES, QUESTION, SYMBOLS


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


@pytest.mark.parametrize(
    "batch, distance, words",
    [(0, 3, "batch must be"), (3, 0, "distance must be"), (3, "far", "got 'far'"), (3, True, "got True")],
)
def test_bad_numbers_get_a_sentence(no_shape_hook, batch, distance, words):
    with pytest.raises(ValueError, match=words):
        draw(batch, distance)


@pytest.mark.parametrize("before", [-1, 1.0, True, None, "some", [1]])
def test_a_bad_before_gets_a_sentence(no_shape_hook, before):
    with pytest.raises(ValueError, match="before must be a whole number >= 0, got "):
        draw(3, 3, before=before)


def draw_pairs(batch, count, seed=0):
    return recall.pairs(torch.Generator("cpu").manual_seed(seed), batch, count)


@pytest.mark.parametrize("count", [1, 2, 13, 127, 128])
def test_the_key_that_is_asked_for_stands_there_once_and_beside_it_the_answer(count):
    tokens, answer = draw_pairs(31, count)
    assert tokens.shape == (31, count + 1) and answer.shape == (31,)
    assert tokens.dtype == answer.dtype == torch.int64
    assert tokens.min() >= 0 and tokens.max() < PAIR_TOKENS and answer.min() >= 0 and answer.max() < 8
    for row, wanted in zip(tokens.tolist(), answer.tolist(), strict=True):
        beside = dict(divmod(token, 8) for token in row[:-1])
        assert len(beside) == count and max(beside) < PAIR_KEYS  # no key twice, and pairs come first
        assert row[-1] >= PAIR_KEYS * PAIR_VALUES and beside[row[-1] - 1024] == wanted


def test_pairs_as_text():
    assert (PAIR_KEYS, PAIR_VALUES, PAIR_TOKENS) == (128, 8, 1152)
    shown = torch.tensor([17 * 8 + 2, 3 * 8, 127 * 8 + 7, 1024 + 3], device="cpu")
    assert recall.pair_text(shown) == "17=C 3=A 127=H 3?"
    assert recall.pair_text(torch.tensor([0, 1151], device="cpu")) == "0=A 127?"
    tokens, answer = draw_pairs(7, 11)
    for row, wanted in zip(tokens, answer.tolist(), strict=True):
        *written, question = recall.pair_text(row).split()
        assert question[:-1] + "=" + SYMBOLS[wanted] in written and question[-1] == "?"


def test_keys_values_and_places_that_are_asked_for_come_about_equally_often():
    tokens, answer = draw_pairs(4000, 5)
    keys, values = tokens[:, :-1] // 8, tokens[:, :-1] % 8
    places = (keys == tokens[:, -1:] - 1024).nonzero()[:, 1]
    for some, count in ((keys.flatten(), 128), (values.flatten(), 8), (answer, 8), (places, 5)):
        shares = torch.bincount(some, minlength=count) / len(some)
        assert (
            len(shares) == count and (shares * count - 1).abs().max() < 3 * (count / len(some)) ** 0.5 + 0.1
        )


def test_neither_the_question_nor_the_last_pair_says_the_answer():
    tokens, answer = draw_pairs(8000, 13)
    for place, kinds in ((-1, PAIR_TOKENS), (-2, PAIR_TOKENS)):
        table = torch.zeros(kinds, PAIR_VALUES, device="cpu")
        table.index_put_(
            (tokens[:4000, place], answer[:4000]), torch.ones(4000, device="cpu"), accumulate=True
        )
        right = (table.argmax(1)[tokens[4000:, place]] == answer[4000:]).float().mean()
        assert right < 1 / 8 + 0.05


def test_the_same_seed_draws_the_same_pairs():
    assert torch.equal(draw_pairs(5, 7).tokens, draw_pairs(5, 7).tokens)
    assert not torch.equal(draw_pairs(5, 7).tokens, draw_pairs(5, 7, seed=1).tokens)


@pytest.mark.parametrize("name", ["batch", "count"])
@pytest.mark.parametrize("bad", [0, -1, 2.0, True, None, "some", [1]])
def test_bad_numbers_of_pairs_get_a_sentence(no_shape_hook, name, bad):
    with pytest.raises(ValueError, match=f"{name} must be a whole number >= 1, got "):
        draw_pairs(**({"batch": 3, "count": 5} | {name: bad}))


def test_more_pairs_than_keys_get_a_sentence():
    with pytest.raises(ValueError, match="count must be at most 128, as there are no more keys, got 129"):
        draw_pairs(3, 129)


@pytest.mark.parametrize(
    "tokens, error, words",
    [
        ("3=A", TypeError, "tokens must be a tensor \\(n\\), got str"),
        (None, TypeError, "got NoneType"),
        (torch.zeros(2, 3, dtype=torch.long, device="cpu"), TypeError,
         "got shape \\(2, 3\\); .* tokens\\[0\\]"),
        (torch.tensor([1, 1152], device="cpu"), ValueError, "from 0 to 1151, got 1152"),
        (torch.tensor([-1, 1], device="cpu"), ValueError, "from 0 to 1151, got -1"),
    ],
)  # fmt: skip
def test_what_are_no_pairs_get_a_sentence(no_shape_hook, tokens, error, words):
    with pytest.raises(error, match=words):
        recall.pair_text(tokens)
