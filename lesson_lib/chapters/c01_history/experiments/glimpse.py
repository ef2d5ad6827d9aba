"""Where to look: learned, by chance, or always at the centre, and what single choices around the learning are
worth.

A digit lies anywhere on a canvas of 24 by 24 pixels; four glimpses, the first at the centre. The policies
share everything else. "told" is a model that knows where the digit is, and two networks see the whole canvas
at once: both bound what looking can bring. `departures` are single changes of the learned model, some towards
the paper, some away from it, at its own learning rate. On a canvas of 8 by 8 the digit fills the canvas, and
there is nothing to search for.

Departures of the miniature from the paper: see the model, lesson_lib/chapters/c01_history/glimpse.py.
"""

from collections.abc import Callable
from functools import cache, partial
from operator import itemgetter

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib import require, summary
from lesson_lib.chapters.c01_history.glimpse import Glimpser, Glimpses, look, loss, reinforce, rewards, right
from lesson_lib.data import digits
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

RECIPE = {
    "size": 24, "patch": 8, "n_scales": 2, "n_glimpses": 4, "d": 128, "std": 0.3,
    "batch": 256,
    "steps": 1200,
    "policies": ["learned", "random", "centre", "told"],
    "rates": [2e-3, 6e-3, 2e-2, 6e-2],
    "departures": {
        "rectifier core": {"core": "rectifier"},
        "batches of 20, 3,000 steps": {"batch": 20, "steps": 3000},
        "the same, random places": {"batch": 20, "steps": 3000, "policy": "random"},
        "policy gradient stops at the core": {"into_core": False},
        "first glimpse anywhere": {"start": "random"},
        "no baseline": {"baseline": False},
        "loss after every glimpse": {"every_glimpse": True},
        "reward: probability of the digit": {"reward": "probability"},
        "reward after each glimpse": {"at": "each"},
        "the last three together": {"every_glimpse": True, "reward": "probability", "at": "each"},
    },
    "other_n_glimpses": [1, 2, 6],
    "plain": {"size": 8, "steps": 400, "policies": ["learned", "random", "centre"]},
    "whole": ["fully connected", "convolution"],
    "noise": {"paths": 300, "canvases": 256, "every": 2},
    "validation": 1000,
    "test": 3000,
    "pictures": 8,
    "tuning_seed": 0,
    "seeds": [0, 1, 2],
}  # fmt: skip
VALIDATION_SEED, TEST_SEED = 10_000, 20_000
IN_MODEL, IN_LOSS = ("core", "into_core", "start"), ("every_glimpse", "reward", "at", "baseline")
Watch = Callable[[Glimpser, int], None]


def train(
    policy: str = "learned",
    *,
    lr: float,
    seed: int = 0,
    steps: int | None = None,
    size: int = RECIPE["size"],
    n_glimpses: int = RECIPE["n_glimpses"],
    departure: str | None = None,
    watch: Watch | None = None,
) -> tuple[Glimpser, History]:
    """Train one model; its history's score is the accuracy of the last guess on the validation split.

    `departure` is one of the recipe's; `watch(model, report)` is called before the first step and at each of
    ten reports.
    Raises ValueError for another departure.
    """
    require.one_of([None, *RECIPE["departures"]], departure=departure)
    changed = RECIPE["departures"][departure] if departure else {}
    torch.manual_seed(seed)
    own = {key: RECIPE[key] for key in ("patch", "n_scales", "d", "std")}
    own |= {key: value for key, value in changed.items() if key in IN_MODEL}
    model = to_device(Glimpser(policy, n_glimpses=n_glimpses, **own))
    reports = 0

    def validate(model: Glimpser) -> float:
        nonlocal reports
        reports += 1
        if watch:
            watch(model, reports)
        return accuracy(model, "validation", size)[-1]

    if watch:
        watch(model, 0)
    history = fit(
        model,
        partial(draw, batch=changed.get("batch", RECIPE["batch"]), size=size),
        partial(loss, **{key: value for key, value in changed.items() if key in IN_LOSS}),
        steps=steps or changed.get("steps", RECIPE["steps"]), lr=lr, seed_number=seed, validate=validate,
        name=policy,
    )  # fmt: skip
    return model, history


def draw(
    generator: torch.Generator, batch: int = RECIPE["batch"], size: int = RECIPE["size"]
) -> digits.Placed:
    """A batch to train on."""
    return digits.draw("training", batch, generator, size=size)


def held_out(split: str, size: int = RECIPE["size"]) -> digits.Placed:
    """The canvases on which accuracy is measured: always the same, of the split "validation" or "test".

    Raises ValueError for another split.
    """
    seeds = {"validation": VALIDATION_SEED, "test": TEST_SEED}
    if split not in seeds:
        raise ValueError(
            f"split must be 'validation' or 'test', got {split!r}; accuracy is not measured on train"
        )
    seed = seeds[split]
    return to_device(digits.draw(split, RECIPE[split], torch.Generator().manual_seed(seed), size=size))


