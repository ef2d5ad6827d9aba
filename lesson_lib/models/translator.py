"""A translator of characters around any encoder and decoder: vocabulary, batches, loss, greedy translation.

It asks for two modules and knows nothing of what is inside them:

    encoder(x, lengths)              -> encoded, whatever the decoder takes; x (b, m, d_token) are embeddings
    decoder.d_output                 how wide the decoder's outputs are
    decoder(encoded, x)              -> (outputs (b, n, d_output), weights (b, n, m) or None); x[:, i] is the token before i
    decoder.start(encoded)           -> state before the first token
    decoder.step(encoded, x, state)  -> (output (b, d_output), state, weights (b, m) or None): one token further

`recurrent.py` has an encoder and two decoders of that kind.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib.device import to_device

PAD, START, END = 0, 1, 2
AT_ONCE = 250  # texts that are translated together

Pairs = Sequence[tuple[str, str]]  # texts and their translations, such as data.dates.draw returns


class Batch(NamedTuple):
    """Inputs (padded), their lengths, and right outputs from START to END (padded)."""

    source: Int[Tensor, "b m"]
    lengths: Int[Tensor, " b"]
    target: Int[Tensor, "b n"]


class Logits(NamedTuple):
    """A score for every character at every place of the output, and where the decoder looked (None where it cannot look)."""

    logits: Float[Tensor, "b n characters"]
    weights: Float[Tensor, "b n m"] | None


class Translation(NamedTuple):
    """A translation, and for each of its characters a row of weights over the input's (None where the decoder cannot look)."""

    text: str
    weights: Float[Tensor, "n m"] | None


