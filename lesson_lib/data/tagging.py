"""Sentences with the part of speech of every word, from a small grammar in which "I saw a saw" matters.

`saw` is a noun or a past form, `watch` a noun or a base form, `cut` all three. The word before often tells;
but a base form may hang on an auxiliary many words back: "did the man that saw the duck near the house cut
the nail". Nouns may stand in front of nouns ("the garden saw"), so that now and then only a later word tells.

A *class* is a set of words that the grammar treats alike; it is named after one of them. A *pattern* is a
sentence with classes in the place of words. There are few enough patterns to list them all, with their
probabilities. So the best that a tagger can reach that sees only so much is computed, not estimated: see
`limit`. Within a class every word is equally likely, so a word says nothing beyond its class.

Source of the example sentence: Hung-yi Lee's lecture on self-attention, 2021. Grammar and words are ours.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib import require

TAGS = (
    "pronoun", "determiner", "adjective", "noun", "past", "base", "auxiliary", "preposition", "relative",
    "conjunction",
)  # fmt: skip

WORDS = {
    "I": "I he she we they",
    "me": "me him us them",
    "the": "the a every this some each my your our their",
    "old": "old small red quiet heavy sharp bright broken new tired wooden strange",
    "man": (
        "man woman child teacher dog cat garden river house friend doctor farmer baker sailor window table"
        " letter bottle basket ladder kitchen village engine kettle"
    ),
    "saw": "saw bit felt ground wound bore shot thought spoke bound drove stole",  # noun, or past form
    "watch": "watch duck hammer nail plant drill paint brush comb book hand shelter",  # noun, or base form
    "cut": "cut hit cast set hurt spread split shed read upset",  # noun, past form or base form
    "found": "found took made heard kept sold brought caught chose knew wrote drew broke gave",
    "find": "find take keep sell bring choose know write see hear follow remember",
    "will": "will did can must should could may might",
    "with": "with near behind under beside without from by",
    "that": "that",
    "and": "and but or",
}
WORDS = {name: tuple(words.split()) for name, words in WORDS.items()}
CLASSES = tuple(WORDS)
VOCABULARY = tuple(word for words in WORDS.values() for word in words)
AMBIGUOUS = ("saw", "watch", "cut")  # the classes with more than one tag
PADDING = -1

# What is written on the left in capitals is written out in one of the ways on the right, with that
# probability. "saw/noun" is a word of the class saw, used as a noun; a class alone has the one tag that
# `ONLY` gives it.
GRAMMAR = {
    "SENTENCE": {"STATEMENT": 0.5, "QUESTION": 0.3, "COMMAND": 0.1, "SHORT and SHORT": 0.1},
    "STATEMENT": {"BIG VERB OBJECT": 0.5, "SUBJECT VERB BIG": 0.3, "SUBJECT VERB OBJECT": 0.2},
    "QUESTION": {"will BIG BASE TINY": 0.8, "will SUBJECT BASE TINY": 0.2},
    "COMMAND": {"BASE BIG": 0.5, "BASE OBJECT": 0.5},
    "SHORT": {"I VERB TINY": 0.5, "the NOUN VERB TINY": 0.5},
    "SUBJECT": {"I": 0.3, "LONG": 0.7},
    "OBJECT": {"me": 0.2, "LONG": 0.8},
    "LONG": {"the NOUN": 0.4, "the old NOUN": 0.3, "the man NOUN": 0.3},
    "TINY": {"me": 0.25, "the NOUN": 0.75},
    "BIG": {
        "the NOUN PLACE": 0.4,
        "the NOUN that VERB TINY": 0.35,
        "the NOUN that VERB the NOUN with TINY": 0.25,
    },
    "PLACE": {"with TINY": 0.7, "with the NOUN with TINY": 0.3},
    "VERB": {"PAST": 0.75, "will BASE": 0.25},
    "NOUN": {"man": 0.5, "saw/noun": 0.2, "watch/noun": 0.15, "cut/noun": 0.15},
    "PAST": {"found": 0.25, "saw/past": 0.35, "cut/past": 0.4},
    "BASE": {"find": 0.25, "watch/base": 0.25, "cut/base": 0.5},
}
ONLY = {
    "I": "pronoun", "me": "pronoun", "the": "determiner", "old": "adjective", "man": "noun", "found": "past",
    "find": "base",
    "will": "auxiliary", "with": "preposition", "that": "relative", "and": "conjunction",
}  # fmt: skip
SPLITS = {"test": (0,), "validation": (1,), "training": tuple(range(2, 10))}  # of ten parts


class Patterns(NamedTuple):
    """All sentences the grammar can write, classes in the place of words; PADDING behind the shorter ones."""

    classes: Int[Tensor, "sentences n"]
    tags: Int[Tensor, "sentences n"]
    probability: Float[Tensor, " sentences"]


class Sentences(NamedTuple):
    """Sentences as numbers of words (of VOCABULARY), their classes and tags; PADDING behind the
    shorter ones."""

    words: Int[Tensor, "b n"]
    classes: Int[Tensor, "b n"]
    tags: Int[Tensor, "b n"]


@cache
def patterns() -> Patterns:
    """Every pattern of the grammar with its probability; the probabilities add up to 1."""
    codes, probability = _written_out("SENTENCE")
    # padding to the end
    codes = codes.gather(1, (codes == PADDING).to(torch.int8).argsort(dim=1, stable=True))
    codes = codes[:, (codes != PADDING).any(0)].long()
    real = codes != PADDING
    return Patterns(
        torch.where(real, codes // len(TAGS), PADDING),
        torch.where(real, codes % len(TAGS), PADDING),
        probability,
    )


def _cpu(numbers: Sequence, dtype: torch.dtype = torch.float64) -> Tensor:
    """Patterns, counts and draws are made on the CPU, so that every device gets the same sentences."""
    return torch.tensor(numbers, dtype=dtype, device="cpu")


@cache
def _written_out(symbol: str) -> tuple[Tensor, Tensor]:
    """Codes (ways, n) of class and tag, and the probability of each way; padding may stand anywhere
    in a row."""
    if symbol not in GRAMMAR:
        name, _, tag = symbol.partition("/")
        code = CLASSES.index(name) * len(TAGS) + TAGS.index(tag or ONLY[name])
        return _cpu([[code]], torch.int16), _cpu([1.0])
    ways = []
    for text, share in GRAMMAR[symbol].items():
        codes, probability = _cpu([[]], torch.int16), _cpu([share])
        for part in text.split():
            more, its = _written_out(part)
            codes = torch.cat([codes.repeat_interleave(len(more), 0), more.repeat(len(codes), 1)], dim=1)
            probability = (probability[:, None] * its).flatten()
        ways.append((codes, probability))
    width = max(codes.shape[1] for codes, _ in ways)
    padded = [torch.nn.functional.pad(codes, (0, width - codes.shape[1]), value=PADDING) for codes, _ in ways]
    return torch.cat(padded), torch.cat([probability for _, probability in ways])


# What a tagger sees of a pattern, as one number per token: equal numbers, equal sights. Four bits hold a
# class.


def window(radius: int) -> Callable[[Tensor], Tensor]:
    """Sight of a token, its class and those of the `radius` tokens on either side; raises ValueError beyond
    7."""
    if not 0 <= radius <= 7:
        raise ValueError(
            f"radius must be 0 to 7 tokens, got {radius}: 2 * 7 + 1 classes of four bits fill a number"
        )

    def sight(classes: Tensor) -> Tensor:
        n = classes.shape[1]
        padded = torch.nn.functional.pad(classes + 1, (radius, radius))
        return sum(padded[:, k : k + n] << 4 * k for k in range(2 * radius + 1))

    return sight


def before(classes: Tensor) -> Tensor:
    """Sight of all tokens up to and including one's own, in order: what a recurrent network has read."""
    seen, sight = torch.zeros_like(classes[:, 0]), []
    for column in (classes + 1).T:
        seen = (seen << 4) | column
        sight.append(seen)
    return torch.stack(sight, dim=1)


