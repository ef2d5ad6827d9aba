"""Heads that are silenced: the block of W_o."""

import torch

from lesson_lib.chapters.c04_multi_head.experiments import silenced, two_relations


def test_a_silenced_head_says_nothing_and_the_others_all():
    torch.manual_seed(0)
    model = two_relations.make("4 heads")
    before = model.attention.w_output.weight.detach().clone()
    silenced.silence(model, 1, 3)
    after = model.attention.w_output.weight
    assert (after[:, 8:16] == 0).all() and (after[:, 24:] == 0).all()
    assert torch.equal(after[:, :8], before[:, :8]) and torch.equal(after[:, 16:24], before[:, 16:24])
