"""Translators of characters: one vocabulary, one loss, one way to decode, and two machines that fulfil the
same protocol.

    model.vocabulary                        -> Vocabulary
    model(source, lengths, before)          -> Logits(logits (b, n, characters), weights); before[:, i] is the
                                            right token before i
    model.start(source, lengths)            -> state before the first token; state.take(rows) are those rows
                                            of the batch
    model.step(tokens (b,), state)          -> Step(logits (b, characters), state, weights (b, m) or None):
                                            one token further

`Translator` is made of any encoder and decoder of this kind (`recurrent.py` has one and two); it knows
nothing of what is inside:

    encoder(x, lengths)              -> encoded, tensors with a row per text; x (b, m, d_token) are embeddings
    decoder.d_output                 how wide the decoder's outputs are
    decoder(encoded, x)              -> (outputs (b, n, d_output), weights (b, n, m) or None); x[:, i] is the
                                     token before i
    decoder.start(encoded)           -> state before the first token
    decoder.step(encoded, x, state)  -> (output (b, d_output), state, weights (b, m) or None): one token
                                     further

`TransformerTranslator` is a Transformer, with a key/value cache as its state. Departure from Vaswani et al.
2017, arXiv:1706.03762, section 6.1: the beam's scores are not divided by a length penalty. All right answers
to one input are equally long here, so that short ones have no advantage to take away.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.blocks import DecoderState, Stacked, Transformer
from lesson_lib.device import to_device

PAD, START, END = 0, 1, 2
AT_ONCE = 250  # texts that are translated together
LONGEST = 40  # characters of an answer, where nothing else is said

Pairs = Sequence[tuple[str, str]]  # texts and their translations, such as data.dates.draw returns


class Batch(NamedTuple):
    """Inputs (padded), their lengths, and right outputs from START to END (padded)."""

    source: Int[Tensor, "b m"]
    lengths: Int[Tensor, " b"]
    target: Int[Tensor, "b n"]


class Logits(NamedTuple):
    """A score for every character at every place of the output, and where the decoder looked (None where it
    cannot, or was not asked)."""

    logits: Float[Tensor, "b n characters"]
    weights: Float[Tensor, "b n m"] | None


class Step(NamedTuple):
    """A score for every next character, the state behind it, and where the decoder looked (None where it
    cannot look)."""

    logits: Float[Tensor, "b characters"]
    state: Any
    weights: Float[Tensor, "b m"] | None


class Answers(NamedTuple):
    """Output tokens, and where the decoder looked for each. What stands behind a row's first END means
    nothing."""

    tokens: Int[Tensor, "b n"]
    weights: Float[Tensor, "b n m"] | None


class Translation(NamedTuple):
    """A translation, and for each of its characters a row of weights over the input's (None where the decoder
    cannot look)."""

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

    `draw(generator, count)` makes pairs. `pool` batches of them are drawn at once, sorted by the length of
    the input, cut, and served in random order, so that hardly any work goes into padding. Raises ValueError
    where `batch` or `pool` is less than 1.
    Source: Bahdanau et al. 2014, arXiv:1409.0473, who sorted 1,600 pairs at a time.
    """

    def __init__(
        self, vocabulary: Vocabulary, draw: Callable[[torch.Generator, int], Pairs], *, batch: int, pool: int
    ) -> None:
        require.whole(batch=batch, pool=pool)
        self.vocabulary, self.draw, self.batch, self.pool = vocabulary, draw, batch, pool
        self._waiting: list[Pairs] = []

    def __call__(self, generator: torch.Generator) -> Batch:
        """The next batch."""
        if not self._waiting:
            pairs = sorted(self.draw(generator, self.batch * self.pool), key=lambda pair: len(pair[0]))
            order = torch.randperm(self.pool, generator=generator, device="cpu").tolist()
            self._waiting = [pairs[self.batch * i : self.batch * (i + 1)] for i in order]
        return self.vocabulary.batch(self._waiting.pop())


class RecurrentState(NamedTuple):
    """What a Translator knows between two output tokens: all that its encoder left, and its decoder's
    state."""

    encoded: Any
    decoder: Any

    def take(self, rows: Int[Tensor, " rows"]) -> "RecurrentState":
        """The state of those texts of the batch, in that order; one may be taken twice."""
        return RecurrentState(_rows(self.encoded, rows), _rows(self.decoder, rows))


