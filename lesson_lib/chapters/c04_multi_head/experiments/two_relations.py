"""Two relations at once: each token must name the token one place back AND the token three places back.

Both come from the same alphabet, and they may be equal. Queries and keys see tokens and places, values see
tokens only, and the read-out is linear: so the two names must both be read from what the heads bring. The
number of heads is all that changes; an MLP behind one head, in place of the linear read-out, is the way
round.
"""

from operator import itemgetter

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib import require, summary
from lesson_lib.device import to_device
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.positions import sinusoidal
from lesson_lib.training import History, fit

RECIPE = {
    "symbols": 8,
    "tokens": 12,
    "back": [1, 3],
    "d_model": 32,
    "d_hidden": 128,
    "batch": 64,
    "steps": 600,
    "systems": ["1 head", "2 heads", "4 heads", "8 heads", "1 head + MLP"],
    "rates": [1e-3, 3e-3, 1e-2, 3e-2],
    "seeds": [0, 1, 2],
}
FIRST = max(RECIPE["back"])  # earlier tokens have nobody that far back
VALIDATION_SEED, TEST_SEED = 10_000, 20_000


class TwoNames(nn.Module):
    """Logits (b, n, relation, symbol) from one attention layer; `weights=True` returns the heads' weights as
    well."""

    def __init__(self, n_heads: int, *, mlp: bool = False) -> None:
        super().__init__()
        symbols, d_model = RECIPE["symbols"], RECIPE["d_model"]
        answers = len(RECIPE["back"]) * symbols
        self.embed = nn.Embedding(symbols, d_model)
        self.attention = MultiHeadAttention(d_model, n_heads)
        behind = [nn.Linear(d_model, RECIPE["d_hidden"]), nn.ReLU(), nn.Linear(RECIPE["d_hidden"], answers)]
        self.read = nn.Sequential(*behind) if mlp else nn.Linear(d_model, answers)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (b, n, 2, symbols) and the heads' weights (b, h, n, n)."""
        x = self.embed(tokens)
        placed = x + sinusoidal(tokens.shape[-1], x.shape[-1], device=x.device)
        output, weights = self.attention(placed, placed, x)
        return self.read(output).unflatten(-1, (len(RECIPE["back"]), -1)), weights


def make(system: str) -> TwoNames:
    """The model of that name, e.g. "2 heads" or "1 head + MLP"; raises ValueError for another name."""
    require.one_of(RECIPE["systems"], system=system)
    return TwoNames(int(system.split()[0]), mlp=system.endswith("MLP"))


def draw(generator: torch.Generator, batch: int = RECIPE["batch"]) -> tuple[Tensor, Tensor]:
    """Tokens (b, n) and the two right names of each token from place FIRST on, (b, n - FIRST, 2)."""
    tokens = torch.randint(RECIPE["symbols"], (batch, RECIPE["tokens"]), generator=generator, device="cpu")
    return tokens, torch.stack([tokens[:, FIRST - k : tokens.shape[1] - k] for k in RECIPE["back"]], dim=-1)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross-entropy of both names together."""
    tokens, names = batch
    return F.cross_entropy(model(tokens)[0][:, FIRST:].flatten(0, 2), names.flatten())


def accuracy(model: nn.Module, split: int) -> list[float]:
    """Share of right names of each relation, on 1,000 sequences of a split (VALIDATION_SEED or TEST_SEED)."""
    tokens, names = to_device(draw(torch.Generator().manual_seed(split), 1000))
    with torch.no_grad():
        right = model(tokens)[0][:, FIRST:].argmax(-1) == names
    return right.float().mean((0, 1)).tolist()


def train(system: str, *, lr: float, seed: int = 0, steps: int = RECIPE["steps"]) -> tuple[TwoNames, History]:
    """Train one model; its history's score is the mean of both accuracies on the validation split."""
    torch.manual_seed(seed)
    model = to_device(make(system))
    history = fit(
        model, draw, loss, steps=steps, lr=lr, seed_number=seed, name=system,
        validate=lambda m: sum(accuracy(m, VALIDATION_SEED)) / 2,
    )  # fmt: skip
    return model, history


def run(seed: int) -> list[dict[str, float | str | int]]:
    """One row for each system and learning rate."""
    rows = []
    for system in RECIPE["systems"]:
        for lr in RECIPE["rates"]:
            model, history = train(system, lr=lr, seed=seed)
            one, three = accuracy(model, TEST_SEED)
            rows.append(
                {
                    "seed": seed, "system": system, "lr": lr, "validation": max(history.column("score")),
                    "one back": one, "three back": three, "cpu_s": history.cpu_s,
                    "parameters": sum(p.numel() for p in model.parameters()),
                }
            )  # fmt: skip
    return rows


def best_rows(rows: list[dict]) -> list[dict]:
    """Of the learning rates of one system and seed, the row that is best on VALIDATION."""
    return summary.best(rows, ("system", "seed"), by=itemgetter("validation"))
