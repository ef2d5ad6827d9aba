"""Second problems of chapter 09: windows that look back only, other recordings and recognisers."""

import random
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Number, fresh


def keys_of_blocks_2(
    x: Float[Tensor, "n d"],
    radius: int,
    block: int,
) -> Float[Tensor, "blocks stretch d"]:
    filled = F.pad(x, (0, 0, radius, -len(x) % block))
    starts = range(0, len(x), block)
    return torch.stack([filled[start : start + radius + block] for start in starts])


def _rows(values: list[float], radius: int, block: int) -> Case:
    return {"x": table(values)[:, None], "radius": radius, "block": block}


KEYS_BEFORE = Write(
    name="keys_of_blocks_2",
    title="Live, and of any length",
    asked=(
        "nobody waits for later frames: for each block its own rows and `radius` rows before, (blocks, radius"
        " + block, d). n may be any number: the last block is filled up with rows of zeros"
    ),
    stages=(
        Stage(
            "frames 1 to 4 in blocks of two, radius 1",
            lambda: [_rows([1, 2, 3, 4], 1, 2)],
            "0 1 2 and 2 3 4.",
        ),
        Stage(
            "five frames",
            lambda: [_rows([1, 2, 3, 4, 5], 1, 2)],
            "A third block: 4 5 0.",
        ),
        Stage(
            "seven frames of width 2, blocks of three, radius 4",
            lambda: [{"x": drawn(3, 7, 2), "radius": 4, "block": 3}],
            "Three blocks of seven rows.",
        ),
    ),
    hints=(
        "How many rows of zeros stand in front now, and how many behind?",
        "How many rows are missing in the last block? Think of -n % block.",
        "How long is each piece?",
    ),
    solution=keys_of_blocks_2,
    remember="a window that looks back only makes nobody wait",
    slips={
        "the last block is missing where n is no multiple": (
            "range(0, len(x), block)",
            "range(0, len(x) - block + 1, block)",
        ),
        "later rows are not needed: radius + block in each piece": (
            "filled[start : start + radius + block]",
            "F.pad(filled, (0, 0, 0, radius))[start : start + 2 * radius + block]",
        ),
        "the rows before each block are missing, and those behind are there": (
            "radius, -len",
            "0, radius + -len",
        ),
        "where n is a multiple, nothing is filled up": (
            "-len(x) % block))\n    starts = range(0, len(x), block)",
            "block - len(x) % block))\n    starts = range(0, len(x) // block * block + block, block)",
        ),
    },
)


def who_is_seen_2(
    n: int,
    radius: int,
    block: int,
) -> Bool[Tensor, "blocks block stretch"]:
    i = torch.arange(n).view(-1, block, 1)
    j = i[:, :1] - radius + torch.arange(radius + block)
    return (i - radius <= j) & (j <= i) & (j >= 0)


def _of(n: int, radius: int, block: int) -> Case:
    return {"n": n, "radius": radius, "block": block}


SEEN_BEFORE = Write(
    name="who_is_seen_2",
    title="Nobody looks ahead",
    asked=(
        "the same where a frame looks at itself and at `radius` frames before it, and a block has radius +"
        " block keys: booleans (n / block, block, radius + block)"
    ),
    stages=(
        Stage(
            "four frames in blocks of two, radius 1",
            lambda: [_of(4, 1, 2)],
            "Block 0 has keys -1, 0, 1. Query 0 sees 0; query 1 sees 0 and 1.",
        ),
        Stage(
            "radius 0",
            lambda: [_of(6, 0, 3)],
            "Each frame sees itself alone.",
        ),
        Stage(
            "twelve frames, blocks of four, radius 6",
            lambda: [_of(12, 6, 4)],
            "Block 1 has two keys that are no frames, -2 and -1.",
        ),
    ),
    hints=(
        "Which frame is the first key of block b?",
        "Two conditions for the window now: how far back, and not ahead.",
        "Can a key stand behind the last frame here?",
    ),
    solution=who_is_seen_2,
    remember="causal and a window: 0 <= i - j <= radius",
    slips={
        "later frames of the block are seen: j <= i": (" & (j <= i)", ""),
        "the zeros in front are no keys": (" & (j >= 0)", ""),
        "there is no end to the past: at most `radius` back": ("(i - radius <= j) & ", ""),
        "a frame sees itself, too": ("(j <= i)", "(j < i)"),
        "the farthest frame back may be seen: <=": ("i - radius <= j", "i - radius < j"),
        "the first key is `radius` before the block's first frame": ("- radius + torch", "+ torch"),
    },
)


