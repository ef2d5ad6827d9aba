"""Queries and keys that start too long: who learns all the same? 13b's small model and texts, with scores as
they are, with QK-norm, and with a soft cap.

`loud` multiplies the matrices of queries and keys before the first step. Steps and rate are those of 13b,
where nothing is multiplied; two of those that fail get four times as many. Judged on new texts of pieces of
24 signs; a guess is right once in 64 times.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lesson_lib.attention import Attended
from lesson_lib.chapters.c13_todays_models import induction
from lesson_lib.device import to_device
from lesson_lib.models.pretrained import Model
from lesson_lib.scores import scaled_dot
from lesson_lib.training import fit

RECIPE = {
    "steps": 800,
    "lr": 1e-2,
    "kinds": {"plain": {}, "QK-norm": {"head_norms": "each"}, "soft cap": {"cap": 50.0}},
    "loud": [1, 4, 16],
    "more_steps": 3200,
    "again": [["plain", 4], ["QK-norm", 16]],
    "seeds": [0, 1, 2],
}


def run(seed: int) -> list[dict]:
    """A row for each kind and start: accuracy, last loss, largest score before and after."""
    asked = [(kind, loud, RECIPE["steps"]) for loud in RECIPE["loud"] for kind in RECIPE["kinds"]]
    asked += [(kind, loud, RECIPE["more_steps"]) for kind, loud in RECIPE["again"]]
    return [_row(kind, loud, steps, seed) for kind, loud, steps in asked]


def _row(kind: str, loud: int, steps: int, seed: int) -> dict:
    model = start(kind, loud, seed)
    before = largest_score(model)
    history = fit(
        model, induction.said_twice, induction.loss, steps=steps, lr=RECIPE["lr"], seed_number=seed,
        name=f"{kind}, {loud} times as long",
    )  # fmt: skip
    return {
        "kind": kind, "loud": loud, "steps": steps, "seed": seed,
        "accuracy": round(induction.accuracy(model), 4), "loss": round(history.rows[-1]["loss"], 4),
        "largest": [round(before, 1), round(largest_score(model), 1)], "cpu_s": round(history.cpu_s, 1),
    }  # fmt: skip


def start(kind: str, loud: float, seed: int) -> Model:
    """13b's model, in that kind, with queries and keys `loud` times as long."""
    torch.manual_seed(seed)
    model = Model(replace(induction.small_llama(seed=seed).options, **RECIPE["kinds"][kind]))
    torch.nn.init.normal_(model.embedding.table)
    with torch.no_grad():
        for layer in model.layers:
            layer.attention.w_query.weight *= loud
            layer.attention.w_key.weight *= loud
    return model


@torch.no_grad()
def largest_score(model: Model) -> float:
    """The largest |q · k| / sqrt(d) of 16 texts, in any layer, before a cap."""
    found = []

    def heard(attention: Callable[..., Attended]) -> Callable[..., Attended]:
        def listening(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Attended:
            found.append(scaled_dot(query, key).abs().max().item())
            return attention(query, key, value, **options)

        return listening

    own = [layer.attention.attention for layer in model.layers]
    for layer, attention in zip(model.layers, own, strict=True):
        layer.attention.attention = heard(attention)
    generator = torch.Generator("cpu").manual_seed(3000)
    model(to_device(induction.said_twice(generator, 16)))
    for layer, attention in zip(model.layers, own, strict=True):
        layer.attention.attention = attention
    return max(found)
