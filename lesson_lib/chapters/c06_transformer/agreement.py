"""Sentences in which a verb agrees in number with a subject that may stand far away: "the keys to the cabinet
near the door are old".

Between the subject and its verb stand 0 to 3 *attractors*: nouns with a number of their own, each in a phrase
("near the doors") or a relative clause ("that the man holds", whose verb agrees with "man"). Now and then a
phrase stands in front too ("near the doors the key falls"), so the first noun is not always the subject.
Determiners say nothing of number; each noun is singular or plural with probability 1/2, whatever the others
are. So nothing but the subject tells the number of the verb, and the right answer is known. A sentence
*misleads* where there is an attractor and every noun before the verb, but the subject, has the other number.

Source of the task: Linzen, Dupoux & Goldberg 2016, arXiv:1611.01368 (on real text). Grammar and words are
ours.
"""

import difflib
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lesson_lib import require

PAD, MASK = 0, 1

NOUNS = tuple(
    tuple(pair.split("/"))
    for pair in (
        "key/keys cabinet/cabinets door/doors window/windows box/boxes man/men woman/women child/children "
        "teacher/teachers sailor/sailors dog/dogs horse/horses house/houses garden/gardens bridge/bridges "
        "boat/boats lamp/lamps letter/letters book/books tree/trees"
    ).split()
)
VERBS = tuple(  # in turn: one followed by an adjective, by an object, by an adverb
    tuple(pair.split("/"))
    for pair in (
        "is/are has/have falls/fall was/were holds/hold moves/move seems/seem hides/hide waits/wait "
        "looks/look needs/need rests/rest"
    ).split()
)
DETERMINERS = ("the", "my", "our")
ADJECTIVES = tuple("old small red quiet heavy new".split())
ADVERBS = tuple("today often again slowly".split())
PREPOSITIONS = tuple("to near with behind under beside".split())
VOCABULARY = (
    "[pad]", "[mask]", "that", *DETERMINERS, *ADJECTIVES, *ADVERBS, *PREPOSITIONS,
    *(form for forms in NOUNS for form in forms), *(form for forms in VERBS for form in forms),
)  # fmt: skip

IN_FRONT, ADJECTIVE, RELATIVE = 0.4, 0.3, 0.3  # how often there is one
BETWEEN = (0.3, 0.3, 0.25, 0.15)  # how often there are 0, 1, 2, 3 attractors
# The longest sentence: a phrase in front, the subject with its adjective, three relative clauses, the verb,
# its object.
LONGEST = 3 + 3 + 3 * 4 + 1 + 2
CHANCES = 40  # random numbers for a sentence, more than any uses
SPLITS = {"test": (0,), "validation": (1,), "training": (2, 3, 4)}  # of five parts

_SINGULAR = {forms[1]: forms[0] for forms in (*NOUNS, *VERBS)}
_NUMBER = {word: i for i, word in enumerate(VOCABULARY)}
_PLURAL = torch.full((len(VOCABULARY),), -1, device="cpu")  # of nouns: 0 singular, 1 plural
for _forms in NOUNS:
    _PLURAL[[_NUMBER[form] for form in _forms]] = torch.tensor([0, 1], device="cpu")


class Sentences(NamedTuple):
    """Sentences as numbers of words (PAD behind the shorter ones), and what is known of each.

    `subject` and `verb` are places; `other` is the verb's form of the other number, as a word; `attractors`
    counts the nouns between.
    """

    words: Int[Tensor, "b n"]
    lengths: Int[Tensor, " b"]
    subject: Int[Tensor, " b"]
    verb: Int[Tensor, " b"]
    other: Int[Tensor, " b"]
    attractors: Int[Tensor, " b"]
    misleading: Bool[Tensor, " b"]

    def take(self, rows: Int[Tensor, " rows"] | Bool[Tensor, " b"]) -> "Sentences":
        """Those sentences, cut to the longest of them."""
        taken = [table[rows] for table in self]
        longest = int(taken[1].max()) if len(taken[1]) else 0
        return Sentences(taken[0][:, :longest], *taken[1:])

    def masked(self) -> Int[Tensor, "b n"]:
        """The words with [mask] in the place of each verb that agrees with the subject."""
        return self.words.scatter(1, self.verb[:, None], MASK)

    def right(self) -> Int[Tensor, " b"]:
        """The word that stood at the masked place."""
        return self.words.gather(1, self.verb[:, None])[:, 0]


def draw(generator: torch.Generator, count: int, split: str = "training") -> Sentences:
    """`count` sentences of a split, on the CPU. No sentence is in two splits, not even with another number of
    its nouns and verbs.

    The sentence with all its nouns and verbs in the singular decides the split: three fifths of those are
    "training", a fifth each "validation" and "test". Raises ValueError for another split or fewer than one
    sentence.
    """
    require.one_of(SPLITS, split=split)
    require.whole(count=count)
    drawn: list[tuple] = []
    while len(drawn) < count:
        chances = torch.rand(count, CHANCES, generator=generator, device="cpu", dtype=torch.float64).tolist()
        drawn += [one for one in (_sentence(iter(row)) for row in chances) if _part(one[0]) in SPLITS[split]]
    drawn = drawn[:count]
    longest = max(len(words) for words, *_ in drawn)
    rows = [[*map(_NUMBER.get, words), *[PAD] * (longest - len(words))] for words, *_ in drawn]
    columns = zip(*((len(words), *known) for words, *known in drawn), strict=True)
    return Sentences(*(torch.tensor(table, device="cpu") for table in (rows, *columns)))


