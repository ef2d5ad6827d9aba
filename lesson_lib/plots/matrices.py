"""Matrices drawn to scale, with their numbers or only their shapes: the seven steps, and products side by side."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib.plots.charts import draw_table
from lesson_lib.plots.picture import STYLE, Picture, bare, canvas
from lesson_lib.trace import SevenSteps

STEP_TEXTS = {
    1: "1. inputs: one row per token",
    2: "2. three weight matrices, one each for keys, queries and values",
    3: "3. keys, queries, values: inputs times a matrix",
    4: "4. scores: each query · each key",
    5: "5. weights: softmax of each row of scores",
    6: "6. weighted values: weight times value, here for query {query}",
    7: "7. outputs: the sum of the weighted values",
}


def seven_steps(
    steps: SevenSteps,
    weights: Mapping[str, Tensor],
    *,
    upto: int = 7,
    query: int = 0,
    decimals: int = 2,
) -> Picture:
    """The seven steps in one picture: every matrix with its numbers, as far as step `upto`, the current one marked.

    `weights` maps "W_key", "W_query", "W_value" to the three matrices. Step 6 shows the weighted values of one `query`.
    Raises ValueError where `upto` is not 1 ... 7 or there is no such query.
    """
    if upto not in STEP_TEXTS:
        raise ValueError(f"upto must be a step, 1 ... 7, got {upto!r}")
    n = steps.inputs.shape[-2]
    if not 0 <= query < n:
        raise ValueError(f"query must be 0 ... {n - 1}, got {query}")
    layout = [
        [(1, "inputs", steps.inputs), (2, "W_key", weights["W_key"]), (2, "W_query", weights["W_query"]), (2, "W_value", weights["W_value"])],
        [None, (3, "keys", steps.keys), (3, "queries", steps.queries), (3, "values", steps.values)],
        [(4, "scores", steps.scores), (5, "weights", steps.weights), (6, f"weighted values of query {query + 1}", steps.weighted_values[query]), (7, "outputs", steps.outputs)],
    ]  # fmt: skip
    figure, grid = canvas(3, 4, width=8.0, height=5.2)
    with rc_context(STYLE):
        figure.suptitle(STEP_TEXTS[upto].format(query=query + 1), fontsize=11)
        for row, cells in zip(grid, layout, strict=True):
            for axes, cell in zip(row, cells, strict=True):
                bare(axes)
                if cell is None or cell[0] > upto:
                    axes.set_axis_off()
                    continue
                step, name, table = cell
                whole = bool((table == table.round()).all())
                table = table.detach().to("cpu", torch.float64)
                draw_table(axes, table, low=table.min().item(), high=table.max().item(), decimals=0 if whole else decimals)
                axes.set_title(f"{step}  {name}  {tuple(table.shape)}", fontsize=9, fontweight="bold" if step == upto else None)
                if step == upto:
                    axes.spines[:].set(visible=True, color="#D55E00", linewidth=2.5)
    alt = (
        f"Step {upto} of 7 of self-attention over {n} tokens: "
        f"{STEP_TEXTS[upto].split('. ', 1)[1].format(query=query + 1)}; the matrices so far, with their numbers."
    )
    return Picture(figure, alt)


def products(
    equations: Sequence[Sequence[str | tuple[str, int, int]]], *, alt: str, caption: str = "", tokens: int | None = None
) -> Picture:
    """Matrix equations drawn to scale, one per line: each matrix is a box of its true proportions, with name and shape.

    An equation is a row of matrices `(name, rows, columns)` and of signs such as "=" and "@". The side that counts
    `tokens` is drawn thick, so that the eye finds rows (left side thick) and columns (top side thick).
    """
    height = sum(max(part[1] for part in eq if not isinstance(part, str)) for eq in equations)
    scale = 0.16
    figure, grid = canvas(len(equations), 1, width=7.5, height=scale * height + 0.75 * len(equations))
    with rc_context(STYLE):
        for axes, equation in zip(grid[:, 0], equations, strict=True):
            _equation(axes, equation, tokens)
    return Picture(figure, alt, caption)


def _equation(axes: Axes, equation: Sequence[str | tuple[str, int, int]], tokens: int | None) -> None:
    bare(axes)
    tall = max(part[1] for part in equation if not isinstance(part, str))
    x = 0.0
    for part in equation:
        if isinstance(part, str):
            axes.text(x + 1.6, 0, part, ha="center", va="center", fontsize=12)
            x += 3.2
            continue
        name, rows, columns = part
        axes.add_patch(_box(x, rows, columns))
        if rows == tokens:
            axes.plot([x, x], [-rows / 2, rows / 2], color="#D55E00", linewidth=4, solid_capstyle="butt")
        if columns == tokens:
            axes.plot([x, x + columns], [rows / 2, rows / 2], color="#D55E00", linewidth=4, solid_capstyle="butt")
        axes.text(x + columns / 2, 0, name, ha="center", va="center", fontsize=11)
        axes.text(x + columns / 2, -rows / 2 - 0.5, f"{rows} × {columns}", ha="center", va="top", fontsize=8)
        x += columns
    axes.set(xlim=(-0.5, max(x, 46) + 0.5), ylim=(-tall / 2 - 2.6, tall / 2 + 0.6), aspect="equal", anchor="W")


def _box(x: float, rows: int, columns: int):
    from matplotlib.patches import Rectangle

    return Rectangle((x, -rows / 2), columns, rows, facecolor="#DCEAF5", edgecolor="#0072B2", linewidth=1)
