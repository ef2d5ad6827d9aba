"""Exercises of lesson 08, what did the RNN lack? Cost, ways, states, and what can be computed at once."""

from collections.abc import Callable
from typing import Any

import networkx
import torch
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.lesson_08_code import at_once, fading, gru
from lesson_lib.measure import dependencies

meets = Number(
    name="lstm_meets_attention",
    title="Where do they cost the same?",
    stars=1,
    minutes=6,
    why=(
        '"attention costs n^2" is half of the truth: up to a length that you can compute, it is the'
        " cheaper one"
    ),
    asked=(
        "a bidirectional LSTM, two LSTMs of d = 48 numbers side by side, and a layer of self-attention WITH"
        " its four projections, tokens of d = 48 numbers: at how many tokens n do they need equally many"
        " multiplications in their matrix products?"
    ),
    value=288,
    hints=(
        (
            "An LSTM makes four blocks at each token, three gates and what is to be written. Which two"
            " matrices, each d x d, does a block multiply? And how many LSTMs are there?"
        ),
        (
            "How many multiplications is one projection of n tokens, a product (n, d) by (d, d)? How many"
            " projections are there, and what is between them?"
        ),
        (
            "The scores are n^2 products of d multiplications each. How many are the mixed values? Set both"
            " sums equal, divide by n and by d: what is left?"
        ),
    ),
    solution=(
        "an LSTM: four blocks of W x and U h, so 8 n d^2; two of them, 16 n d^2. Attention: four projections,"
        " 4 n d^2, then the scores and the mix, n^2 d each. 16 n d^2 = 4 n d^2 + 2 n^2 d, so 2 n = 12 d and n"
        " = 6 d = 288."
    ),
    remember=(
        "attention needs 4 n d^2 + 2 n^2 d, an LSTM 8 n d^2 in each direction: up to n = 6 d attention needs"
        " fewer multiplications than both; seconds are another matter"
    ),
    slips={
        "that is without the four projections; they are 4 n d^2": 384,
        "one of the two products of size n x n is missing: first the scores, then the mix": 576,
        "that is where it meets ONE LSTM, or two with one matrix in each block; each block has two, W for the token and U for the state": (
            96
        ),
        "that is where it meets two GRUs, of three blocks each; an LSTM has four. Or one matrix in each block, and no projections: each block has two, W and U": (
            192
        ),
        "two plain RNNs have two blocks, 4 n d^2, and are cheaper than such a layer at any length; an LSTM has four": (
            0
        ),
        "you counted three projections; W_o behind the heads is the fourth": 312,
        "you counted two projections; queries, keys, values and the output have one each": 336,
        "the projections and one of the two products of size n x n are missing": 768,
    },
    right=(288, "6 * 48", "(16 - 4) * 48 / 2"),
)

TOKENS = 17


