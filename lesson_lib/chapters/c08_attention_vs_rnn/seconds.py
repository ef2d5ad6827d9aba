"""Second problems of parts 08a and 08b, and of the exercises: another gate, several units, other layers."""

import random
from dataclasses import replace
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import catch
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Number, fresh


def lstm_step_2(
    summed: Float[Tensor, " three_d"],
    cell: Float[Tensor, " d"],
) -> Float[Tensor, "two d"]:
    f, g, o = summed.chunk(3)
    keep = f.sigmoid()
    cell = keep * cell + (1 - keep) * g.tanh()
    return torch.stack([o.sigmoid() * cell.tanh(), cell])


def _three(summed: list[float], cell: list[float]) -> Case:
    return {"summed": table(summed), "cell": table(cell)}


COUPLED = Write(
    name="lstm_step_2",
    title="One gate for two",
    asked=(
        "an LSTM that writes as much as it forgets: summed (3d) holds f, g, o, and the input gate is 1 minus"
        " the forget gate. The new state and the new cell, (2, d)"
    ),
    stages=(
        Stage(
            "one number: kept whole, so nothing is written",
            lambda: [_three([40.0, 3.0, 0.0], [2.0])],
            "The cell stays 2; the state is half of tanh 2.",
        ),
        Stage(
            "one number: half kept, half written",
            lambda: [_three([0.0, 40.0, 40.0], [6.0])],
            "Half of 6, and half of 1: 3.5.",
        ),
        Stage(
            "three units",
            lambda: [{"summed": drawn(5, 9), "cell": drawn(6, 3)}],
            "Three blocks now: f, g, o.",
        ),
    ),
    hints=(
        "How many blocks has summed now, and which?",
        "Which number multiplies the old cell, and which tanh g?",
        "Is 1 - sigmoid(f) the same as sigmoid(1 - f)?",
    ),
    solution=lstm_step_2,
    remember="with one gate for both the cell is a weighted mean of what it was and what comes: it cannot grow",
    slips={
        "the two shares have changed places: the gate keeps the old cell": (
            "keep * cell + (1 - keep) * g.tanh()",
            "(1 - keep) * cell + keep * g.tanh()",
        ),
        "the share that is written is 1 - sigmoid(f), not sigmoid(1 - f)": (
            "(1 - keep) * g.tanh()",
            "(1 - f).sigmoid() * g.tanh()",
        ),
        "everything is written: the share 1 - f is missing": ("(1 - keep) * g.tanh()", "g.tanh()"),
        "f and g have changed places: the blocks are f, g, o": ("f, g, o =", "g, f, o ="),
        "the state is made from the old cell": (
            "    cell = keep * cell + (1 - keep) * g.tanh()\n"
            "    return torch.stack([o.sigmoid() * cell.tanh(), cell])",
            "    new = keep * cell + (1 - keep) * g.tanh()\n"
            "    return torch.stack([o.sigmoid() * cell.tanh(), new])",
        ),
    },
)


def way_back_2(
    U: Float[Tensor, "d d"],
    states: Float[Tensor, "n d"],
) -> Float[Tensor, "d d"]:
    way = torch.eye(len(U), dtype=U.dtype, device=U.device)
    for h in states[1:]:
        way = (1 - h**2)[:, None] * (U @ way)  # row by row: tanh's slope at that unit
    return way


def _units(U: list[list[float]], states: list[list[float]]) -> Case:
    return {"U": table(U), "states": table(states)}


SEVERAL_UNITS = Write(
    name="way_back_2",
    title="Several units",
    asked=(
        "the table (d, d) of slopes of the last state's numbers, one row each, with respect to the first"
        " state's, one column each, for h_t = tanh(x_t + U h_(t-1))"
    ),
    stages=(
        Stage(
            "one step from a state to zeros",
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.1], [0.0, 0.0]])],
            "tanh's slope at 0 is 1: the table is U.",
        ),
        Stage(
            "one step, slopes of 0.75 and 1",
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.1], [0.5, 0.0]])],
            "The slope of unit 0 multiplies row 0.",
        ),
        Stage(
            "two steps",
            lambda: [_units([[1.0, 2.0], [3.0, 4.0]], [[0.1, 0.2], [0.5, 0.0], [0.0, 0.6]])],
            "The later step stands on the left of the earlier one.",
        ),
        Stage(
            "three units, five states",
            lambda: [{"U": drawn(3, 3, 3), "states": drawn(4, 5, 3).tanh()}],
            "A matrix for each step: the slopes on a diagonal, times U.",
        ),
    ),
    hints=(
        "One step alone: which number says how unit i of h_t answers to unit j of h_(t-1)?",
        "On which side of the product so far does a later step's matrix stand?",
        "Does tanh's slope at unit i multiply a row or a column?",
    ),
    solution=way_back_2,
    remember="a product of matrices, one for each token: where they shrink vectors it vanishes",
    slips={
        "the matrices stand in the wrong order: later steps on the left": (
            "(1 - h**2)[:, None] * (U @ way)",
            "way @ ((1 - h**2)[:, None] * U)",
        ),
        "the slopes multiply columns; unit i is row i": ("(1 - h**2)[:, None]", "(1 - h**2)"),
        "tanh's slopes are missing": ("(1 - h**2)[:, None] * (U @ way)", "U @ way"),
        "U is transposed: row i says what unit i is made of": ("(U @ way)", "(U.mT @ way)"),
        "the first state's own slope does not count: n states, n - 1 steps": ("states[1:]", "states"),
        "numbers are multiplied where matrices should be: @, not *": ("(U @ way)", "(U * way)"),
    },
)


