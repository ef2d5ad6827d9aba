"""Recurrent networks: a layer that carries a state from token to token; and recurrent translation, an encoder
and two decoders.

`Recurrent` is torch's RNN, GRU or LSTM with the states to look at. The decoders differ in what they see of
the input:

    fixed vector   all of the input in one vector, the same at every output token
    attention      a mixture of the encoder's states, weighed anew for every output token

Both decoders are gated recurrent nets (GRU). A decoder has `start(encoded)` -> state, `step(encoded, x,
state)` -> Step for one token, and `forward(encoded, x)` for all tokens where the ones before each are known,
as in training. Whoever owns the vocabulary reads what a step puts out; here are no characters, no losses, no
search.

Sources: Sutskever et al. 2014, arXiv:1409.3215, and Cho et al. 2014, arXiv:1406.1078 (fixed vector); Bahdanau
et al. 2014, arXiv:1409.0473, sections 3.1 and 3.2 (attention, and the encoder that reads both ways).
Departures from the papers: torch's GRU, whose reset gate stands behind the product with the state; the output
is the state, the context and the token before, side by side, and is read linearly (Bahdanau: a maxout layer
between); the fixed vector comes from both ends of an encoder that reads both ways (Cho: from one; Sutskever:
four layers of LSTM, the input reversed). As with Cho it is fed at every step and makes the first state.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import Score, attend
from lesson_lib.masks import padding
from lesson_lib.scores import Additive

KINDS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}


class State(NamedTuple):
    """What a recurrent layer carries from token to token: `hidden`, which is also its output, and an LSTM's
    `cell` (None elsewhere)."""

    hidden: Float[Tensor, "*b d_hidden"]
    cell: Float[Tensor, "*b d_hidden"] | None = None


class Encoded(NamedTuple):
    """What an encoder leaves: a state per input token, the last state of either direction, and the mask that
    hides padding."""

    states: Float[Tensor, "b m d"]
    ends: Float[Tensor, "b d"]
    mask: Bool[Tensor, "b 1 m"]


class Step(NamedTuple):
    """What a decoder makes of one token: its output, its new state, and where it looked (None where it cannot
    look)."""

    output: Float[Tensor, "b d_output"]
    state: Float[Tensor, "b d_state"]
    weights: Float[Tensor, "b m"] | None


class Decoded(NamedTuple):
    """Outputs of all tokens, and where each of them looked (None where the decoder cannot look)."""

    output: Float[Tensor, "b n d_output"]
    weights: Float[Tensor, "b n m"] | None


class Recurrent(nn.Module):
    """A layer that reads tokens one after the other, each with a state that sums up those before it: torch's
    "RNN", "GRU" or "LSTM".

        RNN    h_t = tanh(W x_t + U h_{t-1} + b)
        GRU    h_t = (1 - z) n + z h_{t-1},   n = tanh(W x_t + b + r (U h_{t-1} + c)),
               gates r and z by sigmoids
        LSTM   c_t = f c_{t-1} + i g,   h_t = o tanh(c_t),   g by tanh, gates i, f and o by sigmoids

    `both_ways` adds a second layer that reads from right to left; states then stand side by side, 2 ·
    d_hidden wide.
    Raises ValueError for another kind, and where a width is less than 1.
    Source: Elman 1990; Cho et al. 2014, arXiv:1406.1078 (GRU, in torch's form); Hochreiter & Schmidhuber 1997
    (LSTM, with a forget gate).
    """

    def __init__(self, kind: str, d_token: int, d_hidden: int, *, both_ways: bool = False) -> None:
        super().__init__()
        require.one_of(KINDS, kind=kind)
        require.whole(d_token=d_token, d_hidden=d_hidden)
        self.kind, self.both_ways = kind, both_ways
        self.layer = KINDS[kind](d_token, d_hidden, batch_first=True, bidirectional=both_ways)

    def forward(self, x: Float[Tensor, "b n d_token"]) -> Float[Tensor, "b n d"]:
        """The hidden state behind each token, by torch's own loop."""
        _tokens(x, self.layer.input_size)
        return self.layer(x)[0]

    def step(
        self, x: Float[Tensor, "b d_token"], state: State | None = None, *, backwards: bool = False
    ) -> State:
        """The state one token further, by the formulas above; None is a state of zeros. `backwards` takes the
        second layer's weights."""
        if state is None:
            zeros = x.new_zeros(len(x), self.layer.hidden_size)
            state = State(zeros, zeros if self.kind == "LSTM" else None)
        end = "_l0_reverse" if backwards else "_l0"
        W, U, b, c = (
            getattr(self.layer, name + end) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        new, old = x @ W.T + b, state.hidden @ U.T + c
        if self.kind == "RNN":
            return State((new + old).tanh())
        if self.kind == "GRU":
            (r, z, n), (from_r, from_z, from_n) = new.chunk(3, -1), old.chunk(3, -1)
            z = (z + from_z).sigmoid()
            n = (n + (r + from_r).sigmoid() * from_n).tanh()
            return State((1 - z) * n + z * state.hidden)
        i, f, g, o = (new + old).chunk(4, -1)
        cell = f.sigmoid() * state.cell + i.sigmoid() * g.tanh()
        return State(o.sigmoid() * cell.tanh(), cell)

    def states(self, x: Float[Tensor, "b n d_token"]) -> list[State]:
        """The state behind each token, step by step; hidden ones are those that `forward` gives. With
        `both_ways`, both layers' side by side."""
        _tokens(x, self.layer.input_size)
        right = self._walk(x, backwards=False)
        if not self.both_ways:
            return right
        left = self._walk(x.flip(1), backwards=True)[::-1]
        return [
            State(*(None if a is None else torch.cat([a, b], -1) for a, b in zip(one, other, strict=True)))
            for one, other in zip(right, left, strict=True)
        ]

    def _walk(self, x: Tensor, *, backwards: bool) -> list[State]:
        state, states = None, []
        for token in x.unbind(1):
            state = self.step(token, state, backwards=backwards)
            states.append(state)
        return states


class TwoWayEncoder(nn.Module):
    """Two GRUs, one from left to right, one from right to left; state j is both of their states at token j,
    side by side.

    So `states` is 2 · d_half wide. The one from right to left starts at the last real token: padding changes
    nothing.
    Raises ValueError where a width is less than 1, and for a length that is less than 1 or more than there
    are tokens.
    """

    def __init__(self, d_token: int, d_half: int) -> None:
        super().__init__()
        require.whole(d_token=d_token, d_half=d_half)
        self.d_memory = 2 * d_half
        self.forwards = nn.GRU(d_token, d_half, batch_first=True)
        self.backwards = nn.GRU(d_token, d_half, batch_first=True)

    def forward(self, x: Float[Tensor, "b m d_token"], lengths: Int[Tensor, " b"]) -> Encoded:
        """Encoded(states, ends, mask) of tokens of which `lengths` per row are real."""
        _tokens(x, self.forwards.input_size)
        mask = padding(lengths, x.shape[1])
        if len(lengths) != len(x) or (len(x) and int(lengths.min()) < 1):
            raise ValueError(
                f"lengths must hold a number >= 1 for each of the {len(x)} inputs, got {lengths.tolist()};"
                " leave empty inputs out"
            )
        right = self.forwards(x)[0]
        left = mirrored(self.backwards(mirrored(x, lengths))[0], lengths)
        last = right[torch.arange(len(x), device=x.device), lengths - 1]
        return Encoded(torch.cat([right, left], -1), torch.cat([last, left[:, 0]], -1), mask)


def mirrored(x: Float[Tensor, "b m d"], lengths: Int[Tensor, " b"]) -> Float[Tensor, "b m d"]:
    """The first `lengths` tokens of each row in reverse; the padding stays behind them. Twice is the input
    again.

    >>> mirrored(torch.tensor([[[1.0], [2.0], [3.0], [0.0]]]), torch.tensor([3])).flatten().tolist()
    [3.0, 2.0, 1.0, 0.0]
    """
    m = x.shape[1]
    place = (lengths[:, None] - 1 - torch.arange(m, device=x.device)) % m
    return x.gather(1, place[..., None].expand_as(x))


class FixedVectorDecoder(nn.Module):
    """A GRU that sees the input as ONE vector c, the encoder's ends: `s_0 = tanh(W c)`, `s_i = GRU([y_{i-1},
    c], s_{i-1})`.

    Its output is [s_i, c, y_{i-1}]. Raises ValueError where a width is less than 1.
    """

    def __init__(self, d_token: int, d_memory: int, d_state: int) -> None:
        super().__init__()
        require.whole(d_token=d_token, d_memory=d_memory, d_state=d_state)
        self.d_output = d_state + d_memory + d_token
        self.first = nn.Linear(d_memory, d_state)
        self.core = nn.GRU(d_token + d_memory, d_state, batch_first=True)

    def start(self, encoded: Encoded) -> Float[Tensor, "b d_state"]:
        """The state before the first token."""
        return self.first(encoded.ends).tanh()

    def step(
        self, encoded: Encoded, x: Float[Tensor, "b d_token"], state: Float[Tensor, "b d_state"]
    ) -> Step:
        """One token further; x is the token before."""
        output, last = self._run(encoded, x[:, None], state)
        return Step(output[:, 0], last, None)

    def forward(self, encoded: Encoded, x: Float[Tensor, "b n d_token"]) -> Decoded:
        """All tokens at once; x[:, i] is the token before token i."""
        _tokens(x, self.core.input_size - encoded.ends.shape[-1])
        return Decoded(self._run(encoded, x, self.start(encoded))[0], None)

    def _run(self, encoded: Encoded, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        seen = torch.cat([encoded.ends[:, None].expand(-1, x.shape[1], -1), x], -1)
        states, last = self.core(seen, state[None])
        return torch.cat([states, seen], -1), last[0]


class AttentionDecoder(nn.Module):
    """Bahdanau's decoder: `c_i = attend(s_{i-1}, h, h)`, then `s_i = GRU([c_i, y_{i-1}], s_{i-1})`.

    The state before token i asks, the encoder's states h are keys and values, padding is hidden. The first
    state is tanh(W h), with h the state of the GRU from right to left at the first token, as in the paper.
    The output is [s_i, c_i, y_{i-1}]. `score` is any score for queries of width d_state and keys of width
    d_memory; without one it is Bahdanau's, `Additive(d_state, d_memory, d_state)`. Raises ValueError where a
    width is less than 1.
    """

    def __init__(self, d_token: int, d_memory: int, d_state: int, *, score: Score | None = None) -> None:
        super().__init__()
        require.whole(d_token=d_token, d_memory=d_memory, d_state=d_state)
        self.d_output = d_state + d_memory + d_token
        self.score = Additive(d_state, d_memory, d_state) if score is None else score
        self.first = nn.Linear(d_memory // 2, d_state)
        self.core = nn.GRUCell(d_memory + d_token, d_state)

    def start(self, encoded: Encoded) -> Float[Tensor, "b d_state"]:
        """The state before the first token."""
        _, from_the_right = encoded.states[:, 0].chunk(2, dim=-1)
        return self.first(from_the_right).tanh()

    def step(
        self,
        encoded: Encoded,
        x: Float[Tensor, "b d_token"],
        state: Float[Tensor, "b d_state"],
        score: Score | None = None,
    ) -> Step:
        """One token further: look, then move; x is the token before. `score`: what has met the keys before
        (`Additive.for_keys`), if anything."""
        h = encoded.states
        context, weights = attend(state[:, None], h, h, score=score or self.score, mask=encoded.mask)
        seen = torch.cat([context[:, 0], x], -1)
        state = self.core(seen, state)
        return Step(torch.cat([state, seen], -1), state, weights[:, 0])

    def forward(self, encoded: Encoded, x: Float[Tensor, "b n d_token"]) -> Decoded:
        """One step after the other; x[:, i] is the token before token i."""
        _tokens(x, self.core.input_size - encoded.states.shape[-1])
        state, steps = self.start(encoded), []
        score = self.score.for_keys(encoded.states) if isinstance(self.score, Additive) else self.score
        for before in x.unbind(1):
            steps.append(self.step(encoded, before, state, score))
            state = steps[-1].state
        return Decoded(
            *(torch.stack(made, 1) for made in zip(*((s.output, s.weights) for s in steps), strict=True))
        )


def _tokens(x: Tensor, width: int) -> None:
    if not isinstance(x, Tensor) or x.ndim != 3 or x.shape[-1] != width or x.shape[1] == 0:
        got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(
            f"x must be a tensor (b, tokens, d_token = {width}) with at least one token, got {got}; embed the"
            " tokens first"
        )
