"""A citation graph from two files of the form in which Cora and CiteSeer are given away."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Citations(NamedTuple):
    """Papers, their words, their fields, and who cites whom, both ways."""

    x: Float[Tensor, "n words"]
    y: Int[Tensor, " n"]
    edge_index: Int[Tensor, "2 edges"]


def read_citations(content: str, cites: str) -> Citations:
    """The graph of two texts: a line of `content` is a paper's name, a 0 or 1 for each word, and its field; a
    line of `cites` two names. Links to papers that are not in `content` are left out.

    Source of the form: Sen et al. 2008, Collective classification in network data.
    """
    papers = [line.split() for line in content.splitlines()]
    number = {paper[0]: i for i, paper in enumerate(papers)}
    fields = sorted({paper[-1] for paper in papers})
    x = torch.tensor([[float(word) for word in paper[1:-1]] for paper in papers])
    y = torch.tensor([fields.index(paper[-1]) for paper in papers])
    links = [line.split() for line in cites.splitlines()]
    pairs = [[number[name] for name in link] for link in links if {*link} <= {*number}]
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    return Citations(x, y, torch.cat([edges, edges.flip(0)], 1).unique(dim=1))
