"""The figures that chapter 06's evidence alone draws."""

from collections.abc import Mapping, Sequence

import torch

from lesson_lib.chapters.c06_transformer.experiments import silenced
from lesson_lib.charts import heatmap, lines
from lesson_lib.charts.picture import Picture
from lesson_lib.experiments import results


def at_the_start(curves: Mapping[str, Sequence[Sequence[float]]], *, title: str, log: str = "") -> Picture:
    """One value of each layer before any training; {system: a list over the layers for each seed}."""
    drawn = {}
    for name, seeds in curves.items():
        by_layer = [sorted(values) for values in zip(*seeds, strict=True)]
        middle = len(seeds) // 2
        drawn[name] = (
            list(range(1, len(by_layer) + 1)),
            *([values[k] for values in by_layer] for k in (0, middle, -1)),
        )
    return lines(
        {title: drawn},
        alt=f"{title.capitalize()} over the layers of untrained stacks of twelve, a curve with a band each.",
        caption="Random weights, one batch. Median of three seeds, band from lowest to highest.",
        x_axis="layer",
        log=log,
        height=3.0,
    )


def silenced_heads() -> Picture:
    """Stored: right texts with one head silent, a table for each seed; a row for each attention, a column
    for each head."""
    rows = [row for row in results("silenced")["rows"] if row["head"] is not None]
    parts = list(dict.fromkeys(row["part"] for row in rows))
    tables = {}
    for seed in silenced.RECIPE["seeds"]:
        shares = {(r["part"], r["head"]): r["written"] for r in rows if r["seed"] == seed}
        heads = sorted({head for _, head in shares})
        tables[f"seed {seed}"] = torch.tensor([[shares[part, head] for head in heads] for part in parts])
    return heatmap(
        tables,
        alt=(
            "Three tables of six attentions by four heads: most cells are bright; the darkest cells stand in"
            " the rows of layer 1, in another place for every seed."
        ),
        caption="Each cell: right texts of 500 test dates with that one head silent.",
        rows=parts,
        row_axis="",
        column_axis="silent head",
        color_axis="right texts",
        limits=(0.0, 1.0),
        numbers=True,
    )
