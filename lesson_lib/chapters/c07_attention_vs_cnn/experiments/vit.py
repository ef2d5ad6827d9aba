"""A Vision Transformer and a convolutional network of one size: accuracy against the number of training
pictures, after few steps and after many.

Two tasks on noisy canvases. "digit": which handwritten digit lies somewhere on it; test pictures are of
digits never seen. "pair": do two shapes that lie anywhere show one kind; no place of the canvas can tell. `n`
counts canvases, placed and noisy, drawn before training and used again and again; None: fresh ones at every
step. Both models take batches of one size, and their steps are such that a training takes about as many
processor seconds. A training is judged ten times on VALIDATION canvases and its best weights are kept;
accuracies are of test canvases. Rates are the best of `rates` on VALIDATION, for each model and task, at the
n of `pilot_n`, one seed, after the long training; the short one is stored beside it. Two further budgets show
what a comparison hangs on, with digits: a CNN that was stopped after 50 steps ("tiny"), and a ViT with 3,200
("longest"). Departures from the paper: see models/vit.py; its curve is of pre-training on up to 300 million
pictures (arXiv:2010.11929, figures 3 and 4).
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from lesson_lib import require
from lesson_lib.chapters.c07_attention_vs_cnn import scenes, vit
from lesson_lib.chapters.c07_attention_vs_cnn.vit import ConvNet, VisionTransformer, attention_distance
from lesson_lib.data import digits
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

RECIPE = {
    "size": 20,
    "noise": 0.1,
    "kinds": ["square", "cross"],
    "vit": {"patch": 5, "d_model": 64, "n_layers": 2, "n_heads": 4, "d_inner": 128},
    "cnn": {"channels": [8, 32, 64, 84]},
    "batch": 64,
    "steps": {
        "vit": {"short": 200, "long": 800, "longest": 3200},
        "cnn": {"tiny": 50, "short": 200, "long": 800},
    },
    "n": {"digit": [200, 1000, 5000, 25_000], "pair": [200, 1000, 5000, 25_000, None]},
    "lr": {"vit": {"digit": 3e-3, "pair": 1e-3}, "cnn": {"digit": 1e-2, "pair": 3e-3}},
    "rates": [1e-3, 3e-3, 1e-2],
    "pilot_n": 25_000,
    "validation": 500,
    "test": 3000,
    "near": [8, 10, 12, 14, 16, 19],  # bounds of the distances, in pixels, at which pairs are judged
    "looked_at": 300,  # test pictures for the attention distances
    "seeds": [0, 1, 2],
}
MODELS, TASKS, BUDGETS = ("vit", "cnn"), ("digit", "pair"), ("short", "long")
CLASSES = {"digit": digits.CLASSES, "pair": 2}
SPLIT_SEEDS = {"validation": 10_000, "test": 20_000}


def draw(task: str, batch: int, generator: torch.Generator, split: str = "training") -> tuple[Tensor, Tensor]:
    """Canvases (b, 1, size, size) of a task and their labels, on the CPU. The splits of "digit" share no
    handwritten picture.

    Raises ValueError for another task.
    """
    require.one_of(TASKS, task=task)
    size = RECIPE["size"]
    if task == "pair":
        scene = scenes.pairs(generator, batch, size=size, kinds=tuple(RECIPE["kinds"]))
        return scene.canvas[:, None], scene.label
    placed = digits.draw(split, batch, generator, size=size)
    noise = RECIPE["noise"] * torch.randn(placed.canvas.shape, generator=generator, device="cpu")
    return (placed.canvas + noise)[:, None], placed.label


@cache
def held_out(task: str, split: str) -> tuple[Tensor, Tensor]:
    """The canvases on which accuracy is measured: always the same, of the split "validation" or "test".

    Raises ValueError for another split or task.
    """
    require.one_of(tuple(SPLIT_SEEDS), split=split)
    generator = torch.Generator("cpu").manual_seed(SPLIT_SEEDS[split])
    return to_device(draw(task, RECIPE[split], generator, split))


def make(model: str, task: str) -> VisionTransformer | ConvNet:
    """An untrained model. Raises ValueError for another name."""
    require.one_of(MODELS, model=model)
    require.one_of(TASKS, task=task)
    if model == "vit":
        own = dict(RECIPE["vit"])
        return VisionTransformer(RECIPE["size"], own.pop("patch"), CLASSES[task], **own)
    return ConvNet(CLASSES[task], tuple(RECIPE["cnn"]["channels"]))


def start(model: str, task: str, seed: int) -> VisionTransformer | ConvNet:
    """The model that `train` starts from with that seed, on the lessons' device."""
    torch.manual_seed(seed)
    return to_device(make(model, task)).eval()


