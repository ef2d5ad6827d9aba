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
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made, table
from lesson_lib.checks.questions import Code
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


CODE = {
    "windowed": Code(
        solution=windowed,
        cases=(
            lambda: [_row(1, 4, 2, 4), _row(5, 3, 9, 8)],
            lambda: [_row(11, 7, 4, 2)],
            lambda: [
                _row(21, 9, 3, 4),
                _row(31, 8, 1, 3),
                _row(41, 10, 6, 1),
                {**_row(51, 8, 3, 3), "value": drawn(53, 8, 4)},
            ],
        ),
        reference=_by_a_mask,
        hidden=lambda draw: [_row(51, 8, 3, 2, draw), _row(61, 9, 5, 4, draw)],
        extra=_saves_nothing,
    ),
    "tiles_with_sink": Code(
        solution=tiles_with_sink,
        cases=(
            lambda: [_tiled(1, 2, 3, 3, 0.5), _tiled(5, 1, 1, 4, -1.0)],
            lambda: [_tiled(11, 2, 4, 2, -60.0)],
            lambda: [
                _tiled(21, 3, 6, 2, 1.0),
                _tiled(31, 4, 7, 3, 2.5),
                _tiled(41, 2, 5, 1, -0.5),
                {**_tiled(71, 5, 5, 2, 0.5), "value": drawn(73, 5, 4)},
            ],
            lambda: [_tiled(51, 3, 5, 2, 90.0, by=12.0), _tiled(61, 2, 6, 4, -90.0, by=12.0)],
        ),
        reference=_with_a_key_of_its_own,
        hidden=lambda draw: [_tiled(71, 3, 5, 2, 0.7, draw=draw), _tiled(81, 2, 7, 3, -1.5, draw=draw)],
    ),
    "where_it_turns_wrong": Code(
        of=_turn,
        wrong=(
            lambda x, start: not len(x),
            lambda x, start: not x.any(),
            lambda x, start: start == 0 and len(x) <= 256,
            lambda x, start: start + len(x) - 1 <= 256,
            lambda x, start: start > 256,
        ),
    ),
    "what_it_lets_through": Code(
        of=_mask,
        wrong=(
            lambda query, key, value, mask: bool(mask.all()),
            lambda query, key, value, mask: bool((value == value[:1]).all() and mask.any(1).all()),
            lambda query, key, value, mask: not (query @ key.mT).any(),
            lambda query, key, value, mask: float((query @ key.mT).abs().max()) > 100,
            lambda query, key, value, mask: True,
        ),
    ),
}
