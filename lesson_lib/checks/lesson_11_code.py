"""Exercises of lesson 11 in which a function is written or repaired; lesson_11.py puts them in order."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, source_of, table
from lesson_lib.checks.lesson_10_code import Alike
from lesson_lib.checks.runner import Call, call
from lesson_lib.checks.values import close, copies, described, is_numpy
from lesson_lib.efficient import Partial, merge

INF = torch.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class Two(Alike):
    """A function that gives back two tensors, (n, d) and (n,); they are judged side by side, the second as
    the last column."""

    def _trouble(self, outcome: Call, expected: Tensor, stage: Stage) -> str | None:
        value = outcome.value
        odd = outcome.trouble or outcome.changed or value is None or value is ... or is_numpy(value)
        if not odd and not isinstance(value, Tensor):
            inside = ""
            if isinstance(value, (tuple, list)):
                inside = f" ({', '.join(described(part) for part in value[:3])})"
            return f"your function gives back {described(value)}{inside}; {self._two(expected)}"
        if isinstance(value, Tensor) and value.layout == torch.strided and value.device == expected.device:
            if value.shape != expected.shape:
                return (
                    f"your function gives back one tensor, which has shape {tuple(value.shape)};"
                    f" {self._two(expected)}"
                )
            if not value.is_complex():  # -inf is right where no key was seen
                empty = (value == -INF) & (expected == -INF)
                outcome = changed(outcome, value=value.masked_fill(empty, 0))
                expected = expected.masked_fill(empty, 0)
        return super()._trouble(outcome, expected, stage)

    def _recognised(self, answer: Callable, failing: Case, cases: list[Case]) -> str | None:
        """The slip; where none is the same in both results, one that has the same wrong outputs."""
        if slip := super()._recognised(answer, failing, cases):
            return slip
        right, given = self.reference(**copies(failing)), call(answer, failing).value
        if not isinstance(given, Tensor) or given.shape != right.shape or given.dtype != right.dtype:
            return None
        if given.layout != torch.strided or given.device != right.device:
            return None
        if close(given[:, :-1], right[:, :-1], self.tolerance):
            return None
        for slip, wrong in self.slips.items():
            made = call(wrong, failing).value
            if isinstance(made, Tensor) and close(made[:, :-1], given[:, :-1], self.tolerance):
                return slip
        return None

    @staticmethod
    def _two(expected: Tensor) -> str:
        n, width = expected.shape
        return (
            f"asked for are two tensors, ({n}, {width - 1}) and ({n},), in this order: return output, log_sum"
        )


def _side_by_side(two: Any, *inputs: Any) -> Any:
    """Outputs and log sums as one tensor, the log sums last; anything else as it is."""
    if not isinstance(two, (tuple, list)) or len(two) != 2:
        return two
    for x in two:
        if not isinstance(x, Tensor) or x.layout != torch.strided or x.device.type == "meta":
            return two
    output, log_sum = two
    if output.ndim != 2 or log_sum.shape != output.shape[:1] or output.device != log_sum.device:
        return two
    return torch.cat([output, log_sum[:, None]], 1)


def merge_two(
    output_a: Float[Tensor, "n d_v"],
    log_sum_a: Float[Tensor, " n"],
    output_b: Float[Tensor, "n d_v"],
    log_sum_b: Float[Tensor, " n"],
) -> tuple[Float[Tensor, "n d_v"], Float[Tensor, " n"]]:
    log_sum = torch.logaddexp(log_sum_a, log_sum_b)
    lowest = torch.finfo(log_sum.dtype).min  # in place of -inf: -inf - -inf is nan
    a = (log_sum_a - log_sum.clamp(min=lowest)).exp()
    b = (log_sum_b - log_sum.clamp(min=lowest)).exp()
    return a[:, None] * output_a + b[:, None] * output_b, log_sum


Shares = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def _shares(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """How much each part counts; both 0 where neither saw a key."""
    share = (a - b).sigmoid().nan_to_num(0.0)
    return share, (b - a).sigmoid().nan_to_num(0.0)


def _by_softmax(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    one, other = torch.stack([a, b]).softmax(0)
    return one, other


def _by_exp(lower: Callable[[Tensor, Tensor], Any], divided: bool = True) -> Shares:
    """Shares by exp, of log sums from which `lower` is subtracted."""

    def shares(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        one, other = (a - lower(a, b)).exp(), (b - lower(a, b)).exp()
        total = one + other if divided else 1.0
        return one / total, other / total

    return shares


def _log_by_exp(lower: Callable[[Tensor, Tensor], Any], back: bool = True) -> Callable[..., Tensor]:
    def log_sum(a: Tensor, b: Tensor) -> Tensor:
        lowered = ((a - lower(a, b)).exp() + (b - lower(a, b)).exp()).log()
        return lowered + lower(a, b) if back else lowered

    return log_sum


def _higher(a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(a, b)


def _highest(a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(a, b).max()


def _finite(a: Tensor, b: Tensor) -> Tensor:
    return _higher(a, b).clamp(min=-1e30)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    return torch.logaddexp(a, b).clamp(min=-1e30)


def _none(a: Tensor, b: Tensor) -> float:
    return 0.0


def _merged(shares: Shares = _shares, log_sum: Callable[..., Tensor] = torch.logaddexp) -> Callable[..., Any]:
    """The merge, with its shares or its log sum replaced."""

    def two(
        output_a: Tensor, log_sum_a: Tensor, output_b: Tensor, log_sum_b: Tensor
    ) -> tuple[Tensor, Tensor]:
        a, b = shares(log_sum_a, log_sum_b)
        return a[:, None] * output_a + b[:, None] * output_b, log_sum(log_sum_a, log_sum_b)

    return two


def _by_library(output_a: Tensor, log_sum_a: Tensor, output_b: Tensor, log_sum_b: Tensor) -> Partial:
    return merge(Partial(output_a, log_sum_a), Partial(output_b, log_sum_b))


def _in_one_tensor(output_a: Tensor, log_sum_a: Tensor, output_b: Tensor, log_sum_b: Tensor) -> Tensor:
    """The same, side by side: as it is judged."""
    return _side_by_side(_by_library(output_a, log_sum_a, output_b, log_sum_b))


def _parts(*four: Any) -> Case:
    names = ("output_a", "log_sum_a", "output_b", "log_sum_b")
    return {name: x if isinstance(x, Tensor) else table(x) for name, x in zip(names, four, strict=True)}


LN_2, LN_3, LN_4, LN_6 = 0.6931472, 1.0986123, 1.3862944, 1.7917595

two = Two(
    name="merge_two",
    title="Two halves of the keys",
    stars=2,
    minutes=8,
    why=(
        "tiles, rings of machines and split caches all rest on these five lines: attention to some keys and"
        " attention to the others, put together"
    ),
    asked=(
        "write: (output, log_sum) of the attention to the keys of both parts; log_sum is ln of a query's sum"
        " of exp(score), -inf where it saw no key: then its output is 0. Finite for log sums of 200, too."
        " (Shown side by side: log_sum is the last column)"
    ),
    stages=(
        Stage(
            "one query; its sums of exp are 2 and 6",
            lambda: [_parts([[4.0]], [LN_2], [[8.0]], [LN_6])],
            "b's keys weigh 6 of 8, so the output is (2*4 + 6*8) / 8 = 7, and the sum of both is 8: log_sum ="
            " ln 8 = 2.0794.",
        ),
        Stage(
            "three queries with two numbers each",
            lambda: [
                _parts(drawn(1, 3, 2), drawn(2, 3), drawn(3, 3, 2), drawn(4, 3)),
                _parts(drawn(5, 3, 2), drawn(6, 3) - 2, drawn(7, 3, 2), drawn(8, 3) + 1),
            ],
            "Each query has its own two sums: output = (S_a output_a + S_b output_b) / (S_a + S_b), with S ="
            " exp(log_sum).",
        ),
        Stage(
            "log sums of 200",
            lambda: [_parts([[4.0], [1.0]], [200.0, 201.0], [[8.0], [3.0]], [200.0, 199.0])],
            "exp(200) is more than float32 holds. Only the difference of the two counts: the first output is"
            " 6, its log_sum 200 + ln 2.",
        ),
        Stage(
            "one part far above the other",
            lambda: [_parts([[4.0], [1.0]], [-200.0, 150.0], [[8.0], [3.0]], [200.0, -150.0])],
            "The higher one takes all: outputs 8 and 1, log sums 200 and 150.",
        ),
        Stage(
            "one query at 200, one at -200",
            lambda: [_parts([[4.0], [4.0]], [200.0, -200.0], [[8.0], [8.0]], [200.0, -200.0])],
            "The maximum is each query's own: both outputs are 6.",
        ),
        Stage(
            "a query that saw no key in b, and one that saw none at all",
            lambda: [_parts([[4.0], [0.0]], [LN_2, -INF], [[0.0], [0.0]], [-INF, -INF])],
            "Nothing in b: the result is a's. Nothing in either: output 0 and log_sum -inf, no nan.",
        ),
    ),
    reference=_in_one_tensor,
    seen=_side_by_side,
    hints=(
        (
            "A part's output is its weighted sum divided by S, its sum of exp(score). How do you get the"
            " undivided sum back, and by what must both together be divided?"
        ),
        (
            "exp(200) overflows. By which number may S_a and S_b both be divided without changing the mix?"
            " What is that for log_sum_a and log_sum_b?"
        ),
        (
            "torch.logaddexp(a, b) is ln(exp a + exp b), safely. What is exp(log_sum_a - log_sum)? And how do"
            " you keep -inf - -inf from becoming nan?"
        ),
    ),
    solution=source_of(merge_two),
    remember=(
        "an output and its log sum are all that must be kept of keys that are gone: weigh each part by"
        " exp(log_sum_part - log_sum); exact, in any order"
    ),
    slips={
        "that is the plain mean of both outputs; the part whose keys have the larger sum of exp counts more": _merged(
            lambda a, b: (0.5 + 0 * a, 0.5 + 0 * b)
        ),
        "the log sums themselves are no weights: take exp of them, they are logarithms": _merged(
            lambda a, b: (a / (a + b), b / (a + b))
        ),
        "the shares are swapped: each output counts as much as its OWN keys' sum": _merged(
            lambda a, b: _shares(b, a)
        ),
        "the outputs are only added up; each counts by its share, and the shares sum to 1": _merged(
            lambda a, b: (1 + 0 * a, 1 + 0 * b)
        ),
        "the division is missing: divide by the sum of both, so that the shares sum to 1": _merged(
            lambda a, b: (a.exp(), b.exp()), _log_by_exp(_higher)
        ),
        "you subtract the maximum but do not divide: the shares must sum to 1": _merged(
            _by_exp(_higher, divided=False)
        ),
        "the output is right, but log_sum is still a's: the next merge would weigh this one too little": (
            _merged(log_sum=lambda a, b: a + 0)
        ),
        "the output is right, but log_sum is still b's: the next merge would weigh this one too little": (
            _merged(log_sum=lambda a, b: b + 0)
        ),
        "logarithms that are added multiply their sums: log_sum is ln(exp a + exp b)": _merged(
            log_sum=lambda a, b: a + b
        ),
        "log_sum is the larger one of both; but both sums are added: ln(exp a + exp b) is more": _merged(
            log_sum=_higher
        ),
        "log_sum is the mean of both; but the sums are added: ln(exp a + exp b)": _merged(
            log_sum=lambda a, b: (a + b) / 2
        ),
        "log_sum must be the logarithm of the sum, you give the sum itself": _merged(
            log_sum=lambda a, b: a.exp() + b.exp()
        ),
        "you subtracted the maximum, and must add it again to log_sum": _merged(
            _by_exp(_higher), _log_by_exp(_higher, back=False)
        ),
        "exp(200) is inf, and inf/inf is nan: subtract the larger log sum of the two before exp": _merged(
            _by_exp(_none), _log_by_exp(_none)
        ),
        "the output takes exp of 200, which is inf: subtract the larger log sum of the two before exp": (
            _merged(_by_exp(_none))
        ),
        "you subtract a's log sum from both; where b's is larger by hundreds, exp overflows: subtract the larger one": _merged(
            _by_exp(lambda a, b: a), _log_by_exp(lambda a, b: a)
        ),
        "one maximum for all queries does not do: a query far below it gets exp = 0 twice, and 0/0 is nan": (
            _merged(_by_exp(_highest), _log_by_exp(_highest))
        ),
        "a query that saw no key at all: -inf - -inf is nan, in both results; bound the maximum from below, and give 0 and -inf": _merged(
            _by_exp(_higher), _log_by_exp(_higher)
        ),
        "a query that saw no key at all: its log_sum is right, its output nan; -inf - -inf is nan, and 0 is right": _merged(
            _by_softmax
        ),
    },
    right=(
        _in_one_tensor,
        _merged(),
        _merged(_by_exp(_log_add, divided=False), _log_by_exp(_finite)),
        lambda *given: list(_by_library(*given)),
    ),
)


def one_pass(
    scores: Float[Tensor, "n m"], value: Float[Tensor, "m d_v"], tile: int
) -> Float[Tensor, "n d_v"]:
    top = scores.new_full((len(scores), 1), -torch.inf)  # the largest score so far
    total, mixed = 0.0, 0.0  # two sums, relative to it
    for start in range(0, len(value), tile):
        part = scores[:, start : start + tile]
        new = torch.maximum(top, part.amax(1, keepdim=True))
        shrink, weights = (top - new).exp(), (part - new).exp()
        total = total * shrink + weights.sum(1, keepdim=True)
        mixed = mixed * shrink + weights @ value[start : start + tile]
        top = new
    return mixed / total


ALL_AT_ONCE = (
    "the numbers are right, but an operation reads or makes the numbers of ALL keys at once; take `tile` keys"
    " at a time, and keep only what the next tile needs"
)


class _Wide(TorchFunctionMode):
    """Notes whether anything is made that has an axis of `m`, or something reads a tensor with such an axis
    to reduce or multiply it."""

    def __init__(self, m: int) -> None:
        super().__init__()
        self.m, self.found = m, False

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = operation(*args, **(kwargs or {}))
        given = [x for x in args if isinstance(x, Tensor)]
        results = [x for x in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(x, Tensor)]
        name = getattr(operation, "__name__", "").strip("_")
        storages = {x.untyped_storage().data_ptr() for x in given}
        for x in results:
            fresh = x.is_floating_point() and x.untyped_storage().data_ptr() not in storages
            read = any(self.m in y.shape for y in given) and name in REDUCING
            self.found = self.found or (fresh and (read or self.m in x.shape))
        return made


REDUCING = frozenset(
    "max amax logsumexp sum mean matmul mm bmm softmax log_softmax aminmax norm topk sort cumsum".split()
)


def _reads_all(answer: Callable) -> str | None:
    m = 61
    scores, value = drawn(1, 3, m), drawn(2, m, 2)
    with _Wide(m) as watched:
        answer(scores, value, 16)
    return ALL_AT_ONCE if watched.found else None


def _shrunk(old: Tensor, new: Tensor) -> Tensor:
    return (old - new).exp()


def _kept(old: Tensor, new: Tensor) -> Tensor:
    return torch.ones_like(new)


def _running(
    *,
    of_total: Callable[[Tensor, Tensor], Tensor] = _shrunk,
    of_mixed: Callable[[Tensor, Tensor], Tensor] = _shrunk,
    highest: Callable[[Tensor, Tensor], Tensor] = lambda part, top: torch.maximum(
        top, part.amax(1, keepdim=True)
    ),
    begin: float = -INF,
    starts: Callable[[int, int], range] = lambda m, tile: range(0, m, tile),
    last: Callable[[Tensor, Tensor], Tensor] = lambda mixed, total: mixed / total,
) -> Callable[..., Tensor]:
    """The running softmax, with any of its parts replaced; `begin` is the maximum before the first tile."""

    def pass_(scores: Tensor, value: Tensor, tile: int) -> Tensor:
        top = scores.new_full((len(scores), 1), begin)
        total, mixed = scores.new_zeros(len(scores), 1), scores.new_zeros(len(scores), value.shape[1])
        for start in starts(len(value), tile):
            part = scores[:, start : start + tile]
            new = highest(part, top)
            weights = (part - new).exp()
            if start:
                total, mixed = total * of_total(top, new), mixed * of_mixed(top, new)
            total = total + weights.sum(1, keepdim=True)
            mixed = mixed + weights @ value[start : start + tile]
            top = new
        return last(mixed, total)

    return pass_


def _tile_by_tile(
    together: Callable[[list[Tensor]], Tensor], weights: Callable[[Tensor], Tensor] = lambda s: s.softmax(1)
) -> Callable[..., Tensor]:
    """Each tile on its own, and then something done with their outputs."""

    def pass_(scores: Tensor, value: Tensor, tile: int) -> Tensor:
        parts = zip(scores.split(tile, 1), value.split(tile), strict=True)
        return together([weights(s) @ v for s, v in parts])

    return pass_


def _whole_row(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    return scores.softmax(1) @ value


def _by_merges(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """Tile by tile, put together as the exercise before does."""
    whole = None
    for s, v in zip(scores.split(tile, 1), value.split(tile), strict=True):
        part = Partial(s.softmax(1) @ v, s.logsumexp(1))
        whole = part if whole is None else merge(whole, part)
    assert whole is not None
    return whole.output


def _two_passes(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """The maxima of all tiles first; each tile is read twice."""
    top = torch.stack([s.amax(1) for s in scores.split(tile, 1)]).amax(0)[:, None]
    total = sum((s - top).exp().sum(1, keepdim=True) for s in scores.split(tile, 1))
    mixed = sum((s - top).exp() @ v for s, v in zip(scores.split(tile, 1), value.split(tile), strict=True))
    return mixed / total


def _key_by_key(scores: Tensor, value: Tensor, tile: int) -> Tensor:
    """Milakov and Gimelshein's loop, one key at a time, with lists of numbers."""
    rows = []
    for i in range(len(scores)):
        top, total, mixed = -INF, 0.0, torch.zeros_like(value[0])
        for j in range(len(value)):
            s = scores[i, j].item()
            new = max(top, s)
            shrink, weight = torch.tensor([top - new, s - new], device=value.device).exp()
            total, mixed, top = total * shrink + weight, mixed * shrink + weight * value[j], new
        rows.append(mixed / total)
    return torch.stack(rows)


