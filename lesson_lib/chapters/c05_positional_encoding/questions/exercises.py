"""What of the chapter's exercises is code; their words are in exercises.md."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, primes, table
from lesson_lib.checks.questions import Code
from lesson_lib.positions import sinusoidal


def waves(positions: Float[Tensor, " n"], d: int) -> Float[Tensor, "n d"]:
    two_j = torch.arange(0, d, 2, dtype=positions.dtype, device=positions.device)
    frequencies = 10000.0 ** (-two_j / d)
    angles = positions[:, None] * frequencies  # (n, d/2), one column per frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _places(*positions: float | int) -> Tensor:
    return table([float(p) for p in positions])


def _more_waves(drawn: Draw) -> list[Case]:
    return [{"positions": (10 * drawn(1, 11)).round().abs(), "d": 10}]


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


def _counts_from_zero(query_positions: torch.Tensor, key_positions: torch.Tensor, radius: int) -> bool:
    return all(bool((p == torch.arange(len(p))).all()) for p in (query_positions, key_positions))


def _all_beyond(query_positions: torch.Tensor, key_positions: torch.Tensor, radius: int) -> bool:
    return radius == 0


def turned_2(
    x: Float[Tensor, "*b n d"],
    positions: Float[Tensor, " n"],
    frequencies: Float[Tensor, " half_d"],
) -> Float[Tensor, "*b n d"]:
    angles = positions[:, None] * frequencies  # (n, d/2)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def _tokens_2(x: Tensor, positions: list[float], frequencies: list[float]) -> Case:
    return {"x": x, "positions": table(positions), "frequencies": table(frequencies)}


def _counted(positions: Tensor, d: int) -> bool:
    return bool((positions == torch.arange(len(positions), device=positions.device)).all())


def _one_clock(delta: float, frequencies: Tensor) -> bool:
    return len(frequencies) == 1


def _no_step(delta: float, frequencies: Tensor) -> bool:
    return delta == 0


def _wavelength_numbers(draw: random.Random) -> dict[str, Any]:
    d = draw.choice([8, 16, 32, 64])
    j = draw.randrange(1, d // 2)
    column, power = 2 * j + draw.choice([0, 1]), f"10000**({2 * j}/{d})"
    return locals()


def _shaw_numbers(draw: random.Random) -> dict[str, Any]:
    radius, d_k, tokens = (
        draw.choice([2, 4, 16, 32]),
        draw.choice([8, 32, 64]),
        draw.choice([100, 300, 512]),
    )
    rows = 2 * radius + 1
    return locals()


CODE = {
    "wavelength_2": Code(
        draw=_wavelength_numbers,
    ),
    "waves": Code(
        solution=waves,
        cases=(
            lambda: [{"positions": _places(0), "d": 2}],
            lambda: [{"positions": _places(1, 3), "d": 2}],
            lambda: [{"positions": _places(1), "d": 4}],
            lambda: [
                {"positions": _places(5, 0, 11, 2.5), "d": 6},
                {"positions": _places(1000, 300), "d": 4},  # far enough to tell 10000 from 10001
            ],
        ),
        hidden=_more_waves,
    ),
    "waves_2": Code(
        wrong=(_counted,),
    ),
    "shift_matrix": Code(
        solution=shift_matrix,
        cases=(
            lambda: [{"delta": 0.0, "frequencies": _places(1)}],
            lambda: [{"delta": 1.0, "frequencies": _places(ANGLE)}],
            lambda: [
                {"delta": 3.0, "frequencies": _places(0.5, 0.1)},
                {"delta": -2.0, "frequencies": _places(0.3, 2)},
            ],
            lambda: [{"delta": 2.5, "frequencies": _places(1, 0.25, 0.0625)}],
        ),
        reference=_right_blocks,
        hidden=_more_shift_matrix,
    ),
    "shift_matrix_2": Code(
        wrong=(
            _one_clock,
            _no_step,
        ),
    ),
    "code_products": Code(
        picture=_nearness_picture,
    ),
    "shaw_numbers_2": Code(
        draw=_shaw_numbers,
    ),
    "offset_rows": Code(
        solution=offset_rows,
        cases=(
            lambda: [_pairs([5], [4, 5, 6], 1)],
            lambda: [_pairs([5], [0, 4, 5, 20], 2)],
            lambda: [_pairs([2, 11, 5], [3, 5, 7, 2, 13], 3)],
            lambda: [_pairs([6], [0, 1, 2, 3, 4, 5, 6], 3), _pairs([0, 1, 2], [0, 1, 2], 8)],
        ),
        hidden=_more_offset_rows,
    ),
    "offset_rows_2": Code(
        wrong=(
            _counts_from_zero,
            _all_beyond,
        ),
    ),
    "turned": Code(
        solution=turned,
        cases=(
            lambda: [
                _tokens(table([[2.0, 3.0]]), _places(0), _places(1)),
                _tokens(table([[2.0, 3.0]]), _places(1), _places(ANGLE)),
            ],
            lambda: [_tokens(primes(1, 4), _places(1), _places(ANGLE, 0))],
            lambda: [_tokens(drawn(1, 3, 6), _places(4, 0, 7), _places(1, 0.5, 0.1))],
            lambda: [_tokens(drawn(2, 2, 2, 5, 4), _places(3, 4, 5, 6, 7), _places(1, 0.01))],
        ),
        reference=_token_by_token,
        hidden=_more_turned,
    ),
    "turned_2": Code(
        solution=turned_2,
        cases=(
            lambda: [_tokens_2(table([[2.0, 3.0]]), [1.5707964], [1.0])],
            lambda: [_tokens_2(primes(1, 4), [1.0], [1.5707964, 0.0])],
            lambda: [_tokens_2(drawn(1, 3, 6), [4, 0, 7], [1, 0.5, 0.1])],
            lambda: [_tokens_2(drawn(2, 2, 2, 5, 4), [3, 4, 5, 6, 7], [1, 0.01])],
        ),
    ),
}
