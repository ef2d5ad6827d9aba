"""The karate club with its two leaders known: graph attention, a GCN, dot products along the edges, and full
attention without and with a residual path, all of two layers (`camp_models`).

200 steps for all, the whole graph in each. The rate of each system is, of those of `rates` within 0.02 of its
best on VALIDATION, the nearest to 1e-2. Validation graphs are others: `club.stand_in`, generated clubs of the
same size. Rows:

    rate     validation accuracy with each rate, the mean over the validation graphs
    point    accuracy on the 32 members who were not known, `loss` of the two labels at the end; `apart`, the
             largest difference between two members' logits before and after training; `wrong`, who was
             placed wrongly
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.chapters.c10_graph_attention import graphs
from lesson_lib.chapters.c10_graph_attention.camp_models import TwoDots, TwoFixed, TwoLayers
from lesson_lib.chapters.c10_graph_attention.experiments import club
from lesson_lib.chapters.c10_graph_attention.graphs import NodeTask
from lesson_lib.device import to_device
from lesson_lib.graphs import self_loops
from lesson_lib.training import History, fit

RECIPE = {
    "systems": [
        "graph attention",
        "GCN",
        "dot products along edges",
        "full attention",
        "full attention, residual",
    ],
    "steps": 200,
    "rates": [1e-3, 3e-3, 1e-2, 3e-2],
    "lr": {
        "graph attention": 3e-3,
        "GCN": 1e-2,
        "dot products along edges": 1e-2,
        "full attention": 1e-2,
        "full attention, residual": 3e-2,
    },
    "pilot": 5,  # validation graphs, one start each
    "seeds": [0, 1, 2],
}


def with_loops(task: NodeTask) -> NodeTask:
    """The task, with a self-loop at each node."""
    return task._replace(edge_index=self_loops(task.edge_index, len(task.y)))


def start(system: str, seed: int = 0, *, task: NodeTask | None = None) -> nn.Module:
    """The untrained model that `train` begins with, on the lessons' device. Raises ValueError for a system
    that is none of the recipe's."""
    require.one_of(RECIPE["systems"], system=system)
    task = task or graphs.karate()
    sizes = task.x.shape[1], len(task.classes)
    torch.manual_seed(seed)
    with torch.device("cpu"):
        if system == "graph attention":
            model = TwoLayers(*sizes)
        elif system == "GCN":
            model = TwoFixed(*sizes)
        else:
            full = system.startswith("full")
            model = TwoDots(*sizes, everybody=full, residual=system.endswith("residual"))
    return to_device(model).eval()


def train(
    system: str, seed: int = 0, *, task: NodeTask | None = None, lr: float | None = None
) -> tuple[nn.Module, History]:
    """The system, trained on the known members of the task (default: the club and its leaders)."""
    task = with_loops(task or graphs.karate())
    model = start(system, seed, task=task)
    lr = lr or RECIPE["lr"][system]
    history = fit(model, lambda _: task, loss, steps=RECIPE["steps"], lr=lr, seed_number=seed, name=system)
    return model, history


def loss(model: nn.Module, task: NodeTask) -> Tensor:
    """Mean cross-entropy of the members whose camp is known; the others' camps are not read."""
    return F.cross_entropy(model(task.x, task.edge_index)[task.known], task.y[task.known])


@torch.no_grad()
def logits(model: nn.Module, task: NodeTask) -> Tensor:
    """Of all nodes, on the CPU; `task` without self-loops."""
    task = to_device(with_loops(task))
    return model(task.x, task.edge_index).cpu()


def accuracy(model: nn.Module, task: NodeTask) -> float:
    """The share of right camps among the members who were not known."""
    asked = torch.ones(len(task.y), dtype=torch.bool, device="cpu")
    asked[task.known] = False
    return (logits(model, task).argmax(-1) == task.y)[asked].double().mean().item()


def apart(model: nn.Module, task: NodeTask) -> float:
    """The largest difference between two nodes in the same logit."""
    found = logits(model, task)
    return (found.amax(0) - found.amin(0)).max().item()


@torch.no_grad()
def first_weights(model: TwoDots, task: NodeTask) -> tuple[float, float]:
    """The smallest and the largest weight of the first layer."""
    task = to_device(with_loops(task))
    weights = model.first.look(task.x, task.edge_index).weights
    return weights.min().item(), weights.max().item()


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of kind "rate" with the first seed only."""
    rows = _rates() if seed == RECIPE["seeds"][0] else []
    return rows + [_point(system, seed) for system in RECIPE["systems"]]


def _rates() -> list[dict[str, Any]]:
    tasks = [club.stand_in(club.VALIDATION + k) for k in range(RECIPE["pilot"])]
    rows = []
    for system in RECIPE["systems"]:
        for lr in RECIPE["rates"]:
            scores = [accuracy(train(system, k, task=t, lr=lr)[0], t) for k, t in enumerate(tasks)]
            row = {"kind": "rate", "seed": RECIPE["seeds"][0], "system": system, "lr": lr}
            rows.append(row | {"validation_accuracy": round(sum(scores) / len(scores), 4)})
    return rows


def _point(system: str, seed: int) -> dict[str, Any]:
    task = graphs.karate()
    untrained = start(system, seed)
    model, _ = train(system, seed)
    guesses = logits(model, task).argmax(-1)
    labels = to_device(with_loops(task))
    with torch.no_grad():
        left = loss(model, labels).item()
    return {
        "kind": "point", "seed": seed, "system": system, "lr": RECIPE["lr"][system],
        "accuracy": round(accuracy(model, task), 4),
        "loss": float(f"{left:.3g}"),
        "apart_start": float(f"{apart(untrained, task):.3g}"),
        "apart": float(f"{apart(model, task):.3g}"),
        "wrong": (guesses != task.y).nonzero().flatten().tolist(),
        "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip
