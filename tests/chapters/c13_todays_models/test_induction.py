"""Texts that are said twice: what is drawn and what is scored."""

import math

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c13_todays_models import figures, induction
from lesson_lib.chapters.c13_todays_models.experiments import copying
from lesson_lib.models.pretrained import cut
from tests import code_of

asked = code_of("c13_todays_models")


def drawn(seed=0, **sizes):
    return induction.said_twice(torch.Generator("cpu").manual_seed(seed), **sizes)


def test_a_piece_is_said_twice_and_holds_no_sign_twice():
    lengths = set()
    for seed in range(40):
        texts = drawn(seed, batch=5)
        length = texts.shape[1] // 2
        lengths.add(length)
        assert torch.equal(texts[:, :length], texts[:, length:])
        assert all(len(set(row.tolist())) == length for row in texts)
        assert len({tuple(row.tolist()) for row in texts}) == 5
    assert min(lengths) >= 6 and max(lengths) <= 24 and len(lengths) > 10
    assert drawn(batch=2, shortest=64, longest=64).shape == (2, 128)
    assert len(set(induction.LETTERS)) == len(induction.LETTERS) == induction.N_TOKENS


def test_the_loss_asks_the_second_half_from_its_second_sign_on():
    class Right(torch.nn.Module):
        """Sure of the next token, in the second half alone; elsewhere sure of a wrong one."""

        def forward(self, x):
            half = (x.shape[1] + 1) // 2
            follows = torch.cat((x[:, 1:], x[:, -1:]), 1)
            follows[:, half:] = x[:, 1 : x.shape[1] - half + 1]
            follows[:, :half] = (x[:, :half] + 7) % 64
            return type("Read", (), {"logits": 50.0 * torch.nn.functional.one_hot(follows, 64).float()})()

    class Knows(torch.nn.Module):
        """Nothing."""

        def forward(self, x):
            return type("Read", (), {"logits": torch.zeros(*x.shape, 64)})()

    texts = drawn(batch=4).to(torch.zeros(1).device)
    assert induction.loss(Right(), texts) < 1e-6
    assert induction.loss(Knows(), texts).item() == pytest.approx(math.log(64))


def test_scores_by_hand():
    length, n = 5, 10
    i = torch.arange(n)
    one_back = (i[:, None] - i == 1).float()
    matching = (i[:, None] - i == length - 1).float()
    assert induction.previous_score(one_back) == 1 and induction.previous_score(matching) == 0
    assert induction.matching_score(matching, length) == 1 and induction.matching_score(one_back, length) == 0
    table = torch.rand(2, 3, n, n)
    expected = torch.stack([table[..., j, j - length + 1] for j in range(length, n)]).mean()
    assert induction.matching_score(table, length) == pytest.approx(expected.item())
    for each in table.flatten(0, 1):
        assert_close(asked.prefix_matching(each, length), each.diagonal(1 - length)[1:].mean())


def test_a_quick_training(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    model, history = induction.train(seed=1)
    assert history.rows[-1]["step"] == 20 and not model.training
    assert len(model.layers) == 2 and model.options.n_heads == 1 and model.options.d_model == 32
    assert sum(p.numel() for p in model.parameters()) == 24_736
    with cut(model, [(0, 0), (1, 0)]):
        assert 0 <= induction.accuracy(model, 6, texts=4) <= 1
    assert induction.scores(model, 6, texts=2).keys() == {(0, 0), (1, 0)}


def test_a_run_has_a_row_for_each_kind(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    rows = copying.run(1)
    assert [(row["n_layers"], row["shortest"]) for row in rows] == [(2, 6), (1, 6), (2, 24), (1, 24)]
    for row in rows:
        assert len(row["cut"]) == len(row["previous"]) == len(row["matching"]) == row["n_layers"]
        assert list(row["accuracy"]) == [str(n) for n in copying.RECIPE["lengths"]]


def test_figures_have_words():
    for picture in (figures.two_heads(), figures.how_far()):
        assert len(picture.alt) > 100 and picture.caption
