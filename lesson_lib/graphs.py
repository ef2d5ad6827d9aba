"""Graph attention: the edges of a graph say who may look at whom.

An edge from j to i lets i look at j. Two forms give the same numbers:

    dense    `attend` with the mask `masks.from_edges`: a table of n x n, most of it hidden
    edges    a score, a weight and a message per edge: time and memory grow with the number of edges

    out_i = sum over edges j -> i of w_ij v_j,    w_ij = exp(e_ij) / sum over edges k -> i of exp(e_ik)

Keep the list of edges unique: it is not checked, and an edge that is listed twice counts once in the dense
form and twice in the other. A node without an incoming edge gets 0. Only `self_loops` adds self-loops.
Source: Veličković et al. 2017, arXiv:1710.10903 (GAT); Brody, Alon & Yahav 2021, arXiv:2105.14491 (GATv2,
`dynamic`).
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib.attention import Attended, Score, attend
from lesson_lib.masks import check_edges
from lesson_lib.scores import GraphScore, scaled_dot

# edges whose messages are held at once: few enough for a processor's cache, many enough for fast calls
CHUNK = 8192
# A GPU has no such cache, and waits between calls. On an H200, 5 million edges, 8 heads of 8, with gradients:
# 89 ms by 8192, 41 ms by these, 40 ms all at once, which takes 4.5 GB instead of 1.3.
CHUNK_OF_GPU = 131072


class OnEdges(NamedTuple):
    """What attention along edges returns: the outputs, and the weight of each edge for each head, in the
    order of the edges."""

    output: Float[Tensor, "n h d_v"]
    weights: Float[Tensor, "edges h"]


def attend_edges(
    query: Float[Tensor, "n h d_k"],
    key: Float[Tensor, "m h d_k"],
    value: Float[Tensor, "m h d_v"],
    edge_index: Int[Tensor, "2 edges"],
    *,
    score: Score = scaled_dot,
) -> OnEdges:
    """`attend` with the mask of a graph, without its table: only the scores of edges are computed.

    `edge_index[0]` holds the sources j, `edge_index[1]` the targets i. Heads stand BEHIND the nodes, as graph
    libraries have them. `score` is any score that `attend` takes; it is called on pairs, one for each edge.
    Raises TypeError or ValueError where an edge leads to a node that is not there.

    >>> x = torch.tensor([[[1.0]], [[2.0]], [[4.0]]])
    >>> attend_edges(0 * x, 0 * x, x, torch.tensor([[0, 1], [2, 2]])).output.flatten().tolist()
    [0.0, 0.0, 1.5]
    """
    n = len(query)
    check_edges(edge_index, max(n, len(key)))
    source, target = edge_index
    if isinstance(score, GraphScore):
        scores = score.of_edges(query, key, source, target)
    else:
        scores = score(query[target][..., None, :], key[source][..., None, :])[..., 0, 0]
    heads = scores.shape[1]
    index = target[:, None].expand(-1, heads)
    highest = (
        scores.detach().new_full((n, heads), -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
    )
    unnormalised = (scores - highest[target]).exp()
    total = unnormalised.new_zeros(n, heads).index_add(0, target, unnormalised)
    weights = unnormalised / total[target]
    return OnEdges(_Messages.apply(weights, value, source, target, n), weights)


class _Messages(torch.autograd.Function):
    """sum over edges j -> i of w_ij v_j, some thousand edges at a time: the messages (edges, h, d_v) are
    never held all at once."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, value: Tensor, source: Tensor, target: Tensor, n: int) -> Tensor:
        ctx.save_for_backward(weights, value, source, target)
        output = value.new_zeros(n, *value.shape[1:])
        for edges in _slices(source):
            output.index_add_(0, target[edges], value[source[edges]] * weights[edges, :, None])
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        weights, value, source, target = ctx.saved_tensors
        of_weights, of_value = torch.empty_like(weights), torch.zeros_like(value)
        for edges in _slices(source):
            arriving = gradient[target[edges]]
            torch.sum(arriving * value[source[edges]], -1, out=of_weights[edges])
            of_value.index_add_(0, source[edges], arriving * weights[edges, :, None])
        return of_weights, of_value, None, None, None


