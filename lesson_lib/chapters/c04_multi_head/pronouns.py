"""A small language in which *it* is one of two nouns, and the last word tells which.

"the animal did not cross the street because it was too tired": an animal can be tired, a street can be wide.
Each sentence has two nouns of different kinds and ends in a word that fits one of them. Two questions are
asked of it: who acted (the first noun), and what is *it* (the noun that the last word fits). A sentence is
twelve words.

Pairs of a noun and a last word are held out: each noun has one of the three last words of its kind that it
never meets in training, although both stand in other sentences.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lesson_lib import require

KINDS = {  # nouns, and the last words that fit them
    "animals": ("animal dog horse fox cat goat", "tired hungry afraid"),
    "places": ("street road bridge path river valley", "wide long steep"),
    "foods": ("soup tea cake milk bread fish", "hot sweet bitter"),
    "containers": ("case box bag cup drawer basket", "full empty tight"),
}
OURS = "the 1 did not cross the 2 because it was too"
PATTERNS = {  # 1 is the noun that acts, 2 the other; the last word comes behind
    "ours": (OURS,),
    "trained": (
        OURS,
        "today the 1 never met the 2 as it was so",
        "the 1 came near the 2 today as it was very",
        "so the 1 did not leave the 2 because it was",
    ),
    "new": (
        "today the 1 met the 2 there as it was so",
        "the 1 did not go near the 2 as it was",
    ),
}
NOUNS = tuple(noun for nouns, _ in KINDS.values() for noun in nouns.split())
LAST = tuple(word for _, fitting in KINDS.values() for word in fitting.split())
KIND = {word: kind for kind, both in KINDS.items() for word in " ".join(both).split()}
HELD_OUT = frozenset(
    (noun, fitting.split()[i % 3])
    for nouns, fitting in KINDS.values()
    for i, noun in enumerate(nouns.split())
)
SMALL = sorted({word for lines in PATTERNS.values() for line in lines for word in line.split()} - {"1", "2"})
WORDS = (*NOUNS, *LAST, *SMALL)
POSITIONS = 11  # in front of the last word
_NUMBER = {word: number for number, word in enumerate(WORDS)}


def read(*sentences: str) -> Int[Tensor, "b 12"]:
    """Sentences as numbers of words. Raises ValueError for another length, or a word that is not in the
    language."""
    rows = []
    for sentence in sentences:
        words = sentence.split()
        if len(words) != POSITIONS + 1:
            raise ValueError(f"a sentence has {POSITIONS + 1} words here, got {len(words)}: {sentence!r}")
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


def sentences(
    *, held_out: bool | None = None, patterns: str = "trained"
) -> tuple[Int[Tensor, "s 12"], Int[Tensor, "s 2"]]:
    """All sentences of some patterns, and their two right answers as numbers of nouns: who acted, and what is
    *it*.

    `held_out` keeps those in which *it* and the last word are a pair of HELD_OUT, or the others (False).
    Raises ValueError for other patterns.
    """
    require.one_of(tuple(PATTERNS), patterns=patterns)
    lines, answers = [], []
    for line in PATTERNS[patterns]:
        for first in NOUNS:
            for second in NOUNS:
                for it in (first, second) if KIND[first] != KIND[second] else ():
                    for last in KINDS[KIND[it]][1].split():
                        if held_out is None or ((it, last) in HELD_OUT) == held_out:
                            lines.append(f"{line.replace('1', first).replace('2', second)} {last}")
                            answers.append((_NUMBER[first], _NUMBER[it]))
    return read(*lines), torch.tensor(answers, device="cpu")