def table_for_an_hour(first: Number, n: int) -> Number:
    """Another recording, in other frames and other numbers."""

    def make(draw: random.Random) -> Number:
        minutes, ms = draw.choice([10, 15, 20, 30, 45, 90, 120]), draw.choice([10, 20, 40])
        heads = draw.choice([4, 6, 12, 16])
        kind, size, other = draw.choice([("float32", 4, 2), ("float16", 2, 4)])
        a_second = 1000 // ms
        frames = 60 * minutes * a_second
        value = heads * size * frames**2 / 2**30
        return replace(
            first,
            title="A table for a recording",
            asked=(
                f"{minutes} minutes of speech, a frame every {ms} ms; one layer of full attention with"
                f" {heads} heads keeps its weights as {kind}: how many GiB (2^30 bytes) are they?"
            ),
            answer=f"{heads} * {size} * ({minutes} * 60 * {a_second})**2 / 1024**3",
            value=value,
            hints=(
                "How many frames has a second, and how many the whole recording?",
                first.hints[1],
                f"How many bytes is a {kind}? And by what must bytes be divided to be GiB?",
            ),
            solution=(
                f"{a_second} frames a second are {frames:,} in {minutes} minutes; a table has {frames:,}^2 ="
                f" {frames**2:,} weights, all {heads} have {heads * frames**2:,}, each of {size} bytes. Divided"
                f" by 2^30 that is {value:,.3f} GiB, for one layer."
            ),
            remember="a table has n^2 weights for each head: ten times the speech, a hundred times the memory",
            slips={
                "that is the table of one head; each head has its own, however narrow it is": (
                    f"{size} * {frames}**2 / 2**30"
                ),
                "that is the number of weights in units of 2^30; asked are bytes": f"{heads} * {frames}**2 / 2**30",
                f"a byte has 8 bits; a {kind} has {8 * size} bits, which are {size} bytes": (
                    f"{heads} * {8 * size} * {frames}**2 / 2**30"
                ),
                f"a {kind} has {size} bytes, not {other}": f"{heads} * {other} * {frames}**2 / 2**30",
                "that is in GB, units of 10^9 bytes; a GiB is 2^30 = 1.074e9 bytes": (
                    f"{heads} * {size} * {frames}**2 / 10**9"
                ),
                "that is in GB, units of 10^9 bytes, and of one head": f"{size} * {frames}**2 / 10**9",
                "that is in MiB; a GiB has 1,024 of them": f"{heads} * {size} * {frames}**2 / 2**20",
                "that is in TiB; asked is GiB": f"{heads} * {size} * {frames}**2 / 2**40",
                "that is in bytes; a GiB is 2^30 of them": f"{heads} * {size} * {frames}**2",
                f"{minutes} minutes have {60 * minutes:,} seconds, not {minutes}": (
                    f"{heads} * {size} * ({minutes} * {a_second})**2 / 2**30"
                ),
                f"a frame every {ms} ms makes {a_second} a second, not {ms}": (
                    f"{heads} * {size} * ({minutes} * 60 * {ms})**2 / 2**30"
                ),
                f"a frame every {ms} ms makes {a_second} a second, not 1,000": (
                    f"{heads} * {size} * ({minutes} * 60 * 1000)**2 / 2**30"
                ),
                "one weight for each frame; but there is one for each PAIR of frames, n^2": (
                    f"{heads} * {size} * {frames} / 2**30"
                ),
            },
        )  # fmt: skip

    return fresh(n, make)


