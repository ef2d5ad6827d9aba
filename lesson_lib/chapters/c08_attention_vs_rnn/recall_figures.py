"""What recurrent networks and attention remember over a distance."""

import statistics
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib import summary
from lesson_lib.charts.basic import heatmap
from lesson_lib.charts.marks import draw_shares, logarithmic_with_zero, note
from lesson_lib.charts.picture import MARKERS, Picture, canvas, color, figure, styled, trim
from lesson_lib.data.recall import SYMBOLS

Row = summary.Row
DASHES = ["-", "--", "-.", ":"]

GRADIENTS = {
    "gradient": "gradient at the symbol, before training",
    "gradient_after": "gradient at the symbol, after training",
}

BEFORE = {
    "point": "The symbol is the first token.",
    "middle": "The symbol stands in the middle, with as much filler before it as behind it.",
}

ASKED = {
    "asked": "Right answers.",
    "kept": "Answers that would be right if each were renamed to the symbol that it most often stood for.",
}

SEEDS = "A mark for each seed, a line through their middles; marks of one distance stand side by side."

UNDERFLOW = " Exactly 0: less than the number format can hold."

FAINTEST = 1e-8  # of a map's largest number: below it the colour does not change


@styled
def recall(rows: Sequence[Row], kind: str = "point", gradient: str = "gradient") -> Picture:
    """Rows of `experiments.recall`; `kind` is "point" (the symbol first) or "middle", `gradient` a key of
    GRADIENTS."""
    rows = [row for row in rows if row["kind"] == kind]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    figure, grid = canvas(1, 2, width=8.0, height=3.6)
    left, right = grid[0]
    _seeds(left, rows, "system", "accuracy", systems)
    _chance(left)
    left.set_title("accuracy on test sequences", loc="left")
    _seeds(right, rows, "system", gradient, systems, logarithmic=True)
    right.set_title(GRADIENTS[gradient], loc="left")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return Picture(
        figure,
        "On the left accuracy over the distance between symbol and question, a curve for each system, with a"
        " line at chance; on the right the gradient of the answer at the symbol over the same distances, on a"
        " logarithmic axis.",
        f"{BEFORE[kind]} {SEEDS}" + (UNDERFLOW if 0 in [row[gradient] for row in rows] else ""),
    )


@figure(
    "Accuracy over the distance between symbol and question, a panel for each recurrent network, a curve"
    " for each aid that its training was given, with a line at chance.",
    SEEDS,
)
def aids(rows: Sequence[Row]) -> Figure:
    """Rows of `experiments.recall`; drawn are "aid", and "point" beside it."""
    aided = [row for row in rows if row["kind"] == "aid"]
    cases = {(row["system"], row["distance"]) for row in aided}
    plain = [row for row in rows if row["kind"] == "point" and (row["system"], row["distance"]) in cases]
    systems = list(dict.fromkeys(row["system"] for row in aided))
    names = list(dict.fromkeys(row["aid"] for row in plain + aided))
    figure, grid = canvas(1, len(systems), width=min(8.0, 1.0 + 3.5 * len(systems)), height=3.6, sharey=True)
    for axes, system in zip(grid[0], systems, strict=True):
        mine = [row for row in plain + aided if row["system"] == system]
        _seeds(axes, mine, "aid", "accuracy", names)
        _chance(axes)
        axes.set_title(system, loc="left")
    grid[0][0].set_ylabel("accuracy on test sequences")
    handles = [dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True)) for axes in grid[0]]
    known = {name: next(panel[name] for panel in handles if name in panel) for name in names}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def asked(
    rows: Sequence[Row], systems: Sequence[str] = ("RNN", "LSTM", "attention"), column: str = "asked"
) -> Picture:
    """Rows of `experiments.recall` of kind "point", at the distances at which all systems were trained;
    `column` is a key of ASKED."""
    points = {s: [row for row in rows if row["kind"] == "point" and row["system"] == s] for s in systems}
    trained = sorted(set.intersection(*({row["distance"] for row in mine} for mine in points.values())))
    distances = sorted({int(name) for mine in points.values() for row in mine for name in row[column]})
    tables = {}
    for system, mine in points.items():
        cells = [
            [
                statistics.median_low(row[column][str(d)] for row in mine if row["distance"] == t)
                for d in distances
            ]
            for t in trained
        ]
        tables[system] = torch.tensor(cells, device="cpu")
    return heatmap(
        tables,
        alt=(
            "A table for each system, a row for the distance that it was trained at and a column for the"
            " distance that it was asked at: each cell holds the accuracy."
        ),
        caption=f"{ASKED[column]} The middle of the seeds. Guessing gives one in eight.",
        rows=[str(t) for t in trained],
        columns=[str(d) for d in distances],
        row_axis="distance trained",
        column_axis="distance asked",
        numbers=True,
        limits=(0, 1),
    )


