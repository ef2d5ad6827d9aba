"""What of the questions in 06e_gpt.md is code."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def next_loss(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _window(logits: Tensor, tokens: list[list[int]]) -> Case:
    return {"logits": logits, "tokens": torch.tensor(tokens, device="cpu")}


def _more_next_loss(drawn: Draw) -> list[Case]:
    tokens = drawn(2, 3, 7).flatten().argsort().view(3, 7) % 5
    return [{"logits": drawn(1, 3, 7, 5), "tokens": tokens}]


def tempered(logits, temperature):
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    return (logits / temperature).softmax(-1)


def _heated(logits: Tensor, temperature: float) -> Case:
    return {"logits": logits, "temperature": temperature}


def _more_tempered(drawn: Draw) -> list[Case]:
    return [_heated(drawn(1, 3, 7), 0.7), _heated(drawn(2, 2, 5), 0.0), _heated(drawn(3, 11), 1.9)]


CODE = {
    "next_loss": Code(
        solution=next_loss,
        cases=(
            lambda: [_window(table([[[0.0, 3.0, 1.0], [2.0, 0.0, 0.0]]]), [[0, 2]])],
            lambda: [_window(drawn(1, 1, 5, 3), [[0, 1, 2, 0, 1]])],
            lambda: [_window(drawn(2, 2, 4, 5), [[0, 1, 2, 3], [4, 4, 0, 2]])],
        ),
        hidden=_more_next_loss,
    ),
    "next_loss_2": Code(
        wrong=(
            lambda logits, tokens: bool((logits == logits.flatten()[0]).all()),
            lambda logits, tokens: bool((tokens == tokens.flatten()[0]).all()),
        ),
    ),
    "tempered": Code(
        solution=tempered,
        cases=(
            lambda: [_heated(table([2.0, 0.0]), 1.0)],
            lambda: [_heated(table([2.0, 0.0]), 0.5), _heated(table([2.0, 0.0]), 2.0)],
            lambda: [_heated(table([1.0, 3.0, 2.0]), 0.0)],
            lambda: [_heated(drawn(1, 2, 3), 0.5), _heated(drawn(2, 2, 3), 0.0)],
        ),
        hidden=_more_tempered,
    ),
    "tempered_2": Code(
        wrong=(
            lambda logits, temperature: temperature == 1,
            lambda logits, temperature: bool((logits == logits.flatten()[0]).all()),
        ),
    ),
}
