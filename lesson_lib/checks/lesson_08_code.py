"""Exercises of lesson 08 in which a function is written or repaired; lesson_08.py puts them in order."""

import math
import re
from collections.abc import Callable
from typing import Any

import networkx
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, source_of, table
from lesson_lib.linear import attend_linear, feature_map
from lesson_lib.masks import causal


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


def _keep(z: Tensor, n: Tensor, state: Tensor) -> Tensor:
    return (1 - z) * n + z * state


def _overwrite(z: Tensor, n: Tensor, state: Tensor) -> Tensor:
    return (1 - z) * state + z * n


def _candidate(new: Tensor, r: Tensor, old: Tensor) -> Tensor:
    return (new + r * old).tanh()


def _gru(
    *,
    order: tuple[int, int, int] = (0, 1, 2),
    gate: Callable[[Tensor], Tensor] = torch.sigmoid,
    candidate: Callable[[Tensor, Tensor, Tensor], Tensor] = _candidate,
    mixed: Callable[[Tensor, Tensor, Tensor], Tensor] = _keep,
    biases: tuple[float, float] = (1.0, 1.0),
) -> Callable[..., Tensor]:
    """The step, with any of its parts replaced; `order` says where r, z and n stand."""

    def step(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> Tensor:
        new = (x @ W.T + biases[0] * b).chunk(3, -1)
        old = (state @ U.T + biases[1] * c).chunk(3, -1)
        (new_r, new_z, new_n), (old_r, old_z, old_n) = ([part[i] for i in order] for part in (new, old))
        return mixed(gate(new_z + old_z), candidate(new_n, gate(new_r + old_r), old_n), state)

    return step


def _reset_before(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The reset gate in front of the product with the state."""
    d = state.shape[-1]
    new, old = x @ W.T + b, state @ U.T + c
    r, z = (new + old)[:, : 2 * d].sigmoid().chunk(2, -1)
    n = (new[:, 2 * d :] + (r * state) @ U[2 * d :].T + c[2 * d :]).tanh()
    return _keep(z, n, state)


def _bias_outside(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The reset gate takes the product alone, without the bias that belongs to it."""
    d = state.shape[-1]
    new, old = x @ W.T + b, state @ U.T + c
    r, z = (new + old)[:, : 2 * d].sigmoid().chunk(2, -1)
    n = (new[:, 2 * d :] + r * (state @ U[2 * d :].T) + c[2 * d :]).tanh()
    return _keep(z, n, state)


def _gru_by_lerp(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Gate by gate, with the rows of each."""
    d = state.shape[-1]
    rows = [slice(i * d, (i + 1) * d) for i in range(3)]
    new = [torch.nn.functional.linear(x, W[k], b[k]) for k in rows]
    old = [torch.nn.functional.linear(state, U[k], c[k]) for k in rows]
    r, z = 1 / (1 + (-new[0] - old[0]).exp()), 1 / (1 + (-new[1] - old[1]).exp())
    return torch.lerp(torch.tanh(new[2] + r * old[2]), state, z)


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

gru = Write(
    name="gru_step",
    title="A gate the wrong way round",
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
    given=_gru(mixed=_overwrite),
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
    solution=source_of(gru_step),
    remember=(
        "in torch's GRU z near 1 keeps the state; other papers call the opposite gate z, so look before you"
        " load weights"
    ),
    slips={
        "this is still the function as it was given": _gru(mixed=_overwrite),
        "now r and z have changed places: in torch the blocks are r, z, n (Keras stores z first)": _gru(
            order=(1, 0, 2)
        ),
        "z mixes rightly, but n and z are read from each other's rows: the blocks are r, z, n": _gru(
            order=(0, 2, 1)
        ),
        "the reset gate stands before the product, n from U (r h): some papers do so; torch takes r (U h + c)": (
            _reset_before
        ),
        "the bias c belongs to what r multiplies: r (U h + c)": _bias_outside,
        "the reset gate is not used: it multiplies what comes from the state, before the tanh": _gru(
            candidate=lambda new, r, old: (new + old).tanh()
        ),
        "the reset gate is on the wrong part: it holds back the state, not the token": _gru(
            candidate=lambda new, r, old: (r * new + old).tanh()
        ),
        "the reset gate multiplies both parts; the token comes in whole": _gru(
            candidate=lambda new, r, old: (r * (new + old)).tanh()
        ),
        "there is no tanh around n": _gru(candidate=lambda new, r, old: new + r * old),
        "n is made by a sigmoid; only the gates are, n can be negative: tanh": _gru(
            candidate=lambda new, r, old: (new + r * old).sigmoid()
        ),
        "the gates have no sigmoid: they must lie between 0 and 1": _gru(gate=lambda x: x),
        "the gates are made by a tanh; a gate lies between 0 and 1: sigmoid": _gru(gate=torch.tanh),
        "n is given back alone: z must decide how much of the state stays": _gru(mixed=lambda z, n, state: n),
        "the state comes back as it was": _gru(mixed=lambda z, n, state: 1.0 * state),
        "n comes in whole; its share is 1 - z": _gru(mixed=lambda z, n, state: n + z * state),
        "the state stays whole; its share is z": _gru(mixed=lambda z, n, state: (1 - z) * n + state),
        "both shares are z; they must sum to 1": _gru(mixed=lambda z, n, state: z * n + z * state),
        "the bias b is missing": _gru(biases=(0.0, 1.0)),
        "the bias c is missing": _gru(biases=(1.0, 0.0)),
    },
    right=(_gru(), torch.gru_cell, _gru_by_lerp),
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


def _faded(
    *,
    phi: Callable[[Tensor], Tensor] = feature_map,
    phi_query: Callable[[Tensor], Tensor] | None = None,
    S: Callable[[Any, Tensor, float], Any] = lambda S, new, decay: decay * S + new,
    z: Callable[[Any, Tensor, float], Any] = lambda z, k, decay: decay * z + k,
    outer: Callable[[Tensor, Tensor], Tensor] = lambda k, v: k[:, None] * v,
    read: Callable[[Tensor, Any, Any, int], Tensor] = lambda q, S, z, i: q @ S / (q @ z),
    late: bool = False,
) -> Callable[..., Tensor]:
    """The loop, with any of its parts replaced; `late` reads before the token is taken up."""

    def layer(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
        sums, weight = torch.zeros_like(outer(key[0], value[0])), torch.zeros_like(key[0])
        outputs = []
        for i, (q, k, v) in enumerate(zip((phi_query or phi)(query), phi(key), value, strict=True)):
            before = sums, weight
            sums, weight = S(sums, outer(k, v), decay), z(weight, k, decay)
            outputs.append(read(q, *(before if late else (sums, weight)), i))
        return torch.stack(outputs)

    return layer


def _fading_table(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    """By the table of all weights, (n, n)."""
    place = torch.arange(len(query), device=query.device)
    faded = decay ** (place[:, None] - place).clamp(min=0).to(query.dtype)
    weights = (feature_map(query) @ feature_map(key).mT * faded).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


def _fading_cache(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    """By a cache of all keys, as softmax attention needs it."""
    q, k, outputs = feature_map(query), feature_map(key), []
    for i in range(len(q)):
        faded = decay ** torch.arange(i, -1, -1, device=q.device).to(q.dtype)
        weights = faded * (k[: i + 1] @ q[i])
        outputs.append(weights @ value[: i + 1] / weights.sum())
    return torch.stack(outputs)


def _as_one_state(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    """S and z in one matrix, results written into a tensor that stands ready."""
    counted = pad(value, (0, 1), value=1.0)
    state = key.new_zeros(key.shape[1], counted.shape[1])
    made = torch.empty_like(counted)
    for i in range(len(key)):
        state = torch.addmm(decay * state, feature_map(key[i : i + 1]).mT, counted[i : i + 1])
        made[i] = feature_map(query[i]) @ state
    return made[:, :-1] / made[:, -1:]


def _glued(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    """Outputs are glued together one by one."""
    S, z, made = torch.zeros_like(key[0])[:, None], torch.zeros_like(key[0]), value[:0]
    for i in range(len(key)):
        k = feature_map(key[i])
        S, z = decay * S + torch.outer(k, value[i]), decay * z + k
        made = torch.cat([made, (feature_map(query[i]) @ S / feature_map(query[i]).dot(z))[None]])
    return made


def _softmax_causal(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    return attend(query, key, value, mask=causal(len(query), device=query.device)).output


def _read_at_the_end(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    age = torch.arange(len(key) - 1, -1, -1, device=key.device).to(key.dtype)
    k, q = feature_map(key) * (decay**age)[:, None], feature_map(query)
    return q @ (k.mT @ value) / (q @ k.sum(0))[:, None]


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
            lambda: [_tokens(11, 5, 3, 2, 1.0), _tokens(21, 7, 3, 2, 0.8), _tokens(1, 1, 2, 2, 0.5)],
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
    solution=source_of(fading_attention),
    remember=(
        "linear attention with a fading state is a recurrent network: take up, fade, read; with decay 1 it is"
        " causal linear attention"
    ),
    slips={
        "decay is not used: this is linear attention that forgets nothing": lambda q, k, v, decay: (
            attend_linear(q, k, v, causal=True)
        ),
        "z must fade as S does, or the weights no longer sum to 1": _faded(z=lambda z, k, decay: z + k),
        "the sum S must fade as z does, or the weights no longer sum to 1": _faded(
            S=lambda S, new, decay: S + new
        ),
        "the new token fades, too; the factor belongs to the old state alone": _faded(
            S=lambda S, new, decay: decay * (S + new), z=lambda z, k, decay: decay * (z + k)
        ),
        "you mix with decay and 1 - decay, so the first token counts too much or nothing comes in; the new token is added whole": _faded(
            S=lambda S, new, decay: decay * S + (1 - decay) * new,
            z=lambda z, k, decay: decay * z + (1 - decay) * k,
        ),
        "you keep 1 - decay of the state; decay is what is kept": _faded(
            S=lambda S, new, decay: (1 - decay) * S + new, z=lambda z, k, decay: (1 - decay) * z + k
        ),
        "the state holds the last token alone: S and z must be added up": _faded(
            S=lambda S, new, decay: new, z=lambda z, k, decay: k
        ),
        "the division is missing: phi(q) S must be divided by phi(q) . z": _faded(
            read=lambda q, S, z, i: q @ S
        ),
        "you divide by the number of tokens; divide by phi(q) . z, the sum of the weights": _faded(
            read=lambda q, S, z, i: q @ S / (i + 1)
        ),
        "you divide by the sum of z; the weights are phi(q) . phi(k), so divide by phi(q) . z": _faded(
            read=lambda q, S, z, i: q @ S / z.sum()
        ),
        "you divide S by z before the query reads; read both, then divide": _faded(
            read=lambda q, S, z, i: q @ (S / z[:, None])
        ),
        "phi is missing: dot products may be negative, and weights may not": _faded(phi=lambda x: 1.0 * x),
        "the + 1 is missing: elu alone is negative below 0 and nothing at 0; feature_map adds it": _faded(
            phi=torch.nn.functional.elu
        ),
        "phi is feature_map, elu(x) + 1; you take relu, which forgets all that is not positive": _faded(
            phi=torch.relu
        ),
        "phi is missing at the queries": _faded(phi_query=lambda x: 1.0 * x),
        "phi is missing at the keys": _faded(phi=lambda x: 1.0 * x, phi_query=feature_map),
        "phi is feature_map, elu(x) + 1; you take exp": _faded(phi=torch.exp),
        "the token reads the state before it is in there itself; take it up first": _faded(late=True),
        "the outer product is turned round: phi(k) is the column and v the row, k[:, None] * v": _faded(
            outer=lambda k, v: v[:, None] * k
        ),
        "that is softmax attention; it has no state S, its weights are exp of the dot products": (
            _softmax_causal
        ),
        "all outputs are read from the last state, so early tokens see the future; read at each step": (
            _read_at_the_end
        ),
        STATE_GROWS: _fading_table,
    },
    right=(_faded(), _as_one_state, _glued),
)


def states_at_once(a: Float[Tensor, "n d"], b: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
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
    " .tolist(), .item() or .detach()"
)
ADDITIONS = re.compile(r"Add|Sub|Sum|Lerp|Mm|Mv|Bmm|Dot|CopySlices")


def longest_chain(end: Tensor) -> int:
    """How many additions, at most, wait for one another on the way to this tensor, in autograd's graph."""
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


def _doubling(
    *,
    shifted: Callable[[Tensor, int, float], Tensor] = lambda x, reach, fill: torch.cat(
        [torch.full_like(x[:reach], fill), x[:-reach]]
    ),
    joined: Callable[
        [Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]
    ] = lambda a, b, a_before, b_before: (
        a * a_before,
        a * b_before + b,
    ),
    following: Callable[[int], int] = lambda reach: 2 * reach,
    goes_on: Callable[[int, int], bool] = lambda reach, n: reach < n,
) -> Callable[[Tensor, Tensor], Tensor]:
    """The rounds, with any of their parts replaced."""

    def states(a: Tensor, b: Tensor) -> Tensor:
        reach = 1
        while goes_on(reach, len(a)):
            a, b = joined(a, b, shifted(a, reach, 1.0), shifted(b, reach, 0.0))
            reach = following(reach)
        return b

    return states


def _new_a_first(a: Tensor, b: Tensor, a_before: Tensor, b_before: Tensor) -> tuple[Tensor, Tensor]:
    return a * a_before, a * a_before * b_before + b


def _by_halves(a: Tensor, b: Tensor) -> Tensor:
    """Two tokens become one, the half as many states are found, and between them stand the others."""
    if len(a) == 1:
        return b
    even = len(a) // 2 * 2
    odd = _by_halves(a[1:even:2] * a[0:even:2], a[1:even:2] * b[0:even:2] + b[1:even:2])
    between = torch.cat([b[:1], a[2::2] * odd[: len(a[2::2])] + b[2::2]])
    return torch.cat([torch.stack([between[: len(odd)], odd], 1).flatten(0, 1), between[len(odd) :]])


def _in_slices(a: Tensor, b: Tensor) -> Tensor:
    """The same rounds, written into copies."""
    a, b, reach = a.clone(), b.clone(), 1
    while reach < len(a):
        b[reach:] = b[reach:] + a[reach:] * b[:-reach]
        a[reach:] = a[reach:] * a[:-reach]
        reach *= 2
    return b


def _by_table(a: Tensor, b: Tensor) -> Tensor:
    """Entry (i, j): the product of the factors behind j up to i."""
    place = torch.arange(len(a), device=a.device)
    behind = (place[:, None] > place)[..., None]
    products = torch.where(behind, a[:, None], torch.ones_like(a[:, None])).cumprod(0)
    return (products * (place[:, None] >= place)[..., None] * b).sum(1)


def _by_division(a: Tensor, b: Tensor) -> Tensor:
    factors = a.cumprod(0)
    return factors * (b / factors).cumsum(0)


def _backwards(a: Tensor, b: Tensor) -> Tensor:
    return _one_by_one(a.flip(0), b.flip(0)).flip(0)


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
    solution=source_of(states_at_once),
    remember=(
        "two linear steps make one linear step (a_2 a_1, a_2 b_1 + b_2); whatever can be joined in pairs"
        " needs log2(n) rounds, not n"
    ),
    slips={
        "a is replaced too early: b needs the factor from before this round": _doubling(joined=_new_a_first),
        "your factors stay as they were; a step over two tokens has the product of both, a * a_before": (
            _doubling(joined=lambda a, b, a_before, b_before: (a, a * b_before + b))
        ),
        "these are running sums of b: what comes from before must be multiplied by a": lambda a, b: b.cumsum(
            0
        ),
        "what comes from before is multiplied by the factor of the wrong token: it is the later one's, a, not a_before": _doubling(
            joined=lambda a, b, a_before, b_before: (a * a_before, a_before * b_before + b)
        ),
        "you multiply what is new by a; a belongs to the state before": _doubling(
            joined=lambda a, b, a_before, b_before: (a * a_before, b_before + a * b)
        ),
        "the last tokens come in again at the beginning: roll goes round, and before the first token is nothing": _doubling(
            shifted=lambda x, reach, fill: x.roll(reach, 0)
        ),
        "before the first token the state is 0, but you fill b_before with ones; only factors are filled with 1": _doubling(
            shifted=lambda x, reach, fill: torch.cat([torch.ones_like(x[:reach]), x[:-reach]])
        ),
        "your states run from the last token to the first: shift towards the end, x[:-reach] behind a filling": (
            _backwards
        ),
        "only one round: the reach is 1, then 2, 4 and so on, while it is less than n": _doubling(
            goes_on=lambda reach, n: reach == 1
        ),
        "your last round is missing: go on while the reach is less than n, not less than half of it": (
            _doubling(goes_on=lambda reach, n: 2 * reach <= n)
        ),
        "the reach grows by 1; after each round every number holds twice as many tokens, so double it": (
            _doubling(following=lambda reach: reach + 1)
        ),
        "only the products are here: b must be added up": lambda a, b: a.cumprod(0),
        "b is mixed in with 1 - a; here it is added whole": lambda a, b: _one_by_one(a, (1 - a) * b),
        "you divide by the product of all factors, and where one of them is 0, that is 0/0; join pairs of steps instead": (
            _by_division
        ),
        ONE_BY_ONE: _one_by_one,
        WHOLE_TABLE: _by_table,
        UNSEEN: _in_plain_numbers,
    },
    right=(_doubling(), _by_halves, _in_slices),
)
