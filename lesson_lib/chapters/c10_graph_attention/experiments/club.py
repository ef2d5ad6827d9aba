"""Classes of nodes, most of them unknown: who looks at whom, and does it help? All kinds of `nodes`
are trained alike, on whole graphs.

The tasks are a club with its two leaders known, the same club with one other member known of each side (drawn
anew for each seed), and two generated graphs, drawn anew for each seed. Steps are the same for all kinds; the
rate is each kind's best of `rates` on VALIDATION, of equals the nearest to 1e-2. Validation graphs are other
graphs. The club has no member to spare, so its rates are chosen on generated clubs (`stand_in`): two blocks
of 17 with as many edges, as many of them within a side, and the best connected member of each side known.
Parts:

    rate     accuracy on VALIDATION graphs with each rate: how the rates were chosen
    point    each kind on each task: accuracy on nodes that were not known, and where the weights of the first
             layer lie, before and after training
    even     GAT whose scores stay 0, so that a node takes equally from all its neighbours and itself: what do
             learnt weights add?
    within   on `opposites` over the share of edges inside a class, for two and for four classes

The networks of the paper have dropout and weight decay, these have none.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib.chapters.c10_graph_attention import graphs
from lesson_lib.chapters.c10_graph_attention.graphs import NodeTask
from lesson_lib.chapters.c10_graph_attention.nodes import KINDS, NodeClassifier
from lesson_lib.device import device, to_device
from lesson_lib.graphs import GraphAttention, self_loops
from lesson_lib.masks import from_edges
from lesson_lib.training import History, fit

CLUB_RATES = {
    "GAT": 1e-3,
    "GATv2": 1e-3,
    "dot products": 1e-3,
    "GCN": 1e-2,
    "full attention": 1e-2,
    "scores set to 0": 3e-2,
    "MLP": 1e-1,
}
RECIPE = {
    "d_hidden": 8,
    "n_heads": 4,
    "steps": 200,
    "rates": [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
    "lr": {
        "club": CLUB_RATES,
        "club, others known": CLUB_RATES,
        "blocks": {
            "GAT": 1e-3,
            "GATv2": 1e-3,
            "dot products": 1e-3,
            "GCN": 1e-3,
            "full attention": 1e-2,
            "scores set to 0": 1e-2,
            "MLP": 3e-4,
        },
        "opposites": {
            "GAT": 1e-3,
            "GATv2": 1e-3,
            "dot products": 1e-3,
            "GCN": 3e-3,
            "full attention": 3e-2,
            "scores set to 0": 3e-2,
            "MLP": 1e-3,
        },
    },
    "pilot": {"club": 5, "blocks": 3, "opposites": 3},  # validation graphs, one start each
    "stand_in": {"n": 34, "n_classes": 2, "degree": 4.6, "within": 0.86, "labelled": 1},
    "pilot_within": [0.1, 0.5, 0.9],  # of the validation graphs of `opposites`
    "within": {"2": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], "4": [0.1, 0.3, 0.5, 0.7, 0.9]},
    "within_kinds": ["GAT", "GCN", "MLP"],
    "within_seeds": [0, 1, 2],
    "seeds": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
}
VALIDATION = 10_000  # added to a seed for validation graphs


def others_known(seed: int = 0) -> NodeTask:
    """The club with one member known of each side, drawn at random, and none of them a leader."""
    generator = torch.Generator("cpu").manual_seed(seed)
    club, known = graphs.karate(), []
    for side, leader in enumerate(graphs.LEADERS):
        members = [i for i in (club.y == side).nonzero()[:, 0].tolist() if i != leader]
        known.append(members[int(torch.randint(len(members), (), generator=generator, device="cpu"))])
    return graphs.karate(known)._replace(name="club, others known")


def stand_in(seed: int = 0) -> NodeTask:
    """A generated club, to choose rates on: known is the member of each side who has most edges."""
    task = graphs.blocks(seed, **RECIPE["stand_in"])
    degree = torch.bincount(task.edge_index[0], minlength=len(task.y))
    known = [torch.where(task.y == side, degree, -1).argmax() for side in range(len(task.classes))]
    return task._replace(name="club", known=torch.stack(known))


TASKS: dict[str, Callable[[int], NodeTask]] = {
    "club": lambda seed: graphs.karate(),
    "club, others known": others_known,
    "blocks": graphs.blocks,
    "opposites": graphs.opposites,
}


def validation(name: str) -> list[NodeTask]:
    """The graphs on which the rates of a task are chosen: none of them is a task's own."""
    seeds = range(VALIDATION, VALIDATION + RECIPE["pilot"][name])
    if name == "opposites":
        return [
            graphs.opposites(s, within=share) for s, share in zip(seeds, RECIPE["pilot_within"], strict=True)
        ]
    return [stand_in(s) if name == "club" else graphs.blocks(s) for s in seeds]


