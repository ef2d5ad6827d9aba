"""How much fits through one token? Pairs of a key and a letter, asked for at the end, where each token sees
only itself and one global token; beside it full attention.

In two layers all that the question hears comes through the first token, the global one: layer 1 hands it the
pairs, layer 2 hands its vector to the question. Which pair is asked for it learns too late, in layer 1. With
three layers it could look for the pair in the second. Network, batches, optimiser and the choice of the rate
are those of `experiments.arena`; through the global token the rate is chosen with the first seed on
VALIDATION, after all steps, for each number of pairs. Full attention takes 0.003. The kinds of rows:

    point  accuracy on the test
    deep   the same with three layers, of the largest number of pairs; the rate is not chosen anew
    rate   accuracy on VALIDATION with each rate, first seed only, through the global token
"""

from typing import Any

import torch
from torch import nn

from lesson_lib import require
from lesson_lib.chapters.c11_efficient_attention.arena import Classifier, loss
from lesson_lib.chapters.c11_efficient_attention.experiments import arena
from lesson_lib.data import recall
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

KINDS = ("full", "window and global")
RECIPE = {
    "radius": 0,
    "n_layers": 2,
    "d_model": 64,
    "n_heads": 4,
    "batch": 32,
    "test": 1024,
    "validation": 512,
    "steps": 1200,
    "counts": [4, 8, 16],
    "rates": [1e-3, 3e-3, 1e-2],
    "lr": {
        "full": {"4": 3e-3, "8": 3e-3, "16": 3e-3},
        "window and global": {"4": 3e-3, "8": 3e-3, "16": 3e-3},
    },
    "seeds": [0, 1, 2],
}


def train(
    count: int,
    kind: str = "window and global",
    seed: int = 0,
    *,
    n_layers: int | None = None,
    lr: float | None = None,
) -> tuple[Classifier, History]:
    """Train a classifier to name the letter beside one of `count` keys. Another number of pairs than RECIPE's
    has a rate of 0.003. Raises ValueError for an unknown kind and for a count below 1."""
    require.one_of(KINDS, kind=kind)
    require.whole(count=count)
    sizes = {name: RECIPE[name] for name in ("radius", "d_model", "n_heads")}
    n_tokens = count * (recall.PAIR_VALUES + 1)
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = Classifier(
            kind, n=count + 1, n_tokens=n_tokens, n_classes=recall.PAIR_VALUES, read="last",
            n_layers=n_layers or RECIPE["n_layers"], **sizes,
        )  # fmt: skip
    history = fit(
        model,
        lambda generator: arena.pairs(generator, RECIPE["batch"], count),
        loss,
        steps=RECIPE["steps"],
        lr=lr or RECIPE["lr"][kind].get(str(count), 3e-3),
        seed_number=seed,
        name=f"{count} pairs, {kind}",
    )
    return model, history


@torch.no_grad()
def accuracy(model: nn.Module, count: int, seed: int = 0, *, split: str = "test") -> float:
    """The share of questions answered rightly; of the test, another sample for each seed. Raises ValueError
    for a split that is none of "validation" and "test"."""
    require.one_of(arena.SPLITS[1:], split=split)
    number = arena.VALIDATION_SEED if split == "validation" else arena.TEST_SEED + seed
    tokens, answer = arena.pairs(torch.Generator("cpu").manual_seed(number), RECIPE[split], count)
    return (model(to_device(tokens)).argmax(-1).cpu() == answer).double().mean().item()


def settings(seed: int) -> list[dict[str, Any]]:
    """What is run for one seed: the kind of row, and what `make` is called with."""
    wanted: list[dict[str, Any]] = []
    for kind in KINDS:
        for count in RECIPE["counts"]:
            row = {"attention": kind, "count": count, "seed": seed}
            if seed == RECIPE["seeds"][0] and kind == KINDS[1]:
                wanted += [{"kind": "rate", **row, "lr": lr} for lr in RECIPE["rates"]]
            wanted.append({"kind": "point", **row})
    return [*wanted, {"kind": "deep", "attention": KINDS[1], "count": max(RECIPE["counts"]), "seed": seed}]


def make(kind: str, attention: str, count: int, seed: int, lr: float | None = None) -> dict[str, Any]:
    """One row, as `settings` asks for it."""
    layers = RECIPE["n_layers"] + (kind == "deep")
    model, _ = train(count, attention, seed, n_layers=layers, lr=lr)
    split = "validation" if kind == "rate" else "test"
    rate = lr or RECIPE["lr"][attention][str(count)]
    right = round(accuracy(model, count, seed, split=split), 4)
    return {"kind": kind, "attention": attention, "count": count, "seed": seed, "lr": rate, "accuracy": right}


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" with the first seed only."""
    return [make(**setting) for setting in settings(seed)]
