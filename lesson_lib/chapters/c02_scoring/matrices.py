"""Matrices drawn to scale, with their numbers or only their shapes: the seven steps, and products side by
side."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from lesson_lib.charts.basic import draw_table
from lesson_lib.charts.picture import Picture, bare, canvas, styled
from lesson_lib.trace import SevenSteps


class Side(NamedTuple):
    """A side of a matrix: the name of its axis, as in every signature of the library, and its length."""

    axis: str
    size: int


class Matrix(NamedTuple):
    """A matrix by name and sides; the axis "n" counts the tokens."""

    name: str
    rows: Side
    columns: Side


Equation = list[Matrix | str]
TOKENS = "n"  # the axis that counts tokens
EDGE, FILL, LINE = "#D55E00", "#DCEAF5", "#0072B2"  # colours of the tokens' edge, of a matrix, and around it
WIDTH, HEIGHT = 7.5, 4.2  # inches that products take at most
LABEL, GAP = 0.2, 0.12  # inches of a shape's text, and between equations
STEP_TEXTS = {
    1: "1. inputs: one row per token",
    2: "2. three learned matrices, for keys, queries and values",
    3: "3. keys, queries, values: inputs times a matrix",
    4: "4. scores: each query · each key",
    5: "5. weights: softmax of each row of scores",
    6: "6. weighted values: weight times value, here for query {query}",
    7: "7. outputs: the sum of the weighted values",
}


@styled
def seven_steps(
    steps: SevenSteps,
    weights: Mapping[str, Tensor],
    *,
    upto: int = 7,
    query: int = 0,
    decimals: int = 2,
) -> Picture:
    """The seven steps in one picture: every matrix with its numbers, as far as step `upto`, the current one
    marked.

    `weights` maps "W_key", "W_query", "W_value" to the three matrices. Step 6 shows the weighted values of
    one `query`.
    Raises ValueError where `upto` is not 1 ... 7 or there is no such query.
    """
    if upto not in STEP_TEXTS:
        raise ValueError(f"upto must be a step, 1 ... 7, got {upto!r}")
    n = steps.inputs.shape[-2]
    if not 0 <= query < n:
        raise ValueError(f"query must be 0 ... {n - 1}, got {query}")
    layout = [
        [(1, "inputs", steps.inputs), (2, "W_key", weights["W_key"]), (2, "W_query", weights["W_query"]),
        (2, "W_value", weights["W_value"])],
        [None, (3, "keys", steps.keys), (3, "queries", steps.queries), (3, "values", steps.values)],
        [(4, "scores", steps.scores), (5, "weights", steps.weights),
        (6, f"weighted values, query {query + 1}", steps.weighted_values[query]),
        (7, "outputs", steps.outputs)],
    ]  # fmt: skip
    figure, grid = canvas(3, 4, width=8.0, height=5.2)
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
            shape = "" if step == 6 else f"  {tuple(table.shape)}"  # its name fills the place
            axes.set_title(
                f"{step}  {name}{shape}",
                fontsize=9,
                fontweight="bold" if step == upto else None,
            )
            if step == upto:
                axes.spines[:].set(visible=True, color=EDGE, linewidth=2.5)
    alt = (
        f"Step {upto} of 7 of self-attention over {n} tokens:"
        f" {STEP_TEXTS[upto].split('. ', 1)[1].format(query=query + 1)}; the matrices so far, with their"
        " numbers."
    )
    return Picture(figure, alt)


def equations(convention: str, n: int, d_model: int, d_k: int, d_v: int) -> dict[str, Equation]:
    """The equations of self-attention with their shapes, by the line of code: tokens as "rows", or as
    "columns" in the letters of the sources, which have no root.

    Raises ValueError for another convention.
    """
    sizes = {"n": n, "d_model": d_model, "d_k": d_k, "d_v": d_v}

    def m(name: str, rows: str, columns: str) -> Matrix:
        return Matrix(name, Side(rows, sizes[rows]), Side(columns, sizes[columns]))

    if convention == "rows":
        x, a, s = m("X", "n", "d_model"), m("A", "n", "n"), m("S", "n", "n")
        q, k, v = m("Q", "n", "d_k"), m("K", "n", "d_k"), m("V", "n", "d_v")
        return {
            "Q = X @ W_q": [q, "=", x, "@", m("W_q", "d_model", "d_k")],
            "K = X @ W_k": [k, "=", x, "@", m("W_k", "d_model", "d_k")],
            "V = X @ W_v": [v, "=", x, "@", m("W_v", "d_model", "d_v")],
            "S = Q @ K.mT / K.shape[-1] ** 0.5": [s, "=", q, "@", m("Kᵀ", "d_k", "n"), "/ √d_k"],
            "A = S.softmax(-1)    # each row sums to 1": [a, "= softmax of", s, "row by row"],
            "O = A @ V": [m("O", "n", "d_v"), "=", a, "@", v],
        }  # fmt: skip
    if convention == "columns":
        i, a = m("I", "d_model", "n"), m("A′", "n", "n")
        q, k, v = m("Q", "d_k", "n"), m("K", "d_k", "n"), m("V", "d_v", "n")
        return {
            "Q = W_q.mT @ I": [q, "=", m("W_qᵀ", "d_k", "d_model"), "@", i],
            "K = W_k.mT @ I": [k, "=", m("W_kᵀ", "d_k", "d_model"), "@", i],
            "V = W_v.mT @ I": [v, "=", m("W_vᵀ", "d_v", "d_model"), "@", i],
            "A = K.mT @ Q": [m("A", "n", "n"), "=", m("Kᵀ", "n", "d_k"), "@", q],
            "A_prime = A.softmax(-2)    # A′: each column sums to 1": [a, "= softmax of", m("A", "n", "n"),
            "column by column"],
            "O = V @ A_prime": [m("O", "d_v", "n"), "=", v, "@", a],
        }  # fmt: skip
    raise ValueError(f"convention must be 'rows' or 'columns', got {convention!r}")


@styled
def products(lines: Sequence[Equation], *, alt: str, caption: str = "") -> Picture:
    """Matrix equations in two columns, down the left one first, every matrix of the figure at one scale.

    An equation is a row of matrices and of signs such as "=" and "@". Each matrix is a box of its true
    proportions with name and shape; the edge that counts tokens is thick, so that the eye finds rows (left
    edge) and columns (top edge).
    """
    half = -(-len(lines) // 2)
    stacks = [stack for stack in (lines[:half], lines[half:]) if stack]
    scale, widths, heights = _layout(stacks)
    figure, grid = canvas(width=WIDTH, height=sum(heights))
    axes = grid[0][0]
    bare(axes)
    axes.set(xlim=(-0.05 / scale, WIDTH / scale), ylim=(-sum(heights) / scale, 0), aspect="equal")
    for column, stack in enumerate(stacks):
        for row, equation in enumerate(stack):
            middle = sum(heights[:row]) + (heights[row] - LABEL) / 2
            _equation(axes, equation, sum(widths[:column]) / scale, -middle / scale, scale)
    return Picture(figure, alt, caption)


def _layout(stacks: Sequence[Sequence[Equation]]) -> tuple[float, list[float], list[float]]:
    """Inches per number, the largest up to 0.16 at which all fits; then inches of each column and of each row
    of equations."""
    scale = 0.16
    while True:
        widths = [
            3 * GAP + max(sum(_width(part, scale) for part in line) for line in stack) for stack in stacks
        ]
        tall = [max(_tall(stack[i]) for stack in stacks if i < len(stack)) for i in range(len(stacks[0]))]
        heights = [scale * rows + LABEL + GAP for rows in tall]
        if scale < 0.01 or (sum(widths) <= WIDTH and sum(heights) <= HEIGHT):
            return scale, widths, heights
        scale *= 0.97


def _width(part: Matrix | str, scale: float) -> float:
    """Inches that a part takes: a sign by its letters, a matrix by its columns, and at least what its shape's
    text takes."""
    return 0.22 + 0.085 * len(part) if isinstance(part, str) else max(scale * part.columns.size, 0.42)


def _tall(equation: Equation) -> int:
    return max(part.rows.size for part in equation if not isinstance(part, str))


def _equation(axes: Axes, equation: Equation, x: float, y: float, scale: float) -> None:
    """Draw an equation from x on around the height y; lengths count numbers, a number being `scale`
    inches."""
    for part in equation:
        width = _width(part, scale) / scale
        middle = x + width / 2
        if isinstance(part, str):
            axes.text(middle, y, part, ha="center", va="center", fontsize=10)
        else:
            name, (row_axis, rows), (column_axis, columns) = part
            left, top = middle - columns / 2, y + rows / 2
            axes.add_patch(Rectangle((left, y - rows / 2), columns, rows, facecolor=FILL, edgecolor=LINE))
            edge = {"color": EDGE, "linewidth": 4, "solid_capstyle": "butt"}
            if row_axis == TOKENS:
                axes.plot([left, left], [top - rows, top], **edge)
            if column_axis == TOKENS:
                axes.plot([left, left + columns], [top, top], **edge)
            axes.text(middle, y, name, ha="center", va="center", fontsize=10)
            below = y - rows / 2 - 0.04 / scale
            axes.text(middle, below, f"{rows} × {columns}", ha="center", va="top", fontsize=10)
        x += width
