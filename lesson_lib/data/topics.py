"""Python's own manual as text to learn from: the topics of `help()`, which come with the interpreter.

The text is `pydoc_data.topics`, about 450,000 characters in 80 topics; its words differ from one Python
version to the next, so nothing may depend on them. What does not differ is the alphabet, `CHARACTERS`: a
newline and the 95 printable characters of ASCII. Typographic quotes and dashes become plain ones, anything
else beyond ASCII a question mark; tables and the lines under headings are left out, since they are runs of
one sign.

Whole topics are split by a hash of their names: about a tenth for testing, a tenth for validation, the rest
for training. Topics quote each other ("compound" holds most of "for", "if" and "while"), so a paragraph is
dropped where it shares `QUOTED` characters in a row, blanks and line ends taken as one, with one that was
kept before. Test topics are read first, then validation, then training: what stands in a test topic is never
trained on, and nothing is trained on twice. Shorter formulas ("See also:") stay in all splits. Licence of the
text: see `licence`.
"""

import re
import zlib
from functools import cache

import torch
from jaxtyping import Int
from torch import Tensor

from lesson_lib import require

CHARACTERS = "\n" + "".join(map(chr, range(ord(" "), ord("~") + 1)))  # a character's number is its place here
SPLITS = ("test", "validation", "training")
QUOTED = 40  # characters in a row that two paragraphs of different splits never share
PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\u00a0": " "})
TABLE = re.compile(r"\s*([|+].*[|+]|([*=~^-])\2+)\s*")


def licence() -> str:
    """Whose text this is, and under which terms; a sentence to show beside it."""
    return (
        "Text of the Python documentation, (c) Python Software Foundation, under the PSF License: "
        "https://docs.python.org/3/license.html; it comes with Python, as pydoc_data.topics."
    )


def clean(text: str) -> str:
    """The text in CHARACTERS only, without tables, underlines, blanks at line ends and more than one empty
    line in a row.

    Raises TypeError where `text` is no text.

    >>> clean("A “title”\\n*********\\n\\n\\n\\nß…")
    'A "title"\\n\\n?...'
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}")
    plain = text.translate(PLAIN).replace("\t", "    ")
    lines = [line.rstrip() for line in plain.split("\n") if not TABLE.fullmatch(line)]
    kept = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return re.sub(r"[^\n -~]", "?", kept)


def split_of(topic: str) -> str:
    """The split of a topic's name: by a checksum of the name, the same in every Python.

    >>> split_of("compound")
    'training'
    """
    return SPLITS[min(2, zlib.crc32(topic.encode()) % 10)]


@cache
def texts(split: str) -> dict[str, str]:
    """The topics of a split ("test", "validation", "training") by name, in the order of their names, without
    what stands in an earlier split.

    Raises ValueError for another split, ModuleNotFoundError where this Python came without its manual.
    """
    require.one_of(SPLITS, split=split)
    return _kept(_manual())[split]


@cache
def stream(split: str) -> Int[Tensor, " characters"]:
    """All topics of a split, one after the other with an empty line between, as numbers of CHARACTERS; on the
    CPU."""
    joined = "\n\n".join(texts(split).values()) + "\n"
    codes = torch.frombuffer(bytearray(joined, "ascii"), dtype=torch.uint8).long()
    return (codes - ord(" ") + 1).clamp(min=0)  # a newline is 0, a blank 1


def draw(
    generator: torch.Generator, batch: int, length: int, split: str = "training"
) -> Int[Tensor, "batch length_and_one"]:
    """Windows of `length` + 1 characters from anywhere in a split, as numbers of CHARACTERS, on the CPU.

    The first `length` are a model's inputs, the last `length` the characters to predict. Raises ValueError
    where a count is less than 1 and where the split is shorter than a window.
    """
    require.whole(batch=batch, length=length)
    known = stream(split)
    if length >= len(known):
        raise ValueError(f"length must be less than the split's {len(known)} characters, got {length}")
    starts = torch.randint(len(known) - length, (batch, 1), generator=generator, device="cpu")
    return known[starts + torch.arange(length + 1, device="cpu")]


def _manual() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise ModuleNotFoundError(
            "this Python came without pydoc_data, the text of its manual; install the full standard library"
            " (on Debian and Ubuntu: apt install python3; on Fedora: python3-libs) or Python from python.org"
            " or conda"
        ) from None
    return topics


def _kept(manual: dict[str, str]) -> dict[str, dict[str, str]]:
    """Each split's topics, without paragraphs that quote one that was kept before."""
    seen: set[str] = set()
    kept: dict[str, dict[str, str]] = {split: {} for split in SPLITS}
    for topic in sorted(manual, key=lambda name: (SPLITS.index(split_of(name)), name)):
        paragraphs = []
        for paragraph in clean(manual[topic]).split("\n\n"):
            words = " ".join(paragraph.split())
            runs = {words[i : i + QUOTED] for i in range(len(words) - QUOTED + 1)}
            if seen.isdisjoint(runs):
                paragraphs.append(paragraph)
                seen |= runs
        if paragraphs:
            kept[split_of(topic)][topic] = "\n\n".join(paragraphs)
    return kept
