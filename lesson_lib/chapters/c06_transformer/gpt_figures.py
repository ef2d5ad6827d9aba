"""Figures of part 06e: what positions are worth, what a temperature does, how far a prompt reaches."""

from collections.abc import Mapping, Sequence
from math import log

from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import lines
from lesson_lib.charts.picture import Picture, canvas, color, figure
from lesson_lib.experiments import results


@figure(
    "Bars of the likeliest characters under three temperatures: the same order in each, steep at the low"
    " temperature, nearly even at the high one.",
    "The same logits three times.",
)
def temperatures(characters: Sequence[str], shares: Mapping[float, Tensor], most: int = 8) -> Figure:
    """{temperature: probabilities (characters,)}; the first one gives the order."""
    figure, grid = canvas(1, len(shares), width=7.4, height=2.8, sharey=True)
    first = next(iter(shares.values()))
    best = first.argsort(descending=True)[:most].tolist()
    for axes, (temperature, p) in zip(grid[0], shares.items(), strict=True):
        axes.bar(range(most), p[best].tolist(), color=color(0), width=0.7)
        axes.set_xticks(range(most), [characters[i].replace("\n", "⏎").replace(" ", "␣") for i in best])
        axes.set_title(f"temperature {temperature:g}", loc="left", fontsize=9.5)
    grid[0][0].set_ylabel("probability")
    return figure


def training(rows: Sequence[Mapping]) -> Picture:
    """Of the rows of a History."""
    curve = [row["step"] for row in rows], [row["loss"] / log(2) for row in rows]
    return lines(
        {"bits of a character": {"training text": curve}},
        height=2.6,
        x_axis="step",
        y_limits=(0, None),
        alt="Bits of a character over the steps: over four at first, then a fall that becomes slower.",
        caption="Each point is the mean of 180 steps.",
    )


def beyond(curves: Mapping[str, Tensor]) -> Picture:
    """{name: bits at each position (n,)}, in means of sixteen."""
    means = {name: bits.view(-1, 16).mean(1).tolist() for name, bits in curves.items()}
    return lines(
        {
            "bits of the next character": {
                name: (list(range(8, 16 * len(m), 16)), m) for name, m in means.items()
            }
        },
        height=2.8,
        x_axis="position",
        y_limits=(0, 7),
        alt=(
            "Bits over the position. With all keys the curve is flat up to about 100 and then rises steeply"
            " to over five; with the last 63 keys it stays flat to the end."
        ),
        caption="Test topics; each point is the mean of sixteen positions.",
    )


def prompts(bits: Tensor) -> Picture:
    """Bits at each position (n,), beside the stored counts of the experiment "gpt"."""
    parts = {n: bits[n - 1 : n] for n in range(1, 9)}  # after n characters; from 9 on means up to n
    parts |= {n: bits[n // 2 : n] for n in (16, 32, 64) if n // 2 < len(bits)}
    ends, means = list(parts), [part.mean().item() for part in parts.values()]
    counted = sorted((row["n"] - 1, row["bits"]) for row in results("gpt")["rows"] if row["kind"] == "n-gram")
    seen, paid = zip(*counted[1:], strict=True)  # without the count of single characters, which sees none
    return lines(
        {"bits of the next character": {"GPT": (ends, means), "count": (list(seen), list(paid))}},
        log="x",
        height=2.8,
        x_axis="characters before it, at most",
        y_limits=(0, None),
        alt=(
            "Bits over the number of characters before, on a logarithmic axis. The GPT's curve falls steeply"
            " up to eight characters and is nearly flat after that; the count's, which ends at seven, lies"
            " below it."
        ),
        caption="Test topics. GPT: after 1 to 8 characters, then means up to 16, 32, 63; count: stored.",
    )
