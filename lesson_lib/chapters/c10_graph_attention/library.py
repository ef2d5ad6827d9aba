"""A real graph with text: functions, methods and classes of Python's standard library.

    node     a function, method or class with a docstring
    edge     the source of one uses the other, or has it in it (a class its methods); listed both ways
    x        which of some 1,000 words its docstring holds: 1 over the root of their number, else 0
    class    the chapter of the library reference that describes its module, one of seven

The words are those of at least four families, and no module's name is among them. A **family** is a package,
a module, or modules that repeat each other's docstrings; a docstring whose words another family has in the
same combination is not in the graph. The split deals whole families, so that no module stands on two sides.
Source: the standard library of Python 3.11, read by `library_maker`; see library.txt for its licence.
"""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib import require

_HERE = Path(__file__).parent
PARTS = ("training", "validation", "test")


class Library(NamedTuple):
    """The graph, on the CPU."""

    names: tuple[str, ...]  # pathlib.Path.glob
    words: tuple[str, ...]
    chapters: tuple[str, ...]
    families: tuple[str, ...]
    counts: Int[Tensor, "n words"]
    y: Int[Tensor, " n"]  # number of the chapter
    family: Int[Tensor, " n"]  # number of the family
    edge_index: Int[Tensor, "2 edges"]  # sources, targets

    @property
    def x(self) -> Float[Tensor, "n words"]:
        """Rows of length 1: a word that occurs has the same number as all others of its row."""
        there = (self.counts > 0).float()
        return there / there.sum(-1, keepdim=True).clamp(min=1).sqrt()

    def text(self, name: str) -> str:
        """The words of a node's docstring that are features, in alphabetical order. Raises ValueError for a
        name that no node has."""
        row = self.counts[self.number(name)]
        return " ".join(self.words[i] for i in row.nonzero()[:, 0].tolist())

    def number(self, name: str) -> int:
        """A node's number. Raises ValueError for a name that no node has."""
        if name not in self.names:
            raise ValueError(f"no node is called {name!r}; names are full, as 'shutil.copytree'")
        return self.names.index(name)


@functools.cache
def _file() -> dict[str, Any]:
    with numpy.load(_HERE / "library.npz") as stored:
        return dict(stored)


@functools.cache
def load() -> Library:
    """The shipped graph."""
    return read(_file())


def read(arrays: dict[str, Any]) -> Library:
    """The graph of what `library_maker.made` gives."""
    words_in, words = torch.from_numpy(arrays["words_in"]).long(), tuple(arrays["words"].tolist())
    counts = torch.zeros(len(words_in), len(words), dtype=torch.long, device="cpu")
    rows = torch.arange(len(words_in), device="cpu").repeat_interleave(words_in)
    counts[rows, torch.from_numpy(arrays["word"]).long()] = torch.from_numpy(arrays["count"]).long()
    family = torch.from_numpy(arrays["family_of"]).long()
    pairs = torch.from_numpy(arrays["pairs"]).long()
    return Library(
        tuple(arrays["names"].tolist()), words, tuple(arrays["chapters"].tolist()),
        tuple(arrays["families"].tolist()), counts,
        torch.from_numpy(arrays["chapter_of"]).long()[family], family, torch.cat([pairs, pairs.flip(0)], 1),
    )  # fmt: skip


def split(graph: Library, seed: int = 0) -> dict[str, Bool[Tensor, " n"]]:
    """Which nodes are for training, validation and test: no family is on two sides.

    In each chapter the largest family trains. The others are dealt by lot: to the test, to validation, to
    training, and again from the start.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    size = torch.bincount(graph.family, minlength=len(graph.families))
    side = torch.zeros(len(graph.families), dtype=torch.long, device="cpu")
    for chapter in range(len(graph.chapters)):
        members = graph.family[graph.y == chapter].unique()
        members = members[size[members].argsort(descending=True, stable=True)]
        drawn = members[1:][torch.randperm(len(members) - 1, generator=generator, device="cpu")]
        for place, family in enumerate(drawn.tolist()):
            side[family] = (2, 1, 0)[place % 3]
    return {part: (side == number)[graph.family] for number, part in enumerate(PARTS)}


def split_by_lot(graph: Library, seed: int = 0) -> dict[str, Bool[Tensor, " n"]]:
    """Sides as large as those of `split`, whose nodes are drawn one by one: families are torn apart."""
    generator = torch.Generator("cpu").manual_seed(seed)
    order = torch.randperm(len(graph.y), generator=generator, device="cpu")
    return {part: mask[order] for part, mask in split(graph, seed).items()}


def shuffled(
    edge_index: Int[Tensor, "2 edges"], share: int | float = 1.0, seed: int = 0
) -> Int[Tensor, "2 fewer"]:
    """The edges, both ways, of which a share has been cut in two and the halves joined by lot: each node
    keeps about its number of edges.

    Pairs that join a node to itself, or occur twice, are left out. Raises ValueError for a share outside
    0 ... 1.
    """
    require.number(at_least=0, at_most=1, share=share)
    generator = torch.Generator("cpu").manual_seed(seed)
    pairs = edge_index[:, edge_index[0] < edge_index[1]]
    pairs = pairs[:, torch.randperm(pairs.shape[1], generator=generator, device="cpu")]
    n_cut = round(share * pairs.shape[1])
    cut, kept = pairs[:, :n_cut], pairs[:, n_cut:]
    ends = cut.flatten()
    a, b = ends[torch.randperm(len(ends), generator=generator, device="cpu")].chunk(2)
    joined = torch.stack([torch.minimum(a, b), torch.maximum(a, b)])[:, a != b]
    pairs = torch.cat([kept, joined], 1).unique(dim=1)
    return torch.cat([pairs, pairs.flip(0)], 1)