class Translator(nn.Module):
    """Scores of the next character: embed, encode, decode, read out linearly. Encoder and decoder are given;
    see above."""

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

    def start(self, source: Int[Tensor, "b m"], lengths: Int[Tensor, " b"]) -> RecurrentState:
        """Encode: the state before the first output token."""
        encoded = self.encoder(self.embed_source(source), lengths)
        return RecurrentState(encoded, self.decoder.start(encoded))

    def step(self, tokens: Int[Tensor, " b"], state: RecurrentState) -> Step:
        """One token further; `tokens` are the ones before."""
        output, after, weights = self.decoder.step(state.encoded, self.embed_target(tokens), state.decoder)
        return Step(self.read(output), RecurrentState(state.encoded, after), weights)


class TransformerTranslator(nn.Module):
    """Scores of the next character by a Transformer with one table of characters for input, output and
    logits.

    Sizes as in `blocks.Transformer`, small ones by default; further options (dropout, norm_first ...) are
    passed on to it. The weights that count as its alignment are the cross-attention of decoder layer
    `aligned`, averaged over the heads. It is the first layer by default: measured in
    `experiments.translation`, more of its weights lie on the right digits than of the second's. `forward`,
    which trains, makes none unless `weights=True`.
    Raises ValueError where there is no such layer.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        n_layers: int = 2,
        d_model: int = 64,
        n_heads: int = 4,
        d_inner: int = 256,
        aligned: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        require.whole(at_least=-n_layers, at_most=n_layers - 1, aligned=aligned)
        self.vocabulary, self.aligned = vocabulary, aligned
        self.transformer = Transformer(len(vocabulary), n_layers, d_model, n_heads, d_inner, **options)

    def forward(
        self,
        source: Int[Tensor, "b m"],
        lengths: Int[Tensor, " b"],
        before: Int[Tensor, "b n"],
        *,
        weights: bool = False,
    ) -> Logits:
        """Logits of all output characters at once, given the right ones before them (`before` starts with
        START)."""
        predicted = self.transformer(source, lengths, before, weights=weights)
        return Logits(predicted.logits, self._alignment(predicted.decoder) if weights else None)

    def start(self, source: Int[Tensor, "b m"], lengths: Int[Tensor, " b"]) -> DecoderState:
        """Encode, and open empty caches: the state before the first output token."""
        return self.transformer.start(source, lengths)

    def step(self, tokens: Int[Tensor, " b"], state: DecoderState) -> Step:
        """One token further; `tokens` are the ones before. Their keys and values join the caches of `state`,
        which comes back."""
        predicted = self.transformer.step(tokens[:, None], state, weights=True)
        return Step(predicted.logits[:, 0], state, self._alignment(predicted.decoder)[:, 0])

    def _alignment(self, decoder: Stacked) -> Tensor:
        return decoder.weights[self.aligned].cross.mean(1)


@torch.no_grad()
def greedy(model: nn.Module, source: Int[Tensor, "b m"], lengths: Int[Tensor, " b"], longest: int) -> Answers:
    """Answers of which each token is the likeliest after those before it, until each row has an END or is
    `longest`."""
    state, token = model.start(source, lengths), torch.full_like(source[:, 0], START)
    tokens, looks, ended = [], [], torch.zeros_like(token, dtype=torch.bool)
    while len(tokens) < longest and not ended.all():
        logits, state, weights = model.step(token, state)
        token = logits[:, END:].argmax(-1) + END  # never padding, never a second start
        tokens.append(token)
        looks.append(weights)
        ended = ended | (token == END)
    return Answers(torch.stack(tokens, 1), None if looks[0] is None else torch.stack(looks, 1))


@torch.no_grad()
def beam(
    model: nn.Module, source: Int[Tensor, "b m"], lengths: Int[Tensor, " b"], longest: int, width: int
) -> Answers:
    """Answers found by keeping, after every token, the `width` beginnings with the highest log-probability;
    the best of them is returned.

    The log-probability of an answer is the sum over its tokens, END included. An answer that has ended stays
    as it is, and since sums only fall, the search ends once the best is one that has ended. With width 1 this
    is `greedy`.
    Raises ValueError where `width` is less than 1.
    """
    require.whole(width=width)
    b = len(source)
    first = torch.arange(b, device=source.device)[:, None] * width  # the row of each text's best beginning
    state = model.start(source, lengths)
    state = state.take(torch.arange(b, device=source.device).repeat_interleave(width))
    tokens = torch.full((b, width, 1), START, device=source.device)
    total = torch.full((b, width), -torch.inf, device=source.device)
    total[:, 0] = 0.0  # the beginnings are still the same one
    ended, looks = torch.zeros_like(total, dtype=torch.bool), None
    while tokens.shape[-1] <= longest and not ended[:, 0].all():
        logits, state, weights = model.step(tokens[..., -1].flatten(), state)
        gain = logits.log_softmax(-1)[:, END:].unflatten(0, (b, width))  # never padding, never a second start
        gain = gain.masked_fill(ended[..., None], -torch.inf)
        gain[..., 0] = gain[..., 0].masked_fill(ended, 0.0)  # behind its END an answer gains nothing more
        total, best = (total[..., None] + gain).flatten(1).topk(width)
        parent, token = best // gain.shape[-1], best % gain.shape[-1] + END
        rows = (first + parent).flatten()
        tokens = torch.cat([tokens.flatten(0, 1)[rows], token.flatten()[:, None]], 1).unflatten(0, (b, width))
        ended, state = token == END, state.take(rows)
        if weights is not None:
            seen = weights[rows][:, None]
            looks = seen if looks is None else torch.cat([looks[rows], seen], 1)
    return Answers(tokens[:, 0, 1:], None if looks is None else looks[first[:, 0]])


def loss(model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the right next character; padding does not count."""
    logits, _ = model(batch.source, batch.lengths, batch.target[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=PAD)


def translate(
    model: nn.Module, texts: Sequence[str], *, longest: int = LONGEST, width: int = 1
) -> list[Translation]:
    """Translations of the texts, in their order, at most `longest` characters each; made greedily, or by a
    beam of some width.

    Raises TypeError where `texts` is one text and no list of them, ValueError where `longest` or `width` is
    less than 1, and for a text that is empty or has a character that the vocabulary lacks.
    """
    require.whole(longest=longest)
    require.whole(width=width)
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise TypeError(f"texts must be a list of texts, got {type(texts).__name__}; one text is [text]")
    order = sorted(range(len(texts)), key=lambda i: len(str(texts[i])))  # what is no text is named by encode
    made: dict[int, Translation] = {}
    for some in (order[i : i + AT_ONCE] for i in range(0, len(order), AT_ONCE)):
        tokens, lengths = model.vocabulary.encode([texts[i] for i in some])
        asked = *to_device((tokens, lengths)), longest
        outputs, looks = greedy(model, *asked) if width == 1 else beam(model, *asked, width)
        weights = None if looks is None else looks.cpu()
        for row, (i, text) in enumerate(zip(some, model.vocabulary.decode(outputs), strict=True)):
            seen = None if weights is None else weights[row, : len(text), : len(texts[i])]
            made[i] = Translation(text, seen)
    return [made[i] for i in range(len(texts))]


class Opened(NamedTuple):
    """One translation from inside: the characters at each place, and what went on in both stacks (batches of
    one).

    `target` are the decoder's inputs, "start" and the characters of the answer; from place i comes the
    answer's character i, or its end.
    """

    source: list[str]
    target: list[str]
    encoder: Stacked
    decoder: Stacked


@torch.no_grad()
def opened(model: TransformerTranslator, text: str) -> Opened:
    """What a Transformer does with one text: its greedy answer goes through it once more, all places at once,
    and everything is kept.

    Raises TypeError for another model, and as `translate` does for a text that cannot be translated.
    """
    if not isinstance(model, TransformerTranslator):
        raise TypeError(
            f"model must be a TransformerTranslator, got {type(model).__name__}; others have no layers to"
            " open"
        )
    source, lengths = to_device(model.vocabulary.encode([text]))
    tokens, _ = greedy(model, source, lengths, LONGEST)
    (answer,) = model.vocabulary.decode(tokens)
    before = F.pad(tokens[:, : len(answer)], (1, 0), value=START)
    predicted = model.transformer(source, lengths, before, weights=True)
    return Opened(list(text), ["start", *answer], predicted.encoder, predicted.decoder)


def _rows(part: Any, rows: Tensor) -> Any:
    """Those rows of a tensor, or of each tensor of a named tuple."""
    return part[rows] if isinstance(part, Tensor) else type(part)(*(each[rows] for each in part))


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    longest = max((len(row) for row in rows), default=0)
    return torch.tensor(
        [[*row, *[PAD] * (longest - len(row))] for row in rows], device="cpu", dtype=torch.long
    )
