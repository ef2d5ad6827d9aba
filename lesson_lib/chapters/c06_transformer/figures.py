"""The figures of lesson 06, the Transformer. The machine itself is drawn in machine_figures.py."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from lesson_lib import summary
from lesson_lib.charts.basic import draw_groups, draw_table, lines
from lesson_lib.charts.picture import Picture, canvas, color, figure, styled


@figure(
    "Two tables of nine tokens by six columns, coloured by group: on the left every row has a colour of"
    " its own, on the right every column has.",
    "Numbers of one colour share a mean and a variance. LayerNorm: the numbers of one token. BatchNorm:"
    " one column, over all tokens of all sentences.",
)
def who_shares_a_mean(sentences: int = 3, tokens: int = 3, d_model: int = 6) -> Figure:
    """Of a batch of so many sentences of so many tokens."""
    rows = torch.arange(sentences * tokens, device="cpu").float()[:, None].expand(-1, d_model)
    columns = torch.arange(d_model, device="cpu").float().expand(sentences * tokens, -1)
    names = [f"sentence {s}, token {t}" for s in range(sentences) for t in range(tokens)]
    figure, grid = canvas(1, 2, width=7.2, height=3.2)
    for axes, title, table in zip(grid[0], ("LayerNorm", "BatchNorm"), (rows, columns), strict=True):
        draw_table(axes, table, low=0.0, high=table.max().item(), decimals=None)
        axes.set_title(title)
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks(range(d_model))
        axes.set_xlabel("the d_model numbers of a token")
    return figure


def company(sizes: Sequence[int], spread: Sequence[float]) -> Picture:
    """Standard deviation of the output for each size; the line is through the last point."""
    last = [spread[-1] * (sizes[-1] / size) ** 0.5 for size in sizes]
    return lines(
        {
            "spread of one sentence's output": {
                "BatchNorm": (sizes, spread),
                "∝ 1 / √(batch size)": (sizes, last),
            }
        },
        alt=(
            "Spread of BatchNorm's output over batch size, both logarithmic: it falls, and from 16 sentences"
            " on along the line of one over the root of the batch size."
        ),
        caption=(
            "One sentence in 300 random batches of each size, in training mode. LayerNorm's spread is 0 and"
            " has no place on this axis."
        ),
        x_axis="sentences in the batch",
        log="xy",
        height=3.2,
    )


def by_depth(accuracy: Mapping[tuple, Sequence[float]]) -> Picture:
    """As `norms.best(rows, "depth", ("norm_first", "rise", "layers"))` gives it."""
    panels: dict[str, dict] = {"with warm-up": {}, "without warm-up": {}}
    for norm_first, rise in sorted({key[:2] for key in accuracy}):
        seeds = {key[2]: values for key, values in accuracy.items() if key[:2] == (norm_first, rise)}
        panel = panels["with warm-up" if rise else "without warm-up"]
        panel["pre-norm" if norm_first else "post-norm"] = summary.band(seeds)
    return lines(
        panels,
        alt=(
            "Accuracy over the number of layers, a panel with and one without warm-up: pre-norm loses a"
            " little with depth, post-norm everything."
        ),
        caption=(
            "Stored run, 400 steps; each point at the learning rate that is best on its validation sentences."
            " Middle of three seeds, band from lowest to highest."
        ),
        x_axis="layers",
        y_limits=(0.4, 1.02),
        height=3.2,
    )


def schedule(curves: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> Picture:
    """{name: (steps, rates)}."""
    return lines(
        {"learning rate": dict(curves)},
        alt=(
            "Learning rates that rise in a straight line and then fall slowly; a longer warm-up peaks later"
            " and lower."
        ),
        caption=(
            "The published schedule for d_model = 512. The peak stands where the two branches of the minimum"
            " meet."
        ),
        x_axis="step",
        points=False,
        height=3.0,
    )


def cost_of_writing(rows: Sequence[Mapping]) -> Picture:
    """Rows "speed" of the experiment "translation"."""
    xs = [row["characters"] for row in rows]
    curves = {"without a cache": (xs, [row["uncached_s"] for row in rows])}
    curves["with a cache"] = (xs, [row["cached_s"] for row in rows])
    return lines(
        {"seconds for 16 answers": curves},
        alt=(
            "Seconds over the number of characters, both logarithmic: without a cache the curve is steeper,"
            " and the gap widens with length."
        ),
        caption="Stored run, an untrained translator, one thread; the same characters both times.",
        x_axis="characters written",
        log="xy",
        height=3.0,
    )


def translations(curves: Mapping[str, Sequence]) -> Picture:
    """{what was trained on: (dates, lowest, median, highest)}."""
    return lines(
        {"texts without a wrong character": dict(curves)},
        alt=(
            "Share of right texts over the number of dates in a row: high for one date, lower for two and"
            " three although they were trained on, and nothing beyond what was trained on."
        ),
        caption=(
            "Stored run, three seeds, test days, greedy. Middle of the seeds, band from lowest to highest."
        ),
        x_axis="dates in a row",
        y_limits=(0, 1.05),
        height=3.2,
    )


@styled
def errors_by_language(rows: Sequence[Mapping]) -> Picture:
    """Rows "language" of the experiment "translation"; errors of all seeds are added up."""
    wrong: dict[str, list[int]] = {}
    for row in rows:
        wrong.setdefault(row["language"], []).append(row["wrong"])
    ordered = sorted(wrong, key=lambda name: -sum(wrong[name]))
    counts = [sum(wrong[name]) for name in ordered]
    figure, grid = canvas(width=7.2, height=3.0)
    axes = grid[0][0]
    axes.bar_label(axes.bar(ordered, counts, color=color(0), width=0.6), padding=2)
    axes.set_ylabel("wrong texts")
    axes.tick_params(axis="x", rotation=45)
    total = sum(row["texts"] for row in rows) // len(wrong)
    return Picture(
        figure,
        "Wrong texts for each of fifteen languages, sorted: a few languages have most of the errors.",
        f"Stored run, three seeds together: {total} texts a language, the same test days in all three"
        " styles.",
    )


def agreement(rows: Sequence[Mapping]) -> Picture:
    """Rows "trained" of the experiment "bert"."""
    names = {"model": "BERT", "left": "count of the left neighbour", "both": "count of both neighbours"}
    panels = {}
    for key, title in (
        ("by_attractors", "all test sentences"),
        ("misleading_by_attractors", "all nouns between mislead"),
    ):
        panels[title] = {name: by_attractors(rows, who, key) for who, name in names.items()}
    return lines(
        panels,
        alt=(
            "Verbs in the right number over the number of nouns between subject and verb: BERT stays near 1,"
            " the counts fall to a half, and below it where those nouns mislead."
        ),
        caption="Stored run, three seeds, test sentences. A coin gets 0.5.",
        x_axis="nouns between subject and verb",
        y_limits=(0, 1.05),
        height=3.2,
    )


def by_attractors(rows: Sequence[Mapping], who: str, key: str) -> summary.Band:
    """Shares over the number of attractors, from entries (number, sentences, share) of each seed's row."""
    shares: dict[int, list[float]] = {}
    for row in rows:
        for count, _, share in row["agreement"][who][key]:
            shares.setdefault(count, []).append(share)
    return summary.band(shares)