def _slices(edges: Tensor) -> list[slice]:
    step = CHUNK
    if edges.device.type != "cpu":  # an eighth at most: nor are a small graph's messages held all at once
        step = min(CHUNK_OF_GPU, max(CHUNK, len(edges) // 8))
    return [slice(start, start + step) for start in range(0, len(edges), step)]


def self_loops(edge_index: Int[Tensor, "2 edges"], n: int) -> Int[Tensor, "2 more"]:
    """The edges, without the self-loops among them, and one for each of the n nodes behind them: each node
    sees itself, once.

    >>> self_loops(torch.tensor([[0, 1], [1, 1]]), 2).tolist()
    [[0, 0, 1], [1, 0, 1]]
    """
    check_edges(edge_index, n)
    others = edge_index[:, edge_index[0] != edge_index[1]]
    loops = torch.arange(n, device=edge_index.device, dtype=edge_index.dtype)
    return torch.cat([others, loops.expand(2, n)], 1)


class GraphAttention(nn.Module):
    """A layer of graph attention: n_heads heads of width d_out, side by side, each with its projection and
    its `GraphScore`.

        z_j = W x_j,   e_ij = LeakyReLU(a_q · z_i + a_k · z_j),   out_i = sum_j softmax_j(e_ij) z_j + bias

    `dynamic` is GATv2: e_ij = a · LeakyReLU(W_query x_i + W x_j). Edges are used as they are given: add
    `self_loops` where nodes should see themselves.
    Raises ValueError where a width is less than 1, or an edge leads to a node that is not there.
    Source: Veličković et al. 2017, arXiv:1710.10903; Brody, Alon & Yahav 2021, arXiv:2105.14491.
    """

    def __init__(
        self, d_in: int, d_out: int, n_heads: int = 1, *, bias: bool = True, dynamic: bool = False
    ) -> None:
        super().__init__()
        self.score = GraphScore(d_out, n_heads, dynamic=dynamic)
        self.project = nn.Linear(d_in, n_heads * d_out, bias=False)
        self.project_query = nn.Linear(d_in, n_heads * d_out, bias=False) if dynamic else None
        self.bias = nn.Parameter(torch.zeros(n_heads * d_out)) if bias else None
        self.n_heads = n_heads
        for projection in filter(None, (self.project, self.project_query)):
            nn.init.xavier_uniform_(projection.weight)

    def forward(self, x: Float[Tensor, "n d_in"], edge_index: Int[Tensor, "2 edges"]) -> OnEdges:
        """Outputs (n, n_heads, d_out) joined to (n, n_heads · d_out), and the weight of each edge for each
        head; along the edges only."""
        query, key = self._projected(x)
        output, weights = attend_edges(query, key, key, edge_index, score=self.score)
        return OnEdges(self._joined(output), weights)

    def dense(self, x: Float[Tensor, "n d_in"], mask: Bool[Tensor, "n n"]) -> Attended:
        """The same with the table of all pairs, by `attend`: mask[i, j] is True where i may look at j.
        Weights are (n_heads, n, n)."""
        query, key = (z.transpose(0, 1) for z in self._projected(x))
        output, weights = attend(query, key, key, score=self.score, mask=mask)
        return Attended(self._joined(output.transpose(0, 1)), weights)

    @classmethod
    def from_pyg(cls, conv: nn.Module) -> "GraphAttention":
        """A layer with the weights of a GATConv or GATv2Conv of PyTorch Geometric; same numbers on edges with
        `self_loops`, which it adds by itself.

        Raises ValueError for an option that this layer has not: edge features, mean over heads, residual,
        another slope, two inputs.
        """
        dynamic = type(conv).__name__ == "GATv2Conv"
        _only_what_is_here(conv, dynamic)
        layer = cls(
            conv.in_channels, conv.out_channels, conv.heads, bias=conv.bias is not None, dynamic=dynamic
        )
        with torch.no_grad():
            if dynamic:
                layer.score.a_key.copy_(conv.att[0])
                layer.project.weight.copy_(conv.lin_l.weight)
                layer.project_query.weight.copy_(conv.lin_r.weight)
            else:
                layer.score.a_key.copy_(conv.att_src[0])
                layer.score.a_query.copy_(conv.att_dst[0])
                layer.project.weight.copy_(conv.lin.weight)
            if conv.bias is not None:
                layer.bias.copy_(conv.bias)
        return layer.to(conv.att if dynamic else conv.att_src).train(conv.training)

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor]:
        key = self.project(x).unflatten(-1, (self.n_heads, -1))
        query = key if self.project_query is None else self.project_query(x).unflatten(-1, (self.n_heads, -1))
        return query, key

    def _joined(self, output: Tensor) -> Tensor:
        output = output.flatten(1)
        return output if self.bias is None else output + self.bias


def _only_what_is_here(conv: nn.Module, dynamic: bool) -> None:
    kind = type(conv).__name__
    if kind not in ("GATConv", "GATv2Conv"):
        raise ValueError(f"conv must be a GATConv or GATv2Conv of torch_geometric, got {kind}")
    asked = {
        "a pair of input widths": not isinstance(conv.in_channels, int),
        "concat=False": not conv.concat,
        "edge_dim": conv.edge_dim is not None,
        "residual=True": conv.residual,
        f"negative_slope={conv.negative_slope}": conv.negative_slope != GraphScore.SLOPE,
        "dropout": conv.dropout != 0,
        "a bias in the projections": dynamic and conv.lin_l.bias is not None,
    }
    if wrong := [name for name, is_so in asked.items() if is_so]:
        raise ValueError(f"this {kind} has {', '.join(wrong)}; GraphAttention has not")
