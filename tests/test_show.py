"""show: the same digits everywhere."""

import pytest
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


@pytest.mark.parametrize("number", [0.48015003, 0.48014998, -12.34565])
def test_a_number_that_other_processors_round_otherwise_is_not_built(number, monkeypatch, capsys):
    """The softmax of 2 and eight zeros is .48015003, and .48014998 where it is summed in another order."""
    number = torch.tensor([number])
    show(number)
    assert len(capsys.readouterr().out) in (7, 9)
    monkeypatch.setenv("LESSON_BUILD", "1")
    with pytest.raises(ValueError, match=r"show: -?[\d.]+ is so near to where its fourth decimal turns"):
        show(number)
    show(number + 3e-5, number.double() + 1e-9, number.item() + 1e-9)


@pytest.mark.parametrize("number", [0.0, 1 / 32, 300.0, 786432.0, 300.25, 0.25, torch.inf, torch.nan])
def test_exact_numbers_are_built(number, monkeypatch, capsys):
    monkeypatch.setenv("LESSON_BUILD", "1")
    show(number, torch.tensor(number))
    assert len(set(capsys.readouterr().out.split())) == 1


def test_source_comes_without_its_docstring():
    def double(x):
        """Twice x."""
        return 2 * x

    text = show_source(double).data
    assert "return 2 * x" in text and "Twice" not in text
