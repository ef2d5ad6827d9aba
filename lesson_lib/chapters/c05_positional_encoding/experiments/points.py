"""Handwritten digits as sets of points: one layer of attention that is never told the order of its list, one
that is, and one that is not told where the points lie.

A digit is the list of its dark pixels, each with x, y and how dark it is. The lists are trained in reading
order, row by row; the test has them in that order, and shuffled.
"""

from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib.data import digits
from lesson_lib.device import to_device
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.positions import sinusoidal
from lesson_lib.training import History, fit

RECIPE = {
    "darkness": 0.25,
    "d_model": 64,
    "n_heads": 4,
    "batch": 64,
    "steps": 600,
    "lr": 1e-2,
    "schedule": "one-cycle",
    "kinds": ["no codes", "codes", "darkness alone"],
    "seeds": [0, 1, 2],
}


class PointReader(nn.Module):
    """Logits of the ten digits, (b, 10), from a batch of lists of points."""

    def __init__(self, d: int, n_heads: int) -> None:
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(3, d), nn.ReLU(), nn.Linear(d, d))
        self.layer = MultiHeadAttention(d, n_heads)
        self.read = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 10))

    def forward(self, points: Float[Tensor, "b n 3"], real: Bool[Tensor, "b n"]) -> Float[Tensor, "b 10"]:
        x = self.lifted(points)
        outputs = self.layer(x, x, x, mask=real[:, None, :]).output
        mean = (outputs * real[..., None]).sum(1) / real.sum(1, keepdim=True)
        return self.read(mean)

    def lifted(self, points: Float[Tensor, "b n 3"]) -> Float[Tensor, "b n d"]:
        return self.lift(points)


class CodedReader(PointReader):
    """The same, with a code of its place in the list added to every point."""

    def lifted(self, points: Float[Tensor, "b n 3"]) -> Float[Tensor, "b n d"]:
        x = self.lift(points)
        return x + sinusoidal(x.shape[1], x.shape[2], device=x.device)


def as_points(
    pictures: Float[Tensor, "b 8 8"],
) -> tuple[Float[Tensor, "b n 3"], Bool[Tensor, "b n"]]:
    """The dark pixels of each picture in reading order, (x, y, darkness) with x and y from -1 to 1, padded
    with zeros behind; and which rows are real points."""
    dark = pictures >= RECIPE["darkness"]
    n, middle = int(dark.sum((1, 2)).max()), (digits.SIDE - 1) / 2
    points = pictures.new_zeros(len(pictures), n, 3)
    for row, picture, found in zip(points, pictures, dark, strict=True):
        y, x = found.nonzero(as_tuple=True)
        row[: len(x)] = torch.stack([(x - middle) / middle, (y - middle) / middle, picture[found]], -1)
    return points, torch.arange(n, device=pictures.device) < dark.sum((1, 2))[:, None]


@cache
def lists(split: str) -> tuple[Float[Tensor, "b n 3"], Bool[Tensor, "b n"], Int[Tensor, " b"]]:
    """All digits of a split as lists of points, which rows are real, and the digits that they show."""
    pictures, labels = digits.pictures(split)
    return *as_points(pictures), labels


def shuffled(
    points: Float[Tensor, "b n 3"], real: Bool[Tensor, "b n"], seed: int = 0
) -> Float[Tensor, "b n 3"]:
    """The real points of every list in a random order; the padding stays behind."""
    drawn = torch.rand(real.shape, generator=torch.Generator().manual_seed(seed)).to(points.device)
    order = drawn.masked_fill(~real, 2.0).argsort(1)
    return points.gather(1, order[..., None].expand_as(points))


def draw(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """A batch of the training split."""
    points, real, labels = lists("training")
    chosen = torch.randint(len(labels), (RECIPE["batch"],), generator=generator, device="cpu")
    return points[chosen], real[chosen], labels[chosen]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Cross-entropy of the right digits."""
    points, real, labels = batch
    return F.cross_entropy(model(points, real), labels)


def untrained(kind: str, seed: int = 0) -> PointReader:
    """The model as training finds it."""
    torch.manual_seed(seed)
    reader = CodedReader if kind == "codes" else PointReader
    return to_device(reader(RECIPE["d_model"], RECIPE["n_heads"]))


def train(kind: str, seed: int = 0) -> tuple[PointReader, History]:
    """Train one model on lists in reading order; its kind is one of RECIPE["kinds"]."""
    model = untrained(kind, seed)
    settings = {key: RECIPE[key] for key in ("steps", "lr", "schedule")}

    def batch(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        points, real, labels = draw(generator)
        return seen(points, kind), real, labels

    return model, fit(model, batch, loss, seed_number=seed, name=kind, **settings)


def seen(points: Float[Tensor, "b n 3"], kind: str) -> Float[Tensor, "b n 3"]:
    """What a kind is shown of the points: all, or with x and y set to 0."""
    return points * points.new_tensor([0.0, 0.0, 1.0]) if kind == "darkness alone" else points


def accuracy(model: PointReader, split: str, kind: str = "no codes") -> tuple[float, float]:
    """Shares of right digits of a split, its lists in reading order and shuffled."""
    points, real, labels = to_device(lists(split))
    with torch.no_grad():
        right = [
            (model(seen(given, kind), real).argmax(-1) == labels).float().mean().item()
            for given in (points, shuffled(points, real))
        ]
    return right[0], right[1]


def run(seed: int) -> list[dict[str, float | str | int]]:
    """One row for each kind."""
    rows = []
    for kind in RECIPE["kinds"]:
        model, history = train(kind, seed)
        row: dict[str, float | str | int] = {"seed": seed, "kind": kind, "cpu_s": history.cpu_s}
        for split in ("validation", "test"):
            row[split], row[f"{split}, shuffled"] = accuracy(model, split, kind)
        rows.append(row)
    return rows
