"""What six published models keep of a text: choose its length, and take away shared keys or windows."""

import html
import math
from collections.abc import Mapping, Sequence

import ipywidgets

from lesson_lib import require
from lesson_lib.chapters.c13_todays_models.published import CONFIGS, read
from lesson_lib.charts.picture import CURVES, Picture, canvas, color, styled
from lesson_lib.models.pretrained import Options
from lesson_lib.widgets.explorer import Explorer, cell

TOKENS = tuple(1024 * 2**k for k in range(11))
AS_IS, NO_WINDOWS, OWN_KEYS = "as they are", "without windows", "without either: each head its own keys"
LOW, HIGH = 2.0**2, 2.0**21  # MiB at the two ends of a bar
WIDTH = 200  # of a bar, in screen pixels
GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # over the dashed line

STYLE = """
.ll-box .ll-kept th {font-weight:400; text-align:left; padding:3px 12px 3px 0; white-space:nowrap}
.ll-box .ll-kept td {border:0; padding:3px 12px 3px 0; white-space:nowrap}
"""


def windows_of(options: Options) -> list[int]:
    """How many tokens each layer looks at; 0 stands for all."""
    return [kind.window or 0 for kind in options.layers]


def kept_tokens(windows: Sequence[int], tokens: int) -> int:
    """How many tokens the caches of all layers hold together: no more than a layer looks at, 0 for all.

    >>> kept_tokens([3, 0], 10), kept_tokens([3, 0], 2)
    (13, 4)
    """
    return sum(min(tokens, window or tokens) for window in windows)


def kept_mib(options: Options, tokens: int, how: str = AS_IS) -> float:
    """MiB that the caches of all layers hold after so many tokens, at 2 bytes a number.

    `how` takes windows away, or windows and the sharing of keys.

    >>> kept_mib(read("Llama 3.1 8B"), 131072), kept_mib(read("Llama 3.1 8B"), 131072, OWN_KEYS)
    (16384.0, 65536.0)
    """
    require.whole(tokens=tokens)
    require.one_of((AS_IS, NO_WINDOWS, OWN_KEYS), how=how)
    windows = windows_of(options)
    heads = options.n_heads if how == OWN_KEYS else options.n_key_heads
    kept = kept_tokens(windows if how == AS_IS else [0] * len(windows), tokens)
    return 2 * 2 * heads * options.d_k * kept / 2**20


def size(mib: float) -> str:
    """MiB, or GiB from 1,024 on, with three digits at most.

    >>> size(96.0), size(3075.0), size(65536.0)
    ('96 MiB', '3.0 GiB', '64 GiB')
    """
    number, unit = (mib, "MiB") if mib < 1024 else (mib / 1024, "GiB")
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


class CacheExplorer(Explorer):
    """Six models and a text: choose how long it is, and see what the caches hold as the models are, without
    their windows, and without windows and shared keys."""

    def __init__(self, tokens: int = 131072) -> None:
        require.one_of(TOKENS, tokens=tokens)
        wide = {"style": {"description_width": "60px"}, "layout": ipywidgets.Layout(width="370px")}
        self.tokens = ipywidgets.SelectionSlider(
            options=[(f"{n:,}", n) for n in TOKENS], value=tokens, description="tokens", **wide
        )
        self.how = ipywidgets.ToggleButtons(options=[AS_IS, NO_WINDOWS, OWN_KEYS], description="models")
        self.how.style.button_width = "auto"
        super().__init__([self.tokens, self.how])
        self.watch(self.tokens, self.how)

    def held(self) -> dict[str, float]:
        """MiB of each model."""
        return {name: kept_mib(read(name), self.tokens.value, self.how.value) for name in CONFIGS}

    def words(self) -> str:
        """Who keeps most and least, as a sentence."""
        held = self.held()
        most, least = max(held, key=held.get), min(held, key=held.get)
        return (
            f"After {self.tokens.value:,} tokens, {self.how.value}: {most} keeps most, {size(held[most])},"
            f" {least} least, {size(held[least])}."
        )

    def draw(self) -> str:
        rows = []
        for name, mib in self.held().items():
            o = read(name)
            shared = o.n_heads if self.how.value == OWN_KEYS else o.n_key_heads
            tip = (
                f"2 bytes · 2 · {shared} heads of keys · {o.d_k} · the tokens kept in {len(o.layers)} layers"
            )
            rows.append(
                f'<tr><th scope="row">{html.escape(name)}</th>{cell(size(mib), tip)}<td>{_bar(mib)}</td></tr>'
            )
        return (
            f"<style>{STYLE}</style><p role='status'>{html.escape(self.words())}</p>"
            f'<table class="ll-kept ll-under"><tbody>{"".join(rows)}</tbody></table>'
            "<p>Bars are logarithmic, from 4 MiB to 2 TiB; the line is 1 GiB. Hover, or Tab, for the"
            " formula.</p>"
        )

    def still(self) -> Picture:
        return _bars(self.held(), self.words())


def _across(mib: float) -> float:
    return WIDTH * min(1.0, max(0.0, math.log(mib / LOW) / math.log(HIGH / LOW)))


def _bar(mib: float) -> str:
    line = _across(1024.0)
    return (
        f'<svg aria-hidden="true" width="{WIDTH}" height="14" style="display:block"><rect width="{WIDTH}"'
        f' height="14" fill="#F1F1F1"/><rect width="{_across(mib):.1f}" height="14" fill="{CURVES[0]}"/>'
        f'<path d="M{line:.1f} 0v14" stroke="#111" stroke-width="2"/></svg>'
    )


@styled
def _bars(held: Mapping[str, float], words: str) -> Picture:
    figure, grid = canvas(width=7.0, height=0.9 + 0.34 * len(held))
    axes = grid[0][0]
    for k, mib in enumerate(held.values()):
        axes.barh([k], [mib], left=LOW, color=color(0), edgecolor="white")
        axes.annotate(
            size(mib),
            (LOW + mib, k),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox=GROUND,
        )
    axes.axvline(1024, color="black", linestyle="--", linewidth=1.2)
    axes.set(xscale="log", xlim=(LOW, 2.0**18), ylim=(len(held) - 0.4, -0.6))
    axes.set_yticks(range(len(held)), list(held))
    axes.set_xticks([2.0**2, 2.0**10], ["4 MiB", "1 GiB"])
    axes.minorticks_off()
    return Picture(
        figure,
        "The cache explorer as it starts: bars of what six models keep, on a logarithmic axis, with a line at"
        " one gibibyte.",
        words,
    )
