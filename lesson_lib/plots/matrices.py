"""Matrices drawn to scale, with their numbers or only their shapes: the seven steps, and products side by side."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from torch import Tensor

from lesson_lib.plots.charts import draw_table
from lesson_lib.plots.picture import STYLE, Picture, bare, canvas
from lesson_lib.trace import SevenSteps

Equation = list[str | tuple[str, int, int]]
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
                draw_table(
                    axes,
                    table,
                    low=table.min().item(),
                    high=table.max().item(),
                    decimals=0 if whole else decimals,
                )
                axes.set_title(
                    f"{step}  {name}  {tuple(table.shape)}",
                    fontsize=9,
                    fontweight="bold" if step == upto else None,
                )
                if step == upto:
                    axes.spines[:].set(visible=True, color="#D55E00", linewidth=2.5)
    alt = (
        f"Step {upto} of 7 of self-attention over {n} tokens: "
        f"{STEP_TEXTS[upto].split('. ', 1)[1].format(query=query + 1)}; the matrices so far, with their numbers."
    )
    return Picture(figure, alt)


def equations(convention: str, n: int, d_model: int, d_k: int, d_v: int) -> dict[str, Equation]:
    """The equations of self-attention with their shapes, by the line of code: tokens as "rows" or as "columns".

    Raises ValueError for another convention.
    """
    if convention == "rows":
        return {
            "Q = X @ W_q": [("Q", n, d_k), "=", ("X", n, d_model), "@", ("W_q", d_model, d_k)],
            "K = X @ W_k": [("K", n, d_k), "=", ("X", n, d_model), "@", ("W_k", d_model, d_k)],
            "V = X @ W_v": [("V", n, d_v), "=", ("X", n, d_model), "@", ("W_v", d_model, d_v)],
            "A = Q @ K.mT": [("A", n, n), "=", ("Q", n, d_k), "@", ("Kᵀ", d_k, n)],
            "O = A.softmax(-1) @ V    # each row of A′ sums to 1": [
                ("O", n, d_v),
                "=",
                ("A′", n, n),
                "@",
                ("V", n, d_v),
            ],
        }
    if convention == "columns":
        return {
            "Q = W_q @ I": [("Q", d_k, n), "=", ("W_q", d_k, d_model), "@", ("I", d_model, n)],
            "K = W_k @ I": [("K", d_k, n), "=", ("W_k", d_k, d_model), "@", ("I", d_model, n)],
            "V = W_v @ I": [("V", d_v, n), "=", ("W_v", d_v, d_model), "@", ("I", d_model, n)],
            "A = K.mT @ Q": [("A", n, n), "=", ("Kᵀ", n, d_k), "@", ("Q", d_k, n)],
            "O = V @ A.softmax(-2)    # each column of A′ sums to 1": [
                ("O", d_v, n),
                "=",
                ("V", d_v, n),
                "@",
                ("A′", n, n),
            ],
        }
    raise ValueError(f"convention must be 'rows' or 'columns', got {convention!r}")


def products(lines: Sequence[Equation], *, alt: str, caption: str = "", tokens: int | None = None) -> Picture:
    """Matrix equations drawn to scale, one per line: each matrix is a box of its true proportions, with name and shape.

    An equation is a row of matrices `(name, rows, columns)` and of signs such as "=" and "@". The side that counts
    `tokens` is drawn thick, so that the eye finds rows (left side thick) and columns (top side thick).
    """
    height = sum(max(part[1] for part in line if not isinstance(part, str)) for line in lines)
    scale = 0.16
    figure, grid = canvas(len(lines), 1, width=7.5, height=scale * height + 0.75 * len(lines))
    with rc_context(STYLE):
        for axes, equation in zip(grid[:, 0], lines, strict=True):
            _equation(axes, equation, tokens)
    return Picture(figure, alt, caption)


def _equation(axes: Axes, equation: Equation, tokens: int | None) -> None:
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
            axes.plot(
                [x, x + columns], [rows / 2, rows / 2], color="#D55E00", linewidth=4, solid_capstyle="butt"
            )
        axes.text(x + columns / 2, 0, name, ha="center", va="center", fontsize=11)
        axes.text(x + columns / 2, -rows / 2 - 0.5, f"{rows} × {columns}", ha="center", va="top", fontsize=8)
        x += columns
    axes.set(
        xlim=(-0.5, max(x, 46) + 0.5), ylim=(-tall / 2 - 2.6, tall / 2 + 0.6), aspect="equal", anchor="W"
    )


def _box(x: float, rows: int, columns: int):
    from matplotlib.patches import Rectangle

    return Rectangle((x, -rows / 2), columns, rows, facecolor="#DCEAF5", edgecolor="#0072B2", linewidth=1)
