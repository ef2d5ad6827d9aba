"""Right answers to the exercises of lesson 08, in many spellings; wrong ones to the open question."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from lesson_lib.linear import feature_map


def _gru(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> Tensor:
    (new_r, new_z, new_n), (old_r, old_z, old_n) = (x @ W.T + b).chunk(3, -1), (state @ U.T + c).chunk(3, -1)
    z, n = (new_z + old_z).sigmoid(), (new_n + (new_r + old_r).sigmoid() * old_n).tanh()
    return n + z * (state - n)


def _gru_by_lerp(x: Tensor, state: Tensor, W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Gate by gate, with the rows of each."""
    d = state.shape[-1]
    rows = [slice(i * d, (i + 1) * d) for i in range(3)]
    new = [torch.nn.functional.linear(x, W[k], b[k]) for k in rows]
    old = [torch.nn.functional.linear(state, U[k], c[k]) for k in rows]
    r, z = 1 / (1 + (-new[0] - old[0]).exp()), 1 / (1 + (-new[1] - old[1]).exp())
    return torch.lerp(torch.tanh(new[2] + r * old[2]), state, z)


def _faded(query: Tensor, key: Tensor, value: Tensor, decay: float) -> Tensor:
    """S and z begin as zeros."""
    S, z, outputs = key.new_zeros(key.shape[1], value.shape[1]), torch.zeros_like(key[0]), []
    for q, k, v in zip(feature_map(query), feature_map(key), value, strict=True):
        S, z = decay * S + k[:, None] * v, decay * z + k
        outputs.append(q @ S / (q @ z))
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


