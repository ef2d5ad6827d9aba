"""What a language model keeps for its next token, and what that token costs: choose heads, heads of keys, a
latent width and a window, and see shapes, bytes and products."""

import html
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import ipywidgets

from lesson_lib import require
from lesson_lib.chapters.c11_efficient_attention.scale_figures import human_mib
from lesson_lib.charts.picture import CURVES, Picture, canvas, color, styled
from lesson_lib.widgets.explorer import Explorer, cell

ROTARY = 64  # width of the rotary key beside each latent vector, in DeepSeek's models
OWN = "my own"
POWERS = tuple(2**k for k in range(8))
LATENTS = {"none": 0, "128": 128, "256": 256, "512": 512, "1,024": 1024}
WINDOWS = {f"{n:,}": n for n in (1024, 4096, 16384)} | {"all tokens": 0}
TOKENS = tuple(1024 * 2**k for k in range(11))
LOW, HIGH = 2.0**0, 2.0**22  # MiB at the two ends of the bar
WIDTH, HEIGHT = 240, 14  # of the bar, in screen pixels
GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # over the dashed line

STYLE = """
.ll-box .ll-told {max-width:600px; min-height:4em}
.ll-box .ll-cost th {font-weight:400; text-align:left; padding:2px 14px 2px 0; white-space:nowrap}
.ll-box .ll-cost td {border:0; padding:2px 14px 2px 0; white-space:nowrap; text-align:left}
"""


class Setting(NamedTuple):
    """The sizes that decide what is kept: `latent` 0 keeps keys and values, else one vector of that width and
    a rotary key; `window` 0 keeps all tokens."""

    layers: int
    heads: int
    key_heads: int
    width: int = 128
    latent: int = 0
    window: int = 0


PRESETS = {
    "Llama 2 7B": Setting(32, 32, 32),
    "Llama 3.1 8B": Setting(32, 32, 8),
    "Mistral 7B v0.1": Setting(32, 32, 8, window=4096),
    "DeepSeek V3": Setting(61, 128, 128, latent=512),
}


def numbers_kept(setting: Setting) -> int:
    """Numbers that one token leaves in one layer: a key and a value for each head of keys, or a latent vector
    and a rotary key.

    >>> numbers_kept(PRESETS["Llama 3.1 8B"]), numbers_kept(PRESETS["DeepSeek V3"])
    (2048, 576)
    """
    return setting.latent + ROTARY if setting.latent else 2 * setting.key_heads * setting.width


def cache_bytes(setting: Setting, tokens: int, *, bytes_each: int = 2) -> int:
    """Bytes that the cache of all layers holds after so many tokens; of those before a window nothing.

    >>> cache_bytes(PRESETS["Llama 2 7B"], 32768) / 2**30
    16.0
    """
    require.whole(tokens=tokens, bytes_each=bytes_each)
    return bytes_each * numbers_kept(setting) * setting.layers * seen(setting, tokens)


def seen(setting: Setting, tokens: int) -> int:
    """How many tokens the next one looks at in one layer."""
    return min(tokens, setting.window) if setting.window else tokens


def products(setting: Setting, tokens: int) -> int:
    """Multiplications of one more token's scores and mixtures, in all layers; projections are left out.

    With latent vectors each head compares and mixes these themselves, latent + ROTARY and latent numbers for
    each token; else `width` and `width`.
    """
    each = 2 * setting.latent + ROTARY if setting.latent else 2 * setting.width
    return setting.layers * setting.heads * each * seen(setting, tokens)


