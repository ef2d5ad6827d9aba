"""Exercises of lesson 05 in which a function is written or repaired; lesson_05.py puts them in order."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, source_of, table
from lesson_lib.positions import rotation, sinusoidal

ANGLE = math.atan2(4, 3)  # its cosine is 0.6, its sine 0.8


def waves(positions: Float[Tensor, " n"], d: int) -> Float[Tensor, "n d"]:
    two_j = torch.arange(0, d, 2, dtype=positions.dtype, device=positions.device)
    frequencies = 10000.0 ** (-two_j / d)
    angles = positions[:, None] * frequencies  # (n, d/2), one column per frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


Angles = Callable[[Tensor, int], Tensor]


def _steps(positions: Tensor, count: int) -> Tensor:
    """0, 1, 2 ... as numbers of the kind that positions are."""
    return torch.arange(count, dtype=positions.dtype, device=positions.device)


def _turns(exponent: Callable[[Tensor, int], Tensor], base: float = 10_000.0) -> Angles:
    """Angles (n, d/2) with frequencies base ** exponent(j, d)."""
    return lambda positions, d: positions[:, None] * base ** exponent(_steps(positions, d // 2), d)


def _side_by_side(one: Tensor, other: Tensor) -> Tensor:
    return torch.stack([one, other], -1).flatten(-2)


def _waves(angles: Angles) -> Callable[[Tensor, int], Tensor]:
    return lambda positions, d: _side_by_side(angles(positions, d).sin(), angles(positions, d).cos())


_right_angles = _turns(lambda j, d: -2 * j / d)


def _frequency_per_column(positions: Tensor, d: int) -> Tensor:
    c = _steps(positions, d)
    angles = positions[:, None] * 10_000.0 ** (-c / d)
    return torch.where(c % 2 == 0, angles.sin(), angles.cos())


def _places(*positions: float | int) -> Tensor:
    return table([float(p) for p in positions])


table_of_waves = Write(
    name="waves",
    title="The table of waves",
    stars=2,
    minutes=8,
    why="with a wrong exponent the table still makes a handsome picture, and nothing complains",
    asked=(
        "p[i, 2j] = sin(i w_j), p[i, 2j+1] = cos(i w_j), w_j = 10000 ** (-2j/d), for the given positions i"
        " and j = 0 ... d/2 - 1"
    ),
    stages=(
        Stage(
            "position 0, width 2",
            lambda: [{"positions": _places(0), "d": 2}],
            "sin(0) = 0 stands in column 0, cos(0) = 1 in column 1.",
        ),
        Stage(
            "some positions, width 2: one frequency, 1 radian per token",
            lambda: [{"positions": _places(1, 3), "d": 2}],
            "With d = 2 there is j = 0 alone, and w_0 = 1: a row is sin(i), cos(i).",
        ),
        Stage(
            "position 1, width 4: sin 1, cos 1, sin 0.01, cos 0.01",
            lambda: [{"positions": _places(1), "d": 4}],
            "The second frequency is 10000 ** (-2/4) = 0.01, and columns 2j and 2j + 1 share one.",
        ),
        Stage(
            "positions that are not 0, 1, 2, width 6",
            lambda: [
                {"positions": _places(5, 0, 11, 2.5), "d": 6},
                {"positions": _places(1000, 300), "d": 4},  # far enough to tell 10000 from 10001
            ],
            "Row r is the code of positions[r], whatever r is.",
        ),
    ),
    reference=waves,
    hints=(
        (
            "How many frequencies are there for d columns? Compute them first: for which j, and what is w_1"
            " if d = 4?"
        ),
        "`positions[:, None] * frequencies` pairs each position with each frequency. What is its shape?",
        (
            "Sine and cosine of ONE frequency stand side by side. What does torch.stack((a, b),"
            " dim=-1).flatten(-2) do with two (n, d/2) tables?"
        ),
    ),
    solution=source_of(waves),
    remember=(
        "d/2 frequencies from 1 down to nearly 1/10000, two columns each: columns 2j and 2j + 1 are ONE clock"
    ),
    slips={
        "your exponent is -j/d; j counts pairs of columns, so it is -2j/d": _waves(
            _turns(lambda j, d: -j / d)
        ),
        "your exponent is -2j without the division by d": _waves(_turns(lambda j, d: -2.0 * j)),
        "your exponent is positive: waves get shorter from column to column; they must get longer": _waves(
            _turns(lambda j, d: 2 * j / d)
        ),
        "sine and cosine are exchanged: sine stands in the even columns, 0, 2, 4": lambda p, d: _side_by_side(
            _right_angles(p, d).cos(), _right_angles(p, d).sin()
        ),
        "all sines stand first, then all cosines; here the two of a frequency stand side by side": (
            lambda p, d: torch.cat([_right_angles(p, d).sin(), _right_angles(p, d).cos()], -1)
        ),
        "every column has a frequency of its own; columns 2j and 2j + 1 share w_j": _frequency_per_column,
        "you number the rows 0, 1, 2 yourself; take the positions as they are given": lambda p, d: waves(
            _steps(p, len(p)), d
        ),
        "you start one position late: position 0 has sin(0) = 0 and cos(0) = 1": lambda p, d: waves(p + 1, d),
        "the base is 10000; you took 1000": _waves(_turns(lambda j, d: -2 * j / d, 1000.0)),
        "one pair of columns too many: j ends at d/2 - 1": _waves(
            lambda p, d: p[:, None] * 10_000.0 ** (-2 * _steps(p, d // 2 + 1) / d)
        ),
        "there is no 2 pi here: w_j is in radians per token": lambda p, d: waves(2 * math.pi * p, d),
        "you add position and frequency; the angle is their product": _waves(
            lambda p, d: p[:, None] + 10_000.0 ** (-2 * _steps(p, d // 2) / d)
        ),
    },
    right=(
        lambda positions, d: torch.stack(
            [(positions * 10000.0 ** (-(c - c % 2) / d) + c % 2 * math.pi / 2).sin() for c in range(d)], dim=1
        ),
        lambda positions, d: torch.stack(
            [
                rotation(float(i), d, dtype=positions.dtype, device=positions.device)
                @ sinusoidal(1, d, dtype=positions.dtype, device=positions.device)[0]
                for i in positions
            ]
        ),
    ),
)


def shift_matrix(delta: float, frequencies: Float[Tensor, " half_d"]) -> Float[Tensor, "d d"]:
    cos, sin = torch.cos(delta * frequencies), torch.sin(delta * frequencies)
    rows = torch.stack([cos, sin], dim=-1), torch.stack([-sin, cos], dim=-1)  # (d/2, 2) each
    return torch.block_diag(*torch.stack(rows, dim=-2))


Entries = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor, Tensor]]


def _small(angles: Tensor, entries: Entries) -> Tensor:
    """Blocks (d/2, 2, 2); `entries(cos, sin)` are those of each block, row by row."""
    return torch.stack(entries(angles.cos(), angles.sin()), -1).unflatten(-1, (2, 2))


def _blocks(entries: Entries) -> Callable[[float, Tensor], Tensor]:
    return lambda delta, frequencies: torch.block_diag(*_small(delta * frequencies, entries))


def _turn(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return cos, sin, -sin, cos


_right_blocks = _blocks(_turn)


def _half_split(delta: float, frequencies: Tensor) -> Tensor:
    cos, sin = torch.diag((delta * frequencies).cos()), torch.diag((delta * frequencies).sin())
    return torch.cat([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)])


shift = Write(
    name="shift_matrix",
    title="A shift is a rotation",
    stars=3,
    minutes=10,
    why="this matrix is why sinusoids can encode distance, and it is all that rotary attention does",
    asked=(
        "R(delta), (d, d), with R(delta) p[i] = p[i + delta] for EVERY i, where p[i] = (sin(i w_0), cos(i"
        " w_0), sin(i w_1), ...)"
    ),
    stages=(
        Stage(
            "one frequency, no shift: nothing moves",
            lambda: [{"delta": 0.0, "frequencies": _places(1)}],
            "R(0) is the identity.",
        ),
        Stage(
            "one frequency, an angle with cos = 0.6 and sin = 0.8",
            lambda: [{"delta": 1.0, "frequencies": _places(ANGLE)}],
            "sin(a + t) = sin a cos t + cos a sin t, and cos(a + t) likewise: each is a row times (sin a,"
            " cos a).",
        ),
        Stage(
            "two frequencies",
            lambda: [
                {"delta": 3.0, "frequencies": _places(0.5, 0.1)},
                {"delta": -2.0, "frequencies": _places(0.3, 2)},
            ],
            "Each frequency has a block of its own, with an angle of its own, on the diagonal; zeros"
            " elsewhere.",
        ),
        Stage(
            "three frequencies, a shift that is no whole number",
            lambda: [{"delta": 2.5, "frequencies": _places(1, 0.25, 0.0625)}],
            "Rows 2j and 2j + 1 belong to frequency j, and so do columns 2j and 2j + 1.",
        ),
    ),
    reference=_right_blocks,
    hints=(
        (
            "Write sin((i + delta) w) with the angle-addition formula. Which two of its factors are parts of"
            " p[i], and which hold delta alone?"
        ),
        (
            "That is the first row of a 2 x 2 block. Which row do you get from cos((i + delta) w), and where"
            " is its minus?"
        ),
        "Different frequencies never meet: which entries of R are 0, and what does torch.block_diag do?",
    ),
    solution=source_of(shift_matrix),
    remember=(
        "block j is [[cos, sin], [-sin, cos]] of delta * w_j; it knows delta and not i, so 'delta tokens on'"
        " is one and the same matrix everywhere"
    ),
    slips={
        "the minus is in the wrong corner: this is R(-delta), the transpose, which shifts back": _blocks(
            lambda cos, sin: (cos, -sin, sin, cos)
        ),
        "sine and cosine are exchanged: R(0) must be the identity": _blocks(
            lambda cos, sin: (sin, cos, -cos, sin)
        ),
        "this reflects instead of turning (determinant -1): the second row is (-sin, cos)": _blocks(
            lambda cos, sin: (cos, sin, sin, -cos)
        ),
        "a minus is missing: cos(a + b) = cos a cos b - sin a sin b": _blocks(
            lambda cos, sin: (cos, sin, sin, cos)
        ),
        "all blocks turn by the first frequency; block j turns by delta * w_j": lambda delta, w: (
            _right_blocks(delta, w[:1].expand(len(w)))
        ),
        "you pair column j with column j + d/2; here the two columns of a frequency are neighbours": (
            _half_split
        ),
        "delta is missing: each block turns by delta * w_j": lambda delta, w: _right_blocks(1.0, w),
        "you divide delta by the frequency; the angle is delta * w_j": lambda delta, w: _right_blocks(
            1.0, delta / w
        ),
        "these are the blocks, (d/2, 2, 2); put them on the diagonal of one matrix (torch.block_diag)": (
            lambda delta, w: _small(delta * w, _turn)
        ),
        "there is no 2 pi here: w_j is in radians per token": lambda delta, w: _right_blocks(
            2 * math.pi * delta, w
        ),
    },
    right=(
        _right_blocks,
        lambda delta, frequencies: torch.linalg.matrix_exp(
            delta * torch.block_diag(*(w * table([[0.0, 1.0], [-1.0, 0.0]]) for w in frequencies))
        ),
    ),
)


def offset_rows(
    query_positions: Int[Tensor, " n"], key_positions: Int[Tensor, " m"], radius: int
) -> Int[Tensor, "n m"]:
    offsets = key_positions[None, :] - query_positions[:, None]  # j - i, negative for the past
    return offsets.clamp(-radius, radius) + radius


def _offsets(i: Tensor, j: Tensor) -> Tensor:
    return j[None, :] - i[:, None]


def _pairs(queries: list[int], keys: list[int], radius: int) -> Case:
    return {
        "query_positions": torch.tensor(queries, device="cpu"),
        "key_positions": torch.tensor(keys, device="cpu"),
        "radius": radius,
    }


relative = Write(
    name="offset_rows",
    title="Which row of the table?",
    stars=2,
    minutes=6,
    why="a negative index takes a row from the end of a table, without an error",
    asked=(
        "Shaw's table has a row for each offset j - i from -radius to radius; farther keys share the last."
        " Row numbers (n, m), from 0 on"
    ),
    stages=(
        Stage(
            "one query, its neighbours, radius 1",
            lambda: [_pairs([5], [4, 5, 6], 1)],
            "The key before is offset -1 and takes row 0; the key after is offset 1 and takes row 2.",
        ),
        Stage(
            "keys far away, radius 2",
            lambda: [_pairs([5], [0, 4, 5, 20], 2)],
            "Whatever is farther than the radius takes the radius's row, on its own side.",
        ),
        Stage(
            "three queries, five keys",
            lambda: [_pairs([2, 11, 5], [3, 5, 7, 2, 13], 3)],
            "Rows are queries, columns are keys.",
        ),
        Stage(
            "the newest token, with a cache of keys; and a radius larger than the sequence",
            lambda: [_pairs([6], [0, 1, 2, 3, 4, 5, 6], 3), _pairs([0, 1, 2], [0, 1, 2], 8)],
            "The positions say where a token is, not its place in the table you are handed.",
        ),
    ),
    reference=offset_rows,
    hints=(
        (
            "Which offsets are there for radius 1, and how many rows does that make? Which row is that of"
            " offset -1?"
        ),
        "Clip first or shift first: both go, with different limits. What are the limits in each case?",
        (
            "How do you pair every key position with every query position, so that rows are queries? ([:,"
            " None] and [None, :])"
        ),
    ),
    solution=source_of(offset_rows),
    remember=(
        "clip j - i to [-radius, radius], then add radius: rows 0 ... 2 * radius, which are 2 * radius + 1"
    ),
    slips={
        "this is i - j: past and future are exchanged": lambda i, j, r: (-_offsets(i, j)).clamp(-r, r) + r,
        "you do not clip: far keys ask for rows that the table does not have": lambda i, j, r: (
            _offsets(i, j) + r
        ),
        "you clip, but do not add radius: row -1 is the table's LAST row, and no error says so": (
            lambda i, j, r: _offsets(i, j).clamp(-r, r)
        ),
        "you clip to [-radius, radius] after adding radius; then the limits are 0 and 2 * radius": (
            lambda i, j, r: (_offsets(i, j) + r).clamp(-r, r)
        ),
        "one row too few: you stop at radius - 1, and there are 2 * radius + 1 rows, since 0 is an offset, too": (
            lambda i, j, r: _offsets(i, j).clamp(-r, r - 1) + r
        ),
        "you take the distance |j - i|: then before and after are the same": lambda i, j, r: (
            _offsets(i, j).abs().clamp(max=r)
        ),
        "your table is (m, n): rows are keys; rows must be queries": lambda i, j, r: (
            (_offsets(i, j).clamp(-r, r) + r).mT
        ),
        "you wrap around (%): a key too far to the right takes a row of the left": lambda i, j, r: (
            (_offsets(i, j) + r) % (2 * r + 1)
        ),
        "you count the places in the two lists; take the positions as they are given": lambda i, j, r: (
            _offsets(_steps(i, len(i)), _steps(j, len(j))).clamp(-r, r) + r
        ),
        "far keys take row 0 here; each side has a last row of its own": lambda i, j, r: (
            (_offsets(i, j) + r) * (_offsets(i, j).abs() <= r)
        ),
        "you add radius + 1: rows are counted from 0": lambda i, j, r: _offsets(i, j).clamp(-r, r) + r + 1,
    },
    right=(
        lambda query_positions, key_positions, radius: (
            key_positions - query_positions[:, None] + radius
        ).clamp(0, 2 * radius),
        lambda i, j, r: torch.stack([torch.clamp(j - one, min=-r, max=r) + r for one in i]),
    ),
)


def turned(
    x: Float[Tensor, "*b n d"], positions: Float[Tensor, " n"], frequencies: Float[Tensor, " half_d"]
) -> Float[Tensor, "*b n d"]:
    angles = positions[:, None] * frequencies  # (n, d/2)
    partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)  # (a, b) to (-b, a)
    angles = angles.repeat_interleave(2, dim=-1)  # both columns of a pair turn by one angle
    return x * angles.cos() + partner * angles.sin()


def _partner(x: Tensor) -> Tensor:
    """(a, b) to (-b, a) in each pair of neighbours."""
    return torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)


def _angles(positions: Tensor, frequencies: Tensor) -> Tensor:
    return (positions[:, None] * frequencies).repeat_interleave(2, -1)


def _angles_given(positions: Tensor, frequencies: Tensor) -> Tensor:
    return torch.cat([positions[:, None] * frequencies] * 2, -1)


def _turned_as_given(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    angles = _angles_given(positions, frequencies)
    return x * angles.cos() + _partner(x) * angles.sin()


def _in_halves(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    angles = _angles_given(positions, frequencies)
    return x * angles.cos() + torch.cat([-b, a], -1) * angles.sin()


def _with_angles(
    angles: Callable[[Tensor, Tensor], Tensor],
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda x, p, w: x * angles(p, w).cos() + _partner(x) * angles(p, w).sin()


def _tokens(x: Tensor, positions: Tensor, frequencies: Tensor) -> Case:
    return {"x": x, "positions": positions, "frequencies": frequencies}


def _token_by_token(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    """Token i times the matrix that shifts by its position."""
    rows = [x[..., k, :] @ _right_blocks(float(i), frequencies) for k, i in enumerate(positions)]
    return torch.stack(rows, -2)


def _as_complex_numbers(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    angles = positions[:, None] * frequencies
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


turn = Write(
    name="turned",
    title="Two clocks in one function",
    stars=2,
    minutes=8,
    why="two pairings are in use; mixed up, nothing crashes, and a published model writes nonsense",
    asked=(
        "repair: neighbours (a, b) in columns 2j, 2j+1 of token i become (a cos t - b sin t, a sin t + b cos"
        " t), t = positions[i] * w_j"
    ),
    given=_turned_as_given,
    stages=(
        Stage(
            "one pair: position 0, then an angle with cos = 0.6 and sin = 0.8",
            lambda: [
                _tokens(table([[2.0, 3.0]]), _places(0), _places(1)),
                _tokens(table([[2.0, 3.0]]), _places(1), _places(ANGLE)),
            ],
            "(2, 3) becomes (2 * 0.6 - 3 * 0.8, 2 * 0.8 + 3 * 0.6).",
        ),
        Stage(
            "two pairs, one token: that angle, and none",
            lambda: [_tokens(primes(1, 4), _places(1), _places(ANGLE, 0))],
            "The first pair turns, the second stays. Which angle does each of the four columns get?",
        ),
        Stage(
            "three tokens, three pairs",
            lambda: [_tokens(drawn(1, 3, 6), _places(4, 0, 7), _places(1, 0.5, 0.1))],
            "Token i turns by positions[i], and every pair by its own frequency.",
        ),
        Stage(
            "two sequences, two heads, five tokens, the sinusoids' frequencies",
            lambda: [_tokens(drawn(2, 2, 2, 5, 4), _places(3, 4, 5, 6, 7), _places(1, 0.01))],
            "Positions belong to the axis of the tokens, -2, whatever stands before it.",
        ),
    ),
    reference=_token_by_token,
    hints=(
        (
            "`partner` makes (-b, a) of neighbours (a, b). So columns 0 and 1 are a pair. By which angle must"
            " each of them turn?"
        ),
        (
            "Print the angles for one token with frequencies (w0, w1). Which of (w0, w1, w0, w1) and (w0, w0,"
            " w1, w1) do neighbours need?"
        ),
        "What is the difference between torch.cat((t, t), dim=-1) and t.repeat_interleave(2, dim=-1)?",
    ),
    solution=source_of(turned),
    remember=(
        "a pairing decides two things, the partner and the angle: neighbours with repeat_interleave, or"
        " halves with cat, never mixed"
    ),
    slips={
        "this is still the function as it was given": _turned_as_given,
        "these are halves throughout, column j with j + d/2: right in itself, and used by many models, but asked are neighbours": (
            _in_halves
        ),
        "you turn the other way; scores would stay the same, but published weights would not fit": (
            lambda x, p, w: x * _angles(p, w).cos() - _partner(x) * _angles(p, w).sin()
        ),
        "the partner has halves (j and j + d/2) and the angles have neighbours: both must agree": (
            lambda x, p, w: (
                x * _angles(p, w).cos()
                + torch.cat([-x.chunk(2, -1)[1], x.chunk(2, -1)[0]], -1) * _angles(p, w).sin()
            )
        ),
        "a minus is missing: (a, b) has the partner (-b, a); without it nothing turns": lambda x, p, w: (
            x * _angles(p, w).cos() + x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) * _angles(p, w).sin()
        ),
        "sine and cosine are exchanged: at position 0 nothing may turn": lambda x, p, w: (
            x * _angles(p, w).sin() + _partner(x) * _angles(p, w).cos()
        ),
        "you add sines and cosines to x; rotary turns x, and keeps its length": lambda x, p, w: (
            x + _side_by_side((p[:, None] * w).sin(), (p[:, None] * w).cos())
        ),
        "all pairs turn by the first frequency": _with_angles(
            lambda p, w: (p[:, None] * w[:1]).expand(-1, 2 * len(w))
        ),
        "you number the tokens 0, 1, 2 yourself; take the positions as they are given": _with_angles(
            lambda p, w: _angles(_steps(p, len(p)), w)
        ),
        "the partners are missing: each number is only made smaller by its cosine": lambda x, p, w: (
            x * _angles(p, w).cos()
        ),
    },
    right=(
        _token_by_token,
        _as_complex_numbers,
    ),
)
