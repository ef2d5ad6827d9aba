"""Figures of part 06e: what positions are worth, what a temperature does, how far a prompt reaches."""

from collections.abc import Mapping, Sequence

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


def prompts(bits: Tensor) -> Picture:
    """Bits at each position (n,), beside the stored counts of the experiment "gpt"."""
    ends = [1 << i for i in range(len(bits).bit_length())]  # means of positions after 1, 2, 3-4, 5-8 ...
    means = [bits[end // 2 : end].mean().item() for end in ends]
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
        caption="Test topics. GPT: means over 1, 2, 3 to 4, 5 to 8 characters, and so on; count: stored.",
    )
