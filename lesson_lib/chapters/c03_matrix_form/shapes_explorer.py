"""Rows or columns: the same attention with tokens lying or standing, every matrix drawn to scale."""

import ipywidgets

from lesson_lib.charts import matrices
from lesson_lib.charts.matrices import EDGE, FILL, LINE, TOKENS, Equation, equations
from lesson_lib.charts.picture import Picture
from lesson_lib.widgets.explorer import Explorer


class ShapeExplorer(Explorer):
    """One switch between rows and columns, four sliders for the sizes; the orange edge counts the tokens."""

    def __init__(self, n: int = 6, d_model: int = 10, d_k: int = 4, d_v: int = 5) -> None:
        self.convention = ipywidgets.ToggleButtons(
            options=["rows", "columns"], value="rows", description="tokens are"
        )
        sizes = {"n": n, "d_model": d_model, "d_k": d_k, "d_v": d_v}
        self.sizes = {
            name: ipywidgets.IntSlider(
                value, min=1, max=16, description=name, layout=ipywidgets.Layout(width="260px")
            )
            for name, value in sizes.items()
        }
        super().__init__([self.convention, *self.sizes.values()])
        self.watch(self.convention, *self.sizes.values())

    def equations(self) -> dict[str, Equation]:
        """The equations as the controls stand."""
        return equations(self.convention.value, **{name: slider.value for name, slider in self.sizes.items()})

    def draw(self) -> str:
        return "".join(
            f"<div style='margin-bottom:6px'><code>{code}</code><br>{_svg(equation)}</div>"
            for code, equation in self.equations().items()
        )

    def still(self) -> Picture:
        return matrices.products(
            list(self.equations().values()),
            alt=(
                f"The shape explorer: self-attention with tokens as {self.convention.value}, every matrix"
                " drawn to scale."
            ),
        )


def _svg(equation: Equation) -> str:
    """An equation as inline SVG, 9 pixels per number."""
    unit, x, parts = 9, 2, []
    tall = max(part.rows.size for part in equation if not isinstance(part, str)) * unit
    for part in equation:
        if isinstance(part, str):
            gap = 22 + 7 * len(part)
            parts.append(f'<text x="{x + gap / 2}" y="{4 + tall / 2}" text-anchor="middle">{part}</text>')
            x += gap
            continue
        name, (row_axis, rows), (column_axis, columns) = part
        width, height = columns * unit, rows * unit
        top = 4 + (tall - height) / 2
        parts.append(
            f'<rect x="{x}" y="{top}" width="{width}" height="{height}" fill="{FILL}" stroke="{LINE}"/>'
        )
        if row_axis == TOKENS:
            parts.append(_edge(x, top, x, top + height))
        if column_axis == TOKENS:
            parts.append(_edge(x, top, x + width, top))
        label = f"{name} {rows}×{columns}"
        place = x + width / 2
        parts.append(
            f'<text x="{place}" y="{top + height + 13}" text-anchor="middle" font-size="11">{label}</text>'
        )
        x += max(width, 34) + 6
    title = " ".join(
        part if isinstance(part, str) else f"{part.name} ({part.rows.size} by {part.columns.size})"
        for part in equation
    )
    return (
        f'<svg role="img" aria-label="{title}" width="{x + 20}" height="{tall + 24}" font-size="14"'
        f' fill="#111">{"".join(parts)}</svg>'
    )


def _edge(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{EDGE}" stroke-width="4"/>'
