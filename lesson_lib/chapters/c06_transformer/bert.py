"""A small BERT: an encoder that guesses hidden words from both sides; guesses by counting beside it; and ways
to look at its heads.

As published: learned positions, GELU, masks on 15 % of the words, logits from the table of embeddings.
Departures: pre-norm (it needs no warm-up of thousands of steps; the paper has post-norm), words and no word
pieces, no second sentence and no next-sentence task, no norm behind the embeddings, no extra layer before the
logits, no biases in attention, masks drawn anew for each batch.
Source: Devlin, Chang, Lee & Toutanova 2018, arXiv:1810.04805.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Attended, attend
from lesson_lib.blocks import Encoder, Stacked, TokenEmbedding
from lesson_lib.chapters.c06_transformer.agreement import LONGEST, MASK, PAD, VOCABULARY, read
from lesson_lib.device import to_device
from lesson_lib.masks import padding
from lesson_lib.positions import Learned
from lesson_lib.scores import scaled_dot


class Hidden(NamedTuple):
    """A batch with hidden words: what the model sees, the lengths, the words that were there, and which
    places it must guess."""

    seen: Int[Tensor, "b n"]
    lengths: Int[Tensor, " b"]
    words: Int[Tensor, "b n"]
    chosen: Bool[Tensor, "b n"]


class Guess(NamedTuple):
    """A word for a hidden place, and its probability."""

    word: str
    probability: float


class Maps(NamedTuple):
    """The words of a sentence, and where each looked: weights (layers, heads, n, n), a row for each query."""

    words: list[str]
    weights: Float[Tensor, "layers h n n"]


class Bert(nn.Module):
    """Scores of every word for every place, from the words on both sides.

    Parameters: (n_words + n_max) · d_model, those of an Encoder of that size, and n_words biases of the
    logits.
    Raises ValueError where d_model is no multiple of n_heads, or a count is less than 1.
    """

    def __init__(
        self,
        n_words: int = len(VOCABULARY),
        n_layers: int = 2,
        d_model: int = 48,
        n_heads: int = 2,
        d_inner: int = 192,
        *,
        n_max: int = LONGEST,
        dropout: float = 0.1,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(n_words, d_model, dropout=dropout, positions=Learned(n_max, d_model))
        with torch.no_grad():  # as large as the words' rows, which TokenEmbedding multiplies by the same root
            self.embedding.positions.table.mul_(d_model**0.5)
        self.encoder = Encoder(
            n_layers, d_model, n_heads, d_inner, dropout=dropout, norm_first=norm_first, activation=F.gelu
        )
        self.bias = nn.Parameter(torch.zeros(n_words))

    def forward(self, seen: Int[Tensor, "b n"], lengths: Int[Tensor, " b"]) -> Float[Tensor, "b n n_words"]:
        """Logits of the words at all places; the `lengths` hide the padding."""
        return self.embedding.logits(self.stack(seen, lengths).output) + self.bias

    def stack(
        self, seen: Int[Tensor, "b n"], lengths: Int[Tensor, " b"], *, weights: bool = False
    ) -> Stacked:
        """What the encoder leaves: its output; and each layer's weights and the residual stream if they are
        asked for."""
        return self.encoder(self.embedding(seen), mask=padding(lengths, seen.shape[1]), weights=weights)


def hide(
    words: Int[Tensor, "b n"],
    lengths: Int[Tensor, " b"],
    generator: torch.Generator,
    *,
    n_words: int = len(VOCABULARY),
    share: float | int = 0.15,
) -> Hidden:
    """A batch with 15 % of each sentence's words chosen, one at least: 80 % of those become [mask], 10 % a
    random word, 10 % stay.

    On the CPU, as everything that is drawn. The model must guess all that are chosen; it cannot tell which
    words were left or replaced, so it must have an opinion about each. Raises ValueError where `share` is not
    in 0 ... 1.
    Source: Devlin et al. 2018, arXiv:1810.04805, section 3.1; at least one, as in the code that they
    published.
    """
    chosen, fate, other = fates(words, lengths, generator, n_words=n_words, share=share)
    seen = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, other, words))
    return Hidden(torch.where(chosen, seen, words), lengths, words, chosen)


def fates(
    words: Int[Tensor, "b n"],
    lengths: Int[Tensor, " b"],
    generator: torch.Generator,
    *,
    n_words: int = len(VOCABULARY),
    share: float | int = 0.15,
) -> tuple[Bool[Tensor, "b n"], Float[Tensor, "b n"], Int[Tensor, "b n"]]:
    """What `hide` draws: which places are chosen, a number in 0 ... 1 for each place, and a random word for
    each. Raises the ValueErrors of `hide`."""
    if not 0 < share <= 1:
        raise ValueError(f"share must be over 0 and at most 1, got {share}; 0.15 is the published one")
    if words.device.type != "cpu":
        raise ValueError(f"words must lie on the CPU, got {words.device}; hide first, then use to_device")
    order, fate = torch.rand(2, *words.shape, generator=generator, device="cpu")
    count = (share * lengths).round().clamp(min=1)
    real = torch.arange(words.shape[1], device="cpu") < lengths[:, None]
    chosen = real & (order.masked_fill(~real, torch.inf).argsort(1).argsort(1) < count[:, None])
    other = torch.randint(MASK + 1, n_words, words.shape, generator=generator, device="cpu")
    return chosen, fate, other


def loss(model: Bert, batch: Hidden) -> Float[Tensor, ""]:
    """Mean cross-entropy of the words at the chosen places, whatever stands there."""
    logits = model(batch.seen, batch.lengths)
    return F.cross_entropy(logits[batch.chosen], batch.words[batch.chosen])


class Counts:
    """Guesses by counting: how often each word stood at a hidden place, beside these neighbours, in training
    batches of `hide`.

    `logits(seen, "nothing")` knows how frequent words are, "left" also the word before the place, "both" the
    words on either side; a hidden neighbour is [mask], as for the model. Rare neighbours lean on the guess
    that sees less, which counts as `prior` further observations.
    """

    def __init__(self, batch: Hidden, *, n_words: int = len(VOCABULARY), prior: float | int = 1.0) -> None:
        left, right = _neighbours(batch.seen)
        word, left, right = (table[batch.chosen] for table in (batch.words, left, right))
        alone = torch.bincount(word, minlength=n_words).float()[None]
        by_left = torch.bincount(left * n_words + word, minlength=n_words**2).float().view(n_words, -1)
        both = torch.bincount((left * n_words + right) * n_words + word, minlength=n_words**3).float()
        self.alone = _blend(alone, torch.full((1, n_words), 1 / n_words, device="cpu"), prior)
        self.by_left = _blend(by_left, self.alone, prior)
        self.by_both = _blend(both.view(n_words, n_words, -1), self.by_left[:, None], prior)

    def logits(self, seen: Int[Tensor, "b n"], sight: str) -> Float[Tensor, "b n n_words"]:
        """Logarithms of each word's share at each place; raises ValueError for another sight."""
        left, right = _neighbours(seen)
        if sight == "nothing":
            return self.alone[0].log().expand(*seen.shape, -1)
        if sight == "left":
            return self.by_left[left].log()
        if sight == "both":
            return self.by_both[left, right].log()
        raise ValueError(f"sight must be nothing, left or both, got {sight!r}")


