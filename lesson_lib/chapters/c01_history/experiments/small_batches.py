"""Learned and random places with batches of 20, at as many canvases as `glimpse` shows in batches of 256: is
it the size of the batch that makes learned looking worse than chance, or that fewer canvases were seen?

Model, data and learning rate are those of `glimpse`.
"""

from functools import partial

import torch

from lesson_lib.chapters.c01_history.experiments import glimpse
from lesson_lib.chapters.c01_history.glimpse import Glimpser, loss
from lesson_lib.device import to_device
from lesson_lib.training import fit

BATCH = 20
RECIPE = {
    "batch": BATCH,
    "steps": glimpse.RECIPE["steps"] * glimpse.RECIPE["batch"] // BATCH,
    "policies": ["learned", "random"],
    "rates": [2e-3, 6e-3],
    "seeds": [0, 1, 2],
}


def run(seed: int) -> list[dict]:
    """A row for each policy and learning rate."""
    rows = []
    for policy in RECIPE["policies"]:
        for lr in RECIPE["rates"]:
            torch.manual_seed(seed)
            own = {key: glimpse.RECIPE[key] for key in ("patch", "n_scales", "d", "std", "n_glimpses")}
            model = to_device(Glimpser(policy, **own))
            history = fit(
                model, partial(glimpse.draw, batch=BATCH), loss, steps=RECIPE["steps"], lr=lr,
                seed_number=seed, validate=lambda m: glimpse.accuracy(m, "validation")[-1], name=policy,
            )  # fmt: skip
            rows.append(
                {
                    "policy": policy, "lr": lr, "seed": seed, "validation": max(history.column("score")),
                    "test": glimpse.accuracy(model, "test")[-1], "cpu_s": history.cpu_s,
                }
            )  # fmt: skip
    return rows
