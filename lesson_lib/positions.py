"""Positions: tables added to the tokens, turns of queries and keys, terms in the score. Each is one line away
from `attend`.

x + sinusoidal(n, d)      x + learned(n)      x + floater(n)          added to the tokens
attend(rotary(q), rotary(k), v)                                       turns queries and keys
attend(q, k, v, score=shaw)   and   + shaw.values(weights)            in the score, and in the output
attend(q, k, v, score_bias=alibi(n, n_heads))                         in the score
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lesson_lib import require

BASE = 10_000.0


def frequencies(
    d: int, *, base: float | int = BASE, device: torch.device | None = None
) -> Float[Tensor, " half_d"]:
    """The d/2 angular frequencies of a code of width d, in radians per token: `w_j = base ** (-2j / d)`, j =
    0 ... d/2 - 1.

    Float64. The wavelength of frequency j is 2 pi / w_j tokens. Raises ValueError where `d` is odd or less
    than 2, or `base` is not positive.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.5.

    >>> frequencies(4).tolist()
    [1.0, 0.01]
    """
    require.whole(at_least=2, d=d)
    if d % 2:
        raise ValueError(f"d must be even, a sine and a cosine for each frequency, got {d}; use {d + 1}")
    if not base > 0:
        raise ValueError(f"base must be > 0, got {base}; 10000 is the usual one")
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=device) / d)


def sinusoidal(
    n: int,
    d: int,
    *,
    base: float | int = BASE,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Float[Tensor, "n d"]:
    """Codes of positions 0 ... n - 1, a row each: `p[i, 2j] = sin(i w_j)`, `p[i, 2j+1] = cos(i w_j)`.

    Computed in float64 and returned as `dtype` (default: torch's default). A rule, not a table: any n will
    do.
    Raises ValueError where `n` is negative or `d` is odd.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.5.

    >>> sinusoidal(2, 2)[0].tolist()
    [0.0, 1.0]
    """
    angles = _angles(n, 0, d, base, device)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2).to(dtype or torch.get_default_dtype())


def rotation(
    delta: float | int,
    d: int,
    *,
    base: float | int = BASE,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Float[Tensor, "d d"]:
    """The matrix that moves every sinusoidal code on by `delta` tokens: `rotation(delta, d) @ p[i] == p[i +
    delta]`.

    Block-diagonal; block j is `[[cos, sin], [-sin, cos]]` of the angle delta · w_j. It depends on delta
    alone, never on i. With tokens as rows: `p[i] @ rotation(delta, d).T`. Computed in float64; raises
    ValueError where `d` is odd.

    >>> rotation(0, 4).tolist() == torch.eye(4).tolist()
    True
    """
    if isinstance(delta, Tensor) and delta.numel() != 1:
        raise ValueError(f"delta must be one number of tokens, got a tensor of shape {tuple(delta.shape)}")
    angles = float(delta) * frequencies(d, base=base, device=device)
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack((torch.stack((cos, sin), -1), torch.stack((-sin, cos), -1)), -2)
    return torch.block_diag(*blocks).to(dtype or torch.get_default_dtype())


def rotary(
    x: Float[Tensor, "*b n d"],
    start: int = 0,
    *,
    base: float | int = BASE,
    pairing: str = "interleaved",
    frequencies: Float[Tensor, " half_d"] | None = None,
) -> Float[Tensor, "*b n d"]:
    """Queries or keys, each turned by its own position: token i becomes `x[i] @ rotation(start + i, d)`.

    A dot product of a turned query i and a turned key j then depends on the positions through j - i alone.
    `start` is the position of the first token (the length of a key/value cache). `pairing` says which two
    columns turn together: "interleaved" columns 2j and 2j + 1 (the paper), "half-split" columns j and j + d/2
    (much published code). Equal up to a permutation of the columns; weights trained with one are wrong with
    the other. `frequencies`, one per pair, takes the place of those that `base` gives, as in models that were
    stretched to longer texts: `rotary(x, frequencies=frequencies(d) / 4)` turns as if every position were
    divided by 4.
    Raises ValueError where d is odd, the pairing unknown, or `frequencies` not one per pair.
    Source: Su et al. 2021, RoFormer, arXiv:2104.09864; Chen et al. 2023, arXiv:2306.15595 (positions
    divided).

    >>> rotary(torch.ones(1, 4)).tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    if not isinstance(x, Tensor) or x.ndim < 2:
        got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"x must be a tensor of shape (..., tokens, width), got {got}")
    angles = _angles(x.shape[-2], start, x.shape[-1], base, x.device, frequencies)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    if pairing == "interleaved":
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    if pairing == "half-split":
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
    raise ValueError(f"pairing must be 'interleaved' or 'half-split', got {pairing!r}")


