"""The figures of part 06b, the translator and its training."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture
from lesson_lib.training import one_cycle, warmup


def schedules(steps: int, d_model: int, peak: float = 6e-3, warm: int = 400) -> Picture:
    """`peak` is the first curve's highest rate, `warm` the second one's steps of warm-up."""
    at = list(range(1, steps + 1, 5))
    curves = {
        "warm-up, half a cosine": (at, [peak * one_cycle(step, steps) for step in at]),
        "2017, 400 steps of warm-up": (at, [warmup(step, d_model, warm) for step in at]),
    }
    return lines(
        {"learning rate": curves},
        alt=(
            f"Learning rate over {steps:,} steps. One curve rises in the first tenth, then falls by half a"
            " cosine to 0; the other, dashed, rises for 400 steps and falls slowly."
        ),
        x_axis="step",
        points=False,
    )


def losses(curves: Mapping[str, Sequence[float]], every: int = 5) -> Picture:
    """{model: loss of each step}; a point is the mean of `every` steps."""
    panel = {
        name: (
            [every * (i + 1) for i in range(len(values) // every)],
            [sum(values[every * i : every * (i + 1)]) / every for i in range(len(values) // every)],
        )
        for name, values in curves.items()
    }
    return lines(
        {"training loss": panel},
        alt=(
            "Training loss, logarithmic. Without the mask it falls fast within 150 steps; with the mask it"
            " needs several times as many steps to get there."
        ),
        caption="Mean of five steps each; the machine without the mask trains for 150 steps only.",
        x_axis="step",
        log="y",
        points=False,
    )


def ahead(moved: Mapping[str, Tensor]) -> Picture:
    """{model: movement for each place}, 0 where nothing before it moves."""
    curves = {name: (list(range(len(values))), values.tolist()) for name, values in moved.items()}
    return lines(
        {"how far the places before it move": curves},
        alt=(
            "Movement of earlier logits over the replaced place: 0 everywhere with the mask; without the mask"
            " above 0 from place 1 on."
        ),
        x_axis="place whose sign is replaced",
    )
