"""Second problems of part 10a and of chapter 10's exercises: another side that shares, a bend that comes
first, other neighbours, inputs that catch a mistake."""

import random
from dataclasses import replace
from math import gcd

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import catch
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Number, fresh


def _edges(*pairs: tuple[int, int]) -> Tensor:
    """Edges from pairs (source, target)."""
    return torch.tensor(pairs, dtype=torch.int64, device="cpu").T.contiguous()


MIXED = _edges((1, 0), (2, 1), (3, 0), (5, 3), (5, 1), (5, 0), (0, 2), (3, 1))


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


LN_3 = 1.0986123

SENDERS_SHARE = Write(
    name="along_edges_2",
    title="The senders share",
    asked=(
        "now every SOURCE shares out its value: the weights of the edges that leave a node are the softmax of"
        " their scores. Each target adds up what arrives"
    ),
    stages=(
        Stage(
            "node 0 sends to 1 and 2, with scores 0 and ln 3",
            lambda: [_given([0, LN_3], [40, 5, 7], (0, 1), (0, 2))],
            "A quarter and three quarters of 40: 10 and 30 arrive. Nothing arrives at node 0.",
        ),
        Stage(
            "two senders, mixed",
            lambda: [_given([0, 1, LN_3, 0], [40, 8, 7], (0, 1), (1, 2), (0, 2), (1, 0))],
            "Each sender's weights sum to 1, whatever the targets.",
        ),
        Stage(
            "six nodes with two numbers each, eight edges",
            lambda: [{"scores": drawn(41, 8), "value": drawn(42, 6, 2), "edge_index": MIXED}],
            "index_add(0, source, ...) sums per sender.",
        ),
    ),
    hints=(
        "Over which edges must the weights sum to 1 now?",
        "At which node do the sums of exp stand, and which sum does an edge read?",
        "Has it changed where messages are added up?",
    ),
    solution=along_edges_2,
    remember="whoever shares owns the softmax: normalised at the source nothing is lost, at the target all is a mean",
    slips={
        "these weights sum to 1 at each target; now each source shares out": (
            "index_add(0, source, shares)",
            "index_add(0, target, shares)",
            "total[source]",
            "total[target]",
        ),
        "messages arrive at their targets, as before": (
            "index_add(0, target, messages)",
            "index_add(0, source, messages)",
        ),
        "the division is missing": ("(shares / total[source])", "shares"),
        "exp is missing": ("scores.exp()", "scores"),
    },
)


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


DYNAMIC = Write(
    name="gat_scores_2",
    title="The bend comes first",
    asked=(
        "GATv2 (2021): queries have a projection of their own, and the vector a stands BEHIND the bend. The"
        " score of each edge: a . LeakyReLU(z_query_i + z_key_j), with a fifth of what is negative"
    ),
    stages=(
        Stage(
            "two numbers, an edge from 1 to 0",
            lambda: [_bent([[1, 1], [0, 0]], [[0, 0], [2, -6]], [1, 1], (1, 0))],
            "3 and -5 are bent to 3 and -1: together 2.",
        ),
        Stage(
            "a negative entry of a",
            lambda: [_bent([[1, 1], [0, 0]], [[0, 3], [2, -6]], [2, -1], (1, 0), (0, 1))],
            "2 * 3 - 1 * (-1) = 7; and 0 - 3.",
        ),
        Stage(
            "six nodes with three numbers each",
            lambda: [
                {
                    "z_query": drawn(51, 6, 3),
                    "z_key": drawn(52, 6, 3),
                    "a": drawn(53, 3),
                    "edge_index": MIXED,
                }
            ],
            "Every entry of the sum is bent by itself; then comes a.",
        ),
    ),
    hints=(
        "Which two rows are added for an edge from j to i?",
        "Is the bend applied to d numbers or to one?",
        "What does @ a do with a table (edges, d)?",
    ),
    solution=gat_scores_2,
    remember="bend, then weigh: now two nodes can rank the same friends differently",
    slips={
        "the vector comes before the bend: that is the first GAT": (
            "F.leaky_relu(z_query[target] + z_key[source], 0.2) @ a",
            "F.leaky_relu((z_query[target] + z_key[source]) @ a, 0.2)",
        ),
        "the bend is missing": (
            "F.leaky_relu(z_query[target] + z_key[source], 0.2)",
            "(z_query[target] + z_key[source])",
        ),
        "source and target have changed places": ("source, target =", "target, source ="),
        "torch's own slope is 0.01; here a fifth is left": (", 0.2", ""),
    },
)


