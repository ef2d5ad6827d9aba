"""A small GPT: a stack of encoder layers that look back only, which guesses the next character of a text, and
so continues one.

    p(next character | text so far) = softmax(logits / temperature)

One causal stack, pre-norm, GELU, the table of embeddings used again for the logits. Training scores all
places of a window at once; generation runs one character at a time, with a cache of the keys and values of
those before.

Positions: "rotary", as language models are commonly made today, or "learned", as published. Either way the
model was trained on windows of `context` characters, and a longer text must be cut. So where the window is
full, its older half is dropped, and the cache, which holds what was computed with that half in view, is made
anew from the half that stays. What the model sees is thus one rule, with and without a cache. Departures from
Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training": characters in the place of
byte pairs, norms in front of the sub-layers (as in GPT-2, 2019), no biases in attention, and rotary positions
unless asked otherwise.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.blocks import Encoder, TokenEmbedding
from lesson_lib.heads import Cache
from lesson_lib.masks import causal
from lesson_lib.positions import Learned, rotary

AT_ONCE = 64  # windows that are scored together


class GPT(nn.Module):
    """Logits of the next character at every place of a text; characters are numbered by their place in
    `characters`.

    `context` is the longest text that it sees at once; `positions` are "rotary" or "learned". An empty text
    is continued as if it were `characters[0]`, which is the newline in data.topics.CHARACTERS. `n_key_heads`
    is MultiHeadAttention's: fewer heads of keys and values than of queries make the cache smaller by that
    factor. Parameters: those of the layers, 2 · d_model of the last norm, d_model for each character, and
    d_model for each place of the context where positions are learned.
    Raises ValueError where characters are missing or doubled, for a context of less than 2, for unknown
    positions, and for heads that do not divide.
    """

    def __init__(
        self,
        characters: str,
        *,
        n_layers: int = 3,
        d_model: int = 96,
        n_heads: int = 4,
        n_key_heads: int | None = None,
        context: int = 128,
        positions: str = "rotary",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not isinstance(characters, str) or not characters or len(set(characters)) != len(characters):
            raise ValueError(
                f"characters must be a text of at least one character, none of them twice, got {characters!r}"
            )
        require.whole(at_least=2, context=context)
        if positions not in ("rotary", "learned"):
            raise ValueError(f"positions must be 'rotary' or 'learned', got {positions!r}")
        turned = positions == "rotary"
        codes = _NoCodes() if turned else Learned(context, d_model)
        self.characters, self.context = characters, context
        self._number = {character: i for i, character in enumerate(characters)}
        self.embedding = TokenEmbedding(len(characters), d_model, dropout=dropout, positions=codes)
        self.encoder = Encoder(
            n_layers, d_model, n_heads, 4 * d_model,
            norm_first=True, activation=F.gelu, dropout=dropout, rotate=rotary if turned else None,
            n_key_heads=n_key_heads,
        )  # fmt: skip

    def forward(
        self, tokens: Int[Tensor, "b n"], caches: list[Cache] | None = None
    ) -> Float[Tensor, "b n characters"]:
        """Logits of the character after each token. With `caches`, tokens are the new ones only, and join
        them.

        Raises ValueError where there are more tokens than the context holds.
        """
        _axes("tokens", tokens, 2)
        n, past = tokens.shape[1], len(caches[0]) if caches else 0
        if past + n > self.context:
            raise ValueError(
                f"tokens must fit the context of {self.context}, got {past + n}; keep the last ones,"
                f" tokens[:, -{self.context}:]"
            )
        ahead = causal(past + n, queries=n, device=tokens.device) if n > 1 else None
        x = self.encoder(self.embedding(tokens, past), mask=ahead, caches=caches).output
        return self.embedding.logits(x)

    def numbers(self, text: str) -> Int[Tensor, " n"]:
        """The numbers of a text's characters, on the CPU; of an empty text, the number of `characters[0]`.

        Raises TypeError where it is no text, ValueError for a character that this model does not know.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__} {text!r}")
        unknown = sorted(set(text) - self._number.keys())
        if unknown:
            raise ValueError(
                f"text holds {', '.join(map(repr, unknown[:5]))}, which this model has never seen; leave it"
                " out, or write it with the characters that it knows (model.characters)"
            )
        known = [self._number[character] for character in text or self.characters[0]]
        return torch.tensor(known, dtype=torch.long, device="cpu")


