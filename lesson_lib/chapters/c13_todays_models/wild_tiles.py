"""Found in the wild, second half: two programs that work tile by tile, to be mended, and two functions whose
fault ordinary inputs do not show: find those that do.

Reported: a full-size mask that is narrowed afterwards, so that the window saved no memory
(karpathy/nanochat#825, #826); sinks in tiled attention (flash-attention#1895, #1819). Positions in half
precision and -10,000 in place of -inf are in many published models.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.expose import Expose
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.masks import causal
from lesson_lib.positions import rotary

GIVEN = "this is still the function as it was given"

# --- a window that saves nothing ---


def windowed(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    window: int,
    block: int,
) -> Float[Tensor, "n d_v"]:
    class SlidingWindow:
        """Who sees whom; rows are queries, columns keys, from the start of the text."""

        def __init__(self, size):
            self.size = size

        def mask(self, rows, columns):
            i = torch.arange(rows.start, rows.stop)[:, None]
            j = torch.arange(columns.start, columns.stop)
            return (j <= i) & (i - j < self.size)

        def columns(self, rows):
            """The keys that any of these queries can see."""
            return range(max(0, rows.start - self.size + 1), rows.stop)

    def blocks(n):
        for start in range(0, n, block):
            yield range(start, min(start + block, n))

    def attention(rows, columns, mask):
        q = query[rows.start : rows.stop]
        k = key[columns.start : columns.stop]
        v = value[columns.start : columns.stop]
        batch = q[None], k[None], v[None]
        return F.scaled_dot_product_attention(*batch, attn_mask=mask)[0]

    sight, n = SlidingWindow(window), len(query)
    outputs = []
    for rows in blocks(n):
        columns = sight.columns(rows)
        mask = sight.mask(rows, columns)
        outputs.append(attention(rows, columns, mask))
    return torch.cat(outputs)


def _by_a_mask(query: Tensor, key: Tensor, value: Tensor, window: int, block: int) -> Tensor:
    return attend(query, key, value, mask=causal(len(query), window=window)).output


def _row(seed: int, n: int, window: int, block: int, draw: Draw = drawn) -> Case:
    q, k, v = draw(seed, n, 4), draw(seed + 1, n, 4), draw(seed + 2, n, 3)
    return {"query": q, "key": k, "value": v, "window": window, "block": block}


def _saves_nothing(answer: Callable) -> str | None:
    """The sentence, where twice the text takes far more than twice the numbers, with one window."""

    def work(n: int) -> int:
        x = drawn(1, n, 4)
        return numbers_made(lambda: answer(x, x, x, 8, 16))

    if work(128) > 3 * work(64):
        return (
            "the outputs are right, and the window saves nothing: twice the tokens take far more than twice"
            " the numbers. Which table has n rows and n columns?"
        )
    return None


FULL = (
    "mask = sight.mask(rows, columns)",
    "whole = sight.mask(range(n), range(n))\n"
    "        mask = whole[rows.start : rows.stop, columns.start : columns.stop]",
)
SHORT = ("max(0, rows.start - self.size + 1)", "max(0, rows.start - block)")

window_repair = Write(
    name="windowed",
    title="Found in the wild: a window that saves nothing",
    stars=3,
    minutes=10,
    why="the point of a window is its memory; nobody measured it for months",
    asked=(
        "repair: attention under a causal window, `block` queries at a time, in memory that grows with n, not"
        " with n². A token looks at `window` tokens, itself among them. Nobody knows how many faults there"
        " are"
    ),
    repair=True,
    stages=(
        Stage(
            "one block",
            lambda: [_row(1, 4, 2, 4), _row(5, 3, 9, 8)],
            "All keys are there. If this fails, what you changed was right before.",
        ),
        Stage(
            "blocks of two, a window of four",
            lambda: [_row(11, 7, 4, 2)],
            "The first query of a block looks back three tokens, more than a block. Where do the columns of a"
            " block have to begin?",
        ),
        Stage(
            "windows and blocks of all sizes",
            lambda: [
                _row(21, 9, 3, 4), _row(31, 8, 1, 3), _row(41, 10, 6, 1),
                {**_row(51, 8, 3, 3), "value": drawn(53, 8, 4)},
            ],
            "Which keys can the first query of a block see, and which the last?",
        ),
    ),
    reference=_by_a_mask,
    extra=_saves_nothing,
    hints=(
        "How far back does the first query of a block look? Does that depend on the block?",
        "Which tables does the program make for 1,000 tokens, and how large is the largest?",
        "A mask for some rows and some columns: what would sight.mask have to be given?",
    ),
    solution=windowed,
    hidden=lambda draw: [_row(51, 8, 3, 2, draw), _row(61, 9, 5, 4, draw)],
    remember="a mask that is made whole and narrowed afterwards has cost everything; measure memory",
    slips={
        GIVEN: (*FULL, *SHORT),
        "one key too few is fetched": ("- self.size + 1", "- self.size + 2"),
        "the distance equal to the window is outside": ("i - j < self.size", "i - j <= self.size"),
        "later keys of the block are looked at": ("(j <= i) & ", ""),
        "the mask counts rows and columns from 0 in each block; both count from the start of the text": (
            "torch.arange(rows.start, rows.stop)", "torch.arange(len(rows))",
            "torch.arange(columns.start, columns.stop)", "torch.arange(len(columns))",
        ),
        "each block stands at the beginning: rows count from the start of the text": (
            "torch.arange(rows.start, rows.stop)", "torch.arange(len(rows))",
        ),
        "keys are counted back from the block's end; its first query looks farther: take rows.start": (
            "max(0, rows.start - self.size + 1)",
            "max(0, rows.stop - self.size)",
        ),
        "one key too many is fetched, and seen: the distance equal to the window is outside": (
            "- self.size + 1",
            "- self.size",
            "i - j < self.size",
            "i - j <= self.size",
        ),
        "one key too few is seen: the own token is one of the window": (
            "i - j < self.size",
            "i - j < self.size - 1",
        ),
        "the mask is the other way round: True = may look": ("attn_mask=mask", "attn_mask=~mask"),
        **exchanged("sight, n = Sliding"),
        "the mask is the other way round, and over all keys: True = may look": (
            "columns = sight.columns(rows)",
            "columns = range(n)",
            "attn_mask=mask",
            "attn_mask=~mask",
        ),
        "the window reaches to both sides; a token looks at itself and at earlier ones": (
            "(j <= i) & (i - j < self.size)",
            "(i - j).abs() < self.size",
            "columns = sight.columns(rows)",
            "columns = range(n)",
        ),
    },
)  # fmt: skip

# --- tiles and a sink ---


def tiles_with_sink(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "m d_k"],
    value: Float[Tensor, "m d_v"],
    sink: float,
    tile: int,
) -> Float[Tensor, "n d_v"]:
    class Running:
        """Kept of the tiles that are gone: the largest score, the sum of
        exp(score - largest), and the values weighted by it."""

        def __init__(self, n, width):
            self.largest = torch.full((n, 1), -torch.inf)
            self.total = torch.zeros(n, 1)
            self.mixed = torch.zeros(n, width)

        def add(self, scores, values):
            largest = torch.maximum(self.largest, scores.amax(1, keepdim=True))
            shrink = (self.largest - largest).exp()
            shares = (scores - largest).exp()
            self.total = self.total * shrink + shares.sum(1, keepdim=True)
            self.mixed = self.mixed * shrink + shares @ values
            self.largest = largest

        def result(self):
            return self.mixed / self.total

    def tiles():
        for start in range(0, len(key), tile):
            yield key[start : start + tile], value[start : start + tile]

    scale = query.shape[-1] ** -0.5
    running = Running(len(query), value.shape[-1])
    nobody = torch.full((len(query), 1), sink)
    running.add(nobody, torch.zeros(1, value.shape[-1]))
    for keys, values in tiles():
        running.add(query @ keys.mT * scale, values)
    return running.result()


def _with_a_key_of_its_own(query: Tensor, key: Tensor, value: Tensor, sink: float, tile: int) -> Tensor:
    keys, values = F.pad(key, (0, 0, 0, 1)), F.pad(value, (0, 0, 0, 1))
    bias = torch.zeros(len(query), len(keys), device=query.device)
    bias[:, -1] = sink
    return attend(query, keys, values, score_bias=bias).output


def _tiled(seed: int, n: int, m: int, tile: int, sink: float, by: float = 1.5, draw: Draw = drawn) -> Case:
    q, k, v = by * draw(seed, n, 4), by * draw(seed + 1, m, 4), draw(seed + 2, m, 3)
    return {"query": q, "key": k, "value": v, "sink": sink, "tile": tile}


OFTEN = (
    "    running.add(nobody, torch.zeros(1, value.shape[-1]))\n",
    "",
    "        running.add(query @",
    "        running.add(nobody, torch.zeros(1, value.shape[-1]))\n        running.add(query @",
)
STILL = ("self.mixed * shrink +", "self.mixed +")

sink_repair = Write(
    name="tiles_with_sink",
    title="Found in the wild: tiles and a sink",
    stars=3,
    minutes=12,
    why="a sink came to fast kernels late, and more than once wrongly",
    asked=(
        "repair: exact attention, `tile` keys at a time (11b), with a sink: a score that every query has"
        " once, and no value (13a). Nobody knows how many faults there are"
    ),
    repair=True,
    stages=(
        Stage(
            "one tile",
            lambda: [_tiled(1, 2, 3, 3, 0.5), _tiled(5, 1, 1, 4, -1.0)],
            "All keys come at once, and the sink once. If this fails, what you changed was right before.",
        ),
        Stage(
            "two tiles, no sink to speak of",
            lambda: [_tiled(11, 2, 4, 2, -60.0)],
            "The sink's share is 0 here. What was mixed before the largest score rose must shrink with it.",
        ),
        Stage(
            "three tiles and a sink",
            lambda: [
                _tiled(21, 3, 6, 2, 1.0), _tiled(31, 4, 7, 3, 2.5), _tiled(41, 2, 5, 1, -0.5),
                {**_tiled(71, 5, 5, 2, 0.5), "value": drawn(73, 5, 4)},
            ],
            "However many tiles there are: the sink counts once.",
        ),
        Stage(
            "scores of a hundred",
            lambda: [_tiled(51, 3, 5, 2, 90.0, by=12.0), _tiled(61, 2, 6, 4, -90.0, by=12.0)],
            "exp(score - largest) stays at most 1, whatever comes first.",
        ),
    ),
    reference=_with_a_key_of_its_own,
    hints=(
        "Try tile = m, then tile = 1. Which results must be the same, and which sum counts something more"
        " than once?",
        "When the largest score rises, which of the kept numbers are relative to the old one?",
        "A sink is a key that scores `sink` with everybody and whose value is 0. When may it be added?",
    ),
    solution=tiles_with_sink,
    hidden=lambda draw: [_tiled(71, 3, 5, 2, 0.7, draw=draw), _tiled(81, 2, 7, 3, -1.5, draw=draw)],
    remember="the size of a tile must change nothing: compare two of them",
    slips={
        GIVEN: (*OFTEN, *STILL),
        "the values shrink; the sink is counted once for each tile": OFTEN,
        "the sink counts once; the mixed values do not shrink when the largest score rises": STILL,
        "the sum does not shrink, the values do": ("self.total * shrink +", "self.total +"),
        "the sink is a score already: do not divide it by the root of the width": (
            "running.add(nobody,", "running.add(nobody * scale,",
        ),
        "the sink is not counted at all": (
            "    running.add(nobody, torch.zeros(1, value.shape[-1]))\n", "",
        ),
        "the scores are not divided by the root of the width": ("query @ keys.mT * scale", "query @ keys.mT"),
        "you add exp(sink) at the end, but all sums are relative to the largest score: exp(sink - largest)": (
            "    running.add(nobody, torch.zeros(1, value.shape[-1]))\n",
            "",
            "self.mixed / self.total",
            "self.mixed / (self.total + torch.tensor(float(sink)).exp())",
        ),
        "you multiply by the sum; divide by it in the end": (
            "self.mixed / self.total",
            "self.mixed * self.total",
        ),
        "the sink's sign is turned round": ("(len(query), 1), sink)", "(len(query), 1), -sink)"),
        **exchanged("scale = query.shape"),
    },
)  # fmt: skip

# --- which input shows it? ---


def rotary_at(x: Float[Tensor, "n d"], start: int) -> Float[Tensor, "n d"]:
    half = x.shape[-1] // 2
    speed = 10000.0 ** (-torch.arange(half) / half)
    position = start + torch.arange(len(x), dtype=torch.float32)
    angle = position[:, None] * speed
    cos, sin = angle.cos(), angle.sin()
    a, b = x[:, :half], x[:, half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


_turn = Write(
    name="rotary_at",
    asked="rotary positions, the first token at `start`",
    stages=(Stage("two tokens", lambda: [{"x": table([[1, 0], [1, 0]]), "start": 0}], ""),),
    reference=lambda x, start: rotary(x, start, pairing="half-split"),
    solution=rotary_at,
    remember="",
    slips={
        "positions in bfloat16": (
            "position = start + torch.arange(len(x), dtype=torch.float32)",
            "position = (start + torch.arange(len(x))).to(torch.bfloat16)",
        ),
    },
)

late = Expose(
    name="where_it_turns_wrong",
    title="Found in the wild: which input shows it?",
    stars=2,
    minutes=6,
    why="the model answers well, and worse the longer the talk goes on",
    asked=(
        "the model runs in bfloat16, and so do its positions. Short texts pass every test. Write x and start"
        " on which the result is not that of exact positions"
    ),
    of=_turn,
    slip="positions in bfloat16",
    solution='where_it_turns_wrong = {\n    "x": torch.tensor([[1.0, 0.0]]),\n    "start": 1001,\n}',
    hints=(
        "bfloat16 has 8 binary digits. Up to which whole number is every one of them written exactly?",
        "Which whole numbers beyond 256 are written exactly all the same?",
        "With d = 2 the pair turns by the position itself, in radians: what do start = 1000 and 1001 give?",
    ),
    remember="bfloat16 knows every whole number up to 256; beyond, positions fall together",
    slips={
        "x holds no row: write one": lambda x, start: not len(x),
        "a row of zeros stays zeros, wherever it stands": lambda x, start: not x.any(),
        "your text begins at place 0, where every test begins; the trouble comes later": (
            lambda x, start: start == 0 and len(x) <= 256
        ),
        "up to 256 bfloat16 writes every whole number exactly: go farther": (
            lambda x, start: start + len(x) - 1 <= 256
        ),
        "that place can be written in 8 binary digits; which one beside it cannot?": (
            lambda x, start: start > 256
        ),
    },
)  # fmt: skip


def masked(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "m d_k"],
    value: Float[Tensor, "m d_v"],
    mask: Bool[Tensor, "n m"],
) -> Float[Tensor, "n d_v"]:
    bias = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    return attend(query, key, value, score_bias=bias).output


_mask = Write(
    name="masked",
    asked="attention under a mask, True = may look; a query that may look at nothing gets zeros",
    stages=(
        Stage(
            "one query",
            lambda: [{
                "query": table([[1, 0]]), "key": table([[1, 0], [0, 1]]), "value": table([[1], [2]]),
                "mask": torch.tensor([[True, False]], device="cpu"),
            }],
            "",
        ),
    ),
    reference=lambda query, key, value, mask: attend(query, key, value, mask=mask).output,
    solution=masked,
    remember="",
    slips={"-10,000 for what is hidden": ("-torch.inf", "-1e4")},
)  # fmt: skip

hidden_by_a_number = Expose(
    name="what_it_lets_through",
    title="Found in the wild: what does -10,000 let through?",
    stars=2,
    minutes=6,
    why="many published models hide with -10,000, and one day it no longer hides",
    asked=(
        "hidden scores get -10,000 added instead of -inf. All ordinary tests pass. Write query, key, value"
        " and mask (True = may look) on which something hidden comes through"
    ),
    of=_mask,
    slip="-10,000 for what is hidden",
    solution=(
        'what_it_lets_through = {\n    "query": torch.tensor([[1.0, 0.0]]),\n'
        '    "key": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),\n'
        '    "value": torch.tensor([[1.0], [2.0]]),\n    "mask": torch.tensor([[False, False]]),\n}'
    ),
    hints=(
        "A score of 3 that is hidden becomes -9,997. What share has it beside a score of 3 that is not?",
        "Against whom does a hidden key compete, if nobody may be looked at?",
        "What would the visible scores have to be, for -10,000 to be no smaller than they are?",
    ),
    remember="only -inf hides; what -10,000 hides depends on the other scores",
    slips={
        "your mask hides nothing": lambda query, key, value, mask: bool(mask.all()),
        "all values are the same, so it does not matter who is looked at": (
            lambda query, key, value, mask: bool((value == value[:1]).all() and mask.any(1).all())
        ),
        "all scores are 0: then a hidden one has -10,000 against 0, and nothing comes through": (
            lambda query, key, value, mask: not (query @ key.mT).any()
        ),
        "no HIDDEN score (mask: False), divided by the root of d_k, is 10,000 above the visible ones": (
            lambda query, key, value, mask: float((query @ key.mT).abs().max()) > 100
        ),
        "beside a visible key a hidden one gets exp(-10,000), nothing: take that key away": (
            lambda query, key, value, mask: True
        ),
    },
)  # fmt: skip

ASKED = (window_repair, sink_repair, late, hidden_by_a_number)
