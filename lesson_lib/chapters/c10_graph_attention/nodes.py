"""Networks that find a node's class: all have two layers of equal widths, and differ only in whom a node
looks at, and how.

    GAT, GATv2           graph attention along the edges, `graphs.GraphAttention`
    dot products         scaled dot products of queries and keys, along the edges
    full attention       the same for all pairs of nodes: the graph is not asked
    scores set to 0      the same, and the scores of pairs without an edge are multiplied by 0 before the
                         softmax
    GCN                  along the edges with FIXED weights, 1 / sqrt(degree of i · degree of j)
    MLP                  each node looks at itself alone

    hidden = ELU(layer(x)),  logits = layer(hidden)

The first layer has n_heads heads of width d_hidden, side by side, the last one head as wide as there are
classes. Each node sees itself too: self-loops are added here, with `self_loops`, and count as edges.
Departures from the papers: no dropout, no weight decay, no scaling of features.
Source: Veličković et al. 2017, arXiv:1710.10903; Brody, Alon & Yahav 2021, arXiv:2105.14491; Kipf & Welling
2016, arXiv:1609.02907 (GCN).
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import attend
from lesson_lib.graphs import GraphAttention, attend_edges, self_loops
from lesson_lib.masks import check_edges, from_edges
from lesson_lib.scores import scaled_dot

KINDS = ("GAT", "GATv2", "dot products", "GCN", "full attention", "scores set to 0", "MLP")


class NodeOutput(NamedTuple):
    """Logits, and the first layer's table of weights: weights[h, i, j] is what node i takes from node j."""

    logits: Float[Tensor, "n classes"]
    weights: Float[Tensor, "h n n"]


class NodeClassifier(nn.Module):
    """Logits (n, n_classes) of the nodes' classes. Raises ValueError for a kind that is none of KINDS, and
    for widths less than 1."""

    def __init__(self, kind: str, d_in: int, n_classes: int, *, d_hidden: int = 8, n_heads: int = 4) -> None:
        super().__init__()
        require.one_of(KINDS, kind=kind)
        require.whole(d_in=d_in, n_classes=n_classes, d_hidden=d_hidden, n_heads=n_heads)
        self.kind, self.d_in = kind, d_in
        self.first = _layer(kind, d_in, d_hidden, n_heads)
        self.last = _layer(kind, n_heads * d_hidden, n_classes, 1)

    def forward(
        self, x: Float[Tensor, "n d_in"], edge_index: Int[Tensor, "2 edges"]
    ) -> Float[Tensor, "n classes"]:
        """Logits of all nodes at once. Raises ValueError or TypeError where x or edge_index does not fit."""
        return self._run(x, self._with_loops(x, edge_index))[0]

    def look(self, x: Float[Tensor, "n d_in"], edge_index: Int[Tensor, "2 edges"]) -> NodeOutput:
        """The same logits, and whom each node looks at in the first layer, as a table of all pairs (h = 1 for
        GCN and MLP)."""
        edges = self._with_loops(x, edge_index)
        logits, weights = self._run(x, edges)
        if weights.ndim == 2:  # a weight for each edge and head
            table = weights.new_zeros(weights.shape[1], len(x), len(x))
            table[:, edges[1], edges[0]] = weights.T
            weights = table
        return NodeOutput(logits, weights)

    def _run(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        hidden, weights = self.first(x, edges)
        return self.last(F.elu(hidden), edges)[0], weights

    def _with_loops(self, x: Any, edge_index: Any) -> Tensor:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            got = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"x must be a float tensor of features (n, {self.d_in}), got {got}")
        if x.ndim != 2 or x.shape[1] != self.d_in:
            raise ValueError(
                f"x must have shape (n, {self.d_in}), one row for each node, got {tuple(x.shape)}"
            )
        check_edges(edge_index, len(x))
        if self.kind == "MLP":
            edge_index = edge_index[:, :0]
        return self_loops(edge_index, len(x))


class _DotProducts(nn.Module):
    """Attention by scaled dot products, of edges alone, of all pairs, or of all pairs with the others' scores
    set to 0."""

    def __init__(self, d_in: int, d_out: int, n_heads: int, kind: str) -> None:
        super().__init__()
        self.kind, self.n_heads = kind, n_heads
        self.w_query, self.w_key, self.w_value = (
            nn.Linear(d_in, n_heads * d_out, bias=False) for _ in range(3)
        )
        self.bias = nn.Parameter(torch.zeros(n_heads * d_out))
        for projection in (self.w_query, self.w_key, self.w_value):
            nn.init.xavier_uniform_(projection.weight)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = (w(x).unflatten(-1, (self.n_heads, -1)) for w in (self.w_query, self.w_key, self.w_value))
        if self.kind == "dot products":
            output, weights = attend_edges(q, k, v, edges)
            return output.flatten(1) + self.bias, weights
        score = scaled_dot
        if self.kind == "scores set to 0":
            joined = from_edges(edges, len(x))

            def score(query: Tensor, key: Tensor) -> Tensor:
                return scaled_dot(query, key) * joined

        output, weights = attend(*(t.transpose(0, 1) for t in (q, k, v)), score=score)
        return output.transpose(0, 1).flatten(1) + self.bias, weights


class _Fixed(nn.Module):
    """A linear layer and a sum over edges, weighted by degrees: 1 / sqrt(degree of i · degree of j). With
    self-loops alone all weights are 1."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.project = nn.Linear(d_in, d_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(d_out))
        nn.init.xavier_uniform_(self.project.weight)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        source, target = edges
        z = self.project(x)
        degree = z.new_zeros(len(x)).index_add(0, target, z.new_ones(len(target)))
        weights = (degree[source] * degree[target]).rsqrt()[:, None]
        return torch.zeros_like(z).index_add(0, target, z[source] * weights) + self.bias, weights


def _layer(kind: str, d_in: int, d_out: int, n_heads: int) -> nn.Module:
    if kind in ("GAT", "GATv2"):
        return GraphAttention(d_in, d_out, n_heads, dynamic=kind == "GATv2")
    if kind in ("GCN", "MLP"):
        return _Fixed(d_in, n_heads * d_out)
    return _DotProducts(d_in, d_out, n_heads, kind)