def loss(model: nn.Module, windows: Int[Tensor, "b n_and_one"]) -> Float[Tensor, ""]:
    """Mean cross-entropy, in nats, of each character of the windows after the first, given those
    before it."""
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def window_start(n: int, context: int) -> int:
    """The place of the first character that a model sees when n are known: the window grows to `context`,
    then drops its older half.

    >>> [window_start(n, context=4) for n in range(1, 10)]
    [0, 0, 0, 0, 2, 2, 4, 4, 6]
    """
    half = context // 2
    return max(0, -((context - n) // half) * half)


@torch.no_grad()
def bits(model: GPT, tokens: Int[Tensor, " n"]) -> Float[Tensor, " n_less_one"]:
    """The surprise, -log2 p, of each character of a text after the first; float64, on the CPU.

    Each is seen with the same characters before it as in generation: `context` / 2 of them at least, where
    the text has so many. The mean is the number of bits per character; 2 to its power is the perplexity. The
    model should be in eval mode.
    """
    _axes("tokens", tokens, 1)
    n, context, half = len(tokens), model.context, model.context // 2
    require.whole(at_least=2, tokens=n)
    starts = range(0, max(1, n - 1 - context + half), half)
    windows = F.pad(tokens.cpu(), (0, context + half)).unfold(0, context + 1, half)[: len(starts)]
    parts = []
    for some in windows.split(AT_ONCE):
        given = model(some[:, :-1].to(model.embedding.table.device)).to("cpu", torch.float64).log_softmax(-1)
        parts.append(-given.gather(-1, some[:, 1:, None])[..., 0] / math.log(2))
    rows = torch.cat(parts)  # of each window after the first, the last rows are new
    return torch.cat([rows[0], rows[1:, -half:].flatten()])[: n - 1]


def distribution(
    logits: Float[Tensor, " characters"], temperature: float | int = 1.0, top_k: int | None = None
) -> Float[Tensor, " characters"]:
    """Probabilities of the next character, float64 on the CPU: `softmax(logits / temperature)` over the
    `top_k` largest logits.

    A temperature below 1 sharpens, one above 1 flattens, and 0 leaves the likeliest only. `top_k=None` keeps
    all characters.
    Raises ValueError for a temperature that is negative or no number, and where top_k is not in 1 ... the
    number of characters.
    Source: top-k sampling: Fan, Lewis & Dauphin 2018, arXiv:1805.04833.

    >>> distribution(torch.tensor([0.0, 3.0, 3.0, 1.0]), top_k=2).tolist()
    [0.0, 0.5, 0.5, 0.0]
    """
    _axes("logits", logits, 1)
    _check_sampling(temperature, top_k, len(logits))
    scores = logits.detach().to("cpu", torch.float64)
    if temperature == 0:
        top_k, temperature = 1, 1.0
    if top_k is not None:
        best = scores.topk(top_k)
        scores = torch.full_like(scores, -torch.inf).scatter(0, best.indices, best.values)
    return ((scores - scores.max()) / temperature).softmax(-1)


@torch.no_grad()
def generate(
    model: GPT,
    text: str,
    length: int,
    *,
    temperature: float | int = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    cached: bool = True,
) -> str:
    """The `length` characters that continue a text, drawn one by one from `distribution`; the text itself is
    not repeated.

    Draws come from a CPU generator with that seed: the same on every device, as far as the logits are.
    `cached=False` computes every character's window from its start, which gives the same text and costs more.
    Of a text longer than the context only the end is seen.
    Raises ValueError where length is less than 1, for temperatures and top_k as in `distribution`, and for
    unknown characters.
    """
    require.whole(length=length)
    _check_sampling(temperature, top_k, len(model.characters))
    generator = torch.Generator("cpu").manual_seed(seed)
    reader, known, made = _Reader(model, cached), model.numbers(text).tolist(), []
    for _ in range(length):
        shares = distribution(reader.logits(known + made), temperature, top_k)
        made.append(int(torch.multinomial(shares, 1, generator=generator)))
    return "".join(model.characters[number] for number in made)


@torch.no_grad()
def next_logits(model: GPT, text: str) -> Float[Tensor, " characters"]:
    """The logits of the character that follows a text."""
    return _Reader(model, cached=False).logits(model.numbers(text).tolist())


def next_characters(
    model: GPT, text: str, temperature: float | int = 1.0, top_k: int | None = None
) -> list[tuple[str, float]]:
    """The characters that may follow a text and their probabilities, the likeliest first; those of
    probability 0 are left out."""
    shares = distribution(next_logits(model, text), temperature, top_k).tolist()
    pairs = [(character, share) for character, share in zip(model.characters, shares, strict=True) if share]
    return sorted(pairs, key=lambda pair: -pair[1])


class _Reader:
    """Logits after a text that grows at its end: one new row of computation for each character, or the whole
    window."""

    def __init__(self, model: GPT, cached: bool) -> None:
        self.model, self.cached, self.start, self.caches = model, cached, -1, None

    def logits(self, known: list[int]) -> Float[Tensor, " characters"]:
        start = window_start(len(known), self.model.context)
        if not self.cached:
            return self._ask(known[start:])
        if start != self.start:  # the older half is dropped: nothing that was computed with it can stay
            self.start, self.caches = start, self.model.encoder.caches()
        return self._ask(known[start + len(self.caches[0]) :])

    def _ask(self, new: list[int]) -> Tensor:
        tokens = torch.tensor([new], device=self.model.embedding.table.device)
        return self.model(tokens, self.caches)[0, -1]


class _NoCodes(nn.Module):
    """Zeros in the place of codes of positions: rotary positions turn queries and keys instead."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(1, 1), persistent=False)

    def forward(self, n: int) -> Float[Tensor, "n 1"]:
        return self.zero.expand(n, 1)


def _check_sampling(temperature: Any, top_k: Any, count: int) -> None:
    require.number(temperature=temperature)
    if top_k is not None:
        require.whole(at_most=count, top_k=top_k)


def _axes(name: str, table: Any, count: int) -> None:
    if not isinstance(table, Tensor) or table.ndim != count:
        got = f"shape {tuple(table.shape)}" if isinstance(table, Tensor) else type(table).__name__
        raise ValueError(
            f"{name} must be a tensor with {count}"
            f" ax{'es, (b, n); one text is text[None]' if count > 1 else 'is'}, got {got}"
        )
