"""Costs at any length, far outside what was measured: points, laws and the lines of laws to a billion tokens;
numbers in units that people use."""

import html
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from matplotlib.axes import Axes

from lesson_lib import require, summary
from lesson_lib.charts.picture import MARKERS, Picture, canvas, color, styled

Row = Mapping[str, Any]
MINUTE, HOUR, DAY, YEAR = 60.0, 3600.0, 86400.0, 365.25 * 86400.0
TIMES = {
    1e-6: "1 µs", 1e-3: "1 ms", 1: "1 s", MINUTE: "1 min", HOUR: "1 h", DAY: "1 day", YEAR: "1 year",
    1e3 * YEAR: "1,000 years",
    1e6 * YEAR: "1 million years",
}  # fmt: skip
MEMORIES = {
    2.0**power: f"1 {unit}"
    for power, unit in ((-10, "KiB"), (0, "MiB"), (10, "GiB"), (20, "TiB"), (30, "PiB"), (40, "EiB"))
}
COLUMNS = {"cpu_s": ("processor seconds of one pass", TIMES), "mib": ("memory at the peak", MEMORIES)}
MARKS = (1_000, 1_000_000, 1_000_000_000)
FAR = 10  # times the longest measured length: from there on a number is marked as extrapolated
ROOM = 0.062  # between labels at the lines' ends, of the height


@runtime_checkable
class Cost(Protocol):
    """What `measure.Law` is: a cost for any n."""

    def at(self, n: int | float) -> int | float: ...


@styled
def laws_picture(rows: Sequence[Row], laws: Mapping[str, Cost], *, of: str = "cpu_s") -> Picture:
    """Rows of `experiments.laws`, the median of repeats; {kind: law}; `of` is a key of COLUMNS."""
    points = _points(rows, of)
    title, units = COLUMNS[of]
    figure, grid = canvas(width=8.0, height=5.0)
    axes, end = grid[0][0], MARKS[-1]
    axes.set(xscale="log", yscale="log")
    least = min(n for at in points.values() for n in at)
    for k, (kind, at) in enumerate(points.items()):
        law, style = laws[kind], {"color": color(k), "linestyle": "none"}
        style |= {"marker": MARKERS[k % len(MARKERS)], "markersize": 5.5}
        for held_out, face in ((False, color(k)), (True, "white")):
            some = [(n, value) for n, (value, out) in at.items() if out == held_out]
            if some:
                axes.plot(*zip(*some, strict=True), **style, markerfacecolor=face, zorder=3)
        for low, high, line in ((least, max(at), "-"), (max(at), end, "--")):
            xs = [low * (high / low) ** (i / 60) for i in range(61)]
            axes.plot(xs, [law.at(x) for x in xs], color=color(k), linestyle=line, linewidth=1.2)
    axes.set_xlim(least / 1.5, end)
    axes.set_xticks(
        [10.0**power for power in range(3, 10)], ["1 k", "10 k", "100 k", "1 M", "10 M", "100 M", "1 G"]
    )
    for mark in MARKS:
        axes.axvline(mark, color="0.75", linewidth=0.8, zorder=0)
    low, high = axes.get_ylim()
    axes.set_yticks(
        [value for value in units if low <= value <= high],
        [name for value, name in units.items() if low <= value <= high],
    )
    axes.minorticks_off()
    axes.set_ylim(low, high)
    axes.set_xlabel("tokens")
    axes.set_title(title, loc="left")
    _labels(axes, {kind: laws[kind].at(end) for kind in points})
    what = "Processor seconds" if of == "cpu_s" else "Memory"
    return Picture(
        figure,
        f"{what} of attention over the number of tokens, both axes logarithmic: measured points of each kind"
        " on the left, and a line for each kind that goes on to a billion tokens.",
        "Open marks were held out, to check the law; it was fitted to the last three filled ones. Dashed:"
        " beyond what was measured.",
    )


class ScaleTable:
    """Seconds and memory of each kind at some lengths, as a table in a notebook and as text elsewhere."""

    def __init__(self, sizes: Sequence[int], rows: Mapping[str, Sequence[str]], *, marked: bool) -> None:
        self.sizes, self.marked = tuple(sizes), marked
        self.rows = {kind: tuple(cells) for kind, cells in rows.items()}

    def __repr__(self) -> str:
        lines = [
            ("", *(f"{human_count(n)} tokens" for n in self.sizes)),
            *((kind, *cells) for kind, cells in self.rows.items()),
        ]
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip()
            for line in lines
        )
        return f"{text}\n{self._note()}".rstrip()

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th scope='col' style='text-align:left'>{text}</th>"
            for text in ("", *(f"{human_count(n)} tokens" for n in self.sizes))
        )
        body = "".join(
            f"<tr><th scope='row' style='text-align:left'>{html.escape(kind)}</th>"
            + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for kind, cells in self.rows.items()
        )  # fmt: skip
        return f"<table><tr>{head}</tr>{body}</table><p><em>{self._note()}</em></p>"

    def _note(self) -> str:
        return f"≈ more than {FAR} times the longest length that was measured" if self.marked else ""


def scale_table(
    laws: Mapping[str, tuple[Cost, Cost]],
    *,
    longest: Mapping[str, int] | None = None,
    sizes: Sequence[int] = MARKS,
) -> ScaleTable:
    """Time and memory of each kind at `sizes` tokens, by its laws: {kind: (law of seconds, law of MiB)}, as
    `experiments.laws.machine_laws` gives them.

    `longest` are the longest lengths measured, {kind: n}: numbers more than ten times beyond are marked with
    ≈.
    """
    marked, rows = False, {}
    for kind, (seconds, mib) in laws.items():
        cells = []
        for n in sizes:
            far = longest is not None and n > FAR * longest[kind]
            marked = marked or far
            cells.append(f"{'≈ ' if far else ''}{human_seconds(seconds.at(n))}, {human_mib(mib.at(n))}")
        rows[kind] = cells
    return ScaleTable(sizes, rows, marked=marked)


