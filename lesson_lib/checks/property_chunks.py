"""In chunks = all at once: a causal attention must give each token the same output, however the text is cut.

What disturbs an input shows who looks at whom, so a fault is named by what was seen: which tokens reach which
outputs, at which token chunks and whole part, and how large a table one new token needs.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lesson_lib.checks import runner, values
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.property_probes import NEAR, Stop

BATCH, SHORTEST, LONG = 2, 23, 384  # tokens: at least, and behind the one that is weighed
CUTS = ([1], [4, 1, 2, 6], [9, 3])  # repeated until the text is at its end
NAMES = (
    "runs",
    "sequences stay apart",
    "causality",
    "window",
    "one by one = all at once",
    "in chunks = all at once",
    "no table of all pairs for one token",
)


@dataclass
class Steps:
    """Calls `step(tokens, cache)` for a text that is cut in pieces."""

    step: Callable[[Tensor, Any], Any]
    new_cache: Callable[[], Any]
    width: int
    window: int | None
    findings: dict[str, str] = field(default_factory=dict)

    def one(self, x: Tensor, cache: Any) -> Tensor:
        """The outputs of the new tokens x (b, n, width)."""
        try:
            output = self.step(x.clone(), cache)
        except (runner.Deadline, runner.Verdict):
            raise
        except BaseException as error:
            raise Stop(runner.sentence(error)) from None
        output = output[0] if isinstance(output, tuple) and output else output
        if (
            not isinstance(output, Tensor)
            or output.ndim != 3
            or tuple(output.shape[:2]) != tuple(x.shape[:2])
        ):
            raise Stop(
                f"outputs must have shape ({BATCH}, {x.shape[1]}, width), one row for each new token; got"
                f" {values.described(output)}"
            )
        return output.detach()

    def text(self, x: Tensor, pieces: Iterable[int] | None = None) -> Tensor:
        """The outputs of a text, all at once or in pieces."""
        cache = self.new_cache()
        return torch.cat([self.one(part, cache) for part in _cut(x, pieces)], 1)

    def reached(self, x: Tensor, token: int, pieces: Iterable[int] | None = None) -> list[int]:
        """The tokens whose outputs change when that one does."""
        other = x.clone()
        other[:, token] = -other[:, token] + 1.0
        change = (self.text(other, pieces) - self.text(x, pieces)).abs().amax((0, 2))
        return (~(change < NEAR)).nonzero().flatten().tolist()


def examine(steps: Steps) -> None:
    """Fill `findings`: the first fault that explains the others, and what holds."""
    findings = steps.findings
    n = max(SHORTEST, 2 * (steps.window or 0) + 5)
    x = drawn(31, BATCH, n, steps.width)
    whole = steps.text(x)
    findings["runs"] = ""
    if not values.close(steps.text(x), whole, 1e-5):
        findings["runs"] = "two calls with the same inputs differ: dropout left on, or something random"
        return
    findings["sequences stay apart"] = _mixed(steps, x, whole)
    if any(findings.values()):
        return
    early = [i for i in steps.reached(x, n // 2) if i < n // 2]
    findings["causality"] = ""
    if early:
        findings["causality"] = (
            f"token {n // 2} changes the output of token {early[-1]}, which comes before it: the future leaks"
        )
    findings["window"] = _reach(steps, x, None)
    if any(findings.values()):
        return
    for name, cuts in zip(NAMES[4:6], (CUTS[:1], CUTS[1:]), strict=True):
        findings[name] = ""
        for pieces in cuts:
            if not findings[name]:
                findings[name] = _differs(steps, x, whole, pieces)
    findings[NAMES[6]] = _weighed(steps)


def _mixed(steps: Steps, x: Tensor, whole: Tensor) -> str:
    """A sentence where one sequence of the batch changes the outputs of another, else ''."""
    others, firsts = torch.cat([x[:1], 1 - x[1:]]), torch.cat([1 - x[:1], x[1:]])
    pairs = (steps.text(others)[0], whole[0]), (steps.text(firsts)[1], whole[1])
    if all(values.close(a, b, NEAR) for a, b in pairs):
        return ""
    return (
        "sequences of a batch are mixed: another sequence changes this one's outputs, as where the axis of"
        " the batch is taken for that of the tokens; (b, n, d) has its tokens in axis -2"
    )


def _reach(steps: Steps, x: Tensor, pieces: Iterable[int] | None) -> str:
    """A sentence where a token is not seen by exactly the `window` tokens that it and the next ones are; else
    ''."""
    if steps.window is None:
        return ""
    token = 2
    reached = steps.reached(x, token, pieces)
    reach, meant = (reached[-1] if reached else token - 1) - token + 1, steps.window
    if reach == meant:
        return ""
    sentence = f"a token sees {reach} keys, its own among them, where the window is {meant}"
    return sentence + {
        meant + 1: ": it counts the tokens before it, and its own on top; key > own - window",
        meant - 1: ": its own is counted twice; key > own - window",
    }.get(reach, "")


def _differs(steps: Steps, x: Tensor, whole: Tensor, pieces: list[int]) -> str:
    """A sentence on where the outputs of a text in pieces differ from those of the whole text, and why; else
    ''."""
    got = steps.text(x, pieces)
    apart = (got - whole).abs().amax((0, 2))
    wrong = (~(apart < NEAR * max(1.0, float(whole.abs().max())))).nonzero().flatten().tolist()
    if not wrong:
        return ""
    first = wrong[0]
    where = (
        f"in pieces of {', '.join(map(str, pieces))} tokens, token {first} comes out otherwise than at once"
    )
    if own := _blind_to_itself(steps, x, first, pieces):
        return f"{where}: {own}"
    if reason := _ahead(steps, x, first, pieces):
        return f"{where}: {reason}"
    if reason := _reach(steps, x, pieces):
        return f"{where}: with a cache, {reason}"
    if steps.window is not None and first >= steps.window:
        return (
            f"{where}, as soon as the cache has let a token go: its position is counted by what the cache"
            " holds; count what it has seen (cache.seen, not len(cache))"
        )
    if _by_length(steps, x, whole):
        return (
            f"{where}, but pieces of unequal lengths are right: something, such as the table of angles, is"
            " kept by a piece's length; keep it by the place where the piece begins"
        )
    if first in _starts(x.shape[1], pieces):
        return (
            f"{where}: the first of a piece, whose position or mask does not count the tokens before it, or"
            " not once, for query and key alike"
        )
    return where


def _by_length(steps: Steps, x: Tensor, whole: Tensor) -> bool:
    """True where the text is right in pieces no two of which are equally long."""
    n = x.shape[1]
    sizes = list(range(2, math.isqrt(n) + 1))
    return values.close(steps.text(x, [*sizes, n - sum(sizes)]), whole, NEAR)


def _blind_to_itself(steps: Steps, x: Tensor, first: int, pieces: list[int]) -> str:
    """A mask that is aligned with the first key lets a new token see the first keys, and not its own."""
    start = max(i for i in _starts(x.shape[1], pieces) if i <= first)
    if start and first not in steps.reached(x, first, pieces):
        return (
            "it does not see itself; the mask is aligned with the first key (top-left, as is_causal=True is),"
            " and must end at the last: causal(m, queries=n)"
        )
    return ""


def _ahead(steps: Steps, x: Tensor, first: int, pieces: list[int]) -> str:
    """A mask that is left out, or open, in later pieces lets a token see those behind it in its piece."""
    starts = [*_starts(x.shape[1], pieces), x.shape[1]]
    last = min(i for i in starts if i > first) - 1
    early = [i for i in steps.reached(x, last, pieces) if i < last]
    if not early:
        return ""
    return (
        f"it sees token {last}, which comes after it in its piece: the future leaks, since later pieces have"
        " no triangle of their own; causal(m, queries=n)"
    )


def _weighed(steps: Steps) -> str:
    """One new token after many: no table of all pairs."""
    x = drawn(32, 1, LONG + 1, steps.width)
    cache = steps.new_cache()
    for part in x[:, :LONG].split(LONG // 4, 1):  # a window's cache takes what it needs
        steps.one(part, cache)
    with _Largest() as largest:
        steps.one(x[:, LONG:], cache)
    if largest.numbers < LONG * LONG:
        return ""
    side = math.isqrt(largest.numbers)
    return (
        f"one new token after {LONG} makes a table of {largest.numbers:,} numbers ({side} x {side}): a full"
        " mask, of which one row is used, saves nothing; make the rows of the new tokens only"
    )


class _Largest(TorchDispatchMode):
    """The size of the largest tensor that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else (result,):
            if isinstance(one, Tensor):
                self.numbers = max(self.numbers, one.numel())
        return result


def _cut(x: Tensor, pieces: Iterable[int] | None) -> list[Tensor]:
    if pieces is None:
        return [x]
    starts = [*_starts(x.shape[1], pieces), x.shape[1]]
    return [x[:, a:b] for a, b in pairwise(starts)]


def _starts(n: int, pieces: Iterable[int]) -> list[int]:
    """Where the pieces begin.

    >>> _starts(9, [4, 1])
    [0, 4, 5]
    """
    starts, sizes = [0], list(pieces)
    while (after := starts[-1] + sizes[(len(starts) - 1) % len(sizes)]) < n:
        starts.append(after)
    return starts


class Growing:
    """The queries, keys and values of a function that keeps nothing itself: `fn(query, key, value)` with the
    new queries and all keys so far."""

    def __init__(self, function: Callable) -> None:
        self.function = function

    def __call__(self, x: Tensor, cache: list[Tensor]) -> Any:
        cache.append(x)
        known, d = torch.cat(cache, 1), x.shape[-1] // 3
        query, _, _ = x.split(d, -1)
        _, key, value = known.split(d, -1)
        return self.function(query, key, value)
