"""What of the questions in 10a_graph.md is code."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention.questions.exercises import LN_3
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code
from lesson_lib.masks import from_edges


def along_edges(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    edge_index: Int[Tensor, "2 edges"],
) -> Float[Tensor, "n d_v"]:
    source, target = edge_index
    scores = (query[target] * key[source]).sum(-1) / key.shape[-1] ** 0.5
    shares = scores.exp()
    total = torch.zeros(len(query)).index_add(0, target, shares)
    weights = shares / total[target]
    messages = weights[:, None] * value[source]
    return torch.zeros(len(query), value.shape[1]).index_add(0, target, messages)


def _edges(*pairs: tuple[int, int]) -> Tensor:
    """Edges from pairs (source, target)."""
    return torch.tensor(pairs, dtype=torch.int64, device="cpu").T.contiguous()


# six nodes: 4 has no edge, none leads to 5, those to 0 and 1 stand apart, 5 is the source of three
MIXED = _edges((1, 0), (2, 1), (3, 0), (5, 3), (5, 1), (5, 0), (0, 2), (3, 1))


def _at_random(draw: Draw, n: int) -> Tensor:
    """Each of all n * n edges with a chance of about a third, in no order."""
    edges = (draw(1, n, n) > 0.4).nonzero()
    return edges[draw(2, len(edges)).argsort()].T.contiguous()


def _nodes(seed: int, n: int, d_k: int, d_v: int, edge_index: Tensor, draw: Draw = drawn) -> Case:
    shapes = {"query": (n, d_k), "key": (n, d_k), "value": (n, d_v)}
    made = {name: draw(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return made | {"edge_index": edge_index}


def _one_number(query: list[float], key: list[float], value: list[float], *pairs: tuple[int, int]) -> Case:
    made = {name: table(x)[:, None] for name, x in (("query", query), ("key", key), ("value", value))}
    return made | {"edge_index": _edges(*pairs)}


def _by_table(query: Tensor, key: Tensor, value: Tensor, edge_index: Tensor) -> Tensor:
    return attend(query, key, value, mask=from_edges(edge_index, len(query))).output


def _of_all(query: Tensor, key: Tensor, value: Tensor, edge_index: Tensor) -> Tensor:
    return attend(query, key, value).output


LN_2 = 0.6931472


def gat_scores(
    z: Float[Tensor, "n d"],
    a_query: Float[Tensor, " d"],
    a_key: Float[Tensor, " d"],
    edge_index: Int[Tensor, "2 edges"],
) -> Float[Tensor, " edges"]:
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


MIXED_2 = _edges((1, 0), (2, 1), (3, 0), (5, 3), (5, 1), (5, 0), (0, 2), (3, 1))


def along_edges_2(
    scores: Float[Tensor, " edges"],
    value: Float[Tensor, "n d"],
    edge_index: Int[Tensor, "2 edges"],
) -> Float[Tensor, "n d"]:
    source, target = edge_index
    shares = scores.exp()
    total = torch.zeros(len(value)).index_add(0, source, shares)
    messages = (shares / total[source])[:, None] * value[source]
    return torch.zeros(len(value), value.shape[1]).index_add(0, target, messages)


def _given(scores: list[float], value: list[float], *pairs: tuple[int, int]) -> Case:
    return {"scores": table(scores), "value": table(value)[:, None], "edge_index": _edges(*pairs)}


def gat_scores_2(
    z_query: Float[Tensor, "n d"],
    z_key: Float[Tensor, "n d"],
    a: Float[Tensor, " d"],
    edge_index: Int[Tensor, "2 edges"],
) -> Float[Tensor, " edges"]:
    source, target = edge_index
    return F.leaky_relu(z_query[target] + z_key[source], 0.2) @ a


def _bent(z_query: list, z_key: list, a: list, *pairs: tuple[int, int]) -> Case:
    made = {name: table(x) for name, x in (("z_query", z_query), ("z_key", z_key), ("a", a))}
    return made | {"edge_index": _edges(*pairs)}


CODE = {
    "along_edges": Code(
        solution=along_edges,
        cases=(
            lambda: [_one_number([1, 0, 0], [0, 0, LN_2], [7, 30, 60], (1, 0), (2, 0))],
            lambda: [
                _one_number([1, 1, 0], [0, LN_2, 0], [9, 30, 60], (1, 0), (0, 1), (2, 0), (1, 1), (2, 1))
            ],
            lambda: [_nodes(21, 6, 3, 2, MIXED), _nodes(31, 6, 2, 2, MIXED)],
        ),
        wrong=(_of_all,),
        reference=_by_table,
        hidden=lambda draw: [
            _nodes(3, 9, 5, 3, _at_random(draw, 9), draw),
            _nodes(13, 7, 2, 5, _at_random(draw, 7), draw),
        ],
    ),
    "along_edges_2": Code(
        solution=along_edges_2,
        cases=(
            lambda: [_given([0, LN_3], [40, 5, 7], (0, 1), (0, 2))],
            lambda: [_given([0, 1, LN_3, 0], [40, 8, 7], (0, 1), (1, 2), (0, 2), (1, 0))],
            lambda: [{"scores": drawn(41, 8), "value": drawn(42, 6, 2), "edge_index": MIXED_2}],
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
                    "edge_index": MIXED_2,
                }
            ],
        ),
    ),
}
