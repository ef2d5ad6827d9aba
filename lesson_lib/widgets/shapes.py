"""Rows or columns: the same attention with tokens lying or standing, every matrix drawn to scale."""

import ipywidgets

from lesson_lib.plots import matrices
from lesson_lib.plots.matrices import Equation, equations
from lesson_lib.plots.picture import Picture
from lesson_lib.widgets.explorer import Explorer


class ShapeExplorer(Explorer):
    """One switch between rows and columns, four sliders for the sizes; the orange edge counts the tokens."""

    def __init__(self, n: int = 6, d_model: int = 10, d_k: int = 4, d_v: int = 5) -> None:
        self.convention = ipywidgets.ToggleButtons(options=["rows", "columns"], description="tokens are")
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
            f"<div style='margin-bottom:6px'><code>{code}</code><br>{_svg(equation, self.sizes['n'].value)}</div>"
            for code, equation in self.equations().items()
        )

    def still(self) -> Picture:
        n = self.sizes["n"].value
        return matrices.products(
            list(equations("rows", **{name: slider.value for name, slider in self.sizes.items()}).values()),
            tokens=n,
            alt="The shape explorer as it starts: the five products of self-attention with tokens as rows, drawn to scale.",
        )


def _svg(equation: Equation, tokens: int) -> str:
    """An equation as inline SVG, 9 pixels per number."""
    unit, gap, x, parts = 9, 30, 2, []
    tall = max(part[1] for part in equation if not isinstance(part, str)) * unit
    for part in equation:
        if isinstance(part, str):
            parts.append(f'<text x="{x + gap / 2}" y="{4 + tall / 2}" text-anchor="middle">{part}</text>')
            x += gap
            continue
        name, rows, columns = part
        width, height = max(columns * unit, 1), rows * unit
        top = 4 + (tall - height) / 2
        parts.append(
            f'<rect x="{x}" y="{top}" width="{width}" height="{height}" fill="#DCEAF5" stroke="#0072B2"/>'
        )
        if rows == tokens:
            parts.append(
                f'<line x1="{x}" y1="{top}" x2="{x}" y2="{top + height}" stroke="#D55E00" stroke-width="4"/>'
            )
        if columns == tokens:
            parts.append(
                f'<line x1="{x}" y1="{top}" x2="{x + width}" y2="{top}" stroke="#D55E00" stroke-width="4"/>'
            )
        label = f"{name} {rows}×{columns}"
        place = x + width / 2
        parts.append(
            f'<text x="{place}" y="{top + height + 13}" text-anchor="middle" font-size="11">{label}</text>'
        )
        x += max(width, 34) + 6
    title = " ".join(
        part if isinstance(part, str) else f"{part[0]} ({part[1]} by {part[2]})" for part in equation
    )
    return f'<svg role="img" aria-label="{title}" width="{x + 20}" height="{tall + 24}" font-size="14" fill="#111">{"".join(parts)}</svg>'
