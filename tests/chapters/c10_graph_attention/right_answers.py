"""Right answers to the exercises of lesson 10, in many spellings; wrong ones to the open question."""

from collections.abc import Callable

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.graphs import attend_edges
from lesson_lib.masks import window
from tests import code_of

asked = code_of("c10_graph_attention")


def _by_degree(
    score: Callable[[Tensor, Tensor], Tensor], degree: Callable[[Tensor], Tensor] = lambda d: d
) -> Callable[[Tensor, int], Tensor]:
    """Scores `score(d of the source, d of the target)`."""

    def scores(edge_index: Tensor, n: int) -> Tensor:
        d = degree(edge_index[1].bincount(minlength=n).float())
        return score(d[edge_index[0]], d[edge_index[1]])

    return scores


def _near(i: int, j: int, n: int, radius: int) -> bool:
    return abs(i - j) <= radius


def _linked(who: Callable[[int, int, int, int], bool]) -> Callable[[int, int], Tensor]:
    """Edges j -> i, where `who(i, j, n, radius)` says so."""

    def edges(n: int, radius: int) -> Tensor:
        pairs = [(j, i) for i in range(n) for j in range(n) if who(i, j, n, radius)]
        return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T

    return edges


def _softmax(scores: Tensor, knows: Tensor) -> Tensor:
    return scores.softmax(-1).nan_to_num(0.0)


def _known(
    *,
    scale: Callable[[int], float] = lambda d: d**-0.5,
    hidden: Callable[[Tensor, Tensor], Tensor] = lambda scores, knows: scores.masked_fill(~knows, -torch.inf),
    weights: Callable[[Tensor, Tensor], Tensor] = _softmax,
) -> Callable[..., Tensor]:
    """The layer, with any of its parts replaced."""

    def layer(query: Tensor, key: Tensor, value: Tensor, knows: Tensor) -> Tensor:
        scores = query @ key.mT * scale(key.shape[-1])
        return weights(hidden(scores, knows), knows) @ value

    return layer


def _summed(
    *,
    read: int = 0,
    written: int = 1,
    message: Callable[[Tensor, Tensor], Tensor] = lambda w, v: w[:, None] * v,
    then: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda output, value, target: output,
) -> Callable[..., Tensor]:
    """The sum, with any of its parts replaced; `read` and `written` are rows of the edges."""

    def layer(value: Tensor, weights: Tensor, edge_index: Tensor) -> Tensor:
        messages = message(weights, value[edge_index[read]])
        output = torch.zeros_like(value).index_add(0, edge_index[written], messages)
        return then(output, value, edge_index[written])

    return layer


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


def _target_by_target(scores: Tensor, value: Tensor, edge_index: Tensor) -> Tensor:
    """A softmax for each node that hears somebody."""
    made = torch.zeros_like(value)
    for i in edge_index[1].unique().tolist():
        near = edge_index[1] == i
        made[i] = scores[near].softmax(0) @ value[edge_index[0, near]]
    return made


def _divided_last(scores: Tensor, value: Tensor, edge_index: Tensor) -> Tensor:
    """Messages and shares are summed first; the division comes at the end."""
    j, i = edge_index
    counted = torch.cat([value, torch.ones_like(value[:, :1])], 1)
    summed = torch.zeros_like(counted).index_add(0, i, scores.exp()[:, None] * counted[j])
    return summed[:, :-1] / summed[:, -1:].clamp(min=1e-30)


def _with_the_library(scores: Tensor, value: Tensor, edge_index: Tensor) -> Tensor:
    return attend_edges(
        value[:, None],
        value[:, None],
        value[:, None],
        edge_index,
        score=lambda q, k: scores[:, None, None, None],
    ).output[:, 0]


def _bent_by_hand(z: Tensor, a_query: Tensor, a_key: Tensor, edge_index: Tensor) -> Tensor:
    """Edge by edge, LeakyReLU written as a maximum."""
    j, i = edge_index
    summed = (z[i] * a_query).sum(-1) + (z[j] * a_key).sum(-1)
    return torch.maximum(summed, summed / 5)


def _one_product(z: Tensor, a_query: Tensor, a_key: Tensor, edge_index: Tensor) -> Tensor:
    """Both vectors as one, on targets and sources side by side."""
    pairs = torch.cat([z[edge_index[1]], z[edge_index[0]]], 1)
    return torch.nn.functional.leaky_relu(pairs @ torch.cat([a_query, a_key]), negative_slope=0.2)


