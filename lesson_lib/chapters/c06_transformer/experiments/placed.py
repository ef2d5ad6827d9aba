"""The short GPT of Python's manual with rotary positions, with a learned table, and with nothing but the
causal mask that says where a character stands.

The three differ in nothing else, the learning rate included; it is the best of three on the VALIDATION topics
for rotary and for learned positions alike (the rows "tried" of `gpt`).
"""

from typing import Any

import torch

from lesson_lib.data import topics
from lesson_lib.device import to_device
from lesson_lib.experiments import gpt as writing
from lesson_lib.models import gpt
from lesson_lib.training import fit

RECIPE = {
    "kinds": ["rotary", "learned", "none"],
    "model": writing.RECIPE["short"],  # of which "positions" is what each kind says
    "seeds": [0, 1, 2],
}


def make(kind: str) -> gpt.GPT:
    """The untrained model; "none" has a table of zeros that is never trained."""
    sizes = RECIPE["model"]["sizes"] | {"positions": "rotary" if kind == "rotary" else "learned"}
    model = gpt.GPT(topics.CHARACTERS, **sizes)
    if kind == "none":
        model.embedding.positions.table.requires_grad_(False).zero_()
    return model


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each kind: bits per character of the test topics and the validation topics."""
    recipe, rows = RECIPE["model"], []
    for kind in RECIPE["kinds"]:
        torch.manual_seed(seed)
        model = to_device(make(kind))
        history = fit(
            model,
            lambda generator, model=model: topics.draw(generator, recipe["batch"], model.context),
            gpt.loss,
            steps=recipe["steps"],
            lr=recipe["lr"],
            seed_number=seed,
            name=f"GPT, {kind}",
        )
        rows.append(
            {
                "seed": seed, "kind": kind, "bits": round(writing.bits_per_character(model), 4),
                "validation_bits": round(writing.bits_per_character(model, "validation"), 4),
                "cpu_s": round(history.cpu_s, 1),
            }
        )  # fmt: skip
    return rows
