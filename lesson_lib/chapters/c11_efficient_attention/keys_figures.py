"""What must be kept for the next token, and how few heads of keys do."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lesson_lib import require
from lesson_lib.chapters.c11_efficient_attention.drawing import (
    DASHES,
    all_of,
    legend_below,
    power_ticks,
)
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.picture import MARKERS, Picture, bare, canvas, color, figure, styled
from lesson_lib.experiments import results

GIB = 2**30


def next_token(
    tokens: Sequence[int], seconds: Mapping[str, Sequence[float]], gpu: Gpu | None = None
) -> Picture:
    """Processor seconds for one more token over the tokens kept, for each number of key heads, and a GPU's;
    `gpu` as `seconds_beside` takes it."""
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


@styled
def cache_growth(
    layers: int, d_head: int, key_heads: Mapping[str, int], tokens: Sequence[int], bytes_each: int = 2,
    *, measured: Mapping[str, Sequence[tuple[int, float]]] | None = None,
) -> Picture:  # fmt: skip
    """GiB that the keys and values of one text take at generation, over its tokens, a line for each number of
    key heads.

    From 2 · layers · key heads · d_head · tokens · bytes_each; `measured` are {name: [(tokens, GiB), ...]},
    drawn as marks on it. Both axes are logarithmic. Raises ValueError where a size is no whole number above
    0.
    """
    require.whole(layers=layers, d_head=d_head, bytes_each=bytes_each)
    heads, measured = all_of(key_heads, "key_heads", "number"), measured or {}
    for name, count in heads.items():
        require.whole(**{f"key_heads[{name!r}]": count})
    if isinstance(tokens, str) or not isinstance(tokens, Sequence) or len(tokens) < 2:
        raise ValueError(f"tokens must be at least two numbers of tokens, got {tokens!r}")
    for count in tokens:
        require.whole(tokens=count)
    figure, grid = canvas(width=7.0, height=4.0)
    axes = grid[0][0]
    xs = sorted(tokens)
    for k, (name, count) in enumerate(heads.items()):
        gib = [2 * layers * count * d_head * n * bytes_each / GIB for n in xs]
        axes.plot(xs, gib, color=color(k), linestyle=DASHES[k % 4], linewidth=1.7, label=name)
        points = measured.get(name, [])
        style = {"marker": MARKERS[k % len(MARKERS)], "markersize": 6.5, "markeredgecolor": "black"}
        if points:
            axes.plot(*zip(*points, strict=True), color=color(k), linestyle="none", zorder=3, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    power_ticks(axes, xs)
    axes.yaxis.minorticks_off()
    low, high = axes.get_ylim()
    ks = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    every = next(step for step in (1, 2, 4, 5, 10, 20) if len(ks) / step <= 8)
    ks = [k for k in ks if k % every == 0]
    axes.set_yticks([2.0**k for k in ks], [_size(k) for k in ks])
    axes.set_ylim(low, high)
    axes.set_xlabel("tokens read and written so far")
    axes.set_title("keys and values kept for one text", loc="left")
    legend_below(figure, axes)
    return Picture(
        figure,
        "Memory that kept keys and values take, over the tokens of one text, both axes logarithmic, a"
        " straight line for each number of key heads.",
        "Lines: 2 · layers · key heads · width of a head · tokens · bytes of a number."
        + (" Marks: measured." if measured else ""),
    )


@figure(
    "Bits per character over the size of the cache: the full cache has the fewest bits, half and a"
    " quarter of it a little more, with all seeds of the shared ones above those of the full one.",
    "A mark for each seed, the line through the means. Widened: as many parameters as with all heads of"
    " keys.",
    width=6.4,
    height=3.4,
    title="bits per character, test text",
)
def shared_bits(axes: Axes) -> None:
    """Bits per character of the stored GPTs over the KiB of their caches: a mark for each seed, a line
    through the means; the one that was given its parameters back beside it."""
    rows = [row for row in results("shared_keys")["rows"] if row["kind"] == "trained"]
    plain = min(row["d_inner"] for row in rows)
    groups = {"same layers": True, "feed-forward layers widened": False}
    for k, (name, same) in enumerate(groups.items()):
        found: dict[float, list[float]] = {}
        for row in rows:
            if (row["d_inner"] == plain) == same:
                found.setdefault(row["cache_bytes"] / 1024, []).append(row["bits"])
        shift = 1.0 if same else 1.06  # beside the others, where caches are equal
        style = {"color": color(k), "marker": MARKERS[k], "markersize": 7, "linestyle": "none"}
        points = [(kib * shift, bits) for kib, of_seeds in found.items() for bits in of_seeds]
        axes.plot(*zip(*points, strict=True), label=name, **style)
        if same:
            means = sorted((kib, sum(bits) / len(bits)) for kib, bits in found.items())
            axes.plot(*zip(*means, strict=True), color=color(k), linewidth=1.4, zorder=1)
    heads = {row["cache_bytes"] / 1024: row["n_key_heads"] for row in rows}
    axes.set_xscale("log", base=2)
    ticks = [f"{kib:g} KiB\n{n} head{'s' if n > 1 else ''} of keys" for kib, n in heads.items()]
    axes.set_xticks(list(heads), ticks)
    axes.minorticks_off()
    axes.set_xlim(min(heads) / 1.3, max(heads) * 1.3)
    legend_below(axes.figure, axes)


@figure(
    "Heads of queries in a row, below them the heads of keys and values, with a line from each query head"
    " to the keys and values that it uses; groups of query heads share one.",
    "A colour for each group. Below: what must be kept for each token at generation, keys above, values"
    " (dotted) beneath.",
)
def shared_heads(n_heads: int, n_key_heads: int | Sequence[int]) -> Figure:
    """Query heads above, key heads below, and lines from each head to the keys and values that it uses; a
    panel for each number of key heads.

    Raises ValueError where n_heads is not 2 to 16, or is no multiple of a number of key heads.
    """
    require.whole(at_least=2, at_most=16, n_heads=n_heads)
    counts = [n_key_heads] if isinstance(n_key_heads, int) else n_key_heads
    if isinstance(counts, str) or not isinstance(counts, Sequence) or not 1 <= len(counts) <= 4:
        raise ValueError(
            f"n_key_heads must be a number of key heads, or a list of 1 to 4 of them, got {n_key_heads!r}"
        )
    for count in counts:
        require.whole(n_key_heads=count)
        if n_heads % count:
            raise ValueError(
                f"n_key_heads must divide n_heads={n_heads}, got {count}; take one of "
                f"{[k for k in range(1, n_heads + 1) if n_heads % k == 0]}"
            )
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


def _head(axes: Axes, place: tuple[float, float], height: float, shared: int, hatch: str = "") -> None:
    """A box for a head of the group `shared`; `place` is the middle of its lower edge."""
    style = {"facecolor": _shade(shared), "edgecolor": "black", "linewidth": 0.8, "hatch": hatch, "zorder": 2}
    axes.add_patch(Rectangle((place[0] - 0.36, place[1]), 0.72, height, **style))


def _size(power: int) -> str:
    """2^power GiB in words.

    >>> _size(3), _size(-5), _size(-12), _size(11)
    ('8 GiB', '32 MiB', '256 KiB', '2 TiB')
    """
    for unit, start in (("TiB", 10), ("GiB", 0), ("MiB", -10), ("KiB", -20)):
        if power >= start:
            return f"{2 ** (power - start)} {unit}"
    return f"2^{power + 30} B"


def _shade(shared: int) -> str:
    """Colour of a group of heads; neighbours differ."""
    return ["#9CC9E6", "#F0B98A", "#8FD3BC", "#E3BBD1", "#F3D58B", "#C7E4F7", "#BBBBBB", "#F5EFA0"][
        shared % 8
    ]
