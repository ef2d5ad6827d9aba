"""Exercises of lesson 09 in which a function is written or repaired; lesson_09.py puts them in order."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, source_of, table
from lesson_lib.masks import window
from lesson_lib.truncated import attend_window


def layers_until(
    i: Int[Tensor, " pairs"], j: Int[Tensor, " pairs"], before: int, after: int
) -> Int[Tensor, " pairs"]:
    back = (i - j + before - 1) // before  # // rounds down: add almost a layer
    ahead = (j - i + after - 1) // after
    return torch.where(j < i, back, ahead)


def _up(distance: Tensor, reach: int) -> Tensor:
    return -(-distance // reach)


def _layers(
    *,
    rounded: Callable[[Tensor, int], Tensor] = _up,
    reaches: Callable[[int, int], tuple[int, int]] = lambda before, after: (before, after),
) -> Callable[..., Tensor]:
    """The number of layers, with its rounding or its two reaches replaced."""

    def count(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
        back, ahead = reaches(before, after)
        return torch.where(j < i, rounded(i - j, back), rounded(j - i, ahead))

    return count


def _layer_by_layer(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    """What is heard grows by both reaches in each layer; counted until it holds j."""
    first, last, layers = i, i, torch.zeros_like(i)
    while not ((first <= j) & (j <= last)).all():
        layers = layers + ~((first <= j) & (j <= last))
        first, last = first - before, last + after
    return layers


def _by_floats(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    return torch.maximum((i - j) / before, (j - i) / after).ceil().to(i.dtype)


def _pair_by_pair(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    found = [
        -((b - a) // before) if b < a else -((a - b) // after)
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    return torch.tensor(found, dtype=i.dtype, device=i.device)


def _doubled(distance: Tensor, reach: int) -> Tensor:
    layers, field = torch.zeros_like(distance), 0
    while (distance > field).any():
        layers = layers + (distance > field)
        field = max(reach, 2 * field)
    return layers


def _whole(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device="cpu")


def _heard(i: list[int], j: list[int], before: int, after: int) -> Case:
    return {"i": _whole(*i), "j": _whole(*j), "before": before, "after": after}


until = Write(
    name="layers_until",
    title="How many layers until it is heard?",
    stars=2,
    minutes=7,
    why="a model with too few layers cannot learn what is farther away, however long it is trained",
    asked=(
        "in a layer each frame hears `before` frames before it, `after` frames behind it, and itself: the"
        " least number of layers after which frame i has heard of frame j, for each pair; 0 where i is j"
    ),
    stages=(
        Stage(
            "frame 10 and an earlier one, three frames before and after",
            lambda: [_heard([10, 10, 10], [9, 7, 4], 3, 3)],
            "One layer hears back to frame 7, two layers to frame 4: so 1, 1 and 2.",
        ),
        Stage(
            "distances that are no multiple of the reach",
            lambda: [_heard([10, 10, 10, 10], [6, 5, 3, 0], 3, 3)],
            "Frame 6 is four away: one layer hears three frames far, so two layers are needed.",
        ),
        Stage(
            "frames that come later",
            lambda: [_heard([10, 10, 10], [11, 13, 17], 3, 3)],
            "Frame 17 is seven away, as frame 3 is: three layers.",
        ),
        Stage(
            "five frames before, two after",
            lambda: [_heard([10, 10, 10, 10], [0, 4, 14, 20], 5, 2), _heard([10, 3], [3, 10], 1, 4)],
            "What comes later is heard by `after` alone, what was earlier by `before` alone: frame 20 takes"
            " 10 / 2 layers, frame 0 takes 10 / 5.",
        ),
        Stage(
            "a frame and itself, and far ones",
            lambda: [_heard([7, 0, 999, 1000], [7, 1000, 0, 1000], 15, 4)],
            "A frame knows itself before the first layer: 0.",
        ),
    ),
    reference=_layer_by_layer,
    hints=(
        (
            "After one layer frame i holds what frames i - before ... i + after held. How far back do two"
            " layers reach, and three?"
        ),
        (
            "Seven frames away, three frames in a layer: why are two layers not enough? In which direction"
            " must 7 / 3 be rounded?"
        ),
        (
            "`//` rounds down, for negative numbers too. What does -(-7 // 3) give? And which of the two"
            " reaches belongs to a j that is greater than i?"
        ),
    ),
    solution=source_of(layers_until),
    remember=(
        "reach adds up: layers x radius frames on each side; to hear d frames far, d / radius layers are"
        " needed, rounded up"
    ),
    slips={
        "you round down: a started layer is a whole one, since without it the frame is not heard": _layers(
            rounded=lambda distance, reach: distance // reach
        ),
        "you round to the nearest number; a started layer is a whole one: round up": _layers(
            rounded=lambda distance, reach: (distance / reach).round().to(distance.dtype)
        ),
        "one layer too many where the distance is a multiple of the reach: d // reach + 1 is no rounding up": _layers(
            rounded=lambda distance, reach: distance // reach + (distance > 0)
        ),
        "one layer too many where the distance is a multiple of the reach, and a frame knows itself without any": _layers(
            rounded=lambda distance, reach: distance // reach + 1
        ),
        "a frame knows itself before the first layer: 0, not 1": _layers(
            rounded=lambda distance, reach: _up(distance, reach).clamp(min=1)
        ),
        "these are distances in frames; divide by what a layer reaches": _layers(
            rounded=lambda distance, reach: distance
        ),
        "before and after have changed places: a j greater than i comes later, and is heard by `after`": (
            _layers(reaches=lambda before, after: (after, before))
        ),
        "you take `before` on both sides; a later frame is heard by `after` alone": _layers(
            reaches=lambda before, after: (before, before)
        ),
        "you take `after` on both sides; an earlier frame is heard by `before` alone": _layers(
            reaches=lambda before, after: (after, after)
        ),
        "you divide by the whole window; towards one side a layer reaches only its own part of it": _layers(
            reaches=lambda before, after: (before + after, before + after)
        ),
        "you divide by all frames of a window, itself included; towards one side a layer reaches only its own part of it": _layers(
            reaches=lambda before, after: (before + after + 1, before + after + 1)
        ),
        "a negative number of layers: for a j greater than i take j - i, and `after`": (
            lambda i, j, before, after: _up(i - j, before)
        ),
        "your reach doubles with each layer; a window adds its reach, once in each layer": _layers(
            rounded=_doubled
        ),
    },
    right=(_layers(), _by_floats, _pair_by_pair),
)


def dilated_window(
    queries: Int[Tensor, " n"], keys: Int[Tensor, " m"], radius: int, step: int
) -> Bool[Tensor, "n m"]:
    away = keys - queries[:, None]  # (n, m): how many frames later the key stands
    return (away % step == 0) & (away.abs() <= radius * step)


def _away(queries: Tensor, keys: Tensor) -> Tensor:
    return keys - queries[:, None]


def _dilated(
    *,
    away: Callable[[Tensor, Tensor], Tensor] = _away,
    near: Callable[[Tensor, int, int], Tensor] = lambda away, radius, step: away.abs() <= radius * step,
    kept: Callable[[Tensor, Tensor, Tensor, int], Tensor] = lambda away, i, j, step: away % step == 0,
) -> Callable[..., Tensor]:
    """The mask, with any of its parts replaced."""

    def mask(queries: Tensor, keys: Tensor, radius: int, step: int) -> Tensor:
        far = away(queries, keys)
        return near(far, radius, step) & kept(far, queries[:, None], keys, step)

    return mask


def _offset_by_offset(queries: Tensor, keys: Tensor, radius: int, step: int) -> Tensor:
    """One offset after the other, from -radius to radius steps."""
    seen = torch.zeros(len(queries), len(keys), dtype=torch.bool, device=queries.device)
    for steps in range(-radius, radius + 1):
        seen = seen | (keys == queries[:, None] + steps * step)
    return seen


def _by_lists(queries: Tensor, keys: Tensor, radius: int, step: int) -> Tensor:
    rows = [
        [j in range(i - radius * step, i + radius * step + 1, step) for j in keys.tolist()]
        for i in queries.tolist()
    ]
    return torch.tensor(rows, dtype=torch.bool, device=queries.device)


def _frames(queries: range, keys: range, radius: int, step: int) -> Case:
    return {"queries": _whole(*queries), "keys": _whole(*keys), "radius": radius, "step": step}


dilated = Write(
    name="dilated_window",
    title="A window with gaps",
    stars=2,
    minutes=8,
    why=(
        "as many keys as before, a reach `step` times as far: this is how sparse attention hears far at the"
        " price of a small window"
    ),
    asked=(
        "the mask (n, m) of a dilated window, True = may look: query frame i sees the key frames i - radius *"
        " step, ..., i - step, i, i + step, ..., i + radius * step, those of them that are there. `queries`"
        " and `keys` hold the frames' numbers"
    ),
    stages=(
        Stage(
            "frame 4 among nine, step 1: a plain window",
            lambda: [_frames(range(4, 5), range(9), 2, 1)],
            "With step 1 and radius 2 frame 4 sees frames 2 to 6.",
        ),
        Stage(
            "frame 4 among nine, step 2, radius 1; then radius 2",
            lambda: [_frames(range(4, 5), range(9), 1, 2), _frames(range(4, 5), range(9), 2, 2)],
            "With step 2 and radius 1 frame 4 sees 2, 4 and 6: radius counts steps, not frames.",
        ),
        Stage(
            "frame 5 among nine, step 3, radius 1",
            lambda: [_frames(range(5, 6), range(9), 1, 3)],
            "Steps are counted from the query: frame 5 sees 2, 5 and 8, none of which is a multiple of 3.",
        ),
        Stage(
            "all frames of seven",
            lambda: [_frames(range(7), range(7), 2, 2), _frames(range(7), range(7), 0, 3)],
            "Each row is its own query's window; at the ends some of it is missing. Radius 0 is the frame"
            " itself.",
        ),
        Stage(
            "a block of a long recording: frames 100 to 104, keys 97 to 107",
            lambda: [_frames(range(100, 105), range(97, 108), 1, 3), _frames(range(3, 8), range(2), 2, 3)],
            "The numbers of the frames count, not their places in `queries` and `keys`.",
        ),
    ),
    reference=_offset_by_offset,
    hints=(
        "What does keys - queries[:, None] hold, and what shape has it?",
        (
            "Which of these differences are in the window for step 2 and radius 2? Write them down: what have"
            " they in common, and which is the largest?"
        ),
        (
            "Two conditions, joined by &: one with %, one with .abs(). What is (-4) % 2, and how far away is"
            " the farthest key?"
        ),
    ),
    solution=source_of(dilated_window),
    remember=(
        "a dilated window asks 2 radius + 1 keys and reaches radius * step frames; what lies in its gaps it"
        " does not hear"
    ),
    slips={
        "radius counts steps, so the window reaches radius * step frames": _dilated(
            near=lambda away, radius, step: away.abs() <= radius
        ),
        "there are no gaps: this is a plain window that reaches radius * step": _dilated(
            kept=lambda away, i, j, step: torch.ones_like(away, dtype=torch.bool)
        ),
        "there are no gaps, and it reaches only `radius` frames: `step` is not used": (
            lambda i, j, radius, step: _away(i, j).abs() <= radius
        ),
        "you keep the keys whose NUMBER is a multiple of step; steps are counted from the query, so take the difference": _dilated(
            kept=lambda away, i, j, step: (j % step == 0).expand_as(away)
        ),
        "you keep the queries whose number is a multiple of step; every query has a window, and steps are counted from it": _dilated(
            kept=lambda away, i, j, step: (i % step == 0).expand_as(away)
        ),
        "the farthest key on each side is missing: <=, not <": _dilated(
            near=lambda away, radius, step: away.abs() < radius * step
        ),
        "the frame itself is missing: a difference of 0 is in the window": _dilated(
            kept=lambda away, i, j, step: (away % step == 0) & (away != 0)
        ),
        "only what was earlier is seen; the window reaches to both sides": _dilated(
            near=lambda away, radius, step: (away <= 0) & (away >= -radius * step)
        ),
        "only what comes later is seen; the window reaches to both sides": _dilated(
            near=lambda away, radius, step: (away >= 0) & (away <= radius * step)
        ),
        "the sides have no end: differences below -radius * step are also too far, so take .abs()": _dilated(
            near=lambda away, radius, step: away <= radius * step
        ),
        "your mask is the other way round: True means may look": lambda i, j, radius, step: (
            ~_offset_by_offset(i, j, radius, step)
        ),
        "you compare places in `queries` and `keys`; their frames' numbers may begin anywhere": _dilated(
            away=lambda i, j: _away(
                torch.arange(len(i), device=i.device), torch.arange(len(j), device=j.device)
            )
        ),
        "between the steps there are gaps; you let whole groups of frames in, by // instead of %": (
            lambda i, j, radius, step: (_away(i, j) // step).abs() <= radius
        ),
    },
    right=(_dilated(), _by_lists, _offset_by_offset),
)


def near_blocks(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    radius: int,
) -> Float[Tensor, "n d_v"]:
    n = len(query)
    count = -(-n // radius)  # blocks of `radius` frames; the last one is filled up
    ends = (0, 0, radius, radius + count * radius - n)
    q = pad(query, (0, 0, 0, count * radius - n)).unflatten(0, (count, radius))
    k = pad(key, ends).unfold(0, 3 * radius, radius).mT  # the block before,
    v = pad(value, ends).unfold(0, 3 * radius, radius).mT  # itself, the one behind
    i = torch.arange(count * radius, device=query.device).view(count, radius, 1)
    j = i[:, :1] + torch.arange(-radius, 2 * radius, device=query.device)
    seen = ((i - j).abs() <= radius) & (0 <= j) & (j < n)
    return attend(q, k, v, mask=seen, weights=False).output.flatten(0, 1)[:n]


TABLE = (
    "the numbers are right, but twice as many frames make four times the work: somewhere each frame meets"
    " every other, in scores or in a mask; a frame has only 2 radius + 1 keys"
)


def _squared(call: Callable[[Tensor], Tensor]) -> str | None:
    """The sentence, where twice as many frames make far more than twice as many numbers."""
    some, more = (numbers_made(lambda n=n: call(drawn(1, n, 2))) for n in (256, 512))
    return TABLE if more > 3 * some else None


def _by_mask(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int = 0) -> Tensor:
    """The whole table, most of it hidden."""
    return attend(query, key, value, mask=window(len(query), radius, device=query.device)).output


def _blockwise(
    *,
    seen: Callable[[Tensor, Tensor, int, int], Tensor],
    blocks: range = range(3),
    inside: bool = False,
) -> Callable[..., Tensor]:
    """The function of the repair with another mask of i, j, radius and n; `blocks` of the three are kept;
    `inside`: filler is a frame, too."""

    def layer(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
        n = len(query)
        count = -(-n // radius)
        filler = count * radius - n
        q = pad(query, (0, 0, 0, filler)).unflatten(0, (count, radius))
        k, v = (
            pad(x, (0, 0, radius, radius + filler)).unfold(0, 3 * radius, radius).mT for x in (key, value)
        )
        i = torch.arange(count * radius, device=query.device).view(count, radius, 1)
        j = i[:, :1] + torch.arange(-radius, 2 * radius, device=query.device)
        mask = seen(i, j, radius, n + filler if inside else n)
        part = slice(blocks.start * radius, blocks.stop * radius)
        return attend(q, k[:, part], v[:, part], mask=mask[..., part]).output.flatten(0, 1)[:n]

    return layer


def _band(i: Tensor, j: Tensor, radius: int, n: int) -> Tensor:
    return (i - j).abs() <= radius


def _real(i: Tensor, j: Tensor, radius: int, n: int) -> Tensor:
    return _band(i, j, radius, n) & (j >= 0) & (j < n)


def _by_values(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """Hides every key of zeros."""
    real = (key != 0).any(-1)
    return attend(query, key, value, mask=window(len(key), radius, device=key.device) & real).output


def _too_few_in_sum(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """The zeros keep their weight, and the output is scaled up by the share of real keys."""
    untouched = _blockwise(seen=_band)(query, key, value, radius)
    there = window(len(key), radius, device=key.device).sum(-1, keepdim=True)
    return untouched * (2 * radius + 1) / there


def _sliced(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """Query by query, without any filler."""
    near = [slice(max(0, i - radius), i + radius + 1) for i in range(len(query))]
    return torch.cat([attend(query[i : i + 1], key[s], value[s]).output for i, s in enumerate(near)])


def _biased(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """A column for each offset, hidden ones at minus infinity."""
    n = len(query)
    k, v = (pad(x, (0, 0, radius, radius)).unfold(0, 2 * radius + 1, 1).mT for x in (key, value))
    scores = (k @ query[..., None]).squeeze(-1) / query.shape[-1] ** 0.5
    j = torch.arange(n, device=key.device)[:, None] + torch.arange(-radius, radius + 1, device=key.device)
    weights = scores.masked_fill((j < 0) | (j >= n), -torch.inf).softmax(-1)
    return (weights[:, None] @ v)[:, 0]


def _spoken(seed: int, n: int, d_k: int, d_v: int, radius: int) -> Case:
    return {
        "query": drawn(seed, n, d_k),
        "key": drawn(seed + 1, n, d_k),
        "value": drawn(seed + 2, n, d_v),
        "radius": radius,
    }


def _equal(values: list[float], radius: int) -> Case:
    """Queries of zeros, so that all keys in sight have one weight, and keys of zeros."""
    nothing = table([[0.0, 0.0]] * len(values))
    return {"query": nothing, "key": nothing, "value": table(values)[:, None], "radius": radius}


near = Write(
    name="near_blocks",
    title="Zeros that take weight",
    stars=2,
    minutes=10,
    why=(
        "the middle of a long recording is right and its ends are not: a test that looks at shapes, or at the"
        " middle alone, lets it pass"
    ),
    asked=(
        "repair: attention with a window, cut into blocks of `radius` frames; the filler at the ends is no"
        " key and takes no weight. The result is attend's with the mask window(n, radius)"
    ),
    given=_blockwise(seen=_band),
    stages=(
        Stage(
            "three frames, radius 1, all scores 0",
            lambda: [_equal([6.0, 12.0, 30.0], 1)],
            "The first frame has two keys, itself and the next: (6 + 12) / 2 = 9. The others: 16 and 21.",
        ),
        Stage(
            "five frames, radius 2: one frame of filler in the last block",
            lambda: [_equal([2.0, 4.0, 6.0, 8.0, 10.0], 2)],
            "The last frame has three keys, 6, 8 and 10: 8. What fills up the last block is no key, either.",
        ),
        Stage(
            "one frame; and a radius greater than the recording",
            lambda: [_equal([7.0], 1), _equal([3.0, 9.0, 6.0], 5)],
            "If all frames are in reach, each output is the mean of all of them.",
        ),
        Stage(
            "seven frames, radius 2; nine, radius 3; eight, radius 2",
            lambda: [_spoken(1, 7, 3, 2, 2), _spoken(11, 9, 2, 3, 3), _spoken(21, 8, 2, 2, 2)],
            "The first and the last `radius` frames are where filler comes in sight; frames in the middle"
            " have keys in three blocks.",
        ),
    ),
    reference=_by_mask,
    extra=lambda answer: _squared(lambda x: answer(x, x, x, 8)),
    hints=(
        (
            "Run it with queries of zeros and values of ones: each output should be 1. Where is it not, and"
            " how many keys had a part in it?"
        ),
        "A filler key holds zeros, so its score is 0. What is exp(0), and is that no weight?",
        (
            "j holds the number of each key, counted from the first frame. Which numbers has the filler in"
            " front, and which that at the end? Hide both in `seen`."
        ),
    ),
    solution=source_of(near_blocks),
    remember=(
        "a key of zeros has the score 0, and its weight is exp(0) = 1 before the division: whatever is filled"
        " in must be hidden"
    ),
    slips={
        "this is still the function as it was given, or gives the same: the filler must be hidden among the KEYS, by j": _blockwise(
            seen=_band
        ),
        "the filler in front is hidden, that at the end is not: j < n": _blockwise(
            seen=lambda i, j, radius, n: _band(i, j, radius, n) & (j >= 0)
        ),
        "the filler at the end is hidden, that in front is not: j >= 0": _blockwise(
            seen=lambda i, j, radius, n: _band(i, j, radius, n) & (j < n)
        ),
        "the filler behind the last block is hidden, but that inside it is not: frames end at n, not at count * radius": _blockwise(
            seen=_real, inside=True
        ),
        "frame n is filler, too: frames are counted from 0 to n - 1, so j < n": _blockwise(
            seen=lambda i, j, radius, n: _band(i, j, radius, n) & (j >= 0) & (j <= n)
        ),
        "frame 0 is a real one: hide j below 0, not 0 itself": _blockwise(
            seen=lambda i, j, radius, n: _band(i, j, radius, n) & (j > 0) & (j < n)
        ),
        "the filler is hidden, but each frame now sees all of the three blocks: |i - j| <= radius must hold, too": _blockwise(
            seen=lambda i, j, radius, n: ((j >= 0) & (j < n)).expand(-1, radius, -1)
        ),
        "frame n - 1 is a real one, the last: j < n": _blockwise(
            seen=lambda i, j, radius, n: _band(i, j, radius, n) & (j >= 0) & (j < n - 1)
        ),
        "j already counts from the first frame, not from the filler in front of it: real keys are 0 to n - 1": _blockwise(
            seen=lambda i, j, radius, n: _band(i, j, radius, n) & (j >= radius) & (j < n + radius)
        ),
        "the filler is hidden, but now the farthest key on each side is, too: |i - j| <= radius, not <": (
            _blockwise(seen=lambda i, j, radius, n: ((i - j).abs() < radius) & (j >= 0) & (j < n))
        ),
        "the filler is hidden, but later keys are seen however far they are: a distance has no sign, .abs()": _blockwise(
            seen=lambda i, j, radius, n: (i - j <= radius) & (j >= 0) & (j < n)
        ),
        "the filler is hidden, but earlier keys are seen however far they are: a distance has no sign, .abs()": _blockwise(
            seen=lambda i, j, radius, n: (j - i <= radius) & (j >= 0) & (j < n)
        ),
        "the filler is hidden, but later keys are hidden with it: the window reaches to both sides": (
            _blockwise(seen=lambda i, j, radius, n: _real(i, j, radius, n) & (j <= i))
        ),
        "the block before is forgotten: its last frames are in reach": _blockwise(
            seen=_real, blocks=range(1, 3)
        ),
        "the block behind is forgotten: its first frames are in reach": _blockwise(
            seen=_real, blocks=range(2)
        ),
        "each block sees itself alone; frames of the two blocks beside it are in reach": _blockwise(
            seen=_real, blocks=range(1, 2)
        ),
        "a key of zeros may be a real one (silence, say); its number tells filler from frames, not its values": (
            _by_values
        ),
        "you scale the output up by the number of keys; but weights differ, and filler takes exp(0), not an equal part: hide it": (
            _too_few_in_sum
        ),
        TABLE: _by_mask,
    },
    right=(_blockwise(seen=_real), _sliced, _biased, attend_window),
)


def block_by_block(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    radius: int,
    block: int,
) -> Float[Tensor, "n d_v"]:
    n, outputs = len(query), []
    for start in range(0, n, block):
        end = min(n, start + block)
        first, last = max(0, start - radius), min(n, end + radius)
        i = torch.arange(start, end, device=query.device)
        j = torch.arange(first, last, device=query.device)
        seen = (i[:, None] - j).abs() <= radius
        q, k, v = query[start:end], key[first:last], value[first:last]
        outputs.append(attend(q, k, v, mask=seen, weights=False).output)
    return torch.cat(outputs)


def _in_slices(
    *,
    starts: Callable[[int, int], range] = lambda n, block: range(0, n, block),
    keys: Callable[[int, int, int, int], tuple[int, int]] = lambda start, end, radius, n: (
        max(0, start - radius),
        min(n, end + radius),
    ),
    seen: Callable[[Tensor, Tensor, int, int], Tensor] = lambda i, j, radius, block: (i - j).abs() <= radius,
    numbered: bool = True,
    clipped: bool = True,
) -> Callable[..., Tensor]:
    """The loop, with any of its parts replaced; `numbered`: i and j are the frames' numbers, not places in
    the slices;

    `clipped`: j counts the keys that are there, not those that were asked for.
    """

    def layer(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int) -> Tensor:
        n, outputs = len(query), []
        for start in starts(n, block):
            end = min(n, start + block)
            first, last = keys(start, end, radius, n)
            k, v = key[first:last], value[first:last]
            i = torch.arange(end - start, device=key.device)[:, None] + start * numbered
            j = torch.arange(len(k) if clipped else last - first, device=key.device) + first * numbered
            outputs.append(attend(query[start:end], k, v, mask=seen(i, j, radius, block)).output)
        return torch.cat(outputs) if outputs else value[:0]

    return layer


def _zeros_at_the_ends(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int) -> Tensor:
    """Keys and values are padded with zeros, which take weight."""
    k, v = (pad(x, (0, 0, radius, radius)) for x in (key, value))
    outputs = []
    for start in range(0, len(query), block):
        q = query[start : start + block]
        near = slice(start, start + len(q) + 2 * radius)
        i = torch.arange(len(q), device=q.device)[:, None] + radius
        j = torch.arange(len(q) + 2 * radius, device=q.device)
        outputs.append(attend(q, k[near], v[near], mask=(i - j).abs() <= radius).output)
    return torch.cat(outputs)


def _all_keys_each_time(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int) -> Tensor:
    return _in_slices(keys=lambda start, end, radius, n: (0, n))(query, key, value, radius, block)


def _written_in_place(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int) -> Tensor:
    """A tensor stands ready; the last block overlaps the one before it."""
    n, made = len(query), torch.empty_like(value)
    for start in range(0, n, block):
        start = max(0, min(start, n - block))
        end = min(n, start + block)
        left = max(0, start - radius)
        near = slice(left, end + radius)
        band = torch.ones(end - start, len(key[near]), dtype=torch.bool, device=key.device)
        shift = start - left
        band = band.tril(shift + radius).triu(shift - radius)
        made[start:end] = attend(query[start:end], key[near], value[near], mask=band).output
    return made


ONE_BY_ONE = (
    "the numbers are right, but there is a call for each frame, as in an RNN; give `block` queries to one"
    " call, so that a large block makes few calls"
)


class _Calls(TorchFunctionMode):
    """Counts the calls of torch inside a `with`."""

    count = 0

    def __torch_function__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return operation(*args, **(kwargs or {}))


def _few_calls(answer: Callable) -> str | None:
    """A sentence, where a block that holds all frames takes more calls, the more frames, or where work grows
    with their square."""
    counts = []
    for n in (64, 512):
        x = drawn(1, n, 2)
        with _Calls() as made:
            answer(x, x, x, 4, n)
        counts.append(made.count)
    return ONE_BY_ONE if counts[1] > 3 * counts[0] else _squared(lambda x: answer(x, x, x, 4, 16))


def _in_blocks(seed: int, n: int, d_k: int, d_v: int, radius: int, block: int) -> Case:
    return {**_spoken(seed, n, d_k, d_v, radius), "block": block}


by_block = Write(
    name="block_by_block",
    title="Block by block, without a table",
    stars=3,
    minutes=15,
    why="these ten lines are what makes an hour of speech fit: only what is in reach is ever computed",
    asked=(
        "attention with the window `radius`, block after block: `block` queries at a time are given to"
        " `attend`, with the keys and values in their reach, and no others; all outputs in one tensor (n,"
        " d_v); no table of n x n, no mask of n x n"
    ),
    stages=(
        Stage(
            "four frames in blocks of two, radius 1, all scores 0",
            lambda: [{**_equal([6.0, 12.0, 30.0, 18.0], 1), "block": 2}],
            "The second frame, the last of its block, hears the first of the next: (6 + 12 + 30) / 3 = 16."
            " All four: 9, 16, 20, 24.",
        ),
        Stage(
            "six frames, blocks of three, radius 1",
            lambda: [{**_equal([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1), "block": 3}],
            "The keys of a block reach from start - radius up to, not including, end + radius; inside, each"
            " query has its own window.",
        ),
        Stage(
            "seven frames, blocks of three: the last one is short",
            lambda: [{**_equal([2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0], 2), "block": 3}],
            "n need not be a multiple of the block: the last block has one frame.",
        ),
        Stage(
            "a radius greater than the block, greater than n, and 0",
            lambda: [
                _in_blocks(1, 9, 2, 2, 4, 2),
                _in_blocks(11, 5, 2, 3, 20, 2),
                _in_blocks(21, 5, 2, 2, 0, 3),
            ],
            "A window may reach over several blocks. In front of the first frame and behind the last there is"
            " nothing: max(0, ...), min(n, ...).",
        ),
        Stage(
            "eleven frames with drawn numbers, blocks of four; a block for all",
            lambda: [_in_blocks(31, 11, 3, 2, 3, 4), _in_blocks(41, 5, 3, 2, 2, 16)],
            "The result must be attend's with the mask window(n, radius), at the ends and where blocks meet.",
        ),
    ),
    reference=_by_mask,
    extra=_few_calls,
    hints=(
        (
            "A block holds the queries start ... end - 1. Which is the first key that any of them sees, and"
            " which the last?"
        ),
        "What does key[-2:5] give in Python, where start - radius is -2? And what key[3:12] of nine keys?",
        (
            "In the slice of keys, which row is frame number j? Make i and j as the frames' own numbers, and"
            " let (i[:, None] - j).abs() <= radius be the mask. What is its shape?"
        ),
    ),
    solution=source_of(block_by_block),
    remember=(
        "a block of queries needs block + 2 radius keys: n / block calls, each of a fixed size, so time and"
        " memory grow as n, and the ends need no filler"
    ),
    slips={
        "the mask is missing: each query sees all keys of the slice; inside a block, too, each has its own window": _in_slices(
            seen=lambda i, j, radius, block: torch.ones_like(i - j, dtype=torch.bool)
        ),
        "each block hears only itself: frames of the neighbouring blocks are in reach": _in_slices(
            keys=lambda start, end, radius, n: (start, end)
        ),
        "the end of the block before is forgotten: keys begin at start - radius": _in_slices(
            keys=lambda start, end, radius, n: (start, min(n, end + radius))
        ),
        "the beginning of the block behind is forgotten: keys end at end + radius": _in_slices(
            keys=lambda start, end, radius, n: (max(0, start - radius), end)
        ),
        "one key too few on the right: a slice ends BEFORE its end, so end + radius": _in_slices(
            keys=lambda start, end, radius, n: (max(0, start - radius), min(n, end - 1 + radius))
        ),
        "one key too few on the left: the first query sees back to start - radius, itself included": (
            _in_slices(keys=lambda start, end, radius, n: (max(0, start - radius + 1), min(n, end + radius)))
        ),
        "a slice that begins below 0 counts from the END, and one that ends behind the last frame is shorter than asked for: max(0, start - radius), min(n, end + radius)": _in_slices(
            keys=lambda start, end, radius, n: (start - radius, min(n, end + radius)), clipped=False
        ),
        "you count the mask's rows and columns from 0 in each slice; the first key is not the first query: use the frames' numbers": _in_slices(
            numbered=False
        ),
        "the last frames are missing: the last block may be short, so go on while start < n": _in_slices(
            starts=lambda n, block: range(0, n - block + 1, block)
        ),
        "the farthest key on each side is missing: |i - j| <= radius, not <": _in_slices(
            seen=lambda i, j, radius, block: (i - j).abs() < radius
        ),
        "only what was earlier is heard; the window reaches to both sides": _in_slices(
            seen=lambda i, j, radius, block: (j <= i) & (i - j <= radius)
        ),
        "only what comes later is heard; the window reaches to both sides": _in_slices(
            seen=lambda i, j, radius, block: (j >= i) & (j - i <= radius)
        ),
        "you take `block` for the radius: how many queries are worked on at once must not change the result": _in_slices(
            keys=lambda start, end, radius, n: (0, n),
            seen=lambda i, j, radius, block: (i - j).abs() <= block,
        ),
        "zeros at the ends take weight: in front of the first frame and behind the last there is no key at all": (
            _zeros_at_the_ends
        ),
        "that is full attention: a key farther away than `radius` must be left out": (
            lambda q, k, v, radius, block: attend(q, k, v).output
        ),
        "the window is there, but softmax is not: hidden scores of 0 take weight; give the mask to attend": (
            lambda q, k, v, radius, block: (
                ((q @ k.mT / q.shape[-1] ** 0.5) * window(len(q), radius, device=q.device)).softmax(-1) @ v
            )
        ),
        TABLE: _all_keys_each_time,
        ONE_BY_ONE: lambda query, key, value, radius, block: _sliced(query, key, value, radius),
    },
    right=(
        _in_slices(),
        _written_in_place,
        lambda query, key, value, radius, block: attend_window(query, key, value, radius),
    ),
)
