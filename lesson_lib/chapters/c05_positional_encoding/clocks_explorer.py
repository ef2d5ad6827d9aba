"""A position as clocks: one hand per frequency, and what an offset does to all of them."""

import html
import math

import ipywidgets
import torch
from torch import Tensor

from lesson_lib.charts.grid import clocks
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.positions import BASE, frequencies, sinusoidal
from lesson_lib.widgets.explorer import Explorer, cell, number

FARTHEST, REACH = 100, 50  # the largest position, and the largest offset to either side
HERE, THERE, BETWEEN = CURVES[:3]
RADIUS, MIDDLE, WIDTH, HEIGHT = 44, 68, 140, 122

STYLE = """
.ll-clocks {display:flex; flex-wrap:wrap; gap:14px 12px; align-items:flex-start; margin:8px 0 4px}
.ll-clock {width:140px; text-align:center}
.ll-box .ll-clock table {margin:2px auto}
.ll-box .ll-clock .ll-tip {top:0}
.ll-box .ll-clock th {font-weight:600; padding:1px 4px; text-align:right; white-space:nowrap}
.ll-box .ll-clock td {min-width:32px; padding:2px 4px; border:1px solid #ddd}
"""


class Places:
    """Sinusoidal codes of width d for the positions that two sliders reach: `i`, and `i + delta`, which may
    be negative."""

    def __init__(self, d: int, base: float) -> None:
        self.frequencies = frequencies(d, base=base)
        self.table = sinusoidal(FARTHEST + REACH + 1, d, base=base, dtype=torch.float64)

    def __getitem__(self, position: int) -> Tensor:
        """The code of a position; one before the first token is mirrored: sin(-x) = -sin x, cos(-x) =
        cos x."""
        row = self.table[abs(position)]
        return row if position >= 0 else row * row.new_tensor([-1.0, 1.0]).repeat(len(self.frequencies))


def sliders(i: int, delta: int) -> tuple[ipywidgets.IntSlider, ipywidgets.IntSlider]:
    """The two sliders: a position, and an offset from it."""
    wide = {"style": {"description_width": "initial"}, "layout": ipywidgets.Layout(width="320px")}
    return (
        ipywidgets.IntSlider(i, min=0, max=FARTHEST, description="position i", **wide),
        ipywidgets.IntSlider(delta, min=-REACH, max=REACH, description="offset δ", **wide),
    )


def before_the_first(position: int) -> str:
    """A sentence for a position at which no token stands."""
    return (
        f" No token stands at {position}; the formula has a code for it all the same." if position < 0 else ""
    )


