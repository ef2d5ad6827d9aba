"""The figures that chapter 06's evidence alone draws."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from lesson_lib import summary
from lesson_lib.chapters.c06_transformer.experiments import silent_heads
from lesson_lib.charts import lines
from lesson_lib.charts.basic import draw_table
from lesson_lib.charts.picture import Picture, canvas, figure
from lesson_lib.experiments import results


def at_the_start(curves: Mapping[str, Sequence[Sequence[float]]], *, title: str, log: str = "") -> Picture:
    """{system: a value of each layer, for each seed}."""
    bands = {
        name: summary.band(dict(enumerate(zip(*seeds, strict=True), 1))) for name, seeds in curves.items()
    }
    return lines(
        {title: bands},
        alt=f"{title.capitalize()} over the layers of untrained stacks of twelve, a curve with a band each.",
        caption="Random weights, one batch. Median of three seeds, band from lowest to highest.",
        x_axis="layer",
        log=log,
        height=3.0,
    )


@figure(
    "Three tables of six attentions by four heads: most cells are bright; the darkest cell of each table"
    " stands in the row of the decoder's own attention in layer 1.",
    "Each cell: right texts of 500 test dates with that one head silent. Bright: hardly a text is lost.",
)
def silenced_heads() -> Figure:
    """Of the stored experiment "silent_heads"."""
    rows = [row for row in results("silent_heads")["rows"] if row["head"] is not None]
    parts, seeds = list(dict.fromkeys(row["part"] for row in rows)), silent_heads.RECIPE["seeds"]
    figure, grid = canvas(1, len(seeds), width=7.6, height=2.7)
    for seed, axes in zip(seeds, grid[0], strict=True):
        shares = {(r["part"], r["head"]): r["written"] for r in rows if r["seed"] == seed}
        heads = sorted({head for _, head in shares})
        table = torch.tensor([[shares[part, head] for head in heads] for part in parts])
        draw_table(axes, table, low=0.0, high=1.0, decimals=2)
        axes.set(title=f"seed {seed}", xlabel="silent head", xticks=range(len(heads)), aspect="auto")
        axes.set_yticks(range(len(parts)), parts if seed == seeds[0] else [""] * len(parts))
    return figure
