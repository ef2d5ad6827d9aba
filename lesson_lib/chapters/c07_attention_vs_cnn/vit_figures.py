"""ViT and CNN: the way of a class token, curves over training pictures, and how far heads look."""

import itertools
from collections.abc import Mapping, Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib import summary
from lesson_lib.chapters.c07_attention_vs_cnn.drawing import (
    draw_picture,
    draw_rectangle,
    row_of_panels,
)
from lesson_lib.charts.basic import bars, lines
from lesson_lib.charts.marks import note
from lesson_lib.charts.picture import CURVES, HEAT, MARKERS, Picture, bare, color, figure, styled, trim
from lesson_lib.charts.picture import canvas as sheet
from lesson_lib.experiments import results

CHANCE = {"digits": 0.1, "pairs": 0.5}
ACROSS = 6  # canvases side by side


@styled
def curves(points: Mapping[str, Mapping[str, Sequence]], task: str, result: str = "") -> Picture:
    """{budget: {model: (ns, lowest, median, highest)}}; `task` is a key of CHANCE, `result` a sentence for
    the alt text."""
    picture = lines(
        {f"test accuracy, {budget}": models for budget, models in points.items()},
        alt=f"Test accuracy over the number of training images, a curve for each model. {result}",
        caption=f"Stored run, {task}. Middle of three seeds, band from lowest to highest.",
        x_axis="training images",
        log="x",
        y_limits=(0, 1.02),
        height=3.4,
    )
    for axes in picture.figure.axes:
        axes.axhline(CHANCE[task], color="0.5", linewidth=1, zorder=0)
        note(axes, "chance", y=CHANCE[task], shift=(0, -3), ha="right", va="top", color="0.35")
        if len(axes.get_xticks()) > 5:
            axes.tick_params(axis="x", labelrotation=45)
    return picture


def _over_pictures(task: str, model: str, budget: str) -> summary.Band:
    """Numbers of pictures, and the lowest, the median and the highest test accuracy of three seeds."""
    rows = [
        row
        for row in results("vit")["rows"]
        if row["kind"] == "point"
        and (row["task"], row["model"], row["budget"], row["fresh"]) == (task, model, budget, False)
    ]
    return summary.bands(rows, "kind", "n", "accuracy")["point"]


def crossing() -> Picture:
    """Of the stored experiment "vit": the smallest CNN and the ViT of the longest training, and neither says
    so."""
    return lines(
        {
            "right on new digits": {
                "CNN": _over_pictures("digit", "cnn", "tiny"),
                "ViT": _over_pictures("digit", "vit", "long"),
            }
        },
        alt=(
            "Share of digits that are right over the number of training pictures: the CNN's curve begins"
            " higher, the ViT's is higher at the right end."
        ),
        caption="Median of three seeds; bands from lowest to highest.",
        x_axis="training pictures",
        log="x",
        y_limits=(0, 1.02),
        height=3.2,
    )


def shares_right(shares: Mapping[str, float], guess: float) -> Picture:
    """{model, kind of pictures: share}."""
    return bars(
        {name.replace(", ", "\n"): share for name, share in shares.items()},
        alt="Share of right answers: both models at the top on known pictures, only the CNN on new ones.",
        y_axis="right",
        marks={"a guess": guess},
        limits=(0, 1.12),
        kinds=2,
    )


def uncovered() -> Picture:
    """Of the stored experiment "vit", every number of steps."""
    steps = {"tiny": 50, "short": 200, "long": 800}
    panels = {}
    for task in ("digit", "pair"):
        panels[f"right on new {task}s"] = {
            f"{name}, {steps[budget]} steps": _over_pictures(task, model, budget)[::2]
            for model, name, budgets in (
                ("cnn", "CNN", ("tiny", "short", "long")),
                ("vit", "ViT", ("short", "long")),
            )
            for budget in budgets
            if (task, budget) != ("pair", "tiny")
        }
    return lines(
        panels,
        alt=(
            "Two panels, digits and pairs, over the number of training pictures: with few steps the curves of"
            " either model lie low; after 200 steps the CNN is above the ViT of 800."
        ),
        caption="Medians of three seeds. Guessing: 0.1 of the digits, 0.5 of the pairs.",
        x_axis="training pictures",
        log="x",
        y_limits=(0, 1.02),
        height=3.8,
    )


@figure(
    "Share of new pairs that are right after 1,000 pictures, a mark for each of three seeds: the CNN at the"
    " top in all, the ViT between 0.7 and 0.95, and higher after more steps or without codes.",
    "Right on 3,000 new pairs; each mark is one training with 1,000.",
    width=7.0,
    height=2.9,
    y="right on new pairs",
)
def ways_to_the_rule(axes: Axes) -> None:
    """Of the stored experiments "vit" and "codes"."""
    cnn = [
        row["accuracy"]
        for row in results("vit")["rows"]
        if (row["kind"], row.get("model"), row.get("task")) == ("point", "cnn", "pair")
        and (row["n"], row["budget"], row["fresh"]) == (1000, "long", False)
    ]
    ways = {"CNN,\n800 steps": cnn}
    names = {
        "as it was": "ViT,\n800 steps",
        "longer": "ViT,\n3,200 steps",
        "no codes": "ViT,\nno codes",
    }
    for way, name in names.items():
        rows = results("codes")["rows"]
        ways[name] = [row["accuracy"] for row in rows if (row["n"], row["way"]) == (1000, way)]
    for k, seeds in enumerate(ways.values()):
        xs = [k + 0.09 * (i - (len(seeds) - 1) / 2) for i in range(len(seeds))]
        axes.plot(xs, sorted(seeds), MARKERS[k], color=color(k), markersize=6, linestyle="none")
    axes.axhline(0.5, color="0.5", linewidth=1, zorder=0)
    note(axes, "a guess", y=0.5, shift=(0, 3), ha="right", va="bottom", color="0.35")
    axes.set(ylim=(0.45, 1.03), xlim=(-0.5, len(ways) - 0.3))
    axes.set_xticks(range(len(ways)), list(ways))