def train(
    model: str,
    task: str,
    n: int | None,
    seed: int = 0,
    *,
    budget: str = "long",
    lr: float | None = None,
    codes: float | bool = True,
) -> tuple[VisionTransformer | ConvNet, History]:
    """Train "vit" or "cnn" on `n` canvases of "pair" or "digit" (None: fresh ones at every step); the score
    is accuracy on VALIDATION. `codes=False`: a ViT whose position codes are 0 and stay so; a number is their
    standard deviation before training, in place of 1/8.

    Raises ValueError for another model, task, or budget (those of RECIPE["steps"]), where n is less than 1,
    and for codes of a CNN: it has none.
    """
    require.one_of(tuple(RECIPE["steps"].get(model, BUDGETS)), budget=budget)
    network, batch = start(model, task, seed), RECIPE["batch"]
    if codes is not True:
        require.one_of(("vit",), model=model)
        table = network.positions.table
        with torch.no_grad():
            table.mul_(codes / table.std())
        table.requires_grad_(bool(codes))
    if n is not None:
        require.whole(n=n)
    pool = None if n is None else training(task, n, seed)

    def some(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if pool is None:
            return draw(task, batch, generator)
        rows = torch.randint(len(pool[1]), (batch,), generator=generator, device="cpu")
        return pool[0][rows], pool[1][rows]

    history = fit(
        network, some, vit.loss, steps=RECIPE["steps"][model][budget], lr=lr or RECIPE["lr"][model][task],
        seed_number=seed,
        validate=lambda network: accuracy(network, *held_out(task, "validation")), name=f"{model}, {task}",
    )  # fmt: skip
    return network, history


def training(task: str, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """The n canvases that a seed trains on, on the CPU."""
    return draw(task, n, torch.Generator("cpu").manual_seed(seed))


def accuracy(model: VisionTransformer | ConvNet, x: Tensor, label: Tensor) -> float:
    """The share of right answers."""
    return vit.right(model, x, label).double().mean().item()


def by_distance(model: VisionTransformer | ConvNet) -> list[list[float]]:
    """Rows [from, to, pairs, share of right answers] of the test pairs whose middles are that many pixels
    apart."""
    size, kinds = RECIPE["size"], tuple(RECIPE["kinds"])
    generator = torch.Generator("cpu").manual_seed(SPLIT_SEEDS["test"])
    apart = scenes.pairs(generator, RECIPE["test"], size=size, kinds=kinds).distance
    right, rows = vit.right(model, *held_out("pair", "test")).cpu(), []
    for low, high in zip(RECIPE["near"], RECIPE["near"][1:], strict=False):
        here = right[(low <= apart) & (apart < high)]
        rows.append([low, high, len(here), round(here.double().mean().item(), 4)])
    return rows


@torch.no_grad()
def distances(model: VisionTransformer, task: str) -> list[list[float]]:
    """Attention distance in pixels of each layer and head, on the first test canvases."""
    looked = model.eval().look(held_out(task, "test")[0][: RECIPE["looked_at"]])
    patch = RECIPE["vit"]["patch"]
    return [attention_distance(w[:, :, 1:, 1:], model.grid, patch).tolist() for w in looked.weights]


def even_distance() -> float:
    """The attention distance of a head without a preference, in pixels."""
    patch = RECIPE["vit"]["patch"]
    side = RECIPE["size"] // patch
    return attention_distance(torch.ones(1, 1, side**2, side**2), (side, side), patch).item()


def run(seed: int) -> list[dict[str, Any]]:
    """Rows of kind "point" (a training), and of the largest n "apart" (accuracy by distance) and "distance"
    (a head's, before and after).

    The first seed has rows of kind "rate" too: each rate on VALIDATION.
    """
    rows: list[dict[str, Any]] = pilot(seed) if seed == RECIPE["seeds"][0] else []
    for task in TASKS:
        for model in MODELS:
            rows += [
                row
                for n in RECIPE["n"][task]
                for budget in BUDGETS
                for row in point(model, task, n, budget, seed)
            ]
    sizes = RECIPE["n"]["digit"]
    rows += [row for n in sizes for row in point("cnn", "digit", n, "tiny", seed)]
    return rows + point("vit", "digit", sizes[-1], "longest", seed)


def pilot(seed: int, tasks: tuple[str, ...] = TASKS) -> list[dict[str, Any]]:
    """Rows of kind "rate"."""
    rows = []
    for task in tasks:
        for model in MODELS:
            for lr in RECIPE["rates"]:
                for budget in BUDGETS:
                    history = train(model, task, RECIPE["pilot_n"], seed, budget=budget, lr=lr)[1]
                    rows.append(
                        {
                            "kind": "rate", "seed": seed, "model": model, "task": task,
                            "n": RECIPE["pilot_n"], "budget": budget, "lr": lr,
                            "validation_accuracy": round(max(history.column("score")), 4),
                            "cpu_s": round(history.cpu_s, 2),
                        }
                    )  # fmt: skip
    return rows


def point(model: str, task: str, n: int | None, budget: str, seed: int) -> list[dict[str, Any]]:
    """A row of kind "point"; after a long training with the largest n also rows of kind "apart" (a pair's)
    and "distance" (a ViT's)."""
    network, history = train(model, task, n, seed, budget=budget)
    steps = history.rows[-1]["step"]
    known = None if n is None else [table[: RECIPE["test"]] for table in training(task, n, seed)]
    same = {
        "seed": seed,
        "model": model,
        "task": task,
        "n": n or steps * RECIPE["batch"],
        "fresh": n is None,
        "budget": budget,
    }
    row = {
        "kind": "point", **same, "steps": steps,
        "accuracy": round(accuracy(network, *held_out(task, "test")), 4),
        "training_accuracy": None if known is None else round(accuracy(network, *to_device(known)), 4),
        "validation_accuracy": round(max(history.column("score")), 4),
        "curve": [[one["step"], round(one["score"], 3)] for one in history.rows],
        "cpu_s": round(history.cpu_s, 2), "parameters": sum(p.numel() for p in network.parameters()),
    }  # fmt: skip
    rows = [row]
    if n != RECIPE["n"][task][-1] or budget != "long":
        return rows
    if task == "pair":
        rows.append({"kind": "apart", **same, "by_distance": by_distance(network)})
    if model == "vit":
        before, after = distances(start(model, task, seed), task), distances(network, task)
        rows += [
            {"kind": "distance", **same, "layer": layer, "head": head, "before": round(b, 3),
            "after": round(a, 3), "even": round(even_distance(), 3)}
            for layer, both in enumerate(zip(before, after, strict=True))
            for head, (b, a) in enumerate(zip(*both, strict=True))
        ]  # fmt: skip
    return rows
