"""What part 09 asks: four predictions, and two functions that the learner writes."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.chapters.c09_truncated_attention import seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice

PART = "09_truncated_attention"

who_names_most = Choice(
    name="who_names_most",
    notebook=PART,
    title="How far should it look?",
    asked=(
        "Two networks, alike but for the radius: 5 frames, or the whole sentence. Same sentences, same steps."
        " Which names more frames of a voice that it has never heard?"
    ),
    options={
        "a": "the one with the radius 5",
        "b": "the one that sees the whole sentence",
        "c": "about the same",
    },
    answer="a",
    remember="the other could do all that a window does, and learns something worse",
    slips={
        "it has more to go by; and more to learn from the same sentences, too": "b",
        "it could become nearly a window, by small weights far away; does training find that?": "c",
    },
)

far_keys_hidden = Choice(
    name="far_keys_hidden",
    notebook=PART,
    title="Blinkers",
    asked=("The network that learned from whole sentences is shown only keys within 15 frames. Now it names"),
    options={
        "a": "more frames rightly: it has become a window",
        "b": "about as many: far weights are small",
        "c": "fewer",
    },
    answer="c",
    remember="its weights have learned to count on far frames; nothing taught them to do without",
    slips={
        "the mask is a window's; but for which mask were these weights learned?": "a",
        "are they small? The network has worked with them in every step of its training": "b",
    },
)

mask_saves = Choice(
    name="mask_saves",
    notebook=PART,
    title="What does the mask save?",
    asked=(
        "1,000 frames, radius 15: a frame looks at 31 of 1,000. How many of all multiplications does attend"
        " make with this mask?"
    ),
    options={"a": "about a thirtieth", "b": "half: all scores, few values", "c": "all"},
    answer="c",
    remember="scores are computed, then hidden; a weight of 0 is multiplied like any other",
    slips={
        "when does the mask come: before or after the scores?": "a",
        "does a matrix product leave out a multiplication by 0?": "b",
    },
)


def keys_of_blocks(
    x: Float[Tensor, "n d"],
    radius: int,
    block: int,
) -> Float[Tensor, "blocks stretch d"]:
    padded = F.pad(x, (0, 0, radius, radius))  # rows of zeros at both ends
    starts = range(0, len(x), block)
    return torch.stack([padded[start : start + block + 2 * radius] for start in starts])


def _rows(values: list[float], radius: int, block: int) -> Case:
    return {"x": table(values)[:, None], "radius": radius, "block": block}


def _sentence(seed: int, n: int, d: int, radius: int, block: int, draw=drawn) -> Case:
    return {"x": draw(seed, n, d), "radius": radius, "block": block}


def _more_keys(drawn: Draw) -> list[Case]:
    return [_sentence(1, 15, 2, 2, 5, drawn), _sentence(2, 8, 3, 5, 2, drawn)]


def _by_places(x: Tensor, radius: int, block: int) -> Tensor:
    n = len(x)
    places = torch.arange(0, n, block)[:, None] - radius + torch.arange(block + 2 * radius)
    there = (places >= 0) & (places < n)
    return x[places.clamp(0, n - 1)] * there[..., None]


write_keys_of_blocks = Write(
    name="keys_of_blocks",
    notebook=PART,
    second=lambda n: seconds.KEYS_BEFORE,
    title="The keys of each block",
    stars=2,
    minutes=6,
    why="this is the step that saves: far keys are never asked",
    asked=(
        "x is (n, d), n a multiple of `block`. For each block its own rows, `radius` rows before and `radius`"
        " behind, rows of zeros where there is no frame: (n / block, block + 2 radius, d)"
    ),
    stages=(
        Stage(
            "frames 1, 2, 3, 4 in blocks of two, radius 1",
            lambda: [_rows([1, 2, 3, 4], 1, 2)],
            "0 1 2 3 and 2 3 4 0: neighbouring blocks share rows.",
        ),
        Stage(
            "radius 0, and one block for all",
            lambda: [_rows([1, 2, 3, 4], 0, 2), _rows([1, 2, 3], 1, 3)],
            "Without neighbours a block has its own rows; a single block has zeros on both sides.",
        ),
        Stage(
            "a radius greater than the block",
            lambda: [_rows([1, 2, 3, 4, 5, 6], 3, 2)],
            "0 0 0 1 2 3 4 5, then 0 1 2 3 4 5 6 0: a block may need rows of several others.",
        ),
        Stage(
            "twelve frames of width 3, blocks of four",
            lambda: [_sentence(5, 12, 3, 2, 4)],
            "A row of zeros has d numbers.",
        ),
    ),
    reference=_by_places,
    hints=(
        "Put `radius` rows of zeros in front and behind. At which row of the result does block 0 begin?",
        "And block 1? How long is each piece?",
        "F.pad(x, (0, 0, radius, radius)) adds rows. Which function joins pieces of equal shape?",
    ),
    solution=keys_of_blocks,
    hidden=_more_keys,
    remember="block + 2 radius keys for each block, however long the sentence",
    slips={
        "with zeros in front, block 0 begins at row 0, not at `radius`": (
            "padded[start : start + block + 2 * radius]",
            "padded[start + radius : start + block + 2 * radius]",
        ),
        "the rows behind each block are missing": ("block + 2 * radius]", "block + radius]"),
        "each block needs its neighbours' rows, too: block + 2 radius of them": (
            "padded[start : start + block + 2 * radius]",
            "x[start : start + block]",
        ),
        "there is a piece for each block, not for each frame": (
            "range(0, len(x), block)",
            "range(0, len(x))",
        ),
        "where there is no frame, zeros; you repeat the first and last": (
            "F.pad(x, (0, 0, radius, radius))",
            "torch.cat([x[:1].expand(radius, -1), x, x[-1:].expand(radius, -1)])",
        ),
        "a sentence is no ring: behind its end come zeros, not its beginning": (
            "F.pad(x, (0, 0, radius, radius))",
            "torch.stack([x[i % len(x)] for i in range(-radius, len(x) + radius)])",
        ),
        "all zeros stand behind; `radius` rows of them belong in front": (
            "(0, 0, radius, radius)",
            "(0, 0, 0, 2 * radius)",
        ),
        "all zeros stand in front; `radius` rows of them belong behind": (
            "(0, 0, radius, radius)",
            "(0, 0, 2 * radius, 0)",
        ),
        "one row too many: a block has its own and `radius` on each side": (
            "block + 2 * radius]",
            "block + 2 * radius + 1]",
        ),
        "one row too few: the farthest on the right is missing": (
            "block + 2 * radius]",
            "block + 2 * radius - 1]",
        ),
        "each block begins one row too early: `radius` rows stand before it": (
            "(0, 0, radius, radius)",
            "(0, 0, radius + 1, radius - 1)",
        ),
        "each block begins one row too late: `radius` rows stand before it": (
            "(0, 0, radius, radius)",
            "(0, 0, radius - 1, radius + 1)",
        ),
    },
)


def who_is_seen(
    n: int,
    radius: int,
    block: int,
) -> Bool[Tensor, "blocks block stretch"]:
    i = torch.arange(n).view(-1, block, 1)  # the frame of each query
    j = i[:, :1] - radius + torch.arange(block + 2 * radius)  # of each key
    return ((i - j).abs() <= radius) & (j >= 0) & (j < n)


def _of(n: int, radius: int, block: int) -> Case:
    return {"n": n, "radius": radius, "block": block}


def _more_seen(_draw: Draw) -> list[Case]:
    return [_of(15, 2, 5), _of(8, 5, 2), _of(21, 3, 7)]


def _one_by_one(n: int, radius: int, block: int) -> Tensor:
    """Pair by pair."""
    seen = torch.zeros(n // block, block, block + 2 * radius, dtype=torch.bool)
    for b, p, c in torch.cartesian_prod(*(torch.arange(size) for size in seen.shape)).tolist():
        key = b * block - radius + c
        seen[b, p, c] = 0 <= key < n and abs(b * block + p - key) <= radius
    return seen


write_who_is_seen = Write(
    name="who_is_seen",
    notebook=PART,
    second=lambda n: seconds.SEEN_BEFORE,
    title="Who is seen inside a block",
    stars=2,
    minutes=6,
    why="inside a block each query has its own window, and zeros are no keys",
    asked=(
        "True where a block's query may look at one of the block's keys: a frame of the sentence, at most"
        " `radius` away. Booleans (n / block, block, block + 2 radius)"
    ),
    stages=(
        Stage(
            "four frames in blocks of two, radius 1",
            lambda: [_of(4, 1, 2)],
            "Block 0 holds queries 0 and 1, and keys -1, 0, 1, 2. Query 0 may look at 0 and 1.",
        ),
        Stage(
            "the ends: one block for all",
            lambda: [_of(3, 1, 3)],
            "Keys -1 and 3 are no frames: nobody looks at them.",
        ),
        Stage(
            "radius 0; and a radius greater than the sentence",
            lambda: [_of(4, 0, 2), _of(4, 6, 2)],
            "With radius 0 each frame looks at itself alone.",
        ),
        Stage(
            "twelve frames, blocks of four, radius 3",
            lambda: [_of(12, 3, 4)],
            "Blocks in the middle have no zeros among their keys.",
        ),
    ),
    reference=_one_by_one,
    hints=(
        "Which frame is the first key of block b? And query p of block b?",
        "With frames' numbers i (blocks, block, 1) and j (blocks, 1, reach), which condition is the window?",
        "Which numbers do the zeros in front have, and which those behind?",
    ),
    solution=who_is_seen,
    hidden=_more_seen,
    remember="|i - j| <= radius, and j is a frame: 0 <= j < n",
    slips={
        "the zeros at both ends are no keys: j is at least 0 and less than n": (
            " & (j >= 0) & (j < n)",
            "",
        ),
        "the zeros behind the sentence are no keys: j < n": (" & (j < n)", ""),
        "the zeros in front of it are no keys: j >= 0": (" & (j >= 0)", ""),
        "inside a block each query has its own window: |i - j| <= radius": (
            "((i - j).abs() <= radius) & ",
            "i.eq(i) & ",
        ),
        "the farthest key on each side may be looked at: <=": ("<= radius)", "< radius)"),
        "frame n is no frame: they are counted from 0 to n - 1": ("j < n", "j <= n"),
        "frame 0 is a frame": ("j >= 0", "j > 0"),
        "your first key is the block's first frame; it is `radius` before it": (
            "- radius + torch",
            "+ torch",
        ),
        "only earlier frames are seen; the window reaches to both sides": (
            "(i - j).abs() <= radius",
            "(0 <= i - j) & (i - j <= radius)",
        ),
        "only later frames are seen; the window reaches to both sides": (
            "(i - j).abs() <= radius",
            "(0 <= j - i) & (j - i <= radius)",
        ),
        "the keys begin `radius` frames before the block; your distances leave that out": (
            "(i - j).abs() <= radius",
            "(i - j - radius).abs() <= radius",
        ),
        "the mask is the other way round: True means may look": (
            "((i - j).abs() <= radius) & (j >= 0) & (j < n)",
            "~(((i - j).abs() <= radius) & (j >= 0) & (j < n))",
        ),
        "your window is one frame too wide on each side: at most `radius` away": (
            "<= radius)",
            "<= radius + 1)",
        ),
    },
)

beyond_reach = Choice(
    name="beyond_reach",
    notebook=PART,
    title="One token farther",
    asked=(
        "Two layers, radius 8: trained and asked with the letter 16 tokens before the question, all answers"
        " are right. With the letter 17 tokens before it?"
    ),
    options={
        "a": "a little worse",
        "b": "one in eight, as by guessing",
        "c": "one in eight at first; longer training mends it",
    },
    answer="b",
    remember="two layers reach 16: at 17, changing the letter does not change the output at all",
    slips={
        "how far does the second layer hear, through the first? Is there a way round?": "a",
        "which weights could training find, if none lets the output hear the letter?": "c",
    },
)

ASKED = (
    who_names_most,
    far_keys_hidden,
    mask_saves,
    write_keys_of_blocks,
    write_who_is_seen,
    beyond_reach,
)
