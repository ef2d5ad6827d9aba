"""Digits as sets of points: what a list holds, and what a shuffle may not change."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c05_positional_encoding.experiments import points


def test_a_list_holds_the_dark_pixels_in_reading_order():
    pictures = torch.zeros(2, 8, 8)
    pictures[0, 0, 7], pictures[0, 7, 0], pictures[0, 3, 3] = 1.0, 0.5, 0.2  # the last is too pale
    pictures[1, 2, 5] = 0.25
    found, real = points.as_points(pictures)
    assert real.tolist() == [[True, True], [True, False]]
    assert_close(found[0], torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 0.5]]))
    assert_close(found[1, 0], torch.tensor([1.5 / 3.5, -1.5 / 3.5, 0.25]))
    assert found[1, 1].tolist() == [0, 0, 0]


@pytest.mark.on_cpu
def test_a_shuffle_keeps_the_points_and_leaves_the_padding_behind():
    found, real, _ = points.lists("validation")
    mixed = points.shuffled(found, real)
    assert (mixed[~real] == 0).all()
    assert_close(mixed.sum(1), found.sum(1), atol=1e-5, rtol=1e-5)
    assert not torch.equal(mixed, found) and torch.equal(mixed, points.shuffled(found, real))


@pytest.mark.on_cpu
@pytest.mark.parametrize("kind, same", [("no codes", True), ("codes", False)])
def test_without_codes_the_order_of_a_list_does_not_matter(kind, same):
    found, real, _ = points.lists("validation")
    model = points.untrained(kind).to("cpu")
    gap = (model(found, real) - model(points.shuffled(found, real), real)).abs().max().item()
    assert (gap < 1e-5) == same


def test_padding_is_not_read():
    found, real, _ = points.lists("validation")
    poisoned = found.masked_fill(~real[..., None], 1e6)
    model = points.untrained("no codes").to("cpu")
    assert_close(model(poisoned, real), model(found, real))


def test_darkness_alone_is_darkness_alone():
    seen = points.seen(torch.ones(2, 5, 3), "darkness alone")
    assert seen.sum((0, 1)).tolist() == [0, 0, 10] and (points.seen(seen, "codes") == seen).all()