def _scored(scores: Any, value: Any, tile: int) -> Case:
    return {"scores": table(scores), "value": table(value), "tile": tile}


running = Write(
    name="one_pass",
    title="A softmax that never sees its row",
    stars=2,
    minutes=10,
    why=(
        "these ten lines are the idea of FlashAttention: the exact softmax, read tile by tile, with nothing"
        " kept but two sums and a maximum"
    ),
    asked=(
        "write: softmax(scores) @ value, reading `tile` keys at a time from left to right (the last tile may"
        " be narrower); finite for scores of 200 and -200; no operation on all keys at once"
    ),
    stages=(
        Stage(
            "one query, two keys, one tile",
            lambda: [_scored([[LN_3, 0.0]], [[4.0], [8.0]], 2)],
            "exp makes 3 and 1 of the scores: (3*4 + 1*8) / 4 = 5.",
        ),
        Stage(
            "one query, four keys, two tiles; the maximum stays",
            lambda: [_scored([[LN_3, 0.0, 0.0, LN_3]], [[4.0], [8.0], [0.0], [16.0]], 2)],
            "The sums of both tiles are added up, and divided once, at the end: (12 + 8 + 0 + 48) / (3 + 1 +"
            " 1 + 3) = 8.5.",
        ),
        Stage(
            "the maximum rises in the second tile",
            lambda: [_scored([[0.0, 0.0, LN_2, LN_4]], [[4.0], [8.0], [6.0], [2.0]], 2)],
            "Both old sums are relative to the old maximum: times exp(old - new) they are relative to the new"
            " one. Here that is 1/4, and (4 + 8 + 12 + 8) / 8 = 4.",
        ),
        Stage(
            "three queries, five keys, tiles of two: the last has one key",
            lambda: [
                {"scores": drawn(1, 3, 5, spread=2.0), "value": drawn(2, 5, 2), "tile": 2},
                {"scores": drawn(3, 2, 7, spread=2.0), "value": drawn(4, 7, 3), "tile": 3},
                {"scores": drawn(5, 2, 3), "value": drawn(6, 3, 2), "tile": 8},
            ],
            "Every key counts, those of the last, narrower tile, too; each query has its own maximum and"
            " sums.",
        ),
        Stage(
            "scores of 200",
            lambda: [_scored([[200.0, 201.0, 200.0]], [[4.0], [8.0], [2.0]], 1)],
            "exp(200) is more than float32 holds: subtract the maximum so far before exp.",
        ),
        Stage(
            "scores that fall by 200, and rise by 200",
            lambda: [
                _scored([[100.0, 101.0, -100.0]], [[4.0], [8.0], [2.0]], 2),
                _scored([[-100.0, -101.0, 100.0]], [[4.0], [8.0], [2.0]], 2),
                _scored([[100.0, -100.0, 101.0]], [[4.0], [8.0], [2.0]], 2),
            ],
            "The maximum so far never falls; exp(old - new) is at most 1.",
        ),
        Stage(
            "scores of -200",
            lambda: [_scored([[-200.0, -200.0, -200.0]], [[4.0], [8.0], [3.0]], 2)],
            "Equal scores share the weight, however low they are: 5. Before the first tile there is no"
            " maximum: -inf.",
        ),
        Stage(
            "scores of -200 for one query, of 200 for the other",
            lambda: [_scored([[-200.0, -200.0, -200.0], [200.0, 200.0, 200.0]], [[4.0], [8.0], [3.0]], 2)],
            "The maximum is each query's own: 5 and 5.",
        ),
    ),
    reference=_whole_row,
    extra=_reads_all,
    hints=(
        "Without any maximum: which two sums, over all tiles, would you divide at the end?",
        (
            "Both sums hold exp(score - old maximum). By which one factor do you multiply them so that they"
            " hold exp(score - new maximum)?"
        ),
        (
            "For each tile: new = torch.maximum(top, part.amax(1, keepdim=True)). In which order come"
            " shrinking the old sums, adding the new terms, and top = new? With what does top begin?"
        ),
    ),
    solution=source_of(one_pass),
    remember=(
        "keep a maximum and two sums relative to it; when the maximum rises, shrink both by exp(old - new),"
        " and divide once, at the end: exact, and no row is ever held"
    ),
    slips={
        "the old sums are not shrunk: when the maximum rises, multiply both by exp(old - new) first": (
            _running(of_total=_kept, of_mixed=_kept)
        ),
        "the sum of weights is shrunk, the mixed values are not: multiply both by exp(old - new)": _running(
            of_mixed=_kept
        ),
        "the mixed values are shrunk, the sum of weights is not: multiply both by exp(old - new)": _running(
            of_total=_kept
        ),
        "your factor is turned round: exp(new - old) makes the old sums larger; exp(old - new) shrinks them": _running(
            of_total=lambda old, new: _shrunk(new, old), of_mixed=lambda old, new: _shrunk(new, old)
        ),
        "each tile is divided by its own sum, and the tiles' outputs averaged; divide once, at the end, by the sum over all": _tile_by_tile(
            lambda parts: torch.stack(parts).mean(0)
        ),
        "each tile is divided by its own sum, and the tiles' outputs added up; divide once, at the end, by the sum over all": _tile_by_tile(
            lambda parts: torch.stack(parts).sum(0)
        ),
        "only the first tile is read": _tile_by_tile(lambda parts: parts[0]),
        "only the last tile is left at the end: add to the sums, do not set them": _tile_by_tile(
            lambda parts: parts[-1]
        ),
        "the division is missing: divide by the sum of all weights at the end": _running(
            last=lambda mixed, total: mixed
        ),
        "the last tile, with fewer keys, is left out: range(0, m, tile) reaches it, a slice may end early": (
            _running(starts=lambda m, tile: range(0, max(m - tile, 0) + 1, tile))
        ),
        "no maximum is subtracted: exp(200) is inf, and inf/inf is nan": _running(
            highest=lambda part, top: 0 * top, begin=0.0
        ),
        "your maximum is the last tile's alone: where it falls, exp(old - new) overflows; take the larger of the old and the tile's": _running(
            highest=lambda part, top: part.amax(1, keepdim=True)
        ),
        "your maximum is the first tile's for good: where scores rise far above it, exp overflows; take the larger one in each tile": _running(
            highest=lambda part, top: torch.where(top == -INF, part.amax(1, keepdim=True), top)
        ),
        "your maximum begins at 0, so scores of -200 give exp(-200) = 0, and 0/0 is nan: begin at -inf": (
            _running(begin=0.0)
        ),
        "one maximum for all queries does not do: a query far below it gets exp = 0 everywhere, and 0/0 is nan": _running(
            highest=lambda part, top: torch.maximum(top, part.max())
        ),
        "the scores are not used: all keys have one weight": lambda scores, value, tile: _whole_row(
            0 * scores, value, tile
        ),
        "exp is missing: scores are shared out, and they may be negative": lambda scores, value, tile: (
            scores @ value / scores.sum(1, keepdim=True)
        ),
        "your softmax runs over the queries, axis 0; each query shares its weight out over the keys": (
            lambda scores, value, tile: scores.softmax(0) @ value
        ),
        ALL_AT_ONCE: _whole_row,
    },
    right=(_running(), _by_merges, _two_passes, _key_by_key),
)


