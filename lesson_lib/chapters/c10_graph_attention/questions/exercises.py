"""What of the chapter's exercises is code; their words are in exercises.md."""

import math
import random
from collections.abc import Callable
from math import gcd
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.questions import Code
from lesson_lib.checks.several_results import Alike
from lesson_lib.masks import window


def _edges(*pairs: tuple[int, int]) -> Tensor:
    """Edges from pairs (source, target)."""
    return torch.tensor(pairs, dtype=torch.int64, device="cpu").T.contiguous()


# A graph of six nodes: 4 has no edge at all, 5 none that leads to it, edges to 0 and 1 stand apart, and one
# node is the source of three.
MIXED = _edges((1, 0), (2, 1), (3, 0), (5, 3), (5, 1), (5, 0), (0, 2), (3, 1))


def sum_of_messages(
    value: Float[Tensor, "n d"],
    weights: Float[Tensor, " edges"],
    edge_index: Int[Tensor, "2 edges"],
) -> Float[Tensor, "n d"]:
    source, target = edge_index
    messages = weights[:, None] * value[source]
    return torch.zeros_like(value).index_add(0, target, messages)


def _last_message(value: Tensor, weights: Tensor, edge_index: Tensor) -> Tensor:
    output = torch.zeros_like(value)
    for w, j, i in zip(weights, *edge_index.tolist(), strict=True):
        output[i] = w * value[j]
    return output


def _messages_by_table(value: Tensor, weights: Tensor, edge_index: Tensor) -> Tensor:
    entries = value.new_zeros(len(value), len(value))
    entries[edge_index[1], edge_index[0]] = weights
    return entries @ value


def _edges_at_random(drawn, n):
    """Each of all n * n edges with a chance of about a third, in no order."""
    edges = (drawn(1, n, n) > 0.4).nonzero()
    return edges[drawn(2, len(edges)).argsort()].T.contiguous()


def _more_sum_of_messages(drawn: Draw) -> list[Case]:
    edges = _edges_at_random(drawn, 9)
    return [
        {
            "value": drawn(3, 9, 5),
            "weights": drawn(4, edges.shape[1]),
            "edge_index": edges,
        }
    ]


