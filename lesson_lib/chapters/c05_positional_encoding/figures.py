"""The figures of chapter 05, positions."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding.experiments import order
from lesson_lib.charts.basic import bars, draw_table, heatmap, lines
from lesson_lib.charts.picture import HEAT, Picture, bare, canvas, figure, styled, trim
from lesson_lib.experiments import results

PANELS = {
    "right answers: codes added to tokens": ("none", "learned", "sinusoidal"),
    "right answers: positions in the scores": ("none", "shaw", "rotary", "alibi"),
}
NAMES = {"shaw": "Shaw", "alibi": "ALiBi"}


def by_position(shares: Tensor, *, trained: int = 32, first: int = 3) -> Picture:
    """Shares (positions,); `first` is the position of the first one, `trained` the length of training."""
    guess = 1 / order.RECIPE["symbols"]
    numbers = list(range(first, first + len(shares)))
    return lines(
        {
            "right answers": {
                "learned table": (numbers, shares.tolist()),
                "last position trained": ([trained - 1, trained - 1], [0.0, 1.0]),
                "guess": ([numbers[0], numbers[-1]], [guess, guess]),
            }
        },
        alt=(
            "Accuracy at each position of a test of 128 tokens: 1 up to the last position that was trained;"
            " from there on it stays near the line of a guess."
        ),
        caption="One test of 128 tokens, position by position.",
        x_axis="position of the token",
        y_limits=(0, 1.04),
        points=False,
        height=3.2,
    )


@figure(
    "Two tables of three rows. The first row of one is the last row of the other, and the rows in"
    " the middle are the same.",
    "A row is the output of one word.",
)
def two_sentences(first: Tensor, second: Tensor, words: Sequence[str]) -> Figure:
    """Outputs (n, d); the second sentence has the words the other way round."""
    figure, grid = canvas(1, 2, width=7.6, height=1.6)
    low, high = first.min().item(), first.max().item()
    for axes, table, names in zip(grid[0], (first, second), (words, words[::-1]), strict=True):
        image = draw_table(axes, table.detach(), low=low, high=high, decimals=None)
        axes.set_yticks(range(len(names)), names)
        axes.set(title=" ".join(names), xticks=[], xlabel="the numbers of an output")
    figure.colorbar(image, ax=grid, label="value", shrink=0.9)
    trim(figure)
    return figure


@figure(
    "A handwritten digit of 8 by 8 pixels, and twice its dark pixels as points joined in the order"
    " of a list: once row by row, once criss-cross.",
    "Both lists hold the same points; the grey line follows the order.",
)
def as_lists(picture: Tensor, in_order: Tensor, shuffled: Tensor) -> Figure:
    """A digit (8, 8), and its points (n, 3) in two orders."""
    figure, grid = canvas(1, 3, width=7.4, height=2.6)
    left, *others = grid[0]
    left.imshow(1 - picture.cpu(), cmap="gray", vmin=0, vmax=1)
    left.set_title("a picture")
    bare(left)
    for axes, (title, points) in zip(
        others, {"a list, row by row": in_order, "the same list, shuffled": shuffled}.items(), strict=True
    ):
        x, y, _ = points.cpu().T
        axes.plot(x, y, color="0.75", linewidth=0.8, zorder=1)
        dots = axes.scatter(x, y, c=range(len(points)), cmap=HEAT, s=42, edgecolor="black", linewidth=0.5)
        axes.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(1.15, -1.15), title=title)
        axes.set(xticks=[], yticks=[])
    figure.colorbar(dots, ax=others, label="position in the list", shrink=0.8)
    return figure


def stored_three_back(*, codes: bool = True) -> Picture:
    """Of the stored experiment "order", at the length of training; with or without the runs that have
    codes."""
    rows = results("order")["rows"]
    steps = order.RECIPE["steps"]
    return bars(
        {
            f"{name},\n{count:,} steps": order.by_length(rows, count)[kind][2][0]
            for kind, name in {"none": "as it is", "sinusoidal": "codes added"}.items()
            for count in steps
            if codes or kind == "none"
        },
        kinds=2,
        y_axis="right answers",
        marks={"guess": 1 / order.RECIPE["symbols"]},
        limits=(0, 1.1),
        alt=(
            "Shares of right answers. As it is, the two bars, for short and long training, are equally low"
            + ("; with codes both are close to 1." if codes else ".")
        ),
        caption="Stored runs, the median of three seeds: name the symbol three positions back.",
    )


def table(codes: Tensor) -> Picture:
    """Codes (n, d)."""
    return heatmap(
        codes,
        numbers=False,
        limits=(-1, 1),
        row_axis="position i",
        column_axis="column: sine, cosine, sine, cosine …",
        color_axis="p[i, column]",
        alt=(
            "Heat map of the sinusoidal codes: the left columns change from row to row, columns further right"
            " ever more slowly, the last ones not visibly."
        ),
        caption=("One row per position. Columns come in pairs; pairs further right turn more slowly."),
    )


def waves(codes: Tensor, pairs: Sequence[int]) -> Picture:
    """Codes (n, d); `pairs` are the indices of pairs of columns."""
    xs = list(range(len(codes)))
    return lines(
        {
            f"pair {j}": {
                "sine, column 2j": (xs, codes[:, 2 * j].tolist()),
                "cosine, column 2j + 1": (xs, codes[:, 2 * j + 1].tolist()),
            }
            for j in pairs
        },
        alt=(
            "Pairs of columns over the positions: in each panel a sine and a cosine of the same wavelength,"
            " longer from panel to panel."
        ),
        caption="Two columns of a pair are one wave, a quarter of a wavelength apart.",
        x_axis="position i",
        points=False,
        height=2.6,
    )


def counters(codes: Mapping[str, Sequence[int]], bits: Sequence[int]) -> Picture:
    """{name: sign changes of each pair}, and the flips of each bit, from fastest to slowest."""
    panels = {
        "sign changes in 1,000 rows": {
            name: (list(range(len(counts))), list(counts)) for name, counts in codes.items()
        },
        "flips in counting to 1,000": {"bits of a counter": (list(range(len(bits))), list(bits))},
    }
    return lines(
        panels,
        alt=(
            "Left, sign changes of sine and cosine columns over the pair's index; right, flips of a counter's"
            " bits: both fall by a constant factor from one to the next."
        ),
        caption=(
            "On a log scale both are straight lines until the counts come down to 1: each pair is slower than"
            " the one before by the same factor, as each bit is."
        ),
        x_axis="index of the pair, or of the bit",
        log="y",
        height=3.0,
    )


def products(by_pair: Tensor) -> Picture:
    """Of all pairs of codes (n, n)."""
    return heatmap(
        by_pair,
        numbers=False,
        row_axis="position i",
        column_axis="position j",
        color_axis="p_i · p_j",
        alt=(
            "Heat map of the dot products of all positions: bright along the diagonal, and constant along"
            " each line parallel to it."
        ),
        caption=(
            "Every line parallel to the diagonal has one colour: the product depends on i − j alone. And it"
            " is its own mirror image."
        ),
    )


SEEN = {  # what a table of p M p^T shows, by the matrix in between
    "nothing": "brightest on the main diagonal, one value along each diagonal",
    "R(3)": "brightest three columns left of the main diagonal, one value along each diagonal",
    "random": "no two numbers of a diagonal alike",
}


@styled
def in_between(tables: Mapping[str, Tensor]) -> Picture:
    """{what stands in between, of SEEN: p M pᵀ (n, n)}."""
    figure, grid = canvas(1, len(tables), width=0.8 + 2.4 * len(tables), height=2.5)
    for axes, (name, table) in zip(grid[0], tables.items(), strict=True):
        draw_table(axes, table, low=table.min().item(), high=table.max().item(), decimals=None)
        axes.set(title=name, xlabel="position j")
        axes.set_xticks([0, 10, len(table) - 1])
        axes.set_yticks([0, 10, len(table) - 1])
    grid[0][0].set_ylabel("position i")
    trim(figure)
    alt = "; ".join(f"{name} in between: {SEEN[name]}" for name in tables)
    return Picture(figure, alt=f"Scores of positions with positions. {alt}.", caption="Bright is large.")


def equal_words(tables: Mapping[str, Tensor]) -> Picture:
    """{name: scores (n, n)}."""
    return heatmap(
        tables,
        numbers=False,
        row_axis="position i",
        column_axis="position j",
        color_axis="score",
        alt=(
            "Two tables of scores of equal words: with rotary positions every diagonal has one colour; with"
            " codes that are added the colours change along the diagonals."
        ),
    )


@figure(
    "Six tables of scores. Without positions it has one colour. Sinusoidal and learned codes give"
    " patches and stripes along rows and columns. Shaw, ALiBi and rotary give stripes along the"
    " diagonals: Shaw's narrow near the main diagonal, ALiBi's a ridge, rotary waves.",
    "Equal words, random weights; bright is large.",
)
def score_tables(tables: Mapping[str, Tensor]) -> Figure:
    """{name: scores (n, n)}, six of them."""
    figure, grid = canvas(2, 3, width=7.0, height=5.0)
    for axes, (name, table) in zip(grid.flat, tables.items(), strict=True):
        table = table.detach()
        draw_table(axes, table, low=table.min().item(), high=table.max().item(), decimals=None)
        axes.set(title=name, xticks=[0, len(table) - 1], yticks=[0, len(table) - 1])
    for row in grid:
        row[0].set_ylabel("query at position i")
    for axes in grid[-1]:
        axes.set_xlabel("key at position j")
    trim(figure)
    return figure


def stored_lengths() -> Picture:
    """Of the stored experiment "order", without causal masks: a panel for added codes, one for scores."""
    curves = order.by_length(results("order")["rows"], order.RECIPE["steps"][0])
    lengths = order.RECIPE["lengths"]
    return lines(
        {title: {NAMES.get(kind, kind): curves[kind] for kind in kinds} for title, kinds in PANELS.items()},
        dots={"guess": (lengths, [1 / order.RECIPE["symbols"]] * len(lengths))},
        alt=(
            "Right answers over test length, from 32 to 128 tokens, in two panels. Codes that are added:"
            " learned and sinusoidal start at 1 and fall to 0.28 and 0.52. Positions in the scores: Shaw"
            " stays at 1, rotary falls to 0.80, ALiBi lies near 0.2 throughout, and no positions below it."
        ),
        caption="Stored runs, trained at 32 tokens: median of three seeds, band from lowest to highest.",
        x_axis="tokens in the test",
        log="x",
        y_limits=(0, 1.04),
        height=3.4,
    )
