"""The chapter of each function of the standard library: words alone against networks that hear neighbours.

Each seed has a split of its own, and all kinds stand on it: `library.split`, where no family of modules is
on two sides. The graph is as it is, or a `share` of its edges is shuffled. All edges get self-loops. The
score is `balanced_accuracy`; training ends once it has not risen on VALIDATION for `patience` reports, and
the best weights are kept. The rate of each kind is its best of `rates` on VALIDATION with the first seed (of
equals the nearest to 1e-2). "GAT of torch_geometric" is its GATConv, begun with the weights of our GAT; "GAT
beside own words" adds a matrix for the node itself to each layer of GAT. Parts:

    rate     validation score with each rate
    point    test score of each kind on each graph; `same`, `other`, `own`: the first layer's weight over an
             even one, on edges from the node's own chapter, from another, and on itself (nodes with three
             edges or more)
    by lot   the same graph, nodes dealt to the split one by one
"""

from typing import Any

import torch
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.chapters.c10_graph_attention import library
from lesson_lib.chapters.c10_graph_attention.real_graph import (
    LAYERS,
    Alone,
    Attentive,
    ByDots,
    Make,
    Reader,
    balanced_accuracy,
    balanced_loss,
)
from lesson_lib.device import to_device
from lesson_lib.graphs import self_loops
from lesson_lib.training import History, fit

PEER, BESIDE = "GAT of torch_geometric", "GAT beside own words"
KINDS = (*LAYERS, PEER, BESIDE)
RECIPE = {
    "kinds": [*KINDS],
    "shares": [0.0, 0.25, 0.5, 0.75, 1.0],
    "by_lot": ["words alone", "GCN", "GAT"],
    "steps": 200,
    "every": 5,
    "patience": 6,
    "rates": [3e-3, 1e-2, 3e-2],
    "lr": {
        "words alone": 1e-2,
        "GCN": 3e-2,
        "GAT": 3e-2,
        "GATv2": 3e-3,
        "dot products": 1e-2,
        PEER: 3e-2,
        BESIDE: 1e-2,
    },
    "seeds": [0, 1, 2],
}


class GatPlusSelf(nn.Module):
    """A layer of GAT, and a matrix for the node itself beside it."""

    def __init__(self, d_in: int, d_head: int, n_heads: int) -> None:
        super().__init__()
        self.around, self.own = Attentive(d_in, d_head, n_heads), Alone(d_in, d_head, n_heads)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.around(x, edges) + self.own(x, edges)


def start(kind: str, seed: int = 0) -> Reader:
    """The untrained network that `train` begins with, on the lessons' device. Raises ValueError for another
    kind."""
    require.one_of(KINDS, kind=kind)
    graph = library.load()
    sizes = len(graph.words), len(graph.chapters)
    torch.manual_seed(seed)
    with torch.device("cpu"):
        if kind == PEER:
            model = _peer(Reader(Attentive, *sizes), sizes)
        else:
            layers: dict[str, Make] = LAYERS | {BESIDE: GatPlusSelf}
            model = Reader(layers[kind], *sizes)
    return to_device(model)


def _peer(ours: Reader, sizes: tuple[int, int]) -> Reader:
    """The same network of torch_geometric's layers, with the same weights."""
    from torch_geometric.nn import GATConv

    theirs = Reader(
        lambda d_in, d_head, n_heads: GATConv(d_in, d_head, n_heads, add_self_loops=False), *sizes
    )
    with torch.no_grad():
        for mine, other in ((ours.first.layer, theirs.first), (ours.last.layer, theirs.last)):
            other.lin.weight.copy_(mine.project.weight)
            other.att_src.copy_(mine.score.a_key[None])
            other.att_dst.copy_(mine.score.a_query[None])
            other.bias.copy_(mine.bias)
    return theirs


def train(
    kind: str,
    parts: dict[str, Tensor],
    edge_index: Tensor,
    seed: int = 0,
    *,
    lr: float | None = None,
) -> tuple[Reader, History]:
    """Train a network on the training nodes of a split; `edge_index` without self-loops."""
    graph, model = library.load(), start(kind, seed)
    parts, y = to_device(parts), to_device(graph.y)
    batch = graph.x, self_loops(edge_index, len(graph.y))
    here = to_device(batch)
    history = fit(
        model, lambda generator: batch,
        lambda model, batch: balanced_loss(model(*batch), y, parts["training"]),
        steps=RECIPE["steps"], lr=lr or RECIPE["lr"][kind], schedule="constant", every=RECIPE["every"],
        validate=lambda model: balanced_accuracy(model(*here), y, parts["validation"]),
        patience=RECIPE["patience"], seed_number=seed, name=kind,
    )  # fmt: skip
    return model, history


@torch.no_grad()
def score(model: nn.Module, edge_index: Tensor, part: Tensor) -> float:
    """Balanced accuracy on the nodes of a part."""
    graph = library.load()
    logits = model(*to_device((graph.x, self_loops(edge_index, len(graph.y))))).cpu()
    return balanced_accuracy(logits, graph.y, part)


@torch.no_grad()
def where_weights_lie(model: Reader, edge_index: Tensor) -> dict[str, float]:
    """The first layer's weights, mean over heads, times the number of edges that lead to the node: 1 is even.
    By chapter of the source, and for the node itself; nodes with three edges or more besides their own."""
    graph = library.load()
    edges = self_loops(edge_index, len(graph.y))
    model(*to_device((graph.x, edges)))
    source, target = edges
    degree = torch.bincount(target, minlength=len(graph.y))
    relative = model.first.weights.cpu().mean(1) * degree[target]
    own, many = source == target, degree[target] > 3
    same = graph.y[source] == graph.y[target]
    kinds = {"same": same & ~own, "other": ~same, "own": own}
    return {name: round(relative[kind & many].mean().item(), 3) for name, kind in kinds.items()}


def run(seed: int) -> list[dict[str, Any]]:
    """All rows of a seed; those of part "rate" with the first seed only."""
    graph = library.load()
    parts, by_lot = library.split(graph, seed), library.split_by_lot(graph, seed)
    rows = []
    if seed == RECIPE["seeds"][0]:
        for kind in RECIPE["kinds"]:
            for lr in RECIPE["rates"]:
                history = train(kind, parts, graph.edge_index, seed, lr=lr)[1]
                row = {"part": "rate", "seed": seed, "kind": kind, "lr": lr}
                rows.append(row | {"score_validation": round(max(history.column("score")), 4)})
    for share in RECIPE["shares"]:
        edges = library.shuffled(graph.edge_index, share, seed) if share else graph.edge_index
        for kind in RECIPE["kinds"]:
            model, history = train(kind, parts, edges, seed)
            row = {"part": "point", "seed": seed, "kind": kind, "share": share}
            row |= {
                "score": round(score(model, edges, parts["test"]), 4),
                "score_training": round(score(model, edges, parts["training"]), 4),
                "steps": history.rows[-1]["step"], "cpu_s": round(history.cpu_s, 2),
                "parameters": sum(p.numel() for p in model.parameters()),
            }  # fmt: skip
            if isinstance(model.first, (Attentive, ByDots)):
                row |= where_weights_lie(model, edges)
            rows.append(row)
    for kind in RECIPE["by_lot"]:
        model, _ = train(kind, by_lot, graph.edge_index, seed)
        row = {"part": "by lot", "seed": seed, "kind": kind}
        rows.append(row | {"score": round(score(model, graph.edge_index, by_lot["test"]), 4)})
    return rows