def seen(model: Glimpser, split: str, size: int = RECIPE["size"]) -> tuple[Glimpses, digits.Placed]:
    """What a model makes of a split, and the split; chance, where a policy needs it, is always the same."""
    batch = held_out(split, size)
    return look(model, batch, generator=torch.Generator().manual_seed(VALIDATION_SEED)), batch


def accuracy(model: Glimpser, split: str, size: int = RECIPE["size"]) -> list[float]:
    """Share of right guesses after each glimpse."""
    return right(*seen(model, split, size)).float().mean(0).tolist()


def pixels_off(model: Glimpser, split: str) -> list[float]:
    """Mean distance, in pixels, between each glimpse and the middle of the digit."""
    looked, batch = seen(model, split)
    size = batch.canvas.shape[-1]
    off = looked.places - digits.centre(batch.corner, size)[:, None]
    return (off.norm(dim=-1) * size / 2).mean(0).tolist()


def gradient_noise(
    model: Glimpser, batch: digits.Placed, paths: int = RECIPE["noise"]["paths"]
) -> dict[str, float]:
    """Spread of REINFORCE's estimate of the location network's gradient, over `paths` paths on the SAME
    canvases.

    "noise" is the root of the summed variances of one batch's estimate, with the learned baseline, "noise
    without" that without one. "signal squared" is the squared length of the mean estimate less what chance
    adds to it, so it may be negative.
    Raises ValueError for fewer than 2 paths, which have no spread.
    """
    if paths < 2:
        raise ValueError(f"paths must be at least 2, got {paths}; one path has no spread")
    training, generator = model.training, torch.Generator().manual_seed(0)
    parameters = list(model.locate.parameters())
    estimates: dict[str, list[Tensor]] = {"noise": [], "noise without": []}
    mean_reward = 0.0
    model.train()
    with torch.enable_grad():
        for _ in range(paths):
            looked = model(batch.canvas, generator=generator)
            earned = rewards(looked, batch.label)
            mean_reward += earned.mean().item() / paths
            for name, expected in (("noise", looked.expected), ("noise without", 0.0)):
                value = reinforce(looked.log_density, earned, expected)
                gradient = torch.autograd.grad(value, parameters, retain_graph=True)
                estimates[name].append(torch.cat([g.flatten() for g in gradient]).double())
    model.train(training)
    tables = {name: torch.stack(rows) for name, rows in estimates.items()}
    spread = {name: table.var(0).sum().item() for name, table in tables.items()}
    squared = tables["noise"].mean(0).square().sum().item() - spread["noise"] / paths
    return {"signal squared": squared, "reward": mean_reward} | {
        name: variance**0.5 for name, variance in spread.items()
    }


def whole(kind: str) -> nn.Module:
    """A network that sees the whole canvas: "fully connected" (two layers of 256, as in the paper) or
    "convolution"."""
    known = {
        "fully connected": lambda: [
            nn.Flatten(), nn.Linear(RECIPE["size"] ** 2, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
            nn.Linear(256, digits.CLASSES),
        ],
        "convolution": lambda: [
            nn.Unflatten(1, (1, RECIPE["size"])), nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(),
            nn.Conv2d(16, 64, 3), nn.ReLU(),
            nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, digits.CLASSES),
        ],
    }  # fmt: skip
    require.one_of(known, kind=kind)
    return nn.Sequential(*known[kind]())


def train_whole(
    kind: str, *, lr: float, seed: int = 0, steps: int = RECIPE["steps"]
) -> tuple[nn.Module, History]:
    """Train a network that sees the whole canvas, on the same batches."""
    torch.manual_seed(seed)
    model = to_device(whole(kind))
    history = fit(
        model, draw, lambda model, batch: F.cross_entropy(model(batch.canvas), batch.label),
        steps=steps, lr=lr, seed_number=seed, validate=lambda model: whole_accuracy(model, "validation"),
        name=kind,
    )  # fmt: skip
    return model, history


def whole_accuracy(model: nn.Module, split: str) -> float:
    """Share of right answers of a network that sees the whole canvas."""
    batch = held_out(split)
    with torch.no_grad():
        return (model(batch.canvas).argmax(-1) == batch.label).float().mean().item()


