"""The networks of 10a's evidence: two layers of graph attention, and what they are compared with. All have a
first layer of 4 heads of width 8, ELU, and a second one whose 4 heads are averaged (the GCN has no heads: its
width is 32, then the classes)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib.attention import Attended, attend
from lesson_lib.graphs import GraphAttention
from lesson_lib.masks import from_edges


class TwoLayers(nn.Module):
    """Two layers of graph attention: logits of all nodes."""

    def __init__(self, d_in: int, n_classes: int) -> None:
        super().__init__()
        self.first = GraphAttention(d_in, 8, n_heads=4)
        self.last = GraphAttention(4 * 8, n_classes, n_heads=4)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 e"]) -> Float[Tensor, "n classes"]:
        hidden = F.elu(self.first(x, edges).output)  # 4 heads side by side: (n, 32)
        heads = self.last(hidden, edges).output.unflatten(1, (4, -1))
        return heads.mean(1)  # (n, n_classes)


class Fixed(nn.Module):
    """A layer of a GCN: the sum over edges j -> i of W x_j / sqrt(d_i d_j), and a bias; d counts the edges
    that arrive.

    Source: Kipf & Welling 2016, arXiv:1609.02907.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.project = nn.Linear(d_in, d_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(d_out))
        nn.init.xavier_uniform_(self.project.weight)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 e"]) -> Float[Tensor, "n d_out"]:
        source, target = edges
        z = self.project(x)
        degree = torch.zeros_like(z[:, 0]).index_add(0, target, z.new_ones(len(target)))
        weights = (degree[source] * degree[target]).rsqrt()[:, None]
        return torch.zeros_like(z).index_add(0, target, weights * z[source]) + self.bias


class TwoFixed(nn.Module):
    """A GCN of two layers: logits of all nodes."""

    def __init__(self, d_in: int, n_classes: int) -> None:
        super().__init__()
        self.first, self.last = Fixed(d_in, 32), Fixed(32, n_classes)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 e"]) -> Float[Tensor, "n classes"]:
        return self.last(F.elu(self.first(x, edges)), edges)


class DotProducts(nn.Module):
    """A layer of attention by scaled dot products, its heads side by side: along the edges, or with
    `everybody` over all pairs, whatever the edges. With `residual` a projection of x itself is added."""

    def __init__(self, d_in: int, d_out: int, n_heads: int, *, everybody: bool, residual: bool) -> None:
        super().__init__()
        names = ("query", "key", "value", "own") if residual else ("query", "key", "value")
        self.project = nn.ModuleDict({name: nn.Linear(d_in, n_heads * d_out, bias=False) for name in names})
        self.bias = nn.Parameter(torch.zeros(n_heads * d_out))
        self.n_heads, self.everybody = n_heads, everybody
        for projection in self.project.values():
            nn.init.xavier_uniform_(projection.weight)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 e"]) -> Float[Tensor, "n joined"]:
        mixed = self.look(x, edges).output.transpose(0, 1).flatten(1) + self.bias
        return mixed + self.project["own"](x) if "own" in self.project else mixed

    def look(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 e"]) -> Attended:
        """The mixed values (h, n, d_out), and the weights (h, n, n)."""
        q, k, v = (
            self.project[name](x).unflatten(1, (self.n_heads, -1)).transpose(0, 1)
            for name in ("query", "key", "value")
        )
        return attend(q, k, v, mask=None if self.everybody else from_edges(edges, len(x)))


class TwoDots(nn.Module):
    """Two layers of attention by dot products: logits of all nodes."""

    def __init__(self, d_in: int, n_classes: int, *, everybody: bool, residual: bool = False) -> None:
        super().__init__()
        self.first = DotProducts(d_in, 8, 4, everybody=everybody, residual=residual)
        self.last = DotProducts(32, n_classes, 4, everybody=everybody, residual=residual)

    def forward(self, x: Float[Tensor, "n d_in"], edges: Int[Tensor, "2 e"]) -> Float[Tensor, "n classes"]:
        return self.last(F.elu(self.first(x, edges)), edges).unflatten(1, (4, -1)).mean(1)
