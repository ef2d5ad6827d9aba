"""Rotary positions, trained at 32 tokens and stretched to longer texts in four ways, on a task that needs
the exact distance of near tokens and on one that needs the order of far ones.

Three back: name the symbol three places before. The latest wins: a name stands twice among the others, each
time with a number; asked for the name, say the number that stood with it last.
"""

import copy
import math
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import positions, summary
from lesson_lib.chapters.c05_positional_encoding.experiments import order
from lesson_lib.device import to_device
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.positions import rotary
from lesson_lib.training import History, fit

RECIPE = {
    "names": 16,
    "numbers": 16,
    "d_model": 64,
    "n_heads": 4,
    "length": 32,
    "lengths": [32, 64, 128, 256],
    "sequences": 1000,
    "tasks": ["three back", "the latest wins"],
    "ways": ["as trained", "interpolated", "larger base", "by parts", "clock 2 alone"],
    "lr": {"three back": 0.1, "the latest wins": 0.01},
    "batch": {"three back": 32, "the latest wins": 64},
    "steps": {"three back": 400, "the latest wins": 800},
    "schedule": "one-cycle",
    "tuned_at": 128,
    "tuning_steps": 100,
    "tuning_lr": 3e-3,
    "seeds": [0, 1, 2],
}
D_HEAD = RECIPE["d_model"] // RECIPE["n_heads"]
TEST_SEED = 20_000


class Latest(nn.Module):
    """Logits of the sixteen numbers, (b, 16): one layer of attention with rotary positions; the last token
    asks for its name, and its number is one that means "?"."""

    def __init__(self) -> None:
        super().__init__()
        d, n_heads = RECIPE["d_model"], RECIPE["n_heads"]
        self.names = nn.Embedding(RECIPE["names"], d)
        self.numbers = nn.Embedding(RECIPE["numbers"] + 1, d)
        self.layer = MultiHeadAttention(d, n_heads, rotate=rotary)
        self.read = nn.Linear(d, RECIPE["numbers"])

    def forward(self, names: Int[Tensor, "b n"], numbers: Int[Tensor, "b n"]) -> Float[Tensor, "b 16"]:
        x = self.names(names) + self.numbers(numbers)
        return self.read(self.layer(x, x, x).output[:, -1])


def draw(
    generator: torch.Generator,
    batch: int = RECIPE["batch"]["the latest wins"],
    length: int = RECIPE["length"],
) -> tuple[Tensor, Tensor, Tensor]:
    """Names and numbers (batch, length) and the right numbers (batch,): the name of the last token stands at
    two random places before it, all others are other names."""
    options = {"generator": generator, "device": "cpu"}
    asked = torch.randint(RECIPE["names"], (batch, 1), **options)
    names = (asked + torch.randint(1, RECIPE["names"], (batch, length), **options)) % RECIPE["names"]
    two = torch.rand(batch, length - 1, **options).topk(2).indices
    names.scatter_(1, two, asked.expand(-1, 2))
    numbers = torch.randint(RECIPE["numbers"], (batch, length), **options)
    right = numbers.gather(1, two.amax(1, keepdim=True))[:, 0]
    names[:, -1], numbers[:, -1] = asked[:, 0], RECIPE["numbers"]
    return names, numbers, right