def _sentence(chance: Iterator[float]) -> tuple:
    """Words of a sentence; places of subject and verb, the verb's other form, number of attractors, whether
    it misleads."""
    words, others = [], []  # `others` are the numbers of the nouns that are not the subject
    if next(chance) < IN_FRONT:
        number, words = _phrase(chance)
        others.append(number)
    words = [*words, _pick(chance, DETERMINERS)]
    if next(chance) < ADJECTIVE:
        words.append(_pick(chance, ADJECTIVES))
    subject, plural, share = len(words), _pick(chance, (0, 1)), next(chance)
    words.append(_pick(chance, NOUNS)[plural])
    attractors = sum(share >= sum(BETWEEN[: k + 1]) for k in range(len(BETWEEN) - 1))
    for _ in range(attractors):
        number, more = _clause(chance) if next(chance) < RELATIVE else _phrase(chance)
        others.append(number)
        words += more
    misleading = attractors > 0 and plural not in others
    place, verb = len(words), _pick(chance, range(len(VERBS)))
    words.append(VERBS[verb][plural])
    ends = [_pick(chance, ADJECTIVES)], _noun(chance)[1], [_pick(chance, ADVERBS)]
    words += ends[verb % 3]
    return words, subject, place, _NUMBER[VERBS[verb][1 - plural]], attractors, misleading


def _pick(chance: Iterator[float], options: Sequence) -> Any:
    return options[int(next(chance) * len(options))]


def _noun(chance: Iterator[float]) -> tuple[int, list[str]]:
    """A number, and a determiner with a noun of that number."""
    number = _pick(chance, (0, 1))
    return number, [_pick(chance, DETERMINERS), _pick(chance, NOUNS)[number]]


def _phrase(chance: Iterator[float]) -> tuple[int, list[str]]:
    preposition = _pick(chance, PREPOSITIONS)
    number, noun = _noun(chance)
    return number, [preposition, *noun]


def _clause(chance: Iterator[float]) -> tuple[int, list[str]]:
    number, noun = _noun(chance)
    return number, ["that", *noun, _pick(chance, VERBS[1::3])[number]]


def _part(words: Sequence[str]) -> int:
    """Which of five parts a sentence falls into: a remainder of its words' numbers, mixed; plurals count as
    their singulars."""
    mixed = 0
    for word in words:
        mixed = (mixed * 1_000_003 + _NUMBER[_SINGULAR.get(word, word)]) % 2_147_483_647
    return mixed % 5


def rules(sentences: Sentences) -> dict[str, float]:
    """The share of verbs whose number each simple rule gets right: what one can reach without knowing the
    subject. Ties count half.

    "a coin"; "nearest noun", the last before the verb; "first noun" of the sentence; "most nouns", the
    majority of those before the verb.
    """
    words = sentences.words.cpu()
    place = torch.arange(words.shape[1], device="cpu")
    plural = _PLURAL[words].masked_fill(place >= sentences.verb.cpu()[:, None], -1)
    wanted = _PLURAL[words.gather(1, sentences.subject.cpu()[:, None])[:, 0]]
    noun = plural >= 0
    first = plural.gather(1, noun.int().argmax(1, keepdim=True))[:, 0]
    last = plural.gather(1, (noun * (place + 1)).argmax(1, keepdim=True))[:, 0]
    share = (plural == 1).sum(1) / noun.sum(1)
    most = torch.where(share == 0.5, 0.5, ((share > 0.5) == (wanted == 1)).double())
    return {
        "a coin": 0.5,
        "nearest noun": (last == wanted).double().mean().item(),
        "first noun": (first == wanted).double().mean().item(),
        "most nouns": most.mean().item(),
    }


def verb_limits() -> dict[str, float]:
    """The least cross-entropy, in nats, with which a masked verb can be guessed: with its number known, and
    with all but that known.

    What follows a verb tells its kind, and every verb of a kind is equally likely: the logarithm of how many
    remain. Exact.
    """
    verbs = len(VERBS) // 3
    return {"number known": math.log(verbs), "number unknown": math.log(2 * verbs)}


def read(sentence: str) -> Int[Tensor, "1 n"]:
    """A typed sentence as numbers of words, [mask] allowed; on the CPU.

    Raises ValueError for a word that the vocabulary lacks, for more than LONGEST words, and for what is no
    sentence.

    >>> text(read("The keys [MASK] old.")[0])
    'the keys [mask] old'
    """
    if not isinstance(sentence, str) or not sentence.split():
        raise ValueError(
            "a sentence is words with spaces between them, e.g. 'the keys to the cabinet [mask] old', got"
            f" {sentence!r}"
        )
    words = [word.lower() for word in sentence.strip(" .?!").split()]
    for word in words:
        if word not in _NUMBER or word == "[pad]":
            near = difflib.get_close_matches(word, VOCABULARY[2:], n=4, cutoff=0.5)
            repair = f"near it: {', '.join(near)}" if near else "some that are: keys, cabinet, near, old, are"
            raise ValueError(
                f"{word!r} is not among the {len(VOCABULARY) - 2} words of this grammar; {repair}"
            )
    if len(words) > LONGEST:
        raise ValueError(f"a sentence may have at most {LONGEST} words, got {len(words)}; leave a phrase out")
    return torch.tensor([[_NUMBER[word] for word in words]], device="cpu")


def text(words: Int[Tensor, " n"]) -> str:
    """A row of word numbers as a sentence, padding left out."""
    return " ".join(VOCABULARY[word] for word in words.tolist() if word != PAD)
