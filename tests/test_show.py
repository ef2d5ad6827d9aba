"""show: the same digits everywhere."""

import torch

from lesson_lib.show import show, show_source


def test_four_decimals_and_no_minus_zero(capsys):
    show(torch.tensor([[-0.00001, 1.23456], [10.0, -2.0]]))
    assert capsys.readouterr().out == " 0.0000   1.2346\n10.0000  -2.0000\n"


def test_names_shapes_whole_numbers_and_plain_values(capsys):
    show(mask=torch.tensor([[True, False]]), n=3, share=0.5, scalar=torch.tensor(-0.0))
    assert capsys.readouterr().out == "mask (1, 2)\n  1  0\nn = 3\nshare = 0.5000\nscalar = 0.0000\n"


def test_deeper_tensors_come_in_blocks(capsys):
    show(torch.zeros(2, 1, 1))
    assert capsys.readouterr().out == "0.0000\n\n0.0000\n"


def test_source_comes_without_its_docstring():
    def double(x):
        """Twice x."""
        return 2 * x

    text = show_source(double).data
    assert "return 2 * x" in text and "Twice" not in text
