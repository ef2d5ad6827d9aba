"""What of the questions in 06d_bert.md is code."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from lesson_lib.chapters.c06_transformer.agreement import MASK
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.questions import Code


def hide_words(words, chosen, fate, other):
    hidden = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, other, words))
    return torch.where(chosen, hidden, words)


def _whole(rows: list) -> Tensor:
    return torch.tensor(rows, device="cpu")


def _fated(words: list, chosen: list, fate: list, other: list) -> Case:
    return {
        "words": _whole(words),
        "chosen": _whole(chosen).bool(),
        "fate": table(fate),
        "other": _whole(other),
    }


def _more_hide_words(drawn: Draw) -> list[Case]:
    ranks = [drawn(seed, 3, 11).flatten().argsort().argsort().view(3, 11) for seed in (1, 2, 3, 4)]
    words, chosen, fate, other = ranks
    return [{"words": words + 2, "chosen": chosen % 2 == 0, "fate": (fate + 0.5) / 33, "other": other + 40}]


def hidden_loss(logits, words, chosen):
    return F.cross_entropy(logits[chosen], words[chosen])


def _asked(logits: Tensor, words: list, chosen: list) -> Case:
    return {"logits": logits, "words": _whole(words), "chosen": _whole(chosen).bool()}


def _more_hidden_loss(drawn: Draw) -> list[Case]:
    words = drawn(2, 2, 7).flatten().argsort().view(2, 7) % 5
    return [{"logits": drawn(1, 2, 7, 5), "words": words, "chosen": (words + torch.arange(7)) % 3 == 0}]


def hidden_from_gap(gap, subject, n):
    place = torch.arange(n)
    asks = (place == gap[:, None])[:, :, None]
    seen = (place == subject[:, None])[:, None, :]
    return ~(asks & seen)


def _gaps(gap: list[int], subject: list[int], n: int) -> Case:
    return {"gap": _whole(gap), "subject": _whole(subject), "n": n}


def _more_hidden_from_gap(drawn: Draw) -> list[Case]:
    places = drawn(1, 13).argsort()
    return [{"gap": places[:5], "subject": places[5:10], "n": 13}]


def hidden_from_gap_2(
    subject: Int[Tensor, " b"],
    lengths: Int[Tensor, " b"],
    n: int,
) -> Bool[Tensor, "b n n"]:
    place = torch.arange(n)
    real = (place < lengths[:, None])[:, None, :]
    shown = (place != subject[:, None])[:, None, :]
    return (real & shown).expand(-1, n, -1)


def _sentences(subject: list[int], lengths: list[int], n: int) -> Case:
    given = {"subject": subject, "lengths": lengths}
    return {name: torch.tensor(places, device="cpu") for name, places in given.items()} | {"n": n}


CODE = {
    "hide_words": Code(
        solution=hide_words,
        cases=(
            lambda: [_fated([[5, 6, 7]], [[1, 0, 1]], [[0.1, 0.5, 0.7]], [[9, 9, 9]])],
            lambda: [_fated([[5, 6, 7]], [[1, 1, 0]], [[0.85, 0.2, 0.85]], [[8, 9, 10]])],
            lambda: [_fated([[5, 6, 7]], [[1, 1, 1]], [[0.95, 0.85, 0.3]], [[8, 9, 10]])],
            lambda: [
                _fated(
                    [[5, 6, 7, 8, 9], [10, 11, 12, 13, 14]],
                    [[1, 1, 0, 1, 0], [0, 1, 1, 0, 1]],
                    [[0.79, 0.81, 0.1, 0.91, 0.85], [0.3, 0.89, 0.5, 0.95, 0.99]],
                    [[20, 21, 22, 23, 24], [25, 26, 27, 28, 29]],
                )
            ],
        ),
        hidden=_more_hide_words,
    ),
    "hide_words_2": Code(
        wrong=(
            lambda words, chosen, fate, other: not chosen.any(),
            lambda words, chosen, fate, other: bool((fate[chosen] < 0.8).all()),
        ),
    ),
    "hidden_loss": Code(
        solution=hidden_loss,
        cases=(
            lambda: [_asked(table([[[0.0, 2.0, 0.0], [3.0, 0.0, 1.0]]]), [[1, 2]], [[0, 1]])],
            lambda: [_asked(drawn(1, 1, 3, 5), [[4, 0, 2]], [[1, 0, 1]])],
            lambda: [
                _asked(
                    drawn(2, 2, 5, 3), [[0, 1, 2, 0, 1], [2, 2, 1, 0, 0]], [[1, 0, 0, 0, 0], [1, 1, 1, 0, 1]]
                )
            ],
        ),
        hidden=_more_hidden_loss,
    ),
    "hidden_loss_2": Code(
        wrong=(
            lambda logits, words, chosen: bool(chosen.all()),
            lambda logits, words, chosen: bool((logits == logits.flatten()[0]).all()),
        ),
    ),
    "hidden_from_gap": Code(
        solution=hidden_from_gap,
        cases=(
            lambda: [_gaps([2], [0], 3)],
            lambda: [_gaps([3, 1], [1, 4], 5)],
            lambda: [_gaps([6, 2, 3, 0, 5], [1, 0, 4, 6, 5], 7)],
        ),
        hidden=_more_hidden_from_gap,
    ),
    "hidden_from_gap_2": Code(
        solution=hidden_from_gap_2,
        cases=(
            lambda: [_sentences([1], [3], 3)],
            lambda: [_sentences([0], [2], 4)],
            lambda: [_sentences([2, 4], [5, 7], 7)],
        ),
    ),
}
