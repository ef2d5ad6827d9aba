"""Figures of part 06e: what positions are worth, what a temperature does, how far a prompt reaches."""

from collections.abc import Mapping, Sequence
from statistics import median

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.charts.basic import bars, lines
from lesson_lib.charts.picture import Picture, canvas, color, figure
from lesson_lib.experiments import results


def stored_bits() -> Picture:
    """Of the stored experiments "placed", the median of three seeds, and "gpt"."""
    rows, more = results("placed")["rows"], results("gpt")["rows"]
    bits_of = {
        name: median(row["bits"] for row in rows if row["kind"] == kind)
        for kind, name in {
            "none": "causal mask\nalone",
            "learned": "learned\ntable",
            "rotary": "rotary",
        }.items()
    }
    (bits_of["5-gram\ncount"],) = [row["bits"] for row in more if row["kind"] == "n-gram" and row["n"] == 5]
    (bits_of["long GPT,\nrotary"],) = [
        row["bits"] for row in more if row.get("size") == "long" and row["kind"] == "trained"
    ]
    return bars(
        bits_of,
        kinds=1,
        y_axis="bits per character",
        limits=(0, 4),
        alt=(
            "Bars of bits per character: by far the highest without positions, then the learned table; rotary"
            " and the 5-gram count are lower and alike, the long GPT is the lowest."
        ),
        caption="Stored runs, test topics; lower is better.",
    )


@figure(
    "Bars of the likeliest characters under three temperatures: the same order in each, steep at the low"
    " temperature, nearly even at the high one.",
    "The same logits three times.",
)
def temperatures(characters: Sequence[str], shares: Mapping[float, Tensor], most: int = 8) -> Figure:
    """{temperature: probabilities (characters,)}; titles give the entropy, and the first one the order."""
    figure, grid = canvas(1, len(shares), width=7.4, height=2.8, sharey=True)
    first = next(iter(shares.values()))
    best = first.argsort(descending=True)[:most].tolist()
    for axes, (temperature, p) in zip(grid[0], shares.items(), strict=True):
        axes.bar(range(most), p[best].tolist(), color=color(0), width=0.7)
        axes.set_xticks(range(most), [characters[i].replace("\n", "⏎").replace(" ", "␣") for i in best])
        axes.set_title(f"temperature {temperature:g}: {entropy(p):.1f} bits", loc="left", fontsize=9.5)
    grid[0][0].set_ylabel("probability")
    return figure


def entropy(p: Tensor) -> float:
    """The mean surprise in bits, -sum p log2 p, of a draw with these probabilities.

    >>> entropy(torch.tensor([0.5, 0.25, 0.25, 0.0]))
    1.5
    """
    p = p.double()
    return -torch.xlogy(p, p).sum().item() / torch.tensor(2.0, dtype=torch.float64).log().item()


def prompts(lengths: Sequence[int], bits: Sequence[float]) -> Picture:
    """Bits for each length of the prompt."""
    return lines(
        {"bits of the next character": {"GPT": (list(lengths), list(bits))}},
        log="x",
        height=2.8,
        x_axis="characters of prompt",
        y_limits=(0, None),
        alt=(
            "Bits over the length of the prompt, on a logarithmic axis: a steep fall up to eight characters,"
            " then hardly any."
        ),
        caption="Test topics, the same characters each time.",
    )
