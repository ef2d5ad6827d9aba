"""Figures of part 06e: what positions are worth, what a temperature does, how far a prompt reaches."""

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import bars, lines
from lesson_lib.charts.picture import Picture, canvas, color, figure
from lesson_lib.experiments import results


def stored_bits() -> Picture:
    """Of the stored experiments "placed", the median of three seeds, and "gpt"."""
    rows = results("gpt")["rows"]
    counts = {row["n"]: row["bits"] for row in rows if row["kind"] == "n-gram"}
    (long,) = (row["bits"] for row in rows if row.get("size") == "long" and row["kind"] == "trained")
    short = median(row["bits"] for row in results("placed")["rows"] if row["kind"] == "rotary")
    return bars(
        {
            "count, last\ncharacter": counts[2],
            "5-gram\ncount": counts[5],
            "our GPT,\n2,600 steps": short,
            "long\nGPT": long,
        },
        kinds=1,
        y_axis="bits per character",
        limits=(0, 4.4),
        alt=(
            "Bars of bits per character: by far the highest for the count of the last character; the 5-gram"
            " count and our GPT are lower and alike; the long GPT is the lowest."
        ),
        caption="Stored runs, test topics; lower is better.",
    )


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


def prompts(lengths: Sequence[int], bits: Sequence[float]) -> Picture:
    """Bits for each length of the prompt, beside the stored counts of the experiment "gpt"."""
    counted = sorted((row["n"] - 1, row["bits"]) for row in results("gpt")["rows"] if row["kind"] == "n-gram")
    seen, paid = zip(*counted[1:], strict=True)  # without the count of single characters, which sees none
    return lines(
        {
            "bits of the next character": {
                "GPT": (list(lengths), list(bits)),
                "count": (list(seen), list(paid)),
            }
        },
        log="x",
        height=2.8,
        x_axis="characters of prompt",
        y_limits=(0, None),
        alt=(
            "Bits over the length of the prompt, on a logarithmic axis. The GPT's curve falls steeply up to"
            " eight characters and then hardly any more; the count's, which ends at seven, lies below it."
        ),
        caption="Test topics. GPT: the same characters each time; count: stored run.",
    )