def _both_ways(value: Tensor, weights: Tensor, edge_index: Tensor) -> bool:
    sent = torch.zeros(len(value), len(value)).index_put(tuple(edge_index), weights, accumulate=True)
    return bool((sent == sent.mT).all())


def _nothing(value: Tensor, weights: Tensor, edge_index: Tensor) -> bool:
    return not bool((weights[:, None] * value[edge_index[0]]).any())


def messages(first: Write) -> Exercise:
    """A graph on which it shows which row sends."""
    return catch(
        first,
        asked=(
            "somebody tests this function on graphs in which every edge goes both ways with equal weights, and"
            " finds no fault. Write inputs, of two nodes with one number each, on which it fails"
        ),
        slip="this is still the function as it was given",
        inputs={
            "value": "torch.tensor([[3.0], [5.0]])",
            "weights": "torch.ones(1)",
            "edge_index": "torch.tensor([[0], [1]])",
        },
        remember="a symmetric graph hides every mix-up of source and target: test with one edge",
        hints=(
            "What changes, if every edge goes both ways, when source and target change places?",
            "How few edges do you need?",
            "Which values make it visible who has sent?",
        ),
        slips={
            "no message carries anything here: neither weight nor value may be 0": _nothing,
            "every edge goes both ways here, with the same weight: turned round, it is the same graph": _both_ways,
        },
    )


def _known_everybody(query: Tensor, key: Tensor, value: Tensor, knows: Tensor) -> bool:
    return bool(knows.all())


def _same_values(query: Tensor, key: Tensor, value: Tensor, knows: Tensor) -> bool:
    return bool((value == value[:1]).all())


def known(first: Write) -> Exercise:
    """Members among whom a stranger's score of 0 gets weight."""
    return catch(
        first,
        asked=(
            "the repair is undone: scores are multiplied by `knows`. Its author has tested it with members who"
            " all know each other. Write inputs, of two members with one number each, on which it fails"
        ),
        slip="this is still the function as it was given",
        inputs={
            "query": "torch.zeros(2, 1)",
            "key": "torch.zeros(2, 1)",
            "value": "torch.tensor([[2.0], [8.0]])",
            "knows": "torch.eye(2, dtype=torch.bool)",
        },
        remember="a mask is tested where it hides something, with values that differ",
        hints=(
            "What must be in `knows`, so that something is hidden?",
            "With which scores can you compute the right output in your head?",
            "If all values were equal, would a wrong weight be seen?",
        ),
        slips={
            "nobody is a stranger here: nothing is hidden": _known_everybody,
            "all values are equal, so any weights give the same": _same_values,
        },
    )


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


def _on(scores: list[list[float]], *pairs: tuple[int, int], n: int) -> Case:
    return {"scores": table(scores), "edge_index": _edges(*pairs), "n": n}


# every node has an edge: the logarithm of nothing is another question
ALL_HEAR = _edges((1, 0), (2, 1), (3, 0), (5, 3), (5, 1), (5, 0), (0, 2), (3, 1), (4, 4), (0, 5))

LOG_SUMS = Write(
    name="softmax_over_edges_2",
    title="The logarithm of the sum",
    asked=(
        "for each node, which has at least one edge, and each head: ln of the sum of exp(score) over the edges"
        " to it; right for scores of 1,000 and -1,000, too"
    ),
    stages=(
        Stage(
            "two edges to node 0, one to node 1",
            lambda: [_on([[0.0], [LN_3], [2.0]], (1, 0), (0, 0), (0, 1), n=2)],
            "ln(1 + 3) = 1.3863, and ln(e^2) = 2.",
        ),
        Stage(
            "six nodes, two heads",
            lambda: [{"scores": drawn(61, 10, 2), "edge_index": ALL_HEAR, "n": 6}],
            "Each head is a column of its own.",
        ),
        Stage(
            "1,000 at one node, -1,000 at the other",
            lambda: [_on([[1000.0], [-1000.0], [-1000.0], [1000.0]], (1, 0), (0, 1), (1, 1), (0, 0), n=2)],
            "exp(1000) is inf: take each node's own highest score off, and add it again behind the logarithm.",
        ),
    ),
    hints=(
        "ln(e^a + e^b), with a the larger: what is left when e^a is taken out of the sum?",
        "Which number was taken off before exp, and where must it come back?",
        "Whose highest score is it: the graph's, or each node's own?",
    ),
    solution=softmax_over_edges_2,
    remember="a softmax and its logarithm of the sum need the same two sweeps: the highest, then the sum",
    slips={
        "the highest score must come back behind the logarithm": ("highest + sums.log()", "sums.log()"),
        "the logarithm is missing": ("highest + sums.log()", "sums * highest.exp()"),
        "nothing is taken off: exp(1000) is inf": (
            "(scores - highest[target]).exp()",
            "scores.exp()",
            "highest + sums.log()",
            "sums.log()",
        ),
        "the edges that LEAVE a node are summed; asked are those that arrive": (
            "target = edge_index[1]",
            "target = edge_index[0]",
        ),
    },
)


