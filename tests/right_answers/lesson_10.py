"""Right answers to the exercises of lesson 10, in many spellings; wrong ones to the open question."""

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.lesson_10 import (
    _by_degree,
    _known,
    _linked,
    _log_of_weights,
    _messages_by_table,
    _near,
    _node_by_node,
    _segments,
    _summed,
)
from lesson_lib.masks import window


def _messages_by_loop(value: Tensor, weights: Tensor, edge_index: Tensor) -> Tensor:
    output = torch.zeros_like(value)
    for edge in range(edge_index.shape[1]):
        j, i = edge_index[0, edge], edge_index[1, edge]
        output[i] += weights[edge] * value[j]
    return output


def _renormalised(scores: Tensor, knows: Tensor) -> Tensor:
    weights = scores.softmax(-1) * knows
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)


def _added_minus_inf(scores: Tensor, knows: Tensor) -> Tensor:
    return scores + torch.zeros_like(scores).masked_fill(knows.logical_not(), -torch.inf)


def _by_offsets(n: int, radius: int) -> Tensor:
    """Self-loops, then for each distance the edges there and back: another order."""
    place = torch.arange(n)
    parts = [torch.stack([place, place])]
    for far in range(1, min(radius, n - 1) + 1):
        parts += [torch.stack([place[:-far], place[far:]]), torch.stack([place[far:], place[:-far]])]
    return torch.cat(parts, 1)


def _by_logsumexp(scores: Tensor, edge_index: Tensor, n: int) -> Tensor:
    order = edge_index[1].argsort(stable=True)
    sizes = edge_index[1].bincount(minlength=n).tolist()
    parts = [part.log_softmax(0).exp() for part in scores[order].split(sizes)]
    return torch.cat(parts)[order.argsort()]


RIGHT = {
    "sum_of_messages": (_summed(), _messages_by_loop, _messages_by_table),
    "attend_to_known": (
        _known(),
        _known(hidden=_added_minus_inf),
        _known(hidden=lambda scores, knows: scores, weights=_renormalised),
        lambda query, key, value, knows: attend(query, key, value, mask=knows).output,
    ),
    "path_edges": (
        _linked(_near),
        _by_offsets,
        lambda n, radius: torch.stack(torch.where(window(n, radius))),
    ),
    "softmax_over_edges": (_segments(), _node_by_node, _by_logsumexp),
    "gcn_scores": (
        _by_degree(lambda d_j, d_i: -0.5 * d_j.log()),
        _by_degree(lambda d_j, d_i: -0.5 * (d_i.log() + d_j.log())),
        _log_of_weights,
        _by_degree(lambda d_j, d_i: 3 * d_i - d_j.sqrt().log()),
    ),
    "three_neighbours": (
        16,
        "96 / 6",
        "60/6 + 2*12/6 + 3*4/6",
        "(exp(0)*60 + exp(ln(2))*12 + exp(ln(3))*4) / (exp(0) + 2 + 3)",
    ),
    "no_edges_at_all": ("c", " (C)"),
    "why_edges_mislead": (
        (
            "The output is a convex combination of neighbours, half of which are of the other class, so it"
            " looks the same for both classes whatever the weights are. A residual connection brings the"
            " node's own features back."
        ),
        (
            "Weights that are positive and sum to one can only average. The neighbours are drawn by lot, so"
            " every average is a blur of the two classes; adding self-loops or concatenating the node's"
            " features lets it stay what it is."
        ),
        (
            "GAT smooths over neighbours that have nothing to do with the node's class. The MLP reads the"
            " node itself, and the layer throws that away; keep it beside the neighbours' mean."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "why_edges_mislead": (
        "GAT would have to learn negative weights for the other class.",
        "All neighbours are of the other class, so the node takes on the look of that.",
        "The attention weights overfit since there are many of them.",
        "With more layers it would find the right nodes further away.",
        "It should have more heads, one for each class.",
        "The MLP sees all nodes at once.",
        "One should mask the edges to nodes of the other class.",
    ),
}
