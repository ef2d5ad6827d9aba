"""Second problems of part 08c: a state that is there already, and a gate for each row of it."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, table


def by_state_2(
    S: Float[Tensor, "d_k d_v"],
    z: Float[Tensor, " d_k"],
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
) -> Float[Tensor, " d_v"]:
    S = S + key.mT @ value
    z = z + key.sum(0)
    return query[-1] @ S / (query[-1] @ z)


def _state(S: list, z: list, query: list, key: list, value: list) -> Case:
    return {
        "S": table(S),
        "z": table(z),
        "query": table(query),
        "key": table(key),
        "value": table(value),
    }


def _any_state(seed: int, n: int, d_k: int, d_v: int) -> Case:
    shapes = {"S": (d_k, d_v), "z": (d_k,), "query": (n, d_k), "key": (n, d_k), "value": (n, d_v)}
    made = {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return made | {name: made[name].abs() + 0.1 for name in ("z", "query", "key")}


FROM_A_STATE = Write(
    name="by_state_2",
    title="A text goes on, and only its end asks",
    asked=(
        "S and z hold a text that was read before. Some tokens more come at once; only the LAST one's output"
        " is wanted. Queries and keys are features, all positive"
    ),
    stages=(
        Stage(
            "one number: S = 8, z = 1, then key 3 with value 4",
            lambda: [_state([[8]], [1], [[1]], [[3]], [[4]])],
            "(8 + 3 * 4) / (1 + 3) = 5.",
        ),
        Stage(
            "two tokens come, and the second asks",
            lambda: [_state([[8]], [1], [[1], [2]], [[3], [1]], [[4], [0]])],
            "Both enter: S is 8 + 12 + 0, z is 1 + 3 + 1.",
        ),
        Stage(
            "three tokens, keys of two numbers, values of three",
            lambda: [_any_state(11, 3, 2, 3)],
            "key.mT @ value adds up all outer products at once.",
        ),
    ),
    hints=(
        "All new tokens enter before the last one asks. Which product adds all k v^T at once?",
        "What has to be added to z?",
        "Which row of query is wanted?",
    ),
    solution=by_state_2,
    remember="a text of any length is S and z: what follows needs nothing else of it",
    slips={
        "what was read before is gone: add to S and z": ("S + key", "key", "z + key", "key"),
        "z stays as it was; the new keys belong to the weights' sum": ("z + key.sum(0)", "z"),
        "the first new token asks; the last one is wanted": (
            "query[-1] @ S / (query[-1] @ z)",
            "query[0] @ S / (query[0] @ z)",
        ),
        "the division is missing": (" / (query[-1] @ z)", ""),
        "only the last token enters; all new ones do": (
            "key.mT @ value",
            "key[-1:].mT @ value[-1:]",
            "key.sum(0)",
            "key[-1]",
        ),
    },
)


def gated_state_2(
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    gate: Float[Tensor, "n d_k"],
) -> Float[Tensor, "d_k d_v"]:
    S = torch.zeros(key.shape[1], value.shape[1])
    for k, v, g in zip(key, value, gate, strict=True):
        S = g[:, None] * S + torch.outer(k, v)
    return S


def _rows(seed: int, n: int, d_k: int, d_v: int) -> Case:
    return {
        "key": drawn(seed, n, d_k),
        "value": drawn(seed + 1, n, d_v),
        "gate": drawn(seed + 2, n, d_k).sigmoid(),
    }


A_GATE_FOR_EACH_ROW = Write(
    name="gated_state_2",
    title="A gate for each row",
    asked=(
        "as in gated linear attention: each token brings a gate for every ROW of S, a vector of d_k numbers."
        " Give back the last S"
    ),
    stages=(
        Stage(
            "two tokens; the second forgets the first row and keeps the second",
            lambda: [
                {
                    "key": table([[1, 1], [1, 1]]),
                    "value": table([[10, 30], [1, 2]]),
                    "gate": table([[1, 1], [0, 1]]),
                }
            ],
            "The first row is [1, 2], the second [11, 32].",
        ),
        Stage(
            "two tokens, other gates",
            lambda: [
                {
                    "key": table([[1, 2], [1, 0]]),
                    "value": table([[10, 30], [1, 2]]),
                    "gate": table([[0.3, 0.7], [0.5, 0.1]]),
                }
            ],
            "0.5 * [10, 30] + [1, 2], and 0.1 * [20, 60].",
        ),
        Stage(
            "five tokens, keys of three numbers, values of two",
            lambda: [_rows(11, 5, 3, 2)],
            "g belongs to the rows: (d_k, 1) beside (d_k, d_v).",
        ),
    ),
    hints=(
        "S is (d_k, d_v), the gate (d_k,). Along which axis must it be repeated?",
        "What does g[:, None] have as its shape?",
        "Does the gate act upon what comes in?",
    ),
    solution=gated_state_2,
    remember="g[:, None] * S: row by row the state decides what to keep",
    slips={
        "the gates are not used": ("g[:, None] * S", "S"),
        "what comes in is scaled, too; gates act upon the old state": (
            "g[:, None] * S + torch.outer(k, v)",
            "g[:, None] * (S + torch.outer(k, v))",
        ),
        "one gate, the mean, is used for all rows": ("g[:, None]", "g.mean()"),
        "you keep 1 - g; g is what is kept": ("g[:, None]", "(1 - g)[:, None]"),
    },
)
