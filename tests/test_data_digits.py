"""Digits on a canvas: split by picture, placed to the pixel, drawn the same on every device."""

import pytest
import torch
from sklearn.datasets import load_digits
from torch.testing import assert_close

from lesson_lib.data.digits import CLASSES, HELD_OUT, SIDE, SPLITS, centre, draw, pictures, place


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_splits_share_no_picture_and_lose_none():
    bunch = load_digits()
    ours = [row for split in SPLITS for row in zip(*(x.tolist() for x in pictures(split)), strict=True)]
    assert {split: len(pictures(split)[1]) for split in SPLITS} == {
        "training": 1797 - 2 * HELD_OUT,
        "validation": HELD_OUT,
        "test": HELD_OUT,
    }
    theirs = zip((bunch.images / 16).tolist(), bunch.target.tolist(), strict=True)
    assert sorted(ours) == sorted(theirs)  # so every picture stands in exactly one split
    for split in SPLITS:
        images, labels = pictures(split)
        assert images.shape[1:] == (SIDE, SIDE) and (images.min(), images.max()) == (0, 1)
        assert labels.bincount(minlength=CLASSES).min() > len(labels) / CLASSES / 2, "no digit is missing"


def test_placed_by_hand_column_first():
    images = torch.arange(1.0, 129.0).reshape(2, 8, 8)
    canvas = place(images, torch.tensor([[3, 5], [0, 5]]), 13)
    assert canvas.shape == (2, 13, 13)
    assert canvas[0, 5, 3] == 1 and canvas[0, 5, 4] == 2 and canvas[0, 6, 3] == 9 and canvas[0, 12, 10] == 64
    assert_close(canvas[1, 5:, :8], images[1])
    assert_close(canvas.sum((1, 2)), images.sum((1, 2)))  # and nothing else


def test_the_middle_of_a_digit_by_hand():
    # the digit at column 3, row 5 of 24 reaches from 3 to 11: its middle is 7 of 24; and from 5 to 13: 9 of
    # 24
    assert_close(
        centre(torch.tensor([[3, 5], [8, 8], [0, 16]]), 24),
        torch.tensor([[-5 / 12, -0.25], [0, 0], [-2 / 3, 2 / 3]]),
    )


@pytest.mark.parametrize("size", [8, 11, 24])
def test_a_batch_is_what_it_says(size):
    batch = draw("test", 29, generator(), size=size)
    images, labels = pictures("test")
    assert batch.canvas.device.type == batch.label.device.type == "cpu"
    for canvas, label, (column, row), which in zip(*(x.tolist() for x in batch), strict=True):
        there = [line[column : column + 8] for line in canvas[row : row + 8]]
        assert there == images[which].tolist() and label == labels[which]
        assert sum(map(sum, canvas)) == pytest.approx(images[which].sum().item())


def test_every_place_and_most_pictures_are_drawn():
    batch = draw("validation", 4000, generator(), size=11)
    assert {tuple(c) for c in batch.corner.tolist()} == {(x, y) for x in range(4) for y in range(4)}
    assert len(set(batch.picture.tolist())) == HELD_OUT


def test_the_same_generator_draws_the_same_and_another_does_not():
    one, same, other = (draw("training", 7, generator(seed)).canvas for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: pictures("valid"), "split must be one of training, validation, test, got 'valid'"),
        (lambda: pictures(None), "got None"),
        (lambda: draw("dev", 3, generator()), "got 'dev'"),
        (lambda: draw("test", 0, generator()), "batch must be a whole number >= 1, got 0"),
        (lambda: draw("test", None, generator()), "got None"),
        (lambda: draw("test", 3, generator(), size=7), "at least 8 pixels, got 7"),
        (lambda: draw("test", 3, generator(), size="24"), "got '24'"),
        (lambda: place(torch.zeros(1, 8, 8), torch.tensor([[0, 6]]), 13), r"in 0 \.\.\. 5.*got 0 \.\.\. 6"),
        (lambda: place(torch.zeros(1, 8, 8), torch.tensor([[-1, 0]]), 13), r"got -1 \.\.\. 0"),
        (lambda: place(torch.zeros(8, 8), torch.zeros(1, 2).long(), 13), r"one image is image\[None\]"),
        (lambda: place(torch.zeros(3, 8, 8), torch.zeros(2, 2).long(), 13), r"\(3, 8, 8\) and \(2, 2\)"),
        (lambda: place(None, torch.zeros(1, 2).long(), 13), "images must be a tensor, got NoneType"),
        (lambda: place(torch.zeros(1, 8, 8), "corner", 13), "corner must be a tensor, got str"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()
