"""The figures of chapter 02, scoring."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib import experiments, summary
from lesson_lib.chapters.c02_scoring.experiments import look_up
from lesson_lib.charts.basic import heatmap, lines
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.picture import Picture, canvas, color, figure, styled

Curves = Mapping[str, Sequence]


def regression(
    asked: Tensor, answers: Mapping[float, Tensor], truth: Tensor, places: Tensor, measured: Tensor
) -> Picture:
    """All of shape (points, 1); `answers` by the width of the bell."""
    xs = asked[:, 0].tolist()
    curves = {"the sine": (xs, truth[:, 0].tolist())}
    curves |= {f"width {width}": (xs, answer[:, 0].tolist()) for width, answer in answers.items()}
    return lines(
        {"answer": curves},
        alt=(
            "Three answers of kernel regression with the true sine and the noisy measurements as dots: narrow"
            " bells follow the noise, wide bells flatten the curve."
        ),
        caption=(
            "One attention, three widths of the bell: the narrowest copies the noise, the middle one finds"
            " the sine, the widest leaves a gentle slope."
        ),
        x_axis="where we ask",
        dots={"measured": (places[:, 0].tolist(), measured[:, 0].tolist())},
        points=False,
        height=3.4,
    )


@styled
def six_parts() -> Picture:
    """Queries, keys and values on their way to the outputs, with their shapes."""
    drawn, ((axes,),) = canvas(width=7.0, height=2.2)
    axes.set(xlim=(0, 6.3), ylim=(0.1, 2.1))
    axes.axis("off")
    parts = {
        "queries (n, d_k)": (0.8, 1.85, "#CFE0F5"),
        "keys (m, d_k)": (0.8, 1.15, "#CFE0F5"),
        "values (m, d_v)": (0.8, 0.35, "#CFE0F5"),
        "scores (n, m)": (3.2, 1.5, "#FFE08A"),
        "weights (n, m)": (5.4, 1.5, "#FFE08A"),
        "outputs (n, d_v)": (5.4, 0.35, "#BFE5D6"),
    }
    boxes = {}
    for name, (x, y, ground) in parts.items():
        frame = {"boxstyle": "round,pad=0.4", "facecolor": ground, "edgecolor": "#0B2347"}
        words = axes.text(x, y, name, ha="center", va="center", size=11, bbox=frame)
        boxes[name.split()[0]] = words.get_bbox_patch(), (x, y)
    ways = "queries scores,keys scores,scores weights,weights outputs,values outputs".split(",")
    for start, end in map(str.split, ways):
        (leaves, place), (reaches, goal) = boxes[start], boxes[end]
        line = {"arrowstyle": "-|>", "color": "#333", "lw": 1.5, "patchA": leaves, "patchB": reaches}
        axes.annotate("", goal, place, arrowprops=line)
    for x, y, does in ((1.95, 1.5, "compare"), (4.3, 1.62, "softmax"), (3.2, 0.47, "mix by the weights")):
        axes.text(x, y, does, ha="center", va="center" if does == "compare" else "bottom", style="italic")
    return Picture(
        drawn,
        "Queries (n, d_k) and keys (m, d_k) are compared and give scores (n, m); softmax turns these into"
        " weights (n, m), by which the values (m, d_v) are mixed into outputs (n, d_v).",
    )


def word_scores(words: Sequence[str], same: Tensor, projected: Tensor) -> Picture:
    """Scores (words, words)."""
    return heatmap(
        {"x · x": same, "(x W_q) · (x W_k)": projected},
        rows=words,
        columns=words,
        alt=(
            "Two tables of scores for three words: the left one is symmetric with its largest numbers on the"
            " diagonal, the right one is not."
        ),
        caption=(
            "Left: a token's own score is the largest in its row, and the table is its own mirror image. "
            "Right: with projections the mirror image is gone, and a token's own score need not be the"
            " largest."
        ),
    )


def scaling(spread: Curves, largest: Curves, slope: Curves) -> Picture:
    """{score: (widths, values)} for each panel."""
    return lines(
        {"spread of the scores": spread, "largest of 16 weights": largest, "gradient through softmax": slope},
        alt=(
            "Three panels over width: unscaled, the spread of scores grows, the largest weight nears 1, the"
            " gradient falls; scaled, all are nearly flat."
        ),
        caption=(
            "500 random queries against 16 random keys. Scaling keeps all three where they are; without it"
            " the gradient dies as d grows."
        ),
        x_axis="width d",
        log="x",
        y_limits=(0, None),
    )


@styled
def list_weights(weights: Mapping[str, Tensor], pairs: Sequence[str], right: int) -> Picture:
    """A panel for each model: the weights of one list's keys, (m,); `right` is the place of the right pair,
    and `pairs` are the names of all."""
    page, grid = canvas(len(weights), 1, width=7.6, height=1.9 * len(weights), sharex=True)
    seen = []
    for axes, (name, row) in zip(grid[:, 0], weights.items(), strict=True):
        heights = row.tolist()
        bars = axes.bar(range(len(heights)), heights, color=color(0), width=0.7)
        bars[right].set(color=color(1), hatch="//")
        axes.annotate(
            "right pair",
            (right, min(heights[right] + 0.03, 0.62)),
            (right if heights[right] < 0.5 else right + 2, 0.62),
            ha="center",
            color=color(1),
            arrowprops={"arrowstyle": "->", "color": color(1)},
        )
        axes.set(ylim=(0, 1.05), yticks=(0, 0.5, 1), ylabel="weight")
        axes.set_title(name, loc="left")
        best = heights.index(max(heights))
        tall = f"one tall bar, at {pairs[best]}, {'the' if best == right else 'not the'} right pair"
        seen.append(f"{name}: {tall if max(heights) > 0.5 else 'low bars at all pairs'}")
    axes.set_xticks(range(len(pairs)), pairs, fontsize=9)
    axes.set_xlabel("symbol : answer")
    return Picture(page, f"The weights of a list's {len(pairs)} keys as bars. {'; '.join(seen)}.")


@figure(
    "Two histograms of scores on the same axis: for the smaller width a narrow peak around 0, for the larger"
    " one a wide bell.",
)
def spreads(scores: Mapping[str, Tensor]) -> Figure:
    """A panel for each width, {name: scores}."""
    page, grid = canvas(len(scores), 1, width=6.4, height=1.6 * len(scores), sharex=True)
    far = max(some.abs().max().item() for some in scores.values())
    edges = torch.linspace(-far, far, 121).tolist()
    for i, (axes, (name, some)) in enumerate(zip(grid[:, 0], scores.items(), strict=True)):
        axes.hist(some.flatten().tolist(), edges, color=color(i))
        axes.set_title(name, loc="left")
        axes.set(yticks=(), ylabel="how many")
    axes.set_xlabel("score")
    return page


@figure(
    "Two histograms on a logarithmic axis: for one model the bars spread over thirty powers of ten, for the"
    " other they stand close together at its upper end.",
)
def pushes(sizes: Mapping[str, Tensor], floor: int = -30) -> Figure:
    """A panel for each model: how strong the push on the right key is, (lists,); what is below 10 to the
    `floor` is counted there."""
    page, grid = canvas(len(sizes), 1, width=6.4, height=1.6 * len(sizes), sharex=True)
    for i, (axes, (name, some)) in enumerate(zip(grid[:, 0], sizes.items(), strict=True)):
        powers = some.clamp(min=10.0**floor).log10()
        axes.hist(powers.tolist(), list(range(floor, 1)), color=color(i))
        axes.set_title(name, loc="left")
        axes.set(yticks=(), ylabel="lists")
        axes.axvline(-3, color="0.4", linestyle=":", linewidth=1.5)
    ticks = range(floor, 1, 3)
    axes.set_xticks(ticks, [f"$10^{{{tick}}}$" for tick in ticks])
    axes.set_xlabel(f"push on the right key (left edge: all below $10^{{{floor}}}$)")
    return page


def learning(accuracy: Mapping[str, Sequence[float]], every: int, guessing: float) -> Picture:
    """Accuracies of each model, one `every` so many steps from step 0 on, beside that of guessing."""
    curves = {name: (range(0, every * len(some), every), some) for name, some in accuracy.items()}
    return lines(
        {"accuracy on unseen lists": curves},
        levels={"guessing": guessing},
        alt=f"Accuracy over training steps, a curve for each model: {'; '.join(curves)}.",
        x_axis="training step",
        y_limits=(0, 1.02),
        points=False,
    )


def arrival(accuracy: Curves, steps: Curves) -> Picture:
    """{score: (widths, lowest, median, highest)}."""
    return lines(
        {"test accuracy": accuracy, "steps needed (1,000: never)": steps},
        alt=(
            "Test accuracy and steps needed over width for four scores: scaled dot and additive get there at"
            " every width; dot and bilinear fail from some width on."
        ),
        caption=(
            "Stored run: middle of three seeds, band from lowest to highest. Two of the four scores learn at"
            " every width."
        ),
        x_axis="width d",
        log="x",
    )


def stored_arrival() -> Picture:
    """`arrival` of the stored experiment "look_up"."""
    rows = look_up.best_rows(experiments.results("look_up")["rows"])
    return arrival(_over_widths(rows, "test"), _over_widths(rows, "steps"))


def stored_rates() -> Picture:
    """Of the stored experiment "look_up"."""
    stored = experiments.results("look_up")["rows"]
    same, two = [row for row in stored if row["lr"] == 0.01], ("scaled dot", "additive")
    tables = {"both at rate 0.01": same, "each at its best rate": look_up.best_rows(stored)}
    return lines(
        {f"steps needed, {name}": _over_widths(rows, "steps", two) for name, rows in tables.items()},
        alt=(
            "Steps needed over width, two panels: at one learning rate additive needs fewer steps at every"
            " width; at the best rate for each, scaled dot needs as few or fewer from width 16 on."
        ),
        caption="The same runs, compared at one learning rate (left) and at the best rate for each (right).",
        x_axis="width d",
        log="x",
        y_limits=(0, None),
        known=look_up.RECIPE["scores"],
    )


def _over_widths(rows: Sequence[dict], column: str, scores: Sequence[str] = ()) -> dict[str, tuple]:
    """{score: (widths, lowest, median, highest of three seeds)}."""
    bands = summary.bands(rows, "score", "d", column)
    return {name: bands[name] for name in scores or look_up.RECIPE["scores"]}


def stored_explosion() -> Picture:
    """Of the stored experiment "look_up"."""
    rows = look_up.best_rows(experiments.results("look_up")["rows"])
    columns = {"deviation of scores, untrained": "spread_start", "deviation of scores, trained": "spread_end"}
    return lines(
        {name: _over_widths(rows, column) for name, column in columns.items()},
        alt=(
            "Standard deviation of the scores over width before and after training, on log scales: dot starts"
            " large; after training dot and bilinear are largest at great widths."
        ),
        caption=(
            "Stored run. Left: only the plain dot product starts with a deviation of √d. Right: where"
            " training failed, the scores are larger than anywhere it succeeded."
        ),
        x_axis="width d",
        log="xy",
    )


def costs(
    lengths: Sequence[int],
    memory: Mapping[str, Sequence],
    seconds: Mapping[str, Sequence],
    gpu: Gpu | None = None,
) -> Picture:
    """{score: MiB or seconds for each length}; `gpu` as `seconds_beside` takes it."""
    return seconds_beside(
        {name: (lengths, values) for name, values in seconds.items()},
        gpu,
        others={"peak memory, MiB": {name: (lengths, values) for name, values in memory.items()}},
        alt=(
            "Memory and time over the number of tokens for dot, additive in pieces and additive at once, on"
            " log scales: additive at once is far above dot in both."
        ),
        caption=(
            "Memory and processor seconds: measured where this notebook was built. Cutting the queries into"
            " pieces saves memory; the arithmetic stays."
        ),
        x_axis="tokens",
    )
