"""Passages of four packages' documentation, character by character: which package does a passage speak of?

The texts are the docstrings of PACKAGES, which come with the course's dependencies; they are read from the
source files, and nothing is imported. The packages' names and usual short names (`np`, `nx`, ...) are
replaced by `***`; their subjects, their habits of writing and the names of their modules are not. Tables and
underlines are left out and rare characters are replaced as in `topics.clean`.

Whole files are split by a checksum of their modules' names, so that no file is in two splits. Of each package
files are read in the order of these checksums until each split has `ENOUGH` characters; files above `LARGEST`
are left out. A paragraph is dropped where it shares `QUOTED` characters in a row, blanks and line ends taken
as one, with an earlier split: test comes first, then validation, then training. Within a split repeats stay.
Text differs from version to version, so nothing may depend on its words. The texts are documentation of
NumPy, SciPy, scikit-learn and NetworkX, (c) their developers, each under the 3-clause BSD License; they are
read where these packages are installed, not copied into this project.

Task: classification of text by bytes, as in Tay et al. 2021, Long Range Arena, arXiv:2011.04006; theirs are
reviews of films.
"""

import ast
import re
import warnings
import zlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lesson_lib import require
from lesson_lib.data.topics import CHARACTERS, QUOTED, clean

PACKAGES = ("numpy", "scipy", "sklearn", "networkx")  # an answer is a place in this tuple
SPLITS = ("training", "validation", "test")
SHORTEST = 128  # characters of a passage
ENOUGH = {"training": 240_000, "validation": 60_000, "test": 60_000}  # characters of a package, as found
LARGEST = 40_000  # bytes of a source file; larger ones take long to parse
PER_FILE = (
    10_000  # about: no docstring is added to so many characters of one file, so that many files are read
)
HIDDEN = "***"
_LONG = "numpy|scipy|networkx|scikit-?learn|sklearn|scikits?|matplotlib|pyplot|pandas|pytorch|torch"
_SHORT = "np|npt|sp|spla|sps|nx|nxp|mpl|plt|pd|xp|xpx|scikit|num_?py|sci_?py"
NAMES = re.compile(rf"{_LONG}|(?<![A-Za-z0-9])(?:{_SHORT})(?![A-Za-z0-9])", re.IGNORECASE)
_BLANK = CHARACTERS.index(" ")


class Passages(NamedTuple):
    """Pieces of text as numbers of CHARACTERS, and each one's place in PACKAGES."""

    tokens: Int[Tensor, "b n"]
    answer: Int[Tensor, "b"]


def split_of(module: str) -> str:
    """The split of a module's name: by a checksum of the name, a fifth each for test and validation.

    >>> split_of("numpy.linalg._linalg")
    'training'
    """
    return {0: "test", 1: "validation"}.get(zlib.crc32(module.encode()) % 5, "training")


def hide(text: str) -> str:
    """The text with the packages' names and usual short names replaced by HIDDEN.

    >>> hide("import numpy as np; np.exp(input)  # as NumPy's own")
    "import *** as ***; ***.exp(input)  # as ***'s own"
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}")
    return NAMES.sub(HIDDEN, text)


def texts(split: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """The passages of a split by package and by module; a passage is what is left of one docstring, SHORTEST
    characters at least.

    Raises ValueError for another split, ModuleNotFoundError where a package is missing.
    """
    require.one_of(SPLITS, split=split)
    return _kept()[split]


def draw(split: str, batch: int, generator: torch.Generator, *, n: int = 256) -> Passages:
    """A batch of a split: each package equally likely, then any of its passages, then any `n` characters in a
    row of it; on the CPU.

    A shorter passage is filled with blanks at its end. Raises ValueError for an unknown split and where a
    count is less than 1, TypeError where `generator` is none.
    """
    require.one_of(SPLITS, split=split)
    require.whole(batch=batch, n=n)
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, got {type(generator).__name__}")
    codes, first, length, before = _stream(split)

    def below(limit: Tensor) -> Tensor:
        chance = torch.rand(batch, generator=generator, device="cpu", dtype=torch.float64)
        return (chance * limit).long()

    answer = torch.randint(len(PACKAGES), (batch,), generator=generator, device="cpu")
    passage = before[answer] + below(before[answer + 1] - before[answer])
    room = (length[passage] - n).clamp(min=0)
    place = below(room + 1)[:, None] + torch.arange(n, device="cpu")
    inside = place < length[passage][:, None]
    tokens = codes[(first[passage][:, None] + place).clamp(max=len(codes) - 1)]
    return Passages(torch.where(inside, tokens, _BLANK), answer)


@cache
def _stream(split: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All characters' numbers; each passage's first character and length; how many passages stand before each
    package."""
    by_package = [[p for passages in modules.values() for p in passages] for modules in texts(split).values()]
    if short := [name for name, some in zip(PACKAGES, by_package, strict=True) if not some]:
        raise ValueError(
            f"no docstrings were found in {', '.join(short)}; install the package with its source files"
            " (*.py)"
        )
    flat = [passage for some in by_package for passage in some]
    codes = torch.frombuffer(bytearray("".join(flat), "ascii"), dtype=torch.uint8).long()
    length = torch.tensor([len(passage) for passage in flat], device="cpu")
    before = torch.tensor([0, *map(len, by_package)], device="cpu").cumsum(0)
    return (codes - ord(" ") + 1).clamp(min=0), length.cumsum(0) - length, length, before


