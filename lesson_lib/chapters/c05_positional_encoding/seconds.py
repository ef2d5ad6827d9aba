"""Second problems of chapter 05: another base, the other pairing, and inputs that catch a mistake."""

import random
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.expose import Expose
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.short import Number, fresh


def _counts_from_zero(query_positions: torch.Tensor, key_positions: torch.Tensor, radius: int) -> bool:
    return all(bool((p == torch.arange(len(p))).all()) for p in (query_positions, key_positions))


def _all_beyond(query_positions: torch.Tensor, key_positions: torch.Tensor, radius: int) -> bool:
    return radius == 0


def offset_rows(first: Write, _n: int) -> Exercise:
    """Positions that do not begin at 0."""
    return Expose(
        name="offset_rows_2",
        title="Catch it",
        asked=(
            "somebody counts the places in the two lists and never looks at the positions in them; while"
            " whole texts are read, nobody notices. Write positions on which it fails, such as occur when a"
            " model writes word by word"
        ),
        of=first,
        slip="you count the places in the two lists; take the positions as they are given",
        solution=(
            "offset_rows_2 = {\n"
            '    "query_positions": torch.tensor([5]),  # the newest word alone\n'
            '    "key_positions": torch.tensor([3, 4, 5]),\n'
            '    "radius": 2,\n'
            "}"
        ),
        remember="with a cache the only query is the newest: its position is not 0, and code must be given"
        " it",
        hints=(
            "For which positions is the place in the list the position itself?",
            "When a model writes word by word, how many queries are there, and which position has it?",
            "Which rows are asked for, if the only query stands at 5 and the keys at 3, 4 and 5?",
        ),
        slips={
            "both lists count from 0, and so a place is a position: begin elsewhere": _counts_from_zero,
            "with radius 0 every offset has the same row": _all_beyond,
        },
    )


def turned_2(
    x: Float[Tensor, "*b n d"],
    positions: Float[Tensor, " n"],
    frequencies: Float[Tensor, " half_d"],
) -> Float[Tensor, "*b n d"]:
    angles = positions[:, None] * frequencies  # (n, d/2)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def _tokens(x: Tensor, positions: list[float], frequencies: list[float]) -> Case:
    return {"x": x, "positions": table(positions), "frequencies": table(frequencies)}


HALVES = Write(
    name="turned_2",
    title="The other pairing",
    asked=(
        "write the rotary turn as Llama's files want it: the partner of column j is column j + d/2 (halves,"
        " not neighbours); (a, b) in columns j and j + d/2 become (a cos t - b sin t, a sin t + b cos t), t"
        " = positions[i] * w_j"
    ),
    stages=(
        Stage(
            "one pair, a quarter of a turn",
            lambda: [_tokens(table([[2.0, 3.0]]), [1.5707964], [1.0])],
            "(2, 3) becomes (-3, 2).",
        ),
        Stage(
            "two pairs, one token",
            lambda: [_tokens(primes(1, 4), [1.0], [1.5707964, 0.0])],
            "Columns 0 and 2 are the first pair and turn; columns 1 and 3 are the second and stay.",
        ),
        Stage(
            "three tokens, three pairs",
            lambda: [_tokens(drawn(1, 3, 6), [4, 0, 7], [1, 0.5, 0.1])],
            "Token i turns by positions[i], and every pair by its own frequency.",
        ),
        Stage(
            "two sequences, two heads",
            lambda: [_tokens(drawn(2, 2, 2, 5, 4), [3, 4, 5, 6, 7], [1, 0.01])],
            "Positions belong to the axis of the tokens, -2, whatever stands before it.",
        ),
    ),
    hints=(
        "Write down for d = 4 which columns are partners. Where is the first half, where the second?",
        "`x.chunk(2, dim=-1)` gives both halves. Which of them is a, which is b?",
        "Which two columns of the result need the sum a sin t + b cos t, and in which half do they stand?",
    ),
    solution=turned_2,
    remember="halves or neighbours is a convention of the file: the same weights with the other one write"
    " nonsense",
    slips={
        "these are neighbours, columns 2j and 2j + 1; here the partner of column j is j + d/2": (
            "a, b = x.chunk(2, dim=-1)",
            "a, b = x[..., 0::2], x[..., 1::2]",
            "torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)",
            "torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)",
        ),
        "the pairs are halves, but you put the results back as neighbours": (
            "torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)",
            "torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)",
        ),
        "it turns the other way: a cos t - b sin t comes first": (
            "a * cos - b * sin, a * sin + b * cos",
            "a * cos + b * sin, b * cos - a * sin",
        ),
        "the two halves of the result are exchanged": (
            "[a * cos - b * sin, a * sin + b * cos]",
            "[a * sin + b * cos, a * cos - b * sin]",
        ),
    },
)


