"""A window over speech: choose its radius, and see who looks at whom, what it costs, and how well phonemes
are recognised with it."""

import html
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ipywidgets

from lesson_lib.chapters.c09_truncated_attention.window_figures import band, pieces
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.masks import window
from lesson_lib.widgets.explorer import Explorer

FARTHEST, FULL = 60, "full"
TOKENS = 60  # in the mask
FRAMES, HEADS, D_K = 1000, 8, 64  # the cost is that of 10 s of speech
SIDE = 240  # screen pixels of the mask
WIDTH, HEIGHT, LEFT, GAP = 400, 96, 44, 54  # of each chart; the last step of the radius, to full, is a gap

STYLE = """
.ll-told {min-height:2.7em}
.ll-box .ll-cost th {font-weight:400; text-align:left; padding:2px 14px 2px 0; white-space:nowrap}
.ll-box .ll-cost thead th {font-weight:600; white-space:normal; text-align:right}
.ll-box .ll-cost td {border:0; padding:2px 14px 2px 0; white-space:nowrap}
"""


class Cost(NamedTuple):
    """Scores that count and that are computed in one head, multiplications and MiB of scores in all heads,
    for FRAMES frames."""

    counted: int
    computed: int
    operations: int
    mib: float


class WindowExplorer(Explorer):
    """The radius of a window: choose it, and see its mask, its cost for 10 s of speech, and the accuracy of
    the nearest radii that were trained.

    `rows` are those of `experiments.phonemes` (kind "point"); `saturates` is the radius that
    `experiments.phonemes.saturates` gives (None: full), marked on both curves. The cost is that of
    `attend_window`, its blocks included: products of queries with keys and of weights with values, 8 heads of
    width 64.
    Raises TypeError where `rows` is no list of rows, ValueError where none is a point, or none has the radius
    `saturates`.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], *, saturates: int | None) -> None:
        self.measured = _points(rows)
        if saturates not in self.measured:
            raise ValueError(
                f"saturates must be one of the measured radii {list(self.measured)}, got {saturates!r}; "
                "take experiments.phonemes.saturates(rows)"
            )
        self.saturates = saturates
        self._costs = [(radius, cost(radius).operations) for radius in (*range(FARTHEST + 1), None)]
        self.slider = ipywidgets.SelectionSlider(
            options=[*map(str, range(FARTHEST + 1)), FULL],
            value="5",
            description="radius",
            style={"description_width": "60px"},
            layout=ipywidgets.Layout(width="470px"),
        )
        super().__init__([self.slider])
        self.watch(self.slider)

    @property
    def radius(self) -> int | None:
        """The chosen radius in frames; None is the whole utterance."""
        return None if self.slider.value == FULL else int(self.slider.value)

    def nearest(self) -> list[int | None]:
        """The measured radius, if the chosen one was measured; else the next smaller and the next
        larger one."""
        known, far = list(self.measured), _far(self.radius)
        below = [radius for radius in known if _far(radius) <= far]
        above = [radius for radius in known if _far(radius) >= far]
        return list(dict.fromkeys([*below[-1:], *above[:1]]))

    def words(self) -> str:
        """What the radius means in time, what it saves, and how well it recognises, as a sentence."""
        if self.radius is None:
            sees = "Full attention: each frame looks at all frames"
        else:
            wide = 2 * self.radius + 1
            sees = (
                f"Radius {self.radius}: each frame looks at {wide} frame{'s' if wide > 1 else ''},"
                f" {10 * wide} ms"
            )
        share = cost(self.radius).operations / cost(None).operations
        takes = (
            ""
            if self.radius is None
            else f" It takes {100 * share:.0f} % of full attention's multiplications at 10 s."
        )
        named = " and ".join(f"{_name(radius)} ({self.measured[radius][1]:.3f})" for radius in self.nearest())
        told = (
            "Accuracy" if self.radius in self.measured else "Not trained with this radius; accuracy beside it"
        )
        return f"{sees}.{takes} {told}: {named}."

    def draw(self) -> str:
        return (
            f"<style>{STYLE}</style><p role='status' class='ll-told'>{html.escape(self.words())}</p>"
            f'<div class="ll-row"><div><b>who looks at whom, {TOKENS} frames</b><br>{self._mask()}</div>'
            f"<div>{self._accuracy()}{self._cost()}</div></div>{self._table()}"
            "<p>Orange: the chosen radius. Dashed: the smallest radius within one point of the best accuracy."
            " Dots were trained and measured, a "
            "bar from the lowest to the highest seed. The radius is on a logarithmic axis, full attention at"
            " its end.</p>"
        )

    def still(self) -> Picture:
        radius = TOKENS if self.radius is None else self.radius
        picture = band({f"radius {self.slider.value}": window(TOKENS, radius)})
        return Picture(picture.figure, f"The window explorer as it starts: {picture.alt}", self.words())

    def _mask(self) -> str:
        """A bar for each query, over the keys that it sees."""
        unit, reach = SIDE / TOKENS, TOKENS if self.radius is None else self.radius
        parts = [f'<rect x="0" y="0" width="{SIDE}" height="{SIDE}" fill="#F1F1F1"/>']
        for i in range(TOKENS):
            start, stop = max(0, i - reach), min(TOKENS, i + reach + 1)
            size = f'width="{(stop - start) * unit:g}" height="{unit:g}"'
            parts.append(f'<rect x="{start * unit:g}" y="{i * unit:g}" {size} fill="{CURVES[0]}"/>')
        parts.append(f'<text x="{SIDE / 2}" y="{SIDE + 16}" text-anchor="middle">key</text>')
        parts.append(
            f'<text transform="translate(-8 {SIDE / 2}) rotate(-90)" text-anchor="middle">query</text>'
        )
        return _svg(parts, f"-24 0 {SIDE + 26} {SIDE + 22}", SIDE + 26, "the mask: a band round the diagonal")

    def _accuracy(self) -> str:
        """Dots of the measured radii with their seeds, joined by lines."""
        values = [value for triple in self.measured.values() for value in triple]
        low, high = math.floor(20 * min(values)) / 20, math.ceil(20 * max(values)) / 20

        def up(value: float) -> float:
            return HEIGHT * (high - value) / max(high - low, 0.05)

        parts = self._ground(
            "accuracy on test frames", [(up(value), f"{value:.2f}") for value in (low, high)]
        )
        points = " ".join(
            f"{_across(radius):.1f},{up(mean):.1f}" for radius, (_, mean, _) in self.measured.items()
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{CURVES[0]}" stroke-width="1.5"/>')
        for radius, (least, mean, most) in self.measured.items():
            x, near = _across(radius), radius in self.nearest()
            fill = CURVES[1] if near else CURVES[0]
            parts.append(
                f'<path d="M{x:.1f} {up(least):.1f}V{up(most):.1f}" stroke="{fill}" stroke-width="3"/>'
            )
            parts.append(
                f'<circle cx="{x:.1f}" cy="{up(mean):.1f}" r="{6 if near else 4}" fill="{fill}">'
                f"<title>radius {_name(radius)}: {mean:.3f}</title></circle>"
            )
        return _svg(parts, _frame(), _wide(), "accuracy over the radius")

    def _cost(self) -> str:
        """The multiplications of all radii."""
        most = max(operations for _, operations in self._costs)

        def up(operations: float) -> float:
            return HEIGHT * (1 - operations / most)

        ticks = [(up(0), "0"), (up(most), f"{most / 1e9:.1f}")]
        parts = self._ground("billion multiplications, 10 s of speech", ticks)
        *near, (x, y), end = [(_across(radius), up(value)) for radius, value in self._costs]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (*near, (x, y)))
        line = f'fill="none" stroke="{CURVES[2]}" stroke-width="2"'
        parts.append(f'<polyline points="{points}" {line}/>')
        parts.append(f'<path d="M{x:.1f} {y:.1f}L{end[0]:.1f} {end[1]:.1f}" {line} stroke-dasharray="2 4"/>')
        here = up(cost(self.radius).operations)
        parts.append(f'<circle cx="{_across(self.radius):.1f}" cy="{here:.1f}" r="6" fill="{CURVES[1]}"/>')
        return _svg(parts, _frame(), _wide(), "multiplications over the radius")

    def _ground(self, title: str, ticks: Sequence[tuple[float, str]]) -> list[str]:
        """A chart's title, axes, the chosen radius, and the one where accuracy saturates."""
        parts = [f'<text x="0" y="-12" font-weight="600" fill="#111">{title}</text>']
        for y, text in ticks:
            parts.append(f'<path d="M0 {y:.1f}h{WIDTH}" stroke="#ddd"/>')
            parts.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        for radius in (0, 1, 2, 5, 10, 15, 30, 60, None):
            x = _across(radius)
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{_name(radius)}</text>')
        x, here = _across(self.saturates), _across(self.radius)
        parts.append(f'<path d="M{x:.1f} 0v{HEIGHT}" stroke="#111" stroke-dasharray="5 4"/>')
        parts.append(f'<path d="M{here:.1f} 0v{HEIGHT}" stroke="{CURVES[1]}" stroke-width="2"/>')
        return parts

    def _table(self) -> str:
        """What the window and full attention take."""
        rows = {f"radius {self.radius}": cost(self.radius)} if self.radius is not None else {}
        body = "".join(
            f'<tr><th scope="row">{name}</th><td>{found.counted:,}</td><td>{found.computed:,}</td>'
            f"<td>{found.operations / 1e6:,.0f}</td><td>{found.mib:.1f}</td></tr>"
            for name, found in {**rows, "full attention": cost(None)}.items()
        )
        heads = (
            f"{FRAMES:,} frames (10 s)",
            "scores that count",
            "scores computed",
            f"million multiplications, {HEADS} heads",
            f"MiB of scores, {HEADS} heads",
        )
        top = "".join(f'<th scope="col">{head}</th>' for head in heads)
        return f'<table class="ll-cost"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def cost(radius: int | None, n: int = FRAMES) -> Cost:
    """What `attend_window` computes for n frames with that radius, or `attend` where it is None.

    operations = 2 · computed · heads · d_k: queries with keys, weights with values. MiB: 4 bytes for each
    score of each head.

    >>> cost(None, n=10).counted, cost(1, n=10).counted
    (100, 28)
    """
    reach = n if radius is None else radius
    counted = sum(min(n, i + reach + 1) - max(0, i - reach) for i in range(n))
    computed = n * n if radius is None else sum(piece.cells for piece in pieces(n, radius))
    return Cost(counted, computed, 2 * computed * HEADS * D_K, HEADS * computed * 4 / 2**20)


