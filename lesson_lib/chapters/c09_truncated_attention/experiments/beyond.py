"""Recall beyond the radius: attention with a window, in one layer or more, is asked for a symbol at distances
inside its reach and beyond.

With each layer the symbol comes `radius` tokens nearer to the question, so the reach is radius · layers.
Beyond it the gradient at the symbol is exactly 0, before training and after: nothing can be learnt there.
Inside it may be learnt. The kinds of rows:

    rate     accuracy on VALIDATION with each rate, at the pilot's radius: how the rates were chosen, for each
             number of layers
    point    a model for each radius, number of layers and distance, distances lengthening from 1 to that one
             ("curriculum"):
             all distances of the reach, and the first beyond it
    plain    the same at the reach without the curriculum: what may be learnt need not be
    full     one layer without a window, at the last distance

A training ends as soon as all VALIDATION sequences are answered rightly; accuracies are on test sequences.
Data, batches and judges are those of `experiments.recall`; rates are chosen as there, and what guesses with
one rate as with another (below 0.2) counts as equal.
"""

import itertools
from typing import Any

import torch

from lesson_lib.device import to_device
from lesson_lib.experiments import recall
from lesson_lib.models import recaller
from lesson_lib.models.recaller import Recaller
from lesson_lib.training import History, fit

RECIPE = {
    **{name: recall.RECIPE[name] for name in ("d_model", "n_heads", "batch", "validation", "test", "judged")},
    "radii": [4, 8, 16],
    "layers": [1, 2, 4],
    "distances": [2, 4, 5, 8, 9, 16, 17, 32, 33, 60],
    "steps": 600,
    "every": 40,  # steps between two looks at the validation sequences
    "lr": {
        "curriculum": {"1": 3e-3, "2": 3e-3, "4": 1e-2},
        "plain": {"1": 3e-3, "2": 3e-3, "4": 3e-3},
    },
    "rates": [1e-3, 3e-3, 1e-2],
    "pilot": 8,  # the radius at which rates are compared, at half of the reach and at the reach
    "seeds": [0, 1, 2],
}


def reach(radius: int | None, layers: int) -> int | float:
    """How far behind a symbol may stand for the last token to know of it: radius · layers; without a radius,
    any distance.

    >>> reach(4, 2)
    8
    """
    return torch.inf if radius is None else radius * layers


def start(radius: int | None, layers: int, seed: int = 0) -> Recaller:
    """The untrained model that `train` begins with, on the lessons' device."""
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = Recaller(
            "attention", d_model=RECIPE["d_model"], n_heads=RECIPE["n_heads"], n_layers=layers, radius=radius
        )
    return to_device(model).eval()


def train(
    radius: int | None,
    layers: int,
    distance: int,
    seed: int = 0,
    *,
    curriculum: bool = True,
    lr: float | None = None,
) -> tuple[Recaller, History]:
    """Train layers of window attention to name the symbol that stood `distance` tokens ago; the score is
    accuracy on VALIDATION.

    With the curriculum, distances are drawn from 1 up to a bound, which reaches `distance` at half of the
    steps. Another number of layers than the recipe's learns at the rate of the next smaller one. Raises
    ValueError as `Recaller` does, and for a distance below 1.
    """
    model, steps = start(radius, layers, seed), RECIPE["steps"]
    history = fit(
        model, recall.batches(distance, 0, steps if curriculum else 0), recaller.loss,
        steps=steps, lr=lr or _rate(layers, curriculum), seed_number=seed,
        validate=lambda model: recall.accuracy(model, distance, split="validation"), every=RECIPE["every"],
        stop_at=1.0, name=f"radius {radius}, layers {layers}, distance {distance}",
    )  # fmt: skip
    return model, history


def gradient(model: Recaller, distance: int) -> float:
    """How strongly a symbol `distance` tokens ago moves the right answer's logit, in float64; exactly 0 where
    it is out of reach."""
    return recall.gradients(model, distance)[0]


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" with the first seed only."""
    rated = [pilot(**setting) for setting in rates()] if seed == RECIPE["seeds"][0] else []
    return rated + [point(**setting, seed=seed) for setting in points()]


def points() -> list[dict[str, Any]]:
    """What `point` is called with for the rows of one seed."""
    wanted, distances = [], RECIPE["distances"]
    for radius, layers in itertools.product(RECIPE["radii"], RECIPE["layers"]):
        near = [d for d in distances if d <= reach(radius, layers)]
        wanted += [("point", radius, layers, d) for d in [*near, *distances[len(near) :][:1]]]
        wanted.append(("plain", radius, layers, min(reach(radius, layers), distances[-1])))
    wanted.append(("full", None, 1, distances[-1]))
    return [dict(zip(("kind", "radius", "layers", "distance"), one, strict=True)) for one in wanted]


def rates() -> list[dict[str, Any]]:
    """What `pilot` is called with."""
    radius = RECIPE["pilot"]
    return [
        {"curriculum": curriculum, "layers": layers, "distance": distance, "lr": lr}
        for curriculum in (True, False) for layers in RECIPE["layers"]
        for distance in (reach(radius, layers) // 2, reach(radius, layers)) for lr in RECIPE["rates"]
    ]  # fmt: skip


def point(kind: str, radius: int | None, layers: int, distance: int, seed: int) -> dict[str, Any]:
    """A model is trained, and judged at its distance."""
    curriculum = kind != "plain"
    untrained = gradient(start(radius, layers, seed), distance)
    model, history = train(radius, layers, distance, seed, curriculum=curriculum)
    return {
        "kind": kind, "seed": seed, "radius": radius, "layers": layers, "distance": distance,
        "curriculum": curriculum,
        "lr": _rate(layers, curriculum), "steps": history.rows[-1]["step"],
        "accuracy": round(recall.accuracy(model, distance, seed=seed), 4),
        "validation_accuracy": round(max(history.column("score")), 4),
        "gradient": _short(untrained), "gradient_after": _short(gradient(model, distance)),
        "cpu_s": round(history.cpu_s, 2), "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip


def pilot(curriculum: bool, layers: int, distance: int, lr: float) -> dict[str, Any]:
    """A row of kind "rate", with the first seed."""
    seed, radius = RECIPE["seeds"][0], RECIPE["pilot"]
    history = train(radius, layers, distance, seed, curriculum=curriculum, lr=lr)[1]
    return {
        "kind": "rate", "seed": seed, "radius": radius, "layers": layers, "distance": distance,
        "curriculum": curriculum, "lr": lr,
        "steps": history.rows[-1]["step"], "validation_accuracy": round(max(history.column("score")), 4),
        "cpu_s": round(history.cpu_s, 2),
    }  # fmt: skip


def _rate(layers: int, curriculum: bool) -> float:
    known = {int(number): lr for number, lr in RECIPE["lr"]["curriculum" if curriculum else "plain"].items()}
    return known[max(number for number in known if number <= layers)]


def _short(number: float) -> float:
    return float(f"{number:.4g}")
