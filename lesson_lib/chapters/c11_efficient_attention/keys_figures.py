"""What must be kept for the next token, and how few heads of keys do."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.picture import Picture, bare, canvas, figure


def next_token(
    tokens: Sequence[int], seconds: Mapping[str, Sequence[float]], gpu: Gpu | None = None
) -> Picture:
    """{number of key heads: seconds for each number of tokens}; `gpu` as `seconds_beside` takes it."""
    return seconds_beside(
        {name: (tokens, taken) for name, taken in seconds.items()},
        gpu,
        alt=(
            "Seconds for one more token over the number of tokens kept, both axes logarithmic, a curve for"
            " each number of heads of keys."
        ),
        caption=(
            "Processor: one layer, one thread, measured where this notebook was built. All axes are"
            " logarithmic."
        ),
        x_axis="tokens kept",
    )


@figure(
    "Heads of queries in a row, below them the heads of keys and values, with a line from each query head"
    " to the keys and values that it uses; groups of query heads share one.",
    "A colour for each group. Below: what must be kept for each token at generation, keys above, values"
    " (dotted) beneath.",
)
def shared_heads(n_heads: int, n_key_heads: int | Sequence[int]) -> Figure:
    """`n_key_heads` divides `n_heads`, or is a list of numbers that do."""
    counts = [n_key_heads] if isinstance(n_key_heads, int) else n_key_heads
    width = min(8.0, 1.0 + 3.4 * len(counts))
    figure, grid = canvas(1, len(counts), width=width, height=2.7)
    for axes, count in zip(grid[0], counts, strict=True):
        bare(axes)
        axes.set(xlim=(-0.6, n_heads - 0.4), ylim=(-0.3, 3.0))
        group = n_heads // count
        middles = [(shared + 0.5) * group - 0.5 for shared in range(count)]
        for head in range(n_heads):
            axes.plot([head, middles[head // group]], [2.1, 0.75], color="0.4", linewidth=1.2, zorder=1)
            _head(axes, (head, 2.0), 0.8, head // group)
        for shared, middle in enumerate(middles):
            _head(axes, (middle, 0.38), 0.42, shared)
            _head(axes, (middle, -0.12), 0.42, shared, hatch="...")
        kept = {1: "multi-query\none for all", n_heads: "multi-head\none each"}
        axes.set_title(kept.get(count, f"grouped-query\none for every {group}"), fontsize=10)
        axes.set_xlabel(f"{2 * count} of {2 * n_heads} arrays kept")
    first = grid[0][0]
    first.set_yticks([2.4, 0.59, 0.09], ["queries", "keys", "values"])
    first.tick_params(axis="y", length=0)
    return figure


def _head(axes: Axes, foot: tuple[float, float], height: float, shared: int, hatch: str = "") -> None:
    """A box for a head of the group `shared`; `foot` is the middle of its lower edge."""
    style = {"facecolor": _shade(shared), "edgecolor": "black", "linewidth": 0.8, "hatch": hatch, "zorder": 2}
    axes.add_patch(Rectangle((foot[0] - 0.36, foot[1]), 0.72, height, **style))


def _shade(shared: int) -> str:
    """Colour of a group of heads; neighbours differ."""
    return ["#9CC9E6", "#F0B98A", "#8FD3BC", "#E3BBD1", "#F3D58B", "#C7E4F7", "#BBBBBB", "#F5EFA0"][
        shared % 8
    ]
