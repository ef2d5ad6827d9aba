"""The figures of chapter 13: what six files change, who learns from a loud start, how two heads copy and how
far that goes."""

from typing import Any

from matplotlib.axes import Axes

from lesson_lib import summary
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import CURVES, Picture, color, figure
from lesson_lib.experiments import results

TEXT = "kfwacmkfw"
FIRST, BEHIND, LAST = 2, 3, 8  # of TEXT: w, what comes after it, and the w that asks


@figure(
    "The text k f w a c m k f w in boxes. In layer 0 each token looks at the one before it, so that"
    " the a after the first w now holds 'a after w'. In layer 1 the last w asks who is after w, and"
    " finds that a.",
    "Layer 0 writes into each token who stood before it. Layer 1 asks for that.",
    width=7.4,
    height=3.3,
)
def two_heads(axes: Axes) -> None:
    """Of TEXT."""
    axes.set_axis_off()
    axes.set_xlim(-2.0, len(TEXT) + 0.9)
    axes.set_ylim(-0.8, 3.3)
    rows = {2.6: "token", 1.3: "after layer 0", 0.0: "layer 1"}
    for y, name in rows.items():
        axes.text(-1.95, y, name, va="center", fontsize=9)
    for i, sign in enumerate(TEXT):
        before = TEXT[i - 1] if i else "–"
        _box(axes, i, 2.6, sign, marked=i in (FIRST, LAST), hue=CURVES[0])
        _box(axes, i, 1.3, f"{sign}\nafter {before}", marked=i == BEHIND, hue=CURVES[1])
        if i:
            _arrow(axes, (i - 0.85, 2.25), (i - 0.1, 1.72), "0.6", curve=0.0)
    _box(axes, LAST, 0.0, "who is\nafter w?", marked=True, hue=CURVES[1], wide=0.95)
    _arrow(axes, (LAST - 0.5, 0.0), (BEHIND, 0.9), color(1), curve=-0.25)
    axes.text(
        (LAST + BEHIND) / 2 - 0.2, -0.55, f"found: position {BEHIND}, its token is a", fontsize=9, ha="center"
    )


def how_far() -> Picture:
    """Of the stored experiment "copying"; {name: (layers, shortest length of training)}."""
    kinds = {
        "two layers, 6 to 24": (2, 6),
        "one layer, 6 to 24": (1, 6),
        "two layers, 24 only": (2, 24),
    }
    return lines(
        {"right next signs": {name: _band(*kind) for name, kind in kinds.items()}},
        alt=(
            "Share of right next signs over the length of a piece. Two layers trained on 6 to 24 signs are at"
            " 1 up to 24 and fall to .4 at 36 and below .1 at 48; one layer stays below .22; two layers"
            " trained on 24 only reach 1 at 24 and are low elsewhere, but for one seed at 6."
        ),
        caption="Medians of three seeds, with the lowest and the highest. A guess: 0.016.",
        x_axis="signs of a piece",
        y_limits=(0, 1.02),
    )


def _band(n_layers: int, shortest: int) -> summary.Band:
    stored = results("copying")
    rows = [row for row in stored["rows"] if (row["n_layers"], row["shortest"]) == (n_layers, shortest)]
    lengths = stored["recipe"]["lengths"]
    return summary.band({n: [row["accuracy"][str(n)] for row in rows] for n in lengths})


def _box(axes: Axes, x: float, y: float, text: str, *, marked: bool, hue: str, wide: float = 0.8) -> None:
    style = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": hue if marked else "0.7"}
    axes.text(
        x, y, text, ha="center", va="center", fontsize=9 if "\n" in text else 11,
        weight="bold" if marked else "normal", bbox=style | {"linewidth": 2 if marked else 1},
    )  # fmt: skip


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], hue: Any, *, curve: float
) -> None:
    axes.annotate(
        "", end, start,
        arrowprops={
            "arrowstyle": "->", "color": hue, "linewidth": 1.5, "connectionstyle": f"arc3,rad={curve}",
        },
    )  # fmt: skip


def loud_starts() -> Picture:
    """Of the stored experiment "loud_starts"."""
    stored = results("loud_starts")
    rows = [row for row in stored["rows"] if row["steps"] == stored["recipe"]["steps"]]
    bands = summary.bands(rows, "kind", "loud", "accuracy")
    return lines(
        {"right next signs": {kind: bands[kind] for kind in stored["recipe"]["kinds"]}},
        alt=(
            "Share of right next signs after 800 steps over how many times as long queries and keys start."
            " Unchanged, all three are at 1. At 4 times QK-norm stays at 1, one seed at .84; plain and soft"
            " cap fall below .07. At 16 times QK-norm has .04 to .30, the others less than .05."
        ),
        caption="Three seeds each, with the lowest and the highest. A guess: 1 of 64.",
        x_axis="queries and keys start so many times as long",
        log="x",
        y_limits=(0, 1.02),
    )
