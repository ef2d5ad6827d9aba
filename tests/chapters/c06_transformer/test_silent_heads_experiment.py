"""One head silent at a time: what is silenced, and that it comes back."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c06_transformer import proof_figures
from lesson_lib.chapters.c06_transformer.experiments import silent_heads, translation


def test_a_silent_head_says_nothing_and_comes_back_after_errors_too():
    attention = next(iter(silent_heads.parts(translation.make()).values()))
    x = torch.randn(2, 5, 64)
    before = attention(x, x, x).output
    heads = []
    for head in range(attention.n_heads):
        with silent_heads.silent(attention, head):
            heads.append(before - attention(x, x, x).output)
    assert_close(sum(heads), before, atol=1e-5, rtol=1e-5)  # the heads' shares add up to the whole
    assert torch.equal(attention(x, x, x).output, before)
    attention = next(iter(silent_heads.parts(translation.make()).values()))
    weight = attention.w_output.weight.detach().clone()
    with pytest.raises(KeyError), silent_heads.silent(attention, 1):
        raise KeyError
    assert torch.equal(attention.w_output.weight, weight)


def test_the_attentions_are_named_layer_by_layer():
    assert list(silent_heads.parts(translation.make())) == [
        f"{part}, layer {i}" for i in (1, 2) for part in ("encoder", "decoder's own", "to the encoder")
    ]


def test_what_a_stack_is_at_the_start_is_drawn_from_the_lowest_seed_to_the_highest():
    picture = proof_figures.at_the_start({"one": [[1, 5], [3, 4], [2, 9]]}, title="size")
    (line, *_) = picture.figure.axes[0].lines
    assert list(line.get_ydata()) == [2, 5] and list(line.get_xdata()) == [1, 2]
