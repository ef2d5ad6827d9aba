"""The milestones as a drawing: a column for each thread, a row for each year in which something happened."""

from html import escape
from textwrap import fill

from matplotlib.axes import Axes

from lesson_lib.charts.picture import CURVES, bare, figure
from lesson_lib.data.milestones import MILESTONES, THREADS, Milestone

SHADES = dict(zip(THREADS, ("#000000", *CURVES[:4]), strict=True))


def rows() -> list[tuple[int, list[list]]]:
    """(year, for each thread its milestones of that year), the earliest first."""
    years = sorted({m.year for m in MILESTONES})
    return [
        (year, [[m for m in MILESTONES if (m.year, m.thread) == (year, thread)] for thread in THREADS])
        for year in years
    ]


@figure(
    "Timeline from 1964 to 2022 in five columns: ancestors, vision, language, attention alone, long"
    " inputs and graphs. Vision begins in 1991, language in 2014; after the Transformer of 2017 all"
    " columns fill.",
    "A row for each year in which something on our list happened; the dots mark years left out. Read"
    " down a column for a thread, along a row for a year.",
    width=8.0,
    height=8.4,
)
def timeline(axes: Axes) -> None:
    """All of `MILESTONES`."""
    bare(axes)
    y, before = 0.0, None
    for x, thread in enumerate(THREADS):
        axes.text(x, 0.75, fill(thread, 12), ha="center", va="bottom", weight="bold", color=SHADES[thread])
    for year, columns in rows():
        if before and year > before + 1:
            axes.text(-0.78, y + 0.15, "⋮", ha="center", color="0.4")
            y -= 0.35
        axes.text(-0.78, y, str(year), ha="center", va="center", weight="bold")
        axes.axhline(y + 0.5, color="0.92", linewidth=1, zorder=0)
        for x, cell in enumerate(columns):
            for k, m in enumerate(cell):
                box = {
                    "boxstyle": "round,pad=0.3",
                    "facecolor": "white",
                    "edgecolor": SHADES[m.thread],
                    "linewidth": 1.5,
                }
                axes.text(x, y - 1.0 * k, fill(m.name, 17), ha="center", va="center", fontsize=8.5, bbox=box)
        y -= 0.15 + 1.0 * max(1, *(len(cell) for cell in columns))
        before = year
    for x, thread in enumerate(THREADS):
        axes.plot([x, x], [0.7, y + 0.5], color=SHADES[thread], alpha=0.25, linewidth=4, zorder=0)
    axes.set(xlim=(-1.05, len(THREADS) - 0.45), ylim=(y + 0.2, 1.6))


class Cards:
    """Milestones with their three lines, as a table in a notebook and as text elsewhere."""

    def __init__(self, milestones: list[Milestone]) -> None:
        self.milestones = milestones

    def __repr__(self) -> str:
        return "\n\n".join(
            f"{m.year} {m.name}: {m.formula}\n  problem: {m.problem}\n  idea: {m.idea}\n  not yet:"
            f" {m.not_yet}"
            for m in self.milestones
        )

    def _repr_html_(self) -> str:
        left = "style='text-align:left; vertical-align:top'"
        names = ("", "problem", "idea", "not yet", "lesson")
        head = "".join(f"<th scope='col' {left}>{name}</th>" for name in names)
        body = "".join(
            f"<tr><th scope='row' {left}>{m.year}<br>{escape(m.name)}</th>"
            + "".join(
                f"<td {left}>{escape(text)}</td>"
                for text in (m.problem, m.idea, m.not_yet, ", ".join(m.lessons))
            )
            + "</tr>"
            for m in self.milestones
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def cards(*names: str) -> Cards:
    """The milestones of these names, in this order; raises ValueError for a name that is not on the list."""
    known = {m.name: m for m in MILESTONES}
    return Cards([known[name] for name in names])
