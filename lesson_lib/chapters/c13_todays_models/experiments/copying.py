"""How a model copies a text that is said twice: one layer or two, pieces of any length or of one, and what is
left when a head is cut.

Judged on new texts: the share of right next tokens in the second half. Steps and rate were tried for two
layers and pieces of any length, and serve all. A guess is right once in 64 times.
"""

from lesson_lib.chapters.c13_todays_models import induction
from lesson_lib.models.pretrained import Model, cut

RECIPE = {
    "steps": 800,
    "lr": 1e-2,
    "kinds": [
        {"n_layers": 2, "shortest": 6},
        {"n_layers": 1, "shortest": 6},
        {"n_layers": 2, "shortest": 24},
        {"n_layers": 1, "shortest": 24},
    ],
    "lengths": [6, 12, 18, 24, 36, 48],
    "seeds": [0, 1, 2],
}


def run(seed: int) -> list[dict]:
    """A row for each kind: accuracy by length, accuracy with each head cut, each head's two scores."""
    rows = []
    for kind in RECIPE["kinds"]:
        model, history = induction.train(seed, steps=RECIPE["steps"], lr=RECIPE["lr"], **kind)
        heads = [(layer, 0) for layer in range(kind["n_layers"])]
        found = induction.scores(model)
        rows.append({
            **kind, "seed": seed,
            "accuracy": {str(n): round(induction.accuracy(model, n), 4) for n in RECIPE["lengths"]},
            "cut": [_without(model, head) for head in heads],
            "previous": [round(found[head][0], 4) for head in heads],
            "matching": [round(found[head][1], 4) for head in heads],
            "parameters": sum(p.numel() for p in model.parameters()), "cpu_s": round(history.cpu_s, 1),
        })  # fmt: skip
    return rows


def _without(model: Model, head: tuple[int, int]) -> float:
    with cut(model, [head]):
        return round(induction.accuracy(model), 4)
