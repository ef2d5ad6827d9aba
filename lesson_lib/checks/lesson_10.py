"""Exercises of lesson 10, graph attention: who may look at whom, and what edges cannot say."""

import math
from typing import Any

import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import table
from lesson_lib.checks.lesson_10_code import gcn, known, messages, path, segments

neighbours = Number(
    name="three_neighbours",
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
    right=(
        16,
        "96 / 6",
        "60/6 + 2*12/6 + 3*4/6",
        "(exp(0)*60 + exp(ln(2))*12 + exp(ln(3))*4) / (exp(0) + 2 + 3)",
    ),
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
    from lesson_lib import plots

    return plots.heatmap(
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
    title="What does a lonely node get?",
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
    right=("c", " (C)"),
    picture=_isolated_picture,
)

mislead = Open(
    name="why_edges_mislead",
    title="Where attention along edges harms",
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
    wrong={
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
    points={
        "what kind of mix do softmax weights make: which signs, which sum?": (
            r"\baverag|\bmeans?\b|convex|sums? (up )?to (1|one)|summing to|positive|non-?negative|between"
            r" (its |the |their )?neighbou?rs|smooth|\bblend|\bmix|combin|sum (of|holds|contains|has)\b"
        ),
        "what is in that mix, for a node of the one class and of the other?": (
            r"\bhalf\b|both (classes|kinds|types|groups)|two classes|alike|same"
            r" (mix|average|mean|for|whatever|output)|cancel|blur|wash|indistinguish|similar|(other|another|opposite|different|either|any|wrong)"
            r" (class|kind|type|group)|"
            r"random|by lot|unrelated|no(thing| information)|heterophil|50 ?%"
        ),
        "what does the MLP have that the mix has not, and how could it come in?": (
            r"\bself\b|self-?loops?|skip|residual|\bown\b|itself|concat|beside|\bego\b"
        ),
    },
    slips={
        "softmax weights are never negative, so the layer cannot subtract a neighbour": (
            "GAT would have to learn negative weights for the other class."
        ),
        "half of the neighbours are of the other class; were it all of them, the average would tell the class, turned round": (
            "All neighbours are of the other class, so the node takes on the look of that."
        ),
        "it is not about the amount of data: with endless data the average of the neighbours would be the same": (
            "The attention weights overfit since there are many of them."
        ),
        "more layers only average more, until all nodes look alike; what is missing must come in from elsewhere": (
            "With more layers it would find the right nodes further away."
        ),
        "more heads are more averages of the same neighbours; none of them holds the node itself": (
            "It should have more heads, one for each class."
        ),
        "an MLP sees no edges at all; what it has is the node's own features, unmixed": (
            "The MLP sees all nodes at once."
        ),
        "hiding the wrong neighbours would need the classes, which are asked for": (
            "One should mask the edges to nodes of the other class."
        ),
    },
    right=(
        (
            "The output is a convex combination of neighbours, half of which are of the other class, so it"
            " looks the same for both classes whatever the weights are. A residual connection brings the"
            " node's own features back."
        ),
        (
            "Weights that are positive and sum to one can only average. The neighbours are drawn by lot, so"
            " every average is a blur of the two classes; adding self-loops or concatenating the node's"
            " features lets it stay what it is."
        ),
        (
            "GAT smooths over neighbours that have nothing to do with the node's class. The MLP reads the"
            " node itself, and the layer throws that away; keep it beside the neighbours' mean."
        ),
    ),
)

EXERCISES = (neighbours, messages, isolated, known, path, mislead, segments, gcn)
