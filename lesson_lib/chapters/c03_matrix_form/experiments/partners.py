"""Eight guests with secret partners: one layer of self-attention finds who belongs to whom, with learned
projections and without.

A party is all eight guests in random order, each with a card. Each guest has one partner, who has another
partner: the relation goes one way. The layer must name, for every guest, the card of the partner. It is never
told who is whose.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib.attention import Attended, attend
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

RECIPE = {
    "partners": [3, 6, 0, 5, 2, 7, 4, 1],
    "cards": 5,
    "d_k": 10,
    "batch": 64,
    "steps": 800,
    "lr": 3e-2,
    "schedule": "one-cycle",
    "layers": ["SelfAttention", "Unprojected"],
    "seeds": [0, 1, 2],
}
PARTNER = torch.tensor(RECIPE["partners"])  # PARTNER[guest] is the guest's partner
TEST_SEED = 1_000_000  # of a generator that training never uses


def draw(generator: torch.Generator, batch: int = RECIPE["batch"]) -> tuple[Tensor, Tensor, Tensor]:
    """Parties: the tokens (batch, 8, 13), the right cards (batch, 8), and where each guest's partner stands
    (batch, 8). A token is a 1 at its guest and a 1 at its card."""
    options = {"generator": generator, "device": "cpu"}
    guests = torch.rand(batch, len(PARTNER), **options).argsort(-1)
    cards = torch.randint(RECIPE["cards"], guests.shape, **options)
    where = guests.argsort(-1).gather(1, PARTNER[guests])
    tokens = torch.cat([F.one_hot(guests, len(PARTNER)), F.one_hot(cards, RECIPE["cards"])], -1).float()
    return tokens, cards.gather(1, where), where


class SelfAttention(nn.Module):
    """Self-attention with three learned matrices and nothing else."""

    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(self, x: Float[Tensor, "b n d_model"], mask: Tensor | None = None) -> Attended:
        return attend(x @ self.w_q, x @ self.w_k, x @ self.w_v, mask=mask)


class Unprojected(SelfAttention):
    """The same without W_q and W_k: tokens are compared as they are."""

    def forward(self, x: Float[Tensor, "b n d_model"], mask: Tensor | None = None) -> Attended:
        return attend(x, x, x @ self.w_v, mask=mask)


LAYERS = {"SelfAttention": SelfAttention, "Unprojected": Unprojected}


def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Cross-entropy of the right cards; an output's five numbers are the logits."""
    tokens, right, _ = batch
    return F.cross_entropy(model(tokens).output.flatten(0, 1), right.flatten())


def accuracy(model: nn.Module, mask: Tensor | None = None) -> float:
    """Share of right cards at 500 parties that no training has seen."""
    tokens, right, _ = to_device(draw(torch.Generator().manual_seed(TEST_SEED), 500))
    with torch.no_grad():
        return (model(tokens, mask).output.argmax(-1) == right).float().mean().item()


def commonest() -> float:
    """Share of right cards for whoever names the party's commonest card."""
    _, right, _ = draw(torch.Generator().manual_seed(TEST_SEED), 500)
    return (right == right.mode(-1, keepdim=True).values).float().mean().item()


def untrained(layer: str, seed: int = 0) -> SelfAttention:
    """The layer as training finds it."""
    torch.manual_seed(seed)
    return to_device(LAYERS[layer](len(PARTNER) + RECIPE["cards"], RECIPE["d_k"], RECIPE["cards"]))


def train(layer: str, seed: int = 0) -> tuple[SelfAttention, History]:
    """Train one layer; its name is one of RECIPE["layers"]."""
    model = untrained(layer, seed)
    settings = {key: RECIPE[key] for key in ("steps", "lr", "schedule")}
    return model, fit(model, draw, loss, seed_number=seed, name=layer, **settings)


def run(seed: int) -> list[dict[str, float | str | int | bool]]:
    """One row for each layer."""
    rows = []
    for layer in RECIPE["layers"]:
        model, history = train(layer, seed)
        row = {"seed": seed, "layer": layer, "test": accuracy(model), "cpu_s": history.cpu_s}
        if layer == "SelfAttention":
            table = (model.w_q @ model.w_k.mT)[: len(PARTNER), : len(PARTNER)].detach().cpu()
            row["partners_found"] = (table.argmax(-1) == PARTNER).float().mean().item()
        rows.append(row | {"commonest": commonest()})
    return rows