@figure(
    "A picture in patches; a column of tokens with the class token on top; two layers, with lines"
    " from all tokens to the class token; an arrow from its last row to the answer.",
    "Lines: what the class token reads in each layer. The patches read each other, too (not drawn).",
    width=7.8,
    height=3.0,
)
def class_token_path(axes: Axes, canvas: Float[Tensor, "h w"], patch: int) -> None:
    """`patch` is a patch's side in pixels."""
    canvas = canvas.detach().cpu()
    side = canvas.shape[0]
    rows = side // patch
    axes.imshow(canvas.numpy(), cmap=HEAT, extent=(0, 4, 0, 4))
    for k in range(rows + 1):
        axes.plot([0, 4], [4 * k / rows] * 2, color="white", linewidth=1)
        axes.plot([4 * k / rows] * 2, [0, 4], color="white", linewidth=1)
    axes.text(2, -0.35, f"{rows * rows} patches of {patch} x {patch}", ha="center", va="top", fontsize=9)
    count, high = rows * rows + 1, 4 / (rows * rows + 1)
    columns = {"tokens": 6.4, "after layer 1": 9.6, "after layer 2": 12.8}
    for x, name in zip(columns.values(), columns, strict=True):
        for i in range(count):
            shade = CURVES[1] if i == 0 else CURVES[5]
            corner = (x, 4 - (i + 1) * high)
            draw_rectangle(axes, corner, 1.1, 0.8 * high, fill=True, facecolor=shade, edgecolor="none")
        axes.text(x + 0.55, -0.35, name, ha="center", va="top", fontsize=9)
    arrow = {"arrowstyle": "-|>", "color": "0.25"}
    axes.annotate("", (6.3, 1.9), (4.1, 1.9), arrowprops=arrow)
    axes.text(5.2, 2.05, "one\nmatrix", ha="center", va="bottom", fontsize=9)
    lefts = list(columns.values())
    for left, right in itertools.pairwise(lefts):
        for i in range(count):
            y = 4 - (i + 0.6) * high
            axes.plot(
                [left + 1.15, right - 0.05], [y, 4 - 0.6 * high], color=CURVES[1], linewidth=0.5, alpha=0.7
            )
    axes.text(6.95, 4.15, "class token", ha="center", va="bottom", fontsize=9, color=CURVES[1])
    axes.annotate("", (15.3, 4 - 0.6 * high), (14.0, 4 - 0.6 * high), arrowprops=arrow)
    axes.text(15.4, 4 - 0.6 * high, "answer", ha="left", va="center", fontsize=10)
    axes.set(xlim=(-0.1, 17), ylim=(-0.8, 4.7), aspect="equal")
    bare(axes)
    trim(axes.figure)


@figure("Canvases with two shapes, what each shows above it, and what two models say of it below.")
def judged(
    canvases: Float[Tensor, "b h w"], labels: Sequence[str], answers_of: Mapping[str, Sequence[str]]
) -> Figure:
    """{model: what it says of each canvas}; what is wrong stands in orange."""
    figure, grid = row_of_panels(len(canvases), ACROSS)
    for k, (axes, pixels, label) in enumerate(zip(grid.flat, canvases, labels, strict=False)):
        draw_picture(axes, pixels, low=canvases.min().item(), high=canvases.max().item())
        axes.set_title(label, fontsize=9.5)
        for line, (name, answers) in enumerate(answers_of.items()):
            shade = "0.25" if answers[k] == label else CURVES[1]
            weight = "normal" if answers[k] == label else "bold"
            axes.text(
                0.5, -0.06 - 0.13 * line, f"{name}: {answers[k]}", transform=axes.transAxes, ha="center",
                va="top", fontsize=9, color=shade, fontweight=weight,
            )  # fmt: skip
    trim(figure)
    return figure


@figure(
    "A dot for each head of each layer, as high as the mean distance at which it looks, before training"
    " on the left and after it on the right.",
    "Mean distance between a patch and the patches it looks at, weighted by attention, averaged over test"
    " images.",
)
def distances(before: Mapping[int, Sequence[float]], after: Mapping[int, Sequence[float]]) -> Figure:
    """{layer: a distance in pixels for each head}."""
    figure, grid = sheet(1, 2, width=7.0, height=3.0, sharey=True)
    for axes, title, layers in zip(
        grid[0], ("before training", "after training"), (before, after), strict=True
    ):
        for i, heads in enumerate(layers.values()):
            for k, distance in enumerate(heads):
                style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "linestyle": "none"}
                x = i + 0.1 * (k - (len(heads) - 1) / 2)  # side by side
                axes.plot(x, distance, markersize=7, label=f"head {k}" if not i else None, **style)
        axes.set_xticks(range(len(layers)), [str(name) for name in layers])
        axes.set(xlim=(-0.5, len(layers) - 0.5), xlabel="layer")
        axes.set_title(title, loc="left")
    highest = max(distance for layers in (before, after) for heads in layers.values() for distance in heads)
    grid[0][0].set_ylim(0, 1.15 * highest)
    grid[0][0].set_ylabel("attention distance, in pixels")
    handles, labels = grid[0][1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), frameon=False)
    return figure