def turned(_n: int) -> Exercise:
    """The pairing of halves."""
    return HALVES


def _undoes_itself(outputs: Tensor, order: Tensor) -> bool:
    return bool((order[order] == torch.arange(len(order), device=order.device)).all())


def _all_rows_alike(outputs: Tensor, order: Tensor) -> bool:
    return bool((outputs == outputs[:1]).all())


def put_back(first: Write, _n: int) -> Exercise:
    """An order that is not its own undoing."""
    return Expose(
        name="put_back_2",
        title="Catch it",
        asked=(
            "somebody tests layers with `outputs[order]`, and his test has found no mistake in years: it"
            " swaps two tokens. Write outputs and an order on which his function fails"
        ),
        of=first,
        slip="you shuffle once more: outputs[order] undoes only orders that are their own undoing",
        solution=(
            "put_back_2 = {\n"
            '    "outputs": torch.tensor([[1.0], [2.0], [3.0]]),\n'
            '    "order": torch.tensor([1, 2, 0]),  # a ring\n'
            "}"
        ),
        remember="test with a ring of three or with random orders: a swap and a reversal undo themselves",
        hints=(
            "What does order[order] give for a swap?",
            "How many tokens need to change places, so that doing it twice is not doing nothing?",
            "Try the ring: token 1 first, then 2, then 0.",
        ),
        slips={
            "doing this order twice changes nothing: move three tokens in a ring": _undoes_itself,
            "all rows are alike, so no order can be seen": _all_rows_alike,
        },
    )


def code_row_2(position: float, d: int, base: float) -> Float[Tensor, " d"]:
    frequencies = base ** (-torch.arange(0, d, 2) / d)
    angles = position * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


CODE_WITH_BASE = Write(
    name="code_row_2",
    title="Another base",
    asked=(
        "the code of one place with any base: w_j = base ** (-2j / d). Models for long texts take 500,000 in"
        " place of 10,000"
    ),
    stages=(
        Stage(
            "base 100, width 4: the second frequency is 0.1",
            lambda: [{"position": 1.0, "d": 4, "base": 100.0}],
            "sin 1, cos 1, sin 0.1, cos 0.1.",
        ),
        Stage(
            "base 500,000, width 8, far away",
            lambda: [{"position": 1000.0, "d": 8, "base": 500_000.0}],
            "Only the base changes; the exponents stay.",
        ),
        Stage(
            "width 2: the base does not matter",
            lambda: [{"position": 3.0, "d": 2, "base": 7.0}],
            "base ** 0 is 1.",
        ),
    ),
    hints=(
        "Where does 10000 stand in your first function?",
        "What is the second frequency for d = 4 and base 100?",
        "Do all frequencies change with the base?",
    ),
    solution=code_row_2,
    remember="a larger base slows every clock but the first",
    slips={
        "you still take 10000": ("base **", "10000.0 **"),
        "your exponent is positive: the clocks get faster, and they must get slower": ("-torch", "torch"),
        "sine and cosine have changed places": (
            "angles.sin(), angles.cos()",
            "angles.cos(), angles.sin()",
        ),
    },
)


def one_clock_2(angle: Float[Tensor, ""]) -> Float[Tensor, "2 2"]:
    cos, sin = angle.cos(), angle.sin()
    return torch.tensor([[cos, -sin], [sin, cos]])


COSINE_FIRST = Write(
    name="one_clock_2",
    title="With the cosine first",
    asked=(
        "somebody's codes hold the cosine first: the matrix R with R (cos a, sin a) = (cos(a + angle),"
        " sin(a + angle)), for every a"
    ),
    stages=(
        Stage(
            "a quarter turn: (cos a, sin a) becomes (-sin a, cos a)",
            lambda: [{"angle": table(1.5707964)}],
            "The first new number is minus the old second one.",
        ),
        Stage(
            "an angle with cosine 0.6 and sine 0.8, both ways",
            lambda: [{"angle": table(0.9272952)}, {"angle": table(-0.9272952)}],
            "Row 0 gives cos(a + b) = cos a cos b - sin a sin b.",
        ),
    ),
    hints=(
        "Which of the two formulas is row 0 now?",
        "Where does its minus stand?",
        "Write it down for a quarter turn, and try it on (1, 0).",
    ),
    solution=one_clock_2,
    remember="the same turn; the minus changes its corner because the two axes have changed places",
    slips={
        "this is the matrix for codes with the sine first": (
            "[[cos, -sin], [sin, cos]]",
            "[[cos, sin], [-sin, cos]]",
        ),
        "a minus is missing": ("-sin", "sin"),
        "sine and cosine have changed places: for the angle 0 nothing may change": (
            "[[cos, -sin], [sin, cos]]",
            "[[sin, -cos], [cos, sin]]",
        ),
    },
)