@figure(
    "Bars for each layer and head, a panel for each of three seeds: layer 2, head 1 is the tallest in all"
    " of them, near 1 in the first, about a half and a quarter in the others; the other heads are"
    " near 0.",
    "Stored run: test sentences with at least one noun between. Hatched: what the head's favourite"
    " distance alone would hit.",
)
def probe(rows: Sequence[Mapping]) -> Figure:
    """Rows "probe" of the experiment "bert", in which layers count from 0; here they count from 1."""
    figure, grid = canvas(1, 3, width=7.4, height=3.0)
    for seed, axes in enumerate(grid[0]):
        heads = [row for row in rows if row["seed"] == seed]
        names = [f"layer {row['layer'] + 1}\nhead {row['head']}" for row in heads]
        draw_groups(
            axes,
            {
                "its largest weight is on the subject": [row["largest"] for row in heads],
                "by distance alone": [row["offset"] for row in heads],
            },
        )
        axes.set_xticks(range(len(names)), names, fontsize=9)
        axes.set_ylim(0, 1.05)
        axes.set_title(f"seed {seed}", loc="left")
    grid[0][0].set_ylabel("share of sentences")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


@figure(
    "Bars for each head, each layer and the whole model, a panel for each of three seeds: how many verbs"
    " are still right when the subject is hidden there, from the gap or from every word.",
    "Stored run: sentences whose nouns between all mislead. Dashed: nothing hidden. Everything but that"
    " one look is as it was.",
)
def interference(rows: Sequence[Mapping]) -> Figure:
    """Rows "interference" of the experiment "bert"; of their pairs the second number, misleading
    sentences."""
    figure, grid = canvas(1, 3, width=7.4, height=3.2)
    for seed, axes in enumerate(grid[0]):
        looks = [row for row in rows if row["seed"] == seed]
        names = [_place(row) for row in looks]
        draw_groups(
            axes,
            {
                "the gap may not see the subject there": [row["verb"][1] for row in looks],
                "no word may see the subject there": [row["all"][1] for row in looks],
            },
        )
        axes.axhline(looks[0]["before"][1], color="black", linestyle="--", linewidth=1)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=9)
        axes.set_ylim(0, 1.05)
        axes.set_title(f"seed {seed}", loc="left")
    grid[0][0].set_ylabel("verbs in the right number")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _place(row: Mapping) -> str:
    if row["layer"] is None:
        return "everywhere"
    return f"layer {row['layer'] + 1}" + ("" if row["head"] is None else f", head {row['head']}")


