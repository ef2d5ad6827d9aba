"""Pairs of the small arena through a window with one global token: the question hears all of them, and how
often is it right?

The network, steps and batches are `experiments.arena`'s, and so is the choice of the rate: the best of
RECIPE's on VALIDATION after all steps, first seed. In two layers the question hears each of the 32 pairs:
half of them through the window, all of them through the first token. The kinds of rows:

    point  accuracy on the test
    rate   accuracy on VALIDATION with each rate, first seed only
"""

from typing import Any

from lesson_lib.chapters.c11_efficient_attention.experiments import arena

RECIPE = {
    "task": "pairs",
    "kind": "window and global",
    "lr": 3e-3,
    "rates": [1e-3, 3e-3, 1e-2],
    "seeds": [0, 1, 2],
}


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" with the first seed only."""
    task, kind, rows = RECIPE["task"], RECIPE["kind"], []
    if seed == RECIPE["seeds"][0]:
        for lr in RECIPE["rates"]:
            _, history = arena.train(task, kind, seed, lr=lr)
            best = round(max(history.column("score")), 4)
            rows.append({"kind": "rate", "seed": seed, "lr": lr, "validation_accuracy": best})
    model, _ = arena.train(task, kind, seed, lr=RECIPE["lr"])
    right = round(arena.accuracy(model, task, seed=seed), 4)
    return [*rows, {"kind": "point", "seed": seed, "lr": RECIPE["lr"], "accuracy": right}]
