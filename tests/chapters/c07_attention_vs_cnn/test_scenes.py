"""Scenes: shapes by hand, boxes that never touch, labels that no single shape gives away."""

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c07_attention_vs_cnn import scenes
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import KINDS, MOST, NOISE, NONE, SIZE, objects, pairs


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


def painted(kind, box, size):
    """Shapes without noise, as rows of text."""
    table = scenes._paint(
        torch.tensor([kind], device="cpu"), torch.tensor([box], device="cpu"), size, generator()
    )
    return ["".join("#" if pixel else "." for pixel in line) for line in table[0].tolist()]


def test_shapes_by_hand(monkeypatch):
    monkeypatch.setattr(scenes, "NOISE", 0.0)
    kinds, boxes = range(4), [(0, 0, 7, 7), (8, 0, 15, 7), (0, 8, 7, 15), (8, 8, 15, 15)]
    rows = (
        "#######...###.. #######..#####. #######.####### #######.####### #######.####### #######..#####. "
        "#######...###.. ............... ...#......###.. ...#......###.. ..###...####### ..###...####### "
        ".#####..####### .#####....###.. #######...###.."
    )
    assert painted(list(kinds), boxes, 15) == rows.split()


def test_brightness_and_noise():
    box = torch.tensor([[[0, 0, 9, 9]]], device="cpu").expand(997, 1, 4)
    table = scenes._paint(torch.zeros(997, 1, dtype=torch.long, device="cpu"), box, 13, generator())
    inside, outside = table[:, :9, :9].flatten(1), table[:, 9:].flatten(1)
    assert outside.mean().item() == pytest.approx(0, abs=0.002)
    assert outside.std().item() == pytest.approx(NOISE, rel=0.02)
    assert inside.std(1).mean().item() == pytest.approx(NOISE, rel=0.02)  # a shape is of one brightness
    bright = inside.mean(1)
    assert 0.45 < bright.min() < 0.53 and 0.97 < bright.max() < 1.05
    assert bright.mean().item() == pytest.approx(0.75, abs=0.02)


def test_objects_are_one_to_three_present_ones_first():
    _, kind, box = objects(generator(), 1499)
    there = kind != NONE
    assert kind.shape == (1499, MOST) and box.shape == (1499, MOST, 4)
    assert (there.int().diff(dim=1) <= 0).all(), "no gap before a present one"
    counts, kinds = there.sum(1).bincount(minlength=4) / 1499, kind[there].bincount() / there.sum()
    assert_close(counts, torch.tensor([0, 1 / 3, 1 / 3, 1 / 3], device="cpu"), atol=0.04, rtol=0)
    assert_close(kinds, torch.full((len(KINDS),), 1 / len(KINDS), device="cpu"), atol=0.03, rtol=0)
    assert (box[~there] == 0).all()
    width = box[..., 2:] - box[..., :2]
    assert torch.equal(width[..., 0], width[..., 1])
    assert width[there].unique().tolist() == [5, 6, 7, 8, 9]


def apart(box, there):
    """True where every two boxes of a canvas have a free pixel between them, in rows or in columns."""
    for one in range(box.shape[1]):
        for two in range(one):
            both = there[:, one] & there[:, two]
            a, b = box[both, one], box[both, two]
            gap = torch.maximum(a[:, :2] - b[:, 2:], b[:, :2] - a[:, 2:]).amax(1)
            if len(gap) and gap.min() < 1:
                return False
    return True


@pytest.mark.parametrize("size", [SIZE, 31])
def test_no_two_objects_touch_and_all_lie_on_the_canvas(size):
    canvas, kind, box = objects(generator(), 1009, size=size)
    there = kind != NONE
    assert canvas.shape == (1009, size, size)
    assert apart(box, there)
    assert box.min() == 0 and box[..., 2:].max() == size, "edges are used, and not left"


def test_an_objects_pixels_are_in_its_box_and_fill_it(monkeypatch):
    monkeypatch.setattr(scenes, "NOISE", 0.0)
    canvas, kind, box = objects(generator(), 53)
    for table, kinds, boxes in zip(canvas, kind.tolist(), box.tolist(), strict=True):
        left = table.clone()
        for one, (x0, y0, x1, y1) in zip(kinds, boxes, strict=True):
            if one == NONE:
                continue
            part = table[y0:y1, x0:x1]
            # a triangle of an even width has no pixel in its first row: its tip lies between two
            rows = part[1:] if KINDS[one] == "triangle" and (y1 - y0) % 2 == 0 else part
            assert (rows > 0).any(0).all() and (rows > 0).any(1).all(), "the box is tight"
            assert part[part > 0].unique().numel() == 1
            left[y0:y1, x0:x1] = 0
        assert not left.any()


def test_a_pairs_label_says_whether_its_kinds_agree_and_one_shape_says_nothing():
    given = pairs(generator(), 2003)
    assert torch.equal(given.label, (given.kind[:, 0] == given.kind[:, 1]).long())
    assert given.label.float().mean().item() == pytest.approx(0.5, abs=0.04)
    assert given.canvas.shape == (2003, SIZE, SIZE)
    assert (given.box[..., 2:] - given.box[..., :2] == 7).all()
    assert apart(given.box, torch.ones(2003, 2, dtype=torch.bool, device="cpu"))
    given = pairs(generator(), 20_011)
    for shape in (0, 1):
        for kind in given.kind.unique().tolist():
            same = given.label[given.kind[:, shape] == kind].float().mean().item()
            assert same == pytest.approx(0.5, abs=0.03)


def test_pairs_of_few_kinds_have_no_other():
    given = pairs(generator(), 4001, kinds=("cross", "disc"))
    assert given.kind.unique().tolist() == [KINDS.index("disc"), KINDS.index("cross")]
    four = given.kind[:, 0] * 10 + given.kind[:, 1]
    shares = torch.stack([(four == value).float().mean() for value in (11, 13, 31, 33)])
    assert_close(shares, torch.full((4,), 0.25, device="cpu"), atol=0.03, rtol=0)
    assert torch.equal(given.label, (given.kind[:, 0] == given.kind[:, 1]).long())


def test_all_are_drawn_on_the_cpu_alike_for_a_seed():
    for draw in (objects, pairs):
        one, same, other = (draw(generator(seed), 5) for seed in (1, 1, 2))
        assert all(table.device.type == "cpu" for table in one)
        assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
        assert not torch.equal(one.canvas, other.canvas)


@pytest.mark.parametrize("call, said", [
    (lambda: objects(generator(), 0), "batch must be a whole number >= 1, got 0"),
    (lambda: objects(generator(), 3, size=24.0), "size must be a whole number >= 1, got 24.0"),
    (lambda: pairs(generator(), 3, kinds=("disc", "disc", "cross")), "two or more different"),
    (lambda: pairs(generator(), 3, size=None), "size must be .* got None"),
])  # fmt: skip
def test_what_cannot_be_drawn_gets_a_sentence(no_shape_hook, call, said):
    with pytest.raises(ValueError, match=said):
        call()
