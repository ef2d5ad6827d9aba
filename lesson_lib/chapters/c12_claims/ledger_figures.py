"""The ledger as a picture: how many claims of each group hold, hold with a condition, or are corrected."""

from collections.abc import Mapping

from lesson_lib.charts.picture import CURVES, Picture, canvas, styled

HATCHES = ("", "//", "xx", "..")  # told apart without colours, too
GROUNDS = (CURVES[5], CURVES[4], CURVES[3], "#dddddd")


@styled
def tally(
    groups: Mapping[str, Mapping[str, int]], *, alt: str, caption: str = "", axis: str = "claims"
) -> Picture:
    """{group: {kind: count}}; the kinds, up to four, in the order in which they first occur."""
    kinds = list(dict.fromkeys(kind for counts in groups.values() for kind in counts))
    figure, grid = canvas(width=7.0, height=0.9 + 0.4 * len(groups))
    axes, names = grid[0][0], list(groups)
    starts = [0] * len(names)
    for kind, ground, hatch in zip(kinds, GROUNDS, HATCHES, strict=False):
        counts = [groups[name].get(kind, 0) for name in names]
        look = {"color": ground, "hatch": hatch, "edgecolor": "white", "height": 0.7}
        drawn = axes.barh(names, counts, left=starts, label=kind, **look)
        plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
        axes.bar_label(drawn, [str(c) if c else "" for c in counts], label_type="center", bbox=plate)
        starts = [start + count for start, count in zip(starts, counts, strict=True)]
    for text in axes.texts:
        text.set_visible(bool(text.get_text()))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(axis)
    figure.legend(loc="outside upper center", ncols=len(kinds), frameon=False)
    return Picture(figure, alt, caption)
