"""Pictures of thin paths with two marked ends: does a path join them?

Every picture holds two long paths and two short ones that touch neither themselves nor each other (side by
side; corners may meet). The ends that are marked are the two tips of one long path ("joined"), or one tip of
each. The picture is drawn first, a coin decides the answer after that, and the two pairs of tips that it
decides between are equally far apart: neither the number of pixels nor the ends' distance |dx| + |dy| tells
the answer. The ends' places and what lies near them do tell a part: boosted trees that see both ends' places
and 3 by 3 pixels round each were right in 75 of 100 pictures of 12 by 12. For the rest one has to follow the
path.

Pictures are drawn on the spot, so training never ends; test pictures come from generators with other seeds. A
repeat is possible, and rare: among 50,000 pictures of 12 by 12 pixels none stood twice.

Source: Linsley et al. 2018, arXiv:1805.08715 (pathfinder: two curves always, marks on one or on both); as a
sequence of pixels in Tay et al. 2021, Long Range Arena, arXiv:2011.04006. Theirs are drawn in dashes and
grey; ours are smaller and have three kinds of pixels.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lesson_lib import require

EMPTY, PATH, END = range(3)  # the kinds of tokens
KINDS = 3
SIZES = range(8, 33)  # smaller pictures hardly hold the paths
DISTRACTORS = 2  # short paths
TAKEN = 64  # more than the 4 neighbours that a pixel can have on paths


class Connected(NamedTuple):
    """Pictures as rows of pixels, and whether each one's ends are joined (1) or not (0)."""

    tokens: Int[Tensor, "b n"]
    answer: Int[Tensor, "b"]


def draw(generator: torch.Generator, batch: int, *, size: int = 12) -> Connected:
    """A batch of pictures of `size` by `size` pixels, row after row; joined or not at equal odds; on the CPU.

    Long paths have `size` to 1.5 `size` pixels, short ones `size` / 4 to `size` / 2. Raises TypeError where
    `generator` is none, ValueError where `batch` is less than 1 or `size` outside of SIZES.
    """
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, got {type(generator).__name__}")
    require.whole(batch=batch)
    require.whole(at_least=SIZES.start, at_most=SIZES.stop - 1, size=size)
    rng = np.random.default_rng(torch.randint(2**62, (), generator=generator, device="cpu").item())
    found: list[tuple[np.ndarray, np.ndarray]] = []
    while (missing := batch - sum(len(answer) for _, answer in found)) > 0:
        found.append(_pictures(rng, 6 * missing + 16, size))  # about one of five is kept
    tokens, answer = (torch.from_numpy(np.concatenate(part)[:batch]) for part in zip(*found, strict=True))
    return Connected(tokens, answer)


def picture(tokens: Int[Tensor, "n"]) -> Int[Tensor, "size size"]:
    """The pixels of one picture in rows and columns.

    Raises TypeError for what is no tensor, ValueError where the tokens are not one row, or fill no square.

    >>> picture(torch.tensor([0, 2, 1, 2])).tolist()
    [[0, 2], [1, 2]]
    """
    if not isinstance(tokens, Tensor):
        raise TypeError(f"tokens must be a tensor, got {type(tokens).__name__}")
    size = round(tokens.numel() ** 0.5)
    if tokens.ndim != 1 or size * size != tokens.numel() or size == 0:
        raise ValueError(
            f"tokens must be one picture, (size * size,), got {tuple(tokens.shape)}; of a batch take"
            " tokens[0]"
        )
    return tokens.reshape(size, size)