def loss(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Cross-entropy of the right numbers."""
    names, numbers, right = batch
    return F.cross_entropy(model(names, numbers), right)


def stretched(way: str, times: float) -> Float[Tensor, " half_d"]:
    """The frequencies of a head for texts `times` as long as those of training.

    "as trained": those of training. "interpolated": all divided by `times`, so that no angle is met that
    training has not met (Chen et al. 2023). "larger base": base · times^(d / (d - 2)), which leaves the first
    clock and divides the last by `times` (known as NTK-aware). "by parts": clocks that went round in training
    stay, the others are divided (the idea of YaRN, Peng et al. 2023, arXiv:2309.00071, without its soft
    edges). "clock 2 alone": only the third is divided, the one that both tasks read.
    Raises ValueError for another way.
    """
    trained = positions.frequencies(D_HEAD)
    if way == "as trained":
        return trained
    if way == "interpolated":
        return trained / times
    if way == "larger base":
        return positions.frequencies(D_HEAD, base=positions.BASE * times ** (D_HEAD / (D_HEAD - 2)))
    if way == "by parts":
        went_round = RECIPE["length"] * trained >= 2 * math.pi
        return torch.where(went_round, trained, trained / times)
    if way == "clock 2 alone":
        return torch.where(torch.arange(len(trained)) == 2, trained / times, trained)
    raise ValueError(f"way must be one of {', '.join(RECIPE['ways'])}, got {way!r}")


def stretch(model: nn.Module, way: str, length: int) -> None:
    """Let the model's layer turn in that way, for texts of that length."""
    times = max(1.0, length / RECIPE["length"])
    model.layer.rotate = partial(rotary, frequencies=stretched(way, times))


def train(task: str, seed: int = 0) -> tuple[nn.Module, History]:
    """Train one model at the length of the recipe; its task is one of RECIPE["tasks"]."""
    if task == "three back":
        return order.train("rotary", lr=RECIPE["lr"][task], seed=seed, steps=RECIPE["steps"][task])
    torch.manual_seed(seed)
    model = to_device(Latest())
    settings = {"steps": RECIPE["steps"][task], "lr": RECIPE["lr"][task], "schedule": RECIPE["schedule"]}
    return model, fit(model, draw, loss, seed_number=seed, name=task, **settings)


def accuracy(model: nn.Module, task: str, length: int) -> float:
    """Share of right answers of the test at that length."""
    if task == "three back":
        return order.accuracy(model, length, order.TEST_SEED)
    names, numbers, right = to_device(
        draw(torch.Generator().manual_seed(TEST_SEED + length), RECIPE["sequences"], length)
    )
    with torch.no_grad():
        return (model(names, numbers).argmax(-1) == right).float().mean().item()


def reached(model: nn.Module, task: str, way: str) -> list[float]:
    """Test accuracy at the recipe's lengths, stretched in that way for each."""
    found = []
    for length in RECIPE["lengths"]:
        stretch(model, way, length)
        found.append(accuracy(model, task, length))
    return found


def tuned(model: nn.Module, task: str, way: str, seed: int) -> float:
    """Test accuracy at `tuned_at` tokens of a copy that was stretched to them and trained on there."""
    length = RECIPE["tuned_at"]
    model = copy.deepcopy(model)
    stretch(model, way, length)
    make, measure = (order.draw, order.loss) if task == "three back" else (draw, loss)
    batch = RECIPE["batch"][task] // 2
    settings = {"steps": RECIPE["tuning_steps"], "lr": RECIPE["tuning_lr"], "schedule": RECIPE["schedule"]}
    fit(
        model, lambda generator: make(generator, batch, length), measure,
        seed_number=1000 + seed, name=f"{task}, {way}", **settings,
    )  # fmt: skip
    return accuracy(model, task, length)


def run(seed: int) -> list[dict[str, object]]:
    """One row for each task and way."""
    rows = []
    torch.set_flush_denormal(True)  # see order.train
    try:
        for task in RECIPE["tasks"]:
            model, history = train(task, seed)
            for way in RECIPE["ways"]:
                row = {"seed": seed, "task": task, "way": way, "cpu_s": history.cpu_s}
                rows.append(row | {"accuracy": reached(model, task, way)})
                rows[-1]["tuned"] = tuned(model, task, way, seed)
    finally:
        torch.set_flush_denormal(False)
    return rows


def by_length(rows: list[dict], task: str) -> dict[str, tuple[list[int], list, list, list]]:
    """What a figure draws of a task: {way: (lengths, lowest, median, highest accuracy over the seeds)}."""
    curves = {}
    for way in RECIPE["ways"]:
        columns = zip(*(r["accuracy"] for r in rows if (r["task"], r["way"]) == (task, way)), strict=True)
        curves[way] = summary.band(dict(zip(RECIPE["lengths"], columns, strict=True)))
    return curves