class ClockExplorer(Explorer):
    """A clock per frequency with the hands of positions i and i + δ; the angle between them is δ · w_j,
    whatever i is.

    The convention: angles are counted counter-clockwise from the right, so that the cosine (column 2j + 1)
    lies to the right and the sine (column 2j) upwards. Raises ValueError where d is odd, less than 2 or more
    than 16.
    """

    most_states = 400

    def __init__(self, d: int = 8, base: float = BASE) -> None:
        if d > 16:
            raise ValueError(
                f"d must be at most 16, 8 clocks, got {d}; the clocks of a larger d turn slower still"
            )
        self.places = Places(d, base)
        self.position, self.offset = sliders(3, 5)
        super().__init__([self.position, self.offset])
        self.watch(self.position, self.offset)

    def draw(self) -> str:
        i, delta = self.position.value, self.offset.value
        drawn = "".join(self._clock(j, w, i, delta) for j, w in enumerate(self.places.frequencies.tolist()))
        legend = (
            f"{_key(HERE, '●')} solid: position i = {i} &nbsp; {_key(THERE, '□')} dashed: position i + δ ="
            f" {i + delta} &nbsp; {_key(BETWEEN, '◠')} arc between them: δ · w<sub>j</sub>"
        )
        return (
            f"<style>{STYLE}</style><p><b>Move the position: every hand turns, the angle between the two"
            " hands stays. "
            f"Move the offset: that angle changes.</b></p><p>{legend}.{before_the_first(i + delta)}</p>"
            f'<div class="ll-clocks">{drawn}</div>'
            "<p>An angle starts at the right and grows counter-clockwise. A hand ends at the point (cos,"
            " sin): "
            "the cosine, column 2j + 1, to the right; the sine, column 2j, upwards.</p>"
        )

    def still(self) -> Picture:
        i, delta = self.position.value, self.offset.value
        return clocks(
            {
                f"clock {j}: once round\nin {_tokens(w)}": (i * w, (i + delta) * w)
                for j, w in enumerate(self.places.frequencies.tolist())
            },
            names=("position i", "position i + δ"),
            alt=(
                "The clock explorer as it starts: a circle per frequency, each with the hands of two"
                " positions; the hands turn slower from clock to clock."
            ),
        )

    def _clock(self, j: int, w: float, i: int, delta: int) -> str:
        """One clock with its numbers."""
        rows = "".join(
            f'<tr><th scope="row">{name}</th>'
            + "".join(
                cell(
                    number(value),
                    f"p[{at}, {2 * j + k}] = {name}({at} · w_{j}) = {name}({at} · {w:.4g}) ="
                    f" {number(value, 4)}",
                )
                for at in (i, i + delta)
                for value in [self.places[at][2 * j + k].item()]
            )
            + "</tr>"
            for k, name in enumerate(("sin", "cos"))
        )
        head = (
            f'<tr><th></th><th scope="col" style="color:{HERE}">p[{i}]</th><th scope="col"'
            f' style="color:#A63D00">p[{i + delta}]</th></tr>'
        )
        turned = f"{delta} · w<sub>{j}</sub> = {delta * w:.3g} rad"
        label = (
            f"clock {j}: the hand of position {i} at {_degrees(i * w)} degrees, of position {i + delta} at "
            f"{_degrees((i + delta) * w)} degrees; between them {delta * w:.3g} radians"
        )
        svg = (
            f'<svg role="img" aria-label="{html.escape(label)}" width="{WIDTH}" height="{HEIGHT}"'
            ' font-size="11" fill="#555">'
            f'<circle cx="{MIDDLE}" cy="{MIDDLE}" r="{RADIUS}" fill="#fff" stroke="#999"/>'
            f'<path d="M{MIDDLE - RADIUS} {MIDDLE}h{2 * RADIUS}M{MIDDLE} {MIDDLE - RADIUS}v{2 * RADIUS}"'
            ' stroke="#ddd"/>'
            f'<text x="{MIDDLE}" y="11" text-anchor="middle">sin</text><text x="{WIDTH}" y="{MIDDLE + 4}"'
            ' text-anchor="end">cos</text>'
            f"{_arc(i * w, delta * w)}{_hand(i * w, HERE)}{_hand((i + delta) * w, THERE, dashed=True)}</svg>"
        )
        return (
            f'<div class="ll-clock ll-under"><b>w<sub>{j}</sub> = {w:.4g}</b><br>wavelength'
            f" 2π/w<sub>{j}</sub><br>= {_tokens(w)}<br>{svg}<div"
            f' style="color:#00664A">{turned}</div><table>{head}{rows}</table></div>'
        )


def _hand(angle: float, color: str, *, dashed: bool = False) -> str:
    x, y = _point(angle, RADIUS)
    end = (
        f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="none" stroke="{color}"'
        ' stroke-width="2"/>'
        if dashed
        else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>'
    )
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    return f'<path d="M{MIDDLE} {MIDDLE}L{x:.1f} {y:.1f}" stroke="{color}" stroke-width="3"{dash}/>{end}'


def _arc(start: float, angle: float) -> str:
    """The angle between two hands; more than one turn becomes a spiral."""
    turns = abs(angle) / (2 * math.pi)
    steps = max(2, math.ceil(24 * turns))
    grow = min(2.4, 18 / turns) if turns > 1 else 0.0  # pixels per turn
    radius = 18 if turns > 1 else 26
    points = " ".join(
        "{:.1f},{:.1f}".format(*_point(start + angle * k / steps, radius + grow * turns * k / steps))
        for k in range(steps + 1)
    )
    return (
        f'<polyline points="{points}" fill="none" stroke="{BETWEEN}"'
        f' stroke-width="{3 if turns <= 1 else 1.5}"/>'
    )


def _point(angle: float, radius: float) -> tuple[float, float]:
    """Where a hand of that length ends; y grows downwards on a screen."""
    return MIDDLE + radius * math.cos(angle), MIDDLE - radius * math.sin(angle)


def _degrees(angle: float) -> int:
    return round(math.degrees(angle)) % 360


def _tokens(w: float) -> str:
    """The wavelength of a frequency."""
    return f"{2 * math.pi / w:,.1f} tokens"


def _key(color: str, sign: str) -> str:
    return f'<span style="color:{color}" aria-hidden="true">{sign}</span>'