def _points(rows: Sequence[Mapping[str, Any]]) -> dict[int | None, tuple[float, float, float]]:
    """{radius: (lowest, mean, highest accuracy of the seeds)}, full last."""
    if (
        isinstance(rows, str | Mapping)
        or not isinstance(rows, Sequence)
        or not all(isinstance(r, Mapping) for r in rows)
    ):
        got = type(rows).__name__
        raise TypeError(
            f"rows must be a list of rows of experiments.phonemes, got {got}; take results['rows']"
        )
    found: dict[int | None, list[float]] = {}
    for row in rows:
        if row.get("kind") == "point":
            found.setdefault(row["radius"], []).append(row["accuracy"])
    if not found:
        raise ValueError(
            f"rows must hold some of kind 'point', got {len(rows)} rows without; take results['rows']"
        )
    return {
        radius: (min(found[radius]), statistics.fmean(found[radius]), max(found[radius]))
        for radius in sorted(found, key=_far)
    }


def _far(radius: int | None) -> float:
    return math.inf if radius is None else radius


def _name(radius: int | None) -> str:
    return FULL if radius is None else str(radius)


def _across(radius: int | None) -> float:
    """Where a radius stands on the logarithmic axis; full behind a gap at its end."""
    if radius is None:
        return WIDTH - 8
    return 8 + (WIDTH - 16 - GAP) * math.log1p(radius) / math.log1p(FARTHEST)


def _wide() -> int:
    return WIDTH + LEFT + 16


def _frame() -> str:
    return f"{-LEFT} -28 {_wide()} {HEIGHT + 50}"


def _svg(parts: Sequence[str], box: str, width: int, label: str) -> str:
    return (
        f'<svg role="img" aria-label="{label}" viewBox="{box}" width="{width}" '
        f'style="display:block;max-width:100%;height:auto" font-size="11" fill="#444">{"".join(parts)}</svg>'
    )
