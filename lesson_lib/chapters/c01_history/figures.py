"""The figures of chapter 01, history: the taggers with their limits, the translators of dates."""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import median

from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib import experiments
from lesson_lib.charts import alignment
from lesson_lib.charts.basic import heatmap
from lesson_lib.charts.picture import MARKERS, Picture, canvas, color, figure, styled
from lesson_lib.experiments import dates
from lesson_lib.models.translator import Translation


@styled
def taggers(rows: Sequence[Mapping], among: Sequence[str], title: str) -> Picture:
    """Rows of the experiment "tagger", a panel for each group of `among`; the bar is the median of the
    seeds."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    figure, grid = canvas(1, len(among), width=8.0, height=0.6 + 0.33 * len(systems), sharey=True)
    for axes, group in zip(grid[0], among, strict=True):
        for y, system in enumerate(systems):
            mine = [row for row in rows if row["system"] == system]
            shares = [row["right"][group] for row in mine]
            axes.barh(y, median(shares), height=0.55, color=color(0), alpha=0.35)
            axes.scatter(
                shares,
                [y] * len(shares),
                s=20,
                color=color(0),
                edgecolor="white",
                linewidth=0.6,
                zorder=5,
            )
            axes.vlines(mine[0]["limit"][group], y - 0.42, y + 0.42, color="black", linewidth=2, zorder=4)
        axes.set_title(f"words like {group!r}" if group != "all words" else group, loc="left")
        axes.set(xlim=(0, 1.03), yticks=range(len(systems)), yticklabels=systems, xlabel="right tags")
    grid[0][0].invert_yaxis()
    return Picture(
        figure,
        alt=(
            "Share of right tags for each tagger, with a black line at the limit that the grammar sets to"
            " what it sees: one word is worst, a window helps at once for saw and slowly for cut, attention"
            " without positions is far behind, attention with positions reaches the end."
        ),
        caption=title,
    )


def stored_taggers() -> Picture:
    """Six of the systems of the experiment "tagger"."""
    shown = ("one word", "window 1", "window 7", "recurrent", "recurrent, both ways", "attention")
    rows = [row for row in experiments.results("tagger")["rows"] if row["system"] in shown]
    caption = "Stored runs. A dot is a seed, tested on 4,000 new sentences; a black line is the limit."
    return taggers(rows, ("saw", "cut"), caption)


@figure(
    "Right tags over the radius of the window: for saw and watch the limit is 1 from a radius of 1"
    " on, for cut it climbs slowly and is still below 1 at the largest radius; the trained networks"
    " lie close to the lines.",
    "Lines: the limit, computed from the grammar. Points: trained networks, three seeds each.",
    width=6.6,
    height=3.2,
    title="right tags",
)
def sweep(
    axes: Axes, radii: Sequence[int], limits: Mapping[str, Sequence[float]], rows: Sequence[Mapping]
) -> None:
    """Shares over `radii`, {class: limits}; `rows` as the experiment "tagger" stores them."""
    for i, (group, shares) in enumerate(limits.items()):
        axes.plot(radii, shares, color=color(i), linestyle=("-", "--", "-.")[i % 3], label=f"{group}: limit")
        windows = {0: "one word"} | {r: f"window {r}" for r in radii if r}
        points = [
            (r, row["right"][group]) for r, name in windows.items() for row in rows if row["system"] == name
        ]
        style = {"color": color(i), "marker": MARKERS[i], "s": 16, "zorder": 3, "alpha": 0.7}
        axes.scatter(*zip(*points, strict=True), label=f"{group}: trained", **style)
    axes.set(xlabel="radius of the window (words on either side)", ylim=(0, 1.04), xticks=radii)
    axes.figure.legend(loc="outside right center", frameon=False)


def masks(tables: Mapping[str, Tensor]) -> Picture:
    """Masks (n, n) by name."""
    return heatmap(
        {name: table.float() for name, table in tables.items()},
        numbers=False,
        limits=(0, 1),
        row_axis="word that asks",
        column_axis="word asked",
        color_axis="may look",
        alt="Four masks over six words: a diagonal, a band of three, a lower triangle, and a full square.",
        caption="Bright: may look.",
    )


def stored_dates() -> Picture:
    """The stored runs of the experiment "dates"."""
    bands = dates.by_dates(experiments.results("dates")["rows"])
    names = {"additive": "a look back", "fixed vector": "one vector"}
    return alignment.right_over_dates(
        {f"{names[s]}, {steps:,} steps": band for (s, steps), band in bands.items() if s in names},
        caption="Stored runs, 1,000 new texts each: the median of three seeds; the band is their range.",
    )


def looked(translation: Translation, text: str) -> Picture:
    """`translation` is what the decoder made of `text`."""
    return alignment.alignment_map(
        translation.weights,
        text,
        translation.text,
        caption="Live. Rows: the characters written. Columns: those read, ␣ is a space.",
    )


class AlignmentTable:
    """A stored alignment as a table of HTML, for characters that no font of the figures has."""

    def __init__(self, source: str, target: str, weights: Sequence[Sequence[float]]) -> None:
        self.source, self.target, self.weights = source, target, weights

    def __repr__(self) -> str:
        best = [max(range(len(row)), key=row.__getitem__) for row in self.weights]
        looks = ", ".join(
            f"{one} looks most at {self.source[j]}" for one, j in zip(self.target, best, strict=True)
        )
        return f"{self.source} -> {self.target}: {looks}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th scope='col'>{escape(one)}</th>" for one in self.source)
        body = "".join(
            f"<tr><th scope='row'>{escape(one)}</th>" + "".join(map(self._cell, row)) + "</tr>"
            for one, row in zip(self.target, self.weights, strict=True)
        )
        about = f"Weights of {self.source} becoming {self.target}, a row for each character written."
        return f"<table><caption>{escape(about)}</caption><tr><th></th>{head}</tr>{body}</table>"

    @staticmethod
    def _cell(weight: float) -> str:
        shade = f"rgb({round(255 - 255 * weight)}, {round(255 - 141 * weight)}, {round(255 - 77 * weight)})"
        ink = "#fff" if weight > 0.925 else "#000"  # 4.5 times as bright or dark as the ground, at least
        return f"<td style='background:{shade}; color:{ink}'>{weight:.2f}</td>"


def chinese_alignment() -> AlignmentTable:
    """One date that the experiment "chinese_dates" stored."""
    row = next(row for row in experiments.results("chinese_dates")["rows"] if row["kind"] == "map")
    weights = [[float(weight) for weight in line.split()] for line in row["weights"]]
    return AlignmentTable(row["source"], row["target"], weights)
