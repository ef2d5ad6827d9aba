"""One symbol to remember over a distance: an LSTM as torch starts it, the same with its forget gates open at
the start, and one head of attention with nothing beside it.

Data, batches and steps are those of `experiments.recall`; width 32 for all. Open gates are a bias of
`open_bias` on the forget gates, before training. The rate of each system is its best of `rates` on VALIDATION
over `pilot` distances with the first seed (of equals the smallest). Rows:

    rate     validation accuracy with each rate
    point    a model for each system, distance and seed: accuracy on TEST at its own distance, and `asked` at
             all others; `gradient`, what the untrained model hears of the symbol
"""

from typing import Any

import torch
from torch import nn

from lesson_lib import require
from lesson_lib.chapters.c08_attention_vs_rnn.look_back import LookBack
from lesson_lib.device import to_device
from lesson_lib.experiments import recall
from lesson_lib.models import recaller
from lesson_lib.training import fit

RECIPE = {
    "systems": ["LSTM", "LSTM, gates open", "attention alone"],
    "open_bias": 5.0,
    "distances": [5, 10, 25, 50, 100, 200],
    "steps": 400,
    "rates": [3e-3, 1e-2, 3e-2],
    "pilot": [5, 10, 50, 100],
    "lr": {"LSTM": 1e-2, "LSTM, gates open": 3e-3, "attention alone": 3e-3},
    "seeds": [0, 1, 2],
}


def start(system: str, seed: int = 0) -> nn.Module:
    """The untrained model that `train` begins with. Raises ValueError for a system that is none of the
    recipe's."""
    require.one_of(RECIPE["systems"], system=system)
    if system != "attention alone":
        model = recall.start("LSTM", 1, seed)
        return open_gates(model) if system.endswith("open") else model
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = LookBack()
    return to_device(model)


@torch.no_grad()
def open_gates(model: recaller.Recaller, bias: float = RECIPE["open_bias"]) -> recaller.Recaller:
    """The model, with that bias on the forget gates of its LSTM: sigmoid(5) = 0.993 of a cell is kept."""
    layer = model.core.layer
    d = layer.hidden_size
    layer.bias_ih_l0[d : 2 * d] = bias  # torch's order: input, forget, write, output
    return model


def train(
    system: str, distance: int, seed: int = 0, *, lr: float | None = None, steps: int = RECIPE["steps"]
) -> nn.Module:
    """The system, trained to name the symbol that stood `distance` tokens before the question."""
    model = start(system, seed)
    fit(
        model, recall.batches(distance, 0), recaller.loss, steps=steps,
        lr=lr or RECIPE["lr"][system], seed_number=seed, name=f"{system}, distance {distance}",
    )  # fmt: skip
    return model


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" with the first seed only."""
    torch.set_flush_denormal(True)  # gradients of 1e-40 would make the processor ten times slower
    try:
        rows = _rates(seed) if seed == RECIPE["seeds"][0] else []
        return rows + [_point(s, d, seed) for s in RECIPE["systems"] for d in RECIPE["distances"]]
    finally:
        torch.set_flush_denormal(False)


def _rates(seed: int) -> list[dict[str, Any]]:
    rows = []
    for system in RECIPE["systems"]:
        for lr in RECIPE["rates"]:
            for distance in RECIPE["pilot"]:
                score = recall.accuracy(train(system, distance, seed, lr=lr), distance, split="validation")
                row = {"kind": "rate", "seed": seed, "system": system, "distance": distance, "lr": lr}
                rows.append(row | {"validation_accuracy": round(score, 4)})
    return rows


def _point(system: str, distance: int, seed: int) -> dict[str, Any]:
    untrained = start(system, seed)
    model = train(system, distance, seed)
    return {
        "kind": "point", "seed": seed, "system": system, "distance": distance,
        "accuracy": round(recall.accuracy(model, distance, seed=seed), 4),
        "asked": {str(d): round(recall.accuracy(model, d, seed=seed), 4) for d in RECIPE["distances"]},
        "gradient": float(f"{recall.gradients(untrained, distance)[0]:.3g}"),
        "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip
