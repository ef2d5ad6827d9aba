"""Scores: how relevant is this key to that query? Each takes queries and keys and returns one number per
pair.

A score is any callable (query, key) -> (*b, n, m). Softmax is not its business: `attend` does that.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lesson_lib import require


def dot(query: Float[Tensor, "*#b n d_k"], key: Float[Tensor, "*#b m d_k"]) -> Float[Tensor, "*b n m"]:
    """Dot product of each query with each key: `q · k`.

    Source: Luong et al. 2015, arXiv:1508.04025, the score they call "dot".

    >>> dot(torch.tensor([[1.0, 0.0, 2.0]]), torch.tensor([[0.0, 1.0, 1.0], [4.0, 4.0, 0.0]])).tolist()
    [[2.0, 4.0]]
    """
    return query @ key.mT


def scaled_dot(query: Float[Tensor, "*#b n d_k"], key: Float[Tensor, "*#b m d_k"]) -> Float[Tensor, "*b n m"]:
    """Dot product over the root of the width: `q · k / sqrt(d_k)`.

    The query is scaled, not the product: n · d_k numbers instead of n · m, and float16 overflows later.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1.

    >>> scaled_dot(torch.ones(1, 4), torch.ones(2, 4)).tolist()
    [[2.0, 2.0]]
    """
    return (query * query.shape[-1] ** -0.5) @ key.mT


def soft_cap(
    cap: float, score: Callable[[Tensor, Tensor], Tensor] = scaled_dot
) -> Callable[[Tensor, Tensor], Tensor]:
    """A score that stays between -cap and cap: `cap · tanh(score / cap)`. Small scores are what they were.

    The mask of `attend` comes after it, so hidden keys stay hidden. Raises ValueError where `cap` is not
    positive.
    Source: Gemma Team 2024, Gemma 2, arXiv:2408.00118 (logit soft-capping); Bello et al. 2016,
    arXiv:1611.09940.

    >>> soft_cap(2.0, dot)(torch.tensor([[100.0]]), torch.tensor([[1.0]])).item()
    2.0
    """
    if not cap > 0:
        raise ValueError(f"cap must be > 0, got {cap}; Gemma 2 has 50")
    return lambda query, key: cap * (score(query, key) / cap).tanh()


class Additive(nn.Module):
    """Additive score: `v · tanh(W_q q + W_k k)`, a network with one hidden layer of `d_hidden` units.

    Queries and keys may differ in width. All pairs at once would take n · m · d_hidden numbers; the queries
    are cut into rows of chunks that hold at most `max_pairs` pairs, and their hidden layers are computed
    again for the gradient. The numbers are the same. Raises ValueError where a width is less than 1.
    Source: Bahdanau et al. 2014, arXiv:1409.0473, appendix A.1.2.
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int, *, max_pairs: int = 2**14) -> None:
        super().__init__()
        require.whole(d_query=d_query, d_key=d_key, d_hidden=d_hidden, max_pairs=max_pairs)
        self.w_query = nn.Linear(d_query, d_hidden, bias=False)
        self.w_key = nn.Linear(d_key, d_hidden, bias=False)
        self.v = nn.Parameter(torch.empty(d_hidden).uniform_(-(d_hidden**-0.5), d_hidden**-0.5))
        self.max_pairs = max_pairs

    def forward(
        self, query: Float[Tensor, "*#b n d_query"], key: Float[Tensor, "*#b m d_key"]
    ) -> Float[Tensor, "*b n m"]:
        """Scores of shape (*b, n, m)."""
        _width(query, self.w_query.in_features, "query", "d_query")
        _width(key, self.w_key.in_features, "key", "d_key")
        return self._of(query, key, self.w_key(key))

    def for_keys(self, key: Float[Tensor, "*b m d_key"]) -> Callable[[Tensor, Tensor], Tensor]:
        """The same score for one set of keys, to which many queries come: `W_k k` is computed once.

        Source: Bahdanau et al. 2014, appendix A.1.2, who compute it in advance, too.
        """
        _width(key, self.w_key.in_features, "key", "d_key")
        hidden_key = self.w_key(key)
        return lambda query, _: self._of(query, key, hidden_key)

    def _of(self, query: Tensor, key: Tensor, hidden_key: Tensor) -> Tensor:
        hidden_query = self.w_query(query)
        batch = require.leading(query, key)
        rows = max(1, self.max_pairs // max(1, batch.numel() * key.shape[-2]))
        if rows >= query.shape[-2]:
            return self._rows(hidden_query, hidden_key)
        chunks = hidden_query.split(rows, dim=-2)
        if torch.is_grad_enabled():
            return torch.cat(
                [checkpoint(self._rows, c, hidden_key, use_reentrant=False) for c in chunks], dim=-2
            )
        return torch.cat([self._rows(c, hidden_key) for c in chunks], dim=-2)

    def _rows(self, hidden_query: Tensor, hidden_key: Tensor) -> Tensor:
        return (hidden_query[..., :, None, :] + hidden_key[..., None, :, :]).tanh() @ self.v


class Bilinear(nn.Module):
    """Bilinear score: `q · W k`, a learned comparison. Queries and keys may differ in width.

    W starts uniform within ±sqrt(3 / (d_query · d_key)), so that unit-variance queries and keys score with
    variance 1.
    Raises ValueError where a width is less than 1.
    Source: Luong et al. 2015, arXiv:1508.04025, the score they call "general".
    """

    def __init__(self, d_query: int, d_key: int) -> None:
        super().__init__()
        require.whole(d_query=d_query, d_key=d_key)
        bound = (3 / (d_query * d_key)) ** 0.5
        self.w = nn.Parameter(torch.empty(d_query, d_key).uniform_(-bound, bound))

    def forward(
        self, query: Float[Tensor, "*#b n d_query"], key: Float[Tensor, "*#b m d_key"]
    ) -> Float[Tensor, "*b n m"]:
        """Scores of shape (*b, n, m)."""
        _width(query, self.w.shape[0], "query", "d_query")
        _width(key, self.w.shape[1], "key", "d_key")
        return query @ self.w @ key.mT


class GraphScore(nn.Module):
    """The score of graph attention, one vector for the query and one for the key: `LeakyReLU(a_q · q + a_k ·
    k)`, a number per head.

    The query is the node that looks (an edge's target), the key its neighbour (the source). Since the two are
    only added before a function that rises, all nodes rank their neighbours alike. `dynamic` puts the
    function first, `a · LeakyReLU(q + k)`, and lets each rank its own.
    Raises ValueError where a width is less than 1.
    Source: Veličković et al. 2017, arXiv:1710.10903, section 2.1; `dynamic`: Brody, Alon & Yahav 2021,
    arXiv:2105.14491 (GATv2).
    """

    SLOPE = 0.2  # of LeakyReLU below 0, in both papers

    def __init__(self, d: int, n_heads: int = 1, *, dynamic: bool = False) -> None:
        super().__init__()
        require.whole(d=d, n_heads=n_heads)
        bound = (6 / (d + 1)) ** 0.5
        self.dynamic = dynamic
        self.a_key = nn.Parameter(torch.empty(n_heads, d).uniform_(-bound, bound))
        self.a_query = None if dynamic else nn.Parameter(torch.empty(n_heads, d).uniform_(-bound, bound))

    def forward(
        self, query: Float[Tensor, "*#b h n d"], key: Float[Tensor, "*#b h m d"]
    ) -> Float[Tensor, "*b h n m"]:
        """Scores of shape (*b, h, n, m), for all pairs."""
        for name, x in (("query", query), ("key", key)):
            _width(x, self.a_key.shape[1], name, "d")
        if self.dynamic:
            pairs = F.leaky_relu(query[..., :, None, :] + key[..., None, :, :], self.SLOPE)
            return (pairs * self.a_key[:, None, None]).sum(-1)
        of_query, of_key = ((x * a[:, None]).sum(-1) for x, a in ((query, self.a_query), (key, self.a_key)))
        return F.leaky_relu(of_query[..., :, None] + of_key[..., None, :], self.SLOPE)

    def of_edges(
        self,
        query: Float[Tensor, "n h d"],
        key: Float[Tensor, "m h d"],
        source: Int[Tensor, " edges"],
        target: Int[Tensor, " edges"],
    ) -> Float[Tensor, "edges h"]:
        """Scores of the edges alone, from the key at `source` to the query at `target`; heads stand behind
        the nodes here."""
        if self.dynamic:
            return (F.leaky_relu(query[target] + key[source], self.SLOPE) * self.a_key).sum(-1)
        of_query, of_key = (query * self.a_query).sum(-1), (key * self.a_key).sum(-1)
        return F.leaky_relu(of_query[target] + of_key[source], self.SLOPE)


def _width(x: Tensor, expected: int, name: str, letter: str) -> None:
    if x.shape[-1] != expected:
        raise ValueError(
            f"{name} has width {x.shape[-1]}, but this score was made with {letter}={expected}; make it with"
            f" {letter}={x.shape[-1]}"
        )
