"""What of the questions in 05c_beyond_training.md is code."""

import torch

from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.questions import Code


def alibi_bias(n, slope):
    position = torch.arange(n)
    return -slope * (position[:, None] - position).abs()


def _more_alibi_bias(drawn: Draw) -> list[Case]:
    return [{"n": 7, "slope": drawn(1, 1).abs().item() + 0.1}, {"n": 2, "slope": 2.0}]


def squeezed(n, trained):
    return torch.arange(n) * min(1.0, trained / n)


def _more_squeezed(drawn: Draw) -> list[Case]:
    return [{"n": 13, "trained": 5}, {"n": 3, "trained": 7}]


def by_parts(turns, trained, times):
    went_round = turns * trained >= 2 * torch.pi
    return torch.where(went_round, turns, turns / times)


def by_parts_2(turns, trained, times, fast, slow):
    rounds = turns * trained / (2 * torch.pi)
    kept = ((rounds - slow) / (fast - slow)).clamp(0, 1)
    return turns * kept + turns / times * (1 - kept)


def _clocks(turns: list[float], trained: int, times: float) -> Case:
    return {"turns": torch.tensor(turns), "trained": trained, "times": times}


def _softly(turns: list[float], trained: int) -> Case:
    return _clocks(turns, trained, 8.0) | {"fast": 4.0, "slow": 1.0}


def _one_token(n: int, slope: float) -> bool:
    return n < 2


def _no_slope(n: int, slope: float) -> bool:
    return slope == 0


def _fits(n: int, trained: int) -> bool:
    return n <= trained


CODE = {
    "alibi_bias": Code(
        solution=alibi_bias,
        cases=(
            lambda: [{"n": 2, "slope": 0.5}],
            lambda: [{"n": 3, "slope": 0.5}],
            lambda: [{"n": 5, "slope": 0.125}],
        ),
        hidden=_more_alibi_bias,
    ),
    "alibi_bias_2": Code(
        wrong=(
            _one_token,
            _no_slope,
        ),
    ),
    "squeezed": Code(
        solution=squeezed,
        cases=(
            lambda: [{"n": 4, "trained": 4}],
            lambda: [{"n": 8, "trained": 4}, {"n": 6, "trained": 4}],
            lambda: [{"n": 3, "trained": 8}],
        ),
        hidden=_more_squeezed,
    ),
    "squeezed_2": Code(
        wrong=(_fits,),
    ),
    "by_parts": Code(
        solution=by_parts,
        cases=(
            lambda: [_clocks([1.0, 0.01], 32, 4.0)],
            lambda: [_clocks([0.1, 0.05, 0.01], 32, 4.0)],
            lambda: [_clocks([1.0, 0.25, 0.15, 0.01], 32, 2.0), _clocks([1.0, 0.1, 0.04], 100, 8.0)],
        ),
        hidden=lambda drawn: [_clocks([0.9, 0.5, 0.19, 0.03], 32, 3.0), _clocks([0.2], 64, 5.0)],
    ),
    "by_parts_2": Code(
        solution=by_parts_2,
        cases=(
            lambda: [_softly([1.0, 0.01], 64)],
            lambda: [_softly([0.2454369], 64)],
            lambda: [_softly([1.0, 0.35, 0.2, 0.12, 0.01], 64)],
        ),
    ),
}
