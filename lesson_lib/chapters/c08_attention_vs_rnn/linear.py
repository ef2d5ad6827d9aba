"""What part 08c asks: five predictions, and two functions that the learner writes."""

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import linear_seconds as seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number
from lesson_lib.masks import causal

PART = "08c_linear"

brackets_save = Number(
    name="brackets_save",
    notebook=PART,
    title="Two brackets",
    asked=(
        "Q, K, V: 1,000 tokens of 10 numbers. (Q K^T) V takes 20,000,000 multiplications. And Q (K^T V)?"
        " ((a, b) times (b, c) takes a * b * c.)"
    ),
    value=200_000,
    answer="2 * 10 * 1000 * 10",
    remember="the brackets hold 10 x 10 numbers now, at any length",
    slips={
        "there are two products: first the brackets, then Q times what is in them": "10 * 1000 * 10",
        "that is the other bracket: which two shapes meet first?": "2 * 1000 * 10 * 1000",
        "the brackets sum over 1,000 tokens: (10, 1000) times (1000, 10)": "10 * 10 * 10 + 1000 * 10 * 10",
        "that is twice too many: multiplications alone are counted, no additions": "2 * 2 * 10 * 1000 * 10",
        "the brackets hold 10 x 10 numbers, so Q times these takes 1000 * 10 * 10": "10 * 1000 * (10 + 1000)",
    },
)

second_output = Number(
    name="second_output",
    notebook=PART,
    title="A state by hand",
    asked=(
        "One number per vector. Both queries are 0: phi(q) = 1. Keys 0 and 2: phi(k) is 1 and 3. Values 8"
        " and 4. The second output?"
    ),
    value=5,
    answer="(1 * 8 + 3 * 4) / (1 + 3)",
    remember="S is 8, then 20; z is 1, then 4: weights 1/4 and 3/4",
    slips={
        "divide by z, the sum of the weights": 20,
        "either you weighed by the keys, 0 and 2, or left the first token out: phi(k) gives 1 and 3": 4,
        "the weights are 1 and 3, not equal": 6,
        "that is the first output": 8,
        "divide by the weights' sum, 4, not by the number of tokens": 10,
    },
)


def by_state(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
) -> Float[Tensor, "n d_v"]:
    S, z, outputs = 0, 0, []
    for q, k, v in zip(query, key, value, strict=True):
        S = S + torch.outer(k, v)  # (d_k, d_v)
        z = z + k
        outputs.append(q @ S / (q @ z))
    return torch.stack(outputs)


def _features(seed: int, n: int, d_k: int, d_v: int, draw=drawn) -> Case:
    return {
        "query": draw(seed, n, d_k).abs() + 0.1,
        "key": draw(seed + 1, n, d_k).abs() + 0.1,
        "value": draw(seed + 2, n, d_v),
    }


def _numbers(query: list[float], key: list[float], value: list[float]) -> Case:
    return {name: table(x)[:, None] for name, x in (("query", query), ("key", key), ("value", value))}


