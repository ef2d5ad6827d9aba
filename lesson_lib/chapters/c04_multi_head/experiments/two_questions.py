"""Who acted, and what is it? One layer of attention answers both questions of chapter 04's small language,
with one head and with more; and what happens where *it* asks, or where all words may answer.

Pairs of a noun and a last word are held out from training, and so are two further patterns.
"""

from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.chapters.c04_multi_head.pronouns import NOUNS, POSITIONS, WORDS, is_noun, sentences
from lesson_lib.device import to_device
from lesson_lib.heads import MultiHeadAttention, merge_heads, split_heads
from lesson_lib.training import History, fit

RECIPE = {
    "d_model": 32,
    "batch": 64,
    "steps": 800,
    "lr": 1e-2,
    "schedule": "constant",
    "two_layers": {"steps": 1600, "lr": 5e-3, "schedule": "one-cycle"},
    "systems": ["1 head", "2 heads", "4 heads", "1 head, all words", "2 heads, it asks", "2 layers, it asks"],
    "seeds": [0, 1, 2],
}
WIDTH = RECIPE["d_model"]
QUESTIONS = ("who acted", "what is it")
IT = WORDS.index("it")
TESTS = {  # is the pair of *it* and the last word held out, and which patterns
    "trained": (False, "trained"),
    "held-out pairs": (True, "trained"),
    "new patterns": (False, "new"),
    "both new": (True, "new"),
}


class Answered(NamedTuple):
    """Scores of the nouns for both questions, and the heads' weights on the words that may answer."""

    scores: Float[Tensor, "b two nouns"]
    weights: Float[Tensor, "b h one n"]


class TwoQuestions(nn.Module):
    """The last word asks, the nouns before it answer."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.word = nn.Embedding(len(WORDS), WIDTH)
        self.position = nn.Embedding(POSITIONS, WIDTH)
        self.attention = MultiHeadAttention(WIDTH, n_heads)
        self.answer = nn.Linear(WIDTH, 2 * len(NOUNS))

    def forward(self, sentence: Int[Tensor, "b n"]) -> Answered:
        x, nouns = self.word(sentence), is_noun(sentence[:, :-1])
        last, before = x[:, -1:], x[:, :-1]
        keys, mask = before + self.position.weight, nouns[:, None]
        output, weights = self.attention(last, keys, before, mask=mask)
        scores = self.answer(output[:, 0]).unflatten(-1, (2, -1))
        return Answered(scores, weights)


class AllWords(TwoQuestions):
    """The same, but every word before the last may answer."""

    def forward(self, sentence: Int[Tensor, "b n"]) -> Answered:
        x = self.word(sentence)
        output, weights = self.attention(x[:, -1:], x[:, :-1] + self.position.weight, x[:, :-1])
        return Answered(self.answer(output[:, 0]).unflatten(-1, (2, -1)), weights)


class ItAsks(TwoQuestions):
    """The same, but *it* asks the nouns; `reads_first`: after a layer in which every word reads the whole
    sentence."""

    def __init__(self, n_heads: int, *, reads_first: bool) -> None:
        super().__init__(n_heads)
        self.reading = MultiHeadAttention(WIDTH, n_heads) if reads_first else None
        self.last_position = nn.Parameter(torch.randn(1, WIDTH))

    def forward(self, sentence: Int[Tensor, "b n"]) -> Answered:
        x = self.word(sentence)
        placed = x + torch.cat([self.position.weight, self.last_position])
        read = placed if self.reading is None else placed + self.reading(placed, placed, placed).output
        asks = read[sentence == IT][:, None]
        output, weights = self.attention(asks, placed, x, mask=is_noun(sentence)[:, None])
        return Answered(self.answer(output[:, 0]).unflatten(-1, (2, -1)), weights)


def make(system: str) -> TwoQuestions:
    """The model of that name, one of RECIPE["systems"]."""
    require.one_of(RECIPE["systems"], system=system)
    number, heads = system.split(", ")[0].split()
    if "it asks" in system:
        return ItAsks(2, reads_first=heads == "layers")
    return (AllWords if "all words" in system else TwoQuestions)(int(number))


@cache
def bank(held_out: bool, patterns: str) -> tuple[Tensor, Tensor]:
    """All sentences of a test with their answers, made once."""
    return sentences(held_out=held_out, patterns=patterns)


def draw(generator: torch.Generator, batch: int = RECIPE["batch"]) -> tuple[Tensor, Tensor]:
    """Sentences (batch, 12) of the training and their answers (batch, 2)."""
    words, answers = bank(*TESTS["trained"])
    rows = torch.randint(len(words), (batch,), generator=generator, device="cpu")
    return words[rows], answers[rows]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross-entropy of both answers together."""
    words, answers = batch
    return F.cross_entropy(model(words).scores.flatten(0, 1), answers.flatten())


