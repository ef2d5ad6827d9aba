"""Small generated graphs like molecules, in pairs that no count of atoms can tell apart."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib import require

ATOMS = "CNO"


class Molecule(NamedTuple):
    """A tree of atoms with one N and one O, the rest C."""

    x: Float[Tensor, "n 3"]  # a 1 for the atom: C, N or O
    edge_index: Int[Tensor, "2 edges"]  # each bond both ways
    joined: bool  # is the N bound to the O?


def chain(atoms: str) -> Molecule:
    """A chain of atoms with bonds between neighbours. Raises ValueError for a letter that is none of ATOMS.

    >>> chain("CNO").joined, chain("NCO").joined
    (True, False)
    """
    require.one_of(ATOMS, **{f"atom_{i}": atom for i, atom in enumerate(atoms)})
    x = torch.eye(3, device="cpu")[[ATOMS.index(atom) for atom in atoms]]
    i = torch.arange(len(atoms) - 1, device="cpu")
    pairs = torch.stack([i, i + 1])
    return Molecule(x, torch.cat([pairs, pairs.flip(0)], 1), "NO" in atoms or "ON" in atoms)


def twins(count: int, seed: int = 0) -> list[Molecule]:
    """`count` pairs, one after the other: the same tree of 5 to 9 atoms, with N bound to O, and not bound."""
    generator = torch.Generator("cpu").manual_seed(seed)

    def below(high: int) -> int:
        return int(torch.randint(high, (), generator=generator, device="cpu"))

    made = []
    for _ in range(count):
        n = 5 + below(5)
        parents = [below(i) for i in range(1, n)]
        bonds = torch.tensor([parents, range(1, n)], device="cpu")
        near = torch.zeros(n, n, dtype=torch.bool, device="cpu")
        near[bonds[0], bonds[1]] = near[bonds[1], bonds[0]] = True
        apart = (~near & ~torch.eye(n, dtype=torch.bool, device="cpu")).nonzero()
        places = bonds[:, below(n - 1)], apart[below(len(apart))]
        edges = torch.cat([bonds, bonds.flip(0)], 1)
        for (nitrogen, oxygen), joined in zip(places, (True, False), strict=True):
            kinds = torch.zeros(n, dtype=torch.long, device="cpu")
            kinds[nitrogen], kinds[oxygen] = 1, 2
            made.append(Molecule(torch.eye(3, device="cpu")[kinds], edges, joined))
    return made


def is_bound(x: Float[Tensor, "n 3"], edge_index: Int[Tensor, "2 edges"]) -> Bool[Tensor, " n"]:
    """True at each O that hears of an N: a sum over edges and a ReLU, with weights set by hand."""
    source, target = edge_index
    heard = torch.zeros_like(x).index_add(0, target, x[source])
    return torch.relu(x[:, 2] + heard[:, 1] - 1) > 0