class CostExplorer(Explorer):
    """A model's sizes and a length: choose them, and see the shapes in one layer, the cache in bytes, and the
    multiplications of one more token.

    Numbers take 2 bytes. Heads of keys are at most as many as heads. Projections are left out.
    Raises ValueError where `preset` is none of PRESETS.
    """

    fixed = ("layers", "heads", "heads of keys", "latent width", "window")

    def __init__(self, preset: str = "Llama 2 7B", *, tokens: int = 32768) -> None:
        require.one_of(PRESETS, preset=preset)
        require.one_of(TOKENS, tokens=tokens)
        start = PRESETS[preset]
        self.preset = ipywidgets.ToggleButtons(options=[*PRESETS, OWN], value=preset, description="model")
        self.preset.style.button_width = "auto"
        self.layers = ipywidgets.IntSlider(start.layers, 1, 128, description="layers", **_wide())
        self.heads = _slider("heads", {str(n): n for n in POWERS}, start.heads)
        self.key_heads = _slider("heads of keys", {str(n): n for n in POWERS}, start.key_heads)
        self.latent = _slider("latent width", LATENTS, start.latent)
        self.window = _slider("window", WINDOWS, start.window)
        self.tokens = _slider("tokens", {f"{n:,}": n for n in TOKENS}, tokens)
        self.sizes = (self.layers, self.heads, self.key_heads, self.latent, self.window)
        self.setting_all = False
        super().__init__([self.preset, *self.sizes, self.tokens])
        self.preset.observe(self._take, names="value")
        for control in self.sizes:
            control.observe(self._changed, names="value")
        self.watch(self.tokens)

    @property
    def setting(self) -> Setting:
        """What the sliders say."""
        heads = self.heads.value
        return Setting(
            self.layers.value,
            heads,
            min(heads, self.key_heads.value),
            latent=self.latent.value,
            window=self.window.value,
        )

    def words(self) -> str:
        """What is kept, and what the next token costs, as sentences."""
        setting, n = self.setting, self.tokens.value
        held = cache_bytes(setting, n)
        kept = numbers_kept(setting)
        what = (
            f"a latent vector of {setting.latent} and a rotary key of {ROTARY}"
            if setting.latent
            else " and ".join(_count(setting.key_heads, each) for each in ("key", "value"))
            + f" of {setting.width}"
        )
        few = f", {setting.heads} heads at most" if self.key_heads.value > setting.heads else ""
        return (
            f"A token leaves {kept:,} numbers in each layer: {what}{few}. After {n:,} tokens the cache holds"
            f" {human_mib(held / 2**20)}. The next token takes {_billions(products(setting, n))}"
            " multiplications with it."
        )

    def shapes(self) -> dict[str, str]:
        """The arrays of one layer, when the next token asks, with their shapes."""
        setting, m = self.setting, seen(self.setting, self.tokens.value)
        if setting.latent:
            return {
                "q, the next token's": f"({setting.heads}, 1, {setting.latent + ROTARY})",
                "c, kept in place of keys and values": f"({m:,}, {setting.latent})",
                "rotary keys, kept": f"({m:,}, {ROTARY})",
            }
        kept = f"({setting.key_heads}, {m:,}, {setting.width})"
        return {
            "q, the next token's": f"({setting.heads}, 1, {setting.width})",
            "k, kept": kept,
            "v, kept": kept,
        }

    def draw(self) -> str:
        setting, n = self.setting, self.tokens.value
        held = cache_bytes(setting, n)
        rows = [(name, cell(shape)) for name, shape in self.shapes().items()]
        formula = (
            f"{setting.latent} + {ROTARY}" if setting.latent else f"2 · {setting.key_heads} · {setting.width}"
        )
        each = f"2 · {setting.latent} + {ROTARY}" if setting.latent else f"2 · {setting.width}"
        m = f"{seen(setting, n):,}"
        rows += [
            ("numbers kept of a token, in a layer", cell(f"{numbers_kept(setting):,}", formula)),
            (
                "the cache, all layers, 2 bytes a number",
                cell(human_mib(held / 2**20), f"2 · ({formula}) · {setting.layers} layers · {m} tokens"),
            ),
            ("", f"<td>{_bar(held / 2**20)}</td>"),
            (
                "multiplications for the next token",
                cell(
                    _billions(products(setting, n)),
                    f"{setting.layers} layers · {setting.heads} heads · ({each}) · {m} tokens",
                ),
            ),
        ]
        body = "".join(f'<tr><th scope="row">{html.escape(name)}</th>{inner}</tr>' for name, inner in rows)
        return (
            f"<style>{STYLE}</style><p role='status' class='ll-told'>{html.escape(self.words())}</p>"
            f'<table class="ll-cost ll-under"><tbody>{body}</tbody></table>'
            "<p>The bar is logarithmic, from 1 MiB to 4 TiB; the line is 1 GiB. Hover, or Tab, for the"
            " formula behind a number.</p>"
        )

    def still(self) -> Picture:
        n = self.tokens.value
        held = {name: cache_bytes(setting, n) / 2**20 for name, setting in PRESETS.items()}
        return _bars(held, f"the cache after {n:,} tokens", self.words())

    def _take(self, change: Mapping[str, Any]) -> None:
        """The sliders follow the model."""
        if change["new"] == OWN:
            return
        setting = PRESETS[change["new"]]
        self.setting_all = True
        for control, value in zip(
            self.sizes,
            (setting.layers, setting.heads, setting.key_heads, setting.latent, setting.window),
            strict=True,
        ):
            control.value = value
        self.setting_all = False
        self.refresh()

    def _changed(self, _change: Mapping[str, Any]) -> None:
        """A slider that was moved makes it the reader's own."""
        if self.setting_all:
            return
        if self.preset.value != OWN:
            self.preset.value = OWN
        self.refresh()


