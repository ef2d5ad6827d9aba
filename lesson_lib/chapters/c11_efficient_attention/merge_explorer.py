"""Two parts of the keys as two weights on a lever: it balances at the output of both together."""

import html

import ipywidgets

from lesson_lib.chapters.c11_efficient_attention.machines_figures import lever
from lesson_lib.charts.picture import CURVES, Picture
from lesson_lib.widgets.explorer import Explorer

OUTPUT_A, SUM_A = 17.5, 4.0  # two keys with scores ln 1 and ln 3, and values 10 and 20
LEFT, RIGHT, WIDE = 40, 560, 600  # of the lever, and of the drawing, in screen pixels
MOST = 60.0  # the value at the lever's right end
STYLE = ".ll-box .ll-lever {max-width:600px; width:100%; height:auto; display:block}"


class MergeExplorer(Explorer):
    """Machine A has two keys; choose output and sum of machine B, and see where the two balance: there lies
    the output of attention to the keys of both."""

    def __init__(self) -> None:
        slider = {"style": {"description_width": "70px"}, "layout": ipywidgets.Layout(width="300px")}
        self.sum = ipywidgets.IntSlider(value=12, min=1, max=36, description="B's sum", **slider)
        self.output = ipywidgets.IntSlider(value=40, min=0, max=60, description="B's output", **slider)
        super().__init__([self.sum, self.output])
        self.watch(self.sum, self.output)

    def merged(self) -> float:
        """The output of the keys of both."""
        return (SUM_A * OUTPUT_A + self.sum.value * self.output.value) / (SUM_A + self.sum.value)

    def words(self) -> str:
        """How the merged output comes about, as a sentence."""
        total, mean = SUM_A + self.sum.value, (OUTPUT_A + self.output.value) / 2
        return (
            f"({SUM_A:g} · {OUTPUT_A:g} + {self.sum.value} · {self.output.value}) / {total:g}"
            f" = {self.merged():.4g}; the mean of both outputs would be {mean:.4g}"
        )

    def draw(self) -> str:
        stones = "".join(
            _stone(name, place, its_sum, color)
            for name, place, its_sum, color in (
                ("A", OUTPUT_A, SUM_A, CURVES[0]),
                ("B", self.output.value, self.sum.value, CURVES[1]),
            )
        )
        at = _across(self.merged())
        ticks = "".join(
            f'<text x="{_across(value):.1f}" y="122" text-anchor="middle" font-size="12">{value}</text>'
            for value in range(0, 61, 10)
        )
        return (
            f"<style>{STYLE}</style><p role='status'>{html.escape(self.words())}</p>"
            f'<svg class="ll-lever" viewBox="0 0 {WIDE} 130" aria-hidden="true">{stones}'
            f'<path d="M{LEFT} 88H{RIGHT}" stroke="#111" stroke-width="4"/>'
            f'<path d="M{at:.1f} 90l11 18h-22z" fill="#111"/>{ticks}</svg>'
            "<p>A stone stands at its part's output, and is as heavy as its part's sum. The lever balances at"
            " the output of all keys.</p>"
        )

    def still(self) -> Picture:
        return lever({"A": (OUTPUT_A, SUM_A), "B": (self.output.value, self.sum.value)}, most=MOST)


def _across(value: float) -> float:
    return LEFT + (RIGHT - LEFT) * value / MOST


def _stone(name: str, place: float, its_sum: float, fill: str) -> str:
    """A square on the lever whose area is the part's sum."""
    side = 13 * its_sum**0.5
    x = _across(place)
    return (
        f'<rect x="{x - side / 2:.1f}" y="{86 - side:.1f}" width="{side:.1f}" height="{side:.1f}"'
        f' fill="{fill}" fill-opacity="0.85"/>'
        f'<text x="{x:.1f}" y="{90 - side / 2:.1f}" text-anchor="middle" font-size="13"'
        f' font-weight="600" fill="#111">{html.escape(name)}</text>'
    )
