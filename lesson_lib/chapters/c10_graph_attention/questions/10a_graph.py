"""What of the questions in 10a_graph.md is code."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention.questions.exercises import LN_3
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def along_edges(scores, value, edge_index):
    source, target = edge_index
    shares = scores.exp()
    total = torch.zeros(len(value)).index_add(0, target, shares)
    messages = (shares / total[target])[:, None] * value[source]
    return torch.zeros(len(value), value.shape[1]).index_add(0, target, messages)


def _edges(*pairs: tuple[int, int]) -> Tensor:
    """Edges from pairs (source, target)."""
    return torch.tensor(pairs, dtype=torch.int64, device="cpu").T.contiguous()


# six nodes: 4 has no edge, none leads to 5, those to 0 and 1 stand apart, 5 is the source of three
MIXED = _edges((1, 0), (2, 1), (3, 0), (5, 3), (5, 1), (5, 0), (0, 2), (3, 1))


def _at_random(draw: Draw, n: int) -> Tensor:
    """Each of all n * n edges with a chance of about a third, in no order."""
    edges = (draw(1, n, n) > 0.4).nonzero()
    return edges[draw(2, len(edges)).argsort()].T.contiguous()


def _listed(scores: Tensor, value: Tensor, edge_index: Tensor) -> Case:
    return {"scores": scores, "value": value, "edge_index": edge_index}


def _given(scores: list[float], value: list[float], *pairs: tuple[int, int]) -> Case:
    return _listed(table(scores), table(value)[:, None], _edges(*pairs))


def _by_table(scores: Tensor, value: Tensor, edge_index: Tensor) -> Tensor:
    """All pairs in a table, with -inf where no edge is."""
    pairs = scores.new_full((len(value), len(value)), -torch.inf)
    pairs[edge_index[1], edge_index[0]] = scores
    return attend(value, value, value, score=lambda q, k: pairs, mask=pairs > -torch.inf).output


LN_2 = 0.6931472


def gat_scores(z, a_query, a_key, edge_index):
    source, target = edge_index
    return F.leaky_relu((z @ a_query)[target] + (z @ a_key)[source], 0.2)


def _scored(z: list, a_query: list, a_key: list, *pairs: tuple[int, int]) -> Case:
    return {
        "z": table(z), "a_query": table(a_query), "a_key": table(a_key), "edge_index": _edges(*pairs)
    }  # fmt: skip


def _any_scored(seed: int, n: int, d: int, edge_index: Tensor, draw: Draw = drawn) -> Case:
    return {
        "z": draw(seed, n, d), "a_query": draw(seed + 1, d), "a_key": draw(seed + 2, d),
        "edge_index": edge_index,
    }  # fmt: skip


def _all_pairs(z: Tensor, a_query: Tensor, a_key: Tensor, edge_index: Tensor) -> Tensor:
    scores = F.leaky_relu((z @ a_query)[:, None] + z @ a_key, 0.2)
    return scores[edge_index[1], edge_index[0]]


def along_edges_2(scores, value, edge_index):
    source, target = edge_index
    shares = scores.exp()
    total = torch.zeros(len(value)).index_add(0, source, shares)
    messages = (shares / total[source])[:, None] * value[source]
    return torch.zeros(len(value), value.shape[1]).index_add(0, target, messages)


def gat_scores_2(z_query, z_key, a, edge_index):
    source, target = edge_index
    return F.leaky_relu(z_query[target] + z_key[source], 0.2) @ a


def _bent(z_query: list, z_key: list, a: list, *pairs: tuple[int, int]) -> Case:
    made = {name: table(x) for name, x in (("z_query", z_query), ("z_key", z_key), ("a", a))}
    return made | {"edge_index": _edges(*pairs)}


CODE = {
    "along_edges": Code(
        solution=along_edges,
        cases=(
            lambda: [_given([0, LN_2], [7, 30, 60], (1, 0), (2, 0))],
            lambda: [_given([0, 0, LN_2, LN_2, 0], [9, 30, 60], (1, 0), (0, 1), (2, 0), (1, 1), (2, 1))],
            lambda: [_listed(drawn(21, 8), drawn(22, 6, 2), MIXED)],
        ),
        reference=_by_table,
        hidden=lambda draw: [
            _listed(draw(3, edges.shape[1]), draw(4, n, d), edges)
            for n, d, edges in ((9, 3, _at_random(draw, 9)), (7, 5, _at_random(draw, 7)))
        ],
    ),
    "along_edges_2": Code(
        solution=along_edges_2,
        cases=(
            lambda: [_given([0, LN_3], [40, 5, 7], (0, 1), (0, 2))],
            lambda: [_given([0, 1, LN_3, 0], [40, 8, 7], (0, 1), (1, 2), (0, 2), (1, 0))],
            lambda: [_listed(drawn(41, 8), drawn(42, 6, 2), MIXED)],
        ),
    ),
    "gat_scores": Code(
        solution=gat_scores,
        cases=(
            lambda: [_scored([[3], [1]], [1], [2], (1, 0))],
            lambda: [_scored([[1], [-3]], [1], [1], (1, 0), (0, 0))],
            lambda: [_any_scored(31, 6, 3, MIXED)],
        ),
        reference=_all_pairs,
        hidden=lambda draw: [
            _any_scored(3, 9, 5, _at_random(draw, 9), draw),
            _any_scored(13, 7, 2, _at_random(draw, 7), draw),
        ],
    ),
    "gat_scores_2": Code(
        solution=gat_scores_2,
        cases=(
            lambda: [_bent([[1, 1], [0, 0]], [[0, 0], [2, -6]], [1, 1], (1, 0))],
            lambda: [_bent([[1, 1], [0, 0]], [[0, 3], [2, -6]], [2, -1], (1, 0), (0, 1))],
            lambda: [
                {
                    "z_query": drawn(51, 6, 3),
                    "z_key": drawn(52, 6, 3),
                    "a": drawn(53, 3),
                    "edge_index": MIXED,
                }
            ],
        ),
    ),
}
