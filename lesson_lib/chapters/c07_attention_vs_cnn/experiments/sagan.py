"""Attention in a GAN of pictures whose far parts must agree: with it, without it, and with a convolution in
its place.

A canvas of 8 x 24 pixels holds two different pictures of one digit, a 0 or a 1, left and right, with 8 empty
columns between them. A small classifier, which was trained on single digits, reads both halves of what a
generator makes.

- agreement: the share of canvases whose halves are read as one digit; chance: what it would be if the same
  halves were paired at random;
  kappa = (agreement - chance) / (1 - chance), so that a generator that makes one digit only has 0 and not 1
  (Cohen 1960).
- distance: the Frechet distance between made and real canvases, features of both halves side by side; and of
  halves alone, which does
  not see whether they agree. `floor` is that of real training canvases in the place of made ones.

"own" noise gives each place its own, "shared" all places the same. Rates, steps and networks were settled
beforehand, by hand, in about 14 short trainings of single seeds, judged on the VALIDATION split, most of them
without attention; they are the same for all systems and were not searched. All ten digits, and four of them,
brought no agreement in one short training each, with attention; so the digits were cut to two. The long
trainings were added after the short ones had been seen, whose kappa was still rising. Distances in the rows
are to the TEST split. Source of the distance: Heusel et al. 2017, arXiv:1706.08500 (there in the features of
Inception).
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.chapters.c07_attention_vs_cnn.sagan import (
    Discriminator,
    Generator,
    SelfAttention2d,
    discriminator_loss,
    generator_loss,
    maps,
    noise,
)
from lesson_lib.data import digits
from lesson_lib.data.digits import CLASSES, SIDE
from lesson_lib.device import quick, to_device
from lesson_lib.device import seed as seeded
from lesson_lib.training import QUICK_STEPS, History, fit, progress_bar

RECIPE = {
    "digits": [0, 1],
    "channels": 32,
    "d_z": 8,
    "batch": 32,
    "steps": 600,
    "rates": {"generator": 5e-4, "discriminator": 2e-3},
    "betas": [0.0, 0.9],
    "systems": {
        "own": ["nothing", "attention", "convolution", "wide convolution"],
        "shared": ["nothing", "attention"],
    },
    "long": {"steps": 2400, "noises": "own", "middles": ["nothing", "attention", "wide convolution"]},
    "reports": 10,
    "judged": 2000,  # made canvases, and real ones, behind each number
    "classifier": {"steps": 600, "lr": 3e-3, "batch": 64, "seed": 0},
    "shown": 16,
    "places": [[1, 1], [1, 9]],
    "mapped": 2,
    "seeds": [0, 1, 2],
}
GAP = 8  # empty columns between the halves
JUDGE_SEED = 10_000


class Twins(NamedTuple):
    """Canvases with two different pictures of one digit, and that digit."""

    canvas: Float[Tensor, "b 8 24"]
    label: Int[Tensor, " b"]


class Gan(NamedTuple):
    """The two networks that train each other."""

    generator: Generator
    discriminator: Discriminator


class HalfReadings(NamedTuple):
    """What the classifier makes of halves, left ones first: features (2 b, 32) and the digits it reads (2,
    b)."""

    features: Float[Tensor, "b2 d"]
    digit: Int[Tensor, "2 b"]


@cache
def _pictures(split: str) -> tuple[Tensor, Tensor]:
    """The pictures of the recipe's digits in a split, and what they show."""
    images, labels = digits.pictures(split)
    chosen = torch.isin(labels, torch.tensor(RECIPE["digits"], device="cpu"))
    return images[chosen], labels[chosen]


def draw(split: str, batch: int, generator: torch.Generator) -> Twins:
    """Canvases of a split: a picture at random on the left, another one of the same digit on the right; on
    the CPU."""
    images, labels = _pictures(split)
    left = torch.randint(len(images), (batch,), generator=generator, device="cpu")
    other = (labels[left, None] == labels) & (left[:, None] != torch.arange(len(images), device="cpu"))
    right = torch.multinomial(other.float(), 1, generator=generator)[:, 0]
    gap = images.new_zeros(batch, SIDE, GAP)
    return Twins(torch.cat([images[left], gap, images[right]], -1), labels[left])


def halves(canvas: Float[Tensor, "b 8 24"]) -> Float[Tensor, "b2 8 8"]:
    """The two digits of each canvas as pictures of their own, all left ones first."""
    return torch.cat([canvas[..., :SIDE], canvas[..., -SIDE:]])