def _softmax(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return attend(query, key, value, mask=causal(len(query), device=query.device)).output


def _more_by_state(drawn: Draw) -> list[Case]:
    return [_features(1, 7, 5, 3, drawn), _features(11, 13, 2, 5, drawn)]


write_by_state = Write(
    name="by_state",
    notebook=PART,
    second=lambda n: seconds.FROM_A_STATE,
    title="Attention, token by token",
    stars=2,
    minutes=6,
    why="this loop is an RNN and attention at once",
    asked=(
        "S and z start at 0. Each token enters, S + k v^T and z + k; then its query reads q S / (q . z)."
        " Queries and keys are features already, all positive. Give back all outputs"
    ),
    stages=(
        Stage(
            "two tokens of one number: keys 1 and 3, values 8 and 4",
            lambda: [_numbers([1, 1], [1, 3], [8, 4])],
            "S is 8, then 20; z is 1, then 4. The outputs are 8 and 5.",
        ),
        Stage(
            "three tokens, queries that differ",
            lambda: [_numbers([2, 5, 0.5], [1, 1, 2], [3, 9, 0])],
            "With one number the query cancels: 3, 6, 3.",
        ),
        Stage(
            "keys of two numbers",
            lambda: [
                {"query": table([[1, 0], [1, 1]]), "key": table([[1, 2], [1, 1]]), "value": table([[6], [2]])}
            ],
            "The second query sums both rows: (6 + 12 + 2 + 2) / 5.",
        ),
        Stage(
            "five tokens, keys of three numbers, values of two",
            lambda: [_features(21, 5, 3, 2), _features(31, 4, 2, 2)],
            "`torch.outer(k, v)` is k v^T: a row for each entry of k, (d_k, d_v).",
        ),
    ),
    hints=(
        "Which shape has k v^T, and which z? What must they be before the first token?",
        "A token sees itself. What comes first, then: entering or reading?",
        "With S of shape (d_k, d_v), is it q @ S or S @ q, and by what number do you divide?",
    ),
    solution=by_state,
    hidden=_more_by_state,
    remember="enter, then read: two lines of state, and nothing else is kept",
    slips={
        "the division is missing: the weights q . k must sum to 1": (" / (q @ z)", ""),
        "each token reads before it has entered; it must see itself": (
            "S, z, outputs = 0, 0, []",
            "S, z, outputs = torch.zeros(key.shape[1], value.shape[1]), torch.zeros(key.shape[1]), []",
            "        S = S + torch.outer(k, v)  # (d_k, d_v)\n"
            "        z = z + k\n"
            "        outputs.append(q @ S / (q @ z))",
            "        outputs.append(q @ S / (q @ z))\n        S = S + torch.outer(k, v)\n        z = z + k",
        ),
        "the query reads before its own token has entered, so the first finds nothing, 0: enter, then read": (
            "S, z, outputs = 0, 0, []",
            "S, z, outputs = torch.zeros(key.shape[1], value.shape[1]), torch.zeros(key.shape[1]), []",
            "        S = S + torch.outer(k, v)  # (d_k, d_v)\n"
            "        z = z + k\n"
            "        outputs.append(q @ S / (q @ z))",
            "        outputs.append(q @ S / (q @ z).clamp(min=1e-9))\n"
            "        S = S + torch.outer(k, v)\n"
            "        z = z + k",
        ),
        "the state holds the last token alone: add to what is there": ("S + torch", "torch", "z + k", "k"),
        "you divide by the number of tokens; the weights are q . k, and q . z is their sum": (
            "(q @ z)",
            "(len(outputs) + 1)",
        ),
        "you divide by the sum of z; the query weighs it, too: q . z": ("(q @ z)", "z.sum()"),
        "you divide S by z before the query reads; read both, then divide": (
            "q @ S / (q @ z)",
            "q @ (S / z[:, None])",
        ),
        "all outputs are read from the last state: early tokens see the future": (
            "        outputs.append(q @ S / (q @ z))\n    return torch.stack(outputs)",
            "    return query @ S / (query @ z)[:, None]",
        ),
        "that is softmax; here the weights are q . k themselves, divided by their sum": _softmax,
        "queries and keys are features already; you send them through phi a second time, which adds 1": (
            "    S, z, outputs",
            "    query, key = query + 1, key + 1\n    S, z, outputs",
        ),
        "you multiply by q . z; divide by it, so that the weights q . k sum to 1": ("/ (q @ z)", "* (q @ z)"),
        **exchanged("S, z, outputs"),
    },
)

fifth_name = Choice(
    name="fifth_name",
    notebook=PART,
    title="One name too many",
    asked="Eva's entry is added. Whose number does the state still answer rightly?",
    options={
        "a": "all five",
        "b": "those of the first four",
        "c": "Eva's alone",
        "d": "nobody's",
    },
    answer="d",
    remember="her key is half like each of the others, so she is heard in every answer, and they in hers",
    slips={
        "what is q . k for Ann's query and Eva's key?": "a",
        "are Ann's query and Eva's key at right angles? Their q . k is 0.5": "b",
        "what of the other four does her query read? It is half like each key": "c",
    },
)

three_numbers = Choice(
    name="three_numbers",
    notebook=PART,
    title="Ann has moved, twice",
    asked="Ann's key is written with 10, then 20, then 60. What does A, softmax attention, answer?",
    options={"a": "60", "b": "30", "c": "90", "d": "10"},
    answer="b",
    remember="equal keys get equal weights: the mean",
    slips={
        "does anything in the three keys tell early from late?": "a",
        "weights sum to 1": "c",
        "nothing makes the first key different from the others": "d",
    },
)


def gated_state(
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    gate: Float[Tensor, " n"],
) -> Float[Tensor, "d_k d_v"]:
    S = torch.zeros(key.shape[1], value.shape[1])
    for k, v, g in zip(key, value, gate, strict=True):
        S = g * S + torch.outer(k, v)
    return S


def _gated(seed: int, n: int, d_k: int, d_v: int, draw=drawn) -> Case:
    return {
        "key": draw(seed, n, d_k),
        "value": draw(seed + 1, n, d_v),
        "gate": draw(seed + 2, n).sigmoid(),
    }


def _ann(*gate: float) -> Case:
    return {"key": table([[1]] * 3), "value": table([[10], [20], [60]]), "gate": table(gate)}


def _more_gated(drawn: Draw) -> list[Case]:
    return [_gated(1, 7, 5, 3, drawn), _gated(11, 2, 3, 7, drawn)]


write_gated_state = Write(
    name="gated_state",
    notebook=PART,
    second=lambda n: seconds.A_GATE_FOR_EACH_ROW,
    title="A state that forgets",
    stars=2,
    minutes=6,
    why="this one number is what separates today's recurrent language models from plain linear attention",
    asked="S starts at 0; each token makes it g S + k v^T, with the token's own gate g. Give back the last S",
    stages=(
        Stage(
            "Ann's three numbers, key 1, each gate 0.5",
            lambda: [_ann(0.5, 0.5, 0.5)],
            "10, then 0.5 * 10 + 20 = 25, then 0.5 * 25 + 60 = 72.5.",
        ),
        Stage(
            "each token with another gate",
            lambda: [_ann(0.3, 0.1, 1.0)],
            "10, then 0.1 * 10 + 20 = 21, then 1 * 21 + 60 = 81. The first gate finds an empty state.",
        ),
        Stage(
            "a gate of 0 forgets everything",
            lambda: [_ann(0.5, 1.0, 0.0)],
            "The third token finds nothing: 60.",
        ),
        Stage(
            "five tokens, keys of three numbers, values of two",
            lambda: [_gated(21, 5, 3, 2)],
            "`torch.outer(k, v)` is k v^T: (d_k, d_v).",
        ),
    ),
    hints=(
        "Which shape has S, and what stands in it before the first token?",
        "Upon what does the gate act: what is there already, or what comes in?",
        "How do you walk through key, value and gate together?",
    ),
    solution=gated_state,
    hidden=_more_gated,
    remember="g S + k v^T: the gate acts on what is there, and what comes in enters whole",
    slips={
        "the gate is not used: this state forgets nothing": ("g * S", "S"),
        "what comes in is scaled, too; the gate acts upon the old state alone": (
            "g * S + torch.outer(k, v)",
            "g * (S + torch.outer(k, v))",
        ),
        "your gate acts upon what comes in; it belongs to the old state, and what comes in is whole": (
            "g * S + torch.outer(k, v)",
            "S + g * torch.outer(k, v)",
        ),
        "you let 1 - g of the new token in; it enters whole": (
            "+ torch.outer(k, v)",
            "+ (1 - g) * torch.outer(k, v)",
        ),
        "you keep 1 - g of the state; g is what is kept": ("g * S", "(1 - g) * S"),
        "the state holds the last token alone": ("g * S + ", ""),
        "the gate of the next token is used: each token brings its own": (
            "key, value, gate,",
            "key, value, gate.roll(-1),",
        ),
        "one gate, the first, is used for all": ("g * S", "gate[0] * S"),
        "the outer product is turned round: a row for each entry of k": (
            "torch.outer(k, v)",
            "torch.outer(v, k)",
            "key.shape[1], value.shape[1]",
            "value.shape[1], key.shape[1]",
        ),
        "you weigh each entry with the gates up to its own; it fades by those of the tokens behind it": (
            "    S = torch.zeros(key.shape[1], value.shape[1])\n"
            "    for k, v, g in zip(key, value, gate, strict=True):\n"
            "        S = g * S + torch.outer(k, v)\n"
            "    return S",
            "    weight = gate.cumprod(0)\n    return (key * weight[:, None]).mT @ value",
        ),
        "the gate is turned round: you keep 1 - g and let g in; keep g, and let all of it in": (
            "g * S + torch",
            "(1 - g) * S + g * torch",
        ),
    },
)

best_gate = Choice(
    name="best_gate",
    notebook=PART,
    title="How much to forget?",
    asked=("One gate g for all 100 entries: which is right most often?"),
    options={"a": "1", "b": "0.8", "c": "0.1"},
    answer="b",
    remember="old numbers of the same name must fade, and names written some entries ago must not",
    slips={
        "with g = 1 each name's old numbers, about eleven, weigh as much as the latest": "a",
        "since a name was last written, seven others came, on average: what is left of it then?": "c",
    },
)

ASKED = (
    brackets_save,
    second_output,
    write_by_state,
    fifth_name,
    three_numbers,
    write_gated_state,
    best_gate,
)