def both_ways_stages(first: Write) -> Exercise:
    """Sizes on which it shows that W x waits for nothing."""
    return catch(
        first,
        asked=(
            "somebody gives W x of all tokens the products of one token, and tests with texts of one token."
            " Write sizes on which it fails"
        ),
        slip="the stage of W x is one for all tokens, and has the products of n tokens",
        inputs={"n": "2", "d": "1", "rows": "1"},
        remember="one token hides everything that grows with the text",
        hints=(
            "With one token, how many products has W x of all tokens?",
            "Which of the three numbers makes the two functions differ?",
            "How small can the sizes be?",
        ),
        slips={
            "with one token both give the same": lambda n, d, rows: n == 1,
            "with no token, or no width, there is nothing to multiply": lambda n, d, rows: n * d * rows == 0,
        },
    )


def time_on_2(stages: Float[Tensor, " stages"], units: int, wait: float) -> Float[Tensor, ""]:
    rounds = (stages / units).ceil()
    return (wait + rounds).sum()


def _units_of(stages: list[float], units: int, wait: float) -> Case:
    return {"stages": table(stages), "units": units, "wait": wait}


UNITS = Write(
    name="time_on_2",
    title="A machine with many units",
    asked=(
        "a machine with `units` multipliers, each of which makes one product in a second: a stage takes `wait`"
        " seconds and then whole rounds, in each of which every unit makes at most one product. The seconds of"
        " all stages"
    ),
    stages=(
        Stage(
            "one stage of 10 products, 5 units, no wait",
            lambda: [_units_of([10.0], 5, 0.0)],
            "Two rounds.",
        ),
        Stage(
            "10 products, 4 units",
            lambda: [_units_of([10.0], 4, 0.0)],
            "The third round has two products; two units have nothing to do.",
        ),
        Stage(
            "two stages, each with a wait of 2",
            lambda: [_units_of([10.0, 3.0], 4, 2.0)],
            "2 + 3 + 2 + 1 = 8.",
        ),
        Stage(
            "more units than products",
            lambda: [_units_of([3.0] * 7, 1000, 0.5)],
            "A round each, however many units stand idle.",
        ),
    ),
    hints=(
        "How many rounds do 10 products take on 4 units?",
        "May the products of two stages share a round?",
        "Does a stage of one product take less than a round?",
    ),
    solution=time_on_2,
    remember="units beyond the products of a stage stand idle: an RNN's step fills few",
    slips={
        "rounds are whole: round up": ("(stages / units).ceil()", "stages / units"),
        "the last round is not full, and is a round: up, not down": (".ceil()", ".floor()"),
        "stages wait for each other: round up in each, not their sum": (
            "(wait + rounds).sum()",
            "(wait + 0 * rounds).sum() + (stages.sum() / units).ceil()",
        ),
        "each stage has its own wait": ("(wait + rounds).sum()", "wait + rounds.sum()"),
        "the wait is missing": ("(wait + rounds)", "rounds"),
    },
)