def start(kind: str, task: NodeTask, seed: int = 0) -> NodeClassifier:
    """The untrained model that `train` begins with, on the lessons' device. Raises ValueError for a kind that
    is none of KINDS."""
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = NodeClassifier(
            kind, task.x.shape[1], len(task.classes), d_hidden=RECIPE["d_hidden"], n_heads=RECIPE["n_heads"]
        )
    return to_device(model).eval()


def train(
    kind: str, task: NodeTask, seed: int = 0, *, lr: float | None = None, even: bool = False
) -> tuple[NodeClassifier, History]:
    """Train one of KINDS on the known nodes of a task; the rate is RECIPE's for a task of that name, or `lr`.

    `even` holds the scores of a GAT at 0. Raises ValueError for another kind, and for a task without a rate.
    """
    model = start(kind, task, seed)
    if lr is None and task.name not in RECIPE["lr"]:
        raise ValueError(
            f"there is a rate for tasks named {', '.join(RECIPE['lr'])}, not for {task.name!r}; give lr=...,"
            " say 1e-2"
        )
    if even:
        _hold_even(model)
    history = fit(
        model, lambda generator: task, loss, steps=RECIPE["steps"], lr=lr or RECIPE["lr"][task.name][kind],
        seed_number=seed, name=f"{kind}, {task.name}",
    )  # fmt: skip
    return model, history


def loss(model: nn.Module, task: NodeTask) -> Tensor:
    """Mean cross-entropy of the known nodes. The whole graph is read, and the other nodes' classes
    are not."""
    return F.cross_entropy(model(task.x, task.edge_index)[task.known], task.y[task.known])


@torch.no_grad()
def accuracy(model: nn.Module, task: NodeTask) -> float:
    """The share of right classes among the nodes that were not known."""
    task = to_device(task)
    asked = torch.ones(len(task.y), dtype=torch.bool, device=device())
    asked[task.known] = False
    right = model(task.x, task.edge_index).argmax(-1) == task.y
    return right[asked].double().mean().item()


def weight_on_strangers(model: nn.Module, task: NodeTask) -> float:
    """The share of all weight, in the first layer, that lies on pairs of nodes without an edge; a node is no
    stranger to itself."""
    weights, joined = _looked(model, task)
    return (weights * ~joined).sum().item() / weights.sum().item()


def evenness(model: nn.Module, task: NodeTask) -> float:
    """How evenly weights are spread over those that a node may look at: entropy over its highest value, 1
    where all are equal.

    The mean over heads of the first layer and over nodes; those that see but one node have no choice and are
    left out.
    Raises ValueError where none has.
    """
    weights, joined = _looked(model, task)
    strangers = bool((weights * ~joined).any())
    choices = torch.full((len(task.y),), len(task.y), device=device()) if strangers else joined.sum(-1)
    if model.kind == "MLP" or not (choices > 1).any():
        raise ValueError("no node has a choice, so weights are neither even nor uneven; join some nodes")
    weights = weights / weights.sum(-1, keepdim=True)
    entropy = torch.special.entr(weights).sum(-1)
    return (entropy / choices.log())[:, choices > 1].mean().item()


