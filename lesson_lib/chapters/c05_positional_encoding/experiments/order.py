"""Which token stood three places back? One layer of attention, one system of positions after another, also at
other lengths.

16 symbols, drawn at random, so that nothing but the order of the tokens tells the answer; the first three
tokens have no answer and are not counted. All systems are trained at length 32 and tested at 32, 48, 64 and
128. At the start every entry of a token's vector has variance 1, and so has every entry of a code that is
added to it: neither drowns the other.
"""

import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib import summary
from lesson_lib.device import to_device
from lesson_lib.heads import MultiHeadAttention, ShawAttention
from lesson_lib.masks import causal
from lesson_lib.positions import Floater, Learned, Shaw, alibi, rotary, sinusoidal
from lesson_lib.training import History, fit

RECIPE = {
    "symbols": 16,
    "back": 3,
    "d_model": 64,
    "n_heads": 4,
    "radius": 8,
    "n_max": 128,
    "batch": 32,
    "sequences": 200,
    "length": 32,
    "lengths": [32, 48, 64, 128],
    "steps": [400, 1200],
    "schedule": "one-cycle",
    "kinds": [
        "none", "learned", "sinusoidal", "shaw", "floater", "rotary", "alibi", "none, causal",
        "alibi, causal",
    ],
    "rates": [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1],
    "tuning_seed": 0,
    "seeds": [0, 1, 2],
}  # fmt: skip
VALIDATION_SEED, TEST_SEED = 10_000, 20_000  # generators of the two splits; training uses the recipe's seeds


class Order(nn.Module):
    """Logits of the token three back, (b, n, symbols): tokens with positions, one layer of attention, a
    linear read-out.

    `kind` is one of "none", "learned", "sinusoidal", "shaw", "floater", "rotary", "alibi"; with ", causal"
    after it, no token looks at later ones. Raises ValueError for another kind.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, comma, mask = kind.partition(", ")
        known = [name for name in RECIPE["kinds"] if "," not in name]
        if self.kind not in known or (comma and mask != "causal"):
            raise ValueError(
                f'kind must be one of {", ".join(known)}, each also with ", causal" after it, got {kind!r}'
            )
        self.causal = bool(comma)
        d, h = RECIPE["d_model"], RECIPE["n_heads"]
        self.tokens = nn.Embedding(RECIPE["symbols"], d)  # entries of variance 1
        made = {"learned": lambda: Learned(RECIPE["n_max"], d), "floater": lambda: Floater(d)}
        self.codes = made[self.kind]() if self.kind in made else None
        own = {"attention": ShawAttention(Shaw(d // h, RECIPE["radius"]))} if self.kind == "shaw" else {}
        self.layer = MultiHeadAttention(d, h, rotate=rotary if self.kind == "rotary" else None, **own)
        self.read = nn.Linear(d, RECIPE["symbols"])

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (b, n, symbols) of tokens (b, n)."""
        n, options = tokens.shape[-1], {"device": tokens.device}
        x = self.tokens(tokens) + self.added(n)
        bias = None
        if self.kind == "alibi":
            bias = alibi(n, RECIPE["n_heads"], **options)[None]  # the same for all sequences
        mask = causal(n, **options) if self.causal else None
        return self.read(self.layer(x, x, x, mask=mask, score_bias=bias).output)

    def added(self, n: int) -> Tensor:
        """The codes that are added to n tokens, (n, d_model), their entries of variance 1 at the start; zeros
        for other kinds."""
        d, device = RECIPE["d_model"], self.tokens.weight.device
        if self.kind == "sinusoidal":  # a sine squared is 1/2 on average
            return 2**0.5 * sinusoidal(n, d, device=device)
        if self.codes is not None:  # they start with entries of variance 1/d
            return d**0.5 * self.codes(n)
        return torch.zeros(n, d, device=device)


def draw(
    generator: torch.Generator, batch: int = RECIPE["batch"], length: int = RECIPE["length"]
) -> tuple[Tensor, Tensor]:
    """Tokens (b, n) and the answers (b, n - 3) of all tokens but the first three."""
    tokens = torch.randint(RECIPE["symbols"], (batch, length), generator=generator, device="cpu")
    return tokens, tokens[:, : -RECIPE["back"]]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross-entropy of the right answers."""
    tokens, right = batch
    return F.cross_entropy(model(tokens)[:, RECIPE["back"] :].flatten(0, 1), right.flatten())


def right_by_position(model: nn.Module, length: int, split: int) -> Tensor:
    """Share of right answers at each token but the first three, (length - 3,), on `sequences` sequences of a
    split."""
    tokens, right = to_device(
        draw(torch.Generator().manual_seed(split + length), RECIPE["sequences"], length)
    )
    with torch.no_grad():
        return (model(tokens)[:, RECIPE["back"] :].argmax(-1) == right).float().mean(0)


def accuracy(model: nn.Module, length: int, split: int) -> float:
    """Share of right answers at that length of a split (VALIDATION_SEED or TEST_SEED)."""
    return right_by_position(model, length, split).mean().item()


def position_parameters(model: Order) -> int:
    """How many learned numbers the model spends on positions alone."""
    parts = [model.codes, model.layer.attention]
    return sum(p.numel() for part in parts if isinstance(part, nn.Module) for p in part.parameters())


def train(kind: str, *, lr: float, seed: int = 0, steps: int = RECIPE["steps"][0]) -> tuple[Order, History]:
    """Train one model at length 32, and keep its last weights."""
    torch.manual_seed(seed)
    model = to_device(Order(kind))
    # Where the loss is nearly 0, gradients are denormal numbers, with which a CPU is about 4 times slower.
    torch.set_flush_denormal(True)
    try:
        history = fit(
            model, draw, loss, steps=steps, lr=lr, schedule=RECIPE["schedule"], seed_number=seed, name=kind
        )
    finally:
        torch.set_flush_denormal(False)
    return model, history


def run(seed: int) -> list[dict]:
    """One row for each kind and number of steps; on the seed that tunes, one for each learning rate too.

    The other seeds train with the rates that are best on the tuning seed's validation split.
    """
    tuned = _grid()
    if seed == RECIPE["tuning_seed"]:
        return tuned
    return [_row(row["kind"], lr=row["lr"], seed=seed, steps=row["steps"]) for row in best_rows(tuned)]


def best_rows(rows: list[dict]) -> list[dict]:
    """Of the learning rates of one kind, number of steps and seed, the one with the lowest cross-entropy on
    VALIDATION.

    Not the highest accuracy: that is 1 for many rates. Of equal ones the first, which is the smallest rate.
    """
    return summary.best(rows, ("kind", "steps", "seed"), by=lambda row: -row["validation_loss"])


def by_length(rows: list[dict], steps: int) -> dict[str, tuple[list[int], list, list, list]]:
    """What a figure draws: {kind: (lengths, lowest, median, highest test accuracy over the seeds)} of
    `best_rows`."""
    chosen = [row for row in best_rows(rows) if row["steps"] == steps]
    curves = {}
    for kind in dict.fromkeys(row["kind"] for row in chosen):
        columns = zip(*(row["accuracy"] for row in chosen if row["kind"] == kind), strict=True)
        curves[kind] = summary.band(dict(zip(RECIPE["lengths"], columns, strict=True)))
    return curves


@functools.cache
def _grid() -> list[dict]:
    """Every kind, number of steps and rate on the tuning seed; cached, since every other seed asks for its
    choice."""
    seed = RECIPE["tuning_seed"]
    return [
        _row(kind, lr=lr, seed=seed, steps=steps)
        for kind in RECIPE["kinds"]
        for steps in RECIPE["steps"]
        for lr in RECIPE["rates"]
    ]


def _row(kind: str, *, lr: float, seed: int, steps: int) -> dict:
    model, history = train(kind, lr=lr, seed=seed, steps=steps)
    length = RECIPE["length"]
    held_out = to_device(
        draw(torch.Generator().manual_seed(VALIDATION_SEED + length), RECIPE["sequences"], length)
    )
    with torch.no_grad():
        validation_loss = loss(model, held_out).item()
    return {
        "seed": seed, "kind": kind, "lr": lr, "steps": steps,
        "validation": accuracy(model, length, VALIDATION_SEED), "validation_loss": validation_loss,
        "accuracy": [accuracy(model, n, TEST_SEED) for n in RECIPE["lengths"]],  # at the recipe's lengths
        "parameters": position_parameters(model), "cpu_s": history.cpu_s,
    }  # fmt: skip