LINKED = table([[0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]).bool()


TIMES_MASK = "(1) scores times 0"


BILLION = "(2) scores of -1e9"


HIDDEN = "(3) attend's mask"


def three_programs() -> dict[str, Tensor]:
    """The weights (5, 5) that three programs make of the same scores; no edge leads to the last node."""
    x = table([[1.0, 0.5], [0.5, 1.0], [-1.0, 1.0], [1.0, -1.5], [2.0, 1.0]])

    def weights(hidden: Any, mask: Tensor | None = None) -> Tensor:
        def score(query: Tensor, key: Tensor) -> Tensor:
            return hidden(query @ key.mT / math.sqrt(2))

        return attend(x, x, x, score=score, mask=mask).weights

    return {
        TIMES_MASK: weights(lambda scores: scores * LINKED),
        BILLION: weights(lambda scores: torch.where(LINKED, scores, -1e9)),
        HIDDEN: weights(lambda scores: scores, LINKED),
    }


def _isolated_picture() -> Any:
    from lesson_lib import charts

    return charts.heatmap(
        three_programs(),
        alt=(
            "Three tables of weights. In the first all cells have colour; in the second only those of edges,"
            " and the whole last row; in the third only those of edges."
        ),
        caption=(
            "Weights of five nodes, by three programs; rows look. In the first table every stranger has"
            " weight. Node 4, to which no edge leads, gets a fifth of everybody in the first two, and nothing"
            " in the third."
        ),
        row_axis="node that looks",
        column_axis="node looked at",
        limits=(0.0, 1.0),
    )


def attend_to_known(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    knows: Bool[Tensor, "n n"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT / key.shape[-1] ** 0.5
    scores = scores.masked_fill(~knows, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)  # who knows nobody: 0/0
    return weights @ value


def _members(seed: int, rows: list[str], d_k: int, d_v: int) -> Case:
    """Members drawn at random; in a row of `rows` an x stands where this member knows that one."""
    n = len(rows)
    knows = torch.tensor([[sign == "x" for sign in row] for row in rows], device="cpu")
    key, value = drawn(seed + 1, n, d_k, spread=1.5), drawn(seed + 2, n, d_v)
    return {"query": drawn(seed, n, d_k, spread=1.5), "key": key, "value": value, "knows": knows}


def _nothing_asked(values: list[float], rows: list[str]) -> Case:
    """Queries of zeros: all scores are 0."""
    case = _members(1, rows, 1, 1)
    return case | {"query": 0 * case["query"], "value": table(values)[:, None]}


FIVE = ["xx..x", ".xxx.", "xxx..", "...xx", "x.x.x"]


def _more_attend_to_known(drawn: Draw) -> list[Case]:
    query, key, value = drawn(1, 9, 5), drawn(2, 9, 5), drawn(3, 9, 3)
    return [{"query": query, "key": key, "value": value, "knows": drawn(4, 9, 9) > 0.3}]


def path_edges(n: int, radius: int) -> Int[Tensor, "2 edges"]:
    place = torch.arange(n)
    step = torch.arange(-radius, radius + 1)
    source = (place[:, None] + step).flatten()
    target = place.repeat_interleave(len(step))
    there = (source >= 0) & (source < n)
    return torch.stack([source, target])[:, there]


def _in_order(edges: Any, n: int, radius: int) -> Any:
    """Edges by their targets, then by their sources, whole numbers of any size as int64; anything else as it
    is."""
    fits = isinstance(edges, Tensor) and edges.layout == torch.strided and edges.device.type != "meta"
    if not fits or edges.ndim != 2 or len(edges) != 2 or not edges.numel() or edges.is_complex():
        return edges
    pairs = sorted(edges.T.tolist(), key=lambda pair: (pair[1], pair[0]))
    whole = not edges.is_floating_point() and edges.dtype != torch.bool
    return torch.tensor(pairs, dtype=torch.int64 if whole else edges.dtype, device=edges.device).T


def _more_path_edges(drawn: Draw) -> list[Case]:
    n = 6 + int(3 * drawn(1, 1).abs())
    return [{"n": n, "radius": radius} for radius in (1, 3)]


def softmax_over_edges(
    scores: Float[Tensor, "edges h"],
    edge_index: Int[Tensor, "2 edges"],
    n: int,
) -> Float[Tensor, "edges h"]:
    target = edge_index[1]
    index = target[:, None].expand_as(scores)
    highest = scores.new_full((n, scores.shape[1]), -torch.inf)
    highest = highest.scatter_reduce(0, index, scores, "amax")
    weights = (scores - highest[target]).exp()
    total = torch.zeros_like(highest).index_add(0, target, weights)
    return weights / total[target]


NODE_TABLE = (
    "the numbers are right, but there is a table with a row and a column for each node; a graph of a million"
    " nodes has few edges: one row per node is enough"
)


def _no_table(answer: Callable) -> str | None:
    """The sentence, where twice as many nodes take far more than twice the numbers, with as many edges."""

    def work(n: int) -> int:
        return numbers_made(lambda: answer(drawn(1, len(MIXED[0]), 1), MIXED, n))

    return NODE_TABLE if work(400) > 3 * work(200) else None


def _own_highest(scores: Tensor, group: Tensor, n: int) -> Tensor:
    """Per group, the highest score, at its edges."""
    start = scores.new_full((n, scores.shape[1]), -torch.inf)
    return start.scatter_reduce(0, group[:, None].expand_as(scores), scores, "amax")[group]


def _segments(
    *,
    group: Callable[[Tensor], Tensor] = lambda edge_index: edge_index[1],
    highest: Callable[[Tensor, Tensor, int], Any] = _own_highest,
    exp: Callable[[Tensor], Tensor] = torch.exp,
    total: Callable[[Tensor], Tensor] = lambda sums: sums,
    lowered_by: int | None = None,
) -> Callable[..., Tensor]:
    """The softmax, with any of its parts replaced; `lowered_by` is the row of edges whose highest score is
    subtracted."""

    def weights(scores: Tensor, edge_index: Tensor, n: int) -> Tensor:
        groups = group(edge_index)
        lower = groups if lowered_by is None else edge_index[lowered_by]
        made = exp(scores - highest(scores, lower, n))
        sums = made.new_zeros(n, made.shape[1]).index_add(0, groups, made)
        return made / total(sums)[groups]

    return weights


def _runs(edge_index: Tensor) -> Tensor:
    return edge_index[1].unique_consecutive(return_inverse=True)[1]


def _node_by_node(scores: Tensor, edge_index: Tensor, n: int) -> Tensor:
    weights = torch.empty_like(scores)
    for i in range(n):
        to_i = edge_index[1] == i
        weights[to_i] = scores[to_i].softmax(0)
    return weights


def _by_node_table(scores: Tensor, edge_index: Tensor, n: int) -> Tensor:
    source, target = edge_index
    pairs = scores.new_full((scores.shape[1], n, n), -torch.inf)
    pairs[:, target, source] = scores.mT
    return pairs.softmax(-1)[:, target, source].mT


def _on(scores: list[list[float]], *pairs: tuple[int, int], n: int) -> Case:
    return {"scores": table(scores), "edge_index": _edges(*pairs), "n": n}


LN_3 = 1.0986123


def _more_softmax_over_edges(drawn: Draw) -> list[Case]:
    edges = _edges_at_random(drawn, 9)
    return [{"scores": 3 * drawn(3, edges.shape[1], 2), "edge_index": edges, "n": 9}]


def gcn_scores(edge_index: Int[Tensor, "2 edges"], n: int) -> Float[Tensor, " edges"]:
    source, target = edge_index
    degree = target.bincount(minlength=n)
    return -0.5 * degree[source].log()  # the target's own degree cancels


def _highest_0(scores: Any, edge_index: Tensor, n: int) -> Any:
    """Scores, shifted so that the highest at each target is 0: what a softmax sees of them; anything else as
    it is."""
    fits = (
        isinstance(scores, Tensor) and scores.layout == torch.strided and scores.device == edge_index.device
    )
    if not fits or scores.shape != edge_index.shape[1:] or not scores.is_floating_point():
        return scores
    if not scores.isfinite().all():
        return scores
    return scores - _own_highest(scores[:, None], edge_index[1], n)[:, 0]


def _log_of_weights(edge_index: Tensor, n: int) -> Tensor:
    """From GCN's table."""
    source, target = edge_index
    linked = torch.zeros(n, n, device=edge_index.device).index_put(
        (target, source), torch.ones(1).to(source.device)
    )
    root = linked.sum(1).clamp(min=1).rsqrt()
    return (root[:, None] * linked * root)[target, source].log()


def _both_ways(*pairs: tuple[int, int], n: int) -> Case:
    """Each edge there and back, and a self-loop for each node."""
    back = tuple((j, i) for i, j in pairs)
    return {"edge_index": _edges(*pairs, *back, *((i, i) for i in range(n))), "n": n}


def _more_gcn_scores(drawn: Draw) -> list[Case]:
    linked = drawn(1, 9, 9) > 0.8
    linked = linked | linked.T | torch.eye(9, dtype=torch.bool)
    return [{"edge_index": linked.nonzero().T.contiguous(), "n": 9}]


def _both_ways_2(value: Tensor, weights: Tensor, edge_index: Tensor) -> bool:
    sent = torch.zeros(len(value), len(value)).index_put(tuple(edge_index), weights, accumulate=True)
    return bool((sent == sent.mT).all())


def _nothing(value: Tensor, weights: Tensor, edge_index: Tensor) -> bool:
    return not bool((weights[:, None] * value[edge_index[0]]).any())


def _known_everybody(query: Tensor, key: Tensor, value: Tensor, knows: Tensor) -> bool:
    return bool(knows.all())


def _same_values(query: Tensor, key: Tensor, value: Tensor, knows: Tensor) -> bool:
    return bool((value == value[:1]).all())


def softmax_over_edges_2(
    scores: Float[Tensor, "edges h"],
    edge_index: Int[Tensor, "2 edges"],
    n: int,
) -> Float[Tensor, "n h"]:
    target = edge_index[1]
    index = target[:, None].expand_as(scores)
    start = scores.new_full((n, scores.shape[1]), -torch.inf)
    highest = start.scatter_reduce(0, index, scores, "amax")
    sums = torch.zeros_like(start).index_add(0, target, (scores - highest[target]).exp())
    return highest + sums.log()


# every node has an edge: the logarithm of nothing is another question
ALL_HEAR = _edges((1, 0), (2, 1), (3, 0), (5, 3), (5, 1), (5, 0), (0, 2), (3, 1), (4, 4), (0, 5))


def _three_neighbours_numbers(draw: random.Random) -> dict[str, Any]:
    node, stranger, *near = draw.sample(range(5), 5)
    near.sort()
    shares = draw.choice([[1, 2, 3], [1, 2, 5], [1, 3, 4], [1, 2, 7], [1, 3, 6], [1, 4, 5]])
    draw.shuffle(shares)
    total = sum(shares)
    own, other = draw.sample([w for w in range(2, 9) if w not in shares], 2)
    values = [draw.randint(1, 6) * total // gcd(w, total) for w in shares]  # each share of one is whole
    mine, far = 10 * draw.randint(2, 9), 10 * draw.randint(10, 20)
    exps = dict(zip((node, stranger, *near), (own, other, *shares), strict=True))
    held = dict(zip((node, stranger, *near), (mine, far, *values), strict=True))
    scores = ", ".join("0" if exps[i] == 1 else f"ln {exps[i]}" for i in range(5))
    all_values = ", ".join(str(held[i]) for i in range(5))
    edges = ", ".join(f"{j} -> {node}" for j in near)
    mixed = sum(w * v for w, v in zip(shares, values, strict=True))
    one = values[shares.index(1)]
    logs = " + ".join(f"ln({w})*{v}" for w, v in zip(shares, values, strict=True) if w > 1)
    log_sum = " + ".join(f"ln({w})" for w in shares if w > 1)
    answer = " + ".join(f"{w}*{v}/{total}" for w, v in zip(shares, values, strict=True))
    parts = " + ".join(f"{w * v // total}" for w, v in zip(shares, values, strict=True))
    weights = ", ".join(f"{w}/{total}" for w in shares)
    return locals()


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


def _more_graphs(draw: Draw) -> list[Case]:
    ends = (8 * draw(5, 3, 3, 2).abs()).long()
    seven, two, five = (
        [tuple(edge) for edge in (some % n).tolist()] for some, n in zip(ends, (7, 2, 5), strict=True)
    )
    return [_graphs((7, seven[:2]), (1, []), (2, two[:1]), (5, five))]


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


def _to_pool(rows: list[list[float]], scores: list[float], graph: list[int], n_graphs: int) -> Case:
    return {"x": table(rows), "scores": table(scores), "graph": whole(graph), "n_graphs": n_graphs}


CODE = {
    "three_neighbours_2": Code(
        draw=_three_neighbours_numbers,
    ),
    "sum_of_messages": Code(
        solution=sum_of_messages,
        cases=(
            lambda: [{"value": table([[3.0], [5.0]]), "weights": table([1.0]), "edge_index": _edges((0, 1))}],
            lambda: [
                {
                    "value": table([[4.0], [7.0], [8.0]]),
                    "weights": table([0.25, 0.75]),
                    "edge_index": _edges((0, 1), (2, 1)),
                }
            ],
            lambda: [{"value": drawn(1, 6, 2), "weights": drawn(2, 8), "edge_index": MIXED}],
        ),
        wrong=(_last_message,),
        reference=_messages_by_table,
        hidden=_more_sum_of_messages,
    ),
    "sum_of_messages_2": Code(
        wrong=(
            _nothing,
            _both_ways_2,
        ),
    ),
    "no_edges_at_all": Code(
        picture=_isolated_picture,
    ),
    "attend_to_known": Code(
        solution=attend_to_known,
        cases=(
            lambda: [_nothing_asked([2.0, 8.0], ["x.", ".x"])],
            lambda: [_members(3, ["xx.", ".x.", "x.x"], 2, 1)],
            lambda: [_nothing_asked([2.0, 8.0, 5.0, 1.0], ["xxx.", ".xx.", "x..x", "xxxx"])],
            lambda: [_members(11, FIVE, 3, 2)],
            lambda: [_members(21, ["x.x", "...", ".xx"], 3, 2), _members(31, FIVE, 3, 3)],
        ),
        reference=lambda query, key, value, knows: attend(query, key, value, mask=knows).output,
        hidden=_more_attend_to_known,
    ),
    "attend_to_known_2": Code(
        wrong=(
            _known_everybody,
            _same_values,
        ),
    ),
    "path_edges": Code(
        kind=Alike,
        solution=path_edges,
        cases=(
            lambda: [{"n": 3, "radius": 1}],
            lambda: [{"n": 5, "radius": 2}],
            lambda: [{"n": 4, "radius": 0}],
            lambda: [{"n": 4, "radius": 9}, {"n": 1, "radius": 3}],
        ),
        reference=lambda n, radius: window(n, radius).nonzero().T.flip(0),
        hidden=_more_path_edges,
        normalise=_in_order,
    ),
    "softmax_over_edges": Code(
        solution=softmax_over_edges,
        cases=(
            lambda: [_on([[0.0], [LN_3], [2.0]], (1, 0), (2, 0), (3, 2), n=4)],
            lambda: [
                {"scores": drawn(1, 8, 1), "edge_index": MIXED, "n": 6},
                _on([[0.0], [LN_3]], (0, 5), (1, 5), n=6),
            ],
            lambda: [{"scores": drawn(2, 8, 3), "edge_index": MIXED, "n": 6}],
            lambda: [_on([[1000.0], [1000.0], [999.0]], (1, 0), (2, 0), (0, 2), n=3)],
            lambda: [_on([[-1000.0], [-1000.0], [-999.0]], (1, 0), (2, 0), (0, 2), n=3)],
            lambda: [_on([[1000.0], [-1000.0], [-1000.0], [1000.0]], (1, 0), (2, 1), (0, 1), (2, 0), n=3)],
        ),
        wrong=(
            _segments(group=_runs),
            _by_node_table,
        ),
        reference=_node_by_node,
        hidden=_more_softmax_over_edges,
        extra=_no_table,
    ),
    "softmax_over_edges_2": Code(
        solution=softmax_over_edges_2,
        cases=(
            lambda: [_on([[0.0], [LN_3], [2.0]], (1, 0), (0, 0), (0, 1), n=2)],
            lambda: [{"scores": drawn(61, 10, 2), "edge_index": ALL_HEAR, "n": 6}],
            lambda: [_on([[1000.0], [-1000.0], [-1000.0], [1000.0]], (1, 0), (0, 1), (1, 1), (0, 0), n=2)],
        ),
    ),
    "gcn_scores": Code(
        kind=Alike,
        solution=gcn_scores,
        cases=(
            lambda: [_both_ways((0, 1), (1, 2), n=3)],
            lambda: [_both_ways((0, 1), (0, 2), (0, 3), n=5)],
            lambda: [_both_ways((0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (0, 5), (4, 5), n=7)],
        ),
        reference=_log_of_weights,
        hidden=_more_gcn_scores,
        normalise=_highest_0,
    ),
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
            lambda: [_to_pool([[8.0], [4.0]], [0.0, 1.0986123], [0, 0], 1)],
            lambda: [_to_pool([[1.0], [2.0], [6.0]], [3.0, -1.0, -1.0], [0, 1, 1], 2)],
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
