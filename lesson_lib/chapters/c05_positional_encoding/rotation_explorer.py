"""The shift by δ tokens as a matrix: it turns every pair of columns, and no position enters it."""

from torch import Tensor

from lesson_lib.chapters.c05_positional_encoding.clocks_explorer import Places, before_the_first, sliders
from lesson_lib.charts.grid import shift
from lesson_lib.charts.picture import Picture
from lesson_lib.positions import BASE, rotation
from lesson_lib.widgets.explorer import Explorer, number, table

MAX_D = 8
EXACT = 1e-12  # differences below this are the rounding of float64


class RotationExplorer(Explorer):
    """R(δ) p[i] beside p[i + δ], with their largest difference, and their dot product, which the position
    does not change.

    Raises ValueError where d is odd, less than 2 or more than 8.
    """

    def __init__(self, d: int = 6, base: float = BASE) -> None:
        if d > MAX_D:
            raise ValueError(f"d must be at most {MAX_D}, so that R(δ) can be read, got {d}")
        self.d, self.base = d, base
        self.places = Places(d, base)
        self.position, self.offset = sliders(3, 5)
        super().__init__([self.position, self.offset])
        self.watch(self.position, self.offset)

    def largest_difference(self) -> float:
        """Between R(δ) p[i] and p[i + δ], over all columns."""
        i, delta = self.position.value, self.offset.value
        return (self._matrix() @ self.places[i] - self.places[i + delta]).abs().max().item()

    def dot_product(self) -> float:
        """p[i] · p[i + δ]."""
        i, delta = self.position.value, self.offset.value
        return (self.places[i] @ self.places[i + delta]).item()

    def draw(self) -> str:
        i, delta = self.position.value, self.offset.value
        here, there, matrix = self.places[i], self.places[i + delta], self._matrix()
        turned = matrix @ here
        columns = {
            "matrix": (matrix.tolist(), f"R({delta})", self._matrix_tips()),
            "here": (here[:, None].tolist(), f"p[{i}]", self._code_tips(i)),
            "turned": (turned[:, None].tolist(), f"R({delta}) p[{i}]", self._turned_tips()),
            "there": (there[:, None].tolist(), f"p[{i + delta}]", self._code_tips(i + delta)),
        }
        tables = {
            key: table(rows, title, key=key, tips=tips, limits=(-1, 1), shape=False)
            for key, (rows, title, tips) in columns.items()
        }
        signs = {"matrix": "", "here": "·", "turned": "=", "there": "beside"}
        equation = "".join(
            f'<div class="ll-term"><b>{signs[key]}</b>{drawn}</div>' for key, drawn in tables.items()
        )
        gap = self.largest_difference()
        said = "below 1e-12, the rounding of the computer" if gap < EXACT else f"{gap:.1e}"
        w = self.places.frequencies.tolist()
        cosines = (f" = {part}" for part in (
            " + ".join(f"cos({delta} · {f:.4g})" for f in w),
            " + ".join(f"{c:.4f}" for c in matrix.diagonal()[::2].tolist()),
            f"{matrix.diagonal()[::2].sum().item() + 0.0:.4f}",
        )[: 3 if self.d > 2 else 2])  # fmt: skip
        return (
            f"<style>{_style(self.name, self.d)}</style>"
            f'<div class="ll-row ll-equation ll-under">{equation}</div>'
            f"<p>R({delta}) p[{i}] and p[{i + delta}]: <b>largest difference"
            f" {said}</b>.{before_the_first(i + delta)} "
            "Move the position: R(δ) stays as it is. Move the offset: R(δ) changes.</p>"
            f"<p><b>p[{i}] · p[{i + delta}] = {self.dot_product() + 0.0:.4f}</b>, and Σ<sub>j</sub> cos(δ ·"
            " w<sub>j</sub>)"
            f"{''.join(cosines)}. No i in it: the dot product knows how far, not where.</p>"
        )

    def still(self) -> Picture:
        i, delta = self.position.value, self.offset.value
        here, there, matrix = self.places[i], self.places[i + delta], self._matrix()
        return shift(
            matrix,
            {f"p[{i}]": here, f"R({delta}) p[{i}]": matrix @ here, f"p[{i + delta}]": there},
            title=f"R({delta})",
            alt=(
                "The rotation explorer as it starts: the block-diagonal matrix of a shift, the code of a"
                " position, and two equal columns, the turned code and the code of the position it is"
                " turned to."
            ),
        )

    def _matrix(self) -> Tensor:
        return rotation(float(self.offset.value), self.d, base=self.base, dtype=self.places.table.dtype)

    def _matrix_tips(self) -> list[list[str]]:
        """Formulas inside the blocks; nothing outside."""
        delta, w = self.offset.value, self.places.frequencies.tolist()
        names = (("cos", "sin"), ("-sin", "cos"))
        return [
            [
                (
                    f"R[{r}, {c}] = {names[r % 2][c % 2]}(δ · w_{r // 2}) = {names[r % 2][c % 2]}({delta} ·"
                    f" {w[r // 2]:.4g}) = {number(value, 4)}"
                    if r // 2 == c // 2
                    else ""
                )
                for c, value in enumerate(row)
            ]
            for r, row in enumerate(self._matrix().tolist())
        ]

    def _code_tips(self, position: int) -> list[list[str]]:
        w, code = self.places.frequencies.tolist(), self.places[position].tolist()
        return [
            [
                f"p[{position}, {c}] = {('sin', 'cos')[c % 2]}({position} · w_{c // 2}) ="
                f" {('sin', 'cos')[c % 2]}({position} · {w[c // 2]:.4g}) = {number(v, 4)}"
            ]
            for c, v in enumerate(code)
        ]

    def _turned_tips(self) -> list[list[str]]:
        here, matrix = self.places[self.position.value], self._matrix()
        tips = []
        for r, row in enumerate(matrix.tolist()):
            block = range(r // 2 * 2, r // 2 * 2 + 2)
            terms = " + ".join(f"{number(row[c], 4)} · {number(here[c].item(), 4)}" for c in block)
            tips.append(
                [
                    f"row {r} of R({self.offset.value}), times p[{self.position.value}]: {terms} ="
                    f" {number((matrix[r] @ here).item(), 4)}"
                ]
            )
        return tips


def _style(name: str, d: int) -> str:
    """CSS: cells outside the blocks are pale; a cell of the product marks the cells that it is made from."""
    outside = ", ".join(f".{name} td.matrix{r}-{c}" for r in range(d) for c in range(d) if r // 2 != c // 2)
    rules = [f"{outside} {{background:#f4f4f4 !important; color:#666 !important}}"] if outside else []
    for r in range(d):
        at = f".{name}:has(td.turned{r}-0:is(:hover, :focus))"
        origins = [f"matrix{r}-{c}" for c in (r // 2 * 2, r // 2 * 2 + 1)]
        origins += [f"here{c}-0" for c in (r // 2 * 2, r // 2 * 2 + 1)]
        rules.append(
            ", ".join(f"{at} td.{origin}" for origin in origins) + " {box-shadow: inset 0 0 0 3px #D55E00}"
        )
    rules.append(".ll-box .ll-equation {gap:8px}")
    rules.append(".ll-box .ll-equation td {min-width:30px; padding:3px 4px}")
    rules.append(".ll-term {display:flex; align-items:center; gap:8px}")
    return "\n".join(rules)