def _batched_by_loop(n_nodes: Tensor, n_edges: Tensor, edge_index: Tensor) -> Tensor:
    made, before, at = edge_index.clone(), 0, 0
    for n, e in zip(n_nodes.tolist(), n_edges.tolist(), strict=True):
        made[:, at : at + e] += before
        before, at = before + n, at + e
    return made


def _pooled_by_table(x: Tensor, graph: Tensor, n_graphs: int) -> Tensor:
    table = (graph == torch.arange(n_graphs, device=graph.device)[:, None]).to(x.dtype)
    return table / table.sum(-1, keepdim=True) @ x


def _with_a_slope(z: Tensor, a_query: Tensor, a_key: Tensor, edge_index: Tensor) -> Tensor:
    """Both numbers of each node in one product; the slope where they are negative."""
    asks, answers = (z @ torch.stack([a_query, a_key], 1)).unbind(1)
    scores = asks.index_select(0, edge_index[1]) + answers.index_select(0, edge_index[0])
    return scores * torch.where(scores < 0, 0.2, 1.0)


def _batched_by_place(n_nodes: Tensor, n_edges: Tensor, edge_index: Tensor) -> Tensor:
    """The graph of each edge is found by how many edges are before it."""
    graph = torch.bucketize(torch.arange(edge_index.shape[1]), n_edges.cumsum(0), right=True)
    return edge_index + torch.nn.functional.pad(n_nodes.cumsum(0)[:-1], (1, 0))[graph]


def _batched_by_parts(n_nodes: Tensor, n_edges: Tensor, edge_index: Tensor) -> Tensor:
    parts = edge_index.split(n_edges.tolist(), dim=1)
    return torch.cat([part + n_nodes[:g].sum() for g, part in enumerate(parts)], dim=1)


def _class_by_class(right: Tensor, y: Tensor) -> Tensor:
    found = [right[y == k].double().mean().item() for k in range(int(y.max()) + 1) if (y == k).any()]
    return torch.tensor(sum(found) / len(found))


def _with_weights(right: Tensor, y: Tensor) -> Tensor:
    size = y.bincount()
    return (right / size[y]).sum() / (size > 0).sum()


def _shared_by_table(group: Tensor, training: Tensor, test: Tensor) -> Tensor:
    same = group[test][:, None] == group[training]
    return same.any(1).float().mean()


def _shared_by_mask(group: Tensor, training: Tensor, test: Tensor) -> Tensor:
    trained = torch.zeros(int(group.max()) + 1, dtype=torch.bool)
    trained[group[training]] = True
    return (trained[group] & test).sum() / test.sum()


def _by_counts(right: Tensor, y: Tensor) -> Tensor:
    size, found = y.bincount(), y[right.bool()].bincount(minlength=int(y.max()) + 1)
    return (found[size > 0] / size[size > 0]).mean()


def _shared_one_by_one(group: Tensor, training: Tensor, test: Tensor) -> Tensor:
    known = set(group[training].tolist())
    return torch.tensor([one in known for one in group[test].tolist()]).double().mean()


RIGHT = {
    "class_average": (_class_by_class, _with_weights, _by_counts),
    "leaked": (_shared_by_table, _shared_by_mask, _shared_one_by_one),
    "along_edges": (_target_by_target, _divided_last, _with_the_library),
    "gat_scores": (_bent_by_hand, _one_product, _with_a_slope),
    "sum_of_messages": (_summed(), _messages_by_loop, asked._messages_by_table),
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
    "softmax_over_edges": (asked._segments(), asked._node_by_node, _by_logsumexp),
    "gcn_scores": (
        _by_degree(lambda d_j, d_i: -0.5 * d_j.log()),
        _by_degree(lambda d_j, d_i: -0.5 * (d_i.log() + d_j.log())),
        asked._log_of_weights,
        _by_degree(lambda d_j, d_i: 3 * d_i - d_j.sqrt().log()),
    ),
    "batch_graphs": (_batched_by_place, _batched_by_loop, _batched_by_parts),
    "pool_mean": (
        lambda x, graph, n_graphs: torch.stack([x[graph == g].mean(0) for g in range(n_graphs)]),
        _pooled_by_table,
        lambda x, graph, n_graphs: torch.zeros(n_graphs, x.shape[1]).scatter_reduce(
            0, graph[:, None].expand_as(x), x, "mean", include_self=False
        ),
    ),
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
