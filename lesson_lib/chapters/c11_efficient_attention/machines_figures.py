"""How the table of scores is computed in pieces: tile by tile, and on a ring of machines."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from lesson_lib import require, summary
from lesson_lib.chapters.c11_efficient_attention.drawing import (
    EMPTY,
    IN_HAND,
    MUTED,
    PALE,
    blank_page,
    legend_below,
    rounded_box,
)
from lesson_lib.charts.marks import plain_ticks
from lesson_lib.charts.picture import CURVES, MARKERS, Picture, canvas, color, figure, styled

Row = Mapping[str, Any]

STAIRS = (
    " Hatched: later keys, never computed. In the tiles on the stairs, what lies above them is computed and"
    " not counted."
)


def tiles(n: int, tile: int, *, causal: bool = False) -> list[tuple[range, range]]:
    """Queries and keys of each tile, in the order in which `attend_tiles` computes them; with `causal` those
    that nobody may see are left out.

    >>> tiles(4, 2, causal=True)
    [(range(0, 2), range(0, 2)), (range(2, 4), range(0, 2)), (range(2, 4), range(2, 4))]
    """
    starts = range(0, n, tile)
    return [
        (range(i, min(n, i + tile)), range(j, min(n, j + tile)))
        for i in starts
        for j in starts
        if not causal or j < min(n, i + tile)
    ]


@styled
def tile_order(n: int, tile: int, *, causal: bool = False, step: int | None = None) -> Picture:
    """Tiles of `tile` tokens (real ones are larger); `step` is the number, from 1, of the tile in hand; None
    draws the order alone."""
    cut = tiles(n, tile, causal=causal)
    unit = 4.4 / n  # inches of a token
    left, top, column, apart = 0.45, 0.75, 0.42, 0.14
    wide = 1.5 * column
    x = left + 4.4 + 0.5
    figure, page = blank_page(x + 2 * (column + apart) + wide + 0.5, top + 4.4 + 0.5)
    hand = cut[step - 1][0] if step is not None else None
    page.add_patch(
        Rectangle((left, top), 4.4, 4.4, facecolor="white", edgecolor="0.5", hatch="////", linewidth=0)
    )
    size = min(13.0, 0.34 * tile * unit * 72, 40 / len(str(len(cut))))
    for number, (queries, keys) in enumerate(cut, start=1):
        ground, edge = _ground(number, step)
        corner = left + keys.start * unit, top + queries.start * unit
        sides = len(keys) * unit, len(queries) * unit
        page.add_patch(Rectangle(corner, *sides, facecolor=ground, edgecolor="white", linewidth=1.5))
        # below the stairs of a causal mask
        middle = corner[0] + sides[0] * 0.22, corner[1] + sides[1] * 0.76
        page.text(*middle, str(number), ha="center", va="center_baseline", fontsize=size, color=edge)
    if causal:
        stairs = [(left + k * unit, top + i * unit) for k in range(1, n + 1) for i in (k - 1, k)]
        page.plot(*zip((left, top), *stairs, strict=True), color="black", linewidth=1.1, zorder=3)
    page.add_patch(Rectangle((left, top), 4.4, 4.4, fill=False, edgecolor="0.3", linewidth=1.2))
    page.text(left + 2.2, top - 0.12, "keys →", ha="center", fontsize=10)
    page.text(left - 0.1, top + 2.2, "← queries", ha="right", va="center", rotation=90, fontsize=10)
    names = (
        ("top", "largest\nscore", column),
        ("total", "sum of\nexp", column),
        ("mixed", "weighted\nvalues", wide),
    )
    for name, what, across in names:
        page.text(x + across / 2, top - 0.12, name, ha="center", fontsize=10, fontweight="bold")
        page.text(x + across / 2, top + 4.5, what, ha="center", va="top", fontsize=9, color=MUTED)
        for i in range(n):
            corner_of_row = (x, top + i * unit)
            ground = _kept(i, hand)
            page.add_patch(
                Rectangle(corner_of_row, across, unit, facecolor=ground, edgecolor="white", linewidth=0.6)
            )
        page.add_patch(Rectangle((x, top), across, 4.4, fill=False, edgecolor="0.3", linewidth=1.2))
        x += across + apart
    page.text(x - apart, 0.32, "kept of each row", ha="right", va="center", fontsize=10)
    _key_to(page, _grounds(causal, step), left)
    return Picture(
        figure,
        "A table of queries by keys cut into tiles that are numbered row by row in the order in which they"
        " are computed; beside it three narrow columns, what is kept of each row: its largest score, its sum,"
        " and its weighted values.",
        "Only one tile of scores exists at a time; three things are kept of each row." + STAIRS * causal,
    )


@figure(
    "Ring attention round by round: a row for each round with the keys that each process has, arrows to"
    " the next process, and a small table of queries by keys in which the blocks computed in this round"
    " are coloured.",
    "Queries stay, keys and values go round. Coloured: the blocks of this round, in the colour of their"
    " keys; grey: done before. After the last round every block is done. Besides its own tokens no"
    " process has held more than two blocks of keys at a time.",
)
def ring_rounds(processes: int) -> Figure:
    """Of 2 to 6 processes, of which each hands its keys to the next."""
    p = processes
    table = 1.05
    apart, box = 5.3 / p, min(0.86, 5.3 / p - 0.28)
    tall, top = table + 0.28, 0.62
    figure, page = blank_page(8.0, top + p * tall)
    for rank in range(p):
        page.text(
            0.95 + (rank + 0.5) * apart, 0.2, f"process {rank}", ha="center", fontsize=10 if p < 6 else 9.5
        )
        page.text(0.95 + (rank + 0.5) * apart, 0.42, f"queries {rank}", ha="center", fontsize=9, color=MUTED)
    page.text(7.32, 0.2, "the table", ha="center", fontsize=10)
    page.text(7.32, 0.42, "queries ↓  keys →", ha="center", fontsize=9, color=MUTED)
    for turn in range(p):
        y = top + turn * tall + 0.04
        middle = y + table / 2
        page.text(0.06, middle, f"round {turn}", va="center", fontsize=10, fontweight="bold")
        for rank in range(p):
            owner, x = (rank - turn) % p, 0.95 + (rank + 0.5) * apart
            rounded_box(page, (x - box / 2, middle - 0.21), (box, 0.42), _tone(owner), "black")
            page.text(
                x,
                middle,
                f"keys {owner}",
                ha="center",
                va="center_baseline",
                fontsize=9.5,
                color=_on(owner),
                zorder=5,
            )
            if turn < p - 1:
                _hand_on(page, rank, p, middle, apart, box)
        _blocks(page, (7.32 - table / 2, y), table / p, p, turn)
    return figure


@styled
def ring_memory(rows: Sequence[Row]) -> Picture:
    """Rows with "processes", "tokens", "backward" and "mib"; those equal in the first three become a band."""
    bands = summary.bands(rows, ("tokens", "backward"), "processes", "mib")
    several = len({backward for _, backward in bands}) > 1
    figure, grid = canvas(width=7.0, height=4.0)
    axes = grid[0][0]
    for k, ((tokens, backward), (xs, low, middle, high)) in enumerate(sorted(bands.items())):
        name = f"{tokens:,} tokens" + (", backward too" if backward else ", forward" if several else "")
        style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 6}
        axes.plot(xs, middle, label=name, markeredgecolor="black", markeredgewidth=0.5, zorder=3, **style)
        axes.fill_between(xs, low, high, color=color(k), alpha=0.15, linewidth=0)
        start = next((i for i, x in enumerate(xs) if x > 1), 0)
        ideal = [middle[start] * xs[start] / x for x in xs]
        label = "falls as 1 / processes" if k == len(bands) - 1 else None
        axes.plot(xs, ideal, color="0.4", dashes=(5, 3), linewidth=1.1, label=label, zorder=4)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    counts = sorted({row["processes"] for row in rows})
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.minorticks_off()
    plain_ticks(axes, *axes.get_ylim(), which="y")
    axes.set_xlabel("processes")
    axes.set_title("MiB at the peak, of one process", loc="left")
    legend_below(figure, axes)
    return Picture(
        figure,
        "Memory of one process over the number of processes, both axes logarithmic,"
        f" {'one curve' if len(bands) == 1 else 'a curve for each number of tokens and kind of pass'}, and"
        " dashed lines that fall as one over the number of processes.",
        "Marks: measured. Dashed: 1 / processes, through the first mark of more than one process. A process"
        " alone lies below it: it takes no keys from another one.",
    )


@styled
def lever(parts: Mapping[str, tuple[float, float]], *, most: float) -> Picture:
    """Parts of the keys as stones on a lever, {name: (output, sum of exp)}: each stands at its output, as
    heavy as its sum, and the lever balances at the output of all keys. `most` is the value at its right end.

    Raises ValueError for no parts, for a sum that is not above 0, and for an output that is not on the lever.
    """
    require.number(above=0, most=most)
    if not parts:
        raise ValueError("parts must hold at least one part, {name: (output, sum of exp)}, got none")
    for name, (output, its_sum) in parts.items():
        if not its_sum > 0 or not 0 <= output <= most:
            raise ValueError(
                f"parts[{name!r}] must be an output from 0 to {most:g} and a sum above 0, got {output:g} and"
                f" {its_sum:g}"
            )
    total = sum(its_sum for _, its_sum in parts.values())
    balance = sum(output * its_sum for output, its_sum in parts.values()) / total
    figure, page = blank_page(7.0, 1.9)
    across = 6.2 / most
    for k, (name, (output, its_sum)) in enumerate(parts.items()):
        side = 0.19 * its_sum**0.5
        x = 0.4 + output * across
        page.add_patch(Rectangle((x - side / 2, 1.2 - side), side, side, facecolor=color(k), alpha=0.85))
        page.text(x, 1.2 - side / 2, name, ha="center", va="center", fontsize=11, fontweight="bold")
    page.plot([0.4, 6.6], [1.22, 1.22], color="black", linewidth=3)
    page.plot([0.4 + balance * across], [1.35], marker="^", markersize=13, color="black")
    for value in range(0, round(most) + 1, 10):
        page.text(0.4 + value * across, 1.62, str(value), ha="center", va="center", fontsize=10)
    stones = ", ".join(
        f"{name} at {output:g} with a sum of {its_sum:g}" for name, (output, its_sum) in parts.items()
    )
    return Picture(
        figure,
        f"A lever with stones on it: {stones}. It balances at {balance:.4g}.",
        f"A stone stands at its part's output, and is as heavy as its part's sum. The lever balances at"
        f" {balance:.4g}.",
    )


def _key_to(page: Axes, grounds: Sequence[tuple[str, str, str]], spot: float) -> None:
    """What each ground means, from `spot` on to the right: a box and its word."""
    for ground, hatch, word in grounds:
        box = {"facecolor": ground, "edgecolor": "0.5", "hatch": hatch, "linewidth": 0.8}
        page.add_patch(Rectangle((spot, 0.22), 0.24, 0.2, **box))
        page.text(spot + 0.32, 0.32, word, va="center", fontsize=9)
        spot += 0.5 + 0.073 * len(word)


def _ground(number: int, step: int | None) -> tuple[str, str]:
    """Colours of a tile and of its number."""
    if step is None or number < step:
        return PALE, "black"
    return (IN_HAND, "white") if number == step else (EMPTY, "0.45")


def _kept(row: int, hand: range | None) -> str:
    """Colour of what is kept of a row: finished, in hand, or not yet begun."""
    if hand is None or row < hand.start:
        return PALE
    return IN_HAND if row < hand.stop else EMPTY


def _grounds(causal: bool, step: int | None) -> list[tuple[str, str, str]]:
    """Ground, hatch and word of each kind of tile that is drawn."""
    words = [(PALE, "", "done")] if step is not None else [(PALE, "", "computed")]
    if step is not None:
        words += [(IN_HAND, "", "in hand"), (EMPTY, "", "not yet")]
    return words + ([("white", "////", "never computed")] if causal else [])


def _tone(owner: int) -> str:
    """Colour of a process's keys."""
    return CURVES[owner % 6]


