"""An LSTM, attention, and attention over an LSTM's states: what does each bring?

Three systems, equal but for what stands between embedding and read-out:

    LSTM        the last state is read
    attention   one head without positions over the embedded tokens; the last token asks
    both        the same head over the LSTM's states; the last state asks

The head has matrices for queries, keys and values, and nothing else: no residual, no norm, no feed-forward
network. Two tasks, chance 1 of 8 in both. "one": `data.recall`, name the symbol. "first": two different
symbols, the second one to four tokens behind the first; name the FIRST. There whoever hears both symbols, and
not their order, is right half of the time. Up to five tokens of filler stand before the first symbol, so that
it does not begin the text.

All are trained with one rate. It was chosen among `rates` on VALIDATION at the `pilot` distances: for each
system and task it is the best, or within .02 of the best.
Source of the combination: Luong, Pham & Manning 2015, arXiv:1508.04025 (over an LSTM's states).
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import attend
from lesson_lib.data.recall import CHARACTERS, SYMBOLS, Recall, draw
from lesson_lib.device import to_device
from lesson_lib.models import recaller
from lesson_lib.recurrent import Recurrent
from lesson_lib.training import History, fit

SYSTEMS, TASKS = ("LSTM", "attention", "both"), ("one", "first")
RECIPE = {
    "d_model": 32,
    "batch": 32,
    "steps": 400,
    "every": 40,
    "distances": [5, 25, 50, 100, 200],
    "rates": [1e-3, 3e-3, 1e-2],
    "pilot": [5, 50],
    "lr": 3e-3,
    "validation": 256,
    "test": 1000,
    "seeds": [0, 1, 2],
}
SPLIT_SEEDS = {"validation": 30_000, "test": 40_000}


class Joined(nn.Module):
    """Logits (b, symbols), read at the last token; see the module."""

    def __init__(self, system: str, *, d_model: int = 32) -> None:
        super().__init__()
        require.one_of(SYSTEMS, system=system)
        self.embed = nn.Embedding(len(CHARACTERS), d_model)
        self.core = None if system == "attention" else Recurrent("LSTM", d_model, d_model)
        names = () if system == "LSTM" else ("query", "key", "value")
        self.head = nn.ModuleDict({name: nn.Linear(d_model, d_model, bias=False) for name in names})
        self.read = nn.Linear(d_model, len(SYMBOLS))

    def forward(self, tokens: Int[Tensor, "b n"]) -> Float[Tensor, "b symbols"]:
        """Logits of the symbols."""
        x = self.embed(tokens)
        x = x if self.core is None else self.core(x)
        if not self.head:
            return self.read(x[:, -1])
        query, key, value = (self.head[name](x) for name in ("query", "key", "value"))
        return self.read(attend(query[:, -1:], key, value).output[:, 0])


def drawn(task: str, generator: torch.Generator, batch: int, distance: int) -> Recall:
    """A batch of a task. The question stands `distance` tokens behind the symbol that is asked for.

    Raises ValueError for a task that is none of TASKS, and for "first" at a distance below 5.
    """
    require.one_of(TASKS, task=task)
    if task == "one":
        return draw(generator, batch, distance)
    require.whole(at_least=5, distance=distance)
    before = int(torch.randint(6, (), generator=generator, device="cpu"))
    tokens, answer = draw(generator, batch, distance, before=before)
    behind = torch.randint(1, 5, (batch,), generator=generator, device="cpu")
    other = torch.randint(1, len(SYMBOLS), (batch,), generator=generator, device="cpu")
    tokens[torch.arange(batch, device="cpu"), before + behind] = (answer + other) % len(SYMBOLS)
    return Recall(tokens, answer)


def train(
    system: str, task: str, distance: int, seed: int = 0, *, lr: float | None = None
) -> tuple[Joined, History]:
    """Train one of SYSTEMS; the score is accuracy on VALIDATION."""
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = Joined(system, d_model=RECIPE["d_model"])
    history = fit(
        model, batches(task, distance), recaller.loss, steps=RECIPE["steps"], every=RECIPE["every"],
        lr=lr or RECIPE["lr"], seed_number=seed,
        validate=lambda model: accuracy(model, task, distance, split="validation"),
        name=f"{system}, {task}, distance {distance}",
    )  # fmt: skip
    return model, history


def batches(task: str, distance: int) -> Callable[[torch.Generator], Recall]:
    """What draws training batches."""
    return lambda generator: drawn(task, generator, RECIPE["batch"], distance)


@torch.no_grad()
def accuracy(model: nn.Module, task: str, distance: int, *, seed: int = 0, split: str = "test") -> float:
    """The share of right answers on a split's sequences, which are always the same for a seed."""
    require.one_of(SPLIT_SEEDS, split=split)
    generator = torch.Generator("cpu").manual_seed(SPLIT_SEEDS[split] + seed)
    sets = [to_device(drawn(task, generator, 50, distance)) for _ in range(-(-RECIPE[split] // 50))]
    model.eval()
    right = torch.cat([model(tokens).argmax(-1) == answer for tokens, answer in sets])
    return right.double().mean().item()


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed: "rate" rows with the first seed only, then a "point" for each task, system and
    distance, asked at all distances."""
    rows = []
    if seed == RECIPE["seeds"][0]:
        for task in TASKS:
            for system in SYSTEMS:
                for distance in RECIPE["pilot"]:
                    for lr in RECIPE["rates"]:
                        history = train(system, task, distance, seed, lr=lr)[1]
                        score = round(max(history.column("score")), 4)
                        row = {"kind": "rate", "seed": seed, "task": task, "system": system}
                        rows.append(row | {"distance": distance, "lr": lr, "validation_accuracy": score})
    for task in TASKS:
        for system in SYSTEMS:
            for distance in RECIPE["distances"]:
                model, history = train(system, task, distance, seed)
                asked = {str(d): round(accuracy(model, task, d, seed=seed), 4) for d in RECIPE["distances"]}
                rows.append({
                    "kind": "point", "seed": seed, "task": task, "system": system, "distance": distance,
                    "lr": RECIPE["lr"], "accuracy": asked[str(distance)], "asked": asked,
                    "parameters": sum(p.numel() for p in model.parameters()),
                    "cpu_s": round(history.cpu_s, 2),
                })  # fmt: skip
    return rows