def alibi(n: int, n_heads: int, *, device: torch.device | None = None) -> Float[Tensor, "h n n"]:
    """A score bias that falls with distance, `-slope_h |i - j|`, steeper in some heads: slopes 2^(-8/h),
    2^(-16/h) ... 2^-8.

    No learned numbers. In a MultiHeadAttention over a batch it is `score_bias=alibi(n, h)[None]`, with an
    axis for the batch. The paper uses it under a causal mask; without one it cannot tell left from right.
    Raises ValueError where a count is less than 1.
    Source: Press, Smith & Lewis 2021, arXiv:2108.12409.

    >>> alibi(3, 8)[0].tolist()
    [[0.0, -0.5, -1.0], [-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]]
    """
    require.whole(n=n)
    require.whole(n_heads=n_heads)
    slopes = 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, device=device) / n_heads)
    i = torch.arange(n, device=device)
    return slopes[:, None, None] * -(i[:, None] - i).abs()


class Learned(nn.Module):
    """A table of `n_max` learned codes, one row per position; `learned(n)` is its first n rows.

    Parameters: n_max · d. Raises ValueError where more than `n_max` rows are asked for: the table has no rule
    for them.
    Source: Gehring et al. 2017, arXiv:1705.03122; Devlin et al. 2018, arXiv:1810.04805.
    """

    def __init__(self, n_max: int, d: int) -> None:
        super().__init__()
        require.whole(n_max=n_max)
        require.whole(d=d)
        self.table = nn.Parameter(torch.randn(n_max, d) * d**-0.5)

    def forward(self, n: int) -> Float[Tensor, "n d"]:
        """The codes of positions 0 ... n - 1."""
        require.whole(at_least=0, n=n)
        if n > len(self.table):
            raise ValueError(
                f"this table has codes for {len(self.table)} positions, and {n} are asked for; make it with "
                f"n_max={n} and train it at that length, or use a rule such as sinusoidal"
            )
        return self.table[:n]


class Floater(nn.Module):
    """Codes that flow: `dp/dt = h(t, p)` with a learned network h, from a learned start; position i is the
    state at t = i · step.

    The flow is integrated with the classical Runge-Kutta rule (RK4), one step per token: fixed steps give the
    same numbers on every machine, and need no further package. Any n will do; the parameters do not depend on
    n.
    Source: Liu et al. 2020, FLOATER, arXiv:2003.09229 (which adds such codes in every layer; here they are
    added once).
    """

    def __init__(self, d: int, *, d_hidden: int = 32, step: float = 0.1) -> None:
        super().__init__()
        require.whole(d=d)
        require.whole(d_hidden=d_hidden)
        if not step > 0:
            raise ValueError(f"step must be > 0, got {step}; 0.1 is a common choice")
        self.start = nn.Parameter(torch.randn(d) * d**-0.5)
        self.flow = nn.Sequential(nn.Linear(d + 1, d_hidden), nn.Tanh(), nn.Linear(d_hidden, d))
        self.step = step

    def forward(self, n: int) -> Float[Tensor, "n d"]:
        """The codes of positions 0 ... n - 1."""
        require.whole(at_least=0, n=n)
        codes = [self.start]
        for i in range(n - 1):
            codes.append(self._next(codes[-1], i * self.step))
        return torch.stack(codes)[:n]

    def _next(self, p: Tensor, t: float) -> Tensor:
        """One step of RK4: four slopes, weighted 1 : 2 : 2 : 1."""
        s = self.step
        first = self._slope(p, t)
        second = self._slope(p + s / 2 * first, t + s / 2)
        third = self._slope(p + s / 2 * second, t + s / 2)
        fourth = self._slope(p + s * third, t + s)
        return p + s / 6 * (first + 2 * second + 2 * third + fourth)

    def _slope(self, p: Tensor, t: float) -> Tensor:
        return self.flow(torch.cat((p, p.new_tensor([t]))))


class Shaw(nn.Module):
    """Relative positions, learned: a score `q · (k + a_K[j - i]) / sqrt(d_k)`, and `values`, what `a_V[j -
    i]` adds to the output.

    Distances beyond `radius` share the row of the radius: 2 · radius + 1 rows for keys, as many for values.
    Queries are the last n of the m keys, so that the score also fits a key/value cache. Rows start at 0: an
    untrained Shaw is `scaled_dot`.
    Raises ValueError where a width is less than 1 or the radius negative.
    Source: Shaw, Uszkoreit & Vaswani 2018, arXiv:1803.02155, section 3.
    """

    def __init__(self, d_k: int, radius: int, *, d_v: int | None = None) -> None:
        super().__init__()
        d_v = d_k if d_v is None else d_v
        require.whole(d_k=d_k)
        require.whole(d_v=d_v)
        require.whole(at_least=0, radius=radius)
        self.radius = radius
        self.key_rows = nn.Parameter(torch.zeros(2 * radius + 1, d_k))
        self.value_rows = nn.Parameter(torch.zeros(2 * radius + 1, d_v))

    def forward(
        self, query: Float[Tensor, "*#b n d_k"], key: Float[Tensor, "*#b m d_k"]
    ) -> Float[Tensor, "*b n m"]:
        """Scores of shape (*b, n, m), to be passed to `attend` as `score`."""
        d_k = self.key_rows.shape[-1]
        for name, x in {"query": query, "key": key}.items():
            if x.shape[-1] != d_k:
                raise ValueError(
                    f"{name} has width {x.shape[-1]}, but this Shaw was made with d_k={d_k} (per head)"
                )
        query = query * d_k**-0.5
        by_content, by_distance = query @ key.mT, query @ self.key_rows.T
        index = self._index(query.shape[-2], key.shape[-2], query.device)
        return by_content + by_distance.gather(-1, index.expand(*by_distance.shape[:-1], -1))

    def values(self, weights: Float[Tensor, "*b n m"]) -> Float[Tensor, "*b n d_v"]:
        """What the positions add to the output: the weights of equal distance summed, times that distance's
        row of a_V."""
        index = self._index(*weights.shape[-2:], weights.device).expand_as(weights)
        by_distance = weights.new_zeros(*weights.shape[:-1], len(self.value_rows)).scatter_add(
            -1, index, weights
        )
        return by_distance @ self.value_rows

    def _index(self, n: int, m: int, device: torch.device) -> Tensor:
        """Row of the tables for each pair, (n, m): j - i, clipped to the radius, counted from 0."""
        i = torch.arange(m - n, m, device=device)
        return (torch.arange(m, device=device) - i[:, None]).clamp(-self.radius, self.radius) + self.radius


def _angles(
    n: int,
    start: int,
    d: int,
    base: float | int,
    device: torch.device | None,
    given: Tensor | None = None,
) -> Float[Tensor, "n half_d"]:
    require.whole(at_least=0, n=n)
    require.whole(at_least=0, start=start)
    places = torch.arange(start, start + n, dtype=torch.float64, device=device)
    turns = frequencies(d, base=base, device=device)
    if given is not None:
        if given.shape != turns.shape:
            raise ValueError(
                f"frequencies must be one per pair of columns, ({len(turns)},) for width {d}, got"
                f" {tuple(given.shape)}"
            )
        turns = given.to(turns)
    return places[:, None] * turns
