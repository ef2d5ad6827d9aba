"""Second problems of part 09: windows that look back only."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, table


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