class Vocabulary:
    """Characters as numbers: padding 0, start 1, end 2, then the given characters in their order.

    Raises ValueError where a character is given twice, or none at all.
    """

    def __init__(self, characters: str) -> None:
        if not isinstance(characters, str) or not characters or len(set(characters)) != len(characters):
            raise ValueError(
                f"characters must be a text of at least one character, none of them twice, got {characters!r}"
            )
        self.characters = characters
        self._number = {character: END + 1 + i for i, character in enumerate(characters)}

    def __len__(self) -> int:
        return END + 1 + len(self.characters)

    def encode(self, texts: Sequence[str]) -> tuple[Int[Tensor, "b n"], Int[Tensor, " b"]]:
        """Numbers of the characters, padded to the longest text, and the lengths; on the CPU.

        Raises ValueError for an empty text, and for one with a character that is not in this vocabulary.
        """
        rows = [self._numbers(text) for text in texts]
        return _padded(rows), torch.tensor([len(row) for row in rows], device="cpu")

    def decode(self, tokens: Int[Tensor, "b n"]) -> list[str]:
        """The text of each row, up to END."""
        texts = []
        for row in tokens.tolist():
            row = row[: row.index(END)] if END in row else row
            texts.append("".join(self.characters[token - END - 1] for token in row if token > END))
        return texts

    def batch(self, pairs: Pairs) -> Batch:
        """Pairs as tensors on the CPU."""
        source, lengths = self.encode([source for source, _ in pairs])
        return Batch(source, lengths, _padded([[START, *self._numbers(target), END] for _, target in pairs]))

    def _numbers(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(
                f"a text must be a str, got {type(text).__name__} {text!r}; of a pair take pair[0]"
            )
        unknown = sorted(set(text) - self._number.keys())
        if unknown:
            raise ValueError(
                f"{text!r} holds {', '.join(map(repr, unknown))}, which this vocabulary lacks; leave it out"
            )
        if not text:
            raise ValueError("there is nothing to translate: a text needs at least one character")
        return [self._number[character] for character in text]


class Batches:
    """Batches of texts of about one length, for `fit`: called with a generator, it returns the next Batch.

    `draw(generator, count)` makes pairs. `pool` batches of them are drawn at once, sorted by the length of the input, cut, and
    served in random order, so that hardly any work goes into padding. Raises ValueError where `batch` or `pool` is less than 1.
    Source: Bahdanau et al. 2014, arXiv:1409.0473, who sorted 1,600 pairs at a time.
    """

    def __init__(
        self, vocabulary: Vocabulary, draw: Callable[[torch.Generator, int], Pairs], *, batch: int, pool: int
    ) -> None:
        for name, value in (("batch", batch), ("pool", pool)):
            _at_least_one(value, name, "")
        self.vocabulary, self.draw, self.batch, self.pool = vocabulary, draw, batch, pool
        self._waiting: list[Pairs] = []

    def __call__(self, generator: torch.Generator) -> Batch:
        """The next batch."""
        if not self._waiting:
            pairs = sorted(self.draw(generator, self.batch * self.pool), key=lambda pair: len(pair[0]))
            order = torch.randperm(self.pool, generator=generator, device="cpu").tolist()
            self._waiting = [pairs[self.batch * i : self.batch * (i + 1)] for i in order]
        return self.vocabulary.batch(self._waiting.pop())


class Translator(nn.Module):
    """Scores of the next character: embed, encode, decode, read out linearly. Encoder and decoder are given; see above."""

    def __init__(
        self, vocabulary: Vocabulary, encoder: nn.Module, decoder: nn.Module, *, d_token: int
    ) -> None:
        super().__init__()
        self.vocabulary, self.encoder, self.decoder = vocabulary, encoder, decoder
        self.embed_source = nn.Embedding(len(vocabulary), d_token)
        self.embed_target = nn.Embedding(len(vocabulary), d_token)
        self.read = nn.Linear(decoder.d_output, len(vocabulary))

    def forward(
        self, source: Int[Tensor, "b m"], lengths: Int[Tensor, " b"], before: Int[Tensor, "b n"]
    ) -> Logits:
        """Logits of each output character, given the right ones before it (`before` starts with START)."""
        encoded = self.encoder(self.embed_source(source), lengths)
        output, weights = self.decoder(encoded, self.embed_target(before))
        return Logits(self.read(output), weights)

    @torch.no_grad()
    def greedy(
        self, source: Int[Tensor, "b m"], lengths: Int[Tensor, " b"], longest: int
    ) -> tuple[Int[Tensor, "b n"], list[Tensor | None]]:
        """Output tokens, each the likeliest after those before it, until each row has an END or is `longest`; and each step's weights."""
        encoded = self.encoder(self.embed_source(source), lengths)
        state = self.decoder.start(encoded)
        token = torch.full_like(source[:, 0], START)
        tokens, looks, ended = [], [], torch.zeros_like(token, dtype=torch.bool)
        while len(tokens) < longest and not ended.all():
            output, state, weights = self.decoder.step(encoded, self.embed_target(token), state)
            token = self.read(output)[:, END:].argmax(-1) + END  # never padding, never a second start
            tokens.append(token)
            looks.append(weights)
            ended = ended | (token == END)
        return torch.stack(tokens, 1), looks


def loss(model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the right next character; padding does not count."""
    logits, _ = model(batch.source, batch.lengths, batch.target[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=PAD)


def translate(model: Translator, texts: Sequence[str], *, longest: int = 40) -> list[Translation]:
    """Translations of the texts, in their order, made greedily; at most `longest` characters each.

    Raises TypeError where `texts` is one text and no list of them, ValueError where `longest` is less than 1, and for a text that is
    empty or has a character that the vocabulary lacks.
    """
    _at_least_one(longest, "longest", " of characters")
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise TypeError(f"texts must be a list of texts, got {type(texts).__name__}; one text is [text]")
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    made: dict[int, Translation] = {}
    for some in (order[i : i + AT_ONCE] for i in range(0, len(order), AT_ONCE)):
        tokens, lengths = model.vocabulary.encode([texts[i] for i in some])
        outputs, looks = model.greedy(*to_device((tokens, lengths)), longest)
        weights = None if looks[0] is None else torch.stack(looks, 1).cpu()
        for row, (i, text) in enumerate(zip(some, model.vocabulary.decode(outputs), strict=True)):
            seen = None if weights is None else weights[row, : len(text), : len(texts[i])]
            made[i] = Translation(text, seen)
    return [made[i] for i in range(len(texts))]


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    longest = max((len(row) for row in rows), default=0)
    return torch.tensor(
        [[*row, *[PAD] * (longest - len(row))] for row in rows], device="cpu", dtype=torch.long
    )


def _at_least_one(value: int, name: str, unit: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number{unit} >= 1, got {value!r}")
