"""Exercises of chapter 08, what did the RNN lack? Cost, ways, states, and what can be computed at once.

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

import math
import re
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import costs, linear, remembering, seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.linear import feature_map
from lesson_lib.masks import causal
from lesson_lib.measure import dependencies

meets = Number(
    name="lstm_meets_attention",
    second=lambda n: seconds.lstm_meets_attention(meets, n),
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
    answer="(16 - 4) * 48 / 2",
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
    import networkx  # here, since every warm_up() imports this file

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
    from lesson_lib import charts

    places = list(range(1, TOKENS + 1))
    return charts.lines(
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
    title="How long is the way? Predict the picture",
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
    answer="c",
    picture=_way_picture,
)


def gru_step(
    x: Float[Tensor, "b d_token"],
    state: Float[Tensor, "b d_hidden"],
    W: Float[Tensor, "gates d_token"],
    U: Float[Tensor, "gates d_hidden"],
    b: Float[Tensor, " gates"],
    c: Float[Tensor, " gates"],
) -> Float[Tensor, "b d_hidden"]:
    new_r, new_z, new_n = (x @ W.T + b).chunk(3, dim=-1)
    old_r, old_z, old_n = (state @ U.T + c).chunk(3, dim=-1)
    r = torch.sigmoid(new_r + old_r)
    z = torch.sigmoid(new_z + old_z)
    n = torch.tanh(new_n + r * old_n)
    return (1 - z) * n + z * state


def _no_products(state: float, b: list[float], U: list[float], c: list[float]) -> Case:
    """One number; the token is multiplied by zeros."""
    return {
        "x": table([[5.0]]),
        "state": table([[state]]),
        "W": table([[0.0]] * 3),
        "U": table([[u] for u in U]),
        "b": table(b),
        "c": table(c),
    }


def _cell(seed: int, b: int, d_token: int, d_hidden: int) -> Case:
    shapes = {
        "x": (b, d_token),
        "state": (b, d_hidden),
        "W": (3 * d_hidden, d_token),
        "U": (3 * d_hidden, d_hidden),
        "b": (3 * d_hidden,),
        "c": (3 * d_hidden,),
    }
    return {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


LOG_3 = math.log(3.0)


def _more_gru_step(drawn: Draw) -> list[Case]:
    shapes = {
        "x": (3, 7),
        "state": (3, 5),
        "W": (15, 7),
        "U": (15, 5),
        "b": (15,),
        "c": (15,),
    }
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


gru = Write(
    name="gru_step",
    second=lambda n: seconds.gru_step(gru),
    title="A gate the wrong way round: a repair",
    stars=2,
    minutes=8,
    why=(
        "papers define this gate both ways; with weights learned the other way the shapes fit, and what"
        " should be kept is forgotten"
    ),
    asked=(
        "repair: a GRU's state one token further, in torch's form: r, z, n as below, and then (1 - z) n + z"
        " state"
    ),
    repair=True,
    stages=(
        Stage(
            "one number: the state is 8, r = 1/2, z = 3/4, n = tanh(0)",
            lambda: [_no_products(8.0, [0.0, LOG_3, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])],
            "A quarter of n, which is 0, and three quarters of the state, which is 8, are 6.",
        ),
        Stage(
            "one number: the reset gate, and both biases, are at work",
            lambda: [
                _no_products(0.5, [-LOG_3, 0.0, 0.2], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
                _no_products(0.5, [-LOG_3, 0.0, 0.2], [0.0, 0.0, 2.0], [0.0, LOG_3, 1.0]),
            ],
            "In n the gate r multiplies all that comes from the state, U h + c; z does not touch it.",
        ),
        Stage(
            "one sequence, a token of two numbers, a state of three",
            lambda: [_cell(1, 1, 2, 3)],
            "The rows of W, U, b and c come in three blocks: r first, then z, then n.",
        ),
        Stage(
            "two sequences, a token of five numbers, a state of three; then of two and five",
            lambda: [_cell(11, 2, 5, 3), _cell(21, 2, 2, 5)],
            "Each row of x has its own row of state.",
        ),
    ),
    reference=lambda x, state, W, U, b, c: torch.gru_cell(x, state, W, U, b, c),
    hints=(
        "Take z = 1 in the formula (1 - z) n + z state. What is left? And in the function as it stands?",
        (
            "All numbers of z are between 0 and 1. Which of the two, n or the state, does a z near 1 keep"
            " here, and which does the asked form keep?"
        ),
        "Only the last line is wrong. Which two names in it must change places?",
    ),
    solution=gru_step,
    remember=(
        "in torch's GRU z near 1 keeps the state; other papers call the opposite gate z, so look before you"
        " load weights"
    ),
    slips={
        "this is still the function as it was given": (
            "return (1 - z) * n + z * state",
            "return (1 - z) * state + z * n",
        ),
        "now r and z have changed places: in torch the blocks are r, z, n (Keras stores z first)": (
            "new_r, new_z, new_n",
            "new_z, new_r, new_n",
            "old_r, old_z, old_n",
            "old_z, old_r, old_n",
        ),
        "the order r, z, n was right; the last line is turned round: (1 - z) n + z state": (
            "new_r, new_z, new_n",
            "new_z, new_r, new_n",
            "old_r, old_z, old_n",
            "old_z, old_r, old_n",
            "(1 - z) * n + z * state",
            "(1 - z) * state + z * n",
        ),
        "the last line is still turned round, and r belongs to U h + c alone; the token comes in whole": (
            "new_n + r * old_n",
            "r * (new_n + old_n)",
            "(1 - z) * n + z * state",
            "(1 - z) * state + z * n",
        ),
        "z mixes rightly, but n and z are read from each other's rows: the blocks are r, z, n": (
            "new_r, new_z, new_n",
            "new_r, new_n, new_z",
            "old_r, old_z, old_n",
            "old_r, old_n, old_z",
        ),
        "r was right as it was, not 1 - r; the last line is turned round: (1 - z) n + z state": (
            "r * old_n",
            "(1 - r) * old_n",
            "(1 - z) * n + z * state",
            "(1 - z) * state + z * n",
        ),
        "the reset gate stands before the product, n from U (r h): some papers do so; torch takes r (U h + c)": (
            "r * old_n",
            "(r * state) @ U.chunk(3)[2].T + c.chunk(3)[2]",
        ),
        "the bias c belongs to what r multiplies: r (U h + c)": (
            "r * old_n",
            "r * (state @ U.chunk(3)[2].T) + c.chunk(3)[2]",
        ),
        "the reset gate is not used: it multiplies what comes from the state, before the tanh": (
            "r * old_n",
            "old_n",
        ),
        "the reset gate is on the wrong part: it holds back the state, not the token": (
            "new_n + r * old_n",
            "r * new_n + old_n",
        ),
        "the reset gate multiplies both parts; the token comes in whole": (
            "new_n + r * old_n",
            "r * (new_n + old_n)",
        ),
        "there is no tanh around n": ("torch.tanh", ""),
        "n is made by a sigmoid; only the gates are, n can be negative: tanh": (
            "torch.tanh",
            "torch.sigmoid",
        ),
        "the gates have no sigmoid: they must lie between 0 and 1": (
            "r = torch.sigmoid",
            "r = ",
            "z = torch.sigmoid",
            "z = ",
        ),
        "the gates are made by a tanh; a gate lies between 0 and 1: sigmoid": (
            "r = torch.sigmoid",
            "r = torch.tanh",
            "z = torch.sigmoid",
            "z = torch.tanh",
        ),
        "n is given back alone: z must decide how much of the state stays": ("(1 - z) * n + z * state", "n"),
        "the state comes back as it was": ("(1 - z) * n + z * state", "state"),
        "n comes in whole; its share is 1 - z": ("(1 - z) * n", "n"),
        "the state stays whole; its share is z": ("z * state", "state"),
        "both shares are z; they must sum to 1": ("(1 - z)", "z"),
        "the bias b is missing": (" + b", ""),
        "the bias c is missing": (" + c", ""),
        "z mixes rightly, but r and n are read from each other's rows: the blocks are r, z, n": (
            "new_r, new_z, new_n",
            "new_n, new_z, new_r",
            "old_r, old_z, old_n",
            "old_n, old_z, old_r",
        ),
        "z mixes rightly, but the blocks are r, z, n, and you read z, n, r": (
            "new_r, new_z, new_n",
            "new_z, new_n, new_r",
            "old_r, old_z, old_n",
            "old_z, old_n, old_r",
        ),
        "z mixes rightly, but the blocks are r, z, n, and you read n, r, z": (
            "new_r, new_z, new_n",
            "new_n, new_r, new_z",
            "old_r, old_z, old_n",
            "old_n, old_r, old_z",
        ),
    },
    hidden=_more_gru_step,
)


state = Number(
    name="from_the_state",
    second=lambda n: seconds.from_the_state(state, n),
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
    answer="(100 + 2*42 + 2*(40 + 42)) / (4 + 2 + 2*(2 + 1))",
)


def fading_attention(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    decay: float,
) -> Float[Tensor, "n d_v"]:
    S, z, outputs = 0, 0, []
    for q, k, v in zip(feature_map(query), feature_map(key), value, strict=True):
        S = decay * S + k[:, None] * v  # (d_k, d_v)
        z = decay * z + k
        outputs.append(q @ S / (q @ z))
    return torch.stack(outputs)


STATE_GROWS = (
    "the numbers are right, but a token costs more, the more tokens stand before it; keep S and z, and"
    " nothing else"
)


def _grows(answer: Callable) -> str | None:
    """The sentence, where twice as many tokens take far more than twice the numbers."""

    def work(n: int) -> int:
        return numbers_made(lambda: answer(drawn(1, n, 8), drawn(2, n, 8), drawn(3, n, 1), 0.9))

    return STATE_GROWS if work(120) > 3.5 * work(60) else None


def _fading_table(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    """By the table of all weights, (n, n)."""
    place = torch.arange(len(query), device=query.device)
    faded = decay ** (place[:, None] - place).clamp(min=0).to(query.dtype)
    weights = (feature_map(query) @ feature_map(key).mT * faded).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


def _softmax_causal(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    return attend(query, key, value, mask=causal(len(query), device=query.device)).output


def _tokens(seed: int, n: int, d_k: int, d_v: int, decay: float) -> Case:
    return {
        "query": drawn(seed, n, d_k),
        "key": drawn(seed + 1, n, d_k),
        "value": drawn(seed + 2, n, d_v),
        "decay": decay,
    }


def _flat(*values: float, decay: float, of: float = 0.0) -> Case:
    """Keys and queries of zeros, of which phi makes ones; or all of another number."""
    alike = table([[of, of]] * len(values))
    return {
        "query": alike,
        "key": alike,
        "value": table([[v, 10 * v] for v in values]),
        "decay": decay,
    }


def _more_fading_attention(drawn: Draw) -> list[Case]:
    return [
        {
            "query": drawn(1, 11, 5),
            "key": drawn(2, 11, 5),
            "value": drawn(3, 11, 3),
            "decay": decay,
        }
        for decay in (0.9, 0.3)
    ]


fading = Write(
    name="fading_attention",
    title="Attention that fades",
    stars=2,
    minutes=10,
    why=(
        "one number makes linear attention forget as a recurrent network does: several language models of"
        " today keep a state that fades"
    ),
    asked=(
        "S_i = decay S_(i-1) + phi(k_i) v_i^T, z_i = decay z_(i-1) + phi(k_i), output_i = phi(q_i) S_i /"
        " (phi(q_i) . z_i); S and z start at 0, phi is feature_map; work and memory for a token do not grow"
    ),
    stages=(
        Stage(
            "two tokens, keys and queries of ones, decay 0.25",
            lambda: [_flat(3.0, 5.0, decay=0.25, of=1.0)],
            "After one token, S is phi(k) v^T and z is phi(k): what both have in common cancels, and the"
            " value is left, 3. Then its weight has fallen to a quarter: (0.25 * 3 + 5) / 1.25 = 4.6.",
        ),
        Stage(
            "three tokens, keys and queries of zeros",
            lambda: [_flat(2.0, 8.0, 5.0, decay=1.0)],
            "All weights are equal, so each output is the mean of the values so far: 2, then 5, then 5.",
        ),
        Stage(
            "the same with decay 0.5",
            lambda: [_flat(2.0, 8.0, 5.0, decay=0.5)],
            "The second output: 2 has lost half its weight, (0.5 * 2 + 8) / 1.5 = 6.",
        ),
        Stage(
            "decay 0: everything is forgotten at once",
            lambda: [_flat(2.0, 8.0, 5.0, decay=0.0)],
            "A token itself does not fade: each output is its own value.",
        ),
        Stage(
            "five tokens with keys of three numbers, values of two; then seven; then one",
            lambda: [
                _tokens(11, 5, 3, 2, 1.0),
                _tokens(21, 7, 3, 2, 0.8),
                _tokens(1, 1, 2, 2, 0.5),
                _tokens(31, 6, 2, 2, 0.7),
            ],
            "The weight of token j for token i is decay^(i - j) phi(q_i) . phi(k_j), for j up to i, divided"
            " by their sum.",
        ),
    ),
    reference=_fading_table,
    extra=_grows,
    hints=(
        "What are the shapes of S and z, and which of them is an outer product, a column times a row?",
        (
            "In which order: does a token first read the state, or first enter it? And does `decay` act on"
            " the token that enters?"
        ),
        (
            "k[:, None] * v is the outer product (d_k, d_v). With S in this shape, is the output q @ S or S @"
            " q, and by what is it divided?"
        ),
    ),
    solution=fading_attention,
    remember=(
        "linear attention with a fading state is a recurrent network: take up, fade, read; with decay 1 it is"
        " causal linear attention"
    ),
    slips={
        "decay is not used: this is linear attention that forgets nothing": (
            "decay * S",
            "S",
            "decay * z",
            "z",
        ),
        "z must fade as S does, or the weights no longer sum to 1": ("decay * z", "z"),
        "the sum S must fade as z does, or the weights no longer sum to 1": ("decay * S", "S"),
        "the new token fades, too; the factor belongs to the old state alone": (
            "decay * S + k[:, None] * v",
            "decay * (S + k[:, None] * v)",
            "decay * z + k",
            "decay * (z + k)",
        ),
        "decay is on the new token, where it cancels in the division; it belongs to the old S and z": (
            "decay * S + k[:, None] * v",
            "S + decay * k[:, None] * v",
            "decay * z + k",
            "z + decay * k",
        ),
        "you mix with decay and 1 - decay, so the first token counts too much or nothing comes in; the new token is added whole": (
            "k[:, None] * v",
            "(1 - decay) * k[:, None] * v",
            "z + k",
            "z + (1 - decay) * k",
        ),
        "you keep 1 - decay of the state; decay is what is kept": (
            "decay * S",
            "(1 - decay) * S",
            "decay * z",
            "(1 - decay) * z",
        ),
        "the state holds the last token alone: S and z must be added up": (
            "decay * S + ",
            "",
            "decay * z + ",
            "",
        ),
        "the division is missing: phi(q) S must be divided by phi(q) . z": (" / (q @ z)", ""),
        "you divide by the number of tokens; divide by phi(q) . z, the sum of the weights": (
            "(q @ z)",
            "(len(outputs) + 1)",
        ),
        "you divide by the sum of z; the weights are phi(q) . phi(k), so divide by phi(q) . z": (
            "(q @ z)",
            "z.sum()",
        ),
        "you divide S by z before the query reads; read both, then divide": (
            "q @ S / (q @ z)",
            "q @ (S / z[:, None])",
        ),
        "phi is missing: dot products may be negative, and weights may not": (
            "feature_map(query)",
            "query",
            "feature_map(key)",
            "key",
        ),
        "the + 1 is missing: elu alone is negative below 0 and nothing at 0; feature_map adds it": (
            "feature_map(query)",
            "torch.nn.functional.elu(query)",
            "feature_map(key)",
            "torch.nn.functional.elu(key)",
        ),
        "phi is feature_map, elu(x) + 1; you take relu, which forgets all that is not positive": (
            "feature_map(query)",
            "torch.relu(query)",
            "feature_map(key)",
            "torch.relu(key)",
        ),
        "phi is missing at the queries": ("feature_map(query)", "query"),
        "phi is missing at the keys": ("feature_map(key)", "key"),
        "phi is feature_map, elu(x) + 1; you take exp": (
            "feature_map(query)",
            "torch.exp(query)",
            "feature_map(key)",
            "torch.exp(key)",
        ),
        "the token reads the state before it is in there itself; take it up first": (
            "0, 0, []",
            "key.new_zeros(key.shape[1], value.shape[1]), torch.zeros_like(key[0]), []",
            "        S = decay",
            "        outputs.append(q @ S / (q @ z))\n        S = decay",
            "z + k\n        outputs.append(q @ S / (q @ z))",
            "z + k",
        ),
        "the outer product is turned round: phi(k) is the column and v the row, k[:, None] * v": (
            "k[:, None] * v",
            "v[:, None] * k",
        ),
        "that is softmax attention; it has no state S, its weights are exp of the dot products": _softmax_causal,
        "all outputs are read from the last state, so early tokens see the future; read at each step": (
            "        outputs.append(q @ S / (q @ z))\n    return torch.stack(outputs)",
            "    q = feature_map(query)\n    return q @ S / (q @ z)[:, None]",
        ),
        STATE_GROWS: _fading_table,
        "you multiply by phi(q) . z; divide by it, so that the weights sum to 1": ("/ (q @ z)", "* (q @ z)"),
        **exchanged("S, z, outputs"),
        "you keep 1 - decay and let decay in; decay is what is kept, and the new token is added whole": (
            "decay * S + k[:, None]",
            "(1 - decay) * S + decay * k[:, None]",
            "decay * z + k",
            "(1 - decay) * z + decay * k",
        ),
    },
    hidden=_more_fading_attention,
)


cache = Number(
    name="cache_and_state",
    second=lambda n: seconds.cache_and_state(cache, n),
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
    answer="2*512*1000 / (8 * (64*64 + 64))",
)


def states_at_once(
    a: Float[Tensor, "n d"],
    b: Float[Tensor, "n d"],
) -> Float[Tensor, "n d"]:
    reach = 1
    while reach < len(a):
        a_before = torch.cat([torch.ones_like(a[:reach]), a[:-reach]])
        b_before = torch.cat([torch.zeros_like(b[:reach]), b[:-reach]])
        b = a * b_before + b  # first b: it needs the old a
        a = a * a_before
        reach = 2 * reach
    return b


ONE_BY_ONE = (
    "the numbers are right, but one addition waits for the other, token after token: double the reach in each"
    " round, so that few rounds are enough"
)


WHOLE_TABLE = (
    "the numbers are right, but there is a table with a row and a column for each token; n rows in each round"
    " are enough"
)


UNSEEN = (
    "the numbers are right, but torch does not see how they are made: compute with tensors, without"
    " .tolist(), .item(), .detach() or no_grad"
)


ADDITIONS = re.compile(r"Add|Sub|Sum|Lerp|Mm|Mv|Bmm|Dot|CopySlices")


def longest_chain(end: Tensor) -> int:
    """How many additions, at most, wait for one another on the way to this tensor, in autograd's graph."""
    import networkx

    graph, waiting = networkx.DiGraph(), [end.grad_fn]
    while waiting:
        node = waiting.pop()
        for before, _ in node.next_functions:
            if before is not None:
                if before not in graph:
                    waiting.append(before)
                graph.add_edge(before, node, weight=int(ADDITIONS.search(node.name()) is not None))
    return networkx.dag_longest_path_length(graph) if graph else 0