def joined(tokens: Int[Tensor, "n"]) -> bool:
    """Whether the two ends of one picture are joined: whether one patch of path pixels, neighbours side by
    side, holds both.

    Raises as `picture`, and ValueError where a token is none of the three kinds or the ends are not two.

    >>> one_line, two = [2, 0, 2,  1, 0, 1,  1, 1, 1], [2, 0, 0,  0, 2, 1,  1, 1, 1]
    >>> joined(torch.tensor(one_line)), joined(torch.tensor(two))
    (True, False)
    """
    pixels = picture(tokens).cpu().numpy()
    if pixels.min() < EMPTY or pixels.max() > END:
        raise ValueError(
            f"tokens must be 0 (empty), 1 (path) or 2 (end), got {pixels.min()} ... {pixels.max()}"
        )
    if (ends := int((pixels == END).sum())) != 2:
        raise ValueError(f"tokens must have two ends (2), got {ends}")
    from scipy.ndimage import label  # numbers the patches

    one, other = label(pixels != EMPTY)[0][pixels == END]
    return bool(one == other)


def _pictures(rng: np.random.Generator, tries: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and answers of those of `tries` pictures in which everything fitted."""
    side = size + 2  # with a border, on which no path runs
    count = np.full((tries, side, side), TAKEN, dtype=np.int16)  # path pixels beside a pixel; TAKEN if unfit
    count[:, 1:-1, 1:-1] = 0
    count = count.reshape(tries, side * side)

    fits = np.ones(tries, dtype=bool)
    tips = []
    for _ in range(2):
        start, end, fitted = _grow(rng, count, side, size, 3 * size // 2)
        tips.append((start, end))
        fits &= fitted
    (a, b), (c, d) = tips
    # Each tip stands in one pair that is joined and in one that is not, first pixel with last in all four.
    pairs = np.stack([np.stack(pair, 1) for pair in ((a, b), (c, d), (a, d), (c, b))], 1)
    rows, columns = np.divmod(pairs, side)
    apart = np.abs(np.diff(rows))[..., 0] + np.abs(np.diff(columns))[..., 0]
    alike = (apart[:, :2, None] == apart[:, None, 2:]).reshape(tries, 4)  # which yes is as far as which no
    choice = (rng.random((tries, 4)) * alike).argmax(1)
    kept = fits & alike.any(1)
    answer = rng.integers(2, size=tries)
    marked = pairs[np.arange(tries), np.where(answer == 1, choice // 2, 2 + choice % 2)][kept]
    count, answer = count[kept], answer[kept]

    fits = np.ones(len(count), dtype=bool)
    for _ in range(DISTRACTORS):
        fits &= _grow(rng, count, side, max(2, size // 4), size // 2)[2]
    tokens = np.where(count >= TAKEN, PATH, EMPTY)
    tokens[np.arange(len(count))[:, None], marked] = END
    inner = tokens.reshape(-1, side, side)[:, 1:-1, 1:-1].reshape(-1, size * size)
    return inner[fits].astype(np.int64), answer[fits].astype(np.int64)


def _grow(
    rng: np.random.Generator, count: np.ndarray, side: int, shortest: int, longest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First and last pixels of a new path in each picture, and whether it reached `shortest` pixels; changes
    `count`.

    A path goes on, in a random direction, to a pixel that has no other path pixel beside it than the one
    where the path stands.
    """
    which = np.arange(len(count))
    steps = np.array([-side, -1, 1, side])
    free = count == 0
    start = here = (rng.random(count.shape, dtype=np.float32) * free).argmax(1)
    going = free.any(1)
    length = going.astype(int)
    wanted = rng.integers(shortest, longest + 1, size=len(count))
    _take(count, which[going], here[going], steps)
    for _ in range(longest - 1):
        beside = here[:, None] + steps
        open_ = count[which[:, None], beside] == 1
        going = going & open_.any(1) & (length < wanted)
        if not going.any():
            break
        turn = (rng.random(open_.shape, dtype=np.float32) * open_).argmax(1)
        here = np.where(going, beside[which, turn], here)
        length += going
        _take(count, which[going], here[going], steps)
    return start, here, length >= shortest


def _take(count: np.ndarray, which: np.ndarray, pixel: np.ndarray, steps: np.ndarray) -> None:
    count[which, pixel] += TAKEN
    count[which[:, None], pixel[:, None] + steps] += 1
