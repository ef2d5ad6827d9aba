"""A network that finds the chapter of a function from its docstring's words and from those of its neighbours,
with any layer that takes features and edges."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.graphs import GraphAttention, attend_edges

Make = Callable[[int, int, int], nn.Module]  # d_in, width of a head, heads -> layer(x, edges)


class Reader(nn.Module):
    """Logits (n, n_classes) of all nodes, by two layers of the kind that `make` makes: 4 heads of width 8,
    then one as wide as there are classes. Edges are used as they are: add self-loops."""

    def __init__(self, make: Make, d_in: int, n_classes: int) -> None:
        super().__init__()
        self.first, self.last = make(d_in, 8, 4), make(32, n_classes, 1)

    def forward(
        self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 edges"]
    ) -> Float[Tensor, "n classes"]:
        hidden = F.elu(self.first(x, edges))
        return self.last(F.dropout(hidden, 0.5, self.training), edges)


class Alone(nn.Module):
    """W x + b: a node hears itself, whatever the edges are."""

    def __init__(self, d_in: int, d_head: int, n_heads: int) -> None:
        super().__init__()
        self.project = nn.Linear(d_in, n_heads * d_head)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 edges"]) -> Float[Tensor, "n d_out"]:
        return self.project(x)


class Fixed(Alone):
    """GCN: the same numbers, summed over the edges with weights 1 / sqrt(degree of i · degree of j).

    Source: Kipf & Welling 2016, arXiv:1609.02907.
    """

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 edges"]) -> Float[Tensor, "n d_out"]:
        source, target = edges
        z = x @ self.project.weight.T
        degree = z.new_zeros(len(x)).index_add(0, target, z.new_ones(len(target)))
        weights = (degree[source] * degree[target]).clamp(min=1).rsqrt()[:, None]
        return torch.zeros_like(z).index_add(0, target, z[source] * weights) + self.project.bias


class Attentive(nn.Module):
    """`GraphAttention`, its output alone; `weights` keeps those of the last call, (edges, h)."""

    def __init__(self, d_in: int, d_head: int, n_heads: int, *, dynamic: bool = False) -> None:
        super().__init__()
        self.layer = GraphAttention(d_in, d_head, n_heads, dynamic=dynamic)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 edges"]) -> Float[Tensor, "n d_out"]:
        output, self.weights = self.layer(x, edges)
        return output


class ByDots(Alone):
    """The value z = W x is mixed with weights from scaled dot products of queries and keys, made from z: the
    layer of the core parts, along edges."""

    def __init__(self, d_in: int, d_head: int, n_heads: int) -> None:
        super().__init__(d_in, d_head, n_heads)
        d = n_heads * d_head
        self.n_heads, self.to_query, self.to_key = n_heads, nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 edges"]) -> Float[Tensor, "n d_out"]:
        z = self.project(x)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)) for part in (self.to_query(z), self.to_key(z), z))
        output, self.weights = attend_edges(q, k, v, edges)
        return output.flatten(1)


LAYERS: dict[str, Make] = {
    "words alone": Alone,
    "GCN": Fixed,
    "GAT": Attentive,
    "GATv2": lambda d_in, d_head, n_heads: Attentive(d_in, d_head, n_heads, dynamic=True),
    "dot products": ByDots,
}


def reader(kind: str, d_in: int, n_classes: int) -> Reader:
    """The untrained network of a kind. Raises ValueError for one that is none of LAYERS."""
    require.one_of(LAYERS, kind=kind)
    return Reader(LAYERS[kind], d_in, n_classes)


def balanced_loss(
    logits: Float[Tensor, "n classes"], y: Int[Tensor, " n"], part: Bool[Tensor, " n"]
) -> Tensor:
    """Cross-entropy of the nodes of a part, each class with the same say."""
    size = torch.bincount(y[part], minlength=logits.shape[-1]).clamp(min=1)
    return F.cross_entropy(logits[part], y[part], weight=1 / size.to(logits.dtype))


def balanced_accuracy(
    logits: Float[Tensor, "n classes"], y: Int[Tensor, " n"], part: Bool[Tensor, " n"]
) -> float:
    """The share of right answers in each class of a part, averaged over these classes."""
    right = (logits.argmax(-1) == y)[part].double()
    size = torch.bincount(y[part], minlength=logits.shape[-1])
    shares = (
        torch.zeros(len(size), dtype=right.dtype, device=right.device).index_add(0, y[part], right) / size
    )
    return shares[size > 0].mean().item()
