"""Heads that learn where to look: the hidden convolution by hand, and the measure."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.chapters.c07_attention_vs_cnn.experiments import fields
from lesson_lib.convolution import as_attention
from lesson_lib.device import to_device


def test_the_hidden_convolution_of_a_seed_looks_at_four_far_pixels():
    conv = fields.hidden(seed=0)
    assert conv.weight.count_nonzero() == 4 * 3 * 3
    x = torch.zeros(1, 3, 9, 9, device="cpu")
    x[0, 1, 4, 4] = 1.0  # one pixel of one channel: it shows up three pixels away, in four places
    seen = conv(x)[0].abs().sum(0).nonzero()
    assert sorted(seen.tolist()) == [[1, 4], [4, 1], [4, 7], [7, 4]]
    assert not torch.equal(fields.hidden(0).weight, fields.hidden(1).weight)
    assert torch.equal(fields.hidden(1).weight, fields.hidden(1).weight)


def test_unexplained_is_0_for_the_truth_and_1_for_silence():
    target, x = fields.hidden(), fields.pictures(torch.Generator("cpu").manual_seed(0), 64)
    assert fields.unexplained(target, target, x) == 0
    silent = nn.Conv2d(3, 3, 1, bias=False, device="cpu")
    nn.init.zeros_(silent.weight)
    assert_close(fields.unexplained(silent, target, x), torch.tensor(1.0, device="cpu"), atol=0.02, rtol=0)


def test_heads_put_on_the_taps_explain_everything_and_untrained_ones_nothing():
    target = fields.hidden(0)
    full = as_attention(target)  # 49 heads, four of them with a value
    assert fields.judged(to_device(full), 0) < 1e-8
    assert fields.found(full) == 4
    with torch.no_grad():
        full.logits.centres.add_(0.6)
    assert fields.found(full) == 0  # more than half a pixel off
    blunt = as_attention(target, sharpness=0.5)
    assert fields.found(blunt) == 0
    model = fields.heads(8, torch.Generator("cpu").manual_seed(0))
    assert fields.judged(to_device(model), 0) > 0.8 and fields.found(model) == 0


@pytest.mark.parametrize("options", [{}, {"n_heads": 4, "kernel": 3}])
def test_one_of_heads_and_kernel(options):
    with pytest.raises(ValueError, match="give n_heads or kernel, one of the two"):
        fields.train(0, **options)
