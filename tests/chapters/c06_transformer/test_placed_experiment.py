"""Three GPTs that differ in their positions alone."""

import torch

from lesson_lib.chapters.c06_transformer.experiments import placed


def test_without_positions_there_is_a_table_of_zeros_that_no_step_changes():
    model = placed.make("none")
    table = model.embedding.positions.table
    assert not table.requires_grad and table.count_nonzero() == 0
    model(torch.randint(96, (2, 7))).sum().backward()
    assert table.grad is None


def test_the_two_others_are_the_librarys():
    assert placed.make("learned").embedding.positions.table.requires_grad
    assert "table" not in dict(placed.make("rotary").embedding.positions.named_parameters())