def weight_on_own_class(model: nn.Module, task: NodeTask) -> float:
    """The share of weight, in the first layer, on nodes of the own class, of all that does not stay with the
    node itself.

    Raises ValueError where all of it does.
    """
    weights, _ = _looked(model, task)
    y = to_device(task.y)
    weights = weights * ~torch.eye(len(y), dtype=torch.bool, device=device())
    if not weights.any():
        raise ValueError("no node looks at another, so no weight lies on other nodes; join some nodes")
    return (weights * (y[:, None] == y)).sum().item() / weights.sum().item()


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of part "rate" with the first seed only."""
    rows = []
    if seed == RECIPE["seeds"][0]:
        rows += [
            pilot(name, kind, lr) for name in RECIPE["pilot"] for kind in KINDS for lr in RECIPE["rates"]
        ]
    for make in TASKS.values():
        rows += [point(make(seed), kind, seed) for kind in KINDS]
        rows.append(point(make(seed), "GAT", seed, even=True))
    if seed in RECIPE["within_seeds"]:
        for n_classes, shares in RECIPE["within"].items():
            rows += [
                within(kind, share, int(n_classes), seed)
                for share in shares
                for kind in RECIPE["within_kinds"]
            ]
    return rows


def pilot(name: str, kind: str, lr: float) -> dict[str, Any]:
    """A row of part "rate": the mean over the validation graphs of a task."""
    scores, cpu_s = [], 0.0
    for number, task in enumerate(validation(name)):
        model, history = train(kind, task, number, lr=lr)
        scores.append(accuracy(model, task))
        cpu_s += history.cpu_s
    return {
        "part": "rate", "seed": RECIPE["seeds"][0], "task": name, "kind": kind, "lr": lr,
        "accuracy_validation": round(sum(scores) / len(scores), 4), "cpu_s": round(cpu_s, 2),
    }  # fmt: skip


def point(task: NodeTask, kind: str, seed: int, *, even: bool = False) -> dict[str, Any]:
    """A row of part "point", or "even": what was found, and where the first layer's weights lie, before
    training and after it."""
    model, history = train(kind, task, seed, even=even)
    row = {
        "part": "even" if even else "point", "seed": seed, "task": task.name, "kind": kind,
        "accuracy": round(accuracy(model, task), 4), "strangers": round(weight_on_strangers(model, task), 4),
        "lr": RECIPE["lr"][task.name][kind], "cpu_s": round(history.cpu_s, 2),
        "parameters": sum(p.numel() for p in model.parameters()), "loss": round(history.rows[-1]["loss"], 4),
    }  # fmt: skip
    if kind in ("MLP", "GCN") or even:
        return row
    begun = start(kind, task, seed)
    return row | {
        "strangers_start": round(weight_on_strangers(begun, task), 4),
        "evenness_start": round(evenness(begun, task), 4), "evenness": round(evenness(model, task), 4),
        "own_start": round(weight_on_own_class(begun, task), 4),
        "own": round(weight_on_own_class(model, task), 4),
    }  # fmt: skip


def within(kind: str, share: float, n_classes: int, seed: int) -> dict[str, Any]:
    """A row of part "within"."""
    task = graphs.opposites(seed, n_classes=n_classes, within=share)
    model, history = train(kind, task, seed)
    return {
        "part": "within", "seed": seed, "task": task.name, "kind": kind, "within": share,
        "n_classes": n_classes,
        "accuracy": round(accuracy(model, task), 4), "lr": RECIPE["lr"][task.name][kind],
        "cpu_s": round(history.cpu_s, 2),
    }  # fmt: skip


@torch.no_grad()
def _looked(model: nn.Module, task: NodeTask) -> tuple[Tensor, Tensor]:
    """The first layer's weights, and which pairs are joined, each node with itself among them."""
    task = to_device(task)
    n = len(task.y)
    return model.look(task.x, task.edge_index).weights, from_edges(self_loops(task.edge_index, n), n)


def _hold_even(model: NodeClassifier) -> None:
    for layer in (model.first, model.last):
        if not isinstance(layer, GraphAttention) or layer.score.dynamic:
            raise ValueError(f"only the scores of a GAT can be held at 0, got kind {model.kind!r}")
        for vector in (layer.score.a_query, layer.score.a_key):
            nn.init.zeros_(vector)
            vector.requires_grad_(False)