def run(seed: int) -> list[dict]:
    """All rows of a seed, by "kind": policy, plain, whole, departure, glimpses, noise, and on the tuning seed
    paths.

    Learning rates of policies (on both canvases) and of whole networks are tuned on one seed's validation
    split; every rate's row of that seed is kept. Departures and other numbers of glimpses run at the rate of
    their policy.
    """
    tuned = _grid()
    chosen = {(row["kind"], row["name"]): row["lr"] for row in best_rows(tuned)}
    rows = list(tuned) if seed == RECIPE["tuning_seed"] else []
    if not rows:
        rows = [_row(kind, name, lr=lr, seed=seed) for (kind, name), lr in chosen.items()]
    of = {policy: chosen["policy", policy] for policy in RECIPE["policies"]}
    rows += [_row("departure", name, lr=of["learned"], seed=seed) for name in RECIPE["departures"]]
    for n in RECIPE["other_n_glimpses"]:
        policies = ("learned", "random") if n > 1 else ("centre",)  # a single glimpse is at the centre
        rows += [_row("glimpses", policy, lr=of[policy], seed=seed, n_glimpses=n) for policy in policies]
    return rows + _watched(seed, of["learned"], chosen["plain", "learned"])


def best_rows(rows: list[dict]) -> list[dict]:
    """Of the learning rates of one kind, name, number of glimpses and seed, the row that is best on
    VALIDATION."""
    tuned = [row for row in rows if "validation" in row]
    return summary.best(tuned, ("kind", "name", "n_glimpses", "seed"), by=itemgetter("validation"))


def by_name(rows: list[dict], kind: str) -> dict[str, list[float]]:
    """Test accuracies of the seeds, {name: [accuracy of each seed]}, of one kind's best rows."""
    accuracies = {}
    for row in best_rows(rows):
        if row["kind"] == kind:
            accuracies.setdefault(row["name"], []).append(row["test"])
    return accuracies


@cache
def _grid() -> list[dict]:
    """Every policy, on both canvases, and every whole network, at every rate, on the tuning seed."""
    names = [("policy", name) for name in RECIPE["policies"]]
    names += [("plain", name) for name in RECIPE["plain"]["policies"]]
    names += [("whole", name) for name in RECIPE["whole"]]
    seed = RECIPE["tuning_seed"]
    return [_row(kind, name, lr=lr, seed=seed) for kind, name in names for lr in RECIPE["rates"]]


def _row(kind: str, name: str, *, lr: float, seed: int, n_glimpses: int = RECIPE["n_glimpses"]) -> dict:
    row = {"kind": kind, "name": name, "seed": seed, "lr": lr, "n_glimpses": n_glimpses}
    if kind == "whole":
        model, history = train_whole(name, lr=lr, seed=seed)
        row |= {"n_glimpses": 0, "test": whole_accuracy(model, "test")}
    else:
        plain, options = RECIPE["plain"], {"lr": lr, "seed": seed, "n_glimpses": n_glimpses}
        if kind == "plain":
            options |= {"size": plain["size"], "steps": plain["steps"]}
        if kind == "departure":
            options |= {"departure": name}
        policy = RECIPE["departures"][name].get("policy", "learned") if kind == "departure" else name
        model, history = train(policy, **options)
        each = accuracy(model, "test", options.get("size", RECIPE["size"]))
        row |= {"test": each[-1], "test after each": each}
        row |= {"pixels off": pixels_off(model, "test")} if kind != "plain" else {}
    parameters = sum(p.numel() for p in model.parameters())
    return row | {
        "validation": max(history.column("score")),
        "parameters": parameters,
        "cpu_s": history.cpu_s,
    }


def _watched(seed: int, lr: float, plain_lr: float) -> list[dict]:
    """Rows of the gradient's noise while the learned model trains on either canvas; on the tuning seed its
    paths too."""
    plain, noise, rows = RECIPE["plain"], RECIPE["noise"], []
    for size, options in (
        (RECIPE["size"], {"lr": lr}),
        (plain["size"], {"lr": plain_lr, "steps": plain["steps"]}),
    ):
        fixed = torch.Generator().manual_seed(VALIDATION_SEED)
        batch = to_device(digits.draw("training", noise["canvases"], fixed, size=size))

        def watch(model: Glimpser, report: int, batch: digits.Placed = batch, size: int = size) -> None:
            if report % noise["every"] == 0:
                measured = gradient_noise(model, batch)
                rows.append({"kind": "noise", "seed": seed, "size": size, "trained": report / 10} | measured)

        model, _ = train("learned", size=size, seed=seed, watch=watch, **options)
        if size == RECIPE["size"] and seed == RECIPE["tuning_seed"]:
            rows.append(_paths(model, seed))
    return rows


def _paths(model: Glimpser, seed: int) -> dict:
    """The first test canvases as a row: which picture lies where, where the model looked, and what it
    said."""
    looked, batch = seen(model, "test")
    some = slice(0, RECIPE["pictures"])
    return {
        "kind": "paths", "seed": seed,
        "pictures": batch.picture[some].tolist(), "corners": batch.corner[some].tolist(),
        "places": [[[round(c, 4) for c in place] for place in path] for path in looked.places[some].tolist()],
        "probabilities": [[[round(p,
        3) for p in row] for row in rows] for rows in looked.probabilities()[some].tolist()],
    }  # fmt: skip