@cache
def _kept() -> dict[str, dict[str, dict[str, tuple[str, ...]]]]:
    """Split, package, module -> passages."""
    pieces = []  # (split, package, module, number of the docstring, paragraph)
    for package in PACKAGES:
        for module, docstrings in _docstrings(package).items():
            split = split_of(module)
            for number, text in enumerate(docstrings):
                paragraphs = hide(clean(text)).split("\n\n")
                pieces += [(split, package, module, number, paragraph) for paragraph in paragraphs]
    fresh = _fresh(
        [" ".join(piece[-1].split()) for piece in pieces],
        np.array([SPLITS[::-1].index(piece[0]) for piece in pieces], dtype=np.int8),
    )
    joined: dict[tuple[str, str, str, int], list[str]] = {}
    for piece, good in zip(pieces, fresh, strict=True):
        if good:
            joined.setdefault(piece[:4], []).append(piece[4])
    kept: dict[str, Any] = {split: {package: {} for package in PACKAGES} for split in SPLITS}
    for (split, package, module, _), paragraphs in joined.items():
        passage = "\n\n".join(paragraphs).strip("\n")
        if len(passage) >= SHORTEST:
            kept[split][package][module] = (*kept[split][package].get(module, ()), passage)
    return kept


def _fresh(paragraphs: list[str], rank: np.ndarray) -> np.ndarray:
    """Which paragraphs share no QUOTED characters in a row with one of a lower rank.

    Each run is known by a number of 64 bits; that two of a few million differ and have the same is less
    likely than 1 in a million.
    """
    codes = np.frombuffer("\n".join([*paragraphs, ""]).encode("ascii"), dtype=np.uint8)
    owner = np.repeat(np.arange(len(paragraphs)), [len(p) + 1 for p in paragraphs])
    runs = max(0, len(codes) - QUOTED + 1)
    number = np.zeros(runs, dtype=np.uint64)
    for i in range(QUOTED):
        number = number * np.uint64(0x9E3779B97F4A7C15) + codes[i : i + runs]  # wraps around at 2^64
    inside = owner[:runs] == owner[QUOTED - 1 : QUOTED - 1 + runs]  # a run ends in the paragraph it begins in
    inside &= codes[QUOTED - 1 : QUOTED - 1 + runs] != ord("\n")  # which is the mark between paragraphs
    number, owner = number[inside], owner[:runs][inside]
    order = np.argsort(number, kind="stable")
    ranks = rank[owner[order]].astype(np.int64)
    group = np.cumsum(np.r_[False, number[order][1:] != number[order][:-1]]) if len(order) else order
    lowest = np.full(len(order), len(SPLITS))
    np.minimum.at(lowest, group, ranks)
    fresh = np.ones(len(paragraphs), dtype=bool)
    fresh[owner[order[lowest[group] < ranks]]] = False
    return fresh


def _docstrings(package: str) -> dict[str, list[str]]:
    """Docstrings of a package by module, in the order of the modules' checksums, until each split has
    ENOUGH."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        name = {"sklearn": "scikit-learn"}.get(package, package)
        raise ModuleNotFoundError(f"{package} is missing, its documentation is read here; install {name}")
    root = Path(spec.origin).parent
    modules = {}
    for path in root.rglob("*.py"):
        inside = path.relative_to(root)
        if not {"tests", "testing", "_vendor", "externals", "vendored-meson", "_lib"} & set(inside.parts):
            modules[".".join((package, *inside.with_suffix("").parts))] = path
    found: dict[str, list[str]] = {}
    total = dict.fromkeys(SPLITS, 0)
    for module in sorted(modules, key=lambda name: (zlib.crc32(name.encode()), name)):
        split = split_of(module)
        if total[split] >= ENOUGH[split] or modules[module].stat().st_size > LARGEST:
            continue
        source = modules[module].read_text(encoding="utf-8", errors="replace")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in others' strings
            try:
                tree = ast.parse(source)
            except (SyntaxError, ValueError):  # a file for another Python
                continue
        found[module] = []
        here = 0
        for text in _texts(tree):
            if here < PER_FILE and len(text) >= SHORTEST:
                found[module].append(text)
                here += len(text)
        total[split] += here
    return found


def _texts(node: Any) -> Iterator[str]:
    """The docstrings of a module, of its classes and functions and of the classes' methods, from top to
    bottom."""
    yield ast.get_docstring(node) or ""
    if not isinstance(node, ast.FunctionDef):
        for child in node.body:
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
                yield from _texts(child)
