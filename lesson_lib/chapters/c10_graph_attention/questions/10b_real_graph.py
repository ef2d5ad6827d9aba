"""What of the questions in 10b_real_graph.md is code."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def batch_graphs(
    n_nodes: Int[Tensor, " graphs"],
    n_edges: Int[Tensor, " graphs"],
    edge_index: Int[Tensor, "2 edges"],
) -> Int[Tensor, "2 edges"]:
    first = n_nodes.cumsum(0) - n_nodes  # the first node of each graph
    return edge_index + first.repeat_interleave(n_edges)


def whole(numbers: list) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device="cpu")


def _graphs(*graphs: tuple[int, list[tuple[int, int]]]) -> Case:
    """Graphs as (number of nodes, edges)."""
    edges = [edge for _, some in graphs for edge in some]
    return {
        "n_nodes": whole([n for n, _ in graphs]),
        "n_edges": whole([len(some) for _, some in graphs]),
        "edge_index": whole(edges).reshape(-1, 2).T.contiguous(),
    }


def _one_by_one(n_nodes: Tensor, n_edges: Tensor, edge_index: Tensor) -> Tensor:
    parts, first = [], 0
    for n, part in zip(n_nodes.tolist(), edge_index.split(n_edges.tolist(), 1), strict=True):
        parts.append(part + first)
        first += n
    return torch.cat(parts, 1)


def _more_graphs(_draw: Draw) -> list[Case]:
    return [_graphs((7, [(0, 6), (6, 3)]), (1, []), (2, [(1, 0)]), (5, [(4, 4), (0, 2), (2, 0)]))]


def batch_graphs_2(
    n_nodes: Int[Tensor, " graphs"],
    n_edges: Int[Tensor, " graphs"],
    edge_index: Int[Tensor, "2 edges"],
) -> Int[Tensor, "2 edges"]:
    first = n_nodes.cumsum(0) - n_nodes
    return edge_index - first.repeat_interleave(n_edges)


def _batched(*graphs: tuple[int, list[tuple[int, int]]]) -> Case:
    case = _graphs(*graphs)
    return case | {"edge_index": _one_by_one(**case)}


def pool_mean(
    x: Float[Tensor, "n d"],
    graph: Int[Tensor, " n"],
    n_graphs: int,
) -> Float[Tensor, "n_graphs d"]:
    total = x.new_zeros(n_graphs, x.shape[1]).index_add(0, graph, x)
    size = graph.bincount()
    return total / size[:, None]


def _pooled(rows: list[list[float]], graph: list[int], n_graphs: int) -> Case:
    return {"x": table(rows), "graph": whole(graph), "n_graphs": n_graphs}


def _any_order() -> Case:
    """Seven nodes of three graphs."""
    return {"x": drawn(1, 7, 2), "graph": whole([2, 0, 1, 2, 2, 0, 1]), "n_graphs": 3}


def _graph_by_graph(x: Tensor, graph: Tensor, n_graphs: int) -> Tensor:
    return torch.stack([x[graph == k].mean(0) for k in range(n_graphs)])


def _more_pools(drawn: Draw) -> list[Case]:
    return [{"x": drawn(1, 11, 3), "graph": whole([4, 0, 1, 1, 2, 2, 3, 3, 3, 0, 4]), "n_graphs": 5}]


def pool_mean_2(
    x: Float[Tensor, "n d"],
    scores: Float[Tensor, " n"],
    graph: Int[Tensor, " n"],
    n_graphs: int,
) -> Float[Tensor, "n_graphs d"]:
    unnormalised = scores.exp()
    total = x.new_zeros(n_graphs).index_add(0, graph, unnormalised)
    weights = unnormalised / total[graph]
    return x.new_zeros(n_graphs, x.shape[1]).index_add(0, graph, weights[:, None] * x)


def _scored(rows: list[list[float]], scores: list[float], graph: list[int], n_graphs: int) -> Case:
    return {"x": table(rows), "scores": table(scores), "graph": whole(graph), "n_graphs": n_graphs}


CODE = {
    "batch_graphs": Code(
        solution=batch_graphs,
        cases=(
            lambda: [_graphs((3, [(0, 1), (2, 1)]))],
            lambda: [_graphs((2, [(0, 1)]), (2, [(1, 0)]))],
            lambda: [_graphs((3, [(0, 2), (1, 0)]), (4, []), (2, [(0, 1), (1, 0)]))],
            lambda: [_graphs((5, [(0, 1), (1, 2), (0, 3)]), (3, [(2, 0)]), (1, [(0, 0)]))],
        ),
        reference=_one_by_one,
        hidden=_more_graphs,
    ),
    "batch_graphs_2": Code(
        solution=batch_graphs_2,
        cases=(
            lambda: [_batched((3, [(0, 1), (2, 1)]))],
            lambda: [_batched((2, [(0, 1), (1, 0)]), (2, [(1, 0)]))],
            lambda: [_batched((3, [(0, 2), (1, 0)]), (4, []), (2, [(0, 1), (1, 0)]))],
        ),
    ),
    "pool_mean": Code(
        solution=pool_mean,
        cases=(
            lambda: [_pooled([[2.0], [4.0]], [0, 0], 1)],
            lambda: [_pooled([[7.0, 0.0], [1.0, 2.0], [2.0, 2.0], [6.0, 5.0]], [0, 1, 1, 1], 2)],
            lambda: [_any_order()],
        ),
        reference=_graph_by_graph,
        hidden=_more_pools,
    ),
    "pool_mean_2": Code(
        solution=pool_mean_2,
        cases=(
            lambda: [_scored([[8.0], [4.0]], [0.0, 1.0986123], [0, 0], 1)],
            lambda: [_scored([[1.0], [2.0], [6.0]], [3.0, -1.0, -1.0], [0, 1, 1], 2)],
            lambda: [
                {
                    "x": drawn(1, 7, 2),
                    "scores": drawn(2, 7),
                    "graph": whole([2, 0, 1, 2, 2, 0, 1]),
                    "n_graphs": 3,
                }
            ],
        ),
    ),
}
