"""Stacks of four layers: a state that overwrites, full attention, three of one to one of the other.

The task is part 08d's book of moves, to learn: 96 entries, each a random name of 48 and a number of 8; then
16 questions for the latest number of a name that was written. A token is the sum of two embeddings, of its
name and of its number (in a question: "?"). No layer has positions. A layer mixes tokens in one head of width
8:

    delta     attend_delta, keys of length 1, beta a sigmoid of the token: 8 rows of state
    full      attend under a causal mask: 8 numbers of key and 8 of value are kept for each token
    nothing   no mixing, only the feed-forward network behind it

All stacks have the same recipe; embeddings and first weights of a seed are drawn in the same order. Reported
is the share of right answers for names that were written once, and for names that were written more often.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from lesson_lib import require
from lesson_lib.attention import attend
from lesson_lib.delta import attend_delta
from lesson_lib.device import to_device
from lesson_lib.masks import causal
from lesson_lib.training import fit

KINDS = ("delta", "full", "nothing")
STACKS = {
    "four delta": ("delta",) * 4,
    "three delta, one full": ("delta", "delta", "delta", "full"),
    "one full": ("nothing", "nothing", "nothing", "full"),
    "two full": ("nothing", "nothing", "full", "full"),
    "four full": ("full",) * 4,
}
RECIPE = {
    "names": 48,
    "numbers": 8,
    "entries": 96,
    "asked": 16,
    "d_model": 32,
    "head": 8,
    "steps": 600,
    "batch": 32,
    "lr": 5e-3,
    "test": 300,
    "seeds": [0, 1, 2],
}
TEST_SEED = 40_000


class Mixing(nn.Module):
    """What a token takes from the tokens before it, (b, n, d_model); see the module."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        require.one_of(KINDS, kind=kind)
        d_model, head = RECIPE["d_model"], RECIPE["head"]
        self.kind = kind
        self.into = nn.Linear(d_model, 3 * head, bias=False)
        self.beta = nn.Linear(d_model, 1)
        self.out = nn.Linear(head, d_model, bias=False)

    def forward(self, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b n d_model"]:
        """Nothing is mixed where the kind says so."""
        query, key, value = self.into(x).chunk(3, -1)
        if self.kind == "delta":
            query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
            return self.out(attend_delta(query, key, value, self.beta(x)[..., 0].sigmoid()))
        if self.kind == "full":
            return self.out(attend(query, key, value, mask=causal(x.shape[-2])).output)
        return torch.zeros_like(x)


class Stack(nn.Module):
    """Logits (b, asked, numbers) of the questions at the end of a book."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__()
        d_model = RECIPE["d_model"]
        self.name = nn.Embedding(RECIPE["names"], d_model)
        self.number = nn.Embedding(RECIPE["numbers"] + 1, d_model)
        self.mixing = nn.ModuleList(map(Mixing, kinds))
        self.further = nn.ModuleList(
            nn.Sequential(nn.RMSNorm(d_model), nn.Linear(d_model, 64), nn.ReLU(), nn.Linear(64, d_model))
            for _ in kinds
        )
        self.norms = nn.ModuleList(nn.RMSNorm(d_model) for _ in kinds)
        self.read = nn.Sequential(nn.RMSNorm(d_model), nn.Linear(d_model, RECIPE["numbers"]))

    def forward(self, who: Int[Tensor, "b n"], numbers: Int[Tensor, "b n"]) -> Float[Tensor, "b asked 8"]:
        """`numbers` of the questions are the one behind the last, "?"."""
        x = self.name(who) + self.number(numbers)
        for norm, mixing, further in zip(self.norms, self.mixing, self.further, strict=True):
            x = x + mixing(norm(x))
            x = x + further(x)
        return self.read(x[:, -RECIPE["asked"] :])


def draw(generator: torch.Generator, batch: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Names and numbers (b, n) of the books with their questions, the answers, and how often each name that
    is asked for was written (b, asked)."""
    n, asked = RECIPE["entries"], RECIPE["asked"]
    options = {"generator": generator, "device": "cpu"}
    who = torch.randint(RECIPE["names"], (batch, n), **options)
    numbers = torch.randint(RECIPE["numbers"], (batch, n), **options)
    ask = who.gather(1, torch.randint(n, (batch, asked), **options))
    same = who[:, None] == ask[:, :, None]
    latest = (same * torch.arange(1, n + 1, device="cpu")).argmax(-1)
    unknown = torch.full_like(ask, RECIPE["numbers"])
    return torch.cat([who, ask], 1), torch.cat([numbers, unknown], 1), numbers.gather(1, latest), same.sum(-1)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """The mean cross-entropy of a batch's answers."""
    who, numbers, answers, _ = batch
    return F.cross_entropy(model(who, numbers).mT, answers)


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each stack."""
    rows = []
    for name, kinds in STACKS.items():
        torch.manual_seed(seed)
        with torch.device("cpu"):
            model = Stack(kinds)
        history = fit(
            model, lambda generator: draw(generator, RECIPE["batch"]), loss,
            steps=RECIPE["steps"], lr=RECIPE["lr"], seed_number=seed, name=name,
        )  # fmt: skip
        generator = torch.Generator("cpu").manual_seed(TEST_SEED + seed)
        who, numbers, answers, times = to_device(draw(generator, RECIPE["test"]))
        with torch.no_grad():
            right = model.eval()(who, numbers).argmax(-1) == answers
        rows.append({
            "stack": name, "seed": seed,
            "written_once": round(right[times == 1].double().mean().item(), 4),
            "written_again": round(right[times > 1].double().mean().item(), 4),
            "loss": round(history.column("loss")[-1], 4), "cpu_s": round(history.cpu_s, 1),
        })  # fmt: skip
    return rows