def _rounds(answer: Callable) -> str | None:
    """A sentence, where it is not done in few rounds of n rows each. (2.5 log2 n: some right forms have two
    additions in a round.)"""
    n = 128
    end = answer(drawn(1, n, 1, spread=0.3).requires_grad_(), drawn(2, n, 1).requires_grad_())
    if end.grad_fn is None:
        return UNSEEN
    if longest_chain(end) > 2.5 * math.log2(n):
        return ONE_BY_ONE
    some, more = (numbers_made(lambda n=n: answer(drawn(1, n, 1), drawn(2, n, 1))) for n in (64, 128))
    return WHOLE_TABLE if more > 3 * some else None


def _one_by_one(a: Tensor, b: Tensor) -> Tensor:
    states = [b[0]]
    for i in range(1, len(b)):
        states.append(a[i] * states[-1] + b[i])
    return torch.stack(states)


def _by_table(a: Tensor, b: Tensor) -> Tensor:
    """Entry (i, j): the product of the factors behind j up to i."""
    place = torch.arange(len(a), device=a.device)
    behind = (place[:, None] > place)[..., None]
    products = torch.where(behind, a[:, None], torch.ones_like(a[:, None])).cumprod(0)
    return (products * (place[:, None] >= place)[..., None] * b).sum(1)