@figure(
    "Maps side by side, a row for each output and a column for each input: colour says how strongly the"
    " output depends on the input, hatching that it does not depend on it at all.",
    "Hatched: exactly 0, no way leads there. Colours are logarithmic, each map divided by its own maximum.",
)
def sensitivities(maps: Mapping[str, Float[Tensor, "m n"]], *, tokens: Sequence[str] | None = None) -> Figure:
    """{layer: `measure.sensitivity` (m, n)}; `tokens` name the ticks."""
    shares = {
        name: table.detach().to("cpu", torch.float64) / table.max().item() for name, table in maps.items()
    }
    lowest = min(share[share > 0].min().item() for share in shares.values())
    colors = LogNorm(max(FAINTEST, min(lowest, 0.1)), 1.0)
    figure, grid = canvas(1, len(maps), width=min(8.0, 2.0 * len(maps) + 1.0), height=2.7, sharey=True)
    for axes, (name, share) in zip(grid[0], shares.items(), strict=True):
        rows, columns = share.shape
        image = draw_shares(axes, share, colors)
        axes.set_title(name, fontsize=9.5)
        axes.set_xlabel("input")
        if tokens is not None:
            axes.set_xticks(range(columns), tokens)
            axes.set_yticks(range(rows), tokens)
    grid[0][0].set_ylabel("output")
    below = "min" if lowest < FAINTEST else "neither"
    bar = figure.colorbar(
        image, ax=grid, label="gradient / its maximum", extend=below, fraction=0.03, pad=0.01, shrink=0.75
    )
    bar.minorticks_off()
    trim(figure)
    return figure


@styled
def forgetting(norms: Mapping[str, Sequence[float]], distance: int) -> Picture:
    """{system: norm of the gradient at each token}; the symbol stands `distance` before the question."""
    figure, grid = canvas(width=7.4, height=3.6)
    axes = grid[0][0]
    every = [float(value) for values in norms.values() for value in values]
    zero = logarithmic_with_zero(axes, every)
    for k, (name, values) in enumerate(norms.items()):
        ago = [len(values) - 1 - i for i in range(len(values))]
        heights = [float(value) or zero for value in values]
        style = {
            "marker": MARKERS[k % len(MARKERS)],
            "markersize": 4,
            "markevery": max(1, len(ago) // 12),
        }
        axes.plot(ago, heights, color=color(k), linestyle=DASHES[k % 4], label=name, **style)
    axes.invert_xaxis()
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.axvline(distance, color="0.5", linewidth=1, zorder=0)
    note(axes, "the symbol", x=distance, shift=(3, 2), ha="center", color="0.35")
    axes.set_xlabel("tokens before the question")
    axes.set_ylabel("gradient of the answer")
    figure.legend(loc="outside lower center", ncols=len(norms), frameon=False)
    return Picture(
        figure,
        "The norm of the answer's gradient at each token, a curve for each system, over how many tokens"
        " before the question it stands; the axis of norms is logarithmic.",
        "How much a small change in each token would move the answer. The question itself stands on the"
        " right." + (UNDERFLOW if 0 in every else ""),
    )


def _seeds(
    axes: Axes, rows: Sequence[Row], by: str, y: str, names: Sequence[str], *, logarithmic: bool = False
) -> None:
    """Dots of all rows over their distance, and lines through the middle of each name in one column.

    `names` are those of all panels, so that each has its own style and its own place beside the others in all
    of them.
    """
    curves = summary.bands(rows, by, "distance", y)
    zero = logarithmic_with_zero(axes, [row[y] for row in rows]) if logarithmic else 0.0
    for name, (xs, _, medians, _) in curves.items():
        k = names.index(name)
        aside = 1.035 ** (k - (len(names) - 1) / 2)
        style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "markersize": 4.5}
        heights = [height or zero for height in medians]
        axes.plot(
            [aside * x for x in xs], heights, **style, linestyle=DASHES[k % 4], linewidth=1.2, label=name
        )
        mine = [row for row in rows if row[by] == name]
        dots = [aside * row["distance"] for row in mine], [row[y] or zero for row in mine]
        axes.plot(*dots, **style, linestyle="none", alpha=0.7)
    distances = sorted({row["distance"] for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(distances, [str(distance) for distance in distances])
    axes.xaxis.minorticks_off()
    axes.set_xlabel("distance, in tokens")


def _chance(axes: Axes) -> None:
    """A line at the accuracy of guessing, on an axis from 0 to 1."""
    axes.axhline(1 / len(SYMBOLS), color="0.5", linewidth=1, zorder=0)
    axes.set_ylim(0, 1.03)
    ticks = {0.0: "0", 1 / len(SYMBOLS): "chance", 0.25: "0.25", 0.5: "0.5", 0.75: "0.75", 1.0: "1"}
    axes.set_yticks(list(ticks), ticks.values())