def bag(classes: Tensor) -> Tensor:
    """Sight of one's own class and of how often each class occurs: all tokens, without their order."""
    counts = torch.stack([(classes == k).sum(1) for k in range(len(CLASSES))], dim=1)
    packed = sum(counts[:, k] << 4 * (k + 1) for k in range(len(CLASSES)))
    return packed[:, None] + classes + 1


def whole(classes: Tensor) -> Tensor:
    """Sight of the whole sentence, and of one's own place in it."""
    sentence = before(classes)[:, -1]
    number = sentence.unique(return_inverse=True)[1]
    return (number[:, None] << 4) + torch.arange(classes.shape[1], device=classes.device)


def table(
    sight: Callable[[Tensor], Tensor], among: tuple[str, ...] = CLASSES
) -> Float[Tensor, "sights tags"]:
    """How probable each sight is together with each tag, over words of the classes `among`; exact, float64.

    Raises ValueError for a class that there is not.
    """
    unknown = [name for name in among if name not in CLASSES]
    if unknown or not among:
        raise ValueError(f"among must name classes of {', '.join(CLASSES)}, got {list(among)}")
    classes, tags, probability = patterns()
    counted = torch.isin(classes, _cpu([CLASSES.index(name) for name in among], torch.int64))
    mass = probability[:, None].expand_as(classes)[counted]
    seen = sight(classes)[counted].unique(return_inverse=True)[1]
    joint = mass.new_zeros(int(seen.max()) + 1, len(TAGS))
    joint.view(-1).index_add_(0, seen * len(TAGS) + tags[counted], mass)
    return joint