def _by_division(a: Tensor, b: Tensor) -> Tensor:
    factors = a.cumprod(0)
    return factors * (b / factors).cumsum(0)


def _in_plain_numbers(a: Tensor, b: Tensor) -> Tensor:
    columns = []
    for factors, numbers in zip(a.mT.tolist(), b.mT.tolist(), strict=True):
        state, column = 0.0, []
        for factor, number in zip(factors, numbers, strict=True):
            state = factor * state + number
            column.append(state)
        columns.append(column)
    return torch.tensor(columns, dtype=b.dtype, device=b.device).mT


def _recurrence(a: list[float], b: list[float]) -> Case:
    return {"a": table(a)[:, None], "b": table(b)[:, None]}


def _more_states_at_once(drawn: Draw) -> list[Case]:
    return [{"a": drawn(1, n, 3).sigmoid(), "b": drawn(2, n, 3)} for n in (13, 16)]


at_once = Write(
    name="states_at_once",
    title="All states in few rounds",
    stars=3,
    minutes=15,
    why="this is why some recurrent networks can be trained in parallel over time: 1,000 states in 10 rounds",
    asked=(
        "h_i = a_i h_(i-1) + b_i, entry by entry, h before the first token is 0: all n states, in rounds"
        " whose reach doubles, about log2(n) of them, no table (n, n)"
    ),
    stages=(
        Stage(
            "two tokens",
            lambda: [_recurrence([9.0, 0.5], [4.0, 3.0])],
            "h_1 = b_1 = 4, since the state before it is 0; h_2 = 0.5 * 4 + 3 = 5.",
        ),
        Stage(
            "four tokens, all factors 1",
            lambda: [_recurrence([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0])],
            "With factors of 1 the states are running sums: 1, 3, 6, 10.",
        ),
        Stage(
            "four tokens, all factors 2",
            lambda: [_recurrence([2.0, 2.0, 2.0, 2.0], [1.0, 0.0, 0.0, 0.0])],
            "The first number is doubled at each token: 1, 2, 4, 8.",
        ),
        Stage(
            "five tokens with two numbers each, then seven",
            lambda: [
                {"a": drawn(1, 5, 2), "b": drawn(2, 5, 2)},
                {"a": drawn(3, 7, 2), "b": drawn(4, 7, 2)},
            ],
            "n need not be a power of 2. After a round of reach r, b[i] must hold what tokens i - 2 r + 1 ..."
            " i have added up, and a[i] the product of their factors.",
        ),
        Stage(
            "factors of 0, which forget everything",
            lambda: [_recurrence([0.5, 2.0, 0.0, 3.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
            "At a factor of 0 a new beginning is made: 1, 4, 3, 13, 5, 11.",
        ),
    ),
    reference=_one_by_one,
    extra=_rounds,
    hints=(
        "Two steps, h_2 = a_2 (a_1 h + b_1) + b_2, are again of the form A h + B. What are A and B?",
        (
            "Give every token the A and B of itself and the token before it, with h = 0 in front of the"
            " first. How far back must each look in the next round?"
        ),
        (
            "In a round each token looks `reach` places back, a * b_before + b and a * a_before. What stands"
            " there where nothing is before, and which of the two must be computed with the OLD a?"
        ),
    ),
    solution=states_at_once,
    remember=(
        "two linear steps make one linear step (a_2 a_1, a_2 b_1 + b_2); whatever can be joined in pairs"
        " needs log2(n) rounds, not n"
    ),
    slips={
        "a is replaced too early: b needs the factor from before this round": (
            "        b = a * b_before + b  # first b: it needs the old a\n        a = a * a_before",
            "        a = a * a_before\n        b = a * b_before + b",
        ),
        "your factors stay as they were; a step over two tokens has the product of both, a * a_before": (
            "        a = a * a_before\n",
            "",
        ),
        "these are running sums of b: what comes from before must be multiplied by a": (
            "a * b_before",
            "b_before",
        ),
        "what comes from before is multiplied by the factor of the wrong token: it is the later one's, a, not a_before": (
            "a * b_before",
            "a_before * b_before",
        ),
        "joined the wrong way round: the LATER factor multiplies the EARLIER number, a * b_before + b": (
            "a * b_before + b",
            "a_before * b + b_before",
        ),
        "you multiply what is new by a; a belongs to the state before": (
            "a * b_before + b",
            "b_before + a * b",
        ),
        "the last tokens come in again at the beginning: roll goes round, and before the first token is nothing": (
            "torch.cat([torch.ones_like(a[:reach]), a[:-reach]])",
            "a.roll(reach, 0)",
            "torch.cat([torch.zeros_like(b[:reach]), b[:-reach]])",
            "b.roll(reach, 0)",
        ),
        "before the first token the state is 0, but you fill b_before with ones; only factors are filled with 1": (
            "zeros_like",
            "ones_like",
        ),
        "your states run from the last token to the first: shift towards the end, x[:-reach] behind a filling": (
            "torch.ones_like(a[:reach]), a[:-reach]",
            "a[reach:], torch.ones_like(a[:reach])",
            "torch.zeros_like(b[:reach]), b[:-reach]",
            "b[reach:], torch.zeros_like(b[:reach])",
        ),
        "only one round: the reach is 1, then 2, 4 and so on, while it is less than n": ("while", "if"),
        "your last round is missing: go on while the reach is less than n, not less than half of it": (
            "while reach <",
            "while 2 * reach <=",
        ),
        "the reach grows by 1; after each round every number holds twice as many tokens, so double it": (
            "2 * reach",
            "reach + 1",
        ),
        "only the products are here: b must be added up": ("return b", "return a"),
        "b is mixed in with 1 - a; here it is added whole": ("reach = 1", "reach, b = 1, (1 - a) * b"),
        "you divide by the product of all factors, and where one of them is 0, that is 0/0; join pairs of steps instead": _by_division,
        ONE_BY_ONE: _one_by_one,
        WHOLE_TABLE: _by_table,
        UNSEEN: _in_plain_numbers,
    },
    hidden=_more_states_at_once,
)


waits = Open(
    name="why_tanh_waits",
    title="Which of them must wait? In your own words",
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
    slips={
        "(2) needs the state before, too; it is only that its steps can be joined before the state is known": (
            r"states? (\w+ ){0,4}(is|are) (\w+ )?independent|independent of (each other|one another)|"
            r"\bonly (the )?(first|\(1\)|1) (needs|depends|uses)"
        ),
        "a cheaper function would not help: it is not how long one step takes, but that it waits for the one before": (
            r"tanh (is|takes|costs|needs) (\w+"
            r" )?(slow|expensive|long|costly|complicated|more|time)|(slow|expensive|costly) (to"
            r" compute|function|tanh)|too expensive|tanh, which costs?"
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
    points=(
        "what do two steps of (2) make together? Multiply them out",
        "what stands between two steps of (1), and what does it prevent?",
        "what is gained: who can begin at once, or how is it grouped?",
    ),
)


EXERCISES = (
    *remembering.ASKED,
    *costs.ASKED,
    *linear.ASKED,
    meets,
    way,
    gru,
    state,
    fading,
    cache,
    at_once,
    waits,
)
