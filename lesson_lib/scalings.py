"""Rotary positions for texts longer than those of training: other frequencies, for `rotary(x,
frequencies=...)`.

A model that never saw position 10,000 never saw most of its angles. Each rule slows the turns down, `factor`
times at most, so that the angles of a text `factor` times as long are those that it knows:

    linear     all turns alike
    ntk        by a larger base: the fastest turns keep their speed, the slowest is slowed by the factor
    yarn       turns that are many in the old context keep their speed, those that are few are slowed
    llama3     the same idea, with another ramp between the two

All take the width of a head and give its d/2 frequencies in radians per token, float64. yarn also makes
queries and keys longer, `yarn_stretch`. A factor of 1 changes nothing.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lesson_lib import require
from lesson_lib.positions import BASE, frequencies


def linear(d: int, factor: float | int, *, base: float | int = BASE) -> Float[Tensor, " half_d"]:
    """All frequencies divided by `factor`, as if every position were.

    Raises ValueError where the factor is less than 1, or d is odd.
    Source: Chen et al. 2023, arXiv:2306.15595.

    >>> linear(4, 2.0).tolist()
    [0.5, 0.005]
    """
    return frequencies(d, base=base) / _factor(factor)


def ntk(d: int, factor: float | int, *, base: float | int = BASE) -> Float[Tensor, " half_d"]:
    """The frequencies of a larger base, `base · factor^(d / (d - 2))`: the first stays 1, the last is divided
    by `factor`.

    Raises ValueError where the factor is less than 1, or d is odd or less than 4.
    Source: Peng et al. 2023, arXiv:2309.00071, who call it NTK-aware.
    """
    require.whole(at_least=4, d=d)
    return frequencies(d, base=base * _factor(factor) ** (d / (d - 2)))


def yarn(
    d: int,
    factor: float | int,
    context: int,
    *,
    base: float | int = BASE,
    fast: float | int = 32,
    slow: float | int = 1,
    whole: bool = True,
) -> Float[Tensor, " half_d"]:
    """Frequencies that turn at least `fast` times in the old `context` stay, those that turn at most `slow`
    times are divided by `factor`; between the two a straight line over the number of the frequency.

    `whole` rounds the ends of that line outwards to whole numbers, as the authors' code does. Raises
    ValueError where the factor is less than 1, the context is, or `fast` is not more than `slow`.
    Source: Peng et al. 2023, arXiv:2309.00071.
    """
    require.whole(context=context)
    _turns(fast, slow)
    plain = frequencies(d, base=base)
    low, high = (
        d * math.log(context / (2 * math.pi * turns)) / (2 * math.log(base)) for turns in (fast, slow)
    )
    if whole:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    number = torch.arange(d // 2, dtype=torch.float64)
    slowed = ((number - low) / max(high - low, 1e-3)).clamp(0, 1)
    return plain * (1 - slowed) + plain / _factor(factor) * slowed


def yarn_stretch(factor: float | int, weight: float | int = 1) -> float:
    """By how much yarn makes queries AND keys longer, so that the softmax stays as sharp over more tokens:
    `0.1 weight ln(factor) + 1`. The scores grow by its square.

    `weight` is 1 in the paper; some models have another, or the quotient of two stretches.
    Source: Peng et al. 2023, arXiv:2309.00071.

    >>> yarn_stretch(1)
    1.0
    """
    return 0.1 * weight * math.log(_factor(factor)) + 1


def llama3(
    d: int,
    factor: float | int,
    context: int,
    *,
    base: float | int = BASE,
    fast: float | int = 4,
    slow: float | int = 1,
) -> Float[Tensor, " half_d"]:
    """Frequencies that turn at least `fast` times in the old `context` stay, those that turn at most `slow`
    times are divided by `factor`; between the two a straight line over the number of turns.

    Raises ValueError as `yarn`.
    Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", arXiv:2407.21783 (Llama 3.1's released
    code has the rule).
    """
    require.whole(context=context)
    _turns(fast, slow)
    plain = frequencies(d, base=base)
    turns = context * plain / (2 * math.pi)
    kept = ((turns - slow) / (fast - slow)).clamp(0, 1)
    return plain * kept + plain / _factor(factor) * (1 - kept)


def _factor(factor: float | int) -> float:
    require.number(at_least=1, factor=factor)
    return float(factor)


def _turns(fast: float | int, slow: float | int) -> None:
    require.number(above=0, fast=fast, slow=slow)
    if not fast > slow:
        raise ValueError(f"fast must be more than slow, got fast={fast}, slow={slow}")
