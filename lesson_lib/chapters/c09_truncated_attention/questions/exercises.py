"""What of the chapter's exercises is code; their words are in exercises.md."""

import random
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Draw
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.questions import Code
from lesson_lib.device import on
from lesson_lib.masks import window
from lesson_lib.measure import operations, peak_mib
from lesson_lib.truncated import attend_window

RADIUS = 15


FRAMES = (500, 1000, 1500)


def full_masked_window() -> dict[str, tuple[list[int], list[float]]]:
    """For full attention, a mask over its table, and a window: multiplications, and MiB at the peak (on the
    CPU), for each of FRAMES."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for n in FRAMES:
        x = drawn(9, 1, 1, n, 16)
        mask = window(n, RADIUS, device=x.device)
        calls = {
            "full attention": lambda x=x: attend(x, x, x),
            "mask over the table": lambda x=x, mask=mask: attend(x, x, x, mask=mask),
            "window, cut into blocks": lambda x=x: attend_window(x, x, x, RADIUS),
        }
        for name, call in calls.items():
            multiplications, mib = found.setdefault(name, ([], []))
            multiplications.append(operations(call))
            with on("cpu"):
                mib.append(peak_mib(call))
    return found


def _savings_picture() -> Any:
    from lesson_lib import charts

    found = full_masked_window()
    return charts.lines(
        {
            "million multiplications": {
                name: (FRAMES, [count / 1e6 for count in counts]) for name, (counts, _) in found.items()
            },
            "MiB at the peak": {name: (FRAMES, mib) for name, (_, mib) in found.items()},
        },
        alt=(
            "Two panels over 500 to 1,500 frames. Multiplications: full attention and the mask over the table"
            " are one curve, the window stays near 0. Memory: the mask over the table is highest, then full"
            " attention, the window stays near 0."
        ),
        caption=(
            f"One head of width 16, radius {RADIUS}. A mask hides scores after they are computed. Only where"
            " far keys are never asked is something saved."
        ),
        x_axis="frames",
        y_limits=(0.0, None),
    )


def layers_until(
    i: Int[Tensor, " pairs"], j: Int[Tensor, " pairs"], before: int, after: int
) -> Int[Tensor, " pairs"]:
    back = (i - j + before - 1) // before  # // rounds down: add almost a layer
    ahead = (j - i + after - 1) // after
    return torch.where(j < i, back, ahead)


def _layer_by_layer(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    """What is heard grows by both reaches in each layer; counted until it holds j."""
    first, last, layers = i, i, torch.zeros_like(i)
    while not ((first <= j) & (j <= last)).all():
        layers = layers + ~((first <= j) & (j <= last))
        first, last = first - before, last + after
    return layers


def _doubled(i: Tensor, j: Tensor, before: int, after: int) -> Tensor:
    """Twice as far with each layer."""
    layers, back, ahead = torch.zeros_like(i), 0, 0
    while (unheard := (i - j > back) | (j - i > ahead)).any():
        layers = layers + unheard
        back, ahead = max(before, 2 * back), max(after, 2 * ahead)
    return layers


def _whole(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device="cpu")


def _heard(i: list[int], j: list[int], before: int, after: int) -> Case:
    return {"i": _whole(*i), "j": _whole(*j), "before": before, "after": after}


def _more_layers_until(drawn: Draw) -> list[Case]:
    i, j = (9 * drawn(1, 11)).long() + 50, (9 * drawn(2, 11)).long() + 50
    return [
        {"i": i, "j": j, "before": 4, "after": 3},
        {"i": i, "j": j, "before": 2, "after": 7},
    ]


def dilated_window(
    queries: Int[Tensor, " n"], keys: Int[Tensor, " m"], radius: int, step: int
) -> Bool[Tensor, "n m"]:
    away = keys - queries[:, None]  # (n, m): how many frames later the key stands
    return (away % step == 0) & (away.abs() <= radius * step)


def _offset_by_offset(queries: Tensor, keys: Tensor, radius: int, step: int) -> Tensor:
    """One offset after the other, from -radius to radius steps."""
    seen = torch.zeros(len(queries), len(keys), dtype=torch.bool, device=queries.device)
    for steps in range(-radius, radius + 1):
        seen = seen | (keys == queries[:, None] + steps * step)
    return seen


def _frames(queries: range, keys: range, radius: int, step: int) -> Case:
    return {"queries": _whole(*queries), "keys": _whole(*keys), "radius": radius, "step": step}


def _more_dilated_window(drawn: Draw) -> list[Case]:
    queries, keys = (5 * drawn(1, 6)).long() + 50, (5 * drawn(2, 17)).long() + 50
    return [
        {"queries": queries, "keys": keys, "radius": 3, "step": 2},
        {"queries": torch.arange(13), "keys": torch.arange(13), "radius": 2, "step": 4},
    ]


def _recording(drawn, n, d_k, d_v, radius):
    query, key, value = drawn(n, n, d_k), drawn(n + 1, n, d_k), drawn(n + 2, n, d_v)
    return {"query": query, "key": key, "value": value, "radius": radius}


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


def _more_near_blocks(drawn: Draw) -> list[Case]:
    return [
        _recording(drawn, 13, 5, 3, radius=4),
        _recording(drawn, 17, 3, 5, radius=3),
    ]


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


def _more_block_by_block(drawn: Draw) -> list[Case]:
    return [
        {**_recording(drawn, 13, 5, 3, radius=4), "block": 5},
        {**_recording(drawn, 17, 3, 5, radius=2), "block": 4},
    ]


def _table_for_an_hour_numbers(draw: random.Random) -> dict[str, Any]:
    minutes, ms = draw.choice([10, 15, 20, 30, 45, 90, 120]), draw.choice([10, 20, 40])
    heads = draw.choice([4, 6, 12, 16])
    kind, size, other = draw.choice([("float32", 4, 2), ("float16", 2, 4)])
    a_second = 1000 // ms
    frames = 60 * minutes * a_second
    value = heads * size * frames**2 / 2**30
    wrong_1 = f"{heads} * {size} * ({minutes} * 60 * {a_second})**2 / 1024**3"
    wrong_2 = f"{heads} * {size} * ({minutes} * {a_second})**2 / 2**30"
    wrong_3 = f"{heads} * {size} * ({minutes} * 60 * {ms})**2 / 2**30"
    wrong_4 = f"{heads} * {size} * ({minutes} * 60 * 1000)**2 / 2**30"
    return locals()


def _streaming_latency_numbers(draw: random.Random) -> dict[str, Any]:
    ms, back = draw.choice([10, 20]), draw.choice([16, 32, 64])
    kept, every = draw.choice([("second", 2), ("third", 3), ("fourth", 4)])
    low, near = draw.choice([2, 3, 4]), draw.choice([3, 4, 5, 6])
    high, far = draw.choice([4, 5, 6, 8]), draw.choice([2, 3, 4])
    token = every * ms
    below, above = low * near * ms, high * far * token
    wrong_1 = f"{low}*{back + near}*{ms} + {high}*{back + far}*{token}"
    wrong_2 = f"{low}*{near + 1}*{ms} + {high}*{far + 1}*{token}"
    return locals()


CODE = {
    "table_for_an_hour_2": Code(
        draw=_table_for_an_hour_numbers,
    ),
    "what_a_mask_saves": Code(
        picture=_savings_picture,
    ),
    "layers_until": Code(
        solution=layers_until,
        cases=(
            lambda: [_heard([10, 10, 10], [9, 7, 4], 3, 3)],
            lambda: [_heard([10, 10, 10, 10], [6, 5, 3, 0], 3, 3)],
            lambda: [_heard([10, 10, 10], [11, 13, 17], 3, 3)],
            lambda: [_heard([10, 10, 10, 10], [0, 4, 14, 20], 5, 2), _heard([10, 3], [3, 10], 1, 4)],
            lambda: [_heard([7, 0, 999, 1000], [7, 1000, 0, 1000], 15, 4)],
        ),
        wrong=(_doubled,),
        reference=_layer_by_layer,
        hidden=_more_layers_until,
    ),
    "streaming_latency_2": Code(
        draw=_streaming_latency_numbers,
    ),
    "dilated_window": Code(
        solution=dilated_window,
        cases=(
            lambda: [_frames(range(4, 5), range(9), 2, 1)],
            lambda: [_frames(range(4, 5), range(9), 1, 2), _frames(range(4, 5), range(9), 2, 2)],
            lambda: [_frames(range(5, 6), range(9), 1, 3)],
            lambda: [_frames(range(7), range(7), 2, 2), _frames(range(7), range(7), 0, 3)],
            lambda: [_frames(range(100, 105), range(97, 108), 1, 3), _frames(range(3, 8), range(2), 2, 3)],
        ),
        reference=_offset_by_offset,
        hidden=_more_dilated_window,
    ),
    "near_blocks": Code(
        solution=near_blocks,
        cases=(
            lambda: [_equal([6.0, 12.0, 30.0], 1)],
            lambda: [_equal([2.0, 4.0, 6.0, 8.0, 10.0], 2)],
            lambda: [_equal([7.0], 1), _equal([3.0, 9.0, 6.0], 5)],
            lambda: [_spoken(1, 7, 3, 2, 2), _spoken(11, 9, 2, 3, 3), _spoken(21, 8, 2, 2, 2)],
        ),
        wrong=(_by_mask,),
        reference=_by_mask,
        hidden=_more_near_blocks,
        extra=lambda answer: _squared(lambda x: answer(x, x, x, 8)),
    ),
    "block_by_block": Code(
        solution=block_by_block,
        cases=(
            lambda: [{**_equal([6.0, 12.0, 30.0, 18.0], 1), "block": 2}],
            lambda: [{**_equal([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1), "block": 3}],
            lambda: [{**_equal([2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0], 2), "block": 3}],
            lambda: [
                _in_blocks(1, 9, 2, 2, 4, 2),
                _in_blocks(11, 5, 2, 3, 20, 2),
                _in_blocks(21, 5, 2, 2, 0, 3),
            ],
            lambda: [
                _in_blocks(31, 11, 3, 2, 3, 4),
                _in_blocks(41, 5, 3, 2, 2, 16),
                _in_blocks(51, 8, 3, 3, 2, 3),
            ],
        ),
        reference=_by_mask,
        hidden=_more_block_by_block,
        extra=_few_calls,
    ),
}
