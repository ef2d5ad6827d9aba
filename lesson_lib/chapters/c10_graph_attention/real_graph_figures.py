"""The figure of part 10b: edges that mislead."""

from lesson_lib import summary
from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture, styled
from lesson_lib.experiments import results

GUESS = 1 / 7
SHOWN = ("words alone", "GCN", "GAT", "GATv2", "GAT beside own words")


@styled
def misleading() -> Picture:
    """Of the stored experiment "real_graph"."""
    rows = [row for row in results("real_graph")["rows"] if row["part"] == "point" and row["kind"] in SHOWN]
    picture = lines(
        {"balanced accuracy": summary.bands(rows, "kind", "share", "score")},
        alt=(
            "Balanced accuracy over the share of shuffled edges, a line for each of five networks; words"
            " alone are level."
        ),
        caption="Median and range of three splits. Grey: a constant answer.",
        x_axis="share of edges shuffled",
        y_limits=(0.0, 0.65),
        height=3.4,
    )
    (axes,) = picture.figure.axes
    axes.axhline(GUESS, color="0.5", linewidth=1, zorder=0)
    return picture