def _by_sums(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """All states at once, by running sums."""
    S = (key[:, :, None] * value[:, None]).cumsum(0)
    summed = (query[:, None] @ S)[:, 0]
    return summed / (query * key.cumsum(0)).sum(-1, keepdim=True)


def _by_triangle(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    weights = (query @ key.mT).tril()
    return weights / weights.sum(-1, keepdim=True) @ value


def _gated_at_once(key: Tensor, value: Tensor, gate: Tensor) -> Tensor:
    """Each token times all gates behind it."""
    behind = torch.stack([gate[i + 1 :].prod() for i in range(len(gate))])
    return (key * behind[:, None]).mT @ value


def _gated_in_place(key: Tensor, value: Tensor, gate: Tensor) -> Tensor:
    S = key.new_zeros(key.shape[1], value.shape[1])
    for i in range(len(key)):
        S *= gate[i]
        S += key[i][:, None] * value[i]
    return S


def _doubling(a: Tensor, b: Tensor) -> Tensor:
    """Both at once, what is before filled by a function."""

    def shifted(x: Tensor, fill: float) -> Tensor:
        return torch.cat([torch.full_like(x[:reach], fill), x[:-reach]])

    reach = 1
    while reach < len(a):
        a, b = a * shifted(a, 1.0), a * shifted(b, 0.0) + b
        reach = 2 * reach
    return b


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


def _gates_first(summed: Tensor, cell: Tensor) -> Tensor:
    """Rows of a table; all gates in one call."""
    rows = summed.reshape(4, -1)
    i, f, o = rows[[0, 1, 3]].sigmoid()
    new = torch.lerp(torch.zeros_like(cell), cell, f) + i * rows[2].tanh()
    return torch.stack([o * torch.tanh(new), new])


def _by_lstm_cell(summed: Tensor, cell: Tensor) -> Tensor:
    """torch's own cell, whose token is what was summed."""
    size = len(summed)
    empty = (torch.zeros(size, len(cell)), torch.zeros(size))
    state = torch.zeros(1, len(cell)), cell[None]
    return torch.cat(torch.lstm_cell(summed[None], state, torch.eye(size), empty[0], *[empty[1]] * 2))


def _backwards(u: float, states: Tensor) -> Tensor:
    """From the last state to the first."""
    slope = torch.ones(())
    for h in states.flip(0)[:-1]:
        slope = slope * u * (1 - h) * (1 + h)
    return slope


def _by_hand(summed: Tensor, cell: Tensor) -> Tensor:
    d = len(cell)
    i, f, o = (1 / (1 + torch.exp(-summed[k * d : (k + 1) * d])) for k in (0, 1, 3))
    new = f * cell + i * torch.tanh(summed[2 * d : 3 * d])
    return torch.cat([o * new.tanh(), new]).view(2, d)


def _state_with_ones(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """z is a last column of S."""
    state, outputs = key.new_zeros(value.shape[1] + 1, key.shape[1]), []
    for i, v in enumerate(pad(value, (0, 1), value=1.0)):
        state = torch.addr(state, v, key[i])
        outputs.append(state.mv(query[i])[:-1] / state.mv(query[i])[-1])
    return torch.stack(outputs)


def _token_by_token(key: Tensor, value: Tensor, gate: Tensor) -> Tensor:
    """The first token's own state, then a product of all tokens behind it."""
    S = torch.einsum("k,v->kv", key[0], value[0])
    for i in range(1, len(key)):
        S = torch.addr(S, key[i], value[i], beta=float(gate[i]))
    return S


def _delta_by_matrices(key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    """S is multiplied by I - beta k k^T, then added to."""
    S, one = key.new_zeros(key.shape[1], value.shape[1]), torch.eye(key.shape[1])
    for i in range(len(key)):
        k = key[i][:, None]
        S = (one - beta[i] * k @ k.mT) @ S + beta[i] * k * value[i]
    return S


def _delta_in_place(key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    S = torch.zeros(key.shape[1], value.shape[1])
    for i, k in enumerate(key):
        S += torch.einsum("k,v->kv", k, beta[i] * (value[i] - S.T @ k))
    return S


def _delta_by_table(key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    return key.mT @ _corrected_by_inverse(key, value, beta)


def _corrected_by_inverse(key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    lower = torch.diag(beta) @ key @ key.T
    return torch.linalg.inv(torch.eye(len(key)) + torch.tril(lower, diagonal=-1)) @ (beta * value.T).T


def _corrected_row_by_row(key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    rows = []
    for i in range(len(key)):
        before = sum((key[i].dot(key[j]) * rows[j] for j in range(i)), torch.zeros_like(value[0]))
        rows.append(beta[i] * (value[i] - before))
    return torch.stack(rows)


def _corrected_with_unit_diagonal(key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    """The solver takes the diagonal as ones, whatever stands there."""
    table = beta[:, None] * key @ key.mT
    return torch.linalg.solve_triangular(table, beta[:, None] * value, upper=False, unitriangular=True)


RIGHT = {
    "delta_state": (_delta_by_matrices, _delta_in_place, _delta_by_table),
    "corrected": (_corrected_by_inverse, _corrected_row_by_row, _corrected_with_unit_diagonal),
    "lstm_step": (_gates_first, _by_lstm_cell, _by_hand),
    "way_back": (
        _backwards,
        lambda u, states: u ** (len(states) - 1) * torch.prod(1 - states[1:].square()),
        lambda u, states: torch.tensor(math.prod(u * (1 - h**2) for h in states[1:].tolist())),
    ),
    "rnn_stages": (
        lambda n, d, rows: torch.tensor([float(n * rows * d**2)] + n * [float(rows * d**2)]),
        lambda n, d, rows: (rows * d * d * torch.ones(n + 1, dtype=torch.float64)).index_fill_(
            0, torch.tensor([0]), float(n * rows * d * d)
        ),
        lambda n, d, rows: torch.cat(
            [torch.full((1,), n * rows * d * d), torch.full((n,), rows * d * d)]
        ).double(),
    ),
    "time_on": (
        lambda stages, wait, rate: len(stages) * wait + stages.sum() / rate,
        lambda stages, wait, rate: sum(wait + products / rate for products in stages),
        lambda stages, wait, rate: stages.div(rate).add(wait).cumsum(0)[-1],
    ),
    "gru_step": (_gru, torch.gru_cell, _gru_by_lerp),
    "fading_attention": (_faded, _as_one_state, _glued),
    "by_state": (_by_sums, _by_triangle, _state_with_ones),
    "gated_state": (_gated_at_once, _gated_in_place, _token_by_token),
    "states_at_once": (_doubling, _by_halves, _in_slices),
    "why_tanh_waits": (
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
}

# in the order of the slips
WRONG = {
    "why_tanh_waits": (
        "In the second one the states are independent of each other.",
        "The tanh is slow, the product is fast.",
        "With enough cores the first one would be parallel as well.",
        "The tanh makes the gradients vanish.",
        "The RNN has to wait for its previous output.",
        "The second one sees all tokens, the first sees one at a time.",
        "The second has fewer parameters than the first.",
    ),
}