def _no_state(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> bool:
    d = state.shape[-1]
    return not bool((state @ U[2 * d :].T + c[2 * d :]).any())


def _all_kept(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> bool:
    d = state.shape[-1]
    kept = (x @ W[d : 2 * d].T + b[d : 2 * d] + state @ U[d : 2 * d].T + c[d : 2 * d]).sigmoid()
    return bool((kept > 0.9999).all())


def gru_step(first: Write) -> Exercise:
    """A cell on which the reset gate is seen."""
    return catch(
        first,
        asked=(
            "somebody has left out the reset gate r, and no test complains: its states begin at 0 and its"
            " biases c are 0. Write inputs, of one number each, on which it fails"
        ),
        slip="the reset gate is not used: it multiplies what comes from the state, before the tanh",
        inputs={
            "x": "torch.zeros(1, 1)",
            "state": "torch.ones(1, 1)",
            "W": "torch.zeros(3, 1)",
            "U": "torch.ones(3, 1)",
            "b": "torch.zeros(3)",
            "c": "torch.zeros(3)",
        },
        remember="a gate is seen only where something comes through it: test with a state that is not 0",
        hints=(
            "What does r multiply? When is that 0, so that r does not matter?",
            "If z is 1, how much of the proposal n is in the result?",
            "x may be 0. Which numbers may not?",
        ),
        slips={
            "nothing comes from the state here, so nothing is reset": _no_state,
            "z is 1 here: the old state is kept, and the proposal is not seen": _all_kept,
        },
    )


def lstm_meets_attention(first: Number, n: int) -> Number:
    """Other recurrent networks, and another width."""
    networks = {"a GRU (three blocks)": 3, "a bidirectional GRU (two GRUs of three blocks)": 6}

    def make(draw: random.Random) -> Number:
        (name, blocks), d = draw.choice([*networks.items()]), draw.choice(range(24, 264, 8))
        return replace(
            first,
            asked=(
                f"{name} and a layer of self-attention WITH its four projections, tokens and states of d ="
                f" {d} numbers: at how many tokens n do they need equally many multiplications in their matrix"
                " products?"
            ),
            value=(blocks - 2) * d,
            answer=f"({2 * blocks} - 4) * {d} / 2",
            solution=f"{2 * blocks} n d^2 = 4 n d^2 + 2 n^2 d, so n = {blocks - 2} d = {(blocks - 2) * d}.",
            slips={
                "that is without the four projections; they are 4 n d^2": blocks * d,
                "one of the two products of size n x n is missing: first the scores, then the mix": 2
                * (blocks - 2)
                * d,
                "each block has two matrices, W for the token and U for the state": (blocks - 4) * d / 2,
                "you counted three projections; W_o behind the heads is the fourth": (2 * blocks - 3) * d / 2,
            },
        )

    return fresh(n, make)


def _phi(x: tuple[int, int]) -> tuple[int, int]:
    """elu(x) + 1 of numbers from 0 upwards."""
    return x[0] + 1, x[1] + 1


def _read(query: tuple, S: tuple, z: tuple) -> str:
    """The expression of query . S over query . z."""
    return f"({query[0]}*{S[0]} + {query[1]}*{S[1]}) / ({query[0]}*{z[0]} + {query[1]}*{z[1]})"


def _add(state: tuple[int, int], key: tuple[int, int], value: int = 1) -> tuple[int, int]:
    """The state with key * value added to it; S for a value, z without one."""
    return state[0] + key[0] * value, state[1] + key[1] * value


def from_the_state(first: Number, n: int) -> Number:
    """Another state, and another token, whose output is a whole number."""

    def make(draw: random.Random) -> Number:
        q, k = draw.choice([((0, 1), (1, 0)), ((1, 0), (0, 1)), ((0, 1), (2, 0)), ((2, 0), (0, 1))])
        f, g = _phi(q), _phi(k)
        means = draw.sample(range(5, 31, 5), 2)
        found = []  # all z and v with which the output is whole
        for a, b, v in product(range(2, 7), range(2, 7), range(12, 61)):
            S, z = (a * means[0], b * means[1]), (a, b)
            new_S, new_z = _add(S, g, v), _add(z, g)
            if a != b and (f[0] * new_S[0] + f[1] * new_S[1]) % (f[0] * new_z[0] + f[1] * new_z[1]) == 0:
                found.append((S, z, v))
        S, z, v = draw.choice(found)
        new_S, new_z = _add(S, g, v), _add(z, g)
        above, below = (f[0] * x[0] + f[1] * x[1] for x in (new_S, new_z))
        return replace(
            first,
            asked=(
                "causal linear attention: a token sees itself and those before it, phi(x) = elu(x) + 1, values"
                f" are single numbers. S = {S}, the sum of phi(k) v, and z = {z}, the sum of phi(k), are what was"
                f" kept of the tokens so far; a token comes with query {q}, key {k}, value {v}: what is its"
                " output?"
            ),
            answer=_read(f, new_S, new_z),
            value=above // below,
            tolerance=0.03,
            hints=(
                "What does phi(x) = elu(x) + 1 make of each number in the query and in the key?",
                *first.hints[1:],
            ),
            solution=(
                f"phi(q) = {f}, phi(k) = {g}. The token is taken up: S = ({S[0]} + {g[0]} * {v}, {S[1]} + {g[1]} *"
                f" {v}) = {new_S}, z = {new_z}. Then it reads: ({f[0]} * {new_S[0]} + {f[1]} * {new_S[1]}) /"
                f" ({f[0]} * {new_z[0]} + {f[1]} * {new_z[1]}) = {above} / {below} = {above // below}."
            ),
            slips={
                "the token must see itself: add phi(k) v to S and phi(k) to z, then read": _read(f, S, z),
                "the state is taken up rightly, but the query needs phi, too": _read(q, new_S, new_z),
                "the query has its phi; the key needs phi, too": _read(f, _add(S, k, v), _add(z, k)),
                "phi is missing, in the query and in the key": _read(q, _add(S, k, v), _add(z, k)),
                "divide by phi(q) . z, the sum of all weights": above,
                "z takes up the token, too: phi(k) is added to it": _read(f, new_S, z),
                "the sum S takes up the token, too: phi(k) v is added to it": _read(f, S, new_z),
                "divide by phi(q) . z, not by the sum of phi(q)": f"{above} / {sum(f)}",
                "that is the token's own value; it is mixed with those before, whose sum is in S": v,
                "query and key have changed places: the key enters the state, the query reads it": (
                    _read(g, _add(S, f, v), _add(z, f))
                ),
                "first read S and z with phi(q), then divide; you divided S by z entry by entry": (
                    f"{f[0]} * {new_S[0]} / {new_z[0]} + {f[1]} * {new_S[1]} / {new_z[1]}"
                ),
                "phi is elu(x) + 1, which is x + 1 from 0 upwards; you took exp": _read(
                    (f"exp({q[0]})", f"exp({q[1]})"),
                    (f"({S[0]} + exp({k[0]})*{v})", f"({S[1]} + exp({k[1]})*{v})"),
                    (f"({z[0]} + exp({k[0]}))", f"({z[1]} + exp({k[1]}))"),
                ),
            },
        )

    # drawn with a wide tolerance, so that no slip is right by rounding; judged with the first's
    return replace(fresh(n, make), tolerance=first.tolerance)


def cache_and_state(first: Number, n: int) -> Number:
    """Other heads, and other lengths."""

    def make(draw: random.Random) -> Number:
        heads, width = draw.choice([4, 6, 8, 12, 16]), draw.choice([16, 24, 32, 48, 64])
        tokens, d = draw.choice([500, 600, 800, 1200, 1500, 2000, 3000, 4000, 5000]), heads * width
        cache, state = 2 * d * tokens, heads * (width * width + width)
        states = f"({heads} * ({width}*{width} + {width}))"
        return replace(
            first,
            asked=(
                f"one layer, d_model = {d}, {heads} heads of width {width} for queries, keys and values, after"
                f" {tokens:,} tokens: how many times as many numbers hold the keys and values that softmax"
                " attention keeps as the states S and z of linear attention, to three digits?"
            ),
            answer=f"2*{d}*{tokens} / {states}",
            value=cache / state,
            hints=(
                first.hints[0],
                (
                    f"In one head S is a sum of outer products of a key and a value, each of width {width}. How"
                    " many numbers is it? And z?"
                ),
                "How many heads have such a state? And which of the two grows when the next token comes?",
            ),
            solution=(
                f"keys and values of {tokens:,} tokens: 2 * {d} * {tokens:,} = {cache:,}. The state: in each of"
                f" {heads} heads S has {width} * {width} numbers and z has {width}, in all {state:,}. The quotient"
                f" is {cache / state:.3g}, and with every further token it grows."
            ),
            slips={
                "you took one head as wide as the model; each head has an S and a z of its own, as wide as it is": (
                    f"2*{d}*{tokens} / ({d}*{d} + {d})"
                ),
                "z is missing: each head also keeps the sum of its phi(k)": (
                    f"2*{d}*{tokens} / ({heads}*{width}*{width})"
                ),
                "both are kept, keys and values: 2 * d_model numbers a token": f"{d}*{tokens} / {states}",
                "keys and values are both kept, and each head has a z": (
                    f"{d}*{tokens} / ({heads}*{width}*{width})"
                ),
                "you counted the state of one head; each head has one": (
                    f"2*{d}*{tokens} / ({width}*{width} + {width})"
                ),
                "you counted the state of one head, and without its z; each head has both": (
                    f"2*{d}*{tokens} / ({width}*{width})"
                ),
                "you counted the cache of one head; each head has one": f"2*{width}*{tokens} / {states}",
                "the tables of weights are not kept: a row of them is made anew for each token; keys and values are kept": (
                    f"{heads}*{tokens}*{tokens} / {states}"
                ),
                "the quotient is upside down: how many times as many are in the CACHE?": (
                    f"{states} / (2*{d}*{tokens})"
                ),
                "this is the cache itself; divide it by the numbers of all states": cache,
                "this is the state itself; how many times as many numbers has the cache?": state,
            },
        )

    return fresh(n, make)