def turn_rows_2(x: Float[Tensor, "n 2"], frequency: float, start: int) -> Float[Tensor, "n 2"]:
    angles = (start + torch.arange(len(x))) * frequency
    a, b = x[:, 0], x[:, 1]
    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.stack(turned, dim=-1)


WITH_START = Write(
    name="turn_rows_2",
    title="The words that come later",
    asked=(
        "a model that writes keeps the turned keys of earlier words; the rows of x come behind them, from"
        " place `start` on. Turn them"
    ),
    stages=(
        Stage(
            "one word at place 1, a quarter turn for each place",
            lambda: [{"x": table([[2.0, 3.0]]), "frequency": 1.5707964, "start": 1}],
            "(2, 3) becomes (-3, 2).",
        ),
        Stage(
            "three words from place 7 on",
            lambda: [{"x": drawn(1, 3, 2), "frequency": 0.3, "start": 7}],
            "Row i stands at place start + i.",
        ),
        Stage(
            "from place 0 on, as before",
            lambda: [{"x": drawn(2, 5, 2), "frequency": 0.1, "start": 0}],
            "With start = 0 it is your first function.",
        ),
    ),
    hints=(
        "At which place does row 0 stand?",
        "Which numbers do you add `start` to: the places, or the angles?",
        "By what is start multiplied, if the places are start, start + 1 ...?",
    ),
    solution=turn_rows_2,
    remember="turn by the place in the text, not by the row in the tensor: the commonest mistake with a"
    " cache",
    slips={
        "you begin at place 0 again: the new words would stand on the old ones": (
            "(start + torch.arange(len(x)))",
            "torch.arange(len(x))",
        ),
        "you add start to the angle; it is a place, and is multiplied by the frequency": (
            "(start + torch.arange(len(x))) * frequency",
            "start + torch.arange(len(x)) * frequency",
        ),
        "all rows get the place `start`; row i stands at start + i": (
            "(start + torch.arange(len(x)))",
            "(start + 0 * torch.arange(len(x)))",
        ),
        "you turn the other way round": (
            "a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()",
            "a * angles.cos() + b * angles.sin(), b * angles.cos() - a * angles.sin()",
        ),
    },
)


def _one_token(n: int, slope: float) -> bool:
    return n < 2


def _no_slope(n: int, slope: float) -> bool:
    return slope == 0


def alibi_bias(first: Write, _n: int) -> Exercise:
    """A table on which the missing sign of a distance shows."""
    return Expose(
        name="alibi_bias_2",
        title="Catch it",
        asked=(
            "somebody leaves `.abs()` out. Under a causal mask, which hides the upper triangle, his model"
            " runs well, for the keys before a query have the right sign. Write a table on which it is seen"
        ),
        of=first,
        slip="distances have no sign: one side of your table is positive",
        solution='alibi_bias_2 = {"n": 2, "slope": 0.5}  # entry (0, 1) is the one that differs',
        remember="a mistake behind a mask is harmless until the function serves a model without that mask",
        hints=(
            "Which pairs of places are there with one token?",
            "What is i - j above the diagonal?",
            "What is the slope times that, and how large must the slope be to see it?",
        ),
        slips={
            "one token has one distance, 0": _one_token,
            "with the slope 0 every table is 0": _no_slope,
        },
    )


def _fits(n: int, trained: int) -> bool:
    return n <= trained


def squeezed(first: Write, _n: int) -> Exercise:
    """A text that is too long for a clamp."""
    return Expose(
        name="squeezed_2",
        title="Catch it",
        asked=(
            "somebody gives all late tokens the last trained place. Every test he has runs on short texts."
            " Write a text on which his function and yours differ"
        ),
        of=first,
        slip="all late tokens share the last place; they must all be squeezed",
        solution='squeezed_2 = {"n": 6, "trained": 3}  # 0, 1, 2, 2, 2, 2 in place of 0, 0.5, 1, 1.5 ...',
        remember="a clamp changes nothing for texts that fit: a test must be longer than the training was",
        hints=(
            "What does a clamp do to places below `trained`?",
            "How long must a text be, so that a place reaches the last trained one?",
            "Try n twice as large as `trained`.",
        ),
        slips={"a text that fits is changed by neither function: make it longer": _fits},
    )


