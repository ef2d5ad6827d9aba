"""The band of a window, and the blocks in which it is computed."""

from collections.abc import Mapping
from typing import NamedTuple

from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from lesson_lib.charts.picture import CURVES, Picture, canvas, figure, styled, trim
from lesson_lib.truncated import BLOCK

PALE, SEEN, END = "#D6ECFA", CURVES[0], "#FBE3C0"


class Piece(NamedTuple):
    """Queries from `start` up to, not including, `stop`, and the keys that they are multiplied with; `end`:
    one that goes by itself."""

    start: int
    stop: int
    keys: tuple[int, int]
    end: bool

    @property
    def cells(self) -> int:
        """How many scores are computed."""
        return (self.stop - self.start) * (self.keys[1] - self.keys[0])


@figure(
    "Tables of queries by keys: coloured cells say that the query may look at the key.",
    "Blue: the query may look at the key.",
)
def band(masks: Bool[Tensor, "n m"] | Mapping[str, Bool[Tensor, "n m"]]) -> Figure:
    """A mask, or {name: mask}."""
    masks = {"": masks} if isinstance(masks, Tensor) else dict(masks)
    figure, grid = canvas(1, len(masks), width=min(8.0, 0.8 + 2.9 * len(masks)), height=3.6)
    for axes, (name, mask) in zip(grid[0], masks.items(), strict=True):
        queries, keys = mask.shape
        _cells(axes, mask.cpu())
        axes.set_title(name)
        axes.set_xlabel("key")
        every = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500) if max(queries, keys) / s <= 8)
        axes.set(xticks=range(0, keys, every), yticks=range(0, queries, every))
    grid[0][0].set_ylabel("query")
    trim(figure)
    return figure


def pieces(n: int, radius: int, block: int = BLOCK) -> list[Piece]:
    """How `attend_window` cuts n queries: blocks whose keys are all there, computed at once, and ends that go
    by themselves.

    `block` is the least number of queries in a block.

    >>> [(piece.start, piece.stop, piece.keys) for piece in pieces(8, radius=1, block=3)]
    [(0, 1, (0, 2)), (1, 4, (0, 5)), (4, 7, (3, 8)), (7, 8, (6, 8))]
    """
    block = max(radius, block)
    count = (n - 2 * radius) // block
    if count < 2:
        cuts = [(start, min(n, start + block), True) for start in range(0, n, block)]
    else:
        end = radius + count * block
        inner = [(radius + k * block, radius + (k + 1) * block, False) for k in range(count)]
        cuts = [(0, radius, True), *inner, (end, n, True)]
    return [
        Piece(start, stop, (max(0, start - radius), min(n, stop + radius)), end)
        for start, stop, end in cuts
        if stop > start
    ]


@styled
def blocks(n: int = 32, radius: int = 4, block: int = 8) -> Picture:
    """Blocks of queries and the keys that each is multiplied with, of at most 80 tokens, so that cells can be
    seen. Raises ValueError where n is no multiple of `block`."""
    if n % block:
        raise ValueError(f"n must be a multiple of block = {block}, got {n}")
    figure, grid = canvas(width=6.6, height=5.2)
    axes = grid[0][0]
    for start in range(0, n, block):
        size = (block + 2 * radius, block)
        style = {"facecolor": PALE, "edgecolor": SEEN, "label": "a block's scores"}
        axes.add_patch(Rectangle((start - radius, start), *size, linewidth=1.4, **style))
    for left, start in ((-radius, 0), (n, n - block)):
        style = {"facecolor": END, "edgecolor": CURVES[1], "label": "keys of zeros, beyond the ends"}
        axes.add_patch(Rectangle((left, start), radius, block, linewidth=1.4, **style))
    for i in range(n):
        for j in range(max(0, i - radius), min(n, i + radius + 1)):
            label = "the window: what counts"
            axes.add_patch(Rectangle((j + 0.12, i + 0.12), 0.76, 0.76, color=SEEN, label=label))
    axes.text(0.8 * n, 0.13 * n, "never\ncomputed", ha="center", va="center", fontsize=10, color="0.35")
    axes.text(0.2 * n, 0.87 * n, "never\ncomputed", ha="center", va="center", fontsize=10, color="0.35")
    axes.set(xlim=(-radius - 0.3, n + radius + 0.3), ylim=(n + 0.3, -0.3), aspect="equal")
    axes.set(xlabel="key", ylabel="query")
    kinds = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(kinds.values(), kinds.keys(), loc="outside lower center", frameon=False)
    trim(figure)
    computed, counted = n * (block + 2 * radius), _counted(n, radius)
    return Picture(
        figure,
        "A table of queries by keys: a band of cells along the diagonal, covered by boxes that overlap"
        " sideways; the rest of the table is empty.",
        f"{n} tokens, radius {radius}: the table has {n * n} scores. The boxes have {computed}, and {counted}"
        " of them count.",
    )


def _cells(axes: Axes, mask: Tensor) -> None:
    """A boolean table, with lines between its cells where they are few."""
    axes.imshow(
        mask.cpu().numpy(), cmap=ListedColormap(["#F1F1F1", SEEN]), vmin=0, vmax=1, interpolation="nearest"
    )
    axes.spines[:].set_visible(False)
    queries, keys = mask.shape
    if max(queries, keys) <= 32:
        for i in range(queries + 1):
            axes.axhline(i - 0.5, color="white", linewidth=1)
        for j in range(keys + 1):
            axes.axvline(j - 0.5, color="white", linewidth=1)


def _counted(n: int, radius: int) -> int:
    """Cells of the band."""
    return sum(min(n, i + radius + 1) - max(0, i - radius) for i in range(n))
