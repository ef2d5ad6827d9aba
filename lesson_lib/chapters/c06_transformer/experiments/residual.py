"""Encoder layers with and without the residual connection, on the tagging of `experiments.norms`.

The layers are post-norm. `Forgetful` leaves out the sum and is the same otherwise: norm(sublayer(x)) in the
place of norm(x + sublayer(x)). Every rate is trained on every seed; the rate to report is chosen by the
VALIDATION sentences, seed by seed. Accuracy as in `experiments.norms`.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn

from lesson_lib import summary
from lesson_lib.attention import Attended
from lesson_lib.blocks import EncoderLayer
from lesson_lib.chapters.c06_transformer.experiments import norms
from lesson_lib.data.tagging import VOCABULARY
from lesson_lib.device import to_device
from lesson_lib.models import tagger
from lesson_lib.training import History, fit

RECIPE = {
    "layers": [2, 4, 6],
    "size": 32,
    "steps": 400,
    "rates": [1e-3, 3e-3, 1e-2, 3e-2],
    "lesson_rate": 1e-2,
    "seeds": [0, 1, 2],
}


class Forgetful(EncoderLayer):
    """An encoder layer without residual connections."""

    def _sublayer(self, i: int, x: Tensor, sublayer: Callable[[Tensor], Attended]) -> Attended:
        made = sublayer(x)
        return Attended(self.norms[i](self.dropout(made.output)), made.weights)


def make(n_layers: int, *, residual: bool, seed: int = 0) -> nn.Module:
    """An untrained tagger; the numbers that it starts with are the same with and without."""
    torch.manual_seed(seed)
    model = norms.Tagger(n_layers)
    if not residual:
        forgetful = [_without(layer) for layer in model.encoder.layers]
        model.encoder.layers = nn.ModuleList(forgetful)
    return to_device(model)


def _without(layer: EncoderLayer) -> Forgetful:
    d_model, heads = layer.attention.w_query.in_features, layer.attention.n_heads
    made = Forgetful(d_model, heads, layer.feed_forward.w_in.out_features, dropout=0.0)
    made.load_state_dict(layer.state_dict())
    return made


def train(
    n_layers: int = 4, *, residual: bool, lr: float = RECIPE["lesson_rate"], seed: int = 0
) -> tuple[nn.Module, History]:
    """Train one tagger and return it with its history."""
    model, steps = make(n_layers, residual=residual, seed=seed), RECIPE["steps"]
    history = fit(
        model, norms.batches(RECIPE["size"]), tagger.loss, steps=steps, lr=lr, seed_number=seed,
        schedule=partial(norms.rate, warm=steps // 10, rise=True),
        name=f"{n_layers} layers{'' if residual else ', no sum'}",
    )  # fmt: skip
    return model, history


@torch.no_grad()
def remembered(tokens: Callable[[Tensor], Tensor]) -> float:
    """Share of words that a linear read-out of their own row names; `tokens` maps words (b, n) to rows (b, n,
    d_model).

    The read-out, a matrix and a bias, is fitted by least squares on some 20,000 words, and judged on 10,000
    others.
    """
    draw, generator = norms.batches(400), torch.Generator("cpu").manual_seed(1)
    batches = [draw(generator).words for _ in range(12)]
    rows = [nn.functional.pad(tokens(words).flatten(0, 1), (0, 1), value=1.0).double() for words in batches]
    wanted = [words.flatten() for words in batches]
    fitted, judged = (
        (torch.cat(rows[:8]), torch.cat(wanted[:8])),
        (torch.cat(rows[8:]), torch.cat(wanted[8:])),
    )
    x, names = fitted[0], nn.functional.one_hot(fitted[1], len(VOCABULARY)).double()
    ridge = 1e-3 * torch.eye(x.shape[1], dtype=x.dtype)  # rows that are all alike leave no other way to solve
    read_out = torch.linalg.solve(x.T @ x + ridge, x.T @ names)
    return ((judged[0] @ read_out).argmax(-1) == judged[1]).double().mean().item()


def run(seed: int) -> list[dict]:
    """A row for each depth and rate, with the residual connection and without."""
    rows = []
    for n_layers, residual, lr in product(RECIPE["layers"], (True, False), RECIPE["rates"]):
        model, history = train(n_layers, residual=residual, lr=lr, seed=seed)
        rows.append({
            "layers": n_layers, "residual": residual, "lr": lr, "seed": seed,
            "validation": norms.accuracy(model, "validation"), "accuracy": norms.accuracy(model, "test"),
            "cpu_s": history.cpu_s,
        })  # fmt: skip
    return rows


def best(rows: list[dict[str, Any]]) -> dict[tuple[bool, int], list[float]]:
    """{(residual, layers): test accuracies, one per seed, sorted}, each at the rate that is best on that
    seed's VALIDATION sentences."""
    found: dict[tuple[bool, int], list[float]] = {}
    for row in summary.best(rows, ("residual", "layers", "seed"), by=itemgetter("validation")):
        found.setdefault((row["residual"], row["layers"]), []).append(row["accuracy"])
    return {setting: sorted(values) for setting, values in found.items()}