def _window(x: list[Tensor], radius: int, unit: Callable[[Tensor, Tensor], Tensor]) -> dict[Any, Tensor]:
    """Layers in which each token is computed from those up to `radius` away, as many as the first token needs
    to the last."""
    units = {}
    for layer in range(-(-(len(x) - 1) // radius)):
        x = [unit(x[i], torch.stack(x[max(0, i - radius) : i + radius + 1])) for i in range(len(x))]
        units |= {(layer, i): token for i, token in enumerate(x)}
    return units


def _attended(x: Tensor, seen: Tensor) -> Tensor:
    return attend(x[None], seen, seen).output[0]


def _both_ways(x: list[Tensor]) -> dict[Any, Tensor]:
    """A BiRNN: states from the left, states from the right, and both side by side, which is what is known at
    a position."""
    units = {}
    for side, places in (("left", range(len(x))), ("right", reversed(range(len(x))))):
        state = torch.zeros_like(x[0])
        for i in places:
            state = units[side, (i,)] = torch.tanh(x[i] + state)
    joined = {("output", i): torch.cat([units["left", (i,)], units["right", (i,)]]) for i in range(len(x))}
    return units | joined


def units_on_the_way() -> dict[str, list[int]]:
    """For each network and position: how many units the first token passes until it is known there, by the
    networks' graphs."""
    networks: dict[str, Callable[[list[Tensor]], dict[Any, Tensor]]] = {
        "convolutions, kernel 5": lambda x: _window(x, 2, lambda _, seen: seen.sum(0)),
        "window attention, radius 3": lambda x: _window(x, 3, _attended),
        "BiRNN": _both_ways,
        "full attention": lambda x: _window(x, TOKENS, _attended),
    }
    found = {}
    for name, network in networks.items():
        x = [token.requires_grad_() for token in drawn(8, TOKENS, 2).unbind(0)]
        with torch.enable_grad():
            graph = dependencies({("input", i): token for i, token in enumerate(x)}, network(x))
        lengths = networkx.single_source_shortest_path_length(graph, ("input", 0))
        found[name] = [
            min(lengths[k] for k in lengths if k[1] == i and k[0] != "input") for i in range(TOKENS)
        ]
    return found


def _way_picture() -> Any:
    from lesson_lib import plots

    places = list(range(1, TOKENS + 1))
    return plots.lines(
        {"units on the way": {name: (places, units) for name, units in units_on_the_way().items()}},
        alt=(
            "Four curves over 17 positions: a straight line up to 18, two staircases up to 8 and to 6, and a"
            " flat line at 1."
        ),
        caption=(
            "How many layers or states the first token passes until it is known at a position, counted in the"
            " networks' graphs. The way to the farthest token is what papers call the longest path."
        ),
        x_axis="position",
        y_limits=(0.0, None),
    )


way = Choice(
    name="way_to_the_last",
    title="How long is the way?",
    stars=2,
    minutes=6,
    why="each unit on the way can lose something of the signal, and of the gradient that must come back",
    asked=(
        "17 tokens; how many units does the first token pass to the last position: convolutions (kernel 5),"
        " window attention (radius 3), a BiRNN, full attention?"
    ),
    options={
        "a": "convolutions 4, window 3, BiRNN 18, full attention 1",
        "b": "convolutions 8, window 6, BiRNN 10, full attention 1",
        "c": "convolutions 8, window 6, BiRNN 18, full attention 1",
        "d": "convolutions 8, window 6, BiRNN 18, full attention 17",
        "e": "convolutions 1, window 1, BiRNN 18, full attention 1",
        "f": "convolutions 8, window 5, BiRNN 18, full attention 1",
    },
    hints=(
        (
            "How far to the right does one convolution with kernel 5 carry a token, if the kernel stands with"
            " its middle on each position? And one window of radius 3?"
        ),
        (
            "The last position is 16 places from the first. How many layers of reach 2 does that take, how"
            " many of reach 3?"
        ),
        (
            "A BiRNN has a layer from the left and one from the right. Which of them can carry the first"
            " token to the last position, and how many states does it pass, the first and the last one"
            " counted? Joining the two is one more unit."
        ),
    ),
    solution=(
        "c: a kernel of 5 reaches 2 places to each side, 16 / 2 = 8 layers; radius 3 needs 6 layers, since 5"
        " reach only 15 places. In a BiRNN the layer from the right knows the first token at the first"
        " position alone, so it must pass all 17 states of the other, and be joined: 18. Full attention asks"
        " it directly: 1."
    ),
    remember=(
        "reach per layer decides: (n - 1) / r layers, rounded up; reading both ways does not shorten the way"
        " from end to end, asking directly does"
    ),
    slips={
        "a divides by the whole width; a kernel of 5 reaches only 2 places to each side, and a window 3": "a",
        "b lets the BiRNN meet in the middle; its two layers never exchange anything on the way, each carries a token all the way": (
            "b"
        ),
        "d confuses the way with the number of tokens that are asked: the last position asks the first one directly": (
            "d"
        ),
        "e confuses two counts: all tokens of a LAYER are computed at once, but a token comes only 2 or 3 places far in one": (
            "e"
        ),
        "f rounds down; five layers of reach 3 end one place before the goal, 15 of 16": "f",
    },
    right=("c", " (C)"),
    picture=_way_picture,
)

state = Number(
    name="from_the_state",
    title="The tokens are gone, the state is enough",
    stars=2,
    minutes=6,
    why="this is all that is computed for a new token, whether two tokens came before it or two million",
    asked=(
        "S = (100, 40) and z = (4, 2) is what linear attention kept of the tokens so far; a token comes with"
        " query (0, 1), key (1, 0), value 42: what is its output?"
    ),
    value=29,
    hints=(
        "What does phi(x) = elu(x) + 1 make of a 0, and what of a 1?",
        (
            "The token sees itself, too. So what comes first, reading the state or adding phi(k) v to S and"
            " phi(k) to z?"
        ),
        "Now phi(q) reads both: phi(q) . S and phi(q) . z. What is done with the two numbers?",
    ),
    solution=(
        "phi(q) = (1, 2), phi(k) = (2, 1). The token is taken up: S = (100 + 84, 40 + 42) = (184, 82), z ="
        " (6, 3). Then it reads: (184 + 2 * 82) / (6 + 2 * 3) = 348 / 12 = 29."
    ),
    remember=(
        "take up phi(k) v and phi(k), then divide phi(q) . S by phi(q) . z: the same work for every token,"
        " and the tokens themselves are not needed"
    ),
    slips={
        "the token must see itself: add phi(k) v to S and phi(k) to z, then read": "180 / 8",
        "the state is taken up rightly, but the query needs phi, too: (0, 1) becomes (1, 2)": "82 / 3",
        "the key needs phi, too: (1, 0) becomes (2, 1)": "222 / 9",
        "phi is missing: elu(x) + 1 makes a 1 of each 0, and a 2 of each 1": "40 / 2",
        "divide by phi(q) . z, the sum of all weights": 348,
        "z takes up the token, too: phi(k) is added to it": "348 / 8",
        "the sum S takes up the token, too: phi(k) v is added to it": "180 / 12",
        "divide by phi(q) . z, not by a number of tokens (which the state does not even know)": "348 / 3",
        "42 is the token's own value; it is mixed with those before, whose sum is in S": 42,
        "query and key have changed places: the key enters the state, the query reads it": "408 / 14",
        "first read S and z with phi(q), then divide; you divided S by z entry by entry": (
            "184 / 6 + 2 * 82 / 3"
        ),
        "phi is elu(x) + 1, which is x + 1 from 0 upwards; you took exp": (
            "(100 + 42*e + 82*e) / (4 + e + 3*e)"
        ),
    },
    right=(29, "348 / 12", "(100 + 2*42 + 2*(40 + 42)) / (4 + 2 + 2*(2 + 1))"),
)

cache = Number(
    name="cache_and_state",
    title="What must be kept while writing?",
    stars=2,
    minutes=6,
    why=(
        "when long texts are written, this memory, and reading it again for every token, is one of the limits"
        " of a model"
    ),
    asked=(
        "one layer, d_model = 512, 8 heads of width 64, after 1,000 tokens: how many times as many numbers"
        " hold the keys and values that softmax attention keeps as the states S and z of linear attention?"
    ),
    value=2 * 512 * 1000 / (8 * (64 * 64 + 64)),
    tolerance=0.01,
    hints=(
        (
            "A new query must be compared with every key before it, and mixes all values. How many numbers"
            " are the keys and values of one token, over all heads?"
        ),
        (
            "In one head S is a sum of outer products of a key and a value, each of width 64. How many"
            " numbers is it? And z?"
        ),
        "How many heads have such a state? And which of the two grows when the 1,001st token comes?",
    ),
    solution=(
        "keys and values of 1,000 tokens: 2 * 512 * 1,000 = 1,024,000. The state: in each of 8 heads S has 64"
        " * 64 numbers and z has 64, in all 33,280. The quotient is 30.8, and with every further token it"
        " grows."
    ),
    remember=(
        "the cache is 2 n d_model and grows with n, the state is d_model (d_k + 1) and stays; what does not"
        " grow cannot hold everything"
    ),
    slips={
        "you took one head of width 512; each of 8 heads has an S of 64 x 64 and a z of 64": (
            "2*512*1000 / (512*512 + 512)"
        ),
        "z is missing: each head also keeps the sum of its phi(k), 64 numbers": "2*512*1000 / (8*64*64)",
        "both are kept, keys and values: 2 * 512 numbers a token": "512*1000 / (8*(64*64 + 64))",
        "keys and values are both kept, and each head has a z of 64 numbers": "512*1000 / (8*64*64)",
        "you counted the state of one head; there are 8": "2*512*1000 / (64*64 + 64)",
        "you counted the state of one head, and without its z; there are 8": "2*512*1000 / (64*64)",
        "you counted the cache of one head; there are 8": "2*64*1000 / (8*(64*64 + 64))",
        "the tables of weights are not kept: a row of them is made anew for each token; keys and values are kept": (
            "8*1000*1000 / (8*(64*64 + 64))"
        ),
        "the quotient is upside down: how many times as many are in the CACHE?": (
            "8*(64*64 + 64) / (2*512*1000)"
        ),
        "this is the cache itself; divide it by the numbers of all states": "2*512*1000",
        "this is the state itself; how many times as many numbers has the cache?": "8*(64*64 + 64)",
    },
    right=(30.77, "2*512*1000 / (8 * (64*64 + 64))", "1024000 / 33280", 30.8, 31),
)

waits = Open(
    name="why_tanh_waits",
    title="Which of them must wait?",
    stars=2,
    minutes=7,
    why=(
        '"an RNN cannot run in parallel" is true of one kind of RNN; the other kind is trained in parallel'
        " today"
    ),
    asked=(
        "in two or three sentences: (1) h_i = tanh(W x_i + U h_(i-1)), (2) h_i = a_i h_(i-1) + W x_i with a_i"
        " computed from x_i. All x are known. Why can all states of (2) be found in about log2(n) rounds, and"
        " those of (1) not, in this way?"
    ),
    hints=(
        (
            "Both need the state before. Write two steps of (2) as one: what is h_2 as a function of h_0, if"
            " you multiply it out?"
        ),
        (
            "Try the same with (1): can tanh(W x_2 + U tanh(W x_1 + U h_0)) be written with ONE tanh of"
            " something linear in h_0?"
        ),
        (
            "If any two steps can be joined into one, who can begin at once? How many rounds does it take, if"
            " pairs are joined, then pairs of pairs?"
        ),
    ),
    solution=(
        "Two steps of (2) are again a linear step: the factors multiply, and what was added is carried along."
        " So neighbouring steps can be joined in pairs, all pairs at once, then pairs of pairs, and after"
        " log2(n) rounds everything is done. With (1) a tanh stands between two steps, so two of them are no"
        " step of the same form: nothing can be joined before the state itself is known, and the states come"
        " one after the other."
    ),
    remember=(
        "not the loop makes an RNN wait but the tanh in it: linear steps can be joined in any grouping, steps"
        " with a tanh between them cannot"
    ),
    wrong={
        "(2) needs the state before, too; it is only that its steps can be joined before the state is known": (
            r"states? (\w+ ){0,4}(is|are) (\w+ )?independent|independent of (each other|one another)|"
            r"\bonly (the )?(first|\(1\)|1) (needs|depends|uses)"
        ),
        "a cheaper function would not help: it is not how long one step takes, but that it waits for the one before": (
            r"tanh (is|takes|costs|needs) (\w+"
            r" )?(slow|expensive|long|costly|complicated|more|time)|(slow|expensive|costly) (to"
            r" compute|function|tanh)"
        ),
        "more processors do not help (1): however many there are, each state waits for the one before": (
            r"(?<!given )(more|enough|many|faster) (cores|threads|gpus?|processors|hardware|memory)"
        ),
        "gradients are another question; asked is in which order the states can be computed": (
            r"vanish|explod|(?<!regardless of )(?<!regardless of the )gradient|backprop|saturat"
        ),
        "what is fed back here is the state, not the output; an output fed back could be known in training, a state cannot": (
            r"previous outputs?|last outputs?|teacher forc|own (words?|outputs?|predictions?)|predicted"
            r" (word|token)s?"
        ),
        "both are given all x at once; that is not the difference": (
            r"(?<!both )(sees?|reads?|looks at|has access to) (all|the whole) (the"
            r" )?(x|tokens?|inputs?|sequence|sentence)"
        ),
        "both use their weights at every token; it is not about sharing or counting them": (
            r"shares? (its |the )?weights|shared weights|weight sharing|(fewer|less|more)"
            r" (parameters|weights)"
        ),
    },
    points={
        "what do two steps of (2) make together? Multiply them out": (
            r"\bone (linear |affine )?(step|map)|(again|still|also|another|a single|same) (a |of )?(the"
            r" )?(linear|affine|step|form|kind|same)|same form|factors? (multipl|can be multipl)|"
            r"multipl(y|ied|ying) (out|together|them|their|the (two"
            r" )?factors)|associativ|compos|combin|unroll|applying (it|both) twice|affine"
            r" again|regroup|\bproducts?\b|\bjoin|\bmerge"
        ),
        "what stands between two steps of (1), and what does it prevent?": r"\btanh|non-?linear|squash",
        "what is gained: who can begin at once, or how is it grouped?": (
            r"\bpairs?\b|\bhal(f|ves)|doubl|prefix|divide and conquer|in parallel|at once|any"
            r" (order|grouping)|group|tree|scan|\blog|simultan|at the same time|chunk|bracket"
        ),
    },
    slips={
        "(2) needs the state before, too; it is only that its steps can be joined before the state is known": (
            "In the second one the states are independent of each other."
        ),
        "a cheaper function would not help: it is not how long one step takes, but that it waits for the one before": (
            "The tanh is slow, the product is fast."
        ),
        "more processors do not help (1): however many there are, each state waits for the one before": (
            "With enough cores the first one would be parallel as well."
        ),
        "gradients are another question; asked is in which order the states can be computed": (
            "The tanh makes the gradients vanish."
        ),
        "what is fed back here is the state, not the output; an output fed back could be known in training, a state cannot": (
            "The RNN has to wait for its previous output."
        ),
        "both are given all x at once; that is not the difference": (
            "The second one sees all tokens, the first sees one at a time."
        ),
        "both use their weights at every token; it is not about sharing or counting them": (
            "The second has fewer parameters than the first."
        ),
    },
    right=(
        (
            "Composing two linear steps gives one linear step, with the product of the factors, so they can"
            " be grouped in any way, like a tree. A tanh in between destroys that."
        ),
        (
            "(2) is associative: a_2 (a_1 h + b_1) + b_2 has the same form, and halves of the sequence can be"
            " worked on at the same time. (1) is nonlinear, one must know h before the next tanh."
        ),
        (
            "In the second recurrence I can merge neighbouring steps by multiplying their factors before the"
            " state is known, in parallel; the nonlinearity of the first one does not let me."
        ),
    ),
)

EXERCISES = (meets, way, gru, state, fading, cache, at_once, waits)
