"""Exercises of lesson 05, positional encoding: how does it know order?"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Choice, Draw, Number, Open, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.positions import sinusoidal

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


def _more_waves(drawn: Draw) -> list[Case]:
    return [{"positions": (10 * drawn(1, 11)).round().abs(), "d": 10}]


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
    solution=waves,
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
    hidden=_more_waves,
)


def shift_matrix(
    delta: float,
    frequencies: Float[Tensor, " half_d"],
) -> Float[Tensor, "d d"]:
    cos, sin = torch.cos(delta * frequencies), torch.sin(delta * frequencies)
    rows = torch.stack([cos, sin], dim=-1), torch.stack([-sin, cos], dim=-1)
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


def _more_shift_matrix(drawn: Draw) -> list[Case]:
    return [{"delta": drawn(1, 1).item(), "frequencies": drawn(2, 5).abs()}]


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
    solution=shift_matrix,
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
    hidden=_more_shift_matrix,
)


def offset_rows(
    query_positions: Int[Tensor, " n"],
    key_positions: Int[Tensor, " m"],
    radius: int,
) -> Int[Tensor, "n m"]:
    offsets = key_positions[None, :] - query_positions[:, None]  # j - i
    return offsets.clamp(-radius, radius) + radius


def _offsets(i: Tensor, j: Tensor) -> Tensor:
    return j[None, :] - i[:, None]


def _pairs(queries: list[int], keys: list[int], radius: int) -> Case:
    return {
        "query_positions": torch.tensor(queries, device="cpu"),
        "key_positions": torch.tensor(keys, device="cpu"),
        "radius": radius,
    }


def _more_offset_rows(drawn: Draw) -> list[Case]:
    queries, keys = (5 * drawn(1, 4)).long() + 40, (5 * drawn(2, 11)).long() + 40
    return [{"query_positions": queries, "key_positions": keys, "radius": 4}]


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
    solution=offset_rows,
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
    hidden=_more_offset_rows,
)


def turned(
    x: Float[Tensor, "*b n d"],
    positions: Float[Tensor, " n"],
    frequencies: Float[Tensor, " half_d"],
) -> Float[Tensor, "*b n d"]:
    angles = positions[:, None] * frequencies  # (n, d/2)
    partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    angles = angles.repeat_interleave(2, dim=-1)  # both columns of a pair
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


def _more_turned(drawn: Draw) -> list[Case]:
    return [
        {
            "x": drawn(1, 3, 2, 11, 8),
            "positions": (5 * drawn(2, 11)).round(),
            "frequencies": drawn(3, 4).abs(),
        }
    ]


turn = Write(
    name="turned",
    title="Two clocks in one function: a repair",
    stars=2,
    minutes=8,
    why="two pairings are in use; mixed up, nothing crashes, and a published model writes nonsense",
    asked=(
        "repair: neighbours (a, b) in columns 2j, 2j+1 of token i become (a cos t - b sin t, a sin t + b cos"
        " t), t = positions[i] * w_j"
    ),
    repair=True,
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
    solution=turned,
    remember=(
        "a pairing decides two things, the partner and the angle: neighbours with repeat_interleave, or"
        " halves with cat, never mixed"
    ),
    slips={
        "this is still the function as it was given": (
            "angles = angles.repeat_interleave(2, dim=-1)  # both columns of a pair",
            "angles = torch.cat([angles, angles], dim=-1)",
        ),
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
    hidden=_more_turned,
)

wave = Number(
    name="wavelength",
    title="How long is a wave?",
    stars=1,
    minutes=5,
    why="the wavelengths say which distances a column can tell apart",
    asked=(
        "sinusoids of width d = 16, base 10000, columns counted from 0: after how many tokens does column 8"
        " repeat?"
    ),
    value=200 * math.pi,
    hints=(
        "Columns 2j and 2j + 1 share a frequency. Which j is column 8's?",
        "w_j = 10000 ** (-2j / 16). What is that for this j? (10000 is 10 ** 4.)",
        "The column is sin(i w_j). For which i has the angle gone round once, that is, by 2 pi?",
    ),
    solution=(
        "column 8 = 2j with j = 4; w_4 = 10000 ** (-8/16) = 1/100; one turn is 2 pi, so i = 2 pi / w_4 = 200"
        " pi = 628.3185"
    ),
    remember="wavelengths grow from 2 pi to nearly 10000 * 2 pi, by the same factor from pair to pair",
    slips={
        "8 is the column, and 2j = 8: you took j = 8": "2 * pi * 10000",
        "your exponent is -j/d; it is -2j/d": "2 * pi * 10",
        "that is 1 / w; once round is 2 pi, not 1": 100,
        "that is the frequency w; asked is the wavelength, 2 pi / w": "1 / 100",
        "that is turns per token, w / (2 pi); asked is tokens per turn": "1 / (200 * pi)",
        "after pi the sine is 0 again, but it goes the other way; once round is 2 pi": "100 * pi",
        "you counted columns from 1, and took the pair before; counted from 0, column 8 is the sine of j = 4": (
            "2 * pi * 10000**(6/16)"
        ),
    },
    answer="2 * pi * 10000**(8 / 16)",
)

shaw = Number(
    name="shaw_numbers",
    title="What do distances cost?",
    stars=2,
    minutes=5,
    why="a table of distances does not grow with the text; a table of positions does",
    asked=(
        "Shaw's tables for keys and for values, d_k = d_v = 16, radius 8, texts of 128 tokens: how many"
        " learned numbers?"
    ),
    value=2 * 17 * 16,
    tolerance=1e-6,
    hints=(
        "Which offsets j - i have a row of their own? Write them down for radius 2 first: how many are they?",
        "How wide is a row of the table for the keys? It is added to a key.",
        "There is a second table, for the values. Does 128 occur anywhere?",
    ),
    solution=(
        "offsets -8 ... 8 are 2 * 8 + 1 = 17 rows of 16 numbers, once for keys, once for values: 2 * 17 * 16"
        " = 544. A learned table of 128 positions with d_model = 64 has 128 * 64 = 8,192."
    ),
    remember="radius r makes 2r + 1 rows: r before, r after, and 0; farther tokens share the last rows",
    slips={
        "0 is an offset, too: -8 ... 8 are 17 rows, not 16": "2 * 16 * 16",
        "you counted one direction only; before and after have rows of their own": "2 * 9 * 16",
        "you counted one direction only, and without 0": "2 * 8 * 16",
        "one table for the keys, one for the values": "17 * 16",
        "that is the number of rows of one table; each has 16 numbers": 17,
        "that is without clipping; offsets beyond 8 share a row": "2 * 255 * 16",
        "that is a table of positions; Shaw's has a row per offset": "2 * 128 * 16",
        "a pair (i, j) has no numbers of its own; pairs of one offset share a row": "2 * 128 * 128 * 16",
        "a row has 16 numbers, for a key or for a value; you multiplied the two widths": "17 * 16 * 16",
    },
    answer="2 * (2 * 8 + 1) * 16",
)


def _nearness_picture() -> Any:
    from lesson_lib import plots

    p = sinusoidal(32, 16, dtype=torch.float64, device=torch.device("cpu"))
    return plots.heatmap(
        p @ p.mT,
        alt=(
            "Heat map of 32 by 32 dot products: stripes along the diagonals, the main diagonal brightest,"
            " both sides alike."
        ),
        caption=(
            "The dot product of codes i and j is the sum of cos((i - j) w_j) over the 8 frequencies: on a"
            " diagonal it is constant."
        ),
        row_axis="position i",
        column_axis="position j",
        color_axis="dot product",
    )


nearness = Choice(
    name="code_products",
    title="Codes against codes: predict the picture",
    stars=2,
    minutes=5,
    why="one picture shows what sinusoids know about distance, and what they do not know about direction",
    asked=(
        "P holds the sinusoidal codes of positions 0 ... 31, a row each, d = 16: what does P P^T look like?"
    ),
    options={
        "a": (
            "stripes along the diagonals: each diagonal has one value, the main one is brightest, both sides"
            " are alike"
        ),
        "b": "stripes along the diagonals: what is below the main one is bright, what is above is dark",
        "c": "brighter and brighter towards the lower right: late positions have large codes",
        "d": "a bright main diagonal; everything else is exactly 0",
        "e": "vertical stripes: each column has one value",
        "f": "horizontal stripes: each row has one value",
    },
    hints=(
        (
            "The dot product of codes i and j is a sum over the frequencies of sin sin + cos cos. What is sin"
            " a sin b + cos a cos b?"
        ),
        "It is cos((i - j) w), so what do all pairs with the same i - j have in common?",
        "What becomes of cos((i - j) w) if you exchange i and j, and where is a cosine largest?",
    ),
    solution=(
        "a: p_i . p_j is the sum of cos((i - j) w) over the 8 frequencies. It depends on i - j alone, is"
        " largest, 8, at i = j, and does not change when i and j are exchanged."
    ),
    remember=(
        "p_i . p_j knows how far, not which way; a projection (W_q, W_k) between them makes it know the"
        " direction, too"
    ),
    slips={
        "b would need to know before from after; cos(i - j) and cos(j - i) are the same": "b",
        "c would need codes that grow; sin^2 + cos^2 = 1 for every frequency, so all have the same length": (
            "c"
        ),
        "d would need codes at right angles to each other; neighbours have much in common": "d",
        "e would need a position that all others resemble; every position resembles its own neighbours": "e",
        "f would make one position like all others; every position resembles its own neighbours": "f",
    },
    answer="a",
    picture=_nearness_picture,
)

why = Open(
    name="why_no_order",
    title="Why does it not know order? In your own words",
    stars=2,
    minutes=6,
    why="it is the reason for this whole lesson: nothing in attention knows where a token stands",
    asked=(
        "in two or three sentences: why does shuffling the tokens only shuffle the outputs of self-attention,"
        " and what changes that?"
    ),
    hints=(
        "Which operations see one token alone, and which ones see several?",
        (
            "The softmax and the weighted mean are sums over keys. What happens to a sum when its terms"
            " change places?"
        ),
        "What must be added to a token, to a score or to a mask, so that 'i comes before j' leaves a trace?",
    ),
    solution=(
        "Queries, keys and values are made of each token alone, with the same matrices everywhere. A score"
        " belongs to a pair of tokens, and the softmax and the weighted mean are sums over the keys, which do"
        " not depend on the order of their terms. So every token takes its output along to its new place."
        " This changes when the positions enter: as codes added to the tokens, as a turn of queries and keys,"
        " as a term in the score, or through a causal mask, which is tied to places and not to tokens."
    ),
    remember=(
        "without positions self-attention is equivariant: shuffle the input, and the output is shuffled"
        " likewise, nothing else"
    ),
    slips={
        "equivariant, not invariant: the outputs change places together with the tokens": r"\binvarian",
        "softmax is innocent: without it a shuffle would pass through just the same": (
            r"softmax (loses|destroys|forgets|removes|ignores|throws)"
        ),
        "W_q, W_k, W_v are the same for every token: they can know what a token is, and not where": (
            r"(w_q|w_k|w_v|matri\w+|projections?)"
            r" (learns?|stores?|knows?|contains?|encodes?)\b.*(order|position|place)"
        ),
        "training does not help: whatever the weights are, a shuffle passes through": (
            r"(after|with|by|more|enough) training|training (on|makes|teaches|lets)|learns? the order"
        ),
        "these act on each token alone, so a shuffle passes through them, too": (
            r"residual|layer ?norm|feed-?forward|\bmlp\b|more layers|deeper"
        ),
        "a mask of fillers moves along with its tokens; what breaks it is a mask tied to places, such as a causal one": (
            r"padding"
        ),
    },
    points={
        "what do the softmax and the mean over keys care about the order of their terms?": (
            r"\bsum|order of|\bset\b|pair|permut|commut|symmetric|equivarian|whatever order|any order"
        ),
        "how is each query, key and value made: from what, and with which matrices?": (
            r"same (matri|weight|projection|function|w_)|each token|every token|token alone|own"
            r" token|shared|token by token|by itself|pair of tokens|"
            r"content|only on the|from (that|its|one) token|\bx ?w|p s p|nothing in|permut\w+ (the )?rows"
        ),
        "what must come in to change it?": (
            r"position|sinus|\bcode|rotary|rotat|causal|offset|distance|place.*(added|known|mask)"
        ),
    },
)

EXERCISES = (wave, table_of_waves, shift, nearness, shaw, relative, turn, why)
