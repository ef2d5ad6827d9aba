"""Handwritten digits of 8 by 8 pixels, bundled with scikit-learn, placed anywhere on a larger empty canvas.

1,797 pictures, about 180 of each digit, brightness 0 to 1. They are split by PICTURE before they are placed:
a picture of the test split is never trained on, wherever it lies. The same writers are in all three splits.

Source: Alpaydin & Kaynak 1998, Optical Recognition of Handwritten Digits, UCI; scikit-learn's `load_digits`.
"""

from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib import require

SIDE, CLASSES = 8, 10
HELD_OUT = 300  # pictures in each of validation and test; the rest trains
SPLITS = ("training", "validation", "test")


class Placed(NamedTuple):
    """Canvases with one digit each: what is to be seen, what it is, where it is, and which picture of its
    split it is."""

    canvas: Float[Tensor, "b size size"]
    label: Int[Tensor, "b"]
    corner: Int[Tensor, "b 2"]  # of the digit's top left pixel: (column, row)
    picture: Int[Tensor, "b"]


@cache
def pictures(split: str) -> tuple[Float[Tensor, "n 8 8"], Int[Tensor, "n"]]:
    """All pictures of a split, and the digits that they show; always the same, and on the CPU.

    Raises ValueError for a split that is none of SPLITS.
    """
    require.one_of(SPLITS, split=split)
    from sklearn.datasets import load_digits  # takes a second to import

    bunch = load_digits()
    order = torch.randperm(len(bunch.target), generator=torch.Generator().manual_seed(0), device="cpu")
    first = {"validation": 0, "test": HELD_OUT, "training": 2 * HELD_OUT}[split]
    chosen = order[first:] if split == "training" else order[first : first + HELD_OUT]
    brightness = torch.tensor(bunch.images, dtype=torch.float32, device="cpu") / 16
    return brightness[chosen], torch.tensor(bunch.target, device="cpu")[chosen]


def place(
    images: Float[Tensor, "b 8 8"], corner: Int[Tensor, "b 2"], size: int
) -> Float[Tensor, "b {size} {size}"]:
    """Canvases of zeros with an image each, its top left pixel at `corner`, (column, row).

    Raises TypeError for what is no tensor, ValueError for other shapes and where an image would not lie
    wholly on its canvas.
    """
    for name, x in (("images", images), ("corner", corner)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE) or corner.shape != (len(images), 2):
        raise ValueError(
            f"images must be (b, {SIDE}, {SIDE}) and corner (b, 2), got {tuple(images.shape)} and"
            f" {tuple(corner.shape)}; one image is image[None]"
        )
    if corner.min() < 0 or corner.max() > size - SIDE:
        raise ValueError(
            f"corner must be in 0 ... {size - SIDE}, so that {SIDE} by {SIDE} pixels fit on a canvas of"
            f" {size}, got {corner.min().item()} ... {corner.max().item()}"
        )
    canvas = images.new_zeros(len(images), size, size)
    which = torch.arange(len(images), device=images.device)[:, None, None]
    side = torch.arange(SIDE, device=images.device)
    canvas[which, (corner[:, 1:] + side)[:, :, None], (corner[:, :1] + side)[:, None]] = images
    return canvas


def draw(split: str, batch: int, generator: torch.Generator, *, size: int = 24) -> Placed:
    """A batch of a split: pictures chosen at random, placed at random; drawn with a CPU generator, on the
    CPU.

    Raises ValueError for an unknown split, and where `size` is less than 8 or `batch` less than 1.
    """
    if not isinstance(size, int) or size < SIDE:
        raise ValueError(
            f"size must be a whole number of at least {SIDE} pixels, got {size!r}; a digit has {SIDE} by"
            f" {SIDE}"
        )
    require.whole(batch=batch)
    images, labels = pictures(split)
    picture = torch.randint(len(images), (batch,), generator=generator, device="cpu")
    corner = torch.randint(size - SIDE + 1, (batch, 2), generator=generator, device="cpu")
    return Placed(place(images[picture], corner, size), labels[picture], corner, picture)


def centre(corner: Int[Tensor, "b 2"], size: int) -> Float[Tensor, "b 2"]:
    """The middle of each digit as (x, y): -1 and 1 are the canvas' edges, x to the right, y down."""
    return (corner + SIDE / 2) * 2 / size - 1
