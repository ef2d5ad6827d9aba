"""The model that comes with the course, and what is in it: bits per character on topics that it never saw,
how well it copies random signs, and, head by head, where it looks and what is lost without it.

Two kinds: trained on Python's manual alone, and on random signs said twice besides. Rate, dropout and the
share of the copies were tried with seed 0 on the validation topics. Seed 0 of the second kind is the model in
the folder `small_writer`, which this run writes.
"""

from typing import Any

import torch

from lesson_lib.chapters.c13_todays_models import writer
from lesson_lib.device import quick, to_device
from lesson_lib.models.pretrained import Model, cut

RECIPE = {
    "steps": 4000,
    "lr": 4e-3,
    "dropout": 0.1,
    "kinds": {
        "manual and copies": {"copies_first": 500, "copies": 8, "share": 0.25},
        "manual": {"copies_first": 0, "copies": 0, "share": 0.0},
    },
    "shipped": ["manual and copies", 0],
    "lengths": [12, 24, 40, 60],
    "judged_at": 24,
    "seeds": [0, 1, 2],
}


def run(seed: int) -> list[dict]:
    """A row for each kind: bits, copying, and a row for each head."""
    return [_row(kind, seed) for kind in RECIPE["kinds"]]


def _row(kind: str, seed: int) -> dict[str, Any]:
    steps, lr, dropout = RECIPE["steps"], RECIPE["lr"], RECIPE["dropout"]
    model, history = writer.train(seed, steps=steps, lr=lr, dropout=dropout, **RECIPE["kinds"][kind])
    if [kind, seed] == RECIPE["shipped"] and not quick():
        writer.save(model)
    return {
        "kind": kind, "seed": seed, "validation_bits": round(writer.bits(model, "validation"), 4),
        "bits": round(writer.bits(model), 4),
        "copied": {str(n): round(writer.copied(model, n), 4) for n in RECIPE["lengths"]},
        "heads": heads(model), "parameters": sum(p.numel() for p in model.parameters()),
        "cpu_s": round(history.cpu_s, 1),
    }  # fmt: skip


def heads(model: Model) -> list[dict[str, Any]]:
    """A row for each head: where it looks in random signs said twice and in the manual, and what is left of
    copying and of the bits without it."""
    length = RECIPE["judged_at"]
    looks = where(model, length)
    found = []
    for (layer, head), row in looks.items():
        with cut(model, [(layer, head)]):
            left = {"copied": round(writer.copied(model, length), 4), "bits": round(writer.bits(model), 4)}
        found.append({"layer": layer, "head": head, **{k: round(x, 4) for k, x in row.items()}, **left})
    return found


@torch.no_grad()
def where(model: Model, length: int, texts: int = 16) -> dict[tuple[int, int], dict[str, float]]:
    """{(layer, head): mean weights}: on the token before (`previous`) and on what came after the first copy
    (`matching`), in random signs said twice; on START, from the fifth token on, in their first saying
    (`start`) and in the manual (`start_manual`)."""
    generator = torch.Generator("cpu").manual_seed(5000 + length)
    signs = to_device(writer.said_twice(generator, texts, shortest=length, longest=length))
    pages = to_device(writer.pages(generator, texts))
    both = zip(model(signs, weights=True).weights, model(pages, weights=True).weights, strict=True)
    return {
        (layer, head): {
            "previous": a[:, head].diagonal(-1, -2, -1)[:, 1:].mean().item(),
            "matching": a[:, head].diagonal(1 - length, -2, -1)[:, 2:].mean().item(),
            "start": a[:, head, 5 : length + 1, 0].mean().item(),
            "start_manual": b[:, head, 5:, 0].mean().item(),
        }
        for layer, (a, b) in enumerate(both)
        for head in range(a.shape[1])
    }