def grouped_query(
    query: Float[Tensor, "h n d_k"],
    key: Float[Tensor, "g m d_k"],
    value: Float[Tensor, "g m d_v"],
) -> Float[Tensor, "h n d_v"]:
    shared = len(query) // len(key)  # query heads that share a head of keys
    key, value = (x.repeat_interleave(shared, 0) for x in (key, value))
    return attend(query, key, value, weights=False).output


Heads = Callable[[Tensor, int], Tensor]


def _each(x: Tensor, shared: int) -> Tensor:
    return x.repeat_interleave(shared, 0)


def _in_turn(x: Tensor, shared: int) -> Tensor:
    return x.repeat(shared, 1, 1)


def _grouped(keys: Heads = _each, values: Heads | None = None) -> Callable[..., Tensor]:
    """Attention, with another way to hand out the heads of keys, and of values."""

    def heads(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        shared = len(query) // len(key)
        return attend(query, keys(key, shared), (values or keys)(value, shared), weights=False).output

    return heads


def _turned_queries(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The queries go in turn, too, and stay so."""
    turned = query.unflatten(0, (len(key), -1)).transpose(0, 1).flatten(0, 1)
    return _grouped(_in_turn)(turned, key, value)


def _by_groups(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Nothing is repeated: each group has an axis of its own."""
    groups = query.unflatten(0, (len(key), -1))
    return attend(groups, key[:, None], value[:, None], weights=False).output.flatten(0, 1)


def _head_by_head(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    shared = len(query) // len(key)
    outputs = [attend(q, key[i // shared], value[i // shared]).output for i, q in enumerate(query)]
    return torch.stack(outputs)


def _by_index(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    of = torch.arange(len(query), device=query.device) // (len(query) // len(key))
    return attend(query, key[of], value[of]).output


def _group_case(seed: int, h: int, g: int, n: int, m: int, d_k: int, d_v: int) -> Case:
    query, key = drawn(seed, h, n, d_k, spread=1.5), drawn(seed + 1, g, m, d_k, spread=1.5)
    return {"query": query, "key": key, "value": drawn(seed + 2, g, m, d_v)}


def _one_key(h: int, values: list[float]) -> Case:
    """One token of width 1: each head's output is its value."""
    g = len(values)
    return {"query": 0 * drawn(1, h, 1, 1), "key": drawn(2, g, 1, 1), "value": table(values)[:, None, None]}


grouped = Write(
    name="grouped_query",
    title="Which heads share their keys?",
    stars=2,
    minutes=6,
    why=(
        "programs that load a published model have made this mistake: every shape is right, no error comes,"
        " and the text is nonsense"
    ),
    asked=(
        "repair: h query heads share g heads of keys and values in groups of NEIGHBOURS: with h = 4, g = 2,"
        " query heads 0 and 1 look at key head 0, heads 2 and 3 at key head 1"
    ),
    given=_grouped(_in_turn),
    stages=(
        Stage(
            "four query heads, two key heads, one token with the values 2 and 8",
            lambda: [_one_key(4, [2.0, 8.0])],
            "With one key each head gets that key's value: heads 0 and 1 have 2, heads 2 and 3 have 8.",
        ),
        Stage(
            "six query heads, three key heads; then two",
            lambda: [_one_key(6, [2.0, 8.0, 5.0]), _one_key(6, [2.0, 8.0])],
            "h / g neighbours share: with three key heads, 0 0 1 1 2 2; with two, 0 0 0 1 1 1.",
        ),
        Stage(
            "four query heads of width 3, five tokens",
            lambda: [_group_case(1, 4, 2, 2, 5, 3, 2)],
            "Keys and values of one group belong together: both are handed out in the same order.",
        ),
        Stage(
            "one key head for all; as many as queries",
            lambda: [_group_case(11, 3, 1, 2, 3, 3, 2), _group_case(21, 3, 3, 2, 3, 3, 2)],
            "With g = 1 all share (multi-query attention), with g = h nobody does: attention of lesson 04.",
        ),
    ),
    reference=_head_by_head,
    hints=(
        (
            "Four query heads, two key heads A and B. Write down which key head each query head should get."
            " What order does x.repeat(2, 1, 1) make?"
        ),
        (
            "repeat puts whole copies behind each other: A B A B. Which order is asked for, and which method"
            " repeats each entry on the spot?"
        ),
        "x.repeat_interleave(times, dim): what are `times` and `dim` here?",
    ),
    solution=source_of(grouped_query),
    remember=(
        "groups are neighbours: repeat_interleave, 0 0 1 1; `repeat` gives 0 1 0 1, whose shapes fit just as"
        " well. A wrong order of heads gives no error"
    ),
    slips={
        "this is still the function as it was given": _grouped(_in_turn),
        "the keys are right, the values still go in turn, 0 1 0 1: both must be handed out alike": _grouped(
            _each, _in_turn
        ),
        "the values are right, the keys still go in turn, 0 1 0 1: both must be handed out alike": _grouped(
            _in_turn, _each
        ),
        "your key heads come in the opposite order: query head 0 belongs to key head 0": _grouped(
            lambda x, shared: x.flip(0).repeat_interleave(shared, 0)
        ),
        "all query heads look at key head 0; each group has its own": _grouped(
            lambda x, shared: x[:1].expand(len(x) * shared, -1, -1)
        ),
        "you take the mean over the key heads; each group has its own": _grouped(
            lambda x, shared: x.mean(0, keepdim=True).expand(len(x) * shared, -1, -1)
        ),
        "now the queries go in turn, too, and so do your outputs: head 1's stands where head h/g's should": (
            _turned_queries
        ),
        "the keys still have g heads, the queries h: repeat the heads, axis 0, and not the tokens": _grouped(
            lambda x, shared: x.repeat_interleave(shared, 1)
        ),
        "each key head is repeated g times; it is asked h / g times": _grouped(
            lambda x, shared: x.repeat_interleave(len(x), 0)
        ),
        "the key heads are cut off or padded with the last one: query head i takes key head i, while there is one; it should take i // (h / g)": _grouped(
            lambda x, shared: torch.cat([x, *[x[-1:]] * (len(x) * (shared - 1))])
        ),
    },
    right=(_grouped(), _by_index, _by_groups, _head_by_head),
)


def low_rank(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    E: Float[Tensor, "rank n"],
    F: Float[Tensor, "rank n"],
) -> Float[Tensor, "n d_v"]:
    keys, values = E @ key, F @ value  # `rank` mixtures of n tokens each
    scores = query @ keys.mT / query.shape[-1] ** 0.5  # (n, rank)
    return scores.softmax(-1) @ values


SAVES_NOTHING = (
    "the numbers are right, but there is a table (n, n): mix the keys first, E @ key, and every query meets"
    " only `rank` of them"
)


def _grows_twice(answer: Callable) -> str | None:
    """The sentence, where twice as many tokens take far more than twice the numbers, at one rank."""

    def work(n: int) -> int:
        x, mix = drawn(1, n, 3), drawn(2, 2, n)
        return numbers_made(lambda: answer(x, x, x, mix, mix))

    return SAVES_NOTHING if work(400) > 3 * work(200) else None


Mix = Callable[[Tensor, Tensor], Tensor]


def _low(
    *,
    keys: Callable[..., Tensor] = lambda key, E, F: E @ key,
    values: Callable[..., Tensor] = lambda value, E, F: F @ value,
    queries: Callable[[Tensor, Tensor], Tensor] = lambda query, E: query,
    divided_by: Callable[[Tensor, Tensor, Tensor], float] = lambda query, key, E: query.shape[-1] ** 0.5,
    axis: int = -1,
) -> Callable[..., Tensor]:
    """Low-rank attention, with any of its parts replaced."""

    def layer(query: Tensor, key: Tensor, value: Tensor, E: Tensor, F: Tensor) -> Tensor:
        scores = queries(query, E) @ keys(key, E, F).mT / divided_by(query, key, E)
        return scores.softmax(axis) @ values(value, E, F)

    return layer


def _columns_mixed(query: Tensor, key: Tensor, value: Tensor, E: Tensor, F: Tensor) -> Tensor:
    """The whole table of scores, then its columns mixed."""
    return (query @ key.mT @ E.mT / query.shape[-1] ** 0.5).softmax(-1) @ F @ value


def _weights_mixed(query: Tensor, key: Tensor, value: Tensor, E: Tensor, F: Tensor) -> Tensor:
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ E.mT @ (F @ value)


def _mixed(seed: int, n: int, rank: int, d_k: int, d_v: int) -> Case:
    made = {"query": (n, d_k), "key": (n, d_k), "value": (n, d_v), "E": (rank, n), "F": (rank, n)}
    return {name: drawn(seed + i, *shape) for i, (name, shape) in enumerate(made.items())}


def _hand() -> Case:
    """Three tokens, two mixtures; scores are 0, so each output is the mean of the mixtures of values."""
    return {
        "query": table([[0.0], [0.0], [LN_3]]),
        "key": table([[1.0], [2.0], [0.0]]),
        "value": table([[2.0], [4.0], [9.0]]),
        "E": table([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        "F": table([[0.0, 1.0, 0.0], [0.5, 0.5, 1.0]]),
    }


mixtures = Write(
    name="low_rank",
    title="Mixtures of keys",
    stars=2,
    minutes=6,
    why=(
        "four lines make the cost of attention grow with n instead of n²; what they give up is worth knowing"
        " as exactly"
    ),
    asked=(
        "write: attention of all n queries to `rank` mixtures of the keys, E @ key, and of the values, F @"
        " value; E and F have shape (rank, n); no table (n, n)"
    ),
    stages=(
        Stage(
            "three tokens of width 1, two mixtures",
            lambda: [_hand()],
            "E picks the keys 1 and 0, F makes the values 4 and 12. Queries of 0 look at both alike: 8. The"
            " last has scores ln 3 and 0: (3*4 + 1*12) / 4 = 6.",
        ),
        Stage(
            "five tokens of width 3, two mixtures",
            lambda: [_mixed(1, 5, 2, 3, 2), _mixed(11, 7, 3, 5, 2)],
            "The scores are those of attend, q . (E k) / sqrt(d_k), with `rank` columns; the softmax runs"
            " over the mixtures.",
        ),
        Stage(
            "as many mixtures as tokens, as wide as either",
            lambda: [_mixed(21, 3, 3, 3, 3)],
            "Where all sizes are equal no error tells what was exchanged: row r of E says how much of each"
            " token is in mixture r.",
        ),
    ),
    reference=lambda query, key, value, E, F: attend(query, E @ key, F @ value).output,
    extra=_grows_twice,
    hints=(
        (
            "E has shape (rank, n), the keys (n, d_k). What is the shape of E @ key, and what is one of its"
            " rows?"
        ),
        (
            "Each query still asks for itself. How many scores has it, and over which axis must they be"
            " shared out?"
        ),
        (
            "Take attention as you know it, softmax(q k^T / sqrt(d_k)) v. What stands in the place of k and"
            " of v, and does d_k change?"
        ),
    ),
    solution=source_of(low_rank),
    remember=(
        "attend(q, E k, F v): n queries, `rank` mixtures, so n x rank scores; the columns of E are places, so"
        " no sequence may be longer than the one it was learnt for"
    ),
    slips={
        "you mix the queries, too: then there are `rank` outputs; every token asks for itself": _low(
            queries=lambda query, E: E @ query
        ),
        "you mix the queries instead of the keys; every token asks for itself, and it is the keys that become fewer": _low(
            queries=lambda query, E: E @ query, keys=lambda key, E, F: key
        ),
        "your E works along the width of a key, key @ E; mix the tokens: E @ key": _low(
            keys=lambda key, E, F: key @ E, values=lambda value, E, F: value @ F
        ),
        "you turned E round: row r of E says how much of each token is in mixture r, so E @ key without .mT": _low(
            keys=lambda key, E, F: E.mT @ key, values=lambda value, E, F: F.mT @ value
        ),
        "divide by the root of the width d_k, not of the rank": _low(
            divided_by=lambda query, key, E: len(E) ** 0.5
        ),
        "divide by the root of the width d_k, not of n": _low(
            divided_by=lambda query, key, E: len(key) ** 0.5
        ),
        "the division by sqrt(d_k) is missing": _low(divided_by=lambda query, key, E: 1.0),
        "divide by sqrt(d_k), not by d_k": _low(divided_by=lambda query, key, E: query.shape[-1]),
        "your softmax runs over the queries; each query shares its weight out over the mixtures, dim=-1": (
            _low(axis=-2)
        ),
        "you mix the values with E, too; theirs is F": _low(values=lambda value, E, F: E @ value),
        "you mix the keys with F, too; theirs is E": _low(keys=lambda key, E, F: F @ key),
        "your E and F have changed places: E mixes the keys, F the values": _low(
            keys=lambda key, E, F: F @ key, values=lambda value, E, F: E @ value
        ),
        "the keys are mixed, the values are not: there are `rank` weights and n values": _low(
            values=lambda value, E, F: value
        ),
        "the values are mixed, the keys are not: there are n weights and `rank` values": _low(
            keys=lambda key, E, F: key
        ),
        "that is full attention; E and F are not used": _low(
            keys=lambda key, E, F: key, values=lambda value, E, F: value
        ),
        "the weights are mixed behind the softmax: then a row need not sum to 1; mix the keys": (
            _weights_mixed
        ),
        SAVES_NOTHING: _columns_mixed,
    },
    right=(
        _low(),
        lambda query, key, value, E, F: attend(query, E @ key, F @ value).output,
        lambda query, key, value, E, F: attend(query, E @ key, F @ value, weights=False).output,
        lambda query, key, value, E, F: (
            (torch.einsum("nd,rm,md->nr", query, E, key) / key.shape[1] ** 0.5).softmax(1)
            @ torch.einsum("rn,nd->rd", F, value)
        ),
    ),
)
