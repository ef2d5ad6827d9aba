"""Exercises of lesson 09, what if the input is long? Tables, windows, layers, latency, blocks.

In the learner's order. A slip is a sentence and the wrong answer that it is told to: a number, a letter, or an edit of
the solution's text (old, new).
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

from lesson_lib.attention import attend
from lesson_lib.chapters.c09_truncated_attention import long_input, seconds
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.short import Choice, Number, Open
from lesson_lib.device import on
from lesson_lib.masks import window
from lesson_lib.measure import operations, peak_mib
from lesson_lib.truncated import attend_window

hour = Number(
    name="table_for_an_hour",
    second=lambda n: seconds.table_for_an_hour(hour, n),
    title="A table for an hour of speech",
    stars=1,
    minutes=5,
    why=(
        "whoever knows this number does not wonder why a recogniser that runs on ten seconds dies on a"
        " lecture"
    ),
    asked=(
        "an hour of speech, a frame every 10 ms; one layer of full attention with 6 heads keeps its weights"
        " as float32: how many GiB (2^30 bytes) are they?"
    ),
    value=6 * 4 * 360_000**2 / 2**30,
    hints=(
        "How many frames has a second, and how many an hour?",
        (
            "How many weights has the table of one head, a row for each query and a column for each key? And"
            " how many tables are there?"
        ),
        "How many bytes is a float32? And by what must bytes be divided to be GiB?",
    ),
    solution=(
        "100 frames a second are 360,000 in an hour; a table has 360,000^2 = 1.296e11 weights, six of them"
        " 7.776e11, each of 4 bytes: 3.11e12 bytes. Divided by 2^30 that is 2,897 GiB, for one layer."
    ),
    remember=(
        "a table has n^2 weights for each head: ten times the speech, a hundred times the memory; an hour is"
        " 2,897 GiB here"
    ),
    slips={
        "that is the table of one head; each of the 6 has its own, however narrow it is": (
            "4 * 360000**2 / 2**30"
        ),
        "that is the number of weights in units of 2^30; each is 4 bytes": "6 * 360000**2 / 2**30",
        "a byte has 8 bits; a float32 has 32 bits, which are 4 bytes, not 32": "6 * 32 * 360000**2 / 2**30",
        "a float32 is 32 bits or 4 bytes, not 32 bytes; and there are 6 heads": "32 * 360000**2 / 2**30",
        "that is in GB, units of 10^9 bytes; a GiB is 2^30 = 1.074e9 bytes": "6 * 4 * 360000**2 / 10**9",
        "that is in GB, units of 10^9 bytes, and of one head": "4 * 360000**2 / 10**9",
        "that is in MiB; a GiB has 1,024 of them": "6 * 4 * 360000**2 / 2**20",
        "that is in TiB; asked is GiB": "6 * 4 * 360000**2 / 2**40",
        "that is in bytes; a GiB is 2^30 of them": "6 * 4 * 360000**2",
        "half of it: either two bytes for each weight, or half of the table; float32 has 4, and without a causal mask all pairs count": (
            "6 * 2 * 360000**2 / 2**30"
        ),
        "twice as much: a float32 has 4 bytes, not 8, and one table of weights is asked for": (
            "6 * 8 * 360000**2 / 2**30"
        ),
        "an hour has 3,600 seconds, not 60": "6 * 4 * 6000**2 / 2**30",
        "a frame every 10 ms makes 100 a second, not 10": "6 * 4 * 36000**2 / 2**30",
        "a frame every 10 ms makes 100 a second, not 1,000": "6 * 4 * 3600000**2 / 2**30",
        "one weight for each frame; but there is one for each PAIR of frames, n^2": "6 * 4 * 360000 / 2**30",
    },
    answer="6 * 4 * (3600 * 100)**2 / 1024**3",
)


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


saves = Choice(
    name="what_a_mask_saves",
    title="What does a mask save? Predict the picture",
    stars=1,
    minutes=5,
    why=(
        '"our attention is local, so it is linear": code that says so may still compute every score, and hide'
        " most of them"
    ),
    asked=(
        "attend(q, k, v, mask=window(n, 15)) in place of attend(q, k, v), n = 1,500: a frame sees 31 keys"
        " instead of 1,500. What of the multiplications and of the memory?"
    ),
    options={
        "a": "both fall to about 31 / 1,500, a fiftieth",
        "b": "the multiplications fall to a fiftieth; the memory stays, since the table is there",
        "c": (
            "the memory falls to a fiftieth; the multiplications stay, since a weight must be known before it"
            " is hidden"
        ),
        "d": "the multiplications stay; the memory even grows, since the mask is one more table",
        "e": "the multiplications of the scores stay, those of the mix fall to a fiftieth; the memory stays",
        "f": "both grow to twice as much: once for all scores, once for those in the window",
    },
    hints=(
        "In which order does attend work: does it first compute scores or first look at the mask?",
        "A hidden weight is 0. Does a matrix product leave out a multiplication by 0?",
        (
            "A table of scores (n, n) is filled with -inf where the mask says so, and the mask itself is a"
            " table, too. How many tables are there with a mask, and how many without?"
        ),
    ),
    solution=(
        "d: q @ k.mT computes all n^2 scores, then most become -inf. weights @ v multiplies all n^2 weights,"
        " zeros too. And the mask is a table of its own. To save, far keys must never be asked: cut the"
        " frames into blocks."
    ),
    remember=(
        "a mask says what does not count, it saves nothing; what saves is to ask only the keys in reach,"
        " block by block"
    ),
    slips={
        "a is what a window cut into blocks comes near; a mask over the table hides scores after they were computed": (
            "a"
        ),
        "b forgets when the mask comes in: q @ k.mT is one product over all pairs, and the mask comes behind it": (
            "b"
        ),
        "c: the table stays as large as it was; a place with -inf or 0 takes as much memory as any other": (
            "c"
        ),
        "e: a matrix product multiplies zeros like any other number, so the mix costs what it cost before": (
            "e"
        ),
        "f: the scores are computed once, and hiding some needs no product; so the multiplications do not grow": (
            "f"
        ),
    },
    answer="d",
    picture=_savings_picture,
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
    solution=layers_until,
    remember=(
        "reach adds up: layers x radius frames on each side; to hear d frames far, d / radius layers are"
        " needed, rounded up"
    ),
    slips={
        "you round down: a started layer is a whole one, since without it the frame is not heard": (
            " + before - 1",
            "",
            " + after - 1",
            "",
        ),
        "you round to the nearest number; a started layer is a whole one: round up": (
            "(i - j + before - 1) // before",
            "((i - j) / before).round().long()",
            "(j - i + after - 1) // after",
            "((j - i) / after).round().long()",
        ),
        "one layer too many where the distance is a multiple of the reach: d // reach + 1 is no rounding up": (
            "(i - j + before - 1) // before",
            "(i - j) // before + 1",
            "(j - i + after - 1) // after",
            "(j - i) // after + (j > i)",
        ),
        "one layer too many where the distance is a multiple of the reach, and a frame knows itself without any": (
            "(i - j + before - 1) // before",
            "(i - j) // before + 1",
            "(j - i + after - 1) // after",
            "(j - i) // after + 1",
        ),
        "a frame knows itself before the first layer: 0, not 1": (
            "torch.where(j < i, back, ahead)",
            "torch.where(j < i, back, ahead).clamp(min=1)",
        ),
        "these are distances in frames; divide by what a layer reaches": (
            "torch.where(j < i, back, ahead)",
            "(i - j).abs()",
        ),
        "before and after have changed places: a j greater than i comes later, and is heard by `after`": (
            "(i - j + before - 1) // before",
            "(i - j + after - 1) // after",
            "(j - i + after - 1) // after",
            "(j - i + before - 1) // before",
        ),
        "you take `before` on both sides; a later frame is heard by `after` alone": (
            "after - 1) // after",
            "before - 1) // before",
        ),
        "you take `after` on both sides; an earlier frame is heard by `before` alone": (
            "before - 1) // before",
            "after - 1) // after",
        ),
        "you divide by the whole window; towards one side a layer reaches only its own part of it": (
            "torch.where(j < i, back, ahead)",
            "((i - j).abs() + before + after - 1) // (before + after)",
        ),
        "you divide by all frames of a window, itself included; towards one side a layer reaches only its own part of it": (
            "torch.where(j < i, back, ahead)",
            "((i - j).abs() + before + after) // (before + after + 1)",
        ),
        "the own frame is no step: a layer reaches `before` frames back; divide by before, not before + 1": (
            "(i - j + before - 1) // before",
            "(i - j + before) // (before + 1)",
            "(j - i + after - 1) // after",
            "(j - i + after) // (after + 1)",
        ),
        "a negative number of layers: for a j greater than i take j - i, and `after`": (
            "torch.where(j < i, back, ahead)",
            "back",
        ),
        "your reach doubles with each layer; a window adds its reach, once in each layer": _doubled,
    },
    hidden=_more_layers_until,
)


latency = Number(
    name="streaming_latency",
    second=lambda n: seconds.streaming_latency(latency, n),
    title="How late is a live recogniser?",
    stars=2,
    minutes=6,
    why=(
        "subtitles that come a second late are of little use; the look ahead decides on that, before any"
        " processor does"
    ),
    asked=(
        "frames every 10 ms; 2 layers look 4 frames ahead; then every second token is kept, one per 20 ms,"
        " and 6 layers look 3 tokens ahead (all look 32 back): how many ms behind its own frame lies the last"
        " frame that an output needs?"
    ),
    value=440,
    hints=(
        (
            "One layer that looks 4 frames ahead must wait 4 frames. How long is that in ms, and what of two"
            " such layers, one on top of the other?"
        ),
        (
            "In the upper layers a token stands for 20 ms. How many ms ahead do 3 tokens lie, and how many"
            " all 6 layers?"
        ),
        (
            "Both parts stand one on top of the other. Are their waits added up, or does the longer one hide"
            " the shorter? And does looking back make anyone wait?"
        ),
    ),
    solution=(
        "below: 2 layers * 4 frames * 10 ms = 80 ms. Above: 6 layers * 3 tokens * 20 ms = 360 ms. Reach adds"
        " up over layers: 440 ms. Looking back costs no wait, those frames were already there; computing"
        " takes its time on top."
    ),
    remember=(
        "latency = sum over layers of look-ahead x time per token; what lies behind makes no one wait, and a"
        " deep model needs a small look-ahead"
    ),
    slips={
        "above, a token stands for 20 ms, since every second one was left out": "2*4*10 + 6*3*10",
        "below, a frame stands for 10 ms; 20 ms are between tokens after every second one was left out": (
            "2*4*20 + 6*3*20"
        ),
        "you counted one layer of each kind; each layer on top waits for what the layer below waited for": (
            "4*10 + 3*20"
        ),
        "that is the part above; the two layers below look ahead, too": "6*3*20",
        "that is the part below; the six layers above look ahead, too": "2*4*10",
        "the waits of layers are added up; the longest single one is not enough": 60,
        "these are frames and tokens; asked is ms": 26,
        "that is in frames of 10 ms; asked is ms": 44,
        "that is in seconds; asked is ms": 0.44,
        "frames that were there before make no one wait; only what lies ahead counts": "2*32*10 + 6*32*20",
        "frames that were there before make no one wait; only what lies ahead counts, not the whole window": (
            "2*36*10 + 6*35*20"
        ),
        "you gave all 8 layers the look-ahead of the lower ones": "2*4*10 + 6*4*20",
        "you gave all 8 layers the look-ahead of the upper ones": "2*3*10 + 6*3*20",
        "reaches of layers add up, they do not multiply": "4**2 * 10 + 3**6 * 20",
        "in a layer the frame itself is already there: it waits for 4 or 3 further ones, not for 5 or 4": (
            "2*5*10 + 6*4*20"
        ),
    },
    answer="2*4*10 + 6*3*20",
)


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


dilated = Write(
    name="dilated_window",
    title="A window with gaps",
    stars=2,
    minutes=8,
    why=(
        "as many keys as before, a reach step times as far: this is how sparse attention hears far at the price of a small window"
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
    solution=dilated_window,
    remember=(
        "a dilated window asks 2 radius + 1 keys and reaches radius * step frames; what lies in its gaps it"
        " does not hear"
    ),
    slips={
        "radius counts steps, so the window reaches radius * step frames": ("radius * step", "radius"),
        "there are no gaps: this is a plain window that reaches radius * step": ("(away % step == 0) & ", ""),
        "there are no gaps, and it reaches only `radius` frames: `step` is not used": (
            "(away % step == 0) & (away.abs() <= radius * step)",
            "away.abs() <= radius",
        ),
        "you keep the keys whose NUMBER is a multiple of step; steps are counted from the query, so take the difference": (
            "away % step",
            "keys % step",
        ),
        "you keep the queries whose number is a multiple of step; every query has a window, and steps are counted from it": (
            "away % step",
            "queries[:, None] % step",
        ),
        "the farthest key on each side is missing: <=, not <": ("<=", "<"),
        "the frame itself is missing: a difference of 0 is in the window": (
            "(away % step == 0)",
            "(away % step == 0) & (away != 0)",
        ),
        "only what was earlier is seen; the window reaches to both sides": (
            "radius * step)",
            "radius * step) & (away <= 0)",
        ),
        "only what comes later is seen; the window reaches to both sides": (
            "radius * step)",
            "radius * step) & (away >= 0)",
        ),
        "the sides have no end: differences below -radius * step are also too far, so take .abs()": (
            "away.abs()",
            "away",
        ),
        "your mask is the other way round: True means may look": ("==", "!=", "&", "|", "<=", ">"),
        "you compare places in `queries` and `keys`; their frames' numbers may begin anywhere": (
            "keys -",
            "torch.arange(len(keys), device=keys.device) -",
            "queries[:",
            "torch.arange(len(queries), device=keys.device)[:",
        ),
        "between the steps there are gaps; you let whole groups of frames in, by // instead of %": (
            "(away % step == 0) & (away.abs() <= radius * step)",
            "(away // step).abs() <= radius",
        ),
        "one step too many on each side: i - radius * step is the first": (
            "radius * step",
            "(radius + 1) * step",
        ),
    },
    hidden=_more_dilated_window,
)


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


near = Write(
    name="near_blocks",
    title="Zeros that take weight: a repair",
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
    repair=True,
    stages=(
        Stage(
            "three frames, radius 1, all scores 0",
            lambda: [_equal([6.0, 12.0, 30.0], 1)],
            "The first frame has two keys, itself and the next: (6 + 12) / 2 = 9. The others: 16 and 21."
            " Filler is hidden as a KEY, by j; hidden as a query, by i, it still takes weight.",
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
    solution=near_blocks,
    remember=(
        "a key of zeros has the score 0, and its weight is exp(0) = 1 before the division: whatever is filled"
        " in must be hidden"
    ),
    slips={
        "this is still the function as it was given, or gives the same: the filler must be hidden among the KEYS, by j": (
            "((i - j).abs() <= radius) & (0 <= j) & (j < n)",
            "(i - j).abs() <= radius",
        ),
        "the filler in front is hidden, that at the end is not: j < n": (" & (j < n)", ""),
        "the filler at the end is hidden, that in front is not: j >= 0": (" & (0 <= j)", ""),
        "the filler behind the last block is hidden, but that inside it is not: frames end at n, not at count * radius": (
            "j < n",
            "j < count * radius",
        ),
        "frame n is filler, too: frames are counted from 0 to n - 1, so j < n": ("j < n", "j <= n"),
        "frame 0 is a real one: hide j below 0, not 0 itself": ("0 <= j", "0 < j"),
        "the filler is hidden, but each frame now sees all of the three blocks: |i - j| <= radius must hold, too": (
            "((i - j).abs() <= radius) & ",
            "",
        ),
        "frame n - 1 is a real one, the last: j < n": ("j < n", "j < n - 1"),
        "j already counts from the first frame, not from the filler in front of it: real keys are 0 to n - 1": (
            "0 <= j",
            "radius <= j",
            "j < n",
            "j < n + radius",
        ),
        "the filler is hidden, but now the farthest key on each side is, too: |i - j| <= radius, not <": (
            "abs() <= radius",
            "abs() < radius",
        ),
        "the window was not too wide, |i - j| <= radius is right; the filler must be hidden, by j": (
            "((i - j).abs() <= radius) & (0 <= j) & (j < n)",
            "(i - j).abs() < radius",
        ),
        "the filler is hidden, but later keys are seen however far they are: a distance has no sign, .abs()": (
            "(i - j).abs()",
            "i - j",
        ),
        "the filler is hidden, but earlier keys are seen however far they are: a distance has no sign, .abs()": (
            "(i - j).abs()",
            "j - i",
        ),
        "the filler is hidden, but later keys are hidden with it: the window reaches to both sides": (
            "j < n",
            "j <= i",
        ),
        "the block before is forgotten: its last frames are in reach": (
            "0 <= j",
            "i // radius <= j // radius",
        ),
        "the block behind is forgotten: its first frames are in reach": (
            "(j < n)",
            "(j < n) & (j // radius <= i // radius)",
        ),
        "each block sees itself alone; frames of the two blocks beside it are in reach": (
            "0 <= j",
            "i // radius == j // radius",
        ),
        "a key of zeros may be a real one (silence, say); its number tells filler from frames, not its values": (
            "(0 <= j) & (j < n)",
            "(k != 0).any(-1)[:, None]",
        ),
        "you scale the output up by the number of keys; but weights differ, and filler takes exp(0), not an equal part: hide it": (
            " & (0 <= j) & (j < n)",
            "\n    real = (seen & (0 <= j) & (j < n)).sum(-1)",
            "[:n]",
            "[:n] * (2 * radius + 1) / real.view(-1, 1)[:n]",
        ),
        TABLE: _by_mask,
        "the filler is hidden, but each frame now sees one key more on each side: |i - j| <= radius": (
            "abs() <= radius",
            "abs() <= radius + 1",
        ),
        **exchanged("n = len(query)"),
        "each frame sees one key more on each side than the window has, beyond its three blocks, too: |i - j| <= radius": (
            "    return attend(q, k, v, mask=seen",
            "    far = (torch.arange(n)[:, None] - torch.arange(n)).abs()\n"
            "    return attend(query, key, value, mask=far <= radius + 1).output\n"
            "    return attend(q, k, v, mask=seen",
        ),
        "your mask is the other way round: True means may look": ("mask=seen", "mask=~seen"),
    },
    hidden=_more_near_blocks,
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
            lambda: [
                _in_blocks(31, 11, 3, 2, 3, 4),
                _in_blocks(41, 5, 3, 2, 2, 16),
                _in_blocks(51, 8, 3, 3, 2, 3),
            ],
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
    solution=block_by_block,
    remember=(
        "a block of queries needs block + 2 radius keys: n / block calls, each of a fixed size, so time and"
        " memory grow as n, and the ends need no filler"
    ),
    slips={
        "the mask is missing: each query sees all keys of the slice; inside a block, too, each has its own window": (
            "mask=seen, ",
            "",
        ),
        "each block hears only itself: frames of the neighbouring blocks are in reach": (
            "max(0, start - radius), min(n, end + radius)",
            "start, end",
        ),
        "the end of the block before is forgotten: keys begin at start - radius": (
            "max(0, start - radius)",
            "start",
        ),
        "the beginning of the block behind is forgotten: keys end at end + radius": (
            "min(n, end + radius)",
            "end",
        ),
        "one key too few on the right: a slice ends BEFORE its end, so end + radius": (
            "end + radius",
            "end - 1 + radius",
        ),
        "one key too few on the left: the first query sees back to start - radius, itself included": (
            "start - radius",
            "start - radius + 1",
        ),
        "a slice that begins below 0 counts from the END, and one that ends behind the last frame is shorter than asked for: max(0, start - radius), min(n, end + radius)": (
            "max(0, start - radius)",
            "start - radius",
        ),
        "you count the mask's rows and columns from 0 in each slice; the first key is not the first query: use the frames' numbers": (
            "arange(start, end",
            "arange(end - start",
            "arange(first, last",
            "arange(last - first",
        ),
        "you number keys from start - radius, but a slice cut at frame 0 begins there: count from `first`": (
            "arange(start, end",
            "arange(end - start",
            "arange(first, last",
            "arange(-radius, last - first - radius",
        ),
        "the last frames are missing: the last block may be short, so go on while start < n": (
            "range(0, n, block)",
            "range(0, n - block + 1, block)",
        ),
        "the farthest key on each side is missing: |i - j| <= radius, not <": ("<= radius", "< radius"),
        "only what was earlier is heard; the window reaches to both sides": (
            "mask=seen",
            "mask=seen & (j <= i[:, None])",
        ),
        "only what comes later is heard; the window reaches to both sides": (
            "mask=seen",
            "mask=seen & (j >= i[:, None])",
        ),
        "you take `block` for the radius: how many queries are worked on at once must not change the result": (
            "start - radius",
            "start - block",
            "end + radius",
            "end + block",
            "<= radius",
            "<= block",
        ),
        "zeros at the ends take weight: in front of the first frame and behind the last there is no key at all": (
            "max(0, start - radius), min(n, end + radius)",
            "start - radius, end + radius",
            "key[first:last]",
            "pad(key, (0, 0, radius, radius))[start : end + 2 * radius]",
            "value[first:last]",
            "pad(value, (0, 0, radius, radius))[start : end + 2 * radius]",
        ),
        "that is full attention: a key farther away than `radius` must be left out": (
            "max(0, start - radius), min(n, end + radius)",
            "0, n",
            "mask=seen, ",
            "",
        ),
        "the window is there, but softmax is not: hidden scores of 0 take weight; give the mask to attend": (
            "max(0, start - radius), min(n, end + radius)",
            "0, n",
            "attend(q, k, v, mask=seen, weights=False).output",
            "(q @ k.mT / q.shape[-1] ** 0.5 * seen).softmax(-1) @ v",
        ),
        TABLE: ("max(0, start - radius), min(n, end + radius)", "0, n"),
        ONE_BY_ONE: ("range(0, n, block)", "range(n)", "start + block", "start + 1"),
        "your window is one frame too wide on each side, slices and mask: |i - j| <= radius": (
            "start - radius",
            "start - radius - 1",
            "end + radius",
            "end + radius + 1",
            "<= radius",
            "<= radius + 1",
        ),
        "the mask lets in one frame more on each side, where the slice has it: |i - j| <= radius": (
            "<= radius",
            "<= radius + 1",
        ),
        **exchanged("n, outputs = len"),
        "your mask is the other way round: True means may look": ("mask=seen", "mask=~seen"),
    },
    hidden=_more_block_by_block,
)


beyond = Open(
    name="beyond_every_window",
    title="What no training brings near. In your own words",
    stars=2,
    minutes=7,
    why=(
        "a model that cannot hear something looks exactly like one that has not learned it yet; the"
        " difference is worth days of training"
    ),
    asked=(
        "in two or three sentences: 3 layers of window attention, radius 15; a label depends on a sound 100"
        " frames earlier. Why does the model stay at chance on it, however long it is trained, and what would"
        " you change?"
    ),
    hints=(
        "After one layer a frame knows of 15 frames on each side. Of how many after three?",
        (
            "If the sound is changed, by how much does the output 100 frames later change? So what is the"
            " gradient of the loss with respect to that sound?"
        ),
        (
            "How many layers would be enough, or which radius? What else carries something over 100 frames,"
            " without a table of all pairs?"
        ),
    ),
    solution=(
        "Three layers of radius 15 reach 45 frames, and the sound is 100 frames away, outside of the"
        " receptive field. The output does not depend on it, so the gradient towards it is exactly 0, and"
        " nothing can be learned from it. Seven layers reach 105 frames; a larger radius, gaps in the window,"
        " or a token that sees and is seen by all would do it, too."
    ),
    remember=(
        "layers x radius is how far a model hears; beyond it the gradient is exactly 0, and only another"
        " structure helps: layers, radius, gaps, global tokens"
    ),
    slips={
        "no training helps: the output does not depend on that sound, so no step of training can use it": (
            r"(more|longer|better|enough) (training|steps|epochs|data|examples|recordings)|train\w* (it"
            r" )?(longer|more)|learning rate"
        ),
        "a wider model hears no farther: reach is layers x radius, whatever the width and the number of heads": (
            r"(more|further|extra|additional)"
            r" (heads|parameters|weights|neurons)|(wider|bigger|larger|greater)"
            r" (model|network|layers?|width|d_model|embedding|hidden)"
        ),
        "outside of the reach nothing is small: the gradient is exactly 0, not one that has become small on a long way": (
            r"vanish|explod|(gradients?|signals?|weights?|influence|attention) (\w+"
            r" ){0,3}(small|tiny|weak|low|diluted|fades?|decays?|shrinks?)"
        ),
        "nothing is forgotten here: there is no state that could forget, the sound was never heard": (
            r"\bforg[eo]t|(loses?|lost|fades? from) (\w+ ){0,2}memory|memor(y|ies) (\w+ )?(fades?|lost|short)"
        ),
        "the radius is that of one layer; three layers, one on top of the other, hear 45 frames far": (
            r"^(?!.*\blayer).*\b(model|network|recogni[sz]er|it|frame|output|token) (\w+"
            r" ){0,2}(hears?|sees?|reach(es)?|looks?|knows?) (\w+ ){0,4}15\b"
        ),
        "positions say where a frame stands that is heard; this one is not heard at all": (
            r"position(al)?s? (encod|embed|are|is|missing|information|vectors?)|rotary"
        ),
    },
    points=(
        "how far do three layers hear, and where is the sound?",
        "what does the training learn of that sound? Think of the gradient, or of what the output depends on",
        "what would you change, so that it is heard?",
    ),
)


EXERCISES = (*long_input.ASKED, hour, saves, until, latency, dilated, near, by_block, beyond)
