"""Pictures of looking: a path over its canvas, what the eye saw, and what learning to look is worth."""

import io
import json
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image
from torch import Tensor

from lesson_lib import experiments, summary
from lesson_lib.chapters.c01_history.experiments import glimpse
from lesson_lib.chapters.c01_history.glimpse import first_pixel, retina
from lesson_lib.charts.basic import heatmap, lines
from lesson_lib.charts.marks import note
from lesson_lib.charts.picture import CURVES, HEAT, MARKERS, Picture, bare, color, figure, styled, trim
from lesson_lib.charts.picture import canvas as sheet
from lesson_lib.data import digits

STORED = Path(__file__).parent / "experiments" / "results" / "glimpse.json"
FRAME_MS, LAST_MS = 1000, 2200
PATH = CURVES[1]


def stored_paths(
    count: int,
) -> tuple[
    Float[Tensor, "b size size"],
    Float[Tensor, "b t 2"],
    Float[Tensor, "b t classes"],
    Int[Tensor, "b"],
]:
    """Canvases, places, probabilities and labels of the first `count` digits whose paths the long run
    stored."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    row = next(row for row in stored["rows"] if row["kind"] == "paths")
    images, labels = digits.pictures("test")
    picture, corners = (torch.tensor(row[key][:count], device="cpu") for key in ("pictures", "corners"))
    canvases = digits.place(images[picture], corners, stored["recipe"]["size"])
    places, probabilities = (
        torch.tensor(row[key][:count], device="cpu") for key in ("places", "probabilities")
    )
    return canvases, places, probabilities, labels[picture]


@figure(
    "A canvas with a digit and the path of the glimpses so far, beside it the patches of the last"
    " glimpse, and a bar for the probability of each digit.",
    "Square: the sharp patch of the glimpse. Dashed: the wide patch. The orange bar is the right digit.",
)
def glance(
    canvas: Float[Tensor, "size size"],
    places: Float[Tensor, "t 2"],
    probabilities: Float[Tensor, "t classes"],
    label: int,
    *,
    upto: int,
    patch: int = 8,
    n_scales: int = 2,
) -> Figure:
    """Places in -1 ... 1 of both axes; `upto` counts glimpses from 1."""
    seen = retina(canvas[None].cpu(), places[upto - 1][None].cpu(), patch, n_scales)[0]
    widths = [1.15, *[0.7] * n_scales, 1.0]
    figure, grid = sheet(1, len(widths), width=7.6, height=2.5, gridspec_kw={"width_ratios": widths})
    whole, *patches, bars = grid[0]
    _path(whole, canvas, places[:upto], patch, n_scales)
    whole.set_title(f"glimpse {upto} of {len(places)}")
    for k, (axes, pixels) in enumerate(zip(patches, seen, strict=True)):
        axes.imshow(pixels.cpu().numpy(), cmap=HEAT, vmin=0, vmax=1)
        bare(axes)
        axes.set_title("sharp" if k == 0 else f"dim, {2**k} × as wide")
    values = probabilities[upto - 1].tolist()
    bars.barh(range(len(values)), values, color=[PATH if d == label else "0.65" for d in range(len(values))])
    bars.set(xlim=(0, 1), xticks=[0, 0.5, 1], yticks=range(len(values)))
    bars.invert_yaxis()
    bars.set_title(f"probability (it is a {label})")
    return figure


@styled
def paths(
    canvases: Float[Tensor, "b size size"],
    places: Float[Tensor, "b t 2"],
    probabilities: Float[Tensor, "b t classes"],
    labels: Int[Tensor, "b"],
    *,
    caption: str = "",
) -> Picture:
    """Canvases four in a row; places in -1 ... 1 of both axes, the guess is the likeliest class of the last
    glimpse."""
    across = min(4, len(canvases))
    down = math.ceil(len(canvases) / across)
    figure, grid = sheet(down, across, width=1.9 * across + 0.1, height=2.2 * down)
    for axes in grid.flat[len(canvases) :]:
        axes.set_axis_off()
    for i, axes in zip(range(len(canvases)), grid.flat, strict=False):
        _path(axes, canvases[i], places[i])
        guess = probabilities[i, -1].argmax().item()
        verdict = "right" if guess == labels[i] else f"it is a {labels[i].item()}"
        axes.set_title(f"says {guess}: {verdict}")
    trim(figure)
    return Picture(
        figure,
        "Canvases with a digit each, and a numbered path from the centre of the canvas: the second glimpse"
        " lands on the digit or beside it, later ones often wander off.",
        caption
        or (
            "Numbers count the glimpses; the square is the sharp patch of the last one. The canvases are "
            "the first of the test split, not chosen."
        ),
    )


def film(
    canvases: Float[Tensor, "b size size"],
    places: Float[Tensor, "b t 2"],
    probabilities: Float[Tensor, "b t classes"],
    labels: Int[Tensor, "b"],
) -> bytes:
    """An animated GIF of `glance` after each glimpse at each canvas; the same bytes for the same numbers."""
    frames, times, t = [], [], places.shape[1]
    for i in range(len(canvases)):
        for upto in range(1, t + 1):
            picture = glance(canvases[i], places[i], probabilities[i], labels[i].item(), upto=upto)
            frame = Image.open(io.BytesIO(picture.png())).convert("RGB")
            frames.append(
                frame.resize((frame.width * 2 // 3, frame.height * 2 // 3), Image.Resampling.LANCZOS)
            )
            times.append(LAST_MS if upto == t else FRAME_MS)
    width, height = frames[0].size
    every = Image.new("RGB", (width, height * len(frames)))  # one palette that suits all frames
    for k, frame in enumerate(frames):
        every.paste(frame, (0, height * k))
    palette = every.quantize(96, dither=Image.Dither.NONE)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    file = io.BytesIO()
    options = {"append_images": frames[1:], "duration": times, "loop": 0, "optimize": False}
    frames[0].save(file, format="GIF", save_all=True, **options)
    return file.getvalue()


def policies(
    accuracies: Mapping[str, Sequence[float]],
    *,
    chance: float = 1 / digits.CLASSES,
    caption: str = "",
    alt: str = "",
) -> Picture:
    """{name: [test accuracy of each seed]}."""
    return _dots(
        accuracies,
        marks={"chance": chance},
        alt=alt
        or (
            "Share of right guesses, a dot for each seed: learned places are ahead of random ones, and"
            " those of always looking at the centre; being told the place is ahead of all three."
        ),
        caption=caption
        or (
            "Same model, four looks; only who moves the eye differs. The last two rows are networks that see"
            " the whole canvas."
        ),
        x_limits=(0, 1.08),
    )


def one_look(
    canvas: Float[Tensor, "size size"], sharp: Float[Tensor, "p p"], dim: Float[Tensor, "p p"]
) -> Picture:
    """Numbers from 0 to 1; the dim patch has as many as it has pixels, whatever its width on the canvas."""
    return heatmap(
        {"canvas": canvas, "sharp: 8 by 8": sharp, "dim: 16 by 16": dim},
        numbers=False,
        limits=(0, 1),
        row_axis="",
        column_axis="",
        color_axis="brightness",
        alt=(
            "A canvas with a handwritten digit, and what one look at its middle brings: a small sharp patch"
            " and a larger blurred one."
        ),
        caption="Left: the canvas. Right: all that one look at its middle brings.",
    )


def stored_policies() -> Picture:
    """`policies` of the stored experiment "glimpse"."""
    rows = experiments.results("glimpse")["rows"]
    return policies(glimpse.by_name(rows, "policy") | glimpse.by_name(rows, "whole"))


def with_small_batches() -> dict[str, list[float]]:
    """Test accuracy of each seed, by policy, in batches of 20: at the rate that is best on validation."""
    rows = experiments.results("small_batches")["rows"]
    best = summary.best(rows, ("policy", "seed"), by=itemgetter("validation"))
    return {
        policy: [row["test"] for row in best if row["policy"] == policy]
        for policy in dict.fromkeys(row["policy"] for row in rows)
    }


def stored_small_batches() -> Picture:
    """`policies` of the stored experiments "glimpse" and "small_batches"."""
    rows = experiments.results("glimpse")["rows"]
    large, small = glimpse.by_name(rows, "policy"), glimpse.by_name(rows, "departure")
    longer = with_small_batches()
    return policies(
        {
            "learned, 256 x 1,200": large["learned"],
            "random, 256 x 1,200": large["random"],
            "learned, 20 x 3,000": small["batches of 20, 3,000 steps"],
            "random, 20 x 3,000": small["the same, random places"],
            "learned, 20 x 15,360": longer["learned"],
            "random, 20 x 15,360": longer["random"],
        },
        alt=(
            "Accuracy by batch size and steps: learned places are ahead with large batches, behind random"
            " ones with small batches and few steps, and ahead again with small batches and many steps."
        ),
        caption="Batch size x steps. A dot for each of three seeds, the median written.",
    )


def departures(
    accuracies: Mapping[str, Sequence[float]], base: Sequence[float], *, caption: str = ""
) -> Picture:
    """{change: [test accuracy of each seed]}, and `base` of the model as it is."""
    middle = sorted(base)[len(base) // 2]
    return _dots(
        {"as it is": base} | dict(accuracies),
        marks={"as it is": middle},
        alt=(
            "Test accuracy after single changes of the model, a dot for each seed, and a line for the model"
            " as it is: small batches and the rectifier core cost most, the other changes little."
        ),
        caption=caption
        or (
            "One change at a time, at the learning rate that is best for the model as it is. The rectifier "
            "core and the batches of 20 are the paper's own choices; the paper can be read as stopping "
            "the gradient at the core, so we tried that, too. A dot for each seed, the median written."
        ),
        x_limits=(None, 1.02),
    )


def gradient_noise(rows: Sequence[Mapping[str, Any]], *, paths: int, caption: str = "") -> Picture:
    """Rows as the experiment stores them, `paths` as in its recipe."""
    panels = {}
    for size in sorted({row["size"] for row in rows}, reverse=True):
        mine = [row for row in rows if row["size"] == size]
        times = sorted({row["trained"] for row in mine})
        lengths = [noise_and_signal([row for row in mine if row["trained"] == time], paths) for time in times]
        shares = [100 * time for time in times]
        names = ("noise, no baseline", "noise, learned baseline", "signal")
        panels[f"canvas {size} by {size}: gradient, length"] = {
            name: (shares, list(values))
            for name, values in zip(names, zip(*lengths, strict=True), strict=True)
        }
    low = min(min(ys) for curves in panels.values() for _, ys in curves.values())
    return lines(
        panels,
        alt=(
            "Noise and signal of the policy gradient while the model trains, on the large and on the small"
            " canvas, log scale: the noise is far above the signal in both, the learned baseline lowers it,"
            " and on the small canvas the signal vanishes."
        ),
        caption=caption
        or (
            "One batch of canvases, many paths over it. Signal: length of the mean estimate. Noise: standard "
            "deviation of one batch's estimate. Means over the seeds. Signals too small to tell from zero "
            "are drawn at the detection limit."
        ),
        x_axis="trained, in %",
        log="y",
        y_limits=(low / 1.5, None),
        height=3.4,
    )


def noise_and_signal(seeds: Sequence[Mapping[str, Any]], paths: int) -> tuple[float, float, float]:
    """Noise without a baseline, noise and signal of one time, means over the seeds' rows; the signal is at
    least the standard error of so many paths of so many seeds."""
    plain, noise, squared = (
        sum(row[name] for row in seeds) / len(seeds) for name in ("noise without", "noise", "signal squared")
    )
    return plain, noise, max(squared, noise**2 / paths / len(seeds) ** 0.5) ** 0.5


@styled
def _dots(
    values: Mapping[str, Sequence[float]],
    *,
    marks: Mapping[str, float],
    alt: str,
    caption: str,
    x_limits: tuple[float | None, float],
) -> Picture:
    """A row for each name; the median is written, `marks` are named vertical lines."""
    figure, grid = sheet(width=7.2, height=0.3 * len(values) + 1.0)
    axes = grid[0][0]
    for i, some in enumerate(values.values()):
        middle = sorted(some)[len(some) // 2]
        axes.plot([min(some), max(some)], [i, i], color="0.8", linewidth=3, zorder=1)
        for k, value in enumerate(some):
            axes.plot(value, i, marker=MARKERS[k], color=color(k), markersize=5, linestyle="none")
        note(axes, f"{middle:.2f}", y=i, va="center")
    for name, x in marks.items():
        axes.axvline(x, color="black", linestyle="--", linewidth=1, zorder=0)
        note(axes, name, x=x, shift=(0, 3), ha="center")
    axes.set_yticks(range(len(values)), list(values))
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlim(*x_limits)
    axes.set_xlabel("test accuracy")
    return Picture(figure, alt, caption)


def _path(axes: Axes, canvas: Tensor, places: Tensor, patch: int = 8, n_scales: int = 1) -> None:
    """A canvas, the squares of the last glimpse, and the path so far with its numbers."""
    side = canvas.shape[-1]
    axes.imshow(canvas.cpu().numpy(), cmap=HEAT, vmin=0, vmax=1)
    xs, ys = ((places.cpu() + 1) / 2 * side - 0.5).T.tolist()  # a pixel's middle is a whole number here
    for k in range(n_scales):
        size = patch * 2**k
        column, row = first_pixel(places[-1].cpu(), canvas.shape, size).tolist()
        frame = {
            "fill": False,
            "edgecolor": PATH,
            "linewidth": 2.0 - 0.8 * k,
            "linestyle": "-" if k == 0 else "--",
        }
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), size, size, clip_on=True, **frame))
    axes.plot(xs, ys, color="white", linewidth=2.5)
    axes.plot(xs, ys, color=PATH, linewidth=1.5)
    for t, (x, y) in enumerate(zip(xs, ys, strict=True), start=1):
        circle = {"boxstyle": "circle,pad=0.1", "facecolor": "white", "edgecolor": PATH, "linewidth": 0.8}
        axes.text(x, y, str(t), ha="center", va="center", fontsize=6, bbox=circle)
    axes.set(xlim=(-0.5, side - 0.5), ylim=(side - 0.5, -0.5))
    bare(axes)
