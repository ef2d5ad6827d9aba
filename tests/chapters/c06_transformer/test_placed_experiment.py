"""Three GPTs that differ in their positions alone."""

import torch

from lesson_lib.chapters.c06_transformer.experiments import placed
from lesson_lib.experiments import results


def test_without_positions_there_is_a_table_of_zeros_that_no_step_changes():
    model = placed.make("none")
    table = model.embedding.positions.table
    assert not table.requires_grad and table.count_nonzero() == 0
    model(torch.randint(96, (2, 7))).sum().backward()
    assert table.grad is None


def test_the_two_others_are_the_librarys():
    assert placed.make("learned").embedding.positions.table.requires_grad
    assert "table" not in dict(placed.make("rotary").embedding.positions.named_parameters())


def test_what_part_06e_says_of_the_stored_runs():
    def bits(kind):
        return [row["bits"] for row in results("placed")["rows"] if row["kind"] == kind]

    assert 2.17 < min(bits("rotary")) and max(bits("rotary")) < 2.19
    assert 2.32 < min(bits("learned")) and max(bits("learned")) < 2.36
    assert 3.5 < min(bits("none")) and max(bits("none")) < 3.53
    (pairs,) = [row["bits"] for row in results("gpt")["rows"] if row["kind"] == "n-gram" and row["n"] == 2]
    assert round(pairs, 2) == 3.85