def bits(rows: Sequence[Mapping]) -> Picture:
    """Rows of the experiment "gpt"."""
    counted = sorted((row for row in rows if row["kind"] == "n-gram"), key=lambda row: row["n"])
    xs = [row["n"] for row in counted]
    curves = {"n-gram model": (xs, [row["bits"] for row in counted])}
    for size, name in (("short", "short GPT"), ("long", "long GPT")):
        seeds = [row["bits"] for row in rows if row["kind"] == "trained" and row["size"] == size]
        curves[name] = summary.band({xs[0]: seeds, xs[-1]: seeds})
    near = {name: ([max(x, 4) for x in at], *ys) for name, (at, *ys) in curves.items() if len(at) == 2}
    near["n-gram model"] = (xs[3:], curves["n-gram model"][1][3:])
    return lines(
        {
            "bits per character, test topics": curves,
            "the same, from n = 4 on": {name: near[name] for name in curves},
        },
        alt=(
            "Bits per character of n-gram models over n: they fall, then level off; two lines across show the"
            " GPTs. Enlarged on the right: the short GPT's line meets the curve at n = 5, the long one's lies"
            " below it."
        ),
        caption=(
            "Stored run. Lower is better. The short GPT is the lesson's, three seeds; the long one has one"
            " seed."
        ),
        x_axis="n: characters counted together",
        height=3.2,
    )


def cost_of_sampling(rows: Sequence[Mapping], size: str = "short") -> Picture:
    """Rows "cost" of the experiment "gpt"."""
    panels: dict[str, dict] = {"rows computed": {}, "seconds": {}}
    for cached, name in ((False, "without a cache"), (True, "with a cache")):
        chosen = [row for row in rows if row["cached"] is cached and row["size"] == size]
        xs = [row["length"] for row in chosen]
        panels["rows computed"][name] = (xs, [row["rows"] for row in chosen])
        panels["seconds"][name] = (xs, [row["cpu_s"] for row in chosen])
    return lines(
        panels,
        alt=(
            "Rows computed and seconds over the length of the text, with a cache and without: without it the"
            " rows are many times as many, the seconds not twice as many."
        ),
        caption="Stored run, one thread. A row is one character going through the layers.",
        x_axis="characters written",
        y_limits=(0, None),
        height=3.0,
    )
