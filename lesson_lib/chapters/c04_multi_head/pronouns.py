"""A small language in which *it* is one of two nouns, and the last word tells which.

"the animal did not cross the street because it was too tired": an animal can be tired, a street can be wide.
Each sentence has two nouns of different kinds and ends in an adjective that fits one of them. Two questions
are asked of it: who acted (the first noun), and what is *it* (the noun that the adjective fits). A sentence
is twelve words.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lesson_lib import require

KINDS = {  # the last two nouns of each kind stand in sentences of the family "others" only
    "animals": ("animal dog horse fox cat goat", "tired hungry afraid"),
    "ways": ("street road bridge path river valley", "wide long steep"),
    "foods": ("soup tea cake milk bread fish", "hot sweet bitter"),
    "cases": ("case box bag cup drawer basket", "full empty tight"),
}
FAMILIES = {  # 1 is the noun that acts, 2 the other; the adjective comes behind
    "it": (
        "the 1 did not cross the 2 because it was too",
        "today the 1 never met the 2 as it was so",
        "the 1 came near the 2 today as it was very",
        "so the 1 did not leave the 2 because it was",
    ),
    "others": (
        "here are the 1 and the 2 . one is too",
        "now we see the 1 beside the 2 . one is",
    ),
    "new": (
        "today the 1 met the 2 there as it was so",
        "at noon the 1 was near the 2 as it was",
        "the 1 did not go near the 2 as it was",
    ),
}
NOUNS = tuple(noun for nouns, _ in KINDS.values() for noun in nouns.split())
ADJECTIVES = tuple(word for _, adjectives in KINDS.values() for word in adjectives.split())
KIND = {word: kind for kind, both in KINDS.items() for word in " ".join(both).split()}
RARE = frozenset(noun for nouns, _ in KINDS.values() for noun in nouns.split()[4:])
SMALL = sorted({word for lines in FAMILIES.values() for line in lines for word in line.split()} - {"1", "2"})
WORDS = (*NOUNS, *ADJECTIVES, *SMALL)
PLACES = 11  # in front of the adjective
_NUMBER = {word: number for number, word in enumerate(WORDS)}


def read(*sentences: str) -> Int[Tensor, "b 12"]:
    """Sentences as numbers of words. Raises ValueError for another length, or a word that is not in the
    language."""
    rows = []
    for sentence in sentences:
        words = sentence.split()
        if len(words) != PLACES + 1:
            raise ValueError(f"a sentence has {PLACES + 1} words here, got {len(words)}: {sentence!r}")
        for word in words:
            require.one_of(WORDS, word=word)
        rows.append([_NUMBER[word] for word in words])
    return torch.tensor(rows, device="cpu")


def text(sentence: Int[Tensor, " n"]) -> str:
    """The words of one sentence."""
    return " ".join(WORDS[number] for number in sentence.tolist())


def is_noun(words: Int[Tensor, "*b n"]) -> Bool[Tensor, "*b n"]:
    """True where a word is a noun."""
    return words < len(NOUNS)


def sentences(family: str, rare: bool | None = None) -> tuple[Int[Tensor, "s 12"], Int[Tensor, "s 2"]]:
    """All sentences of a family, and their two right answers as numbers of nouns: who acted, and what is it.

    `rare` keeps those of rare nouns alone, or of the others alone (False). Raises ValueError for another
    family.
    """
    require.one_of(tuple(FAMILIES), family=family)
    nouns = [noun for noun in NOUNS if rare is None or (noun in RARE) == rare]
    lines, answers = [], []
    for line in FAMILIES[family]:
        for first in nouns:
            for second in nouns:
                for it in (first, second) if KIND[first] != KIND[second] else ():
                    for adjective in KINDS[KIND[it]][1].split():
                        words = line.replace("1", first).replace("2", second)
                        lines.append(f"{words} {adjective}")
                        answers.append((_NUMBER[first], _NUMBER[it]))
    return read(*lines), torch.tensor(answers, device="cpu")
