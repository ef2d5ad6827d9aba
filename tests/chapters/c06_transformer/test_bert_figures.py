"""The figures of part 06d show the numbers that they are given, or those that are stored."""

import pytest
import torch

from lesson_lib.chapters.c06_transformer import bert_figures


def heights(picture):
    return [patch.get_height() for patch in picture.figure.axes[0].patches]


def test_the_gaps_row_stands_there_for_each_head():
    weights = torch.zeros(2, 2, 3, 3)
    weights[:, :, 1, 0] = torch.tensor([[0.25, 0.5], [0.75, 1.0]])
    picture = bert_figures.gap(["keys", "[mask]", "old"], weights)
    shown = picture.figure.axes[0].images[0].get_array()
    assert shown[:, 0].tolist() == [0.25, 0.5, 0.75, 1.0] and shown.shape == (4, 3)
    assert [tick.get_text() for tick in picture.figure.axes[0].get_yticklabels()][2] == "layer 1, head 0"


def test_shares_stand_in_the_order_of_layers_and_heads():
    picture = bert_figures.looks(torch.tensor([[0.1, 0.2], [0.3, 0.4]]), by_distance=0.31)
    assert heights(picture) == pytest.approx([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("seed, largest", [(0, 0.995), (1, 0.49), (2, 0.277)])
def test_stored_looks_are_those_of_the_seed(seed, largest):
    assert heights(bert_figures.stored_looks(seed))[3] == pytest.approx(largest, abs=1e-3)


def test_the_gap_stands_first_then_the_word_behind_the_subject():
    found = heights(bert_figures.stored_blinded(2))
    assert found[4] == pytest.approx(0.946, abs=1e-3) and found[5 + 1] == pytest.approx(0.507, abs=1e-3)


def test_the_unread_words_stand_in_one_order_for_each_seed():
    found = heights(bert_figures.stored_unread())
    assert len(found) == 15
    assert found[10:13] == pytest.approx([0.960, 0.681, 0.077], abs=2e-3)


def test_the_alt_says_whether_a_head_beats_one_distance():
    low = bert_figures.looks(torch.tensor([[0.1, 0.2], [0.1, 0.28]]), by_distance=0.31)
    assert "below the line" in low.alt


def test_counts_fall_where_bert_stays():
    curves = {
        line.get_label(): line.get_ydata() for line in bert_figures.by_nouns_between().figure.axes[0].lines
    }
    assert min(curves["BERT"]) > 0.98 and max(curves["count of both neighbours"]) < 0.27


def test_every_change_has_its_bar():
    assert heights(bert_figures.blinded({"as it is": 1.0, "blind": 0.09})) == [1.0, 0.09]