def train(system: str, seed: int = 0) -> tuple[TwoQuestions, History]:
    """Train one model; its name is one of RECIPE["systems"]."""
    torch.manual_seed(seed)
    model = to_device(make(system))
    settings = {key: RECIPE[key] for key in ("steps", "lr", "schedule")}
    settings |= RECIPE["two_layers"] if "layers" in system else {}
    history = fit(model, draw, loss, seed_number=seed, name=system, **settings)
    return model, history


def right(model: nn.Module, test: str) -> dict[str, float]:
    """Of all sentences of a test, the share of right answers to each question, and to "both" at once."""
    words, answers = to_device(bank(*TESTS[test]))
    with torch.no_grad():
        hits = model(words).scores.argmax(-1) == answers
    shares = hits.double().mean(0).tolist()
    return dict(zip(QUESTIONS, shares, strict=True)) | {"both": hits.all(-1).double().mean().item()}


def nouns_of(words: Int[Tensor, "b n"]) -> tuple[Int[Tensor, " b"], Int[Tensor, " b"]]:
    """The positions of the two nouns of each sentence."""
    where = is_noun(words).nonzero()[:, 1].view(-1, 2)
    return where[:, 0], where[:, 1]


def it_head(model: TwoQuestions) -> int:
    """The head that gives the noun that *it* is the most weight, over all of the training's sentences."""
    words, answers = to_device(bank(*TESTS["trained"]))
    with torch.no_grad():
        weights = model(words).weights[:, :, 0]
    target = words[:, : weights.shape[-1]] == answers[:, 1:]
    return (weights * target[:, None]).sum(-1).mean(0).argmax().item()


def say(model: TwoQuestions, words: Int[Tensor, "b n"], weights: Tensor) -> Tensor:
    """Scores of the nouns for both questions (b, 2, nouns), were these the heads' weights (b, h, 1, n)."""
    values = split_heads(model.attention.w_value(model.word(words[:, :-1])), model.attention.n_heads)
    output = model.attention.w_output(merge_heads(weights @ values))
    return model.answer(output[:, 0]).unflatten(-1, (2, -1))


def swapped(weights: Tensor, head: int, one: Tensor, other: Tensor) -> Tensor:
    """The weights (b, h, 1, n), where one head's weights at two positions of each sentence are exchanged."""
    rows, moved = torch.arange(len(weights), device=weights.device), weights.clone()
    moved[rows, head, 0, one], moved[rows, head, 0, other] = (
        weights[rows, head, 0, other],
        weights[rows, head, 0, one],
    )
    return moved


def followed(model: TwoQuestions, test: str) -> dict[str, float]:
    """After a change of weights by hand, the share of sentences in which the answer to "what is it" becomes
    the other noun: a swap in the head of *it*, the same in the other head, and all of the head's weight moved
    to the word *it*."""
    words, answers = to_device(bank(*TESTS[test]))
    one, other = nouns_of(words)
    head, rows = it_head(model), torch.arange(len(words), device=words.device)
    with torch.no_grad():
        weights = model(words).weights
        filler = weights.clone()
        filler[:, head] = (words[:, :-1] == IT)[:, None].to(weights)
        changes = {
            "moved to the other noun": swapped(weights, head, one, other),
            "moved to a small word": filler,
            "moved in the other head": swapped(weights, 1 - head, one, other),
        }
        nouns = torch.stack([words[rows, one], words[rows, other]], -1)
        wanted = nouns.sum(-1) - answers[:, 1]  # of the two nouns the one that *it* is not
        return {
            name: (say(model, words, changed)[:, 1].argmax(-1) == wanted).double().mean().item()
            for name, changed in changes.items()
        }


def baselines() -> dict[str, float]:
    """Share of right answers to "what is it" for rules that look at positions or counts alone, in the
    sentences with held-out pairs."""
    words, answers = bank(*TESTS["held-out pairs"])
    one, other = nouns_of(words)
    rows, it = torch.arange(len(words), device="cpu"), answers[:, 1]
    return {
        "nearest noun": (words[rows, other] == it).double().mean().item(),
        "first noun": (words[rows, one] == it).double().mean().item(),
        "commonest noun": it.bincount().max().item() / len(it),
    }


def run(seed: int) -> list[dict[str, float | str | int]]:
    """One row for each system; of two heads also what follows a change of weights by hand."""
    rows = []
    for system in RECIPE["systems"]:
        model, history = train(system, seed)
        row = {"seed": seed, "system": system, "cpu_s": history.cpu_s}
        for test in TESTS:
            row |= {f"{test}: {question}": share for question, share in right(model, test).items()}
        if system == "2 heads":
            row |= followed(model, "held-out pairs")
        rows.append(row)
    return rows