@cache
@torch.enable_grad()
def classifier() -> tuple[nn.Sequential, float]:
    """A small network that reads single digits, trained on the training split, and its accuracy on
    validation."""
    recipe = RECIPE["classifier"]
    torch.manual_seed(recipe["seed"])
    model = nn.Sequential(
        nn.Unflatten(1, (1, SIDE)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * (SIDE // 2) ** 2, 32), nn.ReLU(), nn.Linear(32, CLASSES),
    )  # fmt: skip
    images, labels = digits.pictures("training")

    def some(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        chosen = torch.randint(len(images), (recipe["batch"],), generator=generator, device="cpu")
        return images[chosen], labels[chosen]

    fit(
        model, some, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]),
        steps=recipe["steps"], lr=recipe["lr"], seed_number=recipe["seed"], name="classifier",
    )  # fmt: skip
    unseen, right = to_device(digits.pictures("validation"))
    with torch.no_grad():
        return model, (model(unseen).argmax(-1) == right).float().mean().item()


@torch.no_grad()
def read(canvas: Float[Tensor, "b 8 24"]) -> HalfReadings:
    """What the classifier sees in both halves of canvases, on the CPU: its last hidden layer, and the
    likeliest digit."""
    model, _ = classifier()
    features = model[:-1](halves(to_device(canvas)))
    return HalfReadings(features.cpu(), model[-1](features).argmax(-1).unflatten(0, (2, -1)).cpu())


def agreement(digit: Int[Tensor, "2 b"]) -> dict[str, float]:
    """How often both halves are read as one digit, how often they would if paired at random, and kappa.

    kappa is 1 where all agree, 0 where they agree as often as chance does, and 0 where there is one digit
    only.
    Source: Cohen 1960, "A coefficient of agreement for nominal scales".

    >>> agreement(torch.tensor([[0, 0, 1, 1], [0, 0, 1, 0]]))
    {'agreement': 0.75, 'chance': 0.5, 'kappa': 0.5}
    """
    same = (digit[0] == digit[1]).float().mean().item()
    left, right = (torch.bincount(row, minlength=CLASSES).double() / len(row) for row in digit)
    chance = (left @ right).item()
    return {
        "agreement": same,
        "chance": chance,
        "kappa": (same - chance) / (1 - chance) if chance < 1 else 0.0,
    }


def frechet(one: Float[Tensor, "n d"], other: Float[Tensor, "m d"]) -> float:
    """Frechet distance of two normal distributions with the means and covariances of these rows: `|mu - nu|²
    + tr(S + T - 2 (S T)^½)`.

    The trace of (S T)^½ is that of (S^½ T S^½)^½, whose eigenvalues are real and not negative. 0 for equal
    distributions.
    Raises ValueError for fewer than 2 rows. Source: Heusel et al. 2017, arXiv:1706.08500, equation 6.
    """
    if min(len(one), len(other)) < 2:
        raise ValueError(
            f"a covariance needs at least 2 rows on either side, got {len(one)} and {len(other)}"
        )
    one, other = one.double(), other.double()
    S, T = (torch.atleast_2d(rows.T.cov()) for rows in (one, other))
    values, vectors = torch.linalg.eigh(S)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    both = torch.linalg.eigvalsh(root @ T @ root).clamp(min=0).sqrt().sum()
    return ((one.mean(0) - other.mean(0)).square().sum() + S.trace() + T.trace() - 2 * both).item()


@cache
def real(split: str) -> HalfReadings:
    """What the classifier sees in real canvases of a split, always the same ones."""
    return read(draw(split, RECIPE["judged"], torch.Generator("cpu").manual_seed(JUDGE_SEED)).canvas)


def compared(made: HalfReadings, split: str) -> dict[str, float]:
    """Agreement of what was read, how many digits have a share of 1 % at least, and its Frechet distances to
    real canvases of a split."""
    true = real(split)
    shares = torch.bincount(made.digit.flatten(), minlength=CLASSES) / made.digit.numel()
    return agreement(made.digit) | {
        "digits": int((shares >= 0.01).sum()),
        "distance": frechet(_joint(made.features), _joint(true.features)),
        "distance of halves": frechet(made.features, true.features),
    }


def judge(generator: Generator, noises: str, split: str) -> dict[str, float]:
    """`compared` for canvases that a generator makes from noise that is always the same."""
    return compared(read(generate(generator, noises, RECIPE["judged"])), split)


@torch.no_grad()
def generate(generator: Generator, noises: str, count: int) -> Float[Tensor, "count 8 24"]:
    """Canvases from the first draws of noise that is always the same, on the CPU."""
    generator.eval()
    made = [generator(to_device(z)).canvas.cpu() for z in fixed_noise(noises, count).split(500)]
    return torch.cat(made)


def fixed_noise(noises: str, count: int) -> Float[Tensor, "count d_z 2 6"]:
    """Noise that is always the same, "own" or "shared"; the first ones are the same whatever the count."""
    require.one_of(RECIPE["systems"], noises=noises)
    drawn = torch.Generator("cpu").manual_seed(JUDGE_SEED + 1)
    return noise(RECIPE["judged"], drawn, shared=noises == "shared", d_z=RECIPE["d_z"])[:count]


def make(middle: str) -> Gan:
    """Both networks, untrained, with the same kind of middle."""
    generator = Generator(middle, channels=RECIPE["channels"], d_z=RECIPE["d_z"])
    return to_device(Gan(generator, Discriminator(middle, channels=RECIPE["channels"])))


def train(
    middle: str = "attention",
    noises: str = "own",
    *,
    seed: int = 0,
    steps: int = RECIPE["steps"],
    split: str = "validation",
    rates: dict[str, float] | None = None,
) -> tuple[Gan, History]:
    """Train both networks in turn, a step each; the history has both losses, both gammas, and how the
    generator's canvases compare.

    `cpu_s` counts training alone. A bar shows progress unless LESSON_PROGRESS=off; LESSON_STEPS=quick does at
    most 20 steps; stopping the kernel ends training, with the history so far. Raises ValueError for an
    unknown middle or noise.
    """
    fixed_noise(noises, 1)
    real(split)  # trains the classifier, before the seed is set
    steps = min(steps, QUICK_STEPS) if quick() else steps
    drawn = seeded(seed)
    gan = make(middle)
    rates = rates or RECIPE["rates"]
    optimizers = {
        name: torch.optim.Adam(network.parameters(), lr=rates[name], betas=tuple(RECIPE["betas"]))
        for name, network in gan._asdict().items()
    }
    history, spent = History(), 0.0
    every = max(1, steps // RECIPE["reports"])
    with progress_bar(steps, f"GAN with {middle}") as bar:
        try:
            for step in range(steps + 1):
                start = time.process_time()
                losses = _turn(gan, optimizers, drawn, noises) if step else {}
                spent += time.process_time() - start
                if step:
                    bar.update()
                if step % every == 0:
                    told = gammas(gan) | judge(gan.generator, noises, split)
                    history.rows.append({"step": step} | losses | told | {"cpu_s": spent})
        except KeyboardInterrupt:
            history.ended = "interrupted; the networks keep what they learned"
    history.cpu_s = spent
    for network in gan:
        network.eval()
    return gan, history


def _turn(
    gan: Gan, optimizers: dict[str, torch.optim.Optimizer], drawn: torch.Generator, noises: str
) -> dict[str, float]:
    """A step of the discriminator and one of the generator; returns their losses."""
    generator, discriminator = gan
    generator.train(), discriminator.train()
    canvas = to_device(draw("training", RECIPE["batch"], drawn).canvas)
    z, again = (
        to_device(noise(RECIPE["batch"], drawn, shared=noises == "shared", d_z=RECIPE["d_z"]))
        for _ in range(2)
    )
    with torch.no_grad():
        made = generator(z).canvas
    wrong = discriminator_loss(discriminator(canvas), discriminator(made))
    _update(optimizers["discriminator"], wrong)
    discriminator.requires_grad_(False)
    caught = generator_loss(discriminator(generator(again).canvas))
    _update(optimizers["generator"], caught)
    discriminator.requires_grad_(True)
    return {"discriminator": wrong.item(), "generator": caught.item()}


def _update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def gammas(gan: Gan) -> dict[str, float]:
    """gamma of the generator's and of the discriminator's middle; 0 where there is nothing."""
    return {
        f"gamma {name}": 0.0 if network.middle is None else network.middle.gamma.item()
        for name, network in gan._asdict().items()
    }


def run(seed: int) -> list[dict[str, Any]]:
    """Rows of a seed: "system" with its parameters and its `reports` (a row each), "long" likewise, and
    "real" once, for seed 0.

    "shown", for seed 0 and the long trainings, holds 16 canvases, and where there is attention `mapped`
    canvases with the maps of the generator's query `places`.
    """
    rows = [] if seed else [_real()]
    for noises, middles in RECIPE["systems"].items():
        for middle in middles:
            rows += _system("system", middle, noises, seed, RECIPE["steps"])
    long = RECIPE["long"]
    for middle in long["middles"]:
        rows += _system("long", middle, long["noises"], seed, long["steps"])
    return rows


def _system(kind: str, middle: str, noises: str, seed: int, steps: int) -> list[dict[str, Any]]:
    gan, history = train(middle, noises, seed=seed, steps=steps, split="test")
    named = {"noises": noises, "middle": middle, "seed": seed}
    rows: list[dict[str, Any]] = [
        {"kind": kind} | named | {
            "parameters": {name: sum(p.numel() for p in network.parameters()) for name,
            network in gan._asdict().items()},
            "cpu_s": round(history.cpu_s, 2),
            "reports": [{key: _short(value) for key, value in row.items()} for row in history.rows],
        }
    ]  # fmt: skip
    if kind == "long" and seed == 0:
        rows.append({"kind": "shown"} | named | _shown(gan.generator, noises))
    return rows


def _shown(generator: Generator, noises: str) -> dict:
    canvas = generate(generator, noises, RECIPE["shown"])
    row = {"canvases": _rounded(canvas, 2), "read": read(canvas).digit.T.tolist()}
    if not isinstance(generator.middle, SelfAttention2d):
        return row
    looked = maps(
        generator, fixed_noise(noises, RECIPE["mapped"]), [tuple(place) for place in RECIPE["places"]]
    )
    return row | {"mapped": _rounded(looked.canvas, 2), "maps": _rounded(looked.weights, 3)}


def _real() -> dict:
    """How well the classifier reads, what real test canvases score, and the distances of real training
    canvases: the floor."""
    return {
        "kind": "real", "seed": 0, "validation accuracy": _short(classifier()[1]),
        "test": {key: _short(value) for key, value in agreement(real("test").digit).items()},
        "floor": {key: _short(value) for key, value in compared(real("training"), "test").items()},
    }  # fmt: skip


Ended = dict[tuple[str, str], list[float]]


def at_the_end(rows: list[dict], column: str, kind: str = "system") -> Ended:
    """{(noises, middle): [value of each seed]} of a column of the last reports: all systems after the same
    number of steps.

    `kind` is "system" for the short trainings, "long" for the long ones.
    """
    return _gathered(rows, kind, lambda row: row["reports"][-1][column])


def at_equal_time(rows: list[dict], column: str, kind: str = "system") -> Ended:
    """The same after the same processor time: each system's last report within the time that the quickest one
    of that noise and seed took."""
    quickest = {}
    for row in _of_kind(rows, kind):
        key = row["noises"], row["seed"]
        quickest[key] = min(quickest.get(key, float("inf")), row["reports"][-1]["cpu_s"])

    def within(row: dict) -> float:
        limit = quickest[row["noises"], row["seed"]]
        return [report for report in row["reports"] if report["cpu_s"] <= limit][-1][column]

    return _gathered(rows, kind, within)


def curves(
    rows: list[dict], column: str, noises: str, middle: str, kind: str = "system"
) -> list[list[tuple[int, float]]]:
    """(step, value) of a column of all reports, a curve for each seed: gammas, kappa, distances."""
    return [
        [(report["step"], report[column]) for report in row["reports"]]
        for row in _of_kind(rows, kind)
        if (row["noises"], row["middle"]) == (noises, middle)
    ]


def _of_kind(rows: list[dict], kind: str) -> list[dict]:
    return [row for row in rows if row["kind"] == kind]


def _gathered(rows: list[dict], kind: str, value: Callable[[dict], float]) -> Ended:
    found: Ended = {}
    for row in _of_kind(rows, kind):
        found.setdefault((row["noises"], row["middle"]), []).append(value(row))
    return found


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.4g}")


def _rounded(x: Tensor, places: int) -> list:
    return (x.double() * 10**places).round().div(10**places).tolist()


def _joint(features: Tensor) -> Tensor:
    """Features of both halves of each canvas side by side."""
    return torch.cat(features.chunk(2), -1)