@styled
def machine_picture(held: Mapping[str, int | float], memory_mib: int | float, *, title: str = "") -> Picture:
    """{name: MiB}, and the MiB of the machine."""
    figure, grid = canvas(width=7.4, height=0.9 + 0.34 * len(held))
    axes = grid[0][0]
    low, high = min(*held.values(), memory_mib) / 4, max(*held.values(), memory_mib) * 30
    for k, value in enumerate(held.values()):
        fits = value <= memory_mib
        axes.barh(
            [k], [value], color=color(0 if fits else 1), hatch=None if fits else "///", edgecolor="white"
        )
        text = f"{human_mib(value)}, {'fits' if fits else 'does not fit'}"
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # over the dashed line
        axes.annotate(
            text,
            (value, k),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox=ground,
        )
    axes.axvline(memory_mib, color="black", linestyle="--", linewidth=1.2)
    axes.set(
        xscale="log",
        xlim=(low, high),
        ylim=(len(held) - 0.4, -0.6),
        yticks=range(len(held)),
        yticklabels=list(held),
    )
    ticks = {value: name for value, name in MEMORIES.items() if low <= value <= high}
    axes.set_xticks(list(ticks), ticks.values())
    axes.minorticks_off()
    axes.set_title(title, loc="left")
    return Picture(
        figure,
        "Bars of the memory that each kind of attention holds, on a logarithmic axis, with a line at the"
        " memory of one machine.",
        f"Dashed: the memory of one machine, {human_mib(memory_mib)}. Blue bars fit, hatched ones do not.",
    )


def human_seconds(seconds: int | float) -> str:
    """Seconds in the unit that people would use.

    >>> human_seconds(0.0123), human_seconds(90.0), human_seconds(2.1 * 86400)
    ('12 ms', '1.5 min', '2.1 days')
    """
    require.number(seconds=seconds)
    for unit, size in (
        (" million years", 1e6 * YEAR),
        (" years", YEAR),
        (" days", DAY),
        (" h", HOUR),
        (" min", MINUTE),
        (" s", 1.0),
        (" ms", 1e-3),
    ):
        if seconds >= size:
            text = _short(seconds / size)
            return text + (unit[:-1] if text == "1.0" and unit.endswith("s") and len(unit) > 3 else unit)
    return f"{_short(seconds / 1e-6)} µs"


def human_mib(mib: int | float) -> str:
    """MiB in the unit that fits.

    >>> human_mib(0.5), human_mib(8192), human_mib(7.6 * 2**20)
    ('512 KiB', '8.0 GiB', '7.6 TiB')
    """
    require.number(mib=mib)
    for unit, size in (("EiB", 2.0**40), ("PiB", 2.0**30), ("TiB", 2.0**20), ("GiB", 2.0**10), ("MiB", 1.0)):
        if mib >= size:
            return f"{_short(mib / size)} {unit}"
    return f"{_short(mib * 1024)} KiB"


def human_count(n: int | float) -> str:
    """A number of tokens with its unit: k, M, G are thousand, million, thousand million.

    >>> human_count(1000), human_count(2_500_000), human_count(16384)
    ('1 k', '2.5 M', '16.4 k')
    """
    for unit, size in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if n >= size:
            return f"{round(n / size, 1):g}{unit}"
    return f"{n:g}"


def _short(number: int | float) -> str:
    """Two digits, or all before the point."""
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.1f}"


def _labels(axes: Axes, ends: Mapping[str, int | float]) -> None:
    """Each line's name at its right end, pushed apart where lines end close together, with a thin line to
    where it belongs."""
    low, high = (math.log(value) for value in axes.get_ylim())
    wanted = {kind: (math.log(value) - low) / (high - low) for kind, value in ends.items()}
    places = _apart(wanted)
    options = {"xycoords": "axes fraction", "textcoords": "axes fraction", "va": "center", "fontsize": 9.5}
    for k, kind in enumerate(ends):
        line = {"arrowstyle": "-", "color": color(k), "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
        line["relpos"] = (0, 0.5)  # to the left end of the name
        axes.annotate(kind, (1.0, wanted[kind]), xytext=(1.06, places[kind]), arrowprops=line, **options)


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """Places at least ROOM apart, in the same order and as near as can be to those wanted: names that meet
    stand round their mean."""
    groups: list[list[str]] = []

    def first(group: list[str]) -> float:
        return statistics.fmean(wanted[kind] for kind in group) - ROOM * (len(group) - 1) / 2

    for kind in sorted(wanted, key=lambda kind: wanted[kind]):
        groups.append([kind])
        while len(groups) > 1 and first(groups[-2]) + ROOM * len(groups[-2]) > first(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return {kind: first(group) + ROOM * i for group in groups for i, kind in enumerate(group)}


def _points(rows: Sequence[Row], of: str) -> dict[str, dict[int, tuple[float, bool]]]:
    """{kind: {n: (the middle of the repeats, held out)}}."""
    held = {(row["kind"], row["n"]): row["held_out"] for row in rows}
    return {
        kind: {n: (statistics.median(at[n]), held[kind, n]) for n in sorted(at)}
        for kind, at in summary.gathered(rows, "kind", "n", of).items()
    }
