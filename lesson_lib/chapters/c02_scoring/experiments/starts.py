"""The same look-up at one width, with queries and keys that start shorter or longer: is it the score that
decides, or where it starts? And which symbols does a model learn that starts badly?

The plain dot product of vectors a quarter as long is the scaled one at width 256, since (q/4) · (k/4) = q · k
/ 16. Model, data and stopping rule are those of `look_up`.
"""

import torch
from torch import Tensor

from lesson_lib.chapters.c02_scoring.experiments import look_up

RECIPE = {
    "d": 256,
    "settings": [  # score, how many times as long queries and keys start, steps at most
        ["dot", 1, 1000],
        ["dot", 1, 4000],
        ["dot", 0.25, 1000],
        ["scaled dot", 1, 1000],
        ["scaled dot", 4, 1000],
        ["dot / d", 1, 1000],
    ],
    "rates": [2.5e-3, 1e-2, 4e-2],
    "seeds": [0, 1, 2],
}


def own_scores(score: str, seed: int) -> Tensor:
    """Score of each symbol's query on its own key, before training."""
    torch.manual_seed(seed)
    model = look_up.LookUp(score, RECIPE["d"])
    return (model.query.weight * model.key.weight).sum(-1).detach()


def run(seed: int) -> list[dict[str, float | str | int]]:
    """A row for each setting and learning rate; "high" and "low" are test accuracies of the third of the
    symbols whose own keys start with the highest scores, and of the third with the lowest."""
    rows, third = [], look_up.SYMBOLS // 3
    for score, times, steps in RECIPE["settings"]:
        order = own_scores(score, seed).argsort(descending=True)
        for lr in RECIPE["rates"]:
            model, history = look_up.train(score, RECIPE["d"], lr=lr, seed=seed, steps=steps, times=times)
            asked, hit = (x.cpu() for x in look_up.hits(model, look_up.TEST_SEED))
            high, low = (
                hit[torch.isin(asked, some)].float().mean().item() for some in (order[:third], order[-third:])
            )
            rows.append(
                {
                    "seed": seed, "score": score, "times": times, "at_most": steps, "lr": lr,
                    "steps": history.rows[-1]["step"], "validation": max(history.column("score")),
                    "test": look_up.accuracy(model, look_up.TEST_SEED), "high": high, "low": low,
                    "spread_end": look_up.spread(model),
                }
            )  # fmt: skip
    return rows
