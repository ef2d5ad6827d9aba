"""The ledger as a picture: how many claims of each group hold, hold with a condition, or are corrected."""

from collections.abc import Mapping

from matplotlib import rc_context

from lesson_lib.plots.picture import CURVES, STYLE, Picture, canvas

HATCHES = ("", "//", "xx", "..")  # told apart without colours, too
GROUNDS = (CURVES[5], CURVES[4], CURVES[3], "#dddddd")


def tally(
    groups: Mapping[str, Mapping[str, int]], *, alt: str, caption: str = "", axis: str = "claims"
) -> Picture:
    """A bar for each group, made of a piece for each kind, with its count written in it.

    `groups` are {group: {kind: count}}; the kinds come in the order in which they first occur, up to four.
    Raises ValueError where there is no group, for more kinds than four, and for a count below 0.
    """
    if not groups:
        raise ValueError("groups must name at least one group with its counts, got none")
    kinds = list(dict.fromkeys(kind for counts in groups.values() for kind in counts))
    if len(kinds) > len(HATCHES):
        raise ValueError(f"a bar has room for {len(HATCHES)} kinds, got {len(kinds)}: {', '.join(kinds)}")
    low = [(g, k) for g, counts in groups.items() for k, count in counts.items() if count < 0]
    if low:
        raise ValueError(f"a count is 0 or more; {low[0][0]}, {low[0][1]} is {groups[low[0][0]][low[0][1]]}")
    figure, grid = canvas(width=7.0, height=0.9 + 0.4 * len(groups))
    axes, names = grid[0][0], list(groups)
    with rc_context(STYLE):
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