def limit(sight: Callable[[Tensor], Tensor], among: tuple[str, ...] = CLASSES) -> float:
    """The best share of right tags, over words of the classes `among`, for any tagger that sees no more than
    `sight`: the largest probability of each row of `table`, all added up, over the probability of all tokens.

    Source: the Bayes classifier.
    """
    joint = table(sight, among)
    # sums of parts may pass the sum of all by rounding
    return min(1.0, (joint.amax(1).sum() / joint.sum()).item())


def draw(generator: torch.Generator, batch: int, split: str = "training") -> Sentences:
    """`batch` sentences of a split, drawn with the grammar's probabilities; no sentence is in two splits.

    The words of a sentence, and nothing else, decide its split: eight tenths of all sentences are "training",
    a tenth each "validation" and "test". Raises ValueError for another split or fewer than one sentence.
    """
    require.one_of(SPLITS, split=split)
    if batch < 1:
        raise ValueError(f"batch must be at least 1 sentence, got {batch}")
    classes, tags, probability = patterns()
    kept, found = [], 0
    while found < batch:
        rows = torch.multinomial(probability, 2 * batch, replacement=True, generator=generator)
        words = _words(classes[rows], generator)
        fits = torch.isin(_part(words), _cpu(SPLITS[split], torch.int64))
        kept.append(Sentences(words[fits], classes[rows][fits], tags[rows][fits]))
        found += int(fits.sum())
    joined = Sentences(*(torch.cat(parts)[:batch] for parts in zip(*kept, strict=True)))
    longest = int((joined.tags != PADDING).sum(1).max())
    return Sentences(*(table[:, :longest] for table in joined))


def _words(classes: Tensor, generator: torch.Generator) -> Tensor:
    """A word of each class, all equally likely."""
    sizes = _cpu([len(words) for words in WORDS.values()], torch.int64)
    first = sizes.cumsum(0) - sizes
    share = torch.rand(classes.shape, generator=generator, device="cpu", dtype=torch.float64)
    return torch.where(classes == PADDING, PADDING, first[classes] + (share * sizes[classes]).long())


def _part(words: Tensor) -> Tensor:
    """Which of ten parts a sentence falls into: a remainder of its words' numbers, mixed."""
    mixed = torch.zeros_like(words[:, 0])
    for column in (words + 1).T:
        mixed = torch.where(column > 0, (mixed * 1_000_003 + column) % 2_147_483_647, mixed)
    return mixed % 10


def read(sentence: str) -> Int[Tensor, "1 n"]:
    """A sentence as numbers of words; raises ValueError for a word that the grammar does not have.

    >>> text(read("I saw a saw")[0])
    'I saw a saw'
    """
    if not isinstance(sentence, str) or not sentence.split():
        raise ValueError(
            f"a sentence is words with spaces between them, e.g. 'I saw a saw', got {sentence!r}"
        )
    words = ["I" if word in ("i", "I") else word.lower() for word in sentence.strip(" .?!").split()]
    if unknown := [word for word in words if word not in VOCABULARY]:
        raise ValueError(
            f"not among the {len(VOCABULARY)} words of this grammar: {', '.join(unknown)}; "
            f"some that are: {', '.join(name for name in CLASSES)}, {', '.join(WORDS['man'][:6])}"
        )
    return _cpu([[VOCABULARY.index(word) for word in words]], torch.int64)


def text(words: Int[Tensor, " n"]) -> str:
    """A row of word numbers as a sentence, padding left out."""
    return " ".join(VOCABULARY[word] for word in words.tolist() if word != PADDING)


def count_sentences() -> int:
    """How many different sentences the grammar can write: for each pattern the product of its
    classes' sizes."""
    classes, _, _ = patterns()
    sizes = _cpu([len(words) for words in WORDS.values()])
    return int(torch.where(classes == PADDING, 1.0, sizes[classes]).prod(1).sum())