def streaming_latency(first: Number, n: int) -> Number:
    """Other layers, frames and looks ahead."""

    def make(draw: random.Random) -> Number:
        ms, back = draw.choice([10, 20]), draw.choice([16, 32, 64])
        kept, every = draw.choice([("second", 2), ("third", 3), ("fourth", 4)])
        low, near = draw.choice([2, 3, 4]), draw.choice([3, 4, 5, 6])
        high, far = draw.choice([4, 5, 6, 8]), draw.choice([2, 3, 4])
        token = every * ms
        below, above = low * near * ms, high * far * token
        return replace(
            first,
            asked=(
                f"a live recogniser, its layers one on top of the other: frames every {ms} ms; {low} layers look"
                f" {near} frames ahead; then every {kept} token is kept, one per {token} ms, and {high} layers look"
                f" {far} tokens ahead (all look {back} back, and computing takes no time): how many ms behind its"
                " own frame lies the last frame that an output needs?"
            ),
            answer=f"{low}*{near}*{ms} + {high}*{far}*{token}",
            value=below + above,
            hints=(
                (
                    f"One layer that looks {near} frames ahead must wait {near} frames. How long is that in ms, and"
                    f" what of {low} such layers, one on top of the other?"
                ),
                (
                    f"In the upper layers a token stands for {token} ms. How many ms ahead do {far} tokens lie, and"
                    f" how many all {high} layers?"
                ),
                first.hints[2],
            ),
            solution=(
                f"below: {low} layers * {near} frames * {ms} ms = {below} ms. Above: {high} layers * {far} tokens *"
                f" {token} ms = {above} ms. Reach adds up over layers: {below + above} ms. Looking back costs no"
                " wait."
            ),
            slips={
                f"above, a token stands for {token} ms, since only every {kept} one was kept": (
                    f"{low}*{near}*{ms} + {high}*{far}*{ms}"
                ),
                f"below, a frame stands for {ms} ms; {token} ms are between the tokens that were kept": (
                    f"{low}*{near}*{token} + {high}*{far}*{token}"
                ),
                "you counted one layer of each kind; each layer on top waits for what the layer below waited for": (
                    f"{near}*{ms} + {far}*{token}"
                ),
                "that is the part above; the layers below look ahead, too": above,
                "that is the part below; the upper layers look ahead, too": below,
                "the waits of layers are added up; the longest single one is not enough": max(
                    near * ms, far * token
                ),
                "these are frames and tokens; asked is ms": low * near + high * far,
                f"that is in frames of {ms} ms; asked is ms": f"{below + above} / {ms}",
                "that is in seconds; asked is ms": f"{below + above} / 1000",
                "frames that were there before make no one wait; only what lies ahead counts": (
                    f"{low}*{back}*{ms} + {high}*{back}*{token}"
                ),
                "frames that were there before make no one wait; only what lies ahead counts, not the whole window": (
                    f"{low}*{back + near}*{ms} + {high}*{back + far}*{token}"
                ),
                "you gave all layers the look-ahead of the lower ones": f"{low}*{near}*{ms} + {high}*{near}*{token}",
                "you gave all layers the look-ahead of the upper ones": f"{low}*{far}*{ms} + {high}*{far}*{token}",
                "reaches of layers add up, they do not multiply": f"{near}**{low} * {ms} + {far}**{high} * {token}",
                "in a layer the frame itself is already there: it waits for the further ones alone": (
                    f"{low}*{near + 1}*{ms} + {high}*{far + 1}*{token}"
                ),
            },
        )  # fmt: skip

    return fresh(n, make)
