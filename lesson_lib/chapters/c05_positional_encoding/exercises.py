"""Exercises of chapter 05, positional encoding: what its parts ask, and more.

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding import beyond_training, order, rotation, seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.positions import sinusoidal

wave = Number(
    name="wavelength",
    second=lambda n: seconds.wavelength(wave, n),
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
        "you multiply 2 pi by the frequency; divide by it": "2 * pi / 100",
        "wavelengths do not grow by equal steps: each is a power of 10000 times 2 pi": "2 * pi * 5000",
        "wavelengths do not double from pair to pair; they grow by 10000**(2/16)": "2 * pi * 2**4",
    },
    answer="2 * pi * 10000**(8 / 16)",
)


def waves(positions: Float[Tensor, " n"], d: int) -> Float[Tensor, "n d"]:
    two_j = torch.arange(0, d, 2, dtype=positions.dtype, device=positions.device)
    frequencies = 10000.0 ** (-two_j / d)
    angles = positions[:, None] * frequencies  # (n, d/2), one column per frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _places(*positions: float | int) -> Tensor:
    return table([float(p) for p in positions])


def _more_waves(drawn: Draw) -> list[Case]:
    return [{"positions": (10 * drawn(1, 11)).round().abs(), "d": 10}]


table_of_waves = Write(
    name="waves",
    second=lambda n: seconds.waves(table_of_waves, n),
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
        "your exponent is -j/d; j counts pairs of columns, so it is -2j/d": ("-two_j / d", "-two_j / 2 / d"),
        "your exponent is -2j without the division by d": (" / d", ""),
        "your exponent is positive: waves get shorter from column to column; they must get longer": (
            "-two_j",
            "two_j",
        ),
        "sine and cosine are exchanged: sine stands in the even columns, 0, 2, 4": (
            "angles.sin(), angles.cos()",
            "angles.cos(), angles.sin()",
        ),
        "all sines stand first, then all cosines; here the two of a frequency stand side by side": (
            (
                "torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)",
                "torch.cat([angles.sin(), angles.cos()], dim=-1)",
            )
        ),
        "every column has a frequency of its own; columns 2j and 2j + 1 share w_j": (
            "(0, d, 2,",
            "(0, d, 1,",
            "torch.stack([angles.sin(), angles.cos()], dim=-1)",
            "torch.stack([angles[:, 0::2].sin(), angles[:, 1::2].cos()], dim=-1)",
        ),
        "you number the rows 0, 1, 2 yourself; take the positions as they are given": (
            "positions[:, None]",
            "torch.arange(len(positions), device=positions.device)[:, None]",
        ),
        "you start one position late: position 0 has sin(0) = 0 and cos(0) = 1": (
            "positions[:, None]",
            "(positions[:, None] + 1)",
        ),
        "the base is 10000; you took 1000": ("10000.0", "1000.0"),
        "one pair of columns too many: j ends at d/2 - 1": ("(0, d, 2,", "(0, d + 2, 2,"),
        "there is no 2 pi here: w_j is in radians per token": (
            "positions[:, None]",
            "2 * torch.pi * positions[:, None]",
        ),
        "you add position and frequency; the angle is their product": (
            "[:, None] * frequencies",
            "[:, None] + frequencies",
        ),
        "your steps of 2 are doubled once more: 2j stands in them already": (
            "(-two_j / d)",
            "(-2 * two_j / d)",
        ),
        "you round the positions; 2.5 has a code of its own": (
            "positions[:, None] *",
            "positions.long()[:, None] *",
        ),
        "you stack sines and cosines along the positions; they alternate along the columns: dim=-1, then flatten": (
            "dim=-1).flatten(-2)",
            "dim=0).reshape(len(positions), d)",
        ),
        "you divide by one pair less, so that the last wave is exactly 10000 long; the formula divides by d": (
            "(-two_j / d)",
            "(-two_j / max(d - 2, 1))",
        ),
        "// rounds your exponent down to a whole number, 0 or -1; divide by /": ("-two_j / d", "-two_j // d"),
        "your exponent is 0 for every pair: 2j // d is a whole number, rounded down; divide by /": (
            "-two_j / d",
            "-(two_j // d)",
        ),
        "the power comes before the division (precedence): put -2j / d in brackets": (
            "(-two_j / d)",
            "-two_j / d",
        ),
        "// rounds -log(10000) / d to a whole number before it meets j (precedence); divide by /, and by no 2": (
            "10000.0 ** (-two_j / d)",
            "torch.exp(two_j * (-9.210340371976184 / d // 2))",
        ),
    },
    hidden=_more_waves,
)


ANGLE = math.atan2(4, 3)  # its cosine is 0.6, its sine 0.8


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


def _more_shift_matrix(drawn: Draw) -> list[Case]:
    return [{"delta": drawn(1, 1).item(), "frequencies": drawn(2, 5).abs()}]


shift = Write(
    name="shift_matrix",
    second=lambda n: seconds.shift_matrix(shift, n),
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
        "the minus is in the wrong corner: this is R(-delta), the transpose, which shifts back": (
            "[cos, sin]",
            "[cos, -sin]",
            "[-sin, cos]",
            "[sin, cos]",
        ),
        "sine and cosine are exchanged: R(0) must be the identity": (
            "[cos, sin]",
            "[sin, cos]",
            "[-sin, cos]",
            "[-cos, sin]",
        ),
        "this reflects instead of turning (determinant -1): the second row is (-sin, cos)": (
            "[-sin, cos]",
            "[sin, -cos]",
        ),
        "a minus is missing: cos(a + b) = cos a cos b - sin a sin b": ("[-sin, cos]", "[sin, cos]"),
        "all blocks turn by the first frequency; block j turns by delta * w_j": (
            "cos, sin = ",
            "frequencies = frequencies[:1].expand(len(frequencies))\n    cos, sin = ",
        ),
        "you pair column j with column j + d/2; here the two columns of a frequency are neighbours": (
            (
                "torch.block_diag(*torch.stack(rows, dim=-2))",
                "torch.cat([torch.cat([cos.diag(), sin.diag()], 1), torch.cat([-sin.diag(), cos.diag()], 1)])",
            )
        ),
        "delta is missing: each block turns by delta * w_j": (
            "torch.cos(delta * frequencies), torch.sin(delta * frequencies)",
            "torch.cos(frequencies), torch.sin(frequencies)",
        ),
        "you divide delta by the frequency; the angle is delta * w_j": (
            "torch.cos(delta * frequencies), torch.sin(delta * frequencies)",
            "torch.cos(delta / frequencies), torch.sin(delta / frequencies)",
        ),
        "these are the blocks, (d/2, 2, 2); put them on the diagonal of one matrix (torch.block_diag)": (
            ("torch.block_diag(*torch.stack(rows, dim=-2))", "torch.stack(rows, dim=-2)")
        ),
        "there is no 2 pi here: w_j is in radians per token": (
            "cos, sin = ",
            "delta = 2 * torch.pi * delta\n    cos, sin = ",
        ),
        "the frequency is missing: you turn every pair by delta": (
            "torch.cos(delta * frequencies), torch.sin(delta * frequencies)",
            "torch.cos(delta + 0 * frequencies), torch.sin(delta + 0 * frequencies)",
        ),
        "sine and cosine have changed places in the block: for delta = 0 it must change nothing": (
            "[cos, sin], dim=-1), torch.stack([-sin, cos]",
            "[sin, cos], dim=-1), torch.stack([cos, -sin]",
        ),
        "sin(a + b) is not sin a times a number: each new number needs both old ones, so there is something beside the diagonal": (
            "torch.block_diag(*torch.stack(rows, dim=-2))",
            "torch.diag(torch.stack([sin, cos], dim=-1).flatten())",
        ),
        "you put in frequencies of your own; take those that are given": (
            "    cos, sin =",
            "    frequencies = 10000.0 ** (-torch.arange(len(frequencies)) / len(frequencies))\n    cos, sin =",
        ),
        "the sine is missing: a turned pair mixes its two numbers": (
            "torch.block_diag(*torch.stack(rows, dim=-2))",
            "torch.diag(cos.repeat_interleave(2))",
        ),
    },
    hidden=_more_shift_matrix,
)


def _nearness_picture() -> Any:
    from lesson_lib import charts

    p = sinusoidal(32, 16, dtype=torch.float64, device=torch.device("cpu"))
    return charts.heatmap(
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


shaw = Number(
    name="shaw_numbers",
    second=lambda n: seconds.shaw_numbers(shaw, n),
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
        "what lies beyond 8 shares the row of 8; it has none of its own": "2 * 19 * 16",
        "one number for each offset is another scheme (T5's); here each row has 16": "2 * 17",
    },
    answer="2 * (2 * 8 + 1) * 16",
)


def offset_rows(
    query_positions: Int[Tensor, " n"],
    key_positions: Int[Tensor, " m"],
    radius: int,
) -> Int[Tensor, "n m"]:
    offsets = key_positions[None, :] - query_positions[:, None]  # j - i
    return offsets.clamp(-radius, radius) + radius


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
    second=lambda n: seconds.offset_rows(relative, n),
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
        "this is i - j: past and future are exchanged": (
            "key_positions[None, :] - query_positions[:, None]",
            "query_positions[:, None] - key_positions[None, :]",
        ),
        "you do not clip: far keys ask for rows that the table does not have": (
            ".clamp(-radius, radius)",
            "",
        ),
        "you clip, but do not add radius: row -1 is the table's LAST row, and no error says so": (
            (") + radius", ")")
        ),
        "you clip to [-radius, radius] after adding radius; then the limits are 0 and 2 * radius": (
            ("offsets.clamp(-radius, radius) + radius", "(offsets + radius).clamp(-radius, radius)")
        ),
        "one row too few: you stop at radius - 1, and there are 2 * radius + 1 rows, since 0 is an offset, too": (
            ("(-radius, radius)", "(-radius, radius - 1)")
        ),
        "you take the distance |j - i|: then before and after are the same": (
            "offsets.clamp(-radius, radius) + radius",
            "offsets.abs().clamp(max=radius)",
        ),
        "your table is (m, n): rows are keys; rows must be queries": (
            "offsets.clamp(-radius, radius) + radius",
            "(offsets.clamp(-radius, radius) + radius).mT",
        ),
        "you wrap around (%): a key too far to the right takes a row of the left": (
            "offsets.clamp(-radius, radius) + radius",
            "(offsets + radius) % (2 * radius + 1)",
        ),
        "you count the places in the two lists; take the positions as they are given": (
            "key_positions[None, :] - query_positions[:, None]",
            "torch.ones_like(key_positions).cumsum(0) - torch.ones_like(query_positions).cumsum(0)[:, None]",
        ),
        "far keys take row 0 here; each side has a last row of its own": (
            "offsets.clamp(-radius, radius) + radius",
            "(offsets + radius) * (offsets.abs() <= radius)",
        ),
        "you add radius + 1: rows are counted from 0": (") + radius", ") + radius + 1"),
        "you take the distance without its sign: before and after need different rows": (
            "offsets.clamp(-radius",
            "offsets.abs().clamp(-radius",
        ),
        "you clip on one side only: far keys before the query get negative rows": (
            "clamp(-radius, radius)",
            "clamp(max=radius)",
        ),
        "you clip the positions; clip the offsets": (
            "key_positions[None, :] - query_positions[:, None]",
            "key_positions.clamp(max=radius)[None, :] - query_positions.clamp(max=radius)[:, None]",
        ),
        "one row too many on each side: the table has 2 * radius + 1 rows": (
            "clamp(-radius, radius) + radius",
            "clamp(-radius - 1, radius + 1) + radius + 1",
        ),
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
    second=seconds.turned,
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
            (
                "torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)",
                "torch.cat([-x.chunk(2, -1)[1], x.chunk(2, -1)[0]], -1)",
                "angles.repeat_interleave(2, dim=-1)",
                "torch.cat([angles, angles], dim=-1)",
            )
        ),
        "you turn the other way; scores would stay the same, but published weights would not fit": (
            ("+ partner", "- partner")
        ),
        "the partner has halves (j and j + d/2) and the angles have neighbours: both must agree": (
            (
                "torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)",
                "torch.cat([-x.chunk(2, -1)[1], x.chunk(2, -1)[0]], -1)",
            )
        ),
        "a minus is missing: (a, b) has the partner (-b, a); without it nothing turns": (
            "-x[..., 1::2]",
            "x[..., 1::2]",
        ),
        "sine and cosine are exchanged: at position 0 nothing may turn": (
            "x * angles.cos() + partner * angles.sin()",
            "x * angles.sin() + partner * angles.cos()",
        ),
        "you add sines and cosines to x; rotary turns x, and keeps its length": (
            "x * angles.cos() + partner * angles.sin()",
            "x + torch.stack([angles.sin()[:, 0::2], angles.cos()[:, 0::2]], dim=-1).flatten(-2)",
        ),
        "all pairs turn by the first frequency": (
            "* frequencies",
            "* frequencies[:1].expand(len(frequencies))",
        ),
        "you number the tokens 0, 1, 2 yourself; take the positions as they are given": (
            "positions[:, None]",
            "torch.arange(len(positions), device=positions.device)[:, None]",
        ),
        "the partners are missing: each number is only made smaller by its cosine": (
            " + partner * angles.sin()",
            "",
        ),
        "the turned numbers stand in halves; put each back into its own column": (
            "return x * angles.cos() + partner * angles.sin()",
            "halves = x * angles.cos() + partner * angles.sin()\n    return torch.cat([halves[..., 0::2], halves[..., 1::2]], dim=-1)",
        ),
        "the cosine's angles are in order, the sine's are not yet": (
            "partner * angles.sin()",
            "partner * torch.cat([angles[..., ::2]] * 2, dim=-1).sin()",
        ),
        "the second number of a pair is made from the first one as it is AFTER the turn; both are made from the old pair": (
            "return x * angles.cos() + partner * angles.sin()",
            "a = (x * angles.cos() + partner * angles.sin())[..., 0::2]\n    b = a * angles.sin()[..., 0::2] + x[..., 1::2] * angles.cos()[..., 0::2]\n    return torch.stack([a, b], dim=-1).flatten(-2)",
        ),
        "you start one position late: take the positions as they are given": (
            "positions[:, None]",
            "(positions[:, None] + 1)",
        ),
        "the positions count twice: t is position times frequency, once": (
            "positions[:, None]",
            "2 * positions[:, None]",
        ),
        "all tokens turn by the first position; each has its own": (
            "positions[:, None]",
            "positions[:1].expand(len(positions))[:, None]",
        ),
        "you put in frequencies of your own; take those that are given": (
            "* frequencies",
            "* 10000.0 ** (-torch.arange(len(frequencies)) / len(frequencies))",
        ),
    },
    hidden=_more_turned,
)


why = Open(
    name="why_no_order",
    title="Why does it not know order? In your own words",
    stars=2,
    minutes=6,
    why="it is the reason for this whole chapter: nothing in attention knows where a token stands",
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
            r"softmax (loses|destroys|forgets|removes|ignores|throws)|softmax .*\border .*\b(is|gets) lost"
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
    points=(
        "what do the softmax and the mean over keys care about the order of their terms?",
        "how is each query, key and value made: from what, and with which matrices?",
        "what must come in to change it?",
    ),
)


Angles = Callable[[Tensor, int], Tensor]


EXERCISES = (
    *order.ASKED,
    *rotation.ASKED,
    *beyond_training.ASKED,
    wave,
    table_of_waves,
    shift,
    nearness,
    shaw,
    relative,
    turn,
    why,
)