@styled
def _bars(held: Mapping[str, float], title: str, words: str) -> Picture:
    """The cache of each model as a bar on a logarithmic axis, with a line at 1 GiB."""
    figure, grid = canvas(width=7.0, height=0.9 + 0.34 * len(held))
    axes = grid[0][0]
    for k, mib in enumerate(held.values()):
        axes.barh([k], [mib], left=LOW, color=color(0), edgecolor="white")
        beside = {"xytext": (7, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
        axes.annotate(human_mib(mib), (LOW + mib, k), bbox=GROUND, **beside)
    axes.axvline(1024, color="black", linestyle="--", linewidth=1.2)
    axes.set(xscale="log", xlim=(LOW, 2.0**18), ylim=(len(held) - 0.4, -0.6))
    axes.set_yticks(range(len(held)), list(held))
    axes.set_xticks([2.0**0, 2.0**10], ["1 MiB", "1 GiB"])
    axes.minorticks_off()
    axes.set_title(title, loc="left")
    return Picture(
        figure,
        "The cost explorer as it starts: bars of the cache of four models on a logarithmic axis, with a line"
        " at one gibibyte.",
        words,
    )


def _wide() -> dict[str, Any]:
    return {"style": {"description_width": "100px"}, "layout": ipywidgets.Layout(width="370px")}


def _slider(name: str, options: Mapping[str, int], value: int) -> ipywidgets.SelectionSlider:
    return ipywidgets.SelectionSlider(options=list(options.items()), value=value, description=name, **_wide())


def _count(n: int, name: str) -> str:
    return f"{n} {name}{'s' if n > 1 else ''}"


def _billions(count: int) -> str:
    """A number of multiplications in words.

    >>> _billions(8_589_934_592), _billions(1_113_470_000_000), _billions(1_048_576)
    ('8.6 billion', '1,113 billion', '1.0 million')
    """
    number, unit = (count / 1e9, "billion") if count >= 1e9 else (count / 1e6, "million")
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.1f} {unit}"


def _bar(mib: float) -> str:
    """How much the cache holds, and where 1 GiB ends."""
    long, line = _across(mib), _across(1024.0)
    fill = CURVES[0] if mib <= 1024 else CURVES[1]
    return (
        f'<svg aria-hidden="true" width="{WIDTH}" height="{HEIGHT}" style="display:block"><rect'
        f' width="{WIDTH}" height="{HEIGHT}" fill="#F1F1F1"/><rect class="ll-bar" width="{long:.1f}"'
        f' height="{HEIGHT}" fill="{fill}"/><path d="M{line:.1f} 0v{HEIGHT}" stroke="#111"'
        ' stroke-width="2"/></svg>'
    )


def _across(mib: float) -> float:
    """How long the bar of so many MiB is."""
    return WIDTH * min(1.0, max(0.0, math.log(mib / LOW) / math.log(HIGH / LOW)))
