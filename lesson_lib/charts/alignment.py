"""The figures of translation: where a decoder looked, and how many texts are right over their number and
length."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from lesson_lib.charts.basic import draw_table, lines
from lesson_lib.charts.picture import Picture, canvas, color, styled, trim

# xs, and the lowest, median and highest value over the seeds
Spread = tuple[Sequence[Any], Sequence[Any], Sequence[Any], Sequence[Any]]
LARGEST = 120  # characters of input or output that are still legible


@styled
def alignment_map(weights: Tensor, source: str, target: str, *, caption: str = "", alt: str = "") -> Picture:
    """A row of weights for each output character over the characters of the input; a space is written ␣.

    Raises ValueError where `weights` is not (output characters, input characters), and for more than 120
    characters, TypeError where source or target is no text.
    """
    for name, text in (("source", source), ("target", target)):
        if not isinstance(text, str):
            raise TypeError(
                f"{name} must be a text, got {type(text).__name__}; a character per row or column"
            )
    shape = (len(target), len(source))
    if not isinstance(weights, Tensor) or tuple(weights.shape) != shape or 0 in shape:
        got = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise ValueError(
            f"weights must have a row per output and a column per input character, {shape}, got {got}"
        )
    if max(shape) > LARGEST:
        raise ValueError(
            f"at most {LARGEST} characters can be drawn, got {shape}; cut the text and the weights"
        )
    wide, high = min(0.25, 6.8 / len(source)), max(0.11, min(0.25, 6.8 / len(source)))  # inches of a cell
    across = max(1.0, wide * len(source))
    figure, grid = canvas(width=across + 1.2, height=max(1.0, high * len(target)) + 0.8)
    axes = grid[0][0]
    table = weights.detach().to("cpu").double()
    image = draw_table(axes, table, low=0.0, high=1.0, decimals=None)
    axes.set_xticks(range(len(source)), visible(source))
    axes.set_yticks(range(len(target)), visible(target))
    axes.set_aspect("auto")
    axes.tick_params(length=0, labelsize=max(5.5, min(10.0, 60 * wide)), pad=2)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("input")
    axes.set_ylabel("output")
    beside = axes.inset_axes([1 + 0.1 / across, 0, 0.15 / across, 1])
    figure.colorbar(image, cax=beside, label="weight")
    trim(figure)
    alt = alt or (
        "Weights of a translation, a row for each output character and a column for each input character:"
        " most rows have one or a few bright cells."
    )
    return Picture(figure, alt, caption)


def visible(text: str) -> list[str]:
    """The characters of a text, each space as ␣.

    >>> visible("3. m")
    ['3', '.', '␣', 'm']
    """
    return ["␣" if character == " " else character for character in text]


def right_over_dates(curves: Mapping[str, Spread], *, caption: str) -> Picture:
    """Share of right texts over the number of dates in a row, a curve per system with its band from lowest to
    highest seed."""
    picture = lines(
        {"texts without a wrong character": curves},
        alt=(
            "Share of right texts over one, two and three dates in a row, a curve for each system and number"
            " of training steps; the curves with attention stay high, those with a fixed vector fall."
        ),
        caption=caption,
        x_axis="dates in a row",
        y_limits=(-0.03, 1.05),
        height=4.4,
    )
    axes = picture.figure.axes[0]
    for i, (xs, low, _, high) in enumerate(curves.values()):
        if len(xs) == 1:  # too few for a band
            axes.plot([xs[0], xs[0]], [low[0], high[0]], color=color(i), alpha=0.4, linewidth=6, zorder=1)
    axes.set_xticks(sorted({x for xs, *_ in curves.values() for x in xs}))
    return picture


def right_over_length(panels: Mapping[int, Mapping[str, Spread]], *, caption: str) -> Picture:
    """Share of right texts over the length of the input, a panel for each number of dates in a row, a curve
    per system."""
    titles = {
        f"right, {count} date{'s' if count > 1 else ''} in a row": panel for count, panel in panels.items()
    }
    return lines(
        titles,
        alt=(
            "Share of right texts over the length of the input in characters, a panel for each number of"
            " dates in a row and a curve for each system."
        ),
        caption=caption,
        x_axis="characters of the input",
        y_limits=(-0.03, 1.05),
        height=3.2,
    )
