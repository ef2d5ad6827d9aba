"""A recording, its frames and phonemes, and where a frame looks."""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.picture import CURVES, HEAT, canvas, figure

Weights = Float[Tensor, " n"] | Mapping[str, Float[Tensor, " n"]]

HOP_S = 0.01  # seconds from frame to frame


@figure(
    "A spectrogram, time from left to right and pitch upwards, bright where the voice is strong; above it"
    " the phonemes that are spoken.",
    "Where no sound is written, silence.",
)
def utterance(
    frames: Float[Tensor, "n bands"], labels: Int[Tensor, " n"], names: Sequence[str], *, title: str = ""
) -> Figure:
    """`names[label]` is the phoneme. Raises TypeError or ValueError where frames, labels and names do not
    fit."""
    frames = frames.detach().float().cpu()
    figure, (above, below) = _sheet([0.5, 2.2], width=8.0)
    _phonemes(above, segments(labels, names))
    _spectrogram(below, frames)
    above.set_title(title, loc="left")
    return figure


@figure(
    "A spectrogram with the spoken phonemes above it; below it each model's guesses, with a strip that"
    " marks the frames whose guess is wrong.",
    "Orange: wrong frames.",
)
def spoken(
    frames: Float[Tensor, "n bands"],
    labels: Int[Tensor, " n"],
    guesses: Mapping[str, Int[Tensor, " n"]],
    names: Sequence[str],
) -> Figure:
    """{model: its label for each frame}."""
    frames = frames.detach().float().cpu()
    truth = segments(labels, names)
    heights = [0.5, 1.9, *[0.5, 0.12] * len(guesses)]
    figure, (above, picture, *below) = _sheet(heights, width=8.0)
    _phonemes(above, truth, "spoken")
    _spectrogram(picture, frames)
    picture.set_xlabel("")
    picture.tick_params(labelbottom=False)
    for (name, guess), strip, wrong in zip(guesses.items(), below[::2], below[1::2], strict=True):
        _phonemes(strip, segments(guess, names), name)
        bad = (labels != guess).nonzero().flatten().tolist()
        wrong.broken_barh([(HOP_S * i, HOP_S) for i in bad], (0, 1), color=CURVES[1])
        wrong.spines[:].set_visible(False)
        wrong.tick_params(axis="x", bottom=False, labelbottom=False)
        wrong.set(ylim=(0, 1), yticks=[])
        wrong.set_ylabel("wrong", rotation=0, ha="right", va="center", color=CURVES[1])
    below[-1].set_xlabel("seconds")
    below[-1].tick_params(axis="x", bottom=True, labelbottom=True)
    return figure


@figure(
    "A spectrogram with one frame marked, and below it the weights with which that frame looks at all"
    " frames, as bars over time.",
    "Orange: the frame that looks. Each row of bars sums to 1.",
)
def attention(frames: Float[Tensor, "n bands"], weights: Weights, centre: int, *, title: str = "") -> Figure:
    """A row of a table of weights, or {name: row}; `centre` is the frame that looks."""
    frames = frames.detach().float().cpu()
    rows = {"weight": weights} if isinstance(weights, Tensor) else dict(weights)
    n = len(frames)
    figure, (above, *below) = _sheet([1.7, *[0.75] * len(rows)], width=8.0)
    _spectrogram(above, frames)
    above.set_xlabel("")
    above.tick_params(labelbottom=False)
    above.set_title(title, loc="left")
    places = [HOP_S * (i + 0.5) for i in range(n)]
    for axes, (name, row) in zip(below, rows.items(), strict=True):
        axes.bar(places, row.detach().cpu().tolist(), width=HOP_S, color=CURVES[0])
        axes.set_ylabel(name)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelbottom=axes is below[-1])
    below[-1].set_xlabel("seconds")
    for axes in (above, *below):
        axes.axvline(places[centre], color=CURVES[1], linewidth=1.4)
    return figure


def segments(labels: Int[Tensor, " n"], names: Sequence[str]) -> list[tuple[int, int, str]]:
    """Stretches of equal labels as (first frame, frame behind the last, name).

    >>> segments(torch.tensor([0, 0, 2]), ["_", "a", "s"])
    [(0, 2, '_'), (2, 3, 's')]
    """
    numbers = labels.tolist()
    n = len(numbers)
    starts = [i for i in range(n) if i == 0 or numbers[i] != numbers[i - 1]]
    return [(i, j, names[numbers[i]]) for i, j in zip(starts, [*starts[1:], n], strict=True)]


def _sheet(heights: Sequence[float], *, width: float) -> tuple[Figure, list[Axes]]:
    """Axes one above the other that share their time axis; heights in inches."""
    options = {"sharex": True, "height_ratios": heights}
    figure, grid = canvas(len(heights), 1, width=width, height=0.75 + sum(heights), **options)
    figure.get_layout_engine().set(hspace=0.02, h_pad=0.02)
    return figure, list(grid[:, 0])


def _spectrogram(axes: Axes, frames: Tensor) -> None:
    n, bands = frames.shape
    low, high = torch.quantile(
        frames.flatten()[:1_000_000], torch.tensor([0.02, 0.995], device="cpu")
    ).tolist()
    style = {
        "origin": "lower",
        "aspect": "auto",
        "extent": (0, HOP_S * n, 0, bands),
        "interpolation": "nearest",
    }
    axes.imshow(frames.T.cpu().numpy(), cmap=HEAT, vmin=low, vmax=max(high, low + 1e-6), **style)
    axes.set_ylabel("band of pitch")
    axes.set_xlabel("seconds")
    axes.set_yticks(range(0, bands + 1, 20))


def _phonemes(axes: Axes, stretches: Sequence[tuple[int, int, str]], name: str = "") -> None:
    """Names of stretches over time, on the first of three levels on which there is room; the bounds as thin
    lines."""
    axes.spines[:].set_visible(False)
    axes.set(yticks=[], ylim=(0, 3))
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    total = stretches[-1][1]
    free = [-math.inf] * 3  # the frame from which on each level is free
    for start, stop, text in stretches:
        axes.axvline(HOP_S * start, color="0.8", linewidth=0.6, zorder=0)
        middle, half = (start + stop) / 2, (0.012 + 0.011 * len(text)) / 2 * total
        level = next((k for k in (1, 2, 0) if free[k] <= middle - half), None)
        if text != "_" and level is not None:
            style = {"ha": "center", "va": "center", "fontsize": 9}
            axes.text(HOP_S * middle, level + 0.5, text, **style)
            free[level] = middle + half
    if name:
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