def three_neighbours(first: Number, n: int) -> Number:
    """Another node, among other neighbours."""

    def make(draw: random.Random) -> Number:
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
        edges = ", ".join(f"{j} -> {node}" for j in near)
        mixed = sum(w * v for w, v in zip(shares, values, strict=True))
        one = values[shares.index(1)]
        logs = " + ".join(f"ln({w})*{v}" for w, v in zip(shares, values, strict=True) if w > 1)
        log_sum = " + ".join(f"ln({w})" for w in shares if w > 1)
        answer = " + ".join(f"{w}*{v}/{total}" for w, v in zip(shares, values, strict=True))
        parts = " + ".join(f"{w * v // total}" for w, v in zip(shares, values, strict=True))
        weights = ", ".join(f"{w}/{total}" for w in shares)
        return replace(
            first,
            asked=(
                f"attention along edges: j -> i lets node i look at node j. Edges {edges}, {node} -> {stranger}, no"
                f" self-loop; scores of node {node} with nodes 0 ... 4: {scores}; values of nodes 0 ... 4:"
                f" {', '.join(str(held[i]) for i in range(5))}: the output of node {node}?"
            ),
            answer=answer,
            value=mixed // total,
            tolerance=0.01,
            hints=(
                f"Which edges end at node {node}, and so whom may it look at?",
                "exp(ln 9) is 9. What are the exponentials of the three scores, and what is exp(0)?",
                first.hints[2],
            ),
            solution=(
                f"node {node} looks at {near[0]}, {near[1]} and {near[2]}: exp makes {shares[0]}, {shares[1]} and"
                f" {shares[2]} of their scores, so the weights are {weights}, and the output is {answer} = {parts} ="
                f" {mixed // total}."
            ),
            slips={
                "the node has no self-loop, so it does not look at itself": (
                    f"({mixed} + {own}*{mine}) / ({total} + {own})"
                ),
                "the node has no self-loop: not even with a score of 0 does it look at itself": (
                    f"({mixed} + {mine}) / ({total} + 1)"
                ),
                "you gave the stranger, to whom the edge leads, a score of 0; exp(0) is 1, so it gets weight. Its weight is 0: leave it out": (
                    f"({mixed} + {far}) / ({total} + 1)"
                ),
                "you gave all without an edge to the node a score of 0; exp(0) is 1, so they get weight. Leave them out": (
                    f"({mixed} + {far} + {mine}) / ({total} + 2)"
                ),
                f"the edge {node} -> {stranger} lets node {stranger} look at node {node}, not the other way round": (
                    f"({mixed} + {other}*{far}) / ({total} + {other})"
                ),
                "that is full attention over all five nodes; a node looks at those whose edges lead to it": (
                    f"({mixed} + {other}*{far} + {own}*{mine}) / ({total} + {other} + {own})"
                ),
                f"that is what lies at the other end of the edge {node} -> {stranger}; but an edge from j to i lets i look at j": (
                    far
                ),
                "that is the plain sum of the three values: weigh them by the softmax of their scores": sum(values),
                "that is the plain mean of the three values: weigh them by the softmax of their scores": (
                    f"{sum(values)} / 3"
                ),
                "divide by the sum of the exponentials: weights sum to 1": mixed,
                "a score of 0 is not silence: exp(0) is 1, and that neighbour has a weight, too": (
                    f"({mixed} - {one}) / ({total} - 1)"
                ),
                "the scores themselves are no weights: take exp of them, and divide by the sum": logs,
                "exp is missing: the weights are exp of the scores, divided by their sum": f"({logs}) / ({log_sum})",
                "divided by the number of neighbours; divide by the sum of the exponentials": f"{mixed} / 3",
            },
        )  # fmt: skip

    # drawn with a wide tolerance, so that no slip is right by rounding; judged with the first's
    return replace(fresh(n, make), tolerance=first.tolerance)
