"""What of the chapter's exercises is code; their words are in exercises.md."""

import math
import random
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.questions import Code
from lesson_lib.linear import feature_map
from lesson_lib.masks import causal
from lesson_lib.measure import dependencies

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


ADDITIONS = re.compile(r"Add|Sub|Sum|Lerp|Mm|Mv|Bmm|Dot")


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


def _no_state(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> bool:
    d = state.shape[-1]
    return not bool((state @ U[2 * d :].T + c[2 * d :]).any())


def _all_kept(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> bool:
    d = state.shape[-1]
    kept = (x @ W[d : 2 * d].T + b[d : 2 * d] + state @ U[d : 2 * d].T + c[d : 2 * d]).sigmoid()
    return bool((kept > 0.9999).all())


def _phi(x: tuple[int, int]) -> tuple[int, int]:
    """elu(x) + 1 of numbers from 0 upwards."""
    return x[0] + 1, x[1] + 1


def _read(query: tuple, S: tuple, z: tuple) -> str:
    """The expression of query . S over query . z."""
    return f"({query[0]}*{S[0]} + {query[1]}*{S[1]}) / ({query[0]}*{z[0]} + {query[1]}*{z[1]})"


def _add(state: tuple[int, int], key: tuple[int, int], value: int = 1) -> tuple[int, int]:
    """The state with key * value added to it; S for a value, z without one."""
    return state[0] + key[0] * value, state[1] + key[1] * value


def _lstm_meets_attention_numbers(draw: random.Random) -> dict[str, Any]:
    networks = {"a GRU (three blocks)": 3, "a bidirectional GRU (two GRUs of three blocks)": 6}
    (name, blocks), d = draw.choice([*networks.items()]), draw.choice(range(24, 264, 8))
    return locals()


def _from_the_state_numbers(draw: random.Random) -> dict[str, Any]:
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
    wrong_1 = _read(f, new_S, new_z)
    wrong_2 = _read(f, S, z)
    wrong_3 = _read(q, new_S, new_z)
    wrong_4 = _read(f, _add(S, k, v), _add(z, k))
    wrong_5 = _read(q, _add(S, k, v), _add(z, k))
    wrong_6 = _read(f, new_S, z)
    wrong_7 = _read(f, S, new_z)
    wrong_8 = _read(g, _add(S, f, v), _add(z, f))
    wrong_9 = f"{f[0]} * {new_S[0]} / {new_z[0]} + {f[1]} * {new_S[1]} / {new_z[1]}"
    wrong_10 = _read(
        (f"exp({q[0]})", f"exp({q[1]})"),
        (f"({S[0]} + exp({k[0]})*{v})", f"({S[1]} + exp({k[1]})*{v})"),
        (f"({z[0]} + exp({k[0]}))", f"({z[1]} + exp({k[1]}))"),
    )
    return locals()


def _cache_and_state_numbers(draw: random.Random) -> dict[str, Any]:
    heads, width = draw.choice([4, 6, 8, 12, 16]), draw.choice([16, 24, 32, 48, 64])
    tokens, d = draw.choice([500, 600, 800, 1200, 1500, 2000, 3000, 4000, 5000]), heads * width
    cache, state = 2 * d * tokens, heads * (width * width + width)
    states = f"({heads} * ({width}*{width} + {width}))"
    return locals()


CODE = {
    "lstm_meets_attention_2": Code(
        draw=_lstm_meets_attention_numbers,
    ),
    "way_to_the_last": Code(
        picture=_way_picture,
    ),
    "gru_step": Code(
        solution=gru_step,
        cases=(
            lambda: [_no_products(8.0, [0.0, LOG_3, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])],
            lambda: [
                _no_products(0.5, [-LOG_3, 0.0, 0.2], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
                _no_products(0.5, [-LOG_3, 0.0, 0.2], [0.0, 0.0, 2.0], [0.0, LOG_3, 1.0]),
            ],
            lambda: [_cell(1, 1, 2, 3)],
            lambda: [_cell(11, 2, 5, 3), _cell(21, 2, 2, 5)],
        ),
        reference=lambda x, state, W, U, b, c: torch.gru_cell(x, state, W, U, b, c),
        hidden=_more_gru_step,
    ),
    "gru_step_2": Code(
        wrong=(
            _no_state,
            _all_kept,
        ),
    ),
    "from_the_state_2": Code(
        draw=_from_the_state_numbers,
    ),
    "fading_attention": Code(
        solution=fading_attention,
        cases=(
            lambda: [_flat(3.0, 5.0, decay=0.25, of=1.0)],
            lambda: [_flat(2.0, 8.0, 5.0, decay=1.0)],
            lambda: [_flat(2.0, 8.0, 5.0, decay=0.5)],
            lambda: [_flat(2.0, 8.0, 5.0, decay=0.0)],
            lambda: [
                _tokens(11, 5, 3, 2, 1.0),
                _tokens(21, 7, 3, 2, 0.8),
                _tokens(1, 1, 2, 2, 0.5),
                _tokens(31, 6, 2, 2, 0.7),
            ],
        ),
        wrong=(
            _softmax_causal,
            _fading_table,
        ),
        reference=_fading_table,
        hidden=_more_fading_attention,
        extra=_grows,
    ),
    "cache_and_state_2": Code(
        draw=_cache_and_state_numbers,
    ),
    "states_at_once": Code(
        solution=states_at_once,
        cases=(
            lambda: [_recurrence([9.0, 0.5], [4.0, 3.0])],
            lambda: [_recurrence([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0])],
            lambda: [_recurrence([2.0, 2.0, 2.0, 2.0], [1.0, 0.0, 0.0, 0.0])],
            lambda: [
                {"a": drawn(1, 5, 2), "b": drawn(2, 5, 2)},
                {"a": drawn(3, 7, 2), "b": drawn(4, 7, 2)},
            ],
            lambda: [_recurrence([0.5, 2.0, 0.0, 3.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        ),
        wrong=(
            _by_division,
            _one_by_one,
            _by_table,
            _in_plain_numbers,
        ),
        reference=_one_by_one,
        hidden=_more_states_at_once,
        extra=_rounds,
    ),
}
