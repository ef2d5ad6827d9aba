"""Which unit of a network needs which: the steps that cannot run at once, and the way a token's signal takes,
counted in real networks.

Each network reads n tokens and is called position by position, on those inputs alone that the position may
use; what was computed from what is then read from autograd's graph (`measure.dependencies`). A node is (row,
position): a token of the input, a state, a token behind a layer. Every edge is one unit, so

    steps   edges of the longest path: units that must wait for each other, however many processors there are
    path    edges of the shortest path from an input to an output, at its largest over all pairs that have one

A stack of layers has as many as its widest pair needs. The counts depend on n alone, so the seeds must agree.
Source of the two measures: Vaswani et al. 2017, arXiv:1706.03762, table 1.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import networkx
import torch
from torch import Tensor, nn

from lesson_lib import measure, require
from lesson_lib.attention import attend
from lesson_lib.linear import LinearState, feature_map, step
from lesson_lib.recurrent import Recurrent

RECIPE = {"lengths": [4, 8, 16, 32, 64], "kernel": 3, "radius": 2, "width": 2, "seeds": [0, 1, 2]}

Units = dict[tuple[str, int], Tensor]


class Counted(NamedTuple):
    """What a network's graph says: `steps`, `path`, and how many pairs of input and output have `no_path` at
    all."""

    steps: int
    path: int
    no_path: int


def network(name: str, n: int = 8) -> networkx.DiGraph:
    """The dependencies of one of NETWORKS on n tokens: nodes (row, position), rows in the order of computing,
    inputs first, outputs last.

    Raises ValueError for another name, and where n is no whole number from 1 to 256.
    """
    require.one_of(NETWORKS, network=name)
    require.whole(at_most=256, n=n)
    x = [torch.ones(1, RECIPE["width"], device="cpu", requires_grad=True) for _ in range(n)]
    units = NETWORKS[name](x)
    return measure.dependencies({("input", i): token for i, token in enumerate(x)}, units)


def counted(graph: networkx.DiGraph) -> Counted:
    """Steps, longest of the shortest paths, and pairs without a path, of a graph that `network` has made."""
    inputs, outputs = ends(graph)
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    found = [lengths[i][o] for i in inputs for o in outputs if o in lengths[i]]
    pairs = len(inputs) * len(outputs)
    return Counted(networkx.dag_longest_path_length(graph), max(found), pairs - len(found))


def ends(graph: networkx.DiGraph) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The nodes of the first row and of the last, the inputs and the outputs, by position."""
    rows = list(dict.fromkeys(row for row, _ in graph))
    return [node for node in graph if node[0] == rows[0]], [node for node in graph if node[0] == rows[-1]]


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each network and length."""
    return [
        {"seed": seed, "network": name, "n": n, **counted(network(name, n))._asdict()}
        for name in NETWORKS
        for n in RECIPE["lengths"]
    ]


def _rnn(x: list[Tensor]) -> Units:
    cell, state, units = Recurrent("RNN", RECIPE["width"], RECIPE["width"]).cpu(), None, {}
    for i, token in enumerate(x):
        state = cell.step(token, state)
        units["state", i] = state.hidden
    return units


def _both_ways(x: list[Tensor]) -> Units:
    cell, n = Recurrent("RNN", RECIPE["width"], RECIPE["width"], both_ways=True).cpu(), len(x)
    units: Units = {}
    for row, places in (("from the left", range(n)), ("from the right", range(n - 1, -1, -1))):
        state = None
        for i in places:
            state = cell.step(x[i], state, backwards=row == "from the right")
            units[row, i] = state.hidden
    ordered = {(row, i): units[row, i] for row in ("from the left", "from the right") for i in range(n)}
    both = {
        ("output", i): torch.cat([units["from the left", i], units["from the right", i]], -1)
        for i in range(n)
    }
    return ordered | both


def _convolutions(x: list[Tensor], dilations: list[int]) -> Units:
    """A layer for each dilation; a position sees `kernel` positions around it, and zeros beyond the ends."""
    k, d, units = RECIPE["kernel"], RECIPE["width"], {}
    zero = torch.zeros(1, d, device="cpu")
    for number, dilation in enumerate(dilations, 1):
        layer = nn.Conv1d(d, d, k, device="cpu")
        places = [[i + dilation * (tap - k // 2) for tap in range(k)] for i in range(len(x))]
        seen = [[x[p] if 0 <= p < len(x) else zero for p in row] for row in places]
        x = [layer(torch.stack(row, -1))[..., 0] for row in seen]
        units |= {(f"layer {number}", i): token for i, token in enumerate(x)}
    return units


def _stack(x: list[Tensor]) -> Units:
    layers = -(-(len(x) - 1) // (RECIPE["kernel"] // 2))
    return _convolutions(x, [1] * max(1, layers))


def _dilated(x: list[Tensor]) -> Units:
    """Each layer's taps stand twice as far apart as those below. (Three times as far apart, for the paper's
    log_k n, a way from end to end may lead over positions beyond the border, which are not there.)"""
    dilations = [1]
    while sum(dilations) * (RECIPE["kernel"] // 2) < len(x) - 1:
        dilations.append(2 * dilations[-1])
    return _convolutions(x, dilations)


def _attention(x: list[Tensor], first: Callable[[int], int], end: Callable[[int], int], row: str) -> Units:
    """Position i asks the keys from `first(i)` up to, not including, `end(i)`."""
    seen = [torch.stack(x[max(0, first(i)) : end(i)], -2) for i in range(len(x))]
    return {(row, i): attend(x[i][:, None], s, s).output[:, 0] for i, s in enumerate(seen)}


def _window(x: list[Tensor]) -> Units:
    r, units = RECIPE["radius"], {}
    for number in range(1, max(1, -(-(len(x) - 1) // r)) + 1):
        layer = _attention(x, lambda i: i - r, lambda i: i + r + 1, f"layer {number}")
        units |= layer
        x = list(layer.values())
    return units


def _linear(x: list[Tensor]) -> Units:
    """S and z, side by side, are the unit."""
    units, outputs, state = {}, {}, None
    for i, token in enumerate(x):
        state = _packed(step(token, token, token, state)[1])
        units["state", i], outputs["output", i] = state, _read(token, state)
        state = LinearState(state[..., :-1], state[..., -1])
    return units | outputs


def _doubling(x: list[Tensor]) -> Units:
    """The same states, each the sum of two over half as many tokens: sums may be made in any order."""
    sums = [_packed(step(token, token, token)[1]) for token in x]
    units: Units = {("sum of 1", i): s for i, s in enumerate(sums)}
    reach = 1
    while reach < len(x):
        sums = [s if i < reach else s + sums[i - reach] for i, s in enumerate(sums)]
        units |= {(f"sum of {2 * reach}", i): s for i, s in enumerate(sums) if i >= reach}
        reach *= 2
    return units | {("output", i): _read(token, s) for i, (token, s) in enumerate(zip(x, sums, strict=True))}


def _packed(state: LinearState) -> Tensor:
    return torch.cat([state.S, state.z[..., None]], -1)


def _read(query: Tensor, packed: Tensor) -> Tensor:
    """What the query takes from a state: its first columns' sum over its last's."""
    summed = (feature_map(query)[..., None, :] @ packed)[..., 0, :]
    return summed[..., :-1] / summed[..., -1:]


NETWORKS: dict[str, Callable[[list[Tensor]], Units]] = {
    "RNN": _rnn,
    "BiRNN": _both_ways,
    "convolutions": _stack,
    "dilated convolutions": _dilated,
    "self-attention": lambda x: _attention(x, lambda i: 0, lambda i: len(x), "output"),
    "causal self-attention": lambda x: _attention(x, lambda i: 0, lambda i: i + 1, "output"),
    "window attention": _window,
    "linear attention, as an RNN": _linear,
    "linear attention, by doubling": _doubling,
}