def _neighbours(seen: Tensor) -> tuple[Tensor, Tensor]:
    """The words before and after each place; PAD beyond the ends."""
    padded = F.pad(seen, (1, 1), value=PAD)
    return padded[:, :-2], padded[:, 2:]


def _blend(counts: Tensor, wider: Tensor, prior: float) -> Tensor:
    """Shares of the words: counts, and `prior` observations more of which the wider guess says what
    they are."""
    return (counts + prior * wider) / (counts.sum(-1, keepdim=True) + prior)


@torch.no_grad()
def fill(model: Bert, sentence: str, *, top: int = 5) -> list[Guess]:
    """The `top` words for the one [mask] of a typed sentence, likeliest first.

    Raises ValueError for an unknown word, for no [mask] or more than one, and where `top` is less than 1.
    """
    words = read(sentence)
    places = (words[0] == MASK).nonzero().flatten().tolist()
    if len(places) != 1:
        raise ValueError(
            f"the sentence has {len(places) or 'no'} [mask]; write [mask] once, in the place of the word to"
            " guess: 'the keys [mask] old'"
        )
    require.whole(top=top)
    shares = model.eval()(*_one(words))[0, places[0]].softmax(-1).cpu()
    best = shares.topk(min(top, len(shares)))
    return [
        Guess(VOCABULARY[i], share)
        for i, share in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


@torch.no_grad()
def maps(model: Bert, sentence: str) -> Maps:
    """Where every word of a typed sentence looks, in every layer and head; on the CPU. Raises ValueError for
    an unknown word."""
    words = read(sentence)
    tables = model.eval().stack(*_one(words), weights=True).weights
    return Maps([VOCABULARY[i] for i in words[0].tolist()], torch.cat(tables).cpu())


@contextmanager
def changed(
    model: Bert,
    layer: int,
    head: int | None = None,
    *,
    mask: Bool[Tensor, "b n m"] | None = None,
    blind: Bool[Tensor, "b n m"] | None = None,
) -> Iterator[Bert]:
    """The model while one head of one layer (None: every head of it) is interfered with, for a `with`
    statement.

    `mask` says which queries may see which keys, beyond the padding; `blind`, its opposite, which may not.
    With neither the head's weights become uniform: it looks, but has no preference. Everything else is
    computed as ever, from what that head now says. Raises ValueError for a head there is not, and where both
    tables are given.
    """
    if mask is not None and blind is not None:
        raise ValueError("give mask (True = may look) or blind (True = may not), not both")
    allowed = ~blind if blind is not None else mask
    attention = _attention(model, layer)
    if head is not None and not 0 <= head < attention.n_heads:
        raise ValueError(f"head must be 0 to {attention.n_heads - 1} or None for all, got {head}")
    meant = torch.tensor([head in (None, h) for h in range(attention.n_heads)])[:, None, None]

    def interfered(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor, **options: Any) -> Attended:
        here = meant.to(query.device)
        if allowed is not None:
            return attend(query, key, value, mask=mask & (allowed[:, None] | ~here), **options)
        return attend(
            query, key, value, mask=mask, score=lambda q, k: scaled_dot(q, k).masked_fill(here, 0), **options
        )

    before, attention.attention = attention.attention, interfered
    try:
        yield model
    finally:
        attention.attention = before


def _attention(model: Bert, layer: int) -> nn.Module:
    n_layers = len(model.encoder.layers)
    if not 0 <= layer < n_layers:
        raise ValueError(f"layer must be 0 to {n_layers - 1}, got {layer}")
    return model.encoder.layers[layer].attention


def _one(words: Tensor) -> tuple[Tensor, Tensor]:
    """A sentence as the model takes it, on the lessons' device."""
    return to_device((words, torch.tensor([words.shape[1]], device="cpu")))
