"""Second problems of part 12: the same sentence read kindly, and another claim."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn


def to_the_letter_2(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "m d"],
    value: Float[Tensor, "m d_v"],
    mask: Bool[Tensor, "n m"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    powers = scores.exp() * mask
    return powers @ value / powers.sum(-1, keepdim=True)


def _edges(seed: int, n: int, m: int, d: int) -> Case:
    mask = drawn(seed + 3, n, m) > 0
    mask[:, 0] = True
    return {
        "query": drawn(seed, n, d),
        "key": drawn(seed + 1, m, d),
        "value": drawn(seed + 2, m, d),
        "mask": mask,
    }


KINDLY = Write(
    name="to_the_letter_2",
    title="The same sentence, read kindly",
    asked=(
        "strangers have the WEIGHT 0, and the weights of the others sum to 1: without -inf anywhere. Outputs"
        " (n, d_v); every query has a neighbour"
    ),
    stages=(
        Stage(
            "three nodes", lambda: [_edges(1, 3, 3, 2)], "exp of the scores, times the mask, over their sum."
        ),
        Stage("four queries, seven keys", lambda: [_edges(7, 4, 7, 3)], "The sum is over neighbours only."),
    ),
    hints=(
        "Where in softmax does a score become a number that may be 0?",
        "What is exp(score) times a mask of 0 and 1?",
        "By which sum is it divided, so that the neighbours' weights sum to 1?",
    ),
    solution=to_the_letter_2,
    remember="0 behind exp is -inf before it",
    slips={
        "the scores are set to 0, before exp: strangers are heard": (
            "scores.exp() * mask",
            "(scores * mask).exp()",
        ),
        "the sum still counts the strangers: the neighbours' weights sum to less than 1": (
            "powers.sum(-1, keepdim=True)",
            "scores.exp().sum(-1, keepdim=True)",
        ),
        "True means connected: the neighbours are hidden": ("* mask", "* ~mask"),
        "the division by the sum is missing": (" / powers.sum(-1, keepdim=True)", ""),
        "the scores are not divided by the root of d": (" / query.shape[-1] ** 0.5", ""),
    },
)


def share_on_itself_2(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "d d_k"],
    w_key: Float[Tensor, "d d_k"],
) -> Float[Tensor, ""]:
    best = attend(x @ w_query, x @ w_key, x).weights.argmax(-1)
    i = torch.arange(len(x), device=x.device)
    return ((best - i).abs() == 1).double().mean()


def _drawn(seed: int, n: int, d: int) -> Case:
    return {"x": drawn(seed, n, d), "w_query": drawn(seed + 1, d, 3), "w_key": drawn(seed + 2, d, 3)}


BEFORE_IT = Write(
    name="share_on_itself_2",
    title="Another claim",
    asked=(
        '"A token attends most to a neighbour": give the share of tokens whose largest weight is on the token'
        " directly before or behind them"
    ),
    stages=(
        Stage("eleven tokens", lambda: [_drawn(1, 11, 4)], "Neighbours are one place away."),
        Stage("thirty tokens", lambda: [_drawn(5, 30, 2)], "The first and the last have one neighbour."),
    ),
    hints=(
        "Which number does the token with the largest weight have?",
        "How far is it from the token's own number?",
        "How does a count become a share?",
    ),
    solution=share_on_itself_2,
    remember="another sentence, the same two lines",
    slips={
        "only the token behind counts here; the one before does, too": ("(best - i).abs()", "(best - i)"),
        "only the token before counts here; the one behind does, too": ("(best - i).abs()", "(i - best)"),
        "the token itself is no neighbour": (".abs() == 1", ".abs() <= 1"),
        "that is the number of tokens": ("mean()", "sum()"),
        "ask for each query, along the keys": ("argmax(-1)", "argmax(0)"),
    },
)
