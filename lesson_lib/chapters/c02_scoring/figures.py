"""The figures of chapter 02, scoring."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from lesson_lib import experiments, summary
from lesson_lib.chapters.c02_scoring.experiments import look_up
from lesson_lib.charts.basic import heatmap, lines
from lesson_lib.charts.devices import Gpu, seconds_beside
from lesson_lib.charts.picture import Picture

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


def learning(histories: Mapping[str, object], commonest: float) -> Picture:
    """Histories of `training`, and the share of right answers of whoever names the commonest one."""
    curves = {name: (h.column("step"), h.column("score")) for name, h in histories.items()}
    there = [name for name, h in histories.items() if h.column("score")[-1] >= look_up.RECIPE["stop_at"]]
    names = " and ".join(there) or "none"
    return lines(
        {"right answers on validation lists": curves},
        levels={"commonest answer": commonest},
        alt=(
            f"Accuracy over training steps, log scale: {', '.join(curves)}. Steep, and stopped at the target:"
            f" {names}. The others climb slowly and stay below it."
        ),
        caption=f"Live, one seed. Stopped at 95 %: {names}.",
        x_axis="training step",
        log="x",
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
