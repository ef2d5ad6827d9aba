"""Convolutions of equal reach: what they hear, how many weights they have, and what filler does."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.chapters.c09_truncated_attention import nearness, phonemes, speech
from lesson_lib.chapters.c09_truncated_attention.experiments import nearness as experiment
from lesson_lib.experiments import results
from lesson_lib.measure import sensitivity


@pytest.mark.parametrize("kind", nearness.KINDS)
def test_a_stack_hears_as_far_as_windows_do(kind):
    torch.manual_seed(0)
    model = nearness.convolutional(5, radius=3, kind=kind, d_model=8, n_heads=2, n_layers=2).double()
    heard = sensitivity(model, torch.randn(31, speech.N_MELS, dtype=torch.double))[15]
    assert (heard > 0).nonzero().flatten().tolist() == list(range(9, 22))


def test_parameters_are_those_of_the_docstring():
    def count(layer):
        return sum(p.numel() for p in layer.parameters())

    d, r = 6, 4
    assert count(nearness.NearbySum(d, r)) == 2 * d * (d + 1) + (2 * r + 2) * d
    assert count(nearness.NearbySum(d, r, "dense")) == (2 * r + 1) * d**2 + d


def test_a_sum_of_neighbours_by_hand():
    layer = nearness.NearbySum(1, 1, "dense")
    with torch.no_grad():
        layer.sum.weight.copy_(torch.tensor([[[1.0, 10.0, 100.0]]]))
        layer.sum.bias.zero_()
    x = torch.tensor([[[1.0], [2.0], [3.0]]])
    assert layer(x, x, x).output.flatten().tolist() == [210, 321, 32]


def test_filler_changes_nothing():
    torch.manual_seed(0)
    model = nearness.convolutional(5, radius=3, kind="depthwise", d_model=8, n_heads=2, n_layers=2)
    short, long = (
        speech.Utterance(torch.randn(n, speech.N_MELS), torch.zeros(n, dtype=torch.long), "", "")
        for n in (20, 30)
    )
    both = phonemes.batch([short, long])
    alone = phonemes.batch([short])
    together = model(both.frames, mask=both.mask)[0, :20]
    assert_close(together, model(alone.frames, mask=alone.mask)[0])


def test_even_weights_by_hand():
    assert nearness.even(3, 1) == pytest.approx((2 + 3 + 2) / 9)
    assert nearness.even(5, 10) == 1


def test_the_stored_rate_is_the_best_one():
    rows = [row for row in results("nearness")["rows"] if row["kind"] == "rate"]
    for kind, radius in experiment.RECIPE["convolutions"]:
        mine = [row for row in rows if (row["system"], row["radius"]) == (kind, radius)]
        best = max(mine, key=lambda row: (row["accuracy_validation"], -row["lr"]))
        assert best["lr"] == experiment.RECIPE["lr"][f"{kind} {radius}"]
    assert isinstance(experiment.start("dense", 5).encoder.layers[0].attention.sum, nn.Conv1d)