def _on(owner: int) -> str:
    """Colour of text on that."""
    return "white" if owner % 6 in (0, 1, 2) else "black"


def _hand_on(page: Axes, rank: int, p: int, middle: float, apart: float, box: float) -> None:
    """An arrow to the next process; the last one's goes back below all boxes."""
    style = {"arrowstyle": "-|>", "mutation_scale": 11, "color": "#222222", "linewidth": 1.2, "zorder": 4}
    x = 0.95 + (rank + 0.5) * apart
    if rank < p - 1:
        ends = {"posA": (x + box / 2, middle), "posB": (x + apart - box / 2, middle)}
        page.add_patch(FancyArrowPatch(**ends, shrinkA=1, shrinkB=1, **style))
        return
    first, low = 0.95 + apart / 2, middle + 0.4
    page.plot([x, x, first], [middle + 0.21, low, low], color="#222222", linewidth=1.2, zorder=0)
    ends = {"posA": (first, low), "posB": (first, middle + 0.21)}
    page.add_patch(FancyArrowPatch(**ends, shrinkA=0, shrinkB=0, **style))


def _blocks(page: Axes, corner: tuple[float, float], side: float, p: int, turn: int) -> None:
    """The table of all queries and keys: blocks of this round in their keys' colour, earlier ones grey."""
    for rank in range(p):
        for owner in range(p):
            when = (rank - owner) % p
            ground = _tone(owner) if when == turn else "0.78" if when < turn else "white"
            corner_of_block = corner[0] + owner * side, corner[1] + rank * side
            page.add_patch(
                Rectangle(corner_of_block, side, side, facecolor=ground, edgecolor="0.5", linewidth=0.7)
            )