def wavelength(first: Number, n: int) -> Number:
    """How long a wave is, in another column of another table."""

    def make(draw: random.Random) -> Number:
        d = draw.choice([8, 16, 32, 64])
        j = draw.randrange(1, d // 2)
        column, power = 2 * j + draw.choice([0, 1]), f"10000**({2 * j}/{d})"
        return replace(
            first,
            asked=(
                f"sinusoids of width d = {d}, base 10000, columns counted from 0: after how many tokens"
                f" does column"
                f" {column} repeat?"
            ),
            answer=f"2 * pi * {power}",
            value=2 * torch.pi * 10000 ** (2 * j / d),
            solution=f"column {column} belongs to j = {j}; w_{j} = 1 / {power}; one turn is 2 pi: 2 pi *"
            f" {power}",
            slips={
                "your exponent is -j/d; it is -2j/d": f"2 * pi * 10000**({j}/{d})",
                f"columns come in pairs: column {column} belongs to j = {j}": f"2 * pi * 10000**({2 * column}/{d})",
                "that is 1 / w; once round is 2 pi, not 1": power,
                "that is the frequency w; asked is the wavelength, 2 pi / w": f"1 / {power}",
                "after pi the sine is 0 again, but it goes the other way; once round is 2 pi": f"pi *"
                f" {power}",
                "you multiply 2 pi by the frequency; divide by it": f"2 * pi / {power}",
            },
        )

    return fresh(n, make)


def shaw_numbers(first: Number, n: int) -> Number:
    """What distances cost, for other widths and radii."""

    def make(draw: random.Random) -> Number:
        radius, d_k, tokens = (
            draw.choice([2, 4, 16, 32]),
            draw.choice([8, 32, 64]),
            draw.choice([100, 300, 512]),
        )
        rows = 2 * radius + 1
        return replace(
            first,
            asked=(
                f"Shaw's tables for keys and for values, d_k = d_v = {d_k}, radius {radius}, texts of"
                f" {tokens}"
                " tokens: how many learned numbers?"
            ),
            answer=f"2 * (2 * {radius} + 1) * {d_k}",
            value=2 * rows * d_k,
            solution=f"offsets -{radius} ... {radius} are {rows} rows of {d_k}, for keys and for values",
            slips={
                "0 is an offset, too": 2 * 2 * radius * d_k,
                "you counted one direction only; before and after have rows of their own": 2
                * (radius + 1)
                * d_k,
                "one table for the keys, one for the values": rows * d_k,
                "that is the number of rows of one table; each has d_k numbers": rows,
                "that is a table of positions; Shaw's has a row per offset": 2 * tokens * d_k,
                "a row has d_k numbers, for a key or for a value; you multiplied the two widths": rows
                * d_k**2,
            },
        )

    return fresh(n, make)


def _counted(positions: Tensor, d: int) -> bool:
    return bool((positions == torch.arange(len(positions), device=positions.device)).all())


def waves(first: Write, _n: int) -> Exercise:
    """Positions that are not 0, 1, 2."""
    return Expose(
        name="waves_2",
        title="Catch it",
        asked=(
            "somebody's table numbers its rows 0, 1, 2 itself; whole texts are coded well. Write positions"
            " on which it fails, such as a text has whose first words were cut off"
        ),
        of=first,
        slip="you number the rows 0, 1, 2 yourself; take the positions as they are given",
        solution='waves_2 = {"positions": torch.tensor([5.0, 6.0]), "d": 2}  # the text begins at place 5',
        remember="rows are not places: padding, caches and pieces of a text all begin elsewhere",
        hints=(
            "For which positions is the row's number the position?",
            "At which place does the seventh word stand, if the first five were cut off?",
            "Does the width matter?",
        ),
        slips={"these positions are the rows' numbers: begin elsewhere": _counted},
    )


def _one_clock(delta: float, frequencies: Tensor) -> bool:
    return len(frequencies) == 1


def _no_step(delta: float, frequencies: Tensor) -> bool:
    return delta == 0


def shift_matrix(first: Write, _n: int) -> Exercise:
    """More than one clock."""
    return Expose(
        name="shift_matrix_2",
        title="Catch it",
        asked=(
            "somebody pairs column j with column j + d/2, as many model files do. His tests have one clock."
            " Write a shift and frequencies on which his matrix fails here"
        ),
        of=first,
        slip="you pair column j with column j + d/2; here the two columns of a frequency are neighbours",
        solution='shift_matrix_2 = {"delta": 1.0, "frequencies": torch.tensor([1.0, 0.1])}',
        remember="with one pair both conventions are the same: test with two",
        hints=(
            "Which two columns are partners for d = 2, in either convention?",
            "And for d = 4?",
            "Which shift moves nothing, in either convention?",
        ),
        slips={
            "with one frequency neighbours and halves are the same columns": _one_clock,
            "a shift by 0 is the identity in both conventions": _no_step,
        },
    )
