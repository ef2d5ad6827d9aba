"""Masks: boolean tables of who may look at whom. True = may look; combine them with & and |."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lesson_lib import require


def causal(
    n: int, *, queries: int | None = None, window: int | None = None, device: torch.device | None = None
) -> Bool[Tensor, "queries n"]:
    """Mask that lets each token look at itself and at earlier tokens, never at later ones.

    `queries` asks for the rows of the last so many tokens alone, as they come after a cache: the last row
    belongs to the last of the n keys, and no table of n x n is made. `window` counts the tokens that one may
    look at, itself among them: `window=1` is "only myself".
    Raises ValueError where a count is negative, there are more queries than keys, or `window` is 0.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3; `window`: Beltagy et al. 2020,
    arXiv:2004.05150, and Jiang et al. 2023, arXiv:2310.06825.

    >>> causal(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> causal(4, queries=2, window=3).int().tolist()
    [[1, 1, 1, 0], [0, 1, 1, 1]]
    """
    require.whole(at_least=0, n=n)
    if queries is None and window is None:
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()
    queries = n if queries is None else queries
    require.whole(at_least=0, queries=queries)
    if queries > n:
        raise ValueError(
            f"queries is {queries}, but there are n = {n} keys; each query's own token is among the keys"
        )
    key = torch.arange(n, device=device)
    own = key[n - queries :, None]
    seen = key <= own
    if window is None:
        return seen
    require.whole(window=window)
    return seen & (key > own - window)


def window(n: int, radius: int, *, device: torch.device | None = None) -> Bool[Tensor, "n n"]:
    """Mask that lets each token look at neighbours at most `radius` tokens away, itself included.

    Raises ValueError where `n` or `radius` is negative.
    Source: the truncated self-attention of speech recognisers; Vaswani et al. 2017, arXiv:1706.03762, calls
    it "restricted".

    >>> window(3, radius=1).int().tolist()
    [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """
    require.whole(at_least=0, n=n)
    if radius < 0:
        raise ValueError(f"radius must be >= 0 tokens, got {radius}; radius=0 is 'only myself'")
    i = torch.arange(n, device=device)
    return (i[:, None] - i).abs() <= radius


def padding(lengths: Int[Tensor, " b"], n: int) -> Bool[Tensor, "b 1 n"]:
    """Mask that hides the padding: sequence `b` of the batch has `lengths[b]` real tokens, the rest of its n
    are filler.

    The middle axis has size 1: all queries see the same keys. Raises TypeError where `lengths` is no integer
    tensor, ValueError where a length is negative or greater than `n`.

    >>> padding(torch.tensor([1, 3]), n=3).int().tolist()
    [[[1, 0, 0]], [[1, 1, 1]]]
    """
    require.whole(at_least=0, n=n)
    _integers(lengths, "lengths", "(b,)", 1)
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= n:
        raise ValueError(
            f"lengths must lie between 0 and n = {n} tokens, got {lengths.tolist()}; cut the long sequences"
            " or raise n"
        )
    return (torch.arange(n, device=lengths.device) < lengths[:, None])[:, None]


def from_edges(edge_index: Int[Tensor, "2 edges"], n: int) -> Bool[Tensor, "n n"]:
    """Mask of a graph: node i may look at node j where an edge leads from j to i.

    `edge_index[0]` holds the sources j, `edge_index[1]` the targets i, as in PyTorch Geometric: mask[i, j] is
    True. A node without an incoming edge sees nothing, not even itself; add self-loops where it should.
    Raises TypeError where `edge_index` is no integer tensor, ValueError for another shape or a node outside 0
    ... n - 1.

    >>> from_edges(torch.tensor([[0, 1], [1, 2]]), n=3).int().tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    """
    check_edges(edge_index, n)
    mask = torch.zeros(n, n, dtype=torch.bool, device=edge_index.device)
    mask[edge_index[1], edge_index[0]] = True
    return mask


def check_edges(edge_index: Int[Tensor, "2 edges"], n: int) -> None:
    """Raise TypeError or ValueError where `edge_index` is no list of edges between the nodes 0 ... n - 1."""
    require.whole(at_least=0, n=n)
    _integers(edge_index, "edge_index", "(2, edges)", 2)
    if edge_index.shape[0] != 2:
        raise ValueError(
            f"edge_index must have shape (2, edges), got {tuple(edge_index.shape)}; pass edge_index.T if"
            " edges are rows"
        )
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < n:
        raise ValueError(
            f"edge_index names nodes {int(edge_index.min())} ... {int(edge_index.max())}, "
            f"but n = {n} allows 0 ... {n - 1}; raise n or renumber the nodes"
        )


def _integers(x: Tensor, name: str, shape: str, ndim: int) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be an integer tensor of shape {shape}, got {type(x).__name__}; wrap it in"
            " torch.tensor(...)"
        )
    if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.bool:
        raise TypeError(f"{name} must hold whole numbers, got {x.dtype}; convert it with .long()")
    if x.ndim != ndim:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(x.shape)}")
