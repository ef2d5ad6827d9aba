"""What part 10a asks: four predictions, and two functions that the learner writes."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention import seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number
from lesson_lib.masks import from_edges

PART = "10a_graph"

strangers_share = Choice(
    name="strangers_share",
    notebook=PART,
    title="What do 32 strangers get?",
    asked=(
        "Member 11's scores: 2 for itself and for member 0, 0 for each of 32 strangers. What share of its"
        " attention do the 32 get? (e^2 = 7.4)"
    ),
    options={"a": "none", "b": "about a tenth", "c": "about two thirds", "d": "32 of 34"},
    answer="c",
    remember="exp(0) = 1 for each of 32; the two others have 7.4 each",
    slips={
        "a score of 0 would have to become a weight of 0: what is exp(0)?": "a",
        "one stranger gets little beside 7.4; 32 of them together?": "b",
        "that would be so if all scores were equal": "d",
    },
)

scores_left = Number(
    name="scores_left",
    notebook=PART,
    title="How many are left?",
    asked="34 members, 78 pairs who met, self-loops. How many scores, if no stranger's is computed?",
    value=190,
    answer="2 * 78 + 34",
    remember="one score for each column of the list",
    slips={
        "two who met hear each other: that makes two edges": "78 + 34",
        "each member hears itself, too": "2 * 78",
        "that is the whole table, strangers included": "34 * 34",
        "both: two edges for a pair, and a self-loop for each member": 78,
        "a self-loop is one edge, not two": "2 * (78 + 34)",
        "those are the strangers' scores, which are saved; how many are left?": "34 * 34 - (2 * 78 + 34)",
    },
)


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

write_along_edges = Write(
    name="along_edges",
    notebook=PART,
    second=lambda n: seconds.SENDERS_SHARE,
    title="Attention along edges",
    stars=2,
    minutes=8,
    why="this is the inside of every layer of graph attention",
    asked=(
        "one number per edge: the score query[i] . key[j] / sqrt(d_k), then exp; divide by the sum over the"
        " edges with the same target; each target adds up weight times value. Give back all outputs"
    ),
    stages=(
        Stage(
            "node 0 hears 1 and 2, with scores 0 and ln 2",
            lambda: [_one_number([1, 0, 0], [0, 0, LN_2], [7, 30, 60], (1, 0), (2, 0))],
            "exp makes 1 and 2 of the scores: weights 1/3 and 2/3, output 10 + 40 = 50. Nodes 1 and 2 hear"
            " nobody: 0.",
        ),
        Stage(
            "two targets, whose edges stand mixed",
            lambda: [
                _one_number([1, 1, 0], [0, LN_2, 0], [9, 30, 60], (1, 0), (0, 1), (2, 0), (1, 1), (2, 1))
            ],
            "Node 0 hears 1 and 2, node 1 hears all three, itself included.",
        ),
        Stage(
            "six nodes, queries and keys of three numbers, values of two",
            lambda: [_nodes(21, 6, 3, 2, MIXED), _nodes(31, 6, 2, 2, MIXED)],
            "query[target] and key[source] have a row for each edge.",
        ),
    ),
    reference=_by_table,
    hints=(
        "Which row of query, and which of key, belong to an edge from j to i? What is their product, summed?",
        "index_add(0, target, shares), on n zeros, sums per target. How does an edge read its target's sum?",
        "Which rows of value are sent, with which factor, and where does index_add put them?",
    ),
    solution=along_edges,
    hidden=lambda draw: [
        _nodes(3, 9, 5, 3, _at_random(draw, 9), draw),
        _nodes(13, 7, 2, 5, _at_random(draw, 7), draw),
    ],
    remember="gather, exp, index_add, divide, index_add: a softmax whose rows have different lengths",
    slips={
        "your weights sum to 1 over the edges that LEAVE a node; each target shares out its own": (
            "index_add(0, target, shares)",
            "index_add(0, source, shares)",
            "total[target]",
            "total[source]",
        ),
        "your softmax runs over all edges of the graph; each target has its own": (
            "shares / total[target]",
            "shares / shares.sum()",
        ),
        "the division is missing: the weights at a target must sum to 1": (" / total[target]", ""),
        "exp is missing: scores may be negative, and weights may not": ("scores.exp()", "scores"),
        "sqrt(d_k) is missing": (" / key.shape[-1] ** 0.5", ""),
        "source and target have changed places: the first row holds the sources": (
            "source, target = edge_index",
            "target, source = edge_index",
        ),
        "the right values are sent, and added up at the nodes that sent them": (
            "index_add(0, target, messages)",
            "index_add(0, source, messages)",
        ),
        "each node gets its own value: the message is value[source]": ("value[source]", "value[target]"),
        "the values are not weighted": ("weights[:, None] * value", "value"),
        "the target asks: its query meets the source's key": (
            "(query[target] * key[source])",
            "(query[source] * key[target])",
        ),
        "that is attention over all pairs; only edges count": _of_all,
        "you multiply by the sum over the edges with the same target; divide by it": (
            "shares / total",
            "shares * total",
        ),
        "you divide by d_k; divide by its root": (" ** 0.5", ""),
        **exchanged("source, target = edge_index", indent=4, without="kqv"),
    },
)

without_the_bend = Choice(
    name="without_the_bend",
    notebook=PART,
    title="Without the bend",
    asked=(
        "Leave the bend out. A's part, a_q . z, is 5, B's is -5. Both hear the same two friends, whose parts,"
        " a_k . z, are 0 and 2. How do A's weights differ from B's?"
    ),
    options={
        "a": "not at all",
        "b": "A's are sharper, B's more even",
        "c": "A and B prefer different friends",
    },
    answer="a",
    remember="A adds 5 to both scores, B takes off 5; a softmax sees differences only",
    slips={
        "a_q . z is added to both scores of A, it multiplies neither: their difference is 2, as for B": "b",
        "the scores are 5 and 7 for A, -5 and -3 for B: which friend is ahead, and by how much?": "c",
    },
)


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


write_gat_scores = Write(
    name="gat_scores",
    notebook=PART,
    second=lambda n: seconds.DYNAMIC,
    title="The score of a GAT",
    stars=2,
    minutes=6,
    why="with it and your attention along edges you hold a whole graph attention network",
    asked=(
        "the score of each edge from j to i: LeakyReLU(a_query . z_i + a_key . z_j), where LeakyReLU takes a"
        " fifth of what is negative"
    ),
    stages=(
        Stage(
            "one number per node, an edge from 1 to 0: 3 + 2",
            lambda: [_scored([[3], [1]], [1], [2], (1, 0))],
            "The target's part is 1 * 3, the source's 2 * 1; 5 is positive and stays.",
        ),
        Stage(
            "a negative sum",
            lambda: [_scored([[1], [-3]], [1], [1], (1, 0), (0, 0))],
            "1 - 3 = -2, and a fifth of it is -0.4; the self-loop has 2.",
        ),
        Stage(
            "six nodes with three numbers each, eight edges",
            lambda: [_any_scored(31, 6, 3, MIXED)],
            "z @ a_query has a number for each node; [target] picks one for each edge.",
        ),
    ),
    reference=_all_pairs,
    hints=(
        "Which numbers can be computed once for each node, before any edge is looked at?",
        "Which of the two belongs to the source j, and which to the target i, who asks?",
        "F.leaky_relu takes the slope below 0 as its second argument. What is added before it bends?",
    ),
    solution=gat_scores,
    hidden=lambda draw: [
        _any_scored(3, 9, 5, _at_random(draw, 9), draw),
        _any_scored(13, 7, 2, _at_random(draw, 7), draw),
    ],
    remember="two numbers for each node, one sum for each edge: no product of a query with a key",
    slips={
        "the bend is missing: without it the target's part cancels": (
            "F.leaky_relu((z @ a_query)[target] + (z @ a_key)[source], 0.2)",
            "(z @ a_query)[target] + (z @ a_key)[source]",
        ),
        "what is negative is cut to 0; LeakyReLU leaves a fifth of it": (
            "F.leaky_relu((z @ a_query)[target] + (z @ a_key)[source], 0.2)",
            "F.relu((z @ a_query)[target] + (z @ a_key)[source])",
        ),
        "torch's own slope is 0.01; here a fifth is left": (", 0.2", ""),
        "source and target have changed places: the target asks": (
            "source, target = edge_index",
            "target, source = edge_index",
        ),
        "each part is bent by itself; add first, then bend the sum": (
            "F.leaky_relu((z @ a_query)[target] + (z @ a_key)[source], 0.2)",
            "F.leaky_relu((z @ a_query)[target], 0.2) + F.leaky_relu((z @ a_key)[source], 0.2)",
        ),
        "the two parts are added, not multiplied": ("[target] + (z", "[target] * (z"),
        "both parts are the source's; the target's is z_i . a_query": ("[target]", "[source]"),
        "both parts are the target's; the source's is z_j . a_key": ("[source]", "[target]"),
    },
)

two_labels = Choice(
    name="two_labels",
    notebook=PART,
    title="Two labels to learn",
    asked=(
        "Two layers of full attention by dot products, met or not; the same vectors, labels and number of"
        " steps. At the start the loss is a coin's, ln 2 = 0.69. What becomes of it?"
    ),
    options={
        "a": "it falls near 0, and most others are found",
        "b": "it falls near 0, and the others are guessed",
        "c": "it stays at 0.69",
    },
    answer="c",
    remember="everybody hears the same 34, nearly evenly, and comes out the same",
    slips={
        "from what would it know the others' camps, if it sees no edge?": "a",
        "it could, if the two leaders came out different: whom do they listen to, and how differently?": "b",
    },
)

ASKED = (strangers_share, scores_left, write_along_edges, without_the_bend, write_gat_scores, two_labels)
