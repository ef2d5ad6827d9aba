"""What part 10b asks: four predictions, and two functions to write, each with a second problem."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "10b_real_graph"

nine_words = Choice(
    name="nine_words",
    notebook=PART,
    title="Nine words",
    asked="Which chapter would you put it in?",
    options={"a": "numbers", "b": "files", "c": "protocols"},
    answer="a",
    remember="it is statistics.stdev, the standard deviation; functions that it uses tell more",
    slips={
        "the root is a square root; see, other, details stand in any docstring: no word says file here": "b",
        "details and arguments occur in every chapter; what else could tell?": "c",
    },
)

dealt_by_lot = Choice(
    name="dealt_by_lot",
    notebook=PART,
    title="Another deal",
    asked=(
        "Nodes dealt one by one, GCN scores 92 % on test nodes, which it was never trained on. Whole"
        " families are dealt: what does it score?"
    ),
    options={"a": "about 90 %", "b": "about 50 %", "c": "about 14 %, a guess"},
    answer="b",
    remember="40 points came from sisters in the same module, whose chapter was told in training",
    slips={
        "not on them, but on their sisters in the module, whom a test node hears: what is left without?": "a",
        "that would be so if nothing carried over from one module to another": "c",
    },
)

even_or_learned = Choice(
    name="even_or_learned",
    notebook=PART,
    title="Fixed weights, learned weights",
    asked="GCN's weights are fixed, those of GAT, GATv2 and dot products are learned. Who is ahead?",
    options={
        "a": "learned weights, by 10 points or more",
        "b": "nobody, by 10 points",
        "c": "GCN, by 10 points or more",
    },
    answer="b",
    remember="most neighbours are of the own chapter, so a mean needs no choice",
    slips={
        "a choice pays where neighbours differ; here 97 in 100 edges stay in a chapter": "a",
        "that would be so if the scores overfitted; they do not hurt either": "c",
    },
)

wrong_edges = Choice(
    name="wrong_edges",
    notebook=PART,
    title="Edges by lot",
    asked=(
        "All edges are shuffled, and the networks are trained on that graph. Words alone find 35 %. What do"
        " GCN and GAT find?"
    ),
    options={
        "a": "more than 35 %: a node hears itself, too",
        "b": "35 %: edges that say nothing are ignored",
        "c": "less than 35 %",
    },
    answer="c",
    remember="the mean of neighbours drawn by lot blurs the node's own words",
    slips={
        "it hears itself as one of several; what do the others add?": "a",
        "in GCN nothing can ignore an edge, and a GAT's nodes all rank alike; what would they ignore?": "b",
    },
)


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


APART = Write(
    name="batch_graphs_2",
    title="Taken apart again",
    asked=(
        "the way back: edge_index is that of a batch, and each graph shall count its own nodes from 0 again;"
        " n_nodes and n_edges are as before"
    ),
    stages=(
        Stage("one graph", lambda: [_batched((3, [(0, 1), (2, 1)]))], "It counts from 0 already."),
        Stage(
            "two graphs of two nodes",
            lambda: [_batched((2, [(0, 1), (1, 0)]), (2, [(1, 0)]))],
            "The second graph's nodes are 2 and 3 in the batch.",
        ),
        Stage(
            "three graphs, one of them without edges",
            lambda: [_batched((3, [(0, 2), (1, 0)]), (4, []), (2, [(0, 1), (1, 0)]))],
            "A graph without edges has nodes all the same.",
        ),
    ),
    hints=(
        "How many nodes stand before the second graph?",
        "Which of the two counts says how far the nodes were moved?",
        "Is something added here or taken off?",
    ),
    solution=batch_graphs_2,
    remember="the first node of each graph is all that is needed, there and back",
    slips={
        "they were moved up; move them down": ("edge_index -", "edge_index +"),
        "the first node of a graph is what stands before it, its own nodes not counted": (
            "n_nodes.cumsum(0) - n_nodes",
            "n_nodes.cumsum(0)",
        ),
        "nodes were moved by the nodes before them, not by the edges": (
            "n_nodes.cumsum(0) - n_nodes",
            "n_edges.cumsum(0) - n_edges",
        ),
        "not by the number of the graph: by the nodes before it": (
            "n_nodes.cumsum(0) - n_nodes",
            "torch.arange(len(n_nodes), device=n_nodes.device)",
        ),
        "the nodes of ALL graphs before stand in front, not those of the last one alone": (
            "n_nodes.cumsum(0) - n_nodes",
            "torch.cat([n_nodes[:1] * 0, n_nodes[:-1]])",
        ),
    },
)

write_batch_graphs = Write(
    name="batch_graphs",
    notebook=PART,
    second=lambda n: APART,
    title="One graph of many",
    stars=1,
    minutes=5,
    why="a layer that takes one graph takes a batch of graphs, if no edge joins two of them",
    asked=(
        "edge_index holds the edges of several graphs, one after the other, each counting its own nodes from"
        " 0. Number all nodes through"
    ),
    stages=(
        Stage("one graph", lambda: [_graphs((3, [(0, 1), (2, 1)]))], "Nothing to move."),
        Stage(
            "two graphs of two nodes",
            lambda: [_graphs((2, [(0, 1)]), (2, [(1, 0)]))],
            "The nodes of the second graph are 2 and 3.",
        ),
        Stage(
            "three graphs, one of them without edges",
            lambda: [_graphs((3, [(0, 2), (1, 0)]), (4, []), (2, [(0, 1), (1, 0)]))],
            "The third graph begins at node 7.",
        ),
        Stage(
            "a graph whose last node has no edge",
            lambda: [_graphs((5, [(0, 1), (1, 2), (0, 3)]), (3, [(2, 0)]), (1, [(0, 0)]))],
            "Count nodes, not the ends of edges.",
        ),
    ),
    reference=_one_by_one,
    hints=(
        "Which number does the first node of the third graph get?",
        "What does n_nodes.cumsum(0) say of graph k, and by how much is it too large?",
        "That is a number for each graph. How does `repeat_interleave` give one to each edge?",
    ),
    solution=batch_graphs,
    hidden=_more_graphs,
    remember="shift each graph's numbers by the nodes before it: no edge joins two graphs",
    slips={
        "your edges still count from 0 in each graph: all graphs lie on top of each other": (
            "edge_index + first.repeat_interleave(n_edges)",
            "edge_index",
        ),
        "the first graph is moved, too: its own nodes do not stand before it": (
            "n_nodes.cumsum(0) - n_nodes",
            "n_nodes.cumsum(0)",
        ),
        "you moved them by the edges before them; nodes are what is numbered": (
            "n_nodes.cumsum(0) - n_nodes",
            "n_edges.cumsum(0) - n_edges",
        ),
        "not by the number of the graph: by the nodes before it": (
            "n_nodes.cumsum(0) - n_nodes",
            "torch.arange(len(n_nodes), device=n_nodes.device)",
        ),
        "each edge moves by the nodes of its own graph; it must be all graphs before": (
            "n_nodes.cumsum(0) - n_nodes",
            "n_nodes",
        ),
        "each edge moves by the nodes of the graph just before; it must be all graphs before": (
            "n_nodes.cumsum(0) - n_nodes",
            "torch.cat([n_nodes[:1] * 0, n_nodes[:-1]])",
        ),
        "an edge has two ends, and both move": (
            "edge_index + first.repeat_interleave(n_edges)",
            "torch.stack([edge_index[0], edge_index[1] + first.repeat_interleave(n_edges)])",
        ),
    },
)


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


BY_SCORES = Write(
    name="pool_mean_2",
    title="Pooling by attention",
    asked=(
        "a row for each graph: its nodes mixed with weights that are the softmax of `scores` over the nodes"
        " of this graph"
    ),
    stages=(
        Stage(
            "one graph, two nodes with weights 1/4 and 3/4",
            lambda: [_scored([[8.0], [4.0]], [0.0, 1.0986123], [0, 0], 1)],
            "8/4 + 4 · 3/4 = 5.",
        ),
        Stage(
            "two graphs, equal scores",
            lambda: [_scored([[1.0], [2.0], [6.0]], [3.0, -1.0, -1.0], [0, 1, 1], 2)],
            "Equal scores give the mean: 1 and 4. A softmax sees differences within a graph only.",
        ),
        Stage(
            "three graphs, nodes in any order",
            lambda: [
                {
                    "x": drawn(1, 7, 2),
                    "scores": drawn(2, 7),
                    "graph": whole([2, 0, 1, 2, 2, 0, 1]),
                    "n_graphs": 3,
                }
            ],
            "Each graph has a softmax of its own.",
        ),
    ),
    hints=(
        "In 10a a softmax ran over the edges to one node. What are the groups here?",
        "Which sum divides the exponential of a node's score?",
        "`index_add` sums up the rows of a graph. What are the rows here?",
    ),
    solution=pool_mean_2,
    remember="pooling by attention is an edge from each node to its graph",
    slips={
        "the softmax runs over all nodes; each graph has its own": (
            "weights = unnormalised / total[graph]",
            "weights = unnormalised / unnormalised.sum()",
        ),
        "weights must sum to 1 in each graph: divide": (
            "weights = unnormalised / total[graph]",
            "weights = unnormalised",
        ),
        "the scores are no weights: take the exponential": ("scores.exp()", "scores"),
        "that is the plain mean: the scores are not used": ("scores.exp()", "torch.ones_like(scores)"),
    },
)

write_pool_mean = Write(
    name="pool_mean",
    notebook=PART,
    second=lambda n: BY_SCORES,
    title="A row for each graph",
    stars=1,
    minutes=5,
    why="a property of a whole graph needs one vector for all of its nodes",
    asked="graph[i] says to which graph node i belongs; none is empty. The mean of x over each graph's nodes",
    stages=(
        Stage(
            "one graph of two nodes",
            lambda: [_pooled([[2.0], [4.0]], [0, 0], 1)],
            "The mean of 2 and 4.",
        ),
        Stage(
            "two graphs, of one and of three nodes",
            lambda: [_pooled([[7.0, 0.0], [1.0, 2.0], [2.0, 2.0], [6.0, 5.0]], [0, 1, 1, 1], 2)],
            "Row 1: (1 + 2 + 6) / 3 and (2 + 2 + 5) / 3.",
        ),
        Stage(
            "three graphs, nodes in any order",
            lambda: [_any_order()],
            "Use graph[i], not the order of the nodes.",
        ),
    ),
    reference=_graph_by_graph,
    hints=(
        "`index_add(0, graph, x)` adds row i of x to row graph[i]. Which shape has what it is called on?",
        "How many nodes has each graph, and what does `graph.bincount()` count?",
        "The sums are (graphs, d), the counts (graphs,). Which axis is missing?",
    ),
    solution=pool_mean,
    hidden=_more_pools,
    remember="add up by the number of the graph, divide by its nodes",
    slips={
        "that is the sum; divide by the number of nodes": ("total / size[:, None]", "total"),
        "each graph is divided by its own number of nodes": (
            "total / size[:, None]",
            "total * n_graphs / len(x)",
        ),
        "that is the mean over all nodes, of all graphs": (
            "total / size[:, None]",
            "x.mean(0).expand(n_graphs, -1)",
        ),
        "you divide by the nodes of all graphs; divide each graph's sum by its own nodes": (
            "total / size[:, None]",
            "total / len(x)",
        ),
        "divide by the number of the graph's nodes, not by their width": ("size[:, None]", "x.shape[1]"),
        "the root of the number of nodes does not make a mean": ("size[:, None]", "size[:, None].sqrt()"),
        "of each graph one row alone is kept, as by `out[graph] += x`; index_add adds them all": (
            "index_add(0, graph, x)",
            "index_put((graph,), x)",
        ),
        "you multiply by the number of nodes; divide by it": ("total / size", "total * size"),
    },
)

ASKED = (
    nine_words,
    dealt_by_lot,
    even_or_learned,
    wrong_edges,
    write_batch_graphs,
    write_pool_mean,
)
