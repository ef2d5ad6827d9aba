"""The figures of chapter 05, positions."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding.experiments import order, stretch
from lesson_lib.charts.basic import bars, draw_table, heatmap, lines
from lesson_lib.charts.picture import HEAT, Picture, bare, canvas, figure, trim
from lesson_lib.experiments import results
from lesson_lib.positions import sinusoidal

PANELS = {
    "right answers: codes added to tokens": ("none", "learned", "sinusoidal", "floater"),
    "right answers: positions in the scores": ("none", "shaw", "rotary", "alibi"),
}
NAMES = {"shaw": "Shaw", "floater": "FLOATER", "alibi": "ALiBi"}


def extrapolation(rows_by_kind: Mapping[str, Sequence], *, chance: float = 1 / 16) -> Picture:
    """{kind: (lengths, lowest, median, highest)}, as `order.by_length` gives it. Kinds without positions are
    drawn in both panels; up to 6 are easy to tell apart."""
    panels = {title: {} for title in PANELS}
    for kind, curve in rows_by_kind.items():
        name, comma, mask = kind.partition(", ")
        titles = [title for title, kinds in PANELS.items() if name in kinds]
        for title in titles:
            panels[title][NAMES.get(name, name) + comma + mask] = curve
    lengths = sorted({length for lengths, *_ in rows_by_kind.values() for length in lengths})
    return lines(
        {title: curves for title, curves in panels.items() if curves},
        dots={"chance": (lengths, [chance] * len(lengths))},
        alt=(
            "Accuracy over test length, a panel for each place at which positions enter: all codes that are"
            " added to the tokens fall towards chance beyond the length of training, while Shaw's and rotary"
            " positions stay high."
        ),
        caption=("Stored runs, trained at 32 tokens: median of three seeds, band from lowest to highest."),
        x_axis="tokens in the test",
        log="x",
        y_limits=(0, 1.04),
        height=3.4,
    )


def by_position(shares: Tensor, *, trained: int = 32, first: int = 3) -> Picture:
    """Shares (positions,); `first` is the position of the first one, `trained` the length of training."""
    guess = 1 / order.RECIPE["symbols"]
    numbers = list(range(first, first + len(shares)))
    return lines(
        {
            "right answers": {
                "learned table": (numbers, shares.tolist()),
                "last place trained": ([trained - 1, trained - 1], [0.0, 1.0]),
                "guess": ([numbers[0], numbers[-1]], [guess, guess]),
            }
        },
        alt=(
            "Accuracy at each place of a test of 128 tokens: 1 up to the last place that was trained; from"
            " there on it stays near the line of a guess."
        ),
        caption="One test of 128 tokens, place by place.",
        x_axis="place of the token",
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
    figure.colorbar(dots, ax=others, label="place in the list", shrink=0.8)
    return figure


def point_accuracy(shares: Mapping[str, Sequence[float]]) -> Picture:
    """{reader: (share in order, share shuffled)}."""
    return bars(
        {
            f"{name},\n{given}": share
            for name, pair in shares.items()
            for given, share in zip(("in order", "shuffled"), pair, strict=True)
        },
        kinds=2,
        y_axis="right digits",
        marks={"guess": 0.1},
        limits=(0, 1.1),
        alt="Right digits, lists in order beside lists shuffled: without codes the two bars are equal"
        + (", with codes the second is about half as high." if "codes" in shares else "."),
        caption="300 digits of the test set.",
    )


def stored_three_back() -> Picture:
    """Of the stored experiment "order", at the length of training."""
    rows = results("order")["rows"]
    steps = order.RECIPE["steps"]
    return bars(
        {
            f"{name},\n{count:,} steps": order.by_length(rows, count)[kind][2][0]
            for kind, name in {"none": "no codes", "sinusoidal": "codes added"}.items()
            for count in steps
        },
        kinds=2,
        y_axis="right answers",
        marks={"guess": 1 / order.RECIPE["symbols"]},
        limits=(0, 1.1),
        alt=(
            "Shares of right answers. Without codes the two bars, for short and for long training, are"
            " equally low; with codes both are close to 1."
        ),
        caption="Stored runs, the median of three seeds: name the symbol three places back.",
    )


def nearness_by_base(bases: Sequence[float], n: int = 1001, d: int = 512) -> Picture:
    """Sinusoidal codes of `n` places and width `d`; a product is divided by d / 2."""
    numbers = list(range(1, n))
    curves = {}
    for base in bases:
        codes = sinusoidal(n, d, base=base, dtype=torch.float64)
        curves[f"base {base:,}"] = (numbers, ((codes @ codes[0]) / (d / 2))[1:].tolist())
    return lines(
        {"p_0 · p_i, as a share of p_0 · p_0": curves},
        log="x",
        points=False,
        height=3.2,
        x_axis="place i",
        alt=(
            "Likeness of place 0 and place i over i, on a logarithmic axis. With base 10 the curve is down"
            " at 0 after some tens of tokens and only wobbles from there; with base 10,000 it falls slowly"
            " all the way."
        ),
        caption="1 means the same code, 0 a code at a right angle.",
    )


@figure(
    "Four tables of three rows and three columns, side by side: the scores of word with word, word"
    " with place, place with word, and place with place."
)
def four_terms(tables: Mapping[str, Tensor], words: Sequence[str]) -> Figure:
    """Tables (n, n), called "one with another" of word and place."""
    figure, grid = canvas(1, len(tables), width=7.8, height=2.2)
    low = min(table.min().item() for table in tables.values())
    high = max(table.max().item() for table in tables.values())
    names = {"word": list(words), "place": list(range(len(words)))}
    for axes, (title, table) in zip(grid[0], tables.items(), strict=True):
        draw_table(axes, table, low=low, high=high, decimals=1)
        query, _, key = title.partition(" with ")
        axes.set(title=title, ylabel=f"query: {query}", xlabel=f"key: {key}")
        axes.set_yticks(range(len(words)), names[query])
        axes.set_xticks(range(len(words)), names[key])
    trim(figure)
    return figure


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


@figure(
    "Four tables of places against places. Three have the same value along each diagonal: brightest"
    " on the main diagonal; dark on one side of it and bright on the other; brightest beside it."
    " The fourth has no such stripes.",
    "Bright is large. Only the last table has no stripes along its diagonals.",
)
def in_between(tables: Mapping[str, Tensor]) -> Figure:
    """{name: p M pᵀ (n, n)}."""
    figure, grid = canvas(1, len(tables), width=7.8, height=2.3)
    for axes, (name, table) in zip(grid[0], tables.items(), strict=True):
        draw_table(axes, table, low=table.min().item(), high=table.max().item(), decimals=None)
        axes.set(title=name, xlabel="place j")
        axes.set_xticks([0, 10, len(table) - 1])
        axes.set_yticks([0, 10, len(table) - 1])
    grid[0][0].set_ylabel("place i")
    trim(figure)
    return figure


def equal_words(tables: Mapping[str, Tensor]) -> Picture:
    """{name: scores (n, n)}."""
    return heatmap(
        tables,
        numbers=False,
        row_axis="place i",
        column_axis="place j",
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
        row[0].set_ylabel("query at place i")
    for axes in grid[-1]:
        axes.set_xlabel("key at place j")
    trim(figure)
    return figure


def stored_lengths() -> Picture:
    """`extrapolation` of the stored experiment "order", without causal masks."""
    curves = order.by_length(results("order")["rows"], order.RECIPE["steps"][0])
    return extrapolation({kind: curve for kind, curve in curves.items() if "causal" not in kind})


def squeezed_three_back() -> Picture:
    """Of the stored experiment "stretch"."""
    curves = stretch.by_length(results("stretch")["rows"], "three back")
    return lines(
        {"three back": {way: curves[way] for way in ("as trained", "interpolated")}},
        log="x",
        y_limits=(0, 1.04),
        x_axis="tokens in the test",
        height=3.0,
        alt=(
            "Right answers over test length: as trained the curve stays high up to 64 tokens and then falls;"
            " interpolated it falls to a guess as soon as places are squeezed."
        ),
        caption="Stored runs: median of three seeds, band from lowest to highest.",
    )


def stored_stretch() -> Picture:
    """Of the stored experiment "stretch"."""
    rows = results("stretch")["rows"]
    return lines(
        {task: stretch.by_length(rows, task) for task in stretch.RECIPE["tasks"]},
        log="x",
        y_limits=(0, 1.04),
        x_axis="tokens in the test",
        height=3.4,
        alt=(
            "Right answers over test length, two panels. Three back: as trained, and with a larger base, the"
            " curves fall slowly; by parts lies lower, and interpolated is at the bottom. The latest wins: as"
            " trained is lowest and falls; interpolated and by parts stay close to 1."
        ),
        caption="Stored runs: median of three seeds, band from lowest to highest.",
    )


def live_stretch(shares: Mapping[str, Sequence[float]]) -> Picture:
    """{way: share for each length of `stretch.RECIPE`}."""
    lengths = stretch.RECIPE["lengths"]
    return lines(
        {"right answers": {way: (lengths, values) for way, values in shares.items()}},
        log="x",
        y_limits=(0, 1.04),
        x_axis="tokens in the test",
        height=3.0,
        alt=(
            "Right answers over test length: as trained the curve falls below one half; interpolated it stays"
            " close to 1."
        ),
        caption="The latest wins, trained here at 32 tokens.",
    )
