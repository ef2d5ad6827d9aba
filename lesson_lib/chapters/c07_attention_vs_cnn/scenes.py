"""Scenes drawn by a rule, as many as one likes: shapes on a noisy canvas, to be found one by one, or to be
compared across it.

Two tasks share the shapes. `objects`: one to three shapes of different sizes; what are they, and where?
`pairs`: two shapes of one size, anywhere on the canvas; are they of one kind? No small piece of the canvas
can answer that: one shape alone says nothing. Shapes are drawn where the middle of a pixel lies inside of
them, so a triangle of even width leaves the first line of its box empty; no two touch. Drawn with a CPU
generator, on the CPU.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib import require

KINDS = ("square", "disc", "triangle", "cross")
SIZE = 24  # pixels of a canvas' side
MOST = 3  # objects on a canvas
NONE = -1  # the kind where there is no object
NOISE = 0.1  # standard deviation of each pixel; shapes have brightness 0.5 to 1


class Objects(NamedTuple):
    """Canvases with 1 to MOST shapes each: `kind` is an index into KINDS, or NONE; a box is (left, top,
    right, bottom) in pixels, 0 where there is none."""

    canvas: Float[Tensor, "b size size"]
    kind: Int[Tensor, "b most"]
    box: Int[Tensor, "b most 4"]


class Pairs(NamedTuple):
    """Canvases with two shapes each; `label` is 1 where they are of one kind, and `distance` lies between
    their middles, in pixels."""

    canvas: Float[Tensor, "b size size"]
    label: Int[Tensor, " b"]
    kind: Int[Tensor, "b 2"]
    box: Int[Tensor, "b 2 4"]
    distance: Float[Tensor, " b"]


def objects(generator: torch.Generator, batch: int, *, size: int = SIZE) -> Objects:
    """A batch of canvases with one, two or three shapes (equally often), 5 to 9 pixels wide, present ones
    first.

    Raises ValueError where `batch` is less than 1 or `size` so small that three shapes do not fit (24).
    """
    require.whole(batch=batch, size=size)
    if size < SIZE:
        raise ValueError(f"size must be at least {SIZE} pixels, so that {MOST} shapes fit, got {size}")
    count = _integers(1, MOST + 1, (batch, 1), generator)
    there = torch.arange(MOST, device="cpu") < count
    kind = _integers(0, len(KINDS), (batch, MOST), generator).where(there, NONE)
    width = _integers(5, 10, (batch, MOST), generator) * there
    box = _apart(width, size, generator)
    return Objects(_paint(kind, box, size, generator), kind, box)


def pairs(
    generator: torch.Generator, batch: int, *, size: int = SIZE, kinds: tuple[str, ...] = KINDS
) -> Pairs:
    """A batch of canvases with two shapes, 7 pixels wide; half of them, by chance, show one kind twice.

    Shapes are of `kinds` alone: the fewer, the easier. Raises ValueError where `batch` is less than 1, `size`
    less than 16, or `kinds` are not two or more different names of KINDS.
    """
    require.whole(batch=batch, size=size)
    if size < 16:
        raise ValueError(f"size must be at least 16 pixels, so that two shapes of 7 fit, got {size}")
    if not isinstance(kinds, tuple) or len(set(kinds)) < max(2, len(kinds)) or not set(kinds) <= set(KINDS):
        raise ValueError(
            f"kinds must be two or more different ones of {', '.join(KINDS)}, in a tuple, got {kinds!r}"
        )
    label = _integers(0, 2, (batch,), generator)
    first = _integers(0, len(kinds), (batch,), generator)
    other = (first + _integers(1, len(kinds), (batch,), generator)) % len(kinds)
    numbers = torch.tensor([KINDS.index(kind) for kind in kinds], device="cpu")
    kind = numbers[torch.stack([first, first.where(label == 1, other)], 1)]
    box = _apart(torch.full((batch, 2), 7, device="cpu"), size, generator)
    apart = (box[:, 0] - box[:, 1])[:, :2].float().norm(dim=-1)
    return Pairs(_paint(kind, box, size, generator), label, kind, box, apart)


def _apart(width: Int[Tensor, "b m"], size: int, generator: torch.Generator) -> Int[Tensor, "b m 4"]:
    """Boxes of those widths, at random, with a free pixel between any two; a width of 0 takes no room."""
    box = torch.zeros(*width.shape, 4, dtype=torch.long, device="cpu")
    redo = torch.arange(len(width), device="cpu")
    while len(redo):
        wide = width[redo][..., None]
        corner = (
            torch.rand(*wide.shape[:2], 2, generator=generator, device="cpu") * (size - wide + 1)
        ).long()
        box[redo] = torch.cat([corner, corner + wide], -1) * (wide > 0)
        one, two = box[redo][:, :, None], box[redo][:, None]
        touch = ((one[..., :2] <= two[..., 2:]) & (two[..., :2] <= one[..., 2:])).all(-1)
        real = (wide > 0).squeeze(-1)
        touch &= real[:, :, None] & real[:, None] & ~torch.eye(width.shape[1], dtype=torch.bool, device="cpu")
        redo = redo[touch.any(-1).any(-1)]
    return box


def _paint(
    kind: Int[Tensor, "b m"], box: Int[Tensor, "b m 4"], size: int, generator: torch.Generator
) -> Float[Tensor, "b {size} {size}"]:
    """The shapes in their boxes, on noise."""
    middle = torch.arange(size, device="cpu") + 0.5  # of a pixel
    corner, width = box[..., :2].float(), (box[..., 2:] - box[..., :2]).clamp(min=1)
    # places inside of a box run from -1 to 1, to the right (u) and down (v)
    u, v = (2 * (middle - corner[..., axis, None]) / width[..., axis, None] - 1 for axis in (0, 1))
    u, v = u[..., None, :], v[..., None]
    inside = (u.abs() <= 1) & (v.abs() <= 1)
    shapes = torch.stack(
        [
            inside,
            u.square() + v.square() <= 1,
            inside & (u.abs() <= (v + 1) / 2),
            inside & (torch.minimum(u.abs(), v.abs()) <= 1 / 3),
        ],
        2,
    )
    chosen = (torch.arange(len(KINDS), device="cpu") == kind[..., None])[..., None, None]  # none for NONE
    bright = 0.5 + 0.5 * torch.rand(*kind.shape, 1, 1, generator=generator, device="cpu")
    drawn = ((shapes & chosen).any(2) * bright).sum(1)
    return drawn + NOISE * torch.randn(drawn.shape, generator=generator, device="cpu")


def _integers(low: int, high: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(low, high, shape, generator=generator, device="cpu")
