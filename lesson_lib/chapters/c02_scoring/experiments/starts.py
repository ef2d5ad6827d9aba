"""The same look-up at one width, with queries and keys that start shorter or longer: is it the score that
decides, or where it starts?

The plain dot product of vectors a quarter as long is the scaled one at width 256, since (q/4) · (k/4) = q · k
/ 16. Model, data and stopping rule are those of `look_up`.
"""

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


def run(seed: int) -> list[dict[str, float | str | int]]:
    """A row for each setting and learning rate."""
    rows = []
    for score, times, steps in RECIPE["settings"]:
        for lr in RECIPE["rates"]:
            model, history = look_up.train(score, RECIPE["d"], lr=lr, seed=seed, steps=steps, times=times)
            rows.append(
                {
                    "seed": seed, "score": score, "times": times, "at_most": steps, "lr": lr,
                    "steps": history.rows[-1]["step"], "validation": max(history.column("score")),
                    "test": look_up.accuracy(model, look_up.TEST_SEED), "spread_end": look_up.spread(model),
                }
            )  # fmt: skip
    return rows
