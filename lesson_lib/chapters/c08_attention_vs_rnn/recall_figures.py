"""What recurrent networks and attention remember over a distance."""

import statistics
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from lesson_lib import require, summary
from lesson_lib.chapters.c08_attention_vs_rnn.drawing import Row, logarithmic_axis
from lesson_lib.charts.basic import heatmap
from lesson_lib.charts.picture import HEAT, MARKERS, Picture, canvas, color, figure, styled, trim
from lesson_lib.data.recall import SYMBOLS

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
    """Accuracy of systems over the distance of the symbol, and the gradient that reaches it; a dot for each
    seed, a line through their medians.

    `rows` are those of `experiments.recall`; of these the `kind` "point" (the symbol first) or "middle"
    (filler before it) is drawn. `gradient` is the second panel's column, before training or, as
    "gradient_after", behind it.
    """
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
    """Accuracy over distance with each aid to recurrent networks and with none, a panel for each system; a
    dot for each seed.

    `rows` are those of `experiments.recall`.
    """
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
    known = {name: next(found[name] for found in handles if name in found) for name in names}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def asked(
    rows: Sequence[Row], systems: Sequence[str] = ("RNN", "LSTM", "attention"), column: str = "asked"
) -> Picture:
    """Accuracy at other distances than the one that was trained: a table for each system, a row for each
    training, a column for each distance.

    `rows` are those of `experiments.recall`; drawn is the middle of the seeds of kind "point", for the
    distances at which all systems were trained. `column` is "asked", or "kept" for answers that count in
    other names, too. Raises ValueError for another, and for a system without rows.
    """
    require.one_of(ASKED, column=column)
    points = {s: [row for row in rows if row["kind"] == "point" and row["system"] == s] for s in systems}
    trained = sorted(set.intersection(*({row["distance"] for row in mine} for mine in points.values())))
    distances = sorted({int(name) for mine in points.values() for row in mine for name in row[column]})
    tables = {}
    for system, mine in points.items():
        found = [
            [[row[column][str(d)] for row in mine if row["distance"] == t] for d in distances]
            for t in trained
        ]
        cells = [[statistics.median_low(seeds) for seeds in line] for line in found]
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
    """How strongly each output depends on each input, a map for each layer; colours are logarithmic, and
    exactly 0 is white with hatching.

    Each map of `measure.sensitivity` is divided by its own maximum. `tokens` name the ticks. Raises
    ValueError for a map that is no table, is 0 everywhere, or holds a number that is negative or not finite.
    """
    shares = {name: _shares(table, name) for name, table in maps.items()}
    lowest = min(share[share > 0].min().item() for share in shares.values())
    colors = LogNorm(max(FAINTEST, min(lowest, 0.1)), 1.0)
    figure, grid = canvas(1, len(maps), width=min(8.0, 2.0 * len(maps) + 1.0), height=2.7, sharey=True)
    for axes, (name, share) in zip(grid[0], shares.items(), strict=True):
        m, n = share.shape
        ground = {"facecolor": "white", "edgecolor": "0.75", "linewidth": 0, "hatch": "////"}
        axes.add_patch(Rectangle((-0.5, -0.5), n, m, zorder=-1, **ground))
        image = axes.imshow(
            share.masked_fill(share == 0, torch.nan).cpu().numpy(),
            norm=colors,
            cmap=colormaps[HEAT].with_extremes(bad=(1, 1, 1, 0)),
        )
        axes.spines[:].set(visible=True, color="0.6")
        axes.set_title(name, fontsize=9.5)
        axes.set_xlabel("input")
        if tokens is not None:
            axes.set_xticks(range(n), tokens)
            axes.set_yticks(range(m), tokens)
    grid[0][0].set_ylabel("output")
    below = "min" if lowest < FAINTEST else "neither"
    place = {"fraction": 0.03, "pad": 0.01, "shrink": 0.75}
    bar = figure.colorbar(image, ax=grid, label="gradient / its maximum", extend=below, **place)
    bar.minorticks_off()
    trim(figure)
    return figure


@styled
def forgetting(norms: Mapping[str, Sequence[float]], distance: int) -> Picture:
    """How much each token moves the answer: norms of gradients per token for each system; the symbol stands
    `distance` before the question.

    Raises ValueError where a system has no norm for the symbol.
    """
    for name, values in norms.items():
        if not 1 <= distance < len(values):
            raise ValueError(
                f"distance must be from 1 to {len(values) - 1}, as {name!r} has read {len(values)} tokens,"
                f" got {distance!r}"
            )
    figure, grid = canvas(width=7.4, height=3.6)
    axes = grid[0][0]
    found = [float(value) for values in norms.values() for value in values]
    zero = logarithmic_axis(axes, found)
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
    beside = {"xycoords": ("data", "axes fraction"), "xytext": (3, 2), "textcoords": "offset points"}
    axes.annotate("the symbol", (distance, 1.0), **beside, ha="center", fontsize=9, color="0.35")
    axes.set_xlabel("tokens before the question")
    axes.set_ylabel("gradient of the answer")
    figure.legend(loc="outside lower center", ncols=len(norms), frameon=False)
    return Picture(
        figure,
        "The norm of the answer's gradient at each token, a curve for each system, over how many tokens"
        " before the question it stands; the axis of norms is logarithmic.",
        "How much a small change in each token would move the answer. The question itself stands on the"
        " right." + (UNDERFLOW if 0 in found else ""),
    )


def _seeds(
    axes: Axes, rows: Sequence[Row], by: str, y: str, names: Sequence[str], *, logarithmic: bool = False
) -> None:
    """Dots of all rows over their distance, and lines through the middle of each name in one column.

    `names` are those of all panels, so that each has its own style and its own place beside the others in all
    of them.
    """
    curves = summary.bands(rows, by, "distance", y)
    zero = logarithmic_axis(axes, [row[y] for row in rows]) if logarithmic else 0.0
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


def _shares(table: Tensor, name: str) -> Tensor:
    """The table on the CPU, divided by its maximum."""
    if not isinstance(table, Tensor) or table.ndim != 2 or table.numel() == 0:
        got = tuple(table.shape) if isinstance(table, Tensor) else type(table).__name__
        raise ValueError(
            f"map {name!r} must be a tensor (outputs, inputs), got {got}; take measure.sensitivity(layer, x)"
        )
    table = table.detach().to("cpu", torch.float64)
    if not table.isfinite().all() or table.min() < 0 or table.max() == 0:
        raise ValueError(
            f"map {name!r} must hold norms: finite, not negative and not all 0; take"
            " measure.sensitivity(layer, x)"
        )
    return table / table.max()
