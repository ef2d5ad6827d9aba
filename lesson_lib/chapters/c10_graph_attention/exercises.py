"""Exercises of chapter 10, graph attention: who may look at whom, and what edges cannot say.

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention import messages as part_10a
from lesson_lib.chapters.c10_graph_attention import real_graph_asked as part_10b
from lesson_lib.chapters.c10_graph_attention import seconds
from lesson_lib.checks.alike import Alike
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.masks import window

neighbours = Number(
    name="three_neighbours",
    second=lambda n: seconds.three_neighbours(neighbours, n),
    title="What does a node get?",
    stars=1,
    minutes=6,
    why="a whole layer of graph attention is this line, for every node",
    asked=(
        "edges 1 -> 0, 2 -> 0, 3 -> 0, 0 -> 4, no self-loop; scores of node 0 with nodes 0 ... 4: ln 6, 0, ln"
        " 2, ln 3, ln 4; values 30, 60, 12, 4, 100: the output of node 0?"
    ),
    value=16,
    hints=(
        "An edge from j to i lets i look at j. Which nodes may node 0 look at?",
        "exp(ln 3) is 3. What are the exponentials of the three scores, and what is exp(0)?",
        "By what are they divided, so that the three weights sum to 1? And which values do they mix?",
    ),
    solution=(
        "node 0 looks at 1, 2 and 3: exp makes 1, 2 and 3 of their scores, so the weights are 1/6, 2/6 and"
        " 3/6, and the output is 60/6 + 2*12/6 + 3*4/6 = 10 + 4 + 2 = 16."
    ),
    remember=(
        "a softmax over the nodes that an edge leads FROM, and nobody else: not itself without a self-loop,"
        " and a neighbour's score of 0 does count"
    ),
    slips={
        "node 0 has no self-loop, so it does not look at itself": "(60 + 2*12 + 3*4 + 6*30) / 12",
        "node 0 has no self-loop: not even with a score of 0 does it look at itself": "(96 + 30) / 7",
        "you gave the stranger, node 4, a score of 0; exp(0) is 1, so it gets weight. Its weight is 0: leave it out": (
            "(96 + 100) / 7"
        ),
        "you gave all without an edge to node 0 a score of 0; exp(0) is 1, so they get weight. Leave them out": (
            "(96 + 100 + 30) / 8"
        ),
        "the edge 0 -> 4 lets node 4 look at node 0, not the other way round": "(96 + 4*100) / 10",
        "that is full attention over all five nodes; node 0 looks at those whose edges lead to it": (
            "(96 + 400 + 180) / 16"
        ),
        "100 is what lies at the other end of the edge 0 -> 4; but an edge from j to i lets i look at j": 100,
        "that is the plain sum of the three values: weigh them by the softmax of their scores": 76,
        "that is the plain mean of the three values: weigh them by the softmax of their scores": "76 / 3",
        "divide by the sum of the exponentials: weights sum to 1": 96,
        "a score of 0 is not silence: exp(0) is 1, so node 1 has a weight of 1/6": "(2*12 + 3*4) / 5",
        "the scores themselves are no weights: take exp of them, and divide by the sum": "ln(2)*12 + ln(3)*4",
        "exp is missing: the weights are exp of the scores, divided by their sum": (
            "(ln(2)*12 + ln(3)*4) / ln(6)"
        ),
        "divided by the number of neighbours; divide by the sum of the exponentials": "96 / 3",
    },
    answer="60/6 + 2*12/6 + 3*4/6",
)


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


messages = Write(
    name="sum_of_messages",
    second=lambda n: seconds.messages(messages),
    title="Who sends, who receives: a repair",
    stars=1,
    minutes=5,
    why=(
        "libraries disagree on which row of an edge list is the source, and where edges go both ways nobody"
        " notices"
    ),
    asked=(
        "repair: output_i = sum over the edges j -> i of w_ij value_j; edge_index[0] holds the sources j,"
        " edge_index[1] the targets i"
    ),
    repair=True,
    stages=(
        Stage(
            "two nodes, one edge from 0 to 1",
            lambda: [{"value": table([[3.0], [5.0]]), "weights": table([1.0]), "edge_index": _edges((0, 1))}],
            "Node 1 receives the 3 of node 0. No edge leads to node 0: it gets 0.",
        ),
        Stage(
            "three nodes, two edges that lead to node 1",
            lambda: [
                {
                    "value": table([[4.0], [7.0], [8.0]]),
                    "weights": table([0.25, 0.75]),
                    "edge_index": _edges((0, 1), (2, 1)),
                }
            ],
            "Node 1 receives 0.25 * 4 + 0.75 * 8 = 7; its own value plays no part, since no edge leads from"
            " it to itself.",
        ),
        Stage(
            "six nodes with two numbers each, eight edges",
            lambda: [{"value": drawn(1, 6, 2), "weights": drawn(2, 8), "edge_index": MIXED}],
            "Edge e carries weights[e] * value[edge_index[0, e]], and this is added at edge_index[1, e].",
        ),
    ),
    reference=_messages_by_table,
    hints=(
        (
            "With one edge from 0 to 1: whose value should move, and at which node should it arrive? What"
            " does the function do with it?"
        ),
        "`target, source = edge_index` unpacks the two rows. Which row comes first?",
        "Only the first line is wrong. Which two names in it must change places?",
    ),
    solution=sum_of_messages,
    remember=(
        "edge_index[0] sends, edge_index[1] receives; value[source] gathers messages, index_add at target"
        " sums them up: this is message passing"
    ),
    slips={
        "this is still the function as it was given": (
            "source, target = edge_index",
            "target, source = edge_index",
        ),
        "the right values are sent, but they are added up at the nodes that sent them": (
            "index_add(0, target",
            "index_add(0, source",
        ),
        "each node gets its own value; read edge_index[0]'s: source, target = edge_index, value[source]": (
            "value[source]",
            "value[target]",
        ),
        "of several edges that lead to one node only the last one counts: output[target] = ... or += overwrites; index_add adds": (
            _last_message
        ),
        "you take the mean of the messages; the weights are applied already, so add them up": (
            "messages)",
            "messages) / target.bincount(minlength=len(value)).clamp(min=1)[:, None]",
        ),
        "the weights are not used": ("weights[:, None] * ", ""),
        "each node gets its own value, too; no self-loop is in the list, and nobody adds one": (
            "torch.zeros_like(value)",
            "value",
        ),
        "your edges carry both ways; each leads from edge_index[0] to edge_index[1] alone": (
            "messages)",
            "messages).index_add(0, source, weights[:, None] * value[target])",
        ),
    },
    hidden=_more_sum_of_messages,
)


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


isolated = Choice(
    name="no_edges_at_all",
    title="What does a lonely node get? Predict the picture",
    stars=2,
    minutes=6,
    why="in real graphs some nodes have no edge; a program that was never tried on one fails silently",
    asked=(
        "five nodes; to node 4 no edge leads, no self-loop either. Before the softmax, (1) scores of"
        " strangers are multiplied by 0, (2) they are set to -1e9, (3) attend's mask hides them. What is the"
        " output of node 4?"
    ),
    options={
        "a": "(1) 0, (2) 0, (3) 0",
        "b": "(1) the mean of all values, (2) 0, (3) 0",
        "c": "(1) the mean of all values, (2) the mean of all values, (3) 0",
        "d": "(1) the mean of all values, (2) the mean of all values, (3) nan",
        "e": "(1) its own value, (2) its own value, (3) its own value",
        "f": "(1) the mean of all values, (2) nan, (3) nan",
    },
    hints=(
        "All five nodes are strangers to node 4. What stands in its row of scores, in program (1)?",
        (
            "In program (2) there are five equal numbers in the row. Does a softmax see how low they are, or"
            " only how much they differ?"
        ),
        (
            "In `attend` a hidden key has weight 0. If all are hidden, is there anything to divide by, and"
            " which output did lesson 03 settle on for such a row?"
        ),
    ),
    solution=(
        "c: all five scores of node 4 are equal, 0 in the first program and -1e9 in the second. A softmax"
        " sees differences only, so both give each node a fifth: the mean of all values. `attend` hides with"
        " -inf and gives exactly 0 to a row with nothing to see; attention along a list of edges has nothing"
        " to add up there, 0 as well."
    ),
    remember=(
        "a row whose scores are all -1e9 is a uniform row; a node without edges must get 0, and a self-loop"
        " lets it keep its own value"
    ),
    slips={
        "a score of 0 is not a weight of 0: five equal scores share the weight equally, whatever they are": (
            "a"
        ),
        "-1e9 works as long as somebody in the row may be seen; five times -1e9 are five equal scores, and a softmax sees differences only": (
            "b"
        ),
        "nan is what a plain softmax makes of a row of -inf; `attend` gives exactly 0 there": "d",
        "no self-loop is among the edges, and none of the programs adds one": "e",
        "-1e9 is a finite number: five of them are equal scores, and nothing becomes nan; `attend` gives exactly 0": (
            "f"
        ),
    },
    answer="c",
    picture=_isolated_picture,
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


known = Write(
    name="attend_to_known",
    second=lambda n: seconds.known(known),
    title="A score of 0 is not silence: a repair",
    stars=2,
    minutes=8,
    why=(
        '"not connected, so set it to 0" is right of the weights, and soon written for the scores: then the'
        " strangers get weight"
    ),
    asked=(
        "repair: attention in which i looks only at those j with knows[i, j]; the weights of all others are"
        " 0, and who knows nobody gets zeros"
    ),
    repair=True,
    stages=(
        Stage(
            "two members who know themselves alone, all scores 0",
            lambda: [_nothing_asked([2.0, 8.0], ["x.", ".x"])],
            "Each looks at itself alone, so 2 and 8 come back as they were.",
        ),
        Stage(
            "three members; 1 knows itself alone, 0 knows 1, 2 knows 0",
            lambda: [_members(3, ["xx.", ".x.", "x.x"], 2, 1)],
            "knows[i, j]: rows look, columns are looked at. The output of 1 is its own value.",
        ),
        Stage(
            "four members, all scores 0",
            lambda: [_nothing_asked([2.0, 8.0, 5.0, 1.0], ["xxx.", ".xx.", "x..x", "xxxx"])],
            "All scores are equal, so each gets the mean of those it knows: 5, 6.5, 1.5, 4. A score of 0 is a"
            " score as any other.",
        ),
        Stage(
            "five members with keys of three numbers",
            lambda: [_members(11, FIVE, 3, 2)],
            "Among those it knows, each weighs by exp(q . k / sqrt(d_k)), divided by the sum over those it"
            " knows.",
        ),
        Stage(
            "a member who does not know anybody, not even itself",
            lambda: [_members(21, ["x.x", "...", ".xx"], 3, 2), _members(31, FIVE, 3, 3)],
            "Nobody to look at: the output is exactly 0.",
        ),
    ),
    reference=lambda query, key, value, knows: attend(query, key, value, mask=knows).output,
    hints=(
        "What is exp(0)? So which weight does a stranger get, before the division, whose score is 0?",
        "Which number must stand in the place of a score, so that exp makes exactly 0 of it?",
        (
            "~knows is True for strangers. Which tensor method writes -torch.inf where that is so:"
            " scores.masked_fill(..., ...)?"
        ),
    ),
    solution=attend_to_known,
    remember=(
        "weight 0 needs a score of -inf before the softmax; exp(0) is 1, so a score of 0 still attends, and"
        " among many strangers most of the weight is theirs"
    ),
    slips={
        "this is still the function as it was given": (
            "scores = scores.masked_fill(~knows, -torch.inf)",
            "scores = scores * knows",
        ),
        "the weights are set to 0 behind the softmax, so a row no longer sums to 1: hide the scores before it": (
            "scores = scores.masked_fill(~knows, -torch.inf)\n    ",
            "",
            ".nan_to_num(0.0)",
            " * knows",
        ),
        "it is turned round: strangers are seen, acquaintances hidden; fill where ~knows is True": (
            "~knows",
            "knows",
        ),
        "nothing is hidden: masked_fill gives back a new tensor, which must be used": (
            "scores.masked_fill(~knows, -torch.inf)",
            "scores",
        ),
        "knows is read the other way: knows[i, j] says that i looks at j, so it needs no transpose": (
            "~knows",
            "~knows.mT",
        ),
        "a product that happens to be 0 is no sign of a stranger: those are hidden, too; take knows itself": (
            ("~knows", "scores * knows == 0")
        ),
        "who knows nobody gets a mean of all here: your number is finite, and equal scores share the weight; write -torch.inf": (
            "-torch.inf",
            "-1e9",
        ),
        "0 * -inf is nan, and nan_to_num hides it: write -torch.inf with masked_fill or torch.where, do not multiply by it": (
            "scores.masked_fill(~knows, -torch.inf)",
            "scores + ~knows * -torch.inf",
        ),
        "who knows nobody gets nan, 0/0, now: keep nan_to_num(0.0) behind the softmax, or behind what you renormalise": (
            ".nan_to_num(0.0)",
            "",
        ),
        "each sees itself, too; only knows decides that": (
            "~knows",
            "~(knows | torch.eye(len(knows), dtype=torch.bool))",
        ),
        "now the softmax runs over those who look (dim 0); it must run over those who are looked at, dim=-1": (
            "softmax(-1)",
            "softmax(-2)",
        ),
        "the scores are no longer divided by sqrt(d_k)": (" / key.shape[-1] ** 0.5", ""),
        "all whom somebody knows count alike here: keep the scores where knows is True": (
            "scores.masked_fill",
            "(0 * scores).masked_fill",
        ),
        "a hidden score of +inf: inf - inf is nan, and nan_to_num makes 0 of the whole row; write -torch.inf": (
            "-torch.inf",
            "torch.inf",
        ),
        "a hidden score is a large number here, so strangers take all the weight: the minus is missing": (
            "-torch.inf",
            "1e9",
        ),
        **exchanged("scores = query"),
    },
    hidden=_more_attend_to_known,
)


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


path = Alike(
    name="path_edges",
    title="A window is a graph",
    stars=2,
    minutes=8,
    why="truncated attention of lesson 09 is graph attention on a path: one program for both",
    asked=(
        "write: the edges, in any order and each once, for which masks.from_edges(edges, n) is"
        " masks.window(n, radius): (2, edges), whole numbers, sources above targets"
    ),
    stages=(
        Stage(
            "three nodes, radius 1",
            lambda: [{"n": 3, "radius": 1}],
            "Each node is its own neighbour, and each sees the next one on either side: 3 + 2 + 2 = 7 edges.",
        ),
        Stage(
            "five nodes, radius 2",
            lambda: [{"n": 5, "radius": 2}],
            "Node i sees all j with |i - j| up to 2: 5 self-loops, 8 edges of distance 1, 6 of distance 2.",
        ),
        Stage("four nodes, radius 0", lambda: [{"n": 4, "radius": 0}], "Radius 0: only oneself, 4 edges."),
        Stage(
            "a radius beyond the path; a single node",
            lambda: [{"n": 4, "radius": 9}, {"n": 1, "radius": 3}],
            "The path ends: no edge leads from or to a node that is not there. All pairs are left, and with"
            " one node its self-loop.",
        ),
    ),
    reference=lambda n, radius: window(n, radius).nonzero().T.flip(0),
    seen=_in_order,
    hints=(
        (
            "Write down by hand which nodes node 0, node 1 and node 2 of three may look at. Does a window let"
            " a token see itself?"
        ),
        (
            "If i is the target, which sources j lie at most `radius` away? And which of those are not on the"
            " path?"
        ),
        (
            "With place = torch.arange(n) and step = torch.arange(-radius, radius + 1): what is place[:,"
            " None] + step, and which entries must go?"
        ),
    ),
    solution=path_edges,
    remember=(
        "a window is a path graph whose nodes also see themselves and those up to `radius` steps away; all"
        " pairs are the full graph, attention of lesson 02"
    ),
    slips={
        "no node sees itself here; a window does let a token see itself: add the edges i -> i": (
            "there = ",
            "there = (source != target) & ",
        ),
        "each node sees only itself and those before it: the edges back, from i + 1 to i, are missing": (
            ("radius + 1", "1")
        ),
        "each node sees only itself and those behind it: the edges forward, from i to i + 1, are missing": (
            ("-radius", "0")
        ),
        "your path is a ring: the ends see each other": (
            "(place[:, None] + step)",
            "((place[:, None] + step) % n)",
        ),
        "the farthest neighbours are missing: |i - j| may be equal to the radius": (
            "(source < n)",
            "(source < n) & ((source - target).abs() < radius)",
        ),
        "your nodes see one step too far": ("-radius, radius + 1", "-radius - 1, radius + 2"),
        "only those at exactly the radius are linked; those between belong to the window, too": (
            "torch.arange(-radius, radius + 1)",
            "torch.tensor([-radius, 0, radius]).unique()",
        ),
        "the radius is not used: each sees one step far, whatever it is": ("-radius, radius + 1", "-1, 2"),
        "all pairs are linked: that is full attention": ("-radius, radius + 1", "-n, n + 1"),
        "the nodes at the ends see nothing; their windows are cut, not dropped": (
            "(source >= 0) & (source < n)",
            "(source >= 0) & (source < n) & (target >= radius) & (target < n - radius)",
        ),
        "some edges lead to nodes that are not there: places run from 0 to n - 1": ("[:, there]", ""),
        "beyond the ends you link to the last node again and again: leave those edges out, clamp lists them twice": (
            ("[:, there]", ".clamp(0, n - 1)")
        ),
        "edges stand in columns: one row of sources, one of targets; yours are in rows, take .T": (
            ("[:, there]", "[:, there].T")
        ),
        "each self-loop is listed twice: distance 0 has one edge, not one before and one behind": (
            ("[:, there]", "[:, there].repeat_interleave((source == target)[there] + 1, 1)")
        ),
        "each edge is listed twice, and would count twice": (("[:, there]", "[:, there].repeat(1, 2)")),
        "your nodes are numbered from 1; the first is 0": ("[:, there]", "[:, there] + 1"),
        "distances go round a ring, so the ends see each other; a path has two ends: take |i - j| alone": (
            "    place = torch.arange(n)\n",
            "    place = torch.arange(n)\n"
            "    far = (place[:, None] - place).abs()\n"
            "    return (torch.minimum(far, n - far) <= radius).nonzero().T.flip(0)\n",
        ),
    },
    hidden=_more_path_edges,
)


mislead = Open(
    name="why_edges_mislead",
    title="Where attention along edges harms. In your own words",
    stars=2,
    minutes=7,
    why=(
        "on such graphs a network that ignores all edges beats this layer; look at the edges before you"
        " choose the model"
    ),
    asked=(
        "in two or three sentences: features hint at a node's class, edges were drawn by lot, so half of a"
        " node's neighbours are of the other class. Graph attention without self-loops gives each node the"
        " weighted sum of its neighbours. Why is that not just as good as an MLP on the node alone, but"
        " worse; why can learned weights not repair it; what would help?"
    ),
    hints=(
        (
            "The weights of a softmax are positive and sum to 1. What kind of mix of the neighbours' values"
            " is the output, and where must it lie?"
        ),
        (
            "Take a node of each class. What do the neighbours of the one look like, and those of the other?"
            " So what do the two outputs look like?"
        ),
        "What does the MLP read that is nowhere in the mix? How could it come in, beside the mix or into it?",
    ),
    solution=(
        "Softmax weights are positive and sum to 1, so the output is an average of the neighbours, and here"
        " that is a mix of both classes, alike for nodes of either class. The node's own features, the only"
        " hint at its class, are not in it, and weights among neighbours cannot put them in; at best they"
        " pick neighbours that resemble the node. What helps is to keep its own features: a self-loop, or"
        " better a place beside the average (a skip connection, concatenation). If nearly every edge led"
        " across, by the way, the average would tell the class again, turned round: the mix is the worst"
        " case."
    ),
    remember=(
        "edges say who, not who is alike: attention averages neighbours, so keep the node's own features"
        " beside the average; a mix of classes is the worst case"
    ),
    slips={
        "softmax weights are never negative, so the layer cannot subtract a neighbour": (
            r"negative weights? (\w+ ){0,3}(learn|can|could|will|for|on|to)|learns? (\w+ ){0,2}negative"
            r" weights?|weights? (can|could|may|will) (be|become) negative"
        ),
        "half of the neighbours are of the other class; were it all of them, the average would tell the class, turned round": (
            r"\b(all|only|always|every|each) (of )?(\w+ ){0,5}(other|opposite|another|different|wrong)"
            r" (class|kind|type|group)"
        ),
        "it is not about the amount of data: with endless data the average of the neighbours would be the same": (
            r"overfit|too (few|little) (data|labels?|examples|nodes)|more (data|labels|training)|too many"
            r" parameters"
        ),
        "more layers only average more, until all nodes look alike; what is missing must come in from elsewhere": (
            r"(more|deeper|additional|further|extra) layers|a deeper (network|model|gat)|stack more"
        ),
        "more heads are more averages of the same neighbours; none of them holds the node itself": (
            r"(more|additional|several|many) heads"
        ),
        "an MLP sees no edges at all; what it has is the node's own features, unmixed": (
            r"mlp (\w+ ){0,2}(sees|looks at|uses|knows|reads) (\w+"
            r" )?(all|other|every|everything|neighbou?rs|edges)"
        ),
        "hiding the wrong neighbours would need the classes, which are asked for": (
            r"(set|give|mask|hide|remove|drop|cut) (\w+ ){0,6}(wrong|other class|different class|unlike)"
        ),
    },
    points=(
        "what kind of mix do softmax weights make: which signs, which sum?",
        "what is in that mix, for a node of the one class and of the other?",
        "what does the MLP have that the mix has not, and how could it come in?",
    ),
)


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


segments = Write(
    name="softmax_over_edges",
    second=lambda n: seconds.LOG_SUMS,
    title="A softmax for each node",
    stars=3,
    minutes=12,
    why=(
        "this is the heart of every graph attention layer: a softmax whose rows have different lengths,"
        " without a table of all pairs"
    ),
    asked=(
        "write: for each head, weight of edge j -> i = exp(score) / sum of exp over all edges to the SAME"
        " target i; finite for scores of 1,000, too; no table (n, n)"
    ),
    stages=(
        Stage(
            "four nodes, one head: two edges to node 0, one to node 2",
            lambda: [_on([[0.0], [LN_3], [2.0]], (1, 0), (2, 0), (3, 2), n=4)],
            "exp makes 1 and 3 of the scores at node 0: weights 0.25 and 0.75. The only edge of node 2 has"
            " weight 1. Nodes 1 and 3 have none.",
        ),
        Stage(
            "six nodes, eight edges in no order, one head; then two edges alone",
            lambda: [
                {"scores": drawn(1, 8, 1), "edge_index": MIXED, "n": 6},
                _on([[0.0], [LN_3]], (0, 5), (1, 5), n=6),
            ],
            "edge_index[1] holds the targets; weights of the edges with one target sum to 1.",
        ),
        Stage(
            "the same with three heads",
            lambda: [{"scores": drawn(2, 8, 3), "edge_index": MIXED, "n": 6}],
            "Each head, a column of scores, has weights of its own.",
        ),
        Stage(
            "scores of 1,000",
            lambda: [_on([[1000.0], [1000.0], [999.0]], (1, 0), (2, 0), (0, 2), n=3)],
            "Subtract the highest score of each target before exp: 0.5 and 0.5, and 1 for the edge to"
            " node 2.",
        ),
        Stage(
            "scores of -1,000",
            lambda: [_on([[-1000.0], [-1000.0], [-999.0]], (1, 0), (2, 0), (0, 2), n=3)],
            "The highest score may be negative. Subtracted, it leaves 0 and 0, so the weights are 0.5 and"
            " 0.5, and 1 for the edge to node 2.",
        ),
        Stage(
            "1,000 at one node, -1,000 at the other",
            lambda: [_on([[1000.0], [-1000.0], [-1000.0], [1000.0]], (1, 0), (2, 1), (0, 1), (2, 0), n=3)],
            "The highest score is each target's own. All four weights are 0.5.",
        ),
    ),
    reference=_node_by_node,
    extra=_no_table,
    hints=(
        (
            "The sums of exp, one for each node and head, are a tensor (n, h). How do you add up with"
            " index_add, and how does an edge read the sum of its target?"
        ),
        (
            "exp(1000) is inf. What may be subtracted from all scores of one target without changing a"
            " weight, and whose maximum is it?"
        ),
        (
            'scatter_reduce(0, index, scores, "amax") needs an index of the shape of scores and a tensor to'
            " begin with. Which number must stand there, if a maximum may be -1000?"
        ),
    ),
    solution=softmax_over_edges,
    remember=(
        "gather, exp, index_add, divide: the softmax of a graph costs a number per edge and one per node;"
        " subtract each target's own maximum, begun at -inf"
    ),
    slips={
        "your weights sum to 1 over the edges that LEAVE a node; each target shares out its own weight: edge_index[1]": (
            "edge_index[1]",
            "edge_index[0]",
        ),
        "your softmax runs over all edges of the graph; each target has its own": (
            "edge_index[1]",
            "torch.zeros_like(edge_index[1])",
        ),
        "your softmax runs over the heads; each head has weights of its own": (
            "weights / total[target]",
            "scores.softmax(1)",
        ),
        "no maximum is subtracted: exp(1000) is inf, and inf/inf is nan": (
            "scores - highest[target]",
            "scores",
        ),
        "one maximum for the whole graph does not do: at a node whose scores are far below it, exp gives 0, and 0/0 is nan": (
            "highest[target]",
            "scores.amax(0)",
        ),
        "your maxima begin at 0, so scores of -1,000 give exp(-1000) = 0, and 0/0 is nan: begin at -inf": (
            ("-torch.inf", "0.0")
        ),
        "you subtract the maximum of each edge's SOURCE; edges to one target then lose different numbers, and that changes the weights": (
            "index = target",
            "index = edge_index[0]",
            "highest[target]",
            "highest[edge_index[0]]",
        ),
        "the division is missing: divide by the sum over the edges to the same target": (
            " / total[target]",
            "",
        ),
        "exp is missing: scores are shared out, and they may be negative": (
            "(scores - highest[target]).exp()",
            "scores",
        ),
        "the scores are not used: all edges to a node have one weight": (
            "(scores - highest[target]).exp()",
            "torch.ones_like(scores)",
        ),
        "the sums run over all heads together; each head has its own": (
            "target, weights)",
            "target, weights).sum(1, keepdim=True)",
        ),
        "edges to one target need not stand side by side: group them by edge_index[1], not by their order": (
            _segments(group=_runs)
        ),
        "you take 2 to the power of the score; softmax takes e": (".exp()", ".exp2()"),
        NODE_TABLE: _by_node_table,
        "you multiply by the sum over the edges to the same target; divide by it": (
            "weights / total",
            "weights * total",
        ),
    },
    hidden=_more_softmax_over_edges,
)


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


gcn = Alike(
    name="gcn_scores",
    title="GCN is attention that never learns where to look",
    stars=3,
    minutes=10,
    why=(
        "with it you can say in one sentence what graph attention adds to a GCN, and test whether it was"
        " worth it"
    ),
    asked=(
        "write: a score for each edge, so that the softmax over the edges to one node gives GCN's weights"
        " 1/sqrt(d_i d_j), divided by their sum at that node; d counts the edges that lead to a node, its"
        " self-loop included"
    ),
    stages=(
        Stage(
            "a path 0 - 1 - 2, with self-loops",
            lambda: [_both_ways((0, 1), (1, 2), n=3)],
            "Degrees 2, 3, 2. At node 0, GCN's weights of 1 and of 0 itself are to each other as 1/sqrt(3) to"
            " 1/sqrt(2): the scores differ by ln sqrt(3/2) = 0.2027. (Shown are your scores, moved so that"
            " the highest at each node is 0; only differences count.)",
        ),
        Stage(
            "a star: 0 is linked to 1, 2, 3; node 4 has its self-loop alone",
            lambda: [_both_ways((0, 1), (0, 2), (0, 3), n=5)],
            "Degrees 4, 2, 2, 2, 1. A leaf weighs its hub less than itself, since the hub has many edges.",
        ),
        Stage(
            "seven nodes",
            lambda: [_both_ways((0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (0, 5), (4, 5), n=7)],
            "The score of an edge j -> i is ln(1/sqrt(d_i d_j)), or that plus any number that depends on i"
            " alone.",
        ),
    ),
    reference=_log_of_weights,
    seen=_highest_0,
    hints=(
        (
            "Softmax computes exp(score) / sum of exp(score). Which score gives exp(score) = w, for a weight"
            " w that you know?"
        ),
        (
            "Which of the two degrees in 1/sqrt(d_i d_j) is the same for all edges that lead to i? What does"
            " a softmax do with a number that all scores have in common?"
        ),
        (
            "edge_index[1].bincount(minlength=n) counts the edges to each node, self-loops included. Is it"
            " the source's or the target's degree that an edge must read?"
        ),
    ),
    solution=gcn_scores,
    remember=(
        "GCN, with each row divided by its sum, is attention with the score -(1/2) ln d_j: the source's"
        " degree decides, the content never; score 0 is the mean version"
    ),
    slips={
        "your scores are alike for all edges to a node, which is the mean version, 1/d_i each: what depends on the target alone cancels, d_j must come in": (
            "-0.5 * degree[source].log()",
            "0.0 * degree[source]",
        ),
        "these are GCN's weights themselves, and softmax takes exp of them: give it their logarithm": (
            ("-0.5 * degree[source].log()", "1 / (degree[source] * degree[target]).sqrt()")
        ),
        "softmax takes exp of your 1/sqrt(d_j): give it the logarithm": (
            "-0.5 * degree[source].log()",
            "1 / degree[source].sqrt()",
        ),
        "the sign is turned round: neighbours with many edges must count less": ("-0.5", "0.5"),
        "the root is missing: the logarithm of 1/sqrt(d) is -(1/2) ln d": ("-0.5 * ", "-"),
        "sign and root: the logarithm of 1/sqrt(d) is -(1/2) ln d, yours is ln d": ("-0.5 * ", ""),
        "the degree itself is no score here: exp(-d) falls far faster than 1/sqrt(d)": (
            "-0.5 * degree[source].log()",
            "-degree[source].float()",
        ),
        "the degree itself is no score here, and neighbours with many edges must count less": (
            "-0.5 * degree[source].log()",
            "degree[source].float()",
        ),
        "self-loops are in the list and count: do not take them off": ("minlength=n)", "minlength=n) - 1"),
        "self-loops are in the list already: do not count them twice": ("minlength=n)", "minlength=n) + 1"),
        "softmax has the base e: take the natural logarithm, not the one of base 2": ("log()", "log2()"),
        "softmax has the base e: take the natural logarithm, not the one of base 10": ("log()", "log10()"),
    },
    hidden=_more_gcn_scores,
)


EXERCISES = (
    *part_10a.ASKED,
    *part_10b.ASKED,
    neighbours,
    messages,
    isolated,
    known,
    path,
    mislead,
    segments,
    gcn,
)
